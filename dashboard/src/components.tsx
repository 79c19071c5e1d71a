/** Components that all pages share. */
import { Button, Group, Menu, type MenuProps, Modal, TextInput, VisuallyHidden } from '@mantine/core';
import { useDocumentTitle, useMediaQuery } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import {
  createContext,
  Fragment,
  type ReactNode,
  type RefObject,
  useCallback,
  useContext,
  useEffect,
  useId,
  useRef,
  useState,
} from 'react';
import { Link } from 'wouter';
import { ApiError } from '../../client/index.ts';
import { hasStatus, toErrorMessage } from './api.ts';
import { ATTENTION_MS, type LoadedQuery, useApi } from './queries.ts';
import { formatTriage, splitUrl, type Tone } from './texts.ts';
import css from './ui.module.css';

/**
 * A page. Sets the title of the tab. After navigation from another page, moves the focus to the heading, so that screen readers
 * announce the page.
 */
export function Page(props: {
  readonly title: string;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}) {
  const heading = useRef<HTMLHeadingElement>(null);
  const { title } = props;
  useDocumentTitle(`${title} · Jobwire`);
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
/** The first page after loading does not take the focus. `left`: whether the user has navigated since. */
const arrivals: { first: string | undefined; left: boolean } = { first: undefined, left: false };

/** A section of a page, with a heading. */
export function Panel(props: {
  readonly title: string;
  readonly aside?: ReactNode;
  readonly children: ReactNode;
}) {
  const id = useId();
  return (
    <section className={css.panel} aria-labelledby={id}>
      <div className={css.panelHead}>
        <h2 id={id}>{props.title}</h2>
        {props.aside ? <div className={css.hint}>{props.aside}</div> : null}
      </div>
      {props.children}
    </section>
  );
}

/** Links between the pages of a section. */
export function Tabs(props: {
  readonly label: string;
  readonly tabs: readonly { readonly name: string; readonly href: string; readonly isCurrent: boolean }[];
}) {
  return (
    <nav className={css.tabs} aria-label={props.label}>
      {props.tabs.map(({ name, href, isCurrent }) => (
        <Link key={name} href={href} aria-current={isCurrent ? 'page' : undefined}>
          {name}
        </Link>
      ))}
    </nav>
  );
}

/** A number with a link to what it counts. Keeps its size while the value is loading (`undefined`). */
export function Statistic(props: {
  readonly name: string;
  readonly value: number | string | undefined;
  readonly note?: ReactNode;
  readonly tone?: Tone;
  readonly href?: string | undefined;
}) {
  const { name, value, note, tone = 'plain', href } = props;
  const attributes = { className: css.figure ?? '', 'data-tone': tone };
  const content = (
    <>
      <span className={css.hint}>{name}</span>
      <span className={css.figureValue}>{typeof value === 'number' ? value.toLocaleString() : value}</span>
      <span className={`${css.hint} ${css.figureNote}`}>{note}</span>
    </>
  );
  if (href === undefined) return <div {...attributes}>{content}</div>;
  // An anchor on the same page is a plain link: the router would only change the address.
  const Anchor = href.startsWith('#') ? 'a' : Link;
  return (
    <Anchor {...attributes} href={href}>
      {content}
    </Anchor>
  );
}

/** The name of a state. */
export function Badge({ tone = 'plain', children }: { readonly tone?: Tone; readonly children: ReactNode }) {
  return (
    <span className={css.badge} data-tone={tone}>
      {children}
    </span>
  );
}

/** An inline message. `live`: announced by screen readers when it appears. */
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
      {props.actions ? <div className={css.actions}>{props.actions}</div> : null}
    </div>
  );
}

/** An empty state: why nothing is shown. */
export function Empty({ children }: { readonly children: ReactNode }) {
  return <div className={css.empty}>{children}</div>;
}

/** Replaces a page that does not exist. `children`: completes the link "Go to …". */
export function NotFound({ href, children }: { readonly href: string; readonly children: ReactNode }) {
  return (
    <Page title="Page not found">
      <Empty>
        No page exists at this address. <Link href={href}>Go to {children}</Link>
      </Empty>
    </Page>
  );
}

/** An error message with its request id, and a button that calls `again`, if given. */
export function Failure({ error, again }: { readonly error: unknown; readonly again?: () => unknown }) {
  const id = error instanceof ApiError ? error.requestId : undefined;
  const button = again ? (
    <Button size="xs" onClick={() => void again()}>
      Try again
    </Button>
  ) : null;
  return (
    <Note tone="bad" live actions={button}>
      <p>{toErrorMessage(error)}</p>
      {id === undefined ? null : <p className={css.hint}>Request {id}</p>}
    </Note>
  );
}

/**
 * Shows the data of a query, or `loading` before; default: grey lines. An error is shown above the data of an earlier request, and
 * instead of the data if the resource no longer exists.
 */
export function Loaded<T>(props: {
  readonly query: LoadedQuery<T>;
  readonly loading?: ReactNode;
  readonly children: (data: T) => ReactNode;
}) {
  const { data, error, refetch } = props.query;
  return (
    <>
      {error ? <Failure error={error} again={refetch} /> : null}
      {data !== undefined && !hasStatus(error, 404)
        ? props.children(data)
        : error
          ? null
          : (props.loading ?? <Skeleton lines={3} />)}
    </>
  );
}

/** Error of the first query that failed. */
export function QueryError({ queries }: { readonly queries: readonly LoadedQuery<unknown>[] }) {
  const failed = queries.find(({ error }) => error);
  return failed ? <Failure error={failed.error} again={failed.refetch} /> : null;
}

/** A list of names and values. Omits values that are `undefined`. `renderName`: default is the name. */
export function DescriptionList(props: {
  readonly rows: Readonly<Record<string, ReactNode>>;
  readonly renderName?: (name: string) => ReactNode;
}) {
  const { rows, renderName = (name) => name } = props;
  return (
    <dl className={css.facts}>
      {Object.entries(rows).map(([name, value]) =>
        value === undefined ? null : (
          <Fragment key={name}>
            <dt>{renderName(name)}</dt>
            <dd>{value ?? '–'}</dd>
          </Fragment>
        ),
      )}
    </dl>
  );
}

/** A URL that breaks into lines between its parts, and within a part only if the part is too long. */
export function Url({ url }: { readonly url: string }) {
  const parts: ReactNode[] = splitUrl(url);
  const broken = parts.reduce((before, part) => (
    <>
      {before}
      <wbr />
      {part}
    </>
  ));
  return <bdi>{broken}</bdi>;
}

/** Text of another system, such as a response. */
export function Verbatim({ text }: { readonly text: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling element must be reachable by keyboard
    <pre className={`${css.verbatim} ${css.excerpt}`} tabIndex={0}>
      {text}
    </pre>
  );
}

/** Reports whether the viewport is narrower than a width (rem). The style sheets use the same default. */
export function useNarrow(width = 48): boolean {
  return useMediaQuery(`(width < ${width}rem)`, undefined, { getInitialValueInEffect: false });
}

/** Placeholder that reserves the height of a page, so that the layout does not shift. */
export function ContentSkeleton() {
  return (
    <div className={css.waiting} role="status">
      <VisuallyHidden>Loading</VisuallyHidden>
      <Skeleton panels={2} />
    </div>
  );
}

/** Grey panels with lines. They appear only if loading takes a while, and do not move for users who prefer that. */
export function Skeleton({ panels = 1, lines = 5 }: { readonly panels?: number; readonly lines?: number }) {
  return Array.from({ length: panels }, (_, panel) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: they have no other identity
    <div key={panel} className={css.skeleton} aria-hidden>
      {Array.from({ length: lines }, (_, line) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: as above
        <span key={line} />
      ))}
    </div>
  ));
}

/** Placeholder of a page whose code or first data are loaded: a heading and panels. */
export function PageSkeleton() {
  return (
    <div className={css.page} aria-busy="true">
      <div className={css.skeletonTitle} aria-hidden />
      <ContentSkeleton />
    </div>
  );
}

/** Placeholder while a part of the page loads. Invisible; marks the page as busy for screen readers. */
export const Loading = () => <VisuallyHidden aria-busy="true" />;

/** Text for screen readers only. */
export { VisuallyHidden as Hidden } from '@mantine/core';

/** Shows a notification that screen readers announce. It disappears after a few seconds if its tone is `good`. */
export function showToast(message: string, tone: Tone = 'good'): void {
  const colour = tone === 'bad' ? 'red' : tone === 'warn' ? 'orange' : 'indigo';
  void import('./toasts.tsx').then(({ show }) => show(message, colour));
}

/** A confirmation of an action that is irreversible or affects others. */
export interface Confirmation {
  /** A question, such as `Delete the account acme?` */
  readonly title: string;
  /** The effects of the action. */
  readonly body: ReactNode;
  /** Label of the button. */
  readonly verb: string;
  /** Whether the action deletes or stops something. The button is red. */
  readonly destructive?: boolean;
  /** Text that the user must type to enable the button. */
  readonly confirmText?: string;
  /** Performs the action. The dialog stays open and shows the error if it fails. */
  readonly onConfirm: () => Promise<unknown>;
}

/** Dialogs have 200. */
const CONFIRM_Z_INDEX = 210;

const ConfirmContext = createContext<(confirmation: Confirmation) => void>(() => {});

/** Returns a function that opens a confirmation dialog. */
export function useConfirm(): (confirmation: Confirmation) => void {
  return useContext(ConfirmContext);
}

/** A menu that `target`, a button, opens. The button has the focus after it, also when a dialog that one of its items opened is closed. */
export function ActionMenu(props: {
  readonly target: (ref: RefObject<HTMLButtonElement | null>) => ReactNode;
  readonly position?: MenuProps['position'];
  readonly children: ReactNode;
}) {
  const { target, position = 'bottom-end', children } = props;
  const button = useRef<HTMLButtonElement>(null);
  const focusButton = (): void => button.current?.focus({ preventScroll: true });
  return (
    <Menu
      {...{ position }}
      width={240}
      withinPortal
      withInitialFocusPlaceholder={false}
      onClose={focusButton}
    >
      <Menu.Target>{target(button)}</Menu.Target>
      <Menu.Dropdown>{children}</Menu.Dropdown>
    </Menu>
  );
}

/** Renders the confirmation dialog of `useConfirm`. */
export function ConfirmProvider({ children }: { readonly children: ReactNode }) {
  const [confirmation, setConfirmation] = useState<Confirmation | null>(null);
  const [opened, setOpened] = useState(false);
  const open = useCallback((next: Confirmation): void => {
    setConfirmation(next);
    setOpened(true);
  }, []);
  return (
    <ConfirmContext value={open}>
      {children}
      <Modal
        opened={opened}
        onClose={() => setOpened(false)}
        onExitTransitionEnd={() => setConfirmation(null)}
        title={confirmation?.title}
        // Above other dialogs.
        zIndex={CONFIRM_Z_INDEX}
      >
        {confirmation ? <ConfirmForm confirmation={confirmation} close={() => setOpened(false)} /> : null}
      </Modal>
    </ConfirmContext>
  );
}

function ConfirmForm(props: { readonly confirmation: Confirmation; readonly close: () => void }) {
  const { confirmation, close } = props;
  const [typed, setTyped] = useState('');
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const isOpen = useRef(true);
  useEffect(() => {
    isOpen.current = true;
    return () => {
      isOpen.current = false;
    };
  }, []);
  const ready = confirmation.confirmText === undefined || typed.trim() === confirmation.confirmText;
  async function act(event: React.FormEvent): Promise<void> {
    event.preventDefault();
    if (!ready) return;
    setBusy(true);
    setError(null);
    try {
      await confirmation.onConfirm();
      if (isOpen.current) close();
    } catch (cause) {
      // The user has closed the dialog meanwhile: show the error as a notification.
      if (isOpen.current) setError(cause);
      else showToast(`${confirmation.title} ${toErrorMessage(cause)}`, 'bad');
    } finally {
      setBusy(false);
    }
  }
  return (
    <form onSubmit={(event) => void act(event)}>
      <div className={css.page}>
        <div>{confirmation.body}</div>
        {confirmation.confirmText === undefined ? null : (
          <TextInput
            label={`Type ${confirmation.confirmText} to confirm`}
            value={typed}
            onChange={(event) => setTyped(event.currentTarget.value)}
            autoComplete="off"
            spellCheck={false}
            data-autofocus
          />
        )}
        {error ? <Failure error={error} /> : null}
        <Group justify="flex-end">
          <Button onClick={close}>Cancel</Button>
          <Button
            variant="filled"
            type="submit"
            color={confirmation.destructive ? 'red' : 'indigo'}
            loading={busy}
            disabled={!ready}
          >
            {confirmation.verb}
          </Button>
        </Group>
      </div>
    </form>
  );
}

/** Small line with the assignee and the note of the attention item of a subject. Empty if there is neither. */
export function TriageSummary(props: {
  readonly type: 'job' | 'endpoint' | 'account';
  readonly id: string;
  /** Given for a job, whose number is unique in its account only. */
  readonly account?: string;
  readonly region?: string;
}) {
  const { type, id, account, region } = props;
  const api = useApi();
  const query = { subject: `${type}/${id}`, account, region, state: 'all', limit: 1 } as const;
  const { data } = useQuery({
    queryKey: ['attention', 'subject', query],
    queryFn: ({ signal }) => api.get('/v1/attention', { params: { query }, signal }),
    refetchInterval: 4 * ATTENTION_MS,
  });
  const text = data?.items.map(formatTriage).join('');
  return text ? (
    <p className={css.hint}>
      <bdi>{text}</bdi>
    </p>
  ) : null;
}
