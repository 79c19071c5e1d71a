/**
 * Resources as responses show them. A schema declares both forms: the record that the program works with, and its representation in
 * JSON. In a record, times are epoch ms.
 */
import * as z from 'zod';

/** A time: epoch ms in a record, ISO 8601 in a response. */
export const timestamp = z.codec(z.iso.datetime(), z.number(), {
  decode: (text) => Date.parse(text),
  encode: (ms) => new Date(ms).toISOString(),
});

/** A time that can be absent. */
export const timestampOrNull = timestamp.nullable();

/** A number of things. */
export const count = z.int().min(0);

/** A text that can be absent. */
export const textOrNull = z.string().nullable();

/** A value that is not modified. */
export type Immutable<T> = T extends object ? { readonly [K in keyof T]: Immutable<T[K]> } : T;

/** The record that a schema declares. */
export type SchemaOutput<S extends z.ZodType> = Immutable<z.output<S>>;

const stored = new WeakSet<z.ZodType>();

/** Marks a schema whose values are returned as stored, with undeclared fields. */
export function asStored<S extends z.ZodType>(schema: S): S {
  stored.add(schema);
  return schema;
}

type Encode = (value: unknown) => unknown;

/**
 * Returns the function that converts records of a schema to their representation: times become ISO 8601, absent values `null`, and
 * undeclared fields are left out. Values are not validated.
 */
export function createEncoder(schema: z.ZodType | undefined): Encode {
  if (schema !== undefined && stored.has(schema)) return (value) => value;
  if (schema instanceof z.ZodCodec) return schema.def.reverseTransform as Encode;
  if (schema instanceof z.ZodOptional) {
    const encode = createEncoder(schema.unwrap() as z.ZodType);
    return (value) => (value === undefined ? undefined : encode(value));
  }
  if (schema instanceof z.ZodNullable) {
    const encode = createEncoder(schema.unwrap() as z.ZodType);
    return (value) => (value === undefined || value === null ? null : encode(value));
  }
  if (schema instanceof z.ZodArray) {
    const encode = createEncoder(schema.element as z.ZodType);
    return (value) => (value as readonly unknown[]).map(encode);
  }
  if (!(schema instanceof z.ZodObject) || schema.def.catchall instanceof z.ZodUnknown)
    return (value) => value;
  const fields = Object.entries<z.ZodType>(schema.shape).map(
    ([name, of]) => [name, createEncoder(of)] as const,
  );
  return (value) => {
    const record = value as { readonly [name: string]: unknown };
    const representation: Record<string, unknown> = {};
    for (const [name, encode] of fields) representation[name] = encode(record[name]);
    return representation;
  };
}
