/** Alert rule pages: the list, a new rule, and one rule. */
import { Button } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useLocation } from 'wouter';
import type { AlertRule } from '../../../client/index.ts';
import { AlertRuleUpdate, conditions, NewAlertRule } from '../../../shared/alerts/rule-input.ts';
import { useActions } from '../actions.ts';
import { withRevision, withEndpoint as withRule } from '../api.ts';
import { Badge, DescriptionList, Failure, Loaded, Note, Page, Panel, showToast } from '../components.tsx';
import { Form, FormActions } from '../form.tsx';
import { useApiForm, useResourceForm } from '../forms.ts';
import { collect, useApi, useServedRegions } from '../queries.ts';
import { type Resource, useInRegion, useResource } from '../resources.ts';
import { useSession } from '../session.ts';
import { RelativeTime } from '../times.tsx';
import ui from '../ui.module.css';
import { alertRuleHref, useHref, useRegion } from '../urls.ts';
import { AlertRuleFields } from './AlertRuleFields.tsx';
import { NEW_ALERT_RULE, toAlertFormField, toAlertValues, toChange, toNewAlertRule } from './alert-values.ts';
import { checkRegion, ListPage, RegionField } from './components.tsx';

const STATES = {
  ok: { label: 'OK', tone: 'good' },
  pending: { label: 'Pending', tone: 'warn' },
  firing: { label: 'Firing', tone: 'bad' },
} as const;

function RuleState({ rule: { enabled, state } }: { readonly rule: AlertRule }) {
  if (!enabled) return <Badge>Off</Badge>;
  if (state.since === null) return <Badge>Not evaluated yet</Badge>;
  return <Badge tone={STATES[state.status].tone}>{STATES[state.status].label}</Badge>;
}

function formatCondition({ condition, threshold }: AlertRule): string {
  const { name, unit } = conditions[condition];
  return `${name} > ${threshold.toLocaleString()} ${unit}`;
}

const KINDS = { email: 'E-mail', slack: 'Slack', teams: 'Teams', webhook: 'Webhook' } as const;
const formatTarget = ({ target: { kind, to, host } }: AlertRule): string =>
  `${KINDS[kind]}: ${to?.join(', ') ?? host}`;

/** The list of rules. */
export function AlertRulesPage() {
  const api = useApi();
  const { hasRole } = useSession();
  const link = useHref();
  const region = useRegion() ?? undefined;
  const rules = useQuery({
    queryKey: ['alert-rules'],
    queryFn: ({ signal }) => collect(api.list('/v1/alert-rules', 'alertRules', { signal })),
    refetchInterval: 15_000,
    retry: false,
  });
  const query = useInRegion(rules);
  return (
    <ListPage
      title="Alert rules"
      noun="alert rule"
      purpose="Messages to operations staff by e-mail, Slack, Teams or a webhook. Rules are evaluated once a minute."
      newHref={hasRole('admin') ? '/setup/new-alert-rule' : undefined}
      query={query}
      csv={(options) => api.csv('/v1/alert-rules', { params: { query: { region } }, ...options })}
      empty="No alert rules yet. Each rule that you create appears here."
      getKey={({ region, id }) => `${region}/${id}`}
      columns={{
        Rule: (rule) => (
          <>
            <Link href={link(alertRuleHref(rule.region, rule.id))}>{rule.name}</Link>
            <div className={ui.hint}>{formatCondition(rule)}</div>
          </>
        ),
        Region: ({ region }) => region.toUpperCase(),
        State: (rule) => <RuleState rule={rule} />,
        Value: { right: true, render: ({ state }) => state.value?.toLocaleString() ?? '–' },
        Target: {
          wide: true,
          render: (rule) => (
            <>
              {formatTarget(rule)}
              {rule.state.problem === null ? null : <div className={ui.error}>{rule.state.problem}</div>}
            </>
          ),
        },
        'Last message': ({ state }) => <RelativeTime at={state.sentAt} none="Never" />,
      }}
    />
  );
}

/** The form of a new rule. */
export function NewAlertRulePage() {
  const api = useApi();
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const link = useHref();
  const { hasAllAccounts, key } = useSession();
  const chosen = useRegion() ?? '';
  const regions = useServedRegions() ?? [];
  const form = useApiForm({
    schema: NewAlertRule.loose(),
    initial: {
      ...NEW_ALERT_RULE,
      ...{ region: chosen, accountScope: hasAllAccounts ? 'all' : 'some', accounts: key.accounts ?? [] },
    } as typeof NEW_ALERT_RULE,
    toBody: toNewAlertRule,
    check: ({ region }) => checkRegion(region, regions),
    toField: toAlertFormField,
    send: async (body) => {
      const rule: AlertRule = await api.post('/v1/alert-rules', { body });
      void queries.invalidateQueries({ queryKey: ['alert-rules'] });
      showToast(`Alert rule ${rule.name} created.`);
      form.markSaved();
      navigate(link(alertRuleHref(rule.region, rule.id)));
    },
  });
  return (
    <Page title="New alert rule">
      <Form of={form}>
        <AlertRuleFields>
          <RegionField
            regions={regions}
            description="Region of the accounts and endpoints that the rule measures."
          />
        </AlertRuleFields>
        <FormActions verb="Create alert rule" cancel={link('/setup/alert-rules')} />
      </Form>
    </Page>
  );
}

/** One rule: its state, and with the role admin its form. */
export function AlertRulePage({ region, id }: { readonly region: string; readonly id: string }) {
  const api = useApi();
  const { hasRole } = useSession();
  const queryKey = ['alert-rules', region, id];
  const rule = useResource(
    queryKey,
    ['alert-rules'],
    (): Promise<AlertRule> => api.get('/v1/alert-rules/{id}', withRule({ region, id })),
  );
  return (
    <Page title={rule.data?.latest.name ?? id}>
      <Loaded query={rule}>
        {(resource) => (
          <>
            <StatePanel rule={resource.latest} queryKey={queryKey} />
            {hasRole('admin') ? <ChangeForm resource={resource} /> : null}
          </>
        )}
      </Loaded>
    </Page>
  );
}

function StatePanel(props: { readonly rule: AlertRule; readonly queryKey: readonly string[] }) {
  const { rule, queryKey } = props;
  const { state } = rule;
  const api = useApi();
  const [, navigate] = useLocation();
  const link = useHref();
  const { hasRole } = useSession();
  const runner = useActions([queryKey, ['alert-rules']]);
  const test = () =>
    runner.run('test', async () => {
      const { sent, message } = await api.post('/v1/alert-rules/{id}/test', withRule(rule));
      if (!sent) throw new Error(message ?? 'The target did not accept the message.');
      showToast('Test message sent.');
    });
  const remove = () =>
    runner.confirm({
      title: `Delete alert rule ${rule.name}?`,
      body: 'The rule sends no more messages, not even when its condition is resolved.',
      verb: 'Delete',
      destructive: true,
      act: async () => {
        await api.delete('/v1/alert-rules/{id}', withRevision(withRule(rule), rule.revision));
        navigate(link('/setup/alert-rules'));
      },
      done: `Alert rule ${rule.name} deleted.`,
    });
  return (
    <Panel title="State">
      <DescriptionList
        rows={{
          State: <RuleState rule={rule} />,
          Since: state.since === null ? undefined : <RelativeTime at={state.since} />,
          Condition: formatCondition(rule),
          Value: state.value?.toLocaleString() ?? 'Not known',
          Accounts: rule.accounts?.join(', ') ?? 'All',
          Target: formatTarget(rule),
          'Last message': <RelativeTime at={state.sentAt} none="Never" />,
        }}
      />
      {state.problem === null ? null : (
        <Note tone="bad">The last message was not accepted: {state.problem}</Note>
      )}
      {runner.failure ? <Failure error={runner.failure} /> : null}
      {hasRole('admin') ? (
        <div className={ui.actions}>
          <Button loading={runner.busy === 'test'} onClick={() => void test()}>
            Send test message
          </Button>
          <Button variant="light" color="red" onClick={remove}>
            Delete
          </Button>
        </div>
      ) : null}
    </Panel>
  );
}

const LABELS = {
  ...{ name: 'name', condition: 'condition', threshold: 'threshold', accounts: 'accounts' },
  ...{ forMinutes: 'duration', repeatMinutes: 'reminders', notifyResolved: 'resolved', target: 'target' },
  ...{ quietHours: 'quiet hours', enabled: 'enabled' },
} as const;

function ChangeForm({ resource }: { readonly resource: Resource<AlertRule> }) {
  const api = useApi();
  const form = useResourceForm({
    schema: AlertRuleUpdate,
    resource,
    toValues: toAlertValues,
    toBody: toChange,
    toField: toAlertFormField,
    save: (body, base): Promise<AlertRule> =>
      api.patch('/v1/alert-rules/{id}', { ...withRevision(withRule(base), base.revision), body }),
    done: ({ name }) => `Alert rule ${name} saved.`,
    labels: LABELS,
  });
  return (
    <Form of={form}>
      <AlertRuleFields current={formatTarget(form.base)} />
      <FormActions verb="Save changes" />
    </Form>
  );
}
