/** The Now page: live events, statistics, wall display. One file: its suites share the site and the helpers that read the page. */
import type { Locator, Page } from 'playwright-core';
import { describe, expect, test, vi } from 'vitest';
import type { RegionOpenJobs } from '../../shared/api/statistics.ts';
import type { JobEvent } from '../../shared/events/event.ts';
import { axe, expectFault, layoutShift, loaded, scriptedSite, signedIn, sizes } from '../support/browser.ts';

const HOUR_MS = 3_600_000;
/** Time zone of the production location and of the browser, so that both have the same day. */
const ZONE = 'America/Denver';
const today = (): string => new Intl.DateTimeFormat('en-CA', { dateStyle: 'short', timeZone: ZONE }).format();

const site = scriptedSite({
  prepare: (world, account) => {
    for (const status of ['Scheduled', 'Scheduled', 'In production'])
      account.createJob({ status, dateDue: Date.now() + 72 * HOUR_MS });
    account.createJob({
      status: 'Scheduled',
      description: 'Late one',
      dateDue: Date.now() - 48 * HOUR_MS,
    });
    world.addAccount({ region: 'nz', name: 'kiwi' }).createJob({ status: 'Booked in' });
  },
});

/** The live events of the page. */
const FEED = '/?view=feed';
/** Viewport that fits all rows of these tests. */
const TALL = { width: 1280, height: 4_000 };
const AWAY = /answered 503|ERR_CONNECTION_(REFUSED|RESET)|ERR_EMPTY_RESPONSE|ERR_INCOMPLETE_CHUNKED_ENCODING/;

async function open(path = FEED, look: Parameters<typeof signedIn>[2] = {}): Promise<Page> {
  const page = await signedIn(site, path, { zone: ZONE, ...look });
  await live(page);
  await loaded(page);
  return page;
}

const live = (page: Page): Promise<void> =>
  page.getByRole('status').getByText('Live', { exact: true }).waitFor();
const list = (page: Page) => page.getByRole('list', { name: 'Events' });
/** Returns the ids of the rendered events, from the top. */
const readShownIds = (page: Page): Promise<string[]> =>
  list(page).evaluate((all) =>
    [...all.querySelectorAll<HTMLElement>('[data-event]')]
      .sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top)
      .map(({ dataset }) => dataset.event ?? ''),
  );
/** Returns the ids of an account's events from the API, newest first. */
async function readIdsFromApi(account: string): Promise<string[]> {
  const { events } = await site.api<{ events: JobEvent[] }>(`/accounts/${account}/events?after=0&limit=500`);
  return events.map(({ id }) => id).reverse();
}
/** Waits until the page shows the events of the account's log, newest first. More can be added meanwhile. */
async function waitForAllEvents(page: Page, account: string): Promise<void> {
  const compare = async () => expect(await readShownIds(page)).toEqual(await readIdsFromApi(account));
  await vi.waitFor(compare, 60_000);
}
/** Waits until the log contains an event of the job. */
async function waitForEvent(job: number): Promise<void> {
  await expect
    .poll(() =>
      site.api<{ events: JobEvent[] }>(`/accounts/acme/jobs/${job}/events`).catch(() => ({ events: [] })),
    )
    .toMatchObject({ events: [expect.anything()] });
}

describe('live events', () => {
  test('new events appear on top with a description and a link to the job', { tags: 'firefox' }, async () => {
    const page = await open();
    const job = site.account.createJob({ status: 'Scheduled', description: 'Aprons' });
    const first = list(page).getByRole('listitem').first();
    await first.getByText('New job Aprons').waitFor();
    site.account.setStatus(job, 'On hold');
    await first.getByText(/Status from Scheduled.* to On hold/).waitFor();
    expect(await first.textContent()).toMatch(/^\d\d:\d\d:\d\d\s*acme\s*\d+/);
    await first.getByRole('link', { name: String(job) }).click();
    await page.waitForURL(`**/jobs/acme/${job}`);
    site.account.setStatus(job, 'Scheduled');
  });

  test('a filter is kept in the address and applies to loaded and live events', async () => {
    const page = await open();
    await page.setViewportSize(TALL);
    await page.getByLabel('Event type').selectOption({ label: 'Dispatch' });
    await page.waitForURL(/types=job\.dispatched/);
    const job = site.account.createJob({ status: 'Ready to ship', description: 'Banners' });
    await waitForEvent(job);
    site.account.dispatch(job);
    await list(page)
      .getByRole('link', { name: String(job) })
      .first()
      .waitFor();
    for (const row of await list(page).getByRole('listitem').all())
      expect(await row.textContent()).toMatch(/Dispatched|Dispatch revoked|Order group dispatched/);

    await page.getByLabel('Event type').selectOption({ label: 'All events' });
    await page.getByLabel('Account').selectOption('kiwi');
    await waitForAllEvents(page, 'kiwi');
    await page.getByLabel('Account').selectOption('');
    await page.getByLabel('Search events').fill('banners');
    await page.waitForURL(/text=banners/);
    await page.reload();
    await live(page);
    await list(page).getByText('Banners').first().waitFor();
    expect(await page.getByLabel('Search events').inputValue()).toBe('banners');
    for (const row of await list(page).getByRole('listitem').all())
      expect(await row.getByRole('link').textContent()).toBe(String(job));
    await page.getByLabel('Search events').fill('no such thing');
    await page.getByRole('button', { name: 'Clear filters' }).click();
    await list(page).getByRole('listitem').nth(3).waitFor();
  });

  test('a paused list stays unchanged and counts new events; resuming loses and repeats none', {
    tags: 'firefox',
  }, async () => {
    const page = await open(`${FEED}&account=acme`);
    await page.setViewportSize(TALL);
    await waitForAllEvents(page, 'acme');
    await page.getByRole('button', { name: 'Pause' }).click();
    const before = await readShownIds(page);
    const jobs = Array.from({ length: 7 }, () => site.account.createJob({ status: 'Scheduled' }));
    for (const job of jobs) await waitForEvent(job);
    const waiting = page.getByRole('button', { name: /^\d+ new events: show$/ });
    await expect.poll(() => waiting.textContent()).toMatch(/^7 new/);
    expect(await readShownIds(page)).toEqual(before);
    await axe(page);
    await waiting.click();
    await waitForAllEvents(page, 'acme');
    site.account.setStatus(jobs[0] ?? 0, 'On hold');
    await page.getByRole('button', { name: /^1 new event: show$/ }).waitFor();
    await page.getByRole('button', { name: 'Resume' }).click();
    await waitForAllEvents(page, 'acme');
    expect(await waiting.count()).toBe(0);
    site.account.setStatus(jobs[0] ?? 0, 'Scheduled');
  });

  test.each(['desktop', 'narrow'] as const)(
    'the count of new events covers no event and shifts nothing, on a %s screen',
    async (size) => {
      const page = await open(FEED, { size });
      await page.getByRole('button', { name: 'Pause' }).click();
      const waiting = page.getByRole('button', { name: /new events?: show$/ });
      const parts = {
        heading: page.getByRole('heading', { name: 'Live events' }),
        resume: page.getByRole('button', { name: 'Resume' }),
        filter: page.getByLabel('Event type'),
        events: page.getByRole('region', { name: 'Events, newest first' }),
      };
      await parts.resume.waitFor();
      /** Returns the position of a part within the panel. */
      const readPosition = async (part: Locator) => {
        const [its, panel] = [
          await part.boundingBox(),
          await page.getByRole('region', { name: 'Live events' }).boundingBox(),
        ];
        if (!its || !panel) throw new Error('The element is not visible.');
        const [left, top] = [its.x - panel.x, its.y - panel.y];
        return { left, top, right: left + its.width, bottom: top + its.height, room: panel.width };
      };
      const places = () => Promise.all(Object.values(parts).map(readPosition));
      const before = await places();
      await waitForEvent(site.account.createJob({ status: 'Scheduled' }));
      await waiting.waitFor();
      const { left, top, right, bottom, room } = await readPosition(waiting);
      expect([left > 0, right < room]).toEqual([true, true]);
      const covered = before.filter(
        (one) => left < one.right && one.left < right && top < one.bottom && one.top < bottom,
      );
      expect(covered).toEqual([]);
      expect(await places()).toEqual(before);
      await axe(page);
    },
  );

  test('a scrolled list does not move when events arrive, and a button shows them', async () => {
    const page = await open();
    for (let at = 0; at < 25; at += 1) site.account.createJob();
    const size = async () => list(page).getByRole('listitem').first().getAttribute('aria-setsize');
    await expect.poll(async () => Number(await size())).toBeGreaterThan(25);
    const scroller = page.getByRole('region', { name: 'Events, newest first' });
    await scroller.focus();
    await page.keyboard.press('PageDown');
    await page.getByText('Held while you read').waitFor();
    // Smooth scrolling takes some frames.
    let last = 0;
    await expect
      .poll(async () => {
        const former = last;
        last = await scroller.evaluate((one) => one.scrollTop);
        return last > 100 && last === former;
      })
      .toBe(true);
    const [top, before] = [last, await readShownIds(page)];
    const job = site.account.createJob();
    await page.getByRole('button', { name: /new events?: show$/ }).waitFor();
    expect([await scroller.evaluate((one) => one.scrollTop), await readShownIds(page)]).toEqual([
      top,
      before,
    ]);
    await page.getByRole('button', { name: /new events?: show$/ }).click();
    await list(page)
      .getByRole('link', { name: String(job) })
      .waitFor();
    expect(await scroller.evaluate((one) => one.scrollTop)).toBe(0);
  });

  test('the list is held under the pointer and released when the pointer leaves', async () => {
    const page = await open();
    await list(page).getByRole('listitem').nth(1).hover();
    await page.getByText('Held while you read').waitFor();
    const before = await readShownIds(page);
    const job = site.account.createJob();
    await page.getByRole('button', { name: /new events?: show$/ }).waitFor();
    expect(await readShownIds(page)).toEqual(before);
    await page.mouse.move(5, 5);
    await list(page)
      .getByRole('link', { name: String(job) })
      .waitFor();
  });

  test('after a restart of Jobwire, missed events arrive without gaps or duplicates', async () => {
    const page = await open(`${FEED}&account=acme`);
    await page.setViewportSize(TALL);
    expectFault(page, AWAY);
    await site.stop();
    await page.getByText('Missed events are loaded when the connection returns.').waitFor();
    const jobs = Array.from({ length: 5 }, () => site.account.createJob({ status: 'Scheduled' }));
    await site.start();
    await live(page);
    site.account.setStatus(jobs[0] ?? 0, 'In production');
    for (const job of jobs)
      await list(page)
        .getByRole('link', { name: String(job) })
        .first()
        .waitFor();
    await waitForAllEvents(page, 'acme');
  });

  test('screen readers do not announce each event', async () => {
    const page = await open();
    const spoken = await list(page).evaluate(
      (one) =>
        one.closest(
          '[aria-live]:not([aria-live=off]), [role=log], [role=status], [role=alert], [role=feed]',
        ) !== null,
    );
    expect(spoken).toBe(false);
  });
});

describe('statistics', () => {
  const statistic = (page: Page, name: string) =>
    page.getByRole('link', { name: new RegExp(`^${name}`) }).first();
  const openJobs = (region: string) => site.api<RegionOpenJobs>(`/regions/${region}/open-jobs`);
  const readStatistic = async (page: Page, name: string): Promise<number> =>
    Number(await statistic(page, name).locator('span').nth(1).textContent());

  test('equal those of the API, for one region and for all, and follow events', async () => {
    const page = await open('/');
    const [us, nz] = [await openJobs('us'), await openJobs('nz')];
    await expect.poll(() => readStatistic(page, 'Open jobs')).toBe(us.jobs + nz.jobs);
    await expect.poll(() => readStatistic(page, 'Late')).toBe(us.late);
    site.account.createJob({ status: 'Scheduled' });
    await expect.poll(() => readStatistic(page, 'Open jobs')).toBe(us.jobs + nz.jobs + 1);
    await page.getByRole('link', { name: 'Live events' }).click();
    await statistic(page, 'On time').click();
    await page.getByRole('region', { name: /^Created and dispatched/ }).waitFor();
    // Until its figures are loaded, those of all regions are greyed out.
    const held = Promise.withResolvers<void>();
    await page.route(/\/v1\/figures\?.*region=nz/, async (route) => {
      await held.promise;
      await route.continue();
    });
    await page.getByLabel('Region').selectOption('nz');
    const outdated = page.locator('[data-outdated]');
    await outdated.first().waitFor();
    held.resolve();
    await expect.poll(() => outdated.count()).toBe(0);
    await expect.poll(() => readStatistic(page, 'Open jobs')).toBe(nz.jobs);
    const chart = page.getByRole('img', { name: /jobs created/ });
    const { days } = await site.api<{ days: { created: number }[] }>('/figures?region=nz');
    const created = days.reduce((sum, day) => sum + day.created, 0);
    await expect.poll(() => chart.getAttribute('aria-label')).toContain(` ${created} jobs created`);
    await page.getByRole('link', { name: 'Live events' }).click();
    await list(page).getByRole('listitem').first().waitFor();
    expect(await list(page).getByRole('link', { name: 'acme' }).count()).toBe(0);
    for (const row of await list(page).getByRole('listitem').all())
      expect(await row.textContent()).toMatch(/kiwi|nz/);
  });

  test('a dispatched job is added to the jobs dispatched today and removed from those due today', async () => {
    const day = today();
    const job = site.account.createJob({ status: 'Ready to ship', dateDue: `${day}T23:59:59Z` });
    const page = await open('/');
    const due = await site.api<RegionOpenJobs>('/regions/us/open-jobs');
    const dueToday = due.byDueDay.find((one) => one.day === day)?.jobs ?? 0;
    expect(dueToday).toBeGreaterThan(0);
    await expect.poll(() => readStatistic(page, 'Due (today|on)')).toBe(dueToday);
    await page.getByText('Days are local to the location of each job.').waitFor();
    const before = await readStatistic(page, 'Dispatched (today|on)');
    site.account.dispatch(job);
    await expect.poll(() => readStatistic(page, 'Dispatched (today|on)')).toBe(before + 1);
    await expect.poll(() => readStatistic(page, 'Due (today|on)')).toBe(dueToday - 1);
  });

  test('a job at risk is listed with the reason in numbers until its dispatch', async () => {
    const { account } = site;
    // Jobs that existed before the baseline cause no event.
    await expect.poll(() => readIdsFromApi('acme')).not.toEqual([]);
    const known = Array.from({ length: 10 }, () => account.createJob({ status: 'Cutting' }));
    for (const job of known) await waitForEvent(job);
    for (const job of known) account.dispatch(job);
    type Durations = { statuses: { status: string; dispatches: number }[] };
    const readDispatches = async () => {
      const { statuses } = await site.api<Durations>('/accounts/acme/status-durations');
      return statuses.find(({ status }) => status === 'Cutting')?.dispatches;
    };
    await expect.poll(readDispatches, { timeout: 60_000 }).toBe(10);
    // The shortest duration that is distinguished is five minutes.
    const job = account.createJob({ status: 'Cutting', dateDue: Date.now() + 4 * 60_000, mustDate: true });
    const page = await open('/');
    const item = page
      .getByRole('list', { name: 'Items' })
      .getByRole('listitem')
      .filter({ hasText: `Job ${job}` });
    await item.waitFor();
    expect(await item.textContent()).toMatch(
      /^Jobs at risk.*Due in \d+ minutes; the due date is mandatory\. .*More than a quarter of the comparable jobs needed longer/,
    );
    await item.getByRole('link', { name: `Job ${job}` }).click();
    await page.getByText(/At risk: \d min left.*10 of 10 jobs needed longer/).waitFor();
    await page.goto(`${site.url}/jobs?risk=at-risk`);
    const row = page
      .getByRole('grid', { name: 'Jobs' })
      .getByRole('row')
      .filter({ hasText: String(job) });
    await row.getByText('At risk', { exact: true }).waitFor();
    await row
      .getByTitle(/due date must be met.*min left.*10 of 10 jobs needed longer/)
      .first()
      .waitFor();
    // Other jobs may have become late in the meantime.
    await page.getByText(/No results of the last 8 weeks|Last 8 weeks: no job at risk/).waitFor();
    await page.goto(site.url);
    await item.waitFor();
    account.dispatch(job);
    await item.waitFor({ state: 'detached' });
    await page.goto(`${site.url}/jobs?risk=at-risk`);
    await page.getByText('Last 8 weeks: 0 of 1 job at risk became late').waitFor();
  }, 180_000);

  test('each status links to the jobs that it counts, and the late total to the late jobs', async () => {
    const page = await open('/?region=us');
    const us = await openJobs('us');
    const statuses = page.getByRole('region', { name: 'Open jobs by status' }).getByRole('listitem');
    expect(await statuses.count()).toBe(us.byStatus.length);
    for (const one of await statuses.all()) {
      const address = new URL((await one.getByRole('link').getAttribute('href')) ?? '', site.url);
      expect([address.pathname, address.searchParams.get('region')]).toEqual(['/jobs', 'us']);
      const status = address.searchParams.get('status') ?? '';
      const { jobs } = await site.api<{ jobs: { phase: string }[] }>(
        `/accounts/acme/jobs?limit=500&status=${encodeURIComponent(status)}`,
      );
      const listed = jobs.filter(({ phase }) => phase === 'listed').length;
      expect(await one.textContent()).toMatch(new RegExp(`${status}.*${listed} jobs?$`));
    }
    const { jobs } = await site.api<{ jobs: { jobNumber: number }[] }>('/accounts/acme/jobs?late=true');
    expect(jobs.length).toBeGreaterThan(0);
    for (const { jobNumber } of jobs)
      await page.getByRole('link', { name: `Job ${jobNumber}`, exact: true }).waitFor();
    expect(await statistic(page, 'Late').getAttribute('href')).toBe('/jobs?late=true&region=us');
    expect(await statistic(page, 'Open jobs').getAttribute('href')).toBe('/jobs?which=open&region=us');
    // So low that the target of the link is not visible before.
    await page.setViewportSize({ width: 1_000, height: 400 });
    const days = page.locator('#days');
    const isSeen = () => days.evaluate((place) => place.getBoundingClientRect().top < window.innerHeight);
    expect(await isSeen()).toBe(false);
    await statistic(page, 'On time').click();
    await page.waitForURL(/region=us#days$/);
    await expect.poll(isSeen).toBe(true);
  });

  test('a job page opened from a list starts at its top', async () => {
    const page = await open('/?region=us');
    await page.setViewportSize({ width: 1_000, height: 400 });
    const job = page.getByRole('list', { name: 'Items' }).getByRole('link').first();
    for (const _ of ['read', 'known']) {
      await job.scrollIntoViewIfNeeded();
      await expect.poll(() => page.evaluate(() => window.scrollY)).toBeGreaterThan(100);
      await job.click();
      await page.getByRole('heading', { name: 'Current state' }).waitFor();
      expect(await page.evaluate(() => window.scrollY)).toBe(0);
      await page.getByRole('link', { name: /^Now/ }).click();
    }
  });

  test('with a key for some accounts, cover only these', async () => {
    const { key } = await site.makeKey('read', ['kiwi']);
    const page = await open('/', { key });
    const { jobs } = await openJobs('nz');
    await expect.poll(() => readStatistic(page, 'Open jobs')).toBe(jobs);
    await page.getByRole('link', { name: 'Live events' }).click();
    await list(page).getByRole('listitem').first().waitFor();
    for (const row of await list(page).getByRole('listitem').all())
      expect(await row.textContent()).toContain('kiwi');
  });

  test('the chart has a table with links to the dispatched jobs of each day', async () => {
    const page = await open('/');
    await page.getByRole('img', { name: /^Last 14 days/ }).waitFor();
    await page.getByRole('button', { name: 'Show table' }).click();
    const rows = page.getByRole('table').getByRole('row');
    expect(await rows.count()).toBe(15);
    const href = await rows.nth(1).getByRole('link').getAttribute('href');
    expect(href).toBe(`/jobs?dispatchedOn=${today()}`);
    await axe(page);
  });
});

describe('wall display', () => {
  test('hides the navigation until Escape or the exit button is pressed', async () => {
    const page = await open('/', { size: 'wall' });
    const frame = page.getByRole('navigation', { name: 'Pages' });
    for (const leave of [
      () => page.getByRole('button', { name: 'Exit wall display' }).click(),
      () => page.keyboard.press('Escape'),
    ]) {
      await page.getByRole('button', { name: 'Wall display', exact: true }).click();
      await frame.waitFor({ state: 'hidden' });
      await page.waitForURL(/wall=1/);
      await leave();
      await frame.waitFor();
      expect(page.url()).not.toContain('wall');
    }
  });

  test('fits the screen without scrolling', async () => {
    const page = await signedIn(site, '/?wall=1', { size: 'wall' });
    await page.getByRole('list', { name: 'Items' }).getByRole('listitem').first().waitFor();
    await page.getByRole('img', { name: /^Last 14 days/ }).waitFor();
    const names = ['Needs attention', 'Open jobs by status', /^Created and dispatched/];
    for (const name of names) {
      const { bottom } = await page
        .getByRole('region', { name })
        .first()
        .evaluate((one) => one.getBoundingClientRect());
      expect(bottom, String(name)).toBeLessThanOrEqual(sizes.wall.height);
    }
    await axe(page);
  });

  test('shows only whole items and panels on a smaller screen, and the number of all items', async () => {
    for (let at = 0; at < 12; at += 1) site.account.createJob({ dateDue: Date.now() - at * HOUR_MS });
    const page = await signedIn(site, '/?wall=1', { size: 'wall' });
    await page.setViewportSize({ width: 1440, height: 900 });
    const items = page.getByRole('list', { name: 'Items' }).getByRole('listitem');
    await expect.poll(() => items.count(), { timeout: 40_000 }).toBe(12);
    const parts = items.or(page.getByRole('region', { name: 'Open jobs by status' }));
    const isInside = await parts.evaluateAll((all) =>
      all.map((one) => {
        const { left, top, right, bottom } = one.getBoundingClientRect();
        const outer = one.parentElement?.getBoundingClientRect();
        if (!outer || left >= outer.right) return false;
        return top >= outer.top && right <= outer.right && bottom <= Math.min(outer.bottom, innerHeight)
          ? true
          : 'cut';
      }),
    );
    expect(isInside).not.toContain('cut');
    expect(isInside.filter(Boolean).length).toBeGreaterThan(3);
    const foot = await page.getByText(/^\d+ items in all/).boundingBox();
    expect((foot?.y ?? 900) + (foot?.height ?? 0)).toBeLessThanOrEqual(900);
  });
});

test('on a phone, no text is cut: statuses, assignees and events wrap', async () => {
  const long = 'Awaiting approval of the artwork by the customer and the agency';
  const job = site.account.createJob({ status: long, dateDue: Date.now() - 99 * HOUR_MS });
  const id = `us~acme~job~${job}`;
  const assign = () => site.api(`/attention/${id}/assign`, { body: { assignee: long } }).catch(() => false);
  await expect.poll(assign, { timeout: 40_000 }).toBeTruthy();
  for (const path of ['/', FEED]) {
    if (path === FEED) site.account.setStatus(job, 'On hold');
    const page = await open(path, { size: 'phone' });
    await page.getByText(long).filter({ visible: true }).first().waitFor();
    const cut = await page
      .locator('main *')
      .evaluateAll((all) =>
        all
          .filter(
            (one) => getComputedStyle(one).textOverflow === 'ellipsis' && one.scrollWidth > one.clientWidth,
          )
          .map(({ textContent }) => textContent),
      );
    expect(cut, path).toEqual([]);
  }
});

test.each(['desktop', 'phone'] as const)(
  'the layout does not shift during loading, on a %s',
  async (size) => {
    const page = await open('/', { size });
    expect(await layoutShift(page)).toBeLessThan(0.05);
  },
);

describe('without accounts', () => {
  const empty = scriptedSite({ config: { accounts: [] } });

  test('an admin key is offered to add an account', async () => {
    const page = await signedIn(empty, '/');
    await page.getByText('No accounts yet.').waitFor();
    await page.getByRole('link', { name: 'Add an account' }).waitFor();
    await page.getByText('There are no accounts to watch.').waitFor();
    await axe(page);
    await page.getByRole('link', { name: 'Live events' }).click();
    await page.getByText('No events yet.').waitFor();
  });
});
