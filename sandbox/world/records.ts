// Data types of the sandbox's world: jobs, users, credentials, and the interfaces of accounts and worlds that lower modules use.

import type { User } from '../../shared/ordering/contract/account.ts';
import type { DeliveryAddress } from '../../shared/ordering/contract/candidates.ts';
import type { ActiveJob, Job, JobLine as JobLineDto, Tracking } from '../../shared/ordering/contract/jobs.ts';
import type { JobStatus, Location, RegionCode, Stage } from './regions.ts';

/** A parcel; the link is null if the carrier has none. */
export type TrackingEntry = Tracking;

/** A line of a job. `image` is the name of its preview, listed as a link that changes with time; null without a preview. */
export interface JobLine extends Omit<JobLineDto, 'imageUrl'> {
  image: string | null;
  /** Form of the order: `PriceCode`, `Asset` or `Stock`, with its code. Null if the line was not ordered. */
  itemType: string | null;
  code: string | null;
  /** Where its artwork is to be fetched; null when none was named. */
  artworkUrl: string | null;
  /** The artwork is missing and has no URL. */
  needsArtwork: boolean;
  /** Number of attempts to fetch the artwork from `artworkUrl`. */
  artworkTries: number;
  /** Error message of the last attempt; null if it succeeded, and before the first. */
  artworkReason: string | null;
}

/** Costs of a job in the account's currency: `total` is lines, setups and resets minus the discount, plus tax. */
export interface JobCosts {
  lines: number;
  setup: number;
  reset: number;
  discount: number;
  tax: number;
  total: number;
}

/** Phase of a job. Dispatch is not a phase but a `dateOut` that is not null. */
export type JobPhase = 'open' | 'closed' | 'cancelled';

/** A time in epoch ms, formatted in the job's zone, or text that is served unchanged. */
export type When = number | string;

/**
 * Fields of a job that a test or scenario sets, at creation or later. Absent fields get defaults or stay unchanged. Lists show
 * `masterJobStatus`, the detail shows `jobStatus`.
 */
export interface JobInput
  extends Partial<
    Pick<
      Job & ActiveJob,
      | 'masterJobStatus'
      | 'jobStatus'
      | 'description'
      | 'comments'
      | 'orderNumber'
      | 'originCode'
      | 'creator'
      | 'mustDate'
      | 'invoiceNumber'
      | 'orderGroup'
      | 'orderGroupSequence'
      | 'taxTotal'
    >
  > {
  /** Sets both statuses at once. */
  status?: string | null;
  /** The job's owner. Default: the account's first user. */
  userId?: number;
  dateIn?: When;
  dateDue?: When | null;
  dateOut?: When | null;
  /** Default: derived from the stage of `masterJobStatus` while the job is open and not dispatched. */
  isCancelable?: boolean;
  location?: Location | null;
  /** Replaces all lines. */
  lines?: Partial<JobLine>[];
  tracking?: TrackingEntry[];
  /** Found by searchText only. */
  client?: string | null;
  tags?: string[];
  deliveryOption?: string | null;
  /** The ordered delivery address. */
  deliveryAddress?: DeliveryAddress | null;
  costs?: JobCosts | null;
  /** Fields of a shop order: its totals, discounts and names, as sent. */
  shop?: Record<string, unknown> | null;
}

/** A stored job; times are text as served, plus their values in epoch ms (NaN if none). */
export interface JobRecord extends Required<Omit<JobInput, 'status' | 'dateIn' | 'lines' | 'isCancelable'>> {
  readonly jobNumber: number;
  phase: JobPhase;
  dateIn: string;
  dateDue: string | null;
  dateOut: string | null;
  inMs: number;
  dueMs: number;
  outMs: number;
  lines: JobLine[];
  /** As given to `createJob` or `edit`; undefined: derived. */
  isCancelable: boolean | undefined;
  /** As set by `lock` or `unlock` since the last dispatch, closing or cancellation; undefined: derived from these three. */
  permissions: { canEdit: boolean; lockedReason: string | null } | undefined;
  invoiceStored: boolean;
  /** In no list, although the job exists; `drift`: until the end of a page drift. */
  hidden: boolean | 'drift';
  /** Reopened after dispatch: in the active list regardless of `leavesListOnDispatch`. */
  keptListed: boolean;
  /** Override fields of list and detail. */
  listOverride: Record<string, unknown> | undefined;
  detailOverride: Record<string, unknown> | undefined;
}

/** Input that contains lines. */
export type InputWithLines = JobInput & { lines: Partial<JobLine>[] };

/** Content of a job that is created on first access. */
export interface ReservedJob {
  /** Includes dates, owner and creator, whose defaults depend on the time of creation. */
  input: InputWithLines;
  /** Applies the job's past moves. It touches no other job and replaces no lines. */
  live: () => void;
}

/** Fields that determine the list of a job that is not hidden. */
export interface ListState {
  phase: JobPhase;
  dispatched: boolean;
  /** As in `JobRecord`. */
  keptListed: boolean;
}

/** A login of an account. */
export interface SandboxUser {
  id: number;
  userName: string;
  firstName: string;
  lastName: string;
  emailAddress: string;
  mobile: string | null;
  active: boolean;
  /** E-mails in general, and a text message at each dispatch. */
  receiveEmails: boolean;
  textNotifyDispatch: boolean;
  /** Logs in by name only, because others have the same e-mail. */
  usernameLoginOnly: boolean;
  /** Epoch ms; null: never. Each token that is granted to credentials of the user counts as a login. */
  lastLogin: number | null;
  loginCount: number;
  /** Overrides fields of the user in the API. */
  profile: Partial<User>;
  /** The shop's id of a user that was created by an order. */
  shopUserId: number | null;
}

/**
 * Role of credentials: `user` orders, `administrator` also reads the account's users, `staff` belongs to the print service and
 * reads and sets privileged fields, `viewer` reads no orders and cannot order.
 */
export type Role = 'user' | 'administrator' | 'staff' | 'viewer';

/** A key id and a secret of an account, and whom they act as. */
export interface Credentials {
  clientId: string;
  /** Assign a new value to rotate it: issued tokens remain valid until they expire or are revoked. */
  clientSecret: string;
  role: Role;
  userId: number;
}

/** Options of `addAccount`. Only the region is required. */
export interface AccountOptions {
  region: RegionCode;
  /** A name in the sandbox, unique in its region; also the default `client` of its jobs. */
  name?: string;
  /** The upstream id that `GET /account` returns. */
  id?: number;
  clientId?: string;
  clientSecret?: string;
  users?: Partial<SandboxUser>[];
  /** The tier of its prices: `T1` (the dearest), `T2` by default, `T3`. */
  priceTier?: PriceTier;
  /** Codes of processes that it cannot order. Default: badges (`EMB`) at tier T1. */
  withheldProcesses?: readonly string[];
}

/** Tiers of prices, the dearest first. */
export type PriceTier = 'T1' | 'T2' | 'T3';

/** Options of a new world. */
export interface WorldOptions {
  /** The sandbox clock, epoch ms. Default: real time. */
  now?: () => number;
  /** Dispatched jobs leave the active list at once, as if filed under closed. By default they stay until they are closed. */
  leavesListOnDispatch?: boolean;
}

/** Days on which a location is closed, inclusive. Default: all locations of the region. */
export interface Closure {
  readonly region: RegionCode;
  readonly locationCode?: string;
  /** `2026-11-20`. */
  readonly dateFrom: string;
  readonly dateTo: string;
}

/** The members of `World` that the modules it is built from use. */
export interface WorldFacts {
  readonly filesUrl: string;
  readonly closures: readonly Closure[];
  now(): number;
  accounts(region: RegionCode): readonly AccountFacts[];
  statuses(region: RegionCode, at?: number): readonly JobStatus[];
  takeLineId(region: RegionCode, count?: number): number;
}

/** The members of `World` with which accounts change their jobs. */
export interface JobWorld extends WorldFacts {
  readonly leavesListOnDispatch: boolean;
  readonly historyMs: number;
  readonly changeTime: number;
  readonly clockSkewMs: number;
  statusName(region: RegionCode, stage: Stage): string;
  findJob(region: RegionCode, jobNumber: number): object | undefined;
  takeJobNumber(region: RegionCode, wanted?: number): number;
}

/** The members of `SandboxAccount` that the modules it is built from use. */
export interface AccountFacts {
  readonly world: WorldFacts;
  readonly region: RegionCode;
  readonly id: number;
  readonly name: string;
  readonly users: readonly SandboxUser[];
  readonly openedAt: number;
  readonly priceTier: PriceTier;
  readonly withheldProcesses: readonly string[];
  readonly activeCount: number;
  addUser(user: Partial<SandboxUser>): SandboxUser;
  takeRelined(): readonly Readonly<JobRecord>[];
}
