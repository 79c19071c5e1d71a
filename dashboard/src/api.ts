/** Client of the HTTP API. Every failure is an {@link ApiError} with a message for the user. */

/** Options of a request. */
export interface CallOptions {
  /** Query parameters. `undefined` values are omitted. */
  readonly query?: { readonly [name: string]: string | number | boolean | undefined };
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Expected revision (`If-Match`): 412 if the resource was modified meanwhile. */
  readonly revision?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A failed request. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** HTTP status; 0 without a response. */
  readonly status: number;
  /** `not-found`, `unprocessable-content` and others; `unreachable` without a response. */
  readonly kind: string;
  /** The invalid parameter, or path of the invalid field in the body. */
  readonly field: string | undefined;
  /** Id of the request, for support. */
  readonly requestId: string | undefined;
  /** Extension members of the problem document. */
  readonly members: Readonly<Record<string, unknown>>;
  /** Earliest time of a retry. */
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

/** A response with status and headers. */
export interface ApiResponse<T> {
  readonly status: number;
  readonly data: T;
  readonly headers: Headers;
}

/** Client with a key. */
export interface Api {
  get<T>(path: string, options?: CallOptions): Promise<T>;
  post<T>(path: string, options?: CallOptions): Promise<T>;
  put<T>(path: string, options?: CallOptions): Promise<T>;
  patch<T>(path: string, options?: CallOptions): Promise<T>;
  delete(path: string, options?: CallOptions): Promise<void>;
  /** Sends any method; returns status and headers too. */
  call<T>(method: string, path: string, options?: CallOptions): Promise<ApiResponse<T>>;
  /** Returns the response without reading its body, for streams. */
  open(path: string, options?: CallOptions): Promise<Response>;
}

/**
 * Creates a client with a key. Calls `onUnauthorized` on 401. A POST has an `Idempotency-Key`, so that it takes effect once
 * even if a proxy repeats it.
 */
export function createApi(key: string, onUnauthorized: (error: ApiError) => void = () => {}): Api {
  async function open(method: string, path: string, options: CallOptions = {}): Promise<Response> {
    const { query = {}, body, revision, signal } = options;
    const headers: Record<string, string> = { authorization: `Bearer ${key}` };
    if (body !== undefined) headers['content-type'] = 'application/json';
    if (revision !== undefined) headers['if-match'] = `"${revision}"`;
    if (method === 'POST') headers['idempotency-key'] = createRandomId();
    const params = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) params.set(name, String(value));
    }
    let response: Response;
    try {
      response = await fetch(params.size > 0 ? `${path}?${params}` : path, {
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

/** Returns the message of anything thrown. */
export function toErrorMessage(error: unknown): string {
  return error instanceof Error ? error.message : 'Unexpected error. Reload the page.';
}

function unreachable(cause: unknown): ApiError {
  const message = 'Jobwire cannot be reached. Check your network connection.';
  return new ApiError({ message, status: 0, kind: 'unreachable' }, { cause });
}

/** Converts a problem document to an error. Other error responses come from a proxy. */
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
    return new ApiError({ ...facts, kind: 'unknown', message: `Unexpected response with status ${status}.` });
  }
}

/** Returns a random id. `randomUUID` is not available without TLS. */
export function createRandomId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
