/** What may be asked of an endpoint. Pure; every refusal is one sentence that names the field and says what would be right. */
import * as z from 'zod';
import { endpointId, id, typePatterns, webhookSecret } from '../checks.ts';
import { catalogue } from '../events/catalogue.ts';
import { refuseUrl } from './outbound.ts';
import { cursorsByAccount, instant } from './positions.ts';
import { isReservedHeader } from './webhook.ts';

/** Headers of its own that an endpoint may have, and their size in all. */
const MAX_HEADERS = 20;
const MAX_HEADER_BYTES = 4096;
const MAX_NAMES = 200;

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const PRINTABLE_ASCII = /^[\x20-\x7e]*$/;

/** The fields of the job in events that can be compared with a value. */
const { tracking: _, ...jobFieldShapes } = catalogue['job.created'].data.shape.job.shape;
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
    .max(MAX_NAMES, `must hold at most ${MAX_NAMES} names`);

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
  });

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
    const bytes = entries.reduce((sum, [name, value]) => sum + Buffer.byteLength(name) + value.length, 0);
    if (bytes > MAX_HEADER_BYTES) fail([], `must be at most ${MAX_HEADER_BYTES} bytes in all`);
  });

/** Which events: everything that a replay, too, can be restricted by. */
const filterFields = {
  accounts: z
    .array(z.string('must be the id of an account'), 'must be a list of accounts')
    .min(1, 'must name at least one account')
    .max(1000, 'must name at most 1000 accounts'),
  types: typePatterns.max(100, 'must name at most 100 types'),
  orderGroups: names('order groups'),
  origins: names('origins'),
  jobFields,
};

/** What an endpoint may be given, in the configuration file as well. */
export const endpointFields = {
  url: z.string('must be a URL').max(2000, 'must be at most 2000 characters'),
  ...filterFields,
  headers,
  concurrency: z
    .int('must be a whole number from 1 to 64')
    .min(1, 'must be a whole number from 1 to 64')
    .max(64, 'must be a whole number from 1 to 64'),
  ratePerSecond: z
    .number('must be a number from 0.1 to 1000')
    .min(0.1, 'must be a number from 0.1 to 1000')
    .max(1000, 'must be a number from 0.1 to 1000'),
  description: z.string('must be text').max(500, 'must be at most 500 characters'),
};

const start = z.union(
  [
    z.enum(['now', 'beginning']),
    z.strictObject({ at: instant }),
    z.strictObject({ cursors: cursorsByAccount }),
  ],
  'must be "now", "beginning", {"at": an instant} or {"cursors": {account: cursor}}',
);

/** A new endpoint. What is absent restricts nothing; an id and a secret are generated unless given; it starts now. */
export const NewEndpoint = z.strictObject({
  ...z.object(endpointFields).partial().shape,
  url: endpointFields.url,
  id: endpointId.optional(),
  secret: webhookSecret.optional(),
  start: start.optional(),
});
export type NewEndpoint = z.infer<typeof NewEndpoint>;

const nullable = <T extends z.ZodType>(shape: T) => shape.nullable().optional();

/** A change of an endpoint: what is absent stays, null takes a restriction away. `start` is for accounts that are added. */
export const EndpointChange = z.strictObject({
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
  start: start.optional(),
});
export type EndpointChange = z.infer<typeof EndpointChange>;

/** A new signing secret: generated unless given. 0 seconds: the former ones sign no more. */
export const Rotation = z.strictObject({
  secret: webhookSecret.optional(),
  keepOldSeconds: z
    .int('must be a whole number of seconds from 0 to 604800')
    .min(0, 'must be a whole number of seconds from 0 to 604800')
    .max(604_800, 'must be a whole number of seconds from 0 to 604800')
    .optional(),
});

const range = {
  at: z.strictObject({ at: instant }),
  cursors: z.strictObject({ cursors: cursorsByAccount }),
};

/** A replay: the events after `from` and up to `to`, or up to the heads as they are now. */
export const NewReplay = z.strictObject({
  id: id.optional(),
  from: z.union(
    [z.literal('beginning'), range.at, range.cursors],
    'must be "beginning", {"at": an instant} or {"cursors": {account: cursor}}',
  ),
  to: z
    .union(
      [z.literal('now'), range.at, range.cursors],
      'must be "now", {"at": an instant} or {"cursors": {account: cursor}}',
    )
    .optional(),
  filter: z.strictObject(filterFields, 'must be a filter').partial().optional(),
});

/** Why a URL can't be an endpoint's: one sentence. */
export function refuseEndpointUrl(url: string, allowPrivateNetworks: boolean): string | undefined {
  const refusal = refuseUrl(url, allowPrivateNetworks);
  return refusal && `url is refused: ${refusal.replace(/\.$/, '')}.`;
}
