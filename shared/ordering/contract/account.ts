/** Accounts and users of the ordering API. */
import * as z from 'zod';
import { listSchema, money, text, timestamp } from './common.ts';

/** Address of the account. */
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
/** An address in a response. */
export type EntityAddress = z.infer<typeof EntityAddress>;

/** Status of a tax certificate's file. */
export const TaxFileStatus = z
  .strictObject({ code: z.enum(['Stored', 'Checking', 'Missing']) })
  .meta({ id: 'TaxFileStatus' });

/** A certificate of tax exemption. */
export const TaxCertificate = z
  .strictObject({
    id: z.int(),
    customerId: z.int(),
    name: text,
    businessName: text,
    exemptionNumber: text,
    employerIdentificationNumber: text,
    businessEntityId: text,
    licenseExpiryDate: timestamp.nullable().describe('Null when it does not expire.'),
    exemptionType: text,
    exemptionState: text,
    fileName: text,
    hasFile: z.boolean(),
    createdAt: timestamp,
    updatedAt: timestamp,
    entityFileId: z.int(),
    cdnUrl: text.describe('A download link that expires.'),
    fileStatus: TaxFileStatus,
    fileStatusDescription: text,
  })
  .meta({ id: 'TaxCertificate' });
/** A certificate in a response. */
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
    dateCreatedUtc: timestamp,
    isDefault: z.boolean(),
  })
  .meta({ id: 'PaymentMethod' });
/** A saved card in a response. */
export type PaymentMethod = z.infer<typeof PaymentMethod>;

/** Account of the credentials. */
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
/** An account in a response. */
export type AccountProfile = z.infer<typeof AccountProfile>;

/** Full profile of the calling user. */
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
    usernameLoginOnly: z
      .boolean()
      .describe('Whether the user logs in by name only, because the e-mail address is shared.'),
    lastLogin: timestamp.nullable().describe('UTC.'),
    loginCount: z.int(),
  })
  .meta({ id: 'User' });
/** The calling user in a response. */
export type User = z.infer<typeof User>;

/** A user in the list for administrators of the account. */
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
/** A user in a response to administrators. */
export type UserSummary = z.infer<typeof UserSummary>;

/** A page of users. */
export const UsersPage = listSchema(UserSummary, 'UsersPage');

/** A payment. */
export const PaymentTransaction = z
  .strictObject({
    id: z.int(),
    gatewayType: text,
    transactionStatus: text.describe('Status, such as Completed, Pending, Failed or Cancelled.'),
    createdAt: timestamp,
    completedAt: timestamp.nullable(),
    cardName: text,
    cardNumber: text.describe('Masked.'),
    cardExpiry: text,
    currencySettlement: text,
    amountSettlement: money,
    merchantEntityType: text.describe('Kind of entity, such as JOB or CUSTOMER.'),
    merchantEntityId: z.int().nullable(),
  })
  .meta({ id: 'PaymentTransaction' });
/** A payment in a response. */
export type PaymentTransaction = z.infer<typeof PaymentTransaction>;

/** A page of payments. */
export const TransactionsPage = listSchema(PaymentTransaction, 'TransactionsPage');

/** Carrier billing account for shipments that the recipient pays. */
export const ReceiverPays = z
  .strictObject({ billingAccountNumber: text, billingPostalCode: text, billingCountryCode: text })
  .meta({ id: 'ReceiverPays' });

/** A carrier available to the account. */
export const CarrierOption = z.strictObject({ code: z.string(), name: text }).meta({ id: 'CarrierOption' });

/** A shipment type available to the account. */
export const ShipmentTypeOption = z
  .strictObject({ code: z.string(), name: text })
  .meta({ id: 'ShipmentTypeOption' });

/** Freight rate of an account for a carrier service. */
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

/** Shipment settings of an account. */
export const ShipmentSettings = z
  .strictObject({
    availableCarriers: z
      .array(z.string())
      .describe('Names of the carriers. All carriers if the account is not restricted.'),
    carrierOptions: z.array(CarrierOption),
    receiverPays: ReceiverPays.nullable().describe('`null` if not enabled.'),
    showCustomerAddressOnLabel: z.boolean(),
    handlingFee: money.describe('0 when the receiver pays.'),
    applyHandlingFeeInsteadOfFreight: z.boolean().describe('True when the receiver pays.'),
    jobComment: text,
    availableShipmentTypes: z.array(z.string()).describe('Codes of the shipment types. Empty: all types.'),
    shipmentTypeOptions: z.array(ShipmentTypeOption),
    freightRates: z.array(FreightRate),
  })
  .meta({ id: 'ShipmentSettings' });
/** Shipment settings in a response. */
export type ShipmentSettings = z.infer<typeof ShipmentSettings>;
