/**
 * A child process: measures the bundle size of the functions of a cell and their import time in a new process, compared with bundles
 * without the SDK, which the runtime provides, and with an empty module.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundle, type DeployedFunction, synthesize } from './assets.ts';
import { lambdaEnvironment } from './lambda.ts';
import { median } from './statistics.ts';

/** Results of one function. Times are medians in ms. */
export interface BundleResults {
  readonly entry: string;
  readonly bytes: number;
  /** Duration of the import, without the response time of the AWS stub. */
  readonly importMs: number;
  /** Process start and import, minus those of an empty module. */
  readonly startMs: number;
  readonly importWithoutMapsMs: number;
  readonly bytesWithoutSdk: number;
  readonly importWithoutSdkMs: number;
  /** Largest packages, in kB. */
  readonly biggest: string;
}

const BIGGEST = 5;
/** Defines the globals that Lambda's runtime provides to streaming functions. */
const PROBE = `globalThis.awslambda = { streamifyResponse: (handler) => handler, HttpResponseStream: {} };
const from = performance.now(); await import(process.argv[1]);
process.stdout.write(String(performance.now() - from), () => process.exit(0));`;

interface Sample {
  readonly importMs: number;
  readonly wholeMs: number;
}

/** A module to import. */
interface Subject {
  readonly file: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly samples: Sample[];
}

const rounds = Number(process.argv[2]);
using cell = await synthesize();
const folder = mkdtempSync(join(tmpdir(), 'jobwire-bench-bundles-'));
// External packages are resolved from here, as Lambda resolves those of the runtime.
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
    // The first round warms the file cache.
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

/** Imports a module in a process with the relevant environment of the function on Lambda. */
async function importFresh({ file, environment }: Subject): Promise<Sample> {
  const env = lambdaEnvironment(environment);
  const from = performance.now();
  const child = spawn(process.execPath, ['--input-type=module', '--eval', PROBE, file], {
    ...{ env, stdio: ['ignore', 'pipe', 'inherit'] },
  });
  let output = '';
  child.stdout?.on('data', (chunk) => {
    output += chunk;
  });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`${file} could not be imported.`);
  return { importMs: Number(output), wholeMs: performance.now() - from };
}
