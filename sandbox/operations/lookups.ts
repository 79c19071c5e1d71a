// Reference data.

import * as z from 'zod';
import {
  Countries,
  JobStatuses,
  ProcessCodes,
  SizeSets,
  States,
} from '../../shared/ordering/contract/lookups.ts';
import { createOperationFactory, UNEXPECTED } from '../http/operation.ts';
import { json } from '../http/responses.ts';
import { listProcessCodes } from '../world/catalogue.ts';
import { allCountries, listStates } from '../world/countries.ts';
import sizeSets from '../world/data/size-sets.json' with { type: 'json' };
import { REGION_FACTS, type RegionCode } from '../world/regions.ts';

/*
 * Where the contract is silent, the sandbox chose:
 *
 * - For a country without `hasState` and for an unknown code, the list of states is empty. A code that does not consist
 *   of two letters results in 400.
 * - The process lookup is the same for all accounts of a region. It also includes inactive processes, those that the
 *   account cannot order, and those of stocked goods.
 */

/** Size sets of a region; ids differ between regions. An empty label is an unused position. */
function listSizeSets(region: RegionCode) {
  const first = { us: 1, nz: 101, au: 201, uk: 301, eu: 501 }[region];
  return Object.entries(sizeSets).map(([name, labels], index) => ({
    id: first + index,
    name,
    sizes: labels.split(',').filter(Boolean),
  }));
}

const operation = createOperationFactory('Lookups');

export const lookupOperations = [
  operation({
    name: 'countries',
    path: '/Lookups/countries',
    summary: 'Countries, and the address fields that each country requires.',
    answers: { 200: { description: 'All countries.', schema: Countries }, 500: UNEXPECTED },
    handle: ({ account: { region } }) =>
      json({ countries: allCountries(), defaultCountry: REGION_FACTS[region].defaultCountry }),
  }),
  operation({
    name: 'states',
    path: '/Lookups/countries/{countryCode}/states',
    summary: 'The states of a country.',
    params: z.object({
      countryCode: z
        .string()
        .regex(/^[A-Za-z]{2}$/, 'The value is not an ISO 3166-1 alpha-2 code.')
        .toUpperCase()
        .describe('ISO 3166-1 alpha-2.'),
    }),
    answers: {
      200: { description: 'All states. The list is empty for a country without states.', schema: States },
      500: UNEXPECTED,
    },
    handle: ({ params: { countryCode } }) => json({ countryCode, states: listStates(countryCode) }),
  }),
  operation({
    name: 'jobStatuses',
    path: '/Lookups/job-statuses',
    summary: 'The statuses of jobs and lines. New statuses can be added at any time.',
    answers: { 200: { description: 'All statuses.', schema: JobStatuses }, 500: UNEXPECTED },
    handle: ({ account: { world, region }, now }) =>
      json(world.statuses(region, now).map(({ id, name }) => ({ id, name }))),
  }),
  operation({
    name: 'processCodes',
    path: '/Lookups/process-codes',
    summary: 'The processes of the region.',
    needs: 'ordering',
    answers: { 200: { description: 'All processes, by rank.', schema: ProcessCodes }, 500: UNEXPECTED },
    handle: ({ account }) => json(listProcessCodes(account.region)),
  }),
  operation({
    name: 'sizeSets',
    path: '/Lookups/size-sets',
    summary: 'Size sets: lists of sizes that are used together.',
    answers: { 200: { description: 'All size sets.', schema: SizeSets }, 500: UNEXPECTED },
    handle: ({ account }) => json(listSizeSets(account.region)),
  }),
];
