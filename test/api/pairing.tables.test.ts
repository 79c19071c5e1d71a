/** Pairing of wall displays: who gets a key, with which permissions, and what guessing achieves. */
import { describe, expect, it } from 'vitest';
import { createApi } from '../../shared/api/app.ts';
import { type Caller, createKey, createKeyring, OPERATOR, revokeKey } from '../../shared/api/keys.ts';
import {
  APPROVED_MS,
  approvePairing,
  claimKey,
  MAX_PAIRINGS,
  PAIRING_MS,
  startPairing,
} from '../../shared/api/pairing.ts';
import { createEventLog } from '../../shared/log/log.ts';
import { API_KEY_PK, keys, PAIRING_PK } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import type { Table } from '../../shared/storage/table.ts';
import { apiParts } from '../support/api.ts';
import { eachTable } from '../support/tables.ts';

const START = Date.UTC(2026, 10, 26, 12);
const BOOTSTRAP = 'a-configured-api-key';
const restricted: Caller = {
  ...{ keyId: 'key-of-acme', name: null, role: 'admin', accounts: ['acme'] },
  expiresAt: START + 3_600_000,
};

function rig(table: Table) {
  const clock = { now: START };
  const deps = { table, now: () => clock.now };
  const start = async () => {
    const started = await startPairing(deps);
    if (started.kind !== 'started') throw new Error(started.kind);
    return started;
  };
  return { clock, deps, table, start, keyring: createKeyring(deps) };
}

eachTable('pairing', (makeTable) => {
  it('gives the screen a key with the role read for the chosen accounts, which its user can revoke', async () => {
    const { deps, start, keyring, table } = rig(await makeTable());
    const { code, deviceToken } = await start();
    expect(code).toMatch(/^\d{6}$/);
    expect(await claimKey(deps, { code, deviceToken })).toEqual({ kind: 'waiting' });
    expect(await approvePairing(deps, { code, name: 'Desk', accounts: ['acme'] }, OPERATOR)).toEqual({
      ...{ kind: 'approved', name: 'Wall display Desk', accounts: ['acme'], expiresAt: null },
    });
    const claimed = await claimKey(deps, { code, deviceToken });
    const secret = claimed.kind === 'paired' ? claimed.secret : '';
    const caller = await keyring.verify(secret);
    expect(caller).toMatchObject({ name: 'Wall display Desk', role: 'read', accounts: ['acme'] });
    expect(await revokeKey({ table }, caller?.keyId ?? '', OPERATOR)).toEqual({ kind: 'revoked' });
  });

  it('returns the same key again until the code expires, and never one that was revoked', async () => {
    const { deps, start, clock, table } = rig(await makeTable());
    const { code, deviceToken } = await start();
    await approvePairing(deps, { code, name: 'Desk' }, OPERATOR);
    const first = await claimKey(deps, { code, deviceToken });
    expect(first.kind).toBe('paired');
    expect(await claimKey(deps, { code, deviceToken })).toEqual(first);
    const id = first.kind === 'paired' ? (first.secret.split('_')[1] ?? '') : '';
    await revokeKey({ table }, id, OPERATOR);
    expect(await claimKey(deps, { code, deviceToken })).toEqual({ kind: 'ended' });
    expect(await table.get(keys.apiKey(id))).toBeUndefined();
    const other = await start();
    await approvePairing(deps, { code: other.code, name: 'Desk' }, OPERATOR);
    clock.now += PAIRING_MS;
    expect(await claimKey(deps, other)).toEqual({ kind: 'ended' });
  });

  it('creates no key later than a minute after the confirmation', async () => {
    const { deps, start, clock, table } = rig(await makeTable());
    const { code, deviceToken } = await start();
    await approvePairing(deps, { code, name: 'Desk' }, OPERATOR);
    clock.now += APPROVED_MS;
    expect(await claimKey(deps, { code, deviceToken })).toEqual({ kind: 'ended' });
    expect(await table.query({ pk: API_KEY_PK })).toEqual([]);
  });

  it('gives the key only to the device that started the pairing', async () => {
    const { deps, start } = rig(await makeTable());
    const [one, other] = [await start(), await start()];
    await approvePairing(deps, { code: one.code, name: 'Desk' }, OPERATOR);
    for (const deviceToken of [other.deviceToken, 'A'.repeat(43), ''])
      expect(await claimKey(deps, { code: one.code, deviceToken })).toEqual({ kind: 'ended' });
    expect(await claimKey(deps, { code: other.code, deviceToken: one.deviceToken })).toEqual({
      kind: 'ended',
    });
  });

  it('stores neither the device token nor the key', async () => {
    const { deps, start, table } = rig(await makeTable());
    const { code, deviceToken } = await start();
    await approvePairing(deps, { code, name: 'Desk' }, OPERATOR);
    const claimed = await claimKey(deps, { code, deviceToken });
    const secret = claimed.kind === 'paired' ? (claimed.secret.split('_')[2] ?? '') : '';
    const [item] = await table.query({ pk: PAIRING_PK });
    const stored = JSON.stringify(item);
    expect(secret).toHaveLength(43);
    expect(stored).not.toContain(secret);
    expect(stored).not.toContain(deviceToken);
  });

  it('accepts a code once, and not after 10 minutes', async () => {
    const { deps, start, clock } = rig(await makeTable());
    const { code } = await start();
    expect(await approvePairing(deps, { code, name: 'Desk' }, OPERATOR)).toMatchObject({ kind: 'approved' });
    expect(await approvePairing(deps, { code, name: 'Mine' }, OPERATOR)).toMatchObject({
      kind: 'unknown code',
    });
    const late = await start();
    clock.now += PAIRING_MS;
    expect(await approvePairing(deps, { code: late.code, name: 'Desk' }, OPERATOR)).toMatchObject({
      kind: 'unknown code',
    });
    // A missing item is not created by the update.
    expect(await approvePairing(deps, { code: '000000', name: 'Desk' }, OPERATOR)).toMatchObject({
      kind: 'unknown code',
    });
    expect(await deps.table.get(keys.pairing('000000'))).toBeUndefined();
  });

  it('a confirmation that is repeated with the same Idempotency-Key, because it was interrupted, is successful', async () => {
    const { deps, start } = rig(await makeTable());
    const { code } = await start();
    const approve = (id: string) =>
      approvePairing({ ...deps, newId: () => id }, { code, name: 'Desk' }, OPERATOR);
    const approved = await approve('first');
    expect(approved).toMatchObject({ kind: 'approved' });
    expect(await approve('first')).toEqual(approved);
    expect(await approve('second')).toEqual({ kind: 'unknown code' });
  });

  it('grants no more than the permissions and the lifetime of the key that confirms', async () => {
    const { deps, start, keyring } = rig(await makeTable());
    const { code, deviceToken } = await start();
    expect(await approvePairing(deps, { code, name: 'Desk' }, restricted)).toMatchObject({
      kind: 'rejected',
      reason: expect.stringContaining('accounts is required'),
    });
    expect(await approvePairing(deps, { code, name: 'Desk', accounts: ['nova'] }, restricted)).toMatchObject({
      kind: 'rejected',
    });
    await approvePairing(deps, { code, name: 'Desk', accounts: ['acme'] }, restricted);
    const claimed = await claimKey(deps, { code, deviceToken });
    expect(await keyring.verify(claimed.kind === 'paired' ? claimed.secret : '')).toMatchObject({
      ...{ role: 'read', accounts: ['acme'], expiresAt: restricted.expiresAt },
    });
  });

  it('limits the number of valid codes, and continues when they expire', async () => {
    const { deps, start, clock, table } = rig(await makeTable());
    for (let count = 0; count < MAX_PAIRINGS; count += 1) await start();
    expect(await startPairing(deps)).toEqual({ kind: 'too many', retryAt: START + PAIRING_MS });
    clock.now += PAIRING_MS;
    await start();
    expect(await table.query({ pk: PAIRING_PK })).toHaveLength(1);
  });

  it('does not replace a pairing with the same code', async () => {
    const { deps, start } = rig(await makeTable());
    const first = await start();
    const codes = [Number(first.code), Number(first.code), 7];
    const second = await startPairing({ ...deps, newCode: () => codes.shift() ?? 8 });
    expect(second).toMatchObject({ kind: 'started', code: first.code === '000007' ? '000008' : '000007' });
    expect(await claimKey(deps, first)).toEqual({ kind: 'waiting' });
  });
});

describe('the routes of the pairing', () => {
  async function site() {
    const table = createMemoryTable();
    const now = () => START;
    const log = createEventLog(table, { now, newId: () => 'id', schemaBaseUrl: '' });
    const api = createApi({ table, log, regions: ['us'], now, ...apiParts(table, BOOTSTRAP, now, ['us']) });
    const ask = async (
      path: string,
      body: unknown,
      { key, from = '192.0.2.1', headers = {} }: { key?: string; from?: string; headers?: object } = {},
    ) => {
      const response = await api.request(
        `/v1/wall-pairings${path}`,
        {
          method: 'POST',
          headers: {
            ...(body === undefined ? {} : { 'content-type': 'application/json' }),
            ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
            ...headers,
          },
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        },
        { clientAddress: from },
      );
      return { status: response.status, body: await response.json(), headers: response.headers };
    };
    const makeKey = async (role: 'read' | 'operate' | 'admin', accounts?: string[]) => {
      const made = await createKey({ table, now }, { role, ...(accounts ? { accounts } : {}) }, OPERATOR);
      return made.kind === 'created' ? made.secret : '';
    };
    return { ask, makeKey };
  }

  it('only a key with the role admin confirms a code, and only for its accounts', async () => {
    const { ask, makeKey } = await site();
    const { body } = await ask('', undefined);
    const { code, deviceToken } = body as { code: string; deviceToken: string };
    const approval = { code, name: 'Desk', accounts: ['acme'] };
    expect((await ask('/approval', approval)).status).toBe(401);
    for (const role of ['read', 'operate'] as const)
      expect((await ask('/approval', approval, { key: await makeKey(role) })).status).toBe(403);
    const acme = await makeKey('admin', ['acme']);
    expect((await ask('/approval', { code, name: 'Desk' }, { key: acme })).status).toBe(422);
    expect((await ask('/key', { code, deviceToken })).body).toEqual({ key: null });
    expect((await ask('/approval', approval, { key: acme })).body).toEqual({
      ...{ name: 'Wall display Desk', accounts: ['acme'], expiresAt: null },
    });
    const { body: given } = await ask('/key', { code, deviceToken });
    const { key } = given as { key: string };
    expect(key).toMatch(/^jw_/);
    // The key of the wall confirms no other screen.
    expect((await ask('/approval', approval, { key })).status).toBe(403);
  });

  it('limits started pairings, wrong device tokens and wrong codes', async () => {
    const { ask, makeKey } = await site();
    const statuses = async (count: number, request: () => Promise<{ status: number }>) => {
      const all: number[] = [];
      for (let at = 0; at < count; at += 1) all.push((await request()).status);
      return all;
    };
    const starts = await statuses(21, () => ask('', undefined));
    expect([starts.slice(0, 20).every((status) => status === 201), starts[20]]).toEqual([true, 429]);
    expect((await ask('', undefined, { from: '192.0.2.2' })).status).toBe(201);
    const claims = await statuses(21, () => ask('/key', { code: '123456', deviceToken: 'A'.repeat(43) }));
    expect([claims.slice(0, 20).every((status) => status === 404), claims[20]]).toEqual([true, 429]);
    const key = await makeKey('admin');
    let from = 10;
    // From another address each time: the limit is that of the key.
    const guesses = await statuses(21, () => {
      from += 1;
      return ask('/approval', { code: '999999', name: 'Desk' }, { key, from: `198.51.100.${from}` });
    });
    expect([guesses.slice(0, 20).filter((status) => status === 422).length >= 19, guesses[20]]).toEqual([
      true,
      429,
    ]);
  });

  it('rejects pages of other origins, and accepts programs', async () => {
    const { ask } = await site();
    for (const value of ['cross-site', 'same-site'])
      expect((await ask('', undefined, { headers: { 'sec-fetch-site': value } })).status).toBe(403);
    expect((await ask('', undefined, { headers: { 'sec-fetch-site': 'same-origin' } })).status).toBe(201);
  });

  it('sends keys and tokens only in bodies that are not cached', async () => {
    const { ask } = await site();
    const { headers } = await ask('', undefined);
    expect(headers.get('cache-control')).toBe('no-store');
  });
});
