/** What the dashboard's pages about customers decide by themselves: forms, imports and exports, what templates can hold. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { importInParts, readCsvFile } from '../../dashboard/src/customers/import.ts';
import {
  filterRecipients,
  type Recipient,
  toCsv,
  toNewRecipient,
  toRecipientChange,
  toRecipientValues,
} from '../../dashboard/src/customers/recipients.ts';
import {
  getConfirmation,
  type Settings,
  toSettingsBody,
  toSettingsValues,
} from '../../dashboard/src/customers/settings.ts';
import { templateFields, templateVariables } from '../../dashboard/src/customers/template-fields.ts';
import { kinds } from '../../dashboard/src/messages.ts';
import {
  NewRecipient,
  RecipientUpdate,
  SettingsInput,
} from '../../shared/notifications/notification-input.ts';
import { checkTemplate } from '../../shared/notifications/render.ts';
import { emailTemplateSchema, smsTemplateSchema } from '../../shared/notifications/template.ts';

const ann: Recipient = {
  ...{ id: 'ann', name: 'Ann Lee', email: 'ann@example.com', mobile: null },
  ...{ orderGroup: 'Spring', orderNumber: null, jobNumber: null, locale: null, zone: null },
  ...{ channels: ['email'], kinds: ['dispatched', 'tracking'], paused: false, source: 'manual' },
  ...{ createdAt: '2026-11-20T10:00:00.000Z', revision: 3 },
};

describe('Settings', () => {
  const settings: Settings = {
    ...{ enabled: true, since: null, dryRun: true, ownUser: false, windowSeconds: 300, maxAgeHours: 24 },
    ...{ locale: 'en-GB', zone: 'Europe/London', replyTo: null, revision: 4, channels: [], warnings: [] },
    branding: { name: 'Acme', logoUrl: null, color: '#1d4ed8', website: null, footer: null },
    sms: { enabled: false, senderId: null, monthlySegments: 1000, quietHours: null },
  };

  test('saved as they are read say the same', () => {
    const { since, revision, channels, warnings, ...said } = settings;
    expect(SettingsInput.parse(toSettingsBody(toSettingsValues(settings)))).toEqual(said);
  });

  test.each([
    ['12 hours', 'maxAgeHours'],
    ['', 'maxAgeHours'],
  ])('a number that is typed in as “%s” is refused by the check', (maxAgeHours, field) => {
    const checked = SettingsInput.safeParse(toSettingsBody({ ...toSettingsValues(settings), maxAgeHours }));
    expect(checked.error?.issues.map(({ path }) => path.join('.'))).toEqual([field]);
  });

  test.each([
    [{ enabled: false, dryRun: false }, { enabled: true, dryRun: false }, /get real e-mails/],
    [{ enabled: true, dryRun: true }, { enabled: true, dryRun: false }, /get real e-mails/],
    [{ enabled: true, dryRun: false }, { enabled: false, dryRun: false }, /not sent either/],
  ])('from %j to %j is asked about', (before, after, words) => {
    expect(getConfirmation('acme', before, after)?.body).toMatch(words);
  });

  test.each([
    [
      { enabled: true, dryRun: false },
      { enabled: true, dryRun: false },
    ],
    [
      { enabled: false, dryRun: false },
      { enabled: true, dryRun: true },
    ],
  ])('from %j to %j is not: nobody gets or misses anything by it', (before, after) => {
    expect(getConfirmation('acme', before, after)).toBeUndefined();
  });
});

describe('Recipients', () => {
  test('a new one says only what was typed in', () => {
    const values = {
      ...toRecipientValues(),
      email: ' ann@example.com ',
      scope: 'jobNumber' as const,
      jobNumber: '17',
    };
    const body = toNewRecipient(values);
    expect(body).toEqual({
      ...{ email: ' ann@example.com ', kinds: ['dispatched', 'tracking'], paused: false, jobNumber: 17 },
    });
    expect(NewRecipient.safeParse(body).success).toBe(true);
  });

  test('what they are for and was not named is refused, not taken for all jobs', () => {
    const values = { ...toRecipientValues(), email: 'ann@example.com', scope: 'orderGroup' as const };
    const checked = NewRecipient.safeParse(toNewRecipient(values));
    expect(checked.error?.issues.map(({ path }) => path.join('.'))).toEqual(['orderGroup']);
  });

  test('of one that is changed only what is not as it was is sent, and what was emptied is taken away', () => {
    const values = toRecipientValues(ann);
    expect(toRecipientChange(values, ann)).toEqual({});
    expect(toRecipientChange({ ...values, name: '', paused: true }, ann)).toEqual({
      name: null,
      paused: true,
    });
    expect(toRecipientChange({ ...values, scope: 'orderNumber', orderNumber: 'PO-1' }, ann)).toEqual({
      ...{ orderGroup: null, orderNumber: 'PO-1', jobNumber: null },
    });
    expect(toRecipientChange({ ...values, scope: 'account' }, ann)).toEqual({
      ...{ orderGroup: null, orderNumber: null, jobNumber: null },
    });
    expect(RecipientUpdate.safeParse(toRecipientChange({ ...values, channels: 'sms' }, ann)).data).toEqual({
      channels: ['sms'],
    });
  });

  test('are found by all words of what was typed in, whatever the capitals', () => {
    const bob = { ...ann, id: 'bob', name: 'Bob', orderGroup: null };
    expect(filterRecipients([ann, bob], ' SPRING ann ')).toEqual([ann]);
    expect(filterRecipients([ann, bob], 'example.com')).toEqual([ann, bob]);
    expect(filterRecipients([ann, bob], 'spring bob')).toEqual([]);
  });

  test('exported are no formulas of a spreadsheet, and not the ordering service’s own user', () => {
    const own = { ...ann, id: 'own-user', source: 'upstream' as const };
    const rows = toCsv([{ ...ann, name: '=HYPERLINK("https://x.example","y")' }, own]).split('\n');
    expect(rows).toHaveLength(3);
    expect(rows[1]).toContain(`"'=HYPERLINK(""https://x.example"",""y"")"`);
  });
});

describe('Imports', () => {
  const head = 'name,email\n';
  const rows = (count: number): string =>
    Array.from({ length: count }, (_, at) => `Customer ${at},c${at}@example.com\n`).join('');

  test('of a large file go in several requests below the limit, with the lines of the whole file', async () => {
    const text = head + rows(5_000);
    const sent: string[] = [];
    const told: number[] = [];
    const report = await importInParts(
      text,
      async (csv) => {
        sent.push(csv);
        return {
          created: 1,
          updated: 2,
          unchanged: 3,
          invalidRows: [{ line: 2, field: 'email', reason: 'x' }],
        };
      },
      ({ done, total: of }) => told.push(done / of),
    );
    expect(sent.length).toBeGreaterThan(1);
    for (const csv of sent) {
      expect(Buffer.byteLength(JSON.stringify({ csv, dryRun: true }))).toBeLessThan(100_000);
      expect(csv.startsWith(head)).toBe(true);
    }
    expect(sent.map((csv) => csv.slice(head.length)).join('')).toBe(rows(5_000));
    expect(report).toMatchObject({ created: sent.length, updated: 2 * sent.length });
    // The first row of each part, where it stands in the file.
    const lines = text.split('\n');
    expect(report.invalidRows.map(({ line }) => lines[line - 1])).toEqual(
      sent.map((csv) => csv.split('\n')[1]),
    );
    expect(told.at(-1)).toBe(1);
    expect(told).toEqual([...told].sort((a, b) => a - b));
  });

  test('a file in an older encoding, or an empty one, is told so', () => {
    expect(readCsvFile(new Uint8Array([0x41, 0xe9, 0x42]))).toEqual({
      problem: expect.stringContaining('CSV UTF-8'),
    });
    expect(readCsvFile(new Uint8Array())).toEqual({ problem: expect.stringContaining('empty') });
  });
});

describe('What a template can hold', () => {
  const docs = readFileSync('docs/notifications.md', 'utf8');
  const names = (of: string): string[] => {
    const table = docs.slice(docs.indexOf(of)).split('\n\n')[0] ?? '';
    return [...table.matchAll(/^\| `?(\w+)`? \|/gm)].map(([, name]) => name ?? '').slice(1);
  };

  test('are the fields that the API takes', () => {
    expect(templateFields.email.map(({ name }) => name)).toEqual(Object.keys(emailTemplateSchema.shape));
    expect(templateFields.sms.map(({ name }) => name)).toEqual(Object.keys(smsTemplateSchema.shape));
  });

  test.each(
    templateFields.email
      .filter(({ initialText: begins }) => begins !== undefined)
      .map((field) => [field.name, field.initialText]),
  )('%s begins with something that works', (name, begins) => {
    for (const kind of kinds) {
      const place = { kind, channel: 'email', locale: 'de' } as const;
      expect(checkTemplate(place, { [name]: begins })).toEqual([]);
    }
  });

  test('are the variables of the documentation', () => {
    expect(names('| variable | |')).toEqual(templateVariables.map(({ name }) => name));
  });
});
