/** Types of the used parts of packages that `npm ci` does not install. */
declare module 'mjml' {
  export default function mjml(
    source: string,
    options: { validationLevel: 'strict'; keepComments: boolean; fonts: Record<string, string> },
  ): Promise<{ readonly html: string; readonly errors: readonly object[] }>;
}

declare module '@asyncapi/parser' {
  export class Parser {
    parse(document: string): Promise<{
      readonly diagnostics: readonly { readonly code: string; readonly path: readonly (string | number)[] }[];
    }>;
  }
}
