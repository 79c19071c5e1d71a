/**
 * Spans of OpenTelemetry in the JSON encoding of OTLP: those of polls, commits and attempts to deliver. Self-hosted they are sent to a
 * collector (`local/tracing.ts`), on AWS to X-Ray (`functions/tracing.ts`).
 */
import { randomBytes } from 'node:crypto';
import type { Attempt } from './delivery/delivery-log.ts';
import type { AccountRef } from './storage/schema.ts';
import type { PollReport } from './tracking/poll-report.ts';

/** The ids of a span. */
export interface SpanContext {
  readonly traceId: string;
  readonly spanId: string;
}

type Attributes = Readonly<Record<string, string | number | undefined>>;

/** The content of a span. */
export interface Span {
  readonly name: string;
  readonly kind: 'internal' | 'client';
  /** Epoch ms. */
  readonly startedAt: number;
  readonly isError?: boolean;
  readonly attributes: Attributes;
}

/** Returns new ids: a span of the parent's trace, or of a new one. */
export function newContext(parent?: SpanContext): SpanContext {
  return {
    traceId: parent?.traceId ?? randomBytes(16).toString('hex'),
    spanId: randomBytes(8).toString('hex'),
  };
}

/** Converts a span that ends at a time (epoch ms) to OTLP. */
export function encodeSpan(
  context: SpanContext & { readonly parent?: SpanContext | undefined },
  span: Span,
  endedAt: number,
): object {
  return {
    traceId: context.traceId,
    spanId: context.spanId,
    ...(context.parent ? { parentSpanId: context.parent.spanId } : {}),
    name: span.name,
    kind: span.kind === 'client' ? 3 : 1,
    startTimeUnixNano: toNanoseconds(span.startedAt),
    endTimeUnixNano: toNanoseconds(endedAt),
    attributes: toAttributes(span.attributes),
    status: span.isError ? { code: 2 } : {},
  };
}

/** Returns the body of a request that exports spans. */
export function encodeExport(spans: readonly object[]): string {
  return JSON.stringify({
    resourceSpans: [
      {
        resource: { attributes: toAttributes({ 'service.name': 'jobwire' }) },
        scopeSpans: [{ scope: { name: 'jobwire' }, spans }],
      },
    ],
  });
}

/** The result of a poll for its span. A poll that threw an error has no counts. */
export type TracedPoll = Pick<PollReport, 'region' | 'account' | 'outcome' | 'ms'> &
  Partial<Pick<PollReport, 'events' | 'requests' | 'retries' | 'openJobs'>>;

/** Returns the span of a poll that ends at a time (epoch ms). */
export function describePoll(report: TracedPoll, lagMs: number, endedAt: number): Span {
  const { region, account, outcome, events, requests, retries, openJobs, ms } = report;
  return {
    ...{ name: 'poll', kind: 'internal', startedAt: endedAt - ms, isError: outcome === 'failed' },
    attributes: {
      ...{ 'jobwire.region': region, 'jobwire.account': account, 'jobwire.outcome': outcome },
      ...{ 'jobwire.events': events, 'jobwire.open_jobs': openJobs, 'jobwire.lag_ms': lagMs },
      ...{ 'jobwire.requests': requests, 'jobwire.retries': retries },
    },
  };
}

/** Returns the span of a commit: the last sequence of the log, and the number of new events. */
export function describeCommit(
  { region, account }: AccountRef,
  sequence: number,
  events: number,
  at: number,
): Span {
  return {
    ...{ name: 'commit', kind: 'internal', startedAt: at },
    attributes: {
      ...{ 'jobwire.region': region, 'jobwire.account': account },
      ...{ 'jobwire.sequence': sequence, 'jobwire.events': events },
    },
  };
}

/** Returns the span of an attempt that ends at a time (epoch ms). */
export function describeAttempt(attempt: Attempt, endedAt: number): Span {
  const { region, account, sink, eventId, type, cause, outcome, status, latencyMs } = attempt;
  return {
    ...{ name: 'deliver', kind: 'client', startedAt: endedAt - latencyMs, isError: outcome !== 'delivered' },
    attributes: {
      ...{ 'jobwire.region': region, 'jobwire.account': account, 'jobwire.endpoint': sink },
      ...{ 'jobwire.event': eventId, 'jobwire.type': type, 'jobwire.cause': cause },
      ...{ 'jobwire.outcome': outcome, 'http.response.status_code': status },
    },
  };
}

/** Formats ids as a sampled `traceparent` (W3C Trace Context). */
export function formatTraceparent({ traceId, spanId }: SpanContext): string {
  return `00-${traceId}-${spanId}-01`;
}

/** Parses a sampled `traceparent`. Returns `undefined` for other texts. */
export function parseTraceparent(text: string): SpanContext | undefined {
  const [, traceId, spanId] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-01$/.exec(text) ?? [];
  return traceId === undefined || spanId === undefined ? undefined : { traceId, spanId };
}

/** Converts epoch ms. 64-bit integers are texts in JSON. */
const toNanoseconds = (ms: number): string => `${Math.round(ms)}000000`;

function toAttributes(attributes: Attributes): object[] {
  return Object.entries(attributes).flatMap(([key, value]): object[] => {
    if (value === undefined) return [];
    const isNumber = typeof value === 'number';
    return [{ key, value: isNumber ? { intValue: String(Math.round(value)) } : { stringValue: value } }];
  });
}
