/** Renders an e-mail in a frame without origin. The frame runs no scripts of the mail and loads nothing. */
import { useWindowEvent } from '@mantine/hooks';
import { useEffect, useRef, useState } from 'react';
import { MAIL_FRAME } from '../../../shared/dashboard-headers.ts';
import css from './customers.module.css';

/** Height until the frame reports the height of the mail, and its maximum. */
const INITIAL_HEIGHT_PX = 480;
const MAX_HEIGHT_PX = 20_000;

/**
 * Shows the HTML of an e-mail at its full height. `title`: accessible name of the frame. `dark`: dark colour scheme. `narrow`: width of
 * a phone.
 */
export function MailFrame(props: {
  readonly html: string;
  readonly title: string;
  readonly dark: boolean;
  readonly narrow: boolean;
}) {
  const { html, title, dark, narrow } = props;
  const frame = useRef<HTMLIFrameElement>(null);
  const [loaded, setLoaded] = useState(0);
  const [height, setHeight] = useState<number>();

  useWindowEvent('message', ({ source, data }) => {
    if (source === null || source !== frame.current?.contentWindow) return;
    const reported: unknown = data?.mailHeight;
    if (typeof reported === 'number' && reported > 0) setHeight(Math.min(MAX_HEIGHT_PX, reported));
  });
  useEffect(() => {
    // Target '*': a frame without origin cannot be named. The page's Content-Security-Policy allows no other frame.
    if (loaded > 0) frame.current?.contentWindow?.postMessage({ html, dark }, '*');
  }, [loaded, html, dark]);

  return (
    <iframe
      ref={frame}
      className={css.mail}
      data-narrow={narrow || undefined}
      src={`/${MAIL_FRAME}`}
      sandbox="allow-scripts"
      title={title}
      aria-busy={height === undefined}
      style={{ height: height ?? INITIAL_HEIGHT_PX }}
      onLoad={() => setLoaded((times) => times + 1)}
    />
  );
}
