/**
 * The network of a function's process: names resolve to addresses that look public, connections to them are redirected to
 * servers on loopback, and all other connections are rejected. Only port 443 is open.
 */
import dgram from 'node:dgram';
import dns, { type LookupAddress, type LookupOptions } from 'node:dns';
import { syncBuiltinESMExports } from 'node:module';
import net, { isIP, type LookupFunction, type Socket, type TcpNetConnectOpts } from 'node:net';

/** Ports on loopback by host name. `*.x` matches all names below x. */
export type Routes = Readonly<Record<string, number>>;

interface Destination {
  readonly address: string;
  readonly port: number;
}

/** Public addresses that are never used: 11.0.0.0/8 is not routed. */
const getAddress = (at: number) => `11.0.0.${at + 1}`;

/** Allows only connections to these routes. `onRefused`: called for every other connection. */
export function confine(routes: Routes, onRefused: (destination: string) => void): void {
  const destinations = new Map<string, Destination>();
  for (const [at, [name, port]] of Object.entries(routes).entries()) {
    destinations.set(name, { address: getAddress(at), port });
  }
  const byName = (name: string) =>
    destinations.get(name) ?? destinations.get(name.replace(/^[^.]*(?:\.(?:ddb|s3))?\./, '*.'));
  const byAddress = (address: string) =>
    [...destinations.values()].find((destination) => destination.address === address);

  const refuse = (destination: string): NodeJS.ErrnoException => {
    onRefused(destination);
    return Object.assign(new Error(`There is no way to ${destination}.`), { code: 'ENETUNREACH' });
  };

  const resolve = (name: string, options: LookupOptions): LookupAddress[] => {
    const address = isIP(name) === 0 ? byName(name)?.address : name;
    if (address === undefined || options.family === 6) {
      onRefused(name);
      throw Object.assign(new Error(`getaddrinfo ENOTFOUND ${name}`), {
        code: 'ENOTFOUND',
        syscall: 'getaddrinfo',
        hostname: name,
      });
    }
    return [{ address, family: 4 }];
  };
  const lookup = ((name: string, given: unknown, callback: Parameters<LookupFunction>[2]) => {
    const options = (typeof given === 'object' ? given : {}) as LookupOptions;
    const done = typeof given === 'function' ? (given as typeof callback) : callback;
    process.nextTick(() => {
      try {
        const [found] = resolve(name, options) as [LookupAddress];
        if (options.all) done(null, [found]);
        else done(null, found.address, found.family);
      } catch (cause) {
        done(cause as NodeJS.ErrnoException, '', 0);
      }
    });
  }) as LookupFunction;
  dns.lookup = lookup as typeof dns.lookup;
  dns.promises.lookup = (async (name: string, options: LookupOptions = {}) => {
    const found = resolve(name, options);
    return options.all ? found : found[0];
  }) as typeof dns.promises.lookup;
  for (const name of Object.keys(dns).filter((key) => key.startsWith('resolve'))) {
    Object.assign(dns, {
      [name]: () => {
        throw refuse('a name server');
      },
    });
  }
  dgram.createSocket = () => {
    throw refuse('a datagram socket');
  };

  const connect = net.Socket.prototype.connect;
  net.Socket.prototype.connect = function (this: Socket, ...args: unknown[]) {
    // In the format of `net.connect`: one list of the options and the connect listener.
    const list = (Array.isArray(args[0]) ? args[0] : args) as [TcpNetConnectOpts, ...unknown[]];
    if (typeof list[0] !== 'object') throw refuse('a port that is given as a number');
    const { host = 'localhost', port, lookup: own = lookup } = list[0];
    const literal = isIP(host) !== 0;
    const to = literal ? byAddress(host) : byName(host);
    if (!to || Number(port) !== 443) {
      process.nextTick(() => this.destroy(refuse(`${host}:${port}`)));
      return this;
    }
    list[0] = {
      ...list[0],
      host: literal ? '127.0.0.1' : host,
      port: to.port,
      // If the resolved address passes the checks of the caller, the connection is redirected to loopback.
      lookup: (name, options, callback) =>
        own(name, options, (cause, found, family) => {
          if (cause) return callback(cause, found, family);
          const addresses = Array.isArray(found) ? found : [{ address: found, family }];
          const foreign = addresses.find(({ address }) => address !== to.address);
          if (foreign) return callback(refuse(foreign.address), '', 0);
          return Array.isArray(found)
            ? callback(null, [{ address: '127.0.0.1', family: 4 }])
            : callback(null, '127.0.0.1', 4);
        }),
    };
    return connect.apply(this, args as Parameters<typeof connect>);
  } as typeof connect;
  syncBuiltinESMExports();
}
