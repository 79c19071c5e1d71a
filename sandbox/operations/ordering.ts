/*
 * Whether an order is accepted, and what it costs. Where the contract is silent, the sandbox chose:
 *
 * - All messages come at once, in the order of the fields and then of the lines. A request that is amiss only in what the
 *   service is known to fail on (`FAULTS`) is answered with 500, unless `validateOnly` asked what is wrong. As soon as
 *   anything else is amiss too, it is a 400 that names all of it. `validateOnly` accepts exactly what creation accepts.
 * - A due date that is left out becomes the earliest possible one. One that is there but null or empty is the missing
 *   `dateDue` that the service fails on. An earlier one than possible is moved, also when it must be met.
 * - Without `timeSensitive` a due date is a whole day; with it, it has a time: the one that was asked for, else 17.00 at
 *   the place. `mustDate` without a due date is ignored.
 * - An address has a street and a country, and of state and postal code what the country has; a suburb where the country
 *   has those, else a city. A state is one of the lookup's, by name or abbreviation, and does not contradict `stateCode`.
 *   Anything else, and no address at all, cannot be routed. `country` is not read: the code counts. A collection needs
 *   none of it, but a country code that is given must be right.
 * - Saturday delivery is for the express methods only.
 * - A sample is charged at the sample price, without setup. What has no sample cannot be ordered as one.
 * - Setup is charged once for each PriceCode line, reset once for each Asset line. Lines of the same code stay apart: each
 *   finds its own band. Reorders and stock keep to the least quantity of their bands too.
 * - A promo code takes its part of the lines whose process it is for, not of setups and resets; a fixed sum at most what
 *   those lines cost. Tax is of what is left, at the account's `taxRate` (none where that is null), rounded once.
 *   `totalJobCost` is with tax and without freight.
 * - Attribute values are texts for `text` and `select`, and numbers, or texts of one, for `int` and `decimal`. Null and the
 *   empty text are no value. A key that the price code doesn't ask for is refused.
 * - A mix of PriceCode lines with and without artwork URL is refused. Whether a URL can be reached is not tried here.
 * - A group's head may come after its children. Heads are unique in a job, and no child of others.
 * - A blank `orderGroup` is none. `orderGroupSequence` needs one. It is not compared with the other jobs of the group.
 * - A stock code with several variants needs `variantCode`; sizes that are not wanted may be left out or 0.
 * - What a candidate has beyond the plain fields tells its shape: any field of a customer's shop makes it that, else any
 *   of a shop; null counts as absent. A shop's totals are what its buyers paid: they are kept, not compared with ours.
 * - A shop's `userId` is `customerUserId` by another name. `userDetails` finds the user that was made for the same
 *   `shopUserId`, else (unless `bypassCustomerMatch`) the one with the e-mail address, else makes one. `customerId` can
 *   only be the calling customer: an account makes no other accounts.
 */

import {
  CustomerShopCandidate,
  type DeliveryAddress,
  JobCandidate,
  ShopCandidate,
} from '../../shared/ordering/contract/candidates.ts';
import type { DeliveryOption } from '../../shared/ordering/contract/jobs.ts';
import type { Country, State } from '../../shared/ordering/contract/lookups.ts';
import type { PromoValidation } from '../../shared/ordering/contract/promo.ts';
import { atTimeOfDay, type DateStyle, isWritable, startOfDay } from '../world/dates.ts';
import { DISPATCH_TIME, readDueDate } from '../world/delivery.ts';
import type { JobCosts, SandboxUser } from '../world/records.ts';
import type { Site } from '../world/regions.ts';
import { taxOn } from './account.ts';
import { blank, FAULTS, quoted, type Say, same, type ValidationMessage } from './order-errors.ts';
import { linesOf, type OrderedLine, type Wares } from './order-lines.ts';

/** What is known to the service when it decides on an order. */
export interface Facts extends Wares {
  readonly customerId: number;
  readonly users: readonly SandboxUser[];
  /** Whom the credentials act as. */
  readonly caller: SandboxUser | undefined;
  readonly originCodes: readonly string[];
  readonly deliveryOptions: readonly DeliveryOption[];
  /** The default one first. */
  readonly locations: readonly Site[];
  /** How the account's timestamps are written. */
  readonly dateStyle: DateStyle;
  /** In per cent; 0 where tax is not known when one orders. */
  readonly taxRate: number;
  country(iso2: string): Country | undefined;
  states(iso2: string): readonly State[];
  promo(code: string, processCodes: readonly string[]): PromoValidation;
  /** When a job of these processes can leave a place at the soonest, epoch ms. */
  earliest(processCodes: readonly string[], location: Site): number | undefined;
}

/** A user that an order of a shop makes. */
type NewUser = Partial<SandboxUser> & { readonly shopUserId: number };

/** An order as it is accepted. */
export interface Order {
  readonly shape: Shape;
  readonly originCode: string;
  readonly owner: SandboxUser | NewUser;
  readonly location: Site;
  /** Epoch ms; of a whole day any instant of it. */
  readonly due: { readonly ms: number; readonly wholeDay: boolean };
  readonly mustDate: boolean;
  readonly delivery: DeliveryOption;
  readonly lines: readonly OrderedLine[];
  readonly costs: JobCosts;
}

/** What a candidate is, told from its fields. */
export type Shape = 'plain' | 'shop' | 'customerShop';

/** What is decided on an order. `breaks` when nothing is amiss but what the service fails on. */
type Decision =
  | { readonly accepted: true; readonly order: Order }
  | { readonly accepted: false; readonly messages: readonly ValidationMessage[]; readonly breaks: boolean };

/** Decides on an order that comes under an application's name. */
export function decide(candidate: CustomerShopCandidate, originCode: string, facts: Facts): Decision {
  const messages: ValidationMessage[] = [];
  const say: Say = (errorCode, message) => messages.push({ errorCode, message });

  if (!facts.originCodes.includes(originCode)) {
    const valid = facts.originCodes.join(', ');
    say('ApplicationNameUnknown', `X-Application-Name must be one of ${valid}, not ${quoted(originCode)}.`);
  }
  const owner = ownerOf(candidate, facts, say);
  checkShop(candidate, facts, say);
  checkOrderGroup(candidate, say);
  const location = locationOf(candidate, facts, say);
  const delivery = deliveryOf(candidate.deliveryAddress ?? undefined, facts, say);
  const lines = linesOf(candidate.items ?? [], facts, say);
  const processes = [...new Set(lines.map(({ processCode }) => processCode))].filter((code) => code !== null);
  const due = dueOf(candidate, processes, location, facts, say);
  const costs = costsOf(candidate, lines, processes, facts, say);

  if (messages.length > 0 || !owner || !delivery || !due) {
    return {
      accepted: false,
      messages,
      breaks: messages.every(({ errorCode }) => FAULTS.includes(errorCode)),
    };
  }
  return {
    accepted: true,
    order: {
      shape: shapeOf(candidate),
      originCode,
      owner,
      location,
      due,
      mustDate: candidate.mustDate === true && candidate.dateDue !== undefined,
      delivery,
      lines,
      costs,
    },
  };
}

/** Tells what a candidate is from the fields it has beyond the plain ones. */
function shapeOf(candidate: CustomerShopCandidate): Shape {
  const has = (shape: object, less: object) =>
    Object.keys(shape).some(
      (field) => !(field in less) && (candidate as Record<string, unknown>)[field] != null,
    );
  if (has(CustomerShopCandidate.shape, ShopCandidate.shape)) return 'customerShop';
  return has(ShopCandidate.shape, JobCandidate.shape) ? 'shop' : 'plain';
}

/** The owner: who is named, or whom the shop means, or the caller. */
function ownerOf(
  candidate: CustomerShopCandidate,
  { users, caller }: Facts,
  say: Say,
): SandboxUser | NewUser | undefined {
  const { customerUserId, userId, userDetails } = candidate;
  const named = customerUserId ?? userId;
  if (customerUserId != null && userId != null && customerUserId !== userId) {
    say('ShopUserAmbiguous', 'userId and customerUserId must be the same user when both are given.');
  }
  if (named != null && userDetails) {
    say('ShopUserAmbiguous', 'userDetails must be left out when userId or customerUserId names a user.');
  }
  const field = customerUserId != null ? 'customerUserId' : userId != null ? 'userId' : 'The calling user';
  let owner = named == null ? caller : users.find(({ id }) => id === named);
  if (named == null && userDetails) {
    const { shopUserId, bypassCustomerMatch } = userDetails;
    const email = userDetails.email ?? candidate.deliveryAddress?.emailAddress;
    const matches = (user: SandboxUser) =>
      !blank(email) && user.emailAddress.toLowerCase() === email.toLowerCase();
    owner =
      users.find((user) => user.shopUserId === shopUserId) ??
      (bypassCustomerMatch ? undefined : users.find(matches));
    if (!owner) return newUserOf(candidate, shopUserId);
  }
  if (!owner) {
    say('CustomerUserUnknown', `${field} must be a user of the calling customer.`);
  } else if (!owner.active) {
    say('CustomerUserInactive', `${field} must be an active user; user ${owner.id} is not active.`);
  }
  return owner;
}

function newUserOf({ userDetails, deliveryAddress }: CustomerShopCandidate, shopUserId: number): NewUser {
  const name = userDetails?.name ?? deliveryAddress?.contactName ?? '';
  const [first = '', ...rest] = name.trim().split(/\s+/);
  const email = userDetails?.email ?? deliveryAddress?.emailAddress;
  const mobile = userDetails?.phone ?? deliveryAddress?.mobile;
  return {
    shopUserId,
    userName: `shop-${shopUserId}`,
    firstName: userDetails?.firstName ?? (first || 'Shop'),
    lastName: userDetails?.lastName ?? (rest.join(' ') || `User ${shopUserId}`),
    ...(!blank(email) && { emailAddress: email }),
    ...(!blank(mobile) && { mobile }),
  };
}

function checkShop(candidate: CustomerShopCandidate, { customerId }: Facts, say: Say): void {
  if (candidate.customerId != null && candidate.customerId !== customerId) {
    say('CustomerUnknown', `customerId must be ${customerId}, the calling customer, or be left out.`);
  }
  for (const field of ['itemsTotal', 'taxTotal', 'totalAmount', 'shippingTotal'] as const) {
    const total = candidate[field];
    if (total != null && total < 0) say('ShopTotalInvalid', `${field} must not be negative, as ${total} is.`);
  }
  const { currencyCode } = candidate;
  if (currencyCode != null && !/^[A-Z]{3}$/.test(currencyCode)) {
    say(
      'CurrencyCodeInvalid',
      `currencyCode must be an ISO 4217 code such as USD, not ${quoted(currencyCode)}.`,
    );
  }
}

function checkOrderGroup({ orderGroup, orderGroupSequence }: CustomerShopCandidate, say: Say): void {
  if (orderGroupSequence == null) return;
  if (blank(orderGroup)) say('OrderGroupMissing', 'orderGroupSequence needs an orderGroup.');
  if (orderGroupSequence < 1) {
    say('OrderGroupSequenceInvalid', `orderGroupSequence must be at least 1, not ${orderGroupSequence}.`);
  }
}

/** Where the job is made; the default place when the override is refused, so that the rest can be checked. */
function locationOf(
  { locationCodeOverride: code }: CustomerShopCandidate,
  { locations }: Facts,
  say: Say,
): Site {
  const usable = locations.filter(({ active, virtual }) => active && !virtual);
  const [first] = usable;
  if (!first) throw new Error('There is no location to make jobs at');
  if (blank(code)) return first;
  const location = usable.find((one) => one.code === code);
  if (!location) {
    const valid = usable.map((one) => one.code).join(', ');
    say('LocationInvalid', `locationCodeOverride must be one of ${valid}, not ${quoted(code)}.`);
  }
  return location ?? first;
}

function deliveryOf(
  address: DeliveryAddress | undefined,
  facts: Facts,
  say: Say,
): DeliveryOption | undefined {
  if (!address) {
    say(
      'AddressUnroutable',
      'deliveryAddress is required: a deliveryMethod, and an address unless it is a collection.',
    );
    return undefined;
  }
  const { deliveryMethod: method, countryCodeISO2: iso2 } = address;
  const valid = facts.deliveryOptions.map(({ code }) => code).join(', ');
  const option = facts.deliveryOptions.find(({ code }) => code === method);
  if (blank(method)) {
    say('DeliveryMethodMissing', `deliveryAddress.deliveryMethod is required: one of ${valid}.`);
  } else if (!option) {
    say(
      'DeliveryMethodUnknown',
      `deliveryAddress.deliveryMethod must be one of ${valid}, not ${quoted(method)}.`,
    );
  }
  if (address.isSaturdayDelivery && option && !SATURDAY_METHODS.includes(option.code ?? '')) {
    const able = facts.deliveryOptions.filter(({ code }) => SATURDAY_METHODS.includes(code ?? ''));
    say(
      'SaturdayDeliveryUnsupported',
      `deliveryAddress.isSaturdayDelivery needs one of the methods ${able.map(({ code }) => code).join(', ')}, not ${option.code}.`,
    );
  }
  if (!blank(iso2) && !facts.country(iso2)) {
    say(
      'CountryCodeInvalid',
      `deliveryAddress.countryCodeISO2 must be the two-letter iso2 of a country of GET /Lookups/countries, not ${quoted(iso2)}.`,
    );
  } else if (!option?.isCollection) {
    checkRoute(address, facts, say);
  }
  return option;
}

/** Whether a courier finds an address whose country, if it names one, exists. */
function checkRoute(address: DeliveryAddress, facts: Facts, say: Say): void {
  const unroutable = (why: string) => say('AddressUnroutable', `deliveryAddress cannot be routed: ${why}.`);
  const need = (field: keyof DeliveryAddress, why = '') => {
    if (blank(address[field] as string | null | undefined)) unroutable(`${field} is required${why}`);
  };
  need('streetAddress');
  const country = blank(address.countryCodeISO2) ? undefined : facts.country(address.countryCodeISO2);
  if (!country) {
    need('city');
    need('countryCodeISO2');
    return;
  }
  const inCountry = ` for addresses in ${country.name}`;
  if (country.hasSuburb) need('suburb', inCountry);
  else need('city', inCountry);
  if (country.hasPostalCode) need('postalCode', inCountry);
  if (!country.hasState) return;
  const states = facts.states(country.iso2);
  const { state, stateCode } = address;
  if (blank(state) && blank(stateCode)) {
    need('state', inCountry);
    return;
  }
  const byState = states.find(
    ({ name, abbreviation }) => same(name, state) || same(abbreviation, state),
  )?.abbreviation;
  const byCode = states.find(({ abbreviation }) => same(abbreviation, stateCode))?.abbreviation;
  const lookup = `GET /Lookups/countries/${country.iso2}/states`;
  if (states.length > 0 && !blank(state) && !byState) unroutable(`state must be one of ${lookup}`);
  if (states.length > 0 && !blank(stateCode) && !byCode) {
    unroutable(`stateCode must be an abbreviation of ${lookup}`);
  }
  if (byState && byCode && byState !== byCode) unroutable('state and stateCode must be the same state');
}

/** The methods that deliver on Saturdays when they are asked to. */
const SATURDAY_METHODS: readonly string[] = ['EXPRESS', 'SATURDAY'];

function dueOf(
  { dateDue, timeSensitive = false }: CustomerShopCandidate,
  processes: readonly string[],
  location: Site,
  facts: Facts,
  say: Say,
): Order['due'] | undefined {
  const earliest = facts.earliest(processes, location);
  if (earliest === undefined) {
    say('ShipDateUnavailable', `No day can be found on which ${location.name} could send the job out.`);
  }
  if (dateDue === undefined) {
    return earliest === undefined ? undefined : { ms: earliest, wholeDay: !timeSensitive };
  }
  if (blank(dateDue)) {
    say('DateDueMissing', 'dateDue must have a value; leave it out for the earliest possible date.');
    return undefined;
  }
  const zone = location.timezone;
  const asked = readDueDate(dateDue, zone);
  const isDay = asked?.byMs !== asked?.ms;
  const ms =
    asked &&
    (timeSensitive
      ? isDay
        ? atTimeOfDay(asked.ms, zone, DISPATCH_TIME)
        : asked.ms
      : startOfDay(asked.ms, zone));
  if (ms === undefined || !isWritable(ms, zone, facts.dateStyle)) {
    say(
      'DateDueInvalid',
      `dateDue must be an ISO 8601 date of the years to 9999, such as 2026-11-30, not ${quoted(dateDue)}.`,
    );
    return undefined;
  }
  return earliest === undefined ? undefined : { ms: Math.max(ms, earliest), wholeDay: !timeSensitive };
}

/** What the lines cost all in all. In cents, so that no sum is off by one. */
function costsOf(
  { promocode }: CustomerShopCandidate,
  lines: readonly OrderedLine[],
  processes: readonly string[],
  facts: Facts,
  say: Say,
): JobCosts {
  const cents = (of: (line: OrderedLine) => number, some = lines) =>
    some.reduce((sum, line) => sum + of(line), 0);
  const amount = ({ unitPrice, quantity }: OrderedLine) => Math.round(unitPrice * 100) * quantity;
  const [ofLines, setup, reset] = [
    cents(amount),
    cents((line) => Math.round(line.setup * 100)),
    cents((line) => Math.round(line.reset * 100)),
  ];

  let discount = 0;
  if (!blank(promocode)) {
    const promo = facts.promo(promocode, processes);
    if (promo.isValid) {
      const { applicableProcessCodes: only } = promo;
      const base = cents(
        amount,
        lines.filter(({ processCode }) => only === null || only.includes(processCode ?? '')),
      );
      discount = promo.isFixed ? Math.min(promo.discount, base) : Math.round((base * promo.discount) / 100);
    } else {
      say('PromoCodeInvalid', `promocode must be a valid promo code: ${promo.message ?? 'it is not valid.'}`);
    }
  }

  const net = ofLines + setup + reset - discount;
  const tax = taxOn(net, facts.taxRate);
  return {
    lines: ofLines / 100,
    setup: setup / 100,
    reset: reset / 100,
    discount: discount / 100,
    tax: tax / 100,
    total: (net + tax) / 100,
  };
}
