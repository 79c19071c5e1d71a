/**
 * A child process: webhook receivers that do as their path says. `/each` sends a message for each delivery, `/after/<ms>`
 * answers after a while, `/hang` never does; any other path is as good as its name and is only counted.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Sent once the receiver listens. */
export interface ReceiverFacts {
  /** Ends in a slash; paths go behind it. */
  readonly url: string;
}
/** Sent for each delivery to `/each`; `receivedAt` in ms since the epoch, with fractions. */
export interface Received {
  readonly id: string;
  readonly receivedAt: number;
}
/** What the receiver is told: what it answers from now on, and whose deliveries it notes. Each is answered by {@link Tally}. */
export interface ReceiverRequest {
  readonly status?: number;
  /** Whether it notes when each delivery came. */
  readonly note?: boolean;
}
/** What came since the message before. */
export interface Tally {
  readonly requests: number;
  /** Where and when: in ms since the epoch, with fractions. Empty unless it was to be noted. */
  readonly noted: readonly (Received & { readonly path: string })[];
}

let status = 204;
let note = false;
let requests = 0;
let noted: Tally['noted'][number][] = [];

const server = createServer((request, response) => {
  request.resume();
  request.on('end', () => {
    const receivedAt = performance.timeOrigin + performance.now();
    requests += 1;
    const path = request.url ?? '/';
    const answer = (): void => void response.writeHead(status).end();
    if (path.startsWith('/after/')) setTimeout(answer, Number(path.slice('/after/'.length)));
    else if (path !== '/hang') answer();
    const id = String(request.headers['webhook-id']);
    if (note) noted.push({ id, receivedAt, path });
    if (path === '/each') process.send?.({ id, receivedAt } satisfies Received);
  });
});
// So that no side of a comparison has to connect again after the other's turn.
server.keepAliveTimeout = 120_000;
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  process.send?.({ url: `http://127.0.0.1:${port}/` } satisfies ReceiverFacts);
});
process.on('message', (request: ReceiverRequest) => {
  process.send?.({ requests, noted } satisfies Tally);
  requests = 0;
  noted = [];
  status = request.status ?? status;
  note = request.note ?? note;
});
process.on('disconnect', () => process.exit(0));
