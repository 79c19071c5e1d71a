// Stock of a region: items with their descriptions, prices and shipping.

import type { PriceBand } from '../../shared/ordering/contract/common.ts';
import type {
  StandaloneShippingConfig,
  StockItem,
  StockVariant,
} from '../../shared/ordering/contract/stock.ts';
import { TIER_PERCENT } from './catalogue.ts';
import { DAY_MS } from './dates.ts';
import { listDeliveryOptions } from './delivery.ts';
import type { PriceTier } from './records.ts';
import { LOCATIONS, type RegionCode } from './regions.ts';

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

/** Differences between regions. */
interface Trade {
  /** Of the first stock item. */
  readonly firstId: number;
  /** Price level, in percent of the US prices. */
  readonly pricePercent: number;
  /** Home first. */
  readonly markets: readonly [string, string, string];
  readonly metric: boolean;
  readonly grey: string;
  readonly mains: string;
  /** A locale of each place that ships, and its country. */
  readonly locales: readonly (readonly [locale: string, countryCodeIso2: string])[];
}

const TRADES: Record<RegionCode, Trade> = {
  us: {
    firstId: 7001,
    pricePercent: 100,
    markets: ['US', 'CA', 'MX'],
    metric: false,
    grey: 'gray',
    mains: '110 V',
    locales: [
      ['en-US', 'US'],
      ['en-US', 'US'],
    ],
  },
  nz: {
    firstId: 7101,
    pricePercent: 165,
    markets: ['NZ', 'FJ', 'WS'],
    metric: true,
    grey: 'grey',
    mains: '230 V',
    locales: [['en-NZ', 'NZ']],
  },
  au: {
    firstId: 7201,
    pricePercent: 152,
    markets: ['AU', 'NZ', 'PG'],
    metric: true,
    grey: 'grey',
    mains: '240 V',
    locales: [
      ['en-AU', 'AU'],
      ['en-AU', 'AU'],
    ],
  },
  uk: {
    firstId: 7301,
    pricePercent: 82,
    markets: ['GB', 'IE', 'JE'],
    metric: true,
    grey: 'grey',
    mains: '230 V',
    locales: [['en-GB', 'GB']],
  },
  eu: {
    firstId: 7401,
    pricePercent: 94,
    markets: ['NL', 'DE', 'FR'],
    metric: true,
    grey: 'grey',
    mains: '230 V',
    locales: [['nl-NL', 'NL']],
  },
};

/** Shipping plan of an item; `buildConfigs` converts plans to configs. */
type Plan = 'home' | 'worldwide' | 'freight' | 'flat' | 'free' | 'asleep' | 'partly' | 'none';

/** Items of all regions, before conversion to a region. */
interface Ware {
  readonly code: string;
  readonly name: string;
  readonly supplier: string | null;
  readonly category: string;
  readonly unit: string;
  readonly process: string;
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

const ADULT = 'XS,S,M,L,XL,2XL,3XL';
const YOUTH = '6,8,10,12,14';
const ONE_SIZE = 'OSFA';
const EQUIPMENT = 'Qty';
const TEE_BOX = [32, 26, 4] as const;
const PARCEL = [40, 32, 10] as const;

const WARES: readonly Ware[] = [
  {
    code: 'NL-STAPLE',
    name: 'Northloom Staple Tee',
    supplier: 'Northloom',
    category: 'T-shirts',
    unit: 'EA',
    process: 'STK',
    about: 'The tee that most of our customers print on: ring-spun cotton, side seams, no label to cut out.',
    specifications: '100% cotton, 180 g/m²; wash at 40 °C; press at 150 °C.',
    lookup: 'TEE-CORE',
    variants: {
      'NL-STAPLE-BLK': 'Black',
      'NL-STAPLE-WHT': 'White',
      'NL-STAPLE-NVY': 'Navy',
      'NL-STAPLE-HGR': 'Heather {grey}',
    },
    sizes: ADULT,
    bands: { 1: 620, 24: 540, 72: 480, 288: 430 },
    views: ['front', 'back', 'label'],
    badges: ['Best seller', 'Organic'],
    counted: true,
    plan: 'worldwide',
    weight: 0.18,
    box: TEE_BOX,
    seo: true,
  },
  {
    code: 'NL-STAPLE-V1',
    name: 'Northloom Staple Tee, first cut',
    supplier: 'Northloom',
    category: 'T-shirts',
    unit: 'EA',
    process: 'STK',
    about: 'The cut before the present one. Listed so that old orders can be read.',
    lookup: 'TEE-CORE',
    variants: { 'NL-STAPLE-BLK': 'Black', 'NL-STAPLE-V1-RED': 'Red' },
    sizes: ADULT,
    bands: { 1: 590, 24: 510 },
    plan: 'home',
    weight: 0.19,
    box: TEE_BOX,
    archived: true,
  },
  {
    code: 'NL-HEAVY',
    name: 'Northloom Heavy Hood',
    supplier: 'Northloom',
    category: 'Hoods and sweats',
    unit: 'EA',
    process: 'STK',
    about: 'A heavy hood with a lined cap and a pocket that lies flat under the press.',
    specifications: '80% cotton, 20% polyester, 350 g/m²; press at 155 °C.',
    variants: { 'NL-HEAVY-NVY': 'Navy', 'NL-HEAVY-BLK': 'Black', 'NL-HEAVY-FOR': 'Forest' },
    sizes: ADULT,
    bands: { 1: 2450, 12: 2190, 48: 1980 },
    views: ['front', 'back'],
    counted: true,
    plan: 'worldwide',
    weight: 0.62,
    box: PARCEL,
    seo: true,
  },
  {
    code: 'KF-POLO',
    name: 'Kestrel & Fern Polo',
    supplier: 'Kestrel & Fern',
    category: 'Polos',
    unit: 'EA',
    process: 'STK',
    about: 'A work polo that keeps its collar.',
    specifications: '65% polyester, 35% cotton, 210 g/m².',
    variants: { 'KF-POLO-WHT': 'White', 'KF-POLO-CHA': 'Charcoal' },
    sizes: 'S,M,L,XL,2XL,3XL,5XL',
    bands: { 6: 1480, 36: 1320, 144: 1190 },
    views: ['front', 'collar'],
    badges: ['Workwear'],
    counted: true,
    plan: 'partly',
    weight: 0.26,
    box: TEE_BOX,
  },
  {
    code: 'KF-SHELL',
    name: 'Kestrel & Fern Softshell',
    supplier: 'Kestrel & Fern',
    category: 'Jackets',
    unit: 'EA',
    process: 'STK',
    about: 'Three layers, two zips, one chest panel that takes a transfer.',
    specifications: 'Polyester shell; press at 130 °C with a pad.',
    variants: { 'KF-SHELL-CHA': 'Charcoal', 'KF-SHELL-BLK': 'Black' },
    sizes: ADULT,
    bands: { 1: 4290, 12: 3890 },
    views: ['front', 'back', 'chest panel', 'inside'],
    badges: ['New'],
    plan: 'home',
    weight: 0.71,
    box: PARCEL,
  },
  {
    code: 'OR-5001',
    name: 'Oakridge 5001 Tee',
    supplier: 'Oakridge',
    category: 'T-shirts',
    unit: 'EA',
    process: 'STK',
    about: 'A plain tee for events, in the colours that clubs ask for.',
    specifications: '100% cotton, 150 g/m².',
    lookup: 'TEE-CORE',
    variants: {
      'OR-5001-HGR': 'Heather {grey}',
      'OR-5001-RED': 'Red',
      'OR-5001-GLD': 'Gold',
      'OR-5001-ROY': 'Royal',
      'OR-5001-WHT': 'White',
    },
    sizes: 'S,M,L,XL,2XL',
    bands: { 12: 390, 72: 340, 288: 295, 1000: 260 },
    views: ['front'],
    badges: ['Value'],
    counted: true,
    plan: 'worldwide',
    weight: 0.15,
    box: TEE_BOX,
    seo: true,
  },
  {
    code: 'OR-YOUTH',
    name: 'Oakridge Youth Tee',
    supplier: 'Oakridge',
    category: 'T-shirts',
    unit: 'EA',
    process: 'STK',
    about: 'The 5001 for those who are still growing.',
    lookup: 'TEE-CORE',
    variants: { 'OR-YOUTH-ROY': 'Royal', 'OR-YOUTH-WHT': 'White' },
    sizes: YOUTH,
    bands: { 12: 360, 72: 310 },
    views: ['front'],
    plan: 'home',
    weight: 0.11,
    box: TEE_BOX,
  },
  {
    code: 'BS-VEST',
    name: 'Brightside Hi-Vis Vest',
    supplier: 'Brightside',
    category: 'Safety wear',
    unit: 'EA',
    process: 'STK',
    about: 'Two reflective bands and a back that is free for a print.',
    specifications: '100% polyester; press at 120 °C at most.',
    variants: { 'BS-VEST-YEL': 'Yellow', 'BS-VEST-ORA': 'Orange' },
    sizes: 'S/M,L/XL,2XL/3XL',
    bands: { 5: 890, 50: 760 },
    views: ['front', 'back'],
    badges: ['Safety'],
    plan: 'home',
    weight: 0.16,
    box: TEE_BOX,
  },
  {
    code: 'SL-BEANIE',
    name: 'Summit Loop Beanie',
    supplier: 'Summit Loop',
    category: 'Headwear',
    unit: 'EA',
    process: 'STK',
    about: 'A cuffed beanie with room for a woven or printed badge.',
    variants: { 'SL-BEANIE-FOR': 'Forest', 'SL-BEANIE-BLK': 'Black', 'SL-BEANIE-MUS': 'Mustard' },
    sizes: ONE_SIZE,
    bands: { 1: 790, 24: 690 },
    views: ['front'],
    plan: 'free',
    weight: 0.08,
    box: [20, 20, 5],
  },
  {
    code: 'MC-TOTE',
    name: 'Marlow Canvas Tote',
    supplier: 'Marlow',
    category: 'Bags',
    unit: 'EA',
    process: 'STK',
    about: 'A canvas tote that stands by itself.',
    specifications: '100% cotton canvas, 340 g/m²; 38 × 42 cm.',
    variants: { 'MC-TOTE-NAT': 'Natural', 'MC-TOTE-BLK': 'Black' },
    sizes: ONE_SIZE,
    bands: { 1: 540, 50: 450, 250: 395 },
    views: ['front', 'handles'],
    badges: ['Organic', 'Plastic free'],
    counted: true,
    plan: 'worldwide',
    weight: 0.21,
    box: [42, 38, 3],
    seo: true,
  },
  {
    code: 'MC-APRON',
    name: 'Marlow Apron',
    supplier: 'Marlow',
    category: 'Aprons',
    unit: 'EA',
    process: 'STK',
    about: 'A bib apron with a pen pocket.',
    variants: { 'MC-APRON-BLK': 'Black', 'MC-APRON-DEN': 'Denim' },
    sizes: ONE_SIZE,
    bands: { 1: 1150, 24: 990 },
    views: ['front'],
    plan: 'home',
    weight: 0.3,
    box: TEE_BOX,
  },
  {
    code: 'MC-APRON-PK6',
    name: 'Marlow Apron, pack of six',
    supplier: 'Marlow',
    category: 'Aprons',
    unit: 'PK',
    process: 'STK',
    about: 'Six aprons of one colour.',
    variants: { 'MC-APRON-BLK': 'Black' },
    sizes: ONE_SIZE,
    bands: { 1: 5900, 10: 5400 },
    views: ['stack'],
    plan: 'home',
    weight: 1.9,
    box: PARCEL,
  },
  {
    code: 'CW-RASH',
    name: 'Castaway Rash Vest',
    supplier: 'Castaway',
    category: 'Sportswear',
    unit: 'EA',
    process: 'STK',
    about: 'For surf clubs. Between two makers at the moment: it ships nowhere until the new one delivers.',
    variants: { 'CW-RASH-TEA': 'Teal' },
    sizes: ADULT,
    bands: { 10: 1890 },
    views: ['front', 'back'],
    plan: 'asleep',
    weight: 0.2,
    box: TEE_BOX,
  },
  {
    code: 'HP-4050',
    name: 'Anvil 40 heat press, {mains}',
    supplier: 'Anvil Works',
    category: 'Heat presses',
    unit: 'EA',
    process: 'EQP',
    about: 'A clamshell press of 40 × 50 cm with a drawer. Comes on a pallet.',
    specifications: '2.1 kW, {mains}; 0–220 °C; 41 kg.',
    variants: { 'HP-4050': null },
    sizes: EQUIPMENT,
    bands: { 1: 149_900, 3: 139_900 },
    views: ['front', 'open', 'display'],
    badges: ['Two-year warranty'],
    plan: 'freight',
    weight: 41,
    box: [78, 52, 61],
    seo: true,
  },
  {
    code: 'HP-CAP',
    name: 'Anvil Cap press, {mains}',
    supplier: 'Anvil Works',
    category: 'Heat presses',
    unit: 'EA',
    process: 'EQP',
    about: 'A small press with curved platens for caps.',
    specifications: '0.6 kW, {mains}; 14 kg.',
    variants: { 'HP-CAP': null },
    sizes: EQUIPMENT,
    bands: { 1: 64_900 },
    views: ['front', 'platens'],
    plan: 'freight',
    weight: 14,
    box: [46, 38, 40],
  },
  {
    code: 'HP-3838',
    name: 'Anvil 38 heat press',
    supplier: 'Anvil Works',
    category: 'Heat presses',
    unit: 'EA',
    process: 'EQP',
    about: 'Discontinued. Pads and platens are still available.',
    variants: { 'HP-3838': null },
    sizes: EQUIPMENT,
    bands: { 1: 99_900 },
    plan: 'freight',
    weight: 28,
    box: [70, 48, 50],
    archived: true,
  },
  {
    code: 'HP-PAD',
    name: 'Silicone pad for Anvil presses',
    supplier: 'Anvil Works',
    category: 'Press parts',
    unit: 'EA',
    process: 'EQP',
    about: 'Evens out seams and zips.',
    variants: { 'HP-PAD': null },
    sizes: EQUIPMENT,
    bands: { 1: 3900, 5: 3400 },
    views: ['pad'],
    plan: 'flat',
    weight: 1.1,
    box: [52, 42, 2],
  },
  {
    code: 'CO-SHEET',
    name: 'Non-stick cover sheets',
    supplier: 'Second Press',
    category: 'Consumables',
    unit: 'PK',
    process: 'STK',
    about: 'Reusable cover sheets, ten to a pack.',
    specifications: 'Up to 230 °C; about 300 presses each.',
    variants: { 'CO-SHEET': null },
    sizes: EQUIPMENT,
    bands: { 1: 1850, 10: 1590, 40: 1420 },
    views: ['pack'],
    counted: true,
    plan: 'flat',
    weight: 0.4,
    box: [50, 40, 2],
  },
  {
    code: 'CO-TAPE',
    name: 'Heat tape, 10 mm',
    supplier: 'Second Press',
    category: 'Consumables',
    unit: 'ROLL',
    process: 'STK',
    about: 'Holds a transfer where it is and leaves nothing behind.',
    variants: { 'CO-TAPE-CLR': 'Clear', 'CO-TAPE-BLU': 'Blue' },
    sizes: EQUIPMENT,
    bands: { 1: 690, 12: 560 },
    views: ['roll'],
    badges: ['Add-on'],
    counted: true,
    plan: 'free',
    weight: 0.09,
    box: [10, 10, 2],
  },
  {
    code: 'CO-WASH',
    name: 'Screen and platen cleaner',
    supplier: 'Second Press',
    category: 'Consumables',
    unit: 'BOX',
    process: 'STK',
    about: 'A litre each, six to a box. Goes by road only.',
    specifications: 'Safety data sheet on request.',
    variants: { 'CO-WASH': null },
    sizes: EQUIPMENT,
    bands: { 1: 7400, 4: 6800 },
    views: ['bottle', 'box'],
    badges: ['By road only'],
    plan: 'freight',
    weight: 6.8,
    box: [30, 20, 25],
  },
  {
    code: 'CO-SWATCH',
    name: 'Swatch book',
    supplier: null,
    category: 'Consumables',
    unit: 'EA',
    process: 'STK',
    about: 'Every film and ink we print with, on cloth.',
    variants: { 'CO-SWATCH': null },
    sizes: EQUIPMENT,
    bands: { 1: 0 },
    plan: 'none',
    weight: 0.3,
    box: [22, 16, 3],
  },
  {
    code: 'PB-SLEEVE',
    name: 'Porchlight Can Sleeve',
    supplier: 'Porchlight',
    category: 'Drinkware',
    unit: 'EA',
    process: 'STK',
    about: 'Keeps a can cold and a logo in sight.',
    variants: { 'PB-SLEEVE-BLK': 'Black', 'PB-SLEEVE-RED': 'Red' },
    sizes: ONE_SIZE,
    bands: { 50: 110, 250: 85, 1000: 69 },
    views: ['front'],
    counted: true,
    plan: 'home',
    weight: 0.03,
    box: [14, 10, 1],
    only: 'us',
  },
  {
    code: 'TK-MERINO',
    name: 'Tussock Merino Tee',
    supplier: 'Tussock',
    category: 'T-shirts',
    unit: 'EA',
    process: 'STK',
    about: 'Merino for those who work outside.',
    specifications: '100% merino, 190 g/m²; press at 130 °C.',
    variants: { 'TK-MERINO-CHA': 'Charcoal', 'TK-MERINO-FOR': 'Forest' },
    sizes: ADULT,
    bands: { 1: 2900, 24: 2600 },
    views: ['front'],
    badges: ['Local'],
    counted: true,
    plan: 'worldwide',
    weight: 0.19,
    box: TEE_BOX,
    only: 'nz',
  },
  {
    code: 'SB-BRIM',
    name: 'Saltbush Wide Brim Hat',
    supplier: 'Saltbush',
    category: 'Headwear',
    unit: 'EA',
    process: 'STK',
    about: 'Shade for a whole working day.',
    variants: { 'SB-BRIM-SND': 'Sand', 'SB-BRIM-NVY': 'Navy' },
    sizes: 'S/M,L/XL',
    bands: { 6: 1350, 48: 1190 },
    views: ['front'],
    badges: ['UPF 50+'],
    counted: true,
    plan: 'worldwide',
    weight: 0.14,
    box: PARCEL,
    only: 'au',
  },
  {
    code: 'PK-RUGBY',
    name: 'Pennine Rugby Shirt',
    supplier: 'Pennine',
    category: 'Sportswear',
    unit: 'EA',
    process: 'STK',
    about: 'A proper collar, rubber buttons and a back that takes a number.',
    variants: { 'PK-RUGBY-NVY': 'Navy', 'PK-RUGBY-GRN': 'Bottle green' },
    sizes: ADULT,
    bands: { 1: 2650, 15: 2380 },
    views: ['front'],
    counted: true,
    plan: 'partly',
    weight: 0.42,
    box: PARCEL,
    only: 'uk',
  },
  {
    code: 'PD-BIB',
    name: 'Polder Bib Overall',
    supplier: 'Polder',
    category: 'Workwear',
    unit: 'EA',
    process: 'STK',
    about: 'Many pockets; one of them is flat enough to print on.',
    specifications: 'EN 13688',
    variants: { 'PD-BIB-NVY': 'Navy', 'PD-BIB-GRY': '{grey}' },
    sizes: '44,46,48,50,52,54,56,58',
    bands: { 1: 3950, 20: 3600 },
    views: ['front'],
    counted: true,
    plan: 'home',
    weight: 0.9,
    box: PARCEL,
    only: 'eu',
  },
  {
    code: 'NL-PROTO',
    name: 'Northloom Staple Tee, trial colours',
    supplier: 'Northloom',
    category: 'T-shirts',
    unit: 'EA',
    process: 'STK',
    about: 'Not for sale yet.',
    variants: { 'NL-STAPLE-BLK': 'Black', 'NL-PROTO-LIL': 'Lilac' },
    sizes: ADULT,
    bands: { 1: 620 },
    views: ['front'],
    plan: 'home',
    weight: 0.18,
    box: TEE_BOX,
    hidden: true,
  },
  {
    code: 'BS-RAIN',
    name: 'Brightside Rain Jacket',
    supplier: 'Brightside',
    category: 'Safety wear',
    unit: 'EA',
    process: 'STK',
    about: 'Withdrawn while its seams are looked into.',
    variants: { 'BS-RAIN-YEL': 'Yellow' },
    sizes: ADULT,
    bands: { 1: 3600 },
    plan: 'home',
    weight: 0.5,
    box: PARCEL,
    archived: true,
    hidden: true,
  },
];

/** Generates the stock of a region. */
function generateStock(region: RegionCode): StockRecord[] {
  const trade = TRADES[region];
  const local = (text: string) => text.replaceAll('{grey}', trade.grey).replaceAll('{mains}', trade.mains);
  return WARES.filter(({ only = region }) => only === region).map((ware, index) => {
    const stockItemId = trade.firstId + index;
    const name = local(ware.name);
    return {
      stockItemId,
      supplier: ware.supplier,
      categoryName: ware.category,
      categoryUnitId: ware.unit,
      stockCode: ware.code,
      processCode: ware.process,
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
  const trade = TRADES[region];
  const { metric } = trade;
  const locations = LOCATIONS[region].map(({ code, name }, index) => ({
    locationCode: code,
    locationName: name,
    locale: trade.locales[index]?.[0] ?? null,
    shipFromCity: name,
    shipFromCountryCodeIso2: trade.locales[index]?.[1] ?? null,
  }));
  const [ground, express] = shippingMethods(region);
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
  const made = (
    markets: string[],
    shipmentTypeOptions: StandaloneShippingConfig['shipmentTypeOptions'],
    rest: Partial<StandaloneShippingConfig> = {},
  ): Partial<StandaloneShippingConfig> => ({ markets, shipmentTypeOptions, ...rest });

  const configs = {
    home: [made([home], [byRoad(null), fast(null)])],
    worldwide: [
      made([home], [byRoad(0), fast(null)], { estimatedLeadDays: 1 }),
      made([abroad, far], [fast(null)], { shipMode: 'International', estimatedLeadDays: 6 }),
    ],
    freight: [
      made([home, abroad], [byRoad(null)], {
        shipMode: 'Freight',
        groundOnly: true,
        fixedShipping: local(8500),
        estimatedLeadDays: 10,
      }),
    ],
    flat: [made([home, abroad], [fast(local(1450)), byRoad(local(690))], { estimatedLeadDays: null })],
    free: [made([home], [byRoad(0)], { estimatedLeadDays: null })],
    asleep: [made([home], [byRoad(null)], { active: false })],
    partly: [
      made([home], [byRoad(null), fast(local(1200))]),
      made([abroad], [fast(null)], { active: false, shipMode: 'International', estimatedLeadDays: 8 }),
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

/** The region's delivery methods by road and in a hurry. */
function shippingMethods(region: RegionCode): [ShippingMethod, ShippingMethod] {
  const [ground, ...others] = listDeliveryOptions(region)
    .filter(({ isCollection }) => !isCollection)
    .map(({ code, label }) => ({ code: code ?? '', name: label }));
  const express = others.find(({ code }) => code === 'EXPRESS');
  if (!ground || !express) throw new Error(`No delivery methods in ${region}`);
  return [ground, express];
}

type ShippingMethod = Omit<StandaloneShippingConfig['shipmentTypeOptions'][number], 'price'>;

const FIRST_CONFIG_MS = Date.parse('2025-02-03T08:30:00Z');
