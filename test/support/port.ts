import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Returns a free port on loopback. It is below those that operating systems assign to connections, so that no connection takes it before
 * a program listens on it.
 */
export async function findPort(): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 32_000);
    const server = createServer().listen({ host: '127.0.0.1', port, exclusive: true });
    try {
      await once(server, 'listening');
    } catch {
      // It is in use.
      continue;
    }
    server.close();
    await once(server, 'close');
    return port;
  }
}
