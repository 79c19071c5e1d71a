/**
 * The schemas of events for the OpenAPI and AsyncAPI documents: one envelope per type, and the objects that many events share
 * as components of their own. Generated from the catalogue.
 */
import * as z from 'zod';
import { withOpenEnums } from '../json-schema.ts';
import { catalogue, type EventType, eventTypes } from './catalogue.ts';

/** A JSON Schema, or a part of one. */
export type JsonSchema = { readonly [name: string]: unknown };

/** Prefix of references to components. */
const COMPONENTS = '#/components/schemas/';

/** Whether an event is in the log of a region rather than an account's. */
export function isAboutRegion(type: EventType): boolean {
  return /^(upstream|endpoint|jobwire)\./.test(type);
}

/** The name of a type in generated code: `job.status_changed` is `JobStatusChanged`. */
export function pascalCase(type: string): string {
  return type.replace(/(?:^|[._])([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** A schema of a text. */
export const textSchema = (description: string, rest: JsonSchema = {}): JsonSchema => ({
  type: 'string',
  ...rest,
  description,
});

/** Converts a schema as an input, so that objects allow additional fields. Patterns of formats and the range of safe integers are left out. */
function toPlainSchema(schema: z.ZodType): JsonSchema {
  const { $schema: _, ...plain } = z.toJSONSchema(schema, {
    io: 'input',
    override({ jsonSchema }) {
      if (jsonSchema.format !== undefined) delete jsonSchema.pattern;
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
    },
  });
  return withOpenEnums(plain);
}

/** Objects that are part of many events. */
const SHARED = (() => {
  const { job, observed } = catalogue['job.created'].data().shape;
  const { status } = catalogue['job.status_changed'].data().shape.changes.shape;
  const { canEdit } = catalogue['job.locked'].data().shape.changes.shape;
  const { orderGroupSequence } = catalogue['job.updated'].data().shape.changes.shape;
  const shapes = [
    [
      'TrackingEntry',
      job.shape.tracking.element,
      'A parcel, identified by its number, or by its link if it has no number.',
    ],
    [
      'Job',
      job,
      'The job after the change. Texts written by customers are untrusted: escape them for display.',
    ],
    ['Observed', observed, 'The change happened after `since`, and at or before `at`.'],
    ['StringChange', status, 'Change of a text.'],
    ['BooleanChange', canEdit, 'Change of a boolean value.'],
    ['NumberChange', orderGroupSequence.unwrap(), 'Change of a number.'],
  ] as const;
  const plain = shapes.map(([name, schema]) => ({ name, plain: toPlainSchema(schema) }));
  return shapes.map(([name, , description], at) => ({
    name,
    plain: JSON.stringify(plain[at]?.plain),
    schema: {
      title: name,
      description,
      ...withReferences(
        plain[at]?.plain ?? {},
        (text) => plain.slice(0, at).find((one) => JSON.stringify(one.plain) === text)?.name,
      ),
    },
  }));
})();

/** Returns the components that {@link toEnvelopeSchema} refers to, by name. */
export function sharedSchemas(): Readonly<Record<string, JsonSchema>> {
  return Object.fromEntries(SHARED.map(({ name, schema }) => [name, schema]));
}

/** Returns the same schema with `$ref` for every part that has a name. */
function withReferences<T>(value: T, toComponentName: (plain: string) => string | undefined): T {
  const replaced = (part: unknown): unknown => {
    if (typeof part !== 'object' || part === null) return part;
    if (Array.isArray(part)) return part.map(replaced);
    const name = toComponentName(JSON.stringify(part));
    if (name !== undefined) return { $ref: `${COMPONENTS}${name}` };
    return Object.fromEntries(Object.entries(part).map(([key, one]) => [key, replaced(one)]));
  };
  return replaced(value) as T;
}

/** Returns the same schema with a title for each object in it that has none: generators name types by it. */
function withTitles(schema: JsonSchema, title: string): JsonSchema {
  const { properties, items, anyOf } = schema;
  const within = (part: unknown, name: string): unknown =>
    typeof part === 'object' && part !== null && !('$ref' in part)
      ? withTitles(part as JsonSchema, name)
      : part;
  return {
    ...(schema.type === 'object' ? { title } : {}),
    ...schema,
    ...(properties
      ? {
          properties: Object.fromEntries(
            Object.entries(properties).map(([name, one]) => [
              name,
              within(one, `${title}${pascalCase(name)}`),
            ]),
          ),
        }
      : {}),
    ...(items ? { items: within(items, `${title}Item`) } : {}),
    ...(Array.isArray(anyOf) ? { anyOf: anyOf.map((one) => within(one, title)) } : {}),
  };
}

/** Returns the schema of a type's `data`, with references to the shared schemas and a title for each other object. */
export function toDataSchema(type: EventType): JsonSchema {
  const data = withReferences(
    toPlainSchema(catalogue[type].data()),
    (plain) => SHARED.find((one) => one.plain === plain)?.name,
  );
  return withTitles(data, `${pascalCase(type)}Data`);
}

/** Returns the CloudEvents envelope of a type around `data`. Default: the schema of its data. */
export function toEnvelopeSchema(type: EventType, data: JsonSchema = toDataSchema(type)): JsonSchema {
  const subject = type.startsWith('job.')
    ? textSchema('The job.', { pattern: '^jobs/\\d+$' })
    : type.startsWith('order_group.')
      ? textSchema('The order group, with its name percent-encoded.', { pattern: '^order-groups/.+$' })
      : undefined;
  const log = isAboutRegion(type) ? '/regions/[^/]+' : '/regions/[^/]+/accounts/[^/]+';
  return {
    type: 'object',
    title: type,
    description: catalogue[type].when,
    properties: {
      specversion: { type: 'string', const: '1.0' },
      id: textSchema(
        type === 'jobwire.ping' ? 'Id of the ping.' : '`<account>.<epoch>.<sequence>`. Never reused.',
      ),
      source: textSchema(type === 'jobwire.ping' ? 'URI of the log of the region.' : 'URI of the log.', {
        ...{ format: 'uri-reference', pattern: `^(https?://.+)?${log}$` },
      }),
      type: { type: 'string', const: type },
      ...(subject && { subject }),
      time: textSchema(
        type === 'jobwire.ping'
          ? 'Time of the ping.'
          : 'For an observed change: time of the first response with the change.',
        { format: 'date-time' },
      ),
      sequence: textSchema(
        type === 'jobwire.ping' ? '20 zeros.' : 'Sequence number in the log. Can be compared as text.',
        {
          pattern: '^\\d{20}$',
        },
      ),
      dataschema: textSchema('URL of the schema of `data`.', { format: 'uri' }),
      datacontenttype: { type: 'string', const: 'application/json' },
      data,
    },
    required: [
      ...['specversion', 'id', 'source', 'type', ...(subject ? ['subject'] : [])],
      ...['time', 'sequence', 'dataschema', 'datacontenttype', 'data'],
    ],
  };
}

/** Returns the components of OpenAPI documents that describe events: shared objects, data and envelope of each type, and `Event`. */
export function eventComponents(): Readonly<Record<string, JsonSchema>> {
  const toSchemaName = (type: EventType) => `${pascalCase(type)}Event`;
  const ref = (name: string) => ({ $ref: `${COMPONENTS}${name}` });
  return {
    ...sharedSchemas(),
    ...Object.fromEntries(
      eventTypes.flatMap((type) => {
        const data = `${pascalCase(type)}Data`;
        return [
          [data, toDataSchema(type)],
          [toSchemaName(type), { ...toEnvelopeSchema(type, ref(data)), title: toSchemaName(type) }],
        ];
      }),
    ),
    Event: {
      description:
        'An event as a CloudEvents 1.0 envelope. `type` determines the fields of `data`. New types can be added at any time. Ignore types that your program does not know.',
      oneOf: eventTypes.map((type) => ref(toSchemaName(type))),
      discriminator: {
        propertyName: 'type',
        mapping: Object.fromEntries(eventTypes.map((type) => [type, `${COMPONENTS}${toSchemaName(type)}`])),
      },
      'x-extensible': true,
    },
  };
}
