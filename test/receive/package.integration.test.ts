/** The published package: packed, installed offline into an empty folder, and run there. One file: all tests use the same installation. */
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import { promisify } from 'node:util';
import { Webhook } from 'standardwebhooks';
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest';
import { findProblems } from '../../release.ts';
import { eventTypes } from '../../shared/events/catalogue.ts';
import type { JobEvent } from '../../shared/events/event.ts';
import { getExample } from '../../shared/events/examples.ts';
import { VERSION } from '../../shared/version.ts';
import { newSecret, someDeliveries } from '../support/delivery-world.ts';

const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), 'jobwire-package-'));
const consumer = join(folder, 'consumer');
const installed = join(consumer, 'node_modules', 'jobwire');
const guide = readFileSync('docs/receiving-events.md', 'utf8');
const BOUND = { timeout: 60_000 };
/** npm must not take this repository for the folder it works in, nor find our Node first. */
const cleanEnv = {
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name))),
  PATH: hostPath(),
};

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

beforeAll(() => {
  cpSync(inject('consumerFolder'), consumer, { recursive: true, verbatimSymlinks: true });
  // Other dependencies of the examples; a consumer has them from the registry.
  mkdirSync(join(consumer, 'node_modules', '@hono'));
  for (const name of ['hono', 'express', '@hono/node-server']) {
    symlinkSync(resolve('node_modules', name), join(consumer, 'node_modules', name));
  }
  for (const [name, source] of Object.entries(programs())) writeFileSync(join(consumer, name), source);
});

describe('the package', () => {
  test('has the receiver, the client and the CLI only, as a release requires, and no dependencies', () => {
    const files = readdirSync(installed, { recursive: true, withFileTypes: true });
    const names = files.filter((file) => file.isFile()).map((file) => join(file.parentPath, file.name));
    const paths = names.map((name) => name.slice(installed.length + 1));
    expect(paths.filter((path) => !path.startsWith('cli/')).sort()).toEqual([
      'README.md',
      ...['client.d.ts', 'errors.d.ts', 'index.d.ts', 'index.js', 'paths.d.ts', 'stream.d.ts'].map(
        (name) => `client/${name}`,
      ),
      'jobwire.schema.json',
      'package.json',
      'receive/events.d.ts',
      'receive/index.d.ts',
      'receive/index.js',
    ]);
    const packed = {
      filename: '',
      version: VERSION,
      size: 0,
      unpackedSize: 0,
      files: paths.map((path) => ({ path })),
    };
    expect(findProblems(packed, VERSION)).toEqual([]);
    const manifest = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as object;
    const keys = Object.keys(manifest).filter((key) => /dependencies|scripts|private/i.test(key));
    // Optional ones: npm installs none of them.
    expect(keys).toEqual(['peerDependencies', 'peerDependenciesMeta']);
    expect(manifest).toMatchObject({ name: 'jobwire', type: 'module', engines: { node: '>=20.18' } });
    expect(
      readdirSync(join(consumer, 'node_modules'))
        .filter((name) => !name.startsWith('.'))
        .sort(),
    ).toEqual(['@hono', 'express', 'hono', 'jobwire']);
  });

  test('its README links to no file, because the package contains no other document', () => {
    const text = readFileSync(join(installed, 'README.md'), 'utf8');
    expect(text).toContain('\n## The package\n');
    expect(text.match(/\]\((?!https?:|#)[^)]*\)/g)).toBeNull();
  });

  test('is side-effect free: its modules import nothing', () => {
    const code = readFileSync(join(installed, 'receive', 'index.js'), 'utf8');
    expect(code).not.toMatch(/\b(?:import|require)\b\s*[({'"*]|\bfrom\s+['"]/);
  });

  test.each(['nodenext', 'bundler'])(
    'its types discriminate events by type, without other types (%s)',
    async (kind) => {
      const options = {
        strict: true,
        noEmit: true,
        target: 'es2022',
        lib: ['es2022'],
        types: [],
        module: kind === 'bundler' ? 'esnext' : kind,
        moduleResolution: kind,
        exactOptionalPropertyTypes: true,
      };
      const config = join(consumer, `tsconfig.${kind}.json`);
      writeFileSync(config, JSON.stringify({ compilerOptions: options, files: ['check.ts', 'intro.ts'] }));
      const output = await run(resolve('node_modules/.bin/tsc'), ['-p', config], BOUND).then(
        ({ stdout }) => stdout,
        ({ stdout }: { stdout: string }) => stdout,
      );
      expect(output).toBe('');
    },
  );
});

describe.each(nodes())('on Node $version', ({ node, version }) => {
  test('an edge realm with only Web APIs verifies and parses', async () => {
    const secret = newSecret();
    const { body, headers } = await signedNow(secret);
    const env = { ...cleanEnv, INPUT: JSON.stringify({ secret, body, headers }) };
    const args = ['--no-warnings', '--experimental-vm-modules', 'edge.mjs'];
    const { stdout } = await run(node, args, { ...BOUND, cwd: consumer, env });
    expect(JSON.parse(stdout)).toEqual({ version, id: headers['webhook-id'], code: 'bad-signature' });
  });

  test.each(['hono', 'express', 'lambda'])(
    'the example for %s accepts webhooks, and rejects other requests',
    async (name) => {
      const secret = newSecret();
      const program = start(node, `serve-${name}.mjs`, { JOBWIRE_SECRET: secret });
      const url = `http://127.0.0.1:${await program.line()}/jobwire`;
      const { body, headers } = await signedNow(secret);
      const post = async (sent: string, extra: object = {}) =>
        (await fetch(url, { method: 'POST', body: sent, headers: { ...headers, ...extra } })).status;
      expect(await post(body.replace('Größe', 'Grösse'))).toBe(401);
      expect(await post('')).toBe(401);
      expect(await post(body, { 'webhook-timestamp': '1' })).toBe(401);
      expect(await post(body, { 'x-plain': 'yes' })).toBe(204);
      expect(await post(body, { 'webhook-replay': 'true' })).toBe(204);
      expect(JSON.parse(await program.line())).toEqual({ ...JSON.parse(body), replay: false });
      expect(JSON.parse(await program.line())).toEqual({ ...JSON.parse(body), replay: true });
    },
  );

  test('the example for SQS processes messages, resolves references, and after a failure returns only the messages of its group', async () => {
    const { body } = await signedNow(newSecret());
    const asked: unknown[] = [];
    const api = createServer((request, response) => {
      asked.push([request.url, request.headers.authorization]);
      response.setHeader('content-type', 'application/json').end(`{"events":[${body}]}`);
    }).listen(0, '127.0.0.1');
    await once(api, 'listening');
    open.push(() => api.close());
    const { id, type, source, time, sequence } = JSON.parse(body);
    const feed = 'https://elsewhere.example/v1/accounts/acme/events?after=e1.0&limit=1';
    const reference = { jobwire: 'reference', id, type, source, time, sequence, feed };
    const wrapped = { Type: 'Notification', TopicArn: 'arn:aws:sns:eu-west-1:1:x.fifo', Message: body };
    const bodies = [body, JSON.stringify(wrapped), JSON.stringify(reference), 'no event', body, body];
    const groups = ['acme/1', 'acme/2', 'acme/1', 'acme/1', 'acme/1', 'acme/2'];
    const env = {
      RECORDS: JSON.stringify(
        bodies.map((one, at) => ({
          ...{ messageId: `m${at}`, body: one, attributes: { MessageGroupId: groups[at] } },
        })),
      ),
      JOBWIRE_URL: `http://127.0.0.1:${(api.address() as AddressInfo).port}`,
      JOBWIRE_API_KEY: 'a-key-of-some-length',
    };
    const program = start(node, 'run-sqs.mjs', env);
    for (let at = 0; at < 4; at += 1) expect(JSON.parse(await program.line())).toEqual(JSON.parse(body));
    expect(JSON.parse(await program.line())).toEqual({
      batchItemFailures: [{ itemIdentifier: 'm3' }, { itemIdentifier: 'm4' }],
    });
    expect(asked).toEqual([['/v1/accounts/acme/events?after=e1.0&limit=1', 'Bearer a-key-of-some-length']]);
  });
});

describe('the other examples', () => {
  const { cases } = JSON.parse(readFileSync('test/vectors/webhook-signatures.json', 'utf8')) as {
    cases: {
      secrets: string[];
      id: string;
      timestamp: string;
      body: string;
      signature: string;
      sent?: true;
    }[];
  };

  test.skipIf(!works('python3', ['-c', 'import hmac; hmac.digest']))(
    'Python accepts valid signatures only',
    async () => {
      const secret = newSecret();
      const { body, headers } = await signedNow(secret);
      const rotated = {
        ...headers,
        'webhook-signature': `v1,bm9uZQ== v1a,ü ${headers['webhook-signature']}`,
      };
      const tried = [
        [body, headers, secret],
        [body, rotated, secret],
        [body.replace('Größe', 'Grösse'), headers, secret],
        [body, headers, newSecret()],
        [body, { ...headers, 'webhook-timestamp': '1' }, secret],
        [body, { ...headers, 'webhook-signature': undefined }, secret],
        [body, {}, secret],
      ];
      const source = `${findExample('Python', 'python')}
import sys
for body, headers, secret in json.loads(sys.argv[1]):
    try:
        print(receive(body.encode(), headers, secret)["id"])
    except ValueError as error:
        print(error)
`;
      const { stdout } = await run('python3', ['-c', source, JSON.stringify(tried)], BOUND);
      const id = headers['webhook-id'];
      const [unsigned, untimely] = ['No signature fits.', 'The webhook is too old or too new.'];
      const refused = [unsigned, unsigned, untimely, unsigned, untimely];
      expect(stdout.trim().split('\n')).toEqual([id, id, ...refused]);
    },
  );

  test.skipIf(!works('java', ['--version']))('Java accepts valid signatures only', async () => {
    const secret = newSecret();
    const { body, headers } = await signedNow(secret);
    const {
      'webhook-id': id = '',
      'webhook-timestamp': at = '',
      'webhook-signature': signature = '',
    } = headers;
    const signedEarly = new Webhook(secret).sign(id, new Date(1_000), body);
    const tried: [ok: boolean, body: string, id: string, at: string, signatures: string, secret: string][] = [
      [true, body, id, at, signature, secret],
      [true, body, id, at, `v1,bm9uZQ== v1a,ü ${signature}`, secret],
      [false, body.replace('Größe', 'Grösse'), id, at, signature, secret],
      [false, body, id, at, signature, newSecret()],
      [false, body, `${id}0`, at, signature, secret],
      [false, body, id, '1', signedEarly, secret],
      [false, body, id, 'now', signature, secret],
      [false, body, '', '', '', secret],
    ];
    const source = findExample('Java', 'java').replace(
      /\}\s*$/,
      `  public static void main(String[] all) throws Exception {
        for (String one : all) {
          String[] part = Arrays.stream(one.split(" ", -1)).map(text -> new String(Base64.getDecoder().decode(text), UTF_8))
              .map(text -> text.isEmpty() ? null : text).toArray(String[]::new);
          System.out.println(isValid(part[0].getBytes(UTF_8), part[1], part[2], part[3], part[4]));
        }
      }
    }`,
    );
    const file = join(folder, 'Webhook.java');
    writeFileSync(file, source);
    const encode = (text: string) => Buffer.from(text).toString('base64');
    const input = tried.map(([, ...request]) => request.map(encode).join(' '));
    const { stdout } = await run('java', [file, ...input], BOUND);
    expect(stdout.trim().split('\n')).toEqual(tried.map(([ok]) => String(ok)));
  });

  test.skipIf(!works('openssl', ['version']))('openssl creates the signatures of the vectors', async () => {
    const sent = cases.filter((one) => one.sent);
    expect(sent.length).toBeGreaterThan(3);
    for (const { secrets, id, timestamp, body, signature } of sent) {
      writeFileSync(join(folder, 'body.json'), body);
      const env = { JOBWIRE_SECRET: secrets[0], WEBHOOK_ID: id, WEBHOOK_TIMESTAMP: timestamp };
      const options = { ...BOUND, cwd: folder, env: { ...cleanEnv, ...env } };
      const { stdout } = await run('sh', ['-c', findExample('openssl', 'sh')], options);
      expect(stdout.trim()).toBe(signature.split(' ')[0]);
    }
  });

  test('the SQL stores an event of any type once, and the latest state of a job for any order of arrival', () => {
    const [tables = '', seen = '', state = ''] = findBlocks('With SQL', 'sql');
    const isForJobs = state.startsWith('-- Only if the event has data.job.');
    const db = new DatabaseSync(':memory:');
    open.push(() => db.close());
    db.exec(tables);
    const take = ({ id, subject, sequence, data: { region, account, job } }: JobEvent) => {
      if (db.prepare(seen).run({ $1: id }).changes === 0) return 'repeat';
      if (isForJobs && !job) return 'no job';
      const key = { $1: `${region}/${account}`, $2: subject, $3: id.split('.')[1], $4: sequence };
      const values = { ...key, $5: job && JSON.stringify(job) } as Record<string, string>;
      return db.prepare(state).run(values).changes === 1 ? 'new' : 'old';
    };
    const examples = eventTypes.flatMap((type) => getExample(type) ?? []);
    expect(examples.map((event) => [event.type, take(event)])).toEqual(
      eventTypes.map((type) => [type, type.startsWith('job.') ? 'new' : 'no job']),
    );
    const [example] = examples as [JobEvent];
    const takeAt = (epoch: string, sequence: number) => {
      const id = `acme.${epoch}.${sequence}`;
      const data = { account: 'acme', region: 'us', job: id };
      return take({ ...example, id, subject: 'jobs/1', sequence: String(sequence).padStart(20, '0'), data });
    };
    const stateNow = () => db.prepare("SELECT state FROM job WHERE subject = 'jobs/1'").all();
    expect(takeAt('t1', 9)).toBe('new');
    expect(takeAt('t1', 10)).toBe('new');
    expect(takeAt('t1', 10)).toBe('repeat');
    expect(takeAt('t1', 8)).toBe('old');
    expect(stateNow()).toMatchObject([{ state: '"acme.t1.10"' }]);
    expect(takeAt('t2', 1)).toBe('new');
    expect(takeAt('t1', 11)).toBe('old');
    expect(stateNow()).toMatchObject([{ state: '"acme.t2.1"' }]);
  });
});

/** The fenced blocks of a language under a heading of the guide. */
function findBlocks(heading: string, language: string): string[] {
  const [, after = ''] = guide.split(new RegExp(`^#+ ${heading}$`, 'm'));
  const [section = ''] = after.split(/^#{2,} /m);
  const blocks = [...section.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)];
  return blocks.filter(([, kind]) => kind === language).map(([, , source = '']) => source);
}

function findExample(heading: string, language: string): string {
  const [source] = findBlocks(heading, language);
  if (source === undefined) throw new Error(`The guide has no example under ${heading}.`);
  return source;
}

/** The examples of the guide, and the programs that run them. */
function programs(): Record<string, string> {
  const [intro = ''] = /^```ts\n[\s\S]*?^```$/m.exec(guide) ?? [];
  return {
    'queue.mjs': `
      export const enqueue = async (event) => console.log(JSON.stringify(event));
      export const handle = enqueue;`,
    'hono.mjs': findExample('Hono', 'js'),
    'serve-hono.mjs': `
      import { serve } from '@hono/node-server';
      import app from './hono.mjs';
      serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => console.log(port));`,
    'express.mjs': findExample('Express', 'js'),
    'serve-express.mjs': `
      import app from './express.mjs';
      const server = app.listen(0, '127.0.0.1', () => console.log(server.address().port));`,
    'lambda.mjs': findExample('Lambda', 'js'),
    'serve-lambda.mjs': `
      import { createServer } from 'node:http';
      import { handler } from './lambda.mjs';
      const server = createServer(async (request, response) => {
        const chunks = [];
        for await (const chunk of request) chunks.push(chunk);
        const isBase64Encoded = !request.headers['x-plain'];
        const body = Buffer.concat(chunks).toString(isBase64Encoded ? 'base64' : 'utf8');
        const answer = await handler({ body, headers: request.headers, isBase64Encoded });
        response.writeHead(answer.statusCode).end();
      }).listen(0, '127.0.0.1', () => console.log(server.address().port));`,
    'sqs.mjs': findExample('SQS consumer', 'js'),
    'run-sqs.mjs': `
      import { handler } from './sqs.mjs';
      console.log(JSON.stringify(await handler({ Records: JSON.parse(process.env.RECORDS) })));`,
    'edge.mjs': EDGE,
    'check.ts': CHECK,
    'intro.ts': `
      declare const rawBody: string, headers: Record<string, string>;
      declare const process: { env: Record<string, string | undefined> };
      declare const console: { log(...values: unknown[]): void };
      ${intro.replace(/^```(?:ts)?$/gm, '')}`,
  };
}

/** Runs the package's file in a realm with Web APIs only, without Node and code generation from strings. */
const EDGE = `
  import { readFileSync } from 'node:fs';
  import { fileURLToPath } from 'node:url';
  import vm from 'node:vm';
  const globals = { crypto, TextEncoder, TextDecoder, atob, btoa };
  const context = vm.createContext(globals, { codeGeneration: { strings: false, wasm: false } });
  const source = readFileSync(fileURLToPath(import.meta.resolve('jobwire/receive')), 'utf8');
  const module = new vm.SourceTextModule(source, { context });
  await module.link((specifier) => { throw new Error('It imports ' + specifier); });
  await module.evaluate();
  const { secret, body, headers } = JSON.parse(process.env.INPUT);
  const receiver = module.namespace.createReceiver({ secret });
  const { id } = await receiver.receive(new TextEncoder().encode(body), new Headers(headers));
  const { code } = await receiver.receive(body + ' ', headers).catch((error) => error);
  console.log(JSON.stringify({ version: process.versions.node, id, code }));`;

const CHECK = `
  import { createReceiver, type EventType, type JobwireEvent, type KnownEvent, parseMessage, type UnknownEvent } from 'jobwire/receive';

  export function told(event: JobwireEvent): string | null {
    if (event.type === 'job.dispatched') {
      const { occurredAt, changes }: { occurredAt: string; changes: { dateOut: { to: string | null } } } = event.data;
      return changes.dateOut.to ?? occurredAt;
    }
    switch (event.type) {
      case 'job.status_changed':
        // @ts-expect-error: a field of another type
        event.data.openJobs;
        return event.data.changes.status.to;
      case 'account.baselined':
        return event.data.openJobs.toFixed();
      // @ts-expect-error: a type that does not exist
      case 'job.dispached':
        return null;
      default: {
        const rest: Exclude<KnownEvent, { type: 'job.dispatched' | 'job.status_changed' | 'account.baselined' }> | UnknownEvent = event;
        const type: string = rest.type;
        return type;
      }
    }
  }

  export function onDispatched(event: KnownEvent<'job.dispatched'>): EventType {
    return event.type;
  }

  export async function receive(request: { text(): Promise<string>; headers: { get(name: string): string | null } }) {
    const event = await createReceiver({ secrets: ['a', undefined] }).receive(await request.text(), request.headers);
    const replay: boolean = event.replay;
    if (event.type === 'job.dispatched') onDispatched(event);
    return replay ? null : told(event);
  }

  export function message(body: string): string {
    const message = parseMessage(body);
    return 'feed' in message ? message.feed : message.dataschema;
  }`;

/** A webhook sent now, with characters of more than one byte. */
async function signedNow(secret: string): Promise<{ body: string; headers: Record<string, string> }> {
  const [delivery] = await someDeliveries(1);
  if (!delivery) throw new Error('There is no event.');
  const body = delivery.event.json.replace('"s0"', '"Größe 名刺 🖨️"');
  const now = new Date();
  const { id } = delivery.event;
  return {
    body,
    headers: {
      'content-type': 'application/cloudevents+json; charset=utf-8',
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
      'webhook-signature': new Webhook(secret).sign(id, now, body),
    },
  };
}

/** Starts a program in the consumer's folder; it ends with the test. */
function start(
  node: string,
  file: string,
  env: Record<string, string | undefined>,
): { line(): Promise<string> } {
  const child: ChildProcess = spawn(node, [file], {
    cwd: consumer,
    env: { ...cleanEnv, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  open.push(() => child.kill('SIGKILL'));
  let complaints = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    complaints += text;
  });
  if (!child.stdout) throw new Error('The program has no output.');
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    async line() {
      const { value, done } = await lines.next();
      if (done) throw new Error(`The program ended: ${complaints}`);
      return value;
    },
  };
}

/** The Node that runs Jobwire, and the machine's own if that is another one, 20 or later. */
function nodes(): { node: string; version: string }[] {
  const ours = resolve('node_modules/.bin/node');
  const names = process.platform === 'win32' ? ['node.exe'] : ['node'];
  const host = hostPath()
    .split(delimiter)
    .flatMap((path) => names.map((name) => join(path, name)))
    .find((file) => existsSync(file));
  const found = [ours, ...(host ? [host] : [])].map((node) => {
    const version = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim().slice(1);
    return { node, version };
  });
  const fit = found.filter(({ version }) => Number.parseInt(version, 10) >= 20);
  return fit.filter(({ version }, at) => fit.findIndex((one) => one.version === version) === at);
}

/** The PATH without npm's additions. */
function hostPath(): string {
  const paths = (process.env.PATH ?? '').split(delimiter);
  return paths
    .filter((path) => !path.includes('node_modules') && !path.includes('node-gyp-bin'))
    .join(delimiter);
}

function works(command: string, args: string[]): boolean {
  try {
    execFileSync(command, args, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
