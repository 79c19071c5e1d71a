/** The operator's function: the effect of each command, and its error messages. */
import { CreateSecretCommand, type SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { expect, test } from 'vitest';
import { commands } from '../../functions/handlers/operate.ts';
import { createKeyring } from '../../shared/api/keys.ts';
import { createAwsSigningSecrets } from '../../shared/delivery/signing-secrets.ts';
import { CELL_LOG, cellLog, cursorPk, keys, POLL_SHARDS, pollDuePk } from '../../shared/storage/schema.ts';
import { createOperator, SECRET } from '../support/operator.ts';

const ACME = { region: 'us', account: 'acme' };
const URL = 'https://erp.example.com/hook?key=s3cret-in-url';

type Operator = Awaited<ReturnType<typeof createOperator>>;

const addAcme = ({ tell }: Operator) =>
  tell({ do: 'accounts.add', account: 'acme', secretRef: SECRET, pollIntervalSeconds: 60 });

/** The accounts that are due at a time. */
async function dueAt({ table }: Operator, instant: string): Promise<string[]> {
  const shards = Array.from({ length: POLL_SHARDS }, (_, shard) =>
    table.query({ index: 'due', pk: pollDuePk('us', shard), to: instant }),
  );
  return (await Promise.all(shards)).flat().map(({ dueSk }) => String(dueSk).split('#')[1] ?? '');
}

test('an empty cell gets its first account: it is due at once, with logs of a new epoch', async () => {
  const operator = await createOperator();
  expect(await operator.tell({ do: 'accounts.add', account: 'acme', secretRef: SECRET })).toEqual({
    account: {
      ...{
        id: 'acme',
        region: 'us',
        managed: true,
        secretRef: SECRET,
        pollIntervalSeconds: 120,
        paused: false,
      },
      ...{ createdAt: '2026-03-02T08:00:00.000Z', changedAt: '2026-03-02T08:00:00.000Z', revision: 1 },
    },
  });
  expect(await dueAt(operator, '2026-03-02T08:00:01')).toEqual(['acme']);
  const [head, cell] = [await operator.log.head(ACME), await operator.log.head(cellLog('us'))];
  expect([head, cell]).toMatchObject([{ sequence: 0 }, { sequence: 0 }]);

  operator.clock.now += 1000;
  await operator.tell({ do: 'accounts.add', account: 'later', secretRef: SECRET });
  const later = await operator.log.head({ ...ACME, account: 'later' });
  expect(String(later?.epoch) > String(head?.epoch), 'epochs sort by time').toBe(true);
});

test('adding an account again changes nothing; with other settings it is rejected', async () => {
  const operator = await createOperator();
  const added = await addAcme(operator);
  const head = await operator.log.head(ACME);
  await operator.tell({ do: 'accounts.pause', account: 'acme' });
  expect(await addAcme(operator)).toEqual({
    account: { ...(added.account as object), paused: true, revision: 2 },
  });
  expect(await operator.log.head(ACME)).toEqual(head);
  expect(await operator.tell({ do: 'accounts.add', account: 'acme', secretRef: `${SECRET}-2` })).toEqual({
    error: {
      kind: 'conflict',
      message:
        'account must be new, and there is an account "acme" with other settings already; accounts.change changes them.',
    },
  });
});

test('an account is changed, paused and resumed; its log stays, and while it is paused it is not due', async () => {
  const operator = await createOperator();
  await addAcme(operator);
  const head = await operator.log.head(ACME);
  const changed = { id: 'acme', secretRef: `${SECRET}#a`, pollIntervalSeconds: 300, paused: false };
  expect(
    await operator.tell({
      do: 'accounts.change',
      account: 'acme',
      secretRef: `${SECRET}#a`,
      pollIntervalSeconds: 300,
    }),
  ).toMatchObject({ account: changed });
  expect(await operator.tell({ do: 'accounts.pause', account: 'acme' })).toMatchObject({
    account: { ...changed, paused: true },
  });
  expect(await dueAt(operator, '2099')).toEqual([]);
  expect(await operator.tell({ do: 'accounts.status', account: 'acme' })).toMatchObject({
    account: { secretRef: `${SECRET}#a` },
    status: { state: 'paused', head: `${head?.epoch}.0` },
  });
  await operator.tell({ do: 'accounts.resume', account: 'acme' });
  expect(await dueAt(operator, '2099')).toEqual(['acme']);
  expect(await operator.tell({ do: 'accounts.list' })).toMatchObject({ accounts: [changed] });
  expect(await operator.log.head(ACME)).toEqual(head);
});

test('confirming an account works if it waits for it, and fails otherwise', async () => {
  const operator = await createOperator();
  await addAcme(operator);
  const confirm = { do: 'accounts.confirm', account: 'acme', upstreamId: 4711 };
  expect(await operator.tell(confirm)).toEqual({
    error: { kind: 'conflict', message: 'The account is baselining: it waits for nobody.' },
  });
  const set = { state: 'identity_mismatch', duePk: undefined, dueSk: undefined };
  await operator.table.write({ update: keys.status(ACME), set });
  expect(await operator.tell(confirm)).toEqual({ confirmed: 'identity_mismatch' });
  expect(await dueAt(operator, '2099')).toEqual(['acme']);
  expect(await operator.log.head(ACME)).toMatchObject({ attributes: { upstreamId: 4711 } });
});

test('an endpoint is created with a secret that is returned once, then changed, paused, rotated, and deleted', async () => {
  const operator = await createOperator();
  const { tell, secrets } = operator;
  await addAcme(operator);
  const made = await tell({ do: 'endpoints.add', endpoint: { id: 'erp', url: URL, accounts: ['acme'] } });
  expect(made).toMatchObject({
    endpoint: { id: 'erp', url: URL, accounts: ['acme'], createdAt: '2026-03-02T08:00:00.000Z' },
    secret: expect.stringMatching(/^whsec_/),
    truncatedAccounts: [],
  });
  expect(await secrets.load('us', 'erp')).toEqual({ secrets: [made.secret], creation: expect.any(String) });
  expect(await operator.table.query({ pk: cursorPk('us', 'erp') })).toHaveLength(1);

  const change = { do: 'endpoints.change', endpoint: 'erp', change: { accounts: null, types: ['job.*'] } };
  expect(await tell(change)).toMatchObject({ endpoint: { accounts: [], types: ['job.*'] } });
  const followed = await operator.table.query({ pk: cursorPk('us', 'erp') });
  expect(followed.map(({ sk }) => sk)).toEqual([CELL_LOG, 'acme']);
  expect(await tell({ do: 'endpoints.pause', endpoint: 'erp' })).toMatchObject({
    endpoint: { paused: true },
  });
  expect(await tell({ do: 'endpoints.resume', endpoint: 'erp' })).toMatchObject({
    endpoint: { paused: false },
  });
  expect(await tell({ do: 'endpoints.ping', endpoint: 'erp' })).toMatchObject({
    outcome: 'delivered',
    logged: true,
  });

  await operator.table.write({ update: keys.sink('us', 'erp'), set: { disabledAt: 1, disabledReason: 'x' } });
  await tell({ do: 'endpoints.enable', endpoint: 'erp' });
  expect(await operator.table.get(keys.sink('us', 'erp'))).not.toHaveProperty('disabledReason');

  const rotated = await tell({
    do: 'endpoints.rotate',
    endpoint: 'erp',
    rotation: { gracePeriodSeconds: 60 },
  });
  expect(rotated).toEqual({
    secret: expect.stringMatching(/^whsec_/),
    previousSecretsExpireAt: '2026-03-02T08:01:00.000Z',
  });
  expect(JSON.stringify(await tell({ do: 'endpoints.list' }))).not.toContain('whsec_');
  expect(await tell({ do: 'endpoints.delete', endpoint: 'erp' })).toEqual({ deleted: 'erp' });
  expect(await tell({ do: 'endpoints.list' })).toEqual({ endpoints: [] });
  expect(await secrets.load('us', 'erp')).toBeUndefined();
});

const WHERE =
  'must be the name of a secret that begins with jobwire/test/us/accounts/, or that, # and a key of the JSON in it';

const REFUSED: readonly (readonly [string, unknown, string])[] = [
  ['nothing', undefined, 'The command is missing; it must be an object.'],
  ['a text', 'accounts.list', 'The command must be an object.'],
  ['no command', { account: 'acme' }, `do must be one of ${commands().join(', ')}.`],
  ['a command that is none', { do: 'accounts.drop' }, `do must be one of ${commands().join(', ')}.`],
  ['a field too many', { do: 'accounts.list', all: true }, 'all is not a known setting.'],
  ['no account', { do: 'accounts.status' }, 'account is missing; it must be the id of an account.'],
  [
    'an id that is none',
    { do: 'accounts.add', account: 'Acme', secretRef: SECRET },
    'account must be 1–63 lower-case letters, digits and hyphens, beginning with a letter or digit.',
  ],
  [
    'the reserved id',
    { do: 'accounts.add', account: CELL_LOG, secretRef: SECRET },
    'account must be 1–63 lower-case letters, digits and hyphens, beginning with a letter or digit.',
  ],
  [
    'polls too close together',
    { do: 'accounts.add', account: 'acme', secretRef: SECRET, pollIntervalSeconds: 59 },
    'pollIntervalSeconds must be an integer number of seconds from 60 to 86400.',
  ],
  ...[
    'acme',
    'jobwire/test/us/accounts/',
    'jobwire/test/uk/accounts/a',
    `${SECRET}#`,
    `${SECRET} `,
    '#a',
  ].map((secretRef): readonly [string, unknown, string] => [
    `the secret ${secretRef}`,
    { do: 'accounts.add', account: 'acme', secretRef },
    `secretRef ${WHERE}.`,
  ]),
  [
    'the secret of a change',
    { do: 'accounts.change', account: 'acme', secretRef: 'acme' },
    `secretRef ${WHERE}.`,
  ],
  [
    'an endpoint that is none',
    { do: 'endpoints.add', endpoint: URL },
    'endpoint must be an endpoint: at least its url.',
  ],
  [
    'an endpoint with a wrong field',
    { do: 'endpoints.add', endpoint: { url: URL, ratePerSecond: 0 } },
    'ratePerSecond must be a number from 0.1 to 1000.',
  ],
  ['a role that there is not', { do: 'keys.create', role: 'root' }, 'role must be read, operate or admin.'],
  [
    'a key that has expired',
    { do: 'keys.create', expiresAt: '2020-01-01T00:00:00Z' },
    'expiresAt must be in the future.',
  ],
];

test.each(REFUSED)('%s is answered with one message that names the field', async (_, command, message) => {
  const { tell, reports } = await createOperator();
  expect(await tell(command)).toEqual({ error: { kind: 'rejected', message } });
  expect(reports).toMatchObject([{ outcome: 'rejected' }]);
});

test('an account is deleted with its data; its credentials can be tested before and not after', async () => {
  const operator = await createOperator();
  await addAcme(operator);
  expect(await operator.tell({ do: 'accounts.test', account: 'acme' })).toMatchObject({
    ok: false,
    account: 'acme',
    steps: [{ step: 'token', ok: false }],
  });
  expect(await operator.tell({ do: 'accounts.delete', account: 'acme' })).toEqual({
    deleted: 'acme',
    complete: true,
  });
  expect(await operator.log.head(ACME)).toBeUndefined();
  expect(await operator.tell({ do: 'accounts.list' })).toEqual({ accounts: [] });
  expect(await operator.tell({ do: 'accounts.add', account: 'acme', secretRef: SECRET })).toEqual({
    error: {
      kind: 'conflict',
      message:
        'id must be new, and "acme" was deleted just now: this id is free again at 2026-03-02T08:06:00.000Z.',
    },
  });
});

test.each([
  'accounts.test',
  'accounts.delete',
  'accounts.status',
  'accounts.pause',
  'accounts.resume',
  'accounts.confirm',
])('%s of an unknown account fails with a message', async (command) => {
  const { tell, reports } = await createOperator();
  expect(await tell({ do: command, account: 'nobody' })).toEqual({
    error: { kind: 'unknown', message: 'There is no account "nobody".' },
  });
  expect(reports).toEqual([{ command, about: 'nobody', outcome: 'unknown' }]);
});

test('a change of an unknown account fails with a message, and an empty change is rejected', async () => {
  const { tell } = await createOperator();
  const change = { do: 'accounts.change', account: 'nobody' };
  expect(await tell(change)).toMatchObject({ error: { kind: 'rejected' } });
  expect(await tell({ ...change, pollIntervalSeconds: 60 })).toEqual({
    error: { kind: 'unknown', message: 'There is no account "nobody".' },
  });
});

test('logs are renewed after a restore that the settings name, and never otherwise', async () => {
  const operator = await createOperator();
  await addAcme(operator);
  expect(await operator.tell({ do: 'logs.renew' })).toEqual({
    error: {
      kind: 'conflict',
      message:
        'The settings of the cell "us" name no restored table (stateTable.restoredAt), so there is nothing to renew.',
    },
  });
  const { table, clock } = operator;
  const restored = await createOperator({ table, now: () => clock.now + 2000, restoredAt: clock.now + 1000 });
  expect(await restored.tell({ do: 'logs.renew' })).toEqual({ logs: { renewed: 2, unchanged: 0 } });
  expect(await restored.tell({ do: 'logs.renew' })).toEqual({ logs: { renewed: 0, unchanged: 2 } });
  await restored.tell({ do: 'accounts.add', account: 'new', secretRef: SECRET });
  expect(await restored.tell({ do: 'logs.renew' }), 'also what is new since').toEqual({
    logs: { renewed: 0, unchanged: 3 },
  });
});

test('an unavailable table is a fault of the function, without an answer', async () => {
  const { tell, table, reports } = await createOperator();
  table.query = () => Promise.reject(new Error('The table does not answer.'));
  await expect(tell({ do: 'accounts.list' })).rejects.toThrow('The table does not answer.');
  expect(reports).toEqual([]);
});

test('each command logs a line with ids only, without secrets and URLs', async () => {
  const operator = await createOperator();
  const { tell, reports } = operator;
  await addAcme(operator);
  const secret = `whsec_${Buffer.alloc(32, 5).toString('base64')}`;
  await tell({
    do: 'endpoints.add',
    endpoint: { id: 'erp', url: URL, secret, headers: { 'x-key': 's3cret' } },
  });
  await tell({ do: 'endpoints.rotate', endpoint: 'erp', rotation: { secret } });
  await tell({ do: 'endpoints.rotate', endpoint: 'erp', rotation: { secret: 's3cret' } });
  expect(reports).toEqual([
    { command: 'accounts.add', about: 'acme', outcome: 'done' },
    { command: 'endpoints.add', about: 'erp', outcome: 'done' },
    { command: 'endpoints.rotate', about: 'erp', outcome: 'done' },
    { command: 'endpoints.rotate', about: 'erp', outcome: 'rejected' },
  ]);
});

test('the first key is an admin of all accounts, returned once; others are as requested', async () => {
  const { tell, table, clock } = await createOperator();
  const first = await tell({ do: 'keys.create' });
  expect(first).toEqual({
    key: {
      id: expect.stringMatching(/^[a-z2-9]{12}$/),
      name: null,
      role: 'admin',
      accounts: null,
      createdAt: new Date(clock.now).toISOString(),
      createdBy: 'operator',
      expiresAt: null,
      lastUsedAt: null,
    },
    secret: expect.stringMatching(/^jw_[a-z2-9]{12}_[0-9A-Za-z]{43}$/),
  });
  const asked = { name: 'ERP', role: 'read', accounts: ['acme'], expiresAt: '2031-01-01T00:00:00.000Z' };
  const { key } = await tell({ do: 'keys.create', ...asked });
  expect(key).toMatchObject(asked);
  const keyring = createKeyring({ table, now: () => clock.now });
  expect(await keyring.verify(String(first.secret))).toMatchObject({ role: 'admin', accounts: null });
  await keyring.settled();

  const { keys: listed } = await tell({ do: 'keys.list' });
  const used = { ...(first.key as object), lastUsedAt: new Date(clock.now).toISOString() };
  expect(listed).toHaveLength(2);
  expect(listed).toEqual(expect.arrayContaining([used, key]));
  expect(JSON.stringify(listed)).not.toContain(String(first.secret).split('_')[2]);
});

test('a key is revoked by its id; an unknown one, or a whole key, is rejected', async () => {
  const { tell, reports } = await createOperator();
  const { key, secret } = (await tell({ do: 'keys.create' })) as { key: { id: string }; secret: string };
  expect(await tell({ do: 'keys.revoke', key: secret })).toEqual({
    error: {
      kind: 'rejected',
      message: 'key must be the id of a key: the part between its first two `_`.',
    },
  });
  expect(await tell({ do: 'keys.revoke', key: key.id })).toEqual({ revoked: key.id });
  expect(await tell({ do: 'keys.revoke', key: key.id })).toEqual({
    error: { kind: 'unknown', message: 'There is no such key.' },
  });
  expect(await tell({ do: 'keys.list' })).toEqual({ keys: [] });
  expect(reports).toEqual([
    { command: 'keys.create', about: key.id, outcome: 'done' },
    { command: 'unknown', about: null, outcome: 'rejected' },
    { command: 'keys.revoke', about: key.id, outcome: 'done' },
    { command: 'keys.revoke', about: key.id, outcome: 'unknown' },
    { command: 'keys.list', about: null, outcome: 'done' },
  ]);
});

test('in a cell with its own key, endpoint secrets are encrypted with it', async () => {
  const made: object[] = [];
  const client = {
    async send(command: { input: object }) {
      if (!(command instanceof CreateSecretCommand)) {
        throw Object.assign(new Error('none'), { name: 'ResourceNotFoundException' });
      }
      made.push(command.input);
      return {};
    },
  } as unknown as SecretsManagerClient;
  const kept = { secrets: [`whsec_${Buffer.alloc(32).toString('base64')}`] };
  for (const keyArn of ['arn:aws:kms:us-east-1:111122223333:key/k', undefined]) {
    await createAwsSigningSecrets(client, { stage: 'test', keyArn }).save('us', 'erp', kept);
  }
  expect(made).toMatchObject([{ KmsKeyId: 'arn:aws:kms:us-east-1:111122223333:key/k' }, {}]);
  expect(made[1]).not.toHaveProperty('KmsKeyId');
});
