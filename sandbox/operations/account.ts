// The account of the credentials: its profile, users, payments and shipping settings.

import * as z from 'zod';
import {
  AccountProfile,
  type PaymentTransaction,
  ShipmentSettings,
  TransactionsPage,
  User,
  UserSummary,
  UsersPage,
} from '../../shared/ordering/contract/account.ts';
import { createOperationFactory } from '../http/operation.ts';
import { cutPage, matchesFilter, sortEntries } from '../http/paging.ts';
import { enumParameter, flag, integer, pageParameters } from '../http/parameters.ts';
import { json, jsonOr404 } from '../http/responses.ts';
import {
  type CertificateRecord,
  generateGuid,
  generatePhone,
  listCarriers,
  listShipmentTypes,
} from '../world/ledgers.ts';
import { certificateLink } from '../world/links.ts';
import { paymentAt } from '../world/payments.ts';
import type { SandboxUser } from '../world/records.ts';
import { REGION_FACTS, type RegionCode } from '../world/regions.ts';
import { selectFields } from '../world/views.ts';
import type { SandboxAccount } from '../world/world.ts';

/*
 * Where the contract is silent, the sandbox chose:
 *
 * - Each issued token counts as a login of its user (`lastLogin`, `loginCount`).
 * - Users and transactions with equal values are sorted by id.
 * - `textFilter` is compared with the names and the e-mail address of users, and with the ids, gateway, status, card
 *   and merchant entity of transactions.
 * - `GET /account/users/{userId}` also finds inactive users.
 * - `completedOnly` selects transactions with the status Completed. Only these have a `completedAt`.
 * - US accounts have no `taxRate`. They are exempt (Resale) if one of their certificates is checked and valid. The tax
 *   rates are 15 % in NZ, 10 % in AU, 20 % in GB and 21 % in the EU.
 * - The file of a certificate is Missing, Checking or Stored (`fileStatus.code`). Only a stored file has a `cdnUrl`,
 *   which expires after 15 minutes. A certificate is valid until the end of `licenseExpiryDate` in UTC.
 * - An account with the `paymentMode` Card pays when it orders. `showPayNow` and `creditCardRequired` are true, and it
 *   has no payment terms.
 */

const NO_SUCH_ACCOUNT = { description: 'The account does not exist.' };

const USER_COLUMNS = {
  LastName: (user) => user.lastName,
  FirstName: (user) => user.firstName,
  UserName: (user) => user.userName,
  Email: (user) => user.emailAddress,
  LastLoginUtc: (user) => user.lastLogin,
  LoginCount: (user) => user.loginCount,
} satisfies Record<string, (user: User) => string | number | null>;

const PAYMENT_COLUMNS = {
  Id: (payment) => payment.id,
  CreatedAt: (payment) => Date.parse(payment.createdAt),
  CompletedAt: (payment) => (payment.completedAt === null ? null : Date.parse(payment.completedAt)),
  AmountSettlement: (payment) => payment.amountSettlement,
} satisfies Record<string, (payment: PaymentTransaction) => string | number | null>;

const operation = createOperationFactory('Account');

export const accountOperations = [
  operation({
    name: 'account',
    path: '/account',
    summary: 'The account of the credentials.',
    answers: { 200: { description: 'The account.', schema: AccountProfile }, 404: NO_SUCH_ACCOUNT },
    handle: ({ account, instance, now }) =>
      jsonOr404(accountProfile(account, now), 'The account does not exist.', instance),
  }),
  operation({
    name: 'accountUser',
    path: '/account/user',
    summary: 'The calling user.',
    answers: {
      200: { description: 'The user, with all fields.', schema: User },
      404: { description: 'The user does not exist.' },
    },
    handle: ({ account, user, instance }) =>
      jsonOr404(user && userProfile(account, user), 'The user does not exist.', instance),
  }),
  operation({
    name: 'accountUsers',
    path: '/account/users',
    summary: "The account's users.",
    query: z.object({
      includeInactive: flag.default(false),
      ...pageParameters(50, 200),
      sortBy: enumParameter(Object.keys(USER_COLUMNS) as (keyof typeof USER_COLUMNS)[]).default('LastName'),
      sortDirection: enumParameter(['ASC', 'DESC']).optional(),
      textFilter: z.string().optional(),
    }),
    needs: 'administrator',
    answers: { 200: { description: 'A page of users.', schema: UsersPage } },
    handle: ({ account, query, url }) => {
      const { textFilter } = query;
      const users = account.users
        .filter(({ active }) => query.includeInactive || active)
        .map((user) => userProfile(account, user))
        .filter(({ userName, firstName, lastName, emailAddress }) =>
          matchesFilter(textFilter, [
            ...[userName, firstName, lastName, `${firstName} ${lastName}`, emailAddress],
          ]),
        );
      const sorted = sortEntries(
        sortEntries(users, ({ id }) => id),
        USER_COLUMNS[query.sortBy],
        toDirection(query.sortDirection ?? 'ASC'),
      );
      const page = cutPage(sorted, { ...query, filter: textFilter, url });
      return json({ ...page, entities: page.entities.map((user) => selectFields(UserSummary, user)) });
    },
  }),
  operation({
    name: 'userById',
    path: '/account/users/{userId}',
    summary: "One of the account's users.",
    params: z.object({ userId: integer }),
    needs: 'administrator',
    answers: {
      200: { description: 'The user, with the most important fields.', schema: UserSummary },
      404: { description: 'The account has no such user.' },
    },
    handle: ({ account, params, instance }) => {
      const user = account.users.find(({ id }) => id === params.userId);
      // Users of other accounts answer exactly like unknown ones.
      const found = user && selectFields(UserSummary, userProfile(account, user));
      return jsonOr404(found, 'The user does not exist.', instance);
    },
  }),
  operation({
    name: 'transactions',
    path: '/account/transactions',
    summary: "The account's payments.",
    query: z.object({
      ...pageParameters(20, 200),
      sortBy: enumParameter(Object.keys(PAYMENT_COLUMNS) as (keyof typeof PAYMENT_COLUMNS)[]).default('Id'),
      sortDirection: enumParameter(['DESC', 'ASC']).optional(),
      completedOnly: flag.default(false),
      textFilter: z.string().optional(),
    }),
    answers: { 200: { description: 'A page of payments.', schema: TransactionsPage } },
    handle: ({ service, account, query, url, now }) => {
      const { textFilter } = query;
      const at = service.freedom.lagMs('transactions') > 0 ? now : undefined;
      const payments = account.books.transactions
        .flatMap((payment) => paymentAt(payment, at))
        .filter(({ transactionStatus }) => !query.completedOnly || transactionStatus === 'Completed')
        .filter((payment) =>
          matchesFilter(textFilter, [
            String(payment.id),
            payment.gatewayType,
            payment.transactionStatus,
            payment.cardName,
            payment.cardNumber,
            payment.merchantEntityType,
            payment.merchantEntityId === null ? null : String(payment.merchantEntityId),
          ]),
        );
      const sorted = sortEntries(
        sortEntries(payments, ({ id }) => id),
        PAYMENT_COLUMNS[query.sortBy],
        toDirection(query.sortDirection ?? 'DESC'),
      );
      return json(cutPage(sorted, { ...query, filter: textFilter, url }));
    },
  }),
  operation({
    name: 'shipmentSettings',
    path: '/account/shipment-settings',
    summary: 'Shipping settings of the account.',
    answers: {
      200: { description: 'The settings.', schema: ShipmentSettings },
      404: { description: 'The account has no shipping settings.' },
    },
    handle: ({ account, instance }) =>
      jsonOr404(shipmentSettings(account), 'The account has no shipment settings.', instance),
  }),
];

/** Tax rate for an order, in percent; 0 if it is not known yet. */
export function taxRate(region: RegionCode): number {
  return REGION_FACTS[region].tax.rate ?? 0;
}

/** Tax in cents on an amount in cents, at a rate in percent, rounded once. */
export function taxOn(cents: number, rate: number): number {
  // Rates have at most three decimals; a binary fraction would round some halves down.
  return Math.round((cents * Math.round(rate * 1000)) / 100_000);
}

/** The account profile of `GET /account`; undefined if the account is deleted. */
function accountProfile(account: SandboxAccount, now: number): AccountProfile | undefined {
  const { id, region, books } = account;
  if (books.profile === null) return undefined;
  const { shipping } = books;
  const isExempt = region === 'us' && books.certificates.some((certificate) => isGood(certificate, now));
  const manager = REGION_FACTS[region].accountManager;
  const paysByCard = id % 2 === 0;
  return {
    id,
    name: account.name,
    priceTierCode: account.priceTier,
    currency: REGION_FACTS[region].currency,
    taxRateType: REGION_FACTS[region].tax.type,
    taxRate: REGION_FACTS[region].tax.rate,
    taxSystemTaxExempt: isExempt,
    taxSystemTaxExemptReason: isExempt ? 'Resale' : null,
    showPayNow: paysByCard,
    creditCardRequired: paysByCard,
    shipmentCarriersCSV: csv(shipping?.carriers),
    excludeShipmentsCsv: csv(shipping?.excludedTypes),
    courierAccountCode: shipping?.receiverPays?.billingAccountNumber ?? null,
    courierSiteID: `${REGION_FACTS[region].locations[0].code}-${id}`,
    crmId: `CRM-${id * 7}`,
    accountManagerName: manager,
    accountManagerEmail: `${manager.toLowerCase().replace(' ', '.')}@transfers.example`,
    tierLast12Months: account.priceTier,
    paymentTermDays: paysByCard ? null : 20,
    paymentTermType: paysByCard ? null : 'DaysAfterInvoice',
    entityAddress: books.entityAddress,
    taxCertificates: books.certificates.map((certificate) => toCertificate(account, certificate, now)),
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

function toCertificate(account: SandboxAccount, certificate: CertificateRecord, now: number) {
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

/** A complete user, as in `GET /account/user`. */
function userProfile(account: SandboxAccount, user: SandboxUser): User {
  const { entityAddress } = account.books;
  const [home] = REGION_FACTS[account.region].locations;
  return {
    ...selectFields(User, user),
    guid: generateGuid(0, user.id),
    customerId: account.id,
    customerName: account.name,
    phone: generatePhone(account.region, user.id),
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
    promotionRecipient: false,
    receiveInvoice: true,
    receiveInwards: false,
    textNotifyProof: false,
    lastLogin: user.lastLogin === null ? null : new Date(user.lastLogin).toISOString(),
    ...user.profile,
  };
}

/** The shipment settings of the API; undefined if there are none. */
function shipmentSettings({ region, books: { shipping } }: SandboxAccount): ShipmentSettings | undefined {
  if (!shipping) return undefined;
  const { carriers, excludedTypes, receiverPays } = shipping;
  const carrierOptions = listCarriers(region);
  const shipmentTypeOptions = listShipmentTypes(region);
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

const toDirection = (name: 'ASC' | 'DESC' | undefined) => (name === 'DESC' ? 'descending' : 'ascending');
