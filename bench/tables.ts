/**
 * A child process: compares the tables of a self-hosted Jobwire, in SQLite, with dynoxide (a DynamoDB server on SQLite in a separate
 * process), both in a file and in alternation: transactions like a commit of events, reads of one item, and the start.
 */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTables } from '../local/dynamo-tables.ts';
import { createDynamoTable } from '../shared/storage/dynamo-table.ts';
import { openSqliteTables } from '../shared/storage/sqlite-table.ts';
import type { Table } from '../shared/storage/table.ts';
import { startDynamo } from '../test/support/dynoxide.ts';
import { readCpuMs } from './child.ts';
import { median } from './statistics.ts';

/** Results, the medians of the rounds. CPU is that of all processes, for 1,000 of them. */
export interface TableResults {
  readonly sqliteCommitsPerSecond: number;
  readonly dynoxideCommitsPerSecond: number;
  readonly sqliteLoneCommitMs: number;
  readonly dynoxideLoneCommitMs: number;
  readonly sqliteReadsPerSecond: number;
  readonly dynoxideReadsPerSecond: number;
  readonly sqliteCpuMsPerCommit: number;
  readonly dynoxideCpuMsPerCommit: number;
  readonly sqliteStartMs: number;
  readonly dynoxideStartMs: number;
  /** Commits per second, SQLite / dynoxide, in the same round. */
  readonly commitRatio: number;
  readonly cpuRatio: number;
}

interface Opened {
  readonly table: Table;
  /** CPU time of other processes, in ms. */
  cpu(): number;
  close(): Promise<void>;
}

interface Measured {
  readonly startMs: number;
  readonly loneMs: number;
  readonly commits: number;
  readonly cpuMs: number;
  readonly reads: number;
}

const COMMITS = 2_000;
const LONE = 100;
const WRITERS = 32;
const READS = 5_000;
const EVENT = 'x'.repeat(900);

const rounds = Number(process.argv[2]);
const all: { sqlite: Measured; dynoxide: Measured }[] = [];
for (let round = -1; round < rounds; round += 1) {
  const work = [() => measure(openSqlite), () => measure(openDynoxide)];
  const first = round % 2 === 0 ? 0 : 1;
  const one = await work[first]?.();
  const other = await work[1 - first]?.();
  const [sqlite, dynoxide] = first === 0 ? [one, other] : [other, one];
  if (round >= 0 && sqlite && dynoxide) all.push({ sqlite, dynoxide });
}
const of = (read: (one: (typeof all)[number]) => number) => median(all.map(read));
process.send?.({
  sqliteCommitsPerSecond: of(({ sqlite }) => sqlite.commits),
  dynoxideCommitsPerSecond: of(({ dynoxide }) => dynoxide.commits),
  sqliteLoneCommitMs: of(({ sqlite }) => sqlite.loneMs),
  dynoxideLoneCommitMs: of(({ dynoxide }) => dynoxide.loneMs),
  sqliteReadsPerSecond: of(({ sqlite }) => sqlite.reads),
  dynoxideReadsPerSecond: of(({ dynoxide }) => dynoxide.reads),
  sqliteCpuMsPerCommit: of(({ sqlite }) => sqlite.cpuMs),
  dynoxideCpuMsPerCommit: of(({ dynoxide }) => dynoxide.cpuMs),
  sqliteStartMs: of(({ sqlite }) => sqlite.startMs),
  dynoxideStartMs: of(({ dynoxide }) => dynoxide.startMs),
  commitRatio: of(({ sqlite, dynoxide }) => sqlite.commits / dynoxide.commits),
  cpuRatio: of(({ sqlite, dynoxide }) => sqlite.cpuMs / dynoxide.cpuMs),
} satisfies TableResults);
process.disconnect();

async function openSqlite(folder: string): Promise<Opened> {
  const tables = await openSqliteTables(join(folder, 'tables.db'));
  return { ...tables, cpu: () => 0 };
}

async function openDynoxide(folder: string): Promise<Opened> {
  const dynamo = await startDynamo({ dbPath: join(folder, 'state.db') });
  const client = dynamo.client();
  await createTables(client, 'bench');
  return {
    table: createDynamoTable(client, { tableName: 'bench' }),
    cpu: () => readCpuMs(dynamo.pid),
    close: () => dynamo.stop(),
  };
}

async function measure(open: (folder: string) => Promise<Opened>): Promise<Measured> {
  const folder = mkdtempSync(join(tmpdir(), 'jobwire-bench-'));
  const began = performance.now();
  const { table, cpu, close } = await open(folder);
  const startMs = performance.now() - began;
  let sequence = 0;
  const commit = async (): Promise<void> => {
    sequence += 1;
    const sk = String(sequence).padStart(8, '0');
    await table.transact(
      [
        {
          update: { pk: 'HEAD', sk },
          set: { sequence, epoch: 'e' },
          when: [['sequence', 'absent or <', sequence]],
        },
        { put: { pk: 'LOG', sk, json: EVENT, duePk: 'D', dueSk: sk }, when: [['pk', 'absent']] },
        { put: { pk: 'SNAPSHOT', sk, json: EVENT, statusPk: 'S', statusSk: sk } },
      ],
      randomUUID(),
    );
  };
  for (let at = 0; at < LONE; at += 1) await commit();
  const loneFrom = performance.now();
  for (let at = 0; at < LONE; at += 1) await commit();
  const loneMs = (performance.now() - loneFrom) / LONE;

  const cpuBefore = cpuOfThis() + cpu();
  const from = performance.now();
  const end = sequence + COMMITS;
  await Promise.all(
    Array.from({ length: WRITERS }, async () => {
      while (sequence < end) await commit();
    }),
  );
  const seconds = (performance.now() - from) / 1000;
  const cpuMs = (cpuOfThis() + cpu() - cpuBefore) / COMMITS;

  const readFrom = performance.now();
  for (let at = 0; at < READS; at += 1) {
    await table.get({ pk: 'LOG', sk: String(1 + (at % sequence)).padStart(8, '0') });
  }
  const reads = READS / ((performance.now() - readFrom) / 1000);
  await close();
  rmSync(folder, { recursive: true });
  return { startMs, loneMs, commits: COMMITS / seconds, cpuMs, reads };
}

/** Returns the CPU time of all threads of this process in ms. */
function cpuOfThis(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
