/** How long an SMS is, as networks count (3GPP TS 23.038 and 23.040), and how to keep it short. */

/** What an SMS costs: networks bill each segment. */
export interface SmsSize {
  readonly segments: number;
  readonly encoding: 'GSM-7' | 'UCS-2';
}

/** The alphabet of GSM-7; what stands in {@link EXTENDED} takes two places. */
const BASIC = new Set(
  '@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !"#¤%&\'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà',
);
const EXTENDED = new Set('\f^{}\\[~]|€');

/** Places of a single message, and of each segment of a longer one, whose header takes some. */
const PLACES = { 'GSM-7': [160, 153], 'UCS-2': [70, 67] } as const;

/** What is only typography, in the words of GSM-7. Letters are not: another letter is another name. */
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
 * The encoding a text needs, and the segments it takes. As SNS says that it parts texts between words, a word that doesn't fit
 * begins the next segment; one that is longer than a segment is parted, but neither a pair of surrogates nor an escaped character.
 */
export function measureSms(text: string): SmsSize {
  const encoding = isGsm(text) ? 'GSM-7' : 'UCS-2';
  const [single, each] = PLACES[encoding];
  const placesOf = (character: string): number =>
    encoding === 'UCS-2' ? character.length : EXTENDED.has(character) ? 2 : 1;
  let total = 0;
  let segments = 1;
  let filled = 0;
  for (const word of text.split(/(?<= )/)) {
    const places = Array.from(word, placesOf);
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

/** The text as it is sent: composed, and where only typography keeps it from GSM-7, which has room for twice as much, without that. */
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
