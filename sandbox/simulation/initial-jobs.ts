// The opening of a scenario: 15 jobs, in twelve acts, that cover all kinds of changes within half a minute.

import { HOUR_MS } from '../world/dates.ts';
import { listDeliveryOptions } from '../world/delivery.ts';
import type { JobInput, TrackingEntry } from '../world/records.ts';
import type { Stage } from '../world/regions.ts';
import { AWKWARD_TEXTS, DESIGNS, GARMENTS } from '../world/sample-data.ts';
import type { SandboxAccount } from '../world/world.ts';
import { listBuyers, type Order, type PlannedJob } from './simulation.ts';
import {
  addTracking,
  CANCEL,
  CLOSE,
  changeDueDate,
  changeText,
  dispatch,
  fillInLink,
  INVOICE,
  meetNewStatus,
  REOPEN,
  setLineStatus,
  setStatus,
  type Transition,
} from './transitions.ts';

/** An act of the opening: a job or group whose moves come at fixed seconds after the start, distributed over the accounts. */
type Act = (account: SandboxAccount) => Order;

type TimedMove = readonly [secondsAfterStart: number, move: Transition];

const OPENING_GARMENTS = GARMENTS.slice(0, 2);

/** Age of the jobs of the opening at the start. */
export const OPENING_AGE_MS = HOUR_MS / 2;

/** The order group of the opening whose jobs are dispatched at once. */
export const SHARED_GROUP = 'WEB-100002';

/** Acts, which are distributed over the accounts of a scenario. */
export const OPENING: readonly Act[] = [
  act('scheduled', [
    [1.5, setStatus('production')],
    [3.5, setLineStatus(0, 'production')],
    [18, setLineStatus(1, 'production')],
    [25, setStatus('finishing', 'jobStatus')],
    [27, setStatus('finishing', 'masterJobStatus')],
  ]),
  act('packing', [
    [4.5, dispatch([createParcel('OPEN-1001', true)])],
    [13, CLOSE],
    [31, REOPEN],
  ]),
  act('intake', [
    [6, changeDueDate(24, 1)],
    [9.5, changeText({ description: AWKWARD_TEXTS[0], comments: AWKWARD_TEXTS[1] })],
  ]),
  act('scheduled', [[7.5, CANCEL]]),
  act('packing', [
    [9, dispatch([createParcel('OPEN-1002', false)])],
    [15, fillInLink(createParcel('OPEN-1002', true))],
    [20, INVOICE],
  ]),
  act('packing', [[10.5, dispatch([createParcel('OPEN-1003', true), createParcel('OPEN-1004', true)])]]),
  // A group of two, whose first member was dispatched before the start.
  (account) => ({
    skippedNumbers: 0,
    jobs: [-60, 12].map((second, index) =>
      openingJob(account, 'packing', [[second, dispatch([createParcel(`OPEN-200${index}`, true)])]], {
        orderGroup: 'WEB-100001',
        orderGroupSequence: index + 1,
        originCode: 'SHOP',
      }),
    ),
  }),
  act('packing', [
    [14, dispatch([])],
    [22, addTracking(createParcel('OPEN-1005', true))],
  ]),
  // Becomes due while undispatched.
  act('production', [], 17),
  act('intake', [[24, CANCEL]]),
  act('production', [[29, meetNewStatus('Press test')]]),
  // Ordered together and dispatched at once, two of them in one parcel.
  (account) => ({
    skippedNumbers: 0,
    jobs: ['OPEN-3001', 'OPEN-3001', 'OPEN-3002'].map((parcel, index) =>
      openingJob(account, 'packing', [[16, dispatch([createParcel(parcel, true)])]], {
        description: DESIGNS[index],
        orderNumber: 'PO-3001',
        orderGroup: SHARED_GROUP,
        orderGroupSequence: index + 1,
        originCode: 'SHOP',
      }),
    ),
  }),
];

function act(stage: Stage, moves: readonly TimedMove[], dueAfterSeconds?: number): Act {
  return (account) => ({
    skippedNumbers: 1,
    jobs: [openingJob(account, stage, moves, {}, dueAfterSeconds)],
  });
}

function openingJob(
  account: SandboxAccount,
  stage: Stage,
  moves: readonly TimedMove[],
  input: Omit<JobInput, 'lines'>,
  dueAfterSeconds = 6 * 3600,
): PlannedJob {
  const status = account.world.statusName(account.region, stage);
  const steps = [...moves, ...OPENING_END].map(([seconds, move]) => ({
    afterMs: OPENING_AGE_MS + seconds * 1000,
    move,
  }));
  // They all leave in parcels.
  const sent = listDeliveryOptions(account.region).find(({ isCollection }) => !isCollection);
  const [owner] = listBuyers(account);
  return {
    input: (bornAt) => ({
      status,
      userId: owner?.id ?? 0,
      creator: owner?.userName ?? null,
      deliveryOption: sent?.label ?? null,
      description: DESIGNS[0],
      lines: OPENING_GARMENTS.map((garment) => ({ garment, jobLineStatus: status })),
      dateIn: bornAt,
      dateDue: bornAt + OPENING_AGE_MS + dueAfterSeconds * 1000,
      ...input,
    }),
    lineCount: OPENING_GARMENTS.length,
    steps,
    leavesAfterMs: 0,
  };
}

/** Final moves of the opening's jobs, so that they leave the list. */
const OPENING_END: readonly TimedMove[] = [
  [75, dispatch([createParcel('OPEN-1009', true)])],
  [180, CLOSE],
];

function createParcel(trackingNumber: string, linked: boolean): TrackingEntry {
  return { trackingNumber, trackingLink: linked ? `https://trace.example/${trackingNumber}` : null };
}
