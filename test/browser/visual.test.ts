/**
 * Screenshots of every page in both themes and three widths, compared with stored ones: `VISUAL=write npm run test:browser visual`
 * stores them. Data and clock are fixed.
 */
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { resolve } from 'node:path';
import { createAdaptorServer } from '@hono/node-server';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createDashboard } from '../../local/dashboard.ts';
import { historySchema } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import { BOOTSTRAP, createApiWorld } from '../support/api-world.ts';
import { keep, loaded, visit } from '../support/browser.ts';
import { compareScreenshot, type ScreenshotSize } from './compare-screenshot.ts';
import { type Desk, places } from './desk.ts';

const sizes: readonly ScreenshotSize[] = [
  { width: 390, height: 1200, scale: 1 / 2 },
  { width: 1280, height: 1200, scale: 1 / 3 },
  { width: 2560, height: 1300, scale: 1 / 4 },
];
const themes = ['light', 'dark'] as const;

// Ids are displayed, and lists are in their order.
vi.mock('node:crypto', async (original) => {
  const real = await original<typeof import('node:crypto')>();
  let count = 0;
  const randomBytes = (size: number) => {
    count += 1;
    return real.hkdfSync('sha256', 'fixed', '', String(count), size);
  };
  return {
    ...real,
    randomBytes: (size: number) => Buffer.from(randomBytes(size)),
    randomUUID: () =>
      Buffer.from(randomBytes(16))
        .toString('hex')
        .replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-'),
  };
});

/** Time of the API. */
const START = Date.parse('2026-03-02T08:00:00Z');

/** Endpoints with deliveries, instead of those of a desk. */
const endpoints = { erp: 'own', down: 'both' } as const;
/** The paths of the pages need no more of a desk. */
let desk: Pick<Desk, 'jobs' | 'message' | 'url'>;
let now = 0;
const stops: (() => unknown)[] = [];
afterAll(async () => {
  for (const stop of stops.reverse()) await stop();
  vi.useRealTimers();
});

beforeAll(async () => {
  process.env.FONTCONFIG_FILE = resolve('test/support/fonts.conf');
  // Time stands still: for the API, and below for the pages.
  vi.useFakeTimers({ toFake: ['Date'], now: START });
  const tables = { table: createMemoryTable(), history: createMemoryTable(historySchema) };
  const world = await createApiWorld({
    ...tables,
    api: { pace: { waitMs: 5 } },
    end: (stop) => stops.push(stop),
  });
  now = world.now();
  const dashboard = createDashboard();
  const { port } = new URL(world.receiverUrl);
  const server = createAdaptorServer({
    fetch: (request) =>
      dashboard(request, async () => {
        const response = await world.app.fetch(request);
        if (!response.headers.get('content-type')?.includes('json')) return response;
        return new Response(
          (await response.text()).replaceAll(`127.0.0.1:${port}`, '127.0.0.1:40000'),
          response,
        );
      }),
  }) as Server;
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  stops.push(() => {
    server.close();
    server.closeAllConnections();
  });
  const response = await world.app.request('/v1/accounts', {
    method: 'POST',
    headers: { authorization: `Bearer ${BOOTSTRAP}`, 'content-type': 'application/json' },
    body: JSON.stringify({ id: 'delta', region: 'us', credentials: world.credentials }),
  });
  if (response.status !== 201) throw new Error(await response.text());
  const [plain = 0, late = 0, hostile = 0] = world.ids.jobs;
  desk = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    jobs: { plain, late, hostile },
    message: world.ids.notifying.acme?.messages[0] ?? '',
  };
}, 60_000);

let tab: Page;
let paper: Page;

async function open(path: string): Promise<Page> {
  if (!tab || tab.isClosed()) {
    tab = await visit(desk, '/favicon.svg');
    keep(tab);
    // A page's timers continue from the time that has passed here since this call, as a 32-bit number. It must not be months.
    vi.setSystemTime(vi.getRealSystemTime());
    await tab.clock.setFixedTime(now);
    vi.setSystemTime(START);
    await tab.evaluate((key) => {
      sessionStorage.setItem('jobwire.key', key);
      localStorage.setItem('jobwire.checklist', 'dismissed');
    }, BOOTSTRAP);
    paper = await visit(desk, '/favicon.svg');
    keep(paper);
    await paper.goto('about:blank');
  }
  await tab.setViewportSize({ width: 1280, height: 1200 });
  await tab.goto(`${desk.url}${path}`);
  await tab.evaluate(() => {
    // Which labels of an axis overlap, and are therefore omitted, depends on when Recharts has measured them.
    const style = new CSSStyleSheet();
    style.replaceSync(
      '.recharts-cartesian-axis-tick, .recharts-cartesian-axis-tick-label { visibility: hidden }',
    );
    document.adoptedStyleSheets.push(style);
  });
  await loaded(tab);
  if (!path.includes('wall')) await tab.getByRole('status').getByText('Live', { exact: true }).waitFor();
  return tab;
}

describe.each(places)('$name', ({ name, path }) => {
  test('looks as stored', { timeout: 600_000 }, async () => {
    const page = await open(
      path(desk as Desk).replace(
        /\/us\/(erp|down)/,
        (_, id: keyof typeof endpoints) => `/us/${endpoints[id]}`,
      ),
    );
    const differences: string[] = [];
    for (const size of sizes) {
      await page.setViewportSize(size);
      for (const theme of themes) {
        await page.emulateMedia({ colorScheme: theme });
        const file = `${name.replaceAll(/[^a-z0-9]+/gi, '-').toLowerCase()}-${size.width}-${theme}`;
        const difference = await compareScreenshot(page, paper, file, size);
        if (difference !== undefined) differences.push(difference);
      }
    }
    expect(differences, 'reports/screenshots has the images').toEqual([]);
  });
});
