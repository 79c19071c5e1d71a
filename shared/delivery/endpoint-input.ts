/**
 * Input validation of endpoints. Pure, and free of Node, because web pages validate with it too. Every error
 * message names the field and what it accepts. Only the server checks whether a URL
 * leads to the public Internet.
 */
import * as z from 'zod';
import { ENDPOINT_KINDS } from '../built-in-sinks.ts';
import { JobSummary } from '../events/catalogue.ts';
import {
  endpointId,
  existingId,
  flag,
  id,
  integerFrom,
  JOB_NUMBER_RULE,
  lineOrEmpty,
  nullableFields,
  timestamp,
  typePatterns,
  webhookSecret,
} from '../validation.ts';
import { MAX_LANES } from './lanes.ts';

/** Maximum number of custom headers of an endpoint, and their maximum total size. */
const MAX_HEADERS = 20;
const MAX_HEADER_BYTES = 4096;
const MAX_NAMES = 200;

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const PRINTABLE_ASCII = /^[\x20-\x7e]*$/;

const { tracking: _, ...jobFieldShapes } = JobSummary.shape;
/** The job fields in events that a filter can compare with a value, each with its accepted values. */
export const jobFieldValues: Readonly<Record<string, z.ZodType>> = jobFieldShapes;
const jobFieldNames = Object.keys(jobFieldShapes);

/** Returns the accepted values of a job field, as the end of an error message. */
function describeValues(shape: z.ZodType): string {
  const accepts = (value: unknown) => shape.safeParse(value).success;
  if (accepts('')) return 'must be text';
  if (accepts(true)) return 'must be true or false';
  return accepts(0.5) ? 'must be a number' : 'must be an integer';
}

const names = (what: string, description: string) =>
  z
    .array(
      z
        .string(`must be the name of ${what}`)
        .min(1, 'must not be empty')
        .max(MAX_NAMES, `must be at most ${MAX_NAMES} characters`),
      `must be a list of ${what} names`,
    )
    .min(1, 'must contain at least one name')
    .max(MAX_NAMES, `must contain at most ${MAX_NAMES} names`)
    .describe(description);

const jobFields = z
  .record(
    z.string(),
    z.union([z.string(), z.number(), z.boolean(), z.null()], 'must be text, a number, true, false or null'),
    'must map fields of the job to values',
  )
  .superRefine((fields, context) => {
    for (const [name, value] of Object.entries(fields)) {
      const shape = Object.hasOwn(jobFieldShapes, name)
        ? jobFieldShapes[name as keyof typeof jobFieldShapes]
        : undefined;
      if (!shape) {
        const message = `is not a job field of events; the job fields are ${jobFieldNames.join(', ')}`;
        context.addIssue({ code: 'custom', path: [name], message });
      } else if (!shape.safeParse(value).success) {
        context.addIssue({ code: 'custom', path: [name], message: describeValues(shape) });
      }
    }
  })
  .describe(
    `Only events of jobs with these field values. Fields: ${jobFieldNames.join(', ')}. An absent field counts as null.`,
  );

/**
 * Headers that Jobwire sets, and those that belong to the connection (RFC 9110, 7.6.1) or determine how the
 * body is read.
 */
const RESERVED_HEADERS = new Set([
  'accept-encoding',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'expect',
  'host',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'user-agent',
]);

/** Reports whether a custom header of an endpoint may not have this name. */
export function isReservedHeader(name: string): boolean {
  const lower = name.toLowerCase();
  return RESERVED_HEADERS.has(lower) || lower.startsWith('webhook-') || lower.startsWith('proxy-');
}

/** Custom headers of an endpoint. */
export const headers = z
  .record(z.string(), z.string('must be text'), 'must map names of headers to values')
  .superRefine((fields, context) => {
    const fail = (path: string[], message: string) => context.addIssue({ code: 'custom', path, message });
    const entries = Object.entries(fields);
    const seen = new Set<string>();
    for (const [name, value] of entries) {
      if (!TOKEN.test(name)) fail([name], "must contain only letters, digits and !#$%&'*+-.^_`|~");
      else if (isReservedHeader(name)) {
        fail([name], 'must not be a header that Jobwire or the connection sets');
      } else if (seen.has(name.toLowerCase())) fail([name], 'must be unique');
      else if (!PRINTABLE_ASCII.test(value) || value !== value.trim()) {
        fail([name], 'must be printable ASCII without leading or trailing spaces');
      }
      seen.add(name.toLowerCase());
    }
    if (entries.length > MAX_HEADERS) fail([], `must contain at most ${MAX_HEADERS} headers`);
    const bytes = entries.reduce((sum, [name, value]) => sum + countBytes(name) + value.length, 0);
    if (bytes > MAX_HEADER_BYTES) fail([], `must be at most ${MAX_HEADER_BYTES} bytes in total`);
  })
  .describe(
    `Custom headers of each request: at most ${MAX_HEADERS}, ${MAX_HEADER_BYTES} bytes in total. The values are write-only.`,
  );

/** Event selection: all filters, which also apply to a replay. */
const filterFields = {
  accounts: z
    .array(existingId, 'must be a list of accounts')
    .min(1, 'must name at least one account')
    .max(1000, 'must name at most 1000 accounts')
    .describe('Only events of these accounts (ids).'),
  types: typePatterns
    .max(100, 'must name at most 100 types')
    .describe('Only events of these types. A trailing `*` matches any suffix: `job.*`.'),
  orderGroups: names(
    'order groups',
    'Only events of jobs in these order groups, and the `order_group.*` events of these groups.',
  ),
  origins: names('origins', 'Only events of jobs with these origins (`originCode`).'),
  jobFields,
};

/** The fields of an endpoint, also for the configuration file. */
export const endpointFields = {
  url: z
    .string('must be a URL')
    .max(2000, 'must be at most 2000 characters')
    .describe(
      'URL that receives the requests. It must begin with `https` and have a public address, unless `webhooks.allowPrivateNetworks` is `true` (self-hosted). For a queue: its ARN or URL.',
    ),
  ...filterFields,
  headers,
  concurrency: integerFrom(1, MAX_LANES).describe(
    `Maximum number of jobs whose events are sent in parallel. Default: ${MAX_LANES}.`,
  ),
  ratePerSecond: z
    .number('must be a number from 0.1 to 1000')
    .min(0.1, 'must be a number from 0.1 to 1000')
    .max(1000, 'must be a number from 0.1 to 1000')
    .describe('Maximum number of requests per second. Default: unlimited.'),
  description: lineOrEmpty(500).describe('Description.'),
};

/** A position in each account's log, as cursors. */
const cursorsByAccount = z
  .record(z.string(), z.string(), 'must map accounts to cursors')
  .refine((cursors) => Object.keys(cursors).length > 0, 'must name at least one account');

const range = {
  at: z.strictObject({ at: timestamp.describe('Events at or after this time.') }),
  before: z.strictObject({ at: timestamp.describe('Events before this time.') }),
  cursors: z.strictObject({
    cursors: cursorsByAccount.describe('Cursor by account id: `{ "acme": "e1.17" }`.'),
  }),
};

const start = z
  .union(
    [z.enum(['now', 'beginning']), range.at, range.cursors],
    'must be "now", "beginning", {"at": timestamp} or {"cursors": {account: cursor}}',
  )
  .describe('Position at which deliveries start. With `cursors`, other accounts start now. Default: `now`.');

const secret = webhookSecret.describe(
  'Signing secret (Standard Webhooks): `whsec_` and 24 to 64 random bytes in base64. Default: generated.',
);

const KIND_RULE = 'must be webhook or sqs';

/**
 * A new endpoint. An absent filter restricts nothing. Id and secret default to generated values; the start
 * defaults to now.
 */
export const NewEndpoint = z.strictObject({
  ...z.object(endpointFields).partial().shape,
  url: endpointFields.url,
  kind: z
    .enum(ENDPOINT_KINDS, KIND_RULE)
    .optional()
    .describe(
      'Kind of endpoint. `sqs`: an SQS queue, without headers and secret. It requires an API key for all accounts. Cannot be changed. Default: `webhook`.',
    ),
  id: endpointId.optional().describe('Id of the endpoint. Cannot be changed. Default: generated.'),
  secret: secret.optional(),
  start: start.optional(),
});

/**
 * A change of an endpoint: absent fields stay, `null` removes a restriction. `start` applies to added
 * accounts.
 */
export const EndpointUpdate = z
  .strictObject({
    ...nullableFields(endpointFields),
    url: endpointFields.url.optional(),
    start: start
      .optional()
      .describe('Position at which the delivery of added accounts starts. Default: `now`.'),
  })
  .meta({ id: 'EndpointUpdate' });
export type EndpointUpdate = z.infer<typeof EndpointUpdate>;

/** A new signing secret. Default: generated. With 0 seconds, former secrets stop signing at once. */
export const Rotation = z
  .strictObject({
    secret: secret.optional(),
    gracePeriodSeconds: integerFrom(0, 604_800, 'must be an integer number of seconds from 0 to 604800')
      .optional()
      .describe('Validity of the previous secrets, in seconds. Default: 86400.'),
  })
  .meta({ id: 'SecretRotation' });

/** A replay: the events after `from` up to `to`, or up to the current heads. */
export const NewReplay = z
  .strictObject({
    id: id.optional().describe('Id of the replay. If it exists, it is returned. Default: generated.'),
    from: z
      .union(
        [z.literal('beginning'), range.at, range.cursors],
        'must be "beginning", {"at": timestamp} or {"cursors": {account: cursor}}',
      )
      .describe(
        'Start of the range: the earliest stored event, a time, or cursors. The event at a cursor is excluded.',
      ),
    to: z
      .union(
        [z.literal('now'), range.before, range.cursors],
        'must be "now", {"at": timestamp} or {"cursors": {account: cursor}}',
      )
      .optional()
      .describe(
        'End of the range: a time, or cursors. The event at a cursor is included. Default: the current end of the logs.',
      ),
    filter: z
      .strictObject(filterFields, 'must be a filter')
      .partial()
      .optional()
      .describe('Filter, in addition to that of the endpoint.'),
  })
  .meta({ id: 'NewReplay' });

const HTTP_STATUS_RULE = 'must be an HTTP status from 100 to 599';

/** Parked and dead events to send again. Absent filters select all of them. */
export const Redelivery = z
  .strictObject({
    states: z
      .array(z.enum(['parked', 'dead']), 'must be a list that contains parked, dead or both')
      .min(1, 'must contain parked or dead')
      .optional()
      .describe('States of the events. Default: `parked` and `dead`.'),
    filter: z
      .strictObject(
        {
          accounts: filterFields.accounts,
          types: filterFields.types,
          jobNumbers: z
            .array(z.int(JOB_NUMBER_RULE).positive(JOB_NUMBER_RULE), 'must be a list of job numbers')
            .min(1, 'must contain at least one job number')
            .max(MAX_NAMES, `must contain at most ${MAX_NAMES} job numbers`)
            .describe('Only events of these jobs.'),
          statuses: z
            .array(integerFrom(100, 599, HTTP_STATUS_RULE))
            .min(1, 'must contain at least one status')
            .max(100, 'must contain at most 100 statuses')
            .describe('Only events whose last rejection had one of these HTTP statuses.'),
          from: timestamp.describe('Only events parked at this time or later.'),
          to: timestamp.describe('Only events parked before this time.'),
        },
        'must be a filter',
      )
      .partial()
      .optional()
      .describe('Filter of the events. All fields must match. Default: all events.'),
    dryRun: flag.optional().describe('`true`: only count the events. Default: `false`.'),
  })
  .meta({ id: 'Redelivery' });
export type Redelivery = z.infer<typeof Redelivery>;

const countBytes = (text: string): number => new TextEncoder().encode(text).length;
