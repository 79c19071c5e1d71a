// Generates orders: the input of their jobs, and all later moves.

import { taxOn, taxRate } from '../operations/account.ts';
import { atTimeOfDay, DAY_MS, formatDay, HOUR_MS } from '../world/dates.ts';
import { DISPATCH_TIME, listDeliveryOptions } from '../world/delivery.ts';
import type { InputWithLines, JobInput, SandboxUser, TrackingEntry } from '../world/records.ts';
import { REGION_FACTS, type RegionCode, type Stage } from '../world/regions.ts';
import { AWKWARD_TEXTS, DESIGNS, GARMENTS, ORIGINS, PRINTED_PROCESSES } from '../world/sample-data.ts';
import type { SandboxAccount } from '../world/world.ts';
import type { SeededRandom } from './random.ts';
import {
  addTracking,
  CANCEL,
  CLOSE,
  changeDueDate,
  changeText,
  correctDateOut,
  correctTracking,
  dispatch,
  fillInLink,
  INVOICE,
  lock,
  REOPEN,
  REVOKE_DISPATCH,
  setLineStatus,
  setStatus,
  type Transition,
  UNLOCK,
} from './transitions.ts';

/** A move of a job, at a time after its creation. */
export interface Step {
  readonly afterMs: number;
  readonly move: Transition;
}

/** A future job: its input, and all its moves. */
export interface PlannedJob {
  input: (bornAt: number) => InputWithLines;
  lineCount: number;
  steps: Step[];
  /** Time at which it leaves the active list. */
  leavesAfterMs: number;
}

/** Jobs ordered together, and how many job numbers others took before. */
export interface Order {
  jobs: PlannedJob[];
  skippedNumbers: number;
}

/** Share of the ordered jobs that customers cancel. */
export const CANCELLED_SHARE = 0.07;

/** The user who orders for an account: its first one. */
export function listBuyers({ users }: SandboxAccount): readonly SandboxUser[] {
  return users.slice(0, 2);
}

/**
 * Draws all values of an order in advance, so that they do not depend on the time steps. The same seed and buyers give the same
 * order again.
 */
export function planOrder(
  dice: SeededRandom,
  account: SandboxAccount,
  speed: number,
  {
    mostJobs = 4,
    buyers = listBuyers(account),
    cancelledShare = CANCELLED_SHARE,
  }: { mostJobs?: number; buyers?: readonly SandboxUser[]; cancelledShare?: number | undefined } = {},
): Order {
  const wanted = dice.chance(0.15) ? dice.int(2, 4) : 1;
  const jobCount = Math.min(wanted, mostJobs);
  const group = jobCount > 1 ? `WEB-${dice.int(100_000, 999_999)}` : null;
  const orderNumber = dice.chance(0.9)
    ? `${dice.pick(['PO-', 'SO', '#', ''])}${dice.int(1000, 99_999)}`
    : null;
  const jobs: PlannedJob[] = [];
  for (let index = 0; index < jobCount; index++) {
    const { steps, firstStage, lineCount, collected } = planLife(dice, account.region, speed, cancelledShare);
    const leaving = steps.find(({ move }) => move.kind === 'closed' || move.kind === 'cancelled');
    jobs.push({
      input: planInput(dice, account, speed, {
        buyers,
        group,
        index,
        orderNumber,
        firstStage,
        lineCount,
        collected,
      }),
      lineCount,
      steps,
      leavesAfterMs: leaving?.afterMs ?? 0,
    });
  }
  return { jobs, skippedNumbers: dice.int(0, 3) };
}

function planInput(
  dice: SeededRandom,
  account: SandboxAccount,
  speed: number,
  given: {
    buyers: readonly SandboxUser[];
    group: string | null;
    index: number;
    orderNumber: string | null;
    firstStage: Stage;
    lineCount: number;
    collected: boolean;
  },
): (bornAt: number) => InputWithLines {
  const deliveries = listDeliveryOptions(account.region).filter(
    ({ isCollection }) => isCollection === given.collected,
  );
  const location = dice.pick(REGION_FACTS[account.region].locations);
  const zone = location.timezone;
  const dueAfterMs = dice.hours(36, 120) / speed;
  const wholeDay = dice.chance(dueAfterMs >= DAY_MS ? 0.65 : 0.2);
  const design = dice.pick(DESIGNS);
  const status = account.world.statusName(account.region, given.firstStage);
  const lines = Array.from({ length: given.lineCount }, (_, line) => ({
    processCode: dice.pick(PRINTED_PROCESSES),
    garment: dice.pick(GARMENTS),
    description: design,
    quantity: dice.int(1, 25) * 12,
    unitPrice: dice.int(90, 620) / 100,
    customerReference: `${design.slice(0, 3).toUpperCase()}-${line + 1}`,
    gang: dice.chance(0.5) ? `G${dice.int(100, 999)}` : null,
    jobLineStatus: status,
  }));
  const rest: InputWithLines = {
    status,
    location,
    lines,
    description: dice.chance(0.12) ? dice.pick(AWKWARD_TEXTS) : `${design} × ${lines.length}`,
    comments: dice.chance(0.15) ? dice.pick(AWKWARD_TEXTS) : null,
    orderNumber: given.orderNumber,
    orderGroup: given.group,
    orderGroupSequence: given.group === null ? null : given.index + 1,
    originCode: given.group === null ? dice.pick(ORIGINS) : 'SHOP',
    userId: dice.pick(given.buyers)?.id ?? 0,
    creator: given.buyers[0]?.userName ?? null,
    mustDate: dice.chance(0.2),
    taxTotal: calculateTax(dice, account.region, lines),
    deliveryOption: (given.collected ? deliveries[0] : dice.pick(deliveries))?.label ?? null,
    tags: dice.chance(0.2) ? ['rush'] : [],
  };
  return (bornAt) => ({
    ...rest,
    dateIn: bornAt,
    dateDue: dueDate(bornAt + dueAfterMs, zone, wholeDay, dueAfterMs),
  });
}

/** Tax of all lines. A number is drawn although it is unused, so that every seed keeps its history. */
function calculateTax(
  dice: SeededRandom,
  region: RegionCode,
  lines: readonly { quantity: number; unitPrice: number }[],
): number {
  dice.next();
  const cents = lines.reduce((sum, line) => sum + Math.round(line.unitPrice * 100) * line.quantity, 0);
  return taxOn(cents, taxRate(region)) / 100;
}

/** A day, the time of dispatch on that day, or in a hurried world the next full minute. */
function dueDate(
  ms: number,
  zone: string | null,
  wholeDay: boolean,
  dueAfterMs: number,
): JobInput['dateDue'] {
  if (wholeDay) return formatDay(ms, zone);
  return dueAfterMs >= DAY_MS ? atTimeOfDay(ms, zone, DISPATCH_TIME) : Math.ceil(ms / 60_000) * 60_000;
}

/** Draws a job's life; hours are those of a factory that works round the clock. */
function planLife(
  dice: SeededRandom,
  region: RegionCode,
  speed: number,
  cancelledShare: number,
): { steps: Step[]; firstStage: Stage; lineCount: number; collected: boolean } {
  const steps: Step[] = [];
  let clockMs = 0;
  const wait = (fromHours: number, toHours: number) => {
    clockMs += dice.hours(fromHours, toHours);
  };
  const add = (move: Transition, laterMs = 0) => steps.push({ afterMs: (clockMs + laterMs) / speed, move });
  /** Detail and list often learn of a move at different times. */
  const status = (stage: Stage): void => {
    if (dice.chance(0.5)) {
      add(setStatus(stage));
    } else {
      add(setStatus(stage, 'jobStatus'));
      add(setStatus(stage, 'masterJobStatus'), dice.hours(0.05, 0.4));
    }
  };
  const lineMoves = (stage: Stage) => {
    for (let line = 0; line < lineCount; line++) add(setLineStatus(line, stage), dice.hours(0, 1.5));
  };
  const lineCount = dice.int(1, 4);
  const collected = dice.chance(0.06);
  const firstStage: Stage = dice.chance(0.3) ? 'artwork' : 'intake';
  const done = () => ({
    steps: steps.sort((a, b) => a.afterMs - b.afterMs),
    firstStage,
    lineCount,
    collected,
  });

  if (firstStage === 'artwork') {
    wait(2, 18);
    status('intake');
  }
  if (dice.chance(0.15)) {
    const input: JobInput = dice.chance(0.5)
      ? { orderNumber: `PO-${dice.int(1000, 99_999)}-R` }
      : { description: dice.chance(0.4) ? dice.pick(AWKWARD_TEXTS) : `${dice.pick(DESIGNS)} (amended)` };
    add(changeText(input), dice.hours(0.2, 0.5));
  }
  wait(0.5, 5);
  status('scheduled');
  if (dice.chance(0.1)) {
    wait(1, 4);
    status('hold');
    wait(2, 16);
    status('scheduled');
  }
  if (dice.chance(0.12)) add(changeDueDate(dice.pick([-12, 24, 24, 48]), speed), dice.hours(0, 2));
  if (dice.chance(cancelledShare)) {
    wait(0.5, 3);
    add(CANCEL);
    return done();
  }
  wait(2, 20);
  status('production');
  lineMoves('production');
  if (dice.chance(0.03)) {
    add(lock('On the press.'), dice.hours(0.5, 1));
    add(UNLOCK, dice.hours(1.5, 3));
  }
  if (dice.chance(0.08)) {
    wait(1, 3);
    status('hold');
    wait(1, 4);
    status('production');
  }
  wait(4, 16);
  status('finishing');
  lineMoves('finishing');
  wait(2, 5);
  status('packing');
  wait(0.5, 8);

  const ship = () => {
    const { tracking, later } = planShipment(dice, region, collected);
    add(dispatch(tracking));
    for (const { move, afterHours } of later) add(move, afterHours * HOUR_MS);
  };
  ship();
  if (dice.chance(0.015)) {
    wait(1, 4);
    add(REVOKE_DISPATCH);
    wait(2, 8);
    ship();
  }
  for (let line = 0; line < lineCount; line++)
    add(setLineStatus(line, 'shipped', 'dispatched'), dice.hours(0, 0.2));
  if (dice.chance(0.04)) add(correctDateOut(dice.hours(0.2, 2) / speed), dice.hours(0.5, 4));
  if (!collected && dice.chance(0.02)) add(correctTracking(drawParcel(dice, region)), dice.hours(2, 5));
  if (dice.chance(0.9)) add(INVOICE, dice.hours(0.5, 6));
  wait(6, 30);
  add(CLOSE);
  if (dice.chance(0.04)) {
    wait(6, 48);
    add(REOPEN);
    wait(6, 24);
    add(CLOSE);
  }
  return done();
}

/** Dispatch of a job: parcels known at once, and later additions. */
export interface Shipment {
  tracking: TrackingEntry[];
  later: readonly { move: Transition; afterHours: number }[];
}

/** Draws a shipment: one or two parcels, sometimes with late tracking or a late link. */
export function planShipment(dice: SeededRandom, region: RegionCode, collected: boolean): Shipment {
  const afterHours = (from: number) => dice.hours(from, 5) / HOUR_MS;
  const roll = dice.next();
  const first = drawParcel(dice, region);
  if (collected) return { tracking: [], later: [] };
  if (roll < 0.6) return { tracking: [first], later: [] };
  if (roll < 0.72) {
    const trackingLink = first.trackingLink ?? `https://trace.example/${first.trackingNumber}`;
    const move = fillInLink({ ...first, trackingLink });
    return { tracking: [{ ...first, trackingLink: null }], later: [{ move, afterHours: afterHours(0.5) }] };
  }
  if (roll < 0.85) return { tracking: [first, drawParcel(dice, region)], later: [] };
  return { tracking: [], later: [{ move: addTracking(first), afterHours: afterHours(0.3) }] };
}

function drawParcel(dice: SeededRandom, region: RegionCode): TrackingEntry {
  const carrier = dice.pick(REGION_FACTS[region].carriers);
  const trackingNumber = `${carrier.prefix}${dice.int(100_000_000, 999_999_999)}`;
  return { trackingNumber, trackingLink: carrier.link && carrier.link + trackingNumber };
}
