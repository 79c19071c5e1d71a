/** Accounts and sinks that the configuration declares. */
import { createHash } from 'node:crypto';
import pLimit from 'p-limit';
import { type Account, listAccounts, registerAccount } from '../shared/accounts/accounts.ts';
import { type AccountSecrets, isKept } from '../shared/accounts/credentials.ts';
import { breakDeletion, continueDeletion } from '../shared/accounts/deletion.ts';
import { withEventDefaults } from '../shared/accounts/event-settings.ts';
import type { AccountDeps } from '../shared/accounts/managed-accounts.ts';
import { hashClientId, listSharedCredentials } from '../shared/accounts/shared-credentials.ts';
import { type Config, ConfigError } from '../shared/config.ts';
import { breakLease } from '../shared/delivery/lease.ts';
import { registerSinks, type SinkRecord, toSink } from '../shared/delivery/sink.ts';
import { startFeed } from '../shared/log/feed-forwarding.ts';
import { newEpoch } from '../shared/log/head.ts';
import { cellLog, deletionPk, getDrainNames, keys, sinkPk } from '../shared/storage/schema.ts';
import { resumePolls } from '../shared/tracking/claims.ts';
import type { HostOptions } from './host-options.ts';
import { StartError } from './start-error.ts';

/** Maximum number of accounts of one region that are listed. */
const MAX_ACCOUNTS = 10_000;
/** Maximum number of accounts or sinks that are written concurrently. The writer commits concurrent writes together. */
const AT_ONCE = 32;
/** Maximum time that a start waits for the deletion of an account that is declared again. */
const START_MS = 600_000;
/**
 * Id of the sink that publishes to a cell's SNS topic. There is no standard topic here: the embedded SNS delivers to SQS only, for which
 * the FIFO topic is better.
 */
const SNS_SINK = 'sns';

/** Reads credentials of declared accounts from the configuration, and those of other accounts from the table, where they are encrypted. */
export function withDeclared(kept: AccountSecrets, config: Config): AccountSecrets {
  const find = (secretRef: string) => config.accounts.find(({ id }) => id === secretRef);
  return {
    ...kept,
    isRemoved: (secretRef) => !isKept(secretRef) && !find(secretRef),
    async read(secretRef) {
      if (isKept(secretRef)) return kept.read(secretRef);
      const account = find(secretRef);
      if (!account) throw new Error(`The account ${secretRef} is not in the configuration.`);
      const { clientId, clientSecret } = account;
      const version = createHash('sha256').update(`${clientId}\n${clientSecret}`).digest('hex');
      return { clientId, clientSecret, version };
    },
  };
}

/**
 * Creates accounts and sinks that the configuration declares. Those it no longer declares are paused and never deleted: their log,
 * snapshots and cursor stay. Accounts and sinks created through the API are not affected.
 */
export async function reconcile(options: HostOptions, accounts: AccountDeps): Promise<void> {
  const { config, table } = options;
  const { log } = accounts;
  const now = Date.now();
  const regions = Object.keys(config.regions);
  const all = await Promise.all(regions.map((region) => listAccounts(table, region, MAX_ACCOUNTS)));
  checkIds(config, all.flat());
  // In all regions first: the deletion removes the id from API keys, which name no region.
  for (const region of regions) await completeDeletions(options, accounts, region);
  for (const region of regions) {
    const declared = config.accounts.filter((account) => account.region === region);
    const sinks = listDeclaredSinks(options, region);
    const known = all.flat().filter((account) => account.region === region);
    await startFeed(table, region, { epoch: newEpoch(now) });
    for (const { sk: id, createdAt } of await table.getMany(sinks.map(({ id }) => keys.sink(region, id)))) {
      if (createdAt === undefined) continue;
      throw new ConfigError(
        `endpoints: the id "${id}" belongs to an endpoint that was created through the API. Choose another id.`,
      );
    }
    // Sinks before new accounts, so that they receive those accounts from the beginning.
    await registerSinks(table, log, sinks, [...known, cellLog(region)], now);
    const limit = pLimit(AT_ONCE);
    await limit.map(declared, async ({ id, clientId, pollIntervalSeconds, events }) => {
      const polling = {
        secretRef: id,
        pollIntervalSeconds,
        paused: false,
        clientHash: hashClientId(clientId),
      };
      const account = { region, account: id, ...polling, events: withEventDefaults(events) };
      await registerAccount(table, log, account, { now, epoch: newEpoch(now) });
      if (options.exclusive) await resumePolls(table, account, now);
    });
    const accountIds = new Set(declared.map(({ id }) => id));
    await limit.map(known, async (account) => {
      if (options.exclusive && account.managed) await resumePolls(table, account, now);
      if (!account.managed && !accountIds.has(account.account)) {
        await registerAccount(table, log, { ...account, paused: true }, { now, epoch: newEpoch(now) });
      }
    });
    const active = (await listAccounts(table, region, MAX_ACCOUNTS)).filter(({ paused }) => !paused);
    for (const warning of listSharedCredentials(active)) options.onWarning?.(warning);
    const sinkIds = new Set(sinks.map(({ id }) => id));
    await limit.map(await table.query({ pk: sinkPk(region) }), async (item) => {
      const sink = toSink(item);
      // The parts of a divided sink have leases of their own.
      const mayBeLeased = item.leaseUntil !== undefined || getDrainNames(sink.id).length > 1;
      if (options.exclusive && mayBeLeased) await breakLease(table, sink);
      // Sinks created through the API are not part of the file. Neither is the notifications sink.
      const isRemoved = item.createdAt === undefined && !sinkIds.has(sink.id);
      if (isRemoved && !sink.paused && sink.kind !== 'notifications') {
        await table.write({ update: keys.sink(region, sink.id), set: { paused: true } });
      }
    });
  }
}

/** Throws if a declared id belongs to another account, in any region: paths and API keys name accounts only by their ids. */
function checkIds(config: Config, known: readonly Account[]): void {
  const declared = new Map(config.accounts.map(({ id, region }) => [id, region]));
  for (const { account: id, region, managed } of known) {
    const declaredRegion = declared.get(id);
    if (declaredRegion === undefined || (declaredRegion === region && !managed)) continue;
    const others = known.filter((other) => other.account === id && other.region !== region);
    throw new ConfigError(
      [
        `accounts: the id "${id}" belongs to an account in the region ${region}${managed ? ', which was created through the API' : ''}.`,
        `${managed || others.length > 0 ? 'Choose' : 'Set that region again, or choose'} another id.`,
        `To delete that account, remove the entry, ${others.length > 0 ? `put ${region} first in regions, ` : ''}start Jobwire, and run jobwire accounts delete ${id} --yes.`,
        'Then add the entry again, and restart Jobwire.',
      ].join(' '),
    );
  }
}

/** Completes the deletions of former accounts of a region whose ids the configuration declares. */
async function completeDeletions(options: HostOptions, accounts: AccountDeps, region: string): Promise<void> {
  const { config, table, exclusive } = options;
  const declared = new Set(config.accounts.map(({ id }) => id));
  for (const { sk: id } of await table.query({ pk: deletionPk(region) })) {
    if (!declared.has(id)) continue;
    // The former account of this id is final: no other process works on this table, or its deletion was long ago.
    if (exclusive) await breakDeletion(table, { region, account: id });
    const deps = exclusive ? { ...accounts, lateWritesMs: 0 } : accounts;
    const { kind } = await continueDeletion(deps, { region, account: id }, Date.now() + START_MS);
    if (kind === 'free') continue;
    throw new StartError(
      `accounts: the id "${id}" belongs to an account whose deletion is not complete. Start again in a few minutes.`,
    );
  }
}

/** Returns the sinks of a region that the configuration declares. */
export function listDeclaredSinks({ config, sns }: HostOptions, region: string): SinkRecord[] {
  const topicArn = sns?.topicArns[region];
  const ids = config.accounts.filter((account) => account.region === region).map(({ id }) => id);
  const webhooks = config.endpoints.flatMap((endpoint): SinkRecord[] => {
    const { id, url, secret: _secret, headers: _headers, accounts, types = [], ...filters } = endpoint;
    const followed = accounts?.filter((account) => ids.includes(account)) ?? [];
    if (accounts && followed.length === 0) return [];
    return [
      { region, id, kind: 'webhook', target: url, accounts: followed, types, paused: false, ...filters },
    ];
  });
  if (topicArn === undefined) return webhooks;
  const topic: SinkRecord = {
    region,
    id: SNS_SINK,
    kind: 'sns',
    target: topicArn,
    accounts: [],
    types: [],
    paused: false,
  };
  return [topic, ...webhooks];
}
