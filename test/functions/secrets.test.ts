/** Secrets on AWS: encrypted in the state table by data keys, which KMS encrypts. */
import { expect, test } from 'vitest';
import { DATA_KEY_CACHE_MS, DATA_KEY_ROTATION_MS } from '../../functions/secrets.ts';
import { createAccountSecrets } from '../../shared/accounts/credentials.ts';
import { createSigningSecrets } from '../../shared/delivery/signing-secrets.ts';
import { SecretError } from '../../shared/secrets.ts';
import { credentialsPk, dataKeyPk, endpointSecretsPk, keys } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import type { Item, Table } from '../../shared/storage/table.ts';
import { FakeKms, sealWithKms } from '../support/kms.ts';

const OTHER_KEY = 'arn:aws:kms:us-east-1:444455556666:key/other';
const GIVEN = { clientId: 'client-7', clientSecret: 's3cret-of-acme' };
const KEPT = { secrets: [`whsec_${Buffer.alloc(24, 1).toString('base64')}`] };
const ACME = { region: 'us', account: 'acme' };
const MISSING = 'The secret erp cannot be decrypted: the data key of version 0001 is missing.';

/** A table, its KMS and a clock; each process has its own caches. */
function createCell(table: Table = createMemoryTable()) {
  const kms = new FakeKms();
  const clock = { now: Date.parse('2026-03-02T08:00:00Z') };
  function start({
    stage = 'prod',
    on = table,
    ...other
  }: {
    stage?: string;
    on?: Table;
    keyArn?: string;
  } = {}) {
    const texts = sealWithKms(on, kms, { stage, now: () => clock.now, ...other });
    const readSecret = async () => ({ ...GIVEN, version: 'own' });
    return {
      accounts: createAccountSecrets(texts, { stage, cell: 'us', readSecret }),
      endpoints: createSigningSecrets(texts),
    };
  }
  const items = async (): Promise<Item[]> =>
    (
      await Promise.all(
        [credentialsPk('us'), endpointSecretsPk('us'), dataKeyPk('us')].map((pk) => table.query({ pk })),
      )
    ).flat();
  return { table, kms, clock, start, items };
}

test('secrets are read by another process, and neither they nor a data key are in the table or in an error', async () => {
  const { kms, start, items } = createCell();
  const manage = start();
  const ref = await manage.accounts.save('us', 'acme', GIVEN);
  await manage.endpoints.save('us', 'erp', KEPT);
  const other = start();
  const first = await other.accounts.read(ref);
  expect(first).toMatchObject(GIVEN);
  expect(await other.endpoints.load('us', 'erp')).toEqual(KEPT);
  await manage.accounts.save('us', 'acme', GIVEN);
  expect((await other.accounts.read(ref)).version, 'tokens of former credentials are not used').not.toBe(
    first.version,
  );

  const stored = (await items()).map((item) =>
    Object.values(item)
      .map((value) => (value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : String(value)))
      .join(),
  );
  expect(stored).toHaveLength(3);
  for (const hidden of ['s3cret', 'whsec_', 'client-7']) expect(stored.join()).not.toContain(hidden);

  await manage.accounts.remove('us', 'acme');
  await expect(other.accounts.read(ref)).rejects.toThrow('The secret kept:us/acme is missing.');
  expect(kms.calls).toEqual(['GenerateDataKeyWithoutPlaintext', 'Decrypt', 'Decrypt']);
});

test('credentials of an account are read from Secrets Manager only by a reference to a secret of the cell', async () => {
  const { accounts } = createCell().start();
  expect(await accounts.read('jobwire/prod/us/accounts/acme')).toMatchObject({ version: 'own' });
  expect(accounts.checkSecretRef('us', 'jobwire/prod/us/accounts/acme')).toBeUndefined();
  for (const ref of ['kept:us/acme', 'jobwire/prod/uk/accounts/acme', 'jobwire/dev/us/accounts/acme'])
    expect(accounts.checkSecretRef('us', ref), ref).toContain('begins with jobwire/prod/us/accounts/');
});

test('an encrypted secret that is copied to another account or endpoint cannot be decrypted', async () => {
  const { table, start } = createCell();
  const { accounts, endpoints } = start();
  const mine = await accounts.save('us', 'mine', GIVEN);
  await accounts.save('us', 'acme', GIVEN);
  await endpoints.save('us', 'acme', KEPT);
  const from = await table.get(keys.credentials(ACME));
  for (const key of [keys.credentials({ ...ACME, account: 'mine' }), keys.endpointSecrets('us', 'acme')])
    await table.write({ put: { ...from, ...key } });
  await expect(accounts.read(mine)).rejects.toThrow('The secret kept:us/mine cannot be decrypted.');
  await expect(endpoints.load('us', 'acme')).rejects.toThrow('The secret acme cannot be decrypted.');
});

test('another cell and another KMS key cannot decrypt a data key', async () => {
  const { start } = createCell();
  await start().endpoints.save('us', 'erp', KEPT);
  for (const [other, reason] of [
    [{ stage: 'dev' }, 'InvalidCiphertextException'],
    [{ keyArn: OTHER_KEY }, 'IncorrectKeyException'],
  ] as const)
    await expect(start(other).endpoints.load('us', 'erp')).rejects.toThrow(
      `The secret key of version 0001 cannot be decrypted by KMS (${reason}).`,
    );
});

test('a process calls KMS once an hour, however many secrets it reads', async () => {
  const { kms, clock, start } = createCell();
  const { endpoints } = start();
  for (let n = 0; n < 5; n += 1) await endpoints.save('us', `erp-${n}`, KEPT);
  kms.calls.length = 0;
  const drain = start();
  const readAll = () =>
    Promise.all(Array.from({ length: 20 }, (_, n) => drain.endpoints.load('us', `erp-${n % 5}`)));
  await readAll();
  // The age counts from the call, not from the last use.
  clock.now += DATA_KEY_CACHE_MS - 1;
  await readAll();
  expect(kms.calls).toEqual(['Decrypt']);
  clock.now += 1;
  await readAll();
  expect(kms.calls).toEqual(['Decrypt', 'Decrypt']);
});

test('after a year new secrets are encrypted with a new data key, and older ones remain readable', async () => {
  const { table, clock, start, items } = createCell();
  const { endpoints } = start();
  await endpoints.save('us', 'old', KEPT);
  clock.now += DATA_KEY_ROTATION_MS - 1;
  await endpoints.save('us', 'same', KEPT);
  clock.now += 1;
  await endpoints.save('us', 'new', KEPT);
  const versions = ['old', 'same', 'new'].map(
    async (id) => (await table.get(keys.endpointSecrets('us', id)))?.keyVersion,
  );
  expect(await Promise.all(versions)).toEqual(['0001', '0001', '0002']);
  const fresh = start();
  for (const id of ['old', 'same', 'new']) expect(await fresh.endpoints.load('us', id), id).toEqual(KEPT);
  expect((await items()).filter(({ pk }) => pk === dataKeyPk('us'))).toHaveLength(2);
});

test('processes that store the first secrets at once use one data key', async () => {
  const { start, items } = createCell();
  const processes = Array.from({ length: 4 }, () => start());
  await Promise.all(processes.map(({ endpoints }, n) => endpoints.save('us', `erp-${n}`, KEPT)));
  expect((await items()).filter(({ pk }) => pk === dataKeyPk('us'))).toHaveLength(1);
  const reader = start();
  for (const n of processes.keys()) expect(await reader.endpoints.load('us', `erp-${n}`)).toEqual(KEPT);
});

test('a lost data key is reported in one error message, and used as soon as it is restored', async () => {
  const { table, start } = createCell();
  await start().endpoints.save('us', 'erp', KEPT);
  const lost = await table.get(keys.dataKey('us', 1));
  await table.write({ delete: keys.dataKey('us', 1) });
  const { endpoints } = start();
  const error: unknown = await endpoints.load('us', 'erp').catch((cause: unknown) => cause);
  expect(error).toBeInstanceOf(SecretError);
  expect(error).toHaveProperty('message', MISSING);
  if (lost) await table.write({ put: lost });
  expect(await endpoints.load('us', 'erp')).toEqual(KEPT);
});

test('a table restored from a backup contains the data keys of its secrets', async () => {
  const { start, items, clock } = createCell();
  const { accounts } = start();
  const ref = await accounts.save('us', 'acme', GIVEN);
  const backup = await items();
  clock.now += DATA_KEY_ROTATION_MS;
  await accounts.save('us', 'acme', { ...GIVEN, clientSecret: 'later' });
  const restored = createMemoryTable();
  await restored.putMany(backup);
  const after = start({ on: restored });
  expect(await after.accounts.read(ref)).toMatchObject(GIVEN);
  await after.accounts.save('us', 'acme', { ...GIVEN, clientSecret: 'again' });
  expect(await after.accounts.read(ref)).toMatchObject({ clientSecret: 'again' });
});

test('a table restored without its KMS key stores new secrets with a data key of the new KMS key', async () => {
  const { start, items } = createCell();
  const { accounts, endpoints } = start();
  const ref = await accounts.save('us', 'acme', GIVEN);
  await endpoints.save('us', 'erp', KEPT);
  const after = start({ keyArn: OTHER_KEY });
  await after.accounts.save('us', 'acme', { ...GIVEN, clientSecret: 'again' });
  expect(await after.accounts.read(ref)).toMatchObject({ clientSecret: 'again' });
  await after.accounts.save('us', 'zeta', GIVEN);
  expect((await items()).filter(({ pk }) => pk === dataKeyPk('us'))).toHaveLength(2);
  await expect(after.endpoints.load('us', 'erp')).rejects.toThrow('IncorrectKeyException');
});

test('an error of KMS names it, and the next call tries again', async () => {
  const { kms, start } = createCell();
  const { endpoints } = start();
  kms.fault = 'AccessDeniedException';
  await expect(endpoints.save('us', 'erp', KEPT)).rejects.toThrow(
    new SecretError('key', 'cannot be generated by KMS (AccessDeniedException).'),
  );
  kms.fault = undefined;
  await endpoints.save('us', 'erp', KEPT);
  kms.fault = 'DisabledException';
  const reader = start();
  await expect(reader.endpoints.load('us', 'erp')).rejects.toThrow('by KMS (DisabledException).');
  kms.fault = undefined;
  expect(await reader.endpoints.load('us', 'erp')).toEqual(KEPT);
});
