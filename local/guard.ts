/**
 * Keeps web pages away from a program on this machine. A page in a browser can send requests to a loopback port, and under a
 * name of its own that resolves to 127.0.0.1 (DNS rebinding) it can read the answers.
 */

/** How the program is reached. */
export interface Reach {
  /** The address it listens on. */
  readonly host: string;
  /** Where others reach it, through a proxy on this machine. */
  readonly publicUrl?: string | undefined;
}

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'];

/** The answer to a request for another host than this program's, or, to what changes the demo's mailbox, from another site's page. */
export function refuseForeign(request: Request, { host, publicUrl }: Reach): Response | undefined {
  const asked = new URL(request.url);
  const isLoopback = LOOPBACK.includes(host) || host === '::1';
  const names = publicUrl === undefined ? LOOPBACK : [...LOOPBACK, new URL(publicUrl).hostname];
  if (isLoopback && !names.includes(asked.hostname)) {
    return refuse(
      `This Jobwire is not ${asked.hostname}. Behind a proxy, set publicUrl in the configuration.`,
    );
  }
  const origin = request.headers.get('origin');
  const changes = request.method !== 'GET' && request.method !== 'HEAD';
  if (/^\/mailbox\//.test(asked.pathname) && changes && origin !== null && origin !== asked.origin) {
    return refuse('The mailbox takes this from its own page only.');
  }
  return undefined;
}

function refuse(why: string): Response {
  return new Response(`${why}\n`, { status: 403, headers: { 'content-type': 'text/plain; charset=utf-8' } });
}

/**
 * Returns the address of a request's client. A proxy on this machine names it last in `X-Forwarded-For`; what anybody else
 * writes there does not count.
 */
export function clientAddressOf({
  socket: { remoteAddress = '' },
  headersDistinct,
}: {
  readonly socket: { readonly remoteAddress?: string | undefined };
  readonly headersDistinct: { readonly [header: string]: readonly string[] | undefined };
}): string {
  if (!/^(::1|(::ffff:)?127\..*)$/.test(remoteAddress)) return remoteAddress;
  const last = headersDistinct['x-forwarded-for']?.at(-1)?.split(',').at(-1)?.trim();
  return last || remoteAddress;
}
