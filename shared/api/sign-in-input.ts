/** Settings of the sign-in of users, in both configuration files. Free of Node. */
import * as z from 'zod';
import { isLoopbackHost } from '../loopback.ts';
import { id as accountId } from '../validation.ts';
import { ROLES } from './key-input.ts';

const ISSUER_RULE =
  'must be a URL that begins with https://, or with http:// and a loopback host, and contains no user name, ? or #';
const CLIENT_RULE = 'must be the id of the client at the issuer';
const SCOPES_RULE = 'must be a list of scopes with "openid"';
const CLAIM_RULE = 'must be the name of a claim';
const GROUPS_RULE = 'must map 1 to 100 names of groups to their role';
const MAX_GROUPS = 100;

/** Returns whether a URL of the issuer is acceptable: only a loopback host may use HTTP. */
export function isSafeUrl(text: string): boolean {
  const url = URL.parse(text);
  if (!url || url.username || url.password) return false;
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopbackHost(url.hostname));
}

/** Sign-in of users with OpenID Connect. */
export const SignInSettings = z.strictObject({
  issuer: z
    .string(ISSUER_RULE)
    .refine((url) => isSafeUrl(url) && !/[?#]/.test(url), ISSUER_RULE)
    .describe(
      'URL of the issuer, as in the claim `iss` of its tokens. `<issuer>/.well-known/openid-configuration` is its discovery document.',
    )
    .meta({ examples: ['https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_Ab12Cd34E'] }),
  clientId: z
    .string(CLIENT_RULE)
    .min(1, CLIENT_RULE)
    .describe('Id of the client at the issuer. It must be a public client (without a secret) with PKCE.')
    .meta({ examples: ['jobwire-dashboard'] }),
  scopes: z
    .array(z.string(SCOPES_RULE).regex(/^[\x21\x23-\x5b\x5d-\x7e]+$/, SCOPES_RULE), SCOPES_RULE)
    .refine((scopes) => scopes.includes('openid'), SCOPES_RULE)
    .default(['openid', 'email', 'profile'])
    .describe('Requested scopes. Some issuers return a refresh token only with `offline_access`.')
    .meta({ examples: [['openid', 'email', 'offline_access']] }),
  groupsClaim: z
    .string(CLAIM_RULE)
    .min(1, CLAIM_RULE)
    .default('groups')
    .describe(
      'Claim of the ID token that contains the names of the user’s groups, as a text or a list of texts. A claim name that contains dots is also read as a path to a nested claim, such as `realm_access.roles`.',
    )
    .meta({ examples: ['cognito:groups'] }),
  groups: z
    .record(
      z.string().min(1, 'must be the name of a group'),
      z.strictObject({
        role: z
          .enum(ROLES, 'must be read, operate or admin')
          .describe('Role of the group’s members: `read`, `operate` or `admin`.')
          .meta({ examples: ['operate'] }),
        accounts: z
          .array(accountId, 'must be a list of ids of accounts')
          .min(1, 'must name at least one account')
          .optional()
          .describe('Ids of the accounts that the group’s members can access. Default: all accounts.')
          .meta({ examples: [['acme']] }),
      }),
      GROUPS_RULE,
    )
    .refine((groups) => {
      const { length } = Object.keys(groups);
      return length > 0 && length <= MAX_GROUPS;
    }, GROUPS_RULE)
    .describe(
      'Groups with access, by the name in the claim. If a user is a member of several groups, only the groups that grant the highest role are used. The user gets this role, for the accounts of these groups. The other groups add nothing, not even read access to their accounts. Users in none of the groups have no access.',
    )
    .meta({
      examples: [{ operations: { role: 'operate' }, 'acme-sales': { role: 'read', accounts: ['acme'] } }],
    }),
});
export type SignInSettings = z.infer<typeof SignInSettings>;
