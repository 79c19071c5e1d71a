/** Accounts and users of the ordering service. */
import * as z from 'zod';
import { instant, listOf, money, text } from './common.ts';

/** Where the account is at home. */
export const EntityAddress = z
  .strictObject({
    id: z.int(),
    streetAddress: text,
    addressLine2: text,
    city: text,
    state: text.describe('Abbreviated.'),
    stateFull: text,
    postalCode: text,
    countryCode: text.describe('ISO 3166-1 alpha-2.'),
    countryName: text,
    contactName: text,
    organisation: text,
    phone: text,
    emailAddress: text,
    addressSummaryOneLine: text,
  })
  .meta({ id: 'EntityAddress' });
/** An address as it is answered. */
export type EntityAddress = z.infer<typeof EntityAddress>;

/** How the file of a tax certificate stands. */
export const TaxFileStatus = z
  .strictObject({ code: z.enum(['Stored', 'Checking', 'Missing']) })
  .meta({ id: 'TaxFileStatus' });

/** A certificate that exempts from taxes. */
export const TaxCertificate = z
  .strictObject({
    id: z.int(),
    customerId: z.int(),
    name: text,
    businessName: text,
    exemptionNumber: text,
    employerIdentificationNumber: text,
    businessEntityId: text,
    licenseExpiryDate: instant.nullable().describe('Null when it does not expire.'),
    exemptionType: text,
    exemptionState: text,
    fileName: text,
    hasFile: z.boolean(),
    createdAt: instant,
    updatedAt: instant,
    entityFileId: z.int(),
    cdnUrl: text.describe('A download link that expires.'),
    fileStatus: TaxFileStatus,
    fileStatusDescription: text,
  })
  .meta({ id: 'TaxCertificate' });
/** A certificate as it is answered. */
export type TaxCertificate = z.infer<typeof TaxCertificate>;

/** A saved card. */
export const PaymentMethod = z
  .strictObject({
    id: z.guid(),
    gatewayProvider: text,
    cardName: text,
    cardNumber: text.describe('Masked.'),
    cardExpiry: text.describe('MM/YY.'),
    cardHolderName: text,
    dateCreatedUtc: instant,
    isDefault: z.boolean(),
  })
  .meta({ id: 'PaymentMethod' });
/** A saved card as it is answered. */
export type PaymentMethod = z.infer<typeof PaymentMethod>;

/** The account a credential belongs to. */
export const AccountProfile = z
  .strictObject({
    id: z.int(),
    name: text,
    priceTierCode: text,
    currency: text,
    taxRateType: text,
    taxRate: z.number().nullable(),
    taxSystemTaxExempt: z.boolean(),
    taxSystemTaxExemptReason: text,
    showPayNow: z.boolean(),
    creditCardRequired: z.boolean(),
    shipmentCarriersCSV: text,
    excludeShipmentsCsv: text,
    courierAccountCode: text,
    courierSiteID: text,
    crmId: text,
    accountManagerName: text,
    accountManagerEmail: text,
    tierLast12Months: text,
    paymentTermDays: z.int().nullable(),
    paymentTermType: text,
    entityAddress: EntityAddress.nullable(),
    taxCertificates: z.array(TaxCertificate).nullable(),
    paymentMode: text,
    paymentMethods: z.array(PaymentMethod).nullable(),
  })
  .meta({ id: 'AccountProfile' });
/** An account as it is answered. */
export type AccountProfile = z.infer<typeof AccountProfile>;

/** A user in full, as the calling one is shown. */
export const User = z
  .strictObject({
    id: z.int(),
    guid: z.string(),
    customerId: z.int(),
    customerName: text,
    userName: text,
    firstName: text,
    lastName: text,
    emailAddress: text,
    active: z.boolean(),
    phone: text,
    mobile: text,
    streetAddress: text,
    addressLine2: text,
    suburb: text,
    city: text,
    state: text,
    postalCode: text,
    country: text,
    locationID: z.int().nullable(),
    locationName: text,
    defaultPage: text,
    orderNumberPrefix: z.string().max(5).nullable(),
    receiveEmails: z.boolean(),
    promotionRecipient: z.boolean(),
    receiveInvoice: z.boolean(),
    receiveInwards: z.boolean(),
    textNotifyProof: z.boolean(),
    textNotifyDispatch: z.boolean(),
    usernameLoginOnly: z.boolean().describe('Logs in by name only, because the e-mail is shared.'),
    lastLogin: instant.nullable().describe('UTC.'),
    loginCount: z.int(),
  })
  .meta({ id: 'User' });
/** A user as the calling one is answered. */
export type User = z.infer<typeof User>;

/** A user as administrators see their account's. */
export const UserSummary = User.pick({
  id: true,
  guid: true,
  userName: true,
  firstName: true,
  lastName: true,
  emailAddress: true,
  active: true,
  locationName: true,
  usernameLoginOnly: true,
  lastLogin: true,
  loginCount: true,
})
  .strict()
  .meta({ id: 'UserSummary' });
/** A user as administrators are answered. */
export type UserSummary = z.infer<typeof UserSummary>;

/** A page of users. */
export const UsersPage = listOf(UserSummary, 'UsersPage');

/** A payment. */
export const PaymentTransaction = z
  .strictObject({
    id: z.int(),
    gatewayType: text,
    transactionStatus: text.describe('Such as Completed, Pending, Failed, Cancelled.'),
    createdAt: instant,
    completedAt: instant.nullable(),
    cardName: text,
    cardNumber: text.describe('Masked.'),
    cardExpiry: text,
    currencySettlement: text,
    amountSettlement: money,
    merchantEntityType: text.describe('Such as JOB, CUSTOMER.'),
    merchantEntityId: z.int().nullable(),
  })
  .meta({ id: 'PaymentTransaction' });
/** A payment as it is answered. */
export type PaymentTransaction = z.infer<typeof PaymentTransaction>;

/** A page of payments. */
export const TransactionsPage = listOf(PaymentTransaction, 'TransactionsPage');

/** Whom carriers bill when the receiver pays. */
export const ReceiverPays = z
  .strictObject({ billingAccountNumber: text, billingPostalCode: text, billingCountryCode: text })
  .meta({ id: 'ReceiverPays' });

/** A carrier that the account may choose. */
export const CarrierOption = z.strictObject({ code: z.string(), name: text }).meta({ id: 'CarrierOption' });

/** A shipment type that the account may choose. */
export const ShipmentTypeOption = z
  .strictObject({ code: z.string(), name: text })
  .meta({ id: 'ShipmentTypeOption' });

/** What an account pays for freight by a service. */
export const FreightRate = z
  .strictObject({
    carrier: text,
    carrierName: text,
    service: text,
    serviceName: text,
    package: text,
    packageName: text,
    chargeType: text,
    value: z.number(),
    minimum: z.number().nullable(),
    isDefault: z.boolean().describe('Inherited and read-only.'),
  })
  .meta({ id: 'FreightRate' });

/** How an account's parcels ship. */
export const ShipmentSettings = z
  .strictObject({
    availableCarriers: z.array(z.string()).describe('Names; all when unrestricted.'),
    carrierOptions: z.array(CarrierOption),
    receiverPays: ReceiverPays.nullable().describe('Null when it is not enabled.'),
    showCustomerAddressOnLabel: z.boolean(),
    handlingFee: money.describe('0 when the receiver pays.'),
    applyHandlingFeeInsteadOfFreight: z.boolean().describe('True when the receiver pays.'),
    jobComment: text,
    availableShipmentTypes: z.array(z.string()).describe('Codes; empty means all.'),
    shipmentTypeOptions: z.array(ShipmentTypeOption),
    freightRates: z.array(FreightRate),
  })
  .meta({ id: 'ShipmentSettings' });
/** Shipment settings as they are answered. */
export type ShipmentSettings = z.infer<typeof ShipmentSettings>;
