/** Identity of the account to which the credentials belong (rule 9). */
import type { OrderingClient } from '../ordering/client.ts';
import type { Identity, Poll } from './poll-context.ts';

/** Reads the identity of the account upstream. Throws `OrderingError`. */
export async function readIdentity({ writer }: Poll, client: OrderingClient): Promise<Identity> {
  const { id } = (await client.account()).body;
  const { upstreamId } = writer.head.attributes;
  return { id, pinned: typeof upstreamId === 'number' ? upstreamId : id };
}
