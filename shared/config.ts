/**
 * The configuration file of a self-hosted Jobwire: its schema, and one clear error message if it is invalid.
 */
import { createPrivateKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { type ParseError, parse, printParseErrorCode } from 'jsonc-parser';
import * as z from 'zod';
import { EventSettingsUpdate } from './accounts/event-settings.ts';
import { MAX_SLOTS_PER_KEY } from './api/waiting-limit.ts';
import { endpointFields } from './delivery/endpoint-input.ts';
import { DEFAULT_DISABLE_AFTER_SECONDS, DEFAULT_RETRY_SECONDS } from './delivery/health.ts';
import { checkUrl } from './delivery/outbound.ts';
import { checkEmail } from './notifications/email-address.ts';
import {
  corsOrigins,
  endpointId,
  formatIssue,
  id,
  pathText,
  typePatterns,
  webhookSecret,
} from './validation.ts';

/** Name of the document in error messages. */
const WHOLE = 'The configuration';

/** The URL of a server. */
export const httpUrl = z.url({
  protocol: /^https?$/,
  error: 'must be a URL that begins with http:// or https://',
});
const seconds = z.number('must be a number of seconds').positive('must be more than 0');
const STREAMS_RULE = `must be an integer from 1 to ${MAX_SLOTS_PER_KEY}`;
const text = (what: string) => z.string(`must be ${what}`).min(1, `must be ${what}`);

/** Base URL of links to this program: an origin, and a path prefix if there is one. Without a final slash. */
const publicUrl = httpUrl
  .refine((url) => !/[?#]/.test(url), 'must be without ? and #')
  .transform((url) => url.replace(/\/+$/, ''));

const PORT_RULE = 'must be a port number from 1 to 65535';

const FROM_RULE = 'the e-mail address that mails come from, such as orders@example.com';

/**
 * Channels of customer notifications: the mail server and the SMS provider. Each account's settings select
 * recipients and messages.
 */
const notifications = z.strictObject({
  from: z
    .string(`must be ${FROM_RULE}`)
    .refine((address) => checkEmail(address).kind === 'checked', `must be ${FROM_RULE}`),
  smtp: z
    .strictObject({
      host: text('the name of a mail server'),
      port: z.int(PORT_RULE).min(1, PORT_RULE).max(65_535, PORT_RULE).default(587),
      /**
       * TLS from the first byte. Otherwise STARTTLS if the server offers it; with a password, STARTTLS is
       * required, except on loopback.
       */
      secure: z.boolean('must be true or false').optional(),
      user: text('the user’s name at the mail server').optional(),
      password: text('the user’s password').optional(),
      dkim: z
        .strictObject({
          domain: text('the domain that mails are signed for'),
          selector: text('the name of the key in the domain’s DNS'),
          privateKey: z
            .string('must be the PEM of an RSA key')
            .refine(isRsaKey, 'must be the PEM of an RSA key'),
        })
        .optional(),
    })
    .superRefine(({ user, password }, context) => {
      const fail = (path: string, message: string): void =>
        context.addIssue({ code: 'custom', path: [path], message });
      if (user !== undefined && password === undefined) fail('password', 'must be given with user');
      if (user === undefined && password !== undefined) fail('user', 'must be given with password');
    })
    .transform((smtp) => ({ ...smtp, secure: smtp.secure ?? smtp.port === 465 })),
  /** SMS through SNS, with the AWS credentials of the environment. Absent: no SMS. */
  sms: z
    .strictObject({
      awsRegion: z
        .string('must be an AWS region')
        .regex(/^[a-z]{2}(-[a-z]+)+-\d$/, 'must be an AWS region such as eu-central-1'),
      endpoint: httpUrl.optional(),
      /** Default sender, for accounts without their own. */
      senderId: z
        .string('must be 1 to 11 letters and digits')
        .regex(/^(?=.*[A-Za-z])[A-Za-z0-9]{1,11}$/, 'must be 1 to 11 letters and digits, one letter at least')
        .optional(),
      /** Maximum for all accounts of a region together, in a calendar month (UTC). */
      monthlySegments: z.int('must be an integer').min(0, 'must be 0 or more').optional(),
    })
    .optional(),
});

function isRsaKey(pem: string): boolean {
  try {
    return createPrivateKey(pem).asymmetricKeyType === 'rsa';
  } catch {
    return false;
  }
}

const schema = z
  .strictObject({
    port: z
      .int('must be a port number from 0 to 65535')
      .min(0, 'must be a port number from 0 to 65535')
      .max(65_535, 'must be a port number from 0 to 65535')
      .default(4000),
    /** Default: loopback. */
    host: text('a host name or address to listen on').default('127.0.0.1'),
    dataDir: text('a folder').default('.jobwire'),
    /** The bootstrap key of the HTTP API. */
    apiKey: z.string('must be text').min(16, 'must be at least 16 characters').optional(),
    /**
     * External base URL of the HTTP API: links in e-mails and schema URLs of events begin with it. Default:
     * the address it listens on.
     */
    publicUrl: publicUrl.optional(),
    /** Absent: no customer notifications. */
    notifications: notifications.optional(),
    /** Maximum number of concurrent streams and waiting long polls of a key. Default: 100. */
    streamsPerKey: z.int(STREAMS_RULE).min(1, STREAMS_RULE).max(MAX_SLOTS_PER_KEY, STREAMS_RULE).default(100),
    /** Origins whose web pages may call the HTTP API from a browser. Default: none. */
    corsOrigins,
    /** An external DynamoDB, or a server that implements its API, instead of the SQLite file in `dataDir`. */
    dynamodbEndpoint: httpUrl.optional(),
    regions: z
      .record(
        id,
        z.strictObject({ baseUrl: httpUrl, authUrl: httpUrl, realm: text('the name of the realm') }),
        'must map each region’s name to its baseUrl, authUrl and realm',
      )
      .refine((regions) => Object.keys(regions).length > 0, 'must name at least one region'),
    accounts: z.array(
      z.strictObject({
        id,
        region: z.string('must be the name of a region'),
        clientId: text('the client id of the account’s credentials'),
        clientSecret: text('the client secret of the account’s credentials'),
        pollIntervalSeconds: seconds
          .min(1, 'must be at least 1')
          .max(86_400, 'must be at most 86400')
          .default(120),
        /** Settings of optional events. */
        events: EventSettingsUpdate.optional(),
      }),
      'must be a list of accounts',
    ),
    endpoints: z
      .array(
        z.strictObject({
          id: endpointId,
          url: z.string('must be a URL'),
          /** A list during a rotation, the new secret first: each request carries a signature of each. */
          secret: z.union(
            [webhookSecret, z.array(webhookSecret).min(1).max(4)],
            'must be "whsec_" and 24 to 64 random bytes in base64, or a list of 1 to 4 such secrets',
          ),
          /** Absent: all accounts. The other filters work the same way: an absent one restricts nothing. */
          accounts: z.array(z.string()).min(1, 'must name at least one account').optional(),
          types: typePatterns.optional(),
          orderGroups: endpointFields.orderGroups.optional(),
          origins: endpointFields.origins.optional(),
          jobFields: endpointFields.jobFields.optional(),
          headers: endpointFields.headers.optional(),
          concurrency: endpointFields.concurrency.optional(),
          ratePerSecond: endpointFields.ratePerSecond.optional(),
        }),
        'must be a list of endpoints',
      )
      .default([]),
    webhooks: z
      .strictObject({
        allowPrivateNetworks: z.boolean('must be true or false').default(false),
        retrySeconds: z.array(seconds).min(1, 'must hold at least one wait').default(DEFAULT_RETRY_SECONDS),
        /** An endpoint that only fails for this many days is disabled. */
        disableAfterDays: z
          .number('must be a number of days')
          .positive('must be more than 0')
          .default(DEFAULT_DISABLE_AFTER_SECONDS / 86_400),
      })
      .prefault({}),
    departures: z.strictObject({ confirmAfterSeconds: seconds.default(900) }).prefault({}),
    settling: z
      .strictObject({
        scheduleSeconds: z
          .array(seconds)
          .min(1, 'must hold at least one gap')
          .default([300, 1800, 7200, 21_600, 86_400]),
        days: z.number('must be a number of days').positive('must be more than 0').default(7),
      })
      .prefault({}),
  })
  .superRefine((config, context) => {
    const fail = (path: (string | number)[], message: string): void =>
      context.addIssue({ code: 'custom', path, message });
    if (config.notifications && config.publicUrl === undefined) {
      fail(['publicUrl'], 'must be given with notifications: links in e-mails begin with it');
    }
    const regions = Object.keys(config.regions);
    const accounts = new Set<string>();
    config.accounts.forEach((account, at) => {
      if (!regions.includes(account.region)) {
        fail(['accounts', at, 'region'], `must be one of the configured regions (${regions.join(', ')})`);
      }
      if (accounts.has(account.id))
        fail(['accounts', at, 'id'], `must be unique, and "${account.id}" is there twice`);
      accounts.add(account.id);
    });
    const endpoints = new Set<string>();
    config.endpoints.forEach((endpoint, at) => {
      if (endpoints.has(endpoint.id)) {
        fail(['endpoints', at, 'id'], `must be unique, and "${endpoint.id}" is there twice`);
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
            `must be the id of a configured account, and "${account}" is none`,
          );
        }
      });
    });
  });

/** A validated configuration with all defaults. */
export type Config = z.infer<typeof schema>;

/** The configuration is invalid. The message is one sentence that names the field and the accepted values. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/**
 * Parses the text of a configuration file: JSON, in which comments and trailing commas are allowed. Throws {@link ConfigError}
 * with line and column of the first syntax error.
 */
export function parseConfigText(path: string, text: string): unknown {
  const errors: ParseError[] = [];
  const raw: unknown = parse(text, errors, { allowTrailingComma: true });
  const [first] = errors;
  if (first === undefined) return raw;
  const lines = text.slice(0, first.offset).split('\n');
  const place = `line ${lines.length}, column ${(lines.at(-1) ?? '').length + 1}`;
  const problem = printParseErrorCode(first.error)
    .replace(/(?<=[a-z])[A-Z]/g, ' $&')
    .toLowerCase();
  throw new ConfigError(`${path} is not JSON: ${problem} at ${place}.`);
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Validates a configuration as read from JSON. Text values `env:NAME` are first replaced from the environment, and `file:PATH` with the
 * text of a file without its final line break. Relative paths start at `folder`, which is the folder of the configuration file (default:
 * the working directory). Throws {@link ConfigError} for the first error. Values are never quoted, because they may be secrets.
 */
export function parseConfig(raw: unknown, env: Environment, folder = '.'): Config {
  const result = schema.safeParse(resolveReferences(raw, env, folder, []), { reportInput: true });
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const more = result.error.issues.length - 1;
  const rest = more === 0 ? '' : ` (${more} more after that)`;
  throw new ConfigError(`${formatIssue(issue, WHOLE)}${rest}.`, { cause: result.error });
}

function resolveReferences(
  value: unknown,
  env: Environment,
  folder: string,
  path: readonly (string | number)[],
): unknown {
  const next = (entry: unknown, key: string | number) =>
    resolveReferences(entry, env, folder, [...path, key]);
  if (typeof value === 'string') return resolveReference(value, env, folder, pathText(path, WHOLE));
  if (Array.isArray(value)) return value.map(next);
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, next(entry, key)]));
  }
  return value;
}

function resolveReference(value: string, env: Environment, folder: string, field: string): string {
  if (value.startsWith('env:')) {
    const name = value.slice('env:'.length);
    const found = env[name];
    if (found) return found;
    throw new ConfigError(`${field} is to be read from the environment variable ${name}, which is not set.`);
  }
  if (!value.startsWith('file:')) return value;
  const file = resolve(folder, value.slice('file:'.length));
  try {
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  } catch (cause) {
    const { code = 'unknown error' } = cause as NodeJS.ErrnoException;
    throw new ConfigError(`${field} is to be read from the file ${file}, which can’t be read (${code}).`, {
      cause,
    });
  }
}
