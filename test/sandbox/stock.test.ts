/**
 * Stocked goods and how they ship, row by row of the contract of the ordering API. One file: its tests share one service and
 * its stock.
 */
import { describe, expect, test } from 'vitest';
import { findStock } from '../../sandbox/operations/stock.ts';
import type { PriceTier } from '../../sandbox/world/records.ts';
import { REGIONS, type RegionCode } from '../../sandbox/world/regions.ts';
import type { StandaloneShippingConfig, StockItem } from '../../shared/ordering/contract/stock.ts';
import { type Client, type Service, startService } from '../support/ordering-api.ts';

/** Sends requests as an ordinary user of a new account. */
async function buyer(
  service: Service,
  options: { region: RegionCode; priceTier?: PriceTier },
): Promise<Client> {
  return service.as('user', service.world.addAccount(options));
}

const list = async (client: Client, query = ''): Promise<StockItem[]> =>
  (await client.get<StockItem[]>(`/Stock${query}`)).json;

const getCodes = (items: readonly StockItem[]) => items.map(({ stockCode }) => stockCode);

const codes = async (client: Client, query = '') => getCodes(await list(client, query));

const item = async (client: Client, code: string, query = ''): Promise<StockItem> =>
  (await client.get<StockItem>(`/Stock/${code}${query}`)).json;

const configsTo = async (client: Client, market: string): Promise<StandaloneShippingConfig[]> =>
  (await client.get<StandaloneShippingConfig[]>(`/stock/shipping?market=${market}`)).json;

const bad = (field: string) => ({
  status: 400,
  json: { status: 400, errors: { [field]: [expect.any(String)] } },
});

/** The stock of every region, by rank, without the one item that only the US has. */
const SOLD = [
  ...[
    'NL-STAPLE',
    'NL-HEAVY',
    'KF-POLO',
    'KF-SHELL',
    'OR-5001',
    'OR-YOUTH',
    'BS-VEST',
    'SL-BEANIE',
    'MC-TOTE',
  ],
  ...['MC-APRON', 'MC-APRON-PK6', 'CW-RASH', 'HP-4050', 'HP-CAP', 'HP-PAD', 'CO-SHEET', 'CO-TAPE', 'CO-WASH'],
  ...['CO-SWATCH', 'PB-SLEEVE'],
];
const ARCHIVED = ['NL-STAPLE-V1', 'HP-3838'];
const HIDDEN = ['NL-PROTO', 'BS-RAIN'];

describe('GET /Stock', () => {
  test('GET /Stock 200: all items, by rank', async () => {
    const { us } = await startService();
    expect(await codes(us)).toEqual(SOLD);
  });

  test('GET /Stock 400: an invalid parameter', async () => {
    const { us } = await startService();
    const cases: [query: string, field: string][] = [
      ['page=0', 'page'],
      ['pageSize=many', 'pageSize'],
      ['pageSize=201', 'pageSize'],
      ['includePricing=yes', 'includePricing'],
      ['stockSortColumn=Weight', 'stockSortColumn'],
      ['stockSortDirection=sideways', 'stockSortDirection'],
      ['variantSortColumn=Price', 'variantSortColumn'],
      ['variantSortDirection=sideways', 'variantSortDirection'],
      ['includeArchived=1', 'includeArchived'],
      [`code=${'A'.repeat(51)}`, 'code'],
    ];
    for (const [query, field] of cases) expect(await us.get(`/Stock?${query}`)).toMatchObject(bad(field));
  });

  test('GET /Stock 403: credentials without the right to order', async () => {
    const { as } = await startService();
    expect((await (await as('viewer')).get('/Stock')).status).toBe(403);
  });

  test('stockItems · page, pageSize: a page after the last is empty; 50 per page by default', async () => {
    const { us, world } = await startService();
    expect(await codes(us, '?page=2&pageSize=3')).toEqual(SOLD.slice(3, 6));
    expect(await codes(us, '?page=99&pageSize=3')).toEqual([]);
    expect((await us.get('/Stock?pageSize=200')).status).toBe(200);
    const { records } = world.warehouse('us');
    const [first] = records;
    if (!first) throw new Error('There is no stock.');
    for (let more = 0; more < 40; more += 1)
      records.push({ ...first, stockCode: `MORE-${more}`, rank: 9000 });
    expect(await list(us)).toHaveLength(50);
    expect(await list(us, '?page=2')).toHaveLength(SOLD.length + 40 - 50);
  });

  test('stockItems · filter: any part of code, name, description, category, supplier, variant code or colour, case-insensitive', async () => {
    const { us } = await startService();
    const cases: [filter: string, codes: string[]][] = [
      ['hp-c', ['HP-CAP']],
      ['rash vest', ['CW-RASH']],
      ['surf CLUBS', ['CW-RASH']],
      ['heat presses', ['HP-4050', 'HP-CAP']],
      ['kestrel %26 fern', ['KF-POLO', 'KF-SHELL']],
      ['BEANIE-MUS', ['SL-BEANIE']],
      ['mustard', ['SL-BEANIE']],
      ['%20%20tote ', ['MC-TOTE']],
      ['there is no such thing', []],
      ['', SOLD],
    ];
    for (const [filter, found] of cases) {
      expect([filter, await codes(us, `?filter=${filter}`)]).toEqual([filter, found]);
    }
  });

  test('stockItems · includePricing: price bands on request only', async () => {
    const { us } = await startService();
    for (const query of ['', '?includePricing=false']) {
      expect((await list(us, query)).flatMap(({ priceBands }) => priceBands)).toEqual([]);
    }
    for (const { priceBands } of await list(us, '?includePricing=true')) expect(priceBands).not.toEqual([]);
  });

  test('stockItems · stockSortColumn, stockSortDirection: any column, case-insensitive; default: rank, ascending', async () => {
    const { us } = await startService();
    expect(await codes(us, '?stockSortColumn=stockcode')).toEqual(SOLD.toSorted());
    expect(await codes(us, '?stockSortColumn=StockCode&stockSortDirection=DESC')).toEqual(
      SOLD.toSorted().reverse(),
    );
    expect(await codes(us, '?stockSortDirection=Descending')).toEqual(SOLD.toReversed());
    expect(await codes(us, '?stockSortColumn=Rank&stockSortDirection=Ascending')).toEqual(SOLD);
    const columns = [
      ['StockName', 'stockName'],
      ['CategoryName', 'categoryName'],
      ['Supplier', 'supplier'],
      ['ProcessCode', 'processCode'],
    ] as const;
    for (const [column, field] of columns) {
      const values = (await list(us, `?stockSortColumn=${column}`)).map(
        (one) => one[field]?.toLowerCase() ?? '',
      );
      expect(values).toEqual(values.toSorted());
      expect(new Set(values).size).toBeGreaterThan(1);
    }
    // Items without a supplier sort lowest; equal values are sorted by rank.
    const bySupplier = await codes(us, '?stockSortColumn=Supplier');
    expect(bySupplier.slice(0, 4)).toEqual(['CO-SWATCH', 'HP-4050', 'HP-CAP', 'HP-PAD']);
  });

  test('stockItems · variantSortColumn, variantSortDirection: order the variants of each item', async () => {
    const { us } = await startService();
    const colours = async (query: string) =>
      (await list(us, `?code=OR-5001${query}`))[0]?.stockVariants.map(({ colour }) => colour);
    const stored = ['Heather gray', 'Red', 'Gold', 'Royal', 'White'];
    expect(await colours('')).toEqual(stored);
    expect(await colours('&variantSortColumn=Colour')).toEqual(stored.toSorted());
    expect(await colours('&variantSortColumn=colour&variantSortDirection=desc')).toEqual(
      stored.toSorted().reverse(),
    );
    const byCode = ['Gold', 'Heather gray', 'Red', 'Royal', 'White'];
    expect(await colours('&variantSortColumn=VariantCode')).toEqual(byCode);
    expect(await colours('&variantSortDirection=Descending')).toEqual(byCode.toReversed());
    expect(await colours('&variantSortColumn=NumberOfSizes')).toEqual(stored);
  });

  test('stockItems · markets: items with an active config for any of them; trimmed, uppercased, empty matches all', async () => {
    const { us } = await startService();
    const worldwide = ['NL-STAPLE', 'NL-HEAVY', 'OR-5001', 'MC-TOTE'];
    expect(await codes(us, '?markets=MX')).toEqual(worldwide);
    expect(await codes(us, '?markets=%20mx%20,mx,,nowhere')).toEqual(worldwide);
    const either = await codes(us, '?markets=MX,CA');
    expect(either).toEqual(SOLD.filter((code) => either.includes(code)));
    expect(either).toEqual(expect.arrayContaining([...worldwide, 'HP-4050', 'CO-SHEET']));
    // The polo's config for Canada is inactive, and so are all of the rash vest's; the swatch book has none.
    for (const code of ['KF-POLO', 'CW-RASH', 'CO-SWATCH']) expect(either).not.toContain(code);
    const home = await codes(us, '?markets=US');
    expect(home).toEqual(SOLD.filter((code) => code !== 'CW-RASH' && code !== 'CO-SWATCH'));
    for (const none of ['?markets=', '?markets=%20,%20']) expect(await codes(us, none)).toEqual(SOLD);
    expect(await codes(us, '?markets=nowhere')).toEqual([]);
  });

  test('stockItems · code: a stock code or variant code, exact and untrimmed, of one item or several', async () => {
    const { us } = await startService();
    expect(await codes(us, '?code=MC-APRON')).toEqual(['MC-APRON']);
    expect(await codes(us, '?code=MC-APRON-BLK')).toEqual(['MC-APRON', 'MC-APRON-PK6']);
    for (const code of ['mc-apron', '%20MC-APRON', 'MC-APRON%20', 'MC', '']) {
      expect(await codes(us, `?code=${code}`)).toEqual([]);
    }
    expect((await us.get(`/Stock?code=${'A'.repeat(50)}`)).status).toBe(200);
  });

  test('stockItems · includeArchived: includes archived ones; items hidden by configuration are never listed', async () => {
    const { us } = await startService();
    const all = await codes(us, '?includeArchived=true');
    expect(all.toSorted()).toEqual([...SOLD, ...ARCHIVED].toSorted());
    expect(await codes(us, '?includeArchived=false')).toEqual(SOLD);
    // A variant code that an archived and a hidden item have too.
    expect(await codes(us, '?code=NL-STAPLE-BLK')).toEqual(['NL-STAPLE']);
    expect(await codes(us, '?code=NL-STAPLE-BLK&includeArchived=true')).toEqual([
      'NL-STAPLE',
      'NL-STAPLE-V1',
    ]);
    for (const code of HIDDEN) expect(await codes(us, `?code=${code}&includeArchived=true`)).toEqual([]);
  });
});

describe('a stock item', () => {
  test('StockItem · supplier, categoryName, categoryUnitId, stockCode, processCode, stockName: identity', async () => {
    const { us } = await startService();
    expect(await item(us, 'CO-TAPE')).toMatchObject({
      supplier: 'Second Press',
      categoryName: 'Consumables',
      categoryUnitId: 'ROLL',
      stockCode: 'CO-TAPE',
      processCode: 'STK',
      stockName: 'Heat tape, 10 mm',
    });
    expect(await item(us, 'HP-4050')).toMatchObject({ processCode: 'EQP', categoryUnitId: 'EA' });
    expect(await item(us, 'CO-SWATCH')).toMatchObject({ supplier: null });
  });

  test('StockItem · stockDescription, stockSpecifications, priceCompatibleLookupCode: its description, null if missing', async () => {
    const { us } = await startService();
    expect(await item(us, 'NL-STAPLE')).toMatchObject({
      stockDescription: expect.stringContaining('ring-spun cotton'),
      stockSpecifications: expect.stringContaining('180 g/m²'),
      priceCompatibleLookupCode: 'TEE-CORE',
    });
    expect(await item(us, 'OR-5001')).toMatchObject({ priceCompatibleLookupCode: 'TEE-CORE' });
    expect(await item(us, 'MC-APRON')).toMatchObject({
      stockSpecifications: null,
      priceCompatibleLookupCode: null,
    });
  });

  test('StockItem · rank, showAvailableStock, badges: shop display; badges keep their order', async () => {
    const { us } = await startService();
    const items = await list(us);
    const ranks = items.map(({ rank }) => rank);
    expect(ranks).toEqual(ranks.toSorted((a, b) => a - b));
    expect(new Set(ranks).size).toBe(items.length);
    expect(await item(us, 'MC-TOTE')).toMatchObject({
      showAvailableStock: true,
      badges: ['Organic', 'Plastic free'],
    });
    expect(await item(us, 'MC-APRON')).toMatchObject({ showAvailableStock: false, badges: [] });
  });

  test('StockItem · stockImageUrl, images: a gallery whose first picture is the hero', async () => {
    const { us } = await startService();
    const { images, stockImageUrl } = await item(us, 'KF-SHELL');
    expect(images).toHaveLength(4);
    expect(stockImageUrl).toBe(images[0]?.url);
    expect(await item(us, 'PB-SLEEVE')).toMatchObject({ images: [{}] });
    const { us: other, world } = await startService();
    const bare = world.warehouse('us').record('MC-TOTE');
    if (bare) bare.views = [];
    expect(await item(other, 'MC-TOTE')).toMatchObject({ images: [], stockImageUrl: null });
  });

  test('StockImage · url, name, altText: existing images with alternative texts', async () => {
    const { us } = await startService();
    const { images } = await item(us, 'NL-HEAVY');
    expect(images).toEqual([
      { url: expect.any(String), name: 'NL-HEAVY front', altText: 'Northloom Heavy Hood: front' },
      { url: expect.any(String), name: 'NL-HEAVY back', altText: 'Northloom Heavy Hood: back' },
    ]);
    const pictures = await Promise.all(images.map(async ({ url }) => await fetch(`${url}?size=50`)));
    for (const picture of pictures) {
      expect(picture.status).toBe(200);
      expect(picture.headers.get('content-type')).toBe('image/png');
    }
    const [front, back] = await Promise.all(pictures.map(async (picture) => await picture.text()));
    expect(front).not.toBe(back);
    const [first] = images;
    expect((await fetch(`${first?.url.replace('front', 'side')}`)).status).toBe(404);
  });

  test('StockItem · shippingConfigs: only of a single item, and only active ones', async () => {
    const { us } = await startService();
    for (const listed of await list(us)) expect(listed).not.toHaveProperty('shippingConfigs');
    expect((await item(us, 'NL-STAPLE')).shippingConfigs).toHaveLength(2);
    expect((await item(us, 'KF-POLO')).shippingConfigs).toHaveLength(1);
    expect((await item(us, 'CW-RASH')).shippingConfigs).toEqual([]);
    expect((await item(us, 'CO-SWATCH')).shippingConfigs).toEqual([]);
  });

  test('StockItem · markets: those of active configs; empty for an item without shipping', async () => {
    const { us, world } = await startService();
    const getMarkets = async (code: string) => (await item(us, code)).markets;
    expect(await getMarkets('NL-STAPLE')).toEqual(['US', 'CA', 'MX']);
    expect(await getMarkets('KF-POLO')).toEqual(['US']);
    expect(await getMarkets('CW-RASH')).toEqual([]);
    expect(await getMarkets('CO-SWATCH')).toEqual([]);
    for (const config of world.warehouse('us').record('KF-POLO')?.configs ?? []) config.active = true;
    expect(await getMarkets('KF-POLO')).toEqual(['US', 'CA']);
  });

  test('StockItem · slug: lowercase letters, digits and hyphens, unique in all regions', async () => {
    const service = await startService();
    const slugs: string[] = [];
    for (const region of REGIONS) {
      const items = await list(await buyer(service, { region }), '?includeArchived=true');
      slugs.push(...items.map(({ slug }) => slug));
    }
    for (const slug of slugs) expect(slug).toMatch(/^[a-z0-9]+(-[a-z0-9]+)*$/);
    expect(new Set(slugs).size).toBe(slugs.length);
    expect(slugs).toContain('northloom-staple-tee-us');
  });

  test('StockItem · seoTitle, seoDescription: set for advertised items', async () => {
    const { us } = await startService();
    expect(await item(us, 'MC-TOTE')).toMatchObject({
      seoTitle: 'Marlow Canvas Tote, ready to print',
      seoDescription: 'A canvas tote that stands by itself.',
    });
    expect(await item(us, 'MC-APRON')).toMatchObject({ seoTitle: null, seoDescription: null });
  });

  test('StockItem · priceBands: at the tier of the account, in its currency, without gaps', async () => {
    const service = await startService();
    const prices = async (client: Client) =>
      (await item(client, 'NL-STAPLE', '?includePricing=true')).priceBands;
    expect(await prices(service.us)).toEqual([
      { from: 1, to: 23, unitPrice: 6.2 },
      { from: 24, to: 71, unitPrice: 5.4 },
      { from: 72, to: 287, unitPrice: 4.8 },
      { from: 288, to: null, unitPrice: 4.3 },
    ]);
    const unitPrices = async (options: { region: RegionCode; priceTier?: PriceTier }) =>
      (await prices(await buyer(service, options))).map(({ unitPrice }) => unitPrice);
    expect(await unitPrices({ region: 'us', priceTier: 'T1' })).toEqual([7.13, 6.21, 5.52, 4.95]);
    // 4.30 at 88 % is 3.784.
    expect(await unitPrices({ region: 'us', priceTier: 'T3' })).toEqual([5.46, 4.75, 4.22, 3.78]);
    expect(await unitPrices({ region: 'nz' })).toEqual([10.23, 8.91, 7.92, 7.1]);
    // Not everything can be had singly.
    expect((await item(service.us, 'OR-5001', '?includePricing=true')).priceBands[0]?.from).toBe(12);
  });

  test('StockItem · stockVariants: its colours', async () => {
    const { us } = await startService();
    const { stockVariants } = await item(us, 'MC-APRON');
    expect(stockVariants.map(({ variantCode }) => variantCode)).toEqual(['MC-APRON-BLK', 'MC-APRON-DEN']);
  });

  test('StockVariant · variantCode, colour, variantImageUrl, numberOfSizes, sizesCsv: the orderable variants', async () => {
    const { us } = await startService();
    const [black] = (await item(us, 'KF-SHELL', '?variantSortColumn=Colour')).stockVariants;
    expect(black).toMatchObject({
      variantCode: 'KF-SHELL-BLK',
      colour: 'Black',
      numberOfSizes: 7,
      sizesCsv: 'XS,S,M,L,XL,2XL,3XL',
    });
    expect((await fetch(`${black?.variantImageUrl}?size=50`)).status).toBe(200);
    for (const { stockVariants, processCode } of await list(us, '?includeArchived=true')) {
      for (const { sizesCsv, numberOfSizes } of stockVariants) {
        expect(sizesCsv.split(',')).toHaveLength(numberOfSizes);
        if (processCode === 'EQP') expect(sizesCsv).toBe('Qty');
      }
    }
    expect((await item(us, 'HP-4050')).stockVariants).toEqual([
      { variantCode: 'HP-4050', colour: null, variantImageUrl: null, numberOfSizes: 1, sizesCsv: 'Qty' },
    ]);
  });

  test('regions have their own goods, spellings and prices', async () => {
    const service = await startService();
    const own = { us: 'PB-SLEEVE', nz: 'TK-MERINO', au: 'SB-BRIM', uk: 'PK-RUGBY', eu: 'PD-BIB' };
    for (const region of REGIONS) {
      const client = await buyer(service, { region });
      const here = await codes(client);
      expect(Object.values(own).filter((code) => here.includes(code))).toEqual([own[region]]);
      expect(here).toHaveLength(20);
    }
    const nz = await buyer(service, { region: 'nz' });
    const greys = (items: StockItem[]) => items.flatMap(({ stockVariants }) => stockVariants[0]?.colour);
    expect(greys(await list(service.us, '?code=OR-5001'))).toEqual(['Heather gray']);
    expect(greys(await list(nz, '?code=OR-5001'))).toEqual(['Heather grey']);
    expect((await item(service.us, 'HP-4050')).stockName).toContain('110 V');
    expect((await item(nz, 'HP-4050')).stockName).toContain('230 V');
  });
});

describe('GET /Stock/{code}', () => {
  test('GET /Stock/{code} 200: stockItem · code: a stock code, or a variant code of one item or several', async () => {
    const { us } = await startService();
    expect((await item(us, 'MC-APRON-PK6')).stockCode).toBe('MC-APRON-PK6');
    expect((await item(us, 'MC-APRON-DEN')).stockCode).toBe('MC-APRON');
    // Two items have it; the one with the lower rank wins.
    expect((await item(us, 'MC-APRON-BLK')).stockCode).toBe('MC-APRON');
  });

  test('GET /Stock/{code} 400: a code that is too long, or an invalid parameter', async () => {
    const { us } = await startService();
    expect(await us.get(`/Stock/${'A'.repeat(51)}`)).toMatchObject(bad('code'));
    expect(await us.get('/Stock/MC-TOTE?includePricing=maybe')).toMatchObject(bad('includePricing'));
    expect((await us.get(`/Stock/${'A'.repeat(50)}`)).status).toBe(404);
  });

  test('GET /Stock/{code} 403: credentials without the right to order', async () => {
    const { as } = await startService();
    expect((await (await as('viewer')).get('/Stock/MC-TOTE')).status).toBe(403);
  });

  test('GET /Stock/{code} 404: an unknown code, an archived item, one hidden by configuration', async () => {
    const { us } = await startService();
    const nothing = await us.get('/Stock/NOTHING');
    expect(nothing).toMatchObject({ status: 404, json: { status: 404, instance: '/us/api/Stock/NOTHING' } });
    for (const code of ['mc-tote', ...ARCHIVED, ...HIDDEN, 'NL-PROTO-LIL']) {
      expect([code, (await us.get(`/Stock/${code}`)).status]).toEqual([code, 404]);
    }
  });

  test('stockItem · includePricing: price bands on request only', async () => {
    const { us } = await startService();
    expect((await item(us, 'HP-CAP')).priceBands).toEqual([]);
    expect((await item(us, 'HP-CAP', '?includePricing=true')).priceBands).toEqual([
      { from: 1, to: null, unitPrice: 649 },
    ]);
  });

  test('stockItem · variantSortColumn, variantSortDirection: order its variants', async () => {
    const { us } = await startService();
    const colours = async (query: string) =>
      (await item(us, 'SL-BEANIE', query)).stockVariants.map(({ colour }) => colour);
    expect(await colours('')).toEqual(['Forest', 'Black', 'Mustard']);
    expect(await colours('?variantSortColumn=Colour')).toEqual(['Black', 'Forest', 'Mustard']);
    expect(await colours('?variantSortColumn=Colour&variantSortDirection=DESC')).toEqual([
      ...['Mustard', 'Forest', 'Black'],
    ]);
    expect(await colours('?variantSortDirection=ASC')).toEqual(['Black', 'Forest', 'Mustard']);
  });

  test('stockItem · includeArchived: finds archived items too, never those hidden by configuration', async () => {
    const { us } = await startService();
    for (const code of ARCHIVED) expect((await item(us, code, '?includeArchived=true')).stockCode).toBe(code);
    expect((await item(us, 'NL-STAPLE-V1-RED', '?includeArchived=true')).stockCode).toBe('NL-STAPLE-V1');
    for (const code of HIDDEN) {
      expect((await us.get(`/Stock/${code}?includeArchived=true`)).status).toBe(404);
    }
  });
});

describe('shipping of stock', () => {
  test('ShippingConfig · id, markets, shipMode: one shipping method for some markets', async () => {
    const { us } = await startService();
    const configs = (await item(us, 'NL-STAPLE')).shippingConfigs;
    expect(configs).toMatchObject([
      { markets: ['US'], shipMode: 'Parcel' },
      { markets: ['CA', 'MX'], shipMode: 'International' },
    ]);
    expect(new Set(configs?.map(({ id }) => id)).size).toBe(2);
    expect((await item(us, 'HP-4050')).shippingConfigs).toMatchObject([{ shipMode: 'Freight' }]);
  });

  test('ShippingConfig · weight, weightUnit, length, width, height, dimensionUnit: pounds and inches in the US, metric elsewhere', async () => {
    const service = await startService();
    expect((await item(service.us, 'HP-4050')).shippingConfigs).toMatchObject([
      { weight: 90.39, weightUnit: 'lb', length: 30.7, width: 20.5, height: 24, dimensionUnit: 'in' },
    ]);
    const nz = await buyer(service, { region: 'nz' });
    expect((await item(nz, 'HP-4050')).shippingConfigs).toMatchObject([
      { weight: 41, weightUnit: 'kg', length: 78, width: 52, height: 61, dimensionUnit: 'cm' },
    ]);
  });

  test('ShippingConfig · fixedShipping, groundOnly, estimatedLeadDays: a flat charge, no express methods, lead days or null', async () => {
    const { us } = await startService();
    const [freight] = (await item(us, 'HP-4050')).shippingConfigs ?? [];
    expect(freight).toMatchObject({ fixedShipping: 85, groundOnly: true, estimatedLeadDays: 10 });
    expect(freight?.shipmentTypeOptions.map(({ code }) => code)).toEqual(['GROUND']);
    const [parcel] = (await item(us, 'CO-TAPE')).shippingConfigs ?? [];
    expect(parcel).toMatchObject({ fixedShipping: null, groundOnly: false, estimatedLeadDays: null });
  });

  test('ShippingConfig · fulfilmentLocations, shipmentTypeOptions: where it ships from, and by which methods', async () => {
    const { us } = await startService();
    const [home, abroad] = (await item(us, 'NL-STAPLE')).shippingConfigs ?? [];
    expect(home?.fulfilmentLocations.map(({ locationCode }) => locationCode)).toEqual(['DEN', 'CLT']);
    expect(abroad?.fulfilmentLocations.map(({ locationCode }) => locationCode)).toEqual(['DEN']);
    expect(home?.shipmentTypeOptions.map(({ code }) => code)).toEqual(['GROUND', 'EXPRESS']);
    const methods = (await us.get('/Jobs/delivery-options')).json.map(({ code }: { code: string }) => code);
    for (const { shipmentTypeOptions } of await configsTo(us, 'US')) {
      for (const { code } of shipmentTypeOptions) expect(methods).toContain(code);
    }
  });

  test('FulfilmentLocation · locationCode, locationName, locale: a location without its address', async () => {
    const service = await startService();
    const uk = await buyer(service, { region: 'uk' });
    const [config] = (await item(uk, 'MC-TOTE')).shippingConfigs ?? [];
    expect(config?.fulfilmentLocations).toEqual([
      { locationCode: 'LDS', locationName: 'Leeds', locale: 'en-GB' },
    ]);
  });

  test('StockShipmentType · code, name, price: null is rated live, 0 is free, otherwise flat for the whole order', async () => {
    const { us } = await startService();
    const getOptions = async (code: string) =>
      (await item(us, code)).shippingConfigs?.[0]?.shipmentTypeOptions;
    expect(await getOptions('NL-STAPLE')).toEqual([
      { code: 'GROUND', name: 'Ground', price: 0 },
      { code: 'EXPRESS', name: 'Overnight express', price: null },
    ]);
    expect(await getOptions('CO-SHEET')).toEqual([
      { code: 'EXPRESS', name: 'Overnight express', price: 14.5 },
      { code: 'GROUND', name: 'Ground', price: 6.9 },
    ]);
  });
});

describe('GET /stock/{stockItemId}/shipping', () => {
  test('GET /stock/{stockItemId}/shipping 200: stockItemShipping · stockItemId: the active configs of an item', async () => {
    const { us, world } = await startService();
    const [{ stockItemId = 0 } = {}] = await configsTo(us, 'CA');
    const { json } = await us.get<StandaloneShippingConfig[]>(`/stock/${stockItemId}/shipping`);
    expect(json).toHaveLength(2);
    for (const config of json) expect(config).toMatchObject({ stockItemId, active: true });
    const polo = world.warehouse('us').record('KF-POLO');
    expect(polo?.configs).toHaveLength(2);
    expect((await us.get(`/stock/${polo?.stockItemId}/shipping`)).json).toHaveLength(1);
    // Hidden and archived items answer like unknown ones.
    for (const code of [...ARCHIVED, ...HIDDEN]) {
      const { stockItemId: id } = world.warehouse('us').record(code) ?? {};
      expect((await us.get(`/stock/${id}/shipping`)).json).toEqual([]);
    }
    expect((await us.get('/stock/1/shipping')).json).toEqual([]);
  });

  test('GET /stock/{stockItemId}/shipping 400: an id that is not an integer from 1', async () => {
    const { us } = await startService();
    for (const id of ['0', '-7001', 'NL-STAPLE', '7001.5']) {
      expect(await us.get(`/stock/${id}/shipping`)).toMatchObject(bad('stockItemId'));
    }
  });

  test('StandaloneShippingConfig · stockItemId, active, createdAt, updatedAt, fulfilmentLocations: the fields that items omit', async () => {
    const { us, world } = await startService();
    const id = world.warehouse('us').record('NL-STAPLE')?.stockItemId;
    const { json } = await us.get<StandaloneShippingConfig[]>(`/stock/${id}/shipping`);
    expect(json[0]).toMatchObject({
      stockItemId: id,
      active: true,
      createdAt: expect.stringMatching(/^20\d\d-\d\d-\d\dT[\d:.]+Z$/),
      updatedAt: expect.stringMatching(/^20\d\d-\d\d-\d\dT[\d:.]+Z$/),
    });
    for (const { createdAt, updatedAt } of json) expect(createdAt < updatedAt).toBe(true);
    const embedded = (await item(us, 'NL-STAPLE')).shippingConfigs?.[0];
    for (const field of ['stockItemId', 'active', 'createdAt', 'updatedAt']) {
      expect(embedded).not.toHaveProperty(field);
    }
  });

  test('StandaloneShippingConfig · id, markets, shipMode, weight, weightUnit, length, width, height, dimensionUnit, fixedShipping, groundOnly, estimatedLeadDays, shipmentTypeOptions: equal to those in the item', async () => {
    const { us, world } = await startService();
    for (const code of ['NL-STAPLE', 'HP-4050', 'CO-SHEET']) {
      const id = world.warehouse('us').record(code)?.stockItemId;
      const { json } = await us.get<StandaloneShippingConfig[]>(`/stock/${id}/shipping`);
      const { shippingConfigs = [] } = await item(us, code);
      expect(
        json.map(({ fulfilmentLocations, stockItemId, active, createdAt, updatedAt, ...rest }) => rest),
      ).toEqual(shippingConfigs.map(({ fulfilmentLocations, ...rest }) => rest));
      expect(json).not.toEqual([]);
    }
  });

  test('ShipFromLocation · locationCode, locationName, locale, shipFromCity, shipFromCountryCodeIso2: a location with its city', async () => {
    const service = await startService();
    const eu = await buyer(service, { region: 'eu' });
    const [config] = await configsTo(eu, 'DE');
    expect(config?.fulfilmentLocations).toEqual([
      {
        locationCode: 'RTM',
        locationName: 'Rotterdam',
        locale: 'nl-NL',
        shipFromCity: 'Rotterdam',
        shipFromCountryCodeIso2: 'NL',
      },
    ]);
  });
});

describe('GET /stock/shipping', () => {
  test('GET /stock/shipping 200: stockShipping · market: the active configs for one market, case-insensitive', async () => {
    const { us, world } = await startService();
    const configs = await configsTo(us, 'MX');
    expect(configs).toHaveLength(4);
    for (const { markets, active } of configs) {
      expect(markets).toContain('MX');
      expect(active).toBe(true);
    }
    expect(await configsTo(us, '%20mx%20')).toEqual(configs);
    expect(await configsTo(us, 'MX,CA')).toEqual([]);
    // The polo has a config for Canada that is not active.
    const inactive = world
      .warehouse('us')
      .record('KF-POLO')
      ?.configs.find(({ active }) => !active);
    expect(inactive?.markets).toEqual(['CA']);
    expect((await configsTo(us, 'CA')).map(({ id }) => id)).not.toContain(inactive?.id);
    expect(await configsTo(us, 'nowhere')).toEqual([]);
    const ids = (await configsTo(us, 'US')).map(({ id }) => id);
    expect(ids).toEqual(ids.toSorted((a, b) => a - b));
  });

  test('GET /stock/shipping 400: a missing or blank market', async () => {
    const { us } = await startService();
    for (const query of ['', '?market=', '?market=%20']) {
      expect(await us.get(`/stock/shipping${query}`)).toMatchObject(bad('market'));
    }
  });

  test('excludes archived and hidden items', async () => {
    const { us, world } = await startService();
    const gone = [...ARCHIVED, ...HIDDEN].map((code) => world.warehouse('us').record(code)?.stockItemId);
    const shown = (await configsTo(us, 'US')).map(({ stockItemId }) => stockItemId);
    expect(shown.filter((id) => gone.includes(id))).toEqual([]);
  });
});

test("an order finds an item by stock or variant code, with prices at the account's tier", async () => {
  const { acme } = await startService();
  expect(findStock(acme, 'NL-STAPLE')).toMatchObject({
    item: { stockCode: 'NL-STAPLE', priceBands: [{ from: 1, to: 23, unitPrice: 6.2 }, {}, {}, {}] },
    variant: undefined,
  });
  expect(findStock(acme, 'NL-STAPLE-NVY')).toMatchObject({
    item: { stockCode: 'NL-STAPLE' },
    variant: { variantCode: 'NL-STAPLE-NVY', sizesCsv: 'XS,S,M,L,XL,2XL,3XL' },
  });
  for (const code of ['NOTHING', ...ARCHIVED, ...HIDDEN]) expect(findStock(acme, code)).toBeUndefined();
});
