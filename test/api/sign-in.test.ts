/** Access of users: from the claims of an ID token to role and accounts. Settings of the sign-in. */
import { describe, expect, it } from 'vitest';
import { createKeyring } from '../../shared/api/keys.ts';
import { toCaller } from '../../shared/api/sign-in.ts';
import { SignInSettings } from '../../shared/api/sign-in-input.ts';
import { parseConfig } from '../../shared/config.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';

const SETTINGS = {
  issuer: 'https://id.example',
  clientId: 'jobwire',
  groups: {
    admins: { role: 'admin', accounts: ['acme'] },
    'admins-of-other': { role: 'admin', accounts: ['other', 'acme'] },
    desk: { role: 'operate' },
    sales: { role: 'read', accounts: ['acme'] },
    guests: { role: 'read' },
  },
} as const;

const admit = (claims: object, settings: object = {}) =>
  toCaller(SignInSettings.parse({ ...SETTINGS, ...settings }), {
    ...{ iss: SETTINGS.issuer, sub: 'u-1', exp: 2_000_000_000, ...claims },
  });

describe('toCaller', () => {
  it.each<[string[], string, string[] | null]>([
    [['sales'], 'read', ['acme']],
    [['sales', 'guests'], 'read', null],
    [['guests', 'desk'], 'operate', null],
    [['admins', 'admins-of-other'], 'admin', ['acme', 'other']],
    // The accounts of a lower role never extend a higher one.
    [['admins', 'desk', 'guests'], 'admin', ['acme']],
  ])(
    'members of %j get the highest role %s, for the accounts of the groups with it: %j',
    (groups, role, accounts) => {
      expect(admit({ groups })).toMatchObject({ role, accounts });
    },
  );

  it.each([
    [{}],
    [{ groups: [] }],
    [{ groups: ['unknown'] }],
    [{ groups: 'sales desk' }],
    [{ groups: [{ name: 'desk' }, ['desk'], 7] }],
    [{ groups: { desk: true } }],
    [{ groups: ['constructor', '__proto__', 'toString'] }],
    [{ group: ['desk'] }],
  ])('users with the claims %j have no access', (claims) => {
    expect(admit(claims)).toBeUndefined();
  });

  it.each([
    ['cognito:groups', { 'cognito:groups': ['desk'] }],
    ['https://jobwire.example/groups', { 'https://jobwire.example/groups': ['desk'] }],
    ['realm_access.roles', { realm_access: { roles: ['offline_access', 'desk'] } }],
    ['role', { role: 'desk' }],
  ])('reads groups from the claim %s', (groupsClaim, claims) => {
    expect(admit(claims, { groupsClaim })).toMatchObject({ role: 'operate' });
    expect(admit({ [`${groupsClaim}2`]: ['desk'] }, { groupsClaim })).toBeUndefined();
  });

  it.each([
    [{ email: 'ann@acme.example', name: 'Ann' }, 'ann@acme.example'],
    [{ name: 'Ann', preferred_username: 'al' }, 'Ann'],
    [{ preferred_username: 'al' }, 'al'],
    [{ email: 7, name: '' }, null],
  ])('names a user with the claims %j: %s', (claims, name) => {
    expect(admit({ ...claims, groups: ['desk'] })).toMatchObject({ name, user: { subject: 'u-1', name } });
  });

  it('identifies a user by issuer and subject, with an id that contains neither', () => {
    const first = admit({ sub: 'ann@acme.example', groups: ['desk'] });
    expect(first?.keyId).toMatch(/^user_[\w-]{22}$/);
    expect(admit({ sub: 'ann@acme.example', groups: ['sales'] })?.keyId).toBe(first?.keyId);
    expect(admit({ sub: 'bob@acme.example', groups: ['desk'] })?.keyId).not.toBe(first?.keyId);
    expect(admit({ iss: 'https://b.example', sub: 'ann@acme.example', groups: ['desk'] })?.keyId).not.toBe(
      first?.keyId,
    );
  });
});

describe('createKeyring', () => {
  it('lets streams of a user continue until the token has expired', async () => {
    let at = 1_999_999_999_000;
    const keyring = createKeyring({ table: createMemoryTable(), now: () => at });
    const user = admit({ groups: ['desk'] });
    if (!user) throw new Error('The user has no access.');
    expect(await keyring.isCurrent(user)).toBe(true);
    at = 2_000_000_000_000 + 60_000;
    expect(await keyring.isCurrent(user)).toBe(false);
  });
});

describe('the settings of the sign-in', () => {
  const parse = (signIn: object, others: object = {}) =>
    parseConfig(
      {
        regions: { us: { baseUrl: 'https://us.example', authUrl: 'https://auth.example', realm: 'us' } },
        accounts: [],
        signIn: { ...SETTINGS, ...signIn },
        ...others,
      },
      {},
    );

  it.each<[object, string]>([
    [{ issuer: 'http://id.example' }, 'signIn.issuer must be a URL that begins with https://'],
    [{ issuer: 'https://id.example?x' }, 'signIn.issuer must be a URL that begins with https://'],
    [{ issuer: 'https://user:pass@id.example' }, 'signIn.issuer must be a URL that begins with https://'],
    [{ clientId: '' }, 'signIn.clientId must be the id of the client at the issuer'],
    [{ scopes: ['email'] }, 'signIn.scopes must be a list of scopes with "openid"'],
    [{ groupsClaim: 7 }, 'signIn.groupsClaim must be the name of a claim'],
    [{ groups: {} }, 'signIn.groups must map 1 to 100 names of groups to their role'],
    [{ groups: { desk: { role: 'root' } } }, 'signIn.groups.desk.role must be read, operate or admin'],
    [
      { groups: { desk: { role: 'read', accounts: [] } } },
      'signIn.groups.desk.accounts must name at least one account',
    ],
    [{ clientSecret: 'x' }, 'signIn.clientSecret is not a known setting'],
  ])('%j are rejected with one error message', (signIn, message) => {
    expect(() => parse(signIn)).toThrow(message);
  });

  it('requires TLS in front of the dashboard, except on loopback', () => {
    const message = 'publicUrl must begin with https:// or have a loopback host if signIn is configured';
    expect(() => parse({}, { publicUrl: 'http://jobwire.example' })).toThrow(message);
    expect(() => parse({}, { host: '0.0.0.0' })).toThrow(message);
    expect(() => parse({}, { host: '::' })).toThrow(message);
    for (const host of ['::1', '0:0:0:0:0:0:0:1', '127.0.0.2', 'localhost'])
      expect(parse({}, { host }).signIn).toBeDefined();
    expect(parse({}, { host: '0.0.0.0', publicUrl: 'https://jobwire.example' }).signIn).toBeDefined();
    expect(parse({}).signIn).toMatchObject({ groupsClaim: 'groups', scopes: ['openid', 'email', 'profile'] });
    expect(parse({ issuer: 'http://localhost:8080/realms/acme' }).signIn).toBeDefined();
  });
});
