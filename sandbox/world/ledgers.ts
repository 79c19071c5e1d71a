// The data of an account besides its orders: address, certificates, cards, payments, shipping.

import type {
  AccountProfile,
  EntityAddress,
  PaymentMethod,
  PaymentTransaction,
  ShipmentSettings,
  TaxCertificate,
} from '../../shared/ordering/contract/account.ts';
import { DAY_MS, HOUR_MS } from './dates.ts';
import { listDeliveryOptions } from './delivery.ts';
import type { AccountFacts } from './records.ts';
import { REGION_FACTS, type RegionCode } from './regions.ts';

/** A stored certificate; its link is created for each response. */
export type CertificateRecord = Omit<
  TaxCertificate,
  'customerId' | 'cdnUrl' | 'fileStatus' | 'fileStatusDescription'
> & {
  /** False while an uploaded file is being checked. */
  checked: boolean;
};

/** Shipping settings of an account, from which fees and carriers follow. */
interface Shipping {
  /** Codes of the carriers that may be used; empty: all. */
  carriers: string[];
  /** Codes of shipment types that may not be used. */
  excludedTypes: string[];
  /** Whom carriers bill instead; null: the account pays freight or the fee. */
  receiverPays: ShipmentSettings['receiverPays'];
  showCustomerAddressOnLabel: boolean;
  handlingFee: number;
  applyHandlingFeeInsteadOfFreight: boolean;
  jobComment: string | null;
  freightRates: ShipmentSettings['freightRates'];
}

/** Ledgers of one account, generated from its id, region and opening time. Fields may be changed. */
export class AccountLedgers {
  /** Overrides fields of `GET /account`. Null: the account is deleted and answers 404. */
  profile: Partial<AccountProfile> | null = {};
  entityAddress: EntityAddress | null;
  certificates: CertificateRecord[];
  cards: PaymentMethod[];
  /** The oldest first. */
  transactions: PaymentTransaction[];
  /** Null: there are none; 404. */
  shipping: Shipping | null;

  constructor(account: AccountFacts) {
    this.entityAddress = generateAddress(account);
    this.certificates = generateCertificates(account, this.entityAddress);
    this.cards = generateCards(account);
    this.transactions = generateTransactions(account, this.cards);
    this.shipping = generateShipping(account, this.entityAddress);
  }
}

/** Carriers of a region by their codes in shipment settings. */
export function listCarriers(region: RegionCode): { code: string; name: string }[] {
  return REGION_FACTS[region].carriers.map(({ name }) => ({
    code: (name.normalize('NFD').replace(/\p{M}/gu, '').split(' ')[0] ?? name).toUpperCase(),
    name,
  }));
}

/** Shipment types of a region: its delivery methods that ship. */
export function listShipmentTypes(region: RegionCode): { code: string; name: string }[] {
  return listDeliveryOptions(region)
    .filter(({ isCollection }) => !isCollection)
    .map(({ code, label }) => ({ code: code ?? '', name: label ?? '' }));
}

/** Generates a phone number of a region. */
export function generatePhone(region: RegionCode, seed: number): string {
  return `${REGION_FACTS[region].phonePrefix}${String(seed % 100).padStart(2, '0')}`;
}

function generateAddress(account: AccountFacts): EntityAddress {
  const { id, region, name, users } = account;
  const { addresses: places } = REGION_FACTS[region];
  const where = places[id % places.length] ?? places[0];
  const domain = name
    .normalize('NFD')
    .replace(/[^A-Za-z0-9]+/g, '')
    .toLowerCase();
  const parts = [
    where.streetAddress,
    where.addressLine2,
    where.city,
    [where.state, where.postalCode].filter(Boolean).join(' '),
    where.countryName,
  ];
  return {
    id: id * 10 + 1,
    ...where,
    contactName: users[0] ? `${users[0].firstName} ${users[0].lastName}` : null,
    organisation: name,
    phone: generatePhone(region, id),
    emailAddress: `accounts@${domain || 'customer'}.example`,
    addressSummaryOneLine: parts.filter(Boolean).join(', '),
  };
}

/** US accounts have three certificates, European ones have one; other regions have no tax exemption. */
function generateCertificates(
  { id, region, name, openedAt }: AccountFacts,
  address: EntityAddress,
): CertificateRecord[] {
  const certificate = (
    index: number,
    daysAgo: number,
    fields: Partial<CertificateRecord> & Pick<CertificateRecord, 'name' | 'exemptionType'>,
  ): CertificateRecord => ({
    id: id * 10 + index,
    businessName: name,
    exemptionNumber: `EX-${id}-${index}`,
    employerIdentificationNumber: null,
    businessEntityId: `BE-${id}`,
    licenseExpiryDate: null,
    exemptionState: address.state,
    fileName: `certificate-${id}-${index}.pdf`,
    hasFile: true,
    createdAt: isoAt(openedAt - daysAgo * DAY_MS),
    updatedAt: isoAt(openedAt - (daysAgo - 3) * DAY_MS),
    entityFileId: id * 100 + index,
    checked: true,
    ...fields,
  });
  if (region === 'eu') {
    return [
      certificate(1, 410, {
        name: 'VAT identification',
        exemptionType: 'Reverse charge',
        exemptionState: null,
      }),
    ];
  }
  if (region !== 'us') return [];
  return [
    certificate(1, 380, {
      name: 'Resale certificate',
      exemptionType: 'Resale',
      employerIdentificationNumber: `00-${String(id).padStart(7, '0')}`,
    }),
    certificate(2, 900, {
      name: 'Resale licence of an earlier year',
      exemptionType: 'Resale',
      licenseExpiryDate: isoAt(openedAt - 170 * DAY_MS).slice(0, 10),
    }),
    certificate(3, 12, {
      name: 'School orders',
      exemptionType: 'Education',
      fileName: null,
      hasFile: false,
      entityFileId: 0,
      checked: false,
    }),
  ];
}

const BRANDS = ['Visa', 'Mastercard'] as const;

function generateCards({ id, users, openedAt }: AccountFacts): PaymentMethod[] {
  const [first] = users;
  const year = new Date(openedAt).getUTCFullYear() % 100;
  return BRANDS.map((cardName, index) => ({
    id: generateGuid(0xca4d, id * 10 + index),
    gatewayProvider: 'Paygrove',
    cardName,
    cardNumber: `************${String(1000 + ((id * 37 + index * 4111) % 9000))}`,
    cardExpiry: `${String((id % 12) + 1).padStart(2, '0')}/${year + 2 - index * 3}`,
    cardHolderName: first ? `${first.firstName} ${first.lastName}` : null,
    dateCreatedUtc: isoAt(openedAt - (200 + index * 900) * DAY_MS),
    isDefault: index === 0,
  }));
}

/** Number of payments generated for an account: three pages. */
const PAYMENTS = 46;

/** Six of ten payments belong to jobs and are complete; the others cover the other statuses. */
const PAYMENT_KINDS = [
  ['Completed', 'JOB'],
  ['Completed', 'JOB'],
  ['Completed', 'CUSTOMER'],
  ['Completed', 'JOB'],
  ['Failed', 'JOB'],
  ['Completed', 'JOB'],
  ['Cancelled', 'JOB'],
  ['Completed', 'JOB'],
  ['Completed', 'JOB'],
  ['Pending', 'CUSTOMER'],
] as const;

function generateTransactions(
  { id, region, openedAt }: AccountFacts,
  cards: readonly PaymentMethod[],
): PaymentTransaction[] {
  return Array.from({ length: PAYMENTS }, (_, index) => {
    const [status, entity] = PAYMENT_KINDS[index % PAYMENT_KINDS.length] ?? PAYMENT_KINDS[0];
    const card = cards[index % 4 === 3 ? 1 : 0];
    const createdAt = openedAt - (PAYMENTS - index) * 8 * DAY_MS + ((id + index * 7) % 9) * HOUR_MS;
    // Some take days to complete, so the order by completion differs.
    const takenMs = index % 7 === 2 ? 20 * DAY_MS : 40_000 + index * 1000;
    return {
      id: id * 1000 + index + 1,
      gatewayType: index % 5 === 4 ? 'Cardline' : 'Paygrove',
      transactionStatus: status,
      createdAt: isoAt(createdAt),
      completedAt: status === 'Completed' ? isoAt(createdAt + takenMs) : null,
      cardName: card?.cardName ?? null,
      cardNumber: card?.cardNumber ?? null,
      cardExpiry: card?.cardExpiry ?? null,
      currencySettlement: REGION_FACTS[region].currency,
      amountSettlement: (1995 + ((id * 13 + index * 7919) % 84_000)) / 100,
      merchantEntityType: entity,
      // Failed payments have no job.
      merchantEntityId:
        status === 'Failed'
          ? null
          : entity === 'JOB'
            ? REGION_FACTS[region].firstJobNumber - 9000 + index * 31
            : id,
    };
  });
}

/** Accounts with even ids: the receiver pays, carriers are limited, and rates are individual. */
function generateShipping({ id, region }: AccountFacts, address: EntityAddress): Shipping {
  const [first] = listCarriers(region);
  const special = id % 2 === 0;
  return {
    carriers: special && first ? [first.code] : [],
    excludedTypes: special ? ['EXPRESS'] : [],
    receiverPays: special
      ? {
          billingAccountNumber: `RP${id}`,
          billingPostalCode: address.postalCode,
          billingCountryCode: address.countryCode,
        }
      : null,
    showCustomerAddressOnLabel: special,
    handlingFee: 4.5,
    applyHandlingFeeInsteadOfFreight: false,
    jobComment: special ? 'Leave at the dock, door 2.' : null,
    freightRates: freightRates(region, special),
  };
}

function freightRates(region: RegionCode, special: boolean): ShipmentSettings['freightRates'] {
  const rates = listCarriers(region).flatMap((carrier, at) =>
    listShipmentTypes(region).map((type, index) => ({
      carrier: carrier.code,
      carrierName: carrier.name,
      service: type.code,
      serviceName: type.name,
      package: index === 0 ? 'SATCHEL' : 'BOX',
      packageName: index === 0 ? 'Satchel' : 'Box',
      chargeType: index === 0 ? 'Flat' : 'PerWeight',
      value: 6.5 + at + index * 4.25,
      minimum: index === 0 ? null : 9 + at,
      isDefault: true,
    })),
  );
  const [first] = rates;
  return special && first
    ? [{ ...first, chargeType: 'Percent', value: 12.5, minimum: 5, isDefault: false }, ...rates.slice(1)]
    : rates;
}

/** A GUID that is always the same for the same numbers. */
export function generateGuid(kind: number, seed: number): string {
  return `0000${kind.toString(16).padStart(4, '0')}-0000-4000-8000-${String(seed).padStart(12, '0')}`;
}

const isoAt = (ms: number): string => new Date(ms).toISOString();
