/** Entries of the command palette: pages and actions that the key permits, results of a search, and recent ones. Independent of React. */
import type { ResponseData } from '../../../client/index.ts';
import { RECENT_KEY, type Session } from '../session.ts';
import { sessionStore } from '../storage.ts';
import { ACCOUNTS_PATH, accountHref, ENDPOINTS_PATH, endpointHref, jobHref } from '../urls.ts';

/** An action that is not a page. */
type Action = 'wall display' | 'switch colours' | 'API reference' | 'sign out';

/** An entry of the palette. */
export interface Entry {
  readonly id: string;
  readonly label: string;
  /** Quiet text after the label. */
  readonly hint?: string | undefined;
  /** Path that it opens, with query parameters. */
  readonly target:
    | { readonly path: string; readonly params?: Readonly<Record<string, string | undefined>> }
    | { readonly action: Action };
}

/** Entries of one kind. */
export interface Group {
  readonly name: string;
  readonly entries: readonly Entry[];
}

export type SearchResult = ResponseData<'get', '/v1/search'>['results'][number];

const page = (label: string, path: string, params?: Readonly<Record<string, string>>): Entry => ({
  id: `page ${label}`,
  label,
  target: { path, ...(params && { params }) },
});
const action = (label: string, name: Action): Entry => ({
  id: `action ${label}`,
  label,
  target: { action: name },
});

/** Returns the pages and actions that a session permits and whose name has a word that begins with the text. */
export function listCommands(
  { hasRole, hasAllAccounts }: Pick<Session, 'hasRole' | 'hasAllAccounts'>,
  text: string,
): Group[] {
  const admin = hasRole('admin');
  const groups: Group[] = [
    {
      name: 'Pages',
      entries: [
        page('Now', '/'),
        page('Jobs', '/jobs'),
        page('Late jobs', '/jobs', { late: 'true' }),
        page('Health', '/health'),
        page('Setup', '/setup'),
        page('Accounts', ACCOUNTS_PATH),
        page('Endpoints', ENDPOINTS_PATH),
        page('Notifications', '/setup/customers'),
        page('Alert rules', '/setup/alert-rules'),
        page('Keys', '/setup/keys'),
        page('Wall displays', '/setup/wall-displays'),
        page('Getting started', '/start'),
      ],
    },
    {
      name: 'Actions',
      entries: [
        ...(admin && hasAllAccounts ? [page('Add an account', '/setup/new-account')] : []),
        ...(admin
          ? [
              page('New endpoint', '/setup/new-endpoint'),
              page('New alert rule', '/setup/new-alert-rule'),
              page('New key', '/setup/new-key'),
            ]
          : []),
        action('Wall display', 'wall display'),
        action('Switch colours', 'switch colours'),
        action('API reference', 'API reference'),
        action('Sign out', 'sign out'),
      ],
    },
  ];
  const wanted = text.trim().toLowerCase();
  return withoutEmpty(
    groups.map(({ name, entries }) => ({
      name,
      entries: entries.filter(({ label }) => ` ${label.toLowerCase()}`.includes(` ${wanted}`)),
    })),
  );
}

const KINDS: readonly (readonly [SearchResult['kind'], name: string])[] = [
  ['account', 'Accounts'],
  ['job', 'Jobs'],
  ['orderNumber', 'Order numbers'],
  ['orderGroup', 'Order groups'],
  ['trackingNumber', 'Tracking numbers'],
  ['recipient', 'Recipients'],
  ['endpoint', 'Endpoints'],
];

/** Returns the results of a search by kind. */
export function toGroups(results: readonly SearchResult[]): Group[] {
  return withoutEmpty(
    KINDS.map(([kind, name]) => ({
      name,
      entries: results.filter((result) => result.kind === kind).map(toEntry),
    })),
  );
}

function toEntry(result: SearchResult): Entry {
  const { kind, region, value, account, jobNumber, status, description } = result;
  const job = kind === 'job' || jobNumber === null ? [] : [`job ${jobNumber}`];
  const hints = [...job, account === value ? region : account, status, description];
  return {
    id: [kind, region, account, jobNumber ?? result.id, value].join(' '),
    label: value,
    hint: hints.filter((hint) => hint !== null).join(' · '),
    target: toTarget(result),
  };
}

function toTarget({ kind, region, value, account, jobNumber, id }: SearchResult): Entry['target'] {
  switch (kind) {
    case 'account':
      return { path: accountHref(value) };
    case 'endpoint':
      return { path: endpointHref(region, value) };
    case 'orderGroup':
      return { path: '/jobs', params: { account: account ?? undefined, orderGroup: value } };
    case 'recipient':
      return {
        path: `/setup/customers/${encodeURIComponent(account ?? '')}/recipients`,
        params: { recipient: id ?? undefined },
      };
    default:
      return { path: jobHref(account ?? '', jobNumber ?? 0) };
  }
}

const withoutEmpty = (groups: readonly Group[]): Group[] =>
  groups.filter(({ entries }) => entries.length > 0);

const MAX_RECENT = 5;

/** Entries that were chosen in this tab, the latest first. They are stored as the key is: for the tab, until the user signs out. */
export const recentEntries = {
  read(): Entry[] {
    try {
      return JSON.parse(sessionStore.getItem(RECENT_KEY) ?? '[]') as Entry[];
    } catch {
      return [];
    }
  },
  add(entry: Entry): void {
    const others = recentEntries.read().filter(({ id }) => id !== entry.id);
    sessionStore.setItem(RECENT_KEY, JSON.stringify([entry, ...others].slice(0, MAX_RECENT)));
  },
};
