/**
 * The table of delays in docs/truth.md: how long after a change its event is in the log, measured on the sandbox with a
 * simulated clock. `npm run test:full` measures the whole table, `DELAYS=write` writes it. `npm test` measures a sample, which
 * must not exceed the worst case in the table.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { expect, inject, test } from 'vitest';
import { createPayment } from '../../sandbox/world/payments.ts';
import { withEventDefaults } from '../../shared/accounts/event-settings.ts';
import type { EventType } from '../../shared/events/catalogue.ts';
import { keys } from '../../shared/storage/schema.ts';
import { createRig, type Rig } from '../support/tracker.ts';

const INTERVALS = [60, 300];
const COMPLETE = inject('full') || process.env.DELAYS === 'write';
const SAMPLES = COMPLETE ? 20 : 4;
/** Number of jobs that may disappear in a day without a quarantine. */
const UNQUARANTINED = Math.min(10, SAMPLES);
const MINUTE = 60;
const HOUR = 3_600;
const DAY = 86_400;
const T1 = { trackingNumber: 'T1', trackingLink: 'https://carrier.example/T1' };
/** Settings of the configured events. */
const EVENTS = { dueSoonHours: 24, stalledByStatus: { 'On hold': 1 }, attentionStatuses: ['On hold'] };
const DOCUMENT = new URL('../../docs/truth.md', import.meta.url);
const TABLE = /(?<=<!-- delays -->\n\n)[\s\S]*?(?=<!-- \/delays -->)/;

interface Row {
  readonly event: EventType;
  readonly case: string;
  /** Seconds from each change to the poll that emits its event. */
  readonly measure: (rig: Rig, event: EventType) => Promise<number[]>;
}

/** Changes one job after the other, each at another point of the poll interval and of the quarter hour. */
function oneByOne(
  act: (rig: Rig, job: number) => unknown,
  prepare: (rig: Rig, jobs: readonly number[]) => unknown = () => {},
  samples = SAMPLES,
): Row['measure'] {
  return async (rig, event) => {
    const jobs = await baseline(rig, samples);
    await prepare(rig, jobs);
    await rig.poll();
    const delays: number[] = [];
    for (const [n, job] of jobs.entries()) {
      for (let polls = 0; polls < n; polls += 1) await rig.poll();
      await rig.fresh();
      const offset = ((n + 0.5) / samples) * getInterval(rig);
      rig.pass(offset);
      const subject = act(rig, job) ?? job;
      const changedAt = rig.now();
      rig.pass(-offset);
      delays.push(...(await emitted(rig, event, new Map([[Number(subject), changedAt]]))));
    }
    return delays;
  };
}

/** Changes many jobs at certain times, and waits for all events. */
function atTimes(
  act: (rig: Rig, job: number) => unknown,
  getSeconds: (n: number) => number,
  prepare: (rig: Rig, jobs: readonly number[]) => unknown = () => {},
): Row['measure'] {
  return async (rig, event) => {
    const jobs = await baseline(rig, COMPLETE ? 2 * SAMPLES : SAMPLES);
    await prepare(rig, jobs);
    const start = rig.now();
    const open = new Map<number, number>();
    const planned = jobs.map((job, n) => ({ job, at: start + getSeconds(n) * 1000 }));
    const delays: number[] = [];
    while (planned.length > 0) {
      for (let next = planned[0]; next && next.at <= rig.now(); next = planned[0]) {
        act(rig, next.job);
        open.set(next.job, rig.now());
        planned.shift();
      }
      if (planned.length > 0) delays.push(...(await poll(rig, event, open)));
    }
    return [...delays, ...(await emitted(rig, event, open))];
  };
}

async function baseline(rig: Rig, count: number): Promise<readonly number[]> {
  const dateDue = rig.now() + 60 * DAY * 1000;
  rig.upstream.createJob({ dateDue });
  const jobs = Array.from({ length: count }, () => rig.upstream.createJob({ status: 'Scheduled', dateDue }));
  await rig.poll();
  return jobs;
}

const getInterval = (rig: Rig) =>
  (rig.ref as Rig['ref'] & { pollIntervalSeconds: number }).pollIntervalSeconds;

/** Polls once; returns the delays of the events that came, and removes them from `open`. */
async function poll(rig: Rig, event: EventType, open: Map<number, number>): Promise<number[]> {
  await rig.poll();
  const delays: number[] = [];
  for (const { type, subject, data } of await rig.fresh()) {
    const { id } = (data.transaction ?? {}) as { id?: number };
    const job = id ?? Number(subject?.replace(/^.*\//, ''));
    const changedAt = open.get(job);
    if (type !== event || changedAt === undefined) continue;
    delays.push((rig.now() - changedAt) / 1000);
    open.delete(job);
  }
  return delays;
}

async function emitted(rig: Rig, event: EventType, open: Map<number, number>): Promise<number[]> {
  const delays: number[] = [];
  const giveUpAt = rig.now() + 3 * DAY * 1000;
  while (open.size > 0) {
    delays.push(...(await poll(rig, event, open)));
    if (rig.now() > giveUpAt) throw new Error(`${event} was not emitted.`);
  }
  return delays;
}

/** Polls for a day, in which the detail of each job is read. */
async function readDetails(rig: Rig): Promise<void> {
  for (let hour = 0; hour < 26; hour += 1) {
    rig.pass(HOUR);
    await rig.poll();
  }
}

/** Closes the jobs; then their details are fetched once a day. */
async function closeLongAgo(rig: Rig, jobs: readonly number[]): Promise<void> {
  for (const job of jobs) rig.upstream.close(job);
  for (const seconds of [0, 300, 1_800, 7_200, 21_600]) {
    rig.pass(seconds);
    await rig.poll();
  }
}

async function readPayments(rig: Rig): Promise<void> {
  const events = JSON.stringify(withEventDefaults({ payments: true }));
  await rig.table.write({ update: keys.account(rig.ref), set: { events } });
}

/** Jobs whose due time passes a number of seconds after the time that the delays are measured from. */
const atDueTime =
  (leadSeconds: number): Row['measure'] =>
  async (rig, event) => {
    const due = new Map<number, number>();
    for (let n = 0; n < SAMPLES; n += 1) {
      // Local times of Auckland, 13 hours ahead of UTC.
      const at =
        Date.parse('2026-03-02T12:00:00Z') + Math.round(((n + 0.5) / SAMPLES) * getInterval(rig)) * 1000;
      const dateDue = new Date(at + (13 * HOUR + leadSeconds) * 1000).toISOString().slice(0, 19);
      const location = { name: 'Auckland', timezone: 'Pacific/Auckland' };
      due.set(rig.upstream.createJob({ dateDue, location }), at);
    }
    await rig.poll();
    return emitted(rig, event, due);
  };

/** Jobs that are stalled one working day after their status changed. */
const stalled: Row['measure'] = async (rig, event) => {
  const jobs = await baseline(rig, SAMPLES);
  await readDetails(rig);
  const since = new Map<number, number>();
  for (const job of jobs) {
    rig.upstream.setStatus(job, 'On hold');
    // Each at another point of the poll interval.
    rig.pass(getInterval(rig) / SAMPLES);
    await rig.poll();
    since.set(job, rig.now() + DAY * 1000);
  }
  rig.pass(DAY - (SAMPLES + 3) * getInterval(rig));
  return emitted(rig, event, since);
};

const ROWS: readonly Row[] = [
  { event: 'job.created', case: '', measure: oneByOne(({ upstream }) => upstream.createJob()) },
  {
    event: 'job.created',
    case: 'created and closed between two polls',
    measure: oneByOne(({ upstream }) => {
      const job = upstream.createJob();
      upstream.close(job);
      return job;
    }),
  },
  {
    event: 'job.status_changed',
    case: '',
    measure: oneByOne(({ upstream }, job) => upstream.setStatus(job, 'In production')),
  },
  {
    event: 'job.line_status_changed',
    case: 'without another change of the job',
    measure: atTimes(
      ({ upstream }, job) => upstream.setLineStatus(job, 0, 'In production'),
      (n) => DAY + n * (0.8 / SAMPLES) * DAY,
    ),
  },
  {
    event: 'job.updated',
    case: '',
    measure: oneByOne(({ upstream }, job) => upstream.edit(job, { description: 'Changed' })),
  },
  {
    event: 'job.updated',
    case: 'comments and lines, without another change of the job',
    measure: atTimes(
      ({ upstream }, job) => upstream.edit(job, { comments: 'Changed' }),
      (n) => DAY + n * (0.8 / SAMPLES) * DAY,
    ),
  },
  {
    event: 'job.due_date_changed',
    case: '',
    measure: oneByOne(({ upstream }, job) => upstream.edit(job, { dateDue: '2026-06-01T10:00:00' })),
  },
  { event: 'job.locked', case: '', measure: oneByOne(({ upstream }, job) => upstream.lock(job)) },
  {
    event: 'job.unlocked',
    case: '',
    measure: oneByOne(
      ({ upstream }, job) => upstream.unlock(job),
      ({ upstream }, jobs) => jobs.map((job) => upstream.lock(job)),
    ),
  },
  {
    event: 'job.overdue',
    case: 'even if the job is known only from the baseline',
    measure: atDueTime(0),
  },
  {
    event: 'job.due_soon',
    case: 'even if the job is known only from the baseline',
    measure: atDueTime(24 * HOUR),
  },
  { event: 'job.stalled', case: '', measure: stalled },
  {
    event: 'job.needs_attention',
    case: '',
    measure: oneByOne(({ upstream }, job) => upstream.setStatus(job, 'On hold')),
  },
  {
    event: 'job.production_started',
    case: 'with a change of the status',
    measure: oneByOne(({ upstream }, job) => upstream.setStatus(job, 'In production'), readDetails),
  },
  {
    event: 'job.production_started',
    case: 'without another change of the job',
    measure: atTimes(
      ({ upstream }, job) => upstream.edit(job, { isCancelable: false }),
      (n) => DAY + n * (0.8 / SAMPLES) * DAY,
    ),
  },
  {
    event: 'job.dispatched',
    case: '',
    measure: oneByOne(({ upstream }, job) => upstream.dispatch(job)),
  },
  {
    event: 'job.dispatched',
    case: 'after the job left the list, among the newest 100',
    measure: oneByOne(({ upstream }, job) => upstream.dispatch(job), closeLongAgo),
  },
  {
    event: 'job.dispatch_revoked',
    case: '',
    measure: oneByOne(
      ({ upstream }, job) => upstream.clearDateOut(job),
      ({ upstream }, jobs) => jobs.map((job) => upstream.dispatch(job)),
    ),
  },
  {
    event: 'job.tracking_added',
    case: '',
    measure: oneByOne(({ upstream }, job) => upstream.dispatch(job, { tracking: [T1] })),
  },
  {
    event: 'job.tracking_added',
    case: 'after the job left the list, among the newest 100',
    measure: oneByOne(({ upstream }, job) => upstream.addTracking(job, T1), closeLongAgo),
  },
  {
    event: 'job.tracking_removed',
    case: '',
    measure: oneByOne(
      ({ upstream }, job) => upstream.removeTracking(job),
      ({ upstream }, jobs) => jobs.map((job) => upstream.dispatch(job, { tracking: [T1] })),
    ),
  },
  { event: 'job.closed', case: '', measure: oneByOne(({ upstream }, job) => upstream.close(job)) },
  {
    event: 'job.cancelled',
    case: 'without quarantine',
    measure: oneByOne(({ upstream }, job) => upstream.cancel(job), undefined, UNQUARANTINED),
  },
  {
    event: 'job.unavailable',
    case: 'without quarantine',
    measure: oneByOne(({ upstream }, job) => upstream.remove(job), undefined, UNQUARANTINED),
  },
  {
    event: 'job.reopened',
    case: '',
    measure: oneByOne(({ upstream }, job) => upstream.reopen(job), closeLongAgo),
  },
  {
    event: 'job.invoiced',
    case: 'of a listed job without another change',
    measure: atTimes(
      ({ upstream }, job) => upstream.invoice(job),
      (n) => DAY + n * (0.8 / SAMPLES) * DAY,
    ),
  },
  {
    event: 'job.invoiced',
    case: 'in the first day and a half after the job left the list',
    measure: atTimes(
      ({ upstream }, job) => upstream.invoice(job),
      (n) => (n + 0.5) * (0.75 / SAMPLES) * DAY,
      ({ upstream }, jobs) => jobs.map((job) => upstream.close(job)),
    ),
  },
  {
    event: 'order_group.partially_dispatched',
    case: '',
    measure: oneByOne(
      ({ upstream }, job) => upstream.dispatch(job),
      ({ upstream }, jobs) => {
        for (const job of jobs) {
          upstream.edit(job, { orderGroup: String(job) });
          upstream.createJob({ orderGroup: String(job), dateDue: null });
        }
      },
    ),
  },
  {
    event: 'order_group.dispatched',
    case: '',
    measure: oneByOne(
      ({ upstream }, job) => upstream.dispatch(job),
      ({ upstream }, jobs) => jobs.map((job) => upstream.edit(job, { orderGroup: String(job) })),
    ),
  },
  {
    event: 'account.payment_completed',
    case: 'and `account.payment_failed`',
    measure: oneByOne(
      ({ upstream }) => createPayment(upstream, { transactionStatus: 'Completed' }),
      readPayments,
    ),
  },
];

test.runIf(COMPLETE)(
  'the delays in docs/truth.md are those measured',
  async () => {
    const lines = [
      `| event | ${INTERVALS.map((seconds) => `at N = ${format(seconds)}: typical | worst`).join(' | ')} |`,
      `|---|${'---|'.repeat(2 * INTERVALS.length)}`,
    ];
    for (const row of ROWS) {
      const cells: string[] = [];
      for (const pollIntervalSeconds of INTERVALS) {
        const delays = await measureRow(row, pollIntervalSeconds);
        cells.push(format(delays[Math.floor(delays.length / 2)] ?? 0), format(delays.at(-1) ?? 0));
      }
      lines.push(`${toName(row)} ${cells.join(' | ')} |`);
    }
    const measured = `${lines.join('\n')}\n\n`;
    const document = readFileSync(DOCUMENT, 'utf8');
    if (process.env.DELAYS === 'write') writeFileSync(DOCUMENT, document.replace(TABLE, measured));
    else expect(TABLE.exec(document)?.[0]).toBe(measured);
  },
  240_000,
);

test.skipIf(COMPLETE).each(ROWS)('$event $case: no event is later than in docs/truth.md', async (row) => {
  const [, documented = ''] = readFileSync(DOCUMENT, 'utf8').split(toName(row));
  const worst = documented.split('\n')[0]?.split('|').at(-2)?.trim();
  const delays = await measureRow(row, 300);
  expect(delays.at(-1)).toBeLessThanOrEqual(parse(worst ?? ''));
});

const toName = ({ event, case: when }: Row) => `| \`${event}\`${when && `, ${when}`} |`;

/** Returns the delays in seconds, ascending. */
async function measureRow({ event, measure }: Row, pollIntervalSeconds: number): Promise<number[]> {
  const rig = await createRig({ pollIntervalSeconds, events: EVENTS });
  const delays = await measure(rig, event);
  expect(delays.length).toBeGreaterThanOrEqual(UNQUARANTINED);
  return delays.sort((a, b) => a - b);
}

/** Formats a duration, rounded up. */
function format(seconds: number): string {
  if (seconds < 2 * MINUTE) return `${Math.ceil(seconds)} s`;
  if (seconds < 2 * HOUR) return `${Math.ceil(seconds / MINUTE)} min`;
  return `${Math.ceil(seconds / HOUR)} h`;
}

/** Reads a formatted duration, in seconds. */
function parse(text: string): number {
  const [number, unit] = text.split(' ');
  const seconds = { s: 1, min: MINUTE, h: HOUR }[unit ?? ''];
  if (!seconds) throw new Error(`"${text}" is no duration.`);
  return Number(number) * seconds;
}
