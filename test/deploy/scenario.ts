/** What has to hold of a cell wherever it is deployed, from the first account to functions that die at their work. */
import {
  CreateSecretCommand,
  GetSecretValueCommand,
  SecretsManagerClient,
} from '@aws-sdk/client-secrets-manager';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Sandbox } from '../../local/sandbox/server.ts';
import type { SandboxAccount } from '../../local/sandbox/world.ts';
import type { Deploy, Deployment } from './deployment.ts';
import {
  createApiClient,
  type Subscriber,
  startOrdering,
  startWebhookReceiver,
  subscribe,
  type Told,
  type WebhookReceiver,
} from './partners.ts';

const WEBHOOK_HOST = 'hooks.receiver.example';
/** The names that the settings give the ordering service of the cell. */
const ORDERING_HOSTS = { api: 'us.ordering.example', auth: 'auth-us.ordering.example' };
/** What the schedule is given to bring something about. */
const MINUTES = 8;

/** Runs the scenario on one deployment, test by test: each goes on where the one before has ended. */
export function scenario(name: string, deploy: Deploy): void {
  describe(name, () => {
    let ordering: Sandbox;
    let receiver: WebhookReceiver;
    let cell: Deployment;
    let subscriber: Subscriber;
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
      api = createApiClient(cell, await apiKey(cell));
    }, 120_000);

    afterAll(async () => {
      subscriber?.[Symbol.dispose]();
      await cell?.[Symbol.asyncDispose]();
      await receiver?.[Symbol.asyncDispose]();
      await ordering?.stop();
    });

    /** Opens an account upstream, puts its credentials where they belong, and registers it. */
    async function register(account: string, secret: 'secret kept' | 'no secret' = 'secret kept') {
      const upstream = ordering.world.addAccount({ region: 'us', name: account });
      accounts.set(account, upstream);
      const secretRef = `jobwire/${cell.stage}/${cell.region}/accounts/${account}`;
      if (secret === 'secret kept') await putSecret(cell, secretRef, upstream);
      await operate({ do: 'accounts.add', account, secretRef, pollIntervalSeconds: 60 });
      return upstream;
    }

    /** An operator's command, which has to be done. */
    async function operate(command: Readonly<Record<string, unknown>>): Promise<Record<string, unknown>> {
      const answer = (await cell.invoke('operate', command)) as Record<string, unknown>;
      expect(answer).not.toHaveProperty('error');
      return answer;
    }

    /** Waits until something is so; the schedule comes round meanwhile, minute by minute. */
    async function until<T>(what: string, probe: () => Promise<T | undefined> | T | undefined): Promise<T> {
      for (let minute = 0; minute < MINUTES; minute += 1) {
        if (minute > 0) await cell.passTime(60);
        await cell.tick();
        await cell.settled();
        const found = await probe();
        if (found !== undefined) return found;
      }
      throw new Error(`In ${MINUTES} minutes it did not come about that ${what}.`);
    }

    /** Waits until the log of an account has grown by an event of each of these types, and gives them. */
    function grown(account: string, after: number, types: readonly string[]): Promise<Told[]> {
      return until(`${account} has ${types.join(', ')}`, async () => {
        const fresh = (await feedOf(account)).slice(after);
        return types.every((type) => fresh.some((event) => event.type === type)) ? fresh : undefined;
      });
    }

    async function feedOf(account: string): Promise<Told[]> {
      return api.feed(account);
    }

    /** What topic and endpoint were told of an account. */
    async function toldOf(account: string): Promise<{ topic: Told[]; webhook: Told[] }> {
      const of = (events: readonly Told[]) => events.filter((event) => event.account === account);
      return { topic: of(await subscriber.events()), webhook: of(receiver.events) };
    }

    /** Waits until topic and endpoint have everything that stands in the log of an account. */
    async function delivered(account: string): Promise<{ log: Told[]; topic: Told[]; webhook: Told[] }> {
      const log = await feedOf(account);
      const has = (events: readonly Told[]) => log.every(({ id }) => events.some((event) => event.id === id));
      const got = await until(`everybody was told of ${account}`, async () => {
        const now = await toldOf(account);
        return has(now.topic) && has(now.webhook) ? now : undefined;
      });
      return { log, ...got };
    }

    test('an account that is registered is polled, and topic, endpoint and feed tell its baseline', async () => {
      await operate({
        do: 'endpoints.add',
        endpoint: { id: 'erp', url: `https://${WEBHOOK_HOST}/jobs`, secret: receiver.secret },
      });
      (await register('acme')).createJob({ status: 'Scheduled' });
      const log = await grown('acme', 0, ['account.baselined']);
      expect(log.map(({ type }) => type)).toEqual(['account.baselined']);
      expect(await delivered('acme')).toEqual({ log, topic: log, webhook: log });
      expect(receiver.refused).toEqual([]);
    }, 60_000);

    test('a job that moves and is dispatched is told everywhere: in order, each event once, by the same id', async () => {
      const upstream = present(accounts.get('acme'));
      const [job = 0] = upstream.activeJobNumbers();
      upstream.dispatch(job, { status: 'Dispatched' });
      const before = (await feedOf('acme')).length;
      const fresh = await grown('acme', before, ['job.status_changed', 'job.dispatched']);
      expect(fresh.map(({ type }) => type).sort()).toEqual(
        expect.arrayContaining(['job.dispatched', 'job.status_changed']),
      );
      const { log, topic, webhook } = await delivered('acme');
      expect(log.map(({ sequence }) => sequence)).toEqual(log.map((_, at) => at + 1));
      expect(topic).toEqual(log);
      expect(webhook).toEqual(log);
      expect(receiver.refused).toEqual([]);
    }, 60_000);

    test('without the key the API tells nothing; what is open to everybody is answered', async () => {
      const answers = await Promise.all(
        ['/v1/accounts/acme/events', '/v1/accounts/acme/events/stream', '/healthz'].map((path) =>
          fetch(`${cell.apiUrl}${path}`).then(({ status }) => status),
        ),
      );
      expect(answers).toEqual([401, 401, 200]);
    });

    test('a live stream tells an event as it is committed', async () => {
      const upstream = present(accounts.get('acme'));
      const stream = api.stream('/v1/accounts/acme/events/stream');
      const before = await feedOf('acme');
      upstream.createJob();
      const first = stream.next();
      const fresh = await grown('acme', before.length, ['job.created']);
      expect((await first).value).toEqual(fresh[0]);
      await stream.return(undefined);
    }, 60_000);
  });
}

async function apiKey(cell: Deployment): Promise<string> {
  const client = new SecretsManagerClient(cell.aws);
  const SecretId = `jobwire/${cell.stage}/${cell.region}/api-key`;
  const { SecretString = '' } = await client.send(new GetSecretValueCommand({ SecretId }));
  client.destroy();
  return SecretString;
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
  if (value === undefined) throw new Error('What an earlier test makes is not there.');
  return value;
}
