// Data types of the sandbox's world: jobs, users, credentials, and the interfaces of accounts and worlds that lower modules use.

import type { User } from '../../shared/ordering/contract/account.ts';
import type { DeliveryAddress } from '../../shared/ordering/contract/candidates.ts';
import type { DateStyle } from './dates.ts';
import type { JobStatus, Location, RegionCode } from './regions.ts';

/** One parcel; the link is null when the carrier gives none. */
export interface TrackingEntry {
  trackingNumber: string | null;
  trackingLink: string | null;
}

/** One line of a job. `image` is the name of its preview, shown as a link that changes with time; null for none. */
export interface JobLine {
  jobLineId: number;
  assetSku: string | null;
  processCode: string | null;
  garment: string | null;
  description: string | null;
  comments: string | null;
  quantity: number;
  unitPrice: number;
  customerReference: string | null;
  image: string | null;
  gang: string | null;
  jobLineStatus: string | null;
  /** What was ordered, and in which form: `PriceCode`, `Asset` or `Stock` with its code. Null where nobody ordered. */
  itemType: string | null;
  code: string | null;
  /** Where its artwork is to be fetched; null when none was named. */
  artworkUrl: string | null;
  /** Its artwork is still to come, and nobody said from where. */
  needsArtwork: boolean;
  /** How often its artwork was asked for at `artworkUrl`. */
  artworkTries: number;
  /** In words, why the last of these did not find it; null when it did, and before the first. */
  artworkReason: string | null;
}

/** What a job costs in the account's currency: `total` is lines, setups and resets less the discount, with tax. */
export interface JobCosts {
  lines: number;
  setup: number;
  reset: number;
  discount: number;
  tax: number;
  total: number;
}

/** Whether a job is under way, closed or cancelled. Dispatch is no phase: it is a `dateOut` that is set. */
export type JobPhase = 'open' | 'closed' | 'cancelled';

/** An instant in epoch ms, written in the account's style and the job's zone, or text that is served exactly as given. */
export type When = number | string;

/** What a test or a scenario may say of a job, at its creation or later. What is left out is filled in or left alone. */
export interface JobInput {
  /** Sets both statuses at once. */
  status?: string | null;
  /** The status as the job list shows it. */
  masterJobStatus?: string | null;
  /** The status as the job's detail shows it. */
  jobStatus?: string | null;
  description?: string | null;
  comments?: string | null;
  orderNumber?: string | null;
  originCode?: string | null;
  creator?: string | null;
  /** The user who owns the job; the account's first one by default. */
  userId?: number;
  dateIn?: When;
  dateDue?: When | null;
  dateOut?: When | null;
  mustDate?: boolean;
  invoiceNumber?: string | null;
  orderGroup?: string | null;
  orderGroupSequence?: number | null;
  taxTotal?: number | null;
  /** Absent: as the stage of `masterJobStatus` says, as long as the job is open and not dispatched. */
  isCancelable?: boolean;
  location?: Location | null;
  /** Replaces all lines. */
  lines?: Partial<JobLine>[];
  tracking?: TrackingEntry[];
  /** Found by searchText only. */
  client?: string | null;
  tags?: string[];
  deliveryOption?: string | null;
  /** Where it goes, as it was ordered. */
  deliveryAddress?: DeliveryAddress | null;
  costs?: JobCosts | null;
  /** What a shop said of it: its totals, discounts and names of its own, as they were sent. */
  shop?: Record<string, unknown> | null;
}

/** A job as the world keeps it; times are text as served, with the instants they mean beside them (epoch ms, NaN if none). */
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
  /** What `createJob` or `edit` said; undefined: derived. */
  isCancelable: boolean | undefined;
  /** What `lock` or `unlock` said since the last dispatch, closing or cancellation; undefined: these three lock it. */
  permissions: { canEdit: boolean; lockedReason: string | null } | undefined;
  invoiceStored: boolean;
  /** Missing from every list although it is there. */
  hidden: boolean;
  /** Reopened after dispatch: in the active list whatever `leavesListOnDispatch` says. */
  keptListed: boolean;
  /** Fields laid over what list and detail would show. */
  listOverride: Record<string, unknown> | undefined;
  detailOverride: Record<string, unknown> | undefined;
}

/** A job with lines that are said. */
export type InputWithLines = JobInput & { lines: Partial<JobLine>[] };

/** What a job is made of that is made later than it was created. */
export interface LateJob {
  /** It says dates, owner and creator too: the defaults depend on when it is made. */
  input: InputWithLines;
  /** Lets the job, which is there now, go through what it has behind it: this touches no other job and replaces no lines. */
  live: () => void;
}

/** What says in which list a job is, unless it is hidden. */
export interface Standing {
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
  /** Wants e-mails at all, and a text message with each dispatch. */
  receiveEmails: boolean;
  textNotifyDispatch: boolean;
  /** Logs in by name only, because others have the same e-mail. */
  usernameLoginOnly: boolean;
  /** Epoch ms; null: never. Each token that is granted to credentials of the user counts as a login. */
  lastLogin: number | null;
  loginCount: number;
  /** Laid over what the API shows of the user. */
  profile: Partial<User>;
  /** What a shop calls the user it had made with an order. */
  shopUserId: number | null;
}

/**
 * What credentials may do: `user` orders, `administrator` also sees the account's users, `staff` belongs to the service
 * itself and sees and sets privileged fields, `viewer` may not order and sees nothing of orders.
 */
export type Role = 'user' | 'administrator' | 'staff' | 'viewer';

/** A key id and a secret of an account, and whom they act as. */
export interface Credentials {
  clientId: string;
  /** Assign another to rotate it: tokens already issued live on until they expire or are revoked. */
  clientSecret: string;
  role: Role;
  userId: number;
}

/** What `addAccount` takes; all but the region is filled in when left out. */
export interface AccountOptions {
  region: RegionCode;
  /** A name of the sandbox's own, unique in its region; also the default of `client` on its jobs. */
  name?: string;
  /** The upstream id that `GET /account` shows. */
  id?: number;
  clientId?: string;
  clientSecret?: string;
  users?: Partial<SandboxUser>[];
  /** The tier of its prices: `T1` (the dearest), `T2` by default, `T3`. */
  priceTier?: PriceTier;
  /** Codes of processes that it may not order; by default badges (`EMB`) at tier T1. */
  withheldProcesses?: readonly string[];
  dateStyle?: DateStyle;
}

/** Tiers of prices, the dearest first. */
export type PriceTier = 'T1' | 'T2' | 'T3';

/** What a new world is made of. */
export interface WorldOptions {
  /** The sandbox clock, epoch ms; the real one by default. */
  now?: () => number;
  /** Dispatched jobs leave the active list at once, as if filed under closed. By default they stay until they are closed. */
  leavesListOnDispatch?: boolean;
  /** How accounts write their timestamps unless they say otherwise; `offset` by default. */
  dateStyle?: DateStyle;
  /** The number the first job of a region gets; set two regions alike to have the same job numbers in both. */
  firstJobNumber?: Partial<Record<RegionCode, number>>;
}

/** Days on which a place makes nothing, both included; all places of the region when none is named. */
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
  statuses(region: RegionCode): readonly JobStatus[];
  takeLineId(region: RegionCode): number;
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
  readonly dateStyle: DateStyle;
  readonly activeCount: number;
  addUser(user: Partial<SandboxUser>): SandboxUser;
  takeRelined(): readonly Readonly<JobRecord>[];
}
