// Stocked goods and how they ship.

import * as z from 'zod';
import { Problem } from '../../shared/ordering/contract/common.ts';
import {
  StandaloneShippingConfigs,
  StockItem,
  StockItems,
  type StockVariant,
} from '../../shared/ordering/contract/stock.ts';
import { operation } from '../http/operation.ts';
import { inOrder } from '../http/paging.ts';
import { atLeastOne, commaList, direction, flag, oneOf, pageParameters } from '../http/parameters.ts';
import { json, problem } from '../http/responses.ts';
import { stockLink } from '../world/links.ts';
import { bandsAt, type StockRecord } from '../world/warehouse.ts';
import type { SandboxAccount } from '../world/world.ts';

/*
 * Where the contract is silent, the sandbox chose:
 *
 * - `GET /Stock` takes `page` from 1 (1) and `pageSize` from 1 to 200 (50). The array says nothing about further pages: the
 *   last one is shorter than asked for, or empty.
 * - `filter` is compared, whatever its case, with any part of stock code, name, description, category, supplier, and of the
 *   variants' codes and colours. Blanks around it don't count.
 * - `stockSortColumn` is one of Rank (default), StockCode, StockName, CategoryName, Supplier, ProcessCode;
 *   `variantSortColumn` one of VariantCode, Colour, NumberOfSizes, and without it variants stand as the warehouse has them.
 *   Directions are Ascending (default), Descending, ASC, DESC; all in any case. Null sorts lowest; what is equal keeps its rank.
 * - Codes have at most 50 characters, in `code` and in the path; they are compared exactly, case included.
 * - `includePricing` is false by default; without it `priceBands` is empty.
 * - `GET /Stock/{code}` looks for a stock code first. A variant code that several items share is that of the one with the
 *   lowest rank. A code that is not there, one of an archived item without `includeArchived` and one that is hidden by
 *   configuration are 404, as any record that is not there.
 * - The configs of a single item are the active ones, as `markets` are.
 * - `GET /stock/{stockItemId}/shipping`: an id that is no integer from 1 is 400. An item that is not there, is archived or
 *   hidden has no configs: an empty array.
 * - `GET /stock/shipping`: `market` is trimmed and uppercased; a blank one is like none; one that nothing ships to has an
 *   empty array. Configs stand in the order of their ids. Archived and hidden items have no say.
 * - `shipMode` is Parcel, International or Freight; codes of options are those of the region's delivery methods.
 */

/** The longest stock or variant code. */
const MOST_CODE_CHARACTERS = 50;

const code = z
  .string()
  .max(MOST_CODE_CHARACTERS, `The value must have at most ${MOST_CODE_CHARACTERS} characters.`);

const variantOrder = {
  variantSortColumn: oneOf(['VariantCode', 'Colour', 'NumberOfSizes']).optional(),
  variantSortDirection: direction.optional(),
};

export const stockOperations = [
  operation({
    name: 'stockItems',
    method: 'get',
    path: '/Stock',
    tag: 'Stock',
    summary: 'Stocked goods.',
    query: z.object({
      ...pageParameters(50, 200),
      filter: z.string().optional(),
      includePricing: flag.optional(),
      stockSortColumn: oneOf([
        'Rank',
        'StockCode',
        'StockName',
        'CategoryName',
        'Supplier',
        'ProcessCode',
      ]).optional(),
      stockSortDirection: direction.optional(),
      ...variantOrder,
      markets: commaList.optional(),
      code: code.optional(),
      includeArchived: flag.optional(),
    }),
    needs: 'ordering',
    answers: { 200: { description: 'A page of stock items.', schema: StockItems } },
    handle: ({ account, query }) => {
      const markets = new Set(query.markets?.map((market) => market.toUpperCase()));
      const wanted = query.filter?.trim().toLowerCase() ?? '';
      const found = shownTo(account, query.includeArchived)
        .filter((record) => query.code === undefined || hasCode(record, query.code))
        .filter((record) => markets.size === 0 || marketsOf(record).some((market) => markets.has(market)))
        .filter((record) => wanted === '' || wordsOf(record).some((text) => text.includes(wanted)));
      const column = query.stockSortColumn ?? 'Rank';
      const records = inOrder(found, (record) => record[fieldOf(column)], query.stockSortDirection);
      const from = (query.page - 1) * query.pageSize;
      const page = records.slice(from, from + query.pageSize);
      return json(page.map((record) => shown(record, account, query)));
    },
  }),
  operation({
    name: 'stockItem',
    method: 'get',
    path: '/Stock/{code}',
    tag: 'Stock',
    summary: 'One stock item, by its code or that of a variant.',
    params: z.object({ code }),
    query: z.object({
      includePricing: flag.optional(),
      ...variantOrder,
      includeArchived: flag.optional(),
    }),
    needs: 'ordering',
    answers: {
      200: { description: 'The item, with its shipping configs.', schema: StockItem },
      404: { description: 'There is no such item.', schema: Problem },
    },
    handle: ({ account, params, query, instance }) => {
      const record = recordOf(account, params.code, query.includeArchived);
      if (!record) return problem(404, 'There is no such stock item.', instance);
      return json({
        ...shown(record, account, query),
        shippingConfigs: record.configs.filter(isActive).map(embedded),
      });
    },
  }),
  operation({
    name: 'stockShipping',
    method: 'get',
    path: '/stock/shipping',
    tag: 'Stock',
    summary: 'What ships to a market, and how.',
    query: z.object({ market: z.string().optional() }),
    answers: {
      200: { description: 'The active shipping configs of the market.', schema: StandaloneShippingConfigs },
    },
    handle: ({ account, query, instance }) => {
      const market = query.market?.trim().toUpperCase() ?? '';
      if (market === '') {
        return problem(400, 'A parameter is not valid.', instance, { market: ['A market is required.'] });
      }
      const configs = shownTo(account).flatMap((record) => record.configs.filter(isActive));
      return json(configs.filter((config) => config.markets.includes(market)));
    },
  }),
  operation({
    name: 'stockItemShipping',
    method: 'get',
    path: '/stock/{stockItemId}/shipping',
    tag: 'Stock',
    summary: 'How a stock item ships.',
    params: z.object({ stockItemId: atLeastOne }),
    answers: { 200: { description: 'Its active shipping configs.', schema: StandaloneShippingConfigs } },
    handle: ({ account, params }) => {
      const record = shownTo(account).find(({ stockItemId }) => stockItemId === params.stockItemId);
      return json(record?.configs.filter(isActive) ?? []);
    },
  }),
];

/**
 * What an order may mean by a stock or variant code: the item as the API shows it, with price bands at the account's tier,
 * and the variant that has the code, if one has. Undefined when there is none, or it is archived or hidden.
 */
export function findStock(
  account: SandboxAccount,
  code: string,
): { item: StockItem; variant: StockVariant | undefined } | undefined {
  const record = recordOf(account, code);
  if (!record) return undefined;
  const item = shown(record, account, { includePricing: true });
  return { item, variant: item.stockVariants.find(({ variantCode }) => variantCode === code) };
}

interface Showing {
  includePricing?: boolean | undefined;
  variantSortColumn?: 'VariantCode' | 'Colour' | 'NumberOfSizes' | undefined;
  variantSortDirection?: 'ascending' | 'descending' | undefined;
}

/** A record as the API shows it in a list. */
function shown(record: StockRecord, account: SandboxAccount, showing: Showing): StockItem {
  const { stockItemId, views, archived, hidden, configs, prices, stockVariants, ...face } = record;
  const images = views.map((view) => ({
    url: stockLink(account, record.slug, view),
    name: `${record.stockCode} ${view}`,
    altText: `${record.stockName}: ${view}`,
  }));
  const { variantSortColumn: column, variantSortDirection } = showing;
  const variants = stockVariants.map((variant) => ({
    ...variant,
    // What has no colours looks like its item.
    variantImageUrl: variant.colour === null ? null : stockLink(account, record.slug, variant.variantCode),
  }));
  return {
    ...face,
    stockVariants:
      column === undefined && variantSortDirection === undefined
        ? variants
        : inOrder(variants, (variant) => variant[fieldOf(column ?? 'VariantCode')], variantSortDirection),
    images,
    stockImageUrl: images[0]?.url ?? null,
    markets: marketsOf(record),
    priceBands: showing.includePricing ? bandsAt(record, account.priceTier) : [],
  };
}

/** What an account sees, by rank. */
function shownTo({ world, region }: SandboxAccount, includeArchived = false): StockRecord[] {
  const shown = world
    .warehouse(region)
    .records.filter(({ hidden, archived }) => !hidden && (includeArchived || !archived));
  return inOrder(shown, ({ rank }) => rank);
}

function recordOf(account: SandboxAccount, code: string, includeArchived?: boolean): StockRecord | undefined {
  const records = shownTo(account, includeArchived);
  return (
    records.find(({ stockCode }) => stockCode === code) ?? records.find((record) => hasCode(record, code))
  );
}

const hasCode = ({ stockCode, stockVariants }: StockRecord, code: string): boolean =>
  stockCode === code || stockVariants.some(({ variantCode }) => variantCode === code);

/** In the order in which its configs name them. */
const marketsOf = ({ configs }: StockRecord): string[] => [
  ...new Set(configs.filter(isActive).flatMap(({ markets }) => markets)),
];

const isActive = ({ active }: { active: boolean }): boolean => active;

/** A config without what only the shipping endpoints show. */
function embedded({ stockItemId, active, createdAt, updatedAt, ...config }: StockRecord['configs'][number]) {
  return {
    ...config,
    fulfilmentLocations: config.fulfilmentLocations.map(({ locationCode, locationName, locale }) => ({
      locationCode,
      locationName,
      locale,
    })),
  };
}

/** The texts that a filter looks into. */
function wordsOf(record: StockRecord): string[] {
  const { stockCode, stockName, stockDescription, categoryName, supplier, stockVariants } = record;
  const ofVariants = stockVariants.flatMap(({ variantCode, colour }) => [variantCode, colour]);
  return [stockCode, stockName, stockDescription, categoryName, supplier, ...ofVariants].flatMap((text) =>
    text === null ? [] : [text.toLowerCase()],
  );
}

/** The field that a sort column names: `StockCode` is `stockCode`. */
function fieldOf<T extends string>(column: T): Uncapitalize<T> {
  return (column.charAt(0).toLowerCase() + column.slice(1)) as Uncapitalize<T>;
}
