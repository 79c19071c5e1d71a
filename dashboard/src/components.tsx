/** What all pages are made of. */
import { Button, Group, Modal, TextInput } from '@mantine/core';
import { useMediaQuery } from '@mantine/hooks';
import { notifications } from '@mantine/notifications';
import { createContext, type ReactNode, useContext, useEffect, useId, useRef, useState } from 'react';
import { Link } from 'wouter';
import { ApiError, toErrorMessage } from './api.ts';
import css from './ui.module.css';

/** How things are: in colour and form, never in colour alone. */
export type Tone = 'good' | 'warn' | 'bad' | 'plain';

/**
 * A page: names itself in the tab, and takes the focus at its heading when one comes to it from another page, so that a
 * screen reader says where one is.
 */
export function Page(props: {
  readonly title: string;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}) {
  const heading = useRef<HTMLHeadingElement>(null);
  const { title } = props;
  useEffect(() => {
    document.title = `${title} · Jobwire`;
  }, [title]);
  useEffect(() => {
    arrivals.first ??= location.pathname;
    arrivals.left ||= location.pathname !== arrivals.first;
    if (arrivals.left) heading.current?.focus({ preventScroll: true });
  }, []);
  return (
    <div className={css.page}>
      <div className={css.heading}>
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
        {props.actions ? <div className={css.actions}>{props.actions}</div> : null}
      </div>
      {props.children}
    </div>
  );
}
/** Where the document was loaded leaves the focus alone, however often its page is drawn, until another page was come to. */
const arrivals: { first: string | undefined; left: boolean } = { first: undefined, left: false };

/** A part of a page, with a heading. */
export function Panel(props: {
  readonly title: string;
  readonly aside?: ReactNode;
  readonly children: ReactNode;
  readonly className?: string | undefined;
}) {
  const id = useId();
  return (
    <section className={`${css.panel} ${props.className ?? ''}`} aria-labelledby={id}>
      <div className={css.panelHead}>
        <h2 id={id}>{props.title}</h2>
        {props.aside ? <div className={css.aside}>{props.aside}</div> : null}
      </div>
      {props.children}
    </section>
  );
}

/** A number that leads to what it counts. Its place stays as large while it is not known (`undefined`). */
export function Statistic(props: {
  readonly name: string;
  readonly value: number | string | undefined;
  readonly note?: ReactNode;
  readonly tone?: Tone;
  readonly href?: string | undefined;
}) {
  const { name, value, note, tone = 'plain', href } = props;
  const content = (
    <>
      <span className={css.figureName}>{name}</span>
      <span className={css.figureValue}>{typeof value === 'number' ? value.toLocaleString() : value}</span>
      <span className={css.figureNote}>{note}</span>
    </>
  );
  if (href === undefined) {
    return (
      <div className={css.figure} data-tone={tone}>
        {content}
      </div>
    );
  }
  // To a place on the page itself the browser goes; the router would change the address and nothing else.
  return href.startsWith('#') ? (
    <a className={css.figure} data-tone={tone} href={href}>
      {content}
    </a>
  ) : (
    <Link className={css.figure} data-tone={tone} href={href}>
      {content}
    </Link>
  );
}

/** A state in a word or two. */
export function Badge({ tone = 'plain', children }: { readonly tone?: Tone; readonly children: ReactNode }) {
  return (
    <span className={css.badge} data-tone={tone}>
      {children}
    </span>
  );
}

/** Something to be told, in place. `live`: said by a screen reader when it appears. */
export function Note(props: {
  readonly tone?: Tone;
  readonly children: ReactNode;
  readonly actions?: ReactNode;
  readonly live?: boolean;
}) {
  const { tone = 'plain', live = false } = props;
  return (
    <div
      className={css.note}
      data-tone={tone}
      {...(live ? { role: tone === 'bad' ? 'alert' : 'status' } : {})}
    >
      <div>{props.children}</div>
      {props.actions ? <div className={css.noteActions}>{props.actions}</div> : null}
    </div>
  );
}

/** There is nothing to show, and why that may be. */
export function Empty({ children }: { readonly children: ReactNode }) {
  return <div className={css.empty}>{children}</div>;
}

/** In place of a page that is not there; `children`: where to go instead, after `Go to`. */
export function NotFound({ href, children }: { readonly href: string; readonly children: ReactNode }) {
  return (
    <Page title="There is no such page">
      <Empty>
        The address leads nowhere. <Link href={href}>Go to {children}</Link>
      </Empty>
    </Page>
  );
}

/** What went wrong, in a sentence, and a way to try again where that may help. */
export function Failure({
  error,
  again,
}: {
  readonly error: unknown;
  readonly again?: (() => unknown) | undefined;
}) {
  const id = error instanceof ApiError ? error.requestId : undefined;
  const button = again ? (
    <Button size="xs" variant="default" onClick={() => void again()}>
      Try again
    </Button>
  ) : null;
  return (
    <Note tone="bad" live actions={button}>
      <p>{toErrorMessage(error)}</p>
      {id === undefined ? null : <p className={css.aside}>Request {id}</p>}
    </Note>
  );
}

/** Names and values, one below another. Those that are `undefined` are left out. */
export function Facts({ rows }: { readonly rows: readonly (readonly [name: string, value: ReactNode])[] }) {
  return (
    <dl className={css.facts}>
      {rows.map(([name, value]) =>
        value === undefined ? null : (
          <FactRow key={name} name={name}>
            {value}
          </FactRow>
        ),
      )}
    </dl>
  );
}

function FactRow({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children ?? '–'}</dd>
    </>
  );
}

/** Whether there is so little room that rows have two lines; style sheets say the same width. */
export function useNarrow(): boolean {
  return useMediaQuery('(max-width: 47.99rem)', undefined, { getInitialValueInEffect: false });
}

/** In place of a part of the page that is not there yet: it takes no room, and tells screen readers that more is to come. */
export function Loading() {
  return <div className={css.hidden} aria-busy="true" />;
}

/** For screen readers only. */
export function Hidden({ children }: { readonly children: ReactNode }) {
  return <span className={css.hidden}>{children}</span>;
}

/** Says that something was done; read out, and gone after a while. */
export function showToast(message: string, tone: Tone = 'good'): void {
  notifications.show({
    message,
    color: tone === 'bad' ? 'red' : tone === 'warn' ? 'orange' : 'indigo',
    closeButtonProps: { 'aria-label': 'Close' },
  });
}

/** What is asked before something is done that can't be undone, or that others feel. */
export interface Confirmation {
  /** `Delete the account acme?` */
  readonly title: string;
  /** What will happen, in sentences. */
  readonly body: ReactNode;
  /** The word on the button: a verb. */
  readonly verb: string;
  /** Whether something is lost by it: the button is red. */
  readonly destructive?: boolean;
  /** A name that has to be typed in, for what loses much. */
  readonly confirmText?: string;
  /** Does it; a fault is shown in the dialog, which stays. */
  readonly onConfirm: () => Promise<unknown>;
}

const ConfirmContext = createContext<(question: Confirmation) => void>(() => {});

/** Asks in a dialog, and does what is asked about when it is confirmed. */
export function useConfirm(): (question: Confirmation) => void {
  return useContext(ConfirmContext);
}

/** Where questions are asked. */
export function ConfirmProvider({ children }: { readonly children: ReactNode }) {
  const [question, ask] = useState<Confirmation | null>(null);
  const [opened, setOpened] = useState(false);
  const open = (next: Confirmation): void => {
    ask(next);
    setOpened(true);
  };
  return (
    <ConfirmContext value={open}>
      {children}
      <Modal
        opened={opened}
        onClose={() => setOpened(false)}
        onExitTransitionEnd={() => ask(null)}
        title={question?.title}
        lockScroll={false}
        centered
        closeButtonProps={{ 'aria-label': 'Close' }}
      >
        {question ? <ConfirmForm question={question} close={() => setOpened(false)} /> : null}
      </Modal>
    </ConfirmContext>
  );
}

function ConfirmForm({ question, close }: { readonly question: Confirmation; readonly close: () => void }) {
  const [typed, setTyped] = useState('');
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const shown = useRef(true);
  useEffect(() => {
    shown.current = true;
    return () => {
      shown.current = false;
    };
  }, []);
  const ready = question.confirmText === undefined || typed.trim() === question.confirmText;
  async function act(event: React.FormEvent): Promise<void> {
    event.preventDefault();
    if (!ready) return;
    setBusy(true);
    setError(null);
    try {
      await question.onConfirm();
      if (shown.current) close();
    } catch (cause) {
      // Whoever has closed the dialog meanwhile is told all the same.
      if (shown.current) setError(cause);
      else showToast(`${question.title} ${toErrorMessage(cause)}`, 'bad');
    } finally {
      setBusy(false);
    }
  }
  return (
    <form onSubmit={(event) => void act(event)}>
      <div className={css.page}>
        <div>{question.body}</div>
        {question.confirmText === undefined ? null : (
          <TextInput
            label={`Type ${question.confirmText} to go on`}
            value={typed}
            onChange={(event) => setTyped(event.currentTarget.value)}
            autoComplete="off"
            spellCheck={false}
            data-autofocus
          />
        )}
        {error ? <Failure error={error} /> : null}
        <Group justify="flex-end">
          <Button variant="default" onClick={close}>
            Cancel
          </Button>
          <Button
            type="submit"
            color={question.destructive ? 'red' : 'indigo'}
            loading={busy}
            disabled={!ready}
          >
            {question.verb}
          </Button>
        </Group>
      </div>
    </form>
  );
}
