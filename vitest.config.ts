import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';

type Project = NonNullable<TestProjectInlineConfiguration['test']>;

// Workers and the programs that tests start share V8's compile cache, which shortens a start by a third.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, 'node_modules/.cache/node');

/** For CPU-bound tests: a further worker would only load everything once more. */
const computing = { maxWorkers: availableParallelism() };
/** For tests that wait for processes and sockets part of the time. Projects with different numbers of workers run one after the other. */
const waiting = { maxWorkers: 2 * availableParallelism(), sequence: { groupOrder: 1 } };

/** Node's own module loader runs code a fifth faster than Vite's, but has no `vi.mock`. */
const experimental = { viteModuleRunner: false };

/** The tiers (docs/internals/testing.md). `--mode full` runs every test at its full size. */
export default defineConfig(({ mode }) => {
  const full = mode === 'full';
  const patience = { testTimeout: full ? 600_000 : 60_000, hookTimeout: 120_000 };
  // The CDK's own rules compile WebAssembly in each process. `npm run check` applies them to deployed templates.
  const env = full ? {} : { CDK_VALIDATION: 'false' };
  const inMemory: Project = { isolate: false, experimental, provide: { full, tables: ['in memory'] } };
  const unit: Project = {
    ...{ name: 'unit', ...computing, env, ...patience, ...inMemory },
    include: ['test/**/*.test.ts'],
    exclude: ['**/*.integration.test.ts', 'test/{sandbox,deploy,browser,generators,tools}/**'],
    setupFiles: ['test/support/no-io.ts'],
  };
  const decisions: Project = {
    ...{ name: 'decisions', ...computing },
    include: ['test/**/*.decisions.test.ts'],
    provide: { full: false },
  };
  const integration: Project = {
    ...{ name: 'integration', ...waiting, env, ...patience, ...inMemory },
    include: ['test/**/*.integration.test.ts'],
    globalSetup: ['test/support/dynamo-setup.ts', 'test/support/package-setup.ts'],
  };
  const sandbox: Project = {
    ...{ name: 'sandbox', ...computing, ...patience },
    include: ['test/sandbox/*.test.ts'],
    isolate: false,
    experimental,
    provide: { full },
  };
  const onDynamo: Project = {
    ...{ ...computing, ...patience },
    runner: 'test/support/dynamodb-runner.ts',
    globalSetup: 'test/support/dynamo-setup.ts',
    isolate: false,
    experimental,
    provide: { full, tables: ['on DynamoDB'] },
  };
  const dynamodb: Project = {
    ...{ ...onDynamo, name: 'dynamodb' },
    include: [
      'test/**/*.tables.test.ts',
      // Suites for each table that also open ports.
      'test/{accounts/accounts,api/feeds,api/fuzz,local/host,notifications/texts}.integration.test.ts',
    ],
  };
  // Proves that the tables are interchangeable, and samples the rest: the other suites run on SQLite.
  const storage: Project = {
    ...{ ...onDynamo, name: 'storage' },
    include: ['test/{storage,tracking}/*.tables.test.ts'],
  };
  const deploy: Project = {
    ...{ name: 'deploy', testTimeout: 180_000, hookTimeout: 300_000 },
    // Each file has its own cell, with its own ports, folders and processes.
    maxWorkers: 3,
    sequence: { groupOrder: 3 },
    include: ['test/deploy/*.test.ts'],
    // Each test continues from the state of the previous one.
    bail: 1,
  };
  const inBrowser: Project = {
    ...{ testTimeout: 300_000, hookTimeout: 300_000 },
    // Each file has its own Jobwire and browser, which compute more than they wait.
    maxWorkers: Math.ceil(1.5 * availableParallelism()),
    sequence: { groupOrder: 2 },
    include: ['test/browser/*.test.ts'],
    globalSetup: 'test/support/browser-setup.ts',
    expect: { poll: { timeout: 60_000, interval: 50 } },
  };
  const browser: Project = { ...inBrowser, name: 'browser', provide: { full, browser: 'chromium' } };
  // Of these files, `npm run test:firefox` runs the tests with the tag `firefox`.
  const firefox: Project = {
    ...{ ...inBrowser, name: 'firefox', provide: { full, browser: 'firefox' } },
    include: ['test/browser/{attention,health,jobs,list-keyboard,now,palette,sign-in}.test.ts'],
  };
  const generators: Project = {
    ...{ name: 'generators', testTimeout: 2_400_000, hookTimeout: 60_000 },
    include: ['test/generators/*.test.ts'],
  };
  const tools: Project = {
    ...{ name: 'tools', ...patience },
    include: ['test/tools/*.test.ts'],
    globalSetup: 'test/tools/install.ts',
    experimental,
  };
  // Stryker runs every configured project, once for each mutant.
  const projects =
    process.env.STRYKER_MUTATOR_WORKER === undefined
      ? [unit, sandbox, storage, dynamodb, integration, deploy, browser, firefox, generators, tools]
      : [decisions];
  return {
    test: {
      tags: [
        { name: 'firefox', description: 'A main flow of the dashboard, which is also tested in Firefox.' },
      ],
      projects: projects.map((test) => ({ test })),
    },
  };
});
