/**
 * Loaded first into each process in which ministack runs a function. It allows connections only to ministack and the hosts of
 * the deployment, synchronizes the clock with that of the test, and implements streamed responses, which ministack's Lambda
 * runtime lacks.
 */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { syncBuiltinESMExports } from 'node:module';
import net, { type Socket } from 'node:net';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import { setClockAhead } from './clock.ts';
import { confine, type Routes } from './network.ts';

/** Content of `function.json` in the directory that the process shares with the test. */
export interface FunctionSetup {
  readonly routes: Routes;
  /** URL of ministack. */
  readonly gatewayPort: number;
  /** URL below which a stream is sent to the API client. A header of the request names the stream. */
  readonly streamPath: string;
  readonly streamHeader: string;
}

const directory = process.env.JOBWIRE_HOST_DIR ?? '';
const setup = JSON.parse(readFileSync(join(directory, 'function.json'), 'utf8')) as FunctionSetup;
for (const name of ['JOBWIRE_HOST_DIR', 'NODE_EXTRA_CA_CERTS']) delete process.env[name];

const MovedDate = globalThis.Date;
globalThis.Date = new Proxy(MovedDate, {
  construct: (target, args, newTarget) => Reflect.construct(keepTime(target), args, newTarget),
  get: (target, name) => Reflect.get(keepTime(target), name),
});

function keepTime<T>(date: T): T {
  setClockAhead(Number(readFileSync(join(directory, 'clock'), 'utf8')) * 1000);
  return date;
}

const connect = net.Socket.prototype.connect;
confine(setup.routes, (destination) => console.error(`There is no way to ${destination}.`));
const confined = net.Socket.prototype.connect;
net.Socket.prototype.connect = function (this: Socket, ...args: Parameters<typeof connect>) {
  const [{ host, port } = {}] = (Array.isArray(args[0]) ? args[0] : args) as [net.TcpNetConnectOpts?];
  const toAws = host === '127.0.0.1' && Number(port) === setup.gatewayPort;
  return (toAws ? connect : confined).apply(this, args);
} as typeof connect;
syncBuiltinESMExports();

type Streaming = (event: ApiEvent, stream: Writable, context: unknown) => Promise<unknown>;
interface ApiEvent {
  readonly headers: Readonly<Record<string, string | undefined>>;
}

/** A streamed response does not pass ministack. It is sent to the gateway of the request: first a line with the head. */
function streamTo(stream: string | undefined): Writable {
  if (stream === undefined) throw new Error('A function that streams is invoked by the API alone.');
  return request({
    host: '127.0.0.1',
    port: setup.gatewayPort,
    method: 'POST',
    path: `${setup.streamPath}${stream}`,
  });
}

Object.assign(globalThis, {
  awslambda: {
    streamifyResponse: (handler: Streaming) => async (event: ApiEvent, context: unknown) => {
      const stream = streamTo(event.headers[setup.streamHeader]);
      const taken = once(stream, 'response');
      await handler(event, stream, context);
      await taken;
      return { statusCode: 200, body: '' };
    },
    HttpResponseStream: {
      from(stream: Writable, head: unknown) {
        stream.write(`${JSON.stringify(head)}\n`);
        return stream;
      },
    },
  },
});
