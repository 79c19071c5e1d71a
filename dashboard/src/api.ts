/** Parameters of API requests, and messages of their errors. */
import { ApiError, ifMatch, UnreachableError } from '../../client/index.ts';

/** Returns the message of anything thrown. */
export function toErrorMessage(error: unknown): string {
  if (error instanceof UnreachableError) return 'Jobwire cannot be reached. Check your network connection.';
  return error instanceof Error ? error.message : 'Unexpected error. Reload the page.';
}

/** Returns whether a request can succeed when it is repeated. */
export function isTransient(error: unknown): boolean {
  return error instanceof UnreachableError || (error instanceof ApiError && error.status >= 429);
}

/** Whether an error is a response of the API with a status. */
export const hasStatus = (error: unknown, status: number): boolean =>
  error instanceof ApiError && error.status === status;

/** Returns the time to wait before a retry that the API asks for (ms). `undefined`: none. */
export function getRetryAfterMs(error: unknown): number | undefined {
  const seconds = error instanceof ApiError ? error.retryAfterSeconds : undefined;
  return seconds === undefined ? undefined : seconds * 1000;
}

/** Returns the parameters of a resource. */
export const withId = (id: string) => ({ params: { path: { id } } });

/** Returns the parameters of an endpoint. */
export const withEndpoint = ({ region, id }: { readonly region: string; readonly id: string }) => ({
  params: { path: { id }, query: { region } },
});

/** Adds the revision that the resource must still have. */
export const withRevision = <P extends object>({ params }: { readonly params: P }, revision: number) => ({
  params: { ...params, header: ifMatch(revision) },
});
