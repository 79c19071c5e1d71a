/** The OTLP endpoint of X-Ray: records the spans that functions send. */

/** A span in the JSON encoding of OTLP. */
export interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { readonly key: string; readonly value: { readonly stringValue?: string } }[];
}

interface Export {
  readonly resourceSpans: readonly { readonly scopeSpans: readonly { readonly spans: readonly Span[] }[] }[];
}

/** Path of the endpoint. */
export const TRACES_PATH = '/v1/traces';
const MAX_SPANS = 10_000;

/** Records the spans, in order. */
export class Traces {
  readonly spans: Span[] = [];

  /** Records an export. Throws if X-Ray would reject it. */
  take(body: unknown): void {
    const spans = (body as Export).resourceSpans.flatMap(({ scopeSpans }) =>
      scopeSpans.flatMap((scope) => scope.spans),
    );
    if (spans.length === 0 || spans.length > MAX_SPANS)
      throw new Error(`An export has ${spans.length} spans.`);
    for (const { traceId, spanId, startTimeUnixNano: start, endTimeUnixNano: end } of spans) {
      const isValid = /^[0-9a-f]{32}$/.test(traceId) && /^[0-9a-f]{16}$/.test(spanId);
      if (!isValid || BigInt(start) > BigInt(end)) throw new Error(`The span ${spanId} is invalid.`);
    }
    this.spans.push(...spans);
  }
}

/** Returns the names of a span and its ancestors, outermost first. */
export function getPath(spans: readonly Span[], span: Span): string[] {
  const parent = spans.find(
    ({ traceId, spanId }) => traceId === span.traceId && spanId === span.parentSpanId,
  );
  return [...(parent ? getPath(spans, parent) : []), span.name];
}

/** Returns the text of an attribute, by its name without `jobwire.`. */
export function getAttribute({ attributes }: Span, name: string): string | undefined {
  return attributes.find(({ key }) => key === `jobwire.${name}`)?.value.stringValue;
}
