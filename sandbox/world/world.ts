// State of the sandbox: the accounts and jobs of a simulated ordering API, and all operations that change them.

import { AccountJobs } from './account-jobs.ts';
import { AccountLedgers } from './ledgers.ts';
import type {
  AccountOptions,
  Closure,
  Credentials,
  JobRecord,
  JobWorld,
  PriceTier,
  Role,
  SandboxUser,
  WorldOptions,
} from './records.ts';
import { type JobStatus, REGION_FACTS, REGIONS, type RegionCode, type Stage } from './regions.ts';
import { Warehouse } from './warehouse.ts';

/** Creates an empty world: five regions, no accounts. */
export function createWorld(options: WorldOptions = {}): World {
  return new World(options);
}

/** A value that must be unique in a region already belongs to an account. */
export class DuplicateValueError extends Error {
  override name = 'DuplicateValueError';
  readonly field: 'name' | 'id' | 'clientId';

  constructor(region: RegionCode, field: DuplicateValueError['field'], value: string | number) {
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
export class World implements JobWorld {
  readonly now: () => number;
  readonly leavesListOnDispatch: boolean;
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
    const region = (code: RegionCode): RegionState => ({
      nextJobNumber: REGION_FACTS[code].firstJobNumber,
      nextLineId: 1_000_001,
      accounts: [],
      statuses: Object.entries(REGION_FACTS[code].statusNames).map(([stage, name], index) => ({
        id: index + 1,
        name,
        stage: stage as Stage,
      })),
      pastStatuses: [],
      warehouse: undefined,
    });
    const regions = REGIONS.map((code) => [code, region(code)] as const);
    this.#regions = Object.fromEntries(regions) as Record<RegionCode, RegionState>;
  }

  /** Creates an account in a region. Throws DuplicateValueError if its name, upstream id or client id exists there. */
  addAccount(options: AccountOptions): SandboxAccount {
    this.#accountCount += 1;
    const { region } = options;
    const account = new SandboxAccount(this, options, this.#accountCount);
    const { accounts } = this.#regions[region];
    for (const field of ['name', 'id'] as const) {
      if (accounts.some((other) => other[field] === account[field])) {
        throw new DuplicateValueError(region, field, account[field]);
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
      throw new DuplicateValueError(region, 'clientId', clientId);
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
    for (const account of this.accounts()) account.createReservedJobs();
    this.#clockSkewMs = ms;
  }

  /** Time of the current change (epoch ms): that of `changeAt`, otherwise now. */
  get changeTime(): number {
    return this.#changeTime ?? this.now();
  }

  /** Applies changes that were due at a time (epoch ms). */
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
    if (every !== undefined) for (const account of accounts) account.createReservedJobs();
    const status = { id: statuses.length + 1, name, stage, ...(every !== undefined && { every }) };
    this.#rememberStatuses(region);
    statuses.push(status);
    return status;
  }

  /** Renames a status of a region, in the lookup and in every job. */
  renameStatus(region: RegionCode, name: string, newName: string): void {
    const status = this.#regions[region].statuses.find((candidate) => candidate.name === name);
    if (!status) throw new Error(`No status ${name} in ${region}`);
    const { accounts } = this.#regions[region];
    // Reserved jobs had the former name.
    for (const account of accounts) account.createReservedJobs();
    this.#rememberStatuses(region);
    status.name = newName;
    for (const account of accounts) account.renameStatus(name, newName);
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

/** One wholesale account: its jobs, users, credentials and ledgers. */
export class SandboxAccount extends AccountJobs {
  readonly world: World;
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
  /** Number of orders of this account with a promo code, by code. */
  readonly promoUses = new Map<string, number>();
  readonly #ordinal: number;
  #books: AccountLedgers | undefined;

  constructor(world: World, options: AccountOptions, ordinal: number) {
    super(options.region);
    this.world = world;
    this.name = options.name ?? `${options.region}-account-${ordinal}`;
    this.id = options.id ?? 50_000 + ordinal * 37;
    this.#ordinal = ordinal;
    this.openedAt = world.now();
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
}
