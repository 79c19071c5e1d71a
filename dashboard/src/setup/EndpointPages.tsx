/** Endpoint pages: a new endpoint, and the settings of one endpoint. */
import { Button, Modal } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useLocation } from 'wouter';
import type { SecretRotation } from '../../../client/index.ts';
import { EndpointUpdate, Rotation } from '../../../shared/delivery/endpoint-input.ts';
import { MAX_LANES } from '../../../shared/delivery/lanes.ts';
import { withEndpoint, withRevision } from '../api.ts';
import { DescriptionList, Loaded, Note, Page, Panel, showToast, Url } from '../components.tsx';
import { Form, FormActions, SelectField } from '../form.tsx';
import { useApiForm, useResourceForm } from '../forms.ts';
import { StateBadge } from '../health/components.tsx';
import { toEndpointState } from '../health/status.ts';
import { useApi } from '../queries.ts';
import { ResourcePage } from '../ResourcePage.tsx';
import { type Resource, useResource } from '../resources.ts';
import { useSession } from '../session.ts';
import { RelativeTime, Timestamp } from '../times.tsx';
import ui from '../ui.module.css';
import { ENDPOINTS_PATH, endpointHref, useHref } from '../urls.ts';
import { DeclaredNote, DeletePanel } from './components.tsx';
import { EndpointFields } from './EndpointForm.tsx';
import {
  checkEndpoint,
  type Endpoint,
  type EndpointValues,
  toEndpointChange,
  toEndpointFormField,
  toEndpointValues,
} from './endpoint-values.ts';
import { NewEndpointForm } from './NewEndpointForm.tsx';
import { type NewSecret, SecretDialog } from './SecretDialog.tsx';

/** The page with the form of a new endpoint. */
export function NewEndpointPage() {
  const [, navigate] = useLocation();
  const link = useHref();
  return (
    <Page title="New endpoint">
      <NewEndpointForm
        cancel={link(ENDPOINTS_PATH)}
        onCreated={({ region, id }) => navigate(link(endpointHref(region, id, 'settings')))}
      />
    </Page>
  );
}

/** One endpoint. Editable with the role admin, unless it is declared in the configuration file. */
export function EndpointPage({ region, id }: { readonly region: string; readonly id: string }) {
  const api = useApi();
  const { hasRole } = useSession();
  const [isDeleting, setDeleting] = useState(false);
  const endpoint = useResource(
    ['endpoints', 'setup', region, id],
    ['endpoints', 'all'],
    (): Promise<Endpoint> => api.get('/v1/endpoints/{id}', withEndpoint({ region, id })),
    { enabled: !isDeleting },
  );
  return (
    <ResourcePage title={`Endpoint ${id}`} tab="settings" toHref={(tab) => endpointHref(region, id, tab)}>
      <Loaded query={endpoint}>
        {(resource) => {
          const { managed, paused, kind } = resource.latest;
          const isEditable = managed && hasRole('admin');
          // Only the removal of its entry pauses a declared endpoint.
          const isRemoved = !managed && paused;
          return (
            <>
              {isRemoved ? (
                <Note tone="warn">
                  Endpoint {id} is no longer in the configuration file. To resume it, restore its entry there
                  and restart Jobwire.
                </Note>
              ) : managed ? null : (
                <DeclaredNote what={`Endpoint ${id}`} part="endpoints" />
              )}
              {isEditable ? (
                <ChangeForm resource={resource} />
              ) : (
                <Panel title="Endpoint">
                  <EndpointFacts endpoint={resource.latest} />
                </Panel>
              )}
              {isEditable && kind === 'webhook' ? <SecretPanel endpoint={resource.latest} /> : null}
              {isEditable || (isRemoved && hasRole('admin')) ? (
                <DeleteEndpoint endpoint={resource.latest} setDeleting={setDeleting} />
              ) : null}
            </>
          );
        }}
      </Loaded>
    </ResourcePage>
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

function ChangeForm({ resource }: { readonly resource: Resource<Endpoint> }) {
  const api = useApi();
  const form = useResourceForm<Endpoint, EndpointValues>({
    schema: EndpointUpdate,
    resource,
    toValues: toEndpointValues,
    toBody: toEndpointChange,
    check: checkEndpoint,
    toField: toEndpointFormField,
    save: async (body: object, base) => {
      if (Object.keys(body).length === 0) throw new Error('No changes to save.');
      const options = { ...withRevision(withEndpoint(base), base.revision), body };
      return api.patch('/v1/endpoints/{id}', options);
    },
    done: ({ id }) => `Endpoint ${id} saved.`,
    labels: FIELD_LABELS,
  });
  return (
    <Form of={form}>
      <EndpointFields before={form.base} />
      <FormActions verb="Save changes" />
    </Form>
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
        The secret signs every request according to Standard Webhooks. It cannot be shown again. After a
        rotation, requests can also be signed with the previous secrets until the receiver has the new one.
      </p>
      <div>
        <Button onClick={() => setOpen(true)}>Rotate secret</Button>
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
    <Form of={form}>
      <SelectField
        name="gracePeriodSeconds"
        label="Previous secrets stay valid for"
        description="During this time, each request has one signature for each secret. The receiver needs only one of the secrets."
        data={OVERLAPS}
      />
      <FormActions verb="Rotate secret" />
    </Form>
  );
}

function DeleteEndpoint(props: {
  readonly endpoint: Endpoint;
  readonly setDeleting: (isDeleting: boolean) => void;
}) {
  const { region, id, kind, revision } = props.endpoint;
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
    navigate(link(ENDPOINTS_PATH));
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
        'its parked and dead events',
        'its replays, including running ones',
        ...(kind === 'webhook' ? ['its signing secret and headers'] : []),
      ]}
      kept="The events stay in the logs. The deliveries to the endpoint stay in the delivery log for 30 days."
      onDelete={remove}
    />
  );
}

function EndpointFacts({ endpoint }: { readonly endpoint: Endpoint }) {
  const { kind, jobFields, headers, concurrency, ratePerSecond } = endpoint;
  const fields = Object.entries(jobFields).map(([name, value]) => `${name}: ${value ?? 'none'}`);
  return (
    <DescriptionList
      rows={{
        Id: endpoint.id,
        Region: endpoint.region.toUpperCase(),
        [kind === 'sqs' ? 'Queue' : 'URL']: <Url url={endpoint.url} />,
        Description: endpoint.description ?? undefined,
        State: <StateBadge state={toEndpointState(endpoint)} />,
        Accounts: endpoint.accounts.length === 0 ? 'All of the region' : endpoint.accounts.join(', '),
        'Event types': endpoint.types.length === 0 ? 'All' : endpoint.types.join(', '),
        'Order groups': endpoint.orderGroups.join(', ') || undefined,
        Origins: endpoint.origins.join(', ') || undefined,
        'Job fields': fields.join(', ') || undefined,
        Headers: headers.join(', ') || undefined,
        'Concurrent jobs': concurrency ?? MAX_LANES,
        'Requests per second': ratePerSecond ?? 'No limit',
        Created: endpoint.createdAt ? <RelativeTime at={endpoint.createdAt} /> : undefined,
      }}
    />
  );
}
