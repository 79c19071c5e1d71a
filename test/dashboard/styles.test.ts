/** The style sheets of the dashboard: each class is used, and each class that is used exists. */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';

const SOURCES = 'dashboard/src';
const sheets = globSync(`${SOURCES}/**/*.module.css`);
/** `<style sheet> <class>` of each class that a component reads from an imported style sheet. */
const used = new Set(globSync(`${SOURCES}/**/*.tsx`).flatMap(findUses));

function findUses(file: string): string[] {
  const source = readFileSync(file, 'utf8');
  const imports = source.matchAll(/^import (\w+) from '(.+\.module\.css)';$/gm);
  return [...imports].flatMap(([, name, path = '']) =>
    [...source.matchAll(new RegExp(`(?<![/.])\\b${name}\\.(\\w+)`, 'g'))].map(
      ([, className]) => `${join(dirname(file), path)} ${className}`,
    ),
  );
}

function readClasses(sheet: string): Set<string> {
  const selectors = readFileSync(sheet, 'utf8')
    .replace(/\/\*.*?\*\//gs, '')
    .replace(/\{[^{}]*\}/g, '{}');
  return new Set([...selectors.matchAll(/\.([a-z]\w*)/gi)].map(([, name]) => name ?? ''));
}

describe.each(sheets)('%s', (sheet) => {
  const classes = readClasses(sheet);

  it('has no class that no component uses', () => {
    expect([...classes].filter((name) => !used.has(`${sheet} ${name}`))).toEqual([]);
  });

  it('has every class that a component uses', () => {
    const prefix = `${sheet} `;
    const missing = [...used].filter(
      (use) => use.startsWith(prefix) && !classes.has(use.slice(prefix.length)),
    );
    expect(missing).toEqual([]);
  });
});
