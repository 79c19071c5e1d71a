/** `jobwire/client`: the typed client of the HTTP API. Its types (`paths.ts`) are generated: `npm run types`. */
export {
  type Client,
  type ClientOptions,
  createClient,
  ifMatch,
  type ListOptions,
  type ResponseData,
} from './client.ts';
export { ApiError, UnreachableError } from './errors.ts';
export type * from './paths.ts';
export type { FollowOptions, StreamMessage } from './stream.ts';
