/** Requests that create a job, and their responses. */
import * as z from 'zod';
import { money, text, timestamp } from './common.ts';

/** One line of an order. `itemType` determines the meaning of `code` and which other fields apply. */
export const JobLineCandidate = z
  .object({
    itemType: z
      .string()
      .describe('`PriceCode` (a new print), `Asset` (a reorder) or `Stock` (stocked goods).'),
    code: text.optional().describe('A full price code, an asset tag or a stock code.'),
    quantity: z.int32().optional().describe('Units to make. Ignored on Stock lines.'),
    customerReference: text.optional().describe('Required for PriceCode lines.'),
    groupHead: text.optional().describe('Marks this line as the head of a group of this name.'),
    group: text.optional().describe('The group head this line is a child of.'),
    attributes: z.record(z.string(), z.unknown()).nullable().optional(),
    externalArtworkUrl: text.optional(),
    externalId: text.optional(),
    isSample: z
      .boolean()
      .optional()
      .describe('Whether the line is a sample, to which the minimum quantity does not apply.'),
    garment: text.optional(),
    comment: text.optional(),
    variantCode: text.optional(),
    sizeQuantities: z.record(z.string(), z.int32()).nullable().optional(),
  })
  .meta({ id: 'JobLineCandidate' });
/** A line in a request. */
export type JobLineCandidate = z.infer<typeof JobLineCandidate>;

/** Delivery address of a job. */
export const DeliveryAddress = z
  .object({
    deliveryMethod: text.optional().describe('A `code` of the delivery options.'),
    shippingInstructions: text.optional(),
    contactName: text.optional(),
    organisation: text.optional(),
    phone: text.optional(),
    mobile: text.optional(),
    emailAddress: text.optional(),
    isSaturdayDelivery: z.boolean().optional(),
    streetAddress: text.optional(),
    address2: text.optional(),
    suburb: text.optional(),
    city: text.optional(),
    state: text.optional(),
    stateCode: text.optional(),
    postalCode: text.optional(),
    countryCodeISO2: text.optional().describe('ISO 3166-1 alpha-2.'),
    country: text.optional(),
  })
  .meta({ id: 'DeliveryAddress' });
/** An address in a request. */
export type DeliveryAddress = z.infer<typeof DeliveryAddress>;

/** A job candidate. */
export const JobCandidate = z
  .object({
    validateOnly: z.boolean().optional().describe('Validate without creating.'),
    orderNumber: text.optional(),
    orderComment: text.optional(),
    customerUserId: z.int().nullable().optional().describe('The calling user by default.'),
    dateDue: timestamp
      .nullable()
      .optional()
      .describe('Due date. An absent or too early date is replaced by the earliest possible date.'),
    mustDate: z.boolean().optional(),
    timeSensitive: z.boolean().optional(),
    description: text.optional(),
    deliveryAddress: DeliveryAddress.nullable().optional(),
    promocode: text.optional(),
    items: z.array(JobLineCandidate).nullable().optional(),
    orderGroup: text.optional(),
    orderGroupSequence: z.int().nullable().optional(),
    locationCodeOverride: text.optional(),
  })
  .meta({ id: 'JobCandidate' });
/** A job candidate in a request. */
export type JobCandidate = z.infer<typeof JobCandidate>;

/** A tax charged by a shop. */
export const TaxLine = z
  .object({ title: text.optional(), rate: z.number(), price: z.number() })
  .meta({ id: 'TaxLine' });

/** A discount granted by a shop. */
export const Discount = z
  .object({
    name: text.optional(),
    target: z.record(z.string(), z.unknown()),
    value: money,
    targetValue: z.record(z.string(), z.unknown()).describe('A percentage, or fixed.'),
    isDiscountCode: z.boolean(),
  })
  .meta({ id: 'Discount' });

/** Customer of a shop's order. Only if customer and user must be created. */
export const UserDetails = z
  .object({
    shopUserId: z.int(),
    bypassCustomerMatch: z.boolean().describe("Don't look for a user with the same e-mail address."),
    email: text.optional(),
    firstName: text.optional(),
    lastName: text.optional(),
    name: text.optional().describe('Used if firstName and lastName are not given.'),
    phone: text.optional(),
    userAddress: z.unknown().optional(),
  })
  .meta({ id: 'UserDetails' });

/** A job candidate with the data of a shop. */
export const ShopCandidate = JobCandidate.extend({
  itemsTotal: z.number().optional(),
  taxTotal: z.number().optional(),
  taxLines: z.array(TaxLine).nullable().optional(),
  totalAmount: z.number().optional(),
  shippingTotal: z.number().optional(),
  shippingType: text.optional(),
  paymentType: z.array(z.unknown()).nullable().optional(),
  discounts: z.array(Discount).nullable().optional(),
  userDetails: UserDetails.nullable().optional(),
  customerId: z.int().nullable().optional(),
  userId: z.int().nullable().optional(),
}).meta({ id: 'ShopCandidate' });
/** A shop's job candidate in a request. */
export type ShopCandidate = z.infer<typeof ShopCandidate>;

/** A job candidate of a customer's own shop. */
export const CustomerShopCandidate = ShopCandidate.extend({
  shopName: text.optional(),
  shopOrderName: text.optional(),
  shopOrderId: text.optional(),
  currencyCode: text.optional(),
}).meta({ id: 'CustomerShopCandidate' });
/** A job candidate of a customer's own shop in a request. */
export type CustomerShopCandidate = z.infer<typeof CustomerShopCandidate>;

/** Response for a valid job with `validateOnly`. */
export const ValidationSuccess = z
  .strictObject({
    isValid: z.literal(true),
    validationMessages: z.array(z.never()),
    message: z.string().describe('Message that the job was not created.'),
  })
  .meta({ id: 'ValidationSuccess' });
/** A successful validation. */
export type ValidationSuccess = z.infer<typeof ValidationSuccess>;

/** Result for one line. */
export const JobLineDetail = z
  .strictObject({
    needsArtworkToBeUploaded: z.boolean(),
    customerReference: text,
    quantity: z.int(),
    newAssetSku: text.describe('The asset tag that a PriceCode line was filed under.'),
    jobLineLabelUrl: text.describe('For lines of external suppliers.'),
  })
  .meta({ id: 'JobLineDetail' });

/** Response after a job was created. */
export const JobCreated = z
  .strictObject({
    jobNumber: z.int(),
    location: text.describe('Production location.'),
    dateDue: timestamp.nullable().describe("In the location's time zone."),
    totalJobCost: money,
    expectingArtworkToBeUploaded: z.boolean(),
    jobLineDetails: z.array(JobLineDetail).nullable(),
    customerId: z.int().optional().describe('For shops only.'),
    userId: z.int().optional().describe('For shops only.'),
  })
  .meta({ id: 'CreateJobReturnDto' });
/** A created job in a response. */
export type JobCreated = z.infer<typeof JobCreated>;
