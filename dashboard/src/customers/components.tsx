/** Components that the customers pages share. */
import { Button } from '@mantine/core';
import { Note } from '../components.tsx';

/** Shown after a conflict. `what`: the start of its sentence, such as `This recipient was`. `reload` discards the form's changes and loads the resource again. */
export function ConflictNote({ what, reload }: { readonly what: string; readonly reload: () => void }) {
  const button = (
    <Button size="xs" variant="default" onClick={reload}>
      Discard my changes and reload
    </Button>
  );
  return (
    <Note tone="bad" live actions={button}>
      <p>{what} modified after you opened this page. Your changes were not saved.</p>
    </Note>
  );
}

/** The error of a form as a whole, if any. */
export function FormErrorNote({ error }: { readonly error: string | null }) {
  return error === null ? null : (
    <Note tone="bad" live>
      {error}
    </Note>
  );
}
