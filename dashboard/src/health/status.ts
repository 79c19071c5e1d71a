/** Labels, order and summary of the states of accounts, endpoints and regions. Pure: the time is a parameter. */
import type {
  ListedAccount as Account,
  AccountState,
  AccountStatus,
  Delivery as Attempt,
  Endpoint,
  EndpointHealth as Health,
  Poll,
  Region,
  Replay as ReplayRun,
} from '../../../client/index.ts';
import { BUILT_IN_SINKS } from '../../../shared/built-in-sinks.ts';
import { NOTIFICATIONS_SINK } from '../../../shared/notifications/types.ts';
import { staleSince as findStaleSince } from '../../../shared/stale.ts';
import { formatCount, joinNames, type Tone } from '../texts.ts';

export type { Account, Attempt, Endpoint, Health, ReplayRun };

/** Text of a state in the UI. */
export interface StateText {
  /** One or two words. */
  readonly label: string;
  readonly tone: Tone;
  /** One or two sentences. */
  readonly meaning: string;
  /** Recommended action; absent if none is needed. */
  readonly advice?: string;
}

/** Returns the problem of an account or endpoint, unless the meaning of its state says the same. */
export function findFurtherProblem(
  { meaning }: StateText,
  problem: string | null | undefined,
): string | null {
  return problem && !meaning.includes(problem.replace(/\.$/, '')) ? problem : null;
}

// Accounts

const ACCOUNT_STATES: Readonly<Record<AccountState, StateText>> = {
  tracking: {
    label: 'Polling',
    tone: 'good',
    meaning: 'The account is polled on schedule, and its changes are emitted as events.',
  },
  baselining: {
    label: 'Baselining',
    tone: 'plain',
    meaning:
      'The baseline, the first complete crawl of all open jobs, is in progress. Events are emitted after it.',
  },
  paused: {
    label: 'Paused',
    tone: 'plain',
    meaning:
      'The account is not polled until it is resumed. Changes that are made in the meantime are then detected.',
  },
  failing: {
    label: 'Failing',
    tone: 'bad',
    meaning:
      'Several consecutive polls failed, so no changes are detected. Polls are retried with increasing delays of up to 15 minutes.',
    advice:
      'If other accounts of the region are up to date, test the credentials of this account. If all accounts of the region fail, wait until the ordering API responds again. Changes made in the meantime are then detected.',
  },
  credentials_rejected: {
    label: 'Credentials rejected',
    tone: 'bad',
    meaning:
      'The ordering API rejects the credentials. Polls are retried with increasing delays of up to 15 minutes.',
    advice:
      'Get the latest credentials from the operator of the ordering API, and enter them in Settings. If the account no longer exists, pause it.',
  },
  identity_mismatch: {
    label: 'Identity mismatch',
    tone: 'bad',
    meaning:
      'The credentials belong to another account of the ordering API. Polling is stopped until an operator confirms the credentials or the other account.',
    advice:
      'If the stored secret is wrong, replace the credentials, then confirm them. If the other account is the correct one, change to it.',
  },
  quarantined: {
    label: 'Quarantined',
    tone: 'bad',
    meaning:
      'Too many jobs disappeared from the list within a day. During the quarantine, no job is reported as cancelled or unavailable. All other changes are still emitted.',
    advice:
      'Check in the ordering API whether the jobs exist. If they do, wait: the quarantine ends when they are listed again. If they are gone, confirm the missing jobs.',
  },
};

/** Advice about rejected credentials of an account that is declared in the configuration file. */
const DECLARED_ADVICE =
  'Get the latest credentials from the operator of the ordering API, set them in the configuration file or the secret to which it refers, and restart Jobwire. If the account no longer exists, remove it from the file.';

/** A registered account without a log yet. */
const CREATING: StateText = {
  label: 'Creating',
  tone: 'plain',
  meaning: 'The registration of the account is in progress.',
};

/** An account that is polled, but was not observed for longer than two polls may take. */
const STALE: StateText = {
  label: 'Stale',
  tone: 'bad',
  meaning: 'No poll has completed for more than two poll intervals, although no poll failed.',
  advice:
    'Check the last polls below. If other accounts are stale too, all polls are delayed. In this case, tell the operator of Jobwire, who finds the steps in the section “poll-lag” of the runbook.',
};

/** Returns the time (epoch ms) since which an account that is not paused is stale, or `null`. Applies to failing states too. */
export function staleSince(
  account: Pick<Account, 'pollIntervalSeconds' | 'paused'> & {
    readonly status?: Pick<AccountStatus, 'state' | 'observedThrough'> | null | undefined;
  },
  nowMs: number,
): number | null {
  const { status, paused, pollIntervalSeconds } = account;
  if (paused || !status || status.state === 'paused') return null;
  return findStaleSince(status.observedThrough, pollIntervalSeconds, nowMs);
}

/** Returns the text of the account's state; `Stale` instead of `Polling` if the last observation is too old. */
export function toAccountState(account: Account, nowMs: number): StateText {
  const { status, paused, managed } = account;
  if (paused) return ACCOUNT_STATES.paused;
  if (!status) return CREATING;
  if (status.state === 'tracking' && staleSince(account, nowMs) !== null) return STALE;
  const text = ACCOUNT_STATES[status.state];
  const isDeclared = status.state === 'credentials_rejected' && managed === false;
  return isDeclared ? { ...text, advice: DECLARED_ADVICE } : text;
}

/** Returns what an operator can confirm; `null` if the account waits for no confirmation. */
export function getPendingConfirmation(
  report: Pick<AccountStatus, 'state' | 'quarantinedAt' | 'missingJobs'>,
): 'identity' | 'quarantine' | null {
  if (report.state === 'identity_mismatch') return 'identity';
  return report.quarantinedAt === null ? null : 'quarantine';
}

/** Returns the number of delisted jobs whose outcome is not yet known. */
export function countMissingJobs(missing: AccountStatus['missingJobs']): number {
  return missing.pending + missing.suspected + missing.contradictory;
}

/** Sorts accounts by severity of state, then by region and id. */
export function sortAccounts(accounts: readonly Account[], nowMs: number): Account[] {
  return sortByRank(accounts, (one) => toRank(toAccountState(one, nowMs).tone, hasConcern(one)));
}

function sortByRank<T extends Pick<Account, 'region' | 'id'>>(
  all: readonly T[],
  getRank: (one: T) => number,
): T[] {
  const rank = new Map(all.map((one) => [one, getRank(one)]));
  return [...all].sort(
    (a, b) => (rank.get(a) ?? 0) - (rank.get(b) ?? 0) || compare(a.region, b.region) || compare(a.id, b.id),
  );
}

/** Whether an account has a problem that its state does not show: failed polls, unread jobs. */
export function hasConcern({ paused, status }: Account): boolean {
  if (paused || !status) return false;
  return status.consecutiveFailures > 0 || status.unreadJobs > 0 || status.problem !== null;
}

// Polls

/** Outcome of a poll. */
export const POLL_OUTCOMES: Readonly<
  Record<Poll['outcome'], { readonly label: string; readonly tone: Tone }>
> = {
  complete: { label: 'Complete', tone: 'good' },
  partial: { label: 'Partial', tone: 'warn' },
  failed: { label: 'Failed', tone: 'bad' },
};

/** Returns a text alternative of the chart of polls. `format` formats a duration in ms. */
export function describePolls(polls: readonly Poll[], format: (ms: number) => string): string {
  const [last] = polls;
  if (!last) return 'No polls yet.';
  const sorted = polls.map(({ ms }) => ms).sort((a, b) => a - b);
  const slowest = sorted.at(-1) ?? last.ms;
  const median = sorted[Math.floor((sorted.length - 1) / 2)] ?? last.ms;
  const failed = polls.filter(({ outcome }) => outcome === 'failed').length;
  const partial = polls.filter(({ outcome }) => outcome === 'partial').length;
  const took =
    polls.length === 1
      ? `1 poll: ${format(last.ms)}`
      : `Last ${polls.length} polls: latest ${format(last.ms)}, median ${format(median)}, slowest ${format(slowest)}`;
  const ended = [failed > 0 ? `${failed} failed` : '', partial > 0 ? `${partial} partial` : '']
    .filter(Boolean)
    .join(', ');
  return `${took}; ${ended || 'none failed'}.`;
}

// Endpoints

const ENDPOINT_STATES: Readonly<Record<Endpoint['state'], StateText>> = {
  active: { label: 'Active', tone: 'good', meaning: 'No delivery is failing.' },
  paused: {
    label: 'Paused',
    tone: 'plain',
    meaning: 'No events are sent until the endpoint is resumed. It keeps its cursors.',
  },
  failing: {
    label: 'Failing',
    tone: 'bad',
    meaning: 'The last delivery failed. Deliveries are retried with increasing delays. Events wait in order.',
    advice:
      'Forward the problem to the owner of the endpoint. When it is fixed, select Retry now, or wait for the next attempt.',
  },
  disabled: {
    label: 'Disabled',
    tone: 'bad',
    meaning:
      'No events are sent: deliveries failed for days, or the endpoint responded with 410 or with the header webhook-delivery: disable. It keeps its cursors, but events expire after the retention period.',
    advice: 'When the endpoint is fixed, enable it: it resumes at its cursors.',
  },
};

/** Age of the oldest waiting event from which an endpoint is lagging; same as the alarm of a cell. */
const LATE_MS = 15 * 60_000;

/** Returns the text of the endpoint's state. Its health takes precedence over the state in the list. */
export function toEndpointState(
  endpoint: Pick<Endpoint, 'state'>,
  health?: Health,
  nowMs = Date.now(),
): StateText {
  const state = health?.state ?? endpoint.state;
  if (state !== 'active' || !health) return ENDPOINT_STATES[state];
  const { oldestAt, events } = health.backlog;
  if (events > 0 && oldestAt !== null && nowMs - Date.parse(oldestAt) > LATE_MS) {
    return {
      label: 'Backlog',
      tone: 'warn',
      meaning: 'Events have been waiting for more than 15 minutes, although deliveries succeed.',
      advice:
        'If the endpoint has just recovered, or was created with a start in the past, wait. Otherwise raise its concurrency or rate if they are set, or select fewer event types.',
    };
  }
  if (health.parked.count > 0) {
    return {
      label: 'Events parked',
      tone: 'warn',
      meaning:
        'The endpoint rejected some events, or failed because of them. These events, and later events of the same jobs, are parked. Other events are delivered.',
      advice:
        'See the reasons below. Parked events are retried automatically. To retry them immediately after you have fixed the endpoint, use “Retry all”.',
    };
  }
  return ENDPOINT_STATES.active;
}

/** Sorts endpoints by severity of state, then by region and id. Not by health, which is loaded for visible rows only. */
export function sortEndpoints(endpoints: readonly Endpoint[]): Endpoint[] {
  return sortByRank(endpoints, ({ state }) => toRank(ENDPOINT_STATES[state].tone, false));
}

/** Whether a sink is built in. No created endpoint can have such an id. */
export function isBuiltIn(endpoint: string): boolean {
  return BUILT_IN_SINKS.some((id) => id === endpoint);
}

/** Returns the display name of a sink: the id of an endpoint, or the purpose of a built-in sink. */
export function getSinkName(endpoint: string): string {
  if (!isBuiltIn(endpoint)) return endpoint;
  if (endpoint === NOTIFICATIONS_SINK) return 'Customer notifications';
  return endpoint === 'event-bus' ? 'EventBridge bus' : `SNS topic (${endpoint})`;
}

/** Outcome of a delivery attempt. */
export const ATTEMPT_OUTCOMES: Readonly<
  Record<Attempt['outcome'], { readonly label: string; readonly tone: Tone }>
> = {
  delivered: { label: 'Delivered', tone: 'good' },
  rejected: { label: 'Rejected', tone: 'warn' },
  retry: { label: 'Failed', tone: 'bad' },
};

/** Cause of a delivery attempt. */
export const ATTEMPT_CAUSES: Readonly<Record<Attempt['cause'], string>> = {
  live: 'Live',
  parked: 'Retry',
  replay: 'Replay',
  resend: 'Resend',
  ping: 'Ping',
};

/** State of a replay. */
export const REPLAY_STATES: Readonly<
  Record<ReplayRun['state'], { readonly label: string; readonly tone: Tone }>
> = {
  starting: { label: 'Starting', tone: 'plain' },
  running: { label: 'Running', tone: 'plain' },
  done: { label: 'Completed', tone: 'good' },
  cancelled: { label: 'Cancelled', tone: 'plain' },
};

/** Whether a replay is in progress. */
export function isRunning({ state }: Pick<ReplayRun, 'state'>): boolean {
  return state === 'running' || state === 'starting';
}

/** Formats the progress and the results of a replay. */
export function formatReplayProgress({ total, done, delivered, failed, skipped }: ReplayRun): string {
  const n = (value: number) => value.toLocaleString();
  const parts = [
    `${n(delivered)} delivered`,
    failed > 0 ? `${n(failed)} rejected` : '',
    skipped > 0 ? `${n(skipped)} filtered out` : '',
  ].filter(Boolean);
  return `${n(done)} of ${n(total)}: ${parts.join(', ')}`;
}

// Summary

/**
 * Summarizes all accounts, endpoints and regions in a few sentences, with the tone of the worst state. `dead`, `parked`: numbers of
 * endpoints whose most severe problem is such events.
 */
export function summarizeHealth(
  accounts: readonly Account[],
  endpoints: readonly Endpoint[] | undefined,
  regions: readonly Pick<Region, 'id' | 'state'>[],
  nowMs: number,
  { dead, parked }: { readonly dead: number; readonly parked: number },
): { readonly text: string; readonly tone: Tone } {
  const out = regions.filter(({ state }) => state === 'outage').map(({ id }) => id.toUpperCase());
  const accountStates = accounts.map((one) => toAccountState(one, nowMs));
  const endpointStates = (endpoints ?? []).map(({ state }) => ENDPOINT_STATES[state]);
  // An endpoint is counted for its most severe problem only.
  const least = endpointStates.some(({ tone }) => tone === 'bad') ? 'at least ' : '';
  const toLabels = (builtIn: boolean) =>
    (endpoints ?? [])
      .filter(({ id }) => isBuiltIn(id) === builtIn)
      .map(({ state }) => ENDPOINT_STATES[state].label);
  const sentences = [
    out.length > 0 ? `The ordering API fails in ${joinNames(out)}` : '',
    summarizeAccounts(accountStates.map(({ label }) => label)),
    summarizeProblems(toLabels(false), 'endpoint') ||
      (toLabels(false).length > 0 ? 'No endpoint is failing, disabled or paused' : ''),
    summarizeProblems(toLabels(true), 'built-in sink'),
    ...Object.entries({ dead, parked })
      .filter(([, count]) => count > 0)
      .map(
        ([what, count]) => `${least}${formatCount(count, 'endpoint has', 'endpoints have')} ${what} events`,
      ),
  ].filter(Boolean);
  const tones = [...accountStates, ...endpointStates].map(({ tone }) => tone);
  const isBad = out.length > 0 || dead > 0 || tones.includes('bad');
  const tone = isBad ? 'bad' : parked > 0 || tones.includes('warn') ? 'warn' : 'good';
  return { text: sentences.map((one) => `${one.charAt(0).toUpperCase()}${one.slice(1)}.`).join(' '), tone };
}

const ACCOUNT_CLAUSES: readonly (readonly [label: string, one: string, many: string])[] = [
  [ACCOUNT_STATES.identity_mismatch.label, 'has an identity mismatch', 'have an identity mismatch'],
  [ACCOUNT_STATES.credentials_rejected.label, 'has rejected credentials', 'have rejected credentials'],
  [ACCOUNT_STATES.quarantined.label, 'is quarantined', 'are quarantined'],
  [ACCOUNT_STATES.failing.label, 'is failing', 'are failing'],
  [STALE.label, 'is stale', 'are stale'],
  [ACCOUNT_STATES.baselining.label, 'has no baseline yet', 'have no baseline yet'],
  [CREATING.label, 'is being created', 'are being created'],
  [ACCOUNT_STATES.paused.label, 'is paused', 'are paused'],
];

function summarizeAccounts(labels: readonly string[]): string {
  const all = labels.length;
  if (all === 0) return 'There are no accounts';
  const good = labels.filter((label) => label === ACCOUNT_STATES.tracking.label).length;
  if (good === all) return all === 1 ? 'The account is up to date' : `All ${all} accounts are up to date`;
  const others = toClauses(labels, ACCOUNT_CLAUSES);
  if (all === 1) return `The account ${others[0]?.replace(/^1 /, '') ?? 'is not up to date'}`;
  const head =
    good === 0 ? `None of the ${all} accounts is` : `${good} of ${all} accounts ${good === 1 ? 'is' : 'are'}`;
  return `${head} up to date: ${others.join(', ')}`;
}

function summarizeProblems(labels: readonly string[], noun: string): string {
  const { failing, disabled, paused } = ENDPOINT_STATES;
  const clauses = [failing, disabled, paused].map(
    ({ label }) =>
      [label, `${noun} is ${label.toLowerCase()}`, `${noun}s are ${label.toLowerCase()}`] as const,
  );
  return toClauses(labels, clauses).join(', ');
}

function toClauses(
  labels: readonly string[],
  known: readonly (readonly [label: string, one: string, many: string])[],
): string[] {
  return known.flatMap(([label, one, many]) => {
    const count = labels.filter((each) => each === label).length;
    return count === 0 ? [] : [`${count} ${count === 1 ? one : many}`];
  });
}

function toRank(tone: Tone, concern: boolean): number {
  const rank = { bad: 0, warn: 1, plain: 3, good: 4 }[tone];
  return concern ? Math.min(rank, 2) : rank;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
