import { CfnOutput, Duration, RemovalPolicy, Stack } from 'aws-cdk-lib';
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
  ResponseType,
  RestApi,
  SecurityPolicy,
} from 'aws-cdk-lib/aws-apigateway';
import { LogGroup } from 'aws-cdk-lib/aws-logs';
import { ApiGateway } from 'aws-cdk-lib/aws-route53-targets';
import { Construct } from 'constructs';
import { ApiEnv, LiveEnv, ManageEnv } from '../functions/env.ts';
import { PROBLEM_TYPE, type ProblemKind, problems } from '../shared/api/problems.ts';
import { routes } from '../shared/api/routes/all.ts';
import { SLOT_GRACE_MS } from '../shared/api/waiting-limit.ts';
import { acknowledge } from './acknowledge.ts';
import { withApiFiles, withRenderWorker } from './bundling.ts';
import type { Cell } from './cell.ts';
import { CellFunction } from './cell-function.ts';
import type { CellSecrets } from './cell-secrets.ts';
import { setLog } from './delivery.ts';
import type { DistributionPass } from './distribution-pass.ts';
import { addRecords, getCertificate } from './domain.ts';
import type { HistoryTable } from './history-table.ts';
import { type Notifications, setChannels } from './notifications.ts';
import { setUpstream } from './polling.ts';
import { grantSendToQueues } from './queues.ts';
import type { StateTable } from './state-table.ts';
import { addWebAcl } from './web-acl.ts';

interface Props extends Cell {
  readonly table: StateTable;
  readonly history: HistoryTable;
  readonly secrets: CellSecrets;
  /** The pass by which the functions recognize the cell's distribution, if there is one. */
  readonly notifications: Notifications | undefined;
  readonly pass: DistributionPass | undefined;
}

/**
 * Feeds with long poll, and streams: a GET of these may wait. API Gateway does not route by query, so a feed
 * always goes to the function that waits, even without a wait.
 */
const WAITING = routes.filter(({ surface }) => surface === 'live').map(({ spec }) => spec);
const STREAMS = WAITING.filter(({ answer }) => answer.contentType === 'text/event-stream');

/** The HTTP API of a cell: one function for reads, one for changes, one for requests that wait. */
export class Api extends Construct {
  readonly url: string;
  readonly rest: RestApi;
  /** The functions behind the API. */
  readonly functions: {
    readonly api: CellFunction;
    readonly manage: CellFunction;
    readonly live: CellFunction;
  };

  constructor(scope: Construct, id: string, props: Props) {
    super(scope, id);
    const { name, stage, cell, table, history, secrets } = props;
    const each = (fn: CellFunction) => {
      table.grant(fn, 'checkingKeys');
      setLog(fn, props);
      props.pass?.grantTo(fn);
      const { requestsPerMinutePerKey = Math.max(10, 30 * stage.api.requestsPerSecond) } = stage.api;
      if (requestsPerMinutePerKey !== null) {
        fn.set('JOBWIRE_REQUESTS_PER_MINUTE', String(requestsPerMinutePerKey));
        table.grant(fn, 'countingRequests');
      }
      if (stage.signIn) fn.set('JOBWIRE_SIGN_IN', JSON.stringify(stage.signIn));
      if (stage.api.corsOrigins.length > 0) fn.set('JOBWIRE_CORS_ORIGINS', stage.api.corsOrigins.join(','));
    };

    const reading = new CellFunction(this, 'Function', {
      ...props,
      entry: 'api',
      gradual: true,
      env: ApiEnv,
      description: 'The HTTP API: reads',
      // A few table reads, each with a timeout of 5 s and retries.
      timeout: Duration.seconds(20),
      memoryMb: 512,
      bundling: withApiFiles,
    });
    table.grant(reading, 'reading', 'readingEndpoints', 'readingAttention', 'listingKeys');
    table.grant(reading, 'readingAlerts');
    history.grant(reading, 'readingDeliveries');
    table.grant(reading, 'readingNotifications');
    history.grant(reading, 'readingMessages');
    setChannels(reading, props.cell);
    each(reading);

    const managing = new CellFunction(this, 'Manage', {
      ...props,
      entry: 'manage',
      gradual: true,
      env: ManageEnv,
      description: 'The HTTP API: changes',
      // API Gateway's maximum. A repeated request runs again only after a longer time than this.
      timeout: Duration.seconds(29),
      memoryMb: 512,
      bundling: withRenderWorker,
    });
    table.grant(managing, 'managing', 'managingAccounts', 'movingAccounts', 'replaying', 'managingKeys');
    table.grant(managing, 'doingOnce');
    // A ping is a delivery like any other.
    history.grant(managing, 'recording');
    grantSendToQueues(managing, cell.queues);
    if (cell.queues.length > 0) managing.set('JOBWIRE_QUEUES', cell.queues.map(({ arn }) => arn).join());
    secrets.grantManage(managing, 'endpoints');
    secrets.grantManage(managing, 'accounts');
    table.grant(managing, 'managingAlerts');
    secrets.grantManage(managing, 'alerts');
    if (cell.dashboardDomain) managing.set('JOBWIRE_DASHBOARD_URL', `https://${cell.dashboardDomain.name}/`);
    table.grant(managing, 'managingNotifications', 'attending');
    history.grant(managing, 'readingMessagesOfJobs', 'deletingMessages');
    table.grant(managing, 'sendingNotes');
    history.grant(managing, 'notifying');
    setChannels(managing, props.cell);
    // Test e-mails and test messages of alert rules.
    props.notifications?.grantMail(managing);
    // Managing accounts includes testing credentials.
    setUpstream(managing, props);
    each(managing);

    // A slot is held for no longer than this, so it is never free while an invocation still uses it.
    const liveTimeout = Duration.seconds(stage.api.streamSeconds + SLOT_GRACE_MS / 1000);
    const live = new CellFunction(this, 'Live', {
      ...props,
      entry: 'live',
      gradual: true,
      env: LiveEnv,
      description: 'The HTTP API: streams and feeds',
      timeout: liveTimeout,
      // Charged for all the time that a client waits; see docs/decisions/0016-streaming-function.md.
      memoryMb: 256,
    });
    live.set('JOBWIRE_STREAM_SECONDS', String(stage.api.streamSeconds));
    live.set('JOBWIRE_STREAMS', String(stage.api.streams));
    live.set('JOBWIRE_STREAMS_PER_KEY', String(stage.api.streamsPerKey));
    table.grant(live, 'streaming');
    each(live);

    const accessLog = new LogGroup(this, 'AccessLog', {
      retention: stage.logRetention,
      removalPolicy: RemovalPolicy.DESTROY,
    });
    const api = new RestApi(this, 'Rest', {
      restApiName: `jobwire-${name}`,
      description: 'Jobwire: events and state of accounts',
      endpointTypes: [EndpointType.REGIONAL],
      // Functions return compressed documents in base64. Without this, API Gateway would pass on the base64.
      binaryMediaTypes: ['*/*'],
      // API Gateway writes access logs with a role that is set once per AWS account and region. Cells in the
      // same region set it in turn, to equivalent roles. So no such role may be deleted with its cell.
      cloudWatchRole: true,
      cloudWatchRoleRemovalPolicy: RemovalPolicy.RETAIN,
      deployOptions: {
        stageName: stage.stage,
        // API Gateway applies these limits to each method, not to all together.
        throttlingRateLimit: stage.api.requestsPerSecond,
        throttlingBurstLimit: stage.api.burst,
        methodOptions: Object.fromEntries(
          STREAMS.map(({ path }) => [`${resourcePath(path)}/GET`, getStreamLimits(props)]),
        ),
        accessLogDestination: new LogGroupLogDestination(accessLog),
        // No addresses, and no query: it may contain customers' search terms.
        accessLogFormat: AccessLogFormat.custom(
          JSON.stringify({
            requestId: AccessLogField.contextRequestId(),
            time: AccessLogField.contextRequestTime(),
            method: AccessLogField.contextHttpMethod(),
            // Not the path: it may contain the token of an unsubscribe link. Functions log the route, under
            // the same id.
            resource: AccessLogField.contextResourcePath(),
            status: AccessLogField.contextStatus(),
            responseBytes: AccessLogField.contextResponseLength(),
            latencyMs: AccessLogField.contextResponseLatency(),
          }),
        ),
      },
    });
    const domain = this.#addDomain(api, props);
    this.url = domain ? `https://${domain}/` : api.url;
    this.rest = api;
    this.functions = { api: reading, manage: managing, live };
    // By default, a regional API accepts TLS 1.0.
    const rest = api.node.defaultChild as CfnRestApi;
    rest.securityPolicy = SecurityPolicy.TLS13_1_2_PFS_PQ_2025_09;
    rest.endpointAccessMode = EndpointAccessMode.BASIC;

    // One permission for the whole API; the default is one for each of a hundred methods.
    const buffered = { scopePermissionToMethod: false };
    route(api, {
      reading: new LambdaIntegration(reading.target, buffered),
      managing: new LambdaIntegration(managing.target, buffered),
      waiting: new LambdaIntegration(live.target, {
        scopePermissionToMethod: false,
        responseTransferMode: ResponseTransferMode.STREAM,
        timeout: liveTimeout,
      }),
    });
    addGatewayResponses(api, stage.api.corsOrigins);
    if (stage.api.waf) addWebAcl(this, api, props, props.pass);
    acknowledgeFindings(api, props);
  }

  /** Gives the API its host name, if it has one, and returns it. */
  #addDomain(api: RestApi, { cell: { apiDomain, hostedZone } }: Cell): string | undefined {
    if (!apiDomain) return undefined;
    const domain = api.addDomainName('Domain', {
      domainName: apiDomain.name,
      certificate: getCertificate(this, apiDomain, hostedZone),
      endpointType: EndpointType.REGIONAL,
      securityPolicy: SecurityPolicy.TLS13_1_2_PFS_PQ_2025_09,
      endpointAccessMode: EndpointAccessMode.BASIC,
    });
    addRecords(this, apiDomain, hostedZone, new ApiGateway(api));
    new CfnOutput(Stack.of(this), 'ApiDomainTarget', { value: domain.domainNameAliasDomainName });
    return apiDomain.name;
  }
}

/**
 * Returns the limits for opening streams of one route: a tenth of the rate, because opening one costs far more than a
 * request and happens once in minutes. The burst stays, because all clients reconnect at once after a
 * deployment.
 */
function getStreamLimits({ stage }: Cell): MethodDeploymentOptions {
  return {
    throttlingRateLimit: Math.max(1, Math.floor(stage.api.requestsPerSecond / 10)),
    throttlingBurstLimit: stage.api.burst,
  };
}

/** HTTP methods of requests that change nothing. */
const READS = ['GET', 'HEAD', 'OPTIONS'];

/**
 * Routes a GET that may wait to one function, other reads to another, and everything else to the one that may
 * write. Every resource on the way serves itself and all paths below it, so that nothing depends on API
 * Gateway trying another branch of the tree.
 */
function route(
  api: RestApi,
  to: {
    readonly reading: LambdaIntegration;
    readonly managing: LambdaIntegration;
    readonly waiting: LambdaIntegration;
  },
): void {
  const resources = new Set<IResource>([api.root]);
  const waiting = new Set<IResource>();
  for (const { path } of WAITING) {
    let resource: IResource = api.root;
    for (const part of resourcePath(path).split('/').slice(1)) {
      resource = resource.getResource(part) ?? resource.addResource(part);
      resources.add(resource);
    }
    waiting.add(resource);
  }
  for (const resource of resources) {
    answer(resource, waiting.has(resource) ? to.waiting : to.reading);
    // A second variable beside `{id}` is not possible; `{id}` itself routes the paths below it.
    if (!resource.getResource('{id}')) answer(resource.addResource('{proxy+}'), to.reading);
  }

  function answer(resource: IResource, get: LambdaIntegration): void {
    for (const method of READS) resource.addMethod(method, method === 'GET' ? get : to.reading);
    resource.addMethod('ANY', to.managing);
  }
}

/**
 * Returns the path of a resource. One level allows only one variable; its name is irrelevant. The app
 * parses paths itself.
 */
function resourcePath(path: string): string {
  return path.replace(/\{\w+\}/g, '{id}');
}

const TOO_MANY_REQUESTS = 'The rate limit was exceeded. Retry after `Retry-After` seconds.';
/** API Gateway's own responses that have a specific problem type. All others are server errors. */
const GATEWAY_RESPONSES: readonly (readonly [ResponseType, ProblemKind, detail: string])[] = [
  [ResponseType.THROTTLED, 'too-many-requests', TOO_MANY_REQUESTS],
  [ResponseType.QUOTA_EXCEEDED, 'too-many-requests', TOO_MANY_REQUESTS],
  [ResponseType.REQUEST_TOO_LARGE, 'content-too-large', 'The request exceeds the maximum size.'],
  [ResponseType.RESOURCE_NOT_FOUND, 'not-found', 'There is no such resource.'],
  [ResponseType.MISSING_AUTHENTICATION_TOKEN, 'not-found', 'There is no such resource.'],
  [ResponseType.UNSUPPORTED_MEDIA_TYPE, 'unsupported-media-type', 'Send the body as application/json.'],
  [ResponseType.WAF_FILTERED, 'request-blocked', 'The request was blocked by the web application firewall.'],
  [ResponseType.DEFAULT_4XX, 'request-blocked', 'The request is malformed.'],
  [
    ResponseType.DEFAULT_5XX,
    'internal-server-error',
    'There was no response in time. The operation may have been executed: repeat the request with the same Idempotency-Key.',
  ],
];
const GATEWAY_RETRY_SECONDS = 5;

/** Gives API Gateway's own responses the format of the app's. */
function addGatewayResponses(api: RestApi, corsOrigins: readonly string[]): void {
  for (const [type, kind, detail] of GATEWAY_RESPONSES) {
    const { status, title } = problems[kind];
    const body = { type: `${PROBLEM_TYPE}${kind}`, title, status, detail, requestId: '$context.requestId' };
    const headers = {
      'cache-control': 'no-store',
      // As `'none'` for both; a quotation mark would end the text here.
      'content-security-policy': 'default-src; frame-ancestors',
      'cross-origin-resource-policy': corsOrigins.length > 0 ? 'cross-origin' : 'same-origin',
      'referrer-policy': 'no-referrer',
      'strict-transport-security': 'max-age=15552000; includeSubDomains',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      ...(status === 429 || status >= 500 ? { 'retry-after': String(GATEWAY_RETRY_SECONDS) } : {}),
      // These responses contain no confidential data, and a list of origins is not possible here.
      ...(corsOrigins.length > 0 ? { 'access-control-allow-origin': '*' } : {}),
    };
    api.addGatewayResponse(type.responseType, {
      type,
      statusCode: String(status),
      responseHeaders: {
        ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, `'${value}'`])),
        'x-request-id': 'context.requestId',
      },
      templates: { 'application/problem+json': JSON.stringify(body) },
    });
  }
}

function acknowledgeFindings(api: RestApi, { stage }: Cell): void {
  acknowledge(api, {
    'AwsSolutions-APIG2':
      'The app parses every request by schema, and answers with what is wrong; a second check here would differ.',
    ...(!stage.api.waf && {
      'AwsSolutions-APIG3':
        'A web ACL is a setting of the stage; where it is off there are throttling and a key for every path.',
    }),
    'AwsSolutions-APIG4':
      'The app verifies the API key or ID token of every request except health checks and documents, as when it is self-hosted.',
    'AwsSolutions-COG4':
      'Clients authenticate with API keys. The app verifies ID tokens of users, of any issuer.',
    'AwsSolutions-APIG6':
      'Execution logs go to a group without retention, and repeat the access log and the function’s log.',
    'AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AmazonAPIGatewayPushToCloudWatchLogs]':
      'The managed policy that API Gateway requires for the role that writes its logs.',
  });
}
