/** Customer texts that would have an effect if they were interpreted as markup or code. */
import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { signedIn } from '../support/browser.ts';
import { furnishedDesk, HOSTILE, places, sharedTab } from './desk.ts';

const desk = furnishedDesk();
const open = sharedTab(desk);

describe.each(places)('$name', (place) => {
  test('renders customer texts as text only', async () => {
    const page = await open(place);
    await expectHarmless(page);
  });
});

test.each([
  [
    'of its page',
    () => `/jobs/acme/${desk.jobs.hostile}`,
    [HOSTILE.description, HOSTILE.comments, HOSTILE.orderGroup],
  ],
  ['in the list', () => '/jobs?which=all', [HOSTILE.description, HOSTILE.longWord]],
])('a job’s texts are displayed unchanged, %s', async (_, path, texts) => {
  const page = await signedIn(desk, path());
  for (const text of texts) await page.getByText(text).first().waitFor();
});

test('a tracking link that is not a web address is displayed as text, without a link', async () => {
  const page = await signedIn(desk, `/jobs/acme/${desk.jobs.hostile}`);
  await page.getByText(HOSTILE.comments).first().waitFor();
  await expectHarmless(page);
});

test('events that arrive later are rendered as text too', async () => {
  const page = await signedIn(desk, '/?view=feed');
  await page.getByRole('status').getByText('Live', { exact: true }).waitFor();
  const description = '<img src=x onerror="window.hurt=6"> just now';
  desk.account.createJob({ description });
  await page.getByText(description).first().waitFor();
  await expectHarmless(page);
});

/** Checks that no text has become an element, a URL or a direction of writing. */
async function expectHarmless(page: Page): Promise<void> {
  for (const frame of page.frames()) {
    expect(await frame.evaluate(() => 'hurt' in window && window.hurt), frame.url()).toBe(false);
  }
  const found = await page.evaluate(() => {
    const elements = [...document.querySelectorAll('*')];
    const handlers = elements.filter((one) => one.getAttributeNames().some((name) => name.startsWith('on')));
    const addresses = elements.flatMap((one) => {
      const address = one.getAttribute('href') ?? one.getAttribute('src') ?? one.getAttribute('action');
      return address !== null && /^\s*(javascript|vbscript|data:text)/i.test(address) ? [address] : [];
    });
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const turning: string[] = [];
    for (let text = texts.nextNode(); text; text = texts.nextNode()) {
      if (/[\u202a-\u202e\u2066-\u2069]/.test(text.textContent ?? '') && !standsApart(text)) {
        turning.push(text.parentElement?.parentElement?.outerHTML.slice(0, 300) ?? '');
      }
    }
    return { handlers: handlers.map((one) => one.outerHTML.slice(0, 160)), addresses, turning };

    /** Returns whether the direction of a text does not affect other text: it is isolated, or alone in its line. */
    function standsApart(text: Node): boolean {
      for (let one = text.parentElement; one; one = one.parentElement) {
        const { display, unicodeBidi } = getComputedStyle(one);
        if (/isolate|plaintext/.test(unicodeBidi)) return true;
        if (display !== 'inline') return one.textContent === text.textContent;
      }
      return false;
    }
  });
  expect(found).toEqual({ handlers: [], addresses: [], turning: [] });
}
