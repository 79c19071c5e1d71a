/**
 * The settings of stages and cells: a JSON file, validated before synthesis. The descriptions are those of docs/aws-settings.md.
 * One file: it is one schema, in the order of the reference that is generated from it.
 */
import { readFileSync } from 'node:fs';
import * as z from 'zod';
import { SignInSettings } from '../shared/api/sign-in-input.ts';
import { MAX_SLOTS_PER_KEY } from '../shared/api/waiting-limit.ts';
import { type ConfigError, parseConfigText } from '../shared/config.ts';
import { parseQueueAddress } from '../shared/delivery/queue-address.ts';
import { corsOrigins, flag, formatIssue, integerFrom } from '../shared/validation.ts';
import {
  ApiRegion,
  checkEnvironment,
  checkIdentities,
  checkRegions,
  checkShared,
  checkStageNames,
  IDENTITY_ARN,
  MAX_SIGN_IN,
} from './settings-checks.ts';

const CELL_NAME = /^[a-z][a-z0-9]{0,15}$/;
const CELL_NAME_RULE =
  'is not the name of a cell, which must be 1–16 lower-case letters and digits, beginning with a letter';
const AWS_REGION = /^[a-z]{2}(-[a-z]+)+-\d$/;
const ACCOUNT_RULE = 'must be the id of an AWS account, 12 digits as a string';
const REALM_RULE = 'must be the name of the realm';
/** Retentions that CloudWatch Logs offers (days), `RetentionDays` of the CDK without importing it here. */
const RETENTIONS = [
  1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653,
] as const;
const RETENTION_RULE = 'must be a number of days that CloudWatch Logs accepts, such as 7, 30 or 90';
const KEY_RULE = 'must be the ARN of a KMS key';
const SAMPLE_RULE = 'must be a number from 0.01 to 100';
const QUEUE_RULE = 'must be the ARN of an SQS queue';
const httpsUrl = z.url({ protocol: /^https$/, error: 'must be a URL that begins with https://' });

/** A text that matches a pattern. `rule`: the message for any other value. */
const matching = (pattern: RegExp, rule: string) => z.string(rule).regex(pattern, rule);

/** Options of an object whose fields all have defaults. `what`: what it configures. */
const orDefaults = (what: string) => ({
  error: (issue: z.core.$ZodRawIssue) =>
    issue.code === 'invalid_type' ? `must be the settings of ${what}, {} for the defaults` : undefined,
});

const FROM_RULE =
  'must be an e-mail address, or a name and an address such as Print Shop <orders@print.example>';
const IDENTITY_RULE = 'must be a domain such as print.example, or the ARN of an existing SES identity';
const DOMAIN = /^(?=.{4,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$/;

/** Settings of customer notifications; see infra/notifications.ts. */
const NotificationSettings = z.strictObject({
  from: z
    .string(FROM_RULE)
    .refine((from) => z.email().safeParse(parseAddress(from)).success, FROM_RULE)
    .describe(
      'From address of e-mails. A display name is ignored, because each account has its own sender name.',
    ),
  identity: z
    .string(IDENTITY_RULE)
    .refine((identity) => DOMAIN.test(identity) || IDENTITY_ARN.test(identity), IDENTITY_RULE)
    .describe(
      'A domain, for which the stack creates an SES identity, or the ARN of an existing identity, for example of another cell in the AWS region.',
    ),
  sms: z
    .strictObject(
      {
        senderId: matching(
          /^(?=.*[A-Za-z])[A-Za-z0-9]{1,11}$/,
          'must be 1–11 letters and digits, one of them a letter',
        )
          .optional()
          .describe('Sender id of SMS for accounts without their own.'),
      },
      orDefaults('SMS'),
    )
    .optional()
    .describe('SMS to customers. Absent: none.'),
});

const SUBSCRIBERS_RULE = 'must contain accounts or organization';

/** Settings of subscribers in other AWS accounts; see infra/subscribers.ts. */
const SubscriberSettings = z
  .strictObject({
    accounts: z
      .array(matching(/^\d{12}$/, ACCOUNT_RULE), 'must be a list of ids of AWS accounts')
      .max(100, 'must have at most 100 entries')
      .default([])
      .describe('Ids of AWS accounts.'),
    organization: matching(/^o-[a-z0-9]{10,32}$/, 'must be the id of an organization, such as o-a1b2c3d4e5')
      .optional()
      .describe('Id of an organization in AWS Organizations. All its accounts may subscribe.'),
  })
  .refine(
    ({ accounts, organization }) => accounts.length > 0 || organization !== undefined,
    SUBSCRIBERS_RULE,
  );

/** A queue that endpoints can have as their target; see infra/queues.ts. */
const QueueSettings = z.strictObject({
  arn: z
    .string(QUEUE_RULE)
    .refine((arn) => parseQueueAddress(arn)?.arn === arn, QUEUE_RULE)
    .describe('ARN of the queue, also in another AWS region or AWS account.'),
  keyArn: matching(/^arn:[^:]+:kms:[^:]+:\d{12}:key\/[\w-]+$/, KEY_RULE)
    .optional()
    .describe('ARN of the KMS key of the queue. Required if the queue has one.'),
});

const hostName = () => matching(DOMAIN, 'must be a host name such as us.jobwire.example');

/** A host name with its certificate. `rule`: the message for any other ARN. */
const ownDomain = (certificate: RegExp, rule: string, description: string) =>
  z
    .strictObject({
      name: hostName().describe('Host name.'),
      certificateArn: matching(certificate, rule).optional().describe(description),
    })
    .optional();

/** Settings of backups by AWS Backup; see infra/backup.ts. */
const BackupSettings = z.strictObject({
  vault: matching(/^[\w-]{2,50}$/, 'must be the name of a backup vault').describe(
    'Name of an existing vault in the AWS region of the cell. Its key encrypts the backups.',
  ),
  retentionDays: integerFrom(1, 3650).default(7).describe('Retention of backups and of their copies (days).'),
  copyTo: matching(
    /^arn:[^:]+:backup:[a-z0-9-]+:\d{12}:backup-vault:[\w.-]+$/,
    'must be the ARN of a backup vault',
  )
    .optional()
    .describe('ARN of an existing vault in another AWS region, for copies.'),
});

const CellSettings = z
  .strictObject({
    region: ApiRegion.optional().describe(
      'Region of the ordering API: `us`, `nz`, `au`, `uk` or `eu`. Absent: the name of the cell, which must be one of these regions.',
    ),
    awsRegion: z
      .string('must be an AWS region')
      .regex(AWS_REGION, 'must be an AWS region such as eu-central-1')
      .describe('AWS region of the cell and of all its data.'),
    upstream: z
      .strictObject({
        baseUrl: httpsUrl.describe('Base URL of the API.'),
        authUrl: httpsUrl.describe('Base URL of the identity provider.'),
        realm: z.string(REALM_RULE).min(1, REALM_RULE).describe('Realm of the identity provider.'),
      })
      .describe('Addresses of the ordering API in this region.'),
    established: flag
      .default(false)
      .describe(
        'Set it to `true` after the first deployment of the cell. `false`: no deletion protection and no archive of the topic, because a failed first deployment could not be repeated with them.',
      ),
    publicUrl: httpsUrl.describe(
      'Base URL of the cell’s HTTP API, of links in e-mails, and of `source` and `dataschema` of events.',
    ),
    dashboard: flag
      .default(true)
      .describe('Whether the cell has the dashboard, on a CloudFront distribution.'),
    dashboardDomain: ownDomain(
      /^arn:[^:]+:acm:us-east-1:\d{12}:certificate\/[\w-]+$/,
      'must be the ARN of a certificate in us-east-1, as CloudFront requires',
      'ARN of a certificate in us-east-1. Optional only with `hostedZone` and a cell in us-east-1: the stack then creates one.',
    ).describe('Your own host name for the dashboard and the API.'),
    apiDomain: ownDomain(
      /^arn:[^:]+:acm:[a-z0-9-]+:\d{12}:certificate\/[\w-]+$/,
      'must be the ARN of a certificate',
      'ARN of a certificate in the AWS region of the cell. Optional only with `hostedZone`: the stack then creates one.',
    ).describe('Your own host name for the API alone, without CloudFront.'),
    hostedZone: z
      .strictObject({
        id: matching(/^Z[A-Z0-9]{5,31}$/, 'must be the id of a hosted zone, such as Z0123456789ABC').describe(
          'Id of the zone.',
        ),
        name: hostName().describe('Domain of the zone.'),
      })
      .optional()
      .describe(
        'Hosted zone of Route 53 that contains the host names. The stack creates their DNS records, and a certificate for each host name without a `certificateArn`. Absent: the operator creates both.',
      ),
    staticEgress: z
      .strictObject({
        natGateways: integerFrom(1, 3)
          .default(1)
          .describe('Number of NAT gateways, each in its own availability zone and with its own address.'),
      })
      .optional()
      .describe(
        '[Static addresses](deploying.md#static-addresses) for requests to the ordering API and to webhooks, by NAT gateways ($37 a month each, and $0.045 per GB). Absent: the addresses change.',
      ),
    backup: BackupSettings.optional().describe(
      '[Daily backups](deploying.md#backups-in-another-aws-region) of the state table, in addition to point-in-time recovery. With the default retention, they cost $0.70 a month for a table of 1 GB, and $2.00 with copies. Absent: none.',
    ),
    monthlyBudget: integerFrom(1, 1_000_000)
      .optional()
      .describe(
        'Monthly [budget](deploying.md#a-budget) of the cell (US dollars). AWS Budgets notifies the ops topic when the actual or forecast costs exceed it. Absent: no budget.',
      ),
    standardTopic: flag
      .default(false)
      .describe('Whether there is a second topic, for subscriptions by e-mail, SMS, Lambda and HTTP.'),
    eventBus: z
      .strictObject(
        {
          archiveDays: integerFrom(1, 3650)
            .optional()
            .describe('Retention of the archive of the bus (days). Absent: no archive.'),
        },
        orDefaults('the bus'),
      )
      .optional()
      .describe(
        '[EventBridge bus](eventbridge.md) of the cell. It costs $1 per million events. Absent: none.',
      ),
    queues: z
      .array(QueueSettings, 'must be a list of queues')
      .max(20, 'must have at most 20 entries')
      .default([])
      .describe(
        '[Queues](sqs.md#on-aws) that endpoints can have as targets. The ARNs, `signIn` and `corsOrigins` together can have at most 2,500 characters.',
      ),
    subscribers: SubscriberSettings.optional().describe(
      'Other AWS accounts that may [subscribe to the topics](sns.md#queues-in-other-aws-accounts). They can get the events of all accounts of the cell. Absent: none.',
    ),
    notifications: NotificationSettings.optional().describe(
      'E-mails and SMS to the [customers](deploying.md#customer-notifications) of accounts. Absent: none.',
    ),
    opsEmail: z
      .email('must be an e-mail address')
      .optional()
      .describe('E-mail address that receives alarms, once the recipient has confirmed the subscription.'),
    customerKey: flag
      .default(false)
      .describe(
        'Whether the [KMS key of the cell](deploying.md#encryption-with-a-key-of-your-own) also encrypts its tables, queues, topics and logs. AWS then charges for each call of KMS, and $1 to $2 a month more from the second year on. `false`: keys of AWS encrypt the tables, queues and logs, and the topics are not encrypted.',
      ),
    stateTable: z
      .strictObject({
        name: matching(/^[\w.-]{3,255}$/, 'must be the name of a table').describe('Name of the table.'),
        streamArn: matching(
          /^arn:[^:]+:dynamodb:[^:]+:\d{12}:table\/[^/]+\/stream\/.+$/,
          'must be the ARN of the table’s stream',
        ).describe('ARN of the stream of the table.'),
        keyArn: matching(/^arn:[^:]+:kms:[^:]+:\d{12}:key\/[\w-]+$/, KEY_RULE)
          .optional()
          .describe(
            'ARN of the KMS key that encrypts the secrets in the table, or of its [replica](deploying.md#recovery-in-another-aws-region) in the AWS region of the cell. Required only if another stack created the key. With `customerKey`, the key must belong to the AWS account of the table. Absent: the key of this stack.',
          ),
        restoredAt: z.iso
          .datetime('must be a timestamp such as 2026-03-02T08:00:00Z')
          .optional()
          .describe(
            'Time of the restore. Logs that began before it accept no events until the operator renews them.',
          ),
      })
      .optional()
      .describe(
        'Existing state table, [restored from a backup](deploying.md#backup-and-restore) or retained from an earlier stack. Absent: the stack creates one.',
      ),
  })
  .superRefine(({ dashboard, dashboardDomain }, context) => {
    if (dashboard || !dashboardDomain) return;
    const message = 'must be omitted if the cell has no dashboard';
    context.addIssue({ code: 'custom', path: ['dashboardDomain'], message });
  })
  .superRefine(({ awsRegion, backup, dashboardDomain, apiDomain, hostedZone }, context) => {
    const fail = (path: string[], message: string) => context.addIssue({ code: 'custom', path, message });
    if (backup?.copyTo?.split(':')[3] === awsRegion)
      fail(['backup', 'copyTo'], 'must be in another AWS region than the cell');
    const [, , , certificateRegion = awsRegion] = apiDomain?.certificateArn?.split(':') ?? [];
    if (certificateRegion !== awsRegion) fail(['apiDomain', 'certificateArn'], `must be in ${awsRegion}`);
    for (const [field, domain, creates] of [
      ['dashboardDomain', dashboardDomain, awsRegion === 'us-east-1'],
      ['apiDomain', apiDomain, true],
    ] as const) {
      if (!domain) continue;
      if (hostedZone && !`.${domain.name}`.endsWith(`.${hostedZone.name}`))
        fail([field, 'name'], `must be in the hosted zone ${hostedZone.name}`);
      if (domain.certificateArn === undefined && !(hostedZone && creates))
        fail(
          [field, 'certificateArn'],
          creates
            ? 'must be given, or hostedZone'
            : 'must be given, because the stack can create certificates in us-east-1 only for a cell in us-east-1',
        );
    }
  })
  .superRefine(({ awsRegion, notifications }, context) => {
    const fail = (field: string, message: string) =>
      context.addIssue({ code: 'custom', path: ['notifications', field], message });
    if (!notifications) return;
    const [, region, existing] = IDENTITY_ARN.exec(notifications.identity) ?? [];
    if (region !== undefined && region !== awsRegion) fail('identity', `must be one in ${awsRegion}`);
    const identity = existing ?? notifications.identity;
    const address = parseAddress(notifications.from).toLowerCase();
    const fits = identity.includes('@')
      ? address === identity.toLowerCase()
      : `.${address.split('@')[1]}`.endsWith(`.${identity.toLowerCase()}`);
    if (!fits) fail('from', `must be an address of the identity ${identity}`);
  })
  .superRefine(({ awsRegion, customerKey, stateTable }, context) => {
    const fail = (field: string, message: string) =>
      context.addIssue({ code: 'custom', path: ['stateTable', field], message });
    if (!stateTable) return;
    const [, , , region, account, table] = stateTable.streamArn.split(':');
    if (region !== awsRegion || table?.split('/')[1] !== stateTable.name) {
      fail('streamArn', `must be that of the stream of ${stateTable.name} in ${awsRegion}`);
    }
    if (stateTable.keyArn !== undefined && stateTable.keyArn.split(':')[3] !== awsRegion) {
      fail('keyArn', `must be that of a KMS key in ${awsRegion}`);
    }
    // The services that store data need it too, and its AWS account may be lost.
    if (customerKey && stateTable.keyArn !== undefined && stateTable.keyArn.split(':')[4] !== account) {
      fail(
        'keyArn',
        `must be that of a KMS key in the AWS account ${account} of the table, because of customerKey`,
      );
    }
    // Epochs begin now: a bound in the future would reject those of accounts that are registered until then.
    if (stateTable.restoredAt !== undefined && Date.parse(stateTable.restoredAt) > Date.now()) {
      fail('restoredAt', 'must not be in the future');
    }
  });

/** Returns the address of `Name <address>`, or of an address alone. */
export function parseAddress(from: string): string {
  return /^[^<>"\r\n]{1,100}<([^<>]+)>$/.exec(from)?.[1] ?? from;
}

const StageSettings = z.strictObject({
  stage: z
    .string('must be the name of the stage')
    .regex(/^[a-z][a-z0-9]{1,15}$/, 'must be 2–16 lower-case letters and digits, beginning with a letter')
    .describe('Name of the stage, 2–16 lower-case letters and digits, beginning with a letter.'),
  awsAccount: matching(/^\d{12}$/, ACCOUNT_RULE)
    .optional()
    .describe(
      'Id of the AWS account of the stacks. Required if `protected` is `true`. Absent: the account of the AWS credentials.',
    ),
  protected: flag.describe(
    'Whether the tables and the stack of an `established` cell are protected against deletion.',
  ),
  eventRetentionDays: integerFrom(7, 365).describe('Retention of events (days).'),
  topicArchiveDays: integerFrom(1, 365)
    .nullable()
    .default(30)
    .describe(
      'Retention of the [archive](sns.md#replay-from-the-archive) of the FIFO topics of `established` cells (days). `null`: no archive. Before you change the value to `null`, delete the archive by hand.',
    ),
  logRetention: z.literal(RETENTIONS, RETENTION_RULE).describe('Retention of log groups (days).'),
  pollConcurrency: integerFrom(2, 1000).describe(
    'Maximum number of concurrent invocations of pollAccount. Each polls up to ten accounts.',
  ),
  drainConcurrency: integerFrom(2, 1000).describe(
    'Maximum number of concurrent invocations of drainSink, which delivers events. Each drains up to four sinks.',
  ),
  canary: z
    .strictObject({
      minutes: z
        .literal([5, 10, 15, 30], 'must be 5, 10, 15 or 30')
        .describe('Time for which a new version receives a tenth of the invocations (minutes).'),
    })
    .optional()
    .describe(
      '[Gradual deployments](deploying.md#gradual-deployments) by CodeDeploy. Absent: a deployment replaces all functions at once.',
    ),
  tracing: z
    .strictObject({
      samplePercent: z
        .number(SAMPLE_RULE)
        .min(0.01, SAMPLE_RULE)
        .max(100, SAMPLE_RULE)
        .describe('Share of polls that are traced (percent).'),
    })
    .optional()
    .describe('[Traces](deploying.md#traces) from polls to deliveries in X-Ray. Absent: none.'),
  signIn: SignInSettings.refine(
    (signIn) => JSON.stringify(signIn).length <= MAX_SIGN_IN,
    `must be at most ${MAX_SIGN_IN} characters of JSON, because it is in the environment of functions`,
  )
    .optional()
    .describe(
      '[Sign-in of users](deploying.md#sign-in-of-users) with OpenID Connect. Absent: only API keys are accepted.',
    ),
  api: z
    .strictObject({
      requestsPerSecond: integerFrom(1, 10_000).describe(
        'Maximum rate of requests to each [group of routes](deploying.md#the-http-api).',
      ),
      burst: integerFrom(1, 5000).describe('Maximum number of requests at once to each group of routes.'),
      requestsPerMinutePerKey: integerFrom(10, 600_000)
        .nullish()
        .describe(
          'Maximum number of requests of a key per minute, over all routes. `null`: no maximum. Absent: 30 times `requestsPerSecond`. The limit costs at most $0.63 per million requests.',
        ),
      streamSeconds: integerFrom(60, 840)
        .default(300)
        .describe(
          'Maximum duration of a stream (s), after which the client must reconnect. AWS charges for this time even if the client disconnects earlier.',
        ),
      streamsPerKey: integerFrom(1, MAX_SLOTS_PER_KEY)
        .default(20)
        .describe('Maximum number of concurrent streams and waiting long polls of a key.'),
      streams: integerFrom(1, MAX_SLOTS_PER_KEY).describe(
        'Maximum number of concurrent streams and waiting long polls of all keys of a cell together. Each uses a [concurrent execution](deploying.md#limits-worth-raising) of Lambda.',
      ),
      waf: flag
        .default(false)
        .describe(
          'Whether the API has a web ACL, with AWS’s common rules, known bad inputs and a rate limit per address. It costs $8 a month, $9 with the dashboard, and $0.60 per million requests.',
        ),
      corsOrigins: corsOrigins.describe('Origins whose web pages may call the API from a browser.'),
    })
    .describe('Limits and options of the HTTP API of each cell.'),
  cells: z
    .record(z.string().regex(CELL_NAME, CELL_NAME_RULE), CellSettings)
    .superRefine(checkRegions)
    .superRefine(checkIdentities)
    .describe(
      'Cells of the stage by name (1–16 lower-case letters and digits, beginning with a letter). The name cannot be changed later. Removing a cell here leaves its stack and all its data in place.',
    ),
});

/** Schema of the settings file. */
export const settingsSchema = z.strictObject({
  $schema: z.string('must be a URL').optional().describe('URL of a JSON Schema, for editors.'),
  stages: z
    .array(
      StageSettings.superRefine(checkEnvironment).refine(
        (stage) => !stage.protected || stage.awsAccount !== undefined,
        {
          path: ['awsAccount'],
          error: `${ACCOUNT_RULE}, because the stage is protected`,
        },
      ),
      'must be a list of stages',
    )
    .superRefine(checkStageNames)
    .superRefine(checkShared)
    .describe('Stages, such as `dev` and `prod`.'),
});

/** The settings of one cell. */
export type CellSettings = z.infer<typeof CellSettings>;
/** The notification settings of a cell. */
export type NotificationSettings = z.infer<typeof NotificationSettings>;
/** The settings of backups. */
export type BackupSettings = z.infer<typeof BackupSettings>;
/** The settings of subscribers in other AWS accounts. */
export type SubscriberSettings = z.infer<typeof SubscriberSettings>;
/** A queue that endpoints can have as their target. */
export type QueueSettings = z.infer<typeof QueueSettings>;
/** The settings of one stage. */
export type StageSettings = z.infer<typeof StageSettings>;

/**
 * The settings are invalid. The message names the stage, the path and the accepted
 * values.
 */
export class SettingsError extends Error {
  override readonly name = 'SettingsError';
}

/** The settings file, unless the context value `cells` names another one. */
export const SETTINGS_FILE = 'jobwire.cells.json';

/**
 * Reads the settings of all stages from a JSON file, in which comments and trailing commas are allowed. Throws {@link SettingsError} or
 * {@link ConfigError} for the first error.
 */
export function readStages(path: string): readonly StageSettings[] {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (cause) {
    const advice = `Copy jobwire.cells.example.json to ${SETTINGS_FILE} and change it, or name another file with "-c cells=FILE".`;
    throw new SettingsError(`The settings file ${path} cannot be read. ${advice}`, { cause });
  }
  return parseStages(parseConfigText(path, text), path);
}

/** Validates the settings of all stages, as read from the file `path`. Throws {@link SettingsError} for the first error. */
export function parseStages(raw: unknown, path = SETTINGS_FILE): readonly StageSettings[] {
  const result = settingsSchema.safeParse(raw, { reportInput: true });
  if (result.success) return result.data.stages;
  const [issue] = result.error.issues;
  const [, at, ...rest] = issue?.path ?? [];
  const name = (raw as { stages?: { stage?: unknown }[] } | undefined)?.stages?.[Number(at)]?.stage;
  const within = at === undefined ? (issue?.path ?? []) : rest;
  const message = formatIssue(issue && { ...issue, path: within }, at === undefined ? 'The file' : 'A stage');
  const of = typeof name === 'string' ? ` (stage ${name})` : '';
  throw new SettingsError(`${path}: ${message}${of}.`, { cause: result.error });
}
