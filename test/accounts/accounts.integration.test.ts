/**
 * Accounts managed through the API: creation, changes, pause, credentials, tests, and deletion with all data.
 * One file: its tests share the rig that fills an account with all its data, and the crash at each write.
 */
import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { testAccount, testCredentials } from '../../shared/accounts/account-test.ts';
import { findAccount, registerAccount, toStatus } from '../../shared/accounts/accounts.ts';
import { createConnector, tableTokenCache } from '../../shared/accounts/connect.ts';
import { type AccountSecrets, openLocalAccountSecrets } from '../../shared/accounts/credentials.ts';
import {
  continueDeletions,
  figureKeys,
  notificationKeys,
  peoplePks,
} from '../../shared/accounts/deletion.ts';
import { withEventDefaults } from '../../shared/accounts/event-settings.ts';
import {
  type AccountDeps,
  createAccount,
  deleteAccount,
  pageAccounts,
  pauseAccount,
  readAccount,
  resumeAccount,
  rotateCredentials,
  updateAccount,
} from '../../shared/accounts/managed-accounts.ts';
import { createEndpoint, updateEndpoint } from '../../shared/delivery/endpoints.ts';
import { openLocalSigningSecrets } from '../../shared/delivery/signing-secrets.ts';
import { registerSink, toSink } from '../../shared/delivery/sink.ts';
import { wakeSinks } from '../../shared/delivery/wakes.ts';
import { epochFloor, type Head } from '../../shared/log/head.ts';
import { createEventLog } from '../../shared/log/log.ts';
import { syncOwnUser } from '../../shared/notifications/own-user.ts';
import { createRecipient } from '../../shared/notifications/recipients.ts';
import { saveSettings, unfollowAccount } from '../../shared/notifications/settings.ts';
import { suppress } from '../../shared/notifications/suppressions.ts';
import { NOTIFICATIONS_SINK } from '../../shared/notifications/types.ts';
import { removeItemEntries } from '../../shared/search/indexing.ts';
import { SecretError } from '../../shared/secrets.ts';
import {
  type AccountRef,
  accountPk,
  cellLog,
  cursorPk,
  deadPk,
  FEED_LOG,
  groupPk,
  historySchema,
  indexPk,
  keys,
  logPk,
  parkedPk,
  sentPk,
  snapshotPk,
} from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import type { Item, Table } from '../../shared/storage/table.ts';
import { claimDue, duePolls } from '../../shared/tracking/claims.ts';
import { confirmAccount, pageAccountsWithStatus, renewLogs } from '../../shared/tracking/operator.ts';
import { pollAccount } from '../../shared/tracking/poll.ts';
import type { PollDeps } from '../../shared/tracking/poll-context.ts';
import { atEveryCrash, dying } from '../support/crashes.ts';
import { moved } from '../support/delivery-world.ts';
import { readEndpoint } from '../support/endpoints.ts';
import { startSandbox } from '../support/jobwire.ts';
import { crashStep, eachTable } from '../support/tables.ts';
import { createRig as createTracker, type TableCall, watchedTable } from '../support/tracker.ts';

const START = Date.parse('2026-03-02T08:00:00Z');
const GIVEN = { clientId: 'client-7', clientSecret: 's3cret-of-acme' };
const OTHERS = { clientId: 'client-8', clientSecret: 's3cret-of-others' };
const ACME: AccountRef = { region: 'us', account: 'acme' };
/** Its id begins with the other's. */
const ACME_2: AccountRef = { region: 'us', account: 'acme-2' };
/** When the id of an account that was deleted is free again, and any lock has ended. */
const LATER_MS = 400_000;

async function createRig(makeTable: () => Promise<Table> = async () => createMemoryTable()) {
  const clock = { now: START };
  const now = () => clock.now;
  const table = await makeTable();
  const history = createMemoryTable(historySchema);
  const log = createEventLog(table, { now, newId: randomUUID, schemaBaseUrl: 'https://jobwire.example' });
  const secrets = await openLocalAccountSecrets(table, new Uint8Array(32).fill(7));
  const deps: AccountDeps = {
    ...{ table, history, log, now, newId: randomUUID, secrets },
    removeReferences: async () => true,
    unfollowNotifications: unfollowAccount,
    removeSearchEntries: removeItemEntries,
    regions: ['us', 'uk'],
    minIntervalSeconds: 60,
  };
  return {
    ...{ clock, table, history, log, secrets, deps },
    create: (id = 'acme', over: AccountDeps = deps, more: object = {}) =>
      createAccount(over, { id, region: 'us', credentials: GIVEN, ...more }),
    stored: async (ref = ACME) => findAccount(table, [ref.region], ref.account),
    status: async (ref = ACME) => toStatus((await table.get(keys.status(ref))) as Item),
    due: async () =>
      (await duePolls(table, 'us', { now: clock.now, limit: 10 })).map(({ account }) => account),
  };
}
type Rig = Awaited<ReturnType<typeof createRig>>;

/** All items of an account, except its deletion marker. */
async function readAllItems(table: Table, ref: AccountRef): Promise<Item[]> {
  const { region, account } = ref;
  const single = [keys.account, keys.status, keys.token, keys.wake, keys.credentials].map((of) => of(ref));
  const whole = [...peoplePks(ref), ...[indexPk, snapshotPk, groupPk, logPk].map((of) => of(ref))];
  const sinks = [FEED_LOG, ...(await table.query({ pk: keys.sink(region, '').pk })).map(({ sk }) => sk)];
  const shared = sinks.flatMap((sink) => [cursorPk, parkedPk, deadPk].map((of) => of(region, sink)));
  const found = await Promise.all([
    table.getMany(single),
    table.getMany([...figureKeys(ref, START), ...notificationKeys(ref, START)]),
    ...whole.map((pk) => table.query({ pk })),
    ...shared.map(async (pk) => (await table.query({ pk })).filter(({ sk }) => sk.split('#')[0] === account)),
  ]);
  return found.flat();
}

/** Number of events that take several pages to delete. */
const MANY_EVENTS = 230;

/** An account with data of every kind, and a sink that follows all accounts. */
async function fill({ table, log }: Pick<Rig, 'table' | 'log'>, ref: AccountRef, events = 5): Promise<void> {
  const { region, account } = ref;
  const sink = { region, id: 'erp', kind: 'webhook', target: 'https://erp.example.com/' } as const;
  await registerSink(table, log, { ...sink, accounts: [], types: [], paused: false }, []);
  for (let n = 0; n < events; n += 46) {
    await log.append(
      ref,
      Array.from({ length: Math.min(46, events - n) }, (_, at) => moved(n + at + 1, 'x')),
    );
  }
  await wakeSinks(table, ref, events, START);
  await log.append(ref, [moved(1, 'y')]);
  for (const key of [
    ...figureKeys(ref, START).slice(0, 6),
    keys.token(ref),
    keys.shard(ref, 1),
    keys.pendingGroup(ref, 'g'),
    keys.snapshot(ref, 1),
    keys.snapshot(ref, 2),
    keys.group(ref, 'g'),
    keys.replayCursor(region, 'erp', account, 'rp-1'),
    keys.parked(region, 'erp', account, '1', 1),
    keys.dead(region, 'erp', account, 2),
    keys.thread(ref, '#1'),
    keys.message(ref, 'm1'),
    keys.template(ref, 'dispatched', 'email', 'de'),
    keys.smsUse(ref, '2026-03'),
    keys.smsUse(ref, '2025-12'),
  ]) {
    await table.write({ put: { ...key, text: 'x' } });
  }
}

/** Dependencies with a log in their own table. */
const withLog = (deps: AccountDeps): AccountDeps => ({
  ...deps,
  log: createEventLog(deps.table, { now: deps.now, newId: randomUUID, schemaBaseUrl: '' }),
});

eachTable('accounts', (makeTable, kind) => {
  describe('creating an account', () => {
    test('stores credentials that are never returned; the first poll is due at once', async () => {
      const rig = await createRig(makeTable);
      const made = await rig.create();
      expect(made).toEqual({
        kind: 'created',
        account: {
          ...{ id: 'acme', region: 'us', managed: true, secretRef: null },
          ...{ pollIntervalSeconds: 120, paused: false, move: null, revision: 1 },
          ...{ events: withEventDefaults({}) },
          ...{ createdAt: '2026-03-02T08:00:00.000Z', changedAt: '2026-03-02T08:00:00.000Z' },
        },
        warnings: [],
      });
      expect(await rig.due()).toEqual(['acme']);
      const kept = await rig.table.get(keys.account(ACME));
      expect(await rig.secrets.read(String(kept?.secretRef))).toMatchObject(GIVEN);
      const sealed = (await rig.table.get(keys.credentials(ACME)))?.sealed as Uint8Array;
      expect(Buffer.from(sealed).toString('latin1')).not.toContain('s3cret');
      expect(await rig.log.head(cellLog('us'))).toMatchObject({ sequence: 0 });
      expect(await readAccount(rig.deps, ACME)).toEqual(made.kind === 'created' && made.account);
    });

    test('can start paused: then it is not due before it is resumed', async () => {
      const rig = await createRig(makeTable);
      await rig.create('acme', rig.deps, { paused: true });
      expect(await rig.due()).toEqual([]);
      await resumeAccount(rig.deps, ACME);
      expect(await rig.due()).toEqual(['acme']);
    });

    test("succeeds once in all regions, also concurrently: the winner's credentials are stored", async () => {
      const rig = await createRig(makeTable);
      let saves = 0;
      // The first to save finishes last.
      const secrets: AccountSecrets = {
        ...rig.secrets,
        async save(...args) {
          const ticks = 40 - 10 * saves++;
          for (let tick = 0; tick < ticks; tick += 1) await new Promise((resolve) => setImmediate(resolve));
          return rig.secrets.save(...args);
        },
      };
      const slow = { ...rig.deps, secrets };
      const tries = await Promise.all(
        Array.from({ length: 5 }, async (_, at) => {
          const clientSecret = `s3cret-${at}`;
          const made = await rig.create('acme', slow, { credentials: { clientId: 'c', clientSecret } });
          return { made: made.kind, clientSecret };
        }),
      );
      const [winner, ...others] = tries.filter(({ made }) => made === 'created');
      expect(others).toEqual([]);
      expect(tries.filter(({ made }) => made === 'conflict')).toHaveLength(4);
      expect(await rig.secrets.read('kept:us/acme')).toMatchObject({ clientSecret: winner?.clientSecret });
      expect(await rig.create('acme', rig.deps, { region: 'uk' })).toEqual({
        kind: 'conflict',
        reason: 'id must be new: an account "acme" already exists.',
      });
    });

    test('succeeds in one region only, also concurrently', async () => {
      const rig = await createRig(makeTable);
      const made = await Promise.all(['us', 'uk'].map((region) => rig.create('acme', rig.deps, { region })));
      expect(made.map(({ kind }) => kind).sort()).toEqual(['conflict', 'created']);
    });

    test('returns the account that an interrupted request with the same Idempotency-Key has created', async () => {
      const rig = await createRig(makeTable);
      const input = { id: 'acme', region: 'us', credentials: GIVEN };
      const request = () => ({ newId: () => 'creation' });
      const made = await createAccount(rig.deps, input, request());
      expect(made).toMatchObject({ kind: 'created', warnings: [] });
      expect(await createAccount(rig.deps, input, request())).toEqual(made);
      expect(await createAccount(rig.deps, input)).toMatchObject({ kind: 'conflict' });
    });

    test('is atomic wherever it is interrupted, and can be repeated', async () => {
      const crashes = await atEveryCrash(
        () => createRig(makeTable),
        (deps) => createAccount(withLog(deps), { id: 'acme', region: 'us', credentials: GIVEN }),
        async (rig, where) => {
          const there = await readAccount(rig.deps, ACME);
          const parts = await rig.table.getMany([keys.account(ACME), keys.status(ACME), keys.head(ACME)]);
          expect(parts, where).toHaveLength(there ? 3 : 0);
          if (there) {
            expect(await rig.secrets.read('kept:us/acme'), where).toMatchObject(GIVEN);
            return;
          }
          rig.clock.now += LATER_MS;
          const again = await rig.create('acme', rig.deps, { credentials: OTHERS });
          expect(again, where).toMatchObject({ kind: 'created' });
          expect(await rig.secrets.read('kept:us/acme'), where).toMatchObject(OTHERS);
        },
        crashStep(kind),
      );
      expect(crashes).toBeGreaterThanOrEqual(8 / crashStep(kind));
    });
  });

  describe('changing an account', () => {
    test('can be conditional on its revision; each change counts', async () => {
      const rig = await createRig(makeTable);
      await rig.create();
      expect(
        await updateAccount(rig.deps, ACME, { pollIntervalSeconds: 300 }, { revision: 1 }),
      ).toMatchObject({
        account: { pollIntervalSeconds: 300, revision: 2 },
      });
      const reason = 'The account "acme" was modified. Fetch it again and retry.';
      const stale = { kind: 'conflict', why: 'changed', reason };
      const revision = { revision: 1 };
      expect(await updateAccount(rig.deps, ACME, { pollIntervalSeconds: 60 }, revision)).toEqual(stale);
      expect(await pauseAccount(rig.deps, ACME, revision)).toEqual(stale);
      expect(await rotateCredentials(rig.deps, ACME, OTHERS, revision)).toEqual(stale);
      expect(await deleteAccount(rig.deps, ACME, revision)).toEqual(stale);
      expect(await rig.secrets.read('kept:us/acme')).toMatchObject(GIVEN);
      const same = await updateAccount(rig.deps, ACME, { pollIntervalSeconds: 300 });
      expect(same, 'nothing to change').toMatchObject({ account: { revision: 2 } });
    });

    test('changes only the given event settings', async () => {
      const rig = await createRig(makeTable);
      const events = { dueSoonHours: 48, attentionStatuses: ['Awaiting artwork'] };
      await rig.create('acme', rig.deps, { events });
      expect(await readAccount(rig.deps, ACME)).toMatchObject({ events: withEventDefaults(events) });
      const change = { stalledAfterWorkingDays: 5, stalledByStatus: { 'On hold': null }, payments: true };
      await updateAccount(rig.deps, ACME, { events: change });
      expect(await readAccount(rig.deps, ACME)).toMatchObject({ events: { ...events, ...change } });
      expect(await rig.stored()).toMatchObject({ events: { ...events, ...change } });
      await updateAccount(rig.deps, ACME, { pollIntervalSeconds: 300 });
      expect(await readAccount(rig.deps, ACME)).toMatchObject({ events: { ...events, ...change } });
      await updateAccount(rig.deps, ACME, { events: withEventDefaults({}) });
      expect(await rig.stored()).not.toHaveProperty('events');
    });

    test('event settings of a declared account are those of the configuration file', async () => {
      const rig = await createRig(makeTable);
      const account = { ...ACME, secretRef: 'acme', pollIntervalSeconds: 60, paused: false };
      const events = withEventDefaults({ dueSoonHours: 24 });
      await registerAccount(rig.table, rig.log, { ...account, events }, { now: START, epoch: 'e1' });
      expect(await rig.stored()).toEqual({ ...account, events });
      await registerAccount(rig.table, rig.log, account, { now: START, epoch: 'e1' });
      expect(await rig.stored()).toEqual(account);
    });

    test('to a shorter interval: the next poll follows the new interval', async () => {
      const rig = await createRig(makeTable);
      await rig.create('acme', rig.deps, { pollIntervalSeconds: 86_400 });
      const far = START + 80_000_000;
      await rig.table.write({ update: keys.status(ACME), set: { nextPollAt: far } });
      await updateAccount(rig.deps, ACME, { pollIntervalSeconds: 120 });
      expect((await rig.status()).nextPollAt).toBeLessThanOrEqual(START + 120_000);
    });

    test('to a shorter interval during a poll: that poll cannot schedule the next one by the former interval', async () => {
      const rig = await createRig(makeTable);
      await rig.create('acme', rig.deps, { pollIntervalSeconds: 86_400 });
      const { revision } = await rig.status();
      expect(await claimDue(rig.table, 'us', { now: START, limit: 1, claimSeconds: 300 })).toHaveLength(1);
      await updateAccount(rig.deps, ACME, { pollIntervalSeconds: 120 });
      const status = await rig.status();
      expect(status.revision).toBeGreaterThan(revision);
      expect(status.nextPollAt).toBeLessThanOrEqual(START + 120_000);
    });

    test('is rejected if the configuration declares it, with the place in the message', async () => {
      const rig = await createRig(makeTable);
      const account = { ...ACME, secretRef: 'acme', pollIntervalSeconds: 60, paused: false };
      await registerAccount(rig.table, rig.log, account, { now: START, epoch: 'e1' });
      const deps: AccountDeps = { ...rig.deps, isDeclared: ({ account: id }) => id === 'acme' };
      expect(await readAccount(deps, ACME)).toMatchObject({ managed: false, secretRef: null });
      const rejection = {
        kind: 'conflict',
        reason:
          'The account "acme" is declared in the configuration file. Change or remove it there, under "accounts", and restart Jobwire.',
      };
      for (const act of [pauseAccount, resumeAccount, deleteAccount]) {
        expect(await act(deps, ACME), act.name).toEqual(rejection);
      }
      expect(await updateAccount(deps, ACME, { pollIntervalSeconds: 120 })).toEqual(rejection);
      expect(await rotateCredentials(deps, ACME, GIVEN)).toEqual(rejection);
      await expect(rig.secrets.read('kept:us/acme')).rejects.toThrow('is missing');
    });
  });

  describe('listing accounts', () => {
    test('by page, over all regions, those that the key may read, with their state', async () => {
      const rig = await createRig(makeTable);
      for (const id of ['a', 'b', 'c']) await rig.create(id);
      await rig.create('d', rig.deps, { region: 'uk' });
      const ids = async (query: object) => {
        const page = await pageAccounts(rig.deps, query);
        return page.kind === 'page' ? [page.accounts.map(({ id }) => id), page.next] : page;
      };
      expect(await ids({ limit: 3 })).toEqual([['d', 'a', 'b'], 'us/b']);
      expect(await ids({ limit: 3, after: 'us/b' })).toEqual([['c'], null]);
      expect(await ids({ limit: 4 })).toEqual([['d', 'a', 'b', 'c'], null]);
      expect(await ids({ region: 'uk' })).toEqual([['d'], null]);
      expect(await ids({ only: ['c', 'd', 'a', 'nobody'], limit: 2 })).toEqual([['d', 'a'], 'us/a']);
      expect(await ids({ only: ['c', 'd', 'a'], after: 'us/a' })).toEqual([['c'], null]);
      expect(await ids({ after: 'x' })).toMatchObject({ kind: 'rejected' });
      const page = await pageAccountsWithStatus(rig.deps, { region: 'us' });
      const head = await rig.log.head({ region: 'us', account: 'b' });
      expect(page).toMatchObject({
        accounts: [{}, { id: 'b', status: { state: 'baselining', head: `${head?.epoch}.0` } }, {}],
      });
    });
  });

  describe('deleting an account', () => {
    test('deletes all of its items and none of others; an endpoint that names it continues', async () => {
      const rig = await createRig(makeTable);
      for (const ref of [ACME, ACME_2]) {
        await rig.create(ref.account);
        await fill(rig, ref, ref === ACME ? MANY_EVENTS : undefined);
        await saveSettings(rig.deps, ref, { enabled: true, ownUser: true, branding: { name: 'Acme' } });
        await createRecipient(rig.deps, ref, { email: 'ann@example.com', orderGroup: 'G' });
        await suppress(rig.deps, ref, { channel: 'email', address: 'ann@example.com' }, 'unsubscribed');
      }
      for (const ref of [ACME, ACME_2]) {
        const messages = Array.from({ length: MANY_EVENTS }, (_, at) => ({
          ...keys.sentMessage(ref, `m${at}`),
        }));
        await rig.history.putMany(messages);
      }
      const getSent = async (ref: AccountRef) => (await rig.history.query({ pk: sentPk(ref) })).length;
      const told = async () =>
        toSink((await rig.table.get(keys.sink('us', NOTIFICATIONS_SINK))) as Item).accounts;
      expect(await told()).toEqual(['acme', 'acme-2']);
      const others = await readAllItems(rig.table, ACME_2);
      const endpoints = {
        ...rig.deps,
        secrets: await openLocalSigningSecrets(rig.table, new Uint8Array(32).fill(7)),
        allowPrivateNetworks: false,
        schemaBaseUrl: '',
        deliveries: { record: async () => {} },
        open: async () => ({ maxBatch: 1, deliver: async () => [] }),
      } as unknown as Parameters<typeof createEndpoint>[0];
      const input = { id: 'shop', url: 'https://shop.example.com/', accounts: ['acme', 'acme-2'] };
      expect(await createEndpoint(endpoints, 'us', input)).toMatchObject({ kind: 'created' });
      expect((await readAllItems(rig.table, ACME)).length).toBeGreaterThan(240);

      expect(await deleteAccount(rig.deps, ACME)).toEqual({ kind: 'deleted', complete: true });
      expect(await readAllItems(rig.table, ACME)).toEqual([]);
      expect([await getSent(ACME), await getSent(ACME_2)]).toEqual([0, MANY_EVENTS]);
      expect(await rig.due()).toEqual(['acme-2']);
      expect(await told()).toEqual(['acme-2']);
      expect(await rig.table.query({ pk: accountPk('us') })).toHaveLength(1);
      const left = await readAllItems(rig.table, ACME_2);
      expect(left.filter(({ pk }) => !pk.endsWith('#shop'))).toEqual(others);

      expect(await readEndpoint(endpoints, 'us', 'shop')).toMatchObject({ accounts: ['acme', 'acme-2'] });
      expect(await updateEndpoint(endpoints, 'us', 'shop', { description: 'x' })).toMatchObject({
        kind: 'changed',
      });
      const unknown = { kind: 'unknown', reason: 'There is no account "acme".' };
      expect(await deleteAccount(rig.deps, ACME), 'again').toEqual(unknown);
      expect(await pauseAccount(rig.deps, ACME)).toEqual(unknown);
      expect(await confirmAccount(rig.deps, ACME)).toEqual({ kind: 'unknown account' });
    });

    test('removes stored credentials when the account names others, and with the account if that failed', async () => {
      const rig = await createRig(makeTable);
      const dying = async () => Promise.reject(new Error('The process ended.'));
      const secrets: AccountSecrets = { ...rig.secrets, checkSecretRef: () => undefined };
      const deps = { ...rig.deps, secrets };
      const mortal = { ...deps, secrets: { ...secrets, remove: dying } };
      const stored = (ref: AccountRef) => rig.table.get(keys.credentials(ref));
      for (const { account } of [ACME, ACME_2]) await rig.create(account, deps);
      await updateAccount(deps, ACME_2, { secretRef: 'elsewhere' });
      expect(await stored(ACME_2), 'they are no longer read').toBeUndefined();
      expect(await readAccount(deps, ACME_2)).toMatchObject({ secretRef: 'elsewhere' });
      await expect(updateAccount(mortal, ACME, { secretRef: 'elsewhere' })).rejects.toThrow('ended');
      expect(await stored(ACME)).toBeDefined();
      await deleteAccount(deps, ACME);
      expect(await stored(ACME)).toBeUndefined();
    });

    test('in steps if time is short; repetition or ticks continue it', async () => {
      const rig = await createRig(makeTable);
      await rig.create();
      await fill(rig, ACME);
      let calls = 0;
      // The deadline passes after a number of clock reads.
      const hasty = { ...rig.deps, now: () => rig.clock.now + (calls++ > 5 ? 1000 : 0) };
      expect(await deleteAccount(hasty, ACME, {}, 1000)).toEqual({ kind: 'deleted', complete: false });
      expect(await readAccount(rig.deps, ACME)).toBeUndefined();
      expect((await readAllItems(rig.table, ACME)).length).toBeGreaterThan(0);
      expect(await rig.create()).toMatchObject({ kind: 'conflict' });
      calls = 0;
      await continueDeletions(rig.deps, 'us', rig.clock.now + 1000);
      expect(await readAllItems(rig.table, ACME)).toEqual([]);
    });

    test('completes wherever it is interrupted: by repetition, or by the next tick', async () => {
      for (const goOn of kind === 'in memory' ? (['again', 'tick'] as const) : (['tick'] as const)) {
        const crashes = await atEveryCrash(
          async () => {
            const rig = await createRig(makeTable);
            await rig.create();
            const { region, account } = ACME;
            const sink = { region, id: 'erp', kind: 'webhook', target: 'x', accounts: [] } as const;
            await registerSink(rig.table, rig.log, { ...sink, types: [], paused: false }, [ACME]);
            await rig.log.append(ACME, [moved(1, 'x')]);
            await rig.table.write({ put: { ...keys.parked(region, 'erp', account, '1', 1), x: 1 } });
            await rig.table.write({ put: { ...keys.token(ACME), x: 1 } });
            return rig;
          },
          (deps) => deleteAccount(withLog(deps), ACME),
          async (rig, where) => {
            const begun = (await readAccount(rig.deps, ACME)) === undefined;
            if (!begun) expect((await readAllItems(rig.table, ACME)).length, where).toBeGreaterThan(5);
            rig.clock.now += LATER_MS;
            if (goOn === 'again' || !begun) await deleteAccount(rig.deps, ACME);
            else await continueDeletions(rig.deps, 'us', rig.clock.now + 10_000);
            expect(await readAllItems(rig.table, ACME), where).toEqual([]);
            rig.clock.now += LATER_MS;
            expect(await rig.create(), where).toMatchObject({ kind: 'created' });
          },
          crashStep(kind),
        );
        expect(crashes).toBeGreaterThanOrEqual(16 / crashStep(kind));
      }
    }, 60_000);

    test('is not undone by concurrent work; the id can be reused later, with a new epoch, and its events are delivered', async () => {
      const rig = await createRig(makeTable);
      await rig.create();
      await fill(rig, ACME);
      const former = await rig.log.head(ACME);
      const cursor = await rig.table.get(keys.cursor('us', 'erp', 'acme'));
      expect(await deleteAccount(rig.deps, ACME)).toMatchObject({ complete: true });
      expect(await readAllItems(rig.table, ACME)).toEqual([]);
      // A token requested before; a drain and a wake-up after their reads.
      await tableTokenCache(rig.table, ACME, 'v1').save({ value: 'token', expiresAt: START + 1e6 });
      await rig.table.write({ put: { ...keys.parked('us', 'erp', 'acme', '1', 9), text: 'late' } });
      await rig.table.write({ put: { ...(cursor as Item), position: 200 } });
      expect(await rig.create()).toEqual({
        kind: 'conflict',
        reason:
          'id must be new: the account "acme" was just deleted, and the id can be used again at 2026-03-02T08:06:00.000Z.',
      });
      rig.clock.now = START + 360_000;
      expect(await rig.create()).toMatchObject({ kind: 'created' });
      expect(await rig.table.query({ pk: parkedPk('us', 'erp') })).toEqual([]);
      expect(await rig.table.get(keys.token(ACME))).toBeUndefined();
      const head = await rig.log.head(ACME);
      expect(head?.sequence).toBe(0);
      expect(String(head?.epoch) > String(former?.epoch)).toBe(true);
      // A late stream record of the former log.
      await wakeSinks(rig.table, ACME, 231, rig.clock.now);
      await rig.log.append(ACME, [moved(1, 'z')]);
      await wakeSinks(rig.table, ACME, 1, rig.clock.now);
      const place = await rig.table.get(keys.cursor('us', 'erp', 'acme'));
      expect(place).toMatchObject({ mark: 1, duePk: expect.any(String) });
      expect(Number(place?.position ?? 0)).toBe(0);
    });

    test('also deletes its position in the cell feed, which a new account starts again', async () => {
      const rig = await createRig(makeTable);
      await rig.create();
      await fill(rig, ACME);
      expect(await rig.table.query({ pk: cursorPk('us', FEED_LOG) })).toHaveLength(1);
      await deleteAccount(rig.deps, ACME);
      expect(await rig.table.query({ pk: cursorPk('us', FEED_LOG) })).toEqual([]);
      rig.clock.now += LATER_MS;
      await rig.create();
      // A backup of this time is restored with its own log only.
      rig.clock.now += LATER_MS;
      const restored = { leastEpoch: epochFloor(rig.clock.now) };
      const options = { now: rig.deps.now, newId: randomUUID, schemaBaseUrl: '', ...restored };
      await renewLogs({ ...rig.deps, log: createEventLog(rig.table, options) }, 'us');
      expect(await rig.log.head(ACME)).toMatchObject({ sequence: 1 });
    });

    test('is not repeated on a new account with its id by a request that requires its revision', async () => {
      const rig = await createRig(makeTable);
      await rig.create();
      await deleteAccount(rig.deps, ACME, { revision: 1 });
      rig.clock.now += LATER_MS;
      expect(await rig.create()).toMatchObject({ kind: 'created', account: { revision: 2 } });
      expect(await deleteAccount(rig.deps, ACME, { revision: 1 })).toMatchObject({ why: 'changed' });
      expect(await readAccount(rig.deps, ACME)).toMatchObject({ revision: 2 });
    });

    test('fences a late poll of it in a new account with its id', async () => {
      const rig = await createRig(makeTable);
      await rig.create();
      const held = {
        revision: (await rig.status()).revision,
        head: (await rig.log.head(ACME)) as Head,
        events: [moved(1, 'x')],
        writes: [],
      };
      await deleteAccount(rig.deps, ACME);
      rig.clock.now += LATER_MS;
      expect(await rig.create()).toMatchObject({ kind: 'created' });
      expect(await rig.log.commit(ACME, held)).toEqual({ kind: 'fenced' });
      expect(await rig.log.commit(ACME, { ...held, events: [] })).toEqual({ kind: 'fenced' });
      expect(await rig.log.head(ACME)).toMatchObject({ sequence: 0 });
    });

    test('that was interrupted early frees the id only when no process can still find a cursor', async () => {
      const rig = await createRig(makeTable);
      await rig.create();
      await fill(rig, ACME);
      const mortal = dying(rig.deps, 2, 'before');
      await deleteAccount(withLog(mortal.deps), ACME).catch(() => undefined);
      expect(await readAccount(rig.deps, ACME)).toBeUndefined();
      // Its cursors exist all the time, and drains read them.
      rig.clock.now += LATER_MS;
      const cursor = await rig.table.get(keys.cursor('us', 'erp', 'acme'));
      expect(cursor).toBeDefined();
      expect(await rig.create()).toMatchObject({ kind: 'conflict' });
      await rig.table.write({ put: { ...(cursor as Item), position: 231 } });
      rig.clock.now += LATER_MS;
      expect(await rig.create()).toMatchObject({ kind: 'created' });
      expect(await rig.table.get(keys.cursor('us', 'erp', 'acme'))).toBeUndefined();
    });

    test('is independent: one that fails does not prevent others', async () => {
      const rig = await createRig(makeTable);
      for (const { account } of [ACME, ACME_2]) await rig.create(account);
      const secrets: AccountSecrets = {
        ...rig.secrets,
        async remove(region, account) {
          if (account === 'acme') throw new SecretError(account, 'cannot be removed.');
          await rig.secrets.remove(region, account);
        },
      };
      const deps = { ...rig.deps, secrets };
      await expect(deleteAccount(deps, ACME)).rejects.toThrow(SecretError);
      expect(await deleteAccount(deps, ACME_2)).toEqual({ kind: 'deleted', complete: true });
      rig.clock.now += LATER_MS;
      await expect(continueDeletions(deps, 'us', rig.clock.now + 10_000)).rejects.toThrow(SecretError);
      expect(await rig.table.get(keys.deletion(ACME_2)), 'its id is free').toBeUndefined();
    });

    test('prevents a late wake-up from creating a cursor', async () => {
      const rig = await createRig(makeTable);
      await rig.create();
      await fill(rig, ACME);
      await deleteAccount(rig.deps, ACME);
      expect(await wakeSinks(rig.table, ACME, 231, START)).toEqual([]);
      expect(await readAllItems(rig.table, ACME)).toEqual([]);
    });
  });

  // The order of calls matters here, and it is the same on both.
  if (kind === 'on DynamoDB') return;

  describe('concurrent with a poll', () => {
    /** Polls once with an action before its n-th table call; false if it made fewer. */
    async function during(at: number, act: (deps: AccountDeps) => Promise<unknown>) {
      const tracker = await createTracker();
      for (let n = 0; n < 3; n += 1) tracker.upstream.createJob({ status: 'Scheduled' });
      await tracker.poll();
      tracker.upstream.createJob({ status: 'Scheduled' });
      const deps: AccountDeps = {
        ...{ table: tracker.table, log: tracker.log, now: tracker.now, newId: randomUUID },
        history: createMemoryTable(historySchema),
        secrets: await openLocalAccountSecrets(tracker.table, new Uint8Array(32).fill(7)),
        removeReferences: async () => true,
        unfollowNotifications: unfollowAccount,
        removeSearchEntries: removeItemEntries,
        regions: ['us'],
        minIntervalSeconds: 1,
      };
      tracker.pass(60);
      let calls = 0;
      let done = false;
      const hook = async (_: TableCall): Promise<void> => {
        if (calls++ !== at) return;
        done = true;
        await act(deps);
      };
      const watched = watchedTable(tracker.table, { before: hook });
      const polling = tracker.depsOver(watched);
      /** Whether the poll used the credentials that were new when it started. */
      let knows = false;
      const connect: PollDeps['connect'] = (account) => {
        knows = account.credentialsAt !== undefined;
        return polling.connect(account);
      };
      await pollAccount({ ...polling, connect }, tracker.ref, tracker.now() + 600_000);
      return { tracker, deps, done, knows };
    }

    test('a pause remains effective at any point of the poll: the account is not scheduled', async () => {
      for (let at = 0; ; at += 1) {
        const { tracker, done } = await during(at, (deps) => pauseAccount(deps, ACME));
        if (!done) {
          expect(at).toBeGreaterThan(6);
          break;
        }
        const status = await tracker.table.get(keys.status(ACME));
        expect([at, status?.duePk, status?.dueSk]).toEqual([at, undefined, undefined]);
      }
    });

    test('a deletion leaves nothing, at any point of the poll', async () => {
      for (let at = 0; ; at += 1) {
        const { tracker, done } = await during(at, (deps) => deleteAccount(deps, ACME));
        if (!done) break;
        expect([at, await readAllItems(tracker.table, ACME)]).toEqual([at, []]);
      }
    });

    test('new credentials are tried at once, for any result of the poll with the former ones', async () => {
      for (let at = 0; ; at += 1) {
        const { tracker, deps, done, knows } = await during(at, (over) =>
          rotateCredentials(over, ACME, OTHERS),
        );
        if (!done) break;
        const due = await duePolls(deps.table, 'us', { now: tracker.now(), limit: 10 });
        expect([at, knows || due.length === 1]).toEqual([at, true]);
      }
    });
  });
});

const REFUSED: readonly (readonly [string, object, string])[] = [
  [
    'an invalid id',
    { id: '_cell' },
    'id must be 1–63 lower-case letters, digits and hyphens, beginning with a letter or digit.',
  ],
  [
    'no region, although there are two',
    { region: undefined },
    'region is missing; it must be one of the regions that are served here (uk, us).',
  ],
  ['an unknown region', { region: 'x' }, 'region must be one of the regions that are served here (uk, us).'],
  [
    'a poll interval that is too short',
    { pollIntervalSeconds: 59 },
    'pollIntervalSeconds must be an integer number of seconds from 60 to 86400.',
  ],
  [
    'a poll interval that is too long',
    { pollIntervalSeconds: 86_401 },
    'pollIntervalSeconds must be an integer number of seconds from 1 to 86400.',
  ],
  [
    'a lead time of 0 hours',
    { events: { dueSoonHours: 0 } },
    'events.dueSoonHours must be an integer number of hours from 1 to 1440, or null.',
  ],
  [
    'a status name with a space at its end',
    { events: { attentionStatuses: ['On hold '] } },
    'events.attentionStatuses[0] must be a status name of 1 to 200 characters, without spaces around it.',
  ],
  [
    'a duplicate status',
    { events: { attentionStatuses: ['On hold', 'On hold'] } },
    'events.attentionStatuses must name each status once.',
  ],
  [
    'neither credentials nor a reference',
    { credentials: undefined },
    'The request must contain either credentials or a secretRef.',
  ],
  ['both of them', { secretRef: 'x' }, 'The request must contain either credentials or a secretRef.'],
  [
    'a reference, although there is no store',
    { credentials: undefined, secretRef: 'x' },
    'secretRef must be omitted: this installation accepts only credentials.',
  ],
  [
    'no client secret',
    { credentials: { clientId: 'x' } },
    'credentials.clientSecret is missing; it must be the client secret of the account’s credentials.',
  ],
  [
    'a secret that was copied with its line break',
    { credentials: { clientId: 'x', clientSecret: 's3cret\n' } },
    'credentials.clientSecret must not begin or end with a space or contain a line break, which are often copied by mistake.',
  ],
  ['an unknown field', { realm: 'us' }, 'realm is not a known setting.'],
];

test.each(REFUSED)(
  '%s is rejected with a message that names the field and quotes nothing',
  async (_, input, reason) => {
    const rig = await createRig();
    expect(await rig.create('acme', rig.deps, input)).toEqual({ kind: 'rejected', reason });
    expect(await rig.table.query({ pk: accountPk('us') })).toEqual([]);
    expect(await rig.table.get(keys.credentials(ACME))).toBeUndefined();
  },
);

describe('with a sandbox', () => {
  async function serve() {
    const { sandbox, world } = await startSandbox();
    const upstream = world.addAccount({ region: 'us', name: 'acme' });
    const rig = await createRig();
    const { clientId, clientSecret } = upstream;
    const credentials = { clientId, clientSecret };
    const service = { baseUrl: sandbox.apiUrl('us'), authUrl: sandbox.authUrl('us'), realm: 'us' };
    const deps = { ...rig.deps, now: Date.now, services: { us: service } };
    const tried = async (over: object = {}, given: object = credentials) => {
      const outcome = await testCredentials({ ...deps, ...over }, { credentials: given });
      if (outcome.kind !== 'tested') throw new Error(outcome.reason);
      expect(JSON.stringify(outcome.report)).not.toContain(clientSecret);
      return outcome.report;
    };
    return { world, upstream, sandbox, rig, credentials, service, deps, tried };
  }

  test('new credentials work at once, although the former ones were rejected or are cached', async () => {
    const { rig, service, upstream, credentials } = await serve();
    await rig.create();
    let reads = 0;
    const remembered = new Map<string, Awaited<ReturnType<AccountSecrets['read']>>>();
    const deps: PollDeps = {
      ...rig.deps,
      settings: (await createTracker()).deps.settings,
      syncApiUser: syncOwnUser,
      connect: createConnector({
        regions: { us: service },
        now: rig.deps.now,
        async readSecret(secretRef) {
          const known = remembered.get(secretRef);
          if (known) return known;
          reads += 1;
          const read = await rig.secrets.read(secretRef);
          remembered.set(secretRef, read);
          return read;
        },
        onCredentialsRejected: (secretRef) => void remembered.delete(secretRef),
      }),
    };
    const poll = () => pollAccount(deps, ACME, rig.clock.now + 600_000);
    expect(await poll()).toMatchObject({ state: 'credentials_rejected' });
    expect(await rig.due(), 'it waits').toEqual([]);
    await rotateCredentials(rig.deps, ACME, credentials);
    expect(await rig.due()).toEqual(['acme']);
    expect(await poll()).toMatchObject({
      outcome: 'complete',
      accountEvents: expect.arrayContaining(['account.credentials_accepted']),
    });
    // The former ones are still valid, but not used again.
    const before = reads;
    await rotateCredentials(rig.deps, ACME, { ...credentials, clientSecret: 'not-yet' });
    upstream.clientSecret = 'not-yet';
    expect(await poll()).toMatchObject({ outcome: 'complete' });
    expect(reads).toBe(before + 1);
    const { version } = await rig.secrets.read('kept:us/acme');
    await rotateCredentials(rig.deps, ACME, credentials);
    expect((await rig.secrets.read('kept:us/acme')).version).not.toBe(version);
  });

  test('valid credentials are tested: token, identity, a page of jobs; nothing is stored', async () => {
    const { upstream, rig, tried } = await serve();
    upstream.createJob({ status: 'Scheduled', description: 'for Ms Miller' });
    upstream.createJob({ status: 'In production' });
    const watched = watchedTable(rig.table);
    const report = await tried({ table: watched });
    expect(report).toMatchObject({
      ...{ ok: true, region: 'us', account: null, upstreamId: upstream.id, openJobs: 2 },
      statuses: ['In production', 'Scheduled'],
      steps: [
        { step: 'token', ok: true, message: 'The credentials are accepted: a token was issued.' },
        {
          step: 'identity',
          ok: true,
          message: `The credentials belong to account ${upstream.id} of the ordering API.`,
        },
        {
          step: 'page',
          ok: true,
          message:
            'Jobs can be read: the list has 2 jobs. Statuses of the newest jobs: In production, Scheduled.',
        },
      ],
    });
    expect(JSON.stringify(report)).not.toContain('Miller');
    expect(watched.calls).toEqual([]);
  });

  test('an account is tested against the tracked one, and a mismatch names both', async () => {
    const { upstream, rig, deps, credentials } = await serve();
    await rig.create('acme', rig.deps, { credentials });
    const run = async () => {
      const outcome = await testAccount(deps, ACME);
      if (outcome.kind !== 'tested') throw new Error(outcome.reason);
      return outcome.report;
    };
    await rig.table.write({ update: keys.head(ACME), set: { upstreamId: upstream.id } });
    expect(await run()).toMatchObject({ ok: true, account: 'acme' });
    await rig.table.write({ update: keys.head(ACME), set: { upstreamId: 4711 } });
    const report = await run();
    expect(report.steps).toHaveLength(2);
    expect(report.steps[1]).toMatchObject({ ok: false, message: expect.stringContaining('4711') });
    expect(report.steps[1]?.message).toContain(String(upstream.id));
    expect(await testAccount(deps, ACME_2)).toEqual({
      kind: 'unknown',
      reason: 'There is no account "acme-2".',
    });
    await rig.secrets.remove('us', 'acme');
    expect((await run()).steps).toMatchObject([
      {
        ok: false,
        message:
          'The secret kept:us/acme is missing. Set the credentials of the account again, or another secretRef.',
      },
    ]);
  });

  type Setting = (served: Awaited<ReturnType<typeof serve>>) => { over?: object; given?: object } | undefined;
  const raw = (body: string, status = 200) =>
    ({ kind: 'raw', status, contentType: 'application/json', body }) as const;
  const html = { kind: 'status', status: 502, body: 'html' } as const;
  const CASES: readonly (readonly [string, number, Setting, string])[] = [
    [
      'a wrong client secret',
      1,
      ({ credentials }) => ({ given: { ...credentials, clientSecret: 'wrong' } }),
      'The client id or the client secret is wrong (HTTP 401). Compare both',
    ],
    [
      'a wrong client id',
      1,
      ({ credentials }) => ({ given: { ...credentials, clientId: 'wrong' } }),
      'The client id or the client secret is wrong (HTTP 401)',
    ],
    [
      'a wrong realm',
      1,
      ({ service }) => ({ over: { services: { us: { ...service, realm: 'x' } } } }),
      'The token endpoint does not know this realm (HTTP 404). Check realm and authUrl of region "us".',
    ],
    [
      'an authUrl with a wrong path, where another server rejects requests',
      1,
      ({ sandbox }) =>
        void sandbox.faults.add({
          match: { operation: 'token' },
          fault: raw('{"title":"Unauthorized"}', 401),
        }),
      'The server at authUrl rejected the request (HTTP 401), but does not seem to be a token endpoint: the response is not an OAuth error. Check the path of authUrl of region "us", and realm.',
    ],
    [
      'an authUrl without a server',
      1,
      ({ service }) => ({ over: { services: { us: { ...service, authUrl: 'http://127.0.0.1:1/auth' } } } }),
      'The token endpoint can’t be reached',
    ],
    [
      'an authUrl with a web page',
      1,
      ({ sandbox }) =>
        void sandbox.faults.add({ match: { operation: 'token' }, fault: raw('<html>Sign in</html>') }),
      'The token endpoint responded with a web page (HTTP 200)',
    ],
    [
      'a disabled client',
      1,
      ({ sandbox }) =>
        void sandbox.faults.add({
          match: { operation: 'token' },
          fault: raw('{"error":"invalid_grant","error_description":"Account disabled"}', 400),
        }),
      'The account or its client is disabled (HTTP 400)',
    ],
    [
      'an ordering API that never responds',
      1,
      ({ sandbox }) => {
        sandbox.faults.add({ match: { operation: 'token' }, fault: { kind: 'hang' } });
        return { over: { stepMs: 150 } };
      },
      'The token endpoint did not respond completely within 0.15 seconds',
    ],
    [
      'an account without permission',
      2,
      ({ sandbox }) =>
        void sandbox.faults.add({ match: { operation: 'account' }, fault: { kind: 'status', status: 403 } }),
      'The credentials are valid, but lack permission (HTTP 403)',
    ],
    [
      'rejected tokens',
      2,
      ({ sandbox }) =>
        void sandbox.faults.add({ match: { operation: 'account' }, fault: { kind: 'status', status: 401 } }),
      'A token was issued, but the ordering API rejects it (HTTP 401)',
    ],
    [
      'a baseUrl with a web page',
      2,
      ({ sandbox }) =>
        void sandbox.faults.add({ match: { operation: 'account' }, fault: raw('<!doctype html><p>x') }),
      'The ordering API responded with a web page (HTTP 200)',
    ],
    [
      'a rate limit',
      3,
      ({ sandbox }) =>
        void sandbox.faults.add({
          match: { operation: 'activeJobs' },
          fault: { kind: 'status', status: 429, retryAfter: 30 },
        }),
      'The ordering API received too many requests (HTTP 429). Try again in 30 seconds.',
    ],
    [
      'an ordering API with an internal error',
      3,
      ({ sandbox }) => void sandbox.faults.add({ match: { operation: 'activeJobs' }, fault: html }),
      'The ordering API has an internal problem (HTTP 502)',
    ],
    [
      'a list in another format',
      3,
      ({ sandbox }) =>
        void sandbox.faults.add({ match: { operation: 'activeJobs' }, fault: raw('{"jobs":[]}') }),
      'The ordering API responded in an unexpected format (HTTP 200)',
    ],
  ];
  test.each(CASES)(
    '%s is reported with a message, and later steps are skipped',
    async (_, step, set, sentence) => {
      const served = await serve();
      const { over, given } = set(served) ?? {};
      const report = await served.tried(over, given);
      expect(report.steps.map(({ ok }) => ok)).toEqual([true, true, true].slice(0, step - 1).concat(false));
      expect(report.ok).toBe(false);
      expect(report.steps.at(-1)?.message).toContain(sentence);
    },
  );
});
