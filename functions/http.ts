/** What the functions of the HTTP API have in common. */
import type { ApiDeps } from '../shared/api/app.ts';
import { createKeyring, type Keyring } from '../shared/api/keys.ts';
import type { Notifications } from '../shared/api/route.ts';
import type { Channel } from '../shared/notifications/model.ts';
import type { Table } from '../shared/table/table.ts';
import { createCellLog, createHistoryTable } from './clients.ts';
import type { Telemetry } from './telemetry.ts';

/**
 * The parts of the app that each of them has. There is no key but those in the table: the first is made by the operator's
 * function.
 */
export function apiParts(
  env: Parameters<typeof createCellLog>[0] & {
    readonly JOBWIRE_REGION: string;
    readonly JOBWIRE_CORS_ORIGINS?: readonly string[] | undefined;
  },
  table: Table,
  telemetry: Pick<Telemetry, 'request' | 'fault'>,
) {
  return {
    table,
    log: createCellLog(env, table),
    schemaBaseUrl: env.JOBWIRE_PUBLIC_URL.replace(/\/$/, ''),
    regions: [env.JOBWIRE_REGION],
    keyring: createKeyring({ table, now: Date.now }),
    corsOrigins: env.JOBWIRE_CORS_ORIGINS ?? [],
    now: Date.now,
    onError: (cause, request) => telemetry.fault('A request failed.', cause, { ...request }),
    onAnswer: (request, answer) => telemetry.request({ ...request, ...answer }),
  } satisfies ApiDeps;
}

/** What routes about what customers are told serve from. */
export function notificationParts(
  env: Parameters<typeof createHistoryTable>[0] & {
    readonly JOBWIRE_PUBLIC_URL: string;
    readonly JOBWIRE_CHANNELS?: readonly Channel[] | undefined;
  },
): Notifications {
  return {
    history: createHistoryTable(env),
    publicUrl: env.JOBWIRE_PUBLIC_URL.replace(/\/$/, ''),
    channels: env.JOBWIRE_CHANNELS ?? [],
  };
}

/** A middleware that waits for the note that a key was used: once an answer is out, a function stands still. */
export function settling({ keyring }: { readonly keyring: Pick<Keyring, 'settled'> }) {
  return { after: () => keyring.settled() };
}
