/** Tables of a self-hosted Jobwire: in an SQLite database in its data folder, or on a DynamoDB-compatible server. */
import { join } from 'node:path';
import { keys } from '../shared/storage/schema.ts';
import { openSqliteTables } from '../shared/storage/sqlite-table.ts';
import type { Table } from '../shared/storage/table.ts';

/** Location of the tables. */
export interface TablesOptions {
  /** Data folder, which the caller holds. */
  readonly folder: string;
  /** URL of a DynamoDB-compatible server. Takes precedence over the folder. */
  readonly endpoint?: string | undefined;
  /** Called when the tables have become unusable. Acknowledged writes are kept. */
  readonly onFailure?: (cause: unknown) => void;
  /** Called after each write to the database of the folder: with the reason if the database failed, otherwise with `undefined`. */
  readonly onWrite?: (fault: string | undefined) => void;
}

/** State table and history table. */
export interface OpenTables {
  readonly table: Table;
  readonly history: Table;
  /** Location, as shown in the terminal. */
  readonly where: string;
  /** Why the last write failed, if the database of the folder failed. */
  readonly writeFault: () => string | undefined;
  /** Returns why writes fail, or `undefined` if they succeed. Repeats a write if the last one failed. */
  checkWrites(): Promise<string | undefined>;
  /** Idempotent. */
  close(): Promise<void>;
}

/** Opens the tables, and creates them if necessary. */
export async function openTables(options: TablesOptions): Promise<OpenTables> {
  const { folder, endpoint, onFailure, onWrite } = options;
  // The AWS SDK is loaded only if it is used, so that a start takes less time.
  if (endpoint !== undefined) {
    const { openDynamoTables } = await import('./dynamo-tables.ts');
    const tables = await openDynamoTables(endpoint);
    return { ...tables, where: endpoint, writeFault: () => undefined, checkWrites: async () => undefined };
  }
  const path = join(folder, 'tables.db');
  let writeFault: string | undefined;
  const tables = await openSqliteTables(path, onFailure, (fault) => {
    writeFault = fault;
    onWrite?.(fault);
  });
  return {
    ...tables,
    where: path,
    writeFault: () => writeFault,
    async checkWrites() {
      // Otherwise a Jobwire without work would not notice that writes succeed again.
      if (writeFault !== undefined) {
        await tables.table.write({ put: { ...keys.writeCheck(), at: Date.now() } }).catch(() => {});
      }
      return writeFault;
    },
  };
}
