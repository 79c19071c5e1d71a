/** CloudFront as far as the template of a cell uses it: behaviours by path, and functions at the edge. */
import { createContext, runInContext } from 'node:vm';

/** A behaviour of a distribution in a template. */
export interface Behaviour {
  readonly PathPattern?: string;
  readonly TargetOriginId: string;
  readonly ViewerProtocolPolicy: string;
  readonly AllowedMethods: readonly string[];
  readonly CachePolicyId: unknown;
  readonly OriginRequestPolicyId?: unknown;
  readonly ResponseHeadersPolicyId?: unknown;
  readonly Compress: boolean;
  readonly FunctionAssociations: readonly { readonly EventType: string; readonly FunctionARN: unknown }[];
}

/** A distribution in a template. */
export interface DistributionConfig {
  readonly DefaultCacheBehavior: Behaviour;
  readonly CacheBehaviors: readonly Behaviour[];
  readonly Origins: readonly {
    readonly Id: string;
    readonly DomainName: unknown;
    readonly OriginPath?: unknown;
    readonly OriginCustomHeaders?: readonly { readonly HeaderName: string; readonly HeaderValue: unknown }[];
    readonly CustomOriginConfig?: { readonly OriginReadTimeout?: number };
    readonly S3OriginConfig?: object;
  }[];
  readonly CustomErrorResponses?: readonly {
    readonly ErrorCode: number;
    readonly ErrorCachingMinTTL: number;
  }[];
}

/** Input and output of a function at the edge. */
export interface EdgeRequest {
  readonly method: string;
  readonly uri: string;
  readonly headers: Readonly<Record<string, { readonly value: string }>>;
}
export interface EdgeResponse {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, { readonly value: string }>>;
  readonly body: string;
}

/** Returns the first behaviour whose pattern matches. Patterns are case-sensitive. */
export function getBehaviour(
  { CacheBehaviors, DefaultCacheBehavior }: DistributionConfig,
  path: string,
): Behaviour {
  const fits = ({ PathPattern = '' }: Behaviour) => {
    const source = PathPattern.replace(/[.+^${}()|[\]\\]/g, '\\$&')
      .replaceAll('*', '.*')
      .replaceAll('?', '.');
    return new RegExp(`^${source}$`, 's').test(path);
  };
  return CacheBehaviors.find(fits) ?? DefaultCacheBehavior;
}

/** Runs the text of a function of the event `viewer-request`. */
export function runAtEdge(
  code: string,
  { request, ip = '203.0.113.9' }: { readonly request: EdgeRequest; readonly ip?: string },
): EdgeRequest | EdgeResponse {
  const event = { version: '1.0', context: { eventType: 'viewer-request' }, viewer: { ip }, request };
  const handle = handlers.get(code) ?? load(code);
  handlers.set(code, handle);
  return JSON.parse(handle(JSON.stringify(event)));
}

/** The loaded functions by their texts. CloudFront keeps them for several requests too. */
const handlers = new Map<string, (text: string) => string>();

/** No module of Node is available to the function. Input and output are copied as data. */
function load(code: string): (text: string) => string {
  return runInContext(`${code}\n(text) => JSON.stringify(handler(JSON.parse(text)))`, createContext());
}
