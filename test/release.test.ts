/** The version of Jobwire, and what a release verifies. `test/release.integration.test.ts` runs one. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { findProblems, isLower, type Packed, toReleasedChangelog } from '../release.ts';
import { VERSION } from '../shared/version.ts';

const read = (file: string): string => readFileSync(file, 'utf8');

test('the package, its lock file and the commands that install it have the version of the API and the CLI', () => {
  expect(JSON.parse(read('package.json'))).toMatchObject({ version: VERSION });
  const lock = JSON.parse(read('package-lock.json'));
  expect([lock.version, lock.packages[''].version]).toEqual([VERSION, VERSION]);
  const named = ['api', 'cli', 'receiving-events', 'self-hosting'].flatMap((page) =>
    [...read(`docs/${page}.md`).matchAll(/jobwire-([\d.]+)\.tgz/g)].map(
      ([, version]) => `${page} ${version}`,
    ),
  );
  expect(new Set(named)).toEqual(
    new Set(['api', 'cli', 'receiving-events', 'self-hosting'].map((page) => `${page} ${VERSION}`)),
  );
});

test('the changelog’s unreleased entries become those of the version; without entries there is no release', () => {
  const changelog =
    '# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A thing.\n\n## [1.0.0] - 2026-01-02\n\n- Old.\n';
  expect(toReleasedChangelog(changelog, '1.1.0', '2026-03-02')).toBe(
    '# Changelog\n\n## [Unreleased]\n\n## [1.1.0] - 2026-03-02\n\n### Added\n\n- A thing.\n\n## [1.0.0] - 2026-01-02\n\n- Old.\n',
  );
  const empty = '# Changelog\n\n## [Unreleased]\n\n## [1.0.0] - 2026-01-02\n\n- Old.\n';
  expect(() => toReleasedChangelog(empty, '1.1.0', '2026-03-02')).toThrow('no entries');
});

test.each([
  ['1.9.9', '1.10.0', true],
  ['0.99.0', '1.0.0', true],
  ['1.10.0', '1.9.9', false],
  ['1.0.0', '1.0.0', false],
])('the version %s is lower than %s, so it is not released: %s', (version, current, expected) => {
  expect(isLower(version, current)).toBe(expected);
});

test('a package that lacks a file, has a foreign one, another version or too many bytes is rejected', () => {
  const paths = [
    ...[
      'package.json',
      'README.md',
      'jobwire.schema.json',
      'cli/jobwire.js',
      'cli/start.cjs',
      'cli/licenses.txt',
    ],
    ...[
      'cli/dashboard/index.html',
      'cli/api-files/openapi.json',
      'cli/api-files/docs-index.html',
      'client/index.js',
      'client/index.d.ts',
    ],
    ...['receive/index.js', 'receive/index.d.ts'],
  ];
  const packed = (change: Partial<Packed> & { paths?: string[] }): Packed => ({
    ...{ filename: 'jobwire-1.1.0.tgz', version: '1.1.0', size: 1, unpackedSize: 2 },
    files: (change.paths ?? paths).map((path) => ({ path })),
    ...change,
  });
  expect(findProblems(packed({}), '1.1.0')).toEqual([]);
  expect(findProblems(packed({ paths: paths.slice(1) }), '1.1.0')).toEqual(['package.json is missing.']);
  const foreignPaths = [
    ...['test/a.js', 'cli/main.ts', 'cli/jobwire.js.map', '.npmrc', 'jobwire.json', 'cli/.npmrc'],
    ...[
      'cli/secret.key',
      'cli/tables.db',
      'cli/acme.secret',
      'cli/api-key',
      'client/../a.js',
      'cli/.data/a.js',
    ],
  ];
  for (const foreign of foreignPaths)
    expect(findProblems(packed({ paths: [...paths, foreign] }), '1.1.0')).toEqual([
      `${foreign} does not belong into the package.`,
    ]);
  expect(findProblems(packed({ version: '1.0.0' }), '1.1.0')).toEqual(['The package has the version 1.0.0.']);
  expect(findProblems(packed({ size: 9e6 }), '1.1.0')).toHaveLength(1);
  expect(findProblems(packed({ unpackedSize: 9e7 }), '1.1.0')).toHaveLength(1);
});
