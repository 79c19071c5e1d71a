/** `jobwire events …` */

import {
  ApiError,
  type CellEventPage,
  type Client,
  type Delivery,
  type EventPage,
  type FollowOptions,
  type ListOptions,
} from '../client/index.ts';
import { createTerminal } from '../local/terminal.ts';
import type { JobEvent } from '../shared/events/event.ts';
import { deliveryColumns } from './attempts.ts';
import { type Context, CSV, command, type FlagValues, limitFlag, UsageError } from './command.ts';
import { AFTER, parseList, parseTime, SELECTION } from './input.ts';
import { escapeControls, sanitizeLine, toJson } from './output.ts';

const PAGE = 500;

export const events = {
  'events tail': command({
    about: 'Prints new events of all accounts, of one account or of a region as they are emitted.',
    more: 'After a lost connection, the command continues at its last position, so no event is missed or repeated. If the log can no longer be read from there, because events have expired or a backup was restored, the command ends and prints a cursor for --after.',
    flags: {
      ...SELECTION,
      region: {
        value: 'REGION',
        about: 'Only events of the region itself: outages, and state changes of endpoints',
      },
      after: AFTER,
      once: {
        value: 'N',
        about: 'Exit after this number of events',
        range: { least: 1, most: 1_000_000 },
      },
    },
    example: "events tail --account acme --types 'job.*' --since 2h",
    async run(context, _args, flags) {
      if (flags.account !== undefined && flags.region !== undefined) {
        throw new UsageError('--account and --region can’t be combined.');
      }
      checkStart(flags);
      const show = eventPrinter(context);
      let count = 0;
      for await (const event of selectEvents(context, flags)) {
        show(event);
        count += 1;
        if (count === flags.once) return undefined;
      }
    },
  }),

  'events list': command({
    about: 'Lists past events of all accounts, of one account or of a region, newest first.',
    flags: {
      account: SELECTION.account,
      region: { value: 'REGION', about: 'Only events of the region itself' },
      types: SELECTION.types,
      limit: limitFlag(50),
      ...CSV,
    },
    example: 'events list --account acme --limit 20',
    async run(context, _args, flags) {
      const { out } = context;
      if (flags.account !== undefined && flags.region !== undefined) {
        throw new UsageError('--account and --region can’t be combined.');
      }
      if (flags.csv) {
        return out.csv((onMore) => listAsCsv(context.api(), flags, { max: flags.limit, onMore }));
      }
      const readPage = createReader(context.api(), flags);
      const show = eventPrinter(context);
      const types = parseList(flags.types)?.join(',');
      let left: number = flags.limit;
      let before: string | null | undefined;
      while (left > 0 && before !== null) {
        const query = { order: 'newest', before, types, limit: Math.min(left, PAGE) } as const;
        const page = await readPage(query);
        for (const event of page.events) show(JSON.stringify(event));
        left -= page.events.length;
        before = page.previous ?? null;
      }
      if (left === flags.limit && !out.json) out.note('There are no matching events.');
      if (left === 0 && before !== null) out.note('There are older events. Use --limit to show more.');
    },
  }),

  'events show': command({
    about: 'Shows one event, exactly as it was logged.',
    args: ['EVENT'],
    flags: { deliveries: { about: 'Include its delivery attempts' } },
    example: 'events show acme.mf2k8t9x3a.17 --deliveries',
    async run(context, [id], flags) {
      const { out } = context;
      const api = context.api();
      const params = { path: { event: id } };
      const event = await api.get('/v1/events/{event}', { params });
      const deliveries: readonly Delivery[] = flags.deliveries
        ? (await api.get('/v1/events/{event}/deliveries', { params })).deliveries
        : [];
      out.document(flags.deliveries ? { event, deliveries } : event, () => {
        out.fields([
          ['Event', sanitizeLine(event.id)],
          ['Type', sanitizeLine(event.type)],
          ['Time', out.formatTimeWithAge(event.time)],
          ['Source', sanitizeLine(event.source)],
          ['Subject', 'subject' in event ? sanitizeLine(event.subject) : null],
        ]);
        out.line();
        out.line(toJson(event.data, 2));
        if (flags.deliveries) {
          out.line();
          const columns = deliveryColumns(context).filter(({ name }) => name !== 'EVENT' && name !== 'TYPE');
          out.table(deliveries, columns, 'There are no delivery attempts yet.');
        }
      });
    },
  }),
};

/** Selects events, and the first of them. Default: all new events. */
interface Selection extends FlagValues<typeof SELECTION> {
  readonly region?: string | undefined;
  /** Cursor. Cannot be combined with `since`. */
  readonly after?: string | undefined;
}

/** Throws {@link UsageError} if the first event is given twice. */
export function checkStart({ since, after }: Pick<Selection, 'since' | 'after'>): void {
  if (since !== undefined && after !== undefined) {
    throw new UsageError('--since and --after can’t be combined.');
  }
}

/** Yields past and new events as logged, each once. Reopens a lost connection, with a note. */
export async function* selectEvents(
  { api: createApi, out }: Context,
  selection: Selection,
): AsyncGenerator<string, void> {
  const { account, region } = selection;
  const api = createApi();
  const types = parseList(selection.types)?.join(',');
  let { after } = selection;
  if (selection.since !== undefined) {
    const since = Date.parse(parseTime('since', selection.since));
    after = yield* pastEvents(createReader(api, selection), types, since);
  }
  const query = { types, after };
  const options: FollowOptions = {
    onLost: (why) => out.note(`Connection lost: ${sanitizeLine(why)} Reconnecting until you press Ctrl-C.`),
    onFound: () => out.note('Reconnected. The stream resumes at its last position.'),
  };
  const events =
    account !== undefined
      ? api.follow('/v1/accounts/{id}/events/stream', {
          params: { path: { id: account }, query },
          ...options,
        })
      : region !== undefined
        ? api.follow('/v1/regions/{id}/events/stream', {
            params: { path: { id: region }, query },
            ...options,
          })
        : api.follow('/v1/events/stream', { params: { query }, ...options });
  for await (const { event } of events) yield event;
}

/** Returns a function that prints an event, given the text of its envelope: as a JSON line or as a readable line. */
export function eventPrinter({ out }: Context): (text: string) => void {
  const terminal = createTerminal(out.stdout);
  return (text) => {
    // The envelope is printed as received, so that stored output has the logged bytes.
    if (out.json) return out.line(escapeControls(text));
    const event = JSON.parse(text) as JobEvent;
    out.progress();
    terminal.event(event);
    if (out.verbose) out.line(out.paint('dim', `${''.padEnd(20)} ${sanitizeLine(event.id)}`));
  };
}

/** Reads a page of a log or of the feed. */
type ReadPage = (query: {
  readonly after?: string | undefined;
  readonly before?: string | undefined;
  readonly order?: 'newest' | undefined;
  readonly limit: number;
  readonly types?: string | undefined;
}) => Promise<EventPage | CellEventPage>;

/** Returns a function that reads a page of the log of an account or a region, or of the feed. */
export function createReader(
  api: Client,
  { account, region }: Pick<Selection, 'account' | 'region'>,
): ReadPage {
  return (query) => {
    if (account !== undefined)
      return api.get('/v1/accounts/{id}/events', { params: { path: { id: account }, query } });
    if (region !== undefined)
      return api.get('/v1/regions/{id}/events', { params: { path: { id: region }, query } });
    return api.get('/v1/events', { params: { query } });
  };
}

/** Yields the texts of the selected events as CSV, the newest first. */
function listAsCsv(
  api: Client,
  { account, region, types }: Pick<Selection, 'account' | 'region' | 'types'>,
  options: ListOptions,
): AsyncGenerator<string, void> {
  const query = { order: 'newest', types: parseList(types)?.join(',') } as const;
  if (account !== undefined)
    return api.csv('/v1/accounts/{id}/events', { params: { path: { id: account }, query }, ...options });
  if (region !== undefined)
    return api.csv('/v1/regions/{id}/events', { params: { path: { id: region }, query }, ...options });
  return api.csv('/v1/events', { params: { query }, ...options });
}

/** Yields the existing events of a log from a time on, and finally the cursor after them. */
async function* pastEvents(
  readPage: ReadPage,
  types: string | undefined,
  since: number,
): AsyncGenerator<string, string> {
  let after = await findCursorBefore(readPage, since);
  for (;;) {
    let page: Awaited<ReturnType<ReadPage>>;
    try {
      page = await readPage({ after, limit: PAGE, types });
    } catch (cause) {
      const earliest = getEarliestCursor(cause);
      if (earliest === undefined || earliest === after) throw cause;
      after = earliest;
      continue;
    }
    for (const event of page.events) {
      if (Date.parse(event.time) >= since) yield JSON.stringify(event);
    }
    const last = page.next === after || page.next === page.head;
    after = page.next;
    if (last) return after;
  }
}

/**
 * Maximum disorder of events by time: a poll takes minutes, and events that could not be forwarded to the feed immediately follow later.
 */
const DISORDER_MS = 15 * 60_000;

/**
 * Returns a cursor before all events of a time or later. Uses bisection: a log of 50,000 events takes about eight requests of one event
 * each. `undefined` (the beginning) if cursors do not consist of numbers.
 */
async function findCursorBefore(readPage: ReadPage, since: number): Promise<string | undefined> {
  const { head } = await readPage({ limit: 1 });
  const heads = parseCursor(head);
  if (!heads) return undefined;
  const cursorWith = (numbers: readonly number[]) =>
    heads.map(({ prefix }, at) => prefix + numbers[at]).join('~');
  const numbers = heads.map(({ number }) => number);

  /** Returns whether the first event of a feed after a number is too early, or a number to continue from if none is that early. */
  async function isEarly(at: number, number: number): Promise<boolean | number> {
    const [region] = heads?.[at]?.prefix.split('.') ?? [];
    let after = cursorWith(numbers.with(at, number));
    for (;;) {
      let page: Awaited<ReturnType<ReadPage>>;
      try {
        page = await readPage({ after, limit: numbers.length });
      } catch (cause) {
        const earliest = parseCursor(getEarliestCursor(cause) ?? '')?.[at]?.number;
        if (earliest === undefined || earliest <= number) throw cause;
        return earliest;
      }
      const found = page.events.find(({ data }) => numbers.length === 1 || data.region === region);
      if (found) return Date.parse(found.time) < since - DISORDER_MS;
      // With a key for some accounts only, a page may be empty and not the last.
      if (page.next === after || page.next === page.head) return false;
      after = page.next;
    }
  }

  const found = await Promise.all(
    numbers.map(async (end, at) => {
      let [low, high] = [0, end];
      while (high - low > PAGE / 2) {
        const middle = Math.floor((low + high) / 2);
        const early = await isEarly(at, middle);
        if (typeof early === 'number') low = early;
        else if (early) low = middle;
        else high = middle;
      }
      return low;
    }),
  );
  return cursorWith(found);
}

/** Parses a cursor: `<epoch>.<number>`, or for several regions the same after each region's name, joined by `~`. */
function parseCursor(cursor: string): { readonly prefix: string; readonly number: number }[] | undefined {
  const places = cursor.split('~').map((part) => /^((?:[^.]+\.)*)(\d{1,15})$/.exec(part));
  return places.every((place) => place !== null)
    ? places.map(([, prefix = '', number]) => ({ prefix, number: Number(number) }))
    : undefined;
}

/** Returns the earliest readable cursor, if the API rejected a request because its cursor is too old. */
function getEarliestCursor(cause: unknown): string | undefined {
  if (!(cause instanceof ApiError) || cause.kind !== 'cursor-gone') return undefined;
  return String(cause.problem.earliest);
}
