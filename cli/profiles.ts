/** Profiles: named addresses and API keys of several instances of Jobwire, in a file that only the user can read. */

import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, isAbsolute, join } from 'node:path';
import { formatCode } from '../shared/error-codes.ts';
import { isLoopbackHost } from '../shared/loopback.ts';
import { type API_FLAGS, type Context, type FlagValues, suggest, UsageError } from './command.ts';
import { readSecretFile } from './input.ts';

const DEFAULT_URL = 'http://127.0.0.1:4000';

/** Address and API key of a Jobwire. */
export interface Profile {
  readonly url: string;
  readonly key: string;
}

/** Accepted names. They have only safe characters, because the CLI prints them and shells complete them. */
export const PROFILE_NAME = /^[A-Za-z0-9][\w.-]{0,62}$/;

/** The content of the file. */
export interface Profiles {
  /** Profile to use without `--profile` and JOBWIRE_PROFILE. */
  readonly current?: string | undefined;
  readonly profiles: Readonly<Record<string, Profile>>;
}

/** Returns the path of the file. `undefined` without a home folder. */
export function findProfilesFile(env: Context['env']): string | undefined {
  const { XDG_CONFIG_HOME: configured = '', HOME: home = env.USERPROFILE } = env;
  // The specification of these folders requires that relative paths are ignored.
  if (isAbsolute(configured)) return join(configured, 'jobwire', 'profiles.json');
  return home ? join(home, '.config', 'jobwire', 'profiles.json') : undefined;
}

/** Reads the file. Errors never quote its content. */
export function readProfiles(env: Context['env']): Profiles {
  const path = findProfilesFile(env);
  if (path === undefined) return { profiles: {} };
  let text: string;
  try {
    if (process.platform !== 'win32' && (statSync(path).mode & 0o077) !== 0) {
      throw new UsageError(
        `${path} contains API keys and is accessible to other users. Run chmod 600 ${path}`,
      );
    }
    text = readFileSync(path, 'utf8');
  } catch (cause) {
    if (cause instanceof UsageError) throw cause;
    const { code } = cause as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return { profiles: {} };
    throw new UsageError(`${path} can’t be read${formatCode(code)}.`, { cause });
  }
  try {
    const { current, profiles } = JSON.parse(text) as Profiles;
    const isValid = ([name, { url, key }]: [string, Profile]): boolean =>
      PROFILE_NAME.test(name) && typeof url === 'string' && typeof key === 'string';
    if (Object.entries(profiles).every(isValid)) {
      return { ...(typeof current === 'string' ? { current } : {}), profiles };
    }
  } catch {
    // Reported below.
  }
  throw new UsageError(`${path} is not a valid file of profiles. Remove it, and add the profiles again.`);
}

/** Replaces the file as a whole, with mode 0600. */
export function writeProfiles(env: Context['env'], content: Profiles): void {
  const named = findProfilesFile(env);
  if (named === undefined) throw new UsageError('Profiles require the environment variable HOME.');
  // The file may be a symbolic link.
  const path = existsSync(named) ? realpathSync(named) : named;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    const next = `${path}.${process.pid}`;
    writeFileSync(next, `${JSON.stringify(content, undefined, 2)}\n`, { mode: 0o600 });
    chmodSync(next, 0o600);
    renameSync(next, path);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new UsageError(`${path} can’t be written${formatCode(code)}.`, { cause });
  }
}

/** Returns a profile. Throws {@link UsageError} if there is none of that name. */
export function findProfile({ profiles }: Profiles, name: string): Profile {
  const found = Object.hasOwn(profiles, name) ? profiles[name] : undefined;
  if (found) return found;
  const names = Object.keys(profiles);
  const available =
    names.length === 0 ? 'Add it with jobwire profiles add.' : `Available: ${names.join(', ')}.`;
  throw new UsageError(`There is no profile "${name}".${suggest(name, names)} ${available}`);
}

/** Checks a base URL. Returns it without final slashes and surrounding spaces. `name`: of the option, variable or profile that contains it. */
export function checkBaseUrl(name: string, url: string): string {
  const { protocol = '', username, password } = URL.parse(url) ?? {};
  if (!/^https?:$/.test(protocol)) throw new UsageError(`${name} must start with http:// or https://.`);
  if (username || password) throw new UsageError(`${name} must not contain a user name or password.`);
  if (/[?#]/.test(url)) throw new UsageError(`${name} must not contain a query or fragment.`);
  return url.trim().replace(/\/+$/, '');
}

/** Returns whether others on the network could read what is sent to a URL. */
export function isUnencrypted(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === 'http:' && !isLoopbackHost(hostname);
}

/** Address and key with which a command uses the API. */
interface Connection extends Pick<Context, 'url' | 'urlIsDefault' | 'key'> {
  /** Where the key comes from, if it is a profile. For error messages. */
  readonly keySource?: string;
  /** Whether there are profiles, but no current one. */
  readonly isProfileUnset?: boolean;
}

/** For commands that do not use the API. */
export const NO_CONNECTION: Connection = { url: DEFAULT_URL, urlIsDefault: true, key: () => undefined };

/**
 * Returns the base URL and the API key. Precedence: `--profile`, then options and variables of address and key, then
 * JOBWIRE_PROFILE, then the current profile. The key of a profile is only used with the address of that profile.
 * `ignoresCurrent`: without the current profile.
 */
export function findConnection(
  flags: FlagValues<typeof API_FLAGS>,
  env: Context['env'],
  ignoresCurrent = false,
): Connection {
  const { url: ownUrl, 'key-file': keyFile, profile } = flags;
  const variables = ['JOBWIRE_URL', 'JOBWIRE_API_KEY'].filter((name) => env[name]);
  const given = ownUrl !== undefined || keyFile !== undefined;
  if (profile !== undefined && given) {
    throw new UsageError('--profile can’t be combined with --url and --key-file.');
  }
  if (profile === undefined && !given && env.JOBWIRE_PROFILE && variables.length > 0) {
    throw new UsageError(`JOBWIRE_PROFILE can’t be combined with ${variables.join(' and ')}.`);
  }
  let isProfileUnset = false;
  if (profile !== undefined || (!given && variables.length === 0)) {
    const stored = readProfiles(env);
    const name = profile ?? (env.JOBWIRE_PROFILE || (ignoresCurrent ? undefined : stored.current));
    if (name !== undefined) {
      const { url, key } = findProfile(stored, name);
      return {
        url: checkBaseUrl(`The URL of the profile ${name}`, url),
        urlIsDefault: false,
        key: () => key,
        keySource: `the profile ${name}`,
      };
    }
    isProfileUnset = stored.current === undefined && Object.keys(stored.profiles).length > 0;
  }
  const url = checkBaseUrl(
    ownUrl === undefined ? 'JOBWIRE_URL' : '--url',
    ownUrl ?? (env.JOBWIRE_URL || DEFAULT_URL),
  );
  return {
    url,
    urlIsDefault: ownUrl === undefined && !env.JOBWIRE_URL,
    isProfileUnset,
    key: () =>
      keyFile === undefined ? env.JOBWIRE_API_KEY || undefined : readSecretFile('key-file', keyFile),
  };
}
