/** Converts closed notices into messages, one for each channel and recipient address. */
import pLimit from 'p-limit';
import { gatherTableReads } from '../storage/shared-reads.ts';
import { getAddress } from './addresses.ts';
import { normalizeAddress } from './email-address.ts';
import { toMessageId, toWorkId } from './message-ids.ts';
import { createMessages, type NewWork, recordNoMessage } from './messages.ts';
import { acceptsMessage } from './recipient-fields.ts';
import { findRecipients } from './recipient-matching.ts';
import type { Message, NotificationSettings, Recipient } from './records.ts';
import { reportFault, reportMessage, type SendDeps, type SendReport } from './send-report.ts';
import { readSettingsOfAccounts } from './settings.ts';
import type { NoticePlace } from './thread.ts';
import { type ClosedNotice, finishNotice, takeDueNotices } from './thread-store.ts';
import { type Channel, type MessageReason, type Scope, toMessageKind } from './types.ts';
import { createSealer } from './unsubscribe.ts';

/** Number of notices processed together. */
const NOTICES_AT_ONCE = 100;

/** Number of notices whose recipients are read concurrently. */
const NOTICES_READ_AT_ONCE = 8;

/** Closes notices whose window has expired and creates their messages, until none is left or until the deadline. */
export async function createDueMessages(
  deps: SendDeps,
  region: string,
  deadline: number,
): Promise<Pick<SendReport, 'notices' | 'messages' | 'more'>> {
  const report = { notices: 0, messages: 0, more: false };
  while (deps.now() < deadline && !deps.stopping?.aborted) {
    const notices = await takeDueNotices(deps, region, NOTICES_AT_ONCE, (ref, cause) =>
      reportFault(deps, { ref }, cause),
    );
    if (notices.length === 0) return report;
    const { finished, created } = await convertNotices(deps, region, notices);
    report.notices += finished;
    report.messages += created;
    // Failed notices are handed out again later.
    if (finished === 0) return report;
  }
  return { ...report, more: true };
}

/** Creates messages of notices. A notice that fails is unchanged, and the others proceed. */
async function convertNotices(
  deps: SendDeps,
  region: string,
  notices: readonly ClosedNotice[],
): Promise<{ readonly finished: number; readonly created: number }> {
  const refs = new Map(notices.map(({ ref }) => [ref.account, ref]));
  const settings = new Map(
    (await readSettingsOfAccounts(deps.table, [...refs.values()])).map((one) => [one.account, one]),
  );
  const limit = pLimit(NOTICES_READ_AT_ONCE);
  const table = gatherTableReads(deps.table);
  const seal = await createSealer(deps.table, region);
  const converted = (
    await limit.map([...notices], async (notice) => {
      try {
        const found = await findRecipients(table, notice.ref, notice.scopes);
        const accountSettings = settings.get(notice.ref.account);
        return [{ notice, ...planMessages(notice, accountSettings, found, deps.now(), seal) }];
      } catch (cause) {
        reportFault(deps, notice, cause);
        return [];
      }
    })
  ).flat();
  // A later notice of the same thread would overtake one that failed.
  const blocked = new Set(
    notices
      .filter((one) => !converted.some(({ notice }) => notice === one))
      .map(({ thread, ref }) => `${ref.account} ${thread}`),
  );
  const ready = converted.filter(({ notice }) => !blocked.has(`${notice.ref.account} ${notice.thread}`));
  const works = ready.flatMap((one) => one.works);
  let created: number;
  let done = ready;
  try {
    created = await createMessages(deps, region, works);
  } catch (cause) {
    // One of them may be the one that cannot be written.
    if (ready.length === 1) throw cause;
    created = 0;
    done = [];
    for (const one of ready) {
      try {
        created += await createMessages(deps, region, one.works);
        done.push(one);
      } catch (fault) {
        reportFault(deps, one.notice, fault);
      }
    }
    if (done.length === 0) throw cause;
  }
  await limit.map(done, async ({ notice, unsent }) => {
    if (unsent) {
      await recordNoMessage(deps, unsent);
      reportMessage(deps, unsent);
    }
    await finishNotice(deps, notice);
  });
  return { finished: done.length, created };
}

/** Returns the messages of a notice: one for each channel and address, or the record of a notice without recipients. */
export function planMessages(
  notice: ClosedNotice,
  settings: NotificationSettings | undefined,
  found: readonly { readonly recipient: Recipient; readonly jobs: readonly number[] }[],
  now: number,
  seal: (address: string) => string,
): { readonly works: readonly NewWork[]; readonly unsent?: Message } {
  const { ref, thread, id: noticeId, content, earlier, corrects = {}, dispatches = {} } = notice;
  const kind = toMessageKind(content.kind);
  const common = {
    ...{ region: ref.region, account: ref.account, kind, orderGroup: content.orderGroup },
    ...{ detail: null, createdAt: now, sentAt: null, attempts: 0, repeats: 0, providerId: null },
    ...{ subject: null, text: null, segments: null },
  };
  const numbers = content.jobs.map(({ jobNumber }) => jobNumber);
  const identity = { ...ref, thread, notice: noticeId };
  const recordOnly = (reason: MessageReason): { works: []; unsent: Message } => ({
    works: [],
    unsent: {
      ...common,
      id: toMessageId(toWorkId({ ...identity, channel: null, address: null }), content.observedAt),
      ...{ jobs: numbers, channel: null, to: null, state: 'suppressed', reason, dueAt: null },
    },
  });
  if (!settings?.enabled) return recordOnly('disabled');

  const addressed = new Map<
    string,
    { channel: Channel; address: string; jobs: Set<number>; all: Recipient[]; closest: Recipient }
  >();
  for (const { recipient, jobs } of found) {
    for (const channel of recipient.channels) {
      if (!acceptsMessage(recipient, channel, kind)) continue;
      const address = getAddress(recipient, channel);
      if (address === null || (channel === 'sms' && !settings.sms.enabled)) continue;
      const key = `${channel} ${normalizeAddress(channel, address)}`;
      const known = addressed.get(key) ?? {
        ...{ channel, address, jobs: new Set<number>(), all: [], closest: recipient },
      };
      for (const job of jobs) if (numbers.includes(job)) known.jobs.add(job);
      known.all.push(recipient);
      if (specificity(recipient.scope) > specificity(known.closest.scope)) {
        known.closest = recipient;
        known.address = address;
      }
      addressed.set(key, known);
    }
  }
  const works = [...addressed.values()]
    .filter(({ jobs }) => jobs.size > 0)
    .map(({ channel, address, jobs, all, closest }) => {
      const place = { channel, address: seal(normalizeAddress(channel, address)) };
      const message: Message = {
        ...common,
        id: toMessageId(toWorkId({ ...identity, ...place }), content.observedAt),
        ...{ jobs: numbers.filter((job) => jobs.has(job)), channel, state: 'waiting', reason: null },
        dueAt: now,
        to: {
          ...{ recipient: closest.id, name: closest.name, address },
          ...{ locale: closest.locale ?? settings.locale, zone: closest.zone ?? settings.zone },
        },
      };
      const toWork = (at: NoticePlace): string =>
        toWorkId({ ...ref, thread: at.thread, notice: at.id, ...place });
      const corrected = message.jobs.flatMap((job): [string, string][] => {
        const cancellation = corrects[job];
        return cancellation ? [[String(job), toWork(cancellation)]] : [];
      });
      const dispatched = message.jobs.flatMap((job): [string, string[]][] => {
        const notices = dispatches[job];
        return notices ? [[String(job), notices.map(toWork)]] : [];
      });
      const before = earlier.map((id) => toWork({ thread, id }));
      const referred = [...corrected, ...dispatched].flatMap(([, works]) => works);
      return {
        ...{ ref, message, thread, recipients: all.map(({ id }) => id) },
        content: { ...content, jobs: content.jobs.filter(({ jobNumber }) => jobs.has(jobNumber)) },
        before: [...new Set([...referred.filter((work) => !before.includes(work)), ...before])],
        ...(corrected.length === 0 ? {} : { corrects: Object.fromEntries(corrected) }),
        ...(dispatched.length === 0 ? {} : { dispatches: Object.fromEntries(dispatched) }),
      };
    });
  return works.length > 0 ? { works } : recordOnly('no_recipient');
}

/** Returns how specific a recipient's scope is. The most specific recipient determines name, language and time zone. */
function specificity(scope: Scope): number {
  return ['account', 'orderGroup', 'orderNumber', 'job'].indexOf(scope.for);
}
