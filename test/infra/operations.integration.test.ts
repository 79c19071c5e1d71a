/**
 * Monitoring of a cell: log lines and metrics of functions, alarms, the CloudWatch dashboard, and the runbook.
 * One file: its tests share the recorders of log lines and metrics.
 */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import middy from '@middy/core';
import type { APIGatewayProxyEvent, Context, SQSEvent } from 'aws-lambda';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { createAlertsHandler } from '../../functions/handlers/alerts.ts';
import { createDrainSinkHandler } from '../../functions/handlers/drain-sink.ts';
import { createMailFeedbackHandler } from '../../functions/handlers/mail-feedback.ts';
import { createNotifyHandler } from '../../functions/handlers/notify.ts';
import { createPollAccountHandler } from '../../functions/handlers/poll-account.ts';
import { createRestProxyHandler } from '../../functions/handlers/rest-proxy.ts';
import { createTickHandler } from '../../functions/handlers/tick.ts';
import { createWakeSinksHandler } from '../../functions/handlers/wake-sinks.ts';
import { createTelemetry } from '../../functions/telemetry.ts';
import { registerAccount } from '../../shared/accounts/accounts.ts';
import { createAlertRule } from '../../shared/alerts/rules.ts';
import { createApi } from '../../shared/api/app.ts';
import { createKey, createKeyring, OPERATOR } from '../../shared/api/keys.ts';
import type { Manage } from '../../shared/api/route.ts';
import type { DeliveryLog } from '../../shared/delivery/delivery-log.ts';
import { enableHealth, healthAttributes } from '../../shared/delivery/health.ts';
import { oldestUndelivered } from '../../shared/delivery/lag.ts';
import { createConnectionPool } from '../../shared/delivery/outbound.ts';
import type { DeliveryOutcome } from '../../shared/delivery/sink.ts';
import { readDueSinks } from '../../shared/delivery/wakes.ts';
import { createWebhookSink } from '../../shared/delivery/webhook.ts';
import { createEventLog } from '../../shared/log/log.ts';
import { METRICS, type MetricName, NAMESPACE } from '../../shared/metrics.ts';
import { ERROR_KINDS } from '../../shared/ordering/errors.ts';
import { DRAIN_SHARDS, historySchema, keys, notifyDue } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import { type Table, TableError } from '../../shared/storage/table.ts';
import { simulateBackOff } from '../support/back-off.ts';
import { synthesize } from '../support/cells.ts';
import { createDeliveryRig, delivered, moved, newSecret, startReceiver } from '../support/delivery-world.ts';
import { findApiRequests, findRequestProblem } from '../support/documented-requests.ts';
import { FakeKms, sealWithKms } from '../support/kms.ts';
import { createRig, watchedTable } from '../support/tracker.ts';

const DAY_MS = 86_400_000;
const names = Object.keys(METRICS) as MetricName[];

// Log lines and metrics

/** A parsed line of a function's log. */
type Line = Readonly<Record<string, unknown>>;

/** All output during an action. */
class Told {
  readonly lines: readonly Line[];

  constructor(lines: readonly Line[]) {
    this.lines = lines;
  }

  /** The wide lines with a message. */
  of(message: string): Line[] {
    return this.lines.filter((line) => line.message === message);
  }

  /** The metrics with all values of each; of a kind of fault as `name kind`. */
  get metrics(): Record<string, number[]> {
    const said: Record<string, number[]> = {};
    for (const line of this.lines) {
      const { _aws: embedded } = line as { _aws?: Embedded };
      for (const { Namespace, Dimensions, Metrics } of embedded?.CloudWatchMetrics ?? []) {
        expect(Namespace).toBe(NAMESPACE);
        expect(line.cell).toBe('test-us');
        for (const { Name, Unit } of Metrics) {
          const metric: { unit: string; kind?: boolean } = METRICS[Name as MetricName];
          expect(Unit, Name).toBe(metric.unit);
          expect(Dimensions, Name).toEqual([metric.kind ? ['cell', 'kind'] : ['cell']]);
          const name = metric.kind ? `${Name} ${line.kind}` : Name;
          said[name] = [...(said[name] ?? []), ...[line[Name] as number | number[]].flat()];
        }
      }
    }
    return said;
  }
}

interface Embedded {
  readonly CloudWatchMetrics: readonly {
    readonly Namespace: string;
    readonly Dimensions: readonly (readonly string[])[];
    readonly Metrics: readonly { readonly Name: string; readonly Unit: string }[];
  }[];
}

async function listen(act: () => Promise<unknown>): Promise<Told> {
  const written: string[] = [];
  const spies = [process.stdout, process.stderr].map((stream) =>
    vi.spyOn(stream, 'write').mockImplementation((text) => written.push(String(text)) > 0),
  );
  try {
    await act();
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
  const lines = written.join('').split('\n');
  return new Told(lines.flatMap((line) => (line.startsWith('{') ? [JSON.parse(line) as Line] : [])));
}

const context = {
  functionName: 'fn',
  functionVersion: '1',
  invokedFunctionArn: 'arn:aws:lambda:us-east-1:111122223333:function:fn',
  memoryLimitInMB: '512',
  awsRequestId: 'request-1',
  getRemainingTimeInMillis: () => 60_000,
} as Context;

type Said = ReturnType<typeof createTelemetry>;

/** A handler as its entry file composes it. */
function wired<E, R>(service: string, make: (telemetry: Said) => (event: E, context: Context) => Promise<R>) {
  const telemetry = createTelemetry(service, { JOBWIRE_STAGE: 'test', JOBWIRE_CELL: 'us' });
  const handler = middy(make(telemetry)).use(telemetry.logging).use(telemetry.counting);
  return (event: E) => handler(event, context);
}

function messages(...bodies: readonly object[]): SQSEvent {
  return {
    Records: bodies.map((body, at) => ({
      messageId: `message-${at}`,
      body: JSON.stringify(body),
      attributes: { SentTimestamp: '0' },
    })),
  } as SQSEvent;
}

type PollRig = Awaited<ReturnType<typeof createRig>>;

/** A rig whose account is polled by the handler, and the ticks of its cell. */
async function createPolled(jobs = 1) {
  const rig = await createRig();
  const numbers = Array.from({ length: jobs }, () => rig.upstream.createJob({ status: 'Scheduled' }));
  const handler = wired('poll-account', (telemetry) =>
    createPollAccountHandler({ region: 'us', polling: rig.deps, telemetry }),
  );
  const { table, log, now } = rig;
  const tick = wired('tick', (telemetry) =>
    createTickHandler({
      ...{ region: 'us', table, log, now, topicArn: 'arn:topic', telemetry },
      sendPolls: async () => {},
      sendLonePolls: async () => {},
      sendDrains: async () => {},
    }),
  );
  async function poll(lateMs = 0, account = rig.ref.account) {
    rig.pass(60);
    const told = await listen(() => handler(messages({ account, dueAt: rig.now() - lateMs })));
    return told;
  }
  return { rig, jobs: numbers, poll, tick: () => listen(() => tick({})) };
}

/** A sink whose drains are run by the handler. */
async function createDrained(
  answer: () => DeliveryOutcome | Promise<DeliveryOutcome>,
  options: Parameters<typeof createDeliveryRig>[1] = {},
  record: () => Promise<void> = async () => {},
) {
  const rig = await createDeliveryRig(answer, options);
  const { log, table, state } = rig;
  const now = () => state.now;
  const handler = wired('drain-sink', (telemetry) =>
    createDrainSinkHandler({
      region: 'us',
      draining: { ...rig.deps, deliveries: { record } },
      telemetry,
    }),
  );
  const tick = wired('tick', (telemetry) =>
    createTickHandler({
      ...{ region: 'us', table, log, now, topicArn: 'arn:topic', telemetry },
      sendPolls: async () => {},
      sendLonePolls: async () => {},
      sendDrains: async () => {},
    }),
  );
  return {
    rig,
    async drain(afterMs = 1) {
      state.now += afterMs;
      return listen(() => handler(messages({ sink: 'erp' })));
    },
    tick: () => listen(() => tick({})),
  };
}

const refused = (): DeliveryOutcome => ({
  ...{ kind: 'rejected', reason: 'The endpoint responded with status 422.' },
  answer: { status: 422, excerpt: 'a body' },
});

/** Every countable condition of a cell. */
const happenings = {
  async goodPolls() {
    const { rig, jobs, poll } = await createPolled();
    const baseline = await poll();
    rig.upstream.dispatch(jobs[0] ?? 0);
    return { baseline, late: await poll(1500), quiet: await poll() };
  },

  async badPolls() {
    const { rig, poll } = await createPolled(150);
    await poll();
    rig.fault({ match: { operation: 'activeJobs', query: { page: 2 } }, fault: { kind: 'reset' } });
    const partial = await poll();
    rig.sandbox.faults.clear();
    rig.fault({ fault: { kind: 'status', status: 503 } });
    return { partial, failed: await poll() };
  },

  async repeatedRequest() {
    const { rig, poll } = await createPolled();
    await poll();
    rig.fault({ match: { operation: 'activeJobs', times: 1 }, fault: { kind: 'status', status: 500 } });
    return poll();
  },

  async badCredentials() {
    const { rig, poll } = await createPolled();
    await poll();
    rig.actAs({ ...rig.upstream, clientSecret: 'wrong' } as PollRig['upstream']);
    return { first: await poll(), again: await poll() };
  },

  async anotherIdentity() {
    const { rig, poll } = await createPolled();
    await poll();
    rig.actAs(rig.world.addAccount({ region: 'us', name: 'other' }));
    return poll();
  },

  async quarantine() {
    const { rig, jobs, poll } = await createPolled(40);
    await poll();
    for (const job of jobs.slice(0, 30)) rig.upstream.cancel(job);
    return { first: await poll(), again: await poll() };
  },

  async outage() {
    const { rig, poll, tick } = await createPolled();
    const { table, log, now } = rig;
    for (const account of ['b', 'c']) {
      const added = { region: 'us', account, secretRef: account, pollIntervalSeconds: 60, paused: false };
      await registerAccount(table, log, added, { now: now(), epoch: 'e1' });
    }
    rig.fault({ match: { region: 'us' }, fault: { kind: 'status', status: 503 } });
    for (const account of ['acme', 'b', 'c', 'acme', 'b']) await poll(0, account);
    const during = [await tick(), await poll(30_000)];
    rig.sandbox.faults.clear();
    await poll();
    return { during, after: await tick() };
  },

  async takenAndRefused() {
    let answer: () => DeliveryOutcome = delivered;
    const { rig, drain } = await createDrained(() => answer());
    await rig.say([moved(1, 'a'), moved(2, 'b')]);
    const taken = await drain(5_000);
    answer = refused;
    await rig.say([moved(1, 'c')]);
    const parked = await drain();
    const last = [DAY_MS, DAY_MS, DAY_MS];
    const dying: Told[] = [];
    for (const wait of last) dying.push(await drain(wait));
    return { taken, parked, dead: dying.at(-1) };
  },

  async parkedAndTaken() {
    let answer: () => DeliveryOutcome = refused;
    const { rig, drain } = await createDrained(() => answer());
    await rig.say([moved(1, 'a')]);
    await drain();
    answer = delivered;
    return drain(DAY_MS);
  },

  async failing() {
    let answer: () => DeliveryOutcome = () => ({
      kind: 'retry',
      reason: 'The endpoint responded with status 503.',
    });
    const { rig, drain, tick } = await createDrained(() => answer());
    await rig.say([moved(1, 'a')]);
    const waiting = await drain();
    rig.state.now += 20 * 60_000;
    const ticked = await tick();
    answer = () => ({
      kind: 'retry',
      reason: 'It is gone.',
      disable: 'The endpoint responded with status 410.',
    });
    const disabled = await drain(DAY_MS);
    const ignored = await tick();
    await rig.table.write({
      update: keys.sink('us', 'erp'),
      set: healthAttributes(enableHealth((await rig.sink()).health)),
    });
    rig.state.now += 91 * DAY_MS;
    answer = delivered;
    await rig.say([moved(2, 'b')]);
    return { waiting, ticked, disabled, ignored, lost: await drain() };
  },

  async unlogged() {
    const { rig, drain } = await createDrained(delivered, {}, () => Promise.reject(new Error('No table.')));
    await rig.say([moved(1, 'a')]);
    return drain();
  },

  async replayed() {
    const { rig, drain } = await createDrained(delivered);
    await rig.say([moved(1, 'a')]);
    await drain();
    await rig.replay('r1', 0, 1);
    return drain(DAY_MS);
  },

  async topic() {
    const { rig, drain } = await createDrained(delivered, { maxBatch: 10, record: { kind: 'sns' } });
    await rig.say([moved(1, 'a'), moved(2, 'b')]);
    return drain();
  },

  async requests() {
    const table = createMemoryTable();
    const now = () => 0;
    const log = createEventLog(table, { now, newId: () => 'id', schemaBaseUrl: 'https://x.example' });
    const made = await createKey({ table, now }, { role: 'admin' }, OPERATOR);
    if (made.kind !== 'created') throw new Error(made.reason);
    const fail = () => Promise.reject(new TableError('get', 'it is gone'));
    const broken = { ...table, get: fail, getMany: fail };
    const served = (under: Table) =>
      wired('api', (telemetry) => {
        const app = createApi({
          ...{ table: under, log, regions: ['us'], now },
          keyring: createKeyring({ table, now }),
          manage: {} as Manage,
          deliveries: {} as DeliveryLog,
          onAnswer: (request, answer) => telemetry.request({ ...request, ...answer }),
        });
        return createRestProxyHandler((request, from) => app.fetch(request, from));
      });
    const ask = (api: ReturnType<typeof served>, method: string, path: string, key?: string) =>
      listen(() =>
        api({
          ...{ httpMethod: method, path, body: null },
          multiValueHeaders: key === undefined ? {} : { authorization: [`Bearer ${key}`] },
          multiValueQueryStringParameters: method === 'GET' ? { status: ['a customer’s text'] } : null,
          requestContext: { requestId: 'gateway-1', identity: { sourceIp: '203.0.113.7' } },
        } as unknown as APIGatewayProxyEvent),
      );
    const good = served(table);
    const [account, key] = ['/v1/accounts/acme/jobs', `/v1/keys/${made.key.id}`];
    const told = {
      missing: await ask(good, 'GET', account, made.secret),
      nowhere: await ask(good, 'GET', '/v1/nowhere', made.secret),
      failed: await ask(served(broken), 'GET', account, made.secret),
      gone: await ask(good, 'DELETE', key, made.secret),
      keyless: await ask(good, 'GET', account),
    };
    const wrong: Told[] = [];
    for (let n = 0; n < 21; n += 1) wrong.push(await ask(good, 'GET', account, 'jw_wrong'));
    return { ...told, wrong: wrong.slice(-2), key: made };
  },

  async alerting() {
    const { table, now } = await createRig();
    const rules = { table, now, targets: sealWithKms(table, new FakeKms()) };
    const rule = {
      ...{ id: 'dead', name: 'Dead events', condition: 'dead_events', threshold: 0 },
      target: { kind: 'email', to: ['ops@acme.example'] },
    };
    const made = { ...rules, allowPrivateNetworks: false, canMail: true };
    await createAlertRule(made, 'us', rule, randomUUID);
    await table.write({ put: { ...keys.sink('us', 'erp'), kind: 'webhook', target: 'x', accounts: [] } });
    await table.write({ put: { ...keys.dead('us', 'erp', 'acme', 1), diedAt: 0 } });
    const alerts = wired('alerts', (telemetry) =>
      createAlertsHandler({
        ...{ region: 'us', telemetry },
        alerts: {
          ...{ ...rules, dashboardUrl: null, history: createMemoryTable(historySchema) },
          connections: createConnectionPool({ allowPrivateNetworks: false }),
          mailer: undefined,
        },
      }),
    );
    return { firing: await listen(() => alerts({})) };
  },

  async telling() {
    const rig = await createRig();
    const { table, log, now } = rig;
    const key = keys.message(rig.ref, 'due');
    await table.write({ put: { ...key, ...notifyDue('messages', rig.ref, key.sk, now() - 90_000) } });
    const tick = wired('tick', (telemetry) =>
      createTickHandler({
        ...{ region: 'us', table, log, now, topicArn: 'arn:topic', telemetry },
        sendPolls: async () => {},
        sendLonePolls: async () => {},
        sendDrains: async () => {},
        sendNotify: async () => {},
      }),
    );
    const line = {
      region: 'us',
      account: 'acme',
      message: 'm1',
      channel: 'email',
      kind: 'dispatched',
    } as const;
    const notify = wired('notify', (telemetry) =>
      createNotifyHandler({
        ...{ now, telemetry },
        async send() {
          telemetry.notification({ ...line, outcome: 'sent', attempts: 1, latencyMs: 40 });
          telemetry.notification({
            ...line,
            outcome: 'failed',
            reason: 'rejected',
            detail: 'SES did not take the mail.',
          });
          const counts = {
            notices: 2,
            messages: 12,
            sent: 5,
            repeats: 1,
            later: 2,
            failed: 1,
            suppressed: 3,
          };
          return { ...counts, dryRun: 0, unknown: 1, held: [], more: false };
        },
      }),
    );
    const feedback = wired('mail-feedback', (telemetry) =>
      createMailFeedbackHandler({
        ...{ region: 'us', telemetry },
        messages: { table, history: createMemoryTable(historySchema), now, newId: () => 'id' },
      }),
    );
    const heard = (eventType: string, more: object, region = 'us') => ({
      ...{ eventType, ...more },
      mail: {
        destination: ['ann@example.org'],
        tags: { region: [region], account: ['acme'], message: ['m1'] },
      },
    });
    const bounce = { bounceType: 'Permanent', bouncedRecipients: [{ emailAddress: 'ann@example.org' }] };
    const text = { Records: [{ messageId: 'message-0', body: 'Successfully validated the topic.' }] };
    return {
      tick: await listen(() => tick({})),
      notify: await listen(() => notify(messages({ dueSince: 0 }))),
      bounced: await listen(() => feedback(messages(heard('Bounce', { bounce })))),
      complained: await listen(() => feedback(messages(heard('Complaint', { complaint: {} })))),
      elsewhere: await listen(() => feedback(messages(heard('Bounce', { bounce }, 'uk')))),
      validated: await listen(() => feedback(text as unknown as SQSEvent)),
    };
  },

  async faults() {
    const { poll } = await createPolled();
    const rig = await createRig();
    const broken = wired('poll-account', (telemetry) =>
      createPollAccountHandler({
        region: 'us',
        polling: {
          ...rig.deps,
          table: { ...rig.table, get: () => Promise.reject(new Error('The table could not get.')) },
        },
        telemetry,
      }),
    );
    const wake = wired('wake-sinks', (telemetry) =>
      createWakeSinksHandler({
        ...{ region: 'us', now: rig.now, telemetry },
        table: { ...rig.table, query: () => Promise.reject(new Error('The table could not query.')) },
        sendDrains: async () => {},
      }),
    );
    const NewImage = { sk: { S: 'acme' }, sequence: { N: '1' } };
    return {
      wake: await listen(() => wake({ Records: [{ dynamodb: { SequenceNumber: '1', NewImage } }] })),
      fault: await listen(() => broken(messages({ account: 'acme', dueAt: rig.now() }))),
      skipped: await poll(0, 'nobody'),
    };
  },
};

type Happened = { [K in keyof typeof happenings]: Awaited<ReturnType<(typeof happenings)[K]>> };
let happened: Happened;
/** All lines and metrics. */
let all: Told;

beforeAll(async () => {
  const results: Record<string, unknown> = {};
  for (const [name, happen] of Object.entries(happenings)) results[name] = await happen();
  happened = results as Happened;
  const collect = (value: unknown): readonly Line[] => {
    if (value instanceof Told) return value.lines;
    return typeof value === 'object' && value !== null ? Object.values(value).flatMap(collect) : [];
  };
  all = new Told(collect(results));
}, 60_000);

describe('polls', () => {
  test('a poll is one log line; its changes and delay are counted for the cell', () => {
    const { baseline, late, quiet } = happened.goodPolls;
    expect(baseline.of('poll')).toMatchObject([
      {
        level: 'INFO',
        cell: 'test-us',
        account: 'acme',
        outcome: 'complete',
        lagMs: 0,
        accountEvents: ['account.baselined'],
      },
    ]);
    expect(baseline.metrics).toEqual({
      PollLag: [0],
      PollsIncomplete: [0],
      ChangedJobs: [1],
      EventsCommitted: [1],
    });
    expect(late.of('poll')).toMatchObject([{ lagMs: 1500, events: 2, changedJobs: 1, unresolved: 0 }]);
    expect(late.metrics).toMatchObject({ PollLag: [1500], EventsCommitted: [2] });
    expect(quiet.metrics).toEqual({ PollLag: [0], PollsIncomplete: [0] });
  });

  test('incomplete and failed polls count as incomplete; faults are counted by kind', () => {
    const { partial, failed } = happened.badPolls;
    expect(partial.of('poll')).toMatchObject([
      { outcome: 'partial', upstreamErrors: { network: expect.any(Number) } },
    ]);
    expect(partial.of('poll')[0]).not.toHaveProperty('unresolved');
    expect(partial.metrics).toMatchObject({ PollsIncomplete: [1], PollsPartial: [1] });
    expect(failed.of('poll')).toMatchObject([{ level: 'WARN', outcome: 'failed', events: 0, retries: 2 }]);
    // The request, and its two retries.
    expect(failed.metrics).toEqual({
      PollLag: [0],
      PollsIncomplete: [1],
      PollsFailed: [1],
      'UpstreamErrors unavailable': [3],
    });
  });

  test('a fault repaired by a retry is counted, and the poll is complete', () => {
    const told = happened.repeatedRequest;
    expect(told.of('poll')).toMatchObject([
      { outcome: 'complete', retries: 1, upstreamErrors: { server_error: 1 } },
    ]);
    expect(told.metrics).toMatchObject({ PollsIncomplete: [0], 'UpstreamErrors server_error': [1] });
  });

  test('rejected credentials are counted each time, the account once', () => {
    const { first, again } = happened.badCredentials;
    expect(first.metrics).toMatchObject({
      TokenRefusals: [1],
      CredentialsRejected: [1],
      'UpstreamErrors credentials_rejected': [1],
    });
    expect(again.metrics).toMatchObject({ TokenRefusals: [1] });
    expect(again.metrics).not.toHaveProperty('CredentialsRejected');
  });

  test('a stopped or quarantined account is counted when its event is emitted', () => {
    expect(happened.anotherIdentity.metrics).toMatchObject({ IdentityMismatches: [1] });
    const { first, again } = happened.quarantine;
    expect(first.of('poll')).toMatchObject([{ state: 'quarantined', unresolved: 30 }]);
    expect(first.metrics).toMatchObject({ AccountsQuarantined: [1], UnresolvedDepartures: [30] });
    expect(again.metrics).not.toHaveProperty('AccountsQuarantined');
    expect(again.metrics).toMatchObject({ UnresolvedDepartures: [30] });
  });

  test('each tick reports an outage of the region until its end; its failed and delayed polls are not counted', () => {
    const [tick, poll] = happened.outage.during;
    expect(tick?.metrics).toMatchObject({ UpstreamOutage: [1], Ticks: [1] });
    expect(poll?.of('poll')).toMatchObject([{ outage: true, outcome: 'failed', lagMs: 30_000 }]);
    expect(poll?.metrics).toEqual({ PollsFailed: [1], 'UpstreamErrors unavailable': expect.any(Array) });
    expect(happened.outage.after.metrics).not.toHaveProperty('UpstreamOutage');
  });

  test('an account that is not polled, or whose poll crashes, counts no poll', () => {
    expect(happened.faults.skipped.of('poll')).toMatchObject([{ outcome: 'skipped' }]);
    expect(happened.faults.skipped.metrics).toEqual({});
    expect(happened.faults.fault.metrics).toEqual({});
    expect(happened.faults.fault.of('A message failed.')).toMatchObject([
      { level: 'ERROR', messageId: 'message-0', error: { name: 'Error' } },
    ]);
    expect(happened.faults.wake.of('The sinks of an account could not be woken.')).toMatchObject([
      { level: 'ERROR', account: 'acme' },
    ]);
  });
});

describe('deliveries', () => {
  test("each attempt is one log line with its duration and the event's delay", () => {
    const { taken, parked } = happened.takenAndRefused;
    expect(JSON.stringify(all.of('delivery'))).not.toContain('a body');
    expect(taken.of('delivery')).toHaveLength(2);
    expect(taken.of('delivery')[0]).toMatchObject({
      ...{ level: 'INFO', cell: 'test-us', region: 'us', sink: 'erp', account: 'acme' },
      ...{ eventId: 'acme.e1.1', type: 'job.status_changed', sequence: 1, jobNumber: 1 },
      ...{ outcome: 'delivered', cause: 'live', latencyMs: 0, lagMs: 5_000 },
    });
    expect(parked.of('delivery')).toMatchObject([
      {
        level: 'WARN',
        outcome: 'rejected',
        reason: 'The endpoint responded with status 422.',
        status: 422,
        sequence: 3,
      },
    ]);
    expect(happened.parkedAndTaken.of('delivery')).toMatchObject([{ outcome: 'delivered', cause: 'parked' }]);
    expect(happened.replayed.of('delivery')).toMatchObject([{ cause: 'replay', replay: 'r1' }]);
    expect(happened.topic.of('delivery').map(({ sequence }) => sequence)).toEqual([1, 2]);
  });

  test('outcomes of events are counted per cell, and only existing ones', () => {
    const { taken, parked, dead } = happened.takenAndRefused;
    expect(taken.metrics).toEqual({ Deliveries: [2], DeliveryLag: [5_000, 5_000] });
    expect(parked.metrics).toEqual({ DeliveryRejections: [1], EventsParked: [1] });
    expect(dead?.metrics).toEqual({ DeliveryRejections: [1], EventsDead: [1] });
    expect(happened.failing.waiting.metrics).toEqual({ DeliveryFailures: [1] });
    expect(happened.failing.disabled.metrics).toEqual({ DeliveryFailures: [1], SinksDisabled: [1] });
    // Whether the drain's own report is included depends on timing.
    expect(happened.failing.lost.metrics).toMatchObject({
      EventsLost: [2],
      Deliveries: [expect.toSatisfy((count: number) => count === 2 || count === 3)],
    });
    expect(happened.unlogged.metrics).toMatchObject({ DeliveriesUnlogged: [1], Deliveries: [1] });
  });

  test('the delay of a replayed event is not counted', () => {
    expect(happened.replayed.metrics).toEqual({ Deliveries: [1] });
    expect(happened.parkedAndTaken.metrics.DeliveryLag?.[0]).toBeGreaterThanOrEqual(DAY_MS);
  });
});

describe('requests', () => {
  test('a request is one log line with route, key id and outcome; without parameters, keys and addresses', () => {
    const { key, gone, missing, nowhere } = happened.requests;
    const keyId = key.key.id;
    expect(gone.of('request')).toMatchObject([
      { level: 'INFO', requestId: 'gateway-1', route: 'DELETE /v1/keys/{id}', status: 204, keyId },
    ]);
    expect(missing.of('request')).toMatchObject([
      { level: 'INFO', route: 'GET /v1/accounts/{id}/jobs', status: 404, keyId, ms: 0 },
    ]);
    expect(nowhere.of('request')).toMatchObject([{ status: 404, keyId }]);
    expect(nowhere.of('request')[0]).not.toHaveProperty('route');
    for (const told of [gone, missing, nowhere]) expect(told.metrics).toEqual({});
    const lines = JSON.stringify([gone, missing, nowhere].map((told) => told.lines));
    for (const secret of [key.secret, 'customer', '203.0.113.7', 'acme']) expect(lines).not.toContain(secret);
  });

  test('internal errors are counted, and so are invalid keys', () => {
    const { failed, keyless, wrong } = happened.requests;
    expect(failed.of('request')).toMatchObject([{ level: 'WARN', status: 503 }]);
    expect(failed.metrics).toEqual({ RequestsFailed: [1] });
    expect(keyless.of('request')).toMatchObject([{ status: 401 }]);
    expect(keyless.of('request')[0]).not.toHaveProperty('keyId');
    // The last one came from an address with too many failures: the handler passes addresses on.
    expect(wrong.flatMap((told) => told.of('request'))).toMatchObject([{ status: 401 }, { status: 429 }]);
    for (const told of [keyless, ...wrong]) expect(told.metrics).toEqual({ KeysRefused: [1] });
  });
});

describe('notifying customers', () => {
  test('an evaluation of alert rules is a line; messages that were not accepted are a metric', () => {
    const { firing } = happened.alerting;
    expect(firing.of('alerts')).toMatchObject([
      { level: 'WARN', rules: 1, firing: 1, sent: 0, failed: 1, skipped: 0 },
    ]);
    expect(firing.metrics).toEqual({ AlertsNotSent: [1] });
  });

  test('each attempt is one log line with ids, each run another; outcomes are counted per cell', () => {
    const { notify, tick } = happened.telling;
    expect(tick.of('tick')).toMatchObject([{ unsentSeconds: 90 }]);
    expect(tick.metrics).toMatchObject({ OldestUnsent: [90], Ticks: [1] });
    expect(notify.of('notification')).toMatchObject([
      { level: 'INFO', account: 'acme', messageId: 'm1', channel: 'email', outcome: 'sent' },
      { level: 'WARN', outcome: 'failed', reason: 'rejected', detail: 'SES did not take the mail.' },
    ]);
    expect(notify.of('notify')).toMatchObject([{ level: 'WARN', notices: 2, sent: 5, ms: 0 }]);
    expect(notify.metrics).toEqual({
      ...{ MessagesSent: [5], MessagesPutOff: [2], MessagesFailed: [1], MessagesSuppressed: [3] },
      ...{ SmsUnknown: [1], MailsRepeated: [1] },
    });
  });

  test('an SES event is one log line without the address; unknown and empty events are no faults', () => {
    const { bounced, complained, elsewhere, validated } = happened.telling;
    expect(bounced.of('feedback')).toMatchObject([{ account: 'acme', messageId: 'm1', what: 'bounced' }]);
    expect(bounced.metrics).toEqual({ MailsBounced: [1] });
    expect(complained.metrics).toEqual({ MailComplaints: [1] });
    for (const told of [elsewhere, validated]) {
      expect(told.of('feedback')).toMatchObject([{ level: 'INFO', what: 'ignored' }]);
      expect(told.metrics).toEqual({});
    }
    expect(JSON.stringify([bounced, complained, elsewhere].map(({ lines }) => lines))).not.toContain(
      'example.org',
    );
  });
});

describe('delay of sinks', () => {
  test('each tick reports the age of the oldest waiting event, and its sink', () => {
    const { ticked, ignored } = happened.failing;
    expect(ticked.of('tick')).toMatchObject([
      { whole: true, oldestSeconds: 1200, oldestSink: 'erp', oldestAccount: 'acme', oldestSequence: 1 },
    ]);
    expect(ticked.metrics).toEqual({ Ticks: [1], OldestUndelivered: [1200] });
    // A disabled sink gets nothing, and is reported separately; the built-in one still has to read its own log.
    expect(ignored.of('tick')[0]?.oldestSink).not.toBe('erp');
  });

  test('has no age without due events, for replays, for parked events, and for sinks that get nothing', async () => {
    const rig = await createDeliveryRig(refused);
    const oldest = () => findOldest(rig.table, rig.state.now);
    expect(await oldest()).toBeUndefined();
    await rig.say([moved(1, 'a')]);
    rig.state.now += 60_000;
    expect(await oldest()).toMatchObject({ sink: 'erp', sequence: 1 });
    await rig.drain();
    rig.state.now += DAY_MS;
    expect(await oldest()).toBeUndefined();
    await rig.replay('r1', 0, 1);
    expect(await oldest()).toBeUndefined();
    await rig.say([moved(2, 'b')]);
    expect(await oldest()).toMatchObject({ sequence: 2 });
    for (const set of [{ paused: true }, { paused: undefined, disabledAt: 1 }]) {
      await rig.table.write({ update: keys.sink('us', 'erp'), set });
      expect(await oldest()).toBeUndefined();
    }
  });

  test('of many accounts is that of the oldest event, with any sequence number', async () => {
    const rig = await createDeliveryRig(delivered, { accounts: ['a', 'b', 'c'] });
    const [a, b, c] = rig.refs;
    const at = (time: number) => ({ ...moved(1, 'x'), time });
    const start = rig.state.now;
    await rig.say([at(start - 5_000), at(start - 90_000)], a);
    await rig.say([at(start - 60_000)], b);
    await rig.say([at(start - 1_000)], c);
    expect(await findOldest(rig.table, start)).toEqual({
      ...{ sink: 'erp', account: 'b', sequence: 1, time: start - 60_000 },
    });
  });

  test('costs a bounded number of reads, for any number of accounts', async () => {
    const accounts = Array.from({ length: 60 }, (_, at) => `account-${at}`);
    const rig = await createDeliveryRig(delivered, { accounts });
    for (const [at, ref] of rig.refs.entries()) {
      rig.state.now += 1000;
      // None is so old that another, which became due later, could not be older.
      await rig.say([{ ...moved(1, 'x'), time: rig.state.now + 3_600_000 - at * 10_000 }], ref);
    }
    const table = watchedTable(rig.table);
    const found = await findOldest(table, rig.state.now);
    expect(found?.account).toBe('account-24');
    expect(table.calls).toHaveLength(DRAIN_SHARDS + 1 + 1 + 2 * 5);
    // In the usual order the first few are enough.
    const usual = await createDeliveryRig(delivered, { accounts });
    for (const ref of usual.refs) {
      usual.state.now += 1000;
      await usual.say([{ ...moved(1, 'x'), time: usual.state.now }], ref);
    }
    const watched = watchedTable(usual.table);
    expect(await findOldest(watched, usual.state.now)).toMatchObject({
      account: 'account-0',
    });
    expect(watched.calls).toHaveLength(DRAIN_SHARDS + 1 + 1 + 2);
  });

  test('includes an event that waits behind very many replays', async () => {
    const rig = await createDeliveryRig(delivered);
    for (let n = 0; n < 40; n += 1) await rig.replay(`r${n}`, 0, 1);
    rig.state.now += 1000;
    await rig.say([moved(1, 'a')]);
    expect(await findOldest(rig.table, rig.state.now)).toMatchObject({
      account: 'acme',
    });
  });

  test('includes a sink that waits after a failure', async () => {
    const rig = await createDeliveryRig(() => ({
      kind: 'retry',
      reason: 'The endpoint responded with status 503.',
    }));
    await rig.say([moved(1, 'a')]);
    expect(await rig.drain()).toMatchObject({ outcome: 'waiting' });
    expect(await findOldest(rig.table, rig.state.now)).toMatchObject({ sink: 'erp' });
  });

  test('a sink without due cursors is not read', async () => {
    const rig = await createDeliveryRig(delivered);
    await rig.say([moved(1, 'a')]);
    await rig.drain();
    const table = watchedTable(rig.table);
    expect(await findOldest(table, rig.state.now)).toBeUndefined();
    expect(table.calls).toHaveLength(DRAIN_SHARDS + 1);
  });

  test('a tick with a failed part is incomplete, and reports its results', async () => {
    const rig = await createDeliveryRig(delivered);
    await rig.say([moved(1, 'a')]);
    rig.state.now += 60_000;
    const tick = wired('tick', (telemetry) =>
      createTickHandler({
        ...{ region: 'us', table: rig.table, log: rig.log, now: () => rig.state.now, topicArn: 'arn:topic' },
        sendPolls: async () => {},
        sendLonePolls: async () => {},
        sendDrains: () => Promise.reject(new Error('The queue took no messages.')),
        telemetry,
      }),
    );
    const told = await listen(() => expect(tick({})).rejects.toThrow('The queue took no messages.'));
    expect(told.of('tick')).toMatchObject([{ level: 'WARN', whole: false, oldestSeconds: 60 }]);
    expect(told.metrics).toEqual({ OldestUndelivered: [60] });
  });
});

describe('log content', () => {
  test('a cell emits exactly the metrics of the catalogue', () => {
    const emitted = Object.keys(all.metrics).map((name) => name.split(' ')[0]);
    expect([...new Set(emitted)].sort()).toEqual([...names].sort());
  });

  test('metrics have no account or sink dimension; those are in the log lines', () => {
    for (const line of all.lines.filter(({ _aws }) => _aws)) {
      const kinds: readonly string[] = ERROR_KINDS;
      for (const [name, value] of Object.entries(line)) {
        if (typeof value !== 'string') continue;
        expect(['cell', 'kind']).toContain(name);
        expect(name === 'kind' ? kinds : ['test-us']).toContain(value);
      }
    }
  });

  test('no log line contains an address, key or secret of an endpoint, or content of events and answers', async () => {
    await using receiver = {
      ...(await startReceiver(() => ({ status: 500 }))),
      async [Symbol.asyncDispose]() {},
    };
    const url = `${receiver.url}/k3y-in-path?token=t0k3n`;
    const secret = newSecret();
    const { rig, drain } = await createDrained(delivered, { record: { target: url } });
    const { deliver } = createWebhookSink({
      ...{ url, secrets: [secret], now: () => rig.state.now, allowPrivateNetworks: true },
      headers: { 'x-api-key': 'h3ad3r' },
    });
    rig.port.deliver = deliver;
    const event = moved(1, 'a');
    const job = {
      ...(event.data as { job: object }).job,
      description: 'Call Ann, +64 21 555 0100, ann@example.org',
    };
    await rig.say([{ ...event, data: { ...event.data, job } } as typeof event]);
    const told = await drain();
    expect(receiver.requests).toHaveLength(1);
    expect(receiver.requests[0]?.body).toContain('+64 21 555 0100');
    expect(told.of('delivery')).toMatchObject([{ outcome: 'retry', status: 500 }]);
    const text = JSON.stringify(told.lines);
    for (const hidden of [
      receiver.url,
      'k3y-in-path',
      't0k3n',
      'h3ad3r',
      secret,
      '555 0100',
      'Ann',
      'a body',
    ]) {
      expect(text).not.toContain(hidden);
    }
  });

  test('no poll line contains content of jobs or a token', async () => {
    const { rig, poll } = await createPolled();
    await poll();
    rig.upstream.createJob({
      description: 'Call Ann, +64 21 555 0100, ann@example.org',
      orderNumber: 'PO-77',
    });
    const told = await poll();
    expect(told.of('poll')).toMatchObject([{ events: 1 }]);
    const { clientId, clientSecret } = rig.upstream;
    for (const hidden of ['555 0100', 'ann@', 'PO-77', clientSecret, clientId]) {
      expect(JSON.stringify(told.lines)).not.toContain(hidden);
    }
  });
});

// The template

interface Resource {
  readonly Type: string;
  readonly Properties: Readonly<Record<string, unknown>>;
}
interface AlarmProperties {
  readonly AlarmName: string;
  readonly AlarmDescription: string;
  readonly AlarmActions?: readonly unknown[];
  readonly OKActions?: readonly unknown[];
  readonly Threshold: number;
  readonly DatapointsToAlarm: number;
  readonly EvaluationPeriods: number;
  readonly TreatMissingData: string;
  readonly Period?: number;
  readonly Metrics?: readonly { readonly MetricStat?: { readonly Metric: MetricProperties } }[];
}
/** Name of a metric in an alarm. */
interface MetricProperties {
  readonly Namespace: string;
  readonly MetricName: string;
  readonly Dimensions?: readonly { readonly Name: string; readonly Value: unknown }[];
}
/** A metric in any widget; values known only after deployment are `${logical id}`. */
interface Shown {
  readonly namespace: string;
  readonly name: string;
  readonly dimensions: Readonly<Record<string, string>>;
}

const runbook = readFileSync('docs/runbook.md', 'utf8');
const CELL = 'prod-us';

describe('alarms and dashboard', () => {
  const { template } = synthesize('prod');
  const withBackup = synthesize('prod', {
    cell: {
      backup: {
        ...{ vault: 'backups', retentionDays: 7 },
        copyTo: 'arn:aws:backup:eu-central-1:111122223333:backup-vault:copies',
      },
    },
  });
  const resources = template.toJSON().Resources as Record<string, Resource>;
  const alarms = of<AlarmProperties>('AWS::CloudWatch::Alarm');
  const titles = alarms.map(({ AlarmName }) => getTitle(AlarmName));

  test('every alarm has a heading in the runbook with its three parts, and every heading an alarm', () => {
    const chapters = runbook.split(/^## /m).slice(1);
    const optional = Object.values(withBackup.template.findResources('AWS::CloudWatch::Alarm'))
      .map(({ Properties }) => getTitle(Properties.AlarmName))
      .filter((title) => !titles.includes(title));
    expect(chapters.map((chapter) => chapter.split('\n')[0]).sort()).toEqual([...titles, ...optional].sort());
    for (const chapter of chapters) {
      const parts = chapter.split(/^### /m).slice(1);
      expect(parts.map((part) => part.split('\n')[0])).toEqual([
        'Description',
        'Investigation',
        'Resolution',
      ]);
      for (const part of parts) expect(part.split('\n').slice(1).join(' ').trim().length).toBeGreaterThan(60);
    }
  });

  test("an alarm's description has its meaning and its runbook link", () => {
    for (const { AlarmName, AlarmDescription } of alarms) {
      expect(AlarmName).toMatch(/^jobwire-prod-us-[a-z][a-z0-9-]+$/);
      expect(AlarmDescription).toMatch(/^[A-Z].{30,}\. See /);
      expect(AlarmDescription.endsWith(` See ${getTitle(AlarmName)} in docs/runbook.md.`)).toBe(true);
    }
  });

  test('every alarm notifies the ops topic, and its end where it has one', () => {
    const [topic] = topics();
    const events =
      /^(dead-|events-|sms-unknown|mails-bounced|mail-complaints|sink-disabled|credentials-rejected|identity-mismatch|account-quarantined)/;
    for (const { AlarmName, AlarmActions, OKActions } of alarms) {
      expect(AlarmActions, AlarmName).toEqual([{ Ref: topic }]);
      expect(OKActions, AlarmName).toEqual(events.test(getTitle(AlarmName)) ? undefined : [{ Ref: topic }]);
    }
  });

  test('a failed or expired backup, and a failed copy, notify the ops topic, also if AWS reports them up to an hour late', () => {
    const [, { Properties: alarm } = { Properties: undefined }] =
      withBackup
        .resources('AWS::CloudWatch::Alarm')
        .find(([, { Properties }]) => getTitle(Properties.AlarmName) === 'backup-failed') ?? [];
    expect(getMetrics(alarm).map(({ namespace, name, dimensions }) => [namespace, name, dimensions])).toEqual(
      [
        ['NumberOfBackupJobsFailed', 'backups'],
        ['NumberOfBackupJobsExpired', 'backups'],
        ['NumberOfCopyJobsFailed', 'backups'],
        ['NumberOfCopyJobsFailed', 'copies'],
      ].map(([name, BackupVaultName]) => ['AWS/Backup', name, { BackupVaultName }]),
    );
    expect(alarm).toMatchObject({
      ...{ AlarmActions: [{ Ref: topics()[0] }], TreatMissingData: 'notBreaching' },
      ...{ Threshold: 1, DatapointsToAlarm: 1, EvaluationPeriods: 12 },
    });
  });

  test('missing data is alarming only for metrics that are emitted each minute', () => {
    const silent = alarms.filter(({ TreatMissingData }) => TreatMissingData === 'breaching');
    expect(silent.map(({ AlarmName }) => getTitle(AlarmName))).toEqual(['tick-not-running']);
    expect(new Set(alarms.map(({ TreatMissingData }) => TreatMissingData))).toEqual(
      new Set(['breaching', 'notBreaching', 'ignore']),
    );
    // A metric emitted on activity cannot be missing for long during activity.
    for (const { name } of alarms.flatMap(getMetrics)) {
      const metric: { emitted?: string } = METRICS[name as MetricName] ?? {};
      if (silent.flatMap(getMetrics).some((one) => one.name === name)) expect(metric.emitted).toBe('each');
    }
  });

  /** Returns whether an alarm is in the state ALARM after each period, given the values of the periods. */
  function findAlarmStates(alarm: AlarmProperties, values: readonly (number | undefined)[]): boolean[] {
    const { Threshold, DatapointsToAlarm, EvaluationPeriods, TreatMissingData } = alarm;
    let inAlarm = false;
    return values.map((_, at) => {
      const window = values.slice(Math.max(0, at + 1 - EvaluationPeriods), at + 1);
      const filled = window.map((value) => value ?? (TreatMissingData === 'notBreaching' ? 0 : undefined));
      const known = filled.filter((value) => value !== undefined);
      const breaching = known.filter((value) => value >= Threshold).length;
      if (breaching >= DatapointsToAlarm) inAlarm = true;
      else if (known.length > breaching) inAlarm = false;
      return inAlarm;
    });
  }

  test.each([60, 120, 300])(
    'polls-incomplete is in ALARM as long as the only account of a cell fails, at a poll interval of %i s',
    (interval) => {
      const alarm = alarms.find(({ AlarmName }) => getTitle(AlarmName) === 'polls-incomplete');
      const [hour, period] = [3600, 300];
      const failing = { from: hour, to: 4 * hour, until: 5 * hour };
      const polls = simulateBackOff(interval, failing);
      for (let shift = 0; shift < period; shift += 10) {
        const toPeriod = (at: number) => Math.floor((at + shift) / period);
        const averages = Array.from({ length: toPeriod(failing.until) }, (_, index) => {
          const failures = polls
            .filter(({ at }) => toPeriod(at) === index)
            .map(({ failed }) => Number(failed));
          return failures.length === 0 ? undefined : failures.reduce((a, b) => a + b) / failures.length;
        });
        const states = alarm ? findAlarmStates(alarm, averages) : [];
        const first = states.indexOf(true);
        expect(first, `${shift}`).toBeGreaterThanOrEqual(toPeriod(failing.from));
        expect(first, `${shift}`).toBeLessThanOrEqual(toPeriod(failing.from + 25 * 60));
        expect(new Set(states.slice(first, toPeriod(failing.to)))).toEqual(new Set([true]));
        expect(states.at(-1)).toBe(false);
      }
    },
  );

  test("alarms and dashboard use only emitted metrics, or AWS metrics of the cell's resources", () => {
    const shown = [...alarms.flatMap(getMetrics), ...dashboardMetrics()];
    expect(shown.length).toBeGreaterThan(60);
    for (const { namespace, name, dimensions } of shown) {
      const { kind, ...others } = dimensions;
      if (namespace === NAMESPACE) {
        const metric = METRICS[name as MetricName] as { kind?: boolean } | undefined;
        if (!metric) expect.fail(`Nothing emits ${name}.`);
        expect(others).toEqual({ cell: CELL });
        expect(kind === undefined, name).toBe(!metric.kind);
        if (kind !== undefined) expect(ERROR_KINDS as readonly string[]).toContain(kind);
        continue;
      }
      expect(OF_AWS[namespace], `${namespace} ${name}`).toContain(name);
      expect(Object.keys(dimensions).length).toBeGreaterThan(0);
      for (const [dimension, value] of Object.entries(dimensions)) {
        const [, id] = /^\$\{(\w+)/.exec(value) ?? [];
        const constants = ['due', 'Global'];
        if (id) expect(resources[id]?.Type, value).toBe(RESOURCE_OF[dimension]);
        else expect([...constants, 'jobwire-prod-us']).toContain(value);
      }
    }
  });

  test('every metric of the catalogue is on the dashboard, and so is every kind of fault', () => {
    const own = dashboardMetrics().filter(({ namespace }) => namespace === NAMESPACE);
    expect([...new Set(own.map(({ name }) => name))].sort()).toEqual([...names].sort());
    const kinds = own.flatMap(({ dimensions }) => dimensions.kind ?? []);
    expect(kinds.sort()).toEqual([...ERROR_KINDS].sort());
  });

  test('every function but those that operators and deployments invoke, every queue of polls, every dead-letter queue and every table is monitored', () => {
    const watched = (name: RegExp) =>
      new Set(
        alarms
          .flatMap(getMetrics)
          .filter((metric) => name.test(metric.name))
          .flatMap(({ dimensions }) => Object.values(dimensions))
          .flatMap((value) => /^\$\{(\w+)/.exec(value)?.[1] ?? []),
      );
    const ids = (type: string) => Object.keys(resources).filter((id) => resources[id]?.Type === type);
    const functions = ids('AWS::Lambda::Function').filter(
      // Their callers receive errors directly.
      (id) => !/^(Operate|DashboardPublish)/.test(id),
    );
    expect([...watched(/^Errors$/)].sort()).toEqual(functions.sort());
    expect([...watched(/ThrottleEvents$/)].sort()).toEqual(ids('AWS::DynamoDB::GlobalTable').sort());
    const [stream] = ids('AWS::Lambda::Function').filter((id) => /^DeliveryWakeSinks/.test(id));
    expect([...watched(/^IteratorAge$/)]).toEqual([stream]);
    const publishing = ids('AWS::SNS::Topic').filter((id) => !topics().includes(id));
    expect([...watched(/^NumberOfNotificationsFailed$/)].sort()).toEqual(publishing.sort());
    expect([...watched(/^5xxErrorRate$/)]).toEqual(ids('AWS::CloudFront::Distribution'));
    const polls = ids('AWS::SQS::Queue').filter((id) => /^Polling(Lone)?PollsQueue/.test(id));
    expect(polls).toHaveLength(2);
    expect([...watched(/^ApproximateAgeOfOldestMessage$/)].sort()).toEqual(polls.sort());
    const dead = ids('AWS::SQS::Queue').filter((id) => /Dead/.test(id));
    expect([...watched(/^ApproximateNumberOfMessagesVisible$/)].sort()).toEqual(dead.sort());
  });

  test('the runbook names every function whose throttled invocations raise the alarm', () => {
    const alarm = alarms.find(({ AlarmName }) => getTitle(AlarmName) === 'functions-throttled');
    const [, text = ''] = /^## functions-throttled\n([\s\S]*?)\n### Investigation/m.exec(runbook) ?? [];
    const named = [...text.matchAll(/\w+/g)].map(([name]) => name.toLowerCase());
    for (const { dimensions } of alarm ? getMetrics(alarm) : []) {
      const id = String(dimensions.FunctionName).toLowerCase();
      expect(
        named.filter((name) => name.length > 3 && id.includes(name)),
        id,
      ).not.toEqual([]);
    }
  });

  test('fixed costs stay small: metrics, alarms and the dashboard of a cell', () => {
    const always = names.filter((name) => METRICS[name].emitted !== 'rare');
    const ofNotifications = (name: MetricName) =>
      (METRICS[name] as { part?: string }).part === 'notifications';
    const besides = always.filter(ofNotifications);
    expect([always.length - besides.length, besides.length]).toEqual([9, 2]);
    // Billed: the metrics of alarms, and the values of dimensions.
    const plain = synthesize('prod', { cell: { notifications: undefined } });
    const lookedBy = (all: readonly AlarmProperties[]) => all.flatMap(getMetrics).length;
    const plainAlarms = plain.resources('AWS::CloudWatch::Alarm').map(([, { Properties }]) => Properties);
    const looked = lookedBy(plainAlarms);
    expect(looked).toBeLessThanOrEqual(43);
    // Each alarm of its own, and two more functions in the sums of errors and of throttles.
    expect(lookedBy(alarms) - looked).toBeLessThanOrEqual(13);
    expect(of('AWS::CloudWatch::Dashboard')).toHaveLength(1);
    expect(of('AWS::CloudWatch::CompositeAlarm')).toEqual([]);
    // All periods are of a minute at least: high resolution costs three times as much.
    for (const { Period } of alarms) expect(Period ?? 60).toBeGreaterThanOrEqual(60);
    const dollars = 0.3 * (always.length - besides.length) + 0.1 * looked + 3;
    expect(dollars).toBeLessThanOrEqual(10);
  });

  test('only the cell’s own alarms may use the ops topic, and only with TLS', () => {
    const policies = of<{ Topics: { Ref: string }[]; PolicyDocument: { Statement: object[] } }>(
      'AWS::SNS::TopicPolicy',
    ).filter(({ Topics }) => Topics[0]?.Ref === topics()[0]);
    const statements = policies.flatMap(({ PolicyDocument }) => PolicyDocument.Statement);
    expect(statements).toHaveLength(2);
    expect(statements).toContainEqual(
      expect.objectContaining({ Effect: 'Deny', Condition: { Bool: { 'aws:SecureTransport': 'false' } } }),
    );
    const allowed = statements.find((statement) => (statement as { Effect: string }).Effect === 'Allow');
    expect(allowed).toMatchObject({
      Action: 'sns:Publish',
      Principal: { Service: 'cloudwatch.amazonaws.com' },
      Resource: { Ref: topics()[0] },
      Condition: { StringEquals: { 'aws:SourceAccount': { Ref: 'AWS::AccountId' } } },
    });
    expect(JSON.stringify(allowed)).toContain(':alarm:jobwire-prod-us-*"');
  });

  test('a cell outside us-east-1 displays the metrics of its distribution, and has no alarm on them', () => {
    const elsewhere = synthesize('prod', { cell: { awsRegion: 'eu-central-1', notifications: undefined } });
    const names = elsewhere
      .resources('AWS::CloudWatch::Alarm')
      .map(([, { Properties }]) => Properties.AlarmName);
    expect(names).toContain('jobwire-prod-us-api-errors');
    expect(names).not.toContain('jobwire-prod-us-dashboard-errors');
    const [[, board] = []] = elsewhere.resources('AWS::CloudWatch::Dashboard');
    expect(plain(board?.Properties.DashboardBody)).toMatch(/"5xxErrorRate".*"region":"us-east-1"/);
  });

  test('the alarm that operators of other AWS regions create by hand is the same as that of a cell in us-east-1', () => {
    const [, metrics = '', command = ''] =
      /^cat > metrics\.json <<END\n([\s\S]*?)\nEND\n(aws cloudwatch put-metric-alarm [^`]*)/m.exec(runbook) ??
      [];
    const getOption = (name: string) => new RegExp(`--${name} (\\S+)`).exec(command)?.[1];
    const alarm = alarms.find(({ AlarmName }) => getTitle(AlarmName) === 'dashboard-errors');
    expect(alarm).toMatchObject({
      Threshold: Number(getOption('threshold')),
      ComparisonOperator: getOption('comparison-operator'),
      EvaluationPeriods: Number(getOption('evaluation-periods')),
      DatapointsToAlarm: Number(getOption('datapoints-to-alarm')),
      TreatMissingData: getOption('treat-missing-data'),
    });
    const [distribution = ''] = Object.keys(resources).filter(
      (id) => resources[id]?.Type === 'AWS::CloudFront::Distribution',
    );
    const given = JSON.parse(metrics.replaceAll('"$ID"', JSON.stringify({ Ref: distribution }))) as object[];
    expect(alarm?.Metrics).toEqual(given.map((metric) => expect.objectContaining(metric)));
  });

  test('an e-mail address in the settings subscribes to it', () => {
    const emails = (all: readonly object[]) => all.filter((one) => JSON.stringify(one).includes('"email"'));
    expect(emails(of('AWS::SNS::Subscription'))).toEqual([]);
    const { template: withAddress } = synthesize('prod', { cell: { opsEmail: 'on-call@example.org' } });
    const told = withAddress.findResources('AWS::SNS::Subscription');
    expect(emails(Object.values(told))).toMatchObject([
      {
        Properties: { Protocol: 'email', Endpoint: 'on-call@example.org', TopicArn: { Ref: topics()[0] } },
      },
    ]);
  });

  function of<P = Resource['Properties']>(type: string): P[] {
    return Object.values(resources).flatMap((resource) =>
      resource.Type === type ? [resource.Properties as P] : [],
    );
  }

  function topics(): string[] {
    return Object.keys(template.findResources('AWS::SNS::Topic')).filter((id) => id.startsWith('Operations'));
  }

  function dashboardMetrics(): Shown[] {
    const [dashboard] = of<{ DashboardBody: unknown }>('AWS::CloudWatch::Dashboard');
    const { widgets } = JSON.parse(plain(dashboard?.DashboardBody)) as {
      widgets: { properties: { metrics?: readonly unknown[][] } }[];
    };
    return widgets.flatMap(({ properties }) =>
      (properties.metrics ?? []).map((row): Shown => {
        const [namespace, name, ...pairs] = row.filter((part) => typeof part === 'string');
        const dimensions: Record<string, string> = {};
        for (let at = 0; at + 1 < pairs.length; at += 2) dimensions[pairs[at] ?? ''] = pairs[at + 1] ?? '';
        return { namespace: namespace ?? '', name: name ?? '', dimensions };
      }),
    );
  }
});

describe('the runbook', () => {
  test('each query uses only fields of the log lines', () => {
    const access = JSON.parse(accessLogFormat()) as object;
    const fields = new Map<string, Set<string>>([
      ['access', getFields([access as Line])],
      ['fault', getFields(all.lines.filter(({ level }) => level === 'ERROR'))],
      ['runtime', new Set()],
    ]);
    for (const name of METRIC_LINES) fields.set(name, getFields(all.of(name)));
    for (const kind of ERROR_KINDS) fields.get('poll')?.add(`upstreamErrors.${kind}`);
    const queries = [...runbook.matchAll(/```insights (\w+)\n([^`]*)```/g)];
    expect(queries.length).toBeGreaterThan(titles().length);
    expect(queries.length).toBe(runbook.split('```insights').length - 1);
    for (const [, about = '', query = ''] of queries) {
      if (METRIC_LINES.has(about)) expect(query).toContain(`message = "${about}"`);
      const known = fields.get(about);
      expect(known, about).toBeDefined();
      const aliases = new Set([...query.matchAll(/ as (\w+)/g)].map(([, alias]) => alias));
      const words = query.replace(/"[^"]*"|\/[^/]*\//g, '').matchAll(/(?<![\w.@])[@A-Za-z_][\w.]*/g);
      for (const [word] of words) {
        if (KEYWORDS.has(word) || aliases.has(word) || word.startsWith('@')) continue;
        expect(known, `${word} in: ${query}`).toContain(word);
      }
    }
  });

  test('each API request is valid', () => {
    const requests = findApiRequests(runbook);
    expect(requests.length).toBeGreaterThan(5);
    for (const request of requests) expect(findRequestProblem(request), request.join(' ')).toBeUndefined();
    expect(runbook).not.toContain('operate ');
  });

  test('its table of metrics is the catalogue', () => {
    const rows = [
      ...runbook.matchAll(/^\| (at all times, even without activity|on activity|on problems) \| (.*) \|$/gm),
    ];
    const said = {
      each: 'at all times, even without activity',
      active: 'on activity',
      rare: 'on problems',
    };
    const listed = Object.fromEntries(
      rows.map(([, when, metrics = '']) => [when, [...metrics.matchAll(/`(\w+)`/g)].map(([, name]) => name)]),
    );
    for (const [kind, words] of Object.entries(said)) {
      expect(listed[words]?.toSorted(), words).toEqual(
        names.filter((name) => METRICS[name].emitted === kind).sort(),
      );
    }
  });

  test('links between headings resolve', () => {
    for (const [, target = ''] of runbook.matchAll(/\]\(#([^)]+)\)/g)) expect(titles()).toContain(target);
  });

  function titles(): string[] {
    return runbook
      .split(/^## /m)
      .slice(1)
      .map((chapter) => chapter.split('\n')[0] ?? '');
  }

  function accessLogFormat(): string {
    const [[, stage] = []] = synthesize('prod').resources('AWS::ApiGateway::Stage');
    return stage?.Properties.AccessLogSetting.Format;
  }
});

const METRIC_LINES = new Set([
  ...['poll', 'tick', 'drain', 'delivery', 'request'],
  ...['alerts', 'notify', 'notification', 'feedback'],
]);
/** Keywords of Logs Insights in the runbook. */
const KEYWORDS = new Set(
  'fields filter stats sort limit by as and or in like desc asc count sum avg max min pct latest bin'.split(
    ' ',
  ),
);

/** Metrics that AWS emits, as used here. */
const OF_AWS: Readonly<Record<string, readonly string[]>> = {
  'AWS/Lambda': ['Errors', 'Duration', 'Throttles', 'ConcurrentExecutions', 'IteratorAge'],
  'AWS/SNS': ['NumberOfNotificationsFailed'],
  'AWS/CloudFront': ['Requests', '4xxErrorRate', '5xxErrorRate'],
  'AWS/SQS': ['ApproximateAgeOfOldestMessage', 'ApproximateNumberOfMessagesVisible'],
  'AWS/DynamoDB': [
    ...['ReadThrottleEvents', 'WriteThrottleEvents'],
    ...['ConsumedReadCapacityUnits', 'ConsumedWriteCapacityUnits'],
  ],
  'AWS/ApiGateway': ['Count', '4XXError', '5XXError', 'Latency'],
};
const RESOURCE_OF: Readonly<Record<string, string>> = {
  FunctionName: 'AWS::Lambda::Function',
  QueueName: 'AWS::SQS::Queue',
  TableName: 'AWS::DynamoDB::GlobalTable',
  Stage: 'AWS::ApiGateway::Stage',
  TopicName: 'AWS::SNS::Topic',
  DistributionId: 'AWS::CloudFront::Distribution',
};

function getTitle(alarmName: string): string {
  return alarmName.replace('jobwire-prod-us-', '');
}

function getMetrics(alarm: AlarmProperties): Shown[] {
  const metrics = alarm.Metrics
    ? alarm.Metrics.flatMap(({ MetricStat }) => (MetricStat ? [MetricStat.Metric] : []))
    : [alarm as unknown as MetricProperties];
  return metrics.map(({ Namespace, MetricName, Dimensions = [] }) => ({
    namespace: Namespace,
    name: MetricName,
    dimensions: Object.fromEntries(Dimensions.map(({ Name, Value }) => [Name, plain(Value)])),
  }));
}

/** A value of a template as text. */
function plain(value: unknown): string {
  if (typeof value === 'string') return value;
  const {
    Ref,
    'Fn::GetAtt': attribute,
    'Fn::Join': join,
  } = value as {
    Ref?: string;
    'Fn::GetAtt'?: readonly string[];
    'Fn::Join'?: readonly [string, readonly unknown[]];
  };
  if (join) return join[1].map(plain).join(join[0]);
  return `\${${Ref ?? attribute?.join('.')}}`;
}

/** The names of all fields of some lines, as Logs Insights finds them. */
function getFields(lines: readonly Line[]): Set<string> {
  const found = new Set<string>();
  const add = (value: unknown, path: string): void => {
    found.add(path);
    if (typeof value !== 'object' || value === null) return;
    for (const [name, part] of Object.entries(value)) add(part, `${path}.${name}`);
  };
  for (const line of lines) for (const [name, value] of Object.entries(line)) add(value, name);
  return found;
}

async function findOldest(table: Table, now: number) {
  return oldestUndelivered(table, await readDueSinks(table, 'us', now), now);
}
