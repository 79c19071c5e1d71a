/** Items of the attention queue about jobs. Pure. */
import type { AccountRef } from '../../storage/schema.ts';
import { readDueTime } from '../../tracking/diff/overdue.ts';
import { sinceListed } from '../../tracking/diff/step.ts';
import { findEntry } from '../../tracking/path.ts';
import { findMarks, type Snapshot, summarize } from '../../tracking/snapshot.ts';
import {
  type Candidate,
  capitalize,
  HOUR_MS,
  jobItem,
  operateAction,
  readAction,
  round,
  toCandidate,
} from './items.ts';
import { formatHours } from './rank.ts';
import { toLevel } from './state.ts';
import type { AttentionKind } from './views.ts';

/** Maximum number of statuses of lines in the description of a job. */
const MAX_STATUSES = 3;

const JOB_KINDS = {
  late: 'job_late',
  needs_attention: 'job_needs_attention',
  stalled: 'job_stalled',
  at_risk: 'job_at_risk',
  due_soon: 'job_due_soon',
} as const satisfies Readonly<Record<string, AttentionKind>>;

/** Facts besides the job on which its item depends. */
export interface JobContext {
  /** Start of the last complete crawl of the account (epoch ms). */
  readonly lastGood: number | null;
  /** The account setting. `null`: off, or the account does not exist. */
  readonly dueSoonHours: number | null;
}

/** Returns the item of a job. `undefined`: it needs no attention. */
export function toJobItem(
  ref: AccountRef,
  snapshot: Snapshot,
  { lastGood, dueSoonHours }: JobContext,
  now: number,
): Candidate | undefined {
  const { jobNumber, departure, stay } = snapshot;
  if (snapshot.ended !== null || snapshot.settling !== null) return undefined;
  const due = readDueTime(snapshot);
  const marks = findMarks(snapshot);
  // Rule 15: an observation after the due time shows that it was not dispatched.
  const isLate = due !== undefined && sinceListed(snapshot, { lastGoodCrawlStartedAt: lastGood }) > due.at;
  const codes = (Object.keys(JOB_KINDS) as (keyof typeof JOB_KINDS)[]).filter((code) => {
    if (code === 'late') return isLate;
    const isDue = !isLate && due !== undefined && due.at > now;
    if (code === 'due_soon') return isDue && marks?.dueSoon;
    if (code === 'at_risk') return isDue && marks != null && marks.atRiskSince !== null;
    return code === 'stalled' ? marks?.stalled : marks?.needsAttention;
  });
  const [code, ...also] = codes;
  if (code === undefined) return undefined;
  const job = summarize(snapshot);
  const lateHours = isLate ? round((now - due.at) / HOUR_MS) : null;
  const statusSince = stay?.since ?? null;
  const since = {
    late: due?.at,
    needs_attention: statusSince,
    stalled: statusSince,
    at_risk: marks?.atRiskSince,
    due_soon: due && dueSoonHours !== null ? Math.min(now, due.at - dueSoonHours * HOUR_MS) : statusSince,
  }[code];
  const inStatus = describeStatus(snapshot, job.status, now);
  const mandatory = job.mustDate ? '; the due date is mandatory' : '';
  const dueIn = `due in ${formatHours(((due?.at ?? now) - now) / HOUR_MS)}${mandatory}. ${inStatus}`;
  const summary = {
    late: `${formatHours((now - (due?.at ?? now)) / HOUR_MS)} late${mandatory}. ${inStatus}`,
    needs_attention: `${inStatus}. This status needs attention`,
    stalled: `${inStatus}, longer than the limit set for the account`,
    at_risk: `${dueIn}. More than a quarter of the comparable jobs needed longer`,
    due_soon: dueIn,
  }[code];
  const id = jobItem(ref, jobNumber);
  const path = `/v1/accounts/${ref.account}/jobs/${jobNumber}`;
  return toCandidate(
    {
      kind: JOB_KINDS[code],
      id,
      name: `Job ${jobNumber}`,
      orderNumber: job.orderNumber,
      jobNumber,
      since: since ?? now,
      cause: {
        ...{
          code,
          also,
          summary: `${capitalize(summary)}.${describeLines(snapshot, job.status)}${departure === null ? '' : ' The job is missing from the list.'}`,
        },
        ...{ status: job.status, statusSince, dueAt: due?.at ?? null, lateHours, mustDate: job.mustDate },
      },
      impact: { jobs: 1 },
      material: {
        key: JSON.stringify([codes, job.status, job.dateDue]),
        level: toLevel((lateHours ?? 0) / 24),
      },
      actions: [
        readAction('getJob', path),
        operateAction('sendNote', `${path}/messages`),
        readAction('listJobMessages', `${path}/messages`),
      ],
    },
    now,
  );
}

/** Describes the status of a job and the time since the job entered it. */
function describeStatus(snapshot: Snapshot, status: string | null, now: number): string {
  if (status === null) return 'Without a status';
  const { stay } = snapshot;
  const hours = stay ? (now - stay.since) / HOUR_MS : 0;
  // If the beginning of the stay was not observed, the stay is longer than the time since the first observation.
  const isWhole = findEntry(snapshot, status) !== undefined;
  if (!isWhole && hours * 60 < 1) return `In the status “${status}”`;
  return `In the status “${status}” for ${isWhole ? '' : 'at least '}${formatHours(hours)}`;
}

/** Describes the statuses of the lines of a job as a sentence. Empty if all of them have the status of the job. */
function describeLines({ detail }: Snapshot, status: string | null): string {
  // The lines of a detail with another status may be outdated.
  const lines = detail?.status === status ? detail.lines : [];
  if (lines.every((line) => line.status === status)) return '';
  const weigh = ([name, { length }]: readonly [string | null, readonly object[]]) =>
    name === status ? Number.POSITIVE_INFINITY : length;
  const groups = [...Map.groupBy(lines, (line) => line.status)].sort((a, b) => weigh(b) - weigh(a));
  const texts = groups.map(
    ([name, { length }]) => `${length} ${name === null ? 'without a status' : `in “${name}”`}`,
  );
  const rest = groups.slice(MAX_STATUSES).flatMap(([, its]) => its).length;
  if (rest > 0) texts.splice(MAX_STATUSES, texts.length, `${rest} in other statuses`);
  return ` Lines: ${texts.join(', ')}.`;
}
