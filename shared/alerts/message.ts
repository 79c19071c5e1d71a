/** Messages of alert rules: the text of e-mails, and the bodies that Slack, Teams and other receivers expect. Pure. */
import { escapeHtml } from '../html.ts';
import { type AlertRuleRecord, conditions } from './rule-input.ts';
import type { AlertReport } from './state.ts';

/** Subject of a message. */
export interface AlertMessage {
  readonly report: AlertReport | 'test';
  readonly region: string;
  readonly id: string;
  readonly rule: AlertRuleRecord;
  readonly value: number | null;
  /** Start of the status (epoch ms). `null`: not known. */
  readonly since: number | null;
  /** Address of the dashboard. `null`: the message contains no link. */
  readonly dashboardUrl: string | null;
}

const TITLES = { firing: 'Alert', reminder: 'Still firing', resolved: 'Resolved', test: 'Test' };

/** Returns the title in one line. */
export function formatTitle({ report, rule, region }: AlertMessage): string {
  return `[${TITLES[report]}] ${rule.name.replace(/\s+/g, ' ')} (${region.toUpperCase()})`;
}

/** Returns the lines of the text. */
export function formatLines(message: AlertMessage): string[] {
  const { report, rule, value, since } = message;
  const { name, unit } = conditions[rule.condition];
  const format = (amount: number) =>
    `${amount.toLocaleString('en')} ${amount === 1 ? unit.replace(/s$/, '') : unit}`;
  const limit = format(rule.threshold);
  const current = value === null ? 'not known' : format(value);
  const at =
    since === null ? '' : ` since ${new Date(since).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
  const status = {
    firing: `Firing${at}.`,
    reminder: `Firing${at}.`,
    resolved: 'The rule no longer fires.',
    test: 'This is a test. The rule can send messages to this address.',
  };
  return [
    status[report],
    `${name}: ${current} (threshold: ${limit}).`,
    ...(rule.accounts === null ? [] : [`Accounts: ${listNames(rule.accounts)}.`]),
  ];
}

const listNames = (names: readonly string[]): string =>
  names.length > 10 ? `${names.slice(0, 10).join(', ')} and ${names.length - 10} more` : names.join(', ');

const escapeSlack = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/** Returns the JSON body for a kind of target. */
export function toBody(kind: 'slack' | 'teams' | 'webhook', message: AlertMessage): object {
  const [title, lines] = [formatTitle(message), formatLines(message)];
  const { dashboardUrl, report, region, id, rule, value, since } = message;
  switch (kind) {
    case 'slack': {
      const text = [
        `*${escapeSlack(title)}*`,
        ...lines.map(escapeSlack),
        ...(dashboardUrl === null ? [] : [`<${dashboardUrl}|Open the dashboard>`]),
      ];
      return {
        text: escapeSlack(title),
        blocks: [{ type: 'section', text: { type: 'mrkdwn', text: text.join('\n') } }],
      };
    }
    case 'teams':
      return {
        type: 'message',
        attachments: [
          {
            contentType: 'application/vnd.microsoft.card.adaptive',
            content: {
              $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
              type: 'AdaptiveCard',
              version: '1.4',
              body: [
                { type: 'TextBlock', text: title, weight: 'Bolder', size: 'Medium', wrap: true },
                ...lines.map((text) => ({ type: 'TextBlock', text, wrap: true })),
              ],
              actions:
                dashboardUrl === null
                  ? []
                  : [{ type: 'Action.OpenUrl', title: 'Open the dashboard', url: dashboardUrl }],
            },
          },
        ],
      };
    case 'webhook':
      return {
        type: `alert.${report}`,
        ...{ rule: id, name: rule.name, region, condition: rule.condition, threshold: rule.threshold, value },
        ...{ accounts: rule.accounts, since: since === null ? null : new Date(since).toISOString() },
        ...{ text: [title, ...lines].join('\n'), dashboardUrl },
      };
  }
}

/** Returns an e-mail. */
export function toEmail(message: AlertMessage): {
  readonly subject: string;
  readonly text: string;
  readonly html: string;
} {
  const { dashboardUrl } = message;
  const lines = formatLines(message);
  return {
    subject: formatTitle(message),
    text: [...lines, ...(dashboardUrl === null ? [] : ['', dashboardUrl])].join('\n'),
    html: [
      ...lines.map((line) => `<p>${escapeHtml(line)}</p>`),
      ...(dashboardUrl === null
        ? []
        : [`<p><a href="${escapeHtml(dashboardUrl)}">Open the dashboard</a></p>`]),
    ].join('\n'),
  };
}
