/** Recipients: form values, request bodies, list filter and CSV export. */
import type { Recipient } from '../../../client/index.ts';
import { csvHeader, formatCsvRow } from '../../../shared/notifications/recipients-file.ts';
import { type Channel, channels, DEFAULT_KINDS } from '../../../shared/notifications/types.ts';
import { emptyToNull, isEqual, parseNumber } from '../form-values.ts';
import { matchesQuery } from '../texts.ts';

export type { Recipient };

/** Channels of a recipient. `auto`: every channel with an address. */
export type ChannelChoice = 'auto' | 'email' | 'sms' | 'both';
/** Which jobs a recipient is notified of. */
export type ScopeName = 'account' | 'orderGroup' | 'orderNumber' | 'jobNumber';

const SCOPE_FIELDS = ['orderGroup', 'orderNumber', 'jobNumber'] as const;

/** Converts a recipient to form values: `null` as empty text. Default: an empty form. */
export function toRecipientValues(recipient?: Recipient) {
  const scope: ScopeName = SCOPE_FIELDS.find((one) => recipient && recipient[one] !== null) ?? 'account';
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

/** Converts form values to the body of a new recipient. */
export function toNewRecipient(values: RecipientValues): Readonly<Record<string, unknown>> {
  const { id, scope } = values;
  const fields = toFields(values);
  const { orderGroup, orderNumber, jobNumber, ...others } = fields;
  const given = Object.entries(others).filter(([, value]) => value !== null);
  return {
    ...(id.trim() === '' ? {} : { id: id.trim() }),
    ...Object.fromEntries(given),
    ...(scope === 'account' ? {} : { [scope]: fields[scope] }),
  };
}

/** Converts form values to the body of a change: the fields that differ. Scope fields are sent together. */
export function toRecipientChange(
  values: RecipientValues,
  before: Recipient,
): Readonly<Record<string, unknown>> {
  const old = toFields(toRecipientValues(before));
  const fields = toFields(values);
  const differs = (name: keyof typeof fields): boolean => !isEqual(fields[name], old[name]);
  const isScopeChanged = SCOPE_FIELDS.some(differs);
  const names = (Object.keys(fields) as (keyof typeof fields)[]).filter(
    (name) => differs(name) || (isScopeChanged && SCOPE_FIELDS.some((one) => one === name)),
  );
  return Object.fromEntries(names.map((name) => [name, fields[name]]));
}

function toFields(values: RecipientValues) {
  const { scope, name, email, mobile, locale, zone } = values;
  return {
    ...emptyToNull({ name, email, mobile, locale, zone }),
    channels: channelsByChoice[values.channels],
    kinds: [...values.kinds].sort(),
    paused: values.paused,
    // Not `emptyToNull`: the chosen scope requires a value.
    orderGroup: scope === 'orderGroup' ? values.orderGroup : null,
    orderNumber: scope === 'orderNumber' ? values.orderNumber : null,
    jobNumber: scope === 'jobNumber' ? (parseNumber(values.jobNumber) ?? '') : null,
  };
}

const channelsByChoice: Readonly<Record<ChannelChoice, readonly Channel[] | null>> = {
  auto: null,
  email: ['email'],
  sms: ['sms'],
  both: ['email', 'sms'],
};

/** Returns `auto` if the channels are exactly those with an address. */
function toChannelChoice({ email, mobile, channels: chosen }: Recipient): ChannelChoice {
  const addresses = { email, sms: mobile };
  const reachable = channels.filter((channel) => addresses[channel] !== null);
  if (reachable.join() === chosen.join()) return 'auto';
  const [only] = chosen;
  return chosen.length > 1 ? 'both' : (only ?? 'auto');
}

/** Returns the recipients whose id, name, addresses or scope contain all search terms. */
export function filterRecipients(recipients: readonly Recipient[], text: string): readonly Recipient[] {
  return recipients.filter(({ id, name, email, mobile, orderGroup, orderNumber, jobNumber }) =>
    matchesQuery(text, id, name, email, mobile, orderGroup, orderNumber, jobNumber),
  );
}

/** Returns the recipients as CSV for a later import. Omits the recipient derived from the ordering API. */
export function toCsv(recipients: readonly Recipient[]): string {
  const rows = recipients.filter(({ source }) => source === 'manual').map(formatCsvRow);
  return `${[csvHeader, ...rows].join('\n')}\n`;
}
