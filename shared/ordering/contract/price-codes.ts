/** Printable products, their prices, and the attributes required for them. */
import * as z from 'zod';
import { money, PriceBand, text } from './common.ts';

/** A unit of length. */
const lengthUnit = z.enum(['cm', 'in', 'mm']).nullable();

/** A process available to the account. */
export const PricingProcess = z
  .strictObject({
    processCode: text,
    description: text,
    active: z.boolean(),
    sheetRank: z.int().describe('Sort order.'),
    sheetColor: text.describe('Hex colour.'),
    tooltip: text,
    mapsToMaster: text.describe('The master process, when it is another one.'),
    maximumSheetUnit: lengthUnit,
    maximumSheetWidth: z.number().nullable(),
    maximumSheetHeight: z.number().nullable(),
  })
  .meta({ id: 'PricingProcess' });
/** A process in a response. */
export type PricingProcess = z.infer<typeof PricingProcess>;

/** Processes available to the account. */
export const PricingProcesses = z
  .strictObject({ processes: z.array(PricingProcess) })
  .meta({ id: 'PricingProcesses' });

/** A value of a `select` attribute. */
export const AttributeValue = z
  .strictObject({
    value: text.describe('Value to send.'),
    text: text.describe('Text for display.'),
    selected: z.boolean().describe('Whether the value is selected by default.'),
  })
  .meta({ id: 'AttributeValue' });

/**
 * An attribute for which the customer must enter a value. `type` determines which of the extra fields
 * exist.
 */
export const ProcessAttribute = z
  .strictObject({
    name: text.describe(
      'The key of the value on the job line: case-sensitive, and not the same in all regions.',
    ),
    type: z.enum(['text', 'int', 'decimal', 'select']).nullable(),
    label: text,
    description: text,
    required: z.boolean(),
    isMetaDataAttribute: z.boolean().describe('The value drives the price.'),
    enumerableValues: z.array(AttributeValue).nullable().describe('For `select`; else null.'),
    assetAttributeName: text.describe('The attribute of the asset that the value is saved to.'),
    minLength: z.int().optional().describe('For `text` only.'),
    maxLength: z.int().optional().describe('For `text` only.'),
    minValue: z.number().optional().describe('For `int` and `decimal` only.'),
    maxValue: z.number().optional().describe('For `int` and `decimal` only.'),
  })
  .meta({ id: 'ProcessAttribute' });
/** An attribute in a response. */
export type ProcessAttribute = z.infer<typeof ProcessAttribute>;

/** A printable product. */
export const PriceCode = z
  .strictObject({
    priceCode: text.describe('Sent unchanged as `code` of a job line. The size in it is part of the name.'),
    description: text,
    categoryCode: text,
    categoryName: text,
    name: text,
    processCode: text,
    masterProcessCode: text,
    minimumQuantity: z.int().describe('A line with fewer units is rejected.'),
    externalSupplier: text,
    externalPriceCode: text,
    hasMetaDataAttributes: z.boolean().describe('The price depends on dimensions or stitches.'),
    standardSetup: money.nullable().describe('Null when there is no setup.'),
    standardReset: money.nullable().describe('Null when there is no reset.'),
    sampleAvailable: z.boolean(),
    samplePrice: money.nullable().optional().describe('Only when a sample is available.'),
    sampleLabel: text.optional().describe('Only when a sample is available.'),
    sizeUnit: lengthUnit,
    sizeWidth: z.number().nullable().describe('The geometry to use, in `sizeUnit`.'),
    sizeHeight: z.number().nullable().describe('The geometry to use, in `sizeUnit`.'),
    attributes: z.array(ProcessAttribute).nullable(),
    priceBands: z.array(PriceBand).nullable().describe("At the account's tier."),
  })
  .meta({ id: 'PriceCode' });
/** A price code in a response. */
export type PriceCode = z.infer<typeof PriceCode>;

/** The list of price codes. */
export const PriceCodes = z.array(PriceCode);
