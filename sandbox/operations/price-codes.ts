// Price codes over HTTP: processes, codes, and the price of one code.

import * as z from 'zod';
import { PriceCode, PriceCodes, PricingProcesses } from '../../shared/ordering/contract/price-codes.ts';
import { createOperationFactory, UNEXPECTED } from '../http/operation.ts';
import { decimal, integer, pageParameters } from '../http/parameters.ts';
import { json, problem } from '../http/responses.ts';
import { findPriceCode, inputProblems, listPriceCodes, listProcesses } from '../world/catalogue.ts';

/*
 * Where the contract is silent, the sandbox chose:
 *
 * - Each word of `filter` must occur in the code, name, description, category or process.
 */

const operation = createOperationFactory('Price codes');

export const priceCodeOperations = [
  operation({
    name: 'processes',
    path: '/PriceCodes/processes',
    summary: 'The processes that the account may order.',
    needs: 'ordering',
    answers: { 200: { description: 'The processes by rank.', schema: PricingProcesses }, 500: UNEXPECTED },
    handle: ({ account }) => json({ processes: listProcesses(account) }),
  }),
  operation({
    name: 'priceCodes',
    path: '/PriceCodes/price-codes',
    summary:
      'The price codes that the account may order, except those whose price depends on dimensions or stitches.',
    query: z.object({ ...pageParameters(100, 200), filter: z.string().optional() }),
    needs: 'ordering',
    answers: { 200: { description: 'A page of the list.', schema: PriceCodes } },
    handle: ({ account, query: { page, pageSize, filter = '' } }) => {
      const terms = filter.toLowerCase().split(/\s+/).filter(Boolean);
      const found = listPriceCodes(account).filter((one) => {
        const texts = [one.priceCode, one.name, one.description, one.categoryCode, one.categoryName];
        const text = [...texts, one.processCode].join('\n').toLowerCase();
        return terms.every((term) => text.includes(term));
      });
      return json(found.slice((page - 1) * pageSize, page * pageSize));
    },
  }),
  operation({
    name: 'priceCode',
    path: '/PriceCodes/{priceCode}',
    summary: 'One price code with its attributes and prices.',
    description:
      'Every reserved character of the code is percent-encoded, also colon, double quote and space.',
    params: z.object({ priceCode: z.string() }),
    query: z.object({
      dgX: decimal.optional().describe('Width, in the unit of the code.'),
      dgY: decimal.optional().describe('Height, in the unit of the code.'),
      stitches: integer.optional(),
    }),
    needs: 'ordering',
    answers: {
      200: { description: 'The price code.', schema: PriceCode },
      404: { description: 'The account has no such price code.' },
    },
    handle: ({ account, params, query, instance }) => {
      const found = findPriceCode(account, params.priceCode, query);
      if (!found) return problem(404, 'The price code does not exist.', instance);
      const errors = inputProblems(found.attributes ?? [], query);
      return errors ? problem(400, 'The price depends on metadata.', instance, errors) : json(found);
    },
  }),
];
