/**
 * The configuration file of a self-hosted Jobwire: its schema, and one clear error message if it is invalid.
 * One file: it is one schema, in the order of the reference that is generated from it.
 */

import { createPrivateKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { type ParseError, parse, printParseErrorCode, visit } from 'jsonc-parser';
import * as z from 'zod';
import { DEFAULT_INTERVAL_SECONDS, intervalRule, MAX_INTERVAL_SECONDS } from './accounts/account-input.ts';
import { EventSettingsUpdate } from './accounts/event-settings.ts';
import { isSafeUrl, SignInSettings } from './api/sign-in-input.ts';
import { MAX_SLOTS_PER_KEY } from './api/waiting-limit.ts';
import { endpointFields } from './delivery/endpoint-input.ts';
import { DEFAULT_DISABLE_AFTER_SECONDS, DEFAULT_RETRY_SECONDS } from './delivery/health.ts';
import { checkUrl } from './delivery/outbound.ts';
import { formatCode } from './error-codes.ts';
import { checkEmail } from './notifications/email-address.ts';
import { REGION_MONTHLY_SEGMENTS } from './notifications/sms-limits.ts';
import { findSimilarName } from './similar-name.ts';
import {
  corsOrigins,
  endpointId,
  flag,
  formatIssue,
  id,
  integerFrom,
  pathText,
  SECRET_RULE,
  typePatterns,
  webhookSecret,
} from './validation.ts';

/** Name of the document in error messages. */
const WHOLE = 'The configuration';

/** The URL of a server. Without a user name and password, because URLs are in error messages, and those of links in e-mails. */
const httpUrl = z
  .url({
    protocol: /^https?$/,
    error: 'must be a URL that begins with http:// or https://',
  })
  .refine((url) => {
    const { username, password } = URL.parse(url) ?? {};
    return !username && !password;
  }, 'must not contain a user name or password');
/** A URL to which paths are appended. */
export const baseUrl = httpUrl.refine((url) => !/[?#]/.test(url), 'must not contain ? or #');
const seconds = z.number('must be a number of seconds').positive('must be more than 0');
const text = (what: string) => z.string(`must be ${what}`).min(1, `must be ${what}`);

/** Base URL of links to this program: an origin, and a path prefix if there is one. Without a final slash. */
const publicUrl = baseUrl.transform((url) => url.replace(/\/+$/, ''));

/** Makes a field optional, and adds its default to the description. */
const withDefault = <T extends z.ZodType>(field: T, fallback: string) =>
  field.optional().describe(`${field.description} Default: ${fallback}.`);

const listenPort = integerFrom(0, 65_535, 'must be a port number from 0 to 65535');

const SECRETS_RULE = `${SECRET_RULE}, or a list of 1 to 4 such secrets`;

const FROM_RULE = 'the sender address of e-mails, such as orders@example.com';

/**
 * Channels of customer notifications: the mail server and the SMS provider. Each account's settings select
 * recipients and messages.
 */
const notifications = z.strictObject({
  from: z
    .string(`must be ${FROM_RULE}`)
    .refine((address) => checkEmail(address).kind === 'checked', `must be ${FROM_RULE}`)
    .describe('E-mail address from which mails are sent. Accounts can have their own sender name.'),
  smtp: z
    .strictObject({
      host: text('the name of a mail server').describe('Host name of the mail server.'),
      port: integerFrom(1, 65_535, 'must be a port number from 1 to 65535')
        .default(587)
        .describe('Port of the mail server.'),
      secure: flag
        .optional()
        .describe(
          'Whether the connection begins with TLS. If not, STARTTLS is used if the server offers it. With a password, STARTTLS is required, except on loopback. Default: `true` for port 465, otherwise `false`.',
        )
        .meta({ examples: [true] }),
      user: text('the user’s name at the mail server')
        .optional()
        .describe('User name at the mail server. Requires `password`. Default: no authentication.'),
      password: text('the user’s password')
        .optional()
        .describe('Password of the user. Requires `user`. Default: none.'),
      dkim: z
        .strictObject({
          domain: text('the domain for which e-mails are signed').describe(
            'Domain for which e-mails are signed.',
          ),
          selector: text('the name of the key in the domain’s DNS').describe(
            'Name of the key in the DNS of the domain: `<selector>._domainkey.<domain>`.',
          ),
          privateKey: z
            .string('must be the PEM of an RSA key')
            .refine(isRsaKey, 'must be the PEM of an RSA key')
            .describe('Private RSA key in PEM format.'),
        })
        .optional()
        .describe(
          'Signs mails with DKIM. Set it only if the mail server does not sign them. Default: not signed.',
        ),
    })
    .superRefine(({ user, password }, context) => {
      const fail = (path: string, message: string): void =>
        context.addIssue({ code: 'custom', path: [path], message });
      if (user !== undefined && password === undefined) fail('password', 'must be given with user');
      if (user === undefined && password !== undefined) fail('user', 'must be given with password');
    })
    .transform((smtp) => ({ ...smtp, secure: smtp.secure ?? smtp.port === 465 }))
    .describe('Mail server through which e-mails are sent.'),
  sms: z
    .strictObject({
      awsRegion: z
        .string('must be an AWS region')
        .regex(/^[a-z]{2}(-[a-z]+)+-\d$/, 'must be an AWS region such as eu-central-1')
        .describe('AWS region of Amazon SNS.'),
      endpoint: httpUrl
        .optional()
        .describe('URL of another server with the SNS API, for tests. Default: Amazon SNS.')
        .meta({ examples: ['http://127.0.0.1:4566'] }),
      senderId: z
        .string('must be 1 to 11 letters and digits')
        .regex(/^(?=.*[A-Za-z])[A-Za-z0-9]{1,11}$/, 'must be 1 to 11 letters and digits, one letter at least')
        .optional()
        .describe(
          'Sender id of SMS, for accounts without their own: 1 to 11 letters and digits, at least one letter. Not all countries allow it. Default: chosen by Amazon SNS.',
        ),
      monthlySegments: z
        .int('must be an integer')
        .min(0, 'must be 0 or more')
        .optional()
        .describe(
          `Maximum number of SMS segments of all accounts of a region, per calendar month (UTC). Default: ${REGION_MONTHLY_SEGMENTS}.`,
        ),
    })
    .optional()
    .describe('SMS through Amazon SNS, with the AWS credentials of the environment. Default: no SMS.'),
});

function isRsaKey(pem: string): boolean {
  try {
    return createPrivateKey(pem).asymmetricKeyType === 'rsa';
  } catch {
    return false;
  }
}

/** Schema of the configuration file, with a description of each key. `config-documents.ts` generates the reference from it. */
export const configSchema = z
  .strictObject({
    $schema: z
      .string('must be the URL or path of a JSON Schema')
      .optional()
      .describe('URL or path of the JSON Schema, for editors. Default: none.'),
    port: listenPort
      .default(4000)
      .describe(
        'Port of the HTTP API and the dashboard. `0`: any free port. The option `--port` overrides it.',
      ),
    host: text('a host name or address to listen on')
      .default('127.0.0.1')
      .describe('Host name or address to listen on. By default, only programs on this machine can connect.'),
    dataDir: text('a folder')
      .default('.jobwire')
      .describe(
        'Data folder ([content](self-hosting.md#data-folder)). A relative path starts at the folder of the configuration file.',
      ),
    apiKey: z
      .string('must be text')
      .min(16, 'must be at least 16 characters')
      .regex(/^[\x21-\x7e]*$/, 'must be printable ASCII without spaces')
      .optional()
      .describe('API key with the role `admin`. Default: generated, in `dataDir`.'),
    signIn: SignInSettings.optional().describe(
      'Sign-in of users at the dashboard with OpenID Connect ([sign-in of users](self-hosting.md#sign-in-of-users)). Default: off.',
    ),
    publicUrl: publicUrl
      .optional()
      .describe(
        'Public base URL of the HTTP API, without `?` and `#`. Links in e-mails, and `source` and `dataschema` of events, begin with it. With the default, `source` is a path without a host. Required with `notifications`. Mail programs offer one-click unsubscribe only if it begins with `https`. Default: the address on which Jobwire listens.',
      ),
    metrics: z
      .strictObject({
        port: listenPort.describe('Port of `GET /metrics`. `0`: any free port.').meta({ examples: [9400] }),
        host: text('a host name or address to listen on')
          .default('127.0.0.1')
          .describe(
            'Host name or address to listen on. With an address that is not loopback, each request requires an API key for all accounts.',
          )
          .meta({ examples: ['0.0.0.0'] }),
      })
      .optional()
      .describe(
        'Metrics for Prometheus, on a separate port ([metrics](self-hosting.md#metrics)). Default: off.',
      ),
    tracing: z
      .strictObject({
        endpoint: baseUrl
          .describe(
            'Base URL of an OpenTelemetry collector. Spans are sent to `<endpoint>/v1/traces` (OTLP over HTTP, JSON).',
          )
          .meta({ examples: ['http://127.0.0.1:4318'] }),
        headers: endpointFields.headers
          .optional()
          .describe('Headers of each request, such as a token of the collector. Default: none.')
          .meta({ examples: [{ authorization: 'env:OTLP_AUTHORIZATION' }] }),
      })
      .optional()
      .describe('Traces from polls to deliveries ([traces](self-hosting.md#traces)). Default: off.'),
    notifications: notifications
      .optional()
      .describe(
        'E-mails and SMS to customers. Recipients and texts are configured per account, through the API or the CLI ([notifications](notifications.md), [mail servers, DKIM, SMS](notifications-channels.md)). Default: off.',
      ),
    streamsPerKey: integerFrom(1, MAX_SLOTS_PER_KEY)
      .default(100)
      .describe('Maximum number of concurrent streams and waiting long polls of an API key.'),
    corsOrigins: corsOrigins.describe(
      'Origins of web pages (scheme, host and port) that may call the HTTP API from a browser.',
    ),
    dynamodbEndpoint: httpUrl
      .optional()
      .describe(
        'URL of a server with the DynamoDB API that stores the tables ([limits](self-hosting.md#limits-of-the-embedded-store)). Default: SQLite.',
      )
      .meta({ examples: ['http://127.0.0.1:8000'] }),
    sns: flag
      .default(true)
      .describe(
        'Whether Jobwire runs an embedded SNS and SQS, and publishes all events to a topic per region. `false` saves memory and CPU. If it becomes `true` again, the events recorded in the meantime are published.',
      )
      .meta({ examples: [false] }),
    regions: z
      .record(
        id,
        z.strictObject({
          baseUrl: baseUrl.describe('Base URL of the ordering API.'),
          authUrl: baseUrl.describe('Base URL of the server that issues the tokens.'),
          realm: text('the name of the realm').describe(
            'Realm on that server. Tokens are requested from `<authUrl>/realms/<realm>/protocol/openid-connect/token`.',
          ),
        }),
        'must map each region’s name to its baseUrl, authUrl and realm',
      )
      .refine((regions) => Object.keys(regions).length > 0, 'must name at least one region')
      .describe('Regions of the ordering API by name. A name has lower-case letters, digits and hyphens.'),
    accounts: z
      .array(
        z.strictObject({
          id: id.describe(
            'Id of the account in Jobwire: 1 to 63 lower-case letters, digits and hyphens. It is part of paths, events and cursors.',
          ),
          region: z.string('must be the name of a region').describe('Name of one of the `regions`.'),
          clientId: text('the client id of the account’s credentials').describe('OAuth client id.'),
          clientSecret: text('the client secret of the account’s credentials').describe(
            'OAuth client secret.',
          ),
          pollIntervalSeconds: integerFrom(1, MAX_INTERVAL_SECONDS, intervalRule(1))
            .default(DEFAULT_INTERVAL_SECONDS)
            .describe('Interval between polls, in seconds.'),
          events: EventSettingsUpdate.optional().describe(
            'Settings of optional events ([events with settings](receiving-events.md#events-with-settings)). Default: all off.',
          ),
        }),
        'must be a list of accounts',
      )
      .describe('Accounts to track. The list can be empty. Accounts can also be created through the API.'),
    endpoints: z
      .array(
        z.strictObject({
          id: endpointId.describe(
            'Id of the endpoint: 1 to 63 lower-case letters, digits and hyphens, but not the name of a built-in sink.',
          ),
          url: z
            .string('must be a URL')
            .describe(
              'URL to which webhooks are sent: `https` and a public address, unless `webhooks.allowPrivateNetworks` is `true`.',
            ),
          secret: z
            .union(
              [webhookSecret, z.array(webhookSecret).min(1, SECRETS_RULE).max(4, SECRETS_RULE)],
              SECRETS_RULE,
            )
            .describe(
              'Signing secret (Standard Webhooks): `whsec_` followed by 24 to 64 random bytes in base64. During a rotation, set a list of up to 4 secrets, with the new one first.',
            ),
          accounts: z
            .array(z.string())
            .min(1, 'must name at least one account')
            .optional()
            .describe(
              'Only events of these accounts of this file. For other accounts, create the endpoint through the API. Filters are combined with AND. Default: all accounts.',
            ),
          types: typePatterns
            .optional()
            .describe(
              'Only events of these types. A final `*` matches any suffix: `job.*`. Default: all types.',
            ),
          orderGroups: withDefault(endpointFields.orderGroups, 'all'),
          origins: withDefault(endpointFields.origins, 'all'),
          jobFields: withDefault(endpointFields.jobFields, 'all events'),
          headers: withDefault(endpointFields.headers, 'none'),
          concurrency: endpointFields.concurrency.optional(),
          ratePerSecond: endpointFields.ratePerSecond.optional(),
        }),
        'must be a list of endpoints',
      )
      .default([])
      .describe(
        'Webhook endpoints. Endpoints can also be created through the API, which generates the secret.',
      ),
    webhooks: z
      .strictObject({
        allowPrivateNetworks: flag
          .default(false)
          .describe(
            'Whether endpoints may have `http` URLs, private addresses and any port. Only for tests and trusted networks.',
          ),
        retrySeconds: z
          .array(seconds)
          .min(1, 'must contain at least one wait')
          .default(DEFAULT_RETRY_SECONDS)
          .describe('Waiting times between the attempts to deliver an event, in seconds.'),
        disableAfterDays: z
          .number('must be a number of days')
          .positive('must be more than 0')
          .default(DEFAULT_DISABLE_AFTER_SECONDS / 86_400)
          .describe(
            'Number of days without a successful delivery after which a failing endpoint is disabled.',
          ),
      })
      .prefault({})
      .describe('Delivery of webhooks ([delivery](delivery.md)).'),
    sqs: z
      .strictObject({
        endpoint: baseUrl
          .optional()
          .describe('URL of another server with the SQS API, for tests. Default: Amazon SQS.')
          .meta({ examples: ['http://127.0.0.1:4566'] }),
      })
      .optional()
      .describe(
        'Endpoints that are SQS queues, with the AWS credentials of the environment ([SQS](sqs.md#self-hosted)). `{}`: queues of Amazon SQS. Default: off.',
      ),
    departures: z
      .strictObject({
        confirmAfterSeconds: seconds
          .default(900)
          .describe(
            'Minimum time, in seconds, between the two checks before a missing job is reported as cancelled or unavailable.',
          ),
      })
      .prefault({})
      .describe(
        'Checks of jobs that are missing from the list of active jobs ([rule 3](truth.md#rule-3-departure)).',
      ),
    settling: z
      .strictObject({
        scheduleSeconds: z
          .array(seconds)
          .min(1, 'must contain at least one interval')
          .default([300, 1800, 7200, 21_600, 86_400])
          .describe(
            'Intervals between the fetches, in seconds. The last one is repeated. After a change, they start anew.',
          ),
        days: z
          .number('must be a number of days')
          .positive('must be more than 0')
          .default(7)
          .describe(
            'Number of days for which the detail is fetched after the departure of the job or the last change.',
          ),
      })
      .prefault({})
      .describe(
        'Fetches of the detail of a job after it left the list of active jobs ([rule 7](truth.md#rule-7-settling)).',
      ),
  })
  .superRefine((config, context) => {
    const fail = (path: (string | number)[], message: string): void =>
      context.addIssue({ code: 'custom', path, message });
    if (config.notifications && config.publicUrl === undefined) {
      fail(['publicUrl'], 'is required with notifications, because links in e-mails begin with it');
    }
    const host = config.host.includes(':') ? `[${config.host}]` : config.host;
    if (config.signIn && !isSafeUrl(config.publicUrl ?? `http://${host}`)) {
      fail(
        ['publicUrl'],
        'must begin with https:// or have a loopback host if signIn is configured, because browsers require TLS to sign in',
      );
    }
    if (config.metrics && config.metrics.port !== 0 && config.metrics.port === config.port) {
      fail(['metrics', 'port'], 'must differ from port');
    }
    const regions = Object.keys(config.regions);
    const accounts = new Set<string>();
    config.accounts.forEach((account, at) => {
      // Without regions, that is the problem.
      if (regions.length > 0 && !regions.includes(account.region)) {
        fail(['accounts', at, 'region'], `must be one of the configured regions (${regions.join(', ')})`);
      }
      if (accounts.has(account.id))
        fail(['accounts', at, 'id'], `must be unique; "${account.id}" is used twice`);
      accounts.add(account.id);
    });
    const endpoints = new Set<string>();
    config.endpoints.forEach((endpoint, at) => {
      if (endpoints.has(endpoint.id)) {
        fail(['endpoints', at, 'id'], `must be unique; "${endpoint.id}" is used twice`);
      }
      endpoints.add(endpoint.id);
      const rejection = checkUrl(endpoint.url, config.webhooks.allowPrivateNetworks);
      if (rejection) {
        fail(['endpoints', at, 'url'], `is not accepted: ${rejection.replace(/\.$/, '')}`);
      }
      endpoint.accounts?.forEach((account, place) => {
        if (!accounts.has(account)) {
          fail(
            ['endpoints', at, 'accounts', place],
            `must be the id of a configured account; "${account}" is not`,
          );
        }
      });
    });
  });

/** A validated configuration with all defaults. */
export type Config = z.infer<typeof configSchema>;

/** The configuration is invalid. The message is one sentence that names the field and the accepted values. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/**
 * Parses the text of a configuration file: JSON, in which a byte order mark, comments and trailing commas are allowed. Throws
 * {@link ConfigError} with line and column of the first syntax error, or the line of a repeated key.
 */
export function parseConfigText(path: string, content: string): unknown {
  const text = content.replace(/^\uFEFF/, '');
  const errors: ParseError[] = [];
  const raw: unknown = parse(text, errors, { allowTrailingComma: true });
  const [first] = errors;
  if (first === undefined) {
    const repeated = findRepeatedKey(text);
    if (repeated === undefined) return raw;
    throw new ConfigError(
      `${path} contains the key "${repeated.name}" twice in the same object, again in line ${repeated.line}.`,
    );
  }
  const lines = text.slice(0, first.offset).split('\n');
  const place = `line ${lines.length}, column ${(lines.at(-1) ?? '').length + 1}`;
  const problem = printParseErrorCode(first.error)
    .replace(/(?<=[a-z])[A-Z]/g, ' $&')
    .toLowerCase();
  throw new ConfigError(`${path} is not JSON: ${problem} at ${place}.`);
}

/** Returns the first key that an object contains twice, and the line of its second occurrence. */
function findRepeatedKey(text: string): { readonly name: string; readonly line: number } | undefined {
  const objects: Set<string>[] = [];
  let repeated: ReturnType<typeof findRepeatedKey>;
  visit(text, {
    onObjectBegin: () => void objects.push(new Set()),
    onObjectEnd: () => void objects.pop(),
    onObjectProperty(name, _offset, _length, line) {
      const names = objects.at(-1);
      if (names?.has(name)) repeated ??= { name, line: line + 1 };
      names?.add(name);
    },
  });
  return repeated;
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Validates a configuration as read from JSON. Text values `env:NAME` are first replaced from the environment, and `file:PATH` with the
 * text of a file without its final line break. Relative paths start at `folder`, which is the folder of the configuration file (default:
 * the working directory). Throws a {@link ConfigError} that names up to {@link MAX_PROBLEMS} problems, one a line. Values
 * are never quoted, because they may be secrets.
 */
export function parseConfig(raw: unknown, env: Environment, folder = '.'): Config {
  const unresolved: string[] = [];
  const resolved = resolveReferences(raw, { env, folder, onProblem: (text) => unresolved.push(text) }, []);
  if (unresolved.length > 0) throw new ConfigError(joinProblems(unresolved));
  // Compiling the schema takes longer than one use of it.
  const result = configSchema.safeParse(resolved, { reportInput: true, jitless: true });
  if (result.success) return { ...result.data, dataDir: resolve(folder, result.data.dataDir) };
  throw new ConfigError(joinProblems(listProblems(result.error.issues)), { cause: result.error });
}

/** Maximum number of problems in one error message. */
const MAX_PROBLEMS = 10;

function joinProblems(problems: readonly string[]): string {
  const rest = problems.length - MAX_PROBLEMS;
  const end = rest === 1 ? ['1 more problem follows.'] : rest > 1 ? [`${rest} more problems follow.`] : [];
  return [...problems.slice(0, MAX_PROBLEMS), ...end].join('\n');
}

/** Returns the problems: unknown settings first, because another one may be missing only because its name is misspelled. */
function listProblems(issues: readonly z.core.$ZodIssue[]): string[] {
  const meant = new Set<string>();
  const unknown = issues.flatMap((issue) => {
    if (issue.code !== 'unrecognized_keys') return [];
    const known = findKnownKeys(configSchema, issue.path);
    return issue.keys.map((key) => {
      const similar = findSimilarName(key, known);
      if (similar !== undefined) meant.add(pathText([...issue.path, similar], WHOLE));
      const text = `${pathText([...issue.path, key], WHOLE)} is not a known setting.`;
      return similar === undefined ? text : `${text} Did you mean ${similar}?`;
    });
  });
  const others = issues.filter(
    ({ code, path }) => code !== 'unrecognized_keys' && !meant.has(pathText(path, WHOLE)),
  );
  return [...unknown, ...others.map((issue) => `${formatIssue(issue, WHOLE)}.`)];
}

/** Returns the names of the settings of the object at a path. */
function findKnownKeys(schema: z.core.$ZodType, path: readonly PropertyKey[]): string[] {
  const { def } = schema._zod as z.core.$ZodTypes['_zod'];
  switch (def.type) {
    case 'object': {
      const [key, ...rest] = path;
      if (key === undefined) return Object.keys(def.shape);
      const field = def.shape[String(key)];
      return field === undefined ? [] : findKnownKeys(field, rest);
    }
    case 'array':
      return findKnownKeys(def.element, path.slice(1));
    case 'record':
      return findKnownKeys(def.valueType, path.slice(1));
    case 'optional':
    case 'nullable':
    case 'default':
    case 'prefault':
      return findKnownKeys(def.innerType, path);
    case 'pipe':
      return findKnownKeys(def.in, path);
    default:
      return [];
  }
}

/**
 * Returns where a configuration stores its data. Validates nothing else, so the variables and files of other values need not exist. Throws
 * {@link ConfigError}.
 */
export function parseStorage(
  raw: unknown,
  env: Environment,
  folder = '.',
): Pick<Config, 'dataDir' | 'dynamodbEndpoint'> {
  const { dataDir, dynamodbEndpoint } = configSchema.shape;
  const given = Object(raw) as Record<string, unknown>;
  const values = { dataDir: given.dataDir, dynamodbEndpoint: given.dynamodbEndpoint };
  const result = z
    .object({ dataDir, dynamodbEndpoint })
    .safeParse(resolveReferences(values, { env, folder, onProblem: fail }, []), { reportInput: true });
  if (result.success) return { ...result.data, dataDir: resolve(folder, result.data.dataDir) };
  throw new ConfigError(`${formatIssue(result.error.issues[0], WHOLE)}.`, { cause: result.error });
}

function fail(problem: string): never {
  throw new ConfigError(problem);
}

/** Sources with which references are resolved. */
interface References {
  readonly env: Environment;
  readonly folder: string;
  /** Called for each variable or file that does not exist. */
  readonly onProblem: (problem: string) => void;
}

function resolveReferences(
  value: unknown,
  references: References,
  path: readonly (string | number)[],
): unknown {
  // It may be a URL that begins with file:.
  if (path.length === 1 && path[0] === '$schema') return value;
  const next = (entry: unknown, key: string | number) => resolveReferences(entry, references, [...path, key]);
  if (typeof value === 'string') return resolveReference(value, references, pathText(path, WHOLE));
  if (Array.isArray(value)) return value.map(next);
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, next(entry, key)]));
  }
  return value;
}

function resolveReference(value: string, { env, folder, onProblem }: References, field: string): string {
  if (value.startsWith('env:')) {
    const name = value.slice('env:'.length);
    if (name === '') {
      onProblem(`${field} must contain the name of an environment variable after env:.`);
      return value;
    }
    const found = env[name];
    if (found) return found;
    onProblem(
      `${field} refers to the environment variable ${name}, which is ${found === undefined ? 'not set' : 'empty'}.`,
    );
    return value;
  }
  if (!value.startsWith('file:')) return value;
  if (value === 'file:') {
    onProblem(`${field} must contain the path of a file after file:.`);
    return value;
  }
  const file = resolve(folder, value.slice('file:'.length));
  try {
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    onProblem(`${field} refers to the file ${file}, which can’t be read${formatCode(code)}.`);
    return value;
  }
}
