/**
 * A child process: how big the functions of a cell are and how long a fresh process takes to import them, against the same
 * with the SDK left out, as the runtime would bring it, and against a module that is empty.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundle, type DeployedFunction, synthesize } from './assets.ts';
import { lambdaEnvironment, median } from './lambda.ts';

/** Results of one function. Times are medians in ms. */
export interface BundleResults {
  readonly entry: string;
  readonly bytes: number;
  /** From the start of the import to its end, less what the stand-in for AWS took to answer. */
  readonly importMs: number;
  /** Process and import, less those of an empty module. */
  readonly startMs: number;
  readonly importWithoutMapsMs: number;
  readonly bytesWithoutSdk: number;
  readonly importWithoutSdkMs: number;
  /** The biggest packages, with kB. */
  readonly biggest: string;
}

const BIGGEST = 5;
/** With what Lambda's runtime has ready for functions that stream. */
const PROBE = `globalThis.awslambda = { streamifyResponse: (handler) => handler, HttpResponseStream: {} };
const from = performance.now(); await import(process.argv[1]);
process.stdout.write(String(performance.now() - from), () => process.exit(0));`;

interface Sample {
  readonly importMs: number;
  readonly wholeMs: number;
}

/** Something to import. */
interface Subject {
  readonly file: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly samples: Sample[];
}

const rounds = Number(process.argv[2]);
using cell = await synthesize();
const folder = mkdtempSync(join(tmpdir(), 'jobwire-bench-bundles-'));
// What is left out of a bundle is found from here, as a function finds the runtime's.
symlinkSync(fileURLToPath(new URL('../node_modules', import.meta.url)), join(folder, 'node_modules'));

const empty = subject(write('empty', 'export {};'), {});
const functions = await Promise.all(
  cell.functions.map(async (fn) => {
    const { packages } = await bundle(fn.entry);
    const { code } = await bundle(fn.entry, { external: ['@aws-sdk/*', '@smithy/*', '@aws/*'] });
    return {
      ...{ fn, packages, bytesWithoutSdk: Buffer.byteLength(code) },
      deployed: subject(fn.file, fn.environment),
      withoutMaps: subject(fn.file, withoutMaps(fn)),
      withoutSdk: subject(write(`${fn.entry}-without-sdk`, code), withoutMaps(fn)),
    };
  }),
);

const subjects = functions.flatMap(({ deployed, withoutMaps, withoutSdk }) => [
  deployed,
  withoutMaps,
  withoutSdk,
]);
for (let round = -1; round < rounds; round += 1) {
  // The order alternates, so that noise of the machine affects all sides equally.
  for (const each of round % 2 === 0 ? [empty, ...subjects] : [...subjects.toReversed(), empty]) {
    const sample = await importFresh(each);
    // The first round warms up the file cache.
    if (round >= 0) each.samples.push(sample);
  }
}

process.send?.(
  functions.map(
    ({ fn, packages, bytesWithoutSdk, deployed, withoutMaps, withoutSdk }): BundleResults => ({
      entry: fn.entry,
      bytes: fn.bytes,
      importMs: median(deployed.samples.map((sample) => sample.importMs)),
      startMs:
        median(deployed.samples.map((sample) => sample.wholeMs)) -
        median(empty.samples.map((sample) => sample.wholeMs)),
      importWithoutMapsMs: median(withoutMaps.samples.map((sample) => sample.importMs)),
      bytesWithoutSdk,
      importWithoutSdkMs: median(withoutSdk.samples.map((sample) => sample.importMs)),
      biggest: [...packages]
        .slice(0, BIGGEST)
        .map(([name, bytes]) => `${name} ${Math.round(bytes / 1000)}`)
        .join(', '),
    }),
  ),
);
rmSync(folder, { recursive: true });
process.disconnect();

function subject(file: string, environment: Readonly<Record<string, string>>): Subject {
  return { file, environment, samples: [] };
}

function withoutMaps({ environment }: DeployedFunction): Record<string, string> {
  return { ...environment, NODE_OPTIONS: '' };
}

function write(name: string, code: string): string {
  mkdirSync(join(folder, name));
  writeFileSync(join(folder, name, 'index.mjs'), code);
  return join(folder, name, 'index.mjs');
}

/** In a process with the environment that the function has on Lambda, as far as it matters, and no other. */
async function importFresh({ file, environment }: Subject): Promise<Sample> {
  const env = lambdaEnvironment(environment);
  const from = performance.now();
  const child = spawn(process.execPath, ['--input-type=module', '--eval', PROBE, file], {
    ...{ env, stdio: ['ignore', 'pipe', 'inherit'] },
  });
  let said = '';
  child.stdout?.on('data', (chunk) => {
    said += chunk;
  });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`${file} could not be imported.`);
  return { importMs: Number(said), wholeMs: performance.now() - from };
}
