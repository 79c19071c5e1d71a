// `npm run sandbox`: a simulated ordering API of all regions, with jobs that change automatically.

import '../shared/short-start.ts';
import type { Flags } from './flags.ts';
import type { RunningScenario } from './simulation/scenario-file.ts';

const { PORT, readFlags, USAGE } = await import('./flags.ts');
const { ScenarioFileError, startScenario } = await import('./simulation/scenario-file.ts');
const { PortTakenError } = await import('./server.ts');

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
    `  panel  ${adminUrl} (jobs, faults, scheduled changes, contract freedom, clock, requests; a page at /panel)`,
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

const flags = readFlags(process.argv.slice(2));
if (flags === 'help') {
  console.log(USAGE);
} else if (typeof flags === 'string') {
  console.error(flags);
  process.exitCode = 1;
} else {
  await run(flags);
}
