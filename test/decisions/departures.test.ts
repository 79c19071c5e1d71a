/** What became of a job that is missing from a complete crawl (shared/tracking/departures.ts). */
import { describe, expect, test } from 'vitest';
import { type Evidence, judge } from '../../shared/tracking/departures.ts';
import { BASELINE, detailed, listed, lookAt } from '../support/decisions.ts';

describe('what the answers about a missing job prove (rule 3)', () => {
  const look = lookAt(BASELINE, 'search');
  const evidence = (fields: Partial<Evidence>): Evidence => ({
    look,
    detail: detailed({ permissions: { canEdit: false } }),
    detailLook: look,
    active: null,
    activeLook: look,
    amongClosed: false,
    ...fields,
  });
  const out = detailed({ dateOut: '2026-03-02' });

  test.each([
    ['in the active list, whatever else', { active: listed(), detail: out }, { kind: 'listed' }],
    ['dispatched and among the closed', { detail: out, amongClosed: true }, { kind: 'left', closed: true }],
    ['dispatched, in neither list', { detail: out }, { kind: 'left', closed: false }],
    ['not dispatched, among the closed', { amongClosed: true }, { kind: 'left', closed: true }],
    ['in neither list and locked', {}, { kind: 'suspected', as: 'cancelled' }],
    [
      'in neither list, of the lock nothing said',
      { detail: detailed() },
      { kind: 'suspected', as: 'cancelled' },
    ],
    [
      'in neither list but open for editing',
      { detail: detailed({ permissions: { canEdit: true } }) },
      { kind: 'contradictory' },
    ],
    ['unknown and in neither list', { detail: null }, { kind: 'suspected', as: 'unavailable' }],
    ['unknown but among the closed', { detail: null, amongClosed: true }, { kind: 'contradictory' }],
  ])('%s', (_, fields, verdict) => {
    expect(judge(evidence(fields))).toEqual(verdict);
  });
});
