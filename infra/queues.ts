import { parseQueueAddress } from '../shared/delivery/queue-address.ts';
import type { CellFunction } from './cell-function.ts';
import type { QueueSettings } from './settings.ts';

/**
 * Allows a function to send to the queues that endpoints can have as targets, and to no other. SQS uses the key of an
 * encrypted queue with the permissions of the sender.
 */
export function grantSendToQueues(fn: CellFunction, queues: readonly QueueSettings[]): void {
  if (queues.length === 0) return;
  fn.permit(
    ['sqs:SendMessage'],
    queues.map(({ arn }) => arn),
  );
  for (const { arn, keyArn } of queues) {
    if (keyArn === undefined) continue;
    // SQS uses the key under the name of its endpoint.
    const { host } = new URL(parseQueueAddress(arn)?.url ?? '');
    fn.permit(['kms:Decrypt', 'kms:GenerateDataKey'], [keyArn], { StringEquals: { 'kms:ViaService': host } });
  }
}
