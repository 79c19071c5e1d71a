// Spellings of ISO 8601 timestamps.

/**
 * Styles: without seconds that are 0, with 3 or 7 decimals, a space instead of T, a bare date for a midnight, in UTC, and as
 * local time without offset.
 */
export const SPELLINGS = [
  'noSeconds',
  'milliseconds',
  'sevenDigits',
  'space',
  'dateOnly',
  'utc',
  'noOffset',
] as const;

/** A style. */
export type Spelling = (typeof SPELLINGS)[number];

/** A timestamp for "none". */
export const PLACEHOLDER = '0001-01-01T00:00:00';

/**
 * Returns a function that spells timestamps in these styles. Of conflicting styles, the first of `SPELLINGS` applies. Styles
 * that would lose a value do not apply to it.
 */
export function pickSpelling(styles: readonly Spelling[]): (text: string) => string {
  const has = (style: Spelling) => styles.includes(style);
  return (text) => {
    if (has('dateOnly') && /T00:00:00(?:\.0+)?(?:Z|[+-]\d\d:\d\d)?$/.test(text)) return text.slice(0, 10);
    const written = has('utc') ? toUtc(text) : text;
    const parts = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d):(\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)?$/.exec(written);
    if (!parts) return text;
    const [, day, time, seconds, fraction = '', offset = ''] = parts;
    const shown =
      has('noSeconds') && seconds === '00' && fraction === ''
        ? ''
        : `:${seconds}${decimals(fraction, styles)}`;
    return `${day}${has('space') ? ' ' : 'T'}${time}${shown}${has('noOffset') && !has('utc') ? '' : offset}`;
  };
}

function decimals(fraction: string, styles: readonly Spelling[]): string {
  if (styles.includes('milliseconds')) return `.${fraction.padEnd(3, '0')}`;
  if (styles.includes('sevenDigits')) return `.${fraction.padEnd(7, '0')}`;
  return fraction && `.${fraction}`;
}

/** A timestamp with an offset in UTC; others unchanged. */
function toUtc(text: string): string {
  if (!/[+-]\d\d:\d\d$/.test(text) || Number.isNaN(Date.parse(text))) return text;
  return new Date(text).toISOString().replace('.000Z', 'Z');
}
