import { Duration, RemovalPolicy, Validations } from 'aws-cdk-lib';
import {
  AccessLogField,
  AccessLogFormat,
  EndpointType,
  LambdaRestApi,
  LogGroupLogDestination,
  type RestApi,
} from 'aws-cdk-lib/aws-apigateway';
import { LogGroup } from 'aws-cdk-lib/aws-logs';
import { Construct } from 'constructs';
import { ApiEnv } from '../functions/env.ts';
import { CellFunction } from './cell-function.ts';
import type { CellSecrets } from './cell-secrets.ts';
import type { Cell } from './cell-stack.ts';
import { setLog } from './delivery.ts';
import type { HistoryTable } from './history-table.ts';
import type { StateTable } from './state-table.ts';

interface Props extends Cell {
  readonly table: StateTable;
  readonly history: HistoryTable;
  readonly secrets: CellSecrets;
}

/** The HTTP API of a cell: one function behind every path. */
export class Api extends Construct {
  readonly url: string;
  readonly rest: RestApi;
  /** Those behind it. */
  readonly functions: { readonly api: CellFunction };

  constructor(scope: Construct, id: string, props: Props) {
    super(scope, id);
    const { stage, table, history, secrets } = props;

    const fn = new CellFunction(this, 'Function', {
      ...props,
      entry: 'api',
      env: ApiEnv,
      description: 'The HTTP API',
      // API Gateway waits 29 s; a long poll takes 25.
      timeout: Duration.seconds(29),
      memoryMb: 512,
      reservedConcurrency: stage.api.reservedConcurrency ?? undefined,
    });
    table.grantReading(fn);
    table.grantOperating(fn);
    history.grantLookingBack(fn);
    secrets.grantReadApiKey(fn);
    setLog(fn, props);

    const accessLog = new LogGroup(this, 'AccessLog', {
      retention: stage.logRetention,
      removalPolicy: RemovalPolicy.DESTROY,
    });
    const api = new LambdaRestApi(this, 'Rest', {
      handler: fn,
      restApiName: `jobwire-${stage.stage}-${props.region}`,
      description: 'Jobwire: pull feed and state of accounts',
      endpointTypes: [EndpointType.REGIONAL],
      integrationOptions: { allowTestInvoke: false },
      // API Gateway writes access logs by a role that is set once per AWS account and region. Cells in the same region set
      // it in turn, to roles that may do the same; so none of them may be taken away with its cell.
      cloudWatchRole: true,
      cloudWatchRoleRemovalPolicy: RemovalPolicy.RETAIN,
      deployOptions: {
        stageName: stage.stage,
        throttlingRateLimit: stage.api.requestsPerSecond,
        throttlingBurstLimit: stage.api.burst,
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
    this.functions = { api: fn };

    const rules = Validations.of(api);
    rules.acknowledge({
      id: 'AwsSolutions-APIG2',
      reason:
        'The app parses every request by schema, and answers with what is wrong; a second check here would differ.',
    });
    rules.acknowledge({
      id: 'AwsSolutions-APIG3',
      reason:
        'A web ACL comes with the public host name; until then there are throttling and a key for every path.',
    });
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
}
