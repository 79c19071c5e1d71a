/** Fields of a recipient: validation, and their form in items. */
import type * as z from 'zod';
import { getRevision, rejected, withoutUndefined } from '../resources.ts';
import { type AccountRef, keys, recipientPlace } from '../storage/schema.ts';
import type { Item, Write } from '../storage/table.ts';
import type { Checked } from '../validation.ts';
import { checkMobile, getAddress } from './addresses.ts';
import { kindNames, type NewRecipient, type RecipientUpdate } from './notification-input.ts';
import type { Recipient } from './records.ts';
import {
  type Channel,
  channels,
  DEFAULT_KINDS,
  type Locale,
  type MessageKind,
  type Scope,
  type SentKind,
} from './types.ts';

/** Maximum number of retries after concurrent modification. */
export const ATTEMPTS = 5;

/** All settable fields of a recipient, validated together. */
export type RecipientFields = Pick<
  Recipient,
  'scope' | 'name' | 'email' | 'mobile' | 'locale' | 'zone' | 'channels' | 'kinds' | 'paused'
>;

/** Returns the sort key prefix of a scope in the partition of pointers. */
export function toScopeKey(scope: Scope): string {
  switch (scope.for) {
    case 'account':
      return recipientPlace.account();
    case 'orderGroup':
      return recipientPlace.orderGroup(scope.orderGroup);
    case 'orderNumber':
      return recipientPlace.orderNumber(scope.orderNumber);
    case 'job':
      return recipientPlace.job(scope.jobNumber);
  }
}

export function toPointerWrite(ref: AccountRef, scope: Scope, recipient: string): Write {
  return { put: { ...keys.recipientPlace(ref, toScopeKey(scope), recipient), recipient } };
}

/** Settable fields of a recipient. */
export type RecipientInput = Omit<z.infer<typeof NewRecipient>, 'id'>;

/** Returns the fields of a recipient with a change applied. If all its addresses are used, the channels follow the changed addresses. */
export function applyChange(before: Recipient, change: RecipientUpdate): RecipientInput {
  const { scope, name, email, mobile, locale, zone, channels, kinds, paused } = before;
  const { orderGroup, orderNumber, jobNumber, ...others } = change;
  const named = { orderGroup, orderNumber, jobNumber };
  const isReplaced = Object.values(named).some((value) => value !== undefined && value !== null);
  const former = scopeFields(scope);
  const place = isReplaced ? named : { ...former, ...withoutUndefined(named) };
  const hasAll = channels.length === listChannels(before).length;
  return {
    ...{ name, email, mobile, locale, zone, paused },
    ...{ channels: hasAll ? null : [...channels], kinds: [...kinds] },
    ...withoutUndefined(others),
    ...place,
  };
}

/** Returns the field that selects the jobs of a scope, if there is one. */
export function scopeFields(scope: Scope): Pick<RecipientInput, 'orderGroup' | 'orderNumber' | 'jobNumber'> {
  const { for: _, ...place } = scope;
  return place;
}

/** Validates what the schema cannot: the number by the region's rules, the channels against the addresses, at most one scope. */
export function toRecipientFields(region: string, given: RecipientInput): Checked<RecipientFields> {
  const { name = null, email = null, locale = null, zone = null, paused } = given;
  const scope = toScope(given);
  if (!scope) {
    return reject('At most one of orderGroup, orderNumber and jobNumber is accepted');
  }
  const number = given.mobile ? checkMobile(given.mobile, region) : undefined;
  if (number?.kind === 'rejected') return reject(`mobile ${number.rule}`);
  const mobile = number?.address ?? null;
  if (email === null && mobile === null) return reject('email is required unless mobile is given');
  const possible = listChannels({ email, mobile });
  const wanted = given.channels ?? possible;
  const missing = wanted.find((channel) => !possible.includes(channel));
  if (missing) {
    const field = missing === 'email' ? 'email' : 'mobile';
    return reject(`${field} is required for the channel ${missing}`);
  }
  const value = {
    ...{ scope, name, email, mobile, locale, zone, paused },
    channels: channels.filter((channel) => wanted.includes(channel)),
    kinds: kindNames.filter((kind) => (given.kinds ?? DEFAULT_KINDS).includes(kind)),
  };
  return { kind: 'checked', value };
}

/** Returns the channels for which there is an address. */
function listChannels(addresses: Pick<Recipient, 'email' | 'mobile'>): Channel[] {
  return channels.filter((channel) => getAddress(addresses, channel) !== null);
}

export const reject = (reason: string) => rejected(`${reason}.`);

function toScope({ orderGroup, orderNumber, jobNumber }: RecipientInput): Scope | undefined {
  const scopes: Scope[] = [
    ...(orderGroup ? [{ for: 'orderGroup', orderGroup } as const] : []),
    ...(orderNumber ? [{ for: 'orderNumber', orderNumber } as const] : []),
    ...(jobNumber ? [{ for: 'job', jobNumber } as const] : []),
  ];
  return scopes.length > 1 ? undefined : (scopes[0] ?? { for: 'account' });
}

/** Returns the fields of a recipient as attributes. Lists are sorted, so that equal recipients have equal attributes. */
export function toAttributes(fields: RecipientFields & { readonly muted?: readonly Channel[] }) {
  const { scope, name, email, mobile, locale, zone, channels, kinds, paused, muted } = fields;
  const place = {
    orderGroup: undefined,
    orderNumber: undefined,
    jobNumber: undefined,
    ...scopeFields(scope),
  };
  const texts = { name, email, mobile, locale, zone };
  const present = Object.entries(texts).map(([field, text]) => [field, text ?? undefined]);
  return {
    ...(Object.fromEntries(present) as { [field: string]: string | undefined }),
    ...{ channels, kinds, paused },
    ...(muted === undefined ? {} : { muted }),
    ...(place as { orderGroup?: string; orderNumber?: string; jobNumber?: number }),
  };
}

/**
 * Returns whether a recipient is sent messages of a kind by a channel. The kinds of a recipient select among messages that follow from
 * events, so they do not apply to notes. The SMS consent of the API user upstream (`textNotifyDispatch`) covers dispatches only, for any
 * set kinds.
 */
export function acceptsMessage(
  { paused, channels: own, kinds, source }: Recipient,
  channel: Channel,
  kind: SentKind,
): boolean {
  if (paused || !own.includes(channel)) return false;
  if (kind !== 'note' && !kinds.includes(kind)) return false;
  return source !== 'upstream' || channel !== 'sms' || kind === 'dispatched';
}

export function toRecipient(ref: AccountRef, item: Item): Recipient {
  const text = (name: string) => (typeof item[name] === 'string' ? item[name] : null);
  const { orderGroup, orderNumber, jobNumber } = item as Partial<RecipientInput>;
  return {
    region: ref.region,
    account: ref.account,
    id: item.sk,
    scope: toScope({ orderGroup, orderNumber, jobNumber, paused: false }) ?? { for: 'account' },
    name: text('name'),
    email: text('email'),
    mobile: text('mobile'),
    locale: text('locale') as Locale | null,
    zone: text('zone'),
    channels: (item.channels ?? []) as readonly Channel[],
    kinds: (item.kinds ?? []) as readonly MessageKind[],
    paused: item.paused === true,
    source: item.source === 'upstream' ? 'upstream' : 'manual',
    createdAt: Number(item.createdAt),
    revision: getRevision(item),
  };
}
