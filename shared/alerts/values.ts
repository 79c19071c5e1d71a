/** Values of conditions, read from the current state. Each read is bounded, and serves all rules of a region. */
import pLimit from 'p-limit';
import { listAccounts } from '../accounts/accounts.ts';
import { isEndpointKind } from '../built-in-sinks.ts';
import { listSinks, type Sink } from '../delivery/sink.ts';
import { listFailureAccounts } from '../notifications/message-history.ts';
import { oldestDelayed } from '../notifications/oldest-unsent.ts';
import { deadPk, openJobsPk } from '../storage/schema.ts';
import type { Table } from '../storage/table.ts';
import { countLate, toOpenJobCounts } from '../tracking/open-jobs.ts';
import { reportAccounts } from '../tracking/operator.ts';
import { type AlertRuleRecord, type Condition, conditions } from './rule-input.ts';

const MINUTE_MS = 60_000;
const MAX_ACCOUNTS = 100_000;
/** Maximum numbers of values that count for one rule: endpoints with dead events, and failed messages. */
const MAX_COUNTED: { readonly [condition in Condition]?: number } = {
  dead_events: 100,
  messages_failed: 500,
};
/** Maximum number of dead events counted for each endpoint. */
const MAX_DEAD = 100;
/** Maximum number of failed messages read for all rules, and their maximum age (ms). */
const MAX_FAILED = 10_000;
const FAILED_MS = 24 * 3_600_000;
const READS_AT_ONCE = 8;

/** The values of one condition: of each account or endpoint, or of the whole region. */
interface Measured {
  /** Accounts that the value concerns. Empty: all. */
  readonly accounts: readonly string[];
  /** A function reads it at the first call. */
  readonly value: number | (() => Promise<number>);
}

/** The tables that values are read from. */
export interface AlertTables {
  readonly table: Table;
  /** The history table. */
  readonly history: Table;
}

/** Returns a function that reads the value of a rule. Rules with the same condition share one read. */
export function createValueReader(
  tables: AlertTables,
  region: string,
  now: number,
): (rule: Pick<AlertRuleRecord, 'condition' | 'accounts'>) => Promise<number> {
  const read = new Map<Condition, Promise<readonly Measured[]>>();
  return async ({ condition, accounts }) => {
    const known = read.get(condition) ?? readers[condition](tables, region, now);
    read.set(condition, known);
    const all = await known;
    const within = accounts === null ? all : all.filter((one) => isWithin(one, accounts));
    // Limited after the filter, so that other accounts cannot hide those of the rule.
    const values = await Promise.all(
      within
        .slice(0, MAX_COUNTED[condition])
        .map(({ value }) => (typeof value === 'number' ? value : value())),
    );
    const isDuration = conditions[condition].unit === 'minutes';
    return values.reduce((a, b) => (isDuration ? Math.max(a, b) : a + b), 0);
  };
}

const isWithin = ({ accounts }: Measured, scope: readonly string[]): boolean =>
  accounts.length > 0 && accounts.every((account) => scope.includes(account));

const toMinutes = (ms: number): number => Math.max(0, Math.floor(ms / MINUTE_MS));

const readers: Readonly<
  Record<Condition, (tables: AlertTables, region: string, now: number) => Promise<readonly Measured[]>>
> = {
  async late_jobs({ table }, region, now) {
    const items = await table.query({ pk: openJobsPk(region), limit: MAX_ACCOUNTS });
    return items.map((item) => ({
      accounts: [item.sk],
      value: countLate(toOpenJobCounts(item).counts, now),
    }));
  },
  async account_not_observed({ table }, region, now) {
    const accounts = (await listAccounts(table, region, MAX_ACCOUNTS)).filter(({ paused }) => !paused);
    const reports = await reportAccounts({ table }, accounts);
    return accounts.flatMap(({ account }, at) => {
      const through = reports[at]?.observedThrough;
      // Before the first complete poll there is no time to compare with.
      return through ? [{ accounts: [account], value: toMinutes(now - Date.parse(through)) }] : [];
    });
  },
  async endpoint_failing({ table }, region, now) {
    const failing = (await listEndpoints(table, region)).filter(({ paused }) => !paused);
    return failing.map(({ accounts, health }) => {
      const since = health.failingSince ?? health.disabledAt;
      return { accounts, value: since === null ? 0 : toMinutes(now - since) };
    });
  },
  async dead_events({ table }, region) {
    const limit = pLimit(READS_AT_ONCE);
    const sinks = await listEndpoints(table, region);
    return sinks
      .sort((a, b) => (b.health.lastFailedAt ?? 0) - (a.health.lastFailedAt ?? 0))
      .map(({ id, accounts }) => {
        let count: Promise<number> | undefined;
        const read = async () => (await table.query({ pk: deadPk(region, id), limit: MAX_DEAD })).length;
        return { accounts, value: () => (count ??= limit(read)) };
      });
  },
  async notifications_delayed({ table }, region, now) {
    const since = await oldestDelayed(table, region, now);
    return since === undefined ? [] : [{ accounts: [], value: toMinutes(now - since) }];
  },
  async messages_failed({ history }, region, now) {
    const failed = await listFailureAccounts(history, region, now - FAILED_MS, MAX_FAILED);
    return failed.map((account) => ({ accounts: [account], value: 1 }));
  },
};

async function listEndpoints(table: Table, region: string): Promise<Sink[]> {
  return (await listSinks(table, region)).filter(({ kind }) => isEndpointKind(kind));
}
