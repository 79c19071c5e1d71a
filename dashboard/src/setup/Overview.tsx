/** Overview of the setup: number and purpose of accounts, endpoints, notifications and keys. */
import { useQueries } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { Page, Panel, QueryError } from '../components.tsx';
import { useEndpoints } from '../health/queries.ts';
import { isBuiltIn } from '../health/status.ts';
import { notificationsQuery, useAccounts, useApi } from '../queries.ts';
import { useInRegion } from '../resources.ts';
import { useSession } from '../session.ts';
import ui from '../ui.module.css';
import { ACCOUNTS_PATH, ENDPOINTS_PATH, useHref } from '../urls.ts';
import { useKeys } from './queries.ts';
import css from './setup.module.css';

export default function Overview() {
  const link = useHref();
  const { hasRole, hasAllAccounts } = useSession();
  const queries = [useInRegion(useAccounts()), useInRegion(useEndpoints()), useKeys()] as const;
  const [{ data: accounts }, { data: sinks }, { data: keys }] = queries;
  const endpoints = sinks?.filter(({ id }) => !isBuiltIn(id));
  const notifying = useNotifyingAccounts(accounts?.map(({ id }) => id));
  return (
    <Page title="Setup">
      <QueryError queries={queries} />
      <div className={`${ui.columns} ${css.kinds}`}>
        <SectionPanel
          name="Accounts"
          count={accounts?.length}
          note={declaredNote(accounts)}
          purpose="Accounts of the ordering API that Jobwire polls. Each has a gapless log of its changes."
        >
          <Link href={link(ACCOUNTS_PATH)}>View accounts</Link>
          {hasRole('admin') && hasAllAccounts ? (
            <Link href={link('/setup/new-account')}>New account</Link>
          ) : null}
        </SectionPanel>
        <SectionPanel
          name="Endpoints"
          count={endpoints?.length}
          note={declaredNote(endpoints)}
          purpose="Webhook URLs and SQS queues that receive events, in order for each job, with retries."
        >
          <Link href={link(ENDPOINTS_PATH)}>View endpoints</Link>
          {hasRole('admin') ? <Link href={link('/setup/new-endpoint')}>New endpoint</Link> : null}
        </SectionPanel>
        <SectionPanel
          name="Notifications"
          count={notifying}
          note={
            notifying === undefined
              ? ''
              : notifying === 1
                ? 'account notifies its customers'
                : 'accounts notify their customers'
          }
          purpose="E-mails and SMS to customers when their orders are dispatched: settings, recipients and templates of each account."
        >
          <Link href={link('/setup/customers')}>View notifications</Link>
        </SectionPanel>
        <SectionPanel
          name="Keys"
          count={hasRole('admin') ? keys?.length : '–'}
          note={hasRole('admin') ? '' : 'visible with the role admin'}
          purpose="API keys of users and programs, with their role, accounts and expiry."
        >
          <Link href={link('/setup/keys')}>{hasRole('admin') ? 'View keys' : 'View your key'}</Link>
          {hasRole('admin') ? <Link href={link('/setup/new-key')}>New key</Link> : null}
        </SectionPanel>
      </div>
    </Page>
  );
}

function SectionPanel(props: {
  readonly name: string;
  readonly count: number | string | undefined;
  readonly note: string;
  readonly purpose: string;
  readonly children: ReactNode;
}) {
  const { name, count, note, purpose } = props;
  return (
    <Panel title={name}>
      <div>
        <p className={ui.hint}>
          <span className={css.count}>{count === undefined ? '\u2007' : count.toLocaleString()}</span> {note}
        </p>
        <p className={ui.hint}>{purpose}</p>
      </div>
      <div className={ui.actions}>{props.children}</div>
    </Panel>
  );
}

function declaredNote(of: readonly { readonly managed: boolean }[] | undefined): string {
  const declared = of?.filter(({ managed }) => !managed).length ?? 0;
  if (declared === 0) return '';
  return declared === of?.length
    ? 'declared in the configuration'
    : `${declared} of them declared in the configuration`;
}

/** Maximum number of accounts for which notifications are counted. Each takes one request. */
const MAX_STATUS_REQUESTS = 25;

/** Returns the number of accounts with notifications on. `undefined`: loading; `–`: not known. */
function useNotifyingAccounts(accounts: readonly string[] = []): number | string | undefined {
  const api = useApi();
  const queried = accounts.length > MAX_STATUS_REQUESTS ? [] : accounts;
  const answers = useQueries({
    queries: queried.map((account) => notificationsQuery(api, account)),
  });
  if (accounts.length > MAX_STATUS_REQUESTS || answers.some(({ isError }) => isError)) return '–';
  if (answers.some(({ isPending }) => isPending)) return undefined;
  return answers.filter(({ data }) => data?.enabled === true).length;
}
