/** Accounts, their polls and tests as responses show them. */
import * as z from 'zod';
import { count, textOrNull } from '../representation.ts';
import { EventSettings } from './event-settings.ts';

const timestamp = z.iso.datetime();
const timestampOrNull = timestamp.nullable();

/** State of an account. */
export const AccountState = z
  .enum([
    'baselining',
    'tracking',
    'paused',
    'failing',
    'credentials_rejected',
    'identity_mismatch',
    'quarantined',
  ])
  .describe('Polling state of the account.')
  .meta({ id: 'AccountState' });
export type AccountState = z.infer<typeof AccountState>;

/** Tracking status of an account for API users. Times are ISO 8601. */
export const AccountReport = z
  .object({
    state: AccountState,
    lastPollAt: timestampOrNull.describe('Time of the last poll. `null`: none.'),
    nextPollAt: timestampOrNull.describe(
      'Time of the next poll. `null`: polling is stopped until an operator acts.',
    ),
    pollMs: z
      .object({
        last: count.describe('Duration of the last poll.'),
        median: count.describe('Median duration of a poll.'),
        slowest: count.describe('Maximum duration of a poll.'),
      })
      .nullable()
      .describe('Durations of the last polls (at most 20), in milliseconds. `null`: none.'),
    observedThrough: timestampOrNull.describe(
      'Start of the last complete reading of the list. The changes that it showed are in the log, except those of jobs that could not be read or stored (see `problem`), and of missing jobs (see `missingJobs`).',
    ),
    consecutiveFailures: count.describe('Number of failed polls since the last successful one.'),
    openJobs: count.nullable().describe('Number of active jobs at the last complete poll.'),
    unreadJobs: count.describe('Number of active jobs that Jobwire could not read.'),
    truncatedJobs: count.describe('Number of active jobs with a text that was shortened (`… [truncated]`).'),
    head: z.string().describe('Cursor of the last event in the log.'),
    problem: textOrNull.describe(
      'Error message of the last poll. A successful poll can have one too, about single jobs or payments. `null`: no error.',
    ),
    missingJobs: z
      .object({
        pending: count.describe('Number of missing jobs not investigated yet.'),
        suspected: count.describe(
          'Number of missing jobs that seem to be cancelled or unavailable. An event is emitted after a second check with the same result.',
        ),
        contradictory: count.describe('Number of missing jobs with contradictory responses.'),
      })
      .describe('Jobs that are missing from the list and whose outcome is not yet known.'),
    quarantinedAt: timestampOrNull.describe('Start of the quarantine. `null`: not in quarantine.'),
  })
  .meta({ id: 'AccountStatus' });
export type AccountReport = z.infer<typeof AccountReport>;

/** A completed poll. */
export const PollRecord = z
  .object({
    startedAt: timestamp.describe('Start of the poll, without fractions of a second.'),
    ms: count.describe('Duration of the poll, in milliseconds.'),
    outcome: z
      .enum(['complete', 'partial', 'failed'])
      .describe(
        'Result of the poll. `partial`: some jobs are left to the next poll. `failed`: nothing could be read.',
      ),
    requests: count.describe('Number of requests to the ordering API.'),
    events: count,
    problem: textOrNull.describe('Error message. `null`: none, or no longer stored.'),
  })
  .meta({ id: 'Poll' });
export type PollRecord = z.infer<typeof PollRecord>;

/** An account in API responses, without its credentials. */
export const AccountRecord = z
  .object({
    id: z.string().describe('Id of the account.'),
    region: z.string().describe('Region of the account in the ordering API.'),
    managed: z
      .boolean()
      .describe('`true`: managed through the API. `false`: defined in the configuration file.'),
    secretRef: textOrNull.describe(
      'Name of the secret with the credentials. `null`: the credentials were sent to the API, or are in the configuration file.',
    ),
    pollIntervalSeconds: z.number().describe('Interval between polls, in seconds.'),
    paused: z.boolean().describe('Whether polling is paused.'),
    events: EventSettings,
    move: z
      .object({
        to: textOrNull.describe(
          'In the former cell: the cell to which the account is moved. In the new cell: `null`.',
        ),
        end: textOrNull.describe('Cursor of the end of the log in the former cell. `null`: not closed yet.'),
        complete: z
          .boolean()
          .describe(
            'In the former cell: whether the log is closed. In the new cell: whether all data was imported.',
          ),
      })
      .nullable()
      .describe('Move between cells. `null`: never moved.'),
    createdAt: timestampOrNull.describe('Creation time. `null`: not created through the API.'),
    changedAt: timestampOrNull.describe('Time of the last change. `null`: never changed.'),
    revision: count.describe('Revision number. Each change increments it.'),
  })
  .meta({ id: 'Account' });
export type AccountRecord = z.infer<typeof AccountRecord>;

/** The response to a new account. */
export const CreatedAccount = AccountRecord.extend({
  warnings: z.array(z.string()).describe('Warnings, such as other accounts with the same credentials.'),
}).meta({ id: 'CreatedAccount' });

/** One step of a test. */
export const TestStep = z
  .object({
    step: z
      .enum(['token', 'identity', 'page'])
      .describe(
        '`token`: request a token. `identity`: verify which account the credentials belong to. `page`: read a page of jobs.',
      ),
    ok: z.boolean().describe('Whether the step succeeded.'),
    message: z.string().describe('Result, or error message with a suggested action.'),
    ms: z.int().min(0),
  })
  .meta({ id: 'TestStep' });
export type TestStep = z.infer<typeof TestStep>;

/** Result of a credentials test. The steps end with the first failed one. */
export const TestReport = z
  .object({
    ok: z.boolean().describe('Whether all steps succeeded.'),
    region: z.string().describe('Tested region.'),
    account: textOrNull.describe('Id of the account. `null`: only credentials were tested.'),
    steps: z.array(TestStep).describe('Executed steps. The test stops after the first failure.'),
    upstreamId: z.int().nullable().describe('Id of the account in the ordering API.'),
    openJobs: count.nullable().describe('Number of jobs in the list of active jobs.'),
    statuses: z.array(z.string()).describe('Status names of the newest jobs.'),
  })
  .meta({ id: 'TestReport' });
export type TestReport = z.infer<typeof TestReport>;
