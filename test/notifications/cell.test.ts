/** Notifications in a cell: the functions' IAM grants are necessary and sufficient for their table operations. */
import { randomUUID } from 'node:crypto';
import type { SQSEvent, SQSRecord } from 'aws-lambda';
import { beforeAll, expect, test } from 'vitest';
import { createDrainSinkHandler } from '../../functions/handlers/drain-sink.ts';
import { createMailFeedbackHandler } from '../../functions/handlers/mail-feedback.ts';
import { createNotifyHandler } from '../../functions/handlers/notify.ts';
import { createApi } from '../../shared/api/app.ts';
import { createIdempotency } from '../../shared/api/idempotency.ts';
import { createKey, createKeyring, OPERATOR } from '../../shared/api/keys.ts';
import { routes } from '../../shared/api/routes/all.ts';
import { createDeliveryLog } from '../../shared/delivery/delivery-log.ts';
import { wakeSinks } from '../../shared/delivery/wakes.ts';
import { createEventLog } from '../../shared/log/log.ts';
import { createNotificationsSink } from '../../shared/notifications/notifications-sink.ts';
import type { Message } from '../../shared/notifications/records.ts';
import type { SendReport } from '../../shared/notifications/send-report.ts';
import { sendDue } from '../../shared/notifications/sender.ts';
import {
  NOTIFICATIONS_SINK,
  type OutgoingEmail,
  type OutgoingSms,
  type SendOutcome,
} from '../../shared/notifications/types.ts';
import { createUnsubscribeUrl } from '../../shared/notifications/unsubscribe.ts';
import {
  cellLog,
  historySchema,
  keys,
  messagePk,
  notifyDue,
  sentOfJobPk,
  sentPk,
} from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import type { Table } from '../../shared/storage/table.ts';
import { pollAccount } from '../../shared/tracking/poll.ts';
import { synthesize } from '../support/cells.ts';
import { type Grant, grantsOn, guarded } from '../support/grants.ts';
import { createOperator } from '../support/operator.ts';
import { createRig } from '../support/tracker.ts';

const FUNCTIONS = {
  pollAccount: /^PollingPollAccount/,
  drainSink: /^DeliveryDrainSink/,
  notify: /^NotificationsNotify/,
  mailFeedback: /^NotificationsMailFeedback/,
  api: /^ApiFunction/,
  manage: /^ApiManage/,
} as const;
type Name = keyof typeof FUNCTIONS;

/** Partitions that only notifications use. */
const OWN =
  /^(NOTIFY|RECIPIENTS|RECIPIENTSOF|TEMPLATES|SUPPRESSED|THREADS|MESSAGES|SMSUSE|LINKKEY|SENT|SENTJOB|SENTTO)#/;

let granted: Readonly<Record<Name, { readonly state: Grant[]; readonly history: Grant[] }>>;

beforeAll(() => {
  const cell = synthesize('prod');
  const functions = cell.functions();
  const tables = cell.resources('AWS::DynamoDB::GlobalTable').map(([id]) => id);
  const findTable = (name: RegExp) => tables.find((id) => name.test(id)) ?? '';
  const of = (name: Name) => {
    const { statements = [] } = functions.find(({ id }) => FUNCTIONS[name].test(id)) ?? {};
    return {
      state: grantsOn(findTable(/^State/), statements),
      history: grantsOn(findTable(/^History/), statements),
    };
  };
  granted = Object.fromEntries(
    Object.keys(FUNCTIONS).map((name) => [name, of(name as Name)]),
  ) as typeof granted;
}, 120_000);

test("notifications from settings to a bounce and the account's deletion need exactly the granted permissions", async () => {
  const memory = createMemoryTable();
  const historyMemory = createMemoryTable(historySchema);
  const state = (name: Name) => guarded(name, granted[name].state, memory);
  const past = (name: Name) => guarded(name, granted[name].history, historyMemory);
  const names = Object.keys(FUNCTIONS) as Name[];
  const tables = Object.fromEntries(names.map((name) => [name, state(name)])) as Record<
    Name,
    ReturnType<typeof state>
  >;
  const histories = Object.fromEntries(names.map((name) => [name, past(name)])) as typeof tables;
  const rig = await createRig({ table: memory });
  const { now, ref } = rig;
  const createLog = (table: Table) =>
    createEventLog(table, { now, newId: randomUUID, schemaBaseUrl: 'https://us.example' });
  const polling = rig.depsOver(tables.pollAccount);
  const poll = async () => {
    rig.pass(60);
    const report = await pollAccount(polling, ref, now() + 600_000);
    expect(report.outcome, report.problem ?? '').toBe('complete');
  };
  const told = {
    fault: (_: string, cause: unknown) => expect.fail(String(cause)),
    mailFeedback() {},
    notify() {},
  };
  const context = { getRemainingTimeInMillis: () => 300_000 };
  const batch = (...bodies: readonly object[]): SQSEvent => ({
    Records: bodies.map((body, at) => ({ messageId: String(at), body: JSON.stringify(body) }) as SQSRecord),
  });

  const drain = createDrainSinkHandler({
    region: 'us',
    draining: {
      ...{
        table: tables.drainSink,
        log: createLog(tables.drainSink),
        now,
        newId: randomUUID,
        random: () => 0.5,
      },
      retrySeconds: [5],
      open: async () =>
        createNotificationsSink({ table: tables.drainSink, history: histories.drainSink, now }),
    },
    telemetry: { ...told, drain() {}, attempt() {} },
  });
  const mails: OutgoingEmail[] = [];
  const testMails: OutgoingEmail[] = [];
  const texts: OutgoingSms[] = [];
  let answer: () => SendOutcome = () => ({ kind: 'accepted', providerId: 'id' });
  let lastReport: SendReport | undefined;
  const lines: unknown[] = [];
  const notify = createNotifyHandler({
    now,
    telemetry: told,
    async send(deadline) {
      lastReport = await sendDue(
        {
          ...{ table: tables.notify, history: histories.notify, now, newId: randomUUID, random: () => 0.5 },
          publicUrl: 'https://us.example',
          email: {
            domain: 'print.example',
            async send(mail) {
              mails.push(mail);
              return answer();
            },
            close() {},
          },
          sms: {
            async send(sms) {
              texts.push(sms);
              return answer();
            },
          },
          report: (line) => lines.push(line),
        },
        'us',
        deadline,
      );
      return lastReport;
    },
  });
  const heard = createMailFeedbackHandler({
    ...{ region: 'us', telemetry: told },
    messages: { table: tables.mailFeedback, history: histories.mailFeedback, now, newId: randomUUID },
  });
  const hear = async (message: string, bounce = true) => {
    const about = bounce
      ? { eventType: 'Bounce', bounce: { bounceType: 'Permanent' } }
      : { eventType: 'Complaint', complaint: {} };
    const mail = { tags: { region: ['us'], account: ['acme'], message: [message] } };
    await heard(batch({ ...about, mail }));
  };
  /** /Events become messages: folded, window closed, sent. */
  const tell = async () => {
    const head = await createLog(memory).head(ref);
    await wakeSinks(memory, ref, head?.sequence ?? 0, now());
    expect(await drain(batch({ sink: NOTIFICATIONS_SINK }), context)).toEqual({ batchItemFailures: [] });
    rig.pass(400);
    expect(await notify(batch({ dueSince: now() }), context)).toEqual({ batchItemFailures: [] });
  };

  const first = await createKey({ table: memory, now }, { role: 'admin' }, OPERATOR);
  if (first.kind !== 'created') throw new Error(first.reason);
  const faults: string[] = [];
  const parts = (name: 'api' | 'manage') => ({
    ...{ table: tables[name], log: createLog(tables[name]), regions: ['us'], now },
    keyring: createKeyring({ table: tables[name], now }),
    onError: (cause: unknown) => void faults.push(String(cause)),
    notifications: {
      history: histories[name],
      publicUrl: 'https://us.example',
      channels: ['email', 'sms'] as const,
    },
  });
  const operator = await createOperator({ table: tables.manage, history: histories.manage, now });
  const apps = {
    read: createApi({ ...parts('api'), deliveries: createDeliveryLog(histories.api, { newId: randomUUID }) }),
    manage: createApi({
      ...parts('manage'),
      manage: {
        idempotency: createIdempotency({ table: tables.manage, now }),
        accounts: operator.accounts,
        mailer: {
          domain: 'print.example',
          async send(mail) {
            testMails.push(mail);
            return { kind: 'accepted', providerId: 'id' };
          },
        },
        endpoints: {
          ...{ table: tables.manage, log: createLog(tables.manage), secrets: operator.secrets, now },
          ...{ newId: randomUUID, schemaBaseUrl: 'https://us.example', allowPrivateNetworks: false },
          deliveries: createDeliveryLog(histories.manage, { newId: randomUUID }),
          open: async () => ({ maxBatch: 1, deliver: async () => [{ kind: 'delivered' }] }),
        },
      },
    }),
  };
  const unasked = new Set(
    routes.filter(({ spec }) => spec.tag === 'Notifications').map(({ spec }) => spec.id),
  );
  expect(unasked.size).toBeGreaterThan(20);
  async function ask(method: string, path: string, body?: object | string) {
    const { pathname } = new URL(path, 'https://us.example');
    const [asked] = routes
      .filter(
        ({ spec }) =>
          spec.method === method && new RegExp(`^${spec.path.replace(/\{\w+\}/g, '[^/]+')}$`).test(pathname),
      )
      .sort((a, b) => Number(a.spec.path.includes('{')) - Number(b.spec.path.includes('{')));
    if (!asked || asked.surface === 'live') throw new Error(`There is no route ${method} ${path}.`);
    unasked.delete(asked.spec.id);
    const isForm = typeof body === 'string';
    const reply = await apps[asked.surface].request(path, {
      method: method.toUpperCase(),
      headers: {
        ...(isForm ? {} : { authorization: `Bearer ${first.kind === 'created' ? first.secret : ''}` }),
        ...(body
          ? { 'content-type': isForm ? 'application/x-www-form-urlencoded' : 'application/json' }
          : {}),
        'idempotency-key': randomUUID(),
      },
      ...(body ? { body: isForm ? body : JSON.stringify(body) } : {}),
    });
    const text = await reply.text();
    expect([200, 201, 202, 204], `${method} ${path}: ${text} ${faults}`).toContain(reply.status);
    return /json/.test(reply.headers.get('content-type') ?? '') ? JSON.parse(text) : text;
  }
  const account = '/v1/accounts/acme';
  const messages = async (): Promise<Message[]> => (await ask('get', `${account}/messages`)).messages;

  await poll();
  const settings = {
    enabled: true,
    branding: { name: 'Acme Print' },
    sms: { enabled: true, quietHours: null },
  };
  await ask('put', `${account}/notifications`, { ...settings, ownUser: true });
  expect(await ask('get', `${account}/notifications`)).toMatchObject({ enabled: true });
  await poll();
  // The upstream user has disabled its notifications, so it gets none.
  for (const user of rig.upstream.users) user.receiveEmails = false;
  rig.pass(7 * 3600);
  await poll();
  await ask('put', `${account}/notifications`, settings);
  const ann = {
    id: 'ann',
    name: 'Ann',
    email: 'ann@example.org',
    mobile: '+12025550123',
    channels: ['email', 'sms'],
  };
  const kinds = ['dispatched', 'tracking', 'dispatch_revoked', 'due_date_changed', 'cancelled'];
  await ask('post', `${account}/recipients`, { ...ann, kinds });
  await ask('post', `${account}/recipients`, { id: 'bob', email: 'bob@example.org', orderGroup: 'Spring' });
  await ask('patch', `${account}/recipients/bob`, { name: 'Bob', orderGroup: null, orderNumber: 'PO-1' });
  await ask('post', `${account}/recipients/import`, {
    csv: 'id,email\nann,ann@example.org\neve,eve@example.org\n,bad',
  });
  // Without an id the address identifies it, encrypted with a key.
  await ask('post', `${account}/recipients/import`, { csv: 'email,orderNumber\nzoe@example.org,PO-404' });
  for (const path of ['', '/ann', '/ann/messages']) await ask('get', `${account}/recipients${path}`);
  expect((await ask('get', '/v1/search?q=ann@example.org')).results).toHaveLength(1);
  const template = `${account}/templates/dispatched/email/en-US`;
  await ask('put', template, { subject: 'Gone', intro: 'It has left us.' });
  await ask('get', `${account}/templates`);
  await ask('get', template);
  const jobs = [1, 2, 3].map(() => rig.upstream.createJob({ orderGroup: 'Spring', orderNumber: 'PO-1' }));
  const [one = 0, two = 0, three = 0] = jobs;
  await poll();
  await ask('post', `${account}/notifications/preview`, {
    kind: 'dispatched',
    channel: 'email',
    jobNumber: one,
    recipient: 'ann',
  });
  expect(
    await ask('post', `${account}/notifications/test`, { to: 'eve@example.org', kind: 'dispatched' }),
  ).toMatchObject({ sent: true });
  expect(testMails.map(({ to }) => to.address)).toEqual(['eve@example.org']);
  await tell();

  rig.upstream.dispatch(one);
  await poll();
  await wakeSinks(memory, ref, (await createLog(memory).head(ref))?.sequence ?? 0, now());
  await drain(batch({ sink: NOTIFICATIONS_SINK }), context);
  expect((await ask('get', `${account}/jobs/${one}/messages`)).upcoming).toHaveLength(1);
  await tell();
  expect([mails.length, texts.length]).toEqual([3, 1]);
  const sent = await messages();
  expect(sent.map(({ state }) => state)).toEqual(['sent', 'sent', 'sent', 'sent']);
  for (const { id } of sent) await ask('get', `${account}/messages/${id}`);

  expect((await ask('get', `${account}/jobs/${one}/messages`)).messages).toHaveLength(4);

  // A link of a mail: preview, unsubscribe, resubscribe.
  const link = mails.find(({ to }) => to.address === 'eve@example.org')?.unsubscribeUrl ?? '';
  await ask('get', link.replace('https://us.example', ''));
  for (const choice of ['List-Unsubscribe=One-Click', 'choice=subscribe', 'List-Unsubscribe=One-Click']) {
    await ask('post', link.replace('https://us.example', ''), choice);
  }
  // A bounce of a message whose work item exists, and a complaint about one whose work item is gone.
  const getId = (address: string) => sent.find(({ to }) => to?.address === address)?.id ?? '';
  await hear(getId('bob@example.org'));
  const annsMail = sent.find(({ to, channel }) => to?.recipient === 'ann' && channel === 'email')?.id ?? '';
  await memory.write({ delete: keys.message(ref, annsMail.slice(annsMail.indexOf('-') + 1)) });
  await hear(annsMail, false);
  expect(new Set((await messages()).map(({ state }) => state))).toEqual(
    new Set(['sent', 'bounced', 'complained']),
  );
  // The item of a message states whether customers of its account can be notified.
  const { items } = await ask('get', '/v1/attention?kind=message_undelivered');
  expect(items.map(({ customer }: { customer: unknown }) => customer)).toContainEqual(
    expect.objectContaining({ enabled: true }),
  );

  // Items of the attention queue: a message, and a late job, whose messages are read. The pointer to them is that of another job.
  await ask('post', `/v1/attention/us~acme~message~${getId('bob@example.org')}/acknowledge`, {});
  const late = rig.upstream.createJob({ dateDue: '2026-03-01T12:00:00Z' });
  await poll();
  const [pointer] = await historyMemory.query({ pk: sentOfJobPk(ref, one), limit: 1 });
  await historyMemory.write({ put: { ...pointer, pk: sentOfJobPk(ref, late), sk: String(pointer?.sk) } });
  await ask('post', `/v1/attention/us~acme~job~${late}/note`, { note: 'Called.' });

  // A note, requested twice.
  const { recipients } = await ask('get', `${account}/jobs/${three}/recipients`);
  expect(recipients).toContainEqual(
    expect.objectContaining({ recipient: 'ann', channel: 'sms', reason: null }),
  );
  const note = { recipient: 'ann', channel: 'sms', text: 'Soon.' };
  for (const created of [true, false])
    expect(await ask('post', `${account}/jobs/${three}/messages`, note)).toMatchObject({ created });
  const textsBefore = texts.length;
  await tell();
  expect(texts.length).toBe(textsBefore + 1);

  // SMS only; the first attempt fails, and the next one has an unknown outcome.
  rig.upstream.dispatch(two);
  await poll();
  answer = () => ({ kind: 'later', reason: 'SNS asks to slow down.', everything: false });
  await tell();
  answer = () => ({ kind: 'rejected', reason: 'The number has opted out.', address: 'opted_out' });
  rig.pass(3600);
  await notify(batch({ dueSince: now() }), context);
  expect((await messages()).filter(({ reason }) => reason === 'opted_out')).toHaveLength(1);
  answer = () => ({ kind: 'accepted', providerId: null });

  // A job without recipients; a job that moves to another group; and a window that closes without changes.
  for (const { id } of (await ask('get', `${account}/suppressions`)).suppressions) {
    await ask('delete', `${account}/suppressions/${id}`);
  }
  await ask('post', `${account}/suppressions`, { channel: 'email', address: 'x@example.org' });
  for (const id of ['ann', 'bob', 'eve']) await ask('delete', `${account}/recipients/${id}`);
  rig.upstream.edit(three, { orderGroup: 'Autumn' });
  await poll();
  rig.upstream.dispatch(three);
  await poll();
  await tell();
  expect((await messages()).filter(({ reason }) => reason === 'no_recipient')).toHaveLength(1);
  const lone = rig.upstream.createJob({});
  await poll();
  rig.upstream.dispatch(lone);
  await poll();
  rig.upstream.clearDateOut(lone);
  await poll();
  // An invalid event, and one that the drain has not folded when its window closes.
  const unreadable = { type: 'job.dispatched', time: now(), jobNumber: 7, data: { job: null } };
  await createLog(memory).append(ref, [unreadable as never]);
  const drained = (await createLog(memory).head(ref))?.sequence ?? 0;
  await wakeSinks(memory, ref, drained, now());
  await drain(batch({ sink: NOTIFICATIONS_SINK }), context);
  rig.upstream.createJob({});
  await poll();
  rig.pass(400);
  await notify(batch({ dueSince: now() }), context);
  await tell();
  expect((await messages()).map(({ reason }) => reason)).toEqual(
    expect.arrayContaining(['revoked', 'rejected']),
  );
  await ask('delete', template);

  // A journal entry whose writer never completed it.
  const written = { pk: messagePk(ref), sk: getId('eve@example.org').replace(/^.*-/, '') };
  const cell = cellLog('us');
  const journal = keys.message(cell, '~lost');
  const place = notifyDue('messages', cell, journal.sk, now() - 1);
  await memory.write({ put: { ...journal, ...place, messages: JSON.stringify([written]) } });
  await notify(batch({ dueSince: now() }), context);
  expect(await memory.get(journal)).toBeUndefined();

  expect([...unasked]).toEqual([]);
  const stored = () => historyMemory.query({ pk: sentPk(ref) });
  expect(await stored()).not.toEqual([]);
  await ask('delete', account);
  expect(await stored()).toEqual([]);
  // Deleting an account deletes all items of its notifications.
  const beta = { region: 'us', account: 'beta' };
  const credentials = { clientId: 'id', clientSecret: 'secret' };
  await ask('post', '/v1/accounts', { id: 'beta', credentials });
  const kept = [
    ...[keys.notificationSettings(beta), keys.smsUse(beta, new Date(now()).toISOString().slice(0, 7))],
    ...[
      keys.recipient(beta, 'r'),
      keys.recipientPlace(beta, 'ACCOUNT', 'r'),
      keys.suppression(beta, 'email', 'h'),
    ],
    ...[keys.template(beta, 'k', 'c', 'l'), keys.thread(beta, '=x'), keys.message(beta, 'm')],
  ];
  for (const key of kept) await memory.write({ put: { ...key } });
  // A move to another cell holds what is due, and exports all of it.
  const due = { revision: 1, ...notifyDue('messages', beta, 'm', now() + 1e9) };
  for (const key of kept.slice(-2)) await memory.write({ put: { ...key, ...due } });
  const move = '/v1/accounts/beta/move';
  expect(await ask('put', move, { to: 'other' })).toMatchObject({ waitingFor: null });
  await ask('delete', move);
  await ask('put', move, { to: 'other' });
  const { data } = await ask('post', '/v1/accounts/beta/export', {});
  await ask('delete', '/v1/accounts/beta');
  expect(await memory.getMany(kept)).toEqual([]);
  // The import into a cell, here the same one, once the id is free.
  rig.pass(400);
  await ask('post', '/v1/accounts/import', { data, credentials });
  expect(await memory.getMany(kept)).toHaveLength(kept.length);
  expect(await memory.getMany(kept.slice(-2))).toEqual(
    expect.arrayContaining([expect.objectContaining({ duePk: due.duePk }), expect.anything()]),
  );

  // The first writer creates the key that links are signed with: here the import, elsewhere the first mail.
  const fresh = guarded('notify', granted.notify.state, createMemoryTable());
  await createUnsubscribeUrl(
    { table: fresh, publicUrl: 'https://us.example', now: Date.now },
    ref,
    'email',
    'ann@example.org',
  );
  const left = names.flatMap((name) =>
    [...tables[name].unused(), ...histories[name].unused()]
      .filter(
        (grant) =>
          name !== 'notify' || fresh.unused().includes(grant) || !granted.notify.state.includes(grant),
      )
      .filter(({ pattern = '' }) => OWN.test(pattern) || name === 'notify' || name === 'mailFeedback')
      .map(({ action, pattern, index }) => `${name}: ${action} ${pattern ?? index}`),
  );
  expect(left).toEqual([]);
  expect(faults).toEqual([]);
}, 60_000);
