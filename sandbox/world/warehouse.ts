// Stock of a region: items with their descriptions, prices and shipping.

import type { PriceBand } from '../../shared/ordering/contract/common.ts';
import type {
  StandaloneShippingConfig,
  StockItem,
  StockVariant,
} from '../../shared/ordering/contract/stock.ts';
import { TIER_PERCENT } from './catalogue.ts';
import stock from './data/stock.json' with { type: 'json' };
import { DAY_MS } from './dates.ts';
import { listShipmentTypes } from './ledgers.ts';
import type { PriceTier } from './records.ts';
import { REGION_FACTS, type RegionCode } from './regions.ts';

/** Public fields of a stock item. */
type StockFace = Omit<
  StockItem,
  'shippingConfigs' | 'markets' | 'priceBands' | 'images' | 'stockImageUrl' | 'stockVariants'
>;

/** A stored stock item. Fields may be changed; the next response contains the change. */
export interface StockRecord extends StockFace {
  readonly stockItemId: number;
  stockCode: string;
  stockVariants: (Omit<StockVariant, 'variantImageUrl'> & { variantCode: string })[];
  /** Names of its pictures, the hero first. Their URLs contain the code. */
  views: string[];
  /** Listed only with `includeArchived`; cannot be ordered. */
  archived: boolean;
  /** Hidden by configuration: never listed. */
  hidden: boolean;
  /** Inactive configs are stored but never listed. */
  configs: StandaloneShippingConfig[];
  /** Bands of tier T2: their `from`, and the price in cents. */
  prices: readonly (readonly [from: number, cents: number])[];
}

/** All goods of a region, which are the same for all of its accounts but for their prices. */
export class Warehouse {
  readonly records: StockRecord[];

  constructor(region: RegionCode) {
    this.records = generateStock(region);
  }

  /** The record with a stock code in any state; undefined if there is none. */
  record(stockCode: string): StockRecord | undefined {
    return this.records.find((record) => record.stockCode === stockCode);
  }
}

/** A record's price bands at a tier; in cents all the way, rounded half up. */
export function bandsAt({ prices }: StockRecord, tier: PriceTier): PriceBand[] {
  return prices.map(([from, cents], index) => {
    const next = prices[index + 1];
    return {
      from,
      to: next ? next[0] - 1 : null,
      unitPrice: Math.round((cents * TIER_PERCENT[tier]) / 100) / 100,
    };
  });
}

/** Shipping plan of an item; `buildConfigs` converts plans to configs. */
type Plan = 'home' | 'worldwide' | 'freight' | 'flat' | 'free' | 'asleep' | 'partly' | 'none';

/** An item of all regions, before conversion to a region. */
interface Ware {
  readonly code: string;
  readonly name: string;
  readonly supplier: string | null;
  readonly category: string;
  /** Default: EA, pieces. */
  readonly unit?: string;
  /** Default: STK. */
  readonly process?: string;
  readonly about: string;
  readonly specifications?: string;
  /** Items with the same lookup code share price bands. */
  readonly lookup?: string;
  /** Colours by variant code. */
  readonly variants: { readonly [code: string]: string | null };
  readonly sizes: string;
  /** Cents by the least quantity, in the US at T2. */
  readonly bands: { readonly [from: number]: number };
  readonly views?: readonly string[];
  readonly badges?: readonly string[];
  readonly counted?: boolean;
  readonly plan: Plan;
  /** In kg. */
  readonly weight: number;
  /** In cm. */
  readonly box: readonly [length: number, width: number, height: number];
  readonly archived?: boolean;
  readonly hidden?: boolean;
  readonly seo?: boolean;
  /** The only region that has the item. Default: all. */
  readonly only?: RegionCode;
}

const WARES = stock as unknown as readonly Ware[];

/** Generates the stock of a region. */
function generateStock(region: RegionCode): StockRecord[] {
  const trade = REGION_FACTS[region].stock;
  const local = (text: string) => text.replaceAll('{grey}', trade.grey).replaceAll('{mains}', trade.mains);
  return WARES.filter(({ only = region }) => only === region).map((ware, index) => {
    const stockItemId = trade.firstId + index;
    const name = local(ware.name);
    return {
      stockItemId,
      supplier: ware.supplier,
      categoryName: ware.category,
      categoryUnitId: ware.unit ?? 'EA',
      stockCode: ware.code,
      processCode: ware.process ?? 'STK',
      stockName: name,
      stockDescription: local(ware.about),
      stockSpecifications: ware.specifications === undefined ? null : local(ware.specifications),
      priceCompatibleLookupCode: ware.lookup ?? null,
      rank: (index + 1) * 10,
      stockVariants: Object.entries(ware.variants).map(([variantCode, colour]) => ({
        variantCode,
        colour: colour === null ? null : local(colour),
        numberOfSizes: ware.sizes.split(',').length,
        sizesCsv: ware.sizes,
      })),
      views: [...(ware.views ?? [])],
      showAvailableStock: ware.counted ?? false,
      badges: [...(ware.badges ?? [])],
      slug: [ware.name.replace(/,? ?\{.*/, ''), region]
        .join('-')
        .toLowerCase()
        .replace(/[^a-z0-9]+/g, '-'),
      seoTitle: ware.seo ? `${name}, ready to print` : null,
      seoDescription: ware.seo ? local(ware.about) : null,
      archived: ware.archived ?? false,
      hidden: ware.hidden ?? false,
      configs: buildConfigs(ware, region, stockItemId),
      prices: Object.entries(ware.bands).map(
        ([from, cents]) => [Number(from), Math.round((cents * trade.pricePercent) / 100)] as const,
      ),
    };
  });
}

/** The shipping configs of an item. */
function buildConfigs(ware: Ware, region: RegionCode, stockItemId: number): StandaloneShippingConfig[] {
  const trade = REGION_FACTS[region].stock;
  const { metric } = trade;
  const locations = REGION_FACTS[region].locations.map(({ code, name }, index) => ({
    locationCode: code,
    locationName: name,
    locale: trade.locales[index]?.[0] ?? null,
    shipFromCity: name,
    shipFromCountryCodeIso2: trade.locales[index]?.[1] ?? null,
  }));
  const [ground, ...others] = listShipmentTypes(region);
  const express = others.find(({ code }) => code === 'EXPRESS');
  if (!ground || !express) throw new Error(`No delivery methods in ${region}`);
  const [home, abroad, far] = trade.markets;
  const local = (cents: number) => Math.round((cents * trade.pricePercent) / 100) / 100;
  const tenths = (value: number) => Math.round(value * 10) / 10;
  const [length, width, height] = ware.box.map((cm) => (metric ? cm : tenths(cm / 2.54))) as [
    number,
    number,
    number,
  ];
  const byRoad = (price: number | null) => ({ ...ground, price });
  const fast = (price: number | null) => ({ ...express, price });
  const config = (
    markets: string[],
    shipmentTypeOptions: StandaloneShippingConfig['shipmentTypeOptions'],
    rest: Partial<StandaloneShippingConfig> = {},
  ): Partial<StandaloneShippingConfig> => ({ markets, shipmentTypeOptions, ...rest });

  const configs = {
    home: [config([home], [byRoad(null), fast(null)])],
    worldwide: [
      config([home], [byRoad(0), fast(null)], { estimatedLeadDays: 1 }),
      config([abroad, far], [fast(null)], { shipMode: 'International', estimatedLeadDays: 6 }),
    ],
    freight: [
      config([home, abroad], [byRoad(null)], {
        shipMode: 'Freight',
        groundOnly: true,
        fixedShipping: local(8500),
        estimatedLeadDays: 10,
      }),
    ],
    flat: [config([home, abroad], [fast(local(1450)), byRoad(local(690))], { estimatedLeadDays: null })],
    free: [config([home], [byRoad(0)], { estimatedLeadDays: null })],
    asleep: [config([home], [byRoad(null)], { active: false })],
    partly: [
      config([home], [byRoad(null), fast(local(1200))]),
      config([abroad], [fast(null)], { active: false, shipMode: 'International', estimatedLeadDays: 8 }),
    ],
    none: [],
  }[ware.plan];
  return configs.map((config, index) => {
    const since = FIRST_CONFIG_MS + ((stockItemId % 100) * 9 + index * 40) * DAY_MS;
    return {
      id: stockItemId * 10 + index + 1,
      stockItemId,
      markets: [],
      shipMode: 'Parcel',
      weight: metric ? ware.weight : Math.round(ware.weight * 220.462) / 100,
      weightUnit: metric ? 'kg' : 'lb',
      length,
      width,
      height,
      dimensionUnit: metric ? 'cm' : 'in',
      fixedShipping: null,
      groundOnly: false,
      estimatedLeadDays: 2,
      fulfilmentLocations: (config.shipMode === undefined ? locations : locations.slice(0, 1)).map((one) => ({
        ...one,
      })),
      shipmentTypeOptions: [],
      active: true,
      createdAt: new Date(since).toISOString(),
      updatedAt: new Date(since + 33 * DAY_MS).toISOString(),
      ...config,
    };
  });
}

const FIRST_CONFIG_MS = Date.parse('2025-02-03T08:30:00Z');
