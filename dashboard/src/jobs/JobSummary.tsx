/** Panels about the current state of a job: summary, parcels, lines. */

import { ArrowTopRightOnSquareIcon, CheckIcon, ClipboardDocumentIcon } from '@heroicons/react/16/solid';
import { ActionIcon, Anchor } from '@mantine/core';
import { useClipboard } from '@mantine/hooks';
import { useEffect } from 'react';
import { Link } from 'wouter';
import type { JobRecord } from '../../../client/index.ts';
import { Badge, DescriptionList, Hidden, Panel, showToast } from '../components.tsx';
import type { Tone } from '../texts.ts';
import { RelativeTime, Timestamp, UpstreamDate } from '../times.tsx';
import ui from '../ui.module.css';
import { accountHref, useHref } from '../urls.ts';
import css from './Job.module.css';
import { toWebLink } from './labels.ts';
import { RiskBadge } from './RiskBadge.tsx';
import { formatBlockingLine, formatRiskReason, formatStay, RISKS } from './risk.ts';

const OUTCOMES = {
  closed: ['Closed', 'plain'],
  cancelled: ['Cancelled (inferred)', 'warn'],
  unavailable: ['Unavailable (inferred)', 'warn'],
} as const satisfies Record<string, readonly [string, Tone]>;

export function JobSummary({ job, account }: { readonly job: JobRecord; readonly account: string }) {
  const href = useHref();
  const { orderNumber, orderGroup, outcome, phase } = job;
  return (
    <Panel
      title="Current state"
      aside={
        job.lastListedAt === null ? undefined : (
          <>
            {phase === 'listed'
              ? 'Last observed in the list of active jobs'
              : 'No longer in the list of active jobs, last observed there'}{' '}
            <RelativeTime at={job.lastListedAt} />
          </>
        )
      }
    >
      <div className={ui.actions}>
        <Badge tone="plain">
          <bdi>{job.status ?? 'No status'}</bdi>
        </Badge>
        {job.dateOut === null ? null : <Badge tone="good">Dispatched</Badge>}
        <RiskBadge job={job} />
        {job.mustDate && job.risk !== null ? <Badge tone="plain">Due date must be met</Badge> : null}
        {outcome === null ? null : <Badge tone={OUTCOMES[outcome][1]}>{OUTCOMES[outcome][0]}</Badge>}
        {phase === 'departed' ? <Badge tone="warn">Delisted; outcome not yet known</Badge> : null}
        <bdi className={ui.name}>{job.description ?? 'No description'}</bdi>
      </div>
      <div className={ui.columns}>
        <DescriptionList
          rows={{
            'Job number': <CopyableText text={String(job.jobNumber)} what="job number" />,
            'Order number':
              orderNumber === null ? null : <CopyableText text={orderNumber} what="order number" />,
            'Order group':
              orderGroup === null ? null : (
                <Link href={href('/jobs', { account, orderGroup })}>
                  <bdi>{orderGroup}</bdi>
                  <Hidden>: all its jobs</Hidden>
                </Link>
              ),
            'Position in the group': job.orderGroupSequence ?? undefined,
            Account: <Link href={href(accountHref(account))}>{account}</Link>,
          }}
        />
        <DescriptionList
          rows={{
            Due: job.dateDue === null ? null : <UpstreamDate at={job.dateDue} withZone />,
            'Due date mandatory': job.mustDate === null ? null : job.mustDate ? 'Yes' : 'No',
            Risk: job.risk === null ? undefined : <RiskFacts job={job} />,
            'Time in status': job.inStatus === null ? undefined : <StayFacts job={job} />,
            'Furthest behind': formatBlockingLine(job),
            Dispatched: job.dateOut === null ? 'Not yet' : <UpstreamDate at={job.dateOut} withZone />,
            Invoice: job.invoiceNumber === null ? null : <bdi>{job.invoiceNumber}</bdi>,
          }}
        />
        <DescriptionList
          rows={{
            Origin: job.originCode === null ? null : <bdi>{job.originCode}</bdi>,
            'Time zone of its location':
              job.timezone === null ? (
                job.detailAt === null ? (
                  'Not yet known'
                ) : null
              ) : (
                <bdi>{job.timezone}</bdi>
              ),
            'Detail fetched': job.detailAt === null ? 'Not yet' : <RelativeTime at={job.detailAt} />,
          }}
        />
      </div>
    </Panel>
  );
}

/** Risk with its reason, and since when the job is flagged. */
function RiskFacts({ job }: { readonly job: JobRecord }) {
  const { risk, forecast } = job;
  if (risk === null) return null;
  const flaggedAt = forecast?.flaggedAt ?? null;
  // A late job has its risk without a forecast.
  const reason = risk === 'late' && forecast?.unknown !== null ? undefined : formatRiskReason(job);
  return (
    <>
      {risk === 'unknown' ? 'Unknown' : RISKS[risk]}
      {reason === undefined ? null : `: ${reason}`}
      {flaggedAt === null ? null : (
        <>
          {' '}
          (first at risk <RelativeTime at={flaggedAt} />)
        </>
      )}
    </>
  );
}

/** Time in the current status, and since when the job was observed in it if the change to it was not observed. */
function StayFacts({ job }: { readonly job: JobRecord }) {
  const { inStatus } = job;
  return (
    <>
      {formatStay(job)}
      {inStatus === null || inStatus.sinceEarliest !== null ? null : (
        <>
          {' '}
          (first observed in this status <Timestamp at={inStatus.since} />)
        </>
      )}
    </>
  );
}

/** Text with a copy button. */
function CopyableText({ text, what }: { readonly text: string; readonly what: string }) {
  const { copy, copied, error } = useClipboard({ timeout: 1_500 });
  useEffect(() => {
    if (error)
      showToast(
        'Copying failed: the browser blocks clipboard access. Select and copy the text instead.',
        'bad',
      );
  }, [error]);
  return (
    <span className={css.copied}>
      <bdi>{text}</bdi>
      <ActionIcon
        variant="subtle"
        size="sm"
        aria-label={`Copy ${what}`}
        title={`Copy ${what}`}
        onClick={() => copy(text)}
      >
        {copied ? <CheckIcon width={14} aria-hidden /> : <ClipboardDocumentIcon width={14} aria-hidden />}
      </ActionIcon>
      <span role="status">{copied ? <Hidden>Copied</Hidden> : null}</span>
    </span>
  );
}

export function Tracking({ job }: { readonly job: JobRecord }) {
  return (
    <Panel title="Parcels" aside={job.tracking.length > 0 ? String(job.tracking.length) : undefined}>
      {job.tracking.length === 0 ? (
        <p className={ui.hint}>No tracking yet.</p>
      ) : (
        <ul className={`${ui.list} ${css.items}`}>
          {job.tracking.map(({ number, link }, at) => {
            const href = toWebLink(link);
            return (
              // biome-ignore lint/suspicious/noArrayIndexKey: parcels can be alike
              <li key={at}>
                {href === undefined ? (
                  <>
                    <bdi>{number ?? 'No number'}</bdi>
                    {link === null ? null : (
                      <>
                        {' '}
                        <bdi className={ui.hint}>{link}</bdi>
                      </>
                    )}
                  </>
                ) : (
                  <Anchor href={href} target="_blank" rel="noopener noreferrer">
                    <bdi>{number ?? href}</bdi> <ArrowTopRightOnSquareIcon width={14} aria-hidden />
                    <Hidden> (opens the carrier’s page)</Hidden>
                  </Anchor>
                )}
              </li>
            );
          })}
        </ul>
      )}
    </Panel>
  );
}

export function Lines({ job }: { readonly job: JobRecord }) {
  const lines = job.lines ?? [];
  return (
    <Panel title="Lines" aside={lines.length > 0 ? String(lines.length) : undefined}>
      {lines.length === 0 ? (
        <p className={ui.hint}>{job.lines ? 'No lines.' : 'The job detail has not been fetched yet.'}</p>
      ) : (
        <ul className={`${ui.list} ${css.items}`}>
          {lines.map(({ jobLineId, status }) => (
            <li key={jobLineId} className={css.pair}>
              <span>Line {jobLineId}</span>
              <bdi>{status ?? 'No status'}</bdi>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}
