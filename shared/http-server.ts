/** Starts and stops HTTP servers. */
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Returns the URL of the server once it listens. Default: any free port, on loopback. Rejects if it cannot listen. */
export async function listen(server: Server, port = 0, host = '127.0.0.1'): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, host, resolve);
  });
  const { address, port: bound, family } = server.address() as AddressInfo;
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${bound}`;
}

/** Ends a server at once, open connections included. Safe to call twice. */
export function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    // Also called if the server is already closed.
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
