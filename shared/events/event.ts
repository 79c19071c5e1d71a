/** The envelope: a numbered event of an account's log as a CloudEvents 1.0 structured JSON document. */
import { type AccountRef, isCell, pad } from '../storage/schema.ts';
import type { EventData, EventType } from './catalogue.ts';
import { getSchemaPath } from './types.ts';

/** An event that has been decided but not yet numbered. `time`: time of the answer that shows it (epoch ms). */
export type EventDraft = {
  [T in EventType]: {
    readonly type: T;
    /** The job it is about; absent for events about the account. */
    readonly jobNumber?: number;
    readonly time: number;
    /** Data without the fields that the log adds. An event about an endpoint contains `account`, which is not that of the log. */
    readonly data: Omit<EventData<T>, T extends `endpoint.${string}` ? 'region' : 'account' | 'region'>;
  };
}[EventType];

/** A CloudEvents 1.0 envelope with the `sequence` extension (20 digits, sorts as text). Key order is fixed. */
export interface JobEvent {
  readonly specversion: '1.0';
  /** `<account>.<epoch>.<sequence>`; never reused. */
  readonly id: string;
  /**
   * `/regions/<region>/accounts/<account>`; `/regions/<region>` in a cell's own log. Begins with the public URL if one was
   * configured when the event was recorded.
   */
  readonly source: string;
  readonly type: EventType;
  /** `jobs/<jobNumber>` or `order-groups/<name, percent-encoded>`; absent for events about the account. */
  readonly subject?: string;
  readonly time: string;
  readonly sequence: string;
  readonly dataschema: string;
  readonly datacontenttype: 'application/json';
  /** Without an account in a cell's own log. */
  readonly data: { readonly account?: string; readonly region: string } & Record<string, unknown>;
}

/** Base URLs of an envelope's fields, without a final slash. */
export interface EventUrls {
  /** Prefix of `dataschema`. */
  readonly schemaBaseUrl: string;
  /** Prefix of `source`: the configured public URL. Default: none, so that `source` is a path. */
  readonly sourceBaseUrl?: string | undefined;
}

/** Returns `source` of the events in the log of `ref`. */
export function getSource({ region, account }: AccountRef, { sourceBaseUrl = '' }: EventUrls): string {
  const path = isCell({ region, account }) ? `/regions/${region}` : `/regions/${region}/accounts/${account}`;
  return `${sourceBaseUrl}${path}`;
}

/** Returns `dataschema` of the events of a type. */
export function getDataSchemaUrl(type: EventType, { schemaBaseUrl }: EventUrls): string {
  return `${schemaBaseUrl}${getSchemaPath(type)}`;
}

/** Numbers a draft: the envelope of the event at `sequence` of the log of `ref` in `epoch`. */
export function toEvent(
  draft: EventDraft,
  ref: AccountRef,
  place: { epoch: string; sequence: number },
  urls: EventUrls,
): JobEvent {
  const { region, account } = ref;
  const about = isCell(ref) ? { region } : { account, region };
  const subject = getSubject(draft);
  return {
    specversion: '1.0',
    id: `${account}.${place.epoch}.${place.sequence}`,
    source: getSource(ref, urls),
    type: draft.type,
    ...(subject === undefined ? {} : { subject }),
    time: new Date(draft.time).toISOString(),
    sequence: pad(place.sequence, 20),
    dataschema: getDataSchemaUrl(draft.type, urls),
    datacontenttype: 'application/json',
    data: { ...about, ...draft.data },
  };
}

function getSubject(draft: EventDraft): string | undefined {
  if (draft.type === 'order_group.dispatched' || draft.type === 'order_group.partially_dispatched') {
    // Customers can put half a character into a name.
    return `order-groups/${encodeURIComponent(draft.data.orderGroup.toWellFormed())}`;
  }
  return draft.jobNumber === undefined ? undefined : `jobs/${draft.jobNumber}`;
}
