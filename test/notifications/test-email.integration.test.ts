/** Test e-mails: who can send them to which addresses, through a real SMTP server. */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { simpleParser } from 'mailparser';
import { SMTPServer } from 'smtp-server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSmtpTransport } from '../../shared/notifications/smtp.ts';
import { suppress } from '../../shared/notifications/suppressions.ts';
import { TEST_EMAILS_PER_HOUR } from '../../shared/notifications/test-email.ts';
import { historySchema } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import { apiParts } from '../support/api.ts';
import { type ApiWorld, BOOTSTRAP, createApiWorld, OWN } from '../support/api-world.ts';

const received: { readonly to: readonly string[]; readonly raw: string }[] = [];
const ends: (() => unknown)[] = [];
let world: ApiWorld;
/** Whether the server rejects all recipients. */
let isClosed = false;

beforeAll(async () => {
  const server = new SMTPServer({
    ...{ logger: false, authOptional: true, disabledCommands: ['STARTTLS'] },
    onRcptTo: (_address, _session, done) =>
      done(isClosed ? Object.assign(new Error('No such mailbox'), { responseCode: 550 }) : undefined),
    onData(stream, session, done) {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        const to = session.envelope.rcptTo.map(({ address }) => address);
        received.push({ to, raw: Buffer.concat(chunks).toString() });
        done();
      });
    },
  });
  server.listen(0, '127.0.0.1');
  await once(server.server, 'listening');
  ends.push(() => server.close());
  const { port } = server.server.address() as AddressInfo;
  const mailer = createSmtpTransport({ from: 'jobwire@shop.example', host: '127.0.0.1', port });
  ends.push(() => mailer.close());
  const [table, history] = [createMemoryTable(), createMemoryTable(historySchema)];
  const { manage } = apiParts(table, BOOTSTRAP);
  world = await createApiWorld({
    ...{ table, history, api: { manage: { ...manage, mailer } } },
    end: (stop) => ends.push(stop),
  });
}, 60_000);
afterAll(async () => {
  for (const end of ends.reverse()) await end();
});

// biome-ignore lint/suspicious/noExplicitAny: responses of several routes
type Body = any;

async function send(body: object, by: keyof ApiWorld['keys'] = 'operate own') {
  const response = await world.app.request(`/v1/accounts/${OWN}/notifications/test`, {
    method: 'POST',
    headers: { authorization: `Bearer ${world.keys[by].secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({ kind: 'dispatched', ...body }),
  });
  return { status: response.status, body: (await response.json()) as Body };
}

const ask = async (path: string, method = 'GET', body?: object) => {
  const response = await world.app.request(`/v1/accounts/${OWN}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${world.keys['admin own'].secret}`,
      ...(body ? { 'content-type': 'application/json' } : {}),
    },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  return (await response.json()) as Body;
};

describe('a test e-mail', () => {
  const to = 'orders@acme.example';

  it('is accepted only for addresses that the account has entered', async () => {
    const strangers = ['stranger@example.com', 'no address'];
    for (const stranger of strangers) {
      const { status, body } = await send({ to: stranger }, 'admin all');
      expect([status, body.type]).toEqual([422, 'urn:jobwire:problem:unprocessable-content']);
      expect(body.detail).not.toContain(stranger);
    }
    expect(received).toEqual([]);
  });

  it('arrives with the text of the preview, marked as a test, and is not in the history', async () => {
    const settings = await ask('/notifications');
    const { enabled, branding } = settings;
    await ask('/notifications', 'PUT', { enabled, branding, replyTo: to });
    const before = (await ask('/messages')).messages;
    const preview = await ask('/notifications/preview', 'POST', { kind: 'dispatched', channel: 'email' });
    const { status, body } = await send({ to: ` ${to.toUpperCase()} ` });
    expect([status, body]).toEqual([
      200,
      { sent: true, subject: `[Test] ${preview.subject}`, message: null },
    ]);
    const mail = await simpleParser(received[0]?.raw ?? '');
    expect(mail.subject).toBe(`[Test] ${preview.subject}`);
    expect(mail.text?.trim()).toBe(preview.text.trim());
    expect(received[0]?.to.map((one) => one.toLowerCase())).toEqual([to]);
    expect((await ask('/messages')).messages).toEqual(before);
  });

  it('is rejected by the roles and keys that cannot send one', async () => {
    const count = received.length;
    expect((await send({ to }, 'read own')).status).toBe(403);
    expect((await send({ to }, 'operate foreign')).status).toBe(404);
    // Only those who can save a template can send the text of one.
    const template = { subject: 'Win a prize', text: 'Click here' };
    expect((await send({ to, template })).status).toBe(403);
    expect(received).toHaveLength(count);
    const { body } = await send({ to, template: { subject: 'A draft' } }, 'admin own');
    expect(body).toMatchObject({ sent: true, subject: '[Test] A draft' });
  });

  it('is accepted for a recipient of the whole account, and not for one of a single job', async () => {
    await ask('/recipients', 'POST', { id: 'all', email: 'all@acme.example' });
    await ask('/recipients', 'POST', { id: 'one', email: 'one@acme.example', jobNumber: 1 });
    expect((await send({ to: 'all@acme.example' })).body.sent).toBe(true);
    expect((await send({ to: 'one@acme.example' })).status).toBe(422);
  });

  it('reports why the mail server did not accept it', async () => {
    isClosed = true;
    const { body } = await send({ to });
    isClosed = false;
    expect(body).toMatchObject({ sent: false, message: 'The mail server rejected the mail (550).' });
  });

  it('is never sent to a suppressed address', async () => {
    const deps = { table: world.table, now: () => world.now(), newId: () => 'suppressing' };
    const count = received.length;
    const address = { channel: 'email', address: to } as const;
    expect((await suppress(deps, { region: 'us', account: OWN }, address, 'bounced')).kind).toBe(
      'suppressed',
    );
    const { status, body } = await send({ to });
    expect([status, body.detail]).toEqual([422, 'to is a suppressed address. Lift its suppression first.']);
    expect(received).toHaveLength(count);
  });

  it(`can be sent ${TEST_EMAILS_PER_HOUR} times an hour for an account`, async () => {
    const outcomes: number[] = [];
    for (let n = 0; n <= TEST_EMAILS_PER_HOUR; n += 1) {
      outcomes.push((await send({ to: 'all@acme.example' })).status);
    }
    expect(outcomes.at(-1)).toBe(409);
    expect(received.length).toBeLessThanOrEqual(TEST_EMAILS_PER_HOUR);
  });
});
