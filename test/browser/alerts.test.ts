/** Alert rules in the dashboard: created, tested, changed and deleted. */
import { expect, test } from 'vitest';
import { axe, scriptedSite, signedIn } from '../support/browser.ts';

const site = scriptedSite();

test('a rule is created, tested, changed and deleted', async () => {
  const page = await signedIn(site, '/setup/alert-rules');
  await page.getByText('No alert rules yet.').waitFor();
  await page.getByRole('link', { name: 'New alert rule' }).click();
  await page.getByLabel(/^Name/).fill('Late jobs');
  await page.getByLabel(/^Threshold/).fill('3');
  await page.getByLabel('Send by').selectOption('slack');
  await page.getByLabel(/^URL/).fill(`${site.receiver.url}/c4n4ry`);
  await page.getByLabel('Use quiet hours').check();
  await page.getByLabel(/^Time zone/).fill('Europe/London');
  await axe(page);
  await page.getByRole('button', { name: 'Create alert rule' }).click();
  await page.getByRole('heading', { name: 'Late jobs', level: 1 }).waitFor();
  const [rule] = (await site.api<{ alertRules: { id: string; target: object }[] }>('/alert-rules'))
    .alertRules;
  expect(rule).toMatchObject({
    ...{ condition: 'late_jobs', threshold: 3, accounts: null },
    quietHours: { zone: 'Europe/London', from: '21:00', to: '08:00', action: 'defer' },
    target: { kind: 'slack', host: new URL(site.receiver.url).host },
  });

  await page.getByRole('button', { name: 'Send test message' }).click();
  await page.getByRole('alert').filter({ hasText: 'Test message sent.' }).waitFor();
  expect(site.receiver.requests.at(-1)?.body).toContain('[Test] Late jobs (US)');
  expect(await page.content()).not.toContain('c4n4ry');

  await page.getByLabel(/^Threshold/).fill('7');
  await page.getByRole('button', { name: 'Save changes' }).click();
  await page.getByRole('alert').filter({ hasText: 'Alert rule Late jobs saved.' }).waitFor();
  await axe(page);
  await page.getByRole('link', { name: 'Alert rules' }).click();
  await page.getByText('Late jobs > 7 jobs').waitFor();
  await axe(page);

  await page.getByRole('link', { name: 'Late jobs' }).click();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click();
  await page.getByText('No alert rules yet.').waitFor();
});

test('a key of role read sees the rules, and cannot change them', async () => {
  const target = { kind: 'webhook', url: site.receiver.url };
  const body = { id: 'seen', region: 'us', name: 'Dead', condition: 'dead_events', threshold: 0, target };
  await site.api('/alert-rules', { body });
  const { key } = await site.makeKey('read');
  const page = await signedIn(site, '/setup/alert-rules', { key });
  await page.getByRole('link', { name: 'Dead' }).click();
  await page.getByRole('heading', { name: 'Dead', level: 1 }).waitFor();
  expect(await page.getByRole('button', { name: /Save|Delete|Send test/ }).count()).toBe(0);
});
