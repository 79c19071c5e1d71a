import { Duration } from 'aws-cdk-lib';
import { PolicyStatement, Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { Schedule, ScheduleExpression } from 'aws-cdk-lib/aws-scheduler';
import { LambdaInvoke } from 'aws-cdk-lib/aws-scheduler-targets';
import { Construct } from 'constructs';
import { PollAccountEnv, TickEnv } from '../functions/env.ts';
import { CLAIM_SECONDS } from '../functions/handlers/tick.ts';
import { CellFunction } from './cell-function.ts';
import type { CellSecrets } from './cell-secrets.ts';
import type { Cell } from './cell-stack.ts';
import { type Delivery, setLog } from './delivery.ts';
import type { StateTable } from './state-table.ts';
import { WorkQueue } from './work-queue.ts';

const POLL_TIMEOUT = Duration.seconds(120);

interface Props extends Cell {
  readonly table: StateTable;
  readonly secrets: CellSecrets;
  readonly delivery: Delivery;
}

/** Each minute the tick claims what is due; pollAccount polls it. */
export class Polling extends Construct {
  readonly polls: WorkQueue;
  readonly functions: { readonly tick: CellFunction; readonly pollAccount: CellFunction };

  constructor(scope: Construct, id: string, props: Props) {
    super(scope, id);
    const { table, secrets, delivery, stage, cell } = props;

    const pollAccount = new CellFunction(this, 'PollAccount', {
      ...props,
      entry: 'poll-account',
      env: PollAccountEnv,
      description: 'Polls accounts and commits what has changed',
      timeout: POLL_TIMEOUT,
      // Ten polls side by side: memory for their pages, and the share of a CPU that comes with it.
      memoryMb: 1024,
    });
    table.grantPolling(pollAccount);
    secrets.grantReadAccounts(pollAccount);
    setLog(pollAccount, props);
    pollAccount.set('JOBWIRE_UPSTREAM_BASE_URL', cell.upstream.baseUrl);
    pollAccount.set('JOBWIRE_UPSTREAM_AUTH_URL', cell.upstream.authUrl);
    pollAccount.set('JOBWIRE_UPSTREAM_REALM', cell.upstream.realm);

    this.polls = new WorkQueue(this, 'Polls', {
      consumer: pollAccount,
      consumerTimeout: POLL_TIMEOUT,
      batchSize: 10,
      maxConcurrency: stage.pollConcurrency,
      // Not delivered again: the next tick after the claim has run out is the retry.
      maxReceiveCount: 1,
      // Forgotten when the claim has run out, for then the tick asks again.
      retention: Duration.seconds(CLAIM_SECONDS),
      deadMeans:
        'A poll died: it threw, or ran out of time. The account is polled again when its claim runs out; see the log of pollAccount for why.',
      urlEnv: 'JOBWIRE_POLL_QUEUE_URL',
    });

    const tick = new CellFunction(this, 'Tick', {
      ...props,
      entry: 'tick',
      env: TickEnv,
      description: 'Each minute: queues due polls, works off wake marks, finds sinks to drain',
      timeout: Duration.seconds(55),
      memoryMb: 512,
      invokedOnce: true,
    });
    table.grantTicking(tick);
    this.polls.grantSend(tick);
    delivery.drains.grantSend(tick);
    delivery.nameTopics(tick);
    setLog(tick, props);
    this.#eachMinute(tick);
    this.functions = { tick, pollAccount };
  }

  #eachMinute(tick: CellFunction): void {
    const role = new Role(this, 'ScheduleRole', {
      assumedBy: new ServicePrincipal('scheduler.amazonaws.com'),
    });
    role.addToPolicy(
      new PolicyStatement({ actions: ['lambda:InvokeFunction'], resources: [tick.functionArn] }),
    );
    new Schedule(this, 'EachMinute', {
      description: 'The tick',
      schedule: ScheduleExpression.rate(Duration.minutes(1)),
      target: new LambdaInvoke(tick, {
        // The target would add every version of the function.
        role: role.withoutPolicyUpdates(),
        // The next minute's tick is the retry.
        retryAttempts: 0,
        maxEventAge: Duration.minutes(1),
      }),
    });
  }
}
