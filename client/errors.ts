/** Errors of the client. */
import { explainCode } from '../shared/error-codes.ts';

/** Error response of the API. The message is the API's own. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** HTTP status. */
  readonly status: number;
  /** Kind of problem, such as `not-found`: the last segment of the problem's `type`. Empty without a problem document. */
  readonly kind: string;
  /** Invalid parameter, or path of the invalid field in the body. */
  readonly field: string | undefined;
  /** Id of the request, as in the server log. */
  readonly requestId: string | undefined;
  /** Time after which the API asks to retry. `undefined`: the API names none. */
  readonly retryAfterSeconds: number | undefined;
  /** The problem document (RFC 9457). Empty if the response has none. */
  readonly problem: Readonly<Record<string, unknown>>;

  constructor(message: string, { status, headers }: Response, problem: Readonly<Record<string, unknown>>) {
    super(message);
    this.status = status;
    this.problem = problem;
    this.kind = String(problem.type ?? '').replace(/^.*:/, '');
    this.field = typeof problem.field === 'string' ? problem.field : undefined;
    this.requestId = headers.get('x-request-id') ?? undefined;
    const seconds = Number(headers.get('retry-after') ?? Number.NaN);
    this.retryAfterSeconds = seconds >= 0 ? seconds : undefined;
  }
}

/** The API did not respond, or not as Jobwire does. */
export class UnreachableError extends Error {
  override readonly name = 'UnreachableError';
}

/** Reads an error response. */
export async function toError(response: Response, base: string): Promise<ApiError | UnreachableError> {
  if (response.status < 400) {
    const target = response.headers.get('location');
    const to = target && URL.canParse(target, base) ? ` to ${new URL(target, base).origin}` : '';
    await response.body?.cancel().catch(() => {});
    return new UnreachableError(
      `${base} redirects${to}. The API key is not sent there. Use that address instead.`,
    );
  }
  let problem: Record<string, unknown> = {};
  try {
    const read: unknown = JSON.parse((await response.text()).slice(0, 1_000_000));
    if (typeof read === 'object' && read !== null) problem = { ...read };
  } catch {
    // Such a response comes from neither Jobwire nor a proxy in front of it.
  }
  const text = [problem.detail, problem.title].find((one) => typeof one === 'string' && one !== '');
  const message = typeof text === 'string' ? text : `${base} responded with HTTP ${response.status}.`;
  return new ApiError(message, response, problem);
}

/** Returns the error of a request without a response. */
export function toUnreachableError(base: string, cause: unknown): UnreachableError {
  return new UnreachableError(`${base} can’t be reached: ${describeNetworkError(cause)}.`, { cause });
}

/** Returns the error of a response that Jobwire would not send. */
export function toUnexpectedResponseError(base: string, cause?: unknown): UnreachableError {
  return new UnreachableError(`${base} responds, but does not seem to be Jobwire. Check the address.`, {
    cause,
  });
}

/** Adds to the error that the request may have been processed, where that matters. */
export function markPossiblyProcessed(
  method: string,
  cause: UnreachableError,
  repeated = false,
): UnreachableError {
  const { cause: reason } = cause;
  // Browsers do not report the cause. Node does, also if it sends nothing, for example to a blocked port.
  const isUnknown = reason instanceof Error && reason.cause === undefined && getCode(reason) === '';
  const never =
    !isUnknown && /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|UND_ERR_CONNECT_TIMEOUT|)$/.test(getCode(reason));
  if (method === 'GET' || (never && !repeated)) return cause;
  return new UnreachableError(`${cause.message} The request may have been processed.`, { cause });
}

/** Returns whether the connection was cut after it was established. Only Node reports that. */
export function isConnectionReset({ cause }: UnreachableError): boolean {
  return CUT.includes(getCode(cause));
}

const CUT = ['ECONNRESET', 'UND_ERR_SOCKET', 'EPIPE'];

/** Returns the system's error code, such as `ECONNRESET`, or an empty string. */
function getCode(cause: unknown): string {
  const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause;
  return String((inner as { readonly code?: unknown } | undefined)?.code ?? '');
}

/** Returns the reason for a missing response as text. */
export function describeNetworkError(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  if (cause.name === 'TimeoutError') return 'the request timed out';
  const inner = cause.cause instanceof Error ? cause.cause : cause;
  const code = getCode(cause);
  const message = inner.message.replace(/\.$/, '');
  // The text of Node, which blocks some ports as browsers do (https://fetch.spec.whatwg.org/#port-blocking).
  if (message === 'bad port') return 'Node and browsers do not connect to this port. Use another one';
  return explainCode(code) ?? (code === '' ? message : `${message} (${code})`);
}
