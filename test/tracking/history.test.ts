/**
 * Random histories of an account whose jobs exceed one page of a hundred, one detail fetch budget and one transaction. The
 * oracle is that of model.tables.test.ts, which runs many small ones.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { keys } from '../../shared/storage/schema.ts';
import { DEFAULT_TRACKING } from '../../shared/tracking/schedule.ts';
import { type Change, changes, createHistory, creation, faults } from '../support/history.ts';
import { farewellWaits, settlingWaits } from '../support/model.ts';
import { createLedger } from '../support/oracle.ts';
import { createRig } from '../support/tracker.ts';

const SEEDS = process.env.SEED === undefined ? [1, 2] : [Number(process.env.SEED)];
const JOBS = 130;
const POLLS = 60;
/** More disappearing jobs would cause a quarantine (rule 10), which has its own tests. */
const MOST_GONE = 8;

const moments = fc.record({ happens: fc.nat(3), change: changes(JOBS) });
const polls = fc.record({
  changes: fc.array(changes(JOBS), { maxLength: 5 }),
  fault: fc.option(faults, { freq: 1 }),
  pauseSeconds: fc.oneof({ weight: 19, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(3600) }),
});

test.each(SEEDS)(
  'a random history with faults: every event is true, none is emitted twice, none is missing (rules 1–8, 13, 14, 18; seed %i)',
  async (seed) => {
    const rig = await createRig({ leavesListOnDispatch: seed % 2 === 0 });
    const history = createHistory(rig.upstream, rig);
    const ledger = createLedger(history);
    let gone = 0;
    const apply = (change: Change): void => {
      if (!['cancel', 'remove', 'hide'].includes(change.do)) history.apply(change);
      else if (gone < MOST_GONE && history.apply(change)) gone += 1;
    };
    for (const each of fc.sample(creation, { seed, numRuns: JOBS })) apply(each);

    const between = fc.sample(moments, { seed, numRuns: 2_000 });
    let changing = true;
    rig.sandbox.onRequest = () => {
      rig.pass(0.001);
      const moment = changing ? between.pop() : undefined;
      if (moment?.happens === 0) apply(moment.change);
    };
    const poll = async (): Promise<void> => {
      history.unhide('locked for too long');
      await rig.poll();
      rig.sandbox.faults.clear();
      ledger.take(await rig.fresh());
      ledger.compare(await rig.snapshots());
    };
    while ((await rig.status()).lastGoodCrawlStartedAt === null) await rig.poll();
    const head = await rig.table.get(keys.head(rig.ref));
    ledger.begin(await rig.snapshots(), Number(head?.baselineStartedAt));

    let lastFaultAt = 0;
    for (const round of fc.sample(polls, { seed, numRuns: POLLS })) {
      if (round.fault) rig.fault(round.fault);
      for (const change of round.changes) apply(change);
      rig.pass(round.pauseSeconds);
      await poll();
      if (round.fault) lastFaultAt = rig.now();
    }
    changing = false;
    history.unhide('all');
    const { fetchesPerPoll } = DEFAULT_TRACKING;
    for (const seconds of settlingWaits(history.jobs.length, fetchesPerPoll)) {
      rig.pass(seconds - 60);
      await poll();
    }
    ledger.settle({
      snapshots: await rig.snapshots(),
      index: await rig.index(),
      baselinedAt: Number(head?.baselinedAt),
      lastFaultAt,
    });
    for (const seconds of farewellWaits(history.jobs.length, fetchesPerPoll)) {
      rig.pass(seconds - 60);
      await poll();
    }
    ledger.farewell(await rig.index());
    expect(ledger.problems.slice(0, 5)).toEqual([]);
    expect(ledger.events.length).toBeGreaterThan(100);
  },
  60_000,
);
