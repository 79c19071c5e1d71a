/** Validates form values with the schemas of the HTTP API, and maps each error to its form field. */
import type * as z from 'zod';
import { formatIssue as formatRule, pathText } from '../../shared/validation.ts';

/** Error messages by field path. Key `''`: an error of the form as a whole. */
export type FieldErrors = Readonly<Record<string, string>>;

/** Validates a request body. Returns the first error of each field; `toField` maps a path of the body to a form field. */
export function validate(
  schema: z.ZodType,
  body: unknown,
  toField: (path: readonly PropertyKey[], rule: string) => string,
): Record<string, string> {
  const result = schema.safeParse(body, { reportInput: true });
  const errors: Record<string, string> = {};
  for (const issue of result.error?.issues ?? []) {
    const rule = formatRule(issue, 'The form');
    const field = toField(issue.path, rule);
    errors[field] ??= field === '' ? `${rule}.` : toFieldMessage(rule, pathText(issue.path, 'The form'));
  }
  return errors;
}

/** Returns the path of the form field for a path of the body: its longest prefix with a value, `''` if there is none. */
export function toFieldPath(values: object, path: readonly PropertyKey[]): string {
  const parts: string[] = [];
  let at: unknown = values;
  for (const part of path) {
    if (typeof at !== 'object' || at === null || !(part in at)) break;
    const next = (at as Record<PropertyKey, unknown>)[part];
    if (Array.isArray(at) && typeof next !== 'object') break;
    parts.push(String(part));
    at = next;
  }
  return parts.join('.');
}

/** Replaces the field name at the start of an error message (`id must be text`) with "It", for display below the field. */
export function toFieldMessage(message: string, field = ''): string {
  const rest = field !== '' && message.startsWith(`${field} `) ? message.slice(field.length + 1) : message;
  const text = /^[a-z]/.test(rest) ? `It ${rest}` : rest;
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
