/** Requests with an idempotency key: executed once, answered identically, and unreadable in the table. */
import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import {
  createIdempotency,
  type Generators,
  getFingerprint,
  IdempotencyKey,
  type IdempotentRequest,
  type StoredResponse,
} from '../../shared/api/idempotency.ts';
import { createKey, createKeyring, OPERATOR } from '../../shared/api/keys.ts';
import { API_KEY_PK } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import { type Item, type Table, TableError } from '../../shared/storage/table.ts';
import { runs } from '../support/runs.ts';
import { eachTable } from '../support/tables.ts';

const START = Date.UTC(2026, 10, 21, 12);
const DAY = 86_400_000;
const DEADLINE_MS = 30_000;
const POST = getFingerprint('POST', '/v1/keys', '{"role":"read"}');
const REQUEST: IdempotentRequest = {
  keyId: 'abcdefghijkm',
  idempotencyKey: 'b7a6-from-the-client',
  bearer: 'jw_abcdefghijkm_the-secret-of-this-test',
  fingerprint: POST,
};
const CREATED: StoredResponse = {
  status: 201,
  headers: { 'content-type': 'application/json', etag: '"1"' },
  body: '{"secret":"shown once – „nur einmal“"}',
};

eachTable('Idempotency', (makeTable) => {
  test('a request is not executed again, and is answered identically, for 24 hours', async () => {
    const { clock, run, action } = rig(await makeTable());
    expect(await run(REQUEST)).toEqual({ kind: 'done', answer: CREATED });
    clock.now += DAY - 1;
    expect(await run(REQUEST)).toEqual({ kind: 'replayed', answer: CREATED });
    expect(action).toHaveBeenCalledTimes(1);
    clock.now += 1;
    expect(await run(REQUEST)).toEqual({ kind: 'done', answer: CREATED });
    expect(action).toHaveBeenCalledTimes(2);
  });

  test('another method, path or body under the same key conflicts, for any result of the first', async () => {
    const { run, action } = rig(await makeTable());
    const others = [
      getFingerprint('PUT', '/v1/keys', '{"role":"read"}'),
      getFingerprint('POST', '/v1/keys?x', '{"role":"read"}'),
      getFingerprint('POST', '/v1/keys', '{"role":"admin"}'),
    ];
    const refused = async () => {
      for (const fingerprint of others) {
        expect(await run({ ...REQUEST, fingerprint })).toEqual({ kind: 'other request' });
      }
    };
    action.mockRejectedValueOnce(new Error('test'));
    await expect(run(REQUEST)).rejects.toThrow('test');
    await refused();
    await run(REQUEST);
    await refused();
    expect(action).toHaveBeenCalledTimes(2);
  });

  test('other idempotency keys, other API keys and other secrets are independent', async () => {
    const { run, action } = rig(await makeTable());
    await run(REQUEST);
    for (const other of [{ idempotencyKey: 'another' }, { keyId: 'mkjihgfedcba' }, { bearer: 'changed' }]) {
      expect(await run({ ...REQUEST, ...other })).toMatchObject({ kind: 'done' });
    }
    expect(action).toHaveBeenCalledTimes(4);
  });

  test('of concurrent requests one is executed; the others get 409', async () => {
    const { run, action, clock } = rig(await makeTable());
    const held = Promise.withResolvers<StoredResponse>();
    action.mockReturnValue(held.promise);
    const all = Array.from({ length: 5 }, () => run(REQUEST));
    // The executed one waits, so the others end first.
    const asked = await Promise.any(all);
    expect(asked).toEqual({ kind: 'in progress', retryAfterSeconds: expect.any(Number) });
    clock.now += DEADLINE_MS - 1_500;
    expect(await run(REQUEST)).toEqual({ kind: 'in progress', retryAfterSeconds: 2 });
    held.resolve(CREATED);
    const kinds = (await Promise.all(all)).map(({ kind }) => kind).sort();
    expect(kinds).toEqual(['done', ...Array.from({ length: 4 }, () => 'in progress')]);
    expect(action).toHaveBeenCalledTimes(1);
    expect(await run(REQUEST)).toEqual({ kind: 'replayed', answer: CREATED });
  });

  test('an interrupted one is executed again after its deadline, with the same ids; the late one changes nothing', async () => {
    const { run, action, clock } = rig(await makeTable());
    const made: string[][] = [];
    const first = Promise.withResolvers<StoredResponse>();
    action.mockImplementation(async (making) => {
      made.push([making.newId(), Buffer.from(making.randomBytes(32)).toString('hex'), making.newId()]);
      return made.length === 1 ? first.promise : CREATED;
    });
    const late = run(REQUEST);
    await vi.waitFor(() => expect(made).toHaveLength(1));
    clock.now += DEADLINE_MS;
    expect(await run(REQUEST)).toEqual({ kind: 'done', answer: CREATED });
    first.resolve({ ...CREATED, status: 200 });
    expect(await late).toMatchObject({ kind: 'done', answer: { status: 200 } });
    expect(await run(REQUEST)).toEqual({ kind: 'replayed', answer: CREATED });
    expect(made[1]).toEqual(made[0]);
    expect(new Set(made.flat()).size).toBe(3);
    expect(made[0]?.[0]).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });

  test.each([500, 503, 429])(
    'an answer of %i is not stored: a repetition is executed again, with the same ids',
    async (status) => {
      const { run, action, ids } = rig(await makeTable());
      action.mockImplementationOnce(async (making) => {
        ids.push(making.newId());
        return { ...CREATED, status };
      });
      expect(await run(REQUEST)).toMatchObject({ kind: 'done', answer: { status } });
      expect(await run(REQUEST)).toEqual({ kind: 'done', answer: CREATED });
      expect(ids[1]).toBe(ids[0]);
    },
  );

  test.each([204, 400, 403, 404, 409, 412, 422])('an answer of %i is stored', async (status) => {
    const { run, action } = rig(await makeTable());
    action.mockResolvedValueOnce({ status, headers: {}, body: '' });
    await run(REQUEST);
    expect(await run(REQUEST)).toEqual({ kind: 'replayed', answer: { status, headers: {}, body: '' } });
  });

  test('a request a day later with the same idempotency key is a new one', async () => {
    const { run, clock, ids } = rig(await makeTable());
    await run(REQUEST);
    clock.now += DAY;
    await run(REQUEST);
    expect(ids[1]).not.toBe(ids[0]);
  });

  test('an answer of 100 kB is stored, a longer one is not, and its request is not executed again either', async () => {
    const { run, action } = rig(await makeTable());
    // Each character takes two bytes in the stored answer.
    const longest = { ...CREATED, body: '"'.repeat(100_000) };
    action.mockResolvedValueOnce(longest).mockResolvedValueOnce({ ...CREATED, body: 'x'.repeat(100_001) });
    await run(REQUEST);
    expect(await run(REQUEST)).toEqual({ kind: 'replayed', answer: longest });
    const other = { ...REQUEST, idempotencyKey: 'longer' };
    expect(await run(other)).toMatchObject({ kind: 'done', answer: { status: 201 } });
    expect(await run(other)).toEqual({ kind: 'answer not kept', status: 201 });
    expect(action).toHaveBeenCalledTimes(2);
  });

  test('items expire after 24 hours', async () => {
    const { run, written } = rig(await makeTable());
    await run(REQUEST);
    expect(written.map(({ ttl }) => ttl)).toEqual([(START + DAY) / 1000, (START + DAY) / 1000]);
  });
});

describe('the stored item', () => {
  test('reveals neither answer, idempotency key nor request, also not by brute force', async () => {
    const { run, written } = rig(createMemoryTable());
    await run(REQUEST);
    await run({ ...REQUEST, bearer: 'another-bearer-of-the-key' });
    const all = written.map((item) => Buffer.from(getBytes(item)).toString('latin1'));
    for (const secret of ['shown once', REQUEST.idempotencyKey, REQUEST.bearer, POST]) {
      for (const text of all) expect(text).not.toContain(secret);
    }
    expect(written.every(({ status }) => status === undefined)).toBe(true);
    // The same request of another secret shares only its expiry.
    const [one, , other] = written;
    expect(one?.sk).not.toBe(other?.sk);
    expect(one?.request).not.toBe(other?.request);
  });

  test('with a modified answer causes a fault, not an answer', async () => {
    const { run, table, written } = rig(createMemoryTable());
    await run(REQUEST);
    const item = written.at(-1);
    if (!(item?.answer instanceof Uint8Array)) throw new Error('There is no answer.');
    for (const at of [0, 12, 28, item.answer.length - 1]) {
      const answer = item.answer.map((byte, place) => (place === at ? byte ^ 1 : byte));
      await table.write({ put: { ...item, answer } });
      await expect(run(REQUEST)).rejects.toThrow();
    }
  });
});

describe('an unavailable table', () => {
  test('before the action prevents it; after it the answer is sent, and the fault reported', async () => {
    const memory = createMemoryTable();
    const table = { ...memory };
    const { run, action, onFault, clock } = rig(table);
    table.write = async () => Promise.reject(new TableError('write', 'test'));
    await expect(run(REQUEST)).rejects.toThrow(TableError);
    expect(action).not.toHaveBeenCalled();
    table.write = memory.write;
    action.mockImplementationOnce(async () => {
      table.write = async () => Promise.reject(new TableError('write', 'test'));
      return CREATED;
    });
    expect(await run(REQUEST)).toEqual({ kind: 'done', answer: CREATED });
    expect(onFault).toHaveBeenCalledTimes(1);
    table.write = memory.write;
    expect(await run(REQUEST)).toMatchObject({ kind: 'in progress' });
    clock.now += DEADLINE_MS;
    expect(await run(REQUEST)).toMatchObject({ kind: 'done' });
  });

  test('a key created in a request that crashes at any write, before or after it, is created once and works', async () => {
    const crash = fc.record({ write: fc.nat({ max: 3 }), lost: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(fc.array(crash, { maxLength: 4 }), async (crashes) => {
        const memory = createMemoryTable();
        const clock = { now: START };
        const now = () => clock.now;
        const plan = [...crashes];
        let bearer: string | undefined;
        while (bearer === undefined) {
          const crash = plan.shift();
          let writes = 0;
          let isDead = false;
          const table: Table = {
            ...memory,
            // A crashed process writes nothing more.
            write: async (write) => {
              if (isDead) throw new TableError('write', 'dead');
              const dies = writes === crash?.write;
              writes += 1;
              isDead = dies;
              if (dies && !crash?.lost) throw new TableError('write', 'dies');
              const outcome = await memory.write(write);
              if (dies) throw new TableError('write', 'died');
              return outcome;
            },
          };
          const idempotency = createIdempotency({ table, now, deadlineMs: DEADLINE_MS });
          const outcome = await idempotency
            .run(REQUEST, async ({ randomBytes }) => {
              const made = await createKey({ table, now, randomBytes }, { role: 'read' }, OPERATOR);
              if (made.kind !== 'created') throw new Error(made.reason);
              return { status: 201, headers: {}, body: JSON.stringify({ secret: made.secret }) };
            })
            .catch(() => undefined);
          // A crashed process answers no request.
          if (!isDead && outcome && 'answer' in outcome) bearer = JSON.parse(outcome.answer.body).secret;
          clock.now += DEADLINE_MS;
        }
        expect(await memory.query({ pk: API_KEY_PK })).toHaveLength(1);
        const keyring = createKeyring({ table: memory, now });
        expect(await keyring.verify(bearer)).toMatchObject({ role: 'read' });
      }),
      runs(40, 200),
    );
  });
});

test('an idempotency key is 1 to 255 visible characters', () => {
  for (const good of ['a', '8e03978e-40d5-43dd-bc93-6894a57f9324', '"quoted"', '~'.repeat(255)]) {
    expect(IdempotencyKey.safeParse(good).success).toBe(true);
  }
  for (const bad of ['', ' ', 'a b', 'a\n', 'ä', '~'.repeat(256), undefined]) {
    expect(IdempotencyKey.safeParse(bad).success).toBe(false);
  }
});

test('method, path and body are separated unambiguously, and text is hashed by its bytes', () => {
  expect(getFingerprint('POST', '/a', '/b')).not.toBe(getFingerprint('POST', '/a/b', ''));
  expect(getFingerprint('POST', '/a', 'b')).not.toBe(getFingerprint('POST', '/ab', ''));
  expect(getFingerprint('POST', '/a', 'ä')).toBe(getFingerprint('POST', '/a', Buffer.from('ä')));
});

function rig(table: Table) {
  const clock = { now: START };
  const written: Item[] = [];
  const ids: string[] = [];
  const onFault = vi.fn();
  const keeping: Table = {
    ...table,
    async write(write) {
      const outcome = await table.write(write);
      if (outcome.done && outcome.item) written.push(outcome.item);
      return outcome;
    },
  };
  const action = vi.fn(async (making: Generators): Promise<StoredResponse> => {
    ids.push(making.newId());
    return CREATED;
  });
  const { run } = createIdempotency({
    table: keeping,
    now: () => clock.now,
    deadlineMs: DEADLINE_MS,
    onFault,
  });
  return {
    table,
    clock,
    written,
    ids,
    onFault,
    action,
    run: (request: IdempotentRequest) => run(request, action),
  };
}

function getBytes(item: Item): Uint8Array {
  return Buffer.concat(
    Object.entries(item).map(([name, value]) =>
      value instanceof Uint8Array ? Buffer.from(value) : Buffer.from(`${name}=${String(value)};`),
    ),
  );
}
