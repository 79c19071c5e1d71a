/** Reads and validates the input of a request: query, form and JSON body. */
import type { Context } from 'hono';
import * as z from 'zod';
import { formatIssue, pathText } from '../validation.ts';
import type { ApiEnv } from './env.ts';
import { problem } from './problems.ts';

const UTF_8 = new TextDecoder('utf-8', { fatal: true });

/** Returns the query parameters. A repeated one becomes an array, which the schemas reject. */
export function readQuery(c: Context): Record<string, string | string[]> {
  const entries = Object.entries(c.req.queries());
  return Object.fromEntries(
    entries.map(([name, values]) => [name, values.length === 1 ? (values[0] ?? '') : values]),
  );
}

/** Parses a multipart or URL-encoded form. Mail programs send either. */
export async function readForm<B extends z.ZodType>(
  c: Context<ApiEnv>,
  schema: B,
): Promise<z.output<B> | Response> {
  const fields = await c.req.parseBody().catch(() => ({}));
  const parsed = schema.safeParse(fields, { reportInput: true });
  return parsed.success ? parsed.data : invalidInput(c, 'invalid-body', parsed.error, schema);
}

/** Parses a JSON body. An absent body is parsed as an empty object. */
export async function readBody<B extends z.ZodType>(
  c: Context<ApiEnv>,
  schema: B,
): Promise<z.output<B> | Response> {
  if (!/^(identity)?$/i.test(c.req.header('content-encoding') ?? '')) {
    return problem(c, 'unsupported-media-type', { detail: 'Send the body without Content-Encoding.' });
  }
  let text: string;
  try {
    text = UTF_8.decode(await c.req.arrayBuffer());
  } catch {
    return problem(c, 'invalid-body', { detail: 'The body must be encoded in UTF-8.' });
  }
  const type = c.req.header('content-type') ?? '';
  if (text.trim() !== '' && !/^application\/([\w.+-]+\+)?json\s*(;|$)/i.test(type)) {
    return problem(c, 'unsupported-media-type', {
      detail: 'Send the body with Content-Type: application/json.',
    });
  }
  let value: unknown;
  try {
    value = text.trim() === '' ? {} : JSON.parse(text);
  } catch {
    return problem(c, 'invalid-body', { detail: 'The body must be JSON.' });
  }
  const odd = findUnsafeText(value);
  if (odd) return problem(c, 'invalid-body', odd);
  const parsed = schema.safeParse(value, { reportInput: true });
  return parsed.success ? parsed.data : invalidInput(c, 'invalid-body', parsed.error, schema);
}

/** A member of a JSON value, with the path to it. */
interface Member {
  readonly value: unknown;
  readonly name?: PropertyKey;
  readonly parent?: Member;
}

/**
 * Returns the first field that is invalid in any schema: a string with a lone surrogate, which no table can store, or a field
 * named `__proto__`. Not recursive, because a body may be nested deeply.
 */
function findUnsafeText(body: unknown): { readonly field: string; readonly detail: string } | undefined {
  const left: Member[] = [{ value: body }];
  for (let member = left.pop(); member; member = left.pop()) {
    const { name, value } = member;
    if (name === '__proto__') {
      const field = formatField(member);
      return { field, detail: `${field} is not accepted: no field may be named __proto__.` };
    }
    if ([name, value].some((text) => typeof text === 'string' && !text.isWellFormed())) {
      const field = formatField(member).toWellFormed();
      return { field, detail: `${field} must be well-formed Unicode: it contains a lone surrogate.` };
    }
    if (typeof value !== 'object' || value === null) continue;
    const isList = Array.isArray(value);
    const members = Object.entries(value).map(([key, inner]) => ({
      value: inner,
      name: isList ? Number(key) : key,
      parent: member,
    }));
    left.push(...members.reverse());
  }
  return undefined;
}

/** Formats the path of a field, limited to 10 levels and 100 characters. */
function formatField(member: Member): string {
  const path: PropertyKey[] = [];
  for (let at: Member | undefined = member; at?.name !== undefined; at = at.parent) path.unshift(at.name);
  return pathText(path.slice(0, 10), 'The body').slice(0, 100);
}

/** Returns the problem for the first invalid field. Values are not quoted, because they may be secrets. */
export function invalidInput(
  c: Context<ApiEnv>,
  kind: 'invalid-parameter' | 'invalid-body',
  error: z.ZodError,
  schema: z.ZodType,
): Response {
  const [issue] = error.issues;
  const whole = 'The body';
  if (issue?.code === 'unrecognized_keys') {
    const field = pathText([...issue.path, String(issue.keys[0]).slice(0, 100)], whole);
    const shape =
      issue.path.length === 0 && schema instanceof z.ZodObject ? Object.keys(schema.shape) : undefined;
    const known = shape && ` Known: ${shape.join(', ') || 'none'}.`;
    const what = kind === 'invalid-parameter' ? 'parameter' : 'field';
    return problem(c, kind, { field, detail: `${field} is not a known ${what}.${known ?? ''}` });
  }
  if (issue === undefined || issue.path.length === 0) {
    const own = issue?.code === 'custom' ? issue.message : 'must be a JSON object';
    return problem(c, kind, { detail: `${whole} ${own}.` });
  }
  const field = pathText(issue.path, whole);
  const isRepeated = kind === 'invalid-parameter' && Array.isArray(issue.input);
  const detail = isRepeated ? `${field} must be given once.` : `${formatIssue(issue, whole)}.`;
  return problem(c, kind, { field, detail });
}
