/**
 * The demo: a sandbox of the ordering API whose jobs change by themselves, a receiver that verifies signatures, and a mailbox that
 * catches the accounts' notifications.
 */
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { Webhook } from 'standardwebhooks';
import { startSandbox } from '../sandbox/server.ts';
import {
  addDemoAccounts,
  createScenario,
  type Scenario,
  type ScenarioOptions,
} from '../sandbox/simulation/scenario.ts';
import { CANCELLED_SHARE } from '../sandbox/simulation/simulation.ts';
import { createWorld, type World } from '../sandbox/world/world.ts';
import type { Config } from '../shared/config.ts';
import { close, listen } from '../shared/http-server.ts';
import type { HostOptions } from './host-options.ts';
import { type Caught, type Mailbox, startMailbox } from './mailbox.ts';

/** Parts of the demo besides Jobwire itself. */
export interface Demo {
  readonly config: Config;
  /** Shorter times than in production, so that cancellations, late tracking, retries and messages appear within a minute. */
  readonly host: Pick<HostOptions, 'settings' | 'tickMs' | 'noticeGraceMs' | 'smsCredentials'>;
  readonly sandboxUrl: string;
  /** URL of the sandbox's control panel. */
  readonly sandboxAdminUrl: string;
  readonly receiver: Receiver;
  readonly mailbox: Mailbox;
  stop(): Promise<void>;
}

/** A webhook receiver that counts verified deliveries. */
export interface Receiver {
  readonly url: string;
  readonly verified: number;
  readonly rejected: number;
  stop(): Promise<void>;
}

/** Acceleration of the simulated jobs: about three days in half an hour, two events per second in total. */
const SPEED = 120;

/**
 * Creates the scenario of the demo's jobs. They are accelerated, but the number of cancellations per day is not. Jobwire runs on the real clock,
 * where more than ten cancellations a day look like an upstream failure and quarantine the account.
 */
export function createDemoScenario(
  world: World,
  options: Pick<ScenarioOptions, 'seed' | 'startAt' | 'onEvent'>,
): Scenario {
  return createScenario({ ...options, world, speed: SPEED, cancelledShare: CANCELLED_SHARE / SPEED });
}

/** Starts sandbox, receiver and mailbox, and returns the configuration that tracks every account of the sandbox. */
export async function startDemo(base: {
  readonly port: number;
  readonly host: string;
  /** Base URL of the HTTP API. The mailbox is below it. */
  readonly url: string;
  readonly seed: number;
  readonly onCaught: (caught: Caught) => void;
}): Promise<Demo> {
  const startedAt = Date.now();
  // The clock runs at normal speed for the tracker. Only the simulated jobs are accelerated.
  const world = createWorld({ now: Date.now });
  const accounts = addDemoAccounts(world, 1);
  const scenario = createDemoScenario(world, { seed: base.seed, startAt: startedAt });
  const sandbox = await startSandbox({ world, scenario });
  const secret = `whsec_${randomBytes(32).toString('base64')}`;
  const [receiver, mailbox] = await Promise.all([
    startReceiver(secret),
    startMailbox({ publicUrl: base.url, onCaught: base.onCaught }),
  ]);
  const config: Config = {
    port: base.port,
    host: base.host,
    dataDir: '',
    publicUrl: base.url,
    notifications: {
      from: 'orders@jobwire.example',
      smtp: { ...mailbox.smtp, secure: false },
      sms: { awsRegion: 'us-east-1', endpoint: `${base.url}/mailbox/sns` },
    },
    sns: true,
    streamsPerKey: 100,
    corsOrigins: [],
    regions: Object.fromEntries(
      [...new Set(accounts.map(({ region }) => region))].map((region) => [
        region,
        { baseUrl: sandbox.apiUrl(region), authUrl: sandbox.authUrl(region), realm: region },
      ]),
    ),
    accounts: accounts.map(({ region, name, clientId, clientSecret }) => ({
      id: toAccountId(name),
      region,
      clientId,
      clientSecret,
      pollIntervalSeconds: 2,
    })),
    endpoints: [{ id: 'demo-receiver', url: receiver.url, secret }],
    webhooks: { allowPrivateNetworks: true, retrySeconds: [1, 2, 5, 10], disableAfterDays: 5 },
    departures: { confirmAfterSeconds: 6 },
    settling: { scheduleSeconds: [3, 5, 10, 20], days: 0.002 },
  };
  return {
    config,
    host: {
      settings: { sweepSeconds: 10 },
      tickMs: 250,
      noticeGraceMs: 1_000,
      // The mailbox's SNS accepts any credentials. The SDK requires some.
      smsCredentials: { accessKeyId: 'demo', secretAccessKey: 'demo' },
    },
    sandboxUrl: sandbox.url,
    sandboxAdminUrl: sandbox.adminUrl,
    receiver,
    mailbox,
    async stop() {
      await Promise.all([sandbox.stop(), receiver.stop(), mailbox.stop()]);
    },
  };
}

/** Converts a customer's name to an account id. */
function toAccountId(name: string): string {
  const letters = name.normalize('NFD').replace(/\p{Diacritic}/gu, '');
  return letters.toLowerCase().replace(/[^a-z0-9]+/g, '-');
}

/** Starts a receiver on loopback: 204 for a request with a valid signature, 400 for any other. */
async function startReceiver(secret: string): Promise<Receiver> {
  const webhook = new Webhook(secret);
  let verified = 0;
  let rejected = 0;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      try {
        webhook.verify(Buffer.concat(chunks), request.headers as Record<string, string>);
        verified += 1;
        response.writeHead(204).end();
      } catch {
        rejected += 1;
        response.writeHead(400).end();
      }
    });
  });
  const url = await listen(server);
  return {
    url: `${url}/webhooks`,
    get verified() {
      return verified;
    },
    get rejected() {
      return rejected;
    },
    stop: () => close(server),
  };
}
