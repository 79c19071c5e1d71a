/** Contract freedom: what the sandbox may do where the contract leaves it open, each over HTTP. */
import { describe, expect, it } from 'vitest';
import type { View } from '../../sandbox/http/traffic.ts';
import type { ActiveJobsPage } from '../../shared/ordering/contract/jobs.ts';
import { type Client, type Service, START, startService } from '../support/ordering-api.ts';

/** Starts a service whose views lag, and a way to let time pass. */
async function startLagging(lagSeconds: Partial<Record<View, number>>) {
  const service = await startService({ freedom: { lagSeconds } });
  const pass = (seconds: number) => {
    service.clock.now += seconds * 1000;
  };
  return { ...service, pass };
}

async function listedBy(us: Client, query: string): Promise<number[]> {
  const { json } = await us.get<ActiveJobsPage>(`/Jobs/active?${query}`);
  expect(json.totalCount).toBe(json.items.length);
  return json.items.map(({ jobNumber }) => jobNumber);
}

/** Changes settings through the control panel. */
async function setFreedom({ sandbox }: Pick<Service, 'sandbox'>, settings: unknown): Promise<Response> {
  return fetch(`${sandbox.adminUrl}/freedom`, { method: 'POST', body: JSON.stringify(settings) });
}

describe('lagSeconds', () => {
  it('shows each list view and the detail as it was that many seconds ago, each with its own lag', async () => {
    const { acme, us, pass } = await startLagging({ active: 60, detail: 120, search: 30 });
    pass(600);
    const created = acme.createJob({ jobNumber: 700_001, orderGroup: 'G1' });
    const queries: [query: string, seconds: number][] = [
      ['', 60],
      ['includeClosedJobs=true', 0],
      ['searchText=700001', 30],
      ['searchText=700001&includeClosedJobs=true', 30],
      ['orderGroup=G1', 0],
    ];
    for (let second = 0; second <= 150; second += 15) {
      for (const [query, lag] of queries) {
        expect(await listedBy(us, query), `${query} after ${second} s`).toEqual(
          second < lag ? [] : [created],
        );
      }
      expect((await us.get(`/Jobs/${created}`)).status, `${second} s`).toBe(second < 120 ? 404 : 200);
      pass(15);
    }
  });

  it('shows all fields of a job, its list and its place in a sort as of the same time', async () => {
    const { acme, us, pass } = await startLagging({ active: 60, detail: 60 });
    const [first, second] = [acme.createJob({ description: 'a' }), acme.createJob({ description: 'b' })];
    pass(600);
    const before = await us.get(`/Jobs/${first}`);
    const sorted = await listedBy(us, 'sortColumn=description&sortDirection=ASC');
    acme.edit(first, { description: 'z', orderNumber: 'PO-Z' });
    acme.setLineStatus(first, 0, 'Shipped');
    acme.dispatch(first, { tracking: [{ trackingNumber: '1Z', trackingLink: null }] });
    acme.close(second);
    acme.remove(second);
    pass(59);
    expect((await us.get(`/Jobs/${first}`)).json).toMatchObject({
      ...{ description: 'a', orderNumber: before.json.orderNumber, dateOut: null, shippingAddresses: [] },
      lines: before.json.lines.map(({ jobLineStatus }: { jobLineStatus: string }) => ({ jobLineStatus })),
    });
    expect(await listedBy(us, 'sortColumn=description&sortDirection=ASC')).toEqual(sorted);
    expect(await listedBy(us, '')).toEqual([second, first]);
    expect((await us.get(`/Jobs/${second}`)).status).toBe(200);
    pass(1);
    expect((await us.get(`/Jobs/${first}`)).json).toMatchObject({
      ...{ description: 'z', orderNumber: 'PO-Z', shippingAddresses: [{ trackingNumber: '1Z' }] },
      lines: [{ jobLineStatus: 'Shipped' }],
    });
    expect(await listedBy(us, '')).toEqual([first]);
    expect((await us.get(`/Jobs/${second}`)).status).toBe(404);
  });

  it('shows every version in turn when a job changes more often than the lag', async () => {
    const { acme, us, pass } = await startLagging({ detail: 30 });
    const job = acme.createJob({ description: 'v0' });
    pass(60);
    const shown: string[] = [];
    for (let version = 1; version <= 8; version++) {
      acme.edit(job, { description: `v${version}` });
      shown.push((await us.get(`/Jobs/${job}`)).json.description);
      pass(10);
    }
    expect(shown).toEqual(['v0', 'v0', 'v0', 'v1', 'v2', 'v3', 'v4', 'v5']);
  });

  it('shows a status lookup, and payments, as they were', async () => {
    const { acme, world, us, pass } = await startLagging({ statuses: 60, transactions: 60 });
    pass(600);
    world.renameStatus('us', 'Scheduled', 'Planned');
    world.addStatus('us', 'Scheduled', 'hold');
    const [payment] = acme.books.transactions;
    if (!payment) throw new Error('The account has no payment');
    const at = (ms: number) => new Date(START + ms).toISOString();
    acme.books.transactions.push({ ...payment, id: 1, createdAt: at(600_000), completedAt: at(610_000) });
    const names = async () =>
      (await us.get('/Lookups/job-statuses')).json.map(({ name }: { name: string }) => name);
    const paid = async () =>
      (await us.get('/account/transactions?sortBy=CreatedAt&pageSize=1')).json.entities[0];
    expect(await names()).not.toContain('Planned');
    expect((await paid()).id).not.toBe(1);
    pass(60);
    expect((await names()).slice(-1)).toEqual(['Scheduled']);
    expect(await names()).toContain('Planned');
    expect(await paid()).toMatchObject({ id: 1, transactionStatus: 'Pending', completedAt: null });
    pass(10);
    expect(await paid()).toMatchObject({ id: 1, transactionStatus: 'Completed', completedAt: at(610_000) });
  });

  it('can be changed while the sandbox runs, and through the control panel', async () => {
    const service = await startLagging({ active: 60 });
    const { acme, us, pass, sandbox } = service;
    pass(600);
    const job = acme.createJob();
    expect(await listedBy(us, '')).toEqual([]);
    sandbox.freedom.set({ lagSeconds: {} });
    expect(await listedBy(us, '')).toEqual([job]);
    expect((await setFreedom(service, { lagSeconds: { active: 60 } })).status).toBe(200);
    expect(await listedBy(us, '')).toEqual([]);
    await fetch(`${sandbox.adminUrl}/freedom`, { method: 'DELETE' });
    expect(await listedBy(us, '')).toEqual([job]);
    expect(await (await fetch(`${sandbox.adminUrl}/freedom`)).json()).toMatchObject({ lagSeconds: {} });
  });

  it('rejects an unknown view, a negative lag and an unknown setting with the name of the field', async () => {
    const service = await startService();
    for (const [settings, field] of [
      [{ lagSeconds: { lists: 5 } }, 'lagSeconds'],
      [{ lagSeconds: { active: -1 } }, 'lagSeconds.active'],
      [{ lag: 5 }, 'body'],
    ] as const) {
      const answer = await setFreedom(service, settings);
      expect(answer.status).toBe(400);
      const { errors } = (await answer.json()) as { errors: Record<string, string[]> };
      expect(Object.keys(errors)).toEqual([field]);
    }
  });

  it('answers PATCH and cancel from the current state: a change is visible only after the lag', async () => {
    const { acme, us, pass } = await startLagging({ detail: 60 });
    const job = acme.createJob({ description: 'old' });
    pass(600);
    expect((await us.patch(`/Jobs/${job}`, { description: 'new' })).json.description).toBe('new');
    expect((await us.get(`/Jobs/${job}`)).json.description).toBe('old');
    pass(60);
    expect((await us.get(`/Jobs/${job}`)).json.description).toBe('new');
  });

  it('drops versions that are older than the largest lag', async () => {
    const { acme, world, us, pass } = await startLagging({ detail: 30 });
    const job = acme.createJob({ description: 'v0' });
    for (let version = 1; version <= 5; version++) {
      pass(20);
      acme.edit(job, { description: `v${version}` });
    }
    expect(world.historyMs).toBe(30_000);
    pass(1);
    expect((await us.get(`/Jobs/${job}`)).json.description).toBe('v3');
    // v1 was in force then.
    expect(acme.jobDetail(job, START + 25_000)?.description).toBe('v3');
  });
});
