/**
 * A child process: webhook receivers whose behaviour depends on the path. `/each` sends a message for each delivery, `/after/<ms>`
 * responds after a delay, `/hang` never responds. Deliveries to other paths are only counted.
 */
import { createServer } from 'node:http';
import { listen } from '../shared/http-server.ts';

/** Sent once the receiver listens. */
export interface ReceiverFacts {
  /** Base URL, with a trailing slash. */
  readonly url: string;
}
/** Sent for each delivery to `/each`; `receivedAt` in ms since the epoch, with fractions. */
export interface Received {
  readonly id: string;
  readonly receivedAt: number;
}
/** A command to the receiver: its responses from now on, and which deliveries it records. Answered by {@link Tally}. */
export interface ReceiverRequest {
  readonly status?: number;
  /** Whether to record the time of each delivery. */
  readonly note?: boolean;
}
/** Deliveries since the previous message. */
export interface Tally {
  readonly requests: number;
  /** Paths and times (ms since the epoch, with fractions). Empty if times are not recorded. */
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
// Connections stay open, so that no side of a comparison has to reconnect.
server.keepAliveTimeout = 120_000;
process.send?.({ url: `${await listen(server)}/` } satisfies ReceiverFacts);
process.on('message', (request: ReceiverRequest) => {
  process.send?.({ requests, noted } satisfies Tally);
  requests = 0;
  noted = [];
  status = request.status ?? status;
  note = request.note ?? note;
});
process.on('disconnect', () => process.exit(0));
