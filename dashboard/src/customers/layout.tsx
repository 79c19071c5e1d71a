/** Frame of the pages about an account's notifications. */
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { Page } from '../components.tsx';
import ui from '../ui.module.css';
import { buildHref, useRegion } from '../urls.ts';

/** The sections, by their path. */
const SECTIONS = {
  '': 'Settings',
  recipients: 'Recipients',
  templates: 'Templates',
  messages: 'Messages',
  suppressions: 'Suppressions',
} as const;
type Section = keyof typeof SECTIONS;

/** Returns a function that builds addresses below an account's settings, such as `('recipients', { recipient: 'ann' })`. Keeps the region. */
export function useCustomersHref(
  account: string,
): (rest: string, params?: Readonly<Record<string, string | undefined>>) => string {
  const region = useRegion() ?? undefined;
  const base = `/setup/customers/${encodeURIComponent(account)}`;
  return (rest, params = {}) => buildHref(rest === '' ? base : `${base}/${rest}`, { region, ...params });
}

/** A page about an account's notifications, with links to the other sections. */
export function AccountPage(props: {
  readonly account: string;
  readonly part: Section;
  readonly title: string;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}) {
  const { account, part, title, actions, children } = props;
  const href = useCustomersHref(account);
  return (
    <Page title={title} actions={actions}>
      <nav className={ui.tabs} aria-label={`Notifications of ${account}`}>
        {Object.entries(SECTIONS).map(([path, name]) => (
          <Link key={path} href={href(path)} aria-current={path === part ? 'page' : undefined}>
            {name}
          </Link>
        ))}
      </nav>
      {children}
    </Page>
  );
}
