/**
 * The Lambda handlers through their factories, on the in-memory table and with the same use cases as on AWS. One file: its
 * tests share the cell of handlers and the recorder of telemetry.
 */
import { randomUUID } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import type { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import type { SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import type { SNSClient } from '@aws-sdk/client-sns';
import type { SQSClient } from '@aws-sdk/client-sqs';
import type { APIGatewayProxyEvent, SQSEvent } from 'aws-lambda';
import { expect, test, vi } from 'vitest';
import {
  AlertsEnv,
  ApiEnv,
  DrainSinkEnv,
  EnvError,
  MailFeedbackEnv,
  NotifyEnv,
  OperateEnv,
  PollAccountEnv,
  readEnv,
  TickEnv,
  WakeSinksEnv,
} from '../../functions/env.ts';
import { createDrainSinkHandler, createSinkOpener } from '../../functions/handlers/drain-sink.ts';
import { CLAIM_SECONDS, createSend, QueueError } from '../../functions/handlers/messages.ts';
import { createNotifyHandler } from '../../functions/handlers/notify.ts';
import { createPollAccountHandler } from '../../functions/handlers/poll-account.ts';
import { createRestProxyHandler } from '../../functions/handlers/rest-proxy.ts';
import {
  createTickHandler,
  EVENT_BUS_SINK,
  STANDARD_TOPIC_SINK,
  TOPIC_SINK,
} from '../../functions/handlers/tick.ts';
import { createWakeSinksHandler } from '../../functions/handlers/wake-sinks.ts';
import type { Telemetry } from '../../functions/telemetry.ts';
import { findAccount, registerAccount, schedule } from '../../shared/accounts/accounts.ts';
import { createSecretReader } from '../../shared/accounts/owner-secrets.ts';
import { createApi } from '../../shared/api/app.ts';
import {
  type DeliveryOutcome,
  listSinks,
  registerSink,
  type SinkRecord,
} from '../../shared/delivery/sink.ts';
import { createEventLog, type EventLog, type LoggedEvent } from '../../shared/log/log.ts';
import type { SendReport } from '../../shared/notifications/send-report.ts';
import { SecretError } from '../../shared/secrets.ts';
import { cursorPk, feedLog, getDrainName, keys, notifyDue } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import type { Table, Write } from '../../shared/storage/table.ts';
import { duePolls } from '../../shared/tracking/claims.ts';
import type { PollReport } from '../../shared/tracking/poll-report.ts';
import { apiParts } from '../support/api.ts';
import { createHttpRig, START } from '../support/tracker.ts';

const TOPIC = 'arn:aws:sns:us-east-1:111122223333:jobwire-test-us-events.fifo';
const STANDARD_TOPIC = 'arn:aws:sns:us-east-1:111122223333:jobwire-test-us-events-standard';
const context = { getRemainingTimeInMillis: () => 60_000 };

// Environment

const cell = { JOBWIRE_STAGE: 'test', JOBWIRE_CELL: 'us', JOBWIRE_REGION: 'us', JOBWIRE_TABLE: 'state' };
const log = { JOBWIRE_PUBLIC_URL: 'https://us.jobwire.example', JOBWIRE_RETENTION_DAYS: '90' };
const pollEnv = {
  ...cell,
  ...log,
  JOBWIRE_UPSTREAM_BASE_URL: 'https://us.ordering.example/api',
  JOBWIRE_UPSTREAM_AUTH_URL: 'https://auth-us.ordering.example',
  JOBWIRE_UPSTREAM_REALM: 'us',
  JOBWIRE_KEY_ARN: 'arn:aws:kms:us-east-1:1:key/k',
};

test.each([
  ['tick', TickEnv],
  ['pollAccount', PollAccountEnv],
  ['wakeSinks', WakeSinksEnv],
  ['drainSink', DrainSinkEnv],
  ['alerts', AlertsEnv],
  ['notify', NotifyEnv],
  ['mailFeedback', MailFeedbackEnv],
  ['api', ApiEnv],
  ['operate', OperateEnv],
])('the environment of %s: one error message names every missing variable', (_, schema) => {
  expect(() => readEnv(schema, {})).toThrow(/^The environment variable JOBWIRE_STAGE is missing\.$/);
});

/** Drain names of the topic for the accounts `a` and `b`. `i` has the same one as `a`. */
const TOPIC_OF_A = getDrainName(TOPIC_SINK, 'a');
const TOPIC_OF_B = getDrainName(TOPIC_SINK, 'b');
const NEIGHBOUR_OF_A = 'i';

test('an environment is parsed with its numbers, and an invalid value is named but not quoted', () => {
  expect(readEnv(PollAccountEnv, pollEnv).JOBWIRE_RETENTION_DAYS).toBe(90);
  expect(() => readEnv(PollAccountEnv, { ...pollEnv, JOBWIRE_RETENTION_DAYS: 's3cret' })).toThrow(
    /^The environment variable JOBWIRE_RETENTION_DAYS must be a number of days\.$/,
  );
  expect(() => readEnv(PollAccountEnv, { ...pollEnv, JOBWIRE_TABLE: '' })).toThrow(EnvError);
  expect(() => readEnv(PollAccountEnv, { ...pollEnv, JOBWIRE_UPSTREAM_BASE_URL: 's3cret' })).toThrow(
    /^The environment variable JOBWIRE_UPSTREAM_BASE_URL must be a URL\.$/,
  );
});

// Tick

test('the tick claims due accounts and queues them; a concurrent second one finds none', async () => {
  const cell = await createCell();
  await cell.addAccounts('a', 'b', 'c');
  await cell.tick();
  expect(cell.polls.map(({ account }) => account).sort()).toEqual(['a', 'b', 'c']);
  await cell.tick();
  expect(cell.polls).toHaveLength(3);
  expect(cell.reports.tick.map(({ claimed }) => claimed)).toEqual([3, 0]);
});

test('more accounts than one claim takes are all queued in one tick', async () => {
  const cell = await createCell();
  const accounts = Array.from({ length: 250 }, (_, at) => `account-${at}`);
  await cell.addAccounts(...accounts);
  await cell.tick();
  expect(new Set(cell.polls.map(({ account }) => account))).toEqual(new Set(accounts));
  expect(cell.polls).toHaveLength(250);
});

test('a tick claims accounts due before the next one, for any delay, and none twice', async () => {
  const cell = await createCell();
  await cell.addAccounts('now', 'soon', 'later');
  await cell.dueIn('soon', 119);
  await cell.dueIn('later', 240);
  await cell.tick();
  expect(cell.polls).toEqual([
    { account: 'now', dueAt: START },
    { account: 'soon', dueAt: START + 119_000 },
  ]);
  cell.pass(119);
  await cell.tick();
  expect(cell.polls.slice(2)).toEqual([{ account: 'later', dueAt: START + 240_000 }]);
});

test('a poll that was claimed and then lost returns after its claim has expired, not before', async () => {
  const cell = await createCell();
  await cell.addAccounts('a', 'b');
  await cell.dueIn('b', 100);
  cell.pollQueue.mockRejectedValueOnce(new Error('The queue took no messages.'));
  await expect(cell.tick()).rejects.toThrow('The queue took no messages.');
  await cell.tick();
  expect([...cell.polls, ...cell.lonePolls]).toEqual([]);
  // Claimed in advance like any other.
  cell.pass(CLAIM_SECONDS - 1);
  await cell.tick();
  expect([...cell.polls, ...cell.lonePolls]).toEqual([
    { account: 'a', dueAt: START + CLAIM_SECONDS * 1000 },
    { account: 'b', dueAt: START + (100 + CLAIM_SECONDS) * 1000 },
  ]);
});

test('an account whose last claim was not reported is polled alone, until its poll reports', async () => {
  const rig = await createHttpRig({ pollIntervalSeconds: 60 });
  const cell = await createCell({ table: rig.table });
  const { handler } = createPolling(rig);
  const turn = async (): Promise<string[]> => {
    cell.polls.length = 0;
    cell.lonePolls.length = 0;
    await cell.tick();
    return [...cell.polls.map(() => 'with others'), ...cell.lonePolls.map(() => 'alone')];
  };
  expect(await turn()).toEqual(['with others']);
  // No poll: its process died.
  for (let time = 0; time < 2; time += 1) {
    cell.pass(CLAIM_SECONDS);
    expect(await turn()).toEqual(['alone']);
  }
  await handler(sqsEvent(...cell.lonePolls), context);
  cell.pass(60);
  expect(await turn()).toEqual(['with others']);
  expect(cell.reports.tick.map(({ alone }) => alone)).toEqual([0, 1, 1, 0]);
});

test('an account paused while its poll is queued is not polled; resumed, it is polled like any other', async () => {
  const rig = await createHttpRig();
  const cell = await createCell({ table: rig.table });
  const { handler, reports } = createPolling(rig);
  const register = (paused: boolean) =>
    registerAccount(rig.table, rig.log, { ...getAccount('acme'), paused }, { now: START, epoch: 'e1' });
  await cell.tick();
  await register(true);
  await handler(sqsEvent(...cell.polls), context);
  expect(reports.poll).toMatchObject([{ outcome: 'skipped', problem: 'The account is paused.' }]);
  cell.pass(CLAIM_SECONDS);
  await cell.tick();
  expect(cell.polls).toHaveLength(1);
  await register(false);
  await cell.tick();
  expect([cell.polls.length, cell.lonePolls.length]).toEqual([2, 0]);
});

test('concurrent pause and resume leave the account either polled or paused, never neither', async () => {
  for (let at = 0; at < 6; at += 1) {
    const memory = createMemoryTable();
    const log = createEventLog(memory, { now: () => START, newId: randomUUID, schemaBaseUrl: '' });
    const register = (table: Table, paused: boolean) =>
      registerAccount(table, log, { ...getAccount('acme'), paused }, { now: START, epoch: 'e1' });
    await register(memory, false);
    // Resumes the account before the n-th table call of the pause, if it has as many.
    let calls = 0;
    const meanwhile = async () => void (calls++ === at && (await register(memory, false)));
    const table: Table = {
      ...memory,
      write: async (write) => meanwhile().then(() => memory.write(write)),
      transact: async (writes, token) => meanwhile().then(() => memory.transact(writes, token)),
    };
    await register(table, true);
    const account = await findAccount(memory, ['us'], 'acme');
    const due = await duePolls(memory, 'us', { now: START, limit: 10 });
    expect([at, account?.paused, due.length]).toEqual([at, account?.paused, account?.paused ? 0 : 1]);
    expect(calls).toBeGreaterThan(0);
  }
});

test('accounts to be polled alone are, also if the other queue rejects everything', async () => {
  const cell = await createCell();
  await cell.addAccounts('a', 'b');
  await cell.table.write({ update: keys.status({ region: 'us', account: 'b' }), set: { openJobs: 50_000 } });
  cell.pollQueue.mockRejectedValueOnce(new Error('The queue took no messages.'));
  await expect(cell.tick()).rejects.toThrow('The queue took no messages.');
  expect(cell.lonePolls).toMatchObject([{ account: 'b' }]);
});

test('if very many polls did not report, no single account is the cause: most are polled in batches again', async () => {
  const cell = await createCell();
  await cell.addAccounts(...Array.from({ length: 200 }, (_, at) => `account-${at}`));
  await cell.tick();
  cell.polls.length = 0;
  cell.pass(CLAIM_SECONDS);
  await cell.tick();
  expect([cell.polls.length, cell.lonePolls.length]).toEqual([150, 50]);
});

test('accounts with very many open jobs are polled alone, because ten of them exceed a process', async () => {
  const cell = await createCell();
  await cell.addAccounts('small', 'large', 'unknown');
  const opened = async (account: string, openJobs: number): Promise<void> => {
    await cell.table.write({ update: keys.status({ region: 'us', account }), set: { openJobs } });
  };
  await opened('small', 14_999);
  await opened('large', 15_000);
  await cell.tick();
  expect(cell.polls.map(({ account }) => account).sort()).toEqual(['small', 'unknown']);
  expect(cell.lonePolls.map(({ account }) => account)).toEqual(['large']);
  expect(cell.reports.tick).toMatchObject([{ claimed: 3, alone: 1 }]);
});

test('two concurrent ticks claim each account once', async () => {
  const cell = await createCell();
  const accounts = Array.from({ length: 60 }, (_, at) => `account-${at}`);
  await cell.addAccounts(...accounts);
  await Promise.all([cell.tick(), cell.tick()]);
  expect(cell.polls.map(({ account }) => account).sort()).toEqual(accounts.sort());
  expect(cell.lonePolls).toEqual([]);
});

test('a tick whose queue fails claims no more than was in progress', async () => {
  const cell = await createCell();
  await cell.addAccounts(...Array.from({ length: 200 }, (_, at) => `account-${at}`));
  cell.pollQueue.mockRejectedValue(new Error('The queue took no messages.'));
  await expect(cell.tick()).rejects.toThrow('The queue took no messages.');
  cell.pollQueue.mockImplementation(async (messages) => void cell.polls.push(...messages));
  await cell.tick();
  expect(cell.polls).toHaveLength(150);
});

test('failing sinks do not prevent polling', async () => {
  const cell = await createCell();
  await cell.addAccounts('a');
  cell.drainQueue.mockRejectedValue(new Error('The queue took no messages.'));
  await cell.grow('a');
  await expect(cell.tick()).rejects.toThrow('The queue took no messages.');
  expect(cell.polls).toMatchObject([{ account: 'a' }]);
  expect(cell.reports.tick).toMatchObject([{ claimed: 1, wakes: 0, drains: 0 }]);
});

test('the tick processes wake marks that the stream left', async () => {
  const cell = await createCell();
  await cell.addAccounts('a');
  await cell.tick();
  await cell.grow('a');
  await cell.tick();
  expect(cell.drains).toEqual([{ sink: TOPIC_OF_A }]);
  expect(await cell.table.get(keys.wake({ region: 'us', account: 'a' }))).toBeUndefined();
});

test('for any failure of the cell feed, the tick wakes the sinks of all accounts that have grown, and waiting ones', async () => {
  const memory = createMemoryTable();
  let broken = false;
  const isFeeds = (write: Write) => 'update' in write && write.update.pk === keys.head(feedLog('us')).pk;
  const cell = await createCell({
    table: {
      ...memory,
      transact: async (writes, token) => {
        if (broken && writes.some(isFeeds)) throw new Error('The table could not write.');
        return memory.transact(writes, token);
      },
    },
  });
  await cell.addAccounts('a', 'b');
  await cell.addSink({ id: 'only-b', accounts: ['b'] });
  await cell.tick();
  await cell.grow('a');
  await cell.grow('b');
  broken = true;
  await expect(cell.tick()).rejects.toThrow('could not be forwarded');
  expect(cell.drains.map(({ sink }) => sink).sort()).toEqual(['only-b', TOPIC_OF_A, TOPIC_OF_B]);
  for (const account of ['a', 'b']) {
    expect(await cell.table.get(keys.cursor('us', TOPIC_SINK, account))).toMatchObject({ mark: 1 });
    expect(await cell.table.get(keys.wake({ region: 'us', account }))).toBeDefined();
  }
  expect(cell.reports.tick.at(-1)).toMatchObject({ whole: false, drains: 3 });
  broken = false;
  await cell.tick();
  expect(await cell.table.get(keys.wake({ region: 'us', account: 'a' }))).toBeUndefined();
});

test('a drain whose message was lost is queued again, a waiting sink only when its time has come', async () => {
  const cell = await createCell();
  await cell.addAccounts('a');
  await cell.tick();
  await cell.grow('a');
  await cell.wake('a');
  cell.drains.length = 0;
  await cell.table.write({
    update: keys.sink('us', TOPIC_SINK),
    set: { failures: 1, waitUntil: cell.now() + 300_000 },
  });
  await cell.tick();
  expect(cell.drains).toEqual([]);
  cell.pass(301);
  await cell.tick();
  expect(cell.drains).toEqual([{ sink: TOPIC_OF_A }]);
});

test("the tick creates the built-in sink of a new cell, and keeps operators' changes", async () => {
  const cell = await createCell();
  await cell.tick();
  expect(await listSinks(cell.table, 'us')).toMatchObject([
    { id: TOPIC_SINK, kind: 'sns', target: TOPIC, accounts: [], types: [], paused: false },
  ]);
  await cell.table.write({
    update: keys.sink('us', TOPIC_SINK),
    set: { paused: true, target: 'arn:of:a:topic:that:is:gone' },
  });
  await cell.tick();
  expect(await listSinks(cell.table, 'us')).toMatchObject([{ id: TOPIC_SINK, target: TOPIC, paused: true }]);
});

test('an added standard topic receives only later events, of old and new accounts', async () => {
  const cell = await createCell();
  await cell.addAccounts('a');
  await cell.grow('a');
  await cell.tick(STANDARD_TOPIC);
  expect((await listSinks(cell.table, 'us')).find(({ id }) => id === STANDARD_TOPIC_SINK)).toMatchObject({
    kind: 'sns',
    target: STANDARD_TOPIC,
    accounts: [],
    types: [],
    paused: false,
  });
  await cell.addAccounts('b');
  await cell.grow('a');
  await cell.grow('b');
  await cell.wake('a', 'b');
  await cell.drain(sqsEvent({ sink: STANDARD_TOPIC_SINK }));
  expect(cell.delivered.map(({ account, sequence }) => [account, sequence]).sort()).toEqual([
    ['a', 2],
    ['b', 1],
  ]);
  // The FIFO topic gets every log from its beginning.
  cell.delivered.length = 0;
  await cell.drain(sqsEvent({ sink: TOPIC_SINK }));
  expect(cell.delivered).toHaveLength(3);
});

test('an added event bus receives only later events, in parts like a topic; removed, its sink is paused', async () => {
  const cell = await createCell();
  const bus = 'arn:aws:events:us-east-1:111122223333:event-bus/events';
  const sink = async () => (await listSinks(cell.table, 'us')).find(({ id }) => id === EVENT_BUS_SINK);
  await cell.addAccounts('a');
  await cell.grow('a');
  await cell.tick();
  expect(await sink()).toBeUndefined();
  await cell.tick(undefined, bus);
  expect(await sink()).toMatchObject({ kind: 'eventbridge', target: bus, accounts: [], paused: false });
  await cell.grow('a');
  cell.drains.length = 0;
  await cell.wake('a');
  await cell.tick(undefined, bus);
  expect(cell.drains).toContainEqual({ sink: getDrainName(EVENT_BUS_SINK, 'a') });
  expect(getDrainName(EVENT_BUS_SINK, 'a')).toMatch(/^event-bus:\d$/);
  await cell.drain(sqsEvent({ sink: EVENT_BUS_SINK }));
  expect(cell.delivered.map(({ sequence }) => sequence)).toEqual([2]);
  await cell.tick();
  expect(await sink()).toMatchObject({ paused: true });
});

test('a standard topic that is removed and added again resumes at its cursors; one an operator paused stays paused', async () => {
  const cell = await createCell();
  const sink = async () => (await listSinks(cell.table, 'us')).find(({ id }) => id === STANDARD_TOPIC_SINK);
  await cell.addAccounts('a');
  await cell.tick(STANDARD_TOPIC);
  await cell.grow('a');
  await cell.wake('a');
  await cell.drain(sqsEvent({ sink: STANDARD_TOPIC_SINK }));
  await cell.tick();
  expect(await sink()).toMatchObject({ paused: true });
  await cell.grow('a');
  cell.pass(1);
  expect(cell.delivered.map(({ sequence }) => sequence)).toEqual([1]);
  cell.drains.length = 0;
  await cell.wake('a');
  await cell.tick();
  expect(cell.drains).not.toContainEqual({ sink: getDrainName(STANDARD_TOPIC_SINK, 'a') });
  await cell.tick(STANDARD_TOPIC);
  expect(cell.drains).toContainEqual({ sink: getDrainName(STANDARD_TOPIC_SINK, 'a') });
  await cell.drain(sqsEvent({ sink: STANDARD_TOPIC_SINK }));
  expect(cell.delivered.map(({ sequence }) => sequence)).toEqual([1, 2]);

  await cell.table.write({ update: keys.sink('us', STANDARD_TOPIC_SINK), set: { paused: true } });
  for (const topic of [undefined, STANDARD_TOPIC, `${STANDARD_TOPIC}-2`]) await cell.tick(topic);
  expect(await sink()).toMatchObject({ paused: true, target: `${STANDARD_TOPIC}-2` });
});

test('a tick that ends while it creates the positions of a topic for very many accounts is continued by the next one', async () => {
  const memory = createMemoryTable();
  const created: string[] = [];
  let most = 70;
  const table: Table = {
    ...memory,
    write(write) {
      if ('put' in write && write.put.pk === cursorPk('us', STANDARD_TOPIC_SINK)) {
        if (created.length === most) throw new Error('The process ended.');
        created.push(write.put.sk);
      }
      return memory.write(write);
    },
  };
  const cell = await createCell({ table });
  await cell.addAccounts(...Array.from({ length: 120 }, (_, at) => `a${at}`));
  await cell.grow('a0');
  await expect(cell.tick(STANDARD_TOPIC)).rejects.toThrow('The process ended.');
  most = Number.POSITIVE_INFINITY;
  await cell.tick(STANDARD_TOPIC);
  expect(created).toHaveLength(121);
  expect(new Set(created).size).toBe(121);
  const position = await cell.table.get(keys.cursor('us', STANDARD_TOPIC_SINK, 'a0'));
  expect(position).toMatchObject({ position: 1 });
});

test('ticks with unchanged topics write nothing about them', async () => {
  const cell = await createCell();
  await cell.addAccounts('a');
  await cell.tick(STANDARD_TOPIC);
  const sinks = await listSinks(cell.table, 'us');
  cell.failWrites((key) => key.pk.startsWith('SINKS#'));
  await cell.tick(STANDARD_TOPIC);
  expect(await listSinks(cell.table, 'us')).toEqual(sinks);
  cell.failWrites(() => false);
  await cell.tick();
  cell.failWrites((key) => key.pk.startsWith('SINKS#'));
  await cell.tick();
});

// Notifications

test('the tick queues one run for due messages, reports their age, and queues nothing without any', async () => {
  const cell = await createCell();
  await cell.tellCustomers();
  expect(cell.asked).toEqual([]);
  expect(cell.reports.tick.at(-1)).not.toHaveProperty('unsentSeconds');
  const ref = { region: 'us', account: 'acme' };
  for (const [what, dueAt] of [
    ['notices', START - 90_000],
    ['messages', START - 30_000],
    ['messages', START + 1],
  ] as const) {
    const key = keys.message(ref, `${what}${dueAt}`);
    await cell.table.write({ put: { ...key, ...notifyDue(what, ref, key.sk, dueAt) } });
  }
  await cell.tellCustomers();
  expect(cell.asked).toEqual([{ dueSince: START - 90_000 }]);
  expect(cell.reports.tick.at(-1)).toMatchObject({ whole: true, unsentSeconds: 90 });
});

test('a cell without notifications does not read due messages', async () => {
  const memory = createMemoryTable();
  const asked: string[] = [];
  const query: Table['query'] = async (range) => {
    asked.push(range.pk);
    return memory.query(range);
  };
  const cell = await createCell({ table: { ...memory, query } });
  await cell.tick();
  expect(asked.length).toBeGreaterThan(4);
  expect(asked.filter((pk) => /^(NOTICES|MESSAGES)/.test(pk))).toEqual([]);
});

test('failing notifications do not prevent polling, and the tick is incomplete', async () => {
  const cell = await createCell();
  await cell.addAccounts('a');
  const ref = { region: 'us', account: 'a' };
  await cell.table.write({ put: { ...keys.message(ref, 'm'), ...notifyDue('messages', ref, 'm', START) } });
  const failing = () => Promise.reject(new Error('The queue took no messages.'));
  await expect(cell.tellCustomers(failing)).rejects.toThrow('The queue took no messages.');
  expect(cell.polls).toMatchObject([{ account: 'a' }]);
  expect(cell.reports.tick).toMatchObject([{ whole: false, claimed: 1 }]);
});

test('a tick message is one run of the sender, which starts nothing in its last seconds', async () => {
  const { telemetry, reports } = recordTelemetry();
  const deadlines: number[] = [];
  const handler = createNotifyHandler({
    now: () => START,
    telemetry,
    async send(deadline) {
      deadlines.push(deadline);
      return NOTHING_SENT;
    },
  });
  expect(await handler(sqsEvent({ dueSince: START }), context)).toEqual({ batchItemFailures: [] });
  expect(deadlines).toEqual([START + 15_000]);
  expect(reports.notify).toEqual([NOTHING_SENT]);
  const garbage = await handler(sqsEvent({ due: 'now' }), context);
  expect(garbage).toEqual({ batchItemFailures: [{ itemIdentifier: 'message-0' }] });
});

const NOTHING_SENT: SendReport = {
  ...{ notices: 0, messages: 0, sent: 0, repeats: 0, later: 0, failed: 0, suppressed: 0, dryRun: 0 },
  ...{ unknown: 0, held: [], more: false },
};

// Waking

test('a new wake mark marks the cursors due, queues each sink once, and is deleted', async () => {
  const cell = await createCell();
  await cell.addAccounts('a', 'b');
  await cell.tick();
  await cell.addSink({ id: 'erp', accounts: ['a'] });
  await cell.grow('a');
  await cell.grow('b');
  expect(await cell.wake('a', 'b', 'a')).toEqual({ batchItemFailures: [] });
  expect(cell.drains.map(({ sink }) => sink).sort()).toEqual(['erp', TOPIC_OF_A, TOPIC_OF_B]);
  for (const account of ['a', 'b']) {
    expect(await cell.table.get(keys.wake({ region: 'us', account }))).toBeUndefined();
    expect(await cell.table.get(keys.cursor('us', TOPIC_SINK, account))).toMatchObject({ mark: 1 });
  }
  expect(await cell.table.get(keys.cursor('us', 'erp', 'b'))).toBeUndefined();
});

test('stream records may be duplicate, late and in any order: cursors only move up', async () => {
  const cell = await createCell();
  await cell.addAccounts('a');
  await cell.tick();
  await cell.grow('a');
  await cell.grow('a');
  await cell.wakeBy(['a', 2], ['a', 1]);
  await cell.wakeBy(['a', 1]);
  await cell.wakeBy(['a', 1]);
  expect(await cell.table.get(keys.cursor('us', TOPIC_SINK, 'a'))).toMatchObject({ mark: 2 });
});

test('an account that cannot be woken is reported by its sequence numbers; the others are woken', async () => {
  const cell = await createCell();
  await cell.addAccounts('a', 'b');
  await cell.tick();
  await cell.grow('a');
  cell.failWrites((key) => key.sk === 'b');
  expect(await cell.wakeBy(['a', 1], ['b', 1], ['b', 2])).toEqual({
    batchItemFailures: [{ itemIdentifier: 'b-1' }, { itemIdentifier: 'b-2' }],
  });
  expect(await cell.table.get(keys.cursor('us', TOPIC_SINK, 'a'))).toMatchObject({ mark: 1 });
  expect(cell.drains).toEqual([{ sink: TOPIC_OF_A }]);
  expect(cell.reports.fault).toMatchObject([{ ids: { account: 'b' } }]);
});

// Draining

test('a drain delivers a sink’s events in order; the same message again finds nothing', async () => {
  const cell = await createCell();
  await cell.addAccounts('a');
  await cell.tick();
  for (let n = 0; n < 5; n += 1) await cell.grow('a');
  await cell.wakeBy(['a', 5]);
  const message = sqsEvent({ sink: TOPIC_OF_A });
  expect(await cell.drain(message)).toEqual({ batchItemFailures: [] });
  cell.pass(1);
  expect(await cell.drain(message)).toEqual({ batchItemFailures: [] });
  expect(cell.delivered.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5]);
  expect(cell.reports.drain.at(0)).toMatchObject({ outcome: 'drained', delivered: 5 });
});

test('a message that arrives twice in one batch is delivered once: the second finds the sink leased', async () => {
  const cell = await createCell();
  await cell.addAccounts('a');
  await cell.tick();
  await cell.grow('a');
  await cell.wakeBy(['a', 1]);
  await cell.drain(sqsEvent({ sink: TOPIC_OF_A }, { sink: TOPIC_OF_A }));
  expect(cell.delivered).toHaveLength(1);
  expect(cell.reports.drain.map(({ outcome }) => outcome)).toContain('busy');
});

test('an account that grows while its sink drains, so that its wake-up finds the sink busy, is drained right after', async () => {
  const cell = await createCell({ ticking: true });
  await cell.addAccounts('a', NEIGHBOUR_OF_A);
  await cell.tick();
  await cell.grow('a');
  await cell.wakeBy(['a', 1]);
  cell.onDelivery(async () => {
    await cell.grow(NEIGHBOUR_OF_A);
    await cell.wakeBy([NEIGHBOUR_OF_A, 1]);
    await cell.drain(sqsEvent({ sink: TOPIC_OF_A }));
  });
  await cell.drain(sqsEvent({ sink: TOPIC_OF_A }));
  expect(cell.delivered.map(({ account }) => account)).toEqual(['a', NEIGHBOUR_OF_A]);
  expect(cell.reports.drain.map(({ outcome, delivered }) => [outcome, delivered])).toEqual([
    ['busy', 0],
    ['drained', 1],
    ['drained', 1],
  ]);
});

test('an account that grows while its sink only rejects is drained right after too', async () => {
  const cell = await createCell({ ticking: true });
  await cell.addAccounts('a', NEIGHBOUR_OF_A);
  await cell.tick();
  await cell.grow('a');
  await cell.wakeBy(['a', 1]);
  cell.onDelivery(async () => {
    await cell.grow(NEIGHBOUR_OF_A);
    await cell.wakeBy([NEIGHBOUR_OF_A, 1]);
    await cell.drain(sqsEvent({ sink: TOPIC_OF_A }));
    return { kind: 'rejected', reason: 'The topic rejected it.' };
  });
  await cell.drain(sqsEvent({ sink: TOPIC_OF_A }));
  expect(cell.delivered.map(({ account }) => account)).toEqual([NEIGHBOUR_OF_A]);
  expect(cell.reports.drain.map(({ outcome, parked, delivered }) => [outcome, parked, delivered])).toEqual([
    ['busy', 0, 0],
    ['drained', 1, 0],
    ['drained', 0, 1],
  ]);
});

test("one drain continues until its function's time is nearly over, for longer than a lease", async () => {
  const cell = await createCell();
  await cell.addAccounts('a');
  await cell.tick();
  for (let n = 0; n < 9; n += 1) await cell.grow('a');
  await cell.wakeBy(['a', 9]);
  const slow = () => {
    cell.pass(10);
    cell.onDelivery(slow);
  };
  cell.onDelivery(slow);
  await cell.drain(sqsEvent({ sink: TOPIC_OF_A }), { getRemainingTimeInMillis: () => 100_000 });
  expect(cell.reports.drain).toMatchObject([{ outcome: 'more', delivered: 8 }]);
  await cell.drain(sqsEvent({ sink: TOPIC_OF_A }));
  expect(cell.delivered.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
});

test('a failing sink is an outcome, not a failed message; its events wait', async () => {
  const cell = await createCell();
  await cell.addAccounts('a');
  await cell.tick();
  await cell.grow('a');
  await cell.wakeBy(['a', 1]);
  cell.onDelivery(() => {
    throw new Error('The endpoint responded with status 503.');
  });
  expect(await cell.drain(sqsEvent({ sink: TOPIC_OF_A }))).toEqual({ batchItemFailures: [] });
  expect(cell.reports.drain).toMatchObject([
    { outcome: 'waiting', failed: 1, problem: 'The endpoint responded with status 503.' },
  ]);
  expect(await cell.table.get(keys.cursor('us', TOPIC_SINK, 'a'))).toHaveProperty('duePk');
});

test('without recipients, notification events are skipped, and delay nothing', async () => {
  const open = createSinkOpener({
    sns: fake<SNSClient>(async () => ({})),
    eventBridge: fake<EventBridgeClient>(async () => ({})),
    openQueue: () => expect.fail('No queue is opened.'),
    publicUrl: 'https://us.jobwire.example',
    signing: async () => expect.fail('Nothing is signed.'),
    now: () => START,
  });
  const record = { region: 'us', accounts: [], types: [], paused: false, target: '-' };
  const port = await open({ ...record, id: 'notifications', kind: 'notifications' });
  const event = { id: 'acme.e1.1' } as LoggedEvent;
  expect(await port.deliver([{ event }, { event }])).toEqual([{ kind: 'delivered' }, { kind: 'delivered' }]);
});

test('an endpoint is opened with its own signing secrets; topic and event bus need none', async () => {
  const asked: string[] = [];
  const open = createSinkOpener({
    sns: fake<SNSClient>(async () => ({})),
    eventBridge: fake<EventBridgeClient>(async () => ({})),
    openQueue: () => expect.fail('No queue is opened.'),
    publicUrl: 'https://us.jobwire.example',
    async signing(region, endpoint) {
      asked.push(`${region}/${endpoint}`);
      return { secrets: [`whsec_${Buffer.alloc(24, 7).toString('base64')}`], headers: {} };
    },
    now: () => START,
  });
  const sink = { region: 'us', accounts: [], types: [], paused: false };
  expect((await open({ ...sink, id: TOPIC_SINK, kind: 'sns', target: TOPIC })).maxBatch).toBe(10);
  expect((await open({ ...sink, id: 'event-bus', kind: 'eventbridge', target: 'arn' })).maxBatch).toBe(10);
  expect(asked).toEqual([]);
  expect((await open({ ...sink, id: 'erp', kind: 'webhook', target: 'https://erp.example' })).maxBatch).toBe(
    1,
  );
  expect(asked).toEqual(['us/erp']);
});

// Polling

test('a poll message is one poll with one report', async () => {
  const rig = await createHttpRig();
  rig.upstream.createJob({});
  const { handler, reports } = createPolling(rig);
  const answer = await handler(sqsEvent({ account: 'acme', dueAt: START }), context);
  expect(reports.fault).toEqual([]);
  expect(answer).toEqual({ batchItemFailures: [] });
  expect(reports.poll).toMatchObject([
    { region: 'us', account: 'acme', outcome: 'complete', openJobs: 1, events: 1 },
  ]);
});

test('the delay of a poll is reported; one that is early by a clock difference is not late', async () => {
  const rig = await createHttpRig();
  const { handler, reports } = createPolling(rig);
  for (const dueAt of [START - 2_500, START + 40])
    await handler(sqsEvent({ account: 'acme', dueAt }), context);
  expect(reports.poll.map(({ lagMs }) => lagMs)).toEqual([2_500, 0]);
});

test('a poll whose claim has expired is not started: a later tick has queued another', async () => {
  const rig = await createHttpRig();
  const { handler, reports } = createPolling(rig);
  rig.pass(CLAIM_SECONDS + 1);
  // Sent initially; of an account that was due then, and of one that became due later.
  await handler(sqsEvent({ account: 'acme', dueAt: START }), context);
  expect(reports.poll).toEqual([]);
  await handler(sqsEvent({ account: 'acme', dueAt: START + 2_000 }), context);
  expect(reports.poll).toMatchObject([{ outcome: 'complete', lagMs: (CLAIM_SECONDS - 1) * 1000 }]);
});

test('a duplicate poll message emits nothing twice', async () => {
  const rig = await createHttpRig();
  const { handler, reports } = createPolling(rig);
  await handler(sqsEvent({ account: 'acme', dueAt: START }), context);
  await rig.fresh();
  rig.pass(60);
  const job = rig.upstream.createJob({});
  const message = { account: 'acme', dueAt: rig.now() };
  await handler(sqsEvent(message, message), context);
  await handler(sqsEvent(message), context);
  expect((await rig.fresh()).filter(({ type }) => type === 'job.created')).toMatchObject([
    { subject: `jobs/${job}` },
  ]);
  // Two are concurrent; a later one finds it done.
  expect(reports.poll.map(({ outcome }) => outcome).sort()).toEqual([
    ...['complete', 'complete', 'fenced', 'skipped'],
  ]);
  expect(reports.poll.at(-1)).toMatchObject({ outcome: 'skipped', requests: 0 });
});

test('messages fail separately: an invalid one does not prevent polling the others', async () => {
  const rig = await createHttpRig();
  const { handler, reports } = createPolling(rig);
  const event = sqsEvent(
    { account: 'acme', dueAt: START },
    { nonsense: true },
    { account: 'nobody', dueAt: START },
  );
  for (const record of event.Records.slice(1, 2)) record.body = '{"account":';
  expect(await handler(event, context)).toEqual({ batchItemFailures: [{ itemIdentifier: 'message-1' }] });
  expect(reports.poll.map(({ account, outcome }) => [account, outcome]).sort()).toEqual([
    ['acme', 'complete'],
    ['nobody', 'skipped'],
  ]);
  expect(reports.fault).toMatchObject([{ ids: { messageId: 'message-1' } }]);
});

test('an account whose poll hangs does not prevent the others of its batch from committing and reporting', async () => {
  const rig = await createHttpRig();
  await registerAccount(rig.table, rig.log, getAccount('stuck'), { now: START, epoch: 'e1' });
  const stuck = Promise.withResolvers<never>();
  const reported = Promise.withResolvers<void>();
  const { telemetry } = recordTelemetry();
  const connect: typeof rig.deps.connect = (account) =>
    account.account === 'stuck' ? stuck.promise : rig.deps.connect(account);
  const handler = createPollAccountHandler({
    region: 'us',
    polling: { ...rig.deps, connect },
    telemetry: { ...telemetry, poll: ({ account }) => account === 'acme' && reported.resolve() },
  });
  const batch = ['stuck', 'acme'].map((account) => ({ account, dueAt: START }));
  const answer = handler(sqsEvent(...batch), context);
  await reported.promise;
  expect((await rig.fresh()).map(({ type }) => type)).toEqual(['account.baselined']);
  expect((await rig.status()).nextPollAt).toBeGreaterThan(START);
  stuck.reject(new Error('It never came.'));
  expect(await answer).toEqual({ batchItemFailures: [] });
});

test('a fault fails its message, a poll that fails upstream does not', async () => {
  const rig = await createHttpRig();
  const { handler: broken } = createPolling(rig, {
    get: () => Promise.reject(new Error('The table could not get.')),
  });
  expect(await broken(sqsEvent({ account: 'acme', dueAt: START }), context)).toEqual({
    batchItemFailures: [{ itemIdentifier: 'message-0' }],
  });
  await rig.sandbox.stop();
  const { handler, reports } = createPolling(rig);
  expect(await handler(sqsEvent({ account: 'acme', dueAt: START }), context)).toEqual({
    batchItemFailures: [],
  });
  expect(reports.poll).toMatchObject([{ outcome: 'failed' }]);
});

// API

test('the API answers proxy events: paths, repeated queries, headers, and no access without the key', async () => {
  const table = createMemoryTable();
  const now = () => START;
  const eventLog = createEventLog(table, {
    now,
    newId: randomUUID,
    schemaBaseUrl: 'https://x.example',
  });
  const app = createApi({
    table,
    log: eventLog,
    regions: ['us'],
    ...apiParts(table, 'the-key-of-this-test'),
    now,
  });
  const handler = createRestProxyHandler((request) => app.fetch(request));
  expect(await handler(proxyEvent('/healthz'))).toMatchObject({ statusCode: 200 });
  expect(await handler(proxyEvent('/v1/accounts/acme/status'))).toMatchObject({ statusCode: 401 });
  const authorization = ['Bearer the-key-of-this-test'];
  const missing = await handler(proxyEvent('/v1/accounts/acme/status', { authorization }));
  expect(missing.statusCode).toBe(404);
  expect(missing.multiValueHeaders?.['content-type']).toEqual([expect.stringMatching(/json/)]);
  await registerAccount(table, eventLog, getAccount('acme'), { now: START, epoch: 'e1' });
  const found = await handler(proxyEvent('/v1/accounts/acme/events', { authorization }, { limit: ['2'] }));
  expect(JSON.parse(found.body)).toMatchObject({ events: [], next: 'e1.0' });
});

test('a header with any text arrives as its bytes, as on a server', async () => {
  let seen: Request | undefined;
  const handler = createRestProxyHandler((request) => {
    seen = request;
    return new Response('ok');
  });
  const answer = await handler(proxyEvent('/healthz', { 'user-agent': ['☃ é'] }));
  expect(answer.statusCode).toBe(200);
  expect(Buffer.from(seen?.headers.get('user-agent') ?? '', 'latin1').toString()).toBe('☃ é');
});

test('requests arrive as they were sent: method, body, repeated parameters; answers keep each cookie', async () => {
  let seen: Request | undefined;
  const handler = createRestProxyHandler((request) => {
    seen = request;
    const headers = new Headers([
      ['set-cookie', 'a=1'],
      ['set-cookie', 'b=2'],
    ]);
    return new Response('ok', { status: 201, headers });
  });
  const answer = await handler({
    ...proxyEvent('/v1/things', { 'x-twice': ['1', '2'] }, { q: ['a b', 'ü&'] }),
    httpMethod: 'POST',
    body: Buffer.from('grüß').toString('base64'),
    isBase64Encoded: true,
  });
  expect(answer).toMatchObject({
    statusCode: 201,
    body: 'ok',
    multiValueHeaders: { 'set-cookie': ['a=1', 'b=2'] },
  });
  expect(seen?.method).toBe('POST');
  expect(await seen?.text()).toBe('grüß');
  expect(seen?.headers.get('x-twice')).toBe('1, 2');
  const url = new URL(seen?.url ?? '');
  expect([url.pathname, url.searchParams.getAll('q')]).toEqual(['/v1/things', ['a b', 'ü&']]);
});

test('the client address comes from API Gateway, never from a header; the request id is that of the access log', async () => {
  const seen: { request: Request; from: object }[] = [];
  const handler = createRestProxyHandler((request, from) => {
    seen.push({ request, from });
    return new Response('ok');
  });
  const requestContext = { requestId: 'gateway-1', identity: { sourceIp: '203.0.113.7' } };
  const event = {
    ...proxyEvent('/v1/key', { 'x-forwarded-for': ['198.51.100.1'], 'accept-encoding': ['gzip'] }),
    requestContext,
  } as unknown as APIGatewayProxyEvent;
  await handler(event);
  await handler({ ...event, multiValueHeaders: { 'x-request-id': ['own-1'] } });
  expect(seen.map(({ from }) => from)).toEqual(Array(2).fill({ clientAddress: '203.0.113.7' }));
  expect(seen.map(({ request }) => request.headers.get('x-request-id'))).toEqual(['gateway-1', 'own-1']);
});

test('a compressed answer is base64 for API Gateway, any other is text', async () => {
  const packed = gzipSync('a document');
  const handler = createRestProxyHandler((request) =>
    request.headers.get('accept-encoding') === 'gzip'
      ? new Response(packed, { headers: { 'content-encoding': 'gzip' } })
      : new Response('a document'),
  );
  const answer = await handler(proxyEvent('/openapi.json', { 'accept-encoding': ['gzip'] }));
  expect(answer).toMatchObject({
    ...{ isBase64Encoded: true, multiValueHeaders: { 'content-encoding': ['gzip'] } },
    body: packed.toString('base64'),
  });
  const plain = await handler(proxyEvent('/openapi.json'));
  expect(plain.body).toBe('a document');
  expect(plain.isBase64Encoded).not.toBe(true);
});

test('a preflight without a key succeeds for allowed origins, and fails for others', async () => {
  const table = createMemoryTable();
  const parts = { ...apiParts(table, 'the-key-of-this-test'), table, log: {} as EventLog };
  const origin = 'https://tools.example.com';
  const preflight = async (corsOrigins?: string[]) => {
    const app = createApi({
      ...parts,
      regions: ['us'],
      now: Date.now,
      ...(corsOrigins ? { corsOrigins } : {}),
    });
    const handler = createRestProxyHandler((request, from) => app.fetch(request, from));
    const headers = {
      origin: [origin],
      'access-control-request-method': ['POST'],
      'access-control-request-headers': ['authorization,idempotency-key'],
    };
    const { statusCode, multiValueHeaders } = await handler({
      ...proxyEvent('/v1/endpoints', headers),
      httpMethod: 'OPTIONS',
    });
    return [statusCode, multiValueHeaders?.['access-control-allow-origin']];
  };
  expect(await preflight([origin])).toEqual([204, [origin]]);
  expect((await preflight(['https://other.example.com']))[1]).toBeUndefined();
  expect(await preflight()).toEqual([401, undefined]);
});

// Queues

test('messages are sent ten at a time, and a rejected one is an error', async () => {
  const calls: { Entries: { Id: string; MessageBody: string }[] }[] = [];
  const client = fake<SQSClient>(async ({ input }) => {
    calls.push(input as (typeof calls)[number]);
    return calls.length === 4 ? { Failed: [{ Id: '0', Code: 'InternalError', SenderFault: false }] } : {};
  });
  const send = createSend<{ n: number }>(client, 'https://sqs.example/queue');
  await send([]);
  await send(Array.from({ length: 23 }, (_, n) => ({ n })));
  expect(calls.map(({ Entries }) => Entries.length)).toEqual([10, 10, 3]);
  expect(calls.flatMap(({ Entries }) => Entries.map(({ MessageBody }) => JSON.parse(MessageBody).n))).toEqual(
    Array.from({ length: 23 }, (_, n) => n),
  );
  await expect(send([{ n: 1 }])).rejects.toThrow(
    new QueueError('The queue rejected a message (InternalError).'),
  );
});

test('a message waits in the queue until its time, which is never early; late messages are not delayed', async () => {
  const entries: { DelaySeconds?: number }[] = [];
  const client = fake<SQSClient>(async ({ input }) => {
    entries.push(...(input as { Entries: typeof entries }).Entries);
    return {};
  });
  const send = createSend<{ inMs: number }>(client, 'https://sqs.example/queue', ({ inMs }) => inMs);
  await send([-5_000, 0, 1, 999, 1_001, 130_000, 5_000_000].map((inMs) => ({ inMs })));
  expect(entries.map(({ DelaySeconds }) => DelaySeconds)).toEqual([undefined, undefined, 1, 1, 2, 130, 900]);
});

// Secrets

test('a secret is read once for all concurrent callers, until it expires; the version is the secret’s', async () => {
  let clock = 0;
  let version = 1;
  const client = fakeSecrets(
    () => ({ clientId: 'id', clientSecret: `secret-${version}` }),
    () => version,
  );
  const secrets = createSecretReader(client, { now: () => clock, maxAgeMs: 1000 });
  const both = await Promise.all([secrets.readSecret('acme'), secrets.readSecret('acme')]);
  expect(both[1]).toEqual({ clientId: 'id', clientSecret: 'secret-1', version: 'v1' });
  version = 2;
  clock = 999;
  expect((await secrets.readSecret('acme')).version).toBe('v1');
  clock = 1000;
  expect(await secrets.readSecret('acme')).toMatchObject({ clientSecret: 'secret-2', version: 'v2' });
  expect(client.send).toHaveBeenCalledTimes(2);
});

test('one secret can contain many accounts, each under its key', async () => {
  const client = fakeSecrets(() => ({
    acme: { clientId: 'a', clientSecret: 's1' },
    globex: { clientId: 'g', clientSecret: 's2' },
  }));
  const secrets = createSecretReader(client, { now: () => 0, maxAgeMs: 1000 });
  expect(await secrets.readSecret('all#globex')).toMatchObject({ clientId: 'g', clientSecret: 's2' });
  expect(await secrets.readSecret('all#acme')).toMatchObject({ clientId: 'a' });
  expect(client.send).toHaveBeenCalledTimes(1);
  await expect(secrets.readSecret('all#constructor')).rejects.toThrow(SecretError);
});

test('credentials under another key of one secret are another version, because caches by version must not be shared', async () => {
  const one = { clientId: 'a', clientSecret: 's1' };
  const secrets = createSecretReader(
    fakeSecrets(() => ({ acme: one, globex: one })),
    { now: () => 0, maxAgeMs: 1000 },
  );
  const versions = await Promise.all(
    ['all#acme', 'all#globex', 'all#acme', 'other'].map((ref) =>
      secrets.readSecret(ref).then(
        ({ version }) => version,
        () => undefined,
      ),
    ),
  );
  expect(versions[0]).toBe(versions[2]);
  expect(versions[0]).not.toBe(versions[1]);
});

test.each([
  ['is not JSON', 'whsec_and-other-s3cret'],
  ['is of another shape', JSON.stringify({ clientId: 7, clientSecret: 's3cret' })],
  ['lacks a part', JSON.stringify({ clientSecret: 's3cret' })],
])('the error for a secret that %s contains nothing of it', async (_, text) => {
  const client = fake<SecretsManagerClient>(async () => ({ SecretString: text, VersionId: 'v1' }));
  const secrets = createSecretReader(client, { now: () => 0, maxAgeMs: 1000 });
  const error = await secrets.readSecret('acme').catch((cause: unknown) => cause);
  expect(error).toBeInstanceOf(SecretError);
  expect((error as SecretError).message).toContain('The secret acme ');
  expect(
    JSON.stringify(Object.getOwnPropertyNames(error).map((name) => Reflect.get(error as object, name))),
  ).not.toContain('s3cret');
});

test('a secret that could not be read is read again the next time', async () => {
  let fails = true;
  const client = fake<SecretsManagerClient>(async () => {
    if (fails) throw Object.assign(new Error('no'), { name: 'AccessDeniedException' });
    return { SecretString: '{"clientId":"c","clientSecret":"s"}', VersionId: 'v1' };
  });
  const secrets = createSecretReader(client, { now: () => 0, maxAgeMs: 1000 });
  await expect(secrets.readSecret('acme')).rejects.toThrow(
    'The secret acme could not be read (AccessDeniedException).',
  );
  fails = false;
  expect(await secrets.readSecret('acme')).toEqual({ clientId: 'c', clientSecret: 's', version: 'v1' });
});

// Support

type Reports = {
  [K in
    | 'operate'
    | 'request'
    | 'tick'
    | 'drain'
    | 'attempt'
    | 'alerts'
    | 'notify'
    | 'notification'
    | 'mailFeedback']: Parameters<Telemetry[K]>[0][];
} & {
  poll: (PollReport & { lagMs: number })[];
  fault: { message: string; cause: unknown; ids: object | undefined }[];
};

function recordTelemetry(): { telemetry: Telemetry; reports: Reports } {
  const reports: Reports = {
    operate: [],
    request: [],
    tick: [],
    poll: [],
    drain: [],
    attempt: [],
    alerts: [],
    notify: [],
    notification: [],
    mailFeedback: [],
    fault: [],
  };
  const telemetry: Telemetry = {
    operate: (report) => reports.operate.push(report),
    request: (report) => reports.request.push(report),
    tick: (report) => reports.tick.push(report),
    poll: (report, late) => reports.poll.push({ ...report, ...late }),
    drain: (report) => reports.drain.push(report),
    attempt: (attempt) => reports.attempt.push(attempt),
    alerts: (report) => reports.alerts.push(report),
    notify: (report) => reports.notify.push(report),
    notification: (line) => reports.notification.push(line),
    mailFeedback: (report) => reports.mailFeedback.push(report),
    fault: (message, cause, ids) => reports.fault.push({ message, cause, ids }),
  };
  return { telemetry, reports };
}

interface Poll {
  readonly account: string;
  readonly dueAt: number;
}

/** The parts of a cell around one in-memory table, with a clock that is stopped unless it is ticking. */
async function createCell(options: { readonly ticking?: boolean; readonly table?: Table } = {}) {
  let clock = START;
  const now = () => (options.ticking ? ++clock : clock);
  const memory = options.table ?? createMemoryTable();
  let refuse: (key: { pk: string; sk: string }) => boolean = () => false;
  const table: Table = {
    ...memory,
    write: (write) => {
      if ('update' in write && refuse(write.update)) throw new Error('The table could not write.');
      return memory.write(write);
    },
  };
  const eventLog = createEventLog(table, {
    now,
    newId: randomUUID,
    schemaBaseUrl: 'https://us.jobwire.example',
  });
  const { telemetry, reports } = recordTelemetry();
  const polls: Poll[] = [];
  const lonePolls: Poll[] = [];
  const drains: { sink: string }[] = [];
  const delivered: LoggedEvent[] = [];
  let onDelivery: () => unknown = () => undefined;
  const pollQueue = vi.fn(async (messages: readonly Poll[]) => void polls.push(...messages));
  const drainQueue = vi.fn(async (messages: readonly { sink: string }[]) => void drains.push(...messages));
  const asked: { dueSince: number }[] = [];
  const ticking = {
    region: 'us',
    table,
    log: eventLog,
    topicArn: TOPIC,
    sendPolls: pollQueue,
    sendLonePolls: async (messages: readonly Poll[]) => void lonePolls.push(...messages),
    sendDrains: drainQueue,
    telemetry,
    now,
  };
  const wakeSinks = createWakeSinksHandler({ region: 'us', table, sendDrains: drainQueue, telemetry, now });
  const drainSink = createDrainSinkHandler({
    region: 'us',
    draining: {
      table,
      log: eventLog,
      now,
      newId: randomUUID,
      random: () => 0.5,
      retrySeconds: [5],
      open: async () => ({
        maxBatch: 10,
        async deliver(events) {
          const reaction = onDelivery;
          onDelivery = () => undefined;
          const outcome = (await reaction()) as DeliveryOutcome | undefined;
          if (outcome) return events.map(() => outcome);
          delivered.push(...events.map(({ event }) => event));
          return events.map(() => ({ kind: 'delivered' as const }));
        },
      }),
    },
    telemetry,
  });
  return {
    table,
    reports,
    polls,
    lonePolls,
    drains,
    asked,
    delivered,
    pollQueue,
    drainQueue,
    now,
    pass(seconds: number): void {
      clock += seconds * 1000;
    },
    failWrites(which: typeof refuse): void {
      refuse = which;
    },
    /** Runs an action during the next delivery, which may change its outcome. */
    onDelivery(reaction: () => unknown): void {
      onDelivery = reaction;
    },
    async addAccounts(...accounts: string[]): Promise<void> {
      for (const account of accounts) {
        await registerAccount(table, eventLog, getAccount(account), { now: clock, epoch: 'e1' });
      }
    },
    async dueIn(account: string, seconds: number): Promise<void> {
      const ref = { region: 'us', account };
      await table.write({ update: keys.status(ref), set: schedule(ref, clock + seconds * 1000) });
    },
    async addSink(sink: Partial<SinkRecord> & { id: string }): Promise<void> {
      const record = {
        region: 'us',
        kind: 'webhook' as const,
        target: 'https://erp.example',
        types: [],
        paused: false,
      };
      await registerSink(table, eventLog, { accounts: [], ...record, ...sink }, []);
    },
    /** Appends one event to an account's log. */
    async grow(account: string): Promise<void> {
      const event = { type: 'account.credentials_accepted', time: clock, data: {} } as const;
      await eventLog.append({ region: 'us', account }, [event]);
    },
    /** A tick of a cell with notifications. */
    tellCustomers: (
      send = async (messages: readonly { dueSince: number }[]): Promise<void> => void asked.push(...messages),
    ) => createTickHandler({ ...ticking, sendNotify: send })({}, context),
    /** A tick of a cell with the standard topic and the event bus, if they are named. */
    tick: (standardTopicArn?: string, eventBusArn?: string) =>
      createTickHandler({ ...ticking, standardTopicArn, eventBusArn })({}, context),
    /** The stream's records of the current wake marks. */
    async wake(...accounts: string[]) {
      const marks = accounts.map(async (account): Promise<[string, number]> => {
        const mark = await table.get(keys.wake({ region: 'us', account }));
        return [account, Number(mark?.sequence)];
      });
      return this.wakeBy(...(await Promise.all(marks)));
    },
    wakeBy: (...marks: readonly (readonly [account: string, sequence: number])[]) =>
      wakeSinks({
        Records: marks.map(([account, sequence]) => ({
          eventName: 'MODIFY',
          dynamodb: {
            SequenceNumber: `${account}-${sequence}`,
            NewImage: {
              pk: { S: keys.wake({ region: 'us', account }).pk },
              sk: { S: account },
              sequence: { N: String(sequence) },
            },
          },
        })),
      }),
    drain: (event: SQSEvent, within = context) => drainSink(event, within),
  };
}

function createPolling(rig: Awaited<ReturnType<typeof createHttpRig>>, table: Partial<Table> = {}) {
  const { telemetry, reports } = recordTelemetry();
  const polling = { ...rig.deps, table: { ...rig.deps.table, ...table } };
  return { handler: createPollAccountHandler({ region: 'us', polling, telemetry }), reports };
}

function getAccount(account: string) {
  return { region: 'us', account, secretRef: account, pollIntervalSeconds: 60, paused: false };
}

function sqsEvent(...bodies: readonly object[]): SQSEvent {
  return {
    Records: bodies.map((body, at) => ({
      messageId: `message-${at}`,
      receiptHandle: '',
      body: JSON.stringify(body),
      attributes: {
        ApproximateReceiveCount: '1',
        SentTimestamp: String(START),
        SenderId: '',
        ApproximateFirstReceiveTimestamp: String(START),
      },
      messageAttributes: {},
      md5OfBody: '',
      eventSource: 'aws:sqs',
      eventSourceARN: '',
      awsRegion: 'us-east-1',
    })),
  };
}

function proxyEvent(
  path: string,
  headers: Record<string, string[]> = {},
  query: Record<string, string[]> | null = null,
): APIGatewayProxyEvent {
  return {
    path,
    httpMethod: 'GET',
    body: null,
    isBase64Encoded: false,
    headers: {},
    multiValueHeaders: headers,
    queryStringParameters: null,
    multiValueQueryStringParameters: query,
    pathParameters: null,
    stageVariables: null,
    resource: '/{proxy+}',
    requestContext: { domainName: 'api.example' } as APIGatewayProxyEvent['requestContext'],
  };
}

/** A stub of an AWS client. */
function fake<C>(send: (command: { input: unknown }) => Promise<object>): C {
  return { send: vi.fn(send) } as C;
}

function fakeSecrets(content: () => object, version: () => number = () => 1): SecretsManagerClient {
  return fake(async () => ({ SecretString: JSON.stringify(content()), VersionId: `v${version()}` }));
}
