/** The settings that differ between stages and cells, written out. Validated before synthesis. */
import { RetentionDays } from 'aws-cdk-lib/aws-logs';
import * as z from 'zod';
import { MAX_SLOTS_PER_KEY } from '../shared/api/waiting-limit.ts';
import { corsOrigins, formatIssue } from '../shared/validation.ts';

/** The API regions of the ordering API; there can be one cell for each. */
const ApiRegion = z.enum(['us', 'nz', 'au', 'uk', 'eu']);

const AWS_REGION = /^[a-z]{2}(-[a-z]+)+-\d$/;
const CERTIFICATE_RULE = 'must be the ARN of a certificate in us-east-1, as CloudFront requires';
const STREAM_RULE = 'must be the ARN of the table’s stream';
const httpsUrl = z.url({ protocol: /^https$/, error: 'must be a URL that begins with https://' });
const wholeNumber = (from: number, to: number) => {
  const rule = `must be an integer from ${from} to ${to}`;
  return z.int(rule).min(from, rule).max(to, rule);
};

const FROM_RULE =
  'must be an e-mail address, or a name and an address such as Print Shop <orders@print.example>';
const IDENTITY_RULE =
  'must be a domain such as print.example, or the ARN of an SES identity that is there already';
const SENDER_RULE = 'must be 1–11 letters and digits, one of them a letter';
const DOMAIN_RULE = 'must be a host name such as us.jobwire.example';
const DOMAIN = /^(?=.{4,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$/;
const IDENTITY_ARN = /^arn:[^:]+:ses:([^:]+):\d{12}:identity\/(.+)$/;

/** Settings of customer notifications; see infra/notifications.ts. */
const NotificationSettings = z.strictObject({
  /** From address of e-mails. The display name is that of each account. */
  from: z.string(FROM_RULE).refine((from) => z.email().safeParse(parseAddress(from)).success, FROM_RULE),
  /**
   * The domain for SES: the stack creates the identity, and outputs the DNS records that prove its ownership.
   * Or the ARN of an identity created elsewhere, for example by another cell in the same AWS region.
   */
  identity: z
    .string(IDENTITY_RULE)
    .refine((identity) => DOMAIN.test(identity) || IDENTITY_ARN.test(identity), IDENTITY_RULE),
  /** Absent: the cell sends no SMS, and has no permission to. */
  sms: z
    .strictObject(
      {
        /** Default sender of SMS, for accounts without their own, in countries that allow a custom one. */
        senderId: z
          .string(SENDER_RULE)
          .regex(/^(?=.*[A-Za-z])[A-Za-z0-9]{1,11}$/, SENDER_RULE)
          .optional(),
      },
      {
        error: (issue) =>
          issue.code === 'invalid_type' ? 'must be what is set of SMS, {} for nothing' : undefined,
      },
    )
    .optional(),
});

const CellSettings = z
  .strictObject({
    /** AWS region of the cell and of all its data. */
    awsRegion: z
      .string('must be an AWS region')
      .regex(AWS_REGION, 'must be an AWS region such as eu-central-1'),
    /** URLs of the ordering API of this API region. */
    upstream: z.strictObject({
      baseUrl: httpsUrl,
      authUrl: httpsUrl,
      realm: z.string('must be the name of the realm').min(1, 'must be the name of the realm'),
    }),
    /** Base URL of the cell's HTTP API; the schema URLs of events begin with it. */
    publicUrl: httpsUrl,
    /**
     * Whether the cell has the dashboard: a CloudFront distribution that serves the page and the API.
     * Default: true.
     */
    dashboard: z.boolean('must be true or false').default(true),
    /** A custom domain for that distribution, with a certificate for it. */
    dashboardDomain: z
      .strictObject({
        name: z.string(DOMAIN_RULE).regex(DOMAIN, DOMAIN_RULE),
        certificateArn: z
          .string(CERTIFICATE_RULE)
          .regex(/^arn:[^:]+:acm:us-east-1:\d{12}:certificate\/[\w-]+$/, CERTIFICATE_RULE),
      })
      .optional(),
    /**
     * Whether there is a second topic, for subscribers that a FIFO topic does not support: e-mail, SMS,
     * Lambda, HTTP. Default: false.
     */
    standardTopic: z.boolean('must be true or false').default(false),
    /**
     * Notifications to the customers of accounts by e-mail and SMS. Absent: the cell has none of the
     * resources.
     */
    notifications: NotificationSettings.optional(),
    /** E-mail address that receives alarms. Other recipients subscribe to the cell's ops topic. */
    opsEmail: z.email('must be an e-mail address').optional(),
    /**
     * Whether the cell has its own KMS key, controlled by the AWS account. It costs $1 a month plus a fee per
     * call. Without it, everything is encrypted as well, with keys of AWS. Default: false.
     */
    customerKey: z.boolean('must be true or false').default(false),
    /**
     * An existing state table instead of one that the stack creates: restored from a backup, or retained from
     * an earlier stack. The steps are in docs/deploying.md.
     */
    stateTable: z
      .strictObject({
        name: z.string('must be the name of a table').regex(/^[\w.-]{3,255}$/, 'must be the name of a table'),
        streamArn: z
          .string(STREAM_RULE)
          .regex(/^arn:[^:]+:dynamodb:[^:]+:\d{12}:table\/[^/]+\/stream\/.+$/, STREAM_RULE),
        /**
         * Time of the restore. Logs that began before it accept no events until the operator has renewed
         * them.
         */
        restoredAt: z.iso.datetime('must be a timestamp such as 2026-03-02T08:00:00Z').optional(),
      })
      .optional(),
  })
  .superRefine(({ dashboard, dashboardDomain }, context) => {
    if (dashboard || !dashboardDomain) return;
    const message = 'must be left out where there is no dashboard';
    context.addIssue({ code: 'custom', path: ['dashboardDomain'], message });
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
  .superRefine(({ awsRegion, stateTable }, context) => {
    const fail = (field: string, message: string) =>
      context.addIssue({ code: 'custom', path: ['stateTable', field], message });
    if (!stateTable) return;
    const [, , , region, , table] = stateTable.streamArn.split(':');
    if (region !== awsRegion || table?.split('/')[1] !== stateTable.name) {
      fail('streamArn', `must be that of the stream of ${stateTable.name} in ${awsRegion}`);
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
  /** Part of the names of stacks, secrets and the topic. */
  stage: z
    .string('must be the name of the stage')
    .regex(/^[a-z][a-z0-9]{1,15}$/, 'must be 2–16 lower-case letters and digits, beginning with a letter'),
  /** Protects table and stack against deletion. */
  protected: z.boolean('must be true or false'),
  /** Retention of events in the logs of accounts (days). */
  eventRetentionDays: wholeNumber(7, 365),
  /**
   * Retention of messages in the FIFO topic for late subscribers (days); `null`: none. Default: 30. A topic
   * with an archive cannot be deleted, nor can the stack, until the archive is disabled by hand.
   */
  topicArchiveDays: wholeNumber(1, 365).nullable().default(30),
  logRetention: z.enum(RetentionDays, 'must be one of RetentionDays'),
  /** Maximum number of concurrent invocations of pollAccount; each polls up to ten accounts. */
  pollConcurrency: wholeNumber(2, 1000),
  /** Maximum number of concurrent invocations of drainSink; each drains up to five sinks. */
  drainConcurrency: wholeNumber(2, 1000),
  api: z.strictObject({
    requestsPerSecond: wholeNumber(1, 10_000),
    burst: wholeNumber(1, 5000),
    /**
     * Maximum duration of a stream (s); then the client resumes. A stream whose client has disconnected is
     * charged until then. Default: 300.
     */
    streamSeconds: wholeNumber(60, 840).default(300),
    /** Maximum number of concurrent streams and waiting long polls of a key. Default: 20. */
    streamsPerKey: wholeNumber(1, MAX_SLOTS_PER_KEY).default(20),
    /**
     * Reserved concurrency for streams and long polls, which hold an invocation while they wait. It caps them
     * all together, so that they cannot use the capacity that polling needs. It reduces the AWS account's
     * limit, which is too small in a new account. `null`: no reserve and no cap except the one per key.
     */
    liveConcurrency: wholeNumber(1, 10_000).nullable(),
    /**
     * Whether the API has a web ACL: AWS's common rules, known bad inputs, a rate limit per address. It costs
     * $8 a month and $0.60 per million requests. Every request needs a key anyway, so it is for APIs exposed
     * to unknown clients. Default: false.
     */
    waf: z.boolean('must be true or false').default(false),
    /** Origins whose web pages may call the API from a browser. Default: none. */
    corsOrigins,
  }),
  /** One cell for each served API region. Removing a cell here leaves its stack and all its data in place. */
  cells: z.partialRecord(ApiRegion, CellSettings).superRefine(checkIdentities),
});

/** An API region with a cell. */
export type ApiRegion = z.infer<typeof ApiRegion>;
/** The settings of one cell. */
export type CellSettings = z.infer<typeof CellSettings>;
/** The notification settings of a cell. */
export type NotificationSettings = z.infer<typeof NotificationSettings>;
/** The settings of one stage. */
export type StageSettings = z.infer<typeof StageSettings>;

/**
 * The settings are invalid. The message names the stage, the path and the accepted
 * values.
 */
export class SettingsError extends Error {
  override readonly name = 'SettingsError';
}

/** Validates the settings of all stages. Throws {@link SettingsError} for the first error. */
export function parseStages(raw: readonly unknown[]): readonly StageSettings[] {
  const result = z.array(StageSettings).superRefine(checkStageNames).safeParse(raw, { reportInput: true });
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const [at] = issue?.path ?? [];
  const name = (raw[Number(at)] as { stage?: unknown } | undefined)?.stage;
  const path = issue?.path.slice(1) ?? [];
  const message = formatIssue(issue && { ...issue, path }, 'A stage');
  const of = typeof name === 'string' ? ` (stage ${name})` : '';
  throw new SettingsError(`infra/settings.ts: ${message}${of}.`, { cause: result.error });
}

/** An AWS region has one SES identity of a name; only one stack can create it. */
function checkIdentities(cells: Partial<Record<ApiRegion, CellSettings>>, context: z.RefinementCtx): void {
  const makers = new Map<string, string>();
  for (const [region, { awsRegion, notifications }] of Object.entries(cells)) {
    if (!notifications || IDENTITY_ARN.test(notifications.identity)) continue;
    const place = `${awsRegion} ${notifications.identity}`;
    const maker = makers.get(place);
    if (maker !== undefined) {
      const message = `must be the ARN of the identity that the cell ${maker} creates in the same AWS region`;
      context.addIssue({ code: 'custom', path: [region, 'notifications', 'identity'], message });
    }
    makers.set(place, region);
  }
}

/** Names consist of stage and region, so two stages with one name would be the same stacks. */
function checkStageNames(all: readonly StageSettings[], context: z.RefinementCtx): void {
  const names = all.map(({ stage }) => stage);
  const twin = names.findIndex((name, at) => names.indexOf(name) !== at);
  if (twin >= 0) context.addIssue({ code: 'custom', path: [twin, 'stage'], message: 'must be unique' });
}

/** All stages. The URLs of the ordering API are placeholders until a deployment sets its own. */
export const stages: readonly StageSettings[] = parseStages([
  {
    stage: 'dev',
    protected: false,
    eventRetentionDays: 14,
    topicArchiveDays: null,
    logRetention: RetentionDays.ONE_WEEK,
    pollConcurrency: 2,
    drainConcurrency: 2,
    api: { requestsPerSecond: 20, burst: 40, streamSeconds: 300, streamsPerKey: 20, liveConcurrency: null },
    cells: {
      us: {
        awsRegion: 'us-east-1',
        upstream: {
          baseUrl: 'https://us.ordering-dev.example/api',
          authUrl: 'https://auth-us.ordering-dev.example',
          realm: 'us',
        },
        publicUrl: 'https://us.jobwire-dev.example',
      },
    },
  },
  {
    stage: 'prod',
    protected: true,
    eventRetentionDays: 90,
    topicArchiveDays: 30,
    logRetention: RetentionDays.THREE_MONTHS,
    pollConcurrency: 50,
    drainConcurrency: 50,
    api: { requestsPerSecond: 100, burst: 200, streamSeconds: 300, streamsPerKey: 20, liveConcurrency: 100 },
    cells: {
      us: {
        awsRegion: 'us-east-1',
        upstream: {
          baseUrl: 'https://us.ordering.example/api',
          authUrl: 'https://auth-us.ordering.example',
          realm: 'us',
        },
        publicUrl: 'https://us.jobwire.example',
        notifications: {
          from: 'Print orders <orders@print.example>',
          identity: 'print.example',
          sms: {},
        },
      },
      nz: {
        awsRegion: 'ap-southeast-2',
        upstream: {
          baseUrl: 'https://nz.ordering.example/api',
          authUrl: 'https://auth-nz.ordering.example',
          realm: 'nz',
        },
        publicUrl: 'https://nz.jobwire.example',
      },
      au: {
        awsRegion: 'ap-southeast-2',
        upstream: {
          baseUrl: 'https://au.ordering.example/api',
          authUrl: 'https://auth-au.ordering.example',
          realm: 'au',
        },
        publicUrl: 'https://au.jobwire.example',
      },
      uk: {
        awsRegion: 'eu-west-2',
        upstream: {
          baseUrl: 'https://uk.ordering.example/api',
          authUrl: 'https://auth-uk.ordering.example',
          realm: 'uk',
        },
        publicUrl: 'https://uk.jobwire.example',
      },
      eu: {
        awsRegion: 'eu-central-1',
        upstream: {
          baseUrl: 'https://eu.ordering.example/api',
          authUrl: 'https://auth-eu.ordering.example',
          realm: 'eu',
        },
        publicUrl: 'https://eu.jobwire.example',
      },
    },
  },
]);
