/** MJML has no types of its own; this is what the tests use of it. */
declare module 'mjml' {
  export default function mjml(
    source: string,
    options: { validationLevel: 'strict'; keepComments: boolean; fonts: Record<string, string> },
  ): Promise<{ readonly html: string; readonly errors: readonly object[] }>;
}
