/** Which IP addresses are public: only these are requested, unless private networks are allowed. */
import { BlockList, isIP } from 'node:net';

/**
 * Addresses that are not public, and their kind: IANA's special-purpose registries, former entries of them,
 * and addresses that cloud platforms reserve. The first matching row names the kind. In IPv6, only 2000::/3
 * is public.
 */
export const NOT_PUBLIC: readonly (readonly [range: string, what: string])[] = [
  ['0.0.0.0/8', 'this network'],
  ['10.0.0.0/8', 'private'],
  ['100.64.0.0/10', 'shared by a carrier'],
  ['127.0.0.0/8', 'loopback'],
  // Includes the metadata service of most clouds: 169.254.169.254.
  ['169.254.0.0/16', 'link-local'],
  ['168.63.129.16/32', 'a cloud platform'],
  ['172.16.0.0/12', 'private'],
  ['192.0.0.0/24', 'protocol assignments'],
  ['192.0.2.0/24', 'documentation'],
  ['192.31.196.0/24', 'AS112'],
  ['192.52.193.0/24', 'AMT'],
  ['192.88.99.0/24', '6to4 relays'],
  ['192.168.0.0/16', 'private'],
  ['192.175.48.0/24', 'AS112'],
  ['198.18.0.0/15', 'benchmarking'],
  ['198.51.100.0/24', 'documentation'],
  ['203.0.113.0/24', 'documentation'],
  ['224.0.0.0/4', 'multicast'],
  ['255.255.255.255/32', 'broadcast'],
  ['240.0.0.0/4', 'reserved'],
  ['::/128', 'unspecified'],
  ['::1/128', 'loopback'],
  ['::ffff:0:0/96', 'IPv4-mapped'],
  ['::ffff:0:0:0/96', 'IPv4-translated'],
  ['::/96', 'IPv4-compatible'],
  ['64:ff9b::/96', 'NAT64'],
  ['64:ff9b:1::/48', 'NAT64'],
  ['100::/64', 'discarded'],
  ['2001::/32', 'Teredo'],
  ['2001:2::/48', 'benchmarking'],
  ['2001:10::/28', 'ORCHID'],
  ['2001:20::/28', 'ORCHID'],
  ['2001::/23', 'protocol assignments'],
  ['2001:db8::/32', 'documentation'],
  ['2002::/16', '6to4'],
  ['2620:4f:8000::/48', 'AS112'],
  ['3ffe::/16', '6bone'],
  ['3fff::/20', 'documentation'],
  ['5f00::/16', 'segment routing'],
  // Includes the metadata service of AWS: fd00:ec2::254.
  ['fc00::/7', 'unique local'],
  ['fe80::/10', 'link-local'],
  ['fec0::/10', 'site-local'],
  ['ff00::/8', 'multicast'],
];

const BLOCKED_RANGES = NOT_PUBLIC.map(([range, what]) => ({
  family: addressFamily(range),
  block: toBlockList(range),
  what,
}));
const GLOBAL_IPV6 = toBlockList('2000::/3');

/**
 * Returns the kind of an address that the public Internet does not route; `undefined` for a public address.
 */
export function classifyNonPublic(address: string): string | undefined {
  // An address with a zone is meaningful only on this machine.
  if (isIP(address) === 0 || address.includes('%')) return 'not an address';
  const family = addressFamily(address);
  const row = BLOCKED_RANGES.find((range) => range.family === family && range.block.check(address, family));
  if (row) return row.what;
  return family === 'ipv6' && !GLOBAL_IPV6.check(address, family) ? 'reserved' : undefined;
}

function addressFamily(address: string): 'ipv4' | 'ipv6' {
  return address.includes(':') ? 'ipv6' : 'ipv4';
}

function toBlockList(range: string): BlockList {
  const [address = '', bits] = range.split('/');
  const block = new BlockList();
  block.addSubnet(address, Number(bits), addressFamily(address));
  return block;
}
