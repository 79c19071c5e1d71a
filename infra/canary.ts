import { Stack } from 'aws-cdk-lib';
import {
  Alarm,
  ComparisonOperator,
  type IAlarm,
  Metric,
  Stats,
  TreatMissingData,
} from 'aws-cdk-lib/aws-cloudwatch';
import { LambdaApplication, LambdaDeploymentConfig, LambdaDeploymentGroup } from 'aws-cdk-lib/aws-codedeploy';
import { Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { Construct } from 'constructs';
import { type MetricName, NAMESPACE } from '../shared/metrics.ts';
import { acknowledge } from './acknowledge.ts';
import type { Cell } from './cell.ts';
import type { CellFunction } from './cell-function.ts';
import { MINUTE } from './cell-metrics.ts';
import type { StageSettings } from './settings.ts';

const POLICY = 'service-role/AWSCodeDeployRoleForLambdaLimited';
/** Configurations of AWS: a tenth of the invocations, and after these minutes all. */
const CONFIGS = {
  5: LambdaDeploymentConfig.CANARY_10PERCENT_5MINUTES,
  10: LambdaDeploymentConfig.CANARY_10PERCENT_10MINUTES,
  15: LambdaDeploymentConfig.CANARY_10PERCENT_15MINUTES,
  30: LambdaDeploymentConfig.CANARY_10PERCENT_30MINUTES,
} as const;

interface Props extends Pick<Cell, 'name'> {
  readonly canary: NonNullable<StageSettings['canary']>;
  /** Functions with an alias, by name, each with the alarms that also roll its deployment back. Default: failed requests. */
  readonly functions: Readonly<
    Record<string, { readonly fn: CellFunction; readonly alarms?: readonly IAlarm[] }>
  >;
}

const FAILURES = {
  evaluationPeriods: 1,
  comparisonOperator: ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
  treatMissingData: TreatMissingData.NOT_BREACHING,
} as const;

/**
 * Gradual deployments of functions by CodeDeploy: a new version gets a tenth of the invocations first. An alarm in this time restores
 * the former version, and CloudFormation rolls the stack back.
 */
export class Canary extends Construct {
  constructor(scope: Construct, id: string, { name, canary, functions }: Props) {
    super(scope, id);
    const { stackName } = Stack.of(this);
    const application = new LambdaApplication(this, 'Application', { applicationName: stackName });
    const role = new Role(this, 'Role', { assumedBy: new ServicePrincipal('codedeploy.amazonaws.com') });
    acknowledge(role, {
      [`AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/${POLICY}]`]:
        'The managed policy that CodeDeploy requires to shift the traffic of aliases.',
    });
    // Not the alarm api-errors: it depends on the API, and the API on the aliases.
    const requests = new Alarm(this, 'Requests', {
      ...FAILURES,
      alarmName: `${stackName}-canary-requests`,
      alarmDescription:
        'The API failed to handle requests. A deployment in progress is rolled back. See api-errors in docs/runbook.md.',
      metric: new Metric({
        ...{ namespace: NAMESPACE, metricName: 'RequestsFailed' satisfies MetricName },
        dimensionsMap: { cell: name },
        ...{ statistic: Stats.SUM, period: MINUTE },
      }),
      threshold: 5,
    });
    for (const [entry, { fn, alarms }] of Object.entries(functions)) {
      const { alias } = fn;
      if (!alias) continue;
      const errors = new Alarm(this, `${entry}Errors`, {
        ...FAILURES,
        alarmName: `${stackName}-canary-${entry}`,
        alarmDescription: `Invocations of ${entry} failed. A deployment in progress is rolled back. See function-errors in docs/runbook.md.`,
        metric: alias.metricErrors({ statistic: Stats.SUM, period: MINUTE }),
        threshold: 1,
      });
      new LambdaDeploymentGroup(this, entry, {
        ...{ application, role, alias },
        deploymentConfig: CONFIGS[canary.minutes],
        alarms: [errors, ...(alarms ?? [requests])],
        autoRollback: { failedDeployment: true, stoppedDeployment: true, deploymentInAlarm: true },
      });
    }
  }
}
