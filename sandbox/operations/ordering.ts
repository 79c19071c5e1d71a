/*
 * Decides whether an order is accepted, and what it costs. Where the contract is silent, the sandbox chose:
 *
 * - The response contains all messages, in the order of the fields and then of the lines
 *   ([reasons](#reasons-for-rejected-orders)).
 * - If `dateDue` is present but null or empty, the API fails (`DateDueMissing`). A `dateDue` before the earliest
 *   possible date is changed to it, even with `mustDate`. `mustDate` without a due date is ignored.
 * - Without `timeSensitive`, a due date has no time of day. With `timeSensitive`, the default time is 17:00 at the
 *   location.
 * - An address needs a street, a country, a suburb or a city, and, if the country has them, a state and a postal code.
 *   Otherwise, it cannot be routed. The state must be in the lookup, by name or abbreviation, and must not contradict
 *   `stateCode`. `country` is ignored: the country is read from the country code. A collection needs no address, but a
 *   country code must be valid if it is given.
 * - Only the express methods deliver on Saturdays.
 * - The setup price is charged once for each PriceCode line, and the reset price once for each Asset line. Each line is
 *   in its own price band, even if another line has the same code. The minimum quantity of the price bands also applies
 *   to reorders and stock.
 * - A promo code reduces the price of the lines whose processes it applies to, without setup and reset, and at most to
 *   zero. Tax is calculated on the discounted amount with the `taxRate` of the account, and is rounded once.
 *   `totalJobCost` includes tax and excludes freight.
 * - Attribute values are strings for `text` and `select`, and numbers or numeric strings for `int` and `decimal`. Null
 *   and the empty string count as missing values. Attributes that the price code does not have are rejected.
 * - Either all PriceCode lines have an artwork URL or none. The validation does not fetch the URL.
 * - The head of a group of lines (`groupHead`) can come after its children (`group`). Each value of `groupHead` can be
 *   used by only one line of a job, and this line cannot be a child of another group.
 * - `orderGroupSequence` is not compared with the other jobs of the group.
 * - A request with a field that `JobCandidate` does not have is a `ShopCandidate` or a `CustomerShopCandidate`, which
 *   are processed alike. A field that is null counts as absent. The totals of a shop are not compared with the prices.
 * - `userId` of a shop is an alias of `customerUserId`. `userDetails` selects the user that was created for the same
 *   `shopUserId`. If there is none, it selects the user with the same e-mail address (not if `bypassCustomerMatch` is
 *   true). Otherwise, a user is created. `customerId` must be the id of the calling customer.
 */

import {
  type CustomerShopCandidate,
  type DeliveryAddress,
  JobCandidate,
} from '../../shared/ordering/contract/candidates.ts';
import type { DeliveryOption } from '../../shared/ordering/contract/jobs.ts';
import type { Country, State } from '../../shared/ordering/contract/lookups.ts';
import type { PromoValidation } from '../../shared/ordering/contract/promo.ts';
import { atTimeOfDay, isWritable, startOfDay } from '../world/dates.ts';
import { DISPATCH_TIME, parseDueDate } from '../world/delivery.ts';
import type { JobCosts, SandboxUser } from '../world/records.ts';
import type { Site } from '../world/regions.ts';
import { taxOn } from './account.ts';
import { blank, FAULTS, quoted, type Report, same, type ValidationMessage } from './order-errors.ts';
import { checkLines, type OrderedLine, type ProductLookup } from './order-lines.ts';

/** The data that an order is decided with. */
export interface OrderContext extends ProductLookup {
  readonly customerId: number;
  readonly users: readonly SandboxUser[];
  /** Whom the credentials act as. */
  readonly caller: SandboxUser | undefined;
  readonly originCodes: readonly string[];
  readonly deliveryOptions: readonly DeliveryOption[];
  /** The default one first. */
  readonly locations: readonly Site[];
  /** In percent; 0 if the tax is not known when ordering. */
  readonly taxRate: number;
  country(iso2: string): Country | undefined;
  states(iso2: string): readonly State[];
  promo(code: string, processCodes: readonly string[]): PromoValidation;
  /** When a job of these processes can leave a place at the soonest, epoch ms. */
  earliest(processCodes: readonly string[], location: Site): number | undefined;
}

/** A user that a shop order creates. */
type NewUser = Partial<SandboxUser> & { readonly shopUserId: number };

/** An accepted order. */
export interface Order {
  /** The candidate has a field that only shop candidates have. */
  readonly isShop: boolean;
  readonly originCode: string;
  readonly owner: SandboxUser | NewUser;
  readonly location: Site;
  /** Epoch ms; for a whole day, any time of it. */
  readonly due: { readonly ms: number; readonly wholeDay: boolean };
  readonly mustDate: boolean;
  readonly delivery: DeliveryOption;
  readonly lines: readonly OrderedLine[];
  readonly costs: JobCosts;
}

/** Decision on an order. `breaks` if the only errors are those that the ordering API fails on. */
type Decision =
  | { readonly accepted: true; readonly order: Order }
  | { readonly accepted: false; readonly messages: readonly ValidationMessage[]; readonly breaks: boolean };

/** Decides on an order with an application name. */
export function evaluateOrder(
  candidate: CustomerShopCandidate,
  originCode: string,
  facts: OrderContext,
): Decision {
  const messages: ValidationMessage[] = [];
  const report: Report = (errorCode, message) => void messages.push({ errorCode, message });

  if (!facts.originCodes.includes(originCode)) {
    const valid = facts.originCodes.join(', ');
    report(
      'ApplicationNameUnknown',
      `X-Application-Name must be one of ${valid}, not ${quoted(originCode)}.`,
    );
  }
  const owner = findOwner(candidate, facts, report);
  checkShop(candidate, facts, report);
  checkOrderGroup(candidate, report);
  const location = chooseLocation(candidate, facts, report);
  const delivery = checkDelivery(candidate.deliveryAddress ?? undefined, facts, report);
  const lines = checkLines(candidate.items ?? [], facts, report);
  const processes = [...new Set(lines.map(({ processCode }) => processCode))].filter((code) => code !== null);
  const due = chooseDueDate(candidate, processes, location, facts, report);
  const costs = calculateCosts(candidate, lines, facts, report);

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
      isShop: Object.entries(candidate).some(
        ([field, value]) => !(field in JobCandidate.shape) && value != null,
      ),
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

/** The owner: the named user, the shop's user, or the caller. */
function findOwner(
  candidate: CustomerShopCandidate,
  { users, caller }: OrderContext,
  report: Report,
): SandboxUser | NewUser | undefined {
  const { customerUserId, userId, userDetails } = candidate;
  const named = customerUserId ?? userId;
  if (customerUserId != null && userId != null && customerUserId !== userId) {
    report('ShopUserAmbiguous', 'userId and customerUserId must be the same user if both are given.');
  }
  if (named != null && userDetails) {
    report('ShopUserAmbiguous', 'userDetails must be left out when userId or customerUserId names a user.');
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
    if (!owner) return toNewUser(candidate, shopUserId);
  }
  if (!owner) {
    report('CustomerUserUnknown', `${field} must be a user of the calling customer.`);
  } else if (!owner.active) {
    report('CustomerUserInactive', `${field} must be an active user; user ${owner.id} is not active.`);
  }
  return owner;
}

function toNewUser({ userDetails, deliveryAddress }: CustomerShopCandidate, shopUserId: number): NewUser {
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

function checkShop(candidate: CustomerShopCandidate, { customerId }: OrderContext, report: Report): void {
  if (candidate.customerId != null && candidate.customerId !== customerId) {
    report('CustomerUnknown', `customerId must be ${customerId}, the calling customer, or be left out.`);
  }
  for (const field of ['itemsTotal', 'taxTotal', 'totalAmount', 'shippingTotal'] as const) {
    const total = candidate[field];
    if (total != null && total < 0)
      report('ShopTotalInvalid', `${field} must not be negative, as ${total} is.`);
  }
  const { currencyCode } = candidate;
  if (currencyCode != null && !/^[A-Z]{3}$/.test(currencyCode)) {
    report(
      'CurrencyCodeInvalid',
      `currencyCode must be an ISO 4217 code such as USD, not ${quoted(currencyCode)}.`,
    );
  }
}

function checkOrderGroup({ orderGroup, orderGroupSequence }: CustomerShopCandidate, report: Report): void {
  if (orderGroupSequence == null) return;
  if (blank(orderGroup)) report('OrderGroupMissing', 'orderGroupSequence needs an orderGroup.');
  if (orderGroupSequence < 1) {
    report('OrderGroupSequenceInvalid', `orderGroupSequence must be at least 1, not ${orderGroupSequence}.`);
  }
}

/** The location that produces the job; the default one if the override is invalid, so that the other checks continue. */
function chooseLocation(
  { locationCodeOverride: code }: CustomerShopCandidate,
  { locations }: OrderContext,
  report: Report,
): Site {
  const usable = locations.filter(({ active, virtual }) => active && !virtual);
  const [first] = usable;
  if (!first) throw new Error('No location can produce jobs');
  if (blank(code)) return first;
  const location = usable.find((one) => one.code === code);
  if (!location) {
    const valid = usable.map((one) => one.code).join(', ');
    report('LocationInvalid', `locationCodeOverride must be one of ${valid}, not ${quoted(code)}.`);
  }
  return location ?? first;
}

function checkDelivery(
  address: DeliveryAddress | undefined,
  facts: OrderContext,
  report: Report,
): DeliveryOption | undefined {
  if (!address)
    return report(
      'AddressUnroutable',
      'deliveryAddress is required: a deliveryMethod, and an address unless it is a collection.',
    );
  const { deliveryMethod: method, countryCodeISO2: iso2 } = address;
  const valid = facts.deliveryOptions.map(({ code }) => code).join(', ');
  const option = facts.deliveryOptions.find(({ code }) => code === method);
  if (blank(method)) {
    report('DeliveryMethodMissing', `deliveryAddress.deliveryMethod is required: one of ${valid}.`);
  } else if (!option) {
    report(
      'DeliveryMethodUnknown',
      `deliveryAddress.deliveryMethod must be one of ${valid}, not ${quoted(method)}.`,
    );
  }
  if (address.isSaturdayDelivery && option && !SATURDAY_METHODS.includes(option.code ?? '')) {
    const able = facts.deliveryOptions.filter(({ code }) => SATURDAY_METHODS.includes(code ?? ''));
    report(
      'SaturdayDeliveryUnsupported',
      `deliveryAddress.isSaturdayDelivery requires one of the methods ${able.map(({ code }) => code).join(', ')}, not ${option.code}.`,
    );
  }
  if (!blank(iso2) && !facts.country(iso2)) {
    report(
      'CountryCodeInvalid',
      `deliveryAddress.countryCodeISO2 must be the two-letter iso2 of a country of GET /Lookups/countries, not ${quoted(iso2)}.`,
    );
  } else if (!option?.isCollection) {
    checkRoute(address, facts, report);
  }
  return option;
}

/** Whether an address with a valid or missing country can be routed. */
function checkRoute(address: DeliveryAddress, facts: OrderContext, report: Report): void {
  const unroutable = (why: string) =>
    report('AddressUnroutable', `deliveryAddress cannot be routed: ${why}.`);
  const need = (field: keyof DeliveryAddress, why = '') => {
    if (blank(address[field] as string | null | undefined)) unroutable(`${field} is required${why}`);
  };
  need('streetAddress');
  if (blank(address.suburb)) need('city', ' if there is no suburb');
  const country = blank(address.countryCodeISO2) ? undefined : facts.country(address.countryCodeISO2);
  if (!country) {
    need('countryCodeISO2');
    return;
  }
  const inCountry = ` for addresses in ${country.name}`;
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

/** Methods that deliver on Saturdays on request. */
const SATURDAY_METHODS: readonly string[] = ['EXPRESS', 'SATURDAY'];

function chooseDueDate(
  { dateDue, timeSensitive = false }: CustomerShopCandidate,
  processes: readonly string[],
  location: Site,
  facts: OrderContext,
  report: Report,
): Order['due'] | undefined {
  const earliest = facts.earliest(processes, location);
  if (earliest === undefined) {
    report('ShipDateUnavailable', `No day can be found on which ${location.name} could send the job out.`);
  }
  if (dateDue === undefined) {
    return earliest === undefined ? undefined : { ms: earliest, wholeDay: !timeSensitive };
  }
  if (blank(dateDue))
    return report('DateDueMissing', 'dateDue must have a value; omit it for the earliest possible date.');
  const zone = location.timezone;
  const requested = parseDueDate(dateDue, zone);
  const isDay = requested?.byMs !== requested?.ms;
  const ms =
    requested &&
    (timeSensitive
      ? isDay
        ? atTimeOfDay(requested.ms, zone, DISPATCH_TIME)
        : requested.ms
      : startOfDay(requested.ms, zone));
  if (ms === undefined || !isWritable(ms, zone))
    return report(
      'DateDueInvalid',
      `dateDue must be an ISO 8601 date up to the year 9999, such as 2026-11-30, not ${quoted(dateDue)}.`,
    );
  return earliest === undefined ? undefined : { ms: Math.max(ms, earliest), wholeDay: !timeSensitive };
}

/** Total costs of the lines, calculated in cents to avoid rounding errors. */
function calculateCosts(
  { promocode }: CustomerShopCandidate,
  lines: readonly OrderedLine[],
  facts: OrderContext,
  report: Report,
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
    // A line without a process counts as one with another process: no process at all would mean any.
    const promo = facts.promo(
      promocode,
      lines.map(({ processCode }) => processCode ?? ''),
    );
    if (promo.isValid) {
      const { applicableProcessCodes: only } = promo;
      const base = cents(
        amount,
        lines.filter(({ processCode }) => only === null || only.includes(processCode ?? '')),
      );
      discount = promo.isFixed ? Math.min(promo.discount, base) : Math.round((base * promo.discount) / 100);
    } else {
      report(
        'PromoCodeInvalid',
        `promocode must be a valid promo code: ${promo.message ?? 'it is not valid.'}`,
      );
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
