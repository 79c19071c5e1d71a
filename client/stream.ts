/** Live streams of events: one connection, and one that is reopened after each loss. */
import { createParser } from 'eventsource-parser';
import { backoff, HALF_JITTER, sleep, withJitter } from '../shared/retry.ts';
import { ApiError, toUnexpectedResponseError, toUnreachableError, UnreachableError } from './errors.ts';
import type { StreamPaths } from './paths.ts';

/** A message of a stream. */
export interface StreamMessage {
  /** Cursor after the message. */
  readonly cursor: string;
  /** Envelope of the event, as received. `null`: the message only advances the cursor. */
  readonly event: string | null;
}

/** Options of a stream. */
export interface StreamOptions {
  /** Time without data after which the connection counts as lost. Default: 45 seconds. The server sends a heartbeat every 15 seconds. */
  readonly silenceMs?: number;
  readonly signal?: AbortSignal | undefined;
  /** Called when the connection is open. */
  readonly onOpen?: () => void;
  /** Called with the time after which the server asks to reopen the stream. */
  readonly onRetry?: (ms: number) => void;
}

/** Options of a stream that is reopened. */
export interface FollowOptions extends Pick<StreamOptions, 'signal' | 'silenceMs'> {
  /** Called once for each loss, with the reason. */
  readonly onLost?: (reason: string) => void;
  /** Called when a lost connection is open again. */
  readonly onFound?: () => void;
}

type Parameters<P extends keyof StreamPaths> = Omit<StreamPaths[P]['get'], 'data'>;

/** Live streams of a client. */
export interface Streams {
  /** Yields the messages of one connection, and ends with it: the server closes streams after some minutes. */
  stream<P extends keyof StreamPaths>(
    path: P,
    options: Parameters<P> & StreamOptions,
  ): AsyncGenerator<StreamMessage, void>;
  /**
   * Yields the events of a stream, each once, for as long as the caller reads. Reopens a lost or ended connection at its last cursor.
   * Throws if the first connection fails.
   */
  follow<P extends keyof StreamPaths>(
    path: P,
    options: Parameters<P> & FollowOptions,
  ): AsyncGenerator<StreamMessage & { readonly event: string }, void>;
}

type AnyParameters = Parameters<keyof StreamPaths>;
type Open = (path: keyof StreamPaths, parameters: AnyParameters, signal: AbortSignal) => Promise<Response>;

const BACKOFF = { first: 500, max: 30_000 };
/** Number of attempts while the API has no free slot, before the error is thrown. */
const CROWDED_ATTEMPTS = 10;

/** Creates the streams of a client. `open` sends a request and returns its response unread. */
export function createStreams(base: string, open: Open): Streams {
  async function* stream(path: keyof StreamPaths, options: AnyParameters & StreamOptions) {
    const { silenceMs = 45_000, signal: caller, onOpen, onRetry, ...parameters } = options;
    const silence = new AbortController();
    const signal = caller ? AbortSignal.any([caller, silence.signal]) : silence.signal;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const listen = (): void => {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(new Error('no data was received')), silenceMs);
    };
    const messages: StreamMessage[] = [];
    const parser = createParser({
      onRetry,
      onId: (cursor) => void messages.push({ cursor, event: null }),
      onEvent({ id = '', event, data }) {
        if (event === 'cursor') return;
        // The cursor advances with the event, not before it.
        if (messages.at(-1)?.event === null) messages.pop();
        messages.push({ cursor: id, event: data });
      },
    });
    let reader: ReadableStreamDefaultReader<string> | undefined;
    try {
      listen();
      const response = await open(path, parameters, signal);
      if (!response.body || !response.headers.get('content-type')?.startsWith('text/event-stream')) {
        throw toUnexpectedResponseError(base);
      }
      onOpen?.();
      reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        // The caller may take its time with the messages.
        clearTimeout(timer);
        parser.feed(value);
        yield* messages.splice(0);
        listen();
      }
    } catch (cause) {
      if (caller?.aborted || cause instanceof ApiError) throw cause;
      if (silence.signal.aborted) throw toUnreachableError(base, silence.signal.reason);
      throw cause instanceof UnreachableError ? cause : toUnreachableError(base, cause);
    } finally {
      clearTimeout(timer);
      silence.abort();
      await reader?.cancel().catch(() => {});
    }
  }

  async function* follow(path: keyof StreamPaths, options: AnyParameters & FollowOptions) {
    const { onLost, onFound, signal, silenceMs, ...parameters } = options;
    let query = parameters.params?.query;
    let [failures, crowded] = [0, 0];
    let [opened, lost] = [false, false];
    let waitMs = 0;
    const pause = (): number => withJitter(backoff(failures, BACKOFF), HALF_JITTER, Math.random());
    const onOpen = (): void => {
      if (lost) onFound?.();
      [opened, lost, crowded] = [true, false, 0];
    };
    for (;;) {
      const params = { ...parameters.params, query } as NonNullable<AnyParameters['params']>;
      try {
        let retryMs = 0;
        const onRetry = (ms: number): void => {
          retryMs = Math.min(ms, BACKOFF.max);
        };
        for await (const { cursor, event } of stream(path, { params, signal, silenceMs, onOpen, onRetry })) {
          failures = 0;
          // Set before the event is yielded, so that no event is yielded twice.
          query = { ...query, after: cursor };
          if (event !== null) yield { cursor, event };
        }
        // The server ends every stream after some minutes: that is not an error.
        waitMs = retryMs + (failures === 0 ? 0 : pause());
      } catch (cause) {
        // A stream that never opened is not lost.
        if (signal?.aborted || !opened || !(cause instanceof ApiError || cause instanceof UnreachableError)) {
          throw cause;
        }
        if (cause instanceof ApiError && cause.status < 500) {
          crowded += 1;
          if (cause.status !== 429 || crowded > CROWDED_ATTEMPTS) throw cause;
        }
        if (!lost) onLost?.(cause.message);
        lost = true;
        waitMs = pause();
      }
      await sleep(waitMs, signal);
      failures += 1;
    }
  }

  return { stream, follow } as Streams;
}
