/** The search route. */
import * as z from 'zod';
import { regionRule } from '../../accounts/managed-accounts.ts';
import { SEARCH_KINDS, SearchResult, type SearchScope, search } from '../../search/search.ts';
import { foldSearchText, isSearchable, MIN_SEARCH_LENGTH } from '../../storage/search-index.ts';
import { canAccessEndpoint } from '../access.ts';
import { roleAllows } from '../key-input.ts';
import { commaSeparated, integer, one } from '../parameters.ts';
import { problem } from '../problems.ts';
import { type Route, route } from '../route.ts';

const MAX_RESULTS = 20;
const DEFAULT_RESULTS = 5;
const MAX_LENGTH = 200;
const LENGTH_RULE = `must be ${MIN_SEARCH_LENGTH} to ${MAX_LENGTH} characters long`;

const SearchQuery = z.strictObject({
  q: z
    .string(LENGTH_RULE)
    .min(MIN_SEARCH_LENGTH, LENGTH_RULE)
    .max(MAX_LENGTH, LENGTH_RULE)
    .refine((text) => isSearchable(foldSearchText(text)), LENGTH_RULE)
    .describe(`Beginning of the value. Case and surrounding spaces are ignored.`),
  kinds: commaSeparated(SEARCH_KINDS, `must be comma-separated kinds: ${SEARCH_KINDS.join(', ')}`)
    .optional()
    .describe(`Comma-separated kinds of results: ${SEARCH_KINDS.join(', ')}. Default: all.`),
  region: one.optional().describe('Only results of this region. Default: all regions.'),
  limit: integer(1, MAX_RESULTS)
    .default(DEFAULT_RESULTS)
    .describe(`Maximum number of results of each kind and region. Default: ${DEFAULT_RESULTS}.`),
});

/** All search routes. */
export const searchRoutes: readonly Route[] = [
  route(
    {
      method: 'get',
      path: '/v1/search',
      id: 'search',
      tag: 'Search',
      summary: 'Search',
      description:
        'Finds accounts and endpoints by id, jobs by job number, order number or tracking number, order groups by name, and recipients by any of the first five words of their name. The text is compared with the beginning of each value. With the role `operate` or `admin`, also finds recipients by their complete e-mail address or mobile number (international format). With a restricted API key, a search for a short text may have no results although matches exist.',
      role: 'read',
      query: SearchQuery,
      answer: {
        description: 'Results, by region, kind and value.',
        schema: z
          .object({
            results: z.array(SearchResult),
            more: z
              .boolean()
              .describe('Whether there can be more results. Search for a longer text to find them.'),
          })
          .meta({ id: 'SearchResults' }),
      },
    },
    async (
      { c, caller, query: { q, kinds = SEARCH_KINDS, region, limit } },
      { feed: { table, regions } },
    ) => {
      if (region !== undefined && !regions.includes(region)) {
        const detail = `region ${regionRule(regions)}.`;
        return problem(c, 'invalid-parameter', { field: 'region', detail });
      }
      const scope: SearchScope = {
        accounts: caller.accounts,
        addresses: roleAllows(caller.role, 'operate'),
        isVisible: (endpoint) => canAccessEndpoint(caller, endpoint),
      };
      const served = regions.filter((each) => region === undefined || each === region);
      const found = await Promise.all(
        served.map((each) => search(table, each, { text: q, kinds, limit }, scope)),
      );
      return {
        body: { results: found.flatMap(({ results }) => results), more: found.some(({ more }) => more) },
      };
    },
  ),
];
