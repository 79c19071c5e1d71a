/** Text version of an e-mail. */

import type { Block, RenderedFields } from './mail-parts.ts';
import type { View } from './template-variables.ts';
import type { Labels } from './texts/language.ts';

/** Line width of the text version, characters. */
const WIDTH = 72;

export function toPlainText(
  view: View,
  labels: Labels,
  fields: RenderedFields,
  blocks: readonly Block[],
): string {
  const { brand } = view;
  const paragraphs = (all: RenderedFields['intro']): string[] =>
    all.map((lines) => lines.map((line) => wrap(line)).join('\n'));
  const parts = [wrap(brand.name), underline(fields.heading, '='), ...paragraphs(fields.intro)];
  for (const block of blocks) {
    if (block.title !== null) parts.push(underline(block.title, '-'));
    for (const { text, link } of block.parcels) {
      parts.push(link === null ? wrap(text) : `${wrap(`${text}${labels.colon}`)}\n${link}`);
    }
    if (block.moreParcels !== null) parts.push(block.moreParcels);
    if (block.list !== null) parts.push(wrap(`${block.list}${labels.colon}`));
    parts.push(
      block.labels === null
        ? block.jobs.map((job) => formatJob(job, labels)).join('\n')
        : wrap(
            [block.labels.map((label) => label.text).join(', '), block.moreLabels].filter(Boolean).join(' '),
          ),
    );
  }
  parts.push(
    ...paragraphs(fields.outro),
    // Lines below `-- ` are a signature: mail programs omit it from replies.
    ['-- ', wrap(brand.name), ...brand.footer.map((line) => wrap(line)), brand.website]
      .filter(Boolean)
      .join('\n'),
    `${wrap(labels.footerReason(brand.name))}\n${labels.unsubscribe}${labels.colon}\n${view.unsubscribe_url}`,
  );
  return `${parts.filter((part) => part !== '').join('\n\n')}\n`;
}

function underline(text: string, line: '=' | '-'): string {
  const lines = wrap(text);
  const longest = Math.max(...lines.split('\n').map((one) => [...one].length));
  return `${lines}\n${line.repeat(Math.min(WIDTH, longest))}`;
}

function formatJob({ label, description, note }: Block['jobs'][number], { colon }: Labels): string {
  const line = description === null ? label : `${label}${colon} ${description}`;
  return [line, ...(note === null ? [] : [note])]
    .map((part, index) => wrap(part, index === 0 ? '* ' : '  ', '  '))
    .join('\n');
}

/** Wraps a text at {@link WIDTH}. Longer labels, such as links, stay whole. */
function wrap(text: string, first = '', rest = ''): string {
  const lines: string[] = [];
  let line = first;
  for (const word of text.split(' ')) {
    const begun = line.length > (lines.length === 0 ? first : rest).length;
    if (begun && line.length + 1 + word.length > WIDTH) {
      lines.push(line);
      line = `${rest}${word}`;
    } else line = begun ? `${line} ${word}` : `${line}${word}`;
  }
  return [...lines, line].join('\n');
}
