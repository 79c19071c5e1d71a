/** docs/cli.md matches the CLI. `CLI=write npx vitest run test/cli/docs.test.ts` writes its reference again. */
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import {
  API_FLAGS,
  COMMON_FLAGS,
  describeFlag,
  EXIT_CODES,
  type Flags,
  helpText,
  parse,
  usage,
} from '../../cli/command.ts';
import { loadCommands } from '../../cli/run.ts';

const commands = await loadCommands();

const FILE = 'docs/cli.md';
const MARK = '<!-- Below is written by test/cli/docs.test.ts. -->\n';

function reference(): string {
  const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('<', '&lt;');
  const table = (flags: Flags): string[] =>
    Object.entries(flags).map(([flag, one]) => {
      const { value, many, required } = one;
      const notes = [required ? 'required' : '', many ? 'may be repeated' : ''].filter((note) => note !== '');
      const name = value === undefined ? `--${flag}` : `--${flag} ${value}`;
      return `| \`${cell(name)}\` | ${cell(describeFlag(one))}${notes.length > 0 ? ` (${notes.join(', ')})` : ''} |`;
    });
  const join = (texts: string[]): string => texts.join(', ').replace(/, ([^,]*)$/, ' and $1');
  const namesOf = (kind: 'local' | 'textOnly'): string =>
    join(Object.keys(commands).flatMap((name) => (commands[name]?.[kind] ? [`\`${name}\``] : [])));
  const head = ['| option | |', '|---|---|'];
  const codes = Object.entries(EXIT_CODES).map(([code, about]) => `| ${code} | ${cell(about)} |`);
  return [
    '## Exit codes',
    '',
    '| code | |',
    '|---|---|',
    ...codes,
    '',
    '## Options of all commands',
    '',
    `${join(Object.keys(API_FLAGS).map((flag) => `\`--${flag}\``))} select a Jobwire and its API key. They do not apply to ${namesOf('local')}. The options \`--url\` and \`--key-file\` of \`profiles add\` describe the new profile. \`--json\` does not apply to ${namesOf('textOnly')}.`,
    '',
    ...head,
    ...table({ ...API_FLAGS, ...COMMON_FLAGS }),
    '',
    '## Commands',
    ...Object.entries(commands).flatMap(([name, command]) => [
      '',
      `### ${name}`,
      '',
      `\`${usage(name, command)}\``,
      '',
      [command.about, command.more].filter((text) => text !== undefined).join(' '),
      '',
      ...(Object.keys(command.flags).length === 0 ? [] : [...head, ...table(command.flags), '']),
      '```sh',
      `jobwire ${command.example}`,
      '```',
    ]),
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
