/** E-mails and SMS on their way out: over real sockets to an SMTP server, and to servers that speak as SES and SNS do. */
import type { AddressInfo } from 'node:net';
import { simpleParser } from 'mailparser';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import { afterEach, describe, expect, test } from 'vitest';
import { createSmtpTransport, type SmtpConfig } from '../shared/notifications/email.ts';
import type { OutgoingEmail } from '../shared/notifications/model.ts';

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

describe('a mail by SMTP', () => {
  test('arrives with both bodies, and the headers that mail programs and servers go by', async () => {
    const server = await startSmtp();
    const transport = connect(server);
    expect(await transport.send(aMail())).toMatchObject({ kind: 'accepted' });
    const mail = await simpleParser(server.mails[0] ?? '');
    expect(mail.subject).toBe('Your order is on its way');
    expect(mail.text?.trim()).toBe('Job 1 was dispatched.');
    expect(mail.html).toBe('<p>Job 1 was dispatched.</p>');
  });
});

// Servers

interface Smtp {
  readonly port: number;
  readonly mails: string[];
}

async function startSmtp(options: SMTPServerOptions = {}): Promise<Smtp> {
  const mails: string[] = [];
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onData(stream, _session, done) {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        mails.push(Buffer.concat(chunks).toString('latin1'));
        done(null, `queued as Q${mails.length}`);
      });
    },
    ...options,
  });
  server.on('error', () => {});
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  open.push(() => new Promise<void>((resolve) => server.close(resolve)));
  return { port: (server.server.address() as AddressInfo).port, mails };
}

function connect({ port }: { readonly port: number }, config: Partial<SmtpConfig> = {}) {
  const transport = createSmtpTransport({ from: 'orders@shop.example', host: '127.0.0.1', port, ...config });
  open.push(() => transport.close());
  return transport;
}

function aMail(changes: Partial<OutgoingEmail> = {}): OutgoingEmail {
  return {
    messageId: 'm1-a@shop.example',
    references: [],
    fromName: 'Acme Print',
    to: { name: 'Jo Doe', address: 'jo@customer.example' },
    replyTo: null,
    subject: 'Your order is on its way',
    html: '<p>Job 1 was dispatched.</p>',
    text: 'Job 1 was dispatched.',
    unsubscribeUrl: 'https://jobwire.example/v1/unsubscribe/token',
    tags: { region: 'us', account: 'acme', message: 'm1-a' },
    ...changes,
  };
}
