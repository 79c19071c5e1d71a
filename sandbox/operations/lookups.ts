// Reference data: what clients read instead of knowing it.

import * as z from 'zod';
import {
  Countries,
  JobStatuses,
  ProcessCodes,
  SizeSets,
  States,
} from '../../shared/ordering/contract/lookups.ts';
import { operation, UNEXPECTED } from '../http/operation.ts';
import { json } from '../http/responses.ts';
import { processCodesOf } from '../world/catalogue.ts';
import { allCountries, statesOf } from '../world/countries.ts';
import type { RegionCode } from '../world/regions.ts';

/*
 * Where the contract is silent, the sandbox chose:
 *
 * - Countries are those of ISO 3166-1, by name. `hasState` is true where the service knows the states: the lists of other
 *   countries are empty, and so is that of a code that is no country's. A code that is not two letters is refused with 400;
 *   small letters do, and are answered in capitals.
 * - The process lookup is the same for all accounts of a region: also processes that an account may not order, that are not
 *   active, and those of stocked goods.
 * - Who may not order may still read all lookups but the one of processes, which documents a 403.
 */

/** Where most of a region's customers are. */
const DEFAULT_COUNTRY: Record<RegionCode, string> = { us: 'US', nz: 'NZ', au: 'AU', uk: 'GB', eu: 'NL' };

/** Sizes as they were entered: a label that is empty is a place not taken. */
const SIZES: Record<string, string> = {
  'Adult tops': 'XS,S,M,L,XL,2XL,3XL,4XL,5XL',
  'Youth tops': 'YXS,YS,YM,YL,YXL',
  Toddler: '2T,3T,4T,,5T',
  'Numbered youth': '4,6,8,10,12,14,16',
  "Women's": ',6,8,10,12,14,16,18,20',
  Hats: 'S/M,,L/XL',
  'One size': 'OSFA',
  Equipment: 'Qty',
};

/** A region's size sets; ids differ, as do lists kept by different people. */
function sizeSetsOf(region: RegionCode) {
  const first = { us: 1, nz: 101, au: 201, uk: 301, eu: 501 }[region];
  return Object.entries(SIZES).map(([name, labels], index) => ({
    id: first + index,
    name,
    sizes: labels.split(',').filter(Boolean),
  }));
}

export const lookupOperations = [
  operation({
    name: 'countries',
    method: 'get',
    path: '/Lookups/countries',
    tag: 'Lookups',
    summary: 'The countries of the world, and which parts addresses have there.',
    answers: { 200: { description: 'All countries.', schema: Countries }, 500: UNEXPECTED },
    handle: ({ account: { region } }) =>
      json({ countries: allCountries(), defaultCountry: DEFAULT_COUNTRY[region] }),
  }),
  operation({
    name: 'states',
    method: 'get',
    path: '/Lookups/countries/{countryCode}/states',
    tag: 'Lookups',
    summary: 'The states of a country.',
    params: z.object({
      countryCode: z
        .string()
        .regex(/^[A-Za-z]{2}$/, 'The value is not an ISO 3166-1 alpha-2 code.')
        .toUpperCase()
        .describe('ISO 3166-1 alpha-2.'),
    }),
    answers: {
      200: { description: 'All states; none for countries without.', schema: States },
      500: UNEXPECTED,
    },
    handle: ({ params: { countryCode } }) => json({ countryCode, states: statesOf(countryCode) }),
  }),
  operation({
    name: 'jobStatuses',
    method: 'get',
    path: '/Lookups/job-statuses',
    tag: 'Lookups',
    summary: 'The statuses of jobs and lines. The set grows.',
    answers: { 200: { description: 'All statuses.', schema: JobStatuses }, 500: UNEXPECTED },
    handle: ({ account: { world, region } }) =>
      json(world.statuses(region).map(({ id, name }) => ({ id, name }))),
  }),
  operation({
    name: 'processCodes',
    method: 'get',
    path: '/Lookups/process-codes',
    tag: 'Lookups',
    summary: 'The processes of the region.',
    needs: 'ordering',
    answers: { 200: { description: 'All processes, by rank.', schema: ProcessCodes }, 500: UNEXPECTED },
    handle: ({ account }) => json(processCodesOf(account.region)),
  }),
  operation({
    name: 'sizeSets',
    method: 'get',
    path: '/Lookups/size-sets',
    tag: 'Lookups',
    summary: 'Sizes that belong together.',
    answers: { 200: { description: 'All size sets.', schema: SizeSets }, 500: UNEXPECTED },
    handle: ({ account }) => json(sizeSetsOf(account.region)),
  }),
];
