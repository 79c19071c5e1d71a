/**
 * Assets of an account and of the catalogue, row by row of the contract, and their files.
 * One file: its tests share the assets of one service and the readers of their files.
 */
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { crc32, inflateSync } from 'node:zlib';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { cutPage } from '../../sandbox/http/paging.ts';
import { reorderBands, resetCharge } from '../../sandbox/operations/assets.ts';
import { createSandbox } from '../../sandbox/server.ts';
import { createScenario } from '../../sandbox/simulation/scenario.ts';
import { type AssetInput, globalAssets } from '../../sandbox/world/asset-files.ts';
import { findPriceCode, listPriceCodes } from '../../sandbox/world/catalogue.ts';
import { createWorld } from '../../sandbox/world/world.ts';
import type { AssetFile, AssetListEntry } from '../../shared/ordering/contract/assets.ts';
import { type Client, type Service, START, startService } from '../support/ordering-api.ts';

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
const SPOT = 'UC:11" x 11":1 Color';
const LABEL = 'DTF:Neck label 2" x 2"';

type AssetsPage = ReturnType<typeof cutPage<AssetListEntry>>;

/** The tags of a whole list. */
async function tags(client: Client, query: string, path = '/Assets'): Promise<(string | null)[]> {
  const { json } = await client.get(`${path}?pageSize=200&${query}`);
  return json.entities.map(({ assetTag }: AssetListEntry) => assetTag);
}

/** All entries of a list that fits on one page. */
async function entries(client: Client, path = '/Assets'): Promise<AssetListEntry[]> {
  return (await client.get(`${path}?pageSize=200`)).json.entities;
}

/** A sandbox whose account acme has additional assets, named after the case that they cover: `Z-<name>`. */
async function withAssets(assets: Record<string, AssetInput>): Promise<Service> {
  const service = await startService();
  for (const [name, input] of Object.entries(assets)) {
    service.acme.assets.add({ assetTag: `Z-${name}`, ...input });
  }
  return service;
}

/** The names of those assets of `withAssets` that a list has, in its order. */
const named = async (client: Client, query: string): Promise<string[]> =>
  (await tags(client, query)).flatMap((tag) => (tag?.startsWith('Z-') ? [tag.slice(2)] : []));

describe('assets', () => {
  test('GET /Assets/{assetTag} 200: AssetListEntry · assetId, assetTag, processCode, description, garment, priceCode, createDate, isGlobal and isArchived: are those given at creation', async () => {
    const { acme, us } = await startService();
    const { assetTag } = acme.assets.add({
      processCode: 'UC',
      description: 'Left chest logo',
      garment: 'Tee, black',
      priceCode: SPOT,
      createdAt: Date.parse('2025-03-04T05:06:07Z'),
    });
    const { status, json } = await us.get(`/Assets/${assetTag}`);
    expect(status).toBe(200);
    expect(json).toMatchObject({
      assetTag,
      processCode: 'UC',
      description: 'Left chest logo',
      garment: 'Tee, black',
      priceCode: SPOT,
      createDate: '2025-03-04T05:06:07.000Z',
      isGlobal: false,
      isArchived: false,
    });
    const others = (await entries(us)).filter((one) => one.assetTag !== assetTag);
    expect(others.map(({ assetId }) => assetId)).not.toContain(json.assetId);
    acme.assets.archive(assetTag);
    expect((await us.get(`/Assets/${assetTag}`)).json.isArchived).toBe(true);
  });

  test('Asset · assetId, assetTag, processCode, description, garment, priceTierCode, setup, reset, priceCode, assetUrl, createDate, isGlobal, isArchived, priceBands, customerId and attributes: the single asset equals the list entry', async () => {
    const { us, as } = await startService();
    const staff = await as('staff');
    for (const client of [us, staff]) {
      for (const path of ['/Assets', '/Assets/global']) {
        const list = await entries(client, path);
        const [first, last] = [list[0], list.at(-1)];
        for (const entry of [first, last]) {
          const { externalId, ...asset } = (await client.get(`/Assets/${entry?.assetTag}`)).json;
          expect(asset).toEqual(entry);
        }
      }
    }
  });

  test('Asset · externalId: only in a single asset, null for none; list entries omit it', async () => {
    const { us } = await withAssets({ linked: { externalId: 'design-7' }, plain: {} });
    expect((await us.get('/Assets/Z-linked')).json.externalId).toBe('design-7');
    expect((await us.get('/Assets/Z-plain')).json.externalId).toBeNull();
    for (const entry of await entries(us)) expect(entry).not.toHaveProperty('externalId');
  });

  test('AssetListEntry · priceTierCode, priceBands, setup and reset: those of its price code at the account’s tier', async () => {
    const { world, as } = await startService();
    for (const priceTier of ['T1', 'T3'] as const) {
      const account = world.addAccount({ region: 'us', priceTier });
      const client = await as('user', account);
      const code = findPriceCode(account, SPOT);
      const { assetTag } = account.assets.add({ priceCode: SPOT });
      expect((await client.get(`/Assets/${assetTag}`)).json).toMatchObject({
        priceTierCode: priceTier,
        priceBands: code?.priceBands,
        setup: code?.standardSetup,
        reset: code?.standardReset,
      });
      expect(code?.standardReset).toBeGreaterThan(0);
    }
  });

  test('charges that do not apply are 0, and an asset without an orderable price code has no bands', async () => {
    const { us, acme, world, as } = await withAssets({
      free: { priceCode: LABEL },
      old: { priceCode: null },
      gone: { priceCode: 'UC:no such code' },
    });
    expect((await us.get('/Assets/Z-free')).json).toMatchObject({ setup: 0, reset: 0 });
    for (const name of ['old', 'gone']) {
      expect((await us.get(`/Assets/Z-${name}`)).json).toMatchObject({
        priceTierCode: null,
        priceBands: null,
        setup: 0,
        reset: 0,
      });
    }
    const other = world.addAccount({ region: 'us', withheldProcesses: ['UC'] });
    other.assets.add({ assetTag: 'Z-withheld', priceCode: SPOT });
    expect((await (await as('user', other)).get('/Assets/Z-withheld')).json.priceBands).toBeNull();
    const asset = acme.assets.get('Z-free');
    expect(asset && [reorderBands(acme, asset)?.length, resetCharge(acme, asset)]).toEqual([6, 0]);
  });

  test('a reorder of a print priced by dimensions or stitches has the price of its dimensions or stitches', async () => {
    const { us, acme } = await withAssets({
      film: { priceCode: 'DTF:Custom size', attributes: { 'DG-X': '4', 'DG-Y': '6.5' } },
      badge: { priceCode: 'EMB:Custom badge', attributes: { Stitches: '7500' } },
      unknown: { priceCode: 'DTF:Custom size' },
    });
    const bands = async (name: string) => (await us.get(`/Assets/Z-${name}`)).json.priceBands;
    expect(await bands('film')).toEqual(
      findPriceCode(acme, 'DTF:Custom size', { dgX: 4, dgY: 6.5 })?.priceBands,
    );
    expect(await bands('badge')).toEqual(
      findPriceCode(acme, 'EMB:Custom badge', { stitches: 7500 })?.priceBands,
    );
    expect((await bands('film')).length).toBeGreaterThan(1);
    expect(await bands('unknown')).toBeNull();
  });

  test('AssetListEntry · assetUrl: links to its latest image, null without one', async () => {
    const { us, acme, clock } = await withAssets({ pictured: {}, bare: {} });
    const url = async (name: string) => (await us.get(`/Assets/Z-${name}`)).json.assetUrl;
    expect([await url('pictured'), await url('bare')]).toEqual([null, null]);
    acme.assets.addFile('Z-pictured', 'sheet.pdf');
    expect(await url('pictured')).toBeNull();
    acme.assets.addFile('Z-pictured', 'front.png');
    const first = await url('pictured');
    expect((await imageAt(first)).width).toBe(300);
    clock.now += DAY;
    acme.assets.addFile('Z-pictured', 'front.png');
    expect(await url('pictured')).not.toBe(first);
  });

  test('AssetListEntry · customerId: the owner, for staff only', async () => {
    const { us, as, acme } = await startService();
    const staff = await as('staff');
    for (const entry of await entries(staff)) expect(entry.customerId).toBe(acme.id);
    for (const entry of await entries(staff, '/Assets/global')) expect(entry.customerId).toBeNull();
    for (const client of [us, await as('administrator')]) {
      for (const path of ['/Assets', '/Assets/global']) {
        for (const entry of await entries(client, path)) expect(entry).not.toHaveProperty('customerId');
      }
    }
  });

  test('AssetListEntry · attributes: for staff only: an empty map means no attributes, an absent key no permission', async () => {
    const { us, as } = await withAssets({ some: { attributes: { InkColors: 'Navy' } }, none: {} });
    const [staff, administrator] = [await as('staff'), await as('administrator')];
    expect((await staff.get('/Assets/Z-some')).json.attributes).toEqual({ InkColors: 'Navy' });
    expect((await staff.get('/Assets/Z-none')).json.attributes).toEqual({});
    for (const client of [us, administrator]) {
      expect((await client.get('/Assets/Z-some')).json).not.toHaveProperty('attributes');
      for (const entry of await entries(client)) expect(entry).not.toHaveProperty('attributes');
    }
  });

  test('generated assets are plausible: several pages, archived ones, null codes and garments, all processes, attributes and external ids', async () => {
    const { us, as, acme } = await startService();
    const list = await entries(await as('staff'));
    const some = (choose: (entry: AssetListEntry) => boolean) => list.filter(choose).length;
    expect(list.length).toBeGreaterThan(50);
    expect(some(({ isArchived }) => isArchived)).toBeGreaterThan(3);
    expect(some(({ priceCode }) => priceCode === null)).toBeGreaterThan(3);
    expect(some(({ processCode }) => processCode === null)).toBeGreaterThan(0);
    expect(some(({ garment }) => garment === null)).toBeGreaterThan(3);
    expect(some(({ assetUrl }) => assetUrl === null)).toBeGreaterThan(3);
    expect(some(({ attributes }) => Object.keys(attributes ?? {}).length > 0)).toBeGreaterThan(10);
    expect(some(({ attributes }) => Object.keys(attributes ?? {}).length === 0)).toBeGreaterThan(3);
    expect(some(({ priceBands, priceCode }) => priceBands !== null && priceCode !== null)).toBeGreaterThan(
      30,
    );
    expect(new Set(list.map(({ processCode }) => processCode)).size).toBeGreaterThan(6);
    expect(acme.assets.list().filter(({ externalId }) => externalId !== null).length).toBeGreaterThan(3);
    expect(new Set(list.map(({ assetId }) => assetId)).size).toBe(list.length);
    expect(list).toEqual(await entries(await as('staff')));
    // Names of codes and attributes differ by region.
    expect((await us.get('/Assets?priceCodeContains=colour')).json.totalResults).toBe(0);
    expect((await us.get('/Assets?priceCodeContains=color')).json.totalResults).toBeGreaterThan(3);
  });

  test('every tag on a job line is an asset of the account, once, and can be reordered', async () => {
    const { us, acme } = await startService();
    const job = acme.createJob({
      lines: [{ description: 'Back crest', garment: 'Hood', processCode: 'UC' }],
    });
    const tag = acme.job(job)?.lines[0]?.assetSku;
    const asset = (await us.get(`/Assets/${tag}`)).json;
    expect(asset).toMatchObject({ description: 'Back crest', garment: 'Hood', processCode: 'UC' });
    expect(asset.priceCode).toMatch(/^UC:/);
    expect(asset.priceBands.length).toBeGreaterThan(1);
    const later = acme.createJob({
      lines: [{ assetSku: 'AS-later' }, { assetSku: tag ?? null }, { assetSku: null }],
    });
    expect(await tags(us, 'filter=as-later')).toEqual(['AS-later']);
    expect(acme.job(later)?.lines).toHaveLength(3);
    expect((await tags(us, '')).filter((one) => one === tag)).toHaveLength(1);
  });
});

describe('lists of assets', () => {
  test('GET /Assets 200: assets · page and pageSize: 25 per page by default', async () => {
    const { us, acme } = await startService();
    const all = acme.assets.list().map(({ assetTag }) => assetTag);
    const first = await us.get('/Assets');
    expect(first.status).toBe(200);
    expect(first.json.entities.map(({ assetTag }: AssetListEntry) => assetTag)).toEqual(all.slice(0, 25));
    const third = (await us.get('/Assets?page=3&pageSize=10')).json;
    expect(third.entities.map(({ assetTag }: AssetListEntry) => assetTag)).toEqual(all.slice(20, 30));
  });

  test('AssetsPage · pageSize, returnedResults, totalResults, totalPages, currentPage, hasNext, hasPrevious and entities: count the filtered list', async () => {
    const { us, acme } = await startService();
    const total = acme.assets.list().length;
    expect((await us.get('/Assets?page=2&pageSize=30')).json).toMatchObject({
      pageSize: 30,
      returnedResults: 30,
      totalResults: total,
      totalPages: Math.ceil(total / 30),
      currentPage: 2,
      hasNext: true,
      hasPrevious: true,
    });
    const last = (await us.get(`/Assets?pageSize=30&page=${Math.ceil(total / 30)}`)).json;
    expect(last).toMatchObject({ returnedResults: total % 30, hasNext: false, hasPrevious: true });
    expect(last.entities).toHaveLength(total % 30);
    expect((await us.get('/Assets?page=9')).json).toMatchObject({ returnedResults: 0, entities: [] });
    expect((await us.get('/Assets?filter=nothing+like+it')).json).toMatchObject({
      totalResults: 0,
      totalPages: 0,
      hasNext: false,
      hasPrevious: false,
    });
  });

  test('AssetsPage · nextUrl, previousUrl and filter: lead through all pages with the same parameters', async () => {
    const { us, sandbox, acme } = await startService();
    const base = sandbox.apiUrl('us');
    const parameters = 'pageSize=7&isArchived=false&sortDirection=Descending&filter=a';
    const seen: string[] = [];
    let url: string | null = `${base}/Assets?${parameters}`;
    let before: string | null = null;
    while (url !== null) {
      const page: AssetsPage = (await us.get(url.slice(base.length))).json;
      expect(page.filter).toBe('a');
      expect(page.previousUrl === null).toBe(before === null);
      if (page.previousUrl)
        expect((await us.get(page.previousUrl.slice(base.length))).json.nextUrl).toBe(url);
      seen.push(...page.entities.map(({ assetTag }) => assetTag ?? ''));
      before = url;
      url = page.nextUrl;
    }
    expect(seen).toEqual(
      acme.assets
        .list()
        .filter(({ isArchived }) => !isArchived)
        .map(({ assetTag }) => assetTag)
        .toReversed(),
    );
    expect((await us.get('/Assets')).json).toMatchObject({ filter: null, previousUrl: null });
  });

  test('assets · sortColumn and sortDirection: by default by asset tag ascending, null lowest', async () => {
    const { us } = await withAssets({
      a: { processCode: 'VIN', description: 'beta', garment: null, priceCode: 'b', createdAt: 3 * DAY },
      b: {
        processCode: null,
        description: 'Alpha',
        garment: 'Tee',
        priceCode: 'A',
        createdAt: DAY,
        isArchived: true,
      },
      c: { processCode: 'DTF', description: 'gamma', garment: 'hood', priceCode: null, createdAt: 2 * DAY },
    });
    const order = (query: string) => named(us, query).then((names) => names.join(''));
    expect(await order('')).toBe('abc');
    expect(await order('sortDirection=Descending')).toBe('cba');
    expect(await order('sortColumn=AssetTag&sortDirection=desc')).toBe('cba');
    expect(await order('sortColumn=AssetId&sortDirection=Descending')).toBe('cba');
    expect(await order('sortColumn=ProcessCode')).toBe('bca');
    expect(await order('sortColumn=Description')).toBe('bac');
    expect(await order('sortColumn=garment')).toBe('acb');
    expect(await order('sortColumn=PriceCode')).toBe('cba');
    expect(await order('sortColumn=CREATEDATE')).toBe('bca');
    expect(await order('sortColumn=CreateDate&sortDirection=Descending')).toBe('acb');
    // Equal values are sorted by tag in either direction.
    expect(await order('sortColumn=IsArchived')).toBe('acb');
    expect(await order('sortColumn=IsArchived&sortDirection=Descending')).toBe('bac');
  });

  test('assets · filter: any part of tag, description, garment, process code and price code, case-insensitive', async () => {
    const { us } = await withAssets({
      one: { description: 'The Quokka crest', processCode: 'UC', priceCode: 'QQ-11' },
      two: { garment: 'quokka tee', processCode: 'ZZQ' },
      three: { externalId: 'quokka', attributes: { of: 'quokka' } },
    });
    expect(await named(us, 'filter=QUOKKA')).toEqual(['one', 'two']);
    expect(await named(us, 'filter=+quokka+c')).toEqual(['one']);
    expect(await named(us, 'filter=qq-1')).toEqual(['one']);
    expect(await named(us, 'filter=zzq')).toEqual(['two']);
    expect(await named(us, 'filter=z-three')).toEqual(['three']);
    for (const nothing of ['', '%20', '+%09+']) {
      const { filter, totalResults } = (await us.get(`/Assets?filter=${nothing}`)).json;
      expect([nothing, filter, totalResults >= 3], 'a filter that is blank is not applied').toEqual([
        nothing,
        null,
        true,
      ]);
    }
  });

  test('assets · includeProcesses and excludeProcesses: whole codes, comma-separated, case-insensitive', async () => {
    const { us } = await withAssets({
      uc: { processCode: 'UC' },
      ucx: { processCode: 'UCX' },
      dtf: { processCode: 'DTF' },
      none: { processCode: null },
    });
    expect(await named(us, 'includeProcesses=uc,%20DTF')).toEqual(['dtf', 'uc']);
    expect(await named(us, 'excludeProcesses=UC,DTF')).toEqual(['none', 'ucx']);
    expect(await named(us, 'includeProcesses=UC,DTF&excludeProcesses=DTF')).toEqual(['uc']);
    expect(await named(us, 'includeProcesses=,&excludeProcesses=')).toEqual(['dtf', 'none', 'uc', 'ucx']);
    expect((await us.get('/Assets?includeProcesses=nonsense')).json.totalResults).toBe(0);
  });

  test('assets · isArchived: only archived ones, none of them, or both', async () => {
    const { us } = await withAssets({ old: { isArchived: true }, fresh: {} });
    expect(await named(us, 'isArchived=true')).toEqual(['old']);
    expect(await named(us, 'isArchived=False')).toEqual(['fresh']);
    expect(await named(us, '')).toEqual(['fresh', 'old']);
  });

  test('assets · priceCodeContains and priceCodeNotContains: any of several substrings, case-insensitive; a null code contains none', async () => {
    const { us } = await withAssets({
      a4: { priceCode: 'DTF:A4' },
      spot: { priceCode: 'UC:Spot 10' },
      null: { priceCode: null },
    });
    expect(await named(us, 'priceCodeContains=dtf:a')).toEqual(['a4']);
    expect(await named(us, 'priceCodeContains=dtf:a4,%20SPOT')).toEqual(['a4', 'spot']);
    expect(await named(us, 'priceCodeNotContains=spot')).toEqual(['a4', 'null']);
    expect(await named(us, 'priceCodeNotContains=spot,:a4')).toEqual(['null']);
    expect(await named(us, 'priceCodeContains=spot,a4&priceCodeNotContains=UC')).toEqual(['a4']);
    expect(await named(us, 'priceCodeContains=,')).toEqual(['a4', 'null', 'spot']);
  });

  test.each([
    'page=0',
    'page=x',
    'pageSize=0',
    'pageSize=201',
    'sortColumn=Setup',
    'sortDirection=up',
    'isArchived=maybe',
  ])('GET /Assets 400 and GET /Assets/global 400: %s', async (query) => {
    const { us } = await startService();
    for (const path of ['/Assets', '/Assets/global']) {
      const { status, json } = await us.get(`${path}?${query}`);
      expect(status).toBe(400);
      expect(Object.keys(json.errors)).toEqual([query.split('=')[0]]);
    }
  });

  test('GET /Assets/global 200: globalAssets · page, pageSize, sortColumn, sortDirection, includeProcesses, excludeProcesses, filter, isArchived, priceCodeContains and priceCodeNotContains: the catalogue’s assets, the same for all accounts', async () => {
    const { us, as, world } = await startService();
    const list = await entries(us, '/Assets/global');
    expect(list.length).toBeGreaterThan(25);
    expect(list.every(({ isGlobal }) => isGlobal)).toBe(true);
    expect((await entries(us)).some(({ isGlobal }) => isGlobal)).toBe(false);
    const wanted = (choose: (entry: AssetListEntry) => boolean) =>
      list.filter(choose).map(({ assetTag }) => assetTag);
    const asked = (query: string) => tags(us, query, '/Assets/global');
    expect((await us.get('/Assets/global')).json).toMatchObject({ pageSize: 25, returnedResults: 25 });
    expect((await us.get('/Assets/global?page=2&pageSize=20')).json.entities).toEqual(list.slice(20, 40));
    const uc = wanted(({ processCode }) => processCode === 'UC');
    expect(await asked('includeProcesses=uc')).toEqual(uc);
    expect(await asked('excludeProcesses=UC')).toEqual(wanted(({ processCode }) => processCode !== 'UC'));
    expect(await asked('sortColumn=assetid&sortDirection=Descending')).toEqual(
      wanted(() => true).toReversed(),
    );
    expect(await asked('isArchived=true')).toEqual(wanted(({ isArchived }) => isArchived));
    const contains = ({ priceCode }: AssetListEntry) => priceCode?.includes('Color') === true;
    expect(await asked('priceCodeContains=color')).toEqual(wanted(contains));
    expect(await asked('priceCodeNotContains=color')).toEqual(wanted((entry) => !contains(entry)));
    const [one] = uc;
    expect(await asked(`filter=${one}`)).toEqual([one]);

    const nz = await as('user', world.addAccount({ region: 'nz' }));
    const other = await as('user', world.addAccount({ region: 'us', priceTier: 'T3' }));
    expect(await tags(other, '', '/Assets/global')).toEqual(wanted(() => true));
    expect((await entries(other, '/Assets/global')).find(({ priceBands }) => priceBands)?.priceTierCode).toBe(
      'T3',
    );
    expect(await tags(nz, '', '/Assets/global')).not.toContain(one);
  });

  test.each(['text/plain', 'text/json', 'application/json'])(
    'assets are available as %s, with the same content',
    async (type) => {
      const { us } = await startService();
      const { assetTag } = (await us.get('/Assets')).json.entities[0];
      for (const path of [
        '/Assets',
        '/Assets/global',
        '/Assets/types',
        `/Assets/${assetTag}`,
        `/Assets/${assetTag}/files`,
        `/Assets/${assetTag}/jobs`,
      ]) {
        const plain = await us.get(path);
        expect(plain.headers.get('content-type')).toBe('application/json; charset=utf-8');
        const asked = await us.get(path, { accept: `${type}, */*;q=0.1` });
        expect(asked.headers.get('content-type')).toBe(`${type}; charset=utf-8`);
        expect(asked.text).toBe(plain.text);
      }
      const missing = await us.get('/Assets/none', { accept: type });
      expect(missing.headers.get('content-type')).toBe('application/problem+json; charset=utf-8');
    },
  );
});

test.each([
  ['text/plain;q=0.1, application/json', 'application/json'],
  ['text/plain;q=0.5, text/json;q=0.9, application/json;q=0.1', 'text/json'],
  ['TEXT/PLAIN; Q=0.3, */*;q=0.1', 'text/plain'],
  ['text/plain;q=0', 'application/json'],
  ['text/plain;q=0, text/*', 'text/json'],
  ['application/json;q=0, */*', 'text/plain'],
  ['*/*, text/json', 'text/json'],
  ['*/*', 'application/json'],
  ['image/png', 'application/json'],
  ['text/json, text/plain', 'text/json'],
  ['', 'application/json'],
])('of the media types offered, Accept: %s gets %s', async (accept, type) => {
  const { us } = await startService();
  const { headers } = await us.get('/Assets/types', { accept });
  expect(headers.get('content-type')).toBe(`${type}; charset=utf-8`);
});

describe('permissions for assets', () => {
  test.each([
    'GET /Assets 403',
    'GET /Assets/global 403',
    'GET /Assets/{assetTag} 403',
    'GET /Assets/{assetTag}/files 403',
    'GET /Assets/{assetCode}/jobs 403',
  ])('%s: credentials without the right to order', async (what) => {
    const { as, acme } = await startService();
    const [tag = ''] = acme.assets.list().map(({ assetTag }) => assetTag);
    const path = what.slice(4, -4).replace(/\{\w+\}/, tag);
    expect((await (await as('viewer')).get(path)).status).toBe(403);
  });

  test.each([
    'GET /Assets/{assetTag} 404',
    'GET /Assets/{assetTag}/files 404',
    'GET /Assets/{assetCode}/jobs 400',
  ])('%s: another account’s asset answers like one that does not exist', async (what) => {
    const { us, world, as } = await startService();
    const other = world.addAccount({ region: 'us', name: 'other' });
    const job = other.createJob();
    const tags = ['no-such-tag', other.assets.list()[0]?.assetTag, other.job(job)?.lines[0]?.assetSku];
    const answers = [];
    for (const tag of tags) {
      const { status, json } = await us.get(what.slice(4, -4).replace(/\{\w+\}/, String(tag)));
      answers.push({ ...json, status, instance: json.instance.replace(tag, '…') });
    }
    expect(answers.map(({ status }) => status)).toEqual(Array(3).fill(Number(what.slice(-3))));
    expect(answers[1]).toEqual(answers[0]);
    expect(answers[2]).toEqual(answers[0]);
    const own = await (await as('user', other)).get(what.slice(4, -4).replace(/\{\w+\}/, String(tags[1])));
    expect(own.status).toBe(200);
  });

  test('GET /Assets/{assetCode}/jobs 401: without a token the answer is the same for every code', async () => {
    const { us } = await startService();
    for (const path of ['/Assets/x/jobs', '/Assets', '/Assets/types']) {
      expect((await us.ask(path, { token: '' })).status).toBe(401);
    }
  });

  test("every account has the catalogue's tags", async () => {
    const { us, acme } = await startService();
    const [tag] = await tags(us, 'isArchived=false', '/Assets/global');
    expect((await us.get(`/Assets/${tag}`)).json.isGlobal).toBe(true);
    expect((await us.get(`/Assets/${tag}/files`)).status).toBe(200);
    const jobNumber = acme.createJob({ lines: [{ assetSku: tag ?? null }] });
    expect((await us.get(`/Assets/${tag}/jobs`)).json.jobs).toMatchObject([{ jobNumber }]);
    expect(await tags(us, `filter=${tag}`)).toEqual([]);
    expect(() => acme.assets.archive(tag ?? '')).toThrow('no asset');
  });

  test('GET /Assets/types 200: AssetType · process and assetType: one for each process of the account', async () => {
    const { us, world, as } = await startService();
    const types: { process: string; assetType: string }[] = (await us.get('/Assets/types')).json;
    const { processes } = (await us.get('/PriceCodes/processes')).json;
    expect(types.map(({ process }) => process)).toEqual(
      processes.map(({ processCode }: { processCode: string }) => processCode),
    );
    const getType = (code: string) => types.find(({ process }) => process === code)?.assetType;
    for (const { assetType } of types) expect(assetType).toMatch(/\w/);
    // A process is filed like its master.
    expect(getType('GSH')).toBe(getType('DTF'));
    expect(getType('GSH')).not.toBe(getType('UC'));
    const fewer = await as('user', world.addAccount({ region: 'us', withheldProcesses: ['UC'] }));
    expect((await fewer.get('/Assets/types')).json).toHaveLength(types.length - 1);
  });
});

describe('the files of an asset', () => {
  test('GET /Assets/{assetTag}/files 200: AssetFiles · assetTag, currentFiles and historicFiles: newest upload first', async () => {
    const { us, acme, clock } = await withAssets({ filed: {} });
    for (const name of ['front.png', 'sheet.pdf', 'back.png', 'front.png', 'front.png']) {
      acme.assets.addFile('Z-filed', name);
      clock.now += MINUTE;
    }
    const { status, json } = await us.get('/Assets/Z-filed/files');
    expect(status).toBe(200);
    const at = (minute: number) => new Date(START + minute * MINUTE).toISOString();
    const brief = (files: AssetFile[]) => files.map(({ fileName, dateUploaded }) => [fileName, dateUploaded]);
    expect(json.assetTag).toBe('Z-filed');
    expect(brief(json.currentFiles)).toEqual([
      ['front.png', at(4)],
      ['back.png', at(2)],
      ['sheet.pdf', at(1)],
    ]);
    expect(brief(json.historicFiles)).toEqual([
      ['front.png', at(3)],
      ['front.png', at(0)],
    ]);
  });

  test('AssetFile · fileId, fileName, fileSize, dateUploaded, isImage and cdnUrl: describe the linked file', async () => {
    const { us, acme } = await withAssets({ filed: {} });
    acme.assets.addFile('Z-filed', 'front & back.png');
    acme.assets.addFile('Z-filed', 'sheet.pdf');
    const [sheet, front]: AssetFile[] = (await us.get('/Assets/Z-filed/files')).json.currentFiles;
    expect(front).toMatchObject({
      fileName: 'front & back.png',
      isImage: true,
      dateUploaded: new Date(START).toISOString(),
    });
    expect(sheet).toMatchObject({ fileName: 'sheet.pdf', isImage: false });
    expect(front?.fileId).toMatch(/^\w{16,}$/);
    expect(front?.fileId).not.toBe(sheet?.fileId);
    const image = await fetch(String(front?.cdnUrl));
    expect([image.status, image.headers.get('content-type')]).toEqual([200, 'image/png']);
    expect((await image.arrayBuffer()).byteLength).toBe(front?.fileSize);
    const pdf = await fetch(String(sheet?.cdnUrl));
    expect([pdf.status, pdf.headers.get('content-type')]).toEqual([200, 'application/pdf']);
    const text = Buffer.from(await pdf.arrayBuffer()).toString('latin1');
    expect(text.length).toBe(sheet?.fileSize);
    expect(text).toContain('Z-filed');
  });

  test('HistoricAssetFile · fileId, fileName, fileSize, dateUploaded, isImage, cdnUrl and action: replaced files keep their links, archived ones have none', async () => {
    const { us } = await startService();
    const actions = new Set<string>();
    for (const { assetTag, isArchived } of await entries(us)) {
      const { currentFiles, historicFiles } = (await us.get(`/Assets/${assetTag}/files`)).json;
      if (isArchived) expect(currentFiles).toEqual([]);
      for (const { action, cdnUrl, fileId, fileName, fileSize, isImage, dateUploaded } of historicFiles) {
        actions.add(action);
        expect(currentFiles.map((file: AssetFile) => file.fileId)).not.toContain(fileId);
        expect(isImage).toBe(fileName.endsWith('.png'));
        expect(Date.parse(dateUploaded)).toBeLessThan(START);
        expect(cdnUrl === null).toBe(action === 'Archived');
        if (cdnUrl === null || actions.size > 1) continue;
        expect((await (await fetch(cdnUrl)).arrayBuffer()).byteLength).toBe(fileSize);
      }
    }
    expect([...actions].sort()).toEqual(['Archived', 'Replaced']);
  });

  test('archiving an asset archives its current and its replaced files', async () => {
    const { us, acme } = await withAssets({ filed: {} });
    for (const name of ['front.png', 'front.png', 'sheet.pdf']) acme.assets.addFile('Z-filed', name);
    acme.assets.archive('Z-filed');
    const { currentFiles, historicFiles } = (await us.get('/Assets/Z-filed/files')).json;
    expect(currentFiles).toEqual([]);
    expect(historicFiles).toHaveLength(3);
    for (const file of historicFiles) expect(file).toMatchObject({ action: 'Archived', cdnUrl: null });
    expect((await us.get('/Assets/Z-filed')).json.assetUrl).toBeNull();
  });

  test.each([50, 100, 150])('?size=%i of an image is a PNG of that size', async (size) => {
    const { us, acme } = await withAssets({ filed: {} });
    acme.assets.addFile('Z-filed', 'front.png');
    const [{ cdnUrl }] = (await us.get('/Assets/Z-filed/files')).json.currentFiles;
    expect(await imageAt(`${cdnUrl}?size=${size}`)).toMatchObject({ width: size, height: size });
    expect(await imageAt(cdnUrl)).toMatchObject({ width: 300, height: 300 });
  });

  test('any other size answers 400, and other files have no sizes', async () => {
    const { us, acme } = await withAssets({ filed: {} });
    acme.assets.addFile('Z-filed', 'front.png');
    acme.assets.addFile('Z-filed', 'sheet.pdf');
    const [sheet, front]: AssetFile[] = (await us.get('/Assets/Z-filed/files')).json.currentFiles;
    for (const size of ['51', '', 'large']) {
      const answer = await fetch(`${front?.cdnUrl}?size=${size}`);
      const { errors } = (await answer.json()) as { errors: object };
      expect([answer.status, Object.keys(errors)]).toEqual([400, ['size']]);
    }
    expect((await fetch(`${sheet?.cdnUrl}?size=51`)).status).toBe(200);
  });

  test('each upload has its own image, which never changes', async () => {
    const { us, acme } = await withAssets({ filed: {}, other: {} });
    for (const tag of ['Z-filed', 'Z-filed', 'Z-other']) acme.assets.addFile(tag, 'front.png');
    const links: string[] = [];
    for (const tag of ['Z-filed', 'Z-other']) {
      const { currentFiles, historicFiles } = (await us.get(`/Assets/${tag}/files`)).json;
      links.push(...[...currentFiles, ...historicFiles].map(({ cdnUrl }) => cdnUrl));
    }
    const hash = async (link: string) =>
      createHash('sha256')
        .update(new Uint8Array(await (await fetch(link)).arrayBuffer()))
        .digest('hex');
    const hashes = await Promise.all(links.map(hash));
    expect(new Set(hashes).size).toBe(3);
    expect(await Promise.all(links.map(hash))).toEqual(hashes);
  });

  test('a link with another id, asset, account or name answers 404, and so does an archived file’s', async () => {
    const { us, acme, sandbox } = await withAssets({ filed: {}, other: {} });
    acme.assets.addFile('Z-filed', 'front.png');
    acme.assets.addFile('Z-other', 'front.png');
    const [{ cdnUrl, fileId }] = (await us.get('/Assets/Z-filed/files')).json.currentFiles;
    expect((await fetch(cdnUrl)).status).toBe(200);
    for (const link of [
      cdnUrl.replace(
        fileId,
        fileId.replace(/./, (sign: string) => (sign === '0' ? '1' : '0')),
      ),
      cdnUrl.replace('Z-filed', 'Z-other'),
      cdnUrl.replace('front.png', 'back.png'),
      cdnUrl.replace(`/${acme.id}/`, '/1/'),
      cdnUrl.replace(`/${acme.id}/`, '/catalogue/'),
      cdnUrl.replace('/us/', '/nz/'),
      cdnUrl.replace('/us/', '/xx/'),
      `${sandbox.url}/files`,
      `${sandbox.url}/files/us/nothing`,
    ]) {
      expect([link, (await fetch(link)).status]).toEqual([link, 404]);
    }
    // Its link before it was archived.
    const archived = acme.assets.get('Z-filed');
    if (archived) archived.files = archived.files.map((file) => ({ ...file, action: 'Archived' }));
    expect((await fetch(cdnUrl)).status).toBe(404);
  });
});

describe('assets of orders', () => {
  test('a new print is an asset at once, has files after its artwork was fetched, and can be reordered at its own price', async () => {
    const clock = { now: START };
    const world = createWorld({ now: () => clock.now });
    const scenario = createScenario({ world, startAt: START - 1, jobsPerAccount: 0, opening: false });
    onTestFinished(() => scenario.stop());
    const { us, acme, sandbox } = await startService({ world, scenario });
    const artwork = await artworkServer();
    const order = async (item: object): Promise<string | null> => {
      const deliveryAddress = { deliveryMethod: 'COLLECT', contactName: 'Robin' };
      const candidate = { deliveryAddress, dateDue: '2026-12-18', items: [item] };
      const { status, json } = await us.post('/Jobs', candidate);
      expect([status, json.validationMessages]).toEqual([201, undefined]);
      return json.jobLineDetails[0].newAssetSku;
    };
    const tag = await order({
      itemType: 'PriceCode',
      code: 'DTF:Custom size',
      quantity: 12,
      customerReference: 'L1',
      attributes: { 'DG-X': 4, 'DG-Y': 6.5 },
      externalId: 'design-9',
      externalArtworkUrl: artwork.url,
    });
    const asset = async () => (await us.get(`/Assets/${tag}`)).json;
    expect(await asset()).toMatchObject({ priceCode: 'DTF:Custom size', externalId: 'design-9' });
    expect((await asset()).priceBands).toEqual(
      findPriceCode(acme, 'DTF:Custom size', { dgX: 4, dgY: 6.5 })?.priceBands,
    );
    expect((await asset()).assetUrl).toBeNull();
    artwork.release();
    await scenario.settled();
    expect(artwork.asked()).toBe(1);
    const { currentFiles } = (await us.get(`/Assets/${tag}/files`)).json;
    expect(currentFiles).toMatchObject([{ fileName: 'artwork.png', isImage: true }]);
    expect((await imageAt((await asset()).assetUrl)).width).toBe(300);

    expect(await order({ itemType: 'Asset', code: tag, quantity: 3 })).toBeNull();
    expect(
      (await us.get(`/Assets/${tag}/jobs`)).json.jobs.map(({ quantity }: { quantity: number }) => quantity),
    ).toEqual([3, 12]);
    expect((await us.get(`/Assets/${tag}/files`)).json.currentFiles).toEqual(currentFiles);
    await sandbox.stop();
  });
});

describe('the jobs of an asset', () => {
  test('removed jobs leave the asset index, and replaced lines are indexed by their current assets', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const world = createWorld({ now: () => START });
    const acme = world.addAccount({ region: 'us', name: 'acme' });
    const createWith = (assetSku: string) =>
      acme.createJob({ lines: [{ assetSku }, { assetSku: 'SHARED' }] });
    const found = (tag: string) => acme.assets.jobsWith(tag).map(({ jobNumber }) => jobNumber);
    const [gone, stays] = [createWith('OLD'), createWith('OTHER')];
    const record = new WeakRef(acme.job(gone) as object);
    expect([found('OLD'), found('SHARED')]).toEqual([[gone], [gone, stays]]);
    acme.edit(gone, { lines: [{ assetSku: 'NEW' }, { assetSku: 'NEW' }] });
    expect(['OLD', 'NEW', 'SHARED'].map(found)).toEqual([[], [gone], [stays]]);
    acme.remove(gone);
    await vi.waitFor(() => {
      collect();
      expect(record.deref() === undefined).toBe(true);
    });
    expect(['OLD', 'NEW', 'SHARED'].map(found)).toEqual([[], [], [stays]]);
    expect(acme.assets.get('NEW')).toBeDefined();
  });

  test('GET /Assets/{assetCode}/jobs 200: AssetJobs · assetCode, jobs and totalCount: active ones first, then by dispatch, latest first', async () => {
    const { us, acme, world } = await withAssets({ used: {}, unused: {} });
    const make = (dateOut: number | null) =>
      acme.createJob({ dateOut, lines: [{ assetSku: 'Z-used' }, { assetSku: 'Z-other' }] });
    const [late, open, early, closed, newest, cancelled, hidden] = [
      make(START - DAY),
      make(null),
      make(START - 3 * DAY),
      make(START - 2 * DAY),
      make(null),
      make(null),
      make(null),
    ] as const;
    acme.close(closed);
    acme.cancel(cancelled);
    acme.hide(hidden);
    world.addAccount({ region: 'us', name: 'other' }).createJob({ lines: [{ assetSku: 'Z-used' }] });
    const { status, json } = await us.get('/Assets/Z-used/jobs');
    expect(status).toBe(200);
    expect(json.assetCode).toBe('Z-used');
    expect(json.jobs.map(({ jobNumber }: { jobNumber: number }) => jobNumber)).toEqual([
      newest,
      open,
      late,
      closed,
      early,
    ]);
    expect(json.totalCount).toBe(5);
    expect((await us.get('/Assets/Z-unused/jobs')).json).toEqual({
      assetCode: 'Z-unused',
      jobs: [],
      totalCount: 0,
    });
  });

  test('AssetJob · jobNumber, orderNumber, description, quantity, dateOut and masterJobStatus: those of the job, with the quantity of the matching lines', async () => {
    const { us, acme } = await withAssets({ used: {} });
    const jobNumber = acme.createJob({
      orderNumber: 'PO-9',
      description: 'Team wear',
      status: 'In production',
      lines: [
        { assetSku: 'Z-used', quantity: 30 },
        { assetSku: null, quantity: 500 },
        { assetSku: 'Z-used', quantity: 4 },
      ],
    });
    const [active] = (await us.get('/Assets/Z-used/jobs')).json.jobs;
    expect(active).toEqual({
      jobNumber,
      orderNumber: 'PO-9',
      description: 'Team wear',
      quantity: 34,
      dateOut: null,
      masterJobStatus: 'In production',
    });
    acme.dispatch(jobNumber, { dateOut: '2026-11-20T08:00:00-07:00', status: 'Shipped' });
    expect((await us.get('/Assets/Z-used/jobs')).json.jobs).toEqual([
      { ...active, dateOut: '2026-11-20T08:00:00-07:00', masterJobStatus: 'Shipped' },
    ]);
  });

  test('a job with replaced lines uses its new assets only, and a deleted job none', async () => {
    const { us, acme } = await withAssets({ first: {}, second: {} });
    const getJobs = async (name: string) =>
      (await us.get(`/Assets/Z-${name}/jobs`)).json.jobs.map(
        ({ jobNumber }: { jobNumber: number }) => jobNumber,
      );
    const job = acme.createJob({ lines: [{ assetSku: 'Z-first' }] });
    expect([await getJobs('first'), await getJobs('second')]).toEqual([[job], []]);
    acme.edit(job, { lines: [{ assetSku: 'Z-second' }, { assetSku: 'Z-new' }] });
    expect([await getJobs('first'), await getJobs('second'), await getJobs('new')]).toEqual([
      [],
      [job],
      [job],
    ]);
    acme.edit(job, { lines: [{ assetSku: 'Z-second' }] });
    expect([await getJobs('second'), await getJobs('new')]).toEqual([[job], []]);
    acme.remove(job);
    expect(await getJobs('second')).toEqual([]);
  });
});

describe('expiring links', () => {
  /** The links of a dispatched job with an invoice. */
  async function linked(options: { image?: string; invoiceNumber?: string } = {}) {
    const service = await startService();
    const { acme, us } = service;
    const jobNumber = acme.createJob({
      orderNumber: 'PO (9)',
      lines: [
        { quantity: 20, unitPrice: 2.5, description: 'Crêpe – chest', image: options.image ?? 'line 1/a' },
      ],
      taxTotal: 4,
    });
    acme.dispatch(jobNumber);
    acme.invoice(jobNumber, { invoiceNumber: options.invoiceNumber ?? 'INV 7/a' });
    const fetchLinks = async (): Promise<{ preview: string; invoice: string; expires: string }> => {
      const { lines, invoiceFile } = (await us.get(`/Jobs/${jobNumber}`)).json;
      return { preview: lines[0].imageUrl, invoice: invoiceFile.uri, expires: invoiceFile.uriExpires };
    };
    return { ...service, jobNumber, fetchLinks };
  }

  test('an invoice is a PDF with the costs of the job, without a token, below the sandbox’s own URL', async () => {
    const { fetchLinks, sandbox, jobNumber } = await linked();
    const { invoice } = await fetchLinks();
    expect(invoice.startsWith(`${sandbox.url}/files/us/invoices/`)).toBe(true);
    const answer = await fetch(invoice);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/pdf']);
    const bytes = Buffer.from(await answer.arrayBuffer());
    const text = bytes.toString('latin1');
    for (const expected of [
      'Invoice INV 7/a',
      String(jobNumber),
      'PO \\(9\\)',
      'Crêpe ? chest',
      'Total USD 54.00',
    ]) {
      expect(text).toContain(expected);
    }
    expectPdf(text);
  });

  test('an invoice’s link works until its uriExpires, then it answers 410', async () => {
    const { fetchLinks, clock } = await linked();
    const { invoice, expires } = await fetchLinks();
    expect(Date.parse(expires)).toBe(START + 15 * MINUTE);
    clock.now = Date.parse(expires) - 1;
    expect((await fetch(invoice)).status).toBe(200);
    clock.now += 1;
    expect((await fetch(invoice)).status).toBe(410);
    expect((await fetch((await fetchLinks()).invoice)).status).toBe(200);
  });

  test('an invoice that is removed or renumbered is not at its old link', async () => {
    const { fetchLinks, acme, jobNumber } = await linked();
    const { invoice } = await fetchLinks();
    acme.invoice(jobNumber, { invoiceNumber: 'INV-8' });
    expect((await fetch(invoice)).status).toBe(404);
    const renumbered = (await fetchLinks()).invoice;
    expect((await fetch(renumbered)).status).toBe(200);
    acme.invoice(jobNumber, { invoiceNumber: 'INV-8', file: false });
    expect((await fetch(renumbered)).status).toBe(404);
  });

  test('a preview is an image with thumbnails; its link works for at least 45 minutes, then it answers 410', async () => {
    const { fetchLinks, clock } = await linked();
    const { preview } = await fetchLinks();
    expect(await imageAt(preview)).toMatchObject({ width: 300, height: 300 });
    expect((await imageAt(`${preview}&size=100`)).width).toBe(100);
    clock.now += 45 * MINUTE;
    expect((await fetch(preview)).status).toBe(200);
    clock.now += 16 * MINUTE;
    expect((await fetch(preview)).status).toBe(410);
    expect((await fetch((await fetchLinks()).preview)).status).toBe(200);
  });

  test('a modified link answers 403', async () => {
    const { fetchLinks } = await linked({ image: 'line-1', invoiceNumber: 'INV-7' });
    const { preview, invoice } = await fetchLinks();
    const links = [
      invoice.replace(/expires=\d+/, 'expires=9999999999999'),
      invoice.replace('INV-7', 'INV-8'),
      invoice.replace(/&signature=.*/, ''),
      invoice.replace(/\?.*/, ''),
      invoice.replace('/us/', '/nz/'),
      preview.replace(/expires=\d+/, 'expires=9999999999999'),
      preview.replace('line-1', 'line-2'),
      preview.replace(/(signature=.)./, '$1-'),
    ];
    for (const link of links) expect([link, (await fetch(link)).status]).toEqual([link, 403]);
  });

  test('a sandbox without a listener serves them too, without its own URL', async () => {
    const world = createWorld({ now: () => START });
    const acme = world.addAccount({ region: 'us' });
    const sandbox = createSandbox({ world });
    const link = acme.jobDetail(acme.createJob())?.lines[0]?.imageUrl;
    expect(link).toMatch(/^https:\/\/files\.transfers\.example\/us\/previews\//);
    const answer = await sandbox.fetch(
      new Request(String(link).replace('https://files.transfers.example', 'http://sandbox/files')),
    );
    expect(parsePng(new Uint8Array(await answer.arrayBuffer())).width).toBe(300);
  });
});

/** A server on loopback whose artwork is sent after a release. */
async function artworkServer(): Promise<{ url: string; asked(): number; release(): void }> {
  let asked = 0;
  const waiting = Promise.withResolvers<void>();
  const server = createServer(async (_, response) => {
    asked += 1;
    await waiting.promise;
    response.writeHead(200, { 'content-type': 'image/png' }).end('not much of a picture');
  });
  onTestFinished(() => void server.close().closeAllConnections());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/a.png`,
    asked: () => asked,
    release: waiting.resolve,
  };
}

/** Fetches the image of a link and checks that it is a complete PNG. */
async function imageAt(link: string) {
  const answer = await fetch(link);
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'image/png']);
  return parsePng(new Uint8Array(await answer.arrayBuffer()));
}

/** The dimensions of a PNG; fails if a chunk's checksum is wrong, or the number of pixels does not match. */
function parsePng(bytes: Uint8Array): { width: number; height: number } {
  const file = Buffer.from(bytes);
  expect(file.subarray(0, 8).toString('latin1')).toBe('\x89PNG\r\n\x1a\n');
  const chunks: Record<string, Buffer> = {};
  for (let at = 8; at < file.length; ) {
    const length = file.readUInt32BE(at);
    const body = file.subarray(at + 4, at + 8 + length);
    expect(file.readUInt32BE(at + 8 + length)).toBe(crc32(body));
    chunks[body.subarray(0, 4).toString('latin1')] = body.subarray(4);
    at += 12 + length;
  }
  expect(Object.keys(chunks).at(-1)).toBe('IEND');
  const [width = 0, height = 0] = [chunks.IHDR?.readUInt32BE(0), chunks.IHDR?.readUInt32BE(4)];
  const colours = (chunks.PLTE?.length ?? 0) / 3;
  const pixels = inflateSync(chunks.IDAT ?? Buffer.alloc(0));
  expect(pixels).toHaveLength((width + 1) * height);
  expect(pixels.every((pixel) => pixel < colours)).toBe(true);
  return { width, height };
}

/** Fails unless every object of a PDF is at its offset, and its stream has its length. */
function expectPdf(text: string): void {
  expect(text.startsWith('%PDF-1.')).toBe(true);
  const table = Number(/startxref\n(\d+)\n%%EOF\n$/.exec(text)?.[1]);
  expect(text.slice(table, table + 4)).toBe('xref');
  const offsets = [...text.slice(table).matchAll(/(\d{10}) 00000 n/g)].map(([, offset]) => Number(offset));
  expect(offsets.length).toBeGreaterThan(3);
  offsets.forEach((offset, index) => {
    expect(text.slice(offset).startsWith(`${index + 1} 0 obj\n`)).toBe(true);
  });
  const [, length, stream = ''] = /\/Length (\d+) >>\nstream\n([\s\S]*?)\nendstream/.exec(text) ?? [];
  expect(stream).toHaveLength(Number(length));
}

describe('data shared by worlds', () => {
  const account = (openedAt = Date.parse('2026-11-20T16:14:00Z')) =>
    createWorld({ now: () => openedAt }).addAccount({ region: 'us' });

  test('an asset of the catalogue is deeply frozen', () => {
    const shared = account().assets.get('GA-US-001');
    expect(() => Object.assign(shared ?? {}, { isArchived: true })).toThrow(TypeError);
    expect(() => Object.assign(shared?.attributes ?? {}, { Finish: 'none' })).toThrow(TypeError);
    expect(account().assets.get('GA-US-001')?.isArchived).toBe(false);
  });

  test('a price code and its bands are deeply frozen', () => {
    const [first] = listPriceCodes(account());
    expect(() => Object.assign(first?.priceBands?.[0] ?? {}, { unitPrice: 99 })).toThrow(TypeError);
    expect(() => Object.assign(first?.attributes?.[0] ?? {}, { name: 'x' })).toThrow(TypeError);
    expect(listPriceCodes(account())[0]?.priceBands?.[0]?.unitPrice).not.toBe(99);
  });

  test.each(['2001-01-01T00:00:00Z', '2050-06-15T12:00:00Z'])(
    'generated assets were created in the years before their account was opened: %s',
    (opened) => {
      const openedAt = Date.parse(opened);
      const acme = account(openedAt);
      for (const asset of [...acme.assets.list(), ...globalAssets(acme.world, 'us').values()]) {
        for (const at of [asset.createdAt, ...asset.files.map(({ uploadedAt }) => uploadedAt)]) {
          expect(at).toBeLessThan(openedAt);
          expect(at).toBeGreaterThan(openedAt - 4 * 366 * DAY);
        }
      }
    },
  );
});
