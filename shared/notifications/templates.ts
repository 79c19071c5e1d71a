/** Templates of an account's own, each for a kind, a channel and a locale: checked before they are kept. */
import * as z from 'zod';
import { type AccountRef, keys, templatePk } from '../table/schema.ts';
import type { Item, Table } from '../table/table.ts';
import { type Channel, channels, type Locale, locales, type MessageKind, messageKinds } from './model.ts';
import type { TemplateProblem } from './render.ts';
import { previewing } from './rendering.ts';
import { texts } from './texts/texts.ts';

const line = (max: number) => z.string('must be text').trim().max(max, `must be at most ${max} characters`);
const EMPTY = 'must not be empty';
const NOTHING = 'must say something: subject, preheader, heading, intro, outro, html or text';

/**
 * What an e-mail says, in Liquid (docs/notifications.md). What is left out is the default. Subject to outro are plain text, in
 * which an empty line begins a paragraph; `html` and `text` take the place of the layout.
 */
export const emailTemplateSchema = z
  .strictObject({
    subject: line(500).min(1, EMPTY).optional().describe('The subject, in Liquid; one line.'),
    preheader: line(1000).optional().describe('What mailboxes show beside the subject.'),
    heading: line(1000).optional().describe('The heading; the subject as a rule.'),
    intro: line(5000)
      .optional()
      .describe('Plain text above the parcels; an empty line begins a new paragraph.'),
    outro: line(5000).optional().describe('Plain text below the jobs.'),
    html: line(60_000).min(1, EMPTY).optional().describe('A whole HTML document in place of the layout.'),
    text: line(20_000).min(1, EMPTY).optional().describe('The whole text version in place of the layout.'),
  })
  .refine((template) => Object.values(template).some((text) => text !== undefined), NOTHING);
/** What an SMS says, in Liquid; line breaks become spaces. */
export const smsTemplateSchema = z.strictObject({
  text: line(1000).min(1, EMPTY).describe('The text, in Liquid; it must come out in two segments.'),
});

export type EmailTemplate = z.infer<typeof emailTemplateSchema>;
export type SmsTemplate = z.infer<typeof smsTemplateSchema>;
export type Template = EmailTemplate | SmsTemplate;

/** For what a template is. */
export interface TemplatePlace {
  readonly kind: MessageKind;
  readonly channel: Channel;
  readonly locale: Locale;
}

/** A template of an account's own. */
export interface StoredTemplate extends TemplatePlace {
  readonly template: Template;
  /** Epoch ms. */
  readonly changedAt: number;
}

/** The template that is there without anybody writing one. */
export function defaultTemplate(kind: MessageKind, channel: Channel, locale: Locale): Template {
  return channel === 'email' ? texts[locale].email[kind] : texts[locale].sms[kind];
}

/**
 * The template of an account's own for a recipient's locale: exactly that, else one of the same language; `undefined` where
 * there is none, which means the default.
 */
export async function resolveTemplate(
  table: Table,
  ref: AccountRef,
  kind: MessageKind,
  channel: Channel,
  locale: Locale,
): Promise<Template | undefined> {
  const beginning = `${kind}#${channel}#`;
  const items = await table.query({ pk: templatePk(ref), from: beginning, to: `${beginning}~` });
  const stored = items.map(toTemplate);
  const language = locale.slice(0, 2);
  const found =
    stored.find((one) => one.locale === locale) ?? stored.find((one) => one.locale.startsWith(language));
  return found?.template;
}

/** An account's own templates, by kind, channel and locale. At most as many as there are places. */
export async function listTemplates(table: Table, ref: AccountRef): Promise<StoredTemplate[]> {
  return (await table.query({ pk: templatePk(ref) })).map(toTemplate);
}

/** An account's own template for exactly that place. */
export async function readTemplate(
  table: Table,
  ref: AccountRef,
  { kind, channel, locale }: TemplatePlace,
): Promise<StoredTemplate | undefined> {
  const item = await table.get(keys.template(ref, kind, channel, locale));
  return item && toTemplate(item);
}

/** Items of the table may have 400 kB; a character of the above can take six bytes. */
const MAX_TEMPLATE_BYTES = 300_000;

/** What became of a template: kept, or what is wrong with it. */
export type SavedTemplate =
  | { readonly kind: 'saved'; readonly stored: StoredTemplate }
  | { readonly kind: 'invalid'; readonly problems: readonly TemplateProblem[] };

/** Keeps a template if it can say everything it may have to: samples and extremes are rendered with it first. */
export async function saveTemplate(
  table: Table,
  ref: AccountRef,
  place: TemplatePlace,
  template: Template,
  now: number,
): Promise<SavedTemplate> {
  const text = JSON.stringify(template);
  const [largest = 'text'] =
    Object.entries(template).sort(([, a = ''], [, b = '']) => b.length - a.length)[0] ?? [];
  const problems =
    Buffer.byteLength(text) > MAX_TEMPLATE_BYTES
      ? [{ field: largest, reason: 'it takes too much room' }]
      : await previewing.check(place, template, ref.account);
  if (problems.length > 0) return { kind: 'invalid', problems };
  const item: Item = {
    ...keys.template(ref, place.kind, place.channel, place.locale),
    template: text,
    changedAt: now,
  };
  await table.write({ put: item });
  return { kind: 'saved', stored: toTemplate(item) };
}

/** Takes a template of an account's own away, so that the default is used again; false when there was none. */
export async function deleteTemplate(
  table: Table,
  ref: AccountRef,
  { kind, channel, locale }: TemplatePlace,
): Promise<boolean> {
  const key = keys.template(ref, kind, channel, locale);
  const { done } = await table.write({ delete: key, when: [['template', 'present']] });
  return done;
}

const placeSchema = z.tuple([
  z.enum(Object.keys(messageKinds) as [MessageKind, ...MessageKind[]]),
  z.enum(channels),
  z.enum(locales),
]);

function toTemplate(item: Item): StoredTemplate {
  const [kind, channel, locale] = placeSchema.parse(item.sk.split('#'));
  const schema = channel === 'email' ? emailTemplateSchema : smsTemplateSchema;
  const template = schema.parse(JSON.parse(String(item.template)));
  return { kind, channel, locale, template, changedAt: Number(item.changedAt) };
}
