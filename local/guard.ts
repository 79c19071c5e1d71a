/**
 * Protects a local program from web pages. A page in a browser can send requests to a loopback port. With a host name that resolves to
 * 127.0.0.1 (DNS rebinding) it can also read the responses.
 */
import { isIP } from 'node:net';
import { isLoopbackHost } from '../shared/loopback.ts';

/** Addresses of the program. */
export interface Reach {
  /** Address it listens on. */
  readonly host: string;
  /** Public URL, through a proxy on this machine. */
  readonly publicUrl?: string | undefined;
}

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'];

/** Returns a host as in a URL, so that each address has one spelling. */
function toHostname(host: string): string {
  return URL.parse(`http://${isIP(host) === 6 ? `[${host}]` : host}`)?.hostname ?? host;
}

/** Returns whether a program that listens on this address accepts connections only from this machine. */
export const isLoopback = (host: string): boolean =>
  isLoopbackHost(toHostname(host)) || /^ip6-(localhost|loopback)$/i.test(host);

/**
 * Returns why a request is rejected: it is for another host, or another site's page changes the demo's mailbox with it. `undefined` if
 * the request is allowed.
 */
export function getRejectionReason(request: Request, { host, publicUrl }: Reach): string | undefined {
  const url = new URL(request.url);
  const names = [...LOOPBACK, toHostname(host), publicUrl && new URL(publicUrl).hostname];
  if (isLoopback(host) && !names.includes(url.hostname)) {
    return `The host ${url.hostname} is not served. Behind a proxy, set publicUrl in the configuration.`;
  }
  const origin = request.headers.get('origin');
  const changes = request.method !== 'GET' && request.method !== 'HEAD';
  if (/^\/mailbox\//.test(url.pathname) && changes && origin !== null && origin !== url.origin) {
    return 'The mailbox accepts this request only from its own page.';
  }
  return undefined;
}

/**
 * Returns the address of a request's client. A proxy on this machine, which `publicUrl` names, appends it to `X-Forwarded-For`, possibly
 * with a port. Earlier entries are not trusted.
 */
export function getClientAddress(
  {
    socket: { remoteAddress = '' },
    headersDistinct,
  }: {
    readonly socket: { readonly remoteAddress?: string | undefined };
    readonly headersDistinct: { readonly [header: string]: readonly string[] | undefined };
  },
  { publicUrl }: Pick<Reach, 'publicUrl'>,
): string {
  if (publicUrl === undefined || !/^(::1|(::ffff:)?127\..*)$/.test(remoteAddress)) return remoteAddress;
  const last = headersDistinct['x-forwarded-for']?.at(-1)?.split(',').at(-1)?.trim() ?? '';
  const address = last.replace(/^\[(.*)\](:\d+)?$|^([^:]+):\d+$/, '$1$3');
  return isIP(address) === 0 ? remoteAddress : address;
}
