/**
 * Input validation of endpoints. Pure, and free of Node, because web pages validate with it too. Every error
 * message is one sentence that names the field and what it accepts. Only the server checks whether a URL
 * leads to the public Internet.
 */
import * as z from 'zod';
import { endpointId, existingId, id, instant, typePatterns, webhookSecret } from '../checks.ts';
import { catalogue } from '../events/catalogue.ts';

/** Maximum number of custom headers of an endpoint, and their maximum total size. */
const MAX_HEADERS = 20;
const MAX_HEADER_BYTES = 4096;
const MAX_NAMES = 200;

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const PRINTABLE_ASCII = /^[\x20-\x7e]*$/;

const { tracking: _, ...jobFieldShapes } = catalogue['job.created'].data.shape.job.shape;
/** The job fields in events that a filter can compare with a value, each with its accepted values. */
export const jobFieldValues: Readonly<Record<string, z.ZodType>> = jobFieldShapes;
const jobFieldNames = Object.keys(jobFieldShapes);

const names = (what: string) =>
  z
    .array(
      z
        .string(`must be the name of ${what}`)
        .min(1, 'must not be empty')
        .max(MAX_NAMES, `must be at most ${MAX_NAMES} characters`),
      `must be a list of names of ${what}`,
    )
    .min(1, 'must hold at least one name')
    .max(MAX_NAMES, `must hold at most ${MAX_NAMES} names`)
    .describe(`Only events of these ${what}.`);

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
        const message = `is not a field of the job in events; those are ${jobFieldNames.join(', ')}`;
        context.addIssue({ code: 'custom', path: [name], message });
      } else if (!shape.safeParse(value).success) {
        const message = 'must be a value that this field can have';
        context.addIssue({ code: 'custom', path: [name], message });
      }
    }
  })
  .describe(
    `Only events whose job has these values: fields of \`data.job\` (${jobFieldNames.join(', ')}), each equal to what is given. A field that the job does not have counts as null.`,
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

const headers = z
  .record(z.string(), z.string('must be text'), 'must map names of headers to values')
  .superRefine((fields, context) => {
    const fail = (path: string[], message: string) => context.addIssue({ code: 'custom', path, message });
    const entries = Object.entries(fields);
    const seen = new Set<string>();
    for (const [name, value] of entries) {
      if (!TOKEN.test(name)) fail([name], 'is not a name that a header can have');
      else if (isReservedHeader(name)) {
        fail([name], 'must be another header, for this one is set by Jobwire or belongs to the connection');
      } else if (seen.has(name.toLowerCase())) fail([name], 'must be there once');
      else if (!PRINTABLE_ASCII.test(value) || value !== value.trim()) {
        fail([name], 'must be printable ASCII without spaces around it');
      }
      seen.add(name.toLowerCase());
    }
    if (entries.length > MAX_HEADERS) fail([], `must hold at most ${MAX_HEADERS} headers`);
    const bytes = entries.reduce((sum, [name, value]) => sum + bytesOf(name) + value.length, 0);
    if (bytes > MAX_HEADER_BYTES) fail([], `must be at most ${MAX_HEADER_BYTES} bytes in all`);
  })
  .describe(
    `Headers that each request carries besides ours: at most ${MAX_HEADERS}, ${MAX_HEADER_BYTES} bytes in all. Their values are never shown again.`,
  );

/** Event selection: all filters, which also apply to a replay. */
const filterFields = {
  accounts: z
    .array(existingId, 'must be a list of accounts')
    .min(1, 'must name at least one account')
    .max(1000, 'must name at most 1000 accounts')
    .describe('Ids of the accounts whose events are wanted.'),
  types: typePatterns
    .max(100, 'must name at most 100 types')
    .describe('Only events of these types; a final `*` stands for the rest of a name: `job.*`.'),
  orderGroups: names('order groups'),
  origins: names('origins'),
  jobFields,
};

/** The fields of an endpoint, also for the configuration file. */
export const endpointFields = {
  url: z
    .string('must be a URL')
    .max(2000, 'must be at most 2000 characters')
    .describe('Where requests go: https, at an address that is public.'),
  ...filterFields,
  headers,
  concurrency: z
    .int('must be a whole number from 1 to 64')
    .min(1, 'must be a whole number from 1 to 64')
    .max(64, 'must be a whole number from 1 to 64')
    .describe('How many jobs are delivered side by side: 1 to 64, 16 unless told.'),
  ratePerSecond: z
    .number('must be a number from 0.1 to 1000')
    .min(0.1, 'must be a number from 0.1 to 1000')
    .max(1000, 'must be a number from 0.1 to 1000')
    .describe('How many requests a second at most; as many as it takes unless told.'),
  description: z
    .string('must be text')
    .max(500, 'must be at most 500 characters')
    .describe('What it is for, in your words.'),
};

/** A position in each account's log, as cursors. */
const cursorsByAccount = z
  .record(z.string(), z.string(), 'must map accounts to cursors')
  .refine((cursors) => Object.keys(cursors).length > 0, 'must name at least one account');

const range = {
  at: z.strictObject({ at: instant.describe('What happened at this instant or later.') }),
  cursors: z.strictObject({
    cursors: cursorsByAccount.describe(
      'By the id of the account, the cursor in its log: `{ "acme": "e1.17" }`.',
    ),
  }),
};

const start = z
  .union(
    [z.enum(['now', 'beginning']), range.at, range.cursors],
    'must be "now", "beginning", {"at": an instant} or {"cursors": {account: cursor}}',
  )
  .describe(
    'Where in the logs it begins. With cursors, each account after its own; accounts that are not named begin now.',
  );

const secret = webhookSecret.describe(
  'What requests are signed with (Standard Webhooks): `whsec_` and 24 to 64 random bytes in base64. Generated unless given.',
);

/**
 * A new endpoint. An absent filter restricts nothing. Id and secret default to generated values; the start
 * defaults to now.
 */
export const NewEndpoint = z.strictObject({
  ...z.object(endpointFields).partial().shape,
  url: endpointFields.url,
  id: endpointId
    .optional()
    .describe(
      'What it is known by, for good: lower-case letters, digits and hyphens. Generated unless given.',
    ),
  secret: secret.optional(),
  start: start.optional(),
});

const nullable = <T extends z.ZodType>(shape: T) => shape.nullable().optional();

/**
 * A change of an endpoint: absent fields stay, `null` removes a restriction. `start` applies to added
 * accounts.
 */
export const EndpointChange = z
  .strictObject({
    url: endpointFields.url.optional(),
    accounts: nullable(endpointFields.accounts),
    types: nullable(endpointFields.types),
    orderGroups: nullable(endpointFields.orderGroups),
    origins: nullable(endpointFields.origins),
    jobFields: nullable(endpointFields.jobFields),
    headers: nullable(endpointFields.headers),
    concurrency: nullable(endpointFields.concurrency),
    ratePerSecond: nullable(endpointFields.ratePerSecond),
    description: nullable(endpointFields.description),
    start: start.optional().describe('Where accounts begin that are added by this change; now unless told.'),
  })
  .meta({ id: 'EndpointChange' });
export type EndpointChange = z.infer<typeof EndpointChange>;

/** A new signing secret. Default: generated. With 0 seconds, former secrets stop signing at once. */
export const Rotation = z
  .strictObject({
    secret: secret.optional(),
    keepOldSeconds: z
      .int('must be a whole number of seconds from 0 to 604800')
      .min(0, 'must be a whole number of seconds from 0 to 604800')
      .max(604_800, 'must be a whole number of seconds from 0 to 604800')
      .optional()
      .describe('How long the former secrets sign along: a day unless told, 0 for not at all.'),
  })
  .meta({ id: 'SecretRotation' });

/** A replay: the events after `from` up to `to`, or up to the current heads. */
export const NewReplay = z
  .strictObject({
    id: id
      .optional()
      .describe(
        'What it is known by; generated unless given. One that is there already is finished and shown.',
      ),
    from: z
      .union(
        [z.literal('beginning'), range.at, range.cursors],
        'must be "beginning", {"at": an instant} or {"cursors": {account: cursor}}',
      )
      .describe('After which place: the earliest event there still is, an instant, or cursors.'),
    to: z
      .union(
        [z.literal('now'), range.at, range.cursors],
        'must be "now", {"at": an instant} or {"cursors": {account: cursor}}',
      )
      .optional()
      .describe(
        'Up to which place; where the logs stand now unless told. What is of the instant or later is left out.',
      ),
    filter: z
      .strictObject(filterFields, 'must be a filter')
      .partial()
      .optional()
      .describe('Which of the events that the endpoint gets; all of them unless told.'),
  })
  .meta({ id: 'NewReplay' });

const bytesOf = (text: string): number => new TextEncoder().encode(text).length;
