// The sandbox's state: the accounts and jobs of a made-up ordering service, and every way to change them.

import { type DateStyle, dueInstant, readInstant, writeDay, writeInstant } from './dates.ts';
import { JobList, type JobsPage, type JobsQuery, listEntryJson } from './joblist.ts';
import {
  FIRST_JOB_NUMBER,
  type JobStatus,
  LOCATIONS,
  type Location,
  REGIONS,
  type RegionCode,
  STATUS_NAMES,
  type Stage,
} from './regions.ts';
import { type ActiveJobDto, type JobDto, jobDto } from './views.ts';

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
  /** What `lock` or `unlock` said; undefined: editing locks at dispatch, closing and cancellation. */
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
  dateStyle?: DateStyle;
}

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

/** Makes an empty world: five regions, no accounts. */
export function createWorld(options: WorldOptions = {}): World {
  return new World(options);
}

interface RegionState {
  nextJobNumber: number;
  nextLineId: number;
  accounts: SandboxAccount[];
  statuses: JobStatus[];
}

/** All regions with their accounts. Made by `createWorld`. */
export class World {
  readonly now: () => number;
  readonly leavesListOnDispatch: boolean;
  readonly dateStyle: DateStyle;
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
    });
    this.#regions = {
      us: region('us'),
      nz: region('nz'),
      au: region('au'),
      uk: region('uk'),
      eu: region('eu'),
    };
  }

  /** Opens an account in a region. Throws when its name or client id is taken there. */
  addAccount(options: AccountOptions): SandboxAccount {
    this.#accountCount += 1;
    const account = new SandboxAccount(this, options, this.#accountCount);
    const { accounts } = this.#regions[options.region];
    if (accounts.some((other) => other.name === account.name || other.clientId === account.clientId)) {
      throw new Error(`Account ${account.name} (${account.clientId}) exists in ${options.region} already`);
    }
    accounts.push(account);
    return account;
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

  /** A region's job status lookup, in the order of the ids. */
  statuses(region: RegionCode): readonly JobStatus[] {
    return this.#regions[region].statuses;
  }

  /** The name a region has for a stage of a job's life. */
  statusName(region: RegionCode, stage: Stage): string {
    const status = this.#regions[region].statuses.find((candidate) => candidate.stage === stage);
    if (!status) throw new Error(`No status for ${stage} in ${region}`);
    return status.name;
  }

  /** Adds a status to a region's lookup. A job may be given any other name too: nothing checks it against the lookup. */
  addStatus(region: RegionCode, name: string, stage: Stage): JobStatus {
    const { statuses } = this.#regions[region];
    const status = { id: statuses.length + 1, name, stage };
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

  /** Leaves out job numbers of a region, as if other accounts had taken them. */
  skipJobNumbers(region: RegionCode, count: number): void {
    this.#regions[region].nextJobNumber += count;
  }

  /** Takes the next job number of a region, or a given one, which then must be free in it; later ones come after it. */
  takeJobNumber(region: RegionCode, wanted?: number): number {
    const state = this.#regions[region];
    const jobNumber = wanted ?? state.nextJobNumber;
    if (state.accounts.some((account) => account.job(jobNumber))) {
      throw new Error(`Job ${jobNumber} exists in ${region} already`);
    }
    state.nextJobNumber = Math.max(state.nextJobNumber, jobNumber + 1);
    return jobNumber;
  }

  /** Takes the next id for a job line of a region. */
  takeLineId(region: RegionCode): number {
    const state = this.#regions[region];
    state.nextLineId += 1;
    return state.nextLineId - 1;
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
  clientId: string;
  /** Assign another to rotate it: tokens already issued live on until they expire or are revoked. */
  clientSecret: string;
  readonly users: SandboxUser[];
  readonly dateStyle: DateStyle;
  readonly #jobs = new Map<number, JobRecord>();
  readonly #list = new JobList();

  constructor(world: World, options: AccountOptions, ordinal: number) {
    this.world = world;
    this.region = options.region;
    this.name = options.name ?? `${options.region}-account-${ordinal}`;
    this.id = options.id ?? 50_000 + ordinal * 37;
    this.clientId = options.clientId ?? `${this.name}-key`;
    this.clientSecret = options.clientSecret ?? `${this.name}-secret`;
    this.dateStyle = options.dateStyle ?? world.dateStyle;
    this.users = (options.users ?? [{}]).map((user, index) => {
      const id = user.id ?? 900_000 + ordinal * 100 + index;
      return {
        id,
        userName: user.userName ?? `user${id}`,
        firstName: user.firstName ?? 'Robin',
        lastName: user.lastName ?? `Buyer ${index + 1}`,
        emailAddress: user.emailAddress ?? `user${id}@customer.example`,
        mobile: user.mobile ?? null,
        active: user.active ?? true,
        receiveEmails: user.receiveEmails ?? true,
        textNotifyDispatch: user.textNotifyDispatch ?? false,
      };
    });
  }

  /**
   * Creates a job and returns its number. Left out: created now, due at the end of the fifth day from now, first status of
   * the region's lookup that follows artwork, one line, the region's first location.
   */
  createJob(input: JobInput & { jobNumber?: number } = {}): number {
    const jobNumber = this.world.takeJobNumber(this.region, input.jobNumber);
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
      invoiceStored: false,
      hidden: false,
      keptListed: false,
      listOverride: undefined,
      detailOverride: undefined,
    };
    this.#jobs.set(jobNumber, job);
    const inFiveDays = writeDay(now + 5 * DAY_MS, location?.timezone ?? null, this.dateStyle);
    this.#assign(job, {
      ...input,
      dateIn: input.dateIn ?? now,
      dateDue: input.dateDue === undefined ? inFiveDays : input.dateDue,
      lines: input.lines ?? [{}],
    });
    this.#place(job);
    return jobNumber;
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
    const whole = status === null || typeof status === 'string';
    this.edit(jobNumber, whole ? { status } : { masterJobStatus: status.master, jobStatus: status.detail });
  }

  /** Every job and line with one status name gets another. */
  renameStatus(name: string, newName: string): void {
    const renamed = (status: string | null): string | null => (status === name ? newName : status);
    for (const { jobNumber, masterJobStatus, jobStatus, lines } of this.#jobs.values()) {
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

  /** Forbids editing. */
  lock(jobNumber: number, reason = 'The job is being worked on.'): void {
    const job = this.#get(jobNumber);
    job.permissions = { canEdit: false, lockedReason: reason };
    this.#place(job);
  }

  /** Allows editing, even of a job whose phase would forbid it. */
  unlock(jobNumber: number): void {
    const job = this.#get(jobNumber);
    job.permissions = { canEdit: true, lockedReason: null };
    this.#place(job);
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
    return this.#jobs.get(jobNumber);
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
    const job = this.#jobs.get(jobNumber);
    return job && JSON.parse(listEntryJson(job, this.world.now()));
  }

  /** The job's detail as it would be served now, or undefined. */
  jobDetail(jobNumber: number): JobDto | undefined {
    const job = this.#jobs.get(jobNumber);
    return job && { ...jobDto(job, this, this.world.now()), ...job.detailOverride };
  }

  /** Cuts a page from the job list. A page beyond the last is empty. The caller has checked the parameters. */
  listJobs(query: JobsQuery): JobsPage {
    return this.#list.page(query, this.world.now());
  }

  #get(jobNumber: number): JobRecord {
    const job = this.#jobs.get(jobNumber);
    if (!job) throw new Error(`Account ${this.name} has no job ${jobNumber}`);
    return job;
  }

  #setPhase(jobNumber: number, phase: JobPhase, status: string | undefined): void {
    const job = this.#get(jobNumber);
    job.phase = phase;
    this.edit(jobNumber, status === undefined ? {} : { status });
  }

  #assign(job: JobRecord, input: JobInput): void {
    const { status, dateIn, dateDue, dateOut, lines, tracking, ...rest } = input;
    if (status !== undefined) Object.assign(job, { masterJobStatus: status, jobStatus: status });
    for (const [key, value] of Object.entries(rest)) {
      if (value !== undefined && key !== 'jobNumber') Object.assign(job, { [key]: value });
    }
    const zone = job.location?.timezone ?? null;
    const write = (when: When) =>
      typeof when === 'number' ? writeInstant(when, zone, this.dateStyle) : when;
    if (dateIn !== undefined) {
      job.dateIn = write(dateIn);
      job.inMs = readInstant(job.dateIn, zone);
    }
    if (dateDue !== undefined) {
      job.dateDue = dateDue === null ? null : write(dateDue);
      job.dueMs = job.dateDue === null ? Number.NaN : dueInstant(job.dateDue, zone);
    }
    if (dateOut !== undefined) {
      job.dateOut = dateOut === null ? null : write(dateOut);
      job.outMs = job.dateOut === null ? Number.NaN : readInstant(job.dateOut, zone);
    }
    if (tracking) job.tracking = tracking.map((entry) => ({ ...entry }));
    if (lines) job.lines = lines.map((line, index) => this.#line(job, line, index));
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
      ...line,
    };
  }

  /** Puts a job that changed where it belongs in the lists, and forgets what was remembered of it. */
  #place(job: JobRecord): void {
    const { phase } = job;
    const departed = this.world.leavesListOnDispatch && job.dateOut !== null && !job.keptListed;
    if (!this.#jobs.has(job.jobNumber) || job.hidden || phase === 'cancelled') {
      this.#list.place(job, 'nowhere');
    } else {
      this.#list.place(job, phase === 'open' && !departed ? 'active' : 'closed');
    }
  }
}

const DAY_MS = 86_400_000;
