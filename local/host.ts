/**
 * All cells in one process: the use-cases of the Lambdas, run by timers and in-process wake-ups. A wake-up is only a hint, as on AWS: the
 * next tick finds in the table everything that a wake-up missed.
 */
import { randomUUID } from 'node:crypto';
import pLimit from 'p-limit';
import type { TestDeps } from '../shared/accounts/account-test.ts';
import { listAccounts } from '../shared/accounts/accounts.ts';
import { createConnector } from '../shared/accounts/connect.ts';
import { openLocalAccountSecrets } from '../shared/accounts/credentials.ts';
import { continueDeletions } from '../shared/accounts/deletion.ts';
import type { AccountDeps } from '../shared/accounts/managed-accounts.ts';
import { createReferenceRemover } from '../shared/api/account-references.ts';
import { createGrowthSignal, type GrowthSignal } from '../shared/api/growth-signal.ts';
import type { AlertParts } from '../shared/api/route.ts';
import { MAX_SKEW_MS } from '../shared/delivery/clock.ts';
import { EarlyStores } from '../shared/delivery/cursors.ts';
import { createDeliveryLog, type DeliveryLog } from '../shared/delivery/delivery-log.ts';
import { drainSink } from '../shared/delivery/drain.ts';
import type { EndpointDeps } from '../shared/delivery/endpoint-edits.ts';
import { tidyEndpoints } from '../shared/delivery/endpoints.ts';
import { isReady } from '../shared/delivery/health.ts';
import { SharedRequests } from '../shared/delivery/lanes.ts';
import { createConnectionPool } from '../shared/delivery/outbound.ts';
import { getLongestWait } from '../shared/delivery/parking.ts';
import {
  createSigningReader,
  openLocalSigningSecrets,
  withCacheInvalidation,
} from '../shared/delivery/signing-secrets.ts';
import { follows, listSinks, type Sink, type SinkRecord } from '../shared/delivery/sink.ts';
import { indexFormerSinks, listDueSinks, listPendingWakes, wakeSinks } from '../shared/delivery/wakes.ts';
import { createForwarder, LOGS_AT_ONCE } from '../shared/log/feed-forwarding.ts';
import { epochFloor } from '../shared/log/head.ts';
import { createEventLog, type EventLog, shareReads } from '../shared/log/log.ts';
import { oldestUnsent } from '../shared/notifications/oldest-unsent.ts';
import type { EmailTransport } from '../shared/notifications/types.ts';
import { indexFormerData, removeItemEntries } from '../shared/search/indexing.ts';
import { openSealedTexts } from '../shared/secrets.ts';
import { type AccountRef, getDrainName } from '../shared/storage/schema.ts';
import { type Claim, claimDue, resumeFuturePolls } from '../shared/tracking/claims.ts';
import { renewLogs } from '../shared/tracking/operator.ts';
import { pollAccount } from '../shared/tracking/poll.ts';
import type { PollDeps } from '../shared/tracking/poll-context.ts';
import { DEFAULT_TRACKING, type TrackingSettings } from '../shared/tracking/schedule.ts';
import { listDeclaredSinks, reconcile, withDeclared } from './declared.ts';
import { createDrainers } from './drainers.ts';
import type { HostOptions } from './host-options.ts';
import { createQueues, NO_QUEUES, openSink, openTransports, toGrace } from './transports.ts';

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
  /** Dependencies of alert rules and their test messages. */
  readonly alerts: AlertParts;
  /** Sends e-mails. Absent: no mail server is configured. */
  readonly mailer: EmailTransport | undefined;
  /** Starts no new work and waits until work in progress has completed, at most `timeoutMs`. */
  stop(timeoutMs: number): Promise<void>;
}

/** Maximum number of accounts of a region. */
const MAX_ACCOUNTS = 100_000;
/** Minimum poll interval. */
const MIN_INTERVAL_SECONDS = 1;
/** Time that a tick spends on the remains of deleted accounts, and a time longer than a drain and the attempts it has started. */
const DELETE_MS = 10_000;
const LATE_WRITES_MS = 120_000;
/** Maximum number of concurrent polls of a region. A region that responds slowly must not delay the polls of others. */
const POLL_CONCURRENCY = 8;
const POLL_MS = 120_000;
const DRAIN_MS = 55_000;
/** Maximum number of requests of all drains together: each needs a file descriptor, and about 50 kB of memory. */
const REQUESTS = 2_048;
/** Maximum number of pages of an earlier version's jobs and recipients that one tick adds to the search index. */
const FORMER_PAGES = 5;
/** Maximum duration of a run of the sender. */
const SEND_MS = 55_000;
/** Delay after a commit until the cursors are marked due. Running drains deliver earlier, so that most cursors need no mark. */
const MARK_AFTER_MS = 500;
/** Minimum interval between transactions that extend a cell feed. */
const FORWARD_EVERY_MS = 150;

/** Applies the configuration to the table, and starts polling and delivering. */
export async function startHost(options: HostOptions): Promise<Host> {
  const { config, table, history, onFault } = options;
  const now = Date.now;
  const growth = createGrowthSignal();
  let stopping = false;
  let stopped = false;
  /** Ends work that can take long, as soon as its current requests are complete. */
  const ending = new AbortController();
  const running = new Set<Promise<unknown>>();
  const { allowPrivateNetworks } = config.webhooks;
  const connections = createConnectionPool({ allowPrivateNetworks });

  // Without a configured URL `source` is a path: a loopback address does not identify a Jobwire.
  const urls = { schemaBaseUrl: options.publicUrl, sourceBaseUrl: config.publicUrl };
  const leastEpoch = options.restoredAt === undefined ? undefined : epochFloor(options.restoredAt);
  const logOptions = { now, newId: randomUUID, ...urls, leastEpoch };
  const log = createEventLog(table, {
    ...logOptions,
    onCommitted: (ref, sequence, events) => {
      growth.grew(ref);
      options.onGrowth?.(ref, sequence, events);
      wake(ref, sequence);
    },
  });
  const forwarder = createForwarder(table, {
    ...{ now, everyMs: FORWARD_EVERY_MS, onForwarded: (feed) => growth.grew(feed) },
  });
  const deliveries = createDeliveryLog(history, { newId: randomUUID });
  const stored = await openLocalSigningSecrets(table, options.secretKey);
  const readSigning = createSigningReader(stored, now);
  // Changes made in this process apply to the next attempt, even in a running drain.
  const secrets = withCacheInvalidation(stored, readSigning);
  const openQueue = await createQueues(options);
  const openPort = (record: SinkRecord) => openSink(options, record, { connections, readSigning, openQueue });
  const endpoints: EndpointDeps = {
    ...{ table, log, secrets, deliveries, open: openPort, now },
    newId: randomUUID,
    allowPrivateNetworks: config.webhooks.allowPrivateNetworks,
    checkQueue: () => (openQueue ? undefined : NO_QUEUES),
    isDeclared: (region, id) => listDeclaredSinks(options, region).some((sink) => sink.id === id),
    ...urls,
  };
  const accounts: AccountDeps & TestDeps = {
    ...{ table, history, log, now, newId: randomUUID },
    secrets: withDeclared(await openLocalAccountSecrets(table, options.secretKey), config),
    regions: Object.keys(config.regions),
    services: config.regions,
    minIntervalSeconds: MIN_INTERVAL_SECONDS,
    isDeclared: ({ region, account }) =>
      config.accounts.some((declared) => declared.id === account && declared.region === region),
    lateWritesMs: LATE_WRITES_MS,
    removeReferences: createReferenceRemover(endpoints),
    unfollowNotifications: async (...args) => (await import('./notifications.ts')).unfollowAccount(...args),
    removeSearchEntries: removeItemEntries,
  };
  for (const region of leastEpoch === undefined ? [] : Object.keys(config.regions)) {
    // Nothing runs that could be woken.
    const renewing = createEventLog(table, { ...logOptions, onCommitted: options.onGrowth });
    const { renewed } = await renewLogs({ table, log: renewing, now }, region);
    if (renewed > 0) {
      options.onWarning?.(
        `The data was restored from a backup. The logs of ${region} continue in a new epoch.`,
      );
    }
  }
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
  const busy = new Set<string>();
  /** Runs an action in the background, unless it is running. `region`: of an action that runs once for each region. */
  function runAlone(what: string, action: () => Promise<unknown>, region = ''): void {
    const name = `${what} ${region}`;
    if (busy.has(name)) return;
    busy.add(name);
    run(what, () => action().finally(() => busy.delete(name)));
  }

  /**
   * Wakes the sinks and the cell feed immediately, as a hint. Then marks the cursors due, which is the guarantee, once for all commits
   * within a short time.
   */
  function wake(ref: AccountRef, sequence: number): void {
    const forwarded = forwarder.forward(ref);
    // A failure is reported with the mark, which stays until the event is in the feed.
    forwarded.catch(() => {});
    const requested = requestDrains(ref);
    if (!refreshed.has(ref.region)) {
      refreshed.add(ref.region);
      run('read the sinks', () => refreshSinks(ref.region).then(() => requestDrains(ref, requested)));
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

  /** Requests drains of the ready sinks that follow an account, except those already requested. Returns the names of all. */
  function requestDrains(
    { region, account }: AccountRef,
    requested: ReadonlySet<string> = new Set(),
  ): ReadonlySet<string> {
    const ready = (sinks.get(region) ?? []).filter((sink) => isReady(sink, now()) && follows(sink, account));
    const names = new Set(ready.map(({ id }) => getDrainName(id, account)));
    for (const name of names) if (!requested.has(name)) drains.request(region, name, [account]);
    return names;
  }

  /** Sinks as last read: when a log first grows after a tick. Sufficient for a hint. */
  const sinks = new Map<string, Sink[]>();
  /** Regions whose sinks were read since the last tick. */
  const refreshed = new Set<string>();

  async function refreshSinks(region: string): Promise<void> {
    sinks.set(region, await listSinks(table, region));
  }

  // All sinks of an account are woken by the same commit and read the same events.
  const sharedLog = shareReads(log);
  const sharedRequests = new SharedRequests(REQUESTS);
  const earlyStores = new EarlyStores();
  const longestWait = getLongestWait(config.webhooks.retrySeconds);
  const drains = createDrainers(async (region, sink, work) => {
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
        sharedRequests,
        earlyStores,
        stopping: ending.signal,
        ...work,
        ...(options.onAttempt ? { attempted: options.onAttempt } : {}),
      },
      region,
      sink,
      now() + DRAIN_MS,
    );
    options.onDrain?.(report);
    return report.outcome === 'more';
  }, run);
  const transports = await openTransports(options);
  const targets = await openSealedTexts(table, options.secretKey);
  const alerts: AlertParts = {
    rules: { table, now, targets, allowPrivateNetworks, canMail: transports.email !== undefined },
    sending: {
      ...{ targets, connections, mailer: transports.email },
      // The dashboard is at the root of the public URL.
      dashboardUrl: `${options.publicUrl}/`,
    },
  };
  /** Does work of a region that is due once a minute: alert rules, and remains of interrupted operations on endpoints. */
  function startMinute(region: string): void {
    const minute = Math.floor(now() / 60_000);
    if (minutes.get(region) === minute) return;
    minutes.set(region, minute);
    run('evaluate alert rules', async () => {
      const { evaluateAlerts } = await import('../shared/alerts/evaluate.ts');
      const summary = await evaluateAlerts(
        { table, history, now, ...alerts.sending, onMessage: options.onAlert },
        region,
      );
      if (summary) options.onAlerts?.(summary, region);
    });
    run('clean up endpoints', () => tidyEndpoints(endpoints, region));
    if (now() < latestMinuteAt - MAX_SKEW_MS) {
      run('schedule polls after the clock was set back', async () =>
        resumeFuturePolls(table, await listAccounts(table, region, MAX_ACCOUNTS), now()),
      );
    }
    latestMinuteAt = Math.max(latestMinuteAt, now());
  }
  /** Latest time of this work (epoch ms). The clock is behind it only if it was set back. */
  let latestMinuteAt = 0;
  const minutes = new Map<string, number>();
  /** Sends the notifications of a region that are due. */
  async function send(region: string): Promise<void> {
    if ((await oldestUnsent(table, region, now())) === undefined) return;
    const { publicUrl } = options;
    const deps = {
      table,
      history,
      now,
      newId: randomUUID,
      random: Math.random,
      publicUrl,
      stopping: ending.signal,
      regionMonthlySegments: config.notifications?.sms?.monthlySegments,
      ...transports,
      ...toGrace(options),
    };
    const { sendDue } = await import('./notifications.ts');
    const report = await sendDue(deps, region, now() + SEND_MS);
    if (report.notices + report.sent + report.later + report.failed + report.suppressed > 0) {
      options.onSend?.(report, region);
    }
  }

  /** Number of polls of each region that run or are being claimed. */
  const polling = new Map<string, number>();
  function countPolls(region: string, polls: number): void {
    polling.set(region, (polling.get(region) ?? 0) + polls);
  }
  /** Claims due polls of a region and starts them, no more than can run at once: a claim would expire while its poll waits. */
  async function startPolls(region: string): Promise<void> {
    const free = POLL_CONCURRENCY - (polling.get(region) ?? 0);
    if (free <= 0) return;
    // Counted before the claim, because other polls end and are claimed meanwhile.
    countPolls(region, free);
    let due: readonly Claim[] = [];
    try {
      due = await claimDue(table, region, { now: now(), limit: free, claimSeconds: POLL_MS / 1000 + 30 });
    } finally {
      countPolls(region, due.length - free);
    }
    for (const ref of due) {
      run('poll', () =>
        poll(ref).finally(() => {
          countPolls(region, -1);
          // More polls may be due.
          if (due.length === free) run('claim polls', () => startPolls(region));
        }),
      );
    }
  }
  async function poll(ref: Claim): Promise<void> {
    const deps: PollDeps = {
      ...{ table, log, settings, now, newId: randomUUID, connect },
      syncApiUser: async (...args) => (await import('./notifications.ts')).syncOwnUser(...args),
    };
    options.onPollStart?.(ref);
    const lagMs = Math.max(0, now() - ref.dueAt);
    const report = await pollAccount(deps, ref, now() + POLL_MS);
    options.onPoll?.(report, { lagMs });
  }

  /** Does the work of the Lambda that is scheduled each minute: due polls, remaining wake marks, sinks due for a retry, notifications. */
  async function tick(): Promise<void> {
    const isFirst = !hasTicked;
    hasTicked = true;
    for (const region of Object.keys(config.regions)) {
      await startPolls(region);
      if (!indexed.has(region)) runAlone('index the data of earlier versions', () => indexFormer(region));
      refreshed.delete(region);
      const pending = (await listPendingWakes(table, region, 100)).filter(
        ({ ref }) => !marks.has(`${region}/${ref.account}`),
      );
      // Concurrently, so that the forwarder extends the feed with all of them at once.
      await pLimit(LOGS_AT_ONCE).map(pending, ({ ref, sequence }) =>
        // A failure must not stop the other work of the tick. The mark is kept.
        wakeSinks(table, ref, sequence, now(), () => forwarder.forward(ref)).catch((cause: unknown) => {
          if (!stopped) onFault('wake sinks', cause);
        }),
      );
      for (const name of await listDueSinks(table, region, now(), longestWait)) drains.request(region, name);
      runAlone('send notifications', () => send(region), region);
      if (!isFirst) startMinute(region);
      runAlone('delete accounts', () => continueDeletions(accounts, region, now() + DELETE_MS), region);
      options.onTick?.(region);
    }
  }
  /** Whether a tick has begun. The first one does only what polls and deliveries need. */
  let hasTicked = false;
  /** Regions whose jobs and recipients are all in the search index. */
  const indexed = new Set<string>();
  async function indexFormer(region: string): Promise<void> {
    if (await indexFormerData(table, region, now(), FORMER_PAGES)) indexed.add(region);
  }

  for (const region of Object.keys(config.regions)) {
    await indexFormerSinks(table, region, now(), options.exclusive);
    await refreshSinks(region);
  }
  const startTick = () => runAlone('run the tick', tick);
  const ticker = setInterval(startTick, options.tickMs ?? 1000);
  startTick();

  return {
    log,
    growth,
    endpoints,
    deliveries,
    accounts,
    alerts,
    mailer: transports.email,
    async stop(timeoutMs) {
      stopping = true;
      ending.abort();
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
