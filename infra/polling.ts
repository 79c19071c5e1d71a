import { Duration } from 'aws-cdk-lib';
import { Construct } from 'constructs';
import { PollAccountEnv, TickEnv } from '../functions/env.ts';
import type { Cell } from './cell.ts';
import { CellFunction } from './cell-function.ts';
import type { CellSecrets } from './cell-secrets.ts';
import { type Delivery, setLog } from './delivery.ts';
import { invokeEachMinute } from './minute-schedule.ts';
import type { Notifications } from './notifications.ts';
import type { StateTable } from './state-table.ts';
import { LONE_POLLS, POLLS } from './throughput.ts';
import { WorkQueue } from './work-queue.ts';

const POLL_TIMEOUT = Duration.seconds(POLLS.timeoutSeconds);

interface Props extends Cell {
  readonly table: StateTable;
  readonly secrets: CellSecrets;
  readonly delivery: Delivery;
  /** In cells that notify customers. */
  readonly notifications: Notifications | undefined;
}

/**
 * Each minute the tick claims the accounts that fall due until the next one; pollAccount polls each when it
 * is due.
 */
export class Polling extends Construct {
  readonly polls: WorkQueue;
  readonly lonePolls: WorkQueue;
  readonly functions: { readonly tick: CellFunction; readonly pollAccount: CellFunction };

  constructor(scope: Construct, id: string, props: Props) {
    super(scope, id);
    const { table, secrets, delivery, notifications, stage } = props;

    const pollAccount = new CellFunction(this, 'PollAccount', {
      ...props,
      entry: 'poll-account',
      gradual: true,
      env: PollAccountEnv,
      description: 'Polls accounts and commits the changes',
      timeout: POLL_TIMEOUT,
      memoryMb: POLLS.memoryMb,
    });
    table.grant(pollAccount, 'polling');
    secrets.grantRead(pollAccount, 'accounts');
    setLog(pollAccount, props);
    setUpstream(pollAccount, props);

    const queue = {
      consumer: pollAccount,
      consumerTimeout: POLL_TIMEOUT,
      retention: Duration.seconds(POLLS.retentionSeconds),
    };
    this.polls = new WorkQueue(this, 'Polls', {
      ...queue,
      batchSize: POLLS.batchSize,
      batching: Duration.seconds(POLLS.batchingSeconds),
      maxConcurrency: stage.pollConcurrency,
      maxReceiveCount: POLLS.maxReceiveCount,
      deadMeans:
        'A poll failed twice: it threw, it ran out of time, or another poll of its batch crashed the process. The account is polled again, alone, when its claim expires. See the log of pollAccount for the cause.',
      urlEnv: 'JOBWIRE_POLL_QUEUE_URL',
    });
    this.lonePolls = new WorkQueue(this, 'LonePolls', {
      ...queue,
      batchSize: LONE_POLLS.batchSize,
      maxConcurrency: Math.min(stage.pollConcurrency, LONE_POLLS.maxConcurrency),
      maxReceiveCount: LONE_POLLS.maxReceiveCount,
      deadMeans:
        'The poll of an account failed twice while it ran alone. If other accounts are polled, the account itself is the cause. The poll is retried each time its claim expires. See the log of pollAccount for the cause.',
      urlEnv: 'JOBWIRE_LONE_POLL_QUEUE_URL',
    });

    const tick = new CellFunction(this, 'Tick', {
      ...props,
      entry: 'tick',
      env: TickEnv,
      description: 'Each minute: queues due polls, processes wake marks, finds sinks to drain',
      timeout: Duration.seconds(55),
      // Five thousand claims a minute in the largest cell, at half a millisecond of CPU each; memory
      // determines the CPU share.
      memoryMb: 1024,
      invokedOnce: true,
    });
    table.grant(tick, 'ticking');
    this.polls.grantSend(tick);
    this.lonePolls.grantSend(tick);
    delivery.drains.grantSend(tick);
    delivery.nameTargets(tick);
    notifications?.messages.grantSend(tick);
    setLog(tick, props);
    invokeEachMinute(this, tick, 'The tick');
    this.functions = { tick, pollAccount };
  }
}

/** Passes the URLs of the region's ordering API to a function. */
export function setUpstream(fn: CellFunction, { cell }: Cell): void {
  fn.set('JOBWIRE_UPSTREAM_BASE_URL', cell.upstream.baseUrl);
  fn.set('JOBWIRE_UPSTREAM_AUTH_URL', cell.upstream.authUrl);
  fn.set('JOBWIRE_UPSTREAM_REALM', cell.upstream.realm);
}
