import { Duration } from 'aws-cdk-lib';
import { Construct } from 'constructs';
import { OperateEnv } from '../functions/env.ts';
import { CellFunction } from './cell-function.ts';
import type { CellKey } from './cell-key.ts';
import type { CellSecrets } from './cell-secrets.ts';
import type { Cell } from './cell-stack.ts';
import { setLog } from './delivery.ts';
import type { HistoryTable } from './history-table.ts';
import { setUpstream } from './polling.ts';
import type { StateTable } from './state-table.ts';

interface Props extends Cell {
  readonly table: StateTable;
  readonly history: HistoryTable;
  readonly secrets: CellSecrets;
  /** In cells that have one: secrets of endpoints are made with it. */
  readonly key: CellKey | undefined;
}

/** The function that operators invoke with commands. Nothing else does; who may is for the AWS account to say. */
export class Operate extends Construct {
  readonly functionName: string;

  constructor(scope: Construct, id: string, props: Props) {
    super(scope, id);
    const { stage, region, table, history, secrets } = props;
    // The name is what operators type, and stands in docs/deploying.md.
    this.functionName = `jobwire-${stage.stage}-${region}-operate`;
    const fn = new CellFunction(this, 'Function', {
      ...props,
      entry: 'operate',
      env: OperateEnv,
      description: 'Commands of an operator: accounts, endpoints, keys, logs after a restore',
      functionName: this.functionName,
      // An endpoint that follows all accounts gets a cursor for each of them.
      timeout: Duration.minutes(5),
      memoryMb: 512,
    });
    table.grantManaging(fn);
    table.grantManagingAccounts(fn);
    table.grantReporting(fn);
    table.grantManagingKeys(fn);
    table.grantListingKeys(fn);
    // A ping is a delivery as any other.
    history.grantRecording(fn);
    secrets.grantManageEndpoints(fn);
    secrets.grantManageAccounts(fn);
    setUpstream(fn, props);
    setLog(fn, props);
    if (props.key) fn.set('JOBWIRE_KEY_ARN', props.key.arn);
  }
}
