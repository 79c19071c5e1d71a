/**
 * What the tracker reads of the ordering service's answers, and nothing else. What a field is called and what is in it
 * is said by the contract (`contract/`): a name that it does not know, or a type that is not its own, does not compile.
 * Only types come from there: built out of the contract's schemas, these shapes would take three times as long to make
 * at each cold start, and 9 kB in four bundles.
 *
 * How tolerant these shapes are:
 * - **Missing and null are one thing: both come out as null.** An empty list stays an empty list. (Rule 6 of
 *   docs/truth.md; `.nullable().default(null)` costs about half a microsecond a job more than letting `undefined`
 *   through, a `.transform` would cost three times that.)
 * - Only what identifies a record is required: job number, account id, user id, and the frame of a page. Everything
 *   else may be missing, so that one absent flag cannot stop the tracking of a whole account.
 * - Unknown fields are accepted and dropped. Names of statuses, origins and processes are plain strings, never
 *   enumerations (rule 4). Dates stay the text that was sent: what they mean is decided where they are compared.
 * - A value of the wrong type is a failure of the whole answer: guessing would be a claim nobody observed (rule 2).
 */
import * as z from 'zod';
import type * as account from './contract/account.ts';
import type * as jobs from './contract/jobs.ts';
import type * as lookups from './contract/lookups.ts';
import type * as tokens from './contract/tokens.ts';

const said = <T extends z.ZodType>(type: T) => z.nullable(type).default(null);
const text = said(z.string());
const flag = said(z.boolean());
const number = said(z.number());

/** A type of the contract as it may be read: in part, and with nulls. */
type Read<T> = T extends readonly (infer E)[]
  ? Read<E>[]
  : T extends object
    ? { [K in keyof T]?: Read<NonNullable<T[K]>> | null }
    : T;

/** An object of the contract, of which these fields are read. */
const reading =
  <C extends object>() =>
  <F extends { [K in keyof F]: K extends keyof C ? z.ZodType<Read<NonNullable<C[K]>> | null> : never }>(
    fields: F,
  ) =>
    z.object(fields);

const Permissions = reading<jobs.Permissions>()({
  /** Whether the job may still be amended; it locks once dispatched, closed, returned or cancelled. */
  canEdit: flag,
  /** Why not, in words; null while editable. */
  lockedReason: text,
});

const Tracking = reading<jobs.Tracking>()({
  trackingNumber: text,
  /** Null when the carrier gives none; it may be filled in later. */
  trackingLink: text,
});

/** One entry of the **list view**. Its status is `masterJobStatus`, which is never compared with a detail's `jobStatus`. */
export const ActiveJob = reading<jobs.ActiveJob>()({
  jobNumber: z.int(),
  masterJobStatus: text,
  permissions: said(Permissions),
  originCode: text,
  description: text,
  orderNumber: text,
  orderGroup: text,
  /** Place in the group, from 1. */
  orderGroupSequence: number,
  mustDate: flag,
  /** ISO 8601, with or without an offset. */
  dateDue: text,
  /** ISO 8601; set once the job is dispatched. */
  dateOut: text,
  /** Days against the due date: negative early, positive late. Drifts by itself, so it is never diffed (rule 6). */
  shippedDaysToProcess: number,
  tracking: said(z.array(Tracking)),
});
/** A parsed entry of the list. */
export type ActiveJob = z.infer<typeof ActiveJob>;

/**
 * One page of the list view. The frame is required as a whole, and `items: null` is malformed (rule 2); whether
 * `pageNumber` and `pageSize` echo the request is for the crawl to judge, which knows what it asked.
 */
export const ActiveJobsPage = reading<jobs.ActiveJobsPage>()({
  items: z.array(ActiveJob),
  /** Jobs on all pages. */
  totalCount: z.int(),
  /** From 1. */
  pageNumber: z.int(),
  pageSize: z.int(),
  totalPages: z.int(),
  hasNextPage: z.boolean(),
});
/** A parsed page of the list. */
export type ActiveJobsPage = z.infer<typeof ActiveJobsPage>;

const JobLine = reading<jobs.JobLine>()({
  jobLineId: said(z.int()),
  /** From the same set as the job statuses. */
  jobLineStatus: text,
  processCode: text,
  assetSku: text,
  garment: text,
  description: text,
  customerReference: text,
  quantity: number,
});

const InvoiceFile = reading<NonNullable<jobs.Job['invoiceFile']>>()({ uri: text, uriExpires: text });

const Location = reading<NonNullable<jobs.Job['location']>>()({
  name: text,
  /** IANA name. */
  timezone: text,
});

/** The **detail view** of one job. Money and the owner's id are left out: nobody here may rely on them (rule 17). */
export const JobDetail = reading<jobs.Job>()({
  jobNumber: z.int(),
  jobStatus: text,
  permissions: said(Permissions),
  isCancelable: flag,
  description: text,
  comments: text,
  orderNumber: text,
  orderGroup: text,
  /** Place in the group, from 1. */
  orderGroupSequence: number,
  creator: text,
  mustDate: flag,
  /** ISO 8601, with or without an offset; without one it is local to `location.timezone`. */
  dateDue: text,
  /** When the job was created. */
  dateIn: text,
  /** When it was dispatched; null before. */
  dateOut: text,
  /** Words saying early, on time or late; for display only. */
  shippedDateStatus: text,
  /** Days against the due date: negative early, positive late. Drifts by itself, so it is never diffed (rule 6). */
  shippedDaysToProcess: number,
  /** Set once invoiced. */
  invoiceNumber: text,
  /** A link that expires: presence means something, the text of it does not (rule 6). */
  invoiceFile: said(InvoiceFile),
  location: said(Location),
  lines: said(z.array(JobLine)),
  /** The detail view's tracking entries. */
  shippingAddresses: said(z.array(Tracking)),
});
/** A parsed detail; every field but the number may be null. */
export type JobDetail = z.infer<typeof JobDetail>;

/** The account a credential belongs to. Its id is pinned at the baseline and compared with every new token (rule 9). */
export const AccountProfile = reading<account.AccountProfile>()({
  id: z.int(),
  name: text,
  currency: text,
});
/** A parsed account. */
export type AccountProfile = z.infer<typeof AccountProfile>;

/** The user a credential acts as: where to write to, and what this person agreed to receive. */
export const AccountUser = reading<account.User>()({
  id: z.int(),
  firstName: text,
  lastName: text,
  emailAddress: text,
  mobile: text,
  phone: text,
  active: flag,
  /** Wants e-mails at all. */
  receiveEmails: flag,
  /** Wants a text message when an order is dispatched. */
  textNotifyDispatch: flag,
});
/** A parsed user. */
export type AccountUser = z.infer<typeof AccountUser>;

/** One entry of the status lookup. The set grows; a name not in it is still a status (rule 4). */
export const JobStatus = reading<lookups.JobStatus>()({ id: said(z.int()), name: text });
/** A parsed entry of the status lookup. */
export type JobStatus = z.infer<typeof JobStatus>;

/** The lookup as it is answered: a plain list. */
export const JobStatuses = z.array(JobStatus);

/**
 * The token endpoint's answer. The token's characters are checked because it travels in a header: a line break in it
 * would otherwise surface as an error that quotes the whole token.
 */
export const TokenResponse = reading<z.infer<typeof tokens.Token>>()({
  access_token: z.string().regex(/^[\x21-\x7e]+$/, 'not a usable token'),
  /** Seconds. */
  expires_in: z.number().positive(),
});
/** A parsed answer of the token endpoint. */
export type TokenResponse = z.infer<typeof TokenResponse>;
