/** CloudFront as far as the template of a cell makes use of it: which behaviour is for a path, and functions at the edge. */
import { createContext, runInContext } from 'node:vm';

/** A behaviour of a distribution, as templates have it. */
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

/** A distribution, as templates have it. */
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

/** What a function at the edge is given of a request, and gives back. */
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

/** The first whose pattern fits, in their order; patterns look at capitals. */
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
  // Nothing of Node is there, and what goes in and out is data.
  const context = createContext({ text: JSON.stringify(event) });
  return JSON.parse(runInContext(`${code}\nJSON.stringify(handler(JSON.parse(text)))`, context));
}
