/**
 * Traces of a sample of polls: one trace from the poll over its commits and the wake-up to the attempts of the drains that the wake-up
 * starts. The ids travel in wake marks and in messages. Spans are sent to X-Ray at the end of each invocation.
 *
 * What is NOT guaranteed: that each attempt at a traced event is in its trace. Wake marks of one account replace one another, and the
 * tick starts drains without a trace.
 */
import { SignatureV4 } from '@smithy/signature-v4';
import type { Attempt } from '../shared/delivery/delivery-log.ts';
import { Sha256 } from '../shared/sha256.ts';
import {
  describeAttempt,
  describeCommit,
  describePoll,
  encodeExport,
  encodeSpan,
  formatTraceparent,
  newContext,
  parseTraceparent,
  type Span,
  type SpanContext,
  type TracedPoll,
} from '../shared/spans.ts';
import type { AccountRef } from '../shared/storage/schema.ts';
import { defaultProvider } from './credentials.ts';
import type { Trace } from './handlers/messages.ts';
import type { Telemetry } from './telemetry.ts';

/** Maximum number of spans of an invocation; X-Ray accepts 10,000 per request. */
const MAX_SPANS = 5_000;
/** Time (ms) that an invocation spends on sending its spans. */
const SEND_MS = 2_000;

/** Traces of an invocation. Absent in a cell that has no traces. */
export interface Tracing {
  /** Begins the trace of a poll, if it is in the sample. */
  beginPoll(ref: AccountRef): void;
  /** Returns the trace of the next commit of an account. */
  traceCommit(ref: AccountRef): string | undefined;
  committed(ref: AccountRef, sequence: number, events: number): void;
  /** Ends the trace of a poll. A poll without events that did not fail is not sent. */
  endPoll(report: TracedPoll, late: { readonly lagMs: number }): void;
  /** Records the wake-up of an account, and returns its trace for drain messages. */
  wake(region: string, trace: Trace): Trace | undefined;
  /** Begins a drain with the traces of its message. Returns a function to call with each attempt. */
  beginDrain(region: string, sink: string, traces: readonly Trace[]): Drain;
}

interface Drain {
  attempt(attempt: Attempt): void;
  /** Records the drain in each of its traces. */
  end(): void;
}

/** Creates traces. `send` sends the body of an export. */
export function createTracing(options: {
  /** Share of polls that are traced, 0 to 1. */
  readonly sample: number;
  readonly now: () => number;
  readonly random: () => number;
  readonly send: (body: string) => Promise<void>;
  readonly onError: (cause: unknown) => void;
}): Tracing & { flush(): Promise<void> } {
  const { sample, now, random, send, onError } = options;
  const polls = new Map<string, { readonly poll: SpanContext; commit?: SpanContext }>();
  let spans: object[] = [];

  function end(context: Parameters<typeof encodeSpan>[0], span: Span): void {
    if (spans.length < MAX_SPANS) spans.push(encodeSpan(context, span, now()));
  }

  return {
    beginPoll({ account }) {
      if (random() < sample) polls.set(account, { poll: newContext() });
    },
    traceCommit({ account }) {
      const traced = polls.get(account);
      if (!traced) return undefined;
      traced.commit = newContext(traced.poll);
      return formatTraceparent(traced.commit);
    },
    committed(ref, sequence, events) {
      const { poll, commit } = polls.get(ref.account) ?? {};
      if (commit) end({ ...commit, parent: poll }, describeCommit(ref, sequence, events, now()));
    },
    endPoll(report, { lagMs }) {
      const { poll } = polls.get(report.account) ?? {};
      polls.delete(report.account);
      if (poll && (report.events || report.outcome === 'failed')) {
        end(poll, describePoll(report, lagMs, now()));
      }
    },
    wake(region, { account, from, to, trace }) {
      const parent = parseTraceparent(trace);
      if (!parent) return undefined;
      const context = newContext(parent);
      const attributes = { 'jobwire.region': region, 'jobwire.account': account, 'jobwire.sequence': to };
      end({ ...context, parent }, { name: 'wake', kind: 'internal', startedAt: now(), attributes });
      return { account, from, to, trace: formatTraceparent(context) };
    },
    beginDrain(region, sink, traces) {
      const startedAt = now();
      const drains = traces.flatMap(({ trace, ...range }) => {
        const parent = parseTraceparent(trace);
        return parent ? [{ ...range, parent, context: newContext(parent) }] : [];
      });
      return {
        attempt(attempt) {
          const { account, sequence } = attempt;
          const drain = drains.find(
            (one) => one.account === account && one.from <= sequence && sequence <= one.to,
          );
          if (!drain) return;
          const parent = drain.context;
          end({ ...newContext(parent), parent }, describeAttempt(attempt, now()));
        },
        end() {
          for (const { account, parent, context } of drains) {
            const attributes = {
              'jobwire.region': region,
              'jobwire.account': account,
              'jobwire.endpoint': sink,
            };
            end({ ...context, parent }, { name: 'drain', kind: 'internal', startedAt, attributes });
          }
        },
      };
    },
    async flush() {
      if (spans.length === 0) return;
      const body = encodeExport(spans);
      spans = [];
      await send(body).catch(onError);
    },
  };
}

/**
 * Creates the traces of a function by its environment, and the middleware that sends them. `tracing` is absent in a cell without
 * traces.
 */
export function createXrayTracing(
  env: { readonly JOBWIRE_TRACE_SAMPLE?: number | undefined },
  telemetry: Pick<Telemetry, 'fault'>,
) {
  const { JOBWIRE_TRACE_SAMPLE: sample } = env;
  const tracing =
    sample === undefined
      ? undefined
      : createTracing({
          ...{ sample, now: Date.now, random: Math.random },
          send: createXraySender(process.env.AWS_REGION ?? ''),
          onError: (cause) => telemetry.fault('The traces of the invocation could not be sent.', cause),
        });
  const flush = async (): Promise<void> => tracing?.flush();
  return { tracing, sending: { after: flush, onError: flush } };
}

/** Creates a sender to the OTLP endpoint of X-Ray in an AWS region, with the credentials of the environment. */
export function createXraySender(
  region: string,
  endpoint = `https://xray.${region}.${region.startsWith('cn-') ? 'amazonaws.com.cn' : 'amazonaws.com'}`,
): (body: string) => Promise<void> {
  const url = new URL('/v1/traces', endpoint);
  const signer = new SignatureV4({ credentials: defaultProvider(), region, service: 'xray', sha256: Sha256 });
  return async (body) => {
    const { method, headers } = await signer.sign({
      ...{ method: 'POST', protocol: url.protocol, hostname: url.hostname, path: url.pathname, body },
      headers: { host: url.host, 'content-type': 'application/json' },
    });
    const response = await fetch(url, {
      ...{ method, headers, body, redirect: 'error' },
      signal: AbortSignal.timeout(SEND_MS),
    });
    await response.body?.cancel();
    if (!response.ok) throw new Error(`X-Ray responded with ${response.status}.`);
  };
}
