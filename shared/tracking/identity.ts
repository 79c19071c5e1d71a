/** Identity of the account to which the credentials belong (rule 9). */
import { hash } from 'node:crypto';
import type { OrderingClient } from '../ordering/client.ts';
import type { Identity, Poll } from './poll-context.ts';

/** Identifies a token, without containing any of it. Short, because Status is written with every poll. */
export const hashToken = (token: string): string => hash('sha256', token, 'base64url').slice(0, 5);

/** Reads the identity of the account upstream. Throws `OrderingError`. */
export async function readIdentity({ writer }: Poll, client: OrderingClient): Promise<Identity> {
  const { body, token = '' } = await client.account();
  const { id } = body;
  const { upstreamId } = writer.head.attributes;
  return { id, pinned: typeof upstreamId === 'number' ? upstreamId : id, token: hashToken(token) };
}
