/**
 * Connections of a host to the receivers of events and notifications, as the configuration names them. Clients of AWS and of mail servers
 * are loaded only if they are used, so that a start takes less time.
 */

import { MAX_LANES } from '../shared/delivery/lanes.ts';
import type { ConnectionPool } from '../shared/delivery/outbound.ts';
import type { SigningReader } from '../shared/delivery/signing-secrets.ts';
import type { SinkPort, SinkRecord } from '../shared/delivery/sink.ts';
import { createWebhookSink } from '../shared/delivery/webhook.ts';
import type { EmailTransport, SendOutcome, SmsTransport } from '../shared/notifications/types.ts';
import { listDeclaredSinks } from './declared.ts';
import type { HostOptions } from './host-options.ts';

/** Returns the grace time, which sink and sender have to share. */
export function toGrace({ noticeGraceMs }: HostOptions): { readonly graceMs?: number } {
  return noticeGraceMs === undefined ? {} : { graceMs: noticeGraceMs };
}

/** Opens the transports that the configuration names. */
export async function openTransports({
  config,
  smsCredentials,
  onMail,
  onSms,
}: Pick<HostOptions, 'config' | 'smsCredentials' | 'onMail' | 'onSms'>): Promise<{
  readonly email?: EmailTransport;
  readonly sms?: SmsTransport;
}> {
  if (!config.notifications) return {};
  const { from, smtp, sms } = config.notifications;
  const { host, port, secure, user, password, dkim } = smtp;
  const { createSmtpTransport } = await import('../shared/notifications/smtp.ts');
  const email = createSmtpTransport({
    ...{ from, host, port, secure },
    ...(user === undefined || password === undefined ? {} : { user, password }),
    ...(dkim ? { dkim } : {}),
  });
  const observed = { ...email, send: withOutcomes(email.send, onMail) };
  if (!sms) return { email: observed };
  const { createSnsSmsTransport } = await import('../shared/notifications/sms.ts');
  const { send } = createSnsSmsTransport({
    aws: {
      region: sms.awsRegion,
      ...(sms.endpoint === undefined ? {} : { endpoint: sms.endpoint }),
      ...(smsCredentials ? { credentials: smsCredentials } : {}),
    },
    senderId: sms.senderId ?? null,
  });
  return { email: observed, sms: { send: withOutcomes(send, onSms) } };
}

/** Reports the outcome of each attempt to send. */
function withOutcomes<M>(
  send: (message: M) => Promise<SendOutcome>,
  onOutcome: ((outcome: SendOutcome) => void) | undefined,
): (message: M) => Promise<SendOutcome> {
  return async (message) => {
    const outcome = await send(message);
    onOutcome?.(outcome);
    return outcome;
  };
}

/** Why no event can be sent to a queue. */
export const NO_QUEUES = 'queues require "sqs" in the configuration file';

/** Transports of sinks. All sinks of a host share them. */
interface SinkTransports {
  readonly connections: ConnectionPool;
  readonly readSigning: SigningReader;
  /** Opens the sink of a queue by its ARN. Absent: `sqs` is not configured. */
  readonly openQueue: ((arn: string) => SinkPort) | undefined;
}

/** Timeouts of requests to SQS: a connection that does not respond must not hold the lease of the sink. */
const SQS_TIMEOUTS = { connectionTimeout: 5_000, requestTimeout: 15_000, throwOnRequestTimeout: true };

/** Creates the opener of queues, if the configuration enables them. */
export async function createQueues({ config, publicUrl }: HostOptions): Promise<SinkTransports['openQueue']> {
  if (!config.sqs) return undefined;
  const { endpoint } = config.sqs;
  const { createQueueOpener } = await import('../shared/delivery/sqs.ts');
  return createQueueOpener({ publicUrl, endpoint, requestHandler: SQS_TIMEOUTS });
}

/**
 * Reads secrets and custom headers of declared endpoints from the configuration, and those of other endpoints from the table, where they
 * are encrypted.
 */
export async function openSink(
  options: HostOptions,
  record: SinkRecord,
  { connections, readSigning, openQueue }: SinkTransports,
): Promise<SinkPort> {
  const { config, sns, publicUrl, table, history } = options;
  switch (record.kind) {
    case 'sns': {
      if (!sns) throw new Error('SNS is not configured.');
      const { createSnsSink } = await import('../shared/delivery/sns.ts');
      return createSnsSink(sns.client, record.target, { publicUrl });
    }
    case 'eventbridge':
      throw new Error('Only a cell on AWS has an event bus.');
    case 'webhook': {
      const { region, id, target, concurrency = MAX_LANES } = record;
      // An endpoint created through the API has its own secrets, even if another region declares the same id.
      const declared =
        record.createdAt === undefined && listDeclaredSinks(options, region).some((sink) => sink.id === id)
          ? config.endpoints.find((endpoint) => endpoint.id === id)
          : undefined;
      const transport = {
        url: target,
        now: Date.now,
        connections: connections.of(`${region}/${id}`, concurrency),
      };
      if (declared) {
        const { secret, headers = {} } = declared;
        return createWebhookSink({ ...transport, secrets: [secret].flat(), headers });
      }
      const signing = () => readSigning(region, id, record);
      // An endpoint without secrets is not opened.
      await signing();
      return createWebhookSink({ ...transport, signing });
    }
    case 'sqs':
      if (!openQueue) throw new Error(NO_QUEUES);
      return openQueue(record.target);
    case 'notifications': {
      const { createNotificationsSink } = await import('./notifications.ts');
      return createNotificationsSink({ table, history, now: Date.now, ...toGrace(options) });
    }
  }
}
