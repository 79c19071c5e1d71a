/** Actions on resources: create, change, delete and commands. */
import { type QueryKey, useQueryClient } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { type Confirmation, showToast, useConfirm } from './components.tsx';

/** An action that runs after confirmation. */
interface ConfirmedAction extends Omit<Confirmation, 'onConfirm'> {
  readonly act: () => Promise<unknown>;
  /** Notification after success. */
  readonly done: string;
}

/** Runs one action at a time, and refetches queries afterwards. */
export interface ActionRunner {
  /** Name of the running action. */
  readonly busy: string | null;
  /** Error of the last action. */
  readonly failure: unknown;
  /** Name of the action that failed. */
  readonly failed: string | null;
  /** Runs `act`. Keeps an error in `failure`; shows `done` as a notification on success. */
  run(name: string, act: () => Promise<unknown>, done?: string): Promise<void>;
  /** Asks for confirmation, then runs the action. The dialog shows its error. */
  confirm(action: ConfirmedAction): void;
}

const NONE = { failure: null, failed: null };

/** Returns a runner of actions, the same until its state changes. `refreshed`: keys of the queries to refetch. */
export function useActions(refreshed: readonly QueryKey[]): ActionRunner {
  const client = useQueryClient();
  const ask = useConfirm();
  const [busy, setBusy] = useState<string | null>(null);
  const [{ failure, failed }, setFailure] = useState<Pick<ActionRunner, 'failure' | 'failed'>>(NONE);
  const keys = JSON.stringify(refreshed);
  return useMemo((): ActionRunner => {
    const refresh = () =>
      Promise.all((JSON.parse(keys) as QueryKey[]).map((queryKey) => client.invalidateQueries({ queryKey })));
    return {
      busy,
      failure,
      failed,
      async run(name, act, done) {
        setBusy(name);
        setFailure(NONE);
        try {
          await act();
          if (done !== undefined) showToast(done);
        } catch (cause) {
          setFailure({ failure: cause, failed: name });
        } finally {
          await refresh();
          setBusy(null);
        }
      },
      confirm: ({ act, done, ...confirmation }) =>
        ask({
          ...confirmation,
          onConfirm: async () => {
            setFailure(NONE);
            await act();
            showToast(done);
            await refresh();
          },
        }),
    };
  }, [keys, client, ask, busy, failure, failed]);
}
