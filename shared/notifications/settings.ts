/**
 * How an account notifies its customers: made and changed by people, once for the account as a whole.
 *
 *   save   the sink and the account's cursor at the head ── settings, and what polls have to know, in one transaction
 *
 * A crash in between leaves a sink that passes over what it reads: without settings that are enabled nothing is told, and
 * what was observed before `since` is not told either. Saved again, it goes on from there.
 */
import pLimit from 'p-limit';
import { checkInput } from '../checks.ts';
import type { EventType } from '../events/catalogue.ts';
import type { EventLog } from '../log/log.ts';
import { type Expectation, type Refusal, revisionOf, revisionStill } from '../managed.ts';
import { type SinkRecord, sinkAttributes, toSink } from '../sinks/sink.ts';
import { type AccountRef, keys, recipientPlace } from '../table/schema.ts';
import type { Item, Table, Write } from '../table/table.ts';
import { listAccounts } from '../tracking/accounts.ts';
import { defaultsOf } from './addresses.ts';
import { NOTIFICATIONS_SINK, type NotificationSettings, OWN_USER } from './model.ts';
import { SettingsInput } from './notification-input.ts';

/** What the use-cases of settings and recipients need. */
export interface PeopleDeps {
  readonly table: Table;
  readonly log: EventLog;
  /** Epoch ms. */
  readonly now: () => number;
  readonly newId: () => string;
}

/** The events that the sink folds. */
export const NOTIFIED_TYPES = [
  'job.dispatched',
  'job.dispatch_revoked',
  'job.tracking_added',
  'job.tracking_updated',
  'job.tracking_removed',
  'job.due_date_changed',
  'job.cancelled',
  'job.reopened',
  'job.updated',
] as const satisfies readonly EventType[];

/** Accounts that the sink names one by one; more than that, and it follows all. */
const MAX_NAMED = 500;
/** Accounts whose cursors are put when it begins to follow all of a region. */
const MAX_ACCOUNTS = 10_000;
const WRITES_AT_ONCE = 16;
/** How often something is decided anew because somebody else came in between. */
const ATTEMPTS = 20;

/** How an account notifies; `undefined` when nobody has said. */
export async function readSettings(table: Table, ref: AccountRef): Promise<NotificationSettings | undefined> {
  const item = await table.get(keys.notificationSettings(ref));
  return item && toSettings(item);
}

/** Of several accounts, those that have settings, in no particular order. */
export async function readSettingsOf(
  table: Table,
  refs: readonly AccountRef[],
): Promise<NotificationSettings[]> {
  return (await table.getMany(refs.map(keys.notificationSettings))).map(toSettings);
}

/**
 * Says how an account notifies, in place of what was said before. `since` is when it was enabled last. The sink is made with
 * the first that is enabled, and begins where the account's log stands.
 */
export async function saveSettings(
  deps: PeopleDeps,
  ref: AccountRef,
  input: unknown,
  expected: Expectation = {},
): Promise<{ readonly kind: 'saved'; readonly settings: NotificationSettings } | Refusal> {
  const checked = checkInput(SettingsInput, input);
  if (checked.kind === 'refused') return checked;
  const { table, newId, now } = deps;
  const key = keys.notificationSettings(ref);
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const [account, before] = await Promise.all([table.get(keys.account(ref)), table.get(key)]);
    if (!account) return unknownAccount(ref);
    if (expected.revision !== undefined && expected.revision !== (before ? revisionOf(before) : 0)) {
      return changedMeanwhile(ref);
    }
    const { enabled, ownUser, ...fields } = checked.value;
    if (enabled) await followAccount(deps, ref);
    const at = now();
    const isOn = before?.enabled === true;
    const item: Item = {
      ...key,
      ...{ enabled, ownUser },
      // After the cursor stands: all that is observed from here on comes by.
      since: isOn && enabled ? Number(before.since) : Math.max(at, Number(before?.since ?? 0)),
      settings: JSON.stringify({
        ...fields,
        locale: fields.locale ?? defaultsOf(ref.region).locale,
        zone: fields.zone ?? defaultsOf(ref.region).zone,
      }),
      revision: before ? revisionOf(before) + 1 : 1,
      changedAt: at,
    };
    const reads = enabled && ownUser;
    const since = typeof account.ownUserSince === 'number' ? account.ownUserSince : undefined;
    const writes: Write[] = [
      { put: item, when: before ? [revisionStill(before)] : [['pk', 'absent']] },
      {
        update: keys.account(ref),
        // Polls read the account as it is: they need no look at the settings.
        set: { ownUserSince: reads ? (since ?? at) : undefined },
        when: [
          ['secretRef', 'present'],
          since === undefined ? ['ownUserSince', 'absent'] : ['ownUserSince', '=', since],
        ],
      },
    ];
    if (!ownUser) {
      writes.push(
        { delete: keys.recipient(ref, OWN_USER) },
        { delete: keys.recipientPlace(ref, recipientPlace.account(), OWN_USER) },
      );
    }
    const saved = await table.transact(writes, newId());
    if (saved.done) return { kind: 'saved', settings: toSettings(item) };
  }
  return changedMeanwhile(ref);
}

/**
 * Sees to it that the sink is there, follows an account and begins where its log stands. Cursors first: were the sink there
 * without them, a wake-up would start it at the beginning.
 */
async function followAccount({ table, log }: PeopleDeps, ref: AccountRef): Promise<void> {
  const { region, account } = ref;
  const key = keys.sink(region, NOTIFICATIONS_SINK);
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const item = await table.get(key);
    await putCursor(table, log, ref);
    const before = item && toSink(item);
    const named = before?.accounts ?? [];
    const isFollowed = before !== undefined && (named.length === 0 || named.includes(account));
    const isCurrent = before?.types.join() === NOTIFIED_TYPES.join();
    if (isFollowed && isCurrent) return;
    const more = isFollowed ? named : [...named, account];
    const isAll = more.length > MAX_NAMED;
    if (isAll) {
      const accounts = await listAccounts(table, region, MAX_ACCOUNTS);
      await pLimit(WRITES_AT_ONCE).map(accounts, (other) => putCursor(table, log, other));
    }
    const record: SinkRecord = {
      ...{ region, id: NOTIFICATIONS_SINK, kind: 'notifications', target: '-' },
      ...{ accounts: isAll ? [] : more, types: [...NOTIFIED_TYPES], paused: before?.paused ?? false },
    };
    const written = await table.write({
      update: key,
      set: { ...sinkAttributes(record), revision: item ? revisionOf(item) + 1 : 1 },
      when: item ? [revisionStill(item), ['kind', 'present']] : [['kind', 'absent']],
    });
    if (written.done) return;
  }
  throw new Error(`The sink ${NOTIFICATIONS_SINK} kept changing while it was to follow ${account}.`);
}

async function putCursor(table: Table, log: EventLog, ref: AccountRef): Promise<void> {
  const { region, account } = ref;
  const key = keys.cursor(region, NOTIFICATIONS_SINK, account);
  if (await table.get(key)) return;
  const position = (await log.head({ region, account }))?.sequence ?? 0;
  const put = { ...key, sink: NOTIFICATIONS_SINK, position };
  await table.write({ put, when: [['pk', 'absent']] });
}

/** Takes a deleted account off the sink's list. The last one stays named, for an empty list means all. */
export async function unfollowAccount(table: Table, { region, account }: AccountRef): Promise<void> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const item = await table.get(keys.sink(region, NOTIFICATIONS_SINK));
    const accounts = item ? toSink(item).accounts : [];
    if (!item || accounts.length < 2 || !accounts.includes(account)) return;
    const written = await table.write({
      update: keys.sink(region, NOTIFICATIONS_SINK),
      set: { accounts: accounts.filter((other) => other !== account), revision: revisionOf(item) + 1 },
      when: [revisionStill(item), ['kind', 'present']],
    });
    if (written.done) return;
  }
  throw new Error(`The sink ${NOTIFICATIONS_SINK} kept changing while ${account} was taken off it.`);
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
    revision: revisionOf(item),
  };
}

/** There is no such account. */
export const unknownAccount = ({ account }: AccountRef): Refusal => ({
  kind: 'unknown',
  reason: `There is no account "${account}".`,
});
const changedMeanwhile = ({ account }: AccountRef): Refusal => ({
  kind: 'conflict',
  why: 'changed',
  reason: `The notification settings of "${account}" were changed meanwhile; read them again.`,
});
