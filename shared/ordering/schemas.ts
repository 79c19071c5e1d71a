/**
 * The fields that the tracker reads from the ordering API, and nothing else. The contract (`contract/`)
 * defines names and content of the fields. A name that it does not contain, or a different type, does not
 * compile. Only types are imported from there: shapes built from the contract's schemas would take three
 * times as long to create at each cold start, and 9 kB in four bundles.
 *
 * Tolerance of these shapes:
 * - **Missing and null are equal: both become null.** An empty list stays an empty list. (Rule 6 of
 *   docs/truth.md. `.nullable().default(null)` costs about half a microsecond a job more than passing
 *   `undefined`. A `.transform` would cost three times that.)
 * - Only the identity of a record is required: job number, account id, user id, and the frame of a page.
 *   All other fields may be missing, so that one absent flag cannot stop the tracking of a whole account.
 * - Unknown fields are accepted and dropped. Names of statuses, origins and processes are plain strings,
 *   never enumerations (rule 4). Dates stay the original text, and the code that compares them interprets
 *   them.
 * - If a value has the wrong type, the whole response is invalid: a guess would be a claim without an
 *   observation (rule 2).
 */
import * as z from 'zod';
import type * as account from './contract/account.ts';
import type * as jobs from './contract/jobs.ts';
import type * as lookups from './contract/lookups.ts';
import type * as tokens from './contract/tokens.ts';

const orNull = <T extends z.ZodType>(type: T) => z.nullable(type).default(null);
const text = orNull(z.string());
const flag = orNull(z.boolean());
const number = orNull(z.number());

/** A type of the contract as the tracker reads it: partial, and with nulls. */
type Read<T> = T extends readonly (infer E)[]
  ? Read<E>[]
  : T extends object
    ? { [K in keyof T]?: Read<NonNullable<T[K]>> | null }
    : T;

/** Returns a schema for some fields of an object of the contract. */
const reading =
  <C extends object>() =>
  <F extends { [K in keyof F]: K extends keyof C ? z.ZodType<Read<NonNullable<C[K]>> | null> : never }>(
    fields: F,
  ) =>
    z.object(fields);

const Permissions = reading<jobs.Permissions>()({
  /** Whether the job may still be amended. It locks once dispatched, closed, returned or cancelled. */
  canEdit: flag,
});

const Tracking = reading<jobs.Tracking>()({
  trackingNumber: text,
  /** `null` if the carrier provides none. It may be added later. */
  trackingLink: text,
});

/**
 * Job number. A value outside the range that can be stored violates the contract: the entry is unread (rule
 * 2).
 */
const JobNumber = z.int().min(1).max(999_999_999_999);

/**
 * One entry of the **list view**. Its status is `masterJobStatus`, which is never compared with a detail's
 * `jobStatus`.
 */
export const ActiveJob = reading<jobs.ActiveJob>()({
  jobNumber: JobNumber,
  masterJobStatus: text,
  permissions: orNull(Permissions),
  originCode: text,
  description: text,
  orderNumber: text,
  orderGroup: text,
  /** Position in the group, from 1. */
  orderGroupSequence: number,
  mustDate: flag,
  /** ISO 8601, with or without an offset. */
  dateDue: text,
  /** ISO 8601. Set once the job is dispatched. */
  dateOut: text,
  tracking: orNull(z.array(Tracking)),
});
/** A parsed entry of the list. */
export type ActiveJob = z.infer<typeof ActiveJob>;

/**
 * One page of the list view. The frame is required as a whole, and `items: null` is malformed (rule 2). The
 * crawl checks whether `pageNumber` and `pageSize` match its request.
 */
export const ActiveJobsPage = reading<jobs.ActiveJobsPage>()({
  items: z.array(ActiveJob),
  /** Number of jobs on all pages. */
  totalCount: z.int(),
  /** Page number, from 1. */
  pageNumber: z.int(),
  pageSize: z.int(),
  totalPages: z.int(),
  hasNextPage: z.boolean(),
});
/** A parsed page of the list. */
export type ActiveJobsPage = z.infer<typeof ActiveJobsPage>;

const JobLine = reading<jobs.JobLine>()({
  jobLineId: orNull(z.int()),
  /** From the same set as the job statuses. */
  jobLineStatus: text,
  comments: text,
  quantity: number,
});

const Location = reading<NonNullable<jobs.Job['location']>>()({
  /** IANA name. */
  timezone: text,
});

/**
 * The **detail view** of one job. Prices and the owner's id are omitted: no code here may rely on them
 * (rule 17).
 */
export const JobDetail = reading<jobs.Job>()({
  jobNumber: JobNumber,
  jobStatus: text,
  permissions: orNull(Permissions),
  isCancelable: flag,
  description: text,
  comments: text,
  orderNumber: text,
  orderGroup: text,
  /** Position in the group, from 1. */
  orderGroupSequence: number,
  mustDate: flag,
  /** ISO 8601, with or without an offset. Without one, it is local to `location.timezone`. */
  dateDue: text,
  /** Time of creation. */
  dateIn: text,
  /** Time of dispatch. `null` before. */
  dateOut: text,
  /** Set once invoiced. */
  invoiceNumber: text,
  location: orNull(Location),
  lines: orNull(z.array(JobLine)),
  /** Tracking entries of the detail view. */
  shippingAddresses: orNull(z.array(Tracking)),
});
/** A parsed detail. Every field except the number may be `null`. */
export type JobDetail = z.infer<typeof JobDetail>;

/**
 * Account of the credentials. Its id is pinned at the baseline and compared with every new token (rule 9).
 */
export const AccountProfile = reading<account.AccountProfile>()({ id: z.int() });
/** A parsed account. */
export type AccountProfile = z.infer<typeof AccountProfile>;

/** API user of the credentials: contact data and notification settings. */
export const AccountUser = reading<account.User>()({
  id: z.int(),
  firstName: text,
  lastName: text,
  emailAddress: text,
  mobile: text,
  active: flag,
  /** Whether the user wants e-mails at all. */
  receiveEmails: flag,
  /** Whether the user wants a text message when an order is dispatched. */
  textNotifyDispatch: flag,
});
/** A parsed user. */
export type AccountUser = z.infer<typeof AccountUser>;

/** A payment. Card data is masked in the contract. The tracker reads neither the expiry nor anything else of the card. */
export const PaymentTransaction = reading<account.PaymentTransaction>()({
  id: z.int().min(1),
  gatewayType: text,
  /** For example Completed, Pending, Failed, Cancelled. */
  transactionStatus: text,
  createdAt: text,
  completedAt: text,
  cardName: text,
  cardNumber: text,
  currencySettlement: text,
  amountSettlement: number,
  /** For example JOB, CUSTOMER. */
  merchantEntityType: text,
  merchantEntityId: orNull(z.int()),
});
/** A parsed payment. */
export type PaymentTransaction = z.infer<typeof PaymentTransaction>;

/** One page of payments. */
export const TransactionsPage = reading<z.infer<typeof account.TransactionsPage>>()({
  totalResults: z.int(),
  /** Page number, from 1. */
  currentPage: z.int(),
  hasNext: z.boolean(),
  entities: orNull(z.array(PaymentTransaction)),
});
/** A parsed page of payments. */
export type TransactionsPage = z.infer<typeof TransactionsPage>;

/** One entry of the status lookup. The set grows. A name that is not in it is still a status (rule 4). */
export const JobStatus = reading<lookups.JobStatus>()({ id: orNull(z.int()), name: text });
/** A parsed entry of the status lookup. */
export type JobStatus = z.infer<typeof JobStatus>;

/** The lookup in a response: a plain list. */
export const JobStatuses = z.array(JobStatus);

/**
 * Answer of the token endpoint. The characters of the token are validated because it is sent in a header: a
 * line break in it would otherwise cause an error that quotes the whole token.
 */
export const TokenResponse = reading<z.infer<typeof tokens.Token>>()({
  access_token: z.string().regex(/^[\x21-\x7e]+$/, 'not a usable token'),
  /** Lifetime in seconds. */
  expires_in: z.number().positive(),
});
/** A parsed answer of the token endpoint. */
export type TokenResponse = z.infer<typeof TokenResponse>;
