// Processes, price codes, and prices by region and tier of the simulated print service.

import { getOrCreate } from '../../shared/get-or-create.ts';
import type { PriceBand } from '../../shared/ordering/contract/common.ts';
import type { ProcessCode } from '../../shared/ordering/contract/lookups.ts';
import type {
  PriceCode,
  PricingProcess,
  ProcessAttribute,
} from '../../shared/ordering/contract/price-codes.ts';
import catalogue from './data/catalogue.json' with { type: 'json' };
import type { AccountFacts, PriceTier } from './records.ts';
import type { RegionCode } from './regions.ts';

/*
 * Where the contract is silent, the sandbox chose:
 *
 * - Prices are the US prices at tier T2, multiplied by a factor for the region and a factor for the tier (T1 is the
 *   highest), and rounded half up to two decimals.
 * - A process that the account cannot order is only in the process lookup. An inactive process is also in
 *   `GET /PriceCodes/processes`, with `active` false. Their price codes behave like codes that do not exist. By
 *   default, accounts of tier T1 cannot order badges (`withheldProcesses`).
 * - A code that is priced by dimensions has the attributes `DG-X` and `DG-Y`, and a code that is priced by stitches the
 *   attribute `Stitches`. The list of price codes omits these codes. If a number is missing or outside the range of its
 *   attribute, the response is 400 with `errors` by parameter. Other codes ignore `dgX`, `dgY` and `stitches`.
 * - The price by dimensions grows with the area. The price by stitches grows with every 1,000 stitches or part of
 *   1,000.
 */

/** Inputs of a metadata-priced code: dimensions in `sizeUnit`, or the number of stitches. */
export interface PriceInputs {
  readonly dgX?: number | undefined;
  readonly dgY?: number | undefined;
  readonly stitches?: number | undefined;
}

/** Attribute name of each price input. */
export const INPUT_ATTRIBUTES = { dgX: 'DG-X', dgY: 'DG-Y', stitches: 'Stitches' } as const;

/**
 * The price code at the account's tier; undefined if it does not exist or the account cannot order its process. `priceBands`
 * is null if an input of a metadata-priced code is missing or out of range.
 */
export function findPriceCode(
  account: AccountFacts,
  code: string,
  inputs: PriceInputs = {},
): Readonly<PriceCode> | undefined {
  const ware = regionWares(account.region).get(code);
  if (!ware || !mayOrder(account, ware.process)) return undefined;
  return (standardPriceCodes(account).get(code) ??
    priceByInputs(ware, inputs, account)) as Readonly<PriceCode>;
}

/** The price codes that the account may order and that have a price by themselves, in the order of the catalogue. */
export function listPriceCodes(account: AccountFacts): readonly Frozen<PriceCode>[] {
  return [...standardPriceCodes(account).values()].filter(({ processCode }) =>
    mayOrder(account, processCode ?? ''),
  );
}

/** Unit price for a quantity; undefined below the first band and without bands. */
export function unitPriceAt(
  bands: readonly Frozen<PriceBand>[] | null,
  quantity: number,
): number | undefined {
  return bands?.findLast(({ from }) => from <= quantity)?.unitPrice;
}

/** The processes that the account may order, by rank, with those that are not active for now. */
export function listProcesses(account: AccountFacts): readonly PricingProcess[] {
  return PROCESSES.filter(({ code }) => !account.withheldProcesses.includes(code)).map((process, index) => {
    const sheet = process.sheet?.[account.region === 'us' ? 0 : 1];
    return {
      processCode: process.code,
      description: spelled(process.description, account.region),
      active: process.active,
      sheetRank: (index + 1) * 10,
      sheetColor: process.colour,
      tooltip: process.tooltip && spelled(process.tooltip, account.region),
      mapsToMaster: process.master ?? null,
      maximumSheetUnit: sheet?.[0] ?? null,
      maximumSheetWidth: sheet?.[1] ?? null,
      maximumSheetHeight: sheet?.[2] ?? null,
    };
  });
}

/** All processes of a region, those for stocked goods too, by rank. */
export function listProcessCodes(region: RegionCode): readonly ProcessCode[] {
  const printed = PROCESSES.map((process) => ({ ...process, isPrinted: true }));
  const goods = GOODS.map((process) => ({ ...process, isPrinted: false, except: [] }));
  return [...printed, ...goods].map(({ code, description, isPrinted, except }, index) => {
    const applies = (name: string) => isPrinted && !except.some((one) => one === name);
    return {
      processCode: code,
      description: spelled(description, region),
      rank: index + 1,
      metadata: {
        setupApplies: applies('setupApplies'),
        resetApplies: applies('resetApplies'),
        scheduleable: applies('scheduleable'),
        physicalStockRequired: !isPrinted,
        printable: applies('printable'),
      },
    };
  });
}

/** All codes of a region with their processes and attributes, regardless of account. */
export function listRegionCodes(
  region: RegionCode,
): readonly Frozen<{ code: string; process: string; attributes: readonly ProcessAttribute[] }>[] {
  return [...regionWares(region).values()];
}

type Unit = 'in' | 'cm' | 'mm';

/** A size: its unit, width and height. */
type Size = readonly [unit: Unit, width: number, height: number];

/** The catalogue of all regions, in US spelling. */
interface Catalogue {
  readonly processes: readonly {
    readonly code: string;
    readonly description: string;
    readonly tooltip: string | null;
    readonly active: boolean;
    readonly colour: string;
    /** The master process, if it is a different one. */
    readonly master?: string;
    /** The largest sheet: in the US, elsewhere. */
    readonly sheet?: readonly [Size, Size];
    /** Names of the attributes that do not apply to it. */
    readonly except: readonly string[];
  }[];
  /** Goods sold without a print. */
  readonly goods: readonly { readonly code: string; readonly description: string }[];
  readonly categories: Readonly<Record<string, string>>;
  readonly ladders: Readonly<Record<string, Ladder>>;
  readonly attributes: Readonly<Record<string, AttributeRule>>;
  readonly articles: readonly Article[];
}

/** An attribute. A limit may be that of the article; the first of the values is selected. */
type AttributeRule = Partial<Omit<ProcessAttribute, 'maxValue'>> & {
  readonly maxValue?: number | 'colors' | 'width' | 'height';
  readonly values?: Readonly<Record<string, string>>;
};

/** Articles in all their sizes and numbers of colors. Texts may have `{size}`, `{colors}` and `{s}`, the plural of colors. */
interface Article
  extends Pick<Ware, 'code' | 'name' | 'description' | 'process' | 'category' | 'sample' | 'supplier'> {
  /** Name and geometry: in the US, elsewhere. */
  readonly sizes?: readonly (readonly [NamedSize, NamedSize])[];
  readonly colors?: readonly number[];
  /** Per color. */
  readonly setup?: number;
  readonly reset?: number;
  readonly ladder: string;
  readonly attributes: readonly string[];
  /** By size and number of colors, or by the inputs. */
  readonly cents: readonly (readonly number[])[] | CentsByInputs;
}

type NamedSize = readonly [name: string] | readonly [name: string, ...size: Size];

/** Cents of a metadata-priced code: by area, or for every 1,000 stitches or part of 1,000. */
interface CentsByInputs {
  readonly base: number;
  readonly perSquareInch?: number;
  readonly perThousandStitches?: number;
}

const {
  processes: PROCESSES,
  goods: GOODS,
  categories: CATEGORIES,
  ladders: LADDERS,
  attributes: ATTRIBUTES,
  articles: ARTICLES,
} = catalogue as unknown as Catalogue;

/** An article of one region, priced in US cents at tier T2. */
interface Ware {
  readonly code: string;
  readonly name: string;
  readonly description: string;
  readonly process: string;
  readonly category: string;
  readonly size?: Size;
  readonly setup?: number;
  readonly reset?: number;
  readonly sample?: readonly [label: string, cents: number];
  readonly supplier?: readonly [name: string, code: string];
  readonly attributes: readonly ProcessAttribute[];
  readonly ladder: Ladder;
  /** Cents for one unit in the first band; for metadata-priced codes, per area or per thousand stitches. */
  readonly cents: number | ((inputs: PriceInputs) => number);
}

/** Lower limits of the bands, and the unit price there in percent of the first band's price. */
type Ladder = readonly (readonly [from: number, percent: number])[];

/** The level of prices by region and by tier, in per cent. */
const REGION_PERCENT: Record<RegionCode, number> = { us: 100, nz: 165, au: 152, uk: 79, eu: 92 };
/** Price factor of a tier, in percent of T2. */
export const TIER_PERCENT: Record<PriceTier, number> = { T1: 115, T2: 100, T3: 88 };

const mayOrder = (account: AccountFacts, process: string): boolean =>
  !account.withheldProcesses.includes(process) &&
  PROCESSES.some(({ code, active }) => code === process && active);

/** Text in the region's spelling. */
const spelled = (text: string, region: RegionCode): string =>
  region === 'us' ? text : text.replaceAll('olor', 'olour');

/** The whole catalogue of a region, spelled as in the US. */
function buildWares(region: RegionCode): readonly Ware[] {
  const place = region === 'us' ? 0 : 1;
  return ARTICLES.flatMap((article) =>
    (article.sizes ?? [undefined]).flatMap((sizes, sizeAt) =>
      (article.colors ?? [undefined]).map((colors, colorsAt) =>
        buildWare(article, sizes?.[place], colors, region, (table) => table[sizeAt]?.[colorsAt] ?? 0),
      ),
    ),
  );
}

function buildWare(
  { sizes: _, colors: __, setup, reset, sample, ...article }: Article,
  [sizeName = '', unit, width = 0, height = 0]: readonly [] | NamedSize = [],
  colors: number | undefined,
  region: RegionCode,
  find: (table: readonly (readonly number[])[]) => number,
): Ware {
  const write = (text: string) =>
    text
      .replaceAll('{size}', sizeName)
      .replaceAll('{colors}', String(colors))
      .replaceAll('{s}', colors === 1 ? '' : 's');
  const { cents } = article;
  return {
    ...article,
    code: write(article.code),
    name: write(article.name),
    description: write(article.description),
    ...(unit && { size: [unit, width, height] }),
    ...(setup !== undefined && { setup: setup * (colors ?? 1) }),
    ...(reset !== undefined && { reset: reset * (colors ?? 1) }),
    ...(sample && (colors ?? 1) === 1 && { sample }),
    attributes: article.attributes.map((name) =>
      toAttribute(ATTRIBUTES[name] ?? {}, { colors, width, height }),
    ),
    ladder: LADDERS[article.ladder] ?? [],
    cents: 'base' in cents ? (inputs) => centsByInputs(cents, inputs, region) : find(cents),
  };
}

function toAttribute(
  { values, maxValue, ...rule }: AttributeRule,
  limits: { colors: number | undefined; width: number; height: number },
): ProcessAttribute {
  const most = typeof maxValue === 'string' ? limits[maxValue] : maxValue;
  return {
    name: null,
    type: null,
    label: null,
    description: null,
    required: false,
    isMetaDataAttribute: false,
    enumerableValues:
      values === undefined
        ? null
        : Object.entries(values).map(([value, text], index) => ({ value, text, selected: index === 0 })),
    assetAttributeName: null,
    ...rule,
    ...(most !== undefined && { maxValue: most }),
  };
}

function centsByInputs(
  { base, perSquareInch = 0, perThousandStitches = 0 }: CentsByInputs,
  { dgX = 0, dgY = 0, stitches = 0 }: PriceInputs,
  region: RegionCode,
): number {
  const area = perSquareInch * dgX * dgY * (region === 'us' ? 1 : 1 / 6.4516);
  return Math.ceil(base + area + perThousandStitches * Math.ceil(stitches / 1000));
}

/** Shared by all worlds, hence deeply frozen. */
export type Frozen<T> = { readonly [K in keyof T]: Frozen<T[K]> };

/** Freezes a value deeply. */
export function frozen<T>(value: T): Frozen<T> {
  if (typeof value === 'object' && value !== null) {
    for (const one of Object.values(value)) frozen(one);
    Object.freeze(value);
  }
  return value as Frozen<T>;
}

const products = new Map<RegionCode, ReadonlyMap<string, Ware>>();

/** The catalogue of a region, by code. */
function regionWares(region: RegionCode): ReadonlyMap<string, Ware> {
  return getOrCreate(products, region, () => {
    const localized = buildWares(region).map((ware) => localizeWare(ware, region));
    return new Map(localized.map((ware) => [ware.code, frozen(ware) as Ware]));
  });
}

/** An article with texts and attribute names in the region's spelling. */
function localizeWare(ware: Ware, region: RegionCode): Ware {
  const again = <T extends string | null>(one: T) => (one === null ? one : spelled(one, region)) as T;
  return {
    ...ware,
    code: again(ware.code),
    name: again(ware.name),
    description: again(ware.description),
    attributes: ware.attributes.map((attribute) => ({
      ...attribute,
      name: again(attribute.name),
      label: again(attribute.label),
      description: again(attribute.description),
      assetAttributeName: again(attribute.assetAttributeName),
    })),
  };
}

const standard = new Map<string, ReadonlyMap<string, Frozen<PriceCode>>>();

/** The codes of a region that have a price by themselves, at a tier, by code. */
function standardPriceCodes({ region, priceTier }: AccountFacts): ReadonlyMap<string, Frozen<PriceCode>> {
  return getOrCreate(standard, `${region} ${priceTier}`, () => {
    const priceCodes = new Map<string, Frozen<PriceCode>>();
    for (const ware of regionWares(region).values()) {
      const { code, cents } = ware;
      if (typeof cents === 'number')
        priceCodes.set(code, frozen(toPriceCode(ware, cents, region, priceTier)));
    }
    return priceCodes;
  });
}

/** A metadata-priced code with its bands, or with none when the inputs don't do. */
function priceByInputs(ware: Ware, inputs: PriceInputs, { region, priceTier }: AccountFacts): PriceCode {
  const { attributes, cents, size } = ware;
  const known = inputProblems(attributes, inputs) === undefined;
  const usCents = typeof cents === 'number' ? cents : known ? cents(inputs) : 0;
  return {
    ...toPriceCode(ware, usCents, region, priceTier),
    ...(size && { sizeWidth: (known && inputs.dgX) || null, sizeHeight: (known && inputs.dgY) || null }),
    ...(!known && { priceBands: null }),
  };
}

/** Errors in the inputs of a metadata-priced code, by parameter; undefined if there are none. */
export function inputProblems(
  attributes: readonly Frozen<ProcessAttribute>[],
  inputs: PriceInputs,
): Record<string, string[]> | undefined {
  const problems: Record<string, string[]> = {};
  for (const parameter of ['dgX', 'dgY', 'stitches'] as const) {
    const attribute = attributes.find(({ name }) => name === INPUT_ATTRIBUTES[parameter]);
    if (!attribute) continue;
    const { minValue = 0, maxValue = 0 } = attribute;
    const value = inputs[parameter];
    if (value === undefined) problems[parameter] = [`The price of this code depends on ${parameter}.`];
    else if (value < minValue || value > maxValue) {
      problems[parameter] = [`The value must be from ${minValue} to ${maxValue}.`];
    }
  }
  return Object.keys(problems).length ? problems : undefined;
}

/** The price code as the API returns it, for a first-band price of `cents` US cents at tier T2. */
function toPriceCode(ware: Ware, cents: number, region: RegionCode, tier: PriceTier): PriceCode {
  const { ladder, sample, size, supplier } = ware;
  // Integers up to this limit, so that half cents are exact.
  const priced = (usCents: number, percent = 100) =>
    Math.floor((usCents * percent * REGION_PERCENT[region] * TIER_PERCENT[tier] + 500_000) / 1_000_000) / 100;
  return {
    priceCode: ware.code,
    description: ware.description,
    categoryCode: ware.category,
    categoryName: CATEGORIES[ware.category] ?? null,
    name: ware.name,
    processCode: ware.process,
    masterProcessCode: PROCESSES.find(({ code }) => code === ware.process)?.master ?? ware.process,
    minimumQuantity: ladder[0]?.[0] ?? 1,
    externalSupplier: supplier?.[0] ?? null,
    externalPriceCode: supplier?.[1] ?? null,
    hasMetaDataAttributes: typeof ware.cents !== 'number',
    standardSetup: ware.setup === undefined ? null : priced(ware.setup),
    standardReset: ware.reset === undefined ? null : priced(ware.reset),
    sampleAvailable: sample !== undefined,
    ...(sample && { samplePrice: priced(sample[1]), sampleLabel: sample[0] }),
    sizeUnit: size?.[0] ?? null,
    sizeWidth: size?.[1] ?? null,
    sizeHeight: size?.[2] ?? null,
    attributes: [...ware.attributes],
    priceBands: ladder.map(([from, percent], index) => {
      const [next] = ladder[index + 1] ?? [];
      return { from, to: next === undefined ? null : next - 1, unitPrice: priced(cents, percent) };
    }),
  };
}
