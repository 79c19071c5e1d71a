// Parsers of path and query parameters. The metadata `parameter` describes the accepted syntax in the OpenAPI document.

import * as z from 'zod';

/*
 * Where the contract is silent, the sandbox chose:
 *
 * - An invalid parameter results in 400 with `errors`, also a job number or user id that is not an integer. Unknown
 *   parameters are ignored.
 * - Sort columns and sort directions are case-insensitive. Null is the lowest value.
 * - A filter matches any part of the compared texts, unless stated otherwise below. It is case-insensitive, and blanks
 *   at its start and end are ignored.
 */

/** An integer. */
export const integer = z
  .string()
  .regex(/^-?\d{1,15}$/, 'The value is not an integer.')
  .transform(Number)
  .meta({ parameter: { type: 'integer' } });

/** An integer from 1. */
export const atLeastOne = integer
  .refine((value) => value >= 1, 'The value must be at least 1.')
  .meta({ parameter: { type: 'integer', minimum: 1 } });

/** The parameters of a list that is answered in pages. */
export const pageParameters = (defaultSize: number, mostPerPage: number) => ({
  page: atLeastOne.default(1),
  pageSize: atLeastOne
    .refine((value) => value <= mostPerPage, `The value must be at most ${mostPerPage}.`)
    .meta({ parameter: { type: 'integer', minimum: 1, maximum: mostPerPage } })
    .default(defaultSize),
});

/** A number in JSON syntax, within the range of 64-bit numbers. */
export const decimal = z
  .string()
  .regex(/^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i, 'The value is not a number.')
  .transform(Number)
  .refine(Number.isFinite, 'The value is not a number.')
  .meta({ parameter: { type: 'number' } });

/** `true` or `false`, in any case. */
export const flag = z
  .string()
  .toLowerCase()
  .pipe(z.enum(['true', 'false'], 'The value is not true or false.'))
  .transform((value) => value === 'true')
  .meta({ parameter: { type: 'boolean' } });

/** One of the names, case-insensitive, in its canonical case. */
export const enumParameter = <T extends string>(names: readonly T[]) =>
  z
    .string()
    .transform((text) => names.find((name) => name.toLowerCase() === text.toLowerCase()))
    .refine((name) => name !== undefined, `The value is not one of ${names.join(', ')}.`)
    .meta({ parameter: { type: 'string', enum: names } });

/** `Ascending`, `Descending`, `ASC` or `DESC`, in any case. */
export const direction = z
  .string()
  .toLowerCase()
  .pipe(z.enum(['ascending', 'asc', 'descending', 'desc'], 'The value is not a direction.'))
  .transform((value): 'ascending' | 'descending' => (value.startsWith('asc') ? 'ascending' : 'descending'))
  .meta({ parameter: { type: 'string', enum: ['Ascending', 'Descending', 'ASC', 'DESC'] } });

/** A comma-separated list; blanks around its parts and empty parts don't count. */
export const commaList = z
  .string()
  .transform((text) =>
    text
      .split(',')
      .map((part) => part.trim())
      .filter(Boolean),
  )
  .meta({ parameter: { type: 'array', items: { type: 'string' } } });
