// Reasons for rejecting orders, and their messages.

import type { ValidationFailure } from '../../shared/ordering/contract/common.ts';
import codes from './error-codes.json' with { type: 'json' };

/** Reasons for rejecting an order, by `errorCode`. Empty if the code itself states the reason. The codes are stable. */
export const ERROR_CODES = codes;

/** Reason for rejecting an order. */
export type ErrorCode = keyof typeof ERROR_CODES;

/** Reasons that the ordering API answers with 500, without naming them. */
export const FAULTS: readonly ErrorCode[] = [
  'ItemsEmpty',
  'AddressUnroutable',
  'AssetUnknown',
  'DateDueMissing',
  'SizeUnknown',
];

/** A validation message. */
export type ValidationMessage = ValidationFailure['validationMessages'][number] & {
  readonly errorCode: ErrorCode;
};

/** Reports a validation error. Returns undefined, the result of a failed check. */
export type Report = (errorCode: ErrorCode, message: string) => undefined;

/** Whether a text is empty or blank. */
export const blank = (text: string | null | undefined): text is null | undefined | '' =>
  text == null || text.trim() === '';

/** Whether two texts are the same but for case and blanks around the second. */
export const same = (one: string, other: string | null | undefined): boolean =>
  one.toLowerCase() === other?.trim().toLowerCase();

/** A quoted input value, truncated for a message. */
export const quoted = (text: string): string => `"${text.length > 60 ? `${text.slice(0, 60)}…` : text}"`;
