import { Stack } from 'aws-cdk-lib';
import {
  OriginRequestCookieBehavior,
  OriginRequestHeaderBehavior,
  OriginRequestPolicy,
  OriginRequestQueryStringBehavior,
} from 'aws-cdk-lib/aws-cloudfront';
import { Construct } from 'constructs';
import { SESSION_COOKIE } from '../shared/api/routes/sign-in.ts';
import type { Cell } from './cell.ts';
import type { CellFunction } from './cell-function.ts';

/**
 * The proof that a request comes through the distribution, so that the functions accept the viewer's address
 * from it only. It is the id of the origin request policy. CloudFront generates it at random and discloses it
 * only within the AWS account; no template contains it.
 *
 * A separate construct, because the distribution needs the API, whose functions need the pass.
 */
export class DistributionPass extends Construct {
  readonly policy: OriginRequestPolicy;
  readonly id: string;

  constructor(scope: Construct, id: string, { name }: Cell) {
    super(scope, id);
    const { stackName, region } = Stack.of(this);
    this.policy = new OriginRequestPolicy(this, 'Policy', {
      // Unique in the AWS account: the same cell can be recovered in another AWS region.
      originRequestPolicyName: `${stackName}-${region}`,
      comment: `Jobwire, ${name}: all headers except Host, all query parameters, and the session cookie`,
      // API Gateway routes by the host.
      headerBehavior: OriginRequestHeaderBehavior.denyList('host'),
      queryStringBehavior: OriginRequestQueryStringBehavior.all(),
      cookieBehavior: OriginRequestCookieBehavior.allowList(SESSION_COOKIE),
    });
    this.id = this.policy.originRequestPolicyId;
  }

  /** Passes it to a function of the API. */
  grantTo(fn: CellFunction): void {
    fn.set('JOBWIRE_DISTRIBUTION_PASS', this.id);
  }
}
