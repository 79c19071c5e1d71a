/** Messages of alert rules without a link, in cells whose dashboard has no known address. */
import { expect, it } from 'vitest';
import { type AlertMessage, toBody, toEmail } from '../../shared/alerts/message.ts';

const message: AlertMessage = {
  ...{ report: 'firing', region: 'us', id: 'late', value: 7, since: null, dashboardUrl: null },
  rule: {
    ...{ name: 'Late jobs', condition: 'late_jobs', threshold: 5, accounts: null },
    ...{ forMinutes: 0, repeatMinutes: null, notifyResolved: true, quietHours: null, enabled: true },
  },
};

it.each(['slack', 'teams', 'webhook'] as const)(
  'a message to %s contains no link without an address',
  (kind) => {
    const body = JSON.stringify(toBody(kind, message));
    expect(body).toContain('Late jobs: 7 jobs');
    expect(body).not.toMatch(/Open the dashboard|null\|/);
    expect(JSON.stringify(toBody(kind, { ...message, dashboardUrl: 'https://desk.example/' }))).toContain(
      'https://desk.example/',
    );
  },
);

it('an e-mail contains no link without an address', () => {
  const { text, html } = toEmail(message);
  expect(`${text}${html}`).not.toMatch(/null|href/);
});
