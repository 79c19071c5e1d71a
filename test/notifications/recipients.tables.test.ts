/**
 * Notification settings, recipients, CSV imports, suppressions, and unsubscribe links of an account.
 * One file: settings, recipients and imports share the rig and the crash at each write.
 */
import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { registerAccount } from '../../shared/accounts/accounts.ts';
import { toSink } from '../../shared/delivery/sink.ts';
import { createEventLog } from '../../shared/log/log.ts';
import { checkMobile } from '../../shared/notifications/addresses.ts';
import { checkEmail } from '../../shared/notifications/email-address.ts';
import { maskAddress } from '../../shared/notifications/masking.ts';
import type { ImportReport } from '../../shared/notifications/notification-views.ts';
import { syncOwnUser } from '../../shared/notifications/own-user.ts';
import { findRecipients } from '../../shared/notifications/recipient-matching.ts';
import {
  createRecipient,
  deleteRecipient,
  listRecipients,
  readRecipient,
  updateRecipient,
} from '../../shared/notifications/recipients.ts';
import { importRecipients } from '../../shared/notifications/recipients-csv.ts';
import { columns, csvHeader, decodeCsv, formatCsvRow } from '../../shared/notifications/recipients-file.ts';
import {
  type NotificationDeps,
  readSettings,
  readSettingsOfAccounts,
  saveSettings,
  unfollowAccount,
} from '../../shared/notifications/settings.ts';
import {
  createSuppression,
  findSuppressions,
  findUnsubscription,
  liftSuppression,
  listSuppressions,
  resubscribe,
  suppress,
} from '../../shared/notifications/suppressions.ts';
import { NOTIFICATIONS_SINK, OWN_USER } from '../../shared/notifications/types.ts';
import {
  createAddressSealer,
  createUnsubscribeUrl,
  LINK_DAYS,
  readUnsubscribeToken,
} from '../../shared/notifications/unsubscribe.ts';
import type { AccountUser } from '../../shared/ordering/schemas.ts';
import { type AccountRef, keys, recipientPk, recipientPlacePk } from '../../shared/storage/schema.ts';
import { toSearchRange } from '../../shared/storage/search-index.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import type { Item, Table } from '../../shared/storage/table.ts';
import { moved } from '../support/delivery-world.ts';
import { getBlocks, readSection } from '../support/markdown.ts';
import { findSuppression } from '../support/notification-world.ts';
import { eachTable } from '../support/tables.ts';
import { watchedTable } from '../support/tracker.ts';

const START = Date.parse('2026-03-02T08:00:00Z');
const ACME: AccountRef = { region: 'nz', account: 'acme' };
const OTHER: AccountRef = { region: 'nz', account: 'other' };
const BRANDING = { branding: { name: 'Acme Prints' } };

async function createRig(makeTable: () => Promise<Table> = async () => createMemoryTable()) {
  const clock = { now: START };
  const now = () => clock.now;
  const table = await makeTable();
  const log = createEventLog(table, { now, newId: randomUUID, schemaBaseUrl: 'https://jobwire.example' });
  const deps: NotificationDeps = { table, log, now, newId: randomUUID };
  const register = (ref: AccountRef) =>
    registerAccount(
      table,
      log,
      { ...ref, secretRef: 'x', pollIntervalSeconds: 60, paused: false },
      { now: clock.now, epoch: 'e1' },
    );
  await register(ACME);
  await register(OTHER);
  const create = async (input: object, ref = ACME) => {
    const made = await createRecipient(deps, ref, input);
    if (made.kind !== 'created') throw new Error(made.reason);
    return made.recipient;
  };
  return { clock, table, log, deps, register, create };
}

describe('addresses', () => {
  test.each([
    ['Ann.Lee@Example.COM', 'Ann.Lee@example.com'],
    [' ann+x@example.com ', 'ann+x@example.com'],
    ['ann@bücher.example', 'ann@xn--bcher-kva.example'],
    ['ann@例え.テスト', 'ann@xn--r8jz45g.xn--zckzah'],
    ["o'neil@mail.example.co.uk", "o'neil@mail.example.co.uk"],
  ])('an e-mail address is stored in SMTP form: %s', (text, address) => {
    expect(checkEmail(text)).toEqual({ kind: 'checked', address });
  });

  test.each([
    '',
    'ann',
    '@example.com',
    'ann@',
    'ann@localhost',
    'a b@example.com',
    'ann@exa mple.com',
    '.ann@example.com',
    'an..n@example.com',
    'ann@example..com',
    'ann@-example.com',
    'ann@10.0.0.1',
    'ann@[10.0.0.1]',
    'ann@example.com\r\nBcc: b@example.com',
    'ann@ex%61mple.com',
    'ann@example.com/x',
    'Ann <ann@example.com>',
    'a@example.com,b@example.com',
    'änn@example.com',
    `${'a'.repeat(65)}@example.com`,
    `ann@${'a'.repeat(60)}.${'b'.repeat(60)}.${'c'.repeat(60)}.${'d'.repeat(60)}.${'e'.repeat(20)}.com`,
  ])('an invalid e-mail address is rejected: %s', (text) => {
    expect(checkEmail(text).kind).toBe('rejected');
  });

  test.each([
    ['nz', '021 123 4567', '+64211234567'],
    ['nz-test', '(021) 123-4567', '+64211234567'],
    ['us', '(212) 555-2368', '+12125552368'],
    ['au', '0412 345 678', '+61412345678'],
    ['uk', '07400 123456', '+447400123456'],
    ['eu', '+49 1512 3456789', '+4915123456789'],
    ['nz', '+44 7400 123456', '+447400123456'],
  ])('in %s the number %s is stored in E.164', (region, text, address) => {
    expect(checkMobile(text, region)).toEqual({ kind: 'checked', address });
  });

  test.each([
    ['eu', '01512 3456789'],
    ['moon', '021 123 4567'],
    ['nz', '123'],
    ['nz', '021 123 4567 ext. 5'],
    ['nz', 'call 021 123 4567'],
    ['nz', '+64 21 123 4567, +64 21 123 4568'],
    ['us', '+999 123 456 789'],
    // Premium rate, free of charge, a landline, by satellite.
    ['us', '+1 900 555 0123'],
    ['us', '+44 909 879 0000'],
    ['nz', '0900 12345'],
    ['us', '+1 800 555 0199'],
    ['nz', '09 123 4567'],
    ['us', '+881 6 1234 5678'],
    ['us', '+979 1 2345 6789'],
  ])('in %s the number %s is rejected', (region, text) => {
    expect(checkMobile(text, region).kind).toBe('rejected');
  });

  test('the mask of an address is recognizable', () => {
    expect(maskAddress('ann.lee@example.com')).toBe('a•••@e•••.com');
    expect(maskAddress('+64211234567')).toBe('+64 •••• 567');
  });
});

const on = { enabled: true, ...BRANDING };

/** A process crash before or after its nth table call. */
function crashing(table: Table, at: number, when: 'before' | 'after'): Table {
  let calls = 0;
  const die = () => {
    if (calls >= at) throw new Error('The process died.');
  };
  const count = () => {
    calls += 1;
    die();
  };
  return watchedTable(table, when === 'before' ? { before: count } : { before: die, after: count });
}

eachTable('settings', (makeTable) => {
  test('saved settings are returned with their defaults, and `since` is the time of the last enabling', async () => {
    const { deps, table, clock } = await createRig(makeTable);
    expect(await readSettings(table, ACME)).toBeUndefined();
    const off = await saveSettings(deps, ACME, { enabled: false, ...BRANDING });
    expect(off).toMatchObject({ kind: 'saved', settings: { enabled: false, revision: 1 } });
    expect(await table.get(keys.sink('nz', NOTIFICATIONS_SINK))).toBeUndefined();
    clock.now += 1000;
    await saveSettings(deps, ACME, on);
    clock.now += 1000;
    await saveSettings(deps, ACME, { ...on, dryRun: true });
    expect(await readSettings(table, ACME)).toMatchObject({
      ...ACME,
      ...{ enabled: true, since: START + 1000, dryRun: true, windowSeconds: 300, maxAgeHours: 24 },
      ...{ locale: 'en-NZ', zone: 'Pacific/Auckland', replyTo: null, revision: 3 },
      branding: { name: 'Acme Prints', logoUrl: null, website: null, footer: null },
      sms: { enabled: false, senderId: null, monthlySegments: 1000 },
    });
    await saveSettings(deps, ACME, { enabled: false, ...BRANDING });
    clock.now += 1000;
    await saveSettings(deps, ACME, on);
    expect(await readSettings(table, ACME)).toMatchObject({ since: START + 3000 });
    expect((await readSettingsOfAccounts(table, [OTHER, ACME])).map(({ account }) => account)).toEqual([
      'acme',
    ]);
  });

  test("the sink starts at the end of each account's log when it is enabled, and does not move later", async () => {
    const { deps, table, log } = await createRig(makeTable);
    const cursor = async ({ region, account }: AccountRef) =>
      (await table.get(keys.cursor(region, NOTIFICATIONS_SINK, account)))?.position;
    const sink = async () => toSink((await table.get(keys.sink('nz', NOTIFICATIONS_SINK))) as Item);
    await log.append(ACME, [moved(1, 'x'), moved(2, 'x')]);
    await saveSettings(deps, ACME, on);
    expect(await sink()).toMatchObject({
      kind: 'notifications',
      target: '-',
      accounts: ['acme'],
      paused: false,
    });
    await log.append(ACME, [moved(3, 'x')]);
    await log.append(OTHER, [moved(4, 'x')]);
    await saveSettings(deps, OTHER, on);
    await saveSettings(deps, ACME, { ...on, dryRun: true });
    expect((await sink()).accounts).toEqual(['acme', 'other']);
    expect([await cursor(ACME), await cursor(OTHER)]).toEqual([2, 1]);
  });

  test('the sink follows two accounts that are enabled at the same time', async () => {
    const { deps, table } = await createRig(makeTable);
    await Promise.all([ACME, OTHER].map((ref) => saveSettings(deps, ref, on)));
    const item = (await table.get(keys.sink('nz', NOTIFICATIONS_SINK))) as Item;
    expect([...toSink(item).accounts].sort()).toEqual(['acme', 'other']);
  });

  test('settings that changed since they were read are not overwritten', async () => {
    const { deps, table } = await createRig(makeTable);
    expect(await saveSettings(deps, ACME, on, { revision: 0 })).toMatchObject({ kind: 'saved' });
    expect(await saveSettings(deps, ACME, on, { revision: 0 })).toMatchObject({
      kind: 'conflict',
      why: 'changed',
    });
    const saves = [60, 120].map((windowSeconds) =>
      saveSettings(deps, ACME, { ...on, windowSeconds }, { revision: 1 }),
    );
    expect((await Promise.all(saves)).map(({ kind }) => kind).sort()).toEqual(['conflict', 'saved']);
    expect(await readSettings(table, ACME)).toMatchObject({ revision: 2 });
  });

  test('settings of an unknown account are not stored', async () => {
    const { deps, table } = await createRig(makeTable);
    const nobody = { region: 'nz', account: 'nobody' };
    expect(await saveSettings(deps, nobody, on)).toMatchObject({ kind: 'unknown' });
    expect(await createRecipient(deps, nobody, { email: 'a@example.com' })).toMatchObject({
      kind: 'unknown',
    });
    expect(await importRecipients(deps, nobody, 'email\na@example.com')).toMatchObject({ kind: 'unknown' });
    expect(
      await suppress(deps, nobody, { channel: 'sms', address: '+64211234567' }, 'unsubscribed'),
    ).toMatchObject({ kind: 'unknown' });
    expect(await readSettings(table, nobody)).toBeUndefined();
    expect(await table.query({ pk: recipientPk(nobody) })).toEqual([]);
    expect(await findSuppression(table, nobody, 'sms', '+64211234567')).toBeUndefined();
  });
});

describe('an interrupted change of settings', () => {
  test.each(['before', 'after'] as const)(
    'wherever a process crashes, %s the table call, nothing is enabled that the sink does not follow',
    async (when) => {
      let died = 0;
      for (let at = 1; at < 12; at += 1) {
        const { deps, table, log, clock } = await createRig();
        await log.append(ACME, [moved(1, 'x')]);
        const first = { ...deps, table: crashing(table, at, when) };
        const outcome = await saveSettings(first, ACME, on).catch(() => 'died' as const);
        if (outcome === 'died') died += 1;
        const settings = await readSettings(table, ACME);
        const sink = await table.get(keys.sink('nz', NOTIFICATIONS_SINK));
        const cursor = await table.get(keys.cursor('nz', NOTIFICATIONS_SINK, 'acme'));
        if (settings) expect(sink && toSink(sink).accounts).toEqual(['acme']);
        if (sink) expect(cursor?.position).toBe(1);
        clock.now += 1000;
        await log.append(ACME, [moved(2, 'x')]);
        expect(await saveSettings(deps, ACME, on)).toMatchObject({
          kind: 'saved',
          settings: { enabled: true },
        });
        const { since = 0 } = (await readSettings(table, ACME)) ?? {};
        const { position } = (await table.get(keys.cursor('nz', NOTIFICATIONS_SINK, 'acme'))) as Item;
        // Later events reach the sink.
        expect(Number(position)).toBeLessThanOrEqual(since === START ? 1 : 2);
      }
      expect(died).toBeGreaterThan(4);
    },
  );
});

describe('the account filter of the sink', () => {
  async function many(count: number) {
    const rig = await createRig();
    const key = keys.sink('nz', NOTIFICATIONS_SINK);
    await saveSettings(rig.deps, ACME, on);
    const accounts = ['acme', ...Array.from({ length: count - 1 }, (_, n) => `a-${n}`)];
    await rig.table.write({ update: key, set: { accounts } });
    const named = async () => toSink((await rig.table.get(key)) as Item).accounts;
    return { ...rig, named };
  }

  test('with more than 500 accounts it follows all, and starts new ones at the end of their logs', async () => {
    const { deps, table, log, named, register } = await many(500);
    const third = { region: 'nz', account: 'third' };
    await register(third);
    await log.append(third, [moved(1, 'x'), moved(2, 'x')]);
    await saveSettings(deps, OTHER, on);
    expect(await named()).toEqual([]);
    expect(await table.get(keys.cursor('nz', NOTIFICATIONS_SINK, 'third'))).toMatchObject({ position: 2 });
    await saveSettings(deps, third, on);
    expect(await named()).toEqual([]);
  });

  test('with 500 accounts it still names them', async () => {
    const { deps, named } = await many(499);
    await saveSettings(deps, OTHER, on);
    expect(await named()).toHaveLength(500);
  });

  test('omits a deleted account, except the last one, because an empty filter would mean all', async () => {
    const { table, named } = await many(2);
    await unfollowAccount(table, ACME);
    await unfollowAccount(table, OTHER);
    expect(await named()).toEqual(['a-0']);
    await unfollowAccount(table, { region: 'nz', account: 'a-0' });
    expect(await named()).toEqual(['a-0']);
  });
});

describe('rejects invalid settings', () => {
  test.each([
    [{ enabled: true }, 'branding is missing; it must be an object.'],
    [{ ...on, branding: { name: 'A\nB' } }, 'branding.name must be one line without control characters.'],
    [{ ...on, branding: { name: '  ' } }, 'branding.name must not be empty.'],
    [{ ...on, zone: '+02:00' }, 'zone must be the IANA name of a time zone, such as Europe/London.'],
    [{ ...on, zone: 'Mars/Base' }, 'zone must be the IANA name of a time zone, such as Europe/London.'],
    [{ ...on, locale: 'xx' }, 'locale must be one of en-US, en-GB, en-AU, en-NZ, de, fr.'],
    [{ ...on, replyTo: 'x' }, 'replyTo must be an e-mail address such as name@example.com.'],
    [
      { ...on, branding: { name: 'A', logoUrl: 'http://a.example/x.png' } },
      'branding.logoUrl must be an https URL without a user and password.',
    ],
    [{ ...on, branding: { name: 'A', color: 'red' } }, 'branding.color must be a colour such as #1a73e8.'],
    [{ ...on, windowSeconds: 4000 }, 'windowSeconds must be an integer number of seconds from 0 to 3600.'],
    [
      { ...on, sms: { quietHours: { from: '25:00', to: '07:00' } } },
      'sms.quietHours.from must be a time from 00:00 to 23:59.',
    ],
    [
      { ...on, sms: { senderId: '12345' } },
      'sms.senderId must be 1 to 11 letters and digits, with at least one letter.',
    ],
    [{ ...on, colour: 1 }, 'colour is not a known setting.'],
  ])('%j: %s', async (input, reason) => {
    const { deps } = await createRig();
    expect(await saveSettings(deps, ACME, input)).toEqual({ kind: 'rejected', reason });
  });
});

eachTable('recipients', (makeTable) => {
  test('a recipient is created, read, listed, changed and deleted', async () => {
    const { deps, table, create } = await createRig(makeTable);
    const made = await create({ name: ' Ann ', email: 'Ann@Bücher.example', mobile: '021 123 4567' });
    expect(made).toMatchObject({
      ...ACME,
      ...{
        scope: { for: 'account' },
        name: 'Ann',
        email: 'Ann@xn--bcher-kva.example',
        mobile: '+64211234567',
      },
      ...{ locale: null, zone: null, channels: ['email', 'sms'], kinds: ['dispatched', 'tracking'] },
      ...{ paused: false, source: 'manual', createdAt: START, revision: 1 },
    });
    expect(await readRecipient(table, ACME, made.id)).toEqual(made);
    const second = await create({ id: 'zoe', email: 'zoe@example.com', orderGroup: 'G1' });
    expect((await listRecipients(table, ACME)).recipients).toEqual([made, second]);
    const changed = await updateRecipient(deps, ACME, 'zoe', {
      jobNumber: 7,
      paused: true,
      kinds: ['cancelled'],
    });
    expect(changed).toMatchObject({
      kind: 'changed',
      recipient: { scope: { for: 'job', jobNumber: 7 }, paused: true, kinds: ['cancelled'], revision: 2 },
    });
    expect(await updateRecipient(deps, ACME, 'zoe', { paused: true })).toMatchObject({
      recipient: { revision: 2 },
    });
    expect(await deleteRecipient(deps, ACME, 'zoe')).toEqual({ kind: 'deleted' });
    expect(await deleteRecipient(deps, ACME, 'zoe')).toMatchObject({ kind: 'unknown' });
    await deleteRecipient(deps, ACME, made.id);
    expect(await table.query({ pk: recipientPk(ACME) })).toEqual([]);
    expect(await table.query({ pk: recipientPlacePk(ACME) })).toEqual([]);
  });

  test('a page ends at its limit and has the cursor of the next one', async () => {
    const { table, create } = await createRig(makeTable);
    for (const id of ['a', 'b', 'c']) await create({ id, email: 'a@example.com' });
    const first = await listRecipients(table, ACME, { limit: 2 });
    expect([first.recipients.map(({ id }) => id), first.next]).toEqual([['a', 'b'], 'b']);
    const rest = await listRecipients(table, ACME, { limit: 2, after: 'b' });
    expect([rest.recipients.map(({ id }) => id), rest.next]).toEqual([['c'], null]);
  });

  test('the recipients of a job are found, each with its matching scopes', async () => {
    const { table, create } = await createRig(makeTable);
    const long = 'x'.repeat(900);
    await create({ id: 'all', email: 'a@example.com' });
    await create({ id: 'group', email: 'a@example.com', orderGroup: 'G' });
    await create({ id: 'other-group', email: 'a@example.com', orderGroup: 'G#2' });
    await create({ id: 'order', email: 'a@example.com', orderNumber: 'PO#7' });
    await create({ id: 'prefix', email: 'a@example.com', orderNumber: 'PO' });
    await create({ id: 'long', email: 'a@example.com', orderNumber: long });
    await create({ id: 'job-2', email: 'a@example.com', jobNumber: 2 });
    await create({ id: 'job-3', email: 'a@example.com', jobNumber: 3 });
    await create({ id: 'last', email: 'a@example.com', jobNumber: 1000 });
    await create({ id: 'beyond', email: 'a@example.com', jobNumber: 1001 });
    await create({ id: 'stranger', email: 'a@example.com' }, OTHER);
    const job = (jobNumber: number, orderNumber: string | null, orderGroup: string | null) => ({
      ...{ jobNumber, orderNumber, orderGroup },
    });
    const found = await findRecipients(table, ACME, [
      job(1, 'PO', 'G'),
      job(2, 'PO#7', 'G'),
      job(4, long, null),
      job(1000, null, null),
    ]);
    expect(found.map(({ recipient, jobs }) => [recipient.id, jobs])).toEqual([
      ['all', [1, 2, 4, 1000]],
      ['group', [1, 2]],
      ['job-2', [2]],
      ['last', [1000]],
      ['long', [4]],
      ['order', [2]],
      ['prefix', [1]],
    ]);
    expect(await findRecipients(table, ACME, [])).toEqual([]);
  });

  test('a recipient with a changed scope is found by the new scope only', async () => {
    const { deps, table, create } = await createRig(makeTable);
    const { id } = await create({ email: 'a@example.com', orderGroup: 'G' });
    const found = async (orderGroup: string | null, orderNumber: string | null) =>
      (await findRecipients(table, ACME, [{ jobNumber: 1, orderGroup, orderNumber }])).length;
    await updateRecipient(deps, ACME, id, { orderNumber: 'PO' });
    expect([await found('G', null), await found(null, 'PO')]).toEqual([0, 1]);
    await updateRecipient(deps, ACME, id, { orderNumber: null });
    expect([await found('G', null), await found(null, null)]).toEqual([1, 1]);
    expect(await table.query({ pk: recipientPlacePk(ACME) })).toHaveLength(1);
  });

  test('a recipient uses each channel for which there is an address, also if the addresses change, unless channels are given', async () => {
    const { deps, create } = await createRig(makeTable);
    const { id } = await create({ email: 'a@example.com' });
    const change = async (input: object) => {
      const changed = await updateRecipient(deps, ACME, id, input);
      return changed.kind === 'changed' ? changed.recipient.channels : changed;
    };
    expect(await change({ mobile: '021 123 4567' })).toEqual(['email', 'sms']);
    expect(await change({ email: null })).toEqual(['sms']);
    expect(await change({ email: 'a@example.com', channels: ['sms'] })).toEqual(['sms']);
    expect(await change({ email: 'b@example.com' })).toEqual(['sms']);
    expect(await change({ channels: null })).toEqual(['email', 'sms']);
  });

  test('of two concurrent changes of a recipient, one succeeds and the other conflicts', async () => {
    const { deps, table, create } = await createRig(makeTable);
    const { id } = await create({ email: 'a@example.com' });
    await Promise.all([
      updateRecipient(deps, ACME, id, { name: 'Ann' }),
      updateRecipient(deps, ACME, id, { orderGroup: 'G' }),
    ]);
    const both = await readRecipient(table, ACME, id);
    expect(both).toMatchObject({ name: 'Ann', scope: { for: 'orderGroup' }, revision: 3 });
    const outcomes = await Promise.all([
      updateRecipient(deps, ACME, id, { name: 'Bob' }, { revision: 3 }),
      deleteRecipient(deps, ACME, id, { revision: 3 }),
    ]);
    expect(outcomes.map(({ kind }) => kind === 'conflict' || kind === 'unknown')).toContain(true);
    expect(outcomes.map(({ kind }) => kind === 'changed' || kind === 'deleted')).toContain(true);
    const items = await table.query({ pk: recipientPk(ACME) });
    expect(await table.query({ pk: recipientPlacePk(ACME) })).toHaveLength(items.length);
  });

  test('a repeated request creates the same recipient, and ids are unique', async () => {
    const { deps, table } = await createRig(makeTable);
    const again = () => {
      let n = 0;
      return { newId: () => `made-${n++}` };
    };
    const input = { email: 'a@example.com' };
    const [first, second] = [
      await createRecipient(deps, ACME, input, again()),
      await createRecipient(deps, ACME, input, again()),
    ];
    expect(second).toEqual(first);
    expect((await listRecipients(table, ACME)).recipients).toHaveLength(1);
    await createRecipient(deps, ACME, { id: 'ann', ...input });
    expect(await createRecipient(deps, ACME, { id: 'ann', ...input })).toMatchObject({ kind: 'conflict' });
  });
});

describe('rejects invalid recipients', () => {
  test.each([
    [{}, 'email is required unless mobile is given.'],
    [{ email: 'a@example.com', channels: ['email', 'sms'] }, 'mobile is required for the channel sms.'],
    [{ mobile: '021 123 4567', channels: ['email'] }, 'email is required for the channel email.'],
    [
      { email: 'a@example.com', channels: [] },
      'channels must have at least one channel; to stop notifications, set `paused`.',
    ],
    [{ email: 'a@example.com', channels: ['fax'] }, 'channels[0] must be one of email, sms.'],
    [
      { email: 'a@example.com', orderGroup: 'G', jobNumber: 1 },
      'At most one of orderGroup, orderNumber and jobNumber is accepted.',
    ],
    [
      { email: 'a@example.com', kinds: ['x'] },
      'kinds[0] must be one of dispatched, tracking, dispatch_revoked, due_date_changed, cancelled.',
    ],
    [{ email: 'secret-person(at)example' }, 'email must be an e-mail address such as name@example.com.'],
    [
      { mobile: '555-private' },
      'mobile must be a mobile number of this region, or of any country in international form, such as +64 21 123 4567.',
    ],
    [{ email: 'a@example.com', jobNumber: 0 }, 'jobNumber must be an integer from 1 to 999999999999.'],
    [
      { email: 'a@example.com', id: OWN_USER },
      'id must not be own-user, which is reserved for the API user.',
    ],
    [{ email: 'a@example.com', fax: '1' }, 'fax is not a known setting.'],
  ])('%j: %s', async (input, reason) => {
    const { deps } = await createRig();
    expect(await createRecipient(deps, ACME, input)).toEqual({ kind: 'rejected', reason });
  });

  test('an address that a given channel requires cannot be removed', async () => {
    const { deps, create } = await createRig();
    const { id } = await create({ email: 'a@example.com', mobile: '021 123 4567', channels: ['sms'] });
    expect(await updateRecipient(deps, ACME, id, { mobile: null })).toMatchObject({
      kind: 'rejected',
      reason: 'mobile is required for the channel sms.',
    });
    expect(await updateRecipient(deps, ACME, id, { mobile: null, channels: ['email'] })).toMatchObject({
      kind: 'changed',
      recipient: { mobile: null, channels: ['email'] },
    });
  });
});

/** An import that must succeed. */
async function take(
  deps: NotificationDeps,
  csv: string,
  options: { dryRun?: boolean } = {},
): Promise<ImportReport> {
  const report = await importRecipients(deps, ACME, csv, options);
  if (report.kind !== 'imported') throw new Error(report.reason);
  return report;
}
const getCounts = ({ created, updated, unchanged }: ImportReport) => [created, updated, unchanged];

eachTable('spreadsheets', (makeTable) => {
  test('a file is imported once, however often it is sent', async () => {
    const { deps, table } = await createRig(makeTable);
    const csv = [
      'Name,E-Mail,Order Group,channels,kinds,paused,Language',
      'Ann,Ann@example.com,,email,dispatched|cancelled,no,de',
      'Ann,ann@example.com,G1,,,,',
      '"Bob ""the Shirt"", Jr.",bob@example.com,,,,yes,EN_us',
    ].join('\n');
    expect(await take(deps, csv, { dryRun: true })).toMatchObject({ created: 3, invalidRows: [] });
    expect((await listRecipients(table, ACME)).recipients).toEqual([]);
    expect(await take(deps, csv)).toMatchObject({ created: 3, updated: 0, unchanged: 0, invalidRows: [] });
    const { recipients } = await listRecipients(table, ACME);
    expect(recipients.map(({ name }) => name).sort()).toEqual(['Ann', 'Ann', 'Bob "the Shirt", Jr.']);
    expect(recipients.find(({ paused }) => paused)).toMatchObject({ locale: 'en-US', channels: ['email'] });
    expect(recipients.find(({ locale }) => locale === 'de')).toMatchObject({
      kinds: ['dispatched', 'cancelled'],
    });
    expect(await take(deps, csv)).toMatchObject({ created: 0, updated: 0, unchanged: 3 });
    expect((await listRecipients(table, ACME)).recipients).toEqual(recipients);
  });

  test('rows update existing recipients: by id, or by scope and address; absent columns change nothing', async () => {
    const { deps, table, create } = await createRig(makeTable);
    await create({ id: 'ann', name: 'Ann', email: 'ann@example.com', mobile: '021 123 4567', locale: 'de' });
    await create({ id: 'bob', name: 'Bob', email: 'bob@example.com', orderNumber: 'PO 1' });
    const csv = 'orderNumber;email;name\nPO 1;BOB@example.com;Robert\n;ANN@example.com;\n';
    expect(getCounts(await take(deps, csv, { dryRun: true }))).toEqual([0, 2, 0]);
    expect(await readRecipient(table, ACME, 'ann')).toMatchObject({ name: 'Ann' });
    expect(getCounts(await take(deps, csv))).toEqual([0, 2, 0]);
    expect(await readRecipient(table, ACME, 'bob')).toMatchObject({ name: 'Robert', revision: 2 });
    expect(await readRecipient(table, ACME, 'ann')).toMatchObject({
      ...{ name: null, mobile: '+64211234567', locale: 'de', channels: ['email', 'sms'] },
    });
    expect(getCounts(await take(deps, 'id,mobile\nbob,021 765 4321\n'))).toEqual([0, 1, 0]);
    expect(await readRecipient(table, ACME, 'bob')).toMatchObject({
      mobile: '+64217654321',
      channels: ['email', 'sms'],
    });
    expect(await take(deps, 'id,mobile\nbob,\n')).toMatchObject({ updated: 1, invalidRows: [] });
    expect(await readRecipient(table, ACME, 'bob')).toMatchObject({ mobile: null, channels: ['email'] });
  });

  test('two concurrent imports of the same file create each recipient once', async () => {
    const { deps, table } = await createRig(makeTable);
    const csv = `email\n${Array.from({ length: 30 }, (_, n) => `p${n}@example.com`).join('\n')}`;
    const reports = await Promise.all([take(deps, csv), take(deps, csv)]);
    expect(reports.flatMap(({ invalidRows }) => invalidRows)).toEqual([]);
    expect(reports.reduce((sum, { created }) => sum + created, 0)).toBe(30);
    expect((await listRecipients(table, ACME)).recipients).toHaveLength(30);
  });

  test('the id of an imported recipient does not reveal the address by brute force', async () => {
    const csv = 'mobile\n+64211234567';
    const getId = async () => {
      const { deps, table } = await createRig(makeTable);
      await take(deps, csv);
      return (await listRecipients(table, ACME)).recipients[0]?.id;
    };
    // The value that an id without the installation's key would have.
    expect(await getId()).not.toBe(await getId());
  });

  test('an imported recipient whose address changed later does not block a new import', async () => {
    const { deps, table } = await createRig(makeTable);
    await take(deps, 'email\nann@example.com');
    const [{ id } = { id: '' }] = (await listRecipients(table, ACME)).recipients;
    await updateRecipient(deps, ACME, id, { email: 'bob@example.com' });
    expect(getCounts(await take(deps, 'email\nann@example.com'))).toEqual([1, 0, 0]);
    expect((await listRecipients(table, ACME)).recipients.map(({ email }) => email).sort()).toEqual([
      'ann@example.com',
      'bob@example.com',
    ]);
  });

  test('an export can be imported unchanged, including formulas and leading zeros', async () => {
    const { deps, table, create } = await createRig(makeTable);
    await create({ id: 'f', name: '=1+1', mobile: '021 123 4567', orderNumber: '007' });
    await create({
      id: 'g',
      name: 'Müller; "Söhne", 株式会社',
      email: "o'neil@example.com",
      orderGroup: '@x',
    });
    await create({
      id: 'h',
      name: '-',
      email: 'h@example.com',
      jobNumber: 12,
      zone: 'Europe/Berlin',
      locale: 'fr',
    });
    const { recipients } = await listRecipients(table, ACME);
    const place = { orderGroup: null, orderNumber: null, jobNumber: null };
    const rows = recipients.map((one) => formatCsvRow({ ...place, ...one.scope, ...one }));
    const csv = [csvHeader, ...rows].join('\n');
    expect(csv).toContain("'=1+1");
    expect(csv).not.toMatch(/(^|,)[=+@-]/m);
    expect(getCounts(await take(deps, csv))).toEqual([0, 0, 3]);
    for (const { id } of recipients) await deleteRecipient(deps, ACME, id);
    expect(getCounts(await take(deps, csv))).toEqual([3, 0, 0]);
    const again = (await listRecipients(table, ACME)).recipients;
    expect(again).toEqual(recipients);
  });
});

describe('an interrupted import', () => {
  test('is completed by importing the file again, without duplicates or gaps', async () => {
    const { deps, table } = await createRig();
    const people = 400;
    const csv = `email,orderNumber\n${Array.from({ length: people }, (_, n) => `p${n}@example.com,PO ${n % 7}`).join('\n')}`;
    let made = 0;
    for (const calls of [40, 150, 120]) {
      await expect(
        importRecipients({ ...deps, table: crashing(table, calls, 'after') }, ACME, csv),
      ).rejects.toThrow('died');
      const there = (await table.query({ pk: recipientPk(ACME) })).length;
      expect(there).toBeGreaterThanOrEqual(made);
      made = there;
    }
    expect(made).toBeGreaterThan(100);
    expect(made).toBeLessThan(people);
    expect(getCounts(await take(deps, csv))).toEqual([people - made, 0, made]);
    const items = await table.query({ pk: recipientPk(ACME) });
    expect(new Set(items.map(({ email }) => email)).size).toBe(people);
    expect(await table.query({ pk: recipientPlacePk(ACME) })).toHaveLength(items.length);
  });

  test('an import accepts 5,000 rows and rejects 5,001 completely', async () => {
    const { deps, table } = await createRig();
    const rows = Array.from({ length: 5000 }, (_, n) => `p${n}@example.com`);
    const more = await importRecipients(deps, ACME, ['email', ...rows, 'x@example.com'].join('\r\n'));
    expect(more).toEqual({ kind: 'rejected', reason: 'csv must have at most 5000 rows; split the file.' });
    expect(getCounts(await take(deps, ['email', ...rows].join('\r\n')))).toEqual([5000, 0, 0]);
    expect(await table.query({ pk: recipientPk(ACME) })).toHaveLength(5000);
  });
});

describe('a spreadsheet saved by Excel', () => {
  test.each([
    ['commas', 'name,email\r\n"Lee, Ann",ann@example.com\r\n'],
    ['semicolons', 'name;email\r\nLee, Ann;ann@example.com\r\n'],
    ['tabs', 'name\temail\r\nLee, Ann\tann@example.com\r\n'],
    ['a mark of its encoding', '\ufeffname;email\r\nLee, Ann;ann@example.com'],
    ['a line that names the separator', 'sep=;\r\nname;email\r\nLee, Ann;ann@example.com\r\n'],
    ['other columns first', 'email,name\nann@example.com,"Lee, Ann"\n'],
    ['empty lines and rows', '\n\nname,email\n\n,\n"Lee, Ann",ann@example.com\n,\n\n'],
    ['line breaks of old Macs', 'name;email\rLee, Ann;ann@example.com\r'],
  ])('with %s', async (_, csv) => {
    const { deps, table } = await createRig();
    expect(await take(deps, csv)).toMatchObject({ created: 1, invalidRows: [] });
    expect((await listRecipients(table, ACME)).recipients).toMatchObject([
      { name: 'Lee, Ann', email: 'ann@example.com' },
    ]);
  });

  test.each([
    ['UTF-8', (text: string) => Buffer.from(text)],
    ['UTF-16', (text: string) => Buffer.from(`\ufeff${text}`, 'utf16le')],
    ['UTF-16, the other way round', (text: string) => Buffer.from(`\ufeff${text}`, 'utf16le').swap16()],
  ])('in %s is accepted', async (_, encode) => {
    const { deps, table } = await createRig();
    await take(deps, decodeCsv(encode('name;email\r\nJürgen Groß;j@example.com')) ?? '');
    expect((await listRecipients(table, ACME)).recipients[0]?.name).toBe('Jürgen Groß');
  });

  test('in Windows-1252 is rejected, with any decoder', async () => {
    const { deps } = await createRig();
    const bytes = Buffer.from('name;email\r\nJürgen;j@example.com', 'latin1');
    const reason =
      'csv must be UTF-8, and is in another encoding such as Windows-1252; in Excel, save it as “CSV UTF-8”.';
    expect(decodeCsv(bytes)).toBeUndefined();
    expect(await importRecipients(deps, ACME, bytes.toString('utf8'))).toEqual({ kind: 'rejected', reason });
  });
});

test('the file in docs/notifications.md is imported with the documented defaults, and every column is described', async () => {
  const section = readSection('docs/notifications.md', 'Recipients');
  const [csv = ''] = getBlocks(section, 'csv');
  const { deps, table } = await createRig();
  expect(await take(deps, csv)).toMatchObject({ created: 3, invalidRows: [] });
  const { recipients } = await listRecipients(table, ACME);
  const getKinds = (start: string) => recipients.find(({ name }) => name?.startsWith(start))?.kinds;
  expect(getKinds('Ann')).toEqual(['dispatched', 'tracking']);
  expect(getKinds('Jürgen')).toContain('due_date_changed');
  expect(getKinds('Émilie')).toEqual(getKinds('Ann'));
  const rows = section.match(/^\| `.*? \|/gm)?.join('') ?? '';
  expect([...rows.matchAll(/`(\w+)`/g)].map(([, column]) => column).sort()).toEqual([...columns].sort());
});

describe('invalid rows', () => {
  test('are reported by line and field, and the others are imported', async () => {
    const { deps, table } = await createRig();
    const report = await take(
      deps,
      [
        'name,email,mobile,channels,jobNumber,orderGroup', // 1
        'Ann,ann@example.com,,,,', // 2
        '"Bob', // 3
        'Bobson",not-an-address,,,,', // 4
        'Cy,,12,,,', // 5
        'Di,di@example.com,,sms,,', // 6
        '', // 7
        'Ed,ed@example.com,,,x7,', // 8
        'Flo,flo@example.com,,,7,G', // 9
        'Gus,gus@example.com', // 10
        'Hal,ANN@example.com,,,,', // 11
        'Ida,ida@example.com,,,,,more', // 12
        'Jo,,,,,', // 13
        'Kim,kim@example.com,,,,', // 14
      ].join('\r\n'),
    );
    expect(report).toMatchObject({ created: 2, updated: 0, unchanged: 0 });
    const mobileRule = 'of this region, or of any country in international form, such as +64 21 123 4567.';
    expect(report.invalidRows).toEqual([
      { line: 3, field: 'email', reason: 'email must be an e-mail address such as name@example.com.' },
      { line: 5, field: 'mobile', reason: `mobile must be a mobile number ${mobileRule}` },
      {
        ...{ line: 6, field: 'mobile' },
        reason: 'mobile is required for the channel sms.',
      },
      { line: 8, field: 'jobNumber', reason: 'jobNumber must be an integer from 1 to 999999999999.' },
      {
        ...{ line: 9, field: null },
        reason: 'At most one of orderGroup, orderNumber and jobNumber is accepted.',
      },
      { line: 10, field: null, reason: 'The row must have 6 cells, like the first line; it has 2.' },
      { line: 11, field: null, reason: 'The row has the same recipient as line 2.' },
      { line: 12, field: null, reason: 'The row must have 6 cells, like the first line; it has 7.' },
      { line: 13, field: 'email', reason: 'email is required unless mobile is given.' },
    ]);
    expect((await listRecipients(table, ACME)).recipients.map(({ name }) => name).sort()).toEqual([
      'Ann',
      'Kim',
    ]);
  });

  test('unbalanced quotes end the parsing with an error', async () => {
    const { deps, table } = await createRig();
    const csv =
      'email,name\n"a@example.com","A\nB"\n\nb@example.com,"B" b\nc@example.com,C\nd@example.com,"D\ne@example.com,E';
    const report = await take(deps, csv);
    expect(report).toMatchObject({ created: 1, invalidRows: [{ line: 5, field: null }] });
    expect(report.invalidRows[0]?.reason).toMatch(/this row and all later rows were not read/);
    expect((await listRecipients(table, ACME)).recipients).toMatchObject([
      { email: 'a@example.com', name: 'A B' },
    ]);
  });

  test.each([
    ['', 'csv must begin with a line of column names.'],
    [
      'ann@example.com,Ann\nbob@example.com,Bob',
      /^csv must have valid column names in its first line; column 1 is not one of id, name, email/,
    ],
    ['email,Email\na@example.com,b@example.com', /^csv must have .* column 2 repeats email\.$/],
    ['name\nAnn', 'csv must have a column email or mobile.'],
    ['email\0\na@example.com', 'csv must be text without NUL characters.'],
  ])('an unreadable file is rejected without being quoted: %j', async (csv, reason) => {
    const { deps } = await createRig();
    const report = await importRecipients(deps, ACME, csv);
    expect(report).toMatchObject({ kind: 'rejected', reason: expect.stringMatching(reason) });
    expect(JSON.stringify(report)).not.toMatch(/ann@|bob/);
  });

  test("the API user's recipient cannot be imported", async () => {
    const { deps } = await createRig();
    expect((await take(deps, `id,email\n${OWN_USER},a@example.com`)).invalidRows).toMatchObject([
      { line: 2, field: 'id' },
    ]);
  });
});

eachTable('suppressed addresses', (makeTable) => {
  const EMAIL = { channel: 'email', address: 'Ann@example.com' } as const;

  test('unsubscribing stops the messages of one account only, for any spelling of the address', async () => {
    const { deps, table } = await createRig(makeTable);
    await suppress(deps, ACME, EMAIL, 'unsubscribed');
    const found = await findSuppression(table, ACME, 'email', 'ann@EXAMPLE.com');
    expect(found).toMatchObject({ channel: 'email', address: 'A•••@e•••.com', reason: 'unsubscribed' });
    expect(await findSuppression(table, OTHER, 'email', EMAIL.address)).toBeUndefined();
    expect(await findSuppression(table, ACME, 'email', 'bob@example.com')).toBeUndefined();
    expect(JSON.stringify(await table.query({ pk: keys.suppression(ACME, '', '').pk }))).not.toMatch(/ann@/i);
  });

  test.each(['bounced', 'complained', 'opted_out'] as const)(
    '%s applies to all accounts of the cell',
    async (reason) => {
      const { deps, table } = await createRig(makeTable);
      await suppress(deps, ACME, EMAIL, reason);
      const asked = [ACME, OTHER, { region: 'us', account: 'acme' }].map((ref) => ({ ref, ...EMAIL }));
      const found = await findSuppressions(table, [
        ...asked,
        { ref: OTHER, channel: 'email', address: 'b@example.com' },
      ]);
      expect(found.map((suppression) => suppression?.reason)).toEqual([reason, reason, undefined, undefined]);
      expect((await listSuppressions(table, OTHER)).suppressions).toEqual([]);
    },
  );

  test('resubscribing enables messages again, unless the address itself is suppressed', async () => {
    const { deps, table } = await createRig(makeTable);
    await suppress(deps, ACME, EMAIL, 'unsubscribed');
    await resubscribe(deps, ACME, EMAIL);
    expect(await findSuppression(table, ACME, 'email', EMAIL.address)).toBeUndefined();
    expect(await table.query({ pk: keys.suppression(ACME, '', '').pk })).toEqual([]);
    await suppress(deps, ACME, EMAIL, 'bounced');
    await suppress(deps, ACME, EMAIL, 'unsubscribed');
    expect(
      (await findSuppression(table, ACME, 'email', EMAIL.address))?.reasons.map(({ reason }) => reason),
    ).toEqual(['unsubscribed', 'bounced']);
    await resubscribe(deps, ACME, EMAIL);
    const left = await findSuppression(table, ACME, 'email', EMAIL.address);
    expect(left?.reason).toBe('bounced');
    expect(await liftSuppression(deps, OTHER, left?.id ?? '')).toMatchObject({ kind: 'unknown' });
    expect(await findSuppression(table, OTHER, 'email', EMAIL.address)).toMatchObject({ reason: 'bounced' });
    expect(await liftSuppression(deps, OTHER, left?.id ?? '', { whole: true })).toEqual({ kind: 'lifted' });
    expect(await findSuppression(table, OTHER, 'email', EMAIL.address)).toBeUndefined();
    expect(await findSuppression(table, ACME, 'email', EMAIL.address)).toMatchObject({ reason: 'bounced' });
    await liftSuppression(deps, ACME, left?.id ?? '');
    expect(await findSuppression(table, ACME, 'email', EMAIL.address)).toBeUndefined();
    expect(await liftSuppression(deps, ACME, left?.id ?? '')).toMatchObject({ kind: 'unknown' });
    expect(await liftSuppression(deps, ACME, '../x')).toMatchObject({ kind: 'unknown' });
  });

  test("an account can neither read nor remove suppressions caused by other accounts' messages", async () => {
    const { deps, table } = await createRig(makeTable);
    await suppress(deps, OTHER, EMAIL, 'complained');
    const made = await createSuppression(deps, ACME, EMAIL);
    expect(made).toMatchObject({ kind: 'created', suppression: { reasons: [{ reason: 'unsubscribed' }] } });
    const id = made.kind === 'created' ? made.suppression.id : '';
    expect(await liftSuppression(deps, ACME, id)).toEqual({ kind: 'lifted' });
    expect(await findSuppression(table, ACME, 'email', EMAIL.address)).toMatchObject({
      reason: 'complained',
    });
  });

  test('suppressions can be added manually in any spelling, and are listed by page', async () => {
    const { deps, table } = await createRig(makeTable);
    for (const address of ['021 123 4567', '021 123 4568', '021 123 4569']) {
      expect(await createSuppression(deps, ACME, { channel: 'sms', address })).toMatchObject({
        kind: 'created',
      });
    }
    expect(await findSuppression(table, ACME, 'sms', '+64211234568')).toMatchObject({
      reason: 'unsubscribed',
    });
    expect(await createSuppression(deps, ACME, { channel: 'email', address: 'x' })).toEqual({
      kind: 'rejected',
      reason: 'address must be an e-mail address such as name@example.com.',
    });
    const first = await listSuppressions(table, ACME, { limit: 2 });
    expect(first.suppressions).toHaveLength(2);
    const rest = await listSuppressions(table, ACME, { limit: 2, after: first.next ?? '' });
    expect(rest.next).toBeNull();
    const ids = [...first.suppressions, ...rest.suppressions].map(({ id }) => id);
    expect(new Set(ids).size).toBe(3);
  });

  test('suppressions after one whose reasons were removed incompletely are still listed', async () => {
    const { deps, table } = await createRig(makeTable);
    await createSuppression(deps, ACME, { channel: 'sms', address: '021 123 4567' });
    const [listed] = (await listSuppressions(table, ACME)).suppressions;
    await table.write({ put: { ...keys.suppression(ACME, 'email', 'x'.repeat(43)) } });
    const { suppressions, next } = await listSuppressions(table, ACME, { limit: 1 });
    expect(suppressions).toEqual([]);
    expect(await listSuppressions(table, ACME, { limit: 1, after: next ?? '' })).toMatchObject({
      suppressions: [listed],
    });
  });
});

eachTable('links to unsubscribe', (makeTable) => {
  const address = 'Ann.Lee@example.com';
  const regions = ['nz', 'us'];
  const now = () => START;
  const fetchToken = (url: string) => url.split('/').at(-1) ?? '';

  test('a link contains account and address, and the address is not readable', async () => {
    const { deps, table } = await createRig(makeTable);
    const publicUrl = 'https://jobwire.example/';
    const url = await createUnsubscribeUrl({ table, publicUrl, now }, ACME, 'email', address);
    expect(url).toMatch(/^https:\/\/jobwire\.example\/v1\/unsubscribe\/[\w.-]+$/);
    expect(url).not.toMatch(/ann|lee|example\.com/i);
    const said = await readUnsubscribeToken({ table, regions, now }, fetchToken(url));
    expect(said).toMatchObject({ ref: ACME, channel: 'email' });
    if (!said) throw new Error('It can’t be read.');
    await suppress(deps, said.ref, said, 'unsubscribed');
    expect(await findSuppression(table, ACME, 'email', address)).toMatchObject({
      reason: 'unsubscribed',
      address: null,
    });
    await resubscribe(deps, said.ref, said);
    expect(await findSuppression(table, ACME, 'email', address)).toBeUndefined();
  });

  test('a link is valid for more than a year, and not forever', async () => {
    const { table } = await createRig(makeTable);
    const url = await createUnsubscribeUrl(
      { table, publicUrl: 'https://x.example', now },
      ACME,
      'email',
      address,
    );
    const after = (days: number) =>
      readUnsubscribeToken({ table, regions, now: () => START + days * 86_400_000 }, fetchToken(url));
    expect(await after(LINK_DAYS - 1)).toBeDefined();
    expect(await after(LINK_DAYS)).toBeUndefined();
  });

  test('a link does not remove manual suppressions', async () => {
    const { deps, table } = await createRig(makeTable);
    await createSuppression(deps, ACME, { channel: 'email', address });
    const sealed = (await createAddressSealer(table, 'nz'))({ channel: 'email', address });
    expect(await findUnsubscription(table, ACME, { channel: 'email', sealed })).toEqual({ entered: true });
    expect(await resubscribe(deps, ACME, { channel: 'email', sealed })).toBe(false);
    expect(await findSuppression(table, ACME, 'email', address)).toMatchObject({ reason: 'unsubscribed' });
    expect(await liftSuppression(deps, ACME, `email-${sealed}`)).toEqual({ kind: 'lifted' });
    // Resubscribing by link removes a later unsubscription.
    await suppress(deps, ACME, { channel: 'email', sealed }, 'unsubscribed');
    expect(await resubscribe(deps, ACME, { channel: 'email', sealed })).toBe(true);
    expect(await findSuppression(table, ACME, 'email', address)).toBeUndefined();
  });

  test('an address cannot be found by brute force', async () => {
    const { table } = await createRig(makeTable);
    const url = await createUnsubscribeUrl(
      { table, publicUrl: 'https://x.example', now },
      ACME,
      'sms',
      '+64211234567',
    );
    const other = await createRig(makeTable);
    const seal = async (one: Table) =>
      (await createAddressSealer(one, 'nz'))({ channel: 'sms', address: '+64211234567' });
    expect(url).toContain(await seal(table));
    expect(await seal(table)).not.toBe(await seal(other.table));
  });

  test('two spellings of an address are one', async () => {
    const { table } = await createRig(makeTable);
    const seal = await createAddressSealer(table, 'nz');
    const [one, other] = ['Ann@example.com', 'ann@EXAMPLE.com'].map((text) =>
      seal({ channel: 'email', address: text }),
    );
    expect(one).toBe(other);
    expect(
      (await createAddressSealer(table, 'us'))({ channel: 'email', address: 'ann@example.com' }),
    ).not.toBe(one);
  });

  test('a link cannot be forged or changed', async () => {
    const { table } = await createRig(makeTable);
    const publicUrl = 'https://jobwire.example';
    const [mine, others, text] = await Promise.all([
      createUnsubscribeUrl({ table, publicUrl, now }, ACME, 'email', address),
      createUnsubscribeUrl({ table, publicUrl, now }, OTHER, 'email', address),
      createUnsubscribeUrl({ table, publicUrl, now }, ACME, 'sms', '+64211234567'),
    ]);
    const token = fetchToken(mine);
    const read = (text: string) => readUnsubscribeToken({ table, regions, now }, text);
    expect(await read(token)).toBeDefined();
    const forged = [
      token.replace('acme', 'other'),
      token.replace('email', 'sms'),
      token.replace('nz.', 'us.'),
      `${token.slice(0, token.lastIndexOf('.'))}${fetchToken(others).slice(fetchToken(others).lastIndexOf('.'))}`,
      `${token.slice(0, token.lastIndexOf('.'))}${fetchToken(text).slice(fetchToken(text).lastIndexOf('.'))}`,
      token.slice(0, -1),
      `${token}x`,
      '',
      '.'.repeat(10_000),
    ];
    for (const text of forged) expect(await read(text)).toBeUndefined();
    expect(await readUnsubscribeToken({ table, regions: ['us'], now }, token)).toBeUndefined();
  });

  test('processes that create their first links concurrently sign with the same key', async () => {
    const { table } = await createRig(makeTable);
    const publicUrl = 'https://jobwire.example';
    // Each has its own key cache.
    const urls = await Promise.all(
      Array.from({ length: 5 }, () =>
        createUnsubscribeUrl({ table: watchedTable(table), publicUrl, now }, ACME, 'email', address),
      ),
    );
    expect(new Set(urls).size).toBe(1);
  });
});

eachTable('the API user of the ordering API', (makeTable) => {
  const USER: AccountUser = {
    ...{ id: 1, firstName: 'Robin', lastName: 'Buyer', emailAddress: 'Robin@Example.com' },
    ...{ mobile: '021 123 4567', active: true, receiveEmails: true, textNotifyDispatch: true },
  };
  const withUser = { ...on, ownUser: true };

  async function wanted() {
    const rig = await createRig(makeTable);
    await saveSettings(rig.deps, ACME, withUser);
    const since = START;
    return {
      ...rig,
      since,
      sync: (user: Partial<AccountUser> = {}) => syncOwnUser(rig.deps, ACME, since, { ...USER, ...user }),
      read: () => readRecipient(rig.table, ACME, OWN_USER),
      change: (input: object) => updateRecipient(rig.deps, ACME, OWN_USER, input),
    };
  }

  test('is a recipient for the whole account, with the channels of its upstream settings', async () => {
    const { table, sync, read } = await wanted();
    expect(await sync()).toBe(true);
    expect(await read()).toMatchObject({
      ...{ scope: { for: 'account' }, source: 'upstream', name: 'Robin Buyer', revision: 1 },
      ...{ email: 'Robin@example.com', mobile: '+64211234567', channels: ['email', 'sms'] },
    });
    const found = await findRecipients(table, ACME, [{ jobNumber: 1, orderNumber: null, orderGroup: null }]);
    expect(found.map(({ recipient }) => recipient.id)).toEqual([OWN_USER]);
    expect(await sync()).toBe(false);
    expect((await read())?.revision).toBe(1);
    await sync({ textNotifyDispatch: false });
    expect(await read()).toMatchObject({ channels: ['email'], mobile: null });
  });

  test('is removed with its entries in the search index when the setting is switched off', async () => {
    const { table, deps, sync, read } = await wanted();
    await sync();
    const entries = () => table.query(toSearchRange(ACME.region, 'recipient', 'robin'));
    expect(await entries()).toHaveLength(1);
    await saveSettings(deps, ACME, on);
    expect(await read()).toBeUndefined();
    expect(await entries()).toEqual([]);
  });

  test('is removed although a poll creates it while the setting is switched off', async () => {
    const { table, deps, sync, read } = await wanted();
    let isCreated = false;
    const racing: Table = {
      ...table,
      async get(key) {
        const item = await table.get(key);
        if (!isCreated && key.sk === OWN_USER) isCreated = await sync();
        return item;
      },
    };
    await saveSettings({ ...deps, table: racing }, ACME, on);
    expect(isCreated).toBe(true);
    expect(await read()).toBeUndefined();
    expect(await table.query(toSearchRange(ACME.region, 'recipient', 'robin'))).toEqual([]);
  });

  test.each([
    { receiveEmails: false, textNotifyDispatch: false },
    { receiveEmails: null, textNotifyDispatch: null },
    { emailAddress: 'nonsense', mobile: '12' },
    { emailAddress: null, mobile: null },
    { active: false },
  ])('does not exist with %j', async (user) => {
    const { table, sync, read } = await wanted();
    expect(await sync(user)).toBe(false);
    expect(await read()).toBeUndefined();
    await sync();
    expect(await sync(user)).toBe(true);
    expect(await read()).toBeUndefined();
    expect((await listRecipients(table, ACME)).recipients).toEqual([]);
    expect(
      await findRecipients(table, ACME, [{ jobNumber: 1, orderNumber: null, orderGroup: null }]),
    ).toEqual([]);
    expect(JSON.stringify(await table.query({ pk: recipientPk(ACME) }))).not.toMatch(/Robin|example|\+64/i);
  });

  test('keeps the settings of the operator regardless of upstream changes, also while it does not exist', async () => {
    const { sync, read, change } = await wanted();
    await sync();
    await change({ paused: true, kinds: ['cancelled'], locale: 'de', channels: ['email'] });
    await sync({ emailAddress: 'new@example.com', textNotifyDispatch: false });
    await sync({ receiveEmails: false, textNotifyDispatch: false });
    await sync({ emailAddress: 'new@example.com' });
    expect(await read()).toMatchObject({
      ...{ paused: true, kinds: ['cancelled'], locale: 'de', channels: ['email'] },
      ...{ email: 'new@example.com', mobile: '+64211234567' },
    });
    await change({ channels: null });
    expect(await read()).toMatchObject({ channels: ['email', 'sms'], paused: true });
  });

  test('cannot be identified, given a channel that is disabled upstream, or deleted by the operator', async () => {
    const { deps, sync, change } = await wanted();
    expect(await change({ paused: true })).toMatchObject({ kind: 'unknown' });
    await sync({ textNotifyDispatch: false });
    expect(await change({ email: 'x@example.com' })).toEqual({
      kind: 'rejected',
      reason: 'email must be changed in the ordering API: this recipient is the API user.',
    });
    expect(await change({ channels: ['email', 'sms'] })).toEqual({
      kind: 'rejected',
      reason: 'channels must contain only channels that the user has enabled in the ordering API.',
    });
    expect(await deleteRecipient(deps, ACME, OWN_USER)).toMatchObject({ kind: 'conflict' });
  });

  test('is deleted when notifications end, and an older poll does not restore it', async () => {
    const { deps, table, sync, read, clock } = await wanted();
    await sync();
    await saveSettings(deps, ACME, on);
    expect(await read()).toBeUndefined();
    expect(await sync()).toBe(false);
    expect(await table.query({ pk: recipientPk(ACME) })).toEqual([]);
    expect(await table.query({ pk: recipientPlacePk(ACME) })).toEqual([]);
    clock.now += 5000;
    await saveSettings(deps, ACME, withUser);
    expect(await sync()).toBe(false);
    expect(await syncOwnUser(deps, ACME, clock.now, USER)).toBe(true);
  });
});
