/** Lines of events on a terminal. */
import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { createTerminal, nameCli } from '../../local/terminal.ts';
import { eventTypes } from '../../shared/events/catalogue.ts';
import type { JobEvent } from '../../shared/events/event.ts';
import { getExample } from '../../shared/events/examples.ts';

/** Returns the value with control characters in each of its texts, and with a text in place of each number. */
function poison(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(poison);
  if (typeof value !== 'object' || value === null) return `${value}\u001b]0;title\u0007\r\n\u202e\u009b31m`;
  return Object.fromEntries(Object.entries(value).map(([name, entry]) => [name, poison(entry)]));
}

describe('an event of a Jobwire that is not trusted', () => {
  it.each(eventTypes)('%s is one line without control characters', (type) => {
    const stream = new PassThrough() as unknown as NodeJS.WriteStream & PassThrough;
    const { data, ...envelope } = getExample(type) as JobEvent;
    const changes = { 'status\u001b[2J': { from: 'a', to: 'b' } };
    const hostile = { ...envelope, data: { ...(poison(data) as object), changes } } as unknown as JobEvent;
    createTerminal(stream).event(hostile);
    createTerminal(stream).event({ ...hostile, type: `${type}\u001b[31m\n` } as unknown as JobEvent);
    const text = String(stream.read());
    expect(text.split('\n')).toHaveLength(3);
    expect(text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\u202e]/u);
  });
});

describe('an event about an account, an endpoint or the region', () => {
  const types = eventTypes.filter((type) => /^(account|endpoint|upstream)\./.test(type));
  it.each(types.filter((type) => type !== 'account.credentials_accepted'))('%s has a description', (type) => {
    const stream = new PassThrough() as unknown as NodeJS.WriteStream & PassThrough;
    const event = getExample(type) as JobEvent;
    createTerminal(stream).event(event);
    const [, description = ''] = String(stream.read()).split(type);
    const { endpoint = '' } = event.data as { endpoint?: string };
    expect(description).toMatch(/\w/);
    expect(description).toContain(endpoint);
  });

  it('shows both ids of an identity mismatch', () => {
    const stream = new PassThrough() as unknown as NodeJS.WriteStream & PassThrough;
    createTerminal(stream).event(getExample('account.identity_mismatch') as JobEvent);
    expect(String(stream.read())).toContain('expected 20418, found 20977');
  });
});

describe('a long text of an event', () => {
  const reason = `The ordering API is not at this address. ${'x'.repeat(300)}.`;
  const print = (isTTY: boolean) => {
    const stream = Object.assign(new PassThrough(), { isTTY, columns: 80 }) as unknown as NodeJS.WriteStream &
      PassThrough;
    const event = getExample('account.poll_failing') as JobEvent;
    createTerminal(stream).event({ ...event, data: { ...event.data, reason } } as JobEvent);
    return String(stream.read());
  };

  it('is cut on a terminal', () => {
    expect(print(true)).toMatch(/The ordering API is not at this address\. x+…/);
  });

  it('is not cut in a file', () => {
    expect(print(false)).toContain(reason);
  });
});

describe('a hint', () => {
  it('names the CLI as it is started in a checkout', () => {
    expect(nameCli('Unknown command. See jobwire help accounts. Jobwire runs in .jobwire now.')).toBe(
      'Unknown command. See npm run -s jobwire -- help accounts. Jobwire runs in .jobwire now.',
    );
    const complete = nameCli('To test it, run: jobwire doctor');
    expect(nameCli(complete)).toBe(complete);
    expect(nameCli('npx jobwire accounts list')).toBe('npx jobwire accounts list');
  });
});
