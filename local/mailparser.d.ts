/** What is used of mailparser, which has no types of its own. */
declare module 'mailparser' {
  interface Address {
    readonly name: string;
    readonly address: string;
  }
  interface Addresses {
    readonly value: readonly Address[];
    readonly text: string;
  }
  export interface ParsedMail {
    readonly subject?: string;
    readonly messageId?: string;
    readonly inReplyTo?: string;
    /** One is a text. */
    readonly references?: string | readonly string[];
    readonly date?: Date;
    readonly from?: Addresses;
    readonly to?: Addresses;
    readonly replyTo?: Addresses;
    readonly text?: string;
    readonly html?: string | false;
    readonly attachments: readonly unknown[];
    /** As they arrived, unfolded or not; `key` in lower case. */
    readonly headerLines: readonly { readonly key: string; readonly line: string }[];
    readonly headers: ReadonlyMap<string, unknown>;
  }
  export function simpleParser(
    source: string | Buffer,
    options?: {
      /** Whether a body that is not there is made of the other one. */
      readonly skipHtmlToText?: boolean;
      readonly skipTextToHtml?: boolean;
    },
  ): Promise<ParsedMail>;
}
