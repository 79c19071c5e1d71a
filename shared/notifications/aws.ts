/** Failures of SES and SNS calls: certainly not accepted, or outcome unknown. */

import { setTimeout as wait } from 'node:timers/promises';
import { formatCode } from '../error-codes.ts';
import { type Jitter, withJitter } from '../retry.ts';
import type { SendOutcome } from './types.ts';

/**
 * Client options for calls that send messages: a single attempt. The SDK would retry a call whose response was lost, and the second message
 * would go unnoticed. Without `throwOnRequestTimeout` a timeout is only logged to the console.
 */
export function singleAttempt(timeoutMs: number) {
  return {
    maxAttempts: 1,
    requestHandler: {
      connectionTimeout: Math.min(3_000, timeoutMs),
      requestTimeout: timeoutMs,
      throwOnRequestTimeout: true,
    },
  };
}

/** Options of both transports. */
export interface CallOptions {
  /** Waits before retries of throttled calls, ms. */
  readonly throttleWaitsMs?: readonly number[];
  readonly random?: () => number;
  /** Timeout of each call. Default: 20 s. */
  readonly timeoutMs?: number;
}

/** Reason why a call failed. Reasons never contain addresses, numbers, ARNs or texts of the service. */
export type CallFailure =
  /** The service rejected the call and accepted nothing. `message` may contain addresses: inspect it, never show it. */
  | { readonly kind: 'rejected'; readonly code: string; readonly message: string; readonly afterMs?: number }
  /** The request was never sent. */
  | { readonly kind: 'unsent'; readonly reason: string }
  /** The service may have accepted the request. */
  | { readonly kind: 'lost'; readonly reason: string };

/** Classifies an SDK error. A 5xx response counts as lost: it does not say what the service did before it failed. */
export function classifyFailure(service: string, cause: unknown): CallFailure {
  const error = cause instanceof Error ? (cause as SdkError) : undefined;
  const status = error?.$metadata?.httpStatusCode;
  if (error && status !== undefined) {
    const code = toErrorCode(error.name);
    if (status >= 500 && !THROTTLED.test(code)) {
      return { kind: 'lost', reason: `${service} failed (${code}).` };
    }
    // A page of an intermediary, or a truncated response.
    if (status < 300) return { kind: 'lost', reason: `${service} returned an invalid response.` };
    const seconds = /^\d{1,6}$/.exec(error.$response?.headers?.['retry-after'] ?? '')?.[0];
    return {
      kind: 'rejected',
      code: status === 429 && !THROTTLED.test(code) ? 'TooManyRequests' : code,
      message: error.message,
      ...(seconds === undefined ? {} : { afterMs: Number(seconds) * 1000 }),
    };
  }
  const code = typeof error?.code === 'string' ? error.code : (error?.name ?? '');
  if (/did not establish a connection/.test(error?.message ?? '')) {
    return { kind: 'unsent', reason: `${service} could not be reached in time.` };
  }
  if (UNSENT.test(code))
    return { kind: 'unsent', reason: `${service} could not be reached${formatCode(toErrorCode(code))}.` };
  if (code === 'TimeoutError' || code === 'ETIMEDOUT') {
    return { kind: 'lost', reason: `${service} did not respond in time.` };
  }
  return {
    kind: 'lost',
    reason: `The connection to ${service} was lost before it responded (${toErrorCode(code)}).`,
  };
}

/** Outcome of a call that sent nothing because no message is accepted at present. */
const later = (reason: string, afterMs?: number): SendOutcome => ({
  ...{ kind: 'later', reason, everything: true },
  ...(afterMs === undefined ? {} : { afterMs }),
});

/** Returns the outcome of a failed send. `judge` decides about calls that the service rejected for another reason. */
export function toSendOutcome(
  service: 'SES' | 'SNS',
  cause: unknown,
  of: { readonly messages: string; readonly throttled: RegExp; readonly notAllowed: RegExp },
  judge: (code: string, message: string) => SendOutcome,
): SendOutcome {
  const failure = classifyFailure(service, cause);
  if (failure.kind === 'lost') return { kind: 'unknown', reason: failure.reason };
  if (failure.kind === 'unsent') return later(failure.reason);
  const { code, message, afterMs } = failure;
  if (THROTTLED.test(code) || of.throttled.test(code)) {
    return later(`${service} throttled the request (${code}).`, afterMs);
  }
  if (NOT_ALLOWED.test(code) || of.notAllowed.test(code)) {
    return later(`${service} does not allow this sender to send ${of.messages} (${code}).`);
  }
  return judge(code, message);
}

const THROTTLE_JITTER: Jitter = { least: 0.5, range: 1 };

/** Error codes with which a service asks the client to slow down. */
const THROTTLED = /Throttl|TooManyRequests|SlowDown/;

/** Error codes about the caller's credentials or permissions, not the message: nothing can be sent until the operator intervenes. */
const NOT_ALLOWED =
  /Authorization|AccessDenied|NotAuthorized|Credentials|Token|Signature|InvalidSecurity|InvalidAccessKey|InvalidClient|OptInRequired|UnrecognizedClient|RequestExpired|TimeTooSkewed/;

/**
 * Runs `call`, and retries it after each of the waits while the service throttles. A throttled call sent nothing. Waits vary by half, so
 * that concurrent calls spread.
 */
export async function retryThrottled<T>(
  waitsMs: readonly number[],
  random: () => number,
  call: () => Promise<T>,
): Promise<T> {
  for (const waitMs of waitsMs) {
    try {
      return await call();
    } catch (cause) {
      const failure = classifyFailure('', cause);
      if (failure.kind !== 'rejected' || !THROTTLED.test(failure.code) || isDailyQuota(failure.message)) {
        throw cause;
      }
      await wait(withJitter(waitMs, THROTTLE_JITTER, random()));
    }
  }
  return call();
}

/** Returns whether SES rejected the call because of its 24-hour quota. SES also limits the rate, and waiting a second helps only there. */
function isDailyQuota(message: string): boolean {
  return /daily|quota/i.test(message);
}

/** Errors that only occur before the request is written: DNS failures, rejected connections, certificates. */
const UNSENT =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|CredentialsProviderError|ProviderError)$|CERT|SIGNATURE|ERR_TLS/;

type SdkError = Error & {
  readonly code?: unknown;
  readonly $metadata?: { readonly httpStatusCode?: number };
  readonly $response?: { readonly headers?: Readonly<Record<string, string>> };
};

/** Returns the error code as the service documents it. The SDK's classes append a suffix. */
function toErrorCode(name: string): string {
  const code = /^[A-Za-z][A-Za-z0-9._]{0,63}$/.exec(name)?.[0] ?? 'no code';
  return code.replace(/(?<=.)(Exception|Error)$/, '');
}
