/** Records of notices and events that become no messages. */
import { randomUUID } from 'node:crypto';
import type { LoggedEvent } from '../log/log.ts';
import type { AccountRef } from '../storage/schema.ts';
import { toMessageId, toWorkId } from './message-ids.ts';
import { recordNoMessage } from './messages.ts';
import type { Message } from './records.ts';
import type { FrozenNotice } from './thread.ts';
import type { NoticeDeps } from './thread-items.ts';
import { FOLDED_TYPES, type MessageReason, toMessageKind } from './types.ts';

/** Records notices that are not sent, with the reason. */
export function recordUnsent(
  deps: NoticeDeps,
  ref: AccountRef,
  thread: string,
  { id, content }: FrozenNotice,
  reason: MessageReason,
): Promise<void> {
  const { kind, orderGroup, jobs, observedAt } = content;
  return recordInHistory(
    deps,
    ref,
    { thread, notice: id },
    {
      ...{ kind: toMessageKind(kind), orderGroup, jobs: jobs.map(({ jobNumber }) => jobNumber), observedAt },
      ...{ state: 'suppressed', reason, detail: null },
    },
  );
}

/** Records an event that cannot be folded. Other events proceed. */
export function recordUnfoldable(
  deps: NoticeDeps,
  ref: AccountRef,
  event: LoggedEvent,
  why: string,
): Promise<void> {
  const kind = FOLDED_TYPES[event.type] ?? 'dispatched';
  return recordInHistory(
    deps,
    ref,
    { thread: '', notice: event.id },
    {
      ...{ kind, orderGroup: null, jobs: event.jobNumber === undefined ? [] : [event.jobNumber] },
      ...{ observedAt: event.time, state: 'failed', reason: 'rejected', detail: `${why} (${event.id})` },
    },
  );
}

/** Records a message without recipient in the history. Idempotent. */
async function recordInHistory(
  deps: NoticeDeps,
  ref: AccountRef,
  identity: { readonly thread: string; readonly notice: string },
  what: Pick<Message, 'kind' | 'orderGroup' | 'jobs' | 'state' | 'reason' | 'detail'> & {
    readonly observedAt: number;
  },
): Promise<void> {
  const { observedAt, ...fields } = what;
  const work = toWorkId({ ...ref, ...identity, channel: null, address: null });
  await recordNoMessage(
    { ...deps, newId: randomUUID },
    {
      ...{ region: ref.region, account: ref.account, id: toMessageId(work, observedAt), ...fields },
      ...{ channel: null, to: null, createdAt: deps.now(), dueAt: null, sentAt: null, attempts: 0 },
      ...{ repeats: 0, providerId: null, subject: null, text: null, segments: null },
    },
  );
}
