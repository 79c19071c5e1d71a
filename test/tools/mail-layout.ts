/**
 * Generates `shared/notifications/layout.ts` from the MJML beside it: one function, so that rendering a mail needs neither MJML
 * nor a template engine.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import mjml from 'mjml';

const SOURCE = 'shared/notifications/layout.mjml';
const COMPILED = 'shared/notifications/layout.ts';

/** Values that MJML requires, and output that is changed, each with its replacement. */
const FILLED_IN: readonly (readonly [string, string])[] = [
  ['#a1b2c3', '{{ mail.brand.color }}'],
  ['#a1b2c4', '{{ mail.brand.color_text }}'],
  ['#a1b2c5', '{{ mail.edge }}'],
  ['13px 23px', '{{ mail.buttonPadding }}'],
  // Mailboxes fill up a short preheader with the text below it.
  ['{{ mail.preheader }}</div>', `{{ mail.preheader }}${'&#847;&zwnj;&nbsp;'.repeat(60)}</div>`],
];

const HEAD = `// Generated from layout.mjml by: LAYOUT=write npm run test:tools
import type { MailParts } from './mail-parts.ts';

/** Returns the HTML of an e-mail. All inserted text is escaped by \`escapeHtml\`. */
export function layout(mail: MailParts, escapeHtml: (text: string) => string): string {
let html = '';`;

/** Returns the expected content of `layout.ts`. */
export async function compileLayout(): Promise<string> {
  // Without fonts: mails load nothing but the logo.
  const { html, errors } = await mjml(readFileSync(SOURCE, 'utf8'), {
    validationLevel: 'strict',
    keepComments: false,
    fonts: {},
  });
  if (errors.length > 0) throw new Error(JSON.stringify(errors));
  const lines = html.split('\n').map((line) => line.trim());
  const compact = lines.filter((line) => line !== '').join('\n');
  const filled = FILLED_IN.reduce((text, [value, expression]) => text.replaceAll(value, expression), compact);
  const body = filled
    .replace(/[`\\]|\$\{/g, '\\$&')
    // A tag ends within the line that its first attribute begins.
    .replace(/(<\w+)\n/g, '$1 ')
    .replace(/\n>/g, '>')
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is part of the generated code.
    .replaceAll(/\{\{ (.+?) \}\}/g, '${escapeHtml($1)}')
    .replaceAll(/\{% (.+?) %\}/g, '`;\n$1\nhtml += `');
  const statements = `html += \`${body}\`;`.replaceAll(/^html \+= ``;\n/gm, '');
  return formatted(`${HEAD}\n${statements}\nreturn html;\n}\n`);
}

function formatted(source: string): string {
  return execFileSync('node_modules/.bin/biome', ['format', `--stdin-file-path=${COMPILED}`], {
    input: source,
    encoding: 'utf8',
  });
}

/** Returns the current content of `layout.ts`. */
export const readLayout = (): string => readFileSync(COMPILED, 'utf8');

/** Writes `layout.ts`. */
export async function writeLayout(): Promise<void> {
  writeFileSync(COMPILED, await compileLayout());
}
