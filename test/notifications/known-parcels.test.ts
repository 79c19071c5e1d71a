/** Parcels of a thread that customers were notified of, for each job. */
import { expect, test } from 'vitest';
import { addKnownParcels, findNewParcels } from '../../shared/notifications/known-parcels.ts';
import type { Work } from '../../shared/notifications/messages.ts';
import { findNews } from '../../shared/notifications/send-decision.ts';

const parcel = (number: string, link: string | null = `https://carrier.example/${number}`) => ({
  number,
  link,
});

test('a parcel is new to each job that had no notice about it, and again when it gets a link', () => {
  const first = addKnownParcels({}, [{ job: 1, tracking: [parcel('P1', null)], at: 1 }]);
  expect(findNewParcels([parcel('P1', null)], first, 1)).toEqual([]);
  expect(findNewParcels([parcel('P1')], first, 1)).toEqual([parcel('P1')]);
  expect(findNewParcels([parcel('P1', null)], first, 2)).toEqual([parcel('P1', null)]);
  const second = addKnownParcels(first, [
    { job: 1, tracking: [parcel('P1')], at: 2 },
    { job: 2, tracking: [parcel('P1', null)], at: 3 },
  ]);
  expect(findNewParcels([parcel('P1')], second, 1)).toEqual([]);
  expect(findNewParcels([parcel('P1')], second, 2)).toEqual([parcel('P1')]);
  expect(Object.values(second)).toEqual([{ link: true, at: 3, jobs: { 1: true, 2: false } }]);
});

test('a parcel that an earlier version stored is known for all jobs', () => {
  const [key = ''] = Object.keys(addKnownParcels({}, [{ job: 1, tracking: [parcel('P1')], at: 1 }]));
  const former = { [key]: { link: true, at: 1 } };
  expect(findNewParcels([parcel('P1')], former, 2)).toEqual([]);
  const next = addKnownParcels(former, [{ job: 2, tracking: [parcel('P1')], at: 2 }]);
  expect(next).toEqual({ [key]: { link: true, at: 2 } });
});

// Without sharing the work, this takes 16 s.
test('a thousand jobs can share fifty parcels', { timeout: 4_000 }, () => {
  const tracking = Array.from({ length: 50 }, (_, n) => parcel(`1Z999AA1012345${n}`));
  const jobs = Array.from({ length: 1000 }, (_, n) => 1_000_000 + n);
  const known = addKnownParcels(
    {},
    jobs.map((job) => ({ job, tracking, at: job })),
  );
  expect(Object.keys(known)).toHaveLength(50);
  for (const job of jobs) expect(findNewParcels(tracking, known, job)).toEqual([]);
  expect(findNewParcels(tracking, known, 1)).toEqual(tracking);
});

// If all earlier parcels are read for each job, this takes 3 minutes.
test('a message about a thousand jobs has ten earlier messages', { timeout: 4_000 }, () => {
  const numbers = Array.from({ length: 1000 }, (_, n) => 1_000_000 + n);
  const toWork = (parcels: number) => {
    const jobs = numbers.map((jobNumber) => ({
      ...{
        jobNumber,
        orderNumber: null,
        description: null,
        dateOut: null,
        dateDue: null,
        formerDateDue: null,
      },
      tracking: Array.from({ length: parcels }, (_, n) => parcel(`1Z999AA1012345${jobNumber}${n}`)),
    }));
    const content = { kind: 'tracking', observedAt: 1, orderGroup: 'SPRING', jobs };
    return { content, message: { state: 'sent', jobs: numbers }, maybeSent: false } as unknown as Work;
  };
  const before = new Map(Array.from({ length: 10 }, (_, n) => [`earlier-${n}`, toWork(3)]));
  const work = { ...toWork(4), before: [...before.keys()] };
  const news = findNews(work, before, { dryRun: false, wantsTracking: true });
  expect([...news.values()].map(({ tracking }) => tracking.length)).toEqual(numbers.map(() => 1));
});
