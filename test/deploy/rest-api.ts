/** The REST API of the template on a loopback server: its resources and methods, and the functions behind them. */
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Lambda } from './lambda.ts';
import { ACCOUNT, type StackTemplate, type Value } from './template.ts';

/** Timeout of API Gateway for a response, unless the integration has one. */
const PATIENCE_MS = 29_000;

interface Route {
  /** `/v1/{proxy+}` */
  readonly path: string;
  readonly segments: readonly string[];
  readonly method: string;
  readonly fn: Lambda;
  readonly streams: boolean;
  readonly patienceMs: number;
}

interface Matched {
  readonly route: Route;
  readonly parameters: Readonly<Record<string, string>>;
}

/** Creates the server. `getFunction` returns a function by its ARN. */
export function createRestApi(template: StackTemplate, getFunction: (arn: string) => Lambda): Server {
  const [stage] = template.ofType('AWS::ApiGateway::Stage');
  const [api] = template.ofType('AWS::ApiGateway::RestApi');
  if (!stage || !api) throw new Error('The template has no REST API.');
  const stageName = template.ref(stage.id);
  const apiId = template.ref(api.id);
  const routes = readRoutes(template, getFunction);
  const refuse = readOwnAnswers(template);
  const binary = (api.properties.BinaryMediaTypes as readonly string[] | undefined)?.includes('*/*') ?? false;
  const permissions = template.ofType('AWS::Lambda::Permission').map(({ properties }) => ({
    fn: String(template.resolve(properties.FunctionName)),
    principal: properties.Principal,
    source: template.resolve(properties.SourceArn) as string | undefined,
  }));

  /** Returns whether a function permits invocation by API Gateway for a route. */
  function isPermitted({ route }: Matched, method: string): boolean {
    const caller = `arn:aws:execute-api:${template.region}:${ACCOUNT}:${apiId}/${stageName}/${method}${route.path}`;
    return permissions.some(
      ({ fn, principal, source }) =>
        principal === 'apigateway.amazonaws.com' &&
        // A permission of the function does not permit its alias.
        (fn === route.fn.arn || route.fn.arn.endsWith(`:function:${fn}`)) &&
        (source === undefined || fitsArn(caller, source)),
    );
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://localhost');
    const method = request.method ?? 'GET';
    const [, first, ...rest] = url.pathname.split('/');
    const path = `/${rest.join('/')}`;
    const matched = first === stageName ? match(routes, method, rest) : undefined;
    if (!matched) {
      refuse(response, 'MISSING_AUTHENTICATION_TOKEN');
      return;
    }
    if (!isPermitted(matched, method)) {
      console.error(`API Gateway may not invoke ${matched.route.fn.name} for ${method} ${path}.`);
      refuse(response, 'API_CONFIGURATION_ERROR');
      return;
    }
    const event = await toProxyEvent(request, {
      url,
      path,
      stageName,
      apiId,
      matched,
      region: template.region,
      binary,
    });
    const { fn, streams, patienceMs } = matched.route;
    if (streams) return stream(fn, event, response, refuse);
    const late = new Promise<'late'>((done) => setTimeout(done, patienceMs, 'late').unref());
    const result = await Promise.race([fn.invoke(event), late]).catch(() => undefined);
    if (result === 'late') refuse(response, 'INTEGRATION_TIMEOUT');
    else writeBuffered(response, result, refuse, binary);
  }

  return createServer((request, response) => {
    answer(request, response).catch((cause) => {
      console.error('The API:', cause);
      request.socket.destroy();
    });
  });
}

function readRoutes(template: StackTemplate, getFunction: (arn: string) => Lambda): Route[] {
  const resources = new Map(
    template.ofType('AWS::ApiGateway::Resource').map((resource) => [resource.id, resource]),
  );
  const getPath = (id: string): string[] => {
    const resource = resources.get(id);
    if (!resource) return [];
    const { ParentId, PathPart } = resource.properties;
    return [...getPath(String((ParentId as { Ref?: string }).Ref)), String(PathPart)];
  };
  return template.ofType('AWS::ApiGateway::Method').map(({ path, properties }) => {
    const { ResourceId, HttpMethod, Integration, AuthorizationType, ApiKeyRequired } = properties;
    const integration = Integration as { readonly [name: string]: Value };
    if (AuthorizationType !== 'NONE' || ApiKeyRequired === true || integration.Type !== 'AWS_PROXY') {
      throw new Error(`${path} is a method of a kind that is not known here.`);
    }
    const uri = String(template.resolve(integration.Uri));
    const streams = integration.ResponseTransferMode === 'STREAM';
    const [, arn = '', way] =
      /path\/[\d-]+\/functions\/(.+)\/(invocations|response-streaming-invocations)$/.exec(uri) ?? [];
    if ((way === 'response-streaming-invocations') !== streams) {
      throw new Error(`${path}: the way of invoking does not go with its transfer mode.`);
    }
    const resourceId = (ResourceId as { Ref?: string }).Ref;
    const segments = resourceId === undefined ? [] : getPath(resourceId);
    return {
      path: `/${segments.join('/')}`,
      segments,
      method: String(HttpMethod),
      fn: getFunction(arn),
      streams,
      patienceMs: Number(integration.TimeoutInMillis ?? PATIENCE_MS),
    };
  });
}

/** Returns the route of a path: plain names take precedence over parameters, and these over the rest of a path. */
function match(routes: readonly Route[], method: string, rest: readonly string[]): Matched | undefined {
  const asked = rest.at(-1) === '' ? rest.slice(0, -1) : rest;
  const rank = ({ segments }: Route) =>
    segments.map((segment) => (segment.endsWith('+}') ? 'c' : segment.startsWith('{') ? 'b' : 'a')).join('');
  const fitting = routes.flatMap((route) => {
    const parameters = getParameters(route.segments, asked);
    return parameters ? [{ route, parameters }] : [];
  });
  const best = fitting.map(({ route }) => rank(route)).sort()[0];
  const candidates = fitting.filter(({ route }) => rank(route) === best);
  return (
    candidates.find(({ route }) => route.method === method) ??
    candidates.find(({ route }) => route.method === 'ANY')
  );
}

function getParameters(
  segments: readonly string[],
  asked: readonly string[],
): Record<string, string> | undefined {
  const parameters: Record<string, string> = {};
  for (const [at, segment] of segments.entries()) {
    const name = /^\{(.+?)(\+?)\}$/.exec(segment);
    const value = asked[at];
    if (value === undefined) return undefined;
    if (name?.[2] === '+') return { ...parameters, [name[1] ?? '']: asked.slice(at).join('/') };
    if (name) parameters[name[1] ?? ''] = value;
    else if (segment !== value) return undefined;
  }
  return segments.length === asked.length ? parameters : undefined;
}

async function toProxyEvent(
  request: IncomingMessage,
  about: {
    readonly url: URL;
    readonly path: string;
    readonly stageName: string;
    readonly apiId: string;
    readonly region: string;
    readonly matched: Matched;
    /** Whether all media types are binary: then bodies of requests and responses are in base64. */
    readonly binary: boolean;
  },
) {
  const { url, path, stageName, apiId, region, matched, binary } = about;
  const domainName = `${apiId}.execute-api.${region}.amazonaws.com`;
  const multiValueHeaders: Record<string, string[]> = {};
  for (let at = 0; at < request.rawHeaders.length; at += 2) {
    const name = request.rawHeaders[at] ?? '';
    if (/^(host|connection)$/i.test(name)) continue;
    multiValueHeaders[name] = [...(multiValueHeaders[name] ?? []), request.rawHeaders[at + 1] ?? ''];
  }
  multiValueHeaders.Host = [domainName];
  multiValueHeaders['X-Forwarded-For'] = ['11.1.1.1'];
  multiValueHeaders['X-Forwarded-Proto'] = ['https'];
  const multiValueQueryStringParameters: Record<string, string[]> = {};
  for (const [name, value] of url.searchParams) {
    multiValueQueryStringParameters[name] = [...(multiValueQueryStringParameters[name] ?? []), value];
  }
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks);
  const last = (lists: Record<string, string[]>) =>
    Object.fromEntries(Object.entries(lists).map(([name, values]) => [name, values.at(-1)]));
  const none = (lists: object) => Object.keys(lists).length === 0;
  return {
    resource: matched.route.path,
    path,
    httpMethod: request.method,
    headers: last(multiValueHeaders),
    multiValueHeaders,
    queryStringParameters: none(multiValueQueryStringParameters)
      ? null
      : last(multiValueQueryStringParameters),
    multiValueQueryStringParameters: none(multiValueQueryStringParameters)
      ? null
      : multiValueQueryStringParameters,
    pathParameters: none(matched.parameters) ? null : matched.parameters,
    stageVariables: null,
    requestContext: {
      accountId: ACCOUNT,
      apiId,
      domainName,
      domainPrefix: apiId,
      httpMethod: request.method,
      identity: { sourceIp: '11.1.1.1', userAgent: request.headers['user-agent'] ?? null },
      path: `/${stageName}${path}`,
      protocol: 'HTTP/1.1',
      requestId: randomUUID(),
      requestTimeEpoch: Date.now(),
      resourcePath: matched.route.path,
      stage: stageName,
    },
    body: body.length === 0 ? null : body.toString(binary ? 'base64' : 'utf8'),
    isBase64Encoded: binary && body.length > 0,
  };
}

interface ProxyAnswer {
  readonly statusCode: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly multiValueHeaders?: Readonly<Record<string, string[]>>;
  readonly body?: string;
  readonly isBase64Encoded?: boolean;
}

function writeBuffered(response: ServerResponse, result: unknown, refuse: Refuse, binary: boolean): void {
  const answer = result as ProxyAnswer | undefined;
  if (typeof answer?.statusCode !== 'number') {
    refuse(response, 'INTEGRATION_FAILURE');
    return;
  }
  writeHead(response, answer);
  response.end(Buffer.from(answer.body ?? '', answer.isBase64Encoded && binary ? 'base64' : 'utf8'));
}

/**
 * The head of a streamed response is JSON, followed by eight zero bytes. A client that disconnects does not end the invocation.
 */
async function stream(fn: Lambda, event: unknown, response: ServerResponse, refuse: Refuse): Promise<void> {
  let head: Buffer | undefined = Buffer.alloc(0);
  const failure = await fn
    .invoke(event, (part) => {
      if (!head) {
        if (!response.destroyed) response.write(part);
        return;
      }
      head = Buffer.concat([head, part]);
      const end = head.indexOf(Buffer.alloc(8));
      if (end < 0) return;
      writeHead(response, JSON.parse(head.subarray(0, end).toString('utf8')));
      response.flushHeaders();
      const rest = head.subarray(end + 8);
      head = undefined;
      if (rest.length > 0) response.write(rest);
    })
    .then(
      () => undefined,
      (cause: unknown) => cause,
    );
  if (response.destroyed) return;
  if (!response.headersSent) refuse(response, 'INTEGRATION_FAILURE');
  else if (failure) response.destroy();
  else response.end();
}

function writeHead(response: ServerResponse, { statusCode, headers, multiValueHeaders }: ProxyAnswer): void {
  response.statusCode = statusCode;
  for (const [name, value] of Object.entries({ ...headers, ...multiValueHeaders }))
    response.setHeader(name, value);
}

/** Responds instead of a function, by the response type of API Gateway. */
type Refuse = (response: ServerResponse, type: string) => void;

const OF_THE_SERVER = /^(INTEGRATION_|API_CONFIGURATION_ERROR)/;

/** Responses of API Gateway itself according to the template. */
function readOwnAnswers(template: StackTemplate): Refuse {
  const answers = new Map(
    template
      .ofType('AWS::ApiGateway::GatewayResponse')
      .map(({ properties }) => [String(properties.ResponseType), properties]),
  );
  return (response, type) => {
    const found = answers.get(type) ?? answers.get(OF_THE_SERVER.test(type) ? 'DEFAULT_5XX' : 'DEFAULT_4XX');
    const [[contentType, body] = ['', '']] = Object.entries(
      (found?.ResponseTemplates ?? {}) as Record<string, string>,
    );
    const requestId = randomUUID();
    response.statusCode = Number(found?.StatusCode);
    response.setHeader('content-type', contentType);
    for (const [name, value] of Object.entries((found?.ResponseParameters ?? {}) as Record<string, string>)) {
      const text = value === 'context.requestId' ? requestId : value.slice(1, -1);
      response.setHeader(name.replace('gatewayresponse.header.', ''), text);
    }
    response.end(body.replaceAll('$context.requestId', requestId));
  };
}

function fitsArn(arn: string, pattern: string): boolean {
  const source = pattern.replace(/[.+^${}()|[\]\\?]/g, '\\$&').replaceAll('*', '.*');
  return new RegExp(`^${source}$`).test(arn);
}
