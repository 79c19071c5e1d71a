/**
 * `npm run build`: makes `dist/` the package that others install, complete and without dependencies; `npm pack ./dist` packs it
 * (docs/decisions/0012-published-package.md). `node build.ts <folder>` builds elsewhere, and
 * from the sources as they are.
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { bundleProgram, MODULES } from './bundles.ts';
import { buildDashboard } from './dashboard/build.ts';
import { writeConfigDocuments, writeDocuments } from './documents.ts';
import { PACKED, writeApiFiles } from './local/api-files.ts';
import { PACKED_DASHBOARD } from './local/dashboard.ts';
import { writeTypes } from './types.ts';

const [folder] = process.argv.slice(2);
const out = folder ?? 'dist';
if (folder === undefined) {
  writeDocuments('docs');
  writeConfigDocuments();
}
writeTypes();
rmSync(out, { recursive: true, force: true });
execFileSync('node_modules/.bin/tsc', ['-p', 'tsconfig.build.json', '--outDir', out], { stdio: 'inherit' });
// The bundled client contains the shared modules that it uses.
rmSync(join(out, 'shared'), { recursive: true });

const { name, version, description, type, engines, exports, bin, devDependencies } = JSON.parse(
  readFileSync('package.json', 'utf8'),
);
const cli = join(out, 'cli');
const [program, ...bundles] = await Promise.all([
  bundleProgram('local/main.ts', cli, 'start'),
  // Code that only some commands need is in separate files, which others do not load.
  build({
    ...MODULES,
    entryPoints: {
      jobwire: 'cli/main.ts',
      'sqlite-writer': 'shared/storage/sqlite-writer.ts',
      'render-worker': 'shared/notifications/render-worker.ts',
    },
    outdir: cli,
    external: ['#fauxqs', '../local/main.ts'],
  }),
  // What others import: without Node, and not minified.
  build({
    ...{ bundle: true, format: 'esm', platform: 'neutral', target: 'es2022', metafile: true },
    entryPoints: { 'client/index': 'client/index.ts', 'receive/index': 'receive/index.ts' },
    ...{ outdir: out, mainFields: ['module', 'main'], logLevel: 'warning' },
  }),
  // Files that are loaded by their path in the package keep that path (local/queues.ts).
  build({
    ...MODULES,
    entryPoints: ['app', 'persistence', 'sqs/sqsStore', 'sns/snsStore', 's3/s3Store'].map(
      (file) => `node_modules/fauxqs/dist/${file}.js`,
    ),
    outbase: 'node_modules/fauxqs/dist',
    outdir: join(cli, 'fauxqs'),
  }),
]);
// Built files that the HTTP API of `jobwire start` serves. It finds them beside the program.
await writeApiFiles(join(cli, PACKED));
// The dashboard and the pages of the demo are found beside the program, too.
cpSync(await buildDashboard(), join(cli, PACKED_DASHBOARD), { recursive: true });
cpSync('local/mailbox', join(cli, 'mailbox'), { recursive: true });
cpSync('sandbox/panel', join(cli, 'panel'), { recursive: true });
writeFileSync(
  join(cli, 'licenses.txt'),
  collectLicenses([...program, ...bundles.flatMap(({ metafile }) => Object.keys(metafile.inputs))]),
);

// For `jobwire start` on an older Node. Installed only on request.
const beside = { node: `>=${Number.parseInt(devDependencies.node, 10)}` };
const manifest = {
  name,
  version,
  description,
  type,
  engines,
  sideEffects: false,
  exports,
  imports: { '#fauxqs': './dist/cli/fauxqs/app.js' },
  bin,
  peerDependencies: beside,
  peerDependenciesMeta: Object.fromEntries(Object.keys(beside).map((one) => [one, { optional: true }])),
};
// Paths of package.json are relative to the repository, those of the package to dist/.
const text = JSON.stringify(manifest, null, 2).replaceAll('"./dist/', '"./');
writeFileSync(join(out, 'package.json'), `${text}\n`);
// The package does not contain the other documents, so links to them become text.
const guide = readFileSync('docs/receiving-events.md', 'utf8');
writeFileSync(join(out, 'README.md'), guide.replace(/\[([^\]]*)\]\((?!https?:|#)[^)]*\)/g, '$1'));
copyFileSync('docs/jobwire.schema.json', join(out, 'jobwire.schema.json'));

/** Returns the licences of every package in the bundles. `sources`: their paths. */
function collectLicenses(sources: readonly string[]): string {
  const folders = new Set(
    sources.flatMap((source) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(source)?.[0] ?? []),
  );
  const parts = [...folders].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    const file = readdirSync(folder).find((one) => /^licen[cs]e/i.test(one) && existsSync(join(folder, one)));
    const words = file === undefined ? '' : `\n${readFileSync(join(folder, file), 'utf8').trim()}\n`;
    return `${name} ${version}: ${license}\n${words}`;
  });
  return `The files beside this one contain these packages.\n\n${parts.join(`\n${'-'.repeat(80)}\n\n`)}`;
}
