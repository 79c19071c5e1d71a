/** Monitoring of a cell: a topic for the operator on call, its alarms, and a dashboard. */
import { ArnFormat, Duration, Stack } from 'aws-cdk-lib';
import type { RestApi } from 'aws-cdk-lib/aws-apigateway';
import {
  Alarm,
  AlarmStatusWidget,
  ComparisonOperator,
  Dashboard,
  GraphWidget,
  type IMetric,
  type IWidget,
  MathExpression,
  Metric,
  Stats,
  TextWidget,
  TreatMissingData,
} from 'aws-cdk-lib/aws-cloudwatch';
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions';
import type { ITableV2 } from 'aws-cdk-lib/aws-dynamodb';
import { PolicyStatement, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { Topic } from 'aws-cdk-lib/aws-sns';
import { EmailSubscription } from 'aws-cdk-lib/aws-sns-subscriptions';
import type { IQueue } from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';
import { cellName, type MetricName, NAMESPACE } from '../functions/metrics.ts';
import { ERROR_KINDS } from '../shared/ordering/errors.ts';
import type { stateSchema } from '../shared/storage/schema.ts';
import type { Cell } from './cell.ts';
import type { CellFunction } from './cell-function.ts';
import type { DeadLetters } from './work-queue.ts';

type Named<T> = Readonly<Record<string, T>>;

interface Props extends Cell {
  /** Functions that no client waits for. */
  readonly functions: Named<CellFunction>;
  /** Functions that clients wait for. */
  readonly serving: Named<CellFunction>;
  readonly queues: Named<IQueue>;
  /** Queue of due polls. */
  readonly polls: IQueue;
  /** Dead-letter queues; the alarm of each is named `dead-` and its name. */
  readonly dead: Named<DeadLetters>;
  readonly state: ITableV2;
  readonly history: ITableV2;
  readonly api: RestApi;
}

/** The condition of an alarm. Its title is a heading of docs/runbook.md. */
interface AlarmRule {
  /** Meaning of the alarm, as one sentence. */
  readonly means: string;
  readonly metric: IMetric;
  /** Threshold: alarms at or above this value. */
  readonly from?: number;
  /** Threshold: alarms below this value. */
  readonly below?: number;
  /** Number of breaching periods out of the evaluated ones. Default: one of one. */
  readonly in?: readonly [periods: number, of: number];
  /** Missing data is not breaching, unless set. */
  readonly silence?: 'alarming';
  /** `event`: reports an occurrence, so no OK notification is sent. */
  readonly about: 'state' | 'event';
}

const MINUTE = Duration.minutes(1);
const FIVE_MINUTES = Duration.minutes(5);
/**
 * A message is sent up to 130 seconds ahead, may be in flight for 150 more, and is useless once its claim has
 * expired.
 */
const POLLS_WAIT_SECONDS = 400;
const DUE_INDEX = 'due' satisfies keyof typeof stateSchema.indexes;

/** The monitoring of a cell; see the top of the file. */
export class Operations extends Construct {
  readonly topicArn: string;
  readonly #props: Props;
  readonly #action: SnsAction;
  readonly #alarms: Alarm[] = [];

  constructor(scope: Construct, id: string, props: Props) {
    super(scope, id);
    this.#props = props;
    const topic = this.#createTopic();
    this.topicArn = topic.topicArn;
    this.#action = new SnsAction(topic);
    this.#watchPolling();
    this.#watchAccounts();
    this.#watchDelivery();
    if (props.cell.notifications) this.#watchNotifications();
    this.#watchPlatform();
    this.#createDashboard();
  }

  #createTopic(): Topic {
    const { stage, region, cell } = this.#props;
    const topic = new Topic(this, 'Topic', {
      topicName: `jobwire-${stage.stage}-${region}-ops`,
      displayName: `Jobwire ${cellName({ stage: stage.stage, region })}`,
      enforceSSL: true,
    });
    // A topic policy replaces the default one, which allows alarms of the same account.
    topic.addToResourcePolicy(
      new PolicyStatement({
        principals: [new ServicePrincipal('cloudwatch.amazonaws.com')],
        actions: ['sns:Publish'],
        resources: [topic.topicArn],
        conditions: {
          StringEquals: { 'aws:SourceAccount': Stack.of(this).account },
          ArnLike: {
            'aws:SourceArn': Stack.of(this).formatArn({
              service: 'cloudwatch',
              resource: 'alarm',
              resourceName: `${this.#alarmName('*')}`,
              arnFormat: ArnFormat.COLON_RESOURCE_NAME,
            }),
          },
        },
      }),
    );
    if (cell.opsEmail) topic.addSubscription(new EmailSubscription(cell.opsEmail));
    return topic;
  }

  // Alarms

  #watchPolling(): void {
    const { polls } = this.#props;
    this.#watch('tick-not-running', {
      means:
        'No tick has completed for five minutes: no account is polled, and waiting sinks are not retried.',
      metric: this.#metric('Ticks', Stats.SUM, MINUTE),
      ...{ below: 1, in: [5, 5], silence: 'alarming', about: 'state' },
    });
    this.#watch('poll-lag', {
      means: 'For 15 minutes, one poll in a hundred has begun more than a minute late.',
      metric: this.#metric('PollLag', Stats.p(99)),
      ...{ from: 60_000, in: [3, 3], about: 'state' },
    });
    this.#watch('polls-waiting', {
      means: 'Polls wait in their queue for longer than their claims last: accounts miss polls.',
      metric: polls.metricApproximateAgeOfOldestMessage({ statistic: Stats.MAXIMUM, period: MINUTE }),
      ...{ from: POLLS_WAIT_SECONDS, in: [3, 3], about: 'state' },
    });
    this.#watch('polls-incomplete', {
      means: 'For 15 minutes, a quarter of the polls has failed, or has not read or committed everything.',
      metric: this.#metric('PollsIncomplete', Stats.AVERAGE),
      ...{ from: 0.25, in: [3, 3], about: 'state' },
    });
    this.#watch('upstream-outage', {
      means: 'The ordering API fails for the whole region; only a few accounts are polled until it recovers.',
      metric: this.#metric('UpstreamOutage', Stats.MAXIMUM, MINUTE),
      ...{ from: 1, in: [2, 2], about: 'state' },
    });
  }

  #watchAccounts(): void {
    const happened = { from: 1, about: 'event' } as const;
    this.#watch('credentials-rejected', {
      means: 'The ordering API no longer accepts the credentials of an account.',
      metric: this.#metric('CredentialsRejected', Stats.SUM),
      ...happened,
    });
    this.#watch('identity-mismatch', {
      means:
        'The credentials of an account belong to another one; it is not polled until the operator decides.',
      metric: this.#metric('IdentityMismatches', Stats.SUM),
      ...happened,
    });
    this.#watch('account-quarantined', {
      means: 'So many jobs of an account were delisted at once that no departure is emitted for them.',
      metric: this.#metric('AccountsQuarantined', Stats.SUM),
      ...happened,
    });
  }

  #watchDelivery(): void {
    this.#watch('oldest-undelivered', {
      means: 'For five minutes, a sink has not reached an event that is more than 15 minutes old.',
      metric: this.#metric('OldestUndelivered', Stats.MAXIMUM, MINUTE),
      ...{ from: 900, in: [5, 5], about: 'state' },
    });
    const happened = { from: 1, about: 'event' } as const;
    this.#watch('events-dead', {
      means: 'A sink rejected an event at the last attempt; the event is not retried.',
      metric: this.#metric('EventsDead', Stats.SUM),
      ...happened,
    });
    this.#watch('events-lost', {
      means: 'Events passed retention before a sink accepted them.',
      metric: this.#metric('EventsLost', Stats.SUM),
      ...happened,
    });
    this.#watch('sink-disabled', {
      means: 'A sink is disabled: it only failed for days, or requested no more events.',
      metric: this.#metric('SinksDisabled', Stats.SUM),
      ...happened,
    });
  }

  #watchNotifications(): void {
    this.#watch('messages-late', {
      means: 'For five minutes, a customer notification has been more than 15 minutes overdue.',
      metric: this.#metric('OldestUnsent', Stats.MAXIMUM, MINUTE),
      ...{ from: 900, in: [5, 5], about: 'state' },
    });
    this.#watch('messages-put-off', {
      means: 'For 15 minutes, SES or SNS has repeatedly accepted no messages.',
      metric: this.#metric('MessagesPutOff', Stats.SUM),
      ...{ from: 10, in: [3, 3], about: 'state' },
    });
    this.#watch('messages-failed', {
      means:
        'Messages repeatedly fail permanently: rejected, with failing templates, or retried for too long.',
      metric: this.#metric('MessagesFailed', Stats.SUM),
      ...{ from: 10, in: [2, 3], about: 'state' },
    });
    const happened = { about: 'event' } as const;
    this.#watch('sms-unknown', {
      means: 'The outcome of an SMS is unknown; it is not sent again.',
      metric: this.#metric('SmsUnknown', Stats.SUM),
      ...{ from: 1, ...happened },
    });
    this.#watch('mails-bounced', {
      means: 'Many e-mails bounced at once; SES suspends sending if this continues.',
      metric: this.#metric('MailsBounced', Stats.SUM),
      ...{ from: 10, ...happened },
    });
    this.#watch('mail-complaints', {
      means: 'A recipient marked an e-mail as spam; SES suspends sending at one complaint in a thousand.',
      metric: this.#metric('MailComplaints', Stats.SUM),
      ...{ from: 1, ...happened },
    });
  }

  #watchPlatform(): void {
    const { functions, serving, dead, api } = this.#props;
    this.#watch('function-errors', {
      means: 'Functions fail repeatedly: they throw, or run out of time or memory.',
      metric: total(
        'Errors',
        Object.values({ ...functions, ...serving }).map((fn) => fn.metricErrors()),
      ),
      ...{ from: 1, in: [2, 3], about: 'state' },
    });
    for (const [name, { queue, meaning }] of Object.entries(dead)) {
      this.#watch(`dead-${name}`, {
        means: meaning,
        metric: queue.metricApproximateNumberOfMessagesVisible({ statistic: Stats.MAXIMUM, period: MINUTE }),
        ...{ from: 1, about: 'event' },
      });
    }
    this.#watch('api-errors', {
      means: 'The HTTP API repeatedly responds with server errors.',
      metric: api.metricServerError({ statistic: Stats.SUM, dimensionsMap: this.#apiDimensions() }),
      ...{ from: 5, in: [2, 3], about: 'state' },
    });
    this.#watch('api-throttled', {
      means: 'The functions behind the HTTP API are all busy, and requests of clients are throttled.',
      metric: total(
        'Throttles',
        Object.values(serving).map((fn) => fn.metricThrottles()),
      ),
      ...{ from: 10, in: [2, 3], about: 'state' },
    });
    this.#watch('functions-throttled', {
      means: 'AWS repeatedly throttles invocations of the functions that poll and deliver.',
      metric: total(
        'Throttles',
        Object.values(functions).map((fn) => fn.metricThrottles()),
      ),
      ...{ from: 10, in: [2, 3], about: 'state' },
    });
    this.#watch('table-throttled', {
      means: 'DynamoDB repeatedly throttles reads or writes; they are retried, and everything is slower.',
      metric: total('Throttled', this.#throttles()),
      ...{ from: 50, in: [2, 3], about: 'state' },
    });
  }

  #watch(title: string, watch: AlarmRule): void {
    const [datapointsToAlarm, evaluationPeriods] = watch.in ?? [1, 1];
    const alarm = new Alarm(this, title, {
      alarmName: this.#alarmName(title),
      alarmDescription: `${watch.means} See ${title} in docs/runbook.md.`,
      metric: watch.metric,
      threshold: watch.below ?? watch.from ?? 1,
      comparisonOperator:
        watch.below === undefined
          ? ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
          : ComparisonOperator.LESS_THAN_THRESHOLD,
      ...{ datapointsToAlarm, evaluationPeriods },
      treatMissingData:
        watch.silence === 'alarming' ? TreatMissingData.BREACHING : TreatMissingData.NOT_BREACHING,
    });
    alarm.addAlarmAction(this.#action);
    if (watch.about === 'state') alarm.addOkAction(this.#action);
    this.#alarms.push(alarm);
  }

  // Metrics

  /** Returns a metric of the catalogue, by default over five minutes. */
  #metric(
    name: MetricName,
    statistic: string,
    period = FIVE_MINUTES,
    dimensions: Named<string> = {},
  ): Metric {
    const { stage, region } = this.#props;
    return new Metric({
      namespace: NAMESPACE,
      metricName: name,
      dimensionsMap: { cell: cellName({ stage: stage.stage, region }), ...dimensions },
      ...{ statistic, period },
      // With a label, the CDK renders an alarm's metric as a math expression.
      ...(dimensions.kind === undefined ? {} : { label: dimensions.kind }),
    });
  }

  #throttles(): Metric[] {
    const { state, history } = this.#props;
    const dimensionsMap = { TableName: state.tableName, GlobalSecondaryIndexName: DUE_INDEX };
    return [
      this.#tableMetric(state, 'ReadThrottleEvents'),
      this.#tableMetric(state, 'WriteThrottleEvents'),
      // The one index whose writes concentrate on few partitions.
      state.metric('WriteThrottleEvents', {
        ...SUM,
        dimensionsMap,
        label: `${DUE_INDEX} WriteThrottleEvents`,
      }),
      this.#tableMetric(history, 'WriteThrottleEvents'),
    ];
  }

  #tableMetric(table: ITableV2, name: string): Metric {
    const which = table === this.#props.state ? 'state' : 'history';
    return table.metric(name, { ...SUM, label: `${which} ${name}` });
  }

  #apiDimensions(): Named<string> {
    const { api } = this.#props;
    return { ApiName: api.restApiName, Stage: api.deploymentStage.stageName };
  }

  #alarmName(title: string): string {
    return `${Stack.of(this).stackName}-${title}`;
  }

  // The dashboard

  #createDashboard(): void {
    const { stage, region } = this.#props;
    new Dashboard(this, 'Dashboard', {
      dashboardName: Stack.of(this).stackName,
      defaultInterval: Duration.hours(12),
      widgets: [
        [
          new TextWidget({
            markdown: `# Jobwire ${cellName({ stage: stage.stage, region })}\nEach alarm has a heading in docs/runbook.md.`,
            ...{ width: 6, height: 4 },
          }),
          new AlarmStatusWidget({ alarms: this.#alarms, width: 18, height: 4 }),
        ],
        ...this.#polling(),
        ...this.#accounts(),
        ...this.#delivery(),
        ...(this.#props.cell.notifications ? this.#notifications() : []),
        ...this.#platform(),
      ],
    });
  }

  #polling(): IWidget[][] {
    return section('Polling', [
      graph('How late polls begin (ms)', [
        this.#metric('PollLag', Stats.p(50)).with({ label: 'p50' }),
        this.#metric('PollLag', Stats.p(99)).with({ label: 'p99' }),
        this.#metric('PollLag', Stats.MAXIMUM).with({ label: 'maximum' }),
      ]),
      graph(
        'Polls',
        [
          this.#metric('PollsIncomplete', Stats.SAMPLE_COUNT).with({ label: 'polls' }),
          this.#metric('PollsPartial', Stats.SUM),
          this.#metric('PollsFailed', Stats.SUM),
        ],
        [this.#metric('PollsIncomplete', Stats.AVERAGE).with({ label: 'fraction incomplete' })],
      ),
      graph('Changes', [this.#metric('ChangedJobs', Stats.SUM), this.#metric('EventsCommitted', Stats.SUM)]),
      graph('Faults of the ordering service', [
        ...ERROR_KINDS.map((kind) => this.#metric('UpstreamErrors', Stats.SUM, FIVE_MINUTES, { kind })),
        this.#metric('UpstreamOutage', Stats.MAXIMUM),
      ]),
    ]);
  }

  #accounts(): IWidget[][] {
    return section('Truth', [
      graph(
        'Jobs that are missing and whose fate is open',
        [this.#metric('UnresolvedDepartures', Stats.MAXIMUM).with({ label: 'maximum of one account' })],
        [this.#metric('UnresolvedDepartures', Stats.SAMPLE_COUNT).with({ label: 'polls with any' })],
      ),
      graph('Accounts that stop', [
        this.#metric('AccountsQuarantined', Stats.SUM),
        this.#metric('IdentityMismatches', Stats.SUM),
        this.#metric('CredentialsRejected', Stats.SUM),
        this.#metric('TokenRefusals', Stats.SUM),
      ]),
    ]);
  }

  #delivery(): IWidget[][] {
    return section('Delivery', [
      graph('From observed to taken (ms)', [
        this.#metric('DeliveryLag', Stats.p(50)).with({ label: 'p50' }),
        this.#metric('DeliveryLag', Stats.p(99)).with({ label: 'p99' }),
      ]),
      graph('Age of the oldest undelivered event (s)', [this.#metric('OldestUndelivered', Stats.MAXIMUM)]),
      graph('Attempts', [
        this.#metric('Deliveries', Stats.SUM),
        this.#metric('DeliveryFailures', Stats.SUM),
        this.#metric('DeliveryRejections', Stats.SUM),
      ]),
      graph('What was not simply delivered', [
        this.#metric('EventsParked', Stats.SUM),
        this.#metric('EventsDead', Stats.SUM),
        this.#metric('EventsLost', Stats.SUM),
        this.#metric('SinksDisabled', Stats.SUM),
        this.#metric('DeliveriesUnlogged', Stats.SUM),
      ]),
    ]);
  }

  #notifications(): IWidget[][] {
    return section('Notifications', [
      graph('Messages to customers', [
        this.#metric('MessagesSent', Stats.SUM),
        this.#metric('MessagesSuppressed', Stats.SUM),
        this.#metric('MessagesFailed', Stats.SUM),
        this.#metric('MessagesPutOff', Stats.SUM),
      ]),
      graph('How long something to tell has been due (s)', [this.#metric('OldestUnsent', Stats.MAXIMUM)]),
      graph('E-mails that came back', [
        this.#metric('MailsBounced', Stats.SUM),
        this.#metric('MailComplaints', Stats.SUM),
      ]),
      graph('What may have gone twice, or not at all', [
        this.#metric('MailsRepeated', Stats.SUM),
        this.#metric('SmsUnknown', Stats.SUM),
      ]),
    ]);
  }

  #platform(): IWidget[][] {
    const { functions, serving, queues, dead, state, history, api } = this.#props;
    const all = Object.entries({ ...functions, ...serving });
    const ofAll = (metric: (fn: CellFunction) => Metric) =>
      all.map(([label, fn]) => metric(fn).with({ label }));
    const dimensionsMap = this.#apiDimensions();
    return section('Machinery', [
      graph('Ticks', [this.#metric('Ticks', Stats.SUM)]),
      graph(
        'Function errors',
        ofAll((fn) => fn.metricErrors()),
      ),
      graph(
        'Function time, 95 % (ms)',
        ofAll((fn) => fn.metricDuration({ statistic: Stats.p(95) })),
      ),
      graph(
        'Throttled invocations',
        ofAll((fn) => fn.metricThrottles()),
      ),
      graph(
        'Invocations side by side',
        ofAll((fn) => fn.metric('ConcurrentExecutions', { statistic: Stats.MAXIMUM })),
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
      graph('Throttled calls of tables', this.#throttles()),
      graph('Units of tables', [
        this.#tableMetric(state, 'ConsumedReadCapacityUnits'),
        this.#tableMetric(state, 'ConsumedWriteCapacityUnits'),
        this.#tableMetric(history, 'ConsumedReadCapacityUnits'),
        this.#tableMetric(history, 'ConsumedWriteCapacityUnits'),
      ]),
      graph('API: requests', [
        api.metricCount({ statistic: Stats.SUM, dimensionsMap, label: 'requests' }),
        api.metricClientError({ statistic: Stats.SUM, dimensionsMap, label: '4xx' }),
        api.metricServerError({ statistic: Stats.SUM, dimensionsMap, label: '5xx' }),
      ]),
      graph('API: what the app could not answer, and keys it did not take', [
        this.#metric('RequestsFailed', Stats.SUM),
        this.#metric('KeysRefused', Stats.SUM),
      ]),
      graph('API: time (ms)', [
        api.metricLatency({ statistic: Stats.p(50), dimensionsMap, label: 'p50' }),
        api.metricLatency({ statistic: Stats.p(99), dimensionsMap, label: 'p99' }),
      ]),
    ]);
  }
}

const SUM = { statistic: Stats.SUM, period: FIVE_MINUTES } as const;

/** Returns the sum of metrics with missing data counted as zero. */
function total(label: string, metrics: readonly IMetric[]): MathExpression {
  const named = metrics.map((metric, at) => [`m${at}`, metric] as const);
  return new MathExpression({
    expression: `SUM([${named.map(([id]) => `FILL(${id}, 0)`).join(', ')}])`,
    usingMetrics: Object.fromEntries(named),
    ...{ label, period: FIVE_MINUTES },
  });
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
