/** States and messages of alert rules, minute by minute. */
import { describe, expect, it } from 'vitest';
import type { QuietHours } from '../../shared/alerts/rule-input.ts';
import {
  type AlertState,
  advance,
  clearFailures,
  INITIAL_STATE,
  isQuiet,
  recordFailure,
} from '../../shared/alerts/state.ts';

const MINUTE = 60_000;
const START = Date.parse('2026-03-02T12:00:00Z');
const RULE = {
  ...{ threshold: 5, forMinutes: 0, repeatMinutes: null, notifyResolved: true, quietHours: null },
};
type Rule = Parameters<typeof advance>[0];

/** Evaluates a rule once a minute with the values. Returns the statuses with the messages: `firing!` is a message that it fires. */
function play(rule: Partial<Rule>, values: readonly (number | null)[], from: Partial<AlertState> = {}) {
  let state: AlertState = { ...INITIAL_STATE, ...from };
  const log = values.map((value, minute) => {
    const result = advance({ ...RULE, ...rule }, state, value, START + minute * MINUTE);
    state = result.report === null ? result.state : clearFailures(result.state);
    return result.report === null ? state.status : `${result.report}!`;
  });
  return { log, state };
}

describe('a rule', () => {
  it('fires if the value is greater than the threshold, not if it is equal', () => {
    expect(play({}, [5, 6, 7, 5, 5]).log).toEqual(['ok', 'firing!', 'firing', 'resolved!', 'ok']);
  });

  it('fires only after the value was greater for the whole duration', () => {
    const rule = { forMinutes: 2 };
    expect(play(rule, [6, 6, 6, 6]).log).toEqual(['pending', 'pending', 'firing!', 'firing']);
    expect(play(rule, [6, 6, 5, 6, 6]).log).toEqual(['pending', 'pending', 'ok', 'pending', 'pending']);
  });

  it('keeps its state while the value is not known', () => {
    expect(play({ forMinutes: 1 }, [6, null, 6, null]).log).toEqual([
      ...['pending', 'pending', 'firing!', 'firing'],
    ]);
  });

  it('sends reminders at the interval while it fires', () => {
    const rule = { repeatMinutes: 2 };
    expect(play(rule, [6, 6, 6, 6, 6, 0, 0]).log).toEqual([
      ...['firing!', 'firing', 'reminder!', 'firing', 'reminder!', 'resolved!', 'ok'],
    ]);
  });

  it('does not report its end if that is off, and fires again later', () => {
    const { log } = play({ notifyResolved: false }, [6, 0, 6]);
    expect(log).toEqual(['firing!', 'ok', 'firing!']);
  });

  it('sends nothing twice after a restart in any state', () => {
    const { state } = play({}, [6]);
    const restored = JSON.parse(JSON.stringify(state)) as AlertState;
    expect(play({}, [6, 6], restored).log).toEqual(['firing', 'firing']);
  });
});

describe('a message that is not accepted', () => {
  const fail = (before: AlertState, value: number, at: number) => {
    const { state, report } = advance(RULE, before, value, at);
    if (report === null) throw new Error('No message is due.');
    return recordFailure(state, before, report, { problem: 'Status 500.', now: at });
  };

  it('is sent again after increasing delays, as long as it is true', () => {
    let state = fail({ ...INITIAL_STATE }, 6, START);
    expect(state).toMatchObject({ announced: false, sentAt: null, problem: 'Status 500.', failures: 1 });
    expect(advance(RULE, state, 6, START + MINUTE - 1).report).toBeNull();
    state = fail(state, 6, START + MINUTE);
    expect(advance(RULE, state, 6, START + 2 * MINUTE).report).toBeNull();
    const retried = advance(RULE, state, 6, START + 6 * MINUTE);
    expect(retried.report).toBe('firing');
    expect(clearFailures(retried.state)).toMatchObject({ announced: true, problem: null, failures: 0 });
  });

  it('is not followed by a report of the end if the alert was never reported', () => {
    const state = fail({ ...INITIAL_STATE }, 6, START);
    expect(advance(RULE, state, 0, START + 10 * MINUTE).report).toBeNull();
  });

  it('does not delay the message about a later alert', () => {
    let state = { ...INITIAL_STATE };
    for (let n = 0; n < 5; n += 1) state = fail(state, 6, START + n * 100 * MINUTE);
    const at = START + 401 * MINUTE;
    state = advance(RULE, state, 0, at).state;
    expect(state).toMatchObject({ status: 'ok', problem: 'Status 500.' });
    expect(advance(RULE, state, 6, at + MINUTE).report).toBe('firing');
  });

  it('does not delay the report of the end', () => {
    const rule = { ...RULE, repeatMinutes: 1 };
    const before = advance(rule, play(rule, [6]).state, 6, START + MINUTE).state;
    const state = recordFailure(before, before, 'reminder', { problem: 'Status 500.', now: START + MINUTE });
    expect(advance(rule, state, 0, START + MINUTE + 1).report).toBe('resolved');
  });

  it('is given up after five attempts if it reports the end', () => {
    let { state } = play({}, [6]);
    for (let n = 1; n <= 5; n += 1) state = fail(state, 0, START + n * 100 * MINUTE);
    expect(state).toMatchObject({ announced: false, failures: 0 });
    expect(advance(RULE, state, 0, START + 1000 * MINUTE).report).toBeNull();
  });
});

const quiet = (more: Partial<QuietHours>): QuietHours => ({
  ...{ zone: 'UTC', from: '12:01', to: '12:04', action: 'defer' },
  days: ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'],
  ...more,
});

describe('quiet hours', () => {
  it('defer the report of an alert that still fires afterwards', () => {
    const rule = { quietHours: quiet({}) };
    expect(play(rule, [0, 6, 6, 6, 6]).log).toEqual(['ok', 'firing', 'firing', 'firing', 'firing!']);
  });

  it('report nothing of an alert that began and ended within them', () => {
    expect(play({ quietHours: quiet({}) }, [0, 6, 6, 0, 0]).log).toEqual([
      ...['ok', 'firing', 'firing', 'ok', 'ok'],
    ]);
  });

  it('defer the report of the end of an alert, unless it fires again', () => {
    const rule = { quietHours: quiet({}) };
    expect(play(rule, [6, 0, 0, 0, 0]).log).toEqual(['firing!', 'ok', 'ok', 'ok', 'resolved!']);
    expect(play(rule, [6, 0, 0, 6, 6]).log).toEqual(['firing!', 'ok', 'ok', 'firing', 'firing']);
  });

  it('drop reports, also later, but not reminders after them', () => {
    const rule = { quietHours: quiet({ action: 'drop' }) };
    expect(play(rule, [0, 6, 6, 6, 6, 0]).log).toEqual([
      ...['ok', 'firing', 'firing', 'firing', 'firing', 'resolved!'],
    ]);
    expect(play({ ...rule, repeatMinutes: 4 }, [0, 6, 6, 6, 6, 6]).log.at(-1)).toBe('reminder!');
  });

  const at = (time: string): number => Date.parse(time);
  const night = quiet({ zone: 'Europe/London', from: '22:00', to: '06:00', days: ['sat'] });

  it.each([
    ['2026-03-07T21:59:59Z', false],
    ['2026-03-07T22:00:00Z', true],
    ['2026-03-08T05:59:59Z', true],
    ['2026-03-08T06:00:00Z', false],
    // Sunday night: only those that begin on a Saturday.
    ['2026-03-08T23:00:00Z', false],
  ])('begin on their days, and end on the next one: %s', (time, expected) => {
    expect(isQuiet(night, at(time))).toBe(expected);
  });

  it.each([
    // Clocks go forward on 29 March at 01:00 UTC: 06:00 local time is 05:00 UTC.
    ['2026-03-28T22:00:00Z', true],
    ['2026-03-29T04:59:59Z', true],
    ['2026-03-29T05:00:00Z', false],
    // Clocks go back on 25 October at 01:00 UTC: 22:00 is 21:00 UTC, and 06:00 is 06:00 UTC.
    ['2026-10-24T20:59:59Z', false],
    ['2026-10-24T21:00:00Z', true],
    ['2026-10-25T05:59:59Z', true],
    ['2026-10-25T06:00:00Z', false],
  ])('follow the clock of their zone when it changes: %s', (time, expected) => {
    expect(isQuiet(night, at(time))).toBe(expected);
  });

  it('last a whole day if they begin and end at the same time', () => {
    const weekend = quiet({ from: '00:00', to: '00:00', days: ['sat', 'sun'] });
    const times = [
      '2026-03-06T23:59:00Z',
      '2026-03-07T00:00:00Z',
      '2026-03-08T23:59:00Z',
      '2026-03-09T00:00:00Z',
    ];
    expect(times.map((time) => isQuiet(weekend, at(time)))).toEqual([false, true, true, false]);
  });

  it('do not exist for a rule without them', () => {
    expect(isQuiet(null, START)).toBe(false);
  });
});
