/**
 * Endpoints: webhooks that users create, change and delete. An endpoint is a sink of kind `webhook`; its
 * secrets are stored separately. An operation of several writes orders them so that a crash leaves no
 * effective partial state:
 *
 *   create   lock ── remains of an earlier one gone ── secrets ── cursors ── sink item
 *   change   lock ── secrets ── cursors of added accounts ── sink item ── cursors of removed ones gone
 *   delete   lock ── sink item gone ── cursors, parked and dead events, replays gone ── secrets gone
 *
 * Without its sink item an endpoint does not exist, whatever other items remain. The lock excludes concurrent
 * operations; it expires. A running drain of an earlier endpoint of the same id is fenced off: the new
 * cursors carry a higher token.
 *
 * Secrets and headers apply to the next attempt: a running drain reads them for each attempt
 * (`signing-secrets.ts`).
 *
 * What is NOT guaranteed: that a receiver gets nothing after its endpoint was deleted, paused or changed.
 * Requests in progress arrive. A running drain uses the record it has read (URL, filters) until its lease
 * ends.
 */
import { randomBytes } from 'node:crypto';
import pLimit from 'p-limit';
import type * as z from 'zod';
import { listAccounts } from '../accounts/accounts.ts';
import type { EventType } from '../events/catalogue.ts';
import { dataschemaOf, type EventUrls, sourceOf } from '../events/event.ts';
import type { EventLog, LoggedEvent } from '../log/log.ts';
import {
  beingWorkedOn,
  type Expectation,
  type Refusal,
  revisionOf,
  revisionStill,
  whileLocked,
} from '../resources.ts';
import type { EndpointSecrets } from '../secrets.ts';
import {
  type AccountRef,
  CELL_LOG,
  cellLog,
  cursorPk,
  deadPk,
  drainDue,
  endpointLockPk,
  keys,
  pad,
  parkedPk,
  replayPk,
  sinkPk,
} from '../storage/schema.ts';
import type { Item, Table, Value } from '../storage/table.ts';
import { checkInput } from '../validation.ts';
import { type AttemptDeps, type AttemptReport, attemptNow } from './attempt.ts';
import { EndpointUpdate, NewEndpoint, Rotation } from './endpoint-input.ts';
import { enabled, healthAttributes, toHealth } from './health.ts';
import { refuseUrl } from './outbound.ts';
import { findPlace, type Place, type Placed } from './positions.ts';
import {
  headersFor,
  KEEP_OLD_SECONDS,
  MAX_RETIRING,
  newSigningSecret,
  rotated,
  type SigningSecrets,
} from './signing-secrets.ts';
import { type EventFilter, follows, type Sink, type SinkRecord, sinkAttributes, toSink } from './sink.ts';

/** Dependencies of the endpoint operations. */
export interface EndpointDeps extends AttemptDeps, EventUrls {
  readonly table: Table;
  readonly log: EventLog;
  readonly secrets: SigningSecrets;
  readonly newId: () => string;
  readonly allowPrivateNetworks: boolean;
}

/**
 * Sources of the ids and secrets of new resources. A repeated request gets the same values again, so that it
 * creates the same resource and not a second one. Never for locks and transactions, which need new values
 * each time.
 */
export interface Makings {
  readonly newId: () => string;
  readonly randomBytes: (bytes: number) => Uint8Array;
}

/** The state of an endpoint. `failing`: no event was delivered since the last failure. */
export type EndpointState = 'active' | 'paused' | 'failing' | 'disabled';

/**
 * The representation of an endpoint: without its secrets and without its header values. Times are epoch ms.
 */
export interface Endpoint extends EventFilter {
  readonly region: string;
  readonly id: string;
  /** Built-in sinks are no webhooks, but are readable as endpoints. */
  readonly kind: SinkRecord['kind'];
  /** Target URL; for a built-in sink, the ARN of its topic. */
  readonly url: string;
  /** Accounts that it follows. Empty: all, including later ones. */
  readonly accounts: readonly string[];
  /** Names of the custom headers of each request. */
  readonly headers: readonly string[];
  readonly concurrency: number | null;
  readonly ratePerSecond: number | null;
  readonly description: string | null;
  readonly state: EndpointState;
  readonly paused: boolean;
  /**
   * Whether it was created through the API. An endpoint that the configuration declares can only be changed
   * there.
   */
  readonly managed: boolean;
  /** Incremented with each change. */
  readonly revision: number;
  readonly createdAt: number | null;
  readonly changedAt: number | null;
}

/**
 * Maximum number of a region's accounts for which an endpoint that follows all gets cursors. Other accounts
 * begin with their first event.
 */
const MAX_ACCOUNTS = 10_000;
/**
 * Maximum number of endpoints of a region, and of those that name one account. Concurrent creations can
 * exceed it by a few.
 */
export const MAX_ENDPOINTS = 1_000;
export const MAX_OF_ACCOUNT = 100;
const WRITES_AT_ONCE = 16;
/** Maximum number of attempts of a change after concurrent modifications. */
const ATTEMPTS = 5;

/** The result of creating an endpoint. */
export type Created = {
  readonly kind: 'created';
  readonly endpoint: Endpoint;
  /** The signing secret. Returned here only. */
  readonly secret: string;
  /** Accounts that start later than requested, because the earlier part of their logs is past retention. */
  readonly late: readonly string[];
};

/**
 * Creates an endpoint. Id and secret are generated by default. The default start is now; accounts that are
 * registered later start at their beginning. A rejected request stores nothing. A repeated request with the
 * same makings returns the endpoint created first.
 */
export async function createEndpoint(
  deps: EndpointDeps,
  region: string,
  input: unknown,
  makings: Makings = { newId: deps.newId, randomBytes },
): Promise<Created | Refusal> {
  const checked = checkInput(NewEndpoint, input);
  if (checked.kind === 'refused') return checked;
  /** Identifies the created endpoint when the request is repeated. */
  const creation = makings.newId();
  const {
    id = newEndpointId(makings.newId),
    secret = newSigningSecret(makings.randomBytes),
    start = 'now',
    ...fields
  } = checked.value;
  const there = await deps.table.get(keys.sink(region, id));
  const isMine = there?.creation === creation;
  const record = toRecord(region, id, fields);
  const refusal = isMine ? undefined : await refuseRecord(deps, record);
  if (refusal) return refusal;
  if (there && !isMine) return taken(id);
  const place = await startingAt(deps, region, await followed(deps, record), start);
  if (there) {
    const late = place.kind === 'placed' ? place.late : [];
    return { kind: 'created', endpoint: toEndpoint(there), secret, late };
  }
  if (place.kind !== 'placed') return place;
  const tooMany = refuseMore(await listEndpoints(deps, region), record.accounts, 1);
  if (tooMany) return tooMany;

  return withLock(deps, region, id, async (lock) => {
    if (await deps.table.get(keys.sink(region, id))) return taken(id);
    const now = deps.now();
    const remains = await removeRemains(deps, region, id);
    const fence = Math.max(now, lock.fence + 1, remains.fence + 1);
    const { headers } = fields;
    await deps.secrets.save(region, id, { secrets: [secret], ...(headers ? { headers } : {}), creation });
    await putCursors(deps, record, place.positions, fence);
    const item: Item = {
      ...keys.sink(region, id),
      ...attributesOf(record, fields),
      revision: 1,
      creation,
      createdAt: now,
      changedAt: now,
      // Every drain of this endpoint has a later token than any earlier drain.
      leaseToken: fence,
    };
    const made = await deps.table.transact(
      [
        { check: keys.endpointLock(region, id), when: [['owner', '=', lock.owner]] },
        { put: item, when: [['pk', 'absent']] },
      ],
      deps.newId(),
    );
    if (!made.done) return made.failed.includes(1) ? taken(id) : beingWorkedOn(id);
    return { kind: 'created', endpoint: toEndpoint(item), secret, late: place.late };
  });
}

/**
 * Changes an endpoint: absent fields stay, `null` removes a restriction. Added accounts start now or at
 * `start`. The log positions of removed accounts are deleted.
 */
export async function updateEndpoint(
  deps: EndpointDeps,
  region: string,
  id: string,
  input: unknown,
  expected: Expectation = {},
): Promise<{ readonly kind: 'changed'; readonly endpoint: Endpoint } | Refusal> {
  const checked = checkInput(EndpointUpdate, input);
  if (checked.kind === 'refused') return checked;
  const { start, ...change } = checked.value;
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const found = await findManaged(deps, region, id, expected);
    if (found.kind !== 'found') return found;
    const { item } = found;
    const before = toSink(item);
    const fields = mergedFields(item, change);
    const record = { ...toRecord(region, id, fields), paused: before.paused };
    const keepsHeaders = change.headers === undefined && item.headerNames !== undefined;
    if (keepsHeaders && new URL(record.target).origin !== new URL(before.target).origin) {
      return {
        kind: 'refused',
        reason:
          'headers must be given together with a url on another host: the present headers are meant for the present host only.',
      };
    }
    // Some accounts that it already follows may have been deleted since.
    const named = record.accounts.filter((account) => !before.accounts.includes(account));
    const refusal = await refuseRecord(deps, record, named);
    if (refusal) return refusal;
    const added = (await followed(deps, record)).filter((account) => !follows(before, account));
    if (start !== undefined && added.length === 0) {
      return { kind: 'refused', reason: 'start is for accounts that are added, and none is.' };
    }
    const place = await startingAt(deps, region, added, start ?? 'now');
    if (place.kind !== 'placed') return place;
    const tooMany = named.length > 0 && refuseMore(await listEndpoints(deps, region), named, 0);
    if (tooMany) return tooMany;

    const outcome = await withLock(deps, region, id, async () => {
      const still = await deps.table.get(keys.sink(region, id));
      if (!still || revisionOf(still) !== revisionOf(item)) return undefined;
      if (change.headers !== undefined || record.target !== before.target) {
        const kept = await deps.secrets.load(region, id);
        if (!kept) throw new Error(`The secrets of the endpoint ${id} are missing.`);
        const next = withHeaders(kept, change.headers, before.target, record.target);
        if (next) await deps.secrets.save(region, id, next);
      }
      // A running drain does not follow these accounts yet; the next one has a higher token.
      await putCursors(deps, record, place.positions, Number(still.leaseToken ?? 0) + 1);
      const changed = await deps.table.write({
        update: keys.sink(region, id),
        set: { ...attributesOf(record, fields), revision: revisionOf(item) + 1, changedAt: deps.now() },
        when: [revisionStill(item), ['kind', 'present']],
      });
      if (!changed.done || !changed.item) return undefined;
      // Also completes the cleanup of an earlier, interrupted change.
      if ('accounts' in change) await removeUnfollowed(deps, record);
      return { kind: 'changed' as const, endpoint: toEndpoint(changed.item) };
    });
    if (outcome) return outcome;
  }
  return changedMeanwhile(id);
}

/** Deletes an endpoint with all its data. Repeating the call completes an interrupted deletion. */
export async function deleteEndpoint(
  deps: EndpointDeps,
  region: string,
  id: string,
  expected: Expectation = {},
): Promise<{ readonly kind: 'deleted' } | Refusal> {
  return withLock(deps, region, id, async (lock) => {
    const item = await deps.table.get(keys.sink(region, id));
    if (item) {
      const found = manageable(item, id, expected);
      if (found.kind !== 'found') return found;
      // The fence is stored first: a later endpoint must be able to fence off a drain that still runs.
      const remembered = await deps.table.write({
        update: keys.endpointLock(region, id),
        set: { fence: Math.max(lock.fence, Number(item.leaseToken ?? 0)) },
        when: [['owner', '=', lock.owner]],
      });
      if (!remembered.done) return beingWorkedOn(id);
      const gone = await deps.table.write({
        delete: keys.sink(region, id),
        when: [revisionStill(item), ['kind', 'present']],
      });
      if (!gone.done) return changedMeanwhile(id);
    }
    const left = await removeRest(deps, region, id);
    return item || left ? { kind: 'deleted' } : unknownEndpoint(id);
  });
}

/**
 * Removes a deleted account from the endpoints of its region, because its id can be reused. An endpoint that
 * names no other account is deleted: without accounts it would follow all. Endpoints that the configuration
 * declares stay. Returns false if an endpoint was changed meanwhile; call it again.
 */
export async function removeAccountFromEndpoints(
  deps: EndpointDeps,
  { region, account }: AccountRef,
): Promise<boolean> {
  let done = true;
  for (const { id, accounts, managed, revision } of await listEndpoints(deps, region)) {
    if (!managed || !accounts.includes(account)) continue;
    const others = accounts.filter((each) => each !== account);
    const outcome =
      others.length === 0
        ? await deleteEndpoint(deps, region, id, { revision })
        : await edit(deps, region, id, { revision }, () => ({ accounts: others }));
    done &&= outcome.kind === 'deleted' || outcome.kind === 'changed';
  }
  return done;
}

/**
 * Completes interrupted operations: removes the remains of endpoints whose creation or deletion was
 * incomplete. The host calls it periodically. Returns their number.
 */
export async function tidyEndpoints(deps: EndpointDeps, region: string): Promise<number> {
  const now = deps.now();
  const locks = await deps.table.query({ pk: endpointLockPk(region) });
  const stale = locks.filter(({ until }) => typeof until === 'number' && until <= now);
  for (const { sk: id } of stale) {
    await withLock(deps, region, id, async () => {
      if (!(await deps.table.get(keys.sink(region, id)))) await removeRest(deps, region, id);
    });
  }
  return stale.length;
}

/** Pauses an endpoint: it keeps its log positions and gets no events. */
export function pauseEndpoint(deps: EndpointDeps, region: string, id: string, expected: Expectation = {}) {
  return edit(deps, region, id, expected, ({ paused }) => (paused ? undefined : { paused: true }));
}

/** Resumes a paused endpoint at its positions. */
export function resumeEndpoint(deps: EndpointDeps, region: string, id: string, expected: Expectation = {}) {
  return edit(deps, region, id, expected, ({ paused }) => (paused ? { paused: false } : undefined));
}

/**
 * Enables an endpoint that was disabled or waits after a failure. It resumes at its positions, with one probe
 * first. The record of its disabled event stays, so that its recovery is emitted. Also for sinks that are
 * built in or that the configuration declares.
 */
export function enableEndpoint(deps: EndpointDeps, region: string, id: string, expected: Expectation = {}) {
  const enable = (item: Item) => {
    const health = toHealth(item);
    if (health.disabledAt === null && health.waitUntil <= deps.now()) return undefined;
    return healthAttributes(enabled(health));
  };
  return edit(deps, region, id, expected, enable, { declared: true });
}

/**
 * Rotates an endpoint's signing secret and returns the new one (default: generated). Former secrets also sign
 * for a day by default. Their expiry is evaluated at each read.
 */
export async function rotateSecret(
  deps: EndpointDeps,
  region: string,
  id: string,
  input: unknown = {},
  makings: Pick<Makings, 'randomBytes'> = { randomBytes },
): Promise<{ readonly kind: 'rotated'; readonly secret: string; readonly oldSignUntil: number } | Refusal> {
  const checked = checkInput(Rotation, input);
  if (checked.kind === 'refused') return checked;
  const { secret = newSigningSecret(makings.randomBytes), keepOldSeconds = KEEP_OLD_SECONDS } = checked.value;
  return withLock(deps, region, id, async () => {
    const found = await findManaged(deps, region, id, {});
    if (found.kind !== 'found') return found;
    const kept = await deps.secrets.load(region, id);
    if (!kept) throw new Error(`The secrets of the endpoint ${id} are missing.`);
    const now = deps.now();
    const oldSignUntil = now + keepOldSeconds * 1000;
    const next = rotated(kept, secret, oldSignUntil, now);
    if (!next) {
      const reason = `${MAX_RETIRING} former secrets of the endpoint "${id}" still sign along; wait, or set keepOldSeconds to 0.`;
      return { kind: 'conflict', reason };
    }
    await deps.secrets.save(region, id, next);
    return { kind: 'rotated', secret, oldSignUntil };
  });
}

/** Returns an endpoint, or `undefined`. */
export async function readEndpoint(
  deps: Pick<EndpointDeps, 'table'>,
  region: string,
  id: string,
): Promise<Endpoint | undefined> {
  const item = await deps.table.get(keys.sink(region, id));
  return item?.kind === 'webhook' ? toEndpoint(item) : undefined;
}

/** Returns the endpoints of a region, by id. */
export async function listEndpoints(deps: Pick<EndpointDeps, 'table'>, region: string): Promise<Endpoint[]> {
  const items = await deps.table.query({ pk: sinkPk(region) });
  return items.filter(({ kind }) => kind === 'webhook').map(toEndpoint);
}

/**
 * Returns a page of the visible endpoints and built-in sinks of several regions: by id, then by region, after
 * the given one. `next` identifies the last one of the page if more follow.
 */
export async function pageOfEndpoints(
  { table }: Pick<EndpointDeps, 'table'>,
  regions: readonly string[],
  page: {
    readonly limit: number;
    readonly after?: Pick<Endpoint, 'id' | 'region'> | undefined;
    readonly shows: (endpoint: Endpoint) => boolean;
  },
): Promise<{ readonly endpoints: Endpoint[]; readonly next: Pick<Endpoint, 'id' | 'region'> | null }> {
  const { limit, after, shows } = page;
  const enough = limit + 1;
  const byRegion = await Promise.all(
    regions.map(async (region) => {
      const found: Endpoint[] = [];
      let bound = after && (region <= after.region ? { after: after.id } : { from: after.id });
      for (;;) {
        const items = await table.query({ pk: sinkPk(region), ...bound, limit: enough });
        found.push(
          ...items
            .filter(({ kind }) => kind !== undefined)
            .map(toEndpoint)
            .filter(shows),
        );
        const last = items.at(-1);
        if (found.length >= enough || items.length < enough || !last) return found;
        bound = { after: last.sk };
      }
    }),
  );
  const all = byRegion.flat().sort((a, b) => compare(a.id, b.id) || compare(a.region, b.region));
  const endpoints = all.slice(0, limit);
  return { endpoints, next: all.length > limit ? (endpoints.at(-1) ?? null) : null };
}

/** Compares as the table sorts: ids are ASCII. */
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/**
 * Sends one `jobwire.ping` at once, signed like every event, also to a paused or disabled endpoint. It is in
 * no event log, but in the delivery log. Cursors and health do not change.
 */
export async function pingEndpoint(
  deps: EndpointDeps,
  region: string,
  id: string,
): Promise<({ readonly kind: 'attempted' } & AttemptReport) | Refusal> {
  const item = await deps.table.get(keys.sink(region, id));
  if (item?.kind !== 'webhook') return unknownEndpoint(id);
  const event = pingOf(region, id, deps);
  return { kind: 'attempted', ...(await attemptNow(deps, toSink(item), event, 'ping')) };
}

function pingOf(region: string, endpoint: string, deps: EndpointDeps): LoggedEvent {
  const time = deps.now();
  const id = `ping.${deps.newId()}`;
  const type: EventType = 'jobwire.ping';
  const json = JSON.stringify({
    specversion: '1.0',
    id,
    source: sourceOf(cellLog(region), deps),
    type,
    time: new Date(time).toISOString(),
    // It has no place in a log, and sorts before all events that have one.
    sequence: pad(0, 20),
    dataschema: dataschemaOf(type, deps),
    datacontenttype: 'application/json',
    data: { region, endpoint },
  });
  return { id, account: CELL_LOG, region, sequence: 0, type, time, json };
}

/**
 * Returns the secrets with the headers after a change; `undefined` if nothing changes. `headers` absent:
 * unchanged. If URL and headers change together, requests to the former URL keep the former headers.
 */
function withHeaders(
  kept: EndpointSecrets,
  headers: Readonly<Record<string, string>> | null | undefined,
  formerUrl: string,
  url: string,
): EndpointSecrets | undefined {
  if (headers === undefined && !kept.former) return undefined;
  const { headers: _, former: __, ...others } = kept;
  const current = headersFor(kept, formerUrl);
  const next = headers === undefined ? current : headers;
  return {
    ...others,
    ...(next && Object.keys(next).length > 0 ? { headers: next } : {}),
    ...(headers !== undefined && url !== formerUrl ? { former: { url: formerUrl, headers: current } } : {}),
  };
}

type Fields = Omit<z.infer<typeof NewEndpoint>, 'id' | 'secret' | 'start'>;

function toRecord(region: string, id: string, fields: Fields): SinkRecord {
  const { url, accounts = [], types = [], headers: _, description: __, ...others } = fields;
  const known = Object.entries(others).filter(([, value]) => value !== undefined);
  return {
    ...Object.fromEntries(known),
    ...{ region, id, kind: 'webhook', target: url, paused: false },
    accounts: [...new Set(accounts)],
    types: [...new Set(types)],
  };
}

/** Converts a record to attributes. Header values are stored with the secrets. */
function attributesOf(record: SinkRecord, fields: Fields): { readonly [name: string]: Value | undefined } {
  return {
    ...sinkAttributes(record),
    headerNames: fields.headers && Object.keys(fields.headers),
    description: fields.description,
  };
}

/** Merges a change into the fields of an endpoint. Header values are not known here, only their names. */
function mergedFields(item: Item, change: Omit<EndpointUpdate, 'start'>): Fields {
  const { target, accounts, types, orderGroups, origins, jobFields, concurrency, ratePerSecond } =
    toSink(item);
  const headerNames = item.headerNames as readonly string[] | undefined;
  const before = {
    ...{ url: target, orderGroups, origins, jobFields, concurrency, ratePerSecond },
    accounts: accounts.length > 0 ? accounts : undefined,
    types: types.length > 0 ? types : undefined,
    headers: headerNames && Object.fromEntries(headerNames.map((name) => [name, ''])),
    description: item.description,
  };
  const merged = Object.entries({ ...before, ...withoutUndefined(change) });
  return Object.fromEntries(merged.filter(([, value]) => value !== null && value !== undefined)) as Fields;
}

function withoutUndefined(fields: object): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** Converts the item of an endpoint, or of a built-in sink, to its representation. */
export function toEndpoint(item: Item): Endpoint {
  const sink = toSink(item);
  const { region, id, kind, target, accounts, types, orderGroups, origins, jobFields, paused } = sink;
  const number = (name: string) => (typeof item[name] === 'number' ? item[name] : null);
  return {
    ...{ region, id, kind, url: target, accounts, types, paused, state: stateOf(sink) },
    orderGroups: orderGroups ?? [],
    origins: origins ?? [],
    jobFields: jobFields ?? {},
    headers: (item.headerNames as readonly string[] | undefined) ?? [],
    concurrency: sink.concurrency ?? null,
    ratePerSecond: sink.ratePerSecond ?? null,
    description: typeof item.description === 'string' ? item.description : null,
    managed: isManaged(item),
    revision: revisionOf(item),
    createdAt: number('createdAt'),
    changedAt: number('changedAt'),
  };
}

/** Returns the state from an item's data. Pure. */
export function stateOf({ paused, health }: Pick<Sink, 'paused' | 'health'>): EndpointState {
  if (health.disabledAt !== null) return 'disabled';
  if (paused) return 'paused';
  return health.failingSince === null ? 'active' : 'failing';
}

function newEndpointId(newId: () => string): string {
  return `ep-${newId()
    .replace(/[^a-z0-9]/gi, '')
    .toLowerCase()
    .slice(0, 24)}`;
}

const isManaged = (item: Item): boolean => item.createdAt !== undefined;

/** Validates what the input schema cannot check. */
async function refuseRecord(
  deps: EndpointDeps,
  record: SinkRecord,
  named = record.accounts,
): Promise<Refusal | undefined> {
  const url = refuseEndpointUrl(record.target, deps.allowPrivateNetworks);
  if (url) return { kind: 'refused', reason: url };
  return refuseAccounts(deps.table, record.region, named, 'accounts');
}

/**
 * Returns why no further endpoint is allowed in a region, or for one of the named accounts. Every endpoint of
 * an account adds a write per event.
 */
function refuseMore(
  there: readonly Endpoint[],
  accounts: readonly string[],
  more: number,
): Refusal | undefined {
  if (there.length + more > MAX_ENDPOINTS) {
    const reason = `The region has ${MAX_ENDPOINTS} endpoints, and can have no more; delete one first.`;
    return { kind: 'conflict', reason };
  }
  const full = accounts.find(
    (account) => there.filter((endpoint) => endpoint.accounts.includes(account)).length >= MAX_OF_ACCOUNT,
  );
  if (full === undefined) return undefined;
  const reason = `${MAX_OF_ACCOUNT} endpoints name the account "${full}", and no more can; delete one first.`;
  return { kind: 'conflict', reason };
}

/** Returns why the accounts cannot be followed: names the first unknown account. */
export async function refuseAccounts(
  table: Table,
  region: string,
  accounts: readonly string[],
  field: string,
): Promise<Refusal | undefined> {
  const known = await table.getMany(accounts.map((account) => keys.account({ region, account })));
  const stranger = accounts.find((account) => !known.some(({ sk }) => sk === account));
  if (stranger === undefined) return undefined;
  return {
    kind: 'refused',
    reason: `${field} must name accounts that are registered, and "${stranger}" is not.`,
  };
}

/**
 * Returns the logs that a sink follows now: the accounts, and the cell's own log for one that follows
 * everything.
 */
export async function followed(
  deps: Pick<EndpointDeps, 'table' | 'log'>,
  sink: SinkRecord,
): Promise<readonly string[]> {
  if (sink.accounts.length > 0) return sink.accounts;
  const accounts = await listAccounts(deps.table, sink.region, MAX_ACCOUNTS);
  const cell = await deps.log.head(cellLog(sink.region));
  return [...accounts.map(({ account }) => account), ...(cell ? [CELL_LOG] : [])];
}

/** Returns the start positions of accounts. Accounts without one start now. */
async function startingAt(
  deps: EndpointDeps,
  region: string,
  accounts: readonly string[],
  start: Place,
): Promise<Extract<Placed, { kind: 'placed' }> | Refusal> {
  const place = await findPlace(deps.log, region, accounts, start, deps.now());
  if (place.kind === 'refused') return { kind: 'refused', reason: `start ${place.reason}.` };
  const others = accounts.filter((account) => !place.positions.has(account));
  const now = await findPlace(deps.log, region, others, 'now', deps.now());
  const more = now.kind === 'placed' ? now.positions : [];
  return { ...place, positions: new Map([...place.positions, ...more]) };
}

/**
 * Writes the cursors of a sink, and overwrites remains of an earlier one. They are due at once, because
 * events may arrive before the sink exists to be woken. Drains of a token below the fence cannot move them.
 */
async function putCursors(
  deps: EndpointDeps,
  { region, id }: SinkRecord,
  positions: ReadonlyMap<string, number>,
  fence: number,
): Promise<void> {
  await pLimit(WRITES_AT_ONCE).map([...positions], ([account, position]) => {
    const due = drainDue(region, id, account, deps.now());
    return deps.table.write({
      put: { ...keys.cursor(region, id, account), sink: id, position, fence, ...due },
    });
  });
}

/** Partitions of all data of a sink besides its record. Its history expires by TTL. */
const partsOf = (region: string, id: string): readonly string[] => [
  cursorPk(region, id),
  parkedPk(region, id),
  deadPk(region, id),
  replayPk(region, id),
];

/**
 * Deletes the remains of a deleted endpoint. Returns the number of items, and the highest fence among its
 * cursors.
 */
async function removeRemains(
  { table }: EndpointDeps,
  region: string,
  id: string,
): Promise<{ readonly count: number; readonly fence: number }> {
  const parts = await Promise.all(partsOf(region, id).map((pk) => table.query({ pk })));
  const items = parts.flat();
  await removeAll(table, items);
  return { count: items.length, fence: Math.max(0, ...items.map(({ fence }) => Number(fence ?? 0))) };
}

/** Deletes all data of an endpoint without a record. False if there was none. */
async function removeRest(deps: EndpointDeps, region: string, id: string): Promise<boolean> {
  const remains = await removeRemains(deps, region, id);
  // Unreadable secrets exist as well.
  const secrets = await deps.secrets.load(region, id).catch(() => true);
  if (secrets) await deps.secrets.remove(region, id);
  return remains.count > 0 || Boolean(secrets);
}

/** Deletes the cursors, including those of replays, of accounts that a sink does not follow. */
async function removeUnfollowed({ table }: EndpointDeps, record: SinkRecord): Promise<void> {
  const cursors = await table.query({ pk: cursorPk(record.region, record.id) });
  await removeAll(
    table,
    cursors.filter(({ sk }) => !follows(record, sk.split('#')[0] ?? '')),
  );
}

async function removeAll(table: Table, items: readonly Item[]): Promise<void> {
  await pLimit(WRITES_AT_ONCE).map(items, ({ pk, sk }) => table.write({ delete: { pk, sk } }));
}

/**
 * Updates the item of an endpoint on the condition that it is unchanged since the read. Writes nothing if the
 * item is already as required.
 */
async function edit(
  deps: EndpointDeps,
  region: string,
  id: string,
  expected: Expectation,
  decide: (item: Item) => { readonly [attribute: string]: Value | undefined } | undefined,
  options: { readonly declared?: boolean } = {},
): Promise<{ readonly kind: 'changed'; readonly endpoint: Endpoint } | Refusal> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const found = await findManaged(deps, region, id, expected, options);
    if (found.kind !== 'found') return found;
    const { item } = found;
    const set = decide(item);
    if (!set) return { kind: 'changed', endpoint: toEndpoint(item) };
    const changed = await deps.table.write({
      update: keys.sink(region, id),
      set: { ...set, revision: revisionOf(item) + 1, changedAt: deps.now() },
      when: [revisionStill(item), ['kind', 'present']],
    });
    if (changed.done && changed.item) return { kind: 'changed', endpoint: toEndpoint(changed.item) };
  }
  return changedMeanwhile(id);
}

type Found = { readonly kind: 'found'; readonly item: Item } | Refusal;

async function findManaged(
  { table }: EndpointDeps,
  region: string,
  id: string,
  expected: Expectation,
  options: { readonly declared?: boolean } = {},
): Promise<Found> {
  const item = await table.get(keys.sink(region, id));
  return item ? manageable(item, id, expected, options) : unknownEndpoint(id);
}

function manageable(
  item: Item,
  id: string,
  expected: Expectation,
  options: { readonly declared?: boolean } = {},
): Found {
  if (options.declared) return unlessChanged(item, id, expected);
  if (item.kind !== 'webhook') return unknownEndpoint(id);
  if (!isManaged(item)) {
    const reason = `The endpoint "${id}" is declared in the configuration file: change or remove it under "endpoints" there, and start again.`;
    return { kind: 'conflict', reason };
  }
  return unlessChanged(item, id, expected);
}

function unlessChanged(item: Item, id: string, { revision = revisionOf(item) }: Expectation): Found {
  return revision === revisionOf(item) ? { kind: 'found', item } : changedMeanwhile(id);
}

interface Lock {
  readonly owner: string;
  /** The highest lease token of an earlier endpoint of this id. */
  readonly fence: number;
}

/** Runs an operation on an endpoint under its lock, exclusively. */
export function withLock<T>(
  deps: Pick<EndpointDeps, 'table' | 'newId' | 'now'>,
  region: string,
  id: string,
  work: (lock: Lock) => Promise<T>,
): Promise<T | Refusal> {
  return whileLocked(deps, keys.endpointLock(region, id), id, ({ owner, item }) =>
    work({ owner, fence: Number(item?.fence ?? 0) }),
  );
}

const unknownEndpoint = (id: string): Refusal => ({
  kind: 'unknown',
  reason: `There is no endpoint "${id}".`,
});
const taken = (id: string): Refusal => ({
  kind: 'conflict',
  reason: `id must be new, and there is an endpoint "${id}" already.`,
});
const changedMeanwhile = (id: string): Refusal => ({
  kind: 'conflict',
  why: 'changed',
  reason: `The endpoint "${id}" was changed meanwhile; read it again.`,
});

/** Returns why a URL is not accepted for an endpoint, as one sentence. */
function refuseEndpointUrl(url: string, allowPrivateNetworks: boolean): string | undefined {
  const refusal = refuseUrl(url, allowPrivateNetworks);
  return refusal && `url is refused: ${refusal.replace(/\.$/, '')}.`;
}
