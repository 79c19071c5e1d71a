/**
 * `npm run release -- VERSION [--dry-run] [--skip-tests]`: makes a release of the current commit, in a temporary checkout. It sets the
 * version, installs, tests, checks, builds and packs, verifies the content of the package, and runs the installed package. Then it commits,
 * tags the commit, and prints the commands that publish it. With `--dry-run`, nothing is kept. `--skip-tests` requires `--dry-run`.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { VERSION } from './shared/version.ts';

/** Files of the package, and what it must contain. No sources, source maps, hidden files, keys and databases. */
const CONTENT =
  /^((cli|client|receive)\/([\w-][\w.-]*\/)*[\w-][\w.-]*\.(css|d\.ts|html|c?js|json|md|svg|txt)|cli\/dashboard\/\.vite\/manifest\.json|package\.json|README\.md|jobwire\.schema\.json)$/;
const REQUIRED = [
  'package.json',
  'README.md',
  'jobwire.schema.json',
  'cli/jobwire.js',
  'cli/start.cjs',
  'cli/licenses.txt',
  'cli/dashboard/index.html',
  'cli/api-files/openapi.json',
  'cli/api-files/docs-index.html',
  'client/index.js',
  'client/index.d.ts',
  'receive/index.js',
  'receive/index.d.ts',
];
const MAX_PACKED_BYTES = 5_000_000;
const MAX_INSTALLED_BYTES = 20_000_000;

/** The result of `npm pack --json`. */
export interface Packed {
  readonly filename: string;
  readonly version: string;
  /** Bytes of the tarball, and of its files. */
  readonly size: number;
  readonly unpackedSize: number;
  readonly files: readonly { readonly path: string }[];
}

/** Returns a sentence for each problem of a package. */
export function findProblems(packed: Packed, version: string): string[] {
  const paths = packed.files.map(({ path }) => path);
  return [
    ...(packed.version === version ? [] : [`The package has the version ${packed.version}.`]),
    ...REQUIRED.filter((path) => !paths.includes(path)).map((path) => `${path} is missing.`),
    ...paths.filter((path) => !CONTENT.test(path)).map((path) => `${path} does not belong into the package.`),
    ...(packed.size > MAX_PACKED_BYTES
      ? [`The package has ${packed.size} bytes, more than ${MAX_PACKED_BYTES}.`]
      : []),
    ...(packed.unpackedSize > MAX_INSTALLED_BYTES
      ? [`The installed package has ${packed.unpackedSize} bytes, more than ${MAX_INSTALLED_BYTES}.`]
      : []),
  ];
}

/** Returns the changelog with its section "Unreleased" as that of a version. `day`: as 2026-03-02. Throws if the section is empty. */
export function toReleasedChangelog(changelog: string, version: string, day: string): string {
  const heading = '## [Unreleased]\n';
  const [before, after] = changelog.split(heading);
  const section = after?.split(/^## /m)[0] ?? '';
  if (!/^- /m.test(section)) throw new Error('CHANGELOG.md has no entries in the section "Unreleased".');
  return `${before}${heading}\n## [${version}] - ${day}\n${after}`;
}

/** Returns whether a version is lower than another. */
export function isLower(version: string, other: string): boolean {
  return version.localeCompare(other, 'en', { numeric: true }) < 0;
}

/** Sets the version in the files that contain it. */
function setVersion(folder: string, version: string): void {
  const replace = (file: string, change: (text: string) => string): void => {
    const path = join(folder, file);
    writeFileSync(path, change(readFileSync(path, 'utf8')));
  };
  const { version: former } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
    version: string;
  };
  replace('shared/version.ts', (text) => text.replace(`'${former}'`, `'${version}'`));
  replace('CHANGELOG.md', (text) =>
    toReleasedChangelog(text, version, new Date().toISOString().slice(0, 10)),
  );
  // The commands that install the package name its file.
  for (const page of ['api', 'cli', 'receiving-events', 'self-hosting'])
    replace(`docs/${page}.md`, (text) => text.replaceAll(`jobwire-${former}.tgz`, `jobwire-${version}.tgz`));
}

function release(version: string, { dryRun, skipTests }: { dryRun: boolean; skipTests: boolean }): void {
  const git = (...args: string[]): string => execFileSync('git', args, { encoding: 'utf8' }).trim();
  if (git('status', '--porcelain') !== '')
    throw new Error('The working tree has changes. Commit or stash them.');
  if (git('tag', '--list', `v${version}`) !== '') throw new Error(`The tag v${version} exists.`);
  const folder = mkdtempSync(join(tmpdir(), 'jobwire-release-'));
  const checkout = join(folder, 'checkout');
  // npm must not take the settings of the npm that runs this script.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name)));
  const step = (name: string, command: string, args: readonly string[], cwd = checkout): void => {
    const began = performance.now();
    console.log(`> ${name}`);
    const { status, error } = spawnSync(command, args, { cwd, env, stdio: 'inherit' });
    if (error) throw error;
    if (status !== 0) throw new Error(`${name} failed with exit code ${status}.`);
    console.log(`  ${Math.round((performance.now() - began) / 1000)} s`);
  };
  git('worktree', 'add', '--detach', '--quiet', checkout, 'HEAD');
  try {
    setVersion(checkout, version);
    step('npm ci', 'npm', ['ci', '--no-audit', '--no-fund']);
    step('npm version', 'npm', ['version', version, '--no-git-tag-version', '--allow-same-version']);
    step('npm run build', 'npm', ['run', '--silent', 'build']);
    step('documents of the API as the new baseline', 'npm', [
      'exec',
      '--',
      'node',
      'documents.ts',
      'release',
    ]);
    if (!skipTests) {
      step('npm test', 'npm', ['test']);
      step('npm run check', 'npm', ['run', 'check']);
    }
    const pack = ['pack', './dist', '--json', '--ignore-scripts', '--pack-destination', folder];
    const output = execFileSync('npm', pack, { cwd: checkout, env, encoding: 'utf8' });
    const [packed] = JSON.parse(output) as Packed[];
    if (!packed) throw new Error('npm pack printed no package.');
    const problems = findProblems(packed, version);
    if (problems.length > 0) throw new Error(problems.join('\n'));
    const tarball = join(folder, packed.filename);
    const consumer = join(folder, 'consumer');
    mkdirSync(consumer);
    writeFileSync(join(consumer, 'package.json'), '{ "private": true }');
    step('npm install of the package', 'npm', ['install', '--no-audit', '--no-fund', tarball], consumer);
    const command = join(consumer, 'node_modules/.bin/jobwire');
    const printed = execFileSync(command, ['--version'], { env, encoding: 'utf8' }).trim();
    if (printed !== version) throw new Error(`jobwire --version prints ${printed}.`);
    console.log(
      `${packed.filename}: ${packed.files.length} files, ${packed.size} bytes, ${packed.unpackedSize} bytes installed`,
    );
    if (dryRun) return;
    const inCheckout = ['-C', checkout];
    git(...inCheckout, 'commit', '--all', '--quiet', '--message', `chore: release ${version}`);
    git(...inCheckout, 'tag', '--annotate', `v${version}`, '--message', `Jobwire ${version}`);
    const kept = join(process.cwd(), packed.filename);
    writeFileSync(kept, readFileSync(tarball));
    console.log(`git merge --ff-only v${version}\ngit push --follow-tags\nnpm publish ${kept}`);
  } finally {
    git('worktree', 'remove', '--force', checkout);
    rmSync(folder, { recursive: true, force: true });
  }
}

if (import.meta.main) {
  try {
    const { values, positionals } = parseArgs({
      options: {
        'dry-run': { type: 'boolean', default: false },
        'skip-tests': { type: 'boolean', default: false },
      },
      allowPositionals: true,
    });
    const [version = '', ...more] = positionals;
    if (!/^\d+\.\d+\.\d+$/.test(version) || more.length > 0)
      throw new Error('Give one version, such as: npm run release -- 1.2.3 --dry-run');
    if (isLower(version, VERSION)) throw new Error(`The version must not be lower than ${VERSION}.`);
    if (values['skip-tests'] && !values['dry-run']) throw new Error('--skip-tests requires --dry-run.');
    release(version, { dryRun: values['dry-run'], skipTests: values['skip-tests'] });
  } catch (cause) {
    console.error(cause instanceof Error ? cause.message : cause);
    process.exitCode = 1;
  }
}
