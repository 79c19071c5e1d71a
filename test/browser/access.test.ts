/** Actions without permission are not offered, and pages send no requests that are forbidden. */
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import type { Role } from '../../shared/api/key-input.ts';
import { getFaults, signedIn } from '../support/browser.ts';
import { sized } from '../support/runs.ts';
import { furnishedDesk, goTo, places } from './desk.ts';

const desk = furnishedDesk();

/** Names of controls that require the role operate or admin. */
const ACTIONS =
  /\b(resume|confirm|ping|retry|replay|resend|delete|remove|add|new|create|save|rotate|enable|disable|discard|import|edit|change|revoke|suppress|lift|customize)\b/i;
/** Names of controls that require the role admin. */
const ADMIN_ACTIONS = /\b(delete|remove|add|new|create|save|rotate|import|edit|change|revoke|customize)\b/i;
/** Controls that change only the view. */
const VIEW_CONTROLS = /^(Pause|Resume.*|Switch to .* colours|Remove (the )?filter.*|Add (a )?filter.*)$/;

/** Each role and each scope once. At full size also the other combinations. */
const KEYS: readonly (readonly [Role, readonly string[] | undefined, RegExp])[] = [
  ['read', ['acme'], ACTIONS],
  ['operate', undefined, ADMIN_ACTIONS],
  ['read', undefined, ACTIONS],
  ['operate', ['acme'], ADMIN_ACTIONS],
];

test.each(KEYS.slice(0, sized(2, 4)))(
  'a key with the role %s and accounts %j is offered only permitted actions',
  { timeout: 120_000 },
  async (role, accounts, forbidden) => {
    const { key } = await desk.makeKey(role, accounts);
    const page = await signedIn(desk, '/', { key });
    const wrong: string[] = [];
    for (const place of places) {
      // Another account is not found with this key.
      if (accounts && place.name === 'an account that was created through the API') continue;
      await goTo(desk, page, place);
      if ((await page.locator('[class*="skeleton"]').count()) > 0) wrong.push(`${place.name} stays empty`);
      for (const name of await getControls(page)) {
        if (forbidden.test(name) && !VIEW_CONTROLS.test(name)) wrong.push(`${place.name} offers ${name}`);
      }
      const foreign = accounts && (await page.locator('main').innerText()).match(/.*\bkiwi\b.*/)?.[0];
      if (foreign) wrong.push(`${place.name} shows ${foreign}`);
      wrong.push(...getFaults(page).map((fault) => `${place.name}: ${fault}`));
    }
    expect(wrong).toEqual([]);
  },
);

/** Returns the accessible names of the buttons and links of a page. */
function getControls(page: Page): Promise<string[]> {
  return page.evaluate(() =>
    [...document.querySelectorAll<HTMLElement>('main button, main a, main [role="menuitem"]')]
      .filter((one) => one.checkVisibility({ visibilityProperty: true }))
      // Links within text or a table lead to existing resources.
      .filter((one) => one.tagName !== 'A' || one.closest('p, td, li, nav') === null)
      .map((one) => one.getAttribute('aria-label') ?? one.innerText.trim()),
  );
}
