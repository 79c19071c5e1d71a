/**
 * Authorization: every route with every kind of key, on own and foreign resources. The expectation is derived from the route's
 * declaration and the owners in the test world, independently of the code under test.
 */
import { describe, expect, test } from 'vitest';
import type { Role } from '../../shared/api/key-input.ts';
import type { Route } from '../../shared/api/route.ts';
import { routes } from '../../shared/api/routes/all.ts';
import { historySchema } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import { type Asked, getRequests, operations } from '../support/api-requests.ts';
import {
  type ApiWorld,
  createApiWorld,
  FAR,
  FOREIGN,
  MOVING,
  OWN,
  REGIONS,
  SCOPES,
  type Scope,
} from '../support/api-world.ts';
import { samples } from '../support/runs.ts';

/** A caller: a key of the world, or an invalid one. */
interface Asker {
  readonly name: string;
  readonly secret: string | undefined;
  /** Absent: the key is invalid. */
  readonly may?: { readonly role: Role; readonly accounts: readonly string[] | null };
}

const ROLES = ['read', 'operate', 'admin'] as const;
type Outcome = 'unauthorized' | 'forbidden' | 'as if absent' | 'not denied';

function listCallers(world: ApiWorld): Asker[] {
  return [
    { name: 'nobody', secret: undefined },
    { name: 'a wrong key', secret: `jw_${'a'.repeat(12)}_${'A'.repeat(43)}` },
    {
      name: 'a wrong secret',
      secret: world.keys['admin all'].secret.replace(/.$/, (last) => (last === 'x' ? 'y' : 'x')),
    },
    { name: 'an expired key', secret: world.expired },
    { name: 'a revoked key', secret: world.revoked },
    ...ROLES.flatMap((role) =>
      (['all', 'own', 'foreign'] as const).map((scope) => ({
        name: `${role} ${scope}`,
        secret: world.keys[`${role} ${scope}`].secret,
        may: { role, accounts: SCOPES[scope] },
      })),
    ),
  ];
}

/** A resource in a path: its parameters, and its owner. */
interface Thing {
  readonly name: string;
  readonly params: Readonly<Record<string, string>>;
  /** The same with a name that does not exist. */
  readonly absent: Readonly<Record<string, string>>;
  /** The accounts that a key must cover; null: a key for all accounts. */
  readonly accounts: readonly string[] | null;
  /** The role that a key must have to read it. */
  readonly role?: Role;
}

/** Resources by the first part of paths with parameters. A new one is missing here until its owner is defined. */
function listResources(path: string, world: ApiWorld): Thing[] {
  const [, , kind = ''] = path.split('/');
  const { ids } = world;
  const [job = 0] = ids.jobs;
  const getReplay = (id: string) => ids.replays[id]?.[0] ?? '';
  switch (kind) {
    case 'accounts':
      return [OWN, FOREIGN, FAR].map((id) => {
        const told = ids.notifying[id];
        const within = {
          jobNumber: String(job),
          recipient: told?.recipients[0] ?? '',
          message: told?.messages[0] ?? '',
          suppression: told?.suppressions[0] ?? '',
          ...{ kind: 'dispatched', channel: 'email', locale: 'en-GB' },
        };
        return {
          name: id,
          params: { id, ...within },
          absent: { id: 'no-such-account', ...within },
          accounts: [id],
        };
      });
    case 'endpoints': {
      // A replay contains the events of all accounts of its endpoint.
      const replays = path.includes('{replay}');
      const all = { own: [OWN], foreign: [FOREIGN], both: [OWN, FOREIGN], everything: null };
      return Object.entries(all)
        .filter(([id]) => !replays || ids.replays[id])
        .map(([id, accounts]) => ({
          name: id,
          params: { id, replay: getReplay(id) },
          absent: { id: 'no-such-endpoint', replay: getReplay(id) },
          accounts,
        }));
    }
    case 'events':
      return [
        {
          name: 'own event',
          params: { event: ids.events[0] ?? '' },
          absent: { event: `${OWN}.none.1` },
          accounts: [OWN],
        },
        {
          name: 'foreign event',
          params: { event: ids.foreignEvent },
          absent: { event: `${FOREIGN}.none.1` },
          accounts: [FOREIGN],
        },
        {
          name: 'event of the region',
          params: { event: ids.cellEvent },
          absent: { event: '_cell.none.1' },
          accounts: null,
        },
      ];
    case 'attention':
      return [OWN, FOREIGN].map((account) => ({
        name: `parked events of ${account}`,
        params: { id: `us~~endpoint~${account === OWN ? 'own' : 'foreign'}` },
        absent: { id: 'us~~endpoint~no-such-endpoint' },
        accounts: [account],
      }));
    case 'alert-rules':
      return Object.entries({ own: [OWN], foreign: [FOREIGN], everything: null }).map(([id, accounts]) => ({
        ...{ name: id, params: { id }, absent: { id: 'no-such-rule' }, accounts },
      }));
    case 'regions':
      return REGIONS.map((id) => ({
        name: id,
        params: { id },
        absent: { id: 'no-such-region' },
        accounts: null,
      }));
    case 'keys':
      return ROLES.flatMap((role) =>
        (Object.keys(SCOPES) as Scope[]).map((scope) => ({
          name: `${role} ${scope}`,
          params: { id: world.keys[`${role} ${scope}`].id },
          absent: { id: 'aaaaaaaaaaaa' },
          accounts: SCOPES[scope],
          role,
        })),
      );
    default:
      throw new Error(`It is not known here whose /v1/${kind}/… are: say so in listResources.`);
  }
}

/** The expected outcome. */
function expected({ spec }: Route, { may }: Asker, thing: Thing | undefined): Outcome {
  if (spec.role === null) return 'not denied';
  if (!may) return 'unauthorized';
  if (ROLES.indexOf(may.role) < ROLES.indexOf(spec.role)) return 'forbidden';
  if (spec.allAccounts && may.accounts) return 'forbidden';
  if (!thing) return 'not denied';
  const isTheirs =
    may.accounts === null || (thing.accounts?.every((id) => may.accounts?.includes(id)) ?? false);
  const isHighEnough = thing.role === undefined || ROLES.indexOf(may.role) >= ROLES.indexOf(thing.role);
  return isTheirs && isHighEnough ? 'not denied' : 'as if absent';
}

/** A request that the route accepts, with a body of its schema. */
function createSampleRequest({ spec }: Route, world: ApiWorld): Asked {
  const operation = operations.find(
    ({ path, method }) => path === spec.path && method === spec.method.toUpperCase(),
  );
  if (!operation) throw new Error(`${spec.path} is not in the document.`);
  const needsQuery = spec.query !== undefined && !spec.query.safeParse({}).success;
  const fits = ({ body, path }: Asked) =>
    // A secretRef requires a key for all accounts, whatever the role.
    path.includes('?') === needsQuery &&
    !body?.includes('"secretRef"') &&
    (!spec.body || spec.body.safeParse(JSON.parse(body ?? '{}')).success);
  for (const asked of samples(getRequests(operation, world).valid, 7, 500)) {
    if (!fits(asked)) continue;
    const { 'Content-Type': type } = asked.headers;
    return { ...asked, headers: type === undefined ? {} : { 'Content-Type': type } };
  }
  throw new Error(`No body was found that ${spec.path} takes.`);
}

async function ask(
  world: ApiWorld,
  sample: Asked,
  spec: Route['spec'],
  { secret }: Asker,
  params: Record<string, string>,
) {
  const path = spec.path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? 'x'));
  const { method, headers, body } = sample;
  const response = await world.app.fetch(
    new Request(`http://jobwire.test${path}`, {
      method,
      headers: { ...headers, ...(secret === undefined ? {} : { Authorization: `Bearer ${secret}` }) },
      ...(body === undefined ? {} : { body }),
    }),
    // No request counts against the failure limit of another.
    { clientAddress: `10.${asks >> 16}.${(asks >> 8) & 255}.${asks++ & 255}` },
  );
  const text = await response.text();
  return { status: response.status, headers: response.headers, text };
}
let asks = 0;

function getOutcome(status: number): Outcome {
  if (status === 401) return 'unauthorized';
  if (status === 403) return 'forbidden';
  return status === 404 ? 'as if absent' : 'not denied';
}

const makeWorld = () =>
  createApiWorld({ table: createMemoryTable(), history: createMemoryTable(historySchema) });
const getName = ({ spec }: Route) => `${spec.method.toUpperCase()} ${spec.path}`;

describe('every route allows each key exactly what its role and its accounts permit', () => {
  test('matches the permission matrix', { timeout: 120_000 }, async () => {
    const world = await makeWorld();
    const wrong: string[] = [];
    const tally: Record<Outcome, number> = {
      unauthorized: 0,
      forbidden: 0,
      'as if absent': 0,
      'not denied': 0,
    };
    for (const route of routes) {
      const { spec } = route;
      const sample = createSampleRequest(route, world);
      const hasParams = /\{/.test(spec.path) && spec.role !== null;
      const things = hasParams ? listResources(spec.path, world) : [undefined];
      for (const asker of listCallers(world)) {
        for (const thing of things) {
          const want = expected(route, asker, thing);
          const got = await ask(world, sample, spec, asker, { ...thing?.params });
          await world.undo();
          tally[want] += 1;
          const what = `${getName(route)} by ${asker.name} on ${thing?.name}: ${got.status} ${got.text.slice(0, 200)}`;
          const is = spec.role === null ? 'not denied' : getOutcome(got.status);
          // Readable resources may not exist yet.
          const isEmpty = want === 'not denied' && got.status === 404 && isUnbegun(spec.path, thing);
          if (is !== want && !isEmpty) wrong.push(`${what}; expected ${want}`);
          if (got.status >= 500) wrong.push(what);
          if (want === 'as if absent' && thing) {
            const absent = await ask(world, sample, spec, asker, thing.absent);
            await world.undo();
            if (bare(absent.text) !== bare(got.text))
              wrong.push(`${what}; but of what is not there: ${absent.text}`);
            if (named(absent.headers) !== named(got.headers)) wrong.push(`${what}; with other headers`);
          }
        }
      }
    }
    console.log(JSON.stringify({ routes: routes.length, ...tally }));
    expect(wrong.join('\n')).toBe('');
    // Each kind of outcome occurred.
    for (const count of Object.values(tally)) expect(count).toBeGreaterThan(100);
  });
});

/** An account of the other region was never polled; and a region's own log may not exist yet. */
function isUnbegun(path: string, thing: Thing | undefined): boolean {
  return (
    (thing?.name === FAR || thing?.name === FOREIGN || thing?.name === 'nz') &&
    /open-jobs|jobs\/|events/.test(path)
  );
}

const bare = (text: string) => text.replace(/"requestId":"[^"]*"/, '');
const named = (headers: Headers) => [...headers.keys()].sort().join();

describe('a list', () => {
  /** All entries of a list, by `next`. */
  async function requestList(world: ApiWorld, path: string, name: string, secret: string) {
    const all: Record<string, unknown>[] = [];
    let next: string | null = null;
    do {
      const after: string = next === null ? '' : `&after=${encodeURIComponent(next)}`;
      const response = await world.app.request(`${path}?limit=3${after}`, {
        headers: { authorization: `Bearer ${secret}` },
      });
      const body = (await response.json()) as { next: string | null } & Record<
        string,
        Record<string, unknown>[]
      >;
      expect(response.status, JSON.stringify(body)).toBe(200);
      const page = body[name] ?? [];
      all.push(...page);
      next = body.next === next || (name === 'events' && page.length === 0) ? null : body.next;
    } while (next !== null);
    return all;
  }

  test("has only the entries of the key's accounts", async () => {
    const world = await makeWorld();
    const { keys } = world;
    const by = async (path: string, name: string, what: (one: Record<string, unknown>) => unknown) =>
      Object.fromEntries(
        await Promise.all(
          (['all', 'own', 'foreign'] as const).map(async (scope) => {
            const shown = await requestList(world, path, name, keys[`admin ${scope}`].secret);
            return [scope, [...new Set(shown.map(what))].sort()];
          }),
        ),
      );
    expect(await by('/v1/accounts', 'accounts', ({ id }) => id)).toEqual({
      all: [OWN, FAR, MOVING, FOREIGN],
      own: [OWN],
      foreign: [FOREIGN],
    });
    expect(await by('/v1/endpoints', 'endpoints', ({ id }) => id)).toEqual({
      all: ['both', 'everything', 'foreign', 'own'],
      own: ['own'],
      foreign: ['foreign'],
    });
    expect(await by('/v1/keys', 'keys', ({ accounts }) => JSON.stringify(accounts))).toEqual({
      all: ['["acme"]', '["other"]', 'null'],
      own: ['["acme"]'],
      foreign: ['["other"]'],
    });
    expect(await by('/v1/events', 'events', ({ id }) => String(id).split('.')[0])).toEqual({
      all: ['_cell', OWN, FAR, FOREIGN],
      own: [OWN],
      foreign: [FOREIGN],
    });
    const regions = async (scope: Scope) => {
      const response = await world.app.request('/v1/regions', {
        headers: { authorization: `Bearer ${keys[`read ${scope}`].secret}` },
      });
      return ((await response.json()) as { regions: { id: string }[] }).regions.map(({ id }) => id);
    };
    expect([await regions('all'), await regions('own')]).toEqual([[...REGIONS], []]);
    const roles = async (role: Role) => {
      const seen = await requestList(world, '/v1/keys', 'keys', keys[`${role} own`].secret);
      return seen.map(({ role: of }) => of).sort();
    };
    expect(await roles('admin')).toEqual(['admin', 'operate', 'read']);
  });

  test("of deliveries, parked or dead events has only the key's accounts, also after the endpoint follows fewer", async () => {
    const world = await makeWorld();
    const change = await world.app.request('/v1/endpoints/both', {
      method: 'PATCH',
      headers: {
        authorization: `Bearer ${world.keys['admin all'].secret}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify({ accounts: [OWN] }),
    });
    expect(change.status).toBe(200);
    for (const list of ['deliveries', 'parked', 'dead']) {
      const of = async (scope: Scope) => {
        const path = `/v1/endpoints/both/${list}`;
        const shown = await requestList(world, path, list, world.keys[`read ${scope}`].secret);
        return [...new Set(shown.map(({ account }) => account))].sort();
      };
      const own = await of('own');
      expect(
        own.filter((account) => account !== OWN),
        list,
      ).toEqual([]);
    }
    expect(
      (await requestList(world, '/v1/endpoints/both/deliveries', 'deliveries', world.keys['read all'].secret))
        .length,
    ).toBeGreaterThan(
      (await requestList(world, '/v1/endpoints/both/deliveries', 'deliveries', world.keys['read own'].secret))
        .length,
    );
  });
});
