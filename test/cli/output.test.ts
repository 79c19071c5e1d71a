/** Output of the CLI: texts of customers never control a terminal. */
import { PassThrough, Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { createOutput } from '../../cli/output.ts';

describe('a table', () => {
  it('can have more rows than a function can have arguments', () => {
    const lines: string[] = [];
    const stdout = new Writable({
      write(line, _, done) {
        lines.push(String(line));
        done();
      },
    }) as unknown as NodeJS.WriteStream;
    const out = createOutput({ stdout, stderr: stdout, flagged: () => false, now: () => 0 });
    const entries = Array.from({ length: 200_000 }, (_, at) => at);
    out.table(entries, [{ name: 'N', value: (entry) => entry }], 'none');
    expect([lines[0], lines.length, lines.at(-1)]).toEqual(['N\n', 200_001, '199999\n']);
  });
});

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
