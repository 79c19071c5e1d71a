/**
 * Endpoints: validation of requests, and no crash leaves one incomplete, exposes a secret, or loses a cursor.
 * One file: its tests share the rig of endpoints, and the crash at each write.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { DataDirError, LOCK_FILE, openDataDir, readStartTime } from '../../local/data-dir.ts';
import { registerAccount } from '../../shared/accounts/accounts.ts';
import { createDeliveryLog, type DeliveryLog } from '../../shared/delivery/delivery-log.ts';
import { drainSink } from '../../shared/delivery/drain.ts';
import { listEndpoints } from '../../shared/delivery/endpoint.ts';
import {
  enableEndpoint,
  pauseEndpoint,
  pingEndpoint,
  resumeEndpoint,
  rotateSecret,
} from '../../shared/delivery/endpoint-controls.ts';
import type { EndpointDeps } from '../../shared/delivery/endpoint-edits.ts';
import { readEndpointHealth, toHealthState } from '../../shared/delivery/endpoint-health.ts';
import {
  createEndpoint,
  deleteEndpoint,
  removeAccountFromEndpoints,
  tidyEndpoints,
  updateEndpoint,
} from '../../shared/delivery/endpoints.ts';
import { isReady } from '../../shared/delivery/health.ts';
import { checkUrl } from '../../shared/delivery/outbound.ts';
import {
  createSigningReader,
  type EndpointSecrets,
  openLocalSigningSecrets,
  SIGNING_MAX_AGE_MS,
  type SigningSecrets,
} from '../../shared/delivery/signing-secrets.ts';
import { registerSink, type SinkPort, type SinkRecord, toSink } from '../../shared/delivery/sink.ts';
import { listDueSinks, wakeSinks } from '../../shared/delivery/wakes.ts';
import { createWebhookSink } from '../../shared/delivery/webhook.ts';
import { catalogue } from '../../shared/events/catalogue.ts';
import { createEventLog } from '../../shared/log/log.ts';
import { openSealedTexts, SecretError } from '../../shared/secrets.ts';
import {
  CELL_LOG,
  cursorPk,
  deadPk,
  drainDuePk,
  historySchema,
  keys,
  parkedPk,
  replayPk,
} from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import type { Item, Table } from '../../shared/storage/table.ts';
import { endpointId } from '../../shared/validation.ts';
import { atEveryCrash } from '../support/crashes.ts';
import { moved, newSecret, REGION, startReceiver } from '../support/delivery-world.ts';
import { readEndpoint } from '../support/endpoints.ts';
import { crashStep, eachTable, mayUseNetwork } from '../support/tables.ts';

const START = Date.parse('2026-03-02T08:00:00Z');
const DAY_MS = 86_400_000;
const URL = 'https://erp.example.com/hook?key=s3cret-in-url';

/** Accounts `acme` and `other`, a clock, and the parts that endpoints need. */
async function createRig(makeTable: () => Promise<Table> = async () => createMemoryTable()) {
  const clock = { now: START };
  const now = () => clock.now;
  const table = await makeTable();
  const log = createEventLog(table, {
    now,
    newId: randomUUID,
    schemaBaseUrl: 'https://jobwire.example',
    retentionDays: 7,
  });
  const register = (account: string) =>
    registerAccount(
      table,
      log,
      { region: REGION, account, secretRef: account, pollIntervalSeconds: 60, paused: false },
      { now: clock.now, epoch: 'e1' },
    );
  await register('acme');
  await register('other');
  const secrets = await openLocalSigningSecrets(table, new Uint8Array(32).fill(7));
  const deliveries = createDeliveryLog(createMemoryTable(historySchema), { newId: randomUUID });
  const deps: EndpointDeps & { readonly deliveries: DeliveryLog } = {
    table,
    log,
    secrets,
    deliveries,
    now,
    newId: randomUUID,
    allowPrivateNetworks: false,
    schemaBaseUrl: 'https://jobwire.example',
    open: async () => ({ maxBatch: 1, deliver: async () => [{ kind: 'delivered' }] }),
  };
  const say = async (account: string, count: number, time = clock.now) => {
    const events = Array.from({ length: count }, (_, at) => ({ ...moved(at + 1, 'x'), time }));
    await log.append({ region: REGION, account }, events);
  };
  return {
    clock,
    table,
    log,
    secrets,
    deps,
    register,
    say,
    create: (input: object, over = deps) => createEndpoint(over, REGION, input),
    read: (id = 'erp') => readEndpoint(deps, REGION, id),
    signing: (id = 'erp') => createSigningReader(secrets, now, 0)(REGION, id),
    sink: (id = 'erp') => table.get(keys.sink(REGION, id)),
    cursor: (account: string, id = 'erp') => table.get(keys.cursor(REGION, id, account)),
    /** All items of an endpoint. */
    async everything(id = 'erp') {
      const parts = await Promise.all([
        ...[cursorPk, parkedPk, deadPk, replayPk].map((pk) => table.query({ pk: pk(REGION, id) })),
        table.getMany([keys.sink(REGION, id), keys.endpointSecrets(REGION, id)]),
      ]);
      return parts.flat();
    },
  };
}
type Rig = Awaited<ReturnType<typeof createRig>>;

const LATER_MS = 130_000;

eachTable('endpoints', (makeTable, kind) => {
  describe('creating an endpoint', () => {
    test('stores its settings; returns the secret once, and header values never', async () => {
      const rig = await createRig(makeTable);
      const made = await rig.create({
        id: 'erp',
        url: URL,
        accounts: ['acme', 'acme'],
        types: ['job.*'],
        orderGroups: ['G1'],
        origins: ['web'],
        jobFields: { mustDate: true, orderNumber: null },
        headers: { Authorization: 'Bearer s3cret-token', 'X-Tenant': '7' },
        concurrency: 4,
        ratePerSecond: 0.5,
        description: 'the ERP',
      });
      const endpoint = {
        region: REGION,
        id: 'erp',
        kind: 'webhook',
        url: URL,
        accounts: ['acme'],
        types: ['job.*'],
        orderGroups: ['G1'],
        origins: ['web'],
        jobFields: { mustDate: true, orderNumber: null },
        headers: ['Authorization', 'X-Tenant'],
        concurrency: 4,
        ratePerSecond: 0.5,
        description: 'the ERP',
        paused: false,
        state: 'active',
        managed: true,
        revision: 1,
        createdAt: START,
        changedAt: START,
      };
      expect(made).toEqual({
        kind: 'created',
        endpoint,
        secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/),
        late: [],
      });
      expect(await rig.read()).toEqual(endpoint);
      expect(await listEndpoints(rig.deps, REGION)).toEqual([endpoint]);
      const secret = made.kind === 'created' ? made.secret : '';
      expect(await rig.signing()).toEqual({
        secrets: [secret],
        headers: { Authorization: 'Bearer s3cret-token', 'X-Tenant': '7' },
      });
      const stored = JSON.stringify(await rig.everything(), (_, value) =>
        value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : value,
      );
      expect(stored).not.toContain('s3cret-token');
      expect(stored).not.toContain(secret);
    });

    test('generates unique ids, and accepts a given secret', async () => {
      const rig = await createRig(makeTable);
      const secret = newSecret();
      const [first, second] = [await rig.create({ url: URL, secret }), await rig.create({ url: URL })];
      if (first.kind !== 'created' || second.kind !== 'created') throw new Error('not made');
      expect(first.endpoint.id).toMatch(/^ep-[a-z0-9]{24}$/);
      expect(endpointId.safeParse(first.endpoint.id).success, 'valid as a given id').toBe(true);
      expect(first.endpoint.id).not.toBe(second.endpoint.id);
      expect(first.secret).toBe(secret);
      expect(second.secret).not.toBe(secret);
    });

    test('starts now, at the beginning, at a time, or after cursors', async () => {
      const rig = await createRig(makeTable);
      await rig.say('acme', 3, START - 60 * 60_000);
      await rig.say('acme', 2, START);
      await rig.say('other', 4, START);
      const starts = {
        now: [5, 4, 0],
        beginning: [0, 0, 0],
        instant: [3, 0, 0],
        cursors: [2, 4, 0],
      };
      await rig.create({ id: 'now', url: URL });
      await rig.create({ id: 'beginning', url: URL, start: 'beginning' });
      await rig.create({ id: 'instant', url: URL, start: { at: '2026-03-02T08:00:00Z' } });
      await rig.create({ id: 'cursors', url: URL, start: { cursors: { acme: 'e1.2' } } });
      for (const [id, expected] of Object.entries(starts)) {
        const cursors = await Promise.all(['acme', 'other', CELL_LOG].map((one) => rig.cursor(one, id)));
        expect(
          cursors.map((cursor) => cursor?.position),
          id,
        ).toEqual(expected);
        expect(
          cursors.every((cursor) => cursor?.duePk),
          'due, because no event may wake it',
        ).toBe(true);
      }
    });

    test('starts at the oldest stored event if an earlier one is requested, and reports that', async () => {
      const rig = await createRig(makeTable);
      await rig.say('acme', 3);
      rig.clock.now += 8 * DAY_MS;
      await rig.say('acme', 2);
      const at = new Date(START - DAY_MS).toISOString();
      const made = await rig.create({ id: 'erp', url: URL, start: { at } });
      expect(made).toMatchObject({ kind: 'created', late: ['acme'] });
      expect((await rig.cursor('acme'))?.position).toBe(3);
      expect(await rig.create({ id: 'x', url: URL, start: { cursors: { acme: 'e1.2' } } })).toEqual({
        kind: 'rejected',
        reason: 'start must have a cursor from e1.3 to e1.5 for "acme".',
      });
    });

    test('rejects an existing id and changes nothing', async () => {
      const rig = await createRig(makeTable);
      const made = await rig.create({ id: 'erp', url: URL });
      expect(await rig.create({ id: 'erp', url: 'https://evil.example/', secret: newSecret() })).toEqual({
        kind: 'conflict',
        reason: 'id must be new: an endpoint "erp" already exists.',
      });
      expect(await rig.read()).toMatchObject({ url: URL, revision: 1 });
      expect((await rig.signing()).secrets).toEqual(made.kind === 'created' ? [made.secret] : []);
    });

    test("concurrently with the same id succeeds once, and the winner's secret signs", async () => {
      const rig = await createRig(makeTable);
      let saves = 0;
      // The first to save finishes last.
      const secrets: SigningSecrets = {
        ...rig.secrets,
        async save(...args) {
          const ticks = 40 - 10 * saves++;
          for (let tick = 0; tick < ticks; tick += 1) await new Promise((resolve) => setImmediate(resolve));
          return rig.secrets.save(...args);
        },
      };
      const answers = await Promise.all(
        Array.from({ length: 5 }, () => rig.create({ id: 'erp', url: URL }, { ...rig.deps, secrets })),
      );
      const made = answers.flatMap((answer) => (answer.kind === 'created' ? [answer.secret] : []));
      expect(made).toHaveLength(1);
      expect(answers.filter(({ kind }) => kind === 'conflict')).toHaveLength(4);
      expect((await rig.signing()).secrets).toEqual(made);
    });

    test('is atomic wherever it is interrupted, and can be repeated', async () => {
      const input = { id: 'erp', url: URL, accounts: ['acme', 'other'], headers: { 'X-A': 'b' } };
      const crashes = await atEveryCrash(
        async () => {
          const rig = await createRig(makeTable);
          await rig.say('acme', 3);
          return rig;
        },
        (deps) => createEndpoint(deps, REGION, input),
        async (rig, where) => {
          const whole = (await rig.sink()) !== undefined;
          if (!whole) {
            expect(await rig.read(), where).toBeUndefined();
            await rig.say('acme', 1);
            expect(await wakeSinks(rig.table, { region: REGION, account: 'acme' }, 4, START)).toEqual([]);
          }
          rig.clock.now += LATER_MS;
          const again = await rig.create(input);
          expect(again.kind, where).toBe(whole ? 'conflict' : 'created');
          expect((await rig.signing()).headers).toEqual({ 'X-A': 'b' });
          expect((await rig.cursor('acme'))?.position, where).toBe(whole ? 3 : 4);
          expect(await rig.cursor('other')).toBeDefined();
        },
        crashStep(kind),
      );
      expect(crashes).toBeGreaterThanOrEqual(10 / crashStep(kind));
    });

    test('that was interrupted and never repeated is cleaned up', async () => {
      await atEveryCrash(
        () => createRig(makeTable),
        (deps) => createEndpoint(deps, REGION, { id: 'erp', url: URL }),
        async (rig, where) => {
          const whole = (await rig.sink()) !== undefined;
          const before = await rig.everything();
          await tidyEndpoints(rig.deps, REGION);
          expect(await rig.everything(), 'not while it may be under way').toEqual(before);
          rig.clock.now += LATER_MS;
          await tidyEndpoints(rig.deps, REGION);
          expect(await rig.everything(), where).toEqual(whole ? before : []);
          expect(await tidyEndpoints(rig.deps, REGION)).toBe(0);
        },
        crashStep(kind),
      );
    });

    test('has no revision of a deleted one with the same id, so that a condition on that one does not apply', async () => {
      const rig = await createRig(makeTable);
      await rig.create({ id: 'erp', url: URL });
      await pauseEndpoint(rig.deps, REGION, 'erp');
      const { revision = 0 } = (await rig.read()) ?? {};
      await deleteEndpoint(rig.deps, REGION, 'erp');
      expect(await rig.create({ id: 'erp', url: URL })).toMatchObject({ kind: 'created' });
      await pauseEndpoint(rig.deps, REGION, 'erp');
      expect(await deleteEndpoint(rig.deps, REGION, 'erp', { revision })).toMatchObject({ kind: 'conflict' });
    });

    test('ignores cursors, parked events and leases of a deleted one with the same id', async () => {
      const rig = await createRig(makeTable);
      await rig.create({ id: 'erp', url: URL });
      const lease = START + 50_000;
      await rig.table.write({ update: keys.sink(REGION, 'erp'), set: { leaseToken: lease } });
      await rig.say('acme', 5);
      expect(await deleteEndpoint(rig.deps, REGION, 'erp')).toEqual({ kind: 'deleted' });
      // A running drain stores its cursor, a late wake-up marks, an event is parked.
      await rig.table.write({
        update: keys.cursor(REGION, 'erp', 'acme'),
        set: { position: 2, fence: lease, mark: 5, duePk: drainDuePk(REGION, 0), dueSk: 'x' },
      });
      await rig.table.write({ put: { ...keys.parked(REGION, 'erp', 'acme', '1', 1) } });
      await rig.create({ id: 'erp', url: URL });
      expect(await rig.table.query({ pk: parkedPk(REGION, 'erp') })).toEqual([]);
      const cursor = await rig.cursor('acme');
      expect(cursor?.position).toBe(5);
      expect(cursor?.mark).toBeUndefined();
      expect(cursor?.fence, 'the old drain is fenced off').toBeGreaterThan(lease);
      expect((await rig.sink())?.leaseToken, 'and a new one is not').toBe(cursor?.fence);
      const late = await rig.table.write({
        update: keys.cursor(REGION, 'erp', 'acme'),
        set: { position: 3 },
        when: [['fence', 'absent or <=', lease]],
      });
      expect(late.done).toBe(false);
    });

    test.each(['the record', 'a cursor'] as const)(
      'has fences above those of a deleted one with a fast clock, as far as %s has them',
      async (teller) => {
        const rig = await createRig(makeTable);
        await rig.create({ id: 'erp', url: URL });
        const ahead = START + 50_000;
        if (teller === 'the record') {
          await rig.table.write({ update: keys.sink(REGION, 'erp'), set: { leaseToken: ahead } });
        }
        await deleteEndpoint(rig.deps, REGION, 'erp');
        if (teller === 'a cursor') {
          await rig.table.write({
            put: { ...keys.cursor(REGION, 'erp', 'gone'), position: 1, fence: ahead },
          });
        }
        await rig.create({ id: 'erp', url: URL });
        expect((await rig.cursor('acme'))?.fence).toBeGreaterThan(ahead);
        expect((await rig.sink())?.leaseToken).toBe((await rig.cursor('acme'))?.fence);
      },
    );
  });

  describe('changing an endpoint', () => {
    test('sets the given fields; null removes a restriction; the rest stays', async () => {
      const rig = await createRig(makeTable);
      await rig.create({ id: 'erp', url: URL, types: ['job.*'], headers: { 'X-A': 'b' }, concurrency: 2 });
      await rig.table.write({ update: keys.sink(REGION, 'erp'), set: { failures: 3, problem: 'x' } });
      rig.clock.now += 1000;
      const changed = await updateEndpoint(rig.deps, REGION, 'erp', {
        types: null,
        description: 'new',
        origins: ['web'],
      });
      expect(changed).toMatchObject({
        kind: 'changed',
        endpoint: {
          types: [],
          description: 'new',
          origins: ['web'],
          concurrency: 2,
          headers: ['X-A'],
          url: URL,
          revision: 2,
          changedAt: START + 1000,
        },
      });
      expect((await rig.signing()).headers).toEqual({ 'X-A': 'b' });
      expect(await rig.sink()).toMatchObject({ failures: 3, problem: 'x' });
      await updateEndpoint(rig.deps, REGION, 'erp', { headers: { 'X-C': 'd' }, url: 'https://b.example/' });
      expect(await rig.read()).toMatchObject({ headers: ['X-C'], url: 'https://b.example/', revision: 3 });
      expect((await rig.signing()).headers).toEqual({ 'X-C': 'd' });
      // Otherwise the new host would receive headers meant for this one.
      expect(await updateEndpoint(rig.deps, REGION, 'erp', { url: 'https://c.example/' })).toMatchObject({
        kind: 'rejected',
        reason: expect.stringContaining('headers are required when url changes to another origin'),
      });
      expect(await updateEndpoint(rig.deps, REGION, 'erp', { url: 'none' })).toMatchObject({
        kind: 'rejected',
        reason: expect.stringContaining('url'),
      });
      await updateEndpoint(rig.deps, REGION, 'erp', { url: 'https://b.example/other' });
      expect((await rig.signing()).headers).toEqual({ 'X-C': 'd' });
      await updateEndpoint(rig.deps, REGION, 'erp', { headers: null });
      expect(await rig.read()).toMatchObject({ headers: [] });
      expect((await rig.signing()).headers).toEqual({});
      expect((await rig.signing()).secrets).toHaveLength(1);
    });

    test('starts added accounts now by default, and deletes the cursors of removed ones', async () => {
      const rig = await createRig(makeTable);
      await rig.say('acme', 3);
      await rig.say('other', 3);
      await rig.create({ id: 'erp', url: URL, accounts: ['acme'], start: 'beginning' });
      await rig.table.write({ put: { ...keys.replayCursor(REGION, 'erp', 'acme', 'r1') } });
      await updateEndpoint(rig.deps, REGION, 'erp', { accounts: ['acme', 'other'] });
      expect((await rig.cursor('acme'))?.position, 'it keeps its place').toBe(0);
      expect((await rig.cursor('other'))?.position).toBe(3);
      await updateEndpoint(rig.deps, REGION, 'erp', { accounts: ['other'] });
      expect(await rig.cursor('acme')).toBeUndefined();
      expect(await rig.table.get(keys.replayCursor(REGION, 'erp', 'acme', 'r1'))).toBeUndefined();
      // A running drain stores its cursor once more, without effect.
      await rig.table.write({ update: keys.cursor(REGION, 'erp', 'acme'), set: { position: 1 } });
      await updateEndpoint(rig.deps, REGION, 'erp', { accounts: null, start: { cursors: { acme: '2' } } });
      expect((await rig.cursor('acme'))?.position).toBe(2);
      expect((await rig.cursor('other'))?.position).toBe(3);
      expect((await rig.cursor(CELL_LOG))?.position).toBe(0);
      expect(await updateEndpoint(rig.deps, REGION, 'erp', { start: 'now' })).toEqual({
        kind: 'rejected',
        reason: 'start is allowed only in a change that adds accounts.',
      });
    });

    test('deletes the parked and dead events of removed accounts, and no others', async () => {
      const rig = await createRig(makeTable);
      await rig.register('acme2');
      await rig.create({ id: 'erp', url: URL, accounts: ['acme', 'acme2', 'other'] });
      const items = (account: string) => [
        { ...keys.parked(REGION, 'erp', account, '7', 2), account },
        { ...keys.dead(REGION, 'erp', account, 1), account },
      ];
      await rig.table.putMany(['acme', 'acme2', 'other'].flatMap(items));
      await updateEndpoint(rig.deps, REGION, 'erp', { accounts: ['acme2'] });
      for (const pk of [parkedPk, deadPk]) {
        const left = await rig.table.query({ pk: pk(REGION, 'erp') });
        expect(left.map(({ account }) => account)).toEqual(['acme2']);
      }
      expect(await readEndpointHealth(rig.deps, REGION, 'erp')).toMatchObject({
        ...{ parked: { count: 1 }, dead: 1 },
      });
    });

    test.each<readonly [string, (rig: Rig) => Promise<unknown>]>([
      ['is changed', (rig) => updateEndpoint(rig.deps, REGION, 'erp', { accounts: ['acme'] })],
      [
        'loses a deleted account',
        async (rig) => {
          const ref = { region: REGION, account: 'other' };
          expect(await removeAccountFromEndpoints(rig.deps, ref)).toBe(true);
          await rig.table.write({ delete: keys.cursor(REGION, 'erp', 'other') });
        },
      ],
      [
        'is enabled after its cursor was deleted',
        async (rig) => {
          await rig.table.write({ delete: keys.cursor(REGION, 'erp', 'other') });
          await enableEndpoint(rig.deps, REGION, 'erp');
        },
      ],
    ])('that is failing is active after it %s, if nothing is left to deliver', async (_, change) => {
      const rig = await createRig(makeTable);
      await rig.create({ id: 'erp', url: URL, accounts: ['acme', 'other'] });
      await rig.say('other', 1);
      await wakeSinks(rig.table, { region: REGION, account: 'other' }, 1, rig.clock.now);
      const port: SinkPort = { maxBatch: 1, deliver: async () => [{ kind: 'retry', reason: 'down' }] };
      const deps = { ...rig.deps, open: async () => port, random: Math.random, retrySeconds: [5] };
      const drain = () => drainSink(deps, REGION, 'erp', rig.clock.now + 60_000);
      expect(await drain()).toMatchObject({ outcome: 'waiting' });
      expect(await rig.read()).toMatchObject({ state: 'failing' });
      rig.clock.now += 60_000;
      await change(rig);
      expect(await listDueSinks(rig.table, REGION, rig.clock.now)).toEqual(['erp']);
      expect(await drain()).toMatchObject({ outcome: 'drained', failed: 0 });
      expect(await rig.read()).toMatchObject({ state: 'active' });
      expect(await listDueSinks(rig.table, REGION, rig.clock.now)).toEqual([]);
    });

    test('delivers the events of added accounts, also if a drain began while they were being added', async () => {
      const rig = await createRig(makeTable);
      await rig.say('other', 3);
      await rig.create({ id: 'erp', url: URL, accounts: ['acme'] });
      const drain = () =>
        drainSink(
          { ...rig.deps, random: Math.random, retrySeconds: [5] },
          REGION,
          'erp',
          rig.clock.now + 60_000,
        );
      const table: Table = {
        ...rig.table,
        async write(write) {
          if ('update' in write && write.set.accounts) await drain();
          return rig.table.write(write);
        },
      };
      const change = { accounts: ['acme', 'other'], start: 'beginning' };
      await updateEndpoint({ ...rig.deps, table }, REGION, 'erp', change);
      expect(await listDueSinks(rig.table, REGION, rig.clock.now)).toEqual(['erp']);
      expect(await drain()).toMatchObject({ outcome: 'drained', delivered: 3 });
    });

    test('sends headers only to the URL that they were given for, after any number of changes', async () => {
      const rig = await createRig(makeTable);
      const [a, b, c, d] = ['a.example', 'b.example', 'c.example', 'c.example/d'].map(
        (at) => `https://${at}`,
      );
      const change = (input: object) => updateEndpoint(rig.deps, REGION, 'erp', input);
      await rig.create({ id: 'erp', url: a, headers: { 'X-Key': 'A' } });
      // Another process: nothing ends the lifetime of what it has cached.
      const reader = createSigningReader(rig.secrets, rig.deps.now);
      const read = async (target: string | undefined) =>
        (await reader(REGION, 'erp', { ...toSink((await rig.sink()) as Item), target: target as string }))
          .headers['X-Key'];
      expect(await read(a)).toBe('A');
      await change({ url: b, headers: { 'X-Key': 'B' } });
      expect(await Promise.all([a, b].map(read)), 'at once for a new URL').toEqual(['A', 'B']);
      await change({ url: c, headers: { 'X-Key': 'C' } });
      rig.clock.now += SIGNING_MAX_AGE_MS;
      expect(await Promise.all([b, c].map(read))).toEqual(['B', 'C']);
      await expect(read(a)).rejects.toThrow('The secret erp is for another URL of the endpoint.');
      await change({ headers: { 'X-Key': 'C2' } });
      rig.clock.now += SIGNING_MAX_AGE_MS;
      expect(await Promise.all([b, c].map(read))).toEqual(['B', 'C2']);
      await expect(read(a)).rejects.toThrow(SecretError);
      await change({ url: d });
      rig.clock.now += SIGNING_MAX_AGE_MS;
      expect(await Promise.all([c, d].map(read))).toEqual(['C2', 'C2']);
      await expect(read(b)).rejects.toThrow(SecretError);
    });

    test('twice while a drain runs ends this drain, and the next one sends to the current URL', async () => {
      const rig = await createRig(makeTable);
      const [a, b, c] = ['a', 'b', 'c'].map((name) => `https://${name}.example`);
      await rig.create({ id: 'erp', url: a, headers: { 'X-Key': a } });
      await rig.say('acme', 3);
      await wakeSinks(rig.table, { region: REGION, account: 'acme' }, 3, rig.clock.now);
      const reader = createSigningReader(rig.secrets, rig.deps.now, 0);
      const sent: [url: string, key: string | undefined][] = [];
      const open = async (record: SinkRecord): Promise<SinkPort> => ({
        maxBatch: 1,
        async deliver() {
          const { headers } = await reader(REGION, 'erp', record);
          sent.push([record.target, headers['X-Key']]);
          for (const url of sent.length === 1 ? [b, c] : []) {
            await updateEndpoint(rig.deps, REGION, 'erp', { url, headers: { 'X-Key': url } });
          }
          return [{ kind: 'delivered' }];
        },
      });
      const deps = { ...rig.deps, open, random: Math.random, retrySeconds: [5] };
      await rig.table.write({ update: keys.sink(REGION, 'erp'), set: { concurrency: 1 } });
      const drain = () => drainSink(deps, REGION, 'erp', rig.clock.now + 60_000);
      expect(await drain()).toMatchObject({ outcome: 'more', delivered: 1 });
      expect(await rig.read()).toMatchObject({ state: 'active' });
      expect(await drain()).toMatchObject({ outcome: 'drained', delivered: 2 });
      expect(sent).toEqual([
        [a, a],
        [c, c],
        [c, c],
      ]);
    });

    test('that is rejected, because another request changed the endpoint, keeps its headers', async () => {
      const rig = await createRig(makeTable);
      await rig.create({ id: 'erp', url: URL, headers: { 'X-A': 'b' } });
      let saves = 0;
      const secrets: EndpointDeps['secrets'] = {
        ...rig.secrets,
        async save(...args) {
          await rig.secrets.save(...args);
          if (saves === 0) await pauseEndpoint(rig.deps, REGION, 'erp');
          saves += 1;
        },
      };
      const change = { headers: { 'X-A': 'new' } };
      const outcome = await updateEndpoint({ ...rig.deps, secrets }, REGION, 'erp', change, { revision: 1 });
      expect(outcome).toMatchObject({ kind: 'conflict' });
      expect((await rig.signing()).headers).toEqual({ 'X-A': 'b' });
    });

    test('can be repeated wherever it is interrupted, and no remaining account loses its cursor', async () => {
      const change = { accounts: ['acme', 'third'], headers: { 'X-New': '1' } };
      await atEveryCrash(
        async () => {
          const rig = await createRig(makeTable);
          await rig.register('third');
          await rig.say('acme', 3);
          await rig.create({ id: 'erp', url: URL, accounts: ['acme', 'other'], start: 'beginning' });
          return rig;
        },
        (deps) => updateEndpoint(deps, REGION, 'erp', change),
        async (rig, where) => {
          expect(await rig.read(), where).toBeDefined();
          rig.clock.now += LATER_MS;
          expect(await updateEndpoint(rig.deps, REGION, 'erp', change), where).toMatchObject({
            kind: 'changed',
            endpoint: { accounts: ['acme', 'third'], headers: ['X-New'] },
          });
          expect((await rig.signing()).headers).toEqual({ 'X-New': '1' });
          expect((await rig.cursor('acme'))?.position).toBe(0);
          expect(await rig.cursor('third')).toBeDefined();
          expect(await rig.cursor('other'), where).toBeUndefined();
        },
        crashStep(kind),
      );
    });

    test('pauses and resumes it, on the condition that it did not change since', async () => {
      const rig = await createRig(makeTable);
      await rig.create({ id: 'erp', url: URL });
      expect(await pauseEndpoint(rig.deps, REGION, 'erp', { revision: 1 })).toMatchObject({
        kind: 'changed',
        endpoint: { paused: true, revision: 2 },
      });
      expect(await pauseEndpoint(rig.deps, REGION, 'erp')).toMatchObject({ endpoint: { revision: 2 } });
      const stale = {
        kind: 'conflict',
        why: 'changed',
        reason: 'The endpoint "erp" was modified. Fetch it again and retry.',
      };
      expect(await resumeEndpoint(rig.deps, REGION, 'erp', { revision: 1 })).toEqual(stale);
      expect(await updateEndpoint(rig.deps, REGION, 'erp', { types: ['*'] }, { revision: 1 })).toEqual(stale);
      expect(await deleteEndpoint(rig.deps, REGION, 'erp', { revision: 1 })).toEqual(stale);
      // A change leaves a paused endpoint paused.
      await updateEndpoint(rig.deps, REGION, 'erp', { types: ['*'] });
      expect(await rig.read()).toMatchObject({ paused: true, revision: 3 });
      expect(await resumeEndpoint(rig.deps, REGION, 'erp')).toMatchObject({
        endpoint: { paused: false, revision: 4 },
      });
    });

    test('resumes a failing one: the time of the pause does not count as time of failures', async () => {
      const rig = await createRig(makeTable);
      await rig.create({ id: 'erp', url: URL });
      await rig.say('acme', 1);
      await wakeSinks(rig.table, { region: REGION, account: 'acme' }, 1, rig.clock.now);
      const drain = () => {
        const down = { kind: 'retry', reason: 'down' } as const;
        const port = { maxBatch: 1, deliver: async (some: readonly unknown[]) => some.map(() => down) };
        const deps = {
          ...rig.deps,
          random: () => 0.5,
          retrySeconds: [5],
          disableAfterSeconds: 172_800,
          open: async () => port,
        };
        return drainSink(deps, REGION, 'erp', rig.clock.now + 60_000);
      };
      expect(await drain()).toMatchObject({ outcome: 'waiting' });
      await pauseEndpoint(rig.deps, REGION, 'erp');
      rig.clock.now += 3 * DAY_MS;
      await resumeEndpoint(rig.deps, REGION, 'erp');
      const sink = await rig.sink();
      expect(sink && toHealthState(toSink(sink), rig.clock.now)).toMatchObject({ state: 'failing' });
      expect(await drain(), 'not disabled by its first failure').toMatchObject({ outcome: 'waiting' });
      rig.clock.now += 2 * DAY_MS;
      expect(await drain()).toMatchObject({ outcome: 'disabled' });
    });

    test.each<[how: string, act: (rig: Rig) => Promise<unknown>, isProbed: boolean]>([
      ['its URL', (rig) => updateEndpoint(rig.deps, REGION, 'erp', { url: `${URL}/2` }), true],
      ['its headers', (rig) => updateEndpoint(rig.deps, REGION, 'erp', { headers: { 'x-key': 'k' } }), true],
      ['not its description', (rig) => updateEndpoint(rig.deps, REGION, 'erp', { description: 'x' }), false],
      [
        'after a pause',
        async (rig) => {
          await pauseEndpoint(rig.deps, REGION, 'erp');
          await resumeEndpoint(rig.deps, REGION, 'erp');
        },
        true,
      ],
    ])('of a failing one that waits sends a probe at once: %s', async (_, act, isProbed) => {
      const rig = await createRig(makeTable);
      await rig.create({ id: 'erp', url: URL });
      const failing = { failures: 4, failingSince: START, lastFailedAt: START, waitUntil: START + DAY_MS };
      await rig.table.write({ update: keys.sink(REGION, 'erp'), set: failing });
      await act(rig);
      const sink = await rig.sink();
      expect(sink && isReady(toSink(sink), rig.clock.now)).toBe(isProbed);
      expect(sink, 'with a probe first').toMatchObject({ failures: 4 });
    });

    test('concurrently applies each change', async () => {
      const rig = await createRig(makeTable);
      await rig.create({ id: 'erp', url: URL });
      const outcomes = await Promise.all([
        pauseEndpoint(rig.deps, REGION, 'erp'),
        updateEndpoint(rig.deps, REGION, 'erp', { description: 'x' }),
        enableEndpoint(rig.deps, REGION, 'erp'),
      ]);
      expect(outcomes.map(({ kind }) => kind)).toEqual(['changed', 'changed', 'changed']);
      expect(await rig.read()).toMatchObject({ paused: true, description: 'x', revision: 3 });
    });

    test('is decided again if the record changed: an account added meanwhile keeps its cursor', async () => {
      const rig = await createRig(makeTable);
      await rig.say('other', 3);
      await rig.create({ id: 'erp', url: URL, accounts: ['acme'] });
      let first = true;
      const table: Table = {
        ...rig.table,
        async write(write) {
          if (first) {
            first = false;
            const change = { accounts: ['acme', 'other'], start: 'beginning' };
            await updateEndpoint(rig.deps, REGION, 'erp', change);
          }
          return rig.table.write(write);
        },
      };
      await updateEndpoint({ ...rig.deps, table }, REGION, 'erp', { accounts: ['acme', 'other'] });
      expect((await rig.cursor('other'))?.position).toBe(0);
      expect(await rig.read()).toMatchObject({ accounts: ['acme', 'other'], revision: 2 });
    });

    test('enables it: it resumes at its cursors, with a probe first, and its recovery will be emitted', async () => {
      const rig = await createRig(makeTable);
      await rig.create({ id: 'erp', url: URL });
      const before = {
        failures: 0,
        suspects: ['acme.e1.1'],
        disabledAt: START,
        disabledReason: 'It said so.',
        failingSince: START - 1,
        waitUntil: START + DAY_MS,
        announcedAt: START,
        lost: 7,
      };
      await rig.table.write({ update: keys.sink(REGION, 'erp'), set: before });
      await enableEndpoint(rig.deps, REGION, 'erp');
      const sink = await rig.sink();
      expect(sink).toMatchObject({ failures: 1, announcedAt: START, lost: 7, revision: 2 });
      expect(sink?.suspects, 'the probe is another event').toEqual(['acme.e1.1']);
      for (const name of ['disabledAt', 'disabledReason', 'failingSince', 'waitUntil']) {
        expect(sink?.[name], name).toBeUndefined();
      }
      expect((await rig.cursor('acme'))?.position).toBe(0);
      expect(await enableEndpoint(rig.deps, REGION, 'erp')).toMatchObject({ endpoint: { revision: 2 } });
    });

    test('is rejected if the configuration declares it; enabling is allowed', async () => {
      const rig = await createRig(makeTable);
      const record = {
        ...{ region: REGION, id: 'declared', kind: 'webhook' as const, target: URL },
        ...{ accounts: [], types: [], paused: false },
      };
      await registerSink(rig.table, rig.log, record, []);
      await registerSink(rig.table, rig.log, { ...record, id: 'built-in', kind: 'sns' }, []);
      const refused = {
        kind: 'conflict',
        reason:
          'The endpoint "declared" is declared in the configuration file. Change or remove it there, under "endpoints", and restart Jobwire.',
      };
      expect(await updateEndpoint(rig.deps, REGION, 'declared', {})).toEqual(refused);
      expect(await pauseEndpoint(rig.deps, REGION, 'declared')).toEqual(refused);
      expect(await deleteEndpoint(rig.deps, REGION, 'declared')).toEqual(refused);
      expect(await rotateSecret(rig.deps, REGION, 'declared')).toEqual(refused);
      await rig.table.write({ update: keys.sink(REGION, 'declared'), set: { disabledAt: START } });
      expect(await enableEndpoint(rig.deps, REGION, 'declared')).toMatchObject({
        endpoint: { managed: false, revision: 1 },
      });
      await rig.table.write({ update: keys.sink(REGION, 'built-in'), set: { disabledAt: START } });
      expect((await enableEndpoint(rig.deps, REGION, 'built-in')).kind).toBe('changed');
      expect((await rig.sink('built-in'))?.disabledAt).toBeUndefined();
      expect((await listEndpoints(rig.deps, REGION)).map(({ id }) => id)).toEqual(['declared']);
      expect(await rig.read('built-in')).toBeUndefined();
      expect((await deleteEndpoint(rig.deps, REGION, 'built-in')).kind).toBe('unknown');
    });
  });

  test('an endpoint whose entry was removed from the configuration can be deleted, but not resumed, enabled or changed', async () => {
    const rig = await createRig(makeTable);
    const deps = { ...rig.deps, isDeclared: (_: string, id: string) => id !== 'removed' };
    for (const id of ['removed', 'declared']) {
      const record = { region: REGION, id, kind: 'webhook' as const, target: URL, accounts: [], types: [] };
      await registerSink(rig.table, rig.log, { ...record, paused: true }, []);
    }
    const refused = {
      kind: 'conflict',
      reason:
        'The endpoint "removed" is no longer in the configuration file. Restore its entry there, under "endpoints", and restart Jobwire, or delete the endpoint.',
    };
    for (const change of [resumeEndpoint, enableEndpoint, pauseEndpoint]) {
      expect(await change(deps, REGION, 'removed')).toEqual(refused);
    }
    expect(await updateEndpoint(deps, REGION, 'removed', {})).toEqual(refused);
    expect(await enableEndpoint(deps, REGION, 'declared')).toMatchObject({ kind: 'changed' });
    expect(await deleteEndpoint(deps, REGION, 'declared')).toMatchObject({ kind: 'conflict' });
    expect(await deleteEndpoint(deps, REGION, 'removed')).toEqual({ kind: 'deleted' });
    expect(await rig.read('removed')).toBeUndefined();
  });

  describe('deleting an endpoint', () => {
    const full = async () => {
      const rig = await createRig(makeTable);
      await rig.create({ id: 'erp', url: URL, accounts: ['acme'] });
      await rig.table.write({ put: { ...keys.parked(REGION, 'erp', 'acme', '1', 1) } });
      await rig.table.write({ put: { ...keys.dead(REGION, 'erp', 'acme', 1) } });
      await rig.table.write({ put: { ...keys.replay(REGION, 'erp', 'r1') } });
      await rig.table.write({ put: { ...keys.replayCursor(REGION, 'erp', 'acme', 'r1') } });
      return rig;
    };

    test('deletes all of its items, and none of others', async () => {
      const rig = await full();
      await rig.create({ id: 'stays', url: URL });
      const others = await rig.everything('stays');
      expect(await deleteEndpoint(rig.deps, REGION, 'erp')).toEqual({ kind: 'deleted' });
      expect(await rig.everything()).toEqual([]);
      expect(await rig.everything('stays')).toEqual(others);
      expect(await deleteEndpoint(rig.deps, REGION, 'erp')).toEqual({
        kind: 'unknown',
        reason: 'There is no endpoint "erp".',
      });
    });

    test('deletes the record first; repeating or cleaning up deletes the rest after an interruption', async () => {
      for (const finish of ['repeat', 'tidy'] as const) {
        const crashes = await atEveryCrash(
          full,
          (deps) => deleteEndpoint(deps, REGION, 'erp'),
          async (rig, where) => {
            const there = (await rig.sink()) !== undefined;
            if (there) expect(await rig.everything(), where).toHaveLength(7);
            rig.clock.now += LATER_MS;
            if (finish === 'tidy') {
              await tidyEndpoints(rig.deps, REGION);
              expect((await rig.everything()).length, where).toBe(there ? 7 : 0);
            } else {
              await deleteEndpoint(rig.deps, REGION, 'erp');
              expect(await rig.everything(), where).toEqual([]);
            }
          },
          crashStep(kind),
        );
        expect(crashes).toBeGreaterThanOrEqual(14 / crashStep(kind));
      }
    });
  });

  describe('rotating secrets', () => {
    test('signs with both for a day, checked at each read, then with the new one only', async () => {
      const rig = await createRig(makeTable);
      const old = newSecret();
      await rig.create({ id: 'erp', url: URL, secret: old, headers: { 'X-A': 'b' } });
      const read = createSigningReader(rig.secrets, () => rig.clock.now);
      expect((await read(REGION, 'erp')).secrets).toEqual([old]);
      const rotated = await rotateSecret(rig.deps, REGION, 'erp');
      if (rotated.kind !== 'rotated') throw new Error(rotated.reason);
      expect(rotated.previousSecretsExpireAt).toBe(START + DAY_MS);
      rig.clock.now += SIGNING_MAX_AGE_MS - 1;
      expect((await read(REGION, 'erp')).secrets, 'what was read is used for a while').toEqual([old]);
      rig.clock.now += 1;
      expect((await read(REGION, 'erp')).secrets).toEqual([rotated.secret, old]);
      rig.clock.now = START + DAY_MS - 1;
      expect((await read(REGION, 'erp')).secrets).toEqual([rotated.secret, old]);
      rig.clock.now += 1;
      expect(await read(REGION, 'erp'), 'to the moment, though it was read before').toEqual({
        secrets: [rotated.secret],
        headers: { 'X-A': 'b' },
      });
    });

    test('accepts given ones; a few remain valid at most, and 0 seconds ends them all', async () => {
      const rig = await createRig(makeTable);
      await rig.create({ id: 'erp', url: URL });
      for (let turn = 0; turn < 3; turn += 1) await rotateSecret(rig.deps, REGION, 'erp');
      expect(await rotateSecret(rig.deps, REGION, 'erp')).toEqual({
        kind: 'conflict',
        reason:
          '3 former secrets of the endpoint "erp" are still valid, which is the maximum. Wait, or set gracePeriodSeconds to 0.',
      });
      expect((await rig.signing()).secrets).toHaveLength(4);
      const secret = newSecret();
      await rotateSecret(rig.deps, REGION, 'erp', { secret, gracePeriodSeconds: 0 });
      expect((await rig.signing()).secrets).toEqual([secret]);
      // Repeated after a lost answer, it changes nothing.
      await rotateSecret(rig.deps, REGION, 'erp', { secret });
      expect((await rig.signing()).secrets).toEqual([secret]);
    });

    test('that is interrupted leaves receivers with a valid old or new secret', async () => {
      const [old, next] = [newSecret(), newSecret()];
      const crashes = await atEveryCrash(
        async () => {
          const rig = await createRig(makeTable);
          await rig.create({ id: 'erp', url: URL, secret: old });
          return rig;
        },
        (deps) => rotateSecret(deps, REGION, 'erp', { secret: next }),
        async (rig, where) => {
          expect([[old], [next, old]], where).toContainEqual((await rig.signing()).secrets);
          rig.clock.now += LATER_MS;
          expect((await rotateSecret(rig.deps, REGION, 'erp', { secret: next })).kind).toBe('rotated');
          expect((await rig.signing()).secrets).toEqual([next, old]);
        },
        crashStep(kind),
      );
      expect(crashes).toBeGreaterThanOrEqual(6 / crashStep(kind));
    });
  });

  describe('endpoint health', () => {
    const health = (rig: Rig) => readEndpointHealth(rig.deps, REGION, 'erp');

    test('has a state and a message', async () => {
      const rig = await createRig(makeTable);
      expect(await health(rig)).toBeUndefined();
      await rig.create({ id: 'erp', url: URL });
      const set = (attributes: object) =>
        rig.table.write({ update: keys.sink(REGION, 'erp'), set: { ...attributes } });
      expect(await health(rig)).toMatchObject({ state: 'active', problem: null, waitUntil: null, lost: 0 });
      await set({ waitUntil: START + 5000, failingSince: START, problem: 'It answered 503.', lost: 2 });
      expect(await health(rig)).toMatchObject({
        state: 'failing',
        waitUntil: START + 5000,
        failingSince: START,
        problem: 'It answered 503.',
        lost: 2,
      });
      rig.clock.now += 6000;
      expect(await health(rig)).toMatchObject({ state: 'failing', waitUntil: null });
      await pauseEndpoint(rig.deps, REGION, 'erp');
      expect(await health(rig)).toMatchObject({ state: 'paused' });
      await set({ disabledAt: START, disabledReason: 'It said that it wants no more.' });
      expect(await health(rig)).toMatchObject({
        state: 'disabled',
        disabledAt: START,
        problem: 'It said that it wants no more.',
      });
    });

    test('has the number of waiting events, and since when', async () => {
      const rig = await createRig(makeTable);
      await rig.create({ id: 'erp', url: URL, accounts: ['acme', 'other'] });
      expect(await health(rig)).toMatchObject({
        backlog: { events: 0, oldestAt: null, accounts: [], complete: true },
        parked: { count: 0, oldestAt: null },
      });
      await rig.say('acme', 2, START - 5000);
      await rig.say('other', 3, START - 9000);
      await rig.table.write({
        update: keys.cursor(REGION, 'erp', 'other'),
        set: { position: 2 },
      });
      for (const [at, parkedAt] of [START - 5, START - 7].entries()) {
        await rig.table.write({ put: { ...keys.parked(REGION, 'erp', 'acme', '1', at + 1), parkedAt } });
      }
      await rig.table.write({ put: { ...keys.replayCursor(REGION, 'erp', 'acme', 'r'), position: 0 } });
      expect(await health(rig)).toMatchObject({
        backlog: {
          events: 3,
          oldestAt: START - 9000,
          accounts: [
            { account: 'acme', events: 2 },
            { account: 'other', events: 1 },
          ],
        },
        parked: { count: 2, oldestAt: START - 7 },
      });
    });
  });
});

describe('an invalid request is rejected with one message', () => {
  let rig: Rig;
  beforeEach(async () => {
    rig = await createRig();
    await rig.say('acme', 3);
  });
  const long = 'x'.repeat(501);
  const many = (count: number) => Array.from({ length: count }, (_, at) => `n${at}`);
  const headers = (entries: Record<string, string>) => ({ url: URL, headers: entries });

  const CASES: readonly [input: unknown, reason: string][] = [
    [null, 'The request must be an object.'],
    [{}, 'url is missing; it must be a URL.'],
    [{ url: 7 }, 'url must be a URL.'],
    ...['http://erp.example.com/', 'https://127.0.0.1/', 'https://me:pw@a.example/', 'nowhere'].map(
      (url): [unknown, string] => [{ url }, `url is not accepted. ${checkUrl(url, false)}`],
    ),
    [{ url: `https://a.example/${'x'.repeat(2000)}` }, 'url must be at most 2000 characters.'],
    [{ url: URL, colour: 'red' }, 'colour is not a known setting.'],
    [
      { url: URL, id: 'ERP' },
      'id must be 1–63 lower-case letters, digits and hyphens, beginning with a letter or digit.',
    ],
    ...['topic', 'sns', 'sns-standard', 'event-bus'].map((id): [unknown, string] => [
      { url: URL, id },
      'id must not be topic, sns-standard, sns, event-bus or notifications: built-in sinks have these names.',
    ]),
    [{ url: URL, accounts: 'acme' }, 'accounts must be a list of accounts.'],
    [{ url: URL, accounts: [] }, 'accounts must name at least one account.'],
    [{ url: URL, accounts: many(1001) }, 'accounts must name at most 1000 accounts.'],
    [
      { url: URL, accounts: ['acme', 'nobody'] },
      'accounts must contain only accounts of region us; "nobody" is not an account of this region.',
    ],
    [{ url: URL, types: [] }, 'types must name at least one type.'],
    [{ url: URL, types: ['JOB'] }, 'types[0] must be an event type, or a prefix followed by *.'],
    [
      { url: URL, types: ['job.*', 'jobs.*'] },
      'types[1] must match an existing event type (did you mean job.*?).',
    ],
    [
      { url: URL, types: ['job.creatd'] },
      'types[0] must match an existing event type (did you mean job.created?).',
    ],
    [{ url: URL, types: ['job.created', 'job.made'] }, 'types[1] must match an existing event type.'],
    [{ url: URL, orderGroups: [''] }, 'orderGroups[0] must not be empty.'],
    [{ url: URL, orderGroups: [] }, 'orderGroups must contain at least one name.'],
    [{ url: URL, orderGroups: many(201) }, 'orderGroups must contain at most 200 names.'],
    [{ url: URL, origins: [7] }, 'origins[0] must be the name of origins.'],
    [{ url: URL, origins: ['x'.repeat(201)] }, 'origins[0] must be at most 200 characters.'],
    [{ url: URL, jobFields: ['status'] }, 'jobFields must map fields of the job to values.'],
    [
      { url: URL, jobFields: { customerId: 1 } },
      'jobFields.customerId is not a job field of events; the job fields are jobNumber, status, description, orderNumber, orderGroup, orderGroupSequence, originCode, dateDue, mustDate, dateOut.',
    ],
    [
      { url: URL, jobFields: { tracking: null } },
      'jobFields.tracking is not a job field of events; the job fields are jobNumber, status, description, orderNumber, orderGroup, orderGroupSequence, originCode, dateDue, mustDate, dateOut.',
    ],
    [{ url: URL, jobFields: { mustDate: 'yes' } }, 'jobFields.mustDate must be true or false.'],
    [{ url: URL, jobFields: { jobNumber: '7' } }, 'jobFields.jobNumber must be an integer.'],
    [{ url: URL, jobFields: { orderGroupSequence: 'x' } }, 'jobFields.orderGroupSequence must be a number.'],
    [{ url: URL, jobFields: { status: 7 } }, 'jobFields.status must be text.'],
    [
      { url: URL, jobFields: { status: ['a'] } },
      'jobFields.status must be text, a number, true, false or null.',
    ],
    [{ url: URL, headers: 'a' }, 'headers must map names of headers to values.'],
    [headers({ 'X A': 'b' }), "headers.X A must contain only letters, digits and !#$%&'*+-.^_`|~."],
    [
      headers({ 'X-A': 'b\r\nX-B: c' }),
      'headers.X-A must be printable ASCII without leading or trailing spaces.',
    ],
    [
      headers({ 'X-A': 'b\u0000' }),
      'headers.X-A must be printable ASCII without leading or trailing spaces.',
    ],
    [headers({ 'X-A': 'é' }), 'headers.X-A must be printable ASCII without leading or trailing spaces.'],
    [headers({ 'X-A': 'ж' }), 'headers.X-A must be printable ASCII without leading or trailing spaces.'],
    [headers({ 'X-A': ' b' }), 'headers.X-A must be printable ASCII without leading or trailing spaces.'],
    [headers({ 'X-A': 'b', 'x-a': 'c' }), 'headers.x-a must be unique.'],
    ...[
      ...['Content-Type', 'content-length', 'Host', 'user-agent', 'accept-encoding', 'expect'],
      ...['webhook-id', 'Webhook-Anything', 'Connection', 'keep-alive', 'TE', 'trailer'],
      ...['transfer-encoding', 'upgrade', 'proxy-authorization', 'content-encoding'],
    ].map((name): [unknown, string] => [
      headers({ [name]: 'b' }),
      `headers.${name} must not be a header that Jobwire or the connection sets.`,
    ]),
    [headers({ 'X-A': 7 as unknown as string }), 'headers.X-A must be text.'],
    [
      headers(Object.fromEntries(many(21).map((name) => [name, 'v']))),
      'headers must contain at most 20 headers.',
    ],
    [headers({ 'X-A': 'v'.repeat(4096) }), 'headers must be at most 4096 bytes in total.'],
    [{ url: URL, concurrency: 0 }, 'concurrency must be an integer from 1 to 400.'],
    [{ url: URL, concurrency: 401 }, 'concurrency must be an integer from 1 to 400.'],
    [{ url: URL, concurrency: 1.5 }, 'concurrency must be an integer from 1 to 400.'],
    [{ url: URL, ratePerSecond: 0.05 }, 'ratePerSecond must be a number from 0.1 to 1000.'],
    [{ url: URL, ratePerSecond: 1001 }, 'ratePerSecond must be a number from 0.1 to 1000.'],
    [{ url: URL, ratePerSecond: 'fast' }, 'ratePerSecond must be a number from 0.1 to 1000.'],
    [
      { url: URL, secret: `whsec_${Buffer.alloc(23).toString('base64')}` },
      'secret must be "whsec_" and 24 to 64 random bytes in base64, with padding.',
    ],
    [{ url: URL, secret: 7 }, 'secret must be text that begins with whsec_.'],
    [{ url: URL, description: long }, 'description must be at most 500 characters.'],
    [{ url: URL, start: { at: 'noon' } }, 'start.at must be a timestamp such as 2026-03-02T08:00:00Z.'],
    [{ url: URL, start: { cursors: {} } }, 'start.cursors must name at least one account.'],
    ...['later', { at: '2026-03-02T07:00:00Z', cursors: {} }].map((start): [unknown, string] => [
      { url: URL, start },
      'start must be "now", "beginning", {"at": timestamp} or {"cursors": {account: cursor}}.',
    ]),
    [{ url: URL, start: { at: '2026-03-02T08:00:01Z' } }, 'start must not be in the future.'],
    [
      { url: URL, accounts: ['acme'], start: { cursors: { other: 'e1.0' } } },
      'start must contain only accounts whose events the endpoint receives; "other" is not one of them.',
    ],
    ...['e2.1', 'e1.4', 'x', ''].map((cursor): [unknown, string] => [
      { url: URL, start: { cursors: { acme: cursor } } },
      'start must have a cursor from e1.0 to e1.3 for "acme".',
    ]),
  ];

  test.each(CASES.map(([input, reason]) => [reason, input] as const))('%s', async (reason, input) => {
    const withId = typeof input === 'object' && input !== null ? { id: 'erp', ...input } : input;
    expect(await createEndpoint(rig.deps, REGION, withId)).toEqual({ kind: 'rejected', reason });
    expect(await rig.everything(), 'nothing is stored').toEqual([]);
    expect(await rig.table.get(keys.endpointLock(REGION, 'erp'))).toBeUndefined();
  });

  test('changes are validated the same way, and change nothing if rejected', async () => {
    await rig.create({ id: 'erp', url: URL });
    const before = await rig.everything();
    const refusals: readonly [object, string][] = [
      [{ url: 'https://10.0.0.1/' }, `url is not accepted. ${checkUrl('https://10.0.0.1/', false)}`],
      [{ url: null }, 'url must be a URL.'],
      [{ types: ['nothing.*'] }, 'types[0] must match an existing event type.'],
      [
        { accounts: ['nobody'] },
        'accounts must contain only accounts of region us; "nobody" is not an account of this region.',
      ],
      [{ headers: { host: 'x' } }, 'headers.host must not be a header that Jobwire or the connection sets.'],
      [{ secret: newSecret() }, 'secret is not a known setting.'],
      [{ id: 'other' }, 'id is not a known setting.'],
      [{ concurrency: 401 }, 'concurrency must be an integer from 1 to 400.'],
    ];
    for (const [change, reason] of refusals) {
      expect(await updateEndpoint(rig.deps, REGION, 'erp', change)).toEqual({ kind: 'rejected', reason });
    }
    for (const [input, reason] of [
      [{ secret: 'x' }, 'secret must be "whsec_" and 24 to 64 random bytes in base64, with padding.'],
      [
        { gracePeriodSeconds: -1 },
        'gracePeriodSeconds must be an integer number of seconds from 0 to 604800.',
      ],
    ] as const) {
      expect(await rotateSecret(rig.deps, REGION, 'erp', input)).toEqual({ kind: 'rejected', reason });
    }
    expect(await rig.everything()).toEqual(before);
  });

  test('an unknown endpoint is reported as such', async () => {
    const unknown = { kind: 'unknown', reason: 'There is no endpoint "x".' };
    expect(await updateEndpoint(rig.deps, REGION, 'x', {})).toEqual(unknown);
    for (const act of [pauseEndpoint, resumeEndpoint, enableEndpoint, deleteEndpoint]) {
      expect(await act(rig.deps, REGION, 'x')).toEqual(unknown);
    }
    expect(await rotateSecret(rig.deps, REGION, 'x')).toEqual(unknown);
    expect(await pingEndpoint(rig.deps, REGION, 'x')).toEqual(unknown);
  });

  test('a private address is accepted if private networks are allowed', async () => {
    const deps = { ...rig.deps, allowPrivateNetworks: true };
    expect((await rig.create({ url: 'http://127.0.0.1:9999/' }, deps)).kind).toBe('created');
  });
});

describe.runIf(mayUseNetwork)('a ping over a socket', () => {
  /** An endpoint with a real sink, to a receiver on loopback with configured answers. */
  async function pinged(status: number, set: object = {}) {
    const rig = await createRig();
    const receiver = await startReceiver(() => ({ status }));
    const signing = createSigningReader(rig.secrets, rig.deps.now);
    const deps: Rig['deps'] = {
      ...rig.deps,
      now: Date.now,
      allowPrivateNetworks: true,
      open: async (record) =>
        createWebhookSink({
          url: record.target,
          secrets: (await signing(record.region, record.id)).secrets,
          allowPrivateNetworks: true,
          now: Date.now,
        }),
    };
    const made = await rig.create({ id: 'erp', url: receiver.url }, deps);
    if (made.kind !== 'created') throw new Error(made.reason);
    await rig.table.write({ update: keys.sink(REGION, 'erp'), set: { ...set } });
    const before = await rig.everything();
    const report = await pingEndpoint(deps, REGION, 'erp');
    expect(await rig.everything(), 'cursors and health are left alone').toEqual(before);
    return { rig, receiver, report, secret: made.secret };
  }

  test('is a signed event, also to a paused and disabled endpoint, and is in the delivery log', async () => {
    const { rig, receiver, report, secret } = await pinged(204, { paused: true, disabledAt: START });
    expect(report).toMatchObject({ kind: 'attempted', outcome: 'delivered', logged: true });
    const [request] = receiver.requests;
    if (!request) throw new Error('nothing came');
    const headers = request.headers as Record<string, string>;
    const envelope = new Webhook(secret ?? '').verify(request.body, headers) as Record<string, unknown>;
    expect(envelope).toMatchObject({
      specversion: '1.0',
      id: expect.stringMatching(/^ping\.[0-9a-f-]{36}$/),
      source: '/regions/us',
      type: 'jobwire.ping',
      dataschema: 'https://jobwire.example/schemas/v1/jobwire.ping.json',
      data: { region: REGION, endpoint: 'erp' },
    });
    expect(headers['webhook-id']).toBe(envelope.id);
    expect(catalogue['jobwire.ping'].data().parse(envelope.data)).toEqual(envelope.data);
    const { entries } = await rig.deps.deliveries.bySink(REGION, 'erp');
    expect(entries).toMatchObject([
      { cause: 'ping', eventId: envelope.id, type: 'jobwire.ping', outcome: 'delivered' },
    ]);
  });

  test('that is rejected or unanswered is reported', async () => {
    expect((await pinged(422)).report).toMatchObject({
      outcome: 'rejected',
      message: expect.stringContaining('422'),
    });
    const { report, rig } = await pinged(503);
    expect(report).toMatchObject({ outcome: 'retry', message: expect.stringContaining('503') });
    expect((await rig.deps.deliveries.bySink(REGION, 'erp', { outcome: 'failed' })).entries).toMatchObject([
      { cause: 'ping', outcome: 'retry', reason: expect.stringContaining('503') },
    ]);
  });

  test('to an endpoint that cannot be opened, and without a delivery log, is answered too', async () => {
    const rig = await createRig();
    await rig.create({ id: 'erp', url: URL });
    const deps: EndpointDeps = {
      ...rig.deps,
      deliveries: { record: async () => Promise.reject(new Error('down')) },
      open: async (): Promise<SinkPort> => {
        throw new SecretError('erp', 'is missing.');
      },
    };
    expect(await pingEndpoint(deps, REGION, 'erp')).toEqual({
      kind: 'attempted',
      outcome: 'retry',
      status: null,
      latencyMs: 0,
      message: 'The secret erp is missing.',
      logged: false,
    });
  });
});

// Secret stores

const KEPT: EndpointSecrets = {
  secrets: [`whsec_${Buffer.alloc(24, 1).toString('base64')}`],
  retiring: [{ secret: `whsec_${Buffer.alloc(24, 2).toString('base64')}`, until: START + 1000 }],
  headers: { Authorization: 'Bearer s3cret' },
};

/** Tests of every secret store. */
function secretsSuite(make: () => Promise<SigningSecrets>): void {
  test('saved secrets are loaded, replace earlier ones, are separate for each endpoint, and can be removed', async () => {
    const store = await make();
    expect(await store.load(REGION, 'erp')).toBeUndefined();
    await store.remove(REGION, 'erp');
    await store.save(REGION, 'erp', { secrets: [newSecret()] });
    await store.save(REGION, 'erp', KEPT);
    const other = { secrets: [newSecret()] };
    await store.save('nz', 'erp', other);
    expect(await store.load(REGION, 'erp')).toEqual(KEPT);
    expect(await store.load('nz', 'erp')).toEqual(other);
    await store.remove(REGION, 'erp');
    expect(await store.load(REGION, 'erp')).toBeUndefined();
    expect(await store.load('nz', 'erp')).toEqual(other);
    // Again under a name that was just removed.
    await store.save(REGION, 'erp', KEPT);
    expect(await store.load(REGION, 'erp')).toEqual(KEPT);
  });
}

eachTable('secrets encrypted in the state table', (makeTable) => {
  const key = new Uint8Array(randomBytes(32));
  secretsSuite(async () => openLocalSigningSecrets(await makeTable(), key));

  test('are not readable there, and differ each time', async () => {
    const table = await makeTable();
    const store = await openLocalSigningSecrets(table, key);
    await store.save(REGION, 'erp', KEPT);
    const sealed = async () =>
      Buffer.from((await table.get(keys.endpointSecrets(REGION, 'erp')))?.sealed as Uint8Array).toString(
        'latin1',
      );
    const first = await sealed();
    expect(first).not.toContain('s3cret');
    expect(first).not.toContain('whsec_');
    await store.save(REGION, 'erp', KEPT);
    expect(await sealed()).not.toBe(first);
  });

  test('can be decrypted with the same key, and not with another one', async () => {
    const table = await makeTable();
    await (await openLocalSigningSecrets(table, key)).save(REGION, 'erp', KEPT);
    expect(await (await openLocalSigningSecrets(table, key)).load(REGION, 'erp')).toEqual(KEPT);
    await expect(openLocalSigningSecrets(table, new Uint8Array(randomBytes(32)))).rejects.toThrow(
      'The secret key differs from the key that encrypted the secrets of endpoints and accounts: restore the former key.',
    );
  });

  test('that were tampered with, or belong to another endpoint, are rejected', async () => {
    const table = await makeTable();
    const store = await openLocalSigningSecrets(table, key);
    await store.save(REGION, 'erp', KEPT);
    const sealed = (await table.get(keys.endpointSecrets(REGION, 'erp')))?.sealed as Uint8Array;
    await table.write({ put: { ...keys.endpointSecrets(REGION, 'mine'), sealed } });
    await expect(store.load(REGION, 'mine')).rejects.toThrow('The secret mine cannot be decrypted.');
    for (const at of [0, 13, sealed.length - 1]) {
      const broken = sealed.slice();
      broken[at] = (broken[at] ?? 0) ^ 1;
      await table.write({ put: { ...keys.endpointSecrets(REGION, 'erp'), sealed: broken } });
      await expect(store.load(REGION, 'erp'), `byte ${at}`).rejects.toThrow(SecretError);
    }
    await table.write({ put: { ...keys.endpointSecrets(REGION, 'erp'), sealed: sealed.slice(0, 5) } });
    await expect(store.load(REGION, 'erp')).rejects.toThrow(SecretError);
  });
});

test('a former secret also signs until its expiry, though the secrets are not read again', async () => {
  const store = await openLocalSigningSecrets(createMemoryTable(), new Uint8Array(32));
  await store.save(REGION, 'erp', KEPT);
  let now = START;
  const read = createSigningReader(store, () => now);
  expect((await read(REGION, 'erp')).secrets).toEqual([KEPT.secrets[0], KEPT.retiring?.[0]?.secret]);
  now += 1000;
  expect((await read(REGION, 'erp')).secrets).toEqual(KEPT.secrets);
});

test('malformed secrets fail with a message without their content', async () => {
  const table = createMemoryTable();
  const key = new Uint8Array(32);
  const texts = await openSealedTexts(table, key);
  const place = { key: keys.endpointSecrets(REGION, 'erp'), binding: `${REGION}/erp`, name: 'erp' };
  await texts.save(place, '{"secrets": ["s3cret"]}');
  await expect((await openLocalSigningSecrets(table, key)).load(REGION, 'erp')).rejects.toThrow(
    new SecretError('erp', 'is invalid: secrets.0 is missing or invalid.'),
  );
});

test('a missing secret is read again the next time, and concurrent readers share one read', async () => {
  let loads = 0;
  let kept: EndpointSecrets | undefined;
  const read = createSigningReader(
    {
      load: async () => {
        loads += 1;
        return kept;
      },
    },
    () => START,
  );
  await expect(read(REGION, 'erp')).rejects.toThrow('The secret erp is missing.');
  kept = { secrets: KEPT.secrets };
  const both = await Promise.all([read(REGION, 'erp'), read(REGION, 'erp')]);
  expect(both).toEqual([
    { secrets: KEPT.secrets, headers: {} },
    { secrets: KEPT.secrets, headers: {} },
  ]);
  expect(loads).toBe(2);
});

describe('the data folder', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'jobwire-key-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  test('contains the start time of the process that holds it', () => {
    openDataDir(folder).release();
    utimesSync(join(folder, LOCK_FILE), 0, 0);
    const held = openDataDir(folder);
    expect(Math.abs(readStartTime(folder) - performance.timeOrigin)).toBeLessThan(2);
    held.release();
  });

  test('has a key that is created once, readable only by its owner, and unchanged after a restart', () => {
    const first = openDataDir(folder);
    const key = first.secretKey();
    expect(key).toHaveLength(32);
    expect(statSync(join(folder, 'secret.key')).mode & 0o777).toBe(0o600);
    expect(existsSync(join(folder, 'secret.key.new'))).toBe(false);
    first.release();
    const second = openDataDir(folder);
    expect(Buffer.from(second.secretKey()).equals(key)).toBe(true);
    second.release();
  });

  test('may be given a key; an invalid one is rejected without being quoted', () => {
    const data = openDataDir(folder);
    const given = randomBytes(32);
    expect(Buffer.from(data.secretKey(given.toString('base64'))).equals(given)).toBe(true);
    expect(existsSync(join(folder, 'secret.key'))).toBe(false);
    expect(() => data.secretKey('c2hvcnQ=')).toThrow(
      new DataDirError('The secret key in JOBWIRE_SECRET_KEY must be 32 bytes in base64.'),
    );
    writeFileSync(join(folder, 'secret.key'), 'half');
    expect(() => data.secretKey()).toThrow(/^The secret key in .*secret\.key must be 32 bytes in base64\.$/);
    expect(readFileSync(join(folder, 'secret.key'), 'utf8')).toBe('half');
    data.release();
  });
});
