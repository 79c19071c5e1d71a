/** The window of a cursor: which events may be taken, and up to where all are done (shared/delivery/window.ts). */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CursorWindow, getLane } from '../../shared/delivery/window.ts';
import type { LoggedEvent } from '../../shared/log/log.ts';
import { runs } from '../support/runs.ts';

/** An event of a job, or of the account for job 0. */
function createEvent(sequence: number, job: number): LoggedEvent {
  return {
    id: `acme.e1.${sequence}`,
    account: 'acme',
    region: 'us',
    sequence,
    type: 'job.status_changed',
    ...(job === 0 ? {} : { jobNumber: job }),
    time: 0,
    json: '{}',
  };
}

/** Events of these jobs, in order, after a position. */
function createEvents(jobs: readonly number[], position = 0): LoggedEvent[] {
  return jobs.map((job, at) => createEvent(position + at + 1, job));
}

const all = (): boolean => true;
const getSequence = (event: LoggedEvent | undefined): number | undefined => event?.sequence;

/** Takes and settles the remaining events; returns the sequences in the order taken. */
function takeAll(window: CursorWindow): number[] {
  const taken: number[] = [];
  for (let event = window.take(); event; event = window.take()) {
    taken.push(event.sequence);
    window.settle(event);
  }
  return taken;
}

test('events that become done are counted: those that are not wanted, and those after an event that is not done', () => {
  const window = new CursorWindow(0, '2');
  window.add(createEvents([1, 2, 3, 4]), ({ sequence }) => sequence !== 3);
  expect([window.position, window.doneCount]).toEqual([0, 1]);
  const [first, fourth] = [window.take(), window.take()];
  if (fourth) window.settle(fourth);
  expect([window.position, window.ahead, window.doneCount]).toEqual([0, '2-4', 2]);
  if (first) window.settle(first);
  expect([window.position, window.doneCount]).toEqual([4, 3]);
});

describe('lanes', () => {
  test('are the jobs; events without a job share one', () => {
    expect(getLane({ jobNumber: 12 })).toBe('12');
    expect(getLane({})).toBe('account');
  });

  test('are concurrent, each one event at a time and in order, in the order in which they were read', () => {
    const window = new CursorWindow(0);
    window.add(createEvents([1, 1, 2, 0, 0]), all);
    expect(window.waiting).toBe(5);
    const [one, three, four] = [window.take(), window.take(), window.take()];
    expect([one, three, four].map(getSequence)).toEqual([1, 3, 4]);
    expect(window.waiting).toBe(2);
    expect(window.take(), 'every lane is busy').toBeUndefined();
    if (four) window.settle(four);
    expect(getSequence(window.take())).toBe(5);
    if (one) window.settle(one);
    expect(getSequence(window.take())).toBe(2);
    expect(window.waiting).toBe(0);
  });

  test('events beyond a sequence stay, those of other lanes are taken', () => {
    const window = new CursorWindow(0);
    window.add(createEvents([1, 1, 2, 3]), all);
    const [one, three] = [window.take(undefined, 3), window.take(undefined, 3)];
    expect([one, three].map(getSequence)).toEqual([1, 3]);
    if (one) window.settle(one);
    expect(getSequence(window.take(undefined, 1)), 'both that are left are beyond').toBeUndefined();
    expect(getSequence(window.take(undefined, 2))).toBe(2);
    expect(getSequence(window.take())).toBe(4);
  });

  test('a finished one is behind the waiting ones when it has a new event', () => {
    const window = new CursorWindow(0);
    window.add(createEvents([1, 2, 3]), all);
    const one = window.take();
    window.add([createEvent(4, 1)], all);
    if (one) window.settle(one);
    expect(takeAll(window)).toEqual([2, 3, 4]);
  });

  test('an event put back is the first of its lane again, with and without others behind it', () => {
    const window = new CursorWindow(0);
    window.add(createEvents([1, 1, 2]), all);
    const [one, three] = [window.take(), window.take()];
    if (one) window.putBack(one);
    if (three) window.putBack(three);
    expect(window.waiting).toBe(3);
    expect(window.isDone).toBe(false);
    expect(takeAll(window)).toEqual([1, 2, 3]);
    expect(window.position).toBe(3);
  });

  test('an avoided event delays its lane and no other', () => {
    const window = new CursorWindow(0);
    window.add(createEvents([1, 1, 2]), all);
    const avoid = new Set(['acme.e1.1']);
    expect(getSequence(window.take(avoid))).toBe(3);
    expect(window.take(avoid)).toBeUndefined();
    expect(window.waiting).toBe(2);
    expect(getSequence(window.take(new Set(['acme.e1.2'])))).toBe(1);
  });
});

describe('the position', () => {
  test('is the last one below which all is done, for any order of completion', () => {
    const window = new CursorWindow(4);
    expect([window.position, window.readTo, window.isDone]).toEqual([4, 4, true]);
    window.add(createEvents([1, 2, 3], 4), all);
    expect([window.position, window.readTo, window.isDone]).toEqual([4, 7, false]);
    const taken = [window.take(), window.take(), window.take()];
    const settle = (at: number): number => {
      const event = taken[at];
      if (event) window.settle(event);
      return window.position;
    };
    expect([settle(1), settle(2), settle(0)]).toEqual([4, 4, 7]);
    expect(window.isDone).toBe(true);
  });

  test('skips filtered events, and counts them', () => {
    const window = new CursorWindow(0);
    const wanted = ({ jobNumber }: LoggedEvent): boolean => jobNumber === 2;
    expect(window.add(createEvents([1, 1, 2, 1]), wanted)).toBe(3);
    expect([window.position, window.readTo, window.waiting]).toEqual([2, 4, 1]);
    expect(takeAll(window)).toEqual([3]);
    expect(window.position).toBe(4);
    expect(window.add([], wanted)).toBe(0);
  });
});

describe('a window of events that are not adjacent', () => {
  test('moves to before the first that is not done, and to the end of what was read', () => {
    const window = new CursorWindow(2);
    window.add([createEvent(5, 1), createEvent(9, 2), createEvent(20, 3)], all);
    window.readThrough(30);
    expect([window.position, window.readTo, window.size]).toEqual([4, 30, 3]);
    const [five, nine, twenty] = [window.take(), window.take(), window.take()];
    if (nine) window.settle(nine);
    expect([window.position, window.size, window.ahead]).toEqual([4, 3, '9']);
    if (five) window.settle(five);
    expect([window.position, window.size, window.isDone]).toEqual([19, 1, false]);
    if (twenty) window.settle(twenty);
    expect([window.position, window.size, window.isDone]).toEqual([30, 0, true]);
    window.readThrough(10);
    expect([window.position, window.readTo]).toEqual([30, 30]);
    window.readThrough(40);
    expect(window.position, 'nothing was read').toBe(40);
  });
});

describe('events done ahead of the position', () => {
  test('are stored as ranges and read back', () => {
    const window = new CursorWindow(0);
    window.add(createEvents([1, 2, 3, 4, 5, 6, 7]), all);
    const events = Array.from({ length: 7 }, () => window.take());
    expect(window.ahead).toBe('');
    for (const at of [6, 1, 3, 2]) {
      const event = events[at];
      if (event) window.settle(event);
    }
    expect([window.position, window.ahead]).toEqual([0, '2-4,7']);
    const again = new CursorWindow(window.position, window.ahead);
    expect(again.ahead, 'before anything is read').toBe('2-4,7');
    expect(again.isDone).toBe(true);
    expect(again.add(createEvents([1, 2, 3, 4, 5, 6, 7]), all), 'they are not counted as unwanted').toBe(0);
    expect(again.waiting).toBe(3);
    expect(takeAll(again)).toEqual([1, 5, 6]);
    expect([again.position, again.ahead]).toEqual([7, '']);
  });

  test('are kept over a page that does not reach them', () => {
    const window = new CursorWindow(10, '12,110-112');
    window.add(createEvents([1, 1, 1], 10), all);
    expect(window.ahead).toBe('12,110-112');
    expect(takeAll(window)).toEqual([11, 13]);
    expect([window.position, window.ahead]).toEqual([13, '110-112']);
  });

  test('are omitted up to the position', () => {
    expect(new CursorWindow(4, '2-5,7').ahead).toBe('5,7');
  });

  test.each([
    ['', 9, { first: 5, last: 9, count: 5 }],
    ['5,7,9-12', 9, { first: 6, last: 8, count: 2 }],
    ['6-8,10', 9, { first: 5, last: 9, count: 2 }],
    ['5-9', 9, { count: 0 }],
    ['', 4, { count: 0 }],
    ['', 3, { count: 0 }],
  ])('are not missing: of 5 to 9 with %j and last %i', (ahead, last, missing) => {
    expect(new CursorWindow(4, ahead).findMissing(last)).toMatchObject(missing);
  });

  test.each(['', '0', 'x', ',', '-'])('are none in %j', (text) => {
    const window = new CursorWindow(0, text);
    expect(window.ahead).toBe('');
    window.add(createEvents([1, 2]), all);
    expect(takeAll(window)).toEqual([1, 2]);
  });
});

/** One step with a window. */
const step = () =>
  fc.oneof(
    { weight: 2, arbitrary: fc.record({ add: fc.array(fc.nat(4), { maxLength: 12 }) }) },
    { weight: 6, arbitrary: fc.record({ take: fc.array(fc.nat(40), { maxLength: 3 }) }) },
    { weight: 5, arbitrary: fc.record({ settle: fc.nat(9) }) },
    { weight: 2, arbitrary: fc.record({ putBack: fc.nat(9) }) },
    { weight: 1, arbitrary: fc.constant({ reopen: true as const }) },
  );

test('for any reads, takes, completions and returns: each lane in order, the position exact, and a reopened window takes exactly the unfinished events', () => {
  fc.assert(
    fc.property(fc.nat(20), fc.array(step(), { maxLength: 80 }), (start, steps) => {
      let window = new CursorWindow(start);
      /** The whole log, and the model: done, in progress, and read by this window. */
      const log: LoggedEvent[] = [];
      const done = new Set<number>();
      const out: LoggedEvent[] = [];
      let readTo = start;
      const wanted = ({ jobNumber }: LoggedEvent): boolean => jobNumber !== 4;
      const read = (events: readonly LoggedEvent[]): void => {
        const news = events.filter(({ sequence }) => !done.has(sequence));
        const unwanted = news.filter((event) => !wanted(event));
        expect(window.add(events, wanted)).toBe(unwanted.length);
        for (const { sequence } of unwanted) done.add(sequence);
        readTo = events.at(-1)?.sequence ?? readTo;
      };
      const position = (): number => {
        let last = start;
        while (done.has(last + 1) && last < readTo) last += 1;
        return last;
      };
      const free = (avoid: ReadonlySet<string>): LoggedEvent[] => {
        const waits = log.filter(
          (event) => event.sequence <= readTo && !done.has(event.sequence) && !out.includes(event),
        );
        const busy = new Set(out.map(getLane));
        return waits.filter(
          (event) =>
            !busy.has(getLane(event)) &&
            waits.find((other) => getLane(other) === getLane(event)) === event &&
            !avoid.has(event.id),
        );
      };
      for (const one of steps) {
        if ('add' in one) {
          const events = createEvents(one.add, start + log.length);
          log.push(...events);
          read(log.filter(({ sequence }) => sequence > readTo));
        } else if ('take' in one) {
          const avoid = new Set(one.take.map((at) => `acme.e1.${start + at}`));
          const may = free(avoid);
          const event = window.take(avoid);
          if (event) {
            expect(may).toContain(event);
            out.push(event);
          } else expect(may).toEqual([]);
        } else if ('settle' in one || 'putBack' in one) {
          const [event] = out.splice(('settle' in one ? one.settle : one.putBack) % (out.length || 1), 1);
          if (event && 'settle' in one) {
            done.add(event.sequence);
            window.settle(event);
          } else if (event) window.putBack(event);
        } else {
          // As stored; then a part of the log is read again.
          const stored = position();
          window = new CursorWindow(stored, window.ahead);
          out.length = 0;
          readTo = stored;
          read(log.filter(({ sequence }) => sequence > stored && sequence <= stored + 5));
        }
        expect(window.position).toBe(position());
        expect(window.readTo).toBe(readTo);
        expect(window.isDone).toBe(position() === readTo);
        const left = log.filter(({ sequence }) => sequence <= readTo && !done.has(sequence));
        expect(window.waiting).toBe(left.length - out.length);
      }
      for (const event of out) window.putBack(event);
      read(log.filter(({ sequence }) => sequence > readTo));
      const left = log.filter(({ sequence }) => !done.has(sequence)).map(({ sequence }) => sequence);
      expect(takeAll(window).sort((a, b) => a - b)).toEqual(left);
      expect([window.position, window.ahead]).toEqual([start + log.length, '']);
    }),
    runs(300, 300),
  );
});
