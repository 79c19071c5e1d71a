/** The responses of `GET /metrics`, read by the strict parsers of Prometheus's Python client. Skipped where it cannot be installed. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { formatMetrics } from '../../local/exposition.ts';
import { createRecorder } from '../../local/metrics.ts';
import { registerAccount } from '../../shared/accounts/accounts.ts';
import { registerSink } from '../../shared/delivery/sink.ts';
import { createEventLog } from '../../shared/log/log.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import { readOpenMetrics } from '../support/openmetrics.ts';

const HOME = join(process.env.GENERATORS_DIR ?? join(tmpdir(), 'jobwire-generators'), 'metrics');
const PYTHON = join(HOME, 'venv/bin/python');
const CLIENT = 'prometheus_client==0.26.0';

/** Prints all samples of a file, except buckets, as JSON: name and label values, value. */
const READ = `
import json, sys
from prometheus_client.parser import text_string_to_metric_families as plain
from prometheus_client.openmetrics.parser import text_string_to_metric_families as strict
read = strict if sys.argv[1] == 'open' else plain
with open(sys.argv[2]) as file: families = list(read(file.read()))
print(json.dumps([[' '.join([s.name, *s.labels.values()]), s.value]
  for f in families for s in f.samples if 'le' not in s.labels]))
`;

test("Prometheus's own parsers read both formats, with the same values as the tests' reader", async ({
  skip,
}) => {
  if (!existsSync(join(HOME, 'installed'))) {
    try {
      mkdirSync(HOME, { recursive: true });
      execFileSync('python3', ['-m', 'venv', join(HOME, 'venv')], { stdio: 'pipe' });
      execFileSync(PYTHON, ['-m', 'pip', 'install', '--quiet', CLIENT], { stdio: 'pipe' });
      writeFileSync(join(HOME, 'installed'), CLIENT);
    } catch (cause) {
      if (process.env.GENERATORS === 'required') throw cause;
      skip(`${CLIENT} is not installed: ${cause instanceof Error ? cause.message : cause}`);
    }
  }
  const table = createMemoryTable();
  const now = () => 1_000_000;
  const log = createEventLog(table, { now, newId: () => 'id', schemaBaseUrl: 'https://x.example' });
  const acme = { region: 'us', account: 'acme', secretRef: 'acme', pollIntervalSeconds: 60, paused: false };
  await registerAccount(table, log, acme, { now: now(), epoch: 'e1' });
  const erp = { region: 'us', id: 'erp', kind: 'webhook', target: 'https://erp.example' } as const;
  await registerSink(table, log, { ...erp, accounts: [], types: [], paused: false }, []);
  const recorder = createRecorder({ regions: ['us', 'eu'], notifications: true });
  const attempt = {
    region: 'us',
    sink: 'erp',
    eventId: 'e',
    type: 'job.created',
    account: 'acme',
    sequence: 1,
  };
  for (const lagMs of [3, 40, 5_000_000]) {
    recorder.onAttempt({ ...attempt, latencyMs: lagMs, lagMs, outcome: 'delivered', cause: 'live' });
  }
  const families = await recorder.read({ table, log, now });
  const read = (kind: 'open' | 'plain', text: string): [string, number][] => {
    const [script, file] = [join(HOME, 'read.py'), join(HOME, `${kind}.txt`)];
    writeFileSync(script, READ);
    writeFileSync(file, text);
    return JSON.parse(execFileSync(PYTHON, [script, kind, file], { encoding: 'utf8' }));
  };
  const open = formatMetrics(families, 'application/openmetrics-text');
  const expected = readOpenMetrics(open).flatMap(({ samples }) => [...samples]);
  expect(expected.length).toBeGreaterThan(100);
  expect(read('open', open)).toEqual(expected);
  expect(read('plain', formatMetrics(families, 'text/plain'))).toEqual(expected);
});
