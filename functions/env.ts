/**
 * The environment of each function. These schemas are the only place that names the variables. The functions
 * read them; infra can only set names listed here, and checks that each function has all of its variables.
 */
import * as z from 'zod';
import { channels } from '../shared/notifications/types.ts';

const text = z.string('must be text').min(1, 'must not be empty');
const url = z.url('must be a URL');

/** The cell of a function. */
const cell = {
  JOBWIRE_STAGE: text,
  /** Name of the cell in its stage. */
  JOBWIRE_CELL: text,
  /** The API region of the cell: us, nz, … */
  JOBWIRE_REGION: text,
  JOBWIRE_TABLE: text,
};

/** Time at which the cell's table was restored from a backup; absent if it was not. */
const restored = { JOBWIRE_RESTORED_AT: z.iso.datetime('must be a timestamp (ISO 8601, UTC)').optional() };

/** Variables for writing or reading the cell's event log. */
const log = {
  ...restored,
  /** Base URL of the events' `dataschema`. */
  JOBWIRE_PUBLIC_URL: url,
  JOBWIRE_RETENTION_DAYS: z.coerce.number('must be a number of days').int().positive(),
};

/** Variables for writing or reading the delivery history. */
const history = { JOBWIRE_HISTORY_TABLE: text };

/** Environment of the tick. */
export const TickEnv = z.object({
  ...cell,
  ...log,
  JOBWIRE_POLL_QUEUE_URL: url,
  /** Queue of accounts that are polled alone. */
  JOBWIRE_LONE_POLL_QUEUE_URL: url,
  JOBWIRE_DRAIN_QUEUE_URL: url,
  /** The topic that the cell's built-in sink publishes to. */
  JOBWIRE_TOPIC_ARN: text,
  /** ARN of the standard topic, in cells that have one. */
  JOBWIRE_STANDARD_TOPIC_ARN: text.optional(),
  /** ARN of the EventBridge bus, in cells that have one. */
  JOBWIRE_EVENT_BUS_ARN: text.optional(),
  /** Queue of requests to send notifications, in cells that send any. */
  JOBWIRE_NOTIFY_QUEUE_URL: url.optional(),
});

/** URLs of the ordering API of the cell's region. */
const upstream = {
  JOBWIRE_UPSTREAM_BASE_URL: url,
  JOBWIRE_UPSTREAM_AUTH_URL: url,
  JOBWIRE_UPSTREAM_REALM: text,
};

/** ARN of the KMS key that encrypts the data keys of the cell's secrets. */
const secrets = { JOBWIRE_KEY_ARN: text };

/** Share of polls that are traced, 0 to 1. Absent in a cell without traces. */
const traces = { JOBWIRE_TRACE_SAMPLE: z.coerce.number('must be a number').min(0).max(1).optional() };

/** Environment of pollAccount. */
export const PollAccountEnv = z.object({ ...cell, ...log, ...upstream, ...secrets, ...traces });

/** Environment of wakeSinks. */
export const WakeSinksEnv = z.object({ ...cell, ...restored, ...traces, JOBWIRE_DRAIN_QUEUE_URL: url });

/** Notification channels: `email`, or `email,sms`; absent in cells without any. */
const channelsOfCell = {
  JOBWIRE_CHANNELS: text
    .transform((names) => names.split(','))
    .pipe(z.array(z.enum(channels, 'must name channels')))
    .optional(),
};

/** Environment of drainSink. */
export const DrainSinkEnv = z.object({
  ...cell,
  ...log,
  ...history,
  ...channelsOfCell,
  ...secrets,
  ...traces,
});

/** Environment of notify. */
export const NotifyEnv = z.object({
  ...cell,
  ...history,
  ...channelsOfCell,
  /** Base URL of links to the HTTP API. */
  JOBWIRE_PUBLIC_URL: url,
  /** From address of e-mails, without a display name. */
  JOBWIRE_MAIL_FROM: text,
  /** SES configuration set that reports feedback about them. */
  JOBWIRE_MAIL_CONFIGURATION_SET: text,
  /** Default sender of SMS, for accounts without their own. */
  JOBWIRE_SMS_SENDER_ID: text.optional(),
});

/** Sender of e-mails that are not messages to customers. Absent in cells without notifications. */
const mail = {
  JOBWIRE_MAIL_FROM: text.optional(),
  JOBWIRE_MAIL_CONFIGURATION_SET: text.optional(),
};

/** Address of the dashboard in messages of alert rules. Absent: they contain no link. */
const dashboard = { JOBWIRE_DASHBOARD_URL: url.optional() };

/** Environment of the evaluation of alert rules. */
export const AlertsEnv = z.object({ ...cell, ...history, ...secrets, ...mail, ...dashboard });

/** Environment of mailFeedback. */
export const MailFeedbackEnv = z.object({ ...cell, ...history });

/** Environment of every function of the HTTP API. */
const http = {
  ...cell,
  ...log,
  /** Origins of web pages that may call the API, separated by commas. */
  JOBWIRE_CORS_ORIGINS: text.transform((origins) => origins.split(',')).optional(),
  /** Maximum number of requests of a key per minute. Absent: no limit. */
  JOBWIRE_REQUESTS_PER_MINUTE: z.coerce.number('must be a number').int().positive().optional(),
  /** Settings of the sign-in of users (JSON), in cells that have it. */
  JOBWIRE_SIGN_IN: text.optional(),
  /** Pass of the cell's distribution, in cells that have one. */
  JOBWIRE_DISTRIBUTION_PASS: text.optional(),
};

/** Environment of the HTTP API that reads. */
export const ApiEnv = z.object({ ...http, ...history, ...channelsOfCell });

/** Environment of the part of the HTTP API that changes resources. */
export const ManageEnv = z.object({
  ...http,
  ...history,
  ...upstream,
  ...channelsOfCell,
  ...secrets,
  /** ARNs of the queues that endpoints can have as targets, separated by commas. Absent: none. */
  JOBWIRE_QUEUES: text.transform((arns) => arns.split(',')).optional(),
  ...mail,
  ...dashboard,
});

/** Environment of the part of the HTTP API that waits: streams and feeds. */
export const LiveEnv = z.object({
  ...http,
  /** Maximum duration of a stream (s). */
  JOBWIRE_STREAM_SECONDS: z.coerce.number('must be a number of seconds').int().positive(),
  /** Maximum number of concurrent streams and waiting long polls of the cell. */
  JOBWIRE_STREAMS: z.coerce.number('must be a number').int().positive(),
  /** Maximum number of concurrent streams and waiting long polls of a key. */
  JOBWIRE_STREAMS_PER_KEY: z.coerce.number('must be a number').int().positive(),
});

/** Environment of the operator's function. */
export const OperateEnv = z.object({ ...cell, ...log });

/** Environment of publishDashboard. */
export const PublishDashboardEnv = z.object({
  JOBWIRE_STAGE: text,
  JOBWIRE_CELL: text,
  /** Bucket from which the distribution serves files. */
  JOBWIRE_DASHBOARD_BUCKET: text,
});

/** Environment of the sandbox of a smoke test. */
export const SmokeSandboxEnv = z.object({
  JOBWIRE_REGION: z.enum(['us', 'nz', 'au', 'uk', 'eu']),
  /** SHA-256 of the client secret, in hexadecimal. */
  SMOKE_SECRET_HASH: text,
  /** Start of the jobs' history (epoch ms). */
  SMOKE_STARTED_AT: z.coerce.number('must be a timestamp').int().positive(),
  /** Queue of received webhooks. */
  SMOKE_QUEUE_URL: url,
});

/** All variables that functions read. */
export type Env = z.infer<typeof TickEnv> &
  z.infer<typeof PollAccountEnv> &
  z.infer<typeof DrainSinkEnv> &
  z.infer<typeof NotifyEnv> &
  z.infer<typeof AlertsEnv> &
  z.infer<typeof MailFeedbackEnv> &
  z.infer<typeof ApiEnv> &
  z.infer<typeof ManageEnv> &
  z.infer<typeof LiveEnv> &
  z.infer<typeof OperateEnv> &
  z.infer<typeof PublishDashboardEnv>;
/** Name of a variable that a function reads. */
export type EnvName = keyof Env;

/** The environment is invalid; the message names the variable. */
export class EnvError extends Error {
  override readonly name = 'EnvError';
}

/**
 * Reads a function's environment. Throws {@link EnvError} for the first invalid variable. Values are not
 * quoted, because an environment may contain confidential data.
 */
export function readEnv<T extends z.ZodObject>(
  schema: T,
  env: Readonly<Record<string, string | undefined>>,
): z.infer<T> {
  const result = schema.safeParse(env);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const name = String(issue?.path[0] ?? '');
  const rule = env[name] === undefined ? 'is missing' : (issue?.message ?? 'is not valid');
  throw new EnvError(`The environment variable ${name} ${rule}.`, { cause: result.error });
}
