/** Tokens of the ordering service: OAuth 2.0 client credentials. */
import * as z from 'zod';

/** The form that asks for a token. */
export const TokenRequest = z
  .object({
    grant_type: z.literal('client_credentials'),
    client_id: z.string(),
    client_secret: z.string(),
  })
  .meta({ id: 'TokenRequest' });

/** A token. */
export const Token = z
  .strictObject({
    access_token: z.string(),
    expires_in: z.int().describe('Seconds.'),
    token_type: z.literal('Bearer'),
  })
  .meta({ id: 'Token' });

/** Why there is none. */
export const TokenError = z
  .strictObject({
    error: z.string(),
    error_description: z.string().optional(),
  })
  .meta({ id: 'TokenError' });
