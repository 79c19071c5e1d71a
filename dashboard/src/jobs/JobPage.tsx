/** Page of a job: current state, timeline with evidence and deliveries, parcels, messages, lines. */
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { Link } from 'wouter';
import { hasStatus } from '../api.ts';
import { ContentSkeleton, Empty, Loaded, Page, TriageSummary } from '../components.tsx';
import { getJobNumber } from '../events.ts';
import { useApi } from '../queries.ts';
import { useStream } from '../stream-hooks.ts';
import ui from '../ui.module.css';
import { buildHref, useHref } from '../urls.ts';
import css from './Job.module.css';
import { Messages } from './JobMessages.tsx';
import { JobSummary, Lines, Tracking } from './JobSummary.tsx';
import { JOB, type JobLocation, Timeline, toPath } from './JobTimeline.tsx';

export default function JobPage(location: JobLocation) {
  const { account, jobNumber } = location;
  const api = useApi();
  const href = useHref();
  const isValidNumber = /^[1-9]\d{0,11}$/.test(jobNumber);
  useRefreshOnJobEvents(location);
  const job = useQuery({
    queryKey: ['jobs', 'one', account, jobNumber],
    queryFn: async ({ signal }) => (await api.get(JOB, { params: { path: toPath(location) }, signal })).job,
    enabled: isValidNumber,
    refetchInterval: 60_000,
  });
  const unknown = !isValidNumber || hasStatus(job.error, 404);
  return (
    <Page
      title={`Job ${jobNumber}`}
      actions={<Link href={href('/jobs', { account })}>All jobs of {account}</Link>}
    >
      {unknown ? (
        <Empty>
          Job {jobNumber} of account {account} does not exist, or your key does not permit access to the
          account.{' '}
          <Link href={buildHref('/jobs', { q: jobNumber })}>Search for {jobNumber} in all accounts</Link>
        </Empty>
      ) : (
        <Loaded query={job} loading={<ContentSkeleton />}>
          {(data) => (
            <>
              <JobSummary job={data} account={account} />
              <TriageSummary type="job" id={jobNumber} account={account} />
              <div className={css.layout}>
                <Timeline location={location} job={data} />
                <div className={ui.stack}>
                  <Tracking job={data} />
                  <Messages location={location} status={data.status} />
                  <Lines job={data} />
                </div>
              </div>
            </>
          )}
        </Loaded>
      )}
    </Page>
  );
}

/** Delay of the second refetch. */
const FOLLOW_MS = 2_500;

/** Refetches the page when an event of the job arrives, and again 2.5 s later for its deliveries. */
function useRefreshOnJobEvents({ account, jobNumber }: JobLocation): void {
  const stream = useStream();
  const client = useQueryClient();
  useEffect(() => {
    const timers = new Set<ReturnType<typeof setTimeout>>();
    const refresh = (): void => {
      for (const about of ['one', 'timeline', 'messages'])
        void client.invalidateQueries({ queryKey: ['jobs', about, account, jobNumber] });
    };
    const off = stream.onEvents((events) => {
      if (
        !events.some((event) => event.data.account === account && getJobNumber(event) === Number(jobNumber))
      )
        return;
      refresh();
      const timer = setTimeout(() => {
        timers.delete(timer);
        refresh();
      }, FOLLOW_MS);
      timers.add(timer);
    });
    return () => {
      off();
      for (const timer of timers) clearTimeout(timer);
    };
  }, [stream, client, account, jobNumber]);
}
