/** A child process: a bare Hono handler that sends pages read from the sandbox, byte for byte. */
import type { Server } from 'node:http';
import { createAdaptorServer } from '@hono/node-server';
import { Hono } from 'hono';
import { listen } from '../shared/http-server.ts';

/** First message of the server. */
export interface BareFacts {
  readonly url: string;
}

const [, , listUrl = '', token = '', pages = '0', pageSize = '100'] = process.argv;
const headers = { authorization: `Bearer ${token}` };
const bodies: string[] = [];
for (let page = 1; page <= Number(pages); page += 1) {
  const answer = await fetch(`${listUrl}?page=${page}&pageSize=${pageSize}`, { headers });
  if (answer.status !== 200) throw new Error(`A page responded with HTTP ${answer.status}.`);
  bodies.push(await answer.text());
}

const app = new Hono();
app.get('/us/api/Jobs/active', (c) => {
  const body = bodies[Number(c.req.query('page')) - 1] ?? '';
  return c.body(body, 200, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(Buffer.byteLength(body)),
  });
});
// Uses the adapter's faster Response, which the sandbox does not use: this is the lower bound.
const server = createAdaptorServer({ fetch: app.fetch }) as Server;
const url = await listen(server);
process.on('disconnect', () => process.exit(0));
process.send?.({ url: `${url}/us/api/Jobs/active` } satisfies BareFacts);
