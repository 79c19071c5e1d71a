/** Button that opens the form to send parked or dead events of an endpoint again. */
import { Button, Modal } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { lazy, Suspense, useState } from 'react';
import { Loading, showToast } from '../components.tsx';
import { formatCount } from '../texts.ts';
import { type Endpoint, getSinkName } from './status.ts';

// Loaded on demand, because it includes the schemas.
const RedeliveryForm = lazy(() => import('./RedeliveryForm.tsx'));

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
      <Modal
        // Input must not be lost.
        closeOnClickOutside={false}
        opened={isOpen}
        onClose={() => setOpen(false)}
        size="lg"
        title={`Send events to ${getSinkName(endpoint.id)} again`}
      >
        <Suspense fallback={<Loading />}>
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
        </Suspense>
      </Modal>
    </>
  );
}
