/** What a call of SES or SNS came to, when it failed: whether it was certainly not taken, or nobody knows. */
import { setTimeout as wait } from 'node:timers/promises';

/**
 * Of clients that hand messages over. One attempt: the SDK would repeat a call whose answer was lost, and nobody would
 * know of the second message. Without `throwOnRequestTimeout` the time-out is only a line on the console.
 */
export function oneAttempt(timeoutMs: number) {
  return {
    maxAttempts: 1,
    requestHandler: {
      connectionTimeout: Math.min(3_000, timeoutMs),
      requestTimeout: timeoutMs,
      throwOnRequestTimeout: true,
    },
  };
}

/** Why a call failed. Reasons never hold addresses, numbers, ARNs or texts of the service. */
export type CallFailure =
  /** The service said no: it took nothing. `message` may hold addresses: to be looked at, never shown. */
  | { readonly kind: 'refused'; readonly code: string; readonly message: string; readonly afterMs?: number }
  /** The request never left. */
  | { readonly kind: 'unsent'; readonly reason: string }
  /** It may have been taken. */
  | { readonly kind: 'lost'; readonly reason: string };

/** What an error of the SDK means. An answer of 5xx is a lost one: what it did before it failed is not said. */
export function failureOf(service: string, cause: unknown): CallFailure {
  const error = cause instanceof Error ? (cause as SdkError) : undefined;
  const status = error?.$metadata?.httpStatusCode;
  if (error && status !== undefined) {
    const code = codeOf(error.name);
    if (status >= 500 && !THROTTLED.test(code)) {
      return { kind: 'lost', reason: `${service} failed (${code}).` };
    }
    // A page of something in between, or an answer cut short.
    if (status < 300) return { kind: 'lost', reason: `${service} gave an answer that can’t be read.` };
    const seconds = /^\d{1,6}$/.exec(error.$response?.headers?.['retry-after'] ?? '')?.[0];
    return {
      kind: 'refused',
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
    return { kind: 'unsent', reason: `${service} could not be reached (${codeOf(code)}).` };
  if (code === 'TimeoutError' || code === 'ETIMEDOUT') {
    return { kind: 'lost', reason: `${service} did not answer in time.` };
  }
  return { kind: 'lost', reason: `The connection to ${service} broke before it answered (${codeOf(code)}).` };
}

/** Whether a service asked to slow down. */
export const THROTTLED = /Throttl|TooManyRequests|SlowDown/;

/** Whether it is about who we are, not about what is sent: nothing goes until somebody looks after it. */
export const NOT_ALLOWED =
  /Authorization|AccessDenied|NotAuthorized|Credentials|Token|Signature|InvalidSecurity|InvalidAccessKey|InvalidClient|OptInRequired|UnrecognizedClient|RequestExpired|TimeTooSkewed/;

/**
 * Calls, and calls again after each of the waits while the service asks to slow down: nothing was taken then. The waits
 * vary by half, so that calls at the same time spread.
 */
export async function throughThrottling<T>(
  waitsMs: readonly number[],
  random: () => number,
  call: () => Promise<T>,
): Promise<T> {
  for (const waitMs of waitsMs) {
    try {
      return await call();
    } catch (cause) {
      const failure = failureOf('', cause);
      if (failure.kind !== 'refused' || !THROTTLED.test(failure.code) || isForTheDay(failure.message)) {
        throw cause;
      }
      await wait(waitMs * (0.5 + random()));
    }
  }
  return call();
}

/** SES has a rate, and a number for 24 hours: waiting for a second helps with the rate only. */
function isForTheDay(message: string): boolean {
  return /daily|quota/i.test(message);
}

/** What can only happen before the request is written: names that don't resolve, refused connections, certificates. */
const UNSENT =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|CredentialsProviderError|ProviderError)$|CERT|SIGNATURE|ERR_TLS/;

type SdkError = Error & {
  readonly code?: unknown;
  readonly $metadata?: { readonly httpStatusCode?: number };
  readonly $response?: { readonly headers?: Readonly<Record<string, string>> };
};

/** A code as the services document it; the SDK's classes add a word. */
function codeOf(name: string): string {
  const code = /^[A-Za-z][A-Za-z0-9._]{0,63}$/.exec(name)?.[0] ?? 'no code';
  return code.replace(/(?<=.)(Exception|Error)$/, '');
}
