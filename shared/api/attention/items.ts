/** Items of the attention queue from the records of their subjects, except for jobs (job-items.ts). Pure. */
import type { Account, Status } from '../../accounts/accounts.ts';
import { isEndpointKind } from '../../built-in-sinks.ts';
import { toHealthState } from '../../delivery/endpoint-health.ts';
import type { DeadEvent, ParkedEvent } from '../../delivery/parked-events.ts';
import type { Sink } from '../../delivery/sink.ts';
import { maskAddress } from '../../notifications/masking.ts';
import type { Message } from '../../notifications/records.ts';
import { isUndelivered, messageReasons } from '../../notifications/types.ts';
import { staleSince } from '../../stale.ts';
import type { AccountRef } from '../../storage/schema.ts';
import { type BreakerState, describeOutage } from '../../tracking/breaker.ts';
import { type Role, roleAllows } from '../key-input.ts';
import { formatHours, rankItem } from './rank.ts';
import { type Material, toLevel } from './state.ts';
import type { AttentionItem, AttentionKind } from './views.ts';

/** An item before its state and its customer are added. */
export interface Candidate
  extends Omit<
    AttentionItem,
    | 'actions'
    | 'customer'
    | 'state'
    | 'snoozedUntil'
    | 'returned'
    | 'assignee'
    | 'note'
    | 'changedAt'
    | 'changedBy'
  > {
  readonly material: Material;
  readonly actions: readonly (AttentionItem['actions'][number] & { readonly role: Role })[];
}

export const HOUR_MS = 3_600_000;
/** Accounts that are paused on purpose for a short time need no attention. */
const PAUSED_MS = 24 * HOUR_MS;
/** Age of messages that are still listed. */
export const MESSAGE_MS = 7 * 24 * HOUR_MS;
/** Age of dead events that are still listed. */
export const DEAD_MS = 30 * 24 * HOUR_MS;

/** The parts of an item's id. */
export interface ItemId {
  readonly region: string;
  /** Empty for regions, and for endpoints, whose accounts can change. */
  readonly account: string;
  readonly type: AttentionItem['subject']['type'];
  readonly subject: string;
}

/** Returns the id of the item of an account. */
export function accountItem({ region, account }: AccountRef): ItemId {
  return { region, account, type: 'account', subject: account };
}

/** Returns the id of the item of a job. */
export function jobItem({ region, account }: AccountRef, jobNumber: number | string): ItemId {
  return { region, account, type: 'job', subject: String(jobNumber) };
}

/** Returns the id of the item of an endpoint. */
export function endpointItem({ region, id }: Pick<Sink, 'region' | 'id'>): ItemId {
  return { region, account: '', type: 'endpoint', subject: id };
}

/** Returns the id of an item. `~` occurs in no id of its parts. */
export const formatItemId = ({ region, account, type, subject }: ItemId): string =>
  [region, account, type, subject].join('~');

/** Returns the key of an item within its region. */
export const toItemKey = ({ account, type, subject }: ItemId): string => [account, type, subject].join('~');

/** Parses the id of an item. Returns `undefined` for any other text. The ids of endpoints formerly contained an account. */
export function parseItemId(text: string): ItemId | undefined {
  const [, region, account, type, subject] =
    /^([a-z0-9-]{1,63})~([a-z0-9-]{0,63})~(job|endpoint|account|region|message)~([a-z0-9-]{1,80})$/.exec(
      text,
    ) ?? [];
  if (region === undefined || account === undefined || subject === undefined) return undefined;
  if (type === 'job' && !/^[1-9]\d{0,11}$/.test(subject)) return undefined;
  return { region, account: type === 'endpoint' ? '' : account, type: type as ItemId['type'], subject };
}

/** Differences between the kinds of items. */
interface Facts {
  readonly kind: AttentionKind;
  readonly id: ItemId;
  /** Default: that of the id. */
  readonly account?: string | undefined;
  readonly name: string;
  readonly orderNumber?: string | null;
  readonly jobNumber?: number | undefined;
  readonly since: number;
  readonly cause: Partial<AttentionItem['cause']> & Pick<AttentionItem['cause'], 'code' | 'summary'>;
  readonly impact?: Partial<AttentionItem['impact']>;
  readonly material: Material;
  readonly actions: Candidate['actions'];
}

/** Returns the item with the given facts, and its rank. */
export function toCandidate(facts: Facts, now: number): Candidate {
  const { kind, id, account = id.account, name, orderNumber = null, jobNumber = null } = facts;
  const { since, cause, impact, material, actions } = facts;
  const ageHours = Math.max(0, now - since) / HOUR_MS;
  const { lateHours = null, mustDate = null } = cause;
  const { jobs = null, parkedEvents = null, deadEvents = null, waitingEvents = null } = impact ?? {};
  const affected = Math.max(jobs ?? 0, (parkedEvents ?? 0) + (deadEvents ?? 0));
  return {
    id: formatItemId(id),
    kind,
    region: id.region,
    account: account || null,
    subject: { type: id.type, id: id.subject, name, orderNumber, jobNumber },
    since,
    ageHours: round(ageHours),
    cause: {
      ...{ also: [], reason: null, status: null, statusSince: null, dueAt: null, lateHours, mustDate },
      ...cause,
    },
    impact: { jobs, waitingEvents, parkedEvents, deadEvents },
    rank: rankItem({ kind, ageHours, lateHours, mustDate: mustDate === true, affected }),
    material,
    actions,
  };
}

type Action = Candidate['actions'][number];

/** Returns an action that reads a resource. */
export function readAction(operation: string, path: string): Action {
  return { operation, method: 'GET', path, body: null, role: 'read' };
}

/** Returns an action that changes the state of a resource. */
export function operateAction(operation: string, path: string, body: Action['body'] = null): Action {
  return { operation, method: 'POST', path, body, role: 'operate' };
}

const inBrackets = (reason: string | null | undefined): string =>
  reason ? ` (${reason.replace(/^[A-Z](?![A-Z])/, (first) => first.toLowerCase()).replace(/\.$/, '')})` : '';
const takeFirstSentence = (text: string): string => `${text.split(/(?<=\.)\s/, 1)[0]?.replace(/\.$/, '')}.`;
export const capitalize = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
/** Rounds hours to a tenth. */
export const round = (hours: number): number => Math.round(hours * 10) / 10;

const ENDPOINT_KINDS = {
  disabled: 'endpoint_disabled',
  failing: 'endpoint_failing',
  dead: 'events_dead',
  parked: 'events_parked',
} as const;

/** Returns the item of an endpoint with its parked events and its dead events. `undefined`: it needs no attention. */
export function toEndpointItem(
  sink: Sink,
  { parked, dead }: { readonly parked: readonly ParkedEvent[]; readonly dead: readonly DeadEvent[] },
  now: number,
): Candidate | undefined {
  const { region, id, accounts, health, paused } = sink;
  const isEndpoint = isEndpointKind(sink.kind);
  const { state, problem, failingSince, disabledAt } = toHealthState(sink, now);
  const failing = state === 'failing' && failingSince !== null;
  const codes = [
    ...(state === 'disabled' ? (['disabled'] as const) : []),
    ...(failing ? (['failing'] as const) : []),
    ...(dead.length > 0 ? (['dead'] as const) : []),
    ...(parked.length > 0 ? (['parked'] as const) : []),
  ];
  const [code, ...also] = codes;
  if (code === undefined) return undefined;
  const reason = problem ?? parked[0]?.reason ?? dead.at(-1)?.reason ?? null;
  const earliest = (times: readonly number[]) => (times.length > 0 ? Math.min(...times) : now);
  const since = {
    disabled: disabledAt ?? now,
    failing: failingSince ?? now,
    dead: earliest(dead.map(({ diedAt }) => diedAt)),
    parked: earliest(parked.map(({ parkedAt }) => parkedAt)),
  }[code];
  const events = (n: number) => (n === 1 ? '1 event' : `${n.toLocaleString('en-GB')} events`);
  const parts = {
    disabled: 'disabled: nothing is sent',
    failing: 'failing',
    dead: `${events(dead.length)} rejected on every attempt`,
    parked: `${events(parked.length)} parked${paused ? ', and the endpoint is paused' : ''}`,
  };
  const known = { disabled: problem, failing: problem, dead: dead.at(-1)?.reason, parked: parked[0]?.reason };
  const reasons = codes.map((one) => known[one]);
  // A reason is stated once.
  const summary = codes
    .map((one, at) => `${parts[one]}${reasons.indexOf(reasons[at]) === at ? inBrackets(reasons[at]) : ''}`)
    .join('; ');
  const base = `/v1/endpoints/${id}`;
  const query = `?region=${region}`;
  const post = (operation: string, rest: string, body?: Action['body']) =>
    operateAction(operation, `${base}${rest}${query}`, body);
  return toCandidate(
    {
      kind: ENDPOINT_KINDS[code],
      id: endpointItem(sink),
      account: accounts.length === 1 ? accounts[0] : undefined,
      name: id,
      since,
      cause: { code, also, summary: `${capitalize(summary)}.`, reason },
      impact: {
        jobs: new Set([...parked, ...dead].flatMap(({ jobNumber }) => jobNumber ?? [])).size,
        parkedEvents: parked.length,
        deadEvents: dead.length,
      },
      material: {
        key: JSON.stringify([
          state === 'disabled' || failing ? [state, health.failingSince] : [],
          dead.length > 0,
        ]),
        level: toLevel(parked.length) + toLevel(dead.length),
      },
      actions: [
        ...(isEndpoint
          ? [readAction('listEndpointDeliveries', `${base}/deliveries${query}&outcome=failed&limit=1`)]
          : []),
        ...(state === 'disabled' || failing ? [post('enableEndpoint', '/enable')] : []),
        ...(isEndpoint && paused ? [post('resumeEndpoint', '/resume')] : []),
        ...(parked.length > 0 ? [post('retryParkedEvents', '/parked/retry', { all: true })] : []),
        ...(dead.some(({ account }) => account !== '_cell')
          ? [
              post('redeliverEvents', '/redeliver', {
                states: ['dead'],
                // Only the counted ones.
                filter: { from: new Date(earliest(dead.map(({ parkedAt }) => parkedAt))).toISOString() },
              }),
            ]
          : []),
        ...(isEndpoint ? [post('pingEndpoint', '/ping')] : []),
        readAction('getEndpointHealth', `${base}/health${query}`),
      ],
    },
    now,
  );
}

const ACCOUNT_CAUSES = {
  paused: 'Paused: the account is not polled until it is resumed',
  credentials_rejected: 'The ordering API rejected the credentials',
  identity_mismatch: 'The credentials belong to another account of the ordering API, so polling is stopped',
  quarantined:
    'Quarantined: too many jobs disappeared within a day, so none is reported as cancelled or unavailable',
  failing: 'Polling is failing',
  stale: 'No poll has completed for more than two poll intervals',
} as const;

/** Returns the item of an account, with the times of its last change and of its pause. `undefined`: it is observed. */
export function toAccountItem(
  account: Account & { readonly changedAt: number | null; readonly pausedAt: number | null },
  status: Status,
  { hasOutage }: { readonly hasOutage: boolean },
  now: number,
): Candidate | undefined {
  const { account: id, paused, pollIntervalSeconds, managed = false } = account;
  const { state, lastGoodCrawlStartedAt: lastGood, openJobs, problem, quarantinedAt } = status;
  const { consecutiveFailures } = status;
  const observed = lastGood === null ? null : new Date(lastGood).toISOString();
  const stale = staleSince(observed, pollIntervalSeconds, now);
  const code = findAccountCause();
  if (code === undefined) return undefined;
  const since =
    code === 'paused'
      ? (account.pausedAt ?? now)
      : code === 'quarantined'
        ? (quarantinedAt ?? now)
        : // An account without a complete poll is not observed since its last change, such as its creation.
          (lastGood ?? account.changedAt ?? now);
  const base = `/v1/accounts/${id}`;
  const reason = code === 'paused' ? null : problem;
  const isFailing = code === 'credentials_rejected' || code === 'failing';
  const details = [
    isFailing && reason ? takeFirstSentence(reason) : '',
    isFailing && consecutiveFailures > 1 ? `${consecutiveFailures} polls in a row failed.` : '',
    lastGood === null && code !== 'quarantined' ? 'The account was never observed completely.' : '',
  ];
  const confirmed = code === 'identity_mismatch' || code === 'quarantined';
  return toCandidate(
    {
      kind: 'account_not_observed',
      id: accountItem(account),
      name: id,
      since,
      cause: {
        ...{ code, reason },
        summary: [`${ACCOUNT_CAUSES[code]}.`, ...details.filter((detail) => detail !== '')].join(' '),
      },
      impact: { jobs: openJobs },
      material: { key: JSON.stringify([code, code === 'quarantined' ? quarantinedAt : null]), level: 0 },
      actions: [
        ...(code === 'paused' ? [operateAction('resumeAccount', `${base}/resume`)] : []),
        ...(confirmed ? [operateAction('confirmAccount', `${base}/confirm`, {})] : []),
        ...(code === 'paused' ? [] : [operateAction('testAccount', `${base}/test`)]),
        ...(managed && (code === 'credentials_rejected' || code === 'identity_mismatch')
          ? [
              {
                ...{ operation: 'rotateCredentials', path: `${base}/credentials`, body: null },
                ...({ method: 'PUT', role: 'admin' } as const),
              },
            ]
          : []),
        readAction('getAccountStatus', `${base}/status`),
      ],
    },
    now,
  );

  function findAccountCause(): keyof typeof ACCOUNT_CAUSES | undefined {
    if (paused) return (account.pausedAt ?? 0) <= now - PAUSED_MS ? 'paused' : undefined;
    if (state === 'credentials_rejected' || state === 'identity_mismatch') return state;
    if (state === 'failing') return hasOutage ? undefined : 'failing';
    if (quarantinedAt !== null) return 'quarantined';
    return stale !== null && !hasOutage ? 'stale' : undefined;
  }
}

/** Returns the item of a region. `undefined`: its ordering API responds. */
export function toRegionItem(region: string, upstream: BreakerState, now: number): Candidate | undefined {
  const outage = describeOutage(upstream);
  if (outage === undefined || upstream.run === null) return undefined;
  const { since, reason } = upstream.run;
  return toCandidate(
    {
      kind: 'region_outage',
      id: { region, account: '', type: 'region', subject: region },
      name: region.toUpperCase(),
      since,
      cause: {
        code: 'outage',
        summary: `The ordering API has been failing for the whole region for ${formatHours((now - since) / HOUR_MS)}.`,
        reason,
      },
      material: { key: String(upstream.openedAt), level: 0 },
      actions: [readAction('getRegion', `/v1/regions/${region}`)],
    },
    now,
  );
}

/** Returns the item of a message. `undefined`: it reached the customer or is too old. `toAddress`: undelivered messages to its address. */
export function toMessageItem(message: Message, now: number, toAddress = 1): Candidate | undefined {
  const { region, account, id, to, state, kind, channel, jobs, createdAt, sentAt } = message;
  if (!isUndelivered(state) || createdAt < now - MESSAGE_MS) return undefined;
  const what = {
    failed: 'was not sent',
    bounced: 'was returned as undeliverable',
    complained: 'was marked as spam by the recipient',
    unknown: 'may not have been sent',
  }[state as 'failed' | 'bounced' | 'complained' | 'unknown'];
  const isExplained = state === 'bounced' || state === 'complained';
  const why = message.reason === null || isExplained ? '' : ` ${messageReasons[message.reason]}`;
  const common =
    to === null || toAddress < 2
      ? ''
      : ` It is one of ${toAddress} undelivered messages to ${maskAddress(to.address)}.`;
  const [first, ...more] = jobs;
  const jobNumber = more.length === 0 ? first : undefined;
  const about =
    first === undefined ? '' : ` about job ${first}${more.length > 0 ? ` and ${more.length} more` : ''}`;
  return toCandidate(
    {
      kind: 'message_undelivered',
      id: { region, account, type: 'message', subject: id },
      name: `${channel === 'sms' ? 'SMS' : channel === 'email' ? 'E-mail' : 'Message'}${about}`,
      jobNumber,
      since: sentAt ?? createdAt,
      cause: {
        code: state,
        summary: `The message “${kind.replaceAll('_', ' ')}” ${what}.${why}${common}`,
        reason: message.reason === null ? null : message.reason.replaceAll('_', ' '),
      },
      impact: { jobs: jobs.length },
      material: { key: state, level: 0 },
      actions: [
        ...(jobNumber === undefined
          ? []
          : [operateAction('sendNote', `/v1/accounts/${account}/jobs/${jobNumber}/messages`)]),
        readAction('getMessage', `/v1/accounts/${account}/messages/${id}`),
      ],
    },
    now,
  );
}

/** Returns the actions of an item that a role permits. */
export function listActions(candidate: Candidate, role: Role): AttentionItem['actions'] {
  return candidate.actions
    .filter((action) => roleAllows(role, action.role))
    .map(({ role: _, ...action }) => action);
}
