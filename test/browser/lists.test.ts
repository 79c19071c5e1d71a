/** What all lists offer: export as a file. */
import { readFile } from 'node:fs/promises';
import { parse } from 'csv-parse/sync';
import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { axe, scriptedSite, signedIn } from '../support/browser.ts';

const site = scriptedSite({
  prepare: (world, account) => {
    account.createJob({ status: 'Scheduled', dateDue: '2030-03-02', description: '=HYPERLINK("x")' });
    account.createJob({ status: 'Scheduled', dateDue: '2030-03-01' });
    account.createJob({ status: 'In production', dateDue: '2030-03-03' });
    world
      .addAccount({ region: 'us', name: 'bakery' })
      .createJob({ status: 'Scheduled', dateDue: '2030-03-04' });
  },
});

/** Presses the export button of a list. Returns the name of the file and its rows. */
async function exportList(page: Page, name: string) {
  const downloading = page.waitForEvent('download');
  await page.getByRole('button', { name: `Export CSV: ${name}`, exact: true }).click();
  const download = await downloading;
  const text = await readFile(await download.path(), 'utf8');
  expect(text.startsWith('\ufeff')).toBe(true);
  const rows: Record<string, string>[] = parse(text, { bom: true, columns: true });
  return { file: download.suggestedFilename(), rows };
}

describe('export', () => {
  test('of jobs has the filters and the order of the list, of all accounts', async () => {
    const page = await signedIn(site, '/jobs?status=Scheduled');
    await page.getByRole('row').nth(3).waitFor();
    const { file, rows } = await exportList(page, 'jobs');
    expect(file).toMatch(/^jobs-\d{4}-\d\d-\d\d\.csv$/);
    expect(rows.map(({ account, status, dateDue }) => [account, status, dateDue?.slice(0, 10)])).toEqual([
      ['acme', 'Scheduled', '2030-03-01'],
      ['acme', 'Scheduled', '2030-03-02'],
      ['bakery', 'Scheduled', '2030-03-04'],
    ]);
    expect(rows[1]?.description).toBe(`'=HYPERLINK("x")`);
    await axe(page);
  });

  test('of events has those of the filter, newest first', async () => {
    const page = await signedIn(site, '/?view=feed&account=bakery&types=account.baselined');
    await page.getByRole('button', { name: 'Export CSV: events' }).waitFor();
    const { rows } = await exportList(page, 'events');
    expect(rows.map(({ type }) => type)).toEqual(['account.baselined']);
    expect(JSON.parse(rows[0]?.data ?? '')).toMatchObject({ account: 'bakery' });
  });

  test('of events has the matches of a text, also beyond the newest 10,000 events', async () => {
    type Event = { readonly data: { readonly account: string } };
    const read = () => site.api<{ events: Event[] }>('/events?types=account.baselined&order=newest');
    await expect.poll(async () => (await read()).events.length).toBe(2);
    const { events } = await read();
    const [other, match] = ['acme', 'bakery'].map((id) => events.find(({ data }) => data.account === id));
    const page = await signedIn(site, '/?view=feed&text=bakery');
    await page.getByRole('button', { name: 'Export CSV: events' }).waitFor();
    let pages = 0;
    await page.route(/\/v1\/events\?.*limit=1000/, (route) => {
      pages += 1;
      const json =
        pages > 10
          ? { events: [match], previous: null }
          : { events: Array(1000).fill(other), previous: 'e1.1' };
      return route.fulfill({ json });
    });
    const { rows } = await exportList(page, 'events');
    expect(rows.map(({ data }) => JSON.parse(data ?? '').account)).toEqual(['bakery']);
  });

  test('of accounts has their status', async () => {
    const page = await signedIn(site, '/health');
    const { rows } = await exportList(page, 'accounts');
    expect(rows.map((row) => [row.id, row['status.openJobs']])).toEqual([
      ['acme', '3'],
      ['bakery', '1'],
    ]);
  });
});
