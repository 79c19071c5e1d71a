/** One-line description of an event. */
import { Fragment } from 'react';
import type { JobEvent } from '../../shared/events/event.ts';
import { Hidden } from './components.tsx';
import { describeEvent, type ValueChange } from './events.ts';
import { UpstreamDate } from './times.tsx';
import ui from './ui.module.css';

/** Description of an event with old and new values. The caller displays the tone. */
export function EventSummary({ event }: { readonly event: JobEvent }) {
  const { more, ...first } = describeEvent(event);
  return (
    <>
      <Change {...first} />
      {more?.map((one) => (
        <Fragment key={one.label}>
          {'; '}
          <Change {...one} />
        </Fragment>
      ))}
    </>
  );
}

function Change({ label: what, from, to, areDates: dates = false }: ValueChange) {
  return (
    <>
      {what}
      {from === undefined ? null : (
        <>
          <Hidden> from</Hidden> <Value text={from} dates={dates} was={to !== undefined} />
        </>
      )}
      {to === undefined ? null : (
        <>
          {from === undefined ? null : (
            <>
              <span className={ui.quiet} aria-hidden>
                {' '}
                →
              </span>
              <Hidden> to</Hidden>
            </>
          )}{' '}
          <Value text={to} dates={dates} was={false} />
        </>
      )}
    </>
  );
}

function Value(props: { readonly text: string; readonly dates: boolean; readonly was: boolean }) {
  const { text, dates, was } = props;
  return <bdi className={was ? ui.quiet : ui.name}>{dates ? <UpstreamDate at={text} /> : text}</bdi>;
}
