/** The sites of the browser tests. */
import { expect, test } from 'vitest';
import { scriptedSite } from '../support/browser.ts';

const site = scriptedSite({
  prepare: (world) => void world.addAccount({ region: 'nz', name: 'kiwi' }),
});

const getStatus = async (job: number): Promise<string | null> => {
  const { jobs } = await site.api<{ jobs: { jobNumber: number; status: string }[] }>('/accounts/acme/jobs');
  return jobs.find(({ jobNumber }) => jobNumber === job)?.status ?? null;
};

test('changes of a simulated ordering API are displayed at once, and still exist after a restart', async () => {
  const job = site.account.createJob({ status: 'Scheduled' });
  await expect.poll(() => getStatus(job)).toBe('Scheduled');
  site.account.setStatus(job, 'In production');
  await expect.poll(() => getStatus(job)).toBe('In production');
  const { url } = site;
  await site.stop();
  await expect(fetch(url)).rejects.toThrow();
  await site.start();
  expect(site.url).toBe(url);
  expect(await getStatus(job)).toBe('In production');
});

test('webhooks are accepted, or rejected as the test configures', async () => {
  site.receiver.answer = () => ({ status: 503 });
  const body = { region: 'us', url: site.receiver.url, accounts: ['acme'] };
  const { endpoint } = await site.api<{ endpoint: { id: string } }>('/endpoints', { body });
  site.account.createJob({ description: 'Crest' });
  await expect.poll(() => site.receiver.requests.some((one) => one.body.includes('Crest'))).toBe(true);
  type Deliveries = { deliveries: { outcome: string }[] };
  const deliveries = () => site.api<Deliveries>(`/endpoints/${endpoint.id}/deliveries`);
  await expect.poll(async () => (await deliveries()).deliveries.length).toBeGreaterThan(0);
});

test('a key of a role has no further permissions', async () => {
  const { key } = await site.makeKey('read', ['acme']);
  await site.api('/accounts/acme', { key });
  await expect(site.api('/accounts/kiwi', { key })).rejects.toThrow(/404|403/);
  await expect(site.api('/accounts/acme/pause', { method: 'POST', key })).rejects.toThrow('403');
});
