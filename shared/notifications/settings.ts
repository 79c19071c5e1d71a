/**
 * How an account notifies its customers: made and changed by people, once for the account as a whole.
 *
 *   save   the sink and the account's cursor at the head ── settings, and what polls have to know, in one transaction
 *
 * A crash in between leaves a sink that passes over what it reads: without settings that are enabled nothing is told, and
 * what was observed before `since` is not told either. Saved again, it goes on from there.
 */
import pLimit from 'p-limit';
import * as z from 'zod';
import { checkInput } from '../checks.ts';
import type { EventType } from '../events/catalogue.ts';
import type { EventLog } from '../log/log.ts';
import { type Expectation, type Refusal, revisionOf, revisionStill } from '../managed.ts';
import { type SinkRecord, sinkAttributes, toSink } from '../sinks/sink.ts';
import { type AccountRef, keys, recipientPlace } from '../table/schema.ts';
import type { Item, Table, Write } from '../table/table.ts';
import { listAccounts } from '../tracking/accounts.ts';
import { checkEmail, defaultsOf } from './addresses.ts';
import { locales, NOTIFICATIONS_SINK, type NotificationSettings } from './model.ts';

/** What the use-cases of settings and recipients need. */
export interface PeopleDeps {
  readonly table: Table;
  readonly log: EventLog;
  /** Epoch ms. */
  readonly now: () => number;
  readonly newId: () => string;
}

/** The id of the recipient that the ordering service's own user settings make. */
export const OWN_USER = 'own-user';

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

/** One line of text of customers: no line breaks, nothing that can't be seen. */
export const line = (max: number) =>
  z
    .string('must be text')
    .trim()
    .min(1, 'must not be empty')
    .max(max, `must be at most ${max} characters`)
    .refine((text) => !/[\p{Cc}\u2028\u2029]/u.test(text), 'must be one line without control characters');

/** An IANA time zone. */
export const zone = z
  .string('must be the name of a time zone')
  .refine(isZone, 'must be the IANA name of a time zone, such as Europe/London')
  .describe('IANA name of a time zone, such as `Europe/London`.');

/** A language that there are templates for. */
export const locale = z
  .enum(locales, `must be one of ${locales.join(', ')}`)
  .describe('Language and habits of writing dates.');

/** An e-mail address; it comes out as it is written on the wire. */
export const email = z.string('must be an e-mail address').transform((text, context) => {
  const checked = checkEmail(text);
  if (checked.kind === 'checked') return checked.address;
  context.addIssue({ code: 'custom', message: checked.rule });
  return z.NEVER;
});

const httpsUrl = z
  .string('must be an https URL')
  .max(2000, 'must be at most 2000 characters')
  .refine(isHttpsUrl, 'must be an https URL without a user and password');

const time = z
  .string('must be a time such as 21:00')
  .regex(/^([01]\d|2[0-3]):[0-5]\d$/, 'must be a time from 00:00 to 23:59');

const quietHours = z
  .strictObject({ from: time, to: time })
  .refine(({ from, to }) => from !== to, 'must end at another time than it begins')
  .describe('By the clock of the recipient’s zone; `from` may be later than `to`.');

const between = (least: number, most: number, unit: string) => {
  const rule = `must be a whole number of ${unit} from ${least} to ${most}`;
  return z.int(rule).min(least, rule).max(most, rule);
};
const flag = z.boolean('must be true or false');

/** How an account is to notify: what is absent is as it is by default. */
export const SettingsInput = z
  .strictObject({
    enabled: flag.describe('Whether customers are told anything.'),
    dryRun: flag
      .default(false)
      .describe('Everything happens but sending: messages end as `dry_run`, and can be looked at.'),
    ownUser: flag
      .default(false)
      .describe(
        'The user of the account’s credentials is a recipient, by the settings he has in the ordering service.',
      ),
    windowSeconds: between(0, 3600, 'seconds')
      .default(300)
      .describe('How much event time of an order group becomes one message.'),
    maxAgeHours: between(1, 168, 'hours').default(24).describe('What is older by then is not told.'),
    locale: locale.optional().describe('For recipients without their own; by region unless told.'),
    zone: zone.optional().describe('For recipients without their own; by region unless told.'),
    branding: z
      .strictObject({
        name: line(100).describe('Who the messages come from.'),
        logoUrl: httpsUrl.nullable().default(null).describe('An https URL; null: the name as text.'),
        color: z
          .string('must be a colour such as #1a73e8')
          .regex(/^#[0-9a-fA-F]{6}$/, 'must be a colour such as #1a73e8')
          .default('#1f2937'),
        website: httpsUrl.nullable().default(null),
        footer: z
          .string('must be text')
          .trim()
          .max(500, 'must be at most 500 characters')
          .refine((text) => !/(?!\n)\p{Cc}/u.test(text), 'must be without control characters')
          .nullable()
          .default(null)
          .describe('A line or two at the end of e-mails.'),
      })
      .describe('The look of messages.'),
    replyTo: email.nullable().default(null).describe('Where answers to e-mails go.'),
    sms: z
      .strictObject({
        enabled: flag.default(false).describe('Whether SMS are sent at all.'),
        senderId: z
          .string('must be 1 to 11 letters and digits')
          .regex(
            /^(?=.*[A-Za-z])[A-Za-z0-9]{1,11}$/,
            'must be 1 to 11 letters and digits, one letter at least',
          )
          .nullable()
          .default(null)
          .describe('Shown as the sender where the country allows it; null: the cell’s.'),
        monthlySegments: between(0, 1_000_000, 'segments')
          .default(1000)
          .describe('Segments in a calendar month (UTC); what is above is not sent.'),
        quietHours: quietHours.nullable().default({ from: '21:00', to: '08:00' }),
      })
      .prefault({}),
  })
  .meta({ id: 'NotificationSettingsInput' });
export type SettingsInput = z.infer<typeof SettingsInput>;

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

/** Names alone: an offset is no zone, for it knows no summer time. */
function isZone(name: string): boolean {
  if (!/^[A-Za-z][A-Za-z0-9_+-]*(?:\/[A-Za-z0-9_+-]+)*$/.test(name)) return false;
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

function isHttpsUrl(text: string): boolean {
  const url = URL.parse(text);
  return (
    url?.protocol === 'https:' && url.username === '' && url.password === '' && !/[\s\p{Cc}]/u.test(text)
  );
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
