/**
 * The dashboard of a cell on AWS: the distribution's request handling, the trusted client address, and the publication of
 * files.
 * One file: its tests share one synthesized cell.
 */
import { AwsSolutionsChecks } from 'cdk-nag';
import { describe, expect, test, vi } from 'vitest';
import {
  createPublishDashboardHandler,
  type FileStore,
  KEPT_MS,
} from '../../functions/handlers/publish-dashboard.ts';
import {
  createRestProxyHandler,
  createStreamingHandler,
  PASS_HEADER,
  VIEWER_HEADER,
} from '../../functions/handlers/rest-proxy.ts';
import { createApi, HEARTBEAT_MS, WAIT_MS } from '../../shared/api/app.ts';
import { createKeyring } from '../../shared/api/keys.ts';
import { routes } from '../../shared/api/routes/all.ts';
import { SESSION_COOKIE } from '../../shared/api/routes/sign-in.ts';
import {
  FILE_HEADERS,
  findFallbackFile,
  findFile,
  getCacheControl,
  getContentPolicy,
  getContentType,
  MAIL_FRAME,
  PAGE_FILE,
  PAGE_PATHS,
} from '../../shared/dashboard-headers.ts';
import { createEventLog } from '../../shared/log/log.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import { type Resource, synthesize } from '../support/cells.ts';
import { DASHBOARD } from '../support/dashboard-files.ts';
import { type DistributionConfig, type EdgeRequest, getBehaviour, runAtEdge } from '../support/edge.ts';

type Cell = ReturnType<typeof synthesize>;

const cell = synthesize('prod');
const config = getConfig(cell);
const [files, api] = [getBehaviour(config, '/'), getBehaviour(config, '/v1/accounts')];

function getConfig({ resources }: Cell): DistributionConfig {
  const [[, distribution] = []] = resources('AWS::CloudFront::Distribution');
  return distribution?.Properties.DistributionConfig;
}

/** The text of the function that a behaviour has at the edge. */
function getCode({ FunctionAssociations: [association, ...more] }: typeof files): string {
  expect([association?.EventType, more]).toEqual(['viewer-request', []]);
  const { 'Fn::GetAtt': [id] = [] } = (association?.FunctionARN ?? {}) as { 'Fn::GetAtt'?: string[] };
  const [, fn] = cell.resources('AWS::CloudFront::Function').find(([one]) => one === id) ?? [];
  expect(fn?.Properties).toMatchObject({
    AutoPublish: true,
    FunctionConfig: { Runtime: 'cloudfront-js-2.0' },
  });
  return fn?.Properties.FunctionCode;
}

/** Types that browsers accept for a page. */
const GOES_THERE = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';

describe('paths', () => {
  const code = getCode(files);
  const ask = (uri: string, headers: EdgeRequest['headers'] = {}) =>
    runAtEdge(code, { request: { method: 'GET', uri, headers } });

  test('a path has the file of `fileOf`, and any other path returns 404', () => {
    const heads = [...PAGE_PATHS, '', '/assets', '/ASSETS', '/v1', '/docs', `/${MAIL_FRAME}`, '/cells.json'];
    const tails = [
      ...['', '/', '//', '/us/acme/1', '/..', '/../index.html', '/%2e%2e/x', '/a b', '/\u00e9', '/\n', '\n'],
      ...[
        '/index-Ab3_x-9Z.js',
        '/a/b.js',
        '/.env',
        '/__proto__',
        's',
        '?x',
        '#x',
        ';x',
        '/x?y=/jobs',
        '/x%00',
      ],
    ];
    const odd = [
      '/favicon.svg',
      '/favicon.ico',
      '/index.html',
      '/constructor',
      'jobs',
      '*',
      '/.',
      '/jobsx',
      '',
    ];
    const paths = [...heads.flatMap((head) => tails.map((tail) => head + tail)), ...odd];
    expect(new Set(paths.map(findFile)).size).toBeGreaterThan(5);
    const accepts = [undefined, '*/*', 'image/avif,*/*', 'application/json', GOES_THERE];
    for (const accept of accepts) {
      const headers: EdgeRequest['headers'] = accept === undefined ? {} : { accept: { value: accept } };
      for (const path of paths) {
        const file = findFile(path) ?? findFallbackFile(path, accept ?? '');
        const said = ask(path, headers);
        if (file === undefined) expect(said, path).toMatchObject({ statusCode: 404 });
        else expect(said, path).toEqual({ method: 'GET', uri: `/${file}`, headers });
      }
    }
  });

  test('an unknown path is answered in plain text without the path', () => {
    expect(ask('/elsewhere')).toEqual({
      statusCode: 404,
      statusDescription: 'Not Found',
      body: 'There is no such page.',
      headers: expect.objectContaining({
        ...Object.fromEntries(Object.entries(FILE_HEADERS).map(([name, value]) => [name, { value }])),
        'content-security-policy': { value: expect.stringContaining("default-src 'none'") },
        'cache-control': { value: 'no-store' },
      }),
    });
  });

  test('every route of the API goes there, with all of its parameters, and no path of the page does', () => {
    for (const { spec } of routes) {
      const path = spec.path.replace(/\{\w+\}/g, 'x');
      expect(getBehaviour(config, path).TargetOriginId, path).toBe(api.TargetOriginId);
    }
    for (const path of ['/', ...PAGE_PATHS, '/jobs/us/acme/1', '/assets/a.js', '/favicon.svg', '/cells.json'])
      expect(getBehaviour(config, path), path).toBe(files);
    expect(getBehaviour(config, `/${MAIL_FRAME}`)).toMatchObject({ TargetOriginId: files.TargetOriginId });
    // The default quota.
    expect(config.CacheBehaviors.length).toBeLessThanOrEqual(25);
  });

  test("a function at the edge is within CloudFront's size limit", () => {
    for (const [, { Properties }] of cell.resources('AWS::CloudFront::Function'))
      expect(Properties.FunctionCode.length).toBeLessThan(10_000);
  });
});

describe('the API behind the distribution', () => {
  const origin = config.Origins.find(({ Id }) => Id === api.TargetOriginId);

  test('is requested each time: no caching, no compression, every method, and TLS only', () => {
    for (const behaviour of config.CacheBehaviors.filter(
      (one) => one.TargetOriginId === api.TargetOriginId,
    )) {
      expect(behaviour, behaviour.PathPattern).toMatchObject({
        // CachingDisabled, as CloudFront calls it.
        CachePolicyId: '4135ea2d-6df8-44a3-9df3-4b5a84be39ad',
        Compress: false,
        ViewerProtocolPolicy: 'https-only',
        AllowedMethods: ['GET', 'HEAD', 'OPTIONS', 'PUT', 'PATCH', 'POST', 'DELETE'],
      });
      expect(behaviour).not.toHaveProperty('ResponseHeadersPolicyId');
    }
  });

  test('gets every header but the host, which is its own: key, Idempotency-Key, If-Match, Last-Event-ID; of cookies, the session’s', () => {
    const [[id, policy] = []] = cell.resources('AWS::CloudFront::OriginRequestPolicy');
    expect(api.OriginRequestPolicyId).toEqual({ Ref: id });
    expect(policy?.Properties.OriginRequestPolicyConfig).toMatchObject({
      HeadersConfig: { HeaderBehavior: 'allExcept', Headers: ['host'] },
      QueryStringsConfig: { QueryStringBehavior: 'all' },
      CookiesConfig: { CookieBehavior: 'whitelist', Cookies: [SESSION_COOKIE] },
    });
  });

  test("errors are not cached: one key's rejection does not affect another", () => {
    // CloudFront caches these for ten seconds by default, by path alone.
    expect(config.CustomErrorResponses).toEqual(
      [400, 403, 404, 405, 414, 500, 501, 502, 503, 504].map((ErrorCode) => ({
        ErrorCode,
        ErrorCachingMinTTL: 0,
      })),
    );
  });

  test('has origin time-outs longer than any silence: between heartbeats, in a long poll, at a slow answer', () => {
    const waitsMs = Number(origin?.CustomOriginConfig?.OriginReadTimeout) * 1000;
    // The longest without a quota that was raised.
    expect(waitsMs).toBe(120_000);
    const buffered = cell
      .functions()
      .filter(({ id }) => /^Api(Function|Manage)/.test(id))
      .map(({ fn }) => fn.Properties.Timeout * 1000);
    expect(buffered).toHaveLength(2);
    for (const silentMs of [HEARTBEAT_MS, WAIT_MS, ...buffered])
      expect(waitsMs).toBeGreaterThanOrEqual(4 * silentMs);
    // A stream as a whole has no time limit.
    expect(origin).not.toHaveProperty('ResponseCompletionTimeout');
  });

  test('is that of the cell, at its stage', () => {
    const [[rest] = []] = cell.resources('AWS::ApiGateway::RestApi');
    const [[stage] = []] = cell.resources('AWS::ApiGateway::Stage');
    expect(JSON.stringify(origin?.DomainName)).toContain(`{"Ref":"${rest}"}`);
    expect(JSON.stringify(origin?.OriginPath)).toContain(`{"Ref":"${stage}"}`);
  });
});

describe('client address', () => {
  const PASS = '5f0e9c1a-2f4b-4d6a-9a3e-0c7b6d1e8f22';
  const EDGE = '130.176.0.1';
  const event = (headers: Record<string, string>, sourceIp: string, key = 'jw_x_y') =>
    ({
      ...{ httpMethod: 'GET', path: '/v1/accounts', body: null, isBase64Encoded: false },
      multiValueHeaders: Object.fromEntries(
        Object.entries({ ...headers, Authorization: `Bearer ${key}` }).map(([name, value]) => [
          name,
          [value],
        ]),
      ),
      multiValueQueryStringParameters: null,
      requestContext: { requestId: '', identity: { sourceIp } },
    }) as never;
  const passed = (viewer: string) => ({ 'X-Jobwire-Pass': PASS, 'X-Jobwire-Viewer': viewer });
  const getAddress = async (headers: Record<string, string>, options: { pass?: string } = { pass: PASS }) => {
    const seen: unknown[] = [];
    const fetch = (request: Request, from: object) => {
      seen.push([from, request.headers.has(PASS_HEADER), request.headers.has(VIEWER_HEADER)]);
      return new Response('');
    };
    await createRestProxyHandler(fetch, options)(event(headers, EDGE));
    await createStreamingHandler(fetch, options)(event(headers, EDGE));
    expect(seen[1]).toEqual(seen[0]);
    return seen[0];
  };
  const of = (clientAddress: string) => [{ clientAddress }, false, false];

  test('is the viewer’s if the distribution proves itself, and the connection’s otherwise', async () => {
    expect(await getAddress(passed('198.51.100.7'))).toEqual(of('198.51.100.7'));
    expect(await getAddress(passed('2001:db8::7'))).toEqual(of('2001:db8::7'));
    const others: Record<string, string>[] = [
      {},
      { [VIEWER_HEADER]: '198.51.100.7' },
      { [PASS_HEADER]: '', [VIEWER_HEADER]: '198.51.100.7' },
      { [PASS_HEADER]: `${PASS}0`, [VIEWER_HEADER]: '198.51.100.7' },
      { [PASS_HEADER]: PASS.toUpperCase(), [VIEWER_HEADER]: '198.51.100.7' },
      { [PASS_HEADER]: PASS },
      { [PASS_HEADER]: PASS, [VIEWER_HEADER]: 'somewhere' },
      { [PASS_HEADER]: PASS, [VIEWER_HEADER]: '198.51.100.7, 198.51.100.8' },
      { 'X-Forwarded-For': '198.51.100.7', 'CloudFront-Viewer-Address': '198.51.100.7:1' },
    ];
    for (const headers of others)
      expect(await getAddress(headers), JSON.stringify(headers)).toEqual(of(EDGE));
    // A cell without a distribution trusts no forwarded address.
    expect(await getAddress(passed('198.51.100.7'), {})).toEqual(of(EDGE));
    expect(await getAddress({ [PASS_HEADER]: '', [VIEWER_HEADER]: '198.51.100.7' }, { pass: '' })).toEqual(
      of(EDGE),
    );
  });

  test('so wrong keys block their viewer only, not others behind the same edge; direct callers cannot forge an address', async () => {
    const table = createMemoryTable();
    const now = () => Date.parse('2026-03-02T08:00:00Z');
    const app = createApi({
      ...{ table, now, regions: ['us'], keyring: createKeyring({ table, now }) },
      log: createEventLog(table, { now, newId: () => 'x', schemaBaseUrl: 'https://us.example' }),
    });
    const handler = createRestProxyHandler((request, from) => app.fetch(request, from), { pass: PASS });
    const status = async (headers: Record<string, string>, from: string) =>
      (await handler(event(headers, from))).statusCode;
    const shutOut = async (ask: (at: number) => Promise<number>) => {
      for (let at = 0; at < 50; at += 1) if ((await ask(at)) === 429) return true;
      return false;
    };
    expect(await shutOut(() => status(passed('198.51.100.7'), EDGE))).toBe(true);
    expect(await status(passed('198.51.100.8'), EDGE)).toBe(401);
    expect(await status(passed('198.51.100.7'), '130.176.0.2')).toBe(429);
    // Directly, under ever new names.
    const claimed = (at: number) => ({
      [VIEWER_HEADER]: `203.0.113.${at}`,
      'X-Forwarded-For': `203.0.113.${at}`,
    });
    expect(await shutOut((at) => status(claimed(at), '192.0.2.1'))).toBe(true);
  });

  test("is set by the edge, for any viewer header; only the API's functions know the edge's secret", () => {
    const request: EdgeRequest = {
      ...{ method: 'GET', uri: '/v1/accounts' },
      headers: { [VIEWER_HEADER]: { value: '192.0.2.66' }, authorization: { value: 'Bearer x' } },
    };
    expect(runAtEdge(getCode(api), { request, ip: '198.51.100.7' })).toEqual({
      ...request,
      headers: { ...request.headers, [VIEWER_HEADER]: { value: '198.51.100.7' } },
    });
    // An id that CloudFront generates for the policy: it is in no template.
    const [[policy] = []] = cell.resources('AWS::CloudFront::OriginRequestPolicy');
    const origin = config.Origins.find(({ Id }) => Id === api.TargetOriginId);
    expect(origin?.OriginCustomHeaders).toEqual([{ HeaderName: PASS_HEADER, HeaderValue: { Ref: policy } }]);
    const told = cell
      .functions()
      .map(({ id, fn }) => [id, fn.Properties.Environment.Variables.JOBWIRE_DISTRIBUTION_PASS])
      .filter(([, value]) => value !== undefined);
    expect(told.map(([id]) => id.replace(/[0-9A-F]{8}$/, ''))).toEqual([
      'ApiFunction',
      'ApiManage',
      'ApiLive',
    ]);
    for (const [, value] of told) expect(value).toEqual({ Ref: policy });
    const bucket = config.Origins.find(({ Id }) => Id === files.TargetOriginId);
    expect(bucket).not.toHaveProperty('OriginCustomHeaders');
  });
});

describe('files', () => {
  const policies = new Map(cell.resources('AWS::CloudFront::ResponseHeadersPolicy'));
  /** All headers that a behaviour adds. */
  function getHeaders(path: string): Record<string, string> {
    const { Ref: id } = getBehaviour(config, path).ResponseHeadersPolicyId as { Ref: string };
    const { CustomHeadersConfig, SecurityHeadersConfig } =
      policies.get(id)?.Properties.ResponseHeadersPolicyConfig ?? {};
    const { ContentSecurityPolicy, ContentTypeOptions, ReferrerPolicy, StrictTransportSecurity, ...others } =
      SecurityHeadersConfig;
    expect(others).toEqual({});
    const items = CustomHeadersConfig.Items as { Header: string; Value: string; Override: boolean }[];
    for (const one of [...items, ...Object.values(SecurityHeadersConfig)])
      expect(one).toMatchObject({ Override: true });
    return {
      ...Object.fromEntries(items.map(({ Header, Value }) => [Header, Value])),
      'content-security-policy': ContentSecurityPolicy.ContentSecurityPolicy,
      ...(ContentTypeOptions && { 'x-content-type-options': 'nosniff' }),
      'referrer-policy': ReferrerPolicy.ReferrerPolicy,
      'strict-transport-security': `max-age=${StrictTransportSecurity.AccessControlMaxAgeSec}`,
    };
  }

  test.each([
    ['/', PAGE_FILE],
    ['/jobs/us/acme/1', PAGE_FILE],
    ['/assets/index-Ab3_x-9Z.js', 'assets/index-Ab3_x-9Z.js'],
    [`/${MAIL_FRAME}`, MAIL_FRAME],
  ])('%s has the headers that `npm start` serves it with', (path, file) => {
    expect(getHeaders(path)).toEqual({ ...FILE_HEADERS, 'content-security-policy': getContentPolicy(file) });
  });

  test('are in a bucket that only this distribution can read, with TLS only', () => {
    const [[id, bucket] = []] = cell.resources('AWS::S3::Bucket');
    expect(Object.values(bucket?.Properties.PublicAccessBlockConfiguration)).toEqual([
      true,
      true,
      true,
      true,
    ]);
    expect(bucket?.Properties.BucketEncryption).toBeDefined();
    const [[, policy] = []] = cell.resources('AWS::S3::BucketPolicy');
    expect(policy?.Properties.Bucket).toEqual({ Ref: id });
    const statements = policy?.Properties.PolicyDocument.Statement as Record<string, unknown>[];
    const [distribution = ''] = cell.resources('AWS::CloudFront::Distribution').map(([one]) => one);
    expect(statements.filter(({ Effect }) => Effect === 'Allow')).toEqual([
      expect.objectContaining({
        Principal: { Service: 'cloudfront.amazonaws.com' },
        Action: ['s3:GetObject', 's3:ListBucket'],
      }),
    ]);
    expect(JSON.stringify(statements.at(-1)?.Condition)).toMatch(
      new RegExp(`^\\{"StringEquals":\\{"AWS:SourceArn":.*:distribution/",\\{"Ref":"${distribution}"\\}`),
    );
    expect(JSON.stringify(statements)).toContain('"aws:SecureTransport":"false"');
    const [[, control] = []] = cell.resources('AWS::CloudFront::OriginAccessControl');
    expect(control?.Properties.OriginAccessControlConfig).toMatchObject({ SigningBehavior: 'always' });
    expect(bucket?.DeletionPolicy).toBe('Delete');
    // They can be published again, so they need no protection from deletion.
    expect(files).toMatchObject({ ViewerProtocolPolicy: 'redirect-to-https', Compress: true });
  });

  test('are published when they have changed, after the API that they use', () => {
    const published = ({ resources }: Cell): Resource | undefined => {
      const [[, found] = []] = resources('Custom::JobwireDashboard');
      return found;
    };
    const resource = published(cell) as Resource & { readonly DependsOn: string[] };
    expect(resource.Properties.Build).toMatch(/^[0-9a-f]{64}$/);
    expect(resource.Properties.Assets).toEqual(
      Object.keys(DASHBOARD)
        .filter((name) => name.startsWith('assets/'))
        .sort(),
    );
    expect(published(synthesize('prod'))?.Properties.Build).toBe(resource.Properties.Build);
    for (const before of [
      /^DashboardDistribution/,
      /^ApiFunction/,
      /^ApiManage/,
      /^ApiLive/,
      /^DashboardPublish/,
    ])
      expect(
        resource.DependsOn.filter((id) => before.test(id)),
        String(before),
      ).not.toEqual([]);
  });
});

describe('settings', () => {
  const dashboardDomain = {
    name: 'us.jobwire.example',
    certificateArn: 'arn:aws:acm:us-east-1:111122223333:certificate/0e6e5f0a',
  };

  /** A cell with a domain, far from the edges of the lowest price. */
  const FAR = { cell: { dashboardDomain, awsRegion: 'ap-southeast-2' as const } };

  test('a cell without the dashboard has none of it, and violates no rule', () => {
    const { app, template } = synthesize('prod', { cell: { dashboard: false } });
    expect(JSON.stringify(template.toJSON())).not.toMatch(
      /CloudFront|AWS::S3|Custom::|DISTRIBUTION_PASS|Dashboard(Url|Publish)/,
    );
    expect(new AwsSolutionsChecks().validateScope(app).violations).toEqual([]);
  });

  test('a custom domain: with its certificate, TLS 1.2 at least, and an output with the DNS target', () => {
    const { app, template, resources } = synthesize('prod', FAR);
    const [[id, distribution] = []] = resources('AWS::CloudFront::Distribution');
    expect(distribution?.Properties.DistributionConfig).toMatchObject({
      Aliases: [dashboardDomain.name],
      ViewerCertificate: {
        AcmCertificateArn: dashboardDomain.certificateArn,
        MinimumProtocolVersion: 'TLSv1.2_2021',
        SslSupportMethod: 'sni-only',
      },
    });
    expect(template.findOutputs('*')).toMatchObject({
      DashboardUrl: { Value: 'https://us.jobwire.example' },
      DistributionDomain: { Value: { 'Fn::GetAtt': [id, 'DomainName'] } },
    });
    expect(new AwsSolutionsChecks().validateScope(app).violations).toEqual([]);
  });

  test('HTTP/3, and edges near a cell’s viewers', () => {
    const http = (of: Cell) => getConfig(of) as unknown as { HttpVersion: string; PriceClass: string };
    expect(http(cell)).toMatchObject({ HttpVersion: 'http2and3', PriceClass: 'PriceClass_100' });
    expect(http(synthesize('prod', FAR)).PriceClass).toBe('PriceClass_All');
  });

  test('the page knows other cells with a domain, and no others', () => {
    const getCells = (names: Readonly<Record<string, string>>) => {
      const { us, ...others } = synthesizeWith(names);
      return [us, others];
    };
    expect(getCells({})).toEqual([undefined, {}]);
    expect(getCells({ us: 'us.jobwire.example' })).toEqual([undefined, {}]);
    expect(getCells({ us: 'us.jobwire.example', nz: 'nz.jobwire.example' })).toEqual([
      { cells: [{ name: 'nz', url: 'https://nz.jobwire.example' }] },
      {},
    ]);
  });

  /** The cells that the page of us knows, with domains for some of the cells of the stage. */
  function synthesizeWith(names: Readonly<Record<string, string>>): { us?: unknown } {
    const other = { awsRegion: 'ap-southeast-2' };
    const base = { upstream: { baseUrl: 'https://x.example', authUrl: 'https://x.example', realm: 'x' } };
    const cells = Object.fromEntries(
      ['us', 'nz', 'au'].map((region) => [
        region,
        {
          ...{ ...base, ...other, publicUrl: 'https://x.example', dashboard: true },
          ...(names[region] && { dashboardDomain: { ...dashboardDomain, name: names[region] } }),
        },
      ]),
    );
    const [[, resource] = []] = synthesize('prod', {
      stage: { cells: cells as never },
      cell: names.us ? { dashboardDomain: { ...dashboardDomain, name: names.us } } : {},
    }).resources('Custom::JobwireDashboard');
    const text = resource?.Properties.Cells;
    return text === undefined ? {} : { us: JSON.parse(text) };
  }
});

describe('publication', () => {
  const NOW = Date.parse('2026-03-02T08:00:00Z');
  const HERE = {
    'index.html': 'page',
    'mail-frame.html': 'frame',
    'assets/new-1.js': 'a',
    'assets/same-2.js': 'b',
  };
  const asked = (RequestType: 'Create' | 'Update' | 'Delete', more: object = {}) =>
    ({
      ...{ RequestType, ResponseURL: 'https://answer.example', StackId: 's', RequestId: 'r' },
      ...{ LogicalResourceId: 'l', ResourceProperties: { ServiceToken: 't', Build: 'x', Assets: [] } },
      ...more,
    }) as never;

  /** A store that records its calls in order. */
  function rig(kept: Readonly<Record<string, number>> = {}) {
    const held = new Map(Object.entries(kept).map(([name, ageMs]) => [name, NOW - ageMs]));
    const clock = { now: NOW };
    const told: string[] = [];
    const abouts = new Map<string, unknown>();
    const store: FileStore = {
      async put(name, body, about) {
        told.push(`put ${name}`);
        held.set(name, clock.now);
        abouts.set(name, { ...about, body: Buffer.from(body).toString() });
      },
      async *list() {
        for (const [name, modifiedAt] of held) yield { name, modifiedAt };
      },
      async delete(names) {
        told.push(...names.map((name) => `delete ${name}`));
        for (const name of names) held.delete(name);
      },
    };
    const answer = vi.fn(async () => {});
    const read = async () => new Map(Object.entries(HERE).map(([name, text]) => [name, Buffer.from(text)]));
    const onFault = vi.fn();
    const deps = { read, store, now: () => clock.now, answer, onFault };
    return { deps, handler: createPublishDashboardHandler(deps), held, clock, told, abouts, answer, onFault };
  }

  test('assets are published before the page, each with its type and cache duration', async () => {
    const { handler, told, abouts, answer } = rig();
    await handler(asked('Create'));
    expect(told.slice(0, 2).sort()).toEqual(['put assets/new-1.js', 'put assets/same-2.js']);
    expect(told.slice(2)).toEqual(['put mail-frame.html', 'put index.html']);
    for (const [name, body] of Object.entries(HERE)) {
      expect(abouts.get(name)).toEqual({
        body,
        contentType: getContentType(name),
        cacheControl: getCacheControl(name),
      });
    }
    expect(answer.mock.calls).toEqual([
      [
        'https://answer.example',
        {
          ...{ Status: 'SUCCESS', StackId: 's', RequestId: 'r' },
          ...{ LogicalResourceId: 'l', PhysicalResourceId: 'dashboard' },
        },
      ],
    ]);
  });

  test('an open page finds its assets: they stay for thirty days after their build was replaced, at any age', async () => {
    const year = 365 * 86_400_000;
    const { handler, held, clock } = rig({
      ...{ 'index.html': 1, 'old.html': 1, 'cells.json': 1, 'assets/same-2.js': year },
      ...{ 'assets/former-3.js': year, 'assets/late-4.js': KEPT_MS - 1, 'assets/gone-5.js': KEPT_MS + 1 },
    });
    const OldResourceProperties = { Build: 'y', Assets: ['assets/same-2.js', 'assets/former-3.js'] };
    await handler(asked('Update', { OldResourceProperties }));
    const served = () => [...held.keys()].filter((name) => findFile(`/${name}`) ?? name === PAGE_FILE).sort();
    const current = ['assets/new-1.js', 'assets/same-2.js', 'index.html', 'mail-frame.html'];
    expect(served()).toEqual(['assets/former-3.js', 'assets/late-4.js', ...current]);
    // Builds may follow each other quickly.
    const Assets = Object.keys(HERE).filter((name) => name.startsWith('assets/'));
    const later = async (ms: number) => {
      clock.now = NOW + ms;
      await handler(asked('Update', { OldResourceProperties: { Build: 'z', Assets } }));
      return served();
    };
    for (const ms of [86_400_000, KEPT_MS])
      expect(await later(ms)).toEqual(['assets/former-3.js', ...current]);
    expect(await later(KEPT_MS + 1)).toEqual(current);
    expect([...held.keys()].sort()).toEqual(current);
  });

  test('the list of other cells is published if there is one', async () => {
    const { handler, abouts } = rig();
    const Cells = '{"cells":[]}';
    await handler(asked('Create', { ResourceProperties: { Build: 'x', Assets: [], Cells } }));
    expect(abouts.get('cells.json')).toEqual({
      ...{ body: Cells, contentType: 'application/json', cacheControl: 'no-cache' },
    });
  });

  test('deleting the stack deletes every file, because a bucket must be empty', async () => {
    const { handler, held, told } = rig({ 'index.html': 1, 'assets/a.js': 1 });
    await handler(asked('Delete'));
    expect([...held.keys()]).toEqual([]);
    expect(told).toEqual(['delete index.html', 'delete assets/a.js']);
  });

  test('a fault is reported to CloudFormation, which rolls back; its cause is only in the log', async () => {
    const { deps, answer, onFault } = rig();
    const cause = new Error('secret detail');
    const store = { ...deps.store, put: () => Promise.reject(cause) };
    await createPublishDashboardHandler({ ...deps, store })(asked('Create'));
    expect(answer.mock.calls).toEqual([
      [
        'https://answer.example',
        expect.objectContaining({ Status: 'FAILED', PhysicalResourceId: 'dashboard' }),
      ],
    ]);
    expect(JSON.stringify(answer.mock.calls)).not.toContain('secret detail');
    expect(onFault).toHaveBeenCalledWith(cause);
  });
});
