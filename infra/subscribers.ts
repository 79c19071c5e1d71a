import { AccountPrincipal, OrganizationPrincipal, PolicyStatement } from 'aws-cdk-lib/aws-iam';
import type { Topic } from 'aws-cdk-lib/aws-sns';
import type { SubscriberSettings } from './settings.ts';

/** Protocols of a standard topic that other accounts may use. E-mail and SMS are left to the cell's account. */
const STANDARD_PROTOCOLS = ['sqs', 'lambda', 'https'];

/**
 * Allows other AWS accounts to subscribe to topics, and nothing else. They need no permission for the topics' KMS key: SNS decrypts
 * a message before it delivers it.
 */
export function allowSubscribers(
  topics: readonly Topic[],
  { accounts, organization }: SubscriberSettings,
): void {
  for (const topic of topics) {
    const allow = (sid: string, principals: readonly (AccountPrincipal | OrganizationPrincipal)[]) =>
      topic.addToResourcePolicy(
        new PolicyStatement({
          sid,
          principals: [...principals],
          actions: ['sns:Subscribe'],
          resources: [topic.topicArn],
          conditions: { StringEquals: { 'sns:Protocol': topic.fifo ? ['sqs'] : STANDARD_PROTOCOLS } },
        }),
      );
    if (accounts.length > 0) {
      allow(
        'SubscriberAccounts',
        accounts.map((id) => new AccountPrincipal(id)),
      );
    }
    if (organization !== undefined)
      allow('SubscriberOrganization', [new OrganizationPrincipal(organization)]);
  }
}
