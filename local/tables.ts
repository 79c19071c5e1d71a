/** Tables of a self-hosted Jobwire: in an SQLite database in its data folder, or on a DynamoDB-compatible server. */
import { join } from 'node:path';
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
}

/** State table and history table. */
export interface OpenTables {
  readonly table: Table;
  readonly history: Table;
  /** Location, as shown in the terminal. */
  readonly where: string;
  /** Idempotent. */
  close(): Promise<void>;
}

/** Opens the tables, and creates them if necessary. */
export async function openTables({ folder, endpoint, onFailure }: TablesOptions): Promise<OpenTables> {
  // The AWS SDK is loaded only if it is used, so that a start takes less time.
  if (endpoint !== undefined) {
    const { openDynamoTables } = await import('./dynamo-tables.ts');
    return { ...(await openDynamoTables(endpoint)), where: endpoint };
  }
  const path = join(folder, 'tables.db');
  return { ...(await openSqliteTables(path, onFailure)), where: path };
}
