/** `npm run preflight` against recorded responses of AWS: what an emulator does not have. test/deploy/smoke.test.ts runs it on one. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import example from '../../jobwire.cells.example.json' with { type: 'json' };

const STREAM = 'arn:aws:dynamodb:us-east-1:000000000000:table/restored/stream/2026-03-02T09:00:00.000';
const CERTIFICATE = 'arn:aws:acm:us-east-1:000000000000:certificate/0e6e5f0a';
const xml = (action: string, result: string) =>
  `<${action}Response><${action}Result>${result}</${action}Result></${action}Response>`;
const member = (key: string, value: string) => `<entry><key>${key}</key><value>${value}</value></entry>`;

/** Responses by the last part of `X-Amz-Target`, by `Action`, or by path: of an account that is ready, of a new one, and of one that is ready but
 * already uses the domain of e-mails. */
type Account = 'ready' | 'new' | 'taken';
const RESPONSES: Record<string, Partial<Record<Account, unknown>>> = {
  GetCallerIdentity: {
    ready: xml('GetCallerIdentity', '<Account>000000000000</Account>'),
    new: xml('GetCallerIdentity', '<Account>111111111111</Account>'),
  },
  GetParameter: { ready: { Parameter: { Value: '28' } }, new: { Parameter: { Value: '5' } } },
  '/2016-08-19/account-settings/': {
    ready: { AccountLimit: { UnreservedConcurrentExecutions: 1000 } },
    new: { AccountLimit: { UnreservedConcurrentExecutions: 10 } },
  },
  '/account': {
    ready: { throttleSettings: { rateLimit: 10_000, burstLimit: 5_000 } },
    new: { throttleSettings: { rateLimit: 50, burstLimit: 5_000 } },
  },
  '/GetTraceSegmentDestination': {
    ready: { Destination: 'CloudWatchLogs', Status: 'ACTIVE' },
    new: { Destination: 'XRay', Status: 'ACTIVE' },
  },
  '/v2/email/account': {
    ready: { ProductionAccessEnabled: true, SendingEnabled: true, SendQuota: { Max24HourSend: 50_000 } },
    new: { ProductionAccessEnabled: false, SendingEnabled: true },
  },
  '/v2/email/identities/print.example': {
    ready: { VerifiedForSendingStatus: true },
    new: { VerifiedForSendingStatus: false },
  },
  DescribeStacks: {
    ready: xml(
      'DescribeStacks',
      '<Stacks><member><Outputs><member><OutputKey>MailDnsRecord1</OutputKey><OutputValue>token._domainkey.print.example CNAME token.dkim.amazonses.com</OutputValue></member><member><OutputKey>TopicArn</OutputKey><OutputValue>arn:aws:sns:us-east-1:000000000000:jobwire-prod-us-events.fifo</OutputValue></member></Outputs></member></Stacks>',
    ),
    taken: { __type: 'ValidationError', message: 'Stack with id jobwire-prod-us does not exist' },
  },
  GetSMSSandboxAccountStatus: {
    ready: xml('GetSMSSandboxAccountStatus', '<IsInSandbox>false</IsInSandbox>'),
    new: xml('GetSMSSandboxAccountStatus', '<IsInSandbox>true</IsInSandbox>'),
  },
  GetSMSAttributes: {
    ready: xml('GetSMSAttributes', `<attributes>${member('MonthlySpendLimit', '50')}</attributes>`),
    new: '',
  },
  DescribeCertificate: {
    ready: { Certificate: { Status: 'ISSUED', DomainName: '*.jobwire.example' } },
    new: { Certificate: { Status: 'PENDING_VALIDATION', DomainName: '*.jobwire.example' } },
  },
  '/account-settings': {
    ready: {
      ResourceTypeOptInPreference: { DynamoDB: true },
      ResourceTypeManagementPreference: { DynamoDB: true },
    },
    new: {
      ResourceTypeOptInPreference: { DynamoDB: true },
      ResourceTypeManagementPreference: { DynamoDB: false },
    },
  },
  '/backup-vaults/backups': {
    ready: { BackupVaultName: 'backups' },
    new: { __type: 'AccessDeniedException' },
  },
  '/backup-vaults/copies': {
    ready: { BackupVaultName: 'copies' },
    new: { __type: 'ResourceNotFoundException' },
  },
  DescribeTable: {
    ready: { Table: { TableStatus: 'ACTIVE', LatestStreamArn: STREAM } },
    new: { Table: { TableStatus: 'ACTIVE' } },
  },
};

let server: Server;
let folder: string;

beforeAll(async () => {
  server = createServer(async (request, response) => {
    const body = await text(request);
    const target = request.headers['x-amz-target'];
    const name = target
      ? String(target).split('.')[1]
      : (new URLSearchParams(body).get('Action') ?? request.url?.split('?')[0]);
    const account = /Credential=(\w+)/.exec(request.headers.authorization ?? '')?.[1]?.toLowerCase();
    const answers = RESPONSES[name ?? ''];
    const answer = answers?.[account as Account] ?? answers?.ready;
    if (answer === undefined) throw new Error(`There is no response to ${name}.`);
    if (typeof answer === 'object' && answer !== null && '__type' in answer) response.statusCode = 400;
    response.setHeader('content-type', typeof answer === 'string' ? 'text/xml' : 'application/json');
    response.end(typeof answer === 'string' ? answer : JSON.stringify(answer));
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  folder = mkdtempSync(join(tmpdir(), 'jobwire-preflight-'));
  const [, prod] = example.stages;
  const us = {
    ...prod?.cells.us,
    dashboardDomain: { name: 'us.jobwire.example', certificateArn: CERTIFICATE },
    stateTable: { name: 'restored', streamArn: STREAM },
    backup: {
      vault: 'backups',
      copyTo: 'arn:aws:backup:eu-central-1:000000000000:backup-vault:copies',
    },
  };
  for (const [file, cell] of Object.entries({ cells: us, established: { ...us, established: true } })) {
    const settings = { stages: [{ ...prod, tracing: { samplePercent: 5 }, cells: { us: cell } }] };
    writeFileSync(join(folder, `${file}.json`), JSON.stringify(settings));
  }
});

afterAll(() => {
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

async function preflight(
  accessKeyId: string,
  ...settings: string[]
): Promise<{ code: number; lines: string[] }> {
  const args = [
    'infra/preflight.ts',
    '--settings',
    ...(settings.length ? settings : [join(folder, 'cells.json')]),
  ];
  const env = {
    AWS_ENDPOINT_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    ...{ AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: 'secret' },
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
  };
  return new Promise((done) => {
    execFile(process.execPath, args, { env }, (error, stdout, stderr) =>
      done({ code: Number(error?.code ?? 0), lines: `${stdout}${stderr}`.trim().split('\n') }),
    );
  });
}

test('an AWS account that is ready passes every check, with exit code 0', async () => {
  const { code, lines } = await preflight('READY');
  expect(lines).toEqual([
    'ok       AWS account, us-east-1: 000000000000, as in the settings',
    'ok       CDK bootstrap, us-east-1: version 28',
    'ok       Lambda concurrency, us-east-1: 1000 unreserved, 242 needed (prod-us)',
    'ok       API Gateway throttling, us-east-1: 10000 requests per second and bursts of 5000; 100 and 200 needed (prod-us)',
    'ok       Transaction Search, us-east-1: active',
    'ok       SES, prod-us: production access, 50000 mails in 24 hours',
    'ok       SES identity print.example, prod-us: verified',
    'ok       SMS, prod-us: production access, $50 a month',
    'ok       Certificate of us.jobwire.example, prod-us: issued',
    'ok       AWS Backup, prod-us: enabled for DynamoDB',
    'ok       Backup vault backups in us-east-1, prod-us: exists',
    'ok       Backup vault copies in eu-central-1, prod-us: exists',
    'ok       Table restored, prod-us: active, with its stream',
    'Ready to deploy.',
  ]);
  expect(code).toBe(0);
});

test('each problem of a new AWS account has a line with the fix, with exit code 1', async () => {
  const { code, lines } = await preflight('NEW');
  expect(lines).toEqual([
    'problem  AWS account, us-east-1: The credentials belong to 111111111111, but awsAccount of the stage prod is 000000000000. Use credentials of that account.',
    'problem  CDK bootstrap, us-east-1: The version is 5; 6 is required. Run "npx cdk bootstrap aws://000000000000/us-east-1".',
    expect.stringMatching(
      /^problem {2}Lambda concurrency, us-east-1: 10 unreserved, 242 needed \(prod-us\)\. Request/,
    ),
    expect.stringMatching(/^problem {2}API Gateway throttling, us-east-1: 50 requests per second .* Request/),
    'problem  Transaction Search, us-east-1: X-Ray accepts no spans: the destination of traces is XRay, ACTIVE. Enable Transaction Search in the CloudWatch console, or remove tracing of the stage.',
    expect.stringMatching(
      /^problem {2}SES, prod-us: SES in us-east-1 is in the sandbox.* Request production access\.$/,
    ),
    expect.stringMatching(/^problem {2}SES identity print\.example, prod-us: It is not verified\. Add/),
    expect.stringMatching(/^problem {2}SMS, prod-us: SMS in us-east-1 is in the sandbox/),
    'problem  Certificate of us.jobwire.example, prod-us: Its status is PENDING_VALIDATION. Add the DNS record that validates it, and wait.',
    expect.stringMatching(
      /^problem {2}AWS Backup, prod-us: DynamoDB or its advanced features, .* in us-east-1\. Run "aws backup update-region-settings/,
    ),
    expect.stringMatching(/^problem {2}Backup vault backups in us-east-1, prod-us: It does not exist, or/),
    expect.stringMatching(/^problem {2}Backup vault copies in eu-central-1, prod-us: It does not exist, or/),
    'problem  Table restored, prod-us: Its stream is off. Correct stateTable.streamArn.',
    '13 of the checks found a problem.',
  ]);
  expect(code).toBe(1);
});

test('an SES identity that the deployment would create, and that exists already, is a problem before the deployment fails', async () => {
  const { code, lines } = await preflight('TAKEN');
  expect(lines).toContain(
    'problem  SES identity print.example, prod-us: It exists, and the stack jobwire-prod-us, which would create it, did not create it. Set identity to arn:aws:ses:us-east-1:000000000000:identity/print.example.',
  );
  expect(lines.filter((line) => line.startsWith('problem'))).toHaveLength(1);
  expect(code).toBe(1);
});

test('a first deployment with the archive and the deletion protection, which could not be rolled back, is a problem', async () => {
  const settings = join(folder, 'established.json');
  expect((await preflight('READY', settings)).lines).toContain('ok       Stack jobwire-prod-us: is deployed');
  expect((await preflight('TAKEN', settings)).lines).toContain(
    'problem  Stack jobwire-prod-us: It is not deployed in us-east-1. Set established of the cell to false until its first deployment has succeeded.',
  );
});

test('the example stage dev needs more concurrency than a new AWS account can have, as the guide says', async () => {
  const { lines } = await preflight('NEW', 'jobwire.cells.example.json', '--cell', 'dev-us');
  const [, needed] =
    /Lambda concurrency, us-east-1: 10 unreserved, (\d+) needed \(dev-us\)/.exec(lines.join('\n')) ?? [];
  // Polls, lone polls, drains, streams, requests, four batches in each of the four shards of the table's stream that can contain wake
  // marks, the tick and alert rules.
  expect(Number(needed)).toBe(2 + 2 + 2 + 2 + 2 + 4 * 4 + 2);
  expect(readFileSync('docs/deploying.md', 'utf8')).toContain(
    `The stage \`dev\` of the example needs ${needed}`,
  );
});
