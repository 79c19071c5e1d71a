/** API requests in shell commands of the guides: `api METHOD path 'body'`, with the path below `/v1`. */
import { routes } from '../../shared/api/routes/all.ts';

type DocumentedRequest = readonly [method: string, path: string, body: string | undefined];

/** Returns the requests of a guide. */
export function findApiRequests(guide: string): DocumentedRequest[] {
  return [...guide.matchAll(/\bapi (GET|POST|PUT|PATCH|DELETE) ([\w/-]+)(?: '([^']+)')?/g)].map(
    ([, method = '', path = '', body]) => [method, path, body],
  );
}

/** Returns why a request is invalid: no route has its path, or the route does not accept its body. */
export function findRequestProblem([method, path, body]: DocumentedRequest): string | undefined {
  const route = routes.find(
    ({ spec }) =>
      spec.method === method.toLowerCase() &&
      new RegExp(`^${spec.path.replace(/\{\w+\}/g, '[^/]+')}$`).test(`/v1/${path}`),
  );
  if (!route) return 'There is no such route.';
  const { body: schema } = route.spec;
  if (!schema) return body === undefined ? undefined : 'The route has no body.';
  return schema.safeParse(JSON.parse(body ?? '{}')).error?.message;
}
