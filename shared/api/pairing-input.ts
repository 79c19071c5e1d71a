/** Schemas of the pairing of wall displays. Free of Node, because web pages use them too. */
import * as z from 'zod';
import { line } from '../validation.ts';
import { NewKey } from './key-input.ts';

/** Names of the keys of wall displays begin with this. */
export const WALL_KEY_PREFIX = 'Wall display';

const code = z
  .string('must be text')
  .regex(/^\d{6}$/, 'must be the 6 digits that the screen shows')
  .describe('Code of 6 digits that the screen shows.');

/** Confirmation of a code by a user. */
export const PairingApproval = z
  .strictObject({
    code,
    name: line(60).describe('Name of the screen, such as its location.'),
    accounts: NewKey.shape.accounts.describe(
      'Ids of the accounts that the screen shows. `null` or absent: all accounts.',
    ),
  })
  .meta({ id: 'WallPairingApproval' });
export type PairingApproval = z.infer<typeof PairingApproval>;

/** Request of a screen for its key. */
export const KeyClaim = z
  .strictObject({
    code,
    deviceToken: z
      .string('must be text')
      .regex(/^[\w-]{43}$/, 'must be the text of 43 characters that the start of the pairing returned')
      .describe('The `deviceToken` that was returned at the start of the pairing.'),
  })
  .meta({ id: 'WallKeyClaim' });
