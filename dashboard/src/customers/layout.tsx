/** Frame of the pages about an account's notifications. */
import type { ReactNode } from 'react';
import { Page, Tabs } from '../components.tsx';
import { type buildHref, useHref } from '../urls.ts';

/** The sections, by their path. */
const SECTIONS = {
  '': 'Settings',
  recipients: 'Recipients',
  templates: 'Templates',
  messages: 'Messages',
  suppressions: 'Suppressions',
} as const;

/** Returns a function that builds addresses below an account's settings, such as `('recipients', { recipient: 'ann' })`. Keeps the region. */
export function useCustomersHref(account: string): typeof buildHref {
  const href = useHref();
  const base = `/setup/customers/${encodeURIComponent(account)}`;
  return (rest, params) => href(rest === '' ? base : `${base}/${rest}`, params);
}

/** A page about an account's notifications, with links to the other sections. */
export function AccountPage(props: {
  readonly account: string;
  readonly part: keyof typeof SECTIONS;
  readonly title: string;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}) {
  const { account, part, title, actions } = props;
  const href = useCustomersHref(account);
  const tabs = Object.entries(SECTIONS).map(([path, name]) => ({
    ...{ name, href: href(path), isCurrent: path === part },
  }));
  return (
    <Page title={title} actions={actions}>
      <Tabs label={`Notifications of ${account}`} tabs={tabs} />
      {props.children}
    </Page>
  );
}
