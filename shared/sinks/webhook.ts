/** The webhook sink: one signed POST per event, as the Standard Webhooks specification has it. */
import { Webhook } from 'standardwebhooks';
import { type Dispatcher, request } from 'undici';
import { createOutboundAgent, refuseUrl } from './outbound.ts';
import type { Delivery, DeliveryOutcome, SinkPort } from './sink.ts';

interface Options {
  readonly url: string;
  /** `whsec_…`; two while one is being rotated out: then each request carries both signatures. */
  readonly secrets: readonly string[];
  readonly allowPrivateNetworks: boolean;
  /** Epoch ms. */
  readonly now: () => number;
  /** For a whole attempt. */
  readonly timeoutMs?: number;
  /** Kept by whoever keeps the sink, so that connections are reused from one drain to the next. */
  readonly agent?: Dispatcher;
}

/** Of an answer's body nothing is needed but that it was read, so that the connection can be used again. */
const MAX_ANSWER_BYTES = 64 * 1024;
const USER_AGENT = 'Jobwire/0.1';

/**
 * A sink that POSTs each event to a URL: the CloudEvents envelope as the body, `webhook-id` the event's id,
 * `webhook-timestamp` the time of this attempt, `webhook-signature` over both and the body. Any 2xx is delivered; a
 * redirect is a failure; 408, 425, 429, 5xx, 401, 403, 404 and 405 mean that the endpoint as a whole can't take events now;
 * any other 4xx refuses this one event.
 */
export function createWebhookSink(options: Options): SinkPort {
  const { url, now, timeoutMs = 15_000 } = options;
  const refusal = refuseUrl(url, options.allowPrivateNetworks);
  const signers = options.secrets.map((secret) => new Webhook(secret));
  const agent =
    options.agent ??
    createOutboundAgent({ allowPrivateNetworks: options.allowPrivateNetworks, connections: 16 });

  async function attempt({ event }: Delivery): Promise<DeliveryOutcome> {
    if (refusal) return { kind: 'retry', reason: `The endpoint's URL is refused. ${refusal}` };
    const sentAt = new Date(now());
    try {
      const answer = await request(url, {
        method: 'POST',
        dispatcher: agent,
        signal: AbortSignal.timeout(timeoutMs),
        headers: {
          'content-type': 'application/cloudevents+json; charset=utf-8',
          'user-agent': USER_AGENT,
          'webhook-id': event.id,
          'webhook-timestamp': String(Math.floor(sentAt.getTime() / 1000)),
          'webhook-signature': signers.map((signer) => signer.sign(event.id, sentAt, event.json)).join(' '),
        },
        body: event.json,
      });
      await answer.body.dump({ limit: MAX_ANSWER_BYTES, signal: AbortSignal.timeout(timeoutMs) });
      return judge(answer.statusCode, answer.headers['retry-after'], now());
    } catch (cause) {
      return { kind: 'retry', reason: reasonOf(cause) };
    }
  }

  return {
    maxBatch: 1,
    deliver: (deliveries) => Promise.all(deliveries.map(attempt)),
  };
}

const SINK_WIDE = new Set([401, 403, 404, 405, 408, 425, 429]);

/** What a status means. Pure. */
export function judge(
  status: number,
  retryAfter: string | readonly string[] | undefined,
  now: number,
): DeliveryOutcome {
  if (status >= 200 && status < 300) return { kind: 'delivered' };
  const reason = `The endpoint answered ${status}.`;
  if (status >= 400 && status < 500 && !SINK_WIDE.has(status)) return { kind: 'rejected', reason };
  const afterMs = retryAfterMs(typeof retryAfter === 'string' ? retryAfter : retryAfter?.[0], now);
  return { kind: 'retry', reason, ...(afterMs === undefined ? {} : { afterMs }) };
}

function retryAfterMs(text: string | undefined, now: number): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}

/** A fault in words; the URL is left out, for it may hold a key. */
function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return 'The endpoint could not be reached.';
  if (cause.name === 'TimeoutError') return 'The endpoint did not answer in time.';
  const code = 'code' in cause && typeof cause.code === 'string' ? ` (${cause.code})` : '';
  return `The endpoint could not be reached${code}.`;
}
