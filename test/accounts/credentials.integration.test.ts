/** Cached credentials, and their rejection upstream. */
import type { SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { expect, test, vi } from 'vitest';
import { createConnector } from '../../shared/accounts/connect.ts';
import { openLocalAccountSecrets } from '../../shared/accounts/credentials.ts';
import { createSecretReader } from '../../shared/accounts/owner-secrets.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import { pollAccount } from '../../shared/tracking/poll.ts';
import { createHttpRig } from '../support/tracker.ts';

test('changed credentials are found by the rejected poll, without an event; valid ones are read once', async () => {
  const rig = await createHttpRig();
  const { upstream, sandbox, now } = rig;
  let version = 1;
  const send = vi.fn(async () => ({
    SecretString: JSON.stringify({
      acme: { clientId: upstream.clientId, clientSecret: upstream.clientSecret },
    }),
    VersionId: `v${version}`,
  }));
  const secrets = createSecretReader({ send } as unknown as SecretsManagerClient, {
    now,
    maxAgeMs: 3_600_000,
  });
  const connect = createConnector({
    regions: { us: { baseUrl: sandbox.apiUrl('us'), authUrl: sandbox.authUrl('us'), realm: 'us' } },
    readSecret: secrets.readSecret,
    onCredentialsRejected: secrets.forget,
    now,
  });
  await rig.table.write({ update: { pk: 'ACCOUNTS#us', sk: 'acme' }, set: { secretRef: 'all#acme' } });
  const poll = () => {
    rig.pass(60);
    return pollAccount({ ...rig.deps, connect }, rig.ref, now() + 600_000);
  };
  expect(await poll()).toMatchObject({ outcome: 'complete' });
  expect(await poll()).toMatchObject({ outcome: 'complete' });
  expect(send).toHaveBeenCalledTimes(1);

  upstream.clientSecret = 'another';
  version = 2;
  sandbox.revokeTokens();
  await rig.fresh();
  expect(await poll()).toMatchObject({ outcome: 'complete', state: 'tracking' });
  expect(send).toHaveBeenCalledTimes(2);
  expect(await rig.fresh()).toEqual([]);

  // The current ones are rejected as well.
  upstream.clientSecret = 'a third';
  sandbox.revokeTokens();
  const before = upstream.clientSecret;
  send.mockImplementation(async () => ({
    SecretString: JSON.stringify({ acme: { clientId: upstream.clientId, clientSecret: 'wrong' } }),
    VersionId: 'v3',
  }));
  expect(await poll()).toMatchObject({ outcome: 'failed', state: 'credentials_rejected' });
  expect((await rig.fresh()).map(({ type }) => type)).toEqual(['account.credentials_rejected']);
  send.mockImplementation(async () => ({
    SecretString: JSON.stringify({ acme: { clientId: upstream.clientId, clientSecret: before } }),
    VersionId: 'v4',
  }));
  expect(await poll()).toMatchObject({ outcome: 'complete', state: 'tracking' });
});

test('a secret can name an ordering API of its own, by https only; credentials that the API stores cannot', async () => {
  let value: object = {};
  const send = async () => ({ SecretString: JSON.stringify(value), VersionId: 'v1' });
  const client = { send } as unknown as SecretsManagerClient;
  const { readSecret } = createSecretReader(client, { now: Date.now, maxAgeMs: 0 });
  const upstream = { baseUrl: 'https://a.example/api', authUrl: 'https://a.example/auth', realm: 'us' };
  value = { clientId: 'a', clientSecret: 'b', upstream };
  expect(await readSecret('acme')).toMatchObject({ upstream });
  value = { clientId: 'a', clientSecret: 'b', upstream: { ...upstream, baseUrl: 'http://a.example/api' } };
  await expect(readSecret('acme')).rejects.toThrow('upstream.baseUrl');
  const store = await openLocalAccountSecrets(createMemoryTable(), new Uint8Array(32));
  const ref = await store.save('us', 'acme', { clientId: 'a', clientSecret: 'b', upstream });
  expect(await store.read(ref)).toEqual({ clientId: 'a', clientSecret: 'b', version: expect.any(String) });
});
