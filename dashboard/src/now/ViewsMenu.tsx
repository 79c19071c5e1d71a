/** Saved views of the attention queue: named filters, kept in this browser. */
import { BookmarkIcon } from '@heroicons/react/16/solid';
import { Button, Menu } from '@mantine/core';
import { useState } from 'react';
import { ActionMenu } from '../components.tsx';
import { useSession } from '../session.ts';
import { useParams } from '../urls.ts';
import { FILTERS, readViews, type SavedView, writeViews } from './queue.ts';
import { TextDialog } from './TriageMenu.tsx';

const SAVED = [...FILTERS, 'region'] as const;

export function ViewsMenu() {
  const { key } = useSession();
  const [read, change] = useParams();
  const [views, setViews] = useState(() => readViews(key.id));
  const [naming, setNaming] = useState(false);
  /** Replaces a view, or deletes it. Other tabs may have stored others. */
  const store = (name: string, ...views: SavedView[]): void => {
    const next = [...readViews(key.id).filter((view) => view.name !== name), ...views];
    writeViews(key.id, next);
    setViews(next);
  };
  const query = new URLSearchParams(
    SAVED.flatMap((name) => {
      const value = read(name);
      return value === undefined ? [] : [[name, value]];
    }),
  ).toString();
  const apply = (view: SavedView): void => {
    const saved = new URLSearchParams(view.query);
    change(Object.fromEntries(SAVED.map((name) => [name, saved.get(name) ?? undefined])));
  };
  const current = views.find((view) => view.query === query);
  return (
    <>
      <ActionMenu
        target={(ref) => (
          <Button ref={ref} size="xs" leftSection={<BookmarkIcon width={13} aria-hidden />}>
            {current?.name ?? 'Views'}
          </Button>
        )}
      >
        {views.map((view) => (
          <Menu.Item key={view.name} onClick={() => apply(view)}>
            {view.name}
          </Menu.Item>
        ))}
        {views.length > 0 ? <Menu.Divider /> : null}
        <Menu.Item disabled={query === ''} onClick={() => setNaming(true)}>
          Save this view…
        </Menu.Item>
        {current ? <Menu.Item onClick={() => store(current.name)}>Delete “{current.name}”</Menu.Item> : null}
      </ActionMenu>
      <TextDialog
        opened={naming}
        title="Save this view in this browser"
        label="Name of the view"
        value=""
        maxLength={60}
        close={() => setNaming(false)}
        save={(name) => {
          if (name !== '') store(name, { name, query });
        }}
      />
    </>
  );
}
