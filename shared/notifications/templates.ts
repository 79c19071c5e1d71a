/** An account's own templates, each for a kind, a channel and a locale. Checked before they are stored. */
import * as z from 'zod';
import { type Expectation, getRevision, modified, type Rejection, revisionUnchanged } from '../resources.ts';
import { type AccountRef, keys, templatePk } from '../storage/schema.ts';
import type { Clause, Item, Table } from '../storage/table.ts';
import { previewRenderer } from './rendering.ts';
import {
  emailTemplateSchema,
  smsTemplateSchema,
  type Template,
  type TemplatePlace,
  type TemplateProblem,
} from './template.ts';
import { texts } from './texts/texts.ts';
import { type Channel, channels, type Locale, locales, type MessageKind, messageKinds } from './types.ts';

/** An account's own template. */
export interface StoredTemplate extends TemplatePlace {
  readonly template: Template;
  /** Epoch ms. */
  readonly changedAt: number;
  readonly revision: number;
}

/** Returns the built-in template. */
export function defaultTemplate(kind: MessageKind, channel: Channel, locale: Locale): Template {
  return channel === 'email' ? texts[locale].email[kind] : texts[locale].sms[kind];
}

/**
 * Returns the account's own template for a recipient's locale: an exact match, otherwise one of the same language. `undefined` if there is
 * none, which means the default.
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

/** Returns an account's own templates, by kind, channel and locale. There is at most one for each place. */
export async function listTemplates(table: Table, ref: AccountRef): Promise<StoredTemplate[]> {
  return (await table.query({ pk: templatePk(ref) })).map(toTemplate);
}

/** Returns an account's own template for exactly that place, or `undefined`. */
export async function readTemplate(
  table: Table,
  ref: AccountRef,
  { kind, channel, locale }: TemplatePlace,
): Promise<StoredTemplate | undefined> {
  const item = await table.get(keys.template(ref, kind, channel, locale));
  return item && toTemplate(item);
}

/** Maximum number of attempts to save a template after concurrent modifications. */
const ATTEMPTS = 5;
/** Items of the table are limited to 400 kB. A character of a template can take six bytes. */
const MAX_TEMPLATE_BYTES = 300_000;

/** Result of saving a template: saved, or its problems. */
export type SavedTemplate =
  | { readonly kind: 'saved'; readonly stored: StoredTemplate }
  | { readonly kind: 'invalid'; readonly problems: readonly TemplateProblem[] };

/**
 * Stores a template if it renders all samples and edge cases. The revision of a default template is 0. That of a new template is `now`, so
 * that it is not that of a deleted one.
 */
export async function saveTemplate(
  table: Table,
  ref: AccountRef,
  place: TemplatePlace,
  template: Template,
  now: number,
  expected: Expectation = {},
): Promise<SavedTemplate | Rejection> {
  const text = JSON.stringify(template);
  const [largest = 'text'] =
    Object.entries(template).sort(([, a = ''], [, b = '']) => b.length - a.length)[0] ?? [];
  const problems =
    Buffer.byteLength(text) > MAX_TEMPLATE_BYTES
      ? [{ field: largest, reason: 'it exceeds the maximum size' }]
      : await previewRenderer.check(place, template, ref.account);
  if (problems.length > 0) return { kind: 'invalid', problems };
  const key = keys.template(ref, place.kind, place.channel, place.locale);
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const before = await table.get(key);
    const revision = before ? getRevision(before) : 0;
    if (expected.revision !== undefined && expected.revision !== revision) break;
    const item: Item = { ...key, template: text, changedAt: now, revision: before ? revision + 1 : now };
    const when = [before ? revisionUnchanged(before) : (['pk', 'absent'] as const)];
    if ((await table.write({ put: item, when })).done) return { kind: 'saved', stored: toTemplate(item) };
  }
  return modified('template');
}

/** Deletes an account's own template, so that the default is used again. There may be none. */
export async function deleteTemplate(
  table: Table,
  ref: AccountRef,
  { kind, channel, locale }: TemplatePlace,
  { revision }: Expectation = {},
): Promise<{ readonly kind: 'deleted' } | Rejection> {
  const key = keys.template(ref, kind, channel, locale);
  const when: Clause[] = revision === undefined ? [] : [['revision', 'absent or =', revision]];
  return (await table.write({ delete: key, when })).done ? { kind: 'deleted' } : modified('template');
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
  return { kind, channel, locale, template, changedAt: Number(item.changedAt), revision: getRevision(item) };
}
