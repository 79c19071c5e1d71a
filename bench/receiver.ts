/** A child process: a webhook receiver that notes when each delivery arrived. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Sent once the receiver listens. */
export interface ReceiverFacts {
  readonly url: string;
}
/** Sent for each delivery; `receivedAt` in ms since the epoch, with fractions. */
export interface Received {
  readonly id: string;
  readonly receivedAt: number;
}

const server = createServer((request, response) => {
  request.resume();
  request.on('end', () => {
    const receivedAt = performance.timeOrigin + performance.now();
    response.writeHead(204).end();
    process.send?.({ id: String(request.headers['webhook-id']), receivedAt } satisfies Received);
  });
});
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  process.send?.({ url: `http://127.0.0.1:${port}/` } satisfies ReceiverFacts);
});
process.on('disconnect', () => process.exit(0));
