/** The key of a cell's HTTP API. */
import { SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { createSecretReader, keptFresh } from '../shared/secrets.ts';
import { REQUEST_TIMEOUTS } from './clients.ts';
import type { Telemetry } from './telemetry.ts';

/** How long after a change the former key is taken at most, and the new one is not. */
const MAX_AGE_MS = 300_000;

/** Reads the key when the function starts, and gives what reads it again when it is old. Throws SecretError. */
export function readApiKey(
  env: { readonly JOBWIRE_API_KEY_SECRET: string },
  telemetry: Pick<Telemetry, 'fault'>,
): Promise<() => Promise<string>> {
  const client = new SecretsManagerClient({ requestHandler: REQUEST_TIMEOUTS });
  const secrets = createSecretReader(client, { now: Date.now, maxAgeMs: 0 });
  return keptFresh(() => secrets.readText(env.JOBWIRE_API_KEY_SECRET), {
    now: Date.now,
    maxAgeMs: MAX_AGE_MS,
    onFault: (cause) => telemetry.fault('The API key could not be read anew.', cause),
  });
}
