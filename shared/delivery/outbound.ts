/**
 * Guarded connections to customer-supplied addresses: only public ones, unless private networks are allowed.
 *
 * Literal addresses in any spelling are checked before a connection begins. A name is resolved once per
 * connection, and the connection goes to the checked addresses. So a resolver that responds differently later
 * has no effect. Redirects are never followed.
 */

import { lookup } from 'node:dns/promises';
import { Agent as HttpAgent, request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest, type RequestOptions } from 'node:https';
import { isIP, type LookupFunction, type Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { urlToHttpOptions } from 'node:url';
import { formatCode } from '../error-codes.ts';
import { classifyNonPublic } from './public-addresses.ts';
import { EXCERPT_BYTES } from './sink.ts';

/** The response to a POST, or the reason why there is none. */
export type Exchange =
  | {
      readonly kind: 'answered';
      readonly status: number;
      readonly headers: IncomingHttpHeaders;
      /** The first 1 kB of the body, as text. */
      readonly excerpt: string;
    }
  | {
      readonly kind: 'failed';
      /** The error message. It never contains the URL, which may hold a key. */
      readonly reason: string;
      /** Whether the request may have reached the endpoint. */
      readonly sent: boolean;
      /** The beginning of an incomplete response. */
      readonly answer?: { readonly status: number; readonly excerpt: string };
    };

/** The connections of one endpoint, kept alive between requests. */
export interface Connections {
  /**
   * Sends a request and reads its response, up to 64 kB. Header names are in lower case; the length of the
   * body is added. Never throws.
   */
  post(url: string, headers: Readonly<Record<string, string>>, body: string): Promise<Exchange>;
  /** Closes all connections, including those with a request in progress. */
  close(): void;
}

/** The connections of a process to all endpoints. */
export interface ConnectionPool {
  /** Returns the connections of an endpoint, at most `concurrency` at once. */
  of(endpoint: string, concurrency: number): Connections;
  close(): void;
}

/** Resolves a name to all its addresses. */
type Resolve = (hostname: string) => Promise<readonly { address: string; family: number }[]>;

interface Options {
  /** Allows any address and port, and http:// besides https://. For private networks. */
  readonly allowPrivateNetworks: boolean;
  /** Maximum number of idle connections per endpoint. Default: 256. */
  readonly maxIdle?: number;
  readonly timeouts?: Partial<Timeouts>;
  /** Default: the resolver of the operating system. */
  readonly resolve?: Resolve;
  /** Returns the kind of a rejected address; `undefined` if the address is accepted. */
  readonly checkAddress?: (address: string) => string | undefined;
}

interface Timeouts {
  /** Limit for name resolution, connection and TLS handshake. */
  readonly connectMs: number;
  /** Limit for a whole attempt, from the start of the connection to the end of the response. */
  readonly totalMs: number;
  /** Time for which an idle connection is kept. */
  readonly idleMs: number;
}

const TIMEOUTS: Timeouts = { connectMs: 5_000, totalMs: 15_000, idleMs: 30_000 };
const MAX_ANSWER_BYTES = 64 * 1024;
const MAX_HEADER_BYTES = 16 * 1024;
/** Maximum number of interim responses (1xx) before a response. Parsing them takes time from all other endpoints. */
const MAX_INTERIM = 100;
/** Maximum number of endpoints whose connections the pool remembers. Users can create and delete any number of endpoints. */
export const MAX_POOLED = 20_000;
/**
 * With several addresses: time (ms) before the next one is tried. Node's own 250 ms is too short for distant
 * networks.
 */
const NEXT_ADDRESS_MS = 1_500;

/** Ports below 1024 that webhooks may use. */
const LOW_PORTS = new Set([80, 443]);
/** Names that never identify a host of the public Internet. */
const LOCAL_NAME = /(^|\.)(localhost|local|localdomain|internal|home\.arpa)$/;

/** Explains to users of a self-hosted Jobwire how to use a receiver in a private network. */
const HINT =
  '(to allow it on a self-hosted Jobwire, set webhooks.allowPrivateNetworks to true in its configuration; for development, use jobwire listen, which needs no endpoint)';

/** Reports whether a text is a host with a port or a path, such as `127.0.0.1:3000/hook`, for which a scheme was forgotten. */
const isWithoutScheme = (url: string): boolean => /^[\w.-]+(:\d+(\/|$)|\/)/.test(url);

/**
 * Returns why a URL is not accepted for an endpoint, as one sentence; `undefined` if it is. Names are checked
 * again, by their addresses, for each connection.
 */
export function checkUrl(url: string, allowPrivateNetworks: boolean): string | undefined {
  const withScheme = `It must begin with a scheme: https://${allowPrivateNetworks ? ' or http://' : ''}.`;
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    return isWithoutScheme(url) ? withScheme : 'It is not a URL.';
  }
  if (isWithoutScheme(url)) return withScheme;
  if (parsed.protocol !== 'https:' && !(allowPrivateNetworks && parsed.protocol === 'http:')) {
    return allowPrivateNetworks
      ? 'It must begin with https:// or http://.'
      : `It must begin with https://${parsed.protocol === 'http:' ? ` ${HINT}` : ''}.`;
  }
  if (parsed.username || parsed.password) return 'It must not contain a user name or password.';
  if (allowPrivateNetworks) return undefined;
  const port = parsed.port === '' ? 443 : Number(parsed.port);
  if (port < 1024 && !LOW_PORTS.has(port)) return 'Its port must be 443, 80, or 1024 and above.';
  const problem = describePrivateHost(parsed);
  return problem && `${problem} ${HINT}.`;
}

/** Returns whether the host of a URL is, by its name or address, this machine or in a private network. */
export function isPrivateUrl(url: string): boolean {
  return URL.canParse(url) && describePrivateHost(new URL(url)) !== undefined;
}

function describePrivateHost(url: URL): string | undefined {
  const host = getHost(url);
  if (isIP(host) !== 0) {
    const what = classifyNonPublic(host);
    return what && `Its host is not a public address: ${what}`;
  }
  return LOCAL_NAME.test(host.replace(/\.+$/, '')) ? 'Its host name belongs to a private network' : undefined;
}

/**
 * Returns the host without brackets. `URL` has already normalized decimal, octal and hexadecimal spellings.
 */
function getHost(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '');
}

/**
 * Creates a pool of connections by endpoint. Connections are created on first use and kept until the pool is
 * closed, or until {@link MAX_POOLED} other endpoints were used later.
 */
export function createConnectionPool(options: Options): ConnectionPool {
  const resolve = shareLookups(options.resolve ?? ((hostname) => lookup(hostname, { all: true })));
  const endpoints = new Map<string, GuardedConnections>();
  return {
    of(endpoint, concurrency) {
      const connections = endpoints.get(endpoint) ?? new GuardedConnections(options, resolve);
      endpoints.delete(endpoint);
      endpoints.set(endpoint, connections);
      const [oldest] = endpoints.keys();
      // Not closed: requests may be in progress. Idle connections are closed after a while.
      if (endpoints.size > MAX_POOLED && oldest !== undefined) endpoints.delete(oldest);
      connections.resize(concurrency);
      return connections;
    },
    close() {
      for (const connections of endpoints.values()) connections.close();
      endpoints.clear();
    },
  };
}

/** The target of a request, in the form of Node's HTTP client. */
interface Target {
  readonly url: string;
  readonly rejection: string | undefined;
  readonly options: RequestOptions;
  readonly secure: boolean;
}

/** The result of an attempt. `stale` if the endpoint had closed the reused connection meanwhile. */
interface Attempt {
  readonly exchange: Exchange;
  readonly stale: boolean;
}

class GuardedConnections implements Connections {
  readonly #allowPrivateNetworks: boolean;
  readonly #checkAddress: (address: string) => string | undefined;
  readonly #timeouts: Timeouts;
  readonly #http: HttpAgent;
  readonly #https: HttpsAgent;
  #target: Target | undefined;
  #lastUsedAt = 0;

  constructor(options: Options, resolve: Resolve) {
    this.#allowPrivateNetworks = options.allowPrivateNetworks;
    this.#checkAddress = options.allowPrivateNetworks
      ? () => undefined
      : (options.checkAddress ?? classifyNonPublic);
    this.#timeouts = { ...TIMEOUTS, ...options.timeouts };
    const agentOptions = {
      keepAlive: true,
      maxFreeSockets: options.maxIdle ?? 256,
      timeout: this.#timeouts.idleMs,
      autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_MS,
      lookup: guardedLookup(resolve, this.#checkAddress),
    };
    this.#http = new HttpAgent(agentOptions);
    // Set explicitly, so that no environment setting disables it.
    this.#https = new HttpsAgent({ ...agentOptions, rejectUnauthorized: true, minVersion: 'TLSv1.2' });
  }

  async post(url: string, headers: Readonly<Record<string, string>>, body: string): Promise<Exchange> {
    const target = this.#target?.url === url ? this.#target : this.#toTarget(url);
    this.#target = target;
    if (target.rejection) return notSent(target.rejection);
    // Timers stop while a Lambda is frozen; the endpoint's timers continue.
    const now = Date.now();
    if (now - this.#lastUsedAt > this.#timeouts.idleMs) this.#closeIdle();
    const deadline = now + this.#timeouts.totalMs;
    const first = await this.#attempt(target, headers, body, this.#timeouts.totalMs);
    this.#lastUsedAt = Date.now();
    if (!first.stale) return first.exchange;
    // If one connection was closed, the others are likely closed too, and none of them is fresh.
    this.#closeIdle();
    const second = await this.#attempt(target, headers, body, Math.max(1, deadline - this.#lastUsedAt));
    this.#lastUsedAt = Date.now();
    return second.exchange;
  }

  close(): void {
    this.#http.destroy();
    this.#https.destroy();
  }

  /** Sets the maximum number of connections; existing ones stay open. */
  resize(concurrency: number): void {
    this.#http.maxSockets = concurrency;
    this.#https.maxSockets = concurrency;
  }

  #toTarget(url: string): Target {
    const rejection = checkUrl(url, this.#allowPrivateNetworks);
    if (rejection)
      return {
        url,
        rejection: `The URL of the endpoint is not accepted. ${rejection}`,
        options: {},
        secure: true,
      };
    const parsed = new URL(url);
    const host = getHost(parsed);
    const what = isIP(host) === 0 ? undefined : this.#checkAddress(host);
    const secure = parsed.protocol === 'https:';
    return {
      url,
      rejection: what && `The endpoint's address is not public (${what}).`,
      options: {
        ...urlToHttpOptions(parsed),
        method: 'POST',
        agent: secure ? this.#https : this.#http,
        maxHeaderSize: MAX_HEADER_BYTES,
      },
      secure,
    };
  }

  #closeIdle(): void {
    for (const agent of [this.#http, this.#https]) {
      for (const socket of Object.values(agent.freeSockets).flat()) socket?.destroy();
    }
  }

  #attempt(
    target: Target,
    headers: Readonly<Record<string, string>>,
    body: string,
    totalMs: number,
  ): Promise<Attempt> {
    return new Promise((resolve) => {
      let connectTimer: NodeJS.Timeout | undefined;
      let totalTimer: NodeJS.Timeout | undefined;
      let stage: Stage = 'connecting';
      let socket: Socket | undefined;
      /** Bytes received before this request: not 0 if the connection is reused. Node sets `reusedSocket` only for idle connections. */
      let readBefore = 0;
      let answer:
        | { readonly status: number; readonly body: Excerpt; readonly isComplete: () => boolean }
        | undefined;

      const end = (exchange: Exchange, stale = false): void => {
        clearTimeout(connectTimer);
        clearTimeout(totalTimer);
        resolve({ exchange, stale });
      };
      const fail = (reason: string, stale = false): void => {
        const cut = answer && { answer: { status: answer.status, excerpt: answer.body.text() } };
        end({ kind: 'failed', reason, sent: stage === 'sent' || stage === 'answering', ...cut }, stale);
        request.destroy();
      };
      const late = (): void => fail(LATE[stage]);
      const fault = (cause: NodeJS.ErrnoException): void => {
        // More bytes than the response has, for example if its `content-length` is too small, only end the connection.
        if (answer?.isComplete()) return;
        // In TLS 1.3, an endpoint that requires a certificate rejects the handshake after the client has sent its request.
        if (stage === 'sent' && readBefore === 0 && isTlsAlert(cause)) stage = 'securing';
        const silent = stage === 'sent' && socket?.bytesRead === readBefore;
        fail(describeError(cause, stage, socket), readBefore > 0 && silent && isReset(cause));
      };

      const send = target.secure ? httpsRequest : httpRequest;
      let request: ReturnType<typeof send>;
      try {
        request = send({ ...target.options, headers });
      } catch (cause) {
        // For example an invalid header.
        end(notSent(`The request could not be created${formatErrorCode(cause)}.`));
        return;
      }
      request.on('socket', (assigned) => {
        socket = assigned;
        readBefore = assigned.bytesRead;
        totalTimer = setTimeout(late, totalMs);
        if (readBefore > 0) {
          stage = 'sent';
          return;
        }
        connectTimer = setTimeout(late, this.#timeouts.connectMs);
        if (target.secure) {
          assigned.once('connect', () => {
            stage = 'securing';
          });
        }
        assigned.once(target.secure ? 'secureConnect' : 'connect', () => {
          stage = 'sent';
          clearTimeout(connectTimer);
        });
      });
      request.on('error', fault);
      let interim = 0;
      request.on('information', () => {
        interim += 1;
        if (interim > MAX_INTERIM) fail('The endpoint sent too many interim responses.');
      });
      request.on('response', (response) => {
        stage = 'answering';
        const status = response.statusCode ?? 0;
        const body = new Excerpt();
        answer = { status, body, isComplete: () => response.complete };
        const answered = (): void =>
          end({ kind: 'answered', status, headers: response.headers, excerpt: body.text() });
        response.on('data', (chunk: Buffer) => {
          body.add(chunk);
          if (body.bytes <= MAX_ANSWER_BYTES) return;
          answered();
          request.destroy();
        });
        response.on('end', answered);
        response.on('error', fault);
      });
      request.end(body);
    });
  }
}

function notSent(reason: string): Exchange {
  return { kind: 'failed', reason, sent: false };
}

/**
 * Returns a resolver that shares lookups in progress. The operating system resolves few names at a time, so many connections to a name
 * whose server does not respond would delay all others.
 */
function shareLookups(resolve: Resolve): Resolve {
  const lookups = new Map<string, ReturnType<Resolve>>();
  return (hostname) => {
    const found = lookups.get(hostname) ?? resolve(hostname).finally(() => lookups.delete(hostname));
    lookups.set(hostname, found);
    return found;
  };
}

/** Resolves a name and removes the rejected addresses. */
function guardedLookup(
  resolve: Resolve,
  checkAddress: (address: string) => string | undefined,
): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname).then(
      (addresses) => {
        const usable = addresses.filter(({ address }) => checkAddress(address) === undefined);
        const [first] = usable;
        if (!first) callback(new NoPublicAddress(), '', 0);
        else if (options.all) callback(null, usable);
        else callback(null, first.address, first.family);
      },
      (cause: NodeJS.ErrnoException) => callback(cause, '', 0),
    );
  };
}

class NoPublicAddress extends Error {
  override readonly name = 'NoPublicAddress';
}

/** The beginning of a body, and its whole length. */
class Excerpt {
  bytes = 0;
  readonly #kept: Buffer[] = [];

  add(chunk: Buffer): void {
    if (this.bytes < EXCERPT_BYTES) this.#kept.push(chunk.subarray(0, EXCERPT_BYTES - this.bytes));
    this.bytes += chunk.length;
  }

  /**
   * Returns valid text: a partial last character is removed, and each run of invalid text becomes one
   * replacement character.
   */
  text(): string {
    if (this.#kept.length === 0) return '';
    const decoder = new TextDecoder();
    // In stream mode, because the rest of the last character may be beyond the excerpt.
    const text = decoder.decode(Buffer.concat(this.#kept), { stream: this.bytes > EXCERPT_BYTES });
    return text.replace(UNPRINTABLE, '\ufffd');
  }
}

/** Control characters other than tab and line ends, and undecodable text. */
const UNPRINTABLE = /(?:[^\P{Cc}\t\n\r]|\ufffd)+/gu;

/** The progress of an attempt. */
type Stage = 'connecting' | 'securing' | 'sent' | 'answering';

const LATE: Readonly<Record<Stage, string>> = {
  connecting: 'The connection to the endpoint timed out.',
  securing: 'The TLS handshake with the endpoint timed out.',
  sent: 'The endpoint did not respond in time.',
  answering: 'The endpoint did not complete its response in time.',
};

/** Describes an error as a message. */
function describeError(cause: NodeJS.ErrnoException, stage: Stage, socket: Socket | undefined): string {
  const code = formatErrorCode(cause);
  if (cause.code === 'HPE_HEADER_OVERFLOW')
    return `The headers of the endpoint's response are too long${code}.`;
  if (cause.code?.startsWith('HPE_')) return `The endpoint's response is not valid HTTP${code}.`;
  switch (stage) {
    case 'connecting':
      if (cause instanceof NoPublicAddress) return 'The host name of the endpoint has no public address.';
      if (cause.code === 'ENOTFOUND') return `The host name of the endpoint does not exist${code}.`;
      if (cause.syscall === 'getaddrinfo')
        return `The host name of the endpoint could not be resolved${code}.`;
      if (cause.code === 'ECONNREFUSED') return `The endpoint refused the connection${code}.`;
      return `The endpoint could not be reached${formatCode(cause.code)}.`;
    case 'securing':
      return (socket as TLSSocket | undefined)?.authorizationError
        ? `The endpoint's certificate is not valid${code}.`
        : `The TLS handshake with the endpoint failed${code}.`;
    case 'sent':
      return `The endpoint closed the connection before it responded${code}.`;
    case 'answering':
      return `The endpoint closed the connection before its response was complete${code}.`;
  }
}

function isTlsAlert(cause: NodeJS.ErrnoException): boolean {
  return /^ERR_SSL_\w*_ALERT_/.test(cause.code ?? '');
}

function isReset(cause: NodeJS.ErrnoException): boolean {
  return cause.code === 'ECONNRESET' || cause.code === 'EPIPE';
}

function formatErrorCode(cause: unknown): string {
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  return typeof code === 'string' && /^\w+$/.test(code) ? ` (${code})` : '';
}
