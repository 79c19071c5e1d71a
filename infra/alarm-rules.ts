/** The alarms of a cell, as data. docs/runbook.md has a heading for each. */
import { type IMetric, MathExpression, Stats } from 'aws-cdk-lib/aws-cloudwatch';
import type { IQueue } from 'aws-cdk-lib/aws-sqs';
import {
  type CellMetrics,
  CLOUDFRONT_REGION,
  FIVE_MINUTES,
  MINUTE,
  type MonitoredCell,
  total,
} from './cell-metrics.ts';

/** The condition of an alarm. Its title is a heading of docs/runbook.md. */
export interface AlarmRule {
  readonly title: string;
  /** Meaning of the alarm. */
  readonly means: string;
  readonly metric: IMetric;
  /** Threshold: alarms at or above this value. */
  readonly from?: number;
  /** Threshold: alarms below this value. */
  readonly below?: number;
  /** Number of breaching periods out of the evaluated ones. Default: one of one. */
  readonly in?: readonly [periods: number, of: number];
  /** Missing data is not breaching, unless set. `unchanged`: without data, the alarm keeps its state. */
  readonly silence?: 'alarming' | 'unchanged';
  /** `event`: reports an occurrence, so no OK notification is sent. */
  readonly about: 'state' | 'event';
}

/**
 * A message is sent up to 130 seconds ahead, may be in flight for 150 more, and is useless once its claim has
 * expired.
 */
const POLLS_WAIT_SECONDS = 400;
/** Returns the rules of all alarms of a cell. */
export function listAlarmRules(metrics: CellMetrics, monitored: MonitoredCell): AlarmRule[] {
  return [
    ...listPollingRules(metrics, monitored),
    ...listAccountsRules(metrics),
    ...listDeliveryRules(metrics, monitored),
    ...(monitored.cell.notifications ? listNotificationsRules(metrics) : []),
    ...listPlatformRules(metrics, monitored),
  ];
}

function listPollingRules(metrics: CellMetrics, { polls, lonePolls }: MonitoredCell): AlarmRule[] {
  const age = (queue: IQueue) =>
    queue.metricApproximateAgeOfOldestMessage({ statistic: Stats.MAXIMUM, period: MINUTE });
  return [
    {
      title: 'tick-not-running',
      means:
        'No tick has completed for five minutes, so no account is polled, and waiting sinks are not retried.',
      metric: metrics.metric('Ticks', Stats.SUM, MINUTE),
      ...{ below: 1, in: [5, 5], silence: 'alarming', about: 'state' },
    },
    {
      title: 'poll-lag',
      means: 'For 15 minutes, one poll in a hundred has begun more than a minute late.',
      metric: metrics.metric('PollLag', Stats.p(99)),
      ...{ from: 60_000, in: [3, 3], about: 'state' },
    },
    {
      title: 'polls-waiting',
      means: 'Polls wait in a queue for longer than their claims last, so accounts miss polls.',
      metric: new MathExpression({
        expression: 'MAX([FILL(polls, 0), FILL(lonePolls, 0)])',
        usingMetrics: { polls: age(polls), lonePolls: age(lonePolls) },
        ...{ label: 'Age', period: MINUTE },
      }),
      ...{ from: POLLS_WAIT_SECONDS, in: [3, 3], about: 'state' },
    },
    {
      title: 'polls-incomplete',
      means: 'For 15 minutes, a quarter of the polls have failed, or have not read or committed everything.',
      metric: metrics.metric('PollsIncomplete', Stats.AVERAGE),
      // A failing account is polled only every 15 minutes, so periods in between have no data.
      ...{ from: 0.25, in: [3, 5], silence: 'unchanged', about: 'state' },
    },
    {
      title: 'upstream-outage',
      means: 'The ordering API fails for the whole region. Only a few accounts are polled until it recovers.',
      metric: metrics.metric('UpstreamOutage', Stats.MAXIMUM, MINUTE),
      ...{ from: 1, in: [2, 2], about: 'state' },
    },
  ];
}

const HAPPENED = { from: 1, about: 'event' } as const;

function listAccountsRules(metrics: CellMetrics): AlarmRule[] {
  return [
    {
      title: 'credentials-rejected',
      means: 'The ordering API no longer accepts the credentials of an account.',
      metric: metrics.metric('CredentialsRejected', Stats.SUM),
      ...HAPPENED,
    },
    {
      title: 'identity-mismatch',
      means:
        'The credentials of an account belong to another account of the ordering API. The account is not polled until the operator confirms or corrects them.',
      metric: metrics.metric('IdentityMismatches', Stats.SUM),
      ...HAPPENED,
    },
    {
      title: 'account-quarantined',
      means:
        'Too many jobs of an account were delisted at once, so none is reported as cancelled or unavailable.',
      metric: metrics.metric('AccountsQuarantined', Stats.SUM),
      ...HAPPENED,
    },
  ];
}

function listDeliveryRules(metrics: CellMetrics, { wakeSinks, topics }: MonitoredCell): AlarmRule[] {
  return [
    {
      title: 'oldest-undelivered',
      means: 'For five minutes, a sink has not reached an event that is more than 15 minutes old.',
      metric: metrics.metric('OldestUndelivered', Stats.MAXIMUM, MINUTE),
      ...{ from: 900, in: [5, 5], about: 'state' },
    },
    {
      title: 'stream-late',
      means:
        'For five minutes, wakeSinks has read records of the table’s stream two minutes late, so deliveries wait for the tick.',
      metric: wakeSinks.metric('IteratorAge', { statistic: Stats.MAXIMUM, period: MINUTE }),
      ...{ from: 120_000, in: [5, 5], about: 'state' },
    },
    {
      title: 'topic-failures',
      means:
        'SNS repeatedly could not deliver messages of the cell’s topics to a subscriber, and discarded them or moved them to the subscription’s dead-letter queue.',
      metric: total(
        'Failed notifications',
        Object.values(topics).map((topic) => topic.metricNumberOfNotificationsFailed()),
      ),
      ...{ from: 1, in: [2, 3], about: 'state' },
    },
    {
      title: 'events-dead',
      means: 'A sink rejected an event on every attempt. The event is not retried.',
      metric: metrics.metric('EventsDead', Stats.SUM),
      ...HAPPENED,
    },
    {
      title: 'events-lost',
      means: 'Events expired before a sink accepted them.',
      metric: metrics.metric('EventsLost', Stats.SUM),
      ...HAPPENED,
    },
    {
      title: 'sink-disabled',
      means:
        'A sink is disabled, because all deliveries failed for days or because it requested no more events.',
      metric: metrics.metric('SinksDisabled', Stats.SUM),
      ...HAPPENED,
    },
  ];
}

function listNotificationsRules(metrics: CellMetrics): AlarmRule[] {
  return [
    {
      title: 'messages-late',
      means: 'For five minutes, a customer notification has been more than 15 minutes overdue.',
      metric: metrics.metric('OldestUnsent', Stats.MAXIMUM, MINUTE),
      ...{ from: 900, in: [5, 5], about: 'state' },
    },
    {
      title: 'messages-put-off',
      means: 'For 15 minutes, SES or SNS has repeatedly not accepted messages.',
      metric: metrics.metric('MessagesPutOff', Stats.SUM),
      // While a channel fails, one of its messages is tried about once a minute.
      ...{ from: 3, in: [3, 3], about: 'state' },
    },
    {
      title: 'messages-failed',
      means:
        'Messages repeatedly fail permanently: they are rejected, their templates fail, or they were retried for too long.',
      metric: metrics.metric('MessagesFailed', Stats.SUM),
      ...{ from: 10, in: [2, 3], about: 'state' },
    },
    {
      title: 'sms-unknown',
      means: 'The outcome of an SMS is unknown. The SMS is not sent again.',
      metric: metrics.metric('SmsUnknown', Stats.SUM),
      ...HAPPENED,
    },
    {
      title: 'mails-bounced',
      means: 'Many e-mails bounced at once. SES suspends sending if this continues.',
      metric: metrics.metric('MailsBounced', Stats.SUM),
      ...{ ...HAPPENED, from: 10 },
    },
    {
      title: 'mail-complaints',
      means:
        'A recipient marked an e-mail as spam. SES suspends sending at one complaint in a thousand e-mails.',
      metric: metrics.metric('MailComplaints', Stats.SUM),
      ...HAPPENED,
    },
  ];
}

function listPlatformRules(
  metrics: CellMetrics,
  { functions, serving, dead, api, cell, distributionId }: MonitoredCell,
): AlarmRule[] {
  return [
    {
      title: 'function-errors',
      means: 'Functions fail repeatedly: they throw, or run out of time or memory.',
      metric: total(
        'Errors',
        Object.values({ ...functions, ...serving }).map((fn) => fn.metricErrors()),
      ),
      ...{ from: 1, in: [2, 3], about: 'state' },
    },
    {
      title: 'alerts-not-sent',
      means: 'Targets of alert rules repeatedly do not accept messages.',
      metric: metrics.metric('AlertsNotSent', Stats.SUM),
      ...{ from: 1, in: [2, 3], about: 'state' },
    },
    ...Object.entries(dead).map(
      ([name, { queue, meaning }]): AlarmRule => ({
        title: `dead-${name}`,
        means: meaning,
        metric: queue.metricApproximateNumberOfMessagesVisible({ statistic: Stats.MAXIMUM, period: MINUTE }),
        ...{ from: 1, about: 'event' },
      }),
    ),
    ...(cell.backup
      ? [
          {
            title: 'backup-failed',
            means: 'AWS Backup could not make or copy the daily backup of the state table.',
            metric: total('Failed jobs', metrics.failedBackups(cell.backup)),
            // AWS Backup can emit its metrics late.
            ...({ from: 1, in: [1, 12], about: 'event' } as const),
          },
        ]
      : []),
    {
      title: 'api-errors',
      means: 'The HTTP API repeatedly responds with server errors.',
      metric: api.metricServerError({ statistic: Stats.SUM, dimensionsMap: metrics.apiDimensions() }),
      ...{ from: 5, in: [2, 3], about: 'state' },
    },
    ...(distributionId !== undefined && cell.awsRegion === CLOUDFRONT_REGION
      ? [
          {
            title: 'dashboard-errors',
            means: 'CloudFront repeatedly responds with server errors to viewers of the dashboard.',
            // With few requests, the rate alone would be high after a single error.
            metric: new MathExpression({
              expression: 'requests * rate / 100',
              usingMetrics: {
                requests: metrics.distributionMetric(distributionId, 'Requests', Stats.SUM),
                rate: metrics.distributionMetric(distributionId, '5xxErrorRate', Stats.AVERAGE),
              },
              ...{ label: 'Errors', period: FIVE_MINUTES },
            }),
            ...({ from: 5, in: [2, 3], about: 'state' } as const),
          },
        ]
      : []),
    {
      title: 'api-throttled',
      means: 'The functions behind the HTTP API are all busy, and requests of clients are throttled.',
      metric: total(
        'Throttles',
        Object.values(serving).map((fn) => fn.metricThrottles()),
      ),
      ...{ from: 10, in: [2, 3], about: 'state' },
    },
    {
      title: 'functions-throttled',
      means: 'AWS repeatedly throttles invocations of the functions that poll and deliver.',
      metric: total(
        'Throttles',
        Object.values(functions).map((fn) => fn.metricThrottles()),
      ),
      ...{ from: 10, in: [2, 3], about: 'state' },
    },
    {
      title: 'table-throttled',
      means:
        'DynamoDB repeatedly throttles reads or writes. They are retried, which delays polls and deliveries.',
      metric: total('Throttled', metrics.throttles()),
      ...{ from: 50, in: [2, 3], about: 'state' },
    },
  ];
}
