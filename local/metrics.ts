/**
 * `GET /metrics`: the metrics of the catalogue (`shared/metrics.ts`) for Prometheus. Counters and histograms are in memory and start at 0
 * with the process. Gauges are read from the tables at each scrape.
 */
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { Hono } from 'hono';
import { accepts } from 'hono/accepts';
import { compress } from 'hono/compress';
import pLimit from 'p-limit';
import { AccountState } from '../shared/accounts/account-views.ts';
import { listAccounts } from '../shared/accounts/accounts.ts';
import { requireKey } from '../shared/api/access.ts';
import type { ApiEnv } from '../shared/api/env.ts';
import type { Keyring } from '../shared/api/keys.ts';
import { problem } from '../shared/api/problems.ts';
import { readBacklog, toHealthState } from '../shared/delivery/endpoint-health.ts';
import { listSinks } from '../shared/delivery/sink.ts';
import { getOrCreate } from '../shared/get-or-create.ts';
import { parseCursor } from '../shared/log/head.ts';
import type { EventLog } from '../shared/log/log.ts';
import {
  type AnyMetricName,
  type Label,
  METRICS,
  type Metric,
  measureAlerts,
  measureAttempt,
  measureDrain,
  measurePoll,
  measureRequest,
  measureSend,
  PROCESS_METRICS,
  SELF_HOSTED_METRICS,
  toPrometheusName,
  type Values,
} from '../shared/metrics.ts';
import { oldestUnsent } from '../shared/notifications/oldest-unsent.ts';
import { ERROR_KINDS } from '../shared/ordering/errors.ts';
import { shareCalls, shareTableReads } from '../shared/storage/shared-reads.ts';
import type { Table } from '../shared/storage/table.ts';
import { readBreakerState } from '../shared/tracking/breaker.ts';
import { reportAccounts } from '../shared/tracking/operator.ts';
import { type Family, FORMATS, formatMetrics, Histogram, type Sample } from './exposition.ts';
import { getRejectionReason, isLoopback } from './guard.ts';
import type { HostOptions } from './host-options.ts';

/** Maximum number of accounts of a region with metrics of their own. */
const MAX_ACCOUNTS = 100_000;
const SINKS_AT_ONCE = 4;
const LOOP_RESOLUTION_MS = 50;

type LabelValues = { readonly [L in Label]?: string };
type Name = AnyMetricName;

/** The metrics of this process. */
export interface Recorder
  extends Required<Pick<HostOptions, 'onTick' | 'onPoll' | 'onDrain' | 'onAttempt' | 'onSend' | 'onAlerts'>> {
  /** Called with each response of the HTTP API. */
  onAnswer(request: { readonly route: string | null }, answer: { readonly status: number }): void;
  /** Reads all metrics. Throws `TableError` if the table does not respond. */
  read(from: {
    readonly table: Table;
    readonly log: EventLog;
    readonly now: () => number;
  }): Promise<Family[]>;
}

/** Creates the recorder. `notifications`: whether customer notifications are configured. */
export function createRecorder({
  regions,
  notifications,
}: {
  readonly regions: readonly string[];
  readonly notifications: boolean;
}): Recorder {
  const catalogue: Readonly<Record<Name, Metric>> = { ...METRICS, ...SELF_HOSTED_METRICS };
  const served = (Object.keys(catalogue) as Name[]).filter((name) => {
    const { part, only } = catalogue[name];
    return only === undefined && (part === undefined || notifications);
  });
  /** Counters and histograms by name and label values. */
  const recorded = new Map<Name, Map<string, { labels: LabelValues; value: number | Histogram }>>();
  for (const name of served) if (catalogue[name].type !== 'gauge') recorded.set(name, new Map());
  const loop = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS });
  loop.enable();

  /** Adds to counters and histograms. Gauges are read when needed. */
  function record(values: Values, labels: LabelValues): void {
    for (const [key, value] of Object.entries(values)) {
      const name = key as Name;
      const series = recorded.get(name);
      if (!series) continue;
      const { type, unit } = catalogue[name];
      const its = pickLabels(name, labels);
      const id = JSON.stringify(its);
      const known = series.get(id) ?? { labels: its, value: type === 'histogram' ? new Histogram() : 0 };
      if (typeof known.value === 'number') known.value += value;
      else known.value.observe(unit === 'Milliseconds' ? value / 1000 : value);
      series.set(id, known);
    }
  }

  function pickLabels(name: Name, labels: LabelValues): LabelValues {
    const { labels: wanted = ['region'] } = catalogue[name];
    return Object.fromEntries(wanted.map((label) => [label, labels[label] ?? '']));
  }

  /** Counters start at 0: `increase()` misses the first increment of a counter that was absent before. */
  function start(labels: LabelValues): void {
    for (const name of recorded.keys()) {
      const { type, labels: wanted = ['region'] } = catalogue[name];
      if (type === 'counter' && String(wanted) === String(Object.keys(labels))) record({ [name]: 0 }, labels);
    }
  }

  start({});
  for (const region of regions) {
    start({ region });
    for (const kind of ERROR_KINDS) start({ region, kind });
  }

  return {
    onTick: (region) => record({ Ticks: 1 }, { region }),
    onPoll(report, late) {
      const { region, upstreamErrors } = report;
      record(measurePoll(report, late), { region });
      for (const [kind, value] of Object.entries(upstreamErrors)) {
        record({ UpstreamErrors: value }, { region, kind });
      }
    },
    onDrain: (report) => record(measureDrain(report), { region: report.region, endpoint: report.sink }),
    onAttempt: (attempt) =>
      record(measureAttempt(attempt), { region: attempt.region, endpoint: attempt.sink }),
    onSend: (report, region) => record(measureSend(report), { region }),
    onAlerts: (summary, region) => record(measureAlerts(summary), { region }),
    onAnswer: ({ route }, { status }) => record(measureRequest({ route, status }), {}),
    async read(from) {
      const gauges = new Map<Name, Sample[]>();
      const endpoints = new Set<string>();
      const gauge = (values: Values, labels: LabelValues): void => {
        for (const [key, value] of Object.entries(values)) {
          const name = key as Name;
          getOrCreate(gauges, name, () => []).push({ labels: pickLabels(name, labels), value });
        }
      };
      for (const region of regions) {
        await readAccounts(from, region, gauge);
        for (const endpoint of await readSinks(from, region, gauge)) {
          endpoints.add(`${region}/${endpoint}`);
          start({ region, endpoint });
        }
      }
      for (const series of recorded.values()) {
        for (const [id, { labels }] of series) {
          const isDeleted = labels.endpoint && !endpoints.has(`${labels.region}/${labels.endpoint}`);
          if (isDeleted) series.delete(id);
        }
      }
      const families = served.map((name): Family => {
        const { type, help, unit } = catalogue[name];
        const samples = [...(recorded.get(name)?.values() ?? gauges.get(name) ?? [])];
        return {
          ...{ name: toPrometheusName(name), type, help, samples },
          ...(unit === 'Count' ? {} : { unit: 'seconds' }),
        };
      });
      return [...families, ...readProcess()];
    },
  };

  async function readAccounts(
    { table, now }: Parameters<Recorder['read']>[0],
    region: string,
    gauge: (values: Values, labels: LabelValues) => void,
  ): Promise<void> {
    const [accounts, { openedAt }, unsentSince] = await Promise.all([
      listAccounts(table, region, MAX_ACCOUNTS),
      readBreakerState(table, region),
      notifications ? oldestUnsent(table, region, now()) : undefined,
    ]);
    const reports = await reportAccounts({ table }, accounts);
    const states = new Map<string, number>(AccountState.options.map((state) => [state, 0]));
    for (const [at, { account, paused }] of accounts.entries()) {
      const report = reports[at];
      if (!report) continue;
      const { state, observedThrough, openJobs, missingJobs, head } = report;
      const labels = { region, account };
      states.set(state, (states.get(state) ?? 0) + 1);
      gauge({ AccountState: 1 }, { ...labels, state });
      gauge(
        {
          LogHead: parseCursor(head)?.sequence ?? 0,
          UnresolvedDepartures: missingJobs.pending + missingJobs.suspected + missingJobs.contradictory,
          ...(openJobs === null ? {} : { OpenJobs: openJobs }),
          ...(observedThrough === null || paused
            ? {}
            : { CompletePollAge: toAge(now(), Date.parse(observedThrough)) }),
        },
        labels,
      );
    }
    for (const [state, count] of states) gauge({ Accounts: count }, { region, state });
    gauge(
      {
        UpstreamOutage: openedAt === null ? 0 : 1,
        ...(notifications ? { OldestUnsent: toAge(now(), unsentSince) } : {}),
      },
      { region },
    );
  }

  /** Reads the gauges of all sinks of a region. Returns their ids. */
  async function readSinks(
    { table, log, now }: Parameters<Recorder['read']>[0],
    region: string,
    gauge: (values: Values, labels: LabelValues) => void,
  ): Promise<string[]> {
    const sinks = await listSinks(table, region);
    const backlogs = await pLimit(SINKS_AT_ONCE).map(sinks, (sink) => readBacklog({ table, log }, sink));
    for (const [at, sink] of sinks.entries()) {
      const { events = 0, oldestAt = null } = backlogs[at] ?? {};
      const { state } = toHealthState(sink, now());
      const labels = { region, endpoint: sink.id };
      const isActive = state === 'active' || state === 'failing';
      gauge({ EndpointState: 1 }, { ...labels, state });
      gauge({ Backlog: events, OldestUndelivered: isActive ? toAge(now(), oldestAt) : 0 }, labels);
    }
    return sinks.map(({ id }) => id);
  }

  function readProcess(): Family[] {
    const { user, system } = process.cpuUsage();
    const { rss, heapUsed } = process.memoryUsage();
    // The histogram contains intervals of the timer.
    const toLag = (nanoseconds: number) => Math.max(0, nanoseconds / 1e9 - LOOP_RESOLUTION_MS / 1000);
    const values: Record<keyof typeof PROCESS_METRICS, number> = {
      process_cpu_seconds: (user + system) / 1e6,
      process_resident_memory_bytes: rss,
      process_start_time_seconds: performance.timeOrigin / 1000,
      nodejs_heap_size_used_bytes: heapUsed,
      nodejs_eventloop_active_seconds: performance.eventLoopUtilization().active / 1000,
      nodejs_eventloop_lag_p99_seconds: toLag(loop.percentile(99)),
      nodejs_eventloop_lag_max_seconds: toLag(loop.max),
    };
    loop.reset();
    return Object.entries(PROCESS_METRICS).map(([name, metric]) => ({
      ...{ name, ...metric },
      samples: [{ labels: {}, value: values[name as keyof typeof PROCESS_METRICS] }],
    }));
  }
}

/** Returns an age in seconds; 0 without a time. Both times are epoch ms. */
function toAge(now: number, time: number | null | undefined): number {
  return typeof time === 'number' ? Math.max(0, (now - time) / 1000) : 0;
}

/**
 * Creates the app of the metrics port. On a loopback address it needs no key, and rejects the requests that a web page could read. On any
 * other address, each request requires an API key for all accounts.
 */
export function createMetricsApp(deps: {
  readonly recorder: Recorder;
  readonly table: Table;
  readonly log: EventLog;
  readonly keyring: Keyring;
  /** Address it listens on. */
  readonly host: string;
  readonly now: () => number;
  /** Called for each scrape that failed. */
  readonly onError: (cause: unknown) => void;
}): Hono<ApiEnv> {
  const { recorder, host, keyring, onError } = deps;
  const from = { ...deps, table: shareTableReads(deps.table) };
  const read = shareCalls(() => recorder.read(from), { inTurn: true });
  const app = new Hono<ApiEnv>();
  app.use(async (c, next) => {
    const detail = getRejectionReason(c.req.raw, { host });
    return detail === undefined ? next() : problem(c, 'request-blocked', { detail });
  });
  if (!isLoopback(host)) {
    app.use(requireKey(keyring), async (c, next) =>
      c.get('caller').accounts === null
        ? next()
        : problem(c, 'forbidden', { detail: 'The metrics require an API key for all accounts.' }),
    );
  }
  app.onError((cause, c) => {
    onError(cause);
    return problem(c, 'service-unavailable', { detail: 'The store does not respond. Retry later.' });
  });
  app.notFound((c) => problem(c, 'not-found', { detail: 'The metrics are at /metrics.' }));
  app.get('/metrics', compress(), async (c) => {
    const [standard, ...others] = Object.keys(FORMATS) as [keyof typeof FORMATS];
    const format = accepts(c, {
      ...{ header: 'Accept', supports: [standard, ...others], default: standard },
    }) as keyof typeof FORMATS;
    return c.body(formatMetrics(await read(null), format), 200, {
      ...{ 'content-type': FORMATS[format], 'cache-control': 'no-store', vary: 'Accept' },
    });
  });
  return app;
}
