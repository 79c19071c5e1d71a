/**
 * The functions' bundles: size, start, and contents by package. The contents are committed, so that additions are deliberate and
 * removals are recorded.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { type Bundle, bundle, bundleAll, functionEntries } from '../../bench/assets.ts';
import { esbuildOptions } from '../../infra/bundling.ts';
import { synthesize } from '../support/cells.ts';

/** Jobwire's own code. */
const OWN = '.';
/** Dependencies of every client of the SDK. */
const SDK = [
  '@aws-sdk/core',
  '@aws/lambda-invoke-store',
  '@smithy/core',
  '@smithy/node-http-handler',
  '@smithy/signature-v4',
  '@smithy/types',
];
/** The table: the client, and endpoint discovery, which only DynamoDB has. */
const DYNAMO = [
  '@aws-sdk/client-dynamodb',
  '@aws-sdk/dynamodb-codec',
  '@aws-sdk/endpoint-cache',
  '@aws-sdk/lib-dynamodb',
  '@aws-sdk/middleware-endpoint-discovery',
  '@aws-sdk/util-dynamodb',
  'mnemonist',
  'obliterator',
];
const SQS = ['@aws-sdk/client-sqs', '@aws-sdk/middleware-sdk-sqs'];
const TELEMETRY = [
  '@aws-lambda-powertools/commons',
  '@aws-lambda-powertools/logger',
  '@aws-lambda-powertools/metrics',
];
const BASE = [OWN, ...SDK, ...DYNAMO, ...TELEMETRY, '@middy/core', 'zod'];
/** SNS speaks XML. */
const SNS = ['@aws-sdk/client-sns', '@aws-sdk/xml-builder'];
/** The client of EventBridge can sign for several AWS regions at once. */
const EVENT_BUS = ['@aws-sdk/client-eventbridge', '@aws-sdk/signature-v4-multi-region'];
/** Mails are composed by nodemailer. The client of SES can sign for several AWS regions at once. */
const SES = ['@aws-sdk/client-sesv2', '@aws-sdk/signature-v4-multi-region', 'nodemailer'];
/** The bucket: S3 uses XML, verifies checksums, and can be signed for several AWS regions at once. */
const S3 = [
  '@aws-sdk/checksums',
  '@aws-sdk/client-s3',
  '@aws-sdk/middleware-sdk-s3',
  '@aws-sdk/signature-v4-multi-region',
  '@aws-sdk/xml-builder',
];
const SECRETS = ['@aws-sdk/client-kms'];
/** Credentials of accounts that their owners keep. */
const OWNED = ['@aws-sdk/client-secrets-manager'];
/** The app, the failure counter of keys, the days of jobs, and the sign-in of users. */
const HTTP = ['hono', 'rate-limiter-flexible', '@date-fns/tz', 'jose', 'oauth4webapi'];
/** Suggestions for misspelled event types, where input is validated. */
const SUGGESTIONS = ['leven'];
const LIMIT = ['p-limit', 'yocto-queue'];
/** Notifications: phone numbers, texts, and CSV. */
const NOTIFICATIONS = ['csv-parse', 'libphonenumber-js', 'liquidjs'];

const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  // Days of dispatch, with the snapshots that are indexed for the search.
  tick: [...BASE, ...SQS, ...LIMIT, '@date-fns/tz'],
  // Phone numbers of the API user, from its upstream settings.
  'poll-account': [
    ...BASE,
    ...SUGGESTIONS,
    ...SECRETS,
    ...OWNED,
    ...LIMIT,
    '@date-fns/tz',
    'libphonenumber-js',
  ],
  'wake-sinks': [...BASE, ...SQS, ...LIMIT],
  // Sends to topics, the bus, queues and webhooks. Folds notification events, which include the days of jobs.
  'drain-sink': [...BASE, ...SUGGESTIONS, ...SECRETS, ...SNS, ...EVENT_BUS, ...SQS, ...LIMIT, '@date-fns/tz'],
  // Days and times of quiet hours.
  alerts: [...BASE, ...SUGGESTIONS, ...SECRETS, ...SES, ...LIMIT, '@date-fns/tz'],
  notify: [...BASE, ...SUGGESTIONS, ...SNS, ...SES, ...LIMIT, '@date-fns/tz', 'liquidjs'],
  'mail-feedback': [...BASE, ...SUGGESTIONS],
  api: [...BASE, ...SUGGESTIONS, ...LIMIT, ...HTTP, ...NOTIFICATIONS],
  // Sends test e-mails, and pings endpoints that are queues.
  manage: [
    ...BASE,
    ...SUGGESTIONS,
    ...SECRETS,
    ...OWNED,
    ...SES,
    ...SQS,
    ...LIMIT,
    ...HTTP,
    ...NOTIFICATIONS,
  ],
  live: [...BASE, ...SUGGESTIONS, ...LIMIT, ...HTTP, ...NOTIFICATIONS],
  operate: [...BASE, ...SUGGESTIONS, ...LIMIT],
  // No table.
  'publish-dashboard': [OWN, ...SDK, ...S3, ...TELEMETRY, '@middy/core', 'zod'],
};

/** Maximum size of a bundle. */
const LIMIT_BYTES = 1_000_000;
/**
 * Larger bundles. All of the API contain all routes, in groups that are loaded when they are needed: that costs 2 % of size and saves 9 to
 * 17 % of a cold start (docs/decisions/0086-route-groups.md). `manage` validates addresses and templates, and sends test e-mails.
 */
const LIMITS: Readonly<Record<string, number>> = {
  notify: 1_500_000,
  api: 1_268_000,
  live: 1_268_000,
  manage: 1_597_000,
};
/** Logical ids of the functions, without construct path and hash, where they differ from the name of the entry. */
const IDS: Readonly<Record<string, string>> = {
  alerts: 'AlertsFunction',
  api: 'ApiFunction',
  operate: 'OperateFunction',
  'publish-dashboard': 'DashboardPublish',
};

const folder = mkdtempSync(join(tmpdir(), 'jobwire-bundles-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
  vi.unstubAllEnvs();
});

/** Source maps take a quarter of the CPU time of a build, and do not change the code. */
const withoutMaps = { sourcemap: false } as const;
let bundles: ReadonlyMap<string, Bundle>;
beforeAll(async () => {
  bundles = await bundleAll(withoutMaps);
});
function built(entry: string): Bundle {
  const found = bundles.get(entry);
  if (!found) throw new Error(`There is no bundle of ${entry}.`);
  return found;
}

test('a bundle that was built with the others is the same as one that was built alone', async () => {
  expect((await bundle('tick', withoutMaps)).code).toBe(built('tick').code);
});

test('every function has its list', () => {
  expect(functionEntries().sort()).toEqual(Object.keys(ALLOWED).sort());
});

test.each(functionEntries())('the bundle of %s has exactly its list, each once', (entry) => {
  const { packages, copies } = built(entry);
  expect([...packages.keys()].sort()).toEqual([...(ALLOWED[entry] ?? [])].sort());
  expect(copies).toEqual([]);
});

test.each(functionEntries())('the bundle of %s has the English messages of zod only', (entry) => {
  const { files } = built(entry);
  expect(files.filter((file) => /\/zod\/.*\/locales\/(?!index\.js$)/.test(file))).toEqual([
    expect.stringMatching(/\/locales\/en\.js$/),
  ]);
});

test.each(functionEntries())('the bundle of %s is small and starts alone', async (entry) => {
  const { code } = built(entry);
  expect(Buffer.byteLength(code)).toBeLessThan(LIMITS[entry] ?? LIMIT_BYTES);
  const file = join(folder, `${entry}.mjs`);
  writeFileSync(file, code);
  const hasApi = ['api', 'manage', 'live'].includes(entry);
  const script = `
    import { PassThrough } from 'node:stream';
    let head;
    globalThis.awslambda = {
      streamifyResponse: (handler) => (event, context) => handler(event, new PassThrough().resume(), context),
      HttpResponseStream: { from: (stream, metadata) => (head = metadata, stream) },
    };
    const { handler } = await import(${JSON.stringify(file)});
    const event = { httpMethod: 'GET', path: '/v1/key', body: null, multiValueHeaders: {}, requestContext: {} };
    const context = { getRemainingTimeInMillis: () => 5000 };
    console.log(typeof handler);
    if (${hasApi}) console.log((await handler(event, context) ?? head).statusCode);`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], {
    env: {
      ...deployedEnvironment(entry),
      AWS_REGION: 'us-east-1',
      AWS_ACCESS_KEY_ID: 'test',
      AWS_SECRET_ACCESS_KEY: 'test',
    },
  });
  // The API requires a key, without reading the table.
  const lines = stdout.split('\n').filter((line) => line !== '' && !line.startsWith('{'));
  expect(lines).toEqual(hasApi ? ['function', '401'] : ['function']);
});

/** The environment of a deployed function. Names, ARNs and URLs are known only after deployment. */
function deployedEnvironment(entry: string): Record<string, string> {
  const camelCase = entry.replace(/(?:^|-)(.)/g, (_, letter: string) => letter.toUpperCase());
  const id = new RegExp(`${IDS[entry] ?? camelCase}[0-9A-F]{8}$`);
  const [found, ...others] = synthesize('prod')
    .functions()
    .filter((one) => id.test(one.id));
  if (!found || others.length > 0) throw new Error(`The cell does not have exactly one function ${id}.`);
  const { Variables } = found.fn.Properties.Environment as { Variables: Record<string, unknown> };
  return Object.fromEntries(
    Object.entries(Variables).map(([key, value]) => [
      key,
      typeof value === 'string' ? value : key.endsWith('_URL') ? 'https://deployed.example/' : 'deployed',
    ]),
  );
}

test('in a bundle the SDK takes credentials from the environment, and reports missing ones', async () => {
  const { client } = await importBundled(`
    import { SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
    export const client = () => new SecretsManagerClient({ region: 'us-east-1' });
  `);
  const credentials = (): Promise<unknown> => client().config.credentials();
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'id');
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'secret');
  vi.stubEnv('AWS_SESSION_TOKEN', 'session');
  expect(await credentials()).toMatchObject({
    ...{ accessKeyId: 'id', secretAccessKey: 'secret', sessionToken: 'session' },
  });
  vi.stubEnv('AWS_SESSION_TOKEN', undefined);
  expect(await credentials()).not.toHaveProperty('sessionToken');
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', undefined);
  await expect(credentials()).rejects.toThrow(/^The environment holds no AWS credentials:/);
});

async function importBundled(contents: string) {
  const { entryPoints: _, ...options } = esbuildOptions('');
  const { outputFiles } = await build({
    ...options,
    sourcemap: false,
    stdin: { contents, resolveDir: options.absWorkingDir },
  });
  const file = join(folder, 'index.mjs');
  writeFileSync(file, outputFiles.find(({ path }) => path.endsWith('.mjs'))?.contents ?? '');
  return (await import(pathToFileURL(file).href)) as {
    client(): { config: { credentials(): Promise<unknown> } };
  };
}
