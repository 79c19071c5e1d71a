// The sandbox: all regions as path prefixes of one app, called as a function or over HTTP.

import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import { Hono } from 'hono';
import { createAdminApp } from './admin.ts';
import { createRegionApp, describeIn } from './app.ts';
import { FaultBook, type FaultRule } from './http/faults.ts';
import { answerUnexpected, pathOf, problem, type SandboxEnv, send } from './http/responses.ts';
import { TokenBook } from './http/tokens.ts';
import { type RequestHook, RequestLog } from './http/traffic.ts';
import { createFilesApp } from './operations/files.ts';
import type { Service } from './service.ts';
import type { SandboxClock } from './simulation/clock.ts';
import { Agenda, type Happening } from './simulation/event-schemas.ts';
import { REGIONS, type RegionCode } from './world/regions.ts';
import type { SandboxAccount, World } from './world/world.ts';

/** What a sandbox is started with. */
export interface SandboxOptions {
  world: World;
  /** 0, the default, takes any free port. */
  port?: number;
  /** The control panel's; by default the one after `port`, or any free one when that is 0. */
  adminPort?: number;
  /** Loopback by default. */
  host?: string;
  /** Rules in force from the start. */
  faults?: FaultRule[];
  /** Jobs that live by themselves: brought up to the world's clock before each request, and those that are ordered join. */
  scenario?: {
    advanceTo(instantMs: number): void;
    adopt?(account: SandboxAccount, jobNumber: number): void;
    stop?(): void;
    /** By so many seconds the control panel sets the clock forward at most; a month by default. */
    readonly longestAdvanceSeconds?: number;
  };
  /** What happens to the service; counted from the world's present instant. */
  happenings?: readonly Happening[];
  onRequest?: RequestHook;
  /** The world's clock when the control panel may set it forward. */
  clock?: SandboxClock;
  /** 600 by default, by the world's clock. */
  tokenLifetimeSeconds?: number;
}

/** A sandbox without a server: its app is called as a function. */
export interface SandboxApp {
  readonly world: World;
  readonly faults: FaultBook;
  readonly requests: RequestLog;
  /** What is to happen to the service. */
  readonly agenda: Agenda;
  /** Called before each answer is made up; may be replaced at any time. */
  onRequest: RequestHook | undefined;
  /** Forgets the tokens of a region, of an account (by name), or all; returns how many there were. */
  revokeTokens(which?: { region?: RegionCode; account?: string }): number;
  /** Answers one request. Without `env.outgoing` (the answer as it goes out) faults of the connection throw. */
  fetch(request: Request, env?: SandboxEnv['Bindings']): Response | Promise<Response>;
}

/** A running sandbox. */
export interface Sandbox extends SandboxApp, AsyncDisposable {
  /** Such as `http://127.0.0.1:4010`. */
  readonly url: string;
  /** The control panel's address; see `admin.ts`. */
  readonly adminUrl: string;
  /** The API host of a region, to which paths such as `/Jobs/active` are appended. */
  apiUrl(region: RegionCode): string;
  /** The auth host of a region, to which `/realms/<region>/…` is appended. The realm is named like the region. */
  authUrl(region: RegionCode): string;
  /** Ends the server at once, open connections included. Safe to call twice. */
  stop(): Promise<void>;
}

/** The port is taken. */
export class PortTakenError extends Error {
  readonly port: number;

  constructor(port: number, options?: ErrorOptions) {
    super(`Port ${port} is already in use.`, options);
    this.name = 'PortTakenError';
    this.port = port;
  }
}

/**
 * Makes a sandbox that does not listen: `/<region>/api`, `/<region>/auth`, files at `/files` and a description of it all at
 * `/openapi.json`.
 */
export function createSandbox(options: Omit<SandboxOptions, 'port' | 'adminPort' | 'host'>): SandboxApp {
  return sandboxOf(serviceOf(options));
}

/**
 * Starts a sandbox as an HTTP server, with its control panel on a port beside it. Throws PortTakenError when a port is taken,
 * UnknownAccountError when a happening names an account that is not there, and whatever else listening fails with.
 */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const { port = 0, adminPort = port === 0 ? 0 : port + 1, host = '127.0.0.1' } = options;
  const service = serviceOf(options);
  const sandbox = sandboxOf(service);
  const listening: Server[] = [];
  const stop = async (): Promise<void> => {
    options.scenario?.stop?.();
    await Promise.all(listening.map(close));
  };
  const serve = async (app: Pick<SandboxApp, 'fetch'>, at: number): Promise<string> => {
    const server = createAdaptorServer({
      // The adapter types its environment for HTTP/2 as well; this server speaks HTTP/1.1 only.
      fetch: (request, env) => app.fetch(request, env as SandboxEnv['Bindings']),
      overrideGlobalObjects: false,
    }) as Server;
    await listen(server, at, host);
    listening.push(server);
    const { address, port: bound, family } = server.address() as AddressInfo;
    return `http://${family === 'IPv6' ? `[${address}]` : address}:${bound}`;
  };
  let url: string;
  let adminUrl: string;
  try {
    url = await serve(sandbox, port);
    options.world.filesUrl = `${url}/files`;
    adminUrl = await serve(
      createAdminApp(service, options.clock, options.scenario?.longestAdvanceSeconds),
      adminPort,
    );
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

function serviceOf(options: Omit<SandboxOptions, 'port' | 'adminPort' | 'host'>): Service {
  const { world, scenario } = options;
  const tokens = new TokenBook(world, options.tokenLifetimeSeconds);
  const faults = new FaultBook();
  const agenda = new Agenda({ world, tokens, faults, scenario });
  for (const rule of options.faults ?? []) faults.add(rule);
  for (const happening of options.happenings ?? []) agenda.plan(happening, world.now());
  return {
    world,
    tokens,
    faults,
    agenda,
    requests: new RequestLog(),
    onRequest: options.onRequest,
    ordered: scenario?.adopt && ((account, jobNumber) => scenario.adopt?.(account, jobNumber)),
  };
}

function sandboxOf(service: Service): SandboxApp {
  const app = new Hono<SandboxEnv>();
  for (const region of REGIONS) app.route(`/${region}`, createRegionApp(service, region));
  app.route('/files', createFilesApp(service.world));
  app.get('/openapi.json', (c) => describeIn(c));
  app.onError(answerUnexpected);
  app.notFound((c) => send(c, problem(404, 'There is no such resource.', pathOf(c))));
  const { world, faults, requests, agenda } = service;
  return {
    world,
    faults,
    requests,
    agenda,
    get onRequest() {
      return service.onRequest;
    },
    set onRequest(hook) {
      service.onRequest = hook;
    },
    revokeTokens: (which) => service.tokens.revoke(which),
    fetch: (request, env) => app.fetch(request, env),
  };
}

/** Ends a server at once, open connections included. */
function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    // Also called back when the server is closed already.
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(error.code === 'EADDRINUSE' ? new PortTakenError(port, { cause: error }) : error),
    );
    server.listen(port, host, resolve);
  });
}
