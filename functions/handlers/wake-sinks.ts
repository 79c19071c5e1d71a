/**
 * Processes new wake marks from the table's stream: marks the cursors due, fills the cell feed, and requests
 * drains.
 */
import type { DynamoDBBatchResponse } from 'aws-lambda';
import pLimit from 'p-limit';
import * as z from 'zod';
import { clearWake, markDue } from '../../shared/delivery/wakes.ts';
import { createForwarder } from '../../shared/log/feed-forwarding.ts';
import type { Table } from '../../shared/storage/table.ts';
import type { Telemetry } from '../telemetry.ts';
import type { Tracing } from '../tracing.ts';
import { type DrainMessage, MAX_TRACES, type Send, type Trace } from './messages.ts';

/** Dependencies of the handler. */
export interface WakeSinksDeps {
  readonly region: string;
  readonly table: Table;
  readonly sendDrains: Send<z.infer<typeof DrainMessage>>;
  /** Feeds of an epoch before this must be renewed; see the log. */
  readonly leastEpoch?: string | undefined;
  readonly telemetry: Pick<Telemetry, 'fault'>;
  /** Absent: wake-ups are not traced. */
  readonly tracing?: Pick<Tracing, 'wake'> | undefined;
  /** Epoch ms. */
  readonly now: () => number;
  /** Waits in real time. Tests inject their own. */
  readonly sleep?: (ms: number) => Promise<unknown>;
}

/** The parsed part of a stream record; the event source's filter passes only wake marks. */
const WakeEvent = z.object({
  Records: z.array(
    z.object({
      dynamodb: z.object({
        SequenceNumber: z.string(),
        NewImage: z.object({
          sk: z.object({ S: z.string() }),
          sequence: z.object({ N: z.coerce.number().int() }),
          trace: z.object({ S: z.string() }).optional(),
          tracedFrom: z.object({ N: z.coerce.number().int() }).optional(),
        }),
      }),
    }),
  ),
});

/**
 * Number of accounts whose cursors are marked concurrently. They are forwarded to the cell feed in one
 * transaction: its transactions follow one another, and so limit the rate of a cell.
 */
const ACCOUNTS_AT_ONCE = 49;

/**
 * Creates the handler of a stream batch. Marks of the same account are one wake-up, and a sink is requested
 * once. Repeated or late records have no effect, because cursors and marks only increase. A failed record is
 * returned by its sequence number. If it fails permanently, the tick finds the mark, or the due cursor.
 */
export function createWakeSinksHandler(deps: WakeSinksDeps) {
  const { region, table, leastEpoch, sendDrains, telemetry, tracing, now, sleep } = deps;
  const forwarder = createForwarder(table, { leastEpoch, now, ...(sleep && { sleep }) });
  return async (event: unknown): Promise<DynamoDBBatchResponse> => {
    const latest = new Map<string, { sequence: number; records: string[]; traces: Trace[] }>();
    for (const { dynamodb } of WakeEvent.parse(event).Records) {
      const account = dynamodb.NewImage.sk.S;
      const before = latest.get(account);
      latest.set(account, {
        sequence: Math.max(before?.sequence ?? 0, dynamodb.NewImage.sequence.N),
        records: [...(before?.records ?? []), dynamodb.SequenceNumber],
        traces: [...(before?.traces ?? []), ...readTrace(dynamodb.NewImage)],
      });
    }
    const sinks = new Map<string, Trace[]>();
    const failed: string[] = [];
    const limit = pLimit(ACCOUNTS_AT_ONCE);
    const fail = (account: string, records: readonly string[], cause: unknown): void => {
      telemetry.fault('The sinks of an account could not be woken.', cause, { account });
      failed.push(...records);
    };
    const marked = await limit.map([...latest], async ([account, { sequence, records, traces }]) => {
      const ref = { region, account };
      try {
        const { ready, isFormer } = await markDue(table, ref, sequence, now());
        const woken = traces.flatMap((trace) => tracing?.wake(region, trace) ?? []);
        for (const sink of ready) sinks.set(sink, [...(sinks.get(sink) ?? []), ...woken]);
        return [{ ref, sequence, records, isFormer }];
      } catch (cause) {
        fail(account, records, cause);
        return [];
      }
    });
    // Delivery does not depend on the feed. And the feed's transactions, of which one at a time succeeds, are
    // shortest when the process does nothing else.
    await sendDrains(
      [...sinks].map(([sink, traces]) => ({
        sink,
        ...(traces.length > 0 && { traces: traces.slice(0, MAX_TRACES) }),
      })),
    );
    await limit.map(marked.flat(), async ({ ref, sequence, records, isFormer }) => {
      try {
        if (await forwarder.forward(ref)) await clearWake(table, ref, sequence, isFormer);
      } catch (cause) {
        fail(ref.account, records, cause);
      }
    });
    return { batchItemFailures: failed.map((itemIdentifier) => ({ itemIdentifier })) };
  };
}

type WakeMark = z.infer<typeof WakeEvent>['Records'][number]['dynamodb']['NewImage'];

/** Returns the trace of a wake mark, if it has one. */
function readTrace({ sk, sequence, trace, tracedFrom }: WakeMark): Trace[] {
  if (!trace || !tracedFrom) return [];
  return [{ account: sk.S, from: tracedFrom.N, to: sequence.N, trace: trace.S }];
}
