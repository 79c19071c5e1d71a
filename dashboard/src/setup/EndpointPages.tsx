/** Endpoint pages: the list, a new endpoint, and one endpoint. */
import { Button, Modal, NativeSelect } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import * as z from 'zod';
import type { SecretRotation } from '../../../client/index.ts';
import { EndpointUpdate, NewEndpoint, Rotation } from '../../../shared/delivery/endpoint-input.ts';
import { withEndpoint, withRevision } from '../api.ts';
import { Badge, Empty, Facts, Failure, Page, Panel, showToast } from '../components.tsx';
import { formatCount } from '../customers/labels.ts';
import { DataTable } from '../DataTable.tsx';
import { useApiForm } from '../forms.ts';
import { collect, useAccounts, useApi, useRegions } from '../queries.ts';
import { useSession } from '../session.ts';
import { RelativeTime, Timestamp } from '../times.tsx';
import ui from '../ui.module.css';
import { endpointHref, useHref, useRegion } from '../urls.ts';
import {
  ButtonLink,
  ConflictNote,
  DeclaredNote,
  DeletePanel,
  FormActions,
  ReloadedNote,
  useFormBase,
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

const endpointSetupHref = (region: string, id: string): string =>
  `/setup/endpoints/${encodeURIComponent(region)}/${encodeURIComponent(id)}`;

/** Fetches all webhook endpoints that the key can read. */
export function useEndpoints() {
  const api = useApi();
  return useQuery({
    queryKey: ['endpoints', 'setup'],
    queryFn: ({ signal }) => collect(api.list('/v1/endpoints', 'endpoints', { signal })),
    refetchInterval: 15_000,
  });
}

/** The list of endpoints. */
export function EndpointsPage() {
  const { data: all, error, refetch } = useEndpoints();
  const { may } = useSession();
  const region = useRegion();
  const link = useHref();
  const endpoints = all?.filter((endpoint) => region === null || endpoint.region === region);
  return (
    <Page
      title="Endpoints"
      actions={may('admin') ? <ButtonLink href={link('/setup/new-endpoint')}>New endpoint</ButtonLink> : null}
    >
      <p className={ui.hint}>Webhook URLs that receive signed events, in order for each job.</p>
      {error && !all ? <Failure error={error} again={refetch} /> : null}
      {endpoints?.length === 0 ? (
        <Empty>
          No endpoints yet. Each endpoint that you create appears here. Events are also available from the
          feed and the streams.
        </Empty>
      ) : null}
      {endpoints && endpoints.length > 0 ? (
        <Panel title={formatCount(endpoints.length, 'endpoint')}>
          <DataTable
            label="Endpoints"
            rows={endpoints}
            keyOf={({ region, id }) => `${region}/${id}`}
            columns={[
              {
                name: 'Endpoint',
                render: ({ region, id, managed, description, url }) => (
                  <>
                    <Link href={link(endpointSetupHref(region, id))}>{id}</Link>
                    <div className={ui.hint}>
                      {managed ? '' : 'In the configuration file · '}
                      {description ?? url}
                    </div>
                  </>
                ),
              },
              { name: 'Region', render: ({ region }) => region.toUpperCase() },
              { name: 'Accounts', render: ({ accounts }) => formatNames(accounts) },
              { name: 'Types', render: ({ types }) => formatNames(types) },
              { name: 'State', render: ({ state }) => <StateBadge state={state} /> },
              {
                name: 'Created',
                render: ({ createdAt }) => (createdAt ? <RelativeTime at={createdAt} /> : '–'),
              },
            ]}
          />
        </Panel>
      ) : null}
    </Page>
  );
}

/** The form of a new endpoint. Shows its secret once after creation. */
export function NewEndpointPage() {
  const api = useApi();
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const link = useHref();
  const { forAll } = useSession();
  const region = useRegion() ?? '';
  const regions = useServedRegions();
  const [created, setCreated] = useState<(NewSecret & { readonly endpoint: Endpoint }) | null>(null);
  const form = useApiForm<EndpointValues>({
    schema: NewEndpoint.extend({ region: z.string().optional() }),
    initial: { ...NEW_ENDPOINT, region, accountScope: forAll ? 'all' : 'some' },
    toBody: toNewEndpoint,
    check: (values) => ({
      ...checkEndpoint(values),
      ...(values.region === '' && regions.length > 1
        ? { region: 'It must be one of the listed regions.' }
        : {}),
    }),
    toField: toEndpointFormField,
    send: async (body) => {
      const { endpoint, secret, truncatedAccounts } = await api.post('/v1/endpoints', { body });
      void queries.invalidateQueries({ queryKey: ['endpoints'] });
      setCreated({
        endpoint,
        secret,
        title: `Endpoint ${endpoint.id} created`,
        name: 'Signing secret',
        note: <SecretHelp truncatedAccounts={truncatedAccounts} />,
      });
    },
  });
  return (
    <Page title="New endpoint">
      <form className={`${ui.stack} ${ui.stack} ${css.form}`} onSubmit={form.submit} noValidate>
        <EndpointFields of={form} regions={regions} />
        <FormActions
          of={form}
          verb="Create endpoint"
          more={<Link href={link('/setup/endpoints')}>Cancel</Link>}
        />
      </form>
      <SecretDialog
        secret={created}
        onClose={() => {
          setCreated(null);
          if (created) navigate(link(endpointSetupHref(created.endpoint.region, created.endpoint.id)));
        }}
      />
    </Page>
  );
}

/** One endpoint. Editable with the role admin, unless it is declared in the configuration file. */
export function EndpointPage({ region, id }: { readonly region: string; readonly id: string }) {
  const api = useApi();
  const queries = useQueryClient();
  const { may } = useSession();
  const link = useHref();
  const [isDeleting, setDeleting] = useState(false);
  const queryKey = ['endpoints', 'setup', region, id];
  const read = (): Promise<Endpoint> => api.get('/v1/endpoints/{id}', withEndpoint({ region, id }));
  const {
    data: endpoint,
    error,
    refetch,
  } = useQuery({
    queryKey,
    queryFn: read,
    refetchInterval: 15_000,
    enabled: !isDeleting,
  });
  const changed = (now: Endpoint): void => {
    queries.setQueryData(queryKey, now);
    void queries.invalidateQueries({ queryKey: ['endpoints', 'setup'], exact: true });
  };
  return (
    <Page
      title={id}
      actions={endpoint ? <Link href={link(endpointHref(region, id))}>View health</Link> : null}
    >
      {error && !endpoint ? <Failure error={error} again={refetch} /> : null}
      {endpoint ? (
        endpoint.managed && may('admin') ? (
          <>
            <ChangeForm endpoint={endpoint} read={read} changed={changed} />
            <SecretPanel endpoint={endpoint} />
            <DeleteEndpoint endpoint={endpoint} setDeleting={setDeleting} />
          </>
        ) : (
          <>
            {endpoint.managed ? null : <DeclaredNote what={`Endpoint ${id}`} part="endpoints" />}
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
  url: 'URL',
  description: 'description',
  accounts: 'accounts',
  types: 'event types',
  orderGroups: 'order groups',
  origins: 'origins',
  jobFields: 'job fields',
  headers: 'headers',
  concurrency: 'concurrent jobs',
  ratePerSecond: 'requests per second',
  paused: 'paused',
} as const;

function ChangeForm(props: {
  readonly endpoint: Endpoint;
  readonly read: () => Promise<Endpoint>;
  readonly changed: (now: Endpoint) => void;
}) {
  const { endpoint, read, changed } = props;
  const { id } = endpoint;
  const api = useApi();
  const own = useState(endpoint);
  const [base, setBase] = own;
  const form = useApiForm<EndpointValues>({
    schema: EndpointUpdate,
    initial: toEndpointValues(endpoint),
    toBody: (values) => toEndpointChange(values, base),
    check: checkEndpoint,
    toField: toEndpointFormField,
    send: async (body: object) => {
      if (Object.keys(body).length === 0) throw new Error('No changes to save.');
      const now = await api.patch('/v1/endpoints/{id}', {
        ...withRevision(withEndpoint(endpoint), base.revision),
        body,
      });
      setBase(now);
      form.form.setValues(toEndpointValues(now));
      form.markSaved(toEndpointValues(now));
      changed(now);
      showToast(`Endpoint ${id} saved.`);
    },
  });
  const { reload, reloaded } = useFormBase(endpoint, own, form, toEndpointValues, read);
  return (
    <form className={`${ui.stack} ${ui.stack} ${css.form}`} onSubmit={form.submit} noValidate>
      {reloaded ? <ReloadedNote changed={findChangedFields(...reloaded, FIELD_LABELS)} /> : null}
      <EndpointFields of={form} before={base} regions={[]} />
      <FormActions of={form} verb="Save changes" help={<ConflictNote error={form.error} reload={reload} />} />
    </form>
  );
}

const HOUR = 3600;
const OVERLAPS = [
  { value: String(24 * HOUR), label: '1 day' },
  { value: String(HOUR), label: '1 hour' },
  { value: String(7 * 24 * HOUR), label: '7 days' },
  { value: '0', label: 'Revoke immediately' },
];

function SecretPanel({ endpoint: { region, id } }: { readonly endpoint: Endpoint }) {
  const api = useApi();
  const [isOpen, setOpen] = useState(false);
  const [created, setCreated] = useState<NewSecret | null>(null);
  return (
    <Panel title="Signing secret">
      <p className={ui.hint}>
        Signs every request according to Standard Webhooks. It cannot be shown again. After a rotation, the
        previous secrets can also sign requests until the receiver has the new one.
      </p>
      <div>
        <Button variant="default" onClick={() => setOpen(true)}>
          Rotate secret
        </Button>
      </div>
      <Modal opened={isOpen} onClose={() => setOpen(false)} title={`Rotate the secret of ${id}`}>
        <RotationForm
          rotate={async (body) => {
            const { secret, previousSecretsExpireAt } = await api.post('/v1/endpoints/{id}/rotate-secret', {
              ...withEndpoint({ region, id }),
              body,
            });
            setOpen(false);
            setCreated({
              secret,
              title: `Secret of ${id} rotated`,
              name: 'New signing secret',
              note:
                Date.parse(previousSecretsExpireAt) > Date.now() ? (
                  <p className={ui.hint}>
                    Previous secrets are valid until <Timestamp at={previousSecretsExpireAt} />.
                  </p>
                ) : (
                  <p className={ui.hint}>Previous secrets are revoked.</p>
                ),
            });
          }}
        />
      </Modal>
      <SecretDialog secret={created} onClose={() => setCreated(null)} />
    </Panel>
  );
}

function RotationForm({ rotate }: { readonly rotate: (body: SecretRotation) => Promise<void> }) {
  const form = useApiForm({
    schema: Rotation,
    initial: { gracePeriodSeconds: String(24 * HOUR) },
    toBody: ({ gracePeriodSeconds }) => ({ gracePeriodSeconds: Number(gracePeriodSeconds) }),
    send: rotate,
  });
  return (
    <form className={ui.fields} onSubmit={form.submit} noValidate>
      <NativeSelect
        label="Previous secrets stay valid for"
        description="During this time requests have a signature of each secret. The receiver needs only one of the secrets."
        data={OVERLAPS}
        {...form.form.getInputProps('gracePeriodSeconds')}
      />
      <FormActions of={form} verb="Rotate secret" />
    </form>
  );
}

function DeleteEndpoint(props: {
  readonly endpoint: Endpoint;
  readonly setDeleting: (isDeleting: boolean) => void;
}) {
  const { region, id, revision } = props.endpoint;
  const api = useApi();
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const link = useHref();
  async function remove(): Promise<void> {
    props.setDeleting(true);
    try {
      await api.delete('/v1/endpoints/{id}', withRevision(withEndpoint({ region, id }), revision));
    } catch (cause) {
      props.setDeleting(false);
      throw cause;
    }
    navigate(link('/setup/endpoints'));
    queries.removeQueries({ queryKey: ['endpoints', 'setup', region, id] });
    void queries.invalidateQueries({ queryKey: ['endpoints'] });
    showToast(`Endpoint ${id} deleted.`);
  }
  return (
    <DeletePanel
      kind="endpoint"
      id={id}
      summary="Stops all deliveries permanently. To stop them for a while, pause the endpoint instead."
      deleted={[
        'its cursors: undelivered events are not sent',
        'its parked and rejected events',
        'its replays, including running ones',
        'its signing secret and headers',
      ]}
      kept="The events stay in the logs. The delivery log keeps its deliveries for 30 days."
      onDelete={remove}
    />
  );
}

function EndpointFacts({ endpoint }: { readonly endpoint: Endpoint }) {
  const { jobFields, headers, concurrency, ratePerSecond } = endpoint;
  const fields = Object.entries(jobFields).map(([name, value]) => `${name}: ${value ?? 'none'}`);
  return (
    <Facts
      rows={{
        Id: endpoint.id,
        Region: endpoint.region.toUpperCase(),
        URL: endpoint.url,
        Description: endpoint.description ?? undefined,
        State: <StateBadge state={endpoint.state} />,
        Accounts: endpoint.accounts.length === 0 ? 'All of the region' : endpoint.accounts.join(', '),
        'Event types': endpoint.types.length === 0 ? 'All' : endpoint.types.join(', '),
        'Order groups': endpoint.orderGroups.join(', ') || undefined,
        Origins: endpoint.origins.join(', ') || undefined,
        'Job fields': fields.join(', ') || undefined,
        Headers: headers.join(', ') || undefined,
        'Concurrent jobs': concurrency ?? 16,
        'Requests per second': ratePerSecond ?? 'No limit',
        Created: endpoint.createdAt ? <RelativeTime at={endpoint.createdAt} /> : undefined,
      }}
    />
  );
}

const STATES = {
  active: { tone: 'good', name: 'Active' },
  paused: { tone: 'warn', name: 'Paused' },
  failing: { tone: 'bad', name: 'Failing' },
  disabled: { tone: 'bad', name: 'Disabled' },
} as const;

function StateBadge({ state }: Pick<Endpoint, 'state'>) {
  const { tone, name } = STATES[state];
  return <Badge tone={tone}>{name}</Badge>;
}

function SecretHelp({ truncatedAccounts }: { readonly truncatedAccounts: readonly string[] }) {
  return (
    <>
      <p className={ui.hint}>
        The receiver uses it to verify the signature of each request. See the{' '}
        <a href="/docs" target="_blank" rel="noreferrer">
          API documentation
        </a>
        .
      </p>
      {truncatedAccounts.length > 0 ? (
        <p className={ui.hint}>
          Some requested events of {truncatedAccounts.join(', ')} are no longer retained. The endpoint starts
          at the oldest retained event there.
        </p>
      ) : null}
    </>
  );
}

/** Returns the regions in which the key can create an endpoint. */
function useServedRegions(): readonly string[] {
  const { forAll } = useSession();
  const { data: regions } = useRegions();
  const { data: accounts } = useAccounts();
  return forAll
    ? (regions ?? []).map(({ id }) => id)
    : [...new Set((accounts ?? []).map(({ region }) => region))].sort();
}

/** Formats up to two names and the number of others. */
function formatNames(names: readonly string[]): string {
  const [first, second, ...others] = names;
  if (first === undefined) return 'All';
  if (others.length > 0) return `${first}, ${second} and ${others.length} more`;
  return second === undefined ? first : `${first}, ${second}`;
}
