// Assets: existing prints of the account and of the catalogue, which can be reordered.

import * as z from 'zod';
import {
  Asset as AssetDto,
  type AssetFile,
  AssetFiles,
  AssetJobs,
  type AssetListEntry,
  AssetsPage,
  AssetTypes,
} from '../../shared/ordering/contract/assets.ts';
import type { PriceBand } from '../../shared/ordering/contract/common.ts';
import type { PriceCode } from '../../shared/ordering/contract/price-codes.ts';
import { type Call, createOperationFactory, UNEXPECTED } from '../http/operation.ts';
import { cutPage, matchesFilter, sortEntries } from '../http/paging.ts';
import { commaList, direction, enumParameter, flag, pageParameters } from '../http/parameters.ts';
import { json, problem } from '../http/responses.ts';
import { hasRight } from '../http/roles.ts';
import { type Asset, globalAssets, type StoredFile } from '../world/asset-files.ts';
import { findPriceCode, INPUT_ATTRIBUTES, listProcesses } from '../world/catalogue.ts';
import { assetFileId, fileLink } from '../world/links.ts';
import type { Role } from '../world/records.ts';
import type { SandboxAccount } from '../world/world.ts';
import { fileBytes } from './files.ts';

/*
 * Where the contract is silent, the sandbox chose:
 *
 * - `filter` is compared with the asset tag, description, garment, process code and price code. Assets with equal
 *   values are sorted by asset tag, ascending.
 * - `includeProcesses` and `excludeProcesses` contain complete process codes, in any case. Exclusion has precedence.
 *   With `includeProcesses`, assets without a process code are omitted.
 * - `GET /Assets` returns the assets of the account, and `GET /Assets/global` those of the catalogue, which all
 *   accounts can use. The operations for a single asset accept both kinds. Asset tags are case-sensitive.
 * - An order creates its assets immediately, one for each PriceCode line, including samples. They have no file and no
 *   `assetUrl` until the artwork is fetched.
 * - If the control panel or a test creates a job with an unknown asset tag, the sandbox also creates the asset.
 * - If the account can order none of an asset's price codes, the asset has no `priceBands` and no `priceTierCode`, and
 *   cannot be reordered.
 * - `assetUrl` is the link to the newest image that is neither replaced nor archived. Archived files have no link.
 *   Archived assets can still be read, and all their files are archived.
 * - `GET /Assets/{assetCode}/jobs` results in 400 if neither the account nor the catalogue has the asset. It lists each
 *   job once, with the total quantity of its matching lines. Cancelled jobs are excluded. Undispatched jobs come first,
 *   newest first. Dispatched jobs follow, latest dispatch first.
 */

const SORT_COLUMNS = {
  AssetTag: (asset) => asset.assetTag,
  AssetId: (asset) => asset.assetId,
  ProcessCode: (asset) => asset.processCode,
  Description: (asset) => asset.description,
  Garment: (asset) => asset.garment,
  PriceCode: (asset) => asset.priceCode,
  CreateDate: (asset) => asset.createdAt,
  IsArchived: (asset) => Number(asset.isArchived),
} satisfies Record<string, (asset: Asset) => string | number | null>;
type SortColumn = keyof typeof SORT_COLUMNS;

const listParameters = z.object({
  ...pageParameters(25, 200),
  sortColumn: enumParameter(Object.keys(SORT_COLUMNS) as SortColumn[]).default('AssetTag'),
  sortDirection: direction.default('ascending'),
  includeProcesses: commaList.optional(),
  excludeProcesses: commaList.optional(),
  filter: z.string().optional(),
  isArchived: flag
    .optional()
    .describe(
      '`true`: only archived assets. `false`: only assets that are not archived. Omitted: all assets.',
    ),
  priceCodeContains: commaList
    .optional()
    .describe(
      'Only assets whose price code contains one of these texts. Case-insensitive. Assets without a price code are excluded.',
    ),
  priceCodeNotContains: commaList
    .optional()
    .describe(
      'Only assets whose price code contains none of these texts. Case-insensitive. Assets without a price code are included.',
    ),
});
type ListQuery = z.output<typeof listParameters>;

const TYPES = ['application/json', 'text/plain', 'text/json'];
const NO_SUCH_ASSET = { description: 'The account has no such asset.' };
const assetTag = z.object({ assetTag: z.string() });

const operation = createOperationFactory('Assets');

export const assetOperations = [
  operation({
    name: 'assets',
    path: '/Assets',
    summary: "The account's own assets, by page.",
    query: listParameters,
    produces: TYPES,
    needs: 'ordering',
    answers: { 200: { description: 'A page.', schema: AssetsPage } },
    handle: (call) => json(toAssetsPage(call, call.account.assets.list())),
  }),
  operation({
    name: 'globalAssets',
    path: '/Assets/global',
    summary: "The catalogue's assets, which every account may order, page by page.",
    query: listParameters,
    produces: TYPES,
    needs: 'ordering',
    answers: { 200: { description: 'A page.', schema: AssetsPage } },
    handle: (call) =>
      json(toAssetsPage(call, [...globalAssets(call.account.world, call.account.region).values()])),
  }),
  operation({
    name: 'assetTypes',
    path: '/Assets/types',
    summary: 'The asset type of each process.',
    produces: TYPES,
    answers: { 200: { description: 'All asset types.', schema: AssetTypes } },
    handle: ({ account }) =>
      json(
        listProcesses(account).map(({ processCode, mapsToMaster }) => ({
          process: processCode,
          assetType: ASSET_TYPES[mapsToMaster ?? processCode ?? ''] ?? null,
        })),
      ),
  }),
  operation({
    name: 'asset',
    path: '/Assets/{assetTag}',
    summary: 'One asset, of the account or of the catalogue.',
    params: assetTag,
    takesAnything: true,
    produces: TYPES,
    needs: 'ordering',
    answers: { 200: { description: 'The asset.', schema: AssetDto }, 404: NO_SUCH_ASSET },
    handle: ({ account, role, params, instance }) => {
      const asset = account.assets.get(params.assetTag);
      if (!asset) return problem(404, 'The asset does not exist.', instance);
      return json({ ...listEntry(account, role, asset), externalId: asset.externalId });
    },
  }),
  operation({
    name: 'assetFiles',
    path: '/Assets/{assetTag}/files',
    summary: 'The current and historic files of an asset.',
    params: assetTag,
    takesAnything: true,
    produces: TYPES,
    needs: 'ordering',
    answers: { 200: { description: 'The files.', schema: AssetFiles }, 404: NO_SUCH_ASSET },
    handle: ({ account, params, instance }) => {
      const asset = account.assets.get(params.assetTag);
      if (!asset) return problem(404, 'The asset does not exist.', instance);
      const files = sortEntries(asset.files, ({ uploadedAt }) => uploadedAt, 'descending');
      const entry = (file: StoredFile) => fileEntry(account, asset, file);
      return json({
        assetTag: asset.assetTag,
        currentFiles: files.filter(({ action }) => action === undefined).map(entry),
        historicFiles: files
          .filter(({ action }) => action !== undefined)
          .map((file) => ({ ...entry(file), action: file.action })),
      });
    },
  }),
  operation({
    name: 'assetJobs',
    path: '/Assets/{assetCode}/jobs',
    summary: 'The jobs of the account that used an asset.',
    params: z.object({ assetCode: z.string() }),
    produces: TYPES,
    needs: 'ordering',
    answers: {
      200: { description: 'The jobs.', schema: AssetJobs },
      400: { description: 'The account has no asset with this code.' },
      500: UNEXPECTED,
    },
    handle: ({ account, params: { assetCode }, instance }) => {
      if (!account.assets.get(assetCode)) {
        const errors = { assetCode: ['The value is not the code of an asset.'] };
        return problem(400, 'A parameter is not valid.', instance, errors);
      }
      const jobs = jobsWith(account, assetCode);
      return json({ assetCode, jobs, totalCount: jobs.length });
    },
  }),
];

/** The prices of a reorder at the account's tier; null when the asset cannot be priced. */
export function reorderBands(account: SandboxAccount, asset: Asset): readonly PriceBand[] | null {
  return findPrices(account, asset)?.priceBands ?? null;
}

/** Charge of each reorder besides its units; 0 if no reset charge applies. */
export function resetCharge(account: SandboxAccount, asset: Asset): number {
  return findPrices(account, asset)?.standardReset ?? 0;
}

/** The asset's price code, for its dimensions or stitches. */
function findPrices(account: SandboxAccount, { priceCode, attributes }: Asset): PriceCode | undefined {
  if (priceCode === null) return undefined;
  const input = (name: string) => (attributes[name] === undefined ? undefined : Number(attributes[name]));
  const { dgX, dgY, stitches } = INPUT_ATTRIBUTES;
  return findPriceCode(account, priceCode, { dgX: input(dgX), dgY: input(dgY), stitches: input(stitches) });
}

function toAssetsPage({ account, role, query, url }: Call<unknown, ListQuery>, all: readonly Asset[]) {
  const { sortColumn = 'AssetTag', sortDirection } = query;
  const found = all.filter(toFilter(query));
  // Already sorted by tag.
  const asTheyCome = sortColumn === 'AssetTag' && sortDirection === 'ascending';
  const sorted = asTheyCome ? found : sortEntries(found, SORT_COLUMNS[sortColumn], sortDirection);
  const page = cutPage(sorted, { ...query, url });
  return { ...page, entities: page.entities.map((asset) => listEntry(account, role, asset)) };
}

/** Returns the filter for the parameters of a list. */
function toFilter(query: ListQuery): (asset: Asset) => boolean {
  const [included, excluded, contained, avoided] = [
    query.includeProcesses,
    query.excludeProcesses,
    query.priceCodeContains,
    query.priceCodeNotContains,
  ].map((list) => (list ?? []).map((one) => one.toLowerCase())) as [string[], string[], string[], string[]];
  const holds = (value: string | null, part: string) => value?.toLowerCase().includes(part) ?? false;
  return (asset) => {
    const process = asset.processCode?.toLowerCase() ?? '';
    const { assetTag: tag, description, garment, processCode, priceCode } = asset;
    return (
      (query.isArchived === undefined || asset.isArchived === query.isArchived) &&
      (included.length === 0 || included.includes(process)) &&
      !excluded.includes(process) &&
      (contained.length === 0 || contained.some((part) => holds(priceCode, part))) &&
      !avoided.some((part) => holds(priceCode, part)) &&
      matchesFilter(query.filter, [tag, description, garment, processCode, priceCode])
    );
  };
}

function listEntry(account: SandboxAccount, role: Role, asset: Asset): AssetListEntry {
  const bands = reorderBands(account, asset);
  const image = asset.files.find(({ isImage, action }) => isImage && action === undefined);
  return {
    assetId: asset.assetId,
    assetTag: asset.assetTag,
    processCode: asset.processCode,
    description: asset.description,
    garment: asset.garment,
    priceTierCode: bands && account.priceTier,
    setup: findPrices(account, asset)?.standardSetup ?? 0,
    reset: resetCharge(account, asset),
    priceCode: asset.priceCode,
    assetUrl: image ? fileLink(account, asset, image) : null,
    createDate: new Date(asset.createdAt).toISOString(),
    isGlobal: asset.isGlobal,
    isArchived: asset.isArchived,
    priceBands: bands && [...bands],
    // Fields that the caller may not read are absent.
    ...(hasRight(role, 'privileged') && {
      customerId: asset.isGlobal ? null : account.id,
      attributes: asset.attributes,
    }),
  };
}

function fileEntry(account: SandboxAccount, asset: Asset, file: StoredFile): AssetFile {
  return {
    fileId: assetFileId(account.region, asset, file),
    fileName: file.fileName,
    fileSize: fileBytes(asset, file).byteLength,
    dateUploaded: new Date(file.uploadedAt).toISOString(),
    isImage: file.isImage,
    cdnUrl: fileLink(account, asset, file),
  };
}

/** The account's jobs with an asset on a line: those under way first, then by dispatch, the latest first. */
function jobsWith(account: SandboxAccount, assetCode: string) {
  const found: { at: number; entry: z.output<typeof AssetJobs>['jobs'][number] }[] = [];
  for (const job of account.assets.jobsWith(assetCode)) {
    if (job.hidden || job.phase === 'cancelled') continue;
    const lines = job.lines.filter(({ assetSku }) => assetSku === assetCode);
    const { jobNumber, orderNumber, description, dateOut, masterJobStatus } = job;
    const quantity = lines.reduce((sum, line) => sum + line.quantity, 0);
    const entry = { jobNumber, orderNumber, description, quantity, dateOut, masterJobStatus };
    found.push({ at: dateOut === null ? Number.POSITIVE_INFINITY : job.outMs || 0, entry });
  }
  return sortEntries(
    sortEntries(found, ({ entry }) => entry.jobNumber, 'descending'),
    ({ at }) => at,
    'descending',
  ).map(({ entry }) => entry);
}

/** Stored media of a print, by master process. */
const ASSET_TYPES: Readonly<Record<string, string>> = {
  UC: 'Separations',
  DTF: 'Print file',
  SCR: 'Screens',
  VIN: 'Cut file',
  EMB: 'Stitch file',
  PUF: 'Separations',
};
