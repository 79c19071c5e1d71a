/**
 * Clients that public generators make of the OpenAPI document are generated without a complaint about it, and compile. Needs Go, Python
 * and their package registries, so it is no part of `npm test`: `npm run test:generators`. A generator that can't be installed is
 * skipped with the reason. Tools are kept in GENERATORS_DIR (default: a folder below the system's temporary one).
 */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { toOpenApi30 } from './openapi-30.ts';

const HOME = process.env.GENERATORS_DIR ?? join(tmpdir(), 'jobwire-generators');
const BIN = join(HOME, 'bin');
const VENV = join(HOME, 'venv/bin');
const V31 = join(HOME, 'openapi.json');
const V30 = join(HOME, 'openapi-3.0.json');

const INSTALL_MS = 300_000;
const GENERATE_MS = 60_000;
const COMPILE_MS = 300_000;

/** Pinned: what a later version accepts is found out when this changes. */
const OAPI_CODEGEN = 'github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2';
const OGEN = 'v1.24.0';
const PYTHON_CLIENT = 'openapi-python-client==0.29.1';
/** A checkout of ogen, where the Go proxy does not serve it. */
const OGEN_SOURCE = process.env.OGEN_SOURCE;

const execute = promisify(execFile);

/** Runs a program in a folder below {@link HOME}. Returns what it writes; rejects with that when it fails. */
async function run(folder: string, timeout: number, program: string, ...args: string[]): Promise<string> {
  const env = { ...process.env, GOBIN: BIN, PATH: `${BIN}:${VENV}:${process.env.PATH}` };
  const cwd = folder.startsWith('/') ? folder : join(HOME, folder);
  const { stdout, stderr } = await execute(program, args, { cwd, env, timeout, maxBuffer: 50_000_000 });
  return `${stdout}${stderr}`;
}

/** Installs a tool that is not there yet. Returns why that failed. */
async function install(tool: string, steps: () => Promise<unknown>): Promise<string | undefined> {
  if (existsSync(tool)) return undefined;
  return steps().then(
    () => undefined,
    (cause) => `${tool} could not be installed: ${String(cause).slice(0, 300)}`,
  );
}

function makeEmpty(folder: string): void {
  rmSync(join(HOME, folder), { recursive: true, force: true });
  mkdirSync(join(HOME, folder), { recursive: true });
}

beforeAll(() => {
  mkdirSync(HOME, { recursive: true });
  const text = readFileSync('docs/openapi.json', 'utf8');
  writeFileSync(V31, text);
  writeFileSync(V30, JSON.stringify(toOpenApi30(JSON.parse(text))));
});

describe('a generated client compiles', () => {
  test.for([
    ['3.1', V31],
    ['3.0', V30],
  ] as const)('by oapi-codegen (Go), of OpenAPI %s', async ([version, document], { skip }) => {
    const missing = await install(join(BIN, 'oapi-codegen'), () =>
      run('.', INSTALL_MS, 'go', 'install', OAPI_CODEGEN),
    );
    if (missing) leaveOut(skip, missing);
    const folder = `oapi-codegen-${version}`;
    makeEmpty(folder);
    const options = ['-generate', 'types,client', '-package', 'client', '-o', 'client.go'];
    await run(folder, GENERATE_MS, 'oapi-codegen', ...options, document);
    await run(folder, GENERATE_MS, 'go', 'mod', 'init', 'client');
    await run(folder, INSTALL_MS, 'go', 'mod', 'tidy');
    await run(folder, COMPILE_MS, 'go', 'build', './...');
    const code = readFileSync(join(HOME, folder, 'client.go'), 'utf8');
    for (const name of ['EndpointPage', 'NewAccount', 'JobStatusChangedEvent', 'JobStatusChangedData'])
      expect(code).toMatch(new RegExp(`^type ${name} struct`, 'm'));
    expect(code).toContain('func (t Event) AsJobStatusChangedEvent() (JobStatusChangedEvent, error)');
  });

  test('by ogen (Go), of OpenAPI 3.0', async ({ skip }) => {
    const missing = await install(join(BIN, 'ogen'), () =>
      OGEN_SOURCE
        ? run(OGEN_SOURCE, INSTALL_MS, 'go', 'install', './cmd/ogen')
        : run('.', INSTALL_MS, 'go', 'install', `github.com/ogen-go/ogen/cmd/ogen@${OGEN}`),
    );
    if (missing) leaveOut(skip, missing);
    makeEmpty('ogen');
    await run('ogen', GENERATE_MS, 'ogen', '--target', '.', '--package', 'client', '--clean', V30);
    await run('ogen', GENERATE_MS, 'go', 'mod', 'init', 'client');
    const module = 'github.com/ogen-go/ogen';
    const source = OGEN_SOURCE ? [`-replace=${module}=${OGEN_SOURCE}`] : [];
    await run('ogen', GENERATE_MS, 'go', 'mod', 'edit', `-require=${module}@${OGEN}`, ...source);
    await run('ogen', INSTALL_MS, 'go', 'mod', 'tidy');
    await run('ogen', COMPILE_MS, 'go', 'build', './...');
    const code = readFileSync(join(HOME, 'ogen/oas_schemas_gen.go'), 'utf8');
    for (const name of ['EndpointPage', 'NewAccount', 'JobStatusChangedEvent', 'Event'])
      expect(code).toMatch(new RegExp(`^type ${name} struct`, 'm'));
  });

  test('by openapi-python-client, of OpenAPI 3.1', async ({ skip }) => {
    const missing = await install(join(VENV, 'openapi-python-client'), async () => {
      await run('.', INSTALL_MS, 'python3', '-m', 'venv', 'venv');
      await run('.', INSTALL_MS, join(VENV, 'pip'), 'install', '--quiet', PYTHON_CLIENT);
    });
    if (missing) leaveOut(skip, missing);
    makeEmpty('python');
    const options = ['--output-path', 'jobwire_client', '--meta', 'none', '--overwrite'];
    const output = await run(
      'python',
      GENERATE_MS,
      'openapi-python-client',
      'generate',
      '--path',
      V31,
      ...options,
    );
    expect(output).not.toMatch(/WARNING|ERROR|will not be generated|Unable/);
    await run('python', COMPILE_MS, 'python3', '-m', 'compileall', '-q', 'jobwire_client');
    const read = [
      'import json, sys',
      'from jobwire_client.models import EventPage, NewAccount, EndpointPage',
      "event = json.load(sys.stdin)['webhooks']['job.status_changed']['post']['requestBody']['content']",
      "event = event['application/cloudevents+json']['example']",
      "page = EventPage.from_dict({'events': [event], 'next': 'a.1', 'head': 'a.1'})",
      'print(type(page.events[0]).__name__)',
    ];
    const script = join(HOME, 'python/read.py');
    writeFileSync(script, read.join('\n').replace('sys.stdin', `open(${JSON.stringify(V31)})`));
    const python = join(VENV, 'python');
    expect((await run('python', GENERATE_MS, python, script)).trim()).toBe('JobStatusChangedEvent');
  });
});

/** Skips a test whose generator is missing. With GENERATORS=required that is a failure. */
function leaveOut(skip: (reason: string) => never, reason: string): void {
  if (process.env.GENERATORS === 'required') expect.unreachable(reason);
  skip(reason);
}
