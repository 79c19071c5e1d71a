// Stocked goods and how they ship.

import * as z from 'zod';
import {
  StandaloneShippingConfigs,
  StockItem,
  StockItems,
  type StockVariant,
} from '../../shared/ordering/contract/stock.ts';
import { createOperationFactory } from '../http/operation.ts';
import { matchesFilter, sortEntries } from '../http/paging.ts';
import { atLeastOne, commaList, direction, enumParameter, flag, pageParameters } from '../http/parameters.ts';
import { json, problem } from '../http/responses.ts';
import { stockLink } from '../world/links.ts';
import { bandsAt, type StockRecord } from '../world/warehouse.ts';
import type { SandboxAccount } from '../world/world.ts';

/*
 * Where the contract is silent, the sandbox chose:
 *
 * - The response of `GET /Stock` is an array without information about pages. The last page is shorter than requested,
 *   or empty.
 * - `filter` is compared with the stock code, name, description, category and supplier, and with the codes and colours
 *   of the variants.
 * - `GET /Stock/{code}` searches stock codes first, then variant codes. If several items have the same variant code,
 *   the item with the lowest rank is returned. An unknown code, the code of an archived item without `includeArchived`,
 *   and the code of an item that is hidden by configuration result in 404.
 * - `GET /stock/{stockItemId}/shipping` returns an empty array for an unknown, archived or hidden item.
 *   `GET /stock/shipping` omits the configurations of archived and hidden items, and sorts the others by id. Its
 *   `market` is case-insensitive, and blanks around it are ignored.
 */

/** The longest stock or variant code. */
const MOST_CODE_CHARACTERS = 50;

const code = z
  .string()
  .max(MOST_CODE_CHARACTERS, `The value must have at most ${MOST_CODE_CHARACTERS} characters.`);

const variantOrder = {
  variantSortColumn: enumParameter(['VariantCode', 'Colour', 'NumberOfSizes']).optional(),
  variantSortDirection: direction.optional(),
};

const operation = createOperationFactory('Stock');

export const stockOperations = [
  operation({
    name: 'stockItems',
    path: '/Stock',
    summary: 'Stocked goods.',
    query: z.object({
      ...pageParameters(50, 200),
      filter: z.string().optional(),
      includePricing: flag.optional(),
      stockSortColumn: enumParameter([
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
      const found = listStock(account, query.includeArchived)
        .filter((record) => query.code === undefined || hasCode(record, query.code))
        .filter((record) => markets.size === 0 || listMarkets(record).some((market) => markets.has(market)))
        .filter((record) => matchesFilter(query.filter, filterTexts(record)));
      const column = query.stockSortColumn ?? 'Rank';
      const records = sortEntries(found, (record) => record[toFieldName(column)], query.stockSortDirection);
      const from = (query.page - 1) * query.pageSize;
      const page = records.slice(from, from + query.pageSize);
      return json(page.map((record) => toStockItem(record, account, query)));
    },
  }),
  operation({
    name: 'stockItem',
    path: '/Stock/{code}',
    summary: 'One stock item, by its stock code or by the code of a variant.',
    params: z.object({ code }),
    query: z.object({
      includePricing: flag.optional(),
      ...variantOrder,
      includeArchived: flag.optional(),
    }),
    needs: 'ordering',
    answers: {
      200: { description: 'The item, with its shipping configs.', schema: StockItem },
      404: { description: 'The item does not exist.' },
    },
    handle: ({ account, params, query, instance }) => {
      const record = findRecord(account, params.code, query.includeArchived);
      if (!record) return problem(404, 'The stock item does not exist.', instance);
      return json({
        ...toStockItem(record, account, query),
        shippingConfigs: record.configs.filter(isActive).map(toEmbeddedConfig),
      });
    },
  }),
  operation({
    name: 'stockShipping',
    path: '/stock/shipping',
    summary: 'Shipping options to a market.',
    query: z.object({ market: z.string().optional() }),
    answers: {
      200: { description: 'The active shipping configs of the market.', schema: StandaloneShippingConfigs },
    },
    handle: ({ account, query, instance }) => {
      const market = query.market?.trim().toUpperCase() ?? '';
      if (market === '') {
        return problem(400, 'A parameter is not valid.', instance, { market: ['A market is required.'] });
      }
      const configs = listStock(account).flatMap((record) => record.configs.filter(isActive));
      return json(configs.filter((config) => config.markets.includes(market)));
    },
  }),
  operation({
    name: 'stockItemShipping',
    path: '/stock/{stockItemId}/shipping',
    summary: 'Shipping options of a stock item.',
    params: z.object({ stockItemId: atLeastOne }),
    answers: { 200: { description: 'Its active shipping configs.', schema: StandaloneShippingConfigs } },
    handle: ({ account, params }) => {
      const record = listStock(account).find(({ stockItemId }) => stockItemId === params.stockItemId);
      return json(record?.configs.filter(isActive) ?? []);
    },
  }),
];

/**
 * Finds the item of a stock or variant code: the API's item with price bands at the account's tier, and the matching variant.
 * Undefined if it does not exist, or is archived or hidden.
 */
export function findStock(
  account: SandboxAccount,
  code: string,
): { item: StockItem; variant: StockVariant | undefined } | undefined {
  const record = findRecord(account, code);
  if (!record) return undefined;
  const item = toStockItem(record, account, { includePricing: true });
  return { item, variant: item.stockVariants.find(({ variantCode }) => variantCode === code) };
}

interface Showing {
  includePricing?: boolean | undefined;
  variantSortColumn?: 'VariantCode' | 'Colour' | 'NumberOfSizes' | undefined;
  variantSortDirection?: 'ascending' | 'descending' | undefined;
}

/** A record as a list item of the API. */
function toStockItem(record: StockRecord, account: SandboxAccount, showing: Showing): StockItem {
  const { stockItemId, views, archived, hidden, configs, prices, stockVariants, ...face } = record;
  const images = views.map((view) => ({
    url: stockLink(account, record.slug, view),
    name: `${record.stockCode} ${view}`,
    altText: `${record.stockName}: ${view}`,
  }));
  const { variantSortColumn: column, variantSortDirection } = showing;
  const variants = stockVariants.map((variant) => ({
    ...variant,
    // Items without colours have only their own picture.
    variantImageUrl: variant.colour === null ? null : stockLink(account, record.slug, variant.variantCode),
  }));
  return {
    ...face,
    stockVariants:
      column === undefined && variantSortDirection === undefined
        ? variants
        : sortEntries(
            variants,
            (variant) => variant[toFieldName(column ?? 'VariantCode')],
            variantSortDirection,
          ),
    images,
    stockImageUrl: images[0]?.url ?? null,
    markets: listMarkets(record),
    priceBands: showing.includePricing ? bandsAt(record, account.priceTier) : [],
  };
}

/** The items that an account can list, by rank. */
function listStock({ world, region }: SandboxAccount, includeArchived = false): StockRecord[] {
  const shown = world
    .warehouse(region)
    .records.filter(({ hidden, archived }) => !hidden && (includeArchived || !archived));
  return sortEntries(shown, ({ rank }) => rank);
}

function findRecord(
  account: SandboxAccount,
  code: string,
  includeArchived?: boolean,
): StockRecord | undefined {
  const records = listStock(account, includeArchived);
  return (
    records.find(({ stockCode }) => stockCode === code) ?? records.find((record) => hasCode(record, code))
  );
}

const hasCode = ({ stockCode, stockVariants }: StockRecord, code: string): boolean =>
  stockCode === code || stockVariants.some(({ variantCode }) => variantCode === code);

/** In the order in which its configs name them. */
const listMarkets = ({ configs }: StockRecord): string[] => [
  ...new Set(configs.filter(isActive).flatMap(({ markets }) => markets)),
];

const isActive = ({ active }: { active: boolean }): boolean => active;

/** A config without the fields of the shipping endpoints. */
function toEmbeddedConfig({
  stockItemId,
  active,
  createdAt,
  updatedAt,
  ...config
}: StockRecord['configs'][number]) {
  return {
    ...config,
    fulfilmentLocations: config.fulfilmentLocations.map(({ locationCode, locationName, locale }) => ({
      locationCode,
      locationName,
      locale,
    })),
  };
}

/** The texts that a filter covers. */
function filterTexts(record: StockRecord): (string | null)[] {
  const { stockCode, stockName, stockDescription, categoryName, supplier, stockVariants } = record;
  const variantTexts = stockVariants.flatMap(({ variantCode, colour }) => [variantCode, colour]);
  return [stockCode, stockName, stockDescription, categoryName, supplier, ...variantTexts];
}

/** The field that a sort column names: `StockCode` is `stockCode`. */
function toFieldName<T extends string>(column: T): Uncapitalize<T> {
  return (column.charAt(0).toLowerCase() + column.slice(1)) as Uncapitalize<T>;
}
