/** The web ACL of a cell's API: rate limits per client, and the managed rules that fit an API. */
import { Stack } from 'aws-cdk-lib';
import type { RestApi } from 'aws-cdk-lib/aws-apigateway';
import { CfnWebACL, CfnWebACLAssociation } from 'aws-cdk-lib/aws-wafv2';
import type { Construct } from 'constructs';
import * as z from 'zod';
import { PASS_HEADER, VIEWER_HEADER } from '../functions/handlers/rest-proxy.ts';
import { routes } from '../shared/api/routes/all.ts';
import type { Cell } from './cell.ts';
import type { DistributionPass } from './distribution-pass.ts';

/** Paths of requests that contain templates of messages, in the notation of WAF. The stage precedes them. */
const TEMPLATE_PATHS = `(${routes
  .flatMap(({ spec: { path, body } }) => (body && hasTemplate(body) ? path.replace(/\{\w+\}/g, '[^/]+') : []))
  .join('|')})$`;

/** Returns whether a body is a template, or contains one. */
function hasTemplate(body: z.ZodType): boolean {
  const schema = z.toJSONSchema(body, { io: 'input', unrepresentable: 'any' });
  return JSON.stringify(schema).includes('"TemplateInput"');
}

/** Associates a web ACL with the API of a cell. `pass`: what the requests of the cell's distribution carry, if there is one. */
export function addWebAcl(
  scope: Construct,
  api: RestApi,
  { stage }: Cell,
  pass: DistributionPass | undefined,
): void {
  const visible = (metricName: string) => ({
    cloudWatchMetricsEnabled: true,
    metricName,
    // Samples contain request headers, and so the API key.
    sampledRequestsEnabled: false,
  });
  const managed = (name: string, counted: readonly string[] = [], only: object = {}) => ({
    managedRuleGroupStatement: {
      ...{ vendorName: 'AWS', name, ...only },
      ruleActionOverrides: counted.map((rule) => ({ name: rule, actionToUse: { count: {} } })),
    },
  });
  const rate = {
    evaluationWindowSec: 60,
    // Half of the rate of one method.
    limit: Math.max(10, stage.api.requestsPerSecond * 30),
  };
  const untouched = [{ priority: 0, type: 'NONE' }];
  const passed = pass && {
    byteMatchStatement: {
      fieldToMatch: { singleHeader: { Name: PASS_HEADER } },
      positionalConstraint: 'EXACTLY',
      searchString: pass.id,
      textTransformations: untouched,
    },
  };
  const rules = [
    {
      name: 'rate',
      action: { block: {} },
      statement: {
        rateBasedStatement: {
          ...rate,
          aggregateKeyType: 'IP',
          // Requests through the distribution come from few addresses, each shared by many viewers.
          ...(passed && { scopeDownStatement: { notStatement: { statement: passed } } }),
        },
      },
    },
    ...(passed
      ? [
          {
            name: 'rate-of-viewers',
            action: { block: {} },
            statement: {
              rateBasedStatement: {
                ...rate,
                aggregateKeyType: 'CUSTOM_KEYS',
                customKeys: [{ header: { name: VIEWER_HEADER, textTransformations: untouched } }],
                scopeDownStatement: passed,
              },
            },
          },
        ]
      : []),
    {
      name: 'common',
      overrideAction: { none: {} },
      statement: managed(
        'AWSManagedRulesCommonRuleSet',
        [
          // Clients are programs, not browsers.
          'NoUserAgent_HEADER',
          // The cursor of the stream of all accounts is up to 8,000 characters long.
          'SizeRestrictions_QUERYSTRING',
          // Bodies may be 10 kB, and name addresses of endpoints, which the app checks better.
          'SizeRestrictions_BODY',
          'GenericRFI_BODY',
          'EC2MetaDataSSRF_BODY',
        ],
        // Templates contain HTML, which a rule takes for cross-site scripting.
        {
          scopeDownStatement: {
            notStatement: {
              statement: {
                regexMatchStatement: {
                  fieldToMatch: { uriPath: {} },
                  regexString: TEMPLATE_PATHS,
                  textTransformations: untouched,
                },
              },
            },
          },
        },
      ),
    },
    {
      name: 'bad-inputs',
      overrideAction: { none: {} },
      statement: managed('AWSManagedRulesKnownBadInputsRuleSet'),
    },
  ];
  const acl = new CfnWebACL(scope, 'WebAcl', {
    scope: 'REGIONAL',
    defaultAction: { allow: {} },
    // Not `all`: WAF reserves that name.
    visibilityConfig: visible('acl'),
    rules: rules.map((rule, priority) => ({ ...rule, priority, visibilityConfig: visible(rule.name) })),
  });
  new CfnWebACLAssociation(scope, 'WebAclAssociation', {
    webAclArn: acl.attrArn,
    resourceArn: Stack.of(scope).formatArn({
      service: 'apigateway',
      account: '',
      resource: `/restapis/${api.restApiId}/stages`,
      resourceName: api.deploymentStage.stageName,
    }),
  });
}
