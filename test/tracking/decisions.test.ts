/**
 * Pure decisions of the tracker without a file of their own: timestamps, account states, the index, the chunks.
 * One file: each is small, and each file would load the tracker once more.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { turnFrom } from '../../shared/accounts/accounts.ts';
import { COMMIT_OVERHEAD_ACTIONS } from '../../shared/log/log.ts';
import { OrderingError } from '../../shared/ordering/errors.ts';
import { pollPhase } from '../../shared/storage/schema.ts';
import { estimateSize, MAX_TRANSACTION_ACTIONS, MAX_TRANSACTION_BYTES } from '../../shared/storage/table.ts';
import { transition } from '../../shared/tracking/account-state.ts';
import { chunks } from '../../shared/tracking/chunks.ts';
import { type IndexEntry, JobIndex, MAX_ENTRIES, type Phase } from '../../shared/tracking/job-index.ts';
import { DEFAULT_TRACKING, rescheduleFailedFetch, settled } from '../../shared/tracking/schedule.ts';
import { readTimes } from '../../shared/tracking/timestamps.ts';
import { toIndexEntry, type Work } from '../../shared/tracking/work.ts';
import { BASELINE, MINUTE, polls } from '../support/decisions.ts';
import { runs } from '../support/runs.ts';

describe('comparing timestamps (rules 5 and 15)', () => {
  const read = (text: string, zone: string | null = null, midnightIsEndOfDay = false) => {
    const reading = readTimes(text, zone, { midnightIsEndOfDay });
    return (
      reading && [
        new Date(reading.earliest).toISOString(),
        new Date(reading.latest).toISOString(),
        reading.zone,
      ]
    );
  };

  test.each([
    [
      'its own offset takes precedence over the zone',
      '2026-03-05T10:00:00+02:00',
      'America/Denver',
      '2026-03-05T08:00:00.000Z',
      '+02:00',
    ],
    ['an offset without a colon', '2026-03-05T10:00:00-0730', null, '2026-03-05T17:30:00.000Z', '-0730'],
    ['fractions of a second count', '2026-03-05T10:00:00.0825551Z', null, '2026-03-05T10:00:00.083Z', 'Z'],
    [
      'the location’s zone',
      '2026-03-05T10:00:00',
      'America/Denver',
      '2026-03-05T17:00:00.000Z',
      'America/Denver',
    ],
    [
      'without seconds, after a blank',
      '2026-03-05 10:00',
      'Asia/Kolkata',
      '2026-03-05T04:30:00.000Z',
      'Asia/Kolkata',
    ],
    [
      'the day when clocks go forward',
      '2026-03-08T12:00:00',
      'America/Denver',
      '2026-03-08T18:00:00.000Z',
      'America/Denver',
    ],
    [
      'the day when clocks go back',
      '2026-11-01T12:00:00',
      'America/Denver',
      '2026-11-01T19:00:00.000Z',
      'America/Denver',
    ],
  ])('%s', (_, text, zone, instant, read_in) => {
    expect(read(text, zone)).toEqual([instant, instant, read_in]);
  });

  test.each([
    [
      'an unknown zone counts as the latest one, UTC−12',
      '2026-03-05T10:00:00',
      'Mars/Phobos',
      ['2026-03-04T20:00:00.000Z', '2026-03-05T22:00:00.000Z', '-12:00'],
    ],
    [
      'no zone',
      '2026-03-05T10:00:00',
      null,
      ['2026-03-04T20:00:00.000Z', '2026-03-05T22:00:00.000Z', '-12:00'],
    ],
    [
      'a bare date counts until its end',
      '2026-03-05',
      'Pacific/Auckland',
      ['2026-03-04T11:00:00.000Z', '2026-03-05T11:00:00.000Z', 'Pacific/Auckland'],
    ],
    [
      'a time that happens twice',
      '2026-11-01T01:30:00',
      'America/New_York',
      ['2026-11-01T05:30:00.000Z', '2026-11-01T06:30:00.000Z', 'America/New_York'],
    ],
    [
      'a time that is skipped',
      '2026-03-08T02:30:00',
      'America/New_York',
      ['2026-03-08T06:30:00.000Z', '2026-03-08T07:30:00.000Z', 'America/New_York'],
    ],
  ])('%s', (_, text, zone, reading) => {
    expect(read(text, zone)).toEqual(reading);
  });

  test.each([
    ['2026-03-05', 'America/Denver', '2026-03-06T07:00:00.000Z'],
    ['2026-03-05T00:00:00', 'America/Denver', '2026-03-06T07:00:00.000Z'],
    ['2026-03-05T00:00:00-07:00', null, '2026-03-06T07:00:00.000Z'],
    ['2026-03-05T00:00:00Z', 'America/Denver', '2026-03-06T00:00:00.000Z'],
    // The day when clocks go forward has 23 hours.
    ['2026-03-08T00:00:00', 'America/Denver', '2026-03-09T06:00:00.000Z'],
    ['2026-03-08T00:00:00-07:00', 'America/Denver', '2026-03-09T06:00:00.000Z'],
    ['2026-11-01T00:00:00-06:00', 'America/Denver', '2026-11-02T07:00:00.000Z'],
    ['2026-03-05', null, '2026-03-06T12:00:00.000Z'],
    ['2026-03-05T00:00:01', 'America/Denver', '2026-03-05T07:00:01.000Z'],
  ])('a due date of %s in %s has passed at %s', (text, zone, instant) => {
    expect(read(text, zone, true)?.[1]).toBe(instant);
  });

  test.each([
    '',
    'soon',
    '2026-13-01',
    '2026-02-30',
    '2026-03-05T24:30:00',
    '0001-01-01T00:00:00',
    '9999-12-31T23:59:59',
  ])('%j is not a date', (text) => {
    expect(read(text, 'America/Denver')).toBeUndefined();
  });
});

describe("the time of an account's next poll", () => {
  const unavailable = new OrderingError({ kind: 'unavailable', operation: 'GET /Jobs/active' });
  const failed = { kind: 'failed', problem: unavailable, accepted: true } as const;
  const fraction = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

  /** Delay of the next poll after the start of one. */
  function gap(pollIntervalSeconds: number, phase: number, startedAt: number, failures?: number): number {
    const status = {
      state: 'tracking',
      consecutiveFailures: (failures ?? 1) - 1,
      alarmed: false,
      quarantinedAt: null,
    } as const;
    const account = { region: 'us', pollIntervalSeconds };
    const before = { status, account, baselined: true, failuresBeforeAlarm: 3, phase };
    const result = failures === undefined ? ({ kind: 'good' } as const) : failed;
    return (transition(result, before, startedAt, startedAt + 500).nextPollAt ?? 0) - startedAt;
  }

  test('is at least a tenth of the interval after a poll, and at most 1.1 intervals', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 86_400 }), fraction, fraction, (interval, phase, at) => {
        const ms = interval * 1000;
        const next = gap(interval, phase, BASELINE + Math.floor(at * 2 * ms));
        expect(next).toBeGreaterThanOrEqual(0.1 * ms);
        expect(next).toBeLessThanOrEqual(1.1 * ms);
      }),
    );
  });

  test('has the same offset in every interval, for any delay of polls', () => {
    fc.assert(
      fc.property(fraction, fc.array(fc.integer({ min: 0, max: 107_000 })), (phase, lags) => {
        let turn = turnFrom(BASELINE, 120_000, phase);
        for (const lag of lags) {
          const next = turn + lag + gap(120, phase, turn + lag);
          expect(next - turn).toBe(120_000);
          turn = next;
        }
      }),
    );
  });

  test('is spread over the interval for accounts that start at the same time, also if they waited for the same time', () => {
    const refs = Array.from({ length: 10_000 }, (_, n) => ({ region: 'us', account: `account-${n}` }));
    for (const failures of [undefined, 1, 4, 20]) {
      const perSecond = new Map<number, number>();
      const gaps = refs.map((ref) => gap(120, pollPhase(ref), BASELINE, failures) / 1000);
      for (const second of gaps.map(Math.floor)) perSecond.set(second, (perSecond.get(second) ?? 0) + 1);
      expect(perSecond.size).toBeGreaterThanOrEqual(119);
      // 83 on average.
      expect(Math.max(...perSecond.values())).toBeLessThan(140);
      // At most the longest back-off plus a tenth of the interval.
      expect(Math.max(...gaps)).toBeLessThanOrEqual({ 1: 132, 4: 912, 20: 912 }[failures ?? 1] ?? 0);
    }
  });
});

describe('the effect of a poll on its account (rule 11)', () => {
  const rejection = new OrderingError({ kind: 'credentials_rejected', operation: 'POST token' });
  const outage = new OrderingError({
    kind: 'unavailable',
    operation: 'GET /Jobs/active',
    retryAfterMs: 1_200_000,
  });
  const failed = (problem: unknown, accepted = false) => ({ kind: 'failed', problem, accepted }) as const;
  const good = { kind: 'good' } as const;

  /** Runs polls a minute apart; each gives state, seconds until the next one, and the types of its events. */
  function run(...results: Parameters<typeof transition>[0][]): [string, number | null, string[]][] {
    let status = {
      state: 'tracking' as Parameters<typeof transition>[1]['status']['state'],
      consecutiveFailures: 0,
      alarmed: false,
      quarantinedAt: null as number | null,
    };
    return results.map((result, n) => {
      const at = BASELINE + n * MINUTE;
      const next = transition(
        result,
        {
          status,
          account: { region: 'us', pollIntervalSeconds: 60 },
          baselined: true,
          failuresBeforeAlarm: 3,
          phase: 0,
        },
        at,
        at + 500,
      );
      status = next;
      const inSeconds = next.nextPollAt === null ? null : (next.nextPollAt - at) / 1000;
      return [next.state, inSeconds, next.events.map((event) => event.type.replace('account.', ''))];
    });
  }

  test('a fault of the settings is described with the setting to check, and the fault of a record is not', () => {
    const describe = (kind: 'not_found' | 'unavailable', operation: string, detail?: string) =>
      transition(
        {
          kind: 'failed',
          problem: new OrderingError({ kind, operation, status: 404, detail }),
          accepted: true,
        },
        {
          ...{ baselined: true, failuresBeforeAlarm: 3, phase: 0 },
          account: { region: 'us', pollIntervalSeconds: 60 },
          status: { state: 'tracking', consecutiveFailures: 0, alarmed: false, quarantinedAt: null },
        },
        BASELINE,
        BASELINE + 500,
      ).problem;
    expect(describe('not_found', 'GET /account')).toBe(
      'The ordering API is not at this address (HTTP 404). Check the path of baseUrl of region "us".',
    );
    expect(describe('not_found', 'POST /realms/us/protocol/openid-connect/token')).toBe(
      'The token endpoint does not know this realm (HTTP 404). Check realm and authUrl of region "us".',
    );
    expect(describe('not_found', 'GET /Jobs/{jobNumber}')).toMatch(/^GET .* the record does not exist/);
    expect(describe('unavailable', 'GET /account')).toMatch(/^GET .* is unavailable/);
  });

  test('invalid credentials are emitted once, polled less and less often, and their recovery is emitted', () => {
    expect(run(...Array.from({ length: 6 }, () => failed(rejection)), good)).toEqual([
      ['credentials_rejected', 60, ['credentials_rejected']],
      ['credentials_rejected', 120, []],
      ['credentials_rejected', 240, []],
      ['credentials_rejected', 480, []],
      ['credentials_rejected', 900, []],
      ['credentials_rejected', 900, []],
      ['tracking', 60, ['credentials_accepted']],
    ]);
  });

  test('a Retry-After of years is limited to a day', () => {
    const seconds = (retryAfterMs: number) =>
      run(
        failed(new OrderingError({ kind: 'rate_limited', operation: 'GET /Jobs/active', retryAfterMs })),
      )[0]?.[1];
    expect(seconds(80_000_000)).toBe(80_040);
    for (const ms of [10 * 365 * 86_400_000, Number.MAX_SAFE_INTEGER]) expect(seconds(ms)).toBe(86_400);
  });

  test('only an answer proves that credentials are valid again', () => {
    expect(
      run(failed(rejection), failed(outage), failed(outage), failed(outage), failed(outage, true), good),
    ).toEqual([
      ['credentials_rejected', 60, ['credentials_rejected']],
      ['credentials_rejected', 1200, []],
      ['credentials_rejected', 1200, []],
      ['credentials_rejected', 1200, []],
      ['failing', 1200, ['credentials_accepted', 'poll_failing']],
      ['tracking', 60, ['poll_recovered']],
    ]);
  });

  test('the problem of an account with rejected credentials is the failure of the last poll', () => {
    const rejected = { consecutiveFailures: 1, alarmed: false, quarantinedAt: null };
    const { state, problem } = transition(
      failed(new OrderingError({ kind: 'network', operation: 'GET /account', detail: 'ECONNREFUSED' })),
      {
        ...{ baselined: true, failuresBeforeAlarm: 3, phase: 0 },
        account: { region: 'us', pollIntervalSeconds: 60 },
        status: { state: 'credentials_rejected', ...rejected },
      },
      BASELINE,
      BASELINE + 500,
    );
    expect(state).toBe('credentials_rejected');
    expect(problem).toMatch(
      /^The ordering API can’t be reached.* Before that, the ordering API rejected the credentials\.$/,
    );
  });

  test('an alarm is raised at the third consecutive failure, and its recovery is emitted for any failures in between', () => {
    expect(
      run(
        failed(outage),
        failed(outage),
        good,
        failed(outage),
        failed(outage),
        failed(outage),
        failed(rejection),
        good,
      ),
    ).toEqual([
      ['tracking', 1200, []],
      ['tracking', 1200, []],
      ['tracking', 60, []],
      ['tracking', 1200, []],
      ['tracking', 1200, []],
      ['failing', 1200, ['poll_failing']],
      ['credentials_rejected', 480, ['credentials_rejected']],
      ['tracking', 60, ['credentials_accepted', 'poll_recovered']],
    ]);
  });

  test('credentials of another account stop it until an operator acts (rule 9)', () => {
    expect(run({ kind: 'mismatch', expectedId: 1, actualId: 2 })).toEqual([
      ['identity_mismatch', null, ['identity_mismatch']],
    ]);
  });

  test('rejected credentials that are replaced by those of another account count as accepted', () => {
    expect(run(failed(rejection), { kind: 'mismatch', expectedId: 1, actualId: 2 })).toEqual([
      ['credentials_rejected', 60, ['credentials_rejected']],
      ['identity_mismatch', null, ['credentials_accepted', 'identity_mismatch']],
    ]);
  });
});

describe('the job index', () => {
  const phases: readonly Phase[] = ['listed', 'departed', 'settling', 'suspected', 'contradictory'];
  const entry = fc.record({
    fingerprint: fc.integer({ min: 0, max: 2 ** 48 - 1 }),
    phase: fc.constantFrom(...phases),
    nextCheckAt: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 2 ** 32 - 1 })),
  });
  const jobNumber = fc.oneof(
    fc.integer({ min: 0, max: 1500 }),
    fc.integer({ min: 400_000, max: 401_000 }),
    fc.integer({ min: 0, max: 10 ** 12 - 1 }),
  );
  const batch = fc.array(fc.tuple(jobNumber, fc.option(entry, { nil: undefined })), { maxLength: 400 });

  test('a shard is read as it was written, and shards stay small for any changes', () => {
    fc.assert(
      fc.property(fc.array(batch, { maxLength: 12 }), fc.func(fc.boolean()), (batches, removes) => {
        const stored = new Map<number, Uint8Array>();
        const model = new Map<number, IndexEntry>();
        const inOrder = () =>
          [...stored].sort(([a], [b]) => a - b).map(([lowest, packed]) => ({ lowest, packed }));
        let index = JobIndex.decode([]);
        for (const [n, changes] of batches.entries()) {
          // Occasionally most jobs are removed.
          const gone =
            n % 4 === 3
              ? [...model.keys()].filter((job) => removes(job)).map((job) => [job, undefined] as const)
              : [];
          for (const [job, value] of [...changes, ...gone]) {
            index.set(job, value);
            if (value) model.set(job, value);
            else model.delete(job);
            expect(index.get(job)).toEqual(value);
          }
          for (const { lowest, packed } of index.takeChanges()) {
            if (packed) stored.set(lowest, packed);
            else stored.delete(lowest);
          }
          expect(index.takeChanges()).toEqual([]);
          if (n % 2 === 1) index = JobIndex.decode(inOrder());
          expect(JobIndex.decode(inOrder()).size).toBe(model.size);
        }
        const read = JobIndex.decode(inOrder());
        expect(new Map(read)).toEqual(model);
        for (const job of model.keys()) {
          for (const near of [job - 1, job, job + 1]) expect(read.get(near)).toEqual(model.get(near));
        }
        for (const shard of inOrder()) {
          expect(JobIndex.decode([shard]).size).toBeLessThanOrEqual(MAX_ENTRIES);
          expect(shard.packed.byteLength).toBeLessThan(MAX_ENTRIES * 19);
        }
      }),
      runs(40, 40),
    );
  });

  test('5,000 jobs with due dates take about 12 bytes each, in shards of at most 4 KB', () => {
    const index = JobIndex.decode([]);
    for (let n = 0; n < 5000; n += 1) {
      index.set(410_000 + n * 3, {
        fingerprint: (n * 7_919_000_003) % 2 ** 48,
        phase: 'listed',
        nextCheckAt: 1_772_000_000 + n,
      });
    }
    const sizes = index.takeChanges().map(({ packed }) => packed?.byteLength ?? 0);
    expect(sizes.reduce((sum, size) => sum + size, 0) / 5000).toBeLessThan(12.5);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(4096);
    expect(sizes.length).toBeLessThanOrEqual(22);
  });

  test('a shard of another format, or one that ends within an entry, is rejected, not misread', () => {
    const decode = (packed: Uint8Array) => JobIndex.decode([{ lowest: 0, packed }]);
    expect(() => decode(new Uint8Array([9, 1, 2]))).toThrow('format 9');
    const index = JobIndex.decode([]);
    index.set(7, { fingerprint: 1, phase: 'listed', nextCheckAt: 1_772_000_000 });
    const [{ packed = new Uint8Array() } = {}] = index.takeChanges();
    expect(decode(packed).size).toBe(1);
    for (let length = 2; length < packed.length; length += 1) {
      expect(() => decode(packed.slice(0, length)), `${length} bytes`).toThrow();
    }
  });
});

describe('transaction chunks', () => {
  const context = {
    startedAt: BASELINE,
    pollIntervalSeconds: 60,
    projectionVersion: 1,
    settings: DEFAULT_TRACKING,
  };
  const ref = { region: 'us', account: 'acme' };

  function createWork(jobNumber: number, events: number, text = 'x'): Work {
    const { snapshot } = polls({ jobNumber, description: text });
    return {
      jobNumber,
      entry: undefined,
      stored: undefined,
      snapshot: { ...snapshot, jobNumber },
      events: Array.from(
        { length: events },
        () => ({ type: 'job.closed', jobNumber, time: BASELINE, data: { text } }) as never,
      ),
      observedStatuses: [],
      fingerprint: jobNumber,
    };
  }

  test('chunks keep the limits of a transaction, and never separate a job from its events and its index entry', () => {
    const works = fc.uniqueArray(fc.integer({ min: 1, max: 400_000 }), { minLength: 1, maxLength: 500 });
    fc.assert(
      fc.property(
        works,
        fc.infiniteStream(fc.integer({ min: 0, max: 12 })),
        fc.infiniteStream(fc.integer({ min: 0, max: 10 })),
        (numbers, events, names) => {
          const index = JobIndex.decode([]);
          for (let n = 0; n < 30_000; n += 13)
            index.set(n * 13, { fingerprint: n, phase: 'listed', nextCheckAt: 1 });
          index.takeChanges();
          const stored = new Map<number, IndexEntry>();
          const counts = new Map(
            numbers.map((jobNumber) => [jobNumber, [events.next().value, names.next().value] as const]),
          );
          const written = new Map<number, number>();
          const discover = ({ jobNumber }: Work) => ({
            names: Array.from({ length: counts.get(jobNumber)?.[1] ?? 0 }, (_, n) => `${jobNumber} ${n}`),
            events: Array.from(
              { length: counts.get(jobNumber)?.[1] ?? 0 },
              () => ({ type: 'status.discovered', jobNumber, time: 0, data: {} }) as never,
            ),
          });
          for (const chunk of chunks({
            ref,
            works: numbers.map((jobNumber) => createWork(jobNumber, counts.get(jobNumber)?.[0] ?? 0)),
            index,
            context,
            discover,
          })) {
            expect(COMMIT_OVERHEAD_ACTIONS + chunk.events.length + chunk.writes.length).toBeLessThanOrEqual(
              MAX_TRANSACTION_ACTIONS,
            );
            const jobs = new Set<number>();
            for (const write of chunk.writes) {
              if (!('put' in write)) continue;
              if (write.put.sk.startsWith('SHARD#')) {
                const shard = JobIndex.decode([{ lowest: 0, packed: write.put.packed as Uint8Array }]);
                for (const [job, value] of shard) stored.set(job, value);
              } else jobs.add(Number(write.put.sk));
            }
            for (const job of jobs) {
              expect(stored.get(job)).toEqual(toIndexEntry(createWork(job, 0)));
              expect(written.has(job)).toBe(false);
              written.set(job, chunk.events.filter((event) => event.jobNumber === job).length);
            }
            expect(chunk.events.every((event) => jobs.has(event.jobNumber ?? 0))).toBe(true);
          }
          expect(written).toEqual(
            new Map([...counts].map(([job, [events, names]]) => [job, events + names])),
          );
        },
      ),
      runs(25, 25),
    );
  });

  test('chunks keep the size limit of a transaction: large texts make small chunks', () => {
    const index = JobIndex.decode([]);
    const works = Array.from({ length: 40 }, (_, n) => createWork(n + 1, 2, 'ü'.repeat(60_000)));
    const sizes = [
      ...chunks({ ref, works, index, context, discover: () => ({ names: [], events: [] }) }),
    ].map(
      (chunk) =>
        chunk.events.reduce((sum, event) => sum + Buffer.byteLength(JSON.stringify(event)), 0) +
        chunk.writes.reduce((sum, write) => sum + ('put' in write ? estimateSize(write.put) : 0), 0),
    );
    expect(sizes.length).toBeGreaterThan(3);
    expect(Math.max(...sizes)).toBeLessThan(MAX_TRANSACTION_BYTES);
  });
});

describe("the time of a job's next detail fetch", () => {
  const context = (minutes: number) => ({
    startedAt: BASELINE + minutes * MINUTE,
    pollIntervalSeconds: 60,
    projectionVersion: 1,
    settings: DEFAULT_TRACKING,
  });

  test('a delisted job is fetched at growing intervals for seven days, and once more at the end (rule 7)', () => {
    let snapshot = settled(polls({}).snapshot, true, context(0));
    const minutes: number[] = [];
    while (snapshot.owed) {
      minutes.push((snapshot.owed.at - BASELINE) / MINUTE);
      snapshot = settled(snapshot, false, context(minutes.at(-1) ?? 0));
    }
    expect(minutes.slice(0, 5)).toEqual([5, 35, 155, 515, 1955]);
    expect(minutes.at(-1)).toBe(7 * 1440);
  });

  test('a failed fetch is retried at growing intervals, and does not count as one of them', () => {
    let snapshot = settled(polls({}).snapshot, true, context(0));
    const seconds: number[] = [];
    for (let n = 0; n < 7; n += 1) {
      const at = snapshot.owed?.at ?? 0;
      snapshot = rescheduleFailedFetch(snapshot, { ...context(0), startedAt: at });
      seconds.push(((snapshot.owed?.at ?? 0) - at) / 1000);
    }
    expect(seconds).toEqual([60, 120, 240, 480, 900, 900, 900]);
    expect(snapshot.settling).toEqual({ since: BASELINE, fetches: 0 });
  });
});
