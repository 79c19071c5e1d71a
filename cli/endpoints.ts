/**
 * `jobwire endpoints …`: endpoints, their settings and their state.
 * One file: the commands share the input of settings and the output of lists.
 */
import type {
  Client,
  Endpoint,
  EndpointHealth,
  EndpointUpdate,
  ListOptions,
  NewEndpoint,
} from '../client/index.ts';
import { eventTypes, inputs } from '../client/inputs.ts';
import { parseQueueAddress } from '../shared/delivery/queue-address.ts';
import { printAttempt } from './attempts.ts';
import {
  type Context,
  CSV,
  command,
  type Flags,
  type FlagValues,
  limitFlag,
  parseRange,
  type Range,
  UsageError,
  withoutDefaults,
} from './command.ts';
import { deliveryCommands, printTruncation, REGION, withEndpoint } from './deliveries.ts';
import {
  HEADER_ENV,
  ignoreNotFound,
  parseList,
  parsePairs,
  parseTime,
  readHeaders,
  readSecret,
} from './input.ts';
import { count, sanitizeLine } from './output.ts';

/** Maximum number of concurrent requests for health. */
const HEALTH_CONCURRENCY = 8;

/** Options that select events. */
const FILTERS = {
  accounts: { value: 'A,B', about: 'Only events of these accounts', many: true },
  types: {
    value: 'A,B',
    about: 'Only events of these types. With job.*, all types that begin with "job." match',
    many: true,
    suggestions: eventTypes,
  },
  origins: { value: 'A,B', about: 'Only events of jobs with these origins (originCode)', many: true },
  'order-group': {
    value: 'NAME',
    about: 'Only events of jobs of this order group',
    many: true,
    field: 'orderGroups',
  },
  'job-field': {
    value: 'NAME=VALUE',
    about: 'Only events of jobs with this value of a field, such as status=Shipped or mustDate=true',
    many: true,
    field: 'jobFields',
  },
} as const satisfies Flags;

const CONCURRENCY = inputs['NewEndpoint.concurrency'];
const RATE = inputs['NewEndpoint.ratePerSecond'];
/** Options of the delivery of events. */
const DELIVERY = {
  concurrency: {
    value: 'N',
    about: `Maximum number of jobs whose events are delivered in parallel, ${formatRange(CONCURRENCY)}. Default: ${CONCURRENCY.most}`,
  },
  rate: {
    value: 'N',
    about: `Maximum number of requests per second, ${formatRange(RATE)}. Default: unlimited`,
    field: 'ratePerSecond',
  },
  description: { value: 'TEXT', about: 'Description of the endpoint' },
  ...HEADER_ENV,
} as const satisfies Flags;

/** Options that name the location of a signing secret. */
const SECRET = {
  'secret-file': {
    value: 'FILE',
    about: 'File that contains the signing secret. Default: generated',
    field: 'secret',
  },
  'secret-env': {
    value: 'NAME',
    about: 'Environment variable that contains the signing secret',
    field: 'secret',
  },
} as const satisfies Flags;

const STATE_STYLE = { active: 'green', paused: 'yellow', failing: 'red', disabled: 'red' } as const;

export const endpoints = {
  'endpoints add': command({
    about: 'Adds an endpoint. The signing secret of a webhook is shown only once.',
    more: 'URL is the URL of a webhook, or the ARN or URL of an SQS queue. Without a filter, all events are delivered.',
    args: ['URL'],
    flags: {
      id: { value: 'ID', about: 'Id of the endpoint. Default: generated' },
      kind: {
        value: 'KIND',
        about: 'Kind of endpoint. Default: sqs for the ARN or URL of an SQS queue, otherwise webhook',
        choices: inputs['NewEndpoint.kind'],
      },
      region: {
        value: 'REGION',
        about: 'Region of the endpoint. Required without --accounts, if Jobwire serves several regions',
      },
      ...FILTERS,
      start: {
        value: 'WHEN',
        about: 'First event to deliver: now, beginning, a duration such as 2h, or a timestamp. Default: now',
        suggestions: ['now', 'beginning'],
      },
      ...DELIVERY,
      ...SECRET,
    },
    example: "endpoints add https://erp.example.com/jobs --types 'job.*' --accounts acme",
    async run(context, [url], flags) {
      const { api, out } = context;
      const secret = await readSigningSecret(context, flags);
      const body = {
        url,
        id: flags.id,
        kind: flags.kind ?? (url.startsWith('arn:') || parseQueueAddress(url) ? 'sqs' : undefined),
        region: flags.region,
        ...(withoutNull(toSettings(context, flags)) as Partial<NewEndpoint>),
        start: flags.start === undefined ? undefined : parseStart(flags.start),
        secret,
      };
      const created = await api().post('/v1/endpoints', { body });
      out.document(created, () => {
        const { endpoint } = created;
        out.line(
          `${sanitizeLine(endpoint.id)} was added in ${sanitizeLine(endpoint.region)}: ${sanitizeLine(endpoint.url)}`,
        );
        if (secret === undefined && created.secret !== null) printSecret(context, created.secret);
        printTruncation(context, created.truncatedAccounts);
        out.line(
          `To test it, run: ${context.toCommand(`endpoints ping ${sanitizeLine(endpoint.id)}${flags.region === undefined ? '' : ` --region ${sanitizeLine(endpoint.region)}`}`)}`,
        );
      });
    },
  }),

  'endpoints list': command({
    about: 'Lists endpoints with their health.',
    flags: {
      region: { value: 'REGION', about: 'Only this region' },
      limit: limitFlag(100),
      ...CSV,
    },
    example: 'endpoints list',
    async run({ api, out }, _args, flags) {
      type Listed = Endpoint & { readonly health: EndpointHealth | null };
      const options = { params: { query: { region: flags.region } }, max: flags.limit };
      if (flags.csv) return out.csv((onMore) => api().csv('/v1/endpoints', { ...options, onMore }));
      return out.list<Listed>(
        (onMore) => withHealth(api(), { ...options, onMore }),
        [
          { name: 'ENDPOINT', value: ({ id }) => id, long: true },
          { name: 'REGION', value: ({ region }) => region },
          {
            name: 'STATE',
            value: ({ health }) => health?.state,
            style: ({ health }) => (health ? STATE_STYLE[health.state] : undefined),
          },
          { name: 'PARKED', value: ({ health }) => health?.parked.count, right: true },
          { name: 'URL', value: ({ url }) => url, long: true },
          { name: 'ACCOUNTS', value: ({ accounts }) => formatFilter(accounts), long: true },
          { name: 'TYPES', value: ({ types }) => formatFilter(types), long: true },
          { name: 'MANAGED BY', value: ({ managed }) => (managed ? 'API' : 'configuration') },
        ],
        'There are no endpoints.',
      );
    },
  }),

  'endpoints show': command({
    about: 'Shows the settings of an endpoint.',
    args: ['ID'],
    flags: { region: REGION },
    example: 'endpoints show erp',
    async run({ api, out }, [id], { region }) {
      const endpoint = await api().get('/v1/endpoints/{id}', withEndpoint(id, region));
      const { jobFields, headers, ratePerSecond } = endpoint;
      const fields = Object.entries(jobFields).map(([name, value]) => `${name} = ${JSON.stringify(value)}`);
      out.document(endpoint, () =>
        out.fields([
          ['Endpoint', sanitizeLine(endpoint.id)],
          ['Region', sanitizeLine(endpoint.region)],
          ['Kind', endpoint.kind],
          ['URL', sanitizeLine(endpoint.url)],
          ['Description', endpoint.description && sanitizeLine(endpoint.description)],
          ['State', out.paint(STATE_STYLE[endpoint.state], endpoint.state)],
          ['Accounts', sanitizeLine(formatFilter(endpoint.accounts))],
          ['Types', sanitizeLine(formatFilter(endpoint.types))],
          ['Order groups', sanitizeLine(formatFilter(endpoint.orderGroups))],
          ['Origins', sanitizeLine(formatFilter(endpoint.origins))],
          ['Job fields', fields.length === 0 ? null : sanitizeLine(fields.join(', '))],
          [
            'Headers',
            headers.length === 0 ? null : `${sanitizeLine(headers.join(', '))} (values are not readable)`,
          ],
          ['Concurrency', endpoint.concurrency === null ? null : String(endpoint.concurrency)],
          ['Rate', ratePerSecond === null ? null : `${ratePerSecond} requests per second`],
          ['Managed by', endpoint.managed ? 'API' : 'configuration'],
          ['Created', out.formatTimeWithAge(endpoint.createdAt)],
          ['Changed', out.formatTimeWithAge(endpoint.changedAt)],
        ]),
      );
    },
  }),

  'endpoints update': command({
    about: 'Changes the given settings of an endpoint.',
    more: 'A list replaces the current list. The value all removes a filter. The value none removes the headers, the rate, the concurrency or the description.',
    args: ['ID'],
    flags: {
      region: REGION,
      'endpoint-url': {
        value: 'URL',
        about: 'URL of the webhook, or ARN or URL of the queue',
        field: 'url',
      },
      ...FILTERS,
      ...withoutDefaults(DELIVERY),
      start: {
        value: 'WHEN',
        about:
          'Where the delivery of newly added accounts starts: now, beginning, a duration such as 2h, or a timestamp. Default: now',
        suggestions: ['now', 'beginning'],
      },
    },
    example: 'endpoints update erp --types job.dispatched,job.tracking_added --rate none',
    async run(context, [id], flags) {
      const { api, out } = context;
      const body: EndpointUpdate = {
        ...toSettings(context, flags),
        ...(flags['endpoint-url'] === undefined ? {} : { url: flags['endpoint-url'] }),
        ...(flags.start === undefined ? {} : { start: parseStart(flags.start) }),
      };
      if (Object.keys(body).length === 0)
        throw new UsageError("Nothing to change. Set at least one option, such as --types 'job.*'.");
      const at = withEndpoint(id, flags.region);
      const endpoint = await api().patch('/v1/endpoints/{id}', { ...at, body });
      out.document(endpoint, `${sanitizeLine(id)} was updated.`);
    },
  }),

  'endpoints rotate-secret': command({
    about: 'Replaces the signing secret of an endpoint. The new one is shown only once.',
    more: 'Until the grace period ends, requests are signed with both the new and the previous secrets.',
    args: ['ID'],
    flags: {
      region: REGION,
      grace: {
        value: 'SECONDS',
        about: 'Time for which the previous secrets stay valid. Default: 86400',
        range: inputs['SecretRotation.gracePeriodSeconds'],
        field: 'gracePeriodSeconds',
      },
      ...SECRET,
    },
    example: 'endpoints rotate-secret erp --grace 3600',
    async run(context, [id], flags) {
      const { api, out } = context;
      const secret = await readSigningSecret(context, flags);
      const body = { secret, gracePeriodSeconds: flags.grace };
      const at = withEndpoint(id, flags.region);
      const rotated = await api().post('/v1/endpoints/{id}/rotate-secret', { ...at, body });
      out.document(rotated, () => {
        out.line(`The signing secret of ${sanitizeLine(id)} was replaced.`);
        if (secret === undefined) printSecret(context, rotated.secret);
        out.line(`The previous secrets expire at ${out.formatTimeWithAge(rotated.previousSecretsExpireAt)}.`);
      });
    },
  }),

  'endpoints statistics': command({
    about: 'Shows the number of successful and failed delivery attempts to an endpoint, and their latency.',
    args: ['ID'],
    flags: {
      region: REGION,
      window: {
        value: 'WINDOW',
        about: 'Length of the time window. Default: 24h',
        choices: inputs['getEndpointStatistics.window'],
      },
    },
    example: 'endpoints statistics erp --window 7d',
    async run({ api, out }, [id], { region, window }) {
      const params = { path: { id }, query: { region, window } };
      const statistics = await api().get('/v1/endpoints/{id}/statistics', { params });
      out.document(statistics, () => {
        const { total, from } = statistics;
        const failures = total.failures.map(
          ({ status, count }) => `${count} × ${status === null ? 'no HTTP status' : `HTTP ${status}`}`,
        );
        out.fields([
          ['Since', out.formatTimeWithAge(from)],
          ['Attempts', String(total.attempts)],
          ['Delivered', String(total.delivered)],
          ['Failed', total.failed === 0 ? '0' : `${total.failed}: ${failures.join(', ')}`],
          [
            'Success rate',
            total.successRate === null ? null : `${Math.floor(total.successRate * 1000) / 10} %`,
          ],
          ['Latency', total.p50Ms === null ? null : `p50 ${total.p50Ms} ms, p95 ${total.p95Ms} ms`],
        ]);
      });
    },
  }),

  'endpoints health': command({
    about: 'Shows the health of an endpoint.',
    args: ['ID'],
    flags: { region: REGION },
    example: 'endpoints health erp',
    async run(context, [id], { region }) {
      const { api, out } = context;
      const health = await api().get('/v1/endpoints/{id}/health', withEndpoint(id, region));
      const { parked, backlog, statistics } = health;
      const { lastError } = statistics;
      const formatCount = (events: number, at: string | null) =>
        `${count(events, 'event')}${at === null ? '' : `, oldest ${out.formatTimeWithAge(at)}`}`;
      out.document(health, () => {
        out.fields([
          ['Endpoint', sanitizeLine(id)],
          ['State', out.paint(STATE_STYLE[health.state], health.state)],
          ['Problem', health.problem && sanitizeLine(health.problem)],
          ['Waiting until', out.formatTimeWithAge(health.waitUntil)],
          ['Failing since', out.formatTimeWithAge(health.failingSince)],
          ['Disabled at', out.formatTimeWithAge(health.disabledAt)],
          ['Last delivered', out.formatTimeWithAge(health.lastDeliveredAt)],
          ['Last failed', out.formatTimeWithAge(health.lastFailedAt)],
          [
            'Backlog',
            `${backlog.complete ? '' : 'at least '}${formatCount(backlog.events, backlog.oldestAt)}`,
          ],
          ['Parked', formatCount(parked.count, parked.oldestAt)],
          ['Lost', health.lost > 0 ? String(health.lost) : null],
          [
            'Last 24 hours',
            // No attempts to built-in sinks are recorded.
            statistics.attempts === 0
              ? null
              : `${statistics.delivered} of ${statistics.attempts} attempts delivered (at most the last 500)`,
          ],
          [
            'Latency',
            statistics.p50Ms === null ? null : `p50 ${statistics.p50Ms} ms, p95 ${statistics.p95Ms} ms`,
          ],
          [
            'Last error',
            lastError && `${out.formatTimeWithAge(lastError.at)}: ${sanitizeLine(lastError.reason)}`,
          ],
        ]);
        noteNotDelivering(context, { id, state: health.state }, region);
      });
    },
  }),

  'endpoints pause': createStateCommand(
    'pause',
    'Pauses delivery to an endpoint. Its cursors are kept.',
    'is paused',
    (client, at) => client.post('/v1/endpoints/{id}/pause', at),
  ),
  'endpoints resume': command({
    about: 'Resumes delivery to a paused endpoint at its cursors.',
    args: ['ID'],
    flags: { region: REGION },
    example: 'endpoints resume erp',
    async run(context, [id], { region }) {
      const { api, out } = context;
      const at = withEndpoint(id, region);
      const { paused } = await api().get('/v1/endpoints/{id}', at);
      const endpoint = await api().post('/v1/endpoints/{id}/resume', at);
      out.document(
        endpoint,
        `${sanitizeLine(id)} ${paused ? 'is resumed' : 'was not paused, so nothing changed'}.`,
      );
      noteNotDelivering(context, endpoint, region);
    },
  }),
  'endpoints enable': createStateCommand(
    'enable',
    'Enables a disabled endpoint, or ends the wait after a failure. Jobwire first sends one event as a probe.',
    'is enabled',
    (client, at) => client.post('/v1/endpoints/{id}/enable', at),
  ),

  'endpoints remove': command({
    about: 'Deletes an endpoint with its cursors and parked events.',
    args: ['ID'],
    flags: { region: REGION },
    example: 'endpoints remove erp',
    async run({ api, out }, [id], { region }) {
      await api().delete('/v1/endpoints/{id}', withEndpoint(id, region));
      out.document({ removed: id }, `${sanitizeLine(id)} was removed.`);
    },
  }),

  'endpoints ping': command({
    about: 'Sends a test event to an endpoint and shows the response.',
    args: ['ID'],
    flags: { region: REGION },
    example: 'endpoints ping erp',
    async run(context, [id], { region }) {
      const { api, out } = context;
      out.progress(`Pinging ${sanitizeLine(id)} …`);
      const at = withEndpoint(id, region);
      const code = printAttempt(out, await api().post('/v1/endpoints/{id}/ping', at));
      if (code !== undefined) return code;
      noteNotDelivering(context, await api().get('/v1/endpoints/{id}', at), region);
      return undefined;
    },
  }),

  ...deliveryCommands,
};

/** Prints the command that resumes delivery to an endpoint that fails, is disabled or is paused. */
function noteNotDelivering(
  { out, toCommand }: Context,
  { id, state }: Pick<Endpoint, 'id' | 'state'>,
  region: string | undefined,
): void {
  if (state === 'active') return;
  const verb = state === 'paused' ? 'resume' : 'enable';
  const where = region === undefined ? '' : ` --region ${sanitizeLine(region)}`;
  out.note(
    `The endpoint is ${state}. To resume delivery at once, run: ${toCommand(`endpoints ${verb} ${sanitizeLine(id)}${where}`)}`,
  );
}

function createStateCommand(
  verb: string,
  about: string,
  done: string,
  change: (client: Client, at: ReturnType<typeof withEndpoint>) => Promise<Endpoint>,
) {
  return command({
    about,
    args: ['ID'],
    flags: { region: REGION },
    example: `endpoints ${verb} erp`,
    async run(context, [id], { region }) {
      const { api, out } = context;
      const endpoint = await change(api(), withEndpoint(id, region));
      out.document(endpoint, `${sanitizeLine(id)} ${done}.`);
      if (verb === 'enable' && endpoint.state === 'paused') noteNotDelivering(context, endpoint, region);
    },
  });
}

/** Yields endpoints with their health. `null` for one that was deleted meanwhile. */
async function* withHealth(
  api: Client,
  options: ListOptions & { readonly params: { readonly query: { readonly region: string | undefined } } },
) {
  const batch: Endpoint[] = [];
  const fetchHealth = () =>
    Promise.all(
      batch.splice(0).map(async (endpoint) => {
        const at = withEndpoint(endpoint.id, endpoint.region);
        const request = api.get('/v1/endpoints/{id}/health', at);
        return { ...endpoint, health: (await request.catch(ignoreNotFound)) ?? null };
      }),
    );
  for await (const endpoint of api.list('/v1/endpoints', 'endpoints', options)) {
    if (batch.push(endpoint) === HEALTH_CONCURRENCY) yield* await fetchHealth();
  }
  yield* await fetchHealth();
}

function formatRange({ least, most }: Range): string {
  return `${least} to ${most}`;
}

const formatFilter = (names: readonly string[]): string => (names.length > 0 ? names.join(', ') : 'all');

/** Returns the given settings. `null` for one that the value `all` or `none` removes. */
function toSettings(context: Context, flags: FlagValues<typeof FILTERS & typeof DELIVERY>): EndpointUpdate {
  const all = { ...toFilters(flags), ...toDelivery(context, flags) };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}

const withoutNull = (settings: object): object =>
  Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== null));

function toFilters(flags: FlagValues<typeof FILTERS>) {
  const parse = (values: readonly string[] | undefined) =>
    values?.length === 1 && values[0] === 'all' ? null : values;
  const fields = flags['job-field'];
  const jobFields =
    fields.length === 1 && fields[0] === 'all'
      ? null
      : Object.entries(parsePairs('job-field', fields, 'NAME=VALUE') ?? {}).map(([name, value]) => [
          name,
          parseValue(name, value),
        ]);
  return {
    accounts: parse(parseList(flags.accounts)),
    types: parse(parseList(flags.types)),
    origins: parse(parseList(flags.origins)),
    orderGroups: parse(flags['order-group'].length === 0 ? undefined : flags['order-group']),
    jobFields: jobFields?.length === 0 ? undefined : jobFields && Object.fromEntries(jobFields),
  };
}

const NUMBER_FIELDS = ['jobNumber', 'orderGroupSequence'];

/** Parses `true`, `false`, `null`, and the integers of job fields that are numbers. Other values are texts, such as an order number. */
function parseValue(name: string, text: string): unknown {
  if (NUMBER_FIELDS.includes(name) && /^-?\d{1,15}$/.test(text)) return Number(text);
  return /^(true|false|null)$/.test(text) ? JSON.parse(text) : text;
}

function toDelivery({ env }: Context, flags: FlagValues<typeof DELIVERY>) {
  const { concurrency, description } = flags;
  const parseRate = (text: string): number => {
    const rate = Number(text);
    if (/^\d+(\.\d+)?$/.test(text) && rate >= RATE.least && rate <= RATE.most) return rate;
    throw new UsageError(`--rate must be a number from ${RATE.least} to ${RATE.most}, or none.`);
  };
  const parseConcurrency = (text: string): number =>
    parseRange('concurrency', text, CONCURRENCY, ', or none');
  const orNone = (text: string | undefined, parse: (text: string) => number) => {
    if (text === undefined) return undefined;
    return text === 'none' ? null : parse(text);
  };
  const variables = flags['header-env'];
  const isNone = variables[0] === 'none' && variables.length === 1;
  return {
    concurrency: orNone(concurrency, parseConcurrency),
    ratePerSecond: orNone(flags.rate, parseRate),
    description: description === 'none' ? null : description,
    headers: variables.length === 0 ? undefined : isNone ? null : readHeaders(variables, env),
  };
}

/** Reads the signing secret from where the options say. `undefined` if the API generates it. */
async function readSigningSecret(context: Context, flags: FlagValues<typeof SECRET>) {
  const { 'secret-file': file, 'secret-env': variable } = flags;
  if (file === undefined && variable === undefined) return undefined;
  return readSecret(context, 'The signing secret', { flag: 'secret', file, variable });
}

function printSecret({ out }: Context, secret: string): void {
  out.line();
  out.line(`  ${out.paint('bold', sanitizeLine(secret))}`);
  out.line();
  out.note('Store this signing secret now. It is not shown again.');
}

function parseStart(text: string): NewEndpoint['start'] {
  return text === 'now' || text === 'beginning'
    ? text
    : { at: parseTime('start', text, 'back', 'now, beginning, ') };
}
