/**
 * All cells in one process: the use-cases of the Lambdas, run by timers and in-process wake-ups. A wake-up is only a hint, as on AWS: the
 * next tick finds in the table whatever a wake-up missed.
 */
import { createHash, randomUUID } from 'node:crypto';
import type { SNSClient, SNSClientConfig } from '@aws-sdk/client-sns';
import pLimit from 'p-limit';
import type { TestDeps } from '../shared/accounts/account-test.ts';
import { listAccounts, registerAccount } from '../shared/accounts/accounts.ts';
import { createConnector } from '../shared/accounts/connect.ts';
import { type AccountSecrets, isKept, openLocalAccountSecrets } from '../shared/accounts/credentials.ts';
import { breakDeletion, workOffDeletion, workOffDeletions } from '../shared/accounts/deletion.ts';
import type { AccountDeps } from '../shared/accounts/managed-accounts.ts';
import { createReferenceRemover } from '../shared/api/account-references.ts';
import { createGrowthSignal, type GrowthSignal } from '../shared/api/growth-signal.ts';
import { type Config, ConfigError } from '../shared/config.ts';
import { createDeliveryLog, type DeliveryLog } from '../shared/delivery/delivery-log.ts';
import { drainSink } from '../shared/delivery/drain.ts';
import type { DrainReport, NewWork } from '../shared/delivery/drain-deps.ts';
import type { EndpointDeps } from '../shared/delivery/endpoint-edits.ts';
import { tidyEndpoints } from '../shared/delivery/endpoints.ts';
import { isReady } from '../shared/delivery/health.ts';
import { breakLease } from '../shared/delivery/lease.ts';
import { type ConnectionPool, createConnectionPool } from '../shared/delivery/outbound.ts';
import {
  createSigningReader,
  openLocalSigningSecrets,
  type SigningReader,
  withCacheInvalidation,
} from '../shared/delivery/signing-secrets.ts';
import {
  DEFAULT_CONCURRENCY,
  follows,
  listSinks,
  registerSink,
  type Sink,
  type SinkPort,
  type SinkRecord,
  toSink,
} from '../shared/delivery/sink.ts';
import { createSnsSink } from '../shared/delivery/sns.ts';
import { listDueSinks, listPendingWakes, wakeSinks } from '../shared/delivery/wakes.ts';
import { createWebhookSink } from '../shared/delivery/webhook.ts';
import { createForwarder, startFeed } from '../shared/log/feed-forwarding.ts';
import { newEpoch } from '../shared/log/head.ts';
import { createEventLog, type EventLog, shareReads } from '../shared/log/log.ts';
import { createNotificationsSink } from '../shared/notifications/notifications-sink.ts';
import { oldestUnsent } from '../shared/notifications/oldest-unsent.ts';
import { syncOwnUser } from '../shared/notifications/own-user.ts';
import type { SendReport } from '../shared/notifications/send-report.ts';
import { sendDue } from '../shared/notifications/sender.ts';
import { unfollowAccount } from '../shared/notifications/settings.ts';
import { createSnsSmsTransport } from '../shared/notifications/sms.ts';
import { createSmtpTransport } from '../shared/notifications/smtp.ts';
import type { EmailTransport, SmsTransport } from '../shared/notifications/types.ts';
import type { AccountRef } from '../shared/storage/schema.ts';
import { cellLog, keys, sinkPk } from '../shared/storage/schema.ts';
import type { Table } from '../shared/storage/table.ts';
import { breakClaim, claimDue } from '../shared/tracking/claims.ts';
import { pollAccount } from '../shared/tracking/poll.ts';
import type { PollReport } from '../shared/tracking/poll-report.ts';
import { DEFAULT_TRACKING, type TrackingSettings } from '../shared/tracking/schedule.ts';

/** Options of a host. */
export interface HostOptions {
  readonly config: Config;
  readonly table: Table;
  /** The history table: data that is only read by users. */
  readonly history: Table;
  /** Key (32 bytes) that encrypts the secrets of endpoints created through the API. */
  readonly secretKey: Uint8Array;
  /** SNS topics to publish to. Absent: no events are published to SNS. */
  readonly sns?: { readonly client: SNSClient; readonly topicArns: Readonly<Record<string, string>> };
  /** Base URL of `dataschema` of events, and of links in e-mails. */
  readonly publicUrl: string;
  /** Credentials for SMS. Default: from the environment. */
  readonly smsCredentials?: SNSClientConfig['credentials'];
  /** Whether no other process works on this table. A lease or claim that is still held then belongs to a killed process. */
  readonly exclusive?: boolean;
  /** Timings that the configuration file does not contain. */
  readonly settings?: Partial<TrackingSettings>;
  /** Interval of reading due work from the table. */
  readonly tickMs?: number;
  /** Wait after a window's end for events that were observed in it. */
  readonly noticeGraceMs?: number;
  /** Called when an account's log grew. */
  readonly onGrowth?: (ref: AccountRef) => void;
  readonly onPoll?: (report: PollReport) => void;
  readonly onDrain?: (report: DrainReport) => void;
  /** Called after a run of the sender that had work. */
  readonly onSend?: (report: SendReport) => void;
  /** Called for a failure of a loop. The next tick retries. */
  readonly onFault: (what: string, cause: unknown) => void;
}

/** A running host. */
export interface Host {
  readonly log: EventLog;
  readonly growth: GrowthSignal;
  /** Dependencies of the use-cases of endpoints and replays. */
  readonly endpoints: EndpointDeps;
  /** Log of delivery attempts. */
  readonly deliveries: DeliveryLog;
  /** Dependencies of the use-cases of accounts and their tests. */
  readonly accounts: AccountDeps & TestDeps;
  /** Starts no new work and waits until work in progress has completed, at most `timeoutMs`. */
  stop(timeoutMs: number): Promise<void>;
}

/** Maximum number of accounts and sinks of one region that are listed. */
const MAX_ACCOUNTS = 10_000;
/** Minimum poll interval. */
const MIN_INTERVAL_SECONDS = 1;
/** Time that a tick spends on the remains of deleted accounts, and a time longer than a drain and the attempts it has started. */
const DELETE_MS = 10_000;
const LATE_WRITES_MS = 120_000;
/** Maximum time that a start waits for the deletion of an account that is declared again. */
const START_MS = 600_000;
const POLL_CONCURRENCY = 8;
const POLL_MS = 120_000;
const DRAIN_MS = 55_000;
/** Maximum duration of a run of the sender. */
const SEND_MS = 55_000;
/** Time that an idle drain keeps its lease. */
const LINGER_MS = 5_000;
/** Delay after a commit until the cursors are marked due. */
const MARK_AFTER_MS = 25;
/**
 * Id of the sink that publishes to a cell's SNS topic. There is no standard topic here: the embedded SNS delivers to SQS only, for which
 * the FIFO topic is better.
 */
const SNS_SINK = 'sns';

/** Applies the configuration to the table, and starts polling and delivering. */
export async function startHost(options: HostOptions): Promise<Host> {
  const { config, table, history, onFault } = options;
  const now = Date.now;
  const growth = createGrowthSignal();
  let stopping = false;
  let stopped = false;
  const running = new Set<Promise<unknown>>();
  const polls = pLimit(POLL_CONCURRENCY);
  const { allowPrivateNetworks } = config.webhooks;
  const connections = createConnectionPool({ allowPrivateNetworks });

  // Without a configured URL `source` is a path: a loopback address does not identify a Jobwire.
  const urls = { schemaBaseUrl: options.publicUrl, sourceBaseUrl: config.publicUrl };
  const log = createEventLog(table, {
    now,
    newId: randomUUID,
    ...urls,
    onCommitted: (ref, sequence) => {
      growth.grew(ref);
      options.onGrowth?.(ref);
      wake(ref, sequence);
    },
  });
  const forwarder = createForwarder(table, { now, onForwarded: (feed) => growth.grew(feed) });
  const deliveries = createDeliveryLog(history, { newId: randomUUID });
  const stored = await openLocalSigningSecrets(table, options.secretKey);
  const readSigning = createSigningReader(stored, now);
  // Changes made in this process apply to the next attempt, also of a running drain.
  const secrets = withCacheInvalidation(stored, readSigning);
  const openPort = (record: SinkRecord) => openSink(options, record, connections, readSigning);
  const endpoints: EndpointDeps = {
    ...{ table, log, secrets, deliveries, open: openPort, now },
    newId: randomUUID,
    allowPrivateNetworks: config.webhooks.allowPrivateNetworks,
    ...urls,
  };
  const accounts: AccountDeps & TestDeps = {
    ...{ table, log, now, newId: randomUUID },
    secrets: withDeclared(await openLocalAccountSecrets(table, options.secretKey), config),
    regions: Object.keys(config.regions),
    services: config.regions,
    minIntervalSeconds: MIN_INTERVAL_SECONDS,
    isDeclared: ({ region, account }) =>
      config.accounts.some((declared) => declared.id === account && declared.region === region),
    lateWritesMs: LATE_WRITES_MS,
    removeReferences: createReferenceRemover(endpoints),
    unfollowNotifications: unfollowAccount,
  };
  await reconcile(options, accounts);

  const settings: TrackingSettings = {
    ...DEFAULT_TRACKING,
    confirmAfterSeconds: config.departures.confirmAfterSeconds,
    settlingScheduleSeconds: config.settling.scheduleSeconds,
    settlingDays: config.settling.days,
    ...options.settings,
  };
  const connect = createConnector({
    regions: config.regions,
    now,
    readSecret: accounts.secrets.read,
  });

  /** Runs an action in the background. Its failure is reported and ends nothing else. */
  function run(what: string, action: () => Promise<unknown>): void {
    if (stopping) return;
    const task = action()
      .catch((cause: unknown) => {
        if (!stopped) onFault(what, cause);
      })
      .finally(() => running.delete(task));
    running.add(task);
  }

  /**
   * Wakes the sinks and the cell feed immediately, as a hint. Then marks the cursors due, which is the guarantee, once for all commits
   * within a short time.
   */
  function wake(ref: AccountRef, sequence: number): void {
    const forwarded = forwarder.forward(ref);
    // A failure is reported with the mark, which stays until the event is in the feed.
    forwarded.catch(() => {});
    for (const sink of sinks.get(ref.region) ?? []) {
      if (isReady(sink, now()) && follows(sink, ref.account)) {
        drains.request(ref.region, sink.id, ref.account);
      }
    }
    const name = `${ref.region}/${ref.account}`;
    const waiting = marks.get(name);
    marks.set(name, { sequence: Math.max(sequence, waiting?.sequence ?? 0), forwarded });
    if (waiting !== undefined) return;
    // Losing this timer is harmless: the wake mark was written with the events, and a tick finds it.
    setTimeout(() => {
      const latest = marks.get(name) ?? { sequence, forwarded };
      marks.delete(name);
      run('wake sinks', () => wakeSinks(table, ref, latest.sequence, now(), () => latest.forwarded));
    }, MARK_AFTER_MS).unref();
  }
  /** Accounts whose cursors are about to be marked due, with the last sequence of their log and whether the feed has it. */
  const marks = new Map<string, { readonly sequence: number; readonly forwarded: Promise<boolean> }>();

  /** Sinks as of the last tick. Sufficient for a hint. */
  const sinks = new Map<string, Sink[]>();

  async function refreshSinks(region: string): Promise<void> {
    sinks.set(region, await listSinks(table, region));
  }

  // All sinks of an account are woken by the same commit and read the same events.
  const sharedLog = shareReads(log);
  const drains = createDrainers(async (region, sink, linger) => {
    const report = await drainSink(
      {
        table,
        log: sharedLog,
        now,
        newId: randomUUID,
        random: Math.random,
        retrySeconds: config.webhooks.retrySeconds,
        disableAfterSeconds: config.webhooks.disableAfterDays * 86_400,
        open: openPort,
        deliveries,
        linger,
      },
      region,
      sink,
      now() + DRAIN_MS,
    );
    options.onDrain?.(report);
    return report.outcome === 'more';
  }, run);
  const transports = openTransports(options);
  /** Runs the sender of a region, unless it is running. */
  function startSender(region: string): void {
    if (sending.has(region)) return;
    sending.add(region);
    run('send notifications', async () => {
      try {
        if ((await oldestUnsent(table, region, now())) === undefined) return;
        const { publicUrl } = options;
        const deps = {
          table,
          history,
          now,
          newId: randomUUID,
          random: Math.random,
          publicUrl,
          regionMonthlySegments: config.notifications?.sms?.monthlySegments,
          ...transports,
          ...toGrace(options),
        };
        const report = await sendDue(deps, region, now() + SEND_MS);
        if (report.notices + report.sent + report.later + report.failed + report.suppressed > 0) {
          options.onSend?.(report);
        }
      } finally {
        sending.delete(region);
      }
    });
  }
  const sending = new Set<string>();

  /** Does the work of the Lambda that is scheduled each minute: due polls, remaining wake marks, sinks due for a retry, notifications. */
  async function tick(): Promise<void> {
    for (const region of Object.keys(config.regions)) {
      const due = await claimDue(table, region, {
        now: now(),
        limit: POLL_CONCURRENCY * 2,
        claimSeconds: POLL_MS / 1000 + 30,
      });
      for (const ref of due) {
        run('poll', () =>
          polls(async () => {
            if (stopping) return;
            const deps = { table, log, settings, now, newId: randomUUID, connect, syncApiUser: syncOwnUser };
            const report = await pollAccount(deps, ref, now() + POLL_MS);
            options.onPoll?.(report);
          }),
        );
      }
      await refreshSinks(region);
      for (const { ref, sequence } of await listPendingWakes(table, region, 100)) {
        if (marks.has(`${region}/${ref.account}`)) continue;
        // A failure must not stop the other work of the tick. The mark is kept.
        await wakeSinks(table, ref, sequence, now(), () => forwarder.forward(ref)).catch((cause: unknown) => {
          if (!stopped) onFault('wake sinks', cause);
        });
      }
      for (const sink of await listDueSinks(table, region, now())) drains.request(region, sink);
      startSender(region);
      if (!deleting.has(region)) {
        deleting.add(region);
        run('delete accounts', () =>
          workOffDeletions(accounts, region, now() + DELETE_MS).finally(() => deleting.delete(region)),
        );
      }
    }
  }
  /** Regions in which the remains of deleted accounts are being deleted. */
  const deleting = new Set<string>();

  for (const region of Object.keys(config.regions)) {
    await refreshSinks(region);
    run('tidy endpoints', () => tidyEndpoints(endpoints, region));
  }
  let ticking = false;
  const ticker = setInterval(() => {
    if (ticking) return;
    ticking = true;
    run('tick', () =>
      tick().finally(() => {
        ticking = false;
      }),
    );
  }, options.tickMs ?? 1000);
  run('tick', tick);

  return {
    log,
    growth,
    endpoints,
    deliveries,
    accounts,
    async stop(timeoutMs) {
      stopping = true;
      clearInterval(ticker);
      drains.release();
      const timeout = AbortSignal.timeout(timeoutMs);
      await Promise.race([
        Promise.allSettled([...running]),
        new Promise((resolve) => timeout.addEventListener('abort', resolve)),
      ]);
      stopped = true;
      connections.close();
      transports.email?.close();
    },
  };
}

/** Reads credentials of declared accounts from the configuration, and those of other accounts from the table, where they are encrypted. */
function withDeclared(kept: AccountSecrets, config: Config): AccountSecrets {
  return {
    ...kept,
    async read(secretRef) {
      if (isKept(secretRef)) return kept.read(secretRef);
      const account = config.accounts.find(({ id }) => id === secretRef);
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
async function reconcile(options: HostOptions, accounts: AccountDeps): Promise<void> {
  const { config, table } = options;
  const { log } = accounts;
  const now = Date.now();
  for (const region of Object.keys(config.regions)) {
    const declared = config.accounts.filter((account) => account.region === region);
    const sinks = declaredSinks(options, region);
    const known = await listAccounts(table, region, MAX_ACCOUNTS);
    await startFeed(table, region, { epoch: newEpoch(now) });
    for (const { id } of declared) {
      if (known.some(({ account, managed }) => account === id && managed)) {
        throw new ConfigError(
          `accounts: the id "${id}" belongs to an account that was created through the API. Choose another id, or delete that account first.`,
        );
      }
      // The former account of this name is final: no other process works on this table, or its deletion was long ago.
      if (options.exclusive) await breakDeletion(table, { region, account: id });
      const deps = options.exclusive ? { ...accounts, lateWritesMs: 0 } : accounts;
      const { kind } = await workOffDeletion(deps, { region, account: id }, now + START_MS);
      if (kind === 'free') continue;
      throw new ConfigError(
        `accounts: the id "${id}" belongs to an account whose deletion is not complete. Start again in a few minutes.`,
      );
    }
    for (const { id } of sinks) {
      if ((await table.get(keys.sink(region, id)))?.createdAt === undefined) continue;
      throw new ConfigError(
        `endpoints: the id "${id}" belongs to an endpoint that was created through the API. Choose another id.`,
      );
    }
    // Sinks before new accounts, so that they receive those accounts from the beginning.
    for (const sink of sinks) await registerSink(table, log, sink, [...known, cellLog(region)]);
    for (const { id, pollIntervalSeconds } of declared) {
      const account = { region, account: id, secretRef: id, pollIntervalSeconds, paused: false };
      await registerAccount(table, log, account, { now, epoch: newEpoch(now) });
      if (options.exclusive) await breakClaim(table, account, now);
    }
    for (const account of known) {
      if (options.exclusive && account.managed) await breakClaim(table, account, now);
      if (!account.managed && !declared.some(({ id }) => id === account.account)) {
        await registerAccount(table, log, { ...account, paused: true }, { now, epoch: newEpoch(now) });
      }
    }
    for (const item of await table.query({ pk: sinkPk(region) })) {
      const sink = toSink(item);
      if (options.exclusive) await breakLease(table, sink);
      // Sinks created through the API are not part of the file. Neither is the notifications sink.
      const isDeclared = sinks.some(({ id }) => id === sink.id);
      if (item.createdAt === undefined && !isDeclared && sink.kind !== 'notifications') {
        await table.write({ update: keys.sink(region, sink.id), set: { paused: true } });
      }
    }
  }
}

function declaredSinks({ config, sns }: HostOptions, region: string): SinkRecord[] {
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

/** Returns the grace time, which sink and sender have to share. */
function toGrace({ noticeGraceMs }: HostOptions): { readonly graceMs?: number } {
  return noticeGraceMs === undefined ? {} : { graceMs: noticeGraceMs };
}

/** Opens the transports that the configuration names. */
function openTransports({ config, smsCredentials }: HostOptions): {
  readonly email?: EmailTransport;
  readonly sms?: SmsTransport;
} {
  if (!config.notifications) return {};
  const { from, smtp, sms } = config.notifications;
  const { host, port, secure, user, password, dkim } = smtp;
  return {
    email: createSmtpTransport({
      ...{ from, host, port, secure },
      ...(user === undefined || password === undefined ? {} : { user, password }),
      ...(dkim ? { dkim } : {}),
    }),
    ...(sms
      ? {
          sms: createSnsSmsTransport({
            aws: {
              region: sms.awsRegion,
              ...(sms.endpoint === undefined ? {} : { endpoint: sms.endpoint }),
              ...(smsCredentials ? { credentials: smsCredentials } : {}),
            },
            senderId: sms.senderId ?? null,
          }),
        }
      : {}),
  };
}

/**
 * Reads secrets and custom headers of declared endpoints from the configuration, and those of other endpoints from the table, where they
 * are encrypted.
 */
async function openSink(
  options: HostOptions,
  record: SinkRecord,
  connections: ConnectionPool,
  readSigning: SigningReader,
): Promise<SinkPort> {
  const { config, sns, publicUrl, table, history } = options;
  switch (record.kind) {
    case 'sns':
      if (!sns) throw new Error('SNS is not configured.');
      return createSnsSink(sns.client, record.target, { publicUrl });
    case 'webhook': {
      const { region, id, target, concurrency = DEFAULT_CONCURRENCY } = record;
      // An endpoint created through the API has its own secrets, even if another region declares the same id.
      const declared =
        record.createdAt === undefined && declaredSinks(options, region).some((sink) => sink.id === id)
          ? config.endpoints.find((endpoint) => endpoint.id === id)
          : undefined;
      const transport = {
        url: target,
        now: Date.now,
        connections: connections.of(`${region}/${id}`, concurrency),
      };
      if (declared) {
        const { secret, headers = {} } = declared;
        return createWebhookSink({ ...transport, secrets: [secret].flat(), headers });
      }
      const signing = () => readSigning(region, id, record);
      // An endpoint without secrets is not opened.
      await signing();
      return createWebhookSink({ ...transport, signing });
    }
    case 'notifications':
      return createNotificationsSink({ table, history, now: Date.now, ...toGrace(options) });
  }
}

/** The running drain of one sink, and the wake-ups it has received since. */
interface Drainer {
  readonly accounts: Set<string>;
  /** Whether a cursor is due. */
  due: boolean;
  /** Resolves the wait of an idle drain. */
  wake: (() => void) | undefined;
}

/**
 * Creates the drains: one at a time for each sink. An idle drain keeps its lease and its positions for {@link LINGER_MS}, so that new
 * commits are sent immediately.
 */
function createDrainers(
  drain: (region: string, sink: string, linger: () => Promise<NewWork | undefined>) => Promise<boolean>,
  run: (what: string, action: () => Promise<unknown>) => void,
): {
  /** Requests a drain. With an account, a running drain continues with that account. */
  request(region: string, sink: string, account?: string): void;
  /** Ends idle drains. */
  release(): void;
} {
  const drainers = new Map<string, Drainer>();
  let released = false;

  function request(region: string, sink: string, account?: string): void {
    const name = `${region}/${sink}`;
    const running = drainers.get(name);
    if (running) {
      if (account === undefined) running.due = true;
      else running.accounts.add(account);
      running.wake?.();
      return;
    }
    const drainer: Drainer = { accounts: new Set(), due: false, wake: undefined };
    drainers.set(name, drainer);
    run('drain a sink', async () => {
      let more = false;
      try {
        more = await drain(region, sink, async () => (released ? undefined : waitForWork(drainer)));
      } finally {
        drainers.delete(name);
        if (more || drainer.accounts.size > 0) request(region, sink);
      }
    });
  }

  return {
    request,
    release() {
      released = true;
      for (const drainer of drainers.values()) drainer.wake?.();
    },
  };
}

/** Waits for wake-ups of a drain. Returns `undefined` after a time without any. */
async function waitForWork(drainer: Drainer): Promise<NewWork | undefined> {
  if (drainer.accounts.size === 0 && !drainer.due) {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, LINGER_MS);
      drainer.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    drainer.wake = undefined;
  }
  const work = { accounts: [...drainer.accounts], due: drainer.due };
  drainer.accounts.clear();
  drainer.due = false;
  return work.due || work.accounts.length > 0 ? work : undefined;
}
