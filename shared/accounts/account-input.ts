/** Input schemas of accounts. Every error message names the field and the accepted values. */
import * as z from 'zod';
import { flag, id, integerFrom } from '../validation.ts';
import { EventSettingsUpdate } from './event-settings.ts';

const part = (what: string) =>
  z
    .string(`must be ${what}`)
    .min(1, `must be ${what}`)
    .max(1000, 'must be at most 1000 characters')
    .refine((text) => text === text.trim() && !/\p{Cc}/u.test(text), {
      error: 'must not begin or end with a space or contain a line break, which are often copied by mistake',
    });

/** Credentials that the ordering API issued for an account. */
export const NewCredentials = z
  .strictObject({
    clientId: part('the client id of the account’s credentials').describe('OAuth client id.'),
    clientSecret: part('the client secret of the account’s credentials')
      .describe('OAuth client secret. Write-only.')
      .meta({ format: 'password' }),
  })
  .meta({ id: 'NewCredentials' });
export type NewCredentials = z.infer<typeof NewCredentials>;

/** Maximum poll interval: one day (s). The host defines the minimum. */
export const MAX_INTERVAL_SECONDS = 86_400;
/** Minimum poll interval on AWS, where the tick runs once a minute (s). */
export const CELL_MIN_INTERVAL_SECONDS = 60;
/** Default poll interval (s). */
export const DEFAULT_INTERVAL_SECONDS = 120;

/** Returns the rule for poll intervals on a host with this minimum. */
export const intervalRule = (least: number): string =>
  `must be an integer number of seconds from ${least} to ${MAX_INTERVAL_SECONDS}`;

const interval = integerFrom(1, MAX_INTERVAL_SECONDS, intervalRule(1)).describe(
  'Interval between polls, in seconds. Minimum on AWS: 60.',
);
const secretRef = z
  .string('must be the name of a secret')
  .min(1, 'must be the name of a secret')
  .max(600, 'must be at most 600 characters')
  .describe(
    'Name of the secret with the credentials. On AWS, it must start with the prefix of the stack. It can be followed by `#` and a JSON key.',
  );
const region = z.string('must be the name of a region');

/**
 * A new account, either with its credentials, which are then stored, or with a reference to their location.
 */
export const NewAccount = z
  .strictObject({
    id: id.describe('Id of the account.'),
    region: region.optional().describe('Region of the account. Required if Jobwire serves several regions.'),
    credentials: NewCredentials.optional(),
    secretRef: secretRef.optional(),
    pollIntervalSeconds: interval.default(DEFAULT_INTERVAL_SECONDS),
    paused: flag.default(false).describe('Whether polling is paused. Default: `false`.'),
    events: EventSettingsUpdate.optional(),
  })
  .refine((account) => (account.credentials === undefined) !== (account.secretRef === undefined), {
    error: 'must contain either credentials or a secretRef',
  })
  .meta({ id: 'NewAccount' });
export type NewAccount = z.input<typeof NewAccount>;

/** A change of an account. Absent fields stay as they are. */
export const AccountUpdate = z
  .strictObject({
    pollIntervalSeconds: interval.optional(),
    secretRef: secretRef.optional(),
    events: EventSettingsUpdate.optional(),
  })
  .meta({ id: 'AccountUpdate' });
export type AccountUpdate = z.infer<typeof AccountUpdate>;

/** Credentials to test before an account has them. */
export const CredentialsTest = z
  .strictObject({
    region: region.optional().describe('Region to test in. Required if Jobwire serves several regions.'),
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
}
