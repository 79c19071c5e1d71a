/**
 * Traces for OpenTelemetry, by OTLP over HTTP in its JSON encoding: one trace for each poll, with its commits and the attempts to deliver
 * their events. Written here because the SDK is larger than the rest of the program's start (docs/decisions/0055-traces-without-the-sdk.md).
 */
import type { Config } from '../shared/config.ts';
import {
  describeAttempt,
  describeCommit,
  describePoll,
  encodeExport,
  encodeSpan,
  newContext,
  type Span,
  type SpanContext,
} from '../shared/spans.ts';
import type { HostOptions } from './host-options.ts';

/** Interval of requests to the collector, and the number of spans that causes an earlier one. */
const FLUSH_MS = 5_000;
const BATCH = 500;
/** Maximum number of spans that wait. Further ones are dropped while the collector does not respond. */
const MAX_SPANS = 5_000;
/** Maximum number of events whose trace is known. Attempts at others begin a trace. */
const MAX_EVENTS = 10_000;
const REQUEST_MS = 10_000;

/** Sends the spans of polls, commits and attempts. */
export interface Tracer
  extends Required<Pick<HostOptions, 'onPollStart' | 'onPoll' | 'onGrowth' | 'onAttempt'>> {
  /** Sends the remaining spans. Does not throw. */
  stop(): Promise<void>;
}

/** Creates a tracer. `onError` is called for the first failed request, and again after a successful one. */
export function createTracer(
  { endpoint, headers = {} }: NonNullable<Config['tracing']>,
  { now, onError }: { readonly now: () => number; readonly onError: (cause: unknown) => void },
): Tracer {
  const url = `${endpoint.replace(/\/+$/, '')}/v1/traces`;
  const polls = new Map<string, SpanContext>();
  /** Commits by event, in the order in which they were written. */
  const commits = new Map<string, SpanContext>();
  let spans: object[] = [];
  let sending: Promise<void> | undefined;
  let failed = false;

  function end(context: Parameters<typeof encodeSpan>[0], span: Span): void {
    if (spans.length >= MAX_SPANS) return;
    spans.push(encodeSpan(context, span, now()));
    if (spans.length >= BATCH) void flush();
  }

  /** Sends all waiting spans, one request at a time. */
  function flush(): Promise<void> {
    sending ??= (async () => {
      while (spans.length > 0) {
        const batch = spans;
        spans = [];
        try {
          await send(batch);
          failed = false;
        } catch (cause) {
          // The message of `fetch` contains no reason.
          if (!failed) onError((cause as Error).cause ?? cause);
          failed = true;
          return;
        }
      }
    })().finally(() => {
      sending = undefined;
    });
    return sending;
  }

  async function send(batch: readonly object[]): Promise<void> {
    const response = await fetch(url, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: encodeExport(batch),
      redirect: 'error',
      signal: AbortSignal.timeout(REQUEST_MS),
    });
    await response.body?.cancel();
    if (!response.ok) throw new Error(`The collector responded with ${response.status}.`);
  }

  const timer = setInterval(() => void flush(), FLUSH_MS);
  timer.unref();

  return {
    onPollStart({ region, account }) {
      polls.set(`${region}/${account}`, newContext());
    },
    onGrowth({ region, account }, sequence, events) {
      const parent = polls.get(`${region}/${account}`);
      const context = newContext(parent);
      for (let at = sequence - events + 1; at <= sequence; at += 1) {
        commits.set(`${region}/${account}/${at}`, context);
      }
      for (const event of commits.keys()) {
        if (commits.size <= MAX_EVENTS) break;
        commits.delete(event);
      }
      const ref = { region, account };
      end({ ...context, parent }, describeCommit(ref, sequence, events, now()));
    },
    onPoll(report, { lagMs }) {
      const { region, account, outcome } = report;
      const context = polls.get(`${region}/${account}`);
      polls.delete(`${region}/${account}`);
      if (context && outcome !== 'skipped') end(context, describePoll(report, lagMs, now()));
    },
    onAttempt(attempt) {
      const { region, account, sequence } = attempt;
      const parent = commits.get(`${region}/${account}/${sequence}`);
      end({ ...newContext(parent), parent }, describeAttempt(attempt, now()));
    },
    async stop() {
      clearInterval(timer);
      await sending;
      await flush();
    },
  };
}
