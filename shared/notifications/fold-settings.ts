/** Settings of an account that folding and closing use. */
import type { AccountRef } from '../storage/schema.ts';
import type { Table } from '../storage/table.ts';
import { readSettings } from './settings.ts';

export interface FoldSettings {
  readonly since: number;
  readonly windowMs: number;
  readonly maxAgeMs: number;
}

/** Reads the settings that folding needs. `undefined` if the account does not notify. */
export async function readFoldSettings(table: Table, ref: AccountRef): Promise<FoldSettings | undefined> {
  const settings = await readSettings(table, ref);
  if (!settings?.enabled) return undefined;
  const { since, windowSeconds, maxAgeHours } = settings;
  return { since, windowMs: windowSeconds * 1000, maxAgeMs: maxAgeHours * 3_600_000 };
}
