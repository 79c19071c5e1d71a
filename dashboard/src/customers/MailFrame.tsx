/** An e-mail as it is read, in a frame that has no origin, runs nothing of the mail's and loads nothing. */
import { useEffect, useRef, useState } from 'react';
import { MAIL_FRAME } from '../../../shared/dashboard-headers.ts';
import css from './customers.module.css';

/** So high until the frame has said how high the mail is, and at most. */
const INITIAL_HEIGHT_PX = 480;
const MAX_HEIGHT_PX = 20_000;

/**
 * Shows the HTML of an e-mail. `title` names the frame; `dark`: as a mail program would that is dark; `narrow`: as wide as a
 * phone. It is as high as the mail.
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
  const [height, setHeight] = useState(INITIAL_HEIGHT_PX);

  useEffect(() => {
    const hear = ({ source, data }: MessageEvent): void => {
      if (source === null || source !== frame.current?.contentWindow) return;
      const told: unknown = data?.mailHeight;
      if (typeof told === 'number' && told > 0) setHeight(Math.min(MAX_HEIGHT_PX, told));
    };
    window.addEventListener('message', hear);
    return () => window.removeEventListener('message', hear);
  }, []);
  useEffect(() => {
    // To whoever is there: the frame has no origin that could be named, and the page's policy lets nobody else be.
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
      style={{ height }}
      onLoad={() => setLoaded((times) => times + 1)}
    />
  );
}
