import { hash } from 'node:crypto';
import { expect, test } from 'vitest';
import { createSmokeSandbox, type SmokeWebhook } from '../../functions/handlers/smoke-sandbox.ts';

const SECRET = 'a-secret-of-this-run';
const startedAt = Date.parse('2026-11-24T10:00:00Z');
const TOKEN = '/us/auth/realms/us/protocol/openid-connect/token';
let now = startedAt;
const kept: SmokeWebhook[] = [];
const createInstance = () =>
  createSmokeSandbox({
    ...{ region: 'us', secretHash: hash('sha256', SECRET), startedAt, now: () => now },
    keep: async (webhook) => void kept.push(webhook),
  });
const authorized = (init: RequestInit = {}) => ({
  ...init,
  headers: { authorization: `Bearer ${SECRET}`, 'webhook-id': 'acme.1.1' },
});

test('the sandbox of a smoke test serves nothing without the secret of the run', async () => {
  const app = createInstance();
  const form = (secret: string) => ({
    method: 'POST',
    body: new URLSearchParams({
      ...{ grant_type: 'client_credentials', client_id: 'jobwire-smoke', client_secret: secret },
    }),
  });
  const paths = ['/us/api/Jobs/active', '/openapi.json', '/files/x', '/', '/us/auth', '/hook'];
  const answers = await Promise.all([
    ...paths.map((path) => app.request(path)),
    app.request('/hook', { method: 'POST', body: '{}', headers: { authorization: 'Bearer guessed' } }),
    app.request(TOKEN, form('guessed')),
  ]);
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 401));
  expect(kept).toEqual([]);
  const token = await app.request(TOKEN, form(SECRET));
  expect(await token.json()).toMatchObject({ access_token: SECRET, expires_in: 600 });
});

test('two instances serve the same jobs, and some of them change within a minute', async () => {
  const read = async (app: ReturnType<typeof createInstance>) => {
    const response = await app.request('/us/api/Jobs/active?pageSize=100', authorized());
    expect(response.status).toBe(200);
    return response.text();
  };
  const first = createInstance();
  const before = await read(first);
  now = startedAt + 60_000;
  const after = await read(first);
  expect(after).not.toBe(before);
  expect(await read(createInstance())).toBe(after);
});

test('a webhook is stored with the headers that its signature covers', async () => {
  const response = await createInstance().request('/hook', authorized({ method: 'POST', body: '{"id":1}' }));
  expect(response.status).toBe(204);
  expect(kept).toEqual([{ headers: { 'webhook-id': 'acme.1.1' }, body: '{"id":1}' }]);
});
