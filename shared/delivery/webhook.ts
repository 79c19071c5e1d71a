/** The webhook sink: one signed POST per event, according to the Standard Webhooks specification. */
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { VERSION } from '../version.ts';
import { isReservedHeader } from './endpoint-input.ts';
import { MAX_RETRY_AFTER_MS } from './health.ts';
import { MAX_LANES } from './lanes.ts';
import { type Connections, createConnectionPool } from './outbound.ts';
import type { Signing } from './signing-secrets.ts';
import type { Delivery, DeliveryOutcome, SinkPort } from './sink.ts';

type Options = Transport &
  ((Partial<Signing> & Pick<Signing, 'secrets'>) | { readonly signing: () => Promise<Signing> });

interface Transport {
  readonly url: string;
  /** Epoch ms. */
  readonly now: () => number;
  /** Connections that the owner of the sink reuses from one drain to the next. Default: the sink's own. */
  readonly connections?: Connections;
  /** Applies to the sink's own connections. Default: false. */
  readonly allowPrivateNetworks?: boolean;
}

const USER_AGENT = `Jobwire/${VERSION}`;

/**
 * Creates a sink that POSTs each event to a URL. The body is the CloudEvents envelope, `webhook-id` the
 * event's id, and `webhook-timestamp` the time of this attempt. `webhook-signature` covers both and the body,
 * with one signature for each secret. `webhook-replay: true` marks an event sent again because a replay or
 * resend was requested.
 *
 * Secrets and headers are fixed, or read for each attempt (`signing`); without them no request is sent.
 * {@link classifyResponse} classifies the response.
 */
export function createWebhookSink(options: Options): SinkPort {
  const { url, now, allowPrivateNetworks = false } = options;
  const connections =
    options.connections ?? createConnectionPool({ allowPrivateNetworks }).of(url, MAX_LANES);
  let prepared: Prepared | undefined;
  if ('secrets' in options) prepared = prepare(options.secrets, options.headers ?? {});

  /** Returns the common part of current requests; rebuilt only if it changed. */
  async function current(): Promise<Prepared> {
    if ('signing' in options) {
      const { secrets, headers } = await options.signing();
      if (!prepared || !isPreparedFor(prepared, secrets, headers)) prepared = prepare(secrets, headers);
    }
    return prepared as Prepared;
  }

  async function attempt({ event, replay }: Delivery): Promise<DeliveryOutcome> {
    const { keys, constant } = await current();
    const timestamp = String(Math.floor(now() / 1000));
    const signed = `${event.id}.${timestamp}.${event.json}`;
    const exchange = await connections.post(
      url,
      {
        ...constant,
        'webhook-id': event.id,
        'webhook-timestamp': timestamp,
        'webhook-signature': keys.map((key) => sign(key, signed)).join(' '),
        ...(replay ? { 'webhook-replay': 'true' } : {}),
      },
      event.json,
    );
    if (exchange.kind === 'failed') {
      const { reason, sent, answer } = exchange;
      return { kind: 'retry', reason, ...(sent ? { suspect: true } : {}), ...(answer ? { answer } : {}) };
    }
    const { status, excerpt } = exchange;
    const outcome = classifyResponse(status, exchange.headers, now());
    const headers = outcome.kind === 'delivered' ? undefined : pickHeaders(exchange.headers);
    return { ...outcome, answer: { status, excerpt, ...(headers && { headers }) } };
  }

  return {
    maxBatch: 1,
    deliver: (deliveries) => Promise.all(deliveries.map(attempt)),
  };
}

/** The part of requests that depends on secrets and headers alone. */
interface Prepared extends Signing {
  readonly keys: readonly KeyObject[];
  readonly constant: Readonly<Record<string, string>>;
}

function prepare(secrets: Signing['secrets'], headers: Signing['headers']): Prepared {
  const own = Object.entries(headers)
    .map(([name, value]) => [name.toLowerCase(), value] as const)
    .filter(([name]) => !isReservedHeader(name));
  return {
    secrets,
    headers,
    keys: secrets.map(toKey),
    constant: {
      ...Object.fromEntries(own),
      'content-type': 'application/cloudevents+json; charset=utf-8',
      // Requests an uncompressed response.
      'accept-encoding': 'identity',
      'user-agent': USER_AGENT,
    },
  };
}

function isPreparedFor(
  prepared: Prepared,
  secrets: Signing['secrets'],
  headers: Signing['headers'],
): boolean {
  const isSame = secrets.every((secret, at) => secret === prepared.secrets[at]);
  return isSame && secrets.length === prepared.secrets.length && headers === prepared.headers;
}

/**
 * Creates the key of a `whsec_…` secret. Signing with a key object is several times as fast as with its
 * bytes.
 */
function toKey(secret: string): KeyObject {
  const bytes = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  if (bytes.length === 0) throw new Error('A signing secret of the endpoint is empty.');
  return createSecretKey(bytes);
}

function sign(key: KeyObject, signed: string): string {
  return `v1,${createHmac('sha256', key).update(signed).digest('base64')}`;
}

const SINK_WIDE = new Set([401, 403, 404, 405, 408, 410, 425, 429]);
const REDIRECTS = new Set([301, 302, 303, 307, 308]);
/** Statuses of intermediaries between Jobwire and the receiver; they do not concern the event. */
const GATEWAY = new Set([502, 503, 504]);

/**
 * Classifies a response. Pure. Any 2xx is delivered; a redirect is a failure. 401, 403, 404, 405, 408, 425,
 * 429 and 5xx mean that the endpoint as a whole accepts no events now. Any other 4xx rejects this one event.
 * 410, and the header `webhook-delivery: disable` on any response, request that no more events are sent.
 */
export function classifyResponse(status: number, headers: IncomingHttpHeaders, now: number): DeliveryOutcome {
  const disable = disableReason(status, headers);
  const common = disable === undefined ? {} : { disable };
  if (status >= 200 && status < 300) return { kind: 'delivered', ...common };
  const reason = REDIRECTS.has(status)
    ? `The endpoint responded with a redirect (status ${status}), which is not followed.`
    : `The endpoint responded with status ${status}.`;
  if (status >= 400 && status < 500 && !SINK_WIDE.has(status)) return { kind: 'rejected', reason, ...common };
  const afterMs = retryAfterMs(headers['retry-after'], now);
  return {
    kind: 'retry',
    reason,
    ...(afterMs === undefined ? {} : { afterMs }),
    ...(status >= 500 && !GATEWAY.has(status) ? { suspect: true } : {}),
    ...common,
  };
}

function disableReason(status: number, headers: IncomingHttpHeaders): string | undefined {
  if (status === 410) return 'The endpoint responded with status 410 (Gone).';
  const wishes = String(headers['webhook-delivery'] ?? '').split(',');
  const asked = wishes.some((wish) => wish.trim().toLowerCase() === 'disable');
  return asked ? 'The endpoint requested no more deliveries (webhook-delivery: disable).' : undefined;
}

/** Headers of a failed response that are kept: what responded, why, and the name of the request in the receiver's logs. */
const KEPT_HEADERS = [
  ...['content-type', 'location', 'retry-after', 'server', 'via', 'webhook-delivery', 'www-authenticate'],
  ...['x-request-id', 'x-correlation-id', 'x-amzn-requestid', 'cf-ray', 'traceparent'],
];
const MAX_HEADER = 200;

function pickHeaders(headers: IncomingHttpHeaders): Record<string, string> | undefined {
  const kept = KEPT_HEADERS.flatMap((name): [string, string][] =>
    headers[name] === undefined ? [] : [[name, String(headers[name]).slice(0, MAX_HEADER)]],
  );
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}

/** The date format of RFC 9110; other formats that JavaScript parses are not accepted. */
const HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

function retryAfterMs(text: string | undefined, now: number): number | undefined {
  if (text === undefined) return undefined;
  const ms = /^\d+$/.test(text) ? Number(text) * 1000 : HTTP_DATE.test(text) ? Date.parse(text) - now : NaN;
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(0, ms), MAX_RETRY_AFTER_MS);
}
