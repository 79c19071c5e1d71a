/** Polls that overlap, that are late, or that die at some write: nothing is lost, nothing is said twice. */
import { describe, expect, test } from 'vitest';
import { createMemoryTable } from '../shared/table/memory-table.ts';
import { createRig, type Rig, watchedTable } from './support/rig.ts';

/** What happens upstream after the baseline: something of every kind of write. */
function live(rig: Rig, jobs: readonly number[]): void {
  const [moving = 0, dispatched = 0, closed = 0] = jobs;
  rig.upstream.setStatus(moving, 'Vulcanising');
  rig.upstream.dispatch(dispatched, { tracking: [{ trackingNumber: 'T1', trackingLink: null }] });
  rig.upstream.dispatch(closed);
  rig.upstream.close(closed);
  rig.upstream.createJob({ description: 'new' });
}

/** Every event as its type and job, sorted: what was said, whatever the order between jobs. */
async function said(rig: Rig): Promise<string[]> {
  return (await rig.fresh()).map(({ type, subject }) => `${type} ${subject ?? ''}`.trim()).sort();
}

async function sequences(rig: Rig): Promise<number[]> {
  const page = await rig.log.read(rig.ref, 0, 500);
  return page?.kind === 'events' ? page.events.map(({ sequence }) => sequence) : [];
}

describe('a poll that dies', () => {
  const writes = (call: string): boolean => call === 'write' || call === 'transact';

  async function story(dies: { readonly at: number; readonly when: 'before' | 'after' } | undefined) {
    let counting = false;
    let written = 0;
    const die = (when: 'before' | 'after') => (call: { call: string }) => {
      if (!counting || !writes(call.call)) return;
      if (when === 'before') written += 1;
      if (dies?.when === when && written === dies.at) throw new Error('killed');
    };
    const table = watchedTable(createMemoryTable(), { before: die('before'), after: die('after') });
    const rig = await createRig({ table });
    const jobs = Array.from({ length: 6 }, () => rig.upstream.createJob({ status: 'Scheduled' }));
    counting = true;
    const killed: unknown[] = [];
    const poll = () => rig.poll().catch((cause: unknown) => killed.push(cause));
    for (let at = 0; at < 3; at += 1) await poll();
    live(rig, jobs);
    for (let at = 0; at < 4; at += 1) await poll();
    return { said: await said(rig), sequences: await sequences(rig), written, killed: killed.length };
  }

  test('at any of its writes, before or right after it: the next polls say the same as if it had not', async () => {
    const whole = await story(undefined);
    expect(whole.killed).toBe(0);
    expect(whole.said.filter((event) => event.startsWith('job.dispatched'))).toHaveLength(2);
    expect(whole.written).toBeGreaterThan(8);
    for (let at = 1; at <= whole.written; at += 1) {
      for (const when of ['before', 'after'] as const) {
        const cut = await story({ at, when });
        expect(cut.killed, `${when} write ${at}`).toBe(1);
        expect(cut.said, `${when} write ${at}`).toEqual(whole.said);
        expect(cut.sequences).toEqual(cut.sequences.map((_, n) => n + 1));
      }
    }
  });
});

describe('two polls at once', () => {
  test('the one that began first and ends last writes nothing', async () => {
    const rig = await createRig();
    const jobs = Array.from({ length: 4 }, () => rig.upstream.createJob({ status: 'Scheduled' }));
    await rig.poll();
    await rig.fresh();
    const [job = 0] = jobs;
    rig.upstream.setStatus(job, 'In production');

    // The first has asked for the list, and its answer is held back until a second poll is through.
    let release = (): void => undefined;
    const asked = new Promise<void>((reached) => {
      rig.sandbox.onRequest = ({ operation }) => {
        if (operation !== 'activeJobs') return;
        rig.sandbox.onRequest = undefined;
        reached();
        return new Promise<void>((go) => {
          release = go;
        });
      };
    });
    const late = rig.poll();
    await asked;
    expect(await rig.poll()).toMatchObject({ outcome: 'complete' });
    rig.upstream.setStatus(job, 'Ready to ship');
    release();
    expect(await late).toMatchObject({ outcome: 'fenced' });
    expect(await said(rig)).toEqual([`job.status_changed jobs/${job}`]);
    // What only the late one saw is found by the next.
    await rig.poll();
    expect(await said(rig)).toEqual([`job.status_changed jobs/${job}`]);
    expect(await sequences(rig)).toEqual([1, 2, 3]);
  });
});

describe('a quiet poll of 5,000 jobs', () => {
  test('asks for 50 pages, reads Account, Status, the region and the index, and writes Status alone', async () => {
    const table = watchedTable(createMemoryTable());
    const rig = await createRig({ table });
    for (let n = 0; n < 5_000; n += 1) rig.upstream.createJob();
    await rig.poll();
    await rig.poll();
    await rig.fresh();
    table.calls.length = 0;
    expect(await rig.poll()).toMatchObject({ outcome: 'complete', pages: 50, requests: 50, events: 0 });
    expect(table.calls).toEqual([
      { call: 'get', of: ['ACCOUNTS'] },
      { call: 'get', of: ['STATUS'] },
      { call: 'get', of: ['CELL'] },
      { call: 'query', of: ['INDEX'] },
      { call: 'write', of: ['STATUS'] },
    ]);
  });
});
