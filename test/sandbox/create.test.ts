/**
 * Ordering from the sandbox of the ordering API: the contract, row by row, over HTTP. One file: its tests share the valid order
 * that each of them varies.
 */
import * as fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { ERROR_CODES, type ErrorCode, FAULTS } from '../../sandbox/operations/order-errors.ts';
import { checkLines, type ProductLookup } from '../../sandbox/operations/order-lines.ts';
import { findPriceCode } from '../../sandbox/world/catalogue.ts';
import { REGIONS, type RegionCode } from '../../sandbox/world/regions.ts';
import type { SandboxAccount } from '../../sandbox/world/world.ts';
import type { JobCreated, JobLineCandidate } from '../../shared/ordering/contract/candidates.ts';
import type { PriceBand } from '../../shared/ordering/contract/common.ts';
import type { PriceCode } from '../../shared/ordering/contract/price-codes.ts';
import { type Client, START, startService } from '../support/ordering-api.ts';
import { runs } from '../support/runs.ts';

// biome-ignore lint/suspicious/noExplicitAny: the orders are invalid in any way.
type Loose = Record<string, any>;

const DENVER = {
  deliveryMethod: 'GROUND',
  contactName: 'Robin Buyer',
  streetAddress: '1 Main Street',
  city: 'Boulder',
  state: 'CO',
  postalCode: '80301',
  countryCodeISO2: 'US',
};

const FILM = { itemType: 'PriceCode', code: 'DTF:3" x 3"', quantity: 12, customerReference: 'chest' };
const SPOT = {
  itemType: 'PriceCode',
  code: 'UC:4" x 4":1 Color',
  quantity: 24,
  customerReference: 'back',
  attributes: { 'Color Count': 1 },
};
const CUSTOM = {
  itemType: 'PriceCode',
  code: 'DTF:Custom size',
  quantity: 1,
  customerReference: 'any size',
  attributes: { 'DG-X': 10, 'DG-Y': 5 },
};
const BADGE = {
  itemType: 'PriceCode',
  code: 'EMB:Round badge 3"',
  quantity: 25,
  customerReference: 'badge',
  attributes: { 'Thread Colors': 'red, gold' },
};
const RASH_VEST = { itemType: 'Stock', code: 'CW-RASH', sizeQuantities: { S: 6, M: 4 } };
const POLO = { itemType: 'Stock', code: 'KF-POLO-WHT', sizeQuantities: { M: 30 } };

/** An order of one line, with overrides. */
const order = (more: Loose = {}): Loose => ({ deliveryAddress: DENVER, items: [FILM], ...more });
/** An order with overrides of its line. */
const line = (more: Loose, base: Loose = FILM): Loose => order({ items: [{ ...base, ...more }] });
/** An order with overrides of its address. */
const address = (more: Loose): Loose => order({ deliveryAddress: { ...DENVER, ...more } });

const create = async (
  client: Client,
  body: Loose,
  headers: Record<string, string> = {},
): Promise<JobCreated> => {
  const { status, json, text } = await client.post('/Jobs', body, headers);
  expect([status, status === 201 ? '' : text]).toEqual([201, '']);
  return json;
};
const getCodes = (json: Loose): ErrorCode[] =>
  json.validationMessages.map(({ errorCode }: { errorCode: ErrorCode }) => errorCode);
/** The error codes of an order; checks that nothing was created. */
const rejection = async (
  client: Client,
  body: Loose,
  headers: Record<string, string> = {},
): Promise<ErrorCode[]> => {
  const before = client.account.activeCount;
  const { status, json } = await client.post('/Jobs', { ...body, validateOnly: true }, headers);
  expect(status).toBe(400);
  expect(client.account.activeCount).toBe(before);
  return getCodes(json);
};
const placeOrder = async (client: Client, body: Loose, headers: Record<string, string> = {}) => {
  const { jobNumber } = await create(client, body, headers);
  return (await client.get(`/Jobs/${jobNumber}`)).json;
};
const getRecord = ({ account }: Client, { jobNumber }: { jobNumber: number }) => {
  const job = account.job(jobNumber);
  if (!job) throw new Error(`Job ${jobNumber} does not exist`);
  return job;
};

describe('answers', () => {
  test('POST /Jobs 201: a job is created; the answer has its URL and number', async () => {
    const { us, acme } = await startService();
    const { status, headers, json } = await us.post('/Jobs', order());
    expect(status).toBe(201);
    expect(headers.get('location')).toMatch(new RegExp(`/us/api/Jobs/${json.jobNumber}$`));
    expect(acme.activeJobNumbers()).toEqual([json.jobNumber]);
  });

  test('POST /Jobs 200: validateOnly creates nothing, and the message states it', async () => {
    const { us, acme } = await startService();
    const { status, json } = await us.post('/Jobs', order({ validateOnly: true, promocode: 'WELCOME10' }));
    expect(status).toBe(200);
    expect(json).toEqual({
      isValid: true,
      validationMessages: [],
      message: expect.stringMatching(/not created/),
    });
    expect([acme.activeCount, acme.assets.list().filter(({ createdAt }) => createdAt >= START)]).toEqual([
      0,
      [],
    ]);
    // A single-use promo code is not used up either.
    expect((await us.post('/Jobs', order({ promocode: 'WELCOME10' }))).status).toBe(201);
  });

  test('POST /Jobs 400: the answer has all messages, and nothing is created', async () => {
    const { us, acme } = await startService();
    const { status, json } = await us.post('/Jobs', {
      customerUserId: 1,
      promocode: 'NONESUCH',
      deliveryAddress: { ...DENVER, deliveryMethod: 'PIGEON', countryCodeISO2: 'USA' },
      items: [
        { ...FILM, customerReference: '' },
        { ...SPOT, quantity: 3 },
        { itemType: 'Asset', code: 'NONESUCH' },
      ],
    });
    expect([status, acme.activeCount]).toEqual([400, 0]);
    expect(getCodes(json)).toEqual([
      'CustomerUserUnknown',
      'DeliveryMethodUnknown',
      'CountryCodeInvalid',
      'CustomerReferenceMissing',
      'QuantityBelowMinimum',
      'AssetUnknown',
      'PromoCodeInvalid',
    ]);
  });

  test('POST /Jobs 400: a body that is not a job is a problem with messages by field', async () => {
    const { us } = await startService();
    const { status, json } = await us.post('/Jobs', { items: [{ itemType: 7 }], mustDate: 'yes' });
    expect([status, Object.keys(json.errors).sort()]).toEqual([400, ['items[0].itemType', 'mustDate']]);
    const broken = await us.ask('/Jobs', {
      method: 'POST',
      body: '{',
      headers: { 'content-type': 'application/json' },
    });
    expect(broken.status).toBe(400);
  });

  test.each([
    ['sizeQuantities: a size', { sizeQuantities: { S: 2 ** 31, M: 1 } }, 'items[0].sizeQuantities.S'],
    ['sizeQuantities: a size below', { sizeQuantities: { S: -(2 ** 31) - 1 } }, 'items[0].sizeQuantities.S'],
    ['quantity: one', { quantity: 2 ** 31 }, 'items[0].quantity'],
  ])('POST /Jobs 400 · JobLineCandidate · %s above 32 bits is rejected', async (_, more, field) => {
    const { us } = await startService();
    const { status, json } = await us.post('/Jobs', line(more, RASH_VEST));
    expect([status, Object.keys(json.errors)]).toEqual([400, [field]]);
  });

  test('JobLineCandidate · sizeQuantities: the sum may reach the maximum quantity', async () => {
    const { us } = await startService();
    const most = line({ sizeQuantities: { S: 2 ** 31 - 2, M: 1 } }, RASH_VEST);
    expect((await create(us, most)).jobLineDetails?.[0]?.quantity).toBe(2 ** 31 - 1);
  });

  test.each([
    ['sizeQuantities', '{"S":10,"__proto__":5}'],
    ['sizeQuantities', '{"S":10,"\\u005f_proto__":5}'],
    ['sizeQuantities', '{"S":10,"__proto__":{"M":5}}'],
    ['attributes', '{"__proto__":"yes"}'],
    ['attributes', '{"__proto__":{"Glitter":"yes"}}'],
  ])(
    'POST /Jobs 400 · JobLineCandidate · %s: the key __proto__ is rejected by name: %s',
    async (field, map) => {
      const { us, acme } = await startService();
      for (const validateOnly of [true, false]) {
        const whole = order({
          validateOnly,
          items: [{ ...(field === 'attributes' ? FILM : RASH_VEST), [field]: 0 }],
        });
        const answer = await us.ask('/Jobs', {
          method: 'POST',
          body: JSON.stringify(whole).replace(`"${field}":0`, `"${field}":${map}`),
          headers: { 'content-type': 'application/json' },
        });
        expect([answer.status, answer.text]).toEqual([400, expect.stringContaining('__proto__')]);
      }
      expect(acme.activeCount).toBe(0);
    },
  );

  test('POST /Jobs 401: nothing is created without a token of the region', async () => {
    const { us, acme } = await startService();
    const body = JSON.stringify(order());
    const headers = { 'content-type': 'application/json' };
    expect((await us.ask('/Jobs', { method: 'POST', token: '', body, headers })).status).toBe(401);
    expect(acme.activeCount).toBe(0);
  });

  test('POST /Jobs 403: a caller without the right to order creates nothing', async () => {
    const { as, acme } = await startService();
    const viewer = await as('viewer');
    expect((await viewer.post('/Jobs', order())).status).toBe(403);
    expect(acme.activeCount).toBe(0);
  });

  test('POST /Jobs 415: accepts JSON bodies of four media types only', async () => {
    const { us } = await startService();
    const body = JSON.stringify(order());
    const types = ['text/json', 'application/json-patch+json', 'application/vnd.orders+json; charset=utf-8'];
    for (const type of types) {
      const answer = await us.ask('/Jobs', { method: 'POST', body, headers: { 'content-type': type } });
      expect([type, answer.status]).toEqual([type, 201]);
    }
    const answer = await us.ask('/Jobs', { method: 'POST', body, headers: { 'content-type': 'text/plain' } });
    expect(answer.status).toBe(415);
  });

  const failing: [string, ErrorCode, Loose][] = [
    ['empty items', 'ItemsEmpty', order({ items: [] })],
    ['no items', 'ItemsEmpty', order({ items: null })],
    ['an address that cannot be routed', 'AddressUnroutable', address({ postalCode: '' })],
    ['no address', 'AddressUnroutable', order({ deliveryAddress: null })],
    ['an unknown asset code', 'AssetUnknown', line({ itemType: 'Asset', code: 'NONESUCH' })],
    ['a dateDue without a value', 'DateDueMissing', order({ dateDue: null })],
    [
      'a size that is none of the variant',
      'SizeUnknown',
      line({ sizeQuantities: { S: 10, '9XL': 1 } }, RASH_VEST),
    ],
  ];
  test.each(failing)(
    'POST /Jobs 500: %s fails, and validateOnly names the reason: %s',
    async (_, errorCode, body) => {
      const { us, acme } = await startService();
      const broken = await us.post('/Jobs', body);
      expect([broken.status, broken.json.status]).toEqual([500, 500]);
      expect(broken.headers.get('content-type')).toMatch('application/problem+json');
      expect(broken.json.detail).toContain('validateOnly');
      expect(await rejection(us, body)).toEqual([errorCode]);
      expect(acme.activeCount).toBe(0);
    },
  );

  test('the cases cover every known trigger of a 500', () => {
    expect(new Set(failing.map(([, errorCode]) => errorCode))).toEqual(new Set(FAULTS));
  });

  test('a trigger of a 500 together with another error is a 400 that names both', async () => {
    const { us } = await startService();
    const { status, json } = await us.post('/Jobs', order({ items: [], locationCodeOverride: 'NONESUCH' }));
    expect([status, getCodes(json)]).toEqual([400, ['LocationInvalid', 'ItemsEmpty']]);
  });

  test('CreateJobReturnDto · jobNumber, location, dateDue, totalJobCost, expectingArtworkToBeUploaded, jobLineDetails: describe the created job', async () => {
    const { us } = await startService();
    const created = await create(us, order({ items: [FILM, RASH_VEST] }));
    const { json: job } = await us.get(`/Jobs/${created.jobNumber}`);
    expect(created).toEqual({
      jobNumber: job.jobNumber,
      location: 'Denver',
      dateDue: job.dateDue,
      totalJobCost: 12 * job.lines[0].unitPrice + 10 * job.lines[1].unitPrice + job.taxTotal,
      expectingArtworkToBeUploaded: true,
      jobLineDetails: [expect.objectContaining({ quantity: 12 }), expect.objectContaining({ quantity: 10 })],
    });
    expect(job.location.name).toBe('Denver');
  });

  test('JobLineDetail · customerReference, quantity, needsArtworkToBeUploaded, newAssetSku, jobLineLabelUrl: describe each line', async () => {
    const { us } = await startService();
    const url = 'https://art.example/chest.png?signature=abc';
    const items = [
      { ...FILM, externalArtworkUrl: url },
      { ...BADGE, externalArtworkUrl: url },
      { ...RASH_VEST, customerReference: 'vests' },
    ];
    const { jobNumber, expectingArtworkToBeUploaded, jobLineDetails } = await create(us, order({ items }));
    const { lines } = (await us.get(`/Jobs/${jobNumber}`)).json;
    expect(expectingArtworkToBeUploaded).toBe(false);
    expect(jobLineDetails).toEqual([
      {
        needsArtworkToBeUploaded: false,
        customerReference: 'chest',
        quantity: 12,
        newAssetSku: lines[0].assetSku,
        jobLineLabelUrl: null,
      },
      {
        needsArtworkToBeUploaded: false,
        customerReference: 'badge',
        quantity: 25,
        newAssetSku: lines[1].assetSku,
        jobLineLabelUrl: expect.stringMatching(/^https?:\/\//),
      },
      {
        needsArtworkToBeUploaded: false,
        customerReference: 'vests',
        quantity: 10,
        newAssetSku: null,
        jobLineLabelUrl: null,
      },
    ]);
    expect(lines[0].assetSku).not.toBe(lines[1].assetSku);
  });

  test('ValidationFailure · isValid, validationMessages: each message has a stable errorCode and names line and field', async () => {
    const { us } = await startService();
    const { json } = await us.post('/Jobs', order({ items: [FILM, { ...SPOT, quantity: 3 }] }));
    expect(json).toEqual({
      isValid: false,
      validationMessages: [
        {
          errorCode: 'QuantityBelowMinimum',
          message: 'Line 2: quantity must be at least 12 of "UC:4" x 4":1 Color", not 3.',
        },
      ],
    });
  });

  test('ValidationSuccess · isValid, validationMessages, message: a valid order has no messages', async () => {
    const { us } = await startService();
    const { json } = await us.post('/Jobs', order({ validateOnly: true }));
    expect(json).toEqual({ isValid: true, validationMessages: [], message: expect.any(String) });
  });
});

/** Every reason for rejection: its title, its code, and the order. `NOBODY` and `GONE` are users of `startRejecting`. */
const REJECTED: [what: string, errorCode: ErrorCode, body: Loose, headers?: Record<string, string>][] = [
  [
    'X-Application-Name that is not an origin',
    'ApplicationNameUnknown',
    order(),
    { 'X-Application-Name': 'MyApp' },
  ],
  ['JobCandidate · customerUserId: an unknown user', 'CustomerUserUnknown', order({ customerUserId: 1 })],
  ['ShopCandidate · userId: an unknown user', 'CustomerUserUnknown', order({ userId: 1 })],
  [
    'two owners',
    'ShopUserAmbiguous',
    order({ userId: 900_100, userDetails: { shopUserId: 5, bypassCustomerMatch: true } }),
  ],
  ['ShopCandidate · customerId: another customer', 'CustomerUnknown', order({ customerId: 1 })],
  ['ShopCandidate · itemsTotal: a negative value', 'ShopTotalInvalid', order({ itemsTotal: -1 })],
  ['ShopCandidate · taxTotal: a negative value', 'ShopTotalInvalid', order({ taxTotal: -1 })],
  ['ShopCandidate · totalAmount: a negative value', 'ShopTotalInvalid', order({ totalAmount: -1 })],
  ['ShopCandidate · shippingTotal: a negative value', 'ShopTotalInvalid', order({ shippingTotal: -0.01 })],
  ['CustomerShopCandidate · currencyCode: a name', 'CurrencyCodeInvalid', order({ currencyCode: 'Dollar' })],
  ['a sequence without a group', 'OrderGroupMissing', order({ orderGroupSequence: 1 })],
  [
    'JobCandidate · orderGroupSequence: from 1',
    'OrderGroupSequenceInvalid',
    order({ orderGroup: 'G', orderGroupSequence: 0 }),
  ],
  ['an unknown location', 'LocationInvalid', order({ locationCodeOverride: 'NONESUCH' })],
  ['a location that is inactive', 'LocationInvalid', order({ locationCodeOverride: 'PUE' })],
  ['a location that is virtual', 'LocationInvalid', order({ locationCodeOverride: 'USX' })],
  ['JobCandidate · dateDue: no date', 'DateDueInvalid', order({ dateDue: 'next Friday' })],
  ...[
    '2027-02-31',
    '2026-11-31T12:00:00Z',
    '2027-02-29',
    '2027-01-04 (x) 12:00',
    '2027-01-04T12:00:00Z and more',
    '2027-01-04T12:60',
    '2027-01-04T24:00:00Z',
    '2027-01-04T12:00:00+25:00',
    '+012027-01-04',
  ].map((dateDue): [string, ErrorCode, Loose] => [
    `JobCandidate · dateDue: ${dateDue}, which is not a day or not ISO 8601`,
    'DateDueInvalid',
    order({ dateDue, timeSensitive: true }),
  ]),
  ...[true, false].map((timeSensitive): [string, ErrorCode, Loose] => [
    `JobCandidate · dateDue: a year beyond 9999 at the place, timeSensitive ${timeSensitive}`,
    'DateDueInvalid',
    order({ dateDue: '9999-12-31T23:59:59-12:00', timeSensitive }),
  ]),
  ['JobCandidate · dateDue: an empty string', 'DateDueMissing', order({ dateDue: '' })],
  ['no delivery method', 'DeliveryMethodMissing', address({ deliveryMethod: null })],
  [
    'DeliveryAddress · deliveryMethod: free text',
    'DeliveryMethodUnknown',
    address({ deliveryMethod: 'Ground' }),
  ],
  [
    'DeliveryAddress · isSaturdayDelivery: by road',
    'SaturdayDeliveryUnsupported',
    address({ isSaturdayDelivery: true }),
  ],
  [
    'DeliveryAddress · countryCodeISO2: three letters',
    'CountryCodeInvalid',
    address({ countryCodeISO2: 'USA' }),
  ],
  ['DeliveryAddress · countryCodeISO2: no country', 'CountryCodeInvalid', address({ countryCodeISO2: 'XX' })],
  [
    'a wrong country of a collection',
    'CountryCodeInvalid',
    order({ deliveryAddress: { deliveryMethod: 'COLLECT', countryCodeISO2: 'USA' } }),
  ],
  ['DeliveryAddress · streetAddress: none', 'AddressUnroutable', address({ streetAddress: '' })],
  ['DeliveryAddress · city: missing, without a suburb', 'AddressUnroutable', address({ city: null })],
  [
    'DeliveryAddress · state: missing in a country with states',
    'AddressUnroutable',
    address({ state: null }),
  ],
  ['DeliveryAddress · state: none of the lookup', 'AddressUnroutable', address({ state: 'Atlantis' })],
  ['DeliveryAddress · stateCode: none of the lookup', 'AddressUnroutable', address({ stateCode: 'XX' })],
  ['DeliveryAddress · stateCode: of another state', 'AddressUnroutable', address({ stateCode: 'CA' })],
  ['DeliveryAddress · postalCode: none', 'AddressUnroutable', address({ postalCode: ' ' })],
  ['no country', 'AddressUnroutable', address({ countryCodeISO2: null, country: 'United States' })],
  ['JobCandidate · promocode: an expired one', 'PromoCodeInvalid', order({ promocode: 'SUMMER25' })],
  ['a promo code for other processes', 'PromoCodeInvalid', order({ promocode: 'VINYL5' })],
  ['JobCandidate · items: none', 'ItemsEmpty', order({ items: [] })],
  ['JobLineCandidate · itemType: an unknown one', 'ItemTypeUnknown', line({ itemType: 'pricecode' })],
  ['a bill of material', 'ItemTypeUnsupported', line({ itemType: 'BillOfMaterial', size: 'M' })],
  ['an external garment', 'ItemTypeUnsupported', line({ itemType: 'ExternalGarment', garment: 'Tee' })],
  ['no code', 'CodeMissing', line({ code: null })],
  ['JobLineCandidate · code: no price code', 'PriceCodeUnknown', line({ code: 'DTF:3 x 3' })],
  ['a price code of a process that is not active', 'PriceCodeUnknown', line({ code: 'PUF:4" x 4":1 Color' })],
  ['no dimensions', 'AttributeMissing', line({ attributes: { 'DG-X': 3 } }, CUSTOM)],
  [
    'dimensions beyond the largest',
    'AttributeOutOfRange',
    line({ attributes: { 'DG-X': 23, 'DG-Y': 4 } }, CUSTOM),
  ],
  ['JobLineCandidate · code: no asset tag', 'AssetUnknown', line({ itemType: 'Asset', code: 'NONESUCH' })],
  ['JobLineCandidate · code: no stock code', 'StockUnknown', line({ code: 'NONESUCH' }, POLO)],
  ['a stock code of several variants', 'VariantMissing', line({ code: 'KF-POLO' }, POLO)],
  [
    'JobLineCandidate · variantCode: none of the item',
    'VariantUnknown',
    line({ code: 'KF-POLO', variantCode: 'CW-RASH-TEA' }, POLO),
  ],
  ['a variant code that contradicts the code', 'VariantUnknown', line({ variantCode: 'KF-POLO-CHA' }, POLO)],
  ['no sizes', 'SizesMissing', line({ sizeQuantities: {} }, POLO)],
  ['sizes of equipment', 'SizeUnknown', line({ code: 'HP-4050', sizeQuantities: { M: 1 } }, POLO)],
  [
    'JobLineCandidate · sizeQuantities: a negative quantity',
    'SizeQuantityInvalid',
    line({ sizeQuantities: { M: 40, S: -1 } }, POLO),
  ],
  ['no quantity', 'QuantityMissing', line({ quantity: undefined })],
  ['JobLineCandidate · quantity: below the first band', 'QuantityBelowMinimum', line({ quantity: 11 }, SPOT)],
  ['a quantity of zero', 'QuantityBelowMinimum', line({ quantity: 0 })],
  [
    'sizes that are fewer than the first band',
    'QuantityBelowMinimum',
    line({ sizeQuantities: { S: 9 } }, RASH_VEST),
  ],
  [
    'a sample of a line without a price code',
    'QuantityBelowMinimum',
    line({ quantity: 0, isSample: true }, SPOT),
  ],
  [
    'a sample of a price code without one',
    'SampleUnavailable',
    line({ code: 'DTF:Neck label 2" x 2"', isSample: true, quantity: 25 }),
  ],
  [
    'JobLineCandidate · customerReference: none of a PriceCode line',
    'CustomerReferenceMissing',
    line({ customerReference: null }),
  ],
  ['a required attribute that is missing', 'AttributeMissing', line({ attributes: null }, SPOT)],
  [
    'a required attribute that is empty',
    'AttributeMissing',
    line({ attributes: { 'Thread Colors': '' } }, BADGE),
  ],
  [
    'an attribute that the price code does not have',
    'AttributeUnknown',
    line({ attributes: { Glitter: 'yes' } }),
  ],
  [
    'JobLineCandidate · attributes: a text as an int',
    'AttributeTypeInvalid',
    line({ attributes: { 'Color Count': 'one' } }, SPOT),
  ],
  ['an int with a fraction', 'AttributeTypeInvalid', line({ attributes: { 'Color Count': 0.5 } }, SPOT)],
  ['a text as a decimal', 'AttributeTypeInvalid', line({ attributes: { 'DG-X': true, 'DG-Y': 2 } }, CUSTOM)],
  ['a number as a choice', 'AttributeTypeInvalid', line({ attributes: { Finish: 1 } })],
  ['a number as a text', 'AttributeTypeInvalid', line({ attributes: { Placement: 4 } })],
  ['a text that is too long', 'AttributeLengthInvalid', line({ attributes: { Placement: 'x'.repeat(41) } })],
  [
    'a text that is too short',
    'AttributeLengthInvalid',
    line({ attributes: { 'Thread Colors': 'ab' } }, BADGE),
  ],
  ['an int that is too large', 'AttributeOutOfRange', line({ attributes: { 'Color Count': 2 } }, SPOT)],
  [
    'a decimal that is too small',
    'AttributeOutOfRange',
    line({ attributes: { 'DG-X': 0.99, 'DG-Y': 2 } }, CUSTOM),
  ],
  [
    'a choice that is none, for case counts',
    'AttributeValueUnknown',
    line({ attributes: { Finish: 'Matt' } }),
  ],
  [
    'JobLineCandidate · externalArtworkUrl: no address',
    'ArtworkUrlInvalid',
    line({ externalArtworkUrl: 'chest.png' }),
  ],
  ['artwork on my disk', 'ArtworkUrlInvalid', line({ externalArtworkUrl: 'file:///home/me/chest.png' })],
  [
    'artwork of one line only',
    'ArtworkUrlMissing',
    order({ items: [{ ...FILM, externalArtworkUrl: 'https://art.example/1.png' }, RASH_VEST, FILM] }),
  ],
  [
    'JobLineCandidate · sizeQuantities: more than a quantity can hold',
    'QuantityTooLarge',
    line({ sizeQuantities: { S: 2 ** 31 - 1, M: 1 } }, RASH_VEST),
  ],
  ['JobLineCandidate · group: of no head', 'GroupUnknown', line({ group: 'kit' })],
  [
    'JobLineCandidate · groupHead: twice',
    'GroupHeadDuplicate',
    order({
      items: [
        { ...FILM, groupHead: 'kit' },
        { ...FILM, groupHead: 'kit' },
      ],
    }),
  ],
  [
    'a head that is a child',
    'GroupNested',
    order({
      items: [
        { ...FILM, groupHead: 'a' },
        { ...FILM, groupHead: 'b', group: 'a' },
      ],
    }),
  ],
];

describe('rejected orders', () => {
  test.each(REJECTED)('%s: %s', async (_, errorCode, body, headers) => {
    const { us } = await startService();
    expect(await rejection(us, body, headers)).toEqual([errorCode]);
  });

  test('a user of another customer is unknown, and an inactive one is rejected', async () => {
    const { us, world, acme } = await startService();
    const stranger = world.addAccount({ region: 'us', name: 'other' }).users[0];
    const [, second] = acme.users;
    if (!second || !stranger) throw new Error('The account has no users');
    second.active = false;
    expect(await rejection(us, order({ customerUserId: stranger.id }))).toEqual(['CustomerUserUnknown']);
    expect(await rejection(us, order({ customerUserId: second.id }))).toEqual(['CustomerUserInactive']);
  });

  test('an archived asset answers 400, unlike an unknown one', async () => {
    const { us, acme } = await startService();
    const { assetTag } = acme.assets.add({ priceCode: FILM.code, processCode: 'DTF' });
    acme.assets.archive(assetTag);
    const { status, json } = await us.post('/Jobs', line({ itemType: 'Asset', code: assetTag }));
    expect([status, getCodes(json)]).toEqual([400, ['AssetArchived']]);
  });

  test('an asset older than price codes has no price', async () => {
    const { us, acme } = await startService();
    const { assetTag } = acme.assets.add({ priceCode: null });
    expect(await rejection(us, line({ itemType: 'Asset', code: assetTag }))).toEqual(['AssetNotOrderable']);
  });

  test("another account's asset is an unknown one", async () => {
    const { us, world } = await startService();
    const { assetTag } = world
      .addAccount({ region: 'us', name: 'other' })
      .assets.add({ priceCode: FILM.code });
    expect(await rejection(us, line({ itemType: 'Asset', code: assetTag }))).toEqual(['AssetUnknown']);
  });

  test('a location that is closed for good has no date', async () => {
    const { us, world } = await startService();
    world.closures.push({ region: 'us', dateFrom: '2026-11-01', dateTo: '2028-01-01' });
    expect(await rejection(us, order())).toEqual(['ShipDateUnavailable']);
  });

  test('an attribute key in another case or spelling is rejected', async () => {
    const { us } = await startService();
    const { json } = await us.post('/Jobs', line({ attributes: { 'color count': 1 } }, SPOT));
    expect(getCodes(json)).toEqual(['AttributeMissing', 'AttributeUnknown']);
    expect(json.validationMessages[1].message).toBe(
      'Line 1: attributes["color count"] is not an attribute of the price code; write "Color Count", since keys are case-sensitive.',
    );
    expect(await rejection(us, line({ attributes: { 'Colour Count': 1 } }, SPOT))).toEqual([
      'AttributeMissing',
      'AttributeUnknown',
    ]);
  });

  test('dimensions without a price are rejected: PriceUnavailable', async () => {
    const { acme } = await startService();
    const rejected: ErrorCode[] = [];
    const wares: ProductLookup = {
      asset: () => undefined,
      stock: () => undefined,
      // A code whose attributes allow more than can be priced.
      priceCode: (code) => findPriceCode(acme, code, {}),
    };
    const items = [CUSTOM as JobLineCandidate];
    expect(checkLines(items, wares, (errorCode) => void rejected.push(errorCode))).toEqual([]);
    expect(rejected).toEqual(['PriceUnavailable']);
  });

  test('JobLineCandidate · groupHead, group: validating thousands of lines takes linear time', () => {
    const count = 2000;
    let reads = 0;
    const items = Array.from({ length: count }, (_, index): JobLineCandidate => {
      const name = `kit ${index >> 1}`;
      const own = index % 2 === 0 ? { groupHead: name } : { group: name };
      return Object.defineProperties({ itemType: 'none' } as JobLineCandidate, {
        groupHead: { get: () => ++reads && own.groupHead },
        group: { get: () => ++reads && own.group },
      });
    });
    const wares: ProductLookup = {
      asset: () => undefined,
      stock: () => undefined,
      priceCode: () => undefined,
    };
    const searches = vi.spyOn(Array.prototype, 'includes');
    checkLines(items, wares, (errorCode) => void expect(errorCode).toBe('ItemTypeUnknown'));
    const searched = searches.mock.contexts.filter((array) => (array as unknown[]).length >= count / 2);
    searches.mockRestore();
    expect(searched.length, 'searches through all lines').toBe(0);
    expect(reads).toBeLessThan(10 * count);
  });

  test('the cases cover every errorCode', async () => {
    const shown = new Set<ErrorCode>(REJECTED.map(([, errorCode]) => errorCode));
    for (const code of [
      'PriceUnavailable',
      'CustomerUserInactive',
      'AssetArchived',
      'AssetNotOrderable',
      'ShipDateUnavailable',
      'DateDueMissing',
    ] as const) {
      shown.add(code);
    }
    expect([...shown].sort()).toEqual(Object.keys(ERROR_CODES).sort());
  });

  test('every message names line or field and the accepted values', async () => {
    const { us } = await startService();
    for (const [, , body, headers = {}] of REJECTED) {
      const { json } = await us.post('/Jobs', { ...body, validateOnly: true }, headers);
      for (const { message } of json.validationMessages) {
        expect(message).toMatch(
          /^(Line \d: )?[A-Za-z].+\b(must|is required|requires|needs|cannot|has no|have values without|has neither|is used by|is not|there is)\b.+\.$/,
        );
        expect(message.length).toBeLessThan(300);
      }
    }
  });
});

describe('created jobs', () => {
  test.each(['', ' '])('JobCandidate · orderGroup: %j is not a group', async (orderGroup) => {
    const { us } = await startService();
    expect((await placeOrder(us, order({ orderGroup }))).orderGroup).toBeNull();
  });

  test('JobCandidate · description, orderComment, orderNumber, orderGroup, orderGroupSequence: are stored in the job', async () => {
    const { us } = await startService();
    const fields = {
      description: 'Spring kit',
      orderNumber: 'PO-77',
      orderGroup: 'CART-9',
      orderGroupSequence: 2,
    };
    const job = await placeOrder(us, order({ ...fields, orderComment: 'Ring the bell' }));
    expect(job).toMatchObject({ ...fields, comments: 'Ring the bell' });
    const bare = await placeOrder(us, order());
    const none = {
      description: null,
      orderNumber: null,
      orderGroup: null,
      orderGroupSequence: null,
      comments: null,
    };
    expect(bare).toMatchObject(none);
    const { json: page } = await us.get('/Jobs/active?orderGroup=CART-9');
    expect(page.items.map(({ jobNumber }: Loose) => jobNumber)).toEqual([job.jobNumber]);
  });

  test('JobCandidate · items: lines keep the order of the input, and those of the same code stay separate', async () => {
    const { us } = await startService();
    const items = [{ ...FILM, customerReference: 'b' }, RASH_VEST, { ...FILM, customerReference: 'a' }];
    const { lines } = await placeOrder(us, order({ items }));
    expect(lines.map(({ customerReference }: Loose) => customerReference)).toEqual(['b', null, 'a']);
    const { lines: one } = await placeOrder(us, order({ items: [{ ...FILM, quantity: 24 }] }));
    expect(one[0].unitPrice).toBeLessThanOrEqual(lines[0].unitPrice);
  });

  test('JobCandidate · validateOnly: false creates', async () => {
    const { us, acme } = await startService();
    await create(us, order({ validateOnly: false }));
    expect(acme.activeCount).toBe(1);
  });

  test('JobCandidate · customerUserId: owns the job. Default: the calling user, who is its creator in any case', async () => {
    const { us, acme } = await startService();
    const [first, second] = acme.users.map(({ id }) => id);
    const own = await create(us, order());
    const other = await create(us, order({ customerUserId: second }));
    const ownedBy = async (userId: number | undefined) =>
      (await us.get(`/Jobs/active?customerUserId=${userId}`)).json.items.map(
        ({ jobNumber }: Loose) => jobNumber,
      );
    const { creator, dateIn } = (await us.get(`/Jobs/${other.jobNumber}`)).json;
    expect([creator, Date.parse(dateIn)]).toEqual([acme.users[0]?.userName, START]);
    expect([await ownedBy(first), await ownedBy(second)]).toEqual([[own.jobNumber], [other.jobNumber]]);
  });

  test("JobCandidate · locationCodeOverride: the location that produces it. Default: the region's first location", async () => {
    const { us } = await startService();
    expect((await placeOrder(us, order())).location.name).toBe('Denver');
    const created = await create(us, order({ locationCodeOverride: 'CLT' }));
    expect([created.location, created.dateDue?.slice(-6)]).toEqual(['Charlotte', '-05:00']);
    expect((await us.get(`/Jobs/${created.jobNumber}`)).json.location).toEqual({
      name: 'Charlotte',
      timezone: 'America/New_York',
    });
  });

  test.each([
    ['that is omitted is the earliest possible', {}, 'EARLIEST'],
    ['that is too early is moved to the earliest possible', { dateDue: '2026-11-20' }, 'EARLIEST'],
    ['in the past is moved too', { dateDue: '2020-01-01T00:00:00Z' }, 'EARLIEST'],
    ['that can be met is kept', { dateDue: '2026-12-04' }, '2026-12-04T00:00:00-07:00'],
    ['of the earliest possible day is kept', { dateDue: '2026-11-23' }, '2026-11-23T00:00:00-07:00'],
    ['is a day unless time counts', { dateDue: '2026-12-04T11:30:00-07:00' }, '2026-12-04T00:00:00-07:00'],
    ['on a leap day is kept', { dateDue: '2028-02-29' }, '2028-02-29T00:00:00-07:00'],
    ['on the last representable day is kept', { dateDue: '9999-12-31' }, '9999-12-31T00:00:00-07:00'],
  ])('JobCandidate · dateDue: one %s', async (_, more, expected) => {
    const { us } = await startService();
    const { shippingDateLocal } = (await us.get('/Jobs/earliest-ship-date?processCodes=DTF')).json;
    const earliest = `${shippingDateLocal.slice(0, 10)}T00:00:00-07:00`;
    const created = await create(us, order(more));
    expect(created.dateDue).toBe(expected === 'EARLIEST' ? earliest : expected);
  });

  test.each([
    ['a day gets the default time', { dateDue: '2026-12-04' }, '2026-12-04T17:00:00-07:00'],
    ['keeps a time', { dateDue: '2026-12-04T11:30:00-07:00' }, '2026-12-04T11:30:00-07:00'],
    ['parts of a second count', { dateDue: '2026-12-04T11:30:00.5Z' }, '2026-12-04T04:30:00.500-07:00'],
    ['the last day has the default time too', { dateDue: '9999-12-31' }, '9999-12-31T17:00:00-07:00'],
    ['a time that is too early is moved', { dateDue: '2026-11-23T08:00:00-07:00' }, 'EARLIEST'],
    ['without a date is the earliest possible time', {}, 'EARLIEST'],
  ])('JobCandidate · timeSensitive: %s', async (_, more, expected) => {
    const { us } = await startService();
    const { shippingDateLocal } = (await us.get('/Jobs/earliest-ship-date?processCodes=DTF')).json;
    const created = await create(us, order({ ...more, timeSensitive: true }));
    expect(created.dateDue).toBe(expected === 'EARLIEST' ? shippingDateLocal : expected);
  });

  test('JobCandidate · mustDate: is ignored without a due date', async () => {
    const { us } = await startService();
    const mustDate = async (more: Loose) =>
      (await placeOrder(us, order({ mustDate: true, ...more }))).mustDate;
    expect([await mustDate({}), await mustDate({ dateDue: '2026-12-04' })]).toEqual([false, true]);
    expect((await placeOrder(us, order({ dateDue: '2026-12-04' }))).mustDate).toBe(false);
  });

  test('the slowest process of the lines determines the earliest possible date', async () => {
    const { us } = await startService();
    const film = await create(us, order());
    const both = await create(us, order({ items: [FILM, SPOT] }));
    expect((both.dateDue ?? '') > (film.dateDue ?? '')).toBe(true);
  });

  test('createJob · X-Application-Name: is the origin of the job. Default: API', async () => {
    const { us } = await startService();
    const getOrigin = async (headers: Record<string, string>) => {
      const { jobNumber } = await create(us, order(), headers);
      const { items } = (await us.get('/Jobs/active')).json;
      return items.find((item: Loose) => item.jobNumber === jobNumber).originCode;
    };
    expect([await getOrigin({}), await getOrigin({ 'X-Application-Name': 'SHOP' })]).toEqual(['API', 'SHOP']);
  });

  test('JobCandidate · deliveryAddress: all fields are kept: DeliveryAddress · shippingInstructions, contactName, organisation, phone, mobile, emailAddress, address2, country', async () => {
    const { us } = await startService();
    const deliveryAddress = {
      ...DENVER,
      shippingInstructions: 'Dock 3',
      organisation: 'Acme',
      phone: '1',
      mobile: '2',
      emailAddress: 'robin@customer.example',
      address2: 'Unit 4',
      suburb: 'Hill',
      state: 'Colorado',
      stateCode: 'CO',
      isSaturdayDelivery: true,
      deliveryMethod: 'EXPRESS',
      country: 'Never read',
    };
    const job = getRecord(us, await create(us, order({ deliveryAddress })));
    expect(job.deliveryAddress).toEqual(deliveryAddress);
    const { json } = await us.get('/Jobs/active?searchText=overnight');
    expect(json.totalCount).toBe(1);
  });

  test.each([
    [
      'DeliveryAddress · isSaturdayDelivery: by express',
      { deliveryMethod: 'EXPRESS', isSaturdayDelivery: true },
    ],
    ['DeliveryAddress · state: its name', { state: 'Colorado' }],
    ['DeliveryAddress · stateCode: alone', { state: null, stateCode: 'CO' }],
    ['DeliveryAddress · countryCodeISO2: a country without states', { countryCodeISO2: 'FR', state: null }],
    [
      'DeliveryAddress · postalCode: missing in a country without postal codes',
      { countryCodeISO2: 'HK', suburb: 'Mong Kok', state: null, postalCode: null },
    ],
    [
      'DeliveryAddress · suburb: instead of a city',
      { countryCodeISO2: 'SG', suburb: 'Bedok', city: null, state: null },
    ],
  ])('%s is routed', async (_, more) => {
    const { us } = await startService();
    await create(us, address(more));
  });

  test.each(REGIONS)('the address of an account in %s is routed', async (region) => {
    const { world, as } = await startService();
    // Two accounts, because regions have several addresses.
    for (const name of ['one', 'two']) {
      const client = await as('user', world.addAccount({ region, name }));
      const { entityAddress } = (await client.get('/account')).json;
      const { streetAddress, city, state, postalCode, countryCode: countryCodeISO2 } = entityAddress;
      const own = { streetAddress, city, state, postalCode, countryCodeISO2 };
      const { json } = await client.post('/Jobs', { ...address(own), validateOnly: true });
      expect(getCodes(json)).not.toContain('AddressUnroutable');
    }
  });

  test('DeliveryAddress · deliveryMethod: a collection needs no address', async () => {
    const { us } = await startService();
    await create(us, order({ deliveryAddress: { deliveryMethod: 'COLLECT' } }));
  });

  test('JobLineCandidate · itemType, code, quantity, customerReference, garment, comment: are stored in the line', async () => {
    const { us, acme } = await startService();
    const { assetTag } = acme.assets.add({
      priceCode: FILM.code,
      processCode: 'DTF',
      description: 'Crest',
      garment: 'Tee',
    });
    const asset = { itemType: 'Asset', code: assetTag, quantity: 50 };
    const { lines } = await placeOrder(
      us,
      order({
        items: [
          asset,
          { ...asset, garment: 'Hood, navy', comment: 'No backing', customerReference: 'again' },
        ],
      }),
    );
    const same = { assetSku: assetTag, processCode: 'DTF', description: 'Crest', quantity: 50 };
    expect(lines).toMatchObject([
      { ...same, garment: 'Tee', comments: null, customerReference: null },
      { ...same, garment: 'Hood, navy', comments: 'No backing', customerReference: 'again' },
    ]);
  });

  test('JobLineCandidate · attributes, externalId: are stored in the new asset, which exists at once', async () => {
    const { us, as } = await startService();
    const attributes = {
      'Color Count': '1',
      'Ink Colors': 'Navy',
      'Garment Color': 'DARK',
      Placement: 'Left chest',
    };
    const { jobLineDetails } = await create(
      us,
      order({ items: [{ ...SPOT, attributes, externalId: 'design-5' }] }),
    );
    const tag = jobLineDetails?.[0]?.newAssetSku;
    const { json: asset } = await us.get(`/Assets/${tag}`);
    expect(asset).toMatchObject({
      assetTag: tag,
      priceCode: SPOT.code,
      processCode: 'UC',
      externalId: 'design-5',
      isArchived: false,
    });
    const staff = await as('staff');
    // Those with an assetAttributeName, by that name.
    expect((await staff.get(`/Assets/${tag}`)).json.attributes).toEqual({
      InkColors: 'Navy',
      GarmentShade: 'DARK',
    });
  });

  test('a reorder by the tag of a new asset has its prices and its reset charge, and no setup', async () => {
    const { us } = await startService();
    for (const line of [SPOT, CUSTOM]) {
      const first = await create(us, order({ items: [{ ...line, quantity: 30 }] }));
      const tag = first.jobLineDetails?.[0]?.newAssetSku ?? '';
      const { json: asset } = await us.get(`/Assets/${tag}`);
      const again = await create(us, order({ items: [{ itemType: 'Asset', code: tag, quantity: 30 }] }));
      expect(again.totalJobCost).toBe(round(30 * priceAt(asset.priceBands, 30) + asset.reset));
      expect(again).toMatchObject({
        expectingArtworkToBeUploaded: false,
        jobLineDetails: [{ newAssetSku: null }],
      });
      expect(asset.reset).toBeGreaterThan(0);
    }
  });

  test('every account can order an asset of the catalogue', async () => {
    const { us } = await startService();
    const { entities } = (await us.get('/Assets/global?pageSize=50')).json;
    const asset = entities.find((one: Loose) => one.priceBands && !one.isArchived);
    const quantity = asset.priceBands[0].from;
    const { lines } = await placeOrder(
      us,
      order({ items: [{ itemType: 'Asset', code: asset.assetTag, quantity }] }),
    );
    expect(lines[0]).toMatchObject({ assetSku: asset.assetTag, unitPrice: asset.priceBands[0].unitPrice });
  });

  test('JobLineCandidate · isSample: bypasses the minimum quantity, at the sample price and without setup', async () => {
    const { us } = await startService();
    const { json: code } = await us.get(`/PriceCodes/${encodeURIComponent(SPOT.code)}`);
    const created = await create(us, order({ items: [{ ...SPOT, quantity: 2, isSample: true }] }));
    expect(code.minimumQuantity).toBeGreaterThan(2);
    expect(created.totalJobCost).toBe(2 * code.samplePrice);
  });

  test('JobLineCandidate · variantCode, sizeQuantities: select the stock, and quantity is their total', async () => {
    const { us } = await startService();
    const named = {
      itemType: 'Stock',
      code: 'KF-POLO',
      variantCode: 'KF-POLO-WHT',
      quantity: 5,
      sizeQuantities: { M: 30, XL: 10 },
    };
    const { lines } = await placeOrder(us, order({ items: [named, { ...POLO, sizeQuantities: { M: 40 } }] }));
    expect(lines[0]).toMatchObject({ quantity: 40, assetSku: null, comments: 'M: 30, XL: 10' });
    expect(lines[0].unitPrice).toBe(lines[1].unitPrice);
    const press = { itemType: 'Stock', code: 'HP-4050', sizeQuantities: { Qty: 3 } };
    expect((await placeOrder(us, order({ items: [press] }))).lines[0].quantity).toBe(3);
  });

  test('JobLineCandidate · externalArtworkUrl: without any the job awaits artwork; lines of other types need none', async () => {
    const { us, acme } = await startService();
    const { assetTag } = acme.assets.add({ priceCode: FILM.code, processCode: 'DTF' });
    const reorder = { itemType: 'Asset', code: assetTag, quantity: 10 };
    const without = await create(us, order({ items: [FILM, reorder] }));
    const url = 'https://art.example/a.png';
    const given = await create(us, order({ items: [{ ...FILM, externalArtworkUrl: url }, reorder] }));
    expect(
      [without, given].map((one) => one.jobLineDetails?.map((line) => line.needsArtworkToBeUploaded)),
    ).toEqual([
      [true, false],
      [false, false],
    ]);
    expect([without.expectingArtworkToBeUploaded, given.expectingArtworkToBeUploaded]).toEqual([true, false]);
    const getStatus = async ({ jobNumber }: JobCreated) =>
      (await us.get(`/Jobs/${jobNumber}`)).json.jobStatus;
    expect([await getStatus(without), await getStatus(given)]).toEqual([
      'Awaiting artwork',
      'Order received',
    ]);
    expect(getRecord(us, given).lines.map(({ artworkUrl }) => artworkUrl)).toEqual([url, null]);
  });

  test('JobLineCandidate · group, groupHead: children may precede their head', async () => {
    const { us } = await startService();
    const items = [
      { ...FILM, group: 'kit' },
      { ...RASH_VEST, groupHead: 'kit' },
      { ...FILM, group: 'kit' },
    ];
    await create(us, order({ items }));
  });

  test('each ordered job is reported to the scenario once, and validated orders are not', async () => {
    const adopted: number[] = [];
    const { us } = await startService({
      scenario: {
        advanceTo: () => undefined,
        adopt: (_: SandboxAccount, jobNumber: number) => adopted.push(jobNumber),
      },
    });
    await us.post('/Jobs', order({ validateOnly: true }));
    const { jobNumber } = await create(us, order());
    expect(adopted).toEqual([jobNumber]);
  });

  test("the label of an external supplier's line is readable by its link only", async () => {
    const { us } = await startService();
    const { jobLineDetails } = await create(us, order({ items: [BADGE] }));
    const link = jobLineDetails?.[0]?.jobLineLabelUrl ?? '';
    const label = await fetch(link);
    expect([label.status, label.headers.get('content-type')]).toEqual([200, 'application/pdf']);
    expect(await label.text()).toContain('25 x Round badge');
    expect((await fetch(link.replace('-1.pdf', '-2.pdf'))).status).toBe(404);
  });
});

describe('shops', () => {
  const shop = (more: Loose = {}) =>
    order({ itemsTotal: 60, taxTotal: 6, totalAmount: 71, shippingTotal: 5, ...more });

  test('CreateJobReturnDto · customerId, userId: are answered to shops only', async () => {
    const { us, acme } = await startService();
    const owner = acme.users[1]?.id;
    expect(await create(us, order())).not.toHaveProperty('customerId');
    expect(await create(us, shop())).toMatchObject({ customerId: acme.id, userId: acme.users[0]?.id });
    expect(await create(us, shop({ customerId: acme.id, userId: owner }))).toMatchObject({ userId: owner });
    expect(await create(us, order({ shopName: 'Tees' }))).toMatchObject({ customerId: acme.id });
    // A serializer that writes every field of the class sends null for the unused ones.
    const nulls = {
      taxLines: null,
      discounts: null,
      userDetails: null,
      shopName: null,
      userId: null,
      customerId: null,
    };
    expect(await create(us, order(nulls))).not.toHaveProperty('userId');
  });

  test('ShopCandidate · userId: owns the job', async () => {
    const { us, acme } = await startService();
    const { jobNumber } = await create(us, shop({ userId: acme.users[1]?.id }));
    expect(getRecord(us, { jobNumber }).userId).toBe(acme.users[1]?.id);
  });

  const OF_A_CUSTOMERS_SHOP = {
    shopName: 'Tees & Co',
    shopOrderName: '#1001',
    shopOrderId: 'gid-1001',
    currencyCode: 'EUR',
  };
  test.each([
    [
      'ShopCandidate · itemsTotal, taxTotal, taxLines, totalAmount, shippingTotal, shippingType, paymentType, discounts, userDetails, customerId, userId',
      {},
    ],
    [
      'CustomerShopCandidate · itemsTotal, taxTotal, taxLines, totalAmount, shippingTotal, shippingType, paymentType, discounts, userDetails, customerId, userId, shopName, shopOrderName, shopOrderId, currencyCode',
      OF_A_CUSTOMERS_SHOP,
    ],
    [
      'TaxLine · title, rate, price; Discount · name, target, value, targetValue, isDiscountCode',
      { currencyCode: 'EUR' },
    ],
  ])('payments and totals of the shop are stored: %s', async (_, more) => {
    const { us, acme } = await startService();
    const sold = {
      itemsTotal: 60,
      taxTotal: 6,
      taxLines: [{ title: 'VAT', rate: 0.1, price: 6 }],
      totalAmount: 66,
      shippingTotal: 5,
      shippingType: 'Standard',
      paymentType: [{ source: 'card' }],
      discounts: [
        {
          name: 'Five',
          target: { kind: 'order' },
          value: 5,
          targetValue: { fixed: 5 },
          isDiscountCode: true,
        },
      ],
      userDetails: null,
      customerId: acme.id,
      userId: acme.users[0]?.id,
      ...more,
    };
    const plain = await create(us, order());
    const created = await create(us, order({ ...sold, orderNumber: 'PO-1' }));
    expect(getRecord(us, created).shop).toEqual(sold);
    expect(getRecord(us, plain).shop).toBeNull();
    // The price paid by the shop's buyers is not the job's cost.
    expect(created.totalJobCost).toBe(plain.totalJobCost);
  });

  test.each([
    [
      'ShopCandidate · validateOnly, orderNumber, orderComment, customerUserId, dateDue, mustDate, timeSensitive, description, deliveryAddress, promocode, items, orderGroup, orderGroupSequence, locationCodeOverride',
      { itemsTotal: 60 },
    ],
    [
      'CustomerShopCandidate · validateOnly, orderNumber, orderComment, customerUserId, dateDue, mustDate, timeSensitive, description, deliveryAddress, promocode, items, orderGroup, orderGroupSequence, locationCodeOverride',
      OF_A_CUSTOMERS_SHOP,
    ],
  ])('the fields of a plain order apply to a shop too: %s', async (_, more) => {
    const { us, acme } = await startService();
    const plain = {
      orderNumber: 'PO-77',
      orderComment: 'Ring the bell',
      customerUserId: acme.users[1]?.id,
      dateDue: '2026-12-04T11:30:00-05:00',
      mustDate: true,
      timeSensitive: true,
      description: 'Spring kit',
      deliveryAddress: { ...DENVER, deliveryMethod: 'EXPRESS' },
      promocode: 'TEAM15',
      items: [SPOT, RASH_VEST],
      orderGroup: 'CART-9',
      orderGroupSequence: 2,
      locationCodeOverride: 'CLT',
    };
    /** A job without the shape-specific fields. */
    const kept = async (body: Loose) => {
      const { jobNumber, lines, tags: _, shop: __, ...job } = getRecord(us, await create(us, body));
      return { ...job, lines: lines.map(({ jobLineId: _, image: __, assetSku: ___, ...line }) => line) };
    };
    const job = await kept(plain);
    expect(await kept({ ...plain, ...more })).toEqual(job);
    expect(job).toMatchObject({ orderNumber: 'PO-77', dateDue: '2026-12-04T11:30:00-05:00', mustDate: true });
    const dry = await us.post('/Jobs', { ...plain, ...more, validateOnly: true });
    expect([dry.status, acme.activeCount]).toEqual([200, 2]);
  });

  test.each([
    ['TaxLine · rate', { taxLines: [{ title: 'VAT', rate: '10%', price: 6 }] }, 'taxLines[0].rate'],
    [
      'Discount · isDiscountCode',
      { discounts: [{ target: {}, value: 5, targetValue: {} }] },
      'discounts[0].isDiscountCode',
    ],
    [
      'UserDetails · shopUserId',
      { userDetails: { shopUserId: 'x', bypassCustomerMatch: true } },
      'userDetails.shopUserId',
    ],
    ['CustomerShopCandidate · shopOrderId', { shopOrderId: 7 }, 'shopOrderId'],
  ])('%s: a wrong type is an error of its field', async (_, more, field) => {
    const { us } = await startService();
    const { status, json } = await us.post('/Jobs', shop(more));
    expect([status, Object.keys(json.errors)]).toEqual([400, [field]]);
  });

  test.each(['shopName', 'shopOrderName', 'shopOrderId'])(
    "searchText finds the shop's order name: %s",
    async (field) => {
      const { us } = await startService();
      await create(us, shop({ orderNumber: 'PO-5' }));
      const { jobNumber } = await create(us, shop({ orderNumber: 'PO-5', [field]: 'Zebra' }));
      const { items } = (await us.get('/Jobs/active?searchText=zeb')).json;
      expect(items.map((item: Loose) => item.jobNumber)).toEqual([jobNumber]);
    },
  );

  test('ShopCandidate · userDetails: UserDetails · shopUserId: creates a user once, and finds it again', async () => {
    const { us, acme } = await startService();
    const userDetails = { shopUserId: 4711, bypassCustomerMatch: true };
    const first = await create(us, shop({ userDetails }));
    const again = await create(us, shop({ userDetails }));
    const other = await create(us, shop({ userDetails: { ...userDetails, shopUserId: 4712 } }));
    expect(again.userId).toBe(first.userId);
    expect(other.userId).not.toBe(first.userId);
    expect(acme.users.slice(2).map(({ id }) => id)).toEqual([first.userId, other.userId]);
    expect(getRecord(us, first).userId).toBe(first.userId);
    await us.post('/Jobs', shop({ validateOnly: true, userDetails: { ...userDetails, shopUserId: 4713 } }));
    expect(acme.users).toHaveLength(4);
  });

  test('UserDetails · bypassCustomerMatch, email: the user with the address is matched unless that is bypassed', async () => {
    const { us, acme } = await startService();
    const known = acme.users[1];
    const userDetails = {
      shopUserId: 1,
      bypassCustomerMatch: false,
      email: known?.emailAddress.toUpperCase(),
    };
    expect((await create(us, shop({ userDetails }))).userId).toBe(known?.id);
    const bypassed = await create(us, shop({ userDetails: { ...userDetails, bypassCustomerMatch: true } }));
    expect(bypassed.userId).toBe(acme.users[2]?.id);
  });

  test('UserDetails · firstName, lastName, name, phone, userAddress: are stored in the created user', async () => {
    const { us, acme } = await startService();
    const base = {
      bypassCustomerMatch: true,
      phone: '55',
      email: 'a@b.example',
      userAddress: { city: 'Boulder' },
    };
    await create(us, shop({ userDetails: { ...base, shopUserId: 1, firstName: 'Ada', lastName: 'Byron' } }));
    await create(us, shop({ userDetails: { ...base, shopUserId: 2, name: 'Grace Brewster Hopper' } }));
    await create(us, shop({ userDetails: { shopUserId: 3, bypassCustomerMatch: true } }));
    const created = acme.users
      .slice(2)
      .map(({ firstName, lastName, mobile }) => [firstName, lastName, mobile]);
    expect(created).toEqual([
      ['Ada', 'Byron', '55'],
      ['Grace', 'Brewster Hopper', '55'],
      ['Robin', 'Buyer', null],
    ]);
  });
});

const priceAt = (bands: readonly PriceBand[], quantity: number): number => {
  const band = bands.find(({ from, to }) => from <= quantity && quantity <= (to ?? Number.POSITIVE_INFINITY));
  if (!band) throw new Error(`No band for ${quantity}`);
  return band.unitPrice;
};
const round = (amount: number): number => Number(amount.toFixed(2));

describe('order costs', () => {
  test.each([
    ['percent of the lines of its processes', 'FILM20', 0.2, [FILM]],
    ['a fixed sum', 'SHIPIT', 7.5, [FILM, SPOT]],
    ['per cent of all lines', 'TEAM15', 0.15, [FILM, SPOT]],
  ])('JobCandidate · promocode: discounts %s, and no setups', async (_, promocode, discount, counted) => {
    const { us } = await startService();
    const items = [FILM, SPOT];
    const full = await create(us, order({ items }));
    const less = await create(us, order({ items, promocode: promocode.toLowerCase() }));
    const { lines } = (await us.get(`/Jobs/${full.jobNumber}`)).json;
    const base = items.reduce(
      (sum, item, index) => (counted.includes(item) ? sum + lines[index].unitPrice * item.quantity : sum),
      0,
    );
    const expected = discount < 1 ? Math.round(base * discount * 100) / 100 : discount;
    expect(round(full.totalJobCost - less.totalJobCost)).toBe(expected);
  });

  test('JobCandidate · promocode: a fixed amount is at most the cost of the lines', async () => {
    const { us } = await startService();
    const item = { itemType: 'Stock', code: 'CO-TAPE-CLR', sizeQuantities: { Qty: 1 } };
    const { totalJobCost } = await create(us, order({ items: [item], promocode: 'SHIPIT' }));
    expect(totalJobCost).toBe(0);
  });

  test('JobCandidate · promocode: a code for some processes does not discount a line without a process', async () => {
    const { us, acme } = await startService();
    const { assetTag: code } = acme.assets.add({ priceCode: FILM.code, processCode: null });
    const reorder = { itemType: 'Asset', code, quantity: 50 };
    expect(await rejection(us, order({ items: [reorder], promocode: 'FILM20' }))).toEqual([
      'PromoCodeInvalid',
    ]);
    await create(us, order({ items: [reorder, FILM], promocode: 'FILM20' }));
    await create(us, order({ items: [reorder], promocode: 'TEAM15' }));
  });

  test('JobCandidate · promocode: a single-use code is rejected the second time', async () => {
    const { us } = await startService();
    await create(us, order({ promocode: 'WELCOME10' }));
    expect(await rejection(us, order({ promocode: 'WELCOME10' }))).toEqual(['PromoCodeInvalid']);
  });

  test.each<[RegionCode, 'T1' | 'T2' | 'T3']>([
    ['us', 'T2'],
    ['nz', 'T1'],
    ['uk', 'T3'],
    ['eu', 'T2'],
  ])(
    'the total in %s at %s is the sum of the lines by their bands, setups, resets and tax',
    async (region, priceTier) => {
      const { world, as } = await startService();
      const account = world.addAccount({ region, name: 'buyer', priceTier });
      const client = await as('user', account);
      const codes: PriceCode[] = (await client.get('/PriceCodes/price-codes?pageSize=200')).json;
      const stock: Loose[] = (await client.get('/Stock?pageSize=200&includePricing=true')).json;
      const assets: Loose[] = (
        await client.get('/Assets?pageSize=200&isArchived=false')
      ).json.entities.filter((asset: Loose) => asset.priceBands);
      const taxPercent = (await client.get('/account')).json.taxRate ?? 0;
      const deliveryAddress = { deliveryMethod: 'COLLECT' };

      /** A line of any kind, and its cost: unit price, quantity, and additional charges, in cents. */
      type Priced = { line: Loose; unit: bigint; units: bigint; once: bigint };
      const cents = (amount: number | null | undefined) => BigInt(Math.round((amount ?? 0) * 100));
      const wanted = fc.record({
        kind: fc.nat(2),
        pick: fc.nat(1000),
        quantity: fc.nat(1200),
        isSample: fc.boolean(),
      });
      const priced = ({
        kind,
        pick,
        quantity,
        isSample,
      }: {
        kind: number;
        pick: number;
        quantity: number;
        isSample: boolean;
      }): Priced => {
        const at = <T>(list: readonly T[]): T => {
          const found = list[pick % list.length];
          if (found === undefined) throw new Error('There is none');
          return found;
        };
        const least = (bands: readonly PriceBand[]) => Math.max(quantity, bands[0]?.from ?? 1);
        if (kind === 0) {
          const code = at(codes);
          const sample = isSample && code.sampleAvailable;
          const units = sample ? quantity + 1 : least(code.priceBands ?? []);
          const line = {
            itemType: 'PriceCode',
            code: code.priceCode,
            quantity: units,
            customerReference: 'any',
            isSample: sample,
            attributes: answersTo(code),
          };
          const unit = cents(sample ? code.samplePrice : priceAt(code.priceBands ?? [], units));
          return { line, unit, units: BigInt(units), once: sample ? 0n : cents(code.standardSetup) };
        }
        if (kind === 1) {
          const asset = at(assets);
          const units = least(asset.priceBands);
          const line = { itemType: 'Asset', code: asset.assetTag, quantity: units };
          return {
            line,
            unit: cents(priceAt(asset.priceBands, units)),
            units: BigInt(units),
            once: cents(asset.reset),
          };
        }
        const item = at(stock);
        const [variant] = item.stockVariants;
        const sizes: string[] = variant.sizesCsv.split(',');
        const units = least(item.priceBands);
        // All in one size, except one piece in the last.
        const sizeQuantities = {
          [sizes[0] ?? '']: units - 1,
          [sizes.at(-1) ?? '']: sizes.length > 1 ? 1 : units,
        };
        const line = {
          itemType: 'Stock',
          code: item.stockCode,
          variantCode: variant.variantCode,
          sizeQuantities,
        };
        return { line, unit: cents(priceAt(item.priceBands, units)), units: BigInt(units), once: 0n };
      };

      await fc.assert(
        fc.asyncProperty(fc.array(wanted, { minLength: 1, maxLength: 6 }), async (wishes) => {
          const lines = wishes.map(priced);
          let net = 0n;
          for (const { unit, units, once } of lines) {
            for (const part of [unit * units, once]) net += part;
          }
          // Half up, in thousandths of a per cent.
          const tax = (net * BigInt(Math.round(taxPercent * 1000)) + 50_000n) / 100_000n;
          const created = await create(client, { deliveryAddress, items: lines.map(({ line }) => line) });
          expect(cents(created.totalJobCost)).toBe(net + tax);
          const { json: job } = await client.get(`/Jobs/${created.jobNumber}`);
          expect(cents(job.taxTotal)).toBe(tax);
          expect(job.lines.map(({ quantity }: Loose) => BigInt(quantity))).toEqual(
            lines.map(({ units }) => units),
          );
          expect(job.lines.map(({ unitPrice }: Loose) => cents(unitPrice))).toEqual(
            lines.map(({ unit }) => unit),
          );
        }),
        runs(12, 25),
      );
    },
  );
});

/** Values for the required attributes of a price code. */
function answersTo({ attributes }: PriceCode): Loose {
  return Object.fromEntries(
    (attributes ?? [])
      .filter(({ required }) => required)
      .map(({ name, type, minValue, minLength = 1, enumerableValues }) => [
        name,
        type === 'select'
          ? enumerableValues?.at(-1)?.value
          : type === 'text'
            ? 'x'.repeat(minLength)
            : minValue,
      ]),
  );
}

test('validateOnly accepts exactly what creation accepts, answers the same, and creates nothing', async () => {
  const { us, acme } = await startService();
  const pool = <T>(...of: T[]) => fc.constantFrom(...of);
  const anyLine = fc.oneof(
    { weight: 3, arbitrary: pool<Loose>(FILM, SPOT, BADGE, CUSTOM, RASH_VEST, POLO) },
    { weight: 1, arbitrary: pool<Loose>(...REJECTED.flatMap(([, , body]) => (body as Loose).items ?? [])) },
  );
  const top = pool<Loose>(
    ...REJECTED.map(([, , { items: _, deliveryAddress: __, ...rest }]) => rest as Loose),
    {
      dateDue: null,
    },
  );
  const anyOrder = fc.record({
    items: fc.array(anyLine, { maxLength: 3 }),
    deliveryAddress: pool<Loose | null>(
      DENVER,
      DENVER,
      { deliveryMethod: 'COLLECT' },
      { ...DENVER, city: '' },
      null,
    ),
    more: fc.oneof(
      { weight: 3, arbitrary: pool<Loose>({}, { promocode: 'FIRST3' }) },
      { weight: 1, arbitrary: top },
    ),
  });
  const outcomes = new Set<number>();
  await fc.assert(
    fc.asyncProperty(anyOrder, async ({ more, ...rest }) => {
      const body = { ...rest, ...more };
      const before = acme.activeCount;
      const dry = await us.post('/Jobs', { ...body, validateOnly: true });
      expect(acme.activeCount).toBe(before);
      const real = await us.post('/Jobs', body);
      outcomes.add(real.status);
      expect(dry.status).toBe(real.status === 201 ? 200 : 400);
      expect(acme.activeCount).toBe(before + (real.status === 201 ? 1 : 0));
      if (real.status === 400) expect(real.json).toEqual(dry.json);
      else if (real.status !== 201) {
        expect(real.status).toBe(500);
        expect(getCodes(dry.json).every((code) => FAULTS.includes(code))).toBe(true);
      }
    }),
    runs(60, 150, 7),
  );
  expect(outcomes).toEqual(new Set([201, 400, 500]));
});
