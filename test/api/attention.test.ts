/** The rank and the states of the attention queue. */
import { describe, expect, it } from 'vitest';
import { formatItemId, parseItemId, toEndpointItem } from '../../shared/api/attention/items.ts';
import { compareRanked, RANK_RULE, type RankInput, rankItem } from '../../shared/api/attention/rank.ts';
import { applyAction, findState, type Material, toLevel } from '../../shared/api/attention/state.ts';
import { ATTENTION_KINDS } from '../../shared/api/attention/views.ts';
import type { DeadEvent, ParkedEvent } from '../../shared/delivery/parked-events.ts';
import { toSink } from '../../shared/delivery/sink.ts';

describe('the item of an endpoint', () => {
  it('states a reason once, although several causes have it', () => {
    const now = Date.parse('2026-03-02T12:00:00Z');
    const reason = 'The endpoint responded with status 503.';
    const sink = toSink({
      ...{ pk: 'SINKS#us', sk: 'erp', kind: 'webhook', target: 'https://erp.example' },
      ...{ failures: 3, failingSince: now - 3 * 3_600_000, problem: reason },
    });
    const dead = {
      account: 'acme',
      jobNumber: 1,
      reason,
      diedAt: now,
      parkedAt: now,
    } as unknown as DeadEvent;
    const summarize = (parked: string) =>
      toEndpointItem(
        sink,
        { dead: [dead], parked: [{ ...dead, reason: parked } as unknown as ParkedEvent] },
        now,
      )?.cause.summary;
    expect(summarize(reason)).toBe(
      'Failing (the endpoint responded with status 503); 1 event rejected on every attempt; 1 event parked.',
    );
    expect(summarize('Status 422.')).toBe(
      'Failing (the endpoint responded with status 503); 1 event rejected on every attempt; 1 event parked (status 422).',
    );
  });

  it.each(['webhook', 'sqs'] as const)(
    'permits to resume and ping a paused endpoint of the kind %s',
    (kind) => {
      const sink = toSink({ pk: 'SINKS#us', sk: 'erp', kind, target: 'https://erp.example', paused: true });
      const parked = [{ account: 'acme', parkedAt: 0, reason: null } as unknown as ParkedEvent];
      const operations = toEndpointItem(sink, { dead: [], parked }, 0)?.actions.map((one) => one.operation);
      expect(operations).toEqual(expect.arrayContaining(['resumeEndpoint', 'pingEndpoint']));
    },
  );
});

const item: RankInput = { kind: 'job_late', ageHours: 0, lateHours: 0, mustDate: false, affected: 1 };
const score = (change: Partial<RankInput>) => rankItem({ ...item, ...change }).score;

describe('the rank of an item', () => {
  it('rises with the lateness of a job, and stops at a maximum', () => {
    const hours = [0, 12, 24, 72, 240, 2_400];
    const scores = hours.map((lateHours) => score({ lateHours }));
    expect(scores).toEqual([...scores].sort((a, b) => a - b));
    expect(new Set(scores.slice(0, 5)).size).toBe(5);
    expect(score({ lateHours: 2_400 })).toBe(score({ lateHours: 24_000 }));
  });

  it('is higher for a job whose due date must be met, if it is late or due soon', () => {
    for (const kind of ['job_late', 'job_due_soon'] as const) {
      const lateHours = kind === 'job_late' ? 5 : null;
      expect(score({ kind, lateHours, mustDate: true })).toBe(score({ kind, lateHours }) + 25);
    }
    const stalled = { kind: 'job_stalled', lateHours: null } as const;
    expect(score({ ...stalled, mustDate: true })).toBe(score(stalled));
  });

  it('rises with the number of affected jobs or events, and with age', () => {
    expect(score({ affected: 1_000 })).toBeGreaterThan(score({ affected: 10 }));
    expect(score({ ageHours: 240 })).toBeGreaterThan(score({ ageHours: 2 }));
  });

  it('puts an account that is not observed before a job that is a day late', () => {
    const account = score({ kind: 'account_not_observed', lateHours: null });
    expect(account).toBeGreaterThan(score({ lateHours: 24 }));
  });

  it('is the sum of its components, each with its explanation; the rule names every kind', () => {
    const { score: sum, components } = rankItem({
      ...item,
      ...{ lateHours: 50, mustDate: true, affected: 40, ageHours: 50 },
    });
    expect(components.map(({ name }) => name)).toEqual([
      'kind',
      'lateness',
      'mandatory_date',
      'impact',
      'age',
    ]);
    expect(components.reduce((total, { points }) => total + points, 0)).toBe(sum);
    expect(components.map(({ explanation }) => explanation)).toEqual([
      'Kind job late',
      '2 days late',
      'Due date must be met',
      '40 jobs or events affected',
      'Started 2 days ago',
    ]);
    for (const kind of ATTENTION_KINDS) expect(RANK_RULE).toContain(kind);
  });

  it('sorts equal scores by age, then by id', () => {
    const rank = { score: 1, components: [] };
    const items = [
      { rank, since: 2, id: 'a' },
      { rank, since: 1, id: 'c' },
      { rank, since: 1, id: 'b' },
      { rank: { ...rank, score: 2 }, since: 9, id: 'z' },
    ];
    expect(items.sort(compareRanked).map(({ id }) => id)).toEqual(['z', 'b', 'c', 'a']);
  });
});

describe('the state of an item', () => {
  const material: Material = { key: 'late', level: 1 };
  const by = { id: 'k', name: 'ann', user: false };
  const context = { material, by, at: 1_000 };
  const snoozed = applyAction(undefined, { action: 'snooze', until: 5_000 }, context);
  const acknowledged = applyAction(undefined, { action: 'acknowledge' }, context);

  it('is open without an action', () => {
    expect(findState(undefined, material, 0)).toEqual({ state: 'open', snoozedUntil: null, returned: null });
  });

  it('is snoozed until the time, and then open again', () => {
    expect(findState(snoozed, material, 4_999)).toMatchObject({ state: 'snoozed', snoozedUntil: 5_000 });
    expect(findState(snoozed, material, 5_000)).toMatchObject({ state: 'open', returned: 'snooze_ended' });
  });

  it('is acknowledged without an end', () => {
    expect(findState(acknowledged, material, 1e15)).toMatchObject({ state: 'acknowledged', returned: null });
  });

  it.each([
    ['the key of the cause changes', { key: 'late and stalled', level: 1 }],
    ['the level rises', { key: 'late', level: 2 }],
  ])('is open again when %s', (_, changed) => {
    for (const stored of [snoozed, acknowledged]) {
      expect(findState(stored, changed, 2_000)).toEqual({
        state: 'open',
        snoozedUntil: null,
        returned: 'changed',
      });
    }
  });

  it('stays hidden when the level falls', () => {
    expect(findState(acknowledged, { ...material, level: 0 }, 2_000).state).toBe('acknowledged');
  });

  it('is open after reopen, which keeps the assignee and the note', () => {
    const assigned = applyAction(
      acknowledged,
      { action: 'assign', assignee: 'ben', note: 'called' },
      context,
    );
    expect(findState(assigned, material, 2_000).state).toBe('acknowledged');
    const open = applyAction(assigned, { action: 'reopen' }, context);
    expect(findState(open, material, 2_000)).toMatchObject({ state: 'open', returned: null });
    expect(open).toMatchObject({ assignee: 'ben', note: 'called', changedBy: by, changedAt: 1_000 });
  });

  it('loses the note or the assignee when they are removed', () => {
    const assigned = applyAction(undefined, { action: 'assign', assignee: 'ben', note: 'called' }, context);
    expect(applyAction(assigned, { action: 'note', note: null }, context).note).toBeNull();
    expect(applyAction(assigned, { action: 'assign', assignee: null }, context)).toMatchObject({
      assignee: null,
      note: 'called',
    });
  });

  it('has levels that rise each time a quantity doubles', () => {
    expect([0, 0.9, 1, 1.9, 2, 3, 4, 8].map(toLevel)).toEqual([0, 0, 1, 1, 2, 2, 3, 4]);
  });
});

describe('the id of an item', () => {
  it('names region, account, type and subject', () => {
    const id = { region: 'us', account: 'acme', type: 'job', subject: '100042' } as const;
    expect(parseItemId(formatItemId(id))).toEqual(id);
    const endpoint = { region: 'us', account: '', type: 'endpoint', subject: 'erp' } as const;
    expect(parseItemId(formatItemId(endpoint))).toEqual(endpoint);
    // The form of earlier versions.
    expect(parseItemId('us~acme~endpoint~erp')).toEqual(endpoint);
  });

  it.each(['', 'us~acme~job~x', 'us~acme~job~01', 'us~ac#me~job~1', 'us~acme~order~1', 'us~acme~job~1~2'])(
    'is not %j',
    (text) => expect(parseItemId(text)).toBeUndefined(),
  );
});
