/** Result of a test of credentials. */
import type { TestReport } from '../../client/index.ts';
import { Badge, Note } from './components.tsx';
import { formatCount } from './texts.ts';
import { formatDuration } from './times.tsx';
import ui from './ui.module.css';

const STEP_NAMES = { token: 'Token', identity: 'Identity', page: 'Page of jobs' } as const;

/** Shows the result of each step. Announced by screen readers. */
export function CredentialsReport({ report }: { readonly report: TestReport }) {
  const { ok, steps, upstreamId, openJobs } = report;
  return (
    <Note tone={ok ? 'good' : 'bad'} live>
      <div className={ui.tight}>
        <p>
          <strong>{ok ? 'The credentials are valid.' : 'The credentials test failed.'}</strong>
          {upstreamId === null ? '' : ` They belong to account ${upstreamId} of the ordering API`}
          {openJobs === null ? '' : `, with ${formatCount(openJobs, 'open job')}`}
          {upstreamId === null && openJobs === null ? '' : '.'}
        </p>
        <ol className={`${ui.list} ${ui.tight}`} aria-label="Steps of the test">
          {steps.map(({ step, ok: worked, message, ms }) => (
            <li key={step} className={ui.actions}>
              <Badge tone={worked ? 'good' : 'bad'}>
                {STEP_NAMES[step]}: {worked ? 'passed' : 'failed'}
              </Badge>
              <span>{message}</span>
              <span className={ui.quiet}>{formatDuration(ms)}</span>
            </li>
          ))}
        </ol>
      </div>
    </Note>
  );
}
