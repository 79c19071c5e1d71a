/** Built-in texts of all locales. The file of each language is in this folder. */
import type { Locale } from '../types.ts';
import { german } from './de.ts';
import { english } from './en.ts';
import { french } from './fr.ts';
import type { Texts } from './language.ts';

const american = english({
  ...{ apologize: 'apologize', canceled: 'canceled', email: 'email', parcel: 'package' },
  ...{ dispatched: 'shipped', toDispatch: 'ship', dispatch: 'shipping' },
});
const british = english({
  ...{ apologize: 'apologise', canceled: 'cancelled', email: 'email', parcel: 'parcel' },
  ...{ dispatched: 'dispatched', toDispatch: 'be dispatched', dispatch: 'dispatch' },
});

/** Texts by locale. The English locales also differ in their date formats, which Intl provides. */
export const texts: { readonly [locale in Locale]: Texts } = {
  'en-US': american,
  'en-GB': british,
  'en-AU': british,
  'en-NZ': british,
  de: german,
  fr: french,
};
