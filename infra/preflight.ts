/**
 * `npm run preflight`: checks before a deployment that AWS will accept and run the cells of the settings. It changes nothing.
 */
import { lookup } from 'node:dns/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { DescribeTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { GetAccountCommand, GetEmailIdentityCommand, SESv2Client } from '@aws-sdk/client-sesv2';
import { GetSMSAttributesCommand, GetSMSSandboxAccountStatusCommand, SNSClient } from '@aws-sdk/client-sns';
import { WAKE_SHARDS } from '../shared/storage/schema.ts';
import { readAccountId, readOutputs, requestAws } from './aws.ts';
import { type Cell, findCell, listCells } from './cell.ts';
import { readStages, SETTINGS_FILE } from './settings.ts';
import { LONE_POLLS, WAKES } from './throughput.ts';

const USAGE = `Usage: npm run preflight [-- options]

Checks before a deployment that AWS will accept and run the cells of the settings, and changes nothing. The result is one line per
check; the exit code is 1 on a problem. A check that the credentials do not permit is a problem.

  --cell NAME      checks only this cell: <stage>-<cell>, or <cell> if it is in one stage only
  --settings FILE  settings file (${SETTINGS_FILE})`;

/** Version of the CDK's bootstrap stack that a deployment requires; `cdk.out/manifest.json` contains it. */
const BOOTSTRAP_VERSION = 6;
const BOOTSTRAP_PARAMETER = '/cdk-bootstrap/hnb659fds/version';
/** Concurrent invocations of the tick and of the evaluation of alert rules. */
const MINUTE_INVOCATIONS = 2;
/**
 * Duration of a request to the API that does not wait (s), by which the rate of requests becomes concurrent invocations. The rate limits
 * each method of the API; a cell is assumed to get as many requests in total.
 */
const REQUEST_SECONDS = 0.1;
/** Concurrent invocations that send messages, and that read feedback of mails. */
const NOTIFICATION_INVOCATIONS = 4;

/** The check found a problem; the message says what to do. */
class Problem extends Error {}

/** Throws a problem for the errors of AWS with a name, and all others as they are. */
const toProblem =
  (name: RegExp, message: string) =>
  (cause: Error): never => {
    throw name.test(cause.name) ? new Problem(message) : cause;
  };
const NOT_FOUND = /^ResourceNotFoundException$/;

interface Check {
  /** Subject and place of the check. */
  readonly subject: string;
  /** Permissions that the check requires. */
  readonly permissions: string;
  /** Returns what is in order. Throws {@link Problem}, and errors of AWS. */
  readonly run: () => Promise<string>;
}

/** Returns the checks of these cells. `all`: every cell of the settings, because cells share quotas. */
function listChecks(cells: readonly Cell[], all: readonly Cell[]): Check[] {
  const places = new Map(cells.map((cell) => [getPlace(cell), cell]));
  return [
    ...[...places.values()].flatMap((cell) => [
      ...listRegionChecks(
        cell,
        all.filter((other) => getPlace(other) === getPlace(cell)),
      ),
      ...listTraceChecks(cell),
    ]),
    ...cells.flatMap(listCellChecks),
  ];
}

/** AWS account and region: cells with the same one share quotas. */
function getPlace({ stage, cell }: Cell): string {
  return `${stage.awsAccount ?? ''} ${cell.awsRegion}`;
}

function listRegionChecks({ stage, cell }: Cell, sharing: readonly Cell[]): Check[] {
  const region = cell.awsRegion;
  const names = sharing.map(({ name }) => name).join(', ');
  return [
    {
      subject: `AWS account, ${region}`,
      permissions: 'sts:GetCallerIdentity',
      async run() {
        const account = await readAccountId(region);
        if (stage.awsAccount === undefined) return `${account}; the settings name none`;
        if (account === stage.awsAccount) return `${account}, as in the settings`;
        throw new Problem(
          `The credentials belong to ${account}, but awsAccount of the stage ${stage.stage} is ${stage.awsAccount}. Use credentials of that account.`,
        );
      },
    },
    {
      subject: `CDK bootstrap, ${region}`,
      permissions: 'ssm:GetParameter',
      async run() {
        const advice = `Run "npx cdk bootstrap aws://${stage.awsAccount ?? 'ACCOUNT'}/${region}".`;
        const text = await requestAws({
          ...{ service: 'ssm', region, target: 'AmazonSSM.GetParameter' },
          json: { Name: BOOTSTRAP_PARAMETER },
        }).catch(toProblem(/^ParameterNotFound$/, `The region is not bootstrapped. ${advice}`));
        const version = Number(JSON.parse(text).Parameter.Value);
        if (version >= BOOTSTRAP_VERSION) return `version ${version}`;
        throw new Problem(`The version is ${version}; ${BOOTSTRAP_VERSION} is required. ${advice}`);
      },
    },
    {
      subject: `Lambda concurrency, ${region}`,
      permissions: 'lambda:GetAccountSettings',
      async run() {
        const text = await requestAws({ service: 'lambda', region, path: '/2016-08-19/account-settings/' });
        const { UnreservedConcurrentExecutions: limit } = JSON.parse(text).AccountLimit;
        const needed = sharing.map(countInvocations).reduce((sum, count) => sum + count, 0);
        if (limit >= needed) return `${limit} unreserved, ${needed} needed (${names})`;
        throw new Problem(
          `${limit} unreserved, ${needed} needed (${names}). Request an increase of the quota L-B99A9384 of Lambda in Service Quotas, or lower pollConcurrency, drainConcurrency, api.streams or api.requestsPerSecond.`,
        );
      },
    },
    {
      subject: `API Gateway throttling, ${region}`,
      permissions: 'apigateway:GET on /account',
      async run() {
        const text = await requestAws({ service: 'apigateway', region, path: '/account' });
        // With less, a cell could not reach its limits even at one method of its API.
        const { rateLimit, burstLimit } = JSON.parse(text).throttleSettings;
        const rate = sharing.reduce((sum, one) => sum + one.stage.api.requestsPerSecond, 0);
        const burst = Math.max(...sharing.map((one) => one.stage.api.burst));
        if (rateLimit >= rate && burstLimit >= burst) {
          return `${rateLimit} requests per second and bursts of ${burstLimit}; ${rate} and ${burst} needed (${names})`;
        }
        throw new Problem(
          `${rateLimit} requests per second and bursts of ${burstLimit}; ${rate} and ${burst} needed (${names}). Request an increase of the quota L-8A5B8E43 of API Gateway, or lower api.requestsPerSecond and api.burst.`,
        );
      },
    },
  ];
}

/** Transaction Search, to which X-Ray sends spans: of each AWS account and region with traces. */
function listTraceChecks({ stage, cell }: Cell): Check[] {
  const region = cell.awsRegion;
  if (!stage.tracing) return [];
  return [
    {
      subject: `Transaction Search, ${region}`,
      permissions: 'xray:GetTraceSegmentDestination',
      async run() {
        const text = await requestAws({
          ...{ service: 'xray', region, path: '/GetTraceSegmentDestination', json: {} },
        });
        const { Destination, Status } = JSON.parse(text);
        if (Destination === 'CloudWatchLogs' && Status === 'ACTIVE') return 'active';
        throw new Problem(
          `X-Ray accepts no spans: the destination of traces is ${Destination}, ${Status}. Enable Transaction Search in the CloudWatch console, or remove tracing of the stage.`,
        );
      },
    },
  ];
}

function countInvocations({ stage, cell }: Cell): number {
  return (
    stage.pollConcurrency +
    Math.min(stage.pollConcurrency, LONE_POLLS.maxConcurrency) +
    stage.drainConcurrency +
    stage.api.streams +
    Math.ceil(stage.api.requestsPerSecond * REQUEST_SECONDS) +
    // A shard of the stream is a partition of the table, and a new table has four: each partition of wake marks can be in its own.
    WAKES.parallelization * WAKE_SHARDS +
    MINUTE_INVOCATIONS +
    (cell.notifications ? NOTIFICATION_INVOCATIONS : 0)
  );
}

function listCellChecks({ name, stage, cell }: Cell): Check[] {
  const {
    awsRegion: region,
    notifications,
    dashboardDomain,
    apiDomain,
    stateTable,
    established,
    backup,
  } = cell;
  const checks: Check[] = [];
  if (established)
    checks.push({
      subject: `Stack jobwire-${name}`,
      permissions: 'cloudformation:DescribeStacks',
      async run() {
        if ((await findOutputs(region, `jobwire-${name}`)).TopicArn !== undefined) return 'is deployed';
        throw new Problem(
          `It is not deployed in ${region}. Set established of the cell to false until its first deployment has succeeded.`,
        );
      },
    });
  if (notifications) {
    const identity = notifications.identity.split(':identity/').at(-1) ?? '';
    checks.push(
      {
        subject: `SES, ${name}`,
        permissions: 'ses:GetAccount',
        async run() {
          using client = disposable(new SESv2Client({ region }));
          const { ProductionAccessEnabled, SendingEnabled, SendQuota } = await client.sdk.send(
            new GetAccountCommand(),
          );
          if (!ProductionAccessEnabled)
            throw new Problem(
              `SES in ${region} is in the sandbox: it sends only to verified addresses. Request production access.`,
            );
          if (!SendingEnabled)
            throw new Problem(`SES in ${region} does not send. See its account dashboard for the reason.`);
          return `production access, ${SendQuota?.Max24HourSend} mails in 24 hours`;
        },
      },
      {
        subject: `SES identity ${identity}, ${name}`,
        permissions: 'ses:GetEmailIdentity and cloudformation:DescribeStacks',
        async run() {
          using client = disposable(new SESv2Client({ region }));
          const found = await client.sdk
            .send(new GetEmailIdentityCommand({ EmailIdentity: identity }))
            .catch((cause: Error) => {
              if (cause.name !== 'NotFoundException') throw cause;
            });
          const isOwn = identity === notifications.identity;
          if (found && isOwn && !(await hasIdentity(region, `jobwire-${name}`, identity)))
            throw new Problem(
              `It exists, and the stack jobwire-${name}, which would create it, did not create it. Set identity to arn:aws:ses:${region}:${stage.awsAccount ?? 'ACCOUNT'}:identity/${identity}.`,
            );
          if (found?.VerifiedForSendingStatus) return 'verified';
          if (found)
            throw new Problem(
              'It is not verified. Add the DNS records that SES and the outputs of the stack name.',
            );
          if (isOwn) return 'is created by the deployment';
          throw new Problem(`It does not exist in ${region}. Create it, or set identity to the domain.`);
        },
      },
    );
  }
  if (notifications?.sms) {
    checks.push({
      subject: `SMS, ${name}`,
      permissions: 'sns:GetSMSSandboxAccountStatus and sns:GetSMSAttributes',
      async run() {
        using client = disposable(new SNSClient({ region }));
        const { IsInSandbox } = await client.sdk.send(new GetSMSSandboxAccountStatusCommand());
        if (IsInSandbox)
          throw new Problem(
            `SMS in ${region} is in the sandbox: it sends only to verified numbers. Request to leave the sandbox in the SNS console.`,
          );
        const { attributes } = await client.sdk.send(
          new GetSMSAttributesCommand({ attributes: ['MonthlySpendLimit'] }),
        );
        return `production access, $${attributes?.MonthlySpendLimit ?? 1} a month`;
      },
    });
  }
  for (const [domain, target] of [
    [dashboardDomain, 'DistributionDomain'],
    [apiDomain, 'ApiDomainTarget'],
  ] as const) {
    if (!domain) continue;
    const { name: host, certificateArn } = domain;
    // Without an ARN, the deployment creates the certificate.
    if (certificateArn !== undefined)
      checks.push({
        subject: `Certificate of ${host}, ${name}`,
        permissions: 'acm:DescribeCertificate',
        async run() {
          const [, , , region = '', owner] = certificateArn.split(':');
          if (stage.awsAccount !== undefined && owner !== stage.awsAccount)
            throw new Problem(`It belongs to the AWS account ${owner}. Request one in ${stage.awsAccount}.`);
          const text = await requestAws({
            ...{ service: 'acm', region, target: 'CertificateManager.DescribeCertificate' },
            json: { CertificateArn: certificateArn },
          }).catch(toProblem(NOT_FOUND, `There is no ${certificateArn}. Correct certificateArn.`));
          const { Status, DomainName, SubjectAlternativeNames = [] } = JSON.parse(text).Certificate;
          if (Status !== 'ISSUED')
            throw new Problem(`Its status is ${Status}. Add the DNS record that validates it, and wait.`);
          const names: string[] = [DomainName, ...SubjectAlternativeNames];
          if (!names.some((candidate) => candidate === host || candidate === host.replace(/^[^.]+/, '*')))
            throw new Problem(`It is for ${names.join(', ')}, not for ${host}. Request another one.`);
          return 'issued';
        },
      });
    if (established)
      checks.push({
        subject: `DNS of ${host}, ${name}`,
        permissions: 'none',
        async run() {
          await lookup(host).catch(() => {
            throw new Problem(`It does not resolve. Add a CNAME record to the output ${target}.`);
          });
          return 'resolves';
        },
      });
  }
  if (backup) {
    checks.push(
      {
        subject: `AWS Backup, ${name}`,
        permissions: 'backup:DescribeRegionSettings',
        async run() {
          const text = await requestAws({ service: 'backup', region, path: '/account-settings' });
          const settings = JSON.parse(text);
          const enabled = settings.ResourceTypeOptInPreference?.DynamoDB;
          const advanced = settings.ResourceTypeManagementPreference?.DynamoDB;
          if (enabled && (advanced || backup.copyTo === undefined)) return 'enabled for DynamoDB';
          throw new Problem(
            `DynamoDB or its advanced features, which copies require, are not enabled in ${region}. Run "aws backup update-region-settings --region ${region} --resource-type-opt-in-preference DynamoDB=true --resource-type-management-preference DynamoDB=true".`,
          );
        },
      },
      toVaultCheck(name, region, backup.vault),
    );
    const [, , , copyRegion = '', owner, , copyVault = ''] = backup.copyTo?.split(':') ?? [];
    // A vault of another AWS account cannot be read.
    if (backup.copyTo !== undefined && owner === stage.awsAccount)
      checks.push(toVaultCheck(name, copyRegion, copyVault));
  }
  if (stateTable) {
    checks.push({
      subject: `Table ${stateTable.name}, ${name}`,
      permissions: 'dynamodb:DescribeTable',
      async run() {
        using client = disposable(new DynamoDBClient({ region }));
        const { Table } = await client.sdk
          .send(new DescribeTableCommand({ TableName: stateTable.name }))
          .catch(toProblem(NOT_FOUND, `It does not exist in ${region}. Correct stateTable.name.`));
        if (Table?.TableStatus !== 'ACTIVE') throw new Problem(`It is ${Table?.TableStatus}. Wait.`);
        if (Table.LatestStreamArn !== stateTable.streamArn)
          throw new Problem(`Its stream is ${Table.LatestStreamArn ?? 'off'}. Correct stateTable.streamArn.`);
        return 'active, with its stream';
      },
    });
  }
  return checks;
}

/** Returns whether a stack has created the SES identity of a domain: the outputs of the stack have its DNS records. */
async function hasIdentity(region: string, stack: string, domain: string): Promise<boolean> {
  const { MailDnsRecord1 = '' } = await findOutputs(region, stack);
  return MailDnsRecord1.includes(`._domainkey.${domain} `);
}

/** Returns the outputs of a stack: none if it is not deployed. */
async function findOutputs(region: string, stack: string): Promise<Record<string, string>> {
  return readOutputs(region, stack).catch((cause: Error) => {
    if (cause.name !== 'ValidationError') throw cause;
    return {};
  });
}

/** Returns the check that a backup vault exists. */
function toVaultCheck(cellName: string, region: string, vault: string): Check {
  return {
    subject: `Backup vault ${vault} in ${region}, ${cellName}`,
    permissions: 'backup:DescribeBackupVault',
    async run() {
      await requestAws({ service: 'backup', region, path: `/backup-vaults/${vault}` }).catch(
        toProblem(
          // AWS Backup denies access to a vault that does not exist.
          /^(ResourceNotFound|AccessDenied)/,
          `It does not exist, or the credentials lack the permission backup:DescribeBackupVault. Run "aws backup create-backup-vault --region ${region} --backup-vault-name ${vault}".`,
        ),
      );
      return 'exists';
    },
  };
}

function disposable<T extends { destroy(): void }>(sdk: T): { readonly sdk: T } & Disposable {
  return { sdk, [Symbol.dispose]: () => sdk.destroy() };
}

/** Error codes of requests that the credentials do not permit. */
const DENIED = /AccessDenied|AuthorizationError|NotAuthorized|UnauthorizedOperation|Forbidden/;

function explain({ permissions }: Check, cause: unknown): string {
  if (cause instanceof Problem) return cause.message;
  const { name, message } = cause as Error;
  if (DENIED.test(name)) return `Not checked: the credentials lack the permission ${permissions}.`;
  if (name === 'CredentialsProviderError')
    return 'Not checked: there are no AWS credentials. Run "aws sso login" or set AWS_PROFILE.';
  if (/UnrecognizedClient|InvalidClientTokenId|ExpiredToken|SignatureDoesNotMatch/.test(name))
    return `Not checked: AWS rejects the credentials (${name}), or the region is not enabled in the account.`;
  return `Not checked: ${name}: ${message}`;
}

/** Runs the checks and prints a line for each. Returns the number of problems. */
async function preflight(checks: readonly Check[]): Promise<number> {
  const results = await Promise.all(
    checks.map((check) =>
      check.run().then(
        (message) => ({ ok: true, message }),
        (cause: unknown) => ({ ok: false, message: explain(check, cause) }),
      ),
    ),
  );
  for (const [at, { ok, message }] of results.entries()) {
    console.log(`${ok ? 'ok      ' : 'problem '} ${checks[at]?.subject}: ${message}`);
  }
  return results.filter(({ ok }) => !ok).length;
}

async function main(): Promise<void> {
  const text = { type: 'string' } as const;
  const { values } = parseArgs({
    options: { cell: text, settings: text, help: { type: 'boolean', short: 'h' } },
  });
  if (values.help) return console.log(USAGE);
  const stages = readStages(values.settings ?? join(import.meta.dirname, '..', SETTINGS_FILE));
  const all = listCells(stages);
  const cells = values.cell === undefined ? all : [findCell(stages, values.cell)];
  const problems = await preflight(listChecks(cells, all));
  console.log(problems === 0 ? 'Ready to deploy.' : `${problems} of the checks found a problem.`);
  if (problems > 0) process.exitCode = 1;
}

await main().catch((cause: unknown) => {
  console.error(cause instanceof Error ? cause.message : String(cause));
  process.exitCode = 1;
});
