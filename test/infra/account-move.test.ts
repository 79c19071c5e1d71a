/** The function that changes resources has the permissions for moving an account, in both cells. */
import { expect, test } from 'vitest';
import { beginMove, cancelMove, exportAccount, importAccount } from '../../shared/api/account-move.ts';
import { createSuppression } from '../../shared/notifications/suppressions.ts';
import { keys } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import { synthesize } from '../support/cells.ts';
import { grantsOn, guarded } from '../support/grants.ts';
import { ACME, createNotifyingWorld, draftEvent } from '../support/notification-world.ts';
import { createOperator } from '../support/operator.ts';

test('moving an account needs no permission that the function lacks', async () => {
  const cell = synthesize('prod');
  const [state = ''] = cell.resources('AWS::DynamoDB::GlobalTable').map(([id]) => id);
  expect(state).toMatch(/^State/);
  const { statements = [] } = cell.functions().find(({ id }) => id.startsWith('ApiManage')) ?? {};
  const grants = grantsOn(state, statements);
  const former = await createNotifyingWorld();
  const now = () => former.clock.now;
  await former.recipient({ email: 'ann@customer.example' });
  await createSuppression(former.people, ACME, { channel: 'email', address: 'bob@customer.example' });
  await former.fold(draftEvent('job.dispatched', 1, now()));
  const open = async (table: typeof former.table) =>
    (await createOperator({ table: guarded('manage', grants, table), now })).accounts;
  const target = createMemoryTable();
  const [from, to] = [await open(former.table), await open(target)];

  await beginMove(from, ACME, 'other');
  expect(await cancelMove(from, ACME)).toMatchObject({ kind: 'changed' });
  expect(await beginMove(from, ACME, 'other')).toMatchObject({ waitingFor: null });
  const page = await exportAccount(from, ACME);
  if (page.kind !== 'page') throw new Error(page.reason);
  const credentials = { clientId: 'acme', clientSecret: 'given' };
  for (const again of [{ credentials }, {}]) {
    expect(await importAccount(to, { data: page.data, ...again })).toMatchObject({ kind: 'imported' });
  }
  expect(await target.get(keys.notificationSettings(ACME))).toMatchObject({ enabled: true });
});
