/** `jobwire endpoints …`: deliveries, parked and dead events, and replays of an endpoint. */
import { setTimeout as sleep } from 'node:timers/promises';
import type {
  Client,
  Delivery,
  DiscardedEvents,
  EndpointBatch,
  NewReplay,
  ParkedEventSelection,
  Redelivery,
  RedeliveryReport,
  Replay,
  RetriedEvents,
} from '../client/index.ts';
import { eventTypes, inputs } from '../client/inputs.ts';
import { deliveryColumns, printAttempt, printProblems } from './attempts.ts';
import { BATCH, runBatch } from './batch.ts';
import { type Context, CSV, command, limitFlag, UsageError } from './command.ts';
import { parseIntegers, parseList, parsePairs, parseTime, sinceFlag } from './input.ts';
import { count, sanitizeLine } from './output.ts';

const WATCH_EVERY_MS = 1000;

/** Above the number kept for one endpoint, and the maximum page size of the API. */
const MAX_REPLAYS = 100;

export const withEndpoint = (id: string, region: string | undefined) => ({
  params: { path: { id }, query: { region } },
});

export const REGION = {
  value: 'REGION',
  about: 'Region. Required if the id exists in several regions',
} as const;

export const deliveryCommands = {
  'endpoints deliveries': command({
    about: 'Lists the delivery attempts of an endpoint, newest first.',
    more: 'With --failed, each different problem is printed below the list, with the beginning of the response body.',
    args: ['ID'],
    flags: {
      region: REGION,
      failed: { about: 'Only failed attempts' },
      outcome: {
        value: 'OUTCOME',
        about:
          'Only attempts with this outcome. rejected: the endpoint rejected the event. retry: it was unavailable. failed: both',
        choices: inputs['listEndpointDeliveries.outcome'],
      },
      types: { value: 'A,B', about: 'Only events of these types', many: true, suggestions: eventTypes },
      since: sinceFlag('Attempts'),
      until: { value: 'WHEN', about: 'Attempts before this time. Default: now', field: 'to' },
      limit: limitFlag(50),
      ...CSV,
    },
    example: 'endpoints deliveries erp --failed --since 2h',
    async run(context, [id], flags) {
      const { region, failed, since, until, limit: max } = flags;
      if (failed && flags.outcome !== undefined) {
        throw new UsageError('--failed and --outcome can’t be combined.');
      }
      const query = {
        region,
        outcome: failed ? ('failed' as const) : flags.outcome,
        types: parseList(flags.types)?.join(','),
        from: since === undefined ? undefined : parseTime('since', since),
        to: until === undefined ? undefined : parseTime('until', until),
      };
      const params = { path: { id }, query };
      const { out, api } = context;
      const listed: Delivery[] = [];
      await out.list<Delivery>(
        async function* (onMore) {
          const init = { params, max, onMore };
          for await (const attempt of api().list('/v1/endpoints/{id}/deliveries', 'deliveries', init)) {
            listed.push(attempt);
            yield attempt;
          }
        },
        deliveryColumns(context).filter(({ name }) => name !== 'ENDPOINT'),
        'There are no delivery attempts.',
      );
      if (failed && !out.json && !flags.csv) printProblems(out, listed);
      return undefined;
    },
  }),

  'endpoints parked': command({
    about:
      'Lists parked events: events that the endpoint rejected or that made it fail, and the later events of the same jobs.',
    args: ['ID'],
    flags: { region: REGION, limit: limitFlag(100), ...CSV },
    example: 'endpoints parked erp',
    async run({ api, out }, [id], { region, limit: max }) {
      return out.list(
        (onMore) =>
          api().list('/v1/endpoints/{id}/parked', 'parked', { ...withEndpoint(id, region), max, onMore }),
        [
          { name: 'PARKED', value: ({ parkedAt }) => out.formatTimeCell(parkedAt) },
          { name: 'EVENT', value: ({ event }) => event, long: true },
          { name: 'TYPE', value: ({ type }) => type },
          { name: 'ATTEMPTS', value: ({ attempts }) => attempts, right: true },
          { name: 'NEXT RETRY', value: ({ retryAt }) => out.formatTimeCell(retryAt) },
          { name: 'REASON', value: ({ reason }) => reason, long: true },
        ],
        'No events are parked.',
      );
    },
  }),

  'endpoints retry': createParkedCommand({
    about:
      'Retries parked events of an endpoint now. When one is acknowledged, the later events of the same job follow.',
    verb: 'retry',
    done: ({ retried }) => `${count(retried ?? 0, 'event')} will be sent now.`,
    change: (client, init) => client.post('/v1/endpoints/{id}/parked/retry', init),
  }),

  'endpoints discard': createParkedCommand({
    about: 'Discards parked events of an endpoint. The later events of the same job are then delivered.',
    verb: 'discard',
    done: ({ discarded }) =>
      `${count(discarded ?? 0, 'event')} discarded. To send one again, use endpoints resend.`,
    change: (client, init) => client.post('/v1/endpoints/{id}/parked/discard', init),
  }),

  'endpoints batch': command({
    about: 'Performs an action on several endpoints, and prints the result for each.',
    more: 'ACTION is pause, resume, enable, retry or discard. The last two apply to all parked events. If the action fails for an endpoint, the command continues with the others, and the exit code is 1.',
    args: ['ACTION'],
    choices: { ACTION: inputs['EndpointBatch.action'] },
    flags: { region: { value: 'REGION', about: 'Only this region' }, ...BATCH },
    example: 'endpoints batch pause --ids erp,shop',
    run: (context, [action], flags) =>
      runBatch<EndpointBatch['action']>(context, action, flags, (client, body) =>
        client.post('/v1/endpoints/batch', { body }),
      ),
  }),

  'endpoints dead': command({
    about: 'Lists the events that an endpoint rejected on every attempt.',
    args: ['ID'],
    flags: { region: REGION, limit: limitFlag(100), ...CSV },
    example: 'endpoints dead erp',
    async run({ api, out }, [id], { region, limit: max }) {
      return out.list(
        (onMore) =>
          api().list('/v1/endpoints/{id}/dead', 'dead', { ...withEndpoint(id, region), max, onMore }),
        [
          { name: 'DIED', value: ({ diedAt }) => out.formatTimeCell(diedAt) },
          { name: 'EVENT', value: ({ event }) => event, long: true },
          { name: 'TYPE', value: ({ type }) => type },
          { name: 'ATTEMPTS', value: ({ attempts }) => attempts, right: true },
          { name: 'REASON', value: ({ reason }) => reason, long: true },
        ],
        'There are no dead events.',
      );
    },
  }),

  'endpoints redeliver': command({
    about: 'Retries the parked events and replays the dead events of an endpoint, if they match a filter.',
    more: 'Without filters, all parked and dead events are sent again.',
    args: ['ID'],
    flags: {
      region: REGION,
      parked: { about: 'Only parked events' },
      dead: { about: 'Only dead events' },
      accounts: { value: 'A,B', about: 'Only events of these accounts', many: true },
      types: { value: 'A,B', about: 'Only events of these types', many: true, suggestions: eventTypes },
      jobs: { value: 'A,B', about: 'Only events of these jobs', many: true, field: 'jobNumbers' },
      statuses: {
        value: 'A,B',
        about: 'Only events whose last rejection had one of these HTTP statuses',
        many: true,
      },
      since: sinceFlag('Only events parked'),
      until: { value: 'WHEN', about: 'Only events parked before this time', field: 'to' },
      'dry-run': { about: 'Only count and list the events' },
      watch: { about: 'Show the progress until the replay ends. Ctrl-C does not stop the replay' },
    },
    example: 'endpoints redeliver erp --statuses 422 --since 2h --dry-run',
    async run(context, [id], flags) {
      const { out } = context;
      const { region, parked, dead, since, until, 'dry-run': dryRun } = flags;
      if (dryRun && flags.watch) throw new UsageError('--dry-run and --watch can’t be combined.');
      const filter = {
        accounts: parseList(flags.accounts),
        types: parseList(flags.types),
        jobNumbers: parseIntegers('jobs', flags.jobs),
        statuses: parseIntegers('statuses', flags.statuses),
        from: since === undefined ? undefined : parseTime('since', since),
        to: until === undefined ? undefined : parseTime('until', until),
      };
      const body: Redelivery = {
        ...(parked === dead ? {} : { states: [parked ? ('parked' as const) : ('dead' as const)] }),
        // Undefined fields are not sent.
        filter,
        dryRun,
      };
      const at = withEndpoint(id, region);
      const report = await context.api().post('/v1/endpoints/{id}/redeliver', { ...at, body });
      const { replay } = report;
      if (replay && flags.watch) {
        if (!out.json) printRedelivery(context, report);
        return watch(context, id, replay.id, region);
      }
      out.document(report, () => {
        printRedelivery(context, report);
        if (replay) out.line(`To see its progress, run: ${watchCommand(context, id, replay.id, region)}`);
      });
      return undefined;
    },
  }),

  'endpoints resend': command({
    about: 'Sends one event of the log to an endpoint again, with the same id, and shows the response.',
    more: 'It is sent even if the endpoint is paused or disabled, or if its filters exclude the event.',
    args: ['ID', 'EVENT'],
    flags: { region: REGION },
    example: 'endpoints resend erp acme.mf2k8t9x3a.17',
    async run({ api, out }, [id, event], { region }) {
      out.progress(`Sending ${sanitizeLine(event)} to ${sanitizeLine(id)} …`);
      const at = withEndpoint(id, region);
      return printAttempt(out, await api().post('/v1/endpoints/{id}/resend', { ...at, body: { event } }));
    },
  }),

  'endpoints replay': command({
    about: 'Sends past events to an endpoint again, with the same ids, from --since or --from on.',
    args: ['ID'],
    flags: {
      region: REGION,
      since: sinceFlag('Events'),
      from: {
        value: 'CURSOR',
        about: 'beginning, or ACCOUNT=CURSOR for the events after a cursor',
        many: true,
      },
      until: { value: 'WHEN', about: 'Events before this time. Default: now', field: 'to' },
      accounts: { value: 'A,B', about: 'Only events of these accounts', many: true },
      types: { value: 'A,B', about: 'Only events of these types', many: true, suggestions: eventTypes },
      watch: { about: 'Show the progress until the replay ends. Ctrl-C does not stop the replay' },
    },
    example: 'endpoints replay erp --since 2h --watch',
    async run(context, [id], flags) {
      const accounts = parseList(flags.accounts);
      const types = parseList(flags.types);
      const filter = { ...(accounts ? { accounts } : {}), ...(types ? { types } : {}) };
      const body = {
        from: parseReplayStart(flags.since, flags.from),
        ...(flags.until === undefined ? {} : { to: { at: parseTime('until', flags.until) } }),
        ...(accounts || types ? { filter } : {}),
      };
      const at = withEndpoint(id, flags.region);
      const replay = await context.api().post('/v1/endpoints/{id}/replays', { ...at, body });
      if (!context.out.json) {
        context.out.line(`Replay ${sanitizeLine(replay.id)} started: ${replay.total} events.`);
      }
      printTruncation(context, replay.truncatedAccounts);
      if (flags.watch) return watch(context, id, replay.id, flags.region);
      context.out.document(
        replay,
        `To see its progress, run: ${watchCommand(context, id, replay.id, flags.region)}`,
      );
      return undefined;
    },
  }),

  'endpoints replays': command({
    about: 'Lists the replays of an endpoint, or shows one.',
    args: ['ID', 'REPLAY?'],
    flags: {
      region: REGION,
      watch: { about: 'Show the progress until the replay ends. Ctrl-C does not stop the replay' },
      ...CSV,
    },
    example: 'endpoints replays erp',
    async run(context, [id, replay], flags) {
      const { api, out } = context;
      const { region } = flags;
      if (replay !== undefined && flags.watch) return watch(context, id, replay, region);
      if (flags.watch)
        throw new UsageError('--watch requires a replay: jobwire endpoints replays ID REPLAY --watch.');
      if (replay !== undefined) {
        const found = await api().get('/v1/endpoints/{id}/replays/{replay}', {
          params: { path: { id, replay }, query: { region } },
        });
        out.document(found, () => printReplay(context, found));
        return undefined;
      }
      return out.list(
        (onMore) => {
          const options = { max: MAX_REPLAYS, pageSize: MAX_REPLAYS, onMore };
          return api().list('/v1/endpoints/{id}/replays', 'replays', {
            ...withEndpoint(id, region),
            ...options,
          });
        },
        [
          { name: 'REPLAY', value: (one) => one.id },
          { name: 'STATE', value: ({ state }) => state },
          { name: 'DONE', value: ({ done }) => done, right: true },
          { name: 'TOTAL', value: ({ total }) => total, right: true },
          { name: 'DELIVERED', value: ({ delivered }) => delivered, right: true },
          { name: 'FAILED', value: ({ failed }) => failed, right: true },
          { name: 'STARTED', value: ({ startedAt }) => out.formatTimeCell(startedAt) },
        ],
        'There are no replays.',
      );
    },
  }),

  'endpoints cancel-replay': command({
    about: 'Cancels a replay. Events that were already sent are not affected.',
    args: ['ID', 'REPLAY'],
    flags: { region: REGION },
    example: 'endpoints cancel-replay erp rp-4fz81m2k',
    async run(context, [id, replay], { region }) {
      const params = { path: { id, replay }, query: { region } };
      const cancelled = await context.api().post('/v1/endpoints/{id}/replays/{replay}/cancel', { params });
      context.out.document(cancelled, () => printReplay(context, cancelled));
    },
  }),
};

/** Creates a command on parked events: those that `--event` names, or all with `--all`. */
function createParkedCommand(verbs: {
  readonly about: string;
  readonly verb: 'retry' | 'discard';
  readonly change: (
    client: Client,
    init: ReturnType<typeof withEndpoint> & { readonly body: ParkedEventSelection },
  ) => Promise<Partial<RetriedEvents & DiscardedEvents> & { readonly missing: readonly string[] }>;
  readonly done: (report: Partial<RetriedEvents & DiscardedEvents>) => string;
}) {
  const { about, verb, change, done } = verbs;
  return command({
    about,
    args: ['ID'],
    flags: {
      region: REGION,
      event: { value: 'EVENT', about: 'Id of a parked event', many: true, field: 'events' },
      all: { about: 'All parked events of the endpoint' },
    },
    example: `endpoints ${verb} erp --event acme.mf2k8t9x3a.17`,
    async run({ api, out }, [id], { region, event: events, all }) {
      if (all === events.length > 0) {
        throw new UsageError('Either --event EVENT or --all is required, but not both.');
      }
      const body: ParkedEventSelection = all ? { all: true } : { events };
      const report = await change(api(), { ...withEndpoint(id, region), body });
      out.document(report, done(report));
      if (report.missing.length === 0) return undefined;
      out.note(`Not parked: ${sanitizeLine(report.missing.join(', '))}.`);
      return 1;
    },
  });
}

function printRedelivery({ out }: Context, report: RedeliveryReport): void {
  const { dryRun, parked, dead, complete, events, replay } = report;
  const listed = events.map(({ event, type, state, status }) =>
    sanitizeLine(`  ${event}  ${type}  ${state}${status === null ? '' : `, HTTP ${status}`}`),
  );
  const verb = dryRun ? 'would be' : 'will be';
  out.line(
    `${count(parked, 'parked event')} ${verb} retried, ${count(dead, 'dead event')} ${verb} replayed.`,
  );
  for (const line of listed) out.line(line);
  if (parked + dead > events.length) out.line(`  and ${parked + dead - events.length} more`);
  if (!complete)
    out.note('Only the first 10,000 dead events were examined. Repeat the command after the replay.');
  if (replay) out.line(`Replay ${sanitizeLine(replay.id)} started.`);
}

function parseReplayStart(since: string | undefined, from: readonly string[]): NewReplay['from'] {
  if (since !== undefined && from.length > 0) throw new UsageError('--since and --from can’t be combined.');
  if (since !== undefined) return { at: parseTime('since', since) };
  if (from.length === 0) throw new UsageError('--since WHEN or --from CURSOR is required.');
  if (from.length === 1 && from[0] === 'beginning') return 'beginning';
  if (from.some((one) => !one.includes('='))) {
    throw new UsageError('--from must be beginning, or ACCOUNT=CURSOR for each account.');
  }
  return { cursors: parsePairs('from', from, 'ACCOUNT=CURSOR') ?? {} };
}

function watchCommand(
  { toCommand }: Context,
  id: string,
  replay: string,
  region: string | undefined,
): string {
  const where = region === undefined ? '' : ` --region ${sanitizeLine(region)}`;
  return toCommand(`endpoints replays ${sanitizeLine(id)} ${sanitizeLine(replay)}${where} --watch`);
}

/** Polls every second until the replay has ended. With JSON, prints a line after each change. */
async function watch(
  context: Context,
  id: string,
  replay: string,
  region: string | undefined,
): Promise<number | undefined> {
  const { out } = context;
  context.onInterrupt(
    `The replay continues. To see its progress, run: ${watchCommand(context, id, replay, region)}`,
  );
  const health = await context.api().get('/v1/endpoints/{id}/health', withEndpoint(id, region));
  if (health.state !== 'active') {
    const problem = health.problem === null ? '' : ` (${sanitizeLine(health.problem)})`;
    out.note(`The endpoint is ${health.state}${problem}. The replay resumes when delivery succeeds again.`);
  }
  const params = { path: { id, replay }, query: { region } };
  let printed = '';
  let first: { at: number; done: number } | undefined;
  for (;;) {
    const now = await context.api().get('/v1/endpoints/{id}/replays/{replay}', { params });
    const at = Date.now();
    first ??= { at, done: now.done };
    const text = JSON.stringify(now);
    if (out.json && text !== printed) out.jsonLine(now);
    printed = text;
    if (now.state === 'done' || now.state === 'cancelled') {
      if (!out.json) printReplay(context, now);
      return now.state === 'done' && now.failed === 0 ? undefined : 1;
    }
    const seconds = (at - first.at) / 1000;
    const rate = seconds > 0 ? (now.done - first.done) / seconds : 0;
    const pace =
      rate > 0
        ? `, ${rate.toFixed(rate < 10 ? 1 : 0)} per second, ${Math.ceil((now.total - now.done) / rate)} s left`
        : '';
    out.progress(
      `${now.done} of ${now.total} events (${percent(now)} %)${pace}; Ctrl-C does not stop the replay`,
    );
    await sleep(WATCH_EVERY_MS);
  }
}

function percent({ done, total }: Replay): number {
  return total === 0 ? 100 : Math.floor((100 * done) / total);
}

function printReplay({ out }: Context, replay: Replay): void {
  out.fields([
    ['Replay', sanitizeLine(replay.id)],
    ['State', sanitizeLine(replay.state)],
    ['Done', `${replay.done} of ${replay.total} events (${percent(replay)} %)`],
    ['Delivered', String(replay.delivered)],
    ['Failed', String(replay.failed)],
    ['Filtered out', replay.skipped > 0 ? String(replay.skipped) : null],
    ['Started', out.formatTimeWithAge(replay.startedAt)],
    ['Finished', out.formatTimeWithAge(replay.finishedAt)],
  ]);
}

/** Prints which accounts' events start later than requested. */
export function printTruncation({ out }: Context, late: readonly string[] | undefined): void {
  if (!late?.length) return;
  out.note(
    `Delivery starts later than requested, because older events of these accounts have expired: ${sanitizeLine(late.join(', '))}.`,
  );
}
