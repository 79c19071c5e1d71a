/** Works off drain messages: takes a sink's due events to where they go. */
import type { SNSClient } from '@aws-sdk/client-sns';
import type { Context, SQSBatchResponse, SQSEvent } from 'aws-lambda';
import { type SecretReader, secretNames } from '../../shared/secrets.ts';
import { type DrainDeps, drainSink } from '../../shared/sinks/drain.ts';
import { createConnectionPool } from '../../shared/sinks/outbound.ts';
import { DEFAULT_CONCURRENCY, type SinkPort, type SinkRecord } from '../../shared/sinks/sink.ts';
import { createSnsSink } from '../../shared/sinks/sns.ts';
import { createWebhookSink } from '../../shared/sinks/webhook.ts';
import type { Telemetry } from '../telemetry.ts';
import { DrainMessage, workOff } from './messages.ts';

/** What the handler needs. */
export interface DrainSinkDeps {
  readonly region: string;
  readonly draining: DrainDeps;
  readonly telemetry: Pick<Telemetry, 'drain' | 'fault'>;
}

/** How long before the function's time is up nothing new is delivered: an attempt takes up to 15 s, then it is booked. */
const TAIL_MS = 20_000;

/**
 * Drains the sinks of a batch side by side. As long as a drain gets something done it is followed by another: one drain
 * lasts no longer than its lease, and whoever is woken meanwhile finds the sink busy and leaves. What is left when time
 * runs out stays due, and the tick finds it; nothing is put back into the queue.
 */
export function createDrainSinkHandler(deps: DrainSinkDeps) {
  const { region, draining, telemetry } = deps;
  return async (
    event: SQSEvent,
    context: Pick<Context, 'getRemainingTimeInMillis'>,
  ): Promise<SQSBatchResponse> => {
    const deadline = draining.now() + context.getRemainingTimeInMillis() - TAIL_MS;
    return workOff(event, DrainMessage, telemetry, async ({ sink }) => {
      for (let turn = 0; ; turn += 1) {
        const report = await drainSink(draining, region, sink, deadline);
        const moved = report.delivered + report.skipped > 0;
        // A further look that finds nothing is no news.
        if (turn === 0 || moved || report.outcome === 'waiting') telemetry.drain(report);
        const goesOn = report.outcome === 'more' || report.outcome === 'drained';
        if (!goesOn || !moved || draining.now() >= deadline) return;
      }
    });
  };
}

/** The sinks of a cell as they are on AWS; connections are kept from one drain to the next. */
export function createSinkOpener(deps: {
  readonly stage: string;
  readonly sns: SNSClient;
  /** Where the HTTP API is reached. */
  readonly publicUrl: string;
  readonly secrets: Pick<SecretReader, 'readSigningSecrets'>;
  readonly now: () => number;
}): (record: SinkRecord) => Promise<SinkPort> {
  const { stage, sns, publicUrl, secrets, now } = deps;
  const connections = createConnectionPool({ allowPrivateNetworks: false });
  return async (record) => {
    switch (record.kind) {
      case 'sns':
        return createSnsSink(sns, record.target, { publicUrl });
      case 'webhook': {
        const { region, id, target, headers = {}, concurrency = DEFAULT_CONCURRENCY } = record;
        return createWebhookSink({
          url: target,
          secrets: await secrets.readSigningSecrets(secretNames(stage, region).endpoint(id)),
          headers,
          now,
          connections: connections.of(`${region}/${id}`, concurrency),
        });
      }
    }
  };
}
