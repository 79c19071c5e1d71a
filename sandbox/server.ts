// The sandbox: all regions as path prefixes of one app, in process or over HTTP.

import type { Server } from 'node:http';
import { createAdaptorServer } from '@hono/node-server';
import { Hono } from 'hono';
import { getPath } from 'hono/utils/url';
import { close, listen } from '../shared/http-server.ts';
import { createAdminApp } from './admin.ts';
import { createRegionApp, sendOpenApiDocument } from './app.ts';
import { type FaultRule, FaultRules } from './http/faults.ts';
import { ContractFreedom, type FreedomSettings } from './http/freedom.ts';
import { answerMissing, answerUnexpected, type SandboxEnv } from './http/responses.ts';
import { TokenStore } from './http/tokens.ts';
import { type RequestHook, RequestLog } from './http/traffic.ts';
import { createFilesApp } from './operations/files.ts';
import type { Service } from './service.ts';
import type { SandboxClock } from './simulation/clock.ts';
import { ChangeScheduler, type ScheduledChange } from './simulation/scheduled-changes.ts';
import { REGIONS, type RegionCode } from './world/regions.ts';
import type { SandboxAccount, World } from './world/world.ts';

/** Options of a sandbox. */
export interface SandboxOptions {
  world: World;
  /** Default: 0, any free port. */
  port?: number;
  /** Port of the control panel. Default: the one after `port`, or any free port if `port` is 0. */
  adminPort?: number;
  /** Loopback by default. */
  host?: string;
  /** Rules that are active from the start. */
  faults?: FaultRule[];
  /** Behaviour where the contract leaves it open: see `http/freedom.ts`. */
  freedom?: FreedomSettings;
  /** Scenario that advances jobs: it catches up with the world's clock before each request, and includes ordered jobs. */
  scenario?: {
    advanceTo(instantMs: number): void;
    adopt?(account: SandboxAccount, jobNumber: number): void;
    stop?(): void;
    /** Maximum number of seconds by which the control panel advances the clock. Default: a month. */
    readonly longestAdvanceSeconds?: number;
  };
  /** Scheduled changes, relative to the world's current time. */
  scheduledChanges?: readonly ScheduledChange[];
  onRequest?: RequestHook;
  /** The world's clock, if the control panel may advance it. While it runs, jobs change every second, even without requests. */
  clock?: SandboxClock;
  /** 600 by default, by the world's clock. */
  tokenLifetimeSeconds?: number;
}

/** A sandbox without a server: an app that is called as a function. */
export interface SandboxApp extends Omit<Service, 'tokens' | 'ordered'> {
  /** Revokes the tokens of a region, of an account (by name), or all; returns their number. */
  revokeTokens(which?: { region?: RegionCode; account?: string }): number;
  /** Answers one request. Connection faults throw without `env.outgoing`. */
  fetch(request: Request, env?: SandboxEnv['Bindings']): Response | Promise<Response>;
}

/** A running sandbox. */
export interface Sandbox extends SandboxApp, AsyncDisposable {
  /** Such as `http://127.0.0.1:4010`. */
  readonly url: string;
  /** The control panel's address; see `admin.ts`. */
  readonly adminUrl: string;
  /** The API host of a region, the prefix of paths such as `/Jobs/active`. */
  apiUrl(region: RegionCode): string;
  /** The auth host of a region, to which `/realms/<region>/…` is appended. The realm is named like the region. */
  authUrl(region: RegionCode): string;
  /** Ends the server at once, open connections included. Safe to call twice. */
  stop(): Promise<void>;
}

/** The port is already in use. */
export class PortTakenError extends Error {
  readonly port: number;

  constructor(port: number, options?: ErrorOptions) {
    super(`Port ${port} is already in use.`, options);
    this.name = 'PortTakenError';
    this.port = port;
  }
}

/**
 * Creates a sandbox without a listener: `/<region>/api`, `/<region>/auth`, files at `/files` and the OpenAPI document at
 * `/openapi.json`.
 */
export function createSandbox(options: Omit<SandboxOptions, 'port' | 'adminPort' | 'host'>): SandboxApp {
  return toSandboxApp(createService(options));
}

/**
 * Starts a sandbox as an HTTP server, with its control panel on a second port. Throws PortTakenError if a port is in use,
 * UnknownAccountError if a scheduled change names an unknown account, and other errors of listening.
 */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const { port = 0, adminPort = port === 0 ? 0 : port + 1, host = '127.0.0.1' } = options;
  const service = createService(options);
  const sandbox = toSandboxApp(service);
  const listening: Server[] = [];
  const { clock, scenario, world } = options;
  // Otherwise the first request after a pause would wait for all moves of the pause.
  const advance = (): void => {
    try {
      service.scheduler.advanceTo(world.now());
    } catch (error) {
      console.error('Sandbox: a planned change failed:', error);
    }
  };
  const timer = clock && !clock.stopped ? setInterval(advance, 1000).unref() : undefined;
  const stop = async (): Promise<void> => {
    clearInterval(timer);
    scenario?.stop?.();
    await Promise.all(listening.map(close));
  };
  const serve = async (app: Pick<SandboxApp, 'fetch'>, at: number): Promise<string> => {
    const server = createAdaptorServer({
      // The adapter types its environment for HTTP/2 as well; this server speaks HTTP/1.1 only.
      fetch: (request, env) => app.fetch(request, env as SandboxEnv['Bindings']),
      overrideGlobalObjects: false,
    }) as Server;
    const bound = await listen(server, at, host).catch((error: NodeJS.ErrnoException) => {
      throw error.code === 'EADDRINUSE' ? new PortTakenError(at, { cause: error }) : error;
    });
    listening.push(server);
    return bound;
  };
  let url: string;
  let adminUrl: string;
  try {
    url = await serve(sandbox, port);
    world.filesUrl = `${url}/files`;
    adminUrl = await serve(createAdminApp(service, clock, scenario?.longestAdvanceSeconds), adminPort);
  } catch (error) {
    await stop();
    throw error;
  }
  return Object.assign(sandbox, {
    url,
    adminUrl,
    apiUrl: (region: RegionCode) => `${url}/${region}/api`,
    authUrl: (region: RegionCode) => `${url}/${region}/auth`,
    stop,
    [Symbol.asyncDispose]: stop,
  });
}

function createService(options: Omit<SandboxOptions, 'port' | 'adminPort' | 'host'>): Service {
  const { world, scenario } = options;
  const tokens = new TokenStore(world, options.tokenLifetimeSeconds);
  const faults = new FaultRules();
  const scheduler = new ChangeScheduler({ world, tokens, faults, scenario });
  const freedom = new ContractFreedom(world);
  for (const rule of options.faults ?? []) faults.add(rule);
  if (options.freedom) freedom.set(options.freedom);
  for (const change of options.scheduledChanges ?? []) scheduler.plan(change, world.now());
  return {
    world,
    tokens,
    faults,
    freedom,
    scheduler,
    requests: new RequestLog(),
    onRequest: options.onRequest,
    ordered: scenario?.adopt && ((account, jobNumber) => scenario.adopt?.(account, jobNumber)),
  };
}

function toSandboxApp(service: Service): SandboxApp {
  const regionApps = new Map<RegionCode, Hono<SandboxEnv>>();
  /** The app of a region. Created on first use: most callers use few regions. */
  const regionApp = (region: RegionCode): Hono<SandboxEnv> => {
    const app = regionApps.get(region) ?? createRegionApp(service, region);
    regionApps.set(region, app);
    return app;
  };
  const app = new Hono<SandboxEnv>();
  app.route('/files', createFilesApp(service.world));
  app.get('/openapi.json', (c) => sendOpenApiDocument(c));
  app.onError(answerUnexpected);
  app.notFound(answerMissing);
  return Object.assign(service, {
    revokeTokens: (which?: Parameters<TokenStore['revoke']>[0]) => service.tokens.revoke(which),
    fetch: (request: Request, env?: SandboxEnv['Bindings']) => {
      const path = getPath(request);
      const region = REGIONS.find((code) => path.startsWith(`/${code}/`));
      return (region === undefined ? app : regionApp(region)).fetch(request, env);
    },
  });
}
