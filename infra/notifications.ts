import { ArnFormat, CfnOutput, Duration, Stack } from 'aws-cdk-lib';
import { PolicyStatement } from 'aws-cdk-lib/aws-iam';
import {
  ConfigurationSet,
  EmailIdentity,
  EmailSendingEvent,
  EventDestination,
  Identity,
} from 'aws-cdk-lib/aws-ses';
import { Topic } from 'aws-cdk-lib/aws-sns';
import { SqsSubscription } from 'aws-cdk-lib/aws-sns-subscriptions';
import { Construct } from 'constructs';
import { MailFeedbackEnv, NotifyEnv } from '../functions/env.ts';
import type { Channel } from '../shared/notifications/types.ts';
import { acknowledge } from './acknowledge.ts';
import { withRenderWorker } from './bundling.ts';
import type { Cell } from './cell.ts';
import { CellFunction } from './cell-function.ts';
import type { HistoryTable } from './history-table.ts';
import { type NotificationSettings, parseAddress } from './settings.ts';
import type { StateTable } from './state-table.ts';
import { WorkQueue } from './work-queue.ts';

/** Maximum duration of one send run. The next tick requests the rest. */
const NOTIFY_TIMEOUT = Duration.minutes(5);
const FEEDBACK_TIMEOUT = Duration.seconds(30);
/** All resources with an ARN at SNS. A phone number has none. */
const ALL_OF_SNS = 'arn:aws:sns:*:*:*';

interface Props extends Cell {
  readonly notifications: NotificationSettings;
  readonly table: StateTable;
  readonly history: HistoryTable;
}

/** Settings with which a function sends e-mails. */
interface MailGrant {
  readonly statement: PolicyStatement;
  readonly address: string;
  readonly configurationSet: string;
}

/**
 * The resources for customer notifications. The tick invokes `notify` when a notice or a message is due; it
 * sends through SES and SNS. Feedback that SES reports later arrives through a topic in the queue of
 * `mailFeedback`. Only in cells whose settings request it.
 */
export class Notifications extends Construct {
  /** Queue of requests, for all functions that find due messages. */
  readonly messages: WorkQueue;
  readonly feedback: WorkQueue;
  /** Topic of the feedback. */
  readonly feedbackTopic: Topic;
  readonly functions: { readonly notify: CellFunction; readonly mailFeedback: CellFunction };

  readonly #mail: MailGrant;

  constructor(scope: Construct, id: string, props: Props) {
    super(scope, id);
    const { region, cell, table, history, notifications } = props;
    const { sms } = notifications;

    const configurationSet = new ConfigurationSet(this, 'ConfigurationSet', { reputationMetrics: false });
    const feedback = new Topic(this, 'Heard', {
      displayName: `Jobwire: mail feedback from SES, ${region}`,
      enforceSSL: true,
    });
    this.feedbackTopic = feedback;
    configurationSet.addEventDestination('ToTopic', {
      destination: EventDestination.snsTopic(feedback),
      events: [EmailSendingEvent.BOUNCE, EmailSendingEvent.COMPLAINT, EmailSendingEvent.REJECT],
    });

    const notify = new CellFunction(this, 'Notify', {
      ...props,
      entry: 'notify',
      env: NotifyEnv,
      description: 'Sends due notifications to customers: e-mails through SES, SMS through SNS',
      timeout: NOTIFY_TIMEOUT,
      memoryMb: 512,
      bundling: withRenderWorker,
    });
    table.grant(notify, 'notifying');
    history.grant(notify, 'notifying');
    setChannels(notify, cell);
    notify.set('JOBWIRE_PUBLIC_URL', cell.publicUrl);
    this.#mail = this.#createMailGrant(notifications, configurationSet.configurationSetName);
    this.grantMail(notify);
    if (sms) this.#grantSms(notify, sms.senderId);
    this.messages = new WorkQueue(this, 'Messages', {
      consumer: notify,
      consumerTimeout: NOTIFY_TIMEOUT,
      batchSize: 1,
      // One run that sends, and the next one that begins while it ends. Messages are claimed, so that no
      // message is sent twice.
      maxConcurrency: 2,
      maxReceiveCount: 3,
      // A message is only a hint: due work is in the table, and the tick finds it.
      retention: Duration.hours(1),
      deadMeans:
        'Sending notifications failed three times: notify threw, or ran out of time. Due messages stay due, and the tick keeps requesting that they be sent. See the log of notify for the cause.',
      urlEnv: 'JOBWIRE_NOTIFY_QUEUE_URL',
    });

    const mailFeedback = new CellFunction(this, 'MailFeedback', {
      ...props,
      entry: 'mail-feedback',
      env: MailFeedbackEnv,
      description: 'Records mail feedback of SES: bounces and complaints suppress further e-mails',
      timeout: FEEDBACK_TIMEOUT,
      memoryMb: 256,
    });
    table.grant(mailFeedback, 'recordingFeedback');
    history.grant(mailFeedback, 'recordingFeedback');
    this.feedback = new WorkQueue(this, 'Feedback', {
      consumer: mailFeedback,
      consumerTimeout: FEEDBACK_TIMEOUT,
      batchSize: 10,
      maxConcurrency: 2,
      maxReceiveCount: 5,
      // SES reports each feedback only once.
      retention: Duration.days(14),
      deadMeans:
        'Mail feedback from SES could not be recorded. A recipient whose e-mail bounced, or who marked it as spam, may be notified again. See the log of mailFeedback for the cause.',
    });
    feedback.addSubscription(new SqsSubscription(this.feedback.queue, { rawMessageDelivery: true }));
    this.functions = { notify, mailFeedback };
  }

  /** Grants sending with this identity and this configuration set only, and from one address. */
  grantMail(fn: CellFunction): void {
    fn.addToRolePolicy(this.#mail.statement);
    fn.set('JOBWIRE_MAIL_FROM', this.#mail.address);
    fn.set('JOBWIRE_MAIL_CONFIGURATION_SET', this.#mail.configurationSet);
  }

  #createMailGrant({ from, identity }: NotificationSettings, configurationSet: string): MailGrant {
    const stack = Stack.of(this);
    const sesArn = (resource: string, resourceName: string) =>
      stack.formatArn({ service: 'ses', resource, resourceName, arnFormat: ArnFormat.SLASH_RESOURCE_NAME });
    const address = parseAddress(from);
    const statement = new PolicyStatement({
      // SES requires the second permission for raw mails, for every call.
      actions: ['ses:SendEmail', 'ses:SendRawEmail'],
      resources: [
        identity.startsWith('arn:') ? identity : sesArn('identity', this.#makeIdentity(identity)),
        sesArn('configuration-set', configurationSet),
      ],
      conditions: { StringEquals: { 'ses:FromAddress': address } },
    });
    return { statement, address, configurationSet };
  }

  /** Creates the identity of a domain, with the required DNS records as outputs. Returns its name. */
  #makeIdentity(domain: string): string {
    const identity = new EmailIdentity(this, 'Identity', { identity: Identity.domain(domain) });
    for (const [at, { name, value }] of identity.dkimRecords.entries()) {
      new CfnOutput(Stack.of(this), `MailDnsRecord${at + 1}`, { value: `${name} CNAME ${value}` });
    }
    return identity.emailIdentityName;
  }

  /**
   * Grants sending to phone numbers, which have no ARN: all resources with an ARN are excluded. The opt-out
   * check can only be granted for all numbers or none.
   */
  #grantSms(fn: CellFunction, senderId: string | undefined): void {
    fn.addToRolePolicy(new PolicyStatement({ actions: ['sns:Publish'], notResources: [ALL_OF_SNS] }));
    fn.permit(['sns:CheckIfPhoneNumberIsOptedOut'], ['*']);
    acknowledge(fn.role ?? fn, {
      'AwsSolutions-IAM5[Resource::*]':
        'Phone numbers have no ARN, so the permission cannot be limited to some of them.',
    });
    if (senderId !== undefined) fn.set('JOBWIRE_SMS_SENDER_ID', senderId);
  }
}

/** Passes the cell's notification channels to a function; no effect in a cell without any. */
export function setChannels(fn: CellFunction, { notifications }: Cell['cell']): void {
  if (!notifications) return;
  const names: Channel[] = notifications.sms ? ['email', 'sms'] : ['email'];
  fn.set('JOBWIRE_CHANNELS', names.join(','));
}
