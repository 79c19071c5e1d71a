/**
 * Variables of templates: customer text sanitized for one line, dates as text, and each parcel once, with its jobs. All values are plain
 * text, which the channel escapes.
 */
import { getOrCreate } from '../get-or-create.ts';
import { dayNamed, readTimes } from '../tracking/timestamps.ts';
import type { RenderInput } from './render-types.ts';
import { texts } from './texts/texts.ts';
import type { JobFacts, Locale, Parcel } from './types.ts';

export interface JobView {
  readonly number: number;
  /** The order number, else the job number with a prefix. */
  readonly label: string;
  readonly order_number: string | null;
  readonly description: string | null;
  readonly date_out: string | null;
  readonly date_due: string | null;
  readonly former_date_due: string | null;
  /** The dates, if they differ between jobs. */
  readonly note: string | null;
  readonly parcels: readonly ParcelView[];
}

export interface ParcelView {
  readonly number: string | null;
  /** http or https URL, or `null`. */
  readonly link: string | null;
  /** Name of the carrier, if the host of the link reveals it. */
  readonly carrier: string | null;
}

interface Shipment {
  readonly parcels: readonly ParcelView[];
  readonly jobs: readonly JobView[];
}

/** Content, recipient and branding. */
export interface ViewInput extends Omit<RenderInput, 'template'> {
  /** Whether to use short dates and no direction marks, as in SMS. */
  readonly short?: boolean;
}

/** Maximum length of displayed text, characters. Longer text is truncated. */
const MAX_NAME = 80;
const MAX_LABEL = 80;
const MAX_DESCRIPTION = 240;
const MAX_DESCRIPTION_OF_MANY = 80;
const MANY_JOBS = 100;
const MAX_NOTE_LINE = 1000;
const MAX_TRACKING_NUMBER = 80;
const MAX_LINK = 2000;
/** Default for an invalid color. */
const PLAIN_COLOR = '#1f2937';

/** Variables of a notice: those of docs/notifications.md. */
export type View = Readonly<ReturnType<typeof toView>>;

/** Returns all variables of a notice. */
export function toView({ content, recipient, branding, replyTo, unsubscribeUrl, short }: ViewInput) {
  const { kind, orderGroup } = content;
  const { locale, zone } = recipient;
  const { labels } = texts[locale];
  const text = (value: string | null, max: number): string | null => {
    const line = oneLine(value ?? '', max);
    return line === '' ? null : short ? line : isolate(line);
  };
  const year = formatYear(content.observedAt, zone);
  const days = new Map<string | null, string | null>([[null, null]]);
  const day = (value: string | null): string | null => {
    const known = days.get(value);
    if (known !== undefined) return known;
    const formatted = formatDay(value, locale, zone, year, short === true);
    days.set(value, formatted);
    return formatted;
  };
  const findParcel = indexParcels(content.jobs, (number) => text(number, MAX_TRACKING_NUMBER));

  const room = content.jobs.length > MANY_JOBS ? MAX_DESCRIPTION_OF_MANY : MAX_DESCRIPTION;
  const withoutNotes = content.jobs.map((job) => {
    const order_number = text(job.orderNumber, MAX_LABEL);
    const [date_due, former_date_due] = formatDueDates(job, day, (value) => formatTime(value, locale, zone));
    return {
      number: job.jobNumber,
      label: order_number ?? labels.job(job.jobNumber),
      order_number,
      description: text(job.description, room),
      date_out: day(job.dateOut),
      date_due,
      former_date_due,
      parcels: [...new Set(job.tracking.flatMap((parcel) => findParcel(parcel) ?? []))],
    };
  });
  const date_out = commonValue(withoutNotes.map((job) => job.date_out));
  const date_due = commonValue(withoutNotes.map((job) => job.date_due));
  const former_date_due = commonValue(withoutNotes.map((job) => job.former_date_due));
  const jobs = withoutNotes.map((job): JobView => {
    const { date_out: out, date_due: to, former_date_due: from } = job;
    const dispatched = kind === 'dispatched' && date_out === null && out !== null;
    const moved = kind === 'due_date_changed' && (to ?? from) !== null && !(date_due && former_date_due);
    return {
      ...job,
      note: dispatched ? labels.dispatchedOn(out) : moved ? labels.newDueDate(to, from) : null,
    };
  });
  const shipments = groupShipments(jobs);
  const parcels = shipments.flatMap((shipment) => shipment.parcels);
  const group = text(orderGroup, MAX_LABEL);
  const color = /^#[\da-f]{6}$/i.test(branding.color) ? branding.color.toLowerCase() : PLAIN_COLOR;
  return {
    kind,
    locale,
    name: text(recipient.name, MAX_NAME),
    brand: {
      name: text(branding.name, MAX_NAME) ?? '',
      website: parseLink(branding.website),
      logo: parseLink(branding.logoUrl, ['https:']),
      color,
      color_text: textColorOn(color),
      footer: (branding.footer ?? '').split(/\r\n?|\n/).flatMap((line) => text(line, MAX_DESCRIPTION) ?? []),
      /** Address that answers go to. */
      reply_to: replyTo ?? null,
    },
    /** Name that customers use: the order group, else the order number, else the job number. `null` if the jobs have none in common. */
    order:
      group ??
      commonValue(jobs.map((job) => job.order_number)) ??
      (jobs.length === 1 ? `${jobs[0]?.number}` : null),
    group,
    count: jobs.length,
    jobs,
    parcel_count: parcels.length,
    /** Number of parcels with a link. */
    link_count: parcels.filter((parcel) => parcel.link !== null).length,
    parcels,
    /** Parcels with the same jobs, and these jobs. */
    shipments,
    /** Jobs without tracking. */
    untracked: jobs.filter((job) => job.parcels.length === 0),
    /** `null` if the jobs differ. */
    date_out,
    date_due,
    former_date_due,
    unsubscribe_url: unsubscribeUrl,
    /** Text of a note, with its line breaks except in SMS. Absent otherwise. */
    ...(content.text === undefined
      ? {}
      : {
          note_text: content.text
            .split(/\r\n?|\n/)
            .map((line) => text(line, MAX_NOTE_LINE) ?? '')
            .join('\n')
            .trim(),
        }),
  };
}

/**
 * Returns a text as one line: without control characters, and without marks that change the direction of the following text. Truncated to
 * at most `max` characters, never within a grapheme, and if possible between words.
 */
export function oneLine(text: string, max: number): string {
  // Text after this is never displayed, however much of the beginning is removed.
  const start = text.length > max * 8 ? text.slice(0, max * 8) : text;
  const line = PLAIN.test(start)
    ? start
    : start
        .toWellFormed()
        .replace(/[\u200b\u200e\u200f\u061c\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g, '')
        // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are removed.
        .replace(/[\u0000-\u001f\u007f-\u009f\s]+/g, ' ')
        .trim();
  return truncate(line, max);
}

/** Truncates a line to at most `max` characters, including the ellipsis. */
export function truncate(line: string, max: number): string {
  if (line.length <= max) return line;
  const kept = takeGraphemes(line, max - 1);
  const space = kept.lastIndexOf(' ');
  return `${(space > max * 0.8 ? kept.slice(0, space) : kept).trimEnd()}…`;
}

/** Returns the start of a text up to this length, in whole graphemes. */
function takeGraphemes(text: string, length: number): string {
  // No character of these ranges combines with the one before it.
  if (/^[ -\u02ff\u2010-\u2027]*$/.test(text.slice(0, length + 1))) return text.slice(0, length);
  graphemes ??= new Intl.Segmenter('en', { granularity: 'grapheme' });
  return text.slice(0, graphemes.segment(text.slice(0, length + 100)).containing(length)?.index);
}

/** Text that needs no processing: printable ASCII and Latin letters, without consecutive spaces. */
const PLAIN = /^(?:[!-~\u00a1-\u00ac\u00ae-\u024f]+(?: (?! |$)|$))*$/;

/** Created when it is needed, because it loads 8 ms of language data. */
let graphemes: Intl.Segmenter | undefined;
/** Right-to-left scripts: Hebrew, Arabic, Syriac and related ones. */
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

/** Isolates a text of the other direction, so that the text around it keeps its position. */
function isolate(text: string): string {
  return RIGHT_TO_LEFT.test(text) ? `\u2068${text}\u2069` : text;
}

/** Parses a link as browsers do. `null` if it is not a web page. */
export function parseLink(
  link: string | null,
  protocols: readonly string[] = ['https:', 'http:'],
): string | null {
  const url = link === null ? null : URL.parse(link.trim());
  if (!url || !protocols.includes(url.protocol) || url.username !== '' || url.password !== '') return null;
  return url.href.length > MAX_LINK ? null : url.href;
}

/** Returns white if it is legible on a color (#rrggbb), otherwise black. One of them always is (WCAG 2: 4.5 to 1). */
export function textColorOn(color: string): '#ffffff' | '#000000' {
  return contrast(color, '#ffffff') >= 4.5 ? '#ffffff' : '#000000';
}

/** Returns the contrast of two colors (#rrggbb): 1 to 21 (WCAG 2). */
export function contrast(one: string, other: string): number {
  const [light = 0, dark = 0] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05);
}

function luminance(color: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(color.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/**
 * Returns the parcel of each mention. Parcels are identified by number, else by link, which may belong to a number. A link of
 * any mention counts.
 */
function indexParcels(
  jobs: readonly JobFacts[],
  text: (number: string | null) => string | null,
): (parcel: Parcel) => ParcelView | undefined {
  const found = new Map<string, ParcelView>();
  const byLink = new Map<string, string>();
  const mentions = jobs.flatMap((job) => job.tracking);
  for (const { number, link } of mentions) {
    const displayed = text(number);
    const key = number?.trim();
    if (displayed === null || !key) continue;
    const known = found.get(key)?.link ?? parseLink(link);
    found.set(key, { number: displayed, link: known, carrier: getCarrier(known) });
    if (known !== null && !byLink.has(known)) byLink.set(known, key);
  }
  for (const { number, link } of mentions) {
    const own = text(number) === null ? parseLink(link) : null;
    if (own !== null && !byLink.has(own)) {
      byLink.set(own, own);
      found.set(own, { number: null, link: own, carrier: getCarrier(own) });
    }
  }
  return ({ number, link }) =>
    found.get(number?.trim() ?? '') ?? found.get(byLink.get(parseLink(link) ?? '') ?? '');
}

/** Carriers by the domains of their tracking pages. DHL and GLS have one for each country. */
const CARRIERS: readonly (readonly [name: string, domains: RegExp])[] = [
  ['UPS', /(^|\.)ups\.com$/],
  ['FedEx', /(^|\.)fedex\.com$/],
  ['USPS', /(^|\.)usps\.com$/],
  ['OnTrac', /(^|\.)ontrac\.com$/],
  ['DHL', /(^|\.)dhl\.[a-z.]+$/],
  ['DPD', /(^|\.)dpd\.[a-z.]+$/],
  ['GLS', /(^|\.)gls-[a-z]+\.[a-z.]+$/],
  ['TNT', /(^|\.)tnt\.com$/],
  ['Royal Mail', /(^|\.)royalmail\.com$/],
  ['Parcelforce', /(^|\.)parcelforce\.com$/],
  ['Evri', /(^|\.)evri\.com$/],
  ['Australia Post', /(^|\.)auspost\.com\.au$/],
  ['StarTrack', /(^|\.)startrack\.com\.au$/],
  ['NZ Post', /(^|\.)nzpost\.co\.nz$/],
  ['Aramex', /(^|\.)aramex\.[a-z.]+$/],
  ['Chronopost', /(^|\.)chronopost\.fr$/],
  ['Colissimo', /(^|\.)(colissimo|laposte)\.fr$/],
];

function getCarrier(link: string | null): string | null {
  if (link === null) return null;
  const { hostname } = new URL(link);
  return CARRIERS.find(([, domains]) => domains.test(hostname))?.[0] ?? null;
}

/** Groups jobs by parcel, each parcel once, and parcels with the same jobs together. */
function groupShipments(jobs: readonly JobView[]): Shipment[] {
  const contents = new Map<ParcelView, JobView[]>();
  for (const job of jobs) {
    for (const parcel of job.parcels) getOrCreate(contents, parcel, () => []).push(job);
  }
  const shipments = new Map<string, { parcels: ParcelView[]; jobs: JobView[] }>();
  for (const [parcel, inside] of contents) {
    const key = inside.map((job) => job.number).join();
    getOrCreate(shipments, key, () => ({ parcels: [], jobs: inside })).parcels.push(parcel);
  }
  return [...shipments.values()];
}

/** Returns the common value, or `null` if the values differ. */
function commonValue(values: readonly (string | null)[]): string | null {
  return new Set(values).size === 1 ? (values[0] ?? null) : null;
}

/** Returns a due date and its former value, with the time of day if only that changed. */
function formatDueDates(
  { dateDue, formerDateDue }: JobFacts,
  day: (value: string | null) => string | null,
  time: (value: string) => string,
): [string | null, string | null] {
  const to = day(dateDue);
  const from = day(formerDateDue);
  const isSameDay = to !== null && to === from;
  if (!isSameDay || dateDue === null || formerDateDue === null || dateDue === formerDateDue)
    return [to, from];
  return [`${to}${time(dateDue)}`, `${from}${time(formerDateDue)}`];
}

/**
 * Formats the day of an upstream date. A date with an offset and a time of day is a point in time, formatted in the zone. A midnight is
 * that day in any zone, as is a date without offset. `null` if it is not a date.
 */
function formatDay(
  value: string | null,
  locale: Locale,
  zone: string,
  year: string,
  short: boolean,
): string | null {
  const day = value === null ? undefined : dayNamed(value, zone);
  if (day === undefined) return null;
  const dates = getFormat(
    locale,
    'UTC',
    short ? (day.startsWith(year) ? 'short' : 'short year') : day.startsWith(year) ? 'day' : 'day year',
  );
  const formatted = dates.format(new Date(day));
  const text = locale === 'fr' ? formatted.replace(/(^|\s)1(?=\s\p{L})/u, '$11er') : formatted;
  // Keeps the day of a month on one line with its month.
  return short ? text : text.replace(/(?<=\d\S*) (?=\p{L})|(?<=\p{L}) (?=\d)/gu, '\u00a0');
}

/** Returns the time of day with a leading comma. Empty for midnight, which means the whole day. */
function formatTime(value: string, locale: Locale, zone: string): string {
  const [, time, offset] = /[T ](\d\d:\d\d)[^Z+-]*(Z|[+-].*)?$/i.exec(value.trim()) ?? [];
  const reading = time === undefined || time === '00:00' ? undefined : readTimes(value, 'UTC');
  if (!reading) return '';
  return `, ${getFormat(locale, offset === undefined ? 'UTC' : zone, 'time').format(reading.earliest)}`;
}

function formatYear(time: number, zone: string): string {
  return getFormat('en-GB', zone, 'year').format(time);
}

const STYLES = {
  day: { weekday: 'long', day: 'numeric', month: 'long' },
  'day year': { weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' },
  short: { weekday: 'short', day: 'numeric', month: 'short' },
  'short year': { day: 'numeric', month: 'short', year: 'numeric' },
  time: { hour: 'numeric', minute: '2-digit' },
  year: { year: 'numeric' },
} as const satisfies { readonly [style: string]: Intl.DateTimeFormatOptions };

/** Cache: creating a format takes a hundred times as long as using it. Zones are few, and an invalid one counts as UTC. */
const formats = new Map<string, Intl.DateTimeFormat>();
function getFormat(locale: Locale, timeZone: string, style: keyof typeof STYLES): Intl.DateTimeFormat {
  const key = `${locale} ${timeZone} ${style}`;
  let created = formats.get(key);
  if (!created) {
    try {
      created = new Intl.DateTimeFormat(locale, { ...STYLES[style], timeZone });
    } catch {
      created = new Intl.DateTimeFormat(locale, { ...STYLES[style], timeZone: 'UTC' });
    }
    if (formats.size > 5000) formats.clear();
    formats.set(key, created);
  }
  return created;
}
