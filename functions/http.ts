/** The common parts of the HTTP API's functions. */
import type { ApiDeps } from '../shared/api/app.ts';
import { createKeyring, type Keyring } from '../shared/api/keys.ts';
import { createRequestLimit } from '../shared/api/request-limit.ts';
import type { Notifications } from '../shared/api/route.ts';
import { createSignIn } from '../shared/api/sign-in.ts';
import { SignInSettings } from '../shared/api/sign-in-input.ts';
import type { Table } from '../shared/storage/table.ts';
import { createCellLog, createHistoryTable } from './clients.ts';
import type { Env } from './env.ts';
import type { Telemetry } from './telemetry.ts';

/**
 * Returns the parts of the app that each function has. Of keys, only those in the table are valid: the operator's
 * function creates the first.
 */
export function createApiDeps(
  env: Parameters<typeof createCellLog>[0] &
    Pick<Env, 'JOBWIRE_REGION' | 'JOBWIRE_CORS_ORIGINS' | 'JOBWIRE_REQUESTS_PER_MINUTE' | 'JOBWIRE_SIGN_IN'>,
  table: Table,
  telemetry: Pick<Telemetry, 'request' | 'fault'>,
) {
  const { JOBWIRE_REGION: region, JOBWIRE_REQUESTS_PER_MINUTE: perMinute } = env;
  const signIn =
    env.JOBWIRE_SIGN_IN === undefined
      ? undefined
      : createSignIn({ settings: SignInSettings.parse(JSON.parse(env.JOBWIRE_SIGN_IN)), now: Date.now });
  return {
    table,
    log: createCellLog(env, table),
    schemaBaseUrl: env.JOBWIRE_PUBLIC_URL.replace(/\/$/, ''),
    regions: [region],
    requestLimit:
      perMinute === undefined ? undefined : createRequestLimit({ table, region, perMinute, now: Date.now }),
    keyring: createKeyring({ table, now: Date.now, users: signIn }),
    signIn,
    corsOrigins: env.JOBWIRE_CORS_ORIGINS ?? [],
    now: Date.now,
    onError: (cause, request) => telemetry.fault('A request failed.', cause, { ...request }),
    onAnswer: (request, answer) => telemetry.request({ ...request, ...answer }),
  } satisfies ApiDeps;
}

/** Returns the dependencies of the notification routes. */
export function createNotificationDeps(
  env: Pick<Env, 'JOBWIRE_HISTORY_TABLE' | 'JOBWIRE_PUBLIC_URL' | 'JOBWIRE_CHANNELS'>,
): Notifications {
  return {
    history: createHistoryTable(env),
    publicUrl: env.JOBWIRE_PUBLIC_URL.replace(/\/$/, ''),
    channels: env.JOBWIRE_CHANNELS ?? [],
  };
}

/**
 * Returns a middleware that waits until the use of a key is recorded: after the response, a function is
 * frozen.
 */
export function settling({ keyring }: { readonly keyring: Pick<Keyring, 'settled'> }) {
  return { after: () => keyring.settled() };
}
