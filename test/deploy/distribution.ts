/**
 * The CloudFront distribution of the template on a loopback server, because no emulator supports a bucket and an API as
 * origins. It follows the template: order of behaviours, code of functions at the edge, forwarded and added headers, caching.
 * It treats every request as one over TLS.
 */
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import { GetObjectCommand, NoSuchKey, S3Client } from '@aws-sdk/client-s3';
import { type Behaviour, type DistributionConfig, getBehaviour, runAtEdge } from '../support/edge.ts';
import type { Deployment } from './deployment.ts';
import type { StackTemplate, Value } from './template.ts';

/** Managed policies of CloudFront. */
const CACHING_DISABLED = '4135ea2d-6df8-44a3-9df3-4b5a84be39ad';
const CACHING_OPTIMIZED = '658327ea-f89d-4fab-a63d-7e88639e58f6';
/** Time for which the latter caches responses that forbid caching. */
const LEAST_MS = 1_000;
/** Default caching time of error responses, and their statuses. */
const ERROR_MS = 10_000;
const KEPT_ERRORS = [400, 403, 404, 405, 414, 500, 501, 502, 503, 504];
/** Source addresses of CloudFront's requests to the origin. */
const EDGE = '130.176.0.1';

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer | IncomingMessage;
}

interface Properties {
  // biome-ignore lint/suspicious/noExplicitAny: tests read any part of a template
  readonly [name: string]: any;
}

/** Creates the server. `getId`: returns the result of `Ref` in this deployment for a logical id. */
export function createDistribution(
  template: StackTemplate,
  cell: Pick<Deployment, 'apiUrl' | 'aws'>,
  getId: (logicalId: string) => string,
): Server {
  const [found] = template.ofType('AWS::CloudFront::Distribution');
  const config = found?.properties.DistributionConfig as unknown as DistributionConfig;
  const bucket = getId(template.ofType('AWS::S3::Bucket')[0]?.id ?? '');
  const s3 = new S3Client({ ...cell.aws, forcePathStyle: true });
  const kept = new Map<string, { readonly answer: Answer; readonly until: number }>();
  const getProperties = (reference: unknown): Properties => {
    const { Ref, 'Fn::GetAtt': attribute } = reference as { Ref?: string; 'Fn::GetAtt'?: [string] };
    return template.get(Ref ?? attribute?.[0] ?? '').properties;
  };

  async function serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(incoming.url ?? '/', 'http://localhost');
    const behaviour = getBehaviour(config, url.pathname);
    const asked = atTheEdge(incoming, behaviour, url.pathname);
    if ('statusCode' in asked) {
      const headers = Object.entries(asked.headers).map(([name, { value }]) => [name, value]);
      return send(response, {
        status: asked.statusCode,
        headers: Object.fromEntries(headers),
        body: Buffer.from(asked.body),
      });
    }
    if (!behaviour.AllowedMethods.includes(asked.method)) {
      return send(response, { status: 403, headers: {}, body: Buffer.from('') });
    }
    // Neither policy depends on the query or on headers.
    const key = `${asked.method} ${asked.uri}`;
    const before = kept.get(key);
    if (before && before.until > Date.now()) return send(response, before.answer);
    const origin = config.Origins.find(({ Id }) => Id === behaviour.TargetOriginId);
    const answer = origin?.S3OriginConfig
      ? await readFile(asked.uri)
      : await ask(incoming, behaviour, { path: asked.uri + url.search, headers: asked.headers });
    const answered = { ...answer, headers: { ...answer.headers, ...addedBy(behaviour) } };
    const forMs = keptMs(behaviour, answered);
    if (forMs > 0 && Buffer.isBuffer(answered.body)) {
      kept.set(key, { answer: answered, until: Date.now() + forMs });
    }
    send(response, answered);
  }

  function atTheEdge(incoming: IncomingMessage, behaviour: Behaviour, uri: string) {
    const headers = Object.entries(incoming.headers).map(([name, value]) => [name, { value: String(value) }]);
    const asked = { method: incoming.method ?? 'GET', uri, headers: Object.fromEntries(headers) };
    const [association] = behaviour.FunctionAssociations;
    const { FunctionCode } = getProperties(association?.FunctionARN);
    return runAtEdge(FunctionCode, { request: asked, ip: incoming.socket.remoteAddress ?? '' });
  }

  /** Returns the caching time of a response. Partial responses are not cached here. */
  function keptMs({ CachePolicyId }: Behaviour, { status, headers }: Answer): number {
    const ofError = config.CustomErrorResponses?.find(({ ErrorCode }) => ErrorCode === status);
    if (KEPT_ERRORS.includes(status)) return ofError ? ofError.ErrorCachingMinTTL * 1000 : ERROR_MS;
    if (CachePolicyId === CACHING_DISABLED || status !== 200) return 0;
    if (CachePolicyId !== CACHING_OPTIMIZED) throw new Error('A policy of caching is not known here.');
    const [, seconds = '0'] = /max-age=(\d+)/.exec(String(headers['cache-control'])) ?? [];
    return Math.max(LEAST_MS, Number(seconds) * 1000);
  }

  async function readFile(path: string): Promise<Answer> {
    try {
      const object = await s3.send(new GetObjectCommand({ Bucket: bucket, Key: path.slice(1) }));
      return {
        status: 200,
        headers: { 'content-type': object.ContentType, 'cache-control': object.CacheControl },
        body: Buffer.from((await object.Body?.transformToByteArray()) ?? []),
      };
    } catch (cause) {
      if (!(cause instanceof NoSuchKey)) throw cause;
      return { status: 404, headers: { 'content-type': 'application/xml' }, body: Buffer.from('<Error/>') };
    }
  }

  /** Forwards a request to the API, and its response. Streams are forwarded piece by piece. */
  async function ask(
    incoming: IncomingMessage,
    behaviour: Behaviour,
    asked: { readonly path: string; readonly headers: Readonly<Record<string, { readonly value: string }>> },
  ): Promise<Answer> {
    const { HeadersConfig, QueryStringsConfig } = getProperties(
      behaviour.OriginRequestPolicyId,
    ).OriginRequestPolicyConfig;
    if (HeadersConfig.HeaderBehavior !== 'allExcept' || QueryStringsConfig.QueryStringBehavior !== 'all') {
      throw new Error('A policy of requests to the origin is not known here.');
    }
    const but: readonly string[] = [...HeadersConfig.Headers, 'cookie', 'connection'];
    const origin = config.Origins.find(({ Id }) => Id === behaviour.TargetOriginId);
    const own = (origin?.OriginCustomHeaders ?? []).map(({ HeaderName, HeaderValue }) => {
      const { Ref } = HeaderValue as { Ref?: string };
      return [HeaderName, Ref === undefined ? String(template.resolve(HeaderValue as Value)) : getId(Ref)];
    });
    const base = new URL(cell.apiUrl);
    const headers = {
      ...Object.fromEntries(
        Object.entries(asked.headers)
          .filter(([name]) => !but.includes(name))
          .map(([name, { value }]) => [name, value]),
      ),
      'x-forwarded-for': [incoming.headers['x-forwarded-for'], incoming.socket.remoteAddress, EDGE]
        .filter(Boolean)
        .join(', '),
      ...Object.fromEntries(own),
    };
    return new Promise((done, fail) => {
      const onward = request(
        {
          ...{ host: base.hostname, port: base.port, method: incoming.method ?? 'GET', headers },
          path: `${base.pathname.replace(/\/$/, '')}${asked.path}`,
        },
        (answer) => {
          const status = answer.statusCode ?? 502;
          done({ status, headers: answer.headers, body: answer });
        },
      );
      onward.once('error', fail);
      incoming.once('close', () => incoming.destroyed && !incoming.complete && onward.destroy());
      incoming.pipe(onward);
    });
  }

  function addedBy({ ResponseHeadersPolicyId }: Behaviour): Record<string, string> {
    if (ResponseHeadersPolicyId === undefined) return {};
    const policy = getProperties(ResponseHeadersPolicyId).ResponseHeadersPolicyConfig;
    const { ContentSecurityPolicy, ContentTypeOptions, ReferrerPolicy, StrictTransportSecurity } =
      policy.SecurityHeadersConfig;
    const items = policy.CustomHeadersConfig.Items as { Header: string; Value: string }[];
    return {
      ...Object.fromEntries(items.map(({ Header, Value: value }) => [Header, value])),
      'content-security-policy': ContentSecurityPolicy.ContentSecurityPolicy,
      ...(ContentTypeOptions && { 'x-content-type-options': 'nosniff' }),
      'referrer-policy': ReferrerPolicy.ReferrerPolicy,
      'strict-transport-security': `max-age=${StrictTransportSecurity.AccessControlMaxAgeSec}`,
    };
  }

  const server = createServer((incoming, response) => {
    serve(incoming, response).catch((cause) => {
      console.error('The distribution:', cause);
      incoming.socket.destroy();
    });
  });
  server.once('close', () => s3.destroy());
  return server;
}

function send(response: ServerResponse, { status, headers, body }: Answer): void {
  response.statusCode = status;
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined && !/^(connection|keep-alive|transfer-encoding)$/.test(name)) {
      response.setHeader(name, value);
    }
  }
  if (Buffer.isBuffer(body)) {
    response.end(body);
    return;
  }
  response.flushHeaders();
  body.pipe(response);
  body.once('error', () => response.destroy());
  response.once('close', () => body.destroy());
}
