/** Templates of messages: fields, and the place of a template. */
import * as z from 'zod';
import type { Channel, Locale, MessageKind } from './types.ts';

const line = (max: number) => z.string('must be text').trim().max(max, `must be at most ${max} characters`);

const EMPTY = 'must not be empty';

const NO_FIELD = 'must have at least one of subject, preheader, heading, intro, outro, html and text';

/**
 * Fields of an e-mail template in Liquid (docs/notifications.md). Absent fields use the default. `subject` to `outro` are plain text, in
 * which an empty line begins a paragraph. `html` and `text` replace the layout.
 */
export const emailTemplateSchema = z
  .strictObject({
    subject: line(500).min(1, EMPTY).optional().describe('Subject, in Liquid. One line.'),
    preheader: line(1000).optional().describe('Preview text in the inbox.'),
    heading: line(1000).optional().describe('Heading. Default: the subject.'),
    intro: line(5000).optional().describe('Plain text above the parcels. An empty line starts a paragraph.'),
    outro: line(5000).optional().describe('Plain text below the parcels.'),
    html: line(60_000).min(1, EMPTY).optional().describe('Complete HTML document, instead of the layout.'),
    text: line(20_000).min(1, EMPTY).optional().describe('Complete text version, instead of the layout.'),
  })
  .refine((template) => Object.values(template).some((text) => text !== undefined), NO_FIELD);

/** Fields of an SMS template in Liquid. Line breaks become spaces. */
export const smsTemplateSchema = z.strictObject({
  text: line(1000).min(1, EMPTY).describe('Text, in Liquid. At most two segments when rendered.'),
});

export type EmailTemplate = z.infer<typeof emailTemplateSchema>;

export type SmsTemplate = z.infer<typeof smsTemplateSchema>;

export type Template = EmailTemplate | SmsTemplate;

/** Kind, channel and locale of a template. */
export interface TemplatePlace {
  readonly kind: MessageKind;
  readonly channel: Channel;
  readonly locale: Locale;
}

/** A problem of a template's field. */
export interface TemplateProblem {
  readonly field: string;
  readonly reason: string;
}
