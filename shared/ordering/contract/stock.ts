/** Stocked goods and how they ship. */
import * as z from 'zod';
import { instant, PriceBand, text } from './common.ts';

/** A kind of a stock item, such as one of its colours. */
export const StockVariant = z
  .strictObject({
    variantCode: text,
    colour: text,
    variantImageUrl: text,
    numberOfSizes: z.int(),
    sizesCsv: z
      .string()
      .describe('The keys that `sizeQuantities` may have. Equipment has the one key `Qty`.'),
  })
  .meta({ id: 'StockVariant' });
/** A variant as it is answered. */
export type StockVariant = z.infer<typeof StockVariant>;

/** A picture of a gallery. */
export const StockImage = z
  .strictObject({ url: z.string(), name: text, altText: text })
  .meta({ id: 'StockImage' });

/** A way to ship a stock item. */
export const StockShipmentType = z
  .strictObject({
    code: z.string(),
    name: text,
    price: z.number().nullable().describe('Null: what the rate API says. 0: free. Else this, flat.'),
  })
  .meta({ id: 'StockShipmentType' });

/** A place that ships stock, as items show it. */
export const FulfilmentLocation = z
  .strictObject({ locationCode: z.string(), locationName: text, locale: text })
  .meta({ id: 'FulfilmentLocation' });

/** A place that ships stock, as the shipping endpoints show it. */
export const ShipFromLocation = z
  .strictObject({ ...FulfilmentLocation.shape, shipFromCity: text, shipFromCountryCodeIso2: text })
  .meta({ id: 'ShipFromLocation' });

/** How a stock item ships to some markets, as the item shows it. */
export const ShippingConfig = z
  .strictObject({
    id: z.int(),
    markets: z.array(z.string()).describe('Market codes.'),
    shipMode: text,
    weight: z.number(),
    weightUnit: z.enum(['kg', 'lb']),
    length: z.number(),
    width: z.number(),
    height: z.number(),
    dimensionUnit: z.enum(['cm', 'in']),
    fixedShipping: z.number().nullable().describe('A flat charge instead of rates; null: rated normally.'),
    groundOnly: z.boolean().describe('No express methods.'),
    estimatedLeadDays: z.int().nullable().describe('Working days.'),
    fulfilmentLocations: z.array(FulfilmentLocation),
    shipmentTypeOptions: z.array(StockShipmentType).describe('In order; the first may be the default.'),
  })
  .meta({ id: 'ShippingConfig' });

/** How a stock item ships to some markets, as the shipping endpoints show it. */
export const StandaloneShippingConfig = z
  .strictObject({
    ...ShippingConfig.shape,
    fulfilmentLocations: z.array(ShipFromLocation),
    stockItemId: z.int(),
    active: z.boolean(),
    createdAt: instant.describe('UTC.'),
    updatedAt: instant.describe('UTC.'),
  })
  .meta({ id: 'StandaloneShippingConfig' });
/** A shipping config as it is answered by itself. */
export type StandaloneShippingConfig = z.infer<typeof StandaloneShippingConfig>;

/** All of a stock item's or market's ways to ship. */
export const StandaloneShippingConfigs = z.array(StandaloneShippingConfig);

/** A stocked good. */
export const StockItem = z
  .strictObject({
    supplier: text,
    categoryName: text,
    categoryUnitId: text,
    stockCode: text,
    processCode: text,
    stockName: text,
    stockDescription: text,
    stockSpecifications: text,
    priceCompatibleLookupCode: text,
    rank: z.int(),
    stockVariants: z.array(StockVariant),
    stockImageUrl: text.describe('The first of `images`.'),
    images: z.array(StockImage).describe('The first is the hero.'),
    showAvailableStock: z.boolean(),
    shippingConfigs: z.array(ShippingConfig).optional().describe('Only of a single item.'),
    markets: z.array(z.string()).describe('Of its active shipping configs; empty: in no market.'),
    badges: z.array(z.string()).describe('Short labels, in order.'),
    slug: z.string().regex(/^[a-z0-9-]+$/),
    seoTitle: text,
    seoDescription: text,
    priceBands: z.array(PriceBand).describe('Empty unless prices were asked for.'),
  })
  .meta({ id: 'StockItem' });
/** A stock item as it is answered. */
export type StockItem = z.infer<typeof StockItem>;

/** A list of stock. */
export const StockItems = z.array(StockItem);
