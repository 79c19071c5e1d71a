/**
 * Jobs in list and detail, amending and cancelling, and dispatch dates: the contract, row by row.
 * One file: its tests share the jobs of one service.
 */
import * as fc from 'fast-check';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { createScenario } from '../../sandbox/simulation/scenario.ts';
import { earliestShipDate, listDeliveryOptions, listLocations } from '../../sandbox/world/delivery.ts';
import { addDays, isDayOff } from '../../sandbox/world/holidays.ts';
import type { Role, TrackingEntry, WorldOptions } from '../../sandbox/world/records.ts';
import type { HolidayCalendar, RegionCode } from '../../sandbox/world/regions.ts';
import type { ActiveJobDto, JobDto } from '../../sandbox/world/views.ts';
import { createWorld, type SandboxAccount } from '../../sandbox/world/world.ts';
import type { DeliveryOption, ShipDate } from '../../shared/ordering/contract/jobs.ts';
import { ActiveJob, JobDetail } from '../../shared/ordering/schemas.ts';
import { START, startService } from '../support/ordering-api.ts';
import { runs } from '../support/runs.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  instance: string;
  errors?: Record<string, string[]>;
}

interface Page {
  items: ActiveJobDto[];
  totalCount: number;
  totalPages: number;
  hasNextPage: boolean;
}

afterEach(() => {
  vi.restoreAllMocks();
});

function fail(): never {
  throw new Error('There is none');
}

/** A sandbox with all kinds of callers and a stopped clock. */
async function start(worldOptions: WorldOptions = {}) {
  const clock = { now: START };
  const world = createWorld({ now: () => clock.now, ...worldOptions });
  const service = await startService({ world });
  const login = async (account: SandboxAccount, role: Role = 'user') => {
    const client = await service.as(role, account);
    return {
      ...client,
      get: <T = Page>(path: string) => client.get<T>(path),
      /** The job numbers that a query to the active list finds, in its order. */
      list: async (query = 'pageSize=100') =>
        (await client.get<Page>(`/Jobs/active?${query}`)).json.items.map(({ jobNumber }) => jobNumber),
      job: async (jobNumber: number) => (await client.get<JobDto>(`/Jobs/${jobNumber}`)).json,
      entry: async (jobNumber: number) => {
        const { json } = await client.get<Page>('/Jobs/active?pageSize=100&includeClosedJobs=true');
        return json.items.find((item) => item.jobNumber === jobNumber);
      },
    };
  };
  return { clock, world, acme: service.acme, login, client: await login(service.acme) };
}

describe('the active list', () => {
  test('GET /Jobs/active 200 · ActiveJobDto · permissions, jobNumber, masterJobStatus, originCode, description, mustDate, dateDue, dateOut, shippedDaysToProcess, orderNumber, orderGroup, orderGroupSequence, tracking: an entry has exactly these fields', async () => {
    const { acme, client } = await start();
    const jobNumber = acme.createJob({
      masterJobStatus: 'In production',
      jobStatus: 'Printing',
      description: 'Left chest',
      orderNumber: 'PO-1',
      originCode: 'WEB',
      orderGroup: 'G1',
      orderGroupSequence: 2,
      mustDate: true,
      dateDue: '2026-11-25T00:00:00-07:00',
      tracking: [{ trackingNumber: 'T1', trackingLink: null }],
    });
    expect((await client.get('/Jobs/active')).json.items).toEqual([
      {
        permissions: { canEdit: true, lockedReason: null },
        jobNumber,
        masterJobStatus: 'In production',
        originCode: 'WEB',
        description: 'Left chest',
        mustDate: true,
        dateDue: '2026-11-25T00:00:00-07:00',
        dateOut: null,
        // 20 Nov 16:14Z to the end of 25 Nov in Denver.
        shippedDaysToProcess: -5.62,
        orderNumber: 'PO-1',
        orderGroup: 'G1',
        orderGroupSequence: 2,
        tracking: [{ trackingNumber: 'T1', trackingLink: null }],
      },
    ]);
  });

  test('activeJobs · page, pageSize: without them the list starts with the 20 newest', async () => {
    const { acme, client } = await start();
    const numbers = Array.from({ length: 25 }, () => acme.createJob());
    expect(await client.list('')).toEqual(numbers.reverse().slice(0, 20));
  });

  test('ActiveJobsPage · items, totalCount, pageNumber, pageSize, totalPages, hasPreviousPage, hasNextPage: are consistent for any number of jobs, page and page size', async () => {
    const { acme, client } = await start();
    let count = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 0, max: 7 }),
        fc.integer({ min: 1, max: 12 }),
        fc.integer({ min: 1, max: 100 }),
        async (more, page, pageSize) => {
          for (let n = 0; n < more; n++) acme.createJob();
          count += more;
          const reply = await client.get(`/Jobs/active?page=${page}&pageSize=${pageSize}`);
          const before = (page - 1) * pageSize;
          const { items, ...envelope } = reply.json;
          expect(envelope).toEqual({
            totalCount: count,
            pageNumber: page,
            pageSize,
            totalPages: Math.ceil(count / pageSize),
            hasPreviousPage: page > 1,
            hasNextPage: before + pageSize < count,
          });
          expect(items).toHaveLength(Math.max(0, Math.min(pageSize, count - before)));
        },
      ),
      runs(15, 40),
    );
  });

  test('the pages of 20,000 jobs contain each of them once, and serialize each once', async () => {
    const { acme, client } = await start();
    const numbers = Array.from({ length: 20_000 }, () => acme.createJob());
    const read = async () => {
      const seen: number[] = [];
      for (let page = 1; page <= 200; page++) seen.push(...(await client.list(`page=${page}&pageSize=100`)));
      return seen;
    };
    expect(await read()).toEqual(numbers.toReversed());

    const stringify = vi.spyOn(JSON, 'stringify');
    await client.get('/Jobs/active?page=200&pageSize=100');
    expect(stringify).not.toHaveBeenCalled();
    acme.setStatus(numbers[0] ?? 0, 'Elsewhere');
    await client.get('/Jobs/active?page=200&pageSize=100');
    expect(stringify).toHaveBeenCalledTimes(1);
  });

  test('a change of a job is in its views at once', async () => {
    const { acme, client } = await start();
    const job = acme.createJob();
    await client.entry(job);
    acme.edit(job, { description: 'Other', orderNumber: null, orderGroup: 'G', mustDate: true });
    expect(await client.entry(job)).toMatchObject({
      description: 'Other',
      orderNumber: null,
      orderGroup: 'G',
      mustDate: true,
    });
  });

  test.each([
    ['page', 'page=0'],
    ['page', 'page=-1'],
    ['page', 'page=x'],
    ['page', 'page='],
    ['page', 'page=1.5'],
    ['pageSize', 'pageSize=0'],
    ['pageSize', 'pageSize=101'],
    ['pageSize', 'pageSize=many'],
    ['excludeJobNumber', 'excludeJobNumber=abc'],
    ['includeClosedJobs', 'includeClosedJobs=maybe'],
    ['sortColumn', 'sortColumn=comments'],
    ['sortDirection', 'sortDirection=up'],
    ['customerUserId', 'customerUserId=1.0'],
    ['customerUserId', 'customerUserId=1'],
  ])('GET /Jobs/active 400: an invalid %s is rejected by name: %s', async (field, query) => {
    const { client } = await start();
    const { status, headers, json: problem } = await client.get<Problem>(`/Jobs/active?${query}`);
    expect(status).toBe(400);
    expect(headers.get('content-type')).toContain('application/problem+json');
    expect(problem).toMatchObject({ status: 400, instance: '/us/api/Jobs/active' });
    expect(Object.keys(problem.errors ?? {})).toEqual([field]);
    expect(problem.errors?.[field]).toEqual([expect.any(String)]);
  });

  test('unknown parameters are ignored', async () => {
    const { acme, client } = await start();
    const job = acme.createJob();
    expect(await client.list('filter=zzz&searchtext=zzz')).toEqual([job]);
  });

  test('activeJobs · excludeJobNumber: excludes one job, in the totals too', async () => {
    const { acme, client } = await start();
    const [a = 0, b = 0] = [acme.createJob(), acme.createJob()];
    expect(await client.list(`excludeJobNumber=${a}`)).toEqual([b]);
    expect((await client.get(`/Jobs/active?excludeJobNumber=${a}`)).json.totalCount).toBe(1);
    expect(await client.list('excludeJobNumber=1')).toEqual([b, a]);
  });

  test('activeJobs · orderGroup, sortColumn, sortDirection: a group is matched exactly, by default in sequence order', async () => {
    const { acme, client } = await start();
    const [second = 0, third = 0, first = 0] = [2, 3, 1].map((orderGroupSequence) =>
      acme.createJob({ orderGroup: 'WEB-7', orderGroupSequence }),
    );
    acme.createJob({ orderGroup: 'WEB-77', orderGroupSequence: 1 });
    acme.createJob();
    expect(await client.list('orderGroup=WEB-7')).toEqual([first, second, third]);
    expect(await client.list('orderGroup=WEB-7&sortDirection=desc')).toEqual([third, second, first]);
    expect(await client.list('orderGroup=WEB-7&sortColumn=jobNumber')).toEqual([first, third, second]);
    expect(await client.list('orderGroup=WEB-8')).toEqual([]);
    acme.close(second);
    expect(await client.list('orderGroup=WEB-7')).toEqual([first, third]);
    expect(await client.list('orderGroup=WEB-7&includeClosedJobs=true')).toEqual([first, second, third]);
  });

  test('activeJobs · customerUserId: filters list and totals by user; a user of another customer is rejected', async () => {
    const { world, acme, client } = await start();
    const stranger = world.addAccount({ region: 'us', name: 'stranger' });
    const [first, second] = acme.users;
    const other = acme.createJob({ userId: first?.id });
    const job = acme.createJob({ userId: second?.id });
    expect(await client.list(`customerUserId=${first?.id}`)).toEqual([other]);
    const { json: page } = await client.get(`/Jobs/active?customerUserId=${second?.id}&pageSize=1`);
    expect(page).toMatchObject({ totalCount: 1, totalPages: 1, hasNextPage: false });
    expect(page.items.map(({ jobNumber }) => jobNumber)).toEqual([job]);
    expect((await client.get(`/Jobs/active?customerUserId=${stranger.users[0]?.id}`)).status).toBe(400);
  });

  test('activeJobs · sortColumn, sortDirection: sorts the list by each of its fields', async () => {
    const { acme, client } = await start();
    const b = acme.createJob({ orderNumber: 'b', dateDue: START + 2 * DAY, mustDate: true, status: 'S2' });
    const none = acme.createJob({ orderNumber: null, dateDue: null, status: 'S1' });
    // Earlier as a time, later as text.
    const a = acme.createJob({ orderNumber: 'A', dateDue: '2026-11-23T01:00:00+13:00', status: 'S3' });
    const sorted = (column: string, direction?: string) =>
      client.list(`sortColumn=${column}${direction ? `&sortDirection=${direction}` : ''}`);
    expect(await sorted('orderNumber', 'Ascending')).toEqual([none, a, b]);
    expect(await sorted('orderNumber')).toEqual([b, a, none]);
    expect(await sorted('DATEDUE', 'asc')).toEqual([none, a, b]);
    expect(await sorted('masterJobStatus', 'DESC')).toEqual([a, b, none]);
    expect(await sorted('mustDate', 'Descending')).toEqual([b, a, none]);
    expect(await sorted('jobNumber', 'ascending')).toEqual([b, none, a]);
    expect(await sorted('shippedDaysToProcess', 'ascending')).toEqual([none, b, a]);
  });

  test('a list sorted by days from the due date follows the clock', async () => {
    const { acme, client, clock } = await start();
    const shipped = acme.createJob({ dateDue: START + DAY, dateOut: START });
    const waiting = acme.createJob({ dateDue: START + 2 * DAY });
    const sorted = () => client.list('sortColumn=shippedDaysToProcess&sortDirection=asc');
    expect(await sorted()).toEqual([waiting, shipped]);
    clock.now += 3 * DAY;
    expect(await sorted()).toEqual([shipped, waiting]);
  });

  test('a sorted or filtered list follows every change', async () => {
    const { acme, client } = await start();
    const a = acme.createJob({ description: 'alpha x' });
    const b = acme.createJob({ description: 'beta x' });
    const query = 'sortColumn=description&sortDirection=asc&searchText=x';
    await client.list(query);
    acme.edit(b, { description: 'aardvark x' });
    expect(await client.list(query)).toEqual([b, a]);
    acme.edit(a, { description: 'zebra' });
    expect(await client.list(query)).toEqual([b]);
  });
});

describe('searchText', () => {
  test('activeJobs · searchText: finds the jobs of a delivery option by its code and by its label, and every job of a scenario has one', async () => {
    const { world, acme, client } = await start();
    createScenario({ world, startAt: world.now(), jobsPerAccount: 60 });
    const found = new Set<number>();
    for (const { code, label, isCollection } of listDeliveryOptions('us')) {
      const ordered = acme.createJob({ deliveryOption: label });
      const called = acme.createJob({ deliveryOption: code });
      const finds = (text: string | null) =>
        client.list(`pageSize=100&includeClosedJobs=true&searchText=${encodeURIComponent(text ?? '')}`);
      const byLabel = await finds(label);
      expect(byLabel).toEqual(expect.arrayContaining([ordered, called]));
      expect(await finds(code), 'code and label find the same').toEqual(byLabel);
      expect(byLabel.length, 'some of the scenario').toBeGreaterThan(2);
      if (isCollection) for (const job of byLabel) expect(acme.job(job)?.tracking).toEqual([]);
      for (const job of byLabel) found.add(job);
    }
    const listed = acme.listJobs({ page: 1, pageSize: 1, includeClosedJobs: true });
    expect(found.size).toBe(listed.totalCount);
  });

  test('activeJobs · searchText: each term must be the start of a term in some searched field, in any order and case', async () => {
    const { acme, client } = await start();
    const job = acme.createJob({
      jobNumber: 555_123,
      orderNumber: 'PO-4411',
      description: 'Left Chest Logo',
      comments: 'secretword',
      originCode: 'webshop',
      client: 'Bluebird Apparel',
      tags: ['rush', 'sample pack'],
      deliveryOption: 'Overnight Express',
      location: { name: 'Denver', timezone: 'America/Denver' },
      lines: [{ gang: 'G77', assetSku: 'AS900', garment: "Kōwhai Tee, 'black'", description: 'hiddenline' }],
    });
    acme.createJob({ description: 'decoy', client: 'decoy', location: null, lines: [], orderNumber: null });
    const finds = async (text: string) =>
      (await client.list(`searchText=${encodeURIComponent(text)}`)).includes(job);

    for (const text of [
      '555123',
      '5551',
      'PO-4411',
      'po-4',
      '4411',
      'left',
      'LOGO chest',
      'chest   left blue',
      'blueb',
      'app',
      'rush',
      'pack',
      'sample',
      'overn',
      'den',
      'g7',
      'as9',
      'kōw',
      'black',
      '5551 po- rush tee',
    ]) {
      expect([text, await finds(text)]).toEqual([text, true]);
    }
    for (const text of [
      '55123',
      'hest',
      'logos',
      'left right',
      'secretword',
      'webshop',
      'hiddenline',
      'O-44',
      '55512 99',
      '5551234',
    ]) {
      expect([text, await finds(text)]).toEqual([text, false]);
    }
  });

  test('an empty or blank text matches everything', async () => {
    const { acme, client } = await start();
    const job = acme.createJob();
    expect(await client.list('searchText=')).toEqual([job]);
    expect(await client.list('searchText=%20%20')).toEqual([job]);
  });

  test('a job number is a prefix like any other: the search can match others and need several pages', async () => {
    const { acme, client } = await start();
    const wanted = acme.createJob({ jobNumber: 700_000 });
    for (let n = 0; n < 30; n++) acme.createJob({ orderNumber: `700000-${n}` });
    const first = (await client.get('/Jobs/active?searchText=700000')).json;
    expect(first).toMatchObject({ totalCount: 31, totalPages: 2, hasNextPage: true });
    expect(first.items.some(({ jobNumber }) => jobNumber === wanted)).toBe(false);
    expect(await client.list('searchText=700000&page=2')).toContain(wanted);
  });

  test('closed jobs are searched only on request', async () => {
    const { acme, client } = await start();
    const job = acme.createJob();
    acme.close(job);
    expect(await client.list(`searchText=${job}`)).toEqual([]);
    expect(await client.list(`searchText=${job}&includeClosedJobs=true`)).toEqual([job]);
  });
});

describe('which jobs are listed', () => {
  const both = async (client: Awaited<ReturnType<typeof start>>['client']) => ({
    active: await client.list(),
    withClosed: await client.list('pageSize=100&includeClosedJobs=true'),
  });

  test('activeJobs · includeClosedJobs: a dispatched job stays in the active list until it is closed, then only this lists it', async () => {
    const { acme, client } = await start();
    const job = acme.createJob();
    acme.dispatch(job);
    expect(await both(client)).toEqual({ active: [job], withClosed: [job] });
    acme.close(job);
    expect(await both(client)).toEqual({ active: [], withClosed: [job] });
    acme.reopen(job);
    expect(await both(client)).toEqual({ active: [job], withClosed: [job] });
  });

  test('with leavesListOnDispatch a dispatched job counts as closed until it is reopened', async () => {
    const { acme, client } = await start({ leavesListOnDispatch: true });
    const job = acme.createJob();
    acme.dispatch(job);
    expect(await both(client)).toEqual({ active: [], withClosed: [job] });
    acme.clearDateOut(job);
    expect(await both(client)).toEqual({ active: [job], withClosed: [job] });
    acme.dispatch(job);
    acme.reopen(job);
    expect(await both(client)).toEqual({ active: [job], withClosed: [job] });
  });

  test('activeJobs · includeClosedJobs: a cancelled job is in no list, while its detail still answers', async () => {
    const { acme, client } = await start();
    const job = acme.createJob();
    acme.cancel(job);
    expect(await both(client)).toEqual({ active: [], withClosed: [] });
    expect(await client.job(job)).toMatchObject({ jobStatus: 'Canceled', permissions: { canEdit: false } });
  });

  test('a hidden job disappears from every list and is unchanged in detail', async () => {
    const { acme, client } = await start();
    const job = acme.createJob();
    const before = await client.job(job);
    acme.hide(job);
    expect(await both(client)).toEqual({ active: [], withClosed: [] });
    expect(await client.job(job)).toEqual(before);
    acme.unhide(job);
    expect(await both(client)).toEqual({ active: [job], withClosed: [job] });
  });

  test('a removed job answers like one that never existed', async () => {
    const { acme, client } = await start();
    const job = acme.createJob();
    acme.remove(job);
    expect(await both(client)).toEqual({ active: [], withClosed: [] });
    expect((await client.get(`/Jobs/${job}`)).status).toBe(404);
    expect(() => acme.setStatus(job, 'x')).toThrow(`acme has no job ${job}`);
  });

  test("GET /Jobs/{jobNumber} 404: another account's job answers like one that does not exist", async () => {
    const { login, world, acme, client } = await start();
    const other = world.addAccount({ region: 'us', name: 'other' });
    const otherClient = await login(other);
    const mine = acme.createJob();
    const theirs = other.createJob();
    const mineToo = acme.createJob();
    expect([theirs, mineToo]).toEqual([mine + 1, mine + 2]);
    expect(await client.list()).toEqual([mineToo, mine]);
    expect(await otherClient.list()).toEqual([theirs]);
    expect(await client.list(`searchText=${theirs}&includeClosedJobs=true`)).toEqual([]);

    const foreign = await client.get(`/Jobs/${theirs}`);
    const absent = await client.get('/Jobs/999999999');
    expect(foreign.status).toBe(404);
    expect(foreign.text.replaceAll(String(theirs), '#')).toBe(absent.text.replaceAll('999999999', '#'));
  });

  test('two regions can have the same job number, for different jobs', async () => {
    const { world, acme, client, login } = await start();
    const kiwi = world.addAccount({ region: 'nz', name: 'kiwi' });
    const jobNumber = acme.createJob({ description: 'here' });
    kiwi.createJob({ jobNumber, description: 'there' });
    expect((await client.job(jobNumber)).description).toBe('here');
    expect((await (await login(kiwi)).job(jobNumber)).description).toBe('there');
    expect(() => acme.createJob({ jobNumber })).toThrow('exists in us already');
  });

  test('job numbers increase, past skipped and given ones', async () => {
    const { world, acme } = await start();
    const first = acme.createJob();
    world.skipJobNumbers('us', 5);
    expect(acme.createJob()).toBe(first + 6);
    acme.createJob({ jobNumber: first + 100 });
    acme.createJob({ jobNumber: first + 50 });
    expect(acme.createJob()).toBe(first + 101);
    expect(acme.activeJobNumbers()).toEqual([first, first + 6, first + 50, first + 100, first + 101]);
    expect(acme.activeCount).toBe(5);
  });
});

describe('a job in detail', () => {
  test('GET /Jobs/{jobNumber} 200 · JobDto · jobNumber, description, comments, orderNumber, jobStatus, dateDue, mustDate, creator, invoiceNumber, orderGroup, orderGroupSequence, dateIn, dateOut, shippedDateStatus, shippedDaysToProcess, processingDays, taxTotal, isCancelable, permissions, location, invoiceFile, customerId, lines, shippingAddresses: a job has exactly these fields', async () => {
    const { acme, client } = await start();
    const jobNumber = acme.createJob({
      masterJobStatus: 'Ready to ship',
      jobStatus: 'Shipped',
      description: 'Left chest',
      comments: 'soon',
      orderNumber: 'PO-1',
      creator: 'robin',
      taxTotal: 4.2,
      dateIn: START - 2 * DAY,
      dateDue: START + DAY,
      dateOut: START,
      mustDate: true,
      orderGroup: 'G1',
      orderGroupSequence: 2,
      lines: [],
      tracking: [{ trackingNumber: 'T1', trackingLink: 'https://x.example/T1' }],
    });
    acme.invoice(jobNumber, { invoiceNumber: 'INV-7' });
    expect(await client.job(jobNumber)).toEqual({
      jobNumber,
      description: 'Left chest',
      comments: 'soon',
      orderNumber: 'PO-1',
      jobStatus: 'Shipped',
      dateDue: '2026-11-21T09:14:00-07:00',
      mustDate: true,
      creator: 'robin',
      invoiceNumber: 'INV-7',
      orderGroup: 'G1',
      orderGroupSequence: 2,
      dateIn: '2026-11-18T09:14:00-07:00',
      dateOut: '2026-11-20T09:14:00-07:00',
      shippedDateStatus: 'Early',
      shippedDaysToProcess: -1,
      processingDays: 2,
      taxTotal: 4.2,
      isCancelable: false,
      permissions: { canEdit: false, lockedReason: 'The job has been dispatched.' },
      location: { name: 'Denver', timezone: 'America/Denver' },
      invoiceFile: { uri: expect.stringContaining('/INV-7.pdf'), uriExpires: expect.any(String) },
      customerId: acme.id,
      lines: [],
      shippingAddresses: [{ trackingNumber: 'T1', trackingLink: 'https://x.example/T1' }],
    });
  });

  test('JobDto · description, comments, orderNumber, jobStatus, creator, invoiceNumber, orderGroup, orderGroupSequence, dateOut, taxTotal, location, invoiceFile: missing values are null', async () => {
    const { acme, client } = await start();
    const jobNumber = acme.createJob({
      status: null,
      description: null,
      orderNumber: null,
      creator: null,
      taxTotal: null,
      location: null,
    });
    expect(await client.job(jobNumber)).toMatchObject({
      description: null,
      comments: null,
      orderNumber: null,
      jobStatus: null,
      creator: null,
      invoiceNumber: null,
      orderGroup: null,
      orderGroupSequence: null,
      dateOut: null,
      taxTotal: null,
      location: null,
      invoiceFile: null,
      shippingAddresses: [],
    });
    expect(await client.entry(jobNumber)).toMatchObject({
      masterJobStatus: null,
      description: null,
      orderNumber: null,
      orderGroup: null,
      orderGroupSequence: null,
      dateOut: null,
      tracking: [],
    });
  });

  test("the tracker's parser returns the fields of a list entry and of a detail", async () => {
    const { acme, client } = await start();
    const tracking = [{ trackingNumber: 'T1', trackingLink: null }];
    const job = acme.createJob({ dateOut: START, orderGroup: 'G', orderGroupSequence: 1, tracking });
    acme.invoice(job);
    const entry = await client.entry(job);
    const read = ActiveJob.parse(entry);
    expect(entry).toMatchObject(read);
    expect(Object.values(read)).not.toContain(null);
    expect(await client.job(job)).toMatchObject(JobDetail.parse(await client.job(job)));
  });

  test('JobLineDto · jobLineId, assetSku, processCode, garment, description, comments, quantity, unitPrice, customerReference, imageUrl, gang, jobLineStatus: a line has exactly these fields', async () => {
    const { acme, client } = await start();
    const line = {
      jobLineId: 9,
      assetSku: 'AS900',
      processCode: 'DTF',
      garment: 'Tee',
      description: 'Left chest',
      comments: 'navy',
      quantity: 12,
      unitPrice: 3.5,
      customerReference: 'L-1',
      gang: 'G1',
      jobLineStatus: 'Scheduled',
    };
    const jobNumber = acme.createJob({ lines: [{ ...line, image: 'crest' }, {}] });
    const { lines } = await client.job(jobNumber);
    expect(lines).toHaveLength(2);
    expect(lines[0]).toEqual({ ...line, imageUrl: expect.stringContaining('/crest.png') });
  });

  test('GET /Jobs/{jobNumber} 403, GET /Jobs/active 403: callers without the right to order read no jobs', async () => {
    const { acme, login } = await start();
    const viewer = await login(acme, 'viewer');
    expect((await viewer.get(`/Jobs/${acme.createJob()}`)).status).toBe(403);
    expect((await viewer.get('/Jobs/active')).status).toBe(403);
  });

  test.each(['abc', '1.5', '%20'])(
    'GET /Jobs/{jobNumber} 400: a value that is not an integer is rejected: %s',
    async (text) => {
      const { client } = await start();
      const { status, json: problem } = await client.get<Problem>(`/Jobs/${text}`);
      expect(status).toBe(400);
      expect(Object.keys(problem.errors ?? {})).toEqual(['jobNumber']);
    },
  );

  test('ActiveJobDto · masterJobStatus, JobDto · jobStatus: list and detail can have different statuses', async () => {
    const { acme, client } = await start();
    const job = acme.createJob();
    acme.setStatus(job, { detail: 'Printing' });
    expect((await client.entry(job))?.masterJobStatus).toBe('Order received');
    expect((await client.job(job)).jobStatus).toBe('Printing');
    acme.setStatus(job, { master: null });
    expect((await client.entry(job))?.masterJobStatus).toBeNull();
    acme.setStatus(job, 'Both');
    expect((await client.entry(job))?.masterJobStatus).toBe('Both');
    expect((await client.job(job)).jobStatus).toBe('Both');
  });

  test('JobLineDto · jobLineStatus: a line has its own status', async () => {
    const { acme, client } = await start();
    const job = acme.createJob({ lines: [{}, {}] });
    await client.job(job);
    acme.setLineStatus(job, 1, 'In production');
    expect((await client.job(job)).lines.map((line) => line.jobLineStatus)).toEqual([
      'Order received',
      'In production',
    ]);
    expect(() => acme.setLineStatus(job, 2, 'x')).toThrow('no line 2');
  });

  test('JobDto · dateOut, permissions, isCancelable, shippingAddresses: dispatch sets the date, locks editing, and keeps the status by default', async () => {
    const { acme, client, clock } = await start();
    const job = acme.createJob();
    clock.now += DAY;
    acme.dispatch(job, { tracking: [{ trackingNumber: 'T1', trackingLink: null }] });
    const locked = { canEdit: false, lockedReason: 'The job has been dispatched.' };
    expect(await client.job(job)).toMatchObject({
      dateOut: '2026-11-21T09:14:00-07:00',
      permissions: locked,
      isCancelable: false,
      jobStatus: 'Order received',
      processingDays: 1,
      shippingAddresses: [{ trackingNumber: 'T1', trackingLink: null }],
    });
    expect(await client.entry(job)).toMatchObject({
      dateOut: '2026-11-21T09:14:00-07:00',
      permissions: locked,
      tracking: [{ trackingNumber: 'T1', trackingLink: null }],
    });
    acme.correctDateOut(job, START);
    expect((await client.job(job)).dateOut).toBe('2026-11-20T09:14:00-07:00');
    acme.clearDateOut(job);
    expect(await client.job(job)).toMatchObject({ dateOut: null, permissions: { canEdit: true } });
    acme.dispatch(job, { dateOut: '2026-11-30', status: 'Shipped' });
    expect(await client.job(job)).toMatchObject({ dateOut: '2026-11-30', jobStatus: 'Shipped' });
  });

  test('Tracking · trackingNumber, trackingLink: parcels can be added, completed, removed and set, and the link is null if the carrier has none', async () => {
    const { acme, client } = await start();
    const job = acme.createJob();
    const shown = async () => (await client.entry(job))?.tracking;
    acme.addTracking(job, { trackingNumber: 'T1' });
    acme.addTracking(job, { trackingNumber: 'T2', trackingLink: 'https://x.example/2' });
    expect(await shown()).toEqual([
      { trackingNumber: 'T1', trackingLink: null },
      { trackingNumber: 'T2', trackingLink: 'https://x.example/2' },
    ]);
    acme.removeTracking(job, 'T1');
    expect(await shown()).toEqual([{ trackingNumber: 'T2', trackingLink: 'https://x.example/2' }]);
    const entry: TrackingEntry = { trackingNumber: null, trackingLink: null };
    acme.setTracking(job, [entry]);
    entry.trackingNumber = 'changed by the caller';
    expect(await shown()).toEqual([{ trackingNumber: null, trackingLink: null }]);
    acme.removeTracking(job);
    expect(await shown()).toEqual([]);
  });

  test('Permissions · canEdit, lockedReason: list and detail give the reason of a lock, and both can be overridden', async () => {
    const { acme, client } = await start();
    const job = acme.createJob();
    const permissions = async () => (await client.job(job)).permissions;
    acme.lock(job, 'On the press.');
    expect(await permissions()).toEqual({ canEdit: false, lockedReason: 'On the press.' });
    expect((await client.entry(job))?.permissions).toEqual(await permissions());
    acme.close(job);
    acme.unlock(job);
    expect(await permissions()).toEqual({ canEdit: true, lockedReason: null });
    acme.lock(job, 'Under inspection.');
    expect(await permissions()).toEqual({ canEdit: false, lockedReason: 'Under inspection.' });
    const closed = acme.createJob();
    acme.close(closed, { status: 'Completed' });
    expect(await client.job(closed)).toMatchObject({
      jobStatus: 'Completed',
      permissions: { canEdit: false, lockedReason: 'The job is closed.' },
    });
  });

  describe.each<[string, (account: SandboxAccount, job: number) => void, string]>([
    ['dispatched', (account, job) => account.dispatch(job), 'The job has been dispatched.'],
    ['closed', (account, job) => account.close(job), 'The job is closed.'],
    ['cancelled', (account, job) => account.cancel(job), 'The job has been cancelled.'],
  ])('when a job is %s', (_, move, lockedReason) => {
    test.each<[string, (account: SandboxAccount, job: number) => void]>([
      ['unlocked', (account, job) => account.unlock(job)],
      ['locked', (account, job) => account.lock(job, 'On the press.')],
    ])('it is locked for that reason, also after %s; later overrides apply', async (__, force) => {
      const { acme, client } = await start();
      const job = acme.createJob();
      force(acme, job);
      move(acme, job);
      expect((await client.job(job)).permissions).toEqual({ canEdit: false, lockedReason });
      expect((await client.patch(`/Jobs/${job}`, { description: 'x' })).status).toBe(403);
      acme.unlock(job);
      move(acme, job);
      expect((await client.job(job)).permissions, 'nothing new').toEqual({
        canEdit: true,
        lockedReason: null,
      });
    });
  });

  test('JobDto · isCancelable, permissions: a job can be cancelled before production, and stays editable after', async () => {
    const { acme, client } = await start();
    const job = acme.createJob();
    const cancelable = async () => (await client.job(job)).isCancelable;
    expect(await cancelable()).toBe(true);
    acme.setStatus(job, 'In production');
    expect(await client.job(job)).toMatchObject({ isCancelable: false, permissions: { canEdit: true } });
    acme.setStatus(job, 'Never heard of');
    expect(await cancelable()).toBe(false);
    acme.edit(job, { isCancelable: true });
    expect(await cancelable()).toBe(true);
  });

  test('JobDto · shippedDaysToProcess, processingDays, shippedDateStatus: counters change with the clock until dispatch, in detail and list', async () => {
    const { acme, client, clock } = await start();
    const job = acme.createJob({ dateDue: START + DAY });
    const counters = async () => {
      const { shippedDaysToProcess, processingDays, shippedDateStatus } = await client.job(job);
      expect((await client.entry(job))?.shippedDaysToProcess).toBe(shippedDaysToProcess);
      return [shippedDaysToProcess, processingDays, shippedDateStatus];
    };
    expect(await counters()).toEqual([-1, 0, 'On time']);
    clock.now = START + 2 * DAY;
    expect(await counters()).toEqual([1, 2, 'Late']);
    acme.dispatch(job, { dateOut: START + 1.5 * DAY });
    expect(await counters()).toEqual([0.5, 1.5, 'Late']);
    clock.now = START + 5 * DAY;
    expect(await counters()).toEqual([0.5, 1.5, 'Late']);
    acme.edit(job, { dateDue: START + 4 * DAY });
    expect(await counters()).toEqual([-2.5, 1.5, 'Early']);
    // The contract has no detail without a due date; a world can break it.
    acme.edit(job, { dateDue: null });
    const { shippedDaysToProcess, processingDays, shippedDateStatus } = acme.jobDetail(job) ?? {};
    expect([shippedDaysToProcess, processingDays, shippedDateStatus]).toEqual([null, 1.5, null]);
    expect((await client.entry(job))?.shippedDaysToProcess).toBeNull();
  });

  test('JobDto · dateDue, shippedDateStatus: a due date at midnight is missed only after that day in the job’s zone', async () => {
    const { acme, client, clock } = await start();
    const job = acme.createJob({ dateDue: '2026-11-20T00:00:00-07:00' });
    const statusAt = async (time: string) => {
      clock.now = Date.parse(time);
      return (await client.job(job)).shippedDateStatus;
    };
    expect((await client.job(job)).shippedDateStatus).toBe('On time');
    expect(await statusAt('2026-11-21T06:59:59Z')).toBe('On time');
    expect(await statusAt('2026-11-21T07:00:01Z')).toBe('Late');
    acme.dispatch(job, { dateOut: '2026-11-20T08:00:00-07:00' });
    expect((await client.job(job)).shippedDateStatus).toBe('On time');
    acme.correctDateOut(job, '2026-11-19T23:59:00-07:00');
    expect((await client.job(job)).shippedDateStatus).toBe('Early');
  });

  // Clocks in Denver go back on the first of November 2026, and forward on the 14th of March 2027.
  test.each([
    ['2026-11-01', '-06:00', '2026-11-01T23:30:00-07:00', '2026-11-02T00:30:00-07:00'],
    ['2027-03-14', '-07:00', '2027-03-14T23:30:00-06:00', '2027-03-15T00:30:00-06:00'],
  ])(
    'JobDto · dateDue, shippedDateStatus: the due day %s ends at local midnight, although clocks change on it',
    async (day, offset, within, after) => {
      const { acme, client } = await start();
      const job = acme.createJob({ dateDue: `${day}T00:00:00${offset}` });
      acme.dispatch(job, { dateOut: within });
      expect((await client.job(job)).shippedDateStatus).toBe('On time');
      acme.correctDateOut(job, after);
      expect((await client.job(job)).shippedDateStatus).toBe('Late');
    },
  );

  test('JobDto · invoiceNumber, invoiceFile: the file is available after dispatch or closing, and its link differs each time', async () => {
    const { acme, client, clock } = await start();
    const job = acme.createJob();
    acme.invoice(job, { invoiceNumber: 'INV-7' });
    expect(await client.job(job)).toMatchObject({ invoiceNumber: 'INV-7', invoiceFile: null });
    acme.dispatch(job);
    const first = (await client.job(job)).invoiceFile;
    expect(first?.uriExpires).toBe(new Date(START + 15 * MINUTE).toISOString());
    clock.now += 1000;
    expect((await client.job(job)).invoiceFile?.uri).not.toBe(first?.uri);
    acme.edit(job, { invoiceNumber: null });
    expect((await client.job(job)).invoiceFile).toBeNull();
    acme.invoice(job, { file: false });
    expect((await client.job(job)).invoiceFile).toBeNull();
  });

  test('JobLineDto · imageUrl: preview links change with time', async () => {
    const { acme, client, clock } = await start();
    const job = acme.createJob();
    const [before] = (await client.job(job)).lines;
    clock.now += HOUR;
    const [after] = (await client.job(job)).lines;
    expect(after?.imageUrl).not.toBe(before?.imageUrl);
  });

  test('JobDto · dateIn, dateDue: timestamps follow daylight saving at the location', async () => {
    const { acme, client } = await start();
    const job = acme.createJob({
      location: { name: 'Leeds', timezone: 'Europe/London' },
      dateIn: Date.parse('2026-10-25T00:59:59.500Z'),
      dateDue: Date.parse('2026-10-25T01:00:00Z'),
    });
    expect(await client.job(job)).toMatchObject({
      dateIn: '2026-10-25T01:59:59.500+01:00',
      dateDue: '2026-10-25T01:00:00+00:00',
    });
  });

  test('a timestamp without an offset is local time, also on the day of a clock change', async () => {
    const { acme, client } = await start();
    const job = acme.createJob({
      location: { name: 'Charlotte', timezone: 'America/New_York' },
      dateDue: '2026-03-08T04:00:00',
      dateOut: '2026-03-08T08:00:00Z',
    });
    expect((await client.job(job)).shippedDaysToProcess).toBe(0);
  });
});

describe('amending a job', () => {
  test('PATCH /Jobs/{jobNumber} 200 · PatchJobDto · description, comments, orderNumber, mustDate, dateDue: while canEdit is true the given fields change, the status does not, and the answer is the job', async () => {
    const { acme, client } = await start();
    const job = acme.createJob({ status: 'In production', mustDate: false });
    const before = await client.job(job);
    const reply = await client.patch<JobDto>(`/Jobs/${job}`, {
      description: 'Back print',
      comments: 'fold them',
      orderNumber: 'PO-2',
      mustDate: true,
      dateDue: '2026-12-04',
    });
    expect(reply.status).toBe(200);
    expect(reply.json).toEqual({
      ...before,
      description: 'Back print',
      comments: 'fold them',
      orderNumber: 'PO-2',
      mustDate: true,
      dateDue: '2026-12-04T00:00:00-07:00',
      shippedDaysToProcess: expect.any(Number),
    });
    expect(await client.job(job)).toEqual(reply.json);
    expect(await client.entry(job)).toMatchObject({ description: 'Back print', mustDate: true });
  });

  test.each(['description', 'comments', 'orderNumber', 'mustDate', 'dateDue'])(
    'PatchJobDto · %s: null and absent values change nothing',
    async (field) => {
      const { acme, client } = await start();
      const job = acme.createJob({ comments: 'c', mustDate: true, dateDue: START + 9 * DAY });
      const before = await client.job(job);
      for (const body of [{ [field]: null }, {}, { unknown: 1 }]) {
        const { status, json } = await client.patch(`/Jobs/${job}`, body);
        expect([status, json]).toEqual([200, before]);
      }
    },
  );

  test('PatchJobDto · description, comments, orderNumber: an empty string is a value', async () => {
    const { acme, client } = await start();
    const job = acme.createJob({ comments: 'c' });
    const empty = { description: '', comments: '', orderNumber: '' };
    expect((await client.patch(`/Jobs/${job}`, empty)).json).toMatchObject(empty);
  });

  test.each<[string, (account: SandboxAccount, job: number) => void, string]>([
    ['dispatched', (account, job) => account.dispatch(job), 'The job has been dispatched.'],
    ['closed', (account, job) => account.close(job), 'The job is closed.'],
    ['cancelled', (account, job) => account.cancel(job), 'The job has been cancelled.'],
    ['locked', (account, job) => account.lock(job, 'On the press.'), 'On the press.'],
  ])(
    'PATCH /Jobs/{jobNumber} 403: a job that is %s stays unchanged, and the answer gives the reason',
    async (_, lock, reason) => {
      const { acme, client } = await start();
      const job = acme.createJob({ description: 'before' });
      lock(acme, job);
      const { status, json } = await client.patch<Problem>(`/Jobs/${job}`, { description: 'after' });
      expect([status, json.detail]).toEqual([403, reason]);
      expect(await client.job(job)).toMatchObject({
        description: 'before',
        permissions: { canEdit: false, lockedReason: reason },
      });
    },
  );

  test.each<Role>(['user', 'administrator'])(
    'PATCH /Jobs/{jobNumber} 403 · PatchJobDto · locationCode: a customer, as %s, must omit it, and nothing else changes either',
    async (role) => {
      const { acme, login } = await start();
      const client = await login(acme, role);
      const job = acme.createJob();
      const before = await client.job(job);
      const reply = await client.patch(`/Jobs/${job}`, { locationCode: 'CLT', description: 'x' });
      expect(reply.status).toBe(403);
      expect(await client.job(job)).toEqual(before);
      expect((await client.patch(`/Jobs/${job}`, { locationCode: null })).status).toBe(200);
    },
  );

  test('PATCH /Jobs/{jobNumber} 403: callers without the right to order change nothing', async () => {
    const { acme, login } = await start();
    const viewer = await login(acme, 'viewer');
    expect((await viewer.patch(`/Jobs/${acme.createJob()}`, { description: 'x' })).status).toBe(403);
  });

  test('PatchJobDto · locationCode: staff move a job to another location; a due day stays the same day, times stay the same times', async () => {
    const { acme, login } = await start();
    const staff = await login(acme, 'staff');
    const job = acme.createJob({ dateDue: '2026-12-02T00:00:00-07:00' });
    expect((await staff.patch(`/Jobs/${job}`, { locationCode: 'CLT' })).json).toMatchObject({
      location: { name: 'Charlotte', timezone: 'America/New_York' },
      dateIn: '2026-11-20T11:14:00-05:00',
      dateDue: '2026-12-02T00:00:00-05:00',
    });
    const timed = acme.createJob({ dateDue: '2026-12-02T12:00:00-07:00' });
    expect((await staff.patch(`/Jobs/${timed}`, { locationCode: 'CLT' })).json).toMatchObject({
      dateDue: '2026-12-02T14:00:00-05:00',
    });
  });

  test.each([
    ['does not exist', 'ZZZ'],
    ['is empty', ''],
    ['is of another region', 'AKL'],
    ['is inactive', 'PUE'],
    ['is virtual', 'USX'],
  ])(
    'PATCH /Jobs/{jobNumber} 400 · ValidationFailure · isValid, validationMessages: a location code that %s is rejected, and nothing else changes either',
    async (_, locationCode) => {
      const { acme, login } = await start();
      const staff = await login(acme, 'staff');
      const job = acme.createJob();
      const before = await staff.job(job);
      const reply = await staff.patch(`/Jobs/${job}`, { locationCode, description: 'x' });
      expect(reply.status).toBe(400);
      expect(reply.json).toEqual({
        isValid: false,
        validationMessages: [{ errorCode: 'LocationInvalid', message: expect.any(String) }],
      });
      expect(await staff.job(job)).toEqual(before);
    },
  );

  test('PATCH /Jobs/{jobNumber} 400 · PatchJobDto · dateDue: a date that cannot be met is rejected, not moved', async () => {
    const { acme, client } = await start();
    // On a Friday morning: produced by Tuesday.
    const job = acme.createJob({ lines: [{ processCode: 'UC' }], dateDue: '2026-12-20', comments: 'c' });
    const ask = async (dateDue: string) => (await client.patch(`/Jobs/${job}`, { dateDue })).status;
    const reply = await client.patch(`/Jobs/${job}`, { dateDue: '2026-11-23', comments: 'x' });
    expect(reply.status).toBe(400);
    expect(reply.json.validationMessages).toEqual([
      { errorCode: 'DateDueTooEarly', message: expect.any(String) },
    ]);
    expect(await client.job(job)).toMatchObject({ dateDue: '2026-12-20', comments: 'c' });
    expect(await ask('2026-11-24T16:59:59-07:00')).toBe(400);
    expect(await ask('2026-11-24T17:00:00-07:00')).toBe(200);
  });

  test('PatchJobDto · dateDue: the current date is accepted as long as it is in the future', async () => {
    const { acme, client, clock } = await start();
    const job = acme.createJob({ lines: [{ processCode: 'SCR' }], dateDue: '2026-11-23' });
    const ask = async (dateDue: string) => (await client.patch(`/Jobs/${job}`, { dateDue })).status;
    expect(await ask('2026-11-22')).toBe(400);
    expect(await ask('2026-11-23')).toBe(200);
    expect(await ask('2026-11-24')).toBe(200);
    clock.now = Date.parse('2026-11-25T16:00:00Z');
    // Late now: a past date cannot be met, but repeating it changes nothing.
    expect(await ask('2026-11-25')).toBe(400);
    expect(await ask('2026-11-24')).toBe(200);
  });

  test.each(['2026-11-01', '2027-03-14'])(
    'PatchJobDto · dateDue: %s, a day of a clock change, is no change if it is the current due day',
    async (day) => {
      const { acme, client, clock } = await start();
      const job = acme.createJob({ dateDue: day });
      const { dateDue } = await client.job(job);
      // Late: an earlier or later day would have to be met.
      clock.now = Date.parse('2027-05-01T16:00:00Z');
      expect((await client.patch(`/Jobs/${job}`, { dateDue: day })).json).toMatchObject({
        dateDue: `${day}T00:00:00-0${day < '2027' ? 6 : 7}:00`,
      });
      expect(dateDue).toBe(day);
    },
  );

  test.each([
    ['a day', '2026-12-01', '2026-12-01T00:00:00-07:00'],
    ['a midnight of anywhere', '2026-12-01T00:00:00Z', '2026-12-01T00:00:00-07:00'],
    ['a time in UTC', '2026-12-01T20:30:00Z', '2026-12-01T13:30:00-07:00'],
    ['a time without a zone', '2026-12-01T13:30:00', '2026-12-01T13:30:00-07:00'],
    ['a time without seconds', '2026-12-01T13:30', '2026-12-01T13:30:00-07:00'],
    ['the last day of all', '9999-12-31', '9999-12-31T00:00:00-07:00'],
  ])("PatchJobDto · dateDue: %s is parsed in the zone of the job's location", async (_, dateDue, shown) => {
    const { acme, client } = await start();
    const job = acme.createJob();
    expect((await client.patch(`/Jobs/${job}`, { dateDue })).json).toMatchObject({ dateDue: shown });
  });

  test.each<[string, unknown, string]>([
    ['description', { description: 1 }, 'description'],
    ['comments', { comments: ['x'] }, 'comments'],
    ['orderNumber', { orderNumber: 7 }, 'orderNumber'],
    ['mustDate', { mustDate: 'yes' }, 'mustDate'],
    ['dateDue', { dateDue: 20261201 }, 'dateDue'],
    ['locationCode', { locationCode: 1 }, 'locationCode'],
    ['whole', [{ op: 'replace', path: '/description', value: 'x' }], '$'],
  ])(
    'PATCH /Jobs/{jobNumber} 400 · ProblemDetails · type, title, status, detail, instance, errors: an invalid %s is rejected by name: %j',
    async (_, body, field) => {
      const { acme, client } = await start();
      const job = acme.createJob();
      const { status, json } = await client.patch<Problem>(`/Jobs/${job}`, body);
      expect(status).toBe(400);
      expect(json).toEqual({
        type: 'https://transfers.example/problems/validation',
        title: 'One or more validation errors occurred.',
        status: 400,
        detail: 'The body is not valid.',
        instance: `/us/api/Jobs/${job}`,
        errors: { [field]: [expect.any(String)] },
      });
    },
  );

  test.each([
    ...[
      'next week',
      '2026-13-01',
      '12/01/2026',
      '',
      '2027-02-30',
      '2027-02-29T10:00:00Z',
      '2027-01-04 (x) 12:00',
    ],
    ...[
      '2027-01-04T12:00:00Z (noon)',
      '2027-01-04T12:61:00',
      '2027-01-04 12:00',
      '9999-12-31T23:59:59-12:00',
    ],
  ])(
    'PATCH /Jobs/{jobNumber} 400 · PatchJobDto · dateDue: an invalid date is rejected: %j',
    async (dateDue) => {
      const { acme, client } = await start();
      const { status, json } = await client.patch(`/Jobs/${acme.createJob()}`, { dateDue });
      expect(status).toBe(400);
      expect(json.validationMessages).toEqual([{ errorCode: 'DateDueInvalid', message: expect.any(String) }]);
    },
  );

  test('PATCH /Jobs/{jobNumber} 400: invalid JSON and an invalid number are rejected', async () => {
    const { acme, client } = await start();
    const body = { method: 'PATCH', headers: { 'content-type': 'application/json' }, body: '{' };
    expect((await client.ask(`/Jobs/${acme.createJob()}`, body)).status).toBe(400);
    expect((await client.patch('/Jobs/abc', {})).status).toBe(400);
  });

  test.each([
    ['application/json', 200],
    ['text/json', 200],
    ['application/json-patch+json; charset=utf-8', 200],
    ['application/merge-patch+json', 200],
    ['text/plain', 415],
    ['application/xml', 415],
  ])(
    'PATCH /Jobs/{jobNumber} 200, PATCH /Jobs/{jobNumber} 415: a body of %s answers %i',
    async (type, status) => {
      const { acme, client } = await start();
      const job = acme.createJob({ description: 'before' });
      const reply = await client.patch(`/Jobs/${job}`, { description: 'after' }, { 'content-type': type });
      expect(reply.status).toBe(status);
      expect((await client.job(job)).description).toBe(status === 200 ? 'after' : 'before');
    },
  );

  test("PATCH /Jobs/{jobNumber} 404: another account's job answers like one that does not exist, and stays unchanged", async () => {
    const { world, client, login } = await start();
    const other = world.addAccount({ region: 'us', name: 'other' });
    const theirs = other.createJob({ description: 'theirs' });
    const foreign = await client.patch(`/Jobs/${theirs}`, { description: 'mine' });
    const absent = await client.patch('/Jobs/999999999', { description: 'mine' });
    expect([foreign.status, absent.status]).toEqual([404, 404]);
    expect(foreign.text.replaceAll(String(theirs), '#')).toBe(absent.text.replaceAll('999999999', '#'));
    expect((await (await login(other)).job(theirs)).description).toBe('theirs');
  });
});

describe('cancelling a job', () => {
  test('POST /Jobs/{jobNumber}/cancel 204: while isCancelable is true the job is cancelled, and the answer has no body', async () => {
    const { acme, client } = await start();
    const job = acme.createJob();
    const reply = await client.post(`/Jobs/${job}/cancel`);
    expect([reply.status, reply.text, reply.headers.get('content-length')]).toEqual([204, '', null]);
    expect(await client.job(job)).toMatchObject({
      jobStatus: 'Canceled',
      isCancelable: false,
      permissions: { canEdit: false, lockedReason: 'The job has been cancelled.' },
    });
    expect(await client.list('includeClosedJobs=true')).toEqual([]);
  });

  test('POST /Jobs/{jobNumber}/cancel 204: a repeated one succeeds and changes nothing', async () => {
    const { acme, client } = await start();
    const job = acme.createJob();
    await client.post(`/Jobs/${job}/cancel`);
    const once = await client.job(job);
    expect((await client.post(`/Jobs/${job}/cancel`)).status).toBe(204);
    expect(await client.job(job)).toEqual(once);
  });

  test.each<[string, (account: SandboxAccount, job: number) => void]>([
    ['in production', (account, job) => account.setStatus(job, 'In production')],
    ['dispatched', (account, job) => account.dispatch(job)],
    ['closed', (account, job) => account.close(job)],
    ['marked as not cancelable', (account, job) => account.edit(job, { isCancelable: false })],
  ])('POST /Jobs/{jobNumber}/cancel 409: a job that is %s stays unchanged', async (_, move) => {
    const { acme, client } = await start();
    const job = acme.createJob();
    move(acme, job);
    const before = await client.job(job);
    expect(before.isCancelable).toBe(false);
    expect((await client.post(`/Jobs/${job}/cancel`)).status).toBe(409);
    expect(await client.job(job)).toEqual(before);
  });

  test('POST /Jobs/{jobNumber}/cancel 204: a locked job can be cancelled, because the two are independent', async () => {
    const { acme, client } = await start();
    const job = acme.createJob();
    acme.lock(job);
    expect((await client.post(`/Jobs/${job}/cancel`)).status).toBe(204);
  });

  test("POST /Jobs/{jobNumber}/cancel 404: another account's job answers like one that does not exist, and stays unchanged", async () => {
    const { world, client } = await start();
    const other = world.addAccount({ region: 'us', name: 'other' });
    const theirs = other.createJob();
    const foreign = await client.post(`/Jobs/${theirs}/cancel`);
    const absent = await client.post('/Jobs/999999999/cancel');
    expect([foreign.status, absent.status]).toEqual([404, 404]);
    expect(foreign.text.replaceAll(String(theirs), '#')).toBe(absent.text.replaceAll('999999999', '#'));
    expect(other.job(theirs)?.phase).toBe('open');
  });

  test('POST /Jobs/{jobNumber}/cancel 400, POST /Jobs/{jobNumber}/cancel 403: an invalid number, and a caller without the right to order', async () => {
    const { acme, client, login } = await start();
    expect((await client.post('/Jobs/abc/cancel')).status).toBe(400);
    const job = acme.createJob();
    expect((await (await login(acme, 'viewer')).post(`/Jobs/${job}/cancel`)).status).toBe(403);
    expect(acme.job(job)?.phase).toBe('open');
  });
});

describe('delivery options', () => {
  test('GET /Jobs/delivery-options 200 · DeliveryOption · code, label, isCollection, rank, gangRank, value, deliveryLabelEnabled: each region has its own, sorted by rank', async () => {
    const { world, login } = await start();
    const seen = new Set<string>();
    for (const region of ['us', 'nz', 'au', 'uk', 'eu'] as const) {
      const client = await login(world.addAccount({ region, name: 'shop' }));
      const { status, json: options } = await client.get<DeliveryOption[]>('/Jobs/delivery-options');
      expect(status).toBe(200);
      expect(options.map(({ rank }) => rank)).toEqual(options.map((_, index) => index + 1));
      expect(options.map(({ gangRank }) => gangRank).toSorted()).toEqual(options.map(({ rank }) => rank));
      expect(options.map(({ value }) => value)).toEqual(options.map(({ code }) => code));
      for (const names of [options.map(({ code }) => code), options.map(({ label }) => label)]) {
        expect(new Set(names).size).toBe(options.length);
        expect(names.every(Boolean)).toBe(true);
      }
      // A collection has no label.
      expect(options.filter(({ isCollection }) => isCollection)).toHaveLength(1);
      for (const one of options) expect(one.deliveryLabelEnabled).toBe(!one.isCollection);
      seen.add(JSON.stringify(options));
    }
    expect(seen.size).toBeGreaterThan(3);
  });

  test('GET /Jobs/delivery-options 403: callers without the right to order have none', async () => {
    const { acme, login } = await start();
    expect((await (await login(acme, 'viewer')).get('/Jobs/delivery-options')).status).toBe(403);
  });
});

describe('the earliest ship date', () => {
  const soonest = async (client: Awaited<ReturnType<typeof start>>['client'], query = '') => {
    const { status, json } = await client.get<ShipDate>(`/Jobs/earliest-ship-date${query}`);
    return [status, json.shippingDateLocal];
  };

  test('GET /Jobs/earliest-ship-date 200 · ShipDate · shippingDateUtc, shippingDateLocal, timezone, dateExclusions: the day in UTC and at the location, and the non-working days', async () => {
    const { client } = await start();
    const { json } = await client.get<ShipDate>('/Jobs/earliest-ship-date');
    expect(json).toEqual({
      shippingDateUtc: '2026-11-24T00:00:00Z',
      shippingDateLocal: '2026-11-23T17:00:00-07:00',
      timezone: 'America/Denver',
      dateExclusions: expect.any(Array),
    });
    expect(json.dateExclusions?.slice(0, 5)).toEqual([
      { dateFrom: '2026-11-21', dateTo: '2026-11-22' },
      // Thanksgiving, the day after, and the weekend.
      { dateFrom: '2026-11-26', dateTo: '2026-11-29' },
      { dateFrom: '2026-12-05', dateTo: '2026-12-06' },
      { dateFrom: '2026-12-12', dateTo: '2026-12-13' },
      { dateFrom: '2026-12-19', dateTo: '2026-12-20' },
    ]);
    expect(json.dateExclusions?.at(-1)).toEqual({ dateFrom: '2027-02-13', dateTo: '2027-02-15' });
  });

  test.each([
    ['', '2026-11-23'],
    ['?processCodes=', '2026-11-23'],
    ['?processCodes=DTF', '2026-11-23'],
    ['?processCodes=UC', '2026-11-24'],
    ['?processCodes=SCR', '2026-11-25'],
    ['?processCodes=DTF,%20SCR,UC,', '2026-11-25'],
    ['?processCodes=EMB', '2026-12-01'],
    ['?processCodes=STK,EQP,GSH', '2026-11-23'],
  ])('earliestShipDate · processCodes: the slowest counts; default: the fastest: %s', async (query, day) => {
    const { client } = await start();
    expect(await soonest(client, query)).toEqual([200, `${day}T17:00:00-07:00`]);
  });

  test.each([
    ['before the cut-off', '2026-11-20T14:00:00-07:00', '2026-11-23T17:00:00-07:00'],
    ['after the cut-off', '2026-11-20T14:00:01-07:00', '2026-11-24T17:00:00-07:00'],
    ['on a Sunday', '2026-11-22T09:00:00-07:00', '2026-11-24T17:00:00-07:00'],
    ['on the day before a holiday', '2026-11-25T09:00:00-07:00', '2026-11-30T17:00:00-07:00'],
    ['before the clocks change', '2027-03-12T09:00:00-07:00', '2027-03-15T17:00:00-06:00'],
  ])('ShipDate · shippingDateLocal: an order %s is dispatched a working day later', async (_, now, local) => {
    const { client, clock } = await start();
    clock.now = Date.parse(now);
    expect(await soonest(client)).toEqual([200, local]);
  });

  test.each<[RegionCode, string, string]>([
    ['nz', 'Pacific/Auckland', '2026-11-24T17:00:00+13:00'],
    ['au', 'Australia/Brisbane', '2026-11-24T17:00:00+10:00'],
    ['uk', 'Europe/London', '2026-11-24T17:00:00+00:00'],
    ['eu', 'Europe/Amsterdam', '2026-11-24T17:00:00+01:00'],
  ])(
    'ShipDate · timezone, shippingDateLocal: in %s it is the local day, where it is past the cut-off or Saturday already',
    async (region, timezone, local) => {
      const { world, login } = await start();
      const client = await login(world.addAccount({ region, name: 'shop' }));
      const { json } = await client.get<ShipDate>('/Jobs/earliest-ship-date');
      expect(json).toMatchObject({ timezone, shippingDateLocal: local });
      expect(Date.parse(json.shippingDateUtc)).toBe(Date.parse(local));
    },
  );

  test('ShipDate · shippingDateUtc: changes with the workload of all accounts of the region', async () => {
    const { world, client } = await start();
    const other = world.addAccount({ region: 'us', name: 'other' });
    const jobs = Array.from({ length: 1999 }, () => other.createJob());
    world.addAccount({ region: 'nz', name: 'elsewhere' }).createJob();
    expect(await soonest(client)).toEqual([200, '2026-11-23T17:00:00-07:00']);
    other.createJob();
    expect(await soonest(client)).toEqual([200, '2026-11-24T17:00:00-07:00']);
    other.close(jobs[0] ?? 0);
    expect(await soonest(client)).toEqual([200, '2026-11-23T17:00:00-07:00']);
  });

  test('ShipDate · dateExclusions: a closure of the location delays it and is listed; one of another location has no effect', async () => {
    const { world, client } = await start();
    world.closures.push({ region: 'us', dateFrom: '2026-11-23', dateTo: '2026-11-25' });
    world.closures.push({ region: 'us', locationCode: 'CLT', dateFrom: '2026-11-30', dateTo: '2026-11-30' });
    world.closures.push({ region: 'nz', dateFrom: '2026-11-30', dateTo: '2026-11-30' });
    const { json } = await client.get<ShipDate>('/Jobs/earliest-ship-date');
    expect(json.shippingDateLocal).toBe('2026-11-30T17:00:00-07:00');
    expect(json.dateExclusions?.[0]).toEqual({ dateFrom: '2026-11-21', dateTo: '2026-11-29' });
  });

  test('GET /Jobs/earliest-ship-date 404: no date while the location is closed', async () => {
    const { world, client } = await start();
    world.closures.push({ region: 'us', dateFrom: '2026-11-20', dateTo: '2027-11-20' });
    expect(await soonest(client)).toEqual([404, undefined]);
  });

  test('GET /Jobs/earliest-ship-date 404 · earliestShipDate · processCodes: no date for an unknown process', async () => {
    const { client } = await start();
    expect(await soonest(client, '?processCodes=UC,XX')).toEqual([404, undefined]);
  });

  test('GET /Jobs/earliest-ship-date 404: the user was removed', async () => {
    const { acme, client } = await start();
    acme.users.shift();
    expect(await soonest(client)).toEqual([404, undefined]);
  });

  test('Auckland has one Friday of Matariki each year to 2052, and none later', () => {
    const fridays = (year: number) =>
      Array.from({ length: 31 }, (_, ahead) => addDays(`${year}-06-19`, ahead)).filter(
        (day) => new Date(day).getUTCDay() === 5 && isDayOff(day, 'NZ-AUK'),
      );
    const all = Array.from({ length: 28 }, (_, index) => fridays(2025 + index));
    expect(all.map((days) => days.length)).toEqual(all.map(() => 1));
    expect([2033, 2041, 2052, 2053].map(fridays)).toEqual([
      ['2033-06-24'],
      ['2041-07-19'],
      ['2052-06-21'],
      [],
    ]);
  });

  test('is a working day in the future at any time; a later request or more processes never make it earlier', () => {
    const world = createWorld();
    const accounts = (['us', 'nz', 'au', 'uk', 'eu'] as const).map((region) => world.addAccount({ region }));
    fc.assert(
      fc.property(
        fc.constantFrom(...accounts),
        fc.integer({ min: START, max: START + 1500 * DAY }),
        fc.integer({ min: 0, max: 10 * DAY }),
        fc.subarray(['DTF', 'UC', 'SCR']),
        (account, now, later, codes) => {
          const [location = fail()] = listLocations(account.region);
          const soon = earliestShipDate(account, codes, now) ?? fail();
          expect(soon.ms).toBeGreaterThan(now);
          expect(isDayOff(soon.day, location.holidays)).toBe(false);
          expect((earliestShipDate(account, codes, now + later) ?? fail()).ms).toBeGreaterThanOrEqual(
            soon.ms,
          );
          expect((earliestShipDate(account, [...codes, 'UC'], now) ?? fail()).ms).toBeGreaterThanOrEqual(
            soon.ms,
          );
        },
      ),
    );
  });

  test.each<[HolidayCalendar, number, string]>([
    ['US-CO', 2026, '01-01 01-19 02-16 05-25 06-19 07-03 09-07 11-26 11-27 12-25'],
    // On the Friday before, because it is a Saturday.
    ['US-CO', 2027, '01-01 01-18 02-15 05-31 06-18 07-05 09-06 11-25 11-26 12-24 12-31'],
    ['US-NC', 2026, '01-01 01-19 04-03 05-25 06-19 07-03 09-07 11-26 11-27 12-25'],
    ['NZ-AUK', 2026, '01-01 01-02 01-26 02-06 04-03 04-06 04-27 06-01 07-10 10-26 12-25 12-28'],
    ['NZ-AUK', 2028, '01-03 01-04 01-31 02-07 04-14 04-17 04-25 06-05 07-14 10-23 12-25 12-26'],
    ['AU-QLD', 2026, '01-01 01-26 04-03 04-06 05-04 08-12 10-05 12-25 12-28'],
    ['AU-SA', 2026, '01-01 01-26 03-09 04-03 04-06 06-08 10-05 12-25 12-28'],
    ['GB-ENG', 2027, '01-01 03-26 03-29 05-03 05-31 08-30 12-27 12-28'],
    ['GB-ENG', 2033, '01-03 04-15 04-18 05-02 05-30 08-29 12-26 12-27'],
    ['NL', 2026, '01-01 04-06 04-27 05-14 05-25 12-25'],
  ])('%s %i: the holidays on weekdays are %s', (calendar, year, days) => {
    const found: string[] = [];
    for (let day = `${year}-01-01`; day.startsWith(String(year)); day = addDays(day, 1)) {
      const weekend = new Date(day).getUTCDay() % 6 === 0;
      if (weekend) expect(isDayOff(day, calendar)).toBe(true);
      else if (isDayOff(day, calendar)) found.push(day.slice(5));
    }
    expect(found.join(' ')).toBe(days);
  });

  test.each(['1981-04-20', '2008-03-24', '2038-04-26', '2049-04-19', '2076-04-20', '2285-03-23'])(
    '%s is an Easter Monday',
    (day) => {
      expect(isDayOff(day, 'NL')).toBe(true);
      expect(isDayOff(addDays(day, 7), 'US-CO')).toBe(false);
      expect(isDayOff(addDays(day, -3), 'US-NC')).toBe(true);
    },
  );
});
