// The jobs of an account: stored, changed, listed, and as they were.

import { AssetStore } from './asset-files.ts';
import { DAY_MS, formatDay } from './dates.ts';
import { copyJob, JobHistory, type Place } from './history.ts';
import { newJob, writeInput } from './job-input.ts';
import { JobList, type JobsPage, type JobsQuery, listEntryJson } from './joblist.ts';
import type {
  AccountFacts,
  JobInput,
  JobPhase,
  JobRecord,
  JobWorld,
  ListState,
  PriceTier,
  ReservedJob,
  SandboxUser,
  TrackingEntry,
  When,
} from './records.ts';
import { REGION_FACTS, type RegionCode } from './regions.ts';
import { type ActiveJobDto, type JobDto, jobDto } from './views.ts';

/**
 * The jobs of one account. Methods that change a job take effect at once, enforce no rules of the API, because tests also need
 * invalid states, and throw if the account has no such job.
 */
export abstract class AccountJobs implements AccountFacts {
  abstract readonly world: JobWorld;
  abstract id: number;
  abstract readonly name: string;
  abstract readonly users: readonly SandboxUser[];
  abstract readonly openedAt: number;
  abstract readonly priceTier: PriceTier;
  abstract readonly withheldProcesses: readonly string[];
  readonly region: RegionCode;
  /** Undefined: not yet created. */
  readonly #jobs = new Map<number, JobRecord | undefined>();
  readonly #late = new Map<number, { firstLineId: number; make: () => ReservedJob }>();
  readonly #list: JobList;
  readonly #relined = new Set<number>();
  #history: JobHistory | undefined;
  /** A reserved job is being created: its past is no change. */
  #creating = false;
  #assets: AssetStore | undefined;

  constructor(region: RegionCode) {
    this.region = region;
    this.#list = new JobList(region, (jobNumber) => this.#get(jobNumber));
  }

  abstract addUser(user: Partial<SandboxUser>): SandboxUser;

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
    let size = 10 ** String(count - 1).length;
    for (let [at, created] = [0, 0]; created < count; at++) {
      // The numbers with this number of digits are used up.
      if (at === size) [at, size] = [0, size * 10];
      const number = jobNumber * size + at;
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
  reserveJob(lineCount: number, listState: ListState, make: () => ReservedJob): number {
    const jobNumber = this.world.takeJobNumber(this.region);
    this.#late.set(jobNumber, { firstLineId: this.world.takeLineId(this.region, lineCount), make });
    this.#jobs.set(jobNumber, undefined);
    this.#relined.add(jobNumber);
    this.#list.expect(jobNumber, this.#findPlace(listState));
    return jobNumber;
  }

  /** Creates all reserved jobs, before a change that would affect their creation. */
  createReservedJobs(): void {
    for (const jobNumber of this.#late.keys()) this.#make(jobNumber);
  }

  #make(jobNumber: number): JobRecord | undefined {
    const late = this.#late.get(jobNumber);
    if (!late) return undefined;
    this.#late.delete(jobNumber);
    const { input, live } = late.make();
    const lines = input.lines.map((line, index) => ({ ...line, jobLineId: late.firstLineId + index }));
    this.#creating = true;
    try {
      const job = this.#create(jobNumber, { ...input, lines });
      live();
      return job;
    } finally {
      this.#creating = false;
    }
  }

  #create(jobNumber: number, input: JobInput): JobRecord {
    const now = this.world.now();
    const location = input.location === undefined ? REGION_FACTS[this.region].locations[0] : input.location;
    const job = newJob(jobNumber, this, this.world.statusName(this.region, 'intake'), location);
    this.#remember(jobNumber, undefined);
    this.#jobs.set(jobNumber, job);
    const inFiveDays = () => formatDay(now + 5 * DAY_MS, location?.timezone ?? null);
    this.#write(job, {
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
    this.#write(job, input);
    this.#place(job);
  }

  /** Sets the status in list and detail alike, or each of them (`master`, `detail`) apart. */
  setStatus(
    jobNumber: number,
    status: string | null | { master?: string | null; detail?: string | null },
  ): void {
    const whole = status === null || typeof status === 'string';
    const { master, detail } = whole ? { master: status, detail: status } : status;
    this.#update(jobNumber, {
      ...(master !== undefined && { masterJobStatus: master }),
      ...(detail !== undefined && { jobStatus: detail }),
    });
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
    this.#update(jobNumber, { permissions: { canEdit: false, lockedReason: reason } });
  }

  /** Allows editing in any phase, until the next dispatch, closing or cancellation. */
  unlock(jobNumber: number): void {
    this.#update(jobNumber, { permissions: { canEdit: true, lockedReason: null } });
  }

  /** Reverts `lock` or `unlock`: dispatch, closing and cancellation lock editing. */
  freeEditing(jobNumber: number): void {
    this.#update(jobNumber, { permissions: undefined });
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
  hide(jobNumber: number, hidden: true | 'drift' = true): void {
    this.#update(jobNumber, { hidden });
  }

  /** Lists a hidden job again. */
  unhide(jobNumber: number): void {
    this.#update(jobNumber, { hidden: false });
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
    this.#update(jobNumber, { listOverride: fields.list, detailOverride: fields.detail });
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
  get assets(): AssetStore {
    this.#assets ??= new AssetStore(this);
    return this.#assets;
  }

  /** The numbers of the jobs in the active list, ascending. */
  activeJobNumbers(): number[] {
    return this.#list.activeJobNumbers();
  }

  /** Current number of jobs in the active list. */
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
    if (historyMs === 0 || this.#creating) return;
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

  #update(jobNumber: number, fields: Partial<JobRecord>): void {
    this.#place(Object.assign(this.#change(jobNumber), fields));
  }

  #write(job: JobRecord, input: JobInput): void {
    writeInput(job, input, () => this.world.takeLineId(this.region));
    if (input.lines) this.#relined.add(job.jobNumber);
  }

  /** Moves a changed job to its place in the lists and clears cached values. */
  #place(job: JobRecord): void {
    this.#list.place(job, this.#currentPlace(job));
  }

  #currentPlace({ jobNumber, phase, dateOut, keptListed, hidden }: JobRecord): Place {
    if (hidden || !this.#jobs.has(jobNumber)) return 'nowhere';
    return this.#findPlace({ phase, dispatched: dateOut !== null, keptListed });
  }

  #findPlace({ phase, dispatched, keptListed }: ListState): Place {
    if (phase === 'cancelled') return 'nowhere';
    const departed = this.world.leavesListOnDispatch && dispatched && !keptListed;
    return phase === 'open' && !departed ? 'active' : 'closed';
  }
}
