/** The demo's mailbox: messages received over real sockets, and their safe display in a browser. */

import { connect } from 'node:net';
import { text as readText } from 'node:stream/consumers';
import { PublishCommand, SNSClient } from '@aws-sdk/client-sns';
import { simpleParser } from 'mailparser';
import { afterEach, describe, expect, test } from 'vitest';
import { type Mailbox, startMailbox } from '../../local/mailbox.ts';
import { createSnsSmsTransport } from '../../shared/notifications/sms.ts';
import { createSmtpTransport } from '../../shared/notifications/smtp.ts';
import type { OutgoingEmail } from '../../shared/notifications/types.ts';

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

const URL_OF_API = 'http://127.0.0.1:4000';

async function started(): Promise<Mailbox> {
  const mailbox = await startMailbox({ publicUrl: URL_OF_API });
  open.push(() => mailbox.stop());
  return mailbox;
}

function transportTo({ smtp }: Mailbox) {
  const transport = createSmtpTransport({ from: 'orders@jobwire.example', ...smtp });
  open.push(() => transport.close());
  return transport;
}

const HOSTILE = '<img src=x onerror="alert(1)"><script>alert(2)</script>';

/** A mail with customer text that would be harmful as markup. */
function mail(changed: Partial<OutgoingEmail> = {}): OutgoingEmail {
  return {
    messageId: 'one@jobwire.example',
    references: [],
    fromName: 'Acme',
    to: { name: 'Ann', address: 'ann@customer.example' },
    replyTo: null,
    subject: `Order ${HOSTILE}`,
    html: `<!doctype html><html><head><title>x</title></head><body>${HOSTILE}<a href="https://trace.example/1">Track</a></body></html>`,
    text: `Acme\n\nOrder ${HOSTILE}\n=====\n\nOn its way: ${HOSTILE}\nhttps://trace.example/1\n`,
    unsubscribeUrl: `${URL_OF_API}/v1/unsubscribe/token`,
    tags: { region: 'us', account: 'acme', message: 'm1' },
    ...changed,
  };
}

/** The browser's own requests of the page. */
async function ask(mailbox: Mailbox, path: string, init?: RequestInit): Promise<Response> {
  return mailbox.fetch(new Request(`${URL_OF_API}/mailbox${path}`, init));
}

async function list(mailbox: Mailbox): Promise<{ id: number; subject: string; repeat: boolean }[]> {
  const answer = await ask(mailbox, '/messages');
  return ((await answer.json()) as { messages: { id: number; subject: string; repeat: boolean }[] }).messages;
}

describe('the mailbox', () => {
  test('stores a mail as received, and parses it', async () => {
    const mailbox = await started();
    expect(await transportTo(mailbox).send(mail())).toMatchObject({ kind: 'accepted' });
    const [caught] = await list(mailbox);
    expect(caught).toMatchObject({
      channel: 'email',
      from: { name: 'Acme', address: 'orders@jobwire.example' },
      to: { name: 'Ann', address: 'ann@customer.example' },
      subject: `Order ${HOSTILE}`,
      preview: `On its way: ${HOSTILE}`,
      repeat: false,
    });
    const path = '/v1/unsubscribe/token';
    expect(await (await ask(mailbox, `/messages/${caught?.id}`)).json()).toMatchObject({
      text: expect.stringContaining(HOSTILE),
      unsubscribe: { url: `${URL_OF_API}${path}`, oneClick: true, path },
      headers: expect.arrayContaining([['Message-ID', '<one@jobwire.example>']]),
    });
    const source = await (await ask(mailbox, `/messages/${caught?.id}/source`)).text();
    expect((await simpleParser(source)).messageId).toBe('<one@jobwire.example>');
  });

  test('displays a mail in a sandboxed document; all else is data', async () => {
    const mailbox = await started();
    await transportTo(mailbox).send(mail());
    const html = await ask(mailbox, '/messages/1/html');
    const policy = html.headers.get('content-security-policy') ?? '';
    const rules = new Map(policy.split('; ').map((rule) => [rule.split(' ')[0], rule.split(' ').slice(1)]));
    expect(rules.get('sandbox')).toEqual(['allow-popups', 'allow-popups-to-escape-sandbox']);
    expect(rules.get('default-src')).toEqual(["'none'"]);
    expect(rules.get('img-src'), 'no request to third parties').toEqual(['data:']);
    expect(rules.has('script-src')).toBe(false);
    expect(await html.text()).toContain('<head><base target="_blank">');
    for (const path of ['/messages', '/messages/1', '/messages/1/source', '/nothing', '/stream']) {
      const answer = await ask(mailbox, path);
      expect(answer.headers.get('content-type'), path).toMatch(
        /^(application\/json|text\/(plain|event-stream))/,
      );
      expect(answer.headers.get('content-security-policy'), path).toContain("default-src 'none'");
      expect(answer.headers.get('x-content-type-options'), path).toBe('nosniff');
      await answer.body?.cancel();
    }
  });

  test('has a page without external requests', async () => {
    const mailbox = await started();
    const page = await ask(mailbox, '');
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    const policy = page.headers.get('content-security-policy') ?? '';
    expect(policy).not.toMatch(/https?:|\*|unsafe/);
    const files = [...(await page.text()).matchAll(/(?:src|href)="(\/mailbox\/[^"]+)"/g)].map(
      ([, path]) => path,
    );
    expect(files.toSorted()).toEqual(['/mailbox/messages', '/mailbox/page.css', '/mailbox/page.js']);
    for (const name of ['page.css', 'page.js']) {
      const answer = await ask(mailbox, `/${name}`);
      expect(answer.status).toBe(200);
      expect(await answer.text()).not.toMatch(/innerHTML|insertAdjacentHTML|document\.write|@import/);
    }
  });

  test('streams new messages live, and missed ones after a reconnection', async () => {
    const mailbox = await started();
    const transport = transportTo(mailbox);
    const stream = await ask(mailbox, '/stream');
    await transport.send(mail({ messageId: 'a@x.example', subject: 'first' }));
    expect(await getSubjects(stream, 1)).toEqual(['first']);
    await transport.send(mail({ messageId: 'b@x.example', subject: 'second' }));
    await transport.send(mail({ messageId: 'b@x.example', subject: 'second' }));
    const again = await ask(mailbox, '/stream?after=0', { headers: { 'last-event-id': '1' } });
    expect(await getSubjects(again, 2)).toEqual(['second', 'second']);
    expect(
      (await list(mailbox)).map(({ repeat }) => repeat),
      'newest first',
    ).toEqual([true, false, false]);
  });

  test('keeps the latest 500, and rejects a mail of more than a megabyte', async () => {
    const mailbox = await started();
    const transport = transportTo(mailbox);
    for (let sent = 0; sent < 505; sent += 5) {
      const five = [1, 2, 3, 4, 5].map((one) =>
        mail({ messageId: `${sent + one}@x.example`, html: 'x', text: 'x' }),
      );
      await Promise.all(five.map((one) => transport.send(one)));
    }
    const kept = await list(mailbox);
    expect([kept.length, kept[0]?.id, kept.at(-1)?.id]).toEqual([500, 505, 6]);
    expect((await ask(mailbox, '/messages/5')).status).toBe(404);
    const long = await transport.send(mail({ messageId: 'long@x.example', text: 'x'.repeat(1_100_000) }));
    expect(long).toMatchObject({ kind: 'rejected' });
    expect((await list(mailbox))[0]?.id).toBe(505);
    expect((await ask(mailbox, '/messages', { method: 'DELETE' })).status).toBe(204);
    expect(await list(mailbox)).toEqual([]);
  }, 60_000);

  test('stops during an open mail or stream', async () => {
    const mailbox = await startMailbox();
    const stream = await ask(mailbox, '/stream');
    const socket = connect(mailbox.smtp.port, mailbox.smtp.host);
    socket.on('error', () => {});
    await new Promise((resolve) => socket.once('data', resolve));
    socket.write('EHLO me\r\nMAIL FROM:<a@x.example>\r\n');
    await mailbox.stop();
    expect(await stream.text()).toContain('event: box');
    socket.destroy();
  });

  test('accepts SMS like SNS, and stores opt-outs by STOP', async () => {
    const mailbox = await started();
    const { url, close } = await served(mailbox);
    open.push(close);
    const aws = {
      region: 'us-east-1',
      endpoint: `${url}/mailbox/sns`,
      credentials: { accessKeyId: 'demo', secretAccessKey: 'demo' },
    };
    const sms = createSnsSmsTransport({ aws, senderId: null });
    const text = 'Acme: Your order 1 & 2 is on its way – €';
    const sent = await sms.send({ to: '+61491570156', text, senderId: 'Acme' });
    expect(sent).toMatchObject({ kind: 'accepted', providerId: expect.any(String) });
    const whole = await (await ask(mailbox, '/messages/1')).json();
    expect(whole).toMatchObject({
      ...{ channel: 'sms', text, subject: null, optedOut: false },
      ...{ from: { address: 'Acme' }, to: { address: '+61491570156' } },
      sms: { segments: 1, encoding: 'UCS-2' },
    });
    await ask(mailbox, `/opted-out/${encodeURIComponent('+61491570156')}`, { method: 'PUT' });
    expect(await sms.send({ to: '+61491570156', text, senderId: null })).toMatchObject({
      kind: 'rejected',
      address: 'opted_out',
    });
    // A sender whose check failed publishes without it.
    const unchecked = new SNSClient(aws).send(
      new PublishCommand({ PhoneNumber: '+61491570156', Message: text }),
    );
    await expect(unchecked).rejects.toThrow('opted out');
    expect(await list(mailbox)).toHaveLength(1);
  });
});

/** The subjects of the first messages of a stream, which is closed then. */
async function getSubjects(stream: Response, count: number): Promise<string[]> {
  const subjects: string[] = [];
  let said = '';
  for await (const chunk of stream.body ?? []) {
    said += new TextDecoder().decode(chunk);
    const found = [...said.matchAll(/^data: (.*"subject".*)$/gm)];
    subjects.splice(0, subjects.length, ...found.map(([, json]) => JSON.parse(json ?? '').subject as string));
    if (subjects.length >= count) break;
  }
  return subjects;
}

/** Its page and SNS on a real port. */
async function served(mailbox: Mailbox): Promise<{ url: string; close: () => Promise<void> }> {
  const { createServer } = await import('node:http');
  const server = createServer(async (request, response) => {
    const answer = await mailbox.fetch(
      new Request(`http://127.0.0.1${request.url}`, { method: 'POST', body: await readText(request) }),
    );
    response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
