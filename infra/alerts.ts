import { Duration } from 'aws-cdk-lib';
import { Construct } from 'constructs';
import { AlertsEnv } from '../functions/env.ts';
import type { Cell } from './cell.ts';
import { CellFunction } from './cell-function.ts';
import type { CellSecrets } from './cell-secrets.ts';
import type { HistoryTable } from './history-table.ts';
import { invokeEachMinute } from './minute-schedule.ts';
import type { Notifications } from './notifications.ts';
import type { StateTable } from './state-table.ts';

interface Props extends Cell {
  readonly table: StateTable;
  readonly history: HistoryTable;
  readonly secrets: CellSecrets;
  /** In cells that notify customers: alert rules can send e-mails. */
  readonly notifications: Notifications | undefined;
}

/** The evaluation of alert rules, each minute. A function of its own: a slow target must not delay the tick. */
export class Alerts extends Construct {
  readonly functions: { readonly alerts: CellFunction };

  constructor(scope: Construct, id: string, props: Props) {
    super(scope, id);
    const { table, history, secrets, notifications } = props;
    const alerts = new CellFunction(this, 'Function', {
      ...props,
      entry: 'alerts',
      env: AlertsEnv,
      description: 'Each minute: evaluates the alert rules, and sends their messages',
      timeout: Duration.seconds(55),
      memoryMb: 256,
      invokedOnce: true,
    });
    table.grant(alerts, 'alerting');
    history.grant(alerts, 'alerting');
    secrets.grantRead(alerts, 'alerts');
    notifications?.grantMail(alerts);
    invokeEachMinute(this, alerts, 'Evaluation of the alert rules');
    this.functions = { alerts };
  }

  /** Sets the address that messages link to. */
  setDashboard(url: string): void {
    this.functions.alerts.set('JOBWIRE_DASHBOARD_URL', `${url}/`);
  }
}
