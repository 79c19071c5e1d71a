import { Duration, RemovalPolicy, Stack, Validations } from 'aws-cdk-lib';
import {
  AccessLogField,
  AccessLogFormat,
  type CfnRestApi,
  EndpointAccessMode,
  EndpointType,
  type IResource,
  LambdaIntegration,
  LogGroupLogDestination,
  type MethodDeploymentOptions,
  ResponseTransferMode,
  RestApi,
  SecurityPolicy,
} from 'aws-cdk-lib/aws-apigateway';
import { LogGroup } from 'aws-cdk-lib/aws-logs';
import { CfnWebACL, CfnWebACLAssociation } from 'aws-cdk-lib/aws-wafv2';
import { Construct } from 'constructs';
import { ApiEnv, LiveEnv } from '../functions/env.ts';
import { SLOT_GRACE_MS } from '../shared/api/slots.ts';
import { CellFunction } from './cell-function.ts';
import type { Cell } from './cell-stack.ts';
import { setLog } from './delivery.ts';
import type { HistoryTable } from './history-table.ts';
import type { StateTable } from './state-table.ts';

interface Props extends Cell {
  readonly table: StateTable;
  readonly history: HistoryTable;
}

/** Feeds with long poll, and streams: a GET of these may wait. API Gateway routes by path alone, so feeds wait or not. */
const FEEDS = ['/v1/accounts/{id}/events', '/v1/regions/{id}/events'];
const STREAMS = [
  '/v1/accounts/{id}/events/stream',
  '/v1/regions/{id}/events/stream',
  '/v1/events/stream',
] as const;

/** The HTTP API of a cell: one function for what waits, and one for all the rest. */
export class Api extends Construct {
  readonly url: string;
  readonly rest: RestApi;
  /** Those behind it. */
  readonly functions: { readonly api: CellFunction; readonly live: CellFunction };

  constructor(scope: Construct, id: string, props: Props) {
    super(scope, id);
    const { stage, region, table, history } = props;

    const fn = new CellFunction(this, 'Function', {
      ...props,
      entry: 'api',
      env: ApiEnv,
      description: 'The HTTP API, but for what waits',
      // A few reads of the table, which are given up and tried again after 5 s each.
      timeout: Duration.seconds(20),
      memoryMb: 512,
    });
    table.grantReading(fn);
    table.grantOperating(fn);
    history.grantLookingBack(fn);
    table.grantCheckingKeys(fn);
    setLog(fn, props);

    // A slot is held for no longer than this, so it is never free while an invocation still has it.
    const liveTimeout = Duration.seconds(stage.api.streamSeconds + SLOT_GRACE_MS / 1000);
    const live = new CellFunction(this, 'Live', {
      ...props,
      entry: 'live',
      env: LiveEnv,
      description: 'The HTTP API: streams and feeds',
      timeout: liveTimeout,
      // Paid for all the time that somebody waits; see docs/decisions/0016-a-function-for-what-waits.md.
      memoryMb: 256,
      reservedConcurrency: stage.api.liveConcurrency ?? undefined,
    });
    live.set('JOBWIRE_STREAM_SECONDS', String(stage.api.streamSeconds));
    live.set('JOBWIRE_STREAMS_PER_KEY', String(stage.api.streamsPerKey));
    table.grantStreaming(live);
    table.grantCheckingKeys(live);
    setLog(live, props);

    const accessLog = new LogGroup(this, 'AccessLog', {
      retention: stage.logRetention,
      removalPolicy: RemovalPolicy.DESTROY,
    });
    const api = new RestApi(this, 'Rest', {
      restApiName: `jobwire-${stage.stage}-${region}`,
      description: 'Jobwire: events and state of accounts',
      endpointTypes: [EndpointType.REGIONAL],
      // API Gateway writes access logs by a role that is set once per AWS account and region. Cells in the same region set
      // it in turn, to roles that may do the same; so none of them may be taken away with its cell.
      cloudWatchRole: true,
      cloudWatchRoleRemovalPolicy: RemovalPolicy.RETAIN,
      deployOptions: {
        stageName: stage.stage,
        throttlingRateLimit: stage.api.requestsPerSecond,
        throttlingBurstLimit: stage.api.burst,
        methodOptions: Object.fromEntries(STREAMS.map((path) => [`${path}/GET`, openings(props)])),
        accessLogDestination: new LogGroupLogDestination(accessLog),
        // No addresses, and no query: it may hold what customers search for.
        accessLogFormat: AccessLogFormat.custom(
          JSON.stringify({
            requestId: AccessLogField.contextRequestId(),
            time: AccessLogField.contextRequestTime(),
            method: AccessLogField.contextHttpMethod(),
            path: AccessLogField.contextPath(),
            status: AccessLogField.contextStatus(),
            responseBytes: AccessLogField.contextResponseLength(),
            latencyMs: AccessLogField.contextResponseLatency(),
          }),
        ),
      },
    });
    this.url = api.url;
    this.rest = api;
    this.functions = { api: fn, live };
    // A regional API takes TLS 1.0 unless told otherwise.
    const rest = api.node.defaultChild as CfnRestApi;
    rest.securityPolicy = SecurityPolicy.TLS13_1_2_PFS_PQ_2025_09;
    rest.endpointAccessMode = EndpointAccessMode.BASIC;

    route(
      api,
      // One permission for the whole API: there would be one for each of twenty methods.
      new LambdaIntegration(fn, { scopePermissionToMethod: false }),
      new LambdaIntegration(live, {
        scopePermissionToMethod: false,
        responseTransferMode: ResponseTransferMode.STREAM,
        timeout: liveTimeout,
      }),
    );
    if (stage.api.waf) protect(this, api, props);
    acknowledge(api, props);
  }
}

/**
 * Opening a stream costs far more than a request does, and happens once in minutes: a tenth of the rate. The burst stays, for
 * all clients come back at once after a deployment.
 */
function openings({ stage }: Cell): MethodDeploymentOptions {
  return {
    throttlingRateLimit: Math.max(1, Math.floor(stage.api.requestsPerSecond / 10)),
    throttlingBurstLimit: stage.api.burst,
  };
}

/**
 * Sends a GET of what may wait to one function, and everything else to the other. Every resource on the way takes requests for
 * itself and for all paths below it, so that none depends on API Gateway trying another branch of the tree.
 */
function route(api: RestApi, rest: LambdaIntegration, waiting: LambdaIntegration): void {
  const resources = new Set<IResource>([api.root]);
  for (const path of [...FEEDS, ...STREAMS]) {
    let resource: IResource = api.root;
    for (const part of path.split('/').slice(1)) {
      resource = resource.getResource(part) ?? resource.addResource(part);
      resources.add(resource);
    }
    resource.addMethod('GET', waiting);
  }
  for (const resource of resources) {
    resource.addMethod('ANY', rest);
    // Beside `{id}` there can't be another variable; what is below it, it passes on itself.
    if (!resource.getResource('{id}')) resource.addResource('{proxy+}').addMethod('ANY', rest);
  }
}

/** Puts a web ACL in front of the API. */
function protect(scope: Construct, api: RestApi, { stage }: Cell): void {
  const visible = (metricName: string) => ({
    cloudWatchMetricsEnabled: true,
    metricName,
    // Samples hold the headers of requests, and with them the key.
    sampledRequestsEnabled: false,
  });
  const managed = (name: string, counted: readonly string[] = []) => ({
    managedRuleGroupStatement: {
      vendorName: 'AWS',
      name,
      ruleActionOverrides: counted.map((rule) => ({ name: rule, actionToUse: { count: {} } })),
    },
  });
  const rules = [
    {
      name: 'rate',
      action: { block: {} },
      statement: {
        rateBasedStatement: {
          aggregateKeyType: 'IP',
          evaluationWindowSec: 60,
          // Half of what the stage lets through at all.
          limit: Math.max(10, stage.api.requestsPerSecond * 30),
        },
      },
    },
    {
      name: 'common',
      overrideAction: { none: {} },
      statement: managed('AWSManagedRulesCommonRuleSet', [
        // Clients are programs, not browsers.
        'NoUserAgent_HEADER',
        // The cursor of the stream of all accounts is up to 8,000 characters long.
        'SizeRestrictions_QUERYSTRING',
        // Bodies may be 10 kB, and name addresses of endpoints, which the app checks better.
        'SizeRestrictions_BODY',
        'GenericRFI_BODY',
        'EC2MetaDataSSRF_BODY',
      ]),
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
    // Not `all`: WAF keeps that name for itself.
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

function acknowledge(api: RestApi, { stage }: Cell): void {
  const rules = Validations.of(api);
  rules.acknowledge({
    id: 'AwsSolutions-APIG2',
    reason:
      'The app parses every request by schema, and answers with what is wrong; a second check here would differ.',
  });
  if (!stage.api.waf) {
    rules.acknowledge({
      id: 'AwsSolutions-APIG3',
      reason:
        'A web ACL is a setting of the stage; where it is off there are throttling and a key for every path.',
    });
  }
  rules.acknowledge({
    id: 'AwsSolutions-APIG4',
    reason:
      'The app checks the bearer key of every request but the health check, the same way as where it is self-hosted.',
  });
  rules.acknowledge({
    id: 'AwsSolutions-COG4',
    reason: 'Clients are machines with a key; there is no pool of users.',
  });
  rules.acknowledge({
    id: 'AwsSolutions-APIG6',
    reason:
      'Execution logs go to a group without retention and repeat what the access log and the function’s log tell.',
  });
  rules.acknowledge({
    id: 'AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AmazonAPIGatewayPushToCloudWatchLogs]',
    reason: 'The policy that API Gateway asks for on the role it writes logs by.',
  });
}
