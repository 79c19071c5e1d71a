// State of the sandbox: the accounts and jobs of a simulated ordering API, and all operations that change them.

import { AssetShelf } from './asset-files.ts';
import { DAY_MS, type DateStyle, formatDay, formatTimestamp, parseDue, parseTimestamp } from './dates.ts';
import { copyJob, JobHistory, type Place } from './history.ts';
import { JobList, type JobsPage, type JobsQuery, listEntryJson } from './joblist.ts';
import { AccountLedgers } from './ledgers.ts';
import type {
  AccountOptions,
  Closure,
  Credentials,
  JobInput,
  JobLine,
  JobPhase,
  JobRecord,
  LateJob,
  ListState,
  PriceTier,
  Role,
  SandboxUser,
  TrackingEntry,
  When,
  WorldOptions,
} from './records.ts';
import {
  FIRST_JOB_NUMBER,
  type JobStatus,
  LOCATIONS,
  REGIONS,
  type RegionCode,
  STATUS_NAMES,
  type Stage,
} from './regions.ts';
import { type ActiveJobDto, type JobDto, jobDto } from './views.ts';
import { Warehouse } from './warehouse.ts';

/** Creates an empty world: five regions, no accounts. */
export function createWorld(options: WorldOptions = {}): World {
  return new World(options);
}

/** A value that must be unique in a region already belongs to an account. */
export class TakenError extends Error {
  override name = 'TakenError';
  readonly field: 'name' | 'id' | 'clientId';

  constructor(region: RegionCode, field: TakenError['field'], value: string | number) {
    super(`The ${TAKEN_WORDS[field]} ${value} exists in ${region} already`);
    this.field = field;
  }
}

const TAKEN_WORDS = { name: 'account name', id: 'upstream id', clientId: 'client id' } as const;

interface RegionState {
  nextJobNumber: number;
  nextLineId: number;
  accounts: SandboxAccount[];
  statuses: JobStatus[];
  /** Earlier lookups, the oldest first; `until` in epoch ms. */
  pastStatuses: { readonly until: number; readonly statuses: readonly JobStatus[] }[];
  warehouse: Warehouse | undefined;
}

/** All regions with their accounts. Created by `createWorld`. */
export class World {
  readonly now: () => number;
  readonly leavesListOnDispatch: boolean;
  readonly dateStyle: DateStyle;
  /** Where links to files begin; a sandbox that is started serves them itself. */
  filesUrl = 'https://files.transfers.example';
  /** Add closures to delay dispatch dates, or to have none. */
  readonly closures: Closure[] = [];
  readonly #regions: Record<RegionCode, RegionState>;
  #accountCount = 0;
  #historyMs = 0;
  #clockSkewMs = 0;
  #changeTime: number | undefined;

  constructor(options: WorldOptions) {
    this.now = options.now ?? Date.now;
    this.leavesListOnDispatch = options.leavesListOnDispatch ?? false;
    this.dateStyle = options.dateStyle ?? 'offset';
    const region = (code: RegionCode): RegionState => ({
      nextJobNumber: options.firstJobNumber?.[code] ?? FIRST_JOB_NUMBER[code],
      nextLineId: 1_000_001,
      accounts: [],
      statuses: Object.entries(STATUS_NAMES[code]).map(([stage, name], index) => ({
        id: index + 1,
        name,
        stage: stage as Stage,
      })),
      pastStatuses: [],
      warehouse: undefined,
    });
    this.#regions = {
      us: region('us'),
      nz: region('nz'),
      au: region('au'),
      uk: region('uk'),
      eu: region('eu'),
    };
  }

  /** Creates an account in a region. Throws TakenError if its name, upstream id or client id exists there. */
  addAccount(options: AccountOptions): SandboxAccount {
    this.#accountCount += 1;
    const { region } = options;
    const account = new SandboxAccount(this, options, this.#accountCount);
    const { accounts } = this.#regions[region];
    for (const field of ['name', 'id'] as const) {
      if (accounts.some((other) => other[field] === account[field])) {
        throw new TakenError(region, field, account[field]);
      }
    }
    this.checkClientId(region, account.clientId);
    accounts.push(account);
    return account;
  }

  /** Throws TakenError if any credentials in the region have this client id. */
  checkClientId(region: RegionCode, clientId: string): void {
    if (
      this.accounts(region).some(({ credentials }) => credentials.some((one) => one.clientId === clientId))
    ) {
      throw new TakenError(region, 'clientId', clientId);
    }
  }

  /** The accounts of a region, or of all regions, in the order in which they were added. */
  accounts(region?: RegionCode): readonly SandboxAccount[] {
    return region ? this.#regions[region].accounts : REGIONS.flatMap((code) => this.#regions[code].accounts);
  }

  /** The account of a region with this name, client id or upstream id; undefined if there is none. */
  account(region: RegionCode, key: string | number): SandboxAccount | undefined {
    return this.#regions[region].accounts.find(
      (account) => account.name === key || account.clientId === key || account.id === Number(key),
    );
  }

  /** The job of a region with this number, and its account. */
  findJob(
    region: RegionCode,
    jobNumber: number,
  ): { account: SandboxAccount; job: Readonly<JobRecord> } | undefined {
    for (const account of this.#regions[region].accounts) {
      const job = account.job(jobNumber);
      if (job) return { account, job };
    }
    return undefined;
  }

  /** For how long the world keeps earlier versions of jobs and statuses. Default: 0, none. */
  get historyMs(): number {
    return this.#historyMs;
  }

  set historyMs(ms: number) {
    this.#historyMs = ms;
    if (ms > 0) return;
    for (const region of REGIONS) this.#regions[region].pastStatuses = [];
    for (const account of this.accounts()) account.forgetHistory();
  }

  /** By how much the API's clock is ahead, in the dates that it gives to jobs from now on. Default: 0. */
  get clockSkewMs(): number {
    return this.#clockSkewMs;
  }

  set clockSkewMs(ms: number) {
    if (ms === this.#clockSkewMs) return;
    // Reserved jobs are from before.
    for (const account of this.accounts()) account.makeLateJobs();
    this.#clockSkewMs = ms;
  }

  /** Time of the current change (epoch ms): that of `changeAt`, otherwise now. */
  get changeTime(): number {
    return this.#changeTime ?? this.now();
  }

  /** Makes changes that were due at a time (epoch ms). */
  changeAt(at: number, change: () => void): void {
    const outer = this.#changeTime;
    this.#changeTime = at;
    try {
      change();
    } finally {
      this.#changeTime = outer;
    }
  }

  /** A region's job status lookup, in the order of the ids; optionally as it was at a time (epoch ms). */
  statuses(region: RegionCode, at?: number): readonly JobStatus[] {
    const { statuses, pastStatuses } = this.#regions[region];
    return (at !== undefined && pastStatuses.find(({ until }) => until > at)?.statuses) || statuses;
  }

  /** The name of a stage in a region; with a job number, the one that this job gets. */
  statusName(region: RegionCode, stage: Stage, jobNumber?: number): string {
    const { statuses } = this.#regions[region];
    const first = statuses.find((candidate) => candidate.stage === stage);
    if (!first) throw new Error(`No status for ${stage} in ${region}`);
    if (jobNumber === undefined) return first.name;
    const own = statuses.findLast(
      ({ stage: at, every }) => at === stage && every !== undefined && jobNumber % every === 0,
    );
    return (own ?? first).name;
  }

  /**
   * Adds a status to a region's lookup. With `every`, every nth job that reaches the stage automatically gets it. Jobs may have
   * names that are not in the lookup.
   */
  addStatus(region: RegionCode, name: string, stage: Stage, every?: number): JobStatus {
    const { statuses, accounts } = this.#regions[region];
    // Past moves of jobs precede the new status.
    if (every !== undefined) for (const account of accounts) account.makeLateJobs();
    const status = { id: statuses.length + 1, name, stage, ...(every !== undefined && { every }) };
    this.#rememberStatuses(region);
    statuses.push(status);
    return status;
  }

  /** Renames a status of a region, in the lookup and in every job. */
  renameStatus(region: RegionCode, name: string, newName: string): void {
    const status = this.#regions[region].statuses.find((candidate) => candidate.name === name);
    if (!status) throw new Error(`No status ${name} in ${region}`);
    this.#rememberStatuses(region);
    status.name = newName;
    for (const account of this.#regions[region].accounts) account.renameStatus(name, newName);
  }

  #rememberStatuses(region: RegionCode): void {
    if (this.#historyMs === 0) return;
    const state = this.#regions[region];
    const until = this.changeTime;
    state.pastStatuses = state.pastStatuses.filter((past) => past.until > until - this.#historyMs);
    state.pastStatuses.push({ until, statuses: state.statuses.map((status) => ({ ...status })) });
  }

  /** A region's stock, generated on first access. */
  warehouse(region: RegionCode): Warehouse {
    const state = this.#regions[region];
    state.warehouse ??= new Warehouse(region);
    return state.warehouse;
  }

  /** Skips job numbers of a region, as if other accounts had used them. */
  skipJobNumbers(region: RegionCode, count: number): void {
    this.#regions[region].nextJobNumber += count;
  }

  /** Takes the next job number of a region, or the given one. Throws if it exists; later numbers follow it. */
  takeJobNumber(region: RegionCode, wanted?: number): number {
    const state = this.#regions[region];
    let jobNumber = wanted ?? state.nextJobNumber;
    while (wanted === undefined && this.findJob(region, jobNumber)) jobNumber += 1;
    if (this.findJob(region, jobNumber)) {
      throw new Error(`Job ${jobNumber} exists in ${region} already`);
    }
    state.nextJobNumber = Math.max(state.nextJobNumber, jobNumber + 1);
    return jobNumber;
  }

  /** Takes the next ids for job lines of a region and returns the first. */
  takeLineId(region: RegionCode, count = 1): number {
    const state = this.#regions[region];
    state.nextLineId += count;
    return state.nextLineId - count;
  }
}

/**
 * One wholesale account and its jobs. Methods that change a job take effect at once, enforce no rules of the API, because tests
 * also need invalid states, and throw if the account has no such job.
 */
export class SandboxAccount {
  readonly world: World;
  readonly region: RegionCode;
  readonly name: string;
  /** The upstream id; assign another one to change the identity that the tracker reads. */
  id: number;
  /** The first are those that `clientId` and `clientSecret` mean, of an ordinary user. */
  readonly credentials: [Credentials, ...Credentials[]];
  /** The first one owns jobs by default. */
  readonly users: SandboxUser[] = [];
  /** Epoch ms. The generated history of the account precedes it. */
  readonly openedAt: number;
  readonly priceTier: PriceTier;
  readonly withheldProcesses: readonly string[];
  /** How many orders of this account took a promo code, by code. */
  readonly promoUses = new Map<string, number>();
  readonly dateStyle: DateStyle;
  /** Undefined: not yet created. */
  readonly #jobs = new Map<number, JobRecord | undefined>();
  readonly #late = new Map<number, { firstLineId: number; make: () => LateJob }>();
  readonly #list: JobList;
  readonly #ordinal: number;
  readonly #relined = new Set<number>();
  #history: JobHistory | undefined;
  /** A reserved job is being created: its past is no change. */
  #making = false;
  #assets: AssetShelf | undefined;
  #books: AccountLedgers | undefined;

  constructor(world: World, options: AccountOptions, ordinal: number) {
    this.world = world;
    this.region = options.region;
    this.#list = new JobList(options.region, (jobNumber) => this.#get(jobNumber));
    this.name = options.name ?? `${options.region}-account-${ordinal}`;
    this.id = options.id ?? 50_000 + ordinal * 37;
    this.#ordinal = ordinal;
    this.openedAt = world.now();
    this.dateStyle = options.dateStyle ?? world.dateStyle;
    this.priceTier = options.priceTier ?? 'T2';
    this.withheldProcesses = options.withheldProcesses ?? (this.priceTier === 'T1' ? ['EMB'] : []);
    for (const user of options.users ?? [{}]) this.addUser(user);
    this.credentials = [
      {
        clientId: options.clientId ?? `${this.name}-key`,
        clientSecret: options.clientSecret ?? `${this.name}-secret`,
        role: 'user',
        userId: this.users[0]?.id ?? 0,
      },
    ];
  }

  get clientId(): string {
    return this.credentials[0].clientId;
  }

  set clientId(clientId: string) {
    this.credentials[0].clientId = clientId;
  }

  get clientSecret(): string {
    return this.credentials[0].clientSecret;
  }

  /** Rotates the secret of the first credentials: issued tokens remain valid until they expire or are revoked. */
  set clientSecret(clientSecret: string) {
    this.credentials[0].clientSecret = clientSecret;
  }

  /** Address, certificates, cards, payments and shipping, generated on first access. */
  get books(): AccountLedgers {
    this.#books ??= new AccountLedgers(this);
    return this.#books;
  }

  /** Adds a user, after the others. */
  addUser(user: Partial<SandboxUser> = {}): SandboxUser {
    const index = this.users.length;
    const id = user.id ?? this.#freeUserId();
    const added = {
      id,
      userName: user.userName ?? `user${id}`,
      firstName: user.firstName ?? 'Robin',
      lastName: user.lastName ?? `Buyer ${index + 1}`,
      emailAddress: user.emailAddress ?? `user${id}@customer.example`,
      mobile: user.mobile ?? null,
      active: user.active ?? true,
      receiveEmails: user.receiveEmails ?? true,
      textNotifyDispatch: user.textNotifyDispatch ?? false,
      shopUserId: user.shopUserId ?? null,
      usernameLoginOnly: user.usernameLoginOnly ?? false,
      lastLogin: user.lastLogin ?? null,
      loginCount: user.loginCount ?? 0,
      profile: user.profile ?? {},
    };
    this.users.push(added);
    return added;
  }

  /** Removes a user. Its credentials remain valid without a user: `GET /account/user` answers 404. */
  removeUser(userId: number): void {
    const index = this.users.findIndex(({ id }) => id === userId);
    if (index < 0) throw new Error(`Account ${this.name} has no user ${userId}`);
    this.users.splice(index, 1);
  }

  /**
   * Adds credentials of another role. Default user: the account's first one. Throws TakenError if the client id exists in the
   * region.
   */
  addCredentials(options: {
    role: Role;
    clientId?: string;
    clientSecret?: string;
    userId?: number;
  }): Credentials {
    const { role, userId = this.users[0]?.id ?? 0 } = options;
    const clientId = options.clientId ?? `${this.clientId}-${role}`;
    this.world.checkClientId(this.region, clientId);
    const credentials = {
      clientId,
      clientSecret: options.clientSecret ?? `${clientId}-secret`,
      role,
      userId,
    };
    this.credentials.push(credentials);
    return credentials;
  }

  /**
   * Creates a job and returns its number. Defaults: created now, due at the end of the fifth day from now, the first status
   * after artwork, one line, the region's first location.
   */
  createJob(input: JobInput & { jobNumber?: number } = {}): number {
    const jobNumber = this.world.takeJobNumber(this.region, input.jobNumber);
    this.#create(jobNumber, input);
    return jobNumber;
  }

  /** Creates jobs with free numbers that begin with the number of another job. The numbers of later jobs do not follow theirs. */
  createPrefixed(jobNumber: number, count: number): void {
    const first = jobNumber * 10 ** String(count - 1).length;
    for (let [number, created] = [first, 0]; created < count; number++) {
      if (this.world.findJob(this.region, number)) continue;
      this.#create(number, {});
      created += 1;
    }
  }

  /**
   * Reserves a job that `make` creates on first access, and returns its number: most of 20,000 open jobs are not accessed for a
   * long time. Until then only its number, line ids and list state are stored. `make` must always return the same job, with
   * that list state.
   */
  createJobLater(lineCount: number, standing: ListState, make: () => LateJob): number {
    const jobNumber = this.world.takeJobNumber(this.region);
    this.#late.set(jobNumber, { firstLineId: this.world.takeLineId(this.region, lineCount), make });
    this.#jobs.set(jobNumber, undefined);
    this.#relined.add(jobNumber);
    this.#list.expect(jobNumber, this.#placeOf(standing));
    return jobNumber;
  }

  /** Creates all reserved jobs, before a change that would affect their creation. */
  makeLateJobs(): void {
    for (const jobNumber of this.#late.keys()) this.#make(jobNumber);
  }

  #make(jobNumber: number): JobRecord | undefined {
    const late = this.#late.get(jobNumber);
    if (!late) return undefined;
    this.#late.delete(jobNumber);
    const { input, live } = late.make();
    const lines = input.lines.map((line, index) => ({ ...line, jobLineId: late.firstLineId + index }));
    this.#making = true;
    try {
      const job = this.#create(jobNumber, { ...input, lines });
      live();
      return job;
    } finally {
      this.#making = false;
    }
  }

  #create(jobNumber: number, input: JobInput): JobRecord {
    const now = this.world.now();
    const location = input.location === undefined ? LOCATIONS[this.region][0] : input.location;
    const status = this.world.statusName(this.region, 'intake');
    const job: JobRecord = {
      jobNumber,
      phase: 'open',
      masterJobStatus: status,
      jobStatus: status,
      description: `Transfer print ${jobNumber}`,
      comments: null,
      orderNumber: `PO-${jobNumber % 10_000}`,
      originCode: 'API',
      creator: this.users[0]?.userName ?? null,
      userId: this.users[0]?.id ?? 0,
      dateIn: '',
      dateDue: null,
      dateOut: null,
      inMs: Number.NaN,
      dueMs: Number.NaN,
      outMs: Number.NaN,
      mustDate: false,
      invoiceNumber: null,
      orderGroup: null,
      orderGroupSequence: null,
      taxTotal: 0,
      isCancelable: undefined,
      permissions: undefined,
      location,
      lines: [],
      tracking: [],
      client: this.name,
      tags: [],
      deliveryOption: null,
      deliveryAddress: null,
      costs: null,
      shop: null,
      invoiceStored: false,
      hidden: false,
      keptListed: false,
      listOverride: undefined,
      detailOverride: undefined,
    };
    this.#remember(jobNumber, undefined);
    this.#jobs.set(jobNumber, job);
    const inFiveDays = () => formatDay(now + 5 * DAY_MS, location?.timezone ?? null, this.dateStyle);
    this.#assign(job, {
      ...input,
      dateIn: this.#serverTime(input.dateIn ?? now),
      dateDue: input.dateDue === undefined ? inFiveDays() : input.dateDue,
      lines: input.lines ?? [{}],
    });
    this.#place(job);
    return job;
  }

  /** Changes any field, including those that the API does not allow customers to change. */
  edit(jobNumber: number, input: JobInput): void {
    const job = this.#change(jobNumber);
    this.#assign(job, input);
    this.#place(job);
  }

  /** Sets the status in list and detail alike, or each of them (`master`, `detail`) apart. */
  setStatus(
    jobNumber: number,
    status: string | null | { master?: string | null; detail?: string | null },
  ): void {
    const job = this.#change(jobNumber);
    const whole = status === null || typeof status === 'string';
    const { master, detail } = whole ? { master: status, detail: status } : status;
    if (master !== undefined) job.masterJobStatus = master;
    if (detail !== undefined) job.jobStatus = detail;
    this.#place(job);
  }

  /** Renames a status in every job and line. */
  renameStatus(name: string, newName: string): void {
    const renamed = (status: string | null): string | null => (status === name ? newName : status);
    for (const { jobNumber, masterJobStatus, jobStatus, lines } of this.jobs()) {
      if (lines.some(({ jobLineStatus }) => jobLineStatus === name)) {
        for (const line of this.#change(jobNumber).lines) line.jobLineStatus = renamed(line.jobLineStatus);
      }
      if (masterJobStatus !== name && jobStatus !== name) continue;
      this.setStatus(jobNumber, { master: renamed(masterJobStatus), detail: renamed(jobStatus) });
    }
  }

  /** Sets the status of a line (0-based). */
  setLineStatus(jobNumber: number, lineIndex: number, status: string | null): void {
    const line = this.#change(jobNumber).lines[lineIndex];
    if (!line) throw new Error(`Job ${jobNumber} has no line ${lineIndex}`);
    line.jobLineStatus = status;
  }

  /** Dispatches a job: sets `dateOut` (default: now), which locks editing. Tracking and status change only if given. */
  dispatch(
    jobNumber: number,
    options: { dateOut?: When; tracking?: TrackingEntry[]; status?: string } = {},
  ): void {
    this.edit(jobNumber, { ...options, dateOut: this.#serverTime(options.dateOut ?? this.world.now()) });
  }

  /** Changes the `dateOut` of a dispatched job. */
  correctDateOut(jobNumber: number, dateOut: When): void {
    this.edit(jobNumber, { dateOut });
  }

  /** Reverts a dispatch: `dateOut` is null again. */
  clearDateOut(jobNumber: number): void {
    this.edit(jobNumber, { dateOut: null });
  }

  /** Adds a parcel. */
  addTracking(jobNumber: number, entry: Partial<TrackingEntry>): void {
    const tracking = [...this.#get(jobNumber).tracking];
    tracking.push({ trackingNumber: entry.trackingNumber ?? null, trackingLink: entry.trackingLink ?? null });
    this.edit(jobNumber, { tracking });
  }

  /** Replaces all parcels. */
  setTracking(jobNumber: number, tracking: TrackingEntry[]): void {
    this.edit(jobNumber, { tracking });
  }

  /** Removes the parcel with this number, or all of them. */
  removeTracking(jobNumber: number, trackingNumber?: string): void {
    const { tracking } = this.#get(jobNumber);
    this.edit(jobNumber, {
      tracking:
        trackingNumber === undefined
          ? []
          : tracking.filter((entry) => entry.trackingNumber !== trackingNumber),
    });
  }

  /** Stores an invoice: its number, and its file (available after dispatch or closing) unless `file` is false. */
  invoice(jobNumber: number, options: { invoiceNumber?: string; file?: boolean } = {}): void {
    this.#change(jobNumber).invoiceStored = options.file ?? true;
    this.edit(jobNumber, { invoiceNumber: options.invoiceNumber ?? `INV-${jobNumber}` });
  }

  /** Closes a job: it leaves the active list, and only includeClosedJobs lists it. The status changes only if given. */
  close(jobNumber: number, options: { status?: string } = {}): void {
    this.#setPhase(jobNumber, 'closed', options.status);
  }

  /** Cancels a job: no list contains it. Default status: the region's name for cancelled. */
  cancel(jobNumber: number, options: { status?: string } = {}): void {
    this.#setPhase(jobNumber, 'cancelled', options.status ?? this.world.statusName(this.region, 'cancelled'));
  }

  /** Returns a closed, cancelled or departed job to the active list. `dateOut` stays; the status changes only if given. */
  reopen(jobNumber: number, options: { status?: string } = {}): void {
    this.#change(jobNumber).keptListed = true;
    this.#setPhase(jobNumber, 'open', options.status);
  }

  /** Forbids editing until `unlock`, or until dispatch, closing or cancellation, which lock the job themselves. */
  lock(jobNumber: number, reason = 'The job is being worked on.'): void {
    const job = this.#change(jobNumber);
    job.permissions = { canEdit: false, lockedReason: reason };
    this.#place(job);
  }

  /** Allows editing in any phase, until the next dispatch, closing or cancellation. */
  unlock(jobNumber: number): void {
    const job = this.#change(jobNumber);
    job.permissions = { canEdit: true, lockedReason: null };
    this.#place(job);
  }

  /** Reverts `lock` or `unlock`: dispatch, closing and cancellation lock editing. */
  freeEditing(jobNumber: number): void {
    const job = this.#change(jobNumber);
    job.permissions = undefined;
    this.#place(job);
  }

  /** Sets the artwork URL of a line (0-based). */
  supplyArtwork(jobNumber: number, lineIndex: number, url: string): void {
    const line = this.#change(jobNumber).lines[lineIndex];
    if (!line) throw new Error(`Job ${jobNumber} has no line ${lineIndex}`);
    line.artworkUrl = url;
    line.needsArtwork = false;
    line.artworkTries = 0;
    line.artworkReason = null;
  }

  /** Records an attempt to fetch the artwork of all lines with a URL; `reason` is null if it succeeded. */
  noteArtwork(jobNumber: number, url: string, reason: string | null): void {
    for (const line of this.#change(jobNumber).lines) {
      if (line.artworkUrl !== url) continue;
      line.artworkTries += 1;
      line.artworkReason = reason;
    }
  }

  /** Removes a job from every list while its detail still answers, as page drift does. */
  hide(jobNumber: number): void {
    const job = this.#change(jobNumber);
    job.hidden = true;
    this.#place(job);
  }

  /** Lists a hidden job again. */
  unhide(jobNumber: number): void {
    const job = this.#change(jobNumber);
    job.hidden = false;
    this.#place(job);
  }

  /** Deletes a job: its detail answers 404. */
  remove(jobNumber: number): void {
    const job = this.#change(jobNumber);
    this.#jobs.delete(jobNumber);
    this.#relined.delete(jobNumber);
    this.#assets?.forget(job);
    this.#place(job);
  }

  /**
   * Overrides fields of the list entry or the detail: wrong types, unknown fields, contradictions between the two. A field set
   * to undefined is omitted. Replaces earlier overrides; `{}` removes them.
   */
  override(
    jobNumber: number,
    fields: { list?: Record<string, unknown>; detail?: Record<string, unknown> },
  ): void {
    const job = this.#change(jobNumber);
    job.listOverride = fields.list;
    job.detailOverride = fields.detail;
    this.#place(job);
  }

  /** The stored job, or undefined. Read-only. */
  job(jobNumber: number): Readonly<JobRecord> | undefined {
    return this.#find(jobNumber);
  }

  /** All jobs in order of creation, including those in no list. Read-only. */
  *jobs(): Iterable<Readonly<JobRecord>> {
    for (const jobNumber of this.#jobs.keys()) yield this.#get(jobNumber);
  }

  /** Number of jobs in all phases. */
  get jobCount(): number {
    return this.#jobs.size;
  }

  /** Returns the jobs whose lines are new or were replaced since the last call, for the asset index. */
  takeRelined(): readonly Readonly<JobRecord>[] {
    const jobs = [...this.#relined].map((jobNumber) => this.#get(jobNumber));
    this.#relined.clear();
    return jobs;
  }

  /** The account's prints, which can be reordered. */
  get assets(): AssetShelf {
    this.#assets ??= new AssetShelf(this);
    return this.#assets;
  }

  /** The numbers of the jobs in the active list, ascending. */
  activeJobNumbers(): number[] {
    return this.#list.activeJobNumbers();
  }

  /** How many jobs the active list has now. */
  get activeCount(): number {
    return this.#list.activeCount;
  }

  /** The job's current list entry, or undefined. */
  jobListEntry(jobNumber: number): ActiveJobDto | undefined {
    const job = this.#find(jobNumber);
    return job && JSON.parse(listEntryJson(job, this.world.now()));
  }

  /** The job's detail at a time (epoch ms), now by default; undefined if there was no such job. */
  jobDetail(jobNumber: number, at = this.world.now()): JobDto | undefined {
    const version = this.#history?.versionAt(jobNumber, at);
    const job = version ? version.past?.job : this.#find(jobNumber);
    return job && { ...jobDto(job, this, at), ...job.detailOverride };
  }

  /**
   * Cuts a page from the job list at a time (epoch ms), now by default. A page beyond the last is empty. The caller has checked
   * the parameters.
   */
  listJobs(query: JobsQuery, at = this.world.now()): JobsPage {
    return this.#list.page(query, at, this.#history?.changedSince(at));
  }

  /** Forgets the earlier versions of all jobs. */
  forgetHistory(): void {
    this.#history = undefined;
  }

  /** Counts a login of a user, if it exists. */
  noteLogin(userId: number): void {
    const user = this.users.find(({ id }) => id === userId);
    if (!user) return;
    user.lastLogin = this.world.now();
    user.loginCount += 1;
  }

  /** Users of one account have consecutive ids, for up to a hundred users. */
  #freeUserId(): number {
    const taken = new Set(this.users.map(({ id }) => id));
    const nth = (index: number) =>
      index < 100 ? 900_000 + this.#ordinal * 100 + index : 10_000_000 + this.#ordinal * 10_000 + index;
    let index = this.users.length;
    while (taken.has(nth(index))) index += 1;
    return nth(index);
  }

  #get(jobNumber: number): JobRecord {
    const job = this.#find(jobNumber);
    if (!job) throw new Error(`Account ${this.name} has no job ${jobNumber}`);
    return job;
  }

  /** A time by the clock of the API; text is served unchanged. */
  #serverTime(when: When): When {
    return typeof when === 'number' ? when + this.world.clockSkewMs : when;
  }

  /** Returns a job that is about to change. */
  #change(jobNumber: number): JobRecord {
    const job = this.#get(jobNumber);
    this.#remember(jobNumber, job);
    return job;
  }

  /** Stores the current version of a job, or its absence, if the world keeps history. */
  #remember(jobNumber: number, job: JobRecord | undefined): void {
    const { historyMs, changeTime } = this.world;
    if (historyMs === 0 || this.#making) return;
    this.#history ??= new JobHistory();
    this.#history.record(
      jobNumber,
      () => job && { job: copyJob(job), where: this.#currentPlace(job) },
      changeTime,
      historyMs,
    );
  }

  #find(jobNumber: number): JobRecord | undefined {
    return this.#jobs.get(jobNumber) ?? this.#make(jobNumber);
  }

  #setPhase(jobNumber: number, phase: JobPhase, status: string | undefined): void {
    const job = this.#change(jobNumber);
    // The phase locks the job from here on.
    if (phase !== 'open' && phase !== job.phase) job.permissions = undefined;
    job.phase = phase;
    this.edit(jobNumber, status === undefined ? {} : { status });
  }

  #assign(job: JobRecord, input: JobInput): void {
    const { status, dateIn, dateDue, dateOut, lines, tracking } = input;
    if (status !== undefined) {
      job.masterJobStatus = status;
      job.jobStatus = status;
    }
    const fields = job as unknown as Record<string, unknown>;
    for (const key in input) {
      const value = input[key as keyof JobInput];
      if (value !== undefined && !WRITTEN_APART.has(key)) fields[key] = value;
    }
    const zone = job.location?.timezone ?? null;
    const write = (when: When) =>
      typeof when === 'number' ? formatTimestamp(when, zone, this.dateStyle) : when;
    // A value with an offset is exact; local time alone can be ambiguous.
    const read = (when: When, text: string) =>
      typeof when === 'number' && this.dateStyle !== 'local' ? when : parseTimestamp(text, zone);
    if (dateIn !== undefined) {
      job.dateIn = write(dateIn);
      job.inMs = read(dateIn, job.dateIn);
    }
    if (dateDue !== undefined) {
      job.dateDue = dateDue === null ? null : write(dateDue);
      job.dueMs = job.dateDue === null ? Number.NaN : parseDue(job.dateDue, zone).byMs;
    }
    if (dateOut !== undefined) {
      // A dispatch overrides `lock` and `unlock`.
      if (dateOut !== null && job.dateOut === null) job.permissions = undefined;
      job.dateOut = dateOut === null ? null : write(dateOut);
      job.outMs = dateOut === null || job.dateOut === null ? Number.NaN : read(dateOut, job.dateOut);
    }
    if (tracking) job.tracking = tracking.map((entry) => ({ ...entry }));
    if (lines) {
      job.lines = lines.map((line, index) => this.#line(job, line, index));
      this.#relined.add(job.jobNumber);
    }
  }

  #line(job: JobRecord, line: Partial<JobLine>, index: number): JobLine {
    const jobLineId = line.jobLineId ?? this.world.takeLineId(this.region);
    return {
      jobLineId,
      assetSku: `AS${jobLineId}`,
      processCode: 'UC',
      garment: null,
      description: job.description,
      comments: null,
      quantity: 24,
      unitPrice: 2.4,
      customerReference: `LINE-${index + 1}`,
      image: `line-${jobLineId}`,
      gang: null,
      jobLineStatus: job.jobStatus,
      itemType: null,
      code: null,
      artworkUrl: null,
      needsArtwork: false,
      artworkTries: 0,
      artworkReason: null,
      ...line,
    };
  }

  /** Moves a changed job to its place in the lists and clears cached values. */
  #place(job: JobRecord): void {
    this.#list.place(job, this.#currentPlace(job));
  }

  #currentPlace({ jobNumber, phase, dateOut, keptListed, hidden }: JobRecord): Place {
    if (hidden || !this.#jobs.has(jobNumber)) return 'nowhere';
    return this.#placeOf({ phase, dispatched: dateOut !== null, keptListed });
  }

  #placeOf({ phase, dispatched, keptListed }: ListState): Place {
    if (phase === 'cancelled') return 'nowhere';
    const departed = this.world.leavesListOnDispatch && dispatched && !keptListed;
    return phase === 'open' && !departed ? 'active' : 'closed';
  }
}

/** Fields of an input that are not copied unchanged. */
const WRITTEN_APART = new Set(['jobNumber', 'status', 'dateIn', 'dateDue', 'dateOut', 'lines', 'tracking']);
