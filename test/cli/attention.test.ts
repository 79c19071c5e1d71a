/** Commands of the actions that items of the attention queue recommend. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { toActionCommand } from '../../cli/attention.ts';
import { parse } from '../../cli/command.ts';
import { loadCommands } from '../../cli/run.ts';

const commands = await loadCommands();
const source = readFileSync('shared/api/attention/items.ts', 'utf8');
const operations = [...source.matchAll(/(?:operation: |post\()'(\w+)'/g)].map(([, name = '']) => name);

test.each([...new Set(operations)])('%s is shown as a command that the CLI accepts', (operation) => {
  const path = '/v1/accounts/acme/jobs/100042?region=us';
  const body = { filter: { from: '2026-03-02T08:00:00.000Z' } };
  const line = toActionCommand({ operation, path, body }) ?? '';
  expect(line).not.toMatch(/[{}–]/);
  expect(parse(commands, line.split(' '))).toMatchObject({ name: line.split(' ').slice(0, 2).join(' ') });
});

test('the command has the endpoint, the region and the filter of the action', () => {
  const path = '/v1/endpoints/erp/redeliver?region=us';
  const body = { states: ['dead'], filter: { from: '2026-03-02T08:00:00.000Z' } };
  expect(toActionCommand({ operation: 'redeliverEvents', path, body })).toBe(
    'endpoints redeliver erp --region us --dead --since 2026-03-02T08:00:00.000Z',
  );
});

test('an action of a newer API has no command', () => {
  expect(toActionCommand({ operation: 'newOperation', path: '/v1/new', body: null })).toBeUndefined();
});
