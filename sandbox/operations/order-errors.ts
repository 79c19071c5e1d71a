// Reasons for rejecting orders, and their messages.

import type { ValidationFailure } from '../../shared/ordering/contract/common.ts';

/** Reasons for rejecting an order, by `errorCode`. The codes are stable. */
export const ERROR_CODES = {
  ApplicationNameUnknown: 'X-Application-Name is not a valid origin code.',
  CustomerUnknown: 'customerId is not the calling customer.',
  CustomerUserUnknown: 'The owner is not a user of the calling customer.',
  CustomerUserInactive: 'The owner is not active.',
  ShopUserAmbiguous: 'Several fields name different owners of the job.',
  ShopTotalInvalid: 'A total of a shop is negative.',
  CurrencyCodeInvalid: 'currencyCode is not three capital letters.',
  OrderGroupMissing: 'orderGroupSequence is given without an orderGroup.',
  OrderGroupSequenceInvalid: 'orderGroupSequence is below 1.',
  LocationInvalid: 'locationCodeOverride does not exist, is inactive or virtual.',
  DateDueMissing: 'dateDue is present without a value.',
  DateDueInvalid: 'dateDue is not a date.',
  ShipDateUnavailable: 'No day of dispatch is possible.',
  DeliveryMethodMissing: 'The delivery method is missing.',
  DeliveryMethodUnknown: 'The delivery method is none of the delivery options.',
  SaturdayDeliveryUnsupported: 'The delivery method does not deliver on Saturdays.',
  CountryCodeInvalid: 'countryCodeISO2 is not in the countries lookup.',
  AddressUnroutable: 'The address cannot be routed.',
  PromoCodeInvalid: 'The promo code is not valid.',
  ItemsEmpty: 'items is empty.',
  ItemTypeUnknown: 'itemType is none of PriceCode, Asset and Stock.',
  ItemTypeUnsupported: 'Bills of material and external garments cannot be ordered.',
  CodeMissing: 'The line has no code.',
  PriceCodeUnknown: 'The code is not a price code that the account may order.',
  PriceUnavailable: 'The given dimensions or stitches have no price.',
  AssetUnknown: 'The code is not an asset tag of the account.',
  AssetArchived: 'The asset is archived.',
  AssetNotOrderable: 'The asset has no price.',
  StockUnknown: 'The code is not a stock code.',
  VariantMissing: 'The stock item has several variants and none is named.',
  VariantUnknown: 'The variant is none of the stock item.',
  SizesMissing: 'A Stock line has no sizes.',
  SizeUnknown: "A size is not in the variant's size run.",
  SizeQuantityInvalid: 'The quantity of a size is negative.',
  QuantityMissing: 'The line has no quantity.',
  QuantityBelowMinimum: 'The quantity is below the minimum.',
  QuantityTooLarge: 'The sizes of a line add up to more than 2147483647.',
  SampleUnavailable: 'The price code has no sample.',
  CustomerReferenceMissing: 'A PriceCode line has no customerReference.',
  AttributeMissing: 'A required attribute has no value.',
  AttributeUnknown: 'The price code has no attribute of that name.',
  AttributeTypeInvalid: 'The value of an attribute has the wrong type.',
  AttributeLengthInvalid: 'The value of an attribute is too short or too long.',
  AttributeOutOfRange: 'The value of an attribute is too small or too large.',
  AttributeValueUnknown: 'The value of an attribute is none of those to choose from.',
  ArtworkUrlInvalid: 'externalArtworkUrl is not an http or https URL.',
  ArtworkUrlMissing: 'Other PriceCode lines have an artwork URL and this one does not.',
  GroupUnknown: 'No line is the head of the group.',
  GroupHeadDuplicate: 'Several lines are heads of the same group.',
  GroupNested: 'A line is both the head of a group and a child.',
} as const;

/** Reason for rejecting an order. */
export type ErrorCode = keyof typeof ERROR_CODES;

/** Reasons that the ordering API answers with 500, without naming them. */
export const FAULTS: readonly ErrorCode[] = [
  'ItemsEmpty',
  'AddressUnroutable',
  'AssetUnknown',
  'DateDueMissing',
  'SizeUnknown',
];

/** A validation message. */
export type ValidationMessage = ValidationFailure['validationMessages'][number] & {
  readonly errorCode: ErrorCode;
};

/** Reports a validation error. */
export type Say = (errorCode: ErrorCode, message: string) => void;

/** Whether a text is empty or blank. */
export const blank = (text: string | null | undefined): text is null | undefined | '' =>
  text == null || text.trim() === '';

/** Whether two texts are the same but for case and blanks around the second. */
export const same = (one: string, other: string | null | undefined): boolean =>
  one.toLowerCase() === other?.trim().toLowerCase();

/** A quoted input value, truncated for a message. */
export const quoted = (text: string): string => `"${text.length > 60 ? `${text.slice(0, 60)}…` : text}"`;
