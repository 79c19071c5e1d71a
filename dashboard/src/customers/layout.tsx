/** What stands around the pages about an account's customers. */
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { Page } from '../components.tsx';
import { buildHref, useRegion } from '../urls.ts';
import css from './customers.module.css';

/** The pages about an account's customers, as they stand in addresses. */
const SECTIONS = {
  '': 'Settings',
  recipients: 'Recipients',
  templates: 'Templates',
  messages: 'Messages',
  suppressions: 'Suppressed',
} as const;
type Section = keyof typeof SECTIONS;

/** Addresses below an account's customers: `('recipients', { recipient: 'ann' })`. The region that is looked at goes along. */
export function useCustomersHref(
  account: string,
): (rest: string, params?: Readonly<Record<string, string | undefined>>) => string {
  const region = useRegion() ?? undefined;
  const base = `/setup/customers/${encodeURIComponent(account)}`;
  return (rest, params = {}) => buildHref(rest === '' ? base : `${base}/${rest}`, { region, ...params });
}

/** A page about an account's customers, with the way to the others. */
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
      <nav className={css.tabs} aria-label={`Customers of ${account}`}>
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
