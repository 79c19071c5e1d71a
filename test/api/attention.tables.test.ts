/**
 * The attention queue over every table: its items, and the actions of users on them.
 * One file: all tests use the same queue over a tracker.
 */
import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { updateAccountRecord } from '../../shared/accounts/accounts.ts';
import { parseItemId } from '../../shared/api/attention/items.ts';
import {
  actOnAttention,
  decodeQueuePlace,
  listAttention,
  listAttentionHistory,
  type QueueQuery,
  readAttention,
} from '../../shared/api/attention/queue.ts';
import type { AttentionAction } from '../../shared/api/attention/state.ts';
import { readFigures } from '../../shared/api/figures.ts';
import { type Caller, OPERATOR } from '../../shared/api/keys.ts';
import { registerSink, sinkAttributes } from '../../shared/delivery/sink.ts';
import { toMessageId } from '../../shared/notifications/message-ids.ts';
import { recordNoMessage } from '../../shared/notifications/messages.ts';
import type { Message } from '../../shared/notifications/records.ts';
import {
  historySchema,
  keys,
  lateIndexPk,
  markedJobPk,
  troubledIndexKeys,
  troubledIndexPk,
} from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import { claimDue } from '../../shared/tracking/claims.ts';
import { eachTable } from '../support/tables.ts';
import { createRig, type Rig } from '../support/tracker.ts';

const HOUR = 3600;
const DAY = 24 * HOUR;

function getQueue(rig: Rig, history = createMemoryTable(historySchema)) {
  const deps = {
    ...{ table: rig.table, log: rig.log, now: rig.now, history, newId: randomUUID },
    regions: [rig.ref.region],
  };
  const list = (query: Partial<QueueQuery> = {}, caller: Caller = OPERATOR) =>
    listAttention(deps, caller, { limit: 100, state: 'open', ...query });
  const act = async (id: string, action: AttentionAction, caller: Caller = OPERATOR) => {
    const parsed = parseItemId(id);
    if (!parsed) throw new Error('not an id');
    return actOnAttention(deps, caller, parsed, action);
  };
  return { deps, history, list, act };
}

const restrictedTo = (...accounts: string[]): Caller => ({ ...OPERATOR, keyId: 'restricted', accounts });

/** Returns the notes in the history of an item, read in pages of two. */
async function listNotes(
  deps: Parameters<typeof listAttentionHistory>[0],
  item: Parameters<typeof listAttentionHistory>[1],
): Promise<(string | null)[]> {
  const notes: (string | null)[] = [];
  let after: string | undefined;
  do {
    const page = await listAttentionHistory(deps, item, { limit: 2, after });
    notes.push(...page.entries.map(({ note }) => note));
    after = page.next ?? undefined;
  } while (after !== undefined);
  return notes;
}

eachTable('the attention queue', (makeTable) => {
  test('lists late jobs with cause, due time and lateness, the latest first, and not after their dispatch', async () => {
    const rig = await createRig({ table: await makeTable() });
    const { list } = getQueue(rig);
    const [two, one] = ['2026-03-01', '2026-03-02'].map((dateDue) =>
      rig.upstream.createJob({ dateDue: `${dateDue}T12:00:00Z`, status: 'Printing' }),
    );
    rig.upstream.createJob({ dateDue: '2026-06-01' });
    await rig.poll();
    rig.pass(3 * DAY);
    await rig.poll();
    const { items, counts, total } = await list();
    expect(items.map(({ kind, subject }) => [kind, subject.id])).toEqual([
      ['job_late', String(two)],
      ['job_late', String(one)],
    ]);
    expect(total).toBe(2);
    expect(counts).toMatchObject({ open: 2, complete: true, byKind: [{ kind: 'job_late', items: 2 }] });
    expect(items[0]?.cause).toMatchObject({
      code: 'late',
      status: 'Printing',
      dueAt: Date.parse('2026-03-01T12:00:00Z'),
      summary: expect.stringMatching(/^\d+ days late\. In the status “Printing” for at least 3 days\.$/),
    });
    expect(items[0]?.since).toBe(Date.parse('2026-03-01T12:00:00Z'));
    expect(items[0]?.customer).toEqual({ enabled: false, informed: false, lastMessage: null });
    rig.upstream.dispatch(two ?? 0);
    await rig.poll();
    expect((await list()).items.map(({ subject }) => subject.id)).toEqual([String(one)]);
  });

  test('states the least time in the status, from a minute on, if the beginning of the stay was not observed', async () => {
    const rig = await createRig({ table: await makeTable() });
    const { list } = getQueue(rig);
    rig.upstream.createJob({ dateDue: '2026-03-01T12:00:00Z', status: 'Printing' });
    await rig.poll();
    const summary = async () => (await list()).items[0]?.cause.summary;
    expect(await summary()).toMatch(/ late\. In the status “Printing”\.$/);
    rig.pass(60);
    expect(await summary()).toMatch(/ In the status “Printing” for at least 1 minute\.$/);
    rig.pass(59 * 60);
    await rig.poll();
    expect(await summary()).toMatch(/ In the status “Printing” for at least 1 hour\.$/);
  });

  test('names the lines that hold up a late job, once its detail shows that the others are further', async () => {
    const rig = await createRig({ table: await makeTable() });
    const { list } = getQueue(rig);
    const job = rig.upstream.createJob({
      ...{ status: 'Printing', dateDue: '2026-03-01T12:00:00Z', mustDate: true },
      lines: ['Awaiting artwork', 'Printing', 'Printing'].map((jobLineStatus) => ({ jobLineStatus })),
    });
    await rig.poll();
    rig.upstream.setStatus(job, 'Awaiting artwork');
    rig.pass(HOUR);
    await rig.poll();
    rig.pass(5 * HOUR);
    await rig.poll();
    expect((await list()).items[0]?.cause.summary).toMatch(
      /late; the due date is mandatory\. In the status “Awaiting artwork” for 5 hours\. Lines: 1 in “Awaiting artwork”, 2 in “Printing”\.$/,
    );
    rig.upstream.setStatus(job, 'On hold');
    await rig.poll();
    expect((await list()).items[0]?.cause.summary).toMatch(
      /\. In the status “On hold” for less than a minute\. Lines: 2 in “Printing”, 1 in “Awaiting artwork”\.$/,
    );
  });

  test('lists jobs in a marked status and stalled jobs until the status changes, and deletes their marks', async () => {
    const events = { stalledAfterWorkingDays: 2, attentionStatuses: ['On hold'] };
    const rig = await createRig({ table: await makeTable(), events });
    const { list } = getQueue(rig);
    const marks = async () => (await rig.table.query({ pk: markedJobPk(rig.ref.region) })).length;
    const job = rig.upstream.createJob({ status: 'Printing', dateDue: null });
    await rig.poll();
    expect((await list()).items).toEqual([]);
    rig.upstream.setStatus(job, 'On hold');
    await rig.poll();
    expect(await marks()).toBe(1);
    expect((await list()).items.map(({ kind, cause }) => [kind, cause.code, cause.also])).toEqual([
      ['job_needs_attention', 'needs_attention', []],
    ]);
    rig.pass(7 * DAY);
    await rig.poll();
    expect((await list()).items.map(({ kind, cause }) => [kind, cause.also])).toEqual([
      ['job_needs_attention', ['stalled']],
    ]);
    rig.upstream.setStatus(job, 'Printing');
    await rig.poll();
    expect([await marks(), (await list()).items]).toEqual([0, []]);
    rig.pass(7 * DAY);
    await rig.poll();
    expect((await list()).items.map(({ kind }) => kind)).toEqual(['job_stalled']);
    rig.upstream.close(job);
    await rig.poll();
    await rig.poll();
    expect([await marks(), (await list()).items]).toEqual([0, []]);
  });

  test('lists jobs that are due soon', async () => {
    const rig = await createRig({ table: await makeTable(), events: { dueSoonHours: 48 } });
    const { list } = getQueue(rig);
    const job = rig.upstream.createJob({ dateDue: new Date(rig.now() + 3 * DAY * 1000).toISOString() });
    await rig.poll();
    expect((await list()).items).toEqual([]);
    rig.pass(2 * DAY);
    await rig.poll();
    const { items } = await list();
    expect(items.map(({ kind, subject }) => [kind, subject.id])).toEqual([['job_due_soon', String(job)]]);
    const dueAt = items[0]?.cause.dueAt ?? 0;
    expect(items[0]?.since).toBe(dueAt - 48 * HOUR * 1000);
    rig.pass(60);
    expect((await list()).items[0]?.since).toBe(items[0]?.since);
  });

  test('an account without a complete poll is not observed since it was created, however often it is polled', async () => {
    const rig = await createRig({ table: await makeTable() });
    const { list } = getQueue(rig);
    const createdAt = rig.now();
    rig.fault({ match: {}, fault: { kind: 'status', status: 401 } });
    for (let hours = 1; hours <= 3; hours += 1) {
      rig.pass(HOUR);
      await rig.poll();
      expect((await list()).items).toMatchObject([{ kind: 'account_not_observed', since: createdAt }]);
    }
  });

  test('states why polls fail and how often, and offers new credentials only if they are not in the configuration file', async () => {
    const rig = await createRig({ table: await makeTable() });
    const { list } = getQueue(rig);
    rig.fault({ match: { operation: 'token' }, fault: { kind: 'status', status: 401 } });
    for (let n = 0; n < 3; n += 1) {
      rig.pass(HOUR);
      await rig.poll();
    }
    const read = async () => {
      const [item] = (await list()).items;
      return { summary: item?.cause.summary, actions: item?.actions.map(({ operation }) => operation) };
    };
    const declared = await read();
    const { problem } = await rig.status();
    const [sentence] = problem?.split(/(?<=\.) /) ?? [];
    expect(problem).not.toBe(sentence);
    expect(declared.summary).toBe(
      `The ordering API rejected the credentials. ${sentence} 3 polls in a row failed. The account was never observed completely.`,
    );
    expect(declared.actions).toEqual(['testAccount', 'getAccountStatus']);
    await rig.table.write({ update: keys.account(rig.ref), set: { managed: true } });
    expect((await read()).actions).toEqual(['testAccount', 'rotateCredentials', 'getAccountStatus']);
  });

  test('offers a message to the customer only for accounts whose notifications are on', async () => {
    const rig = await createRig({ table: await makeTable() });
    const { list } = getQueue(rig);
    rig.upstream.createJob({ dateDue: '2026-03-01T12:00:00Z' });
    await rig.poll();
    const offers = async () => {
      const [item] = (await list()).items;
      const { enabled } = item?.customer ?? {};
      return [enabled, item?.actions.some(({ operation }) => operation === 'sendNote')];
    };
    expect(await offers()).toEqual([false, false]);
    const settings = { ...keys.notificationSettings(rig.ref), settings: '{}', since: 0, revision: 1 };
    await rig.table.write({ put: { ...settings, enabled: true } });
    expect(await offers()).toEqual([true, true]);
    await rig.table.write({ put: { ...settings, enabled: false } });
    expect(await offers()).toEqual([false, false]);
  });

  test('lists an account that is paused for a day, and one that is not observed', async () => {
    const rig = await createRig({ table: await makeTable() });
    const { list, deps } = getQueue(rig);
    await rig.poll();
    expect((await list()).items).toEqual([]);
    rig.pass(HOUR);
    const [stale] = (await list()).items;
    expect([stale?.kind, stale?.cause.code]).toEqual(['account_not_observed', 'stale']);
    expect(stale?.ageHours).toBe(1);
    await rig.poll();
    expect((await list()).items).toEqual([]);
    await rig.table.write({ update: keys.account(rig.ref), set: { paused: true, changedAt: rig.now() } });
    rig.pass(23 * HOUR);
    expect((await list()).items).toEqual([]);
    rig.pass(2 * HOUR);
    const { items } = await list();
    expect(items.map(({ cause }) => cause.code)).toEqual(['paused']);
    expect(items[0]?.actions[0]).toMatchObject({ operation: 'resumeAccount', method: 'POST' });
    expect(deps.regions).toEqual(['us']);
  });

  test('an account stays listed as paused, since its pause, when another of its settings changes', async () => {
    const rig = await createRig({ table: await makeTable() });
    const { list } = getQueue(rig);
    await rig.poll();
    const change = (set: { paused?: boolean; pollIntervalSeconds?: number }) =>
      updateAccountRecord(rig.table, rig.ref, rig.now(), () => ({ set }));
    await change({ paused: true });
    const pausedAt = rig.now();
    rig.pass(25 * HOUR);
    await change({ paused: true, pollIntervalSeconds: 600 });
    const paused = (await list()).items.map(({ cause, since }) => [cause.code, since]);
    expect(paused).toEqual([['paused', pausedAt]]);
    await change({ paused: false });
    await rig.poll();
    await change({ paused: true });
    expect((await list()).items).toEqual([]);
  });

  test('finds accounts with late jobs and accounts in a bad state by index, in regions of any size', async () => {
    const rig = await createRig({ table: await makeTable() });
    const find = async (pk: string) => (await rig.table.query({ index: 'related', pk })).map(({ sk }) => sk);
    rig.upstream.createJob({ dateDue: '2026-03-01T12:00:00Z' });
    await rig.poll();
    expect(await find(lateIndexPk('us'))).toEqual([rig.ref.account]);
    expect(await find(troubledIndexPk('us'))).toEqual([]);
    await rig.table.write({ update: keys.status(rig.ref), set: troubledIndexKeys(rig.ref, true) });
    expect(await find(troubledIndexPk('us'))).toEqual(['STATUS']);
    // A successful poll removes the account.
    rig.pass(120);
    await rig.poll();
    expect(await find(troubledIndexPk('us'))).toEqual([]);
  });

  test('lists an account whose polls crash, also in a region whose accounts are only found by index', async () => {
    const rig = await createRig({ table: await makeTable() });
    const { list } = getQueue(rig);
    await rig.poll();
    const record = await rig.table.get(keys.account(rig.ref));
    const others = Array.from({ length: 300 }, (_, at) => ({
      ...record,
      ...keys.account({ ...rig.ref, account: `other-${at}` }),
    }));
    await rig.table.putMany(others);
    // Each claim expires without the report of a poll.
    for (let claim = 0; claim < 12; claim += 1) {
      rig.pass(300);
      const options = { now: rig.now(), limit: 10, claimSeconds: 150 };
      expect(await claimDue(rig.table, rig.ref.region, options)).toHaveLength(1);
    }
    expect((await list()).items.map(({ kind, cause }) => [kind, cause.code])).toEqual([
      ['account_not_observed', 'stale'],
    ]);
    await rig.poll();
    expect((await list()).items).toEqual([]);
    expect(await rig.table.query({ index: 'related', pk: troubledIndexPk('us') })).toEqual([]);
  });

  test('lists messages of the last week that did not reach the customer', async () => {
    const rig = await createRig({ table: await makeTable() });
    await rig.poll();
    const { list, history } = getQueue(rig);
    const message = (state: Message['state'], at: number): Message => ({
      ...{ region: 'us', account: rig.ref.account, kind: 'dispatched', channel: 'email', orderGroup: null },
      ...{ id: `m${at.toString(36).padStart(9, '0')}-e${'0'.repeat(32)}`, jobs: [7], to: null, state },
      ...{ reason: 'bounced', detail: null, createdAt: at, dueAt: null, sentAt: at, attempts: 1, repeats: 0 },
      ...{ providerId: null, subject: null, text: null, segments: null },
    });
    const deps = { table: rig.table, history, now: rig.now, newId: randomUUID };
    await recordNoMessage(deps, message('bounced', rig.now()));
    await recordNoMessage(deps, message('sent', rig.now() - 1000));
    await recordNoMessage(deps, message('failed', rig.now() - 8 * DAY * 1000));
    expect((await list()).items.map(({ kind, cause }) => [kind, cause.code])).toEqual([
      ['message_undelivered', 'bounced'],
    ]);
    expect((await list({}, restrictedTo('other'))).items).toEqual([]);
    await recordNoMessage(deps, { ...message('failed', rig.now() - 2000), reason: 'rejected' });
    expect((await list()).items.map(({ cause }) => cause.summary)).toEqual([
      'The message “dispatched” was not sent. The provider rejected the message permanently.',
      'The message “dispatched” was returned as undeliverable.',
    ]);
    // One address is the common cause of several items. It is masked.
    const person = { recipient: 'r', name: null, locale: 'en-US', zone: 'UTC' } as const;
    const to = { ...person, address: 'jo@dead.example' };
    for (const age of [3_000, 4_000, 5_000])
      await recordNoMessage(deps, { ...message('bounced', rig.now() - age), to });
    await recordNoMessage(deps, {
      ...message('bounced', rig.now() - 6_000),
      to: { ...person, address: 'ann@gone.example' },
    });
    const toDead =
      'The message “dispatched” was returned as undeliverable. It is one of 3 undelivered messages to j•••@d•••.example.';
    const summaries = (await list()).items.map(({ cause }) => cause.summary);
    expect(summaries.filter((text) => text === toDead)).toHaveLength(3);
    expect(summaries.filter((text) => text.includes('one of'))).toHaveLength(3);
  });

  test('lists the messages of a key for some accounts that are older than hundreds of other accounts', async () => {
    const rig = await createRig({ table: await makeTable() });
    await rig.poll();
    const { list, history } = getQueue(rig);
    const deps = { table: rig.table, history, now: rig.now, newId: randomUUID };
    const record = async (account: string, at: number) =>
      recordNoMessage(deps, {
        ...{ region: 'us', account, kind: 'dispatched', channel: 'email', orderGroup: null },
        ...{ id: toMessageId(`e${'0'.repeat(32)}`, at), jobs: [7], to: null, state: 'bounced' },
        ...{ reason: 'bounced', detail: null, createdAt: at, dueAt: null, sentAt: at, attempts: 1 },
        ...{ repeats: 0, providerId: null, subject: null, text: null, segments: null },
      });
    for (let n = 1; n <= 450; n += 1) await record(n === 201 || n === 430 ? 'acme' : 'other', rig.now() - n);
    const { items, counts } = await list({}, restrictedTo('acme'));
    expect(items.map(({ kind, account }) => [kind, account])).toEqual([
      ['message_undelivered', 'acme'],
      ['message_undelivered', 'acme'],
    ]);
    expect(counts.complete).toBe(true);
    expect((await list()).counts.complete).toBe(false);
  });

  test('hides an acknowledged item in a region with any number of stored states', async () => {
    const rig = await createRig({ table: await makeTable() });
    const { list, act } = getQueue(rig);
    rig.upstream.createJob({ dateDue: '2026-03-01T12:00:00Z', status: 'Printing' });
    await rig.poll();
    await act((await list()).items[0]?.id ?? '', { action: 'acknowledge' });
    const others = Array.from({ length: 5_000 }, (_, n) => keys.attention('us', `aaa~job~${n + 1}`));
    await rig.table.putMany(others.map((key) => ({ ...key, state: '{}', revision: 1 })));
    expect((await list()).counts).toMatchObject({ open: 0, acknowledged: 1, complete: true });
  });

  test('hides an acknowledged item until its cause changes materially', async () => {
    const rig = await createRig({ table: await makeTable() });
    const { list, act, deps } = getQueue(rig);
    const job = rig.upstream.createJob({ dateDue: '2026-03-01T12:00:00Z', status: 'Printing' });
    await rig.poll();
    const [item] = (await list()).items;
    const id = item?.id ?? '';
    expect(id).toBe(`us~${rig.ref.account}~job~${job}`);
    await act(id, { action: 'acknowledge', note: 'known' });
    expect((await list()).items).toEqual([]);
    expect((await list()).counts).toMatchObject({
      ...{ open: 0, acknowledged: 1, byKind: [] },
      hiddenByKind: [{ kind: 'job_late', items: 1 }],
    });
    expect((await list({ state: undefined })).items).toMatchObject([
      { state: 'acknowledged', note: 'known' },
    ]);
    rig.upstream.setStatus(job, 'On hold');
    await rig.poll();
    expect((await list()).items).toMatchObject([{ id, state: 'open', returned: 'changed', note: 'known' }]);
    await act(id, { action: 'snooze', until: rig.now() + HOUR * 1000 });
    expect((await list()).items).toEqual([]);
    await act(id, { action: 'reopen' });
    expect((await list()).items).toMatchObject([{ id, state: 'open', returned: null }]);
    await act(id, { action: 'snooze', until: rig.now() + HOUR * 1000 });
    rig.pass(HOUR);
    await rig.poll();
    expect((await list()).items).toMatchObject([{ id, state: 'open', returned: 'snooze_ended' }]);
    const [again] = (await list({ state: undefined })).items;
    if (!again) throw new Error('no item');
    const { entries } = await listAttentionHistory(deps, again, { limit: 10 });
    expect(entries.map(({ action, by }) => [action, by.id])).toEqual(
      ['snooze', 'reopen', 'snooze', 'acknowledge'].map((action) => [action, 'operator']),
    );
    expect(entries[3]).toMatchObject({
      kind: 'job_late',
      note: 'known',
      cause: '20 hours late. In the status “Printing”.',
    });
  });

  test('pages through the history of an item, newest first, without gaps', async () => {
    const rig = await createRig({ table: await makeTable() });
    const { list, act, deps } = getQueue(rig);
    rig.upstream.createJob({ dateDue: '2026-03-01T12:00:00Z' });
    await rig.poll();
    const id = (await list()).items[0]?.id ?? '';
    for (const note of ['a', 'b', 'c', 'd', 'e']) {
      await act(id, { action: 'note', note });
      rig.pass(1);
    }
    const [item] = (await list()).items;
    if (!item) throw new Error('no item');
    expect(await listNotes(deps, item)).toEqual(['e', 'd', 'c', 'b', 'a']);
  });

  test('filters can be combined, and pages have no gaps', async () => {
    const rig = await createRig({ table: await makeTable() });
    const { list, act } = getQueue(rig);
    for (let at = 0; at < 5; at += 1) rig.upstream.createJob({ dateDue: `2026-02-2${at}T12:00:00Z` });
    await rig.poll();
    const all = (await list()).items.map(({ id }) => id);
    expect(all).toHaveLength(5);
    const paged: string[] = [];
    let after: QueueQuery['after'];
    do {
      const page = await list({ limit: 2, after });
      paged.push(...page.items.map(({ id }) => id));
      after = page.next === null ? undefined : decodeQueuePlace(page.next);
    } while (after !== undefined);
    expect(paged).toEqual(all);
    await act(all[1] ?? '', { action: 'assign', assignee: 'ann' });
    const ids = async (query: Partial<QueueQuery>) => (await list(query)).items.map(({ id }) => id);
    expect(await ids({ assignee: 'ann' })).toEqual([all[1]]);
    expect(await ids({ assignee: null, kinds: ['job_late'] })).toHaveLength(4);
    expect(await ids({ assignee: 'ann', kinds: ['job_stalled'] })).toEqual([]);
    expect(await ids({ account: 'none-such' })).toEqual([]);
    const subject = `job/${all[1]?.split('~').at(-1)}`;
    expect(await ids({ subject, account: rig.ref.account })).toEqual([all[1]]);
    expect(await ids({ subject: subject.replace('job', 'account') })).toEqual([]);
    expect(await ids({ region: 'nz' })).toEqual([]);
  });

  test('shows a key only the items of its accounts, and lets it change no others', async () => {
    const rig = await createRig({ table: await makeTable() });
    const { list, act, deps } = getQueue(rig);
    rig.upstream.createJob({ dateDue: '2026-03-01T12:00:00Z' });
    await rig.poll();
    const id = (await list()).items[0]?.id ?? '';
    const [own, foreign] = [restrictedTo(rig.ref.account), restrictedTo('other')];
    expect((await list({}, own)).items.map((item) => item.id)).toEqual([id]);
    expect(await list({}, foreign)).toMatchObject({ items: [], watched: { accounts: 0 } });
    expect(await act(id, { action: 'acknowledge' }, foreign)).toMatchObject({ kind: 'unknown' });
    const parsed = parseItemId(id);
    expect(parsed && (await readAttention(deps, foreign, parsed))).toBeUndefined();
    expect(await act(id, { action: 'acknowledge' }, own)).toMatchObject({ kind: 'changed' });
  });

  test('lists recent dead events of an endpoint behind any number of older ones', async () => {
    const rig = await createRig({ table: await makeTable() });
    const common = { region: rig.ref.region, accounts: [], types: [], paused: false };
    const sink = { ...common, id: 'erp', kind: 'webhook' as const, target: 'https://erp.example' };
    await registerSink(rig.table, rig.log, sink, []);
    const event = { eventId: 'e', type: 'job.updated', attempts: 3, lane: '1', parkedAt: 0 };
    const die = (sequence: number, diedAt: number) => ({
      ...keys.dead(rig.ref.region, 'erp', rig.ref.account, sequence),
      ...{ ...event, account: rig.ref.account, sequence, diedAt },
    });
    const old = rig.now() - 31 * DAY * 1000;
    await rig.table.putMany(Array.from({ length: 150 }, (_, at) => die(at + 1, old)));
    const { list } = getQueue(rig);
    expect((await list({ kinds: ['events_dead'] })).items).toEqual([]);
    const reason = 'The endpoint responded with status 422.';
    await rig.table.write({ put: { ...die(151, rig.now()), reason } });
    const { items } = await list({ kinds: ['events_dead'] });
    expect(items.map(({ impact }) => impact.deadEvents)).toEqual([1]);
    expect(items[0]?.cause.summary).toBe(
      '1 event rejected on every attempt (the endpoint responded with status 422).',
    );
  });

  test('finds endpoints with a problem behind any number of others, and says so only if there are too many', async () => {
    const rig = await createRig({ table: await makeTable() });
    const { list } = getQueue(rig);
    const { region } = rig.ref;
    const common = { region, accounts: [], types: [], paused: false, target: 'https://erp.example' };
    const put = (id: string, more: object = {}) => ({
      ...keys.sink(region, id),
      ...sinkAttributes({ ...common, id, kind: 'webhook' }),
      ...more,
    });
    const failing = { failures: 3, failingSince: rig.now() - 60_000, waitUntil: rig.now() + 60_000 };
    const named = (prefix: string, count: number, more = {}) =>
      Array.from({ length: count }, (_, at) => put(`${prefix}-${String(at).padStart(4, '0')}`, more));
    const dead = {
      ...keys.dead(region, 'z-dead', rig.ref.account, 1),
      ...{ eventId: 'e', type: 'job.updated', attempts: 3, lane: '1', parkedAt: 0, reason: 'Rejected.' },
      ...{ account: rig.ref.account, sequence: 1, diedAt: rig.now() },
    };
    await rig.table.putMany([
      ...named('ok', 1_100),
      ...[put('z-failing', failing), put('z-disabled', { disabledAt: rig.now() })],
      ...[put('z-dead', { lastDiedAt: rig.now() }), dead],
    ]);
    const { items, counts } = await list();
    const found = Object.fromEntries(items.map(({ kind, subject }) => [subject.id, kind]));
    expect(found).toEqual({
      ...{ 'z-dead': 'events_dead', 'z-disabled': 'endpoint_disabled', 'z-failing': 'endpoint_failing' },
    });
    expect(counts.complete).toBe(true);
    await rig.table.putMany(named('failing', 200, failing));
    expect((await list()).counts.complete).toBe(false);
  });

  test('keeps state and history of the item of an endpoint when the accounts of the endpoint change', async () => {
    const rig = await createRig({ table: await makeTable() });
    const { list, act, deps } = getQueue(rig);
    const sink = { region: 'us', id: 'erp', kind: 'webhook', types: [], paused: false } as const;
    const follow = (...accounts: string[]) =>
      rig.table.write({
        update: keys.sink('us', 'erp'),
        set: {
          ...sinkAttributes({ ...sink, accounts, target: 'https://erp.example' }),
          disabledAt: rig.now(),
        },
      });
    await follow('acme');
    // The form in which earlier versions stored the state.
    const former = {
      ...{ hold: null, assignee: 'ann', note: 'Their ERP is down.', changedAt: rig.now() },
      changedBy: { id: 'k', name: null, user: false },
    };
    const item = { ...keys.attention('us', 'acme~endpoint~erp'), revision: 3 };
    await rig.table.write({ put: { ...item, state: JSON.stringify(former) } });
    const [before] = (await list()).items;
    expect(before).toMatchObject({ id: 'us~~endpoint~erp', account: 'acme', assignee: 'ann' });
    await act('us~acme~endpoint~erp', { action: 'acknowledge' });
    await follow('acme', 'bakery');
    expect((await list()).items).toEqual([]);
    await act('us~~endpoint~erp', { action: 'note', note: 'Back on Monday.' });
    await follow('bakery');
    const [after] = (await list({ state: 'acknowledged' })).items;
    expect(after).toMatchObject({ account: 'bakery', assignee: 'ann', note: 'Back on Monday.' });
    if (!after) throw new Error('no item');
    const { entries } = await listAttentionHistory(deps, after, { limit: 10 });
    expect(entries.map(({ action }) => action)).toEqual(['note', 'acknowledge']);
  });

  test('pages through the history of an endpoint of one account with the entries of earlier versions', async () => {
    const rig = await createRig({ table: await makeTable() });
    const { list, act, deps } = getQueue(rig);
    const target = 'https://erp.example';
    const sink = {
      region: 'us',
      id: 'erp',
      kind: 'webhook',
      types: [],
      paused: false,
      accounts: ['acme'],
    } as const;
    const set = { ...sinkAttributes({ ...sink, target }), disabledAt: rig.now() };
    await rig.table.write({ update: keys.sink('us', 'erp'), set });
    // The form in which earlier versions stored the state and its history.
    const by = { id: 'k', name: null, user: false };
    const state = { hold: null, assignee: null, note: 'b', changedAt: rig.now(), changedBy: by };
    const former = { ...keys.attention('us', 'acme~endpoint~erp'), revision: 2 };
    await rig.table.write({ put: { ...former, state: JSON.stringify(state) } });
    for (const [at, note] of ['a', 'b'].entries()) {
      const entry = { at: rig.now(), by, action: 'note', kind: 'endpoint_disabled', cause: '', note };
      const key = keys.attentionEntry('us', 'acme~endpoint~erp', at + 1);
      await rig.table.write({ put: { ...key, entry: JSON.stringify(entry) } });
    }
    for (const note of ['c', 'd', 'e']) await act('us~~endpoint~erp', { action: 'note', note });
    const [item] = (await list()).items;
    if (!item) throw new Error('no item');
    expect(await listNotes(deps, item)).toEqual(['e', 'd', 'c', 'b', 'a']);
  });

  test('counts webhooks and queues as endpoints, and no topic', async () => {
    const rig = await createRig({ table: await makeTable() });
    const { list } = getQueue(rig);
    const { region } = rig.ref;
    const common = { region, accounts: [], types: [], paused: false };
    for (const [id, kind] of [
      ['erp', 'webhook'],
      ['sns', 'sns'],
    ] as const) {
      await registerSink(rig.table, rig.log, { ...common, id, kind, target: `https://${id}.example` }, []);
    }
    expect(await list()).toMatchObject({ watched: { endpoints: 1 } });
  });

  test('lists to a key only actions that its role permits', async () => {
    const rig = await createRig({ table: await makeTable() });
    const { list } = getQueue(rig);
    await rig.poll();
    rig.pass(HOUR);
    const operations = async (role: Caller['role']) =>
      (await list({}, { ...OPERATOR, role })).items[0]?.actions.map(({ operation }) => operation);
    expect(await operations('read')).toEqual(['getAccountStatus']);
    expect(await operations('operate')).toEqual(['testAccount', 'getAccountStatus']);
  });

  test('the state and the history of an item expire, and two changes at once do not overwrite each other', async () => {
    const rig = await createRig({ table: await makeTable() });
    const { list, act } = getQueue(rig);
    rig.upstream.createJob({ dateDue: '2026-03-01T12:00:00Z' });
    await rig.poll();
    const id = (await list()).items[0]?.id ?? '';
    const outcomes = await Promise.all([
      act(id, { action: 'note', note: 'a' }),
      act(id, { action: 'note', note: 'b' }),
    ]);
    expect(outcomes.filter(({ kind }) => kind === 'changed').length).toBeGreaterThan(0);
    const item = await rig.table.get(keys.attention('us', id.slice(3)));
    expect(Number(item?.ttl)).toBeGreaterThanOrEqual(rig.now() / 1000 + 90 * DAY);
    expect(Number(item?.revision)).toBe(outcomes.filter(({ kind }) => kind === 'changed').length);
  });
});

eachTable('the figures', (makeTable) => {
  test('count open, due and dispatched jobs, and open items, of the accounts of the key', async () => {
    const rig = await createRig({ table: await makeTable() });
    const { deps } = getQueue(rig);
    const day = new Date(rig.now()).toISOString().slice(0, 10);
    const out = rig.upstream.createJob({ dateDue: '2026-06-01', status: 'Printing' });
    rig.upstream.createJob({ dateDue: '2026-03-01T12:00:00Z', status: 'Printing' });
    rig.upstream.createJob({ dateDue: day, status: 'Proof' });
    await rig.poll();
    rig.upstream.dispatch(out);
    await rig.poll();
    const read = (caller: Caller) => readFigures(deps, caller, { regions: ['us'], day });
    const figures = await read(OPERATOR);
    expect(figures).toMatchObject({
      ...{ accounts: 1, accountsCounted: 1, dueToday: 1, dispatchedToday: 1 },
      onTime: { onTime: 1, of: 1, days: 7 },
      attention: { open: 1, byKind: [{ kind: 'job_late', items: 1 }] },
    });
    expect(figures.days).toHaveLength(14);
    expect(figures.open).toMatchObject({ jobs: 3, dispatched: 1, late: 1 });
    expect(await read(restrictedTo(rig.ref.account))).toEqual(figures);
    expect(await read(restrictedTo('other'))).toMatchObject({
      accounts: 0,
      open: { jobs: 0 },
      attention: { open: 0 },
    });
  });

  test('name paused accounts, and accounts that count the same jobs', async () => {
    const rig = await createRig({ table: await makeTable() });
    const { deps } = getQueue(rig);
    rig.upstream.createJob({ dateDue: '2026-03-01T12:00:00Z' });
    rig.upstream.createJob({});
    await rig.poll();
    const read = async (caller: Caller = OPERATOR) => {
      const { paused, countedTwice } = await readFigures(deps, caller, {
        regions: ['us'],
        day: '2026-03-02',
      });
      return { paused, countedTwice };
    };
    const none = { paused: { accounts: [], total: 0, jobs: 0, late: 0 }, countedTwice: [] };
    expect(await read()).toEqual(none);
    const { account } = rig.ref;
    await rig.table.write({ update: keys.account(rig.ref), set: { paused: true } });
    expect((await read()).paused).toEqual({
      ...{ accounts: [{ region: 'us', account, jobs: 2, late: 1 }], total: 1, jobs: 2, late: 1 },
    });
    // Another account with other credentials of the same account of the ordering API, and a third one with those credentials.
    const open = await rig.table.get(keys.openJobs(rig.ref));
    expect(open?.upstreamId).toEqual(expect.any(Number));
    for (const [name, upstreamId, secretRef] of [
      ['twin', open?.upstreamId, 'other'],
      ['copy', undefined, 'other'],
      ['apart', 7, 'apart'],
    ] as const) {
      const ref = { region: 'us', account: name };
      const item = { ...keys.account(ref), secretRef, pollIntervalSeconds: 60, paused: false };
      await rig.table.write({ put: item });
      await rig.table.write({ put: { ...open, ...keys.openJobs(ref), upstreamId } });
    }
    expect((await read()).countedTwice).toEqual([
      { region: 'us', accounts: [account, 'copy', 'twin'].sort(), jobs: 4 },
    ]);
    expect((await read(restrictedTo('apart'))).countedTwice).toEqual([]);
  });
});
