/** Output of the CLI: texts of customers never control a terminal. */
import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { createOutput } from '../../cli/output.ts';

describe('CSV', () => {
  it.each([true, false])(
    'contains no control characters of the data on a terminal, and is unmodified in a file (terminal: %s)',
    async (isTTY) => {
      const stream = Object.assign(new PassThrough(), { isTTY, columns: 80 });
      const stdout = stream as unknown as NodeJS.WriteStream;
      const out = createOutput({ stdout, stderr: stdout, flagged: () => false, now: () => 0 });
      const rows = 'name\r\n"a\u001b]0;title\u0007\rb\u009b2J\u202e\nc"\r\n';
      await out.csv(async function* () {
        yield rows;
      });
      expect(String(stream.read())).toBe(isTTY ? 'name\n"a ]0;title b 2J \nc"\n' : rows);
    },
  );
});
