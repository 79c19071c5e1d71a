/**
 * Guarantees of a cell on any deployment, from the first account to crashing functions.
 * One file: each step continues from the state of the previous one.
 */
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { basename } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { DynamoDBClient, GetItemCommand } from '@aws-sdk/client-dynamodb';
import { CreateSecretCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { PublishCommand, SNSClient } from '@aws-sdk/client-sns';
import {
  DeleteMessageCommand,
  ReceiveMessageCommand,
  SendMessageCommand,
  SQSClient,
} from '@aws-sdk/client-sqs';
import { simpleParser } from 'mailparser';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildDashboard } from '../../dashboard/build.ts';
import { POLLS } from '../../infra/throughput.ts';
import type { JobwireEvent } from '../../receive/index.ts';
import type { Sandbox } from '../../sandbox/server.ts';
import type { SandboxAccount } from '../../sandbox/world/world.ts';
import { conditions } from '../../shared/alerts/rule-input.ts';
import {
  FILE_HEADERS,
  findFile,
  getCacheControl,
  getContentPolicy,
  getContentType,
  PAGE_FILE,
  PAGE_PATHS,
} from '../../shared/dashboard-headers.ts';
import type { AwsCall, CallFate } from './aws-call.ts';
import type { Deploy, Deployment, FunctionName } from './deployment.ts';
import { parseDetail } from './event-bus.ts';
import {
  createApiClient,
  createReceivingQueue,
  type ReceivedEvent,
  type ReceivingQueue,
  type Subscriber,
  startOrdering,
  startWebhookReceiver,
  subscribe,
  toReceivedEvent,
  type WebhookReceiver,
} from './partners.ts';
import { getAttribute, getPath } from './traces.ts';

const WEBHOOK_HOST = 'hooks.receiver.example';
/** Host names of the ordering API in the settings of the cell. */
const ORDERING_HOSTS = { api: 'us.ordering.example', auth: 'auth-us.ordering.example' };
/** Streams end after this time, by the settings. The function has half a minute more. */
const STREAM_SECONDS = 300;
/** Maximum number of scheduled runs to wait for a result. */
const MAX_RUNS = 8;
/** Time between two of them. */
const RUN_SECONDS = 60;
/** After this time, a message of a poll that failed is received again. */
const AGAIN_SECONDS = POLLS.timeoutSeconds + 35;
/** Window of a message to customers, and the time until it is noticed and sent. */
const MESSAGE_SECONDS = 130;
/** Time until the id of a deleted account can be used again. */
const ID_SECONDS = 1800;
/** Maximum time to wait for a result that needs no scheduled run. */
const MEANWHILE_MS = 180_000;
/** Sinks that follow the account: topic, webhook, event bus, recipients. */
const SINKS_OF_ACME = 4;
const PROBE_EVERY_MS = 50;
const PATIENCE_MS = 600_000;
const MANY_JOBS = 60;
/** The account whose events the queues of the receiver get. */
const QUEUED_ACCOUNT = 'acme';
const ORDER_NUMBER = 'DEPLOY-1';
const TRACKING_NUMBER = 'TRACK-4711';
const DAY_MS = 86_400_000;

/**
 * Runs the scenario on one deployment. Each test continues from the state of the previous one. `faults`: whether the deployment
 * supports fault injection. `streamRetries`: whether it implements the retry settings of event source mappings of streams.
 * `ownAnswers`: whether it implements the template's responses of API Gateway itself. `options`: whether the cell has the options
 * `queues`, `eventBus`, `tracing` and `canary`. What it does not support is skipped and reported.
 */
export function scenario(
  name: string,
  deploy: Deploy,
  {
    faults,
    streamRetries = true,
    ownAnswers = true,
    options = false,
  }: {
    readonly faults: boolean;
    readonly streamRetries?: boolean;
    readonly ownAnswers?: boolean;
    readonly options?: boolean;
  },
): void {
  describe(name, () => {
    let ordering: Sandbox;
    let receiver: WebhookReceiver;
    let cell: Deployment;
    let subscriber: Subscriber;
    /** Queues of endpoints, by the names of the endpoints. */
    const queues = new Map<string, ReceivingQueue>();
    let api: ReturnType<typeof createApiClient>;
    const accounts = new Map<string, SandboxAccount>();

    beforeAll(async () => {
      ordering = await startOrdering();
      receiver = await startWebhookReceiver();
      cell = await deploy({
        hosts: {
          [ORDERING_HOSTS.api]: `${ordering.url}/us`,
          [ORDERING_HOSTS.auth]: `${ordering.url}/us/auth`,
          [WEBHOOK_HOST]: receiver.url,
        },
      });
      subscriber = await subscribe(cell);
      // The operator's function creates the first key of a cell.
      const created = (await cell.invoke('operate', { do: 'keys.create', name: 'scenario' })) as object;
      expect(created).not.toHaveProperty('error');
      api = createApiClient(cell, String((created as { secret: string }).secret));
    }, 300_000);

    afterAll(async () => {
      subscriber?.[Symbol.dispose]();
      for (const queue of queues.values()) queue[Symbol.dispose]();
      await cell?.[Symbol.asyncDispose]();
      await receiver?.[Symbol.asyncDispose]();
      await ordering?.stop();
    });

    /** Creates an account upstream, stores its credentials, and registers it. */
    async function register(account: string, secret: 'secret kept' | 'no secret' = 'secret kept') {
      const upstream = ordering.world.addAccount({ region: 'us', name: account });
      accounts.set(account, upstream);
      const secretRef = `jobwire/${cell.stage}/${cell.region}/accounts/${account}`;
      if (secret === 'secret kept') await putSecret(cell, secretRef, upstream);
      await done('POST', '/v1/accounts', { id: account, secretRef, pollIntervalSeconds: 60 });
      return upstream;
    }

    /** Sends a request that must succeed. */
    async function done(...[method, path, body]: Parameters<typeof api.send>) {
      const answer = await api.send(method, path, body);
      const text = await answer.text();
      expect([200, 201, 202, 204], `${method} ${path}: ${text}`).toContain(answer.status);
      return text === '' ? {} : JSON.parse(text);
    }

    async function read(path: string): Promise<Record<string, unknown>> {
      const answer = await api.get(path);
      expect(answer.status, path).toBe(200);
      return (await answer.json()) as Record<string, unknown>;
    }

    /** Waits until a condition is met, running the schedule after each `seconds`. */
    async function until<T>(
      what: string,
      probe: () => Promise<T | undefined> | T | undefined,
      seconds = RUN_SECONDS,
    ): Promise<T> {
      for (let run = 0; run <= MAX_RUNS; run += 1) {
        if (run > 0) {
          await cell.passTime(seconds);
          await cell.tick();
        }
        await cell.settled();
        const found = await probe();
        if (found !== undefined) return found;
        expect(cell.complaints?.() ?? []).toEqual([]);
      }
      throw new Error(`Timeout after ${MAX_RUNS} scheduled runs: ${what}.`);
    }

    /** Waits until a condition is met, without running the schedule. */
    async function meanwhile<T>(
      what: string,
      probe: () => Promise<T | undefined> | T | undefined,
    ): Promise<T> {
      const deadline = performance.now() + MEANWHILE_MS;
      do {
        const found = await probe();
        if (found !== undefined) return found;
        expect(cell.complaints?.() ?? []).toEqual([]);
        await sleep(PROBE_EVERY_MS);
      } while (performance.now() < deadline);
      throw new Error(`Timeout: ${what}.`);
    }

    /** Waits until the log of an account has new events of these types. Returns all new events. */
    function grown(account: string, after: number, types: readonly string[]): Promise<ReceivedEvent[]> {
      return until(`${account} has ${types.join(', ')}`, async () => {
        const fresh = (await api.feed(account)).slice(after);
        return types.every((type) => fresh.some((event) => event.type === type)) ? fresh : undefined;
      });
    }

    /**
     * Waits for the end of a stream. A function is not notified when its client disconnects, and its invocation would count as
     * hanging in later tests.
     */
    async function outlive(stream: AsyncIterator<unknown>, openedAt: number): Promise<void> {
      await cell.passTime((openedAt - Date.now()) / 1000 + STREAM_SECONDS + 5);
      expect(await stream.next()).toEqual({ done: true, value: undefined });
    }

    /** Returns the events of an account in its log and at each receiver, once all of them were delivered. */
    async function toldAll(
      account: string,
    ): Promise<{ log: ReceivedEvent[]; received: Readonly<Record<string, ReceivedEvent[]>> } | undefined> {
      const log = await api.feed(account);
      const of = (events: readonly ReceivedEvent[]) => events.filter((event) => event.account === account);
      const received: Record<string, ReceivedEvent[]> = {
        topic: of(await subscriber.events()),
        webhook: of(receiver.events),
      };
      if (cell.options)
        received.bus = of(cell.options.bus.map((entry) => toReceivedEvent(parseDetail(entry).event)));
      if (account === QUEUED_ACCOUNT) {
        for (const [id, queue] of queues)
          received[id] = of((await queue.messages()).map(({ event }) => event));
      }
      const complete = (events: readonly ReceivedEvent[]) =>
        log.every(({ id }) => events.some((event) => event.id === id));
      return Object.values(received).every(complete) ? { log, received } : undefined;
    }

    const delivered = (account: string) => until(`${account} is delivered`, () => toldAll(account));

    /** Checks that no event of an account is missing, has two ids, or was first delivered out of order within its job. */
    function expectWhole({ log, received }: NonNullable<Awaited<ReturnType<typeof toldAll>>>): void {
      expect(log.map(({ sequence }) => sequence)).toEqual(log.map((_, at) => at + 1));
      for (const [name, events] of Object.entries(received)) {
        const first = events.filter((event, at) => events.findIndex(({ id }) => id === event.id) === at);
        const byJob = (list: readonly ReceivedEvent[]) => Object.groupBy(list, ({ subject }) => subject);
        expect(byJob(first), name).toEqual(byJob(log));
      }
    }

    /** Creates a key, and returns a client with it. */
    async function createClient(key: object, apiUrl = cell.apiUrl): Promise<typeof api> {
      const { secret } = await done('POST', '/v1/keys', key);
      return createApiClient({ ...cell, apiUrl }, String(secret));
    }

    /** Changes all jobs of an account, and creates one. */
    function shuffle(account: string, status: string): void {
      const upstream = present(accounts.get(account));
      for (const job of upstream.activeJobNumbers()) upstream.setStatus(job, status);
      upstream.createJob({ status });
    }

    /** Receives the messages of a dead-letter queue, by its path. */
    async function takeDead(path: string): Promise<string[]> {
      const sqs = new SQSClient(cell.aws);
      const QueueUrl = cell.physicalId(path);
      const { Messages = [] } = await sqs.send(
        new ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages: 10 }),
      );
      for (const { ReceiptHandle } of Messages) {
        await sqs.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle }));
      }
      sqs.destroy();
      return Messages.map(({ Body = '' }) => Body);
    }

    test(
      'a registered account is polled, and topic, endpoint and feed get its baseline',
      async () => {
        const url = `https://${WEBHOOK_HOST}/jobs`;
        await done('POST', '/v1/endpoints', { id: 'erp', url, secret: receiver.secret });
        (await register('acme')).createJob({ status: 'Scheduled' });
        for (const [id, arn] of Object.entries(cell.options?.queues ?? {})) {
          queues.set(id, await createReceivingQueue(cell, arn));
          await done('POST', '/v1/endpoints', { id, kind: 'sqs', url: arn, accounts: [QUEUED_ACCOUNT] });
        }
        const log = await grown('acme', 0, ['account.baselined']);
        expect(log.map(({ type }) => type)).toEqual(['account.baselined']);
        const { received } = await delivered('acme');
        expect(Object.keys(received)).toHaveLength(options ? 5 : 2);
        for (const [name, events] of Object.entries(received)) expect(events, name).toEqual(log);
        expect(receiver.refused).toEqual([]);
      },
      PATIENCE_MS,
    );

    test(
      'a job that changes and is dispatched is delivered everywhere: in order, each event once, with the same id',
      async () => {
        const upstream = present(accounts.get('acme'));
        const [job = 0] = upstream.activeJobNumbers();
        const tracking = [{ trackingNumber: TRACKING_NUMBER, trackingLink: null }];
        upstream.dispatch(job, { status: 'Dispatched', tracking });
        // The cached token is rejected once, and a new one is requested.
        ordering.revokeTokens();
        const before = (await api.feed('acme')).length;
        const fresh = await grown('acme', before, ['job.status_changed', 'job.dispatched']);
        expect(fresh.map(({ type }) => type).sort()).toEqual(
          expect.arrayContaining(['job.dispatched', 'job.status_changed']),
        );
        const { log, received } = await delivered('acme');
        // In order within a job. The jobs of an endpoint are delivered in parallel.
        expectWhole({ log, received });
        for (const [name, events] of Object.entries(received)) expect(events, name).toHaveLength(log.length);
        expect(receiver.refused).toEqual([]);
      },
      PATIENCE_MS,
    );

    test.runIf(options)('one trace leads from a poll to the deliveries of its events', async () => {
      const { spans } = present(cell.options);
      const dispatched = (await api.feed('acme')).find(({ type }) => type === 'job.dispatched');
      const attempts = spans.filter(
        (span) => span.name === 'deliver' && getAttribute(span, 'event') === dispatched?.id,
      );
      expect(attempts.map((span) => getAttribute(span, 'endpoint')).sort()).toEqual(
        ['erp', 'event-bus', 'topic', ...queues.keys()].sort(),
      );
      for (const attempt of attempts)
        expect(getPath(spans, attempt)).toEqual(['poll', 'commit', 'wake', 'drain', 'deliver']);
      expect(new Set(attempts.map(({ traceId }) => traceId)).size).toBe(1);
      // A poll without events is not sent.
      const polls = spans.filter(({ name }) => name === 'poll').map(({ traceId }) => traceId);
      const commits = spans.filter(({ name }) => name === 'commit').map(({ traceId }) => traceId);
      expect([...new Set(polls)]).toEqual([...new Set(commits)]);
    });

    test('without the key the API reveals nothing; public routes answer', async () => {
      const answers = await Promise.all(
        ['/v1/accounts/acme/events', '/v1/accounts/acme/events/stream', '/healthz'].map((path) =>
          fetch(`${cell.apiUrl}${path}`).then(({ status }) => status),
        ),
      );
      expect(answers).toEqual([401, 401, 200]);
    });

    test('a key is valid until it is revoked, and is listed', async () => {
      const made = async (name: string) => {
        const { key, secret } = await done('POST', '/v1/keys', { name, role: 'read', accounts: ['acme'] });
        return { id: (key as { id: string }).id, client: createApiClient(cell, String(secret)) };
      };
      const [kept, revoked] = [await made('kept'), await made('revoked')];
      await done('DELETE', `/v1/keys/${revoked.id}`);
      const { keys } = (await read('/v1/keys')) as { keys: readonly { id: string }[] };
      expect(keys).toHaveLength(2);
      expect(keys).toContainEqual(expect.objectContaining({ id: kept.id, role: 'read' }));
      const status = async ({ client }: typeof kept) => (await client.get('/v1/accounts/acme/status')).status;
      expect([await status(kept), await status(revoked)]).toEqual([200, 401]);
    });

    test(
      'a live stream sends an event as it is committed',
      async () => {
        const upstream = present(accounts.get('acme'));
        const stream = api.stream('/v1/accounts/acme/events/stream');
        const openedAt = Date.now();
        const first = stream.next();
        const before = await api.feed('acme');
        // Late from the beginning.
        upstream.createJob({ orderNumber: ORDER_NUMBER, dateDue: Date.now() - 3 * DAY_MS });
        const fresh = await grown('acme', before.length, ['job.created', 'job.overdue']);
        expect((await first).value).toEqual(fresh[0]);
        for (const event of fresh.slice(1)) expect((await stream.next()).value).toEqual(event);
        await outlive(stream, openedAt);
      },
      PATIENCE_MS,
    );

    test('jobs are found by status, due date, order number and number, and the account has its state', async () => {
      const [ordered = 0, job = 0] = [...present(accounts.get('acme')).activeJobNumbers()].sort(
        (a, b) => b - a,
      );
      const read = async (path: string) => {
        const answer = await api.get(`/v1/accounts/acme${path}`);
        expect(answer.status).toBe(200);
        return (await answer.json()) as Record<string, unknown>;
      };
      const found = async (query: string) =>
        ((await read(`/jobs${query}`)).jobs as { jobNumber: number }[]).map(({ jobNumber }) => jobNumber);
      expect(await found('')).toEqual(expect.arrayContaining([job, ordered]));
      expect(await found('?status=Dispatched')).toEqual([job]);
      expect(await found(`?orderNumber=${ORDER_NUMBER}`)).toEqual([ordered]);
      expect(await found('?dueBefore=2199-01-01')).toContain(ordered);
      expect(await read(`/jobs/${job}`)).toMatchObject({ job: { jobNumber: job } });
      expect(await read('/status')).toMatchObject({ state: 'tracking', openJobs: 2 });
      await read('/open-jobs');
      expect((await api.get('/v1/regions/us/events')).status).toBe(200);
    });

    test(
      'an event that the endpoint rejects is parked with those of its job, and delivered when it is accepted',
      async () => {
        const upstream = present(accounts.get('acme'));
        const [refused = 0, other = 0] = upstream.activeJobNumbers();
        let refusals = 0;
        receiver.answer = ({ subject }) => {
          if (subject !== `jobs/${refused}` || refusals > 0) return 204;
          refusals += 1;
          return 422;
        };
        upstream.edit(refused, { description: 'First' });
        upstream.edit(other, { description: 'First' });
        const before = (await api.feed('acme')).length;
        await grown('acme', before, ['job.updated']);
        expectWhole(await delivered('acme'));
        expect(refusals).toBe(1);
        receiver.answer = () => 204;
      },
      PATIENCE_MS,
    );

    test(
      'an endpoint that answers 410 is disabled, with an event in the region’s log; enabled, it resumes at its cursor',
      async () => {
        receiver.answer = () => 410;
        shuffle('acme', 'In production');
        const regionLog = async () => {
          const answer = await api.get('/v1/regions/us/events');
          return ((await answer.json()) as { events: { type: string }[] }).events.map(({ type }) => type);
        };
        const types = await until('the endpoint is disabled', async () => {
          const all = await regionLog();
          return all.length > 0 ? all : undefined;
        });
        expect(types).toEqual(['endpoint.disabled']);
        const { items } = (await read('/v1/attention?kind=endpoint_disabled')) as { items: { id: string }[] };
        expect(items).toHaveLength(1);
        const item = await done('POST', `/v1/attention/${items[0]?.id}/assign`, { assignee: 'ann' });
        expect(item).toMatchObject({ subject: { id: 'erp' }, assignee: 'ann' });
        receiver.answer = () => 204;
        await done('POST', '/v1/endpoints/erp/enable');
        expectWhole(await delivered('acme'));
      },
      PATIENCE_MS,
    );

    test(
      'credentials of another account stop its polling until an operator confirms; an event needs two invocations and no schedule',
      async () => {
        const other = ordering.world.addAccount({ region: 'us', name: 'takeover' });
        const secretRef = `jobwire/${cell.stage}/${cell.region}/accounts/takeover`;
        await putSecret(cell, secretRef, other);
        await done('PATCH', '/v1/accounts/acme', { secretRef });
        const before = (await api.feed('acme')).length;
        const [mismatch] = await grown('acme', before, ['account.identity_mismatch']);
        const own = `jobwire/${cell.stage}/${cell.region}/accounts/acme`;
        await done('PATCH', '/v1/accounts/acme', { secretRef: own });
        await delivered('acme');
        const count = (name: string) =>
          [...(cell.invocations?.() ?? [])].reduce(
            (sum, [arn, calls]) => sum + (arn.includes(name) ? calls : 0),
            0,
          );
        const [wakes, drains] = [count('WakeSinks'), count('DrainSink')];
        const confirmed = await api.send('POST', '/v1/accounts/acme/confirm');
        expect(confirmed.status).toBe(200);
        // The commit of the API: one invocation wakes all sinks, and one for each sink delivers.
        await meanwhile('the endpoint has account.resumed', () =>
          receiver.events.find(
            ({ account, type, sequence }) =>
              account === 'acme' && type === 'account.resumed' && sequence > present(mismatch).sequence,
          ),
        );
        await cell.settled();
        if (cell.invocations) {
          expect(count('WakeSinks') - wakes).toBe(1);
          expect(count('DrainSink') - drains).toBeLessThanOrEqual(SINKS_OF_ACME);
        }
        expectWhole(await delivered('acme'));
      },
      PATIENCE_MS,
    );

    test(
      'misbehaving accounts delay no other: the others are polled and delivered while the upstream API hangs for one',
      async () => {
        let release = () => {};
        const released = new Promise<void>((done) => {
          release = done;
        });
        let hanging = 0;
        ordering.onRequest = async ({ account, operation }) => {
          if (account?.name !== 'hung' || operation !== 'activeJobs') return;
          hanging += 1;
          await released;
        };
        await register('hung');
        await register('keyless', 'no secret');
        (await register('beta')).createJob();
        const garbage = '{"account":';
        const sqs = new SQSClient(cell.aws);
        await sqs.send(
          new SendMessageCommand({ QueueUrl: cell.physicalId('Polling/Polls/Queue'), MessageBody: garbage }),
        );
        sqs.destroy();
        const ticked = cell.tick();
        const found = await meanwhile('beta is delivered', async () => {
          const all = await toldAll('beta').catch(() => undefined);
          return all?.log.length ? all : undefined;
        });
        expect(found.log.map(({ type }) => type)).toEqual(['account.baselined']);
        expectWhole(found);
        await meanwhile('a request hangs', () => hanging || undefined);
        release();
        await ticked;
        expect((await delivered('hung')).log.map(({ type }) => type)).toEqual(['account.baselined']);

        // The alarm on dead letters uses these queues, for messages that could not be parsed, not for failed polls.
        const dead = await until(
          'the garbage is a dead letter',
          async () => {
            const letters = await takeDead('Polling/Polls/Dead/Queue');
            return letters.length > 0 ? letters : undefined;
          },
          AGAIN_SECONDS,
        );
        expect(dead).toEqual([garbage]);
        const status = await read('/v1/accounts/keyless/status');
        expect(status).toMatchObject({ openJobs: null });
        expect(status.consecutiveFailures).toBeGreaterThan(0);
        await done('POST', '/v1/accounts/keyless/pause');
        await done('DELETE', '/v1/accounts/keyless');
      },
      PATIENCE_MS,
    );

    test('jobs are found, items that need attention are handled, and figures are counted: only for the accounts of the key', async () => {
      const acme = await createClient({ role: 'operate', accounts: ['acme'] });
      const beta = await createClient({ role: 'operate', accounts: ['beta'] });
      const readAs = async (client: typeof api, path: string) => {
        const answer = await client.get(path);
        expect(answer.status, path).toBe(200);
        return (await answer.json()) as Record<string, unknown>;
      };
      for (const [kind, value] of [
        ['orderNumber', ORDER_NUMBER],
        ['trackingNumber', TRACKING_NUMBER],
      ] as const) {
        const find = async (client: typeof api) =>
          (await readAs(client, `/v1/search?q=${value.slice(0, -1).toLowerCase()}`)).results;
        const job = { kind, value, account: 'acme', jobNumber: expect.any(Number) };
        expect(await find(api)).toMatchObject([job]);
        expect(await find(acme)).toMatchObject([job]);
        expect(await find(beta)).toEqual([]);
      }

      const list = async (client: typeof api, query: string) =>
        (await readAs(client, `/v1/attention?kind=job_late${query}`)).items as { id: string }[];
      const [late] = await list(acme, '');
      expect(late).toMatchObject({ account: 'acme', subject: { orderNumber: ORDER_NUMBER } });
      expect(await list(beta, '')).toEqual([]);
      const item = `/v1/attention/${late?.id}`;
      expect((await beta.send('POST', `${item}/acknowledge`)).status).toBe(404);
      const note = 'The customer knows.';
      for (const [action, body] of [
        ['assign', { assignee: 'ann' }],
        ['acknowledge', { note }],
      ] as const) {
        expect((await acme.send('POST', `${item}/${action}`, body)).status).toBe(200);
      }
      expect(await list(acme, '')).toEqual([]);
      expect(await list(api, '&state=acknowledged')).toMatchObject([{ id: late?.id, assignee: 'ann', note }]);
      expect(await readAs(acme, item)).toMatchObject({ state: 'acknowledged', assignee: 'ann' });
      const { entries } = await readAs(acme, `${item}/history`);
      expect(entries).toMatchObject([
        { action: 'acknowledge', note },
        { action: 'assign', assignee: 'ann' },
      ]);

      const figures = async (client: typeof api) => {
        const { accounts, accountsCounted, days } = await readAs(client, '/v1/figures');
        const dispatched = (days as { dispatched: number }[]).reduce((sum, day) => sum + day.dispatched, 0);
        return { accounts, accountsCounted, dispatched };
      };
      expect(await figures(api)).toEqual({ accounts: 3, accountsCounted: 3, dispatched: 1 });
      expect(await figures(acme)).toEqual({ accounts: 1, accountsCounted: 1, dispatched: 1 });
      expect(await figures(beta)).toEqual({ accounts: 1, accountsCounted: 1, dispatched: 0 });

      const { total } = (await read('/v1/endpoints/erp/statistics?window=1h')) as {
        total: { attempts: number; delivered: number; failures: { status: number | null }[] };
      };
      expect(total.failures.map(({ status }) => status).sort()).toEqual([410, 422]);
      expect(total.delivered).toBeGreaterThan(0);
    });

    test.runIf(options)(
      'queues and the bus get the events of the log with the documented fields',
      async () => {
        const { events } = (await read('/v1/accounts/acme/events?limit=500')) as unknown as {
          events: readonly JobwireEvent[];
        };
        const byId = new Map(events.map((event) => [event.id, event]));
        const fields = ({ id, type, subject }: JobwireEvent) => {
          const jobNumber = /^jobs\/(\d+)$/.exec(subject ?? '')?.[1];
          const shared = { type, accountId: 'acme', region: 'us' };
          return {
            lane: `acme/${jobNumber ?? 'account'}`,
            values: { ...shared, ...(subject && { subject }), ...(jobNumber && { jobNumber }) },
            id,
          };
        };
        for (const [name, queue] of queues) {
          expect((await done('POST', `/v1/endpoints/${name}/ping`)).outcome, name).toBe('delivered');
          const messages = await queue.messages();
          expect(messages.at(-1)?.event.type, name).toBe('jobwire.ping');
          const accountMessages = messages.filter(({ event }) => event.account === 'acme');
          expect(new Set(messages.map(({ event }) => event.account)), name).toEqual(
            new Set(['acme', '_cell']),
          );
          for (const { event, body, attributes, group, deduplicationId } of accountMessages) {
            const expected = present(byId.get(event.id));
            expect(JSON.parse(body)).toEqual(expected);
            const { lane, values, id } = fields(expected);
            expect(attributes).toMatchObject(values);
            expect([group, deduplicationId]).toEqual(name === 'fifo' ? [lane, id] : [undefined, undefined]);
          }
        }

        const { bus } = present(cell.options);
        expect(bus.map(({ DetailType }) => DetailType)).toContain('endpoint.disabled');
        for (const entry of bus) {
          const { event, ...detail } = parseDetail(entry);
          expect(entry).toMatchObject({
            EventBusName: cell.outputs.EventBusArn,
            Source: 'jobwire',
            DetailType: event.type,
            Time: Date.parse(event.time) / 1000,
            Resources: [[event.source, event.subject].filter(Boolean).join('/')],
          });
          const expected = byId.get(event.id);
          if (expected) {
            expect(event).toEqual(expected);
            expect(detail).toMatchObject(fields(expected).values);
          }
          expect(Object.values(detail).every((value) => typeof value === 'string')).toBe(true);
        }
        const created = bus.map(parseDetail).filter(({ orderNumber }) => orderNumber === ORDER_NUMBER);
        expect(created[0]).toMatchObject({ type: 'job.created', status: expect.any(String) });
      },
    );

    test(
      'an API client manages an account and an endpoint from creation to deletion',
      async () => {
        const upstream = ordering.world.addAccount({ region: 'us', name: 'zeta' });
        accounts.set('zeta', upstream);
        upstream.createJob();
        const { clientId, clientSecret } = upstream;
        const credentials = { clientId, clientSecret };
        expect(await done('POST', '/v1/credentials/test', { credentials })).toMatchObject({ ok: true });
        const account = { id: 'zeta', credentials, pollIntervalSeconds: 60 };
        const made = await done('POST', '/v1/accounts', account);
        expect(await done('POST', '/v1/accounts', account), 'sent again').toEqual(made);
        expect(await done('POST', '/v1/accounts/zeta/test')).toMatchObject({ ok: true });
        const log = await grown('zeta', 0, ['account.baselined']);
        const all = await until('the cell feed contains it', async () => {
          const types: unknown[] = [];
          for (let after = ''; ; ) {
            const query = after === '' ? '' : `&after=${after}`;
            const page = await read(`/v1/events?limit=500${query}`);
            const events = page.events as { id: string }[];
            types.push(...events.filter(({ id }) => id === log[0]?.id));
            if (events.length === 0) break;
            after = String(page.next);
          }
          return types.length > 0 ? types : undefined;
        });
        expect(all).toHaveLength(1);

        cell.confide?.(clientSecret);
        const sealed = await getItem(cell, `CREDENTIALS#${cell.region}`, 'zeta');
        expect(sealed.keyVersion).toEqual({ S: '0001' });
        expect(Buffer.from(sealed.sealed?.B ?? []).toString('latin1')).not.toContain(clientSecret);
        // Secrets in Secrets Manager that belong to the owner of the account.
        expect(await done('POST', '/v1/accounts/acme/test')).toMatchObject({ ok: true });

        cell.confide?.(receiver.secret);
        const hook = { id: 'shop', url: `https://${WEBHOOK_HOST}/shop`, secret: receiver.secret };
        await done('POST', '/v1/endpoints', { ...hook, accounts: ['zeta'] });
        const shop = '/v1/endpoints/shop';
        expect(await done('POST', `${shop}/ping`)).toMatchObject({ status: 204 });
        expect(receiver.events.at(-1)).toMatchObject({ type: 'jobwire.ping' });
        const times = () => receiver.events.filter(({ id }) => id === log[0]?.id).length;
        const before = times();
        const replay = await done('POST', `${shop}/replays`, { from: 'beginning' });
        await until('the event is delivered again', () => times() > before || undefined);
        await until('the replay is done', async () => {
          const { state } = await read(`${shop}/replays/${replay.id}`);
          return state === 'running' ? undefined : state;
        });
        const again = await done('POST', `${shop}/replays`, { id: 'again', from: 'beginning' });
        await done('POST', `${shop}/replays/${again.id}/cancel`);
        expect(await done('POST', `${shop}/resend`, { event: log[0]?.id })).toMatchObject({ status: 204 });
        await done('PATCH', shop, { description: 'The shop' });
        for (const verb of ['pause', 'resume', 'enable']) await done('POST', `${shop}/${verb}`);
        const rotated = await done('POST', `${shop}/rotate-secret`, { gracePeriodSeconds: 0 });
        cell.confide?.(rotated.secret);
        expect(await done('POST', `${shop}/ping`), 'the former secret signs no more').toMatchObject({
          status: 400,
        });
        expect(receiver.refused.splice(0)).toHaveLength(1);
        receiver.trust(rotated.secret);
        expect(await done('POST', `${shop}/ping`)).toMatchObject({ status: 204 });
        receiver.trust(receiver.secret);
        for (const what of ['retry', 'discard']) await done('POST', `${shop}/parked/${what}`, { all: true });
        for (const what of [
          '',
          '/health',
          '/deliveries',
          '/deliveries?outcome=failed',
          '/parked',
          '/dead',
          '/replays',
        ]) {
          await read(`${shop}${what}`);
        }
        expect((await read(`/v1/events/${log[0]?.id}/deliveries`)).deliveries).not.toEqual([]);
        await done('DELETE', shop);

        const other = await done('POST', '/v1/keys', { role: 'read', accounts: ['zeta'] });
        const reader = createApiClient(cell, String(other.secret));
        expect((await reader.get('/v1/accounts/zeta/rollups')).status).toBe(200);
        expect((await reader.get('/v1/accounts/acme/status')).status).toBe(404);
        expect((await reader.send('DELETE', '/v1/accounts/zeta')).status).toBe(403);
        await read(`/v1/keys/${other.key.id}`);
        await done('DELETE', `/v1/keys/${other.key.id}`);
        expect((await read('/v1/keys')).keys).not.toContainEqual(
          expect.objectContaining({ id: other.key.id }),
        );

        await done('PATCH', '/v1/accounts/zeta', { pollIntervalSeconds: 120 });
        await done('PUT', '/v1/accounts/zeta/credentials', credentials);
        for (const verb of ['pause', 'resume']) await done('POST', `/v1/accounts/zeta/${verb}`);
        for (const path of [
          'accounts?include=status',
          'regions',
          'regions/us/open-jobs',
          'regions/us/rollups',
          'endpoints',
        ]) {
          await read(`/v1/${path}`);
        }
        await done('PUT', '/v1/accounts/zeta/notifications', { enabled: false, branding: { name: 'Zeta' } });
        await done('POST', '/v1/accounts/zeta/recipients', { email: 'zoe@customer.example' });
        // It moves to another cell: here, back to the same one. On ministack, waiting for the id would take long.
        if (options) {
          await until('the account can be exported', async () => {
            const { waitingFor } = await done('PUT', '/v1/accounts/zeta/move', { to: 'another cell' });
            return waitingFor === null || undefined;
          });
          const pages: string[] = [];
          for (let next: string | null | undefined; next !== null; ) {
            const page = await done(
              'POST',
              '/v1/accounts/zeta/export',
              next === undefined ? {} : { after: next },
            );
            pages.push(page.data);
            next = page.next;
          }
          await done('DELETE', '/v1/accounts/zeta');
          await cell.passTime(ID_SECONDS);
          for (const data of pages) await done('POST', '/v1/accounts/import', { data, credentials });
          expect(await read('/v1/accounts/zeta/recipients')).toMatchObject({
            recipients: [{ email: 'zoe@customer.example' }],
          });
          upstream.createJob();
          const types = (await grown('zeta', 0, ['job.created'])).map(({ type }) => type);
          expect(types).toEqual(['job.created']);
        }
        const both = (await done('POST', '/v1/keys', { role: 'read', accounts: ['acme', 'zeta'] })).key.id;
        await done('DELETE', '/v1/accounts/zeta');
        expect((await api.get('/v1/accounts/zeta')).status).toBe(404);
        expect((await read(`/v1/keys/${both}`)).accounts).toEqual(['acme']);
        await done('DELETE', `/v1/keys/${both}`);
      },
      PATIENCE_MS,
    );

    test(
      'customers are notified of a dispatch once: by an e-mail with one-click unsubscribe, and by SMS; unreachable ones get no more',
      async () => {
        const upstream = await register('mara');
        const numbers = Array.from({ length: 5 }, () => upstream.createJob({ orderGroup: 'Spring' }));
        const [first = 0, second = 0, third = 0, fourth = 0, fifth = 0] = numbers;
        await grown('mara', 0, ['account.baselined']);
        const mara = '/v1/accounts/mara';
        const settings = {
          enabled: true,
          windowSeconds: 60,
          branding: { name: 'Mara Print' },
          replyTo: 'office@customer.example',
          ownUser: true,
        };
        const sms = { enabled: true, quietHours: null };
        const { warnings } = await done('PUT', `${mara}/notifications`, { ...settings, sms });
        // Both channels are configured. The only warning is that the ordering API may notify its user too.
        expect(JSON.stringify(warnings)).not.toMatch(/no_(email|sms|transport)|set up/);
        const ann = { id: 'ann', name: 'Ann', email: 'ann@customer.example', mobile: '+12025550123' };
        await done('POST', `${mara}/recipients`, { ...ann, channels: ['email', 'sms'] });
        const csv = 'id,email,orderNumber\nbob,bob@customer.example,PO-9\n,nobody,';
        await done('POST', `${mara}/recipients/import`, { csv });
        const template = `${mara}/templates/dispatched/sms/en-US`;
        await done('PUT', template, { text: 'On its way: {{ order }}' });
        await done('POST', `${mara}/notifications/preview`, {
          kind: 'dispatched',
          channel: 'sms',
          jobNumber: first,
        });
        await done('DELETE', template);
        const testMail = { to: settings.replyTo, kind: 'dispatched' };
        for (const _ of ['once', 'again with the same Idempotency-Key'])
          expect(await done('POST', `${mara}/notifications/test`, testMail)).toMatchObject({ sent: true });
        const [sample, ...others] = cell.outbox.mails.filter(({ to }) => to.includes(settings.replyTo));
        expect(others).toEqual([]);
        expect((await simpleParser(present(sample).raw)).subject).toMatch(/^\[Test\] /);
        const named = (await read('/v1/search?q=ann&kinds=recipient')).results;
        const addressed = (await read(`/v1/search?q=${encodeURIComponent(ann.email)}`)).results;
        for (const results of [named, addressed])
          expect(results).toMatchObject([{ kind: 'recipient', account: 'mara', id: 'ann' }]);
        await until(
          'the account’s user is a recipient',
          async () => JSON.stringify(await read(`${mara}/recipients`)).includes('own-user') || undefined,
        );

        const mailsTo = (address: string) => cell.outbox.mails.filter(({ to }) => to.includes(address));
        const dispatch = async (...jobs: number[]) => {
          const before = (await api.feed('mara')).length;
          for (const job of jobs) upstream.dispatch(job);
          await until('the dispatches are in the log', async () => {
            const fresh = (await api.feed('mara')).slice(before);
            return fresh.filter(({ type }) => type === 'job.dispatched').length === jobs.length || undefined;
          });
        };
        const getState = async (job: number, recipient: string, channel = 'email') => {
          const { messages } = (await read(`${mara}/jobs/${job}/messages`)) as { messages: ToldMessage[] };
          const found = messages.find(({ to, channel: by }) => to?.recipient === recipient && by === channel);
          return found && { id: found.id, state: found.state, reason: found.reason };
        };
        const becomes = (job: number, recipient: string, state: string, channel?: string) =>
          until(
            `message of ${job} to ${recipient}: ${state}`,
            async () => {
              const found = await getState(job, recipient, channel);
              return found?.state === state ? found : undefined;
            },
            MESSAGE_SECONDS,
          );

        // Two jobs of one order are one e-mail and one SMS.
        await dispatch(first, second);
        await becomes(first, 'ann', 'sent');
        await becomes(second, 'ann', 'sent', 'sms');
        await becomes(second, 'own-user', 'sent');
        const [mail, ...more] = mailsTo('ann@customer.example');
        expect(more).toEqual([]);
        expect(mail).toMatchObject({ from: 'orders@print.example', to: ['ann@customer.example'] });
        expect(mail?.configurationSet).toBe(cell.physicalId('Notifications/ConfigurationSet'));
        const parsed = await simpleParser(present(mail).raw);
        expect(parsed.from?.value).toEqual([{ name: 'Mara Print', address: 'orders@print.example' }]);
        for (const job of [first, second]) expect(parsed.text).toContain(String(job));
        expect(cell.outbox.sms.map(({ to }) => to)).toEqual(['+12025550123']);

        // One click, as a mail program does it: without a key, with the link only.
        const header = (key: string) => parsed.headerLines.find((one) => one.key === key)?.line ?? '';
        expect(header('list-unsubscribe-post')).toContain('List-Unsubscribe=One-Click');
        const link = new URL(/<([^>]+)>/.exec(header('list-unsubscribe').replaceAll(/\s/g, ''))?.[1] ?? '');
        const opened = await fetch(`${cell.apiUrl}${link.pathname}`);
        expect([opened.status, opened.headers.get('content-type')]).toEqual([
          200,
          expect.stringMatching(/^text\/html/),
        ]);
        const clicked = await fetch(`${cell.apiUrl}${link.pathname}`, {
          method: 'POST',
          headers: { 'content-type': 'application/x-www-form-urlencoded' },
          body: 'List-Unsubscribe=One-Click',
        });
        expect(clicked.status).toBe(200);
        await dispatch(third);
        expect(await becomes(third, 'ann', 'suppressed')).toMatchObject({ reason: 'unsubscribed' });
        await becomes(third, 'ann', 'sent', 'sms');
        expect(mailsTo('ann@customer.example')).toHaveLength(1);

        // A bounced e-mail: SES reports it through its topic.
        const { id } = await becomes(third, 'own-user', 'sent');
        const bounced = present(cell.outbox.mails.find(({ tags }) => tags.message === id));
        const address = bounced.to[0] ?? '';
        expect(bounced.tags).toMatchObject({ account: 'mara' });
        const sns = new SNSClient(cell.aws);
        const tags = Object.fromEntries(Object.entries(bounced.tags).map(([name, value]) => [name, [value]]));
        const bounce = { bounceType: 'Permanent', bounceSubType: 'General', bouncedRecipients: [] };
        const Message = JSON.stringify({
          eventType: 'Bounce',
          bounce,
          mail: { destination: [address], tags },
        });
        await sns.send(new PublishCommand({ TopicArn: cell.physicalId('Notifications/Heard'), Message }));
        sns.destroy();
        await becomes(third, 'own-user', 'bounced');
        const item = `/v1/attention/${cell.region}~mara~message~${id}`;
        expect(await done('POST', `${item}/acknowledge`)).toMatchObject({
          kind: 'message_undelivered',
          state: 'acknowledged',
        });
        const before = mailsTo(address).length;
        await dispatch(fourth);
        expect(await becomes(fourth, 'own-user', 'suppressed')).toMatchObject({ reason: 'bounced' });
        expect(mailsTo(address)).toHaveLength(before);

        // Both suppressions are removed. Then the account is deleted with all its notification data.
        const { suppressions } = (await read(`${mara}/suppressions`)) as { suppressions: { id: string }[] };
        expect(suppressions).toHaveLength(2);
        for (const one of suppressions) await done('DELETE', `${mara}/suppressions/${one.id}`);
        await dispatch(fifth);
        await becomes(fifth, 'ann', 'sent');
        expect(mailsTo('ann@customer.example')).toHaveLength(2);

        // A note, which a user sends.
        const { recipients } = await read(`${mara}/jobs/${fifth}/recipients`);
        expect(recipients).toContainEqual(
          expect.objectContaining({ recipient: 'ann', channel: 'email', reason: null }),
        );
        const note = { recipient: 'ann', channel: 'email', text: 'It leaves on Thursday.' };
        const noted = await api.send('POST', `${mara}/jobs/${fifth}/messages`, note);
        expect(await noted.json()).toMatchObject({ created: true });
        // Another request, with another idempotency key.
        const again = await api.send('POST', `${mara}/jobs/${fifth}/messages`, { ...note, dryRun: false });
        expect(await again.json(), 'the same text is sent once').toMatchObject({ created: false });
        await until(
          'the note is sent',
          () => mailsTo('ann@customer.example').length === 3 || undefined,
          MESSAGE_SECONDS,
        );
        for (const path of [
          '/notifications',
          '/templates',
          '/messages',
          '/recipients/ann',
          '/recipients/ann/messages',
          `/messages/${id}`,
        ]) {
          await read(`${mara}${path}`);
        }
        await done('PATCH', `${mara}/recipients/bob`, { paused: true });
        await done('DELETE', `${mara}/recipients/bob`);
        await done('DELETE', mara);
      },
      PATIENCE_MS,
    );

    test(
      'alert rules are evaluated each minute, and send e-mails to operations staff',
      async () => {
        const target = { kind: 'email', to: ['ops@desk.example'] };
        const ids: string[] = [];
        for (const condition of Object.keys(conditions)) {
          const threshold = condition === 'late_jobs' ? 0 : 1_000_000;
          const rule = { id: condition.replaceAll('_', '-'), name: condition, condition, threshold, target };
          ids.push((await done('POST', '/v1/alert-rules', rule)).id);
        }
        const getMails = (report: string) =>
          cell.outbox.mails.filter(
            ({ to, raw }) => to[0] === 'ops@desk.example' && raw.toString().includes(`[${report}]`),
          );
        await until('the rule fires', () => (getMails('Alert').length > 0 ? true : undefined));
        expect(await read('/v1/alert-rules')).toMatchObject({ next: null });
        expect(await read('/v1/alert-rules/late-jobs')).toMatchObject({
          state: { problem: null },
        });
        await done('PATCH', '/v1/alert-rules/account-not-observed', { enabled: false, target });
        expect(await done('POST', '/v1/alert-rules/account-not-observed/test')).toEqual({
          sent: true,
          message: null,
        });
        expect(getMails('Test')).toHaveLength(1);
        for (const id of ids) await done('DELETE', `/v1/alert-rules/${id}`);
      },
      PATIENCE_MS,
    );

    test('the documents exist, and unknown paths have the same problem from any source', async () => {
      for (const path of ['/openapi.json', '/asyncapi.json', '/docs', '/v1/event-types']) {
        expect((await fetch(`${cell.apiUrl}${path}`)).status, path).toBe(200);
      }
      const page = await fetch(`${cell.apiUrl}/docs`).then((answer) => answer.text());
      const linked = [...page.matchAll(/(?:href|src)="([^"#:]+)["#]/g)].map(
        ([, href = '']) => new URL(href, `${cell.apiUrl}/docs`).href,
      );
      expect(linked).toContain(`${cell.apiUrl}/docs/jobs`);
      expect(linked).toContainEqual(expect.stringMatching(/\/docs\/assets\/.+\.css$/));
      for (const url of new Set(linked)) expect((await fetch(url)).status, url).toBe(200);
      const answers = [await fetch(`${cell.apiUrl}/v1/accounts`, { method: 'POST' })];
      if (ownAnswers) answers.push(await fetch(`${cell.apiUrl}x/v1/accounts`));
      else console.log(`Skipped on ${name}: responses of API Gateway itself are problem documents.`);
      for (const answer of answers) {
        expect(answer.headers.get('content-type')).toBe('application/problem+json');
        expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
        expect(await answer.json()).toMatchObject({
          type: expect.stringMatching(/^urn:jobwire:problem:/),
          requestId: answer.headers.get('x-request-id'),
        });
      }
      expect(answers.map(({ status }) => status)).toEqual([401, 404].slice(0, answers.length));
    });

    test('the distribution serves the page, its files and their headers, and nothing else', async () => {
      const get = (path: string) => fetch(`${cell.dashboardUrl}${path}`);
      const expectFile = async (path: string, file: string) => {
        const answer = await get(path);
        expect([answer.status, answer.headers.get('content-type')], path).toEqual([
          200,
          getContentType(file),
        ]);
        const expected = {
          ...FILE_HEADERS,
          'content-security-policy': getContentPolicy(file),
          'cache-control': getCacheControl(file),
        };
        for (const [name, value] of Object.entries(expected))
          expect(answer.headers.get(name), `${path}: ${name}`).toBe(value);
        return answer.text();
      };
      const page = await expectFile('/', PAGE_FILE);
      for (const path of [...PAGE_PATHS, '/jobs/us/acme/1', '/setup/keys'])
        expect(await expectFile(path, PAGE_FILE), path).toBe(page);
      const built = await readdir(await buildDashboard(), { recursive: true, withFileTypes: true });
      const files = built
        .filter((entry) => entry.isFile())
        .map((entry) => `${basename(entry.parentPath) === 'assets' ? 'assets/' : ''}${entry.name}`)
        // Other files are only for readers of the build.
        .filter((name) => findFile(`/${name}`) === name);
      const loaded = [...page.matchAll(/"\/(assets\/[^"]+)"/g)].map(([, asset = '']) => asset);
      expect(files).toEqual(expect.arrayContaining([...loaded, 'favicon.svg']));
      for (const file of files) await expectFile(`/${file}`, file);
      for (const path of ['/elsewhere', '/index.html', '/assets/none.js', '/assets/', '/v2'])
        expect((await get(path)).status, path).toBe(404);
    });

    test(
      'the distribution forwards the API: rejections are not cached, repetitions are idempotent, streams continue',
      async () => {
        const all = await createClient({ role: 'admin' }, cell.dashboardUrl);
        const few = await createClient({ role: 'read', accounts: ['beta'] }, cell.dashboardUrl);
        const path = '/v1/accounts/acme/status';
        const answers = [
          await few.get(path),
          await all.get(path),
          await fetch(`${cell.dashboardUrl}${path}`),
        ];
        expect(answers.map(({ status }) => status)).toEqual([404, 200, 401]);
        for (const answer of answers) expect(answer.headers.get('cache-control')).toBe('no-store');
        for (const open of ['/healthz', '/readyz', '/docs', '/openapi.json', '/asyncapi.json'])
          expect((await fetch(`${cell.dashboardUrl}${open}`)).status, open).toBe(200);
        const make = async () => {
          const answer = await all.send('POST', '/v1/keys', { name: 'through', role: 'read' });
          return [answer.status, ((await answer.json()) as { key: { id: string } }).key.id];
        };
        expect(await make()).toEqual(await make());

        const before = await api.feed('acme');
        const newest = await all.get('/v1/accounts/acme/events?limit=1');
        const { head } = (await newest.json()) as { head: string };
        const stream = all.stream(`/v1/accounts/acme/events/stream?after=${head}`);
        const openedAt = Date.now();
        const first = stream.next();
        const upstream = present(accounts.get('acme'));
        upstream.createJob();
        const { results } = (await read(`/v1/search?q=${ORDER_NUMBER}`)) as {
          results: { jobNumber: number }[];
        };
        upstream.edit(present(results[0]).jobNumber, { orderNumber: 'RENAMED-1' });
        const fresh = await grown('acme', before.length, ['job.created']);
        expect((await first).value).toEqual(fresh[0]);
        for (const event of fresh.slice(1)) expect((await stream.next()).value).toEqual(event);
        expect((await read(`/v1/search?q=${ORDER_NUMBER}`)).results).toEqual([]);
        expect((await read('/v1/search?q=RENAMED')).results).toHaveLength(1);
        await outlive(stream, openedAt);
      },
      PATIENCE_MS,
    );

    test('wrong keys block their viewer, and no other behind the same edge', async () => {
      const tryFrom = async (localAddress: string, at: number) => {
        const headers = { authorization: `Bearer wrong-${at}`, 'x-jobwire-viewer': `198.51.100.${at}` };
        const asked = request(`${cell.dashboardUrl}/v1/accounts`, { localAddress, headers }).end();
        const [answer] = (await once(asked, 'response')) as [IncomingMessage];
        answer.resume();
        return answer.statusCode;
      };
      const shutOut = async () => {
        for (let at = 0; at < 100; at += 1) if ((await tryFrom('127.0.0.7', at)) === 429) return true;
        return false;
      };
      expect(await shutOut()).toBe(true);
      expect(await tryFrom('127.0.0.8', 0)).toBe(401);
    });

    describe.runIf(faults)('with faults', () => {
      const onCall = (name: FunctionName, fate?: (call: AwsCall) => CallFate) =>
        present(cell.faults).onCall(name, fate);

      test.each([
        ['before its first', 1, 'kill before'],
        ['after its first', 1, 'kill after'],
        ['before its second', 2, 'kill before'],
      ] as const)(
        'a poll that is killed %s write loses nothing and emits nothing twice',
        async (_, nth, fate) => {
          const upstream = present(accounts.get('acme'));
          shuffle('acme', `Moved ${nth} ${fate}`);
          // More than fit into one transaction, so that the commit is in several parts.
          const many = Array.from({ length: MANY_JOBS }, () => upstream.createJob());
          // The message is received twice before it becomes a dead letter.
          let writes = 0;
          let kills = 0;
          onCall('pollAccount', (call) => {
            if (kills === POLLS.maxReceiveCount || !isWrite(call) || !call.text.includes('#acme"'))
              return 'pass';
            writes += 1;
            if (writes < nth) return 'pass';
            writes = 0;
            kills += 1;
            return fate;
          });
          const before = (await api.feed('acme')).length;
          await until(
            'the poll was killed each time',
            () => kills === POLLS.maxReceiveCount || undefined,
            AGAIN_SECONDS,
          );
          onCall('pollAccount');
          await grown('acme', before, ['job.created', 'job.status_changed']);
          expectWhole(present(await delivered('acme')));
          for (const job of many) upstream.close(job);
          // An operator can investigate the cause.
          const dead = await until(
            'the poll is a dead letter',
            async () => {
              // A poll that crashed before is retried alone, by another queue.
              const letters = [
                ...(await takeDead('Polling/Polls/Dead/Queue')),
                ...(await takeDead('Polling/LonePolls/Dead/Queue')),
              ];
              return letters.length > 0 ? letters : undefined;
            },
            AGAIN_SECONDS,
          );
          expect(dead.filter((letter) => !accounts.has(JSON.parse(letter).account))).toEqual([]);
          expect(dead.some((letter) => JSON.parse(letter).account === 'acme')).toBe(true);
        },
        PATIENCE_MS,
      );

      test(
        'a drain that is killed after the endpoint accepted an event delivers it again, with the same id, and continues in order',
        async () => {
          shuffle('acme', 'On its way');
          shuffle('beta', 'On its way');
          const taken: string[] = [];
          receiver.answer = ({ id }) => {
            taken.push(id);
            return 204;
          };
          let killed = 0;
          onCall('drainSink', (call) => {
            // Only the holder of the sink's lease moves its cursors. Other drains may request the lease at the same time.
            const moves = isWrite(call) && call.text.includes(`CURSORS#${cell.region}#erp`);
            if (taken.length === 0 || killed > 0 || !moves) return 'pass';
            killed += 1;
            return 'kill before';
          });
          const before = (await api.feed('acme')).length;
          await grown('acme', before, ['job.created', 'job.status_changed']);
          await until('the drain was killed', () => (killed > 0 ? true : undefined));
          onCall('drainSink');
          await until('an event is repeated', () => taken.length > new Set(taken).size || undefined);
          expectWhole(await delivered('acme'));
          expectWhole(await delivered('beta'));
          receiver.answer = () => 204;
        },
        PATIENCE_MS,
      );

      test(
        'wake marks that wakeSinks fails to process end at the on-failure destination, and the tick processes them',
        async () => {
          shuffle('beta', 'Waiting');
          onCall('wakeSinks', () => 'fail');
          const before = (await api.feed('beta')).length;
          await grown('beta', before, ['job.created', 'job.status_changed']);
          if (streamRetries) {
            const dead = await until('the marks are dead letters', async () => {
              const letters = await takeDead('Delivery/DeadWakes/Queue');
              return letters.length > 0 ? letters : undefined;
            });
            expect(JSON.parse(present(dead[0]))).toMatchObject({
              requestContext: { condition: 'RetryAttemptsExhausted' },
            });
          } else {
            console.log(`Skipped on ${name}: stream records that fail permanently become dead letters.`);
          }
          expectWhole(await delivered('beta'));
          onCall('wakeSinks');
          expectWhole(await delivered('acme'));
        },
        PATIENCE_MS,
      );
    });
  });
}

/** A message to a customer in the API. */
interface ToldMessage {
  readonly id: string;
  readonly channel: string | null;
  readonly to: { readonly recipient: string } | null;
  readonly state: string;
  readonly reason: string | null;
}

/** Returns whether a call changes a table. */
function isWrite({ service, operation }: AwsCall): boolean {
  return service === 'dynamodb' && /^(Put|Update|Delete|BatchWrite|TransactWrite)/.test(operation);
}

/** Returns an item of the state table. */
async function getItem(cell: Deployment, pk: string, sk: string) {
  const client = new DynamoDBClient(cell.aws);
  const Key = { pk: { S: pk }, sk: { S: sk } };
  const { Item } = await client.send(new GetItemCommand({ TableName: cell.outputs.TableName, Key }));
  client.destroy();
  return present(Item);
}

async function putSecret(cell: Deployment, name: string, upstream: SandboxAccount): Promise<void> {
  const client = new SecretsManagerClient(cell.aws);
  const { clientId, clientSecret } = upstream;
  await client.send(
    new CreateSecretCommand({ Name: name, SecretString: JSON.stringify({ clientId, clientSecret }) }),
  );
  client.destroy();
}

function present<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('The result of an earlier test is missing.');
  return value;
}
