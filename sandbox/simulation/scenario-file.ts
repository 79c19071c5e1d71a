/*
 * Scenarios as files: the initial state of a sandbox, and its scheduled changes. Built-in ones are in `scenarios/`. Defaults:
 *
 * - seed 1, speed 120, one account per region with the sandbox's demo credentials, 40 open jobs each, and the opening.
 * - Scheduled changes are timed in seconds of the sandbox clock from the start; each runs before the first request after its time,
 *   and within a second unless the clock is stopped.
 * - The clock is real time, which the control panel may advance; `stopped` stops it, so that only the panel advances it. It
 *   starts now, or at `startAt`: a stopped clock with the same start time gives the same answers in every run.
 */

import { readdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import * as z from 'zod';
import { strictObject, UnknownAccountError } from '../http/faults.ts';
import { freedomSchema } from '../http/freedom.ts';
import { formatIssue } from '../http/validation-messages.ts';
import { type Sandbox, type SandboxOptions, startSandbox } from '../server.ts';
import { REGIONS } from '../world/regions.ts';
import { createWorld, DuplicateValueError, type SandboxAccount } from '../world/world.ts';
import { SandboxClock } from './clock.ts';
import { addDemoAccounts, addPeople, createScenario, fastestSpeed, type Scenario } from './scenario.ts';
import { scheduledChangeSchema } from './scheduled-changes.ts';

const jobs = z.int().min(0).max(100_000);
const accountSchema = strictObject({
  region: z.enum(REGIONS),
  name: z.string().min(1).optional(),
  clientId: z.string().min(1).optional(),
  clientSecret: z.string().min(1).optional(),
  priceTier: z.enum(['T1', 'T2', 'T3']).optional(),
  jobs: jobs.optional(),
});

const fileSchema = strictObject({
  description: z.string().optional(),
  seed: z.int().min(0).max(1e9).default(1),
  speed: z.number().positive().max(1e6).default(120),
  clock: z.enum(['real', 'stopped']).default('real'),
  startAt: z.iso
    .datetime({ offset: true, error: 'must be a timestamp, such as 2026-11-20T16:14:00Z' })
    .optional(),
  accounts: z
    .union([z.int().min(1).max(100), z.array(accountSchema).min(1)], {
      // Errors within a list name the list, other errors name nothing.
      error: ({ input }) =>
        Array.isArray(input) ? undefined : 'must be an integer from 1 to 100, or a list of accounts',
    })
    .default(1),
  jobs: jobs.default(40),
  opening: z.boolean().default(true),
  leavesListOnDispatch: z.boolean().default(false),
  tokenLifetimeSeconds: z.number().positive().optional(),
  scheduledChanges: z.array(scheduledChangeSchema).default([]),
  freedom: freedomSchema.optional(),
});

/** A parsed scenario file, with defaults. */
export type ScenarioFile = z.output<typeof fileSchema>;

/** A scenario file is missing or invalid; the message names file, field and accepted values. */
export class ScenarioFileError extends Error {
  override name = 'ScenarioFileError';
}

const FOLDER = new URL('./scenarios/', import.meta.url);

/** The names of the built-in scenarios. */
export function scenarioNames(): string[] {
  return readdirSync(FOLDER)
    .filter((file) => file.endsWith('.json'))
    .map((file) => basename(file, '.json'));
}

/** Reads a scenario: a built-in one by name, or a file by path. Throws ScenarioFileError. */
export function loadScenario(nameOrPath: string): ScenarioFile {
  const own = scenarioNames().includes(nameOrPath);
  const file = own ? `${nameOrPath}.json` : nameOrPath;
  let text: string;
  try {
    text = readFileSync(own ? new URL(file, FOLDER) : file, 'utf8');
  } catch (cause) {
    const names = scenarioNames().join(', ');
    throw new ScenarioFileError(
      `The scenario ${nameOrPath} cannot be read: it must be one of ${names}, or the path of a file.`,
      { cause },
    );
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new ScenarioFileError(`${file} must contain valid JSON.`, { cause });
  }
  const parsed = fileSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new ScenarioFileError(`${file}: ${formatIssue(parsed.error.issues[0], 'the file')}`, {
    cause: parsed.error,
  });
}

/** Start options of a scenario; they override the fields of the file. */
export interface StartScenarioOptions
  extends Pick<SandboxOptions, 'port' | 'adminPort' | 'host' | 'onRequest'>,
    Partial<Pick<ScenarioFile, 'seed' | 'speed' | 'accounts' | 'jobs'>> {
  /** A clock in place of the file's. */
  clock?: SandboxClock;
}

/** A sandbox in which a scenario plays. */
export interface RunningScenario extends Sandbox {
  readonly scenario: Scenario;
  readonly clock: SandboxClock;
  readonly file: ScenarioFile;
}

/**
 * Starts a sandbox with a scenario, given by name, path or content. Throws ScenarioFileError, and the errors of `startSandbox`.
 */
export async function startScenario(
  which: string | z.input<typeof fileSchema>,
  options: StartScenarioOptions = {},
): Promise<RunningScenario> {
  const { clock: givenClock, seed, speed, accounts, jobs: jobCount, ...listening } = options;
  const loaded = typeof which === 'string' ? loadScenario(which) : fileSchema.parse(which);
  if (accounts !== undefined && typeof loaded.accounts !== 'number') {
    throw new ScenarioFileError(
      `${scenarioLabel(which)} lists its accounts, so a number of accounts per region cannot be given.`,
    );
  }
  const file: ScenarioFile = {
    ...loaded,
    seed: seed ?? loaded.seed,
    speed: speed ?? loaded.speed,
    accounts: accounts ?? loaded.accounts,
    jobs: jobCount ?? loaded.jobs,
  };
  const clock =
    givenClock ??
    new SandboxClock({
      stopped: file.clock === 'stopped',
      ...(file.startAt !== undefined && { startAt: Date.parse(file.startAt) }),
    });
  const world = createWorld({
    now: () => clock.now(),
    leavesListOnDispatch: file.leavesListOnDispatch,
  });
  const jobCounts = new Map<SandboxAccount, number>();
  if (typeof file.accounts === 'number') {
    addDemoAccounts(world, file.accounts);
  } else {
    for (const [index, { jobs: own, ...account }] of file.accounts.entries()) {
      const clientSecret = account.clientSecret ?? (account.clientId && `${account.clientId}-secret`);
      try {
        const added = addPeople(world.addAccount({ ...account, ...(clientSecret && { clientSecret }) }));
        // A flag is for all accounts.
        jobCounts.set(added, jobCount ?? own ?? file.jobs);
      } catch (error) {
        if (!(error instanceof DuplicateValueError)) throw error;
        const message = `${scenarioLabel(which)}: accounts[${index}].${error.field} must be unique: ${error.message}.`;
        throw new ScenarioFileError(message, { cause: error });
      }
    }
  }
  const jobsPerAccount = (account: SandboxAccount) => jobCounts.get(account) ?? file.jobs;
  const openJobs = world.accounts().reduce((sum, account) => sum + jobsPerAccount(account), 0);
  if (!clock.stopped && file.speed > fastestSpeed(openJobs)) {
    throw new ScenarioFileError(
      `${scenarioLabel(which)}: with ${openJobs} open jobs, speed must be at most ${fastestSpeed(openJobs)}.`,
    );
  }
  const scenario = createScenario({
    world,
    seed: file.seed,
    speed: file.speed,
    opening: file.opening,
    startAt: world.now(),
    jobsPerAccount,
  });
  try {
    const sandbox = await startSandbox({
      ...listening,
      world,
      scenario,
      clock,
      scheduledChanges: file.scheduledChanges,
      ...(file.freedom && { freedom: file.freedom }),
      ...(file.tokenLifetimeSeconds !== undefined && { tokenLifetimeSeconds: file.tokenLifetimeSeconds }),
    });
    return Object.assign(sandbox, { scenario, clock, file });
  } catch (error) {
    if (!(error instanceof UnknownAccountError)) throw error;
    throw new ScenarioFileError(`${scenarioLabel(which)}: a scheduled change ${error.message}.`, {
      cause: error,
    });
  }
}

const scenarioLabel = (which: unknown): string => (typeof which === 'string' ? which : 'the scenario');
