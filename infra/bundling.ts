/**
 * Bundling of functions: for the CDK, which creates the assets, and for esbuild, which reports their
 * contents.
 */
import { fileURLToPath } from 'node:url';
import { type BundlingOptions, LogLevel, OutputFormat } from 'aws-cdk-lib/aws-lambda-nodejs';
import type { BuildOptions } from 'esbuild';
import { API_FILES } from '../functions/api-files.ts';
import { DASHBOARD_FILES } from '../functions/dashboard-files.ts';

const path = (file: string) => fileURLToPath(new URL(`../${file}`, import.meta.url));

// Some packages are CommonJS, and load Node's own modules with `require`.
const BANNER =
  "import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);";
const MAIN_FIELDS = ['module', 'main'];
/** Replacements of packages. Reason: docs/decisions/0018-bundled-aws-sdk.md. */
const ALIASES = { '@aws-sdk/credential-provider-node': path('functions/credentials.ts') };

/** Returns the path of an entry file in `functions/`, by its name without extension. */
export const entryPath = (entry: string): string => path(`functions/${entry}.ts`);

/** Options for NodejsFunction. The SDK is that of the lockfile, tested together, not the runtime's. */
export const bundling: BundlingOptions = {
  logLevel: LogLevel.WARNING,
  format: OutputFormat.ESM,
  minify: true,
  sourceMap: true,
  sourcesContent: false,
  bundleAwsSDK: true,
  mainFields: MAIN_FIELDS,
  banner: BANNER,
  esbuildArgs: { '--alias': Object.entries(ALIASES).map(([name, file]) => `${name}=${file}`) },
};

/** Options for the function that serves the API documents: they are stored beside its bundle. */
export const withApiFiles = withFiles((outputDir) => [
  `"${process.execPath}" "${path('documents.ts')}" files "${outputDir}/${API_FILES}"`,
]);

/** Options for the function that publishes the dashboard's files. */
export const withDashboard = (folder: string): BundlingOptions =>
  withFiles((outputDir) => [`cp -R "${folder}" "${outputDir}/${DASHBOARD_FILES}"`]);

/** Options for functions that render accounts' custom templates: adds the worker's code beside the bundle. */
export const withRenderWorker = withFiles((outputDir) => [
  [
    `"${path('node_modules/.bin/esbuild')}" "${path('shared/notifications/render-worker.ts')}"`,
    '--bundle --platform=node --target=node24 --format=esm --main-fields=module,main --minify --log-level=warning',
    `--outfile="${outputDir}/render-worker.mjs"`,
  ].join(' '),
]);

function withFiles(commands: (outputDir: string) => string[]): BundlingOptions {
  return {
    ...bundling,
    commandHooks: {
      beforeBundling: () => [],
      beforeInstall: () => [],
      afterBundling: (_, outputDir) => commands(outputDir),
    },
  };
}

/**
 * Returns the same options for esbuild: its output for an entry is byte for byte the content of the asset.
 */
export function esbuildOptions(entry: string) {
  return {
    absWorkingDir: path(''),
    entryPoints: [entryPath(entry)],
    outfile: path(`cdk.out/${entry}/index.mjs`),
    bundle: true,
    platform: 'node',
    target: 'node24',
    format: 'esm',
    minify: true,
    sourcemap: true,
    sourcesContent: false,
    mainFields: MAIN_FIELDS,
    banner: { js: BANNER },
    alias: ALIASES,
    logLevel: 'warning',
    metafile: true,
    write: false,
  } as const satisfies BuildOptions;
}
