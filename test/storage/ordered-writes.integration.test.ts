/** Tables whose writes take effect in the order of their calls, in a process that is killed. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { openSqliteTables } from '../../shared/storage/sqlite-table.ts';

const folder = mkdtempSync(join(tmpdir(), 'jobwire-ordered-'));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Writes a number to the history, and then to the state, without waiting in between. Prints a character for every 20 numbers. */
const WRITER = `
  import { openSqliteTables } from ${JSON.stringify(new URL('../../shared/storage/sqlite-table.ts', import.meta.url).href)};
  const { table, history } = await openSqliteTables(process.argv[1]);
  for (let n = 1; ; n += 1) {
    history.putMany([{ pk: 'HISTORY', sk: String(n) }], { relaxed: true });
    const written = table.write({ put: { pk: 'STATE', sk: 'last', n } }, { relaxed: true });
    if (n % 20 === 0) {
      process.stdout.write('.');
      await written;
    }
  }`;

test('when a process is killed, a write is stored only if those called before it are, also of the other table', async () => {
  for (let run = 0; run < 5; run += 1) {
    const path = join(folder, `${run}.db`);
    const writer = spawn(process.execPath, ['--input-type=module', '-e', WRITER, path], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const exited = once(writer, 'exit');
    let printed = 0;
    for await (const text of writer.stdout) {
      printed += String(text).length;
      // At a different point of the work each time.
      if (printed > 10 + run * 7) break;
    }
    writer.kill('SIGKILL');
    expect((await exited)[1]).toBe('SIGKILL');
    const tables = await openSqliteTables(path);
    expect([tables.table.ordered, tables.history.ordered]).toEqual([true, true]);
    const last = await tables.table.get({ pk: 'STATE', sk: 'last' });
    expect(last?.n).toBeGreaterThan(100);
    expect(await tables.history.get({ pk: 'HISTORY', sk: String(last?.n) })).toBeDefined();
    await tables.close();
  }
});
