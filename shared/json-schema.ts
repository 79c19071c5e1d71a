/** A JSON Schema, with the keywords that the generated documents use. */
export interface JsonSchema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly description?: string;
  readonly examples?: readonly unknown[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly items?: JsonSchema;
  readonly additionalProperties?: JsonSchema | boolean;
  readonly anyOf?: readonly JsonSchema[];
  readonly allOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly enum?: readonly unknown[];
  /** The known values of a text. Later versions can add others. */
  readonly 'x-extensible-enum'?: readonly string[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  /** Draft 7 only. */
  readonly definitions?: Readonly<Record<string, JsonSchema>>;
}

/**
 * Returns the same schema with a `keyword` that lists known values in place of each `enum` of several texts, so that a later version can
 * return further values (docs/api.md, section Versions).
 */
export function withOpenEnums<T>(
  schema: T,
  keyword: 'x-extensible-enum' | 'examples' = 'x-extensible-enum',
): T {
  const opened = (part: unknown): unknown => {
    if (typeof part !== 'object' || part === null) return part;
    if (Array.isArray(part)) return part.map(opened);
    const entries = Object.entries(part).map(([key, value]) => {
      const texts = key === 'enum' && Array.isArray(value) ? value.filter((one) => one !== null) : [];
      return texts.length > 1 ? [keyword, texts] : [key, opened(value)];
    });
    return Object.fromEntries(entries);
  };
  return opened(schema) as T;
}
