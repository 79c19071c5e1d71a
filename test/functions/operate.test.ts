/** The operator's function: the effect of each command, and its error messages. */
import { expect, test } from 'vitest';
import { commands } from '../../functions/handlers/operate.ts';
import { createAccount } from '../../shared/accounts/managed-accounts.ts';
import { createKeyring } from '../../shared/api/keys.ts';
import { createOperator, SECRET } from '../support/operator.ts';

const INVALID: readonly (readonly [string, unknown, string])[] = [
  ['nothing', undefined, 'The command is missing; it must be an object.'],
  ['a text', 'logs.renew', 'The command must be an object.'],
  ['no command', { role: 'read' }, `do must be one of ${commands().join(', ')}.`],
  ['an unknown command', { do: 'keys.drop' }, `do must be one of ${commands().join(', ')}.`],
  ['an unknown field', { do: 'logs.renew', all: true }, 'all is not a known setting.'],
  ['an unknown role', { do: 'keys.create', role: 'root' }, 'role must be read, operate or admin.'],
  [
    'an expired key',
    { do: 'keys.create', expiresAt: '2020-01-01T00:00:00Z' },
    'expiresAt must be in the future.',
  ],
];

test.each(INVALID)('%s returns one error message that names the field', async (_, command, message) => {
  const { run, reports } = await createOperator();
  expect(await run(command)).toEqual({ error: { kind: 'rejected', message } });
  expect(reports).toMatchObject([{ outcome: 'rejected' }]);
});

test('logs are renewed after a restore that the settings name, and never otherwise', async () => {
  const operator = await createOperator();
  await createAccount(operator.accounts, { id: 'acme', secretRef: SECRET });
  expect(await operator.run({ do: 'logs.renew' })).toEqual({
    error: {
      kind: 'conflict',
      message:
        'The settings of the cell "us" name no restored table (stateTable.restoredAt), so there is nothing to renew.',
    },
  });
  const { table, clock } = operator;
  const restored = await createOperator({ table, now: () => clock.now + 2000, restoredAt: clock.now + 1000 });
  expect(await restored.run({ do: 'logs.renew' })).toEqual({ logs: { renewed: 2, unchanged: 0 } });
  expect(await restored.run({ do: 'logs.renew' })).toEqual({ logs: { renewed: 0, unchanged: 2 } });
  await createAccount(restored.accounts, { id: 'new', secretRef: SECRET });
  expect(await restored.run({ do: 'logs.renew' }), 'also logs created since').toEqual({
    logs: { renewed: 0, unchanged: 3 },
  });
});

test('an unavailable table is a fault of the function, without an answer', async () => {
  const { run, table, reports } = await createOperator();
  table.query = () => Promise.reject(new Error('The table does not answer.'));
  await expect(run({ do: 'keys.create' })).rejects.toThrow('The table does not answer.');
  expect(reports).toEqual([]);
});

test('the first key is an admin of all accounts, returned once; others are as requested', async () => {
  const { run, table, clock, reports } = await createOperator();
  const first = await run({ do: 'keys.create' });
  expect(first).toEqual({
    key: {
      id: expect.stringMatching(/^[a-z2-9]{12}$/),
      name: null,
      role: 'admin',
      accounts: null,
      createdAt: new Date(clock.now).toISOString(),
      createdBy: 'operator',
      createdByUser: null,
      expiresAt: null,
      lastUsedAt: null,
    },
    secret: expect.stringMatching(/^jw_[a-z2-9]{12}_[0-9A-Za-z]{43}$/),
  });
  const asked = { name: 'ERP', role: 'read', accounts: ['acme'], expiresAt: '2031-01-01T00:00:00.000Z' };
  const { key } = await run({ do: 'keys.create', ...asked });
  expect(key).toMatchObject(asked);
  const keyring = createKeyring({ table, now: () => clock.now });
  expect(await keyring.verify(String(first.secret))).toMatchObject({ role: 'admin', accounts: null });
  await keyring.settled();
  // The log line has the id of the key, and nothing of its secret.
  expect(reports).toEqual([
    { command: 'keys.create', about: first.key?.id, outcome: 'done' },
    { command: 'keys.create', about: key?.id, outcome: 'done' },
  ]);
});
