/**
 * A random history of a sandbox account, with faults and with changes between any two answers, and then a reading of the
 * log against what really was: every change happened in the window that its event names, and nothing is missing.
 */
import { expect, test } from 'vitest';
import type { FaultRule } from '../local/sandbox/faults.ts';
import type { ActiveJobDto, JobDto } from '../local/sandbox/views.ts';
import type { JobRecord } from '../local/sandbox/world.ts';
import type { JobEvent } from '../shared/events/event.ts';
import { summarize } from '../shared/tracking/snapshot.ts';
import { createRig, type Rig } from './support/rig.ts';

/** How one job stood in the world from an instant on. */
interface Stand {
  readonly at: number;
  /** Undefined: there was no such job. */
  readonly list: ActiveJobDto | undefined;
  readonly detail: JobDto | undefined;
  readonly where: 'active' | 'closed' | 'cancelled' | 'hidden' | 'nowhere';
}

const NOWHERE: Stand = { at: 0, list: undefined, detail: undefined, where: 'nowhere' };

/** Whole numbers from a seed. */
function createRandom(seed: number): {
  below(n: number): number;
  chance(p: number): boolean;
  pick<T>(of: readonly T[]): T;
} {
  let state = seed;
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  const below = (n: number): number => Math.floor(next() * n);
  return {
    below,
    chance: (p) => next() < p,
    pick: (of) => of[below(of.length)] as (typeof of)[number],
  };
}

/** A world that changes at random, and remembers how every job stood at any time. */
function createHistory(rig: Rig, random: ReturnType<typeof createRandom>) {
  const { upstream } = rig;
  const stands = new Map<number, Stand[]>();
  const jobs: number[] = [];
  const hidden = new Map<number, number>();
  let count = 0;

  function note(jobNumber: number): void {
    const job = upstream.job(jobNumber);
    const active = upstream.activeJobNumbers().includes(jobNumber);
    const stand: Stand = {
      at: rig.now(),
      list: upstream.jobListEntry(jobNumber),
      detail: upstream.jobDetail(jobNumber),
      where: !job
        ? 'nowhere'
        : active
          ? 'active'
          : job.hidden
            ? 'hidden'
            : job.phase === 'cancelled'
              ? 'cancelled'
              : 'closed',
    };
    const before = stands.get(jobNumber) ?? [NOWHERE];
    before.push(structuredClone(stand));
    stands.set(jobNumber, before);
  }

  function create(): void {
    const jobNumber = upstream.createJob({
      status: random.pick(STATUSES),
      orderNumber: random.chance(0.2) ? null : `PO-${random.below(50)}`,
      dateDue: random.chance(0.2) ? null : rig.now() + (random.below(72) - 24) * 3_600_000,
    });
    jobs.push(jobNumber);
    note(jobNumber);
  }

  /** One change, which takes effect between two milliseconds. */
  function change(): void {
    rig.pass(0.001);
    count += 1;
    if (random.chance(0.12)) create();
    else {
      const jobNumber = random.chance(0.5) ? random.pick(jobs) : random.pick(jobs.slice(-20));
      const job = upstream.job(jobNumber);
      if (job && !hidden.has(jobNumber)) {
        const [change, possible] = random.pick(CHANGES);
        if (possible && !possible(job)) return;
        change(jobNumber);
        note(jobNumber);
      }
    }
    rig.pass(0.001);
  }

  const link = () => `https://parcels.example/${random.below(4)}`;
  const parcel = () => ({
    trackingNumber: `T${random.below(8)}`,
    trackingLink: random.chance(0.5) ? null : link(),
  });
  /** What can happen to a job, and when: a dispatched job can't be cancelled any more, nor the other way round. */
  const CHANGES: readonly (readonly [
    change: (jobNumber: number) => void,
    possible?: (job: Readonly<JobRecord>) => boolean,
  ])[] = [
    [(n) => upstream.setStatus(n, random.pick(STATUSES))],
    [(n) => upstream.setStatus(n, random.pick(STATUSES))],
    [(n) => upstream.setStatus(n, { master: random.pick(STATUSES) })],
    [(n) => upstream.setStatus(n, { detail: random.pick(STATUSES) })],
    [(n) => upstream.setStatus(n, random.chance(0.3) ? null : `Stage ${random.below(1000)}`)],
    [(n) => upstream.edit(n, { description: random.pick([null, 'A', 'B', 'C <b>&"']) })],
    [
      (n) =>
        upstream.edit(n, {
          orderNumber: `PO-${random.below(5)}`,
          orderGroup: random.pick([null, 'G1', 'G2']),
        }),
    ],
    [(n) => upstream.edit(n, { dateDue: rig.now() + (random.below(72) - 24) * 3_600_000 })],
    [(n) => upstream.edit(n, { mustDate: random.chance(0.5) })],
    [
      (n) => (random.chance(0.5) ? upstream.lock(n) : upstream.unlock(n)),
      ({ phase }) => phase !== 'cancelled',
    ],
    [
      (n) => upstream.dispatch(n, random.chance(0.5) ? { tracking: [parcel(), parcel()] } : {}),
      ({ phase }) => phase !== 'cancelled',
    ],
    [(n) => upstream.dispatch(n, { status: 'Shipped' }), ({ phase }) => phase !== 'cancelled'],
    [(n) => upstream.correctDateOut(n, rig.now() - 60_000), ({ dateOut }) => dateOut !== null],
    [(n) => upstream.clearDateOut(n)],
    [(n) => upstream.addTracking(n, parcel())],
    [(n) => upstream.addTracking(n, { trackingLink: link() })],
    [
      (n) =>
        upstream.setTracking(
          n,
          (upstream.job(n)?.tracking ?? []).map((entry) => ({
            ...entry,
            trackingLink: entry.trackingLink ?? link(),
          })),
        ),
    ],
    [(n) => upstream.removeTracking(n)],
    [(n) => upstream.invoice(n)],
    [(n) => upstream.setLineStatus(n, 0, random.pick(STATUSES))],
    [(n) => upstream.close(n), ({ phase }) => phase === 'open'],
    [(n) => upstream.close(n, { status: 'Archived' }), ({ phase }) => phase === 'open'],
    [(n) => upstream.cancel(n), ({ dateOut, permissions }) => dateOut === null && !permissions],
    [(n) => upstream.reopen(n, random.chance(0.5) ? { status: random.pick(STATUSES) } : {})],
    [(n) => upstream.reopen(n)],
    [(n) => upstream.remove(n), () => random.chance(0.3)],
    [
      (n) => {
        upstream.hide(n);
        hidden.set(n, rig.now());
      },
      ({ dateOut, phase }) => dateOut === null && phase === 'open',
    ],
  ];

  return {
    create,
    change,
    /** Jobs come back into the lists after some minutes. */
    unhide(afterMs: number): void {
      for (const [jobNumber, at] of hidden) {
        if (rig.now() - at < afterMs) continue;
        rig.pass(0.001);
        upstream.unhide(jobNumber);
        hidden.delete(jobNumber);
        note(jobNumber);
        rig.pass(0.001);
      }
    },
    get changes() {
      return count;
    },
    stands: (jobNumber: number): readonly Stand[] => stands.get(jobNumber) ?? [NOWHERE],
    jobs: jobs as readonly number[],
  };
}

const STATUSES = ['Awaiting artwork', 'Scheduled', 'In production', 'Packing', 'Shipped'];

const FAULTS: readonly FaultRule['fault'][] = [
  { kind: 'status', status: 500 },
  { kind: 'status', status: 503, body: 'html' },
  { kind: 'status', status: 429, retryAfter: 1 },
  { kind: 'status', status: 403 },
  { kind: 'status', status: 401 },
  { kind: 'cutBody' },
  { kind: 'reset' },
  { kind: 'truncatedJson' },
  { kind: 'itemsNull' },
  { kind: 'wrongPageEcho' },
  { kind: 'raw', body: '{"unexpected":true}' },
  { kind: 'revokeTokens' },
];

/** The stands that overlap a window; an open beginning is the beginning of time. */
function during(stands: readonly Stand[], since: number | null, at: number): readonly Stand[] {
  return stands.filter(
    (stand, n) => stand.at <= at && (stands[n + 1]?.at ?? Number.POSITIVE_INFINITY) > (since ?? -1),
  );
}

/** Whether in a window something held first, and something else then. */
function went(
  window: readonly Stand[],
  from: (stand: Stand) => boolean,
  to: (stand: Stand) => boolean,
): boolean {
  const first = window.findIndex(from);
  return first >= 0 && window.slice(first).some(to);
}

type Parcel = { number: string | null; link: string | null };
type Data = Record<string, never> & {
  job: { jobNumber: number };
  observed: { at: string; since: string | null; view: string };
  changes: Record<string, { from: unknown; to: unknown }>;
};

/** Why an event is not borne out by the world, or undefined. */
function untruth(event: JobEvent, all: readonly Stand[]): string | undefined {
  const data = event.data as unknown as Data;
  const { observed, changes } = data;
  const since = observed.since === null ? null : Date.parse(observed.since);
  const at = Date.parse(observed.at);
  if (since !== null && since > at) return 'since is after at';
  const window = during(all, since, at);
  const view = (stand: Stand): Record<string, unknown> | undefined =>
    (observed.view === 'detail' ? stand.detail : stand.list) as never;
  const value = (stand: Stand, field: string): unknown => {
    const shown = view(stand);
    if (!shown) return undefined;
    if (field === 'status') return shown[observed.view === 'detail' ? 'jobStatus' : 'masterJobStatus'];
    if (field === 'canEdit') return (shown.permissions as { canEdit: boolean }).canEdit;
    return shown[field] ?? null;
  };
  const parcels = (stand: Stand): Parcel[] =>
    (stand.list?.tracking ?? []).map(({ trackingNumber, trackingLink }) => ({
      number: trackingNumber,
      link: trackingLink,
    }));
  const has = (stand: Stand, parcel: Parcel) =>
    parcels(stand).some(
      (one) => one.number === parcel.number && (one.number !== null || one.link === parcel.link),
    );
  const shows = (stand: Stand, parcel: Parcel) =>
    parcels(stand).some((one) => one.number === parcel.number && one.link === parcel.link);
  const list = (field: string) => (data as Record<string, unknown>)[field] as never;
  const exists = (stand: Stand) => stand.detail !== undefined;

  for (const [field, { from, to }] of Object.entries(changes)) {
    if (
      !went(
        window,
        (stand) => (exists(stand) ? value(stand, field) === from : from === null),
        (stand) => value(stand, field) === to,
      )
    ) {
      return `${field} did not go from ${from} to ${to}`;
    }
  }
  switch (event.type) {
    case 'job.created':
      return went(window, (stand) => !exists(stand), exists) ? undefined : 'it was not created then';
    case 'job.closed':
      return went(
        window,
        ({ where }) => where !== 'closed',
        ({ where }) => where === 'closed',
      )
        ? undefined
        : 'it was not closed then';
    case 'job.cancelled':
      return went(
        window,
        ({ where }) => where !== 'cancelled',
        ({ where }) => where === 'cancelled',
      )
        ? undefined
        : 'it was not cancelled then';
    case 'job.unavailable':
      return went(window, exists, (stand) => !exists(stand)) ? undefined : 'it was not removed then';
    case 'job.reopened':
      return went(
        window,
        ({ where }) => where !== 'active',
        ({ where }) => where === 'active',
      )
        ? undefined
        : 'it did not come back then';
    case 'job.overdue': {
      const dueAt = Date.parse(list('dueAt'));
      return window.some(
        (stand, n) =>
          stand.list?.dateOut === null &&
          dueInstant(stand) === dueAt &&
          (window[n + 1]?.at ?? at) >= dueAt &&
          dueAt <= at,
      )
        ? undefined
        : 'it was not overdue then';
    }
    case 'job.tracking_added':
      return (list('tracking') as Parcel[]).every((parcel) =>
        went(
          window,
          (stand) => !has(stand, parcel),
          (stand) => shows(stand, parcel),
        ),
      )
        ? undefined
        : 'tracking was not added then';
    case 'job.tracking_removed':
      return (list('tracking') as Parcel[]).every((parcel) =>
        went(
          window,
          (stand) => has(stand, parcel),
          (stand) => !has(stand, parcel),
        ),
      )
        ? undefined
        : 'tracking was not removed then';
    case 'job.tracking_updated':
      return (list('tracking') as { from: Parcel; to: Parcel }[]).every(
        ({ from, to }) =>
          went(
            window,
            (stand) => !shows(stand, to),
            (stand) => shows(stand, to),
          ) && from !== to,
      )
        ? undefined
        : 'tracking was not updated then';
    case 'job.line_status_changed':
      return (list('lines') as { jobLineId: number; from: string; to: string }[]).every(
        ({ jobLineId, from, to }) => {
          const status = (stand: Stand) =>
            stand.detail?.lines.find((line) => line.jobLineId === jobLineId)?.jobLineStatus;
          return went(
            window,
            (stand) => status(stand) === from,
            (stand) => status(stand) === to,
          );
        },
      )
        ? undefined
        : 'the line did not move then';
    default:
      return undefined;
  }
}

function dueInstant(stand: Stand): number {
  const text = stand.list?.dateDue;
  if (!text) return Number.NaN;
  return Date.parse(text) + (text.includes('T00:00:00') ? 86_400_000 : 0);
}

const POLLS = Number(process.env.HISTORY_POLLS ?? 120);
const SEEDS = process.env.HISTORY_SEEDS?.split(',').map(Number) ?? [1, 2, 3];
/** After the last change and fault: confirmation takes 15 minutes, and a failing look waits as long at most. */
const QUIET_POLLS = 60;
/** Then nine days in which everything settles, a poll each six hours. */
const SETTLING_POLLS = 36;

test.each(SEEDS)(
  'a random history with faults: every event is borne out by the world, none is said twice, none is missing (rules 1–8, 13, 14; seed %i)',
  async (seed) => {
    const random = createRandom(seed);
    const rig = await createRig({ leavesListOnDispatch: seed % 3 === 0 });
    const history = createHistory(rig, random);
    for (let n = 0; n < 130; n += 1) history.create();
    let changing = true;
    rig.sandbox.onRequest = () => {
      rig.pass(0.001);
      if (changing && random.chance(0.25)) history.change();
    };
    while ((await rig.status()).lastGoodCrawlStartedAt === null) await rig.poll();
    // What the log starts from: the jobs as the baseline stored them.
    const firstNew = history.jobs.length + (history.jobs[0] ?? 0);
    const fold = new Map(
      (await rig.snapshots()).map((snapshot) => [snapshot.jobNumber, summaryOf(snapshot)]),
    );
    const events: JobEvent[] = [];
    const problems: string[] = [];

    for (let n = 0; n < POLLS + QUIET_POLLS + SETTLING_POLLS; n += 1) {
      changing = n < POLLS;
      rig.sandbox.faults.clear();
      if (changing && random.chance(0.35)) {
        const operation = random.pick([
          'activeJobs',
          'activeJobs',
          'job',
          'job',
          'account',
          'token',
          undefined,
        ] as const);
        rig.fault({
          match: {
            ...(operation && { operation }),
            nth: 1 + random.below(5),
            times: 1 + random.below(random.chance(0.3) ? 40 : 4),
          },
          fault: random.pick(FAULTS),
        });
      }
      if (changing) for (let times = random.below(6); times > 0; times -= 1) history.change();
      history.unhide(changing ? 240_000 : 0);
      await rig.poll();
      if (n >= POLLS + QUIET_POLLS) rig.pass(6 * 3600);
      else if (random.chance(0.05)) rig.pass(random.below(3600));
      for (const event of await rig.fresh()) {
        events.push(event);
        const jobNumber = event.subject ? Number(event.subject.slice(5)) : undefined;
        if (jobNumber === undefined) continue;
        const problem = untruth(event, history.stands(jobNumber));
        if (problem && process.env.DEBUG)
          console.log(
            events.filter((e) => e.subject === event.subject).map((e) => [e.type, e.data.observed]),
            history
              .stands(jobNumber)
              .map((s) => [
                new Date(s.at).toISOString(),
                s.where,
                s.detail?.dateOut,
                s.list?.masterJobStatus,
              ]),
          );
        if (problem)
          problems.push(`poll ${n}: ${event.type} ${jobNumber}: ${problem} ${JSON.stringify(event.data)}`);
      }
    }

    expect(problems.slice(0, 5), `seed ${seed}`).toEqual([]);
    expect(events.map(({ sequence }) => Number(sequence))).toEqual(events.map((_, n) => n + 1));

    // Dispatched and revoked take turns, as do endings and returns.
    const said = new Map<number, string[]>();
    const ended = new Map<number, string>();
    for (const { type, subject, data } of events) {
      if (!subject) continue;
      const jobNumber = Number(subject.slice(5));
      said.set(jobNumber, [...(said.get(jobNumber) ?? []), type]);
      fold.set(jobNumber, JSON.stringify(data.job));
      if (/closed|cancelled|unavailable/.test(type)) ended.set(jobNumber, type);
      if (type === 'job.reopened') ended.delete(jobNumber);
    }
    const turns = [...said].flatMap(([jobNumber, types]) => [
      ...outOfTurn(jobNumber, types, ['job.dispatched'], ['job.dispatch_revoked']),
      ...outOfTurn(jobNumber, types, ['job.closed', 'job.cancelled', 'job.unavailable'], ['job.reopened']),
      ...(types.lastIndexOf('job.created') > 0 ? [`${jobNumber}: created after ${types[0]}`] : []),
    ]);
    expect(turns, `seed ${seed}`).toEqual([]);

    // What the log adds up to is what the world shows.
    const active = rig.upstream.activeJobNumbers();
    // Jobs that were hidden at the baseline are taken over without a word.
    for (const snapshot of await rig.snapshots()) {
      const { jobNumber } = snapshot;
      if (!fold.has(jobNumber) && !said.has(jobNumber) && jobNumber < firstNew)
        fold.set(jobNumber, summaryOf(snapshot));
    }
    const different = active.filter((jobNumber) => {
      const entry = rig.upstream.jobListEntry(jobNumber);
      return ended.has(jobNumber) || fold.get(jobNumber) !== (entry && expected(entry, fold.get(jobNumber)));
    });
    expect(
      different.map((jobNumber) => [
        fold.get(jobNumber),
        said.get(jobNumber),
        rig.upstream.jobListEntry(jobNumber),
      ]),
      `seed ${seed}`,
    ).toEqual([]);
    const wrongEnd = [...fold.keys()].filter((jobNumber) => {
      const { where } = history.stands(jobNumber).at(-1) ?? NOWHERE;
      const expectedEnd = {
        active: undefined,
        hidden: undefined,
        closed: 'job.closed',
        cancelled: 'job.cancelled',
        nowhere: 'job.unavailable',
      }[where];
      // Whatever a job became after its end is not looked for in the lists any more.
      return ended.get(jobNumber) !== expectedEnd && (expectedEnd === undefined || !ended.has(jobNumber));
    });
    expect(
      wrongEnd.map((jobNumber) => [jobNumber, history.stands(jobNumber).at(-1)?.where, said.get(jobNumber)]),
      `seed ${seed}`,
    ).toEqual([]);
    // All that is still watched is what is listed.
    const watched = [...(await rig.index())];
    expect(watched.map(([jobNumber]) => jobNumber)).toEqual(active);
    expect(watched.filter(([, { phase }]) => phase !== 'listed')).toEqual([]);
    console.log(seed, events.length, history.changes, history.jobs.length, rig.sandbox.requests.count());
  },
  60_000,
);

/** Which of two kinds of events do not take turns. */
function outOfTurn(
  jobNumber: number,
  types: readonly string[],
  on: readonly string[],
  off: readonly string[],
): string[] {
  const turns = types.filter((type) => on.includes(type) || off.includes(type));
  return turns.some((type, n) => n > 0 && on.includes(type) === on.includes(turns[n - 1] ?? ''))
    ? [`${jobNumber}: ${turns.join(' ')}`]
    : [];
}

function summaryOf(snapshot: Parameters<typeof summarize>[0]): string {
  return JSON.stringify(summarize(snapshot));
}

/** The job as events should show it now. A status or a link that is not said stays what it was, and parcels have no order. */
function expected(entry: ActiveJobDto, said: string | undefined): string {
  const before =
    said === undefined ? undefined : (JSON.parse(said) as { status: string | null; tracking: Parcel[] });
  const tracking = entry.tracking.map(({ trackingNumber, trackingLink }) => ({
    number: trackingNumber,
    link: trackingLink,
  }));
  const key = (parcel: Parcel) => `${parcel.number} ${parcel.number === null ? parcel.link : ''}`;
  const set = new Map(
    tracking
      .sort((a, b) => ((a.link ?? '~') < (b.link ?? '~') ? 1 : -1))
      .map((parcel) => [key(parcel), parcel]),
  );
  const inOrder = (before?.tracking ?? []).flatMap((parcel) => {
    const now = set.get(key(parcel));
    return now ? [{ ...now, link: now.link ?? parcel.link }] : [];
  });
  return JSON.stringify({
    jobNumber: entry.jobNumber,
    status: entry.masterJobStatus ?? before?.status ?? null,
    description: entry.description,
    orderNumber: entry.orderNumber,
    orderGroup: entry.orderGroup,
    orderGroupSequence: entry.orderGroupSequence,
    originCode: entry.originCode,
    dateDue: entry.dateDue,
    mustDate: entry.mustDate,
    dateOut: entry.dateOut,
    tracking: inOrder.length === set.size ? inOrder : [...set.values()],
  });
}
