/**
 * A child process: drains of one sink and nothing else, for the memory they take. Its clock goes as fast as the sink's
 * waits are long.
 */
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { keys } from '../shared/table/schema.ts';
import { ACCOUNT, createWire, drain, timed } from './wire.ts';

/** What the benchmark asks for. */
export type DeadRequest =
  /** One drain of the sink, as soon as it is to be tried again. */
  | { readonly step: string }
  /** The same, for its speed: for so long. */
  | { readonly speed: string; readonly forMs: number };

/** After a step, once garbage is collected. */
export interface StepFigures {
  readonly outcome: string;
  readonly heapMb: number;
  readonly rssMb: number;
  /** Days on this process's clock since it began. */
  readonly day: number;
}
/** After a drain for its speed. */
export interface SpeedFigures {
  readonly perSecond: number;
  readonly outcome: string;
}

const { endpoint, retrySeconds } = JSON.parse(process.argv[2] ?? '') as {
  endpoint: string;
  retrySeconds: number[];
};
const client = new DynamoDBClient({
  endpoint,
  region: 'us-east-1',
  credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
});
const began = Date.now();
let ahead = 0;
const now = (): number => Date.now() + ahead;
const wire = createWire(client, { now, retrySeconds });

process.on('message', async (request: DeadRequest) => {
  const sink = 'step' in request ? request.step : request.speed;
  const waitUntil = Number((await wire.table.get(keys.sink(ACCOUNT.region, sink)))?.waitUntil ?? 0);
  ahead += Math.max(0, Math.ceil(waitUntil - now()));
  if ('step' in request) {
    const { outcome } = await drain(wire, sink);
    globalThis.gc?.();
    const { heapUsed, rss } = process.memoryUsage();
    const day = (now() - began) / 86_400_000;
    process.send?.({ outcome, day, heapMb: heapUsed / 2 ** 20, rssMb: rss / 2 ** 20 } satisfies StepFigures);
  } else {
    const { seconds, result } = await timed(() => drain(wire, sink, request.forMs));
    process.send?.({ perSecond: result.delivered / seconds, outcome: result.outcome } satisfies SpeedFigures);
  }
});
process.on('disconnect', () => process.exit(0));
process.send?.({});
