/** Processes drain messages: delivers a sink's due events. */
import type { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import type { SNSClient } from '@aws-sdk/client-sns';
import type { Context, SQSBatchResponse, SQSEvent } from 'aws-lambda';
import { drainSink } from '../../shared/delivery/drain.ts';
import type { DrainDeps, DrainReport } from '../../shared/delivery/drain-deps.ts';
import { createEventBusSink } from '../../shared/delivery/event-bus.ts';
import { MAX_LANES, SharedRequests } from '../../shared/delivery/lanes.ts';
import { createConnectionPool } from '../../shared/delivery/outbound.ts';
import type { SigningReader } from '../../shared/delivery/signing-secrets.ts';
import type { SinkPort, SinkRecord } from '../../shared/delivery/sink.ts';
import { createSnsSink } from '../../shared/delivery/sns.ts';
import { createWebhookSink } from '../../shared/delivery/webhook.ts';
import { getDrainNames } from '../../shared/storage/schema.ts';
import type { Telemetry } from '../telemetry.ts';
import type { Tracing } from '../tracing.ts';
import { DrainMessage, processMessages } from './messages.ts';

/** Dependencies of the handler. */
export interface DrainSinkDeps {
  readonly region: string;
  readonly draining: Omit<DrainDeps, 'attempted'>;
  readonly telemetry: Pick<Telemetry, 'drain' | 'attempt' | 'fault'>;
  /** Absent: drains are not traced. */
  readonly tracing?: Pick<Tracing, 'beginDrain'> | undefined;
}

/**
 * Time (ms) before the function's timeout from which no delivery begins: an attempt takes up to 15 s, then it
 * is recorded.
 */
const TAIL_MS = 20_000;
/**
 * Maximum number of requests of all drains of a process, and of idle connections per endpoint. A function has 1,024 file descriptors,
 * which it also needs for the services of AWS.
 */
const REQUESTS = 700;
const MAX_IDLE = 16;

/**
 * Drains the sinks of a batch concurrently, each until all due work is done or time runs out. The rest stays
 * due and the tick finds it; no message returns to the queue.
 *
 * A drain that had work is followed by a further one. A wake-up at the end of the drain, after its last
 * lookup, found the sink busy and stopped.
 */
export function createDrainSinkHandler(deps: DrainSinkDeps) {
  const { region, telemetry, tracing } = deps;
  const draining = { ...deps.draining, sharedRequests: new SharedRequests(REQUESTS) };
  return async (
    event: SQSEvent,
    context: Pick<Context, 'getRemainingTimeInMillis'>,
  ): Promise<SQSBatchResponse> => {
    const deadline = draining.now() + context.getRemainingTimeInMillis() - TAIL_MS;
    return processMessages(event, DrainMessage, telemetry, async ({ sink, traces = [] }) => {
      const traced = tracing?.beginDrain(region, sink, traces);
      const attempted: DrainDeps['attempted'] = (attempt) => {
        telemetry.attempt(attempt);
        traced?.attempt(attempt);
      };
      // A message of version 0.1.0 names a sink that is divided now.
      const names = getDrainNames(sink);
      try {
        await Promise.all(names.map((name) => drainFully({ ...draining, attempted }, name, deadline)));
      } finally {
        traced?.end();
      }
    });
  };

  async function drainFully(draining: DrainDeps, name: string, deadline: number): Promise<void> {
    for (let turn = 0; ; turn += 1) {
      const report = await drainSink(draining, region, name, deadline);
      const worked = hadSomethingToDo(report);
      // A further drain that finds nothing is not reported.
      if (turn === 0 || worked || report.outcome === 'waiting') telemetry.drain(report);
      if (report.outcome !== 'drained' || !worked || draining.now() >= deadline) return;
    }
  }
}

function hadSomethingToDo({ delivered, skipped, failed, parked, dead, lost }: DrainReport): boolean {
  return delivered + skipped + failed + parked + dead + lost > 0;
}

/** Creates the opener of a cell's sinks on AWS; connections are reused between drains. */
export function createSinkOpener(deps: {
  readonly sns: SNSClient;
  readonly eventBridge: EventBridgeClient;
  /** Opens the sink of a queue by its ARN. */
  readonly openQueue: OpenQueue;
  /** Base URL of the HTTP API. */
  readonly publicUrl: string;
  /** Reads the signing secrets and custom headers of an endpoint. */
  readonly signing: ReadSigning;
  readonly now: () => number;
  /** Folds notifications to customers; absent in a cell without notifications. */
  readonly notifications?: SinkPort | undefined;
}): (record: SinkRecord) => Promise<SinkPort> {
  const { sns, eventBridge, publicUrl, notifications = DISCARDING_SINK } = deps;
  const openEndpoint = createEndpointOpener(deps);
  return async (record) => {
    switch (record.kind) {
      case 'sns':
        return createSnsSink(sns, record.target, { publicUrl });
      case 'eventbridge':
        return createEventBusSink(eventBridge, record.target, { publicUrl });
      case 'webhook':
      case 'sqs':
        return openEndpoint(record);
      case 'notifications':
        return notifications;
    }
  };
}

/**
 * Skips the notifications of accounts whose settings request them in a cell without channels; the API warns
 * of that.
 */
const DISCARDING_SINK: SinkPort = {
  maxBatch: 100,
  deliver: async (deliveries) => deliveries.map(() => ({ kind: 'delivered' })),
};

/** The part of {@link SigningReader} that opening endpoints requires. */
type ReadSigning = (...args: Parameters<SigningReader>) => ReturnType<SigningReader>;

type OpenQueue = (arn: string) => SinkPort;

/**
 * Creates the opener of a cell's endpoints on AWS; connections are reused. Secrets and headers are read for
 * each attempt.
 */
export function createEndpointOpener(deps: {
  readonly signing: ReadSigning;
  readonly openQueue: OpenQueue;
  readonly now: () => number;
}): (record: SinkRecord) => Promise<SinkPort> {
  const { now } = deps;
  const connections = createConnectionPool({ allowPrivateNetworks: false, maxIdle: MAX_IDLE });
  return async (record) => {
    const { region, id, target, concurrency = MAX_LANES } = record;
    if (record.kind === 'sqs') return deps.openQueue(target);
    const signing = () => deps.signing(region, id, record);
    // An endpoint without secrets is not opened.
    await signing();
    return createWebhookSink({
      url: target,
      signing,
      now,
      connections: connections.of(`${region}/${id}`, concurrency),
    });
  };
}
