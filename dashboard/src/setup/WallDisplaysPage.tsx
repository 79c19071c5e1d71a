/** Wall displays: confirms the code of a screen, and lists the keys of screens. */
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { Link } from 'wouter';
import { PairingApproval, WALL_KEY_PREFIX } from '../../../shared/api/pairing-input.ts';
import { Empty, Loaded, Note, Page, Panel } from '../components.tsx';
import { DataTable } from '../DataTable.tsx';
import { Form, FormActions, TextField } from '../form.tsx';
import { useApiForm } from '../forms.ts';
import { useApi } from '../queries.ts';
import { useSession } from '../session.ts';
import { RelativeTime } from '../times.tsx';
import ui from '../ui.module.css';
import { useHref } from '../urls.ts';
import { AccountScope } from './components.tsx';
import { Revoke } from './KeyPages.tsx';
import { useKeys } from './queries.ts';

export function WallDisplaysPage() {
  const { hasRole } = useSession();
  const link = useHref();
  const [paired, setPaired] = useState<string | null>(null);
  return (
    <Page title="Wall displays">
      <p className={ui.hint}>
        Screens that show the page Now. Open <code>{location.origin}/?wall=1</code> on the screen. It shows a
        code. Enter this code below. The screen gets its own key, which can only read.
      </p>
      {hasRole('admin') ? (
        <>
          <PairingForm paired={paired} onPaired={setPaired} />
          <Screens expected={paired} />
        </>
      ) : (
        <Note>
          Wall displays can be paired with the role admin. To use this browser as one, choose Wall display on
          the <Link href={link('/')}>page Now</Link>.
        </Note>
      )}
    </Page>
  );
}

/** `paired`: name of the key of the screen that was paired last. */
function PairingForm(props: {
  readonly paired: string | null;
  readonly onPaired: (name: string | null) => void;
}) {
  const { paired, onPaired } = props;
  const api = useApi();
  const { hasAllAccounts } = useSession();
  const initial = {
    code: '',
    name: '',
    accountScope: (hasAllAccounts ? 'all' : 'some') as 'all' | 'some',
    accounts: [] as readonly string[],
  };
  const form = useApiForm({
    schema: PairingApproval,
    initial,
    toBody: ({ code, name, accountScope, accounts }) => ({
      code: code.replace(/\s/g, ''),
      name: name.trim(),
      ...(accountScope === 'all' ? {} : { accounts }),
    }),
    send: async (body) => {
      onPaired(null);
      const { name } = await api.post('/v1/wall-pairings/approval', { body });
      onPaired(name);
      form.form.setValues(initial);
      form.markSaved(initial);
    },
  });
  return (
    <Form of={form}>
      <Panel title="Pair a screen">
        {paired === null ? null : (
          <Note tone="good" live>
            {paired} gets its key within a few seconds.
          </Note>
        )}
        <div className={ui.columns}>
          <TextField
            name="code"
            label="Code"
            description="The 6 digits on the screen. Enter only a code that you see on the screen itself."
            inputMode="numeric"
            required
          />
          <TextField name="name" label="Name" description="Location of the screen." required spellCheck />
        </div>
        <AccountScope />
        <FormActions verb="Pair the screen" />
      </Panel>
    </Form>
  );
}

/** Interval at which the keys are fetched until the key of a paired screen is listed. */
const SOON_MS = 2_000;
/** Time within which a screen requests its key. */
const PAIRING_MS = 60_000;

/** The keys of screens, newest first. `expected`: name of a key that a screen will request. */
function Screens({ expected }: { readonly expected: string | null }) {
  const keys = useKeys();
  const queries = useQueryClient();
  const isMissing = expected !== null && !keys.data?.some(({ name }) => name === expected);
  useEffect(() => {
    if (!isMissing) return;
    const timer = setInterval(() => void queries.invalidateQueries({ queryKey: ['keys'] }), SOON_MS);
    const end = setTimeout(() => clearInterval(timer), PAIRING_MS);
    return () => {
      clearInterval(timer);
      clearTimeout(end);
    };
  }, [isMissing, queries]);
  return (
    <Loaded query={keys}>
      {(all) => {
        const screens = all
          .filter(({ name }) => name?.startsWith(`${WALL_KEY_PREFIX} `))
          .toSorted((a, b) => (a.createdAt < b.createdAt ? 1 : -1));
        if (screens.length === 0) return <Empty>No screen is paired.</Empty>;
        return (
          <Panel title="Paired screens" aside="Revoking a key signs its screen out.">
            <DataTable
              label="Paired screens"
              rows={screens}
              getKey={({ id }) => id}
              columns={{
                Screen: ({ name }) => (
                  <span className={ui.name}>{name?.slice(WALL_KEY_PREFIX.length + 1)}</span>
                ),
                Accounts: { wide: true, render: ({ accounts }) => accounts?.join(', ') ?? 'All' },
                Paired: ({ createdAt }) => <RelativeTime at={createdAt} />,
                'Last used': ({ lastUsedAt }) => <RelativeTime at={lastUsedAt} none="Never" />,
                Actions: { hiddenName: true, render: (key) => <Revoke of={key} /> },
              }}
            />
          </Panel>
        );
      }}
    </Loaded>
  );
}
