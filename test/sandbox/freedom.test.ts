/**
 * Contract freedom: behaviour of the sandbox that the contract permits without specifying it, each over HTTP. One file: the
 * tests share the readers of all views.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type FreedomSettings, freedomSchema } from '../../sandbox/http/freedom.ts';
import type { Spelling } from '../../sandbox/http/spelling.ts';
import { VIEWS, type View } from '../../sandbox/http/traffic.ts';
import { SandboxClock } from '../../sandbox/simulation/clock.ts';
import { startScenario } from '../../sandbox/simulation/scenario-file.ts';
import type { ActiveJob, ActiveJobsPage, Job } from '../../shared/ordering/contract/jobs.ts';
import { type Client, connectClient, type Service, START, startService } from '../support/ordering-api.ts';

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

  it('lists the accepted views if a view is unknown', async () => {
    const answer = await setFreedom(await startService(), { lagSeconds: { nope: 1 } });
    expect(await answer.text()).toContain(`lagSeconds has no view nope; it may have: ${VIEWS.join(', ')}.`);
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

  it('shows the moves of a scenario by the time at which they were due, however far the clock is advanced at once', async () => {
    const lists = async (freedom: FreedomSettings, secondsAtOnce: number[]) => {
      const clock = new SandboxClock({ startAt: START, stopped: true });
      const scenario = { accounts: [{ region: 'us' as const, jobs: 60 }], speed: 600, freedom };
      const sandbox = await startScenario(scenario, { port: 0, clock });
      onTestFinished(() => sandbox.stop());
      const [account] = sandbox.world.accounts('us');
      if (!account) throw new Error('The scenario has no account');
      const us = await connectClient(sandbox, account);
      const shown: unknown[] = [];
      for (const seconds of secondsAtOnce) {
        clock.advance(seconds * 1000);
        const { items } = (await us.get<ActiveJobsPage>('/Jobs/active?pageSize=100')).json;
        const [first] = items;
        shown.push(items, (await us.get<Job>(`/Jobs/${first?.jobNumber}`)).json.lines?.length);
      }
      return shown;
    };
    const lagging = await lists({ lagSeconds: { active: 90, detail: 90 } }, [150, 200, 200]);
    expect(lagging).toEqual(await lists({}, [60, 200, 200]));
  });

  it('shows the former name of a renamed status until the lag has passed, also of jobs that were not read before', async () => {
    const clock = new SandboxClock({ startAt: START, stopped: true });
    const sandbox = await startScenario(
      { accounts: [{ region: 'us', jobs: 60 }], freedom: { lagSeconds: { active: 60 } } },
      { port: 0, clock },
    );
    onTestFinished(() => sandbox.stop());
    const [account] = sandbox.world.accounts('us');
    if (!account) throw new Error('The scenario has no account');
    const us = await connectClient(sandbox, account);
    sandbox.world.renameStatus('us', 'In production', 'Pressing');
    const { items } = (await us.get<ActiveJobsPage>('/Jobs/active?pageSize=100')).json;
    const statuses = items.map(({ masterJobStatus }) => masterJobStatus);
    expect(statuses).toContain('In production');
    expect(statuses).not.toContain('Pressing');
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

/** Starts a service with jobs that have a value in every field. */
async function startFilled(freedom: FreedomSettings, count = 40) {
  const service = await startService({ freedom });
  const { acme } = service;
  const jobs = Array.from({ length: count }, (_, index) =>
    acme.createJob({
      ...{ orderGroup: `G${index}`, orderGroupSequence: 1, comments: 'none', invoiceNumber: 'INV' },
      ...{
        dateDue: START + 86_400_000,
        dateOut: START,
        tracking: [{ trackingNumber: '1Z', trackingLink: 'https://t.example/1Z' }],
      },
    }),
  );
  const list = async (query = '') =>
    (await service.us.get<ActiveJobsPage>(`/Jobs/active?pageSize=100${query}`)).json.items;
  const detail = async (jobNumber = jobs[0]) => (await service.us.get<Job>(`/Jobs/${jobNumber}`)).json;
  return { ...service, jobs, list, detail };
}

describe('nulls', () => {
  it('nulls exactly the nullable fields, of lists and details alike', async () => {
    const { list, detail } = await startFilled({ nulls: { share: 1 } }, 2);
    const [entry] = await list();
    expect(
      Object.entries(entry ?? {})
        .filter(([, value]) => value !== null)
        .map(([name]) => name),
    ).toEqual(['jobNumber', 'mustDate']);
    const job = await detail();
    expect(
      Object.entries(job)
        .filter(([, value]) => value !== null)
        .map(([name]) => name),
    ).toEqual([...['jobNumber', 'dateDue', 'mustDate', 'isCancelable', 'customerId']]);
  });

  it('chooses per job, view and field, the same in every answer of a seed', async () => {
    const { list, detail, jobs, sandbox } = await startFilled({ nulls: { share: 0.5 } });
    const countNulls = (entries: readonly ActiveJob[]) =>
      entries.map((entry) =>
        JSON.stringify(entry, (name, value) => (name === 'shippedDaysToProcess' ? 0 : value)),
      );
    const first = countNulls(await list());
    expect(countNulls(await list())).toEqual(first);
    // Another view has other nulls.
    expect(countNulls(await list('&includeClosedJobs=true'))).not.toEqual(first);
    expect((await detail()).lines?.length ?? null).toBe((await detail()).lines?.length ?? null);
    const groups = (await list())
      .map(({ orderGroup }) => orderGroup)
      .filter((group) => group === null).length;
    expect(groups).toBeGreaterThan(jobs.length / 5);
    expect(groups).toBeLessThan((jobs.length * 4) / 5);
    sandbox.freedom.set({ seed: 2 });
    expect(countNulls(await list())).not.toEqual(first);
  });

  it('a detail can lack what the list has', async () => {
    const { list, detail, jobs } = await startFilled({ nulls: { share: 0.5 } });
    const entries = await list();
    const details = await Promise.all(jobs.map((jobNumber) => detail(jobNumber)));
    const differ = details.filter(
      ({ jobNumber, orderGroup }) =>
        orderGroup === null && entries.find((entry) => entry.jobNumber === jobNumber)?.orderGroup != null,
    );
    expect(differ.length).toBeGreaterThan(0);
  });

  it('can be restricted to fields of all views or of one, and omit fields instead', async () => {
    const { list, detail, sandbox, us } = await startFilled(
      { nulls: { fields: { 'detail.location.timezone': 1, orderGroup: 1 } } },
      1,
    );
    expect((await detail()).location).toEqual({ name: 'Denver', timezone: null });
    expect((await list())[0]).toMatchObject({ orderGroup: null, orderGroupSequence: 1 });
    sandbox.freedom.set({ nulls: { fields: { 'detail.permissions': 1 }, omitted: 1 } });
    const headers = { authorization: `Bearer ${us.token}` };
    const answer = await fetch(`${sandbox.apiUrl('us')}/Jobs/410001`, { headers });
    const job = (await answer.json()) as Partial<Job>;
    expect('permissions' in job).toBe(false);
    expect('orderGroup' in job).toBe(true);
  });
});

describe('spelling', () => {
  const due = '2026-11-25T00:00:00-07:00';
  it.each<[styles: Spelling[], spelled: string, midnight: string]>([
    [['noSeconds'], '2026-11-20T09:14-07:00', '2026-11-25T00:00-07:00'],
    [['milliseconds'], '2026-11-20T09:14:00.000-07:00', '2026-11-25T00:00:00.000-07:00'],
    [['sevenDigits'], '2026-11-20T09:14:00.0000000-07:00', '2026-11-25T00:00:00.0000000-07:00'],
    [['space'], '2026-11-20 09:14:00-07:00', '2026-11-25 00:00:00-07:00'],
    [['dateOnly'], '2026-11-20T09:14:00-07:00', '2026-11-25'],
    [['utc'], '2026-11-20T16:14:00Z', '2026-11-25T07:00:00Z'],
    [['noOffset'], '2026-11-20T09:14:00', '2026-11-25T00:00:00'],
    [['noOffset', 'noSeconds', 'space'], '2026-11-20 09:14', '2026-11-25 00:00'],
  ])('writes every timestamp as %s: %s, and a midnight as %s', async (styles, spelled, midnight) => {
    const { acme, us } = await startService({ freedom: { spelling: { styles, share: 1 } } });
    const job = acme.createJob({ dateDue: due });
    acme.dispatch(job);
    const { json } = await us.get<Job>(`/Jobs/${job}`);
    expect([json.dateIn, json.dateOut, json.dateDue]).toEqual([spelled, spelled, midnight]);
    const { items } = (await us.get<ActiveJobsPage>('/Jobs/active')).json;
    expect(items[0]).toMatchObject({ dateOut: spelled, dateDue: midnight });
  });

  it('chooses the spelling anew for each answer, reproducibly from the seed', async () => {
    const spellings = async (seed: number) => {
      const { detail } = await startFilled({ seed, spelling: { styles: ['noSeconds', 'space', 'utc'] } }, 1);
      const dates: (string | null)[] = [];
      for (let answer = 0; answer < 20; answer++) dates.push((await detail()).dateIn);
      return dates;
    };
    const first = await spellings(1);
    expect(new Set(first).size).toBeGreaterThan(3);
    expect(new Set(first.map((text) => Date.parse(String(text)))).size).toBe(1);
    expect(await spellings(1)).toEqual(first);
    expect(await spellings(2)).not.toEqual(first);
  });

  it('writes null timestamps as year 0001, in the spelling of the answer', async () => {
    const { acme, us } = await startService({
      freedom: { spelling: { placeholders: 1, styles: ['dateOnly'], share: 1 } },
    });
    const job = acme.createJob();
    expect((await us.get<Job>(`/Jobs/${job}`)).json.dateOut).toBe('0001-01-01');
    expect((await us.get<ActiveJobsPage>('/Jobs/active')).json.items[0]?.dateOut).toBe('0001-01-01');
  });
});

describe('clockSkewMinutes', () => {
  it('dates creations, dispatches and answers by a clock that is ahead or behind', async () => {
    for (const minutes of [10, -90]) {
      const { acme, us, sandbox } = await startService();
      const early = acme.createJob();
      sandbox.freedom.set({ clockSkewMinutes: minutes });
      const job = acme.createJob();
      acme.dispatch(job);
      const answer = await us.get<Job>(`/Jobs/${job}`);
      const skewed = START + minutes * 60_000;
      expect([answer.json.dateIn, answer.json.dateOut].map((text) => Date.parse(String(text)))).toEqual([
        skewed,
        skewed,
      ]);
      expect(Date.parse(String(answer.headers.get('date')))).toBe(skewed);
      expect(Date.parse(String((await us.get<Job>(`/Jobs/${early}`)).json.dateIn))).toBe(START);
      acme.correctDateOut(job, '2026-11-20T10:00:00-07:00');
      expect((await us.get<Job>(`/Jobs/${job}`)).json.dateOut).toBe('2026-11-20T10:00:00-07:00');
    }
  });
});

describe('statuses', () => {
  it('mixes the former and the current name of a status in the answers while a rename spreads', async () => {
    const rename = { region: 'us', former: 'Scheduled', current: 'Planned', share: 0.5 } as const;
    const { list, detail, jobs, acme, us, sandbox } = await startFilled({ statuses: { renames: [rename] } });
    for (const job of jobs) acme.setStatus(job, 'Scheduled');
    await fetch(`${sandbox.adminUrl}/scheduled-changes`, {
      method: 'POST',
      body: JSON.stringify({ do: 'renameStatus', region: 'us', name: 'Scheduled', newName: 'Planned' }),
    });
    const names = async () => (await list()).map(({ masterJobStatus }) => masterJobStatus);
    expect(new Set(await names())).toEqual(new Set(['Scheduled', 'Planned']));
    expect(await names()).not.toEqual(await names());
    const shown = new Set<string | null>();
    for (let answer = 0; answer < 20; answer++) shown.add((await detail()).jobStatus);
    expect(shown).toEqual(new Set(['Scheduled', 'Planned']));
    const lookup = async () =>
      (await us.get('/Lookups/job-statuses')).json.map(({ name }: { name: string }) => name);
    expect(await lookup()).not.toContain('Scheduled');
    sandbox.freedom.set({ statuses: { renames: [{ ...rename, share: 1, views: ['statuses'] }] } });
    expect(await lookup()).not.toContain('Planned');
    expect(new Set(await names())).toEqual(new Set(['Planned']));
    // A former name that returns as a new status.
    sandbox.freedom.set({ statuses: {} });
    acme.world.addStatus('us', 'Scheduled', 'hold');
    expect(await lookup()).toEqual(expect.arrayContaining(['Scheduled', 'Planned']));
  });

  it('answers the status lookup empty, or with 500', async () => {
    const { us, sandbox } = await startService({ freedom: { statuses: { lookup: 'empty' } } });
    expect((await us.get('/Lookups/job-statuses')).json).toEqual([]);
    sandbox.freedom.set({ statuses: { lookup: 'error' } });
    expect((await us.get('/Lookups/job-statuses')).status).toBe(500);
    sandbox.freedom.clear();
    expect((await us.get('/Lookups/job-statuses')).json).toHaveLength(11);
  });
});

describe('records', () => {
  it('a detail answers 500 or 403 permanently, while lists have the job', async () => {
    const { acme, us, list, sandbox, jobs } = await startFilled({}, 3);
    const [broken, forbidden, fine] = jobs as [number, number, number];
    sandbox.freedom.set({
      records: [
        { region: 'us', jobNumber: broken, detail: 'error' },
        { region: 'us', jobNumber: forbidden, detail: 'forbidden' },
      ],
    });
    const headers = { authorization: `Bearer ${us.token}` };
    const status = async (job: number) =>
      (await fetch(`${sandbox.apiUrl('us')}/Jobs/${job}`, { headers })).status;
    for (let time = 0; time < 2; time++) {
      expect([await status(broken), await status(forbidden), await status(fine)]).toEqual([500, 403, 200]);
    }
    expect(await list()).toHaveLength(acme.activeCount);
  });

  it('a detail is larger than 250 kB, while its list entry is not', async () => {
    const { list, detail, sandbox, jobs } = await startFilled({}, 1);
    const [jobNumber = 0] = jobs;
    sandbox.freedom.set({ records: [{ region: 'us', jobNumber, descriptionLength: 300_000 }] });
    expect((await detail()).description).toHaveLength(300_000);
    expect((await list())[0]?.description?.length).toBeLessThan(100);
  });

  it.each([-5, 0, 9_007_199_254_740_991])('a list has an entry with the job number %i', async (listedAs) => {
    const { list, sandbox, jobs } = await startFilled({}, 2);
    const [first = 0, second = 0] = jobs;
    sandbox.freedom.set({ records: [{ region: 'us', jobNumber: first, listedAs }] });
    expect((await list()).map(({ jobNumber }) => jobNumber)).toEqual([second, listedAs]);
  });

  it('the numbers of further jobs begin with the given number, also if all numbers of their length are used', async () => {
    const { acme } = await startService();
    for (let count = 0; count < 3; count++) acme.createPrefixed(41, 10);
    const numbers = acme.activeJobNumbers();
    expect(numbers).toHaveLength(30);
    expect(numbers.filter((number) => !String(number).startsWith('41'))).toEqual([]);
  });

  it('a job number is a prefix of more than 1,000 others, on all pages of its search', async () => {
    const { acme, us, sandbox } = await startService();
    const job = acme.createJob({ jobNumber: 41 });
    const answer = await fetch(`${sandbox.adminUrl}/jobs/us/41/prefix`, {
      method: 'POST',
      body: JSON.stringify({ count: 1200 }),
    });
    expect(answer.status).toBe(200);
    const { json } = await us.get<ActiveJobsPage>('/Jobs/active?searchText=41&pageSize=100');
    expect(json).toMatchObject({ totalCount: 1201, totalPages: 13 });
    const last = (await us.get<ActiveJobsPage>('/Jobs/active?searchText=41&pageSize=100&page=13')).json.items;
    expect(last.at(-1)?.jobNumber).toBe(job);
    expect(acme.createJob()).toBeLessThan(1_000_000);
  });
});

describe('throttled', () => {
  it('sends Retry-After to one kind of request only', async () => {
    const { acme, us, sandbox } = await startService({
      freedom: { throttled: { search: { retryAfterSeconds: 30 } } },
    });
    const job = acme.createJob();
    const headers = { authorization: `Bearer ${us.token}` };
    const search = await fetch(`${sandbox.apiUrl('us')}/Jobs/active?searchText=${job}`, { headers });
    expect([search.status, search.headers.get('retry-after')]).toEqual([429, '30']);
    for (const path of [
      '/Jobs/active',
      `/Jobs/active?searchText=${job}&includeClosedJobs=true`,
      `/Jobs/${job}`,
    ]) {
      expect((await us.get(path)).status).toBe(200);
    }
  });

  it('a fault rule can select one view', async () => {
    const { acme, us, sandbox } = await startService();
    const job = acme.createJob();
    sandbox.faults.add({ match: { view: 'closed' }, fault: { kind: 'emptyList' } });
    expect(await listedBy(us, 'includeClosedJobs=true')).toEqual([]);
    expect(await listedBy(us, '')).toEqual([job]);
  });
});

describe('docs/sandbox.md', () => {
  const docs = readFileSync('docs/sandbox.md', 'utf8');

  it('has a valid example of the settings', () => {
    const [, example = ''] = /\$PANEL\/freedom -d '([^']*)'/.exec(docs) ?? [];
    expect(Object.keys(JSON.parse(example)).sort()).toEqual(Object.keys(freedomSchema.shape).sort());
    expect(freedomSchema.safeParse(JSON.parse(example)).success).toBe(true);
  });

  it('describes every setting', () => {
    for (const name of Object.keys(freedomSchema.shape)) expect(docs).toContain(`| \`${name}\` | `);
  });
});
