/** A receiver of webhooks, and requests to a running Jobwire with the API key of the tests. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { onTestFinished } from 'vitest';
import { KEY } from './cli-site.ts';

/** The fields of an event that tests read. */
export interface Event {
  readonly id: string;
  readonly type: string;
  readonly subject?: string;
  readonly sequence: string;
  readonly data: { readonly after?: string; readonly changes?: object };
}

/** A receiver that records every verified delivery, by the text of its body. */
export async function startReceiver() {
  const bodies: string[] = [];
  const listeners = new Set<() => void>();
  let secret: string | undefined;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      const headers = request.headers as Record<string, string>;
      // The clock of the sender may be another one.
      const sentAt = new Date(Number(headers['webhook-timestamp']) * 1_000);
      const expected = new Webhook(secret ?? '').sign(headers['webhook-id'] ?? '', sentAt, body);
      if (!headers['webhook-signature']?.split(' ').includes(expected)) {
        throw new Error('The signature of a webhook is wrong.');
      }
      bodies.push(body);
      response.writeHead(204).end();
      for (const listener of listeners) listener();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    bodies,
    verifyWith(value: string) {
      secret = value;
    },
    /** Resolves with the first matching event. */
    event: (fits: (event: Event) => boolean) =>
      new Promise<Event>((resolve) => {
        const listener = (): void => {
          const found = bodies.map((body): Event => JSON.parse(body)).find(fits);
          if (!found) return;
          listeners.delete(listener);
          resolve(found);
        };
        listeners.add(listener);
        listener();
      }),
  };
}

/** Sends a request with an API key: a GET, or with a body a POST or another method. */
export async function call(
  url: string,
  body?: object,
  { key = KEY, method = 'POST' }: { readonly key?: string; readonly method?: string } = {},
): Promise<{ status: number; json: never }> {
  const response = await fetch(url, {
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(body ? { method, body: JSON.stringify(body) } : {}),
  });
  return { status: response.status, json: (await response.json()) as never };
}
