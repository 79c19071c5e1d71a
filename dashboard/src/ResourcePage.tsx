/** The pages of an account or an endpoint: tabs with its state, its activity and its settings. */
import type { ReactNode } from 'react';
import { Redirect } from 'wouter';
import { useSearch } from 'wouter/use-browser-location';
import { Page, Tabs } from './components.tsx';
import { buildHref, type ResourceTab, useHref } from './urls.ts';

const TABS: readonly (readonly [tab: ResourceTab, name: string])[] = [
  ['state', 'State'],
  ['activity', 'Activity'],
  ['settings', 'Settings'],
];

/** A page of a resource. `toHref`: address of a tab. `hasSettings`: default is true. */
export function ResourcePage(props: {
  readonly title: string;
  readonly tab: ResourceTab;
  readonly toHref: (tab: ResourceTab) => string;
  readonly hasSettings?: boolean;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}) {
  const { title, tab: current, toHref, hasSettings = true, actions, children } = props;
  const href = useHref();
  const tabs = TABS.filter(([tab]) => hasSettings || tab !== 'settings').map(([tab, name]) => ({
    ...{ name, href: href(toHref(tab)), isCurrent: tab === current },
  }));
  return (
    <Page title={title} actions={actions}>
      <Tabs label={title} tabs={tabs} />
      {children}
    </Page>
  );
}

/** Replaces an earlier address of a page by the current one, and keeps the query. */
export function Moved({ to }: { readonly to: string }) {
  const search = useSearch();
  return <Redirect to={buildHref(to, Object.fromEntries(new URLSearchParams(search)))} replace />;
}
