/** Converts a REST API's proxy event to a web-standard request, and the response back. */
import { timingSafeEqual } from 'node:crypto';
import { isIP } from 'node:net';
import { Readable } from 'node:stream';
import type { APIGatewayProxyEvent, APIGatewayProxyResult } from 'aws-lambda';

/** The request handler: a Hono app's `fetch`. */
export type Fetch = (
  request: Request,
  env: {
    /**
     * The client's address as API Gateway saw it; for a request through the cell's own distribution, as the
     * distribution saw it. No other header can override it.
     */
    readonly clientAddress?: string;
  },
) => Response | Promise<Response>;

/** Header that the cell's distribution adds to each request: its pass and the viewer's address. */
export const PASS_HEADER = 'x-jobwire-pass';
export const VIEWER_HEADER = 'x-jobwire-viewer';

interface Options {
  /**
   * The pass that the distribution must present. Absent: the cell has no distribution, and no such header is
   * accepted.
   */
  readonly pass?: string | undefined;
}

/**
 * Creates a handler of API Gateway's proxy events for an app. Responses are returned whole; compressed ones
 * in base64.
 */
export function createRestProxyHandler(fetch: Fetch, options: Options = {}) {
  return async (event: APIGatewayProxyEvent): Promise<APIGatewayProxyResult> => {
    const request = toRequest(event);
    const from = takeAddress(event, request.headers, options);
    const response = await fetch(request, from);
    if (response.headers.has('content-encoding')) {
      const body = Buffer.from(await response.arrayBuffer()).toString('base64');
      return { ...toHead(response), body, isBase64Encoded: true };
    }
    return { ...toHead(response), body: await response.text() };
  };
}

/** Status and headers of a response, and the body as a stream. */
export interface StreamedResult {
  readonly statusCode: number;
  readonly multiValueHeaders: Record<string, string[]>;
  readonly body: Readable | '';
}

/**
 * Creates a handler of API Gateway's proxy events for an app with streamed responses, for middy's streaming
 * mode. Middy sends status and headers ahead, and reads from the body at the speed of the connection. If the
 * connection fails, it destroys the body, which cancels the app's stream. Lambda does not notify a function
 * that its client has disconnected.
 */
export function createStreamingHandler(fetch: Fetch, options: Options = {}) {
  return async (event: APIGatewayProxyEvent): Promise<StreamedResult> => {
    const request = toRequest(event);
    const response = await fetch(request, takeAddress(event, request.headers, options));
    // No read-ahead: a stream is produced no faster than it is consumed.
    const body = response.body ? Readable.fromWeb(response.body, { highWaterMark: 0 }) : '';
    return { ...toHead(response), body };
  };
}

function toHead(response: Response): { statusCode: number; multiValueHeaders: Record<string, string[]> } {
  const multiValueHeaders: Record<string, string[]> = {};
  for (const [name, value] of response.headers) {
    // `Set-Cookie` occurs once for each cookie; the values of any other header are joined.
    multiValueHeaders[name] = [...(multiValueHeaders[name] ?? []), value];
  }
  return { statusCode: response.status, multiValueHeaders };
}

/** Determines the client's address, and removes the headers that carry it. */
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
    // A header contains bytes, one per character; a text with other characters is not possible.
    for (const value of values ?? []) headers.append(name, toBytes(value));
  }
  // The response and the app's log use the id of the access log, unless the client sent its own.
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

const toBytes = (text: string): string => Buffer.from(text).toString('latin1');
