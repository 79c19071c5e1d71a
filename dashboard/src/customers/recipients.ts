/** Recipients as the values of a form, as the API takes them, and as they are found in a list. */
import type * as z from 'zod';
import type * as views from '../../../shared/api/notification-views.ts';
import { csvHeader, formatCsvRow } from '../../../shared/notifications/recipients-file.ts';
import { type Channel, channels, DEFAULT_KINDS } from '../../../shared/notifications/types.ts';
import { emptyToNull, parseWholeNumber } from './settings.ts';

export type Recipient = z.infer<typeof views.Recipient>;

/** By what somebody is told: what there is an address for, or as it was chosen. */
export type ChannelChoice = 'auto' | 'email' | 'sms' | 'both';
/** For which jobs somebody is. */
export type ScopeName = 'account' | 'orderGroup' | 'orderNumber' | 'jobNumber';

/** What stands in the form: nothing as an empty text. `channels` is a choice. */
export function toRecipientValues(recipient?: Recipient) {
  const scope: ScopeName =
    (['orderGroup', 'orderNumber', 'jobNumber'] as const).find(
      (one) => recipient && recipient[one] !== null,
    ) ?? 'account';
  return {
    id: '',
    name: recipient?.name ?? '',
    email: recipient?.email ?? '',
    mobile: recipient?.mobile ?? '',
    locale: recipient?.locale ?? '',
    zone: recipient?.zone ?? '',
    channels: recipient ? toChannelChoice(recipient) : ('auto' as ChannelChoice),
    kinds: [...(recipient?.kinds ?? DEFAULT_KINDS)] as string[],
    paused: recipient?.paused ?? false,
    scope,
    orderGroup: recipient?.orderGroup ?? '',
    orderNumber: recipient?.orderNumber ?? '',
    jobNumber: recipient?.jobNumber === null || !recipient ? '' : String(recipient.jobNumber),
  };
}
export type RecipientValues = ReturnType<typeof toRecipientValues>;

/** What makes a new recipient. */
export function toNewRecipient(values: RecipientValues): Readonly<Record<string, unknown>> {
  const { id, scope } = values;
  const said = toFields(values);
  const { orderGroup, orderNumber, jobNumber, ...others } = said;
  const given = Object.entries(others).filter(([, value]) => value !== null);
  return {
    ...(id.trim() === '' ? {} : { id: id.trim() }),
    ...Object.fromEntries(given),
    ...(scope === 'account' ? {} : { [scope]: said[scope] }),
  };
}

/** What of a recipient is to be changed: only what is not as it was. */
export function toRecipientChange(
  values: RecipientValues,
  before: Recipient,
): Readonly<Record<string, unknown>> {
  const was = toFields(toRecipientValues(before));
  const said = toFields(values);
  const differs = (name: keyof typeof said): boolean =>
    JSON.stringify(said[name]) !== JSON.stringify(was[name]);
  const place = ['orderGroup', 'orderNumber', 'jobNumber'] as const;
  const moves = place.some(differs);
  const names = (Object.keys(said) as (keyof typeof said)[]).filter(
    (name) => differs(name) || (moves && place.some((one) => one === name)),
  );
  return Object.fromEntries(names.map((name) => [name, said[name]]));
}

function toFields(values: RecipientValues) {
  const { scope } = values;
  return {
    name: emptyToNull(values.name),
    email: emptyToNull(values.email),
    mobile: emptyToNull(values.mobile),
    locale: emptyToNull(values.locale),
    zone: emptyToNull(values.zone),
    channels: channelsByChoice[values.channels],
    kinds: [...values.kinds].sort(),
    paused: values.paused,
    // What was chosen has to be said, too.
    orderGroup: scope === 'orderGroup' ? values.orderGroup : null,
    orderNumber: scope === 'orderNumber' ? values.orderNumber : null,
    jobNumber: scope === 'jobNumber' ? parseWholeNumber(values.jobNumber) : null,
  };
}

const channelsByChoice: Readonly<Record<ChannelChoice, readonly Channel[] | null>> = {
  auto: null,
  email: ['email'],
  sms: ['sms'],
  both: ['email', 'sms'],
};

/** A recipient whose channels are those that there is an address for is shown so: it was most likely meant. */
function toChannelChoice({ email, mobile, channels: chosen }: Recipient): ChannelChoice {
  const addresses = { email, sms: mobile };
  const reachable = channels.filter((channel) => addresses[channel] !== null);
  if (reachable.join() === chosen.join()) return 'auto';
  const [only] = chosen;
  return chosen.length > 1 ? 'both' : (only ?? 'auto');
}

/** Those in whose names, addresses or scopes all words of a text are. */
export function filterRecipients(recipients: readonly Recipient[], text: string): readonly Recipient[] {
  const words = text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  if (words.length === 0) return recipients;
  return recipients.filter((one) => {
    const { id, name, email, mobile, orderGroup, orderNumber, jobNumber } = one;
    const all = [id, name, email, mobile, orderGroup, orderNumber, jobNumber].join(' ').toLowerCase();
    return words.every((word) => all.includes(word));
  });
}

/** The file that an export writes and an import reads; what the ordering service says of its own user is made anew by itself. */
export function toCsv(recipients: readonly Recipient[]): string {
  const rows = recipients.filter(({ source }) => source === 'manual').map(formatCsvRow);
  return `${[csvHeader, ...rows].join('\n')}\n`;
}
