/** Tokens of the ordering API: OAuth 2.0 client credentials. */
import * as z from 'zod';

/** Form of a token request. */
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

/** Error of a token request. */
export const TokenError = z
  .strictObject({
    error: z.string(),
    error_description: z.string().optional(),
  })
  .meta({ id: 'TokenError' });
