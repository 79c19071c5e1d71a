/** From a REST API's proxy event to a web-standard request, and back. */
import type { APIGatewayProxyEvent, APIGatewayProxyResult } from 'aws-lambda';

/** What answers requests: a Hono app's `fetch`. */
export type Fetch = (request: Request) => Response | Promise<Response>;

/**
 * A handler of API Gateway's proxy events over an app. Answers are handed over whole, so the app has to end its streams
 * well before the function's time is up.
 */
export function createRestProxyHandler(fetch: Fetch) {
  return async (event: APIGatewayProxyEvent): Promise<APIGatewayProxyResult> => {
    const response = await fetch(toRequest(event));
    const multiValueHeaders: Record<string, string[]> = {};
    for (const [name, value] of response.headers) {
      // `Set-Cookie` comes once for each cookie; the values of any other header come joined.
      multiValueHeaders[name] = [...(multiValueHeaders[name] ?? []), value];
    }
    return { statusCode: response.status, multiValueHeaders, body: await response.text() };
  };
}

function toRequest(event: APIGatewayProxyEvent): Request {
  const headers = new Headers();
  for (const [name, values] of Object.entries(event.multiValueHeaders ?? {})) {
    for (const value of values ?? []) headers.append(name, value);
  }
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
