/** Parts of an e-mail: values of the layout and of the text version. */
import { contrast, type JobView, oneLine, type ParcelView, type View } from './template-variables.ts';
import type { Labels } from './texts/language.ts';

/** Rendered fields of a template. */
export interface RenderedFields {
  readonly subject: string;
  readonly preheader: string;
  readonly heading: string;
  readonly intro: readonly (readonly string[])[];
  readonly outro: readonly (readonly string[])[];
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

/** A parcel with its jobs, or jobs without a parcel. */
export type Block = Readonly<ReturnType<typeof toBlocks>[number]>;

export function toBlocks(view: View, labels: Labels) {
  const parts = toSections(view);
  const rows = parts.reduce((sum, part) => sum + part.jobs.length, 0);
  let before = 0;
  let named = 0;
  return parts.map(({ title, parcels, jobs }) => {
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
      /** Heading above the jobs. */
      list:
        title === 'parcels' ? inside : title === null && jobs === view.untracked ? labels.noTracking : null,
      jobs: rows > MAX_SHORT_ROWS ? [] : rows > MAX_ROWS ? jobs.map(shortenJob) : jobs,
      /** Replaces rows if there are very many jobs. */
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

function formatParcel({ number, link, carrier }: ParcelView, labels: Labels): string {
  return link === null ? labels.trackingNumber(number ?? '') : labels.track(number, carrier);
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
export type MailParts = Readonly<ReturnType<typeof toMailParts>>;

export function toMailParts(view: View, labels: Labels, fields: RenderedFields, blocks: readonly Block[]) {
  const { color, name, website } = view.brand;
  return {
    ...fields,
    heading: splitHeading(fields.heading, view.order),
    locale: view.locale,
    brand: view.brand,
    blocks,
    /** Border color of buttons. A white button would be invisible on white. */
    edge: contrast(color, '#ffffff') < 1.3 ? '#c3cad1' : color,
    buttonPadding: view.parcel_count > LARGE_BUTTONS ? '8px 18px' : '13px 24px',
    /** Whether links replace buttons. */
    plainLinks: view.parcel_count > MAX_BUTTONS,
    /** Displayed form. */
    website: website === null ? '' : new URL(website).host.replace(/^www\./, ''),
    footerReason: labels.footerReason(name),
    unsubscribe: labels.unsubscribe,
    unsubscribeUrl: view.unsubscribe_url,
  };
}

/** Splits a heading, so that a short name in it is not broken at its hyphens. */
function splitHeading(heading: string, order: string | null): NonNullable<Block['labels']> {
  if (order === null || order.length > 24) return [{ text: heading, whole: false }];
  return heading
    .split(order)
    .flatMap((text, index) => [...(index > 0 ? [{ text: order, whole: true }] : []), { text, whole: false }]);
}
