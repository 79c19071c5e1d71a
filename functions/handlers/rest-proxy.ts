/** From a REST API's proxy event to a web-standard request, and back. */
import { timingSafeEqual } from 'node:crypto';
import { isIP } from 'node:net';
import { Readable } from 'node:stream';
import type { APIGatewayProxyEvent, APIGatewayProxyResult } from 'aws-lambda';

/** What answers requests: a Hono app's `fetch`. */
export type Fetch = (
  request: Request,
  env: {
    /**
     * As API Gateway saw it; of a request that comes through the cell's own distribution as that saw it. No header of anybody
     * else can say otherwise.
     */
    readonly clientAddress?: string;
  },
) => Response | Promise<Response>;

/** What the cell's distribution adds to each request: that it is the one, and the address of the viewer. */
export const PASS_HEADER = 'x-jobwire-pass';
export const VIEWER_HEADER = 'x-jobwire-viewer';

interface Options {
  /** What the distribution has to show to be believed. Absent: the cell has none, and nobody is. */
  readonly pass?: string | undefined;
}

/** A handler of API Gateway's proxy events over an app. Answers are handed over whole; compressed ones in base64. */
export function createRestProxyHandler(fetch: Fetch, options: Options = {}) {
  return async (event: APIGatewayProxyEvent): Promise<APIGatewayProxyResult> => {
    const request = toRequest(event);
    const from = takeAddress(event, request.headers, options);
    const response = await fetch(request, from);
    if (response.headers.has('content-encoding')) {
      const body = Buffer.from(await response.arrayBuffer()).toString('base64');
      return { ...headOf(response), body, isBase64Encoded: true };
    }
    return { ...headOf(response), body: await response.text() };
  };
}

/** What is answered before the body, and the body as it comes. */
export interface StreamedResult {
  readonly statusCode: number;
  readonly multiValueHeaders: Record<string, string[]>;
  readonly body: Readable | '';
}

/**
 * A handler of API Gateway's proxy events over an app whose answers are handed over as they come, for middy's mode of
 * streamed responses: that sends status and headers ahead, takes from the body what the connection takes, and destroys it,
 * which cancels the app's stream, when the connection fails. Nobody tells a function that its client has gone.
 */
export function createStreamingHandler(fetch: Fetch, options: Options = {}) {
  return async (event: APIGatewayProxyEvent): Promise<StreamedResult> => {
    const request = toRequest(event);
    const response = await fetch(request, takeAddress(event, request.headers, options));
    // Nothing is read ahead: a stream is made no faster than it is taken.
    const body = response.body ? Readable.fromWeb(response.body, { highWaterMark: 0 }) : '';
    return { ...headOf(response), body };
  };
}

function headOf(response: Response): { statusCode: number; multiValueHeaders: Record<string, string[]> } {
  const multiValueHeaders: Record<string, string[]> = {};
  for (const [name, value] of response.headers) {
    // `Set-Cookie` comes once for each cookie; the values of any other header come joined.
    multiValueHeaders[name] = [...(multiValueHeaders[name] ?? []), value];
  }
  return { statusCode: response.status, multiValueHeaders };
}

/** Whose address counts; the headers that say it are for nobody else. */
function takeAddress(
  { requestContext }: APIGatewayProxyEvent,
  headers: Headers,
  { pass }: Options,
): { clientAddress?: string } {
  const [shown, viewer] = [headers.get(PASS_HEADER), headers.get(VIEWER_HEADER)];
  headers.delete(PASS_HEADER);
  headers.delete(VIEWER_HEADER);
  if (pass && shown !== null && isSame(shown, pass) && viewer !== null && isIP(viewer) > 0) {
    return { clientAddress: viewer };
  }
  const clientAddress = requestContext.identity?.sourceIp;
  return clientAddress === undefined ? {} : { clientAddress };
}

function isSame(shown: string, pass: string): boolean {
  const [a, b] = [Buffer.from(shown), Buffer.from(pass)];
  return a.length === b.length && timingSafeEqual(a, b);
}

function toRequest(event: APIGatewayProxyEvent): Request {
  const headers = new Headers();
  for (const [name, values] of Object.entries(event.multiValueHeaders ?? {})) {
    // A header holds bytes, one to a character: a text of others can't be one.
    for (const value of values ?? []) headers.append(name, bytesOf(value));
  }
  // The id in the access log is the one in the answer and in the app's own log, unless the client has one of its own.
  const { requestId } = event.requestContext;
  if (requestId && !headers.has('x-request-id')) headers.set('x-request-id', requestId);
  const url = new URL(`https://${event.requestContext.domainName ?? 'localhost'}`);
  url.pathname = event.path;
  for (const [name, values] of Object.entries(event.multiValueQueryStringParameters ?? {})) {
    for (const value of values ?? []) url.searchParams.append(name, value);
  }
  const bodyless = event.httpMethod === 'GET' || event.httpMethod === 'HEAD' || event.body === null;
  return new Request(url, {
    method: event.httpMethod,
    headers,
    ...(bodyless ? {} : { body: Buffer.from(event.body ?? '', event.isBase64Encoded ? 'base64' : 'utf8') }),
  });
}

const bytesOf = (text: string): string => Buffer.from(text).toString('latin1');
