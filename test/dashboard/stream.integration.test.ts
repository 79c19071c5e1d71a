/** The event stream of the dashboard, read from a server that drops connections at any point. */
import { getEventListeners, once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type Client, createClient } from '../../client/index.ts';
import { createEventStream, type EventStream, MAX_ROWS } from '../../dashboard/src/stream.ts';
import type { JobEvent } from '../../shared/events/event.ts';
import { getExample } from '../../shared/events/examples.ts';

/** An open request for the stream. */
interface Opened {
  readonly after: string | null;
  readonly response: ServerResponse;
  /** Sends an event whose cursor is its number. */
  send(number: number): void;
  /** Sends any text. */
  write(text: string): void;
  /** Completes the response. */
  end(): void;
  /** Drops the connection. */
  cut(): void;
}

let server: Server;
let api: Client;
let stream: EventStream | undefined;
/** Answers the request for earlier events. */
let earlier: (response: ServerResponse) => void;
/** Error responses to the first requests for the stream, in order. */
let rejections: ((response: ServerResponse) => void)[];
let opened: Opened[];
let onOpened: (() => void) | undefined;

beforeEach(async () => {
  earlier = page([1, 2, 3]);
  [opened, rejections] = [[], []];
  server = createServer(answer);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  api = createClient({ url: `http://127.0.0.1:${port}`, key: 'a-key' });
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
  const respond = pathname === '/v1/events' ? earlier : rejections.shift();
  if (respond) {
    respond(response);
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.flushHeaders();
  opened.push({
    after: searchParams.get('after'),
    response,
    send: (number) => void response.write(frame(number)),
    write: (text) => void response.write(text),
    end: () => void response.end(),
    cut: () => void response.destroy(),
  });
  onOpened?.();
}

const event = (number: number): JobEvent =>
  ({
    ...getExample('job.created'),
    id: `acme.e.${number}`,
    time: new Date(number).toISOString(),
  }) as JobEvent;
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

/** Waits for the nth connection. */
async function connection(nth: number): Promise<Opened> {
  for (;;) {
    const found = opened[nth - 1];
    if (found) return found;
    await new Promise<void>((resolve) => {
      onOpened = resolve;
    });
  }
}

type Timer = ReturnType<typeof setTimeout>;

/** Replaces `setTimeout` for the stream only. */
function streamTimers(set: (work: () => void, ms: number, real: typeof setTimeout) => Timer): void {
  const real = setTimeout;
  vi.spyOn(globalThis, 'setTimeout').mockImplementation(((work: () => void, ms = 0, ...rest: unknown[]) =>
    /(?:dashboard\/src|client)\/stream\.ts/.test(new Error().stack ?? '')
      ? set(work, ms, real)
      : real(() => (work as (...all: unknown[]) => void)(...rest), ms)) as typeof setTimeout);
}

/** Waits for a state. */
async function until(holds: (of: EventStream) => boolean): Promise<void> {
  const of = stream;
  if (!of) throw new Error('The stream has not been started.');
  if (holds(of)) return;
  await new Promise<void>((resolve) => {
    const off = of.subscribe(() => {
      if (!holds(of)) return;
      off();
      resolve();
    });
  });
}

/** Returns the rows of the list: the numbers of events, and gaps. */
const getRows = (): (number | string)[] =>
  stream
    ?.getState()
    .rows.map((row) =>
      row.kind === 'gap' ? `gap: ${row.reason}` : Number(row.event.id.split('.').at(-1)),
    ) ?? [];
const rowsUpTo = (last: number) => Array.from({ length: last }, (_, at) => at + 1);
const begin = (now?: () => number): EventStream => {
  stream = createEventStream(api, sight, now);
  return stream;
};

/** A fake of the visibility of the page. */
const sight = {
  is: false,
  isLeft: false,
  listeners: new Set<() => void>(),
  hidden: () => sight.is,
  left: () => sight.isLeft,
  onChange(listener: () => void) {
    sight.listeners.add(listener);
    return () => void sight.listeners.delete(listener);
  },
  turn(hidden: boolean): void {
    sight.is = hidden;
    for (const listener of sight.listeners) listener();
  },
  leave(left: boolean): void {
    sight.isLeft = left;
    for (const listener of sight.listeners) listener();
  },
};

test('earlier events are listed first; live events follow from their cursor', async () => {
  const received: number[] = [];
  begin().onEvents((events) => received.push(...events.map(({ id }) => Number(id.split('.').at(-1)))));
  const first = await connection(1);
  expect(first.after).toBe('c3');
  for (const number of [4, 5]) first.send(number);
  await until(() => getRows().length === 5);
  expect(getRows()).toEqual([1, 2, 3, 4, 5]);
  expect(stream?.getState()).toMatchObject({ connection: { phase: 'live' }, count: 5, loaded: true });
  expect(stream?.getState().rows.map((row) => row.number)).toEqual([1, 2, 3, 4, 5]);
  expect(received).toEqual([4, 5]);
});

test('a frame with a cursor and no event advances the cursor and adds no row', async () => {
  begin();
  const first = await connection(1);
  first.write('id: c9\nevent: cursor\ndata: {"cursor":"c9"}\n\n');
  first.end();
  const second = await connection(2);
  expect(second.after).toBe('c9');
  second.send(10);
  await until(() => getRows().length === 4);
  expect(getRows()).toEqual([1, 2, 3, 10]);
});

test('earlier events are ordered by time, and those of one log by sequence', async () => {
  const of = (source: string, sequence: number, time: number): JobEvent => ({
    ...event(time),
    ...{ source, sequence: String(sequence).padStart(20, '0'), id: `${source}.e.${sequence}` },
  });
  // Events of one poll: the second was observed in an earlier response than the first.
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
  'after a connection loss %s, the stream resumes after the last complete event, without gaps or repeats',
  async (_, text) => {
    begin();
    const first = await connection(1);
    first.send(4);
    first.response.write(text);
    await until(() => getRows().length === 5);
    first.cut();
    const second = await connection(2);
    expect(second.after).toBe('c5');
    for (const number of [6, 7]) second.send(number);
    await until(() => getRows().length === 7);
    expect(getRows()).toEqual(rowsUpTo(7));
    expect(stream?.getState().connection).toEqual({ phase: 'live' });
  },
);

test('repeated connection losses cause no gaps and no repeats', async () => {
  begin();
  for (let round = 1; round <= 4; round += 1) {
    const one = await connection(round);
    expect(one.after).toBe(`c${2 + round}`);
    one.send(3 + round);
    await until(() => getRows().length === 3 + round);
    if (round % 2 === 0) one.end();
    else one.cut();
  }
  expect(getRows()).toEqual(rowsUpTo(7));
});

test('the state shows the time of a connection loss until the connection is restored', async () => {
  begin(() => 1_234);
  (await connection(1)).cut();
  await until((of) => of.getState().connection.phase === 'lost');
  expect(stream?.getState().connection).toMatchObject({ phase: 'lost', since: 1_234 });
  await connection(2);
  await until((of) => of.getState().connection.phase === 'live');
});

test('a rejected request is retried with backoff, and not before `Retry-After`', async () => {
  vi.spyOn(Math, 'random').mockReturnValue(0.5);
  const waits: number[] = [];
  streamTimers((work, ms, real) => {
    waits.push(ms);
    return real(work, ms >= 20_000 ? ms : Math.min(ms, 5));
  });
  rejections = [
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

test('retries leave no abort listeners behind', async () => {
  streamTimers((work, ms, real) => real(work, ms >= 20_000 ? ms : Math.min(ms, 5)));
  const { get } = api;
  let ending: AbortSignal | undefined;
  const listeners = (): number => (ending ? getEventListeners(ending, 'abort').length : Number.NaN);
  api = {
    ...api,
    get: (path, ...init) => {
      ending = init[0]?.signal;
      return get(path, ...init);
    },
  };
  let before = Number.NaN;
  const unavailable = problem(503, 'service-unavailable');
  rejections = [
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

test('a gap is listed if events are no longer retained, and the stream resumes at the oldest', async () => {
  rejections = [problem(410, 'cursor-gone', { earliest: 'c90' })];
  begin();
  const one = await connection(1);
  expect(one.after).toBe('c90');
  one.send(91);
  await until(() => getRows().length === 5);
  expect(getRows()).toEqual([1, 2, 3, 'gap: It is cursor-gone.', 91]);
});

test('after a restore the stream resumes at the restored cursor', async () => {
  rejections = [problem(410, 'cursor-gone', { earliest: 'c1', restored: 'c2' })];
  begin();
  expect((await connection(1)).after).toBe('c2');
});

test('a connection without data for too long is closed and reopened', async () => {
  let silence: { work: () => void; ms: number } | undefined;
  streamTimers((work, ms, real) => {
    if (ms < 20_000) return real(work, Math.min(ms, 5));
    silence = { work, ms };
    return real(() => {}, 0);
  });
  begin();
  const first = await connection(1);
  first.send(4);
  await until(() => getRows().length === 4);
  // The API sends a heartbeat every 15 s.
  expect(silence?.ms).toBeGreaterThan(30_000);
  const before = silence;
  first.write(': still here\n\n');
  await vi.waitUntil(() => silence !== before);
  silence?.work();
  const second = await connection(2);
  expect(second.after).toBe('c4');
  await until((of) => of.getState().connection.phase === 'live');
});

test('a page hidden for minutes closes its stream and resumes without gaps when visible again', async () => {
  let due: (() => void) | undefined;
  streamTimers((work, ms, real) => {
    if (ms < 60_000) return real(work, ms);
    due = work;
    return real(() => {}, 0);
  });
  begin();
  const first = await connection(1);
  first.send(4);
  await until((of) => getRows().length === 4 && of.getState().connection.phase === 'live');
  // A short change of tab does not close the stream.
  sight.turn(true);
  sight.turn(false);
  first.send(5);
  await until(() => getRows().length === 5);
  sight.turn(true);
  const closed = once(first.response, 'close');
  due?.();
  await closed;
  await until((of) => of.getState().connection.phase === 'connecting');
  expect(opened).toHaveLength(1);
  sight.turn(false);
  const second = await connection(2);
  expect(second.after).toBe('c5');
  second.send(6);
  await until((of) => getRows().length === 6 && of.getState().connection.phase === 'live');
});

test('a page that the user leaves closes its stream at once, and resumes without gaps when it is restored', async () => {
  begin();
  const first = await connection(1);
  first.send(4);
  await until((of) => getRows().length === 4 && of.getState().connection.phase === 'live');
  const closed = once(first.response, 'close');
  sight.leave(true);
  sight.turn(true);
  await closed;
  expect(opened).toHaveLength(1);
  sight.leave(false);
  sight.turn(false);
  const second = await connection(2);
  expect(second.after).toBe('c4');
  second.send(5);
  await until((of) => getRows().length === 5 && of.getState().connection.phase === 'live');
});

test('a stream stopped while hidden removes its listeners', async () => {
  streamTimers((work, ms, real) => real(work, ms >= 60_000 ? 0 : ms));
  sight.turn(true);
  const running = begin();
  await until((of) => of.getState().connection.phase === 'connecting' && of.getState().loaded);
  running.stop();
  sight.turn(false);
  expect(sight.listeners.size).toBe(0);
});

test('the request for earlier events is retried, and the stream opens only after it succeeds', async () => {
  earlier = (response) => {
    earlier = page([1, 2]);
    problem(503, 'service-unavailable')(response);
  };
  begin();
  await until((of) => of.getState().connection.phase === 'lost');
  expect(stream?.getState().loaded).toBe(false);
  expect((await connection(1)).after).toBe('c2');
  expect(getRows()).toEqual([1, 2]);
});

test('only the latest rows are kept, without a gap among them', async () => {
  begin();
  const one = await connection(1);
  for (let number = 4; number <= MAX_ROWS + 10; number += 1) one.send(number);
  await until((of) => of.getState().count === MAX_ROWS + 10);
  const rows = getRows();
  expect([rows.length, rows[0], rows.at(-1)]).toEqual([MAX_ROWS, 11, MAX_ROWS + 10]);
  expect(new Set(rows).size).toBe(MAX_ROWS);
});

test('a stopped stream closes its connection, opens no other and notifies no listeners', async () => {
  const running = begin();
  const one = await connection(1);
  await until((of) => of.getState().connection.phase === 'live');
  const changes: unknown[] = [];
  running.subscribe(() => changes.push(running.getState()));
  const closed = once(one.response, 'close');
  one.send(4);
  running.stop();
  await closed;
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(changes).toEqual([]);
  expect(opened).toHaveLength(1);
});
