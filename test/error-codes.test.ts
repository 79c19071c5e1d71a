import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from 'vitest';
import { explainError, findCode, formatCode } from '../shared/error-codes.ts';

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

describe('explainError', () => {
  it('explains that a database has no space', () => {
    const database = new DatabaseSync(':memory:');
    database.exec('CREATE TABLE t (text); PRAGMA max_page_count = 3');
    const reason = (sql: string) => {
      try {
        database.exec(sql);
      } catch (cause) {
        return explainError(cause);
      }
      return undefined;
    };
    expect(reason('INSERT INTO t VALUES (zeroblob(100000))')).toBe('the disk is full (SQLITE_FULL)');
    expect(reason('SELECT x FROM t')).toBe('no such column: x');
  });

  it('omits the final period of a message', () => {
    expect(explainError(new Error('It failed.'))).toBe('It failed');
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
