/** The texts that are there without anybody writing one, as data: each language is a file beside this one. */
import type { Locale, MessageKind } from '../types.ts';
import { german } from './de.ts';
import { english } from './en.ts';
import { french } from './fr.ts';

/** What the layout says around a template. */
export interface Labels {
  /** A job that has no order number. */
  readonly job: (jobNumber: number) => string;
  /** Parcels first to last of so many. */
  readonly parcels: (first: number, last: number, of: number) => string;
  /** On a button, with the number if there is one. */
  readonly track: (number: string | null) => string;
  /** Of a parcel that has a number and no link. */
  readonly trackingNumber: (number: string) => string;
  /** Above what is in so many parcels. */
  readonly contents: (parcels: number) => string;
  /** Above the jobs without tracking, where others have some. */
  readonly untracked: string;
  /** Above the jobs where none has tracking. */
  readonly noTracking: string;
  /** Jobs for which there was no room. */
  readonly more: (jobs: number) => string;
  readonly dispatchedOn: (day: string) => string;
  /** What a due date is now, and was; not both null. */
  readonly newDueDate: (to: string | null, from: string | null) => string;
  readonly footerReason: (brand: string) => string;
  readonly unsubscribe: string;
  /** With the space before it that some languages set. */
  readonly colon: string;
}

/** All texts of a language; those of e-mails and SMS are Liquid, as anybody's own are (docs/notifications.md). */
export interface Texts {
  readonly labels: Labels;
  readonly email: {
    readonly [kind in MessageKind]: {
      readonly subject: string;
      readonly preheader: string;
      readonly heading: string;
      readonly intro: string;
      readonly outro: string;
    };
  };
  readonly sms: { readonly [kind in MessageKind]: { readonly text: string } };
}

const american = english('canceled');
const british = english('cancelled');

/** The texts of every language. What else differs between the Englishes is dates, which Intl writes. */
export const texts: { readonly [locale in Locale]: Texts } = {
  'en-US': american,
  'en-GB': british,
  'en-AU': british,
  'en-NZ': british,
  de: german,
  fr: french,
};
