/** `GET /metrics` over a table in memory: formats, labels that start at 0, access. */
import { describe, expect, test } from 'vitest';
import { formatMetrics, Histogram } from '../../local/exposition.ts';
import { createMetricsApp, createRecorder } from '../../local/metrics.ts';
import { registerAccount } from '../../shared/accounts/accounts.ts';
import type { NewKey } from '../../shared/api/key-input.ts';
import { createKey, createKeyring, OPERATOR } from '../../shared/api/keys.ts';
import { registerSink } from '../../shared/delivery/sink.ts';
import { createEventLog } from '../../shared/log/log.ts';
import { ERROR_KINDS } from '../../shared/ordering/errors.ts';
import { keys } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import { TableError } from '../../shared/storage/table.ts';

const now = () => 1_000_000;

async function setUp(host = '127.0.0.1', fails = false) {
  const stored = createMemoryTable();
  const table = fails
    ? { ...stored, query: () => Promise.reject(new TableError('query', 'it is gone')) }
    : stored;
  const log = createEventLog(stored, { now, newId: () => 'id', schemaBaseUrl: 'https://x.example' });
  const acme = { region: 'us', account: 'acme', secretRef: 'acme', pollIntervalSeconds: 60, paused: false };
  await registerAccount(stored, log, acme, { now: now(), epoch: 'e1' });
  const erp = {
    region: 'us',
    id: 'erp',
    kind: 'webhook',
    target: 'https://erp.example/?token=hidden',
  } as const;
  await registerSink(stored, log, { ...erp, accounts: [], types: [], paused: false }, []);
  const recorder = createRecorder({ regions: ['us'], notifications: false });
  const errors: unknown[] = [];
  const keyring = createKeyring({ table: stored, now });
  const app = createMetricsApp({
    ...{ recorder, table, log, keyring, host, now },
    onError: (cause) => errors.push(cause),
  });
  return {
    ...{ table: stored, recorder, errors },
    get: (headers: Record<string, string> = {}, url = `http://${host}:9400/metrics`) =>
      app.request(url, { headers }),
    async text() {
      return (await app.request(`http://${host}:9400/metrics`)).text();
    },
    async newKey(input: NewKey) {
      const created = await createKey({ table: stored, now }, input, OPERATOR);
      if (created.kind !== 'created') throw new Error(created.reason);
      return { authorization: `Bearer ${created.secret}` };
    },
  };
}

describe('the formats', () => {
  const histogram = new Histogram();
  for (const seconds of [0.01, 0.02, 7200]) histogram.observe(seconds);
  const families = [
    { name: 'a', type: 'counter', help: 'One "a"\\\n.', samples: [{ labels: { x: 'q"\\\n' }, value: 2 }] },
    {
      name: 'b_seconds',
      type: 'histogram',
      help: 'B.',
      unit: 'seconds',
      samples: [{ labels: {}, value: histogram }],
    },
  ] as const;
  const bounds = [
    '0.01',
    '0.025',
    '0.05',
    '0.1',
    '0.25',
    '0.5',
    '1.0',
    '2.5',
    '5.0',
    '10.0',
    '30.0',
    '60.0',
    '300.0',
    '900.0',
    '3600.0',
  ];
  const histogramLines = [
    ...bounds.map((le, at) => `b_seconds_bucket{le="${le}"} ${at === 0 ? 1 : 2}`),
    ...['b_seconds_bucket{le="+Inf"} 3', 'b_seconds_sum 7200.03', 'b_seconds_count 3', ''],
  ];

  test('Prometheus: names of counters contain the suffix, buckets are cumulative, labels are escaped', () => {
    expect(formatMetrics(families, 'text/plain').split('\n')).toEqual([
      '# HELP a_total One "a"\\\\\\n.',
      '# TYPE a_total counter',
      'a_total{x="q\\"\\\\\\n"} 2',
      ...['# HELP b_seconds B.', '# TYPE b_seconds histogram'],
      ...histogramLines,
    ]);
  });

  test('OpenMetrics: only samples of counters have the suffix, units are named, the end is marked', () => {
    expect(formatMetrics(families, 'application/openmetrics-text').split('\n')).toEqual([
      '# HELP a One \\"a\\"\\\\\\n.',
      '# TYPE a counter',
      'a_total{x="q\\"\\\\\\n"} 2',
      ...['# HELP b_seconds B.', '# TYPE b_seconds histogram', '# UNIT b_seconds seconds'],
      ...histogramLines.slice(0, -1),
      ...['# EOF', ''],
    ]);
  });

  const PROMETHEUS =
    'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2';
  test.each([
    [PROMETHEUS, 'application/openmetrics-text; version=1.0.0; charset=utf-8'],
    ['text/plain;version=0.0.4;q=0.5,*/*;q=0.1', 'text/plain; version=0.0.4; charset=utf-8'],
    ['*/*', 'text/plain; version=0.0.4; charset=utf-8'],
    ['text/html', 'text/plain; version=0.0.4; charset=utf-8'],
  ])('Accept: %s gets %s', async (accept, contentType) => {
    const { get } = await setUp();
    const response = await get({ accept });
    expect(response.headers.get('content-type')).toBe(contentType);
    expect((await response.text()).endsWith('# EOF\n')).toBe(contentType.includes('openmetrics'));
  });
});

describe('series', () => {
  test('counters start at 0: of each region, each kind of error, each endpoint', async () => {
    const { text } = await setUp();
    const lines = (await text()).split('\n');
    expect(lines).toContain('jobwire_ticks_total{region="us"} 0');
    expect(lines).toContain('jobwire_requests_failed_total 0');
    expect(lines).toContain('jobwire_events_dead_total{region="us",endpoint="erp"} 0');
    for (const kind of ERROR_KINDS) {
      expect(lines).toContain(`jobwire_upstream_errors_total{region="us",kind="${kind}"} 0`);
    }
  });

  test('a deleted endpoint has no series', async () => {
    const { table, recorder, text } = await setUp();
    const report = {
      delivered: 2,
      skipped: 0,
      failed: 0,
      rejected: 0,
      parked: 0,
      dead: 0,
      lost: 0,
      unlogged: 0,
    };
    recorder.onDrain({ region: 'us', sink: 'erp', outcome: 'drained', ...report });
    expect(await text()).toContain('jobwire_deliveries_total{region="us",endpoint="erp"} 2\n');
    await table.write({ delete: keys.sink('us', 'erp') });
    expect(await text()).not.toContain('endpoint="erp"');
  });

  test('labels and values contain no addresses', async () => {
    const { text } = await setUp();
    expect(await text()).not.toMatch(/https?:|example|hidden/);
  });
});

describe('access', () => {
  test('on loopback without a key, but not through a name of another site', async () => {
    const { get } = await setUp();
    expect((await get()).status).toBe(200);
    expect((await get({}, 'http://localhost:9400/metrics')).status).toBe(200);
    expect((await get({}, 'http://rebound.example:9400/metrics')).status).toBe(403);
    expect((await get({}, 'http://127.0.0.1:9400/')).status).toBe(404);
  });

  test('on any other address only with a key for all accounts', async () => {
    const { get, newKey } = await setUp('0.0.0.0');
    expect((await get()).status).toBe(401);
    expect((await get({ authorization: 'Bearer jw_wrong' })).status).toBe(401);
    expect((await get(await newKey({ role: 'admin', accounts: ['acme'] }))).status).toBe(403);
    expect((await get(await newKey({ role: 'read' }))).status).toBe(200);
  });

  test('without the table the response is 503, so that Prometheus reports the target as down', async () => {
    const { get, errors } = await setUp('127.0.0.1', true);
    expect((await get()).status).toBe(503);
    expect(errors).toHaveLength(1);
  });
});
