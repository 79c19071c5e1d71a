/** The maximum length of texts (shared/tracking/texts.ts). */
import { describe, expect, test } from 'vitest';
import { TRUNCATED, toText } from '../../shared/tracking/texts.ts';

const MAX = 100;
const bytes = (text: string | null): number => Buffer.byteLength(JSON.stringify(text)) - 2;

describe('a text of a job', () => {
  test.each([
    [null, null],
    ['', null],
    ['a'.repeat(MAX), 'a'.repeat(MAX)],
    ['é'.repeat(MAX / 2), 'é'.repeat(MAX / 2)],
    ['\u0001'.repeat(16), '\u0001'.repeat(16)],
  ])('that is short enough stays as it is: %j', (text, expected) => {
    expect(toText(text, MAX)).toBe(expected);
  });

  test.each(['a', 'é', '😀', '"', '\u0001', '\ud800', 'a😀'])(
    'of many %j is cut between two characters',
    (part) => {
      const text = part.repeat(2 * MAX);
      const cut = toText(text, MAX) ?? '';
      expect(cut.endsWith(TRUNCATED)).toBe(true);
      expect(text.startsWith(cut.slice(0, -TRUNCATED.length))).toBe(true);
      expect(bytes(cut)).toBeLessThanOrEqual(MAX);
      expect(bytes(cut)).toBeGreaterThan(MAX - 12);
      expect(cut.isWellFormed()).toBe(text.isWellFormed());
      expect(toText(cut, MAX)).toBe(cut);
      expect(toText(`${text}more`, MAX)).toBe(cut);
    },
  );

  test('is cut only beyond the maximum', () => {
    expect(toText('a'.repeat(MAX + 1), MAX)).toBe('a'.repeat(MAX - bytes(TRUNCATED)) + TRUNCATED);
  });
});
