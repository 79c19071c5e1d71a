/** Stock items and their shipping. */
import * as z from 'zod';
import { PriceBand, text, timestamp } from './common.ts';

/** A variant of a stock item, such as a colour. */
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
/** A variant in a response. */
export type StockVariant = z.infer<typeof StockVariant>;

/** An image of a gallery. */
export const StockImage = z
  .strictObject({ url: z.string(), name: text, altText: text })
  .meta({ id: 'StockImage' });

/** A shipment type of a stock item. */
export const StockShipmentType = z
  .strictObject({
    code: z.string(),
    name: text,
    price: z
      .number()
      .nullable()
      .describe('Null: the price of the rate API. 0: free. Other values: a flat price.'),
  })
  .meta({ id: 'StockShipmentType' });

/** A location that ships stock, as part of an item. */
export const FulfilmentLocation = z
  .strictObject({ locationCode: z.string(), locationName: text, locale: text })
  .meta({ id: 'FulfilmentLocation' });

/** A location that ships stock, in the shipping endpoints. */
export const ShipFromLocation = z
  .strictObject({ ...FulfilmentLocation.shape, shipFromCity: text, shipFromCountryCodeIso2: text })
  .meta({ id: 'ShipFromLocation' });

/** Shipping of a stock item to some markets, as part of the item. */
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

/** Shipping of a stock item to some markets, in the shipping endpoints. */
export const StandaloneShippingConfig = z
  .strictObject({
    ...ShippingConfig.shape,
    fulfilmentLocations: z.array(ShipFromLocation),
    stockItemId: z.int(),
    active: z.boolean(),
    createdAt: timestamp.describe('UTC.'),
    updatedAt: timestamp.describe('UTC.'),
  })
  .meta({ id: 'StandaloneShippingConfig' });
/** A shipping config in a response of the shipping endpoints. */
export type StandaloneShippingConfig = z.infer<typeof StandaloneShippingConfig>;

/** All shipping configs of a stock item or market. */
export const StandaloneShippingConfigs = z.array(StandaloneShippingConfig);

/** A stock item. */
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
    priceBands: z.array(PriceBand).describe('Empty unless prices were requested.'),
  })
  .meta({ id: 'StockItem' });
/** A stock item in a response. */
export type StockItem = z.infer<typeof StockItem>;

/** A list of stock. */
export const StockItems = z.array(StockItem);
