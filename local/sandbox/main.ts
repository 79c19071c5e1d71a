// `npm run sandbox`: a sandbox of the ordering service to play with, all regions, with jobs that move by themselves.

import { parseArgs } from 'node:util';
import * as z from 'zod';
import { addDemoAccounts, createScenario } from './scenario.ts';
import { PortTakenError, type Sandbox, startSandbox } from './server.ts';
import { createWorld } from './world.ts';

const whole = (from: number, to: number) => z.coerce.number().int().min(from).max(to);
const FLAGS = {
  port: { schema: whole(0, 65_535).default(4010), is: 'a whole number from 0 to 65535' },
  seed: { schema: whole(0, 1e9).default(1), is: 'a whole number from 0 to 1000000000' },
  speed: { schema: z.coerce.number().positive().max(1e6).default(120), is: 'a number above 0' },
  accounts: { schema: whole(1, 100).default(1), is: 'a whole number from 1 to 100' },
  jobs: { schema: whole(0, 100_000).default(40), is: 'a whole number from 0 to 100000' },
};

type Options = { [Name in keyof typeof FLAGS]: number };

const USAGE = `Usage: npm run sandbox -- [options]
  --port N      port on loopback (4010)
  --seed S      same seed, same jobs (1)
  --speed X     seconds of a job's life per second (120)
  --accounts N  accounts per region (1)
  --jobs N      open jobs per account (40)`;

async function run({ port, seed, speed, accounts, jobs }: Options): Promise<void> {
  const world = createWorld();
  addDemoAccounts(world, accounts);
  const scenario = createScenario({ world, seed, speed, startAt: Date.now(), jobsPerAccount: jobs });
  let sandbox: Sandbox;
  try {
    sandbox = await startSandbox({ world, scenario, port });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    console.error(
      error instanceof PortTakenError
        ? `Port ${port} is already in use; choose another with --port.`
        : `The sandbox could not start: ${reason}`,
    );
    process.exitCode = 1;
    return;
  }
  console.log(describe(sandbox, speed));
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void sandbox.stop());
}

function describe(sandbox: Sandbox, speed: number): string {
  const accounts = sandbox.world.accounts();
  const [first] = accounts;
  const rows = accounts.map(
    ({ region, clientId, clientSecret, activeCount, name }) =>
      `  ${region}  ${clientId.padEnd(12)} ${clientSecret.padEnd(20)} ${String(activeCount).padStart(6)} open jobs  ${name}`,
  );
  const lines = [
    `Sandbox of the ordering service at ${sandbox.url}, jobs live ${speed} × as fast as time. Ctrl-C ends it.`,
    '',
    `  API    ${sandbox.url}/<region>/api`,
    `  tokens ${sandbox.url}/<region>/auth/realms/<region>/protocol/openid-connect/token`,
    `  panel  ${sandbox.url}/_admin (accounts, jobs, faults, requests)`,
    '',
    '      client id    client secret',
    ...rows,
  ];
  if (first) {
    const { region, clientId, clientSecret } = first;
    lines.push(
      '',
      'Try it:',
      `  TOKEN=$(curl -s ${sandbox.authUrl(region)}/realms/${region}/protocol/openid-connect/token \\`,
      `    -d grant_type=client_credentials -d client_id=${clientId} -d client_secret=${clientSecret} \\`,
      `    | sed 's/.*"access_token":"\\([^"]*\\)".*/\\1/')`,
      `  curl -s -H "Authorization: Bearer $TOKEN" '${sandbox.apiUrl(region)}/Jobs/active?pageSize=5'`,
    );
  }
  return lines.join('\n');
}

/** The options, `help`, or one sentence that says what is wrong with them. */
function readOptions(args: string[]): Options | string {
  const text = { type: 'string' } as const;
  let values: { [name: string]: string | boolean | undefined };
  try {
    ({ values } = parseArgs({
      args,
      options: {
        port: text,
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
  const options: Record<string, number> = {};
  for (const [name, { schema, is }] of Object.entries(FLAGS)) {
    const parsed = schema.safeParse(values[name] === '' ? 'nothing' : values[name]);
    if (!parsed.success) return `--${name} must be ${is}.`;
    options[name] = parsed.data;
  }
  return options as Options;
}

const options = readOptions(process.argv.slice(2));
if (options === 'help') {
  console.log(USAGE);
} else if (typeof options === 'string') {
  console.error(options);
  process.exitCode = 1;
} else {
  await run(options);
}
