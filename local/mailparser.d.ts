/** Types of the used parts of mailparser, which has no types. */
declare module 'mailparser' {
  interface Address {
    readonly name: string;
    readonly address: string;
  }
  interface Addresses {
    readonly value: readonly Address[];
  }
  export interface ParsedMail {
    readonly subject?: string;
    readonly messageId?: string;
    readonly inReplyTo?: string;
    /** A string if there is only one. */
    readonly references?: string | readonly string[];
    readonly from?: Addresses;
    readonly to?: Addresses;
    readonly replyTo?: Addresses;
    readonly text?: string;
    readonly html?: string | false;
    readonly attachments: readonly unknown[];
    /** As received, folded or unfolded. `key` is in lower case. */
    readonly headerLines: readonly { readonly key: string; readonly line: string }[];
    readonly headers: ReadonlyMap<string, unknown>;
  }
  export function simpleParser(
    source: string | Buffer,
    options?: {
      /** Whether not to derive a missing body from the other one. */
      readonly skipHtmlToText?: boolean;
      readonly skipTextToHtml?: boolean;
    },
  ): Promise<ParsedMail>;
}
