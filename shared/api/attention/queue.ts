/**
 * The attention queue: what needs attention, ranked, with what users have done about it. The items are computed from the current
 * state with each request; only the actions of users are stored.
 */
import pLimit from 'p-limit';
import { readBacklog } from '../../delivery/endpoint-health.ts';
import { toSink, withHealthOfParts } from '../../delivery/sink.ts';
import type { EventLog } from '../../log/log.ts';
import { listMessages } from '../../notifications/message-history.ts';
import { readSettingsOfAccounts } from '../../notifications/settings.ts';
import type { SchemaOutput } from '../../representation.ts';
import { getRevision, modified, notFound, type Rejection, revisionUnchanged } from '../../resources.ts';
import { type AccountRef, attentionHistoryPk, keys } from '../../storage/schema.ts';
import type { Item, Key, Table } from '../../storage/table.ts';
import type { Caller } from '../keys.ts';
import { decodePageCursor, encodePageCursor } from '../parameters.ts';
import { type Candidate, type ItemId, listActions, parseItemId, toItemKey } from './items.ts';
import { compareRanked, RANK_RULE } from './rank.ts';
import { findCandidate, findCandidates, type SourceDeps } from './sources.ts';
import { type AttentionAction, applyAction, findState, type StoredState } from './state.ts';
import type {
  Actor,
  AttentionCounts,
  AttentionEntry,
  AttentionItem,
  AttentionKind,
  AttentionPage,
  AttentionState,
  SubjectAction,
} from './views.ts';

/** Dependencies of the queue. */
export interface QueueDeps extends SourceDeps {
  readonly log: EventLog;
  readonly regions: readonly string[];
}

/** Filters and page of the queue. An item must match all given filters. */
export interface QueueQuery {
  readonly region?: string | undefined;
  readonly kinds?: readonly AttentionKind[] | undefined;
  readonly account?: string | undefined;
  /** Type and id of a subject, such as `job/410018`. */
  readonly subject?: string | undefined;
  /** Name of a person. `null`: items without an assignee. */
  readonly assignee?: string | null | undefined;
  /** Absent: all states. */
  readonly state?: AttentionState | undefined;
  readonly limit: number;
  readonly after?: QueuePlace | undefined;
}

/** Position in the queue: that of the last item of the page. */
export interface QueuePlace {
  readonly score: number;
  readonly since: number;
  readonly id: string;
}

/** Retention of the state of an item after the last action of a user, and of each entry of its history (days). */
export const STATE_DAYS = 90;
const READS_AT_ONCE = 16;
/** Reading a backlog takes up to 200 heads. */
const BACKLOGS_AT_ONCE = 4;
const MAX_BACKLOGS = 20;

/** An item before its customer and its actions are added, with its state. */
type Ranked = Candidate & ReturnType<typeof withState>;

/** Returns a page of the queue. */
export async function listAttention(
  deps: QueueDeps,
  caller: Caller,
  query: QueueQuery,
): Promise<SchemaOutput<typeof AttentionPage>> {
  const regions = deps.regions.filter((region) => query.region === undefined || region === query.region);
  const { items, complete, accounts, endpoints } = await collect(deps, regions, caller);
  const matching = items.filter((item) => matches(item, query)).sort(compareRanked);
  const rest = query.after ? matching.filter((item) => isAfter(item, query.after)) : matching;
  const page = rest.slice(0, query.limit);
  const last = page.at(-1);
  return {
    items: await complement(deps, page, caller),
    next: last && rest.length > page.length ? encodeQueuePlace(last) : null,
    total: matching.length,
    counts: countItems(items, complete),
    watched: { regions, accounts, endpoints, messages: deps.history !== undefined },
    rule: RANK_RULE,
    asOf: deps.now(),
  };
}

/** Returns the numbers of items in the regions. */
export async function countAttention(
  deps: QueueDeps,
  regions: readonly string[],
  caller: Caller,
): Promise<AttentionCounts> {
  const { items, complete } = await collect(deps, regions, caller);
  return countItems(items, complete);
}

/** Returns an item by its id. `undefined`: it does not exist now. */
export async function readAttention(
  deps: QueueDeps,
  caller: Caller,
  id: ItemId,
): Promise<AttentionItem | undefined> {
  const candidate = deps.regions.includes(id.region) ? await findCandidate(deps, id, caller) : undefined;
  if (!candidate) return undefined;
  const [stored] = await readStates(deps.table, [candidate]);
  const state = stored && toStored(stored);
  const [item] = await complement(deps, [withState(candidate, state, deps.now())], caller);
  return item;
}

/** Performs an action on an item, and records it in the history of the item. */
export async function actOnAttention(
  deps: QueueDeps & { readonly newId: () => string },
  caller: Caller,
  id: ItemId,
  action: AttentionAction,
): Promise<{ readonly kind: 'changed'; readonly item: AttentionItem } | Rejection> {
  const candidate = deps.regions.includes(id.region) ? await findCandidate(deps, id, caller) : undefined;
  if (!candidate) return notFound('such item: its subject needs no attention, or the key cannot access it');
  const next = await recordAction(deps, caller, candidate, id, action);
  if (!next) return modified('item');
  const [item] = await complement(deps, [withState(candidate, next, next.changedAt)], caller);
  return item ? { kind: 'changed', item } : notFound('such item');
}

/** Number of attempts to record an action while others change the item. */
const RECORD_ATTEMPTS = 5;

/**
 * Prepares the record of an action on the subject of an item. To be called before the action, because the action may remove the
 * item. Returns a function to be called after the action. Nothing is recorded if the subject needs no attention.
 */
export async function prepareRecord(
  deps: QueueDeps & { readonly newId: () => string },
  caller: Caller,
  id: ItemId,
  action: SubjectAction,
): Promise<() => Promise<void>> {
  const candidate = await findCandidate(deps, id, caller);
  return async () => {
    if (!candidate || (await recordAction(deps, caller, candidate, id, { action }))) return;
    throw new Error(`The action ${action} was not recorded, because its item kept changing.`);
  };
}

/** Stores the state of an item after an action, with an entry of its history. `undefined`: other actions were always stored first. */
async function recordAction(
  { table, now, newId }: QueueDeps & { readonly newId: () => string },
  caller: Caller,
  candidate: Candidate,
  id: ItemId,
  action: AttentionAction,
): Promise<StoredState | undefined> {
  const key = keys.attention(id.region, toItemKey(id));
  const by = toActor(caller);
  const { material, kind, cause } = candidate;
  for (let attempt = 0; attempt < RECORD_ATTEMPTS; attempt += 1) {
    const at = now();
    const [before] = await readStates(table, [candidate]);
    const next = applyAction(before && toStored(before), action, { material, by, at });
    const ttl = Math.ceil(at / 1000) + STATE_DAYS * 86_400;
    const entry: AttentionEntry = {
      ...{ at, by, action: action.action, kind, cause: cause.summary },
      until: action.action === 'snooze' ? action.until : null,
      assignee: action.action === 'assign' ? action.assignee : null,
      note: action.note ?? null,
    };
    const revision = before ? getRevision(before) : 0;
    const written = await table.transact(
      [
        {
          put: { ...key, state: JSON.stringify(next), revision: revision + 1, ttl },
          when: [before?.sk === key.sk ? revisionUnchanged(before) : ['pk', 'absent']],
        },
        {
          put: {
            ...keys.attentionEntry(id.region, toItemKey(id), revision + 1),
            entry: JSON.stringify(entry),
            ttl,
          },
        },
      ],
      newId(),
    );
    if (written.done) return next;
  }
  return undefined;
}

/** Returns a page of the history of an item, newest first. */
export async function listAttentionHistory(
  { table }: Pick<QueueDeps, 'table'>,
  item: StatePlace,
  { limit, after }: { readonly limit: number; readonly after?: string | undefined },
): Promise<{ readonly entries: AttentionEntry[]; readonly next: string | null }> {
  const lists = await Promise.all(
    listStateKeys(item).map(async ({ sk }) => {
      const prefix = `${sk}#`;
      const found = await table.query({
        pk: attentionHistoryPk(item.region),
        from: prefix,
        to: after === undefined ? `${prefix}~` : `${prefix}${after}`,
        descending: true,
        limit: limit + 2,
      });
      return found.map(({ sk: place, entry }) => ({ number: place.slice(prefix.length), entry }));
    }),
  );
  // The upper bound is inclusive; the entry at it was on the previous page.
  const rest = lists.flat().filter(({ number }) => number !== after);
  const page = rest.sort((a, b) => (a.number > b.number ? -1 : 1)).slice(0, limit);
  return {
    entries: page.map(({ entry }) => JSON.parse(String(entry)) as AttentionEntry),
    next: rest.length > limit ? (page.at(-1)?.number ?? null) : null,
  };
}

/** Parses a cursor of a history: the number of an entry. Returns `undefined` if it is invalid. */
export function decodeEntryPlace(text: string): string | undefined {
  return /^\d{8}$/.exec(decodePageCursor(text) ?? '')?.[0];
}

/** Parses a cursor of the queue. Returns `undefined` if it is invalid. */
export function decodeQueuePlace(text: string): QueuePlace | undefined {
  const [, score, since, id] = /^(\d{1,6})\/(\d{1,15})\/(.+)$/.exec(decodePageCursor(text) ?? '') ?? [];
  if (id === undefined || !parseItemId(id)) return undefined;
  return { score: Number(score), since: Number(since), id };
}

function encodeQueuePlace({ rank, since, id }: Ranked): string {
  return encodePageCursor(`${rank.score}/${Math.max(0, Math.floor(since))}/${id}`);
}

function isAfter(item: Ranked, place: QueuePlace | undefined): boolean {
  if (!place) return true;
  const rank = { score: place.score, components: [] };
  return compareRanked(item, { rank, since: place.since, id: place.id }) > 0;
}

/** Returns all items of the regions with their states. */
async function collect(deps: QueueDeps, regions: readonly string[], caller: Caller) {
  const parts = await Promise.all(
    regions.map(async (region) => {
      const found = await findCandidates(deps, region, caller);
      const states = await readStates(deps.table, found.candidates);
      const items = found.candidates.map((candidate, at) => {
        const stored = states[at];
        return withState(candidate, stored && toStored(stored), deps.now());
      });
      return { ...found, items };
    }),
  );
  const sum = (of: (part: (typeof parts)[number]) => number) => parts.reduce((so, part) => so + of(part), 0);
  return {
    items: parts.flatMap(({ items }) => items),
    complete: parts.every(({ complete }) => complete),
    accounts: sum(({ accounts }) => accounts),
    endpoints: sum(({ endpoints }) => endpoints),
  };
}

/** Returns the stored state of each item of a region. */
async function readStates(table: Table, candidates: readonly Candidate[]): Promise<(Item | undefined)[]> {
  const items = await table.getMany(candidates.flatMap(listStateKeys));
  const byKey = new Map(items.map((item) => [item.sk, item]));
  return candidates.map((candidate) => listStateKeys(candidate).flatMap(({ sk }) => byKey.get(sk) ?? [])[0]);
}

/** The fields of an item that determine where its state and its history are stored. */
type StatePlace = Pick<Candidate, 'id' | 'region' | 'account' | 'subject'>;

/** Returns the key of the state of an item. Earlier versions stored that of an endpoint of one account under the account: its key is the second one. */
function listStateKeys({ id, region, account, subject }: StatePlace): Key[] {
  const former = subject.type === 'endpoint' && account !== null ? [`${account}~endpoint~${subject.id}`] : [];
  return [id.slice(region.length + 1), ...former].map((key) => keys.attention(region, key));
}

const toStored = (item: Item): StoredState => JSON.parse(String(item.state)) as StoredState;

function withState(candidate: Candidate, stored: StoredState | undefined, now: number) {
  return {
    ...candidate,
    ...findState(stored, candidate.material, now),
    assignee: stored?.assignee ?? null,
    note: stored?.note ?? null,
    changedAt: stored?.changedAt ?? null,
    changedBy: stored?.changedBy ?? null,
  };
}

function matches(item: Ranked, { kinds, account, subject, assignee, state }: QueueQuery): boolean {
  return (
    (kinds === undefined || kinds.includes(item.kind)) &&
    (account === undefined || item.account === account) &&
    (subject === undefined || `${item.subject.type}/${item.subject.id}` === subject) &&
    (assignee === undefined || item.assignee === assignee) &&
    (state === undefined || item.state === state)
  );
}

function countItems(items: readonly Ranked[], complete: boolean): AttentionCounts {
  const open = items.filter(({ state }) => state === 'open');
  return {
    open: open.length,
    snoozed: items.filter(({ state }) => state === 'snoozed').length,
    acknowledged: items.filter(({ state }) => state === 'acknowledged').length,
    byKind: countKinds(open),
    hiddenByKind: countKinds(items.filter(({ state }) => state !== 'open')),
    complete,
  };
}

function countKinds(items: readonly Ranked[]): AttentionCounts['byKind'] {
  return [...Map.groupBy(items, ({ kind }) => kind)]
    .map(([kind, { length }]) => ({ kind, items: length }))
    .sort((a, b) => b.items - a.items);
}

/** Adds what is read only for the items of a page: the customer's messages, the events that wait, permitted actions. */
async function complement(
  deps: QueueDeps,
  page: readonly Ranked[],
  caller: Caller,
): Promise<AttentionItem[]> {
  const slow = page.filter(({ kind }) => kind === 'endpoint_failing' || kind === 'endpoint_disabled');
  const backlogs = new Map(
    await pLimit(BACKLOGS_AT_ONCE).map(slow.slice(0, MAX_BACKLOGS), async ({ id, region, subject }) => {
      const items = await deps.table.getMany([keys.sink(region, subject.id)]);
      const [sink] = await withHealthOfParts(deps.table, items);
      return [id, sink ? (await readBacklog(deps, toSink(sink))).events : null] as const;
    }),
  );
  const notified = await findNotifiedAccounts(deps, page);
  return pLimit(READS_AT_ONCE).map(page, async ({ material: _, ...item }) => {
    const customer = await readCustomer(deps, item, notified.has(item.account ?? ''));
    const actions = listActions({ ...item, material: _ }, caller.role);
    return {
      ...item,
      impact: { ...item.impact, waitingEvents: backlogs.get(item.id) ?? null },
      customer,
      actions: customer?.enabled ? actions : actions.filter(({ operation }) => operation !== 'sendNote'),
    };
  });
}

/** Returns the ids of the accounts of items about jobs whose notifications are on. Ids are unique across regions. */
async function findNotifiedAccounts(
  { history, table }: QueueDeps,
  page: readonly Ranked[],
): Promise<ReadonlySet<string>> {
  const refs = new Map<string, AccountRef>();
  for (const { region, account, subject } of page) {
    if (history && account !== null && subject.jobNumber !== null) refs.set(account, { region, account });
  }
  const settings = await readSettingsOfAccounts(table, [...refs.values()]);
  return new Set(settings.flatMap(({ enabled, account }) => (enabled ? account : [])));
}

async function readCustomer(
  { history }: QueueDeps,
  { account, region, subject, since }: Pick<AttentionItem, 'account' | 'region' | 'subject' | 'since'>,
  enabled: boolean,
): Promise<AttentionItem['customer']> {
  if (!history || account === null || subject.jobNumber === null) return null;
  const { messages } = await listMessages(history, { region, account }, { job: subject.jobNumber, limit: 5 });
  const last = messages.find(({ state }) => state !== 'suppressed') ?? messages[0];
  const informed = messages.some(
    ({ state, sentAt }) => state === 'sent' && sentAt !== null && sentAt >= since,
  );
  if (!last) return { enabled, informed, lastMessage: null };
  const { id, kind, state, sentAt, createdAt } = last;
  return { enabled, informed, lastMessage: { id, kind, state, at: sentAt ?? createdAt } };
}

/** Returns who acts: the user, or the API key. */
function toActor({ keyId, name, user }: Caller): Actor {
  return { id: keyId, name: user?.name ?? name, user: user !== undefined };
}
