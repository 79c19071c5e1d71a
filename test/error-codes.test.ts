import { describe, expect, it } from 'vitest';
import { findCode, formatCode } from '../shared/error-codes.ts';

describe('formatCode', () => {
  it('explains a known code and keeps an unknown one in parentheses', () => {
    expect(formatCode('ECONNREFUSED')).toBe(': the connection was refused (ECONNREFUSED)');
    expect(formatCode('ERR_SSL_WRONG_VERSION_NUMBER')).toBe(
      ': the TLS handshake failed (ERR_SSL_WRONG_VERSION_NUMBER)',
    );
    expect(formatCode('EUNKNOWN')).toBe(' (EUNKNOWN)');
    expect(formatCode('toString')).toBe(' (toString)');
    expect(formatCode(undefined)).toBe('');
  });
});

describe('findCode', () => {
  it('finds the code in the causes, and the original code behind that of nodemailer', () => {
    const refused = Object.assign(new Error('x'), { code: 'ECONNREFUSED' });
    expect(findCode(new TypeError('fetch failed', { cause: refused }))).toBe('ECONNREFUSED');
    expect(findCode(Object.assign(new Error('x'), { code: 'EDNS', originalCode: 'ENOTFOUND' }))).toBe(
      'ENOTFOUND',
    );
    expect(findCode('no error')).toBeUndefined();
  });
});
