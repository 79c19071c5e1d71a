/**
 * API keys: permissions, creation, listing, verification and storage.
 * One file: creation, listing and verification share the rig of a keyring and its clock.
 */
import fc from 'fast-check';
import { Hono } from 'hono';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { requireKey } from '../../shared/api/access.ts';
import type { ApiEnv } from '../../shared/api/env.ts';
import { ROLES, roleAllows } from '../../shared/api/key-input.ts';
import { KeyRecord } from '../../shared/api/key-record.ts';
import {
  type Caller,
  createKey,
  createKeyring,
  listKeys,
  MAX_KEYS,
  OPERATOR,
  readKey,
  revokeKey,
} from '../../shared/api/keys.ts';
import { BOOTSTRAP_KEY } from '../../shared/api/waiting-limit.ts';
import { API_KEY_PK, API_KEY_USE_PK, keys } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import { type Table, TableError } from '../../shared/storage/table.ts';
import { runs } from '../support/runs.ts';
import { eachTable } from '../support/tables.ts';

const START = Date.UTC(2026, 10, 21, 12);
const CONFIGURED = 'the-key-of-this-test';
const MINUTE = 60_000;
const iso = (ms: number) => new Date(ms).toISOString();

eachTable('API keys', (makeTable) => {
  test('a created key identifies its owner, and its secret is not in the table', async () => {
    const { deps, table, keyring } = rig(await makeTable());
    const made = await make(deps, { name: 'ERP', role: 'operate', accounts: ['nova', 'acme', 'nova'] });
    expect(made.secret).toMatch(/^jw_[a-z2-9]{12}_[0-9A-Za-z]{43}$/);
    expect(made.key).toEqual({
      id: made.secret.split('_')[1],
      name: 'ERP',
      role: 'operate',
      accounts: ['acme', 'nova'],
      createdAt: iso(START),
      createdBy: 'operator',
      createdByUser: null,
      expiresAt: null,
      lastUsedAt: null,
    });
    expect(KeyRecord.parse(made.key)).toEqual(made.key);
    expect(await keyring.verify(made.secret)).toEqual({
      keyId: made.key.id,
      name: 'ERP',
      role: 'operate',
      accounts: ['acme', 'nova'],
      expiresAt: null,
    });
    await keyring.settled();
    const stored = JSON.stringify([
      await table.query({ pk: API_KEY_PK }),
      await table.query({ pk: API_KEY_USE_PK }),
    ]);
    expect(stored).not.toContain(made.secret.split('_')[2]);
  });

  test('only the exact key is accepted: not another secret, another id, or anything else', async () => {
    const { deps, keyring } = rig(await makeTable());
    const one = await make(deps, { role: 'admin' });
    const two = await make(deps, { role: 'read' });
    const [, id = '', secret = ''] = one.secret.split('_');
    const last = secret.endsWith('0') ? '1' : '0';
    for (const wrong of [
      `jw_${id}_${secret.slice(0, -1)}${last}`,
      `jw_${two.key.id}_${secret}`,
      `jw_${'a'.repeat(12)}_${secret}`,
      `jw_${id}_`,
      `${one.secret} `,
      one.secret.toLowerCase(),
      secret,
      '',
      'x'.repeat(10_000),
    ]) {
      expect(await keyring.verify(wrong)).toBeUndefined();
      expect(keyring.isKnown(wrong)).toBe(false);
    }
    expect(await keyring.verify(one.secret)).toMatchObject({ keyId: id, role: 'admin' });
  });

  test('a key is valid until it expires, also while it is cached, and is deleted from the table later', async () => {
    const { deps, table, clock, keyring } = rig(await makeTable());
    const { secret, key } = await make(deps, { role: 'read', expiresAt: iso(START + 10_000) });
    clock.now = START + 9_999;
    expect(await keyring.verify(secret)).toMatchObject({ expiresAt: START + 10_000 });
    clock.now = START + 10_000;
    expect(await keyring.verify(secret)).toBeUndefined();
    expect(await readKey({ table }, key.id, OPERATOR)).toMatchObject({ kind: 'found' });
    const item = await table.get(keys.apiKey(key.id));
    expect(item?.ttl).toBe((START + 10_000) / 1000 + 30 * 86_400);
  });

  test('a revoked key is rejected after at most 30 seconds, and at once by a process that has not cached it', async () => {
    const { deps, table, clock, keyring } = rig(await makeTable());
    const { secret, key } = await make(deps, { role: 'read' });
    expect(await keyring.verify(secret)).toBeDefined();
    expect(await revokeKey({ table }, key.id, OPERATOR)).toEqual({ kind: 'revoked' });
    expect(await rig(table, clock).keyring.verify(secret)).toBeUndefined();
    clock.now += 29_999;
    expect(await keyring.verify(secret)).toBeDefined();
    clock.now += 1;
    expect(await keyring.verify(secret)).toBeUndefined();
    expect(keyring.isKnown(secret)).toBe(false);
    expect(await revokeKey({ table }, key.id, OPERATOR)).toMatchObject({ kind: 'unknown' });
    expect(await readKey({ table }, key.id, OPERATOR)).toMatchObject({ kind: 'unknown' });
    await keyring.settled();
  });

  test('the last use of a key is written once in 5 minutes, by any number of processes', async () => {
    const { deps, table, clock, keyring } = rig(await makeTable());
    const other = rig(table, clock).keyring;
    const { secret, key } = await make(deps, { role: 'read' });
    const lastUsed = async () => {
      await Promise.all([keyring.settled(), other.settled()]);
      const found = await readKey({ table }, key.id, OPERATOR);
      const [listed] = (await listKeys({ table }, { limit: 10 }, OPERATOR)).keys;
      expect(found.kind === 'found' && found.key).toEqual(listed);
      return listed?.lastUsedAt;
    };
    expect(await lastUsed()).toBeNull();
    await keyring.verify(secret);
    expect(await lastUsed()).toBe(iso(START));
    clock.now += 5 * MINUTE - 1;
    const write = vi.spyOn(table, 'write');
    await keyring.verify(secret);
    expect(write, 'in the same process not even tried').not.toHaveBeenCalled();
    await other.verify(secret);
    expect(await lastUsed()).toBe(iso(START));
    write.mockRestore();
    clock.now += 1;
    await keyring.verify(secret);
    expect(await lastUsed()).toBe(iso(START + 5 * MINUTE));
    await revokeKey({ table }, key.id, OPERATOR);
    expect(await table.query({ pk: API_KEY_USE_PK })).toEqual([]);
  });

  test('keys are paged by id: each once, in full pages, with any number of invisible ones between them', async () => {
    const { deps, table } = rig(await makeTable());
    const mine = new Set<string>();
    for (let made = 0; made < 12; made += 1) {
      const { key } = await make(deps, { role: 'read', accounts: [made % 3 === 0 ? 'acme' : 'nova'] });
      if (made % 3 === 0) mine.add(key.id);
    }
    const all = await pages(table, 5, OPERATOR);
    expect(all.map((page) => page.length)).toEqual([5, 5, 2]);
    const ids = all.flat();
    expect(ids).toEqual([...ids].sort());
    expect(new Set(ids).size).toBe(12);
    const acme = await pages(table, 3, { ...OPERATOR, accounts: ['acme'] });
    expect(acme.map((page) => page.length)).toEqual([3, 1]);
    expect(new Set(acme.flat())).toEqual(mine);
    expect(await pages(table, 2, { ...OPERATOR, accounts: ['acme'] })).toHaveLength(2);
  });

  test('created again with the same random bytes it is the same key, and there is one', async () => {
    const { deps, table, clock, keyring } = rig(await makeTable());
    const randomBytes = () => (length: number) => new Uint8Array(length).fill(length);
    const first = await make({ ...deps, randomBytes: randomBytes() }, { role: 'read' });
    clock.now += 1000;
    const second = await make({ ...deps, randomBytes: randomBytes() }, { role: 'read' });
    expect(second).toEqual(first);
    expect(await table.query({ pk: API_KEY_PK })).toHaveLength(1);
    expect(await keyring.verify(second.secret)).toBeDefined();
  });

  test('a key with an existing id never overwrites it', async () => {
    const { deps, keyring } = rig(await makeTable());
    const filled = (secret: number) => (length: number) =>
      new Uint8Array(length).fill(length === 32 ? secret : 1);
    const first = await make({ ...deps, randomBytes: filled(1) }, { role: 'read' });
    const second = await createKey({ ...deps, randomBytes: filled(2) }, { role: 'read' }, OPERATOR);
    expect(second).toMatchObject({ kind: 'conflict' });
    expect(await keyring.verify(first.secret)).toBeDefined();
  });
});

describe('creating and listing keys', () => {
  test.each([
    [{ role: 'operate' }, { role: 'admin' }, 'role must be operate or lower'],
    [{ accounts: ['acme'] }, { role: 'read' }, 'accounts is required'],
    [{ accounts: ['acme'] }, { role: 'read', accounts: null }, 'accounts is required'],
    [
      { accounts: ['acme'] },
      { role: 'read', accounts: ['acme', 'nova'] },
      'accounts must contain only accounts of the creating key',
    ],
    [{}, { role: 'read', expiresAt: iso(START) }, 'expiresAt must be in the future'],
    [{}, { role: 'read', expiresAt: 'tomorrow' }, 'expiresAt must be a timestamp such as'],
    // Its year in UTC is 10000.
    [{}, { role: 'read', expiresAt: '9999-12-31T23:00:00-02:00' }, 'expiresAt must be a timestamp such as'],
    [
      { expiresAt: START + MINUTE },
      { role: 'read' },
      'expiresAt must be 2026-11-21T12:01:00.000Z or earlier',
    ],
    [
      { expiresAt: START + MINUTE },
      { role: 'read', expiresAt: iso(START + MINUTE + 1) },
      'expiresAt must be 2026-11-21T12:01:00.000Z or earlier',
    ],
    [{}, {}, 'role is missing; it must be read, operate or admin'],
    [{}, { role: 'root' }, 'role must be read, operate or admin'],
    [{}, { role: 'read', accounts: [] }, 'accounts must name at least one account'],
    [{}, { role: 'read', accounts: ['A#B'] }, 'accounts[0] must be 1–63 lower-case letters'],
    [
      {},
      { role: 'read', accounts: Array.from({ length: 201 }, (_, at) => `a${at}`) },
      'accounts must name at most 200 accounts',
    ],
    [{}, { role: 'read', name: '  ' }, 'name must not be empty'],
    [{}, { role: 'read', name: 'n'.repeat(101) }, 'name must be at most 100 characters'],
    [{}, { role: 'read', secret: 'x' }, 'secret is not a known setting'],
    [{}, 'read', 'The request must be'],
  ])('%o cannot create %o: %s', async (by, input, sentence) => {
    const { deps, table } = rig(createMemoryTable());
    const rejection = await createKey(deps, input, { ...OPERATOR, ...by } as Caller);
    expect(rejection).toEqual({
      kind: 'rejected',
      reason: expect.stringMatching(/^[^.]*(\.\d{3}Z[^.]*)?\.$/),
    });
    expect(rejection).toMatchObject({ reason: expect.stringContaining(sentence) });
    expect(await table.query({ pk: API_KEY_PK })).toEqual([]);
  });

  test("no chain of created keys exceeds its creator's permissions, and none lists a key that does", async () => {
    const accounts = fc.option(fc.uniqueArray(fc.constantFrom('a', 'b', 'c'), { minLength: 1 }));
    const expiry = fc.option(fc.integer({ min: -5, max: 50 }).map((minutes) => START + minutes * MINUTE));
    const attempt = fc.record({
      maker: fc.nat(),
      role: fc.constantFrom(...ROLES),
      accounts,
      expiresAt: expiry,
    });
    await fc.assert(
      fc.asyncProperty(fc.array(attempt, { maxLength: 15 }), async (attempts) => {
        const { deps, table, keyring } = rig(createMemoryTable());
        const callers: { caller: Caller; maker?: Caller }[] = [{ caller: OPERATOR }];
        for (const { maker, expiresAt, ...wanted } of attempts) {
          const by = callers[maker % callers.length]?.caller ?? OPERATOR;
          const input = { ...wanted, ...(expiresAt === null ? {} : { expiresAt: iso(expiresAt) }) };
          const made = await createKey(deps, input, by);
          if (made.kind !== 'created') continue;
          const caller = await keyring.verify(made.secret);
          if (!caller) throw new Error('A new key is not good.');
          callers.push({ caller, maker: by });
        }
        for (const { caller, maker } of callers) {
          if (maker) expect(isWithin(caller, maker)).toBe(true);
          const seen = new Set((await pages(table, 4, caller)).flat());
          for (const { caller: other } of callers.slice(1)) {
            const may = isWithin({ ...other, expiresAt: null }, { ...caller, expiresAt: null });
            expect(seen.has(other.keyId)).toBe(may);
            const read = await readKey({ table }, other.keyId, caller);
            expect(read.kind).toBe(may ? 'found' : 'unknown');
            if (!may) {
              expect((await revokeKey({ table }, other.keyId, caller)).kind).toBe('unknown');
              expect(await table.get(keys.apiKey(other.keyId))).toBeDefined();
            }
          }
        }
      }),
      runs(40, 100),
    );
  });

  test('a key may revoke itself', async () => {
    const { deps, table, keyring } = rig(createMemoryTable());
    const { secret, key } = await make(deps, { role: 'read', accounts: ['acme'] });
    const caller = await keyring.verify(secret);
    expect(caller && (await revokeKey({ table }, key.id, caller))).toEqual({ kind: 'revoked' });
  });

  test('the configured key cannot be revoked, and only keys with equal permissions list it', async () => {
    const { table } = rig(createMemoryTable());
    expect(await revokeKey({ table }, BOOTSTRAP_KEY, OPERATOR)).toMatchObject({ kind: 'rejected' });
    for (const by of [{ role: 'operate' }, { accounts: ['acme'] }] as const) {
      const rejection = await revokeKey({ table }, BOOTSTRAP_KEY, { ...OPERATOR, ...by });
      expect(rejection).toMatchObject({ kind: 'unknown' });
    }
  });

  test('at most 1,000 keys exist, and no answer quotes a given id', async () => {
    const { deps, table } = rig(createMemoryTable());
    await table.putMany(
      Array.from({ length: MAX_KEYS }, (_, at) => ({ pk: API_KEY_PK, sk: String(at).padStart(12, 'a') })),
    );
    expect(await createKey(deps, { role: 'read' }, OPERATOR)).toMatchObject({ kind: 'conflict' });
    await table.write({ delete: { pk: API_KEY_PK, sk: '1'.padStart(12, 'a') } });
    const { secret } = await make(deps, { role: 'read' });
    for (const unknown of [
      await readKey({ table }, secret, OPERATOR),
      await revokeKey(deps, secret, OPERATOR),
    ]) {
      expect(JSON.stringify(unknown)).not.toContain(secret.slice(3, 15));
      expect(unknown).toMatchObject({ kind: 'unknown' });
    }
  });

  test('the last hundred are reserved for keys for all accounts', async () => {
    const { deps, table } = rig(createMemoryTable());
    const places = Array.from({ length: MAX_KEYS - 100 }, (_, at) => String(at).padStart(12, 'a'));
    await table.putMany(places.map((sk) => ({ pk: API_KEY_PK, sk })));
    const limited = { ...OPERATOR, accounts: ['acme'] };
    const wanted = { role: 'read', accounts: ['acme'] };
    expect(await createKey(deps, wanted, limited)).toMatchObject({ kind: 'conflict' });
    expect(await createKey(deps, wanted, OPERATOR)).toMatchObject({ kind: 'created' });
    await table.write({ delete: { pk: API_KEY_PK, sk: places[0] ?? '' } });
    await table.write({ delete: { pk: API_KEY_PK, sk: places[1] ?? '' } });
    expect(await createKey(deps, wanted, limited)).toMatchObject({ kind: 'created' });
  });

  test('an invalid item is a key without permissions', async () => {
    const { deps, table, clock, keyring } = rig(createMemoryTable());
    const { secret, key } = await make(deps, { role: 'admin' });
    await table.write({ update: keys.apiKey(key.id), set: { role: 'root', accounts: 'all' } });
    expect(await keyring.verify(secret)).toMatchObject({ role: 'read', accounts: [] });
    clock.now += MINUTE;
    await table.write({ update: keys.apiKey(key.id), set: { digest: 'x' } });
    expect(await keyring.verify(secret)).toBeUndefined();
  });
});

describe('verifying keys', () => {
  test('the configured key is an admin of all accounts, needs no table, and does not exist without configuration', async () => {
    const broken = brokenTable();
    const keyring = createKeyring({ table: broken, now: () => START, bootstrap: CONFIGURED });
    expect(await keyring.verify(CONFIGURED)).toEqual({
      keyId: BOOTSTRAP_KEY,
      name: null,
      role: 'admin',
      accounts: null,
      expiresAt: null,
    });
    expect(await keyring.verify(`${CONFIGURED}x`)).toBeUndefined();
    expect(await createKeyring({ table: broken, now: () => START }).verify(CONFIGURED)).toBeUndefined();
    expect(() => createKeyring({ table: broken, now: () => START, bootstrap: '' })).toThrow('at least 16');
  });

  test('concurrent requests with the same key share one read, and so do guesses', async () => {
    const memory = createMemoryTable();
    const { deps } = rig(memory);
    const { secret } = await make(deps, { role: 'read' });
    const reads: string[] = [];
    const table = {
      ...memory,
      get: (key: Parameters<Table['get']>[0]) => {
        reads.push(key.sk);
        return memory.get(key);
      },
    };
    const keyring = createKeyring({ table, now: () => START });
    const wrong = `${secret.slice(0, -1)}${secret.endsWith('0') ? '1' : '0'}`;
    const callers = await Promise.all(
      [secret, wrong, secret, wrong, secret].map((one) => keyring.verify(one)),
    );
    expect(callers.map((caller) => caller !== undefined)).toEqual([true, false, true, false, true]);
    expect(reads).toHaveLength(1);
    await keyring.verify(secret);
    expect(reads).toHaveLength(1);
    // A wrong key is not cached, so it costs as much as an unknown id.
    await keyring.verify(wrong);
    await keyring.verify(`jw_${'a'.repeat(12)}_${'0'.repeat(43)}`);
    await keyring.verify(`jw_${'a'.repeat(12)}_${'0'.repeat(43)}`);
    expect(reads).toHaveLength(4);
  });

  test('a key that is created after a failed attempt with it is valid at once', async () => {
    const { deps, keyring } = rig(createMemoryTable());
    const randomBytes = (length: number) => new Uint8Array(length).fill(7);
    const { secret } = await make({ ...rig(createMemoryTable()).deps, randomBytes }, { role: 'read' });
    expect(await keyring.verify(secret)).toBeUndefined();
    await make({ ...deps, randomBytes }, { role: 'read' });
    expect(await keyring.verify(secret)).toBeDefined();
  });

  test('a failing write of the last use fails nothing and delays nothing', async () => {
    const memory = createMemoryTable();
    const { secret } = await make(rig(memory).deps, { role: 'read' });
    const failing = { ...memory, write: async () => Promise.reject(new TableError('write', 'test')) };
    const one = createKeyring({ table: failing, now: () => START });
    expect(await one.verify(secret)).toBeDefined();
    await one.settled();
    const hanging = { ...memory, write: () => new Promise<never>(() => undefined) };
    expect(await createKeyring({ table: hanging, now: () => START }).verify(secret)).toBeDefined();
  });

  test('an unavailable table is a fault, not a wrong key; a cached key is accepted', async () => {
    const memory = createMemoryTable();
    const { secret } = await make(rig(memory).deps, { role: 'read' });
    const clock = { now: START };
    const table = { ...memory };
    const keyring = createKeyring({ table, now: () => clock.now });
    await keyring.verify(secret);
    table.get = brokenTable().get;
    clock.now += 29_000;
    expect(await keyring.verify(secret)).toBeDefined();
    clock.now += 2_000;
    await expect(keyring.verify(secret)).rejects.toThrow(TableError);
    expect(keyring.isKnown(secret)).toBe(true);
    table.get = memory.get;
    expect(await keyring.verify(secret)).toBeDefined();
  });
});

describe('failure rate limit', () => {
  beforeEach(() => {
    vi.useFakeTimers({ now: START });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  const wrong = (at: number) => `jw_${'a'.repeat(12)}_${String(at).padStart(43, '0')}`;

  async function limited() {
    const table = createMemoryTable();
    const { secret } = await make(rig(table).deps, { role: 'read' });
    const keyring = createKeyring({ table, now: Date.now, bootstrap: CONFIGURED });
    const looked: string[] = [];
    const counting = {
      ...keyring,
      verify: (shown: string) => {
        looked.push(shown);
        return keyring.verify(shown);
      },
    };
    const app = new Hono<ApiEnv>();
    app.use(requireKey(counting)).get('/', (c) => c.body(null, 204));
    const authenticate = async (shown: string, clientAddress: string | undefined) => {
      const headers = { authorization: `Bearer ${shown}` };
      const answer = await app.request('/', { headers }, { clientAddress });
      if (answer.status === 204) return { kind: 'caller' };
      const [, remaining, resetSeconds] =
        /;r=(\d+);t=(\d+)$/.exec(answer.headers.get('ratelimit') ?? '') ?? [];
      return {
        kind: answer.status === 401 ? 'unknown key' : 'too many failures',
        limit: { remaining: Number(remaining), resetSeconds: Number(resetSeconds) },
      };
    };
    const failing = async (address: string, times: number) => {
      for (let at = 0; at < times; at += 1) await authenticate(wrong(at), address);
    };
    return { authenticate, failing, secret, looked };
  }

  test('after 20 failures in a minute an address is rejected unread until the minute ends', async () => {
    const { authenticate, failing, secret, looked } = await limited();
    await failing('192.0.2.1', 19);
    vi.setSystemTime(START + 20_500);
    expect(await authenticate(wrong(19), '192.0.2.1')).toEqual({
      kind: 'unknown key',
      limit: { remaining: 0, resetSeconds: 40 },
    });
    const refused = { kind: 'too many failures', limit: { remaining: 0, resetSeconds: 40 } };
    expect(await authenticate(wrong(20), '192.0.2.1')).toEqual(refused);
    expect(await authenticate(secret, '192.0.2.1')).toEqual(refused);
    expect(looked).toHaveLength(20);
    vi.setSystemTime(START + MINUTE);
    expect(await authenticate(secret, '192.0.2.1')).toMatchObject({ kind: 'caller' });
    await failing('192.0.2.1', 19);
    expect(await authenticate(wrong(19), '192.0.2.1')).toMatchObject({ kind: 'unknown key' });
  });

  test('a client with a valid key is not limited by failures from its address, for any age of its success', async () => {
    const { authenticate, failing, secret } = await limited();
    expect(await authenticate(secret, '192.0.2.1')).toMatchObject({ kind: 'caller' });
    vi.setSystemTime(START + 10 * MINUTE);
    await failing('192.0.2.1', 30);
    for (const key of [secret, CONFIGURED]) {
      expect(await authenticate(key, '192.0.2.1')).toMatchObject({ kind: 'caller' });
    }
    expect(await authenticate(wrong(1), '192.0.2.1')).toMatchObject({ kind: 'too many failures' });
  });

  test('valid keys do not count, and other addresses are not limited', async () => {
    const { authenticate, failing, secret } = await limited();
    for (let at = 0; at < 50; at += 1) await authenticate(secret, '192.0.2.1');
    await failing('192.0.2.1', 20);
    // Hash buckets are rarely shared: of ten addresses hardly one is.
    const others = await Promise.all(
      Array.from({ length: 10 }, (_, at) => authenticate(wrong(1), `198.51.100.${at}`)),
    );
    expect(others.filter(({ kind }) => kind === 'unknown key').length).toBeGreaterThanOrEqual(9);
  });

  test.each([
    ['2001:db8:1:2::1', '2001:db8:1:2:ffff:0:0:9', true],
    ['2001:0db8:0001:0002::', '2001:db8:1:2:3:4:5:6', true],
    ['2001:db8::1', '2001:db8:0:0:1::', true],
    ['::1', '0:0:0:0:1::', true],
    ['2001:DB8:1:2::1', '2001:db8:1:2::2', true],
    ['::192.0.2.1', '::1%eth0', true],
    ['::ffff:192.0.2.1', '192.0.2.1', true],
    ['2001:db8:1:2::1', '2001:db8:1:3::1', false],
    ['::ffff:192.0.2.1', '192.0.2.2', false],
    ['192.0.2.1', '192.0.2.2', false],
  ])('%s and %s are of one network: %s', async (one, other, same) => {
    // Places are shared by chance, but not again and again.
    const outcomes = new Set<boolean>();
    for (let attempt = 0; attempt < 3; attempt += 1) {
      const { authenticate, failing } = await limited();
      await failing(one, 20);
      outcomes.add((await authenticate(wrong(0), other)).kind === 'too many failures');
    }
    expect(outcomes.has(same)).toBe(true);
    if (same) expect(outcomes.size).toBe(1);
  });

  test('a request without an address counts too', async () => {
    const { authenticate } = await limited();
    for (let at = 0; at < 20; at += 1) await authenticate(wrong(at), undefined);
    expect(await authenticate(wrong(1), undefined)).toMatchObject({ kind: 'too many failures' });
  });
});

function rig(table: Table, clock = { now: START }) {
  const now = () => clock.now;
  return {
    table,
    clock,
    deps: { table, now },
    keyring: createKeyring({ table, now, bootstrap: CONFIGURED }),
  };
}

async function make(deps: Parameters<typeof createKey>[0], input: unknown, by: Caller = OPERATOR) {
  const made = await createKey(deps, input, by);
  if (made.kind !== 'created') throw new Error(made.reason);
  return made;
}

/** Ids, page by page. */
async function pages(table: Table, limit: number, by: Caller): Promise<string[][]> {
  const all: string[][] = [];
  let after: string | null | undefined;
  do {
    const page = await listKeys({ table }, { limit, after: after ?? undefined }, by);
    all.push(page.keys.map(({ id }) => id));
    after = page.next;
  } while (after !== null);
  return all;
}

/** The rule in another form: every single permission of one is a permission of the other. */
function isWithin(one: Caller, other: Caller): boolean {
  const accounts = ['a', 'b', 'c', 'one that comes later'];
  const may = (key: Caller, role: (typeof ROLES)[number], account: string) =>
    roleAllows(key.role, role) && (key.accounts === null || key.accounts.includes(account));
  const lasts = other.expiresAt === null || (one.expiresAt ?? Number.POSITIVE_INFINITY) <= other.expiresAt;
  return (
    lasts &&
    ROLES.every((role) => accounts.every((account) => !may(one, role, account) || may(other, role, account)))
  );
}

function brokenTable(): Table {
  const fail = async () => Promise.reject(new TableError('read', 'test'));
  return { ...createMemoryTable(), get: fail, write: fail };
}
