/** docs/deploying.md: its commands refer to existing resources. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { commands } from '../../functions/handlers/operate.ts';
import { parseStages, readStages } from '../../infra/settings.ts';
import packageJson from '../../package.json' with { type: 'json' };
import { checkSecretRef } from '../../shared/accounts/credentials.ts';
import { secretPrefix } from '../../shared/secrets.ts';
import { synthesize } from '../support/cells.ts';
import { findApiRequests, findRequestProblem } from '../support/documented-requests.ts';
import { createOperator } from '../support/operator.ts';

const guide = readFileSync('docs/deploying.md', 'utf8');
const matches = (pattern: RegExp): string[] => [...guide.matchAll(pattern)].map(([, found = '']) => found);
const notifications = { from: 'orders@print.example', identity: 'print.example', sms: {} };
const certificateArn = 'arn:aws:acm:us-east-1:111122223333:certificate/0e6e5f0a';
const cell = synthesize('dev', {
  cell: {
    ...{ customerKey: true, standardTopic: true, notifications, staticEgress: { natGateways: 1 } },
    apiDomain: { name: 'api.jobwire.example', certificateArn },
  },
});

test('stacks and the operator’s function have the names that the commands construct', () => {
  const [stack] = cell.app.node.children.map(({ node }) => node.id);
  expect(guide).toContain('export STACK=jobwire-$STAGE-$CELL');
  expect(stack).toBe('jobwire-dev-us');
  expect(guide).toContain('--function-name "$STACK-operate"');
  const names = cell.functions().map(({ fn }) => fn.Properties.FunctionName);
  expect(names.filter(Boolean)).toEqual([`${stack}-operate`]);
  expect(cell.template.findOutputs('OperateFunction').OperateFunction).toMatchObject({
    Value: `${stack}-operate`,
  });
  for (const name of matches(/\b(jobwire-(?:dev|prod)-\w+)\b/g)) expect(name).toMatch(/^jobwire-dev-us/);
});

test('every output and every log group in a command exists', () => {
  const outputs = [...matches(/[(`]output (\w+)[)`]/g), ...matches(/outputs? `(\w+)`/g)];
  expect(outputs.length).toBeGreaterThan(5);
  for (const name of new Set(outputs))
    expect(Object.keys(cell.template.findOutputs(name)), name).toEqual([name]);
  const groups = matches(/\$\(logs (\w+)\)/g);
  expect(groups).toHaveLength(1);
  const ids = cell.resources('AWS::Logs::LogGroup').map(([id]) => id);
  for (const group of groups)
    expect(
      ids.filter((id) => id.startsWith(group)),
      group,
    ).toHaveLength(1);
});

test("queries of the stack's resources find them, for any number of resources", () => {
  // It returns only the first hundred.
  expect(Object.keys(cell.template.toJSON().Resources).length).toBeGreaterThan(100);
  expect(guide).not.toContain('describe-stack-resources');
});

test('every resource that a command finds by its logical id exists once', () => {
  const found = [...guide.matchAll(/ResourceType=='([\w:]+)' && starts_with\(LogicalResourceId,'(\w+)'\)/g)];
  expect(found).toHaveLength(1);
  for (const [, type = '', begin = ''] of found)
    expect(
      cell.resources(type).filter(([id]) => id.startsWith(begin)),
      begin,
    ).toHaveLength(1);
});

test('the table of commands has exactly the commands of an operator', () => {
  const [, section = ''] =
    /^## An operator’s commands\n([\s\S]*?)^## /m.exec(guide.replaceAll("'", '’')) ?? [];
  const listed = [...section.matchAll(/^\| (`[^|]*) \|/gm)].flatMap(([, cells = '']) =>
    [...cells.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name),
  );
  expect(listed.sort()).toEqual(commands().sort());
});

test('each command to the operator’s function is valid', async () => {
  const payloads = matches(/operate '([^']+)'/g);
  expect(payloads.length).toBeGreaterThan(1);
  const { run } = await createOperator({ stage: 'dev', restoredAt: Date.parse('2026-03-02T07:00:00Z') });
  for (const payload of payloads) expect(await run(JSON.parse(payload)), payload).not.toHaveProperty('error');
});

test('each API request is valid', () => {
  const requests = findApiRequests(guide);
  expect(requests.length).toBeGreaterThan(5);
  for (const request of requests) expect(findRequestProblem(request), request.join(' ')).toBeUndefined();
});

test('secrets have the names that functions read', () => {
  expect(guide).toContain('--name "jobwire/$STAGE/$CELL/accounts/acme"');
  expect(secretPrefix('dev', 'us')).toBe('jobwire/dev/us/accounts/');
  const refs = matches(/`(jobwire\/dev\/us\/accounts\/[^`]+)`/g);
  expect(refs.length).toBeGreaterThan(1);
  for (const ref of refs) expect(checkSecretRef('dev', 'us', ref), ref).toBeUndefined();
});

test('example settings are valid, and named settings exist', () => {
  const [stage] = structuredClone(readStages('jobwire.cells.example.json')) as unknown as [
    { cells: { us: Record<string, unknown> } },
  ];
  const snippets = [
    ...guide.matchAll(/```json\n( *"(?:stateTable|notifications|dashboardDomain)": [\s\S]*?)\n *```/g),
  ];
  expect(snippets).toHaveLength(3);
  for (const [, snippet] of snippets) Object.assign(stage.cells.us, JSON.parse(`{${snippet}}`));
  stage.cells.us.customerKey = true;
  stage.cells.us.dashboard = true;
  const [parsed] = parseStages({ stages: [stage] });
  expect(parsed?.cells.us?.stateTable).toMatchObject({ restoredAt: expect.any(String) });
  expect(parsed?.cells.us?.notifications).toMatchObject({ sms: { senderId: 'PrintShop' } });
  const known = JSON.stringify(stage);
  for (const name of [
    'stateTable',
    'restoredAt',
    'customerKey',
    'notifications',
    'publicUrl',
    'upstream',
    'pollConcurrency',
    'drainConcurrency',
    'streams',
    'dashboard:',
    'dashboardDomain',
  ]) {
    expect(guide, name).toContain(`\`${name}`);
    expect(known, name).toContain(`"${name.replace(':', '')}"`);
  }
});

test('its npm scripts exist, and the CDK version is exactly that of the lockfile', () => {
  const scripts = matches(/npm (?:run )?(test|check|bench|synth)\b/g);
  expect(scripts.length).toBeGreaterThan(2);
  for (const script of scripts) expect(Object.keys(packageJson.scripts)).toContain(script);
  expect(packageJson.devDependencies['aws-cdk']).toMatch(/^\d+\.\d+\.\d+$/);
  expect(guide).not.toMatch(/npx aws-cdk|npm (install|i) (-g )?aws-cdk/);
});

test('its description of a restored table matches the stack', () => {
  const [, { Properties: table } = { Properties: {} }] =
    cell.resources('AWS::DynamoDB::GlobalTable').find(([id]) => id.startsWith('State')) ?? [];
  expect(guide).toContain(`StreamViewType=${table.StreamSpecification.StreamViewType}`);
  expect(guide).toContain(`AttributeName=${table.TimeToLiveSpecification.AttributeName}`);
  const [replica] = table.Replicas;
  expect(replica.PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled).toBe(true);
  for (const { Key } of replica.Tags) expect(guide).toContain(`Key=${Key},`);
});

test('a restore can be repeated: each one names its table after the time', () => {
  const names = matches(/ TABLE=(\$STACK.*?);/g);
  expect(names).toEqual(Array(2).fill('$STACK-state-$(date -u +%Y%m%dT%H%M)'));
});

test('has a place for the tables of costs', () => {
  for (const name of ['marginal', 'messages', 'telling', 'fixed'])
    expect(guide).toMatch(new RegExp(`<!-- costs:${name} -->[\\s\\S]*?<!-- /costs -->`));
});
