/** Shows a secret once, in a dialog that requires confirmation to close. */

import { CheckIcon, ClipboardDocumentIcon } from '@heroicons/react/16/solid';
import { Button, Checkbox, Modal, Textarea } from '@mantine/core';
import { type ReactNode, useRef, useState } from 'react';
import { Note } from '../components.tsx';
import ui from '../ui.module.css';
import { useLeaveGuard } from '../unsaved-changes.ts';
import css from './setup.module.css';

/** A newly created secret. */
export interface NewSecret {
  /** `Key desk created` */
  readonly title: string;
  /** Label of the secret. */
  readonly name: string;
  readonly secret: string;
  /** Further information. */
  readonly note?: ReactNode;
}

/** Open while `secret` is not `null`. `onClose` must set it to `null`. */
export function SecretDialog(props: { readonly secret: NewSecret | null; readonly onClose: () => void }) {
  const { secret, onClose } = props;
  useLeaveGuard(secret !== null, {
    title: 'Leave without the secret?',
    body: 'It is not shown again.',
  });
  return (
    <Modal
      opened={secret !== null}
      onClose={() => {}}
      title={secret?.title}
      closeOnEscape={false}
      closeOnClickOutside={false}
      withCloseButton={false}
      size="lg"
    >
      {secret ? <SecretContent key={secret.secret} secret={secret} onClose={onClose} /> : null}
    </Modal>
  );
}

function SecretContent(props: { readonly secret: NewSecret; readonly onClose: () => void }) {
  const { secret, onClose } = props;
  const text = useRef<HTMLTextAreaElement>(null);
  const [copied, setCopied] = useState<boolean | null>(null);
  const [stored, setStored] = useState(false);
  async function copy(): Promise<void> {
    try {
      await navigator.clipboard.writeText(secret.secret);
      setCopied(true);
    } catch {
      // Not permitted on pages without TLS: select the text for manual copying.
      text.current?.focus();
      text.current?.select();
      setCopied(false);
    }
  }
  return (
    <div className={ui.fields}>
      <Textarea
        ref={text}
        className={css.secret}
        label={secret.name}
        value={secret.secret}
        readOnly
        rows={2}
        spellCheck={false}
        autoComplete="off"
        data-autofocus
        onFocus={({ currentTarget }) => currentTarget.select()}
      />
      <div className={ui.actions}>
        <Button
          leftSection={
            copied ? <CheckIcon width={16} aria-hidden /> : <ClipboardDocumentIcon width={16} aria-hidden />
          }
          onClick={() => void copy()}
        >
          Copy
        </Button>
        <span role="status" className={ui.hint}>
          {copied === null ? '' : copied ? 'Copied.' : 'Selected: copy it with the keyboard.'}
        </span>
      </div>
      <Note tone="warn">Store it now: it is shown only once and cannot be retrieved later.</Note>
      {secret.note ? <div>{secret.note}</div> : null}
      <Checkbox
        label="I have stored it"
        checked={stored}
        onChange={({ currentTarget }) => setStored(currentTarget.checked)}
      />
      <div className={ui.actions}>
        <Button variant="filled" disabled={!stored} onClick={onClose}>
          Close
        </Button>
      </div>
    </div>
  );
}
