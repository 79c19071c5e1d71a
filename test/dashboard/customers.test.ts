/** The logic of the customers pages: forms, imports, exports, and template fields. */
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
import { formatMessageKind, kinds } from '../../dashboard/src/messages.ts';
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

  test('converted to form values and back are unchanged', () => {
    const { since, revision, channels, warnings, ...fields } = settings;
    expect(SettingsInput.parse(toSettingsBody(toSettingsValues(settings)))).toEqual(fields);
  });

  test.each([
    ['12 hours', 'maxAgeHours'],
    ['', 'maxAgeHours'],
  ])('the text “%s” is rejected as a number', (maxAgeHours, field) => {
    const checked = SettingsInput.safeParse(toSettingsBody({ ...toSettingsValues(settings), maxAgeHours }));
    expect(checked.error?.issues.map(({ path }) => path.join('.'))).toEqual([field]);
  });

  test.each([
    [{ enabled: false, dryRun: false }, { enabled: true, dryRun: false }, /receive e-mails and SMS/],
    [{ enabled: true, dryRun: true }, { enabled: true, dryRun: false }, /receive e-mails and SMS/],
    [{ enabled: true, dryRun: false }, { enabled: false, dryRun: false }, /Waiting messages are not sent/],
  ])('a change from %j to %j requires confirmation', (before, after, text) => {
    expect(getConfirmation('acme', before, after)?.body).toMatch(text);
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
  ])('a change from %j to %j requires no confirmation', (before, after) => {
    expect(getConfirmation('acme', before, after)).toBeUndefined();
  });
});

describe('Recipients', () => {
  test('the body of a new recipient contains only given fields', () => {
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

  test('a scope without a value is rejected instead of covering all jobs', () => {
    const values = { ...toRecipientValues(), email: 'ann@example.com', scope: 'orderGroup' as const };
    const checked = NewRecipient.safeParse(toNewRecipient(values));
    expect(checked.error?.issues.map(({ path }) => path.join('.'))).toEqual(['orderGroup']);
  });

  test('the body of a change contains only edited fields, and `null` for cleared ones', () => {
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

  test('match a search if they contain all its words, ignoring case', () => {
    const bob = { ...ann, id: 'bob', name: 'Bob', orderGroup: null };
    expect(filterRecipients([ann, bob], ' SPRING ann ')).toEqual([ann]);
    expect(filterRecipients([ann, bob], 'example.com')).toEqual([ann, bob]);
    expect(filterRecipients([ann, bob], 'spring bob')).toEqual([]);
  });

  test('exports escape spreadsheet formulas and omit the API user', () => {
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

  test('of a large file are sent in several requests below the limit, with line numbers of the whole file', async () => {
    const text = head + rows(5_000);
    const sent: string[] = [];
    const progress: number[] = [];
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
      ({ done, total }) => progress.push(done / total),
    );
    expect(sent.length).toBeGreaterThan(1);
    for (const csv of sent) {
      expect(Buffer.byteLength(JSON.stringify({ csv, dryRun: true }))).toBeLessThan(100_000);
      expect(csv.startsWith(head)).toBe(true);
    }
    expect(sent.map((csv) => csv.slice(head.length)).join('')).toBe(rows(5_000));
    expect(report).toMatchObject({ created: sent.length, updated: 2 * sent.length });
    // The first row of each part, by its line in the file.
    const lines = text.split('\n');
    expect(report.invalidRows.map(({ line }) => lines[line - 1])).toEqual(
      sent.map((csv) => csv.split('\n')[1]),
    );
    expect(progress.at(-1)).toBe(1);
    expect(progress).toEqual([...progress].sort((a, b) => a - b));
  });

  test('of a file that is empty or not UTF-8 fail with a message', () => {
    expect(readCsvFile(new Uint8Array([0x41, 0xe9, 0x42]))).toEqual({
      problem: expect.stringContaining('CSV UTF-8'),
    });
    expect(readCsvFile(new Uint8Array())).toEqual({ problem: expect.stringContaining('empty') });
  });
});

test('the name of a message does not read like its state', () => {
  expect(formatMessageKind('dispatched')).toBe('Dispatch message');
  expect(formatMessageKind('note')).toBe('Note');
});

describe('Templates', () => {
  const docs = readFileSync('docs/notifications.md', 'utf8');
  const names = (of: string): string[] => {
    const table = docs.slice(docs.indexOf(of)).split('\n\n')[0] ?? '';
    return [...table.matchAll(/^\| `?(\w+)`? \|/gm)].map(([, name]) => name ?? '').slice(1);
  };

  test('have the same fields as in the API', () => {
    expect(templateFields.email.map(({ name }) => name)).toEqual(Object.keys(emailTemplateSchema.shape));
    expect(templateFields.sms.map(({ name }) => name)).toEqual(Object.keys(smsTemplateSchema.shape));
  });

  test.each(
    templateFields.email
      .filter(({ initialText }) => initialText !== undefined)
      .map((field) => [field.name, field.initialText]),
  )('the initial text of %s is a valid template', (name, initialText) => {
    for (const kind of kinds) {
      const place = { kind, channel: 'email', locale: 'de' } as const;
      expect(checkTemplate(place, { [name]: initialText })).toEqual([]);
    }
  });

  test('have the variables of the documentation', () => {
    expect(names('| variable | |')).toEqual(Object.keys(templateVariables.sms));
  });
});
