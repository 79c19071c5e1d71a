/** Lateness and risk of a job in lists and on its page, and how often the risk flags were right. */
import { useQuery } from '@tanstack/react-query';
import { withId } from '../api.ts';
import { Badge } from '../components.tsx';
import { useApi } from '../queries.ts';
import ui from '../ui.module.css';
import { formatFlagResults, formatRisk, formatTiming, type JobTiming, sumFlags } from './risk.ts';

/** Badge of a late job or of one at risk, with the reason in its tooltip. */
export function RiskBadge(props: {
  readonly job: JobTiming & { readonly late: boolean; readonly mustDate: boolean | null };
}) {
  const { job } = props;
  const risk = formatRisk(job);
  return risk ? (
    <span className={ui.risk} title={formatTiming(job)}>
      <Badge tone={risk.tone}>{risk.text}</Badge>
    </span>
  ) : null;
}

/** Maximum number of accounts whose results are added up. */
const MAX_ACCOUNTS = 30;
const REFRESH_MS = 300_000;

/** Share of correct risk flags of accounts. */
export function FlagResults({ accounts }: { readonly accounts: readonly string[] }) {
  const api = useApi();
  const ids = [...accounts].sort().slice(0, MAX_ACCOUNTS);
  const { data } = useQuery({
    queryKey: ['durations', ...ids],
    queryFn: async ({ signal }) => {
      const read = (id: string) => api.get('/v1/accounts/{id}/status-durations', { ...withId(id), signal });
      return sumFlags(await Promise.all(ids.map(read)));
    },
    enabled: ids.length > 0,
    refetchInterval: REFRESH_MS,
    staleTime: REFRESH_MS,
  });
  if (!data) return null;
  const some = accounts.length > ids.length ? ` Of the first ${ids.length} accounts only.` : '';
  return <p className={ui.hint}>{formatFlagResults(data) + some}</p>;
}
