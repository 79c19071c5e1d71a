/** Input and output schemas of accounts. Every error message names the field and the accepted values. */
import * as z from 'zod';
import { id } from '../checks.ts';

const part = (what: string) =>
  z
    .string(`must be ${what}`)
    .min(1, `must be ${what}`)
    .max(1000, 'must be at most 1000 characters')
    .refine((text) => text === text.trim() && !/\p{Cc}/u.test(text), {
      error: 'must be without spaces around it and without line breaks: they come along when it is copied',
    });

/** Credentials that the ordering API issued for an account. */
export const NewCredentials = z
  .strictObject({
    clientId: part('the client id of the account’s credentials').describe('The OAuth client id.'),
    clientSecret: part('the client secret of the account’s credentials')
      .describe('The OAuth client secret. Never shown again.')
      .meta({ format: 'password' }),
  })
  .meta({ id: 'NewCredentials' });
export type NewCredentials = z.infer<typeof NewCredentials>;

/** Maximum poll interval: one day (s). The host defines the minimum. */
export const MAX_INTERVAL_SECONDS = 86_400;
/** Minimum poll interval on AWS, where the tick runs once a minute (s). */
export const CELL_MIN_INTERVAL_SECONDS = 60;
const DEFAULT_INTERVAL_SECONDS = 120;

/** Returns the rule for poll intervals on a host with this minimum. */
export const intervalRule = (least: number): string =>
  `must be a whole number of seconds from ${least} to ${MAX_INTERVAL_SECONDS}`;

const interval = z
  .int(intervalRule(1))
  .min(1, intervalRule(1))
  .max(MAX_INTERVAL_SECONDS, intervalRule(1))
  .describe('How far apart polls are, in seconds. On AWS at least 60.');
const secretRef = z
  .string('must be the name of a secret')
  .min(1, 'must be the name of a secret')
  .max(600, 'must be at most 600 characters')
  .describe(
    'Where the credentials are: on AWS the name of a secret below the cell’s own, or that, # and a key of the JSON in it.',
  );
const region = z.string('must be the name of a region');

/**
 * A new account, either with its credentials, which are then stored, or with a reference to their location.
 */
export const NewAccount = z
  .strictObject({
    id: id.describe('The id that it is to have: in paths, events and cursors.'),
    region: region.optional().describe('May be left out where there is only one.'),
    credentials: NewCredentials.optional(),
    secretRef: secretRef.optional(),
    pollIntervalSeconds: interval.default(DEFAULT_INTERVAL_SECONDS),
    paused: z.boolean('must be true or false').default(false).describe('Not polled until it is resumed.'),
  })
  .refine((account) => (account.credentials === undefined) !== (account.secretRef === undefined), {
    error: 'must hold either credentials or a secretRef',
  })
  .meta({ id: 'NewAccount' });
export type NewAccount = z.input<typeof NewAccount>;

/** A change of an account. Absent fields stay as they are. */
export const AccountChange = z
  .strictObject({ pollIntervalSeconds: interval.optional(), secretRef: secretRef.optional() })
  .refine((change) => Object.values(change).some((value) => value !== undefined), {
    error: 'must change something: pollIntervalSeconds or secretRef',
  })
  .meta({ id: 'AccountChange' });
export type AccountChange = z.infer<typeof AccountChange>;

/** Credentials to test before an account has them. */
export const CredentialsTest = z
  .strictObject({
    region: region.optional().describe('May be left out where there is only one.'),
    credentials: NewCredentials,
  })
  .meta({ id: 'CredentialsTest' });

/** Filter and paging of a list of accounts. */
export interface AccountQuery {
  /** Region. Default: all regions of this process. */
  readonly region?: string | undefined;
  /** Ids of the accounts to list. Default: all. */
  readonly only?: readonly string[] | null | undefined;
  /** `next` of the previous page. */
  readonly after?: string | undefined;
  /** Maximum number of accounts. Default: 100. Maximum: 500. */
  readonly limit?: number | undefined;
  /** Whether to include the status of each account. Default: false. */
  readonly status?: boolean | undefined;
}

const instant = z.iso.datetime();

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
  .describe('How tracking of the account stands.')
  .meta({ id: 'AccountState' });
export type AccountState = z.infer<typeof AccountState>;

const count = z.int().min(0);

/** Tracking status of an account for API users. Times are ISO 8601. */
export const AccountReport = z
  .object({
    state: AccountState,
    lastPollAt: instant.nullable().describe('When it was polled last; null before the first poll.'),
    nextPollAt: instant
      .nullable()
      .describe('When it is due next; null when it is not polled until somebody acts.'),
    pollMs: z
      .object({
        last: count.describe('The last one.'),
        median: count.describe('Half of them were as fast as this.'),
        slowest: count.describe('The slowest one.'),
      })
      .nullable()
      .describe('How long its last polls took, in ms, 20 of them at most; null before the first.'),
    observedThrough: instant
      .nullable()
      .describe('Everything that the ordering service showed before this instant is in the log.'),
    consecutiveFailures: count.describe('Polls that failed since the last good one.'),
    openJobs: count.nullable().describe('Jobs in the service’s list at the last complete poll.'),
    unreadJobs: count.describe('How many of them could not be read.'),
    head: z.string().describe('The cursor of the last event.'),
    problem: z
      .string()
      .nullable()
      .describe('Why the last poll failed or could not see everything, in a sentence.'),
    missingJobs: z
      .object({
        unanswered: count.describe('Not answered for yet.'),
        suspected: count.describe('Seem to be gone, and are looked at once more before that is said.'),
        contradictory: count.describe('The answers about them don’t fit together.'),
      })
      .describe('Jobs missing from the list of which it is open what became of them.'),
    quarantinedAt: instant
      .nullable()
      .describe('Since when jobs that are missing are not said to be gone, because too many are.'),
  })
  .meta({ id: 'AccountStatus' });
export type AccountReport = z.infer<typeof AccountReport>;

/** A completed poll. */
export const PollRecord = z
  .object({
    startedAt: instant.describe('When it began, in whole seconds.'),
    ms: count.describe('How long it took.'),
    outcome: z
      .enum(['complete', 'partial', 'failed'])
      .describe('`partial`: something was left for the next one. `failed`: nothing could be read.'),
    requests: count.describe('Requests to the ordering service.'),
    events: count.describe('What it announced.'),
    problem: z
      .string()
      .nullable()
      .describe('What went wrong, in a sentence; null also where that is no longer kept.'),
  })
  .meta({ id: 'Poll' });
export type PollRecord = z.infer<typeof PollRecord>;

/** An account in API responses, without its credentials. */
export const AccountRecord = z
  .object({
    id: z.string().describe('Its id: in paths, events and cursors.'),
    region: z.string().describe('The region of the ordering service that it is in.'),
    managed: z
      .boolean()
      .describe(
        'Whether it can be changed here; what the configuration file declares can only be changed there.',
      ),
    secretRef: z
      .string()
      .nullable()
      .describe(
        'Where its credentials are; null when they were given here, or stand in the configuration file.',
      ),
    pollIntervalSeconds: z.number().describe('How far apart polls are, in seconds.'),
    paused: z.boolean().describe('Not polled until it is resumed.'),
    createdAt: instant.nullable().describe('When it was made; null for what was not made here.'),
    changedAt: instant.nullable().describe('When it was changed last; null when it never was.'),
    revision: count.describe('Counted up with each change.'),
  })
  .meta({ id: 'Account' });
export type AccountRecord = z.infer<typeof AccountRecord>;

/** One step of a test. */
export const TestStep = z
  .object({
    step: z
      .enum(['token', 'identity', 'page'])
      .describe('Getting a token, asking whose account it is, reading one page of jobs.'),
    ok: z.boolean().describe('Whether it worked.'),
    sentence: z.string().describe('What was found, or what is wrong and what to do about it.'),
    ms: z.int().min(0).describe('How long it took.'),
  })
  .meta({ id: 'TestStep' });
export type TestStep = z.infer<typeof TestStep>;

/** Result of a credentials test. The steps end with the first failed one. */
export const TestReport = z
  .object({
    ok: z.boolean().describe('Whether all steps worked.'),
    region: z.string().describe('The region that was asked.'),
    account: z.string().nullable().describe('The account that was tested; null for credentials of none yet.'),
    steps: z.array(TestStep).describe('In order; they end with the first that failed.'),
    upstreamId: z.int().nullable().describe('The id that the ordering service has for the account.'),
    openJobs: count.nullable().describe('Jobs in the service’s list.'),
    statuses: z.array(z.string()).describe('Statuses of the newest of them.'),
  })
  .meta({ id: 'TestReport' });
export type TestReport = z.infer<typeof TestReport>;
