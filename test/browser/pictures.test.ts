/** Pictures of the demo for the documentation: `PICTURES=write npm run test:browser pictures`. */
import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import { expect, test, vi } from 'vitest';
import { demoSite, loaded, picture, settled, show, signedIn, visit } from '../support/browser.ts';

const wanted = process.env.PICTURES === 'write';
const site = wanted ? demoSite() : undefined;

test.runIf(wanted)('pictures of the demo', { timeout: 180_000 }, async () => {
  if (!site) return;
  // Wait for the first dispatched jobs and sent messages.
  const { account, job } = await vi.waitFor(
    async () => {
      const { events } = await site.api<{ events: ListedEvent[] }>(
        '/events?types=job.tracking_added&limit=20',
      );
      const found = events.find(({ data }) => data.account === 'kowhai-print-co') ?? events[0];
      if (events.length < 4 || !found) throw new Error('Too few events.');
      return { account: found.data.account, job: found.subject.slice(5) };
    },
    { timeout: 120_000, interval: 500 },
  );
  const page = await signedIn(site, `/jobs/${account}/${job}`, { zone: 'America/New_York' });
  const go = async (path: string): Promise<void> => {
    await page.goto(`${site.url}${path}`);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await loaded(page);
  };
  // First, because jobs are returned some time after their dispatch.
  await page.getByText('Sent', { exact: true }).waitFor({ timeout: 60_000 });
  await loaded(page);
  await picture(page, 'job');
  // Late jobs of the demo.
  const countItems = async () => (await site.api<{ total: number }>('/attention')).total;
  await vi.waitUntil(async () => (await countItems()) >= 3, { timeout: 120_000, interval: 500 });
  await go('/');
  await drawn(page);
  await picture(page, 'now');
  await show(page, { theme: 'dark', size: 'phone' });
  await picture(page, 'now-phone-dark');
  await show(page, { theme: 'light', size: 'desktop' });
  await go('/jobs');
  await picture(page, 'jobs');
  await go('/health');
  await picture(page, 'health');
  await go('/setup');
  await picture(page, 'setup');
});

test.runIf(wanted)('pictures of the mailbox', { timeout: 180_000 }, async () => {
  if (!site) return;
  const desktop = await visit(site, '/mailbox', { size: 'desktop' });
  await openMessage(desktop, 'email');
  await desktop.screenshot({ path: 'docs/images/mailbox-desktop.png' });
  const phone = await visit(site, '/mailbox', { size: 'phone' });
  const screens = [await takeScreen(phone)];
  for (const channel of ['email', 'sms'] as const) {
    await phone.goto(`${site.url}/mailbox`);
    await openMessage(phone, channel);
    screens.push(await takeScreen(phone));
  }
  const sheet = await visit(site, 'about:blank');
  await sheet.setViewportSize({ width: 1242, height: 876 });
  await sheet.setContent(
    `<body style="display: flex; gap: 18px; margin: 14px">${screens
      .map((src) => `<img src="${src}" style="border: 1px solid #ccc; border-radius: 12px">`)
      .join('')}`,
  );
  await sheet.screenshot({ path: 'docs/images/mailbox-phone.png' });
});

test.runIf(wanted)('picture of the demo in a terminal', { timeout: 60_000 }, async () => {
  if (!site) return;
  const { FORCE_COLOR: _, NO_COLOR: __, ...environment } = process.env;
  const program = spawn(process.execPath, ['local/main.ts', '--port', '4071'], {
    env: { ...environment, FORCE_COLOR: '1' },
  });
  let output = '';
  program.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
  });
  await expect.poll(() => output.split('\n').length, { timeout: 40_000 }).toBeGreaterThan(36);
  await sleep(500);
  program.kill('SIGTERM');
  const text = output.replaceAll(':4071', ':4000').trim().split('\n').slice(0, 36).join('\n');
  const page = await visit(site, 'about:blank');
  await page.setViewportSize({ width: 1180, height: 720 });
  await page.setContent(
    `<body style="margin: 0"><pre style="margin: 0; padding: 18px; background: #1d2129; color: #dde1e6; font: 13px/1.35 monospace">$ npm start\n\n${toHtml(text)}</pre>`,
  );
  await page.locator('pre').screenshot({ path: 'docs/images/demo.png' });
});

/** Opens the newest message of a channel. */
async function openMessage(page: Page, channel: 'email' | 'sms'): Promise<void> {
  const message = page.locator(`#list a.${channel}`).first();
  await message.waitFor({ timeout: 90_000 });
  const href = await message.getAttribute('href');
  await page.locator(`#list a[href="${href}"]`).click();
  await page.locator('#reader h2').waitFor();
  await settled(page);
  await sleep(500);
}

/** Returns a screenshot as a data URL. */
async function takeScreen(page: Page): Promise<string> {
  await settled(page);
  const image = await page.screenshot({ animations: 'disabled' });
  return `data:image/png;base64,${image.toString('base64')}`;
}

const COLORS: Readonly<Record<string, string>> = {
  1: 'font-weight: bold; color: #fff',
  2: 'color: #9aa4b0',
  31: 'color: #ff8f8f',
  32: 'color: #6fd694',
  33: 'color: #f2b84b',
  35: 'color: #cf9ff0',
  36: 'color: #7fd4e0',
  90: 'color: #9aa4b0',
};

/** Converts the styles of a terminal to HTML. */
function toHtml(text: string): string {
  const html = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: styles of a terminal begin with ESC
  return html.replace(/\x1b\[(\d+)m/g, (_, code: string) =>
    code in COLORS ? `<span style="${COLORS[code]}">` : '</span>',
  );
}

interface ListedEvent {
  readonly subject: string;
  readonly data: { readonly account: string };
}

/** Waits for the chart, which is loaded last. */
async function drawn(page: Page): Promise<void> {
  await page.locator('.recharts-surface').first().waitFor();
  await loaded(page);
}
