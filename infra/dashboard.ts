/**
 * The dashboard of a cell on AWS: its files in a bucket, and one CloudFront distribution that serves them and
 * the cell's API, so that the page and the API have the same origin. Paths, headers and policies are in
 * shared/dashboard-headers.ts. Reasons: docs/decisions/0034-single-cloudfront-distribution.md.
 */
import { hash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { CustomResource, Duration, RemovalPolicy, Stack } from 'aws-cdk-lib';
import {
  AccessLevel,
  AllowedMethods,
  type BehaviorOptions,
  CachePolicy,
  Distribution,
  Function as EdgeFunction,
  type ErrorResponse,
  FunctionCode,
  FunctionEventType,
  FunctionRuntime,
  type HeadersReferrerPolicy,
  HttpVersion,
  PriceClass,
  ResponseHeadersPolicy,
  S3OriginAccessControl,
  SecurityPolicyProtocol,
  ViewerProtocolPolicy,
} from 'aws-cdk-lib/aws-cloudfront';
import { RestApiOrigin, S3BucketOrigin } from 'aws-cdk-lib/aws-cloudfront-origins';
import { CloudFrontTarget } from 'aws-cdk-lib/aws-route53-targets';
import { BlockPublicAccess, Bucket, BucketEncryption, ObjectOwnership } from 'aws-cdk-lib/aws-s3';
import { Construct } from 'constructs';
import type * as z from 'zod';
import { PublishDashboardEnv } from '../functions/env.ts';
import { type DashboardProperties, isAsset, RESOURCE_TYPE } from '../functions/handlers/publish-dashboard.ts';
import { PASS_HEADER, VIEWER_HEADER } from '../functions/handlers/rest-proxy.ts';
import { routes } from '../shared/api/routes/all.ts';
import {
  ASSET_PATH,
  FILE_HEADERS,
  getContentPolicy,
  MAIL_FRAME,
  NAMED_FILES,
  NEVER_PAGES,
  PAGE_FILE,
  PAGE_PATHS,
  WANTS_PAGE,
} from '../shared/dashboard-headers.ts';
import { acknowledge } from './acknowledge.ts';
import type { Api } from './api.ts';
import { withDashboard } from './bundling.ts';
import type { Cell } from './cell.ts';
import { CellFunction } from './cell-function.ts';
import type { DistributionPass } from './distribution-pass.ts';
import { addRecords, getCertificate } from './domain.ts';

/** CloudFront's maximum wait for an origin's next byte without a raised quota. */
const ORIGIN_TIMEOUT = Duration.seconds(120);
const KEEP_ALIVE = Duration.seconds(60);
/** Timeout of a publication: a few dozen small files. */
const PUBLISH_TIMEOUT = Duration.minutes(2);

interface Props extends Cell {
  /** Folder of the files. */
  readonly files: string;
  readonly pass: DistributionPass;
  readonly api: Api;
}

/** The dashboard; see the top of the file. */
export class Dashboard extends Construct {
  /** URL without a final slash. */
  readonly url: string;
  readonly distributionId: string;
  /** Domain name that CloudFront assigned. */
  readonly distributionDomain: string;

  constructor(scope: Construct, id: string, props: Props) {
    super(scope, id);
    const { cell } = props;
    const bucket = new Bucket(this, 'Bucket', {
      blockPublicAccess: BlockPublicAccess.BLOCK_ALL,
      objectOwnership: ObjectOwnership.BUCKET_OWNER_ENFORCED,
      // The files are public: all viewers may load them before signing in.
      encryption: BucketEncryption.S3_MANAGED,
      enforceSSL: true,
      minimumTLSVersion: 1.2,
      // Rebuilt from the source at each deployment. It is emptied before it is deleted.
      removalPolicy: RemovalPolicy.DESTROY,
    });
    const distribution = this.#createDistribution(bucket, props);
    this.distributionId = distribution.distributionId;
    this.distributionDomain = distribution.distributionDomainName;
    this.url = `https://${cell.dashboardDomain?.name ?? distribution.distributionDomainName}`;
    if (cell.dashboardDomain)
      addRecords(this, cell.dashboardDomain, cell.hostedZone, new CloudFrontTarget(distribution));
    this.#publish(bucket, distribution, props);
    acknowledgeFindings(bucket, distribution, cell.dashboardDomain !== undefined);
  }

  #createDistribution(bucket: Bucket, { name, cell, api, pass }: Props): Distribution {
    const files = {
      // With the list permission, a missing file is 404 and not 403. Viewers cannot list: only known names
      // are requested.
      origin: S3BucketOrigin.withOriginAccessControl(bucket, {
        originAccessLevels: [AccessLevel.READ, AccessLevel.LIST],
        originAccessControl: new S3OriginAccessControl(this, 'Access', {
          originAccessControlName: this.#toGlobalName('files'),
        }),
      }),
      allowedMethods: AllowedMethods.ALLOW_GET_HEAD,
      viewerProtocolPolicy: ViewerProtocolPolicy.REDIRECT_TO_HTTPS,
      // Caches `no-cache` responses for a second, and immutable ones for as long as CloudFront decides.
      cachePolicy: CachePolicy.CACHING_OPTIMIZED,
      compress: true,
      functionAssociations: this.#createEdgeFunction('Files', 'maps a path to a file', filesFunction()),
    } satisfies BehaviorOptions;
    const requests = {
      origin: new RestApiOrigin(api.rest, {
        readTimeout: ORIGIN_TIMEOUT,
        keepaliveTimeout: KEEP_ALIVE,
        customHeaders: { [PASS_HEADER]: pass.id },
      }),
      allowedMethods: AllowedMethods.ALLOW_ALL,
      // HTTP is rejected: a redirect would let a client send its API key in the clear a second time.
      viewerProtocolPolicy: ViewerProtocolPolicy.HTTPS_ONLY,
      cachePolicy: CachePolicy.CACHING_DISABLED,
      originRequestPolicy: pass.policy,
      // Compression at the edge delays a stream until enough data is buffered.
      compress: false,
      functionAssociations: this.#createEdgeFunction('Viewer', 'adds the viewer address', viewerFunction()),
    } satisfies BehaviorOptions;

    return new Distribution(this, 'Distribution', {
      comment: `Jobwire, ${name}: the dashboard and the API`,
      defaultBehavior: { ...files, responseHeadersPolicy: this.#createHeadersPolicy(PAGE_FILE, 'Page') },
      additionalBehaviors: {
        ...Object.fromEntries(API_PATTERNS.map((pattern) => [pattern, requests])),
        [`/${MAIL_FRAME}`]: {
          ...files,
          responseHeadersPolicy: this.#createHeadersPolicy(MAIL_FRAME, 'MailFrame'),
        },
      },
      errorResponses: UNCACHED_ERRORS,
      httpVersion: HttpVersion.HTTP2_AND_3,
      // Outside America and Europe, only the largest price class has nearby edges.
      priceClass: /^(us|ca|eu)-/.test(cell.awsRegion)
        ? PriceClass.PRICE_CLASS_100
        : PriceClass.PRICE_CLASS_ALL,
      defaultRootObject: PAGE_FILE,
      ...(cell.dashboardDomain && {
        minimumProtocolVersion: SecurityPolicyProtocol.TLS_V1_2_2021,
        domainNames: [cell.dashboardDomain.name],
        certificate: getCertificate(this, cell.dashboardDomain, cell.hostedZone),
      }),
    });
  }

  /** CloudFront has one namespace for all AWS regions, and the same cell can be recovered in another one. */
  #toGlobalName(name: string): string {
    const { stackName, region } = Stack.of(this);
    return `${stackName}-${region}-${name}`;
  }

  #createEdgeFunction(id: string, comment: string, code: string) {
    const fn = new EdgeFunction(this, id, {
      comment: `Jobwire: ${comment}`,
      runtime: FunctionRuntime.JS_2_0,
      code: FunctionCode.fromInline(code),
    });
    return [{ function: fn, eventType: FunctionEventType.VIEWER_REQUEST }];
  }

  #createHeadersPolicy(file: string, id: string): ResponseHeadersPolicy {
    const {
      'strict-transport-security': transport,
      'referrer-policy': referrer,
      'x-content-type-options': _,
      ...others
    } = FILE_HEADERS;
    return new ResponseHeadersPolicy(this, id, {
      responseHeadersPolicyName: this.#toGlobalName(id),
      comment: `Jobwire: response headers of ${file}`,
      // CloudFront accepts these headers only as settings.
      securityHeadersBehavior: {
        contentSecurityPolicy: { contentSecurityPolicy: getContentPolicy(file), override: true },
        contentTypeOptions: { override: true },
        referrerPolicy: { referrerPolicy: referrer as HeadersReferrerPolicy, override: true },
        strictTransportSecurity: {
          accessControlMaxAge: Duration.seconds(Number(/^max-age=(\d+)$/.exec(transport)?.[1])),
          override: true,
        },
      },
      customHeadersBehavior: {
        customHeaders: Object.entries(others).map(([header, value]) => ({ header, value, override: true })),
      },
    });
  }

  /** Publishes the files to the bucket whenever they or the other published content change. */
  #publish(bucket: Bucket, distribution: Distribution, props: Props): void {
    const fn = new CellFunction(this, 'Publish', {
      ...props,
      entry: 'publish-dashboard',
      env: PublishDashboardEnv,
      description: 'Publishes the files of the dashboard; CloudFormation invokes it',
      timeout: PUBLISH_TIMEOUT,
      memoryMb: 256,
      bundling: withDashboard(props.files),
    });
    fn.set('JOBWIRE_DASHBOARD_BUCKET', bucket.bucketName);
    fn.permit(['s3:PutObject', 's3:DeleteObject'], [bucket.arnForObjects('*')]);
    fn.permit(['s3:ListBucket'], [bucket.bucketArn]);
    const stack = Stack.of(this);
    acknowledge(fn.role ?? fn, {
      [`AwsSolutions-IAM5[Resource::<${stack.getLogicalId(bucket.node.defaultChild as never)}.Arn>/*]`]:
        'Files are named by what is in them, and the bucket holds nothing else.',
    });
    const files = new CustomResource(this, 'Published', {
      resourceType: RESOURCE_TYPE,
      serviceToken: fn.functionArn,
      serviceTimeout: PUBLISH_TIMEOUT.plus(Duration.minutes(3)),
      properties: toProperties(props),
    });
    // The page comes last, after everything that it requests.
    files.node.addDependency(fn, distribution, ...Object.values(props.api.functions));
  }
}

/** Path patterns of the API: each route is below one of these. */
const API_PATTERNS = [
  ...new Set(
    routes.map(({ spec }) => {
      const [, head = '', ...below] = spec.path.split('/');
      if (head === 'v1') return '/v1/*';
      return below.length > 0 || routes.some((other) => other.spec.path.startsWith(`/${head}/`))
        ? `/${head}*`
        : `/${head}`;
    }),
  ),
];

/**
 * CloudFront caches errors for ten seconds, regardless of their headers, and by path alone: an error for one
 * key would be returned to the next key as well.
 */
const UNCACHED_ERRORS: ErrorResponse[] = [400, 403, 404, 405, 414, 500, 501, 502, 503, 504].map(
  (httpStatus) => ({
    httpStatus,
    ttl: Duration.seconds(0),
  }),
);

/** Returns the properties that CloudFormation passes to the function; a change of them triggers it. */
function toProperties({ files, id, stage }: Props): z.infer<typeof DashboardProperties> {
  const names = readdirSync(files, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(files, join(entry.parentPath, entry.name)).replaceAll('\\', '/'))
    .sort();
  const parts = names.map((name) => `${name} ${hash('sha256', readFileSync(join(files, name)))}`);
  const cells = Object.entries(stage.cells).flatMap(([name, { dashboardDomain }]) =>
    dashboardDomain && name !== id ? [{ name, url: `https://${dashboardDomain.name}` }] : [],
  );
  return {
    Build: hash('sha256', parts.join('\n')),
    Assets: names.filter(isAsset),
    ...(cells.length > 0 ? { Cells: JSON.stringify({ cells }) } : {}),
  };
}

/** Generates `fileOf` and `fileOfNowhere` as CloudFront runs them; tests ensure that they are equivalent. */
function filesFunction(): string {
  return `var PAGES = ${JSON.stringify(PAGE_PATHS)};
var FILES = ${JSON.stringify(NAMED_FILES.map((name) => `/${name}`))};
function isPage(path) {
  return path === '/' || PAGES.some(function (page) { return path === page || path.startsWith(page + '/'); });
}
function isNowhere(path, accept) {
  return ${WANTS_PAGE}.test(accept) && !${NEVER_PAGES}.test(path);
}
function handler(event) {
  var request = event.request;
  var accept = request.headers.accept ? request.headers.accept.value : '';
  if (isPage(request.uri)) request.uri = '/${PAGE_FILE}';
  else if (!FILES.includes(request.uri) && !${ASSET_PATH}.test(request.uri)) {
    if (isNowhere(request.uri, accept)) {
      request.uri = '/${PAGE_FILE}';
      return request;
    }
    return {
      statusCode: 404,
      statusDescription: 'Not Found',
      headers: ${JSON.stringify(toHeaderValues(NOT_FOUND_HEADERS))},
      body: 'There is no such page.',
    };
  }
  return request;
}
`;
}

/** Headers of responses without a file. */
const NOT_FOUND_HEADERS = {
  ...FILE_HEADERS,
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'content-type': 'text/plain; charset=utf-8',
  'cache-control': 'no-store',
};

const toHeaderValues = (headers: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, { value }]));

/** Generates the function that sets the viewer's address, and overwrites the viewer's own value. */
function viewerFunction(): string {
  return `function handler(event) {
  event.request.headers['${VIEWER_HEADER}'] = { value: event.viewer.ip };
  return event.request;
}
`;
}

function acknowledgeFindings(bucket: Bucket, distribution: Distribution, hasDomain: boolean): void {
  acknowledge(bucket, {
    'AwsSolutions-S1':
      'The bucket holds the files of a page that anybody may load, and only the distribution reads it.',
  });
  acknowledge(distribution, {
    'Annotation::@aws-cdk/aws-cloudfront-origins:listBucketSecurityRisk':
      'The function before the bucket lets known names pass and no others, and there is a root object.',
    'AwsSolutions-CFR1': 'Access is controlled by API keys, not by country.',
    'AwsSolutions-CFR2':
      'A web ACL is a setting of the stage and protects the API; everything else is public files.',
    'AwsSolutions-CFR3':
      'Its log would contain viewer addresses; requests to the API are in the access log of the API.',
    ...(!hasDomain && {
      'AwsSolutions-CFR4':
        'With the certificate of CloudFront the least version of TLS can’t be chosen; with a domain it is.',
    }),
  });
}
