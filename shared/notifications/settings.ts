/**
 * Notification settings of an account, set by users once for the whole account.
 *
 * save the sink and the account's cursor at the head ── settings, and what polls have to know, in one transaction
 *
 * A crash in between leaves a sink that skips what it reads. Without enabled settings nothing is sent, and observations from before `since`
 * are not sent either. Saving again completes the operation.
 */
import pLimit from 'p-limit';
import { listAccounts } from '../accounts/accounts.ts';
import { putFollowers, type SinkRecord, sinkAttributes, toSink } from '../delivery/sink.ts';
import type { EventLog } from '../log/log.ts';
import { getRegionDefaults } from '../region-defaults.ts';
import { type Expectation, getRevision, notFound, type Rejection, revisionUnchanged } from '../resources.ts';
import { type AccountRef, keys, recipientPlace } from '../storage/schema.ts';
import type { Clause, Item, Table, Write } from '../storage/table.ts';
import { checkInput } from '../validation.ts';
import { SettingsInput } from './notification-input.ts';
import { toRecipientSearchItems, toSearchWrites } from './recipient-search.ts';
import type { NotificationSettings } from './records.ts';
import { FOLDED_TYPES, NOTIFICATIONS_SINK, OWN_USER } from './types.ts';

/** Dependencies of the use-cases of settings and recipients. */
export interface NotificationDeps {
  readonly table: Table;
  readonly log: EventLog;
  /** Epoch ms. */
  readonly now: () => number;
  readonly newId: () => string;
}

/** Maximum number of accounts that the sink lists. Above it, the sink follows all accounts. */
const MAX_NAMED = 500;
/** Maximum number of accounts whose cursors are created when the sink begins to follow all of a region. */
const MAX_ACCOUNTS = 10_000;
const WRITES_AT_ONCE = 16;
/** Maximum number of retries after concurrent modification. */
const ATTEMPTS = 20;

/** Returns the settings of an account, or `undefined` if there are none. */
export async function readSettings(table: Table, ref: AccountRef): Promise<NotificationSettings | undefined> {
  const item = await table.get(keys.notificationSettings(ref));
  return item && toSettings(item);
}

/** Settings that folding and closing use. */
export type FoldSettings = NonNullable<Awaited<ReturnType<typeof readFoldSettings>>>;

/** Reads the settings that folding needs. `undefined` if the account does not notify. */
export async function readFoldSettings(table: Table, ref: AccountRef) {
  const settings = await readSettings(table, ref);
  if (!settings?.enabled) return undefined;
  const { since, windowSeconds, maxAgeHours } = settings;
  return { since, windowMs: windowSeconds * 1000, maxAgeMs: maxAgeHours * 3_600_000 };
}

/** Returns the settings of those accounts that have any, in no particular order. */
export async function readSettingsOfAccounts(
  table: Table,
  refs: readonly AccountRef[],
): Promise<NotificationSettings[]> {
  return (await table.getMany(refs.map(keys.notificationSettings))).map(toSettings);
}

/**
 * Replaces the settings of an account. `since` is the time they were last enabled. The first enabled settings create the sink, which starts
 * at the current end of the account's log.
 */
export async function saveSettings(
  deps: NotificationDeps,
  ref: AccountRef,
  input: unknown,
  expected: Expectation = {},
): Promise<{ readonly kind: 'saved'; readonly settings: NotificationSettings } | Rejection> {
  const checked = checkInput(SettingsInput, input);
  if (checked.kind === 'rejected') return checked;
  const { table, newId, now } = deps;
  const key = keys.notificationSettings(ref);
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const [account, before] = await Promise.all([table.get(keys.account(ref)), table.get(key)]);
    if (!account) return unknownAccount(ref);
    if (expected.revision !== undefined && expected.revision !== (before ? getRevision(before) : 0)) {
      return modifiedConcurrently(ref);
    }
    const { enabled, ownUser, ...fields } = checked.value;
    if (enabled) await followAccount(deps, ref);
    const at = now();
    const isOn = before?.enabled === true;
    const item: Item = {
      ...key,
      ...{ enabled, ownUser },
      // Read after the cursor exists: all later observations pass through the sink.
      since: isOn && enabled ? Number(before.since) : Math.max(at, Number(before?.since ?? 0)),
      settings: JSON.stringify({
        ...fields,
        locale: fields.locale ?? getRegionDefaults(ref.region).locale,
        zone: fields.zone ?? getRegionDefaults(ref.region).zone,
      }),
      revision: before ? getRevision(before) + 1 : 1,
      changedAt: at,
    };
    const reads = enabled && ownUser;
    const since = typeof account.ownUserSince === 'number' ? account.ownUserSince : undefined;
    const writes: Write[] = [
      { put: item, when: before ? [revisionUnchanged(before)] : [['pk', 'absent']] },
      {
        update: keys.account(ref),
        // Stored in the account, which polls read anyway, so that they need not read the settings.
        set: { ownUserSince: reads ? (since ?? at) : undefined },
        when: [
          ['secretRef', 'present'],
          since === undefined ? ['ownUserSince', 'absent'] : ['ownUserSince', '=', since],
        ],
      },
    ];
    if (!ownUser) {
      const user = await table.get(keys.recipient(ref, OWN_USER));
      const when: Clause[] = [user ? revisionUnchanged(user) : ['pk', 'absent']];
      writes.push(
        { delete: keys.recipient(ref, OWN_USER), when },
        { delete: keys.recipientPlace(ref, recipientPlace.account(), OWN_USER) },
        ...(user ? toSearchWrites(toRecipientSearchItems(ref, user)) : []),
      );
    }
    const saved = await table.transact(writes, newId());
    if (saved.done) return { kind: 'saved', settings: toSettings(item) };
  }
  return modifiedConcurrently(ref);
}

/**
 * Ensures that the sink exists, follows an account, and has a cursor at the end of its log. Cursors are written first: without them, a
 * wake-up would start the sink at the beginning.
 */
export async function followAccount({ table, log }: NotificationDeps, ref: AccountRef): Promise<void> {
  const { region, account } = ref;
  const key = keys.sink(region, NOTIFICATIONS_SINK);
  const types = Object.keys(FOLDED_TYPES);
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const item = await table.get(key);
    await putCursor(table, log, ref);
    const before = item && toSink(item);
    const named = before?.accounts ?? [];
    const isFollowed = before !== undefined && (named.length === 0 || named.includes(account));
    const isCurrent = before?.types.join() === types.join();
    if (isFollowed && isCurrent) {
      await putFollowers(table, {
        region,
        id: NOTIFICATIONS_SINK,
        accounts: named.length > 0 ? [account] : [],
      });
      return;
    }
    const more = isFollowed ? named : [...named, account];
    const isAll = more.length > MAX_NAMED;
    if (isAll) {
      const accounts = await listAccounts(table, region, MAX_ACCOUNTS);
      await pLimit(WRITES_AT_ONCE).map(accounts, (other) => putCursor(table, log, other));
    }
    const record: SinkRecord = {
      ...{ region, id: NOTIFICATIONS_SINK, kind: 'notifications', target: '-' },
      ...{ accounts: isAll ? [] : more, types, paused: before?.paused ?? false },
    };
    await putFollowers(table, {
      ...record,
      accounts: isAll || (named.length === 0 && isFollowed) ? [] : [account],
    });
    const written = await table.write({
      update: key,
      set: { ...sinkAttributes(record), revision: item ? getRevision(item) + 1 : 1 },
      when: item ? [revisionUnchanged(item), ['kind', 'present']] : [['kind', 'absent']],
    });
    if (written.done) return;
  }
  throw new Error(
    `The sink ${NOTIFICATIONS_SINK} was modified concurrently on every attempt to follow ${account}.`,
  );
}

async function putCursor(table: Table, log: EventLog, ref: AccountRef): Promise<void> {
  const { region, account } = ref;
  const key = keys.cursor(region, NOTIFICATIONS_SINK, account);
  if (await table.get(key)) return;
  const position = (await log.head({ region, account }))?.sequence ?? 0;
  const put = { ...key, sink: NOTIFICATIONS_SINK, position };
  await table.write({ put, when: [['pk', 'absent']] });
}

/** Removes a deleted account from the sink's list. The last one stays listed, because an empty list means all. */
export async function unfollowAccount(table: Table, { region, account }: AccountRef): Promise<void> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const item = await table.get(keys.sink(region, NOTIFICATIONS_SINK));
    const accounts = item ? toSink(item).accounts : [];
    if (!item || accounts.length < 2 || !accounts.includes(account)) return;
    const written = await table.write({
      update: keys.sink(region, NOTIFICATIONS_SINK),
      set: { accounts: accounts.filter((other) => other !== account), revision: getRevision(item) + 1 },
      when: [revisionUnchanged(item), ['kind', 'present']],
    });
    if (written.done) return;
  }
  throw new Error(
    `The sink ${NOTIFICATIONS_SINK} was modified concurrently on every attempt to remove ${account}.`,
  );
}

function toSettings(item: Item): NotificationSettings {
  const fields = JSON.parse(String(item.settings)) as Omit<
    NotificationSettings,
    'region' | 'account' | 'enabled' | 'ownUser' | 'since' | 'revision'
  >;
  return {
    ...fields,
    region: item.pk.slice('NOTIFY#'.length),
    account: item.sk,
    enabled: item.enabled === true,
    ownUser: item.ownUser === true,
    since: Number(item.since),
    revision: getRevision(item),
  };
}

/** Rejection: the account does not exist. */
export const unknownAccount = ({ account }: AccountRef): Rejection => notFound(`account "${account}"`);
const modifiedConcurrently = ({ account }: AccountRef): Rejection => ({
  kind: 'conflict',
  why: 'changed',
  reason: `The notification settings of "${account}" were modified. Fetch them again and retry.`,
});
