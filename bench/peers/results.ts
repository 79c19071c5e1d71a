/** Results of the comparison: what the deliveries of a phase show, and the table of all rounds. */
import { median } from '../statistics.ts';

/** A delivery that the receiver accepted. */
export interface Delivery {
  /** Number of the endpoint, from 0. */
  readonly endpoint: number;
  /** Number of the event in its phase, from 1. Events of a job are published in this order. */
  readonly event: number;
  readonly job: number;
  /** Time of arrival (ms of the monotonic clock of the machine). */
  readonly at: number;
  /** Times at which its connection was opened and the response was sent, by the same clock. */
  readonly connectedAt: number;
  readonly respondedAt: number;
}

/** Results of the deliveries of a phase. */
export interface Verdict {
  /** Number of events that did not arrive, counted for each endpoint. */
  readonly lost: number;
  /** Number of deliveries of events that the receiver had already accepted. */
  readonly duplicates: number;
  /** Number of jobs, counted for each endpoint, with an event that arrived before an earlier one of the same job. */
  readonly jobsOutOfOrder: number;
  /** Time at which the last event arrived for the first time. */
  readonly lastAt: number;
  /** Times at which events arrived for the first time, by event, of the endpoint with the highest number. */
  readonly arrivals: ReadonlyMap<number, number>;
}

/** Evaluates deliveries, in the order of their arrival, of the events `1…events` to the endpoints `0…endpoints - 1`. */
export function judge(deliveries: readonly Delivery[], events: number, endpoints = 1): Verdict {
  const arrivals = Array.from({ length: endpoints }, () => new Map<number, number>());
  const latest = new Map<string, number>();
  const outOfOrder = new Set<string>();
  let duplicates = 0;
  let lastAt = 0;
  for (const { endpoint, event, job, at } of deliveries) {
    const arrived = arrivals[endpoint];
    if (!arrived || arrived.has(event)) {
      duplicates += 1;
      continue;
    }
    arrived.set(event, at);
    lastAt = Math.max(lastAt, at);
    const line = `${endpoint}/${job}`;
    const highest = latest.get(line) ?? 0;
    if (event < highest) outOfOrder.add(line);
    latest.set(line, Math.max(highest, event));
  }
  const arrived = arrivals.reduce((sum, { size }) => sum + size, 0);
  return {
    ...{ duplicates, lastAt, lost: events * endpoints - arrived, jobsOutOfOrder: outOfOrder.size },
    arrivals: arrivals.at(-1) ?? new Map(),
  };
}

/**
 * Omits the deliveries whose response was sent to a killed process. Its connections close only when its memory has been freed; until then,
 * the receiver sends responses that are not read.
 */
export function omitUnread(deliveries: readonly Delivery[], killedAt: number): readonly Delivery[] {
  return deliveries.filter(
    ({ connectedAt, respondedAt }) => respondedAt < killedAt || connectedAt > killedAt,
  );
}

/** Rows of the table: key and title. */
const TITLES = {
  sustained: 'Publish → received, 1 endpoint, sustained: events/s',
  fanOut: 'Fan-out to 50 endpoints: deliveries/s',
  slow: 'Endpoint that responds after 200 ms, 400 jobs in flight: deliveries/s',
  latencyP50: 'Publish → received at 20 events/s, p50: ms',
  latencyP99: 'Publish → received at 20 events/s, p99: ms',
  cpuPer1000: 'CPU per 1,000 deliveries at 20 events/s: s',
  idleCpu: 'CPU while idle with 52 endpoints: % of a core',
  idleMemory: 'Memory (PSS) of all processes after the first start: MB',
  fanOutMemory: 'Memory (PSS) of all processes after the fan-out: MB',
  processes: 'Processes',
  start: 'Start until the API responds: s',
  killAll: 'kill -9 of everything → last outstanding event delivered: s',
  killAllDuplicates: 'kill -9 of everything: duplicates',
  killAllLost: 'kill -9 of everything: lost',
  killServer: 'kill -9 of the server → last outstanding event delivered: s',
  killServerDuplicates: 'kill -9 of the server: duplicates',
  killServerLost: 'kill -9 of the server: lost',
  outageOutOfOrder: 'Outage of the receiver: jobs out of order, of 100',
  outageLost: 'Outage of the receiver: lost',
  outageDrain: 'Outage of the receiver: time from its end until all events are delivered, s',
} as const;

/** Results of a system in one round. Absent: not measured. */
export type Measured = Partial<Record<keyof typeof TITLES, number>>;

/** Returns a Markdown table: for each row and system the median of the rounds, and minimum and maximum if they differ. */
export function toTable(results: ReadonlyMap<string, readonly Measured[]>): string {
  const systems = [...results.keys()];
  const rows = Object.entries(TITLES).map(([key, title]) => [
    title,
    ...systems.map((system) => toCell((results.get(system) ?? []).map((one) => one[key as keyof Measured]))),
  ]);
  return [['', ...systems], ['---', ...systems.map(() => '---')], ...rows]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n');
}

function toCell(all: readonly (number | undefined)[]): string {
  const values = all.filter((value) => value !== undefined);
  if (values.length === 0) return 'not measured';
  const [middle, least, most] = [median(values), Math.min(...values), Math.max(...values)].map(format);
  const count = values.length < all.length ? `, ${values.length} of ${all.length} rounds` : '';
  return least === most && count === '' ? `${middle}` : `${middle} (${least}–${most}${count})`;
}

/** Formats a number with three significant digits, or as an integer. */
function format(value: number): string {
  if (Number.isInteger(value) || Math.abs(value) >= 100) return Math.round(value).toLocaleString('en');
  return String(Number(value.toPrecision(3)));
}

/** Returns the time (ms) of a clock that all processes of the machine share. */
export function readClockMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
