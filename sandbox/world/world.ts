// The sandbox's state: the accounts and jobs of a made-up ordering service, and every way to change them.

import { AssetShelf } from './asset-files.ts';
import { DAY_MS, type DateStyle, readDue, readInstant, writeDay, writeInstant } from './dates.ts';
import { JobList, type JobsPage, type JobsQuery, listEntryJson, type Place } from './joblist.ts';
import { AccountBooks } from './ledgers.ts';
import type {
  AccountOptions,
  Closure,
  Credentials,
  JobInput,
  JobLine,
  JobPhase,
  JobRecord,
  LateJob,
  PriceTier,
  Role,
  SandboxUser,
  Standing,
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

/** Makes an empty world: five regions, no accounts. */
export function createWorld(options: WorldOptions = {}): World {
  return new World(options);
}

/** Something that is unique in a region belongs to an account there already. */
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
  warehouse: Warehouse | undefined;
}

/** All regions with their accounts. Made by `createWorld`. */
export class World {
  readonly now: () => number;
  readonly leavesListOnDispatch: boolean;
  readonly dateStyle: DateStyle;
  /** Where links to files begin; a sandbox that is started serves them itself. */
  filesUrl = 'https://files.transfers.example';
  /** Add to it to show factories that are shut: ship dates come later, or there are none. */
  readonly closures: Closure[] = [];
  readonly #regions: Record<RegionCode, RegionState>;
  #accountCount = 0;

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

  /** Opens an account in a region. Throws TakenError when its name, upstream id or client id is another's there. */
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

  /** Throws TakenError when credentials in the region, of whatever account and role, have this client id. */
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

  /** The account of a region with this name, client id or upstream id, if there is one. */
  account(region: RegionCode, key: string | number): SandboxAccount | undefined {
    return this.#regions[region].accounts.find(
      (account) => account.name === key || account.clientId === key || account.id === Number(key),
    );
  }

  /** The job of a region with this number, and whose it is. */
  jobOf(
    region: RegionCode,
    jobNumber: number,
  ): { account: SandboxAccount; job: Readonly<JobRecord> } | undefined {
    for (const account of this.#regions[region].accounts) {
      const job = account.job(jobNumber);
      if (job) return { account, job };
    }
    return undefined;
  }

  /** A region's job status lookup, in the order of the ids. */
  statuses(region: RegionCode): readonly JobStatus[] {
    return this.#regions[region].statuses;
  }

  /** The name a region has for a stage of a job's life; with a job number, the one that this job gets. */
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
   * Adds a status to a region's lookup. With `every`, so many jobs that come to the stage by themselves get it: every
   * second, every third. A job may be given any other name too: nothing checks it against the lookup.
   */
  addStatus(region: RegionCode, name: string, stage: Stage, every?: number): JobStatus {
    const { statuses, accounts } = this.#regions[region];
    // What jobs have behind them was before.
    if (every !== undefined) for (const account of accounts) account.makeLateJobs();
    const status = { id: statuses.length + 1, name, stage, ...(every !== undefined && { every }) };
    statuses.push(status);
    return status;
  }

  /** Gives a status of a region's lookup another name, in the lookup and in every job of the region. */
  renameStatus(region: RegionCode, name: string, newName: string): void {
    const status = this.#regions[region].statuses.find((candidate) => candidate.name === name);
    if (!status) throw new Error(`No status ${name} in ${region}`);
    status.name = newName;
    for (const account of this.#regions[region].accounts) account.renameStatus(name, newName);
  }

  /** A region's stocked goods, made when they are first asked for. */
  warehouse(region: RegionCode): Warehouse {
    const state = this.#regions[region];
    state.warehouse ??= new Warehouse(region);
    return state.warehouse;
  }

  /** Leaves out job numbers of a region, as if other accounts had taken them. */
  skipJobNumbers(region: RegionCode, count: number): void {
    this.#regions[region].nextJobNumber += count;
  }

  /** Takes the next job number of a region, or a given one, which then must be free in it; later ones come after it. */
  takeJobNumber(region: RegionCode, wanted?: number): number {
    const state = this.#regions[region];
    const jobNumber = wanted ?? state.nextJobNumber;
    if (this.jobOf(region, jobNumber)) {
      throw new Error(`Job ${jobNumber} exists in ${region} already`);
    }
    state.nextJobNumber = Math.max(state.nextJobNumber, jobNumber + 1);
    return jobNumber;
  }

  /** Takes the next id for a job line of a region; the first of them, when it is for several. */
  takeLineId(region: RegionCode, count = 1): number {
    const state = this.#regions[region];
    state.nextLineId += count;
    return state.nextLineId - count;
  }
}

/**
 * One wholesale account and its jobs. Every method that changes a job takes effect at once, checks none of the service's
 * rules (a test may want the impossible), and throws when the account has no such job.
 */
export class SandboxAccount {
  readonly world: World;
  readonly region: RegionCode;
  readonly name: string;
  /** The upstream id; assign another to show the tracker a changed identity. */
  id: number;
  /** The first are those that `clientId` and `clientSecret` mean, of an ordinary user. */
  readonly credentials: [Credentials, ...Credentials[]];
  /** The first one owns jobs unless told otherwise. */
  readonly users: SandboxUser[] = [];
  /** Epoch ms. What the account has been through was before. */
  readonly openedAt: number;
  readonly priceTier: PriceTier;
  readonly withheldProcesses: readonly string[];
  /** How many orders of this account took a promo code, by code. */
  readonly promoUses = new Map<string, number>();
  readonly dateStyle: DateStyle;
  /** Undefined: yet to be made. */
  readonly #jobs = new Map<number, JobRecord | undefined>();
  readonly #late = new Map<number, { firstLineId: number; make: () => LateJob }>();
  readonly #list: JobList;
  readonly #ordinal: number;
  readonly #relined = new Set<number>();
  #assets: AssetShelf | undefined;
  #books: AccountBooks | undefined;

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

  /** Rotates the secret of the first credentials: tokens already issued live on until they expire or are revoked. */
  set clientSecret(clientSecret: string) {
    this.credentials[0].clientSecret = clientSecret;
  }

  /** What the service's office keeps of the account, made up when it is first asked for. */
  get books(): AccountBooks {
    this.#books ??= new AccountBooks(this);
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

  /** Removes a user. Credentials that act as this one live on, as nobody's: `GET /account/user` answers 404. */
  removeUser(userId: number): void {
    const index = this.users.findIndex(({ id }) => id === userId);
    if (index < 0) throw new Error(`Account ${this.name} has no user ${userId}`);
    this.users.splice(index, 1);
  }

  /**
   * Adds credentials of another role, which act as the account's first user unless told otherwise. Throws TakenError when the
   * client id is that of other credentials in the region.
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
   * Creates a job and returns its number. Left out: created now, due at the end of the fifth day from now, first status of
   * the region's lookup that follows artwork, one line, the region's first location.
   */
  createJob(input: JobInput & { jobNumber?: number } = {}): number {
    const jobNumber = this.world.takeJobNumber(this.region, input.jobNumber);
    this.#create(jobNumber, input);
    return jobNumber;
  }

  /**
   * Creates a job that is made only when it is first looked at, and returns its number: of 20,000 open jobs most are not for
   * a long time. Until then it is known by its number, the ids of so many lines and its standing. What `make` tells must be
   * the same whenever it is called, and have that standing.
   */
  createJobLater(lineCount: number, standing: Standing, make: () => LateJob): number {
    const jobNumber = this.world.takeJobNumber(this.region);
    this.#late.set(jobNumber, { firstLineId: this.world.takeLineId(this.region, lineCount), make });
    this.#jobs.set(jobNumber, undefined);
    this.#relined.add(jobNumber);
    this.#list.expect(jobNumber, this.#placeOf(standing));
    return jobNumber;
  }

  /** Makes the jobs that nobody has looked at yet: before something changes that they would be made with. */
  makeLateJobs(): void {
    for (const jobNumber of this.#late.keys()) this.#make(jobNumber);
  }

  #make(jobNumber: number): JobRecord | undefined {
    const late = this.#late.get(jobNumber);
    if (!late) return undefined;
    this.#late.delete(jobNumber);
    const { input, live } = late.make();
    const lines = input.lines.map((line, index) => ({ ...line, jobLineId: late.firstLineId + index }));
    const job = this.#create(jobNumber, { ...input, lines });
    live();
    return job;
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
    this.#jobs.set(jobNumber, job);
    const inFiveDays = () => writeDay(now + 5 * DAY_MS, location?.timezone ?? null, this.dateStyle);
    this.#assign(job, {
      ...input,
      dateIn: input.dateIn ?? now,
      dateDue: input.dateDue === undefined ? inFiveDays() : input.dateDue,
      lines: input.lines ?? [{}],
    });
    this.#place(job);
    return job;
  }

  /** Changes any field, the ones customers amend and the ones they cannot. */
  edit(jobNumber: number, input: JobInput): void {
    const job = this.#get(jobNumber);
    this.#assign(job, input);
    this.#place(job);
  }

  /** Sets the status in list and detail alike, or each of them (`master`, `detail`) apart. */
  setStatus(
    jobNumber: number,
    status: string | null | { master?: string | null; detail?: string | null },
  ): void {
    const job = this.#get(jobNumber);
    const whole = status === null || typeof status === 'string';
    const { master, detail } = whole ? { master: status, detail: status } : status;
    if (master !== undefined) job.masterJobStatus = master;
    if (detail !== undefined) job.jobStatus = detail;
    this.#place(job);
  }

  /** Every job and line with one status name gets another. */
  renameStatus(name: string, newName: string): void {
    const renamed = (status: string | null): string | null => (status === name ? newName : status);
    for (const { jobNumber, masterJobStatus, jobStatus, lines } of this.jobs()) {
      for (const line of lines) line.jobLineStatus = renamed(line.jobLineStatus);
      if (masterJobStatus !== name && jobStatus !== name) continue;
      this.setStatus(jobNumber, { master: renamed(masterJobStatus), detail: renamed(jobStatus) });
    }
  }

  /** Sets the status of one line (0-based). */
  setLineStatus(jobNumber: number, lineIndex: number, status: string | null): void {
    const line = this.#get(jobNumber).lines[lineIndex];
    if (!line) throw new Error(`Job ${jobNumber} has no line ${lineIndex}`);
    line.jobLineStatus = status;
  }

  /** Ships a job: sets `dateOut` (now by default), which locks editing; tracking and status only when given. */
  dispatch(
    jobNumber: number,
    options: { dateOut?: When; tracking?: TrackingEntry[]; status?: string } = {},
  ): void {
    this.edit(jobNumber, { ...options, dateOut: options.dateOut ?? this.world.now() });
  }

  /** Gives a dispatched job another `dateOut`. */
  correctDateOut(jobNumber: number, dateOut: When): void {
    this.edit(jobNumber, { dateOut });
  }

  /** Takes a dispatch back: `dateOut` is null again. */
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

  /** Stores an invoice: its number, and a file (shown once the job is dispatched or closed) unless `file` is false. */
  invoice(jobNumber: number, options: { invoiceNumber?: string; file?: boolean } = {}): void {
    this.#get(jobNumber).invoiceStored = options.file ?? true;
    this.edit(jobNumber, { invoiceNumber: options.invoiceNumber ?? `INV-${jobNumber}` });
  }

  /** Closes a job: it leaves the active list and is found with includeClosedJobs only. The status moves only when given. */
  close(jobNumber: number, options: { status?: string } = {}): void {
    this.#setPhase(jobNumber, 'closed', options.status);
  }

  /** Cancels a job: it is in no list any more. Its status becomes the region's word for cancelled unless another is given. */
  cancel(jobNumber: number, options: { status?: string } = {}): void {
    this.#setPhase(jobNumber, 'cancelled', options.status ?? this.world.statusName(this.region, 'cancelled'));
  }

  /** Brings a closed, cancelled or departed job back to the active list. `dateOut` stays; the status moves only when given. */
  reopen(jobNumber: number, options: { status?: string } = {}): void {
    this.#get(jobNumber).keptListed = true;
    this.#setPhase(jobNumber, 'open', options.status);
  }

  /** Forbids editing, until it is allowed or the job is dispatched, closed or cancelled, which locks it by itself. */
  lock(jobNumber: number, reason = 'The job is being worked on.'): void {
    const job = this.#get(jobNumber);
    job.permissions = { canEdit: false, lockedReason: reason };
    this.#place(job);
  }

  /** Allows editing, even of a job whose phase would forbid it, until it is dispatched, closed or cancelled next. */
  unlock(jobNumber: number): void {
    const job = this.#get(jobNumber);
    job.permissions = { canEdit: true, lockedReason: null };
    this.#place(job);
  }

  /** Ends what `lock` or `unlock` said: editing locks at dispatch, closing and cancellation. */
  freeEditing(jobNumber: number): void {
    const job = this.#get(jobNumber);
    job.permissions = undefined;
    this.#place(job);
  }

  /** Says where the artwork of a line (0-based) is. */
  supplyArtwork(jobNumber: number, lineIndex: number, url: string): void {
    const line = this.#get(jobNumber).lines[lineIndex];
    if (!line) throw new Error(`Job ${jobNumber} has no line ${lineIndex}`);
    line.artworkUrl = url;
    line.needsArtwork = false;
    line.artworkTries = 0;
    line.artworkReason = null;
  }

  /** Notes that artwork was asked for, for all lines that have it at an address; `reason` is null when it was found. */
  noteArtwork(jobNumber: number, url: string, reason: string | null): void {
    for (const line of this.#get(jobNumber).lines) {
      if (line.artworkUrl !== url) continue;
      line.artworkTries += 1;
      line.artworkReason = reason;
    }
  }

  /** Makes a job vanish from every list while its detail still answers as before: what page drift looks like. */
  hide(jobNumber: number): void {
    const job = this.#get(jobNumber);
    job.hidden = true;
    this.#place(job);
  }

  /** Lists a hidden job again. */
  unhide(jobNumber: number): void {
    const job = this.#get(jobNumber);
    job.hidden = false;
    this.#place(job);
  }

  /** Deletes a job: its detail answers 404. */
  remove(jobNumber: number): void {
    const job = this.#get(jobNumber);
    this.#jobs.delete(jobNumber);
    this.#relined.delete(jobNumber);
    this.#assets?.forget(job);
    this.#place(job);
  }

  /**
   * Lays fields over what the list entry or the detail shows: wrong types, unknown new fields, disagreement between the two.
   * A field set to undefined is left out of the answer. Replaces earlier overrides; `{}` ends them.
   */
  override(
    jobNumber: number,
    fields: { list?: Record<string, unknown>; detail?: Record<string, unknown> },
  ): void {
    const job = this.#get(jobNumber);
    job.listOverride = fields.list;
    job.detailOverride = fields.detail;
    this.#place(job);
  }

  /** The job as the world keeps it, or undefined; to look at, not to change. */
  job(jobNumber: number): Readonly<JobRecord> | undefined {
    return this.#find(jobNumber);
  }

  /** All jobs in the order in which they were created, those in no list too; to look at, not to change. */
  *jobs(): Iterable<Readonly<JobRecord>> {
    for (const jobNumber of this.#jobs.keys()) yield this.#get(jobNumber);
  }

  /** How many jobs there are, in whatever phase. */
  get jobCount(): number {
    return this.#jobs.size;
  }

  /** The jobs whose lines are new or were replaced since this was last asked; for the shelf, which files what they name. */
  takeRelined(): readonly Readonly<JobRecord>[] {
    const jobs = [...this.#relined].map((jobNumber) => this.#get(jobNumber));
    this.#relined.clear();
    return jobs;
  }

  /** The prints it has had made, which can be made again. */
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

  /** The job's entry as the list would show it now, or undefined. */
  jobListEntry(jobNumber: number): ActiveJobDto | undefined {
    const job = this.#find(jobNumber);
    return job && JSON.parse(listEntryJson(job, this.world.now()));
  }

  /** The job's detail as it would be served now, or undefined. */
  jobDetail(jobNumber: number): JobDto | undefined {
    const job = this.#find(jobNumber);
    return job && { ...jobDto(job, this, this.world.now()), ...job.detailOverride };
  }

  /** Cuts a page from the job list. A page beyond the last is empty. The caller has checked the parameters. */
  listJobs(query: JobsQuery): JobsPage {
    return this.#list.page(query, this.world.now());
  }

  /** Counts a login of a user, if there still is such a one. */
  noteLogin(userId: number): void {
    const user = this.users.find(({ id }) => id === userId);
    if (!user) return;
    user.lastLogin = this.world.now();
    user.loginCount += 1;
  }

  /** Users of one account stand together, as long as they are fewer than a hundred. */
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

  #find(jobNumber: number): JobRecord | undefined {
    return this.#jobs.get(jobNumber) ?? this.#make(jobNumber);
  }

  #setPhase(jobNumber: number, phase: JobPhase, status: string | undefined): void {
    const job = this.#get(jobNumber);
    // What was said before no longer holds: from here on the phase locks it.
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
      typeof when === 'number' ? writeInstant(when, zone, this.dateStyle) : when;
    // What was written with its offset is read as it was; local time alone can be ambiguous.
    const read = (when: When, text: string) =>
      typeof when === 'number' && this.dateStyle !== 'local' ? when : readInstant(text, zone);
    if (dateIn !== undefined) {
      job.dateIn = write(dateIn);
      job.inMs = read(dateIn, job.dateIn);
    }
    if (dateDue !== undefined) {
      job.dateDue = dateDue === null ? null : write(dateDue);
      job.dueMs = job.dateDue === null ? Number.NaN : readDue(job.dateDue, zone).byMs;
    }
    if (dateOut !== undefined) {
      // A dispatch locks editing, whatever was said before.
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

  /** Puts a job that changed where it belongs in the lists, and forgets what was remembered of it. */
  #place(job: JobRecord): void {
    const { jobNumber, phase, dateOut, keptListed } = job;
    const listed = this.#jobs.has(jobNumber) && !job.hidden;
    const place = this.#placeOf({ phase, dispatched: dateOut !== null, keptListed });
    this.#list.place(job, listed ? place : 'nowhere');
  }

  #placeOf({ phase, dispatched, keptListed }: Standing): Place {
    if (phase === 'cancelled') return 'nowhere';
    const departed = this.world.leavesListOnDispatch && dispatched && !keptListed;
    return phase === 'open' && !departed ? 'active' : 'closed';
  }
}

/** What of an input is not taken over as it is. */
const WRITTEN_APART = new Set(['jobNumber', 'status', 'dateIn', 'dateDue', 'dateOut', 'lines', 'tracking']);
