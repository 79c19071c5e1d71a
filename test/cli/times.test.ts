/** The format of times in the CLI, on the terminal, in the dashboard and in the mailbox. */
import { globSync, readFileSync } from 'node:fs';
import { PassThrough } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { createOutput } from '../../cli/output.ts';
import { createTerminal } from '../../local/terminal.ts';
import { getExample } from '../../shared/events/examples.ts';

const NOW = Date.parse('2026-03-02T08:05:00.000Z');
const AT = '2026-03-02T08:00:00.987Z';
const SHOWN = '2026-03-02T08:00:00Z';

function createStream(isTTY: boolean) {
  const stream = Object.assign(new PassThrough(), { isTTY, columns: 200 });
  return { stream: stream as unknown as NodeJS.WriteStream, read: () => String(stream.read()) };
}

describe('times in the CLI', () => {
  it.each([true, false])(
    'are ISO 8601 in UTC to the second; only details on a terminal add the age (%s)',
    (isTTY) => {
      const { stream } = createStream(isTTY);
      const out = createOutput({
        stdout: stream,
        stderr: stream,
        flagged: () => false,
        now: () => NOW,
      });
      expect([out.formatTimeCell(AT), out.formatTimeCell(Date.parse(AT)), out.formatTimeCell(null)]).toEqual([
        SHOWN,
        SHOWN,
        '–',
      ]);
      expect([out.formatTimeWithAge(AT), out.formatTimeWithAge(undefined)]).toEqual([
        isTTY ? `${SHOWN} (5 min ago)` : SHOWN,
        null,
      ]);
    },
  );

  it('have the same format in lines of events and messages, on every terminal', () => {
    const { stream, read } = createStream(true);
    const terminal = createTerminal(stream);
    const event = getExample('job.created');
    if (!event) throw new Error('There is no example.');
    terminal.event({ ...event, time: AT });
    terminal.caught({
      ...{ id: 1, channel: 'sms', at: AT, subject: null, preview: 'Dispatched' },
      ...{ messageId: null, references: [], repeat: false },
      ...{ from: { name: 'Acme', address: '+1' }, to: { name: null, address: '+2' } },
    });
    const lines = stripVTControlCharacters(read()).trim().split('\n');
    expect(lines.map((line) => /\S+Z/.exec(line)?.[0])).toEqual([SHOWN, SHOWN]);
  });
});

describe('sources', () => {
  it.each([
    [
      'the CLI and the terminal',
      ['cli/**/*.ts', 'local/*.ts'],
      /toLocale\w*String|toString\(\)\.slice|DateTimeFormat/,
    ],
    [
      'the dashboard',
      ['dashboard/src/**/*.{ts,tsx}'],
      /toLocale(Date|Time)String|DateTimeFormat\((?!\)\.resolved)/,
    ],
  ])('of %s format times in one place only', (_, files, formats) => {
    const found = globSync(files).filter((file) => formats.test(readFileSync(file, 'utf8')));
    const place = ['dashboard/src/times.tsx', 'dashboard/src/zone.ts'];
    expect(found.sort()).toEqual(files[0]?.startsWith('dashboard') ? place : []);
  });
});
