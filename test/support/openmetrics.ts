/** A strict reader of the OpenMetrics text format. `test/generators/metrics.test.ts` compares it with the parser of Prometheus's Python client. */

/** A metric with its samples: value by name and label values, `jobwire_ticks_total us`. */
export interface ReadFamily {
  readonly name: string;
  readonly type: string;
  readonly samples: Map<string, number>;
}

const NAME = '[a-zA-Z_][a-zA-Z0-9_]*';
const LABEL = `${NAME}="(?:[^"\\\\\\n]|\\\\[\\\\"n])*"`;
const SAMPLE = new RegExp(
  `^(${NAME})(?:\\{(${LABEL}(?:,${LABEL})*)\\})? (-?\\d+(?:\\.\\d+)?(?:e[+-]?\\d+)?)$`,
);
const SUFFIXES: Readonly<Record<string, RegExp>> = {
  counter: /^_total$/,
  gauge: /^$/,
  histogram: /^_(bucket|sum|count)$/,
};

/** Reads a response. Throws for the first line that violates the format. */
export function readOpenMetrics(text: string): ReadFamily[] {
  if (!text.endsWith('\n# EOF\n')) throw new Error('The text does not end with # EOF.');
  const families: ReadFamily[] = [];
  let buckets: { series: string; bound: number; count: number } | undefined;
  for (const line of text.slice(0, -'\n# EOF\n'.length).split('\n')) {
    const fail = (why: string): never => {
      throw new Error(`${why}: ${line}`);
    };
    const family = families.at(-1);
    const [, keyword, name = '', value = ''] = /^# (HELP|TYPE|UNIT) (\S+) (.+)$/.exec(line) ?? [];
    if (keyword === 'HELP') {
      if (families.some((one) => one.name === name)) fail('The family is not contiguous');
      families.push({ name, type: '', samples: new Map() });
      continue;
    }
    if (!family) return fail('A line before the first family');
    if (keyword !== undefined) {
      if (name !== family.name || family.samples.size > 0) fail('Metadata of another family');
      if (keyword === 'TYPE' && !(value in SUFFIXES)) fail('Unknown type');
      if (keyword === 'UNIT' && !name.endsWith(`_${value}`)) fail('The unit is not a suffix of the name');
      if (keyword === 'TYPE') families.splice(-1, 1, { ...family, type: value });
      continue;
    }
    const [, sample = '', labels = '', number = ''] = SAMPLE.exec(line) ?? fail('Not a sample');
    const pairs = [...labels.matchAll(new RegExp(LABEL, 'g'))].map(([pair]) => pair.split('="'));
    if (new Set(pairs.map(([label]) => label)).size < pairs.length) fail('A label is repeated');
    const suffix = sample.startsWith(family.name) ? sample.slice(family.name.length) : 'another';
    if (!SUFFIXES[family.type]?.test(suffix)) fail('Not a name of this family');
    const values = pairs.flatMap(([label, quoted = '']) => (label === 'le' ? [] : [quoted.slice(0, -1)]));
    const count = Number(number);
    if (family.type !== 'gauge' && count < 0) fail('A negative count');
    const [, le] = pairs.find(([label]) => label === 'le') ?? [];
    if ((le === undefined) === (suffix === '_bucket')) fail('A bound without a bucket, or the reverse');
    const series = [family.name, ...values].join(' ');
    if (le !== undefined) {
      if (!/^(\+Inf|\d+\.\d+)"$/.test(le)) fail('Not a bound');
      const bound = le === '+Inf"' ? Number.POSITIVE_INFINITY : Number(le.slice(0, -1));
      const isNext = buckets?.series === series;
      if (isNext && buckets && (bound <= buckets.bound || count < buckets.count))
        fail('Buckets do not ascend');
      buckets = { series, bound, count };
      continue;
    }
    if (suffix === '_count' && (buckets?.bound !== Number.POSITIVE_INFINITY || buckets.count !== count)) {
      fail('The last bucket is not the count');
    }
    const place = [sample, ...values].join(' ');
    if (family.samples.has(place)) fail('The sample is repeated');
    family.samples.set(place, count);
  }
  return families;
}
