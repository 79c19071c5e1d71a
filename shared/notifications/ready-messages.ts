/** Rendering of due messages with the templates of their accounts. */
import type { AccountRef } from '../storage/schema.ts';
import { parseWorkId } from './message-ids.ts';
import type { Work } from './messages.ts';
import type { Message, NotificationSettings } from './records.ts';
import { messageRenderer } from './rendering.ts';
import { withoutAddresses } from './send-decision.ts';
import type { SendDeps } from './send-report.ts';
import type { Template } from './template.ts';
import { resolveTemplate } from './templates.ts';
import type {
  Channel,
  JobFacts,
  Locale,
  MessageKind,
  OutgoingEmail,
  OutgoingSms,
  SendOutcome,
} from './types.ts';
import { createUnsubscribeUrl } from './unsubscribe.ts';

/** Maximum length of stored text of a sent message, characters. */
const MAX_TEXT = 20_000;

/** A message that is ready to be sent. */
export interface Ready {
  readonly work: Work;
  readonly settings: NotificationSettings;
  /** With the subject and text that are sent. */
  readonly message: Message;
  /** Set with the claim: whether an earlier attempt may have reached the recipient. */
  readonly before?: boolean;
  readonly send: (deps: SendDeps) => Promise<SendOutcome>;
}

/** Renders the messages of one run of the sender. Reads each template once. */
export class ReadyRenderer {
  readonly #deps: SendDeps;
  readonly #templates = new Map<string, Promise<Template | undefined>>();

  constructor(deps: SendDeps) {
    this.#deps = deps;
  }

  /** Renders a message. Returns the changed message if its template fails. Throws if the renderer fails: the message stays due. */
  async render(
    work: Work,
    { settings, jobs: facts }: Pick<Ready, 'settings'> & { readonly jobs: readonly JobFacts[] },
    before: readonly Message[],
  ): Promise<Ready | Message> {
    const { ref, message, content } = work;
    const { channel, to } = message;
    if (!channel || !to) throw new Error('The message has no recipient.');
    const jobs = facts.map(({ jobNumber }) => jobNumber);
    const unsubscribeUrl = await createUnsubscribeUrl(this.#deps, ref, channel, to.address);
    // An account's own text for cancellations would say the opposite of their correction. A note has no templates.
    const template =
      content.kind === 'reinstated' || content.kind === 'note'
        ? undefined
        : await this.#template(ref, content.kind, channel, to.locale);
    const input = {
      content: { ...content, jobs: facts },
      ...{ recipient: to, branding: settings.branding, replyTo: settings.replyTo, unsubscribeUrl, template },
    };
    const failed = (reason: string): Message => {
      const detail = withoutAddresses(reason, message);
      return { ...message, state: 'failed', reason: 'template', detail, dueAt: null };
    };
    const dryRun = { state: 'dry_run', reason: null, detail: null, dueAt: null } as const;
    if (channel === 'email') {
      const rendered = await messageRenderer.email(input, ref.account);
      if (rendered.kind === 'failed') return failed(rendered.reason);
      const { subject, html, text } = rendered.value;
      const composed = { ...message, jobs, subject, text: truncate(text) };
      if (settings.dryRun) return { ...composed, ...dryRun };
      const mail = (domain: string): OutgoingEmail => ({
        messageId: `${parseWorkId(message.id)}@${domain}`,
        references: before
          .filter(({ sentAt }) => sentAt !== null)
          .map(({ id }) => `${parseWorkId(id)}@${domain}`),
        ...{ fromName: settings.branding.name, to, replyTo: settings.replyTo },
        ...{ subject, html, text, unsubscribeUrl },
        tags: { region: ref.region, account: ref.account, message: message.id },
      });
      return {
        ...{ work, settings, message: composed },
        send: async ({ email }) => (email ? email.send(mail(email.domain)) : NOT_CONFIGURED),
      };
    }
    const rendered = await messageRenderer.sms(input, ref.account);
    if (rendered.kind === 'failed') return failed(rendered.reason);
    const { text, segments } = rendered.value;
    const composed = { ...message, jobs, text, segments };
    if (settings.dryRun) return { ...composed, ...dryRun };
    const outgoing: OutgoingSms = { to: to.address, text, senderId: settings.sms.senderId };
    return {
      ...{ work, settings, message: composed },
      send: async ({ sms }) => (sms ? sms.send(outgoing) : NOT_CONFIGURED),
    };
  }

  /** Reads an account's own template, once per run. */
  #template(
    ref: AccountRef,
    kind: MessageKind,
    channel: Channel,
    locale: Locale,
  ): Promise<Template | undefined> {
    const name = `${ref.account} ${kind} ${channel} ${locale}`;
    const known = this.#templates.get(name) ?? resolveTemplate(this.#deps.table, ref, kind, channel, locale);
    this.#templates.set(name, known);
    return known;
  }
}

const NOT_CONFIGURED: SendOutcome = {
  kind: 'later',
  reason: 'The channel is not configured.',
  everything: true,
};

const truncate = (text: string): string => (text.length <= MAX_TEXT ? text : `${text.slice(0, MAX_TEXT)}…`);
