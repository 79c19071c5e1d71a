// The request log: one record per request, for rules, hooks and tests.

import type { RegionCode } from '../world/regions.ts';
import type { SandboxAccount } from '../world/world.ts';

/** The operations of the sandbox; `unknown` is any other path or method. */
export const OPERATIONS = [
  'token',
  'processes',
  'priceCodes',
  'priceCode',
  'createJob',
  'job',
  'patchJob',
  'cancelJob',
  'activeJobs',
  'deliveryOptions',
  'earliestShipDate',
  'assets',
  'globalAssets',
  'assetTypes',
  'asset',
  'assetFiles',
  'assetJobs',
  'account',
  'accountUser',
  'accountUsers',
  'userById',
  'transactions',
  'shipmentSettings',
  'countries',
  'states',
  'jobStatuses',
  'processCodes',
  'sizeSets',
  'stockItems',
  'stockItem',
  'stockItemShipping',
  'stockShipping',
  'promoCode',
  'unknown',
] as const;

/** The target of a request. */
export type OperationName = (typeof OPERATIONS)[number];

/**
 * Representations of the polled data, each of which may lag behind the others: the active list, the same with closed jobs,
 * searches in both, order groups, details, payments, and the status lookup.
 */
export const VIEWS = [
  'active',
  'closed',
  'search',
  'closedSearch',
  'groups',
  'detail',
  'transactions',
  'statuses',
] as const;

/** A view. */
export type View = (typeof VIEWS)[number];

/** The view that a request reads; undefined for other requests. */
export function findView(operation: OperationName, query: Record<string, string>): View | undefined {
  switch (operation) {
    case 'job':
      return 'detail';
    case 'transactions':
      return 'transactions';
    case 'jobStatuses':
      return 'statuses';
    case 'activeJobs': {
      if (query.orderGroup !== undefined) return 'groups';
      const withClosed = query.includeClosedJobs?.toLowerCase() === 'true';
      if (query.searchText?.trim()) return withClosed ? 'closedSearch' : 'search';
      return withClosed ? 'closed' : 'active';
    }
    default:
      return undefined;
  }
}

/** A request as hooks and fault rules receive it. */
export interface RequestInfo {
  region: RegionCode;
  operation: OperationName;
  /** The account of its token (or of its client id, at the token endpoint); undefined if it is invalid. */
  account: SandboxAccount | undefined;
  method: string;
  /** Path below the region's prefix, such as `/api/Jobs/active`. */
  path: string;
  query: Record<string, string>;
  view: View | undefined;
  /** Of `job` requests. */
  jobNumber: number | undefined;
}

/** Called before an answer is created, so that a test can change the world between two page reads. */
export type RequestHook = (info: RequestInfo) => void | Promise<void>;

/** A request that came in. */
export interface LoggedRequest extends Omit<RequestInfo, 'account'> {
  /** Sandbox clock, epoch ms. */
  at: number;
  /** The account's name, or null. */
  account: string | null;
  /** Null while unanswered, and for ever when the connection was broken instead. */
  status: number | null;
  /** The id of the fault rule that struck, or null. */
  fault: string | null;
}

/** Filter of requests to count or list; absent fields match all. */
export interface RequestFilter {
  operation?: OperationName;
  region?: RegionCode;
  /** The account's name. */
  account?: string;
  status?: number;
}

/** The latest requests (20,000 by default), and how many were answered at once. */
export class RequestLog {
  readonly #limit: number;
  #entries: LoggedRequest[] = [];
  readonly #inFlight = new Map<OperationName, { now: number; most: number }>();

  constructor(limit = 20_000) {
    this.#limit = limit;
  }

  /** The requests, oldest first, that match a filter. */
  list(filter: RequestFilter = {}): readonly LoggedRequest[] {
    return this.#entries.filter(
      (entry) =>
        (filter.operation === undefined || entry.operation === filter.operation) &&
        (filter.region === undefined || entry.region === filter.region) &&
        (filter.account === undefined || entry.account === filter.account) &&
        (filter.status === undefined || entry.status === filter.status),
    );
  }

  /** Number of requests that match a filter. */
  count(filter: RequestFilter = {}): number {
    return this.list(filter).length;
  }

  /** The most requests of an operation that were open at the same time since the last `clear`. */
  mostInFlight(operation: OperationName): number {
    return this.#inFlight.get(operation)?.most ?? 0;
  }

  /** Forgets all requests. */
  clear(): void {
    this.#entries = [];
    for (const gauge of this.#inFlight.values()) gauge.most = gauge.now;
  }

  /** Notes a request; the returned entry is completed by `end`. */
  begin(info: RequestInfo, at: number): LoggedRequest {
    const entry = { ...info, account: info.account?.name ?? null, at, status: null, fault: null };
    this.#entries.push(entry);
    // Removed in bulk: shifting one at a time would cost more than the request.
    if (this.#entries.length >= this.#limit * 2) this.#entries = this.#entries.slice(-this.#limit);
    const gauge = this.#inFlight.get(info.operation) ?? { now: 0, most: 0 };
    gauge.now += 1;
    gauge.most = Math.max(gauge.most, gauge.now);
    this.#inFlight.set(info.operation, gauge);
    return entry;
  }

  /** Notes the answer of a request; null when its connection was broken. */
  end(entry: LoggedRequest, status: number | null): void {
    entry.status = status;
    const gauge = this.#inFlight.get(entry.operation);
    if (gauge) gauge.now -= 1;
  }
}
