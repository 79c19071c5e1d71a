/**
 * Clients that public generators create from the OpenAPI document are generated without a warning about it, and compile. Needs
 * Go, Python and their package registries, so it is not part of `npm test`: `npm run test:generators`. A generator that cannot
 * be installed is skipped with the reason. Tools are stored in GENERATORS_DIR (default: a folder below the system's temporary
 * one).
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { toOpenApi30 } from './openapi-30.ts';
import {
  BIN,
  COMPILE_MS,
  GENERATE_MS,
  HOME,
  INSTALL_MS,
  install,
  installOapiCodegen,
  installPythonClient,
  leaveOut,
  makeEmpty,
  run,
  VENV,
} from './tools.ts';

const V31 = join(HOME, 'openapi.json');
const V30 = join(HOME, 'openapi-3.0.json');

const OGEN = 'v1.24.0';
/** A checkout of ogen, where the Go proxy does not serve it. */
const OGEN_SOURCE = process.env.OGEN_SOURCE;

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
    await installOapiCodegen(skip);
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
    await installPythonClient(skip);
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
