/**
 * Rendering of notices: an e-mail in HTML and as text, or an SMS. Pure. A failure is a result, not an exception. Templates are Liquid
 * (docs/notifications.md, docs/decisions/0029-liquid-templates-compiled-layout.md): an account's own where it has one, otherwise those of `texts/`, in the layout
 * of `layout.mjml`.
 */
import { escapeHtml } from '../html.ts';
import { withoutUndefined } from '../resources.ts';
import { layout } from './layout.ts';
import { formatLiquidError, getEngine, parse, render, TemplateFault, type Time, toFault } from './liquid.ts';
import { toBlocks, toMailParts } from './mail-parts.ts';
import { toPlainText } from './mail-text.ts';
import { renderSmsText, roomy, toSmsVariables } from './render-sms.ts';
import type { Rendered, RenderedEmail, RenderedSms, RenderInput } from './render-types.ts';
import { edgeNotices, sampleBranding, sampleNotice } from './samples.ts';
import type { EmailTemplate, Template, TemplatePlace, TemplateProblem } from './template.ts';
import { toView, truncate } from './template-variables.ts';
import { texts } from './texts/texts.ts';
import type { Locale } from './types.ts';

/** Maximum length of a subject. Mail programs truncate far shorter ones. */
const MAX_SUBJECT = 200;

/** Maximum time of a template over all its parts and attempts, for one message or one check. */
const MAX_MS = 2000;

/** Renders an e-mail. */
export function renderEmail(input: RenderInput): Rendered<RenderedEmail> {
  return toRendered(() => renderEmailParts(input, { ms: MAX_MS }));
}

/**
 * Renders an SMS of at most two segments. Content that does not fit is dropped: first descriptions, then lists of jobs, then all links but
 * the first, then long names. A link is never truncated. A link that is too long for two segments is replaced by the parcel's number.
 */
export function renderSms(input: RenderInput): Rendered<RenderedSms> {
  // A text that a user has written is not cut.
  return toRendered(() => renderSmsText(input, { ms: MAX_MS }, input.content.kind !== 'note'));
}

function renderEmailParts(input: RenderInput, time: Time): RenderedEmail {
  const { locale } = input.recipient;
  const { labels, email } = texts[locale];
  const template: EmailTemplate = { ...email[input.content.kind], ...withoutUndefined(input.template ?? {}) };
  const view = toView(input);
  // The subject is usually also the heading.
  const cache = new Map<string, string>();
  const plain = (field: keyof EmailTemplate): string => {
    const source = template[field] ?? '';
    const text = cache.get(source) ?? render(field, source, 'text', locale, view, time);
    cache.set(source, text);
    return text;
  };
  // Non-breaking spaces would make the header longer.
  const subject = toLine(plain('subject').replaceAll('\u00a0', ' '), MAX_SUBJECT);
  if (subject === '') throw new TemplateFault('subject', 'it is empty');
  const fields = {
    subject,
    preheader: toLine(plain('preheader'), 300),
    heading: toLine(plain(template.heading === undefined ? 'subject' : 'heading'), 300) || subject,
    intro: splitParagraphs(plain('intro')),
    outro: splitParagraphs(plain('outro')),
  };
  const blocks = toBlocks(view, labels);
  return {
    subject,
    html:
      template.html === undefined
        ? layout(toMailParts(view, labels, fields, blocks), escapeHtml)
        : render('html', template.html, 'html', locale, view, time),
    text:
      template.text === undefined
        ? toPlainText(view, labels, fields, blocks)
        : collapseEmptyLines(render('text', template.text, 'text', locale, view, time)),
  };
}

/** Unsubscribe URL of samples. */
const SAMPLE_UNSUBSCRIBE = 'https://notify.example.com/v1/unsubscribe/sample-token';

/**
 * Returns the problems of a template: syntax errors, unknown variables or filters, failure on a sample or edge case, no way to unsubscribe,
 * or an SMS that is too long. Empty if it is valid.
 */
export function checkTemplate(
  { kind, channel, locale }: TemplatePlace,
  template: Template,
): TemplateProblem[] {
  const problems = Object.entries(template).flatMap(([field, source]) => {
    const problem = typeof source === 'string' ? findSourceProblem(source, channel, locale) : undefined;
    return problem === undefined ? [] : [{ field, reason: problem }];
  });
  if (problems.length > 0) return problems;
  const branding = sampleBranding;
  const time = { ms: MAX_MS };
  for (const content of [sampleNotice(kind), ...edgeNotices(kind)]) {
    for (const name of ['Robin Weaver', null]) {
      const recipient = { name, locale, zone: 'Europe/London' };
      const input = { content, recipient, branding, unsubscribeUrl: SAMPLE_UNSUBSCRIBE, template };
      try {
        if (channel === 'sms') renderSmsText(input, time, false);
        else {
          const mail = renderEmailParts(input, time);
          for (const field of ['html', 'text'] as const) {
            if (mail[field].includes(SAMPLE_UNSUBSCRIBE)) continue;
            return [{ field, reason: 'it must contain {{ unsubscribe_url }}' }];
          }
        }
      } catch (error) {
        const { field, message } = toFault(error);
        return [{ field, reason: message }];
      }
    }
  }
  return [];
}

/** Returns the syntax error of a source, or the first unknown variable in it. */
function findSourceProblem(source: string, channel: 'email' | 'sms', locale: Locale): string | undefined {
  try {
    const known = getKnownVariables(channel, locale);
    const engine = getEngine('text', locale);
    const used = engine.liquid.globalVariablesSync(parse(source, engine));
    const unknown = used.find((name) => !known.has(name));
    return unknown === undefined ? undefined : `unknown variable ${unknown}`;
  } catch (error) {
    return formatLiquidError(error);
  }
}

function getKnownVariables(channel: 'email' | 'sms', locale: Locale): ReadonlySet<string> {
  const { labels } = texts[locale];
  const view = toView({
    content: sampleNotice('dispatched'),
    recipient: { name: null, locale, zone: 'UTC' },
    branding: sampleBranding,
    unsubscribeUrl: SAMPLE_UNSUBSCRIBE,
  });
  return new Set(Object.keys(channel === 'sms' ? toSmsVariables(view, roomy, labels) : view));
}

function toRendered<T>(render: () => T): Rendered<T> {
  try {
    return { kind: 'rendered', value: render() };
  } catch (error) {
    const { field, message } = toFault(error);
    return { kind: 'failed', reason: `${field}: ${message}` };
  }
}

/**
 * Returns a template's output as one line. Customer text in it is sanitized already, and the direction marks around that text have to stay.
 */
function toLine(text: string, max: number): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is taken out.
  const line = normalizeSpaces(text).replace(/[\u0000-\u001f\u007f-\u009f]/g, '');
  return truncate(line.trim(), max);
}

/** Collapses double spaces that empty variables leave, and removes spaces before a full stop. Keeps non-breaking spaces. */
function normalizeSpaces(text: string): string {
  return text.replace(/[^\S\u00a0]+/g, ' ').replace(/ (?=[.,])/g, '');
}

/** Splits lines into paragraphs at empty lines. */
function splitParagraphs(text: string): string[][] {
  const paragraphs: string[][] = [[]];
  for (const line of text.split('\n').map((one) => normalizeSpaces(one).trim())) {
    if (line !== '') paragraphs.at(-1)?.push(line);
    else if (paragraphs.at(-1)?.length) paragraphs.push([]);
  }
  return paragraphs.filter((lines) => lines.length > 0);
}

/**
 * Collapses the empty lines that tags leave, to at most one in a row. Works line by line, because templates determine the length of the
 * text.
 */
function collapseEmptyLines(text: string): string {
  const lines = text.split(/\r\n?|\n/).map((line) => line.trimEnd());
  return `${lines
    .filter((line, at) => line !== '' || lines[at - 1] !== '')
    .join('\n')
    .trim()}\n`;
}
