/** `jobwire endpoints …` */
import { setTimeout as sleep } from 'node:timers/promises';
import type { AttemptReport } from '../shared/sinks/attempt.ts';
import type { Endpoint } from '../shared/sinks/endpoints.ts';
import type { Replay } from '../shared/sinks/replays.ts';
import { type Context, command, UsageError } from './command.ts';
import { instantOf, listOf, pairsOf, readSecret, secretInEnv, segment, wholeNumber } from './input.ts';
import { clean } from './output.ts';

/** As the API shows it: with its state in lists where the API tells it. */
type Shown = Omit<Endpoint, 'createdAt' | 'changedAt'> & { readonly state?: string };
/** Instants are ISO texts or epoch ms. */
type ShownReplay = Omit<Replay, 'startedAt' | 'finishedAt'> & {
  readonly startedAt: string | number;
  readonly finishedAt: string | number | null;
};

const WATCH_EVERY_MS = 1000;
/** More than are kept of one endpoint. */
const MAX_REPLAYS = 500;

const pathOf = (id: string, rest = ''): string => `/v1/endpoints/${segment(id)}${rest}`;

const REGION = { value: 'REGION', about: 'Its region, where the id stands in several' } as const;

export const endpoints = {
  'endpoints add': command({
    about: 'Adds a webhook endpoint. Its signing secret is shown once, and never again.',
    args: ['URL'],
    flags: {
      id: { value: 'ID', about: 'Its id (generated)' },
      region: { value: 'REGION', about: 'Its region; may be left out where there is one' },
      accounts: { value: 'A,B', about: 'Events of these accounts only (all)', many: true },
      types: { value: 'A,B', about: 'Of these types only, job.* for all that begin so (all)', many: true },
      origins: { value: 'A,B', about: 'Of jobs of these origins only', many: true },
      'order-group': { value: 'NAME', about: 'Of jobs of this order group only', many: true },
      start: { value: 'WHEN', about: 'now, beginning, a span such as 2h, or an instant (now)' },
      concurrency: { value: 'N', about: 'Requests at the same time (16)' },
      rate: { value: 'N', about: 'Requests a second at most' },
      description: { value: 'TEXT', about: 'A note' },
      'header-env': {
        value: 'HEADER=NAME',
        about: 'A header that each request carries, its value in an environment variable',
        many: true,
      },
      'secret-file': { value: 'FILE', about: 'File that holds a signing secret to use (generated)' },
      'secret-env': { value: 'NAME', about: 'Environment variable that holds it' },
    },
    example: "endpoints add https://erp.example.com/jobs --types 'job.*' --accounts acme",
    async run(context, [url], flags) {
      const { api, out, env } = context;
      const own = flags['secret-file'] ?? flags['secret-env'];
      const secret =
        own === undefined
          ? undefined
          : await readSecret(context, 'The signing secret', {
              flag: 'secret',
              file: flags['secret-file'],
              variable: flags['secret-env'],
            });
      const headers = Object.entries(pairsOf('header-env', flags['header-env']) ?? {}).map(
        ([header, variable]) => [header, secretInEnv('header-env', variable, env)],
      );
      const rate = flags.rate === undefined ? undefined : Number(flags.rate);
      if (Number.isNaN(rate)) throw new UsageError('--rate must be a number.');
      const body = {
        url,
        id: flags.id,
        accounts: listOf(flags.accounts),
        types: listOf(flags.types),
        origins: listOf(flags.origins),
        orderGroups: flags['order-group'].length === 0 ? undefined : flags['order-group'],
        start: flags.start === undefined ? undefined : startOf(flags.start),
        concurrency: flags.concurrency && wholeNumber('concurrency', flags.concurrency, 1, 64),
        ratePerSecond: rate,
        description: flags.description,
        headers: headers.length === 0 ? undefined : Object.fromEntries(headers),
        secret,
      };
      const made = await api().post<{ endpoint: Shown; secret: string; late?: readonly string[] }>(
        '/v1/endpoints',
        body,
        { region: flags.region },
      );
      out.document(made, () => {
        const { endpoint } = made;
        out.line(`${clean(endpoint.id)} is added in ${clean(endpoint.region)}: ${clean(endpoint.url)}`);
        if (secret === undefined) {
          out.line();
          out.line(`  ${out.paint('bold', clean(made.secret))}`);
          out.line();
          out.note('Keep this signing secret now: it is not shown again.');
        }
        sayLate(context, made.late);
        out.line(`Try it: jobwire endpoints ping ${clean(endpoint.id)}`);
      });
      return undefined;
    },
  }),

  'endpoints list': command({
    about: 'Lists endpoints.',
    args: [],
    flags: {
      region: { value: 'REGION', about: 'Of this region only' },
      limit: { value: 'N', about: 'At most so many (1000)' },
    },
    example: 'endpoints list',
    async run({ api, out }, _args, flags) {
      const limit = wholeNumber('limit', flags.limit ?? '1000', 1, 1_000_000);
      const query = { region: flags.region };
      const all = (names: readonly string[] | null | undefined) => (names?.length ? names : 'all');
      return out.list(
        (more) => api().list<Shown>('/v1/endpoints', 'endpoints', query, limit, more),
        [
          { name: 'ENDPOINT', of: ({ id }) => id },
          { name: 'REGION', of: ({ region }) => region },
          {
            name: 'STATE',
            of: ({ paused, state }) => state ?? (paused ? 'paused' : 'active'),
            style: ({ paused, state }) =>
              paused ? 'yellow' : state === 'failing' || state === 'disabled' ? 'red' : 'green',
          },
          { name: 'URL', of: ({ url }) => url, long: true },
          { name: 'ACCOUNTS', of: ({ accounts }) => all(accounts), long: true },
          { name: 'TYPES', of: ({ types }) => all(types), long: true },
          { name: 'MADE BY', of: ({ managed }) => (managed ? 'API' : 'configuration') },
        ],
        'There are no endpoints.',
      );
    },
  }),

  'endpoints ping': command({
    about: 'Sends a test event to an endpoint, signed as every event is, and says how it was answered.',
    args: ['ID'],
    flags: { region: REGION },
    example: 'endpoints ping erp',
    async run({ api, out }, [id], flags) {
      out.progress(`Pinging ${clean(id)} …`);
      const report = await api().post<AttemptReport>(pathOf(id, '/ping'), undefined, {
        region: flags.region,
      });
      const taken = report.outcome === 'delivered';
      out.document(report, () => {
        const answer = report.status === null ? 'no answer' : `HTTP ${report.status}`;
        out.line(
          `${taken ? out.paint('green', 'Delivered') : out.paint('red', 'Not taken')}: ${answer} after ${report.latencyMs} ms. ${clean(report.words)}`.trimEnd(),
        );
      });
      return taken ? undefined : 1;
    },
  }),

  'endpoints replay': command({
    about:
      'Sends an endpoint events again, each with the id it had: from an instant, a cursor or the beginning up to now.',
    args: ['ID'],
    flags: {
      region: REGION,
      since: { value: 'WHEN', about: 'From then on: a span such as 2h, a day or an instant' },
      from: { value: 'CURSOR', about: 'beginning, or ACCOUNT=CURSOR: what comes after it', many: true },
      until: { value: 'WHEN', about: 'Up to then (now)' },
      accounts: { value: 'A,B', about: 'Of these accounts only', many: true },
      types: { value: 'A,B', about: 'Of these types only', many: true },
      watch: { about: 'Stay, and show how far it is; Ctrl-C leaves it running' },
    },
    example: 'endpoints replay erp --since 2h --watch',
    async run(context, [id], flags) {
      const accounts = listOf(flags.accounts);
      const types = listOf(flags.types);
      const filter = { ...(accounts ? { accounts } : {}), ...(types ? { types } : {}) };
      const body = {
        from: fromOf(flags.since, flags.from),
        ...(flags.until === undefined ? {} : { to: { at: instantOf('until', flags.until) } }),
        ...(accounts || types ? { filter } : {}),
      };
      const query = { region: flags.region };
      const answer = await context
        .api()
        .post<ShownReplay | { replay: ShownReplay }>(pathOf(id, '/replays'), body, query);
      const replay = replayIn(answer);
      if (!context.out.json) {
        context.out.line(`Replay ${clean(replay.id)} runs: ${replay.total} events in its range.`);
      }
      sayLate(context, replay.late);
      if (flags.watch) return watch(context, id, replay.id, query);
      context.out.document(replay, () => context.out.line(`How far it is: ${lookAgain(id, replay.id)}`));
      return undefined;
    },
  }),

  'endpoints replays': command({
    about: 'Lists the replays to an endpoint, or shows one.',
    args: ['ID', 'REPLAY?'],
    flags: { region: REGION, watch: { about: 'Stay until the replay is over, and show how far it is' } },
    example: 'endpoints replays erp',
    async run(context, [id, replay], flags) {
      const { api, out } = context;
      const query = { region: flags.region };
      if (replay !== undefined && flags.watch) return watch(context, id, replay, query);
      if (flags.watch)
        throw new UsageError('--watch wants a replay: jobwire endpoints replays ID REPLAY --watch.');
      if (replay !== undefined) {
        const found = replayIn(await api().get(pathOf(id, `/replays/${segment(replay)}`), query));
        out.document(found, () => describe(context, found));
        return undefined;
      }
      return out.list(
        (more) => api().list<ShownReplay>(pathOf(id, '/replays'), 'replays', query, MAX_REPLAYS, more),
        [
          { name: 'REPLAY', of: (one) => one.id },
          { name: 'STATE', of: ({ state }) => state },
          { name: 'DONE', of: ({ done }) => done, right: true },
          { name: 'OF', of: ({ total }) => total, right: true },
          { name: 'DELIVERED', of: ({ delivered }) => delivered, right: true },
          { name: 'FAILED', of: ({ failed }) => failed, right: true },
          { name: 'STARTED', of: ({ startedAt }) => out.when(startedAt) },
        ],
        'There are no replays.',
      );
    },
  }),
};

function startOf(text: string): unknown {
  return text === 'now' || text === 'beginning' ? text : { at: instantOf('start', text) };
}

function fromOf(since: string | undefined, from: readonly string[]): unknown {
  if (since !== undefined && from.length > 0) throw new UsageError('--since and --from can’t be combined.');
  if (since !== undefined) return { at: instantOf('since', since) };
  if (from.length === 0) throw new UsageError('Say from where: --since WHEN or --from CURSOR.');
  if (from.length === 1 && from[0] === 'beginning') return 'beginning';
  if (from.some((one) => !one.includes('='))) {
    throw new UsageError('--from must be beginning, or ACCOUNT=CURSOR for each account.');
  }
  return { cursors: pairsOf('from', from) };
}

function replayIn(answer: ShownReplay | { replay: ShownReplay }): ShownReplay {
  return 'replay' in answer ? answer.replay : answer;
}

function lookAgain(id: string, replay: string): string {
  return `jobwire endpoints replays ${clean(id)} ${clean(replay)} --watch`;
}

/** Looks every second until it is over. With JSON, one line whenever something moved. */
async function watch(
  context: Context,
  id: string,
  replay: string,
  query: { region: string | undefined },
): Promise<number | undefined> {
  const { out } = context;
  context.onInterrupt(`The replay goes on. How far it is: ${lookAgain(id, replay)}`);
  const path = pathOf(id, `/replays/${segment(replay)}`);
  let said = '';
  let first: { at: number; done: number } | undefined;
  for (;;) {
    const now = replayIn(await context.api().get<ShownReplay>(path, query));
    const at = Date.now();
    first ??= { at, done: now.done };
    const text = JSON.stringify(now);
    if (out.json && text !== said) out.jsonLine(now);
    said = text;
    if (now.state === 'done' || now.state === 'cancelled') {
      if (!out.json) describe(context, now);
      return now.state === 'done' && now.failed === 0 ? undefined : 1;
    }
    const seconds = (at - first.at) / 1000;
    const rate = seconds > 0 ? (now.done - first.done) / seconds : 0;
    const pace =
      rate > 0
        ? `, ${rate.toFixed(rate < 10 ? 1 : 0)} a second, ${Math.ceil((now.total - now.done) / rate)} s to go`
        : '';
    out.progress(`${now.done} of ${now.total} events (${percent(now)} %)${pace}; Ctrl-C leaves it running`);
    await sleep(WATCH_EVERY_MS);
  }
}

function percent({ done, total }: ShownReplay): number {
  return total === 0 ? 100 : Math.floor((100 * done) / total);
}

function describe({ out }: Context, replay: ShownReplay): void {
  out.facts([
    ['Replay', clean(replay.id)],
    ['State', clean(replay.state)],
    ['Done', `${replay.done} of ${replay.total} events (${percent(replay)} %)`],
    ['Delivered', String(replay.delivered)],
    ['Failed', String(replay.failed)],
    ['Not wanted', replay.skipped > 0 ? String(replay.skipped) : null],
    ['Started', out.exactly(replay.startedAt)],
    ['Finished', out.exactly(replay.finishedAt)],
  ]);
}

function sayLate({ out }: Context, late: readonly string[] | undefined): void {
  if (!late?.length) return;
  out.note(`What is left of the log begins later than asked for: ${clean(late.join(', '))}.`);
}
