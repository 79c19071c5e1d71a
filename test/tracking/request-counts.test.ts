/** Accuracy of tracking and number of upstream requests, measured on accounts of realistic size. */
import { describe, expect, test } from 'vitest';
import type { RequestInfo } from '../../sandbox/http/traffic.ts';
import type { JobRecord } from '../../sandbox/world/records.ts';
import type { SandboxAccount } from '../../sandbox/world/world.ts';
import type { EventType } from '../../shared/events/catalogue.ts';
import type { JobEvent } from '../../shared/events/event.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import type { Item, Table } from '../../shared/storage/table.ts';
import { sized } from '../support/runs.ts';
import { createRig, type Rig, watchedTable } from '../support/tracker.ts';

describe('page drift: 2,000 jobs, of which a tenth enters or leaves the list while it is read', () => {
  const POLLS = sized(16, 200);
  const QUIET_POLLS = 10;

  test('emits every change once, within its window, and nothing else', async () => {
    // Ten quiet polls are then long enough for a cancellation to be confirmed.
    const rig = await createRig({ pollIntervalSeconds: 120 });
    const world = moving(rig, 2_000);
    await rig.poll();
    expect(await rig.fresh()).toMatchObject([{ type: 'account.baselined' }]);

    for (let n = 0; n < POLLS + QUIET_POLLS; n += 1) {
      const before = world.movements;
      if (n < POLLS) rig.sandbox.onRequest = world.onRequest;
      else world.rest();
      expect(await rig.poll()).toMatchObject({ outcome: 'complete' });
      rig.sandbox.onRequest = undefined;
      if (n < POLLS) expect(world.movements - before).toBeGreaterThan(rig.upstream.activeCount / 10);
      for (const event of await rig.fresh()) world.hear(event);
    }
    expect(world.falsehoods).toEqual([]);
    expect(world.unsaid).toEqual([]);
    // The drift was significant: every poll missed jobs that existed all the time.
    expect(world.drifted).toBeGreaterThan(10 * POLLS);
    // A short run may have no job that is listed again after its end.
    expect(Object.values(world.counts).length).toBeGreaterThanOrEqual(sized(7, 8));
  }, 240_000);
});

test('a quiet poll of 5,000 jobs reads at most 24 units of the table', { timeout: 60_000 }, async () => {
  const metered = createMeteredTable(createMemoryTable());
  const rig = await createRig({ table: metered.table });
  for (let n = 0; n < 5_000; n += 1) {
    rig.upstream.createJob({ status: 'Scheduled', ...(n % 10 === 0 && { orderGroup: `G${n % 500}` }) });
  }
  await rig.poll();
  // The first polls also renew, sweep and read the lookup.
  for (let n = 0; n < 3; n += 1) await rig.poll();
  const units: number[] = [];
  for (let n = 0; n < sized(10, 30); n += 1) {
    const [before, pages] = [metered.units(), rig.sandbox.requests.count({ operation: 'activeJobs' })];
    expect(await rig.poll()).toMatchObject({ outcome: 'complete' });
    expect(rig.sandbox.requests.count({ operation: 'activeJobs' }) - pages).toBeGreaterThanOrEqual(50);
    units.push(metered.units() - before);
  }
  expect((await rig.fresh()).map(({ type }) => type)).toEqual(['account.baselined']);
  expect(Math.max(...units)).toBeLessThanOrEqual(24);
});

/** A table that counts its reads as DynamoDB does: a unit per 4 KB, of each item of a key, and of a query as a whole. */
function createMeteredTable(inner: Table): { readonly table: Table; units(): number } {
  let units = 0;
  const count = (bytes: number): void => {
    units += Math.max(1, Math.ceil(bytes / 4096));
  };
  const table: Table = {
    ...watchedTable(inner),
    async get(key) {
      const item = await inner.get(key);
      count(item ? sizeItem(item) : 0);
      return item;
    },
    async getMany(wanted) {
      const items = await inner.getMany(wanted);
      for (const item of items) count(sizeItem(item));
      // A key without an item costs a unit, too.
      for (let n = items.length; n < wanted.length; n += 1) count(0);
      return items;
    },
    async query(query) {
      const items = await inner.query(query);
      count(items.reduce((sum, item) => sum + sizeItem(item), 0));
      return items;
    },
  };
  return { table, units: () => units };
}

/** The size of an item in DynamoDB, in bytes. */
function sizeItem(item: Item): number {
  return Object.entries(item).reduce(
    (sum, [name, value]) => sum + Buffer.byteLength(name) + sizeValue(value),
    0,
  );
}

function sizeValue(value: unknown): number {
  if (typeof value === 'string') return Buffer.byteLength(value);
  if (typeof value === 'number') return Math.ceil(String(value).length / 2) + 1;
  if (value instanceof Uint8Array) return value.length;
  if (Array.isArray(value)) return 3 + value.reduce<number>((sum, one) => sum + 1 + sizeValue(one), 0);
  if (typeof value === 'object' && value !== null) return 3 + sizeItem(value as Item);
  return 1;
}

describe('requests for single jobs: 5,000 open jobs, 50 changes a poll', () => {
  const CHANGES = 50;
  const POLLS = 10;
  /** Duration until a suspicion is confirmed, plus a poll. */
  const QUIET_POLLS = 16;

  /**
   * Makes random changes; returns the number of each kind and of the resulting requests, until some quiet polls later. Requests
   * of the daily rotation are of the kind `rotation`.
   */
  async function measure(
    lot: Readonly<Record<string, Change>>,
    quietPolls: number,
  ): Promise<Map<string, { changes: number; requests: number }>> {
    // Settling of delisted jobs is excluded: its fetches follow the clock.
    const rig = await createRig({ settings: { settlingScheduleSeconds: [86_400] } });
    const { upstream, sandbox } = rig;
    const below = createRandom(11);
    const jobs = Array.from({ length: 5_000 }, () => upstream.createJob({ status: 'Scheduled' }));
    for (const jobNumber of jobs.slice(0, 2_000)) upstream.dispatch(jobNumber, { tracking: [parcel()] });
    await rig.poll();
    expect(sandbox.requests.count({ operation: 'job' })).toBe(0);
    await rig.poll();

    const kinds = Object.entries(lot);
    const rotation = { changes: 0, requests: 0 };
    const counts = new Map(kinds.map(([kind]) => [kind, { changes: 0, requests: 0 }]));
    const kindByJob = new Map<number, string>();
    const count = (jobNumber: number | undefined) => counts.get(kindByJob.get(jobNumber ?? 0) ?? '');
    for (let n = 0; n < POLLS + quietPolls; n += 1) {
      const changed = new Set<number>();
      while (n < POLLS && changed.size < CHANGES) {
        const [kind, { fits, act }] = kinds[below(kinds.length)] as (typeof kinds)[number];
        const jobNumber = jobs[below(jobs.length)] ?? 0;
        const job = upstream.job(jobNumber);
        if (job?.phase !== 'open' || changed.has(jobNumber) || fits?.(job) === false) continue;
        const created = act(upstream, jobNumber);
        const subject = typeof created === 'number' ? created : jobNumber;
        changed.add(subject);
        kindByJob.set(subject, kind);
        const counted = count(subject);
        if (counted) counted.changes += 1;
      }
      sandbox.requests.clear();
      expect(await rig.poll()).toMatchObject({ outcome: 'complete', fetchesLeft: 0 });
      for (const { jobNumber } of sandbox.requests.list({ operation: 'job' })) {
        const counted = count(jobNumber) ?? rotation;
        counted.requests += 1;
      }
    }
    // Each listed job once a day.
    const days = (POLLS + quietPolls) / (24 * 60);
    expect(rotation.requests).toBeLessThanOrEqual(Math.ceil(1.1 * days * jobs.length));
    return counts.set('rotation', rotation);
  }

  test('changes in the list cost at most 1.2 each, of any kind', async () => {
    const counts = [...(await measure(IN_THE_LIST, 2))];
    const sum = (of: 'changes' | 'requests') => counts.reduce((all, [, count]) => all + count[of], 0);
    expect(sum('changes')).toBe(POLLS * CHANGES);
    expect(sum('requests')).toBeLessThanOrEqual(1.2 * sum('changes'));
    // No kind is expensive and hidden by cheap ones.
    for (const [kind, { changes, requests }] of counts) {
      if (kind === 'rotation') continue;
      expect(changes, kind).toBeGreaterThan(10);
      expect(requests / changes, kind).toBeLessThanOrEqual(1.2);
    }
  }, 120_000);

  test('delisted jobs cost at most two, and four if the verdict needs a confirmation', async () => {
    const counts = await measure({ ...IN_THE_LIST, ...OUT_OF_IT }, QUIET_POLLS);
    counts.delete('rotation');
    for (const [kind, { changes, requests }] of counts) {
      const bar = kind in IN_THE_LIST ? 1.2 : CONFIRMED.includes(kind) ? 4 : 2;
      expect(changes, kind).toBeGreaterThan(10);
      expect(requests / changes, kind).toBeLessThanOrEqual(bar);
    }
  }, 120_000);
});

/** A kind of change: the open jobs to which it applies, and its effect. */
interface Change {
  readonly fits?: (job: Readonly<JobRecord>) => boolean;
  /** Returns the number of a new job. */
  readonly act: (upstream: SandboxAccount, jobNumber: number) => unknown;
}

const isDispatched = ({ dateOut }: Readonly<JobRecord>) => dateOut !== null;
const isUndispatched = ({ dateOut }: Readonly<JobRecord>) => dateOut === null;

/** Changes of a job that stays in the list. */
const IN_THE_LIST: Readonly<Record<string, Change>> = {
  created: { act: (upstream) => upstream.createJob() },
  'status changed': { act: (upstream, n) => upstream.setStatus(n, next(upstream.job(n)?.masterJobStatus)) },
  'status changed in the list alone': {
    act: (upstream, n) => upstream.setStatus(n, { master: next(upstream.job(n)?.masterJobStatus) }),
  },
  'due date moved': {
    act: (upstream, n) => upstream.edit(n, { dateDue: upstream.world.now() + 9 * 86_400_000 }),
  },
  'described otherwise': {
    act: (upstream, n) => upstream.edit(n, { description: `as of ${upstream.world.now()}` }),
  },
  dispatched: { fits: isUndispatched, act: (upstream, n) => upstream.dispatch(n) },
  'dispatched with tracking': {
    fits: isUndispatched,
    act: (upstream, n) => upstream.dispatch(n, { tracking: [parcel()] }),
  },
  'dispatch date corrected': {
    fits: isDispatched,
    act: (upstream, n) => upstream.correctDateOut(n, upstream.world.now() - 3_600_000),
  },
  'dispatch taken back': { fits: isDispatched, act: (upstream, n) => upstream.clearDateOut(n) },
  'tracking added': {
    fits: isDispatched,
    act: (upstream, n) => upstream.addTracking(n, { trackingNumber: `T${upstream.world.now()}` }),
  },
  'tracking taken back': {
    fits: ({ tracking }) => tracking.length > 0,
    act: (upstream, n) => upstream.removeTracking(n),
  },
};

/** Changes that delist a job. */
const OUT_OF_IT: Readonly<Record<string, Change>> = {
  closed: { fits: isUndispatched, act: (upstream, n) => upstream.close(n) },
  'closed after its dispatch': { fits: isDispatched, act: (upstream, n) => upstream.close(n) },
  cancelled: { fits: isUndispatched, act: (upstream, n) => upstream.cancel(n) },
  removed: { fits: isUndispatched, act: (upstream, n) => upstream.remove(n) },
};
const CONFIRMED = ['cancelled', 'removed'];

function parcel() {
  return { trackingNumber: 'T1', trackingLink: null };
}

function next(status: string | null | undefined): string {
  return STATUSES[(STATUSES.indexOf(status ?? '') + 1) % STATUSES.length] ?? '';
}

/** A change of a job, and its expected events. */
interface Happening {
  readonly jobNumber: number;
  readonly type: EventType;
  /** Epoch ms. No request or answer has the same time. */
  readonly at: number;
  /** The status, if it changed. */
  readonly to?: string;
  /** Optional event: a job that ends is locked as well. */
  readonly implied?: boolean;
}

const STATUSES = ['Order received', 'Scheduled', 'On hold', 'In production', 'Ready to ship'];

/**
 * An account whose list changes while it is read. Before each answer some jobs are hidden and others return, so that the pages
 * shift; occasionally a job changes. Each change must be emitted before the job's next one, so events and changes correspond
 * one to one.
 */
function moving(rig: Rig, size: number) {
  const { upstream } = rig;
  const below = createRandom(7);
  const jobs = Array.from({ length: size }, () => upstream.createJob({ status: 'Scheduled' }));
  for (const jobNumber of jobs) if (jobNumber % 3 === 0) upstream.lock(jobNumber);
  const counts: Partial<Record<EventType | 'hidden for long', number>> = {};
  const falsehoods: string[] = [];
  let open: Happening[] = [];
  /** Hidden from all lists until the next page request, and for some polls. */
  let brief: number[] = [];
  const long: number[] = [];
  let preferred = 0;
  let movements = 0;
  let drifted = 0;

  const isBusy = (jobNumber: number) => open.some((one) => one.jobNumber === jobNumber && !one.implied);
  const isOpen = (jobNumber: number) => {
    const job = upstream.job(jobNumber);
    return job?.phase === 'open' && job.dateOut === null;
  };
  const isListed = (jobNumber: number) => upstream.job(jobNumber)?.phase === 'open';
  const isClosed = (jobNumber: number) => upstream.job(jobNumber)?.phase === 'closed';

  /** Any suitable visible job without pending events. */
  function some(fits: (jobNumber: number) => boolean): number | undefined {
    for (let tries = 0; tries < 100; tries += 1) {
      const jobNumber = (tries === 0 && preferred) || (jobs[below(jobs.length)] ?? 0);
      if (fits(jobNumber) && !upstream.job(jobNumber)?.hidden && !isBusy(jobNumber)) return jobNumber;
    }
    return undefined;
  }

  /** Changes a suitable job. The first of the expected events is counted. */
  function happen(
    fits: (jobNumber: number) => boolean,
    act: (jobNumber: number) => readonly Omit<Happening, 'jobNumber' | 'at'>[],
  ): void {
    const jobNumber = some(fits);
    if (jobNumber === undefined) return;
    rig.pass(0.001);
    const at = rig.now();
    const said = act(jobNumber);
    open.push(...said.map((one) => ({ ...one, jobNumber, at })));
    for (const { type, implied } of said) if (!implied) counts[type] = (counts[type] ?? 0) + 1;
    rig.pass(0.001);
  }

  const LOCKED = { type: 'job.locked', implied: true } as const;
  const HAPPENINGS: readonly (() => void)[] = [
    () => {
      rig.pass(0.001);
      const jobNumber = upstream.createJob({ status: 'Scheduled' });
      jobs.push(jobNumber);
      open.push({ jobNumber, type: 'job.created', at: rig.now() });
      counts['job.created'] = (counts['job.created'] ?? 0) + 1;
      movements += 1;
      rig.pass(0.001);
    },
    () =>
      happen(isListed, (jobNumber) => {
        const others = STATUSES.filter((status) => status !== upstream.job(jobNumber)?.masterJobStatus);
        const to = others[below(others.length)] ?? '';
        upstream.setStatus(jobNumber, to);
        // Only of a job whose detail was read before.
        const started = { type: 'job.production_started', implied: true } as const;
        const inProduction = ['In production', 'Ready to ship'].includes(to);
        return [{ type: 'job.status_changed', to }, ...(inProduction ? [started] : [])];
      }),
    () =>
      happen(isOpen, (jobNumber) => {
        upstream.dispatch(jobNumber, { tracking: [{ trackingNumber: `T${jobNumber}`, trackingLink: null }] });
        return [{ type: 'job.dispatched' }, { type: 'job.tracking_added' }, LOCKED];
      }),
    () =>
      happen(isListed, (jobNumber) => {
        upstream.close(jobNumber);
        movements += 1;
        return [{ type: 'job.closed' }, LOCKED];
      }),
    () => {
      if (below(6) > 0) return;
      happen(isClosed, (jobNumber) => {
        upstream.reopen(jobNumber);
        movements += 1;
        return [{ type: 'job.reopened' }, { type: 'job.unlocked', implied: true }];
      });
    },
    () => {
      if ((counts['job.cancelled'] ?? 0) >= 10 || below(12) > 0) return;
      happen(isOpen, (jobNumber) => {
        upstream.cancel(jobNumber);
        movements += 1;
        return [
          { type: 'job.cancelled' },
          LOCKED,
          { type: 'job.status_changed', to: 'Canceled', implied: true },
        ];
      });
    },
  ];

  /** Changes a certain job, if it is suitable. */
  function happenSomething(jobNumber = 0): void {
    preferred = jobNumber;
    HAPPENINGS[below(HAPPENINGS.length)]?.();
    preferred = 0;
  }

  function hide(into: number[]): void {
    // Only editable ones: a locked job in no list is like a cancelled one.
    const jobNumber = some((one) => isOpen(one) && !upstream.job(one)?.permissions);
    if (jobNumber === undefined) return;
    upstream.hide(jobNumber);
    into.push(jobNumber);
    movements += 1;
  }

  function show(hidden: readonly number[]): void {
    for (const jobNumber of hidden) upstream.unhide(jobNumber);
    movements += hidden.length;
  }

  function showBrief(): void {
    show(brief);
    brief = [];
  }

  function onRequest({ operation, query, jobNumber }: RequestInfo): void {
    rig.pass(0.001);
    if (operation !== 'activeJobs' || query.searchText || query.includeClosedJobs === 'true') {
      // The list was read, and single jobs are requested. A hidden one returns right then, at the latest when it is searched
      // among the closed ones; any other may change.
      const asked = jobNumber ?? Number(query.searchText ?? 0);
      if (brief.includes(asked) && (query.includeClosedJobs === 'true' || below(3) === 0)) {
        show([asked]);
        brief = brief.filter((one) => one !== asked);
      }
      if (jobNumber !== undefined && isOpen(jobNumber) && !isBusy(jobNumber)) drifted += 1;
      if (below(20) === 0) happenSomething(asked);
      return;
    }
    showBrief();
    for (let n = 2 + below(13); n > 0; n -= 1) hide(brief);
    if (below(60) === 0) {
      hide(long);
      counts['hidden for long'] = (counts['hidden for long'] ?? 0) + 1;
    }
    if (long.length > 0 && below(40) === 0) show(long.splice(0, 1));
    if (below(3) === 0) happenSomething();
  }

  return {
    onRequest,
    /** Restores hidden jobs. */
    rest(): void {
      showBrief();
      show(long.splice(0));
    },
    /** Compares an event with the change. */
    hear({ type, subject, data }: JobEvent): void {
      const { observed, changes } = data as unknown as {
        observed: { at: string; since: string | null };
        changes?: { status?: { to: string } };
      };
      const happened = open.find(
        (one) =>
          `jobs/${one.jobNumber}` === subject &&
          one.type === type &&
          (one.to === undefined || one.to === changes?.status?.to) &&
          observed.since !== null &&
          Date.parse(observed.since) < one.at &&
          one.at < Date.parse(observed.at),
      );
      if (!happened) falsehoods.push(`${type} ${subject}: ${JSON.stringify(data)}`);
      open = open.filter((one) => one !== happened);
    },
    falsehoods: falsehoods as readonly string[],
    get unsaid() {
      return open.filter(({ implied }) => !implied);
    },
    counts,
    /** How often a job entered or left the list. */
    get movements() {
      return movements;
    },
    /** Number of detail fetches of unchanged jobs. */
    get drifted() {
      return drifted;
    },
  };
}

/** Integers below a limit, always the same sequence. */
function createRandom(seed: number): (limit: number) => number {
  let state = seed;
  return (limit) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % limit;
  };
}
