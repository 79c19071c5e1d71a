/**
 * The other side of the smoke test: an ordering API with one account, and a receiver of webhooks. It keeps no state, so that
 * every instance answers the same: the jobs follow from the seed and the time, and the access token is the client secret.
 */
import { timingSafeEqual } from 'node:crypto';
import { Hono } from 'hono';
import { createSandbox } from '../../sandbox/server.ts';
import { createScenario } from '../../sandbox/simulation/scenario.ts';
import type { RegionCode } from '../../sandbox/world/regions.ts';
import { createWorld } from '../../sandbox/world/world.ts';

/** The client id of the account. */
export const SMOKE_CLIENT = 'jobwire-smoke';
/** Path that receives webhooks. */
export const SMOKE_HOOK = 'hook';
/** Seconds of a job's life per second. At this speed, the status of some job changes every few seconds. */
const SPEED = 120;
const JOBS = 20;

/** A webhook as it arrived: what its signature is verified with. */
export interface SmokeWebhook {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

interface Options {
  readonly region: RegionCode;
  /** SHA-256 of the client secret, in hexadecimal. Without the secret, every request gets 401. */
  readonly secretHash: string;
  /** Start of the jobs' history (epoch ms), the same in every instance. */
  readonly startedAt: number;
  readonly now: () => number;
  /** Stores a webhook before it is acknowledged. */
  readonly keep: (webhook: SmokeWebhook) => Promise<void>;
}

/** Creates the app: `/<region>/api` and `/<region>/auth` as in the sandbox, and `/hook`. */
export function createSmokeSandbox({ region, secretHash, startedAt, now, keep }: Options): Hono {
  let started = false;
  const world = createWorld({ now: () => (started ? now() : startedAt) });
  // The credentials within the process; clients prove their secret by its hash.
  const account = world.addAccount({ region, name: 'Smoke test', clientId: SMOKE_CLIENT });
  const scenario = createScenario({
    world,
    startAt: startedAt,
    speed: SPEED,
    jobsPerAccount: JOBS,
    opening: false,
  });
  const sandbox = createSandbox({ world, scenario });
  started = true;

  const isSecret = async (given: string) => {
    const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(given));
    return timingSafeEqual(Buffer.from(digest), Buffer.from(secretHash, 'hex'));
  };
  const tokenPath = `/${region}/auth/realms/${region}/protocol/openid-connect/token`;
  const requestToken = async () => {
    const body = new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: account.clientId,
      client_secret: account.clientSecret,
    });
    const response = await sandbox.fetch(new Request(`http://sandbox${tokenPath}`, { method: 'POST', body }));
    return (await response.json()) as { access_token: string };
  };

  const app = new Hono();
  app.post(tokenPath, async (c) => {
    const given = await c.req.parseBody();
    const secret = String(given.client_secret);
    if (given.client_id !== SMOKE_CLIENT || !(await isSecret(secret))) {
      return c.json({ error: 'invalid_client' }, 401);
    }
    return c.json({ ...(await requestToken()), access_token: secret });
  });
  app.use(async (c, next) => {
    const bearer = /^Bearer (.+)$/.exec(c.req.header('authorization') ?? '')?.[1];
    return bearer !== undefined && (await isSecret(bearer)) ? next() : c.body(null, 401);
  });
  app.post(`/${SMOKE_HOOK}`, async (c) => {
    const headers = Object.entries(c.req.header()).filter(([name]) => name.startsWith('webhook-'));
    await keep({ headers: Object.fromEntries(headers), body: await c.req.text() });
    return c.body(null, 204);
  });
  app.all('*', async (c) => {
    const request = new Request(c.req.raw);
    request.headers.set('authorization', `Bearer ${(await requestToken()).access_token}`);
    return sandbox.fetch(request);
  });
  return app;
}
