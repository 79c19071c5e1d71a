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
    lastPollAt: timestampOrNull.describe(
      'Time of the last poll. `null`: the account has not been polled yet.',
    ),
    nextPollAt: timestampOrNull.describe(
      'Time at which the next poll is due. `null`: polling is stopped until an operator resumes it or solves the problem.',
    ),
    pollMs: z
      .object({
        last: count.describe('Duration of the last poll.'),
        median: count.describe('Median duration of a poll.'),
        slowest: count.describe('Maximum duration of a poll.'),
      })
      .nullable()
      .describe(
        'Durations of the last polls (at most 20), in milliseconds. `null`: the account has not been polled yet.',
      ),
    observedThrough: timestampOrNull.describe(
      'Start of the last complete reading of the list of active jobs. The changes that this reading showed are in the log. Exceptions: jobs that Jobwire could not read or store (see `problem`), and missing jobs (see `missingJobs`).',
    ),
    consecutiveFailures: count.describe('Number of failed polls since the last successful one.'),
    openJobs: count
      .nullable()
      .describe('Number of jobs in the list of active jobs at the last complete poll.'),
    unreadJobs: count.describe('Number of jobs in the list of active jobs that Jobwire could not read.'),
    truncatedJobs: count.describe(
      'Number of active jobs with a text that is too long to store. Jobwire stores the beginning of such a text, followed by `… [truncated]`.',
    ),
    head: z.string().describe('Cursor of the last event in the log.'),
    problem: textOrNull.describe(
      'Error message of the last poll. A successful poll can have one too, about single jobs or payments that could not be read or stored. `null`: there was no error.',
    ),
    missingJobs: z
      .object({
        pending: count.describe('Number of missing jobs that Jobwire has not investigated yet.'),
        suspected: count.describe(
          'Number of missing jobs that seem to be cancelled or unavailable. A job is unavailable if the ordering API returns 404 for its detail. A second check must have the same result before an event is emitted.',
        ),
        contradictory: count.describe(
          'Number of missing jobs for which the responses of the ordering API contradict each other.',
        ),
      })
      .describe(
        'Counts of the jobs that are missing from the list of active jobs and whose outcome is not yet known.',
      ),
    quarantinedAt: timestampOrNull.describe(
      'Start of the quarantine. A quarantine begins when too many jobs disappear from the list of active jobs within a day. Until it ends, no job is reported as cancelled or unavailable. A job is unavailable if the ordering API returns 404 for it. `null`: the account is not in quarantine.',
    ),
  })
  .meta({ id: 'AccountStatus' });
export type AccountReport = z.infer<typeof AccountReport>;

/** A completed poll. */
export const PollRecord = z
  .object({
    startedAt: timestamp.describe('Time at which the poll started, without fractions of a second.'),
    ms: count.describe('Duration of the poll, in milliseconds.'),
    outcome: z
      .enum(['complete', 'partial', 'failed'])
      .describe(
        'Result of the poll. `partial`: some jobs are left to the next poll. `failed`: nothing could be read.',
      ),
    requests: count.describe('Number of requests to the ordering API.'),
    events: count.describe('Number of emitted events.'),
    problem: textOrNull.describe(
      'Error message. `null`: there was no error, or its message is no longer stored.',
    ),
  })
  .meta({ id: 'Poll' });
export type PollRecord = z.infer<typeof PollRecord>;

/** An account in API responses, without its credentials. */
export const AccountRecord = z
  .object({
    id: z.string().describe('Id of the account in paths, events and cursors.'),
    region: z.string().describe('Region of the account in the ordering API.'),
    managed: z
      .boolean()
      .describe(
        '`true`: the account is managed through the API. `false`: the account is defined in the configuration file.',
      ),
    secretRef: textOrNull.describe(
      'Name of the secret that contains the credentials. `null`: the credentials were sent to the API, or are in the configuration file.',
    ),
    pollIntervalSeconds: z.number().describe('Interval between polls, in seconds.'),
    paused: z.boolean().describe('Whether polling is paused.'),
    events: EventSettings,
    move: z
      .object({
        to: textOrNull.describe(
          'In the former cell: the cell to which the account is being moved, or was moved. The account cannot be resumed in the former cell. Its log there is closed, or will be closed during the move. In the new cell: `null`.',
        ),
        end: textOrNull.describe(
          'Cursor of the end of the log in the former cell. `null`: the log is not closed yet.',
        ),
        complete: z
          .boolean()
          .describe(
            'In the new cell: whether all data was imported. Polling starts after that. In the former cell: whether the log is closed.',
          ),
      })
      .nullable()
      .describe('Move of the account between cells. `null`: the account was never moved.'),
    createdAt: timestampOrNull.describe(
      'Creation time. `null`: the resource was not created through the API.',
    ),
    changedAt: timestampOrNull.describe('Time of the last change. `null`: the resource was never changed.'),
    revision: count.describe('Revision number. Each change increments it.'),
  })
  .meta({ id: 'Account' });
export type AccountRecord = z.infer<typeof AccountRecord>;

/** The response to a new account. */
export const CreatedAccount = AccountRecord.extend({
  warnings: z
    .array(z.string())
    .describe('Warnings about the account, such as other accounts with the same credentials.'),
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
    ms: z.int().min(0).describe('Duration of the step, in milliseconds.'),
  })
  .meta({ id: 'TestStep' });
export type TestStep = z.infer<typeof TestStep>;

/** Result of a credentials test. The steps end with the first failed one. */
export const TestReport = z
  .object({
    ok: z.boolean().describe('Whether all steps succeeded.'),
    region: z.string().describe('Tested region.'),
    account: textOrNull.describe(
      'Id of the tested account. `null`: credentials were tested before the registration of an account.',
    ),
    steps: z
      .array(TestStep)
      .describe('Executed steps, in order. The test stops after the first step that fails.'),
    upstreamId: z.int().nullable().describe('Id of the account in the ordering API.'),
    openJobs: count.nullable().describe('Number of jobs in the list of active jobs.'),
    statuses: z.array(z.string()).describe('Status names of the newest jobs.'),
  })
  .meta({ id: 'TestReport' });
export type TestReport = z.infer<typeof TestReport>;
