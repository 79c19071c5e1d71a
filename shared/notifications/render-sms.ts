/** Rendering of SMS, shortened to the maximum number of segments. */

import { withoutUndefined } from '../resources.ts';
import { render, TemplateFault, type Time } from './liquid.ts';
import type { RenderedSms, RenderInput } from './render-types.ts';
import { measureSms, smsText } from './sms-text.ts';
import type { SmsTemplate } from './template.ts';
import { oneLine, toView, type View } from './template-variables.ts';
import type { Labels } from './texts/language.ts';
import { texts } from './texts/texts.ts';

/** Maximum length of an SMS template's output that is processed. */
const MAX_SMS_OUTPUT = 10_000;

/** Maximum SMS segments. SMS are billed by segment. */
const MAX_SEGMENTS = 2;

/** Maximum length of prose, characters. At least its beginning fits into {@link MAX_SEGMENTS}, with room for characters that SMS drop. */
const MAX_PROSE = 500;

/** Amount of a notice that an SMS shows. Each step shows less. */
interface SmsDetail {
  readonly description: number;
  readonly jobs: number;
  readonly parcels: number;
  readonly names: number;
  /** Which links are shown: those of all parcels, those of parcels without a number, or none. */
  readonly links: 'all' | 'unnumbered' | 'none';
}

const ALL = Number.MAX_SAFE_INTEGER;

export const roomy: SmsDetail = { description: 60, jobs: 6, parcels: ALL, names: 40, links: 'all' };

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
  { ...roomy, description: 0, jobs: 0, parcels: 3, names: 24, links: 'unnumbered' },
  { ...roomy, description: 0, jobs: 0, parcels: 1, names: 12, links: 'unnumbered' },
  { ...roomy, description: 0, jobs: 0, parcels: 1, names: 24, links: 'none' },
  { ...roomy, description: 0, jobs: 0, parcels: 1, names: 12, links: 'none' },
];

export function renderSmsText(input: RenderInput, time: Time, cutting = true): RenderedSms {
  const { locale } = input.recipient;
  const { labels, sms } = texts[locale];
  const { text } = { ...sms[input.content.kind], ...withoutUndefined(input.template ?? {}) } as SmsTemplate;
  const view = toView({ ...input, short: true });
  const attempt = (room: SmsDetail): RenderedSms => {
    const rendered = render('text', text, 'text', locale, toSmsVariables(view, room, labels), time);
    const line = oneLine(rendered, MAX_SMS_OUTPUT);
    if (line === '') throw new TemplateFault('text', 'it is empty');
    const sent = smsText(line);
    return { text: sent, ...measureSms(sent) };
  };
  const detailed: RenderedSms[] = [];
  for (const room of DETAILS) {
    const candidate = attempt(room);
    if (candidate.segments === 1) return candidate;
    detailed.push(candidate);
  }
  const [best] = detailed.sort((a, b) => a.segments - b.segments);
  if (best && best.segments <= MAX_SEGMENTS) return best;
  let last: RenderedSms | undefined;
  for (const room of LESS) {
    last = attempt(room);
    if (last.segments <= MAX_SEGMENTS) return last;
  }
  if (!cutting)
    throw new TemplateFault(
      'text',
      `it takes more than ${MAX_SEGMENTS} segments even with the shortest values`,
    );
  return truncateSms(last?.text ?? '');
}

/** Returns the variables of an SMS template. */
export function toSmsVariables(view: View, room: SmsDetail, labels: Labels): object {
  const name = (text: string): string => oneLine(text, room.names);
  const jobs = view.jobs.slice(0, Math.max(room.jobs, 1)).map((job) => ({
    ...job,
    label: name(job.label),
    description:
      room.description === 0 ? null : job.description && oneLine(job.description, room.description),
  }));
  const parcels = view.parcels.slice(0, room.parcels).map((parcel) => ({
    ...parcel,
    link:
      room.links === 'all' || (room.links === 'unnumbered' && parcel.number === null) ? parcel.link : null,
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

/** Truncates a text to the size of an SMS and keeps all of its links. Only a template with very much additional text needs it. */
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
