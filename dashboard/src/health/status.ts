/** How accounts, endpoints and regions stand, in words and in order. Pure: the time is passed in. */
import type * as z from 'zod';
import type { AccountRecord, AccountReport, PollRecord } from '../../../shared/accounts/account-input.ts';
import type {
  Delivery,
  EndpointHealth,
  Endpoint as EndpointView,
  Replay,
} from '../../../shared/api/endpoint-views.ts';
import { BUILT_IN_SINKS } from '../../../shared/built-in-sinks.ts';
import { NOTIFICATIONS_SINK } from '../../../shared/notifications/types.ts';

export type Endpoint = z.infer<typeof EndpointView>;
export type Health = z.infer<typeof EndpointHealth>;
export type Attempt = z.infer<typeof Delivery>;
export type ReplayRun = z.infer<typeof Replay>;
type AccountState = AccountReport['state'];
/** As the page has it; said here anew, for tests that know nothing of browsers. */
export type Account = AccountRecord & { readonly status?: AccountReport | null };
type Region = { readonly id: string; readonly state: 'ok' | 'outage' };
type Tone = 'good' | 'warn' | 'bad' | 'plain';

/** A state for people. */
export interface StateText {
  /** A word or two. */
  readonly label: string;
  readonly tone: Tone;
  /** What it means. */
  readonly meaning: string;
  /** What to do about it; absent where there is nothing to do. */
  readonly advice?: string;
}

// Accounts

const ACCOUNT_STATES: Readonly<Record<AccountState, StateText>> = {
  tracking: {
    label: 'Up to date',
    tone: 'good',
    meaning: 'It is polled, and what changes is told.',
  },
  baselining: {
    label: 'First look',
    tone: 'plain',
    meaning: 'All its open jobs are being read for the first time. Changes are told from then on.',
  },
  paused: {
    label: 'Polling is paused',
    tone: 'plain',
    meaning: 'It is not polled until somebody resumes it. What changes meanwhile is found then.',
  },
  failing: {
    label: 'Polls fail',
    tone: 'bad',
    meaning:
      'Several polls in a row failed, so nothing new can be said of its jobs. It is tried again, ever more rarely: every 15 minutes at least.',
    advice:
      'The problem says why. If other accounts of the region are up to date, it is this one’s: test its credentials. If all of them fail, it is the ordering service: wait, nothing is lost.',
  },
  credentials_rejected: {
    label: 'Credentials refused',
    tone: 'bad',
    meaning:
      'The ordering service no longer takes its credentials. It is tried again, every 15 minutes at least.',
    advice:
      'Get new credentials from the account’s owner and give them to it in the setup. If the account has ended, pause it.',
  },
  identity_mismatch: {
    label: 'Credentials of another account',
    tone: 'bad',
    meaning:
      'Its credentials turned out to be another account’s. It is not polled, and nothing is said of its jobs, until somebody decides.',
    advice:
      'If a wrong secret was stored, put the right one back, then confirm. If the other account is the right one from now on, confirm that.',
  },
  quarantined: {
    label: 'Answers in doubt',
    tone: 'bad',
    meaning:
      'So many jobs seem to be gone at once that the service’s list is in doubt. None of them is said to be cancelled or unavailable; everything else is still told.',
    advice:
      'Ask the account’s owner, or look at the ordering service. If the jobs are there, wait: this ends by itself when they are listed again. If they are truly gone, confirm it.',
  },
};

/** An account that is registered, and whose log is not there yet. */
const CREATING: StateText = {
  label: 'Being set up',
  tone: 'plain',
  meaning: 'It is not registered to its end yet.',
};

/** Not seen for so long that it has to be said. */
const STALE: StateText = {
  label: 'Not seen for too long',
  tone: 'bad',
  meaning:
    'No poll has seen all of it for longer than two polls may take, although none of them is known to have failed for good.',
  advice:
    'Look at its last polls below. If other accounts are late as well, polling itself is held up: see poll-lag in the runbook.',
};

/**
 * Since when an account that should be polled is seen too rarely (epoch ms): two polls missed, and a minute for the polls
 * and the page to get there. Null: it is not. States that say why by themselves are stale just as well.
 */
export function staleSince(
  account: Pick<Account, 'pollIntervalSeconds' | 'paused'> & {
    readonly status?: Pick<AccountReport, 'state' | 'observedThrough'> | null | undefined;
  },
  nowMs: number,
): number | null {
  const { status, paused, pollIntervalSeconds } = account;
  if (paused || !status || status.state === 'paused' || status.observedThrough === null) return null;
  const since = Date.parse(status.observedThrough) + 2 * pollIntervalSeconds * 1_000 + 60_000;
  return nowMs > since ? since : null;
}

/** How an account stands: its state, but for one that says it is up to date and has not been seen for too long. */
export function toAccountState(account: Account, nowMs: number): StateText {
  const { status, paused } = account;
  if (paused) return ACCOUNT_STATES.paused;
  if (!status) return CREATING;
  if (status.state === 'tracking' && staleSince(account, nowMs) !== null) return STALE;
  return ACCOUNT_STATES[status.state];
}

/** What a confirmation will do; null when the account waits for none. */
export function getPendingConfirmation(
  report: Pick<AccountReport, 'state' | 'quarantinedAt' | 'missingJobs'>,
): 'identity' | 'quarantine' | null {
  if (report.state === 'identity_mismatch') return 'identity';
  return report.quarantinedAt === null ? null : 'quarantine';
}

/** How many jobs are missing from the list of which it is open what became of them. */
export function countMissingJobs({
  pending,
  suspected,
  contradictory,
}: AccountReport['missingJobs']): number {
  return pending + suspected + contradictory;
}

/** Those in trouble first, then those with something to be known, then by region and id. */
export function sortAccounts(accounts: readonly Account[], nowMs: number): Account[] {
  const rank = new Map(
    accounts.map((one) => [one, toRank(toAccountState(one, nowMs).tone, hasConcern(one))]),
  );
  return [...accounts].sort(
    (a, b) => (rank.get(a) ?? 0) - (rank.get(b) ?? 0) || compare(a.region, b.region) || compare(a.id, b.id),
  );
}

/** Whether something is to be known of an account that is up to date: polls that failed, jobs that can't be read. */
export function hasConcern({ paused, status }: Account): boolean {
  if (paused || !status) return false;
  return status.consecutiveFailures > 0 || status.unreadJobs > 0 || status.problem !== null;
}

// Polls

/** How a poll ended. */
export const POLL_OUTCOMES: Readonly<
  Record<PollRecord['outcome'], { readonly word: string; readonly tone: Tone }>
> = {
  complete: { word: 'Complete', tone: 'good' },
  partial: { word: 'Not to its end', tone: 'warn' },
  failed: { word: 'Failed', tone: 'bad' },
};

/** What a drawing of polls says, for those who can't see it. `span` writes a span of ms. */
export function describePolls(polls: readonly PollRecord[], span: (ms: number) => string): string {
  const [last] = polls;
  if (!last) return 'No poll is over yet.';
  const sorted = polls.map(({ ms }) => ms).sort((a, b) => a - b);
  const slowest = sorted.at(-1) ?? last.ms;
  const median = sorted[Math.floor((sorted.length - 1) / 2)] ?? last.ms;
  const failed = polls.filter(({ outcome }) => outcome === 'failed').length;
  const partial = polls.filter(({ outcome }) => outcome === 'partial').length;
  const took =
    polls.length === 1
      ? `The only poll took ${span(last.ms)}`
      : `The last ${polls.length} polls: the latest took ${span(last.ms)}, half of them at most ${span(median)}, the slowest ${span(slowest)}`;
  const ended = [failed > 0 ? `${failed} failed` : '', partial > 0 ? `${partial} did not get to the end` : '']
    .filter(Boolean)
    .join(', ');
  return `${took}; ${ended || 'none failed'}.`;
}

// Endpoints

const ENDPOINT_STATES: Readonly<Record<Endpoint['state'], StateText>> = {
  active: { label: 'Takes events', tone: 'good', meaning: 'It took what was sent last.' },
  paused: {
    label: 'Paused',
    tone: 'plain',
    meaning: 'It keeps its places in the logs, and gets nothing until somebody resumes it.',
  },
  failing: {
    label: 'Failing',
    tone: 'bad',
    meaning:
      'It has taken nothing since its last failure. It is tried again at growing distances; its events wait in order, nothing is lost.',
    advice:
      'Tell its owner what the problem says. When it is mended, let it go on at once, or wait for the next try.',
  },
  disabled: {
    label: 'Disabled',
    tone: 'bad',
    meaning:
      'It gets no more events: it failed for days, or said that it wants none. Its places in the logs stay for as long as events are kept.',
    advice:
      'When it is mended, enable it: it goes on where it stood. What it missed for good can’t be sent any more.',
  },
};

/** Events that it has not come to for so long are late, as the alarm of a cell has it. */
const LATE_MS = 15 * 60_000;

/** How an endpoint stands; what is known of its health goes before what the list says. */
export function toEndpointState(
  endpoint: Pick<Endpoint, 'state'>,
  health: Health | undefined,
  nowMs: number,
): StateText {
  const state = health?.state ?? endpoint.state;
  if (state !== 'active' || !health) return ENDPOINT_STATES[state];
  const { oldestAt, events } = health.backlog;
  if (events > 0 && oldestAt !== null && nowMs - Date.parse(oldestAt) > LATE_MS) {
    return {
      label: 'Behind',
      tone: 'warn',
      meaning: 'Events wait for it for longer than 15 minutes, although it takes what it gets.',
      advice:
        'If it has just come back, or begins in the past, wait. Otherwise it is too slow: more requests side by side, a higher rate, fewer types.',
    };
  }
  if (health.parked.count > 0) {
    return {
      label: 'Refuses some',
      tone: 'warn',
      meaning: 'It takes events, but refused some, which are set aside with those of the same job.',
      advice:
        'The reasons stand below. They are tried again by themselves; retry them at once when it is mended.',
    };
  }
  return ENDPOINT_STATES.active;
}

/** Those in trouble first, then by region and id. `healthOf`: as far as it is known. */
export function sortEndpoints(
  endpoints: readonly Endpoint[],
  healthOf: (endpoint: Endpoint) => Health | undefined,
  nowMs: number,
): Endpoint[] {
  const rank = new Map(
    endpoints.map((one) => [one, toRank(toEndpointState(one, healthOf(one), nowMs).tone, false)]),
  );
  return [...endpoints].sort(
    (a, b) => (rank.get(a) ?? 0) - (rank.get(b) ?? 0) || compare(a.region, b.region) || compare(a.id, b.id),
  );
}

/** Whether an endpoint is none that somebody made: no other can have such an id. */
export function isBuiltIn(endpoint: string): boolean {
  return BUILT_IN_SINKS.some((id) => id === endpoint);
}

/** What an endpoint is called, by its id: built-in ones by what they are for. */
export function getSinkName(endpoint: string): string {
  if (!isBuiltIn(endpoint)) return endpoint;
  return endpoint === NOTIFICATIONS_SINK ? 'Telling customers' : `SNS topic (${endpoint})`;
}

/** Of attempts: from 0 to 1 as a percentage that is 100 only when it is. */
export function formatPercent(rate: number): string {
  const text = rate >= 0.995 && rate < 1 ? Math.floor(rate * 1_000) / 10 : Math.round(rate * 100);
  return `${text} %`;
}

/** How an attempt ended. */
export const ATTEMPT_OUTCOMES: Readonly<
  Record<Attempt['outcome'], { readonly word: string; readonly tone: Tone }>
> = {
  delivered: { word: 'Taken', tone: 'good' },
  rejected: { word: 'Refused', tone: 'warn' },
  retry: { word: 'Failed', tone: 'bad' },
};

/** Why something was sent. */
export const ATTEMPT_CAUSES: Readonly<Record<Attempt['cause'], string>> = {
  live: 'Live',
  parked: 'Tried again',
  replay: 'Replay',
  resend: 'Sent again',
  ping: 'Ping',
};

/** How a replay stands. */
export const REPLAY_STATES: Readonly<
  Record<ReplayRun['state'], { readonly word: string; readonly tone: Tone }>
> = {
  starting: { word: 'Starting', tone: 'plain' },
  running: { word: 'Running', tone: 'plain' },
  done: { word: 'Done', tone: 'good' },
  cancelled: { word: 'Cancelled', tone: 'plain' },
};

/** Whether a replay moves. */
export function isRunning({ state }: Pick<ReplayRun, 'state'>): boolean {
  return state === 'running' || state === 'starting';
}

/** How far a replay is and what came of it, in words. */
export function formatReplayProgress({ total, done, delivered, failed, skipped }: ReplayRun): string {
  const n = (value: number) => value.toLocaleString('en-GB');
  const parts = [
    `${n(delivered)} taken`,
    failed > 0 ? `${n(failed)} refused` : '',
    skipped > 0 ? `${n(skipped)} not wanted` : '',
  ].filter(Boolean);
  return `${n(done)} of ${n(total)}: ${parts.join(', ')}`;
}

// All of it

/** The whole in a sentence or two, and how loud it is. */
export function summarizeHealth(
  accounts: readonly Account[],
  endpoints: readonly Endpoint[] | undefined,
  regions: readonly Region[],
  nowMs: number,
): { readonly text: string; readonly tone: Tone } {
  const out = regions.filter(({ state }) => state === 'outage').map(({ id }) => id.toUpperCase());
  const words = accounts.map((one) => toAccountState(one, nowMs));
  const states = (endpoints ?? []).map(({ state }) => ENDPOINT_STATES[state]);
  const sentences = [
    out.length > 0 ? `The ordering service fails in ${joinNames(out)}` : '',
    summarizeAccounts(words.map(({ label: word }) => word)),
    endpoints === undefined ? '' : summarizeEndpoints(states.map(({ label: word }) => word)),
  ].filter(Boolean);
  const tones = [...words, ...states].map(({ tone }) => tone);
  const tone = out.length > 0 || tones.includes('bad') ? 'bad' : tones.includes('warn') ? 'warn' : 'good';
  return { text: `${sentences.join('; ')}.`, tone };
}

const ACCOUNT_CLAUSES: readonly (readonly [word: string, one: string, many: string])[] = [
  [ACCOUNT_STATES.identity_mismatch.label, 'has another’s credentials', 'have another’s credentials'],
  [
    ACCOUNT_STATES.credentials_rejected.label,
    'has its credentials refused',
    'have their credentials refused',
  ],
  [ACCOUNT_STATES.quarantined.label, 'is in doubt', 'are in doubt'],
  [ACCOUNT_STATES.failing.label, 'can’t be polled', 'can’t be polled'],
  [STALE.label, 'has not been seen for too long', 'have not been seen for too long'],
  [ACCOUNT_STATES.baselining.label, 'is looked at for the first time', 'are looked at for the first time'],
  [CREATING.label, 'is being set up', 'are being set up'],
  [ACCOUNT_STATES.paused.label, 'is paused', 'are paused'],
];

function summarizeAccounts(words: readonly string[]): string {
  const all = words.length;
  if (all === 0) return 'There are no accounts';
  const good = words.filter((word) => word === ACCOUNT_STATES.tracking.label).length;
  if (good === all) return all === 1 ? 'The account is up to date' : `All ${all} accounts are up to date`;
  const others = toClauses(words, ACCOUNT_CLAUSES);
  if (all === 1) return `The account ${others[0]?.replace(/^1 /, '') ?? 'is not up to date'}`;
  const head =
    good === 0 ? `None of ${all} accounts is` : `${good} of ${all} accounts ${good === 1 ? 'is' : 'are'}`;
  return `${head} up to date, ${others.join(', ')}`;
}

function summarizeEndpoints(words: readonly string[]): string {
  if (words.length === 0) return '';
  const others = toClauses(words, [
    [ENDPOINT_STATES.failing.label, 'endpoint is failing', 'endpoints are failing'],
    [ENDPOINT_STATES.disabled.label, 'endpoint is disabled', 'endpoints are disabled'],
    [ENDPOINT_STATES.paused.label, 'endpoint is paused', 'endpoints are paused'],
  ]);
  if (others.length > 0) return others.join(', ');
  return words.length === 1 ? 'the endpoint takes events' : `all ${words.length} endpoints take events`;
}

function toClauses(
  words: readonly string[],
  known: readonly (readonly [word: string, one: string, many: string])[],
): string[] {
  return known.flatMap(([word, one, many]) => {
    const count = words.filter((each) => each === word).length;
    return count === 0 ? [] : [`${count} ${count === 1 ? one : many}`];
  });
}

/** What people type to find a row: all of its words, anywhere in what it is known by. */
export function matchesQuery(query: string, ...texts: readonly (string | null | undefined)[]): boolean {
  const text = texts.filter(Boolean).join(' ').toLowerCase();
  return query
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

function toRank(tone: Tone, concern: boolean): number {
  const rank = { bad: 0, warn: 1, plain: 3, good: 4 }[tone];
  return concern ? Math.min(rank, 2) : rank;
}

function joinNames(names: readonly string[]): string {
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
