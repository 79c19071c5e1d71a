/** After a restore from a backup: no id is used twice, and every reader can resume. */
import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { registerAccount } from '../../shared/accounts/accounts.ts';
import { createApi } from '../../shared/api/app.ts';
import { createGrowthSignal } from '../../shared/api/growth-signal.ts';
import { findPositions } from '../../shared/delivery/positions.ts';
import { registerSink } from '../../shared/delivery/sink.ts';
import { wakeSinks } from '../../shared/delivery/wakes.ts';
import { catalogue } from '../../shared/events/catalogue.ts';
import type { JobEvent } from '../../shared/events/event.ts';
import { forwardLogs } from '../../shared/log/feed-forwarding.ts';
import { epochFloor, formatCursor, newEpoch } from '../../shared/log/head.ts';
import { createEventLog, type EventLog, RestoredLogError } from '../../shared/log/log.ts';
import { cellLog, feedLog, keys } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import type { Table } from '../../shared/storage/table.ts';
import { renewLogs } from '../../shared/tracking/operator.ts';
import { pollAccount } from '../../shared/tracking/poll.ts';
import { apiParts } from '../support/api.ts';
import { createDeliveryRig, delivered, inOrderPerJob, moved } from '../support/delivery-world.ts';
import { createOperator } from '../support/operator.ts';
import { eachTable } from '../support/tables.ts';
import { createRig, watchedTable } from '../support/tracker.ts';

const START = Date.parse('2026-03-02T08:00:00Z');
const HOUR_MS = 3_600_000;
const ACME = { region: 'us', account: 'acme' };
const OTHER = { region: 'us', account: 'other' };
const KEY = 'correct-horse-battery-staple';

/** A table, and a copy that follows it until `detach`: a backup as of then. */
function backedUp(table: Table, backup: Table): Table & { detach(): void } {
  let attached = true;
  return {
    ...table,
    detach() {
      attached = false;
    },
    async write(write) {
      const outcome = await table.write(write);
      if (attached) await backup.write(write);
      return outcome;
    },
    async putMany(items) {
      await table.putMany(items);
      if (attached) await backup.putMany(items);
    },
    async transact(writes, token) {
      const outcome = await table.transact(writes, token);
      if (attached) await backup.transact(writes, randomUUID());
      return outcome;
    },
  };
}

eachTable('A restored table', (makeTable) => {
  /**
   * Two accounts with two events each, of which acme emitted three more after the backup: the old log, and the log over the
   * backup, restored an hour later.
   */
  async function restore(options: { readonly growth?: ReturnType<typeof createGrowthSignal> } = {}) {
    const clock = { now: START };
    const backup = await makeTable();
    const lost = backedUp(await makeTable(), backup);
    const logOver = (table: Table, leastEpoch?: string): EventLog =>
      createEventLog(table, {
        ...{ leastEpoch, newId: randomUUID, schemaBaseUrl: 'https://jobwire.example' },
        now: () => clock.now,
        onCommitted: (ref) => options.growth?.grew(ref),
        sleep: async () => undefined,
      });
    const before = logOver(lost);
    const epochs = new Map<string, string>();
    for (const ref of [ACME, OTHER]) {
      const account = { ...ref, secretRef: 'x', pollIntervalSeconds: 60, paused: false };
      const epoch = newEpoch(clock.now);
      epochs.set(ref.account, epoch);
      await registerAccount(lost, before, account, { now: clock.now, epoch });
      await before.append(ref, [moved(1, 'a'), moved(2, 'a')]);
      await forwardLogs(lost, [ref]);
    }
    lost.detach();
    await before.append(ACME, [moved(1, 'lost'), moved(2, 'lost'), moved(3, 'lost')]);
    await forwardLogs(lost, [ACME]);
    clock.now += HOUR_MS;
    const log = logOver(backup, epochFloor(clock.now));
    clock.now += 60_000;
    const deps = { table: backup, log, now: () => clock.now };
    return {
      clock,
      backup,
      before,
      log,
      deps,
      epoch: epochs.get('acme') ?? '',
      renew: () => renewLogs(deps, 'us'),
    };
  }

  const getIds = async (log: EventLog, ref = ACME): Promise<string[]> => {
    const page = await log.read(ref, 0, 100);
    return page?.kind === 'events' ? page.events.map(({ id }) => id) : [];
  };

  test('nothing is written to a log before it is renewed, by any writer', async () => {
    const { log, backup } = await restore();
    const head = await log.head(ACME);
    if (!head) throw new Error('There is no log.');
    const revision = Number((await backup.get(keys.status(ACME)))?.revision);
    const request = { revision, head, events: [moved(1, 'b')], writes: [] };
    await expect(log.commit(ACME, request)).rejects.toThrow(RestoredLogError);
    await expect(log.commit(ACME, { ...request, events: [] })).rejects.toThrow(RestoredLogError);
    await expect(log.append(ACME, [moved(1, 'b')])).rejects.toThrow(/acme .*logs\.renew/);
    await expect(log.append(cellLog('us'), [])).rejects.toThrow(RestoredLogError);
    expect(await log.head(ACME)).toEqual(head);
    expect(await backup.get(keys.status(ACME))).toMatchObject({ revision });
  });

  test('renewed logs continue with unused ids, after an event that reports it', async () => {
    const { before, log, renew, epoch, backup } = await restore();
    expect(await renew()).toEqual({ renewed: 3, unchanged: 0 });
    const ids = await getIds(log);
    expect(ids.slice(0, 2)).toEqual([`acme.${epoch}.1`, `acme.${epoch}.2`]);
    const page = await log.read(ACME, 2, 10);
    const [event] = page?.kind === 'events' ? page.events : [];
    expect(event).toMatchObject({ sequence: 3, type: 'account.restored' });
    const { id, data } = JSON.parse(event?.json ?? '') as JobEvent;
    expect(catalogue['account.restored'].data().parse(data)).toMatchObject({ after: `${epoch}.2` });
    const renewed = id.split('.')[1] ?? '';
    expect(renewed > epoch, 'sorts behind what was before').toBe(true);

    await log.append(ACME, [moved(1, 'b')]);
    expect(await getIds(log)).toEqual([...ids, `acme.${renewed}.4`]);
    const received = await getIds(before);
    expect(received).toHaveLength(5);
    expect(ids.slice(2).filter((one) => received.includes(one))).toEqual([]);
    expect(await backup.get(keys.wake(ACME)), 'sinks are woken').toMatchObject({ sequence: 4 });
    expect(await log.head(cellLog('us'))).toMatchObject({
      sequence: 0,
      epoch: expect.not.stringMatching(epoch),
    });
  });

  test('renewing is idempotent, and restarts with the next restore', async () => {
    const { deps, log, renew, epoch, clock, backup } = await restore();
    await renew();
    const first = await log.head(ACME);
    expect(await renew()).toEqual({ renewed: 0, unchanged: 3 });
    expect(await log.head(ACME)).toEqual(first);

    clock.now += HOUR_MS;
    const again = createEventLog(backup, {
      ...{ now: deps.now, newId: randomUUID, schemaBaseUrl: 'https://jobwire.example' },
      leastEpoch: epochFloor(clock.now),
    });
    expect(await renewLogs({ ...deps, log: again }, 'us')).toEqual({ renewed: 3, unchanged: 0 });
    const head = await again.head(ACME);
    expect(head?.attributes.former).toEqual([`${epoch}.2`, `${first?.epoch}.3`]);
    // Cursors of both epochs before are where they were.
    for (const cursor of [`${epoch}.2`, `${first?.epoch}.1`, `${first?.epoch}.3`, `${head?.epoch}.4`]) {
      const place = await findPositions(again, 'us', ['acme'], { cursors: { acme: cursor } }, clock.now);
      expect(place, cursor).toMatchObject({ kind: 'placed' });
    }
    for (const cursor of [`${epoch}.3`, `${first?.epoch}.4`, `${head?.epoch}.5`, 'zzz.1']) {
      const place = await findPositions(again, 'us', ['acme'], { cursors: { acme: cursor } }, clock.now);
      expect(place, cursor).toMatchObject({ kind: 'rejected' });
    }
  });

  test('an interrupted renewal is completed by the next, and each log is renewed once', async () => {
    for (const [when, n] of [0, 1, 2].flatMap((at) => [['before', at] as const, ['after', at] as const])) {
      const { backup, deps, renew, clock, log } = await restore();
      const seen = { before: 0, after: 0 };
      let dead = false;
      const dieAt = (moment: 'before' | 'after', call: string) => {
        if (call !== 'transact') return;
        if (seen[moment]++ === n && moment === when) dead = true;
        if (dead) throw new Error('dead');
      };
      const over = watchedTable(backup, {
        before: ({ call }) => dieAt('before', call),
        after: ({ call }) => dieAt('after', call),
      });
      const dying = createEventLog(over, {
        ...{ now: () => clock.now, newId: randomUUID, schemaBaseUrl: 'https://jobwire.example' },
        leastEpoch: epochFloor(START + HOUR_MS),
      });
      await expect(renewLogs({ ...deps, log: dying }, 'us')).rejects.toThrow('dead');
      await renew();
      for (const ref of [ACME, OTHER]) {
        expect(await log.head(ref)).toMatchObject({
          sequence: 3,
          attributes: { former: [expect.any(String)] },
        });
      }
    }
  });

  test.each([
    ['an event that Head does not count yet', 3, 2],
    ['a Head without its last events', 2, 4],
    ['an event that is missing among others', 4, 4, 2],
  ])(
    'a backup that is torn by %s becomes a log without gaps',
    async (_, events, sequence, missing?: number) => {
      const { backup, before, log, renew, epoch } = await restore();
      // acme's events there: 1 and 2, as restored, and the torn ones behind them.
      const page = await before.read(ACME, 0, 10);
      if (page?.kind !== 'events') throw new Error('There is no log.');
      const [first] = await backup.query({ pk: keys.event(ACME, 1).pk, limit: 1 });
      for (const { id, sequence: at, json } of page.events.slice(2, events)) {
        await backup.write({ put: { ...first, ...keys.event(ACME, at), id, event: json } });
      }
      if (missing !== undefined) await backup.write({ delete: keys.event(ACME, missing) });
      await backup.write({ update: keys.head(ACME), set: { sequence } });
      const end = Math.max(events, sequence);

      await renew();
      await log.append(ACME, [moved(1, 'b')]);
      const read = await log.read(ACME, 0, 100);
      const all = read?.kind === 'events' ? read.events : [];
      expect(all.map((event) => event.sequence)).toEqual(Array.from({ length: end + 2 }, (_, n) => n + 1));
      const head = await log.head(ACME);
      const lost = (at: number) => at === missing || (at > events && at <= end);
      for (const event of all) {
        const restored = event.sequence === end + 1 || lost(event.sequence);
        expect(event.id.split('.')[1]).toBe(restored || event.sequence > end ? head?.epoch : epoch);
        if (restored) expect(event.type).toBe('account.restored');
      }
      expect(new Set(all.map(({ id }) => id)).size).toBe(all.length);
      expect(head?.attributes.former).toEqual([`${epoch}.${end}`]);
    },
  );

  test('a sink whose cursor is ahead of a torn log misses no later event', async () => {
    const { backup, log, renew } = await restore();
    const sink = {
      region: 'us',
      id: 'hook',
      kind: 'webhook',
      target: 'https://example.com',
      accounts: [],
      types: [],
      paused: false,
    } as const;
    await registerSink(backup, log, sink, []);
    const cursor = { ...keys.cursor('us', 'hook', 'acme'), sink: 'hook' };
    await backup.write({ put: { ...cursor, position: 3, ahead: '5-6,8' } });
    await renew();
    expect((await log.head(ACME))?.sequence).toBe(9);
    const page = await log.read(ACME, 8, 10);
    expect(page).toMatchObject({ kind: 'events', events: [{ sequence: 9, type: 'account.restored' }] });
    expect(await getIds(log)).toHaveLength(9);
  });

  test('a poll that started before is fenced', async () => {
    const { log, renew, backup } = await restore();
    const head = await log.head(ACME);
    const revision = Number((await backup.get(keys.status(ACME)))?.revision);
    if (!head) throw new Error('There is no log.');
    await renew();
    const request = { revision, events: [moved(1, 'stale')], writes: [] };
    const now = await log.head(ACME);
    expect(await log.commit(ACME, { ...request, head: now ?? head })).toEqual({ kind: 'fenced' });
  });

  test('cursors of the old epoch continue as far as the backup; beyond it the error has the cursor to resume from', async () => {
    const { backup, log, renew, epoch, clock } = await restore();
    await renew();
    const head = await log.head(ACME);
    const api = createApi({
      table: backup,
      log,
      regions: ['us'],
      ...apiParts(backup, KEY),
      now: () => clock.now,
    });
    const get = async (path: string) => {
      const answer = await api.request(path, { headers: { authorization: `Bearer ${KEY}` } });
      return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
    };
    const events = (after: string) => get(`/v1/accounts/acme/events?after=${after}`);
    const getTypes = ({ body }: { body: Record<string, unknown> }) =>
      (body.events as JobEvent[]).map(({ type }) => type);

    expect(getTypes(await events(`${epoch}.1`))).toEqual(['job.status_changed', 'account.restored']);
    const kept = await events(`${epoch}.2`);
    expect(getTypes(kept)).toEqual(['account.restored']);
    expect(kept.body.next).toBe(formatCursor(head?.epoch ?? '', 3));

    for (const path of ['/v1/accounts/acme/events', '/v1/accounts/acme/events/stream']) {
      const gone = await get(`${path}?after=${epoch}.5`);
      expect(gone).toMatchObject({
        status: 410,
        body: {
          restored: `${head?.epoch}.2`,
          earliest: `${head?.epoch}.0`,
          head: `${head?.epoch}.3`,
          detail: expect.stringContaining('Resume from `restored`'),
        },
      });
      expect(getTypes(await events(String(gone.body.restored)))).toEqual(['account.restored']);
    }
    const stranger = await events('zzz.1');
    expect(stranger.status).toBe(410);
    expect(stranger.body).not.toHaveProperty('restored');

    // The cell feed as well: with its earlier events, and all later ones.
    const fed = await get(`/v1/events/stream?after=${epoch}.5`);
    const feed = await log.head(feedLog('us'));
    expect(fed).toMatchObject({
      status: 410,
      body: { restored: `${feed?.epoch}.4`, earliest: `${feed?.epoch}.0`, head: `${feed?.epoch}.4` },
    });
    expect(feed?.attributes.former).toEqual([`${epoch}.4`]);
  });

  test('a reader waiting at the head during the renewal gets the new events, not an error', async () => {
    const growth = createGrowthSignal();
    const { backup, log, renew, epoch } = await restore({ growth });
    const looked = Promise.withResolvers<void>();
    const watched: EventLog = {
      ...log,
      async read(...query) {
        const page = await log.read(...query);
        looked.resolve();
        return page;
      },
    };
    const api = createApi({
      table: backup,
      log: watched,
      regions: ['us'],
      ...apiParts(backup, KEY),
      now: Date.now,
      growth,
    });
    const asked = api.request(`/v1/accounts/acme/events?after=${epoch}.2&wait=20`, {
      headers: { authorization: `Bearer ${KEY}` },
    });
    await looked.promise;
    await renew();
    const answer = await asked;
    expect(answer.status).toBe(200);
    const now = formatCursor((await log.head(ACME))?.epoch ?? '', 3);
    expect(await answer.json()).toMatchObject({
      events: [{ type: 'account.restored' }],
      next: now,
      head: now,
    });
  });

  test('a sink resumes at its cursor: the rest of the old epoch with the same ids, then the new one, in order', async () => {
    const backup = await makeTable();
    const lost = backedUp(await makeTable(), backup);
    const rig = await createDeliveryRig(delivered, { table: lost });
    await rig.say([moved(1, 'a'), moved(2, 'a')]);
    await rig.drain();
    await rig.say([moved(1, 'b')]);
    lost.detach();
    await rig.say([moved(1, 'lost'), moved(2, 'lost')]);
    await rig.drain();
    expect(rig.got).toHaveLength(5);
    rig.state.now += HOUR_MS;
    const log = createEventLog(backup, {
      ...{ now: () => rig.state.now, newId: randomUUID, schemaBaseUrl: 'https://jobwire.example' },
      leastEpoch: epochFloor(rig.state.now),
    });
    const [received] = [rig.got.splice(0)];
    const restored = await createDeliveryRig(delivered, { table: backup });
    restored.state.now = rig.state.now;
    Object.assign(restored.deps, { log });
    await backup.write({
      put: { ...keys.account(ACME), secretRef: 'x', pollIntervalSeconds: 60, paused: false },
    });
    await renewLogs({ table: backup, log, now: () => rig.state.now }, 'us');
    await log.append(ACME, [moved(1, 'c'), moved(2, 'c')]);
    await wakeSinks(backup, ACME, 6, restored.state.now);
    await restored.drain();
    expect(inOrderPerJob(restored.got)).toBe(true);
    expect(restored.got.map(({ sequence, type }) => `${sequence} ${type}`).sort()).toEqual([
      '3 job.status_changed',
      '4 account.restored',
      '5 job.status_changed',
      '6 job.status_changed',
    ]);
    expect(restored.got[0]?.id).toBe(received[2]?.id);
    const known = new Set(received.map(({ id }) => id));
    expect(restored.got.slice(1).filter(({ id }) => known.has(id))).toEqual([]);
    expect(await restored.position()).toEqual({ position: 6, due: false });
  });
});

test('tracking continues after a restore: no id is emitted twice, and receivers end with the current jobs', async () => {
  const backup = createMemoryTable();
  const lost = backedUp(createMemoryTable(), backup);
  const rig = await createRig({ table: lost });
  const jobs = [rig.upstream.createJob({}), rig.upstream.createJob({}), rig.upstream.createJob({})];
  await rig.poll();
  await rig.poll();
  lost.detach();
  rig.upstream.dispatch(jobs[0] ?? 0);
  const created = rig.upstream.createJob({});
  await rig.poll();
  const received = await rig.fresh();
  expect(received.map(({ type }) => type)).toEqual(expect.arrayContaining(['job.dispatched', 'job.created']));

  rig.pass(3600);
  const operator = await createOperator({ table: backup, now: rig.now, restoredAt: rig.now() });
  const deps = { ...rig.depsOver(backup), log: operator.log };
  rig.pass(60);
  // Polls need no coordination meanwhile: they fail with the reason.
  await expect(pollAccount(deps, rig.ref, rig.now() + 600_000)).rejects.toThrow(RestoredLogError);
  expect(await operator.run({ do: 'logs.renew' })).toEqual({ logs: { renewed: 2, unchanged: 0 } });
  rig.upstream.dispatch(jobs[1] ?? 0);
  rig.pass(60);
  await pollAccount(deps, rig.ref, rig.now() + 600_000);

  const page = await operator.log.read(rig.ref, 0, 500);
  const events = page?.kind === 'events' ? page.events.map(({ json }) => JSON.parse(json) as JobEvent) : [];
  const fresh = events.slice(events.findIndex(({ type }) => type === 'account.restored'));
  expect(fresh.filter(({ id }) => received.some((one) => one.id === id))).toEqual([]);
  const said = fresh.map(({ type, subject }) => `${type} ${subject ?? ''}`);
  expect(said).toEqual(
    expect.arrayContaining([
      `job.dispatched jobs/${jobs[0]}`,
      `job.dispatched jobs/${jobs[1]}`,
      `job.created jobs/${created}`,
    ]),
  );
  // As in docs/receiving-events.md: epoch first, then sequence.
  const latest = new Map<string, { place: string; dateOut: unknown }>();
  for (const { id, sequence, subject, data } of [...fresh, ...received]) {
    const place = `${id.split('.')[1]}.${sequence}`;
    const { job } = data as { job?: { dateOut: unknown } };
    if (!subject || !job || place <= (latest.get(subject)?.place ?? '')) continue;
    latest.set(subject, { place, dateOut: job.dateOut });
  }
  for (const job of jobs.slice(0, 2)) expect(latest.get(`jobs/${job}`)?.dateOut).toEqual(expect.any(String));
});
