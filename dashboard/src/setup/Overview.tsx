/** What there is to set up, how much of it there is, and what each is for. */
import { useQueries } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { Page, Panel } from '../components.tsx';
import { useAccounts, useApi } from '../queries.ts';
import { useSession } from '../session.ts';
import { useRegion } from '../urls.ts';
import { useSetupHref } from './components.tsx';
import { useEndpoints } from './EndpointPages.tsx';
import { useKeys } from './KeyPages.tsx';
import css from './setup.module.css';

export function Overview() {
  const link = useSetupHref();
  const { may, forAll } = useSession();
  const region = useRegion();
  const { data: allAccounts } = useAccounts();
  const { data: allEndpoints } = useEndpoints();
  const { data: keys } = useKeys();
  const ofRegion = (one: { readonly region: string }) => region === null || one.region === region;
  const accounts = allAccounts?.filter(ofRegion);
  const endpoints = allEndpoints?.filter(ofRegion);
  const told = useNotifyingAccounts(accounts?.map(({ id }) => id));
  return (
    <Page title="Setup">
      <div className={css.kinds}>
        <SectionPanel
          name="Accounts"
          count={accounts?.length}
          note={declaredNote(accounts)}
          what="Accounts of the ordering service that are polled. Each has a log of its own, in which everything that changes is numbered without gaps."
        >
          <Link href={link('/setup/accounts')}>See the accounts</Link>
          {may('admin') && forAll ? <Link href={link('/setup/new-account')}>New account</Link> : null}
        </SectionPanel>
        <SectionPanel
          name="Endpoints"
          count={endpoints?.length}
          note={declaredNote(endpoints)}
          what="Webhooks: where events are sent as they happen, signed, in order for each job, with another try where one fails."
        >
          <Link href={link('/setup/endpoints')}>See the endpoints</Link>
          {may('admin') ? <Link href={link('/setup/new-endpoint')}>New endpoint</Link> : null}
        </SectionPanel>
        <SectionPanel
          name="Customers"
          count={told}
          note={
            told === undefined
              ? ''
              : told === 1
                ? 'account tells its customers'
                : 'accounts tell their customers'
          }
          what="Whether an account tells its customers by e-mail and SMS when their orders go out: whom, and in which words."
        >
          <Link href={link('/setup/customers')}>See who is told</Link>
        </SectionPanel>
        <SectionPanel
          name="Keys"
          count={may('admin') ? keys?.length : '–'}
          note={may('admin') ? '' : 'only keys of the role admin see them'}
          what="API keys, for people and programs: what each may do, with which accounts, and until when."
        >
          <Link href={link('/setup/keys')}>{may('admin') ? 'See the keys' : 'See your key'}</Link>
          {may('admin') ? <Link href={link('/setup/new-key')}>New key</Link> : null}
        </SectionPanel>
      </div>
    </Page>
  );
}

function SectionPanel(props: {
  readonly name: string;
  readonly count: number | string | undefined;
  readonly note: string;
  readonly what: string;
  readonly children: ReactNode;
}) {
  const { name, count, note, what } = props;
  return (
    <Panel title={name}>
      <div>
        <p className={css.what}>
          <span className={css.count}>{count === undefined ? '\u2007' : count.toLocaleString()}</span> {note}
        </p>
        <p className={css.what}>{what}</p>
      </div>
      <div className={css.row}>{props.children}</div>
    </Panel>
  );
}

function declaredNote(of: readonly { readonly managed: boolean }[] | undefined): string {
  const declared = of?.filter(({ managed }) => !managed).length ?? 0;
  if (declared === 0) return '';
  return declared === of?.length
    ? 'in the configuration file'
    : `of them ${declared} in the configuration file`;
}

/** With more accounts than this it is not counted how many tell their customers: each is asked about by itself. */
const MAX_STATUS_REQUESTS = 25;

/** How many of the accounts tell their customers. */
function useNotifyingAccounts(accounts: readonly string[] = []): number | string | undefined {
  const api = useApi();
  const asked = accounts.length > MAX_STATUS_REQUESTS ? [] : accounts;
  const answers = useQueries({
    queries: asked.map((account) => ({
      queryKey: ['notifications', account],
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        api.get<{ readonly enabled: boolean }>(`/v1/accounts/${encodeURIComponent(account)}/notifications`, {
          signal,
        }),
      staleTime: 60_000,
    })),
  });
  if (accounts.length > MAX_STATUS_REQUESTS) return '–';
  if (answers.some(({ isPending }) => isPending)) return undefined;
  return answers.filter(({ data }) => data?.enabled === true).length;
}
