/**
 * `npm run build`: makes `dist/` the package that others install, complete and without dependencies; `npm pack ./dist` packs it
 * (docs/decisions/0012-what-is-published.md). `node build.ts <folder>` builds elsewhere, and from the sources as they are.
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeDocuments } from './documents.ts';
import { typesOfEvents } from './shared/events/typescript.ts';

const [folder] = process.argv.slice(2);
const out = folder ?? 'dist';
if (folder === undefined) {
  writeFileSync('receive/events.ts', typesOfEvents());
  writeDocuments('docs');
}
rmSync(out, { recursive: true, force: true });
execFileSync('node_modules/.bin/tsc', ['-p', 'tsconfig.build.json', '--outDir', out], { stdio: 'inherit' });
const { name, version, description, type, engines, exports } = JSON.parse(
  readFileSync('package.json', 'utf8'),
);
const manifest = { name, version, description, type, engines, sideEffects: false, exports };
// The paths of package.json begin at the repository, those of the package in dist/ itself.
const text = JSON.stringify(manifest, null, 2).replaceAll('"./dist/', '"./');
writeFileSync(join(out, 'package.json'), `${text}\n`);
copyFileSync('docs/receiving-events.md', join(out, 'README.md'));
