/**
 * A receiver on loopback with faults: it accepts events for a while, then has the next fault of its script until the drain has
 * noticed it, then accepts events again. It records what arrived and with what result.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createSecureServer, type Server as SecureServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { CloudEvent } from 'cloudevents';
import { Webhook } from 'standardwebhooks';
import type { DrainReport } from '../../shared/delivery/drain-deps.ts';
import { getLane } from '../../shared/delivery/window.ts';
import type { Certificate } from './certificates.ts';

/** Faults of a receiver. */
export type Trouble =
  /** Never responds. */
  | 'silent'
  /** Responds when the next request has arrived. */
  | 'late'
  | 'reset'
  | 'reset in the answer'
  | 'reset after the answer'
  | 'endless'
  | 'endless 500'
  /** Accepts the event, and never completes its response. */
  | 'dripping'
  /** 429 with Retry-After. */
  | 'busy'
  /** 410 until the endpoint is enabled. */
  | 'gone'
  /** Accepts the event, then stops listening for a while. */
  | 'dies'
  /** Accepts the event, then has an untrusted certificate for a while. */
  | 'bad certificate'
  | 301
  | 401
  | 422
  | 429
  | 500
  | 502
  | 503;

/** Duration of a fault: a number of requests, or a number of drains that report waiting with a matching reason. */
const LASTS: Readonly<Record<Trouble, { readonly times: number } | { waits: number; why: RegExp }>> = {
  silent: { waits: 1, why: /did not respond in time/ },
  late: { times: 3 },
  reset: { waits: 2, why: /closed the connection before it responded/ },
  'reset in the answer': { waits: 2, why: /closed the connection before its response was complete/ },
  'reset after the answer': { times: 3 },
  endless: { times: 3 },
  'endless 500': { waits: 2, why: /responded with status 500/ },
  dripping: { waits: 1, why: /did not complete its response in time/ },
  busy: { waits: 1, why: /responded with status 429/ },
  gone: { waits: Number.POSITIVE_INFINITY, why: /./ },
  dies: { waits: 1, why: /refused the connection/ },
  'bad certificate': { waits: 2, why: /certificate is not valid/ },
  301: { waits: 2, why: /responded with a redirect \(status 301\)/ },
  401: { waits: 4, why: /responded with status 401/ },
  422: { times: 3 },
  429: { waits: 2, why: /responded with status 429/ },
  500: { waits: 2, why: /responded with status 500/ },
  502: { waits: 2, why: /responded with status 502/ },
  503: { waits: 2, why: /responded with status 503/ },
};
/** All faults. */
export const TROUBLES = Object.keys(LASTS).map((name) =>
  /^\d+$/.test(name) ? Number(name) : name,
) as Trouble[];
/** Maximum number of faults per event, so that no event becomes dead by accident. */
const MAX_TROUBLES_PER_EVENT = 4;
const DRIP_EVERY_MS = 50;

/** One request. */
export interface Arrival {
  readonly endpoint: string;
  readonly id: string;
  readonly type: string;
  readonly account: string;
  readonly sequence: number;
  readonly lane: string;
  readonly data: Readonly<Record<string, unknown>>;
  /** Number of the delivering process that sent it. */
  readonly life: number;
  readonly replay: boolean;
  /** Position among all actions of all receivers. */
  readonly order: number;
  readonly answer: Trouble | 'taken';
  /** Position of its response with status 2xx. */
  takenAt?: number;
  /** It was accepted, but the sender may not have received the response. */
  lost?: boolean;
}

/** Options of a receiver. */
export interface ReceiverOptions {
  readonly id: string;
  readonly secret: string;
  readonly address: string;
  readonly script: readonly Trouble[];
  /** Number of events to accept before the next fault. */
  readonly calm: () => number;
  /** Number of times an event is rejected with 422, independent of the script. */
  readonly refusals?: (arrival: Pick<Arrival, 'account' | 'sequence'>) => number;
  /** Uses HTTPS with these certificates. */
  readonly certificates?: { readonly good: Certificate; readonly bad: Certificate };
  /** Returns the next position among all actions of all receivers. */
  readonly nextOrder: () => number;
  /** Called for each request before its response, and after its fault is complete. */
  readonly onArrival: (arrival: Arrival, moment: 'before' | 'after') => void;
}

/** A running receiver. */
export interface HostileReceiver {
  readonly id: string;
  readonly url: string;
  readonly arrivals: readonly Arrival[];
  /** Error messages for requests without a valid signature, or without a CloudEvent. */
  readonly forgeries: readonly string[];
  /** Completed faults. */
  readonly had: readonly Trouble[];
  /** Number of times all connections were closed. */
  readonly cuts: number;
  /** Number of remaining faults. */
  left(): number;
  /** Processes a report of a drain to this receiver. */
  heard(report: DrainReport): Promise<void>;
  /** Called before the endpoint is enabled. */
  back(): void;
  stop(): Promise<void>;
}

/** Responses that wait for the next request to any receiver. */
const waiting = new Set<() => void>();

/** Starts a receiver on its own port. */
export async function startHostileReceiver(options: ReceiverOptions): Promise<HostileReceiver> {
  const { id, secret, address, certificates, nextOrder, onArrival } = options;
  const webhook = new Webhook(secret);
  const script = [...options.script];
  const arrivals: Arrival[] = [];
  const forgeries: string[] = [];
  const had: Trouble[] = [];
  const troubles = new Map<string, number>();
  const refused = new Map<string, number>();
  const sockets = new Set<Socket>();
  let current: Trouble | undefined;
  let left = 0;
  let calm = options.calm();
  let cuts = 0;
  let port = 0;

  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    const chunks: Buffer[] = [];
    response.on('error', () => undefined);
    request.on('error', () => undefined);
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      for (const answer of waiting) answer();
      waiting.clear();
      const arrival = toArrival(request, Buffer.concat(chunks).toString());
      if (!arrival) {
        response.writeHead(400).end();
        return;
      }
      arrivals.push(arrival);
      onArrival(arrival, 'before');
      // This includes truncated requests.
      response.once('close', () => onArrival(arrival, 'after'));
      act(arrival, response);
    });
  };
  const server: Server | SecureServer = certificates
    ? createSecureServer({ cert: certificates.good.certPem, key: certificates.good.keyPem }, handle)
    : createServer(handle);
  server.keepAliveTimeout = 60_000;
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('tlsClientError', () => undefined);
  const listen = () => new Promise<void>((resolve) => server.listen(port, address, resolve));
  await listen();
  port = (server.address() as AddressInfo).port;

  function toArrival(request: IncomingMessage, body: string): Arrival | undefined {
    const headers = request.headers as Record<string, string>;
    try {
      webhook.verify(body, headers);
      const event = JSON.parse(body);
      new CloudEvent(event).validate();
      if (event.id !== headers['webhook-id']) throw new Error(`${event.id} is not ${headers['webhook-id']}`);
      const [account = '', , sequence] = event.id.split('.');
      if (event.source !== (account === '_cell' ? '/regions/us' : `/regions/us/accounts/${account}`)) {
        throw new Error(`${event.id} is of ${event.source}`);
      }
      if (Number(event.sequence) !== Number(sequence)) throw new Error(`${event.id} has ${event.sequence}`);
      const place = { account, sequence: Number(sequence) };
      const replay = headers['webhook-replay'] === 'true';
      const jobNumber = event.subject === undefined ? undefined : Number(event.subject.replace('jobs/', ''));
      return {
        ...{ endpoint: id, id: event.id, type: event.type, data: event.data, ...place, replay },
        lane: `${account}/${getLane(jobNumber === undefined ? {} : { jobNumber })}`,
        life: Number(headers['x-life']),
        order: nextOrder(),
        answer: replay ? 'taken' : (rejection(event.id, place) ?? nextTrouble(event.id)),
      };
    } catch (cause) {
      forgeries.push(String(cause));
      return undefined;
    }
  }

  function rejection(event: string, place: Pick<Arrival, 'account' | 'sequence'>): Trouble | undefined {
    const times = refused.get(event) ?? 0;
    if (times >= (options.refusals?.(place) ?? 0)) return undefined;
    refused.set(event, times + 1);
    return 422;
  }

  function nextTrouble(event: string): Trouble | 'taken' {
    if (current === undefined) {
      if (calm > 0) return 'taken';
      current = script.shift();
      if (current === undefined) return 'taken';
      const lasts = LASTS[current];
      left = 'times' in lasts ? lasts.times : lasts.waits;
    }
    const trouble = current;
    const times = (troubles.get(event) ?? 0) + 1;
    if (times > MAX_TROUBLES_PER_EVENT && trouble !== 'gone') return 'taken';
    troubles.set(event, times);
    if ('times' in LASTS[trouble]) endAfter();
    return trouble;
  }

  function endAfter(): void {
    left -= 1;
    if (left > 0 || current === undefined) return;
    had.push(current);
    current = undefined;
    calm = options.calm();
  }

  function cut(): void {
    cuts += 1;
    for (const socket of sockets) socket.destroy();
  }

  function act(arrival: Arrival, response: ServerResponse): void {
    const take = (status = 204, lost = false): ServerResponse => {
      if (!response.destroyed) {
        arrival.takenAt = nextOrder();
        if (lost) arrival.lost = true;
        calm -= 1;
      }
      return response.writeHead(status);
    };
    // On the TCP connection: a TLS socket cannot be reset.
    const { remotePort } = response.socket ?? {};
    const reset = (): void => {
      for (const socket of sockets) if (socket.remotePort === remotePort) socket.resetAndDestroy();
    };
    const { answer } = arrival;
    switch (answer) {
      case 'taken':
        take().end();
        return;
      case 'silent':
        return;
      case 'late':
        waiting.add(() => take().end());
        return;
      case 'reset':
        reset();
        return;
      case 'reset in the answer':
        take(200, true).write('the beginning of an ans', () => reset());
        return;
      case 'reset after the answer':
        take(200, true).end('all of it', () => reset());
        return;
      case 'endless':
        pour(take(200));
        return;
      case 'endless 500':
        pour(response.writeHead(500));
        return;
      case 'dripping': {
        take(200, true).write('.');
        const drips = setInterval(() => response.write('.'), DRIP_EVERY_MS);
        response.once('close', () => clearInterval(drips));
        return;
      }
      case 'dies':
        take().end(() => {
          if (!server.listening) return;
          server.close();
          cut();
        });
        return;
      case 'bad certificate':
        take().end(() => {
          if (!certificates || !('setSecureContext' in server)) throw new Error(`${id} has no certificates.`);
          server.setSecureContext({ cert: certificates.bad.certPem, key: certificates.bad.keyPem });
          cut();
        });
        return;
      case 'busy':
        response.writeHead(429, { 'retry-after': '1' }).end('wait a second');
        return;
      case 'gone':
        response.writeHead(410).end('gone');
        return;
      case 301:
        response.writeHead(301, { location: '/elsewhere' }).end();
        return;
      default:
        response.writeHead(answer).end(`a body of ${answer}`);
    }
  }

  return {
    id,
    url: `${certificates ? 'https' : 'http'}://${id}.receiver.example:${port}/hook`,
    arrivals,
    forgeries,
    had,
    get cuts() {
      return cuts;
    },
    left: () => script.length + (current === undefined ? 0 : 1),
    async heard({ outcome, problem = '' }) {
      if (current === undefined || outcome !== 'waiting') return;
      const lasts = LASTS[current];
      if (!('waits' in lasts) || !lasts.why.test(problem)) return;
      if (left === 1 && current === 'dies') await listen();
      if (left === 1 && certificates && 'setSecureContext' in server) {
        server.setSecureContext({ cert: certificates.good.certPem, key: certificates.good.keyPem });
      }
      endAfter();
    },
    back() {
      if (current !== 'gone') return;
      left = 1;
      endAfter();
    },
    async stop() {
      const closed = server.listening ? new Promise((resolve) => server.close(resolve)) : undefined;
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** Writes as long as the client reads. */
function pour(response: ServerResponse): void {
  const chunk = Buffer.alloc(16 * 1024, 'endless ');
  const on = (): void => {
    while (!response.destroyed && response.write(chunk));
  };
  response.on('drain', on);
  on();
}
