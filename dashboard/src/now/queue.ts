/** Texts, actions and views of the attention queue. Independent of React. */
import type { AttentionItem, Client } from '../../../client/index.ts';
import type { SentKind } from '../../../shared/notifications/types.ts';
import { withEndpoint, withId } from '../api.ts';
import { kindNames, stateNames } from '../messages.ts';
import { localStore } from '../storage.ts';
import { formatCount } from '../texts.ts';
import { accountHref, buildHref, endpointHref, jobHref } from '../urls.ts';

export type { AttentionItem };
/** States of the filter. */
export type ListAttentionState = AttentionItem['state'] | 'all';

/** Parameters of the address that filter the queue. */
export const FILTERS = ['kind', 'account', 'assignee', 'state'] as const;

/** Returns the path of the page about the subject of an item. */
export function getSubjectHref({ subject, account, region }: AttentionItem): string {
  switch (subject.type) {
    case 'job':
      return jobHref(account ?? '', Number(subject.id));
    case 'endpoint':
      return endpointHref(region, subject.id);
    case 'account':
      return accountHref(subject.id);
    case 'message':
      return `/setup/customers/${encodeURIComponent(account ?? '')}/messages/${encodeURIComponent(subject.id)}`;
    case 'region':
      return buildHref('/health', { region });
  }
}

/** Formats what the cause does not say about the impact of an item; empty if it affects only its subject. */
export function formatImpact({ subject, impact: { jobs, waitingEvents } }: AttentionItem): string {
  const isOneJob = subject.type === 'job' || (subject.type === 'message' && jobs === 1);
  return [
    ...(waitingEvents ? [`${formatCount(waitingEvents, 'event')} waiting`] : []),
    ...(jobs && !isOneJob ? [`${formatCount(jobs, 'job')} affected`] : []),
  ].join(', ');
}

/** Returns the address of the page with what an item affects. `undefined`: there is none but that of its subject. */
export function getImpactHref({ subject, account, region }: AttentionItem): string | undefined {
  return subject.type === 'account'
    ? buildHref('/jobs', { account: account ?? undefined, region })
    : undefined;
}

/** Returns whether the customer knows; `undefined` if it does not concern customers, or is not needed yet. */
export function formatCustomer(item: AttentionItem): { label: string; title: string } | undefined {
  const { kind, customer } = item;
  if (customer === null) return undefined;
  const { enabled, informed, lastMessage } = customer;
  if (lastMessage === null && kind === 'job_due_soon') return undefined;
  const state = lastMessage && stateNames[lastMessage.state][0].toLowerCase();
  const title = lastMessage
    ? `Last message: ${kindNames[lastMessage.kind as SentKind] ?? lastMessage.kind}, ${state}`
    : 'No message about this job';
  if (informed) return { label: 'Customer notified', title };
  if (!enabled)
    return { label: 'Notifications off', title: `Notifications of the account are off. ${title}` };
  switch (lastMessage?.state) {
    case 'waiting':
    case 'sending':
      return { label: 'Message queued', title };
    case 'sent':
    case undefined:
      return { label: 'Customer not notified', title };
    default:
      return { label: `Customer not notified; last message: ${state}`, title };
  }
}

const MINUTE_MS = 60_000;

/**
 * Formats for how long the cause has existed, rounded down as in the texts of the API. Empty for a job that is due soon, whose cause
 * contains the time left.
 */
export function formatAge({ kind, since }: AttentionItem, nowMs: number): string {
  if (kind === 'job_due_soon') return '';
  const minutes = Math.floor((nowMs - Date.parse(since)) / MINUTE_MS);
  if (minutes < 1) return '< 1 min';
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h` : `${Math.floor(hours / 24)} days`;
}

/** Explains the rank of an item in lines. */
export function explainRank({ rank }: AttentionItem): string {
  const lines = rank.components.map(({ points, explanation }) => `+${points} ${explanation}`);
  return [`Rank ${rank.score}`, ...lines].join('\n');
}

/** An action from the row of an item: it is performed at once, opens something in place, or leads to a page. */
export type RowAction = PerformedAction | OpeningAction | LinkedAction;

interface PerformedAction {
  readonly label: string;
  readonly opens?: undefined;
  readonly done: string;
  /** Asked before the action. */
  readonly confirmation?: { readonly title: string; readonly body: string; readonly verb: string };
  run(api: Client): Promise<unknown>;
}

interface LinkedAction {
  readonly label: string;
  readonly opens: 'page';
  /** Path of the page. */
  readonly path: string;
}

/** `response`: the last failed attempt, below the row. `notify`: the form of a note to the customer. */
interface OpeningAction {
  readonly label: string;
  readonly opens: 'response' | 'notify';
}

/** Returns the outcome of the attempts that explain the item of an endpoint. */
export function getFailure({ cause: { code } }: AttentionItem): 'failed' | 'rejected' {
  return code === 'dead' || code === 'parked' ? 'rejected' : 'failed';
}

/** Returns the actions of an item in its row: what shows the cause, then the recommended ones. */
export function listRowActions(item: AttentionItem): RowAction[] {
  const actions = item.actions.flatMap(({ operation, body }) => toRowAction(item, operation, body) ?? []);
  return actions.sort((one, other) => Number(other.opens === 'response') - Number(one.opens === 'response'));
}

function toRowAction(
  item: AttentionItem,
  operation: string,
  body: Readonly<Record<string, unknown>> | null,
): RowAction | undefined {
  const { region, account, subject, cause } = item;
  const at = withEndpoint({ region, id: subject.id });
  const accountParams = withId(account ?? subject.id);
  switch (operation) {
    case 'sendNote':
      return { label: 'Notify', opens: 'notify' };
    case 'listEndpointDeliveries':
      return { label: 'Response', opens: 'response' };
    case 'enableEndpoint':
      return {
        label: cause.code === 'disabled' ? 'Enable' : 'Retry now',
        done: `Deliveries to ${subject.name} are retried now.${item.actions.some((action) => action.operation === 'listEndpointDeliveries') ? ' “Response” shows the next failed attempt.' : ''}`,
        run: (api) => api.post('/v1/endpoints/{id}/enable', at),
      };
    case 'resumeEndpoint':
      return {
        label: 'Resume',
        done: `${subject.name} is resumed.`,
        run: (api) => api.post('/v1/endpoints/{id}/resume', at),
      };
    case 'retryParkedEvents':
      return {
        label: 'Retry parked',
        done: 'The parked events are sent now.',
        run: (api) => api.post('/v1/endpoints/{id}/parked/retry', { ...at, body: { all: true } }),
      };
    case 'redeliverEvents':
      return {
        label: 'Replay dead',
        done: 'The dead events are sent again. Those that are delivered are no longer dead.',
        run: (api) => api.post('/v1/endpoints/{id}/redeliver', { ...at, body: body as never }),
      };
    case 'resumeAccount':
      return {
        label: 'Resume',
        done: `Polling of ${subject.name} is resumed.`,
        run: (api) => api.post('/v1/accounts/{id}/resume', accountParams),
      };
    case 'testAccount':
      return {
        label: 'Test',
        done: `The credentials of ${subject.name} are valid.`,
        run: async (api) => {
          const { ok, steps } = await api.post('/v1/accounts/{id}/test', accountParams);
          const problem = steps.find((step) => !step.ok)?.message ?? 'The test failed.';
          if (!ok) throw new Error(`${subject.name}: ${problem}`);
        },
      };
    case 'rotateCredentials':
      return { label: 'Credentials', opens: 'page', path: accountHref(subject.id, 'settings') };
    case 'confirmAccount':
      return {
        label: 'Confirm',
        done: `${subject.name} is confirmed.`,
        confirmation: {
          title:
            cause.code === 'quarantined'
              ? `Confirm that jobs of ${subject.name} are gone?`
              : `Confirm ${subject.name}?`,
          body:
            cause.code === 'quarantined'
              ? 'Each missing job is investigated once more, and may then be reported as cancelled or unavailable.'
              : 'Confirm only if the credentials have been corrected. The next poll verifies them.',
          verb: 'Confirm',
        },
        run: (api) => api.post('/v1/accounts/{id}/confirm', { ...accountParams, body: {} }),
      };
    default:
      return undefined;
  }
}

/** A named selection of filters: a query string. */
export interface SavedView {
  readonly name: string;
  readonly query: string;
}

/** Views are kept in this browser, for each key or user. */
const viewsKey = (user: string): string => `jobwire.views.${user}`;

/** Returns the saved views of a key or user. */
export function readViews(user: string): readonly SavedView[] {
  try {
    const stored: unknown = JSON.parse(localStore.getItem(viewsKey(user)) ?? '[]');
    return Array.isArray(stored) ? stored.filter(isView) : [];
  } catch {
    return [];
  }
}

/** Stores the views of a key or user. */
export function writeViews(user: string, views: readonly SavedView[]): void {
  localStore.setItem(viewsKey(user), JSON.stringify(views));
}

function isView(value: unknown): value is SavedView {
  const { name, query } = (value ?? {}) as Partial<SavedView>;
  return typeof name === 'string' && typeof query === 'string';
}
