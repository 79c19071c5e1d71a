/** Requests of the job search of the dashboard: their number in an export, and their repetition. */
import { expect, test, vi } from 'vitest';
import { ApiError, type Client } from '../../client/index.ts';
import { fetchJobs } from '../../dashboard/src/jobs/requests.ts';
import { JobSearch, type ListedJob } from '../../dashboard/src/jobs/search.ts';

const job = (jobNumber: number): ListedJob => ({
  ...{ jobNumber, status: 'Scheduled', description: null, orderNumber: null, orderGroup: null },
  ...{ orderGroupSequence: null, originCode: null, dateDue: '2026-03-05', mustDate: null, dateOut: null },
  ...{ tracking: [], phase: 'listed', outcome: null, late: false },
});

test('an export of many accounts needs about one request for each', () => {
  const accounts = Array.from({ length: 100 }, (_, at) => ({ id: `a${at}`, region: 'us' }));
  const jobs = Array.from({ length: 119 }, (_, at) => job(at + 1));
  const search = new JobSearch({}, accounts);
  search.requestRows(10_000);
  let sent = 0;
  for (let requests = search.nextRequests(); requests.length > 0; requests = search.nextRequests()) {
    sent += requests.length;
    for (const request of requests) {
      const { after = '0', limit } = request;
      const end = Number(after) + limit;
      search.addPage(request, {
        jobs: jobs.slice(Number(after), end),
        next: end < jobs.length ? String(end) : null,
      });
    }
  }
  expect(search.getResult().rows.length).toBeGreaterThan(10_000);
  expect(sent).toBeLessThan(150);
});

test('a request for jobs is repeated after a transient error, at most three times', async () => {
  const headers = { 'retry-after': '0' };
  const unavailable = new ApiError('Busy.', new Response(null, { status: 503, headers }), {});
  const page = { jobs: [], next: null };
  const get = vi.fn().mockRejectedValueOnce(unavailable).mockResolvedValueOnce(page);
  const [request] = new JobSearch({}, [{ id: 'a', region: 'us' }]).nextRequests();
  if (!request) throw new Error('No request.');
  const api = { get } as unknown as Client;
  expect(await fetchJobs(api, request)).toBe(page);
  get.mockReset().mockRejectedValue(unavailable);
  await expect(fetchJobs(api, request)).rejects.toThrow('Busy.');
  expect(get).toHaveBeenCalledTimes(4);
});
