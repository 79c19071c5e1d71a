import { Duration } from 'aws-cdk-lib';
import { Construct } from 'constructs';
import { OperateEnv } from '../functions/env.ts';
import type { Cell } from './cell.ts';
import { CellFunction } from './cell-function.ts';
import { setLog } from './delivery.ts';
import type { StateTable } from './state-table.ts';

interface Props extends Cell {
  readonly table: StateTable;
}

/**
 * The function that operators invoke with commands. Nothing else invokes it; permissions are set in the AWS
 * account.
 */
export class Operate extends Construct {
  readonly functionName: string;

  constructor(scope: Construct, id: string, props: Props) {
    super(scope, id);
    const { name, table } = props;
    // Operators type this name; docs/deploying.md contains it.
    this.functionName = `jobwire-${name}-operate`;
    const fn = new CellFunction(this, 'Function', {
      ...props,
      entry: 'operate',
      env: OperateEnv,
      description: 'Commands of the operator: the first API key, and logs after a restore',
      functionName: this.functionName,
      // After a restore, the logs of all accounts are renewed.
      timeout: Duration.minutes(5),
      memoryMb: 512,
    });
    table.grant(fn, 'creatingKeys', 'renewingLogs');
    setLog(fn, props);
  }
}
