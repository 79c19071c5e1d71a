/** Operations on an existing endpoint that leave its settings: pause, resume, enable, rotate its secret, ping. */
import { randomBytes } from 'node:crypto';
import { isEndpointKind } from '../built-in-sinks.ts';
import type { EventType } from '../events/catalogue.ts';
import { getDataSchemaUrl, getSource } from '../events/event.ts';
import type { LoggedEvent } from '../log/log.ts';
import { type Expectation, type Rejection, rejected } from '../resources.ts';
import { CELL_LOG, cellLog, getDrainNames, isPart, keys, pad } from '../storage/schema.ts';
import type { Item } from '../storage/table.ts';
import { checkInput } from '../validation.ts';
import { attemptNow } from './attempt.ts';
import { requestDrain } from './endpoint-data.ts';
import {
  type EndpointDeps,
  endpointNotFound,
  findManaged,
  type ResourceGenerators,
  updateEndpointItem,
  withLock,
} from './endpoint-edits.ts';
import { Rotation } from './endpoint-input.ts';
import type { AttemptReport } from './endpoint-views.ts';
import { enableHealth, healthAttributes, resumeHealth, toHealth } from './health.ts';
import { GRACE_PERIOD_SECONDS, MAX_RETIRING, newSigningSecret, rotateSecrets } from './signing-secrets.ts';
import { toSink } from './sink.ts';

/** Pauses an endpoint: it keeps its log positions and gets no events. */
export function pauseEndpoint(deps: EndpointDeps, region: string, id: string, expected: Expectation = {}) {
  return updateEndpointItem(deps, region, id, expected, ({ paused }) =>
    paused ? undefined : { paused: true },
  );
}

/** Resumes a paused endpoint at its positions: see {@link resumeHealth}. */
export function resumeEndpoint(deps: EndpointDeps, region: string, id: string, expected: Expectation = {}) {
  return updateEndpointItem(deps, region, id, expected, (item) =>
    item.paused ? { paused: false, ...resumeHealth(item, deps.now()) } : undefined,
  );
}

/**
 * Enables an endpoint that was disabled or waits after a failure. It resumes at its positions, with one probe
 * first. A failing endpoint with nothing left to deliver is active after the next drain. The record of its disabled
 * event stays, so that its recovery is emitted. Also for sinks that are built in or that the configuration declares.
 */
export async function enableEndpoint(
  deps: EndpointDeps,
  region: string,
  id: string,
  expected: Expectation = {},
) {
  const enable = (item: Item) => {
    const health = toHealth(item);
    if (health.disabledAt === null && health.waitUntil <= deps.now()) return undefined;
    return healthAttributes(enableHealth(health));
  };
  const names = getDrainNames(id).filter(isPart);
  for (const part of await deps.table.getMany(names.map((name) => keys.sinkState(region, name)))) {
    const set = enable(part);
    const { pk, sk } = part;
    if (set) await deps.table.write({ update: { pk, sk }, set, when: [['pk', 'present']] });
  }
  const outcome = await updateEndpointItem(deps, region, id, expected, enable, { declared: true });
  if (outcome.kind === 'changed') await requestDrain(deps, { region, id });
  return outcome;
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
  makings: Pick<ResourceGenerators, 'randomBytes'> = { randomBytes },
): Promise<
  { readonly kind: 'rotated'; readonly secret: string; readonly previousSecretsExpireAt: number } | Rejection
> {
  const checked = checkInput(Rotation, input);
  if (checked.kind === 'rejected') return checked;
  const { secret = newSigningSecret(makings.randomBytes), gracePeriodSeconds = GRACE_PERIOD_SECONDS } =
    checked.value;
  return withLock(deps, region, id, async () => {
    const found = await findManaged(deps, region, id, {});
    if (found.kind !== 'found') return found;
    if (found.item.kind !== 'webhook') {
      return rejected(`The endpoint "${id}" is a queue, and has no signing secret.`);
    }
    const kept = await deps.secrets.load(region, id);
    if (!kept) throw new Error(`The secrets of the endpoint ${id} are missing.`);
    const now = deps.now();
    const previousSecretsExpireAt = now + gracePeriodSeconds * 1000;
    const next = rotateSecrets(kept, secret, previousSecretsExpireAt, now);
    if (!next) {
      const reason = `${MAX_RETIRING} former secrets of the endpoint "${id}" are still valid, which is the maximum. Wait, or set gracePeriodSeconds to 0.`;
      return { kind: 'conflict', reason };
    }
    await deps.secrets.save(region, id, next);
    return { kind: 'rotated', secret, previousSecretsExpireAt };
  });
}

/**
 * Sends one `jobwire.ping` at once, in the same form as any other event, even to a paused or disabled endpoint. It is in
 * no event log, but in the delivery log. Cursors and health do not change.
 */
export async function pingEndpoint(
  deps: EndpointDeps,
  region: string,
  id: string,
): Promise<({ readonly kind: 'attempted' } & AttemptReport) | Rejection> {
  const item = await deps.table.get(keys.sink(region, id));
  if (!item || !isEndpointKind(item.kind)) return endpointNotFound(id);
  const event = createPing(region, id, deps);
  return { kind: 'attempted', ...(await attemptNow(deps, toSink(item), event, 'ping')) };
}

function createPing(region: string, endpoint: string, deps: EndpointDeps): LoggedEvent {
  const time = deps.now();
  const id = `ping.${deps.newId()}`;
  const type: EventType = 'jobwire.ping';
  const json = JSON.stringify({
    specversion: '1.0',
    id,
    source: getSource(cellLog(region), deps),
    type,
    time: new Date(time).toISOString(),
    // It has no place in a log, and sorts before all events that have one.
    sequence: pad(0, 20),
    dataschema: getDataSchemaUrl(type, deps),
    datacontenttype: 'application/json',
    data: { region, endpoint },
  });
  return { id, account: CELL_LOG, region, sequence: 0, type, time, json };
}
