/** API keys and users in responses of the API. */
import * as z from 'zod';
import { textOrNull } from '../representation.ts';
import { ROLES } from './key-input.ts';

/** A user who signed in at the issuer. */
export const User = z
  .object({
    subject: z.string().describe('Id of the user at the issuer (claim `sub`).'),
    name: textOrNull.describe('E-mail address or name. `null`: unknown.'),
  })
  .meta({ id: 'User', description: 'User who signed in at the issuer.' });
export type User = Readonly<z.infer<typeof User>>;

/** An API key without its secret. */
export const KeyRecord = z
  .strictObject({
    id: z.string().describe('Id of the key: the part of the complete key between the first two underscores.'),
    name: textOrNull.describe('Display name.'),
    role: z
      .enum(ROLES)
      .describe('Role: `read`, `operate` (includes `read`) or `admin` (includes `operate`).'),
    accounts: z
      .array(z.string())
      .nullable()
      .describe('Ids of the accounts that the key can access. `null`: all accounts.'),
    createdAt: z.iso.datetime().describe('Creation time.'),
    createdBy: z
      .string()
      .describe(
        'Id of the API key or user that created this key. `operator`: created with the Lambda function for operators.',
      ),
    createdByUser: User.nullable().describe(
      'User who created this key in the dashboard. `null`: created with an API key, or by an operator.',
    ),
    expiresAt: z.iso.datetime().nullable().describe('Time at which the key expires. `null`: never.'),
    lastUsedAt: z.iso
      .datetime()
      .nullable()
      .describe('Time of the last use, accurate to about 5 minutes. `null`: not used in the last 400 days.'),
  })
  .meta({ id: 'ApiKey' });
export type KeyRecord = z.infer<typeof KeyRecord>;
