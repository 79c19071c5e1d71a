/** Pure decisions of rule 22: which durations are counted, and when a job is at risk. */
import { describe, expect, it } from 'vitest';
import type { EventDraft } from '../../shared/events/event.ts';
import type { Item } from '../../shared/storage/table.ts';
import { Durations, type Histogram, MIN_JOBS, toCountedDuration } from '../../shared/tracking/durations.ts';
import { followPath } from '../../shared/tracking/path.ts';
import { assessRisk, findRiskTime, type RiskInput } from '../../shared/tracking/risk.ts';
import { START } from '../support/tracker.ts';

const MINUTE = 60_000;
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const REF = { region: 'us', account: 'acme' };

/** Returns the usual durations after jobs with these remaining times in "Print". */
function remaining(...ms: readonly number[]): Histogram {
  const durations = new Durations(undefined, START);
  durations.add(
    ms.map((one) => ({ status: 'Print', kind: 'remaining', ms: one })),
    undefined,
  );
  return durations.of('Print', 'remaining');
}

const repeat = (count: number, ms: number) => Array.from({ length: count }, () => ms);

/** A job that entered "Print" at START. */
const entered = (dueAt: number, histogram: Histogram, uncertainMs = 0): RiskInput => ({
  dueAt,
  entry: ['Print', START - uncertainMs, START],
  remaining: histogram,
});

describe('usual durations', () => {
  it('are exact to a fifth: a duration counts as the upper bound of its bucket', () => {
    for (const ms of [7 * MINUTE, HOUR, 5 * HOUR, 3 * DAY, 40 * DAY]) {
      const median = remaining(ms).quantile(0.5) ?? 0;
      expect(median).toBeGreaterThanOrEqual(ms);
      expect(median).toBeLessThan(1.2 * ms);
    }
  });

  it('have the median and the 90th percentile of the counted jobs', () => {
    const histogram = remaining(...repeat(50, HOUR), ...repeat(40, DAY), ...repeat(10, 8 * DAY));
    expect((histogram.quantile(0.5) ?? 0) / HOUR).toBeCloseTo(1, 0);
    expect((histogram.quantile(0.9) ?? 0) / DAY).toBeCloseTo(1.1, 0);
    expect((histogram.quantile(0.91) ?? 0) / DAY).toBeGreaterThan(8);
    expect(histogram.jobs).toBe(100);
  });

  it('cover the current month and the two before, and survive storage', () => {
    const first = new Durations(undefined, Date.parse('2026-01-31T23:00:00Z'));
    first.add([{ status: 'Print', kind: 'stay', ms: HOUR }], { late: true, flaggedBeforeMs: DAY });
    const item = (durations: Durations) => {
      const [write] = durations.takeWrites(REF);
      return write && 'put' in write ? write.put : undefined;
    };
    const stored = item(first);
    const march = new Durations(stored, Date.parse('2026-03-31T12:00:00Z'));
    expect(march.of('Print', 'stay').jobs).toBe(1);
    march.add([{ status: 'Print', kind: 'stay', ms: DAY }], undefined);
    const april = new Durations(item(march), Date.parse('2026-04-01T00:00:00Z'));
    expect(april.of('Print', 'stay').jobs).toBe(1);
    expect(april.firstMonth).toBe('2026-02');
    // Nothing was counted in February, and no week with a result is left.
    expect([april.firstCountedMonth, april.firstCountedWeek]).toEqual(['2026-03', '2026-03-30']);
    expect([march.firstCountedMonth, first.firstCountedWeek]).toEqual(['2026-01', '2026-01-26']);
    const none = new Durations(undefined, Date.parse('2026-04-01T00:00:00Z'));
    expect([none.firstCountedMonth, none.firstCountedWeek]).toEqual(['2026-04', '2026-03-30']);
    // The week of 26 January is more than eight weeks ago.
    expect(april.results.late).toBe(0);
    expect(new Durations(stored, Date.parse('2026-03-16T00:00:00Z')).results).toEqual({
      ...{ flagged: 1, flaggedLate: 1, late: 1, lateFlaggedDayBefore: 1 },
    });
  });

  it('have a bounded size', () => {
    let item: Item | undefined;
    let durations = new Durations(undefined, START);
    for (const month of [0, 1, 2]) {
      durations = new Durations(item, START + month * 31 * DAY);
      for (let status = 0; status < 60; status += 1) {
        const name = `${status} ${'x'.repeat(190)}`;
        for (let doubling = 0; doubling < 20; doubling += 0.25) {
          const ms = 5 * MINUTE * 2 ** doubling;
          durations.add(
            (['stay', 'remaining'] as const).map((kind) => ({ status: name, kind, ms })),
            undefined,
          );
        }
      }
      const [write] = durations.takeWrites(REF);
      item = write && 'put' in write ? write.put : undefined;
    }
    expect(durations.statuses).toHaveLength(40);
    expect(JSON.stringify(item).length).toBeLessThan(200_000);
  });

  it('of a renamed status belong to its current name', () => {
    const durations = new Durations(undefined, START);
    durations.add([{ status: 'Printing', kind: 'stay', ms: HOUR }], undefined);
    durations.add([{ status: 'Print', kind: 'stay', ms: HOUR }], undefined);
    durations.rename((name) => (name === 'Printing' ? 'Print' : name));
    expect(durations.of('Print', 'stay').jobs).toBe(2);
    expect(durations.statuses).toEqual(['Print']);
  });
});

describe('a duration between two bounds', () => {
  it('counts as the longer one if they differ by at most an hour or a fifth', () => {
    expect(toCountedDuration(0, HOUR)).toBe(HOUR);
    expect(toCountedDuration(DAY - 2 * HOUR, DAY + 2 * HOUR)).toBe(DAY + 2 * HOUR);
  });

  it('does not count if they differ by more', () => {
    expect(toCountedDuration(0, HOUR + 1)).toBeUndefined();
    expect(toCountedDuration(DAY, 2 * DAY)).toBeUndefined();
    expect(toCountedDuration(-DAY, -HOUR)).toBeUndefined();
  });
});

describe('the path of a job', () => {
  const observed = (since: number | null, at: number) => ({
    since: since === null ? null : new Date(START + since).toISOString(),
    at: new Date(START + at).toISOString(),
    view: 'list' as const,
  });
  const event = (type: string, status: string, times: [number | null, number], from?: string): EventDraft =>
    ({
      type,
      jobNumber: 1,
      time: START + times[1],
      data: {
        job: { jobNumber: 1, status, dateDue: null, dateOut: null },
        observed: observed(...times),
        changes: from === undefined ? {} : { status: { from, to: status } },
      },
    }) as unknown as EventDraft;

  const life = [
    event('job.created', 'New', [0, MINUTE]),
    event('job.status_changed', 'Print', [DAY, DAY + MINUTE], 'New'),
    event('job.dispatched', 'Print', [3 * DAY, 3 * DAY + MINUTE]),
  ];

  it('gives the stays and the remaining times at the dispatch', () => {
    const { path, durations } = followPath([], life);
    expect(path).toEqual([]);
    expect(durations).toEqual([
      { status: 'New', kind: 'stay', ms: DAY + MINUTE },
      { status: 'Print', kind: 'stay', ms: 2 * DAY + MINUTE },
      { status: 'New', kind: 'remaining', ms: 3 * DAY + MINUTE },
      { status: 'Print', kind: 'remaining', ms: 2 * DAY + MINUTE },
    ]);
  });

  it('is the same for events one by one', () => {
    let path: ReturnType<typeof followPath>['path'] = [];
    const durations = life.flatMap((one) => {
      const step = followPath(path, [one]);
      path = step.path;
      return step.durations;
    });
    expect(durations).toEqual(followPath([], life).durations);
  });

  it('gives nothing for a stay of which the beginning was not observed', () => {
    expect(followPath([], life.slice(1)).durations.map(({ status }) => status)).toEqual(['Print', 'Print']);
    const unknown = event('job.created', 'New', [null, MINUTE]);
    expect(followPath([], [unknown, ...life.slice(1)]).durations.map(({ status }) => status)).toEqual([
      ...['Print', 'Print'],
    ]);
  });

  it('gives nothing for a stay that began in a gap between polls which is too long', () => {
    const afterGap = event('job.status_changed', 'Print', [0, DAY], 'New');
    const out = event('job.dispatched', 'Print', [2 * DAY, 2 * DAY + MINUTE]);
    expect(followPath([], [afterGap, out]).durations).toEqual([]);
    const late = event('job.dispatched', 'Print', [9 * DAY, 9 * DAY + MINUTE]);
    expect(followPath([], [afterGap, late]).durations).toHaveLength(2);
  });

  it('ends with the job', () => {
    for (const type of ['job.closed', 'job.cancelled', 'job.unavailable', 'job.reopened']) {
      const { path, durations } = followPath([], [...life.slice(0, 2), event(type, 'Print', [DAY, 2 * DAY])]);
      expect(path).toEqual([]);
      expect(durations.map(({ kind }) => kind)).toEqual(['stay']);
    }
  });
});

describe('the risk of a job', () => {
  it(`is unknown with fewer than ${MIN_JOBS} jobs, without a due date, and without a known beginning`, () => {
    const input = entered(START + DAY, remaining(...repeat(MIN_JOBS - 1, HOUR)));
    expect(assessRisk(input, START)).toMatchObject({ level: 'unknown', why: 'too-few-jobs' });
    const enough = entered(START + DAY, remaining(...repeat(MIN_JOBS, HOUR)));
    expect(assessRisk(enough, START)).toMatchObject({ level: 'on-track', leftMs: DAY });
    expect(assessRisk({ ...enough, dueAt: undefined }, START)).toMatchObject({ why: 'no-due-date' });
    expect(assessRisk({ ...enough, entry: undefined }, START)).toMatchObject({ why: 'entry-not-observed' });
  });

  it('is at-risk if more than a quarter of the comparable jobs needed longer than the time left', () => {
    const quarter = remaining(...repeat(15, DAY), ...repeat(5, 5 * DAY));
    expect(assessRisk(entered(START + 3 * DAY, quarter), START)).toMatchObject({
      level: 'on-track',
      remaining: { jobs: 20, longer: 5 },
    });
    const more = remaining(...repeat(14, DAY), ...repeat(6, 5 * DAY));
    expect(assessRisk(entered(START + 3 * DAY, more), START)).toMatchObject({
      level: 'at-risk',
      remaining: { jobs: 20, longer: 6 },
    });
  });

  it('compares with jobs that were as long in the status: of the time that passed, none is counted twice', () => {
    const histogram = remaining(...repeat(30, DAY), ...repeat(15, 5 * DAY));
    const risk = assessRisk(entered(START + 3 * DAY, histogram), START + 2 * DAY);
    expect(risk).toMatchObject({ level: 'at-risk', remaining: { jobs: 15, longer: 15 } });
    const left = risk.level === 'at-risk' ? risk.remaining.p50 / DAY : 0;
    expect(left).toBeGreaterThan(3);
    expect(left).toBeLessThan(4);
  });

  it('treats a job that is slower than nearly all others as if its stay began now', () => {
    const histogram = remaining(...repeat(30, 2 * DAY));
    const input = entered(START + 10 * DAY, histogram);
    expect(assessRisk(input, START + 5 * DAY)).toMatchObject({ level: 'on-track', remaining: { jobs: 30 } });
    expect(assessRisk(input, START + 9 * DAY)).toMatchObject({ level: 'at-risk', remaining: { longer: 30 } });
  });

  it('is at-risk once the due time has passed, until the job was observed to be late', () => {
    const histogram = remaining(...repeat(20, HOUR));
    expect(assessRisk(entered(START + DAY, histogram), START + DAY + HOUR)).toMatchObject({
      level: 'at-risk',
      leftMs: -HOUR,
    });
  });

  it('is unknown if it depends on when the stay began', () => {
    const histogram = remaining(...repeat(20, 2 * DAY), ...repeat(20, 4 * DAY));
    const due = START + 3 * DAY;
    expect(assessRisk(entered(due, histogram), START)).toMatchObject({ level: 'at-risk' });
    expect(assessRisk(entered(due, histogram, 2 * DAY), START)).toMatchObject({
      ...{ level: 'unknown', why: 'entry-too-vague' },
    });
  });
});

describe('the time at which a job is at risk', () => {
  it('is the first at which its risk is at-risk, for any history', () => {
    for (let seed = 1; seed <= 60; seed += 1) {
      const below = (n: number) => (((seed * 7919 + n * 104_729) % 9973) / 9973) * n;
      const ms = Array.from({ length: 25 }, (_, n) => HOUR + below(n + 2) * 6 * HOUR);
      const input = entered(START + (20 + seed * 3) * HOUR, remaining(...ms), (seed % 3) * HOUR);
      const found = findRiskTime(input, START);
      const dueAt = input.dueAt ?? 0;
      for (let at = START; at < Math.min(found ?? dueAt, dueAt); at += 10 * MINUTE) {
        expect(assessRisk(input, at).level, `seed ${seed}`).not.toBe('at-risk');
      }
      if (found !== undefined) expect(assessRisk(input, found).level).toBe('at-risk');
    }
  });

  it('is now for a job that is at risk already', () => {
    expect(findRiskTime(entered(START + HOUR, remaining(...repeat(20, DAY))), START)).toBe(START);
  });
});
