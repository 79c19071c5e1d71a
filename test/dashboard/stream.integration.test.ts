/** The live events of the dashboard, read from a server that breaks off wherever it can. */
import { getEventListeners, once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type Api, createApi } from '../../dashboard/src/api.ts';
import { createEventStream, type EventStream, MAX_ROWS } from '../../dashboard/src/stream.ts';
import type { JobEvent } from '../../shared/events/event.ts';
import { exampleOf } from '../../shared/events/examples.ts';

/** A request for the stream that is open. */
interface Opened {
  readonly after: string | null;
  readonly response: ServerResponse;
  /** Says an event whose cursor is its number. */
  say(number: number): void;
  /** Any text. */
  write(text: string): void;
  /** Ends it as it should be, or breaks the connection off. */
  end(): void;
  cut(): void;
}

let server: Server;
let api: Api;
let stream: EventStream | undefined;
/** What the page of earlier events says, or how it is refused. */
let earlier: (response: ServerResponse) => void;
/** Refuses requests for the stream, one after the other, before any is opened. */
let refusals: ((response: ServerResponse) => void)[];
let opened: Opened[];
let told: (() => void) | undefined;

beforeEach(async () => {
  earlier = page([1, 2, 3]);
  [opened, refusals] = [[], []];
  server = createServer(answer);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const real = createApi('a-key');
  // In a browser, paths are of the page's own origin.
  const at = (path: string): string => `http://127.0.0.1:${port}${path}`;
  api = {
    ...real,
    get: (path, options) => real.get(at(path), options),
    open: (path, options) => real.open(at(path), options),
  };
});

afterEach(async () => {
  stream?.stop();
  stream = undefined;
  sight.is = false;
  vi.restoreAllMocks();
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
});

function answer(request: IncomingMessage, response: ServerResponse): void {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://x');
  const refuse = pathname === '/v1/events' ? earlier : refusals.shift();
  if (refuse) {
    refuse(response);
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.flushHeaders();
  opened.push({
    after: searchParams.get('after'),
    response,
    say: (number) => void response.write(frame(number)),
    write: (text) => void response.write(text),
    end: () => void response.end(),
    cut: () => void response.destroy(),
  });
  told?.();
}

const event = (number: number): JobEvent =>
  ({ ...exampleOf('job.created'), id: `acme.e.${number}`, time: new Date(number).toISOString() }) as JobEvent;
const frame = (number: number): string => `id: c${number}\ndata: ${JSON.stringify(event(number))}\n\n`;
const page =
  (numbers: readonly number[]) =>
  (response: ServerResponse): void => {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ events: numbers.map(event), next: `c${numbers.at(-1) ?? 0}` }));
  };
const problem =
  (status: number, type: string, members: object = {}) =>
  (response: ServerResponse): void => {
    response.writeHead(status, { 'content-type': 'application/problem+json' });
    response.end(
      JSON.stringify({ type: `urn:jobwire:problem:${type}`, detail: `It is ${type}.`, ...members }),
    );
  };

/** The connection that is opened as the nth. */
async function connection(nth: number): Promise<Opened> {
  for (;;) {
    const found = opened[nth - 1];
    if (found) return found;
    await new Promise<void>((resolve) => {
      told = resolve;
    });
  }
}

type Timer = ReturnType<typeof setTimeout>;

/** Has the timers of the stream, and no others, set as is said. */
function streamTimers(set: (work: () => void, ms: number, real: typeof setTimeout) => Timer): void {
  const real = setTimeout;
  vi.spyOn(globalThis, 'setTimeout').mockImplementation(((work: () => void, ms = 0, ...rest: unknown[]) =>
    /dashboard\/src\/stream\.ts/.test(new Error().stack ?? '')
      ? set(work, ms, real)
      : real(() => (work as (...all: unknown[]) => void)(...rest), ms)) as typeof setTimeout);
}

/** Waits until the state is as it should be. */
async function until(holds: (of: EventStream) => boolean): Promise<void> {
  const of = stream;
  if (!of) throw new Error('There is no stream.');
  if (holds(of)) return;
  await new Promise<void>((resolve) => {
    const off = of.subscribe(() => {
      if (!holds(of)) return;
      off();
      resolve();
    });
  });
}

/** What the list shows: the numbers of events, and holes. */
const shown = (): (number | string)[] =>
  stream
    ?.getState()
    .rows.map((row) =>
      row.kind === 'hole' ? `hole: ${row.reason}` : Number(row.event.id.split('.').at(-1)),
    ) ?? [];
const rowsUpTo = (last: number) => Array.from({ length: last }, (_, at) => at + 1);
const begin = (now?: () => number): EventStream => {
  stream = createEventStream(api, sight, now);
  return stream;
};

/** Whether the page is hidden, and who wants to know. */
const sight = {
  is: false,
  listeners: new Set<() => void>(),
  hidden: () => sight.is,
  onChange(listener: () => void) {
    sight.listeners.add(listener);
    return () => void sight.listeners.delete(listener);
  },
  turn(hidden: boolean): void {
    sight.is = hidden;
    for (const listener of sight.listeners) listener();
  },
};

test('what was before comes first, then what comes live, from the very place behind it', async () => {
  const heard: number[] = [];
  begin().onEvents((events) => heard.push(...events.map(({ id }) => Number(id.split('.').at(-1)))));
  const first = await connection(1);
  expect(first.after).toBe('c3');
  for (const number of [4, 5]) first.say(number);
  await until(() => shown().length === 5);
  expect(shown()).toEqual([1, 2, 3, 4, 5]);
  expect(stream?.getState()).toMatchObject({ connection: { phase: 'live' }, count: 5, loaded: true });
  expect(stream?.getState().rows.map((row) => row.number)).toEqual([1, 2, 3, 4, 5]);
  expect(heard).toEqual([4, 5]);
});

test('a frame that holds a cursor and no event moves the place, and is no row', async () => {
  begin();
  const first = await connection(1);
  first.write('id: c9\nevent: cursor\ndata: {"cursor":"c9"}\n\n');
  first.end();
  const second = await connection(2);
  expect(second.after).toBe('c9');
  second.say(10);
  await until(() => shown().length === 4);
  expect(shown()).toEqual([1, 2, 3, 10]);
});

test('what was before stands by time, and what is of one log in the order of that log', async () => {
  const of = (source: string, sequence: number, time: number): JobEvent => ({
    ...event(time),
    ...{ source, sequence: String(sequence).padStart(20, '0'), id: `${source}.e.${sequence}` },
  });
  // One poll's events: the second was seen in an earlier answer than the first.
  const events = [
    of('a', 9, 50),
    of('a', 10, 40),
    of('a', 11, 60),
    of('b', 1, 45),
    of('b', 2, 55),
    of('c', 1, 10),
  ];
  earlier = (response) => {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ events, next: 'c0' }));
  };
  begin();
  await connection(1);
  const ids = stream?.getState().rows.map((row) => row.kind === 'event' && row.event.id);
  expect(ids).toEqual(['c.e.1', 'b.e.1', 'a.e.9', 'a.e.10', 'b.e.2', 'a.e.11']);
});

test.each([
  ['after an event', frame(5)],
  ['in the middle of an event', `${frame(5)}${frame(6).slice(0, 40)}`],
  ['between the lines of an event', `${frame(5)}id: c6\n`],
  [
    'in the middle of a character',
    Buffer.concat([Buffer.from(`${frame(5)}data: `), Buffer.from([0xe2, 0x82])]),
  ],
  ['before the end of an event', `${frame(5)}${frame(6).slice(0, -1)}`],
  ['in a comment', `${frame(5)}: still he`],
])(
  'broken off %s, it goes on behind the last whole event: none is missing or comes twice',
  async (_, text) => {
    begin();
    const first = await connection(1);
    first.say(4);
    first.response.write(text);
    await until(() => shown().length === 5);
    first.cut();
    const second = await connection(2);
    expect(second.after).toBe('c5');
    for (const number of [6, 7]) second.say(number);
    await until(() => shown().length === 7);
    expect(shown()).toEqual(rowsUpTo(7));
    expect(stream?.getState().connection).toEqual({ phase: 'live' });
  },
);

test('broken off again and again, nothing is missing and nothing comes twice', async () => {
  begin();
  for (let round = 1; round <= 4; round += 1) {
    const one = await connection(round);
    expect(one.after).toBe(`c${2 + round}`);
    one.say(3 + round);
    await until(() => shown().length === 3 + round);
    if (round % 2 === 0) one.end();
    else one.cut();
  }
  expect(shown()).toEqual(rowsUpTo(7));
});

test('the loss of the connection is said with its time, until it is back', async () => {
  begin(() => 1_234);
  (await connection(1)).cut();
  await until((of) => of.getState().connection.phase === 'lost');
  expect(stream?.getState().connection).toMatchObject({ phase: 'lost', since: 1_234 });
  await connection(2);
  await until((of) => of.getState().connection.phase === 'live');
});

test('a service that refuses is asked again, as late as it says', async () => {
  vi.spyOn(Math, 'random').mockReturnValue(0.5);
  const waits: number[] = [];
  streamTimers((work, ms, real) => {
    waits.push(ms);
    return real(work, ms >= 20_000 ? ms : Math.min(ms, 5));
  });
  refusals = [
    (response) => {
      response.setHeader('retry-after', '7');
      problem(429, 'too-many-requests')(response);
    },
    problem(503, 'service-unavailable'),
    problem(503, 'service-unavailable'),
  ];
  begin();
  await connection(1);
  expect(waits.filter((ms) => ms >= 500 && ms < 20_000)).toEqual([7_000, 1_000, 2_000]);
});

test('however often it is tried again, nothing of the waits is left behind', async () => {
  streamTimers((work, ms, real) => real(work, ms >= 20_000 ? ms : Math.min(ms, 5)));
  const { get } = api;
  let ending: AbortSignal | undefined;
  const listeners = (): number => (ending ? getEventListeners(ending, 'abort').length : Number.NaN);
  api = {
    ...api,
    get: (path, options) => {
      ending = options?.signal ?? undefined;
      return get(path, options);
    },
  };
  let before = Number.NaN;
  const unavailable = problem(503, 'service-unavailable');
  refusals = [
    (response) => {
      before = listeners();
      unavailable(response);
    },
    ...Array.from({ length: 5 }, () => unavailable),
  ];
  begin();
  await connection(1);
  expect(listeners()).toBeLessThanOrEqual(before);
});

test('where events are no longer kept a hole is said, and it goes on with the oldest there is', async () => {
  refusals = [problem(410, 'cursor-gone', { earliest: 'c90' })];
  begin();
  const one = await connection(1);
  expect(one.after).toBe('c90');
  one.say(91);
  await until(() => shown().length === 5);
  expect(shown()).toEqual([1, 2, 3, 'hole: It is cursor-gone.', 91]);
});

test('after a restore it goes on with what is said anew', async () => {
  refusals = [problem(410, 'cursor-gone', { earliest: 'c1', restored: 'c2' })];
  begin();
  expect((await connection(1)).after).toBe('c2');
});

test('a connection that is silent for too long is broken off and opened anew', async () => {
  let silence: { work: () => void; ms: number } | undefined;
  streamTimers((work, ms, real) => {
    if (ms < 20_000) return real(work, Math.min(ms, 5));
    silence = { work, ms };
    return real(() => {}, 0);
  });
  begin();
  const first = await connection(1);
  first.say(4);
  await until(() => shown().length === 4);
  // The service says something every 15 s.
  expect(silence?.ms).toBeGreaterThan(30_000);
  const before = silence;
  first.write(': still here\n\n');
  await vi.waitUntil(() => silence !== before);
  silence?.work();
  const second = await connection(2);
  expect(second.after).toBe('c4');
  await until((of) => of.getState().connection.phase === 'live');
});

test('a page that nobody looks at for minutes closes its stream, and misses nothing when it is looked at again', async () => {
  let due: (() => void) | undefined;
  streamTimers((work, ms, real) => {
    if (ms < 60_000) return real(work, ms);
    due = work;
    return real(() => {}, 0);
  });
  begin();
  const first = await connection(1);
  first.say(4);
  await until((of) => shown().length === 4 && of.getState().connection.phase === 'live');
  // A glance at another tab closes nothing.
  sight.turn(true);
  sight.turn(false);
  first.say(5);
  await until(() => shown().length === 5);
  sight.turn(true);
  const closed = once(first.response, 'close');
  due?.();
  await closed;
  await until((of) => of.getState().connection.phase === 'connecting');
  expect(opened).toHaveLength(1);
  sight.turn(false);
  const second = await connection(2);
  expect(second.after).toBe('c5');
  second.say(6);
  await until((of) => shown().length === 6 && of.getState().connection.phase === 'live');
});

test('a page that is left while it rests ends, and listens to nothing more', async () => {
  streamTimers((work, ms, real) => real(work, ms >= 60_000 ? 0 : ms));
  sight.turn(true);
  const running = begin();
  await until((of) => of.getState().connection.phase === 'connecting' && of.getState().loaded);
  running.stop();
  sight.turn(false);
  expect(sight.listeners.size).toBe(0);
});

test('the page of before is asked for until it comes, and nothing is read before', async () => {
  earlier = (response) => {
    earlier = page([1, 2]);
    problem(503, 'service-unavailable')(response);
  };
  begin();
  await until((of) => of.getState().connection.phase === 'lost');
  expect(stream?.getState().loaded).toBe(false);
  expect((await connection(1)).after).toBe('c2');
  expect(shown()).toEqual([1, 2]);
});

test('only the latest rows are kept, without a hole among them', async () => {
  begin();
  const one = await connection(1);
  for (let number = 4; number <= MAX_ROWS + 10; number += 1) one.say(number);
  await until((of) => of.getState().count === MAX_ROWS + 10);
  const rows = shown();
  expect([rows.length, rows[0], rows.at(-1)]).toEqual([MAX_ROWS, 11, MAX_ROWS + 10]);
  expect(new Set(rows).size).toBe(MAX_ROWS);
});

test('stopped, it closes its connection, opens none and tells nobody anything', async () => {
  const running = begin();
  const one = await connection(1);
  await until((of) => of.getState().connection.phase === 'live');
  const changes: unknown[] = [];
  running.subscribe(() => changes.push(running.getState()));
  const closed = once(one.response, 'close');
  one.say(4);
  running.stop();
  await closed;
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(changes).toEqual([]);
  expect(opened).toHaveLength(1);
});
