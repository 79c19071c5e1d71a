/**
 * Rendering of notices: an e-mail in HTML and as text, or an SMS. Pure. A failure is a result, not an exception. Templates are Liquid
 * (docs/notifications.md, docs/decisions/0029-templates.md): an account's own where it has one, otherwise those of `texts/`, in the layout
 * of `layout.mjml`.
 */
import { Liquid, LiquidError, type Template as Parsed } from 'liquidjs';
import { layout } from './layout.ts';
import { edgeNotices, sampleBranding, sampleNotice } from './samples.ts';
import { measureSms, type SmsSize, smsText } from './sms-text.ts';
import {
  contrast,
  type JobView,
  oneLine,
  type ParcelView,
  toView,
  truncate,
  type View,
} from './template-variables.ts';
import type { EmailTemplate, SmsTemplate, Template, TemplatePlace } from './templates.ts';
import { type Labels, texts } from './texts/texts.ts';
import type { Branding, Locale, NoticeContent } from './types.ts';

/** Input of rendering: content, recipient and branding. */
export interface RenderInput {
  readonly content: NoticeContent;
  readonly recipient: { readonly name: string | null; readonly locale: Locale; readonly zone: string };
  readonly branding: Branding;
  readonly unsubscribeUrl: string;
  /** The account's own template. Absent fields, and an absent template, use the default. */
  readonly template?: Template | undefined;
}

/** Result of rendering. A reason concerns the template and never contains customer text. */
export type Rendered<T> =
  | { readonly kind: 'rendered'; readonly value: T }
  | { readonly kind: 'failed'; readonly reason: string };

/** A rendered e-mail. */
export interface RenderedEmail {
  /** One line. */
  readonly subject: string;
  readonly html: string;
  readonly text: string;
}

/** A rendered SMS. */
export interface RenderedSms extends SmsSize {
  /** One line. */
  readonly text: string;
}

/** Maximum length of a subject. Mail programs truncate far shorter ones. */
const MAX_SUBJECT = 200;
/** Maximum output of a template, characters. */
const MAX_OUTPUT = 500_000;
/** Maximum time of a template over all its parts and attempts, for one message or one check. */
const MAX_MS = 2000;
/** Maximum length of an SMS template's output that is processed. */
const MAX_SMS_OUTPUT = 10_000;
/** Maximum SMS segments. SMS are billed by segment. */
const MAX_SEGMENTS = 2;
/** Maximum length of prose, characters. At least its beginning fits into {@link MAX_SEGMENTS}, with room for characters that SMS drop. */
const MAX_PROSE = 500;

/** Renders an e-mail. */
export function renderEmail(input: RenderInput): Rendered<RenderedEmail> {
  return toRendered(() => renderEmailParts(input, { ms: MAX_MS }));
}

/**
 * Renders an SMS of at most two segments. Content that does not fit is dropped: first descriptions, then lists of jobs, then all links but
 * the first, then long names. A link is never truncated. A link that is too long for two segments is replaced by the parcel's number.
 */
export function renderSms(input: RenderInput): Rendered<RenderedSms> {
  return toRendered(() => renderSmsText(input, { ms: MAX_MS }));
}

function renderEmailParts(input: RenderInput, time: Time): RenderedEmail {
  const { locale } = input.recipient;
  const { labels, email } = texts[locale];
  const template: EmailTemplate = { ...email[input.content.kind], ...withoutUndefined(input.template) };
  const view = toView(input);
  // Subject and heading are often the same.
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
    heading: toLine(plain('heading'), 300) || subject,
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

/** Rendered fields of a template. */
interface RenderedFields {
  readonly subject: string;
  readonly preheader: string;
  readonly heading: string;
  readonly intro: readonly (readonly string[])[];
  readonly outro: readonly (readonly string[])[];
}

/** A parcel with its jobs, or jobs without a parcel. */
interface Block {
  readonly title: string | null;
  readonly parcels: readonly { readonly text: string; readonly link: string | null }[];
  readonly moreParcels: string | null;
  /** Heading above the jobs. */
  readonly list: string | null;
  readonly jobs: readonly Pick<JobView, 'label' | 'description' | 'note'>[];
  /** Replaces rows if there are very many jobs. */
  readonly labels: readonly { readonly text: string; readonly whole: boolean }[] | null;
  readonly moreLabels: string | null;
}

/**
 * Maximum number of rows with descriptions, of short rows, and of job names in one paragraph. Mail programs truncate mails above 100 kB.
 */
const MAX_ROWS = 40;
const MAX_SHORT_ROWS = 100;
const MAX_LABELS = 400;
/** Maximum number of parcels with a large button, a button, and a link. Further parcels are combined. */
const LARGE_BUTTONS = 6;
const MAX_BUTTONS = 40;
const MAX_PARCELS = 60;

function toBlocks(view: View, labels: Labels): Block[] {
  const parts = toSections(view);
  const rows = parts.reduce((sum, part) => sum + part.jobs.length, 0);
  let before = 0;
  let named = 0;
  return parts.map(({ title, parcels, jobs }): Block => {
    const first = before + 1;
    before += parcels.length;
    const shown = parcels.slice(0, Math.max(MAX_PARCELS - first + 1, 0));
    const left = Math.max(MAX_LABELS - named, 1);
    named += jobs.length;
    const inside = view.parcel_count > LARGE_BUTTONS ? null : labels.contents(parcels.length);
    return {
      title:
        title === 'parcels' ? labels.parcels(first, before, view.parcel_count) : title && labels.untracked,
      parcels: shown.map((parcel) => ({ text: formatParcel(parcel, labels), link: parcel.link })),
      moreParcels:
        shown.length > 0 && shown.length < parcels.length ? labels.more(parcels.length - shown.length) : null,
      list:
        title === 'parcels' ? inside : title === null && jobs === view.untracked ? labels.noTracking : null,
      jobs: rows > MAX_SHORT_ROWS ? [] : rows > MAX_ROWS ? jobs.map(shortenJob) : jobs,
      labels: rows > MAX_SHORT_ROWS ? jobs.slice(0, left).map((job) => toShortLabel(job)) : null,
      moreLabels: rows > MAX_SHORT_ROWS && jobs.length > left ? labels.more(jobs.length - left) : null,
    };
  });
}

/**
 * Groups the notice into blocks: parcels with their jobs, those beyond {@link MAX_PARCELS} in one, and jobs without parcel. For other
 * kinds, only the jobs.
 */
function toSections(view: View): {
  readonly title: 'parcels' | 'untracked' | null;
  readonly parcels: readonly ParcelView[];
  readonly jobs: readonly JobView[];
}[] {
  if (view.kind !== 'dispatched' && view.kind !== 'tracking') {
    return [{ title: null, parcels: [], jobs: view.jobs }];
  }
  let before = 0;
  const shown = view.shipments.filter(({ parcels }) => {
    const fits = before < MAX_PARCELS;
    before += parcels.length;
    return fits;
  });
  const others = view.shipments.slice(shown.length);
  return [
    ...shown.map((shipment) => ({ title: 'parcels' as const, ...shipment })),
    ...(others.length === 0
      ? []
      : [
          {
            title: 'parcels' as const,
            parcels: others.flatMap(({ parcels }) => parcels),
            jobs: [...new Set(others.flatMap(({ jobs }) => jobs))],
          },
        ]),
    ...(view.untracked.length === 0
      ? []
      : [
          {
            title: view.parcel_count > 0 ? ('untracked' as const) : null,
            parcels: [],
            jobs: view.untracked,
          },
        ]),
  ];
}

function formatParcel({ number, link }: ParcelView, labels: Labels): string {
  return link === null ? labels.trackingNumber(number ?? '') : labels.track(number);
}

function toShortLabel(job: JobView): { readonly text: string; readonly whole: boolean } {
  const text = oneLine(job.label, 60);
  return { text, whole: text.length < 25 };
}

function shortenJob(job: JobView): JobView {
  return {
    ...job,
    label: oneLine(job.label, 60),
    description: job.description === null ? null : oneLine(job.description, 80),
  };
}

/** All values of the layout. */
export interface MailParts extends Omit<RenderedFields, 'heading'> {
  readonly heading: readonly { readonly text: string; readonly whole: boolean }[];
  readonly locale: string;
  readonly brand: View['brand'];
  readonly blocks: readonly Block[];
  /** Border color of buttons. */
  readonly edge: string;
  readonly buttonPadding: string;
  /** Whether links replace buttons. */
  readonly plainLinks: boolean;
  /** Displayed form. */
  readonly website: string;
  readonly footerReason: string;
  readonly unsubscribe: string;
  readonly unsubscribeUrl: string;
}

function toMailParts(
  view: View,
  labels: Labels,
  fields: RenderedFields,
  blocks: readonly Block[],
): MailParts {
  const { color, name, website } = view.brand;
  return {
    ...fields,
    heading: splitHeading(fields.heading, view.order),
    locale: view.locale,
    brand: view.brand,
    blocks,
    // A white button would be invisible on white.
    edge: contrast(color, '#ffffff') < 1.3 ? '#c3cad1' : color,
    buttonPadding: view.parcel_count > LARGE_BUTTONS ? '8px 18px' : '13px 24px',
    plainLinks: view.parcel_count > MAX_BUTTONS,
    website: website === null ? '' : new URL(website).host.replace(/^www\./, ''),
    footerReason: labels.footerReason(name),
    unsubscribe: labels.unsubscribe,
    unsubscribeUrl: view.unsubscribe_url,
  };
}

/** Splits a heading, so that a short name in it is not broken at its hyphens. */
function splitHeading(heading: string, order: string | null): MailParts['heading'] {
  if (order === null || order.length > 24) return [{ text: heading, whole: false }];
  return heading
    .split(order)
    .flatMap((text, index) => [...(index > 0 ? [{ text: order, whole: true }] : []), { text, whole: false }]);
}

/** Line width of the text version, characters. */
const WIDTH = 72;

function toPlainText(view: View, labels: Labels, fields: RenderedFields, blocks: readonly Block[]): string {
  const { brand } = view;
  const paragraphs = (all: RenderedFields['intro']): string[] =>
    all.map((lines) => lines.map((line) => wrap(line)).join('\n'));
  const parts = [wrap(brand.name), underline(fields.heading, '='), ...paragraphs(fields.intro)];
  for (const block of blocks) {
    if (block.title !== null) parts.push(underline(block.title, '-'));
    for (const { text, link } of block.parcels) {
      parts.push(link === null ? wrap(text) : `${wrap(`${text}${labels.colon}`)}\n${link}`);
    }
    if (block.moreParcels !== null) parts.push(block.moreParcels);
    if (block.list !== null) parts.push(wrap(`${block.list}${labels.colon}`));
    parts.push(
      block.labels === null
        ? block.jobs.map((job) => formatJob(job, labels)).join('\n')
        : wrap(
            [block.labels.map((label) => label.text).join(', '), block.moreLabels].filter(Boolean).join(' '),
          ),
    );
  }
  parts.push(
    ...paragraphs(fields.outro),
    // Lines below `-- ` are a signature: mail programs omit it from replies.
    ['-- ', wrap(brand.name), ...brand.footer.map((line) => wrap(line)), brand.website]
      .filter(Boolean)
      .join('\n'),
    `${wrap(labels.footerReason(brand.name))}\n${labels.unsubscribe}${labels.colon}\n${view.unsubscribe_url}`,
  );
  return `${parts.filter((part) => part !== '').join('\n\n')}\n`;
}

function underline(text: string, line: '=' | '-'): string {
  const lines = wrap(text);
  const longest = Math.max(...lines.split('\n').map((one) => [...one].length));
  return `${lines}\n${line.repeat(Math.min(WIDTH, longest))}`;
}

function formatJob({ label, description, note }: Block['jobs'][number], { colon }: Labels): string {
  const line = description === null ? label : `${label}${colon} ${description}`;
  return [line, ...(note === null ? [] : [note])]
    .map((part, index) => wrap(part, index === 0 ? '* ' : '  ', '  '))
    .join('\n');
}

/** Wraps a text at {@link WIDTH}. Longer labels, such as links, stay whole. */
function wrap(text: string, first = '', rest = ''): string {
  const lines: string[] = [];
  let line = first;
  for (const word of text.split(' ')) {
    const begun = line.length > (lines.length === 0 ? first : rest).length;
    if (begun && line.length + 1 + word.length > WIDTH) {
      lines.push(line);
      line = `${rest}${word}`;
    } else line = begun ? `${line} ${word}` : `${line}${word}`;
  }
  return [...lines, line].join('\n');
}

/** Amount of a notice that an SMS shows. Each step shows less. */
interface SmsDetail {
  readonly description: number;
  readonly jobs: number;
  readonly parcels: number;
  readonly names: number;
  readonly links: boolean;
}

const ALL = Number.MAX_SAFE_INTEGER;
const roomy: SmsDetail = { description: 60, jobs: 6, parcels: ALL, names: 40, links: true };
/** The first of these that takes no more segments than the last one is used: details are shown where they cost nothing. */
const DETAILS: readonly SmsDetail[] = [
  roomy,
  { ...roomy, description: 30, jobs: 3 },
  { ...roomy, description: 0, jobs: 2 },
  { ...roomy, description: 0, jobs: 0 },
];
/** The first of these that fits is used. */
const LESS: readonly SmsDetail[] = [
  ...[5, 3, 2, 1].map((parcels) => ({ ...roomy, description: 0, jobs: 0, parcels })),
  { ...roomy, description: 0, jobs: 0, parcels: 1, names: 24 },
  { ...roomy, description: 0, jobs: 0, parcels: 1, names: 12 },
  { ...roomy, description: 0, jobs: 0, parcels: 3, names: 24, links: false },
  { ...roomy, description: 0, jobs: 0, parcels: 1, names: 12, links: false },
];

function renderSmsText(input: RenderInput, time: Time, cutting = true): RenderedSms {
  const { locale } = input.recipient;
  const { labels, sms } = texts[locale];
  const { text } = { ...sms[input.content.kind], ...withoutUndefined(input.template) } as SmsTemplate;
  const view = toView({ ...input, short: true });
  const attempt = (room: SmsDetail): RenderedSms => {
    const made = render('text', text, 'text', locale, toSmsVariables(view, room, labels), time);
    const line = oneLine(made, MAX_SMS_OUTPUT);
    if (line === '') throw new TemplateFault('text', 'it is empty');
    const sent = smsText(line);
    return { text: sent, ...measureSms(sent) };
  };
  const detailed: RenderedSms[] = [];
  for (const room of DETAILS) {
    const made = attempt(room);
    if (made.segments === 1) {
      if (detailed.length === 0) return made;
      detailed.push(made);
      break;
    }
    detailed.push(made);
  }
  const least = Math.min(...detailed.map((made) => made.segments));
  const best = detailed.find((made) => made.segments === least);
  if (best && least <= MAX_SEGMENTS) return best;
  let last: RenderedSms | undefined;
  for (const room of LESS) {
    last = attempt(room);
    if (last.segments <= MAX_SEGMENTS) return last;
  }
  if (!cutting)
    throw new TemplateFault('text', `it takes more than ${MAX_SEGMENTS} segments, however little it shows`);
  return truncateSms(last?.text ?? '');
}

/** Returns the variables of an SMS template. */
function toSmsVariables(view: View, room: SmsDetail, labels: Labels): object {
  const name = (text: string): string => oneLine(text, room.names);
  const jobs = view.jobs.slice(0, Math.max(room.jobs, 1)).map((job) => ({
    ...job,
    label: name(job.label),
    description:
      room.description === 0 ? null : job.description && oneLine(job.description, room.description),
  }));
  const parcels = view.parcels.slice(0, room.parcels).map((parcel) => ({
    number: parcel.number,
    link: room.links || parcel.number === null ? parcel.link : null,
  }));
  const shown = jobs.slice(0, room.jobs).map((job) => job.label);
  const others = view.count - shown.length;
  const listed =
    shown.length === 0 ? null : `${shown.join(', ')}${others > 0 ? ` ${labels.more(others)}` : ''}`;
  const tracking = parcels.flatMap((parcel) => parcel.link ?? parcel.number ?? []);
  const rest = view.parcels.length - parcels.length;
  return {
    ...view,
    brand: { ...view.brand, name: name(view.brand.name) },
    order: view.order && name(view.order),
    group: view.group && name(view.group),
    jobs: jobs.slice(0, room.jobs),
    parcels,
    shipments: [],
    untracked: [],
    details: view.count === 1 ? (jobs[0]?.description ?? null) : listed,
    tracking:
      tracking.length === 0 ? null : `${tracking.join(' ')}${rest > 0 ? ` ${labels.more(rest)}` : ''}`,
  };
}

/** Truncates a text to the size of an SMS and keeps all of its links. Only a template with very much text of its own needs it. */
function truncateSms(text: string): RenderedSms {
  const parts = text.split(' ');
  const isLink = (part: string): boolean => /^https?:/.test(part);
  const links = parts.filter(isLink);
  const prose = parts.filter((part) => !isLink(part)).join(' ');
  const room = measureSms(smsText(links.join(' '))).segments <= MAX_SEGMENTS;
  for (let length = room ? Math.min(prose.length, MAX_PROSE) : 0; length > 0; length -= 1) {
    const line = smsText([oneLine(prose, length), ...links].join(' '));
    const size = measureSms(line);
    if (size.segments <= MAX_SEGMENTS) return { text: line, ...size };
  }
  throw new TemplateFault('text', 'it does not fit into two segments');
}

/** A problem of a template's field. */
export interface TemplateProblem {
  readonly field: string;
  readonly reason: string;
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
            return [{ field, reason: 'it has to show {{ unsubscribe_url }}' }];
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
    return unknown === undefined ? undefined : `there is no variable ${unknown}`;
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

/** A template that failed to render. */
class TemplateFault extends Error {
  override readonly name = 'TemplateFault';
  readonly field: string;

  constructor(field: string, message: string, cause?: unknown) {
    super(message, { cause });
    this.field = field;
  }
}

function toRendered<T>(render: () => T): Rendered<T> {
  try {
    return { kind: 'rendered', value: render() };
  } catch (error) {
    const { field, message } = toFault(error);
    return { kind: 'failed', reason: `${field}: ${message}` };
  }
}

/** Returns the fault of a template in one line, without content of the notice. Rethrows any other error. */
function toFault(error: unknown): { readonly field: string; readonly message: string } {
  if (error instanceof TemplateFault) return error;
  throw error;
}

type Mode = 'html' | 'text';

/** A Liquid engine with its parsed templates. */
interface Engine {
  readonly liquid: Liquid;
  readonly parsed: Map<string, Parsed[]>;
}
const engines = new Map<string, Engine>();
/** Maximum number of cached parsed templates of a locale. 30 are built in. */
const MAX_PARSED = 200;

/** Remaining time of a template. */
interface Time {
  ms: number;
}

function render(
  field: string,
  source: string,
  mode: Mode,
  locale: Locale,
  scope: object,
  time: Time,
): string {
  if (!source.includes('{')) return source;
  const from = performance.now();
  try {
    const engine = getEngine(mode, locale);
    const text = String(engine.liquid.renderSync(parse(source, engine), scope, { renderLimit: time.ms }));
    if (text.length > MAX_OUTPUT) throw new TemplateFault(field, 'it makes too much text');
    return text;
  } catch (error) {
    if (error instanceof TemplateFault) throw error;
    throw new TemplateFault(field, formatLiquidError(error), error);
  } finally {
    time.ms -= performance.now() - from;
  }
}

/** Returns the first line of a Liquid error. It contains names and positions in the template only. */
function formatLiquidError(error: unknown): string {
  // A string above the engine's maximum length fails with a RangeError.
  if (error instanceof RangeError) return 'it makes too much text';
  if (!LiquidError.is(error as LiquidError)) return 'it does not come out';
  const [first = ''] = (error as LiquidError).message.split('\n');
  return oneLine(rewordLiquidMessage(first), 200);
}

/** Prefixes of Liquid's messages, and our wording. */
const LIQUID_MESSAGES: readonly (readonly [RegExp, string])[] = [
  [/^undefined variable: /, 'there is no variable '],
  [/^undefined filter: /, 'there is no filter '],
  [/^tag "([^"]*)" not found/, 'there is no tag $1'],
  [/^output "(.*)" not closed/, '$1 is not closed'],
  [/^tag (.*) not closed/, '$1 is not closed'],
];

function rewordLiquidMessage(complaint: string): string {
  const placed = complaint.replace(/, line:(\d+), col:(\d+)$/, ' (line $1, column $2)');
  return LIQUID_MESSAGES.reduce((text, [from, to]) => text.replace(from, to), placed);
}

function parse(source: string, { liquid, parsed }: Engine): Parsed[] {
  let template = parsed.get(source);
  if (!template) {
    template = liquid.parse(source);
    if (parsed.size >= MAX_PARSED) parsed.clear();
    parsed.set(source, template);
  }
  return template;
}

/** Returns the engine for an output mode and a locale, with its plural rules. In HTML all output is escaped. */
function getEngine(mode: Mode, locale: Locale): Engine {
  const key = `${mode} ${locale}`;
  let engine = engines.get(key);
  if (!engine) {
    engine = { liquid: createLiquid(mode, locale), parsed: new Map() };
    engines.set(key, engine);
  }
  return engine;
}

function createLiquid(mode: Mode, locale: Locale): Liquid {
  const liquid = new Liquid({
    strictVariables: true,
    strictFilters: true,
    ownPropertyOnly: true,
    parseLimit: 250_000,
    memoryLimit: 5_000_000,
    ...(mode === 'html' && { outputEscape: (value) => escapeHtml(stringify(value)) }),
  });
  limitOutput(liquid);
  const plurals = new Intl.PluralRules(locale);
  liquid.registerFilter('plural', (count: unknown, one: unknown, other: unknown) =>
    plurals.select(Number(count)) === 'one' ? one : other,
  );
  // Templates cannot include others, least of all files.
  for (const tag of ['include', 'render', 'layout', 'block']) delete liquid.tags[tag];
  // All output is escaped once, and templates cannot disable that.
  liquid.unregisterFilter('raw');
  // Filters that evaluate expressions for each element bypass the limits of time and memory.
  for (const name of Object.keys(liquid.filters)) if (name.endsWith('_exp')) liquid.unregisterFilter(name);
  if (mode === 'html') {
    liquid.registerFilter('escape', (value: unknown) => value);
    liquid.registerFilter('escape_once', (value: unknown) => value);
    liquid.registerFilter('newline_to_br', {
      raw: true,
      handler: (value: unknown) => escapeHtml(stringify(value)).replace(/\r?\n/g, '<br />\n'),
    });
  }
  return liquid;
}

/** Counts output and captures of templates as memory. Otherwise a text that captures itself twice would grow without limit. */
function limitOutput({ renderer }: Liquid): void {
  const renderTemplates = renderer.renderTemplates.bind(renderer);
  renderer.renderTemplates = function* (templates, context, emitter): IterableIterator<unknown> {
    const made: unknown = yield* renderTemplates(templates, context, emitter);
    // With an emitter it is part of an output that is counted as a whole.
    if (!emitter && typeof made === 'string') context.memoryLimit.use(made.length);
    return made;
  };
}

function stringify(value: unknown): string {
  return Array.isArray(value) ? value.map(stringify).join('') : String(value ?? '');
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};
function escapeHtml(text: string): string {
  return /[&<>"']/.test(text) ? text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '') : text;
}

/** Returns a template without undefined fields. */
function withoutUndefined<T extends object>(template: T | undefined): Partial<T> {
  return Object.fromEntries(
    Object.entries(template ?? {}).filter(([, value]) => value !== undefined),
  ) as Partial<T>;
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
