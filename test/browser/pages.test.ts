/** What holds for every page: accessibility in both themes and sizes, customer input as text only, operation by keyboard. */
import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { axe, show, signedIn } from '../support/browser.ts';
import { furnishedDesk, HOSTILE, places, sharedTab } from './desk.ts';

const desk = furnishedDesk();
const open = sharedTab(desk);

describe.each(places)('$name', (place) => {
  test('every control is reachable by keyboard and shows its focus', async () => {
    const page = await open(place);
    const stops = await tabThrough(page);
    const unseen = stops.filter(({ seen }) => !seen).map(({ what }) => what);
    expect(unseen, 'without a visible focus').toEqual([]);
    const missed = await page.evaluate(notReached);
    expect(missed, 'not reached').toEqual([]);
  });

  test('keeps to WCAG 2.2 AA in both themes, on a phone and on a desk', async () => {
    const page = await open(place);
    expect(await page.title()).toMatch(/^.+ · Jobwire$/);
    for (const size of ['phone', 'desktop'] as const) {
      await show(page, { size, theme: 'dark' });
      await axe(page);
      await show(page, { theme: 'light' });
      await axe(page, { themeOnly: true });
    }
  });

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

/** Returns the elements that Tab reaches, from the start of the page. */
async function tabThrough(page: Page): Promise<{ what: string; seen: boolean }[]> {
  const stops: { what: string; seen: boolean }[] = [];
  await page.evaluate(() => {
    (document.activeElement as HTMLElement | null)?.blur();
    getSelection()?.removeAllRanges();
  });
  for (let at = 0; at < 400; at += 1) {
    await page.keyboard.press('Tab');
    const stop = await page.evaluate(async (number) => {
      // On its way across a frame of another process, for a moment nothing has the focus.
      if (document.activeElement === document.body && document.querySelector('iframe'))
        await new Promise((done) => {
          addEventListener('focusin', done, { once: true });
          setTimeout(done, 1000);
        });
      const one = document.activeElement;
      if (!one || one === document.body) return null;
      const before = one.getAttribute('data-was-reached');
      one.setAttribute('data-was-reached', String(number));
      // Date and time inputs have several stops.
      const within = before === String(number - 1);
      const again = before !== null && !within;
      const readStyle = (of: Element) => {
        const { outlineStyle, outlineWidth, boxShadow, borderColor } = getComputedStyle(of);
        return {
          ring: outlineStyle !== 'none' && outlineWidth !== '0px',
          rest: `${boxShadow} ${borderColor}`,
        };
      };
      // An outline of the element or of an ancestor, or a border that differs from the one without focus.
      const around = [one, one.parentElement, one.parentElement?.parentElement].filter((of) => !!of);
      let focused = around.map(readStyle);
      if (!focused.some(({ ring }) => ring)) {
        // What the loss of focus of the former element changes is rendered first.
        await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
        focused = around.map(readStyle);
      }
      let seen = focused.some(({ ring }) => ring);
      if (!seen && !within && one instanceof HTMLElement) {
        one.blur();
        seen = around.some((of, index) => readStyle(of).rest !== focused[index]?.rest);
        one.focus();
      }
      return { what: one.outerHTML.slice(0, 160), seen: seen || within, again };
    }, at);
    if (!stop || stop.again) return stops;
    stops.push(stop);
  }
  throw new Error(`Tab did not return to the start after ${stops.length} stops.`);
}

/** Runs in the page: returns the controls that Tab did not reach. */
function notReached(): string[] {
  const pressable =
    'a[href], button, input, select, textarea, summary, [role="button"], [role="tab"], [tabindex="0"]';
  return (
    [...document.querySelectorAll<HTMLElement>(pressable)]
      .filter(
        (one) =>
          one.checkVisibility({ visibilityProperty: true }) && !one.matches(':disabled, [tabindex="-1"]'),
      )
      .filter((one) => !one.hasAttribute('data-was-reached'))
      // Radio buttons of one name and parts of a composite have one stop; arrow keys reach the others.
      .filter((one) => !one.matches('input[type="radio"], [role="tab"], [role="option"], [role="menuitem"]'))
      .map((one) => one.outerHTML.slice(0, 160))
  );
}
