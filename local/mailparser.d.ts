/** What is used of `mailparser`, which brings no types. */
declare module 'mailparser' {
  interface ParsedAddresses {
    readonly value: readonly { readonly name: string; readonly address?: string }[];
    readonly text: string;
  }
  interface ParsedMail {
    readonly subject?: string;
    readonly from?: ParsedAddresses;
    readonly to?: ParsedAddresses | readonly ParsedAddresses[];
    readonly replyTo?: ParsedAddresses;
    readonly date?: Date;
    readonly messageId?: string;
    readonly inReplyTo?: string;
    readonly references?: string | readonly string[];
    readonly html?: string | false;
    readonly text?: string;
    /** By their names in small letters; of some the parsed parts. */
    readonly headers: ReadonlyMap<string, unknown>;
    /** As they came, folded as they were. */
    readonly headerLines: readonly { readonly key: string; readonly line: string }[];
    readonly attachments: readonly { readonly filename?: string; readonly contentType: string }[];
  }
  export function simpleParser(
    source: string | Uint8Array,
    options?: {
      readonly skipHtmlToText?: boolean;
      readonly skipTextToHtml?: boolean;
      readonly skipImageLinks?: boolean;
      readonly skipTextLinks?: boolean;
    },
  ): Promise<ParsedMail>;
}
