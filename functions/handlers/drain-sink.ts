/** Works off drain messages: takes a sink's due events to where they go. */
import type { SNSClient } from '@aws-sdk/client-sns';
import type { Context, SQSBatchResponse, SQSEvent } from 'aws-lambda';
import { type DrainDeps, type DrainReport, drainSink } from '../../shared/sinks/drain.ts';
import { createConnectionPool } from '../../shared/sinks/outbound.ts';
import type { SigningReader } from '../../shared/sinks/signing-secrets.ts';
import { DEFAULT_CONCURRENCY, type SinkPort, type SinkRecord } from '../../shared/sinks/sink.ts';
import { createSnsSink } from '../../shared/sinks/sns.ts';
import { createWebhookSink } from '../../shared/sinks/webhook.ts';
import type { Telemetry } from '../telemetry.ts';
import { DrainMessage, workOff } from './messages.ts';

/** What the handler needs. */
export interface DrainSinkDeps {
  readonly region: string;
  readonly draining: Omit<DrainDeps, 'attempted'>;
  readonly telemetry: Pick<Telemetry, 'drain' | 'attempt' | 'fault'>;
}

/** How long before the function's time is up nothing new is delivered: an attempt takes up to 15 s, then it is booked. */
const TAIL_MS = 20_000;

/**
 * Drains the sinks of a batch side by side, each until everything due is done or time runs out; what is left then stays
 * due, and the tick finds it; nothing is put back into the queue. A drain that had something to do is followed by a look
 * for more: whoever was woken at its end, when it looked no more, found the sink busy and left.
 */
export function createDrainSinkHandler(deps: DrainSinkDeps) {
  const { region, telemetry } = deps;
  const draining: DrainDeps = { ...deps.draining, attempted: (attempt) => telemetry.attempt(attempt) };
  return async (
    event: SQSEvent,
    context: Pick<Context, 'getRemainingTimeInMillis'>,
  ): Promise<SQSBatchResponse> => {
    const deadline = draining.now() + context.getRemainingTimeInMillis() - TAIL_MS;
    return workOff(event, DrainMessage, telemetry, async ({ sink }) => {
      for (let turn = 0; ; turn += 1) {
        const report = await drainSink(draining, region, sink, deadline);
        const worked = hadSomethingToDo(report);
        // A further look that finds nothing is no news.
        if (turn === 0 || worked || report.outcome === 'waiting') telemetry.drain(report);
        if (report.outcome !== 'drained' || !worked || draining.now() >= deadline) return;
      }
    });
  };
}

function hadSomethingToDo({ delivered, skipped, failed, parked, dead, lost }: DrainReport): boolean {
  return delivered + skipped + failed + parked + dead + lost > 0;
}

/** The sinks of a cell as they are on AWS; connections are kept from one drain to the next. */
export function createSinkOpener(deps: {
  readonly sns: SNSClient;
  /** Where the HTTP API is reached. */
  readonly publicUrl: string;
  /** What signs the requests of an endpoint, and the headers of its own that it wants. */
  readonly signing: ReadSigning;
  readonly now: () => number;
  /** Folds what customers are told; absent in a cell that tells them nothing. */
  readonly notifications?: SinkPort | undefined;
}): (record: SinkRecord) => Promise<SinkPort> {
  const { sns, publicUrl, notifications = NOTHING_TOLD } = deps;
  const openWebhook = createWebhookOpener(deps);
  return async (record) => {
    switch (record.kind) {
      case 'sns':
        return createSnsSink(sns, record.target, { publicUrl });
      case 'webhook':
        return openWebhook(record);
      case 'notifications':
        return notifications;
    }
  };
}

/** What an account’s settings ask for is passed over where nothing could send it; the API warns of that. */
const NOTHING_TOLD: SinkPort = {
  maxBatch: 100,
  deliver: async (deliveries) => deliveries.map(() => ({ kind: 'delivered' })),
};

/** The part of {@link SigningReader} that opening endpoints takes. */
type ReadSigning = (...args: Parameters<SigningReader>) => ReturnType<SigningReader>;

/**
 * The endpoints of a cell as they are on AWS; connections are kept from one time to the next. Secrets and headers are read for
 * each attempt.
 */
export function createWebhookOpener(deps: {
  readonly signing: ReadSigning;
  readonly now: () => number;
}): (record: SinkRecord) => Promise<SinkPort> {
  const { now } = deps;
  const connections = createConnectionPool({ allowPrivateNetworks: false });
  return async (record) => {
    const { region, id, target, concurrency = DEFAULT_CONCURRENCY } = record;
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
