/** What differs from stage to stage and from cell to cell, written out. Checked before anything is synthesized. */
import { RetentionDays } from 'aws-cdk-lib/aws-logs';
import * as z from 'zod';
import { MAX_SLOTS_PER_KEY } from '../shared/api/slots.ts';
import { corsOrigins, sentenceOf } from '../shared/checks.ts';

/** The API regions of the ordering service; there can be one cell for each. */
const ApiRegion = z.enum(['us', 'nz', 'au', 'uk', 'eu']);

const AWS_REGION = /^[a-z]{2}(-[a-z]+)+-\d$/;
const CERTIFICATE_RULE = 'must be the ARN of a certificate in us-east-1, where CloudFront looks for them';
const STREAM_RULE = 'must be the ARN of the table’s stream';
const httpsUrl = z.url({ protocol: /^https$/, error: 'must be a URL that begins with https://' });
const wholeNumber = (from: number, to: number) => {
  const rule = `must be a whole number from ${from} to ${to}`;
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

/** What it takes to tell customers: see infra/notifications.ts. */
const NotificationSettings = z.strictObject({
  /** Who e-mails are from. The name is that of each account. */
  from: z.string(FROM_RULE).refine((from) => z.email().safeParse(addressOf(from)).success, FROM_RULE),
  /**
   * The domain that SES is to send for: the stack makes the identity, and says which DNS records prove that the domain is
   * yours. Or the ARN of one that was made elsewhere, by another cell in the same AWS region, say.
   */
  identity: z
    .string(IDENTITY_RULE)
    .refine((identity) => DOMAIN.test(identity) || IDENTITY_ARN.test(identity), IDENTITY_RULE),
  /** Absent: the cell sends no SMS, and may not. */
  sms: z
    .strictObject(
      {
        /** Who SMS are from where an account says nothing else, and the country lets one choose. */
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
    /** Where the cell stands, and with it all its data. */
    awsRegion: z
      .string('must be an AWS region')
      .regex(AWS_REGION, 'must be an AWS region such as eu-central-1'),
    /** The ordering service in this API region. */
    upstream: z.strictObject({
      baseUrl: httpsUrl,
      authUrl: httpsUrl,
      realm: z.string('must be the name of the realm').min(1, 'must be the name of the realm'),
    }),
    /** Where the cell's HTTP API is reached; events name their schema under it. */
    publicUrl: httpsUrl,
    /** Whether the cell has the dashboard: a CloudFront distribution that serves the page, and the API beside it. */
    dashboard: z.boolean('must be true or false').default(true),
    /** A name of your own for that distribution, with a certificate for it. */
    dashboardDomain: z
      .strictObject({
        name: z.string(DOMAIN_RULE).regex(DOMAIN, DOMAIN_RULE),
        certificateArn: z
          .string(CERTIFICATE_RULE)
          .regex(/^arn:[^:]+:acm:us-east-1:\d{12}:certificate\/[\w-]+$/, CERTIFICATE_RULE),
      })
      .optional(),
    /** Whether there is a second topic, for subscribers that a FIFO topic can't have: e-mail, SMS, Lambda, HTTP. */
    standardTopic: z.boolean('must be true or false').default(false),
    /** Telling the customers of accounts by e-mail and SMS. Absent: the cell has nothing of what it takes. */
    notifications: NotificationSettings.optional(),
    /** Who is told of alarms by e-mail. Others subscribe to the cell's ops topic. */
    opsEmail: z.email('must be an e-mail address').optional(),
    /**
     * Whether the cell has a KMS key of its own, of which the AWS account disposes. It costs $1 a month and by the call; without
     * it everything is encrypted all the same, with keys of AWS.
     */
    customerKey: z.boolean('must be true or false').default(false),
    /**
     * A state table that is there already, instead of one that the stack makes: restored from a backup, or kept of an earlier
     * stack. The steps are in docs/deploying.md.
     */
    stateTable: z
      .strictObject({
        name: z.string('must be the name of a table').regex(/^[\w.-]{3,255}$/, 'must be the name of a table'),
        streamArn: z
          .string(STREAM_RULE)
          .regex(/^arn:[^:]+:dynamodb:[^:]+:\d{12}:table\/[^/]+\/stream\/.+$/, STREAM_RULE),
        /** When it was restored. Logs that began before take nothing until the operator has renewed them. */
        restoredAt: z.iso.datetime('must be an instant such as 2026-03-02T08:00:00Z').optional(),
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
    const address = addressOf(notifications.from).toLowerCase();
    const fits = identity.includes('@')
      ? address === identity.toLowerCase()
      : `.${address.split('@')[1]}`.endsWith(`.${identity.toLowerCase()}`);
    if (!fits) fail('from', `must be an address that ${identity} stands for`);
  })
  .superRefine(({ awsRegion, stateTable }, context) => {
    const fail = (field: string, message: string) =>
      context.addIssue({ code: 'custom', path: ['stateTable', field], message });
    if (!stateTable) return;
    const [, , , region, , table] = stateTable.streamArn.split(':');
    if (region !== awsRegion || table?.split('/')[1] !== stateTable.name) {
      fail('streamArn', `must be that of the stream of ${stateTable.name} in ${awsRegion}`);
    }
    // Epochs begin now: a bound that lies ahead would refuse those of accounts that are registered until then.
    if (stateTable.restoredAt !== undefined && Date.parse(stateTable.restoredAt) > Date.now()) {
      fail('restoredAt', 'must not be in the future');
    }
  });

/** The address of `Name <address>`, or what is said alone. */
export function addressOf(from: string): string {
  return /^[^<>"\r\n]{1,100}<([^<>]+)>$/.exec(from)?.[1] ?? from;
}

const StageSettings = z.strictObject({
  /** Part of names: of stacks, secrets and the topic. */
  stage: z
    .string('must be the name of the stage')
    .regex(/^[a-z][a-z0-9]{1,15}$/, 'must be 2–16 lower-case letters and digits, beginning with a letter'),
  /** Guards table and stack against deletion. */
  protected: z.boolean('must be true or false'),
  /** How long events stay in the logs of accounts. */
  eventRetentionDays: wholeNumber(7, 365),
  /**
   * How long the FIFO topic keeps messages for subscribers that come late; null: not at all. A topic that keeps any can't
   * be deleted, nor can the stack, before the archive is given up by hand.
   */
  topicArchiveDays: wholeNumber(1, 365).nullable().default(30),
  logRetention: z.enum(RetentionDays, 'must be one of RetentionDays'),
  /** Invocations of pollAccount side by side; each polls up to ten accounts. */
  pollConcurrency: wholeNumber(2, 1000),
  /** Invocations of drainSink side by side; each drains up to five sinks. */
  drainConcurrency: wholeNumber(2, 1000),
  api: z.strictObject({
    requestsPerSecond: wholeNumber(1, 10_000),
    burst: wholeNumber(1, 5000),
    /** After this time a stream ends, and its client resumes: one that has gone is paid for until then. */
    streamSeconds: wholeNumber(60, 840).default(300),
    /** How many streams and waiting long polls a key may have at the same time. */
    streamsPerKey: wholeNumber(1, MAX_SLOTS_PER_KEY).default(20),
    /**
     * Streams and long polls hold an invocation while they wait. The reserve caps them all together, so that they can't take
     * what polling needs. It comes off the AWS account's limit, of which a new account has too little: then null, for no
     * reserve and no cap but the one per key.
     */
    liveConcurrency: wholeNumber(1, 10_000).nullable(),
    /**
     * A web ACL in front: AWS's common rules, known bad inputs, a rate per address. It costs $8 a month and $0.60 per million
     * requests, and every request has to show a key anyway; so it is for APIs that strangers find.
     */
    waf: z.boolean('must be true or false').default(false),
    /** Web pages of these origins may call the API from a browser; none unless told. */
    corsOrigins,
  }),
  /** A cell for each API region that is served. One that is taken out here leaves its stack, and all data, where they are. */
  cells: z.partialRecord(ApiRegion, CellSettings).superRefine(refuseSharedIdentities),
});

/** An API region with a cell of its own. */
export type ApiRegion = z.infer<typeof ApiRegion>;
/** The settings of one cell. */
export type CellSettings = z.infer<typeof CellSettings>;
/** What the settings of a cell say of telling customers. */
export type NotificationSettings = z.infer<typeof NotificationSettings>;
/** The settings of one stage. */
export type StageSettings = z.infer<typeof StageSettings>;

/** The settings can't be used. The message is one sentence that names the stage, the path and what would be right. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError';
}

/** Checks the settings of all stages. Throws {@link SettingsError} about the first thing that is wrong. */
export function parseStages(raw: readonly unknown[]): readonly StageSettings[] {
  const result = z.array(StageSettings).superRefine(refuseTwins).safeParse(raw, { reportInput: true });
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const [at] = issue?.path ?? [];
  const name = (raw[Number(at)] as { stage?: unknown } | undefined)?.stage;
  const path = issue?.path.slice(1) ?? [];
  const sentence = sentenceOf(issue && { ...issue, path }, 'A stage');
  const of = typeof name === 'string' ? ` (stage ${name})` : '';
  throw new SettingsError(`infra/settings.ts: ${sentence}${of}.`, { cause: result.error });
}

/** In an AWS region there is one SES identity of a name; only one stack can make it. */
function refuseSharedIdentities(
  cells: Partial<Record<ApiRegion, CellSettings>>,
  context: z.RefinementCtx,
): void {
  const makers = new Map<string, string>();
  for (const [region, { awsRegion, notifications }] of Object.entries(cells)) {
    if (!notifications || IDENTITY_ARN.test(notifications.identity)) continue;
    const place = `${awsRegion} ${notifications.identity}`;
    const maker = makers.get(place);
    if (maker !== undefined) {
      const message = `must be the ARN of the identity that the cell ${maker} makes in the same AWS region`;
      context.addIssue({ code: 'custom', path: [region, 'notifications', 'identity'], message });
    }
    makers.set(place, region);
  }
}

/** Names are made of stage and region, so two stages of one name would be the same stacks. */
function refuseTwins(all: readonly StageSettings[], context: z.RefinementCtx): void {
  const names = all.map(({ stage }) => stage);
  const twin = names.findIndex((name, at) => names.indexOf(name) !== at);
  if (twin >= 0) context.addIssue({ code: 'custom', path: [twin, 'stage'], message: 'must be there once' });
}

/** All stages. The addresses of the ordering service are placeholders until a deployment fills in its own. */
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
