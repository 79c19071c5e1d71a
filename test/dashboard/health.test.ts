/** Labels, order and summary of the states of accounts and endpoints in the dashboard. */

import { expect, test } from 'vitest';
import type { Client } from '../../client/index.ts';
import { formatCommand, previewBulk, runBatches } from '../../dashboard/src/bulk/actions.ts';
import { listEndpointActions } from '../../dashboard/src/bulk/resource-actions.ts';
import { listUnobserved } from '../../dashboard/src/counted-accounts.ts';
import * as rules from '../../dashboard/src/health/status.ts';
import { formatPercent, matchesQuery, splitUrl } from '../../dashboard/src/texts.ts';
import { type AccountReport, AccountState, PollRecord } from '../../shared/accounts/account-views.ts';
import { withEventDefaults } from '../../shared/accounts/event-settings.ts';
import { Delivery, Endpoint, EndpointHealth, Replay } from '../../shared/delivery/endpoint-views.ts';

const NOW = Date.parse('2026-03-02T12:00:00Z');
const ago = (seconds: number) => new Date(NOW - seconds * 1_000).toISOString();

function account(
  id: string,
  change: Partial<AccountReport> | null = {},
  record: Partial<rules.Account> = {},
): rules.Account {
  const status: AccountReport = {
    state: 'tracking',
    lastPollAt: ago(10),
    nextPollAt: ago(-110),
    pollMs: { last: 900, median: 800, slowest: 4_000 },
    observedThrough: ago(10),
    consecutiveFailures: 0,
    openJobs: 40,
    unreadJobs: 0,
    truncatedJobs: 0,
    head: 'e1.40',
    problem: null,
    missingJobs: { pending: 0, suspected: 0, contradictory: 0 },
    quarantinedAt: null,
    ...change,
  };
  return {
    ...{ id, region: 'us', managed: true, secretRef: null, pollIntervalSeconds: 120, paused: false },
    ...{ events: withEventDefaults({}), move: null, createdAt: null, changedAt: null, revision: 1 },
    status: change === null ? null : status,
    ...record,
  };
}

function endpoint(id: string, change: Partial<rules.Endpoint> = {}): rules.Endpoint {
  return {
    ...{ id, region: 'us', kind: 'webhook', url: 'https://erp.example.com/', state: 'active', paused: false },
    ...{ accounts: [], types: [], orderGroups: [], origins: [], jobFields: {}, headers: [] },
    ...{ concurrency: null, ratePerSecond: null, description: null, managed: true, revision: 1 },
    ...{ createdAt: null, changedAt: null },
    ...change,
  };
}

function health(change: Partial<rules.Health> = {}): rules.Health {
  return {
    ...{ state: 'active', waitUntil: null, problem: null, failingSince: null, disabledAt: null },
    ...{ lastDeliveredAt: ago(5), lastFailedAt: null, lost: 0, dead: 0 },
    parked: { count: 0, oldestAt: null },
    backlog: { events: 0, oldestAt: null, accounts: [], complete: true },
    statistics: { attempts: 9, delivered: 9, successRate: 1, p50Ms: 20, p95Ms: 80, lastError: null },
    ...change,
  };
}

const span = (ms: number) => `${ms} ms`;

const poll = (change: Partial<PollRecord> = {}): PollRecord => ({
  ...{ startedAt: ago(10), ms: 1_000, outcome: 'complete', requests: 2, events: 0, problem: null },
  ...change,
});

const region = (id: string, state: 'ok' | 'outage') => ({ id, state });

test('every account state has its own label, and every state that requires action has advice', () => {
  const states = AccountState.options.map((state) => rules.toAccountState(account('acme', { state }), NOW));
  expect(new Set(states.map(({ label }) => label)).size).toBe(states.length);
  for (const { label, tone, meaning: means, advice: act } of states) {
    expect(label).not.toMatch(/_/);
    expect(means).toMatch(/\.$/);
    expect(act !== undefined, label).toBe(tone === 'bad');
  }
  expect(rules.toAccountState(account('acme', null), NOW).label).toBe('Creating');
  const rejected = account('acme', { state: 'credentials_rejected' });
  const advice = (managed: boolean) => rules.toAccountState({ ...rejected, managed }, NOW).advice;
  expect(advice(true)).toContain('enter them in Settings');
  expect(advice(false)).toContain('set them in the configuration file');
});

test('every endpoint state, attempt outcome, attempt cause, poll outcome and replay state has a label', () => {
  for (const state of Endpoint.shape.state.options) {
    expect(EndpointHealth.shape.state.options).toContain(state);
    const { tone, advice } = rules.toEndpointState({ state }, undefined, NOW);
    expect(advice !== undefined).toBe(tone === 'bad');
  }
  expect(Object.keys(rules.ATTEMPT_OUTCOMES)).toEqual(Delivery.shape.outcome.options);
  expect(Object.keys(rules.ATTEMPT_CAUSES)).toEqual(Delivery.shape.cause.options);
  expect(Object.keys(rules.POLL_OUTCOMES)).toEqual(PollRecord.shape.outcome.options);
  expect(Object.keys(rules.REPLAY_STATES)).toEqual(Replay.shape.state.options);
});

test('an account is stale two poll intervals and a minute after its last complete observation, and not earlier', () => {
  const seen = (seconds: number, interval = 120, record: Partial<rules.Account> = {}) =>
    rules.staleSince(
      account('acme', { observedThrough: ago(seconds) }, { pollIntervalSeconds: interval, ...record }),
      NOW,
    );
  expect(seen(300)).toBeNull();
  expect(seen(301)).toBe(NOW - 1_000);
  expect(seen(1_000, 600)).toBeNull();
  expect(seen(70, 1)).toBe(NOW - 8_000);
  expect(seen(9_999, 120, { paused: true })).toBeNull();
  expect(rules.staleSince(account('acme', { observedThrough: null }), NOW)).toBeNull();
  expect(rules.staleSince(account('acme', null), NOW)).toBeNull();
});

test('a stale account is labelled Stale instead of Polling, but keeps the label of a more severe state', () => {
  const stale = { observedThrough: ago(3_600) };
  expect(rules.toAccountState(account('acme', stale), NOW)).toMatchObject({
    label: 'Stale',
    tone: 'bad',
  });
  expect(rules.toAccountState(account('acme', { ...stale, state: 'failing' }), NOW).label).toBe('Failing');
});

test('accounts are sorted by severity, then accounts with failed polls, then by region and id', () => {
  const accounts = [
    account('b'),
    account('a', {}, { region: 'nz' }),
    account('paused', { state: 'paused' }, { paused: true }),
    account('once', { consecutiveFailures: 1, problem: 'The ordering API did not respond.' }),
    account('failing', { state: 'failing' }),
    account('stale', { observedThrough: ago(3_600) }),
  ];
  expect(rules.sortAccounts(accounts, NOW).map(({ id }) => id)).toEqual([
    ...['failing', 'stale', 'once', 'paused', 'a', 'b'],
  ]);
});

test('endpoints are sorted by severity of their state, then by id', () => {
  const endpoints = [
    ...[endpoint('b'), endpoint('rests', { state: 'paused' }), endpoint('off', { state: 'disabled' })],
    ...[endpoint('a'), endpoint('fails', { state: 'failing' })],
  ];
  const order = rules.sortEndpoints(endpoints).map(({ id }) => id);
  expect(order).toEqual(['fails', 'off', 'rests', 'a', 'b']);
});

test('the health of an endpoint takes precedence over its state in the list', () => {
  const known: Record<string, rules.Health | undefined> = {
    fails: health({ state: 'failing' }),
    behind: health({ backlog: { events: 4, oldestAt: ago(901), accounts: [], complete: true } }),
    parked: health({ parked: { count: 2, oldestAt: ago(60) } }),
    busy: health({ backlog: { events: 4, oldestAt: ago(899), accounts: [], complete: true } }),
    unknown: undefined,
  };
  const labels = Object.entries(known).map(
    ([id, its]) => rules.toEndpointState(endpoint(id), its, NOW).label,
  );
  expect(labels).toEqual(['Failing', 'Backlog', 'Events parked', 'Active', 'Active']);
});

test('the summary has the tone of the worst state', () => {
  const five = ['a', 'b', 'c', 'd', 'e'].map((id) => account(id));
  const summarize = (
    accounts: readonly rules.Account[],
    endpoints: readonly rules.Endpoint[] | undefined,
    regions: readonly ReturnType<typeof region>[] = [],
    waiting = { dead: 0, parked: 0 },
  ) => Object.values(rules.summarizeHealth(accounts, endpoints, regions, NOW, waiting)).join(' | ');
  expect(summarize(five, [endpoint('erp'), endpoint('crm', { state: 'failing' })])).toBe(
    'All 5 accounts are up to date. 1 endpoint is failing. | bad',
  );
  expect(summarize(five, [endpoint('erp')])).toBe(
    'All 5 accounts are up to date. No endpoint is failing, disabled or paused. | good',
  );
  expect(summarize(five, [])).toBe('All 5 accounts are up to date. | good');
  // Built-in sinks are not counted as endpoints, but their problems are named.
  expect(summarize(five, [endpoint('erp'), endpoint('sns')])).toBe(
    'All 5 accounts are up to date. No endpoint is failing, disabled or paused. | good',
  );
  expect(summarize(five, [endpoint('sns')])).toBe('All 5 accounts are up to date. | good');
  expect(summarize(five, [endpoint('erp'), endpoint('sns', { state: 'failing' })])).toBe(
    'All 5 accounts are up to date. No endpoint is failing, disabled or paused. 1 built-in sink is failing. | bad',
  );
  // An active endpoint can have events that it did not accept.
  expect(summarize(five, [endpoint('erp'), endpoint('crm')], [], { dead: 1, parked: 2 })).toBe(
    'All 5 accounts are up to date. No endpoint is failing, disabled or paused. 1 endpoint has dead events. 2 endpoints have parked events. | bad',
  );
  // The number leaves out those of a failing endpoint.
  expect(summarize(five, [endpoint('crm', { state: 'failing' })], [], { dead: 1, parked: 0 })).toBe(
    'All 5 accounts are up to date. 1 endpoint is failing. At least 1 endpoint has dead events. | bad',
  );
  expect(summarize(five, [endpoint('erp')], [], { dead: 0, parked: 1 })).toBe(
    'All 5 accounts are up to date. No endpoint is failing, disabled or paused. 1 endpoint has parked events. | warn',
  );
  expect(summarize([], undefined)).toBe('There are no accounts. | good');
  expect(summarize([account('a', { state: 'baselining' })], undefined)).toBe(
    'The account has no baseline yet. | good',
  );
  const mixed = [...five, account('f', { state: 'quarantined' }), account('g', { state: 'failing' })];
  expect(
    summarize([...mixed, account('h', {}, { paused: true })], undefined, [
      region('us', 'outage'),
      region('nz', 'ok'),
    ]),
  ).toBe(
    'The ordering API fails in US. 5 of 8 accounts are up to date: 1 is quarantined, 1 is failing, 1 is paused. | bad',
  );
});

test('the report determines which confirmation an account waits for', () => {
  const missingJobs = { pending: 1, suspected: 2, contradictory: 3 };
  expect(rules.countMissingJobs(missingJobs)).toBe(6);
  expect(rules.getPendingConfirmation({ state: 'tracking', quarantinedAt: null, missingJobs })).toBeNull();
  expect(rules.getPendingConfirmation({ state: 'quarantined', quarantinedAt: ago(9), missingJobs })).toBe(
    'quarantine',
  );
  // A failing account stays in quarantine.
  expect(rules.getPendingConfirmation({ state: 'failing', quarantinedAt: ago(9), missingJobs })).toBe(
    'quarantine',
  );
  expect(
    rules.getPendingConfirmation({ state: 'identity_mismatch', quarantinedAt: ago(9), missingJobs }),
  ).toBe('identity');
});

test('the chart of polls has a text alternative', () => {
  expect(rules.describePolls([], span)).toBe('No polls yet.');
  expect(rules.describePolls([poll()], span)).toBe('1 poll: 1000 ms; none failed.');
  const polls = [poll({ ms: 700 }), poll({ ms: 30_000, outcome: 'failed' }), poll({ outcome: 'partial' })];
  expect(rules.describePolls(polls, span)).toBe(
    'Last 3 polls: latest 700 ms, median 1000 ms, slowest 30000 ms; 1 failed, 1 partial.',
  );
});

test('a rate is formatted as 100 % only if nothing failed', () => {
  expect([1, 0.9996, 0.995, 0.994, 0.5, 0.0004, 0].map((rate) => formatPercent(rate))).toEqual([
    ...['100 %', '99.9 %', '99.5 %', '99.4 %', '50 %', '0.1 %', '0 %'],
  ]);
});

test('the progress of a replay lists its results and omits zero counts', () => {
  const replay: rules.ReplayRun = {
    ...{ id: 'rp-1', state: 'running', accounts: ['acme'], filter: {}, dead: null, truncatedAccounts: [] },
    ...{ total: 1_200, done: 300, delivered: 290, failed: 0, skipped: 10 },
    ...{ startedAt: ago(5), finishedAt: null },
  };
  expect(rules.formatReplayProgress(replay)).toBe('300 of 1,200: 290 delivered, 10 filtered out');
  expect([replay, { ...replay, state: 'starting' as const }].map(rules.isRunning)).toEqual([true, true]);
  expect(rules.isRunning({ state: 'done' })).toBe(false);
});

test('a URL breaks after the slashes of its path, and after ? and &', () => {
  expect(splitUrl('https://erp.example.com/jobs//hook?a=1&b=/c')).toEqual([
    ...['https://erp.example.com/', 'jobs/', '/hook?', 'a=1&', 'b=/', 'c'],
  ]);
  const arn = 'arn:aws:sqs:us-east-1:000000000000:erp.fifo';
  expect(splitUrl(arn)).toEqual([arn]);
});

test('a row matches if it contains each term of the query, in any order', () => {
  expect(matchesQuery('', 'acme')).toBe(true);
  expect(matchesQuery('FAIL us', 'acme', 'us', 'Failing', null)).toBe(true);
  expect(matchesQuery('acme nz', 'acme', 'us')).toBe(false);
});

test('a list of jobs names its accounts that are not observed, with the time of the last observation', () => {
  const old = ago(3_600);
  const all = [
    account('fine'),
    account('paused', { state: 'paused', observedThrough: old }, { paused: true }),
    account('rejected', { state: 'credentials_rejected', observedThrough: old }),
    account('failing', { state: 'failing', observedThrough: null }),
    account('stale', { observedThrough: old }),
    account('quarantined', { state: 'quarantined' }),
    account('elsewhere', { state: 'failing' }),
    account('new', null),
  ];
  const listed = all.map(({ id }) => id).filter((id) => id !== 'elsewhere');
  expect(listUnobserved([...listed, 'paused'], all, NOW)).toEqual([
    { id: 'paused', state: 'paused', observedThrough: old },
    { id: 'rejected', state: 'credentials rejected', observedThrough: old },
    { id: 'failing', state: 'failing', observedThrough: null },
    { id: 'stale', state: 'stale', observedThrough: old },
  ]);
});

test('a problem is not repeated if the meaning of the state says the same', () => {
  const mismatch = rules.toAccountState(account('a', { state: 'identity_mismatch' }), NOW);
  expect(rules.findFurtherProblem(mismatch, 'The credentials belong to another account.')).toBeNull();
  expect(rules.findFurtherProblem(mismatch, 'The connection failed.')).toBe('The connection failed.');
  expect(rules.findFurtherProblem(mismatch, null)).toBeNull();
});

test('a bulk action has a colon before its number of rows only if it declares that its label is a phrase', () => {
  const commands = listEndpointActions({} as Client).map((action) => formatCommand(action, '2 endpoints'));
  expect(commands).toEqual([
    'Pause 2 endpoints',
    'Resume 2 endpoints',
    'Enable 2 endpoints',
    'Retry parked: 2 endpoints',
  ]);
  expect(formatCommand({ label: 'Take over' }, '1 item')).toBe('Take over 1 item');
});

test('a bulk action leaves out declared endpoints, and those that are not disabled or failing', () => {
  const endpoints = [
    endpoint('active'),
    endpoint('down', { state: 'disabled' }),
    endpoint('declared', { managed: false }),
  ];
  const preview = (label: string) => {
    const action = listEndpointActions({} as Client).find((one) => one.label === label);
    const { rows, skipped } = previewBulk(action ?? {}, endpoints);
    return [rows.map(({ id }) => id), skipped];
  };
  expect(preview('Pause')).toEqual([['active', 'down'], ['1 declared in the configuration']]);
  expect(preview('Enable')).toEqual([['down'], ['2 not disabled']]);
});

test('results of endpoints with the same id name the region', async () => {
  const api = { post: async () => ({ results: [{ id: 'erp', problem: null }] }) } as unknown as Client;
  const rows = ['us', 'nz'].map((region) => endpoint('erp', { region }));
  const results = await runBatches(api, 'endpoints', 'pause', rows);
  expect(results.map(({ name }) => name)).toEqual(['erp (US)', 'erp (NZ)']);
});
