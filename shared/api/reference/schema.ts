/** JSON Schemas in the API reference: types and constraints as HTML, and examples. */
import { escapeHtml } from '../../html.ts';
import type { JsonSchema } from '../../json-schema.ts';
import { mapValues } from '../../map-values.ts';
import { SCHEMAS_PAGE } from './pages.ts';

/** Named schemas, and the examples of some of them. */
export interface Named {
  readonly schemas: Readonly<Record<string, JsonSchema>>;
  readonly examples: ReadonlyMap<string, unknown>;
}

const DATE_TIME = '2026-03-02T16:04:11.250Z';
const samples: Readonly<Record<string, string>> = {
  'date-time': DATE_TIME,
  date: DATE_TIME.slice(0, 10),
  uri: 'https://example.com',
};

/** Escapes a value for HTML elements and attributes. */
export const esc = (value: unknown) => escapeHtml(String(value));
export const code = (value: unknown) =>
  `<code>${esc(typeof value === 'string' ? value : JSON.stringify(value))}</code>`;
export const link = (href: string, html: string) => `<a href="${esc(href)}">${html}</a>`;
/** Returns the name of a referenced schema. */
export const getRefName = (ref: string) => ref.split('/').at(-1) ?? '';

/** Returns the link of a named schema. */
export function toSchemaHref(name: string): string {
  return `/docs/${SCHEMAS_PAGE}#${name}`;
}

/** Returns the type of a schema as HTML. Named schemas are links. */
export function renderType(schema: JsonSchema): string {
  const { $ref, type, format, items, additionalProperties: map, anyOf, oneOf } = schema;
  if ($ref !== undefined) return link(toSchemaHref(getRefName($ref)), esc(getRefName($ref)));
  const parts = anyOf ?? oneOf;
  if (parts) return [...new Set(parts.map(renderType))].join(' or ');
  const types = [type ?? 'any value'].flat().map((one) => {
    if (one === 'array' && items) return `array of ${inBrackets(items)}`;
    if (one === 'object' && typeof map === 'object' && Object.keys(map).length > 0)
      return `map of ${inBrackets(map)}`;
    const isNumber = one === 'integer' || one === 'number';
    return `${esc(one)}${format && one !== 'null' ? ` (${esc(format)})` : ''}${isNumber ? renderBound(schema) : ''}`;
  });
  return types.join(' or ');
}

/** Renders the limit of a number that has only a lower limit. */
function renderBound({ minimum, maximum, exclusiveMinimum }: JsonSchema): string {
  if (exclusiveMinimum !== undefined) return ` &gt; ${exclusiveMinimum}`;
  return minimum === undefined || maximum !== undefined ? '' : ` ≥ ${minimum}`;
}

function inBrackets(schema: JsonSchema): string {
  const type = renderType(schema);
  return type.includes(' or ') ? `(${type})` : type;
}

/** Returns the constraints of a schema as HTML sentences. */
export function renderLimits(schema: JsonSchema): string[] {
  const { items, additionalProperties: map, minimum, maximum, pattern } = schema;
  const range = (from: number | undefined, to: number | undefined, unit: string) => {
    if (from === undefined && to === undefined) return [];
    if (from === to) return [`${from}${unit}.`];
    if (to === undefined) return [`At least ${from}${from === 1 ? unit.replace(/s$/, '') : unit}.`];
    return [from === undefined ? `At most ${to}${unit}.` : `${from} to ${to}${unit}.`];
  };
  const values = 'const' in schema ? [schema.const] : (schema.enum ?? []);
  const known = schema['x-extensible-enum'] ?? [];
  return [
    ...(values.length > 0
      ? [`${values.length > 1 ? 'Values' : 'Value'}: ${values.map(code).join(', ')}.`]
      : []),
    ...(known.length > 0 ? [`Known values: ${known.map(code).join(', ')}.`] : []),
    ...(schema.default === undefined ? [] : [`Default: ${code(schema.default)}.`]),
    ...(maximum === undefined ? [] : range(minimum, maximum, '')),
    ...range(schema.minLength, schema.maxLength, ' characters'),
    ...range(schema.minItems, schema.maxItems, ' items'),
    ...range(schema.minProperties, schema.maxProperties, ' fields'),
    ...(pattern === undefined ? [] : [`Pattern: ${code(pattern)}.`]),
    ...(items ? renderLimits(items).map((limit) => `Each item: ${limit}`) : []),
    ...(schema.anyOf ?? []).flatMap(renderLimits),
    ...(typeof map === 'object' ? renderLimits(map).map((limit) => `Each value: ${limit}`) : []),
  ];
}

/** Returns an example: that of the document, or one that is derived from the schema. */
export function toSample(schema: JsonSchema, named: Named, within: readonly string[] = []): unknown {
  const { $ref, type, items, properties, additionalProperties: map, minimum, exclusiveMinimum } = schema;
  if ($ref !== undefined) {
    const name = getRefName($ref);
    const target = named.schemas[name];
    if (!target || within.includes(name)) return {};
    return named.examples.get(name) ?? toSample(target, named, [...within, name]);
  }
  const [first] = schema.anyOf ?? schema.oneOf ?? [];
  if (first) return toSample(first, named, within);
  const given = schema.default ?? schema.const ?? (schema['x-extensible-enum'] ?? schema.enum)?.[0];
  if (given !== undefined) return given;
  switch ([type].flat()[0]) {
    case 'object':
      if (typeof map === 'object' && Object.keys(map).length > 0)
        return { key: toSample(map, named, within) };
      return mapValues(properties ?? {}, (one) => toSample(one, named, within));
    case 'array':
      return items ? [toSample(items, named, within)] : [];
    case 'integer':
    case 'number':
      return minimum ?? (exclusiveMinimum ?? 0) + 1;
    case 'boolean':
      return true;
    case 'null':
      return null;
    default:
      return samples[schema.format ?? ''] ?? 'string';
  }
}
