/** Assets: existing prints that can be reordered. */
import * as z from 'zod';
import { listSchema, money, PriceBand, text, timestamp } from './common.ts';

/** An asset in a list. */
export const AssetListEntry = z
  .strictObject({
    assetId: z.int(),
    assetTag: text.describe('Value of `code` in a job line with the itemType `Asset`.'),
    processCode: text,
    description: text,
    garment: text,
    priceTierCode: text.describe('The tier of the price bands.'),
    setup: money.describe('Charge for the first production of the asset. Not charged on a reorder.'),
    reset: money.describe('Charged each time the asset is produced again.'),
    priceCode: text.describe('The price code of the first order of the asset.'),
    assetUrl: text.describe('A preview; null without one.'),
    createDate: timestamp.describe('UTC.'),
    isGlobal: z.boolean().describe('Whether the asset is in the catalogue, which all accounts share.'),
    isArchived: z.boolean().describe('Retired: it cannot be ordered any more.'),
    priceBands: z.array(PriceBand).nullable().describe("Prices of a reorder, at the account's tier."),
    customerId: z.int().nullable().optional().describe('For privileged callers only.'),
    attributes: z
      .record(z.string(), z.string())
      .nullable()
      .optional()
      .describe('For privileged callers only: empty means there are none, absent means not authorised.'),
  })
  .meta({ id: 'AssetListEntry' });
/** An entry in a response. */
export type AssetListEntry = z.infer<typeof AssetListEntry>;

/** A page of assets. */
export const AssetsPage = listSchema(AssetListEntry, 'AssetsPage');

/** One asset. */
export const Asset = AssetListEntry.extend({
  externalId: text.describe('Its identifier in a third-party design system.'),
}).meta({ id: 'Asset' });

/** A file of an asset. */
export const AssetFile = z
  .strictObject({
    fileId: z.string().describe('Hashed.'),
    fileName: text,
    fileSize: z.int().describe('Bytes.'),
    dateUploaded: timestamp,
    isImage: z.boolean(),
    cdnUrl: text.describe('For an image, `?size=` with 50, 100 or 150 yields a thumbnail.'),
  })
  .meta({ id: 'AssetFile' });
/** A file in a response. */
export type AssetFile = z.infer<typeof AssetFile>;

/** A former file of an asset. */
export const HistoricAssetFile = AssetFile.extend({
  action: text.describe('Status of the file, for example Replaced or Archived.'),
}).meta({ id: 'HistoricAssetFile' });

/** Files of an asset, latest upload first. */
export const AssetFiles = z
  .strictObject({
    assetTag: text,
    currentFiles: z.array(AssetFile),
    historicFiles: z.array(HistoricAssetFile),
  })
  .meta({ id: 'AssetFiles' });

/** A job that used an asset. */
export const AssetJob = z
  .strictObject({
    jobNumber: z.int(),
    orderNumber: text,
    description: text,
    quantity: z.int().nullable().describe('Quantity of the matching line only.'),
    dateOut: timestamp.nullable().describe('Null while active.'),
    masterJobStatus: text,
  })
  .meta({ id: 'AssetJob' });

/** Jobs that used an asset: active ones first, then shipped ones, latest first. */
export const AssetJobs = z
  .strictObject({ assetCode: text, jobs: z.array(AssetJob), totalCount: z.int() })
  .meta({ id: 'AssetJobs' });

/** Type of asset that a process produces. */
export const AssetType = z.strictObject({ process: text, assetType: text }).meta({ id: 'AssetType' });

/** The asset types. */
export const AssetTypes = z.array(AssetType);
