/**
 * Search for jobs across accounts: plans the requests and merges the responses. Independent of React, the browser and the
 * network, so that it can be tested alone.
 *
 * The API lists the jobs of one account by one filter. The search therefore queries all accounts that can have a match
 * concurrently with the most selective filter, and applies the other filters here. Each response is a page in index order. If
 * that is the requested order, a row is shown as soon as no outstanding page can contain an earlier one.
 * One file: plan and merge of a search depend on each other's order of rows.
 */
import type { Paths } from '../../../client/index.ts';
import type { JobSummary } from '../../../shared/events/catalogue.ts';
import type { JobEvent } from '../../../shared/events/event.ts';
import { shiftDay } from '../dates.ts';
import { type JobTiming, RISKS } from './risk.ts';

/** A job as the API lists it. */
export interface ListedJob extends JobSummary, JobTiming {
  readonly phase: 'listed' | 'departed' | 'settling';
  readonly outcome: 'closed' | 'cancelled' | 'unavailable' | null;
  readonly late: boolean;
}

/** Filters and order of a search. Days are YYYY-MM-DD. Absent filters match all jobs. */
export interface JobQuery {
  /** A job number or an order number. */
  readonly q?: string | undefined;
  readonly account?: string | undefined;
  readonly region?: string | undefined;
  readonly status?: string | undefined;
  readonly dueOn?: string | undefined;
  /** Due on or after this day. Only with `dueBefore`. */
  readonly dueFrom?: string | undefined;
  readonly dueBefore?: string | undefined;
  readonly late?: boolean | undefined;
  readonly risk?: Risk | undefined;
  readonly dispatchedOn?: string | undefined;
  readonly orderGroup?: string | undefined;
  /** Includes dispatched and ended jobs, unless another filter selects them. */
  readonly all?: boolean | undefined;
  /** Includes dispatched jobs that are still open. */
  readonly open?: boolean | undefined;
  readonly sort?: Sort | undefined;
}
export type Sort = 'due' | 'number';
export type Risk = NonNullable<JobTiming['risk']>;

/** Fields of an account that decide whether it is queried. */
export interface SearchedAccount {
  readonly id: string;
  readonly region: string;
  readonly status?: {
    readonly openJobs: number | null;
    readonly unreadJobs: number;
    readonly consecutiveFailures: number;
    readonly quarantinedAt: string | null;
    readonly missingJobs: Readonly<Record<string, number>>;
  } | null;
}

/** Parses the query parameters of the address. `today`: the current day of the jobs. */
export function parseJobQuery(read: (name: string) => string | undefined, today: string): JobQuery {
  const due = read('due');
  const weekday = (new Date(today).getUTCDay() + 6) % 7;
  const monday = shiftDay(today, -weekday);
  const day = (name: string): string | undefined => parseDay(read(name));
  const account = read('account');
  return {
    q: read('q')?.trim() || undefined,
    account,
    // An account is in one region, which need not be the selected one.
    region: account === undefined ? read('region') : undefined,
    status: read('status'),
    dueOn: due === 'today' ? today : due === 'tomorrow' ? shiftDay(today, 1) : day('dueOn'),
    dueFrom: due === 'week' ? monday : undefined,
    dueBefore: due === 'week' ? shiftDay(monday, 7) : day('dueBefore'),
    late: read('late') === 'true' || undefined,
    risk: parseRisk(read('risk')),
    dispatchedOn: day('dispatchedOn'),
    orderGroup: read('orderGroup'),
    all: read('which') === 'all' || undefined,
    open: read('which') === 'open' || undefined,
    sort: read('sort') === 'number' ? 'number' : 'due',
  };
}

function parseRisk(text: string | undefined): Risk | undefined {
  return Object.keys(RISKS).find((risk) => risk === text) as Risk | undefined;
}

function parseDay(text: string | undefined): string | undefined {
  return text !== undefined && /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text))
    ? text
    : undefined;
}

/** Filter parameters of the API. */
export type JobFilter = NonNullable<Paths['/v1/accounts/{id}/jobs']['get']['params']['query']>;

/** A list of one account, read page by page. */
export interface Source {
  readonly account: string;
  readonly region: string;
  /** Filter parameters of the API. */
  readonly filter: JobFilter;
}

/** Lists to read, their order, and the number of accounts without a query. */
export interface Plan {
  readonly sources: readonly Source[];
  /** `null`: in no useful order, but short. */
  readonly order: Sort | null;
  readonly accounts: number;
  readonly skipped: number;
}

/** Plans a search. */
export function planSearch(query: JobQuery, accounts: readonly SearchedAccount[]): Plan {
  const [filters, order, onlyOpen] = chooseFilters(query);
  const among = accounts.filter(
    ({ id, region }) =>
      (query.account === undefined || query.account === id) &&
      (query.region === undefined || query.region === region),
  );
  const queried = onlyOpen ? among.filter((account) => !hasNoOpenJobs(account)) : among;
  return {
    sources: queried.flatMap(({ id, region }) => filters.map((filter) => ({ account: id, region, filter }))),
    order,
    accounts: among.length,
    skipped: among.length - queried.length,
  };
}

/** Returns the most selective filters, the order of their lists, and whether they match only open jobs. */
function chooseFilters(
  query: JobQuery,
): readonly [filters: readonly JobFilter[], order: Sort | null, onlyOpen: boolean] {
  const { q, orderGroup, dueOn, late, risk, dueBefore, status, dispatchedOn } = query;
  // First, because the list entry alone does not prove the day of dispatch.
  if (dispatchedOn !== undefined) return [[{ dispatchedOn }], 'number', false];
  if (q !== undefined) {
    const orderNumber = { orderNumber: q };
    const jobNumber = parseJobNumber(q);
    return [
      jobNumber === undefined ? [orderNumber] : [{ jobNumber: String(jobNumber) }, orderNumber],
      null,
      false,
    ];
  }
  if (orderGroup !== undefined) return [[{ orderGroup }], 'number', false];
  if (dueOn !== undefined) return [[{ dueOn }], 'due', true];
  if (late) return [[{ late: 'true' }], 'due', true];
  if (risk) return [[{ risk }], 'due', true];
  if (dueBefore !== undefined) return [[{ dueBefore }], 'due', true];
  if (status !== undefined) return [[{ status }], 'due', !query.all];
  if (query.all || query.open) return [[{}], 'number', !query.all];
  return [[{ undispatched: 'true' }], 'due', true];
}

/** Parses a job number: digits, optionally with `#` and separators (`#410,001`). */
export function parseJobNumber(text: string): number | undefined {
  const digits = text.replace(/^#/, '').replace(/[\s,.’']/g, '');
  return /^[1-9]\d{0,11}$/.test(digits) ? Number(digits) : undefined;
}

/** Whether an account certainly has no open job: its list was read completely and no job is missing or unread. */
function hasNoOpenJobs({ status }: SearchedAccount): boolean {
  return (
    status?.openJobs === 0 &&
    status.unreadJobs === 0 &&
    status.consecutiveFailures === 0 &&
    status.quarantinedAt === null &&
    Object.values(status.missingJobs).every((jobs) => jobs === 0)
  );
}

/** Whether a job matches the query. `fromDispatchList`: the API listed it under the requested day of dispatch. */
export function matchesJobQuery(
  query: JobQuery,
  account: string,
  job: ListedJob,
  fromDispatchList = false,
): boolean {
  const { q, orderGroup, status, dueOn, dueFrom, dueBefore, late, risk, dispatchedOn } = query;
  const isEnded = job.outcome !== null || job.phase === 'settling';
  const awaited = !isEnded && job.dateOut === null;
  const narrowed = q ?? orderGroup ?? dispatchedOn;
  if (query.account !== undefined && query.account !== account) return false;
  if (q !== undefined && job.orderNumber !== q && job.jobNumber !== parseJobNumber(q)) return false;
  if (orderGroup !== undefined && job.orderGroup !== orderGroup) return false;
  if (status !== undefined && job.status !== status) return false;
  if (
    dispatchedOn !== undefined &&
    (job.dateOut === null || !(fromDispatchList || getDay(job.dateOut) === dispatchedOn))
  )
    return false;
  if (late && !job.late) return false;
  if (risk !== undefined && job.risk !== risk) return false;
  if (dueOn !== undefined || dueBefore !== undefined || late || risk) {
    if (!awaited) return false;
    const due = job.dateDue;
    if (dueOn !== undefined && getDay(due) !== dueOn) return false;
    if (dueBefore !== undefined && (due === null || due >= dueBefore)) return false;
    return dueFrom === undefined || (due !== null && due >= dueFrom);
  }
  if (narrowed !== undefined || query.all) return true;
  return status === undefined && !query.open ? awaited : !isEnded;
}

/** Whether only jobs that await dispatch match the query. */
export function findsUndispatched(query: JobQuery): boolean {
  const { q, orderGroup, dispatchedOn, status, all, open, dueOn, dueBefore, late, risk } = query;
  if ([dueOn, dueBefore, late, risk].some((one) => one !== undefined)) return true;
  return [q, orderGroup, dispatchedOn, status, all, open].every((one) => one === undefined);
}

const getDay = (date: string | null): string | undefined => /^\d{4}-\d\d-\d\d/.exec(date ?? '')?.[0];

/** A job found. A new object after each change. */
export interface Row {
  readonly account: string;
  readonly region: string;
  readonly job: ListedJob;
  /** Whether the job matched when it was read, but no longer does. */
  readonly gone: boolean;
}

/** A request for one page of a list. */
export interface PageRequest {
  readonly source: Source;
  readonly after: string | undefined;
  readonly limit: number;
}

/** Current result of a search. */
export interface SearchResult {
  /** In order, without gaps unless `cut`. */
  readonly rows: readonly Row[];
  /** Whether all lists are read to their end. */
  readonly complete: boolean;
  /** Whether the order differs from that of the lists and reading stopped early, so that rows are missing in between. */
  readonly cut: boolean;
  /** Whether requested rows are still loading. */
  readonly reading: boolean;
  /** Number of accounts with a response or an error. */
  readonly answered: number;
  readonly accounts: number;
  /** Number of accounts that are not queried. */
  readonly skipped: number;
  /** Number of jobs read, matching or not. */
  readonly read: number;
  readonly failures: readonly { readonly account: string; readonly message: string }[];
  /** Errors of the last repetition of the search: the rows are those of an earlier one. */
  readonly rereadFailures: SearchResult['failures'];
  /** Number of jobs that match since an event, but are not in `rows`. */
  readonly fresh: number;
}

const MAX_CONCURRENT_REQUESTS = 6;
const FIRST_ROWS = 300;
/** Maximum number of jobs to read if the lists are in another order, before the result is cut. */
const MAX_READ = 20_000;
const PAGE = { least: 20, most: 500 };

interface SourceState {
  readonly source: Source;
  /** Cursor of the next page; `undefined` before the first request, `null` at the end. */
  next: string | null | undefined;
  /** Lower bound of the sort keys of outstanding pages. */
  last: string;
  isLoading: boolean;
  failed: string | undefined;
}

/** A running search. The caller sends the requests of {@link nextRequests} and passes the responses to {@link addPage}. */
export class JobSearch {
  readonly #query: JobQuery;
  readonly #plan: Plan;
  readonly #sort: Sort;
  readonly #sources: SourceState[];
  readonly #rows = new Map<string, { readonly key: string; row: Row; readonly fromDispatchList: boolean }>();
  /** Sort keys of jobs that match according to an event and were not read. */
  readonly #fresh = new Map<string, string>();
  /** Last event of each job during outstanding requests, because a page may be older than the event. */
  readonly #pendingEvents = new Map<string, JobEvent>();
  /** Cache of the sorted rows. */
  #sorted: readonly { readonly key: string; readonly row: Row }[] | undefined;
  #requestedRows = FIRST_ROWS;
  #maxRead = MAX_READ;
  #read = 0;
  #result: SearchResult | undefined;
  #rereadFailures: SearchResult['failures'] = [];

  constructor(query: JobQuery, accounts: readonly SearchedAccount[]) {
    this.#query = query;
    this.#sort = query.sort ?? 'due';
    this.#plan = planSearch(query, accounts);
    this.#sources = this.#plan.sources.map((source) => ({
      ...{ source, next: undefined, last: '', isLoading: false, failed: undefined },
    }));
  }

  /** Returns the requests to send now, and counts them as outstanding. */
  nextRequests(): PageRequest[] {
    const open = this.#sources.filter(isOpen);
    const free = MAX_CONCURRENT_REQUESTS - this.#sources.filter(({ isLoading }) => isLoading).length;
    const begun = open.filter(({ next }) => next !== undefined);
    // Each list once, then the lists that block the next rows.
    const ready = (begun.length < open.length ? open.filter(({ next }) => next === undefined) : open)
      .filter(({ isLoading }) => !isLoading)
      .sort((a, b) => (a.last < b.last ? -1 : 1));
    if (begun.length === open.length && !this.#needsMore()) return [];
    const share = Math.ceil((2 * this.#requestedRows) / Math.max(1, open.length));
    const limit = this.#isInOrder()
      ? Math.min(PAGE.most, Math.max(PAGE.least, begun.length === open.length ? 2 * share : share))
      : PAGE.most;
    return ready.slice(0, Math.max(0, free)).map((state) => {
      state.isLoading = true;
      return { source: state.source, after: state.next ?? undefined, limit };
    });
  }

  /** Adds the response to a request of {@link nextRequests}. */
  addPage(
    request: PageRequest,
    page: { readonly jobs: readonly ListedJob[]; readonly next: string | null },
  ): void {
    const state = this.#findSource(request);
    if (!state) return;
    state.isLoading = false;
    state.next = page.next;
    const { account, region } = request.source;
    for (const job of page.jobs) {
      const name = toRowId(account, job.jobNumber);
      const key = toSortKey(this.#sort, account, job);
      const bound = toLowerBound(this.#sort, job, key);
      if (bound > state.last) state.last = bound;
      this.#fresh.delete(name);
      const fromDispatchList = request.source.filter.dispatchedOn !== undefined;
      if (matchesJobQuery(this.#query, account, job, fromDispatchList)) {
        const known = this.#rows.get(name);
        const row = { account, region, job, gone: false };
        // A row keeps its position.
        this.#rows.set(name, { key: known?.key ?? key, row, fromDispatchList });
        this.#sorted = undefined;
      }
      const pending = this.#pendingEvents.get(name);
      if (pending) this.#patch(name, pending);
    }
    this.#read += page.jobs.length;
    this.#settle();
  }

  /** Records the error of a request. */
  addFailure(request: PageRequest, message: string): void {
    const state = this.#findSource(request);
    if (!state) return;
    state.isLoading = false;
    state.failed = message;
    this.#settle();
  }

  /** Clears the errors, so that failed requests are repeated. */
  retry(): void {
    for (const state of this.#sources) state.failed = undefined;
    this.#rereadFailures = [];
    this.#result = undefined;
  }

  /** Raises the number of requested rows to `rows`. */
  requestRows(rows: number): void {
    this.#requestedRows = Math.max(this.#requestedRows, rows);
  }

  /** Continues reading a cut result. */
  readMore(): void {
    this.#maxRead = this.#read + MAX_READ;
    this.#result = undefined;
  }

  /** Applies events to the rows. Returns whether the result changed. */
  applyEvents(events: readonly JobEvent[]): boolean {
    let changed = false;
    for (const event of events) {
      const { account, job } = event.data as { account?: string; job?: JobSummary };
      if (account === undefined || job === undefined) continue;
      const name = toRowId(account, job.jobNumber);
      if (this.#sources.some(({ isLoading }) => isLoading)) this.#pendingEvents.set(name, event);
      changed = this.#patch(name, event) || changed;
    }
    if (changed) this.#result = undefined;
    return changed;
  }

  /**
   * Takes over the jobs of a later search with the same query. Rows keep their positions; other matches are counted as new. If
   * jobs of an account could not be read, takes over the errors only.
   */
  update(later: JobSearch): void {
    this.#rereadFailures = later.getResult().failures;
    this.#result = undefined;
    if (this.#rereadFailures.length > 0) return;
    const frontier = later.#completeUpTo();
    const isMissing = (name: string, key: string): boolean =>
      !later.#rows.has(name) && (frontier === undefined || key <= frontier);
    for (const [name, known] of this.#rows) {
      const { account, job } = known.row;
      if (isMissing(name, toSortKey(this.#sort, account, job))) known.row = { ...known.row, gone: true };
    }
    for (const [name, key] of this.#fresh) if (isMissing(name, key)) this.#fresh.delete(name);
    for (const [name, { key, ...found }] of later.#rows) {
      const known = this.#rows.get(name);
      if (known) this.#rows.set(name, { ...known, ...found });
      else if (!found.row.gone) this.#fresh.set(name, key);
    }
    this.#sorted = undefined;
  }

  /** Applies events from before the search to accounts without a query: their status may be older than the events. */
  applyEarlierEvents(events: readonly JobEvent[]): void {
    const queried = new Set(this.#plan.sources.map(({ account }) => account));
    this.applyEvents(events.filter(({ data }) => !queried.has(String(data.account))));
  }

  /** Returns the current result; the same object until it changes. */
  getResult(): SearchResult {
    this.#result ??= this.#buildResult();
    return this.#result;
  }

  #buildResult(): SearchResult {
    const open = this.#sources.filter(isOpen);
    const complete = open.length === 0;
    const cut = !complete && !this.#isInOrder() && this.#read >= this.#maxRead;
    const frontier = this.#completeUpTo();
    this.#sorted ??= [...this.#rows.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
    const shown =
      this.#plan.order === null || cut || frontier === undefined
        ? this.#sorted
        : this.#sorted.filter(({ key }) => key <= frontier);
    const toAccounts = (readings: readonly SourceState[]): Set<string> =>
      new Set(readings.map(({ source }) => source.account));
    const waiting = toAccounts(open.filter(({ next }) => next === undefined));
    const queried = toAccounts(this.#sources);
    const failures = new Map(
      this.#sources.flatMap(({ source, failed }) =>
        failed === undefined ? [] : [[source.account, failed] as const],
      ),
    );
    const rows = shown.map(({ row }) => row);
    return {
      rows,
      complete,
      cut,
      reading: !complete && !cut && rows.length < this.#requestedRows,
      answered: queried.size - waiting.size,
      accounts: queried.size,
      skipped: this.#plan.skipped,
      read: this.#read,
      failures: [...failures].map(([account, message]) => ({ account, message })),
      rereadFailures: this.#rereadFailures,
      fresh: [...this.#fresh.values()].filter(
        (key) => complete || (frontier !== undefined && key <= frontier),
      ).length,
    };
  }

  /** Returns the key up to which the rows are complete; `undefined` if all lists are read. */
  #completeUpTo(): string | undefined {
    const open = this.#sources.filter(isOpen);
    if (open.length === 0) return undefined;
    if (!this.#isInOrder()) return '';
    return open.reduce((least, { last }) => (last < least ? last : least), '\uffff');
  }

  #isInOrder(): boolean {
    return this.#plan.order === null || this.#plan.order === this.#sort;
  }

  #needsMore(): boolean {
    if (this.#plan.order === null) return true;
    return this.#isInOrder()
      ? this.getResult().rows.length < this.#requestedRows
      : this.#read < this.#maxRead;
  }

  #findSource({ source }: PageRequest): SourceState | undefined {
    return this.#sources.find((state) => state.source === source);
  }

  #settle(): void {
    if (!this.#sources.some(({ isLoading }) => isLoading)) this.#pendingEvents.clear();
    this.#result = undefined;
  }

  #patch(name: string, event: JobEvent): boolean {
    const { account, region } = event.data as { account: string; region: string };
    const known = this.#rows.get(name);
    if (known) {
      const job = applyEvent(event, known.row.job);
      // The listed day of dispatch is valid as long as the date is unchanged.
      const fromDispatchList = known.fromDispatchList && job.dateOut === known.row.job.dateOut;
      known.row = { ...known.row, job, gone: !matchesJobQuery(this.#query, account, job, fromDispatchList) };
      return true;
    }
    if (this.#query.region !== undefined && this.#query.region !== region) return false;
    const job = applyEvent(event, undefined);
    const before = this.#fresh.size;
    if (matchesJobQuery(this.#query, account, job))
      this.#fresh.set(name, toSortKey(this.#sort, account, job));
    else this.#fresh.delete(name);
    return this.#fresh.size !== before;
  }
}

const isOpen = ({ next, failed }: SourceState): boolean => next !== null && failed === undefined;
const toRowId = (account: string, jobNumber: number): string => `${account}/${jobNumber}`;

/** Returns the sort key: due day, then due time if the date has an offset, otherwise last in the day; or the job number. */
function toSortKey(sort: Sort, account: string, job: ListedJob): string {
  const tail = `${String(job.jobNumber).padStart(12, '0')}#${account}`;
  if (sort === 'number') return tail;
  const { dateDue } = job;
  const timed = dateDue !== null && WITH_OFFSET.test(dateDue) && !MIDNIGHT.test(dateDue);
  const at = timed ? Date.parse(dateDue) : Number.NaN;
  return `${getDueDay(job)}#${Number.isNaN(at) ? '~' : new Date(at).toISOString()}#${tail}`;
}
const WITH_OFFSET = /(Z|[+-]\d\d:?\d\d)$/i;
const MIDNIGHT = /[T ]00:00(:00(\.0+)?)?(Z|[+-])/i;

/** Returns the lower bound of the following rows: the API sorts by due day and number, not by time of day. */
function toLowerBound(sort: Sort, job: ListedJob, key: string): string {
  return sort === 'number' ? key : getDueDay(job);
}

const getDueDay = ({ dateDue }: ListedJob): string => getDay(dateDue) ?? '9999-12-31';

/** Returns what stays valid of the time of an open job after an event, until it is read again. */
function keepTiming({ type }: JobEvent, before: ListedJob | undefined): JobTiming {
  if (type === 'job.overdue') return { risk: 'late' };
  const { risk, inStatus } = before ?? {};
  return {
    ...(risk === undefined ? {} : { risk }),
    ...(inStatus === undefined || type === 'job.status_changed' ? {} : { inStatus }),
  };
}

/** Types of the events that only open jobs have. */
const OPEN_TYPES = [
  ...['job.created', 'job.reopened', 'job.production_started'],
  ...['job.overdue', 'job.due_soon', 'job.stalled'],
];

/** Returns the job after an event. `before`: the job before it. If it is not known, the job is open only if the event proves it. */
function applyEvent(event: JobEvent, before: ListedJob | undefined): ListedJob {
  const { job, observed } = event.data as unknown as { job: JobSummary; observed?: { view?: string } };
  const outcomes: Partial<Record<string, ListedJob['outcome']>> = {
    'job.closed': 'closed',
    'job.cancelled': 'cancelled',
    'job.unavailable': 'unavailable',
  };
  const newOutcome = outcomes[event.type];
  const reopened = event.type === 'job.reopened' || event.type === 'job.created';
  const outcome = newOutcome ?? (reopened ? null : (before?.outcome ?? null));
  const isListed = OPEN_TYPES.includes(event.type) || observed?.view === 'list';
  // With a new due date, the job is late only after a job.overdue event.
  const late = event.type === 'job.overdue' || (before?.late === true && before.dateDue === job.dateDue);
  return {
    ...job,
    phase: outcome !== null ? 'settling' : isListed ? 'listed' : (before?.phase ?? 'settling'),
    outcome,
    late: late && outcome === null && job.dateOut === null,
    ...(outcome === null && job.dateOut === null ? keepTiming(event, before) : {}),
  };
}
