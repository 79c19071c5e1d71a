/** Documents about the configuration file, generated from its schema: the JSON Schema for editors, and the reference in Markdown. */
import * as z from 'zod';
import { configSchema } from './config.ts';
import type { JsonSchema } from './json-schema.ts';

/** Values that stand for an environment variable or a file. */
const REFERENCE = { type: 'string', pattern: '^(env|file):.+' } as const;

/** Links in parentheses, and other links. In editors they lead nowhere. */
const LINKS = / \((\[[^\]]*\]\([^)]*\)(, )?)+\)/g;
const OTHER_LINKS = /\[([^\]]*)\]\([^)]*\)/g;

/**
 * Returns the JSON Schema of the configuration file. Each text can also be a reference to an environment variable or a file. Draft 7,
 * because editors support it best.
 */
export function configSchemaDocument(): object {
  const { $schema, title, description, ...schema } = schemaDocument(configSchema, {
    title: 'Jobwire configuration',
    description: 'Configuration file of a self-hosted Jobwire (docs/configuration.md).',
  });
  return { $schema, title, description, ...(withReferences(schema) as object) };
}

/** Returns the JSON Schema (draft 7) of a file, for editors. */
export function schemaDocument(
  schema: z.ZodType,
  about: { readonly title: string; readonly description: string },
): Readonly<Record<string, unknown>> {
  const { $schema, ...document } = z.toJSONSchema(schema, {
    ...{ io: 'input', target: 'draft-7' },
    override({ jsonSchema }) {
      if (jsonSchema.description)
        jsonSchema.description = jsonSchema.description.replace(LINKS, '').replace(OTHER_LINKS, '$1');
    },
  });
  return { $schema, ...about, ...document };
}

/** Returns a schema in which texts with constraints can also be references. Names of properties cannot. */
function withReferences(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withReferences);
  if (typeof schema !== 'object' || schema === null) return schema;
  const { type, format, pattern, minLength, maxLength, ...rest } = schema as Record<string, unknown>;
  if (type === 'string' && [format, pattern, minLength, maxLength].some((rule) => rule !== undefined)) {
    const { description, default: fallback, examples, ...others } = rest;
    const rules = Object.entries({ type, format, pattern, minLength, maxLength, ...others });
    const plain = Object.fromEntries(rules.filter(([, rule]) => rule !== undefined));
    const texts = Object.entries({ description, default: fallback, examples });
    return {
      ...Object.fromEntries(texts.filter(([, text]) => text !== undefined)),
      anyOf: [plain, REFERENCE],
    };
  }
  return Object.fromEntries(
    Object.entries(schema).map(([key, value]) => [
      key,
      ['propertyNames', 'default', 'examples'].includes(key) ? value : withReferences(value),
    ]),
  );
}

/**
 * Returns the reference of all keys as Markdown: a table for each object, with type, default, description and an example. `example` is a
 * configuration from which the examples are taken, if a key does not have its own.
 */
export function configReference(example: unknown, schema: z.ZodType = configSchema): string {
  const root = z.toJSONSchema(schema, { io: 'input', target: 'draft-7' }) as JsonSchema;
  const resolveRef = (schema: JsonSchema): JsonSchema => {
    const { allOf: [first] = [], $ref = first?.$ref, ...rest } = schema;
    return { ...($ref === undefined ? {} : root.definitions?.[$ref.split('/').at(-1) ?? '']), ...rest };
  };
  const lines: string[] = [];

  function describe(title: string, schema: JsonSchema, examples: readonly unknown[]): void {
    lines.push(`### ${title}`, '');
    lines.push('| key | type | default | description | example |', '|---|---|---|---|---|');
    const nested: Parameters<typeof describe>[] = [];
    for (const [key, value] of Object.entries(schema.properties ?? {})) {
      const property = resolveRef(value);
      const { text, fallback } = splitDefault(property);
      const isRequired = schema.required?.includes(key) === true;
      const found = examples.map((one) => (one as Record<string, unknown> | undefined)?.[key]);
      const given = found.filter((one) => one !== undefined);
      const path = title === TOP ? key : `${title.replaceAll('`', '')}.${key}`;
      const inner = findObject(property, path);
      if (inner) {
        const [name, of] = inner;
        const below = given.flatMap((one) => (of === property ? [one] : Object.values(one as object)));
        nested.push([`\`${name}\``, resolveRef(of), below]);
      }
      const shown = inner
        ? `[below](#${inner[0].replace(/[^\w-]/g, '').toLowerCase()})`
        : toCode(property.examples?.[0] ?? given[0]);
      const standard = isRequired ? '**required**' : fallback;
      lines.push(`| \`${key}\` | ${describeType(property)} | ${standard} | ${text} | ${shown} |`);
    }
    lines.push('');
    for (const one of nested) describe(...one);
  }

  describe(TOP, root, [example]);
  return lines.join('\n');
}

const TOP = 'Top level';

/** Returns path and schema of the objects that a property consists of: itself, its items, or its values by name. */
function findObject(property: JsonSchema, path: string): readonly [string, JsonSchema] | undefined {
  const { properties, items, additionalProperties: values } = property;
  if (properties) return [path, property];
  if (items?.properties) return [`${path}[]`, items];
  return typeof values === 'object' && values.properties ? [`${path}.NAME`, values] : undefined;
}

/** Separates the default from the description, which ends with it unless the schema states it. */
function splitDefault({ description = '', default: value }: JsonSchema): { text: string; fallback: string } {
  const [, text = description, words = ''] = /^(.*?) ?Default: (.*)\.$/s.exec(description) ?? [];
  const isObject = typeof value === 'object' && !Array.isArray(value);
  if (value === undefined) return { text, fallback: /^\d+$/.test(words) ? `\`${words}\`` : words };
  return { text, fallback: isObject ? 'see below' : toCode(value) };
}

function describeType(schema: JsonSchema, plural = false): string {
  const { type, anyOf, items, additionalProperties: values, properties } = schema;
  const s = plural ? 's' : '';
  if (anyOf) return anyOf.map((one) => describeType(one, plural)).join(' or ');
  if (type === 'array') {
    const entries = schema.minItems === 1 && schema.maxItems === undefined ? ', not empty' : '';
    const limits = entries || describeLimits(', ', schema.minItems, schema.maxItems, ' entries');
    return `list of ${describeType(items ?? {}, true)}${limits}`;
  }
  if (type === 'object' && !properties && typeof values === 'object')
    return `object${s} whose values are ${describeType(values, true)}`;
  if (type === 'string' && schema.format === 'uri') return `URL${s}`;
  if (type === 'string') {
    // A text that is not empty needs no mention.
    const least = schema.minLength === 1 ? undefined : schema.minLength;
    return `text${s}${describeLimits(' of ', least, schema.maxLength, ' characters')}`;
  }
  if (type === 'number' || type === 'integer') {
    if (schema.enum) return schema.enum.join(', ').replace(/, (?=\S+$)/, ' or ');
    if (schema.exclusiveMinimum !== undefined) return `${type}${s} above ${schema.exclusiveMinimum}`;
    const most = schema.maximum === Number.MAX_SAFE_INTEGER ? undefined : schema.maximum;
    return `${type}${s}${describeLimits(most === undefined ? ', ' : ' from ', schema.minimum, most)}`;
  }
  if (type === 'object') return `object${s}`;
  return [type ?? 'any value']
    .flat()
    .map((one) => TYPES[one] ?? one)
    .map((one) => (plural && /^\w+$/.test(one) ? `${one}s` : one))
    .join(' or ');
}

const TYPES: Readonly<Record<string, string>> = {
  boolean: '`true` or `false`',
  null: '`null`',
  string: 'text',
};

function describeLimits(before: string, least?: number, most?: number, unit = ''): string {
  if (least === undefined && most === undefined) return '';
  if (most === undefined) return `${before}at least ${least}${unit}`;
  return `${before}${least === undefined ? 'at most ' : `${least} to `}${most}${unit}`;
}

function toCode(value: unknown): string {
  if (value === undefined) return '';
  const json = JSON.stringify(value, null, 1).replace(/\n */g, ' ').replace(/\[ /g, '[').replace(/ \]/g, ']');
  return `\`${json.replaceAll('|', '\\|')}\``;
}
