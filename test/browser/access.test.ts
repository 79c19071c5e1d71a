/** What a key may not do is not offered, and not asked for either: a refused request is a fault of the page. */
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import type { Role } from '../../shared/api/key-input.ts';
import { faultsOf, signedIn } from '../support/browser.ts';
import { furnishedDesk, goTo, places } from './desk.ts';

const desk = furnishedDesk();

/** Whoever may only read does nothing of this. */
const DOING =
  /\b(resume|confirm|ping|retry|replay|resend|delete|remove|add|new|create|save|rotate|enable|disable|discard|import|edit|change|revoke|make)\b/i;
/** Whoever operates changes nothing that lasts. */
const SETTING = /\b(delete|remove|add|new|create|save|rotate|import|edit|change|revoke|make)\b/i;
/** Of what one looks at, not of what is. */
const OWN = /^(Pause|Resume.*|Switch to .* colours|Remove (the )?filter.*|Add (a )?filter.*)$/;

const KEYS: readonly (readonly [Role, readonly string[] | undefined, RegExp])[] = [
  ['read', undefined, DOING],
  ['read', ['acme'], DOING],
  ['operate', undefined, SETTING],
  ['operate', ['acme'], SETTING],
];

test.each(KEYS)('a key to %s, for %j', { timeout: 120_000 }, async (role, accounts, forbidden) => {
  const { key } = await desk.makeKey(role, accounts);
  const page = await signedIn(desk, '/favicon.svg', { key });
  const wrong: string[] = [];
  for (const place of places) {
    // Of another account there is nothing to be seen; that is told like what is not there.
    if (accounts && place.name === 'an account that was made here') continue;
    await goTo(desk, page, place);
    for (const name of await controlsOf(page)) {
      if (forbidden.test(name) && !OWN.test(name)) wrong.push(`${place.name} offers ${name}`);
    }
    const foreign = accounts && (await page.locator('main').innerText()).match(/.*\bkiwi\b.*/)?.[0];
    if (foreign) wrong.push(`${place.name} shows ${foreign}`);
    wrong.push(...faultsOf(page).map((fault) => `${place.name}: ${fault}`));
  }
  expect(wrong).toEqual([]);
});

/** The names of what can be pressed or filled in on a page. */
function controlsOf(page: Page): Promise<string[]> {
  return page.evaluate(() =>
    [...document.querySelectorAll<HTMLElement>('main button, main a, main [role="menuitem"]')]
      .filter((one) => one.checkVisibility({ visibilityProperty: true }))
      // A link within a text or a table leads to what there is.
      .filter((one) => one.tagName !== 'A' || one.closest('p, td, li, nav') === null)
      .map((one) => one.getAttribute('aria-label') ?? one.innerText.trim()),
  );
}
