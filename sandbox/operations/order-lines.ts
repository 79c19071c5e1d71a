// Validates and prices the lines of an order. `ordering.ts` documents the choices.

import type { JobLineCandidate } from '../../shared/ordering/contract/candidates.ts';
import type { PriceBand } from '../../shared/ordering/contract/common.ts';
import type { PriceCode, ProcessAttribute } from '../../shared/ordering/contract/price-codes.ts';
import type { StockItem, StockVariant } from '../../shared/ordering/contract/stock.ts';
import type { Asset } from '../world/asset-files.ts';
import { INPUT_ATTRIBUTES, type PriceInputs, unitPriceAt } from '../world/catalogue.ts';
import { blank, quoted, type Report, same } from './order-errors.ts';

/** The fields of an asset that orders use. */
type OrderableAsset = Pick<Asset, 'assetTag' | 'processCode' | 'description' | 'garment' | 'isArchived'> & {
  readonly bands: readonly PriceBand[];
  readonly reset: number;
};

/** Everything that can be ordered. */
export interface ProductLookup {
  priceCode(code: string, inputs: PriceInputs): PriceCode | undefined;
  asset(tag: string): OrderableAsset | undefined;
  stock(code: string): { item: StockItem; variant: StockVariant | undefined } | undefined;
}

/** A line that is accepted, with its price. `setup` and `reset` are 0 where they don't apply. */
export interface OrderedLine {
  readonly itemType: 'PriceCode' | 'Asset' | 'Stock';
  readonly code: string;
  readonly processCode: string | null;
  readonly description: string | null;
  readonly garment: string | null;
  readonly comments: string | null;
  readonly customerReference: string | null;
  readonly quantity: number;
  readonly unitPrice: number;
  readonly setup: number;
  readonly reset: number;
  readonly assetTag: string | null;
  /** The asset of the print; PriceCode lines only. */
  readonly newAsset: {
    readonly attributes: Record<string, string>;
    readonly externalId: string | null;
  } | null;
  readonly artworkUrl: string | null;
  readonly needsArtwork: boolean;
  /** Produced by a supplier, and needs a label. */
  readonly isExternal: boolean;
}

/** Returns the valid lines, and reports errors of the others. */
export function checkLines(
  items: readonly JobLineCandidate[],
  products: ProductLookup,
  report: Report,
): OrderedLine[] {
  if (items.length === 0) {
    report('ItemsEmpty', 'items must have at least one line.');
    return [];
  }
  // First position of each head, built once: orders can have thousands of lines.
  const heads = new Map<string, number>();
  items.forEach(({ groupHead }, index) => {
    if (!blank(groupHead) && !heads.has(groupHead)) heads.set(groupHead, index);
  });
  const someUrl = items.some((line) => line.itemType === 'PriceCode' && !blank(line.externalArtworkUrl));
  const lines: OrderedLine[] = [];
  items.forEach((line, index) => {
    const reportInLine: Report = (errorCode, message) => report(errorCode, `Line ${index + 1}: ${message}`);
    checkGroup(line, index, heads, reportInLine);
    const ordered = checkLine(line, someUrl, products, reportInLine);
    if (ordered) lines.push(ordered);
  });
  return lines;
}

function checkGroup(
  { group, groupHead }: JobLineCandidate,
  index: number,
  heads: ReadonlyMap<string, number>,
  report: Report,
): void {
  if (!blank(groupHead) && heads.get(groupHead) !== index) {
    report(
      'GroupHeadDuplicate',
      `groupHead ${quoted(groupHead)} is used by an earlier line; a group has one head.`,
    );
  }
  if (blank(group)) return;
  if (!blank(groupHead)) {
    report('GroupNested', 'group must be omitted from a line with a groupHead: a head cannot be a child.');
  } else if (!heads.has(group)) {
    report('GroupUnknown', `group must be the groupHead of another line; ${quoted(group)} is not.`);
  }
}

function checkLine(
  line: JobLineCandidate,
  someUrl: boolean,
  products: ProductLookup,
  report: Report,
): OrderedLine | undefined {
  const { itemType, code } = line;
  if (itemType !== 'PriceCode' && itemType !== 'Asset' && itemType !== 'Stock') {
    if (/bill.?of.?material|^bom$|external.?garment/i.test(itemType)) {
      return report(
        'ItemTypeUnsupported',
        `itemType ${quoted(itemType)} cannot be ordered: bills of material and external garments have no documented itemType. Use PriceCode, Asset or Stock.`,
      );
    }
    return report('ItemTypeUnknown', `itemType must be PriceCode, Asset or Stock, not ${quoted(itemType)}.`);
  }
  if (itemType === 'PriceCode') {
    if (blank(line.customerReference)) {
      report('CustomerReferenceMissing', 'customerReference is required for PriceCode lines.');
    }
    checkArtwork(line, someUrl, report);
  }
  if (blank(code)) {
    const meaning = { PriceCode: 'a full price code', Asset: 'an asset tag', Stock: 'a stock code' }[
      itemType
    ];
    return report('CodeMissing', `code is required: ${meaning}, since itemType is ${itemType}.`);
  }
  switch (itemType) {
    case 'PriceCode':
      return checkNewPrint(line, code, products, report);
    case 'Asset':
      return checkReorder(line, code, products, report);
    case 'Stock':
      return checkGoods(line, code, products, report);
  }
}

function checkArtwork({ externalArtworkUrl: url }: JobLineCandidate, someUrl: boolean, report: Report): void {
  if (blank(url)) {
    if (someUrl) {
      report(
        'ArtworkUrlMissing',
        'externalArtworkUrl is required, because other PriceCode lines of the job have one: give it for all of them or for none.',
      );
    }
  } else if (!/^https?:$/.test(URL.parse(url)?.protocol ?? '')) {
    report('ArtworkUrlInvalid', 'externalArtworkUrl must be a whole http or https address.');
  }
}

/** Fields that all kinds of lines copy from the input. */
const sharedFields = ({ customerReference, garment, comment }: JobLineCandidate) => ({
  customerReference: customerReference ?? null,
  garment: garment ?? null,
  comments: comment ?? null,
  assetTag: null,
  newAsset: null,
  artworkUrl: null,
  needsArtwork: false,
  isExternal: false,
  setup: 0,
  reset: 0,
});

function checkNewPrint(
  line: JobLineCandidate,
  code: string,
  products: ProductLookup,
  report: Report,
): OrderedLine | undefined {
  const known = products.priceCode(code, {});
  if (!known)
    return report(
      'PriceCodeUnknown',
      `code must be a price code that the account may order, exactly as in GET /PriceCodes/price-codes, not ${quoted(code)}.`,
    );
  const isSample = line.isSample === true;
  const { values, complete } = checkAttributes(known.attributes ?? [], line.attributes ?? {}, report);
  if (isSample && !known.sampleAvailable) {
    report('SampleUnavailable', `isSample must be omitted: ${quoted(code)} has no sample.`);
  }
  // A missing input has been reported already; without it the code has no price.
  const priced =
    known.hasMetaDataAttributes && complete ? products.priceCode(code, toPriceInputs(values)) : known;
  if (!priced || (known.hasMetaDataAttributes && complete && (priced.priceBands ?? []).length === 0))
    return report('PriceUnavailable', `attributes of ${quoted(code)} have values without a price.`);
  const bands = priced.priceBands ?? [];
  const least = isSample ? 1 : (bands[0]?.from ?? priced.minimumQuantity);
  const quantity = checkQuantity(line.quantity, least, `of ${quoted(code)}`, report);
  const unitPrice = isSample ? priced.samplePrice : unitPriceAt(bands, quantity ?? 0);
  if (quantity === undefined || unitPrice == null) return undefined;
  const url = blank(line.externalArtworkUrl) ? null : line.externalArtworkUrl;
  const attributes: Record<string, string> = {};
  for (const { name, assetAttributeName } of known.attributes ?? []) {
    const value = values[name ?? ''];
    if (assetAttributeName !== null && value !== undefined) attributes[assetAttributeName] = String(value);
  }
  return {
    ...sharedFields(line),
    itemType: 'PriceCode',
    code,
    processCode: priced.processCode,
    description: priced.name ?? priced.description,
    quantity,
    unitPrice,
    setup: isSample ? 0 : (priced.standardSetup ?? 0),
    newAsset: { attributes, externalId: line.externalId ?? null },
    artworkUrl: url,
    needsArtwork: url === null,
    isExternal: priced.externalSupplier !== null,
  };
}

type AttributeValues = Record<string, string | number>;

/** The values of attributes as far as they are right, and whether all are. */
function checkAttributes(
  definitions: readonly ProcessAttribute[],
  given: Readonly<Record<string, unknown>>,
  report: Report,
): { values: AttributeValues; complete: boolean } {
  const values: AttributeValues = {};
  let complete = true;
  const reportAttribute: Report = (errorCode, message) => {
    complete = false;
    report(errorCode, `attributes[${message}`);
  };
  for (const definition of definitions) {
    const name = definition.name ?? '';
    const value = Object.hasOwn(given, name) ? given[name] : undefined;
    if (value === undefined || value === null || value === '') {
      if (definition.required) {
        reportAttribute(
          'AttributeMissing',
          `${quoted(name)}] is required: ${describeAttribute(definition)}.`,
        );
      }
      continue;
    }
    const read = readValue(definition, value, (errorCode, message) =>
      reportAttribute(errorCode, `${quoted(name)}] ${message}`),
    );
    if (read !== undefined) values[name] = read;
  }
  const names = definitions.map(({ name }) => name ?? '');
  for (const key of Object.keys(given)) {
    if (names.includes(key)) continue;
    const meant = names.find((name) => same(name, key));
    const why = meant
      ? `write ${quoted(meant)}, since keys are case-sensitive`
      : names.length > 0
        ? `it has ${names.map(quoted).join(', ')}`
        : 'it has none';
    reportAttribute('AttributeUnknown', `${quoted(key)}] is not an attribute of the price code; ${why}.`);
  }
  return { values, complete };
}

/** Parses the value of an attribute by its type; reports errors and returns undefined. */
function readValue(
  definition: ProcessAttribute,
  value: unknown,
  report: Report,
): string | number | undefined {
  const must = `must be ${describeAttribute(definition)}.`;
  switch (definition.type) {
    case 'int':
    case 'decimal': {
      const number = typeof value === 'string' && /^\s*-?\d+(\.\d+)?\s*$/.test(value) ? Number(value) : value;
      if (typeof number !== 'number' || (definition.type === 'int' && !Number.isInteger(number)))
        return report('AttributeTypeInvalid', must);
      const { minValue = Number.NEGATIVE_INFINITY, maxValue = Number.POSITIVE_INFINITY } = definition;
      if (number < minValue || number > maxValue) return report('AttributeOutOfRange', must);
      return number;
    }
    case 'select':
      if (typeof value !== 'string') return report('AttributeTypeInvalid', must);
      if (!definition.enumerableValues?.some((one) => one.value === value))
        return report('AttributeValueUnknown', must);
      return value;
    case 'text':
    case null: {
      if (typeof value !== 'string') return report('AttributeTypeInvalid', must);
      const { minLength = 0, maxLength = Number.POSITIVE_INFINITY } = definition;
      if (value.length < minLength || value.length > maxLength) return report('AttributeLengthInvalid', must);
      return value;
    }
  }
}

/** Describes the accepted values of an attribute. */
function describeAttribute({ type, enumerableValues, ...limits }: ProcessAttribute): string {
  const between = (least: number | undefined, most: number | undefined) =>
    least !== undefined && most !== undefined
      ? ` from ${least} to ${most}`
      : least !== undefined
        ? ` of at least ${least}`
        : most !== undefined
          ? ` of at most ${most}`
          : '';
  switch (type) {
    case 'int':
      return `an integer${between(limits.minValue, limits.maxValue)}`;
    case 'decimal':
      return `a number${between(limits.minValue, limits.maxValue)}`;
    case 'select':
      return `one of ${(enumerableValues ?? []).map(({ value }) => quoted(value ?? '')).join(', ')}`;
    case 'text':
    case null: {
      const length = between(limits.minLength, limits.maxLength);
      return `a text${length && `${length} characters long`.replace(' of ', ' ')}`;
    }
  }
}

/** Attributes that determine the price: width, height, and for embroidery the stitches. */
function toPriceInputs(values: AttributeValues): PriceInputs {
  const valueFor = (input: keyof typeof INPUT_ATTRIBUTES) => {
    const value = values[INPUT_ATTRIBUTES[input]];
    return value === undefined ? undefined : Number(value);
  };
  return { dgX: valueFor('dgX'), dgY: valueFor('dgY'), stitches: valueFor('stitches') };
}

function checkReorder(
  line: JobLineCandidate,
  code: string,
  products: ProductLookup,
  report: Report,
): OrderedLine | undefined {
  const asset = products.asset(code);
  if (!asset)
    return report(
      'AssetUnknown',
      `code must be the tag of one of the account's assets, not ${quoted(code)}.`,
    );
  if (asset.isArchived)
    return report('AssetArchived', `asset ${quoted(code)} is archived and cannot be ordered any more.`);
  const { bands } = asset;
  if (!bands[0])
    return report(
      'AssetNotOrderable',
      `asset ${quoted(code)} has no price; order it by a price code instead.`,
    );
  const quantity = checkQuantity(line.quantity, bands[0].from, `of asset ${quoted(code)}`, report);
  const unitPrice = unitPriceAt(bands, quantity ?? 0);
  if (quantity === undefined || unitPrice === undefined) return undefined;
  return {
    ...sharedFields(line),
    itemType: 'Asset',
    code,
    processCode: asset.processCode,
    description: asset.description,
    garment: line.garment ?? asset.garment,
    quantity,
    unitPrice,
    reset: asset.reset,
    assetTag: asset.assetTag,
  };
}

/** Maximum quantity of a line: 32 bits. */
const MOST_UNITS = 2 ** 31 - 1;

function checkGoods(
  line: JobLineCandidate,
  code: string,
  products: ProductLookup,
  report: Report,
): OrderedLine | undefined {
  const stock = products.stock(code);
  if (!stock)
    return report(
      'StockUnknown',
      `code must be a stock code or variant code of GET /Stock, not ${quoted(code)}.`,
    );
  const variant = findVariant(line, stock, report);
  const sizes = Object.entries(line.sizeQuantities ?? {});
  if (sizes.length === 0) {
    const run = variant ? `: ${variant.sizesCsv}` : '';
    return report('SizesMissing', `sizeQuantities must give the quantity of each size of the variant${run}.`);
  }
  let amiss = false;
  const run = variant?.sizesCsv.split(',').map((size) => size.trim()) ?? [];
  for (const [size, count] of sizes) {
    if (variant && !run.includes(size)) {
      report(
        'SizeUnknown',
        `sizeQuantities must have keys of ${variant.sizesCsv}, which ${quoted(size)} is not.`,
      );
      amiss = true;
    }
    if (count < 0) {
      report('SizeQuantityInvalid', `sizeQuantities[${quoted(size)}] must be at least 0, not ${count}.`);
      amiss = true;
    }
  }
  if (amiss || !variant) return undefined;
  const { item } = stock;
  const total = sizes.reduce((sum, [, count]) => sum + count, 0);
  if (total > MOST_UNITS)
    return report(
      'QuantityTooLarge',
      `sizeQuantities must add up to at most ${MOST_UNITS} of ${quoted(code)}, not ${total}.`,
    );
  const least = item.priceBands[0]?.from ?? 1;
  const quantity = checkQuantity(total, least, `of ${quoted(code)} in all sizes`, report);
  const unitPrice = unitPriceAt(item.priceBands, quantity ?? 0);
  if (quantity === undefined || unitPrice === undefined) return undefined;
  return {
    ...sharedFields(line),
    itemType: 'Stock',
    code,
    processCode: item.processCode,
    description: [item.stockName, variant.colour].filter(Boolean).join(', '),
    comments: line.comment ?? sizes.map(([size, count]) => `${size}: ${count}`).join(', '),
    quantity,
    unitPrice,
  };
}

/** The variant, by `variantCode`, by the code itself, or the only one. */
function findVariant(
  { variantCode, code }: JobLineCandidate,
  { item, variant }: { item: StockItem; variant: StockVariant | undefined },
  report: Report,
): StockVariant | undefined {
  const codes = item.stockVariants.map((one) => one.variantCode).join(', ');
  if (!blank(variantCode)) {
    const named = item.stockVariants.find((one) => one.variantCode === variantCode);
    if (named && (!variant || variant === named)) return named;
    const must = variant ? `${variant.variantCode}, as code ${quoted(code ?? '')} is,` : `one of ${codes}`;
    return report('VariantUnknown', `variantCode must be ${must} not ${quoted(variantCode)}.`);
  }
  const only = item.stockVariants.length === 1 ? item.stockVariants[0] : undefined;
  if (!variant && !only) report('VariantMissing', `variantCode is required: one of ${codes}.`);
  return variant ?? only;
}

/** Checks a quantity against its minimum; reports errors and returns undefined. */
function checkQuantity(
  quantity: number | undefined,
  least: number,
  of: string,
  report: Report,
): number | undefined {
  if (quantity === undefined)
    return report('QuantityMissing', `quantity is required: at least ${least} ${of}.`);
  if (quantity < least)
    return report('QuantityBelowMinimum', `quantity must be at least ${least} ${of}, not ${quantity}.`);
  return quantity;
}
