/** Alert rules end to end: the API, the evaluation, and messages to a real HTTP receiver and a real SMTP server. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text as readText } from 'node:stream/consumers';
import { simpleParser } from 'mailparser';
import { SMTPServer } from 'smtp-server';
import { afterEach, describe, expect, it } from 'vitest';
import { registerAccount } from '../../shared/accounts/accounts.ts';
import { type AlertDeps, evaluateAlerts } from '../../shared/alerts/evaluate.ts';
import { createApi } from '../../shared/api/app.ts';
import { createKey, OPERATOR } from '../../shared/api/keys.ts';
import { createConnectionPool } from '../../shared/delivery/outbound.ts';
import { createEventLog } from '../../shared/log/log.ts';
import { toMessageId } from '../../shared/notifications/message-ids.ts';
import { recordNoMessage } from '../../shared/notifications/messages.ts';
import type { Message } from '../../shared/notifications/records.ts';
import { createSmtpTransport } from '../../shared/notifications/smtp.ts';
import { openSealedTexts } from '../../shared/secrets.ts';
import { alertTargetPk, deadPk, historySchema, keys } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import { apiParts } from '../support/api.ts';

const KEY = 'correct-horse-battery-staple';
const MINUTE = 60_000;
const DAY = 1440 * MINUTE;
const SECRET_PATH = '/services/T000/B000/c4n4ry';

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** An API with accounts `acme` and `other`, an evaluator, a receiver and a mail server. */
async function start() {
  const clock = { now: Date.parse('2026-03-02T12:00:00Z') };
  const now = () => clock.now;
  const table = createMemoryTable();
  const history = createMemoryTable(historySchema);
  const log = createEventLog(table, { now, newId: randomUUID, schemaBaseUrl: 'http://jobwire.test' });
  for (const account of ['acme', 'other']) {
    const settings = { secretRef: account, pollIntervalSeconds: 120, paused: false };
    await registerAccount(table, log, { region: 'us', account, ...settings }, { now: now(), epoch: 'e1' });
  }
  let messages = 0;
  const posts: { readonly path: string; readonly body: Body }[] = [];
  const receiver = { status: 200 };
  const server = createServer(async (request, response) => {
    posts.push({ path: request.url ?? '', body: JSON.parse(await readText(request)) });
    response.writeHead(receiver.status).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  ends.push(() => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}${SECRET_PATH}`;
  const mails: string[] = [];
  const smtp = new SMTPServer({
    ...{ logger: false, authOptional: true, disabledCommands: ['STARTTLS'] },
    onData(stream, _session, done) {
      void readText(stream).then((raw) => {
        mails.push(raw);
        done();
      });
    },
  });
  smtp.listen(0, '127.0.0.1');
  await once(smtp.server, 'listening');
  const { port } = smtp.server.address() as AddressInfo;
  const mailer = createSmtpTransport({ from: 'jobwire@shop.example', host: '127.0.0.1', port });
  ends.push(
    () => smtp.close(),
    () => mailer.close(),
  );
  const targets = await openSealedTexts(table, new Uint8Array(32).fill(5));
  const connections = createConnectionPool({ allowPrivateNetworks: true });
  ends.push(() => connections.close());
  const sending = { targets, connections, mailer, dashboardUrl: 'https://jobwire.example/' };
  const api = createApi({
    ...{ table, log, now, regions: ['us'] },
    ...apiParts(table, KEY, now, ['us']),
    alerts: { rules: { table, now, targets, allowPrivateNetworks: true, canMail: true }, sending },
  });
  const ask = async (
    method: string,
    path: string,
    { body, key = KEY, etag }: { body?: object; key?: string; etag?: string } = {},
  ) => {
    const response = await api.request(`/v1/alert-rules${path}`, {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        ...(body ? { 'content-type': 'application/json' } : {}),
        ...(etag === undefined ? {} : { 'if-match': etag }),
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const text = await response.text();
    return {
      status: response.status,
      etag: response.headers.get('etag') ?? '',
      body: (text === '' ? {} : JSON.parse(text)) as Body,
    };
  };
  const createRule = async (more: object = {}) => {
    const target = { kind: 'webhook', url };
    const rule = { id: 'dead', name: 'Dead events', condition: 'dead_events', threshold: 0, target };
    const created = await ask('POST', '', { body: { ...rule, ...more } });
    expect([created.status, created.body.detail]).toEqual([201, undefined]);
    return created;
  };
  const dead = keys.dead('us', 'erp', 'acme', 1);
  /** Reported results of messages: the rule and the problem. */
  const results: [string, string | null][] = [];
  const onMessage: AlertDeps['onMessage'] = ({ region, id }, problem) =>
    void results.push([`${region}/${id}`, problem]);
  const evaluate = () => evaluateAlerts({ ...{ table, history, now, onMessage }, ...sending }, 'us');
  return {
    ...{ clock, table, history, posts, mails, receiver, url, ask, createRule, targets, results, evaluate },
    /** Evaluates a minute later. */
    async nextMinute() {
      clock.now += MINUTE;
      return evaluate();
    },
    /** Records a message now. `age`: age of the change that it reports (ms). */
    async failMessage(account: string, state: Message['state'], age: number) {
      messages += 1;
      const observedAt = clock.now - age;
      const id = toMessageId(`e${String(messages).padStart(32, '0')}`, observedAt);
      const none = { to: null, detail: null, dueAt: null, providerId: null, text: null, segments: null };
      await recordNoMessage(
        { table, history, now, newId: randomUUID },
        {
          ...{ region: 'us', account, id, kind: 'dispatched', orderGroup: null, jobs: [1], channel: 'email' },
          ...{ ...none, state, reason: null, createdAt: observedAt, sentAt: observedAt, subject: 'x' },
          ...{ attempts: 1, repeats: 0 },
        },
      );
    },
    /** Adds or removes a dead event of an endpoint of `acme`. */
    async kill(isDead: boolean, kind = 'webhook') {
      const sink = { kind, target: url, accounts: ['acme'], types: [], paused: false };
      await table.write({ put: { ...keys.sink('us', 'erp'), ...sink } });
      await table.write(isDead ? { put: { ...dead, diedAt: clock.now } } : { delete: dead });
      expect((await table.query({ pk: deadPk('us', 'erp') })).length).toBe(isDead ? 1 : 0);
    },
    async getKey(role: 'read' | 'operate' | 'admin', accounts?: string[]) {
      const made = await createKey({ table, now }, { role, ...(accounts && { accounts }) }, OPERATOR);
      if (made.kind !== 'created') throw new Error('no key');
      return made.secret;
    },
  };
}

// biome-ignore lint/suspicious/noExplicitAny: bodies of several routes and messages
type Body = any;

describe('an alert rule', () => {
  it('posts one message when it fires and one when it is resolved', async () => {
    const world = await start();
    await world.createRule();
    expect(await world.nextMinute()).toMatchObject({ rules: 1, firing: 0, sent: 0, failed: 0 });
    await world.kill(true);
    expect(await world.nextMinute()).toMatchObject({ rules: 1, firing: 1, sent: 1, failed: 0 });
    await world.nextMinute();
    await world.kill(false);
    await world.nextMinute();
    expect(world.posts.map(({ body }) => [body.type, body.value, body.since])).toEqual([
      ['alert.firing', 1, '2026-03-02T12:02:00.000Z'],
      ['alert.resolved', 0, '2026-03-02T12:04:00.000Z'],
    ]);
    expect(world.posts[0]?.path).toBe(SECRET_PATH);
  });

  it('is evaluated once a minute, by one process only', async () => {
    const world = await start();
    await world.createRule();
    await world.kill(true);
    world.clock.now += MINUTE;
    const outcomes = await Promise.all([world.evaluate(), world.evaluate(), world.evaluate()]);
    expect(outcomes.filter((outcome) => outcome !== undefined)).toHaveLength(1);
    expect(world.posts).toHaveLength(1);
  });

  it('is evaluated although the clock was set back, and then by one process only', async () => {
    const world = await start();
    await world.createRule();
    await world.nextMinute();
    world.clock.now -= 120 * MINUTE;
    await world.kill(true);
    const outcomes = await Promise.all([world.evaluate(), world.evaluate()]);
    expect(outcomes.filter((outcome) => outcome !== undefined)).toHaveLength(1);
    expect(world.posts).toHaveLength(1);
  });

  it('shows and reports why a message was not accepted, and sends it again later', async () => {
    const world = await start();
    await world.createRule();
    await world.kill(true);
    world.receiver.status = 500;
    await world.nextMinute();
    const { state } = (await world.ask('GET', '/dead')).body;
    expect(state).toMatchObject({
      ...{ status: 'firing', sentAt: null, problem: 'The endpoint responded with status 500.' },
    });
    world.receiver.status = 204;
    await world.nextMinute();
    expect(world.posts.map(({ body }) => body.type)).toEqual(['alert.firing', 'alert.firing']);
    expect((await world.ask('GET', '/dead')).body.state).toMatchObject({ problem: null });
    expect(world.results).toEqual([
      ['us/dead', 'The endpoint responded with status 500.'],
      ['us/dead', null],
    ]);
  });

  it('has no state of a deleted rule with its id, also if an evaluation or an interrupted deletion left one', async () => {
    const world = await start();
    await world.createRule();
    await world.kill(true);
    await world.nextMinute();
    const state = await world.table.get(keys.alertState('us', 'dead'));
    expect((await world.ask('DELETE', '/dead')).status).toBe(204);
    await world.table.putMany(state ? [state] : []);
    expect((await world.createRule()).body.state).toMatchObject({ status: 'ok', sentAt: null });
    await world.nextMinute();
    expect(world.posts.map(({ body }) => body.type)).toEqual(['alert.firing', 'alert.firing']);
  });

  it('is sent to a new target in the next minute', async () => {
    const world = await start();
    await world.createRule({ target: { kind: 'webhook', url: `${world.url}/wrong` } });
    await world.kill(true);
    world.receiver.status = 500;
    for (const _ of [1, 2, 3, 4]) await world.nextMinute();
    world.receiver.status = 204;
    const changed = await world.ask('PATCH', '/dead', {
      body: { target: { kind: 'webhook', url: world.url } },
    });
    expect(changed.body.state).toMatchObject({ status: 'firing', problem: null });
    await world.nextMinute();
    expect(world.posts.at(-1)).toMatchObject({ path: SECRET_PATH, body: { type: 'alert.firing' } });
  });

  it.each([
    ['slack', (body: Body) => [body.text, body.blocks[0].text.text]],
    ['teams', (body: Body) => body.attachments[0].content.body.map(({ text }: Body) => text)],
  ] as const)('posts in the format of %s', async (kind, toTexts) => {
    const world = await start();
    await world.createRule({ name: 'Dead <events>', target: { kind, url: world.url } });
    await world.kill(true);
    await world.nextMinute();
    const texts = toTexts(world.posts[0]?.body).join('\n');
    expect(texts).toContain(kind === 'slack' ? 'Dead &lt;events&gt; (US)' : '[Alert] Dead <events> (US)');
    expect(texts).toContain('Dead events: 1 event (threshold: 0 events).');
    expect(JSON.stringify(world.posts[0]?.body)).toContain('https://jobwire.example/');
  });

  it('sends e-mails, without the links to unsubscribe that customers get', async () => {
    const world = await start();
    await world.createRule({ target: { kind: 'email', to: ['ops@acme.example', 'ann@acme.example'] } });
    await world.kill(true);
    await world.nextMinute();
    expect(world.mails).toHaveLength(2);
    const mail = await simpleParser(world.mails[0] ?? '');
    expect(mail.subject).toBe('[Alert] Dead events (US)');
    expect(mail.text).toContain('Dead events: 1 event (threshold: 0 events).');
    expect(mail.headers.has('list-unsubscribe')).toBe(false);
  });

  it('counts only the accounts of its scope', async () => {
    const world = await start();
    await world.createRule({ accounts: ['other'] });
    await world.kill(true);
    expect(await world.nextMinute()).toMatchObject({ firing: 0 });
  });

  it.each(['webhook', 'sqs'])(
    'measures failing endpoints of the kind %s in minutes, and counts their dead events',
    async (kind) => {
      const world = await start();
      await world.createRule({ id: 'failing', condition: 'endpoint_failing', threshold: 10 });
      await world.createRule();
      await world.kill(true, kind);
      expect(await world.nextMinute()).toMatchObject({ firing: 1 });
      await world.kill(false, kind);
      const failingSince = world.clock.now - 9 * MINUTE;
      await world.table.write({ update: keys.sink('us', 'erp'), set: { failingSince } });
      expect(await world.nextMinute()).toMatchObject({ firing: 0 });
      expect(await world.nextMinute()).toMatchObject({ firing: 1 });
      expect((await world.ask('GET', '/failing')).body.state).toMatchObject({ value: 11 });
    },
  );

  it('measures accounts that are not observed in minutes, except paused ones', async () => {
    const world = await start();
    await world.createRule({ id: 'blind', condition: 'account_not_observed', threshold: 10 });
    const observe = (account: string, at: number) =>
      world.table.write({
        update: keys.status({ region: 'us', account }),
        set: { lastGoodCrawlStartedAt: at },
      });
    await observe('acme', world.clock.now - 9 * MINUTE);
    await observe('other', world.clock.now);
    expect(await world.nextMinute()).toMatchObject({ firing: 0 });
    expect(await world.nextMinute()).toMatchObject({ firing: 1 });
    expect((await world.ask('GET', '/blind')).body.state).toMatchObject({ value: 11 });
    await world.table.write({
      update: keys.account({ region: 'us', account: 'acme' }),
      set: { paused: true },
    });
    expect(await world.nextMinute()).toMatchObject({ firing: 0 });
  });

  it('counts messages of its accounts that failed in the last 24 hours, also if the change is older', async () => {
    const world = await start();
    const rule = { condition: 'messages_failed', threshold: 1 };
    await world.createRule({ ...rule, id: 'failed' });
    await world.createRule({ ...rule, id: 'of-other', threshold: 0, accounts: ['other'] });
    await world.failMessage('acme', 'bounced', 2 * DAY);
    await world.failMessage('acme', 'sent', 0);
    expect(await world.nextMinute()).toMatchObject({ rules: 2, firing: 0 });
    await world.failMessage('acme', 'failed', 0);
    expect(await world.nextMinute()).toMatchObject({ firing: 1 });
    expect(world.posts.map(({ body }) => [body.rule, body.value])).toEqual([['failed', 2]]);
    await world.failMessage('other', 'unknown', 0);
    expect(await world.nextMinute()).toMatchObject({ firing: 2 });
    world.clock.now += DAY;
    expect(await world.nextMinute()).toMatchObject({ firing: 0 });
  });

  it('sends a test message without changing its state', async () => {
    const world = await start();
    await world.createRule({ enabled: false });
    expect((await world.ask('POST', '/dead/test')).body).toEqual({ sent: true, message: null });
    world.receiver.status = 404;
    expect((await world.ask('POST', '/dead/test')).body).toEqual({
      ...{ sent: false, message: 'The endpoint responded with status 404.' },
    });
    expect(world.posts.map(({ body }) => body.type)).toEqual(['alert.test', 'alert.test']);
    expect((await world.ask('GET', '/dead')).body.state).toMatchObject({ status: 'ok', sentAt: null });
    expect(await world.nextMinute()).toBeUndefined();
  });
});

it('lists rules ordered by id', async () => {
  const world = await start();
  for (const id of ['late-jobs', 'late', 'later']) await world.createRule({ id });
  const { body } = await world.ask('GET', '');
  expect(body.alertRules.map(({ id }: Body) => id)).toEqual(['late', 'late-jobs', 'later']);
});

describe('the target of a rule', () => {
  it('is a secret: encrypted in the table, and in no response', async () => {
    const world = await start();
    const created = await world.createRule();
    const listed = await world.ask('GET', '');
    const changed = await world.ask('PATCH', '/dead', { body: { threshold: 3 } });
    for (const { body } of [created, listed, changed]) expect(JSON.stringify(body)).not.toContain('c4n4ry');
    expect(changed.body.target).toEqual({ kind: 'webhook', to: null, host: new URL(world.url).host });
    const stored = await world.table.query({ pk: alertTargetPk('us') });
    expect(stored).toHaveLength(1);
    const bytes = stored.map(({ sealed }) => Buffer.from(sealed as Uint8Array).toString('latin1'));
    expect(bytes.join('')).not.toContain('c4n4ry');
  });

  it('is replaced by a change, and removed with the rule', async () => {
    const world = await start();
    await world.createRule();
    const target = { kind: 'email', to: ['ops@acme.example'] };
    const changed = await world.ask('PATCH', '/dead', { body: { target } });
    expect(changed.body.target).toEqual({ ...target, host: null });
    expect(await world.table.query({ pk: alertTargetPk('us') })).toHaveLength(1);
    const stale = await world.ask('PATCH', '/dead', { body: { target }, etag: '"1"' });
    expect(stale.status).toBe(412);
    expect(await world.table.query({ pk: alertTargetPk('us') })).toHaveLength(1);
    expect((await world.ask('DELETE', '/dead')).status).toBe(204);
    expect(await world.table.query({ pk: alertTargetPk('us') })).toEqual([]);
    expect((await world.ask('GET', '/dead')).status).toBe(404);
  });
});

describe('keys', () => {
  it('change rules only with the role admin, and see masked addresses with the role read', async () => {
    const world = await start();
    await world.createRule({ target: { kind: 'email', to: ['ops@acme.example'] } });
    const [reader, operator] = [await world.getKey('read'), await world.getKey('operate')];
    const seen = await Promise.all(
      [reader, operator].map(async (key) => (await world.ask('GET', '/dead', { key })).body.target.to),
    );
    expect(seen).toEqual([['o•••@a•••.example'], ['ops@acme.example']]);
    for (const [method, path] of [
      ...[['PATCH', '/dead'] as const, ['DELETE', '/dead'] as const, ['POST', '/dead/test'] as const],
    ]) {
      const body = method === 'PATCH' ? { threshold: 1 } : undefined;
      const answer = await world.ask(method, path, { key: operator, ...(body && { body }) });
      expect([method, path, answer.status]).toEqual([method, path, 403]);
    }
  });

  it('of some accounts see and create only rules for these accounts', async () => {
    const world = await start();
    await world.createRule();
    await world.createRule({ id: 'of-acme', accounts: ['acme'] });
    await world.createRule({ id: 'of-both', accounts: ['acme', 'other'] });
    const key = await world.getKey('admin', ['acme']);
    const { body } = await world.ask('GET', '', { key });
    expect(body.alertRules.map(({ id }: Body) => id)).toEqual(['of-acme']);
    for (const id of ['dead', 'of-both']) {
      expect((await world.ask('GET', `/${id}`, { key })).status).toBe(404);
      expect((await world.ask('DELETE', `/${id}`, { key })).status).toBe(404);
    }
    const rule = {
      name: 'x',
      condition: 'late_jobs',
      threshold: 1,
      target: { kind: 'webhook', url: world.url },
    };
    expect((await world.ask('POST', '', { key, body: rule })).status).toBe(422);
    expect((await world.ask('POST', '', { key, body: { ...rule, accounts: ['other'] } })).status).toBe(422);
    expect((await world.ask('POST', '', { key, body: { ...rule, accounts: ['acme'] } })).status).toBe(201);
    const widened = await world.ask('PATCH', '/of-acme', { key, body: { accounts: null } });
    expect(widened.status).toBe(422);
  });
});

it('rejects accounts that its region does not have, except those that it named before they were deleted', async () => {
  const world = await start();
  const change = async (accounts: readonly string[]) =>
    (await world.ask('PATCH', '/dead', { body: { accounts } })).body.detail;
  await world.createRule({ accounts: ['acme'] });
  expect(await change(['acme', 'nobody'])).toBe(
    'accounts must contain only accounts of region us; "nobody" is not an account of this region.',
  );
  await world.table.write({ delete: keys.account({ region: 'us', account: 'acme' }) });
  expect(await change(['acme', 'other'])).toBe(undefined);
});

it('rejects invalid rules with an error message that names the field', async () => {
  const world = await start();
  const rule = {
    name: 'x',
    condition: 'late_jobs',
    threshold: 1,
    target: { kind: 'webhook', url: world.url },
  };
  const details = async (more: object) =>
    (await world.ask('POST', '', { body: { ...rule, ...more } })).body.detail;
  expect(await details({ condition: 'weather' })).toMatch(/^condition must be one of late_jobs, /);
  expect(await details({ repeatMinutes: 1 })).toBe('repeatMinutes must be an integer from 5 to 10080.');
  expect(await details({ target: { kind: 'slack', url: 'ftp://x' } })).toMatch(
    /^target.url is not accepted\. /,
  );
  expect(await details({ target: { kind: 'email', to: ['nobody'] } })).toBe(
    'target.to[0] must be an e-mail address.',
  );
  expect(await details({ condition: 'notifications_delayed', accounts: ['acme'] })).toMatch(
    /^accounts cannot/,
  );
});
