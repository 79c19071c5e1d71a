/** How functions are bundled: for the CDK, which makes the assets, and for esbuild itself, which tells what is in them. */
import { fileURLToPath } from 'node:url';
import { type BundlingOptions, LogLevel, OutputFormat } from 'aws-cdk-lib/aws-lambda-nodejs';
import type { BuildOptions } from 'esbuild';
import { API_FILES } from '../functions/api-files.ts';
import { DASHBOARD_FILES } from '../functions/dashboard-files.ts';
import { apiFiles } from '../local/api-files.ts';

const path = (file: string) => fileURLToPath(new URL(`../${file}`, import.meta.url));

// Some packages are CommonJS, and ask for Node's own modules by `require`.
const BANNER =
  "import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);";
const MAIN_FIELDS = ['module', 'main'];
/** What stands in for a package. Why: docs/decisions/0018-sdk-in-the-bundle.md. */
const ALIASES = { '@aws-sdk/credential-provider-node': path('functions/credentials.ts') };

/** Name of an entry file in `functions/`, without its extension, as a path. */
export const entryPath = (entry: string): string => path(`functions/${entry}.ts`);

/** For NodejsFunction. The SDK is that of the lockfile, tested together, not the one that the runtime happens to have. */
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

/** For the function that serves the documents of the API: they stand beside its bundle. */
export const withApiFiles = withFiles((outputDir) => [
  `mkdir "${outputDir}/${API_FILES}"`,
  ...[...apiFiles()].map(([name, from]) => `cp "${from}" "${outputDir}/${API_FILES}/${name}"`),
]);

/** For the function that puts the dashboard's files where they are served from. */
export const withDashboard = (folder: string): BundlingOptions =>
  withFiles((outputDir) => [`cp -R "${folder}" "${outputDir}/${DASHBOARD_FILES}"`]);

/** For functions that render accounts' own templates: adds the code of the worker beside the bundle. */
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

/** The same for esbuild: what it makes of an entry is byte for byte what is in the asset. */
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
