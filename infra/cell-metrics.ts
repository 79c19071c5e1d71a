/** CloudWatch metrics of a cell: those of the catalogue, of its tables and of its API. */
import { Duration } from 'aws-cdk-lib';
import type { RestApi } from 'aws-cdk-lib/aws-apigateway';
import { type IMetric, MathExpression, Metric, Stats } from 'aws-cdk-lib/aws-cloudwatch';
import type { ITableV2 } from 'aws-cdk-lib/aws-dynamodb';
import type { ITopic } from 'aws-cdk-lib/aws-sns';
import type { IQueue } from 'aws-cdk-lib/aws-sqs';
import { type MetricName, NAMESPACE } from '../shared/metrics.ts';
import type { stateSchema } from '../shared/storage/schema.ts';
import type { Cell } from './cell.ts';
import type { CellFunction } from './cell-function.ts';
import type { BackupSettings } from './settings.ts';
import type { DeadLetters } from './work-queue.ts';

type Named<T> = Readonly<Record<string, T>>;

/** The monitored parts of a cell. */
export interface MonitoredCell extends Cell {
  /** Functions that no client waits for. */
  readonly functions: Named<CellFunction>;
  /** Functions that clients wait for. */
  readonly serving: Named<CellFunction>;
  /** The function that reads the state table's stream. */
  readonly wakeSinks: CellFunction;
  readonly queues: Named<IQueue>;
  /** Topics whose deliveries are monitored, by label. */
  readonly topics: Named<ITopic>;
  /** Queue of due polls. */
  readonly polls: IQueue;
  /** Queue of due polls that run alone. */
  readonly lonePolls: IQueue;
  /** Dead-letter queues; the alarm of each is named `dead-` and its name. */
  readonly dead: Named<DeadLetters>;
  readonly state: ITableV2;
  readonly history: ITableV2;
  readonly api: RestApi;
  /** Id of the dashboard's distribution, in cells with a dashboard. */
  readonly distributionId: string | undefined;
}

/** The only AWS region with the metrics of CloudFront. An alarm can use only metrics of its own AWS region. */
export const CLOUDFRONT_REGION = 'us-east-1';

export const MINUTE = Duration.minutes(1);
export const FIVE_MINUTES = Duration.minutes(5);
const DUE_INDEX = 'due' satisfies keyof typeof stateSchema.indexes;
const SUM = { statistic: Stats.SUM, period: FIVE_MINUTES } as const;

/** The metrics of one cell. */
export class CellMetrics {
  readonly #monitored: MonitoredCell;

  constructor(monitored: MonitoredCell) {
    this.#monitored = monitored;
  }

  /** Returns a metric of the catalogue, by default over five minutes. */
  metric(name: MetricName, statistic: string, period = FIVE_MINUTES, dimensions: Named<string> = {}): Metric {
    return new Metric({
      namespace: NAMESPACE,
      metricName: name,
      dimensionsMap: { cell: this.#monitored.name, ...dimensions },
      ...{ statistic, period },
      // With a label, the CDK renders an alarm's metric as a math expression.
      ...(dimensions.kind === undefined ? {} : { label: dimensions.kind }),
    });
  }

  /** Returns the sums of metrics of the catalogue over five minutes. */
  sums(...names: readonly MetricName[]): Metric[] {
    return names.map((name) => this.metric(name, Stats.SUM));
  }

  throttles(): Metric[] {
    const { state, history } = this.#monitored;
    const dimensionsMap = { TableName: state.tableName, GlobalSecondaryIndexName: DUE_INDEX };
    return [
      this.tableMetric(state, 'ReadThrottleEvents'),
      this.tableMetric(state, 'WriteThrottleEvents'),
      // The one index whose writes concentrate on few partitions.
      state.metric('WriteThrottleEvents', {
        ...SUM,
        dimensionsMap,
        label: `${DUE_INDEX} WriteThrottleEvents`,
      }),
      this.tableMetric(history, 'WriteThrottleEvents'),
    ];
  }

  tableMetric(table: ITableV2, name: string): Metric {
    const which = table === this.#monitored.state ? 'state' : 'history';
    return table.metric(name, { ...SUM, label: `${which} ${name}` });
  }

  /** Returns the failed jobs of AWS Backup, by vault: a copy has two. */
  failedBackups({ vault, copyTo }: BackupSettings): Metric[] {
    const failed = (metricName: string, name: string) =>
      new Metric({
        ...{ namespace: 'AWS/Backup', metricName, ...SUM },
        dimensionsMap: { BackupVaultName: name },
      });
    const vaults = new Set([vault, copyTo?.split(':').at(-1) ?? vault]);
    return [
      failed('NumberOfBackupJobsFailed', vault),
      failed('NumberOfBackupJobsExpired', vault),
      ...(copyTo === undefined ? [] : [...vaults].map((name) => failed('NumberOfCopyJobsFailed', name))),
    ];
  }

  /** Returns a metric of a distribution. */
  distributionMetric(id: string, metricName: string, statistic: string, label = metricName): Metric {
    return new Metric({
      ...{ namespace: 'AWS/CloudFront', metricName, statistic, label },
      ...{ period: FIVE_MINUTES, region: CLOUDFRONT_REGION },
      dimensionsMap: { DistributionId: id, Region: 'Global' },
    });
  }

  apiDimensions(): Named<string> {
    const { api } = this.#monitored;
    return { ApiName: api.restApiName, Stage: api.deploymentStage.stageName };
  }
}

/** Returns the sum of metrics with missing data counted as zero. */
export function total(label: string, metrics: readonly IMetric[]): MathExpression {
  const named = metrics.map((metric, at) => [`m${at}`, metric] as const);
  return new MathExpression({
    expression: `SUM([${named.map(([id]) => `FILL(${id}, 0)`).join(', ')}])`,
    usingMetrics: Object.fromEntries(named),
    ...{ label, period: FIVE_MINUTES },
  });
}
