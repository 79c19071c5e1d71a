// The account that credentials belong to: its profile, users, payments and how it ships.

import * as z from 'zod';
import {
  AccountProfile,
  ShipmentSettings,
  TransactionsPage,
  User,
  UserSummary,
  UsersPage,
} from '../../shared/ordering/contract/account.ts';
import { Problem } from '../../shared/ordering/contract/common.ts';
import { operation } from '../http/operation.ts';
import { cutPage, inOrder } from '../http/paging.ts';
import { flag, integer, oneOf, pageParameters } from '../http/parameters.ts';
import { json, jsonOr404 } from '../http/responses.ts';
import { type CertificateRecord, carriersOf, guidOf, phoneOf, shipmentTypesOf } from '../world/ledgers.ts';
import { certificateLink } from '../world/links.ts';
import type { SandboxUser } from '../world/records.ts';
import { CURRENCIES, LOCATIONS, type RegionCode } from '../world/regions.ts';
import type { SandboxAccount } from '../world/world.ts';

/*
 * Where the contract is silent, the sandbox chose:
 *
 * - Each token that is granted counts as a login of the user whom the credentials act as: `lastLogin` is when, `loginCount` how
 *   often. Users who never logged in sort lowest.
 * - `sortBy` and `sortDirection` take their names in any case, and nothing else (400). What is equal stands by id. `textFilter`
 *   is compared, whatever its case, with any part; blanks around it don't count; it is echoed as it came. Of users it looks
 *   into user name, first, last and both names, e-mail; of transactions into ids, gateway, status, card and merchant entity.
 *   `pageSize` is at most 200.
 * - `GET /account/users/{userId}` finds inactive users too. An id that is no integer is 400.
 * - `completedOnly` means the status Completed; others have no `completedAt`.
 * - Amounts of taxes: US accounts have no `taxRate`, since it depends on where goods go; they are exempt (Resale) while a
 *   certificate of theirs is checked and has not expired. GST is 15 % in NZ and 10 % in AU, VAT 20 % in GB and 21 % in the EU.
 * - A certificate's file is Missing, Checking or Stored (`fileStatus.code`); only a stored one has a `cdnUrl`, which lives for a
 *   quarter of an hour. `licenseExpiryDate` is a day; it counts to its end in UTC.
 * - `receiverPays` is null when it is not enabled. Items of `carrierOptions` have code and name and are all carriers of the
 *   region; `availableCarriers` are the names of those that may be used. `shipmentTypeOptions` are the region's delivery
 *   methods that ship; `availableShipmentTypes` is empty unless some of them may not be used. `chargeType` is Flat, PerWeight or
 *   Percent.
 * - An account with a `paymentMode` of Card pays at once (`showPayNow`, `creditCardRequired`, no terms); one of Account by
 *   invoice. `shipmentCarriersCSV` are codes of carriers, null when unrestricted; `excludeShipmentsCsv` codes of types.
 * - A user whose own address is not known has the account's. Texts that do not apply are null.
 */

const NO_SUCH_ACCOUNT = { description: 'There is no such account.', schema: Problem };

export const accountOperations = [
  operation({
    name: 'account',
    method: 'get',
    path: '/account',
    tag: 'Account',
    summary: 'The account of the credentials.',
    answers: { 200: { description: 'The account.', schema: AccountProfile }, 404: NO_SUCH_ACCOUNT },
    handle: ({ account, instance, now }) =>
      jsonOr404(accountProfile(account, now), 'There is no such account.', instance),
  }),
  operation({
    name: 'accountUser',
    method: 'get',
    path: '/account/user',
    tag: 'Account',
    summary: 'The calling user.',
    answers: {
      200: { description: 'The user in full.', schema: User },
      404: { description: 'There is no such user.', schema: Problem },
    },
    handle: ({ account, user, instance }) =>
      jsonOr404(user && userProfile(account, user), 'There is no such user.', instance),
  }),
  operation({
    name: 'accountUsers',
    method: 'get',
    path: '/account/users',
    tag: 'Account',
    summary: "The account's users.",
    query: z.object({
      includeInactive: flag.default(false),
      ...pageParameters(50, 200),
      sortBy: oneOf(['LastName', 'FirstName', 'UserName', 'Email', 'LastLoginUtc', 'LoginCount']).optional(),
      sortDirection: oneOf(['ASC', 'DESC']).optional(),
      textFilter: z.string().optional(),
    }),
    needs: 'administrator',
    answers: { 200: { description: 'A page of users.', schema: UsersPage } },
    handle: ({ account, query, url }) => {
      const { textFilter, sortBy = 'LastName' } = query;
      const users = account.users
        .map((user) => ({ user, shown: userProfile(account, user) }))
        .filter(({ user }) => query.includeInactive || user.active)
        .filter(({ shown: { userName, firstName, lastName, emailAddress } }) =>
          matches(textFilter, [userName, firstName, lastName, `${firstName} ${lastName}`, emailAddress]),
        );
      const sorted = inOrder(
        inOrder(users, ({ user }) => user.id),
        ({ user, shown }) => {
          switch (sortBy) {
            case 'LastName':
              return shown.lastName;
            case 'FirstName':
              return shown.firstName;
            case 'UserName':
              return shown.userName;
            case 'Email':
              return shown.emailAddress;
            case 'LastLoginUtc':
              return user.lastLogin;
            case 'LoginCount':
              return shown.loginCount;
          }
        },
        directionOf(query.sortDirection ?? 'ASC'),
      );
      const page = cutPage(sorted, { ...query, filter: textFilter, url });
      return json({ ...page, entities: page.entities.map(({ shown }) => userSummary(shown)) });
    },
  }),
  operation({
    name: 'userById',
    method: 'get',
    path: '/account/users/{userId}',
    tag: 'Account',
    summary: "One of the account's users.",
    params: z.object({ userId: integer }),
    needs: 'administrator',
    answers: {
      200: { description: 'The user in short.', schema: UserSummary },
      404: { description: 'The account has no such user.', schema: Problem },
    },
    handle: ({ account, params, instance }) => {
      const user = account.users.find(({ id }) => id === params.userId);
      // Another account's user answers exactly like one that does not exist.
      return jsonOr404(user && userSummary(userProfile(account, user)), 'There is no such user.', instance);
    },
  }),
  operation({
    name: 'transactions',
    method: 'get',
    path: '/account/transactions',
    tag: 'Account',
    summary: "The account's payments.",
    query: z.object({
      ...pageParameters(20, 200),
      sortBy: oneOf(['Id', 'CreatedAt', 'CompletedAt', 'AmountSettlement']).optional(),
      sortDirection: oneOf(['DESC', 'ASC']).optional(),
      completedOnly: flag.default(false),
      textFilter: z.string().optional(),
    }),
    answers: { 200: { description: 'A page of payments.', schema: TransactionsPage } },
    handle: ({ account, query, url }) => {
      const { textFilter, sortBy = 'Id' } = query;
      const payments = account.books.transactions
        .filter(({ transactionStatus }) => !query.completedOnly || transactionStatus === 'Completed')
        .filter((payment) =>
          matches(textFilter, [
            String(payment.id),
            payment.gatewayType,
            payment.transactionStatus,
            payment.cardName,
            payment.cardNumber,
            payment.merchantEntityType,
            payment.merchantEntityId === null ? null : String(payment.merchantEntityId),
          ]),
        );
      const sorted = inOrder(
        inOrder(payments, ({ id }) => id),
        (payment) => {
          switch (sortBy) {
            case 'Id':
              return payment.id;
            case 'CreatedAt':
              return Date.parse(payment.createdAt);
            case 'CompletedAt':
              return payment.completedAt === null ? null : Date.parse(payment.completedAt);
            case 'AmountSettlement':
              return payment.amountSettlement;
          }
        },
        directionOf(query.sortDirection ?? 'DESC'),
      );
      return json(cutPage(sorted, { ...query, filter: textFilter, url }));
    },
  }),
  operation({
    name: 'shipmentSettings',
    method: 'get',
    path: '/account/shipment-settings',
    tag: 'Account',
    summary: "How the account's parcels ship.",
    answers: {
      200: { description: 'The settings.', schema: ShipmentSettings },
      404: { description: 'The account has none.', schema: Problem },
    },
    handle: ({ account, instance }) =>
      jsonOr404(shipmentSettings(account), 'There are no shipment settings.', instance),
  }),
];

/** What is owed on top of prices, in percent; null where it depends on where goods go. */
const TAXES: Record<RegionCode, { type: string; rate: number | null }> = {
  us: { type: 'Sales tax', rate: null },
  nz: { type: 'GST', rate: 15 },
  au: { type: 'GST', rate: 10 },
  uk: { type: 'VAT', rate: 20 },
  eu: { type: 'VAT', rate: 21 },
};

/** Per cent that are owed on top of what an order costs; 0 where nobody knows yet. */
export function taxRateOf(region: RegionCode): number {
  return TAXES[region].rate ?? 0;
}

/** Tax in cents of so many cents, at a rate in per cent, rounded once. */
export function taxOn(cents: number, rate: number): number {
  // A rate has three decimals at most; a binary fraction of it would round some halves down.
  return Math.round((cents * Math.round(rate * 1000)) / 100_000);
}

/** Who looks after the accounts of a region. */
const MANAGERS: Record<RegionCode, string> = {
  us: 'Sam Keeper',
  nz: 'Mere Tolland',
  au: 'Jody Banks',
  uk: 'Pip Ashworth',
  eu: 'Lotte Visser',
};

/** The account profile as `GET /account` shows it; undefined when the account is gone. */
function accountProfile(account: SandboxAccount, now: number): AccountProfile | undefined {
  const { id, region, books } = account;
  if (books.profile === null) return undefined;
  const { shipping } = books;
  const isExempt = region === 'us' && books.certificates.some((certificate) => isGood(certificate, now));
  const manager = MANAGERS[region];
  const paysByCard = id % 2 === 0;
  return {
    id,
    name: account.name,
    priceTierCode: account.priceTier,
    currency: CURRENCIES[region],
    taxRateType: TAXES[region].type,
    taxRate: TAXES[region].rate,
    taxSystemTaxExempt: isExempt,
    taxSystemTaxExemptReason: isExempt ? 'Resale' : null,
    showPayNow: paysByCard,
    creditCardRequired: paysByCard,
    shipmentCarriersCSV: csv(shipping?.carriers),
    excludeShipmentsCsv: csv(shipping?.excludedTypes),
    courierAccountCode: shipping?.receiverPays?.billingAccountNumber ?? null,
    courierSiteID: `${LOCATIONS[region][0].code}-${id}`,
    crmId: `CRM-${id * 7}`,
    accountManagerName: manager,
    accountManagerEmail: `${manager.toLowerCase().replace(' ', '.')}@transfers.example`,
    tierLast12Months: account.priceTier,
    paymentTermDays: paysByCard ? null : 20,
    paymentTermType: paysByCard ? null : 'DaysAfterInvoice',
    entityAddress: books.entityAddress,
    taxCertificates: books.certificates.map((certificate) => shownCertificate(account, certificate, now)),
    paymentMode: paysByCard ? 'Card' : 'Account',
    paymentMethods: books.cards,
    ...books.profile,
  };
}

const csv = (codes: readonly string[] = []): string | null => (codes.length > 0 ? codes.join(',') : null);

/** Whether a certificate exempts now. */
function isGood({ hasFile, checked, licenseExpiryDate }: CertificateRecord, now: number): boolean {
  const today = new Date(now).toISOString().slice(0, 10);
  return hasFile && checked && (licenseExpiryDate === null || licenseExpiryDate >= today);
}

function shownCertificate(account: SandboxAccount, certificate: CertificateRecord, now: number) {
  const { checked, ...shown } = certificate;
  const code = !certificate.hasFile ? 'Missing' : checked ? 'Stored' : 'Checking';
  return {
    ...shown,
    customerId: account.id,
    cdnUrl: code === 'Stored' ? certificateLink(account, certificate, now) : null,
    fileStatus: { code } as const,
    fileStatusDescription: {
      Missing: 'No file has been uploaded.',
      Checking: 'The file is being checked.',
      Stored: 'The file is stored.',
    }[code],
  };
}

/** A user in full, as `GET /account/user` shows the calling one. */
function userProfile(account: SandboxAccount, user: SandboxUser): User {
  const { entityAddress } = account.books;
  const [home] = LOCATIONS[account.region];
  return {
    id: user.id,
    guid: guidOf(0, user.id),
    customerId: account.id,
    customerName: account.name,
    userName: user.userName,
    firstName: user.firstName,
    lastName: user.lastName,
    emailAddress: user.emailAddress,
    active: user.active,
    phone: phoneOf(account.region, user.id),
    mobile: user.mobile,
    streetAddress: entityAddress?.streetAddress ?? null,
    addressLine2: entityAddress?.addressLine2 ?? null,
    suburb: null,
    city: entityAddress?.city ?? null,
    state: entityAddress?.state ?? null,
    postalCode: entityAddress?.postalCode ?? null,
    country: entityAddress?.countryName ?? null,
    locationID: 101,
    locationName: home.name,
    defaultPage: 'jobs',
    orderNumberPrefix: user.id % 2 === 0 ? user.lastName.slice(0, 3).toUpperCase() : null,
    receiveEmails: user.receiveEmails,
    promotionRecipient: false,
    receiveInvoice: true,
    receiveInwards: false,
    textNotifyProof: false,
    textNotifyDispatch: user.textNotifyDispatch,
    usernameLoginOnly: user.usernameLoginOnly,
    lastLogin: user.lastLogin === null ? null : new Date(user.lastLogin).toISOString(),
    loginCount: user.loginCount,
    ...user.profile,
  };
}

function userSummary(user: User): UserSummary {
  const { id, guid, userName, firstName, lastName, emailAddress, active, locationName } = user;
  const { usernameLoginOnly, lastLogin, loginCount } = user;
  return {
    ...{ id, guid, userName, firstName, lastName, emailAddress, active, locationName },
    ...{ usernameLoginOnly, lastLogin, loginCount },
  };
}

/** The settings as the API shows them; undefined when there are none. */
function shipmentSettings({ region, books: { shipping } }: SandboxAccount): ShipmentSettings | undefined {
  if (!shipping) return undefined;
  const { carriers, excludedTypes, receiverPays } = shipping;
  const carrierOptions = carriersOf(region);
  const shipmentTypeOptions = shipmentTypesOf(region);
  const allowed = shipmentTypeOptions.filter(({ code }) => !excludedTypes.includes(code));
  return {
    availableCarriers: carrierOptions
      .filter(({ code }) => carriers.length === 0 || carriers.includes(code))
      .map(({ name }) => name),
    carrierOptions,
    receiverPays,
    showCustomerAddressOnLabel: shipping.showCustomerAddressOnLabel,
    handlingFee: receiverPays ? 0 : shipping.handlingFee,
    applyHandlingFeeInsteadOfFreight: receiverPays !== null || shipping.applyHandlingFeeInsteadOfFreight,
    jobComment: shipping.jobComment,
    availableShipmentTypes:
      allowed.length === shipmentTypeOptions.length ? [] : allowed.map(({ code }) => code),
    shipmentTypeOptions,
    freightRates: shipping.freightRates,
  };
}

const directionOf = (said: 'ASC' | 'DESC' | undefined) => (said === 'DESC' ? 'descending' : 'ascending');

/** Whether one of some texts has a filter in it; an empty one is in all. */
function matches(filter: string | undefined, texts: readonly (string | null)[]): boolean {
  const wanted = filter?.trim().toLowerCase() ?? '';
  return wanted === '' || texts.some((text) => text?.toLowerCase().includes(wanted));
}
