/** Delivery of cells with many endpoints and accounts: what ticks and wake-ups read, and sinks that are divided into parts. */
import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { drainSink } from '../../shared/delivery/drain.ts';
import { toEndpointState } from '../../shared/delivery/endpoint.ts';
import { enableEndpoint } from '../../shared/delivery/endpoint-controls.ts';
import { listParked } from '../../shared/delivery/parked-events.ts';
import {
  type DeliveryOutcome,
  listSinks,
  putFollowers,
  registerSink,
  sinkAttributes,
} from '../../shared/delivery/sink.ts';
import { indexFormerSinks, listDueSinks, listDueWork, wakeSinks } from '../../shared/delivery/wakes.ts';
import type { LoggedEvent } from '../../shared/log/log.ts';
import { DRAIN_SHARDS, drainDue, getDrainName, getDrainNames, keys } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import type { Item, Table } from '../../shared/storage/table.ts';
import { createDeliveryRig, delivered, inOrderPerJob, moved, REGION } from '../support/delivery-world.ts';
import { sized } from '../support/runs.ts';

const DAY_MS = 86_400_000;

/** Counts the items that a table returns, and its calls in progress. */
function meter(memory: Table) {
  const counts = { items: 0, calls: 0, concurrent: 0 };
  let underWay = 0;
  async function count<T>(call: () => Promise<T>): Promise<T> {
    counts.calls += 1;
    underWay += 1;
    counts.concurrent = Math.max(counts.concurrent, underWay);
    // A response takes a while, so that all calls that do not wait for each other are in progress together.
    await new Promise(setImmediate);
    const found = await call();
    if (Array.isArray(found)) counts.items += found.length;
    underWay -= 1;
    return found;
  }
  const table: Table = {
    ...memory,
    get: (key) => count(() => memory.get(key)),
    getMany: (wanted) => count(() => memory.getMany(wanted)),
    query: (query) => count(() => memory.query(query)),
  };
  return { table, counts };
}

const endpoint = (id: string, accounts: readonly string[]) => ({
  ...{ region: REGION, id, kind: 'webhook' as const, target: 'http://127.0.0.1/' },
  ...{ accounts, types: [], paused: false },
});

test('a wake-up reads only the sinks that follow its account, and a tick the due ones, with few reads at a time', async () => {
  const endpoints = sized(1_000, 10_000);
  const memory = createMemoryTable();
  const rig = await createDeliveryRig(delivered, { table: memory, accounts: ['acme', 'other'] });
  const items: Item[] = [];
  for (let n = 0; n < endpoints; n += 1) {
    const record = endpoint(`ep-${n}`, [n < 3 ? 'acme' : `account-${n}`]);
    items.push({ ...keys.sink(REGION, record.id), ...sinkAttributes(record) } as Item);
    for (const account of record.accounts)
      items.push({ ...keys.follower({ region: REGION, account }, record.id) });
    if (n >= 3) {
      const due = drainDue(REGION, record.id, `account-${n}`, rig.state.now - n);
      items.push({ ...keys.cursor(REGION, record.id, `account-${n}`), sink: record.id, ...due });
    }
  }
  await memory.putMany(items);
  await rig.log.append({ region: REGION, account: 'acme' }, [moved(1, 'a')]);

  const waking = meter(memory);
  const woken = await wakeSinks(waking.table, { region: REGION, account: 'acme' }, 1, rig.state.now);
  expect(woken.sort()).toEqual(['ep-0', 'ep-1', 'ep-2', 'erp']);
  expect(waking.counts.items).toBeLessThan(20);

  const ticking = meter(memory);
  const due = await listDueSinks(ticking.table, REGION, rig.state.now + 1);
  expect(due).toHaveLength(Math.min(endpoints + 1, 5_000));
  expect(due[0], 'the longest due first').toBe(`ep-${endpoints - 1}`);
  expect(ticking.counts.concurrent).toBeLessThanOrEqual(8);
  expect(ticking.counts.calls).toBeLessThanOrEqual(2 * DRAIN_SHARDS + 1);
});

test('a sink with thousands of due cursors does not hide the sinks behind it in the index', async () => {
  const table = createMemoryTable();
  const rig = await createDeliveryRig(delivered, { table });
  const ids = Array.from({ length: 40 }, (_, n) => `ep-${n}`);
  for (const id of ids) {
    await table.write({ update: keys.sink(REGION, id), set: sinkAttributes(endpoint(id, [])) });
    const cursors = Array.from({ length: id === 'ep-0' ? 2_500 : 1 }, (_, n): Item => {
      const due = drainDue(REGION, id, `a${n}`, rig.state.now);
      return { ...keys.cursor(REGION, id, `a${n}`), sink: id, ...due };
    });
    await table.putMany(cursors);
  }
  expect((await listDueSinks(table, REGION, rig.state.now)).sort()).toEqual([...ids].sort());
  expect(await listDueWork(table, REGION, 'ep-0', rig.state.now)).toHaveLength(2_500);
  expect(await listDueSinks(table, REGION, rig.state.now - 1)).toEqual([]);
});

test('the sinks of version 0.1.0 are woken and drained: their followers, due cursors and parked lanes are indexed, also those written during the upgrade', async () => {
  const table = createMemoryTable();
  const rig = await createDeliveryRig(
    (_, attempt) => (attempt === 1 ? { kind: 'rejected', reason: 'no' } : delivered()),
    { table, accounts: ['acme', 'other'], record: { accounts: ['acme'] } },
  );
  await rig.say([moved(1, 'a'), moved(1, 'b')]);
  await rig.drain();
  const former = async () => {
    for (const { pk, sk, dueSk } of await listDueWork(table, REGION, 'erp', rig.state.now + DAY_MS)) {
      const [, time, ...what] = String(dueSk).split('#');
      const set = { duePk: `DRAINS#${REGION}#erp#${sk.length % 2}`, dueSk: [time, ...what].join('#') };
      await table.write({ update: { pk, sk }, set });
    }
  };
  await rig.say([moved(2, 'a')]);
  await former();
  await table.write({ delete: keys.follower({ region: REGION, account: 'acme' }, 'erp') });
  expect(await listDueSinks(table, REGION, rig.state.now + DAY_MS)).toEqual([]);

  await indexFormerSinks(table, REGION, rig.state.now);
  expect(await listDueSinks(table, REGION, rig.state.now)).toEqual(['erp']);
  expect(await listDueWork(table, REGION, 'erp', rig.state.now + DAY_MS)).toHaveLength(2);
  expect(await rig.say([moved(3, 'a')])).toEqual(['erp']);

  await former();
  await indexFormerSinks(table, REGION, rig.state.now + 60_000);
  rig.state.now += 600_000;
  for (let turn = 0; turn < 4; turn += 1) {
    await rig.drain();
    rig.state.now += 600_000;
  }
  expect(rig.got.map(({ id }) => id).sort()).toEqual(['acme.e1.1', 'acme.e1.2', 'acme.e1.3', 'acme.e1.4']);
  expect(inOrderPerJob(rig.got)).toBe(true);
  // Later calls read one item.
  const { table: later, counts } = meter(table);
  await indexFormerSinks(later, REGION, rig.state.now);
  expect(counts.calls).toBe(1);
});

// Divided sinks

const ACCOUNTS = Array.from({ length: 24 }, (_, n) => `a${n}`);

const isSamePart = (one: string, other: string) =>
  getDrainName('topic', one) === getDrainName('topic', other);

function createTopicRig(
  answer: (event: LoggedEvent, attempt: number) => DeliveryOutcome | Promise<DeliveryOutcome>,
) {
  return createDeliveryRig(answer, { accounts: ACCOUNTS, record: { id: 'topic', kind: 'sns' } });
}

test('the parts of a divided sink are drained at the same time, each has the accounts of its own, and the events of a job stay in order', async () => {
  const active = new Set<string>();
  let most = 0;
  const rig = await createTopicRig(async ({ account }) => {
    const name = getDrainName('topic', account);
    active.add(name);
    most = Math.max(most, active.size);
    for (let turn = 0; turn < 50; turn += 1) await new Promise(setImmediate);
    active.delete(name);
    return { kind: 'delivered' };
  });
  for (const ref of rig.refs) {
    expect(await rig.say([moved(1, 'a'), moved(1, 'b')], ref)).toEqual([getDrainName('topic', ref.account)]);
  }
  const due = await listDueSinks(rig.table, REGION, rig.state.now);
  expect(due.sort()).toEqual([...new Set(ACCOUNTS.map((account) => getDrainName('topic', account)))].sort());
  expect(due.length).toBeGreaterThan(5);
  const drain = (name: string) => drainSink(rig.deps, REGION, name, rig.state.now + 60_000);
  const [reports, again] = await Promise.all([Promise.all(due.map(drain)), Promise.all(due.map(drain))]);
  expect(most).toBe(due.length);
  expect(reports.map(({ outcome, sink }) => [sink, outcome])).toEqual(due.map(() => ['topic', 'drained']));
  expect(new Set(again.map(({ outcome }) => outcome)), 'each part has one drain').toEqual(new Set(['busy']));
  expect(rig.got).toHaveLength(2 * ACCOUNTS.length);
  expect(inOrderPerJob(rig.got)).toBe(true);
});

test('a part that fails or parks events does not delay the others, and the sink has the state of its worst part', async () => {
  const failing = getDrainName('topic', 'a0');
  const rejecting = ACCOUNTS.map((account) => getDrainName('topic', account)).find(
    (name) => name !== failing,
  );
  const rig = await createTopicRig(({ account }, attempt) => {
    const name = getDrainName('topic', account);
    if (name === failing) return { kind: 'retry', reason: 'SNS failed.' };
    return name === rejecting && attempt === 1 ? { kind: 'rejected', reason: 'no' } : { kind: 'delivered' };
  });
  for (const ref of rig.refs) await rig.say([moved(1, 'a')], ref);
  for (const name of getDrainNames('topic')) await drainSink(rig.deps, REGION, name, rig.state.now + 60_000);
  const others = ACCOUNTS.filter((account) => ![failing, rejecting].includes(getDrainName('topic', account)));
  expect(rig.got.map(({ account }) => account).sort()).toEqual([...others].sort());
  const parked = (await listParked(rig.table, REGION, 'topic')).map(({ account }) => account);
  expect(parked).toEqual(ACCOUNTS.filter((account) => getDrainName('topic', account) === rejecting).sort());
  expect((await listSinks(rig.table, REGION)).map(toEndpointState)).toEqual(['failing']);
});

test('parts that fail for days are reported as one disabled sink, and enabling the sink enables all parts', async () => {
  let down = true;
  const rig = await createTopicRig(() =>
    down ? { kind: 'retry', reason: 'SNS failed.' } : { kind: 'delivered' },
  );
  for (const ref of rig.refs) await rig.say([moved(1, 'a')], ref);
  const drainAll = async () => {
    for (const name of getDrainNames('topic'))
      await drainSink(rig.deps, REGION, name, rig.state.now + 60_000);
  };
  await drainAll();
  rig.state.now += 6 * DAY_MS;
  await drainAll();
  const of = async (type: string) => (await rig.readCellLog()).filter((event) => event.type === type);
  expect(await of('endpoint.disabled')).toHaveLength(1);
  expect(await listDueSinks(rig.table, REGION, rig.state.now + DAY_MS)).toEqual([]);

  down = false;
  const deps = { table: rig.table, now: () => rig.state.now, newId: randomUUID } as never;
  expect(await enableEndpoint(deps, REGION, 'topic')).toMatchObject({ kind: 'changed' });
  await drainAll();
  await drainAll();
  expect(rig.got).toHaveLength(ACCOUNTS.length);
  expect(await of('endpoint.recovered')).toHaveLength(1);
});

test('an enabled divided sink is active after the next drains, also the parts with nothing left to deliver', async () => {
  const rig = await createTopicRig(() => ({ kind: 'retry', reason: 'SNS failed.' }));
  const [, second] = rig.refs.filter(
    ({ account }, at) =>
      rig.refs.findIndex((one) => isSamePart(one.account, account)) === at &&
      rig.refs.some((one) => one.account !== account && isSamePart(one.account, account)),
  );
  for (const ref of [rig.refs[0], second]) {
    if (!ref) throw new Error('There are too few accounts.');
    const name = getDrainName('topic', ref.account);
    await rig.say([moved(1, 'a')], ref);
    await drainSink(rig.deps, REGION, name, rig.state.now + 60_000);
    // As after the deletion of the account.
    await rig.table.write({ delete: keys.cursor(REGION, 'topic', ref.account) });
  }
  const deps = { table: rig.table, now: () => rig.state.now, newId: randomUUID } as never;
  expect(await enableEndpoint(deps, REGION, 'topic')).toMatchObject({ kind: 'changed' });
  for (const name of await listDueSinks(rig.table, REGION, rig.state.now)) {
    await drainSink(rig.deps, REGION, name, rig.state.now + 60_000);
  }
  expect((await listSinks(rig.table, REGION)).map(toEndpointState)).toEqual(['active']);
});

test('a divided sink that gets a new target is probed there at once, is enabled, and is not disabled because of failures at the former one', async () => {
  const rig = await createTopicRig(() => ({ kind: 'retry', reason: 'SNS failed.' }));
  for (const ref of rig.refs) await rig.say([moved(1, 'a')], ref);
  const drainAll = async () => {
    for (const name of getDrainNames('topic'))
      await drainSink(rig.deps, REGION, name, rig.state.now + 60_000);
  };
  const record = { ...endpoint('topic', []), kind: 'sns' as const };
  const register = (target: string) =>
    registerSink(rig.table, rig.log, { ...record, target }, [], rig.state.now);
  const getState = async () => (await listSinks(rig.table, REGION)).map(toEndpointState);
  await drainAll();
  rig.state.now += 6 * DAY_MS;
  await drainAll();
  expect(await getState()).toEqual(['disabled']);
  await register(record.target);
  expect(await getState(), 'with the same target').toEqual(['disabled']);
  await register('arn:aws:sns:us-east-1:111122223333:other.fifo');
  expect(await listDueSinks(rig.table, REGION, rig.state.now)).not.toEqual([]);
  await drainAll();
  expect(await getState(), 'after a failure at the new target').toEqual(['failing']);
  rig.state.now += 6 * DAY_MS;
  await register(record.target);
  await drainAll();
  expect(await getState(), 'moved while failing').toEqual(['failing']);
});

test('a part takes over what the undivided sink of version 0.1.0 left: its parked lanes, its wait, and its lease until it ends', async () => {
  const rig = await createTopicRig(delivered);
  const [ref] = rig.refs;
  if (!ref) throw new Error('There is no account.');
  await rig.say([moved(1, 'a')], ref);
  const name = getDrainName('topic', ref.account);
  const drain = () => drainSink(rig.deps, REGION, name, rig.state.now + 60_000);
  const key = keys.sink(REGION, 'topic');
  await rig.table.write({
    update: key,
    set: { leaseUntil: rig.state.now + 30_000, leaseToken: 7, parking: true, lost: 2 },
  });
  expect(await drain()).toMatchObject({ outcome: 'busy' });
  rig.state.now += 30_000;
  expect(await drain()).toMatchObject({ outcome: 'drained', delivered: 1 });
  await putFollowers(rig.table, endpoint('topic', []));
  expect(await rig.table.get(keys.sinkState(REGION, name))).not.toHaveProperty('lost');
});
