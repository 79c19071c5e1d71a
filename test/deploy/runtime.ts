/**
 * The process of one execution environment: it emulates the Lambda runtime for Node. lambda.ts starts it with the environment
 * variables of the function on AWS. Further settings are sent as messages. It ends with its parent process.
 */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import { setClockAhead } from './clock.ts';
import { confine, type Routes } from './network.ts';

/** Messages of the parent. */
export type ToRuntime =
  | { readonly kind: 'start'; readonly routes: Routes; readonly clockAheadMs: number }
  | { readonly kind: 'clock'; readonly clockAheadMs: number }
  | { readonly kind: 'invoke'; readonly payload: unknown; readonly deadline: number; readonly arn: string };

/** Messages of the process. */
export type FromRuntime =
  | { readonly kind: 'up' }
  | { readonly kind: 'ready'; readonly streams: boolean }
  | { readonly kind: 'answer'; readonly answer: unknown }
  /** Of a streaming function: a part of its response, in base64. `answer` follows the last part. */
  | { readonly kind: 'part'; readonly bytes: string }
  | { readonly kind: 'failed'; readonly error: string }
  | { readonly kind: 'rejected'; readonly destination: string };

type Handler = (event: unknown, streamOrContext: unknown, context?: unknown) => unknown;

const STREAMS = Symbol.for('aws.lambda.runtime.handler.streaming');
/** Between the head of a streamed HTTP answer and its body. */
const DELIMITER = new Uint8Array(8);
let handler: Handler & { [STREAMS]?: string };

/** Destination of a streamed response. */
class ResponseStream extends Writable {
  /** Written before the body. */
  prelude: string | undefined;

  setContentType(_type: string): void {}

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    this.flushPrelude();
    say({ kind: 'part', bytes: chunk.toString('base64') }, done);
  }

  override _final(done: (error?: Error | null) => void): void {
    this.flushPrelude();
    done();
  }

  flushPrelude(): void {
    if (this.prelude === undefined) return;
    const head = Buffer.concat([Buffer.from(this.prelude), DELIMITER]);
    this.prelude = undefined;
    say({ kind: 'part', bytes: head.toString('base64') });
  }
}

Object.assign(globalThis, {
  awslambda: {
    streamifyResponse: (streaming: Handler) => Object.assign(streaming, { [STREAMS]: 'response' }),
    HttpResponseStream: {
      from(stream: ResponseStream, head: unknown) {
        stream.prelude = JSON.stringify(head);
        return stream;
      },
    },
  },
});

process.on('disconnect', () => process.exit(1));
process.on('message', (message: ToRuntime) => {
  switch (message.kind) {
    case 'start':
      setClockAhead(message.clockAheadMs);
      confine(message.routes, (destination) => say({ kind: 'rejected', destination }));
      void load();
      break;
    case 'clock':
      setClockAhead(message.clockAheadMs);
      break;
    case 'invoke':
      void invoke(message);
      break;
  }
});
// Only at the start, for the certificates. On Lambda it is not set.
delete process.env.NODE_EXTRA_CA_CERTS;
say({ kind: 'up' });

async function load(): Promise<void> {
  const [file = '', name = ''] = (process.env._HANDLER ?? '').split('.');
  try {
    const module = await import(pathToFileURL(join(process.cwd(), `${file}.mjs`)).href);
    if (typeof module[name] !== 'function') throw new Error(`The bundle exports no function ${name}.`);
    handler = module[name];
    say({ kind: 'ready', streams: handler[STREAMS] === 'response' });
  } catch (cause) {
    console.error(cause);
    say({ kind: 'failed', error: describe(cause) }, () => process.exit(1));
  }
}

async function invoke({ payload, deadline, arn }: ToRuntime & { kind: 'invoke' }): Promise<void> {
  const context = {
    awsRequestId: randomUUID(),
    callbackWaitsForEmptyEventLoop: true,
    functionName: process.env.AWS_LAMBDA_FUNCTION_NAME,
    functionVersion: process.env.AWS_LAMBDA_FUNCTION_VERSION,
    invokedFunctionArn: arn,
    memoryLimitInMB: process.env.AWS_LAMBDA_FUNCTION_MEMORY_SIZE,
    logGroupName: process.env.AWS_LAMBDA_LOG_GROUP_NAME,
    logStreamName: process.env.AWS_LAMBDA_LOG_STREAM_NAME,
    getRemainingTimeInMillis: () => Math.max(0, deadline - Date.now()),
  };
  try {
    if (handler[STREAMS] === 'response') {
      const stream = new ResponseStream();
      const finished = new Promise<void>((done, fail) => stream.once('finish', done).once('error', fail));
      await handler(payload, stream, context);
      await finished;
      say({ kind: 'answer', answer: null });
    } else {
      say({ kind: 'answer', answer: (await handler(payload, context)) ?? null });
    }
  } catch (cause) {
    console.error(cause);
    say({ kind: 'failed', error: describe(cause) });
  }
}

function describe(cause: unknown): string {
  return cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause);
}

function say(message: FromRuntime, done?: (error?: Error | null) => void): void {
  process.send?.(message, undefined, undefined, (error) => done?.(error));
}
