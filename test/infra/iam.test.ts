/**
 * All permissions as one list (docs/internals/permissions.md): additions and removals fail here. `PERMISSIONS=write npx vitest run
 * test/infra/iam.test.ts` writes the list again, for review.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { getStatements, type Resource, type Statement, synthesize } from '../support/cells.ts';

const LIST = 'docs/internals/permissions.md';

/** Allowed wildcards in resources, and why no narrower resource works. */
const WILDCARDS: readonly (readonly [pattern: RegExp, reason: string])[] = [
  [
    /^phone numbers \(all but arn:aws:sns:\*:\*:\*\)$/,
    'Phone numbers, which have no ARN: topics, and whatever else of SNS has one, are left out.',
  ],
  [/^\*$/, 'Whether a phone number has opted out can be asked of all of them, or of none.'],
  [
    /^secret jobwire\/prod\/us\/accounts\/\*$/,
    'Secrets of owners, below a name, are made after deployment, and AWS appends six characters to each.',
  ],
  [/^DashboardBucket\/\*$/, 'Files are named by what is in them, and the bucket holds nothing else.'],
];

/** The encryption context of the data keys of a cell, as a condition. */
const SECRETS = 'kms:EncryptionContext:jobwire:secrets';

/** Every cell of every stage is created by the same code; names differ by region and stage. */
const cell = synthesize('prod', { cell: { standardTopic: true, eventBus: {} } });

/** A permission of a role: an action, a resource, and partitions for tables. */
interface Permission {
  readonly role: string;
  readonly action: string;
  readonly on: string;
  readonly partition: string;
}

const text = ({ role, action, on, partition }: Permission): string =>
  `${role} may ${action} ${on}${partition === '' ? '' : ` where the partition is ${partition}`}`;

test('every role has exactly the listed permissions', () => {
  const found = permissions();
  const document = toDocument(found);
  if (process.env.PERMISSIONS === 'write') {
    if (process.env.CI) throw new Error('CI reads the list, and never writes it.');
    writeFileSync(LIST, document);
  }
  const committed = readFileSync(LIST, 'utf8');
  const [now, then] = [found.map(text), fromDocument(committed).map(text)];
  const grown = now.filter((one) => !then.includes(one)).map((one) => `${one}, which ${LIST} does not list.`);
  const shrunk = then
    .filter((one) => !now.includes(one))
    .map((one) => `${LIST} lists that ${one}, and that is so no more.`);
  expect([...grown, ...shrunk]).toEqual([]);
  expect(committed, 'the rest of the list').toBe(document);
});

test('the list is parsed as it is written, and a missing or additional row fails', () => {
  const found = permissions();
  expect(fromDocument(toDocument(found))).toEqual(found);
  expect(found.length).toBeGreaterThan(100);
});

test('each role can be assumed by one service only', () => {
  const trusts = roles().map(([role, { Properties }]) => {
    const statements = Properties.AssumeRolePolicyDocument.Statement as Statement[];
    return [role, statements.map(({ Effect, Action, Principal }) => [Effect, Action, Principal])];
  });
  for (const [role, statements] of trusts) {
    expect(statements, String(role)).toEqual([
      [
        'Allow',
        'sts:AssumeRole',
        { Service: expect.stringMatching(/^(lambda|scheduler|apigateway)\.amazonaws\.com$/) },
      ],
    ]);
  }
});

test('the scheduler may assume its roles for schedules of this AWS account and group only', () => {
  const trusts = roles().flatMap(
    ([, { Properties }]) => Properties.AssumeRolePolicyDocument.Statement as Statement[],
  );
  const account = { Ref: 'AWS::AccountId' };
  const group = ['', ['arn:aws:scheduler:us-east-1:', account, ':schedule-group/default']];
  const condition = {
    StringEquals: { 'aws:SourceAccount': account, 'aws:SourceArn': { 'Fn::Join': group } },
  };
  const schedulerTrusts = trusts.filter(({ Principal }) => JSON.stringify(Principal).includes('scheduler'));
  expect(schedulerTrusts.map(({ Condition }) => Condition)).toEqual([condition, condition]);
});

test('no role may change permissions, pass roles or scan; actions have no wildcards', () => {
  const actions = new Set(permissions().map(({ action }) => action));
  const refused = [...actions].filter((action) =>
    /\*|^(iam|sts|organizations|cloudformation):|PassRole|Scan|DeleteTable|UpdateTable|ScheduleKeyDeletion|kms:(?!Decrypt$|GenerateDataKeyWithoutPlaintext$)/.test(
      action,
    ),
  );
  expect(refused).toEqual([]);
});

test('each wildcard in a resource has a reason, and each reason a wildcard', () => {
  const wild = [...new Set(permissions().map(({ on }) => on))].filter((on) => on.includes('*'));
  expect(wild.filter((on) => !WILDCARDS.some(([pattern]) => pattern.test(on)))).toEqual([]);
  for (const [pattern, reason] of WILDCARDS) {
    expect(
      wild.some((on) => pattern.test(on)),
      String(pattern),
    ).toBe(true);
    expect(reason).toMatch(/^[A-Z].{30,}\.$/);
  }
});

test('every permission comes from a role’s policy, and no deny statement hides a grant', () => {
  const policies = cell.policies();
  // A policy that exceeds the role's own limit is split into another one, for this role alone.
  for (const [id, { Properties }] of cell.resources('AWS::IAM::ManagedPolicy')) {
    expect([Properties.Roles.length, Properties.Description], id).toEqual([
      1,
      expect.stringMatching(/^Part of the policies for /),
    ]);
  }
  expect(cell.resources('AWS::IAM::User')).toEqual([]);
  for (const [id, { Properties }] of policies) {
    expect(Properties.Users ?? Properties.Groups, id).toBeUndefined();
    for (const statement of Properties.PolicyDocument.Statement as (Statement & {
      NotAction?: unknown;
      NotResource?: unknown;
    })[]) {
      // Only for SMS, everything except some resources is allowed: a telephone number has no ARN.
      const others = statement.Action === 'sns:Publish' ? statement.NotResource : undefined;
      expect([statement.Effect, statement.NotAction, statement.NotResource], id).toEqual([
        'Allow',
        undefined,
        others,
      ]);
    }
  }
});

// The list

function roles(): [string, Resource][] {
  return cell.resources('AWS::IAM::Role');
}

/** A logical id without its hash: the path of the construct. */
const getName = (id: string): string => id.replace(/[0-9A-F]{8}$/, '');

function permissions(): Permission[] {
  const policies = cell.policies();
  const all = roles().flatMap(([id, { Properties }]) => {
    const role = getName(id).replace(/Role$/, '');
    const assumed = (Properties.AssumeRolePolicyDocument.Statement as Statement[]).map(({ Principal }) => ({
      role,
      action: '(trusted service)',
      on: String((Principal as { Service: unknown }).Service),
      partition: '',
    }));
    const managed = ((Properties.ManagedPolicyArns ?? []) as unknown[]).map((arn) => ({
      ...{ role, action: '(managed policy)' },
      on: resourceName(arn),
      partition: '',
    }));
    const granted = getStatements(policies, id).flatMap(
      ({ Action, Resource: on, NotResource, Condition }) => {
        const names = NotResource
          ? [`phone numbers (all but ${NotResource})`]
          : [on].flat().map(resourceName);
        const from = Condition?.StringEquals?.['ses:FromAddress'];
        const context = Condition?.StringEquals?.[SECRETS];
        const of = `${from ? `, from ${from}` : ''}${context ? `, secrets of ${context}` : ''}`;
        return [Action]
          .flat()
          .flatMap((action) =>
            names.flatMap((name) =>
              getPartitions(Condition).map((partition) => ({ role, action, on: `${name}${of}`, partition })),
            ),
          );
      },
    );
    return [...assumed, ...managed, ...granted];
  });
  // The region of the cell does not matter here.
  const unique = new Map(all.map((one) => [text(one), one]));
  return [...unique.values()].sort((a, b) => (rank(a) < rank(b) ? -1 : 1));
}

const rank = ({ role, on, partition, action }: Permission): string =>
  [role, on, action, partition].join('\n');

function getPartitions(condition: Statement['Condition']): string[] {
  const keys = condition?.['ForAllValues:StringLike']?.['dynamodb:LeadingKeys'];
  const others = Object.keys(condition ?? {}).filter(
    (kind) => kind !== 'ForAllValues:StringLike' && kind !== 'Null' && kind !== 'StringEquals',
  );
  const listed = ['ses:FromAddress', SECRETS];
  expect(Object.keys(condition?.StringEquals ?? {}).filter((key) => !listed.includes(key))).toEqual([]);
  expect(others, 'conditions that the list would not show').toEqual([]);
  return keys === undefined ? [''] : ([keys].flat() as string[]);
}

/** Name of a statement's resource. */
function resourceName(resource: unknown): string {
  if (typeof resource === 'string') return resource;
  const {
    Ref,
    'Fn::GetAtt': attribute,
    'Fn::Join': join,
  } = resource as {
    Ref?: string;
    'Fn::GetAtt'?: [string, string];
    'Fn::Join'?: [string, unknown[]];
  };
  if (Ref !== undefined) return getName(Ref);
  if (attribute)
    return attribute[1] === 'Arn' ? getName(attribute[0]) : `${getName(attribute[0])} ${attribute[1]}`;
  if (!join) throw new Error(`This is no resource that is known here: ${JSON.stringify(resource)}`);
  const whole = join[1].map((part) => (typeof part === 'string' ? part : resourceName(part))).join(join[0]);
  const secret = /:secret:(.*)$/.exec(whole);
  return secret ? `secret ${secret[1]}` : whole;
}

const INTRODUCTION = `# Permissions

This page lists the IAM permissions of the roles in a cell. Most roles belong to a function: \`PollingTick\` to \`tick\`, \`ApiManage\` to \`manage\`, and \`ApiFunction\` to \`api\`. \`PERMISSIONS=write npx vitest run test/infra/iam.test.ts\` generates this page. Tests fail if it differs from the stack. Review every change to it.

The example is the cell \`us\` in the stage \`prod\` of \`jobwire.cells.example.json\`, with a standard topic and an event bus. The settings \`backup\`, \`canary\`, \`customerKey\`, \`queues\`, \`staticEgress\` and \`tracing\` add permissions that are not listed.
Permissions on tables are limited to partitions (\`dynamodb:LeadingKeys\`), except those on indexes and on the stream. Permissions on the KMS key of the cell are limited to the data keys of its secrets. With \`customerKey\`, functions may also use the key through the services that they access.
`;

/** Writes a section for each role. Actions with the same resource and partitions share a row. */
function toDocument(found: readonly Permission[]): string {
  const sections = [...new Set(found.map(({ role }) => role))].map((role) => {
    const mine = found.filter((one) => one.role === role);
    const actions = new Map<string, Permission[]>();
    for (const one of mine) {
      const key = `${one.action} ${one.on}`;
      actions.set(key, [...(actions.get(key) ?? []), one]);
    }
    const rows = new Map<string, string[]>();
    for (const group of actions.values()) {
      const names = group.flatMap(({ partition }) => (partition === '' ? [] : [`\`${partition}\``]));
      const [{ action = '', on = '' } = {}] = group;
      const rest = `${on} | ${names.join(', ')} |`.replace('|  |', '| |');
      rows.set(rest, [...(rows.get(rest) ?? []), action]);
    }
    const lines = [...rows].map(([rest, names]) => `| ${names.join(', ')} | ${rest}`);
    return `\n## ${role}\n\n| actions | resource | partitions |\n|---|---|---|\n${lines.join('\n')}\n`;
  });
  return `${INTRODUCTION}${sections.join('')}`;
}

function fromDocument(document: string): Permission[] {
  return document
    .split(/^## /m)
    .slice(1)
    .flatMap((section) => {
      const [role = '', ...lines] = section.split('\n');
      return lines
        .filter((line) => line.startsWith('| ') && !line.startsWith('| actions '))
        .flatMap((line) => {
          const [, actions = '', on = '', partitions = ''] = line.split('|').map((part) => part.trim());
          const names = [...partitions.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
          return actions
            .split(', ')
            .flatMap((action) =>
              (names.length === 0 ? [''] : names).map((partition) => ({ role, action, on, partition })),
            );
        });
    })
    .sort((a, b) => (rank(a) < rank(b) ? -1 : 1));
}
