/** `jobwire keys …` */
import { ApiError, type ApiKey, type Client, type CurrentKey } from '../client/index.ts';
import { inputs } from '../client/inputs.ts';
import { CSV, command, limitFlag } from './command.ts';
import { parseList, parseTime, withId } from './input.ts';
import { sanitizeLine } from './output.ts';

export const keys = {
  'keys create': command({
    about: 'Creates an API key. The key is shown only once.',
    more: 'A key can’t create a key with more permissions than its own. See docs/api.md for the roles.',
    flags: {
      role: { value: 'ROLE', about: 'Role of the key', choices: inputs['NewKey.role'], required: true },
      accounts: { value: 'A,B', about: 'Only these accounts. Default: all', many: true },
      expires: {
        value: 'WHEN',
        about: 'Expiry: a duration such as 90d, a date such as 2026-03-02, or a timestamp. Default: never',
        field: 'expiresAt',
      },
      name: { value: 'TEXT', about: 'Name of the key' },
    },
    example: 'keys create --role read --accounts acme --expires 90d --name reports',
    async run({ api, out }, _args, flags) {
      const accounts = parseList(flags.accounts);
      const body = {
        role: flags.role,
        ...(accounts ? { accounts } : {}),
        ...(flags.expires === undefined ? {} : { expiresAt: parseTime('expires', flags.expires, 'ahead') }),
        ...(flags.name === undefined ? {} : { name: flags.name }),
      };
      const created = await api().post('/v1/keys', { body });
      out.document(created, () => {
        const { key } = created;
        const whose = key.accounts === null ? 'all accounts' : sanitizeLine(key.accounts.join(', '));
        out.line(
          `Key ${sanitizeLine(key.id)}: ${sanitizeLine(key.role)}, ${whose}, expires ${out.formatTimeWithAge(key.expiresAt) ?? 'never'}`,
        );
        out.line();
        out.line(`  ${out.paint('bold', sanitizeLine(created.secret))}`);
        out.line();
        out.note('Store the key now. It is not shown again.');
      });
      for (const id of await findUnknown(api(), accounts ?? [])) {
        out.note(
          `There is no account ${sanitizeLine(id)}. The key gives access to the account as soon as the account is created.`,
        );
      }
    },
  }),

  'keys pair': command({
    about:
      'Confirms the code that a wall display shows. The display gets its own API key with the role read.',
    more: 'To get a code, open /?wall=1 of the dashboard on the display. Confirm only a code that you see on the display itself.',
    args: ['CODE'],
    flags: {
      name: { value: 'TEXT', about: 'Name of the display, such as its location', required: true },
      accounts: { value: 'A,B', about: 'Only these accounts. Default: all', many: true },
    },
    example: 'keys pair 123456 --name desk --accounts acme',
    async run({ api, out }, [code], flags) {
      const accounts = parseList(flags.accounts);
      const body = { code: code.replace(/\s/g, ''), name: flags.name, ...(accounts ? { accounts } : {}) };
      const approved = await api().post('/v1/wall-pairings/approval', { body });
      out.document(approved, `The screen gets the key ${sanitizeLine(approved.name)} within a few seconds.`);
    },
  }),

  'keys list': command({
    about: 'Lists API keys without their secrets.',
    flags: { limit: limitFlag(1000), ...CSV },
    example: 'keys list',
    async run({ api, out }, _args, flags) {
      return out.list(
        (onMore) => api().list('/v1/keys', 'keys', { max: flags.limit, onMore }),
        [
          { name: 'KEY', value: ({ id }) => id },
          { name: 'NAME', value: ({ name }) => name, long: true },
          { name: 'ROLE', value: ({ role }) => role },
          { name: 'ACCOUNTS', value: ({ accounts }) => accounts ?? 'all', long: true },
          {
            name: 'EXPIRES',
            value: ({ expiresAt }) => (expiresAt === null ? 'never' : out.formatTimeCell(expiresAt)),
          },
          { name: 'LAST USED', value: ({ lastUsedAt }) => out.formatTimeCell(lastUsedAt) },
        ],
        'There are no keys except the one that Jobwire starts with: apiKey of the configuration, or the generated one.',
      );
    },
  }),

  'keys show': command({
    about: 'Shows an API key without its secret. Default: the key in use.',
    args: ['KEY?'],
    example: 'keys show',
    async run({ api, out }, [id]) {
      const key: Omit<CurrentKey, 'user'> & Partial<ApiKey> =
        id === undefined ? await api().get('/v1/key') : await api().get('/v1/keys/{id}', withId(id));
      const by = key.createdByUser?.name ?? key.createdByUser?.subject ?? key.createdBy;
      out.document(key, () =>
        out.fields([
          ['Key', sanitizeLine(key.id)],
          ['Name', key.name && sanitizeLine(key.name)],
          ['Role', key.role],
          ['Accounts', key.accounts === null ? 'all' : sanitizeLine(key.accounts.join(', '))],
          ['Expires', out.formatTimeWithAge(key.expiresAt) ?? 'never'],
          ['Created', out.formatTimeWithAge(key.createdAt)],
          ['Created by', by && sanitizeLine(by)],
          ['Last used', out.formatTimeWithAge(key.lastUsedAt)],
        ]),
      );
    },
  }),

  'keys revoke': command({
    about: 'Revokes an API key. This takes effect within 30 seconds.',
    args: ['KEY'],
    example: 'keys revoke 7f3k2m9q',
    async run({ api, out }, [id]) {
      await api().delete('/v1/keys/{id}', withId(id));
      out.document(
        { revoked: id },
        `Key ${sanitizeLine(id)} is revoked. The API rejects it within 30 seconds.`,
      );
    },
  }),
};

/** Returns the ids of accounts that do not exist. */
async function findUnknown(api: Client, ids: readonly string[]): Promise<string[]> {
  const exists = await Promise.all(
    ids.map((id) =>
      api.get('/v1/accounts/{id}', withId(id)).then(
        () => true,
        // Only a missing account is certain.
        (cause: unknown) => !(cause instanceof ApiError && cause.status === 404),
      ),
    ),
  );
  return ids.filter((_, at) => !exists[at]);
}
