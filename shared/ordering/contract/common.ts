/**
 * The ordering API's contract as schemas: every resource with exactly its documented fields. The sandbox
 * answers and describes itself with them. The shapes that the tracker reads are derived from them, with
 * more tolerance (`../schemas.ts`).
 */
import * as z from 'zod';

/** A text, or `null`. */
export const text = z.string().nullable();

/** An ISO 8601 timestamp or day, as text. */
export const timestamp = z.string().describe('ISO 8601.');

/** Money in the account's currency. */
export const money = z.number().describe("In the account's currency.");

/** Problem document (RFC 7807), with `errors` (messages by field) if the request was invalid. */
export const Problem = z
  .strictObject({
    type: text.describe('URI of the problem type.'),
    title: text.describe('The same for every occurrence of the type.'),
    status: z.int().nullable().describe('The HTTP status.'),
    detail: text.describe('What went wrong on this request.'),
    instance: text.describe('The path.'),
    errors: z
      .record(z.string(), z.array(z.string()))
      .nullable()
      .optional()
      .describe('Messages by field, when the request was not valid.'),
  })
  .meta({ id: 'ProblemDetails' });

/** Failed validation of a job. */
export const ValidationFailure = z
  .strictObject({
    isValid: z.literal(false),
    validationMessages: z.array(z.strictObject({ errorCode: z.string(), message: z.string() })).min(1),
  })
  .meta({ id: 'ValidationFailure' });
/** Body of a validation failure. */
export type ValidationFailure = z.infer<typeof ValidationFailure>;

/** A range of quantities and its price. */
export const PriceBand = z
  .strictObject({
    from: z
      .int()
      .describe('Lowest quantity of the band. That of the first band is the least that can be ordered.'),
    to: z.int().nullable().describe('Highest quantity; null on the top band.'),
    unitPrice: z.number().describe("Per unit, at the account's tier."),
  })
  .meta({ id: 'PriceBand' });
/** A price band in a response. */
export type PriceBand = z.infer<typeof PriceBand>;

/** Envelope A: lists of assets, users and transactions. */
export function listSchema<T extends z.ZodType>(entity: T, id: string) {
  return z
    .strictObject({
      pageSize: z.int().describe('As requested.'),
      returnedResults: z.int().describe('Records on this page.'),
      totalResults: z.int().describe('Records on all pages.'),
      totalPages: z.int(),
      currentPage: z.int().describe('From 1.'),
      hasNext: z.boolean(),
      hasPrevious: z.boolean(),
      filter: text.describe('The filter that was applied; null without one.'),
      nextUrl: text.describe('Null on the last page.'),
      previousUrl: text.describe('Null on the first page.'),
      entities: z.array(entity).nullable(),
    })
    .meta({ id });
}

/** Envelope B: the list of active jobs. */
export function pageSchema<T extends z.ZodType>(item: T, id: string) {
  return z
    .strictObject({
      items: z.array(item),
      totalCount: z.int(),
      pageNumber: z.int().describe('From 1.'),
      pageSize: z.int(),
      totalPages: z.int(),
      hasPreviousPage: z.boolean(),
      hasNextPage: z.boolean(),
    })
    .meta({ id });
}
