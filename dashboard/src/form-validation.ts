/** What is wrong with what stands in a form: by the schemas that the HTTP API checks with, at the fields of the form. */
import type * as z from 'zod';
import { pathText, sentenceOf as ruleOf } from '../../shared/validation.ts';

/** What is wrong, by the path of the field; what is about no field stands under an empty one. */
export type FieldErrors = Readonly<Record<string, string>>;

/** What of a body breaks the schema: the first rule for each field. */
export function validate(
  schema: z.ZodType,
  body: unknown,
  place: (path: readonly PropertyKey[], rule: string) => string,
): Record<string, string> {
  const result = schema.safeParse(body, { reportInput: true });
  const faults: Record<string, string> = {};
  for (const issue of result.error?.issues ?? []) {
    const sentence = ruleOf(issue, 'The form');
    const field = place(issue.path, sentence);
    faults[field] ??=
      field === '' ? `${sentence}.` : toFieldMessage(sentence, pathText(issue.path, 'The form'));
  }
  return faults;
}

/** The field of a form that a path of the body is about: as far as it leads to a value of its own. Empty: none. */
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

/** Sentences begin with the name of the field (`id must be text`); at the field they stand without it. */
export function toFieldMessage(sentence: string, field = ''): string {
  const rest = field !== '' && sentence.startsWith(`${field} `) ? sentence.slice(field.length + 1) : sentence;
  const text = /^[a-z]/.test(rest) ? `It ${rest}` : rest;
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
