/** Requests to AWS services for which no SDK client is installed, signed with the credentials that the SDK finds. */
import { SNSClient } from '@aws-sdk/client-sns';
import { SignatureV4 } from '@smithy/signature-v4';
import { Sha256 } from '../shared/sha256.ts';

/** AWS rejected a request. `name` is the error code, such as `AccessDeniedException`. */
export class AwsError extends Error {
  constructor(code: string, message: string) {
    super(message);
    this.name = code;
  }
}

interface AwsRequest {
  readonly service: string;
  readonly region: string;
  /** Default: `/`. */
  readonly path?: string;
  /** A POST with this JSON. */
  readonly json?: unknown;
  /** Value of `X-Amz-Target`: a service with the JSON protocol. */
  readonly target?: string;
  /** A POST with these fields: a service with the query protocol, which answers in XML. */
  readonly form?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  /** Default: 30 seconds. */
  readonly timeoutMs?: number;
}

/** Sends a request and returns the body of the response. Throws {@link AwsError}, and the errors of the SDK's credentials and of fetch. */
export async function requestAws(request: AwsRequest): Promise<string> {
  const { service, region, path = '/', json, target, form, signal, timeoutMs = 30_000 } = request;
  const client = new SNSClient({ region });
  const credentials = await client.config.credentials().finally(() => client.destroy());
  const url = new URL(path, process.env.AWS_ENDPOINT_URL ?? `https://${service}.${region}.amazonaws.com`);
  const body = form
    ? new URLSearchParams(form).toString()
    : json === undefined
      ? undefined
      : JSON.stringify(json);
  const signer = new SignatureV4({ credentials, region, service, sha256: Sha256 });
  const signed = await signer.sign({
    ...{ method: body === undefined ? 'GET' : 'POST', protocol: url.protocol, hostname: url.hostname },
    ...{
      path: url.pathname,
      query: Object.fromEntries(url.searchParams),
      ...(body !== undefined && { body }),
    },
    headers: {
      host: url.host,
      ...(form && { 'content-type': 'application/x-www-form-urlencoded' }),
      ...(json !== undefined && { 'content-type': 'application/x-amz-json-1.1' }),
      ...(target !== undefined && { 'x-amz-target': target }),
    },
  });
  const timeout = AbortSignal.timeout(timeoutMs);
  const response = await fetch(url, {
    ...{ method: signed.method, headers: signed.headers, ...(body !== undefined && { body }) },
    signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
  });
  const text = await response.text();
  if (!response.ok) throw toAwsError(response, text);
  return text;
}

function toAwsError(response: Response, text: string): AwsError {
  const find = (...patterns: RegExp[]) => patterns.map((pattern) => pattern.exec(text)?.[1]).find(Boolean);
  const code =
    response.headers.get('x-amzn-errortype') ??
    find(/"(?:__type|code)"\s*:\s*"([^"]+)"/i, /<Code>([^<]+)</) ??
    `status ${response.status}`;
  const message = find(/"message"\s*:\s*"([^"]*)"/i, /<Message>([^<]*)</) ?? '';
  return new AwsError(code.split(':')[0]?.split('#').at(-1) ?? code, message);
}

/** Returns the id of the AWS account of the credentials. */
export async function readAccountId(region: string): Promise<string> {
  const form = { Action: 'GetCallerIdentity', Version: '2011-06-15' };
  const text = await requestAws({ service: 'sts', region, form });
  return /<Account>(\d+)</.exec(text)?.[1] ?? '';
}

/** Returns the outputs of a stack. Throws {@link AwsError}: `ValidationError` if there is no such stack. */
export async function readOutputs(region: string, stack: string): Promise<Record<string, string>> {
  const form = { Action: 'DescribeStacks', Version: '2010-05-15', StackName: stack };
  const text = await requestAws({ service: 'cloudformation', region, form });
  return Object.fromEntries(
    [...text.matchAll(/<member>\s*<OutputKey>.*?<\/member>/gs)].map(([member]) => {
      const read = (tag: string) => new RegExp(`<${tag}>(.*?)</${tag}>`, 's').exec(member)?.[1] ?? '';
      return [read('OutputKey'), read('OutputValue').replaceAll('&amp;', '&')];
    }),
  );
}
