/** The guard on connections to addresses that customers name: only public ones, unless private networks are allowed. */
import { lookup as dnsLookup } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';
import { Agent } from 'undici';

const CONNECT_TIMEOUT_MS = 5_000;

/** Why a URL can't be an endpoint, in one sentence; `undefined` when it can. Names are checked when they are resolved. */
export function refuseUrl(url: string, allowPrivateNetworks: boolean): string | undefined {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    return 'It is not a URL.';
  }
  if (parsed.protocol !== 'https:' && !(allowPrivateNetworks && parsed.protocol === 'http:')) {
    return allowPrivateNetworks ? 'It must begin with https:// or http://.' : 'It must begin with https://.';
  }
  if (parsed.username || parsed.password) return 'It must not carry a user name or password.';
  // URL has already turned odd spellings (decimal, octal, hexadecimal) into the plain address.
  const host = parsed.hostname.replace(/^\[|\]$/g, '');
  if (!allowPrivateNetworks && isIP(host) !== 0 && !isPublic(host)) return `${host} is not a public address.`;
  return undefined;
}

/** Whether an IP address is one that the public Internet routes: not loopback, private, link-local, reserved … */
export function isPublic(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  return ipaddr.process(address).range() === 'unicast';
}

/**
 * The connections of one endpoint: kept alive, never to an address that is not public. A name is resolved once, and the
 * connection goes to the address that was checked. Literal addresses never reach the resolver: {@link refuseUrl} has them.
 */
export function createOutboundAgent(options: {
  readonly allowPrivateNetworks: boolean;
  readonly connections: number;
}): Agent {
  const lookup: LookupFunction = (hostname, lookupOptions, callback) => {
    dnsLookup(hostname, { ...lookupOptions, all: true }, (error, addresses) => {
      if (error) return callback(error, '', 0);
      const usable = options.allowPrivateNetworks
        ? addresses
        : addresses.filter(({ address }) => isPublic(address));
      const [first] = usable;
      if (!first) {
        return callback(new Error(`${hostname} has no public address.`), '', 0);
      }
      if (lookupOptions.all) return callback(null, usable);
      return callback(null, first.address, first.family);
    });
  };
  return new Agent({
    connections: options.connections,
    pipelining: 1,
    connect: { timeout: CONNECT_TIMEOUT_MS, lookup },
  });
}
