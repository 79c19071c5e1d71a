/** Button that opens the form to send parked or dead events of an endpoint again. */
import { Button } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { showToast } from '../components.tsx';
import { InputDialog } from '../dialogs.tsx';
import { loadLater } from '../load-later.tsx';
import { formatCount } from '../texts.ts';
import { type Endpoint, getSinkName } from './status.ts';

// Loaded on demand, because it includes the schemas.
const RedeliveryForm = loadLater(() => import('./RedeliveryForm.tsx'));

export function RedeliveryButton(props: {
  readonly endpoint: Endpoint;
  readonly state: 'dead' | 'parked';
  readonly children: string;
}) {
  const { endpoint, state, children } = props;
  const client = useQueryClient();
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button size="xs" onClick={() => setOpen(true)}>
        {children}
      </Button>
      <InputDialog
        opened={isOpen}
        onClose={() => setOpen(false)}
        size="lg"
        title={`Send events to ${getSinkName(endpoint.id)} again`}
      >
        <RedeliveryForm
          endpoint={endpoint}
          state={state}
          onStarted={async ({ parked, replay }) => {
            setOpen(false);
            const retried =
              parked > 0 ? `${formatCount(parked, 'event is', 'events are')} being retried.` : '';
            showToast([replay ? 'The replay is started.' : '', retried].filter(Boolean).join(' '));
            await client.invalidateQueries({ queryKey: ['endpoints'] });
          }}
        />
      </InputDialog>
    </>
  );
}
