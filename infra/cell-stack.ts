import { CfnOutput, Fn, Stack, Tags } from 'aws-cdk-lib';
import type { Construct } from 'constructs';
import { Alerts } from './alerts.ts';
import { Api } from './api.ts';
import { Backup } from './backup.ts';
import { Canary } from './canary.ts';
import type { Cell } from './cell.ts';
import type { CellFunction } from './cell-function.ts';
import { CellKey } from './cell-key.ts';
import { CellSecrets } from './cell-secrets.ts';
import { Dashboard } from './dashboard.ts';
import { Delivery } from './delivery.ts';
import { DistributionPass } from './distribution-pass.ts';
import { Egress } from './egress.ts';
import { HistoryTable } from './history-table.ts';
import { Notifications } from './notifications.ts';
import { Operate } from './operate.ts';
import { Operations } from './operations.ts';
import { Polling } from './polling.ts';
import { StateTable } from './state-table.ts';
import { allowSubscribers } from './subscribers.ts';
import { traceFunctions } from './tracing.ts';

interface Props extends Cell {
  /** Folder of the files from which the dashboard is built. */
  readonly dashboard: string;
}

/** All resources of a cell. Cells share nothing. */
export class CellStack extends Stack {
  /** As many as `staticEgress` can use. The CDK would look them up with credentials, or know only two. */
  override get availabilityZones(): string[] {
    return [0, 1, 2].map((at) => Fn.select(at, Fn.getAzs()));
  }

  constructor(scope: Construct, { dashboard: files, ...props }: Props) {
    const { name, id, stage, region, cell } = props;
    super(scope, `jobwire-${name}`, {
      // Synthesis needs no credentials, with or without an account.
      env: {
        region: cell.awsRegion,
        ...(stage.awsAccount === undefined ? {} : { account: stage.awsAccount }),
      },
      description: `Jobwire, ${stage.stage}: job events of the API region ${region}`,
      // The CDK enables it before it creates the resources, so it could not delete what a failed first deployment left.
      terminationProtection: stage.protected && cell.established,
    });
    Tags.of(this).add('project', 'jobwire');
    Tags.of(this).add('stage', stage.stage);
    Tags.of(this).add('cell', id);

    const key = new CellKey(this, 'Key', props);
    const table = new StateTable(this, 'State', props);
    const history = new HistoryTable(this, 'History', props);
    const secrets = new CellSecrets(this, 'Secrets', { ...props, table, key });
    const delivery = new Delivery(this, 'Delivery', { ...props, table, history, secrets });
    if (cell.subscribers) allowSubscribers(delivery.topics, cell.subscribers);
    const notifications = cell.notifications
      ? new Notifications(this, 'Notifications', {
          ...{ ...props, table, history },
          notifications: cell.notifications,
        })
      : undefined;
    const polling = new Polling(this, 'Polling', { ...props, table, secrets, delivery, notifications });
    const pass = cell.dashboard ? new DistributionPass(this, 'DistributionPass', props) : undefined;
    const api = new Api(this, 'Api', { ...props, table, history, secrets, notifications, pass });
    const dashboard = pass && new Dashboard(this, 'Dashboard', { ...props, files, pass, api });
    const alerts = new Alerts(this, 'Alerts', { ...props, table, history, secrets, notifications });
    if (dashboard) alerts.setDashboard(dashboard.url);
    const operations = new Operations(this, 'Operations', {
      ...props,
      functions: {
        ...polling.functions,
        ...delivery.functions,
        ...notifications?.functions,
        ...alerts.functions,
      },
      serving: api.functions,
      wakeSinks: delivery.functions.wakeSinks,
      topics: {
        ...Object.fromEntries(
          delivery.topics.map((topic) => [topic.fifo ? 'events' : 'events-standard', topic]),
        ),
        ...(notifications && { 'mail-feedback': notifications.feedbackTopic }),
      },
      queues: {
        polls: polling.polls.queue,
        lonePolls: polling.lonePolls.queue,
        drains: delivery.drains.queue,
        ...(notifications && {
          messages: notifications.messages.queue,
          'mail-feedback': notifications.feedback.queue,
        }),
      },
      polls: polling.polls.queue,
      lonePolls: polling.lonePolls.queue,
      dead: {
        polls: polling.polls.dead,
        'lone-polls': polling.lonePolls.dead,
        drains: delivery.drains.dead,
        wakes: delivery.deadWakes,
        ...(notifications && {
          messages: notifications.messages.dead,
          'mail-feedback': notifications.feedback.dead,
        }),
      },
      state: table.table,
      history: history.table,
      api: api.rest,
      distributionId: dashboard?.distributionId,
    });
    if (cell.backup) new Backup(this, 'Backup', { table: table.table, backup: cell.backup });
    if (cell.staticEgress) {
      new Egress(this, 'Egress', {
        functions: [
          polling.functions.pollAccount,
          delivery.functions.drainSink,
          api.functions.manage,
          alerts.functions.alerts,
        ],
        natGateways: cell.staticEgress.natGateways,
      });
    }
    const { pollAccount } = polling.functions;
    const { wakeSinks, drainSink } = delivery.functions;
    traceFunctions([pollAccount, wakeSinks, drainSink], props);
    if (stage.canary) {
      const withAlarms = (fn: CellFunction, ...titles: string[]) => ({
        fn,
        alarms: titles.flatMap((title) => operations.alarms.get(title) ?? []),
      });
      new Canary(this, 'Canary', {
        name,
        canary: stage.canary,
        functions: {
          api: { fn: api.functions.api },
          manage: { fn: api.functions.manage },
          live: { fn: api.functions.live },
          pollAccount: withAlarms(pollAccount, 'dead-polls'),
          drainSink: withAlarms(drainSink, 'dead-drains'),
        },
      });
    }
    const operate = new Operate(this, 'Operate', { ...props, table });

    new CfnOutput(this, 'TableName', { value: table.name });
    new CfnOutput(this, 'TopicArn', { value: delivery.topicArn });
    if (delivery.standardTopicArn)
      new CfnOutput(this, 'StandardTopicArn', { value: delivery.standardTopicArn });
    if (delivery.eventBusArn) new CfnOutput(this, 'EventBusArn', { value: delivery.eventBusArn });
    new CfnOutput(this, 'ApiUrl', { value: api.url });
    if (dashboard) {
      new CfnOutput(this, 'DashboardUrl', { value: dashboard.url });
      // Target of the DNS record of a custom domain.
      new CfnOutput(this, 'DistributionDomain', { value: dashboard.distributionDomain });
      new CfnOutput(this, 'DistributionId', { value: dashboard.distributionId });
    }
    new CfnOutput(this, 'OpsTopicArn', { value: operations.topicArn });
    new CfnOutput(this, 'KeyArn', { value: key.arn });
    new CfnOutput(this, 'OperateFunction', { value: operate.functionName });
  }
}
