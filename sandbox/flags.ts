/** Flags of `npm run sandbox`. */
import { parseArgs } from 'node:util';
import * as z from 'zod';
import { scenarioNames } from './simulation/scenario-file.ts';

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
/** Default port. */
export const PORT = 4010;

/** Parsed flags. */
export type Flags = { [Name in keyof typeof NUMBERS]?: number } & { scenario?: string };

/** Help. */
export const USAGE = `Usage: npm run sandbox -- [options]
  --scenario S    ${scenarioNames().join(', ')}, or the path of a file (normal-day)
  --port N        port on loopback, 0 to 65535 (${PORT}); 0 = any free port
  --admin-port N  port of the control panel, 0 to 65535 (the one after --port, any free one after 0); 0 = any free port
  --seed N        same seed, same jobs; 0 to 1000000000 (1)
  --speed X       seconds of a job's life per second, above 0, at most 1000000 (120)
  --accounts N    accounts per region, 1 to 100 (1); not with a scenario that lists its accounts
  --jobs N        open jobs per account, 0 to 100000 (40)
Seed, speed, accounts and jobs default to those of the scenario.`;

/** Parses the flags. Returns `help`, or an error message. */
export function readFlags(args: string[]): Flags | string {
  const text = { type: 'string' } as const;
  let values: { [name: string]: string | boolean | undefined };
  try {
    ({ values } = parseArgs({
      args,
      options: {
        scenario: text,
        ...Object.fromEntries(Object.keys(NUMBERS).map((name) => [name, text])),
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
