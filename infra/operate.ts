import { Duration } from 'aws-cdk-lib';
import { Construct } from 'constructs';
import { OperateEnv } from '../functions/env.ts';
import type { Cell } from './cell.ts';
import { CellFunction } from './cell-function.ts';
import type { CellKey } from './cell-key.ts';
import type { CellSecrets } from './cell-secrets.ts';
import { setLog } from './delivery.ts';
import type { HistoryTable } from './history-table.ts';
import { setUpstream } from './polling.ts';
import type { StateTable } from './state-table.ts';

interface Props extends Cell {
  readonly table: StateTable;
  readonly history: HistoryTable;
  readonly secrets: CellSecrets;
  /** The cell's key, if it has one: secrets of endpoints are created with it. */
  readonly key: CellKey | undefined;
}

/**
 * The function that operators invoke with commands. Nothing else invokes it; permissions are set in the AWS
 * account.
 */
export class Operate extends Construct {
  readonly functionName: string;

  constructor(scope: Construct, id: string, props: Props) {
    super(scope, id);
    const { stage, region, table, history, secrets } = props;
    // Operators type this name; docs/deploying.md contains it.
    this.functionName = `jobwire-${stage.stage}-${region}-operate`;
    const fn = new CellFunction(this, 'Function', {
      ...props,
      entry: 'operate',
      env: OperateEnv,
      description: 'Commands of the operator: accounts, endpoints, keys, logs after a restore',
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
    // A ping is a delivery like any other.
    history.grantRecording(fn);
    secrets.grantManageEndpoints(fn);
    secrets.grantManageAccounts(fn);
    setUpstream(fn, props);
    setLog(fn, props);
    if (props.key) fn.set('JOBWIRE_KEY_ARN', props.key.arn);
  }
}
