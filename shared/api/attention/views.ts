/** Items of the attention queue as returned by the API. Records have the same fields, with times as epoch ms. */
import * as z from 'zod';
import { messageStates } from '../../notifications/types.ts';
import { count, type SchemaOutput, textOrNull, timestamp, timestampOrNull } from '../../representation.ts';

/** Kinds of items, with their meaning. */
export const attentionKinds = {
  job_late: 'The job is past its due time.',
  job_needs_attention: 'The job is in one of the `attentionStatuses` of the account.',
  job_stalled: 'The job has been in its status for too long, according to the settings of the account.',
  job_at_risk: 'The job may become late (`risk` is `at-risk`).',
  job_due_soon: 'The job is due soon.',
  endpoint_disabled: 'Nothing is sent until the endpoint is enabled.',
  endpoint_failing: 'The last delivery failed, and events wait.',
  events_dead: 'The endpoint has dead events.',
  events_parked: 'The endpoint has parked events.',
  account_not_observed:
    'Polling is failing or paused, the credentials are rejected or belong to another account, or the account is quarantined.',
  region_outage: 'The ordering API fails for the whole region.',
  message_undelivered: 'The state of a message is `failed`, `bounced`, `complained` or `unknown`.',
} as const;
export type AttentionKind = keyof typeof attentionKinds;
export const ATTENTION_KINDS = Object.keys(attentionKinds) as [AttentionKind, ...AttentionKind[]];

/** States of items. */
export const ATTENTION_STATES = ['open', 'snoozed', 'acknowledged'] as const;
export type AttentionState = (typeof ATTENTION_STATES)[number];

/** Actions of users on the subject of an item. They are recorded, and do not change the state. */
export const SUBJECT_ACTIONS = [
  'pause',
  'resume',
  'enable',
  'retry_parked',
  'discard_parked',
  'redeliver',
  'replay',
  'confirm',
  'replace_credentials',
  'send_note',
] as const;
export type SubjectAction = (typeof SUBJECT_ACTIONS)[number];

const Actor = z
  .object({
    id: z.string().describe('Id of the API key or of the user.'),
    name: textOrNull.describe('Name of the key or user, or e-mail address.'),
    user: z.boolean().describe('`true`: a user who signed in. `false`: an API key.'),
  })
  .meta({
    id: 'AttentionActor',
    description: 'API key or user that performed an action.',
  });
export type Actor = z.infer<typeof Actor>;

const Cause = z
  .object({
    code: z
      .string()
      .describe(
        'Machine-readable cause. Jobs: `late`, `needs_attention`, `stalled`, `at_risk` or `due_soon`. Endpoints: `disabled`, `failing`, `dead` or `parked`. Accounts: their state, or `stale` (no recent complete poll). Regions: `outage`. Messages: their state.',
      ),
    also: z.array(z.string()).describe('Further causes.'),
    summary: z.string().describe('Description of the cause, in English.'),
    reason: textOrNull.describe('Error message. `null`: not an error.'),
    status: textOrNull.describe('Status of the job in the ordering API.'),
    statusSince: timestampOrNull.describe('Time of the first response with this status.'),
    dueAt: timestampOrNull.describe(
      'Due time of the job, the latest possible one if the time zone is unknown.',
    ),
    lateHours: z.number().nullable().describe('Hours since the due time. `null`: not late.'),
    mustDate: z.boolean().nullable().describe('Whether the due date of the job must be met.'),
  })
  .meta({ id: 'AttentionCause' });

const Rank = z
  .object({
    score: z.int().describe('Sum of the points.'),
    components: z
      .array(
        z.object({
          name: z.enum(['kind', 'lateness', 'mandatory_date', 'impact', 'age']),
          points: z.int(),
          explanation: z.string().describe('Reason for the points, in English.'),
        }),
      )
      .describe('Parts of the score.'),
  })
  .meta({ id: 'AttentionRank' });
export type Rank = SchemaOutput<typeof Rank>;

/** An item of the queue. */
export const AttentionItem = z
  .object({
    id: z.string().describe('Id of the item: stable while the subject exists.'),
    kind: z
      .enum(ATTENTION_KINDS)
      .describe(
        `Most severe kind that applies to the subject. ${ATTENTION_KINDS.map((kind) => `\`${kind}\`: ${attentionKinds[kind]}`).join(' ')}`,
      ),
    region: z.string().describe('Name of the region.'),
    account: textOrNull.describe('Id of the account. `null`: not about a single account.'),
    subject: z
      .object({
        type: z.enum(['job', 'endpoint', 'account', 'region', 'message']),
        id: z.string().describe('Job number, or id of the endpoint, account, region or message.'),
        name: z.string().describe('Display name.'),
        orderNumber: textOrNull,
        jobNumber: z.int().nullable().describe('Number of the job. `null`: not about exactly one job.'),
      })
      .describe('What needs attention.'),
    since: timestamp.describe('Start of the cause, as far as it is known.'),
    ageHours: z.number().describe('Hours since the time in `since`.'),
    cause: Cause,
    impact: z
      .object({
        jobs: count.nullable().describe('Number of affected jobs. `null`: unknown.'),
        waitingEvents: count
          .nullable()
          .describe('Number of events that wait for delivery. `null`: unknown, or not about deliveries.'),
        parkedEvents: count.nullable().describe('Number of parked events, at most 1,100.'),
        deadEvents: count.nullable().describe('Number of dead events of the last 30 days, at most 100.'),
      })
      .describe('What the cause affects.'),
    customer: z
      .object({
        enabled: z.boolean().describe('Whether the notifications of the account are on.'),
        informed: z
          .boolean()
          .describe('Whether a message about the job was sent to the customer since the cause began.'),
        lastMessage: z
          .object({
            id: z.string(),
            kind: z.string(),
            state: z.enum(Object.keys(messageStates) as [keyof typeof messageStates]),
            at: timestamp.describe('Time at which the message was sent or, if unsent, created.'),
          })
          .nullable()
          .describe('Newest message about the job. `null`: none.'),
      })
      .nullable()
      .describe(
        'Whether the customer was informed. `null`: not about a job, or notifications are not configured.',
      ),
    actions: z
      .array(
        z.object({
          operation: z.string().describe('Id of an operation of this API.'),
          method: z.enum(['GET', 'POST', 'PUT']),
          path: z.string().describe('Path and query of the request.'),
          body: z
            .looseObject({})
            .nullable()
            .describe('Body of the request. `null`: none, or one that the caller provides.'),
        }),
      )
      .describe('Next actions that the API key permits, the recommended one first.'),
    rank: Rank,
    state: z
      .enum(ATTENTION_STATES)
      .describe(
        '`snoozed` (until `snoozedUntil`) and `acknowledged`: hidden until the cause changes materially (see *Snooze an item*).',
      ),
    snoozedUntil: timestampOrNull.describe('End of the snooze.'),
    returned: z
      .enum(['changed', 'snooze_ended'])
      .nullable()
      .describe('Reason why a hidden item is open again. `null`: it was not hidden.'),
    assignee: textOrNull.describe('Name of the person who handles the item.'),
    note: textOrNull.describe('Latest note.'),
    changedAt: timestampOrNull.describe('Time of the last action of a user on the item.'),
    changedBy: Actor.nullable().describe('API key or user that performed the last action.'),
  })
  .meta({ id: 'AttentionItem', description: 'An item of the attention queue.' });
export type AttentionItem = SchemaOutput<typeof AttentionItem>;

const kindCounts = z.array(z.object({ kind: z.enum(ATTENTION_KINDS), items: count }));

/** Numbers of items. */
export const AttentionCounts = z
  .object({
    open: count,
    snoozed: count,
    acknowledged: count,
    byKind: kindCounts.describe('Number of open items of each kind.'),
    hiddenByKind: kindCounts.describe('Number of snoozed and acknowledged items of each kind.'),
    complete: z.boolean().describe('`false`: the real numbers can be higher.'),
  })
  .meta({ id: 'AttentionCounts' });
export type AttentionCounts = SchemaOutput<typeof AttentionCounts>;

/** A page of the queue. */
export const AttentionPage = z
  .object({
    items: z.array(AttentionItem).describe('Items of the page, highest rank first.'),
    next: textOrNull.describe('`null` on the last page.'),
    total: count.describe('Number of items that match the filters.'),
    counts: AttentionCounts.describe('Numbers of items. Of the filters, only `region` applies to them.'),
    watched: z
      .object({
        regions: z.array(z.string()).describe('Names of the regions.'),
        accounts: count.describe('Number of accounts.'),
        endpoints: count.describe('Number of endpoints.'),
        messages: z.boolean().describe('Whether customer messages are watched.'),
      })
      .describe('Scope of the queue.'),
    rule: z.string().describe('Explanation of the ranking, in English.'),
    asOf: timestamp.describe('Time of this response.'),
  })
  .meta({ id: 'AttentionPage' });

/** Action of a user on an item. */
export const AttentionEntry = z
  .object({
    at: timestamp,
    by: Actor,
    action: z
      .enum(['snooze', 'acknowledge', 'reopen', 'assign', 'note', ...SUBJECT_ACTIONS])
      .describe('Action on the item, or on its subject while it needed attention.'),
    until: timestampOrNull.describe('End of the snooze.'),
    assignee: textOrNull.describe('Name given with `assign`. `null`: unassigned.'),
    note: textOrNull.describe('Text given with the action.'),
    kind: z.enum(ATTENTION_KINDS).describe('Kind of the item at that time.'),
    cause: z.string().describe('Cause of the item at that time.'),
  })
  .meta({ id: 'AttentionEntry' });
export type AttentionEntry = SchemaOutput<typeof AttentionEntry>;
