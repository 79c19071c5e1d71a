/** The sandbox of the ordering service called as a function: what a tracker asks and is answered, without sockets. */
import type { ServerResponse } from 'node:http';
import type { SandboxEnv } from '../../local/sandbox/answers.ts';
import type { SandboxApp } from '../../local/sandbox/server.ts';

/** What stands between a tracker and the sandbox. */
export interface WireOptions {
  /**
   * How many jobs a page really holds. The tracker asks for pages of 100 and is told that it got one; the sandbox is asked
   * for smaller ones, with the same page number. So an account of ten jobs has several pages, which shift while they are
   * read like those of one with hundreds.
   */
  readonly pageSize?: number;
  /** Called with the number of the request (from 1) before the sandbox sees it, and once its answer is made up. */
  readonly before?: (request: number) => void | Promise<void>;
  readonly after?: (request: number) => void | Promise<void>;
}

/** The page size the tracker asks for. */
const ASKED = 'pageSize=100';

/**
 * A `fetch` that calls the sandbox. Connections that the sandbox resets reject, and bodies that it cuts fail half way, as
 * with the global one. Requests and answers are the bare minimum that the sandbox and the ordering client look at: the
 * web's own Request, Response and streams would take most of the time.
 */
export function wireTo(sandbox: SandboxApp, options: WireOptions = {}): typeof globalThis.fetch {
  const { pageSize = 100 } = options;
  let count = 0;

  return async (input, init = {}) => {
    count += 1;
    const request = count;
    await options.before?.(request);
    const url = String(input);
    const scaled = pageSize !== 100 && url.includes(ASKED);
    const outgoing = new Outgoing();
    await sandbox.fetch(
      {
        method: init.method ?? 'GET',
        url: scaled ? url.replace(ASKED, `pageSize=${pageSize}`) : url,
        headers: headersOf(init),
        text: async () => String(init.body ?? ''),
      } as Request,
      { outgoing: outgoing as unknown as ServerResponse } as SandboxEnv['Bindings'],
    );
    await options.after?.(request);
    if (outgoing.status === 0) throw new TypeError('fetch failed', { cause: RESET });
    const text = scaled ? outgoing.text.replace(`"pageSize":${pageSize},`, '"pageSize":100,') : outgoing.text;
    return {
      status: outgoing.status,
      headers: new Headers(outgoing.headers),
      body: bodyOf(text, outgoing.cut),
    } as unknown as Response;
  };
}

const RESET = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });

function headersOf({ headers, body }: RequestInit): Headers {
  const sent = new Headers(headers);
  if (body instanceof URLSearchParams) {
    sent.set('content-type', 'application/x-www-form-urlencoded;charset=UTF-8');
  }
  return sent;
}

async function* bodyOf(text: string, cut: boolean): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
  if (cut) throw new TypeError('terminated', { cause: RESET });
}

/** What the sandbox needs of the answer as it goes out. */
class Outgoing {
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
  }
}
