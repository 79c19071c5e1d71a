/** Recipients of the demo's accounts, created through the same use-cases as by the API. */
import type * as z from 'zod';
import { SHARED_GROUP } from '../sandbox/simulation/initial-jobs.ts';
import type { RegionCode } from '../sandbox/world/regions.ts';
import type { NewRecipient, SettingsInput } from '../shared/notifications/notification-input.ts';
import { createRecipient } from '../shared/notifications/recipients.ts';
import { type NotificationDeps, saveSettings } from '../shared/notifications/settings.ts';
import type { AccountRef } from '../shared/storage/schema.ts';

/** Short, so that messages appear soon. Long enough to combine jobs that are dispatched together. */
const WINDOW_SECONDS = 4;

interface DemoAccount {
  readonly branding: z.input<typeof SettingsInput>['branding'];
  readonly replyTo: string;
  /** Absent: no SMS. Not all countries allow a sender id. */
  readonly senderId?: string | null;
  readonly recipients: readonly z.input<typeof NewRecipient>[];
}

/** Recipients of each region's first account. Names and domains are fictional. The numbers are reserved for films or unassigned. */
const DEMO_ACCOUNTS: Readonly<Record<RegionCode, DemoAccount>> = {
  us: {
    branding: {
      name: 'Bluebird Apparel',
      color: '#1d4ed8',
      website: 'https://bluebird.example',
      footer: 'Bluebird Apparel, 18 Larimer Street, Denver CO',
    },
    replyTo: 'hello@bluebird.example',
    senderId: null,
    recipients: [
      { id: 'owner', name: 'Riley Chen', email: 'riley@bluebird.example' },
      {
        id: 'warehouse',
        name: 'Denver warehouse',
        email: 'dock@bluebird.example',
        mobile: '+1 202 555 0143',
        zone: 'America/Denver',
      },
    ],
  },
  nz: {
    branding: {
      name: 'Kōwhai Print Co',
      color: '#a16207',
      website: 'https://kowhaiprint.example',
      footer: 'Kōwhai Print Co, 4 Beach Road, Auckland',
    },
    replyTo: 'kiaora@kowhaiprint.example',
    recipients: [
      { id: 'owner', name: 'Aroha Ngata', email: 'aroha@kowhaiprint.example' },
      // A recipient of a single order group.
      { id: 'coast-cafe', name: 'Coast Café', email: 'orders@coastcafe.example', orderGroup: SHARED_GROUP },
    ],
  },
  au: {
    branding: {
      name: 'Wattle Lane',
      color: '#15803d',
      website: 'https://wattlelane.example',
      footer: 'Wattle Lane, 77 Boundary Street, Brisbane QLD',
    },
    replyTo: 'team@wattlelane.example',
    senderId: 'WattleLane',
    recipients: [
      {
        id: 'owner',
        name: 'Mick Tran',
        email: 'mick@wattlelane.example',
        zone: 'Australia/Brisbane',
        kinds: ['dispatched', 'tracking', 'due_date_changed'],
      },
      { id: 'warehouse', name: 'Brisbane dock', mobile: '+61 491 570 156', zone: 'Australia/Brisbane' },
    ],
  },
  uk: {
    branding: {
      name: 'Thistle & Thread',
      color: '#7e22ce',
      website: 'https://thistlethread.example',
      footer: 'Thistle & Thread Ltd, 9 Canal Wharf, Leeds',
    },
    replyTo: 'help@thistlethread.example',
    recipients: [
      {
        id: 'owner',
        name: 'Fiona Baird',
        email: 'fiona@thistlethread.example',
        kinds: ['dispatched', 'tracking', 'dispatch_revoked', 'due_date_changed', 'cancelled'],
      },
    ],
  },
  eu: {
    branding: {
      name: 'Atelier Nordlys',
      color: '#be123c',
      website: 'https://nordlys.example',
      footer: 'Atelier Nordlys, Keizersgracht 12, Amsterdam',
    },
    replyTo: 'studio@nordlys.example',
    senderId: 'Nordlys',
    recipients: [
      {
        id: 'lager',
        name: 'Jonas Weber',
        email: 'lager@nordlys.example',
        mobile: '+49 1522 8895456',
        locale: 'de',
        zone: 'Europe/Berlin',
      },
      {
        id: 'boutique',
        name: 'Camille Roux',
        email: 'camille@nordlys.example',
        locale: 'fr',
        zone: 'Europe/Paris',
      },
    ],
  },
};

/** Sets the notification settings and recipients of each account. The accounts must exist. */
export async function addDemoRecipients(
  deps: NotificationDeps,
  accounts: readonly AccountRef[],
): Promise<void> {
  await Promise.all(
    accounts.map(async (ref) => {
      const { branding, replyTo, senderId, recipients } = DEMO_ACCOUNTS[ref.region as RegionCode];
      const settings: z.input<typeof SettingsInput> = {
        enabled: true,
        windowSeconds: WINDOW_SECONDS,
        ...{ branding, replyTo },
        sms: { enabled: senderId !== undefined, senderId: senderId ?? null, quietHours: null },
      };
      const saved = await saveSettings(deps, ref, settings);
      if (saved.kind !== 'saved') throw new Error(saved.reason);
      for (const recipient of recipients) {
        const created = await createRecipient(deps, ref, recipient);
        if (created.kind !== 'created') throw new Error(created.reason);
      }
    }),
  );
}
