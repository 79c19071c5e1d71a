/**
 * Texts of notifications: built-in texts, customers' templates, length limits and the mail layout.
 * One file: its tests share the notice and the rendering of mail and SMS.
 */
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { filters } from 'liquidjs';
import { describe, expect, test, vi } from 'vitest';
import type { Branding } from '../../shared/notifications/records.ts';
import { checkTemplate, renderEmail, renderSms } from '../../shared/notifications/render.ts';
import type { Rendered, RenderedEmail, RenderInput } from '../../shared/notifications/render-types.ts';
import { edgeNotices, sampleBranding, sampleNotice } from '../../shared/notifications/samples.ts';
import { measureSms, smsText } from '../../shared/notifications/sms-text.ts';
import {
  emailTemplateSchema,
  smsTemplateSchema,
  type Template,
} from '../../shared/notifications/template.ts';
import {
  contrast,
  oneLine,
  parseLink,
  textColorOn,
  toView,
} from '../../shared/notifications/template-variables.ts';
import {
  defaultTemplate,
  deleteTemplate,
  listTemplates,
  readTemplate,
  resolveTemplate,
  saveTemplate,
} from '../../shared/notifications/templates.ts';
import {
  channels,
  type JobFacts,
  type Locale,
  locales,
  type MessageKind,
  type NoticeContent,
  noticeKinds,
} from '../../shared/notifications/types.ts';
import { keys } from '../../shared/storage/schema.ts';
import { anyCharacter, runs } from '../support/runs.ts';
import { eachTable } from '../support/tables.ts';

const kinds = noticeKinds;
const UNSUBSCRIBE = 'https://notify.example.com/v1/unsubscribe/token';

describe('built-in texts', () => {
  for (const kind of kinds) {
    for (const locale of locales) {
      test(`${kind} in ${locale} can be rendered for any notice, as e-mail and SMS`, () => {
        for (const content of [sampleNotice(kind), ...edgeNotices(kind)]) {
          const mail = email({ content, locale });
          expect(mail.subject).not.toMatch(/\s\s|\s[.,]|\{|\}|null|undefined/);
          expect(mail.html).toContain(`href="${UNSUBSCRIBE}"`);
          expect(mail.text).toContain(`\n${UNSUBSCRIBE}\n`);
          expect(mail.html + mail.text).not.toMatch(/\bnull\b|undefined|\[object|NaN/);
          expect(sms({ content, locale }).segments).toBeLessThanOrEqual(2);
        }
      });

      test(`an SMS of ${kind} in ${locale} needs UCS-2 only for customers' texts`, () => {
        expect(sms({ content: sampleNotice(kind), locale }).encoding).toBe('GSM-7');
      });

      // An account has no own text for corrections.
      if (kind === 'reinstated') continue;
      test(`${kind} in ${locale} is a template that can be saved as a custom one`, () => {
        for (const channel of channels) {
          const template = defaultTemplate(kind, channel, locale);
          const schema = channel === 'email' ? emailTemplateSchema : smsTemplateSchema;
          expect(schema.parse(template)).toEqual(template);
          expect(checkTemplate({ kind, channel, locale }, template)).toEqual([]);
        }
      });
    }
  }

  test('singular and plural follow the language', () => {
    const [first] = sampleNotice('dispatched').jobs;
    const [one, two] = [facts(first), { ...facts(first), jobNumber: 2 }];
    const intro = (locale: Locale, ...jobs: JobFacts[]): string =>
      email({ content: { ...sampleNotice('dispatched'), jobs }, locale }).text.split('\n\n')[3] ?? '';
    expect(intro('en-GB', one)).toBe(
      'Your print job was dispatched on Thursday 19\u00a0November.'.replace('day 19', 'day\u00a019'),
    );
    expect(intro('en-GB', one, two)).toContain('2 print jobs were dispatched');
    expect(intro('de', one)).toContain('Ihr Druckauftrag wurde am Donnerstag, 19.\u00a0November, versandt.');
    expect(intro('de', one, two)).toContain('2 Druckaufträge wurden am');
    expect(intro('fr', one)).toContain('Votre article a été expédié le jeudi\u00a019\u00a0novembre.');
    expect(intro('fr', one, two)).toContain('2 articles ont été expédiés le');
  });

  test('English locales differ in dates, words and spelling', () => {
    const subjects = (kind: MessageKind): string[] =>
      locales.slice(0, 4).map((locale) => email({ content: sampleNotice(kind), locale }).subject);
    expect(subjects('due_date_changed').map((subject) => subject.split(' expected to ')[1])).toEqual([
      'ship by Tuesday, November 24',
      'be dispatched by Tuesday 24 November',
      'be dispatched by Tuesday 24 November',
      'be dispatched by Tuesday, 24 November',
    ]);
    expect(subjects('cancelled').map((subject) => subject.split(' ').at(-1))).toEqual([
      'canceled',
      'cancelled',
      'cancelled',
      'cancelled',
    ]);
  });
});

describe('parcels', () => {
  test('a parcel of several jobs is listed once, with a button and its jobs', () => {
    const jobs = Array.from({ length: 7 }, (_, index) =>
      job({
        jobNumber: index + 1,
        orderNumber: `PO-${index + 1}`,
        tracking: [parcel('1Z7', 'https://t.example.com/1Z7')],
      }),
    );
    const { html, text } = email({ content: notice({ jobs }) });
    expect(html.split('href="https://t.example.com/1Z7"')).toHaveLength(2);
    expect(html.split('Track 1Z7')).toHaveLength(2);
    expect(text.split('https://t.example.com/1Z7')).toHaveLength(2);
    for (const { orderNumber } of jobs) expect(html).toContain(`>${orderNumber}<`);
    expect(sms({ content: notice({ jobs }) }).text.split('https:')).toHaveLength(2);
  });

  test('a tracking link names the carrier that its host reveals, and no other', () => {
    const links = [
      ['https://www.ups.com/track?tracknum=1Z8', 'Track 1Z8 with UPS'],
      ['https://www.dhl.de/de/privatkunden.html?piececode=1Z8', 'Track 1Z8 with DHL'],
      ['https://auspost.com.au/mypost/track/1Z8', 'Track 1Z8 with Australia Post'],
      ['https://ups.com.example/1Z8', 'Track 1Z8'],
      ['https://groups.com/1Z8', 'Track 1Z8'],
    ] as const;
    for (const [link, label] of links) {
      const jobs = [job({ tracking: [parcel('1Z8', link)] })];
      expect(email({ content: notice({ jobs }) }).text).toContain(`${label}:\n${link}`);
    }
  });

  test('a mail ends with the name of the sender, and invites replies only where replies are read', () => {
    const content = notice({});
    const text = (replyTo: string | null): string => email({ content, replyTo }).text;
    expect(text(null)).toContain('\n\nThank you,\nNorthlight Print\n\n-- \n');
    expect(text(null)).not.toContain('Questions?');
    expect(text('help@example.com')).toContain('\n\nQuestions? Just reply to this email.\n\nThank you,');
  });

  test('a parcel is identified by its number, else by its link, and has its link wherever it was given', () => {
    const link = 'https://t.example.com/1Z8';
    const jobs = [
      job({ jobNumber: 1, tracking: [parcel('1Z8', null)] }),
      job({ jobNumber: 2, tracking: [parcel(' 1Z8 ', link), parcel(null, null)] }),
      job({ jobNumber: 3, tracking: [parcel(null, link)] }),
      job({ jobNumber: 4, tracking: [parcel(null, 'https://t.example.com/other')] }),
    ];
    const { shipments } = view(notice({ jobs }));
    expect(shipments.map(({ parcels, jobs: held }) => [parcels, held.map((one) => one.number)])).toEqual([
      [[{ number: '1Z8', link, carrier: null }], [1, 2, 3]],
      [[{ number: null, link: 'https://t.example.com/other', carrier: null }], [4]],
    ]);
  });

  test('without a link the number is plain text; jobs without tracking are listed separately', () => {
    const jobs = [job({ jobNumber: 1, tracking: [parcel('1Z9', null)] }), job({ jobNumber: 2 })];
    const { html, text } = email({ content: notice({ jobs }) });
    expect(text).toContain('\nTracking number: 1Z9\n');
    expect(text).toMatch(/No tracking number yet\n-+\n\n\* Job 2\n/);
    expect(html).toContain('Tracking number: 1Z9');
    expect(html.match(/<a\s/g)).toHaveLength(2);
  });

  test.each([
    ['javascript:alert(1)'],
    ['JaVaScRiPt:alert(1)'],
    ['java\nscript:alert(1)'],
    [' data:text/html,<script>1</script>'],
    ['ftp://t.example.com/1'],
    ['//t.example.com/1'],
    ['t.example.com/1'],
    ['https://bank.example.com@t.example.com/1'],
    [`https://t.example.com/${'x'.repeat(2000)}`],
  ])('%s is not a link', (link) => {
    const { html, text } = email({ content: notice({ jobs: [job({ tracking: [parcel('1Z1', link)] })] }) });
    expect([...html.matchAll(/href="([^"]*)"/g)].map(([, href]) => href)).toEqual([
      'https://www.example.com/',
      UNSUBSCRIBE,
    ]);
    expect(text).not.toContain(link.trim());
    expect(text).toContain('Tracking number: 1Z1');
  });

  test('a link cannot escape its attribute or its line', () => {
    expect(parseLink('https://t.example.com/a"onclick="x\r\n\tb <c>')).toBe(
      'https://t.example.com/a%22onclick=%22xb%20%3Cc%3E',
    );
    expect(parseLink("https://t.example.com/?q='><b>")).not.toMatch(/['"<>\s]/);
  });
});

describe('dates', () => {
  const said = (dateOut: string | null, locale: Locale = 'en-US', zone = 'America/New_York'): string | null =>
    view(notice({ jobs: [job({ dateOut })] }), locale, zone).date_out?.replaceAll('\u00a0', ' ') ?? null;

  test('a time is formatted in the recipient’s zone; a time without offset is unchanged', () => {
    expect(said('2026-11-20T02:30:00Z')).toBe('Thursday, November 19');
    expect(said('2026-11-20T02:30:00Z', 'en-US', 'Pacific/Auckland')).toBe('Friday, November 20');
    expect(said('2026-11-20T02:30:00')).toBe('Friday, November 20');
    expect(said('2026-11-20', 'en-GB', 'Pacific/Auckland')).toBe('Friday 20 November');
    expect(said('2026-11-20T02:30:00Z', 'en-US', 'No/Where')).toBe('Friday, November 20');
  });

  test('midnight is formatted as a day in any zone', () => {
    expect(said('2026-11-20T00:00:00-05:00', 'en-US', 'America/Los_Angeles')).toBe('Friday, November 20');
    expect(said('2026-11-20T00:00:00Z', 'en-US', 'America/Los_Angeles')).toBe('Friday, November 20');
  });

  test('a date in another year has the year, and an invalid date is omitted', () => {
    expect(said('2027-01-04T12:00:00Z')).toBe('Monday, January 4, 2027');
    expect(said('2027-01-01T12:00:00Z', 'fr')).toBe('vendredi 1er janvier 2027');
    expect(said('2026-12-01T12:00:00Z', 'fr')).toBe('mardi 1er décembre');
    expect(said('2026-12-11T12:00:00Z', 'fr')).toBe('vendredi 11 décembre');
    expect(said('soon')).toBeNull();
  });

  test('a due date that moved within a day is formatted with its times', () => {
    const moved = job({ dateDue: '2026-11-24T17:00:00', formerDateDue: '2026-11-24T12:00:00' });
    const { subject, text } = email({
      content: notice({ kind: 'due_date_changed', jobs: [moved] }),
      locale: 'de',
    });
    expect(subject).toBe('Neuer Versandtermin für Ihre Bestellung PO-1: Dienstag, 24. November, 17:00');
    expect(text.replace(/\s/g, ' ')).toContain(
      'Dienstag, 24. November, 17:00 statt Dienstag, 24. November, 12:00.',
    );
  });

  test.each(locales)('a new due date that is no date is omitted, as is its former value, in %s', (locale) => {
    const moved = job({ dateDue: 'soon', formerDateDue: 'later' });
    const input = { content: notice({ kind: 'due_date_changed', jobs: [moved] }), locale };
    const { subject, text, html } = email(input);
    for (const one of [subject, text, html, sms(input).text]) expect(one).not.toMatch(/\bnull\b|soon|later/);
  });

  test('dates that differ between jobs are listed with the jobs', () => {
    const jobs = [
      job({ jobNumber: 1, dateDue: '2026-11-24', formerDateDue: '2026-11-20' }),
      job({ jobNumber: 2, dateDue: '2026-11-25', formerDateDue: null }),
      job({ jobNumber: 3, dateDue: null, formerDateDue: '2026-11-20' }),
    ];
    const content = notice({ kind: 'due_date_changed', orderGroup: 'Spring', jobs });
    const { subject, text } = email({ content });
    expect(subject).toBe('New shipping dates for your order Spring');
    const lines = text.replaceAll('\u00a0', ' ');
    expect(lines).toContain(
      '\n  Expected to ship by Tuesday, November 24 (previously Friday,\n  November 20)\n',
    );
    expect(lines).toContain('\n  Expected to ship by Wednesday, November 25\n');
    expect(lines).toContain('\n  No shipping date (previously Friday, November 20)\n');
  });
});

describe("customers' texts", () => {
  /** A text with markup, attributes and templates. */
  const hostile = fc
    .array(
      fc.oneof(
        fc.string({ unit: 'grapheme' }),
        fc.constantFrom(
          '<script>p()</script>',
          '"><img src=x onerror=p()>',
          "' onmouseover='p()",
          '<!--',
          '-->',
          '<![endif]-->',
          '</td></table>',
          '{{ brand.name }}',
          '{% raw %}',
          '{{ 7 | times: 7 }}',
          '&lt;b&gt;',
          '\r\nBcc: all@example.com\r\n\r\n',
          '\u202e',
          '\u2066',
          '\u0000',
          '\ud800',
          '👩‍👩‍👧',
          'שלום',
        ),
      ),
      { maxLength: 6 },
    )
    .map((parts) => parts.join(' '));
  const notices = fc
    .record({
      kind: fc.constantFrom(...kinds),
      name: hostile,
      group: fc.option(hostile),
      text: fc.array(fc.tuple(hostile, hostile, hostile), { minLength: 1, maxLength: 4 }),
    })
    .map(({ kind, name, group, text }) => ({
      name,
      content: notice({
        kind,
        orderGroup: group,
        jobs: text.map(([orderNumber, description, number], index) =>
          job({
            jobNumber: index + 1,
            orderNumber,
            description,
            tracking: [parcel(number, `https://t.example.com/${index}?${number}`)],
          }),
        ),
      }),
    }));

  test('stay text: no markup, no attributes and no templates', () => {
    fc.assert(
      fc.property(notices, fc.constantFrom(...locales), ({ content, name }, locale) => {
        const branding = {
          ...sampleBranding,
          name,
          footer: `${name}\n${name}`,
          website: name,
          logoUrl: name,
        };
        const { html } = email({ content, name, locale, branding });
        for (const tag of html.match(/<[^>]*>/g) ?? []) {
          expect(tag).toMatch(
            /^<(?:!|\/?(?:html|head|title|meta|style|body|div|table|tbody|tr|td|h1|h2|a|br|strong|span|noscript|xml|o:\w+)\b)/,
          );
          // Outside of the values of attributes.
          expect(tag.replace(/"[^"]*"/g, '')).not.toMatch(/\son\w+=|'/);
        }
        expect(html).not.toMatch(/\b49\b/);
      }),
    );
  });

  test('can neither add headers nor change the direction of the following text', () => {
    fc.assert(
      fc.property(notices, fc.constantFrom(...locales), ({ content, name }, locale) => {
        const { subject, text } = email({ content, name, locale });
        // biome-ignore lint/suspicious/noControlCharactersInRegex: these must not be there.
        expect(subject).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e]/);
        expect(text).not.toMatch(/[\u202a-\u202e\u2066\u2067]/);
        for (const one of [subject, text]) {
          expect(one.split('\u2068')).toHaveLength(one.split('\u2069').length);
          expect(one.isWellFormed()).toBe(true);
        }
        // biome-ignore lint/suspicious/noControlCharactersInRegex: these must not be there.
        expect(sms({ content, name, locale }).text).not.toMatch(/[\u0000-\u001f\u202a-\u202e\u2066-\u2069]/);
      }),
    );
  });

  test('are truncated between grapheme clusters', () => {
    expect(oneLine('👩‍👩‍👧'.repeat(10), 20)).toBe(`${'👩‍👩‍👧'.repeat(2)}…`);
    expect(oneLine('e\u0301'.repeat(10), 10)).toBe(`${'e\u0301'.repeat(4)}…`);
    expect(oneLine('one two three four', 15)).toBe('one two three…');
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.integer({ min: 1, max: 40 }), (text, max) => {
        expect(oneLine(text, max).length).toBeLessThanOrEqual(max);
      }),
    );
  });

  test.each(locales)('a part of an order group is not presented as the whole, in %s', (locale) => {
    const { subject } = email({
      content: notice({ orderGroup: 'SPRING-38' }),
      locale,
    });
    expect(subject).toMatch(/^(A print job of|Ein Druckauftrag|Un article)/);
  });

  test('a French colon has a space before it, in the text version too', () => {
    const { text } = email({ content: sampleNotice('dispatched'), locale: 'fr' });
    expect(text).toContain('Se désabonner\u00a0:\n');
    expect(text).not.toMatch(/\p{L}:(\s|$)/u);
  });

  test('in right-to-left script do not reorder the surrounding text', () => {
    const { subject } = email({ content: notice({ orderGroup: 'אביב 38' }) });
    expect(subject).toBe('A print job of your order \u2068אביב 38\u2069 is on its way');
  });
});

describe('length limits', () => {
  const long = 'Größe 📦 & <mehr> — '.repeat(120);
  test.each([
    [
      '30 parcels',
      Array.from({ length: 30 }, (_, index) =>
        job({
          jobNumber: index,
          description: long,
          tracking: [parcel(`1Z${index}`, `https://t.example.com/${index}`)],
        }),
      ),
    ],
    [
      '40 jobs with 2,000 characters each',
      Array.from({ length: 40 }, (_, index) =>
        job({ jobNumber: index, orderNumber: long, description: long }),
      ),
    ],
    [
      '100 jobs with 2,000 characters each',
      Array.from({ length: 100 }, (_, index) =>
        job({ jobNumber: index, orderNumber: `PO-${index}`, description: long }),
      ),
    ],
    [
      '250 jobs in as many parcels',
      Array.from({ length: 250 }, (_, index) =>
        job({
          jobNumber: index,
          orderNumber: `SPRING-${index}`,
          tracking: [parcel(`1Z${index}`, `https://t.example.com/${index}`)],
        }),
      ),
    ],
    [
      '300 jobs in 2 parcels',
      Array.from({ length: 300 }, (_, index) =>
        job({
          jobNumber: index,
          orderNumber: `SPRING-${index}`,
          description: long,
          tracking: [parcel(`1Z${index % 2}`, null)],
        }),
      ),
    ],
  ])(
    '%s: a mail stays below the mailbox limit (102 kB), and names every job, and every parcel up to 60',
    (_, jobs) => {
      const { html, text } = email({ content: notice({ jobs, orderGroup: 'Spring' }) });
      expect(Buffer.byteLength(html)).toBeLessThan(102_400);
      const { jobs: shown, parcels } = view(notice({ jobs }));
      if (parcels.length > 60)
        expect(text).toContain('Packages 61 to 250 of 250\n-------------------------\n\nSPRING-60');
      for (const { number, link } of parcels.slice(0, 60)) {
        expect(html).toContain(link ?? number);
        expect(text).toContain(link ?? number);
      }
      for (const { order_number } of shown)
        expect(text).toContain(oneLine(order_number ?? '', 50).slice(0, 12));
    },
  );

  test('lines of the text version have at most 72 characters, except links, which stay whole', () => {
    for (const locale of locales) {
      for (const content of kinds.flatMap((kind) => [sampleNotice(kind), ...edgeNotices(kind)])) {
        for (const line of email({ content, locale }).text.split('\n')) {
          if (/https?:/.test(line)) expect(line).toMatch(/^https?:\S+$/);
          else if (/\S \S/.test(line)) expect(line.length).toBeLessThanOrEqual(72);
        }
      }
    }
  });

  test('an SMS has at most two segments, and each of its links is from the notice', () => {
    const names = fc.string({ maxLength: 120, unit: 'grapheme' });
    const character = fc.oneof(
      { arbitrary: fc.constantFrom(..."abcXYZ019-._~!$&'()*+,;=:@"), weight: 5 },
      { arbitrary: anyCharacter.map(encodeURIComponent), weight: 1 },
    );
    const encoded = fc.string({ unit: character, maxLength: 8 });
    const links = fc
      .tuple(fc.webAuthority(), fc.array(encoded, { maxLength: 3 }), fc.option(encoded))
      .map(
        ([host, path, query]) => `https://${[host, ...path].join('/')}${query === null ? '' : `?${query}`}`,
      )
      .map((url) => parseLink(url) ?? '');
    fc.assert(
      fc.property(
        fc.array(
          fc.record({
            orderNumber: names,
            description: names,
            link: fc.option(links),
            number: fc.option(names),
          }),
          { minLength: 1, maxLength: 40 },
        ),
        fc.option(names),
        fc.constantFrom(...kinds),
        fc.constantFrom(...locales),
        (rows, orderGroup, kind, locale) => {
          const jobs = rows.map(({ orderNumber, description, link, number }, index) =>
            job({ jobNumber: index, orderNumber, description, tracking: [parcel(number, link)] }),
          );
          const made = sms({ content: notice({ kind, orderGroup, jobs }), locale });
          expect(made.segments).toBeLessThanOrEqual(2);
          expect(measureSms(made.text)).toEqual({ segments: made.segments, encoding: made.encoding });
          const known = new Set(rows.flatMap(({ link }) => link ?? []));
          for (const word of made.text.split(' ')) {
            if (
              /^https?:\/\//.test(word) &&
              ![...rows].some((row) =>
                `${row.orderNumber} ${row.description} ${row.number} ${orderGroup}`.includes(word),
              )
            ) {
              expect(known).toContain(word);
            }
          }
        },
      ),
      runs(20, 200),
    );
  });

  test('an SMS of many parcels has the first links whole, and the number of the others', () => {
    const jobs = Array.from({ length: 30 }, (_, index) =>
      job({
        jobNumber: index,
        tracking: [parcel(`1Z${index}`, `https://tracking.example.com/parcels/${index}?carrier=long-name`)],
      }),
    );
    const { text, segments } = sms({ content: notice({ jobs, orderGroup: 'SPRING-38' }) });
    expect(text).toBe(
      'Northlight Print: 30 print jobs of your order SPRING-38 are on their way in 30 packages. Tracking: https://tracking.example.com/parcels/0?carrier=long-name https://tracking.example.com/parcels/1?carrier=long-name and 28 more',
    );
    expect(segments).toBe(2);
  });

  test('a link that is too long for an SMS is replaced by the number', () => {
    const tracking = [parcel('1Z5', `https://t.example.com/${'x'.repeat(400)}`)];
    expect(sms({ content: notice({ jobs: [job({ tracking })] }) }).text).toBe(
      'Northlight Print: Your order PO-1 is on its way. Tracking: 1Z5',
    );
  });

  test('a link that is too long for an SMS, of a parcel without a number, is left out', () => {
    const tracking = [parcel(null, `https://t.example.com/${'x'.repeat(400)}`)];
    expect(sms({ content: notice({ jobs: [job({ tracking })] }) }).text).toBe(
      'Northlight Print: Your order PO-1 is on its way.',
    );
    expect(sms({ content: notice({ kind: 'tracking', jobs: [job({ tracking })] }) }).text).toBe(
      'Northlight Print: Tracking is now available for your order PO-1.',
    );
  });

  test('an SMS has details if they need no extra segment', () => {
    const with_ = (description: string): string =>
      sms({ content: notice({ jobs: [job({ description })] }) }).text;
    expect(with_('500 postcards')).toBe('Northlight Print: Your order PO-1 (500 postcards) is on its way.');
    // In UCS-2 it would need two.
    expect(with_('500 postcards, silk 🎉')).toBe('Northlight Print: Your order PO-1 is on its way.');
  });

  test.each([
    // With fewer details, it would have two segments as well.
    [200, 'd'.repeat(59)],
    // With all details, it would have three segments.
    [260, 'd'.repeat(29)],
    [290, ''],
  ])('an SMS with %i other characters has the details "%s"', (others, details) => {
    const content = notice({ jobs: [job({ description: 'd'.repeat(80) })] });
    const { text, segments } = sms({ content, template: { text: `${'x'.repeat(others)}{{ details }}` } });
    expect(text.replaceAll(/x|\.\.\./g, '')).toBe(details);
    expect(segments).toBe(2);
  });
});

describe('the length of an SMS', () => {
  test.each([
    ['a'.repeat(160), 1, 'GSM-7'],
    ['a'.repeat(161), 2, 'GSM-7'],
    ['a'.repeat(306), 2, 'GSM-7'],
    ['a'.repeat(307), 3, 'GSM-7'],
    ['€'.repeat(80), 1, 'GSM-7'],
    [`${'€'.repeat(80)}a`, 2, 'GSM-7'],
    // The escaped character goes to the next segment whole.
    [`${'a'.repeat(152)}€${'a'.repeat(151)}`, 2, 'GSM-7'],
    [`${'a'.repeat(152)}€${'a'.repeat(152)}`, 3, 'GSM-7'],
    ['à è é ù ì ò Ç Ø ß ñ Ä ^{}[]~|\\', 1, 'GSM-7'],
    ['ç', 1, 'UCS-2'],
    ['ж'.repeat(70), 1, 'UCS-2'],
    ['ж'.repeat(71), 2, 'UCS-2'],
    ['ж'.repeat(134), 2, 'UCS-2'],
    ['ж'.repeat(135), 3, 'UCS-2'],
    // A surrogate pair counts as two too.
    [`${'ж'.repeat(66)}😀${'ж'.repeat(65)}`, 2, 'UCS-2'],
    [`${'ж'.repeat(66)}😀${'ж'.repeat(66)}`, 3, 'UCS-2'],
    ['', 1, 'GSM-7'],
    // SNS splits texts between words: a link that does not fit starts the next segment.
    [`${'a'.repeat(100)} https://t.example.com/${'x'.repeat(78)} ${'b'.repeat(60)}`, 3, 'GSM-7'],
    [`${'a'.repeat(153)} ${'b'.repeat(152)}`, 2, 'GSM-7'],
    [`${'a'.repeat(152)} ${'b'.repeat(153)}`, 2, 'GSM-7'],
    [`${'word '.repeat(30)}${'b'.repeat(156)}`, 3, 'GSM-7'],
  ] as const)('%s', (text, segments, encoding) => {
    expect(measureSms(text)).toEqual({ segments, encoding });
  });

  test('typographic characters are replaced if that avoids UCS-2, letters never', () => {
    expect(smsText('“It’s here” – 2\u00a0×\u00a0A6…')).toBe('"It\'s here" - 2 x A6...');
    expect(smsText('Cafe\u0301')).toBe('Café');
    expect(smsText('“Façade” – déjà')).toBe('“Façade” – déjà');
  });
});

describe('mail layout', () => {
  test('the text of a button is readable on any color', () => {
    const channel = fc.integer({ min: 0, max: 255 });
    fc.assert(
      fc.property(channel, channel, channel, (red, green, blue) => {
        const color = `#${[red, green, blue].map((part) => part.toString(16).padStart(2, '0')).join('')}`;
        expect(contrast(color, textColorOn(color))).toBeGreaterThanOrEqual(4.5);
      }),
      runs(50, 1_000),
    );
    expect([textColorOn('#0f766e'), textColorOn('#facc15'), textColorOn('#ffffff')]).toEqual([
      '#ffffff',
      '#000000',
      '#000000',
    ]);
  });

  test('a mail loads only the logo, over https', () => {
    const load = (logoUrl: string | null): string[] => {
      const { html } = email({ branding: { ...sampleBranding, logoUrl } });
      expect(html).not.toMatch(/<(?:script|link|iframe|object|form|base)\b|@import|url\(/i);
      return [...html.matchAll(/src="([^"]*)"/g)].map(([, src]) => src ?? '');
    };
    expect(load('https://cdn.example.com/logo.png')).toEqual(['https://cdn.example.com/logo.png']);
    expect(load('http://cdn.example.com/logo.png')).toEqual([]);
    expect(load(null)).toEqual([]);
  });

  test.runIf(process.env.PICTURES === 'write')(
    'pictures for the documentation',
    { timeout: 120_000 },
    async () => {
      // Loads Playwright, which takes long.
      const { takePictures } = await import('../support/mail-pictures.ts');
      await takePictures();
    },
  );
});

describe('custom templates', () => {
  test('override their parts, and use the default for the rest; the default heading is the subject', () => {
    const template = {
      subject: 'On its way: {{ order }} ({{ count }})',
      outro: 'See you!\n\nThe team\nin {{ brand.name }}',
    };
    const mail = email({ template });
    expect(mail.subject).toBe('On its way: SPRING-38 (3)');
    expect(mail.text).toContain('\nOn its way: SPRING-38 (3)\n===');
    expect(email({ template: { ...template, heading: 'Hooray' } }).text).toContain('\nHooray\n===');
    expect(mail.text).toContain('\n\nSee you!\n\nThe team\nin Northlight Print\n\n-- \n');
    expect(mail.html).toContain('The team<br />in Northlight Print');
  });

  test("escape customers' texts in HTML, also through filters", () => {
    const description = '<b>&"\n';
    const content = notice({ jobs: [job({ description: `${description}x` })] });
    const html = (liquid: string): string =>
      email({ content, template: { subject: 'x', html: liquid } }).html;
    const text = '&lt;b&gt;&amp;&quot; x';
    expect(html('<p>{{ jobs[0].description }}</p>')).toBe(`<p>${text}</p>`);
    expect(html('<p>{{ jobs[0].description | escape }}</p>')).toBe(`<p>${text}</p>`);
    expect(html('<p>{{ jobs[0].description | newline_to_br }}</p>')).toBe(`<p>${text}</p>`);
    expect(html('{% assign d = jobs[0].description | append: "<i>" %}{% echo d %}')).toBe(`${text}&lt;i&gt;`);
    expect(html('{% capture d %}{{ jobs[0].description }}{% endcapture %}{{ d | strip_html }}')).not.toMatch(
      /<|"/,
    );
    expect(html('{{ jobs | json }}')).not.toMatch(/<|"/);
    expect(html('{% for d in jobs %}{% cycle d.description %}{% endfor %}')).not.toMatch(/<b>/);
  });

  const tricky = (liquid: string): Rendered<RenderedEmail> => {
    const content = notice({ jobs: [job({ description: '<b>&"' })] });
    const start = '{% assign d = jobs[0].description | append: "\n<i>" %}';
    return renderEmail(input({ content, template: { subject: 'x', html: `${start}${liquid}` } }));
  };

  test.each([
    ['captured', '{% capture c %}{{ d }}{% endcapture %}{{ c }}'],
    [
      'captured twice',
      '{% capture c %}{% capture b %}{{ d }}{% endcapture %}{% echo b %}{% endcapture %}{% cycle c %}',
    ],
    ['captured with line breaks as HTML', '{% capture c %}{{ d | newline_to_br }}{% endcapture %}{{ c }}'],
    [
      'captured until a loop ends',
      '{% for i in (1..3) %}{% capture c %}{{ d }}{% break %}{% endcapture %}{% endfor %}{{ c }}',
    ],
    ['escaped by a filter', '{{ d | xml_escape }}'],
    ['shown with line breaks as HTML', '{{ d | newline_to_br }}', '<br />\n'],
    ['shown with line breaks as HTML of a variable', '{% assign c = d | newline_to_br %}{{ c }}', '<br />\n'],
    ['changed after its line breaks are HTML', '{{ d | newline_to_br | upcase | downcase }}'],
  ])('escape text once that is %s', (_, liquid, lineBreak = '\n') => {
    expect(tricky(liquid)).toMatchObject({
      value: { html: `&lt;b&gt;&amp;&quot;${lineBreak}&lt;i&gt;` },
    });
  });

  test('escape text that passes through any filter, and through a capture', () => {
    let rendered = 0;
    for (const filter of Object.keys(filters)) {
      for (const wrapped of [
        `{{ d | ${filter} }}`,
        `{{ d | newline_to_br | ${filter} }}`,
        `{{ d | ${filter} | newline_to_br }}`,
        `{% assign c = d | newline_to_br | ${filter} %}{% echo c %}{% cycle c, d %}`,
        `{% capture c %}{{ d | newline_to_br | ${filter} }}{% endcapture %}{{ c }}{% liquid echo c %}`,
      ]) {
        const outcome = tricky(wrapped);
        if (outcome.kind !== 'rendered') continue;
        rendered += 1;
        expect(outcome.value.html.replaceAll('<br />', ''), wrapped).not.toMatch(/[<>"]/);
      }
    }
    expect(rendered).toBeGreaterThan(100);
  });

  test('that fail have a reason without content of the notice', () => {
    const template = { subject: '{{ jobs[0].description.nothing }}' };
    expect(renderEmail(input({ template }))).toEqual({
      kind: 'failed',
      reason: expect.stringMatching(/^subject: unknown variable .*\(line 1, column 4\)$/),
    });
    expect(renderSms(input({ template: { text: '{% if count > 99 %}x{% endif %}' } }))).toEqual({
      kind: 'failed',
      reason: 'text: it is empty',
    });
  });

  const problem = (template: Template, channel: 'email' | 'sms' = 'email'): string[] =>
    checkTemplate({ kind: 'dispatched', channel, locale: 'en-GB' }, template).map(
      ({ field, reason }) => `${field}: ${reason}`,
    );
  const shown = '{{ unsubscribe_url }}';
  test.each<[string, Template, RegExp]>([
    ['does not parse', { subject: '{{ order' }, /^subject: \{\{ order is not closed \(line 1, column 1\)$/],
    [
      'has a tag that is not closed',
      { subject: 'x', intro: '{% if order %}' },
      /^intro: \{% if order %\} is not closed/,
    ],
    [
      'names an unknown variable, even in a rarely used branch',
      { subject: 'x', intro: '{% if count > 9999 %}{{ custmer }}{% endif %}' },
      /^intro: unknown variable custmer$/,
    ],
    ['names an unknown field', { subject: '{{ brand.nam }}' }, /^subject: unknown variable brand.nam /],
    ['names an unknown filter', { subject: '{{ order | shout }}' }, /^subject: unknown filter shout /],
    [
      'outputs unescaped text',
      { subject: 'x', html: `${shown}{{ order | raw }}` },
      /^html: unknown filter raw /,
    ],
    [
      'includes a file',
      { subject: 'x', text: `${shown}{% render "/etc/passwd" %}` },
      /^text: unknown tag render /,
    ],
    ['accesses other properties', { subject: '{{ order.constructor.name }}' }, /^subject: unknown variable/],
    ['is empty for some notices', { subject: '{% if group %}x{% endif %}' }, /^subject: it is empty$/],
    [
      'omits the unsubscribe link',
      { subject: 'x', html: '<p>Hello</p>' },
      /^html: it must contain \{\{ unsubscribe_url \}\}$/,
    ],
    [
      'repeatedly doubles its own text',
      {
        subject: 'x',
        html: '{% assign a = "x" %}{% for i in (1..60) %}{% capture a %}{{ a }}{{ a }}{% endcapture %}{% endfor %}{{ a.size }}',
      },
      /^html: memory .*limit/,
    ],
    [
      'eats memory',
      {
        subject:
          '{% assign a = "x" %}{% for i in (1..60) %}{% assign a = a | append: a %}{% endfor %}{{ a }}',
      },
      /^subject: .*limit/,
    ],
  ])('are rejected with %s', (_, template, reason) => {
    expect(problem(template).join()).toMatch(reason);
  });

  test('are rejected with never ends', () => {
    // The clock runs twenty times faster.
    const now = performance.now.bind(performance);
    using _ = vi.spyOn(performance, 'now').mockImplementation(() => 20 * now());
    const loop = (body: string): string => `{% for a in (1..9000) %}${body}{% endfor %}`;
    expect(problem({ subject: loop(loop(loop('{{ a }}'))) }).join()).toMatch(/^subject: .*limit/);
  });

  test('for SMS can name the carrier of a parcel, as those for e-mails can', () => {
    const template = { text: 'On its way{% for parcel in parcels %} with {{ parcel.carrier }}{% endfor %}' };
    expect(problem(template, 'sms')).toEqual([]);
    const tracking = [parcel('1Z8', 'https://www.ups.com/track?tracknum=1Z8')];
    const content = notice({ jobs: [job({ tracking })] });
    expect(sms({ content, template }).text).toBe('On its way with UPS');
  });

  test('for SMS are rejected if they need more than two segments for a minimal notice', () => {
    expect(problem({ text: `${'Very long. '.repeat(40)}{{ tracking }}` }, 'sms')).toEqual([
      'text: it takes more than 2 segments even with the shortest values',
    ]);
  });
});

describe('rendering limits', () => {
  test('truncating the SMS of a very long text takes linear time', () => {
    const template = { text: '{% for i in (1..5000) %}abcdefghi {% endfor %}' };
    // Trying every length would take an hour.
    expect(sms({ template })).toMatchObject({
      segments: 2,
      text: expect.stringMatching(/^(abcdefghi )+.*\.\.\.$/),
    });
  });

  test('an SMS of very many links fails within the limit', () => {
    const text = '{% for i in (1..5000) %}https://a {% endfor %}text';
    expect(renderSms(input({ template: { text } }))).toMatchObject({ kind: 'failed' });
  });

  test('the time limit covers the message, not each field', () => {
    let clock = 0;
    using _ = vi.spyOn(performance, 'now').mockImplementation(() => ++clock);
    const busy = (field: string): string => `{% for a in (1..500) %}{{ a }}{% endfor %}${field}`;
    const fields = ['heading', 'intro', 'outro', 'text', 'html'];
    const made = (slow: readonly string[]): string => {
      const template = { subject: 'x', ...Object.fromEntries(slow.map((field) => [field, busy(field)])) };
      return renderEmail(input({ template })).kind;
    };
    expect(fields.map((field) => made([field]))).toEqual(fields.map(() => 'rendered'));
    expect(made(fields)).toBe('failed');
  });
});

eachTable('stored templates', (makeTable) => {
  const ref = { region: 'us', account: 'acme' };
  const place = { kind: 'dispatched', channel: 'email', locale: 'en-US' } as const;
  const own: Template = { subject: 'Our {{ order }}' };

  test('apply to exactly their locale, then to its language, and to no other', async () => {
    const table = await makeTable();
    const resolve = (locale: Locale): Promise<Template | undefined> =>
      resolveTemplate(table, ref, 'dispatched', 'email', locale);
    expect(await resolve('en-GB')).toBeUndefined();
    await saveTemplate(table, ref, place, own, 5);
    expect(await resolve('en-US')).toEqual(own);
    expect(await resolve('en-GB')).toEqual(own);
    expect(await resolve('de')).toBeUndefined();
    expect(await resolveTemplate(table, ref, 'dispatched', 'sms', 'en-US')).toBeUndefined();
    expect(await resolveTemplate(table, ref, 'tracking', 'email', 'en-US')).toBeUndefined();
    expect(
      await resolveTemplate(table, { ...ref, account: 'other' }, 'dispatched', 'email', 'en-US'),
    ).toBeUndefined();
    const british: Template = { subject: 'Ours: {{ order }}' };
    await saveTemplate(table, ref, { ...place, locale: 'en-GB' }, british, 6);
    expect(await resolve('en-GB')).toEqual(british);
    expect(await resolve('en-US')).toEqual(own);
  });

  test('can be listed, read and deleted', async () => {
    const table = await makeTable();
    const saved = await saveTemplate(table, ref, place, own, 5);
    expect(saved).toEqual({ kind: 'saved', stored: { ...place, template: own, changedAt: 5, revision: 5 } });
    await saveTemplate(
      table,
      ref,
      { kind: 'tracking', channel: 'sms', locale: 'fr' },
      { text: '{{ tracking }} !' },
      6,
    );
    expect(
      (await listTemplates(table, ref)).map(({ kind, channel, locale }) => [kind, channel, locale]),
    ).toEqual([
      ['dispatched', 'email', 'en-US'],
      ['tracking', 'sms', 'fr'],
    ]);
    expect(await readTemplate(table, ref, place)).toEqual({
      ...place,
      template: own,
      changedAt: 5,
      revision: 5,
    });
    expect(await deleteTemplate(table, ref, place)).toEqual({ kind: 'deleted' });
    expect(await readTemplate(table, ref, place)).toBeUndefined();
  });

  test('that would fail are not saved', async () => {
    const table = await makeTable();
    const outcome = await saveTemplate(table, ref, place, { subject: '{{ nothing }}' }, 5);
    expect(outcome).toEqual({
      kind: 'invalid',
      problems: [{ field: 'subject', reason: 'unknown variable nothing' }],
    });
    expect(await table.get(keys.template(ref, 'dispatched', 'email', 'en-US'))).toBeUndefined();
  });
});

describe('docs/notifications.md', () => {
  const guide = readFileSync('docs/notifications.md', 'utf8');

  test('lists exactly the variables', () => {
    const [, table = ''] = guide.split('| variable | |');
    const rows = [...table.matchAll(/^\| `([a-z_.[\]]+)` \|/gm)].map(([, name]) => name?.split(/[.[]/)[0]);
    const smsOnly = ['details', 'tracking'];
    const there = Object.keys(view(sampleNotice('dispatched')));
    expect(new Set(rows)).toEqual(new Set([...there, ...smsOnly]));
  });

  test('has templates that can be saved, and their output', () => {
    const examples = [
      ...guide.matchAll(
        /<!-- (\w+) (email|sms) ([\w-]+) -->\n```json\n(.*?)\n```\n(?:.*?\n)?```text\n(.*?)\n```/gs,
      ),
    ];
    expect(examples.length).toBeGreaterThanOrEqual(3);
    for (const [, kind, channel, locale, json, result] of examples) {
      const place = {
        kind: kind as MessageKind,
        channel: channel as 'email' | 'sms',
        locale: locale as Locale,
      };
      const template: Template = JSON.parse(json ?? '');
      expect(checkTemplate(place, template)).toEqual([]);
      const asked = { content: sampleNotice(place.kind), locale: place.locale, template };
      const made = channel === 'sms' ? sms(asked).text : email(asked).text;
      expect(made.trim().replaceAll('\u00a0', ' ')).toBe(result?.trim());
    }
  });
});

interface Asked {
  readonly content?: NoticeContent;
  readonly locale?: Locale;
  readonly name?: string | null;
  readonly branding?: Branding;
  readonly replyTo?: string | null;
  readonly template?: Template;
}

function input({
  content = sampleNotice('dispatched'),
  locale = 'en-US',
  name = 'Jane Doe',
  branding = sampleBranding,
  replyTo = null,
  template,
}: Asked): RenderInput {
  return {
    content,
    recipient: { name, locale, zone: 'America/New_York' },
    branding,
    replyTo,
    unsubscribeUrl: UNSUBSCRIBE,
    template,
  };
}

const email = (asked: Asked) => rendered(renderEmail(input(asked)));
const sms = (asked: Asked) => rendered(renderSms(input(asked)));

function rendered<T>(outcome: Rendered<T>): T {
  if (outcome.kind === 'failed') throw new Error(outcome.reason);
  return outcome.value;
}

function view(content: NoticeContent, locale: Locale = 'en-US', zone = 'America/New_York') {
  return toView({ ...input({ content, locale }), recipient: { name: null, locale, zone } });
}

function notice(overrides: Partial<NoticeContent> = {}): NoticeContent {
  return {
    kind: 'dispatched',
    orderGroup: null,
    jobs: [job()],
    observedAt: Date.UTC(2026, 10, 19, 12),
    ...overrides,
  };
}

function job(overrides: Partial<JobFacts> = {}): JobFacts {
  return {
    jobNumber: 1,
    orderNumber: overrides.jobNumber === undefined ? 'PO-1' : null,
    description: null,
    dateOut: null,
    dateDue: null,
    formerDateDue: null,
    tracking: [],
    ...overrides,
  };
}

const parcel = (number: string | null, link: string | null) => ({ number, link });

function facts(found: JobFacts | undefined): JobFacts {
  if (!found) throw new Error('There is no such job.');
  return found;
}
