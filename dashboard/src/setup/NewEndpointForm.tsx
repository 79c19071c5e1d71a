/** The form of a new endpoint. */
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import * as z from 'zod';
import { NewEndpoint } from '../../../shared/delivery/endpoint-input.ts';
import { showToast } from '../components.tsx';
import { Form, FormActions } from '../form.tsx';
import { useApiForm } from '../forms.ts';
import { useApi, useServedRegions } from '../queries.ts';
import { useSession } from '../session.ts';
import ui from '../ui.module.css';
import { useRegion } from '../urls.ts';
import { checkRegion } from './components.tsx';
import { EndpointFields } from './EndpointForm.tsx';
import {
  checkEndpoint,
  type Endpoint,
  type EndpointValues,
  NEW_ENDPOINT,
  toEndpointFormField,
  toNewEndpoint,
} from './endpoint-values.ts';
import { type NewSecret, SecretDialog } from './SecretDialog.tsx';

/**
 * The form of a new endpoint. Shows its secret once after creation. `cancel`: target of the link that leaves it. `start`: initial
 * start position; default: now. `onCreated`: called after the secret is stored.
 */
export function NewEndpointForm(props: {
  readonly cancel?: string;
  readonly start?: EndpointValues['start'];
  readonly onCreated: (endpoint: Endpoint) => void;
}) {
  const { cancel, start = 'now', onCreated } = props;
  const api = useApi();
  const queries = useQueryClient();
  const { hasAllAccounts } = useSession();
  const region = useRegion() ?? '';
  const regions = useServedRegions() ?? [];
  const [created, setCreated] = useState<(NewSecret & { readonly endpoint: Endpoint }) | null>(null);
  const form = useApiForm<EndpointValues>({
    schema: NewEndpoint.extend({ region: z.string().optional() }),
    initial: { ...NEW_ENDPOINT, region, start, accountScope: hasAllAccounts ? 'all' : 'some' },
    toBody: toNewEndpoint,
    check: (values) => ({ ...checkEndpoint(values), ...checkRegion(values.region, regions) }),
    toField: toEndpointFormField,
    send: async (body) => {
      const { endpoint, secret, truncatedAccounts } = await api.post('/v1/endpoints', { body });
      void queries.invalidateQueries({ queryKey: ['endpoints'] });
      if (secret === null) {
        onCreated(endpoint);
        const late = truncatedAccounts.join(', ');
        showToast(
          `Endpoint ${endpoint.id} created.${late && ` Some requested events of ${late} have expired.`}`,
          late ? 'warn' : 'good',
        );
        return;
      }
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
    <>
      <Form of={form}>
        <EndpointFields regions={regions} />
        <FormActions verb="Create endpoint" {...(cancel === undefined ? {} : { cancel })} />
      </Form>
      <SecretDialog
        secret={created}
        onClose={() => {
          setCreated(null);
          if (created) onCreated(created.endpoint);
        }}
      />
    </>
  );
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
          Some requested events of {truncatedAccounts.join(', ')} are no longer retained. For these accounts,
          the endpoint starts at the oldest retained event.
        </p>
      ) : null}
    </>
  );
}
