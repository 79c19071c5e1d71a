/** What the page shares with the service: the schemas that check its forms come to a browser without Node, and small. */
import { gzipSync } from 'node:zlib';
import { build, type Metafile } from 'esbuild';
import { expect, test } from 'vitest';

/** What forms check with, by module. */
const SCHEMAS = {
  'shared/validation.ts': ['id', 'instant', 'typePatterns'],
  'shared/api/key-input.ts': ['NewKey', 'ROLES', 'roleAllows'],
  'shared/accounts/account-input.ts': ['NewAccount', 'AccountUpdate', 'NewCredentials', 'CredentialsTest'],
  'shared/delivery/endpoint-input.ts': ['NewEndpoint', 'EndpointUpdate', 'NewReplay', 'Rotation'],
  'shared/notifications/notification-input.ts': [
    'SettingsInput',
    'NewRecipient',
    'RecipientUpdate',
    'TemplateInput',
    'NewSuppression',
  ],
};
/** Compressed, with zod, which is most of it. */
const MAX_BYTES = 39_000;

test('the schemas of all forms come to a browser with zod alone, and small', async () => {
  const built = await bundled(SCHEMAS);
  expect(built.outside).toEqual([]);
  expect(packagesOf(built.inputs)).toEqual(['zod']);
  expect(built.bytes).toBeLessThanOrEqual(MAX_BYTES);
});

test.each(Object.entries(SCHEMAS))('%s comes to a browser with zod alone', async (module, names) => {
  const { outside, inputs } = await bundled({ [module]: names });
  expect({ outside, packages: packagesOf(inputs) }).toEqual({ outside: [], packages: ['zod'] });
});

/** Modules for a browser: what they take along, what of it no browser has, and their size compressed. */
async function bundled(modules: Readonly<Record<string, readonly string[]>>): Promise<{
  readonly inputs: Metafile['inputs'];
  readonly outside: readonly string[];
  readonly bytes: number;
}> {
  const exports = Object.entries(modules).map(
    ([module, names]) => `export { ${names.join(', ')} } from './${module}';`,
  );
  const { metafile, outputFiles } = await build({
    stdin: { contents: exports.join('\n'), resolveDir: process.cwd(), loader: 'ts' },
    bundle: true,
    minify: true,
    platform: 'browser',
    format: 'esm',
    target: 'es2023',
    write: false,
    metafile: true,
    // Left to be named here, instead of an error for the first one.
    external: ['node:*'],
    logLevel: 'silent',
  });
  const outside = Object.values(metafile.inputs).flatMap(({ imports }) =>
    imports.filter(({ external }) => external).map(({ path }) => path),
  );
  const [file] = outputFiles;
  if (!file) throw new Error('Nothing was built.');
  return { inputs: metafile.inputs, outside, bytes: gzipSync(file.contents).length };
}

function packagesOf(inputs: Metafile['inputs']): readonly string[] {
  const names = Object.keys(inputs).flatMap((path) => {
    const name = /node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*node_modules\/)/.exec(path)?.[1];
    return name === undefined ? [] : [name];
  });
  return [...new Set(names)].sort();
}
