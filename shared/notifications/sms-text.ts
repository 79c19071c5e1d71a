/** Length of SMS as networks count it (3GPP TS 23.038 and 23.040), and shortening by transliteration. */

/** Size of an SMS. Networks bill each segment. */
export interface SmsSize {
  readonly segments: number;
  readonly encoding: 'GSM-7' | 'UCS-2';
}

/** The GSM-7 alphabet. Characters of {@link EXTENDED} take two positions. */
const BASIC = new Set(
  '@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !"#¤%&\'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà',
);
const EXTENDED = new Set('\f^{}\\[~]|€');

/** Positions of a single message, and of each segment of a longer one, which has a header. */
const PLACES = { 'GSM-7': [160, 153], 'UCS-2': [70, 67] } as const;

/** Typographic characters and their GSM-7 replacement. Letters are not replaced: that would change names. */
const PLAINER: readonly (readonly [RegExp, string])[] = [
  [/[‘’‚‛′`´‹›]/g, "'"],
  [/[“”„‟″«»]/g, '"'],
  [/[‐‑‒–—―−]/g, '-'],
  [/…/g, '...'],
  [/[•·]/g, '*'],
  [/×/g, 'x'],
  [/[\u00a0\u2000-\u200a\u202f\u205f\u3000\t]/g, ' '],
  [/[\u00ad\u200b\u2060\ufeff]/g, ''],
];

/**
 * Returns the encoding and the number of segments of a text. SNS documents that it splits texts between words, so a word that does not fit
 * begins the next segment. A word longer than a segment is split, but never within a surrogate pair or an escaped character.
 */
export function measureSms(text: string): SmsSize {
  const encoding = isGsm(text) ? 'GSM-7' : 'UCS-2';
  const [single, each] = PLACES[encoding];
  const countPlaces = (character: string): number =>
    encoding === 'UCS-2' ? character.length : EXTENDED.has(character) ? 2 : 1;
  let total = 0;
  let segments = 1;
  let filled = 0;
  for (const word of text.split(/(?<= )/)) {
    const places = Array.from(word, countPlaces);
    const bare = places.reduce((sum, one) => sum + one, word.endsWith(' ') ? -1 : 0);
    if (filled > 0 && filled + bare > each) {
      segments += 1;
      filled = 0;
    }
    for (const one of places) {
      total += one;
      if (filled + one > each) {
        segments += 1;
        filled = 0;
      }
      filled += one;
    }
  }
  return { segments: total <= single ? 1 : segments, encoding };
}

/**
 * Returns the text to send, in composed form. If only typography prevents GSM-7, which has room for twice as much, typographic characters
 * are replaced.
 */
export function smsText(text: string): string {
  const composed = text.normalize('NFC');
  if (isGsm(composed)) return composed;
  const plain = PLAINER.reduce((done, [typography, plainer]) => done.replace(typography, plainer), composed);
  return isGsm(plain) ? plain : composed;
}

function isGsm(text: string): boolean {
  for (const character of text) if (!BASIC.has(character) && !EXTENDED.has(character)) return false;
  return true;
}
