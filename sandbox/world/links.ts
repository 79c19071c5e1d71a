// Links to the files of the simulated ordering API: previews, invoices, labels, certificates, pictures, files of assets.

import { createHmac } from 'node:crypto';
import type { Asset, StoredFile } from './asset-files.ts';
import type { AccountFacts, WorldFacts } from './records.ts';
import type { RegionCode } from './regions.ts';

const QUARTER_HOUR_MS = 900_000;
/** Signs links and ids. The files are fictional, so the key is not secret. */
const KEY = 'files of the sandbox';

/** A link to a picture of a job's line, which expires; the same for a quarter of an hour. */
export function previewLink({ world, region }: AccountFacts, image: string, now: number): string {
  const expires = Math.floor(now / QUARTER_HOUR_MS) * QUARTER_HOUR_MS + 4 * QUARTER_HOUR_MS;
  return signed(world, `/${region}/previews/${encodeURIComponent(image)}.png`, expires);
}

/** A link to a job's invoice, and its expiry. */
export function invoiceLink(
  { world, region }: AccountFacts,
  jobNumber: number,
  invoiceNumber: string,
  now: number,
): { uri: string; uriExpires: string } {
  const expires = now + QUARTER_HOUR_MS;
  const name = encodeURIComponent(invoiceNumber);
  return {
    uri: signed(world, `/${region}/invoices/${jobNumber}/${name}.pdf`, expires),
    uriExpires: new Date(expires).toISOString(),
  };
}

/** A link to the label of a job's line (from 1), for its supplier. It does not expire. */
export function labelLink({ world, region }: AccountFacts, jobNumber: number, line: number): string {
  return `${world.filesUrl}/${region}/labels/${labelId(region, jobNumber, line)}/${jobNumber}-${line}.pdf`;
}

export const labelId = (region: string, jobNumber: number, line: number): string =>
  sign(`${region} label ${jobNumber} ${line}`);

/** A link to the file of a tax certificate, which expires like that of an invoice. */
export function certificateLink(
  { world, region }: AccountFacts,
  { entityFileId }: { entityFileId: number },
  now: number,
): string {
  return signed(world, `/${region}/certificates/${entityFileId}.pdf`, now + QUARTER_HOUR_MS);
}

/** A link to a picture of a stock item, to which `?size=` may be added; it does not expire. */
export function stockLink({ world, region }: AccountFacts, slug: string, view: string): string {
  return `${world.filesUrl}/${region}/stock/${slug}/${encodeURIComponent(view)}.png`;
}

/** The id of a file of an asset. */
export function assetFileId(region: RegionCode, { assetTag }: Asset, { upload }: StoredFile): string {
  return sign(`${region} ${assetTag} ${upload}`);
}

/** A link to a file of an asset, to which `?size=` may be added; null if the file is archived. */
export function fileLink(account: AccountFacts, asset: Asset, file: StoredFile): string | null {
  if (file.action === 'Archived') return null;
  const { world, region, id } = account;
  const owner = asset.isGlobal ? 'catalogue' : id;
  const tag = encodeURIComponent(asset.assetTag);
  const name = encodeURIComponent(file.fileName);
  return `${world.filesUrl}/${region}/assets/${owner}/${tag}/${assetFileId(region, asset, file)}/${name}`;
}

function signed(world: WorldFacts, path: string, expires: number): string {
  return `${world.filesUrl}${path}?expires=${expires}&signature=${sign(`${path} ${expires}`)}`;
}

export const sign = (text: string): string =>
  createHmac('sha256', KEY).update(text).digest('hex').slice(0, 24);
