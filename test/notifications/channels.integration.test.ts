/**
 * The transports of e-mails and SMS: over real sockets to an SMTP server, and to servers that emulate SES and SNS. One file:
 * the tests of SMTP, SES and SNS share the comparison of outcomes and the local servers.
 */
import { createHash, createPublicKey, generateKeyPairSync, type KeyObject, verify } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import fc from 'fast-check';
import { simpleParser } from 'mailparser';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { startFauxqs } from '../../local/queues.ts';
import { createSesTransport, type SesConfig } from '../../shared/notifications/ses.ts';
import { parseSesEvent } from '../../shared/notifications/ses-feedback.ts';
import { createSnsSmsTransport } from '../../shared/notifications/sms.ts';
import { checkSmtp, createSmtpTransport, type SmtpConfig } from '../../shared/notifications/smtp.ts';
import type { OutgoingEmail, SendOutcome } from '../../shared/notifications/types.ts';
import { makeCertificate } from '../support/certificates.ts';
import { runs } from '../support/runs.ts';

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

describe('an e-mail', () => {
  test('has both bodies and the headers that mail programs and servers require', async () => {
    const server = await startSmtp();
    const mail = aMail({
      references: ['m0-a@shop.example', 'm0-b@shop.example'],
      replyTo: 'help@acme.example',
      unsubscribeUrl: `https://jobwire.example/v1/unsubscribe/${'t'.repeat(200)}`,
    });
    expect(await connect(server).send(mail)).toEqual({ kind: 'accepted', providerId: 'Q1' });
    const raw = server.mails[0] ?? '';
    const parsed = await simpleParser(raw);
    expect(parsed.subject).toBe('Your order is on its way');
    expect(parsed.text).toBe('Job 1 was dispatched.');
    expect(parsed.html).toBe('<p>Job 1 was dispatched.</p>');
    expect(parsed.attachments).toEqual([]);
    expect(parsed.from?.value).toEqual([{ name: 'Acme Print', address: 'orders@shop.example' }]);
    expect(parsed.to?.value).toEqual([{ name: 'Jo Doe', address: 'jo@customer.example' }]);
    expect(parsed.replyTo?.value).toEqual([{ name: '', address: 'help@acme.example' }]);
    expect(parsed.messageId).toBe('<m1-a@shop.example>');
    expect(parsed.inReplyTo).toBe('<m0-b@shop.example>');
    expect(parsed.references).toEqual(['<m0-a@shop.example>', '<m0-b@shop.example>']);
    // Verbatim, and each on one line: RFC 8058.
    const lines = getHeaders(raw);
    expect(lines).toContain(`List-Unsubscribe: <https://jobwire.example/v1/unsubscribe/${'t'.repeat(200)}>`);
    expect(lines).toContain('List-Unsubscribe-Post: List-Unsubscribe=One-Click');
    expect(lines).toContain('Auto-Submitted: auto-generated');
    expect(lines).toContain('X-Jobwire-Message: us/acme/m1-a');
    expect(raw.indexOf('text/plain')).toBeLessThan(raw.indexOf('text/html'));
    expect(server.envelopes).toEqual(['orders@shop.example → jo@customer.example']);
  });

  test('keeps its headers and content for any names, subject and bodies', async () => {
    const server = await startSmtp();
    const transport = connect(server);
    const usual = [
      'auto-submitted',
      'content-type',
      'date',
      'from',
      'list-unsubscribe',
      'list-unsubscribe-post',
      'message-id',
      'mime-version',
      'subject',
      'to',
      'x-auto-response-suppress',
      'x-jobwire-message',
    ];
    const nasty = fc.constantFrom(
      '\r\nBcc: evil@evil.example',
      '\n\n<p>',
      '\r',
      '\0',
      '"',
      '\\',
      '<a@b.example>',
    );
    const words = fc
      .array(
        fc.oneof(
          fc.string({ unit: 'grapheme', maxLength: 40 }),
          nasty,
          fc.constantFrom('ä'.repeat(90), '📦', ','),
        ),
        {
          maxLength: 5,
        },
      )
      .map((parts) => parts.join(''));
    const body = fc.array(fc.oneof(words, fc.constantFrom('.', '..', 'x'.repeat(3_000), 'From x', ' ')), {
      minLength: 1,
      maxLength: 6,
    });
    await fc.assert(
      fc.asyncProperty(words, words, words, body, async (fromName, name, subject, lines) => {
        server.mails.length = 0;
        const text = `Hello\n${lines.join('\n')}`.replaceAll(/\r\n?|\0/g, '\n');
        const mail = aMail({
          fromName,
          to: { name, address: 'jo@customer.example' },
          subject,
          text,
          html: `<p>${text}</p>`,
        });
        expect((await transport.send(mail)).kind).toBe('accepted');
        const raw = server.mails[0] ?? '';
        // Content that servers may reject, or read as the end of the mail.
        expect(raw).toMatch(/^[\t\r\n\x20-\x7e]*$/);
        expect(raw.replaceAll('\r\n', '')).not.toMatch(/[\r\n]/);
        expect(Math.max(...raw.split('\r\n').map(({ length }) => length))).toBeLessThanOrEqual(998);
        const parsed = await simpleParser(raw);
        const keys = parsed.headerLines.map(({ key }) => key).sort();
        expect(keys.filter((key) => key !== 'subject')).toEqual(usual.filter((key) => key !== 'subject'));
        expect(parsed.from?.value).toEqual([{ name: oneLine(fromName), address: 'orders@shop.example' }]);
        expect(parsed.to?.value).toEqual([{ name: oneLine(name), address: 'jo@customer.example' }]);
        expect(parsed.subject ?? '').toBe(oneLine(subject));
        expect(decodedText(raw)).toBe(text);
      }),
      runs(15, 60),
    );
    expect(server.envelopes.every((line) => line === 'orders@shop.example → jo@customer.example')).toBe(true);
  });

  test('goes to internationalized domains, and is rejected for an invalid address', async () => {
    const server = await startSmtp();
    const transport = connect(server);
    const to = (address: string) => transport.send(aMail({ to: { name: null, address } }));
    expect((await to("o'neil+x@käse.Example")).kind).toBe('accepted');
    // The server returns it decoded.
    expect(server.envelopes).toEqual(["orders@shop.example → o'neil+x@käse.example"]);
    expect(server.mails[0]).toContain("To: o'neil+x@xn--kse-qla.example\r\n");
    const wrong = [
      '',
      'jo',
      '@customer.example',
      'jo@',
      'jo@customer',
      'jo@[127.0.0.1]',
      'jo@127.0.0.1',
      'jo@customer.example/x',
      'jo@customer.example:25',
      'jo@x@customer.example',
      'jo@customer.example>\r\nRCPT TO:<evil@evil.example',
      'jo@customer.example, evil@evil.example',
      'jo doe@customer.example',
      'jo.@customer.example',
      'jö@customer.example',
      `${'j'.repeat(65)}@customer.example`,
      'jo@customer.example\n',
    ];
    for (const address of wrong) {
      expect([address, await to(address)]).toEqual([
        address,
        { kind: 'rejected', reason: 'The recipient’s address is not a valid e-mail address.' },
      ]);
    }
    expect(server.mails).toHaveLength(1);
  });

  test('references the first mail of its thread and the latest ones, for any thread length', async () => {
    const server = await startSmtp();
    const references = Array.from({ length: 500 }, (_, at) => `m${at}@shop.example`);
    await connect(server).send(aMail({ references }));
    const parsed = await simpleParser(server.mails[0] ?? '');
    expect(parsed.references).toHaveLength(20);
    expect(parsed.references?.[0]).toBe('<m0@shop.example>');
    expect(parsed.references?.at(-1)).toBe('<m499@shop.example>');
    await connect(server).send(aMail({ references: ['m0@shop.example'] }));
    const second = await simpleParser(server.mails[1] ?? '');
    expect([second.references, second.inReplyTo]).toEqual(['<m0@shop.example>', '<m0@shop.example>']);
  });

  test('has a DKIM signature that receivers can verify, including one-click unsubscribe', async () => {
    const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
    const server = await startSmtp();
    const transport = connect(server, { dkim: { domain: 'shop.example', selector: 's1', privateKey: pem } });
    const html = `<p>Größe</p>\n.\n${'x'.repeat(2_000)}  \n\n`;
    await transport.send(aMail({ html, subject: 'Größe '.repeat(30), references: ['m0@shop.example'] }));
    const raw = server.mails[0] ?? '';
    const { signed, ok, tags } = checkDkim(raw, publicKey);
    expect(ok).toBe(true);
    expect(tags).toMatchObject({ d: 'shop.example', s: 's1', a: 'rsa-sha256' });
    expect(signed).toEqual(
      expect.arrayContaining([
        'from',
        'to',
        'subject',
        'message-id',
        'list-unsubscribe',
        'list-unsubscribe-post',
      ]),
    );
    expect(checkDkim(raw.replace('One-Click', 'Two-Click'), publicKey).ok).toBe(false);
    expect(checkDkim(raw.replace('xxxxx', 'xxxx'), publicKey).ok).toBe(false);
  });

  test('with an invalid DKIM key throws at once', () => {
    const ec = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
    for (const privateKey of ['', 'no key', ec]) {
      const dkim = { domain: 'shop.example', selector: 's1', privateKey };
      expect(() => createSmtpTransport({ from: 'orders@shop.example', host: 'x', port: 25, dkim })).toThrow();
    }
    expect(() => createSmtpTransport({ from: 'orders', host: 'x', port: 25 })).toThrow(
      'not a valid e-mail address',
    );
  });
});

describe('an SMTP connection', () => {
  const certificate = makeCertificate('localhost');

  test('uses STARTTLS if the server offers it, and sends the password over it only', async () => {
    const server = await startSmtp(withAuth({ key: certificate.keyPem, cert: certificate.certPem }));
    const login = { host: 'localhost', ca: certificate.certPem, user: 'jobwire', password: 'secret' };
    expect((await connect(server, login).send(aMail())).kind).toBe('accepted');
    expect(server.sessions).toEqual([{ user: 'jobwire', secure: true }]);
  });

  test('uses TLS from the first byte if configured', async () => {
    const server = await startSmtp({
      ...withAuth({ key: certificate.keyPem, cert: certificate.certPem }),
      secure: true,
    });
    const login = {
      host: 'localhost',
      ca: certificate.certPem,
      secure: true,
      user: 'jobwire',
      password: 'secret',
    };
    expect((await connect(server, login).send(aMail())).kind).toBe('accepted');
    expect(server.sessions).toEqual([{ user: 'jobwire', secure: true }]);
  });

  test('rejects an untrusted certificate, and sends no password in clear text', async () => {
    const secured = await startSmtp(withAuth({ key: certificate.keyPem, cert: certificate.certPem }));
    const other = makeCertificate('mail.example', { issuer: certificate });
    const named = await startSmtp(withAuth({ key: other.keyPem, cert: other.certPem }));
    const bare = await startSmtp(withAuth({}));
    const login = { user: 'jobwire', password: 'secret' };
    const outcomes = [
      await connect(secured, { ...login, host: 'localhost' }).send(aMail()),
      await connect(named, { ...login, host: 'localhost', ca: certificate.certPem }).send(aMail()),
      // An address of this host that is not loopback.
      await connect(bare, { ...login, host: '0.0.0.0' }).send(aMail()),
    ];
    for (const outcome of outcomes) expect(outcome).toMatchObject({ kind: 'later', everything: true });
    expect([...secured.sessions, ...named.sessions, ...bare.sessions]).toEqual([]);
    expect([...secured.mails, ...named.mails, ...bare.mails]).toEqual([]);
  });

  test('that can’t be used is described by a sentence and the settings to check', async () => {
    const secured = await startSmtp(withAuth({ key: certificate.keyPem, cert: certificate.certPem }));
    const plain = await startSmtp(withAuth({}));
    const silent = createServer().listen(0, '127.0.0.1');
    await once(silent, 'listening');
    onTestFinished(() => void silent.close());
    const closed = createServer().listen(0, '127.0.0.1');
    await once(closed, 'listening');
    const { port: closedPort } = closed.address() as AddressInfo;
    closed.close();
    await once(closed, 'close');
    const check = (config: object, timeoutMs = 10_000) =>
      checkSmtp({ host: '127.0.0.1', port: 0, ...config }, timeoutMs);
    const problem = (message: RegExp, ...settings: string[]) => ({
      message: expect.stringMatching(message),
      fix: expect.stringMatching(settings.map((name) => `(?=.*notifications\\.smtp\\.${name}\\b)`).join('')),
    });
    const login = { user: 'jobwire', password: 'secret' };
    expect(await check({ ...login, port: plain.port })).toBeUndefined();
    expect(await check({ ...login, password: 'wrong', port: plain.port })).toEqual(
      problem(/ rejects the user or the password\.$/, 'user', 'password'),
    );
    expect(await check({ port: closedPort })).toEqual(
      problem(/can’t be used: the connection was refused \(ECONNREFUSED\)\.$/, 'host', 'port'),
    );
    expect(await check({ host: 'mail.invalid', port: 587 })).toEqual(
      problem(/: the host name can’t be resolved \(E[A-Z_]+\)\.$/, 'host'),
    );
    const { port } = silent.address() as AddressInfo;
    expect(await check({ port }, 100)).toEqual(problem(/ does not respond in time\.$/, 'port', 'secure'));
    expect(await check({ ...login, host: 'localhost', port: secured.port })).toEqual(
      problem(/, but TLS failed: its TLS certificate is not trusted \([A-Z_]+\)\.$/, 'secure'),
    );
    expect(await check({ port: plain.port, secure: true })).toEqual(
      problem(/, but TLS failed: the TLS handshake failed \(ERR_SSL_[A-Z_]+\)\.$/, 'secure'),
    );
  });

  test('with a wrong or missing password delays all mails', async () => {
    const server = await startSmtp(withAuth({}));
    for (const login of [{ user: 'jobwire', password: 'wrong' }, { user: 'jobwire' }, {}]) {
      const outcome = await connect(server, login).send(aMail());
      expect(outcome).toMatchObject({ kind: 'later', everything: true });
      expect(JSON.stringify(outcome)).not.toMatch(/jobwire|wrong|secret/);
    }
    expect(server.mails).toEqual([]);
  });

  test('carries one mail after another, also after a rejected mail', async () => {
    const server = await startSmtp({ onRcptTo: (to, _session, done) => done(refuses(to.address)) });
    const transport = connect(server, { connections: 1 });
    const kinds: string[] = [];
    for (const local of ['a', 'rejected', 'b', 'later', 'c']) {
      kinds.push(
        (await transport.send(aMail({ to: { name: null, address: `${local}@customer.example` } }))).kind,
      );
    }
    expect(kinds).toEqual(['accepted', 'rejected', 'accepted', 'later', 'accepted']);
    expect(server.connections()).toBe(1);
  });

  test('that breaks is replaced, and no mail is sent twice', async () => {
    const server = await startSmtp();
    const transport = connect(server, { connections: 1 });
    await transport.send(aMail({ messageId: 'm1@shop.example' }));
    // As servers close idle sessions.
    server.cut();
    expect((await transport.send(aMail({ messageId: 'm2@shop.example' }))).kind).toBe('accepted');
    expect(server.mails).toHaveLength(2);
    expect(server.connections()).toBe(2);
  });

  test('is one of a small pool: many concurrent mails all arrive, once each', async () => {
    const server = await startSmtp();
    const transport = connect(server, { connections: 3 });
    const ids = Array.from({ length: 250 }, (_, at) => `m${at}@shop.example`);
    const outcomes = await Promise.all(ids.map((messageId) => transport.send(aMail({ messageId }))));
    expect(outcomes.every(({ kind }) => kind === 'accepted')).toBe(true);
    const arrived = server.mails.map((raw) => /^Message-ID: <(.*)>\r$/m.exec(raw)?.[1]);
    expect(arrived.sort()).toEqual(ids.sort());
    expect(server.most()).toBeLessThanOrEqual(3);
  });

  test('is not opened after the transport is closed: its mails wait', async () => {
    const server = await startSmtp();
    const transport = connect(server);
    transport.close();
    expect(await transport.send(aMail())).toMatchObject({ kind: 'later', everything: true });
  });
});

describe.each([{ pipelining: true }, { pipelining: false }])(
  'an SMTP rejection, pipelining $pipelining',
  ({ pipelining }) => {
    type Stage = 'connect' | 'mail' | 'rcpt' | 'data';
    const later = (everything: boolean) => ({ kind: 'later', everything });
    const cases: readonly (readonly [stage: Stage, answer: string, outcome: object])[] = [
      ['connect', '421 4.3.2 closing', later(true)],
      ['connect', '554 5.7.1 not you', later(true)],
      ['mail', '421 4.7.0 too many', later(true)],
      ['mail', '451 4.7.1 wait', later(true)],
      ['mail', '530 5.7.0 log in', later(true)],
      ['mail', '550 5.7.1 no such sender', later(true)],
      ['rcpt', '421 4.7.0 closing', later(false)],
      ['rcpt', '450 4.2.0 greylisted', later(false)],
      ['rcpt', '451 4.7.1 greylisted', later(false)],
      ['rcpt', '452 4.2.2 mailbox full', later(false)],
      ['rcpt', '503 5.5.1 bad sequence', later(false)],
      ['rcpt', '530 5.7.0 log in', later(true)],
      ['rcpt', '550 5.1.1 user unknown', { kind: 'rejected', address: 'bounced' }],
      ['rcpt', '550 5.1.2 host unknown', { kind: 'rejected', address: 'bounced' }],
      ['rcpt', '556 5.1.10 null MX', { kind: 'rejected', address: 'bounced' }],
      ['rcpt', '550 5.2.1 disabled', { kind: 'rejected', address: 'bounced' }],
      ['rcpt', '552 5.2.2 mailbox full', { kind: 'rejected', address: undefined }],
      ['rcpt', '550 relay not permitted', { kind: 'rejected', address: undefined }],
      ['rcpt', '550 5.1.8 bad sender', { kind: 'rejected', address: undefined }],
      ['rcpt', '554 5.7.1 policy', { kind: 'rejected', address: undefined }],
      ['data', '421 4.3.2 closing', later(false)],
      ['data', '451 4.3.0 try again', later(false)],
      ['data', '452 4.3.1 disk full', later(false)],
      ['data', '550 5.1.1 user unknown', { kind: 'rejected', address: 'bounced' }],
      ['data', '552 5.3.4 too big', { kind: 'rejected', address: undefined }],
      ['data', '554 5.7.1 spam', { kind: 'rejected', address: undefined }],
    ];

    test.each(cases)('at %s with %s', async (stage, answer, expected) => {
      const server = await startSmtp({ ...refusing(stage, answer), hidePIPELINING: !pipelining });
      const outcome = await connect(server).send(aMail());
      expect(spelled(outcome)).toMatchObject(expected);
      if (outcome.kind === 'accepted') throw new Error('It was accepted.');
      // Code and status without the server's text, which may contain addresses.
      expect(outcome.reason).toContain(answer.match(/^[\d. ]*\d(?= )/)?.[0]);
      expect(outcome.reason).not.toContain(answer.replace(/^[\d. ]+/, ''));
    });
  },
);

describe('a broken SMTP connection', () => {
  test.each([
    ['before any response', { at: 'never' }, { kind: 'later', everything: true }],
    ['instead of the greeting', { at: 'greeting' }, { kind: 'later', everything: true }],
    ['instead of the answer to EHLO', { at: 'EHLO' }, { kind: 'later', everything: true }],
    ['instead of the answer to MAIL', { at: 'MAIL' }, { kind: 'later', everything: false }],
    ['instead of the answer to RCPT', { at: 'RCPT' }, { kind: 'later', everything: false }],
    ['instead of the answer to DATA', { at: 'DATA' }, { kind: 'later', everything: false }],
    ['instead of the answer to the mail', { at: '.' }, { kind: 'unknown' }],
    ['within the answer to the mail', { at: '.', with: '25' }, { kind: 'unknown' }],
    [
      'after a rejection of the mail that lacks its line end',
      { at: '.', with: '554 5.7.1 no' },
      { kind: 'rejected' },
    ],
  ] as const)('%s', async (_, script, expected) => {
    const server = await startScripted(script);
    expect(await connect(server).send(aMail())).toMatchObject(expected);
  });

  test.each([
    ['greeting', { kind: 'later', everything: true }],
    ['EHLO', { kind: 'later', everything: true }],
    ['RCPT', { kind: 'later', everything: false }],
    ['.', { kind: 'unknown' }],
  ] as const)('that stops responding at %s', async (at, expected) => {
    const server = await startScripted({ at, silent: true });
    expect(await connect(server, { silenceMs: 100 }).send(aMail())).toMatchObject(expected);
  });

  test('that sends endlessly and slowly is closed', async () => {
    const server = await startScripted({ at: '.', with: '250-not yet\r\n', slow: true });
    const transport = connect(server, { connections: 1, timeoutMs: 2_000 });
    expect((await transport.send(aMail())).kind).toBe('unknown');

    // From here on the test triggers time-outs.
    const timeOuts: AbortController[] = [];
    const timeout = vi.spyOn(AbortSignal, 'timeout').mockImplementation(() => {
      const timeOut = new AbortController();
      timeOuts.push(timeOut);
      return timeOut.signal;
    });
    onTestFinished(() => timeout.mockRestore());
    const handedOver = once(server.stopped, 'stop');
    const stuck = transport.send(aMail());
    await handedOver;
    // It waits for the other mail's connection.
    const waiting = transport.send(aMail());
    await vi.waitUntil(() => timeOuts.length === 2);
    for (const timeOut of timeOuts.toReversed()) timeOut.abort(new Error('The time is over.'));
    expect([(await stuck).kind, await waiting]).toMatchObject([
      'unknown',
      { kind: 'later', everything: true },
    ]);
    expect(timeout).toHaveBeenCalledWith(2_000);
  });
});

describe('Amazon SES', () => {
  test('receives the same mail as SMTP, with its tags and the configuration set', async () => {
    const wire = await startWire();
    wire.answers.push(json(200, { MessageId: '0100-ses' }));
    const transport = ses(wire, { configurationSet: 'jobwire-us' });
    expect(transport.domain).toBe('shop.example');
    const text = 'Größe\n.\nx';
    expect(
      await transport.send(aMail({ to: { name: 'Jö, Doe', address: 'jo@käse.example' }, text })),
    ).toEqual({
      kind: 'accepted',
      providerId: '0100-ses',
    });
    const [call] = wire.calls;
    expect(call?.path).toBe('/v2/email/outbound-emails');
    const { Content, ...rest } = JSON.parse(call?.body ?? '');
    expect(rest).toEqual({
      FromEmailAddress: 'orders@shop.example',
      Destination: { ToAddresses: ['jo@xn--kse-qla.example'] },
      EmailTags: [
        { Name: 'region', Value: 'us' },
        { Name: 'account', Value: 'acme' },
        { Name: 'message', Value: 'm1-a' },
      ],
      ConfigurationSetName: 'jobwire-us',
    });
    const raw = Buffer.from(Content.Raw.Data, 'base64').toString('latin1');
    const parsed = await simpleParser(raw);
    expect(parsed.to?.value).toEqual([{ name: 'Jö, Doe', address: 'jo@käse.example' }]);
    expect(parsed.html).toBe('<p>Job 1 was dispatched.</p>');
    expect(getHeaders(raw)).toContain('List-Unsubscribe-Post: List-Unsubscribe=One-Click');
    expect(raw).toMatch(/^(\r\n|[\t\x20-\x7e])*$/);
    expect(decodedText(raw)).toBe(text);
  });

  const refused = { kind: 'rejected', address: undefined };
  const everything = { kind: 'later', everything: true };
  test.each([
    [400, 'MessageRejected', 'The message contains a virus.', refused],
    [400, 'BadRequestException', 'Illegal address', refused],
    [400, 'MessageRejected', sandbox('jo@customer.example'), refused],
    // A recipient of our own domain.
    [400, 'MessageRejected', sandbox('jo@shop.example'), refused],
    [400, 'MessageRejected', sandbox('jo@customer.example, Acme <Orders@shop.example>'), everything],
    [400, 'MessageRejected', sandbox('shop.example'), everything],
    [400, 'MailFromDomainNotVerifiedException', 'no', everything],
    [400, 'AccountSuspendedException', 'no', everything],
    [400, 'SendingPausedException', 'no', everything],
    [400, 'LimitExceededException', 'no', everything],
    [404, 'NotFoundException', 'Configuration set <x> does not exist.', everything],
    [403, 'AccessDeniedException', 'arn:aws:iam::1:role/x is not authorized', everything],
    [403, 'InvalidSignatureException', 'no', everything],
    [403, 'ExpiredTokenException', 'no', everything],
    [429, 'TooManyRequestsException', 'Daily message quota exceeded.', everything],
    [400, 'ThrottlingException', 'Daily message quota exceeded.', everything],
    [500, 'InternalServiceErrorException', 'no', { kind: 'unknown' }],
    [503, 'ServiceUnavailable', 'no', { kind: 'unknown' }],
  ])('rejects with %s %s (%s)', async (status, type, message, expected) => {
    const wire = await startWire();
    wire.answers.push(json(status, { message }, { 'x-amzn-errortype': type }));
    const outcome = await ses(wire).send(aMail());
    expect(spelled(outcome)).toMatchObject(expected);
    expect(JSON.stringify(outcome)).not.toMatch(/@|arn:|virus/);
    expect(wire.calls).toHaveLength(1);
  });

  test('throttles: the call is retried a few times, then all mails wait', async () => {
    const wire = await startWire();
    const slow = json(
      429,
      { message: 'Maximum sending rate exceeded.' },
      { 'x-amzn-errortype': 'TooManyRequestsException' },
    );
    wire.answers.push(slow, slow, json(200, { MessageId: '0100-ses' }));
    const transport = ses(wire, { throttleWaitsMs: [0, 0] });
    expect(await transport.send(aMail())).toEqual({ kind: 'accepted', providerId: '0100-ses' });
    expect(wire.calls).toHaveLength(3);
    wire.answers.push(slow, slow, { ...slow, headers: { ...slow.headers, 'retry-after': '7' } });
    expect(await transport.send(aMail())).toMatchObject({ kind: 'later', everything: true, afterMs: 7_000 });
    expect(wire.calls).toHaveLength(6);
  });

  test.each([
    ['is cut off', 'reset'],
    ['never comes', 'silent'],
    ['is not JSON', { status: 200, body: '<html>', headers: {} }],
  ] as const)('is called once if its answer %s: the outcome is unknown', async (_, answer) => {
    const wire = await startWire();
    wire.answers.push(answer);
    const outcome = await ses(wire, { timeoutMs: answer === 'silent' ? 200 : 10_000 }).send(aMail());
    expect(outcome.kind).toBe('unknown');
    expect(wire.calls).toHaveLength(1);
  });

  test('that is unreachable delays all mails', async () => {
    const wire = await startWire();
    await wire.stop();
    expect(await ses(wire).send(aMail())).toMatchObject({ kind: 'later', everything: true });
  });
});

describe('Amazon SNS', () => {
  const text = 'Sent: job 1 – 📦 Größe\nhttps://t.example/1';

  test('receives text and number as a transactional SMS with the sender ID', async () => {
    const wire = await startWire();
    wire.answers.push(checked(false), published('sms-1'), checked(false), published('sms-2'));
    const transport = sms(wire, { senderId: 'CELL' });
    expect(await transport.send({ to: NUMBER, text, senderId: 'ACME' })).toEqual({
      kind: 'accepted',
      providerId: 'sms-1',
    });
    await transport.send({ to: NUMBER, text, senderId: null });
    const [check, publish, , second] = wire.calls.map(({ body }) => new URLSearchParams(body));
    expect([check?.get('Action'), check?.get('phoneNumber')]).toEqual([
      'CheckIfPhoneNumberIsOptedOut',
      NUMBER,
    ]);
    expect(Object.fromEntries(publish ?? [])).toMatchObject({
      Action: 'Publish',
      PhoneNumber: NUMBER,
      Message: text,
      'MessageAttributes.entry.1.Name': 'AWS.SNS.SMS.SMSType',
      'MessageAttributes.entry.1.Value.StringValue': 'Transactional',
      'MessageAttributes.entry.2.Name': 'AWS.SNS.SMS.SenderID',
      'MessageAttributes.entry.2.Value.StringValue': 'ACME',
    });
    expect(second?.get('MessageAttributes.entry.2.Value.StringValue')).toBe('CELL');
  });

  test('receives no message for a number that opted out there', async () => {
    const wire = await startWire();
    wire.answers.push(checked(true));
    const outcome = await sms(wire).send({ to: NUMBER, text, senderId: null });
    expect(outcome).toMatchObject({ kind: 'rejected', address: 'opted_out' });
    expect(wire.calls).toHaveLength(1);
  });

  test('receives the message if it fails to say whether the number opted out', async () => {
    const wire = await startWire();
    wire.answers.push(xmlError(403, 'AuthorizationError', 'no'), published('sms-1'));
    expect(await sms(wire).send({ to: NUMBER, text, senderId: null })).toMatchObject({ kind: 'accepted' });
    expect(new URLSearchParams(wire.calls[1]?.body).has('MessageAttributes.entry.2.Name')).toBe(false);
  });

  test('is not called for an invalid number', async () => {
    const wire = await startWire();
    for (const to of [
      '',
      '0151',
      '+0151123456',
      '+49 151 1234',
      'arn:aws:sns:x',
      `${NUMBER}\n`,
      '+1234567890123456',
    ]) {
      const outcome = await sms(wire).send({ to, text, senderId: null });
      expect([to, outcome]).toMatchObject([to, { kind: 'rejected', address: 'bounced' }]);
    }
    expect(wire.calls).toEqual([]);
  });

  test.each([
    [
      400,
      'InvalidParameter',
      `Invalid parameter: PhoneNumber Reason: ${NUMBER} is not valid to publish to`,
      'bounced',
    ],
    [400, 'InvalidParameter', 'Invalid parameter: Message too long', undefined],
    [400, 'OptedOut', 'opted out', 'opted_out'],
    [403, 'AuthorizationError', 'User: arn:aws:iam::1:role/x is not authorized', 'everything'],
    [403, 'InvalidClientTokenId', 'no', 'everything'],
    [403, 'SignatureDoesNotMatch', 'no', 'everything'],
    [429, 'Throttled', 'Rate exceeded', 'everything'],
    [400, 'Throttling', 'Rate exceeded', 'everything'],
    [500, 'InternalError', 'no', 'unknown'],
    [503, 'ServiceUnavailable', 'no', 'unknown'],
  ])('rejects with %s %s (%s)', async (status, code, message, meaning) => {
    const wire = await startWire();
    wire.answers.push(checked(false), xmlError(status, code, message));
    const outcome = await sms(wire).send({ to: NUMBER, text, senderId: null });
    expect(spelled(outcome)).toMatchObject(
      meaning === 'everything'
        ? { kind: 'later', everything: true }
        : meaning === 'unknown'
          ? { kind: 'unknown' }
          : { kind: 'rejected', address: meaning },
    );
    expect(JSON.stringify(outcome)).not.toMatch(/\+49|arn:/);
    expect(wire.calls).toHaveLength(2);
  });

  test.each([
    ['is cut off', 'reset'],
    ['never comes', 'silent'],
    ['is truncated', { status: 200, body: '<PublishResponse><Publish', headers: {} }],
    ['is that of a proxy', { status: 502, body: '<html>', headers: {} }],
  ] as const)('is called once to publish if its answer %s: the outcome is unknown', async (_, answer) => {
    const wire = await startWire();
    wire.answers.push(checked(false), answer);
    const transport = sms(wire, { timeoutMs: answer === 'silent' ? 500 : 10_000 });
    expect((await transport.send({ to: NUMBER, text, senderId: null })).kind).toBe('unknown');
    expect(wire.calls).toHaveLength(2);
  });

  test('that is unreachable, or without credentials, delays all messages', async () => {
    const wire = await startWire();
    await wire.stop();
    expect(await sms(wire).send({ to: NUMBER, text, senderId: null })).toMatchObject({
      kind: 'later',
      everything: true,
    });
    const nobody = createSnsSmsTransport({
      aws: {
        region: 'us-east-1',
        endpoint: 'http://127.0.0.1:1',
        credentials: () =>
          Promise.reject(Object.assign(new Error('none'), { name: 'CredentialsProviderError' })),
      },
      senderId: null,
    });
    expect(await nobody.send({ to: NUMBER, text, senderId: null })).toMatchObject({
      kind: 'later',
      everything: true,
    });
  });

  test('as emulated by fauxqs accepts no SMS', async () => {
    const fauxqs = await startFauxqs({ unsigned: true });
    open.push(() => fauxqs.stop());
    const outcome = await sms({ endpoint: fauxqs.endpoint }).send({ to: NUMBER, text, senderId: null });
    expect(spelled(outcome)).toMatchObject({ kind: 'rejected', address: undefined });
  });
});

describe('SES event parser', () => {
  const mail = {
    messageId: '0100-ses',
    destination: ['jo@customer.example'],
    tags: { 'ses:configuration-set': ['x'], region: ['us'], account: ['acme'], message: ['m1-a'] },
  };
  const message = { region: 'us', account: 'acme', message: 'm1-a' };
  const bounce = (bounceType: string, bounceSubType: string) => ({
    eventType: 'Bounce',
    bounce: { bounceType, bounceSubType, bouncedRecipients: [{ emailAddress: 'jo@customer.example' }] },
    mail,
  });

  test.each([
    [bounce('Permanent', 'General'), 'bounced', 'The mail bounced permanently (Permanent, General).'],
    [bounce('Permanent', 'OnAccountSuppressionList'), 'bounced', 'OnAccountSuppressionList'],
    [bounce('Transient', 'MailboxFull'), 'noted', 'MailboxFull'],
    [bounce('Undetermined', 'Undetermined'), 'noted', 'Undetermined'],
    [bounce('Permanent', 'jo@customer.example'), 'bounced', '(Permanent)'],
    [
      { eventType: 'Complaint', complaint: { complaintFeedbackType: 'abuse' }, mail },
      'complained',
      '(abuse)',
    ],
    [{ eventType: 'Complaint', complaint: { complaintSubType: null }, mail }, 'complained', '(no type)'],
    [{ eventType: 'Complaint', complaint: { complaintFeedbackType: 'not-spam' }, mail }, 'noted', 'not spam'],
    [{ eventType: 'Reject', reject: { reason: 'Bad content' }, mail }, 'rejected', 'virus'],
  ])('maps %j to the message outcome %s', (event, what, detail) => {
    const parsed = parseSesEvent(JSON.stringify(event));
    expect(parsed).toMatchObject({
      kind: 'feedback',
      message,
      what,
      detail: expect.stringContaining(detail),
    });
    expect(JSON.stringify(parsed)).not.toContain('@');
    // As in an identity's own notifications: without tags, with headers.
    const { eventType, ...rest } = event;
    const headers = [{ name: 'x-jobwire-message', value: 'us/acme/m1-a' }];
    const untagged = { ...rest, notificationType: eventType, mail: { ...mail, tags: undefined, headers } };
    expect(parseSesEvent(JSON.stringify(untagged))).toEqual(parsed);
  });

  test.each([
    ['', 'not JSON'],
    ['{', 'not JSON'],
    ['null', 'not an SES event'],
    ['Successfully validated SNS topic for Amazon SES event publishing.', 'not JSON'],
    [JSON.stringify({ eventType: 'Bounce' }), 'not an SES event'],
    [JSON.stringify({ ...bounce('Permanent', 'General'), mail: {} }), 'message of Jobwire'],
    [
      JSON.stringify({ ...bounce('Permanent', 'General'), mail: { tags: { region: ['us'] } } }),
      'message of Jobwire',
    ],
    [JSON.stringify({ eventType: 'Delivery', mail, delivery: {} }), 'Events of type Delivery are ignored'],
    [JSON.stringify({ eventType: 'Bounce', mail }), 'Events of type Bounce are ignored'],
  ])('ignores %j', (text, reason) => {
    expect(parseSesEvent(text)).toEqual({ kind: 'ignored', reason: expect.stringContaining(reason) });
  });

  test('never throws', () => {
    fc.assert(
      fc.property(fc.json(), fc.string(), (anything, text) => {
        expect(parseSesEvent(text).kind).toBe('ignored');
        expect(['ignored', 'feedback']).toContain(parseSesEvent(anything).kind);
      }),
    );
  });
});

// Mails

/** Fills in defaults of a mail. */
const spelled = (outcome: SendOutcome) => ({ address: undefined, ...outcome });

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

const getHeaders = (raw: string) => raw.slice(0, raw.indexOf('\r\n\r\n')).split('\r\n');

const oneLine = (text: string) =>
  text
    .replaceAll(/[\p{Cc}\u2028\u2029]+/gu, ' ')
    .replaceAll(/ {2,}/g, ' ')
    .trim();

/** Decodes the first body of a mail from quoted-printable, keeping line ends. */
function decodedText(raw: string): string {
  const boundary = /boundary="(.*)"/.exec(raw)?.[1] ?? '';
  const part = raw.split(`--${boundary}\r\n`)[1] ?? '';
  const body = part.slice(part.indexOf('\r\n\r\n') + 4).replace(/\r\n$/, '');
  const bytes = body
    .replaceAll('=\r\n', '')
    .replaceAll(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1').toString().replaceAll('\r\n', '\n');
}

/** RFC 6376, with both canonicalizations `relaxed`. */
function checkDkim(raw: string, key: KeyObject) {
  const end = raw.indexOf('\r\n\r\n');
  const fields = raw.slice(0, end).split(/\r\n(?![ \t])/);
  const relaxed = (field: string) => {
    const colon = field.indexOf(':');
    const value = field
      .slice(colon + 1)
      .replaceAll('\r\n', '')
      .replaceAll(/[ \t]+/g, ' ')
      .trim();
    return `${field.slice(0, colon).trim().toLowerCase()}:${value}`;
  };
  const header = fields.find((field) => /^dkim-signature:/i.test(field)) ?? '';
  const tags = Object.fromEntries(
    header
      .slice(header.indexOf(':') + 1)
      .split(';')
      .map((tag) => [
        tag.slice(0, tag.indexOf('=')).trim(),
        tag.slice(tag.indexOf('=') + 1).replaceAll(/\s/g, ''),
      ]),
  );
  const signed = (tags.h ?? '').toLowerCase().split(':');
  const left = [...fields];
  const lines = signed.flatMap((name) => {
    const at = left.findLastIndex((field) => field.toLowerCase().startsWith(`${name}:`));
    return at < 0 ? [] : left.splice(at, 1).map(relaxed);
  });
  const body = raw
    .slice(end + 4)
    .replaceAll(/[ \t]+/g, ' ')
    .replaceAll(/ (?=\r\n)/g, '')
    .replace(/(\r\n)*$/, '\r\n');
  const bodyHash = createHash('sha256').update(body, 'latin1').digest('base64');
  const data = [...lines, relaxed(header.replace(/(;\s*b=)[^;]*/, '$1'))].join('\r\n');
  const ok =
    bodyHash === tags.bh &&
    verify(
      'sha256',
      Buffer.from(data, 'latin1'),
      createPublicKey(key.export({ type: 'spki', format: 'pem' })),
      Buffer.from(tags.b ?? '', 'base64'),
    );
  return { signed, tags, ok };
}

// SMTP

async function startSmtp(options: SMTPServerOptions = {}) {
  const mails: string[] = [];
  const envelopes: string[] = [];
  const sessions: { user: string; secure: boolean }[] = [];
  const sockets = new Set<Socket>();
  let connections = 0;
  let most = 0;
  const server = new SMTPServer({
    authOptional: true,
    disableReverseLookup: true,
    ...(options.key ? {} : { disabledCommands: ['STARTTLS'] }),
    onData(stream, session, done) {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        mails.push(Buffer.concat(chunks).toString('latin1'));
        const { mailFrom, rcptTo } = session.envelope;
        envelopes.push(
          `${mailFrom ? mailFrom.address : ''} → ${rcptTo.map(({ address }) => address).join()}`,
        );
        if (session.user !== undefined) sessions.push({ user: String(session.user), secure: session.secure });
        done(null, `queued as Q${mails.length}`);
      });
    },
    ...options,
  });
  server.on('error', () => {});
  server.server.on('connection', (socket: Socket) => {
    connections += 1;
    sockets.add(socket.once('close', () => sockets.delete(socket)));
    most = Math.max(most, sockets.size);
  });
  server.listen(0, '127.0.0.1');
  await once(server.server, 'listening');
  open.push(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise<void>((resolve) => server.close(resolve));
  });
  return {
    port: (server.server.address() as AddressInfo).port,
    mails,
    envelopes,
    /** Sender, and transport. */
    sessions,
    connections: () => connections,
    /** At the same time. */
    most: () => most,
    cut() {
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Accepts one user, with or without a certificate. */
function withAuth(certificate: { readonly key?: string; readonly cert?: string }): SMTPServerOptions {
  return {
    ...certificate,
    authOptional: false,
    allowInsecureAuth: true,
    onAuth({ username, password }, _session, done) {
      if (username === 'jobwire' && password === 'secret') done(null, { user: username });
      else done(new Error('Who are you?'));
    },
  };
}

function refusing(stage: 'connect' | 'mail' | 'rcpt' | 'data', answer: string): SMTPServerOptions {
  const responseCode = Number(answer.slice(0, 3));
  const error = () => Object.assign(new Error(answer.slice(4)), { responseCode });
  switch (stage) {
    case 'connect':
      return { onConnect: (_session, done) => done(error()) };
    case 'mail':
      return { onMailFrom: (_address, _session, done) => done(error()) };
    case 'rcpt':
      return { onRcptTo: (_address, _session, done) => done(error()) };
    case 'data':
      return { onData: (stream, _session, done) => stream.resume().on('end', () => done(error())) };
  }
}

function refuses(address: string): Error | null {
  if (address.startsWith('rejected')) return Object.assign(new Error('5.7.1 no'), { responseCode: 550 });
  return address.startsWith('later') ? Object.assign(new Error('4.2.0 wait'), { responseCode: 450 }) : null;
}

/** A server that answers normally until a command, then sends only `with`, and closes the connection or waits. */
async function startScripted(script: {
  readonly at: string;
  readonly with?: string;
  readonly silent?: boolean;
  /** Repeats `with` endlessly. */
  readonly slow?: boolean;
}) {
  const sockets = new Set<Socket>();
  const stopped = new EventEmitter();
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}));
    let inMail = false;
    const stops = (at: string): boolean => {
      if (at !== script.at) return false;
      stopped.emit('stop');
      if (script.slow) {
        const timer = setInterval(() => socket.write(script.with ?? ''), 20);
        socket.once('close', () => clearInterval(timer));
      } else if (!script.silent) {
        socket.end(script.with ?? '');
      }
      return true;
    };
    if (stops('greeting')) return;
    socket.write('220 mail.example\r\n');
    createInterface({ input: socket }).on('line', (line) => {
      if (inMail) {
        if (line !== '.') return;
        inMail = false;
        if (!stops('.')) socket.write('250 taken\r\n');
        return;
      }
      const [command = ''] = line.split(/[ :]/);
      if (stops(command)) return;
      inMail = command === 'DATA';
      socket.write(inMail ? '354 go on\r\n' : '250 fine\r\n');
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const close = () => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  };
  if (script.at === 'never') await close();
  else open.push(close);
  return { port, stopped };
}

function connect({ port }: { readonly port: number }, config: Partial<SmtpConfig> = {}) {
  const transport = createSmtpTransport({ from: 'orders@shop.example', host: '127.0.0.1', port, ...config });
  open.push(() => transport.close());
  return transport;
}

// SES and SNS

const NUMBER = '+4915112345678';

type WireAnswer =
  | { readonly status: number; readonly body: string; readonly headers: Readonly<Record<string, string>> }
  | 'reset'
  | 'silent';

/** A server that records its requests and gives the configured answers in order. */
async function startWire() {
  const calls: { readonly path: string; readonly body: string }[] = [];
  const answers: WireAnswer[] = [];
  const server = createHttpServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      calls.push({ path: request.url ?? '', body: Buffer.concat(chunks).toString() });
      const answer = answers.shift();
      if (answer === 'silent') return;
      if (answer === undefined || answer === 'reset') request.socket.resetAndDestroy();
      else response.writeHead(answer.status, { ...answer.headers }).end(answer.body);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const stop = () => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  open.push(stop);
  return { calls, answers, stop, endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

const AWS = { region: 'us-east-1', credentials: { accessKeyId: 'test', secretAccessKey: 'test' } };

function ses({ endpoint }: { readonly endpoint: string }, config: Partial<SesConfig> = {}) {
  const transport = createSesTransport({
    aws: { ...AWS, endpoint },
    from: 'orders@shop.example',
    throttleWaitsMs: [0, 0],
    ...config,
  });
  open.push(() => transport.close());
  return transport;
}

function sms(
  { endpoint }: { readonly endpoint: string },
  options: { readonly senderId?: string; readonly timeoutMs?: number } = {},
) {
  return createSnsSmsTransport({
    aws: { ...AWS, endpoint },
    senderId: null,
    throttleWaitsMs: [],
    ...options,
  });
}

function json(status: number, body: object, headers: Readonly<Record<string, string>> = {}) {
  return { status, body: JSON.stringify(body), headers: { 'content-type': 'application/json', ...headers } };
}

function sandbox(identities: string): string {
  return `Email address is not verified. The following identities failed the check in region US-EAST-1: ${identities}`;
}

function xml(status: number, body: string): WireAnswer {
  return { status, body, headers: { 'content-type': 'text/xml' } };
}

function published(id: string): WireAnswer {
  return xml(
    200,
    `<PublishResponse><PublishResult><MessageId>${id}</MessageId></PublishResult><ResponseMetadata><RequestId>r</RequestId></ResponseMetadata></PublishResponse>`,
  );
}

function checked(optedOut: boolean): WireAnswer {
  const name = 'CheckIfPhoneNumberIsOptedOut';
  return xml(
    200,
    `<${name}Response><${name}Result><isOptedOut>${optedOut}</isOptedOut></${name}Result><ResponseMetadata><RequestId>r</RequestId></ResponseMetadata></${name}Response>`,
  );
}

function xmlError(status: number, code: string, message: string): WireAnswer {
  return xml(
    status,
    `<ErrorResponse><Error><Type>Sender</Type><Code>${code}</Code><Message>${message}</Message></Error><RequestId>r</RequestId></ErrorResponse>`,
  );
}
