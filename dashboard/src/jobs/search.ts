/**
 * A search for jobs over accounts: which requests it takes, and what their answers come to. Free of React, the browser and the
 * network, so that all of it can be tried by itself.
 *
 * The API lists the jobs of one account by one filter. So all accounts that can have a match are asked side by side by the
 * narrowest filter, and what else is asked for is judged here. Each answer is a page in the order of its index: where that is
 * the order that is wanted, rows are shown as far as no page still to come can have one before them.
 */
import type { JobSummary } from '../../../shared/events/catalogue.ts';
import type { JobEvent } from '../../../shared/events/event.ts';
import { shiftDay } from '../dates.ts';

/** A job as the API lists it. */
export interface ListedJob extends JobSummary {
  readonly phase: 'listed' | 'departed' | 'settling';
  readonly outcome: 'closed' | 'cancelled' | 'unavailable' | null;
  readonly late: boolean;
}

/** What is asked for. Days are YYYY-MM-DD. What is absent narrows nothing. */
export interface JobQuery {
  /** A job number or an order number. */
  readonly q?: string | undefined;
  readonly account?: string | undefined;
  readonly region?: string | undefined;
  readonly status?: string | undefined;
  readonly dueOn?: string | undefined;
  /** Due on this day or later; only with `dueBefore`. */
  readonly dueFrom?: string | undefined;
  readonly dueBefore?: string | undefined;
  readonly late?: boolean | undefined;
  readonly dispatchedOn?: string | undefined;
  readonly orderGroup?: string | undefined;
  /** Also those that are dispatched or over, where nothing else says which. */
  readonly all?: boolean | undefined;
  /** Also those that are dispatched and still open. */
  readonly open?: boolean | undefined;
  readonly sort?: Sort | undefined;
}
export type Sort = 'due' | 'number';

/** What of an account decides whether it is asked. */
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

/** The words of the address as what is asked for. `today` is the viewer's. */
export function parseJobQuery(read: (name: string) => string | undefined, today: string): JobQuery {
  const due = read('due');
  const weekday = (new Date(today).getUTCDay() + 6) % 7;
  const monday = shiftDay(today, -weekday);
  const day = (name: string): string | undefined => parseDay(read(name));
  return {
    q: read('q')?.trim() || undefined,
    account: read('account'),
    region: read('region'),
    status: read('status'),
    dueOn: due === 'today' ? today : due === 'tomorrow' ? shiftDay(today, 1) : day('dueOn'),
    dueFrom: due === 'week' ? monday : undefined,
    dueBefore: due === 'week' ? shiftDay(monday, 7) : day('dueBefore'),
    late: read('late') === 'true' || undefined,
    dispatchedOn: day('dispatchedOn'),
    orderGroup: read('orderGroup'),
    all: read('which') === 'all' || undefined,
    open: read('which') === 'open' || undefined,
    sort: read('sort') === 'number' ? 'number' : 'due',
  };
}

function parseDay(text: string | undefined): string | undefined {
  return text !== undefined && /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text))
    ? text
    : undefined;
}

/** One list that is read page by page. */
export interface Source {
  readonly account: string;
  readonly region: string;
  /** The filter, as the API takes it. */
  readonly filter: Readonly<Record<string, string>>;
}

/** Which lists are read, in which order they come, and how many accounts need not be asked. */
export interface Plan {
  readonly sources: readonly Source[];
  /** Null: in none that helps, but there are only few. */
  readonly order: Sort | null;
  readonly accounts: number;
  readonly skipped: number;
}

/** How a search goes about it. */
export function planSearch(wanted: JobQuery, accounts: readonly SearchedAccount[]): Plan {
  const [filters, order, onlyOpen] = chooseFilters(wanted);
  const among = accounts.filter(
    ({ id, region }) =>
      (wanted.account === undefined || wanted.account === id) &&
      (wanted.region === undefined || wanted.region === region),
  );
  const asked = onlyOpen ? among.filter((account) => !hasNoOpenJobs(account)) : among;
  return {
    sources: asked.flatMap(({ id, region }) => filters.map((filter) => ({ account: id, region, filter }))),
    order,
    accounts: among.length,
    skipped: among.length - asked.length,
  };
}

/** The narrowest filter, in which order it lists, and whether it can only find jobs that are open. */
function chooseFilters(
  wanted: JobQuery,
): readonly [filters: readonly Readonly<Record<string, string>>[], order: Sort | null, onlyOpen: boolean] {
  const { q, orderGroup, dueOn, late, dueBefore, status, dispatchedOn } = wanted;
  // First, for the day of a dispatch is more than what an entry shows of it.
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
  if (dueBefore !== undefined) return [[{ dueBefore }], 'due', true];
  if (status !== undefined) return [[{ status }], 'due', !wanted.all];
  if (wanted.all || wanted.open) return [[{}], 'number', !wanted.all];
  return [[{ undispatched: 'true' }], 'due', true];
}

/** The job number that a text can be: digits, also as people write them (`#410,001`). */
export function parseJobNumber(text: string): number | undefined {
  const digits = text.replace(/^#/, '').replace(/[\s,.’']/g, '');
  return /^[1-9]\d{0,11}$/.test(digits) ? Number(digits) : undefined;
}

/** Whether it is certain that an account has no open job: all was read, and nothing of it is in doubt. */
function hasNoOpenJobs({ status }: SearchedAccount): boolean {
  return (
    status?.openJobs === 0 &&
    status.unreadJobs === 0 &&
    status.consecutiveFailures === 0 &&
    status.quarantinedAt === null &&
    Object.values(status.missingJobs).every((jobs) => jobs === 0)
  );
}

/** Whether a job is what is asked for. That it was dispatched on a day is the word of the list (`listedAs` it). */
export function matchesJobQuery(
  wanted: JobQuery,
  account: string,
  job: ListedJob,
  listedAs = false,
): boolean {
  const { q, orderGroup, status, dueOn, dueFrom, dueBefore, late, dispatchedOn } = wanted;
  const over = job.outcome !== null || job.phase === 'settling';
  const awaited = !over && job.dateOut === null;
  const narrowed = q ?? orderGroup ?? dispatchedOn;
  if (wanted.account !== undefined && wanted.account !== account) return false;
  if (q !== undefined && job.orderNumber !== q && job.jobNumber !== parseJobNumber(q)) return false;
  if (orderGroup !== undefined && job.orderGroup !== orderGroup) return false;
  if (status !== undefined && job.status !== status) return false;
  if (
    dispatchedOn !== undefined &&
    (job.dateOut === null || !(listedAs || getDay(job.dateOut) === dispatchedOn))
  )
    return false;
  if (late && !job.late) return false;
  if (dueOn !== undefined || dueBefore !== undefined || late) {
    if (!awaited) return false;
    const due = job.dateDue;
    if (dueOn !== undefined && getDay(due) !== dueOn) return false;
    if (dueBefore !== undefined && (due === null || due >= dueBefore)) return false;
    return dueFrom === undefined || (due !== null && due >= dueFrom);
  }
  if (narrowed !== undefined || wanted.all) return true;
  return status === undefined && !wanted.open ? awaited : !over;
}

const getDay = (date: string | null): string | undefined => /^\d{4}-\d\d-\d\d/.exec(date ?? '')?.[0];

/** A job that was found. A new object with each change. */
export interface Row {
  readonly account: string;
  readonly region: string;
  readonly job: ListedJob;
  /** It was what is asked for when it was read, and is not any more. */
  readonly gone: boolean;
}

/** A page of a list that is to be asked for. */
export interface PageRequest {
  readonly source: Source;
  readonly after: string | undefined;
  readonly limit: number;
}

/** What a search has come to. */
export interface SearchResult {
  /** In order. None is missing between two of them, unless `cut`. */
  readonly rows: readonly Row[];
  /** No list has more. */
  readonly complete: boolean;
  /** It is sorted otherwise than the lists come, and there is more than was read: rows are missing between these. */
  readonly cut: boolean;
  /** Rows can't be shown before more was read. */
  readonly reading: boolean;
  /** Accounts that have answered at least once, or failed. */
  readonly answered: number;
  readonly accounts: number;
  /** Accounts that need not be asked. */
  readonly skipped: number;
  /** Jobs that were read, whether they are wanted or not. */
  readonly read: number;
  readonly failures: readonly { readonly account: string; readonly sentence: string }[];
  /** Jobs that came to match since they were asked for. */
  readonly fresh: number;
}

/** Requests at a time. */
const MAX_CONCURRENT_REQUESTS = 6;
/** Rows wanted at first. */
const FIRST_ROWS = 300;
/** So many jobs are read for an order in which they don't come, before it is said that there are more. */
const MAX_READ = 20_000;
const PAGE = { least: 20, most: 500 };

interface SourceState {
  readonly source: Source;
  /** `undefined`: not asked yet; null: there are no more. */
  next: string | null | undefined;
  /** Nothing that comes is before this. */
  last: string;
  asking: boolean;
  failed: string | undefined;
}

/** A search under way. Whoever runs it takes what {@link nextRequests} says is to be asked, and brings the answers. */
export class JobSearch {
  readonly #wanted: JobQuery;
  readonly #plan: Plan;
  readonly #sort: Sort;
  readonly #readings: SourceState[];
  readonly #rows = new Map<string, { readonly key: string; row: Row; readonly listedAs: boolean }>();
  /** Jobs that match by what events said, and were not read. */
  readonly #fresh = new Map<string, string>();
  /** What events said while pages were under way: such a page may be older than they are. */
  readonly #said = new Map<string, JobEvent>();
  /** The rows in order, until there are others. */
  #sorted: readonly { readonly key: string; readonly row: Row }[] | undefined;
  #rowsWanted = FIRST_ROWS;
  #mostRead = MAX_READ;
  #read = 0;
  #found: SearchResult | undefined;

  constructor(wanted: JobQuery, accounts: readonly SearchedAccount[]) {
    this.#wanted = wanted;
    this.#sort = wanted.sort ?? 'due';
    this.#plan = planSearch(wanted, accounts);
    this.#readings = this.#plan.sources.map((source) => ({
      ...{ source, next: undefined, last: '', asking: false, failed: undefined },
    }));
  }

  /** What is to be asked for now; each is under way from then on. */
  nextRequests(): PageRequest[] {
    const open = this.#readings.filter(isOpen);
    const free = MAX_CONCURRENT_REQUESTS - this.#readings.filter(({ asking }) => asking).length;
    const begun = open.filter(({ next }) => next !== undefined);
    // Every list once; then those on which the next rows wait.
    const ready = (begun.length < open.length ? open.filter(({ next }) => next === undefined) : open)
      .filter(({ asking }) => !asking)
      .sort((a, b) => (a.last < b.last ? -1 : 1));
    if (begun.length === open.length && !this.#needsMore()) return [];
    const share = Math.ceil((2 * FIRST_ROWS) / Math.max(1, open.length));
    const limit = this.#isInOrder()
      ? Math.min(PAGE.most, Math.max(PAGE.least, begun.length === open.length ? 2 * share : share))
      : PAGE.most;
    return ready.slice(0, Math.max(0, free)).map((reading) => {
      reading.asking = true;
      return { source: reading.source, after: reading.next ?? undefined, limit };
    });
  }

  /** The answer to what {@link nextRequests} gave. */
  addPage(
    ask: PageRequest,
    page: { readonly jobs: readonly ListedJob[]; readonly next: string | null },
  ): void {
    const reading = this.#readingOf(ask);
    if (!reading) return;
    reading.asking = false;
    reading.next = page.next;
    const { account, region } = ask.source;
    for (const job of page.jobs) {
      const name = toRowId(account, job.jobNumber);
      const key = toSortKey(this.#sort, account, job);
      const bound = toLowerBound(this.#sort, job, key);
      if (bound > reading.last) reading.last = bound;
      this.#fresh.delete(name);
      const listedAs = ask.source.filter.dispatchedOn !== undefined;
      if (matchesJobQuery(this.#wanted, account, job, listedAs)) {
        const known = this.#rows.get(name);
        const row = { account, region, job, gone: false };
        // Where it stands already, it stays.
        this.#rows.set(name, { key: known?.key ?? key, row, listedAs });
        this.#sorted = undefined;
      }
      const said = this.#said.get(name);
      if (said) this.#patch(name, said);
    }
    this.#read += page.jobs.length;
    this.#settle();
  }

  /** It could not be answered. */
  addFailure(ask: PageRequest, sentence: string): void {
    const reading = this.#readingOf(ask);
    if (!reading) return;
    reading.asking = false;
    reading.failed = sentence;
    this.#settle();
  }

  /** What failed is to be asked again. */
  retry(): void {
    for (const reading of this.#readings) reading.failed = undefined;
    this.#found = undefined;
  }

  /** So many rows are wanted at least. */
  requestRows(rows: number): void {
    this.#rowsWanted = Math.max(this.#rowsWanted, rows);
  }

  /** More is to be read of what was cut. */
  readMore(): void {
    this.#mostRead = this.#read + MAX_READ;
    this.#found = undefined;
  }

  /** Takes in what happened. Whether anything shown is different now. */
  applyEvents(events: readonly JobEvent[]): boolean {
    let changed = false;
    for (const event of events) {
      const { account, job } = event.data as { account?: string; job?: JobSummary };
      if (account === undefined || job === undefined) continue;
      const name = toRowId(account, job.jobNumber);
      if (this.#readings.some(({ asking }) => asking)) this.#said.set(name, event);
      changed = this.#patch(name, event) || changed;
    }
    if (changed) this.#found = undefined;
    return changed;
  }

  /**
   * Takes in what happened before it began, of accounts that it does not ask: that they have no open job may be known from
   * before that.
   */
  applyEarlierEvents(events: readonly JobEvent[]): void {
    const asked = new Set(this.#plan.sources.map(({ account }) => account));
    this.applyEvents(events.filter(({ data }) => !asked.has(String(data.account))));
  }

  /** What it has come to. The same object until something changes. */
  getResult(): SearchResult {
    this.#found ??= this.#toFound();
    return this.#found;
  }

  #toFound(): SearchResult {
    const open = this.#readings.filter(isOpen);
    const complete = open.length === 0;
    const cut = !complete && !this.#isInOrder() && this.#read >= this.#mostRead;
    const frontier = this.#frontier();
    this.#sorted ??= [...this.#rows.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
    const shown =
      this.#plan.order === null || cut || frontier === undefined
        ? this.#sorted
        : this.#sorted.filter(({ key }) => key <= frontier);
    const accountsOf = (readings: readonly SourceState[]): Set<string> =>
      new Set(readings.map(({ source }) => source.account));
    const waiting = accountsOf(open.filter(({ next }) => next === undefined));
    const asked = accountsOf(this.#readings);
    const failures = new Map(
      this.#readings.flatMap(({ source, failed }) =>
        failed === undefined ? [] : [[source.account, failed] as const],
      ),
    );
    const rows = shown.map(({ row }) => row);
    return {
      rows,
      complete,
      cut,
      reading: !complete && !cut && rows.length < this.#rowsWanted,
      answered: asked.size - waiting.size,
      accounts: asked.size,
      skipped: this.#plan.skipped,
      read: this.#read,
      failures: [...failures].map(([account, sentence]) => ({ account, sentence })),
      fresh: [...this.#fresh.values()].filter(
        (key) => complete || (frontier !== undefined && key <= frontier),
      ).length,
    };
  }

  /** Up to which key nothing more can come; `undefined`: nothing comes any more at all. */
  #frontier(): string | undefined {
    const open = this.#readings.filter(isOpen);
    if (open.length === 0) return undefined;
    if (!this.#isInOrder()) return '';
    return open.reduce((least, { last }) => (last < least ? last : least), '\uffff');
  }

  #isInOrder(): boolean {
    return this.#plan.order === null || this.#plan.order === this.#sort;
  }

  #needsMore(): boolean {
    if (this.#plan.order === null) return true;
    return this.#isInOrder() ? this.getResult().rows.length < this.#rowsWanted : this.#read < this.#mostRead;
  }

  #readingOf({ source }: PageRequest): SourceState | undefined {
    return this.#readings.find((reading) => reading.source === source);
  }

  #settle(): void {
    if (!this.#readings.some(({ asking }) => asking)) this.#said.clear();
    this.#found = undefined;
  }

  #patch(name: string, event: JobEvent): boolean {
    const { account, region } = event.data as { account: string; region: string };
    const known = this.#rows.get(name);
    if (known) {
      const job = applyEvent(event, known.row.job);
      // A day of dispatch that was read stays the day as long as the date does.
      const listedAs = known.listedAs && job.dateOut === known.row.job.dateOut;
      known.row = { ...known.row, job, gone: !matchesJobQuery(this.#wanted, account, job, listedAs) };
      return true;
    }
    if (this.#wanted.region !== undefined && this.#wanted.region !== region) return false;
    const job = applyEvent(event, undefined);
    const before = this.#fresh.size;
    if (matchesJobQuery(this.#wanted, account, job))
      this.#fresh.set(name, toSortKey(this.#sort, account, job));
    else this.#fresh.delete(name);
    return this.#fresh.size !== before;
  }
}

const isOpen = ({ next, failed }: SourceState): boolean => next !== null && failed === undefined;
const toRowId = (account: string, jobNumber: number): string => `${account}/${jobNumber}`;

/** By which rows are sorted: by due day, within it by instant where the date says one, those without one last; or by number. */
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

/** The API lists by due day and number: what comes behind a job can be earlier on the same day. */
function toLowerBound(sort: Sort, job: ListedJob, key: string): string {
  return sort === 'number' ? key : getDueDay(job);
}

const getDueDay = ({ dateDue }: ListedJob): string => getDay(dateDue) ?? '9999-12-31';

/** A job after an event that says how it stands; `before`: as it was known. */
function applyEvent(event: JobEvent, before: ListedJob | undefined): ListedJob {
  const { job } = event.data as unknown as { job: JobSummary };
  const endings: Partial<Record<string, ListedJob['outcome']>> = {
    'job.closed': 'closed',
    'job.cancelled': 'cancelled',
    'job.unavailable': 'unavailable',
  };
  const ending = endings[event.type];
  const reopened = event.type === 'job.reopened' || event.type === 'job.created';
  const outcome = ending ?? (reopened ? null : (before?.outcome ?? null));
  // A new due date is not over before the service shows that it is, which is an event of its own.
  const late = event.type === 'job.overdue' || (before?.late === true && before.dateDue === job.dateDue);
  return {
    ...job,
    phase: outcome !== null ? 'settling' : reopened ? 'listed' : (before?.phase ?? 'listed'),
    outcome,
    late: late && outcome === null && job.dateOut === null,
  };
}
