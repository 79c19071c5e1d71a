/** `GET /metrics` of a started Jobwire, compared with its HTTP API. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { beforeAll, expect, test } from 'vitest';
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
  const receiver = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
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
  const { accounts, ...rest } = configFor(sandbox, [acme, denied]);
  const file = writeConfig(
    {
      ...rest,
      accounts: accounts.map((account) =>
        account.id === 'denied' ? { ...account, clientSecret: 'wrong' } : account,
      ),
      apiKey: KEY,
      metrics: { port: 0 },
      webhooks: { allowPrivateNetworks: true },
      endpoints: ['erp', 'down'].map((id) => ({
        ...{ id, secret: SECRET },
        url: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/${id}`,
      })),
    },
    end,
  );
  const jobwire = await startJobwire(['--config', file], { command: builtProgram(), end });
  const metricsUrl = (await jobwire.said(/Metrics +(http\S+)/)).trim();
  await jobwire.said(/account\.baselined/);
  for (const job of jobs) acme.setStatus(job, 'In production');
  const read = async <T>(path: string): Promise<T> => {
    const response = await fetch(`${jobwire.url}${path}`, { headers: { authorization: `Bearer ${KEY}` } });
    return (await response.json()) as T;
  };
  return {
    ...{ url: jobwire.url, metricsUrl, heard },
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
        const [erp, down] = await Promise.all([site.health('erp'), site.health('down')]);
        return [erp.state, down.state, erp.backlog.events, Number((await head()) >= 4)];
      },
      { timeout: 20_000 },
    )
    .toEqual(['active', 'failing', 0, 1]);
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
  // The rejected account has one event, account.credentials_rejected.
  expect(samples.get('jobwire_events_committed_total us')).toBe(sequence + 1);
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
