// `npm run sandbox`: a simulated ordering API of all regions, with jobs that change automatically.

import { enableCompileCache } from 'node:module';
import { parseArgs } from 'node:util';
import type { RunningScenario } from './simulation/scenario-file.ts';

// Compiled modules imported from here on are cached between starts, which halves the start time.
enableCompileCache();
const z = await import('zod');
const { ScenarioFileError, scenarioNames, startScenario } = await import('./simulation/scenario-file.ts');
const { PortTakenError } = await import('./server.ts');

const whole = (from: number, to: number) => ({
  // Decimal notation only: Number would also accept 0x10, 1e3 and blanks.
  schema: z.string().regex(/^\d+$/).transform(Number).pipe(z.int().min(from).max(to)),
  is: `an integer from ${from} to ${to}`,
});
const NUMBERS = {
  port: whole(0, 65_535),
  'admin-port': whole(0, 65_535),
  seed: whole(0, 1e9),
  speed: {
    schema: z
      .string()
      .regex(/^\d*\.?\d+(?:e\d+)?$/i)
      .transform(Number)
      .pipe(z.number().positive().max(1e6)),
    is: 'a number above 0, at most 1000000',
  },
  accounts: whole(1, 100),
  jobs: whole(0, 100_000),
};
const PORT = 4010;

type Flags = { [Name in keyof typeof NUMBERS]?: number } & { scenario?: string };

const USAGE = `Usage: npm run sandbox -- [options]
  --scenario S    ${scenarioNames().join(', ')}, or the path of a file (normal-day)
  --port N        port on loopback, 0 to 65535 (${PORT}); 0 = any free port
  --admin-port N  port of the control panel, 0 to 65535 (the one after --port, any free one after 0); 0 = any free port
  --seed N        same seed, same jobs; 0 to 1000000000 (1)
  --speed X       seconds of a job's life per second, above 0, at most 1000000 (120)
  --accounts N    accounts per region, 1 to 100 (1); not with a scenario that lists its accounts
  --jobs N        open jobs per account, 0 to 100000 (40)
Seed, speed, accounts and jobs default to those of the scenario.`;

async function run(flags: Flags): Promise<void> {
  const { port = PORT, 'admin-port': adminPort, scenario = 'normal-day', ...rest } = flags;
  let running: RunningScenario;
  try {
    running = await startScenario(scenario, { port, ...(adminPort !== undefined && { adminPort }), ...rest });
  } catch (error) {
    console.error(formatStartError(error, port));
    process.exitCode = 1;
    return;
  }
  console.log(describe(running, scenario));
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void running.stop());
}

function formatStartError(error: unknown, port: number): string {
  if (error instanceof PortTakenError) {
    const flag = error.port === port ? '--port' : '--admin-port';
    return `Port ${error.port} is already in use; choose another with ${flag}.`;
  }
  if (error instanceof ScenarioFileError) return error.message;
  return `The sandbox could not start: ${error instanceof Error ? error.message : String(error)}`;
}

function describe({ file, ...sandbox }: RunningScenario, scenario: string): string {
  const { url, adminUrl, world } = sandbox;
  const accounts = world.accounts();
  const [first] = accounts;
  const open = accounts.reduce((sum, { activeCount }) => sum + activeCount, 0);
  const width = Math.max(12, ...accounts.map(({ clientId }) => clientId.length));
  const rows = accounts.map(
    ({ region, clientId, clientSecret, activeCount, name }) =>
      `  ${region}  ${clientId.padEnd(width)} ${clientSecret.padEnd(width + 8)} ${String(activeCount).padStart(6)} open jobs  ${name}`,
  );
  const lines = [
    `Sandbox of the ordering API at ${url}, scenario ${scenario}, ${open.toLocaleString('en')} open jobs. Stop it with Ctrl-C.`,
    ...(file.description === undefined ? [] : [file.description]),
    '',
    `  API    ${url}/<region>/api`,
    `  tokens ${url}/<region>/auth/realms/<region>/protocol/openid-connect/token`,
    `  docs   ${url}/openapi.json`,
    `  panel  ${adminUrl} (jobs, faults, happenings, contract freedom, clock, requests)`,
    `  clock  ${file.speed} seconds of a job's life per second, seed ${file.seed}`,
    '',
    `      ${'client id'.padEnd(width)} client secret`,
    ...rows,
  ];
  if (first) {
    const { region, clientId, clientSecret } = first;
    lines.push(
      '',
      `Each also has -admin, -staff and -viewer, such as ${clientId}-viewer with the secret ${clientId}-viewer-secret: an`,
      'administrator reads the users of the account, staff reads and sets privileged fields, a viewer cannot order.',
      '',
      'Example:',
      `  TOKEN=$(curl -s ${sandbox.authUrl(region)}/realms/${region}/protocol/openid-connect/token \\`,
      `    -d grant_type=client_credentials -d client_id=${clientId} -d client_secret=${clientSecret} \\`,
      `    | sed 's/.*"access_token":"\\([^"]*\\)".*/\\1/')`,
      `  curl -s -H "Authorization: Bearer $TOKEN" '${sandbox.apiUrl(region)}/Jobs/active?pageSize=5'`,
      `  curl -s ${adminUrl}   # operations of the control panel`,
    );
  }
  return lines.join('\n');
}

/** Parses the flags. Returns `help`, or an error message. */
function readFlags(args: string[]): Flags | string {
  const text = { type: 'string' } as const;
  let values: { [name: string]: string | boolean | undefined };
  try {
    ({ values } = parseArgs({
      args,
      options: {
        scenario: text,
        port: text,
        'admin-port': text,
        seed: text,
        speed: text,
        accounts: text,
        jobs: text,
        help: { type: 'boolean', short: 'h' },
      },
    }));
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return `${message.split(/\.\s/)[0]}; --help lists the options.`;
  }
  if (values.help) return 'help';
  const flags: Record<string, number | string> = {};
  if (values.scenario === '') return `--scenario must be one of ${scenarioNames().join(', ')}, or a path.`;
  if (typeof values.scenario === 'string') flags.scenario = values.scenario;
  for (const [name, { schema, is }] of Object.entries(NUMBERS)) {
    if (values[name] === undefined) continue;
    const parsed = schema.safeParse(values[name] === '' ? 'nothing' : values[name]);
    if (!parsed.success) return `--${name} must be ${is}.`;
    flags[name] = parsed.data;
  }
  const { port = PORT, 'admin-port': adminPort } = flags as Flags;
  if (port === 65_535 && adminPort === undefined) {
    return 'There is no port after 65535 for the control panel; choose one with --admin-port.';
  }
  if (port !== 0 && port === adminPort) return `--port and --admin-port must differ; both are ${port}.`;
  return flags as Flags;
}

const flags = readFlags(process.argv.slice(2));
if (flags === 'help') {
  console.log(USAGE);
} else if (typeof flags === 'string') {
  console.error(flags);
  process.exitCode = 1;
} else {
  await run(flags);
}
