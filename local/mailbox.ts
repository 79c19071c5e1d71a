/**
 * The demo's mailbox: a mail server and a stand-in of SNS on loopback that catch notifications, and a page at `/mailbox` that shows them.
 * Everything is in memory and bounded. Caught messages never leave this machine.
 */
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import type { ParsedMail } from 'mailparser';
import { measureSms } from '../shared/notifications/sms-text.ts';

/** A running mailbox. */
export interface Mailbox {
  /** Address of its mail server, on loopback. */
  readonly smtp: { readonly host: string; readonly port: number };
  /** Handles requests for `/mailbox` and below: the page, its data, and SNS at `/mailbox/sns`. */
  fetch(request: Request): Promise<Response>;
  stop(): Promise<void>;
}

/** Summary of a caught message. */
export interface Caught {
  readonly id: number;
  readonly channel: 'email' | 'sms';
  /** Time (ISO 8601). */
  readonly at: string;
  readonly from: Party;
  readonly to: Party;
  readonly subject: string | null;
  /** Start of its text. */
  readonly preview: string;
  readonly messageId: string | null;
  /** Ids of the messages that it follows up, oldest first. */
  readonly references: readonly string[];
  /** Whether a message with the same id was caught before. */
  readonly repeat: boolean;
}

interface Party {
  readonly name: string | null;
  /** E-mail address, mobile number or sender id. */
  readonly address: string;
}

/** A caught message in full. */
interface Kept {
  readonly caught: Caught;
  readonly text: string;
  readonly html: string | null;
  /** As received, unfolded. */
  readonly headers: readonly (readonly [string, string])[];
  /** Unsubscribe URL, and whether it supports one click (RFC 8058). */
  readonly unsubscribe: { readonly url: string; readonly oneClick: boolean } | null;
  readonly raw: Buffer;
}

const HOST = '127.0.0.1';
/** Maximum number of messages. Older ones are dropped. */
const MAX_KEPT = 500;
const MAX_BYTES = 40_000_000;
const MAX_MAIL_BYTES = 1_000_000;
/** Maximum length of an SNS message. */
const MAX_SMS_CHARACTERS = 1600;
/** Sender of SMS without sender id: a number reserved for films. */
const OWN_NUMBER = '+18335550100';
const PREVIEW_CHARACTERS = 140;
const HEARTBEAT_MS = 15_000;
/** Maximum wait for connections to end on stop. */
const CLOSE_MS = 300;

/**
 * The page allows no third-party script, style, frame or request. A mail is a separate document, in a frame without scripts and without an
 * origin. Its links open outside the frame.
 */
const PAGE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const MAIL_POLICY =
  "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'";
const DATA_POLICY = "default-src 'none'; frame-ancestors 'none'";

const FILES: Readonly<Record<string, string>> = {
  'page.html': 'text/html; charset=utf-8',
  'page.css': 'text/css; charset=utf-8',
  'page.js': 'text/javascript; charset=utf-8',
};

/** Starts a mailbox, with its mail server on a free port. Calls `onCaught` for each message. */
export async function startMailbox(
  options: {
    /** Base URL of this program's own links: the page unsubscribes there with one click, as mail programs do. */
    readonly publicUrl?: string;
    readonly onCaught?: (caught: Caught) => void;
  } = {},
): Promise<Mailbox> {
  /** Changes with each start, so that a page detects a restart. */
  const box = randomUUID();
  /** Oldest first. */
  let kept: Kept[] = [];
  let bytes = 0;
  let last = 0;
  /** Numbers that have replied STOP. */
  const optedOut = new Set<string>();
  const streams = new Set<(caught: Caught) => void>();
  const ends = new Set<() => void>();

  function keep(message: Fresh) {
    const { messageId } = message.caught;
    const caught: Caught = {
      id: ++last,
      at: new Date().toISOString(),
      preview: formatPreview(message),
      repeat: messageId !== null && kept.some((one) => one.caught.messageId === messageId),
      ...message.caught,
    };
    kept.push({ ...message, caught });
    bytes += message.raw.length;
    while (kept.length > MAX_KEPT || bytes > MAX_BYTES) bytes -= kept.shift()?.raw.length ?? bytes;
    for (const send of streams) send(caught);
    options.onCaught?.(caught);
  }

  const { SMTPServer } = await import('smtp-server');
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['AUTH', 'STARTTLS'],
    disableReverseLookup: true,
    logger: false,
    size: MAX_MAIL_BYTES,
    closeTimeout: CLOSE_MS,
    onData(stream, session, done) {
      const chunks: Buffer[] = [];
      // A mail that is too long is read to its end and then rejected.
      stream.on('data', (chunk: Buffer) => {
        if (!stream.sizeExceeded) chunks.push(chunk);
      });
      stream.once('end', async () => {
        if (stream.sizeExceeded) {
          done(Object.assign(new Error('The mail is too long.'), { responseCode: 552 }));
          return;
        }
        const envelope = {
          from: session.envelope.mailFrom ? session.envelope.mailFrom.address : '',
          to: session.envelope.rcptTo.map(({ address }) => address).join(', '),
        };
        try {
          keep(await readMail(Buffer.concat(chunks), envelope));
          done(null, 'Caught');
        } catch (cause) {
          done(cause instanceof Error ? cause : new Error('The mail could not be read.'));
        }
      });
    },
  });
  // A client may disconnect at any time.
  server.on('error', () => {});
  await new Promise<void>((resolve, reject) => {
    server.server.once('error', reject);
    server.listen(0, HOST, resolve);
  });

  /** Streams new messages. After a reconnect, starts with those caught since. */
  function stream(after: number): Response {
    const encoder = new TextEncoder();
    let close = (): void => {};
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        const write = (text: string): void => controller.enqueue(encoder.encode(text));
        const send = (caught: Caught): void =>
          write(`id: ${caught.id}\nevent: caught\ndata: ${JSON.stringify(caught)}\n\n`);
        write(`retry: 1000\nevent: box\ndata: ${JSON.stringify({ box })}\n\n`);
        for (const { caught } of kept) if (caught.id > after) send(caught);
        const heartbeat = setInterval(() => write(': \n\n'), HEARTBEAT_MS);
        streams.add(send);
        close = () => {
          clearInterval(heartbeat);
          streams.delete(send);
          ends.delete(end);
        };
        const end = (): void => {
          close();
          controller.close();
        };
        ends.add(end);
      },
      cancel: () => close(),
    });
    return new Response(body, {
      headers: { 'content-type': 'text/event-stream', ...secure(DATA_POLICY), 'cache-control': 'no-store' },
    });
  }

  async function answer(request: Request, url: URL): Promise<Response> {
    const [, , what = '', id, part] = url.pathname.split('/');
    const { method } = request;
    if (what === 'sns' && method === 'POST') return answerSns(await request.text(), keep, optedOut);
    if (what === 'opted-out' && method === 'PUT' && id !== undefined) {
      if (optedOut.size < MAX_KEPT) optedOut.add(decodeURIComponent(id));
      return new Response(null, { status: 204, headers: secure(DATA_POLICY) });
    }
    if (method === 'DELETE' && what === 'messages' && id === undefined) {
      kept = [];
      bytes = 0;
      return new Response(null, { status: 204, headers: secure(DATA_POLICY) });
    }
    if (method !== 'GET' && method !== 'HEAD') {
      return text('Method not allowed: this resource is read-only.\n', 405, { allow: 'GET, HEAD' });
    }
    if (what === '' || Object.hasOwn(FILES, what)) return file(what === '' ? 'page.html' : what);
    if (what === 'stream') {
      return stream(Number(request.headers.get('last-event-id') ?? url.searchParams.get('after') ?? 0) || 0);
    }
    if (what !== 'messages') return text('Page not found.\n', 404);
    if (id === undefined) {
      return json({ box, last, messages: kept.map(({ caught }) => caught).reverse() });
    }
    const found = kept.find(({ caught }) => String(caught.id) === id);
    if (!found) return text('Message not found, or no longer stored.\n', 404);
    const { caught, html, raw, unsubscribe, ...rest } = found;
    if (part === undefined) {
      const { publicUrl = 'none:' } = options;
      const path = unsubscribe?.url.startsWith(`${publicUrl}/`)
        ? unsubscribe.url.slice(publicUrl.length)
        : null;
      return json({
        ...{ ...caught, ...rest, hasHtml: html !== null, optedOut: optedOut.has(caught.to.address) },
        unsubscribe: unsubscribe && { ...unsubscribe, path },
        sms: caught.channel === 'sms' ? measureSms(rest.text) : null,
      });
    }
    if (part === 'html' && html !== null) {
      return new Response(withLinksElsewhere(html), {
        headers: { 'content-type': 'text/html; charset=utf-8', ...secure(MAIL_POLICY) },
      });
    }
    if (part === 'source') return text(raw.toString(), 200);
    return text('Part not found.\n', 404);
  }

  const { port } = server.server.address() as AddressInfo;
  return {
    smtp: { host: HOST, port },
    async fetch(request) {
      const url = new URL(request.url);
      // The page has one URL, so that its relative requests are below it.
      if (url.pathname === '/mailbox/')
        return new Response(null, { status: 308, headers: { location: '/mailbox' } });
      return answer(request, url);
    },
    async stop() {
      for (const end of [...ends]) end();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

/** A message before it is numbered. */
type Fresh = Omit<Kept, 'caught'> & { caught: Omit<Caught, 'id' | 'at' | 'preview' | 'repeat'> };

async function readMail(raw: Buffer, envelope: { from: string; to: string }): Promise<Fresh> {
  // Loaded with the first mail, so that a start does not wait for it.
  const { simpleParser } = await import('mailparser');
  const mail = await simpleParser(raw, { skipHtmlToText: true, skipTextToHtml: true });
  const headers = mail.headerLines.map(({ line }): [string, string] => {
    const at = line.indexOf(':');
    return [
      line.slice(0, at),
      line
        .slice(at + 1)
        .replace(/\s+/g, ' ')
        .trim(),
    ];
  });
  return {
    caught: {
      channel: 'email',
      from: parseParty(mail.from, envelope.from),
      to: parseParty(mail.to, envelope.to),
      subject: mail.subject ?? null,
      messageId: mail.messageId ?? null,
      references: [mail.references ?? []].flat(),
    },
    text: mail.text ?? '',
    html: mail.html || null,
    headers,
    unsubscribe: parseUnsubscribe(headers),
    raw,
  };
}

function parseParty(parsed: ParsedMail['to'], otherwise: string): Party {
  const [first] = [parsed ?? []].flat().flatMap(({ value }) => value);
  return { name: first?.name || null, address: first?.address ?? otherwise };
}

function parseUnsubscribe(headers: Kept['headers']): Kept['unsubscribe'] {
  const value = (name: string): string => headers.find(([key]) => key.toLowerCase() === name)?.[1] ?? '';
  const url = /<(https?:[^>]+)>/.exec(value('list-unsubscribe'))?.[1];
  if (url === undefined) return null;
  return { url, oneClick: value('list-unsubscribe-post').toLowerCase() === 'list-unsubscribe=one-click' };
}

/** Handles the SNS calls that SMS need, in the protocol of its clients. */
function answerSns(body: string, keep: (message: Fresh) => void, optedOut: ReadonlySet<string>): Response {
  const form = new URLSearchParams(body);
  const action = form.get('Action');
  if (action === 'CheckIfPhoneNumberIsOptedOut') {
    const is = optedOut.has(form.get('phoneNumber') ?? '');
    return snsAnswer(
      200,
      'CheckIfPhoneNumberIsOptedOutResponse',
      `<CheckIfPhoneNumberIsOptedOutResult><isOptedOut>${is}</isOptedOut></CheckIfPhoneNumberIsOptedOutResult>`,
    );
  }
  if (action !== 'Publish') return snsError('InvalidAction', 'Unsupported action.');
  const number = form.get('PhoneNumber') ?? '';
  const message = form.get('Message') ?? '';
  if (!/^\+[1-9]\d{6,14}$/.test(number))
    return snsError('InvalidParameter', 'PhoneNumber must be an E.164 number.');
  // Like SNS, which a sender relies on if its check failed.
  if (optedOut.has(number)) return snsError('InvalidParameter', 'The number has opted out.');
  if (message === '' || message.length > MAX_SMS_CHARACTERS) {
    return snsError('InvalidParameter', `Message must have 1 to ${MAX_SMS_CHARACTERS} characters.`);
  }
  const attributes = new Map<string, string>();
  for (const [key, name] of form) {
    const [, entry] = /^MessageAttributes\.entry\.(\d+)\.Name$/.exec(key) ?? [];
    if (entry === undefined) continue;
    attributes.set(name, form.get(`MessageAttributes.entry.${entry}.Value.StringValue`) ?? '');
  }
  const id = randomUUID();
  keep({
    caught: {
      channel: 'sms',
      from: { name: null, address: attributes.get('AWS.SNS.SMS.SenderID') || OWN_NUMBER },
      to: { name: null, address: number },
      subject: null,
      messageId: id,
      references: [],
    },
    text: message,
    html: null,
    headers: [...attributes],
    unsubscribe: null,
    raw: Buffer.from(message),
  });
  return snsAnswer(200, 'PublishResponse', `<PublishResult><MessageId>${id}</MessageId></PublishResult>`);
}

const snsError = (code: string, message: string): Response =>
  snsAnswer(
    400,
    'ErrorResponse',
    `<Error><Type>Sender</Type><Code>${code}</Code><Message>${message}</Message></Error>`,
  );

function snsAnswer(status: number, root: string, inside: string): Response {
  const space = 'xmlns="http://sns.amazonaws.com/doc/2010-03-31/"';
  const id = `<ResponseMetadata><RequestId>${randomUUID()}</RequestId></ResponseMetadata>`;
  return new Response(`<${root} ${space}>${inside}${id}</${root}>`, {
    status,
    headers: { 'content-type': 'text/xml; charset=utf-8' },
  });
}

/** Lets links of a mail open in a new window: its frame does not navigate. */
function withLinksElsewhere(html: string): string {
  const base = '<base target="_blank">';
  return /<head[\s>]/i.test(html) ? html.replace(/<head(\s[^>]*)?>/i, (head) => head + base) : base + html;
}

/** Returns the preview of an e-mail without its links and without text that the list shows anyway. An SMS is short already. */
function formatPreview({ caught: { from, subject }, text: body, html }: Fresh): string {
  const alreadyShown = [from.name, subject];
  const line = body
    .split('\n')
    .filter((one) => html === null || (/[\p{L}\p{N}]/u.test(one) && !alreadyShown.includes(one.trim())))
    .map((one) => (html === null ? one : one.replace(/https?:\/\/\S+/g, '')))
    .join(' ')
    .replace(/\s+/g, ' ')
    .trim();
  return line.length > PREVIEW_CHARACTERS ? `${line.slice(0, PREVIEW_CHARACTERS - 1)}…` : line;
}

/** Reads a file of the page, which is beside the program. */
async function file(name: string): Promise<Response> {
  const body = await readFile(`${import.meta.dirname}/mailbox/${name}`, 'utf8');
  return new Response(body, {
    headers: {
      'content-type': FILES[name] ?? 'text/plain',
      ...secure(PAGE_POLICY),
      'cache-control': 'no-cache',
    },
  });
}

function json(value: unknown): Response {
  return new Response(JSON.stringify(value), {
    headers: { 'content-type': 'application/json', ...secure(DATA_POLICY) },
  });
}

function text(body: string, status: number, more: Record<string, string> = {}): Response {
  return new Response(body, {
    status,
    headers: { 'content-type': 'text/plain; charset=utf-8', ...secure(DATA_POLICY), ...more },
  });
}

function secure(policy: string): Record<string, string> {
  return {
    'content-security-policy': policy,
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cross-origin-resource-policy': 'same-origin',
    'cache-control': 'no-store',
  };
}
