/** Bundles for Node. */
import { type BuildOptions, build, type Metafile } from 'esbuild';

const BUNDLE = {
  bundle: true,
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
} as const satisfies BuildOptions;

/** Options of bundles that are ES modules. Some packages are CommonJS and load Node's own modules by `require`. */
export const MODULES = {
  ...BUNDLE,
  ...{ format: 'esm', splitting: true },
  banner: {
    js: "import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);",
  },
} as const satisfies BuildOptions;

const PROGRAM = {
  ...BUNDLE,
  ...{ format: 'cjs', charset: 'ascii', outExtension: { '.js': '.cjs' } },
} as const satisfies BuildOptions;

/** Large packages that only the mailbox of the demo loads. */
const SEPARATE = ['mailparser', 'smtp-server'];

/**
 * Writes a module and all that it imports to the file `name`.cjs of a folder, as a function of `require`, `module` and `import.meta`.
 * `loadProgram` of shared/short-start.ts executes it. The modules cannot use `await` at their top level.
 */
export async function bundleProgram(
  entry: string,
  folder: string,
  name: string,
): Promise<{ readonly metafile: Metafile }> {
  const files = SEPARATE.map((one) => `./${one}.cjs`);
  const [program, packages] = await Promise.all([
    build({
      ...PROGRAM,
      ...{ entryPoints: { [name]: entry }, outdir: folder },
      alias: Object.fromEntries(SEPARATE.map((one, at) => [one, files[at] ?? one])),
      external: ['#fauxqs', ...files],
      // `import()` would need an experimental feature of Node there.
      supported: { 'dynamic-import': false },
      define: { 'import.meta': '__importMeta' },
      banner: { js: '(function (require, module, __importMeta) {' },
      footer: { js: '})' },
    }),
    build({ ...PROGRAM, entryPoints: SEPARATE, outdir: folder }),
  ]);
  return { metafile: { inputs: { ...program.metafile.inputs, ...packages.metafile.inputs }, outputs: {} } };
}
