/**
 * The event log: one contiguous sequence per account, for any concurrent writers and crashes.
 * One file: its tests share the faulty table and the check for one sequence.
 */
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { EventDraft } from '../../shared/events/event.ts';
import { getSource } from '../../shared/events/event.ts';
import type { Head } from '../../shared/log/head.ts';
import {
  COMMIT_OVERHEAD_ACTIONS,
  type CommitRequest,
  createEventLog,
  type EventLog,
  type LoggedEvent,
  shareReads,
} from '../../shared/log/log.ts';
import { type AccountRef, cellLog, indexPk, keys, logPk, snapshotPk } from '../../shared/storage/schema.ts';
import {
  type Item,
  MAX_TRANSACTION_ACTIONS,
  type Table,
  TableError,
  type Write,
} from '../../shared/storage/table.ts';
import { runs } from '../support/runs.ts';
import { eachTable } from '../support/tables.ts';

const ref: AccountRef = { region: 'us', account: 'acme' };
const START = Date.parse('2026-03-02T08:00:00Z');
const DAY_MS = 86_400_000;

eachTable('The event log', (makeTable, kind) => {
  let clock = START;
  let table: Table;
  let log: EventLog;
  let committed: [account: string, sequence: number][];

  beforeEach(async () => {
    clock = START;
    committed = [];
    table = await makeTable();
    log = logOver(table);
    await register(table);
  });

  function logOver(over: Table, options: { retentionDays?: number } = {}): EventLog {
    return createEventLog(over, {
      now: () => clock,
      newId: randomUUID,
      schemaBaseUrl: 'https://jobwire.example',
      onCommitted: ({ account }, sequence) => committed.push([account, sequence]),
      sleep: async () => undefined,
      ...options,
    });
  }

  const revisionNow = async (): Promise<number> => Number((await table.get(keys.status(ref)))?.revision);
  const headNow = async (): Promise<Head> => present(await log.head(ref));

  /** The commit of a poll that starts now. */
  async function request(
    names: readonly string[],
    more: Partial<CommitRequest> = {},
  ): Promise<CommitRequest> {
    return {
      revision: await revisionNow(),
      head: await headNow(),
      events: names.map((name) => draft(name)),
      writes: [],
      ...more,
    };
  }
  const commit = async (names: readonly string[], more: Partial<CommitRequest> = {}) =>
    log.commit(ref, await request(names, more));

  /** All that an account has in the table. */
  async function everything(): Promise<Item[]> {
    const parts = await Promise.all([
      table.query({ pk: keys.status(ref).pk }),
      table.query({ pk: indexPk(ref) }),
      table.query({ pk: logPk(ref) }),
      table.query({ pk: snapshotPk(ref) }),
      table.query({ pk: keys.wake(ref).pk }),
    ]);
    return parts.flat();
  }

  describe('numbering', () => {
    test('starts at one without a gap, across commits and chunks', async () => {
      const first = await commit(['a', 'b', 'c']);
      expect(first).toMatchObject({ kind: 'committed', revision: 1, head: { epoch: 'e1', sequence: 3 } });
      const second = await log.commit(ref, {
        revision: 1,
        head: (first as { head: Head }).head,
        events: [draft('d')],
        writes: [],
      });
      expect(second).toMatchObject({ kind: 'committed', revision: 2, head: { sequence: 4 } });
      expect((await all(log)).map(getName)).toEqual(['a', 'b', 'c', 'd']);
      expect((await all(log)).map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4]);
      expect((await all(log)).map(({ id }) => id)).toEqual([1, 2, 3, 4].map((n) => `acme.e1.${n}`));
    });

    test('is per account, also for accounts with the same name in two regions', async () => {
      const other: AccountRef = { region: 'nz', account: 'acme' };
      await register(table, other);
      await commit(['us-1', 'us-2']);
      await log.append(other, [draft('nz-1')]);
      expect((await all(log)).map(getName)).toEqual(['us-1', 'us-2']);
      expect((await all(log, other)).map(getName)).toEqual(['nz-1']);
      expect((await all(log, other))[0]?.json).toContain('/regions/nz/accounts/acme');
    });

    test('supports a chunk of the maximum transaction size', async () => {
      const names = Array.from(
        { length: MAX_TRANSACTION_ACTIONS - COMMIT_OVERHEAD_ACTIONS },
        (_, at) => `${at}`,
      );
      expect(await commit(names)).toMatchObject({ kind: 'committed', head: { sequence: names.length } });
      expect((await all(log)).map(getName)).toEqual(names);
    });

    test('a poll with a valid fence renumbers its events after a concurrent append', async () => {
      const held = await request(['mine-1', 'mine-2'], {
        writes: [{ put: { ...keys.snapshot(ref, 5), state: 'new' } }],
      });
      await log.append(ref, [draft('operator-1')]);
      await log.append(ref, [draft('operator-2')]);
      const outcome = await log.commit(ref, held);
      expect(outcome).toMatchObject({ kind: 'committed', revision: 1, head: { sequence: 4 } });
      expect((await all(log)).map(getName)).toEqual(['operator-1', 'operator-2', 'mine-1', 'mine-2']);
      expect(await table.get(keys.snapshot(ref, 5))).toMatchObject({ state: 'new' });
    });

    test('a commit without events does not reset a head that it has not read', async () => {
      const held = await request([], { headAttributes: { statusNames: ['New'] } });
      await log.append(ref, [draft('operator-1')]);
      expect(await log.commit(ref, held)).toMatchObject({ kind: 'committed', head: { sequence: 1 } });
      expect(await headNow()).toMatchObject({ sequence: 1, attributes: { statusNames: ['New'] } });
    });

    test('no id is used in two epochs, and a poll continues in the new one', async () => {
      const held = await request(['after']);
      await commit(['before']);
      // A table restored from before: the head has gone back, and gets a new epoch.
      await table.write({ update: keys.head(ref), set: { epoch: 'e2', sequence: 0 } });
      await table.write({ update: keys.status(ref), set: { revision: held.revision } });
      await table.write({ delete: keys.event(ref, 1) });
      expect(await log.commit(ref, held)).toMatchObject({ kind: 'committed', head: { epoch: 'e2' } });
      expect((await all(log)).map(({ id }) => id)).toEqual(['acme.e2.1']);
    });

    test('a number is not used twice, even if the head was reset manually', async () => {
      await commit(['said']);
      await table.write({ update: keys.head(ref), set: { sequence: 0 } });
      await expect(log.append(ref, [draft('instead')])).rejects.toThrow(/Too many concurrent writes/);
      expect(getName(toEvent(present(await table.get(keys.event(ref, 1)))))).toBe('said');
    });

    test('fifty concurrent appends leave no gap and lose nothing', async () => {
      const names = Array.from({ length: 50 }, (_, at) => `n${at}`);
      const outcomes = await Promise.all(names.map((name) => logOver(table).append(ref, [draft(name)])));
      const events = await all(log);
      expect(events.map(({ sequence }) => sequence)).toEqual(names.map((_, at) => at + 1));
      expect(events.map(getName).sort()).toEqual(names.toSorted());
      // Each got its actual number.
      names.forEach((name, at) => {
        expect(outcomes[at]).toMatchObject({
          kind: 'appended',
          head: { sequence: events.find((event) => getName(event) === name)?.sequence },
        });
      });
    }, 60_000);
  });

  describe('fencing', () => {
    test('an overtaken poll writes nothing', async () => {
      const held = await request(['late'], {
        writes: [{ put: { ...keys.snapshot(ref, 5) } }],
        headAttributes: { statusNames: ['Late'] },
        statusAttributes: { state: 'late' },
      });
      await commit(['first']);
      const before = await everything();
      committed.length = 0;
      expect(await log.commit(ref, held)).toEqual({ kind: 'fenced' });
      expect(await everything()).toEqual(before);
      expect(committed).toEqual([]);
    });

    test('also by a poll without events', async () => {
      const held = await request(['late']);
      await table.write({ update: keys.status(ref), set: { revision: 1 }, when: [['revision', '=', 0]] });
      expect(await log.commit(ref, held)).toEqual({ kind: 'fenced' });
      expect(await all(log)).toEqual([]);
    });

    test('of concurrent commits with one revision, exactly one is written', async () => {
      for (let round = 0; round < 5; round += 1) {
        const held = await request([]);
        const before = held.head.sequence;
        const outcomes = await Promise.all(
          Array.from({ length: 8 }, (_, by) =>
            logOver(table).commit(ref, { ...held, events: [draft(`${by}`), draft(`${by}`)] }),
          ),
        );
        const winners = outcomes.flatMap(({ kind: became }, by) => (became === 'committed' ? [`${by}`] : []));
        expect(winners).toHaveLength(1);
        expect((await all(log)).slice(before).map(getName)).toEqual([winners[0], winners[0]]);
        expect(await revisionNow()).toBe(held.revision + 1);
      }
    });

    test('a poll for a deleted account is fenced', async () => {
      const held = await request(['late']);
      await table.write({ delete: keys.status(ref) });
      await table.write({ delete: keys.head(ref) });
      expect(await log.commit(ref, held)).toEqual({ kind: 'fenced' });
      expect(await log.append(ref, [draft('late')])).toEqual({ kind: 'rejected' });
      expect(await everything()).toEqual([]);
    });

    test('a commit without events increases the revision', async () => {
      expect(await commit([])).toMatchObject({ kind: 'committed', revision: 1, head: { sequence: 0 } });
      expect(await revisionNow()).toBe(1);
      expect(committed).toEqual([]);
    });
  });

  describe('state changes with events', () => {
    test('are in one transaction: fence, head, events, snapshots and wake mark', async () => {
      const transact = vi.fn(table.transact);
      const write = vi.fn(table.write);
      const outcome = await logOver({ ...table, transact, write }).commit(
        ref,
        await request(['a', 'b'], {
          writes: [{ put: { ...keys.snapshot(ref, 5), state: 'new' } }],
          headAttributes: { statusNames: ['New'] },
          statusAttributes: { state: 'tracking' },
        }),
      );
      expect(transact).toHaveBeenCalledTimes(1);
      expect(write).not.toHaveBeenCalled();
      expect(await table.get(keys.status(ref))).toMatchObject({ revision: 1, state: 'tracking' });
      expect(await table.get(keys.snapshot(ref, 5))).toMatchObject({ state: 'new' });
      expect(await table.get(keys.wake(ref))).toMatchObject({ sequence: 2 });
      expect(await headNow()).toMatchObject({ sequence: 2, attributes: { statusNames: ['New'] } });
      expect(outcome).toMatchObject({ head: await headNow() });
    });

    test('head attributes that a commit does not name stay', async () => {
      await commit(['a'], { headAttributes: { baselinedAt: 5, statusNames: ['New'] } });
      await commit(['b'], { headAttributes: { statusNames: ['New', 'Old'] } });
      await log.append(ref, [draft('c')]);
      expect((await headNow()).attributes).toMatchObject({ baselinedAt: 5, statusNames: ['New', 'Old'] });
    });

    test('a commit with an impossible write fails, and nothing is written', async () => {
      const before = await everything();
      const impossible: Write = { put: { ...keys.snapshot(ref, 5) }, when: [['pk', 'present']] };
      await expect(commit(['a'], { writes: [impossible] })).rejects.toThrow(/condition/);
      expect(await everything()).toEqual(before);
      expect(committed).toEqual([]);
    });

    test('an append with an impossible write is rejected completely', async () => {
      const before = await everything();
      const resume: Write = {
        update: keys.status(ref),
        set: { state: 'tracking' },
        when: [['state', '=', 'quarantined']],
      };
      expect(await log.append(ref, [draft('resumed')], [resume])).toEqual({ kind: 'rejected' });
      expect(await everything()).toEqual(before);
      await table.write({ update: keys.status(ref), set: { state: 'quarantined' } });
      expect(await log.append(ref, [draft('resumed')], [resume])).toMatchObject({ kind: 'appended' });
      expect(await log.append(ref, [draft('resumed')], [resume])).toEqual({ kind: 'rejected' });
      expect((await all(log)).map(getName)).toEqual(['resumed']);
      // An append is no poll: the fence of one in progress stays valid.
      expect(await revisionNow()).toBe(0);
    });

    test('a log is started once', async () => {
      const started = log.start(ref, 'e9') as { put: Item };
      expect(await table.write(started)).toMatchObject({ done: false });
      expect(await headNow()).toMatchObject({ epoch: 'e1' });
    });
  });

  describe('wake-up', () => {
    test('comes after the events are readable, with the last number and their count', async () => {
      const onCommitted = vi.fn(async () => (await all(log)).map(getName));
      const telling = createEventLog(table, {
        now: () => clock,
        newId: randomUUID,
        schemaBaseUrl: '',
        onCommitted,
      });
      await telling.commit(ref, await request(['a', 'b']));
      await telling.append(ref, [draft('c')]);
      const seen = await Promise.all(onCommitted.mock.results.map(({ value }) => value));
      expect(onCommitted.mock.calls).toEqual([
        [ref, 2, 2],
        [ref, 3, 1],
      ]);
      expect(seen[0]?.slice(0, 2)).toEqual(['a', 'b']);
      expect(seen[1]).toEqual(['a', 'b', 'c']);
    });

    test('is omitted if nothing was added, or the write was rejected or fenced', async () => {
      const held = await request(['late']);
      await commit([]);
      await log.commit(ref, held);
      await log.append(ref, [draft('x')], [{ check: keys.snapshot(ref, 1), when: [['pk', 'present']] }]);
      await log.append(ref, [], [{ put: { ...keys.snapshot(ref, 1) } }]);
      expect(committed).toEqual([]);
      expect(await table.get(keys.wake(ref))).toBeUndefined();
    });
  });

  describe('crashes of a writer', () => {
    test.each([0, 1, 2, 3, 4])(
      'a crash after %i of five chunks leaves whole chunks, and the next poll continues',
      async (survivors) => {
        const dying = failing(table, (call) => (call > survivors ? 'before' : 'none'));
        const poll = async (over: EventLog): Promise<void> => {
          let { revision, head } = await request([]);
          for (let chunk = 0; chunk < 5; chunk += 1) {
            const outcome = await over.commit(ref, {
              revision,
              head,
              events: [draft(`${chunk}a`), draft(`${chunk}b`)],
              writes: [{ put: { ...keys.snapshot(ref, chunk) } }],
            });
            if (outcome.kind === 'fenced') return;
            ({ revision, head } = outcome);
          }
        };
        await expect(poll(logOver(dying))).rejects.toThrow(TableError);
        const said = (await all(log)).map(getName);
        expect(said).toEqual(
          ['0a', '0b', '1a', '1b', '2a', '2b', '3a', '3b', '4a', '4b'].slice(0, survivors * 2),
        );
        expect(await table.query({ pk: snapshotPk(ref) })).toHaveLength(survivors);
        expect(await revisionNow()).toBe(survivors);
        expect((await table.get(keys.wake(ref)))?.sequence ?? 0).toBe(said.length);

        expect(await commit(['next'])).toMatchObject({
          kind: 'committed',
          head: { sequence: said.length + 1 },
        });
        expect((await all(log)).map(getName)).toEqual([...said, 'next']);
      },
    );

    test('a commit whose answer was lost is not written twice: its repetition is fenced', async () => {
      const deaf = logOver(failing(table, (call) => (call === 1 ? 'after' : 'none')));
      const held = await request(['once'], { writes: [{ put: { ...keys.snapshot(ref, 5) } }] });
      await expect(deaf.commit(ref, held)).rejects.toThrow(TableError);
      expect(await deaf.commit(ref, held)).toEqual({ kind: 'fenced' });
      expect((await all(log)).map(getName)).toEqual(['once']);
      expect(await table.get(keys.wake(ref))).toMatchObject({ sequence: 1 });
      expect(await commit(['next'])).toMatchObject({ head: { sequence: 2 } });
    });

    test('a commit that never arrived is written when it is sent again', async () => {
      const cut = logOver(failing(table, (call) => (call === 1 ? 'before' : 'none')));
      const held = await request(['once']);
      await expect(cut.commit(ref, held)).rejects.toThrow(TableError);
      expect(await cut.commit(ref, held)).toMatchObject({ kind: 'committed' });
      expect((await all(log)).map(getName)).toEqual(['once']);
    });
  });

  describe('reading', () => {
    beforeEach(async () => {
      await commit(['1', '2', '3', '4', '5', '6', '7']);
    });
    const read = async (after: number, limit = 100, from = log) => {
      const page = await from.read(ref, after, limit);
      return page?.kind === 'events' ? page.events.map(getName).join('') : page?.kind;
    };

    test('by page, from any event on, with the head', async () => {
      expect(await read(0, 3)).toBe('123');
      expect(await read(3, 3)).toBe('456');
      expect(await read(6, 3)).toBe('7');
      expect(await read(7, 3)).toBe('');
      expect(await log.read(ref, 2, 1)).toMatchObject({ kind: 'events', head: { epoch: 'e1', sequence: 7 } });
    });

    test('an unregistered account is unknown', async () => {
      expect(await log.read({ region: 'us', account: 'nobody' }, 0, 10)).toBeUndefined();
      expect(await log.head({ region: 'us', account: 'nobody' })).toBeUndefined();
    });

    test('beyond the head there is nothing to wait for', async () => {
      expect(await log.read(ref, 8, 10)).toMatchObject({
        kind: 'gone',
        earliest: 1,
        head: { sequence: 7 },
      });
    });

    test('a gap ends the page, and nothing behind it is returned until it is filled', async () => {
      const hidden = present(await table.get(keys.event(ref, 4)));
      await table.write({ delete: keys.event(ref, 4) });
      expect(await read(0)).toBe('123');
      expect(await read(3)).toBe('');
      expect(await read(4)).toBe('567');
      await table.write({ put: hidden });
      expect(await read(3)).toBe('4567');
    });

    test('the first events of a log are awaited, not lost, while they are not visible yet', async () => {
      const hidden = present(await table.get(keys.event(ref, 1)));
      await table.write({ delete: keys.event(ref, 1) });
      expect(await read(0)).toBe('');
      await table.write({ put: hidden });
      expect(await read(0)).toBe('1234567');
      for (let at = 1; at <= 7; at += 1) await table.write({ delete: keys.event(ref, at) });
      expect(await read(0)).toBe('');
    });

    test('a head that is ahead of the events ends the page at the last event', async () => {
      await table.write({ update: keys.head(ref), set: { sequence: 9 } });
      expect(await read(5)).toBe('67');
      expect(await read(7)).toBe('');
    });

    test('an event that is ahead of the head is not returned yet, so that no reader is ahead of the head', async () => {
      await table.write({ update: keys.head(ref), set: { sequence: 5 } });
      expect(await read(3)).toBe('45');
      expect(await read(5)).toBe('');
      expect(await read(3, 1)).toBe('4');
    });

    test('an event has the same bytes for every reader at any time', async () => {
      const bytes = async (over: EventLog) => (await all(over)).slice(0, 7).map(({ json }) => json);
      const first = await bytes(log);
      clock += 5 * DAY_MS;
      await commit(['8'], { headAttributes: { statusNames: ['New'] } });
      const another = createEventLog(table, {
        now: () => clock,
        newId: randomUUID,
        schemaBaseUrl: 'https://moved.example',
      });
      expect(await bytes(another)).toEqual(first);
      expect(JSON.parse(first[0] ?? '')).toMatchObject({
        specversion: '1.0',
        id: 'acme.e1.1',
        source: '/regions/us/accounts/acme',
        sequence: '00000000000000000001',
        time: new Date(START).toISOString(),
      });
    });

    test('the source of events is absolute with a public URL; earlier events keep theirs', async () => {
      await commit(['1']);
      const publicUrl = 'https://us.jobwire.example';
      const urls = { schemaBaseUrl: publicUrl, sourceBaseUrl: publicUrl };
      const configured = createEventLog(table, { now: () => clock, newId: randomUUID, ...urls });
      await configured.append(ref, [draft('2')]);
      const sources = async () => (await all(configured, ref)).map(({ json }) => JSON.parse(json).source);
      expect((await sources()).slice(-2)).toEqual([
        '/regions/us/accounts/acme',
        `${publicUrl}/regions/us/accounts/acme`,
      ]);
      expect(getSource(cellLog('us'), urls)).toBe(`${publicUrl}/regions/us`);
    });

    test('the log line of an event matches its envelope', async () => {
      await log.append(ref, [draft('of a job', 4711)]);
      const [event] = (await all(log)).slice(-1);
      const envelope = JSON.parse(event?.json ?? '');
      expect(event).toMatchObject({
        id: envelope.id,
        type: envelope.type,
        sequence: Number(envelope.sequence),
        time: Date.parse(envelope.time),
        jobNumber: 4711,
        account: 'acme',
        region: 'us',
      });
      expect(envelope.subject).toBe('jobs/4711');
      expect((await all(log))[0]).not.toHaveProperty('jobNumber');
    });
  });

  describe('retention', () => {
    const PER_DAY = 40;
    const DAYS = 12;
    const RETENTION_DAYS = 7;
    let brief: EventLog;
    beforeEach(async () => {
      brief = logOver(table, { retentionDays: RETENTION_DAYS });
      for (let day = 0; day < DAYS; day += 1) {
        const names = Array.from({ length: PER_DAY }, (_, at) => `${day}.${at}`);
        await brief.commit(ref, await request(names));
        clock += DAY_MS;
      }
    });

    /** Sets the clock just after the events of so many days have expired. */
    const expire = (days: number): void => {
      clock = START + (RETENTION_DAYS + days - 1) * DAY_MS + 1;
    };

    test('expires events exactly by their own expiry time, for any deletions', async () => {
      for (const days of [1, 2, 5, 11]) {
        expire(days);
        const first = days * PER_DAY + 1;
        const head = await headNow();
        expect(await brief.earliest(ref, head)).toBe(first);
        for (const after of [0, 1, first - 3, first - 2]) {
          expect(await brief.read(ref, after, 10), `after ${after}`).toMatchObject({
            kind: 'gone',
            earliest: first,
          });
        }
        expect(await brief.read(ref, first - 1, 3)).toMatchObject({
          kind: 'events',
          events: [{ sequence: first }, { sequence: first + 1 }, { sequence: first + 2 }],
        });
        // DynamoDB deletes expired items late and in no order.
        for (const sequence of [1, 2, first - 1, first - 20])
          await table.write({ delete: keys.event(ref, sequence) });
        expect(await brief.earliest(ref, head)).toBe(first);
        expect(await brief.read(ref, first - 2, 3)).toMatchObject({ kind: 'gone', earliest: first });
      }
    });

    test('is exact: an event exists until it expires', async () => {
      clock = START + RETENTION_DAYS * DAY_MS - 1;
      expect(await brief.read(ref, 0, 1)).toMatchObject({ kind: 'events', events: [{ sequence: 1 }] });
      clock += 1;
      expect(await brief.read(ref, 0, 1)).toMatchObject({ kind: 'gone', earliest: PER_DAY + 1 });
    });

    test('with all events expired, a reader at the head continues and any other gets an error', async () => {
      expire(DAYS);
      const head = await headNow();
      expect(await brief.earliest(ref, head)).toBe(head.sequence + 1);
      expect(await brief.read(ref, head.sequence, 10)).toMatchObject({ kind: 'events', events: [] });
      expect(await brief.read(ref, head.sequence - 1, 10)).toMatchObject({
        kind: 'gone',
        earliest: head.sequence + 1,
      });
      const left = await table.query({ pk: logPk(ref) });
      for (let at = 0; at < left.length; at += 100) {
        const deletes = left.slice(at, at + 100).map(({ pk, sk }) => ({ delete: { pk, sk } }));
        await table.transact(deletes, randomUUID());
      }
      expect(await brief.earliest(ref, head)).toBe(head.sequence + 1);
      await brief.append(ref, [draft('new')]);
      expect(await brief.read(ref, head.sequence, 10)).toMatchObject({
        events: [{ sequence: head.sequence + 1 }],
      });
    });

    test('finds the earliest of hundreds with a dozen reads', async () => {
      expire(6);
      const get = vi.fn(table.get);
      const counted = logOver({ ...table, get }, { retentionDays: RETENTION_DAYS });
      expect(await counted.earliest(ref, await headNow())).toBe(6 * PER_DAY + 1);
      expect(get.mock.calls.length).toBeLessThanOrEqual(Math.ceil(Math.log2(DAYS * PER_DAY)) + 1);
    });

    test('that is shortened opens no gap before events with the longer one', async () => {
      const shorter = logOver(table, { retentionDays: 1 });
      await shorter.append(ref, [draft('short')]);
      const head = await headNow();
      clock += 3 * DAY_MS;
      expect(await shorter.read(ref, head.sequence - 2, 10)).toMatchObject({
        kind: 'events',
        events: [{ sequence: head.sequence - 1 }, { sequence: head.sequence }],
      });
      clock += 3 * DAY_MS + 1;
      expect(await shorter.read(ref, head.sequence - 2, 10)).toMatchObject({
        kind: 'gone',
        earliest: head.sequence + 1,
      });
    });
  });

  describe('finding a time', () => {
    const MINUTE_MS = 60_000;
    /** A log whose events have these times, in minutes. */
    async function createLog(minutes: readonly number[]): Promise<EventLog> {
      const fresh = await makeTable();
      await register(fresh);
      const filled = logOver(fresh);
      const drafts = minutes.map((minute) => ({ ...draft('x'), time: START + minute * MINUTE_MS }));
      for (let at = 0; at < drafts.length; at += 90) await filled.append(ref, drafts.slice(at, at + 90));
      return filled;
    }
    const seek = (over: EventLog, minute: number) => over.seek(ref, START + minute * MINUTE_MS);

    test('returns the position exactly before the first event at or after it', async () => {
      const over = await createLog([0, 10, 10, 30, 40]);
      const found = await Promise.all([-5, 0, 1, 10, 11, 30, 35, 40, 41].map((at) => seek(over, at)));
      expect(found).toEqual([0, 0, 1, 1, 3, 3, 4, 4, 5]);
    });

    test('no event at or after it precedes the position, although times are not strictly ordered', async () => {
      const spans = fc.array(fc.tuple(fc.integer({ min: 0, max: 15 }), fc.integer({ min: 0, max: 10 })), {
        maxLength: kind === 'in memory' ? 400 : 120,
      });
      await fc.assert(
        fc.asyncProperty(spans, fc.double({ min: 0, max: 1, noNaN: true }), async (steps, part) => {
          let base = 0;
          const times = steps.map(([step, late]) => {
            base += step;
            return base - late;
          });
          const over = await createLog(times);
          const instant = Math.round(base * part);
          const first = times.findIndex((time) => time >= instant);
          expect(await seek(over, instant)).toBe(first < 0 ? times.length : first);
        }),
        kind === 'in memory' ? runs(30, 200) : runs(2, 5),
      );
    });

    test('searches the remaining log only, with few reads', async () => {
      const over = await createLog(Array.from({ length: 500 }, (_, at) => at));
      expect(await seek(over, 321.5)).toBe(322);
      const fresh = await makeTable();
      await register(fresh);
      const get = vi.fn(fresh.get);
      const query = vi.fn(fresh.query);
      const brief = logOver({ ...fresh, get, query }, { retentionDays: 1 });
      await brief.append(ref, [draft('1'), draft('2')]);
      clock += DAY_MS + 1;
      expect(await brief.seek(ref, START - 1)).toBe(2);
      for (let at = 0; at < 5; at += 1) {
        await brief.append(
          ref,
          Array.from({ length: 90 }, (_, n) => ({ ...draft('x'), time: START + n * 60_000 * 5 })),
        );
      }
      expect(await brief.seek(ref, START - 1)).toBe(2);
      get.mockClear();
      query.mockClear();
      await brief.seek(ref, START + 200 * MINUTE_MS);
      expect(get.mock.calls.length + query.mock.calls.length).toBeLessThan(25);
    });

    test('an account without a log, and one without events, are read from their beginning', async () => {
      const over = await createLog([]);
      expect(await seek(over, 0)).toBe(0);
      expect(await over.seek({ region: 'us', account: 'nobody' }, START)).toBe(0);
    });
  });

  test('for any concurrent polls, operators and failing calls: contiguous, each event once, no loser emitted', async () => {
    const actor = fc.record({
      polls: fc.boolean(),
      chunks: fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 1, maxLength: 4 }),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(actor, { minLength: 2, maxLength: 5 }),
        fc.infiniteStream(
          fc.oneof(
            { weight: 8, arbitrary: fc.constant<Fault>('none') },
            { arbitrary: fc.constantFrom<Fault>('before', 'after'), weight: 1 },
          ),
        ),
        async (scheduler, actors, faults) => {
          const fresh = await makeTable();
          await register(fresh);
          const mayFail = failing(fresh, () => present(faults.next().value));
          // Every call of every actor waits for its turn, which is drawn.
          const turns: Table = {
            ...fresh,
            get: inTurn(scheduler, fresh.get),
            transact: inTurn(scheduler, mayFail.transact),
          };
          const shared = logOver(turns);
          const expected = {
            said: [] as string[][],
            silent: [] as string[],
            unknown: [] as string[][],
            revisions: [] as number[],
          };

          const act = async ({ polls, chunks }: (typeof actors)[number], who: number): Promise<void> => {
            let revision = Number((await turns.get(keys.status(ref)))?.revision);
            let head = present(await shared.head(ref));
            for (const [chunk, size] of chunks.entries()) {
              const names = Array.from({ length: size }, (_, at) => `${who}.${chunk}.${at}`);
              const events = names.map((name) => draft(name));
              try {
                if (!polls) {
                  const appended = await shared.append(ref, events, [
                    { put: { ...keys.snapshot(ref, who) } },
                  ]);
                  if (appended.kind === 'appended') expected.said.push(names);
                  continue;
                }
                const outcome = await shared.commit(ref, { revision, head, events, writes: [] });
                if (outcome.kind === 'fenced') {
                  expected.silent.push(...names);
                  return;
                }
                ({ revision, head } = outcome);
                expected.said.push(names);
                expected.revisions.push(revision);
              } catch (error) {
                expect(error).toBeInstanceOf(TableError);
                expected.unknown.push(names);
                return;
              }
            }
          };
          await scheduler.waitFor(Promise.all(actors.map(act)));

          const plain = logOver(fresh);
          const head = present(await plain.head(ref));
          const events = await all(plain);
          expect(events.map(({ sequence }) => sequence)).toEqual(
            Array.from({ length: head.sequence }, (_, at) => at + 1),
          );
          expect(new Set(events.map(({ id }) => id)).size).toBe(events.length);
          const line = events.map(getName);
          expect(new Set(line).size).toBe(line.length);
          // Each chunk completely and in order: confirmed ones exist, lost ones may, fenced ones do not.
          for (const names of expected.said) expect(findRun(line, names)).toEqual(names);
          for (const names of expected.unknown) expect([[], names]).toContainEqual(findRun(line, names));
          for (const name of expected.silent) expect(line).not.toContain(name);
          expect((await fresh.get(keys.wake(ref)))?.sequence ?? 0).toBe(events.length);
          expect(new Set(expected.revisions).size).toBe(expected.revisions.length);
        },
      ),
      kind === 'in memory' ? runs(30, 200) : runs(2, 10),
    );
  });

  test('a shared reader returns the current events to each caller, and combines concurrent reads', async () => {
    let reads = 0;
    const counting: EventLog = {
      ...log,
      read(...asked) {
        reads += 1;
        return log.read(...asked);
      },
    };
    const shared = shareReads(counting);
    await log.append(ref, [draft('a')]);
    const together = await Promise.all(Array.from({ length: 20 }, () => shared.read(ref, 0, 10)));
    expect(reads).toBe(1);
    for (const page of together) expect(page).toMatchObject({ kind: 'events', events: [{ sequence: 1 }] });
    const early = shared.read(ref, 0, 10);
    await early;
    await log.append(ref, [draft('b')]);
    expect(await shared.read(ref, 0, 10)).toMatchObject({ events: [{ sequence: 1 }, { sequence: 2 }] });
    await Promise.all([shared.read(ref, 1, 10), shared.read(ref, 0, 1)]);
    expect(reads, 'other pages are other reads').toBe(5);
  });
});

/** Fault of a transaction: it never arrives, or its answer is lost. */
type Fault = 'none' | 'before' | 'after';

/** The table, with faults in its transactions by the number of the call, from 1. */
function failing(table: Table, getFault: (call: number) => Fault): Table {
  let calls = 0;
  return {
    ...table,
    async transact(writes, token) {
      calls += 1;
      const fault = getFault(calls);
      if (fault === 'before') throw new TableError('transact', 'it was cut off (injected)');
      const outcome = await table.transact(writes, token);
      if (fault === 'after') throw new TableError('transact', 'the answer was lost (injected)');
      return outcome;
    },
  };
}

/** The call, at the scheduler's time. A failure is kept for its awaiter. */
function inTurn<A extends unknown[], R>(
  scheduler: fc.Scheduler,
  call: (...args: A) => Promise<R>,
): (...args: A) => Promise<R> {
  const scheduled = scheduler.scheduleFunction((...args: A) =>
    call(...args).then(
      (value) => () => value,
      (error: unknown) => () => {
        throw error;
      },
    ),
  );
  return async (...args) => (await scheduled(...args))();
}

/** A new account: no events, never polled. */
async function register(table: Table, account = ref): Promise<void> {
  const log = createEventLog(table, { now: () => START, newId: randomUUID, schemaBaseUrl: '' });
  await table.transact(
    [log.start(account, 'e1'), { put: { ...keys.status(account), revision: 0, state: 'baselining' } }],
    randomUUID(),
  );
}

function draft(status: string, jobNumber?: number): EventDraft {
  return {
    type: 'status.discovered',
    time: START,
    ...(jobNumber === undefined ? {} : { jobNumber }),
    data: { observed: { at: new Date(START).toISOString(), since: null, view: 'list' }, status },
  };
}

/** The name given to a draft. */
function getName(event: Pick<LoggedEvent, 'json'>): string {
  return (JSON.parse(event.json) as { data: { status: string } }).data.status;
}

function toEvent(item: Item): Pick<LoggedEvent, 'json'> {
  return { json: String(item.event) };
}

/** The whole log, page by page. */
async function all(log: EventLog, account = ref): Promise<LoggedEvent[]> {
  const events: LoggedEvent[] = [];
  for (;;) {
    const page = await log.read(account, events.length, 20);
    if (page?.kind !== 'events') throw new Error(`The log is ${page?.kind ?? 'unknown'}.`);
    if (page.events.length === 0) return events;
    events.push(...page.events);
  }
}

/** The rest of a line from the first of the names on; empty if it is missing. */
function findRun(line: readonly string[], names: readonly string[]): string[] {
  const start = line.indexOf(names[0] ?? '');
  return start < 0 ? [] : line.slice(start, start + names.length);
}

function present<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('It is missing.');
  return value;
}
