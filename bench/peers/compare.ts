/**
 * `npm run bench -- --peers`: runs Jobwire, Svix and Outpost one after the other on this machine, with the same events and receiver, and
 * prints one table. `--rounds N` (default 3), `--systems jobwire,svix,outpost`, `--quick`: small numbers, to see that everything works.
 */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { startChild } from '../child.ts';
import { measureSystem, type Sizes } from './measure.ts';
import type { ReceiverFacts } from './receiver.ts';
import { type Measured, toTable } from './results.ts';
import { buildJobwire, createSystem, findMissing, SYSTEMS, type SystemName } from './systems.ts';

/** Options, as given. */
export interface CompareOptions {
  readonly rounds?: string | undefined;
  readonly systems?: string | undefined;
  readonly quick?: boolean | undefined;
}

const FULL: Sizes = {
  ...{ sustainedEvents: 5_000, fanOutEvents: 400, slowEvents: 2_000, outstandingEvents: 2_000 },
  ...{ latencySeconds: 20, idleSeconds: 30, outageSeconds: 30, duplicateSeconds: 60 },
};
const QUICK: Sizes = {
  ...{ sustainedEvents: 400, fanOutEvents: 20, slowEvents: 400, outstandingEvents: 200 },
  ...{ latencySeconds: 5, idleSeconds: 5, outageSeconds: 10, duplicateSeconds: 5 },
};

/** Compares the systems and prints a table. Sets the exit code 1 if something is missing or a phase failed. */
export async function comparePeers(options: CompareOptions): Promise<void> {
  const names: readonly string[] = options.systems?.split(',') ?? SYSTEMS;
  const systems = SYSTEMS.filter((system) => names.includes(system));
  const rounds = Number(options.rounds ?? 3);
  const problem =
    systems.length !== names.length
      ? `--systems must be a list of ${SYSTEMS.join(', ')}.`
      : !Number.isInteger(rounds) || rounds < 1
        ? '--rounds must be an integer from 1.'
        : findMissing(systems);
  if (problem !== undefined) {
    console.error(problem);
    process.exitCode = 1;
    return;
  }
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
  const folder = mkdtempSync(join(tmpdir(), 'jobwire-peers-'));
  // PostgreSQL runs as another user.
  chmodSync(folder, 0o755);
  process.on('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  const sizes = options.quick ? QUICK : FULL;
  console.log('Building Jobwire …');
  const jobwire = await buildJobwire(join(folder, 'package'));
  using receiver = await startChild<ReceiverFacts>('peers/receiver.ts', [], [], true);
  const results = new Map<SystemName, Measured[]>(systems.map((system) => [system, []]));
  for (let round = 1; round <= rounds; round += 1) {
    for (const name of systems) {
      console.log(`Round ${round} of ${rounds}: measuring ${name} …`);
      const load = loadavg()[0];
      const system = await createSystem(name, join(folder, `${name}-${round}`), jobwire);
      const fail = (phase: string, cause: unknown): void => {
        console.error(`${name}, ${phase}: ${cause instanceof Error ? cause.message : cause}`);
        process.exitCode = 1;
      };
      const measured = await measureSystem(system, receiver, sizes, fail).catch(
        (cause: unknown): Measured => {
          fail('first start', cause);
          return {};
        },
      );
      await system.processes.kill();
      console.log(JSON.stringify({ bench: 'peers', system: name, round, load, ...measured }));
      results.get(name)?.push(measured);
    }
  }
  console.log(
    `\n${cpus().length} cores (${cpus()[0]?.model}), rounds: ${rounds}. Median (minimum–maximum).\n`,
  );
  console.log(toTable(results));
}
