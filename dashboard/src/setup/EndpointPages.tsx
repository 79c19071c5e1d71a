/** Endpoints: what there is, a new one, and what can be changed of one. */
import { Button, Modal, NativeSelect } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import * as z from 'zod';
import { EndpointUpdate, NewEndpoint, Rotation } from '../../../shared/delivery/endpoint-input.ts';
import { Badge, Empty, Facts, Failure, Page, Panel, showToast, useConfirm } from '../components.tsx';
import { useApiForm } from '../forms.ts';
import { allPages, useAccounts, useApi, useRegions } from '../queries.ts';
import { useSession } from '../session.ts';
import { RelativeTime, Timestamp } from '../times.tsx';
import { endpointHref, useRegion } from '../urls.ts';
import {
  ButtonLink,
  ConflictNote,
  DeclaredNote,
  FormActions,
  ReloadedNote,
  useFormBase,
  useSetupHref,
} from './components.tsx';
import { EndpointFields } from './EndpointForm.tsx';
import {
  checkEndpoint,
  type Endpoint,
  type EndpointValues,
  findChangedFields,
  NEW_ENDPOINT,
  toEndpointChange,
  toEndpointFormField,
  toEndpointValues,
  toNewEndpoint,
} from './endpoint-values.ts';
import { type NewSecret, SecretDialog } from './SecretDialog.tsx';
import css from './setup.module.css';

const pathOf = (id: string): string => `/v1/endpoints/${encodeURIComponent(id)}`;
const endpointSetupHref = (region: string, id: string): string =>
  `/setup/endpoints/${encodeURIComponent(region)}/${encodeURIComponent(id)}`;

/** All webhooks of the key. */
export function useEndpoints() {
  const api = useApi();
  return useQuery({
    queryKey: ['endpoints', 'setup'],
    queryFn: ({ signal }) => allPages<Endpoint>(api, '/v1/endpoints', 'endpoints', { signal }),
    refetchInterval: 15_000,
  });
}

/** All endpoints. */
export function EndpointsPage() {
  const { data: all, error, refetch } = useEndpoints();
  const { may } = useSession();
  const region = useRegion();
  const link = useSetupHref();
  const endpoints = all?.filter((endpoint) => region === null || endpoint.region === region);
  return (
    <Page
      title="Endpoints"
      actions={may('admin') ? <ButtonLink href={link('/setup/new-endpoint')}>New endpoint</ButtonLink> : null}
    >
      <p className={css.what}>Where events are sent as signed webhooks, in order for each job.</p>
      {error && !all ? <Failure error={error} again={refetch} /> : null}
      {endpoints?.length === 0 ? (
        <Empty>
          No endpoint is set up yet. Events can be read from the feed and the streams all the same.
        </Empty>
      ) : null}
      {endpoints && endpoints.length > 0 ? (
        <Panel title={endpoints.length === 1 ? '1 endpoint' : `${endpoints.length} endpoints`}>
          <div className={css.wide}>
            <table className={css.table}>
              <thead>
                <tr>
                  <th>Endpoint</th>
                  <th>Region</th>
                  <th className={css.extra}>Accounts</th>
                  <th className={css.extra}>Types</th>
                  <th>State</th>
                  <th className={css.extra}>Made</th>
                </tr>
              </thead>
              <tbody>
                {endpoints.map((endpoint) => (
                  <tr key={`${endpoint.region}/${endpoint.id}`}>
                    <td className={css.break}>
                      <div className={css.name}>
                        <Link href={link(endpointSetupHref(endpoint.region, endpoint.id))}>
                          {endpoint.id}
                        </Link>
                      </div>
                      <div className={`${css.quiet} ${css.small}`}>
                        {endpoint.managed ? '' : 'In the configuration file · '}
                        {endpoint.description ?? endpoint.url}
                      </div>
                    </td>
                    <td>{endpoint.region.toUpperCase()}</td>
                    <td className={css.extra}>{formatNames(endpoint.accounts)}</td>
                    <td className={css.extra}>{formatNames(endpoint.types)}</td>
                    <td>
                      <StateBadge state={endpoint.state} />
                    </td>
                    <td className={css.extra}>
                      {endpoint.createdAt ? <RelativeTime at={endpoint.createdAt} /> : '–'}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </Panel>
      ) : null}
    </Page>
  );
}

/** A new endpoint. Its secret is shown at the end, once. */
export function NewEndpointPage() {
  const api = useApi();
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const link = useSetupHref();
  const { forAll } = useSession();
  const looked = useRegion();
  const regions = useServedRegions();
  const [made, setMade] = useState<(NewSecret & { readonly endpoint: Endpoint }) | null>(null);
  const form = useApiForm<EndpointValues>({
    schema: NewEndpoint.extend({ region: z.string().optional() }),
    initial: { ...NEW_ENDPOINT, region: looked ?? '', whose: forAll ? 'all' : 'some' },
    toBody: toNewEndpoint,
    check: (values) => ({
      ...checkEndpoint(values),
      ...(values.region === '' && regions.length > 1
        ? { region: 'It must be the region whose events it gets.' }
        : {}),
    }),
    fieldOf: toEndpointFormField,
    send: async (body) => {
      const { endpoint, secret, truncatedAccounts } = await api.post<{
        readonly endpoint: Endpoint;
        readonly secret: string;
        readonly truncatedAccounts: readonly string[];
      }>('/v1/endpoints', { body });
      void queries.invalidateQueries({ queryKey: ['endpoints'] });
      setMade({
        endpoint,
        secret,
        title: `The endpoint ${endpoint.id} is made`,
        name: 'Its signing secret',
        note: <SecretHelp truncatedAccounts={truncatedAccounts} />,
      });
    },
  });
  return (
    <Page title="New endpoint">
      <form className={css.form} onSubmit={form.submit} noValidate>
        <EndpointFields of={form} regions={regions} />
        <FormActions
          of={form}
          verb="Make the endpoint"
          more={<Link href={link('/setup/endpoints')}>Cancel</Link>}
        />
      </form>
      <SecretDialog
        made={made}
        done={() => {
          setMade(null);
          if (made) navigate(link(endpointSetupHref(made.endpoint.region, made.endpoint.id)));
        }}
      />
    </Page>
  );
}

/** One endpoint; changes for keys that may, of what is not declared elsewhere. */
export function EndpointPage({ region, id }: { readonly region: string; readonly id: string }) {
  const api = useApi();
  const queries = useQueryClient();
  const { may } = useSession();
  const link = useSetupHref();
  const [gone, setGone] = useState(false);
  const queryKey = ['endpoints', 'setup', region, id];
  const read = (): Promise<Endpoint> => api.get<Endpoint>(pathOf(id), { query: { region } });
  const {
    data: endpoint,
    error,
    refetch,
  } = useQuery({
    queryKey,
    queryFn: read,
    refetchInterval: 15_000,
    enabled: !gone,
  });
  const changed = (now: Endpoint): void => {
    queries.setQueryData(queryKey, now);
    void queries.invalidateQueries({ queryKey: ['endpoints', 'setup'], exact: true });
  };
  return (
    <Page
      title={id}
      actions={endpoint ? <Link href={link(endpointHref(region, id))}>How it is doing</Link> : null}
    >
      {error && !endpoint ? <Failure error={error} again={refetch} /> : null}
      {endpoint ? (
        endpoint.managed && may('admin') ? (
          <>
            <ChangeForm endpoint={endpoint} read={read} changed={changed} />
            <SecretPanel endpoint={endpoint} />
            <DeletePanel endpoint={endpoint} deleting={setGone} />
          </>
        ) : (
          <>
            {endpoint.managed ? null : <DeclaredNote what={`The endpoint ${id}`} part="endpoints" />}
            <Panel title="Endpoint">
              <EndpointFacts endpoint={endpoint} />
            </Panel>
          </>
        )
      ) : null}
    </Page>
  );
}

const FIELD_LABELS = {
  url: 'the URL',
  description: 'the description',
  accounts: 'the accounts',
  types: 'the types',
  orderGroups: 'the order groups',
  origins: 'the origins',
  jobFields: 'the fields of the job',
  headers: 'the headers',
  concurrency: 'jobs side by side',
  ratePerSecond: 'requests a second',
  paused: 'whether it is paused',
} as const;

function ChangeForm(props: {
  readonly endpoint: Endpoint;
  readonly read: () => Promise<Endpoint>;
  readonly changed: (now: Endpoint) => void;
}) {
  const { endpoint, read, changed } = props;
  const { region, id } = endpoint;
  const api = useApi();
  const own = useState(endpoint);
  const [base, setBase] = own;
  const form = useApiForm<EndpointValues>({
    schema: EndpointUpdate,
    initial: toEndpointValues(endpoint),
    toBody: (values) => toEndpointChange(values, base),
    check: checkEndpoint,
    fieldOf: toEndpointFormField,
    send: async (body: object) => {
      if (Object.keys(body).length === 0) throw new Error('Nothing is different from what is saved.');
      const now = await api.patch<Endpoint>(pathOf(id), {
        body,
        query: { region },
        revision: base.revision,
      });
      setBase(now);
      form.form.setValues(toEndpointValues(now));
      form.markSaved(toEndpointValues(now));
      changed(now);
      showToast(`The endpoint ${id} is saved.`);
    },
  });
  const { reload, reloaded } = useFormBase(endpoint, own, form, toEndpointValues, read);
  return (
    <form className={css.form} onSubmit={form.submit} noValidate>
      {reloaded ? <ReloadedNote changed={findChangedFields(...reloaded, FIELD_LABELS)} /> : null}
      <EndpointFields of={form} before={base} regions={[]} />
      <FormActions
        of={form}
        verb="Save the changes"
        help={<ConflictNote error={form.error} reload={reload} />}
      />
    </form>
  );
}

const HOUR = 3600;
const OVERLAPS = [
  { value: String(24 * HOUR), label: 'for a day' },
  { value: String(HOUR), label: 'for an hour' },
  { value: String(7 * 24 * HOUR), label: 'for a week' },
  { value: '0', label: 'not at all: they stop at once' },
];

function SecretPanel({ endpoint: { region, id } }: { readonly endpoint: Endpoint }) {
  const api = useApi();
  const [asking, setAsking] = useState(false);
  const [made, setMade] = useState<NewSecret | null>(null);
  return (
    <Panel title="Signing secret">
      <p className={css.what}>
        Every request is signed with it, as Standard Webhooks has it. It was shown once; a new one takes its
        place, and the former ones can sign along while the receiver changes over.
      </p>
      <div>
        <Button variant="default" onClick={() => setAsking(true)}>
          Make a new secret
        </Button>
      </div>
      <Modal
        opened={asking}
        onClose={() => setAsking(false)}
        title={`A new secret for ${id}`}
        lockScroll={false}
        centered
        closeButtonProps={{ 'aria-label': 'Close' }}
      >
        <RotationForm
          rotate={async (body) => {
            const { secret, previousSecretsExpireAt } = await api.post<{
              readonly secret: string;
              readonly previousSecretsExpireAt: string;
            }>(`${pathOf(id)}/rotate-secret`, { query: { region }, body });
            setAsking(false);
            setMade({
              secret,
              title: `${id} has a new secret`,
              name: 'Its new signing secret',
              note:
                Date.parse(previousSecretsExpireAt) > Date.now() ? (
                  <p className={css.what}>
                    The former ones sign along until <Timestamp at={previousSecretsExpireAt} />.
                  </p>
                ) : (
                  <p className={css.what}>The former ones sign no more.</p>
                ),
            });
          }}
        />
      </Modal>
      <SecretDialog made={made} done={() => setMade(null)} />
    </Panel>
  );
}

function RotationForm({ rotate }: { readonly rotate: (body: object) => Promise<void> }) {
  const form = useApiForm({
    schema: Rotation,
    initial: { gracePeriodSeconds: String(24 * HOUR) },
    toBody: ({ gracePeriodSeconds }) => ({ gracePeriodSeconds: Number(gracePeriodSeconds) }),
    send: rotate,
  });
  return (
    <form className={css.fields} onSubmit={form.submit} noValidate>
      <NativeSelect
        label="The former secrets sign along"
        description="Requests carry both signatures for so long, and a receiver needs to know only one of them."
        data={OVERLAPS}
        {...form.form.getInputProps('gracePeriodSeconds')}
      />
      <FormActions of={form} verb="Make a new secret" />
    </form>
  );
}

function DeletePanel(props: { readonly endpoint: Endpoint; readonly deleting: (is: boolean) => void }) {
  const { region, id, revision } = props.endpoint;
  const api = useApi();
  const ask = useConfirm();
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const link = useSetupHref();
  const what = (
    <>
      <p>It gets nothing more, and this goes with it, and can’t be brought back:</p>
      <ul className={css.plain}>
        <li>its places in the logs of its accounts, so what it has not got yet is not sent,</li>
        <li>events that are set aside for it, or that it refused,</li>
        <li>its replays, also those that run,</li>
        <li>its signing secret and its headers.</li>
      </ul>
      <p>The events themselves stay in the logs, and its deliveries in the log of deliveries for 30 days.</p>
    </>
  );
  return (
    <Panel title="Delete the endpoint">
      <p className={css.what}>It gets nothing more; to hold it back for a while, pause it instead.</p>
      <div>
        <Button
          color="red"
          variant="light"
          onClick={() =>
            ask({
              title: `Delete the endpoint ${id}?`,
              body: what,
              verb: 'Delete for good',
              destructive: true,
              confirmText: id,
              onConfirm: async () => {
                props.deleting(true);
                try {
                  await api.call('DELETE', pathOf(id), { query: { region }, revision });
                } catch (cause) {
                  props.deleting(false);
                  throw cause;
                }
                navigate(link('/setup/endpoints'));
                queries.removeQueries({ queryKey: ['endpoints', 'setup', region, id] });
                void queries.invalidateQueries({ queryKey: ['endpoints'] });
                showToast(`The endpoint ${id} is deleted.`);
              },
            })
          }
        >
          Delete {id}
        </Button>
      </div>
    </Panel>
  );
}

function EndpointFacts({ endpoint }: { readonly endpoint: Endpoint }) {
  const { jobFields, headers, concurrency, ratePerSecond } = endpoint;
  const fields = Object.entries(jobFields).map(([name, value]) => `${name}: ${value ?? 'none'}`);
  return (
    <Facts
      rows={[
        ['Id', endpoint.id],
        ['Region', endpoint.region.toUpperCase()],
        ['URL', endpoint.url],
        ['Description', endpoint.description ?? undefined],
        ['State', <StateBadge key="state" state={endpoint.state} />],
        ['Accounts', endpoint.accounts.length === 0 ? 'All of the region' : endpoint.accounts.join(', ')],
        ['Types', endpoint.types.length === 0 ? 'All' : endpoint.types.join(', ')],
        ['Order groups', endpoint.orderGroups.join(', ') || undefined],
        ['Origins', endpoint.origins.join(', ') || undefined],
        ['Fields of the job', fields.join(', ') || undefined],
        ['Headers', headers.join(', ') || undefined],
        ['Jobs side by side', concurrency ?? 16],
        ['Requests a second', ratePerSecond ?? 'As many as it takes'],
        ['Made', endpoint.createdAt ? <RelativeTime key="at" at={endpoint.createdAt} /> : undefined],
      ]}
    />
  );
}

const STATES = {
  active: { tone: 'good', words: 'Active' },
  paused: { tone: 'warn', words: 'Paused' },
  failing: { tone: 'bad', words: 'Failing' },
  disabled: { tone: 'bad', words: 'Disabled' },
} as const;

function StateBadge({ state }: Pick<Endpoint, 'state'>) {
  const { tone, words } = STATES[state];
  return <Badge tone={tone}>{words}</Badge>;
}

function SecretHelp({ truncatedAccounts }: { readonly truncatedAccounts: readonly string[] }) {
  return (
    <>
      <p className={css.what}>
        The receiver verifies the signature of each request with it;{' '}
        <a href="/docs" target="_blank" rel="noreferrer">
          the documents
        </a>{' '}
        show how.
      </p>
      {truncatedAccounts.length > 0 ? (
        <p className={css.what}>
          Of {truncatedAccounts.join(', ')} some events that were asked for may no longer be kept: it begins
          later there.
        </p>
      ) : null}
    </>
  );
}

/** Regions that a new endpoint can be in. */
function useServedRegions(): readonly string[] {
  const { forAll } = useSession();
  const { data: regions } = useRegions();
  const { data: accounts } = useAccounts();
  return forAll
    ? (regions ?? []).map(({ id }) => id)
    : [...new Set((accounts ?? []).map(({ region }) => region))].sort();
}

/** Names as far as there is room for them. */
function formatNames(names: readonly string[]): string {
  const [first, second, ...others] = names;
  if (first === undefined) return 'All';
  if (others.length > 0) return `${first}, ${second} and ${others.length} more`;
  return second === undefined ? first : `${first}, ${second}`;
}
