/** Tables for tests: every suite about tables runs in memory and on a real server. */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { afterAll, describe, inject, onTestFinished } from 'vitest';
import { createTable } from '../../local/dynamo-tables.ts';
import { createDynamoTable } from '../../shared/storage/dynamo-table.ts';
import { historySchema, stateSchema, type TableSchema } from '../../shared/storage/schema.ts';
import { createMemoryTable, openSqliteTables, type SqliteTables } from '../../shared/storage/sqlite-table.ts';
import type { Table } from '../../shared/storage/table.ts';
import { createDynamoClient } from './dynoxide.ts';
import { sized } from './runs.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The implementations of the table that suites run against in this project. */
    readonly tables: readonly TableKind[];
  }
}

/** The DynamoDB shared by all test files, and the tables that a test creates in it. */
export interface TestDynamo {
  readonly endpoint: string;
  /** One client per worker; tests that break connections create their own. */
  readonly client: DynamoDBClient;
  /** Creates a state table with a unique name and returns the name. */
  freshTable(): Promise<string>;
  /** The port over a state table of its own. */
  makeTable(): Promise<Table>;
  /** The port over a history table of its own. */
  makeHistoryTable(): Promise<Table>;
}

let shared: TestDynamo | undefined;

/** The DynamoDB that `dynamo-setup.ts` started for the project. */
export function testDynamo(): TestDynamo {
  if (shared) return shared;
  const endpoint = inject('dynamoEndpoint');
  const client = createDynamoClient(endpoint);
  const fresh = async (schema: TableSchema): Promise<string> => {
    const name = `test-${randomUUID()}`;
    await createTable(client, name, schema);
    return name;
  };
  const freshTable = () => fresh(stateSchema);
  shared = {
    ...{ endpoint, client, freshTable },
    makeTable: async () => createDynamoTable(client, { tableName: await freshTable() }),
    makeHistoryTable: async () =>
      createDynamoTable(client, { tableName: await fresh(historySchema), schema: historySchema }),
  };
  return shared;
}

/** The implementations of the port: SQLite in memory and in a file, and DynamoDB. */
export type TableKind = 'in memory' | 'in a file' | 'on DynamoDB';

/** False in the unit tests, which run the same suites without sockets and processes. */
export const mayUseNetwork = inject('tables').includes('on DynamoDB');

type Suite = (
  makeTable: () => Promise<Table>,
  kind: TableKind,
  makeHistoryTable: () => Promise<Table>,
) => void;

/**
 * Runs a suite against each implementation of the project. `makeTable` and `makeHistoryTable` create empty tables. `inFile`:
 * also in a file, where the project has SQLite.
 */
export function eachTable(name: string, suite: Suite, { inFile = false } = {}): void {
  const kinds = inject('tables').flatMap((kind) =>
    kind === 'in memory' && inFile ? ([kind, 'in a file'] as const) : [kind],
  );
  for (const kind of kinds) {
    describe(`${name}, ${kind}`, () => {
      if (kind === 'in a file') {
        const files = createFilePool();
        afterAll(files.close);
        suite(
          async () => (await files.take()).table,
          kind,
          async () => (await files.take()).history,
        );
      } else if (kind === 'in memory') {
        suite(
          async () => createMemoryTable(),
          kind,
          async () => createMemoryTable(historySchema),
        );
      } else {
        suite(
          () => testDynamo().makeTable(),
          kind,
          () => testDynamo().makeHistoryTable(),
        );
      }
    });
  }
}

/** Both tables in a file, deleted after the test. */
export async function fileTables(): Promise<SqliteTables> {
  const files = createFilePool();
  onTestFinished(files.close);
  return files.take();
}

/** Files with empty tables. A test has those it takes to itself until it ends, and then they are emptied for the next one. */
function createFilePool() {
  const folder = mkdtempSync(join(tmpdir(), 'jobwire-tables-'));
  const opened: SqliteTables[] = [];
  const idle: { readonly path: string; readonly tables: SqliteTables }[] = [];
  const open = async () => {
    const path = join(folder, `${opened.length}.db`);
    const tables = await openSqliteTables(path);
    opened.push(tables);
    return { path, tables };
  };
  return {
    async take(): Promise<SqliteTables> {
      const file = idle.pop() ?? (await open());
      onTestFinished(() => {
        const database = new DatabaseSync(file.path);
        database.exec('DELETE FROM state; DELETE FROM history');
        database.close();
        idle.push(file);
      });
      return file.tables;
    },
    async close(): Promise<void> {
      for (const tables of opened) await tables.close();
      rmSync(folder, { recursive: true });
    },
  };
}

/** Only every nth possible crash point is tested: a sample on DynamoDB, all of them in memory at full size. */
export const crashStep = (kind: TableKind): number => (kind === 'on DynamoDB' ? sized(6, 1) : 1);

/** A call as received over the wire. */
export interface WireCall {
  /** `PutItem`, `TransactWriteItems`, … */
  readonly operation: string;
  readonly body: Readonly<Record<string, unknown>>;
}

/** Fault of a call. */
export type WireFault =
  /** The call never arrives. This is its response. */
  | { readonly kind: 'answer'; readonly status: number; readonly body: Readonly<Record<string, unknown>> }
  /** The call never arrives: the connection breaks. */
  | { readonly kind: 'reset' }
  /** The call is executed, and the connection breaks before the response. */
  | { readonly kind: 'lost answer' }
  /** The call is executed, and the response never arrives: the caller times out. */
  | { readonly kind: 'silence' }
  /** A modified call is executed, and its response is modified too. */
  | {
      readonly kind: 'changed';
      readonly call?: (body: Record<string, unknown>) => Record<string, unknown>;
      readonly answer?: (body: Record<string, unknown>, call: WireCall) => Record<string, unknown>;
    };

/** A connection to the server with injected faults. */
export interface FaultyWire {
  readonly endpoint: string;
  /** All calls so far, including failed ones. */
  readonly calls: WireCall[];
  /** The next calls of the operation fail, one fault each. */
  fail(operation: string, ...faults: WireFault[]): void;
  /** Called before every call is forwarded; the call waits for the result. Replaceable at any time. */
  onCall: ((call: WireCall) => Promise<WireFault | undefined>) | undefined;
  stop(): Promise<void>;
}

/** Puts a faulty proxy in front of a server. Without faults it forwards everything. */
export async function startFaultyWire(target: string): Promise<FaultyWire> {
  const calls: WireCall[] = [];
  const planned: { operation: string; fault: WireFault }[] = [];

  async function pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const call: WireCall = {
      operation: String(request.headers['x-amz-target']).split('.')[1] ?? '',
      body: JSON.parse(await readText(request)) as WireCall['body'],
    };
    calls.push(call);
    const at = planned.findIndex(({ operation }) => operation === call.operation);
    const fault = at < 0 ? await wire.onCall?.(call) : planned.splice(at, 1)[0]?.fault;
    if (fault?.kind === 'reset') {
      request.socket.resetAndDestroy();
      return;
    }
    if (fault?.kind === 'answer') return reply(response, fault.status, fault.body);
    const changed = fault?.kind === 'changed' ? fault : undefined;
    const answer = await fetch(target, {
      method: 'POST',
      headers: {
        'content-type': 'application/x-amz-json-1.0',
        'x-amz-target': String(request.headers['x-amz-target']),
        authorization: String(request.headers.authorization),
        'x-amz-date': String(request.headers['x-amz-date']),
      },
      body: JSON.stringify(changed?.call?.({ ...call.body }) ?? call.body),
    });
    const body = (await answer.json()) as Record<string, unknown>;
    if (fault?.kind === 'silence') return;
    if (fault?.kind === 'lost answer') request.socket.destroy();
    else reply(response, answer.status, changed?.answer?.(body, call) ?? body);
  }

  const server = createServer((request, response) => {
    pass(request, response).catch(() => request.socket.destroy());
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const wire: FaultyWire = {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    fail: (operation, ...faults) => planned.push(...faults.map((fault) => ({ operation, fault }))),
    onCall: undefined,
    stop: () => close(server),
  };
  return wire;
}

/** An error in DynamoDB's format. */
export function awsError(
  name: string,
  more: Readonly<Record<string, unknown>> = {},
  status = 400,
): WireFault {
  const type = `com.amazonaws.dynamodb.v20120810#${name}`;
  return { kind: 'answer', status, body: { __type: type, message: `${name} (injected)`, ...more } };
}

/** A cancelled transaction, with a reason for each of its actions. */
export function cancelledFor(...codes: readonly string[]): WireFault {
  return awsError('TransactionCanceledException', {
    CancellationReasons: codes.map((Code) => (Code === 'None' ? { Code } : { Code, Message: Code })),
  });
}

async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

function reply(response: ServerResponse, status: number, body: Readonly<Record<string, unknown>>): void {
  response.writeHead(status, { 'content-type': 'application/x-amz-json-1.0' }).end(JSON.stringify(body));
}

function close(server: Server): Promise<void> {
  return new Promise((done) => {
    server.close(() => done());
    server.closeAllConnections();
  });
}
