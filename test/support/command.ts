/** Programs as processes, and an API with configurable responses. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The environment without the variables of npm and of the CLI. */
export const cleanEnv: Record<string, string | undefined> = Object.fromEntries(
  Object.entries(process.env).filter(
    ([name]) => !/^(npm_|JOBWIRE_|NO_COLOR|FORCE_COLOR|NODE_OPTIONS)/i.test(name),
  ),
);

/** Whether `script` can run a program on a pseudo-terminal. */
export function hasScript(): boolean {
  try {
    execFileSync('script', ['-qec', 'true', '/dev/null'], { stdio: 'ignore' });
    return process.platform === 'linux';
  } catch {
    return false;
  }
}

/** A running program. */
export interface Running {
  readonly child: ChildProcess;
  readonly out: () => string;
  readonly err: () => string;
  readonly ended: Promise<{ code: number | null; out: string; err: string }>;
  /** Resolves when the output on either stream matches. */
  printed(pattern: RegExp): Promise<string>;
}

/** Starts a program. `input`: its stdin, which is then closed. */
export function launch(
  command: readonly string[],
  options: { env?: Record<string, string | undefined>; input?: string; cwd?: string } = {},
): Running {
  const [program = '', ...args] = command;
  const child = spawn(program, args, {
    env: { ...cleanEnv, ...options.env },
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  child.stdin.on('error', () => {});
  child.stdin.end(options.input ?? '');
  let out = '';
  let err = '';
  const listeners = new Set<() => void>();
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text;
    for (const look of listeners) look();
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    err += text;
    for (const look of listeners) look();
  });
  const ended = once(child, 'close').then(([code]) => ({ code: code as number | null, out, err }));
  return {
    child,
    out: () => out,
    err: () => err,
    ended,
    printed: (pattern) =>
      new Promise((done, fail) => {
        const look = (): void => {
          const found = pattern.exec(out) ?? pattern.exec(err);
          if (!found) return;
          listeners.delete(look);
          done(found[1] ?? found[0]);
        };
        listeners.add(look);
        look();
        void ended.then(() => {
          look();
          fail(new Error(`It ended without ${pattern}:\n${out}\n${err}`));
        });
      }),
  };
}

/** Returns the ids of the child processes of a process, at any depth. */
export async function listChildren(pid: number): Promise<number[]> {
  const list = spawn('ps', ['-e', '-o', 'pid=,ppid='], { stdio: ['ignore', 'pipe', 'ignore'] });
  let text = '';
  list.stdout.on('data', (chunk: Buffer) => {
    text += chunk;
  });
  await once(list, 'close');
  const pairs = text
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number));
  const below = (parent: number): number[] =>
    pairs.flatMap(([child, of]) => (of === parent && child !== undefined ? [child, ...below(child)] : []));
  return below(pid);
}

/** Returns whether a process runs. A zombie process does not count. */
export function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

/** A request that a fake API received. */
export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly query: Record<string, string>;
  readonly headers: IncomingMessage['headers'];
  readonly body: unknown;
}

/**
 * Response of a fake API: a document with status 200, or the given status, headers and body. A function writes the rest itself.
 */
export type Answer =
  | { readonly status?: number; readonly json?: unknown; readonly headers?: Record<string, string> }
  | { readonly write: (response: ServerResponse) => void };

/** An HTTP server on loopback with configurable responses. It records its requests. */
export async function fakeApi(routes: Record<string, Answer | ((asked: Asked) => Answer)>) {
  const asked: Asked[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const url = new URL(request.url ?? '/', 'http://fake');
      const text = Buffer.concat(chunks).toString();
      const one: Asked = {
        method: request.method ?? '',
        path: url.pathname,
        query: Object.fromEntries(url.searchParams),
        headers: request.headers,
        body: text === '' ? undefined : JSON.parse(text),
      };
      asked.push(one);
      const missing = problem(404, 'not-found', 'There is no such resource.');
      const route = routes[`${one.method} ${one.path}`] ?? missing;
      const answer = typeof route === 'function' ? route(one) : route;
      if ('write' in answer) {
        answer.write(response);
        return;
      }
      response.writeHead(answer.status ?? 200, {
        'content-type': 'application/json',
        'x-request-id': 'request-77',
        ...answer.headers,
      });
      response.end(answer.json === undefined ? '' : JSON.stringify(answer.json));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    asked,
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Server-sent events, written piece by piece. The stream is then closed (`end`), aborted (`cut`), or left open. */
export function stream(pieces: readonly string[], then: 'end' | 'cut' | 'open'): Answer {
  return {
    write(response) {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(pieces.join(''), () => {
        if (then === 'end') response.end();
        if (then === 'cut') response.socket?.resetAndDestroy();
      });
    },
  };
}

/** A problem document of the API. */
export function problem(status: number, kind: string, detail: string, members: object = {}): Answer {
  const json = { type: `urn:jobwire:problem:${kind}`, title: kind, status, detail, ...members };
  return { status, json, headers: { 'content-type': 'application/problem+json' } };
}
