/**
 * The account, its users, payments and shipment settings, row by row of the contract of the ordering API. One file: its tests
 * share the accounts of one service.
 */
import { describe, expect, test } from 'vitest';
import { addDemoAccounts } from '../../sandbox/simulation/scenario.ts';
import { addColleagues } from '../../sandbox/world/names.ts';
import type { PriceTier } from '../../sandbox/world/records.ts';
import type { RegionCode } from '../../sandbox/world/regions.ts';
import { createWorld, type SandboxAccount } from '../../sandbox/world/world.ts';
import type {
  AccountProfile,
  PaymentTransaction,
  ShipmentSettings,
  User,
  UserSummary,
} from '../../shared/ordering/contract/account.ts';
import { type Client, fetchToken, type Service, START, startService } from '../support/ordering-api.ts';

const DAY_MS = 86_400_000;
const QUARTER_HOUR_MS = 900_000;

interface List<T> {
  readonly entities: T[];
  readonly [field: string]: unknown;
}

const bad = (field: string) => ({
  status: 400,
  json: { status: 400, errors: { [field]: [expect.any(String)] } },
});

const gone = (instance: string) => ({ status: 404, json: { status: 404, instance: `/us/api${instance}` } });

/** Sends requests as an ordinary user of a new account. */
async function holder(
  service: Service,
  options: { region: RegionCode; id?: number; name?: string; priceTier?: PriceTier },
): Promise<Client> {
  return service.as('user', service.world.addAccount(options));
}

const getProfile = async (client: Client): Promise<AccountProfile> =>
  (await client.get<AccountProfile>('/account')).json;

const getCertificates = async (client: Client) => (await getProfile(client)).taxCertificates ?? [];

const getSettings = async (client: Client): Promise<ShipmentSettings> =>
  (await client.get<ShipmentSettings>('/account/shipment-settings')).json;

describe('GET /account', () => {
  test('GET /account 200: the account of the credentials', async () => {
    const service = await startService();
    const other = await holder(service, { region: 'us', name: 'other' });
    expect(await getProfile(service.us)).toMatchObject({ id: service.acme.id, name: 'acme' });
    expect(await getProfile(other)).toMatchObject({ id: other.account.id, name: 'other' });
  });

  test('GET /account 404: the account was deleted', async () => {
    const { us, acme } = await startService();
    acme.books.profile = null;
    expect(await us.get('/account')).toMatchObject(gone('/account'));
  });

  test('AccountProfile · id, name, priceTierCode, currency: identity and price tier', async () => {
    const service = await startService();
    expect(await getProfile(service.us)).toMatchObject({
      id: service.acme.id,
      name: 'acme',
      priceTierCode: 'T2',
      currency: 'USD',
    });
    const currencies = { us: 'USD', nz: 'NZD', au: 'AUD', uk: 'GBP', eu: 'EUR' } as const;
    for (const region of ['us', 'nz', 'au', 'uk', 'eu'] as const) {
      expect(await getProfile(await holder(service, { region, priceTier: 'T3' }))).toMatchObject({
        priceTierCode: 'T3',
        currency: currencies[region],
      });
    }
  });

  test('AccountProfile · taxRateType, taxRate: by region; null if it depends on the destination', async () => {
    const service = await startService();
    const taxes: [RegionCode, string, number | null][] = [
      ['us', 'Sales tax', null],
      ['nz', 'GST', 15],
      ['au', 'GST', 10],
      ['uk', 'VAT', 20],
      ['eu', 'VAT', 21],
    ];
    for (const [region, taxRateType, taxRate] of taxes) {
      expect(await getProfile(await holder(service, { region }))).toMatchObject({ taxRateType, taxRate });
    }
  });

  test('AccountProfile · taxSystemTaxExempt, taxSystemTaxExemptReason: while a certificate is checked and has not expired', async () => {
    const { us, acme, clock } = await startService();
    const exempt = { taxSystemTaxExempt: true, taxSystemTaxExemptReason: 'Resale' };
    const taxed = { taxSystemTaxExempt: false, taxSystemTaxExemptReason: null };
    expect(await getProfile(us)).toMatchObject(exempt);
    const [resale] = acme.books.certificates;
    if (!resale) throw new Error('There is no certificate.');
    resale.licenseExpiryDate = '2026-11-21';
    clock.now = Date.parse('2026-11-21T23:59:59Z');
    expect(await getProfile(us)).toMatchObject(exempt);
    clock.now += 1000;
    expect(await getProfile(us)).toMatchObject(taxed);
    Object.assign(resale, { licenseExpiryDate: null, checked: false });
    expect(await getProfile(us)).toMatchObject(taxed);
  });

  test('AccountProfile · showPayNow, creditCardRequired, paymentTermDays, paymentTermType, paymentMode: by invoice or by card', async () => {
    const service = await startService();
    expect(await getProfile(service.us)).toMatchObject({
      showPayNow: false,
      creditCardRequired: false,
      paymentTermDays: 20,
      paymentTermType: 'DaysAfterInvoice',
      paymentMode: 'Account',
    });
    expect(await getProfile(await holder(service, { region: 'us', id: 60_002 }))).toMatchObject({
      showPayNow: true,
      creditCardRequired: true,
      paymentTermDays: null,
      paymentTermType: null,
      paymentMode: 'Card',
    });
  });

  test('AccountProfile · shipmentCarriersCSV, excludeShipmentsCsv, courierAccountCode: match the shipment settings', async () => {
    const service = await startService();
    const fields = ({ shipmentCarriersCSV, excludeShipmentsCsv, courierAccountCode }: AccountProfile) => [
      shipmentCarriersCSV,
      excludeShipmentsCsv,
      courierAccountCode,
    ];
    expect(fields(await getProfile(service.us))).toEqual([null, null, null]);
    const special = await holder(service, { region: 'us', id: 60_002 });
    expect(fields(await getProfile(special))).toEqual(['PRAIRIE', 'EXPRESS', 'RP60002']);
    const { shipping } = special.account.books;
    Object.assign(shipping ?? {}, { carriers: ['PRAIRIE', 'COASTLINE'], excludedTypes: ['EXPRESS', '2DAY'] });
    expect(fields(await getProfile(special))).toEqual(['PRAIRIE,COASTLINE', 'EXPRESS,2DAY', 'RP60002']);
  });

  test('AccountProfile · courierSiteID, crmId, accountManagerName, accountManagerEmail, tierLast12Months: the account manager', async () => {
    const service = await startService();
    expect(await getProfile(service.us)).toMatchObject({
      courierSiteID: `DEN-${service.acme.id}`,
      crmId: `CRM-${service.acme.id * 7}`,
      accountManagerName: 'Sam Keeper',
      accountManagerEmail: 'sam.keeper@transfers.example',
      tierLast12Months: 'T2',
    });
    expect(await getProfile(await holder(service, { region: 'uk' }))).toMatchObject({
      accountManagerName: 'Pip Ashworth',
      accountManagerEmail: 'pip.ashworth@transfers.example',
    });
  });

  test('a profile contains its overrides', async () => {
    const { us, acme } = await startService();
    acme.books.profile = {
      taxRate: 8.25,
      accountManagerName: null,
      entityAddress: null,
      paymentMethods: null,
    };
    expect(await getProfile(us)).toMatchObject({
      id: acme.id,
      taxRate: 8.25,
      accountManagerName: null,
      entityAddress: null,
      paymentMethods: null,
    });
  });

  test('AccountProfile · entityAddress: null if there is none', async () => {
    const { us, acme } = await startService();
    expect((await getProfile(us)).entityAddress).not.toBeNull();
    acme.books.entityAddress = null;
    expect((await getProfile(us)).entityAddress).toBeNull();
  });

  test("EntityAddress · id, streetAddress, addressLine2, city, state, stateFull, postalCode, countryCode, countryName: the account's address", async () => {
    const service = await startService();
    const getAddress = async (region: RegionCode, id: number) =>
      (await getProfile(await holder(service, { region, id }))).entityAddress;
    expect(await getAddress('us', 60_003)).toMatchObject({
      id: 600_031,
      streetAddress: '18 Larimer Court',
      addressLine2: 'Suite 210',
      city: 'Denver',
      state: 'CO',
      stateFull: 'Colorado',
      postalCode: '80202',
      countryCode: 'US',
      countryName: 'United States',
    });
    // Countries without states have none here either.
    expect(await getAddress('eu', 60_002)).toMatchObject({
      addressLine2: null,
      state: null,
      stateFull: null,
      countryCode: 'FR',
      countryName: 'France',
    });
  });

  test('EntityAddress · contactName, organisation, phone, emailAddress, addressSummaryOneLine: the contact, and the address in one line', async () => {
    const service = await startService();
    const account = service.world.addAccount({
      region: 'us',
      id: 60_004,
      name: 'Copper & Pine',
      users: [{ firstName: 'Alex', lastName: 'Order' }],
    });
    expect((await getProfile(await service.as('user', account))).entityAddress).toMatchObject({
      contactName: 'Alex Order',
      organisation: 'Copper & Pine',
      phone: '+1 303 555 0104',
      emailAddress: 'accounts@copperpine.example',
      addressSummaryOneLine: '905 Mill Pond Road, Raleigh, NC 27601, United States',
    });
  });
});

describe('tax certificates', () => {
  test('AccountProfile · taxCertificates: valid, expired and without a file in the US, one in Europe, none elsewhere', async () => {
    const service = await startService();
    expect(await getCertificates(service.us)).toHaveLength(3);
    expect(await getCertificates(await holder(service, { region: 'eu' }))).toHaveLength(1);
    expect(await getCertificates(await holder(service, { region: 'nz' }))).toEqual([]);
  });

  test('TaxCertificate · id, customerId, name, businessName, exemptionNumber, employerIdentificationNumber, businessEntityId: the certificate and its owner', async () => {
    const { us, acme } = await startService();
    const certificates = await getCertificates(us);
    expect(new Set(certificates.map(({ id }) => id)).size).toBe(3);
    expect(certificates[0]).toMatchObject({
      id: acme.id * 10 + 1,
      customerId: acme.id,
      name: 'Resale certificate',
      businessName: 'acme',
      exemptionNumber: `EX-${acme.id}-1`,
      employerIdentificationNumber: `00-00${acme.id}`,
      businessEntityId: `BE-${acme.id}`,
    });
    expect(certificates[1]).toMatchObject({ employerIdentificationNumber: null });
  });

  test('TaxCertificate · licenseExpiryDate, exemptionType, exemptionState, createdAt, updatedAt: scope and expiry', async () => {
    const service = await startService();
    const [resale, former, school] = await getCertificates(service.us);
    const { state } = (await getProfile(service.us)).entityAddress ?? {};
    expect(resale).toMatchObject({
      licenseExpiryDate: null,
      exemptionType: 'Resale',
      exemptionState: state,
      createdAt: new Date(START - 380 * DAY_MS).toISOString(),
      updatedAt: new Date(START - 377 * DAY_MS).toISOString(),
    });
    expect(former?.licenseExpiryDate).toBe('2026-06-03');
    expect(school?.exemptionType).toBe('Education');
    const [vat] = await getCertificates(await holder(service, { region: 'eu' }));
    expect(vat).toMatchObject({ exemptionType: 'Reverse charge', exemptionState: null });
  });

  test('TaxCertificate · fileName, hasFile, entityFileId, fileStatus, fileStatusDescription: the state of its file', async () => {
    const { us, acme } = await startService();
    const [resale, , school] = await getCertificates(us);
    expect(resale).toMatchObject({
      fileName: `certificate-${acme.id}-1.pdf`,
      hasFile: true,
      entityFileId: acme.id * 100 + 1,
      fileStatusDescription: 'The file is stored.',
    });
    expect(school).toMatchObject({
      fileName: null,
      hasFile: false,
      entityFileId: 0,
      cdnUrl: null,
      fileStatusDescription: 'No file has been uploaded.',
    });
  });

  test('TaxFileStatus · code: Missing, Checking or Stored', async () => {
    const { us, acme } = await startService();
    const codes = async () => (await getCertificates(us)).map(({ fileStatus }) => fileStatus.code);
    expect(await codes()).toEqual(['Stored', 'Stored', 'Missing']);
    Object.assign(acme.books.certificates[2] ?? {}, { hasFile: true });
    expect(await codes()).toEqual(['Stored', 'Stored', 'Checking']);
    expect((await getCertificates(us))[2]?.cdnUrl).toBeNull();
  });

  test('TaxCertificate · cdnUrl: links to a PDF for 15 minutes, and to that one only', async () => {
    const { us, clock } = await startService();
    const [resale, former] = await getCertificates(us);
    const link = resale?.cdnUrl ?? '';
    clock.now += QUARTER_HOUR_MS - 1;
    const answer = await fetch(link);
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toBe('application/pdf');
    expect(await answer.text()).toMatch(/^%PDF-/);
    const stolen = link.replace(`${resale?.entityFileId}.pdf`, `${former?.entityFileId}.pdf`);
    expect((await fetch(stolen)).status).toBe(403);
    clock.now += 1;
    expect((await fetch(link)).status).toBe(410);
    expect((await fetch((await getCertificates(us))[0]?.cdnUrl ?? '')).status).toBe(200);
  });

  test('the link of a certificate without a file answers 404', async () => {
    const { us, acme } = await startService();
    const [resale] = await getCertificates(us);
    Object.assign(acme.books.certificates[0] ?? {}, { hasFile: false });
    expect((await fetch(resale?.cdnUrl ?? '')).status).toBe(404);
    acme.books.certificates.shift();
    expect((await fetch(resale?.cdnUrl ?? '')).status).toBe(404);
  });
});

describe('saved cards', () => {
  test('AccountProfile · paymentMethods: one of them is the default', async () => {
    const { us, acme } = await startService();
    const cards = (await getProfile(us)).paymentMethods ?? [];
    expect(cards).toHaveLength(2);
    expect(cards.filter(({ isDefault }) => isDefault)).toHaveLength(1);
    acme.books.cards = [];
    expect((await getProfile(us)).paymentMethods).toEqual([]);
  });

  test('PaymentMethod · id, gatewayProvider, cardName, cardNumber, cardExpiry, cardHolderName, dateCreatedUtc, isDefault: masked, with the month it expires', async () => {
    const { us } = await startService();
    const [card, old] = (await getProfile(us)).paymentMethods ?? [];
    expect(card).toMatchObject({
      id: expect.stringMatching(/^[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}$/),
      gatewayProvider: 'Paygrove',
      cardName: 'Visa',
      cardNumber: expect.stringMatching(/^\*{12}\d{4}$/),
      cardExpiry: expect.stringMatching(/^(?:0[1-9]|1[0-2])\/28$/),
      cardHolderName: 'Robin Buyer 1',
      dateCreatedUtc: new Date(START - 200 * DAY_MS).toISOString(),
      isDefault: true,
    });
    expect(old).toMatchObject({ cardExpiry: expect.stringMatching(/\/25$/), isDefault: false });
    expect(old?.id).not.toBe(card?.id);
  });
});

describe('GET /account/user', () => {
  const me = async (client: Client): Promise<User> => (await client.get<User>('/account/user')).json;

  test('GET /account/user 200: the user whom the credentials act as', async () => {
    const { acme, as, us } = await startService();
    expect((await me(us)).id).toBe(acme.users[0]?.id);
    acme.addCredentials({ role: 'viewer', userId: acme.users[1]?.id ?? 0 });
    expect((await me(await as('viewer'))).id).toBe(acme.users[1]?.id);
  });

  test('GET /account/user 404: the user was removed', async () => {
    const { acme, us } = await startService();
    acme.removeUser(acme.users[0]?.id ?? 0);
    expect(await us.get('/account/user')).toMatchObject(gone('/account/user'));
    expect(() => acme.removeUser(1)).toThrow('no user 1');
  });

  test('User · id, guid, customerId, customerName, userName, firstName, lastName, emailAddress, active, mobile: identity', async () => {
    const service = await startService();
    const account = service.world.addAccount({
      region: 'us',
      name: 'other',
      users: [
        {
          id: 912_345,
          userName: 'rosa.k',
          firstName: 'Rosa',
          lastName: 'Kaur',
          emailAddress: 'rosa@customer.example',
          mobile: '+12025550143',
          active: false,
        },
      ],
    });
    expect(await me(await service.as('user', account))).toMatchObject({
      id: 912_345,
      guid: '00000000-0000-4000-8000-000000912345',
      customerId: account.id,
      customerName: 'other',
      userName: 'rosa.k',
      firstName: 'Rosa',
      lastName: 'Kaur',
      emailAddress: 'rosa@customer.example',
      mobile: '+12025550143',
      active: false,
    });
    expect(await me(service.us)).toMatchObject({ active: true, mobile: null });
  });

  test("User · phone, streetAddress, addressLine2, suburb, city, state, postalCode, country: default: the account's address", async () => {
    const { us, acme } = await startService();
    const { entityAddress } = await getProfile(us);
    expect(await me(us)).toMatchObject({
      phone: expect.stringMatching(/^\+1 303 555 01\d\d$/),
      streetAddress: entityAddress?.streetAddress,
      addressLine2: entityAddress?.addressLine2,
      suburb: null,
      city: entityAddress?.city,
      state: entityAddress?.state,
      postalCode: entityAddress?.postalCode,
      country: entityAddress?.countryName,
    });
    const own = {
      ...{ phone: null, streetAddress: '1 Own Street', addressLine2: 'Flat 2', suburb: 'Eastside' },
      ...{ city: 'Boulder', state: 'CO', postalCode: '80301', country: 'United States' },
    };
    Object.assign(acme.users[0]?.profile ?? {}, own);
    expect(await me(us)).toMatchObject(own);
    acme.books.entityAddress = null;
    Object.assign(acme.users[0] ?? {}, { profile: {} });
    expect(await me(us)).toMatchObject({ streetAddress: null, city: null, country: null });
  });

  test('User · locationID, locationName, defaultPage, orderNumberPrefix: start page settings; a prefix has at most 5 characters', async () => {
    const service = await startService();
    const first = await me(service.us);
    expect(first).toMatchObject({ locationID: 101, locationName: 'Denver', defaultPage: 'jobs' });
    const { users } = service.acme;
    expect(users.map(({ id }) => id % 2)).toEqual([0, 1]);
    expect(first.orderNumberPrefix).toBe('BUY');
    service.acme.addCredentials({ role: 'staff', userId: users[1]?.id ?? 0 });
    expect((await me(await service.as('staff'))).orderNumberPrefix).toBeNull();
    Object.assign(users[0]?.profile ?? {}, {
      locationID: null,
      orderNumberPrefix: 'ABCDE',
      defaultPage: null,
    });
    expect(await me(service.us)).toMatchObject({
      locationID: null,
      orderNumberPrefix: 'ABCDE',
      defaultPage: null,
    });
    expect((await me(await holder(service, { region: 'au' }))).locationName).toBe('Brisbane');
  });

  test('User · receiveEmails, promotionRecipient, receiveInvoice, receiveInwards, textNotifyProof, textNotifyDispatch, usernameLoginOnly: notification settings', async () => {
    const { us, acme } = await startService();
    const [user] = acme.users;
    if (!user) throw new Error('There is no user.');
    expect(await me(us)).toMatchObject({
      receiveEmails: true,
      promotionRecipient: false,
      receiveInvoice: true,
      receiveInwards: false,
      textNotifyProof: false,
      textNotifyDispatch: false,
      usernameLoginOnly: false,
    });
    Object.assign(user, { receiveEmails: false, textNotifyDispatch: true, usernameLoginOnly: true });
    const changed = { promotionRecipient: true, receiveInvoice: false, receiveInwards: true };
    user.profile = { ...changed, textNotifyProof: true };
    expect(await me(us)).toMatchObject({
      ...changed,
      receiveEmails: false,
      textNotifyProof: true,
      textNotifyDispatch: true,
      usernameLoginOnly: true,
    });
  });

  test('User · lastLogin, loginCount: each issued token counts as a login', async () => {
    const { us, acme, clock, sandbox } = await startService();
    expect(await me(us)).toMatchObject({ lastLogin: '2026-11-20T16:14:00.000Z', loginCount: 1 });
    clock.now += 60_000;
    await fetchToken(sandbox, acme, acme.clientId, acme.clientSecret);
    expect(await me(us)).toMatchObject({ lastLogin: '2026-11-20T16:15:00.000Z', loginCount: 2 });
    expect(acme.users[1]).toMatchObject({ lastLogin: null, loginCount: 0 });
  });
});

describe('GET /account/users', () => {
  /** An account with several users, and an administrator's client. */
  async function staffed() {
    const service = await startService();
    const account = service.world.addAccount({
      region: 'us',
      name: 'staffed',
      users: [
        {
          ...{ firstName: 'Bea', lastName: 'Young', userName: 'zed', emailAddress: 'mm@customer.example' },
          ...{ lastLogin: START - 2 * DAY_MS, loginCount: 7 },
        },
        {
          ...{ firstName: 'adam', lastName: 'Žižek', userName: 'anna', emailAddress: 'aa@customer.example' },
          ...{ lastLogin: null, loginCount: 0 },
        },
        {
          ...{ firstName: 'Cleo', lastName: 'abbott', userName: 'mia', emailAddress: 'zz@other.example' },
          ...{ lastLogin: START - 9 * DAY_MS, loginCount: 30, active: false },
        },
        {
          ...{ firstName: 'Dan', lastName: 'Miller', userName: 'kim', emailAddress: 'bb@customer.example' },
          ...{ lastLogin: START - DAY_MS, loginCount: 2 },
        },
      ],
    });
    const clerk = account.addUser({ lastName: 'Clerk', active: false });
    account.addCredentials({ role: 'administrator', userId: clerk.id });
    const admin = await service.as('administrator', account);
    return { ...service, account, admin };
  }

  const page = async (client: Client, query = ''): Promise<List<UserSummary>> =>
    (await client.get<List<UserSummary>>(`/account/users${query}`)).json;

  const firstNames = async (client: Client, query = '') =>
    (await page(client, query)).entities.map(({ firstName }) => firstName);

  test('GET /account/users 200: accountUsers · includeInactive: the active users; inactive ones on request', async () => {
    const { admin } = await staffed();
    expect(await firstNames(admin)).toEqual(['Dan', 'Bea', 'adam']);
    expect(await firstNames(admin, '?includeInactive=false')).toHaveLength(3);
    const all = await page(admin, '?includeInactive=true');
    expect(all.entities.map(({ active }) => active)).toEqual([false, false, true, true, true]);
  });

  test('GET /account/users 400: an invalid parameter', async () => {
    const { admin } = await staffed();
    const cases: [query: string, field: string][] = [
      ['page=0', 'page'],
      ['pageSize=201', 'pageSize'],
      ['includeInactive=perhaps', 'includeInactive'],
      ['sortBy=Id', 'sortBy'],
      ['sortDirection=Ascending', 'sortDirection'],
    ];
    for (const [query, field] of cases) {
      expect(await admin.get(`/account/users?${query}`)).toMatchObject(bad(field));
    }
  });

  test('GET /account/users 403: everyone except administrators and staff', async () => {
    const { as, us } = await startService();
    expect((await us.get('/account/users')).status).toBe(403);
    expect((await (await as('viewer')).get('/account/users')).status).toBe(403);
    expect((await (await as('staff')).get('/account/users')).status).toBe(200);
  });

  test('accountUsers · page, pageSize: 50 per page by default', async () => {
    const { admin, account } = await staffed();
    expect(await firstNames(admin, '?page=2&pageSize=2')).toEqual(['adam']);
    expect(await firstNames(admin, '?page=3&pageSize=2')).toEqual([]);
    addColleagues(account, 70);
    expect((await page(admin)).entities).toHaveLength(50);
    expect((await admin.get('/account/users?pageSize=200')).status).toBe(200);
  });

  test('UsersPage · pageSize, returnedResults, totalResults, totalPages, currentPage, hasNext, hasPrevious, entities: describe the page', async () => {
    const { admin } = await staffed();
    expect(await page(admin, '?pageSize=2')).toMatchObject({
      pageSize: 2,
      returnedResults: 2,
      totalResults: 3,
      totalPages: 2,
      currentPage: 1,
      hasNext: true,
      hasPrevious: false,
      entities: [{ firstName: 'Dan' }, { firstName: 'Bea' }],
    });
    expect(await page(admin, '?pageSize=2&page=2')).toMatchObject({
      returnedResults: 1,
      currentPage: 2,
      hasNext: false,
      hasPrevious: true,
    });
  });

  test('UsersPage · filter, nextUrl, previousUrl: lead through all pages of the same search', async () => {
    const { admin } = await staffed();
    const query = '?includeInactive=true&sortBy=FirstName&textFilter=customer&pageSize=2';
    const { filter, nextUrl, previousUrl } = await page(admin, query);
    expect(filter).toBe('customer');
    expect(previousUrl).toBeNull();
    const headers = { authorization: `Bearer ${admin.token}` };
    const next = (await (await fetch(String(nextUrl), { headers })).json()) as List<UserSummary>;
    expect(next.entities.map(({ firstName }) => firstName)).toEqual(['Dan', 'Robin']);
    expect(next).toMatchObject({ filter: 'customer', nextUrl: null, previousUrl: expect.any(String) });
    const before = await (await fetch(String(next.previousUrl), { headers })).json();
    expect(before).toEqual(await page(admin, query));
    expect(await page(admin)).toMatchObject({ filter: null, nextUrl: null, previousUrl: null });
  });

  test('accountUsers · sortBy, sortDirection: six columns, case-insensitive; default: LastName, ASC', async () => {
    const { admin } = await staffed();
    const cases: [sortBy: string, firstNames: string[]][] = [
      ['LastName', ['Dan', 'Bea', 'adam']],
      ['FirstName', ['adam', 'Bea', 'Dan']],
      ['UserName', ['adam', 'Dan', 'Bea']],
      ['Email', ['adam', 'Dan', 'Bea']],
      // Users without a login sort lowest.
      ['LastLoginUtc', ['adam', 'Bea', 'Dan']],
      ['logincount', ['adam', 'Dan', 'Bea']],
    ];
    for (const [sortBy, sorted] of cases) {
      expect([sortBy, await firstNames(admin, `?sortBy=${sortBy}`)]).toEqual([sortBy, sorted]);
      expect(await firstNames(admin, `?sortBy=${sortBy}&sortDirection=DESC`)).toEqual(sorted.toReversed());
    }
    expect(await firstNames(admin, '?sortDirection=desc')).toEqual(['adam', 'Bea', 'Dan']);
    expect(await firstNames(admin, '?sortDirection=ASC')).toEqual(['Dan', 'Bea', 'adam']);
  });

  test('accountUsers · textFilter: any part of user name, names or e-mail, case-insensitive', async () => {
    const { admin } = await staffed();
    const cases: [filter: string, firstNames: string[]][] = [
      ['ZED', ['Bea']],
      ['ea', ['Bea']],
      ['mill', ['Dan']],
      ['dan%20mi', ['Dan']],
      ['AA@', ['adam']],
      ['%20zed%20', ['Bea']],
      ['cleo', []],
      ['nobody', []],
      ['', ['Dan', 'Bea', 'adam']],
    ];
    for (const [filter, found] of cases) {
      expect([filter, await firstNames(admin, `?textFilter=${filter}`)]).toEqual([filter, found]);
    }
  });

  test('UserSummary · id, guid, userName, firstName, lastName, emailAddress, active, locationName, usernameLoginOnly, lastLogin, loginCount: equal in list, single and complete user', async () => {
    const { admin, account, as } = await staffed();
    const [bea] = account.users;
    const [summary] = (await page(admin, '?textFilter=zed')).entities;
    expect(summary).toEqual({
      id: bea?.id,
      guid: expect.stringContaining(String(bea?.id)),
      userName: 'zed',
      firstName: 'Bea',
      lastName: 'Young',
      emailAddress: 'mm@customer.example',
      active: true,
      locationName: 'Denver',
      usernameLoginOnly: false,
      lastLogin: '2026-11-18T16:14:00.000Z',
      loginCount: 7,
    });
    expect((await admin.get(`/account/users/${bea?.id}`)).json).toEqual(summary);
    const { lastLogin, loginCount, ...rest } = summary ?? {};
    expect((await (await as('user', account)).get('/account/user')).json).toMatchObject(rest);
    Object.assign(bea ?? {}, { active: false, usernameLoginOnly: true, lastLogin: null });
    expect((await admin.get(`/account/users/${bea?.id}`)).json).toMatchObject({
      active: false,
      usernameLoginOnly: true,
      lastLogin: null,
    });
  });

  test('demo accounts have more than a page of users: active and inactive, some with a shared e-mail', () => {
    const [account] = addDemoAccounts(createWorld({ now: () => START }));
    const { users = [] } = account ?? {};
    expect(users.filter(({ active }) => active).length).toBeGreaterThan(50);
    expect(users.some(({ active }) => !active)).toBe(true);
    expect(users.some(({ loginCount, lastLogin }) => loginCount === 0 && lastLogin === null)).toBe(true);
    for (const field of ['id', 'userName'] as const) {
      expect(new Set(users.map((user) => user[field])).size).toBe(users.length);
    }
    const byMail = Map.groupBy(users, ({ emailAddress }) => emailAddress);
    for (const sharers of byMail.values()) {
      for (const { usernameLoginOnly } of sharers) expect(usernameLoginOnly).toBe(sharers.length > 1);
    }
    for (const { lastLogin } of users) expect(lastLogin ?? 0).toBeLessThanOrEqual(START);
  });

  test('a new user never gets the id of another one', () => {
    const world = createWorld({ now: () => START });
    const accounts = [1, 2].map(() => world.addAccount({ region: 'us', users: [{}, {}, {}] }));
    const [first] = accounts as [SandboxAccount, SandboxAccount];
    first.removeUser(first.users[0]?.id ?? 0);
    addColleagues(first, 150);
    const ids = accounts.flatMap(({ users }) => users.map(({ id }) => id));
    expect(new Set(ids).size).toBe(ids.length);
  });
});

describe('GET /account/users/{userId}', () => {
  test('GET /account/users/{userId} 200: userById · userId: any user of the account, including inactive ones', async () => {
    const { as, acme } = await startService();
    const admin = await as('administrator');
    const left = acme.addUser({ firstName: 'Gone', active: false });
    expect((await admin.get(`/account/users/${left.id}`)).json).toMatchObject({ id: left.id, active: false });
    expect((await admin.get(`/account/users/${acme.users[0]?.id}`)).json).toMatchObject({
      firstName: 'Robin',
    });
  });

  test('GET /account/users/{userId} 400: an id that is not an integer', async () => {
    const { as } = await startService();
    expect(await (await as('administrator')).get('/account/users/me')).toMatchObject(bad('userId'));
  });

  test('GET /account/users/{userId} 403: everyone except administrators and staff, whether or not the user exists', async () => {
    const { as, us, acme } = await startService();
    for (const id of [acme.users[0]?.id, 1]) {
      expect((await us.get(`/account/users/${id}`)).status).toBe(403);
      expect((await (await as('viewer')).get(`/account/users/${id}`)).status).toBe(403);
    }
    expect((await (await as('staff')).get(`/account/users/${acme.users[0]?.id}`)).status).toBe(200);
  });

  test('GET /account/users/{userId} 404: a user of another account answers like one that does not exist', async () => {
    const { as, world } = await startService();
    const admin = await as('administrator');
    const other = world.addAccount({ region: 'us' }).users[0]?.id;
    const [missing, strange] = [
      await admin.get('/account/users/1'),
      await admin.get(`/account/users/${other}`),
    ];
    expect(missing).toMatchObject(gone('/account/users/1'));
    expect(strange).toMatchObject(gone(`/account/users/${other}`));
    expect({ ...strange.json, instance: '' }).toEqual({ ...missing.json, instance: '' });
  });
});

describe('GET /account/transactions', () => {
  const page = async (client: Client, query = ''): Promise<List<PaymentTransaction>> =>
    (await client.get<List<PaymentTransaction>>(`/account/transactions${query}`)).json;

  const all = async (client: Client, query = '') => (await page(client, `?pageSize=200${query}`)).entities;

  test('GET /account/transactions 200: the payments of the account only', async () => {
    const service = await startService();
    const ids = (await all(service.us)).map(({ id }) => id);
    expect(ids).toHaveLength(46);
    expect(new Set(ids).size).toBe(46);
    const others = await all(await holder(service, { region: 'us' }));
    expect(others.filter(({ id }) => ids.includes(id))).toEqual([]);
    // The generated payments do not depend on the time of access.
    service.clock.now += 30 * DAY_MS;
    expect((await all(service.us)).map(({ id }) => id)).toEqual(ids);
    service.acme.books.transactions = [];
    expect(await page(service.us)).toMatchObject({ totalResults: 0, totalPages: 0, entities: [] });
  });

  test('GET /account/transactions 400: an invalid parameter', async () => {
    const { us } = await startService();
    const cases: [query: string, field: string][] = [
      ['page=-1', 'page'],
      ['pageSize=0', 'pageSize'],
      ['pageSize=201', 'pageSize'],
      ['sortBy=CardName', 'sortBy'],
      ['sortDirection=down', 'sortDirection'],
      ['completedOnly=all', 'completedOnly'],
    ];
    for (const [query, field] of cases) {
      expect(await us.get(`/account/transactions?${query}`)).toMatchObject(bad(field));
    }
  });

  test('transactions · page, pageSize: 20 per page by default', async () => {
    const { us } = await startService();
    const ids = (await all(us)).map(({ id }) => id);
    const pages = await Promise.all([1, 2, 3, 4].map((number) => page(us, `?page=${number}`)));
    expect(pages.map(({ entities }) => entities.length)).toEqual([20, 20, 6, 0]);
    expect(pages.flatMap(({ entities }) => entities.map(({ id }) => id))).toEqual(ids);
    expect((await page(us, '?page=3&pageSize=5')).entities.map(({ id }) => id)).toEqual(ids.slice(10, 15));
  });

  test('TransactionsPage · pageSize, returnedResults, totalResults, totalPages, currentPage, hasNext, hasPrevious, filter, nextUrl, previousUrl, entities: describe the page', async () => {
    const { us } = await startService();
    const { entities, nextUrl, previousUrl, ...counts } = await page(us, '?page=2&textFilter=paygrove');
    expect(counts).toEqual({
      pageSize: 20,
      returnedResults: 17,
      totalResults: 37,
      totalPages: 2,
      currentPage: 2,
      hasNext: false,
      hasPrevious: true,
      filter: 'paygrove',
    });
    expect(entities).toHaveLength(17);
    expect(nextUrl).toBeNull();
    const headers = { authorization: `Bearer ${us.token}` };
    const previous = (await (
      await fetch(String(previousUrl), { headers })
    ).json()) as List<PaymentTransaction>;
    expect(previous).toMatchObject({ currentPage: 1, hasNext: true, previousUrl: null, filter: 'paygrove' });
    expect(previous.entities).toEqual((await page(us, '?textFilter=paygrove')).entities);
    expect(await page(us)).toMatchObject({ filter: null });
  });

  test('transactions · sortBy, sortDirection: four columns, case-insensitive; default: Id, DESC', async () => {
    const { us } = await startService();
    const columns = [
      ['Id', ({ id }: PaymentTransaction) => id],
      ['CreatedAt', ({ createdAt }: PaymentTransaction) => Date.parse(createdAt)],
      // Uncompleted payments sort lowest.
      ['completedat', ({ completedAt }: PaymentTransaction) => Date.parse(completedAt ?? '1970-01-01')],
      ['AmountSettlement', ({ amountSettlement }: PaymentTransaction) => amountSettlement],
    ] as const;
    const orders = new Set<string>();
    for (const [column, keyOf] of columns) {
      const rising = (await all(us, `&sortBy=${column}&sortDirection=ASC`)).map(keyOf);
      expect([column, rising]).toEqual([column, rising.toSorted((a, b) => a - b)]);
      expect((await all(us, `&sortBy=${column}&sortDirection=desc`)).map(keyOf)).toEqual(rising.toReversed());
      const falling = await all(us, `&sortBy=${column}`);
      expect(falling.map(keyOf)).toEqual(rising.toReversed());
      orders.add(falling.map(({ id }) => id).join());
    }
    // Ids follow creation; the other two columns give different orders.
    expect(orders.size).toBe(3);
    const ids = (await all(us)).map(({ id }) => id);
    expect(ids).toEqual(ids.toSorted((a, b) => b - a));
  });

  test('transactions · completedOnly: excludes failed, cancelled and pending ones', async () => {
    const { us } = await startService();
    const statuses = async (query: string) =>
      new Set((await all(us, query)).map(({ transactionStatus }) => transactionStatus));
    const every = new Set(['Completed', 'Pending', 'Failed', 'Cancelled']);
    expect(await statuses('')).toEqual(every);
    expect(await statuses('&completedOnly=false')).toEqual(every);
    expect(await statuses('&completedOnly=true')).toEqual(new Set(['Completed']));
  });

  test('transactions · textFilter: any part of ids, gateway, status, card or merchant entity, case-insensitive', async () => {
    const { us } = await startService();
    const every = await all(us);
    const count = async (filter: string) => (await all(us, `&textFilter=${filter}`)).length;
    const [latest] = every;
    if (!latest) throw new Error('There are no payments.');
    expect((await all(us, `&textFilter=${latest.id}`)).map(({ id }) => id)).toEqual([latest.id]);
    expect(await count('CARDLINE')).toBe(
      every.filter(({ gatewayType }) => gatewayType === 'Cardline').length,
    );
    expect(await count('fail')).toBe(
      every.filter(({ transactionStatus }) => transactionStatus === 'Failed').length,
    );
    expect(await count('visa')).toBe(every.filter(({ cardName }) => cardName === 'Visa').length);
    const card = latest.cardNumber?.slice(-4) ?? '';
    expect(await count(`*${card}`)).toBe(every.filter(({ cardNumber }) => cardNumber?.endsWith(card)).length);
    expect(await count('customer')).toBe(
      every.filter(({ merchantEntityType }) => merchantEntityType === 'CUSTOMER').length,
    );
    const job = every.find(
      ({ merchantEntityType: type, merchantEntityId: id }) => type === 'JOB' && id !== null,
    );
    expect((await all(us, `&textFilter=${job?.merchantEntityId}`)).map(({ id }) => id)).toContain(job?.id);
    expect(await count('there is no such thing')).toBe(0);
    expect(await count('%20visa%20')).toBe(await count('visa'));
    expect(await count('')).toBe(every.length);
  });

  test('PaymentTransaction · id, gatewayType, transactionStatus, createdAt, completedAt: status and times', async () => {
    const { us, acme } = await startService();
    const payments = await all(us);
    expect(payments.at(-1)).toMatchObject({ id: acme.id * 1000 + 1, gatewayType: 'Paygrove' });
    for (const { transactionStatus, createdAt, completedAt } of payments) {
      expect(Date.parse(createdAt)).toBeLessThan(START);
      expect(completedAt !== null).toBe(transactionStatus === 'Completed');
      if (completedAt) expect(Date.parse(completedAt)).toBeGreaterThan(Date.parse(createdAt));
      if (completedAt) expect(Date.parse(completedAt)).toBeLessThan(START);
    }
  });

  test('PaymentTransaction · cardName, cardNumber, cardExpiry, currencySettlement, amountSettlement: card and amount', async () => {
    const service = await startService();
    const cards = (await getProfile(service.us)).paymentMethods ?? [];
    const known = cards.map(({ cardName, cardNumber, cardExpiry }) => ({ cardName, cardNumber, cardExpiry }));
    for (const { cardName, cardNumber, cardExpiry, ...payment } of await all(service.us)) {
      expect(known).toContainEqual({ cardName, cardNumber, cardExpiry });
      expect(payment.currencySettlement).toBe('USD');
      expect(payment.amountSettlement).toBeGreaterThan(0);
      expect(payment.amountSettlement).toBe(Number(payment.amountSettlement.toFixed(2)));
    }
    const [british] = await all(await holder(service, { region: 'uk' }));
    expect(british?.currencySettlement).toBe('GBP');
  });

  test('PaymentTransaction · merchantEntityType, merchantEntityId: for a job or on account; null if it failed', async () => {
    const { us, acme } = await startService();
    const payments = await all(us);
    expect(new Set(payments.map(({ merchantEntityType }) => merchantEntityType))).toEqual(
      new Set(['JOB', 'CUSTOMER']),
    );
    for (const { merchantEntityType, merchantEntityId, transactionStatus } of payments) {
      if (transactionStatus === 'Failed') expect(merchantEntityId).toBeNull();
      else if (merchantEntityType === 'CUSTOMER') expect(merchantEntityId).toBe(acme.id);
      else expect(merchantEntityId).toBeLessThan(410_001);
    }
  });
});

describe('GET /account/shipment-settings', () => {
  /** An account whose receivers pay. */
  async function special() {
    const service = await startService();
    return { ...service, special: await holder(service, { region: 'us', id: 60_002 }) };
  }

  test("GET /account/shipment-settings 200: the account's shipping settings", async () => {
    const { us } = await startService();
    expect((await us.get('/account/shipment-settings')).status).toBe(200);
  });

  test('GET /account/shipment-settings 404: the account has none', async () => {
    const { us, acme } = await startService();
    acme.books.shipping = null;
    expect(await us.get('/account/shipment-settings')).toMatchObject(gone('/account/shipment-settings'));
    expect(await getProfile(us)).toMatchObject({ shipmentCarriersCSV: null, courierAccountCode: null });
  });

  test('ShipmentSettings · availableCarriers, carrierOptions: names of the allowed ones, all if unrestricted', async () => {
    const { us, special: restricted } = await special();
    const names = ['Prairie Parcel', 'Coastline Ground'];
    expect(await getSettings(us)).toMatchObject({ availableCarriers: names, carrierOptions: [{}, {}] });
    expect(await getSettings(restricted)).toMatchObject({
      availableCarriers: ['Prairie Parcel'],
      carrierOptions: [{}, {}],
    });
  });

  test('CarrierOption · code, name: every carrier of the region', async () => {
    const service = await startService();
    expect((await getSettings(service.us)).carrierOptions).toEqual([
      { code: 'PRAIRIE', name: 'Prairie Parcel' },
      { code: 'COASTLINE', name: 'Coastline Ground' },
    ]);
    expect((await getSettings(await holder(service, { region: 'nz' }))).carrierOptions[0]).toEqual({
      code: 'TUI',
      name: 'Tūī Post',
    });
  });

  test('ShipmentSettings · receiverPays, handlingFee, applyHandlingFeeInsteadOfFreight: no fee, and the fee instead of freight, while receivers pay', async () => {
    const { us, special: paidFor } = await special();
    expect(await getSettings(us)).toMatchObject({
      receiverPays: null,
      handlingFee: 4.5,
      applyHandlingFeeInsteadOfFreight: false,
    });
    expect(await getSettings(paidFor)).toMatchObject({
      receiverPays: {},
      handlingFee: 0,
      applyHandlingFeeInsteadOfFreight: true,
    });
    const { shipping } = paidFor.account.books;
    if (shipping) shipping.receiverPays = null;
    expect(await getSettings(paidFor)).toMatchObject({
      handlingFee: 4.5,
      applyHandlingFeeInsteadOfFreight: false,
    });
    if (shipping) shipping.applyHandlingFeeInsteadOfFreight = true;
    expect(await getSettings(paidFor)).toMatchObject({
      handlingFee: 4.5,
      applyHandlingFeeInsteadOfFreight: true,
    });
  });

  test('ReceiverPays · billingAccountNumber, billingPostalCode, billingCountryCode: the billed receiver', async () => {
    const { special: paidFor } = await special();
    const { entityAddress } = await getProfile(paidFor);
    expect((await getSettings(paidFor)).receiverPays).toEqual({
      billingAccountNumber: 'RP60002',
      billingPostalCode: entityAddress?.postalCode,
      billingCountryCode: 'US',
    });
  });

  test('ShipmentSettings · showCustomerAddressOnLabel, jobComment: content of labels and jobs', async () => {
    const { us, special: other } = await special();
    expect(await getSettings(us)).toMatchObject({ showCustomerAddressOnLabel: false, jobComment: null });
    expect(await getSettings(other)).toMatchObject({
      showCustomerAddressOnLabel: true,
      jobComment: 'Leave at the dock, door 2.',
    });
  });

  test('ShipmentSettings · availableShipmentTypes, shipmentTypeOptions: codes of the allowed ones, empty if all are', async () => {
    const { us, special: restricted } = await special();
    expect((await getSettings(us)).availableShipmentTypes).toEqual([]);
    const { availableShipmentTypes, shipmentTypeOptions } = await getSettings(restricted);
    expect(availableShipmentTypes).toEqual(['GROUND', '2DAY']);
    expect(shipmentTypeOptions).toEqual((await getSettings(us)).shipmentTypeOptions);
  });

  test("ShipmentTypeOption · code, name: the region's delivery methods that ship", async () => {
    const { us } = await startService();
    expect((await getSettings(us)).shipmentTypeOptions).toEqual([
      { code: 'GROUND', name: 'Ground' },
      { code: '2DAY', name: 'Second day' },
      { code: 'EXPRESS', name: 'Overnight express' },
    ]);
  });

  test('ShipmentSettings · freightRates: one for each carrier and service', async () => {
    const { us } = await startService();
    const { freightRates } = await getSettings(us);
    expect(freightRates.map(({ carrier, service }) => `${carrier} ${service}`)).toEqual([
      ...['PRAIRIE GROUND', 'PRAIRIE 2DAY', 'PRAIRIE EXPRESS'],
      ...['COASTLINE GROUND', 'COASTLINE 2DAY', 'COASTLINE EXPRESS'],
    ]);
  });

  test('FreightRate · carrier, carrierName, service, serviceName, package, packageName, chargeType, value, minimum, isDefault: inherited, or of the account', async () => {
    const { us, special: own } = await special();
    const inherited = (await getSettings(us)).freightRates;
    expect(inherited.slice(0, 2)).toEqual([
      {
        carrier: 'PRAIRIE',
        carrierName: 'Prairie Parcel',
        service: 'GROUND',
        serviceName: 'Ground',
        package: 'SATCHEL',
        packageName: 'Satchel',
        chargeType: 'Flat',
        value: 6.5,
        minimum: null,
        isDefault: true,
      },
      {
        carrier: 'PRAIRIE',
        carrierName: 'Prairie Parcel',
        service: '2DAY',
        serviceName: 'Second day',
        package: 'BOX',
        packageName: 'Box',
        chargeType: 'PerWeight',
        value: 10.75,
        minimum: 9,
        isDefault: true,
      },
    ]);
    const [first, ...rest] = (await getSettings(own)).freightRates;
    expect(first).toMatchObject({ chargeType: 'Percent', value: 12.5, minimum: 5, isDefault: false });
    expect(rest).toEqual(inherited.slice(1));
  });
});
