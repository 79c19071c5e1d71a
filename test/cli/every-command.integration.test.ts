/** Every command of the help list, with the options of all commands, against a real Jobwire. */
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SMTPServer } from 'smtp-server';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { getFlags } from '../../cli/command.ts';
import { loadCommands } from '../../cli/run.ts';
import { newSigningSecret } from '../../shared/delivery/signing-secrets.ts';
import { KEY, startSite, toDocuments } from '../support/cli-site.ts';

const folder = mkdtempSync(join(tmpdir(), 'jobwire-every-'));
const ends: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })];
let site: Awaited<ReturnType<typeof startSite>>;
let receiver: string;

const file = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text, { mode: 0o600 });
  return join(folder, name);
};
const keyFile = file('api-key', `${KEY}\n`);
const secretFile = file('signing.secret', `${newSigningSecret()}\n`);
const env: Record<string, string | undefined> = {
  JOBWIRE_API_KEY: undefined,
  XDG_CONFIG_HOME: join(folder, 'config'),
};

beforeAll(async () => {
  const mails = new SMTPServer({ logger: false, authOptional: true, disabledCommands: ['STARTTLS'] });
  mails.listen(0, '127.0.0.1');
  await once(mails.server, 'listening');
  ends.push(() => mails.close());
  const { port } = mails.server.address() as AddressInfo;
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(204).end());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  ends.push(() => server.close().closeAllConnections());
  receiver = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  site = await startSite((stop) => ends.push(stop), [], {
    publicUrl: 'https://jobwire.example.com',
    notifications: { from: 'orders@acme.example', smtp: { host: '127.0.0.1', port } },
  });
  site.acme.edit(site.job, { dateDue: new Date(Date.now() - 5 * 86_400_000).toISOString() });
}, 60_000);
afterAll(async () => {
  for (const end of ends.reverse()) await end();
});

/** Runs with `--json` and the API key from a file, as far as the command has these options. */
async function run(name: string, args: readonly string[], input = '') {
  const options = getFlags(commands[name] ?? fail(name));
  return site.runHere(
    [
      ...[...name.split(' '), ...args],
      ...('json' in options ? ['--json'] : []),
      ...('key-file' in options ? ['--key-file', keyFile] : []),
    ],
    { env, input },
  );
}
function fail(name: string): never {
  throw new Error(`There is no command ${name}.`);
}
/** Runs another command, and returns the first document that it prints. */
async function read(name: string, ...args: string[]) {
  return toDocuments((await run(name, args)).out)[0];
}
const findItem = async (): Promise<string> => {
  await expect
    .poll(async () => (await read('attention list', '--kind', 'job_late'))?.id, { timeout: 20_000 })
    .toBeDefined();
  return (await read('attention list', '--kind', 'job_late')).id;
};
const findEvent = async (): Promise<string> =>
  (await read('events list', '--account', 'acme', '--limit', '1')).id;

/** A run of a command: its arguments, the expected exit code if it is not 0, and the text on stdin. */
interface Run {
  readonly args?: readonly string[] | (() => Promise<readonly string[]> | readonly string[]);
  readonly input?: () => string;
  readonly code?: number;
}
const backup = join(folder, 'backup.tar.gz');
const template = file('template.json', '{"subject": "On its way"}');
const recipients = file('recipients.csv', 'name,email\nBen,ben@example.com\n');
const place = ['acme', 'dispatched', 'email', 'en-GB'];
const credentials = () => ['bakery', '--client-id', site.bakery.clientId];
const bakerySecret = () => site.bakery.clientSecret;

/** In the order in which they run. */
const RUNS: Readonly<Record<string, Run>> = {
  init: {
    args: () => {
      const { baseUrl, authUrl } = site.region;
      const options = ['--account', 'acme', '--region', 'us', '--client-id', 'acme-api', '--no-test'];
      return [...options, '--base-url', baseUrl, '--auth-url', authUrl, '--config', join(folder, 'new.json')];
    },
    input: () => 'a-client-secret',
  },
  health: {},
  doctor: {},
  backup: { args: () => [backup, '--data-dir', site.dataDir] },
  restore: { args: [backup, '--data-dir', join(folder, 'restored')] },
  find: { args: ['acme'] },
  listen: {
    args: () => [
      ...['--forward-to', receiver, '--secret-file', secretFile],
      ...['--account', 'acme', '--since', '1h', '--once', '1'],
    ],
  },
  trigger: { args: () => ['job.dispatched', '--forward-to', receiver, '--secret-file', secretFile] },
  completion: { args: ['bash'] },
  get: { args: ['/v1/accounts?limit=2'] },

  'accounts add': { args: credentials, input: bakerySecret },
  'accounts list': { args: ['--region', 'us'] },
  'accounts show': { args: ['acme'] },
  'accounts polls': { args: ['acme'] },
  'accounts statistics': { args: ['acme'] },
  'accounts open-jobs': { args: ['acme'] },
  'accounts update': { args: ['bakery', '--due-soon', '48'] },
  'accounts test': { args: ['acme'] },
  'accounts pause': { args: ['bakery'] },
  'accounts resume': { args: ['bakery'] },
  'accounts batch': { args: ['resume', '--ids', 'bakery'] },
  'accounts rotate': { args: credentials, input: bakerySecret },
  // Nothing requires a confirmation.
  'accounts confirm': { args: ['acme'], code: 3 },

  'attention list': { args: ['--assignee', 'none', '--account', 'acme', '--state', 'all', '--region', 'us'] },
  'attention show': { args: async () => [await findItem()] },
  'attention history': { args: async () => [await findItem()] },
  'attention assign': { args: async () => [await findItem(), 'ann'] },
  'attention note': { args: async () => [await findItem(), 'Called'] },
  'attention ack': {
    args: async () => {
      item = await findItem();
      return [item, '--note', 'informed'];
    },
  },
  'attention reopen': { args: () => [item] },
  'attention snooze': { args: () => [item, '--until', '1d'] },
  'attention figures': { args: ['--region', 'us'] },

  'endpoints add': { args: () => [receiver, '--id', 'erp'] },
  'endpoints list': {},
  'endpoints show': { args: ['erp'] },
  'endpoints update': { args: ['erp', '--types', 'job.*'] },
  'endpoints rotate-secret': { args: ['erp'] },
  'endpoints statistics': { args: ['erp', '--window', '1h'] },
  'endpoints health': { args: ['erp'] },
  'endpoints ping': { args: ['erp'] },
  'endpoints deliveries': { args: ['erp'] },
  'endpoints parked': { args: ['erp'] },
  'endpoints retry': { args: ['erp', '--all'] },
  'endpoints discard': { args: ['erp', '--all'] },
  'endpoints batch': { args: ['resume', '--ids', 'erp'] },
  'endpoints dead': { args: ['erp'] },
  'endpoints redeliver': { args: ['erp', '--dry-run'] },
  'endpoints resend': { args: async () => ['erp', await findEvent()] },
  'endpoints pause': { args: ['erp'] },
  'endpoints replay': { args: ['erp', '--from', 'beginning'] },
  'endpoints replays': { args: ['erp'] },
  'endpoints cancel-replay': { args: async () => ['erp', (await read('endpoints replays', 'erp')).id] },
  'endpoints resume': { args: ['erp'] },
  'endpoints enable': { args: ['erp'] },
  'endpoints remove': { args: ['erp'] },

  'events tail': { args: ['--account', 'acme', '--since', '1h', '--once', '1'] },
  'events list': { args: ['--account', 'acme', '--limit', '1'] },
  'events show': { args: async () => [await findEvent()] },
  'event-types list': {},
  'event-types show': { args: ['job.dispatched'] },
  'jobs list': { args: ['acme'] },
  'jobs show': { args: () => ['acme', String(site.job)] },
  'jobs durations': { args: ['acme'] },
  'jobs deliveries': { args: () => ['acme', String(site.job)] },
  'regions list': {},
  'regions show': { args: ['us'] },
  'regions statistics': { args: ['us'] },
  'regions open-jobs': { args: ['us'] },

  'notifications set': { args: ['acme', '--name', 'Acme', '--reply-to', 'orders@acme.example'] },
  'notifications show': { args: ['acme'] },
  'notifications preview': { args: ['acme', '--kind', 'dispatched'] },
  'templates set': { args: [...place, template] },
  'templates list': { args: ['acme'] },
  'templates show': { args: place },
  'templates send-test': { args: ['acme', 'orders@acme.example', '--kind', 'dispatched'] },
  'templates remove': { args: place },
  'messages list': { args: ['acme'] },
  // No message is due while this file runs.
  'messages show': { args: ['acme', 'm0m9x2k1c3-4fz81'], code: 3 },
  'messages recipients': { args: () => ['acme', String(site.job)] },
  // The job has no recipients.
  'messages send': { args: () => ['acme', String(site.job), 'ann', 'Soon.', '--dry-run'], code: 3 },
  'suppressions add': { args: ['acme', 'ann@example.com'] },
  'suppressions list': { args: ['acme'] },
  'suppressions remove': { args: async () => ['acme', (await read('suppressions list', 'acme')).id] },
  'recipients add': { args: ['acme', '--id', 'ann', '--email', 'ann@example.com'] },
  'recipients list': { args: ['acme'] },
  'recipients show': { args: ['acme', 'ann'] },
  'recipients change': { args: ['acme', 'ann', '--pause'] },
  'recipients remove': { args: ['acme', 'ann'] },
  'recipients import': { args: ['acme', recipients] },
  'recipients export': { args: ['acme'] },

  'alerts add': {
    args: ['late', '--condition', 'late_jobs', '--above', '5', '--email', 'ops@acme.example'],
  },
  'alerts list': {},
  'alerts show': { args: ['late'] },
  'alerts change': { args: ['late', '--above', '6'] },
  'alerts test': { args: ['late'] },
  'alerts remove': { args: ['late'] },
  'keys create': { args: ['--role', 'read'] },
  'keys list': {},
  'keys show': {},
  'keys revoke': { args: async () => [(await read('keys list')).id] },
  'keys pair': {
    args: async () => {
      const started = await fetch(`${site.url}/v1/wall-pairings`, { method: 'POST' });
      return [((await started.json()) as { code: string }).code, '--name', 'desk'];
    },
  },
  'profiles add': { args: () => ['here', '--url', site.url], input: () => KEY },
  'profiles list': {},
  'profiles use': { args: ['here'] },
  'cells list': {},
  'cells find': { args: ['acme'] },
  // It needs a second cell. move.integration.test.ts moves an account.
  'accounts move': { args: ['bakery', '--to', 'here', '--cancel'], code: 2 },
  'profiles remove': { args: ['here'] },
  'accounts delete': { args: ['bakery', '--yes'] },
};
/** The item that was acknowledged. */
let item = '';

const commands = await loadCommands();
/** Keeps running. `startSite` runs it. */
const STARTED = 'start';

test('each command of the help list has a run in this file', () => {
  expect([...Object.keys(RUNS), STARTED].sort()).toEqual(Object.keys(commands).sort());
});

describe('with --json and --key-file', () => {
  test.each(Object.entries(RUNS))('%s', async (name, { args = [], input, code = 0 }) => {
    const given = typeof args === 'function' ? await args() : args;
    const ended = await run(name, given, input?.());
    expect(ended, ended.err).toMatchObject({ code });
    if (!('json' in getFlags(commands[name] ?? fail(name)))) return;
    const documents = toDocuments(ended.out);
    if (code !== 0) expect(toDocuments(ended.err).at(-1)).toMatchObject({ exitCode: code });
    else expect(documents.every((one) => typeof one === 'object')).toBe(true);
  });
});
