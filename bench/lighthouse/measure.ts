/**
 * A child process: scores every kind of page of the demo with Lighthouse, signed in, with its desktop settings (no throttling of the
 * CPU) and its mobile settings (slow 4G, CPU four times slower).
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { CHROMIUM } from '../../test/support/chromium.ts';
import { launch } from '../../test/support/command.ts';
import { findPort } from '../../test/support/port.ts';

/** Results of a page. Scores are from 0 to 100. */
export interface PageResults {
  readonly page: string;
  readonly settings: 'desktop' | 'mobile';
  readonly performance: number;
  readonly accessibility: number;
  readonly firstPaintMs: number;
  readonly largestPaintMs: number;
  readonly blockedMs: number;
  readonly layoutShift: number;
  readonly kilobytes: number;
  readonly elements: number;
  /** Audits that are not passed. */
  readonly failed: readonly string[];
}

const [only] = process.argv.slice(2);
execFileSync('npm', ['ci', '--loglevel=error'], { cwd: import.meta.dirname, stdio: 'inherit' });
const { default: lighthouse, desktopConfig, defaultConfig } = await import('lighthouse');
const { default: puppeteer } = await import('puppeteer-core');

const running = launch([process.execPath, 'local/main.ts', '--port', String(await findPort())]);
const url = (await running.printed(/HTTP API +(http\S+)/)).trim();
const key = readFileSync((await running.printed(/API key +in (\S+)/)).trim(), 'utf8').trim();
const browser = await puppeteer.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] });
try {
  const results: PageResults[] = [];
  for (const [page, path] of await listPages()) {
    if (only !== undefined && only !== page) continue;
    for (const settings of ['desktop', 'mobile'] as const) {
      const result = await score(page, path, settings);
      console.log(`${page}, ${settings}: ${result.performance}, not passed: ${result.failed.join(' ')}`);
      results.push(result);
    }
  }
  process.send?.(results);
} finally {
  await browser.close();
  running.child.kill('SIGTERM');
  await running.ended;
  process.disconnect?.();
}

/** Returns the pages of the demo, by name. Waits for its first delivered message. */
async function listPages(): Promise<[string, string][]> {
  const get = async (path: string) => {
    const response = await fetch(`${url}/v1${path}`, { headers: { authorization: `Bearer ${key}` } });
    return response.json();
  };
  type Events = { readonly events: { subject: string; data: { account: string } }[] };
  let events: Events['events'] = [];
  while (events.length === 0) {
    await new Promise((done) => setTimeout(done, 500));
    ({ events } = (await get('/events?types=job.tracking_added&limit=1')) as Events);
  }
  const { account = '' } = events[0]?.data ?? {};
  const job = events[0]?.subject.replace(/\D/g, '') ?? '';
  const { endpoints } = (await get('/endpoints')) as { endpoints: { id: string; region: string }[] };
  const [endpoint] = endpoints;
  return [
    ['Sign-in', '/'],
    ['Now', '/'],
    ['Live events', '/?view=feed'],
    ['Jobs', '/jobs'],
    ['Job', `/jobs/${account}/${job}`],
    ['Health', '/health'],
    ['Account', `/accounts/${account}`],
    ...(endpoint ? [['Endpoint', `/endpoints/${endpoint.region}/${endpoint.id}`] as [string, string]] : []),
    ['Setup', '/setup'],
    ['Accounts', '/setup/accounts'],
    ['New endpoint', '/setup/new-endpoint'],
    ['Alert rules', '/setup/alert-rules'],
    ['Keys', '/setup/keys'],
    ['Notifications', `/setup/customers/${account}`],
    ['Messages', `/setup/customers/${account}/messages`],
    ['Checklist', '/start'],
    ['API reference', '/docs'],
    ['API operations', '/docs/endpoints'],
    ['Mailbox', '/mailbox'],
  ];
}

async function score(name: string, path: string, settings: PageResults['settings']): Promise<PageResults> {
  const context = await browser.createBrowserContext();
  const page = await context.newPage();
  await page.goto(`${url}/favicon.svg`);
  if (name !== 'Sign-in') await page.evaluate((key) => sessionStorage.setItem('jobwire.key', key), key);
  const flags = { disableStorageReset: true, onlyCategories: ['performance', 'accessibility'] };
  const config = settings === 'desktop' ? desktopConfig : defaultConfig;
  const run = await lighthouse(`${url}${path}`, flags, config, page);
  await context.close();
  if (!run) throw new Error(`Lighthouse has no result for ${path}.`);
  const { audits, categories } = run.lhr;
  const read = (audit: string): number => audits[audit]?.numericValue ?? Number.NaN;
  const elements = audits['dom-size-insight']?.details?.debugData?.totalElements;
  return {
    page: name,
    settings,
    performance: Math.round((categories.performance?.score ?? 0) * 100),
    accessibility: Math.round((categories.accessibility?.score ?? 0) * 100),
    firstPaintMs: read('first-contentful-paint'),
    largestPaintMs: read('largest-contentful-paint'),
    blockedMs: read('total-blocking-time'),
    layoutShift: read('cumulative-layout-shift'),
    kilobytes: read('total-byte-weight') / 1000,
    elements: elements ?? Number.NaN,
    failed: Object.values(audits)
      .filter(({ score }) => score !== null && score < 0.9)
      .map(({ id }) => id),
  };
}
