/** The record of an action on a subject in the history of its item, over every table. */
import { expect, test } from 'vitest';
import { jobItem } from '../../shared/api/attention/items.ts';
import { listAttentionHistory } from '../../shared/api/attention/queue.ts';
import { recordAction } from '../../shared/api/attention/recording.ts';
import { findCandidate } from '../../shared/api/attention/sources.ts';
import { OPERATOR } from '../../shared/api/keys.ts';
import type { RouteParts } from '../../shared/api/route.ts';
import { historySchema } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import type { Table } from '../../shared/storage/table.ts';
import { eachTable } from '../support/tables.ts';
import { createRig } from '../support/tracker.ts';

eachTable('the record of an action', (makeTable) => {
  test('an action is performed although its item cannot be read or its record not be written, and the error is reported', async () => {
    const rig = await createRig({ table: await makeTable() });
    const history = createMemoryTable(historySchema);
    const job = rig.upstream.createJob({ dateDue: '2026-03-01T12:00:00Z' });
    await rig.poll();
    const id = jobItem(rig.ref, job);
    const perform = async (faults: Partial<Table>) => {
      const reported: unknown[] = [];
      const table = { ...rig.table, ...faults };
      const feed = { table, log: rig.log, now: rig.now, regions: [rig.ref.region] };
      const report = (_: unknown, cause: unknown) => reported.push(cause);
      const parts = { feed, messages: history, report } as unknown as RouteParts;
      const by = { c: {} as never, caller: OPERATOR };
      const record = await recordAction('send_note', id, by, parts);
      await record();
      return reported;
    };
    const fail = async () => Promise.reject(new Error('The table is down.'));
    expect(await perform({ get: fail })).toMatchObject([{ message: 'The table is down.' }]);
    expect(await perform({ transact: fail })).toMatchObject([{ message: 'The table is down.' }]);
    const changing = await perform({ transact: async () => ({ done: false, failed: [0] }) });
    expect(changing).toMatchObject([{ message: expect.stringContaining('kept changing') }]);
    expect(await perform({})).toEqual([]);
    const deps = { table: rig.table, log: rig.log, now: rig.now, history, regions: [rig.ref.region] };
    const item = await findCandidate(deps, id, OPERATOR);
    if (!item) throw new Error('no item');
    const { entries } = await listAttentionHistory(deps, item, { limit: 10 });
    expect(entries).toMatchObject([{ action: 'send_note' }]);
  });
});
