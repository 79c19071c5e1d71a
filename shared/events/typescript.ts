/**
 * The catalogue as TypeScript that stands by itself: what receivers import must need neither zod nor this repository. It is
 * read from the JSON Schemas, so it knows what they know and refuses what it can't say rather than guess.
 */
import { catalogue, dataSchemaOf, eventTypes } from './catalogue.ts';

/** The keywords of JSON Schema that zod writes and that have a meaning for types. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Schema | boolean;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
}

/** What only narrows values, or names and explains: types can't say it, comments do. */
const WITHOUT_A_TYPE = new Set(
  [
    '$schema',
    '$id',
    'title',
    'description',
    'format',
    'pattern',
    'minLength',
    'maxLength',
    'minItems',
    'maxItems',
  ]
    .concat(['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'propertyNames', 'default'])
    .concat([
      'contentEncoding',
      'multipleOf',
      'minProperties',
      'maxProperties',
      'discriminator',
      'x-extensible',
    ]),
);
const WITH_A_TYPE = new Set([
  '$ref',
  'type',
  'properties',
  'required',
  'additionalProperties',
  'items',
  'anyOf',
  'oneOf',
  'enum',
  'const',
]);

/** The source of `receive/events.ts`. Throws when the catalogue uses a shape that is not known here. */
export function typesOfEvents(): string {
  const { job, observed } = schemaOf('job.created').properties ?? {};
  const parcel = job?.properties?.tracking?.items;
  if (!job || !observed || !parcel) throw new Error('job.created lacks the shapes that have names.');
  const shapes: readonly Shape[] = [
    {
      name: 'TrackingEntry',
      schema: parcel,
      about: 'A parcel, identified by its number, or by its link if it has no number.',
    },
    {
      name: 'JobSummary',
      schema: job,
      about: 'The job after the change. Texts written by customers are untrusted: escape them for display.',
    },
    {
      name: 'Observed',
      schema: observed,
      about: 'When the change happened: after `since` and not later than `at`.',
    },
  ];
  const named = shapes.map((shape) => {
    const others = shapes.filter((other) => other !== shape);
    return `${comment(shape.about, '')}export interface ${shape.name} ${typeOf(shape.schema, others, '')}\n`;
  });
  const byType = eventTypes.map(
    (type) => `${comment(catalogue[type].when, '  ')}  '${type}': ${typeOf(schemaOf(type), shapes, '  ')};\n`,
  );
  return [
    '/** The types of all events. Made from shared/events/catalogue.ts by `npm run build`: not to be edited. */\n',
    ...named,
    '/** A value before and after. */\nexport interface Change<T> {\n  from: T;\n  to: T;\n}\n',
    `/** Every event type with the shape of its data. */\nexport interface EventDataByType {\n${byType.join('')}}\n`,
  ].join('\n');
}

/** A schema that stands in many events, and its name. */
interface Shape {
  readonly name: string;
  readonly schema: Schema;
  readonly about: string;
}

function schemaOf(type: string): Schema {
  return dataSchemaOf(type) as Schema;
}

/** Prints a schema as a TypeScript type. `shapes` are printed as their names, arrays as readonly if `readonly` is set. */
export function typeOf(schema: Schema, shapes: readonly Shape[], indent: string, readonly = false): string {
  const print = (one: Schema) => typeOf(one, shapes, indent, readonly);
  for (const keyword of Object.keys(schema)) {
    if (WITH_A_TYPE.has(keyword) || WITHOUT_A_TYPE.has(keyword)) continue;
    throw new Error(`The schema uses "${keyword}" of JSON Schema, which has no TypeScript here yet.`);
  }
  for (const { name, schema: shape } of shapes) {
    if (sameShape(schema, shape)) return name;
    if (sameShape(schema, { ...shape, required: undefined })) return `Partial<${name}>`;
  }
  if (schema.$ref !== undefined) return schema.$ref.replace(/^.*\//, '');
  if ('const' in schema) return literal(schema.const);
  if (schema.enum) return schema.enum.map(literal).join(' | ');
  const either = schema.anyOf ?? schema.oneOf;
  if (either) return unionOf(either.map(print));
  if (typeof schema.type === 'object') {
    return unionOf(schema.type.map((type) => print({ ...schema, type })));
  }
  switch (schema.type) {
    case 'string':
    case 'boolean':
    case 'number':
    case 'null':
      return schema.type;
    case 'integer':
      return 'number';
    case 'array': {
      const items = print(schema.items ?? {});
      if (items.includes(' | ')) return `${readonly ? 'Readonly' : ''}Array<${items}>`;
      return `${readonly ? 'readonly ' : ''}${items}[]`;
    }
    case 'object':
      return objectOf(schema, shapes, indent, readonly);
    case undefined:
      return 'unknown';
    default:
      throw new Error(`The schema uses the type "${schema.type}", which has no TypeScript here yet.`);
  }
}

function objectOf(schema: Schema, shapes: readonly Shape[], indent: string, readonly: boolean): string {
  const { properties = {}, required = [], additionalProperties: rest } = schema;
  const names = Object.keys(properties);
  const { from, to } = properties;
  const isChange = names.length === 2 && required.length === 2 && from && to && sameShape(from, to);
  if (isChange && shapes.length > 0) {
    return `Change<${typeOf(from, shapes, indent)}>`;
  }
  const inner = `${indent}  `;
  const fields = names.map((name) => {
    const field = properties[name] ?? {};
    const key = /^[A-Za-z_]\w*$/.test(name) ? name : JSON.stringify(name);
    const mark = required.includes(name) ? '' : '?';
    return `${comment(field.description, inner)}${inner}${key}${mark}: ${typeOf(field, shapes, inner, readonly)};\n`;
  });
  const others =
    typeof rest === 'object' ? typeOf(rest, shapes, inner, readonly) : rest === true ? 'unknown' : undefined;
  if (others !== undefined) {
    if (names.length === 0) return `Record<string, ${others}>`;
    fields.push(`${inner}[name: string]: unknown;\n`);
  }
  return fields.length === 0 ? 'Record<string, never>' : `{\n${fields.join('')}${indent}}`;
}

function unionOf(types: readonly string[]): string {
  return [...new Set(types)].join(' | ');
}

function literal(value: unknown): string {
  return typeof value === 'string' ? `'${value.replaceAll(/['\\]/g, '\\$&')}'` : JSON.stringify(value);
}

/** Whether two schemas say the same, whatever they are called. */
function sameShape(one: Schema, other: Schema): boolean {
  return meaningOf(one) === meaningOf(other);
}

function meaningOf(schema: Schema): string {
  return JSON.stringify({ ...schema, description: undefined, title: undefined });
}

/** Prints a documentation comment. */
export function comment(text: string | undefined, indent: string): string {
  return text === undefined ? '' : `${indent}/** ${text.replaceAll('*/', '*\\/')} */\n`;
}
