/** Text formats of metrics: Prometheus 0.0.4 and OpenMetrics 1.0. Written here because prom-client has one format per registry (docs/decisions/0054-prometheus-metrics.md). */

/** The formats by media type, with the content type of a response. */
export const FORMATS = {
  'text/plain': 'text/plain; version=0.0.4; charset=utf-8',
  'application/openmetrics-text': 'application/openmetrics-text; version=1.0.0; charset=utf-8',
} as const;

type Labels = Readonly<Record<string, string>>;

/** A value with its labels, or the observations of a histogram. */
export interface Sample {
  readonly labels: Labels;
  readonly value: number | Histogram;
}

/** A metric with its samples. The name is without suffix. */
export interface Family {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  /** Suffix of the name. Absent for counts. */
  readonly unit?: 'seconds' | 'bytes' | undefined;
  readonly samples: readonly Sample[];
}

/** Upper bounds of the buckets of all histograms, in seconds: from one request on the local network to an hour. */
const BOUNDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600];

/** Observed durations, in seconds. */
export class Histogram {
  /** Number of observations in each bucket, not cumulative. The last one has no upper bound. */
  readonly #counts = new Array<number>(BOUNDS.length + 1).fill(0);
  #sum = 0;

  observe(seconds: number): void {
    const at = BOUNDS.findIndex((bound) => seconds <= bound);
    const bucket = at === -1 ? BOUNDS.length : at;
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#sum += seconds;
  }

  /** Returns the samples as lines of both formats. */
  format(name: string, labels: Labels): string[] {
    let count = 0;
    const buckets = this.#counts.map((observed, at) => {
      count += observed;
      const bound = BOUNDS[at];
      // OpenMetrics requires a decimal point. With the same bounds in both formats, a series does not depend on the format.
      const le = bound === undefined ? '+Inf' : Number.isInteger(bound) ? `${bound}.0` : String(bound);
      return `${name}_bucket${formatLabels({ ...labels, le })} ${count}`;
    });
    return [
      ...buckets,
      `${name}_sum${formatLabels(labels)} ${this.#sum}`,
      `${name}_count${formatLabels(labels)} ${count}`,
    ];
  }
}

/** Returns a response body. */
export function formatMetrics(families: readonly Family[], format: keyof typeof FORMATS): string {
  const open = format === 'application/openmetrics-text';
  const lines = families.flatMap(({ name, type, help, unit, samples }) => {
    const counter = type === 'counter' ? `${name}_total` : name;
    // In the older format, the name of a counter contains the suffix.
    const title = open ? name : counter;
    return [
      `# HELP ${title} ${escapeText(help, open)}`,
      `# TYPE ${title} ${type}`,
      ...(open && unit !== undefined ? [`# UNIT ${title} ${unit}`] : []),
      ...samples.flatMap(({ labels, value }) =>
        typeof value === 'number' ? `${counter}${formatLabels(labels)} ${value}` : value.format(name, labels),
      ),
    ];
  });
  return [...lines, ...(open ? ['# EOF'] : []), ''].join('\n');
}

function formatLabels(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapeText(value, true)}"`);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

function escapeText(text: string, quotes: boolean): string {
  const escaped = text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
  return quotes ? escaped.replaceAll('"', '\\"') : escaped;
}
