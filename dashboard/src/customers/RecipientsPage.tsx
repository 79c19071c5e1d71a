/** The list of recipients of an account. */

import { ArrowDownTrayIcon, ArrowUpTrayIcon, MagnifyingGlassIcon, PlusIcon } from '@heroicons/react/16/solid';
import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { useDeferredValue, useLayoutEffect, useMemo, useRef, useState } from 'react';
import { Link } from 'wouter';
import type { Channel } from '../../../shared/notifications/types.ts';
import { withId } from '../api.ts';
import { Badge, Empty, Hidden, Loaded, Panel } from '../components.tsx';
import { download } from '../export.tsx';
import { FilterInput } from '../filters.tsx';
import { channelNames, kindNames } from '../messages.ts';
import { collect, useApi } from '../queries.ts';
import { useRovingFocus } from '../roving-focus.ts';
import { useSession } from '../session.ts';
import { formatCount } from '../texts.ts';
import ui from '../ui.module.css';
import { useParams } from '../urls.ts';
import css from './customers.module.css';
import { formatScope } from './labels.ts';
import { AccountPage, useCustomersHref } from './layout.tsx';
import { filterRecipients, type Recipient, toCsv } from './recipients.ts';

export default function RecipientsPage({ account }: { readonly account: string }) {
  const api = useApi();
  const { hasRole } = useSession();
  const href = useCustomersHref(account);
  const [read] = useParams();
  const search = useDeferredValue(read('q') ?? '');
  const recipients = useQuery({
    queryKey: ['recipients', account],
    queryFn: ({ signal }) =>
      collect(api.list('/v1/accounts/{id}/recipients', 'recipients', { ...withId(account), signal })),
  });
  const { data = [] } = recipients;
  const found = useMemo(() => filterRecipients(data, search), [data, search]);
  const count = formatCount(data.length, 'recipient');
  return (
    <AccountPage
      account={account}
      part="recipients"
      title={`Recipients of ${account}`}
      actions={
        <>
          {hasRole('operate') ? (
            <Button
              leftSection={<ArrowDownTrayIcon width={16} aria-hidden />}
              disabled={data.length === 0}
              onClick={() => download(`recipients-${account}.csv`, [toCsv(data)])}
            >
              Export
            </Button>
          ) : null}
          {hasRole('admin') ? (
            <>
              <Button
                component={Link}
                leftSection={<ArrowUpTrayIcon width={16} aria-hidden />}
                href={href('recipients', { form: 'import' })}
              >
                Import
              </Button>
              <Button
                variant="filled"
                component={Link}
                leftSection={<PlusIcon width={16} aria-hidden />}
                href={href('recipients', { form: 'new' })}
              >
                New recipient
              </Button>
            </>
          ) : null}
        </>
      }
    >
      <Loaded query={recipients}>
        {() => (
          <Panel
            title="Recipients"
            aside={found.length === data.length ? count : `${found.length.toLocaleString()} of ${count}`}
          >
            {data.length > 0 ? (
              <FilterInput
                param="q"
                aria-label="Find recipients"
                placeholder="Name, address, order group or number"
                leftSection={<MagnifyingGlassIcon width={16} aria-hidden />}
                maw="28rem"
              />
            ) : (
              <Empty>
                No recipients yet, so no messages about the jobs of {account} are sent.
                {hasRole('admin') ? ' Add a recipient, or import a CSV file.' : ''}
              </Empty>
            )}
            {found.length > 0 ? <Table account={account} recipients={found} /> : null}
            {data.length > 0 && found.length === 0 ? <Empty>No recipient matches the search.</Empty> : null}
          </Panel>
        )}
      </Loaded>
    </AccountPage>
  );
}

const ROW_PX = 58;

/** A virtualized table: renders only the visible rows and some around them. */
function Table(props: { readonly account: string; readonly recipients: readonly Recipient[] }) {
  const { account, recipients } = props;
  const place = useRef<HTMLTableSectionElement>(null);
  const [top, setTop] = useState(0);
  useLayoutEffect(() => {
    const at = (place.current?.getBoundingClientRect().top ?? 0) + window.scrollY;
    if (Math.abs(at - top) > 1) setTop(at);
  });
  const rows = useWindowVirtualizer({
    count: recipients.length,
    estimateSize: () => ROW_PX,
    overscan: 12,
    scrollMargin: top,
    getItemKey: (index) => recipients[index]?.id ?? index,
  });
  return (
    // biome-ignore-start lint/a11y/noRedundantRoles: the layout would remove the roles
    <table
      ref={useRovingFocus('tbody tr')}
      className={css.recipients}
      role="table"
      aria-label="Recipients"
      aria-rowcount={recipients.length + 1}
    >
      <thead role="rowgroup">
        <tr role="row" aria-rowindex={1} className={css.recipientHead}>
          {['Recipient', 'Addresses', 'Jobs', 'Message kinds'].map((name) => (
            <th key={name} role="columnheader" scope="col">
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody ref={place} role="rowgroup" className={css.virtual} style={{ height: rows.getTotalSize() }}>
        {rows.getVirtualItems().map(({ index, key, start }) => {
          const recipient = recipients[index];
          return recipient ? (
            <tr
              key={key}
              ref={rows.measureElement}
              role="row"
              data-index={index}
              aria-rowindex={index + 2}
              className={css.recipientRow}
              style={{ transform: `translateY(${start - top}px)` }}
            >
              <Cells account={account} recipient={recipient} />
            </tr>
          ) : null;
        })}
      </tbody>
    </table>
    // biome-ignore-end lint/a11y/noRedundantRoles: as above
  );
}

function Cells({ account, recipient }: { readonly account: string; readonly recipient: Recipient }) {
  const href = useCustomersHref(account);
  const { id, name, email, mobile, channels, kinds, paused, source } = recipient;
  return (
    <>
      {/* biome-ignore-start lint/a11y/noRedundantRoles: as above */}
      <th role="rowheader" scope="row">
        <Link className={ui.name} href={href('recipients', { recipient: id })}>
          {name ?? id}
        </Link>{' '}
        {paused ? <Badge tone="warn">Paused</Badge> : null}
        {source === 'upstream' ? <span className={ui.hint}>API user</span> : null}
      </th>
      <td role="cell" className={css.addresses}>
        {Object.entries({ email, sms: mobile }).map(([channel, address]) => {
          const isUsed = channels.some((one) => one === channel);
          return address === null ? null : (
            <span key={channel} className={isUsed ? undefined : ui.quiet}>
              <Hidden>{channelNames[channel as Channel]}: </Hidden>
              {address}
              {isUsed ? '' : ' (unused)'}
            </span>
          );
        })}
      </td>
      <td role="cell">{formatScope(recipient)}</td>
      <td role="cell" className={ui.hint}>
        {kinds.map((kind) => kindNames[kind]).join(', ')}
      </td>
      {/* biome-ignore-end lint/a11y/noRedundantRoles: as above */}
    </>
  );
}
