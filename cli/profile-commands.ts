/** `jobwire profiles …` */
import { command, UsageError } from './command.ts';
import { readSecret } from './input.ts';
import { sanitizeLine } from './output.ts';
import {
  checkBaseUrl,
  findProfile,
  findProfilesFile,
  PROFILE_NAME,
  readProfiles,
  writeProfiles,
} from './profiles.ts';

export const profiles = {
  'profiles add': command({
    about:
      'Stores the base URL and the API key of a Jobwire under a name. The first profile becomes the current one.',
    more: 'The key is read from stdin, a file or an environment variable, or entered at a prompt. Only you can read the file of the profiles, and no command prints the key.',
    args: ['NAME'],
    flags: {
      url: { value: 'URL', about: 'Base URL of the API', required: true },
      'key-file': { value: 'FILE', about: 'File that contains the API key' },
      'key-env': { value: 'NAME', about: 'Environment variable that contains the API key' },
      force: { about: 'Replace an existing profile' },
    },
    example: 'profiles add production --url https://jobwire.example.com --key-file key.txt',
    local: true,
    async run(context, [name], flags) {
      const { env, out } = context;
      if (!PROFILE_NAME.test(name)) {
        throw new UsageError(
          'NAME must be 1 to 63 letters, digits, hyphens, dots and underscores, and begin with a letter or digit.',
        );
      }
      const url = checkBaseUrl('--url', flags.url);
      const before = readProfiles(env);
      if (Object.hasOwn(before.profiles, name) && !flags.force) {
        throw new UsageError(`The profile ${name} exists. To replace it, use --force.`);
      }
      const from = { flag: 'key', file: flags['key-file'], variable: flags['key-env'] };
      const key = await readSecret(context, 'The API key', from);
      if (!/^[\x21-\x7e]+$/.test(key)) {
        throw new UsageError('The API key must be printable ASCII without spaces.');
      }
      const current = before.current ?? name;
      writeProfiles(env, { current, profiles: { ...before.profiles, [name]: { url, key } } });
      out.document({ name, url, current: current === name }, () => {
        out.line(`The profile ${name} was stored in ${sanitizeLine(findProfilesFile(env))}.`);
        out.note(
          current === name
            ? `It is the current profile. To test it, run: ${context.toCommand('doctor')}`
            : `To test it, run: ${context.toCommand(`doctor --profile ${name}`)}`,
        );
      });
    },
  }),

  'profiles list': command({
    about: 'Lists the profiles without their keys.',
    example: 'profiles list',
    local: true,
    async run({ env, out }) {
      const { current, profiles } = readProfiles(env);
      const entries = Object.entries(profiles).map(([name, { url }]) => ({
        ...{ name, url, current: name === current },
      }));
      return out.list(
        async function* () {
          yield* entries;
        },
        [
          { name: 'PROFILE', value: ({ name }) => name },
          { name: 'CURRENT', value: (one) => (one.current ? 'yes' : '') },
          { name: 'URL', value: ({ url }) => url, long: true },
        ],
        'There are no profiles.',
      );
    },
  }),

  'profiles use': command({
    about: 'Makes a profile the current one.',
    more: '--profile, --url, --key-file, and their variables have precedence over the current profile.',
    args: ['NAME'],
    example: 'profiles use production',
    local: true,
    async run({ env, out }, [name]) {
      const stored = readProfiles(env);
      const { url } = findProfile(stored, name);
      writeProfiles(env, { ...stored, current: name });
      out.document(
        { name, url, current: true },
        `${sanitizeLine(name)} is the current profile: ${sanitizeLine(url)}`,
      );
      const variables = ['JOBWIRE_URL', 'JOBWIRE_API_KEY', 'JOBWIRE_PROFILE'].filter((one) => env[one]);
      if (variables.length > 0)
        out.note(
          `${variables.join(', ')} in the environment ${variables.length === 1 ? 'has' : 'have'} precedence over it.`,
        );
    },
  }),

  'profiles remove': command({
    about: 'Removes a profile with its key.',
    args: ['NAME'],
    example: 'profiles remove production',
    local: true,
    async run({ env, out }, [name]) {
      const stored = readProfiles(env);
      findProfile(stored, name);
      const { [name]: _, ...others } = stored.profiles;
      const current = stored.current === name ? undefined : stored.current;
      writeProfiles(env, { current, profiles: others });
      out.document({ removed: name }, `The profile ${sanitizeLine(name)} was removed.`);
      if (stored.current === name && Object.keys(others).length > 0) {
        out.note('There is no current profile now. To choose one, run: jobwire profiles use NAME');
      }
    },
  }),
};
