// The sandbox: all regions as path prefixes of one app, called as a function or over HTTP.

import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import { Hono } from 'hono';
import { createAdminApp } from './admin.ts';
import { problem, type SandboxEnv, send } from './answers.ts';
import { createRegionApp, type Service, TokenBook } from './app.ts';
import { FaultBook, type FaultRule } from './faults.ts';
import { REGIONS, type RegionCode } from './regions.ts';
import { type RequestHook, RequestLog } from './traffic.ts';
import type { World } from './world.ts';

/** What a sandbox is started with. */
export interface SandboxOptions {
  world: World;
  /** 0, the default, takes any free port. */
  port?: number;
  /** Loopback by default. */
  host?: string;
  /** Rules in force from the start. */
  faults?: FaultRule[];
  /** Jobs that live by themselves: brought up to the world's clock before each request. */
  scenario?: { advanceTo(instantMs: number): void };
  onRequest?: RequestHook;
  /** 600 by default, by the world's clock. */
  tokenLifetimeSeconds?: number;
}

/** A sandbox without a server: its app is called as a function. */
export interface SandboxApp {
  readonly world: World;
  readonly faults: FaultBook;
  readonly requests: RequestLog;
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

/** Makes a sandbox that does not listen: `/<region>/api`, `/<region>/auth` and the control panel at `/_admin`. */
export function createSandbox(options: Omit<SandboxOptions, 'port' | 'host'>): SandboxApp {
  const { world, scenario } = options;
  const service: Service = {
    world,
    tokens: new TokenBook(world, options.tokenLifetimeSeconds),
    faults: new FaultBook(),
    requests: new RequestLog(),
    onRequest: options.onRequest,
    advance: scenario && ((now) => scenario.advanceTo(now)),
  };
  for (const rule of options.faults ?? []) service.faults.add(rule);

  const app = new Hono<SandboxEnv>();
  for (const region of REGIONS) app.route(`/${region}`, createRegionApp(service, region));
  app.route('/_admin', createAdminApp(service));
  app.notFound((c) => send(c, problem(404, 'There is no such resource.', c.req.path)));

  return {
    world,
    faults: service.faults,
    requests: service.requests,
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

/**
 * Starts a sandbox as an HTTP server. Throws PortTakenError when the port is taken, and whatever else listening fails
 * with.
 */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const { port = 0, host = '127.0.0.1' } = options;
  const sandbox = createSandbox(options);
  const server = createAdaptorServer({
    // The adapter types its environment for HTTP/2 as well; this server speaks HTTP/1.1 only.
    fetch: (request, env) => sandbox.fetch(request, env as SandboxEnv['Bindings']),
    overrideGlobalObjects: false,
  }) as Server;
  await listen(server, port, host);
  const { address, port: bound, family } = server.address() as AddressInfo;
  const url = `http://${family === 'IPv6' ? `[${address}]` : address}:${bound}`;

  const stop = (): Promise<void> =>
    new Promise((resolve) => {
      // Also called back when the server is closed already.
      server.close(() => resolve());
      server.closeAllConnections();
    });

  return Object.assign(sandbox, {
    url,
    apiUrl: (region: RegionCode) => `${url}/${region}/api`,
    authUrl: (region: RegionCode) => `${url}/${region}/auth`,
    stop,
    [Symbol.asyncDispose]: stop,
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
