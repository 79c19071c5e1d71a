/** Bundles for Node. */
import { relative } from 'node:path';
import type { BuildOptions } from 'esbuild';
import { type Plugin, rolldown } from 'rolldown';

/** Options of bundles that are ES modules. */
export const MODULES = {
  ...{ bundle: true, format: 'esm', splitting: true },
  platform: 'node',
  target: 'node20.18',
  // Names stay, because they appear in errors that users report. To restore short names at run time would cost each start 30 ms.
  minifyWhitespace: true,
  minifySyntax: true,
  // Node prints the line of an uncaught error.
  lineLimit: 160,
  mainFields: ['module', 'main'],
  legalComments: 'none',
  metafile: true,
  logLevel: 'warning',
  // Some packages are CommonJS and load Node's own modules by `require`.
  banner: {
    js: "import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);",
  },
} as const satisfies BuildOptions;

/** Escapes characters that are not ASCII: `requireCached` reads ASCII, which takes less time and memory. */
const ASCII: Plugin = {
  name: 'ascii',
  generateBundle(_, bundle) {
    for (const chunk of Object.values(bundle)) {
      if (chunk.type === 'chunk') chunk.code = chunk.code.replace(/[\u0080-\uffff]/g, escapeUnit);
    }
  },
};

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/**
 * Writes a program to a folder as CommonJS modules for `requireCached` of shared/short-start.ts: `name`.cjs contains all modules that `entry`
 * loads at its start, and further files those that are loaded later. The modules cannot use `await` at their top level. Returns the
 * paths of all sources, relative to the working folder.
 */
export async function bundleProgram(entry: string, folder: string, name: string): Promise<string[]> {
  await using bundle = await rolldown({
    input: { [name]: entry },
    ...{ platform: 'node', external: ['#fauxqs'], resolve: { mainFields: [...MODULES.mainFields] } },
    transform: { define: { 'import.meta.resolve': 'undefined' } },
    plugins: [ASCII],
  });
  const { output } = await bundle.write({
    ...{ dir: folder, format: 'cjs', comments: false, minify: false },
    ...{ entryFileNames: '[name].cjs', chunkFileNames: `${name}-[name]-[hash].cjs` },
    codeSplitting: { groups: [{ name, tags: ['$initial'] }] },
  });
  return output.flatMap((chunk) =>
    chunk.type === 'chunk' ? chunk.moduleIds.map((id) => relative('.', id)) : [],
  );
}
