/** The command palette: jumps to anything by the beginning of its name or number. */
import { Modal, TextInput, useMantineColorScheme } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { type KeyboardEvent, useEffect, useId, useMemo, useState } from 'react';
import { useLocation } from 'wouter';
import { toErrorMessage } from '../api.ts';
import { useNarrow } from '../components.tsx';
import { useApi } from '../queries.ts';
import { useSession } from '../session.ts';
import ui from '../ui.module.css';
import { leavePage } from '../unsaved-changes.ts';
import { useHref, useRegion } from '../urls.ts';
import css from './Palette.module.css';
import { type Entry, type Group, listCommands, recentEntries, toGroups } from './palette-entries.ts';

const MIN_LENGTH = 2;
const DEBOUNCE_MS = 150;

export default function Palette({ onClose }: { readonly onClose: () => void }) {
  const [text, setText] = useState('');
  const [activeId, setActiveId] = useState('');
  const { groups, status, error } = useEntries(text);
  const choose = useChoose(onClose);
  const listId = useId();
  const isPhone = useNarrow();
  const entries = groups.flatMap((group) => group.entries);
  const active = Math.max(
    0,
    entries.findIndex(({ id }) => id === activeId),
  );
  const toOptionId = (at: number): string => `${listId}-${at}`;
  const optionId = entries.length > 0 ? toOptionId(active) : undefined;
  useEffect(() => {
    if (optionId !== undefined) document.getElementById(optionId)?.scrollIntoView({ block: 'nearest' });
  }, [optionId]);

  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.nativeEvent.isComposing) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) setActiveId(entries.at((active + step) % entries.length)?.id ?? '');
    else if (event.key === 'Enter') choose(entries[active]);
    else if (event.key === 'Escape') onClose();
    else return;
    event.preventDefault();
  };

  return (
    <Modal.Root opened onClose={onClose} lockScroll={false} size="lg" fullScreen={isPhone} yOffset="12vh">
      <Modal.Overlay />
      <Modal.Content aria-label="Search and commands">
        <div className={css.palette}>
          <TextInput
            data-autofocus
            role="combobox"
            aria-label="Search"
            aria-expanded={entries.length > 0}
            aria-controls={listId}
            aria-autocomplete="list"
            aria-activedescendant={optionId}
            placeholder="Job, order, tracking number, account, recipient, page…"
            autoComplete="off"
            spellCheck={false}
            value={text}
            onChange={({ currentTarget: { value } }) => {
              setText(value);
              setActiveId('');
            }}
            onKeyDown={onKeyDown}
          />
          {isPhone ? <Modal.CloseButton className={css.close} aria-label="Close" /> : null}
          {error === null ? null : (
            <p className={ui.error} role="alert">
              {error}
            </p>
          )}
          <div id={listId} className={css.list} role="listbox" aria-label="Results">
            {groups.map(({ name, entries: some }) => (
              <Options
                key={name}
                name={name}
                entries={some}
                toOptionId={(entry) => toOptionId(entries.indexOf(entry))}
                active={entries[active]}
                onActive={setActiveId}
                onChoose={choose}
              />
            ))}
          </div>
          <p className={ui.hint} role="status">
            {status}
          </p>
        </div>
      </Modal.Content>
    </Modal.Root>
  );
}

/** The options of one kind. The focus stays in the input, which names the active option. */
function Options(props: {
  readonly name: string;
  readonly entries: readonly Entry[];
  readonly active: Entry | undefined;
  readonly toOptionId: (entry: Entry) => string;
  readonly onActive: (id: string) => void;
  readonly onChoose: (entry: Entry) => void;
}) {
  const { name, entries, active, toOptionId, onActive, onChoose } = props;
  const headingId = useId();
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is not a group of options
    <div role="group" aria-labelledby={headingId}>
      <div id={headingId} className={css.heading}>
        {name}
      </div>
      {entries.map((entry) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents: the input handles the keys
        // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the input
        <div
          key={entry.id}
          id={toOptionId(entry)}
          className={css.option}
          role="option"
          aria-selected={entry === active}
          onMouseMove={() => onActive(entry.id)}
          onClick={() => onChoose(entry)}
        >
          <span className={css.label}>{entry.label}</span>
          {entry.hint ? <span className={ui.hint}>{entry.hint}</span> : null}
        </div>
      ))}
    </div>
  );
}

/** Returns the entries for a text. One request for each text that stays for {@link DEBOUNCE_MS}; answers to former texts are dropped. */
function useEntries(text: string): {
  readonly groups: readonly Group[];
  readonly status: string;
  readonly error: string | null;
} {
  const api = useApi();
  const session = useSession();
  const region = useRegion() ?? undefined;
  const [recent] = useState(recentEntries.read);
  const query = text.trim();
  const [settled] = useDebouncedValue(query, DEBOUNCE_MS);
  const isLong = [...query].length >= MIN_LENGTH;
  const isSettled = settled === query;
  const { data, error, isPending } = useQuery({
    queryKey: ['search', region, settled],
    queryFn: ({ signal }) =>
      api.get('/v1/search', { params: { query: { q: settled.slice(0, 200), region } }, signal }),
    enabled: isLong && isSettled,
    retry: 1,
  });
  const found = isLong && isSettled ? data : undefined;
  const groups = useMemo(() => {
    const commands = listCommands(session, query);
    if (query === '')
      return recent.length > 0 ? [{ name: 'Recent', entries: recent }, ...commands] : commands;
    return [...toGroups(found?.results ?? []), ...commands];
  }, [session, query, recent, found]);
  if (!isLong) return { groups, status: `Type at least ${MIN_LENGTH} characters to search.`, error: null };
  if (isSettled && error) return { groups, status: '', error: toErrorMessage(error) };
  if (!found || isPending) return { groups, status: 'Searching…', error: null };
  const count = found.results.length;
  const results = count === 0 ? 'No results.' : count === 1 ? '1 result.' : `${count} results.`;
  return { groups, status: found.more ? `${results} Type more to find others.` : results, error: null };
}

/** Returns the function that opens an entry and closes the palette. */
function useChoose(onClose: () => void): (entry: Entry | undefined) => void {
  const [, navigate] = useLocation();
  const href = useHref();
  const { signOut } = useSession();
  // Suppressing transitions would need a style element, which the Content-Security-Policy forbids.
  const { toggleColorScheme } = useMantineColorScheme({ keepTransitions: true });
  return (entry) => {
    if (!entry) return;
    onClose();
    const { target } = entry;
    if ('path' in target) {
      recentEntries.add(entry);
      return leavePage(() => navigate(href(target.path, target.params)));
    }
    switch (target.action) {
      case 'wall display':
        return leavePage(() => navigate(href('/', { wall: '1' })));
      case 'switch colours':
        return toggleColorScheme();
      case 'API reference':
        return location.assign('/docs');
      case 'sign out':
        return leavePage(() => signOut());
    }
  };
}
