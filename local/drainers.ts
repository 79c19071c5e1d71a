/** The drains that run in this process: one at a time for each sink. */
import type { DrainDeps, NewWork } from '../shared/delivery/drain-deps.ts';

/** Time that an idle drain keeps its lease. */
const LINGER_MS = 5_000;

/** The running drain of one sink, and the wake-ups it has received since. */
interface Drainer {
  /** Accounts whose new events caused this drain. Those of later wake-ups are in `accounts`. */
  readonly initial: Set<string>;
  readonly accounts: Set<string>;
  /** Accounts that the drain has taken last. It may end before it reads their logs. */
  taken: readonly string[];
  /** Whether a cursor is due. */
  due: boolean;
  /** Resolves the wait of an idle drain. */
  wake: (() => void) | undefined;
}

/**
 * Creates the drains: one at a time for each sink. An idle drain keeps its lease and its positions for {@link LINGER_MS}, so that new
 * commits are sent immediately.
 */
export function createDrainers(
  drain: (
    region: string,
    sink: string,
    work: Required<Pick<DrainDeps, 'linger' | 'takeGrown'>>,
  ) => Promise<boolean>,
  run: (what: string, action: () => Promise<unknown>) => void,
): {
  /** Requests a drain. With accounts, it delivers their new events, even if their cursors are not marked due yet. */
  request(region: string, sink: string, accounts?: readonly string[]): void;
  /** Ends idle drains. */
  release(): void;
} {
  const drainers = new Map<string, Drainer>();
  let released = false;

  function request(region: string, sink: string, accounts: readonly string[] = []): void {
    const name = `${region}/${sink}`;
    const running = drainers.get(name);
    if (running) {
      if (accounts.length === 0) running.due = true;
      for (const account of accounts) running.accounts.add(account);
      running.wake?.();
      return;
    }
    const drainer: Drainer = {
      initial: new Set(accounts),
      accounts: new Set(),
      taken: [],
      due: false,
      wake: undefined,
    };
    drainers.set(name, drainer);
    run('drain a sink', async () => {
      let more = false;
      try {
        more = await drain(region, sink, {
          linger: async (holdMs = LINGER_MS) => (released ? undefined : waitForWork(drainer, holdMs)),
          takeGrown(onGrowth) {
            drainer.wake = onGrowth;
            return takeAccounts(drainer);
          },
        });
      } finally {
        drainers.delete(name);
        const left = [...(more ? drainer.taken : []), ...drainer.accounts];
        if (more || left.length > 0) request(region, sink, left);
      }
    });
  }

  return {
    request,
    release() {
      released = true;
      for (const drainer of drainers.values()) drainer.wake?.();
    },
  };
}

/** Waits for wake-ups of a drain. Returns `undefined` after a time without any. */
async function waitForWork(drainer: Drainer, ms: number): Promise<NewWork | undefined> {
  const { initial, accounts } = drainer;
  if (initial.size + accounts.size === 0 && !drainer.due) {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      drainer.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    drainer.wake = undefined;
  }
  const work = { accounts: takeAccounts(drainer), due: drainer.due };
  drainer.due = false;
  return work.due || work.accounts.length > 0 ? work : undefined;
}

function takeAccounts(drainer: Drainer): readonly string[] {
  const { initial, accounts } = drainer;
  if (initial.size + accounts.size === 0) return [];
  drainer.taken = [...initial, ...accounts];
  initial.clear();
  accounts.clear();
  return drainer.taken;
}
