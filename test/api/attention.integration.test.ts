/** The routes of the attention queue: endpoints in it, its actions, roles and restricted keys. */
import { describe, expect, test } from 'vitest';
import type { Role } from '../../shared/api/key-input.ts';
import { routes } from '../../shared/api/routes/all.ts';
import { historySchema, keys } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import { TableError } from '../../shared/storage/table.ts';
import {
  type ApiWorld,
  createApiWorld,
  FOREIGN,
  OWN,
  type Scope,
  sharedWorld,
} from '../support/api-world.ts';

interface Item {
  readonly id: string;
  readonly kind: string;
  readonly account: string | null;
  readonly cause: { readonly summary: string; readonly also: readonly string[] };
  readonly impact: { readonly parkedEvents: number; readonly deadEvents: number };
  readonly actions: readonly { operation: string; method: string; path: string; body: object | null }[];
  readonly state: string;
  readonly changedBy: { readonly name: string; readonly user: boolean } | null;
}

const shared = sharedWorld();

async function ask(
  world: ApiWorld,
  key: `${Role} ${Scope}`,
  path: string,
  body?: object,
): Promise<{ readonly status: number; readonly body: never }> {
  const response = await world.app.fetch(
    new Request(`http://jobwire.test${path}`, {
      method: body ? 'POST' : 'GET',
      headers: { authorization: `Bearer ${world.keys[key].secret}`, 'content-type': 'application/json' },
      ...(body ? { body: JSON.stringify(body) } : {}),
    }),
  );
  return { status: response.status, body: (await response.json()) as never };
}

async function list(key: `${Role} ${Scope}`, query = ''): Promise<Item[]> {
  const { status, body } = await ask(shared.world, key, `/v1/attention?${query}`);
  expect(status).toBe(200);
  return (body as { items: Item[] }).items;
}

describe('GET /v1/attention', () => {
  test('lists endpoints with their dead and parked events, and how to continue', async () => {
    const items = await list('operate all', 'kind=events_dead,events_parked,endpoint_failing');
    const own = items.find(({ id }) => id === 'us~~endpoint~own');
    expect(own).toMatchObject({ account: OWN, impact: { parkedEvents: expect.any(Number) } });
    expect(own?.impact.deadEvents).toBeGreaterThan(0);
    expect(own?.actions.map(({ operation }) => operation)).toEqual(
      expect.arrayContaining(['redeliverEvents', 'listEndpointDeliveries', 'getEndpointHealth']),
    );
    expect(items.map(({ id }) => id)).toContain('us~~endpoint~everything');
  });

  test('lists to a restricted key only its own accounts and the endpoints of these', async () => {
    for (const [scope, account] of [
      ['own', OWN],
      ['foreign', FOREIGN],
    ] as const) {
      const items = await list(`read ${scope}`, 'state=all');
      expect(items.length).toBeGreaterThan(0);
      expect(new Set(items.map((item) => item.account))).toEqual(new Set([account]));
    }
  });

  test('every action is an operation that this key may call, with the path of that operation', async () => {
    for (const role of ['read', 'operate', 'admin'] as const) {
      const items = await list(`${role} all`, 'state=all');
      for (const { operation, method, path } of items.flatMap(({ actions }) => actions)) {
        const found = routes.find(({ spec }) => spec.id === operation)?.spec;
        expect(found?.method, operation).toBe(method.toLowerCase());
        const pattern = found?.path.replace(/\{\w+\}/g, '[^/]+');
        expect(path.replace(/\?.*/, ''), operation).toMatch(new RegExp(`^${pattern}$`));
        const needed = ['read', 'operate', 'admin'].indexOf(found?.role ?? 'admin');
        expect(needed, operation).toBeLessThanOrEqual(['read', 'operate', 'admin'].indexOf(role));
      }
    }
  });

  test('the replay of dead events is accepted as it is listed', async () => {
    const own = (await list('operate own')).find(({ id }) => id === 'us~~endpoint~own');
    const replay = own?.actions.find(({ operation }) => operation === 'redeliverEvents');
    const { status, body } = await ask(shared.world, 'operate own', replay?.path ?? '', replay?.body ?? {});
    const { deadEvents = null } = own?.impact ?? {};
    expect([status, body]).toMatchObject([200, { dead: deadEvents, parked: 0, replay: expect.any(Object) }]);
  });

  test.each([
    ['kind=late', 'kind must be comma-separated kinds: job_late'],
    ['state=closed', 'state must be open, snoozed, acknowledged or all.'],
    ['region=mars', 'region must be one of us, nz.'],
    ['after=x', 'after must be the `next` of a page of items.'],
  ])('rejects %s', async (query, detail) => {
    const { status, body } = await ask(shared.world, 'read all', `/v1/attention?${query}`);
    expect([status, body]).toMatchObject([400, { detail: expect.stringContaining(detail) }]);
  });
});

describe('POST /v1/attention/{id}', () => {
  const id = 'us~~endpoint~own';

  test('an action on the subject is in the history of its item, with the key, but not a dry run', async () => {
    const { world } = shared;
    const perform = async (path: string, body: object) =>
      expect((await ask(world, 'operate own', path, body)).status, path).toBe(200);
    await perform('/v1/endpoints/own/redeliver', { states: ['dead'], dryRun: true });
    await perform('/v1/endpoints/own/redeliver', { states: ['dead'] });
    await perform('/v1/endpoints/own/parked/retry', { all: true });
    await perform('/v1/endpoints/own/enable', {});
    await perform('/v1/endpoints/batch', { action: 'retry', ids: ['own'] });
    await perform('/v1/endpoints/own/parked/discard', { events: [`${OWN}.unknown.1`] });
    const replay = { from: { at: '2026-03-02T08:00:00Z' } };
    expect((await ask(world, 'operate own', '/v1/endpoints/own/replays', replay)).status).toBe(201);
    await perform('/v1/endpoints/own/pause', {});
    await perform('/v1/endpoints/batch', { action: 'resume', ids: ['own'] });
    const { body } = await ask(world, 'read own', `/v1/attention/${id}/history`);
    const { entries } = body as { entries: { action: string; by: object; cause: string }[] };
    const own = entries.filter(({ action }) => action !== 'acknowledge');
    // The discard selected no event.
    const performed = ['redeliver', 'retry_parked', 'enable', 'retry_parked', 'replay', 'pause', 'resume'];
    const recorded = own.slice(0, performed.length).reverse();
    expect(recorded.map(({ action }) => action)).toEqual(performed);
    for (const { by, cause } of recorded) {
      expect(by).toMatchObject({ id: world.keys['operate own'].id });
      expect(cause).toMatch(/rejected on every attempt/);
    }
    expect((await list('read own')).find((item) => item.id === id)?.state).toBe('open');
  });

  test('a note about a job is in the history of its item, dry runs and rejected notes are not', async () => {
    const { world } = shared;
    const job = world.ids.jobs.at(-1) ?? 0;
    // It becomes late.
    const key = keys.snapshot({ region: 'us', account: OWN }, job);
    const snapshot = JSON.parse(String((await world.table.get(key))?.snapshot));
    snapshot.list.dateDue = '2020-01-02T12:00:00Z';
    await world.table.write({ update: key, set: { snapshot: JSON.stringify(snapshot) } });
    const note = { recipient: 'ann', channel: 'email', text: 'Soon.' };
    const send = (body: object) =>
      ask(world, 'operate own', `/v1/accounts/${OWN}/jobs/${job}/messages`, body);
    await send({ ...note, dryRun: true });
    await send({ ...note, recipient: 'unknown' });
    expect([(await send(note)).status, (await send(note)).status]).toEqual([200, 200]);
    const { body } = await ask(world, 'read own', `/v1/attention/us~${OWN}~job~${job}/history`);
    expect(body).toMatchObject({
      entries: [{ action: 'send_note', cause: expect.stringContaining('late') }],
    });
  });

  test('changes the item, and records who did it', async () => {
    const { world } = shared;
    const acknowledged = await ask(world, 'operate own', `/v1/attention/${id}/acknowledge`, {
      note: 'known',
    });
    expect(acknowledged).toMatchObject({
      status: 200,
      body: { id, state: 'acknowledged', note: 'known', changedBy: { name: 'operate key', user: false } },
    });
    await ask(world, 'operate all', `/v1/attention/${id}/assign`, { assignee: 'ann' });
    expect(await list('read own', 'assignee=ann&state=acknowledged')).toMatchObject([{ id }]);
    expect((await list('read own')).map((item) => item.id)).not.toContain(id);
    await ask(world, 'operate own', `/v1/attention/${id}/reopen`, {});
    expect((await list('read own')).map((item) => item.id)).toContain(id);
    const { body } = await ask(world, 'read own', `/v1/attention/${id}/history`);
    expect((body as { entries: object[] }).entries).toMatchObject([
      { action: 'reopen', by: { id: world.keys['operate own'].id } },
      { action: 'assign', assignee: 'ann', by: { id: world.keys['operate all'].id } },
      { action: 'acknowledge', note: 'known', by: { name: 'operate key' } },
    ]);
  });

  test('an action with an Idempotency-Key can be repeated after its response was lost', async () => {
    const table = createMemoryTable();
    let isLost = false;
    const world = await createApiWorld({
      history: createMemoryTable(historySchema),
      table: {
        ...table,
        async transact(...of) {
          const outcome = await table.transact(...of);
          if (!isLost) return outcome;
          isLost = false;
          throw new TableError('transact', 'no response');
        },
      },
    });
    const acknowledge = () =>
      world.app.request(`/v1/attention/${id}/acknowledge`, {
        method: 'POST',
        headers: { authorization: `Bearer ${world.keys['operate own'].secret}`, 'idempotency-key': 'once' },
      });
    isLost = true;
    expect((await acknowledge()).status).toBe(503);
    const repeated = await acknowledge();
    expect([repeated.status, await repeated.json()]).toMatchObject([200, { state: 'acknowledged' }]);
  });

  test('requires the role operate, and a key for the account', async () => {
    const { world } = shared;
    const path = `/v1/attention/${id}/acknowledge`;
    expect((await ask(world, 'read all', path, {})).status).toBe(403);
    expect((await ask(world, 'operate foreign', path, {})).status).toBe(404);
    expect((await ask(world, 'read foreign', `/v1/attention/${id}/history`)).status).toBe(404);
    const everything = '/v1/attention/us~~endpoint~everything/note';
    expect((await ask(world, 'operate own', everything, { note: 'x' })).status).toBe(404);
  });

  test.each([
    ['snooze', { until: '2020-01-01T00:00:00Z' }, 422, 'until must be a timestamp'],
    ['snooze', { until: 'tomorrow' }, 400, 'until must be a timestamp'],
    ['note', { note: '' }, 400, 'note must not be empty'],
    ['assign', { assignee: 7 }, 400, 'assignee must be text'],
  ])('rejects %s %j', async (action, input, status, detail) => {
    const outcome = await ask(shared.world, 'operate own', `/v1/attention/${id}/${action}`, input);
    expect(outcome).toMatchObject({ status, body: { detail: expect.stringContaining(detail) } });
  });

  test('responds 404 for an item that does not exist', async () => {
    for (const unknown of ['x', `us~${OWN}~job~999`, `us~${OWN}~region~us`, 'mars~~region~mars']) {
      const path = `/v1/attention/${unknown}/note`;
      expect((await ask(shared.world, 'operate all', path, { note: 'x' })).status, unknown).toBe(404);
    }
  });
});
