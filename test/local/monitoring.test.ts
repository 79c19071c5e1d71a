/** The examples in docs/prometheus: each query is valid, uses only metrics and labels of the catalogue, and each alert has its runbook section. */
import { readFileSync } from 'node:fs';
import { parser } from '@prometheus-io/lezer-promql';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { AccountState } from '../../shared/accounts/account-views.ts';
import { EndpointHealth } from '../../shared/delivery/endpoint-views.ts';
import {
  METRICS,
  type Metric,
  PROCESS_METRICS,
  SELF_HOSTED_METRICS,
  toPrometheusName,
} from '../../shared/metrics.ts';
import { simulateBackOff } from '../support/back-off.ts';

/** Alarms about AWS services that a self-hosted Jobwire does not use. */
const ONLY_ON_AWS = [
  ...['polls-waiting', 'mails-bounced', 'mail-complaints', 'api-throttled', 'table-throttled'],
  ...['stream-late', 'topic-failures', 'dashboard-errors'],
  ...[
    'backup-failed',
    'dead-polls',
    'dead-lone-polls',
    'dead-drains',
    'dead-wakes',
    'dead-messages',
    'dead-mail-feedback',
  ],
];

interface Series {
  readonly family: string;
  readonly type: string;
  readonly labels: readonly string[];
}

/** Every name of a series, with its labels. */
const catalogue = new Map<string, Series>();
for (const [name, metric] of Object.entries({ ...METRICS, ...SELF_HOSTED_METRICS })) {
  const { type, labels = ['region'], only }: Metric = metric;
  const family = toPrometheusName(name as keyof typeof METRICS);
  if (only === undefined) add(family, type, labels);
}
for (const [family, { type }] of Object.entries(PROCESS_METRICS)) add(family, type, []);

function add(family: string, type: string, own: readonly string[]): void {
  const labels = [...own, 'job', 'instance'];
  const suffixes = { counter: ['_total'], gauge: [''], histogram: ['_bucket', '_sum', '_count'] };
  for (const suffix of suffixes[type as keyof typeof suffixes]) {
    catalogue.set(`${family}${suffix}`, {
      ...{ family, type },
      labels: suffix === '_bucket' ? [...labels, 'le'] : labels,
    });
  }
}

const STATES: Readonly<Record<string, readonly string[]>> = {
  jobwire_accounts: AccountState.options,
  jobwire_account_state: AccountState.options,
  jobwire_endpoint_state: EndpointHealth.shape.state.options,
};

/** Returns the series of a query. Throws if it is invalid, or uses other series or labels than the catalogue has. */
function checkQuery(query: string): Series[] {
  const used: Series[] = [];
  const grouped: string[] = [];
  let inRange = false;
  parser.parse(query).iterate({
    enter({ name, from, to, node, type }) {
      const text = query.slice(from, to);
      if (type.isError) throw new Error(`Syntax error at ${from}: ${query}`);
      if (name === 'MatrixSelector') inRange = true;
      if (name === 'Identifier' && node.parent?.name === 'VectorSelector') {
        const series = catalogue.get(text);
        if (!series) throw new Error(`No metric ${text}: ${query}`);
        // The absolute value of a counter has no meaning, because it starts at 0 with the process.
        if (series.type !== 'gauge' && !inRange) throw new Error(`A counter without a range: ${query}`);
        used.push(series);
      }
      if (name === 'UnquotedLabelMatcher') {
        const [, label = '', operator = '', value = ''] = /^(\w+)\s*(=~|!=|!~|=)\s*"(.*)"$/.exec(text) ?? [];
        const series = used.at(-1);
        if (!series?.labels.includes(label)) throw new Error(`No label ${label}: ${query}`);
        const isState = label === 'state' && !operator.includes('~');
        if (isState && !STATES[series.family]?.includes(value))
          throw new Error(`No state ${value}: ${query}`);
      }
      if (name === 'LabelName' && node.parent?.name === 'GroupingLabels') grouped.push(text);
    },
    leave({ name }) {
      if (name === 'MatrixSelector') inRange = false;
    },
  });
  for (const label of grouped) {
    for (const { labels } of used)
      if (!labels.includes(label)) throw new Error(`No label ${label}: ${query}`);
  }
  return used;
}

type Node = ReturnType<typeof parser.parse>['topNode'];

/**
 * Evaluates a query for one region, where sums by region change nothing. `series`: the values of gauges, and the increases of counters in
 * their ranges, by their selectors. Returns `undefined` for an empty result.
 */
function evaluate(query: string, series: Readonly<Record<string, number>>): number | undefined {
  const getValue = (node: Node): number | undefined => {
    const text = query.slice(node.from, node.to);
    if (node.name === 'NumberDurationLiteral') return Number(text);
    if (node.name.endsWith('Selector')) {
      expect(Object.keys(series)).toContain(text);
      return series[text];
    }
    const children: Node[] = [];
    for (let child = node.firstChild; child; child = child.nextSibling) children.push(child);
    const operands = children.filter(({ name }) => /(Expr|Selector|Call|CallBody|Literal)$/.test(name));
    const [left, right] = operands.map(getValue);
    if (node.name !== 'BinaryExpr') return left;
    const operator = children[1]?.name;
    if (operator === 'Or') return left ?? right;
    if (operator === 'Unless') return right === undefined ? left : undefined;
    if (left === undefined || right === undefined) return undefined;
    if (operator === 'Div') return left / right;
    const holds = { Gte: left >= right, Eql: left === right }[operator ?? ''];
    if (holds === undefined) throw new Error(`Unknown operator ${operator}: ${query}`);
    return holds ? left : undefined;
  };
  return getValue(parser.parse(query).topNode);
}

test.each([
  'sum(rate(jobwire_pols_total[5m]))',
  'sum(rate(jobwire_polls_total[5m])',
  'sum by (account) (rate(jobwire_polls_total[5m]))',
  'jobwire_backlog{account="acme"}',
  'jobwire_polls_total > 3',
  'jobwire_account_state{state="quarantine"}',
])('an invalid query is detected: %s', (query) => {
  expect(() => checkQuery(query)).toThrow(query);
});

const runbook = readFileSync('docs/runbook.md', 'utf8');
const chapters = new Map(
  runbook
    .split(/^## /m)
    .slice(1)
    .map((chapter) => [chapter.split('\n')[0] ?? '', chapter]),
);

describe('docs/prometheus/dashboard.json', () => {
  interface Panel {
    readonly id: number;
    readonly title: string;
    readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
    readonly targets?: readonly {
      readonly refId: string;
      readonly expr: string;
      readonly legendFormat: string;
    }[];
  }
  const dashboard = JSON.parse(readFileSync('docs/prometheus/dashboard.json', 'utf8')) as {
    readonly panels: readonly Panel[];
    readonly templating: { readonly list: readonly { readonly name: string; readonly query: string }[] };
  };
  const { panels } = dashboard;

  test('every query uses only series and labels of the catalogue, and every metric is displayed', () => {
    const displayed = panels.flatMap(({ targets = [] }) =>
      targets.flatMap(({ expr, legendFormat }) => {
        const series = checkQuery(expr);
        for (const [, label = ''] of legendFormat.matchAll(/\{\{(\w+)\}\}/g)) {
          for (const { labels } of series) expect(labels, expr).toContain(label);
        }
        return series.map(({ family }) => family);
      }),
    );
    const families = new Set([...catalogue.values()].map(({ family }) => family));
    expect([...new Set(displayed)].sort()).toEqual([...families].sort());
  });

  test('its variables exist, and panels neither overlap nor share an id', () => {
    const variables = dashboard.templating.list.map(({ name }) => name);
    for (const [, variable = ''] of JSON.stringify(panels).matchAll(/\$\{?(\w+)/g)) {
      expect(variables).toContain(variable);
    }
    for (const { query } of dashboard.templating.list) {
      const [, metric = '', label = ''] = /^label_values\((\w+), (\w+)\)$/.exec(query) ?? [];
      if (query !== 'prometheus') expect(catalogue.get(metric)?.labels, query).toContain(label);
    }
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, at) => `${x + (at % w)} ${y + Math.floor(at / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    for (const { gridPos } of panels) expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
  });
});

describe('docs/prometheus/alerts.yml', () => {
  interface Rule {
    readonly alert: string;
    readonly expr: string;
    readonly for?: string;
    readonly labels: { readonly severity: string };
    readonly annotations: { readonly summary: string; readonly runbook_url: string };
  }
  const { groups } = parse(readFileSync('docs/prometheus/alerts.yml', 'utf8')) as {
    readonly groups: readonly { readonly name: string; readonly rules: readonly Rule[] }[];
  };
  const rules = groups.flatMap((group) => group.rules);
  const titles = rules.map(({ alert }) =>
    alert
      .replace(/^Jobwire/, '')
      .replace(/[A-Z]/g, (letter, at) => `${at === 0 ? '' : '-'}${letter.toLowerCase()}`),
  );

  test('there is one alert for each section of the runbook that is not only about AWS, and it links to it', () => {
    expect([...titles, ...ONLY_ON_AWS].sort()).toEqual([...chapters.keys()].sort());
    expect(rules.map(({ annotations }) => annotations.runbook_url)).toEqual(
      titles.map((title) => `docs/runbook.md#${title}`),
    );
  });

  test('every rule is complete, and its query and text use only series and labels of the catalogue', () => {
    for (const { alert, expr, for: duration = '0m', labels, annotations, ...others } of rules) {
      expect(others, alert).toEqual({});
      expect(duration, alert).toMatch(/^\d+m$/);
      expect(labels, alert).toEqual({ severity: expect.stringMatching(/^(critical|warning)$/) });
      const series = checkQuery(expr);
      for (const [, label = ''] of annotations.summary.matchAll(/\$labels\.(\w+)/g)) {
        for (const one of series) expect(one.labels, alert).toContain(label);
      }
      expect(annotations.summary, alert).toMatch(/^.{30,150}\.$/);
    }
  });

  const [HOUR, EVALUATED_EVERY] = [3600, 60];

  /** Returns the times (s) at which JobwirePollsIncomplete fires, if the polls of the only account of a region fail. */
  function findFiringTimes(interval: number, failing: { from: number; to: number; until: number }): number[] {
    const { expr = '', for: duration = '0m' } =
      rules.find(({ alert }) => alert === 'JobwirePollsIncomplete') ?? {};
    const polls = simulateBackOff(interval, failing);
    const times: number[] = [];
    let since: number | undefined;
    for (let at = 0; at < failing.until; at += EVALUATED_EVERY) {
      const past = polls.filter((poll) => poll.at <= at);
      const recent = past.filter((poll) => poll.at > at - 300);
      const value = evaluate(expr, {
        'jobwire_polls_total[5m]': recent.length,
        'jobwire_polls_incomplete_total[5m]': recent.filter(({ failed }) => failed).length,
        'jobwire_accounts{state="failing"}': past.at(-1)?.state === 'failing' ? 1 : 0,
        'jobwire_accounts{state!="paused"}': 1,
        jobwire_upstream_outage: 0,
      });
      since = value === undefined ? undefined : (since ?? at);
      if (since !== undefined && at - since >= 60 * Number.parseInt(duration, 10)) times.push(at);
    }
    return times;
  }

  test.each([60, 120, 300])(
    'polls-incomplete fires as long as the only account of a region fails, at a poll interval of %i s',
    (interval) => {
      const times = findFiringTimes(interval, { from: HOUR, to: 4 * HOUR, until: 5 * HOUR });
      const [first = 0] = times;
      expect(first).toBeGreaterThan(HOUR);
      expect(first).toBeLessThanOrEqual(1.5 * HOUR);
      expect(times[(4 * HOUR - first) / EVALUATED_EVERY - 1]).toBe(4 * HOUR - EVALUATED_EVERY);
      expect(times.at(-1)).toBeLessThan(4.5 * HOUR);
    },
  );

  test('polls-incomplete does not fire if polls fail for five minutes', () => {
    for (const interval of [60, 120, 300]) {
      expect(findFiringTimes(interval, { from: HOUR, to: HOUR + 300, until: 2 * HOUR })).toEqual([]);
    }
  });
});

describe('the runbook', () => {
  test('every section has a paragraph for a self-hosted Jobwire', () => {
    for (const [title, text] of chapters) {
      const paragraphs = [...text.matchAll(/^\*\*Self-hosted\*\*: (.*)$/gm)].map(
        ([, paragraph]) => paragraph,
      );
      expect(paragraphs, title).toHaveLength(1);
      expect(paragraphs[0]?.startsWith('this alarm does not exist'), title).toBe(ONLY_ON_AWS.includes(title));
    }
  });

  test('it names only metrics and CLI commands that exist', () => {
    const metrics = [...runbook.matchAll(/`((?:jobwire|process|nodejs)_[a-z_]+)`/g)].map(
      ([, name = '']) => name,
    );
    expect(metrics.length).toBeGreaterThan(5);
    const names = new Set([...catalogue].flatMap(([name, { family }]) => [name, family]));
    for (const name of metrics) expect(names).toContain(name);
    const commands = new Set(
      [...readFileSync('docs/cli.md', 'utf8').matchAll(/^### ([a-z ]+)$/gm)].map(([, command]) => command),
    );
    const used = [...runbook.matchAll(/`jobwire ([a-z]+(?: [a-z]+)?)/g)].map(([, command = '']) => command);
    expect(used.length).toBeGreaterThan(10);
    for (const command of used) {
      const isKnown = commands.has(command) || commands.has(command.split(' ')[0] ?? '');
      expect(isKnown || command === 'suppressions', command).toBe(true);
    }
  });
});
