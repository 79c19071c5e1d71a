/** Commands of customer notifications against a real Jobwire. */
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SMTPServer } from 'smtp-server';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startSite, toDocuments } from '../support/cli-site.ts';
import { fakeApi } from '../support/command.ts';

const folder = mkdtempSync(join(tmpdir(), 'jobwire-notifications-'));
const ends: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })];
let site: Awaited<ReturnType<typeof startSite>>;

beforeAll(async () => {
  const mails = new SMTPServer({ logger: false, authOptional: true, disabledCommands: ['STARTTLS'] });
  mails.listen(0, '127.0.0.1');
  await once(mails.server, 'listening');
  ends.push(() => mails.close());
  const { port } = mails.server.address() as AddressInfo;
  const notifications = { from: 'orders@acme.example', smtp: { host: '127.0.0.1', port } };
  const groups = ['notifications', 'templates', 'messages', 'suppressions', 'recipients'];
  site = await startSite((stop) => ends.push(stop), groups, {
    publicUrl: 'https://jobwire.example.com',
    notifications,
  });
}, 60_000);

afterAll(async () => {
  for (const end of ends.reverse()) await end();
});

const run = (...args: string[]) => site.run(...args);
const json = async (...args: string[]) => (await site.json(...args))[0];

describe('notifications set', () => {
  test('keeps the settings that are not named', async () => {
    const first = [
      '--name',
      'Acme',
      '--logo',
      'https://x.example/a.png',
      '--reply-to',
      'orders@acme.example',
    ];
    expect(await run('notifications', 'set', 'acme', '--send', 'on', ...first)).toMatchObject({ code: 0 });
    const before = await json('notifications', 'show', 'acme');
    expect(before).toMatchObject({ enabled: true, branding: { name: 'Acme' } });
    const args = ['--logo', 'none', '--quiet', '22:00-07:30', '--sms-limit', '50', '--dry-run', 'on'];
    expect(await run('notifications', 'set', 'acme', ...args)).toMatchObject({ code: 0 });
    expect(await json('notifications', 'show', 'acme')).toEqual({
      ...before,
      dryRun: true,
      branding: { ...before.branding, logoUrl: null },
      sms: { ...before.sms, monthlySegments: 50, quietHours: { from: '22:00', to: '07:30' } },
      revision: before.revision + 1,
      warnings: expect.any(Array),
    });
  });

  test('names the option of an invalid value', async () => {
    const ended = await run('notifications', 'set', 'acme', '--color', 'red');
    expect([ended.code, ended.err]).toEqual([3, expect.stringMatching(/^--color must be /)]);
  });
});

test('a preview renders a real job, and writes the HTML to a file', async () => {
  const file = join(folder, 'preview.html');
  const args = ['--kind', 'dispatched', '--job', String(site.job), '--html', file];
  const ended = await run('notifications', 'preview', 'acme', ...args);
  expect(ended).toMatchObject({ code: 0, err: expect.stringContaining(`Job ${site.job}; `) });
  expect(ended.out).toMatch(/^Subject {2}\S/);
  expect(readFileSync(file, 'utf8')).toContain('</html>');
});

test('a template is set, shown, listed and removed', async () => {
  const place = ['acme', 'dispatched', 'email', 'en-GB'];
  const file = join(folder, 'template.json');
  const subject = 'Your order is on its way \u009b31m\u202e';
  writeFileSync(file, JSON.stringify({ subject }));
  const wrong = join(folder, 'wrong.json');
  writeFileSync(wrong, '{"subject": "{{ "}');
  expect(await run('templates', 'set', ...place, wrong)).toMatchObject({ code: 3 });
  expect(await run('templates', 'set', ...place, file)).toMatchObject({ code: 0, err: '' });
  expect(await json('templates', 'show', ...place)).toMatchObject({ custom: true });
  const shown = await run('templates', 'show', ...place);
  expect(JSON.parse(shown.out)).toEqual({ subject });
  expect(shown.out, 'the text of a customer cannot control a terminal').not.toMatch(/[\u007f-\u009f\u202e]/);
  writeFileSync(file, (await run('templates', 'show', ...place, '--json')).out);
  expect(await run('templates', 'set', ...place, file)).toMatchObject({ code: 0, err: '' });
  expect(JSON.parse((await run('templates', 'show', ...place)).out)).toEqual({ subject });
  writeFileSync(wrong, JSON.stringify({ subject, kind: 'dispatched' }));
  const unknown = await run('templates', 'set', ...place, wrong);
  expect([unknown.code, unknown.err]).toEqual([3, expect.stringMatching(/^kind is not a known field\./)]);
  expect((await run('templates', 'list', 'acme')).out).toMatch(/^dispatched +email +en-GB +custom$/m);
  const test = ['templates', 'send-test', 'acme'];
  const sent = await run(...test, 'orders@acme.example', '--kind', 'dispatched', '--locale', 'en-GB');
  expect(sent).toMatchObject({ code: 0, out: expect.stringMatching(/^“\[Test\] .*” was sent to orders@/) });
  const stranger = await run(...test, 'stranger@example.com', '--kind', 'dispatched');
  expect([stranger.code, stranger.err]).toEqual([
    3,
    expect.stringMatching(/^ADDRESS|^to must be the address/),
  ]);
  expect(await run('templates', 'remove', ...place)).toMatchObject({ code: 0 });
  expect(await json('templates', 'show', ...place)).toMatchObject({ custom: false });
});

test('recipients export prints nothing to stdout if it fails, so a file does not look like an account without recipients', async () => {
  expect(await run('recipients', 'export', 'unknown')).toEqual({
    ...{ code: 3, out: '' },
    err: 'There is no such account.\n',
  });
});

test('recipients are added, changed, exported, imported and removed', async () => {
  const add = ['--id', 'ann', '--name', 'Lee, "Ann"', '--email', 'ann@example.com', '--kinds', 'dispatched'];
  expect((await run('recipients', 'add', 'acme', ...add, '--job', String(site.job))).out).toBe(
    `Lee, "Ann" (ann) was added to acme for job ${site.job}.\n`,
  );
  const change = ['recipients', 'change', 'acme', 'ann'];
  expect(await run(...change, '--email', 'none')).toMatchObject({ code: 3 });
  expect(await run(...change, '--mobile', '+64 21 123 4567', '--pause')).toMatchObject({ code: 0 });
  const exported = await run('recipients', 'export', 'acme');
  const row = `ann,"Lee, ""Ann""",ann@example.com,'+64211234567,,,email sms,dispatched,,,${site.job},true`;
  expect(exported.out).toContain(`${row}\n`);
  const file = join(folder, 'recipients.csv');
  writeFileSync(file, exported.out);
  expect(await run('recipients', 'import', 'acme', file)).toMatchObject({
    code: 0,
    out: '0 new, 0 changed, 1 unchanged, 0 invalid.\n',
  });
  writeFileSync(file, 'name,email\nBen,ben@example.com\nCid,cid\n');
  const imported = await site.start(['recipients', 'import', 'acme', file, '--dry-run']).ended;
  expect([imported.code, imported.out]).toEqual([6, expect.stringMatching(/^ +3 +email +email must /m)]);
  const defaults = ['--locale', 'none', '--channels', 'none', '--kinds', 'none'];
  expect(await json(...change, ...defaults)).toMatchObject({
    ...{ locale: null, channels: ['email', 'sms'], kinds: ['dispatched', 'tracking'] },
  });
  expect(await run('recipients', 'remove', 'acme', 'ann')).toMatchObject({ code: 0 });
  expect(await run('recipients', 'list', 'acme')).toMatchObject({ err: 'There are no recipients.\n' });
});

test('a note is shown without being sent, and a paused recipient is listed with the reason', async () => {
  const job = String(site.job);
  const add = ['recipients', 'add', 'acme', '--id', 'bob', '--name', 'Bob', '--email', 'bob@example.com'];
  expect(await run(...add)).toMatchObject({ code: 0 });
  expect(await json('messages', 'recipients', 'acme', job)).toMatchObject({ recipient: 'bob', reason: null });
  expect(await run('messages', 'send', 'acme', job, 'bob', 'It ships on Friday.', '--dry-run')).toMatchObject(
    {
      code: 0,
      out: expect.stringContaining('It ships on Friday.'),
      err: expect.stringMatching(/^Not sent\. .*bob@example\.com\.$/m),
    },
  );
  expect(await run('recipients', 'change', 'acme', 'bob', '--pause')).toMatchObject({ code: 0 });
  expect((await run('messages', 'recipients', 'acme', job)).out).toMatch(/bob@.*The recipient is paused\.$/m);
  expect(await run('recipients', 'remove', 'acme', 'bob')).toMatchObject({ code: 0 });
});

test('an address is suppressed, and the suppression is removed', async () => {
  expect(await run('suppressions', 'add', 'acme', 'ann@example.com')).toMatchObject({ code: 0, err: '' });
  const { id } = await json('suppressions', 'list', 'acme');
  expect(await run('suppressions', 'remove', 'acme', id)).toMatchObject({ code: 0 });
  expect(await run('suppressions', 'list', 'acme')).toMatchObject({ err: 'No address is suppressed.\n' });
});

test('the list of suppressions explains an address of which only a hash is stored', async () => {
  const common = { channel: 'email', reason: 'unsubscribed', since: '2026-03-02T08:00:00.000Z', reasons: [] };
  const suppressions = [
    { id: 'email-a', address: 'a•••@e•••.com', ...common },
    { id: 'email-b', address: null, ...common },
  ];
  const api = await fakeApi({
    'GET /v1/accounts/acme/suppressions': { json: { suppressions, next: null } },
  });
  ends.push(() => api.stop());
  const { out } = await run('suppressions', 'list', 'acme', '--url', api.url);
  expect(out).toMatch(/^email-a +email +a•••@e•••\.com +unsubscribed/m);
  expect(out).toMatch(/^email-b +email +not stored \(unsubscribed by link\) +unsubscribed/m);
});

test('an import in several parts reports invalid rows by line of the file', async () => {
  const rows = Array.from({ length: 1_200 }, (_, at) => `Recipient ${at},r${at}@example.com`);
  const file = join(folder, 'many.csv');
  // The first row has two lines.
  const text = ['name,email', '"Ann\r\nLee",ann@example.com', ...rows, 'Last,nowhere', ''].join('\r\n');
  writeFileSync(file, `\ufeff${text}`);
  const report = await json('recipients', 'import', 'acme', file, '--dry-run');
  expect(report).toMatchObject({ created: 1_201, dryRun: true });
  expect(report.invalidRows.map(({ line }: { line: number }) => line)).toEqual([1_204]);
  writeFileSync(file, Buffer.from('name\nJos\xe9', 'latin1'));
  expect(await run('recipients', 'import', 'acme', file)).toMatchObject({
    code: 2,
    err: expect.stringContaining('must be UTF-8'),
  });
  // As Excel saves “Unicode text”.
  writeFileSync(file, Buffer.from('\ufeffname\temail\nJosé\tjose@example.com', 'utf16le'));
  expect(await json('recipients', 'import', 'acme', file)).toMatchObject({ created: 1, invalidRows: [] });
});

test('an import reports the line of a quote without its pair also in a large file', async () => {
  const rows = Array.from({ length: 6_000 }, (_, at) => `q${at},Recipient ${at},q${at}@example.com`);
  rows[10] = 'q10,"5 inch,q10@example.com';
  const file = join(folder, 'quote.csv');
  const importRows = async () => {
    writeFileSync(file, ['id,name,email', ...rows].join('\n'));
    const { code, out } = await run('recipients', 'import', 'acme', file, '--dry-run', '--json');
    return { code, report: JSON.parse(out) };
  };
  const unmatched = { line: 12, reason: expect.stringContaining('The quotes of this row do not match') };
  expect(await importRows()).toMatchObject({ code: 6, report: { created: 10, invalidRows: [unmatched] } });
  // Later quotes do not hide it.
  rows.fill('q,"Lee, Ann",q@example.com', 5_000);
  expect(await importRows()).toMatchObject({ code: 6, report: { created: 10, invalidRows: [unmatched] } });
  // A large row without quotes is invalid, and the rows after it are read.
  rows.splice(10, 6_000, `q10,${'x'.repeat(200_000)},q10@example.com`, 'q11,Ann,q11@example.com');
  expect(await importRows()).toMatchObject({ code: 6, report: { created: 11, invalidRows: [{ line: 12 }] } });
});

test('an import that fails in a later part reports the parts before it', async () => {
  const file = join(folder, 'later.csv');
  writeFileSync(file, ['email', ...Array.from({ length: 300 }, (_, at) => `p${at}@example.com`)].join('\n'));
  const invalidRows = [{ line: 3, field: 'email', reason: 'email must be valid.' }];
  let requests = 0;
  const api = await fakeApi({
    'POST /v1/accounts/acme/recipients/import': () => {
      requests += 1;
      return requests > 1
        ? { status: 503 }
        : { json: { created: 249, updated: 0, unchanged: 0, invalidRows } };
    },
  });
  ends.push(() => api.stop());
  const failed = await run('recipients', 'import', 'acme', file, '--url', api.url);
  expect(failed).toMatchObject({ code: 4, out: expect.stringContaining('email must be valid.') });
  expect(failed.out).toContain('249 new, 0 changed, 0 unchanged, 1 invalid.\n');
});

test('the messages of a job include the upcoming ones as notes, also with --json', async () => {
  const upcoming = [{ kind: 'dispatched', dueAt: '2026-03-02T08:00:00.000Z', jobs: [7] }];
  const api = await fakeApi({
    'GET /v1/accounts/acme/jobs/7/messages': { json: { messages: [], upcoming, next: null } },
  });
  ends.push(() => api.stop());
  const list = (...options: string[]) =>
    run('messages', 'list', 'acme', '--job', '7', '--url', api.url, ...options);
  const note = 'Upcoming (now): dispatched, this job.';
  expect((await list()).err).toContain(`${note}\n`);
  expect(toDocuments((await list('--json')).err)).toEqual([{ note }]);
});

test('without messages the list has a note, and each one is missing', async () => {
  expect(await run('messages', 'list', 'acme')).toMatchObject({
    code: 0,
    err: 'There are no messages.\n',
  });
  expect(await run('messages', 'show', 'acme', 'm0m9x2k1c3-4fz81')).toMatchObject({ code: 3, out: '' });
});

// Runs last.
test('every command of these groups was successful as a process', () => {
  // No message is due while this file runs. Above, a process is rejected.
  expect(site.notStarted()).toEqual(['messages show']);
});
