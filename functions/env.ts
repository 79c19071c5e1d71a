/**
 * What each function needs from its environment. These schemas are the one place where the variables are named: the
 * functions read them, and infra can only set names that stand here, and checks that each function has all of its own.
 */
import * as z from 'zod';
import { channels } from '../shared/notifications/model.ts';

const text = z.string('must be text').min(1, 'must not be empty');
const url = z.url('must be a URL');

/** Which cell a function belongs to. */
const cell = {
  JOBWIRE_STAGE: text,
  /** The API region the cell is for: us, nz, … */
  JOBWIRE_REGION: text,
  JOBWIRE_TABLE: text,
};

/** When the cell's table was restored from a backup, in cells where it was. */
const restored = { JOBWIRE_RESTORED_AT: z.iso.datetime('must be an instant').optional() };

/** What it takes to write or read the cell's event log. */
const log = {
  ...restored,
  /** What the events' `dataschema` starts with. */
  JOBWIRE_PUBLIC_URL: url,
  JOBWIRE_RETENTION_DAYS: z.coerce.number('must be a number of days').int().positive(),
};

/** What it takes to keep, or to look back at, what became of deliveries. */
const history = { JOBWIRE_HISTORY_TABLE: text };

/** Environment of the tick. */
export const TickEnv = z.object({
  ...cell,
  ...log,
  JOBWIRE_POLL_QUEUE_URL: url,
  /** For accounts that are polled one at a time. */
  JOBWIRE_LONE_POLL_QUEUE_URL: url,
  JOBWIRE_DRAIN_QUEUE_URL: url,
  /** The topic that the cell's built-in sink publishes to. */
  JOBWIRE_TOPIC_ARN: text,
  /** The standard topic, in cells that have one. */
  JOBWIRE_STANDARD_TOPIC_ARN: text.optional(),
  /** Where messages to customers are asked for, in cells that send any. */
  JOBWIRE_NOTIFY_QUEUE_URL: url.optional(),
});

/** Where the ordering service of the cell's region is. */
const upstream = {
  JOBWIRE_UPSTREAM_BASE_URL: url,
  JOBWIRE_UPSTREAM_AUTH_URL: url,
  JOBWIRE_UPSTREAM_REALM: text,
};

/** Environment of pollAccount. */
export const PollAccountEnv = z.object({ ...cell, ...log, ...upstream });

/** Environment of wakeSinks. */
export const WakeSinksEnv = z.object({ ...cell, ...restored, JOBWIRE_DRAIN_QUEUE_URL: url });

/** How customers can be told: `email`, or `email,sms`; absent in cells that tell none. */
const channelsOfCell = {
  JOBWIRE_CHANNELS: text
    .transform((names) => names.split(','))
    .pipe(z.array(z.enum(channels, 'must name channels')))
    .optional(),
};

/** Environment of drainSink. */
export const DrainSinkEnv = z.object({ ...cell, ...log, ...history, ...channelsOfCell });

/** Environment of notify. */
export const NotifyEnv = z.object({
  ...cell,
  ...history,
  ...channelsOfCell,
  /** What links to the HTTP API begin with. */
  JOBWIRE_PUBLIC_URL: url,
  /** Who e-mails are from: the address alone. */
  JOBWIRE_MAIL_FROM: text,
  /** By which SES tells what it hears of them. */
  JOBWIRE_MAIL_CONFIGURATION_SET: text,
  /** Who SMS are from where an account says nothing else. */
  JOBWIRE_SMS_SENDER_ID: text.optional(),
});

/** Environment of mailFeedback. */
export const MailFeedbackEnv = z.object({ ...cell, ...history });

/** What every function of the HTTP API has. */
const http = {
  ...cell,
  ...log,
  /** Origins of web pages that may call it, separated by commas. */
  JOBWIRE_CORS_ORIGINS: text.transform((origins) => origins.split(',')).optional(),
  /** What the cell's distribution shows with each request, in cells that have one. */
  JOBWIRE_DISTRIBUTION_PASS: text.optional(),
};

/** Environment of the HTTP API that reads. */
export const ApiEnv = z.object({ ...http, ...history, ...channelsOfCell });

/** Environment of the part of the HTTP API that changes something. */
export const ManageEnv = z.object({
  ...http,
  ...history,
  ...upstream,
  ...channelsOfCell,
  /** The cell's own key, in cells that have one: secrets are made with it. */
  JOBWIRE_KEY_ARN: text.optional(),
});

/** Environment of the part of the HTTP API that waits: streams and feeds. */
export const LiveEnv = z.object({
  ...http,
  /** After this time a stream ends by itself. */
  JOBWIRE_STREAM_SECONDS: z.coerce.number('must be a number of seconds').int().positive(),
  /** How many streams and waiting long polls a key may have at the same time. */
  JOBWIRE_STREAMS_PER_KEY: z.coerce.number('must be a number').int().positive(),
});

/** Environment of the operator's function. */
export const OperateEnv = z.object({
  ...cell,
  ...log,
  ...history,
  ...upstream,
  /** The cell's own key, in cells that have one. */
  JOBWIRE_KEY_ARN: text.optional(),
});

/** Environment of publishDashboard. */
export const PublishDashboardEnv = z.object({
  JOBWIRE_STAGE: text,
  JOBWIRE_REGION: text,
  /** Where the distribution serves files from. */
  JOBWIRE_DASHBOARD_BUCKET: text,
});

/** Every variable that some function reads. */
export type EnvName = keyof (z.infer<typeof TickEnv> &
  z.infer<typeof PollAccountEnv> &
  z.infer<typeof DrainSinkEnv> &
  z.infer<typeof NotifyEnv> &
  z.infer<typeof MailFeedbackEnv> &
  z.infer<typeof ApiEnv> &
  z.infer<typeof ManageEnv> &
  z.infer<typeof LiveEnv> &
  z.infer<typeof OperateEnv> &
  z.infer<typeof PublishDashboardEnv>);

/** The environment is not as a function needs it; the message is one sentence that names the variable. */
export class EnvError extends Error {
  override readonly name = 'EnvError';
}

/**
 * Reads a function's environment. Throws {@link EnvError} about the first variable that is wrong; values are not quoted,
 * for an environment may hold what is nobody's business.
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
