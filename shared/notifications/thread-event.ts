/** Events as threads use them. */
import { hash } from 'node:crypto';
import * as z from 'zod';
import type { LoggedEvent } from '../log/log.ts';
import type { Parcel } from './types.ts';

/** The position of an event in its account's log. Epochs sort by time. */
export interface Mark {
  readonly epoch: string;
  readonly sequence: number;
}

const MAX_TEXT = 200;

const MAX_LINK = 2000;

const MAX_PARCELS = 100;

const text = z
  .string()
  .nullish()
  .transform((value) => value || null);

/** An optional detail: any other type counts as `null`. */
const more = text.catch(null);

const change = z.object({ from: text, to: text }).optional();

const parcel = z.object({ number: text, link: text }).transform(({ number, link }): Parcel[] => {
  const clean = { number: truncate(number), link: parseLink(link) };
  return clean.number === null && clean.link === null ? [] : [clean];
});

const parcels = z
  .array(z.unknown())
  .catch([])
  .transform((all) => {
    const read = all.slice(0, MAX_PARCELS).flatMap((one) => parcel.safeParse(one).data ?? []);
    return [...new Map(read.map((one) => [parcelKey(one), one])).values()];
  });

const EventData = z.object({
  data: z.object({
    /** The job after the event. */
    job: z.object({
      jobNumber: z.int().nonnegative(),
      orderGroup: text,
      orderNumber: text,
      description: more,
      dateDue: more,
      dateOut: text,
      tracking: parcels,
    }),
    changes: z.object({ dateOut: change, dateDue: change, orderGroup: change }).default({}),
    tracking: z.unknown().optional(),
    /** IANA zone of the job's location, of job.dispatched. Absent in events of former releases, `null` if it is not known. */
    zone: more,
  }),
});

type EventFields = z.output<typeof EventData>['data'];

/** The fields of an event that folding uses. */
export interface ThreadEvent extends Pick<EventFields, 'job' | 'changes' | 'zone'> {
  readonly type: string;
  readonly mark: Mark;
  /** Time of observation (epoch ms). */
  readonly time: number;
  /** Changed parcels of job.tracking_updated. */
  readonly parcels: readonly { readonly from: Parcel; readonly to: Parcel }[];
}

/** Parses an event. Returns a short description of the problem, without customer text, if it is invalid. */
export function parseThreadEvent(
  event: LoggedEvent,
): { readonly parsed: ThreadEvent } | { readonly problem: string } {
  const place = /\.([0-9a-z]{1,32})\.(\d{1,15})$/.exec(event.id);
  if (!place) return { problem: 'its id is not valid' };
  let json: unknown;
  try {
    json = JSON.parse(event.json);
  } catch {
    return { problem: 'it is not JSON' };
  }
  const read = EventData.safeParse(json);
  if (!read.success) {
    const [issue] = read.error.issues;
    return { problem: `${issue?.path.join('.') ?? 'a field'} is not valid` };
  }
  const { job, changes, tracking, zone } = read.data.data;
  const { type, time } = event;
  if (event.jobNumber !== undefined && event.jobNumber !== job.jobNumber) {
    return { problem: 'it is about another job' };
  }
  if (type === 'job.dispatched' && job.dateOut === null) return { problem: 'it has no dispatch date' };
  const updated = type === 'job.tracking_updated' && Array.isArray(tracking) ? tracking : [];
  return {
    parsed: {
      ...{ type, time, job, changes, zone },
      mark: { epoch: place[1] ?? '', sequence: Number(place[2]) },
      parcels: updated.flatMap((one: { from?: unknown; to?: unknown } | null) => {
        const [from] = parcel.safeParse(one?.from).data ?? [];
        const [to] = parcel.safeParse(one?.to).data ?? [];
        return from && to ? [{ from, to }] : [];
      }),
    },
  };
}

/** Truncates without splitting a surrogate pair. */
export function truncate(text: string | null): string | null {
  if (text === null || text.length <= MAX_TEXT) return text === '' ? null : text;
  return `${text.slice(0, MAX_TEXT - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}

function parseLink(link: string | null): string | null {
  if (link === null || link.length > MAX_LINK) return null;
  const url = URL.parse(link);
  return url?.protocol === 'https:' || url?.protocol === 'http:' ? link : null;
}

/** Returns the key of a parcel: its number, or else its link. Keys are short, because a thread remembers many. */
export function parcelKey({ number, link }: Parcel): string {
  const name = number !== null ? `n${number}` : `l${link}`;
  return name.length <= 12 ? name : `#${hash('sha256', name, 'base64url').slice(0, 11)}`;
}
