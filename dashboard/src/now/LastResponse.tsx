/** The last failed or rejected attempt of an endpoint: what it responded, and when. Kept up to date. */
import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { withEndpoint } from '../api.ts';
import { DescriptionList, Loaded, Verbatim } from '../components.tsx';
import { toPlainText } from '../events.ts';
import { useApi } from '../queries.ts';
import { formatDuration, RelativeTime, Timestamp } from '../times.tsx';
import ui from '../ui.module.css';
import { endpointHref, useHref } from '../urls.ts';

/** Number of attempts among which one that is no ping is looked for. */
const ATTEMPTS = 10;
const REFRESH_MS = 5_000;

/** `outcome`: `rejected` for parked and dead events, because an outage after the rejection explains nothing about them. */
export default function LastResponse(props: {
  readonly region: string;
  readonly id: string;
  readonly outcome: 'failed' | 'rejected';
  /** A disabled endpoint gets no attempts. */
  readonly isDisabled: boolean;
}) {
  const { region, id, outcome, isDisabled } = props;
  const api = useApi();
  const href = useHref();
  const query = useQuery({
    queryKey: ['endpoints', 'last failure', region, id, outcome],
    queryFn: ({ signal }) => {
      const { path, query: at } = withEndpoint({ region, id }).params;
      const params = { path, query: { ...at, outcome, limit: ATTEMPTS } as const };
      return api.get('/v1/endpoints/{id}/deliveries', { params, signal });
    },
    refetchInterval: isDisabled ? false : REFRESH_MS,
  });
  return (
    <Loaded query={query}>
      {({ deliveries }) => {
        // A ping does not explain why events wait.
        const attempt = deliveries.find(({ cause }) => cause !== 'ping') ?? deliveries[0];
        return attempt === undefined ? (
          <p className={ui.hint}>No {outcome} attempt in the last 30 days.</p>
        ) : (
          <div className={ui.stack}>
            <DescriptionList
              rows={{
                [`Last ${outcome} attempt`]: (
                  <>
                    <Timestamp at={attempt.at} />, <RelativeTime at={attempt.at} />
                  </>
                ),
                Duration: formatDuration(attempt.latencyMs),
                Status: attempt.status ?? 'No response',
                Problem: attempt.reason === null ? undefined : <bdi>{attempt.reason}</bdi>,
                Event: (
                  <>
                    {toPlainText(attempt.type)}
                    {attempt.jobNumber === null ? '' : `, job ${attempt.jobNumber}`}
                  </>
                ),
                Headers:
                  Object.keys(attempt.headers).length === 0 ? undefined : (
                    <Verbatim
                      text={Object.entries(attempt.headers)
                        .map(([name, value]) => `${name}: ${value}`)
                        .join('\n')}
                    />
                  ),
                Body: attempt.status === null ? undefined : <Body text={attempt.excerpt} />,
              }}
            />
            <Link href={href(endpointHref(region, id, 'activity'), { outcome })}>All {outcome} attempts</Link>
          </div>
        );
      }}
    </Loaded>
  );
}

const Body = ({ text }: { readonly text: string | null }) => (text ? <Verbatim text={text} /> : 'Empty');
