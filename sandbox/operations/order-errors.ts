// What orders are refused for, and how it is said.

import type { ValidationFailure } from '../../shared/ordering/contract/common.ts';

/** Why an order is refused, by `errorCode`. The codes are stable. */
export const ERROR_CODES = {
  ApplicationNameUnknown: 'X-Application-Name is no valid origin code.',
  CustomerUnknown: 'customerId is not the calling customer.',
  CustomerUserUnknown: 'The owner is not a user of the calling customer.',
  CustomerUserInactive: 'The owner is not active.',
  ShopUserAmbiguous: 'More than one field says, differently, who owns the job.',
  ShopTotalInvalid: 'A total of a shop is negative.',
  CurrencyCodeInvalid: 'currencyCode is not three capital letters.',
  OrderGroupMissing: 'orderGroupSequence is given without an orderGroup.',
  OrderGroupSequenceInvalid: 'orderGroupSequence is below 1.',
  LocationInvalid: 'locationCodeOverride does not exist, is inactive or virtual.',
  DateDueMissing: 'dateDue is there but has no value.',
  DateDueInvalid: 'dateDue is no date.',
  ShipDateUnavailable: 'There is no day on which the job could go out.',
  DeliveryMethodMissing: 'There is no delivery method.',
  DeliveryMethodUnknown: 'The delivery method is none of the delivery options.',
  SaturdayDeliveryUnsupported: 'The delivery method does not deliver on Saturdays.',
  CountryCodeInvalid: 'countryCodeISO2 is not one of the countries lookup.',
  AddressUnroutable: 'The address cannot be routed.',
  PromoCodeInvalid: 'The promo code is not valid.',
  ItemsEmpty: 'There are no lines.',
  ItemTypeUnknown: 'itemType is none of PriceCode, Asset and Stock.',
  ItemTypeUnsupported: 'Bills of material and external garments cannot be ordered.',
  CodeMissing: 'The line has no code.',
  PriceCodeUnknown: 'The code is no price code that the account may order.',
  PriceUnavailable: 'There is no price for the dimensions or stitches that are given.',
  AssetUnknown: 'The code is no asset tag of the account.',
  AssetArchived: 'The asset is archived.',
  AssetNotOrderable: 'The asset has no price.',
  StockUnknown: 'The code is no stock code.',
  VariantMissing: 'The stock item has several variants and none is named.',
  VariantUnknown: 'The variant is none of the stock item.',
  SizesMissing: 'A Stock line has no sizes.',
  SizeUnknown: "A size is not in the variant's size run.",
  SizeQuantityInvalid: 'The quantity of a size is negative.',
  QuantityMissing: 'The line has no quantity.',
  QuantityBelowMinimum: 'The quantity is below the least one.',
  QuantityTooLarge: 'The sizes of a line add up to more than 2147483647.',
  SampleUnavailable: 'There is no sample of the price code.',
  CustomerReferenceMissing: 'A PriceCode line has no customerReference.',
  AttributeMissing: 'A required attribute has no value.',
  AttributeUnknown: 'The price code has no attribute of that name.',
  AttributeTypeInvalid: 'The value of an attribute is of another type.',
  AttributeLengthInvalid: 'The value of an attribute is too short or too long.',
  AttributeOutOfRange: 'The value of an attribute is too small or too large.',
  AttributeValueUnknown: 'The value of an attribute is none of those to choose from.',
  ArtworkUrlInvalid: 'externalArtworkUrl is no http or https address.',
  ArtworkUrlMissing: 'Other PriceCode lines have an artwork URL and this one has not.',
  GroupUnknown: 'No line is the head of the group.',
  GroupHeadDuplicate: 'Several lines are heads of the same group.',
  GroupNested: 'A line is both the head of a group and a child.',
} as const;

/** Why an order is refused. */
export type ErrorCode = keyof typeof ERROR_CODES;

/** What the service is known to fail on with 500 instead of saying it. */
export const FAULTS: readonly ErrorCode[] = [
  'ItemsEmpty',
  'AddressUnroutable',
  'AssetUnknown',
  'DateDueMissing',
  'SizeUnknown',
];

/** A message of a refusal. */
export type ValidationMessage = ValidationFailure['validationMessages'][number] & {
  readonly errorCode: ErrorCode;
};

/** Takes a complaint. */
export type Say = (errorCode: ErrorCode, message: string) => void;

/** Whether a text says nothing. */
export const blank = (text: string | null | undefined): text is null | undefined | '' =>
  text == null || text.trim() === '';

/** Whether two texts are the same but for case and blanks around the second. */
export const same = (one: string, other: string | null | undefined): boolean =>
  one.toLowerCase() === other?.trim().toLowerCase();

/** What somebody sent, cut short so that a message stays a sentence. */
export const quoted = (text: string): string => `"${text.length > 60 ? `${text.slice(0, 60)}…` : text}"`;
