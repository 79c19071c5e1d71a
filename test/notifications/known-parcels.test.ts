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

/** Above the growth of a linear run, which is about 4, and below that of a quadratic one, which is about 16. */
const LINEAR = 9;

/** Returns how many times as much CPU time a run with 1,000 jobs takes as one with 250. The smallest of three measurements, unless an earlier one is linear. */
function measureGrowth(run: (jobs: readonly number[]) => void): number {
  const time = (count: number): number => {
    const jobs = Array.from({ length: count }, (_, n) => 1_000_000 + n);
    const before = process.threadCpuUsage();
    run(jobs);
    const { user, system } = process.threadCpuUsage(before);
    return user + system;
  };
  const measure = (count: number) => Math.min(...Array.from({ length: 3 }, () => time(count)));
  measure(250);
  let growth = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 3 && growth >= LINEAR; round += 1) {
    growth = Math.min(growth, measure(1000) / measure(250));
  }
  return growth;
}

test('the time to add parcels that many jobs share is linear in the number of jobs', () => {
  const tracking = Array.from({ length: 50 }, (_, n) => parcel(`1Z999AA1012345${n}`));
  const growth = measureGrowth((jobs) => {
    const mentions = jobs.map((job) => ({ job, tracking, at: job }));
    const known = addKnownParcels({}, mentions);
    expect(Object.keys(known)).toHaveLength(50);
    const last = jobs.at(-1) ?? 0;
    expect(findNewParcels(tracking, known, last)).toEqual([]);
    expect(findNewParcels(tracking, known, 1)).toEqual(tracking);
  });
  expect(growth).toBeLessThan(LINEAR);
});

test('the time to find news is linear in the number of jobs, also after ten earlier messages', () => {
  const growth = measureGrowth((numbers) => {
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
  expect(growth).toBeLessThan(LINEAR);
});
