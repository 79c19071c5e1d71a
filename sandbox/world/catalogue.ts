// Processes, price codes, and prices by region and tier of the simulated print service.

import type { PriceBand } from '../../shared/ordering/contract/common.ts';
import type { ProcessCode } from '../../shared/ordering/contract/lookups.ts';
import type {
  PriceCode,
  PricingProcess,
  ProcessAttribute,
} from '../../shared/ordering/contract/price-codes.ts';
import type { AccountFacts, PriceTier } from './records.ts';
import type { RegionCode } from './regions.ts';

/*
 * Where the contract is silent, the sandbox chose:
 *
 * - Prices are the US prices at tier T2 times a factor for the region and one for the tier (T1 is highest, T3 lowest), rounded
 *   half up to two decimals. Setup, reset and sample prices depend on the tier too.
 * - A process that the account may not order is in no list; its codes answer as codes that do not exist. An inactive process is
 *   in the list of processes (`active` false); its codes answer as codes that do not exist. Accounts of tier T1 may not order
 *   badges by default; `withheldProcesses` of an account overrides this.
 * - Price codes are case-sensitive.
 * - A code priced by dimensions has the attributes `DG-X` and `DG-Y`, one priced by stitches `Stitches`; they are required and
 *   have `isMetaDataAttribute`. The list omits these codes. Without these numbers, or with numbers outside the attribute's
 *   range, there is no price: 400 with `errors` by parameter. With them, `sizeWidth` and `sizeHeight` are the dimensions. Other
 *   codes ignore dgX, dgY and stitches.
 * - The price by dimensions grows with the area, the price by stitches with each started thousand.
 * - `samplePrice` and `sampleLabel` are absent if no sample is available; all other fields are always present.
 * - `masterProcessCode` is the process itself unless the process maps to another one.
 */

export { findCountry as countryOf, listStates as statesOf } from './countries.ts';

/** Inputs of a metadata-priced code: dimensions in `sizeUnit`, or the number of stitches. */
export interface PriceInputs {
  readonly dgX?: number | undefined;
  readonly dgY?: number | undefined;
  readonly stitches?: number | undefined;
}

/** Attribute name of each price input. */
export const INPUT_ATTRIBUTES = { dgX: 'DG-X', dgY: 'DG-Y', stitches: 'Stitches' } as const;

/**
 * The price code at the account's tier; undefined if it does not exist or the account may not order its process. `priceBands`
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
  return [...PROCESSES, ...GOODS].map(({ code, description, metadata }, index) => ({
    processCode: code,
    description: spelled(description, region),
    rank: index + 1,
    metadata,
  }));
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

interface Process {
  readonly code: string;
  readonly description: string;
  readonly tooltip: string | null;
  readonly active: boolean;
  readonly colour: string;
  /** The master process, if it is a different one. */
  readonly master?: string;
  /** The largest sheet: in the US, elsewhere. */
  readonly sheet?: readonly [Size, Size];
  readonly metadata: ProcessCode['metadata'];
}

const PRINTED = {
  setupApplies: true,
  resetApplies: true,
  scheduleable: true,
  physicalStockRequired: false,
  printable: true,
};

/** The printed print, in US spelling. */
const PROCESSES: readonly Process[] = [
  {
    code: 'UC',
    description: 'Spot color transfers',
    tooltip: 'Up to three solid colors, matched to your swatches.',
    active: true,
    colour: '#1f6feb',
    sheet: [
      ['in', 12, 16],
      ['cm', 30, 40],
    ],
    metadata: PRINTED,
  },
  {
    code: 'DTF',
    description: 'Digital film transfers',
    tooltip: 'Full color with gradients, no setup.',
    active: true,
    colour: '#d6336c',
    sheet: [
      ['in', 22, 60],
      ['cm', 56, 150],
    ],
    metadata: { ...PRINTED, setupApplies: false },
  },
  {
    code: 'GSH',
    description: 'Digital film gang sheets',
    tooltip: 'Your own layout on a whole sheet.',
    active: true,
    colour: '#ae3ec9',
    master: 'DTF',
    sheet: [
      ['in', 22, 120],
      ['cm', 56, 300],
    ],
    metadata: { ...PRINTED, setupApplies: false, resetApplies: false },
  },
  {
    code: 'SCR',
    description: 'Screen-printed transfers',
    tooltip: 'For long runs.',
    active: true,
    colour: '#e8590c',
    sheet: [
      ['in', 12.5, 19],
      ['cm', 32, 46],
    ],
    metadata: { ...PRINTED, resetApplies: false },
  },
  {
    code: 'VIN',
    description: 'Cut vinyl names and numbers',
    tooltip: null,
    active: true,
    colour: '#2b8a3e',
    sheet: [
      ['in', 15, 36],
      ['mm', 380, 900],
    ],
    metadata: { ...PRINTED, setupApplies: false },
  },
  {
    code: 'EMB',
    description: 'Embroidered badges',
    tooltip: 'Produced by a partner.',
    active: true,
    colour: '#f08c00',
    metadata: { ...PRINTED, resetApplies: false, scheduleable: false, printable: false },
  },
  {
    code: 'PUF',
    description: 'Puff relief transfers',
    tooltip: 'Not available at present.',
    active: false,
    colour: '#868e96',
    sheet: [
      ['in', 11, 11],
      ['cm', 28, 28],
    ],
    metadata: PRINTED,
  },
];

/** Goods sold without a print. */
const GOODS: readonly Pick<Process, 'code' | 'description' | 'metadata'>[] = ['STK', 'EQP'].map((code) => ({
  code,
  description: code === 'STK' ? 'Stocked goods' : 'Equipment',
  metadata: {
    setupApplies: false,
    resetApplies: false,
    scheduleable: false,
    physicalStockRequired: true,
    printable: false,
  },
}));

const CATEGORIES = {
  HT: 'Heat transfers',
  GS: 'Gang sheets',
  CV: 'Cut vinyl',
  BD: 'Badges',
} as const;

/** An article of one region, priced in US cents at tier T2. */
interface Ware {
  readonly code: string;
  readonly name: string;
  readonly description: string;
  readonly process: string;
  readonly category: keyof typeof CATEGORIES;
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

const LADDERS = {
  single: [
    [1, 100],
    [10, 88],
    [25, 76],
    [50, 66],
    [100, 57],
    [250, 50],
  ],
  dozens: [
    [12, 100],
    [24, 84],
    [48, 70],
    [100, 58],
    [250, 49],
    [500, 43],
  ],
  runs: [
    [25, 100],
    [50, 78],
    [100, 62],
    [250, 51],
    [500, 44],
    [1000, 38],
  ],
  sheets: [
    [1, 100],
    [5, 93],
    [10, 87],
    [25, 80],
  ],
} as const satisfies Record<string, Ladder>;

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

const text = (
  name: string,
  label: string,
  more: Partial<ProcessAttribute> & { minLength: number; maxLength: number },
): ProcessAttribute => ({ ...ATTRIBUTE, name, type: 'text', label, ...more });

const number = (
  type: 'int' | 'decimal',
  name: string,
  label: string,
  more: Partial<ProcessAttribute> & { minValue: number; maxValue: number },
): ProcessAttribute => ({ ...ATTRIBUTE, name, type, label, ...more });

/** A choice; the first value is chosen at first. */
const choice = (
  name: string,
  label: string,
  values: Readonly<Record<string, string>>,
  more: Partial<ProcessAttribute> = {},
): ProcessAttribute => ({
  ...ATTRIBUTE,
  name,
  type: 'select',
  label,
  enumerableValues: Object.entries(values).map(([value, shown], index) => ({
    value,
    text: shown,
    selected: index === 0,
  })),
  ...more,
});

const ATTRIBUTE = {
  description: null,
  required: false,
  isMetaDataAttribute: false,
  enumerableValues: null,
  assetAttributeName: null,
};

/** The whole catalogue of a region, spelled as in the US. */
function makeWares(region: RegionCode): readonly Ware[] {
  const us = region === 'us';
  /** A size: its name in the region, and its printable geometry. */
  const sized = (imperial: readonly [string, Size], metric: readonly [string, Size]) =>
    us ? imperial : metric;
  const garmentColor = choice(
    'Garment Color',
    'Color of the garment',
    { LIGHT: 'Light', DARK: 'Dark', MIXED: 'Light and dark' },
    { assetAttributeName: 'GarmentShade' },
  );
  const placement = text('Placement', 'Where it goes', {
    description: 'Printed on the packing slip.',
    minLength: 0,
    maxLength: 40,
  });

  const spot = [
    sized(['4" x 4"', ['in', 3.75, 3.75]], ['10cm x 10cm', ['cm', 9.5, 9.5]]),
    sized(['11" x 11"', ['in', 10.75, 10.75]], ['28cm x 28cm', ['cm', 27.4, 27.4]]),
    sized(['12" x 16"', ['in', 11.75, 15.75]], ['30cm x 40cm', ['cm', 29.6, 39.6]]),
  ].flatMap(([size, geometry], sizeAt) =>
    [1, 2, 3].map(
      (colors): Ware => ({
        code: `UC:${size}:${colors} Color${colors > 1 ? 's' : ''}`,
        name: `Spot color ${size}, ${colors} color${colors > 1 ? 's' : ''}`,
        description: `Spot color transfer up to ${size}, printed in ${colors} solid color${colors > 1 ? 's' : ''}.`,
        process: 'UC',
        category: 'HT',
        size: geometry,
        setup: 1500 * colors,
        reset: 600 * colors,
        ...(colors === 1 && { sample: ['One printed sample', 950] as const }),
        attributes: [
          number('int', 'Color Count', 'How many colors', {
            description: 'White counts as a color.',
            required: true,
            minValue: 1,
            maxValue: colors,
          }),
          text('Ink Colors', 'Ink colors', {
            description: 'Names or swatch numbers, separated by commas.',
            minLength: 2,
            maxLength: 80,
            assetAttributeName: 'InkColors',
          }),
          garmentColor,
          placement,
        ],
        ladder: LADDERS.dozens,
        cents: Math.round(([75, 235, 330][sizeAt] ?? 0) * (1 + 0.3 * colors)),
      }),
    ),
  );

  const finish = choice(
    'Finish',
    'Finish',
    { MATT: 'Matt', GLOSS: 'Gloss' },
    { assetAttributeName: 'Finish' },
  );
  const film = [
    sized(['3" x 3"', ['in', 2.9, 2.9]], ['75mm x 75mm', ['mm', 73, 73]]),
    sized(['9" x 11"', ['in', 8.8, 10.8]], ['A4', ['mm', 204, 291]]),
    sized(['11" x 14"', ['in', 10.8, 13.8]], ['A3', ['mm', 291, 414]]),
  ].map(
    ([size, geometry], sizeAt): Ware => ({
      code: `DTF:${size}`,
      name: `Digital film ${size}`,
      description: `Full color transfer on film, up to ${size}, with a white base.`,
      process: 'DTF',
      category: 'HT',
      size: geometry,
      reset: 250,
      sample: ['Printed sample, posted with the next order', 500],
      attributes: [finish, garmentColor, placement],
      ladder: LADDERS.single,
      cents: [120, 475, 640][sizeAt] ?? 0,
    }),
  );
  const [labelSize, labelGeometry] = sized(['2" x 2"', ['mm', 50, 50]], ['50mm x 50mm', ['mm', 48, 48]]);
  const labels: Ware = {
    code: `DTF:Neck label ${labelSize}`,
    name: `Neck label ${labelSize}`,
    description: 'Tagless neck labels, one size of garment each.',
    process: 'DTF',
    category: 'HT',
    size: labelGeometry,
    attributes: [],
    ladder: LADDERS.runs,
    cents: 68,
  };
  const [, most] = sized(['', ['in', 22, 60]], ['', ['cm', 56, 150]]);
  const custom: Ware = {
    code: 'DTF:Custom size',
    name: 'Digital film, any size',
    description: 'Full color transfer on film, cut to your dimensions.',
    process: 'DTF',
    category: 'HT',
    size: most,
    reset: 250,
    sample: ['Printed sample, at most a hand wide', 750],
    attributes: [
      number('decimal', INPUT_ATTRIBUTES.dgX, 'Width', {
        required: true,
        isMetaDataAttribute: true,
        assetAttributeName: INPUT_ATTRIBUTES.dgX,
        minValue: 1,
        maxValue: most[1],
      }),
      number('decimal', INPUT_ATTRIBUTES.dgY, 'Height', {
        required: true,
        isMetaDataAttribute: true,
        assetAttributeName: INPUT_ATTRIBUTES.dgY,
        minValue: 1,
        maxValue: most[2],
      }),
      finish,
      garmentColor,
    ],
    ladder: LADDERS.single,
    // Half a dollar, and 4 cents the square inch.
    cents: ({ dgX = 0, dgY = 0 }) => Math.ceil(50 + 4 * dgX * dgY * (us ? 1 : 1 / 6.4516)),
  };

  const gang = [
    sized(['22" x 24"', ['in', 22, 24]], ['56cm x 60cm', ['cm', 56, 60]]),
    sized(['22" x 60"', ['in', 22, 60]], ['56cm x 150cm', ['cm', 56, 150]]),
    sized(['22" x 120"', ['in', 22, 120]], ['56cm x 300cm', ['cm', 56, 300]]),
  ].map(
    ([size, geometry], sizeAt): Ware => ({
      code: `GSH:${size}`,
      name: `Gang sheet ${size}`,
      description: `A sheet of ${size} with your own layout.`,
      process: 'GSH',
      category: 'GS',
      size: geometry,
      attributes: [
        choice('Cut Apart', 'Cut apart', { NO: 'Leave the sheet whole', YES: 'Cut the designs apart' }),
        number('decimal', 'Edge Bleed', 'Bleed around each design, mm', { minValue: 0, maxValue: 5 }),
      ],
      ladder: LADDERS.sheets,
      cents: [1450, 3300, 6200][sizeAt] ?? 0,
    }),
  );

  const screen = [1, 2, 4].map(
    (colors): Ware => ({
      code: `SCR:${us ? 'Tabloid/A3' : 'A3/Tabloid'}:${colors} Color${colors > 1 ? 's' : ''}`,
      name: `Screen-printed sheet, ${colors} color${colors > 1 ? 's' : ''}`,
      description: 'Plastisol on release paper; as many designs as fit on the sheet.',
      process: 'SCR',
      category: 'HT',
      size: us ? ['in', 11.5, 16.5] : ['cm', 29, 41],
      setup: 2200 * colors,
      attributes: [
        number('int', 'Color Count', 'How many colors', { required: true, minValue: 1, maxValue: colors }),
        number('decimal', 'Color Tolerance', 'Largest color difference, delta E', {
          minValue: 0.5,
          maxValue: 6.5,
        }),
        text('Ink Colors', 'Ink colors', {
          required: true,
          minLength: 2,
          maxLength: 120,
          assetAttributeName: 'InkColors',
        }),
      ],
      ladder: LADDERS.runs,
      cents: 390 + (colors - 1) * 85,
    }),
  );

  const vinylColor = choice(
    'Vinyl Color',
    'Color of the vinyl',
    { WHITE: 'White', BLACK: 'Black', NAVY: 'Navy', RED: 'Red', GOLD: 'Gold' },
    { required: true, assetAttributeName: 'VinylColor' },
  );
  const shirtNumber = number('int', 'Number', 'Number', { required: true, minValue: 0, maxValue: 99 });
  const shirtName = text('Name', 'Name', {
    description: 'In the case in which it is to be cut.',
    required: true,
    minLength: 1,
    maxLength: 14,
  });
  const vinyl: Ware[] = [
    {
      code: 'VIN:Numbers 8"',
      name: 'Numbers 8"',
      description: 'Cut numbers, 8" tall.',
      process: 'VIN',
      category: 'CV',
      // At most two of each digit.
      size: ['mm', 120, 203],
      attributes: [shirtNumber, vinylColor],
      ladder: LADDERS.single,
      cents: 390,
    },
    {
      code: 'VIN:Name/Number set',
      name: 'Name and number',
      description: 'A name above a number, for the back of a shirt.',
      process: 'VIN',
      category: 'CV',
      reset: 0,
      attributes: [shirtName, shirtNumber, vinylColor],
      ladder: LADDERS.single,
      cents: 720,
    },
    {
      code: `VIN:Logo ${us ? '4" x 4"' : '100mm x 100mm'}`,
      name: 'One-color logo',
      description: 'A logo cut from one color.',
      process: 'VIN',
      category: 'CV',
      size: us ? ['cm', 10, 10] : ['mm', 98, 98],
      reset: 300,
      attributes: [vinylColor, placement],
      ladder: LADDERS.dozens,
      cents: 240,
    },
  ];

  const threads = text('Thread Colors', 'Thread colors', {
    required: true,
    minLength: 3,
    maxLength: 60,
    assetAttributeName: 'ThreadColors',
  });
  const badges: Ware[] = [
    {
      code: `EMB:Round badge ${us ? '3"' : '75mm'}`,
      name: 'Round badge',
      description: 'Embroidered all over, with an overlocked edge.',
      process: 'EMB',
      category: 'BD',
      size: ['mm', 76, 76],
      setup: 4000,
      sample: ['Sewn sample', 2500],
      supplier: ['Needle & Bobbin', 'NB-RND-76'],
      attributes: [threads, choice('Backing', 'Backing', { IRON: 'To be ironed on', SEW: 'To be sewn on' })],
      ladder: LADDERS.runs,
      cents: 345,
    },
    {
      code: 'EMB:Custom badge',
      name: 'Badge of any shape',
      description: 'Embroidered badge, priced by its stitches.',
      process: 'EMB',
      category: 'BD',
      setup: 4000,
      supplier: ['Needle & Bobbin', 'NB-CUSTOM'],
      attributes: [
        number('int', INPUT_ATTRIBUTES.stitches, 'Stitches', {
          description: 'As the digitised file specifies.',
          required: true,
          isMetaDataAttribute: true,
          assetAttributeName: INPUT_ATTRIBUTES.stitches,
          minValue: 500,
          maxValue: 30_000,
        }),
        threads,
      ],
      ladder: LADDERS.runs,
      cents: ({ stitches = 0 }) => 160 + 42 * Math.ceil(stitches / 1000),
    },
  ];

  const puff = [1, 2].map(
    (colors): Ware => ({
      code: `PUF:${us ? '4" x 4"' : '10cm x 10cm'}:${colors} Color${colors > 1 ? 's' : ''}`,
      name: 'Puff relief',
      description: 'Raised print.',
      process: 'PUF',
      category: 'HT',
      attributes: [],
      ladder: LADDERS.dozens,
      cents: 180 * colors,
    }),
  );

  return [...spot, ...film, labels, custom, ...gang, ...screen, ...vinyl, ...badges, ...puff];
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

const wares = new Map<RegionCode, ReadonlyMap<string, Ware>>();

/** The catalogue of a region, by code. */
function regionWares(region: RegionCode): ReadonlyMap<string, Ware> {
  const known = wares.get(region);
  if (known) return known;
  const made = makeWares(region).map((ware) => localizeWare(ware, region));
  const byCode = new Map(made.map((ware) => [ware.code, frozen(ware) as Ware]));
  wares.set(region, byCode);
  return byCode;
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
  const key = `${region} ${priceTier}`;
  const known = standard.get(key);
  if (known) return known;
  const made = new Map<string, Frozen<PriceCode>>();
  for (const ware of regionWares(region).values()) {
    const { code, cents } = ware;
    if (typeof cents === 'number') made.set(code, frozen(toPriceCode(ware, cents, region, priceTier)));
  }
  standard.set(key, made);
  return made;
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
    categoryName: CATEGORIES[ware.category],
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
