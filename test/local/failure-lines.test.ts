/** Lines on stderr about failing polls, deliveries and e-mails. */
import { describe, expect, it } from 'vitest';
import { createFailureLines } from '../../local/failure-lines.ts';

function start() {
  const lines: string[] = [];
  const failures = createFailureLines((line) => lines.push(line));
  return { lines, ...failures };
}

describe('an account', () => {
  const acme = { region: 'us', account: 'acme' };
  const problem =
    'The ordering API is not at this address (HTTP 404). Check the path of baseUrl of region "us".';
  const failed = { ...acme, outcome: 'failed', state: 'tracking', problem } as const;
  const complete = { ...acme, outcome: 'complete', state: 'tracking' } as const;

  it('has one line when its polls begin to fail, and one when they succeed again', () => {
    const { lines, onPoll } = start();
    for (const report of [complete, failed, failed, failed, complete, complete, failed]) onPoll(report);
    expect(lines).toEqual([
      `Polls of the account us/acme fail: ${problem}`,
      'Polls of the account us/acme succeed again.',
      `Polls of the account us/acme fail: ${problem}`,
    ]);
  });

  it('has no line for single incomplete, skipped or superseded polls', () => {
    const { lines, onPoll } = start();
    onPoll({ ...acme, outcome: 'partial', state: 'tracking', problem });
    onPoll({ ...acme, outcome: 'skipped', problem });
    onPoll({ ...acme, outcome: 'fenced' });
    expect(lines).toEqual([]);
    onPoll({ ...acme, outcome: 'partial', state: 'failing', problem });
    expect(lines).toHaveLength(1);
    onPoll({ ...acme, outcome: 'partial', state: 'failing', problem });
    expect(lines).toHaveLength(1);
  });

  it('has a line without control characters and without e-mail addresses', () => {
    const { lines, onPoll } = start();
    onPoll({ ...failed, problem: 'Rejected\u001b[31m\n for <ann@example.com>' });
    expect(lines[0]).toMatch(/^Polls of the account us\/acme fail: Rejected/);
    expect(lines[0]).not.toMatch(/[\p{Cc}]|ann@|example/u);
  });
});

describe('an endpoint', () => {
  const erp = { region: 'us', sink: 'erp', delivered: 0, failed: 0 };
  const waiting = {
    ...erp,
    outcome: 'waiting',
    problem: 'The endpoint responded with status 503.',
    waitUntil: Date.parse('2026-03-02T08:00:05Z'),
  } as const;
  const drained = { ...erp, outcome: 'drained' } as const;

  it('has one line when deliveries begin to fail, when it is disabled, and when they succeed again', () => {
    const { lines, onDrain } = start();
    for (const report of [{ ...drained, delivered: 3 }, waiting, waiting, drained]) onDrain(report);
    for (const n of [1, 2])
      onDrain({ ...erp, outcome: 'disabled', problem: `All deliveries failed for ${n} days` });
    onDrain({ ...drained, delivered: 1 });
    onDrain({ ...drained, delivered: 1 });
    expect(lines).toEqual([
      'Deliveries to the endpoint us/erp fail: The endpoint responded with status 503. The next attempt is at 2026-03-02T08:00:05Z.',
      'Deliveries to the endpoint us/erp are disabled: All deliveries failed for 1 days.',
      'Deliveries to the endpoint us/erp succeed again.',
    ]);
  });

  it('has one line when deliveries fail again in the drains in which they succeeded again', () => {
    const { lines, onDrain } = start();
    for (const delivered of [0, 0, 2, 3, 0, 1]) onDrain({ ...waiting, delivered, failed: 1 });
    expect(lines).toEqual([
      expect.stringMatching(/^Deliveries to the endpoint us\/erp fail: /),
      'Deliveries to the endpoint us/erp fail again after 2 delivered events: The endpoint responded with status 503. The next attempt is at 2026-03-02T08:00:05Z.',
    ]);
  });

  it('has a line when one event fails and others are delivered', () => {
    const { lines, onAttempt, onDrain } = start();
    const reason = 'The endpoint responded with status 500.';
    onAttempt({ region: 'us', sink: 'erp', outcome: 'retry', cause: 'parked', reason });
    onAttempt({ region: 'us', sink: 'erp', outcome: 'delivered', cause: 'live' });
    onDrain({ ...drained, delivered: 1, failed: 1 });
    expect(lines).toEqual([`The endpoint us/erp rejects events, which are parked: ${reason}`]);
  });

  it('has no line about parked events if only a replay sent events that it rejects', () => {
    const { lines, onAttempt, onDrain } = start();
    const reason = 'The endpoint responded with status 422.';
    onAttempt({ region: 'us', sink: 'erp', outcome: 'rejected', cause: 'replay', reason });
    onDrain({ ...drained, delivered: 1, failed: 1 });
    expect(lines).toEqual([]);
    onAttempt({ region: 'us', sink: 'erp', outcome: 'rejected', cause: 'live', reason });
    onDrain({ ...drained, failed: 1 });
    expect(lines).toHaveLength(1);
  });

  it('has one line when it begins to reject events, with the reason', () => {
    const { lines, onAttempt, onDrain } = start();
    const attempt = { region: 'us', sink: 'erp', outcome: 'rejected', cause: 'live' } as const;
    for (const _ of [1, 2]) {
      onAttempt({ ...attempt, reason: 'The endpoint responded with status 422.' });
      onDrain({ ...drained, failed: 1, delivered: 4 });
    }
    onDrain({ ...drained, delivered: 4 });
    expect(lines).toEqual([
      'The endpoint us/erp rejects events, which are parked: The endpoint responded with status 422.',
      'Deliveries to the endpoint us/erp succeed again.',
    ]);
  });
});

describe('the tables', () => {
  it('have one line when writes begin to fail, and one when they succeed again', () => {
    const { lines, onWrite } = start();
    const full = 'the disk is full (SQLITE_FULL)';
    for (const fault of [undefined, full, full, undefined, undefined, full]) onWrite(fault);
    const fail = `Writes to the tables fail: ${full}. Polls and deliveries wait.`;
    expect(lines).toEqual([fail, 'Writes to the tables succeed again.', fail]);
  });
});

describe('the mail server', () => {
  const down = {
    kind: 'later',
    reason: 'The mail server rejected the login (535 5.7.8).',
    everything: true,
  } as const;
  const accepted = { kind: 'accepted', providerId: null } as const;

  it('has one line when e-mails can’t be sent, and one when they are sent again', () => {
    const { lines, onMail } = start();
    for (const outcome of [accepted, down, down, accepted, accepted, down]) onMail(outcome);
    const warning =
      'Warning: e-mails can’t be sent. The mail server rejected the login (535 5.7.8). E-mails wait until the mail server accepts them.';
    expect(lines).toEqual([warning, 'E-mails are sent again.', warning]);
  });

  it('has no line for an outcome that concerns one e-mail', () => {
    const { lines, onMail } = start();
    const reason = 'The address does not exist (550 5.1.1).';
    onMail({ kind: 'rejected', reason });
    onMail({ ...down, everything: false });
    onMail({ kind: 'unknown', reason });
    expect(lines).toEqual([]);
  });

  it('has one line for a problem that the check at the start and the first e-mail find', () => {
    const { lines, onMail, onMailCheck } = start();
    onMailCheck('The mail server mail.acme.example:587 does not respond in time.');
    onMail(down);
    expect(lines).toHaveLength(1);
    const later = start();
    later.onMail(accepted);
    later.onMailCheck('The mail server mail.acme.example:587 does not respond in time.');
    expect(later.lines).toEqual([]);
  });
});

describe('the SMS service', () => {
  const down = { kind: 'later', reason: 'SNS could not be reached.', everything: true } as const;
  const accepted = { kind: 'accepted', providerId: null } as const;

  it('has one line when SMS can’t be sent, and one when they are sent again, independent of e-mails', () => {
    const { lines, onSms, onSmsCheck, onMail } = start();
    onSmsCheck('No AWS credentials for Amazon SNS were found.');
    onMail(accepted);
    for (const outcome of [down, down, accepted, accepted, down]) onSms(outcome);
    const wait = 'SMS wait until Amazon SNS accepts them.';
    expect(lines).toEqual([
      `Warning: SMS can’t be sent. No AWS credentials for Amazon SNS were found. ${wait}`,
      'SMS are sent again.',
      `Warning: SMS can’t be sent. SNS could not be reached. ${wait}`,
    ]);
  });
});

describe('an alert rule', () => {
  it('has one line when its messages begin to fail, and one when they are sent again', () => {
    const { lines, onAlert } = start();
    const late = { region: 'us', id: 'late' };
    const problem = 'The endpoint responded with status 500.';
    for (const result of [null, problem, problem, null, null]) onAlert(late, result);
    onAlert({ ...late, id: 'dead' }, problem);
    expect(lines).toEqual([
      `Messages of the alert rule us/late can’t be sent: ${problem}`,
      'Messages of the alert rule us/late are sent again.',
      `Messages of the alert rule us/dead can’t be sent: ${problem}`,
    ]);
  });
});
