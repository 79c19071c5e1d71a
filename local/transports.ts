/** Connections of a host to the receivers of events and notifications, as the configuration names them. */

import { MAX_LANES } from '../shared/delivery/lanes.ts';
import type { ConnectionPool } from '../shared/delivery/outbound.ts';
import type { SigningReader } from '../shared/delivery/signing-secrets.ts';
import type { SinkPort, SinkRecord } from '../shared/delivery/sink.ts';
import { createSnsSink } from '../shared/delivery/sns.ts';
import { createWebhookSink } from '../shared/delivery/webhook.ts';
import { createNotificationsSink } from '../shared/notifications/notifications-sink.ts';
import { createSnsSmsTransport } from '../shared/notifications/sms.ts';
import { createSmtpTransport } from '../shared/notifications/smtp.ts';
import type { EmailTransport, SmsTransport } from '../shared/notifications/types.ts';
import { declaredSinks } from './declared.ts';
import type { HostOptions } from './host-options.ts';

/** Returns the grace time, which sink and sender have to share. */
export function toGrace({ noticeGraceMs }: HostOptions): { readonly graceMs?: number } {
  return noticeGraceMs === undefined ? {} : { graceMs: noticeGraceMs };
}

/** Opens the transports that the configuration names. */
export function openTransports({ config, smsCredentials }: HostOptions): {
  readonly email?: EmailTransport;
  readonly sms?: SmsTransport;
} {
  if (!config.notifications) return {};
  const { from, smtp, sms } = config.notifications;
  const { host, port, secure, user, password, dkim } = smtp;
  return {
    email: createSmtpTransport({
      ...{ from, host, port, secure },
      ...(user === undefined || password === undefined ? {} : { user, password }),
      ...(dkim ? { dkim } : {}),
    }),
    ...(sms
      ? {
          sms: createSnsSmsTransport({
            aws: {
              region: sms.awsRegion,
              ...(sms.endpoint === undefined ? {} : { endpoint: sms.endpoint }),
              ...(smsCredentials ? { credentials: smsCredentials } : {}),
            },
            senderId: sms.senderId ?? null,
          }),
        }
      : {}),
  };
}

/**
 * Reads secrets and custom headers of declared endpoints from the configuration, and those of other endpoints from the table, where they
 * are encrypted.
 */
export async function openSink(
  options: HostOptions,
  record: SinkRecord,
  connections: ConnectionPool,
  readSigning: SigningReader,
): Promise<SinkPort> {
  const { config, sns, publicUrl, table, history } = options;
  switch (record.kind) {
    case 'sns':
      if (!sns) throw new Error('SNS is not configured.');
      return createSnsSink(sns.client, record.target, { publicUrl });
    case 'eventbridge':
      throw new Error('Only a cell on AWS has an event bus.');
    case 'webhook': {
      const { region, id, target, concurrency = MAX_LANES } = record;
      // An endpoint created through the API has its own secrets, even if another region declares the same id.
      const declared =
        record.createdAt === undefined && declaredSinks(options, region).some((sink) => sink.id === id)
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
    case 'notifications':
      return createNotificationsSink({ table, history, now: Date.now, ...toGrace(options) });
  }
}
