/**
 * A hostile or broken upstream API. A penetration test found that 10 MB of nested brackets stalled the polls of all regions,
 * and kept the process, and its port, after SIGTERM.
 */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as z from 'zod';
import type { SandboxAccount } from '../../sandbox/world/world.ts';
import { type Exchanged, readJson } from '../../shared/ordering/exchange.ts';
import {
  builtProgram,
  configFor,
  type End,
  type Jobwire,
  startJobwire,
  startSandbox,
  writeConfig,
} from '../support/jobwire.ts';

const MEGABYTE = 1024 * 1024;
const BRACKETS = '['.repeat(5 * MEGABYTE) + ']'.repeat(5 * MEGABYTE);
const ENTRIES = `{"items":[${'{},'.repeat(3 * MEGABYTE)}{}]}`;

const read = (text: string) => {
  const answer: Exchanged = { status: 200, headers: new Headers(), text, requestedAt: 0, respondedAt: 0 };
  return readJson('GET /x', answer, z.unknown());
};

test.each([
  ['brackets', '['.repeat(100_000) + ']'.repeat(100_000)],
  ['objects', '{"a":'.repeat(100_000)],
  ['brackets behind a string with quotes', `["\\\\\\"[",${'['.repeat(200_000)}`],
  ['values', `[${'0,'.repeat(100_000)}0]`],
])('an answer of too many %s is rejected before it is parsed', (_, text) => {
  expect(() => read(text)).toThrow('more than 100000 values');
});

test('brackets and commas within strings are accepted', () => {
  const body = { text: '[{'.repeat(100_000), quoted: `\\"${','.repeat(200_000)}`, deep: [[[['x']]]] };
  expect(read(JSON.stringify(body))).toEqual(body);
});

const attacks: readonly [string, (response: ServerResponse) => void][] = [
  ['nested brackets', (response) => void json(response).end(BRACKETS)],
  ['a page of millions of entries', (response) => void json(response).end(ENTRIES)],
  [
    'a small answer that is large when it is decompressed',
    (response) =>
      void json(response, { 'content-encoding': 'gzip' }).end(gzipSync(' '.repeat(50 * MEGABYTE))),
  ],
  [
    'an answer that never ends',
    (response) => {
      json(response).write('{"items":[');
      const more = setInterval(() => response.write('{},'), 10);
      response.once('close', () => clearInterval(more));
    },
  ],
  ['a rejection with nested brackets', (response) => void json(response, {}, 500).end(BRACKETS)],
];

function json(response: ServerResponse, headers: Record<string, string> = {}, status = 200): ServerResponse {
  return response.writeHead(status, { 'content-type': 'application/json', ...headers });
}

describe('a Jobwire with a region for each attack, and one healthy region', () => {
  const stops: (() => void | Promise<void>)[] = [];
  const end: End = (stop) => stops.unshift(stop);
  const attacked = attacks.map(() => 0);
  let good: SandboxAccount;
  let jobwire: Jobwire;

  beforeAll(async () => {
    const { sandbox, world } = await startSandbox({}, end);
    good = world.addAccount({ region: 'us', name: 'good' });
    const { regions, accounts } = configFor(sandbox, [good]);
    for (const [at, [, attack]] of attacks.entries()) {
      const hostile = createServer((_request, response) => {
        attacked[at] = (attacked[at] ?? 0) + 1;
        attack(response);
      });
      hostile.listen(0, '127.0.0.1');
      await once(hostile, 'listening');
      end(() => {
        hostile.closeAllConnections();
        hostile.close();
      });
      const bad = configFor(sandbox, [world.addAccount({ region: 'nz', name: `bad${at}` })]);
      const baseUrl = `http://127.0.0.1:${(hostile.address() as AddressInfo).port}`;
      regions[`region${at}`] = { ...(bad.regions.nz as (typeof bad.regions)[string]), baseUrl };
      accounts.push(...bad.accounts.map((account) => ({ ...account, region: `region${at}` as 'nz' })));
    }
    const file = writeConfig({ port: 0, regions, accounts }, end);
    jobwire = await startJobwire(['--config', file], { command: builtProgram(), end });
    await jobwire.printed(/us\/good +account\.baselined/);
  });
  afterAll(async () => {
    for (const stop of stops) await stop();
  });

  test.each(attacks.map(([name], at) => [name, at] as const))('is attacked with %s', async (_, at) => {
    await expect.poll(() => attacked[at], { timeout: 30_000 }).toBeGreaterThan(0);
  });

  test('polls the healthy region continuously, and answers requests', async () => {
    good.createJob({});
    await jobwire.printed(/us\/good +\d+ +job\.created/);
    expect((await fetch(`${jobwire.url}/healthz`)).status).toBe(200);
  });

  test('ends on SIGTERM', async () => {
    jobwire.child.kill('SIGTERM');
    expect((await jobwire.ended).code).toBe(0);
  });
});
