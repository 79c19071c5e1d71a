/** Pictures of the demo for the documentation: `PICTURES=write npm run test:browser pictures`. */
import type { Page } from 'playwright-core';
import { test, vi } from 'vitest';
import { demoSite, loaded, picture, show, signedIn } from '../support/browser.ts';

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
  const page = await signedIn(site, '/', { zone: 'America/New_York' });
  const go = async (path: string): Promise<void> => {
    await page.goto(`${site.url}${path}`);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await loaded(page);
  };
  await loaded(page);
  await drawn(page);
  await picture(page, 'now');
  await show(page, { theme: 'dark', size: 'phone' });
  await picture(page, 'now-phone-dark');
  await show(page, { theme: 'light', size: 'desktop' });
  await go('/jobs');
  await picture(page, 'jobs');
  await go(`/jobs/${account}/${job}`);
  await picture(page, 'job');
  await go('/health');
  await picture(page, 'health');
  await go('/setup');
  await picture(page, 'setup');
});

interface ListedEvent {
  readonly subject: string;
  readonly data: { readonly account: string };
}

/** Waits for the chart, which is loaded last. */
async function drawn(page: Page): Promise<void> {
  await page.locator('.recharts-surface').first().waitFor();
  await loaded(page);
}
