/** Metrics and traces of a started Jobwire: `GET /metrics` compared with its HTTP API, and the requests to a collector. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { createTracer } from '../../local/tracing.ts';
import {
  METRICS,
  type Metric,
  PROCESS_METRICS,
  SELF_HOSTED_METRICS,
  toPrometheusName,
} from '../../shared/metrics.ts';
import { builtProgram, configFor, startJobwire, startSandbox, writeConfig } from '../support/jobwire.ts';
import { readOpenMetrics } from '../support/openmetrics.ts';

const KEY = 'a-key-for-the-tests-only';
const SECRET = `whsec_${Buffer.alloc(32, 9).toString('base64')}`;

interface Status {
  readonly id: string;
  readonly status: {
    readonly state: string;
    readonly observedThrough: string | null;
    readonly openJobs: number | null;
    readonly head: string;
  };
}

/** A request to a collector (OTLP, JSON). */
interface Traces {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly object[] };
    readonly scopeSpans: readonly { readonly spans: readonly Span[] }[];
  }[];
}
interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly status: { readonly code?: number };
  readonly attributes: readonly {
    readonly key: string;
    readonly value: { readonly stringValue?: string; readonly intValue?: string };
  }[];
}

const ends: (() => unknown)[] = [];
let site: Awaited<ReturnType<typeof start>>;
beforeAll(async () => {
  site = await start();
  return async () => {
    for (const end of ends.reverse()) await end();
  };
});

/** Starts a Jobwire with an account that works and one that is rejected, an endpoint that works and one that fails. */
async function start() {
  const end = (stop: () => unknown) => ends.push(stop);
  const { sandbox, world } = await startSandbox({}, end);
  const acme = world.addAccount({ region: 'us', name: 'acme' });
  const denied = world.addAccount({ region: 'us', name: 'denied' });
  const jobs = [1, 2, 3].map(() => acme.createJob({ status: 'Scheduled' }));
  const heard: string[] = [];
  const traces: { readonly path: string; readonly token: unknown; readonly body: Traces }[] = [];
  const receiver = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      if (request.url?.startsWith('/collector')) {
        const body = JSON.parse(Buffer.concat(chunks).toString()) as Traces;
        traces.push({ path: request.url, token: request.headers['x-token'], body });
        response.writeHead(200).end('{}');
        return;
      }
      const { type } = JSON.parse(Buffer.concat(chunks).toString()) as { type: string };
      heard.push(`${request.url} ${type}`);
      response.writeHead(request.url === '/erp' ? 204 : 503).end();
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  end(() => {
    receiver.closeAllConnections();
    receiver.close();
  });
  const receiverUrl = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`;
  const { accounts, ...rest } = configFor(sandbox, [acme, denied]);
  const file = writeConfig(
    {
      ...rest,
      accounts: accounts.map((account) =>
        account.id === 'denied' ? { ...account, clientSecret: 'wrong' } : account,
      ),
      apiKey: KEY,
      metrics: { port: 0 },
      tracing: { endpoint: `${receiverUrl}/collector`, headers: { 'x-token': 'of-the-collector' } },
      webhooks: { allowPrivateNetworks: true },
      endpoints: ['erp', 'down'].map((id) => ({
        ...{ id, secret: SECRET },
        url: `${receiverUrl}/${id}`,
      })),
    },
    end,
  );
  const jobwire = await startJobwire(['--config', file], { command: builtProgram(), end });
  const metricsUrl = (await jobwire.printed(/Metrics +(http\S+)/)).trim();
  await jobwire.printed(/account\.baselined/);
  for (const job of jobs) acme.setStatus(job, 'In production');
  const read = async <T>(path: string): Promise<T> => {
    const response = await fetch(`${jobwire.url}${path}`, { headers: { authorization: `Bearer ${KEY}` } });
    return (await response.json()) as T;
  };
  return {
    ...{ url: jobwire.url, metricsUrl, heard, traces },
    accounts: async () => (await read<{ accounts: Status[] }>('/v1/accounts?include=status')).accounts,
    health: (id: string) =>
      read<{ state: string; backlog: { events: number; oldestAt: string | null } }>(
        `/v1/endpoints/${id}/health`,
      ),
    /** All samples of a scrape by name and label values, and the types of the metrics. */
    async scrape() {
      const response = await fetch(metricsUrl, { headers: { accept: 'application/openmetrics-text' } });
      expect(response.status).toBe(200);
      const body = await response.text();
      const families = readOpenMetrics(body);
      const samples = new Map(families.flatMap((family) => [...family.samples]));
      return { body, samples, families };
    },
  };
}

test('the gauges equal the values of the HTTP API', async () => {
  await expect
    .poll(async () => (await site.accounts()).map(({ status }) => status.state))
    .toEqual(['tracking', 'credentials_rejected']);
  await expect
    .poll(
      async () => {
        // Read first: a backlog of 0 then means that these events were delivered.
        const isComplete = (await head()) >= 4;
        const [erp, down] = await Promise.all([site.health('erp'), site.health('down')]);
        return [erp.state, down.state, erp.backlog.events, isComplete];
      },
      { timeout: 20_000 },
    )
    .toEqual(['active', 'failing', 0, true]);
  const before = await site.accounts();
  const [begun, { samples }, ended] = [Date.now(), await site.scrape(), Date.now()];
  const [after, down] = await Promise.all([site.accounts(), site.health('down')]);

  for (const [at, { id, status }] of after.entries()) {
    expect(samples.get(`jobwire_log_head us ${id}`)).toBe(Number(status.head.split('.').at(-1)));
    expect(samples.get(`jobwire_account_state us ${id} ${status.state}`)).toBe(1);
    expect(samples.get(`jobwire_accounts us ${status.state}`)).toBe(1);
    expect(samples.get(`jobwire_open_jobs us ${id}`)).toBe(status.openJobs ?? undefined);
    const age = samples.get(`jobwire_complete_poll_age_seconds us ${id}`);
    const earlier = before[at]?.status.observedThrough;
    if (typeof earlier !== 'string' || status.observedThrough === null) expect(age).toBeUndefined();
    else {
      expect(age).toBeGreaterThanOrEqual((begun - Date.parse(status.observedThrough)) / 1000);
      expect(age).toBeLessThanOrEqual((ended - Date.parse(earlier)) / 1000);
    }
  }
  expect(samples.get('jobwire_accounts us paused')).toBe(0);
  expect(samples.get('jobwire_backlog us erp')).toBe(0);
  expect(samples.get('jobwire_oldest_undelivered_seconds us erp')).toBe(0);
  expect(down.backlog.events).toBeGreaterThan(0);
  expect(samples.get('jobwire_backlog us down')).toBe(down.backlog.events);
  const since = Date.parse(down.backlog.oldestAt ?? '');
  expect(samples.get('jobwire_oldest_undelivered_seconds us down')).toBeGreaterThanOrEqual(
    (begun - since) / 1000,
  );
  expect(samples.get('jobwire_oldest_undelivered_seconds us down')).toBeLessThanOrEqual(
    (ended - since) / 1000,
  );
  expect(samples.get('jobwire_endpoint_state us down failing')).toBe(1);
  expect(samples.get('jobwire_upstream_outage us')).toBe(0);

  async function head(): Promise<number> {
    const [acme] = await site.accounts();
    return Number(acme?.status.head.split('.').at(-1));
  }
});

test('counters and histograms count what happened, and never decrease', async () => {
  const first = await site.scrape();
  const [acme] = await site.accounts();
  const sequence = Number(acme?.status.head.split('.').at(-1));
  const { samples } = first;
  const delivered = site.heard.filter((line) => line.startsWith('/erp job.')).length;
  expect(delivered).toBeGreaterThan(0);
  expect(samples.get('jobwire_delivery_lag_seconds_count us erp')).toBeGreaterThanOrEqual(delivered);
  expect(samples.get('jobwire_delivery_duration_seconds_count us down')).toBeGreaterThan(0);
  expect(samples.get('jobwire_delivery_lag_seconds_count us down')).toBeUndefined();
  // The rejected account has one event, account.credentials_rejected. Events are counted at the end of a poll.
  await expect
    .poll(async () => (await site.scrape()).samples.get('jobwire_events_committed_total us'))
    .toBe(sequence + 1);
  expect(samples.get('jobwire_credentials_rejected_total us')).toBe(1);
  expect(samples.get('jobwire_ticks_total us')).toBeGreaterThan(0);
  expect(samples.get('process_cpu_seconds_total')).toBeGreaterThan(0);
  expect(samples.get('process_resident_memory_bytes')).toBeGreaterThan(20_000_000);

  await fetch(`${site.url}/v1/accounts`);
  const polls = samples.get('jobwire_polls_total us') ?? 0;
  await expect
    .poll(async () => (await site.scrape()).samples.get('jobwire_polls_total us'), { timeout: 20_000 })
    .toBeGreaterThan(polls);
  const later = await site.scrape();
  expect(later.samples.get('jobwire_keys_refused_total')).toBe(
    (samples.get('jobwire_keys_refused_total') ?? 0) + 1,
  );
  for (const { type, samples: before } of first.families) {
    if (type === 'gauge') continue;
    for (const [name, value] of before) {
      expect(later.samples.get(name), name).toBeGreaterThanOrEqual(value);
    }
  }
});

test('exactly the metrics of the catalogue are served, without addresses, credentials or secrets', async () => {
  const { body, families } = await site.scrape();
  const catalogue = Object.entries({ ...METRICS, ...SELF_HOSTED_METRICS });
  const own = catalogue.flatMap(([name, metric]) => {
    const { part, only }: Metric = metric;
    return part || only ? [] : [toPrometheusName(name as keyof typeof METRICS)];
  });
  expect(families.map(({ name }) => name)).toEqual([...own, ...Object.keys(PROCESS_METRICS)]);
  expect(body).not.toMatch(/https?:|127\.0\.0\.1|whsec_|@|-secret/);
  expect(body).not.toContain(KEY);
});

test('the public port does not serve them', async () => {
  const response = await fetch(`${site.url}/metrics`, { headers: { authorization: `Bearer ${KEY}` } });
  expect(response.status).toBe(404);
});

test('a collector gets one trace of a poll, its commit and the attempts at every endpoint, without addresses', async () => {
  const spans = () =>
    site.traces.flatMap(({ body }) =>
      body.resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((one) => one.spans)),
    );
  const read = ({ attributes }: Span, key: string) => {
    const { stringValue, intValue } = attributes.find((one) => one.key === `jobwire.${key}`)?.value ?? {};
    return stringValue ?? Number(intValue);
  };
  /** An attempt to deliver an event to the endpoint, its commit, and its poll, as far as they were sent. */
  const findTrace = (endpoint: string) => {
    const sent = spans();
    return sent
      .filter((span) => span.name === 'deliver' && read(span, 'endpoint') === endpoint)
      .map((attempt) => {
        const commit = sent.find(({ spanId }) => spanId === attempt.parentSpanId);
        return { attempt, commit, poll: sent.find(({ spanId }) => spanId === commit?.parentSpanId) };
      })
      .find(({ poll }) => poll !== undefined);
  };
  await expect
    .poll(() => ['erp', 'down'].map((id) => findTrace(id)?.poll?.name), { timeout: 20_000 })
    .toEqual(['poll', 'poll']);

  const all = spans();
  expect(new Set(all.map(({ spanId }) => spanId)).size).toBe(all.length);
  for (const span of all) {
    expect(span.traceId).toMatch(/^[0-9a-f]{32}$/);
    expect(span.spanId).toMatch(/^[0-9a-f]{16}$/);
    for (const time of [span.startTimeUnixNano, span.endTimeUnixNano]) expect(time).toMatch(/^\d{19}$/);
    expect(BigInt(span.endTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(span.startTimeUnixNano));
  }
  for (const [endpoint, status] of [
    ['erp', {}],
    ['down', { code: 2 }],
  ] as const) {
    const { attempt, commit, poll } = findTrace(endpoint) ?? {};
    expect(attempt).toMatchObject({ kind: 3, status, traceId: poll?.traceId });
    expect(commit).toMatchObject({ name: 'commit', traceId: poll?.traceId });
    expect(poll && read(poll, 'events')).toBeGreaterThan(0);
    expect(poll?.parentSpanId).toBeUndefined();
  }
  for (const { path, token, body } of site.traces) {
    expect([path, token]).toEqual(['/collector/v1/traces', 'of-the-collector']);
    expect(JSON.stringify(body)).not.toMatch(/https?:|127\.0\.0\.1|whsec_|@|-secret/);
  }
});

test('a collector that fails is reported once with the reason, loses only the spans of that time, and gets later ones', async () => {
  const statuses = [503, 503, 200, 503];
  const sizes: number[] = [];
  const errors: unknown[] = [];
  const collector = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { resourceSpans } = JSON.parse(Buffer.concat(chunks).toString()) as Traces;
      sizes.push(resourceSpans[0]?.scopeSpans[0]?.spans.length ?? 0);
      response.writeHead(statuses[sizes.length - 1] ?? 200).end();
    });
  });
  await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void collector.close());
  const endpoint = `http://127.0.0.1:${(collector.address() as AddressInfo).port}/`;
  const tracer = createTracer({ endpoint }, { now: Date.now, onError: (cause) => errors.push(cause) });
  for (const count of [1, 2, 3, 4]) {
    for (let n = 0; n < count; n += 1) tracer.onGrowth({ region: 'us', account: 'acme' }, n + 1, 1);
    await tracer.stop();
  }
  expect(sizes).toEqual([1, 2, 3, 4]);
  expect(errors.map(String)).toEqual(Array(2).fill('Error: The collector responded with 503.'));

  collector.closeAllConnections();
  await new Promise((resolve) => collector.close(resolve));
  const other = createTracer({ endpoint }, { now: Date.now, onError: (cause) => errors.push(cause) });
  other.onGrowth({ region: 'us', account: 'acme' }, 1, 1);
  await other.stop();
  expect(errors.at(-1), 'the reason, not only "fetch failed"').toMatchObject({
    // A connection that the collector has just closed can be used once more.
    code: expect.stringMatching(/^(ECONNREFUSED|ECONNRESET|UND_ERR_SOCKET)$/),
  });
});
