/** The part of EventBridge that a cell uses: puts events on the buses of the template, within the limits of EventBridge. */
import { randomUUID } from 'node:crypto';
import type { JobwireEvent } from '../../receive/index.ts';

/** An entry of PutEvents. */
export interface BusEntry {
  readonly EventBusName: string;
  readonly Source: string;
  readonly DetailType: string;
  /** JSON text of an object. */
  readonly Detail: string;
  readonly Resources?: readonly string[];
  /** Epoch seconds. */
  readonly Time?: number;
}

/** `detail` of an event on the bus: fields for event patterns, and the event itself. */
export interface BusDetail {
  readonly [name: string]: unknown;
  readonly event: JobwireEvent;
}

/** Parses `detail` of an entry. */
export const parseDetail = ({ Detail }: BusEntry): BusDetail => JSON.parse(Detail);

const MAX_ENTRIES = 10;
/** Maximum size of a request (bytes). */
const MAX_BYTES = 262_144;
const TIME_BYTES = 14;

/** Records the accepted entries, in order. */
export class EventBuses {
  readonly entries: BusEntry[] = [];
  readonly #arns: readonly string[];

  constructor(arns: readonly string[]) {
    this.#arns = arns;
  }

  /** Returns the response to a request. A text is the message of a validation error. */
  put(entries: readonly BusEntry[]): object | string {
    if (entries.length === 0 || entries.length > MAX_ENTRIES) {
      return `A request has 1 to ${MAX_ENTRIES} entries, and this one has ${entries.length}.`;
    }
    const bytes = entries.reduce((sum, entry) => sum + measure(entry), 0);
    if (bytes > MAX_BYTES) return `The request has ${bytes} bytes, more than ${MAX_BYTES}.`;
    const results = entries.map((entry) => {
      const [code, message] = this.#validate(entry);
      if (code) return { ErrorCode: code, ErrorMessage: message };
      this.entries.push(entry);
      return { EventId: randomUUID() };
    });
    return { FailedEntryCount: results.filter(({ EventId }) => !EventId).length, Entries: results };
  }

  /** Returns the code and the message of an error. */
  #validate({ EventBusName, Source, DetailType, Detail }: BusEntry): [code?: string, message?: string] {
    if (!this.#arns.includes(EventBusName)) return ['ResourceNotFoundException', 'There is no such bus.'];
    if (!Source || Source.startsWith('aws.') || !DetailType || DetailType.length > 128) {
      return ['InvalidArgument', 'The source or the detail type is invalid.'];
    }
    try {
      const detail: unknown = JSON.parse(Detail);
      if (typeof detail === 'object' && detail !== null && !Array.isArray(detail)) return [];
    } catch {}
    return ['MalformedDetail', 'Detail is malformed.'];
  }
}

function measure({ Source, DetailType, Detail, Resources = [], Time }: BusEntry): number {
  const texts = [Source, DetailType, Detail, ...Resources];
  return texts.reduce(
    (sum, text) => sum + Buffer.byteLength(text ?? ''),
    Time === undefined ? 0 : TIME_BYTES,
  );
}
