/**
 * The recipient that is the API user of the ordering API. Upstream determines the addresses of this user and the channels that the user
 * wants. Users of Jobwire may set everything else, and remove channels.
 */
import type { AccountUser } from '../ordering/schemas.ts';
import { getRevision, hasAttributes, revisionUnchanged } from '../resources.ts';
import { type AccountRef, keys, recipientPlace } from '../storage/schema.ts';
import type { Item } from '../storage/table.ts';
import type { Checked } from '../validation.ts';
import { checkMobile } from './addresses.ts';
import { checkEmail } from './email-address.ts';
import type { RecipientUpdate } from './notification-input.ts';
import { ATTEMPTS, type RecipientFields, reject, toPointerWrite, toRecipient } from './recipient-fields.ts';
import { toRecipientSearchItems, toSearchWrites } from './recipient-search.ts';
import type { NotificationDeps } from './settings.ts';
import { type Channel, DEFAULT_KINDS, OWN_USER } from './types.ts';

/** Fields of the own user's recipient that users of Jobwire may set. */
const OWN_FIELDS: readonly string[] = ['locale', 'zone', 'channels', 'kinds', 'paused'];

/** Applies a change to the own user's recipient: any field but the identity. Channels can only be removed. */
export function applyOwnUserChange(
  item: Item,
  change: RecipientUpdate,
): Checked<RecipientFields & { readonly muted: readonly Channel[] }> {
  const foreign = Object.entries(change).find(
    ([name, value]) => value !== undefined && !OWN_FIELDS.includes(name),
  );
  if (foreign) {
    return reject(`${foreign[0]} must be changed in the ordering API: this recipient is the API user`);
  }
  const wanted = (item.wanted ?? []) as readonly Channel[];
  const muted = (item.muted ?? []) as readonly Channel[];
  const { channels: requested = wanted.filter((channel) => !muted.includes(channel)) } = change;
  // `null`: all channels that the user wants upstream.
  const kept = requested ?? wanted;
  if (kept.some((channel) => !wanted.includes(channel))) {
    return reject('channels must contain only channels that the user has enabled in the ordering API');
  }
  const others = muted.filter((channel) => !wanted.includes(channel));
  const before = toRecipient({ region: '', account: '' }, item);
  return {
    kind: 'checked',
    value: {
      ...before,
      locale: change.locale === undefined ? before.locale : change.locale,
      zone: change.zone === undefined ? before.zone : change.zone,
      kinds: change.kinds === undefined ? before.kinds : (change.kinds ?? DEFAULT_KINDS),
      paused: change.paused ?? before.paused,
      channels: wanted.filter((channel) => kept.includes(channel)),
      muted:
        change.channels === undefined
          ? muted
          : [...others, ...wanted.filter((channel) => !kept.includes(channel))],
    },
  };
}

/**
 * Synchronizes the own user's recipient with the user settings upstream, or hides it when the user wants no notifications or no longer
 * exists (`null`). Fields that users of Jobwire set are kept. `since` is the time the account enabled this. If it is disabled or deleted since, nothing is written.
 * Returns whether anything was written.
 */
export async function syncOwnUser(
  { table, newId, now }: Pick<NotificationDeps, 'table' | 'newId' | 'now'>,
  ref: AccountRef,
  since: number,
  user: AccountUser | null,
): Promise<boolean> {
  const mobile = user?.mobile ? checkMobile(user.mobile, ref.region) : undefined;
  const mail = user?.emailAddress ? checkEmail(user.emailAddress) : undefined;
  const addresses = {
    email: mail?.kind === 'checked' ? mail.address : undefined,
    mobile: mobile?.kind === 'checked' ? mobile.address : undefined,
  };
  const isActive = user !== null && user.active !== false;
  const wanted: Channel[] = [
    ...(isActive && user.receiveEmails === true && addresses.email ? (['email'] as const) : []),
    ...(isActive && user.textNotifyDispatch === true && addresses.mobile ? (['sms'] as const) : []),
  ];
  const name = `${user?.firstName ?? ''} ${user?.lastName ?? ''}`.replaceAll(/[\p{Cc}\s]+/gu, ' ').trim();
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const before = await table.get(keys.recipient(ref, OWN_USER));
    if (!before && wanted.length === 0) return false;
    const muted = (before?.muted ?? []) as readonly Channel[];
    const gone = wanted.length === 0 ? true : undefined;
    const synced = {
      // A hidden recipient keeps no personal data of the user.
      name: gone ? undefined : name.slice(0, 200) || undefined,
      email: wanted.includes('email') ? addresses.email : undefined,
      mobile: wanted.includes('sms') ? addresses.mobile : undefined,
      wanted,
      channels: wanted.filter((channel) => !muted.includes(channel)),
      gone,
    };
    if (before && hasAttributes(before, synced)) return false;
    const at = now();
    const item: Item = {
      ...keys.recipient(ref, OWN_USER),
      ...{ kinds: DEFAULT_KINDS, paused: false, muted, createdAt: at },
      ...before,
      ...synced,
      ...{ source: 'upstream', revision: before ? getRevision(before) + 1 : 1, changedAt: at },
    };
    const place = toPointerWrite(ref, { for: 'account' }, OWN_USER);
    const [former, entries] = [before, item].map((one) => one && toRecipientSearchItems(ref, one));
    const written = await table.transact(
      [
        { put: item, when: before ? [revisionUnchanged(before)] : [['pk', 'absent']] },
        gone ? { delete: keys.recipientPlace(ref, recipientPlace.account(), OWN_USER) } : place,
        { check: keys.account(ref), when: [['ownUserSince', '=', since]] },
        ...toSearchWrites(former, entries),
      ],
      newId(),
    );
    if (written.done) return true;
    if (written.failed.includes(2)) return false;
  }
  return false;
}
