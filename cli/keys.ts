/** `jobwire keys …` */
import type { KeyRecord } from '../shared/api/key-input.ts';
import { command } from './command.ts';
import { choiceOf, instantOf, listOf, segment, wholeNumber } from './input.ts';
import { clean } from './output.ts';

export const keys = {
  'keys create': command({
    about: 'Makes an API key. It is shown once, and never again.',
    more: 'A key can only make keys that may no more than itself. read: see everything of its accounts; operate: also pause, confirm, test, ping, replay; admin: also make and change accounts, endpoints and keys.',
    args: [],
    flags: {
      role: { value: 'ROLE', about: 'read, operate or admin', required: true },
      accounts: { value: 'A,B', about: 'For these accounts only (all)', many: true },
      expires: {
        value: 'WHEN',
        about: 'A span from now such as 90d, a day or an instant (never)',
        field: 'expiresAt',
      },
      name: { value: 'TEXT', about: 'What it is for' },
    },
    example: 'keys create --role read --accounts acme --expires 90d --name reports',
    async run({ api, out }, _args, flags) {
      const accounts = listOf(flags.accounts);
      const body = {
        role: choiceOf('role', flags.role, ['read', 'operate', 'admin']),
        ...(accounts ? { accounts } : {}),
        ...(flags.expires === undefined ? {} : { expiresAt: instantOf('expires', flags.expires, 'ahead') }),
        ...(flags.name === undefined ? {} : { name: flags.name }),
      };
      const made = await api().post<{ key: KeyRecord; secret: string }>('/v1/keys', body);
      out.document(made, () => {
        const { key } = made;
        const whose = key.accounts === null ? 'all accounts' : clean(key.accounts.join(', '));
        out.line(
          `Key ${clean(key.id)}: ${clean(key.role)}, ${whose}, expires ${out.exactly(key.expiresAt) ?? 'never'}`,
        );
        out.line();
        out.line(`  ${out.paint('bold', clean(made.secret))}`);
        out.line();
        out.note('Keep it now: it is not shown again.');
      });
      return undefined;
    },
  }),

  'keys list': command({
    about: 'Lists API keys, without their secrets.',
    args: [],
    flags: { limit: { value: 'N', about: 'At most so many (1000)' } },
    example: 'keys list',
    async run({ api, out }, _args, flags) {
      const limit = wholeNumber('limit', flags.limit ?? '1000', 1, 100_000);
      return out.list(
        (more) => api().list<KeyRecord>('/v1/keys', 'keys', {}, limit, more),
        [
          { name: 'KEY', of: ({ id }) => id },
          { name: 'NAME', of: ({ name }) => name, long: true },
          { name: 'ROLE', of: ({ role }) => role },
          { name: 'ACCOUNTS', of: ({ accounts }) => accounts ?? 'all', long: true },
          { name: 'EXPIRES', of: ({ expiresAt }) => (expiresAt === null ? 'never' : out.when(expiresAt)) },
          { name: 'LAST USED', of: ({ lastUsedAt }) => out.when(lastUsedAt) },
        ],
        'There are no keys but that of the configuration.',
      );
    },
  }),

  'keys revoke': command({
    about: 'Takes a key away: within 30 seconds it opens nothing any more.',
    args: ['KEY'],
    flags: {},
    example: 'keys revoke 7f3k2m9q',
    async run({ api, out }, [id]) {
      await api().remove(`/v1/keys/${segment(id)}`);
      out.document({ revoked: id }, () =>
        out.line(`The key ${clean(id)} is revoked; within 30 seconds it opens nothing any more.`),
      );
      return undefined;
    },
  }),
};
