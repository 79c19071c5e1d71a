/** Labels, actions and views of the attention queue. Independent of React. */
import type { AttentionItem, Client } from '../../../client/index.ts';
import { withEndpoint, withId } from '../api.ts';
import { accountHref, buildHref, endpointHref, jobHref } from '../urls.ts';

export type { AttentionItem };
export type AttentionKind = AttentionItem['kind'];
/** States of the filter. */
export type ListAttentionState = AttentionItem['state'] | 'all';

/** Labels of the kinds, in the order of the filter. */
export const KIND_LABELS: Readonly<Record<AttentionKind, string>> = {
  job_late: 'Late jobs',
  job_needs_attention: 'Statuses that need attention',
  job_stalled: 'Stalled jobs',
  job_at_risk: 'Jobs at risk',
  job_due_soon: 'Due soon',
  endpoint_disabled: 'Disabled endpoints',
  endpoint_failing: 'Failing endpoints',
  events_dead: 'Dead events',
  events_parked: 'Parked events',
  account_not_observed: 'Accounts not observed',
  region_outage: 'Outages',
  message_undelivered: 'Undelivered messages',
};

/** Severity of a kind. */
export const KIND_TONES: Readonly<Record<AttentionKind, 'bad' | 'warn' | 'plain'>> = {
  job_late: 'bad',
  job_needs_attention: 'warn',
  job_stalled: 'warn',
  job_at_risk: 'warn',
  job_due_soon: 'plain',
  endpoint_disabled: 'bad',
  endpoint_failing: 'bad',
  events_dead: 'bad',
  events_parked: 'warn',
  account_not_observed: 'bad',
  region_outage: 'bad',
  message_undelivered: 'warn',
};

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

/** Formats the impact of an item; empty if it affects only its subject. */
export function formatImpact({ subject, impact }: AttentionItem): string {
  const { jobs, waitingEvents, parkedEvents, deadEvents } = impact;
  const part = (count: number | null, what: string) =>
    count === null || count === 0 ? [] : [`${count.toLocaleString()} ${what}`];
  const ofJobs = subject.type === 'job' ? [] : part(jobs, jobs === 1 ? 'job' : 'jobs');
  return [
    ...part(waitingEvents, 'waiting'),
    ...part(deadEvents, 'dead'),
    ...part(parkedEvents, 'parked'),
    ...ofJobs,
  ].join(', ');
}

/** Returns whether the customer knows; `undefined` if it does not concern customers. */
export function formatCustomer({ customer }: AttentionItem): { label: string; title: string } | undefined {
  if (customer === null) return undefined;
  const { informed, lastMessage } = customer;
  const last = lastMessage
    ? `Last message: ${lastMessage.kind.replaceAll('_', ' ')}, ${lastMessage.state}`
    : 'No message about this job';
  const isQueued = lastMessage?.state === 'waiting' || lastMessage?.state === 'sending';
  const label = informed ? 'Customer informed' : isQueued ? 'Message queued' : 'Customer not informed';
  return { label, title: last };
}

/** Explains the rank of an item in lines. */
export function explainRank({ rank }: AttentionItem): string {
  const lines = rank.components.map(({ points, explanation }) => `+${points} ${explanation}`);
  return [`Rank ${rank.score}`, ...lines].join('\n');
}

/** An action from the row of an item: it is performed at once, or opens something. */
export type RowAction = PerformedAction | OpeningAction;

interface PerformedAction {
  readonly label: string;
  readonly opens?: undefined;
  readonly done: string;
  /** Asked before the action. */
  readonly confirmation?: { readonly title: string; readonly body: string; readonly verb: string };
  run(api: Client): Promise<unknown>;
}

/** `response`: the last failed attempt, below the row. `notify`: the form of a note to the customer. */
interface OpeningAction {
  readonly label: string;
  readonly opens: 'response' | 'notify';
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
  const ofAccount = withId(account ?? subject.id);
  switch (operation) {
    case 'sendNote':
      return { label: 'Notify', opens: 'notify' };
    case 'listEndpointDeliveries':
      return { label: 'Response', opens: 'response' };
    case 'enableEndpoint':
      return {
        label: cause.code === 'disabled' ? 'Enable' : 'Retry now',
        done: `Deliveries to ${subject.name} are retried now.`,
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
    case 'startReplay':
      return {
        label: 'Replay dead',
        done: 'The replay is started. The item is hidden until more events become dead.',
        run: (api) => replayDead(api, item, body),
      };
    case 'resumeAccount':
      return {
        label: 'Resume',
        done: `Polling of ${subject.name} is resumed.`,
        run: (api) => api.post('/v1/accounts/{id}/resume', ofAccount),
      };
    case 'testAccount':
      return {
        label: 'Test',
        done: `The credentials of ${subject.name} work.`,
        run: async (api) => {
          const { ok, steps } = await api.post('/v1/accounts/{id}/test', ofAccount);
          if (!ok) throw new Error(steps.find((step) => !step.ok)?.message ?? 'The test failed.');
        },
      };
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
              ? 'Each missing job is checked once more, and can then be reported as cancelled or unavailable.'
              : 'The credentials are correct again. The next poll verifies it.',
          verb: 'Confirm',
        },
        run: (api) => api.post('/v1/accounts/{id}/confirm', { ...ofAccount, body: {} }),
      };
    default:
      return undefined;
  }
}

/** Replays dead events, and hides the item unless it has other causes. */
async function replayDead(
  api: Client,
  { id, region, subject, cause }: AttentionItem,
  body: Readonly<Record<string, unknown>> | null,
): Promise<void> {
  const at = withEndpoint({ region, id: subject.id });
  const replay = await api.post('/v1/endpoints/{id}/replays', { ...at, body: body as never });
  const note = `Dead events replayed: ${replay.id}`;
  if (cause.code === 'dead')
    await api.post('/v1/attention/{id}/acknowledge', { ...withId(id), body: { note } });
  else await api.post('/v1/attention/{id}/note', { ...withId(id), body: { note } });
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
    const stored: unknown = JSON.parse(localStorage.getItem(viewsKey(user)) ?? '[]');
    return Array.isArray(stored) ? stored.filter(isView) : [];
  } catch {
    return [];
  }
}

/** Stores the views of a key or user. */
export function writeViews(user: string, views: readonly SavedView[]): void {
  localStorage.setItem(viewsKey(user), JSON.stringify(views));
}

function isView(value: unknown): value is SavedView {
  const { name, query } = (value ?? {}) as Partial<SavedView>;
  return typeof name === 'string' && typeof query === 'string';
}
