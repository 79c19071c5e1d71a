/** The button and the shortcut that open the command palette. */
import { MagnifyingGlassIcon } from '@heroicons/react/16/solid';
import { ActionIcon, Button } from '@mantine/core';
import { useWindowEvent } from '@mantine/hooks';
import { useLayoutEffect, useRef, useState } from 'react';
import { useNarrow } from '../components.tsx';
import { loadLater } from '../load-later.tsx';
import css from './Palette.module.css';

const Palette = loadLater(() => import('./Palette.tsx'));

const isApple = /mac|iphone|ipad/i.test(navigator.platform);
const SHORTCUT = isApple ? '⌘K' : 'Ctrl K';

export function PaletteButton() {
  const [isOpen, setOpen] = useState(false);
  useFocusReturn(isOpen);
  const isPhone = useNarrow();
  useWindowEvent('keydown', (event) => {
    const { key, altKey, shiftKey, metaKey, ctrlKey } = event;
    if (key.toLowerCase() !== 'k' || altKey || shiftKey || !(isApple ? metaKey : ctrlKey)) return;
    event.preventDefault();
    // Another dialog must be completed or closed first.
    setOpen((was) => !was && document.querySelector('[role="dialog"]') === null);
  });
  const shared = {
    variant: 'default',
    'aria-haspopup': 'dialog',
    'aria-keyshortcuts': isApple ? 'Meta+K' : 'Control+K',
    title: `Search (${SHORTCUT})`,
    onClick: () => setOpen(true),
  } as const;
  return (
    <>
      {isPhone ? (
        <ActionIcon {...shared} size="md" aria-label="Search">
          <MagnifyingGlassIcon width={16} aria-hidden />
        </ActionIcon>
      ) : (
        <Button
          {...shared}
          size="xs"
          leftSection={<MagnifyingGlassIcon width={15} aria-hidden />}
          rightSection={
            <kbd className={css.shortcut} aria-hidden>
              {SHORTCUT}
            </kbd>
          }
        >
          Search
        </Button>
      )}
      {isOpen ? <Palette onClose={() => setOpen(false)} /> : null}
    </>
  );
}

/** Returns the focus to the element that had it when the palette was opened. A page that it opens moves the focus to its heading. */
function useFocusReturn(isOpen: boolean): void {
  const before = useRef<Element | null>(null);
  useLayoutEffect(() => {
    if (isOpen) before.current = document.activeElement;
    else if (before.current instanceof HTMLElement) before.current.focus({ preventScroll: true });
  }, [isOpen]);
}
