/**
 * The catalogue and reference data: price codes, lookups and promo codes, row by row of the contract.
 * One file: its tests share one service and its price codes.
 */
import { describe, expect, test } from 'vitest';
import { redeemPromo } from '../../sandbox/operations/promo.ts';
import { findPriceCode, unitPriceAt } from '../../sandbox/world/catalogue.ts';
import type { PriceTier } from '../../sandbox/world/records.ts';
import type { RegionCode } from '../../sandbox/world/regions.ts';
import type { ProcessCode } from '../../shared/ordering/contract/lookups.ts';
import type {
  PriceCode,
  PricingProcess,
  ProcessAttribute,
} from '../../shared/ordering/contract/price-codes.ts';
import { type Client, type Service, startService } from '../support/ordering-api.ts';

/** Sends requests as an ordinary user of a new account. */
async function buyer(
  service: Service,
  options: { region?: RegionCode; priceTier?: PriceTier; withheldProcesses?: string[] } = {},
): Promise<Client> {
  return service.as('user', service.world.addAccount({ region: 'us', ...options }));
}

const requestList = async (client: Client, query = ''): Promise<PriceCode[]> =>
  (await client.get<PriceCode[]>(`/PriceCodes/price-codes${query}`)).json;

const getCodes = (list: readonly PriceCode[]) => list.map(({ priceCode }) => priceCode);

/** One price code by its name, percent-encoded. */
const ask = (client: Client, code: string, query = '') =>
  client.get(`/PriceCodes/${encodeURIComponent(code)}${query}`);

const getAttribute = ({ attributes }: PriceCode, name: string): ProcessAttribute => {
  const found = attributes?.find((attribute) => attribute.name === name);
  if (!found) throw new Error(`No attribute ${name}`);
  return found;
};

const SPOT = 'UC:11" x 11":1 Color';
const CUSTOM = 'DTF:Custom size';
const STITCHED = 'EMB:Custom badge';

describe('GET /PriceCodes/processes', () => {
  const processes = async (client: Client): Promise<PricingProcess[]> =>
    (await client.get('/PriceCodes/processes')).json.processes;

  test('GET /PriceCodes/processes 200: PricingProcesses · processes: those that the account may order', async () => {
    const service = await startService();
    const codes = async (client: Client) => (await processes(client)).map(({ processCode }) => processCode);
    const all = await codes(service.us);
    expect(all).toEqual(['UC', 'DTF', 'GSH', 'SCR', 'VIN', 'EMB', 'PUF']);
    expect(await codes(await buyer(service, { withheldProcesses: ['DTF', 'PUF'] }))).toEqual(
      all.filter((code) => code !== 'DTF' && code !== 'PUF'),
    );
    expect(await codes(await buyer(service, { priceTier: 'T1' }))).toEqual(
      all.filter((code) => code !== 'EMB'),
    );
  });

  test('GET /PriceCodes/processes 403: credentials without the right to order', async () => {
    const { as } = await startService();
    expect(await (await as('viewer')).get('/PriceCodes/processes')).toMatchObject({
      status: 403,
      json: { status: 403, instance: '/us/api/PriceCodes/processes' },
    });
  });

  test('PricingProcess · processCode, description, sheetColor, tooltip: describe the process', async () => {
    const service = await startService();
    expect((await processes(service.us))[0]).toMatchObject({
      processCode: 'UC',
      description: 'Spot color transfers',
      sheetColor: '#1f6feb',
      tooltip: 'Up to three solid colors, matched to your swatches.',
    });
    const [british] = await processes(await buyer(service, { region: 'uk' }));
    expect(british).toMatchObject({
      description: 'Spot colour transfers',
      tooltip: 'Up to three solid colours, matched to your swatches.',
    });
    const all = await processes(service.us);
    expect(all.find(({ processCode }) => processCode === 'VIN')?.tooltip).toBeNull();
    for (const { sheetColor } of all) expect(sheetColor).toMatch(/^#[\da-f]{6}$/);
  });

  test('PricingProcess · sheetRank: the order of the list', async () => {
    const { us } = await startService();
    const ranks = (await processes(us)).map(({ sheetRank }) => sheetRank);
    expect(ranks).toEqual([...new Set(ranks)].toSorted((one, other) => one - other));
  });

  test('PricingProcess · active: an inactive one has no price codes', async () => {
    const { us } = await startService();
    const inactive = (await processes(us)).filter(({ active }) => !active);
    expect(inactive.map(({ processCode }) => processCode)).toEqual(['PUF']);
    expect((await requestList(us)).filter(({ processCode }) => processCode === 'PUF')).toEqual([]);
    expect((await ask(us, 'PUF:4" x 4":1 Color')).status).toBe(404);
  });

  test('PricingProcess · mapsToMaster: gang sheets map to digital film, and so do their codes', async () => {
    const { us } = await startService();
    const masters = (await processes(us)).map(({ processCode, mapsToMaster }) => [processCode, mapsToMaster]);
    expect(masters.filter(([, master]) => master !== null)).toEqual([['GSH', 'DTF']]);
    const listed = await requestList(us);
    for (const { processCode, masterProcessCode } of listed) {
      expect(masterProcessCode).toBe(processCode === 'GSH' ? 'DTF' : processCode);
    }
  });

  test('PricingProcess · maximumSheetUnit, maximumSheetWidth, maximumSheetHeight: in the units of the region', async () => {
    const service = await startService();
    const sheets = async (client: Client) =>
      (await processes(client))
        .filter(({ processCode }) => ['UC', 'VIN', 'EMB'].includes(processCode ?? ''))
        .map((one) => [one.maximumSheetUnit, one.maximumSheetWidth, one.maximumSheetHeight]);
    expect(await sheets(service.us)).toEqual([
      ['in', 12, 16],
      ['in', 15, 36],
      [null, null, null],
    ]);
    expect(await sheets(await buyer(service, { region: 'eu' }))).toEqual([
      ['cm', 30, 40],
      ['mm', 380, 900],
      [null, null, null],
    ]);
  });
});

describe('GET /PriceCodes/price-codes', () => {
  test('GET /PriceCodes/price-codes 200: every region has its own catalogue, and each listed code exists', async () => {
    const service = await startService();
    for (const region of ['us', 'nz', 'au', 'uk', 'eu'] as const) {
      const client = await buyer(service, { region });
      const list = await requestList(client);
      expect(list.length).toBeGreaterThan(20);
      expect(new Set(getCodes(list)).size).toBe(list.length);
      for (const one of list) expect((await ask(client, one.priceCode ?? '')).json).toEqual(one);
    }
  });

  test('GET /PriceCodes/price-codes 403: credentials without the right to order', async () => {
    const { as } = await startService();
    expect((await (await as('viewer')).get('/PriceCodes/price-codes')).status).toBe(403);
  });

  test.each([
    ['page=0', 'page'],
    ['page=two', 'page'],
    ['pageSize=0', 'pageSize'],
    ['pageSize=201', 'pageSize'],
  ])('GET /PriceCodes/price-codes 400: %s', async (query, field) => {
    const { us } = await startService();
    const { status, json } = await us.get(`/PriceCodes/price-codes?${query}`);
    expect(status).toBe(400);
    expect(Object.keys(json.errors)).toEqual([field]);
  });

  test('priceCodes · page, pageSize: the pages together are the list; a page after the last is empty', async () => {
    const { us } = await startService();
    const all = await requestList(us);
    const pages = [];
    for (const page of [1, 2, 3]) pages.push(await requestList(us, `?pageSize=10&page=${page}`));
    expect(pages.map(({ length }) => length)).toEqual([10, 10, all.length - 20]);
    expect(pages.flat()).toEqual(all);
    expect(await requestList(us, '?pageSize=10&page=4')).toEqual([]);
    expect(await requestList(us, '?pageSize=200')).toEqual(all);
  });

  test.each([
    ['tabloid', (one: PriceCode) => one.priceCode?.includes('Tabloid')],
    ['DIGITAL film 9"', (one: PriceCode) => one.priceCode === 'DTF:9" x 11"'],
    ['overlocked', (one: PriceCode) => one.description?.includes('overlocked')],
    ['cut vinyl', (one: PriceCode) => one.categoryCode === 'CV'],
    ['gsh', (one: PriceCode) => one.processCode === 'GSH'],
    ['no such thing', () => false],
    [' ', () => true],
  ])('priceCodes · filter: %s', async (filter, isMeant) => {
    const { us } = await startService();
    const all = await requestList(us);
    expect(await requestList(us, `?filter=${encodeURIComponent(filter)}`)).toEqual(all.filter(isMeant));
  });

  test('PriceCode · hasMetaDataAttributes: metadata-priced, and so never in the list', async () => {
    const { us } = await startService();
    const list = await requestList(us);
    expect(list.filter(({ hasMetaDataAttributes }) => hasMetaDataAttributes)).toEqual([]);
    expect(getCodes(list)).not.toContain(CUSTOM);
    for (const [code, query] of [
      [CUSTOM, '?dgX=2&dgY=2'],
      [STITCHED, '?stitches=900'],
    ] as const) {
      expect((await ask(us, code, query)).json).toMatchObject({
        priceCode: code,
        hasMetaDataAttributes: true,
      });
    }
  });
});

describe('GET /PriceCodes/{priceCode}', () => {
  test.each([SPOT, 'VIN:Name/Number set', 'VIN:Numbers 8"', 'SCR:Tabloid/A3:2 Colors', 'GSH:22" x 120"'])(
    'GET /PriceCodes/{priceCode} 200: PriceCode · priceCode: %s, percent-encoded',
    async (code) => {
      const { us } = await startService();
      expect(await ask(us, code)).toMatchObject({ status: 200, json: { priceCode: code } });
    },
  );

  test.each([
    ['there is none', 'UC:1 x 1'],
    ['another case', SPOT.toLowerCase()],
    ['a code of another region', 'UC:28cm x 28cm:1 Colour'],
    ['broken encoding', undefined],
  ])('GET /PriceCodes/{priceCode} 404: %s', async (_, code) => {
    const { us } = await startService();
    const answer = code === undefined ? await us.get('/PriceCodes/%E0%A4%A') : await ask(us, code);
    expect(answer).toMatchObject({
      status: 404,
      json: { status: 404, detail: 'The price code does not exist.' },
    });
  });

  test('GET /PriceCodes/{priceCode} 404: a process that the account may not order, exactly like a code that does not exist', async () => {
    const service = await startService();
    const client = await buyer(service, { withheldProcesses: ['UC', 'DTF'] });
    expect(getCodes(await requestList(client)).filter((code) => /^(UC|DTF):/.test(code ?? ''))).toEqual([]);
    const absent = await ask(client, 'XX:1');
    for (const code of [SPOT, CUSTOM]) {
      const rejected = await ask(client, code);
      expect(rejected).toMatchObject({ status: 404 });
      expect({ ...rejected.json, instance: '' }).toEqual({ ...absent.json, instance: '' });
    }
  });

  test('GET /PriceCodes/{priceCode} 403: credentials without the right to order', async () => {
    const { as } = await startService();
    expect((await ask(await as('viewer'), SPOT)).status).toBe(403);
  });

  test.each([
    [CUSTOM, '', ['dgX', 'dgY']],
    [CUSTOM, '?dgX=4', ['dgY']],
    [CUSTOM, '?dgY=4', ['dgX']],
    [CUSTOM, '?dgX=22.5&dgY=60', ['dgX']],
    [CUSTOM, '?dgX=0.5&dgY=61', ['dgX', 'dgY']],
    [CUSTOM, '?dgX=wide&dgY=4', ['dgX']],
    [CUSTOM, '?dgX=1e999&dgY=4', ['dgX']],
    [CUSTOM, '?dgX=1e1.5&dgY=0x4', ['dgX', 'dgY']],
    [STITCHED, '', ['stitches']],
    [STITCHED, '?stitches=499', ['stitches']],
    [STITCHED, '?stitches=30001', ['stitches']],
    [STITCHED, '?stitches=700.5', ['stitches']],
    [STITCHED, '?dgX=4&dgY=4', ['stitches']],
  ])('GET /PriceCodes/{priceCode} 400: %s%s has a missing or invalid number', async (code, query, fields) => {
    const { us } = await startService();
    const { status, json } = await ask(us, code, query);
    expect(status).toBe(400);
    expect(Object.keys(json.errors)).toEqual(fields);
  });

  test('PriceCode · description, categoryCode, categoryName, name, processCode, masterProcessCode: describe the code', async () => {
    const { us } = await startService();
    expect((await ask(us, 'GSH:22" x 24"')).json).toMatchObject({
      description: 'A sheet of 22" x 24" with your own layout.',
      categoryCode: 'GS',
      categoryName: 'Gang sheets',
      name: 'Gang sheet 22" x 24"',
      processCode: 'GSH',
      masterProcessCode: 'DTF',
    });
    const names = new Map((await requestList(us)).map((one) => [one.categoryCode, one.categoryName]));
    expect(Object.fromEntries(names)).toEqual({
      HT: 'Heat transfers',
      GS: 'Gang sheets',
      CV: 'Cut vinyl',
      BD: 'Badges',
    });
  });

  test('PriceCode · minimumQuantity: is `from` of the first band, and not always 1', async () => {
    const { us } = await startService();
    const list = await requestList(us);
    for (const { minimumQuantity, priceBands } of list) expect(minimumQuantity).toBe(priceBands?.[0]?.from);
    const least = new Set(list.map(({ minimumQuantity }) => minimumQuantity));
    expect([...least].toSorted((one, other) => one - other)).toEqual([1, 12, 25]);
  });

  test('PriceCode · externalSupplier, externalPriceCode: set for goods of a partner, otherwise null', async () => {
    const { us } = await startService();
    for (const one of await requestList(us)) {
      const external = one.processCode === 'EMB' ? ['Needle & Bobbin', 'NB-RND-76'] : [null, null];
      expect([one.externalSupplier, one.externalPriceCode]).toEqual(external);
    }
  });

  test('PriceCode · standardSetup, standardReset: null without one, which is not 0', async () => {
    const { us } = await startService();
    const charges = async (code: string) => {
      const { standardSetup, standardReset } = (await ask(us, code)).json;
      return [standardSetup, standardReset];
    };
    expect(await charges(SPOT)).toEqual([15, 6]);
    expect(await charges('UC:11" x 11":3 Colors')).toEqual([45, 18]);
    expect(await charges('DTF:3" x 3"')).toEqual([null, 2.5]);
    expect(await charges('SCR:Tabloid/A3:1 Color')).toEqual([22, null]);
    expect(await charges('VIN:Name/Number set')).toEqual([null, 0]);
    expect(await charges('GSH:22" x 24"')).toEqual([null, null]);
  });

  test('PriceCode · sampleAvailable, samplePrice, sampleLabel: price and label are present only with a sample', async () => {
    const { us } = await startService();
    expect((await ask(us, SPOT)).json).toMatchObject({
      sampleAvailable: true,
      samplePrice: 9.5,
      sampleLabel: 'One printed sample',
    });
    const list = await requestList(us);
    const without = list.filter(({ sampleAvailable }) => !sampleAvailable);
    expect(without.length).toBeGreaterThan(5);
    for (const one of list) {
      expect(['samplePrice' in one, 'sampleLabel' in one]).toEqual([
        one.sampleAvailable,
        one.sampleAvailable,
      ]);
    }
  });

  test('PriceCode · sizeUnit, sizeWidth, sizeHeight: the dimensions, which differ from the size in the code', async () => {
    const service = await startService();
    const geometry = async (client: Client, code: string) => {
      const { sizeUnit, sizeWidth, sizeHeight } = (await ask(client, code)).json;
      return [sizeUnit, sizeWidth, sizeHeight];
    };
    expect(await geometry(service.us, SPOT)).toEqual(['in', 10.75, 10.75]);
    expect(await geometry(service.us, 'VIN:Logo 4" x 4"')).toEqual(['cm', 10, 10]);
    expect(await geometry(service.us, 'VIN:Numbers 8"')).toEqual(['mm', 120, 203]);
    expect(await geometry(service.us, 'VIN:Name/Number set')).toEqual([null, null, null]);
    const au = await buyer(service, { region: 'au' });
    expect(await geometry(au, 'UC:30cm x 40cm:1 Colour')).toEqual(['cm', 29.6, 39.6]);
    expect(await geometry(au, 'DTF:A4')).toEqual(['mm', 204, 291]);
    const { json } = await ask(service.us, CUSTOM, '?dgX=3.5&dgY=40');
    expect([json.sizeUnit, json.sizeWidth, json.sizeHeight]).toEqual(['in', 3.5, 40]);
  });

  test('PriceCode · priceBands: PriceBand · from, to, unitPrice: bands are contiguous, the last is open, and prices fall', async () => {
    const { us } = await startService();
    expect((await ask(us, SPOT)).json.priceBands).toEqual([
      { from: 12, to: 23, unitPrice: 3.06 },
      { from: 24, to: 47, unitPrice: 2.57 },
      { from: 48, to: 99, unitPrice: 2.14 },
      { from: 100, to: 249, unitPrice: 1.77 },
      { from: 250, to: 499, unitPrice: 1.5 },
      { from: 500, to: null, unitPrice: 1.32 },
    ]);
    for (const { priceBands } of await requestList(us)) {
      const bands = priceBands ?? [];
      expect(bands.length).toBeGreaterThan(3);
      for (const [index, band] of bands.entries()) {
        const next = bands[index + 1];
        expect(band.to).toBe(next ? next.from - 1 : null);
        if (next) expect(next.unitPrice).toBeLessThan(band.unitPrice);
      }
    }
  });

  test('PriceCode · priceBands: prices are those of the account’s tier and region, rounded half up to two decimals', async () => {
    const service = await startService();
    const first = async (options: { region?: RegionCode; priceTier?: PriceTier }, code: string) => {
      const { json } = await ask(await buyer(service, options), code);
      return [json.priceBands[0].unitPrice, json.standardReset, json.samplePrice];
    };
    // 1.20, 2.50 and 5.00 in the US at T2.
    expect(await first({ priceTier: 'T2' }, 'DTF:3" x 3"')).toEqual([1.2, 2.5, 5]);
    expect(await first({ priceTier: 'T1' }, 'DTF:3" x 3"')).toEqual([1.38, 2.88, 5.75]);
    expect(await first({ priceTier: 'T3' }, 'DTF:3" x 3"')).toEqual([1.06, 2.2, 4.4]);
    expect(await first({ region: 'nz' }, 'DTF:75mm x 75mm')).toEqual([1.98, 4.13, 8.25]);
    expect(await first({ region: 'uk', priceTier: 'T3' }, 'DTF:75mm x 75mm')).toEqual([0.83, 1.74, 3.48]);
  });

  test.each([
    ['3.3333333333333335', 3.3333333333333335],
    ['1e1', 10],
    ['0.2E+1', 2],
    ['120e-1', 12],
    ['0000000000000004.5', 4.5],
  ])('priceCode · dgX, dgY: any number allowed in an order is accepted: %s', async (text, number) => {
    const { us } = await startService();
    const { status, json } = await ask(
      us,
      CUSTOM,
      `?dgX=${encodeURIComponent(text)}&dgY=${encodeURIComponent(text)}`,
    );
    expect([status, json.sizeWidth, json.sizeHeight]).toEqual([200, number, number]);
  });

  test('priceCode · dgX, dgY: the price grows with the area', async () => {
    const service = await startService();
    const prices = async (client: Client, dgX: number, dgY: number) =>
      (await ask(client, CUSTOM, `?dgX=${dgX}&dgY=${dgY}`)).json.priceBands;
    const small = await prices(service.us, 5, 10);
    expect(small).toEqual([
      { from: 1, to: 9, unitPrice: 2.5 },
      { from: 10, to: 24, unitPrice: 2.2 },
      { from: 25, to: 49, unitPrice: 1.9 },
      { from: 50, to: 99, unitPrice: 1.65 },
      { from: 100, to: 249, unitPrice: 1.43 },
      { from: 250, to: null, unitPrice: 1.25 },
    ]);
    expect((await prices(service.us, 10, 10))[0].unitPrice).toBe(4.5);
    expect((await prices(service.us, 5, 20))[0].unitPrice).toBe(4.5);
    // The same size in centimetres costs the same, except for the price level of the region.
    const eu = await buyer(service, { region: 'eu' });
    expect((await prices(eu, 12.7, 25.4))[0].unitPrice).toBe(2.3);
  });

  test('priceCode · stitches: the price grows with each started thousand', async () => {
    const { us } = await startService();
    const price = async (stitches: number) =>
      (await ask(us, STITCHED, `?stitches=${stitches}`)).json.priceBands[0].unitPrice;
    expect([await price(1000), await price(1001), await price(2000), await price(30_000)]).toEqual([
      2.02, 2.44, 2.44, 14.2,
    ]);
  });

  test('priceCode · dgX, dgY, stitches: are ignored where the price does not depend on them', async () => {
    const { us } = await startService();
    expect((await ask(us, SPOT, '?dgX=1&dgY=999999&stitches=-4')).json).toEqual((await ask(us, SPOT)).json);
  });
});

describe('attributes of price codes', () => {
  test('PriceCode · attributes: the attributes to give; empty if there are none', async () => {
    const { us } = await startService();
    const names = async (code: string, query = '') =>
      (await ask(us, code, query)).json.attributes.map(({ name }: ProcessAttribute) => name);
    expect(await names(SPOT)).toEqual(['Color Count', 'Ink Colors', 'Garment Color', 'Placement']);
    expect(await names('DTF:Neck label 2" x 2"')).toEqual([]);
    expect(await names(CUSTOM, '?dgX=1&dgY=1')).toEqual(['DG-X', 'DG-Y', 'Finish', 'Garment Color']);
  });

  test.each([
    ['us', SPOT, 'Color Count'],
    ['nz', 'UC:28cm x 28cm:1 Colour', 'Colour Count'],
    ['au', 'UC:28cm x 28cm:1 Colour', 'Colour Count'],
    ['uk', 'UC:28cm x 28cm:1 Colour', 'Colour Count'],
    ['eu', 'UC:28cm x 28cm:1 Colour', 'Colour Count'],
  ] as const)('ProcessAttribute · name: in %s %s has %s', async (region, code, name) => {
    const service = await startService();
    const { attributes } = (await ask(await buyer(service, { region }), code)).json;
    expect(attributes[0].name).toBe(name);
  });

  test('ProcessAttribute · type, minLength, maxLength, minValue, maxValue, enumerableValues: each type has its own fields', async () => {
    const { us } = await startService();
    const own = { text: ['maxLength', 'minLength'], int: ['maxValue', 'minValue'], select: [] as string[] };
    const fields: Record<string, string[]> = { ...own, decimal: own.int };
    const seen = new Set<string>();
    const list = [...(await requestList(us)), (await ask(us, CUSTOM, '?dgX=1&dgY=1')).json as PriceCode];
    for (const attribute of list.flatMap(({ attributes }) => attributes ?? [])) {
      const type = attribute.type ?? '';
      seen.add(type);
      const extra = Object.keys(attribute).filter((key) => /^(min|max)/.test(key));
      expect(extra.toSorted()).toEqual(fields[type]);
      expect(attribute.enumerableValues === null).toBe(type !== 'select');
      expect(attribute.minLength ?? 0).toBeLessThanOrEqual(attribute.maxLength ?? 0);
      expect(attribute.minValue ?? 0).toBeLessThanOrEqual(attribute.maxValue ?? 0);
    }
    expect([...seen].toSorted()).toEqual(['decimal', 'int', 'select', 'text']);

    const spot: PriceCode = (await ask(us, 'UC:4" x 4":2 Colors')).json;
    expect(getAttribute(spot, 'Color Count')).toMatchObject({ type: 'int', minValue: 1, maxValue: 2 });
    expect(getAttribute(spot, 'Ink Colors')).toMatchObject({ type: 'text', minLength: 2, maxLength: 80 });
    const gang: PriceCode = (await ask(us, 'GSH:22" x 24"')).json;
    expect(getAttribute(gang, 'Edge Bleed')).toMatchObject({ type: 'decimal', minValue: 0, maxValue: 5 });
  });

  test('AttributeValue · value, text, selected: choices, the first one preselected', async () => {
    const { us } = await startService();
    expect(getAttribute((await ask(us, SPOT)).json, 'Garment Color').enumerableValues).toEqual([
      { value: 'LIGHT', text: 'Light', selected: true },
      { value: 'DARK', text: 'Dark', selected: false },
      { value: 'MIXED', text: 'Light and dark', selected: false },
    ]);
  });

  test('ProcessAttribute · label, description, required, assetAttributeName: the label, whether it is required, and where it is stored', async () => {
    const { us } = await startService();
    const spot: PriceCode = (await ask(us, SPOT)).json;
    expect(getAttribute(spot, 'Color Count')).toMatchObject({
      label: 'How many colors',
      description: 'White counts as a color.',
      required: true,
      assetAttributeName: null,
    });
    expect(getAttribute(spot, 'Garment Color')).toMatchObject({
      label: 'Color of the garment',
      description: null,
      required: false,
      assetAttributeName: 'GarmentShade',
    });
  });

  test('ProcessAttribute · isMetaDataAttribute: width, height and stitches, numbers with a range', async () => {
    const { us } = await startService();
    const custom: PriceCode = (await ask(us, CUSTOM, '?dgX=1&dgY=1')).json;
    const stitched: PriceCode = (await ask(us, STITCHED, '?stitches=500')).json;
    const driving = [custom, stitched]
      .flatMap(({ attributes }) => attributes ?? [])
      .filter(({ isMetaDataAttribute }) => isMetaDataAttribute)
      .map(({ name, type, required, minValue, maxValue }) => [name, type, required, minValue, maxValue]);
    expect(driving).toEqual([
      ['DG-X', 'decimal', true, 1, 22],
      ['DG-Y', 'decimal', true, 1, 60],
      ['Stitches', 'int', true, 500, 30_000],
    ]);
    const all = (await requestList(us)).flatMap(({ attributes }) => attributes ?? []);
    expect(all.filter(({ isMetaDataAttribute }) => isMetaDataAttribute)).toEqual([]);
  });
});

describe('prices for orders', () => {
  test('a quantity has the price of its band, and none below the first', async () => {
    const { acme } = await startService();
    const { priceBands = null } = findPriceCode(acme, SPOT) ?? {};
    expect([0, 11, 12, 23, 24, 499, 500, 1e6].map((quantity) => unitPriceAt(priceBands, quantity))).toEqual([
      undefined,
      undefined,
      3.06,
      3.06,
      2.57,
      1.5,
      1.32,
      1.32,
    ]);
  });

  test('a metadata-priced code without its numbers is found, but has no bands', async () => {
    const { acme } = await startService();
    const found = findPriceCode(acme, CUSTOM, { dgX: 4 });
    expect(found).toMatchObject({ minimumQuantity: 1, sizeWidth: null, sizeHeight: null, priceBands: null });
    expect(unitPriceAt(found?.priceBands ?? null, 5)).toBeUndefined();
  });
});

describe('lookups', () => {
  test('GET /Lookups/countries 200: Countries · countries: every country of ISO 3166-1 once, by name', async () => {
    const { us } = await startService();
    const { countries } = (await us.get('/Lookups/countries')).json;
    expect(countries.length).toBe(249);
    for (const key of ['name', 'iso2', 'iso3']) {
      expect(new Set(countries.map((country: Record<string, string>) => country[key])).size).toBe(249);
    }
    const names = countries.map(({ name }: { name: string }) => name);
    expect(names).toEqual(names.toSorted((one: string, other: string) => one.localeCompare(other, 'en')));
  });

  test('Country · name, iso2, iso3, hasSuburb, hasState, hasPostalCode: the parts of its addresses', async () => {
    const { us } = await startService();
    const { countries } = (await us.get('/Lookups/countries')).json;
    const one = (iso2: string) => countries.find((country: { iso2: string }) => country.iso2 === iso2);
    expect(one('NZ')).toEqual({
      ...{ name: 'New Zealand', iso2: 'NZ', iso3: 'NZL' },
      ...{ hasSuburb: true, hasState: true, hasPostalCode: true },
    });
    expect(one('US')).toEqual({
      ...{ name: 'United States', iso2: 'US', iso3: 'USA' },
      ...{ hasSuburb: false, hasState: true, hasPostalCode: true },
    });
    expect(one('HK')).toMatchObject({ iso3: 'HKG', hasSuburb: true, hasState: false, hasPostalCode: false });
    expect(one('DE')).toMatchObject({ iso3: 'DEU', hasSuburb: false, hasState: false, hasPostalCode: true });
  });

  test.each([
    ['us', 'US'],
    ['nz', 'NZ'],
    ['au', 'AU'],
    ['uk', 'GB'],
    ['eu', 'NL'],
  ] as const)('Countries · defaultCountry: of %s is %s', async (region, iso2) => {
    const service = await startService();
    const { json } = await (await buyer(service, { region })).get('/Lookups/countries');
    expect(json.defaultCountry).toBe(iso2);
  });

  test.each([
    ['US', 54, 'Colorado', 'CO'],
    ['CA', 13, 'Quebec', 'QC'],
    ['AU', 8, 'Queensland', 'QLD'],
    ['NZ', 17, 'Waikato', 'WKO'],
  ])(
    'GET /Lookups/countries/{countryCode}/states 200: States · countryCode, states: State · name, abbreviation: %s has %i',
    async (code, count, name, abbreviation) => {
      const { us } = await startService();
      const { json } = await us.get(`/Lookups/countries/${code}/states`);
      expect(json.countryCode).toBe(code);
      expect(json.states.length).toBe(count);
      expect(json.states).toContainEqual({ name, abbreviation });
      expect(new Set(json.states.map((state: { abbreviation: string }) => state.abbreviation)).size).toBe(
        count,
      );
    },
  );

  test('States · countryCode, states: lower case is accepted; the list is empty for a country without states and for an unknown code', async () => {
    const { us } = await startService();
    const answer = async (code: string) => (await us.get(`/Lookups/countries/${code}/states`)).json;
    expect(await answer('au')).toEqual(await answer('AU'));
    expect(await answer('de')).toEqual({ countryCode: 'DE', states: [] });
    expect(await answer('ZZ')).toEqual({ countryCode: 'ZZ', states: [] });
  });

  test('Country · hasState: is true exactly where the lookup has states', async () => {
    const { us } = await startService();
    const { countries } = (await us.get('/Lookups/countries')).json;
    for (const { iso2, hasState } of countries) {
      const { states } = (await us.get(`/Lookups/countries/${iso2}/states`)).json;
      expect([iso2, states.length > 0]).toEqual([iso2, hasState]);
    }
  });

  test.each(['USA', 'U', 'U1', '%20'])(
    'GET /Lookups/countries/{countryCode}/states 400: %s is not an alpha-2 code',
    async (code) => {
      const { us } = await startService();
      const { status, json } = await us.get(`/Lookups/countries/${code}/states`);
      expect(status).toBe(400);
      expect(Object.keys(json.errors)).toEqual(['countryCode']);
    },
  );

  test('GET /Lookups/job-statuses 200: JobStatus · id, name: the region’s own, including those of the contract', async () => {
    const service = await startService();
    const { json } = await service.us.get('/Lookups/job-statuses');
    const names = json.map(({ name }: { name: string }) => name);
    expect(names).toEqual(expect.arrayContaining(['Awaiting artwork', 'In production', 'Shipped']));
    expect(json.map(({ id }: { id: number }) => id)).toEqual(
      names.map((_: string, index: number) => index + 1),
    );
    service.world.addStatus('us', 'Press test', 'production');
    expect((await service.us.get('/Lookups/job-statuses')).json.at(-1)).toEqual({
      id: names.length + 1,
      name: 'Press test',
    });
  });

  test('GET /Lookups/process-codes 200: ProcessCode · processCode, description, rank: all of the region, by rank, including those that the account may not order', async () => {
    const service = await startService();
    const client = await buyer(service, { withheldProcesses: ['UC'] });
    const { json } = await client.get<ProcessCode[]>('/Lookups/process-codes');
    expect(json.map(({ processCode, description, rank }) => [rank, processCode, description])).toEqual([
      [1, 'UC', 'Spot color transfers'],
      [2, 'DTF', 'Digital film transfers'],
      [3, 'GSH', 'Digital film gang sheets'],
      [4, 'SCR', 'Screen-printed transfers'],
      [5, 'VIN', 'Cut vinyl names and numbers'],
      [6, 'EMB', 'Embroidered badges'],
      [7, 'PUF', 'Puff relief transfers'],
      [8, 'STK', 'Stocked goods'],
      [9, 'EQP', 'Equipment'],
    ]);
    const british = await (await buyer(service, { region: 'uk' })).get('/Lookups/process-codes');
    expect(british.json[0].description).toBe('Spot colour transfers');
  });

  test('GET /Lookups/process-codes 403: credentials without the right to order', async () => {
    const { as } = await startService();
    expect((await (await as('viewer')).get('/Lookups/process-codes')).status).toBe(403);
  });

  test('ProcessCode · metadata: ProcessMetadata · setupApplies, resetApplies: match the price codes', async () => {
    const { us } = await startService();
    const processes = (await us.get<ProcessCode[]>('/Lookups/process-codes')).json;
    const list = await requestList(us);
    for (const { processCode, metadata } of processes) {
      if (processCode === 'PUF') continue;
      const own = list.filter((one) => one.processCode === processCode);
      expect([
        processCode,
        own.some(({ standardSetup }) => standardSetup !== null),
        own.some(({ standardReset }) => standardReset !== null),
      ]).toEqual([processCode, metadata.setupApplies, metadata.resetApplies]);
    }
  });

  test('ProcessMetadata · scheduleable, physicalStockRequired, printable: printed in-house, purchased, or in stock', async () => {
    const { us } = await startService();
    const processes = (await us.get<ProcessCode[]>('/Lookups/process-codes')).json;
    const kinds = new Map(
      processes.map(({ processCode, metadata: { scheduleable, physicalStockRequired, printable } }) => [
        processCode,
        [scheduleable, physicalStockRequired, printable],
      ]),
    );
    expect(kinds.get('UC')).toEqual([true, false, true]);
    expect(kinds.get('EMB')).toEqual([false, false, false]);
    expect(kinds.get('STK')).toEqual([false, true, false]);
  });

  test('GET /Lookups/size-sets 200: SizeSet · id, name, sizes: labels in order, without empty ones', async () => {
    const service = await startService();
    const { json } = await service.us.get('/Lookups/size-sets');
    const set = (name: string) => json.find((one: { name: string }) => one.name === name);
    expect(set('Adult tops').sizes).toEqual(['XS', 'S', 'M', 'L', 'XL', '2XL', '3XL', '4XL', '5XL']);
    expect(set('Toddler').sizes).toEqual(['2T', '3T', '4T', '5T']);
    expect(set('Hats').sizes).toEqual(['S/M', 'L/XL']);
    const ids = json.map(({ id }: { id: number }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    const british = await (await buyer(service, { region: 'uk' })).get('/Lookups/size-sets');
    expect(british.json[0].id).not.toBe(ids[0]);
  });

  test('callers without the right to order can read lookups', async () => {
    const { as } = await startService();
    const viewer = await as('viewer');
    for (const path of ['countries', 'countries/US/states', 'job-statuses', 'size-sets']) {
      expect((await viewer.get(`/Lookups/${path}`)).status).toBe(200);
    }
  });
});

describe('GET /promocode/validate/{code}', () => {
  const validate = async (client: Client, code: string, processCodes?: string) => {
    const query = processCodes === undefined ? '' : `?processCodes=${encodeURIComponent(processCodes)}`;
    const { status, json } = await client.get(`/promocode/validate/${encodeURIComponent(code)}${query}`);
    expect(status).toBe(200);
    return json;
  };

  test('GET /promocode/validate/{code} 200: PromoValidation · isValid, promoCode, description, discount, isFixed, message: a percentage', async () => {
    const { us } = await startService();
    expect(await validate(us, 'TEAM15')).toEqual({
      isValid: true,
      promoCode: 'TEAM15',
      description: '15% off for teams',
      discount: 15,
      isFixed: false,
      message: null,
      applicableProcessCodes: null,
    });
  });

  test('PromoValidation · discount, isFixed: a fixed discount is in cents', async () => {
    const { us } = await startService();
    expect(await validate(us, 'SHIPIT')).toMatchObject({ isValid: true, discount: 750, isFixed: true });
  });

  test('PromoValidation · promoCode: case-insensitive, and answered in upper case', async () => {
    const { us } = await startService();
    expect(await validate(us, ' team15 ')).toEqual(await validate(us, 'TEAM15'));
  });

  test.each([
    ['NOSUCH', 'NOSUCH', null, 'The promo code does not exist.'],
    ['a/b "c"', 'a/b "c"', null, 'The promo code does not exist.'],
    ['%ZZ', '%ZZ', null, 'The promo code does not exist.'],
    ['summer25', 'SUMMER25', '25% off, summer 2025', 'The promo code has expired.'],
    ['DECADE30', 'DECADE30', '30% off in the thirties', 'The promo code is not valid yet.'],
    ['LAUNCH50', 'LAUNCH50', '50% off for the first hundred', 'The promo code has been used up.'],
  ])(
    'GET /promocode/validate/{code} 200: PromoValidation · isValid, message: %s is invalid',
    async (asked, promoCode, description, message) => {
      const { us } = await startService();
      const nothing = { isValid: false, discount: 0, isFixed: false, applicableProcessCodes: null };
      expect(await validate(us, asked)).toEqual({ ...nothing, promoCode, description, message });
    },
  );

  test('any code and processes answer 200', async () => {
    const { us } = await startService();
    for (const text of ['<b>'.repeat(999), '\u0000', '%', '..;', '🙏']) {
      expect(await validate(us, text, text)).toMatchObject({ isValid: false, promoCode: text });
    }
  });

  test('a code is valid from its start (inclusive) to its end (exclusive)', async () => {
    const { us, clock } = await startService();
    const isValidAt = async (code: string, time: string, ms: number) => {
      clock.now = Date.parse(time) + ms;
      return (await validate(us, code)).isValid;
    };
    const [begins, ends] = ['2030-01-01T00:00:00Z', '2025-09-01T00:00:00Z'];
    expect(await isValidAt('DECADE30', begins, -1)).toBe(false);
    expect(await isValidAt('DECADE30', begins, 0)).toBe(true);
    expect(await isValidAt('DECADE30', '2040-01-01T00:00:00Z', -1)).toBe(true);
    expect(await isValidAt('DECADE30', '2040-01-01T00:00:00Z', 0)).toBe(false);
    const early = await startService();
    early.clock.now = Date.parse(ends) - 1;
    const client = await early.as('user');
    expect((await validate(client, 'SUMMER25')).isValid).toBe(true);
    early.clock.now += 1;
    expect((await validate(client, 'SUMMER25')).isValid).toBe(false);
  });

  test.each([
    [undefined, true, null],
    ['', true, null],
    [' , ', true, null],
    ['DTF', true, ['DTF']],
    ['UC, gsh ,DTF,GSH', true, ['GSH', 'DTF']],
    ['UC,VIN', false, []],
  ])(
    'promoCode · processCodes: PromoValidation · applicableProcessCodes: FILM20 for %s',
    async (asked, isValid, applicable) => {
      const { us } = await startService();
      expect(await validate(us, 'FILM20', asked)).toMatchObject({
        isValid,
        discount: isValid ? 20 : 0,
        message: isValid ? null : 'The promo code is not for these processes.',
        applicableProcessCodes: applicable,
      });
    },
  );

  test('PromoValidation · applicableProcessCodes: null for a code for every process', async () => {
    const { us } = await startService();
    expect(await validate(us, 'TEAM15', 'UC,DTF')).toMatchObject({
      isValid: true,
      applicableProcessCodes: null,
    });
  });

  test('orders exhaust a code: of the account, or of the region', async () => {
    const service = await startService();
    const { acme, us } = service;
    const other = await buyer(service);
    const british = await buyer(service, { region: 'uk' });
    const valid = async (client: Client, code: string) => (await validate(client, code)).isValid;

    redeemPromo(acme, 'welcome10');
    expect([await valid(us, 'WELCOME10'), await valid(other, 'WELCOME10')]).toEqual([false, true]);

    for (const account of [acme, other.account]) redeemPromo(account, 'FIRST3');
    expect(await valid(us, 'FIRST3')).toBe(true);
    redeemPromo(acme, 'FIRST3');
    expect(await Promise.all([us, other, british].map((client) => valid(client, 'FIRST3')))).toEqual([
      false,
      false,
      true,
    ]);
  });

  test('a code of another region or tier answers like an unknown one', async () => {
    const service = await startService();
    const absent = { isValid: false, description: null, message: 'The promo code does not exist.' };
    expect(await validate(service.us, 'KIWI10')).toMatchObject(absent);
    expect(await validate(await buyer(service, { region: 'nz' }), 'KIWI10')).toMatchObject({ isValid: true });
    expect(await validate(service.us, 'VOLUME8')).toMatchObject(absent);
    expect(await validate(await buyer(service, { priceTier: 'T3' }), 'VOLUME8')).toMatchObject({
      discount: 8,
    });
  });
});
