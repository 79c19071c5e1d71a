/** Reading logs backwards: the newest event of all logs first. */
import { expect, it } from 'vitest';
import { type BackSource, readBack } from '../../shared/api/feed-back.ts';
import type { LoggedEvent } from '../../shared/log/log.ts';

/** A log whose events have these times. */
function createSource(account: string, times: readonly number[]): BackSource {
  const events = times.map((time, at) => {
    const json = `${account}.${at + 1}`;
    return { number: at + 1, event: { time, json } as LoggedEvent };
  });
  return {
    from: times.length,
    isHead: true,
    readWindow: async (after, upTo) => ({
      ...{ kind: 'events', through: upTo, events: events.slice(after, upTo) },
    }),
  };
}

it('returns the events of several logs by time, the newest first, and the next older event of each', async () => {
  const sources = [createSource('acme', [10, 20, 50, 60]), createSource('kiwi', [15, 30, 55])];
  const query = { maxBytes: 1000, matches: () => true, budget: 100, batch: 2 };
  expect(await readBack(sources, { ...query, limit: 5 })).toEqual({
    events: ['acme.4', 'kiwi.3', 'acme.3', 'kiwi.2', 'acme.2'],
    places: [
      { newest: 4, older: 1 },
      { newest: 3, older: 1 },
    ],
  });
  // No event of a log is returned while newer ones of another log may be unread.
  const cut = await readBack(sources, { ...query, limit: 5, budget: 4 });
  expect(cut.events).toEqual(['acme.4', 'kiwi.3', 'acme.3']);
});
