/** Input and results of rendering. */

import type { Branding } from './records.ts';
import type { SmsSize } from './sms-text.ts';
import type { Template } from './template.ts';
import type { Locale, NoticeContent } from './types.ts';

/** Input of rendering: content, recipient and branding. */
export interface RenderInput {
  readonly content: NoticeContent;
  readonly recipient: { readonly name: string | null; readonly locale: Locale; readonly zone: string };
  readonly branding: Branding;
  /** Address that answers go to. Without one, the built-in texts invite no answer. */
  readonly replyTo?: string | null;
  readonly unsubscribeUrl: string;
  /** The account's own template. Absent fields, and an absent template, use the default. */
  readonly template?: Template | undefined;
}

/** Result of rendering. A reason concerns the template and never contains customer text. */
export type Rendered<T> =
  | { readonly kind: 'rendered'; readonly value: T }
  | { readonly kind: 'failed'; readonly reason: string };

/** A rendered e-mail. */
export interface RenderedEmail {
  /** One line. */
  readonly subject: string;
  readonly html: string;
  readonly text: string;
}

/** A rendered SMS. */
export interface RenderedSms extends SmsSize {
  /** One line. */
  readonly text: string;
}
