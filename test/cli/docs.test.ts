/** docs/cli.md matches the CLI. `CLI=write npx vitest run test/cli/docs.test.ts` writes its reference again. */
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import {
  API_FLAGS,
  COMMON_FLAGS,
  type Command,
  describeFlag,
  EXIT_CODES,
  type Flag,
  helpText,
  parse,
  usage,
} from '../../cli/command.ts';
import { loadCommands } from '../../cli/run.ts';

const commands = await loadCommands();

const FILE = 'docs/cli.md';
const MARK = '<!-- Below is written by test/cli/docs.test.ts. -->\n';

/** Number of commands with the same option from which on the option is described only once. */
const SHARED_BY = 3;

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('<', '&lt;');
const prose = (text: string): string =>
  text.replaceAll('<', '&lt;').replace(/\bdocs\/([\w-]+\.md)\b/g, '[$1]($1)');
const join = (texts: readonly string[]): string => texts.join(', ').replace(/, ([^,]*)$/, ' and $1');

type Option = readonly [flag: string, option: Flag];
const getOptions = (name: string): Option[] => Object.entries(commands[name]?.flags ?? {});

/** Returns an option with its placeholder. `…` marks an option that can be repeated. */
function nameOption([flag, { value, many }]: Option): string {
  if (value === undefined) return `--${flag}`;
  return `--${flag} ${value}${many && value !== 'A,B' ? ' …' : ''}`;
}

/** Returns the description of an option, and its default, which differs between commands with the same option. */
function splitDefault({ default: fallback, ...flag }: Flag): [about: string, fallback: string | undefined] {
  const [about = '', inText] = flag.about.split('. Default: ');
  return [describeFlag({ ...flag, about }), fallback?.toString() ?? inText];
}

/** An option without its default: two options with the same key need only one description. */
const getKey = (option: Option): string =>
  `- \`${nameOption(option)}\`: ${prose(splitDefault(option[1])[0])}`;

/** Descriptions of the options that several commands share, by name. */
const shared = new Map<string, string>();
const uses = [...Map.groupBy(Object.keys(commands).flatMap(getOptions), getKey)];
for (const [key, same] of uses.sort(([, a], [, b]) => b.length - a.length)) {
  const [flag = ''] = same[0] ?? [];
  if (same.length >= SHARED_BY && !shared.has(flag)) shared.set(flag, key);
}
const isShared = (option: Option): boolean => shared.get(option[0]) === getKey(option);

/** Returns the first command of the same group that has the same option. */
function findFirst(name: string, option: Option): string {
  const [group] = name.split(' ');
  const first = Object.keys(commands).find(
    (other) =>
      other.split(' ')[0] === group && getOptions(other).some((one) => getKey(one) === getKey(option)),
  );
  return first ?? name;
}

/** Returns the names of options that are described elsewhere. */
const listNames = (options: readonly Option[]): string =>
  options
    .map(([flag, one]) => {
      const [, fallback] = splitDefault(one);
      return `\`--${flag}\`${fallback === undefined ? '' : ` (default: ${fallback})`}`;
    })
    .join(', ');

/** Returns the options of a command: its own with their descriptions, and the names of those that are described elsewhere. */
function describeOptions(name: string): string[] {
  const common = getOptions(name).filter(isShared);
  const others = getOptions(name).filter((option) => !isShared(option));
  const byFirst = Map.groupBy(others, (option) => findFirst(name, option));
  return [
    ...(byFirst.get(name) ?? []).map(
      (option) => `- \`${nameOption(option)}\`: ${prose(describeFlag(option[1]))}`,
    ),
    ...[...byFirst]
      .filter(([first]) => first !== name)
      .map(([first, same]) => `- as in [\`${first}\`](#${first.replace(' ', '-')}): ${listNames(same)}`),
    ...(common.length === 0 ? [] : [`- shared: ${listNames(common)}`]),
  ];
}

/** Returns the usage line, unless it only repeats the heading. */
function describeUsage(name: string, command: Command): string[] {
  const line = usage(name, command).replace(/ \[options\]$/, '');
  return line === `jobwire ${name}` ? [] : ['', `\`${line}\``];
}

function reference(): string {
  const getNames = (kind: 'local' | 'textOnly'): string =>
    join(Object.keys(commands).flatMap((name) => (commands[name]?.[kind] ? [`\`${name}\``] : [])));
  return [
    '## Exit codes',
    '',
    '| code | |',
    '|---|---|',
    ...Object.entries(EXIT_CODES).map(([code, about]) => `| ${code} | ${cell(about)} |`),
    '',
    '## Options of all commands',
    '',
    ...Object.entries<Flag>({ ...API_FLAGS, ...COMMON_FLAGS }).map(
      (option) => `- \`${nameOption(option)}\`: ${prose(describeFlag(option[1]))}`,
    ),
    '',
    `${join(Object.keys(API_FLAGS).map((flag) => `\`--${flag}\``))} do not apply to ${getNames('local')}. \`profiles add\` has its own \`--url\` and \`--key-file\`. \`--json\` does not apply to ${getNames('textOnly')}.`,
    '',
    '## Shared options',
    '',
    ...[...shared.values()].sort(),
    '',
    '## Commands',
    '',
    'Options in a usage line are required. `A,B` is a comma-separated list. Options with `A,B` or `…` can be repeated. Options after “shared” are described [above](#shared-options). `jobwire help COMMAND` shows all options of a command, and an example.',
    ...Object.entries(commands).flatMap(([name, command]) => {
      const options = describeOptions(name);
      return [
        '',
        `### ${name}`,
        ...describeUsage(name, command),
        '',
        prose([command.about, command.more].filter((text) => text !== undefined).join(' ')),
        ...(options.length === 0 ? [] : ['', ...options]),
        ...(command.example.includes(' --') ? ['', '```sh', `jobwire ${command.example}`, '```'] : []),
      ];
    }),
    '',
  ].join('\n');
}

test('docs/cli.md lists exactly the commands, options and exit codes', () => {
  const [written = '', listed] = readFileSync(FILE, 'utf8').split(MARK);
  if (process.env.CLI === 'write') writeFileSync(FILE, `${written}${MARK}\n${reference()}`);
  else expect(listed).toBe(`\n${reference()}`);
});

test('every command in the documents exists', () => {
  const names = Object.keys(commands);
  const groups = names.map((name) => name.split(' ')[0]);
  const unknown = globSync(['*.md', 'docs/**/*.md']).flatMap((file) => {
    const code = readFileSync(file, 'utf8').matchAll(
      /(?:^ *|[`|(] ?)(?:(?:npx )?jobwire|npm run -s jobwire --) ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?/gm,
    );
    return [...code].flatMap(([, first = '', second]) => {
      const isKnown =
        [first, `${first} ${second}`].some((name) => names.includes(name)) ||
        (second === undefined && groups.includes(first));
      return isKnown || first === 'help' ? [] : [`${file}: jobwire ${first} ${second}`];
    });
  });
  expect(unknown).toEqual([]);
});

test('every option in docs/cli.md exists', () => {
  const [written = ''] = readFileSync(FILE, 'utf8').split(MARK);
  const flags = new Set(
    Object.values(commands).flatMap((command) =>
      Object.keys({ ...command.flags, ...API_FLAGS, ...COMMON_FLAGS }),
    ),
  );
  for (const [, flag = ''] of written.matchAll(/`[^`]*--([a-z][a-z-]*)/g)) expect([...flags]).toContain(flag);
});

test('documents start the CLI with npx only where the package is installed, not in a checkout', () => {
  const files = globSync(['*.md', 'docs/**/*.md']).filter((file) =>
    /^ *npx jobwire /m.test(readFileSync(file, 'utf8')),
  );
  expect(files.sort()).toEqual(['docs/receiving-events.md', 'docs/self-hosting.md']);
});

test('no command has an option of the same name as an option of all commands', () => {
  for (const [name, { flags, local }] of Object.entries(commands)) {
    const shared = Object.keys({ ...(local ? {} : API_FLAGS), ...COMMON_FLAGS });
    expect(
      Object.keys(flags).filter((flag) => shared.includes(flag)),
      name,
    ).toEqual([]);
  }
});

test('the example of every command is valid', () => {
  for (const [name, command] of Object.entries(commands)) {
    const words = command.example
      .replace(/ < .*$/, '')
      .split(' ')
      .map((word) => word.replaceAll("'", ''));
    expect(parse(commands, words), name).toMatchObject({ kind: 'run', name });
    expect(helpText(commands, name, 80)).toContain(`Example: jobwire ${command.example}`);
  }
});

test('help fits the terminal and names every command', () => {
  const help = helpText(commands, undefined, 80);
  for (const name of Object.keys(commands)) expect(help).toContain(`  ${name}`);
  expect(help).toMatch(/^Start here$/m);
  for (const group of ['accounts', 'endpoints', 'jobs']) expect(help).toMatch(new RegExp(`^${group}$`, 'm'));
  expect(helpText(commands, 'listen', 80)).toMatch(/^ +--forward-to URL +.*\(required\)$/m);
  for (const about of [undefined, ...Object.keys(commands)]) {
    const lines = helpText(commands, about, 80).split('\n');
    const long = lines.filter((one) => one.length > 80 && !/^(Usage|Example): /.test(one));
    expect(long).toEqual([]);
  }
});

test('jobwire start has the options of npm start', () => {
  const [, options = ''] =
    /^const USAGE = 'Usage: npm start -- (.*)';$/m.exec(readFileSync('local/main.ts', 'utf8')) ?? [];
  const taken = [...options.matchAll(/--([a-z-]+)/g)].map(([, flag]) => flag).sort();
  expect([...Object.keys(commands.start?.flags ?? {}), 'verbose'].sort()).toEqual(taken);
});
