/**
 * Generates TypeScript types of the catalogue without dependencies, for receivers. They are generated from the JSON Schemas; a
 * keyword without a TypeScript equivalent is an error.
 */
import type { JsonSchema as Schema } from '../json-schema.ts';
import { catalogue, eventTypes, getDataSchema } from './catalogue.ts';
import { sharedSchemas } from './schemas.ts';

/** Keywords that do not affect types. */
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
  'x-extensible-enum',
  'const',
]);

/** Returns the source of `receive/events.ts`. Throws if the catalogue uses an unknown schema. */
export function typesOfEvents(): string {
  const { job, observed } = getSchema('job.created').properties ?? {};
  const parcel = job?.properties?.tracking?.items;
  if (!job || !observed || !parcel) throw new Error('job.created lacks the named schemas.');
  const describe = (component: string) => String(sharedSchemas()[component]?.description);
  const shapes: readonly Shape[] = [
    { name: 'TrackingEntry', schema: parcel, about: describe('TrackingEntry') },
    { name: 'JobSummary', schema: job, about: describe('Job') },
    { name: 'Observed', schema: observed, about: describe('Observed') },
  ];
  const named = shapes.map((shape) => {
    const others = shapes.filter((other) => other !== shape);
    return `${comment(shape.about, '')}export interface ${shape.name} ${toType(shape.schema, others, '')}\n`;
  });
  const byType = eventTypes.map(
    (type) =>
      `${comment(catalogue[type].when, '  ')}  '${type}': ${toType(getSchema(type), shapes, '  ')};\n`,
  );
  return [
    '/** The types of all events, generated from shared/events/catalogue.ts by `npm run types`. Not committed. */\n',
    ...named,
    '/** A value before and after. */\nexport interface Change<T> {\n  from: T;\n  to: T;\n}\n',
    `/** Every event type with the shape of its data. */\nexport interface EventDataByType {\n${byType.join('')}}\n`,
  ].join('\n');
}

/** A schema that is part of many events, and its name. */
interface Shape {
  readonly name: string;
  readonly schema: Schema;
  readonly about: string;
}

function getSchema(type: string): Schema {
  return getDataSchema(type) as Schema;
}

/** Prints a schema as a TypeScript type. `shapes` are printed as their names, arrays as readonly if `readonly` is set. */
export function toType(schema: Schema, shapes: readonly Shape[], indent: string, readonly = false): string {
  const print = (one: Schema) => toType(one, shapes, indent, readonly);
  for (const keyword of Object.keys(schema)) {
    if (WITH_A_TYPE.has(keyword) || WITHOUT_A_TYPE.has(keyword)) continue;
    throw new Error(`The schema uses "${keyword}" of JSON Schema, which has no TypeScript equivalent.`);
  }
  for (const { name, schema: shape } of shapes) {
    if (sameShape(schema, shape)) return name;
    if (sameShape(schema, { ...shape, required: undefined })) return `Partial<${name}>`;
  }
  if (schema.$ref !== undefined) return schema.$ref.replace(/^.*\//, '');
  if ('const' in schema) return literal(schema.const);
  if (schema.enum) return schema.enum.map(literal).join(' | ');
  const either = schema.anyOf ?? schema.oneOf;
  if (either) return toUnionType(either.map(print));
  if (typeof schema.type === 'object') {
    return toUnionType(schema.type.map((type) => print({ ...schema, type })));
  }
  switch (schema.type) {
    case 'string':
      return schema['x-extensible-enum']?.map(literal).join(' | ') ?? 'string';
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
      return toObjectType(schema, shapes, indent, readonly);
    case undefined:
      return 'unknown';
    default:
      throw new Error(`The schema uses the type "${schema.type}", which has no TypeScript equivalent.`);
  }
}

function toObjectType(schema: Schema, shapes: readonly Shape[], indent: string, readonly: boolean): string {
  const { properties = {}, required = [], additionalProperties: rest } = schema;
  const names = Object.keys(properties);
  const { from, to } = properties;
  const isChange = names.length === 2 && required.length === 2 && from && to && sameShape(from, to);
  if (isChange && shapes.length > 0) {
    return `Change<${toType(from, shapes, indent)}>`;
  }
  const inner = `${indent}  `;
  const fields = names.map((name) => {
    const field = properties[name] ?? {};
    const key = /^[A-Za-z_]\w*$/.test(name) ? name : JSON.stringify(name);
    const mark = required.includes(name) ? '' : '?';
    return `${comment(field.description, inner)}${inner}${key}${mark}: ${toType(field, shapes, inner, readonly)};\n`;
  });
  const others =
    typeof rest === 'object' ? toType(rest, shapes, inner, readonly) : rest === true ? 'unknown' : undefined;
  if (others !== undefined) {
    if (names.length === 0) return `Record<string, ${others}>`;
    fields.push(`${inner}[name: string]: unknown;\n`);
  }
  return fields.length === 0 ? 'Record<string, never>' : `{\n${fields.join('')}${indent}}`;
}

function toUnionType(types: readonly string[]): string {
  return [...new Set(types)].join(' | ');
}

function literal(value: unknown): string {
  return typeof value === 'string' ? `'${value.replaceAll(/['\\]/g, '\\$&')}'` : JSON.stringify(value);
}

/** Returns whether two schemas are equal, regardless of their names. */
function sameShape(one: Schema, other: Schema): boolean {
  return toComparable(one) === toComparable(other);
}

function toComparable(schema: Schema): string {
  return JSON.stringify({ ...schema, description: undefined, title: undefined });
}

/** Prints a documentation comment. */
export function comment(text: string | undefined, indent: string): string {
  return text === undefined ? '' : `${indent}/** ${text.replaceAll('*/', '*\\/')} */\n`;
}
