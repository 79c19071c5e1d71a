/** Monitoring of a cell: a topic for the operator on call, its alarms, and a dashboard. */
import { ArnFormat, Duration, Stack } from 'aws-cdk-lib';
import { CfnBudget } from 'aws-cdk-lib/aws-budgets';
import {
  Alarm,
  AlarmStatusWidget,
  ComparisonOperator,
  Dashboard,
  TextWidget,
  TreatMissingData,
} from 'aws-cdk-lib/aws-cloudwatch';
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions';
import { PolicyStatement, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { Topic } from 'aws-cdk-lib/aws-sns';
import { EmailSubscription } from 'aws-cdk-lib/aws-sns-subscriptions';
import { Construct } from 'constructs';
import { type AlarmRule, listAlarmRules } from './alarm-rules.ts';
import { CellMetrics, type MonitoredCell } from './cell-metrics.ts';
import { createWidgets } from './operations-dashboard.ts';

/** The monitoring of a cell; see the top of the file. */
export class Operations extends Construct {
  readonly topicArn: string;
  /** The alarms by title, which is a heading of docs/runbook.md. */
  readonly alarms: ReadonlyMap<string, Alarm>;
  readonly #monitored: MonitoredCell;
  readonly #action: SnsAction;

  constructor(scope: Construct, id: string, monitored: MonitoredCell) {
    super(scope, id);
    this.#monitored = monitored;
    const topic = this.#createTopic();
    this.topicArn = topic.topicArn;
    this.#action = new SnsAction(topic);
    if (monitored.cell.monthlyBudget !== undefined) this.#createBudget(topic, monitored.cell.monthlyBudget);
    const metrics = new CellMetrics(monitored);
    this.alarms = new Map(
      listAlarmRules(metrics, monitored).map((rule) => [rule.title, this.#createAlarm(rule)]),
    );
    new Dashboard(this, 'Dashboard', {
      dashboardName: Stack.of(this).stackName,
      defaultInterval: Duration.hours(12),
      widgets: [
        [
          new TextWidget({
            markdown: `# Jobwire ${monitored.name}\nEach alarm has a heading in docs/runbook.md.`,
            ...{ width: 6, height: 4 },
          }),
          new AlarmStatusWidget({ alarms: [...this.alarms.values()], width: 18, height: 4 }),
        ],
        ...createWidgets(metrics, monitored),
      ],
    });
  }

  #createTopic(): Topic {
    const { name, cell } = this.#monitored;
    const topic = new Topic(this, 'Topic', {
      topicName: `jobwire-${name}-ops`,
      displayName: `Jobwire ${name}`,
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

  /** Creates a budget for all resources with the tags of the cell. */
  #createBudget(topic: Topic, amount: number): void {
    const { stage, id: cell } = this.#monitored;
    const { account, region, stackName } = Stack.of(this);
    topic.addToResourcePolicy(
      new PolicyStatement({
        principals: [new ServicePrincipal('budgets.amazonaws.com')],
        actions: ['sns:Publish'],
        resources: [topic.topicArn],
        conditions: { StringEquals: { 'aws:SourceAccount': account } },
      }),
    );
    const tags = { project: 'jobwire', stage: stage.stage, cell };
    const subscribers = [{ subscriptionType: 'SNS', address: topic.topicArn }];
    new CfnBudget(this, 'Budget', {
      budget: {
        // Unique in the AWS account.
        budgetName: `${stackName}-${region}`,
        ...{ budgetType: 'COST', timeUnit: 'MONTHLY', metrics: ['UnblendedCost'] },
        budgetLimit: { amount, unit: 'USD' },
        filterExpression: {
          and: Object.entries(tags).map(([key, value]) => ({ tags: { key, values: [value] } })),
        },
      },
      notificationsWithSubscribers: (['ACTUAL', 'FORECASTED'] as const).map((notificationType) => ({
        notification: { notificationType, comparisonOperator: 'GREATER_THAN', threshold: 100 },
        subscribers,
      })),
    });
  }

  #createAlarm(rule: AlarmRule): Alarm {
    const [datapointsToAlarm, evaluationPeriods] = rule.in ?? [1, 1];
    const alarm = new Alarm(this, rule.title, {
      alarmName: this.#alarmName(rule.title),
      alarmDescription: `${rule.means} See ${rule.title} in docs/runbook.md.`,
      metric: rule.metric,
      threshold: rule.below ?? rule.from ?? 1,
      comparisonOperator:
        rule.below === undefined
          ? ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
          : ComparisonOperator.LESS_THAN_THRESHOLD,
      ...{ datapointsToAlarm, evaluationPeriods },
      treatMissingData: {
        none: TreatMissingData.NOT_BREACHING,
        alarming: TreatMissingData.BREACHING,
        unchanged: TreatMissingData.IGNORE,
      }[rule.silence ?? 'none'],
    });
    alarm.addAlarmAction(this.#action);
    if (rule.about === 'state') alarm.addOkAction(this.#action);
    return alarm;
  }

  #alarmName(title: string): string {
    return `${Stack.of(this).stackName}-${title}`;
  }
}
