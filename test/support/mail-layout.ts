/** Makes `shared/notifications/layout.ts` of the MJML beside it, so that nothing of MJML is there when mails are sent. */
import { readFileSync, writeFileSync } from 'node:fs';
import mjml from 'mjml';

const SOURCE = 'shared/notifications/layout.mjml';
const COMPILED = 'shared/notifications/layout.ts';

/** What MJML takes only as values, and is filled in by Liquid. */
const FILLED_IN: readonly (readonly [string, string])[] = [
  ['#a1b2c3', '{{ brand.color }}'],
  ['#a1b2c4', '{{ brand.color_text }}'],
  ['#a1b2c5', '{{ edge }}'],
  ['13px 23px', '{{ button_padding }}'],
];

/** What `layout.ts` has to be. */
export async function compileLayout(): Promise<string> {
  // Without fonts: mails load nothing from anywhere but the logo.
  const { html, errors } = await mjml(readFileSync(SOURCE, 'utf8'), {
    validationLevel: 'strict',
    keepComments: false,
    fonts: {},
  });
  if (errors.length > 0) throw new Error(JSON.stringify(errors));
  const lines = html.split('\n').map((line) => line.trim());
  const compact = lines
    .filter((line) => line !== '')
    .join('\n')
    .replace(/[`\\]|\$\{/g, '\\$&');
  const filled = FILLED_IN.reduce((text, [value, liquid]) => text.replaceAll(value, liquid), compact);
  return `// Made of layout.mjml; LAYOUT=write npx vitest run test/notification-words.test.ts makes it anew.\n\n/** The HTML of e-mails, in Liquid. */\nexport const layout = \`${filled}\`;\n`;
}

/** `layout.ts` as it is. */
export const readLayout = (): string => readFileSync(COMPILED, 'utf8');

/** Makes `layout.ts` anew. */
export async function writeLayout(): Promise<void> {
  writeFileSync(COMPILED, await compileLayout());
}
