/** Our OpenAPI 3.1 document as OpenAPI 3.0.3, for generators that read no other. Webhooks, which 3.0 does not have, are left out. */

type Json = { readonly [name: string]: unknown };

/** Returns the document as OpenAPI 3.0.3. */
export function toOpenApi30(document: Json): Json {
  const { webhooks: _, openapi: __, ...rest } = document;
  return { openapi: '3.0.3', ...(convert(rest) as Json) };
}

/** Keys that hold values rather than schemas. */
const VALUES = new Set([
  'example',
  'examples',
  'default',
  'enum',
  'const',
  'x-problems',
  'x-extensible-enum',
]);

function convert(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(convert);
  if (typeof value !== 'object' || value === null) return value;
  // Beside `$ref` 3.0 has nothing.
  if ('$ref' in value && typeof value.$ref === 'string') return { $ref: value.$ref };
  const entries = Object.entries(value).map(([key, one]) => [key, VALUES.has(key) ? one : convert(one)]);
  const plain: Json = Object.fromEntries(entries);
  // `properties` has fields of any name, so a map of schemas is not treated as a schema.
  return isSchema(plain) ? toSchema30(plain) : plain;
}

function isSchema({ type, anyOf, const: constant, exclusiveMinimum, propertyNames }: Json): boolean {
  return (
    typeof type === 'string' ||
    Array.isArray(type) ||
    Array.isArray(anyOf) ||
    typeof constant === 'string' ||
    typeof constant === 'number' ||
    typeof constant === 'boolean' ||
    typeof exclusiveMinimum === 'number' ||
    typeof propertyNames === 'object'
  );
}

function toSchema30({
  type,
  const: constant,
  anyOf,
  exclusiveMinimum,
  exclusiveMaximum,
  propertyNames: _,
  examples: __,
  ...rest
}: Json): Json {
  const types = [type].flat().filter((one) => one !== undefined);
  const [one, ...others] = types.filter((name) => name !== 'null');
  const nullable = types.includes('null');
  return {
    ...(others.length > 0
      ? { oneOf: [one, ...others].map((name) => ({ type: name })) }
      : one
        ? { type: one }
        : {}),
    ...(nullable ? { nullable: true } : {}),
    ...(constant === undefined ? {} : { enum: [constant] }),
    ...(exclusiveMinimum === undefined ? {} : { minimum: exclusiveMinimum, exclusiveMinimum: true }),
    ...(exclusiveMaximum === undefined ? {} : { maximum: exclusiveMaximum, exclusiveMaximum: true }),
    ...(Array.isArray(anyOf) ? alternatives(anyOf as Json[]) : {}),
    ...rest,
  };
}

/**
 * `anyOf` with `null` becomes a nullable schema. Other alternatives exclude each other in our document, so `oneOf` is
 * equivalent.
 */
function alternatives(all: readonly Json[]): Json {
  const isNull = (one: Json) => one.nullable === true && one.type === undefined && !('allOf' in one);
  const others = all.filter((one) => !isNull(one));
  const nullable = others.length < all.length ? { nullable: true } : {};
  const [one, ...more] = others;
  if (one === undefined || more.length > 0) {
    // ogen distinguishes alternatives by their JSON type or by their fields, but not by both in one place.
    const objects = others.filter(({ type }) => type === 'object');
    const rest = others.filter((other) => !objects.includes(other));
    const nested = objects.length > 1 && rest.length > 0;
    return { oneOf: nested ? [...rest, { type: 'object', oneOf: objects }] : others, ...nullable };
  }
  return '$ref' in one ? { allOf: [one], ...nullable } : { ...one, ...nullable };
}
