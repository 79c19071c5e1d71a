/** Values that the dashboard keeps in the browser. */
import { afterEach, expect, test, vi } from 'vitest';
import { localStore } from '../../dashboard/src/storage.ts';

afterEach(() => vi.unstubAllGlobals());

test('a value that a full storage does not accept replaces the stored one until the page is closed', () => {
  const stored = new Map([['zone', 'viewer']]);
  vi.stubGlobal('localStorage', {
    getItem: (key: string) => stored.get(key) ?? null,
    setItem() {
      throw new DOMException('The storage is full.', 'QuotaExceededError');
    },
    removeItem: (key: string) => stored.delete(key),
  });
  expect(localStore.getItem('zone')).toBe('viewer');
  localStore.setItem('zone', 'jobs');
  expect(localStore.getItem('zone')).toBe('jobs');
  localStore.removeItem('zone');
  expect(localStore.getItem('zone')).toBeNull();
});
