/** The sandbox of the ordering API called as a function: requests and responses of a tracker without sockets. */
import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { SandboxEnv } from '../../sandbox/http/responses.ts';
import type { SandboxApp } from '../../sandbox/server.ts';

/** Options of the connection between a tracker and the sandbox. */
export interface WireOptions {
  /**
   * Number of jobs on a page of 100, a divisor of 100. Each job takes up several places of the list, and all but the first of
   * these are empty. So an account with ten jobs has several pages, which shift while they are read, like those of an account
   * with hundreds.
   */
  readonly pageSize?: number;
  /** Called with the number of the request (from 1): before the sandbox receives it, and after it has computed the response. */
  readonly before?: (request: number) => void | Promise<void>;
  readonly after?: (request: number) => void | Promise<void>;
}

/**
 * A `fetch` that calls the sandbox. As with the global one, a connection that the sandbox resets rejects, a truncated body
 * fails while it is read, and a missing response waits for the caller's signal. Requests and responses have only the fields
 * that the sandbox and the ordering client use: the web's own classes would take most of the time.
 */
export function wireTo(sandbox: SandboxApp, options: WireOptions = {}): typeof globalThis.fetch {
  const places = 100 / (options.pageSize ?? 100);
  let count = 0;

  return async (input, init = {}) => {
    count += 1;
    const request = count;
    await options.before?.(request);
    const page = places === 1 ? undefined : pageIn(String(input), places);
    const outgoing = new Outgoing();
    const { signal } = init;
    const giveUp = (): void => outgoing.socket.destroy();
    signal?.addEventListener('abort', giveUp);
    await sandbox.fetch(
      {
        method: init.method ?? 'GET',
        url: page?.url ?? String(input),
        headers: getHeaders(init),
        text: async () => String(init.body ?? ''),
      } as Request,
      { outgoing: outgoing as unknown as ServerResponse } as SandboxEnv['Bindings'],
    );
    signal?.removeEventListener('abort', giveUp);
    await options.after?.(request);
    if (outgoing.status === 0 && signal?.aborted) throw signal.reason;
    if (outgoing.status === 0) throw new TypeError('fetch failed', { cause: RESET });
    const text = page && outgoing.status === 200 ? page.shown(outgoing.text) : outgoing.text;
    return {
      status: outgoing.status,
      headers: new Headers(outgoing.headers),
      body: bodyOf(text, outgoing.cut),
    } as unknown as Response;
  };
}

/**
 * A page of the list where each job takes up several places: the request to the sandbox, and the conversion of its response.
 */
function pageIn(
  address: string,
  places: number,
): { readonly url: string; shown(text: string): string } | undefined {
  const url = new URL(address);
  const size = Number(url.searchParams.get('pageSize'));
  const page = Number(url.searchParams.get('page'));
  if (!size || !page) return undefined;
  const whole = size % places === 0;
  // A page of less than one job has it at its beginning, or not at all.
  const first = Math.ceil(((page - 1) * size) / places);
  const empty = !whole && first * places >= page * size;
  const asked = whole ? { page, size: size / places } : { page: first + 1, size: 1 };
  url.searchParams.set('page', String(asked.page));
  url.searchParams.set('pageSize', String(asked.size));
  return {
    url: url.href,
    shown(text) {
      let body: { items: unknown[] | null; totalCount: number; pageNumber: number; pageSize: number };
      try {
        body = JSON.parse(text);
      } catch {
        return text;
      }
      if (!('items' in body)) return text;
      const total = body.totalCount * places;
      return JSON.stringify({
        items: empty && body.items ? [] : body.items,
        totalCount: total,
        // A response with another page than the requested one stays another one.
        pageNumber: page + body.pageNumber - asked.page,
        pageSize: size + body.pageSize - asked.size,
        totalPages: Math.ceil(total / size),
        hasPreviousPage: page > 1,
        hasNextPage: page * size < total,
      });
    },
  };
}

const RESET = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });

function getHeaders({ headers, body }: RequestInit): Headers {
  const sent = new Headers(headers);
  if (body instanceof URLSearchParams) {
    sent.set('content-type', 'application/x-www-form-urlencoded;charset=UTF-8');
    sent.set('content-length', String(Buffer.byteLength(String(body))));
  }
  return sent;
}

async function* bodyOf(text: string, cut: boolean): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
  if (cut) throw new TypeError('terminated', { cause: RESET });
}

/** The part of a server response that the sandbox uses. */
class Outgoing extends EventEmitter {
  status = 0;
  headers: Record<string, string> = {};
  text = '';
  cut = false;
  destroyed = false;
  readonly socket = {
    resetAndDestroy: () => this.#destroy(),
    destroy: () => this.#destroy(),
  };

  writeHead(status: number, headers: Record<string, string | number>): void {
    this.status = status;
    this.headers = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
  }

  write(chunk: Uint8Array, sent: () => void): void {
    this.text += Buffer.from(chunk).toString();
    sent();
  }

  end(body: string): void {
    this.text += body;
  }

  #destroy(): void {
    this.destroyed = true;
    this.cut = this.status !== 0;
    this.emit('close');
  }
}
