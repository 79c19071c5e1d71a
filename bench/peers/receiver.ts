/**
 * A child process: the receiver of the webhooks of all compared systems. It verifies no signatures. It records the deliveries of one
 * phase, whose paths are `/<phase>/<endpoint>`: those that it accepted.
 */
import { createServer } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { listen } from '../../shared/http-server.ts';
import { type Delivery, readClockMs } from './results.ts';

/** Sent once the receiver listens. */
export interface ReceiverFacts {
  /** Base URL, without a trailing slash. */
  readonly url: string;
}
/** A command. Answered by {@link ReceiverState}. */
export interface ReceiverRequest {
  /** Starts a phase without recorded deliveries. */
  readonly phase?: string;
  /** Its responses from now on. Default: as before; 204 at once at the beginning of a phase. */
  readonly behaviour?: Behaviour;
  /** Whether to send the recorded deliveries. */
  readonly list?: boolean;
}
/** Response of the receiver. */
export interface Behaviour {
  /** Default: 204. */
  readonly status?: number;
  /** Time until the response. */
  readonly delayMs?: number;
  /** Maximum number of responses per second. Further requests wait for theirs. */
  readonly perSecond?: number;
}
/** The deliveries of the phase. */
export interface ReceiverState {
  /** Number of events that were accepted, each counted once for each endpoint. */
  readonly events: number;
  readonly deliveries?: readonly Delivery[];
}

let phase = '';
let behaviour: Behaviour = {};
let nextAt = 0;
let deliveries: Delivery[] = [];
let accepted = new Set<string>();
/** Times at which connections were opened. */
const connections = new WeakMap<Socket, number>();

const server = createServer((request, response) => {
  const parts: Buffer[] = [];
  request.on('data', (part: Buffer) => parts.push(part));
  request.on('end', async () => {
    const at = readClockMs();
    const { status = 204, delayMs = 0, perSecond } = behaviour;
    if (perSecond !== undefined) nextAt = Math.max(at, nextAt + 1000 / perSecond);
    const waitMs = perSecond === undefined ? delayMs : nextAt - at;
    if (waitMs > 0) await sleep(waitMs);
    // The sender no longer exists.
    if (response.destroyed) return;
    const respondedAt = readClockMs();
    response.writeHead(status).end();
    const [, requestPhase, endpoint = ''] = request.url?.split('/') ?? [];
    if (status >= 300 || requestPhase !== phase) return;
    const body = Buffer.concat(parts).toString('latin1');
    const event = Number(/"orderNumber": *"PO-(\d+)"/.exec(body)?.[1]);
    const job = Number(/"jobNumber": *(\d+)/.exec(body)?.[1]);
    const connectedAt = connections.get(request.socket) ?? 0;
    deliveries.push({ endpoint: Number(endpoint), event, job, at, connectedAt, respondedAt });
    accepted.add(`${endpoint}/${event}`);
  });
});
server.on('connection', (socket) => connections.set(socket, readClockMs()));
// Connections stay open, so that no system has to reconnect.
server.keepAliveTimeout = 120_000;
process.send?.({ url: await listen(server) } satisfies ReceiverFacts);
process.on('message', (request: ReceiverRequest) => {
  if (request.phase !== undefined) {
    phase = request.phase;
    behaviour = {};
    deliveries = [];
    accepted = new Set();
  }
  behaviour = request.behaviour ?? behaviour;
  const state: ReceiverState = { events: accepted.size, ...(request.list ? { deliveries } : {}) };
  process.send?.(state);
});
process.on('disconnect', () => process.exit(0));
