/**
 * Moving an account between two cells: notifications, rejections, and what a page may contain.
 * One file: all tests move the account between the same two cells.
 */
import { randomUUID } from 'node:crypto';
import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { deleteAccount, pauseAccount, resumeAccount } from '../../shared/accounts/managed-accounts.ts';
import { beginMove, cancelMove, exportAccount, importAccount } from '../../shared/api/account-move.ts';
import { parseItemId } from '../../shared/api/attention/items.ts';
import { actOnAttention, listAttention } from '../../shared/api/attention/queue.ts';
import { OPERATOR } from '../../shared/api/keys.ts';
import { createEventLog } from '../../shared/log/log.ts';
import { recordFeedback } from '../../shared/notifications/messages.ts';
import { createNote, findJobRecipients } from '../../shared/notifications/notes.ts';
import { oldestUnsent } from '../../shared/notifications/oldest-unsent.ts';
import { createRecipient } from '../../shared/notifications/recipients.ts';
import { readSettings } from '../../shared/notifications/settings.ts';
import { createSuppression } from '../../shared/notifications/suppressions.ts';
import { createUnsubscribeUrl } from '../../shared/notifications/unsubscribe.ts';
import {
  attentionHistoryPk,
  historySchema,
  keys,
  markedJobPk,
  threadPk,
} from '../../shared/storage/schema.ts';
import { toSearchRange } from '../../shared/storage/search-index.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import type { Table } from '../../shared/storage/table.ts';
import {
  ACME,
  CLOSED_AFTER,
  createNotifyingWorld,
  draftEvent,
  MINUTE,
} from '../support/notification-world.ts';
import { createOperator } from '../support/operator.ts';
import { createRig } from '../support/tracker.ts';

const GIVEN = { clientId: 'acme-api', clientSecret: 'given-again' };
const CELL = 'https://large.jobwire.example';

/** A cell with an account that notifies customers, and an empty cell of the same region. */
async function createCells() {
  const former = await createNotifyingWorld();
  const now = () => former.clock.now;
  const table = createMemoryTable();
  const history = createMemoryTable(historySchema);
  const { accounts: from } = await createOperator({ table: former.table, now });
  const { accounts: to } = await createOperator({ table, now });
  const exportPages = async () => {
    const pages: string[] = [];
    for (let after: string | undefined; ; ) {
      const page = await exportAccount(from, ACME, after);
      if (page.kind !== 'page') throw new Error(page.reason);
      pages.push(page.data);
      if (page.next === null) return pages;
      after = page.next;
    }
  };
  return {
    ...{ former, table, history, from, to, exportPages },
    begin: () => beginMove(from, ACME, CELL),
    async move() {
      expect(await beginMove(from, ACME, CELL)).toMatchObject({ waitingFor: null });
      for (const data of await exportPages()) {
        expect(await importAccount(to, { data, credentials: GIVEN })).toMatchObject({ kind: 'imported' });
      }
    },
    /** Sends due messages of the new cell. Returns the number of mails of both cells so far. */
    async sendThere(afterMs: number) {
      await former.send(afterMs, { table, history });
      return former.emails.length;
    },
    async sendHere(afterMs: number) {
      await former.send(afterMs);
      return former.emails.length;
    },
  };
}

const ANN = { name: 'Ann', email: 'ann@customer.example', channels: ['email'] };

describe('notifications of a moved account', () => {
  it('an open notice is sent by the new cell only, and only once', async () => {
    const cells = await createCells();
    await cells.former.recipient(ANN);
    await cells.former.fold(draftEvent('job.dispatched', 1, cells.former.clock.now));
    await cells.move();
    expect(await cells.sendHere(CLOSED_AFTER)).toBe(0);
    expect(await cells.sendThere(0)).toBe(1);
    expect(await cells.sendHere(60 * MINUTE)).toBe(1);
    expect(await cells.sendThere(60 * MINUTE)).toBe(1);
  });

  it('a message that waits for its retry is sent by the new cell only', async () => {
    const cells = await createCells();
    const { former } = cells;
    await former.recipient(ANN);
    former.answers.email = async () => ({ kind: 'later', reason: 'busy', everything: false });
    await former.fold(draftEvent('job.dispatched', 1, former.clock.now));
    expect(await cells.sendHere(CLOSED_AFTER)).toBe(1);
    former.answers.email = async () => ({ kind: 'accepted', providerId: 'p-1' });
    await cells.move();
    expect(await cells.sendHere(120 * MINUTE)).toBe(1);
    expect(await cells.sendThere(0)).toBe(2);
    expect(await cells.sendThere(120 * MINUTE)).toBe(2);
  });

  it('nothing is sent by the new cell before it has the last page, and nothing twice if the last step is repeated', async () => {
    const cells = await createCells();
    const { former, to, table } = cells;
    await former.recipient(ANN);
    former.answers.email = async () => ({ kind: 'later', reason: 'busy', everything: false });
    await former.fold(draftEvent('job.dispatched', 1, former.clock.now));
    expect(await cells.sendHere(CLOSED_AFTER)).toBe(1);
    former.answers.email = async () => ({ kind: 'accepted', providerId: 'p-1' });
    await former.fold(draftEvent('job.dispatched', 2, former.clock.now, { orderGroup: 'SUMMER' }));
    await cells.begin();
    const [data = ''] = await cells.exportPages();
    const page = JSON.parse(gunzipSync(Buffer.from(data, 'base64')).toString());
    const unfinished = gzipSync(JSON.stringify({ ...page, last: false })).toString('base64');
    expect(await importAccount(to, { data: unfinished, credentials: GIVEN })).toMatchObject({
      kind: 'imported',
    });
    expect(await cells.sendThere(120 * MINUTE)).toBe(1);
    const failing = { ...table, transact: () => Promise.reject(new Error('The process ended.')) };
    await expect(importAccount({ ...to, table: failing }, { data })).rejects.toThrow('ended');
    expect(await cells.sendThere(0)).toBe(3);
    await cells.move();
    expect(await cells.sendThere(120 * MINUTE)).toBe(3);
  });

  it('a notice that the sender of the former cell found right before the move began is sent by the new cell only', async () => {
    const cells = await createCells();
    const { former } = cells;
    await former.recipient(ANN);
    await former.fold(draftEvent('job.dispatched', 1, former.clock.now));
    let isBegun = false;
    const table: Table = {
      ...former.table,
      async query(query) {
        const found = await former.table.query(query);
        if (query.pk.startsWith('NOTICES#') && found.length > 0 && !isBegun) {
          isBegun = true;
          expect(await cells.begin()).toMatchObject({ waitingFor: null });
        }
        return found;
      },
    };
    await former.send(CLOSED_AFTER, { table });
    expect(isBegun).toBe(true);
    expect(former.emails).toHaveLength(0);
    await cells.move();
    expect(await cells.sendThere(0)).toBe(1);
    expect(await cells.sendHere(60 * MINUTE)).toBe(1);
  });

  it('an account with more notices than one step can read is moved in several steps', async () => {
    const cells = await createCells();
    const { former, from, to } = cells;
    const threads = Array.from({ length: 400 }, (_, at) => ({
      ...keys.thread(ACME, `=${at}`),
      ...{ name: `=${at}`, revision: 1, state: '{}' },
    }));
    await former.table.putMany(threads);
    await former.recipient(ANN);
    await former.fold(draftEvent('job.dispatched', 1, former.clock.now));
    const slow = (deps: typeof from): typeof from => ({
      ...deps,
      table: {
        ...deps.table,
        query(query) {
          if (query.pk === threadPk(ACME)) former.clock.now += 4_000;
          return deps.table.query(query);
        },
      },
    });
    const waits: unknown[] = [];
    while (waits.at(-1) !== null && waits.length < 5) {
      const begun = await beginMove(slow(from), ACME, CELL);
      waits.push(begun.kind === 'begun' ? begun.waitingFor : begun);
    }
    expect(waits).toEqual(['notices and messages that are not prepared yet', null]);
    expect(await exportAccount(slow(from), ACME)).toMatchObject({ kind: 'page' });
    const [data = '', ...others] = await cells.exportPages();
    expect(others).toEqual([]);
    const busy = { kind: 'conflict', why: 'busy', reason: expect.stringMatching(/Repeat the request\.$/) };
    expect(await importAccount(slow(to), { data, credentials: GIVEN })).toEqual(busy);
    expect(await importAccount(slow(to), { data })).toMatchObject({ kind: 'imported' });
    await cells.sendHere(CLOSED_AFTER);
    expect(await cells.sendThere(0)).toBe(1);
  });

  it('an account with more notices than one step can read stays in its cell in several steps', async () => {
    const { former, from } = await createCells();
    await former.recipient(ANN);
    await former.fold(
      ...Array.from({ length: 400 }, (_, at) =>
        draftEvent('job.dispatched', at + 1, former.clock.now, { orderGroup: null }),
      ),
    );
    expect(await beginMove(from, ACME, CELL)).toMatchObject({ waitingFor: null });
    const table: Table = {
      ...former.table,
      query(query) {
        if (query.pk === threadPk(ACME)) former.clock.now += 4_000;
        return former.table.query(query);
      },
    };
    expect(await cancelMove({ ...from, table }, ACME)).toMatchObject({ kind: 'conflict', why: 'busy' });
    // What was returned is held again.
    expect(await beginMove(from, ACME, CELL)).toMatchObject({ waitingFor: null });
    await former.send(CLOSED_AFTER);
    expect(former.emails).toHaveLength(0);
    expect(await cancelMove({ ...from, table }, ACME)).toMatchObject({ kind: 'conflict', why: 'busy' });
    expect(await cancelMove({ ...from, table }, ACME)).toMatchObject({ kind: 'changed' });
    await former.send();
    expect(former.emails).toHaveLength(400);
  });

  it('a note that is created in the former cell during the move is sent by that cell only', async () => {
    const cells = await createCells();
    const { former, from, to } = cells;
    await former.recipient(ANN);
    // So many that notes are in a later page.
    const padding = Array.from({ length: 400 }, (_, at) => ({
      ...keys.template(ACME, 'padding', 'email', String(at).padStart(4, '0')),
      text: 'x'.repeat(1000),
    }));
    await former.table.putMany(padding);
    await cells.begin();
    const first = await exportAccount(from, ACME);
    if (first.kind !== 'page' || first.next === null) throw new Error('There is one page only.');
    const job = { jobNumber: 17, orderNumber: 'PO-17', orderGroup: null };
    const settings = await readSettings(former.table, ACME);
    if (!settings) throw new Error('There are no settings.');
    const reading = { table: former.table, now: former.clock.now, available: ['email'] as const };
    const [place] = await findJobRecipients(reading, settings, job);
    if (!place) throw new Error('There is no recipient.');
    const facts = {
      ...job,
      description: null,
      dateOut: null,
      dateDue: null,
      formerDateDue: null,
      tracking: [],
    };
    const content = { kind: 'note', orderGroup: null, jobs: [facts], observedAt: former.clock.now } as const;
    const note = {
      place,
      content: { ...content, text: 'Please call us.' },
      sentBy: { id: 'k1', name: 'bob' },
    };
    await createNote({ ...former.people, history: former.history }, ACME, note, { dryRun: false });
    const second = await exportAccount(from, ACME, first.next);
    if (second.kind !== 'page' || second.next !== null) throw new Error('There are more than two pages.');
    for (const { data } of [first, second]) {
      expect(await importAccount(to, { data, credentials: GIVEN })).toMatchObject({ kind: 'imported' });
    }
    expect(await cells.sendHere(0)).toBe(1);
    expect(await cells.sendThere(0)).toBe(1);
  });

  it('a message that bounced during the move is not due in the new cell', async () => {
    const cells = await createCells();
    const { former, table } = cells;
    await former.recipient(ANN);
    former.answers.email = async () => ({ kind: 'unknown', reason: 'The connection was lost.' });
    await former.fold(draftEvent('job.dispatched', 1, former.clock.now));
    expect(await cells.sendHere(CLOSED_AFTER)).toBe(1);
    await cells.begin();
    const [message] = await former.messages();
    const at = { ...ACME, message: message?.id ?? '' };
    expect(await recordFeedback(former.deps, at, 'bounced', null)).toMatchObject({ state: 'bounced' });
    await cells.move();
    expect(await oldestUnsent(table, 'us', former.clock.now + 24 * 60 * MINUTE)).toBeUndefined();
  });

  it('what was sent before is not sent again for the same dispatch', async () => {
    const cells = await createCells();
    await cells.former.recipient(ANN);
    await cells.former.fold(draftEvent('job.dispatched', 1, cells.former.clock.now));
    expect(await cells.sendHere(CLOSED_AFTER)).toBe(1);
    await cells.move();
    expect(await cells.sendThere(120 * MINUTE)).toBe(1);
    expect(await cells.table.get(keys.thread(ACME, '=SPRING'))).toBeDefined();
  });

  it('the move waits for events that the notifications have not read, and for messages that are being sent', async () => {
    const cells = await createCells();
    const { former } = cells;
    await former.recipient(ANN);
    await former.log.append(ACME, [draftEvent('job.dispatched', 1, former.clock.now)]);
    await former.table.write({
      put: { ...keys.cursor('us', 'notifications', 'acme'), sink: 'notifications', position: 0 },
    });
    expect(await cells.begin()).toMatchObject({
      waitingFor: 'customer notifications, which have not processed the log up to its end',
    });
    expect(await exportAccount(cells.from, ACME)).toMatchObject({ kind: 'conflict' });
    await cancelMove(cells.from, ACME);
    await former.fold(draftEvent('job.dispatched', 2, former.clock.now));
    let isBegun: unknown;
    former.answers.email = async () => {
      isBegun = await cells.begin();
      return { kind: 'accepted', providerId: 'p-1' };
    };
    await cells.sendHere(CLOSED_AFTER);
    expect(isBegun).toMatchObject({
      waitingFor: expect.stringMatching(/^\d+ notices and messages that are being sent$/),
    });
    expect(await cells.begin()).toMatchObject({ waitingFor: null });
  });

  it('suppressions count in the new cell, also those that are added in the former one after the move', async () => {
    const cells = await createCells();
    const { former } = cells;
    await former.recipient(ANN);
    await former.recipient({ ...ANN, name: 'Bob', email: 'bob@customer.example' });
    const suppress = (address: string) =>
      createSuppression(former.people, ACME, { channel: 'email', address });
    await former.recipient({ ...ANN, name: 'Carl', email: 'carl@customer.example' });
    await suppress('ann@customer.example');
    await former.fold(draftEvent('job.dispatched', 1, former.clock.now));
    await cells.move();
    await suppress('bob@customer.example');
    await cells.move();
    expect(await cells.sendThere(CLOSED_AFTER)).toBe(1);
    expect(JSON.stringify(former.emails.map(({ to }) => to))).toContain('carl@customer.example');
  });

  it('a cell with another key of addresses rejects the account, because it could not recognize suppressions', async () => {
    const cells = await createCells();
    await cells.former.recipient(ANN);
    await createSuppression(cells.former.people, ACME, { channel: 'email', address: 'ann@customer.example' });
    const link = { table: cells.table, publicUrl: CELL, now: () => 0 };
    await createUnsubscribeUrl(link, { region: 'us', account: 'other' }, 'email', 'x@customer.example');
    await cells.begin();
    const [data = ''] = await cells.exportPages();
    expect(await importAccount(cells.to, { data, credentials: GIVEN })).toMatchObject({
      kind: 'conflict',
      reason: expect.stringContaining('store hashes of addresses that depend on different keys'),
    });
    expect(await cells.table.get(keys.account(ACME))).toBeUndefined();
  });

  it('a move is not cancelled if the account was changed since the given revision', async () => {
    const cells = await createCells();
    const begun = await cells.begin();
    if (begun.kind !== 'begun') throw new Error(begun.reason);
    const { revision } = begun.account;
    const stale = await cancelMove(cells.from, ACME, { revision: revision - 1 });
    expect(stale).toMatchObject({ kind: 'conflict', why: 'changed' });
    expect((await cells.former.log.head(ACME))?.attributes.closed).toBe(true);
    expect(await cancelMove(cells.from, ACME, { revision })).toMatchObject({ account: { move: null } });
  });

  it('a cancelled move leaves everything to the former cell', async () => {
    const cells = await createCells();
    await cells.former.recipient(ANN);
    await cells.former.fold(draftEvent('job.dispatched', 1, cells.former.clock.now));
    await cells.begin();
    expect(await cells.sendHere(CLOSED_AFTER)).toBe(0);
    expect(await cancelMove(cells.from, ACME)).toMatchObject({ account: { move: null, paused: true } });
    expect(await cells.sendHere(0)).toBe(1);
    expect(await resumeAccount(cells.from, ACME)).toMatchObject({ account: { paused: false } });
    expect(await cells.former.log.append(ACME, [draftEvent('job.dispatched', 2, 0)])).toMatchObject({
      kind: 'appended',
    });
  });
});

describe('jobs of a moved account', () => {
  it('what users have done with them in the attention queue is in the new cell, and nothing of other accounts', async () => {
    const rig = await createRig({ events: { attentionStatuses: ['On hold'] } });
    const { now, ref, table: formerTable } = rig;
    const job = rig.upstream.createJob({ status: 'Scheduled' });
    await rig.poll();
    rig.upstream.setStatus(job, 'On hold');
    await rig.poll();
    const listIn = async (cell: Table) => {
      const deps = { table: cell, log: rig.log, now, history: undefined, newId: randomUUID, regions: ['us'] };
      const all = await listAttention(deps, OPERATOR, { limit: 10 });
      return { deps, items: all.items };
    };
    const { deps, items } = await listIn(formerTable);
    const id = parseItemId(items[0]?.id ?? '');
    if (!id) throw new Error('There is no item.');
    await actOnAttention(deps, OPERATOR, id, { action: 'acknowledge', note: 'Asked the printer.' });
    await actOnAttention(deps, OPERATOR, id, { action: 'assign', assignee: 'ann' });
    const other = { ...keys.attention('us', `${ref.account}-2~job~1`), note: 'of another account' };
    await formerTable.write({ put: other });
    const table = createMemoryTable();
    const { accounts: from } = await createOperator({ table: formerTable, now });
    const { accounts: to } = await createOperator({ table, now });
    await beginMove(from, ref, CELL);
    const page = await exportAccount(from, ref);
    if (page.kind !== 'page') throw new Error(page.reason);
    expect(await importAccount(to, { data: page.data, credentials: GIVEN })).toMatchObject({
      kind: 'imported',
    });
    const moved = await listIn(table);
    expect(moved.items).toMatchObject([
      { kind: 'job_needs_attention', state: 'acknowledged', assignee: 'ann', note: 'Asked the printer.' },
    ]);
    expect(await table.query({ pk: attentionHistoryPk('us') })).toHaveLength(2);
    expect(await table.get(other)).toBeUndefined();
  });

  it('their usual durations, search entries and pointers to those that need attention are in the new cell', async () => {
    const rig = await createRig({ events: { attentionStatuses: ['On hold'] } });
    const { now, ref, table: formerTable } = rig;
    const dateDue = now() + 30 * 24 * 60 * MINUTE;
    const [held = 0, sent = 0] = [1, 2].map((n) =>
      rig.upstream.createJob({ status: 'Scheduled', dateDue, orderNumber: `PO-${n}`, orderGroup: 'Spring' }),
    );
    await rig.poll();
    rig.upstream.setStatus(held, 'On hold');
    rig.upstream.dispatch(sent);
    await rig.pollTypes(2);
    const people = { table: formerTable, log: rig.log, now, newId: randomUUID };
    await createRecipient(people, ref, { name: 'Ann Lee', email: 'ann@customer.example' });
    const table = createMemoryTable();
    const { accounts: from } = await createOperator({ table: formerTable, now });
    const { accounts: to } = await createOperator({ table, now });

    const inCell = async (cell: Table) => ({
      marks: await cell.query({ pk: markedJobPk('us') }),
      durations: await cell.get(keys.durations(ref)),
      entries: await Promise.all(
        (
          [
            ['job', String(held)],
            ['orderNumber', 'po-'],
            ['orderGroup', 'spring'],
            ['recipient', 'lee'],
          ] as const
        ).map(([kind, text]) => cell.query(toSearchRange('us', kind, text))),
      ),
    });
    const before = await inCell(formerTable);
    expect(before.marks).toEqual([keys.markedJob(ref, held)]);
    expect(before.durations).toBeDefined();
    expect(before.entries.map(({ length }) => length)).toEqual([1, 2, 1, 1]);
    await beginMove(from, ref, CELL);
    const page = await exportAccount(from, ref);
    if (page.kind !== 'page') throw new Error(page.reason);
    expect(await importAccount(to, { data: page.data, credentials: GIVEN })).toMatchObject({
      kind: 'imported',
    });
    expect(await inCell(table)).toEqual(before);
  });
});

describe('only one cell is active', () => {
  it('the former cell accepts no event and no resumption, from the first step on', async () => {
    const cells = await createCells();
    const head = await cells.former.log.head(ACME);
    await cells.begin();
    expect(await cells.former.log.append(ACME, [draftEvent('job.dispatched', 1, 0)])).toEqual({
      kind: 'rejected',
    });
    const status = await cells.former.table.get(keys.status(ACME));
    expect(status?.duePk).toBeUndefined();
    // Also for a poll that has read the head before.
    const request = {
      revision: Number(status?.revision),
      events: [draftEvent('job.dispatched', 1, 0)],
      writes: [],
    };
    if (head) expect(await cells.former.log.commit(ACME, { ...request, head })).toEqual({ kind: 'fenced' });
    expect(await resumeAccount(cells.from, ACME)).toMatchObject({
      kind: 'conflict',
      reason: `The account "acme" was moved to ${CELL}. Delete it here, or cancel the move if it is not complete there.`,
    });
  });

  it('the new cell does not poll before the last page, and then in a later epoch', async () => {
    const cells = await createCells();
    await cells.begin();
    const [data = ''] = await cells.exportPages();
    const page = JSON.parse(gunzipSync(Buffer.from(data, 'base64')).toString());
    const encode = (value: object) => gzipSync(JSON.stringify(value)).toString('base64');
    await importAccount(cells.to, { data: encode({ ...page, last: false }), credentials: GIVEN });
    expect(await cells.table.get(keys.status(ACME))).not.toHaveProperty('duePk');
    expect(await resumeAccount(cells.to, ACME)).toMatchObject({ kind: 'conflict' });
    expect(await importAccount(cells.to, { data })).toMatchObject({
      account: { paused: false, move: { to: null, complete: true } },
    });
    const [old, fresh] = await Promise.all([
      cells.former.log.head(ACME),
      createEventLog(cells.table, { now: Date.now, newId: randomUUID, schemaBaseUrl: CELL }).head(ACME),
    ]);
    expect(fresh).toMatchObject({ sequence: 0 });
    expect(String(fresh?.epoch) > String(old?.epoch)).toBe(true);
    expect(await cells.table.get(keys.status(ACME))).toHaveProperty('duePk');
  });

  it('an account that is not completely moved to a cell cannot be moved from it', async () => {
    const cells = await createCells();
    await cells.begin();
    const [data = ''] = await cells.exportPages();
    const page = JSON.parse(gunzipSync(Buffer.from(data, 'base64')).toString());
    const unfinished = gzipSync(JSON.stringify({ ...page, last: false })).toString('base64');
    await importAccount(cells.to, { data: unfinished, credentials: GIVEN });
    expect(await beginMove(cells.to, ACME, 'https://third.jobwire.example')).toMatchObject({
      kind: 'conflict',
      reason: 'The account "acme" is being moved to this cell. Repeat jobwire accounts move to complete it.',
    });
    expect(await importAccount(cells.to, { data })).toMatchObject({ account: { move: { complete: true } } });
    expect(await beginMove(cells.to, ACME, 'https://third.jobwire.example')).toMatchObject({ kind: 'begun' });
  });

  it('an account that was paused before the move stays paused in the new cell', async () => {
    const cells = await createCells();
    await pauseAccount(cells.from, ACME);
    await cells.move();
    expect(await cells.table.get(keys.account(ACME))).toMatchObject({ paused: true });
    expect(await resumeAccount(cells.to, ACME)).toMatchObject({ account: { paused: false } });
  });

  it('a cell with an account of this id rejects it', async () => {
    const cells = await createCells();
    await cells.move();
    const [data = ''] = await cells.exportPages();
    const { accounts } = await createOperator();
    const other = await createNotifyingWorld();
    const occupied = { ...accounts, table: other.table };
    expect(await importAccount(occupied, { data, credentials: GIVEN })).toMatchObject({
      kind: 'conflict',
      reason: 'id must be new: an account "acme" already exists.',
    });
  });

  it('the account can be deleted in the former cell after the move', async () => {
    const cells = await createCells();
    await cells.move();
    expect(await deleteAccount(cells.from, ACME)).toMatchObject({ kind: 'deleted' });
    expect(await cells.former.table.get(keys.account(ACME))).toBeUndefined();
  });
});

describe('a page', () => {
  it.each([
    ['an item of another account', { pk: 'JOBS#us#other', sk: '000000000001' }],
    ['the position of the log', { pk: 'INDEX#us#acme', sk: 'HEAD' }],
    ['an API key', { pk: 'APIKEYS', sk: 'abc' }],
    ['credentials', { pk: 'CREDENTIALS#us', sk: 'acme' }],
    ['settings of another account', { pk: 'NOTIFY#us', sk: 'other' }],
    ['durations of another account', { pk: 'DURATIONS#us#other', sk: 'DURATIONS' }],
    ['a pointer to a job', { pk: 'MARKEDJOBS#us', sk: 'acme#000000000001' }],
  ])('with %s is rejected', async (_, item) => {
    const { to } = await createCells();
    const page = { format: 1, region: 'us', account: 'acme', end: 'a1.4', items: [item], last: true };
    const data = gzipSync(JSON.stringify(page)).toString('base64');
    expect(await importAccount(to, { data, credentials: GIVEN })).toEqual({
      kind: 'rejected',
      reason: 'data contains items that do not belong to the account.',
    });
  });

  it('without credentials for a new account is rejected, and so is any other text', async () => {
    const cells = await createCells();
    await cells.begin();
    const [data = ''] = await cells.exportPages();
    expect(await importAccount(cells.to, { data })).toMatchObject({ kind: 'rejected' });
    expect(await importAccount(cells.to, { data: 'abc', credentials: GIVEN })).toMatchObject({
      kind: 'rejected',
      reason: expect.stringMatching(/^data must be a page /),
    });
    expect(gunzipSync(Buffer.from(data, 'base64')).toString()).not.toContain('given-again');
  });
});
