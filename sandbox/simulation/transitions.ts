// Automatic moves of a job: their conditions and effects.

import { getOrCreate } from '../../shared/get-or-create.ts';
import { atTimeOfDay, DAY_MS, formatDay, HOUR_MS, parseWholeDay } from '../world/dates.ts';
import type { JobInput, JobRecord, ListState, TrackingEntry } from '../world/records.ts';
import type { Stage } from '../world/regions.ts';
import type { SandboxAccount } from '../world/world.ts';

/** A change of a job. */
export type TransitionKind =
  | 'status'
  | 'line status'
  | 'edited'
  | 'due date changed'
  | 'locked'
  | 'unlocked'
  | 'dispatched'
  | 'tracking added'
  | 'tracking link filled in'
  | 'tracking corrected'
  | 'dispatch date corrected'
  | 'dispatch revoked'
  | 'invoiced'
  | 'closed'
  | 'reopened'
  | 'cancelled';

/** Whether a move is possible; a change through the API may prevent it. */
export interface Transition {
  kind: TransitionKind;
  possible: (job: Readonly<JobRecord>) => boolean;
  take: (account: SandboxAccount, job: Readonly<JobRecord>, at: number) => void;
}

export const undispatched = (job: Readonly<JobRecord>) => job.phase === 'open' && job.dateOut === null;
export const dispatched = (job: Readonly<JobRecord>) => job.phase !== 'cancelled' && job.dateOut !== null;

const move = (kind: TransitionKind, possible: Transition['possible'], take: Transition['take']) => ({
  kind,
  possible,
  take,
});

/** Recurring moves are memoized: a season has half a million of them. */
const statusMoves = {
  both: new Map<Stage, Transition>(),
  masterJobStatus: new Map<Stage, Transition>(),
  jobStatus: new Map<Stage, Transition>(),
};
/** By line. */
const lineMoves = {
  undispatched: [] as Map<Stage, Transition>[],
  dispatched: [] as Map<Stage, Transition>[],
};

/** Sets the status; list and detail may change at different times. */
export function setStatus(
  stage: Stage,
  views: 'both' | 'masterJobStatus' | 'jobStatus' = 'both',
): Transition {
  return getOrCreate(statusMoves[views], stage, () =>
    move('status', undispatched, (account, { jobNumber }) => {
      const name = account.world.statusName(account.region, stage, jobNumber);
      account.setStatus(jobNumber, {
        ...(views !== 'jobStatus' && { master: name }),
        ...(views !== 'masterJobStatus' && { detail: name }),
      });
    }),
  );
}

/** Gives a job a status that is new in the region's lookup. */
export function meetNewStatus(name: string): Transition {
  return move('status', undispatched, (account, { jobNumber }) => {
    const { world, region } = account;
    if (!world.statuses(region).some((status) => status.name === name)) {
      world.addStatus(region, name, 'production');
    }
    account.setStatus(jobNumber, name);
  });
}

/** Sets the status of a line of an undispatched or a dispatched job. */
export function setLineStatus(
  line: number,
  stage: Stage,
  when: 'undispatched' | 'dispatched' = 'undispatched',
): Transition {
  const fits = when === 'undispatched' ? undispatched : dispatched;
  lineMoves[when][line] ??= new Map();
  return getOrCreate(lineMoves[when][line], stage, () => ({
    kind: 'line status',
    possible: (job) => fits(job) && job.lines[line] !== undefined,
    take: (account, { jobNumber }) =>
      account.setLineStatus(jobNumber, line, account.world.statusName(account.region, stage, jobNumber)),
  }));
}

export function changeText(input: JobInput): Transition {
  return move('edited', undispatched, (account, { jobNumber }) => account.edit(jobNumber, input));
}

export function changeDueDate(byHours: number, speed: number): Transition {
  return {
    kind: 'due date changed',
    possible: (job) => undispatched(job) && !Number.isNaN(job.dueMs),
    take: (account, job) => {
      const zone = job.location?.timezone ?? null;
      // A day as due date moves by days, however hurried the world is.
      const dateDue = parseWholeDay(job.dateDue ?? '')
        ? formatDay(atTimeOfDay(job.dueMs - 1, zone, '12:00') + Math.sign(byHours) * DAY_MS, zone)
        : Math.ceil((job.dueMs + (byHours * HOUR_MS) / speed) / 60_000) * 60_000;
      account.edit(job.jobNumber, { dateDue });
    },
  };
}

export function dispatch(tracking: TrackingEntry[]): Transition {
  return move('dispatched', undispatched, (account, { jobNumber }, at) =>
    account.dispatch(jobNumber, {
      dateOut: at,
      tracking,
      status: account.world.statusName(account.region, 'shipped', jobNumber),
    }),
  );
}

export function addTracking(entry: TrackingEntry): Transition {
  return move('tracking added', dispatched, (account, { jobNumber }) =>
    account.addTracking(jobNumber, entry),
  );
}

export function fillInLink(entry: TrackingEntry): Transition {
  const same = (other: TrackingEntry) => other.trackingNumber === entry.trackingNumber;
  return {
    kind: 'tracking link filled in',
    possible: (job) => dispatched(job) && job.tracking.some(same),
    take: (account, job) =>
      account.setTracking(
        job.jobNumber,
        job.tracking.map((other) => (same(other) ? entry : other)),
      ),
  };
}

export function correctTracking(entry: TrackingEntry): Transition {
  return {
    kind: 'tracking corrected',
    possible: (job) => dispatched(job) && job.tracking.length > 0,
    take: (account, job) => account.setTracking(job.jobNumber, [entry, ...job.tracking.slice(1)]),
  };
}

export function correctDateOut(byMs: number): Transition {
  return move('dispatch date corrected', dispatched, (account, job) =>
    account.correctDateOut(job.jobNumber, Math.round(job.outMs - byMs)),
  );
}

export const CANCEL = move('cancelled', undispatched, (account, { jobNumber }) => account.cancel(jobNumber));

export function lock(reason: string): Transition {
  return move('locked', undispatched, (account, { jobNumber }) => account.lock(jobNumber, reason));
}

export const UNLOCK: Transition = {
  kind: 'unlocked',
  possible: (job) => undispatched(job) && job.permissions?.canEdit === false,
  // From here on editing locks by itself again, at dispatch at the latest.
  take: (account, { jobNumber }) => account.freeEditing(jobNumber),
};

export const REVOKE_DISPATCH: Transition = {
  kind: 'dispatch revoked',
  possible: (job) => dispatched(job) && job.phase === 'open',
  take: (account, { jobNumber }) => {
    account.clearDateOut(jobNumber);
    account.edit(jobNumber, {
      tracking: [],
      status: account.world.statusName(account.region, 'packing', jobNumber),
    });
  },
};

export const INVOICE: Transition = {
  kind: 'invoiced',
  possible: (job) => dispatched(job) && job.invoiceNumber === null,
  take: (account, { jobNumber }) => account.invoice(jobNumber),
};

export const CLOSE: Transition = {
  kind: 'closed',
  possible: (job) => job.phase === 'open',
  take: (account, { jobNumber }) =>
    account.close(jobNumber, { status: account.world.statusName(account.region, 'closed', jobNumber) }),
};

export const REOPEN: Transition = {
  kind: 'reopened',
  possible: (job) => job.phase === 'closed',
  take: (account, { jobNumber }) =>
    account.reopen(jobNumber, { status: account.world.statusName(account.region, 'returned', jobNumber) }),
};

/** List state of a job after these moves, without other changes. */
export function listStateAfter(moves: readonly Transition[]): ListState {
  const state: ListState = { phase: 'open', dispatched: false, keptListed: false };
  for (const { kind } of moves) {
    if (kind === 'dispatched') state.dispatched = true;
    else if (kind === 'dispatch revoked') state.dispatched = false;
    else if (kind === 'closed' || kind === 'cancelled') state.phase = kind;
    else if (kind === 'reopened') Object.assign(state, { phase: 'open', keptListed: true });
  }
  return state;
}
