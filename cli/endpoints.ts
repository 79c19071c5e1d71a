/** `jobwire endpoints …` */
import { setTimeout as sleep } from 'node:timers/promises';
import type * as z from 'zod';
import type * as views from '../shared/api/endpoint-views.ts';
import { ApiError, type Client } from './client.ts';
import { type Context, command, UsageError } from './command.ts';
import { instantOf, listOf, pairsOf, readSecret, secretInEnv, segment, wholeNumber } from './input.ts';
import { type Column, clean } from './output.ts';

type Endpoint = z.infer<typeof views.Endpoint>;
type Health = z.infer<typeof views.EndpointHealth>;
type Replay = z.infer<typeof views.Replay>;
/** A delivery attempt as the API shows it. */
export type Delivery = z.infer<typeof views.Delivery>;

const WATCH_EVERY_MS = 1000;
/** Above the number kept for one endpoint, and the maximum page size of the API. */
const MAX_REPLAYS = 100;
/** Maximum number of concurrent requests for health. */
const LOOKS_AT_ONCE = 8;

const pathOf = (id: string, rest = ''): string => `/v1/endpoints/${segment(id)}${rest}`;

const REGION = { value: 'REGION', about: 'Its region, where the id stands in several' } as const;

const STATE_STYLE = { active: 'green', paused: 'yellow', failing: 'red', disabled: 'red' } as const;

export const endpoints = {
  'endpoints add': command({
    about: 'Adds a webhook endpoint. Its signing secret is shown once, and never again.',
    args: ['URL'],
    flags: {
      id: { value: 'ID', about: 'Its id (generated)' },
      region: {
        value: 'REGION',
        about: 'Its region; may be left out where there is one, or where accounts are named',
      },
      accounts: { value: 'A,B', about: 'Events of these accounts only (all)', many: true },
      types: { value: 'A,B', about: 'Of these types only, job.* for all that begin so (all)', many: true },
      origins: { value: 'A,B', about: 'Of jobs of these origins only', many: true },
      'order-group': {
        value: 'NAME',
        about: 'Of jobs of this order group only',
        many: true,
        field: 'orderGroups',
      },
      start: { value: 'WHEN', about: 'now, beginning, a span such as 2h, or an instant (now)' },
      concurrency: { value: 'N', about: 'Requests at the same time (16)' },
      rate: { value: 'N', about: 'Requests a second at most', field: 'ratePerSecond' },
      description: { value: 'TEXT', about: 'A note' },
      'header-env': {
        value: 'HEADER=NAME',
        about: 'A header that each request carries, its value in an environment variable',
        many: true,
      },
      'secret-file': {
        value: 'FILE',
        about: 'File that holds a signing secret to use (generated)',
        field: 'secret',
      },
      'secret-env': { value: 'NAME', about: 'Environment variable that holds it', field: 'secret' },
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
        region: flags.region,
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
      const made = await api().post<z.infer<typeof views.CreatedEndpoint>>('/v1/endpoints', body);
      out.document(made, () => {
        const { endpoint } = made;
        out.line(`${clean(endpoint.id)} is added in ${clean(endpoint.region)}: ${clean(endpoint.url)}`);
        if (secret === undefined) {
          out.line();
          out.line(`  ${out.paint('bold', clean(made.secret))}`);
          out.line();
          out.note('Keep this signing secret now: it is not shown again.');
        }
        sayLate(context, made.truncatedAccounts);
        out.line(`Try it: jobwire endpoints ping ${clean(endpoint.id)}`);
      });
      return undefined;
    },
  }),

  'endpoints list': command({
    about: 'Lists endpoints and how each is doing.',
    args: [],
    flags: {
      region: { value: 'REGION', about: 'Of this region only' },
      limit: { value: 'N', about: 'At most so many (100)' },
    },
    example: 'endpoints list',
    async run({ api, out }, _args, flags) {
      const limit = wholeNumber('limit', flags.limit ?? '100', 1, 1_000_000);
      const query = { region: flags.region };
      const all = (names: readonly string[]) => (names.length > 0 ? names : 'all');
      type Listed = Endpoint & { readonly health: Health | null };
      return out.list<Listed>(
        (more) => withHealth(api(), query, limit, more),
        [
          { name: 'ENDPOINT', of: ({ id }) => id, long: true },
          { name: 'REGION', of: ({ region }) => region },
          {
            name: 'STATE',
            of: ({ health }) => health?.state,
            style: ({ health }) => (health ? STATE_STYLE[health.state] : undefined),
          },
          { name: 'PARKED', of: ({ health }) => health?.parked.count, right: true },
          { name: 'URL', of: ({ url }) => url, long: true },
          { name: 'ACCOUNTS', of: ({ accounts }) => all(accounts), long: true },
          { name: 'TYPES', of: ({ types }) => all(types), long: true },
          { name: 'MADE BY', of: ({ managed }) => (managed ? 'API' : 'configuration') },
        ],
        'There are no endpoints.',
      );
    },
  }),

  'endpoints health': command({
    about: 'Shows how an endpoint is doing.',
    args: ['ID'],
    flags: { region: REGION },
    example: 'endpoints health erp',
    async run({ api, out }, [id], { region }) {
      const health = await api().get<Health>(pathOf(id, '/health'), { region });
      const { parked, backlog, statistics } = health;
      const { lastError } = statistics;
      const told = (count: number, at: string | null) =>
        `${count} events${at === null ? '' : `, the oldest of ${out.exactly(at)}`}`;
      out.document(health, () => {
        out.facts([
          ['Endpoint', clean(id)],
          ['State', out.paint(STATE_STYLE[health.state], health.state)],
          ['Problem', health.problem && clean(health.problem)],
          ['Left alone until', out.exactly(health.waitUntil)],
          ['Failing since', out.exactly(health.failingSince)],
          ['Disabled', out.exactly(health.disabledAt)],
          ['Took something', out.exactly(health.lastDeliveredAt)],
          ['Failed', out.exactly(health.lastFailedAt)],
          ['Behind by', `${backlog.complete ? '' : 'at least '}${told(backlog.events, backlog.oldestAt)}`],
          ['Set aside', told(parked.count, parked.oldestAt)],
          ['Lost', health.lost > 0 ? String(health.lost) : null],
          [
            'Lately',
            `${statistics.delivered} of ${statistics.attempts} attempts taken (24 hours, 500 at most)`,
          ],
          [
            'Answers in',
            statistics.p50Ms === null ? null : `${statistics.p50Ms} ms, 95 % in ${statistics.p95Ms} ms`,
          ],
          ['Last error', lastError && `${out.exactly(lastError.at)}: ${clean(lastError.reason)}`],
        ]);
        if (health.state === 'disabled')
          out.note(`It gets nothing until: jobwire endpoints enable ${clean(id)}`);
      });
      return undefined;
    },
  }),

  'endpoints deliveries': command({
    about: 'Lists what was sent to an endpoint, and what came of it, the newest first.',
    args: ['ID'],
    flags: {
      region: REGION,
      failed: { about: 'Only what was not taken' },
      limit: { value: 'N', about: 'At most so many (50)' },
    },
    example: 'endpoints deliveries erp --failed',
    async run(context, [id], { region, failed, limit = '50' }) {
      const most = wholeNumber('limit', limit, 1, 100_000);
      const query = { region, outcome: failed ? 'failed' : undefined };
      return context.out.list(
        (more) => context.api().list<Delivery>(pathOf(id, '/deliveries'), 'deliveries', query, most, more),
        deliveryColumns(context).filter(({ name }) => name !== 'ENDPOINT'),
        'There are no deliveries.',
      );
    },
  }),

  'endpoints parked': command({
    about:
      'Lists events that are set aside because an endpoint refused them, or one before them of the same job.',
    args: ['ID'],
    flags: { region: REGION, limit: { value: 'N', about: 'At most so many (100)' } },
    example: 'endpoints parked erp',
    async run({ api, out }, [id], { region, limit = '100' }) {
      const most = wholeNumber('limit', limit, 1, 100_000);
      return out.list(
        (more) =>
          api().list<z.infer<typeof views.ParkedEvent>>(
            pathOf(id, '/parked'),
            'parked',
            { region },
            most,
            more,
          ),
        [
          { name: 'SET ASIDE', of: ({ parkedAt }) => out.when(parkedAt) },
          { name: 'EVENT', of: ({ event }) => event, long: true },
          { name: 'TYPE', of: ({ type }) => type },
          { name: 'TRIED', of: ({ attempts }) => attempts, right: true },
          { name: 'AGAIN', of: ({ retryAt }) => out.when(retryAt) },
          { name: 'WHY', of: ({ reason }) => reason, long: true },
        ],
        'Nothing is set aside.',
      );
    },
  }),

  'endpoints pause': change(
    'pause',
    'Holds an endpoint back: it keeps its places, and gets nothing.',
    'is paused',
  ),
  'endpoints resume': change(
    'resume',
    'Lets a paused endpoint go on where it stood.',
    'goes on where it stood',
  ),
  'endpoints enable': change(
    'enable',
    'Lets an endpoint that was disabled, or waits after a failure, go on at once.',
    'is tried again now',
  ),

  'endpoints remove': command({
    about: 'Removes an endpoint with its places in the logs and what is set aside for it.',
    args: ['ID'],
    flags: { region: REGION },
    example: 'endpoints remove erp',
    async run({ api, out }, [id], { region }) {
      await api().remove(pathOf(id), { region });
      out.document({ removed: id }, () => out.line(`${clean(id)} is removed.`));
      return undefined;
    },
  }),

  'endpoints ping': command({
    about: 'Sends a test event to an endpoint, signed as every event is, and says how it was answered.',
    args: ['ID'],
    flags: { region: REGION },
    example: 'endpoints ping erp',
    async run({ api, out }, [id], flags) {
      out.progress(`Pinging ${clean(id)} …`);
      const report = await api().post<z.infer<typeof views.AttemptReport>>(pathOf(id, '/ping'), undefined, {
        region: flags.region,
      });
      const taken = report.outcome === 'delivered';
      out.document(report, () => {
        const answer = report.status === null ? 'no answer' : `HTTP ${report.status}`;
        out.line(
          `${taken ? out.paint('green', 'Delivered') : out.paint('red', 'Not taken')}: ${answer} after ${report.latencyMs} ms.${taken ? '' : ` ${clean(report.message)}`}`,
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
      since: { value: 'WHEN', about: 'From then on: a span such as 2h, a day or an instant', field: 'from' },
      from: { value: 'CURSOR', about: 'beginning, or ACCOUNT=CURSOR: what comes after it', many: true },
      until: { value: 'WHEN', about: 'Up to then (now)', field: 'to' },
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
      const replay = await context.api().post<Replay>(pathOf(id, '/replays'), body, query);
      if (!context.out.json) {
        context.out.line(`Replay ${clean(replay.id)} runs: ${replay.total} events in its range.`);
      }
      sayLate(context, replay.truncatedAccounts);
      if (flags.watch) return watch(context, id, replay.id, query);
      context.out.document(replay, () =>
        context.out.line(`How far it is: ${lookAgain(id, replay.id, query)}`),
      );
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
        const found = await api().get<Replay>(pathOf(id, `/replays/${segment(replay)}`), query);
        out.document(found, () => describe(context, found));
        return undefined;
      }
      return out.list(
        (more) =>
          api().list<Replay>(pathOf(id, '/replays'), 'replays', query, MAX_REPLAYS, more, MAX_REPLAYS),
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

function change(verb: 'pause' | 'resume' | 'enable', about: string, done: string) {
  return command({
    about,
    args: ['ID'],
    flags: { region: REGION },
    example: `endpoints ${verb} erp`,
    async run({ api, out }, [id], { region }) {
      const endpoint = await api().post<Endpoint>(pathOf(id, `/${verb}`), undefined, { region });
      out.document(endpoint, () => out.line(`${clean(id)} ${done}.`));
      return undefined;
    },
  });
}

/** Yields endpoints with their health. `null` for one that was deleted meanwhile. */
async function* withHealth(
  api: Client,
  query: { readonly region: string | undefined },
  limit: number,
  more: () => void,
) {
  const together: Endpoint[] = [];
  const looked = () =>
    Promise.all(
      together.splice(0).map(async (endpoint) => {
        const asked = api.get<Health>(pathOf(endpoint.id, '/health'), { region: endpoint.region });
        const health = await asked.catch((cause) => {
          if (cause instanceof ApiError && cause.status === 404) return null;
          throw cause;
        });
        return { ...endpoint, health };
      }),
    );
  for await (const endpoint of api.list<Endpoint>('/v1/endpoints', 'endpoints', query, limit, more)) {
    if (together.push(endpoint) === LOOKS_AT_ONCE) yield* await looked();
  }
  yield* await looked();
}

/** Returns the columns of delivery attempts. */
export function deliveryColumns({ out }: Context): Column<Delivery>[] {
  return [
    { name: 'WHEN', of: ({ at }) => out.when(at) },
    { name: 'ENDPOINT', of: ({ endpoint }) => endpoint },
    { name: 'EVENT', of: ({ event }) => event, long: true },
    { name: 'TYPE', of: ({ type }) => type },
    { name: 'SENT AS', of: ({ cause }) => cause },
    {
      name: 'OUTCOME',
      of: ({ outcome }) => outcome,
      style: ({ outcome }) => (outcome === 'delivered' ? 'green' : 'red'),
    },
    { name: 'HTTP', of: ({ status }) => status, right: true },
    { name: 'MS', of: ({ latencyMs }) => latencyMs, right: true },
    { name: 'WHY', of: ({ reason }) => reason, long: true },
  ];
}

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

function lookAgain(id: string, replay: string, { region }: { region: string | undefined }): string {
  const where = region === undefined ? '' : ` --region ${clean(region)}`;
  return `jobwire endpoints replays ${clean(id)} ${clean(replay)}${where} --watch`;
}

/** Polls every second until the replay has ended. With JSON, prints a line after each change. */
async function watch(
  context: Context,
  id: string,
  replay: string,
  query: { region: string | undefined },
): Promise<number | undefined> {
  const { out } = context;
  context.onInterrupt(`The replay goes on. How far it is: ${lookAgain(id, replay, query)}`);
  const health = await context.api().get<Health>(pathOf(id, '/health'), query);
  if (health.state !== 'active') {
    const why = health.problem === null ? '' : ` (${clean(health.problem)})`;
    out.note(`The endpoint is ${health.state}${why}: a replay goes on when it takes something.`);
  }
  const path = pathOf(id, `/replays/${segment(replay)}`);
  let said = '';
  let first: { at: number; done: number } | undefined;
  for (;;) {
    const now = await context.api().get<Replay>(path, query);
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

function percent({ done, total }: Replay): number {
  return total === 0 ? 100 : Math.floor((100 * done) / total);
}

function describe({ out }: Context, replay: Replay): void {
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
