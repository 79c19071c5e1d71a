// Rewrites a JSON answer by its schema: other values where the contract allows them.

import * as z from 'zod';
import { timestamp } from '../../shared/ordering/contract/common.ts';
import { PLACEHOLDER } from './spelling.ts';

/**
 * What is rewritten. `record` identifies a job or another object with a number, `path` a place in it (`lines.0.gang`), and
 * `field` the same without positions (`lines.gang`).
 */
export interface Reshaping {
  /** Whether a nullable field is null. */
  isNull(record: string, path: string, field: string): boolean;
  /** Whether a field that is null is omitted. */
  isOmitted(record: string, path: string): boolean;
  /** The spelling of a timestamp to write. */
  timestamp(text: string): string;
  /** Whether a null timestamp is a placeholder. */
  isPlaceholder(record: string, path: string): boolean;
  /** Fields that have a status name, and the name to write. */
  readonly statusFields: readonly string[];
  status(name: string, record: string, path: string): string;
  /** The fields of a record to write. */
  record(fields: Fields): Fields;
}

type Fields = Record<string, unknown>;

/** Place of a value in an answer. */
interface Place {
  /** Undefined outside records: page numbers, links. */
  readonly record: string | undefined;
  readonly path: string;
  readonly field: string;
}

/** Rewrites a value that its schema describes. */
export function reshape(
  schema: z.core.$ZodType,
  value: unknown,
  how: Reshaping,
  place: Place = { record: undefined, path: '', field: '' },
): unknown {
  let type = schema;
  let nullable = false;
  while (type instanceof z.ZodNullable || type instanceof z.ZodOptional) {
    type = type.unwrap();
    nullable = true;
  }
  const { record, path, field } = place;
  const isTimestamp = type === timestamp;
  if (nullable && record !== undefined && (value === null || how.isNull(record, path, field))) {
    if (isTimestamp && how.isPlaceholder(record, path)) return how.timestamp(PLACEHOLDER);
    return how.isOmitted(record, path) ? undefined : null;
  }
  if (value === null || value === undefined) return value;
  if (isTimestamp) return how.timestamp(String(value));
  if (typeof value === 'string') {
    return record !== undefined && how.statusFields.includes(field) ? how.status(value, record, path) : value;
  }
  if (type instanceof z.ZodArray && Array.isArray(value)) {
    return value.map((entry, index) =>
      reshape(type.element, entry, how, { ...place, path: join(path, String(index)) }),
    );
  }
  if (type instanceof z.ZodObject) return reshapeObject(type, value as Fields, how, place);
  return value;
}

function reshapeObject(type: z.ZodObject, fields: Fields, how: Reshaping, place: Place): Fields {
  const id = place.record === undefined ? (fields.jobNumber ?? fields.id) : undefined;
  const inside = id === undefined ? place : { record: String(id), path: '', field: '' };
  const written: Fields = {};
  for (const [name, value] of Object.entries(fields)) {
    const schema = type.shape[name];
    const at = { ...inside, path: join(inside.path, name), field: join(inside.field, name) };
    written[name] = schema ? reshape(schema, value, how, at) : value;
  }
  return id === undefined ? written : how.record(written);
}

const join = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`);

/** A number from 0 up to but not including 1 that depends on the text only. */
export function drawShare(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}
