/** The schemas that the dashboard shares with the API: they bundle for browsers without Node modules and stay small. */
import { gzipSync } from 'node:zlib';
import { build, type Metafile } from 'esbuild';
import { expect, test } from 'vitest';

/** The schemas of forms, by module. */
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
/** `leven` suggests event types. */
const PACKAGES = ['leven', 'zod'];
/** Maximum compressed size, including packages. */
const MAX_BYTES = 41_500;

test('the schemas of all forms bundle with only zod and leven, below the size limit', async () => {
  const built = await bundled(SCHEMAS);
  expect(built.outside).toEqual([]);
  expect(listPackages(built.inputs)).toEqual(PACKAGES);
  expect(built.bytes).toBeLessThanOrEqual(MAX_BYTES);
});

test.each(Object.entries(SCHEMAS))('%s bundles with only zod and leven', async (module, names) => {
  const { outside, inputs } = await bundled({ [module]: names });
  expect({ outside, packages: listPackages(inputs) }).toEqual({ outside: [], packages: expect.any(Array) });
  expect(PACKAGES).toEqual(expect.arrayContaining([...listPackages(inputs)]));
});

/** Bundles modules for a browser. Returns their inputs, imports that browsers lack, and the compressed size. */
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
    // Lists all Node imports instead of failing at the first.
    external: ['node:*'],
    logLevel: 'silent',
  });
  const outside = Object.values(metafile.inputs).flatMap(({ imports }) =>
    imports.filter(({ external }) => external).map(({ path }) => path),
  );
  const [file] = outputFiles;
  if (!file) throw new Error('The build has no output file.');
  return { inputs: metafile.inputs, outside, bytes: gzipSync(file.contents).length };
}

function listPackages(inputs: Metafile['inputs']): readonly string[] {
  const names = Object.keys(inputs).flatMap((path) => {
    const name = /node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*node_modules\/)/.exec(path)?.[1];
    return name === undefined ? [] : [name];
  });
  return [...new Set(names)].sort();
}
