/*
 * Advances jobs that were ordered over the API. Where the contract is silent, the sandbox chose:
 *
 * - Artwork is fetched when the job is ordered, and again before production. If the artwork of a line is missing, the
 *   job and the line have the status *Awaiting artwork*. The request is repeated at growing intervals, for 14 days of
 *   simulated time. After these 14 days, or if the line has no artwork URL, the job waits until artwork is supplied
 *   through the control panel.
 * - The stages of a job are: received, scheduled (sometimes on hold for some hours), in production, checked, packed and
 *   dispatched. Most jobs are dispatched shortly before their due date. One in sixteen is late, by at most five days.
 * - A job in production can be edited but not cancelled. One job in eight is locked for an hour during production. One
 *   job in twelve is locked before production.
 * - Except for jobs that await artwork, all jobs of an order group are dispatched together when the last of them is
 *   packed, in one or several parcels.
 * - Collected jobs have no tracking. For other jobs, the tracking number is added at dispatch or up to five hours
 *   later. The invoice follows within hours, and the job is closed within about a day. One job in sixteen is reopened
 *   after that and closed again.
 * - The simulation never edits or cancels jobs that were ordered through the API.
 */

import pLimit, { type LimitFunction } from 'p-limit';
import { getOrCreate } from '../../shared/get-or-create.ts';
import { HOUR_MS } from '../world/dates.ts';
import { findDeliveryOption } from '../world/delivery.ts';
import type { JobLine, JobRecord } from '../world/records.ts';
import { REGIONS, type Stage } from '../world/regions.ts';
import type { SandboxAccount } from '../world/world.ts';
import { type ArtworkAnswer, fetchArtwork } from './artwork.ts';
import { SeededRandom } from './random.ts';
import { planShipment, type Shipment } from './simulation.ts';
import type { Timeline } from './timeline.ts';
import {
  CLOSE,
  dispatch,
  INVOICE,
  lock,
  REOPEN,
  setLineStatus,
  setStatus,
  type Transition,
  UNLOCK,
  undispatched,
} from './transitions.ts';

/** Dependencies of ordered jobs. */
export interface OrderedJobsOptions {
  timeline: Timeline;
  seed: number;
  /** Seconds of a job's life in a second of the sandbox clock. */
  speed: number;
  /** Called for each move; `at` in epoch ms. */
  note: (at: number, account: SandboxAccount, jobNumber: number, kind: Transition['kind']) => void;
}

/** A job on its way. */
interface Ordered {
  readonly account: SandboxAccount;
  readonly jobNumber: number;
  /** The job as ordered: another job may get its number later. */
  readonly job: Readonly<JobRecord>;
  readonly plan: Plan;
  readonly group: Set<Ordered>;
  /** `waiting` is awaiting artwork; `gone` is dispatched or otherwise ended. */
  state: 'coming' | 'waiting' | 'packed' | 'gone';
  packedAt: number;
  /** Version of the planned moves: moves of an older version are ignored. */
  turn: number;
  attempts: number;
  waitsSince: number;
  /** The artwork was found once, and the job was scheduled. */
  scheduled: boolean;
}

/** Duration of each stage of a job, in hours of its life. Drawn at once, so that it does not depend on the time steps. */
interface Plan {
  schedule: number;
  hold: readonly [after: number, during: number] | null;
  production: number;
  finishing: number;
  packing: number;
  leaving: number;
  planningLock: boolean;
  pressLock: boolean;
  /** From the artwork that was found at last to production. */
  resume: number;
  lines: readonly [production: number, finishing: number][];
  shipment: Shipment;
  invoice: number;
  close: number;
  comesBack: readonly [after: number, during: number] | null;
}

const ASK_AGAIN_HOURS = [1 / 12, 1 / 4, 1, 4, 12];
const GIVE_UP_HOURS = 14 * 24;
const FETCHES_AT_A_TIME = 4;
/** Minimum and maximum duration of a job that is produced for its due date. */
const [LEAST_HOURS, MOST_HOURS] = [12, 120];

/** The jobs ordered over the API, advanced on a timeline. */
export class OrderedJobs {
  readonly #options: OrderedJobsOptions;
  readonly #jobs = new Map<string, Ordered>();
  readonly #groups = new Map<string, Set<Ordered>>();
  readonly #fetches = new Set<Promise<void>>();
  readonly #ending = new AbortController();
  /** Limits the requests of each account: slow servers do not delay the artwork of others. */
  readonly #limits = new Map<SandboxAccount, LimitFunction>();

  constructor(options: OrderedJobsOptions) {
    this.#options = options;
  }

  /**
   * Starts the life of a job at a time (epoch ms); returns whether it is new. For a job that awaits artwork, fetches the
   * artwork again.
   */
  adopt(account: SandboxAccount, jobNumber: number, at: number): boolean {
    const key = `${account.region}/${jobNumber}`;
    const known = this.#jobs.get(key);
    const job = account.job(jobNumber);
    if (!job) return false;
    if (known?.job === job) {
      if (known.state === 'waiting') this.#retryArtwork(known, at);
      return false;
    }
    // A removed job blocks no group.
    if (known) this.#undispatched(known, at);
    const group = this.#findGroup(account, job);
    const ordered: Ordered = {
      account,
      jobNumber,
      job,
      plan: this.#plan(account, job, at),
      group,
      state: 'coming',
      packedAt: Number.NaN,
      turn: 0,
      attempts: 0,
      waitsSince: at,
      scheduled: false,
    };
    this.#jobs.set(key, ordered);
    group.add(ordered);
    this.#fetchArtwork(ordered, at, () => this.#receive(ordered, at));
    return true;
  }

  /** Whether a job has been adopted. */
  has({ region }: SandboxAccount, job: Readonly<JobRecord>): boolean {
    return this.#jobs.get(`${region}/${job.jobNumber}`)?.job === job;
  }

  /** Ends the life of a job that no longer exists. */
  forget(account: SandboxAccount, jobNumber: number): void {
    const key = `${account.region}/${jobNumber}`;
    const ordered = this.#jobs.get(key);
    if (!ordered) return;
    ordered.turn += 1;
    ordered.group.delete(ordered);
    this.#jobs.delete(key);
  }

  /** Resolves when no artwork is being fetched and all resulting moves are done. */
  async settled(): Promise<void> {
    while (this.#fetches.size > 0) await Promise.all(this.#fetches);
  }

  /** Aborts all fetches. No new ones start. */
  stop(): void {
    this.#ending.abort();
  }

  /** Fetches the artwork of all lines. Calls `found` when it is complete; otherwise the job awaits it. */
  #fetchArtwork(ordered: Ordered, at: number, found: () => void): void {
    const job = this.#undispatched(ordered, at);
    if (!job) return;
    const wanted = job.lines.filter(needsArtwork);
    if (wanted.length === 0) {
      found();
      return;
    }
    const { turn } = ordered;
    const missing = wanted.filter(({ artworkUrl }) => artworkUrl === null);
    // Known without a request, so recorded at once.
    if (missing.length > 0) {
      this.#wait(ordered, at, missing);
      return;
    }
    const requested = this.#fetchAll(
      ordered.account,
      new Set(wanted.map(({ artworkUrl }) => artworkUrl ?? '')),
    );
    const followed = requested.then((answers) => {
      if (this.#ending.signal.aborted || turn !== ordered.turn) return;
      const lost = wanted.filter(({ artworkUrl }) => !answers.get(artworkUrl ?? '')?.found);
      if (!this.#undispatched(ordered, at)) return;
      for (const [url, answer] of answers) {
        ordered.account.noteArtwork(ordered.jobNumber, url, answer.found ? null : answer.reason);
      }
      // A URL may have been replaced during the requests.
      const isNew = (line: JobLine) => needsArtwork(line) && !answers.has(line.artworkUrl ?? '');
      if (job.lines.some(isNew)) this.#fetchArtwork(ordered, at, found);
      else if (lost.length > 0) this.#wait(ordered, at, lost);
      else found();
      // The next moves may be due already.
      this.#options.timeline.catchUp();
    });
    // A failing job ends itself, not the process.
    const done = followed
      .catch((error) => console.error(`Job ${ordered.jobNumber} of ${ordered.account.region} stops:`, error))
      .finally(() => this.#fetches.delete(done));
    this.#fetches.add(done);
  }

  /** Fetches each address once. */
  async #fetchAll(
    account: SandboxAccount,
    urls: ReadonlySet<string>,
  ): Promise<ReadonlyMap<string, ArtworkAnswer>> {
    const { signal } = this.#ending;
    const ask = async (url: string) => [url, await fetchArtwork(url, { signal })] as const;
    return new Map(await getOrCreate(this.#limits, account, () => pLimit(FETCHES_AT_A_TIME)).map(urls, ask));
  }

  /** Artwork is missing: the job waits and retries later. */
  #wait(ordered: Ordered, at: number, missing: readonly JobLine[]): void {
    const { account, jobNumber } = ordered;
    const awaiting = account.world.statusName(account.region, 'artwork');
    if (ordered.state !== 'waiting') {
      ordered.state = 'waiting';
      ordered.attempts = 0;
      ordered.waitsSince = at;
    }
    if (account.job(jobNumber)?.masterJobStatus !== awaiting) this.#take(ordered, at, setStatus('artwork'));
    account.job(jobNumber)?.lines.forEach((line, index) => {
      const stage = missing.includes(line) ? 'artwork' : 'intake';
      // A line of a group may have the status of another line's missing artwork.
      if ((line.jobLineStatus === awaiting) !== (stage === 'artwork')) {
        this.#take(ordered, at, setLineStatus(index, stage));
      }
    });
    this.#leaveTogether(ordered.group, at);

    const hours = ASK_AGAIN_HOURS[Math.min(ordered.attempts, ASK_AGAIN_HOURS.length - 1)] ?? 0;
    ordered.attempts += 1;
    if (at - ordered.waitsSince > this.#ms(GIVE_UP_HOURS)) return;
    this.#later(ordered, at, hours, (then) => this.#retryArtwork(ordered, then));
  }

  #retryArtwork(ordered: Ordered, at: number): void {
    ordered.turn += 1;
    this.#fetchArtwork(ordered, at, () => {
      ordered.state = 'coming';
      if (!ordered.scheduled) {
        this.#receive(ordered, at);
        return;
      }
      // The artwork was lost just before production.
      this.#endWaiting(ordered, at, 'scheduled');
      this.#produceAfter(ordered, at, ordered.plan.resume);
    });
  }

  /** Ends the wait for artwork of job and lines. */
  #endWaiting(ordered: Ordered, at: number, stage: Stage): void {
    const { account, jobNumber } = ordered;
    const awaiting = account.world.statusName(account.region, 'artwork');
    const job = account.job(jobNumber);
    job?.lines.forEach(({ jobLineStatus }, index) => {
      if (jobLineStatus === awaiting) this.#take(ordered, at, setLineStatus(index, stage));
    });
    if (job?.masterJobStatus === awaiting) this.#take(ordered, at, setStatus(stage));
  }

  /** The artwork is complete: schedules the job. */
  #receive(ordered: Ordered, at: number): void {
    const { plan, account } = ordered;
    for (const { itemType, assetSku } of account.job(ordered.jobNumber)?.lines ?? []) {
      if (itemType === 'PriceCode' && assetSku !== null) account.assets.addFile(assetSku, 'artwork.png', at);
    }
    this.#endWaiting(ordered, at, 'intake');
    let hours = plan.schedule;
    this.#later(ordered, at, hours, (then) => {
      ordered.scheduled = true;
      this.#take(ordered, then, setStatus('scheduled'));
    });
    if (plan.hold) {
      const [after, during] = plan.hold;
      this.#move(ordered, at, hours + after, setStatus('hold'));
      hours += after + during;
      this.#move(ordered, at, hours, setStatus('scheduled'));
    }
    if (plan.planningLock) {
      this.#move(ordered, at, hours + plan.production * 0.2, lock('The job is being planned.'));
      this.#move(ordered, at, hours + plan.production * 0.6, UNLOCK);
    }
    this.#produceAfter(ordered, at, hours + plan.production);
  }

  /** Starts production after a number of hours, if the artwork still exists. */
  #produceAfter(ordered: Ordered, at: number, hours: number): void {
    this.#later(ordered, at, hours, (then) =>
      this.#fetchArtwork(ordered, then, () => this.#produce(ordered, then)),
    );
  }

  /** From production to the dispatch bench. */
  #produce(ordered: Ordered, at: number): void {
    const { plan } = ordered;
    this.#move(ordered, at, 0, setStatus('production'));
    const finished = plan.finishing;
    const packed = finished + plan.packing;
    plan.lines.forEach(([production, finishing], line) => {
      this.#move(ordered, at, production, setLineStatus(line, 'production'));
      this.#move(ordered, at, finished + finishing, setLineStatus(line, 'finishing'));
    });
    if (plan.pressLock) {
      this.#move(ordered, at, finished * 0.3, lock('On the press.'));
      this.#move(ordered, at, finished * 0.3 + 1, UNLOCK);
    }
    this.#move(ordered, at, finished, setStatus('finishing'));
    this.#move(ordered, at, packed, setStatus('packing'));
    this.#later(ordered, at, packed + plan.leaving, (then) => {
      if (!this.#undispatched(ordered, then)) return;
      ordered.state = 'packed';
      ordered.packedAt = then;
      this.#leaveTogether(ordered.group, then);
    });
  }

  /** Dispatches the packed jobs of a group, unless another member is still in progress. */
  #leaveTogether(group: Set<Ordered>, at: number): void {
    const members = [...group];
    for (const member of members) if (!isOpen(member)) member.state = 'gone';
    const packed = members.filter(({ state }) => state === 'packed');
    if (packed.length === 0 || members.some(({ state }) => state === 'coming')) return;
    const leavesAt = Math.max(at, ...packed.map(({ packedAt }) => packedAt));
    // All share the first one's parcel.
    const shipment = packed[0]?.plan.shipment;
    for (const member of packed) {
      group.delete(member);
      this.#ship(member, leavesAt, shipment ?? member.plan.shipment);
    }
  }

  #ship(ordered: Ordered, at: number, shipment: Shipment): void {
    const { plan } = ordered;
    this.#take(ordered, at, dispatch(shipment.tracking));
    ordered.state = 'gone';
    plan.lines.forEach((_, line) => {
      this.#move(ordered, at, 0, setLineStatus(line, 'shipped', 'dispatched'));
    });
    for (const { move, afterHours } of shipment.later) this.#move(ordered, at, afterHours, move);
    this.#move(ordered, at, plan.invoice, INVOICE);
    this.#move(ordered, at, plan.close, CLOSE);
    if (!plan.comesBack) return;
    const [after, during] = plan.comesBack;
    this.#move(ordered, at, plan.close + after, REOPEN);
    this.#move(ordered, at, plan.close + after + during, CLOSE);
  }

  /** The job while it can still be produced; otherwise it is marked as gone, and its group does not wait for it. */
  #undispatched(ordered: Ordered, at: number): Readonly<JobRecord> | undefined {
    if (isOpen(ordered)) return ordered.job;
    if (ordered.state !== 'gone') {
      ordered.state = 'gone';
      ordered.group.delete(ordered);
      this.#leaveTogether(ordered.group, at);
    }
    return undefined;
  }

  /** Applies a move if it is still possible. */
  #take(ordered: Ordered, at: number, move: Transition): void {
    const { account, jobNumber, job } = ordered;
    if (account.job(jobNumber) !== job || !move.possible(job)) return;
    move.take(account, job, at);
    this.#options.note(at, account, jobNumber, move.kind);
  }

  #move(ordered: Ordered, from: number, hours: number, move: Transition): void {
    this.#later(ordered, from, hours, (at) => this.#take(ordered, at, move));
  }

  #later(ordered: Ordered, from: number, hours: number, run: (at: number) => void): void {
    const at = Math.round(from + this.#ms(hours));
    const { turn } = ordered;
    this.#options.timeline.add(at, () => {
      if (ordered.turn === turn) run(at);
    });
  }

  #ms(hours: number): number {
    return (hours * HOUR_MS) / this.#options.speed;
  }

  #findGroup(account: SandboxAccount, { orderGroup }: Readonly<JobRecord>): Set<Ordered> {
    if (orderGroup === null) return new Set();
    const key = JSON.stringify([account.region, account.name, orderGroup]);
    return getOrCreate(this.#groups, key, () => new Set());
  }

  #plan(account: SandboxAccount, job: Readonly<JobRecord>, at: number): Plan {
    const ordinal = REGIONS.indexOf(account.region) + 1;
    const dice = new SeededRandom(this.#options.seed * 7919 + ordinal * 15_485_863 + job.jobNumber);
    const hours = (from: number, to: number) => dice.hours(from, to) / HOUR_MS;
    const option = findDeliveryOption(account.region, job.deliveryOption);
    const plan: Plan = {
      schedule: hours(0.5, 5),
      hold: dice.chance(0.08) ? [hours(0.5, 2), hours(2, 8)] : null,
      production: hours(2, 20),
      finishing: hours(4, 16),
      packing: hours(2, 5),
      leaving: hours(0.5, 8),
      planningLock: dice.chance(1 / 12),
      pressLock: dice.chance(1 / 8),
      resume: hours(0.5, 2),
      lines: job.lines.map(() => [hours(0.1, 1.5), hours(0.1, 1.5)] as const),
      shipment: planShipment(dice, account.region, option?.isCollection ?? false),
      invoice: hours(0.5, 6),
      close: hours(8, 30),
      comesBack: dice.chance(1 / 16) ? [hours(24, 96), hours(6, 24)] : null,
    };
    const dueHours = Math.min(Math.max((job.dueMs - at) / HOUR_MS, LEAST_HOURS), MOST_HOURS);
    const share = dice.chance(1 / 16) ? hours(1.02, 1.3) : hours(0.75, 0.95);
    if (Number.isNaN(dueHours)) return plan;
    const { schedule, production, finishing, packing, leaving } = plan;
    const hold = plan.hold ? plan.hold[0] + plan.hold[1] : 0;
    const stretch = (dueHours * share) / (schedule + hold + production + finishing + packing + leaving);
    return {
      ...plan,
      schedule: schedule * stretch,
      hold: plan.hold && [plan.hold[0] * stretch, plan.hold[1] * stretch],
      production: production * stretch,
      finishing: finishing * stretch,
      packing: packing * stretch,
      leaving: leaving * stretch,
    };
  }
}

const needsArtwork = (line: JobLine) => line.artworkUrl !== null || line.needsArtwork;

function isOpen({ account, jobNumber, job }: Ordered): boolean {
  return account.job(jobNumber) === job && undispatched(job);
}
