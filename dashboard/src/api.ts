/** Calls of the HTTP API that serves the page. What is not what was asked for is an {@link ApiError} with a sentence for people. */

/** What a call can say besides its path. */
export interface CallOptions {
  /** What is undefined is left out. */
  readonly query?: { readonly [name: string]: string | number | boolean | undefined };
  /** Sent as JSON. */
  readonly body?: unknown;
  /** The revision that is to be changed: 412 when it was changed meanwhile. */
  readonly revision?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Why a call did not give what was asked for. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** 0: no answer came. */
  readonly status: number;
  /** `not-found`, `unprocessable-content` and others; `unreachable` where no answer came. */
  readonly kind: string;
  /** The parameter, or the path of the field in the body, that is not right. */
  readonly field: string | undefined;
  /** To be told when asking about it. */
  readonly requestId: string | undefined;
  /** Members of the problem besides the usual ones. */
  readonly members: Readonly<Record<string, unknown>>;
  /** When to ask again at the earliest. */
  readonly retryAfterSeconds: number | undefined;

  constructor(
    facts: Pick<ApiError, 'message' | 'status' | 'kind'> &
      Partial<Pick<ApiError, 'field' | 'requestId' | 'members' | 'retryAfterSeconds'>>,
    options?: ErrorOptions,
  ) {
    super(facts.message, options);
    this.status = facts.status;
    this.kind = facts.kind;
    this.field = facts.field;
    this.requestId = facts.requestId;
    this.members = facts.members ?? {};
    this.retryAfterSeconds = facts.retryAfterSeconds;
  }
}

/** An answer with its headers. */
export interface ApiResponse<T> {
  readonly status: number;
  readonly data: T;
  readonly headers: Headers;
}

/** Calls with a key. */
export interface Api {
  get<T>(path: string, options?: CallOptions): Promise<T>;
  post<T>(path: string, options?: CallOptions): Promise<T>;
  put<T>(path: string, options?: CallOptions): Promise<T>;
  patch<T>(path: string, options?: CallOptions): Promise<T>;
  delete(path: string, options?: CallOptions): Promise<void>;
  /** Any method, with status and headers. */
  call<T>(method: string, path: string, options?: CallOptions): Promise<ApiResponse<T>>;
  /** A response whose body is still to be read: a stream. */
  open(path: string, options?: CallOptions): Promise<Response>;
}

/**
 * Calls with a key. `onRefused` is told when the service no longer takes it. A POST carries an `Idempotency-Key`, so that
 * the service does it once however often a proxy repeats it.
 */
export function createApi(key: string, onUnauthorized: (error: ApiError) => void = () => {}): Api {
  async function open(method: string, path: string, options: CallOptions = {}): Promise<Response> {
    const { query = {}, body, revision, signal } = options;
    const headers: Record<string, string> = { authorization: `Bearer ${key}` };
    if (body !== undefined) headers['content-type'] = 'application/json';
    if (revision !== undefined) headers['if-match'] = `"${revision}"`;
    if (method === 'POST') headers['idempotency-key'] = createRandomId();
    const asked = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) asked.set(name, String(value));
    }
    let response: Response;
    try {
      response = await fetch(asked.size > 0 ? `${path}?${asked}` : path, {
        method,
        headers,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        ...(signal ? { signal } : {}),
        cache: 'no-store',
        credentials: 'omit',
      });
    } catch (cause) {
      if (signal?.aborted) throw cause;
      throw unreachable(cause);
    }
    if (response.ok) return response;
    const error = await toError(response);
    if (error.status === 401) onUnauthorized(error);
    throw error;
  }

  async function call<T>(method: string, path: string, options?: CallOptions): Promise<ApiResponse<T>> {
    const response = await open(method, path, options);
    try {
      const text = await response.text();
      const data = (text === '' ? undefined : JSON.parse(text)) as T;
      return { status: response.status, data, headers: response.headers };
    } catch (cause) {
      if (options?.signal?.aborted) throw cause;
      throw unreachable(cause);
    }
  }

  const data =
    (method: string) =>
    async <T>(path: string, options?: CallOptions) =>
      (await call<T>(method, path, options)).data;
  return {
    get: data('GET'),
    post: data('POST'),
    put: data('PUT'),
    patch: data('PATCH'),
    delete: data('DELETE'),
    call,
    open: (path, options) => open('GET', path, options),
  };
}

/** The sentence of anything that was thrown. */
export function toErrorMessage(error: unknown): string {
  return error instanceof Error ? error.message : 'Something went wrong that has no name.';
}

function unreachable(cause: unknown): ApiError {
  const message = 'Jobwire can’t be reached from here at the moment.';
  return new ApiError({ message, status: 0, kind: 'unreachable' }, { cause });
}

/** A problem document as an error. Anything else that is not OK comes from something in between. */
async function toError(response: Response): Promise<ApiError> {
  const { status, headers } = response;
  const retryAfter = Number(headers.get('retry-after') ?? Number.NaN);
  const facts = { status, ...(retryAfter >= 0 && { retryAfterSeconds: retryAfter }) };
  try {
    const { type, title, detail, field, requestId, ...members } = (await response.json()) as Record<
      string,
      unknown
    >;
    return new ApiError({
      ...facts,
      kind: String(type).replace(/^.*:/, ''),
      message: String(detail ?? title),
      ...(typeof field === 'string' && { field }),
      ...(typeof requestId === 'string' && { requestId }),
      members,
    });
  } catch {
    return new ApiError({ ...facts, kind: 'unknown', message: `Jobwire answered with ${status}.` });
  }
}

/** A text that nobody had before. `randomUUID` is missing on pages without TLS. */
export function createRandomId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
