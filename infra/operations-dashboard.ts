/** The widgets of a cell's CloudWatch dashboard. */
import {
  GraphWidget,
  type IMetric,
  type IWidget,
  type Metric,
  Stats,
  TextWidget,
} from 'aws-cdk-lib/aws-cloudwatch';
import { ERROR_KINDS } from '../shared/ordering/errors.ts';
import type { CellFunction } from './cell-function.ts';
import { type CellMetrics, FIVE_MINUTES, type MonitoredCell } from './cell-metrics.ts';

/** Returns the rows of graphs, in sections. */
export function createWidgets(metrics: CellMetrics, monitored: MonitoredCell): IWidget[][] {
  return [
    ...pollingSection(metrics),
    ...accountsSection(metrics),
    ...deliverySection(metrics),
    ...(monitored.cell.notifications ? notificationsSection(metrics) : []),
    ...platformSection(metrics, monitored),
  ];
}

function pollingSection(metrics: CellMetrics): IWidget[][] {
  return section('Polling', [
    graph('Poll lag (ms)', [
      metrics.metric('PollLag', Stats.p(50)).with({ label: 'p50' }),
      metrics.metric('PollLag', Stats.p(99)).with({ label: 'p99' }),
      metrics.metric('PollLag', Stats.MAXIMUM).with({ label: 'maximum' }),
    ]),
    graph(
      'Polls',
      [
        metrics.metric('PollsIncomplete', Stats.SAMPLE_COUNT).with({ label: 'polls' }),
        metrics.metric('PollsPartial', Stats.SUM),
        metrics.metric('PollsFailed', Stats.SUM),
      ],
      [metrics.metric('PollsIncomplete', Stats.AVERAGE).with({ label: 'fraction incomplete' })],
    ),
    graph('Changes', metrics.sums('ChangedJobs', 'EventsCommitted')),
    graph('Errors of the ordering API', [
      ...ERROR_KINDS.map((kind) => metrics.metric('UpstreamErrors', Stats.SUM, FIVE_MINUTES, { kind })),
      metrics.metric('UpstreamOutage', Stats.MAXIMUM),
    ]),
  ]);
}

function accountsSection(metrics: CellMetrics): IWidget[][] {
  return section('Accounts', [
    graph(
      'Delisted jobs with an unknown outcome',
      [metrics.metric('UnresolvedDepartures', Stats.MAXIMUM).with({ label: 'maximum of one account' })],
      [metrics.metric('UnresolvedDepartures', Stats.SAMPLE_COUNT).with({ label: 'polls with any' })],
    ),
    graph(
      'Accounts that need action',
      metrics.sums('AccountsQuarantined', 'IdentityMismatches', 'CredentialsRejected', 'TokenRefusals'),
    ),
  ]);
}

function deliverySection(metrics: CellMetrics): IWidget[][] {
  return section('Delivery', [
    graph('Delivery lag (ms)', [
      metrics.metric('DeliveryLag', Stats.p(50)).with({ label: 'p50' }),
      metrics.metric('DeliveryLag', Stats.p(99)).with({ label: 'p99' }),
    ]),
    graph('Age of the oldest undelivered event (s)', [metrics.metric('OldestUndelivered', Stats.MAXIMUM)]),
    graph('Attempts', metrics.sums('Deliveries', 'DeliveryFailures', 'DeliveryRejections')),
    graph(
      'Parked, dead, lost and unlogged events',
      metrics.sums('EventsParked', 'EventsDead', 'EventsLost', 'SinksDisabled', 'DeliveriesUnlogged'),
    ),
  ]);
}

function notificationsSection(metrics: CellMetrics): IWidget[][] {
  return section('Notifications', [
    graph(
      'Customer notifications',
      metrics.sums('MessagesSent', 'MessagesSuppressed', 'MessagesFailed', 'MessagesPutOff'),
    ),
    graph('Age of the oldest due notification (s)', [metrics.metric('OldestUnsent', Stats.MAXIMUM)]),
    graph('Bounces and complaints', metrics.sums('MailsBounced', 'MailComplaints')),
    graph('Repeated or unknown deliveries', metrics.sums('MailsRepeated', 'SmsUnknown')),
  ]);
}

function platformSection(
  metrics: CellMetrics,
  { functions, serving, wakeSinks, queues, topics, dead, state, history, api, distributionId }: MonitoredCell,
): IWidget[][] {
  const all = Object.entries({ ...functions, ...serving });
  const graphAll = (title: string, metric: (fn: CellFunction) => Metric) =>
    graph(
      title,
      all.map(([label, fn]) => metric(fn).with({ label })),
    );
  const dimensionsMap = metrics.apiDimensions();
  return section('Platform', [
    graph('Age of records of the table’s stream (ms)', [
      wakeSinks.metric('IteratorAge', { statistic: Stats.MAXIMUM }),
    ]),
    graph(
      'Failed notifications of topics',
      Object.entries(topics).map(([label, topic]) => topic.metricNumberOfNotificationsFailed({ label })),
    ),
    graph('Ticks', metrics.sums('Ticks')),
    graph('Messages of alert rules that were not accepted', metrics.sums('AlertsNotSent')),
    graphAll('Function errors', (fn) => fn.metricErrors()),
    graphAll('Function duration, p95 (ms)', (fn) => fn.metricDuration({ statistic: Stats.p(95) })),
    graphAll('Throttled invocations', (fn) => fn.metricThrottles()),
    graphAll('Concurrent invocations', (fn) =>
      fn.metric('ConcurrentExecutions', { statistic: Stats.MAXIMUM }),
    ),
    graph(
      'Age of the oldest message (s)',
      Object.entries(queues).map(([label, queue]) =>
        queue.metricApproximateAgeOfOldestMessage({ statistic: Stats.MAXIMUM, label }),
      ),
    ),
    graph(
      'Dead letters',
      Object.entries(dead).map(([label, { queue }]) =>
        queue.metricApproximateNumberOfMessagesVisible({ statistic: Stats.MAXIMUM, label }),
      ),
    ),
    graph('Throttled table requests', metrics.throttles()),
    graph('Consumed capacity units of tables', [
      metrics.tableMetric(state, 'ConsumedReadCapacityUnits'),
      metrics.tableMetric(state, 'ConsumedWriteCapacityUnits'),
      metrics.tableMetric(history, 'ConsumedReadCapacityUnits'),
      metrics.tableMetric(history, 'ConsumedWriteCapacityUnits'),
    ]),
    graph('API: requests', [
      api.metricCount({ statistic: Stats.SUM, dimensionsMap, label: 'requests' }),
      api.metricClientError({ statistic: Stats.SUM, dimensionsMap, label: '4xx' }),
      api.metricServerError({ statistic: Stats.SUM, dimensionsMap, label: '5xx' }),
    ]),
    graph('API: failed and unauthorized requests', metrics.sums('RequestsFailed', 'KeysRefused')),
    graph('API: latency (ms)', [
      api.metricLatency({ statistic: Stats.p(50), dimensionsMap, label: 'p50' }),
      api.metricLatency({ statistic: Stats.p(99), dimensionsMap, label: 'p99' }),
    ]),
    ...(distributionId === undefined
      ? []
      : [
          graph(
            'Dashboard: requests at CloudFront',
            [metrics.distributionMetric(distributionId, 'Requests', Stats.SUM, 'requests')],
            [
              metrics.distributionMetric(distributionId, '4xxErrorRate', Stats.AVERAGE, '4xx (%)'),
              metrics.distributionMetric(distributionId, '5xxErrorRate', Stats.AVERAGE, '5xx (%)'),
            ],
          ),
        ]),
  ]);
}

const WIDGETS_PER_ROW = 4;

function section(title: string, widgets: readonly IWidget[]): IWidget[][] {
  const rows = [];
  for (let at = 0; at < widgets.length; at += WIDGETS_PER_ROW) {
    rows.push(widgets.slice(at, at + WIDGETS_PER_ROW));
  }
  return [[new TextWidget({ markdown: `## ${title}`, width: 24, height: 1 })], ...rows];
}

function graph(title: string, left: IMetric[], right: IMetric[] = []): GraphWidget {
  return new GraphWidget({ title, left, right, width: 6, height: 6, leftYAxis: { min: 0 } });
}
