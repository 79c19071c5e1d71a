/** All routes of the HTTP API, for documents, infrastructure and tests. A server loads them in groups. */
import { type Route, tags } from '../route.ts';
import { groups } from './groups.ts';

const [service = [], ...others] = await Promise.all(groups.map((group) => group.load()));

/** Health checks and documents, followed by the other routes by tag. */
export const routes: readonly Route[] = [
  ...service,
  ...Object.keys(tags).flatMap((tag) => others.flat().filter(({ spec }) => spec.tag === tag)),
];
