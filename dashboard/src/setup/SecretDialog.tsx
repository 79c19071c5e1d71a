/** Shows what is shown once: a secret, in a dialog that nobody closes by accident. */
import { Button, Checkbox, Modal, Textarea } from '@mantine/core';
import { IconCheck, IconCopy } from '@tabler/icons-react';
import { type ReactNode, useRef, useState } from 'react';
import { Note } from '../components.tsx';
import { useLeaveGuard } from '../unsaved-changes.ts';
import css from './setup.module.css';

/** A secret that was just made. */
export interface NewSecret {
  /** `The key desk is made` */
  readonly title: string;
  /** What the secret is called. */
  readonly name: string;
  readonly secret: string;
  /** What else is to be said. */
  readonly note?: ReactNode;
}

/** Open as long as there is something made; `done` forgets it. */
export function SecretDialog({ made, done }: { readonly made: NewSecret | null; readonly done: () => void }) {
  useLeaveGuard(made !== null, {
    title: 'Leave without the secret?',
    body: 'It is shown here and nowhere again.',
  });
  return (
    <Modal
      opened={made !== null}
      onClose={() => {}}
      title={made?.title}
      closeOnEscape={false}
      closeOnClickOutside={false}
      withCloseButton={false}
      lockScroll={false}
      centered
      size="lg"
    >
      {made ? <SecretContent key={made.secret} made={made} done={done} /> : null}
    </Modal>
  );
}

function SecretContent({ made, done }: { readonly made: NewSecret; readonly done: () => void }) {
  const place = useRef<HTMLTextAreaElement>(null);
  const [copied, setCopied] = useState<boolean | null>(null);
  const [kept, setKept] = useState(false);
  async function copy(): Promise<void> {
    try {
      await navigator.clipboard.writeText(made.secret);
      setCopied(true);
    } catch {
      // Pages without TLS may not; then the viewer copies what is selected.
      place.current?.focus();
      place.current?.select();
      setCopied(false);
    }
  }
  return (
    <div className={css.fields}>
      <Textarea
        ref={place}
        className={css.secret}
        label={made.name}
        value={made.secret}
        readOnly
        rows={2}
        spellCheck={false}
        autoComplete="off"
        data-autofocus
        onFocus={({ currentTarget }) => currentTarget.select()}
      />
      <div className={css.save}>
        <Button
          variant="default"
          leftSection={copied ? <IconCheck size={16} aria-hidden /> : <IconCopy size={16} aria-hidden />}
          onClick={() => void copy()}
        >
          Copy
        </Button>
        <span role="status" className={css.small}>
          {copied === null ? '' : copied ? 'Copied.' : 'It is selected: copy it with your keyboard.'}
        </span>
      </div>
      <Note tone="warn">It is shown this once: when this is closed, nobody can show it again.</Note>
      {made.note ? <div>{made.note}</div> : null}
      <Checkbox
        label="I have kept it where it is needed"
        checked={kept}
        onChange={({ currentTarget }) => setKept(currentTarget.checked)}
      />
      <div className={css.save}>
        <Button disabled={!kept} onClick={done}>
          Close
        </Button>
      </div>
    </div>
  );
}
