/** Parts of Markdown documents that tests run. */
import { readFileSync } from 'node:fs';

/** Returns the text below a heading, up to the next heading of the same or a higher level. Throws if there is no such heading. */
export function readSection(file: string, title: string): string {
  const text = readFileSync(file, 'utf8');
  const heading = new RegExp(`^(#+) ${title}$`, 'm').exec(text);
  if (!heading) throw new Error(`${file} has no heading "${title}".`);
  const rest = text.slice(heading.index + heading[0].length);
  // A `#` in a code block begins a comment.
  const fenced = rest.replace(/^```[\s\S]*?^```$/gm, (block) => block.replace(/^#/gm, ' '));
  const end = fenced.search(new RegExp(`^#{1,${heading[1]?.length}} `, 'm'));
  return end === -1 ? rest : rest.slice(0, end);
}

/** Returns the contents of the code blocks of a language. */
export function getBlocks(text: string, language: string): string[] {
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\n([\\s\\S]*?)^\`\`\`$`, 'gm'))].map(
    ([, code = '']) => code,
  );
}

/** Returns the commands of the shell blocks: one for each line, without comments, with continued lines joined. */
export function getCommands(text: string): string[] {
  return getBlocks(text, 'sh')
    .flatMap((code) => code.replace(/\\\n\s*/g, '').split('\n'))
    .map((line) => line.replace(/(^|\s)# .*$/, '').trim())
    .filter((line) => line !== '');
}
