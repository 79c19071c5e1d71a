/** A site with data for every page, some of it hostile, and the list of all pages. */
import type { Page } from 'playwright-core';
import { beforeAll, expect, vi } from 'vitest';
import type { SandboxAccount } from '../../sandbox/world/world.ts';
import {
  keep,
  loaded,
  type Scripted,
  type ScriptedOptions,
  scriptedSite,
  show,
  signedIn,
  type Visit,
} from '../support/browser.ts';

/** Customer input that must be rendered as text only. */
export const HOSTILE = {
  description: '"><script>window.hurt = "script"</script> Crest',
  comments: '<img src=x onerror="window.hurt = 1"><svg onload="window.hurt = 2">{{constructor}}',
  orderNumber: '<b onmouseover=window.hurt=3>PO\u202e7-OP</b>',
  orderGroup: '</title><iframe srcdoc="<script>top.hurt = 4</script>">',
  tracking: 'javascript:window.hurt=5//https://trace.example/1',
  longWord: `${'Donaudampfschiff'.repeat(16)}`,
} as const;

/** A site with data. */
export interface Desk extends Scripted {
  /** Id of a sent message. */
  message: string;
  /** An account that was created through the API. */
  readonly created: SandboxAccount;
  /** Numbers of a job with hostile texts, a late job and an ordinary job. */
  readonly jobs: { readonly hostile: number; readonly late: number; readonly plain: number };
}

/** A page of the dashboard. It is loaded when `heading` is visible. */
export interface Place {
  readonly name: string;
  readonly path: (desk: Desk) => string;
  readonly heading: string | RegExp;
}

/** All pages. */
export const places: readonly Place[] = [
  { name: 'Now', path: () => '/', heading: 'Now' },
  { name: 'live events', path: () => '/?view=feed', heading: 'Now' },
  { name: 'Now on a wall', path: () => '/?wall=1', heading: 'Now' },
  { name: 'Jobs', path: () => '/jobs', heading: 'Jobs' },
  { name: 'a job', path: ({ jobs }) => `/jobs/acme/${jobs.plain}`, heading: /Job/ },
  { name: 'a hostile job', path: ({ jobs }) => `/jobs/acme/${jobs.hostile}`, heading: /Job/ },
  { name: 'Health', path: () => '/health', heading: 'Health' },
  { name: 'an account’s state', path: () => '/accounts/acme', heading: /./ },
  { name: 'an account’s activity', path: () => '/accounts/acme/activity', heading: /./ },
  { name: 'an endpoint’s state', path: () => '/endpoints/us/erp', heading: /./ },
  { name: 'an endpoint’s activity', path: () => '/endpoints/us/erp/activity', heading: /./ },
  { name: 'a failing endpoint’s state', path: () => '/endpoints/us/down', heading: /./ },
  { name: 'Setup', path: () => '/setup', heading: 'Setup' },
  { name: 'an account', path: () => '/accounts/acme/settings', heading: /./ },
  {
    name: 'an account that was created through the API',
    path: () => '/accounts/delta/settings',
    heading: /./,
  },
  { name: 'a new account', path: () => '/setup/new-account', heading: /./ },
  { name: 'an endpoint', path: () => '/endpoints/us/erp/settings', heading: /./ },
  { name: 'a new endpoint', path: () => '/setup/new-endpoint', heading: /./ },
  { name: 'alert rules', path: () => '/setup/alert-rules', heading: 'Alert rules' },
  { name: 'a new alert rule', path: () => '/setup/new-alert-rule', heading: /./ },
  { name: 'keys', path: () => '/setup/keys', heading: /./ },
  { name: 'wall displays', path: () => '/setup/wall-displays', heading: 'Wall displays' },
  { name: 'a new key', path: () => '/setup/new-key', heading: /./ },
  { name: 'notifications of all accounts', path: () => '/setup/customers', heading: /./ },
  { name: 'notification settings', path: () => '/setup/customers/acme', heading: /./ },
  { name: 'recipients', path: () => '/setup/customers/acme/recipients', heading: /./ },
  { name: 'templates', path: () => '/setup/customers/acme/templates', heading: /./ },
  { name: 'a template', path: () => '/setup/customers/acme/templates/dispatched/email/en-US', heading: /./ },
  { name: 'messages', path: () => '/setup/customers/acme/messages', heading: /./ },
  { name: 'a message', path: ({ message }) => `/setup/customers/acme/messages/${message}`, heading: /./ },
  { name: 'suppressions', path: () => '/setup/customers/acme/suppressions', heading: /./ },
  { name: 'the checklist', path: () => '/start', heading: 'Getting started' },
  { name: 'an unknown page', path: () => '/setup/nowhere', heading: 'Page not found' },
];

/** Creates a site with data for a test file. */
export function furnishedDesk(options: ScriptedOptions = {}): Desk {
  const jobs = { hostile: 0, late: 0, plain: 0 };
  const site = scriptedSite({
    ...options,
    prepare: (world, account) => {
      world.addAccount({ region: 'nz', name: 'kiwi' }).createJob({ description: 'Harbour tee' });
      jobs.plain = account.createJob({
        status: 'Scheduled',
        description: 'Left chest logo',
        orderGroup: 'Spring',
      });
      jobs.late = account.createJob({ status: 'On hold', dateDue: Date.now() - 86_400_000 });
      jobs.hostile = account.createJob({
        status: 'Scheduled',
        description: HOSTILE.description,
        comments: HOSTILE.comments,
        orderNumber: HOSTILE.orderNumber,
        orderGroup: HOSTILE.orderGroup,
        lines: [{ description: HOSTILE.description, comments: HOSTILE.comments, garment: HOSTILE.longWord }],
      });
      account.createJob({ description: HOSTILE.longWord, orderNumber: HOSTILE.longWord });
      account.createJob({ status: 'In production', dateDue: Date.now() + 3_600_000, mustDate: true });
      for (let at = 0; at < 8; at += 1) account.createJob({ status: 'Scheduled', orderGroup: 'Autumn' });
      options.prepare?.(world, account);
    },
  });
  const created = site.world.addAccount({ region: 'us', name: 'delta' });
  created.createJob({ description: 'Staff shirt' });
  const desk = Object.assign(site, { jobs, created, message: '' });
  beforeAll(() => furnish(desk), 180_000);
  return desk;
}

async function furnish(desk: Desk): Promise<void> {
  const { account, jobs, receiver } = desk;
  receiver.answer = (_, path) =>
    path.endsWith('/down') ? { status: 422, body: HOSTILE.comments } : { status: 204 };
  const branding = { name: 'Acme', color: '#1d4ed8' };
  const settings = { enabled: true, windowSeconds: 0, branding };
  await desk.api('/accounts/acme/notifications', { method: 'PUT', body: settings });
  await desk.api('/accounts/acme/recipients', { body: { name: 'Ann Lee', email: 'ann@customer.example' } });
  await desk.api('/accounts/acme/suppressions', {
    body: { channel: 'email', address: 'gone@customer.example' },
  });
  const template = { subject: '{{ order }} is on its way', intro: 'Hello {{ name }}, it was dispatched.' };
  await desk.api('/accounts/acme/templates/dispatched/email/en-US', { method: 'PUT', body: template });
  for (const id of ['erp', 'down']) {
    const url = id === 'erp' ? receiver.url : `${receiver.url}/down`;
    await desk.api('/endpoints', { body: { id, region: 'us', url, accounts: ['acme'] } });
  }
  await desk.makeKey('read', ['acme']);
  const { clientId, clientSecret } = desk.created;
  await desk.api('/accounts', {
    body: { id: 'delta', region: 'us', credentials: { clientId, clientSecret } },
  });
  // After the baseline, changes of the jobs are emitted.
  await waitForEvent(desk, 'account.baselined');
  account.setStatus(jobs.plain, 'In production');
  account.dispatch(jobs.hostile, {
    tracking: [{ trackingNumber: HOSTILE.comments, trackingLink: HOSTILE.tracking }],
  });
  await Promise.all([
    waitForEvent(desk, 'job.status_changed'),
    waitForEvent(desk, 'job.dispatched'),
    waitForEvent(desk, 'job.tracking_added'),
  ]);
  type Messages = { messages: { id: string; state: string }[] };
  await until(async () => {
    const { messages } = await desk.api<Messages>('/accounts/acme/messages');
    desk.message = messages.find(({ state }) => state === 'sent')?.id ?? '';
    return desk.message !== '';
  });
  type Parked = { parked: unknown[] };
  await until(async () => (await desk.api<Parked>('/endpoints/down/parked')).parked.length > 0);
}

/** Waits until an account of the desk has an event of a type. */
function waitForEvent(desk: Desk, type: string): Promise<void> {
  return until(async () => {
    const { events } = await desk.api<{ events: { type: string }[] }>('/accounts/acme/events?limit=500');
    return events.some((event) => event.type === type);
  });
}

function until(holds: () => Promise<boolean>): Promise<void> {
  return vi.waitFor(async () => expect(await holds()).toBe(true), { timeout: 120_000, interval: 100 });
}

/** Opens a page of the list, signed in, and waits until it is loaded. */
export async function arrive(desk: Desk, place: Place, look: Visit & { key?: string } = {}): Promise<Page> {
  const page = await signedIn(desk, place.path(desk), look);
  await waitForPage(page, place);
  return page;
}

/** Opens a page of the list in the same tab and waits until it is loaded. */
export async function goTo(desk: Desk, page: Page, place: Place): Promise<void> {
  await page.goto(`${desk.url}${place.path(desk)}`);
  await waitForPage(page, place);
}

/**
 * Returns a function that opens pages of the list in one tab, because a new browser context loads all scripts again. The page that the
 * tab shows is not loaded again. After a failed test, there is a new tab.
 */
export function sharedTab(desk: Desk, look: Visit = {}): (place: Place) => Promise<Page> {
  let tab: Page | undefined;
  let shown: Place | undefined;
  return async (place) => {
    if (!tab || tab.isClosed()) {
      tab = await arrive(desk, place, look);
      keep(tab);
    } else {
      await show(tab, { theme: 'light', size: look.size ?? 'desktop' });
      if (place !== shown) await goTo(desk, tab, place);
    }
    shown = place;
    return tab;
  };
}

async function waitForPage(page: Page, { heading }: Place): Promise<void> {
  await loaded(page);
  await page.getByRole('heading', { name: heading, level: 1 }).waitFor();
}
