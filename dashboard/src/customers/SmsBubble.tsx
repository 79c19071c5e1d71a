/** Renders an SMS as on a phone. */
import css from './customers.module.css';

/** Shows the text without active links. */
export function SmsBubble({ text }: { readonly text: string }) {
  return (
    <div className={css.phone}>
      <p className={css.bubble}>{text}</p>
    </div>
  );
}
