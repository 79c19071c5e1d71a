/** Whom an account tells: its settings, its recipients, spreadsheets of them, addresses that get nothing more, links to unsubscribe. */
import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { createEventLog } from '../shared/log/log.ts';
import { addressHash, checkEmail, checkMobile, maskAddress } from '../shared/notifications/addresses.ts';
import { NOTIFICATIONS_SINK } from '../shared/notifications/model.ts';
import {
  changeRecipient,
  createRecipient,
  deleteRecipient,
  listRecipients,
  readRecipient,
  recipientsFor,
  syncOwnUser,
} from '../shared/notifications/recipients.ts';
import {
  decodeCsv,
  type ImportReport,
  importRecipients,
  recipientsCsv,
} from '../shared/notifications/recipients-csv.ts';
import {
  OWN_USER,
  type PeopleDeps,
  readSettings,
  readSettingsOf,
  saveSettings,
  unfollowAccount,
} from '../shared/notifications/settings.ts';
import {
  createSuppression,
  liftSuppression,
  listSuppressions,
  resubscribe,
  suppress,
  suppressionOf,
  suppressionsOf,
} from '../shared/notifications/suppressions.ts';
import { readUnsubscribeToken, unsubscribeUrlOf } from '../shared/notifications/unsubscribe.ts';
import type { AccountUser } from '../shared/ordering/schemas.ts';
import { toSink } from '../shared/sinks/sink.ts';
import { createMemoryTable } from '../shared/table/memory-table.ts';
import { type AccountRef, keys, recipientPk, recipientPlacePk } from '../shared/table/schema.ts';
import type { Item, Table } from '../shared/table/table.ts';
import { registerAccount } from '../shared/tracking/accounts.ts';
import { moved } from './support/delivery.ts';
import { watchedTable } from './support/rig.ts';
import { eachTable } from './support/tables.ts';

const START = Date.parse('2026-03-02T08:00:00Z');
const ACME: AccountRef = { region: 'nz', account: 'acme' };
const OTHER: AccountRef = { region: 'nz', account: 'other' };
const BRANDING = { branding: { name: 'Acme Prints' } };

async function createRig(makeTable: () => Promise<Table> = async () => createMemoryTable()) {
  const clock = { now: START };
  const now = () => clock.now;
  const table = await makeTable();
  const log = createEventLog(table, { now, newId: randomUUID, schemaBaseUrl: 'https://jobwire.example' });
  const deps: PeopleDeps = { table, log, now, newId: randomUUID };
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
  ])('an e-mail address is kept as it goes over the wire: %s', (text, address) => {
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
  ])('what is no e-mail address is refused: %s', (text) => {
    expect(checkEmail(text).kind).toBe('refused');
  });

  test.each([
    ['nz', '021 123 4567', '+64211234567'],
    ['nz-test', '(021) 123-4567', '+64211234567'],
    ['us', '(212) 555-2368', '+12125552368'],
    ['au', '0412 345 678', '+61412345678'],
    ['uk', '07400 123456', '+447400123456'],
    ['eu', '+49 1512 3456789', '+4915123456789'],
    ['nz', '+44 7400 123456', '+447400123456'],
  ])('in %s the number %s is kept in E.164', (region, text, address) => {
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
  ])('in %s the number %s is refused', (region, text) => {
    expect(checkMobile(text, region).kind).toBe('refused');
  });

  test('two ways to write an address are one, and a mask shows too little to write to', () => {
    const hashes = ['Ann@example.com', 'ann@EXAMPLE.com'].map((text) => addressHash('nz', 'email', text));
    expect(new Set(hashes).size).toBe(1);
    expect(addressHash('us', 'email', 'ann@example.com')).not.toBe(hashes[0]);
    expect(maskAddress('email', 'ann.lee@example.com')).toBe('a…@e….com');
    expect(maskAddress('sms', '+64211234567')).toBe('+64…67');
  });
});

const on = { enabled: true, ...BRANDING };

/** The crash of a process at its nth call of the table, before it or after it. */
function crashing(table: Table, at: number, when: 'before' | 'after'): Table {
  let calls = 0;
  const count = () => {
    calls += 1;
    if (calls >= at) throw new Error('The process died.');
  };
  return watchedTable(table, when === 'before' ? { before: count } : { after: count });
}

eachTable('settings', (makeTable) => {
  test('saved settings come back with their defaults, and since is when they were enabled last', async () => {
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
    expect((await readSettingsOf(table, [OTHER, ACME])).map(({ account }) => account)).toEqual(['acme']);
  });

  test('the sink begins where the log of each account stands when it is enabled, and is not moved after', async () => {
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

  test('two accounts that are enabled at the same time are both followed', async () => {
    const { deps, table } = await createRig(makeTable);
    await Promise.all([ACME, OTHER].map((ref) => saveSettings(deps, ref, on)));
    const item = (await table.get(keys.sink('nz', NOTIFICATIONS_SINK))) as Item;
    expect([...toSink(item).accounts].sort()).toEqual(['acme', 'other']);
  });

  test('settings that were changed since they were read are not overwritten', async () => {
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

  test('of an account that is not there nothing is kept', async () => {
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
    expect(await suppressionOf(table, nobody, 'sms', '+64211234567')).toBeUndefined();
  });
});

describe('settings that are cut off', () => {
  test.each(['before', 'after'] as const)(
    'wherever a process dies, %s the table did as it was asked, nothing is enabled that the sink does not follow',
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
        // Whatever was said after since comes by.
        expect(Number(position)).toBeLessThanOrEqual(since === START ? 1 : 2);
      }
      expect(died).toBeGreaterThan(4);
    },
  );
});

describe('the accounts that the sink names', () => {
  async function many(count: number) {
    const rig = await createRig();
    const key = keys.sink('nz', NOTIFICATIONS_SINK);
    await saveSettings(rig.deps, ACME, on);
    const accounts = ['acme', ...Array.from({ length: count - 1 }, (_, n) => `a-${n}`)];
    await rig.table.write({ update: key, set: { accounts } });
    const named = async () => toSink((await rig.table.get(key)) as Item).accounts;
    return { ...rig, named };
  }

  test('beyond 500 it follows all, and those it did not name begin where their logs stand', async () => {
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

  test('at 500 it names them still', async () => {
    const { deps, named } = await many(499);
    await saveSettings(deps, OTHER, on);
    expect(await named()).toHaveLength(500);
  });

  test('one that is deleted is taken off; the last one stays, for none would mean all', async () => {
    const { table, named } = await many(2);
    await unfollowAccount(table, ACME);
    await unfollowAccount(table, OTHER);
    expect(await named()).toEqual(['a-0']);
    await unfollowAccount(table, { region: 'nz', account: 'a-0' });
    expect(await named()).toEqual(['a-0']);
  });
});

describe('what settings can’t be', () => {
  test.each([
    [{ enabled: true }, 'branding is missing; it must be of type object.'],
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
    [{ ...on, windowSeconds: 4000 }, 'windowSeconds must be a whole number of seconds from 0 to 3600.'],
    [
      { ...on, sms: { quietHours: { from: '25:00', to: '07:00' } } },
      'sms.quietHours.from must be a time from 00:00 to 23:59.',
    ],
    [
      { ...on, sms: { senderId: '12345' } },
      'sms.senderId must be 1 to 11 letters and digits, one letter at least.',
    ],
    [{ ...on, colour: 1 }, 'colour is not a setting that Jobwire knows.'],
  ])('%j: %s', async (input, reason) => {
    const { deps } = await createRig();
    expect(await saveSettings(deps, ACME, input)).toEqual({ kind: 'refused', reason });
  });
});

eachTable('recipients', (makeTable) => {
  test('a recipient is made, read, listed, changed and deleted', async () => {
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
      ...{ paused: false, source: 'people', createdAt: START, revision: 1 },
    });
    expect(await readRecipient(table, ACME, made.id)).toEqual(made);
    const second = await create({ id: 'zoe', email: 'zoe@example.com', orderGroup: 'G1' });
    expect((await listRecipients(table, ACME)).recipients).toEqual([made, second]);
    const changed = await changeRecipient(deps, ACME, 'zoe', {
      jobNumber: 7,
      paused: true,
      kinds: ['cancelled'],
    });
    expect(changed).toMatchObject({
      kind: 'changed',
      recipient: { scope: { for: 'job', jobNumber: 7 }, paused: true, kinds: ['cancelled'], revision: 2 },
    });
    expect(await changeRecipient(deps, ACME, 'zoe', { paused: true })).toMatchObject({
      recipient: { revision: 2 },
    });
    expect(await deleteRecipient(deps, ACME, 'zoe')).toEqual({ kind: 'deleted' });
    expect(await deleteRecipient(deps, ACME, 'zoe')).toMatchObject({ kind: 'unknown' });
    await deleteRecipient(deps, ACME, made.id);
    expect(await table.query({ pk: recipientPk(ACME) })).toEqual([]);
    expect(await table.query({ pk: recipientPlacePk(ACME) })).toEqual([]);
  });

  test('a page ends at its limit and names where the next one begins', async () => {
    const { table, create } = await createRig(makeTable);
    for (const id of ['a', 'b', 'c']) await create({ id, email: 'a@example.com' });
    const first = await listRecipients(table, ACME, { limit: 2 });
    expect([first.recipients.map(({ id }) => id), first.next]).toEqual([['a', 'b'], 'b']);
    const rest = await listRecipients(table, ACME, { limit: 2, after: 'b' });
    expect([rest.recipients.map(({ id }) => id), rest.next]).toEqual([['c'], null]);
  });

  test('those are found who are for a job, each with the jobs it is for', async () => {
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
    await create({ id: 'stranger', email: 'a@example.com' }, OTHER);
    const job = (jobNumber: number, orderNumber: string | null, orderGroup: string | null) => ({
      ...{ jobNumber, orderNumber, orderGroup },
    });
    const found = await recipientsFor(table, ACME, [
      job(1, 'PO', 'G'),
      job(2, 'PO#7', 'G'),
      job(4, long, null),
      job(1000, null, null),
    ]);
    expect(found.map(({ recipient, jobs }) => [recipient.id, jobs])).toEqual([
      ['all', [1, 2, 4, 1000]],
      ['group', [1, 2]],
      ['job-2', [2]],
      ['long', [4]],
      ['order', [2]],
      ['prefix', [1]],
    ]);
    expect(await recipientsFor(table, ACME, [])).toEqual([]);
  });

  test('whoever is given something else to be for is found there, and nowhere else', async () => {
    const { deps, table, create } = await createRig(makeTable);
    const { id } = await create({ email: 'a@example.com', orderGroup: 'G' });
    const found = async (orderGroup: string | null, orderNumber: string | null) =>
      (await recipientsFor(table, ACME, [{ jobNumber: 1, orderGroup, orderNumber }])).length;
    await changeRecipient(deps, ACME, id, { orderNumber: 'PO' });
    expect([await found('G', null), await found(null, 'PO')]).toEqual([0, 1]);
    await changeRecipient(deps, ACME, id, { orderNumber: null });
    expect([await found('G', null), await found(null, null)]).toEqual([1, 1]);
    expect(await table.query({ pk: recipientPlacePk(ACME) })).toHaveLength(1);
  });

  test('of two who change the same one at the same time, none is lost, and none overwrites what he has not seen', async () => {
    const { deps, table, create } = await createRig(makeTable);
    const { id } = await create({ email: 'a@example.com' });
    await Promise.all([
      changeRecipient(deps, ACME, id, { name: 'Ann' }),
      changeRecipient(deps, ACME, id, { orderGroup: 'G' }),
    ]);
    const both = await readRecipient(table, ACME, id);
    expect(both).toMatchObject({ name: 'Ann', scope: { for: 'orderGroup' }, revision: 3 });
    const outcomes = await Promise.all([
      changeRecipient(deps, ACME, id, { name: 'Bob' }, { revision: 3 }),
      deleteRecipient(deps, ACME, id, { revision: 3 }),
    ]);
    expect(outcomes.map(({ kind }) => kind === 'conflict' || kind === 'unknown')).toContain(true);
    expect(outcomes.map(({ kind }) => kind === 'changed' || kind === 'deleted')).toContain(true);
    const items = await table.query({ pk: recipientPk(ACME) });
    expect(await table.query({ pk: recipientPlacePk(ACME) })).toHaveLength(items.length);
  });

  test('a request that is repeated makes the same recipient, and an id is given out once', async () => {
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

describe('what a recipient can’t be', () => {
  test.each([
    [{}, 'email or mobile is missing; there must be one of them.'],
    [
      { email: 'a@example.com', channels: ['email', 'sms'] },
      'mobile is missing; it must be given where channels names sms.',
    ],
    [
      { mobile: '021 123 4567', channels: ['email'] },
      'email is missing; it must be given where channels names email.',
    ],
    [
      { email: 'a@example.com', channels: [] },
      'channels must name at least one channel; to hold a recipient back, pause it.',
    ],
    [{ email: 'a@example.com', channels: ['fax'] }, 'channels[0] must be one of email, sms.'],
    [
      { email: 'a@example.com', orderGroup: 'G', jobNumber: 1 },
      'At most one of orderGroup, orderNumber and jobNumber must be given.',
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
    [{ email: 'a@example.com', jobNumber: 0 }, 'jobNumber must be a job number.'],
    [
      { email: 'a@example.com', id: OWN_USER },
      'id must be another than own-user: it is the ordering service’s.',
    ],
    [{ email: 'a@example.com', fax: '1' }, 'fax is not a setting that Jobwire knows.'],
  ])('%j: %s', async (input, reason) => {
    const { deps } = await createRig();
    expect(await createRecipient(deps, ACME, input)).toEqual({ kind: 'refused', reason });
  });

  test('an address that a channel needs can’t be taken away', async () => {
    const { deps, create } = await createRig();
    const { id } = await create({ email: 'a@example.com', mobile: '021 123 4567' });
    expect(await changeRecipient(deps, ACME, id, { mobile: null })).toMatchObject({
      kind: 'refused',
      reason: 'mobile is missing; it must be given where channels names sms.',
    });
    expect(await changeRecipient(deps, ACME, id, { mobile: null, channels: ['email'] })).toMatchObject({
      kind: 'changed',
      recipient: { mobile: null, channels: ['email'] },
    });
    expect(await changeRecipient(deps, ACME, id, {})).toMatchObject({ kind: 'refused' });
  });
});
