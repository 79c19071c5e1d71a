/** The deployed functions of a cell, read from the synthesized template, so that added functions are measured too. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type BuildOptions, build, type Metafile } from 'esbuild';
import cdkJson from '../cdk.json' with { type: 'json' };
import { buildDashboard } from '../dashboard/build.ts';
import { entryPath, esbuildOptions } from '../infra/bundling.ts';
import { createApp } from '../infra/create-app.ts';

/** One resource of a template. */
export interface Resource {
  readonly Type: string;
  readonly Properties: { readonly [name: string]: unknown };
}

/** A deployed function. */
export interface DeployedFunction {
  /** Its entry file, without folder and extension. */
  readonly entry: string;
  /** The code of the asset. */
  readonly file: string;
  readonly bytes: number;
  readonly memoryMb: number;
  /** As in the template, with placeholders for values that CloudFormation resolves. */
  readonly environment: Readonly<Record<string, string>>;
}

/** A synthesized cell. `Symbol.dispose` deletes its files. */
export interface DeployedCell extends Disposable {
  readonly functions: readonly DeployedFunction[];
  readonly resources: Readonly<Record<string, Resource>>;
  /** Returns the resources of another cell of the same app. */
  getResources(stackName: string): Readonly<Record<string, Resource>>;
}

/** Synthesizes all cells, as `npm run synth` does, and returns one. Throws if an asset is not the bundle of an entry. */
export async function synthesize(stackName = 'jobwire-prod-us'): Promise<DeployedCell> {
  const outdir = mkdtempSync(join(tmpdir(), 'jobwire-bench-cdk-'));
  const assembly = createApp({
    context: { ...cdkJson.context, cells: 'jobwire.cells.example.json' },
    outdir,
    dashboard: await buildDashboard(),
  }).synth();
  const getResources = (name: string) =>
    assembly.getStackByName(name).template.Resources as Record<string, Resource>;
  const resources = getResources(stackName);
  const entries = new Map<string, string>();
  for (const [entry, { code }] of await bundleAll()) entries.set(code, entry);
  const functions = Object.entries(resources).flatMap(([id, { Type, Properties }]) => {
    if (Type !== 'AWS::Lambda::Function') return [];
    const { S3Key = '' } = Properties.Code as { S3Key?: string };
    const file = join(outdir, `asset.${S3Key.replace('.zip', '')}`, 'index.mjs');
    const entry = entries.get(readFileSync(file, 'utf8'));
    if (entry === undefined) throw new Error(`The asset of ${id} is not the bundle of any entry.`);
    const { Variables } = Properties.Environment as { Variables: Record<string, unknown> };
    return [
      {
        ...{ entry, file, bytes: statSync(file).size, memoryMb: Number(Properties.MemorySize) },
        environment: Object.fromEntries(
          Object.entries(Variables).map(([name, value]) => [name, standIn(value, resources)]),
        ),
      },
    ];
  });
  return {
    functions,
    resources,
    getResources,
    [Symbol.dispose]: () => rmSync(outdir, { recursive: true, force: true }),
  };
}

/** The entry files of a cell in `functions/`: those that export a handler, except that of a smoke test. */
export function functionEntries(): string[] {
  const folder = fileURLToPath(new URL('../functions/', import.meta.url));
  return readdirSync(folder)
    .filter(
      (file) =>
        file.endsWith('.ts') &&
        file !== 'smoke-sandbox.ts' &&
        /^export const handler\b/m.test(readFileSync(folder + file, 'utf8')),
    )
    .map((file) => file.slice(0, -'.ts'.length));
}

/** The bundle of an entry. */
export interface Bundle {
  readonly code: string;
  /** Minified bytes of each package, largest first. `.`: Jobwire's own code. */
  readonly packages: ReadonlyMap<string, number>;
  /** Folders of duplicated packages. */
  readonly copies: readonly string[];
  /** Source files that contribute to the bundle. */
  readonly files: readonly string[];
}

/** Bundles an entry with the options of its asset, or with other options. */
export async function bundle(entry: string, otherwise: BuildOptions = {}): Promise<Bundle> {
  const { metafile, outputFiles } = await build({
    ...esbuildOptions(entry),
    ...otherwise,
    write: false,
    metafile: true,
  });
  const code = outputFiles.find(({ path }) => path.endsWith('.mjs'));
  if (!code) throw new Error(`esbuild returned no output for ${entry}.`);
  return { code: code.text, ...contents(metafile) };
}

/** Bundles all entries in one build, which reads shared modules once. Each is the same as the bundle of its entry alone. */
export async function bundleAll({
  sourcemap = true,
}: BuildOptions = {}): Promise<ReadonlyMap<string, Bundle>> {
  const { outfile: _, ...options } = esbuildOptions('');
  const entries = functionEntries();
  const { metafile, outputFiles } = await build({
    ...options,
    sourcemap,
    entryPoints: Object.fromEntries(entries.map((entry) => [`${entry}/index`, entryPath(entry)])),
    outdir: 'cdk.out',
    outExtension: { '.js': '.mjs' },
  });
  return new Map(
    entries.map((entry) => {
      const path = `cdk.out/${entry}/index.mjs`;
      const [code, output] = [outputFiles.find((file) => file.path.endsWith(path)), metafile.outputs[path]];
      if (!code || !output) throw new Error(`esbuild returned no output for ${entry}.`);
      return [entry, { code: code.text, ...contents({ outputs: { [path]: output } }) }];
    }),
  );
}

function contents({ outputs }: Pick<Metafile, 'outputs'>): Omit<Bundle, 'code'> {
  const sizes = new Map<string, number>();
  const folders = new Map<string, Set<string>>();
  const files: string[] = [];
  for (const { inputs } of Object.values(outputs)) {
    for (const [file, { bytesInOutput }] of Object.entries(inputs)) {
      const [folder = '', name = '.'] = /^.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file) ?? [];
      if (bytesInOutput > 0) files.push(file);
      sizes.set(name, (sizes.get(name) ?? 0) + bytesInOutput);
      if (folder) folders.set(name, (folders.get(name) ?? new Set()).add(folder));
    }
  }
  return {
    packages: new Map([...sizes].filter(([, bytes]) => bytes > 0).sort(([, a], [, b]) => b - a)),
    copies: [...folders.values()].filter(({ size }) => size > 1).flatMap((copies) => [...copies]),
    files,
  };
}

function standIn(value: unknown, resources: Readonly<Record<string, Resource>>): string {
  if (typeof value === 'string') return value;
  const {
    Ref: id,
    'Fn::Join': [separator, parts] = [],
    'Fn::GetAtt': attribute,
  } = value as {
    readonly Ref?: string;
    readonly 'Fn::Join'?: readonly [string, readonly unknown[]];
    readonly 'Fn::GetAtt'?: readonly string[];
  };
  if (parts) return parts.map((part) => standIn(part, resources)).join(separator);
  if (id === undefined) return attribute?.join('.') ?? JSON.stringify(value);
  switch (resources[id]?.Type) {
    case 'AWS::SQS::Queue':
      return `https://sqs.us-east-1.amazonaws.com/111122223333/${id}`;
    case 'AWS::SNS::Topic':
      return `arn:aws:sns:us-east-1:111122223333:${id}`;
    default:
      return id;
  }
}
