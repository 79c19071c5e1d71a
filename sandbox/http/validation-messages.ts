// Converts validation issues to messages.

import type * as z from 'zod';

/** Formats an issue as a message: the field (`whole` if it concerns the whole value), and the accepted values. */
export function formatIssue(issue: z.core.$ZodIssue | undefined, whole: string): string {
  if (!issue) return `${whole} is not right.`;
  // For a union: the issue of the selected option.
  if (issue.code === 'invalid_union' && issue.errors.length > 0) {
    const inner = issue.errors.flat().find(({ path }) => path.length > 0);
    if (inner) return formatIssue({ ...inner, path: [...issue.path, ...inner.path] }, whole);
  }
  return `${formatPath(issue.path) || whole} ${formatExpectation(issue)}.`;
}

/** Formats the path of a field: `items[0].quantity`. */
export function formatPath(path: readonly PropertyKey[]): string {
  return path
    .map((part, at) => (typeof part === 'number' ? `[${part}]` : `${at > 0 ? '.' : ''}${String(part)}`))
    .join('');
}

function formatExpectation(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${KINDS_IN_WORDS[issue.expected] ?? issue.expected}`;
    case 'too_small':
      return `must be ${issue.inclusive ? 'at least' : 'more than'} ${issue.minimum}${issue.origin === 'array' ? ' long' : ''}`;
    case 'too_big':
      return `must be ${issue.inclusive ? 'at most' : 'less than'} ${issue.maximum}${issue.origin === 'array' ? ' long' : ''}`;
    case 'invalid_value':
      return `must be ${issue.values.length === 1 ? '' : 'one of: '}${issue.values.map(String).join(', ')}`;
    default:
      return /^(?:must|has|is|names) /.test(issue.message) ? issue.message : `is not right: ${issue.message}`;
  }
}

const KINDS_IN_WORDS: Readonly<Record<string, string>> = {
  int: 'an integer',
  number: 'a number',
  string: 'a text',
  boolean: 'true or false',
  array: 'a list',
  tuple: 'a list of two',
  object: 'an object',
};
