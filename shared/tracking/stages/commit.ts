/** Stage of a poll: commits the changed jobs with their events. */
import type { EventDraft } from '../../events/event.ts';
import { keys } from '../../storage/schema.ts';
import { putSearchItems } from '../../storage/search-index.ts';
import { deleteItems } from '../../storage/table.ts';
import { type Chunk, chunks, type Discovery, isTooLarge, MAX_DISCOVERED } from '../chunks.ts';
import { Durations } from '../durations.ts';
import { isForecastDue, needsForecast, updateForecast } from '../forecast.ts';
import { contradictsNumbers } from '../job-numbers.ts';
import { isOutOfTime, type Poll } from '../poll-context.ts';
import { type Attributes, Fenced } from '../poll-writer.ts';
import { addVerdicts, readVerdictCounter } from '../quarantine.ts';
import { PollRollups } from '../rollups.ts';
import { countWork, isChanged, membershipChanges, type Work } from '../work.ts';

/** Result of the commits. */
export interface Committed {
  /** Whether time sufficed for all changes. */
  readonly all: boolean;
  /** Number of changed jobs. */
  readonly changed: number;
  /** Number of a job that is too large to store. `undefined` if there is none. */
  readonly tooLarge: number | undefined;
}

/** Commits the changes chunk by chunk. */
export async function commit(poll: Poll, works: Iterable<Work>): Promise<Committed> {
  const { tracked, baselined, context } = poll;
  const changed = [...works].filter(
    (work) => isChanged(work, context.rules) || isForecastDue(work.snapshot, context.startedAt),
  );
  for (const work of changed) countWork(work);
  const tooLarge = changed.find(isTooLarge)?.jobNumber;
  const writable = tooLarge === undefined ? changed : changed.filter((work) => !isTooLarge(work));
  const groups = baselined ? poll.groups : undefined;
  const rollups = await loadRollups(poll, writable);
  const durations = baselined ? await forecast(poll, writable) : undefined;
  const { ref, index } = tracked;
  const discover = statusDiscovery(poll);
  const parts = { ref, works: writable, index, context, discover, groups, rollups, durations };
  for (const chunk of chunks(parts)) {
    if (isOutOfTime(poll)) return { all: false, changed: changed.length, tooLarge };
    await commitChunk(poll, chunk);
  }
  return { all: true, changed: changed.length, tooLarge };
}

/**
 * Assesses the jobs whose status or due date changed, and those whose time of the next assessment has come. Returns the
 * usual durations of the account, or `undefined` if the works neither need nor change them.
 */
async function forecast(
  { deps, account, context, tracked }: Poll,
  works: readonly Work[],
): Promise<Durations | undefined> {
  const { startedAt } = context;
  const open = works.filter(({ untracked }) => !untracked);
  const assessed = open.filter(({ snapshot, stored }) => needsForecast(snapshot, stored, startedAt));
  const counted = works.some(({ durations = [], result }) => durations.length > 0 || result);
  const stored = assessed.length > 0 || counted ? await deps.table.get(keys.durations(account)) : undefined;
  const durations = new Durations(stored, startedAt);
  durations.rename((name) => tracked.statuses.toCurrentName(name));
  for (const work of assessed) work.snapshot = updateForecast(work.snapshot, durations, startedAt);
  return counted ? durations : undefined;
}

/** Loads the order groups and roll-ups that the works change. */
async function loadRollups(poll: Poll, works: readonly Work[]) {
  const { deps, account, groups, baselined } = poll;
  const rollups = new PollRollups(account);
  const counted = rollups.wanted(works.flatMap(({ counts = [] }) => counts));
  const names = works.flatMap(membershipChanges).map(({ orderGroup }) => orderGroup);
  const [, stored] = await Promise.all([
    baselined ? groups.read(deps.table, names) : undefined,
    counted.length === 0 ? [] : deps.table.getMany(counted),
  ]);
  rollups.load(stored);
  return rollups;
}

async function commitChunk(poll: Poll, chunk: Chunk): Promise<void> {
  const { tracked, context, writer, deps } = poll;
  const { table } = deps;
  const { works, events, writes, searchItems, discovered } = chunk;
  tracked.statuses.markKnown(discovered);
  const gone = events.filter(({ type }) => isNegative(type)).length;
  const counter = readVerdictCounter(writer.head.attributes);
  const head = {
    ...tracked.statuses.takeChanges(),
    ...countContradictions(poll, works),
    ...(gone > 0 ? { goneTally: addVerdicts(counter, gone, context.startedAt) } : {}),
  };
  await putSearchItems(table, searchItems);
  try {
    await writer.commit({ events, writes, head: Object.keys(head).length > 0 ? head : undefined });
  } catch (cause) {
    // A newer poll writes the entries of its own jobs. Those of a deleted account must not stay.
    if (cause instanceof Fenced && !(await table.get(keys.account(tracked.ref)))) {
      await deleteItems(table, searchItems);
    }
    throw cause;
  }
}

/** Returns the Head attributes for jobs whose date contradicts their number (rule 5). Empty if there are none. */
function countContradictions({ tracked: { known }, writer }: Poll, works: readonly Work[]): Attributes {
  const { baselineNumber, numberContradictions = 0 } = writer.head.attributes;
  if (known.baselineStartedAt === null || typeof baselineNumber !== 'number') return {};
  const baseline = { startedAt: known.baselineStartedAt, number: baselineNumber };
  const found = works.filter(
    ({ jobNumber, stored, snapshot: { unproven, detail } }) =>
      stored?.unproven !== null &&
      unproven === null &&
      detail !== null &&
      contradictsNumbers(jobNumber, detail, baseline),
  );
  return found.length === 0 ? {} : { numberContradictions: Number(numberContradictions) + found.length };
}

/**
 * Returns a function that finds the status names of a work that are new to this account (rule 4). Each
 * causes one event and is an ordinary status from then on.
 */
function statusDiscovery({ tracked, baselined }: Poll): (work: Work) => Discovery {
  const { statuses } = tracked;
  const found = new Set<string>();
  return (work) => {
    const names: string[] = [];
    const events: EventDraft[] = [];
    for (const { status, observed } of work.observedStatuses) {
      if (found.has(status) || names.length >= MAX_DISCOVERED || !statuses.isNew(status)) continue;
      found.add(status);
      names.push(status);
      if (!baselined) continue;
      const previousName = statuses.previousName(status);
      const data = { status, ...(previousName === undefined ? {} : { previousName }), observed };
      events.push({ type: 'status.discovered', time: Date.parse(observed.at), data });
    }
    return { names, events };
  };
}

/**
 * Returns whether an event reports a job as gone by inference, without a direct statement of the upstream
 * API.
 */
function isNegative(type: EventDraft['type']): boolean {
  return type === 'job.cancelled' || type === 'job.unavailable';
}
