/** The pages of the control panel: its forms call the operations of the panel, and only its own forms are accepted. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { type Sandbox, startSandbox } from '../../sandbox/server.ts';
import { SandboxClock } from '../../sandbox/simulation/clock.ts';
import { createWorld } from '../../sandbox/world/world.ts';

async function start() {
  const clock = new SandboxClock({ startAt: Date.parse('2026-11-20T16:14:00Z'), stopped: true });
  const world = createWorld({ now: () => clock.now() });
  const account = world.addAccount({ region: 'us', name: 'acme' });
  const sandbox = await startSandbox({ world, clock });
  onTestFinished(() => sandbox.stop());
  return { clock, world, account, sandbox };
}

async function getPage(sandbox: Sandbox, path = '/panel'): Promise<string> {
  const response = await fetch(`${sandbox.adminUrl}${path}`, { headers: { accept: 'text/html' } });
  expect(response.status).toBe(200);
  return response.text();
}

const readToken = (page: string): string => /name="token" value="([^"]+)"/.exec(page)?.[1] ?? '';

/** Submits a form as a browser does, with the token of the page; returns the response without following its redirection. */
async function submit(
  sandbox: Sandbox,
  fields: Record<string, string>,
  headers: Record<string, string> = { origin: sandbox.adminUrl },
): Promise<Response> {
  const token = readToken(await getPage(sandbox));
  const body = new URLSearchParams({ token, back: '/panel', ...fields });
  return fetch(`${sandbox.adminUrl}/panel`, { method: 'POST', body, headers, redirect: 'manual' });
}

/** Submits a form, and returns the page that follows. */
async function follow(sandbox: Sandbox, fields: Record<string, string>): Promise<string> {
  const response = await submit(sandbox, fields);
  expect(response.status).toBe(303);
  return getPage(sandbox, response.headers.get('location') ?? '');
}

describe('the pages of the control panel', () => {
  test('browsers are led from / to the page, other clients get the list of operations', async () => {
    const { sandbox } = await start();
    const browser = await fetch(sandbox.adminUrl, {
      headers: { accept: 'text/html,*/*' },
      redirect: 'manual',
    });
    expect([browser.status, browser.headers.get('location')]).toEqual([303, '/panel']);
    const client = await fetch(sandbox.adminUrl);
    expect(await client.json()).toHaveProperty('routes');
  });

  test('jobs are created, made late, moved, dispatched with tracking, and cancelled', async () => {
    const { sandbox, account, clock } = await start();
    const page = await follow(sandbox, {
      ...{ do: 'create', region: 'us', account: 'acme', description: 'By hand', dueInDays: '2' },
    });
    const [job = 0] = account.activeJobNumbers();
    expect(page).toContain(`Job ${job} is created.`);
    expect(account.job(job)?.description).toBe('By hand');
    const act = (name: string, more: Record<string, string> = {}) =>
      follow(sandbox, { do: name, region: 'us', jobNumber: String(job), ...more });
    await act('late');
    expect(account.job(job)?.dueMs).toBeLessThan(clock.now());
    expect(await act('status', { status: 'On hold' })).toContain('has the new status');
    expect(account.job(job)?.masterJobStatus).toBe('On hold');
    await act('dispatch', { trackingNumber: '1Z', trackingLink: 'https://carrier.example/1Z' });
    expect(account.job(job)).toMatchObject({
      dateOut: expect.any(String),
      tracking: [{ trackingNumber: '1Z', trackingLink: 'https://carrier.example/1Z' }],
    });
    const other = account.createJob({});
    await follow(sandbox, { do: 'cancel', region: 'us', jobNumber: String(other) });
    expect(account.activeJobNumbers()).not.toContain(other);
  });

  test('the clock is advanced, faults and contract freedom are switched on and off', async () => {
    const { sandbox, clock } = await start();
    const before = clock.now();
    await follow(sandbox, { do: 'advance', seconds: '3600' });
    expect(clock.now() - before).toBe(3_600_000);
    await follow(sandbox, { do: 'fault', kind: 'status', status: '503', region: 'us', forSeconds: '60' });
    expect(sandbox.faults.list()).toMatchObject([{ match: { region: 'us' }, fault: { status: 503 } }]);
    await follow(sandbox, { do: 'end-fault', id: sandbox.faults.list()[0]?.id ?? '' });
    expect(sandbox.faults.list()).toEqual([]);
    await follow(sandbox, { do: 'freedom', freedom: 'stale' });
    expect(sandbox.freedom.settings.lagSeconds).toEqual({ active: 20, search: 300, detail: 60 });
    await follow(sandbox, { do: 'end-freedom' });
    expect(sandbox.freedom.settings.lagSeconds).toEqual({});
  });

  test('every named fault and every named freedom is accepted', async () => {
    const { sandbox } = await start();
    const page = await getPage(sandbox);
    const options = (name: string) =>
      [
        ...(new RegExp(`name="${name}">(.*?)</select>`, 's').exec(page)?.[1] ?? '').matchAll(
          /value="(\w+)"/g,
        ),
      ].map(([, value = '']) => value);
    expect(options('kind').length).toBeGreaterThan(5);
    for (const kind of options('kind'))
      expect(await follow(sandbox, { do: 'fault', kind, status: '503', delayMs: '5' })).toContain(
        'The fault is on.',
      );
    for (const freedom of options('freedom'))
      expect(await follow(sandbox, { do: 'freedom', freedom })).toContain('The contract freedom is on.');
  });

  test('a description, order number or order group that is cleared is removed from the job', async () => {
    const { sandbox, account } = await start();
    const job = account.createJob({ description: 'Crest', orderNumber: 'PO-1', orderGroup: 'G-1' });
    const edit = { do: 'edit', region: 'us', jobNumber: String(job) };
    await follow(sandbox, { ...edit, description: 'Crest, large', orderNumber: '', orderGroup: ' ' });
    expect(account.job(job)).toMatchObject({
      ...{ description: 'Crest, large', orderNumber: null, orderGroup: null },
    });
  });

  test('the search finds the oldest of more than 2,000 jobs, by number, description, order or status', async () => {
    const { sandbox, account } = await start();
    const oldest = account.createJob({ description: 'Needle', orderNumber: 'PO-77', status: 'On hold' });
    for (let count = 0; count < 2_000; count++) account.createJob();
    for (const term of [String(oldest), 'needle', 'po-77', 'hold']) {
      expect(await getPage(sandbox, `/panel?q=${term}`), term).toContain(`/panel/jobs/us/${oldest}"`);
    }
    expect(await getPage(sandbox, '/panel?q=nothing')).toContain('No job matches.');
  });

  test('the message of a rejected operation is shown', async () => {
    const { sandbox } = await start();
    expect(await follow(sandbox, { do: 'advance', seconds: '-5' })).toContain('seconds');
    expect(await follow(sandbox, { do: 'late', region: 'us', jobNumber: '999' })).toContain('does not exist');
    for (const name of ['nothing', 'constructor'])
      expect(await follow(sandbox, { do: name })).toContain('The form is unknown.');
  });

  test('forms without the token of the page, or of pages of other origins, change nothing', async () => {
    const { sandbox } = await start();
    const fault = { do: 'fault', kind: 'hang' };
    const attempts = [
      await submit(sandbox, { ...fault, token: 'x'.repeat(22) }),
      await submit(sandbox, { ...fault, token: '' }),
      await submit(sandbox, fault, { origin: 'https://evil.example' }),
      await submit(sandbox, fault, { origin: 'null' }),
      await submit(sandbox, fault, {}),
      await submit(sandbox, fault, { origin: sandbox.adminUrl, 'sec-fetch-site': 'cross-site' }),
      await submit(sandbox, fault, { origin: sandbox.adminUrl, 'sec-fetch-site': 'same-site' }),
    ];
    expect(attempts.map(({ status }) => status)).toEqual(attempts.map(() => 403));
    expect(sandbox.faults.list()).toEqual([]);
    // The operations themselves accept no request of a page, not even of its own.
    const reply = await fetch(`${sandbox.adminUrl}/faults`, {
      ...{ method: 'POST', headers: { origin: sandbox.adminUrl }, body: '{"fault":{"kind":"hang"}}' },
    });
    expect(reply.status).toBe(403);
  });

  test('a form returns only to pages of the panel', async () => {
    const { sandbox } = await start();
    for (const back of [
      'https://evil.example/panel',
      '//evil.example/panel',
      '/faults',
      'javascript:alert(1)',
    ]) {
      const response = await submit(sandbox, { do: 'end-faults', back });
      expect(response.headers.get('location')).toMatch(/^\/panel\?/);
    }
  });

  test('texts of jobs are escaped, and the page allows no other scripts, frames and targets', async () => {
    const { sandbox, account } = await start();
    const job = account.createJob({ description: '"><script>alert(1)</script>', orderNumber: '<b>' });
    for (const path of ['/panel', `/panel/jobs/us/${job}`, '/panel?q=%3Cscript%3Ealert(1)']) {
      const page = await getPage(sandbox, path);
      expect(page).not.toContain('<script>alert');
      expect(page).not.toContain('<b>');
    }
    const { headers } = await fetch(`${sandbox.adminUrl}/panel`);
    expect(headers.get('content-security-policy')).toContain("default-src 'none'; script-src 'self'");
    expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
  });

  test('after a job is deleted, the start page says so; the page of a missing job is a page', async () => {
    const { sandbox, account } = await start();
    const job = String(account.createJob());
    const back = `/panel/jobs/us/${job}`;
    const page = await follow(sandbox, { do: 'remove', region: 'us', jobNumber: job, back });
    expect(page).toContain(`Job ${job} is deleted.`);
    const missing = await fetch(sandbox.adminUrl + back);
    expect([missing.status, missing.headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8']);
    expect(await missing.text()).toContain('Job not found');
  });
});
