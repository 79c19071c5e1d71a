// The assets of an account: its own prints and the catalogue's, which all accounts of a region share.

import { getOrCreate } from '../../shared/get-or-create.ts';
import type { ProcessAttribute } from '../../shared/ordering/contract/price-codes.ts';
import { type Frozen, frozen, listRegionCodes } from './catalogue.ts';
import { DAY_MS, HOUR_MS } from './dates.ts';
import type { AccountFacts, JobLine, JobRecord, WorldFacts } from './records.ts';
import type { RegionCode } from './regions.ts';
import { DESIGNS, GARMENTS } from './sample-data.ts';

/** A file of an asset. */
export interface StoredFile {
  /** Counts the uploads of the asset, from 1. */
  readonly upload: number;
  readonly fileName: string;
  /** Epoch ms. */
  readonly uploadedAt: number;
  readonly isImage: boolean;
  /** `undefined` for the current file. An archived file has no link. */
  readonly action: 'Replaced' | 'Archived' | undefined;
}

/** A print that was produced, or is produced for the first time. */
export interface Asset {
  readonly assetId: number;
  /** The `code` of a job line with itemType `Asset`. */
  readonly assetTag: string;
  /** A catalogue asset: every account of the region may order it. */
  readonly isGlobal: boolean;
  /** Epoch ms. */
  readonly createdAt: number;
  processCode: string | null;
  description: string | null;
  garment: string | null;
  /** `null` for assets older than price codes: they have no price bands and cannot be priced. */
  priceCode: string | null;
  externalId: string | null;
  isArchived: boolean;
  attributes: Record<string, string>;
  /** The latest upload first. */
  files: readonly StoredFile[];
}

/** Fields of a new asset. Defaults: null, empty or now. */
export type AssetInput = Partial<Omit<Asset, 'assetId' | 'isGlobal'>>;

/**
 * The assets of one account, filled on first access: prints of earlier years, and one asset for each asset tag on a line of the
 * account's jobs.
 */
export class AssetStore {
  readonly #account: AccountFacts;
  readonly #assets = new Map<string, Asset>();
  /** The jobs with an asset on a line, by its tag; and the tags on the lines of each of these jobs. */
  readonly #users = new Map<string, Set<Readonly<JobRecord>>>();
  readonly #tagsByJob = new Map<Readonly<JobRecord>, ReadonlySet<string>>();
  readonly #firstId: number;
  #sorted: readonly Asset[] = [];

  constructor(account: AccountFacts) {
    this.#account = account;
    this.#firstId = account.id * 100_000 + 1;
    for (let ordinal = 1; ordinal <= EARLIER_ASSETS; ordinal++) {
      this.#file(generateAsset(account.region, account.openedAt, `A${account.id}-${pad(ordinal)}`, ordinal));
    }
  }

  /** Returns the asset of the account or of the catalogue, archived or not. */
  get(assetTag: string): Asset | undefined {
    const { world, region } = this.#account;
    const known = this.#assets.get(assetTag) ?? globalAssets(world, region).get(assetTag);
    if (known) return known;
    this.#fileLines();
    return this.#assets.get(assetTag);
  }

  /** The account's own assets by tag, including archived ones. */
  list(): readonly Asset[] {
    this.#fileLines();
    if (this.#sorted.length !== this.#assets.size) {
      this.#sorted = [...this.#assets.values()].sort((one, other) =>
        one.assetTag < other.assetTag ? -1 : 1,
      );
    }
    return this.#sorted;
  }

  /** The account's jobs that have the asset on a line, in any phase. */
  jobsWith(assetTag: string): readonly Readonly<JobRecord>[] {
    this.#fileLines();
    return [...(this.#users.get(assetTag) ?? [])];
  }

  /** Removes a deleted job from the index. Its assets remain. */
  forget(job: Readonly<JobRecord>): void {
    for (const tag of this.#tagsByJob.get(job) ?? []) {
      const users = this.#users.get(tag);
      users?.delete(job);
      if (users?.size === 0) this.#users.delete(tag);
    }
    this.#tagsByJob.delete(job);
  }

  /** Adds an asset. Default tag: the region's next one. Throws if the tag exists. */
  add(input: AssetInput = {}): Asset {
    const { world, region } = this.#account;
    const assetTag = input.assetTag ?? `AS${world.takeLineId(region)}`;
    if (this.get(assetTag)) throw new Error(`Account ${this.#account.name} has an asset ${assetTag} already`);
    return this.#file({ createdAt: world.now(), ...input, assetTag });
  }

  /** Archives an asset of the account and its files: it can no longer be ordered. */
  archive(assetTag: string): void {
    const asset = this.#own(assetTag);
    asset.isArchived = true;
    asset.files = asset.files.map(archived);
  }

  /** Stores a file (default: now). A current file of the same name becomes historic. */
  addFile(assetTag: string, fileName: string, uploadedAt = this.#account.world.now()): void {
    const asset = this.#own(assetTag);
    asset.files = [
      upload(asset.files.length + 1, fileName, uploadedAt),
      ...asset.files.map((earlier) =>
        earlier.fileName === fileName && earlier.action === undefined
          ? { ...earlier, action: 'Replaced' as const }
          : earlier,
      ),
    ];
  }

  #file(input: AssetInput & Pick<Asset, 'assetTag' | 'createdAt'>): Asset {
    const asset: Asset = {
      assetId: this.#firstId + this.#assets.size,
      isGlobal: false,
      processCode: null,
      description: null,
      garment: null,
      priceCode: null,
      externalId: null,
      isArchived: false,
      attributes: {},
      files: [],
      ...input,
    };
    this.#assets.set(asset.assetTag, asset);
    return asset;
  }

  /** Creates an asset for each tag on a job line, including jobs that were not ordered through the API. */
  #fileLines(): void {
    const { region, world } = this.#account;
    const shared = globalAssets(world, region);
    for (const job of this.#account.takeRelined()) {
      this.forget(job);
      const tags = new Set<string>();
      this.#tagsByJob.set(job, tags);
      for (const line of job.lines) {
        const { assetSku, processCode, description, garment, image } = line;
        if (assetSku === null) continue;
        tags.add(assetSku);
        getOrCreate(this.#users, assetSku, () => new Set()).add(job);
        if (this.#assets.has(assetSku) || shared.has(assetSku)) continue;
        const createdAt = Number.isNaN(job.inMs) ? world.now() : job.inMs;
        this.#file({
          assetTag: assetSku,
          createdAt,
          processCode,
          description,
          garment,
          priceCode: linePriceCode(region, line),
          files: image === null ? [] : [upload(1, 'artwork.png', createdAt)],
        });
      }
    }
  }

  #own(assetTag: string): Asset {
    this.#fileLines();
    const asset = this.#assets.get(assetTag);
    if (!asset) {
      throw new Error(`Account ${this.#account.name} has no asset ${assetTag}`);
    }
    return asset;
  }
}

const EARLIER_ASSETS = 64;
const GLOBAL_ASSETS = 32;
/** Larger than the time between an asset's first and last file, so all files precede the account's opening. */
const AGE_STEP_MS = 20 * DAY_MS;

const globals = new WeakMap<WorldFacts, Map<RegionCode, ReadonlyMap<string, Frozen<Asset>>>>();

/** The catalogue's assets of a region by tag. They are the same for all accounts of a world and never change. */
export function globalAssets(world: WorldFacts, region: RegionCode): ReadonlyMap<string, Frozen<Asset>> {
  const regions = getOrCreate(globals, world, () => new Map());
  return getOrCreate(regions, region, () => {
    const openedAt = world.accounts(region)[0]?.openedAt ?? world.now();
    return new Map(
      Array.from({ length: GLOBAL_ASSETS }, (_, index) => {
        const assetTag = `GA-${region.toUpperCase()}-${pad(index + 1)}`;
        const asset = generateAsset(region, openedAt, assetTag, index + 1);
        return [assetTag, frozen({ ...asset, assetId: index + 1, isGlobal: true, externalId: null })];
      }),
    );
  });
}

/** Generates the asset at position `ordinal`, created before `openedAt`. Each peculiarity recurs at its own interval. */
function generateAsset(
  region: RegionCode,
  openedAt: number,
  assetTag: string,
  ordinal: number,
): Omit<Asset, 'assetId'> {
  const agoMs = (EARLIER_ASSETS + 1 - ordinal) * AGE_STEP_MS + ((ordinal * 7919) % 86_400) * 1000;
  const createdAt = Math.floor(openedAt / 1000) * 1000 - agoMs;
  const codes = listRegionCodes(region);
  const { code, process, attributes } = codes[(ordinal * 17) % codes.length] ?? NO_CODE;
  const isArchived = ordinal % 9 === 4;
  return {
    assetTag,
    isGlobal: false,
    createdAt,
    processCode: ordinal % 31 === 30 ? null : process,
    description: DESIGNS[(ordinal * 3) % DESIGNS.length] ?? null,
    garment: ordinal % 4 === 3 ? null : (GARMENTS[(ordinal * 7) % GARMENTS.length] ?? null),
    priceCode: ordinal % 8 === 5 ? null : code,
    externalId: ordinal % 6 === 1 ? `design-${4000 + ordinal}` : null,
    isArchived,
    attributes: Object.fromEntries(
      attributes.flatMap((one) =>
        one.assetAttributeName === null ? [] : [[one.assetAttributeName, sampleAttributeValue(one, ordinal)]],
      ),
    ),
    files: generateFiles(ordinal, createdAt).map((file) => (isArchived ? archived(file) : file)),
  };
}

/** A file of an archived asset. */
const archived = (file: StoredFile): StoredFile => ({ ...file, action: 'Archived' });

const NO_CODE = { code: null, process: null, attributes: [] };

/** The latest upload first: in some places none, in some with an artwork that was replaced later. */
function generateFiles(ordinal: number, createdAt: number): StoredFile[] {
  if (ordinal % 11 === 7) return [];
  const name = `artwork-${ordinal}.png`;
  const artwork = upload(1, name, createdAt);
  const sheet = upload(2, `print-sheet-${ordinal}.pdf`, createdAt + 2 * HOUR_MS);
  if (ordinal % 5 !== 2) return [sheet, artwork];
  return [upload(3, name, createdAt + 9 * DAY_MS), sheet, { ...artwork, action: 'Replaced' }];
}

/** A plausible value for an attribute of a price code. */
function sampleAttributeValue(
  { type, enumerableValues, minValue = 1 }: Frozen<ProcessAttribute>,
  ordinal: number,
): string {
  if (type === 'select') return enumerableValues?.[ordinal % enumerableValues.length]?.value ?? '';
  return type === 'text' ? 'White, navy' : String(minValue * 5);
}

/** The price code of a generated line: its own, or one of its process; null if it has neither. */
function linePriceCode(
  region: RegionCode,
  { itemType, code, processCode, jobLineId }: JobLine,
): string | null {
  if (itemType === 'PriceCode') return code;
  const codes = usualCodes(region, processCode);
  return codes[jobLineId % codes.length] ?? null;
}

const usual = new Map<string, readonly string[]>();

/** The price codes of a process that need no dimensions or stitches. */
function usualCodes(region: RegionCode, processCode: string | null): readonly string[] {
  return getOrCreate(usual, `${region} ${processCode}`, () =>
    listRegionCodes(region)
      .filter(({ process }) => process === processCode)
      .filter(({ attributes }) => !attributes.some(({ isMetaDataAttribute }) => isMetaDataAttribute))
      .map(({ code }) => code),
  );
}

function upload(ordinal: number, fileName: string, uploadedAt: number): StoredFile {
  const isImage = /\.(?:png|jpe?g|gif|webp|svg)$/i.test(fileName);
  return { upload: ordinal, fileName, uploadedAt, isImage, action: undefined };
}

const pad = (ordinal: number): string => String(ordinal).padStart(3, '0');
