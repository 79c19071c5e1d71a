/** A screen without a key is paired by its code, keeps its own key, and loses it when the key is revoked. */
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import {
  axe,
  expectFault,
  loaded,
  picture,
  scriptedSite,
  show,
  signedIn,
  visit,
} from '../support/browser.ts';

const site = scriptedSite({ prepare: (world) => world.addAccount({ region: 'us', name: 'nova' }) });

const code = async (screen: Page): Promise<string> => {
  const status = screen.getByRole('status', { name: /^Code \d{6}$/ });
  await status.waitFor();
  return (await status.getAttribute('aria-label'))?.slice('Code '.length) ?? '';
};

/** Reads the key that the screen stores. */
const storedKey = (screen: Page) => screen.evaluate(() => localStorage.getItem('jobwire.wall'));

async function pair(page: Page, digits: string, name: string): Promise<void> {
  await page.getByLabel(/^Code/).fill(`${digits.slice(0, 3)} ${digits.slice(3)}`);
  await page.getByLabel(/^Name/).fill(name);
  await page.getByRole('button', { name: 'Pair the screen' }).click();
}

test('a screen shows a code, readable on a phone and on a wall, in both themes', async () => {
  const screen = await visit(site, '/?wall=1', { size: 'wall' });
  await code(screen);
  for (const size of ['wall', 'phone'] as const) {
    for (const theme of ['light', 'dark'] as const) {
      await show(screen, { size, theme });
      await axe(screen);
      const overflow = () => {
        const { scrollWidth, clientWidth, scrollHeight, clientHeight } = document.documentElement;
        return [scrollWidth > clientWidth, scrollHeight > clientHeight];
      };
      expect(await screen.evaluate(overflow), size).toEqual([false, false]);
    }
  }
  await show(screen, { size: 'desktop', theme: 'dark' });
  await picture(screen, 'wall-code');
});

test('a user pairs a screen in Setup; it shows the wall of the chosen accounts, also after a restart, until its key is revoked', async () => {
  const screen = await visit(site, '/?wall=1', { size: 'wall' });
  const digits = await code(screen);
  const page = await signedIn(site, '/setup');
  await page.getByRole('link', { name: 'Wall displays' }).click();
  await page.getByLabel('Selected accounts').check();
  await page.getByLabel('nova', { exact: true }).check();
  await pair(page, digits, 'Dispatch desk');
  await page.getByRole('status').getByText('Wall display Dispatch desk gets its key').waitFor();

  await screen.getByRole('button', { name: 'Exit wall display' }).waitFor();
  const key = (await storedKey(screen)) ?? '';
  expect(key).toMatch(/^jw_/);
  expect(await site.api('/key', { key })).toMatchObject({
    ...{ name: 'Wall display Dispatch desk', role: 'read', accounts: ['nova'] },
  });
  await axe(screen);
  // The screen restarts at the address of the dashboard: session storage is empty.
  await screen.evaluate(() => sessionStorage.clear());
  await screen.goto(`${site.url}/`);
  await screen.getByRole('button', { name: 'Exit wall display' }).waitFor();
  expect(new URL(screen.url()).search).toBe('?wall=1');

  const row = page.getByRole('row').filter({ hasText: 'Dispatch desk' });
  await row.waitFor();
  await axe(page);
  await row.getByRole('button', { name: 'Revoke Wall display Dispatch desk' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
  await row.waitFor({ state: 'detached' });
  // The process caches a verified key for 30 s, and forgets it with a restart.
  for (const tab of [page, screen]) await tab.goto('about:blank');
  await site.stop();
  await site.start();
  expectFault(screen, /^answered 401/);
  await screen.goto(`${site.url}/?wall=1`);
  await code(screen);
  expect(await storedKey(screen)).toBeNull();
});

test('a wrong code pairs no screen, and the form displays an error', async () => {
  const page = await signedIn(site, '/setup/wall-displays');
  await pair(page, '12345', 'Desk');
  await page.getByText('must be the 6 digits that the screen shows').first().waitFor();
  expectFault(page, /^answered 422/);
  await pair(page, '000000', 'Desk');
  await page.getByRole('alert').getByText('must be a code that a screen shows now').waitFor();
  await axe(page);
});

test('a key for some accounts pairs a screen for its accounts only; without the role admin there is no form', async () => {
  const { key } = await site.makeKey('admin', ['acme']);
  const screen = await visit(site, '/?wall=1');
  const page = await signedIn(site, '/setup/wall-displays', { key });
  expect(await page.getByLabel(/^All accounts/).count()).toBe(0);
  await page.getByLabel('acme', { exact: true }).check();
  await pair(page, await code(screen), 'Desk of acme');
  await screen.getByRole('button', { name: 'Exit wall display' }).waitFor();
  expect(await site.api('/key', { key: (await storedKey(screen)) ?? '' })).toMatchObject({
    accounts: ['acme'],
  });

  const { key: operator } = await site.makeKey('operate');
  const other = await signedIn(site, '/setup/wall-displays', { key: operator });
  await other.getByText('Wall displays can be paired with the role admin.').waitFor();
  expect(await other.getByRole('button', { name: 'Pair the screen' }).count()).toBe(0);
  await loaded(other);
  await axe(other);
});

test('a user can sign in on a wall display instead of pairing it', async () => {
  const screen = await visit(site, '/?wall=1');
  await code(screen);
  await screen.getByRole('button', { name: 'Sign in instead' }).click();
  await screen.getByLabel('API key').fill(site.key);
  await screen.getByRole('button', { name: 'Sign in', exact: true }).click();
  await screen.getByRole('button', { name: 'Exit wall display' }).waitFor();
  expect(await storedKey(screen)).toBeNull();
});
