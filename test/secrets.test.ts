/** Credentials that are remembered, and the service that no longer takes them. */
import type { SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { expect, test, vi } from 'vitest';
import { createSecretReader } from '../shared/secrets.ts';
import { createConnector } from '../shared/tracking/connect.ts';
import { pollAccount } from '../shared/tracking/poll.ts';
import { createRig } from './support/rig.ts';

test('credentials that are refused are read anew for the next poll; as long as they are taken they are read once', async () => {
  const rig = await createRig();
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
    onRefused: secrets.forget,
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
  expect(await poll()).toMatchObject({ outcome: 'failed', state: 'credentials_rejected' });
  expect(await poll()).toMatchObject({ outcome: 'complete', state: 'tracking' });
  expect(send).toHaveBeenCalledTimes(2);
});
