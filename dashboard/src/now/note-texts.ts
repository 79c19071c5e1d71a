/** First texts of notes, which users complete. Independent of React. */
import type { Locale } from '../../../shared/notifications/types.ts';

type Language = 'en' | 'de' | 'fr';

/** Texts by language, by their names in the form. */
const TEXTS: Readonly<Record<string, Readonly<Record<Language, string>>>> = {
  'Longer than planned': {
    en: 'Your order is taking longer than planned. We will write to you again as soon as it is on its way. We are sorry for the delay.',
    de: 'Ihre Bestellung dauert länger als geplant. Wir melden uns wieder, sobald sie unterwegs ist. Bitte entschuldigen Sie die Verzögerung.',
    fr: 'Votre commande prend plus de temps que prévu. Nous vous écrirons de nouveau dès qu’elle sera en route. Veuillez nous excuser pour ce retard.',
  },
  'Artwork needed': {
    en: 'To continue with your order, we need your artwork or your approval. Please contact us.',
    de: 'Um Ihre Bestellung weiter bearbeiten zu können, benötigen wir Ihre Druckdaten oder Ihre Freigabe. Bitte melden Sie sich bei uns.',
    fr: 'Pour poursuivre le traitement de votre commande, nous avons besoin de vos fichiers ou de votre accord. Veuillez nous contacter.',
  },
};

/** Names of the texts. */
export const noteTextNames = Object.keys(TEXTS);

/** Returns the name of the text that fits the status of a job. The status is a name in the ordering API, so it is only a guess. */
export const suggestNoteText = (status: string | null): string =>
  /\b(a?wait|need|missing|require)/i.test(status ?? '') && /artwork|proof|approval/i.test(status ?? '')
    ? 'Artwork needed'
    : 'Longer than planned';

/** Returns a text in the language of a locale. Empty if there is none of this name. */
export const getNoteText = (name: string, locale: Locale): string =>
  TEXTS[name]?.[locale.slice(0, 2) as Language] ?? '';
