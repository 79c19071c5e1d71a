/** Types of the built-in texts of a language. */
import type { ContentKind } from '../types.ts';

/** Texts of the layout around a template. */
export interface Labels {
  /** Name of a job without an order number. */
  readonly job: (jobNumber: number) => string;
  /** Heading of the parcels `first` to `last`, of `of` in total. */
  readonly parcels: (first: number, last: number, of: number) => string;
  /** Text of a tracking link. `null`: the parcel has no number, or the carrier is unknown. */
  readonly track: (number: string | null, carrier: string | null) => string;
  /** Text of a parcel that has a number and no link. */
  readonly trackingNumber: (number: string) => string;
  /** Heading of the contents of one or several parcels. */
  readonly contents: (parcels: number) => string;
  /** Heading of the jobs without tracking, if others have tracking. */
  readonly untracked: string;
  /** Heading of the jobs if none has tracking. */
  readonly noTracking: string;
  /** Number of items that are not listed. */
  readonly more: (count: number) => string;
  readonly dispatchedOn: (day: string) => string;
  /** New and former due date of a job. At most one is `null`. */
  readonly newDueDate: (to: string | null, from: string | null) => string;
  /** Footer of e-mails: why the recipient receives them. */
  readonly footerReason: (brand: string) => string;
  readonly unsubscribe: string;
  /** A colon, with a space before it where the language requires one. */
  readonly colon: string;
}

/** All texts of a language. Those of e-mails and SMS are Liquid templates, like an account's own (docs/notifications.md). */
export interface Texts {
  readonly labels: Labels;
  readonly email: {
    readonly [kind in ContentKind]: {
      readonly subject: string;
      readonly preheader: string;
      readonly intro: string;
      readonly outro: string;
    };
  };
  readonly sms: { readonly [kind in ContentKind]: { readonly text: string } };
}
