/** An SMS as it is read on a phone. */
import css from './customers.module.css';

/** The text, as text: links in it lead nowhere. */
export function SmsBubble({ text }: { readonly text: string }) {
  return (
    <div className={css.phone}>
      <p className={css.bubble}>{text}</p>
    </div>
  );
}
