/** Settings of stages and cells: one error message names the stage, the path and the accepted values. */
import { RetentionDays } from 'aws-cdk-lib/aws-logs';
import { describe, expect, test } from 'vitest';
import { findCell, listCells } from '../../infra/cell.ts';
import { parseStages, readStages, SettingsError } from '../../infra/settings.ts';

const EXAMPLE = 'jobwire.cells.example.json';
const stages = readStages(EXAMPLE);

const STREAM = 'arn:aws:dynamodb:us-east-1:111122223333:table/restored/stream/2026-03-02T09:00:00.000';

const identityArn = (region: string, name: string) => `arn:aws:ses:${region}:111122223333:identity/${name}`;

const certificateArn = (region: string) => `arn:aws:acm:${region}:111122223333:certificate/0e6e5f0a`;

/** The dev stage with something else at a path. */
function changed(path: string, value: unknown) {
  const [stage] = structuredClone(stages) as unknown as [Record<string, unknown>];
  const parts = path.split('.');
  const last = parts.pop() ?? '';
  const parent = parts.reduce<Record<string, unknown>>(
    (object, part) => object[part] as Record<string, unknown>,
    stage,
  );
  if (value === undefined) delete parent[last];
  else parent[last] = value;
  return { stages: [stage] };
}

test('the example is valid, and a stage may have a single cell', () => {
  expect(stages.map(({ stage }) => stage)).toEqual(['dev', 'prod']);
  expect(Object.keys(stages[0]?.cells ?? {})).toEqual(['us']);
  expect(Object.keys(stages[1]?.cells ?? {}).sort()).toEqual(['au', 'eu', 'nz', 'uk', 'us']);
});

test('defaults: no standard topic, no paid key, a table of the stack’s own, and the dashboard', () => {
  expect(parseStages(changed('stage', 'dev'))[0]?.cells.us).toMatchObject({
    standardTopic: false,
    dashboard: true,
    customerKey: false,
  });
  expect(parseStages(changed('stage', 'dev'))[0]?.cells.us).not.toHaveProperty('stateTable');
});

/** The dev stage with these cells, each with the settings of `us` and others. */
function withCells(cells: Readonly<Record<string, object>>) {
  const [stage] = structuredClone(stages) as unknown as [{ cells: { us: object } }];
  const all = Object.entries(cells).map(([name, other]) => [name, { ...stage.cells.us, ...other }]);
  return { stages: [{ ...stage, cells: Object.fromEntries(all) }] };
}

describe('names of cells', () => {
  const regions = (raw: unknown) =>
    Object.fromEntries(listCells(parseStages(raw)).map(({ name, id, region }) => [name, [id, region]]));

  test('a cell with the name of a region belongs to that region; another cell names its region', () => {
    expect(regions(withCells({ us: {}, nz: { region: 'nz' }, large: { region: 'us' } }))).toEqual({
      'dev-us': ['us', 'us'],
      'dev-nz': ['nz', 'nz'],
      'dev-large': ['large', 'us'],
    });
  });

  test('commands name a cell by its name, or with its stage; a region is no name', () => {
    const parsed = parseStages(withCells({ us: {}, large: { region: 'us' } }));
    expect(findCell(parsed, 'us')).toMatchObject({ name: 'dev-us', region: 'us' });
    expect(findCell(parsed, 'large')).toMatchObject({ name: 'dev-large', region: 'us' });
    expect(findCell(parsed, 'dev-large')).toEqual(findCell(parsed, 'large'));
    const only = parseStages(withCells({ large: { region: 'us' } }));
    expect(() => findCell(only, 'us')).toThrow('--cell must be one of dev-large.');
  });

  const table = { name: 'restored', streamArn: STREAM };
  test.each([
    [
      { large: {} },
      'cells.large.region must be given, because large is not a region: us, nz, au, uk or eu (stage dev).',
    ],
    [
      { us: { region: 'nz' } },
      'cells.us.region must be us or be omitted, because the cell has the name of this region (stage dev).',
    ],
    [
      { large: { region: 'mars' } },
      'cells.large.region must be a region of the ordering API: us, nz, au, uk or eu (stage dev).',
    ],
    [
      { 'us-2': { region: 'us' } },
      'cells.us-2 is not the name of a cell, which must be 1–16 lower-case letters and digits, beginning with a letter (stage dev).',
    ],
    [
      { us: { stateTable: table }, large: { region: 'us', stateTable: table } },
      'cells.large.stateTable.name must not be that of the cell dev-us (stage dev).',
    ],
    [
      Object.fromEntries(
        ['us', 'large'].map((name) => [
          name,
          {
            ...{ region: 'us', publicUrl: `https://${name}.example` },
            apiDomain: { name: 'api.jobwire.example', certificateArn: certificateArn('us-east-1') },
          },
        ]),
      ),
      'cells.large.apiDomain.name must not be that of the cell dev-us (stage dev).',
    ],
  ])('rejects %j', (cells, sentence) => {
    expect(() => parseStages(withCells(cells))).toThrow(sentence);
  });

  test('tables of the same name in two AWS accounts are different tables', () => {
    const other = { name: 'restored', streamArn: STREAM.replace(/\d{12}/, '222222222222') };
    const cells = { us: { stateTable: table }, large: { region: 'us', stateTable: other } };
    expect(() => parseStages(withCells(cells))).not.toThrow();
  });
});

test.each([
  ['stage', 'Dev', 'stage must be 2–16 lower-case letters and digits, beginning with a letter (stage Dev).'],
  ['stage', undefined, 'stage is missing; it must be the name of the stage (stage undefined).'],
  ['protected', 'yes', 'protected must be true or false (stage dev).'],
  ['eventRetentionDays', 3, 'eventRetentionDays must be an integer from 7 to 365 (stage dev).'],
  ['pollConcurrency', 1, 'pollConcurrency must be an integer from 2 to 1000 (stage dev).'],
  [
    'logRetention',
    8,
    'logRetention must be a number of days that CloudWatch Logs accepts, such as 7, 30 or 90 (stage dev).',
  ],
  ['retention', 8, 'retention is not a known setting (stage dev).'],
  [
    'cells.us.subscribers',
    { accounts: ['1234'] },
    'cells.us.subscribers.accounts[0] must be the id of an AWS account, 12 digits as a string (stage dev).',
  ],
  [
    'cells.us.subscribers',
    { organization: 'acme' },
    'cells.us.subscribers.organization must be the id of an organization, such as o-a1b2c3d4e5 (stage dev).',
  ],
  [
    'cells.us.backup',
    { retentionDays: 7 },
    'cells.us.backup.vault is missing; it must be the name of a backup vault (stage dev).',
  ],
  [
    'cells.us.backup',
    { vault: 'jobwire', copyTo: 'arn:aws:backup:us-east-1:111122223333:backup-vault:Default' },
    'cells.us.backup.copyTo must be in another AWS region than the cell (stage dev).',
  ],
  [
    'cells.us.apiDomain',
    { name: 'api.jobwire.example' },
    'cells.us.apiDomain.certificateArn must be given, or hostedZone (stage dev).',
  ],
  [
    'cells.us.apiDomain',
    { name: 'api.jobwire.example', certificateArn: certificateArn('eu-central-1') },
    'cells.us.apiDomain.certificateArn must be in us-east-1 (stage dev).',
  ],
  [
    'cells.us.staticEgress',
    { natGateways: 4 },
    'cells.us.staticEgress.natGateways must be an integer from 1 to 3 (stage dev).',
  ],
  ['cells.us.monthlyBudget', 0, 'cells.us.monthlyBudget must be an integer from 1 to 1000000 (stage dev).'],
  [
    'cells.us.queues',
    [{ arn: 'https://sqs.us-east-1.amazonaws.com/111122223333/jobs' }],
    'cells.us.queues[0].arn must be the ARN of an SQS queue (stage dev).',
  ],
  ['cells.us.subscribers', {}, 'cells.us.subscribers must contain accounts or organization (stage dev).'],
  [
    'cells.us.awsRegion',
    'virginia',
    'cells.us.awsRegion must be an AWS region such as eu-central-1 (stage dev).',
  ],
  [
    'cells.us.publicUrl',
    'http://x.example',
    'cells.us.publicUrl must be a URL that begins with https:// (stage dev).',
  ],
  [
    'cells.us.upstream.realm',
    undefined,
    'cells.us.upstream.realm is missing; it must be the name of the realm (stage dev).',
  ],
  ['cells.us.dashboard', 'yes', 'cells.us.dashboard must be true or false (stage dev).'],
  [
    'cells.us.dashboardDomain',
    { name: 'https://us.example', certificateArn: certificateArn('us-east-1') },
    'cells.us.dashboardDomain.name must be a host name such as us.jobwire.example (stage dev).',
  ],
  [
    'cells.us.dashboardDomain',
    { name: 'us.jobwire.example', certificateArn: certificateArn('eu-west-2') },
    'cells.us.dashboardDomain.certificateArn must be the ARN of a certificate in us-east-1, as CloudFront requires (stage dev).',
  ],
  ['cells.us.customerkey', true, 'cells.us.customerkey is not a known setting (stage dev).'],
  ['cells.us.customerKey', 1, 'cells.us.customerKey must be true or false (stage dev).'],
  [
    'cells.us.notifications',
    { identity: 'print.example' },
    'cells.us.notifications.from is missing; it must be an e-mail address, or a name and an address such as Print Shop <orders@print.example> (stage dev).',
  ],
  [
    'cells.us.notifications',
    { from: 'Print Shop orders@print.example', identity: 'print.example' },
    'cells.us.notifications.from must be an e-mail address, or a name and an address such as Print Shop <orders@print.example> (stage dev).',
  ],
  [
    'cells.us.notifications',
    { from: 'orders@print.example', identity: 'https://print.example' },
    'cells.us.notifications.identity must be a domain such as print.example, or the ARN of an existing SES identity (stage dev).',
  ],
  [
    'cells.us.notifications',
    { from: 'orders@reprint.example', identity: 'print.example' },
    'cells.us.notifications.from must be an address of the identity print.example (stage dev).',
  ],
  [
    'cells.us.notifications',
    { from: 'sales@print.example', identity: identityArn('us-east-1', 'orders@print.example') },
    'cells.us.notifications.from must be an address of the identity orders@print.example (stage dev).',
  ],
  [
    'cells.us.notifications',
    { from: 'orders@print.example', identity: identityArn('eu-west-2', 'print.example') },
    'cells.us.notifications.identity must be one in us-east-1 (stage dev).',
  ],
  [
    'cells.us.notifications',
    { from: 'orders@print.example', identity: 'print.example', sms: { senderId: '12345' } },
    'cells.us.notifications.sms.senderId must be 1–11 letters and digits, one of them a letter (stage dev).',
  ],
  [
    'cells.us.notifications',
    { from: 'orders@print.example', identity: 'print.example', sms: true },
    'cells.us.notifications.sms must be the settings of SMS, {} for the defaults (stage dev).',
  ],
  [
    'api.corsOrigins',
    ['https://tools.example.com/'],
    'api.corsOrigins[0] must be an origin such as https://tools.example.com, without a path or a final slash (stage dev).',
  ],
  ['canary', { minutes: 7 }, 'canary.minutes must be 5, 10, 15 or 30 (stage dev).'],
  ['tracing', { samplePercent: 0 }, 'tracing.samplePercent must be a number from 0.01 to 100 (stage dev).'],
  ['api.corsOrigins', '*', 'api.corsOrigins must be a list of origins (stage dev).'],
  [
    'signIn',
    { issuer: 'https://id.example', clientId: 'jobwire', groups: { desk: { role: 'root' } } },
    'signIn.groups.desk.role must be read, operate or admin (stage dev).',
  ],
  [
    'signIn',
    { issuer: 'https://id.example', clientId: 'x'.repeat(2_500), groups: { desk: { role: 'read' } } },
    'signIn must be at most 2500 characters of JSON, because it is in the environment of functions (stage dev).',
  ],
  ['cells.mars', {}, 'cells.mars.awsRegion is missing; it must be an AWS region (stage dev).'],
  [
    'cells.us.stateTable',
    { name: 'other', streamArn: STREAM },
    'cells.us.stateTable.streamArn must be that of the stream of other in us-east-1 (stage dev).',
  ],
  [
    'cells.us.stateTable',
    { name: 'restored', streamArn: STREAM.replace('us-east-1', 'eu-west-2') },
    'cells.us.stateTable.streamArn must be that of the stream of restored in us-east-1 (stage dev).',
  ],
  [
    'cells.us.stateTable',
    { name: 'restored', streamArn: 'restored' },
    'cells.us.stateTable.streamArn must be the ARN of the table’s stream (stage dev).',
  ],
  [
    'cells.us.stateTable',
    { name: 'restored', streamArn: STREAM, restoredAt: '2999-01-01T00:00:00Z' },
    'cells.us.stateTable.restoredAt must not be in the future (stage dev).',
  ],
])('%s: %j', (path, value, sentence) => {
  const parse = () => parseStages(changed(path, value));
  expect(parse).toThrow(SettingsError);
  expect(parse).toThrow(`jobwire.cells.json: ${sentence.replace(' (stage undefined)', '')}`);
});

test.each([
  [true, '111122223333', undefined],
  [false, '444455556666', undefined],
  [
    true,
    '444455556666',
    'cells.us.stateTable.keyArn must be that of a KMS key in the AWS account 111122223333 of the table, because of customerKey (stage dev).',
  ],
])(
  'customerKey: %j with the key of the AWS account %s for a table of 111122223333',
  (customerKey, owner, problem) => {
    const keyArn = `arn:aws:kms:us-east-1:${owner}:key/0e6e5f0a`;
    const settings = withCells({
      us: { customerKey, stateTable: { name: 'restored', streamArn: STREAM, keyArn } },
    });
    if (problem === undefined) expect(() => parseStages(settings)).not.toThrow();
    else expect(() => parseStages(settings)).toThrow(problem);
  },
);

test.each([
  ['orders@print.example', 'print.example'],
  ['Print Shop <orders@mail.print.example>', 'print.example'],
  ['Orders@Print.example', identityArn('us-east-1', 'print.example')],
  ['orders@print.example', identityArn('us-east-1', 'orders@print.example')],
])('customers are notified from %s by the identity %s', (from, identity) => {
  const [stage] = parseStages(changed('cells.us.notifications', { from, identity }));
  expect(stage?.cells.us?.notifications).toEqual({ from, identity });
});

test('queues, the sign-in of users and origins fit into the environment of a function together', () => {
  const [, prod] = structuredClone(stages) as unknown as [
    unknown,
    { cells: { us: object }; signIn?: object; api: { corsOrigins: string[] } },
  ];
  const arn = (at: number) => `arn:aws:sqs:us-east-1:111122223333:${'q'.repeat(78)}${10 + at}`;
  Object.assign(prod.cells.us, { queues: Array.from({ length: 20 }, (_, at) => ({ arn: arn(at) })) });
  expect(() => parseStages({ stages: [prod] })).not.toThrow();
  const groups = Object.fromEntries(Array.from({ length: 10 }, (_, at) => [`group-${at}`, { role: 'read' }]));
  prod.signIn = { issuer: 'https://login.example', clientId: 'jobwire', groups };
  expect(() => parseStages({ stages: [prod] })).toThrow(
    'cells.us.queues must have ARNs of at most 2500 characters together with signIn and api.corsOrigins, because all are in the environment of functions (stage prod).',
  );
  delete prod.signIn;
  const corsOrigins = Array.from({ length: 20 }, (_, at) => `https://${'tools'.repeat(3)}${10 + at}.example`);
  prod.api.corsOrigins = corsOrigins;
  expect(() => parseStages({ stages: [prod] })).toThrow('cells.us.queues must have ARNs of at most 2500');
  Object.assign(prod.cells.us, { queues: [] });
  expect(() => parseStages({ stages: [prod] })).not.toThrow();
  prod.api.corsOrigins = corsOrigins.map((origin) => origin.replace('tools', 'tools'.repeat(24)));
  expect(() => parseStages({ stages: [prod] })).toThrow(
    'api.corsOrigins must have at most 2500 characters together with signIn, because both are in the environment of functions (stage prod).',
  );
});

test('an SES identity is created by one cell of an AWS region; the others name it', () => {
  const notifications = (identity: string) => ({ from: 'orders@print.example', identity });
  const [, prod] = structuredClone(stages) as unknown as [
    unknown,
    { cells: Record<string, { notifications?: object }> },
  ];
  const withCells = (au: string) => {
    for (const [region, identity] of Object.entries({ us: 'print.example', nz: 'print.example', au })) {
      Object.assign(prod.cells[region] ?? {}, { notifications: notifications(identity) });
    }
    return () => parseStages({ stages: [prod] });
  };
  expect(withCells('print.example')).toThrow(
    'jobwire.cells.json: cells.au.notifications.identity must be the ARN of the identity that the cell nz creates in the same AWS region (stage prod).',
  );
  expect(withCells(identityArn('ap-southeast-2', 'print.example'))).not.toThrow();
});

test('two stages of one name would be the same stacks', () => {
  const twice = { stages: [stages[0], stages[0]] };
  expect(() => parseStages(twice)).toThrow('jobwire.cells.json: stage must be unique (stage dev).');
});

test('a domain for the dashboard is rejected without a dashboard', () => {
  const {
    stages: [stage],
  } = changed('cells.us.dashboard', false) as unknown as {
    stages: [{ cells: { us: Record<string, unknown> } }];
  };
  stage.cells.us.dashboardDomain = {
    name: 'us.jobwire.example',
    certificateArn: certificateArn('us-east-1'),
  };
  expect(() => parseStages({ stages: [stage] })).toThrow(
    'cells.us.dashboardDomain must be omitted if the cell has no dashboard',
  );
});

test('a protected stage names its AWS account', () => {
  const { stages: all } = changed('protected', true);
  expect(() => parseStages({ stages: all })).toThrow(
    'jobwire.cells.json: awsAccount must be the id of an AWS account, 12 digits as a string, because the stage is protected (stage dev).',
  );
  const [stage] = parseStages({ stages: [{ ...all[0], awsAccount: '111122223333' }] });
  expect(stage?.awsAccount).toBe('111122223333');
});

test('a missing settings file, a syntax error and a file without stages are each reported in one error message', () => {
  expect(() => readStages('nowhere.json')).toThrow(
    'The settings file nowhere.json cannot be read. Copy jobwire.cells.example.json to jobwire.cells.json and change it, or name another file with "-c cells=FILE".',
  );
  expect(() => readStages('README.md')).toThrow('README.md is not JSON:');
  expect(() => parseStages([])).toThrow(SettingsError);
  expect(() => parseStages({})).toThrow(
    'jobwire.cells.json: stages is missing; it must be a list of stages.',
  );
});

test('log retentions are exactly those of CloudWatch Logs', () => {
  const days = Object.values(RetentionDays).filter((value) => typeof value === 'number');
  for (const each of days.filter((value) => value !== RetentionDays.INFINITE))
    expect(parseStages(changed('logRetention', each))[0]?.logRetention).toBe(each);
});
