import * as z from 'zod';
import type { FetchResponse } from './transport.ts';

/**
 * Kinds of errors that callers must distinguish (rules 11 and 12 of docs/truth.md):
 * - `bad_request` (400 and other rejections of the request itself), `forbidden` (403), `not_found` (404),
 *   `conflict` (409): a retry does not help.
 * - `unauthorized`: 401 although the token had just been issued. `credentials_rejected`: the token endpoint
 *   itself rejected the credentials. Both mean that the credentials are no longer valid.
 * - `rate_limited` (429), `unavailable` (408, 502, 503, 504), `server_error` (any other 5xx), `timeout`,
 *   `network`: faults of upstream or of the network. When a caller receives one, the retries that the
 *   contract allows are used up.
 * - `malformed`: an answer that does not match the contract (HTML, not JSON, truncated, another shape, a
 *   redirect). It proves neither presence nor absence.
 */
export type OrderingErrorKind =
  | 'bad_request'
  | 'unauthorized'
  | 'credentials_rejected'
  | 'forbidden'
  | 'not_found'
  | 'conflict'
  | 'rate_limited'
  | 'server_error'
  | 'unavailable'
  | 'timeout'
  | 'network'
  | 'malformed';

interface OrderingErrorFields {
  kind: OrderingErrorKind;
  /**
   * Method and path template, such as `GET /Jobs/{jobNumber}`: few values, so it is suitable for grouping.
   */
  operation: string;
  /** HTTP status, if there was an answer. */
  status?: number | undefined;
  /** Retry-After of the answer (ms). */
  retryAfterMs?: number | undefined;
  /** Details, as one cleaned line. */
  detail?: string | undefined;
  /** Whether the body ended before it was complete. The connection is the more likely cause than upstream. */
  cutShort?: boolean | undefined;
  /** Whether no request was sent, because an earlier Retry-After has not passed. */
  notSent?: boolean | undefined;
  cause?: unknown;
}

/**
 * The only error of the ordering client. Its message is for log lines and operators: no
 * token, no secret, no payload. `cause` is the underlying error, if there is one.
 */
export class OrderingError extends Error {
  override readonly name = 'OrderingError';
  readonly kind: OrderingErrorKind;
  readonly operation: string;
  readonly status: number | undefined;
  readonly retryAfterMs: number | undefined;
  readonly detail: string | undefined;
  readonly cutShort: boolean;
  readonly notSent: boolean;

  constructor(fields: OrderingErrorFields) {
    const status = fields.status === undefined ? '' : ` (${fields.status})`;
    const detail = fields.detail ? `: ${fields.detail}` : '';
    super(
      `${fields.operation} failed: ${SENTENCES[fields.kind]}${status}${detail}`,
      fields.cause === undefined ? undefined : { cause: fields.cause },
    );
    this.kind = fields.kind;
    this.operation = fields.operation;
    this.status = fields.status;
    this.retryAfterMs = fields.retryAfterMs;
    this.detail = fields.detail;
    this.cutShort = fields.cutShort ?? false;
    this.notSent = fields.notSent ?? false;
  }
}

const SENTENCES: Record<OrderingErrorKind, string> = {
  bad_request: 'the ordering API rejected the request',
  unauthorized: 'the ordering API rejected a new token',
  credentials_rejected: 'the token endpoint rejected the credentials',
  forbidden: 'the credentials have no permission for this request',
  not_found: 'the record does not exist for this account',
  conflict: 'the state of the record does not allow the request',
  rate_limited: 'too many requests',
  server_error: 'the ordering API had an internal error',
  unavailable: 'the ordering API is unavailable',
  timeout: 'no complete response within the time limit',
  network: 'the connection failed',
  malformed: 'the response does not match the contract',
};

/** All kinds. */
export const ERROR_KINDS = Object.keys(SENTENCES) as readonly OrderingErrorKind[];

/** Options of `errorFromResponse`. */
interface ResponseErrorOptions {
  /** Time relative to which a Retry-After date is read (epoch ms). Default: the clock. */
  now?: number;
  /** Texts that must not appear in the error even if upstream echoes them: token, secret. */
  hide?: readonly string[];
}

/**
 * Converts an answer with a failing status into an `OrderingError`. Problem documents with or without
 * `errors`, lists of validation messages, empty bodies and HTML pages all become one cleaned line in
 * `detail` (rule 12).
 *
 * A redirect is `malformed`: the contract has none, and following one would send credentials to an address
 * that is not configured.
 */
export function errorFromResponse(
  operation: string,
  status: number,
  headers: FetchResponse['headers'],
  bodyText: string,
  options: ResponseErrorOptions = {},
): OrderingError {
  return new OrderingError({
    kind: kindOfStatus(status),
    operation,
    status,
    retryAfterMs: retryAfterMs(headers, options.now ?? Date.now()),
    detail:
      status < 400
        ? 'an unexpected success or redirect status; check the configured address'
        : readDetail(headers, bodyText, options.hide ?? []),
  });
}

function kindOfStatus(status: number): OrderingErrorKind {
  if (status < 400) return 'malformed';
  switch (status) {
    case 401:
      return 'unauthorized';
    case 403:
      return 'forbidden';
    case 404:
      return 'not_found';
    case 409:
      return 'conflict';
    case 429:
      return 'rate_limited';
    case 408:
    case 502:
    case 503:
    case 504:
      return 'unavailable';
    default:
      return status >= 500 ? 'server_error' : 'bad_request';
  }
}

/** Returns whether the body is an HTML page, which is never an answer of the ordering API itself. */
export function isHtml(headers: FetchResponse['headers'], bodyText: string): boolean {
  return (
    /^\s*(text\/html|application\/xhtml)/i.test(headers.get('content-type') ?? '') || /^\s*</.test(bodyText)
  );
}

const MAX_PROBLEM_CHARACTERS = 65_536;
const nullableText = z.string().nullish().catch(null);
const ErrorBody = z.object({
  title: nullableText,
  detail: nullableText,
  errors: z
    .record(z.string(), z.union([z.string().transform((message) => [message]), z.array(z.string())]))
    .nullish()
    .catch(null),
  validationMessages: z
    .array(
      z.object({ errorCode: z.union([z.string(), z.number()]).nullish().catch(null), message: nullableText }),
    )
    .nullish()
    .catch(null),
});

function readDetail(headers: FetchResponse['headers'], bodyText: string, hide: readonly string[]): string {
  if (bodyText.trim() === '') return 'the response had no body';
  if (isHtml(headers, bodyText)) return 'the response was an HTML page';
  if (bodyText.length > MAX_PROBLEM_CHARACTERS) return 'the response was too long for a problem document';
  const body = ErrorBody.safeParse(parseJson(bodyText)).data;
  if (!body) return 'the response was not a problem document';
  const parts = [
    body.detail || body.title,
    ...Object.entries(body.errors ?? {}).map(([field, messages]) =>
      [field, messages.join(' ')].filter(Boolean).join(': '),
    ),
    ...(body.validationMessages ?? []).map(({ errorCode, message }) =>
      [message, errorCode ? `[${errorCode}]` : ''].filter(Boolean).join(' '),
    ),
  ];
  return cleanLine(parts.filter(Boolean).join('; '), hide) || 'the response contained no reason';
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const LONGEST_LINE = 300;

/**
 * Converts foreign text into one line of at most 300 characters for a log. Control and invisible characters
 * become spaces. Secrets are masked, both literal and form-encoded.
 */
export function cleanLine(text: string, hide: readonly string[] = []): string {
  let line = text;
  for (const secret of hide) {
    if (secret === '') continue;
    for (const form of [secret, encodeURIComponent(secret)]) line = line.replaceAll(form, '[hidden]');
  }
  line = line
    .replace(/\bBearer\s+[\w.~+/=-]{20,}/gi, '[hidden]')
    .replace(/[\s\p{C}]+/gu, ' ')
    .trim();
  return line.length <= LONGEST_LINE
    ? line
    : `${line
        .slice(0, LONGEST_LINE - 1)
        .toWellFormed()
        .trimEnd()}…`;
}

/**
 * Returns Retry-After in milliseconds from `now`. Accepts seconds or an HTTP date. A past date is 0. Any
 * other value is `undefined`.
 */
function retryAfterMs(headers: FetchResponse['headers'], now: number): number | undefined {
  const value = headers.get('retry-after')?.trim() ?? '';
  if (/^\d+$/.test(value)) return Math.min(Number(value) * 1000, Number.MAX_SAFE_INTEGER);
  // Date.parse also accepts bare numbers and fragments as dates, so the format is checked first.
  if (!/^[a-z]{3,9}, .+ GMT$/i.test(value)) return undefined;
  const at = Date.parse(value);
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}
