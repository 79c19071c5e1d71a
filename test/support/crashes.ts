/** Operations whose process crashes at one of its writes. */
import { expect } from 'vitest';
import type { Table } from '../../shared/storage/table.ts';

/** Dependencies of an operation that writes to a table and stores secrets. */
interface Deps {
  readonly table: Table;
  readonly secrets: object;
}

/** The dependencies of a process that crashes at its n-th write (from 0), before or after it; later calls never return. */
export function dying<D extends Deps>(deps: D, atWrite: number, when: 'before' | 'after') {
  const state = { writes: 0, dead: false };
  const sent = new Set<Promise<unknown>>();
  const call =
    <A extends unknown[], R>(action: (...args: A) => Promise<R>, writes: boolean) =>
    async (...args: A): Promise<R> => {
      if (state.dead) throw new Error('dead');
      const dies = writes && state.writes++ === atWrite;
      if (dies) state.dead = true;
      if (dies && when === 'before') throw new Error('dead');
      const sending = action(...args);
      sent.add(sending);
      const result = await sending;
      if (dies) throw new Error('dead');
      return result;
    };
  const table: Table = {
    ...deps.table,
    get: call(deps.table.get, false),
    getMany: call(deps.table.getMany, false),
    query: call(deps.table.query, false),
    write: call(deps.table.write, true),
    transact: call(deps.table.transact, true),
  };
  const secrets = Object.fromEntries(
    Object.entries(deps.secrets).map(([name, action]) => [
      name,
      call(action, name === 'save' || name === 'remove'),
    ]),
  );
  /** Calls in progress may still arrive. */
  const settled = () => Promise.allSettled(sent);
  return { state, settled, deps: { ...deps, table, secrets } as D };
}

/** Runs an action once for every write at which it can be interrupted; `then` checks the result. Returns their number. */
export async function atEveryCrash<R extends { readonly deps: Deps }>(
  makeRig: () => Promise<R>,
  act: (deps: R['deps']) => Promise<unknown>,
  then: (rig: R, where: string) => Promise<void>,
  step: number,
): Promise<number> {
  let crashes = 0;
  for (const when of ['before', 'after'] as const) {
    for (let atWrite = 0; ; atWrite += step) {
      const rig = await makeRig();
      const mortal = dying(rig.deps, atWrite, when);
      await act(mortal.deps).catch((cause: Error) => expect(cause.message).toBe('dead'));
      await mortal.settled();
      if (!mortal.state.dead) break;
      crashes += 1;
      await then(rig, `${when} write ${atWrite}`);
    }
  }
  return crashes;
}
