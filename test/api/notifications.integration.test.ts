/**
 * Notification routes; permissions and shapes are tested for all routes together.
 * One file: its tests share the requests and the messages of the world.
 */
import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { suppress } from '../../shared/notifications/suppressions.ts';
import { locales } from '../../shared/notifications/types.ts';
import { type ApiWorld, FOREIGN, OWN, sharedWorld } from '../support/api-world.ts';
import { ADDRESSES } from '../support/notification-samples.ts';
import { findSuppression } from '../support/notification-world.ts';

const shared = sharedWorld();

// biome-ignore lint/suspicious/noExplicitAny: responses of all shapes; each test reads its own fields
type Body = any;

async function ask(
  method: string,
  path: string,
  {
    body,
    headers = {},
    by = 'admin all',
  }: { body?: object; headers?: object; by?: keyof ApiWorld['keys'] } = {},
) {
  const response = await shared.world.app.request(path, {
    method,
    headers: {
      authorization: `Bearer ${shared.world.keys[by].secret}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: (text.startsWith('{') ? JSON.parse(text) : undefined) as Body,
  };
}

const account = `/v1/accounts/${OWN}`;
/** Available once a test has the shared world. */
const told = () => {
  const found = shared.world.ids.notifying[OWN];
  if (!found) throw new Error('The account has no notifications.');
  return found;
};

describe('addresses', () => {
  const paths = () => [
    '/recipients',
    '/recipients/ann',
    '/recipients/ben',
    '/messages',
    `/messages/${told().messages[0]}`,
    '/jobs/1/messages',
    '/recipients/ann/messages',
    '/recipients/ben/messages',
  ];
  const whole = [ADDRESSES.email.ann, ADDRESSES.email.ben, ADDRESSES.mobile];

  test('are complete for keys with the operate role, and masked for those that only read', async () => {
    for (const path of paths()) {
      const shown = async (by: keyof ApiWorld['keys']) => {
        const { status, text } = await ask('GET', account + path, { by });
        expect([path, status]).toEqual([path, 200]);
        return whole.filter((address) => text.includes(address)).length;
      };
      expect([path, await shown('read all'), await shown('read own')]).toEqual([path, 0, 0]);
      expect(await shown('operate own'), path).toBeGreaterThan(0);
      expect(await shown('admin all'), path).toBe(await shown('operate own'));
    }
  });

  test('are recognizable when masked', async () => {
    const { body } = await ask('GET', `${account}/recipients`, { by: 'read own' });
    expect(body.recipients.map(({ email, mobile }: Body) => [email, mobile])).toEqual([
      ['a•••@e•••.com', null],
      ['b•••@e•••.com', '+64 •••• 567'],
    ]);
  });

  test('are masked, too, for changes by a link', async () => {
    const said = async (by: keyof ApiWorld['keys']) =>
      (await ask('GET', `${account}/messages/${told().messages[0]}`, { by })).body;
    const link = expect.stringContaining('/v1/unsubscribe/us.acme');
    expect(await said('operate own')).toMatchObject({ subject: link, text: link });
    const masked = 'Stop: http://jobwire.test/v1/unsubscribe/…';
    expect(await said('read own')).toMatchObject({ subject: masked, text: masked });
  });
});

describe('settings', () => {
  const path = '/v1/accounts/kiwi/notifications';

  test('exist before they are saved, with their defaults: off', async () => {
    await shared.world.app.request('/v1/accounts', {
      method: 'POST',
      headers: {
        authorization: `Bearer ${shared.world.keys['admin all'].secret}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify({ id: 'fresh', region: 'nz', credentials: shared.world.credentials }),
    });
    const { body, headers } = await ask('GET', '/v1/accounts/fresh/notifications');
    expect(body).toMatchObject({ enabled: false, since: null, zone: 'Pacific/Auckland', revision: 0 });
    const first = { body: { enabled: true, branding: { name: 'Fresh' } } };
    const etag = { headers: { 'if-match': headers.get('etag') } };
    const fresh = '/v1/accounts/fresh/notifications';
    expect((await ask('PUT', fresh, { ...first, ...etag })).body).toMatchObject({
      enabled: true,
      since: expect.any(String),
      locale: 'en-NZ',
      revision: 1,
    });
    expect((await ask('PUT', fresh, { ...first, ...etag })).status, 'another request was first').toBe(412);
  });

  test('warn of surprising effects', async () => {
    const put = async (more: object) => {
      const body = { enabled: true, branding: { name: 'Kiwi' }, ...more };
      return (await ask('PUT', path, { body })).body.warnings.join('\n');
    };
    expect(await put({})).toBe('');
    expect(await put({ ownUser: true })).toMatch(/If the ordering API also notifies this user/);
    expect(await put({ dryRun: true })).toMatch(/nothing is sent/);
  });

  test.each([
    [{ enabled: 'yes' }, 'enabled', 'enabled must be true or false.'],
    [{ branding: { name: '' } }, 'branding.name', 'branding.name must not be empty.'],
    [
      { branding: { name: 'A', color: 'red' } },
      'branding.color',
      'branding.color must be a colour such as #1a73e8.',
    ],
    [{ zone: 'Mars' }, 'zone', 'zone must be the IANA name of a time zone, such as Europe/London.'],
    [
      { sms: { quietHours: { from: '9', to: '10:00' } } },
      'sms.quietHours.from',
      /a time from 00:00 to 23:59/,
    ],
  ])('reject %j with the field and the accepted values', async (more, field, detail) => {
    const body = { enabled: true, branding: { name: 'Kiwi' }, ...more };
    const { status, body: problem } = await ask('PUT', path, { body });
    expect([status, problem.field]).toEqual([400, field]);
    expect(problem.detail).toMatch(detail);
  });
});

describe('recipients', () => {
  const path = `${account}/recipients`;

  test('are created, changed only with their current ETag, and deleted', async () => {
    const made = await ask('POST', path, { body: { name: 'Cy', email: 'Cy@Example.COM', jobNumber: 7 } });
    expect([made.status, made.body.email, made.body.jobNumber]).toEqual([201, 'Cy@example.com', 7]);
    const at = made.headers.get('location') ?? '';
    expect((await ask('GET', at)).body).toEqual(made.body);
    const headers = { 'if-match': made.headers.get('etag') };
    const change = await ask('PATCH', at, { body: { paused: true, orderGroup: 'Spring' }, headers });
    expect(change.body).toMatchObject({ paused: true, orderGroup: 'Spring', jobNumber: null, name: 'Cy' });
    expect((await ask('PATCH', at, { body: { paused: false }, headers })).status).toBe(412);
    expect((await ask('DELETE', at, { headers })).status).toBe(412);
    expect((await ask('DELETE', at)).status).toBe(204);
    expect((await ask('GET', at)).status).toBe(404);
  });

  test('are separate for each account', async () => {
    const body = { id: 'only-here', email: 'x@example.com' };
    expect((await ask('POST', path, { body })).status).toBe(201);
    expect((await ask('GET', `/v1/accounts/${FOREIGN}/recipients/only-here`)).status).toBe(404);
  });

  test.each([
    [{ email: 'nobody' }, 'email'],
    [{}, 'email'],
    [{ mobile: '12' }, 'mobile'],
    [{ email: 'a@example.com', channels: ['sms'] }, 'mobile'],
    [{ email: 'a@example.com', channels: ['fax'] }, 'channels[0]'],
    [{ email: 'a@example.com', kinds: [] }, 'kinds'],
    [{ email: 'a@example.com', locale: 'xx' }, 'locale'],
    [{ id: 'ann', email: 'a@example.com' }, 'id'],
  ])('%j is rejected with the name of the field', async (body, field) => {
    const { status, body: problem } = await ask('POST', path, { body });
    expect(status, problem.detail).toBeGreaterThanOrEqual(400);
    expect([problem.field, problem.detail.startsWith(`${field} `)]).toEqual([field, true]);
  });

  test('have one scope at most', async () => {
    const { status, body } = await ask('POST', path, {
      body: { email: 'a@example.com', jobNumber: 1, orderGroup: 'x' },
    });
    expect(status).toBe(422);
    expect(body.detail).toMatch(/one of orderGroup, orderNumber and jobNumber/);
  });

  test('are imported from CSV; invalid rows are reported by line, field and reason, and change nothing', async () => {
    const csv = 'name,email,mobile\nDee,dee@example.com,\nEve,nobody,\nFay,,+64211234999\n';
    const dry = await ask('POST', `${path}/import`, { body: { csv, dryRun: true } });
    const report = {
      created: 2,
      updated: 0,
      unchanged: 0,
      invalidRows: [
        { line: 3, field: 'email', reason: expect.stringMatching(/^email must be an e-mail address/) },
      ],
    };
    expect(dry.body).toEqual(report);
    expect((await ask('GET', path)).body.recipients).toHaveLength(2);
    expect((await ask('POST', `${path}/import`, { body: { csv } })).body).toEqual(report);
    expect((await ask('POST', `${path}/import`, { body: { csv } })).body).toEqual({
      ...report,
      created: 0,
      unchanged: 2,
    });
    const names = (await ask('GET', path)).body.recipients.map(({ name }: Body) => name);
    expect(names.sort()).toEqual(['Ann Lee', 'Dee', 'Fay', null]);
    const none = await ask('POST', `${path}/import`, { body: { csv: 'colour\nred\n' } });
    expect([none.status, none.body.field]).toEqual([422, 'csv']);
  });
});

describe('templates', () => {
  const path = `${account}/templates/dispatched/email`;

  test('are the default ones until an account has its own', async () => {
    const before = (await ask('GET', `${path}/en-GB`)).body;
    expect(before).toMatchObject({ custom: false, changedAt: null });
    const template = { subject: 'Gone: {{ order }}', intro: 'It has left.' };
    expect((await ask('PUT', `${path}/en-GB`, { body: template })).body).toMatchObject({
      custom: true,
      template,
    });
    expect((await ask('GET', `${path}/en-GB`)).body).toMatchObject({ custom: true, template });
    const { templates } = (await ask('GET', `${account}/templates`)).body;
    expect(templates).toHaveLength(5 * 2 * locales.length);
    expect(templates.filter(({ custom }: Body) => custom)).toHaveLength(1);
    expect((await ask('DELETE', `${path}/en-GB`)).status).toBe(204);
    expect((await ask('GET', `${path}/en-GB`)).body).toEqual(before);
  });

  test('are saved and deleted only with their current ETag', async () => {
    const getEtag = async () => (await ask('GET', `${path}/en-GB`)).headers.get('etag') ?? '';
    const save = (subject: string, ifMatch: string) =>
      ask('PUT', `${path}/en-GB`, { body: { subject }, headers: { 'if-match': ifMatch } });
    const first = await getEtag();
    const saved = await save('First', first);
    expect([saved.status, saved.headers.get('etag')]).toEqual([200, await getEtag()]);
    expect(await getEtag()).not.toBe(first);
    expect((await save('Second', first)).status).toBe(412);
    const second = await getEtag();
    expect((await save('Second', second)).status).toBe(200);
    const remove = (ifMatch: string) => ask('DELETE', `${path}/en-GB`, { headers: { 'if-match': ifMatch } });
    expect((await remove(second)).status).toBe(412);
    expect((await ask('GET', `${path}/en-GB`)).body.template.subject).toBe('Second');
    expect((await remove(await getEtag())).status).toBe(204);
    expect(await getEtag()).toBe(first);
  });

  test('have an ETag that a deleted template of the same place did not have', async () => {
    const save = (headers?: Record<string, string>) =>
      ask('PUT', `${path}/en-GB`, { body: { subject: 'Sent' }, ...(headers && { headers }) });
    const deleted = (await save()).headers.get('etag') ?? '';
    await ask('DELETE', `${path}/en-GB`);
    expect((await save()).status).toBe(200);
    expect((await save({ 'if-match': deleted })).status).toBe(412);
    await ask('DELETE', `${path}/en-GB`);
  });

  test('may omit all but one field, and are rejected with none', async () => {
    const outro = { outro: '' };
    expect((await ask('PUT', `${path}/fr`, { body: outro })).body).toMatchObject({
      custom: true,
      template: outro,
    });
    expect((await ask('DELETE', `${path}/fr`)).status).toBe(204);
    const { status, body } = await ask('PUT', `${path}/fr`, { body: {} });
    expect([status, body.detail]).toEqual([
      422,
      expect.stringContaining('must have at least one of subject'),
    ]);
  });

  test.each([
    [{ subject: '{{ nobody }}' }, 422, 'subject'],
    [{ subject: '{{ order' }, 422, 'subject'],
    [{ subject: 'x', html: '<p>No way out</p>' }, 422, 'html'],
    [{ html: '' }, 422, 'html'],
    [{ subject: '' }, 422, 'subject'],
    [{ subject: 'x'.repeat(501) }, 400, 'subject'],
    [{ colour: 'red' }, 400, 'colour'],
  ])('%j is rejected with the name of the field', async (body, status, field) => {
    const answer = await ask('PUT', `${path}/de`, { body });
    expect([answer.status, answer.body.field]).toEqual([status, field]);
    expect((await ask('GET', `${path}/de`)).body.custom).toBe(false);
  });
});

describe('a preview', () => {
  const path = `${account}/notifications/preview`;
  const email = { kind: 'dispatched', channel: 'email' };

  test('is of a real job, to a recipient, in the effective locale and zone', async () => {
    const [job] = shared.world.ids.jobs;
    const body = { ...email, jobNumber: job, recipient: 'ann' };
    const shown = await ask('POST', path, { body });
    expect(shown.body).toMatchObject({
      ...{ jobNumber: job, locale: 'en-GB', zone: 'Europe/London', custom: false, segments: null },
    });
    expect(shown.body.text).toContain('Hello Ann Lee');
    // The description of the jobs is hostile.
    expect(shown.body.html).toContain('&lt;b&gt;');
    expect(shown.body.html).not.toContain('<b>\\');
    expect((await ask('POST', path, { body: { ...body, locale: 'de' } })).body.text).toContain('Ann Lee');
  });

  test('is of sample jobs, for every kind, channel and locale', async () => {
    for (const kind of ['dispatched', 'tracking', 'dispatch_revoked', 'due_date_changed', 'cancelled']) {
      for (const channel of ['email', 'sms']) {
        for (const locale of locales) {
          const { status, body } = await ask('POST', path, { body: { kind, channel, locale } });
          expect([kind, channel, locale, status]).toEqual([kind, channel, locale, 200]);
          expect(body.text.length).toBeGreaterThan(20);
          if (channel === 'sms') expect(body.segments).toBeLessThanOrEqual(2);
        }
      }
    }
  });

  test('renders a template before it is saved', async () => {
    const { body } = await ask('POST', path, { body: { ...email, template: { subject: 'Gone!' } } });
    expect([body.subject, body.custom]).toEqual(['Gone!', false]);
    await ask('PUT', `${account}/templates/dispatched/email/en-GB`, { body: { subject: 'Mine' } });
    expect((await ask('POST', path, { body: email })).body).toMatchObject({ subject: 'Mine', custom: true });
  });

  test.each([
    [{ ...email, jobNumber: 987_654 }, 'jobNumber'],
    [{ ...email, recipient: 'nobody' }, 'recipient'],
    [{ ...email, template: { subject: '' } }, 'template.subject'],
    [{ ...email, zone: 'x' }, 'zone'],
    [{ ...email, kind: 'x' }, 'kind'],
  ])('of %j is rejected with the field', async (body, field) => {
    expect((await ask('POST', path, { body })).body).toMatchObject({ field });
  });
});

describe('messages', () => {
  test('are listed by account, job and recipient, newest first, and by state', async () => {
    const getIds = async (path: string) =>
      (await ask('GET', account + path)).body.messages.map(({ id }: Body) => id);
    const [first, second, third] = told().messages;
    expect(await getIds('/messages')).toEqual([third, second, first]);
    expect(await getIds('/messages?state=waiting')).toEqual([third, second, first]);
    expect(await getIds('/messages?state=sent')).toEqual([]);
    expect(await getIds('/jobs/1/messages')).toEqual([third, second, first]);
    expect(await getIds('/jobs/2/messages')).toEqual([]);
    expect(await getIds('/recipients/ann/messages')).toEqual([second, first]);
    const page = (await ask('GET', `${account}/messages?limit=2`)).body;
    expect(page.messages).toHaveLength(2);
    expect(await getIds(`/messages?limit=2&after=${page.next}`)).toEqual([first]);
  });
});

describe('the unsubscribe page', () => {
  const FORM = 'application/x-www-form-urlencoded';
  const path = () => `/v1/unsubscribe/${told().token}`;
  const open = async (init: RequestInit = {}, url = path()) => {
    const response = await shared.world.app.request(url, init);
    return { status: response.status, headers: response.headers, text: await response.text() };
  };
  const stopped = async () => {
    const ref = { region: 'us', account: OWN };
    return (
      (await findSuppression(shared.world.table, ref, 'email', ADDRESSES.email.ann))?.reason ===
      'unsubscribed'
    );
  };

  test('changes nothing on GET', async () => {
    for (const method of ['GET', 'HEAD']) expect((await open({ method })).status).toBe(200);
    expect(await stopped()).toBe(false);
    expect((await open()).text).toContain('value="unsubscribe"');
  });

  const multipart = new FormData();
  multipart.set('List-Unsubscribe', 'One-Click');
  test.each<[string, RequestInit]>([
    ['one click, URL-encoded', { headers: { 'content-type': FORM }, body: 'List-Unsubscribe=One-Click' }],
    ['one click, multipart', { body: multipart }],
    ['the button', { headers: { 'content-type': FORM }, body: 'choice=unsubscribe' }],
    ['nothing', {}],
    ['no form at all', { headers: { 'content-type': 'text/plain' }, body: 'hello' }],
    ['a broken form', { headers: { 'content-type': 'multipart/form-data; boundary=x' }, body: '--y' }],
  ])('stops messages on %s, without a redirect', async (_, init) => {
    const { status, text } = await open({ method: 'POST', ...init });
    expect([status, await stopped()]).toEqual([200, true]);
    expect(text).toContain('You are unsubscribed');
    // A repetition, and a GET, return the same text.
    expect((await open({ method: 'POST', ...init })).status).toBe(200);
    expect((await open()).text).toContain('value="subscribe"');
  });

  test('resubscribes', async () => {
    await open({ method: 'POST' });
    const again = { method: 'POST', headers: { 'content-type': FORM }, body: 'choice=subscribe' };
    expect((await open(again)).text).toContain('You are subscribed again');
    expect(await stopped()).toBe(false);
  });

  test.each([
    ['en', 'No e\u2011mails are sent to this address', 'To receive e\u2011mails again, contact <bdi>'],
    ['de', 'An diese Adresse gehen keine E\u2011Mails', 'wenden Sie sich bitte an <bdi>'],
    ['fr', 'Aucun e\u2011mail n’est envoyé à cette adresse', 'adressez-vous à <bdi>'],
  ])(
    'says in %s that no messages are sent to an address that is suppressed for another reason',
    async (language, head, contact) => {
      const deps = { table: shared.world.table, now: Date.now, newId: randomUUID };
      const ref = { region: 'us', account: OWN };
      const addressed = { channel: 'email', address: ADDRESSES.email.ann } as const;
      await suppress(deps, ref, addressed, 'complained');
      const headers = { 'accept-language': language };
      const subscribe = {
        method: 'POST',
        headers: { ...headers, 'content-type': FORM },
        body: 'choice=subscribe',
      };
      for (const page of [await open({ headers }), await open(subscribe)]) {
        expect([page.status, page.text]).toEqual([200, expect.stringContaining(`<h1>${head}</h1>`)]);
        expect(page.text).toContain(contact);
        expect(page.text).not.toContain('<form');
      }
      await open({ method: 'POST' });
      expect((await open({ headers })).text).toContain('value="subscribe"');
      expect((await open(subscribe)).text).toContain(contact);
    },
  );

  test('does neither for an unknown choice, or an invalid link', async () => {
    const odd = await open({ method: 'POST', headers: { 'content-type': FORM }, body: 'choice=maybe' });
    expect([odd.status, JSON.parse(odd.text).field]).toEqual([400, 'choice']);
    const forged = path().replace(/.$/, (last) => (last === 'A' ? 'B' : 'A'));
    const other = path().replace('.acme.', `.${FOREIGN}.`);
    for (const url of [forged, other, '/v1/unsubscribe/%00']) {
      for (const method of ['GET', 'POST']) {
        const { status, text, headers } = await open({ method }, url);
        expect([url, status, headers.get('content-type')]).toEqual([url, 404, 'text/html; charset=utf-8']);
        expect(text).not.toContain('<form');
      }
    }
    expect(await stopped()).toBe(false);
  });

  test('explains the link of a preview, and changes nothing', async () => {
    const preview = (
      await ask('POST', `${account}/notifications/preview`, {
        body: { kind: 'dispatched', channel: 'email' },
      })
    ).body;
    const url = /https?:\S+\/v1\/unsubscribe\/\S+/.exec(preview.text)?.[0] ?? '';
    for (const method of ['GET', 'POST']) {
      const { status, text } = await open({ method }, new URL(url).pathname);
      expect([method, status]).toEqual([method, 200]);
      expect(text).toContain('In a preview or a test message, it changes nothing.');
      expect(text).not.toContain('<form');
    }
    expect(await stopped()).toBe(false);
  });

  test.each([
    ['de-AT,de;q=0.9,en;q=0.8', 'de', 'Abmelden'],
    ['fr', 'fr', 'Se désabonner'],
    ['ja, en-US;q=0.5', 'en-US', 'Unsubscribe'],
    ['en', 'en-GB', 'Unsubscribe'],
    ['de;q=0, fr;q=0.2', 'fr', 'Se désabonner'],
    ['de;q=0, xx', 'en-GB', 'Unsubscribe'],
    ['de;q=0.1, fr;q=0.2', 'fr', 'Se désabonner'],
    ['xx;q=, *', 'en-GB', 'Unsubscribe'],
    [undefined, 'en-GB', 'Unsubscribe'],
  ])('has the language of the request: %s', async (accepted, locale, button) => {
    const headers = accepted === undefined ? {} : { 'accept-language': accepted };
    const { text, headers: said } = await open({ headers });
    expect([said.get('content-language'), text.includes(`<html lang="${locale}">`)]).toEqual([locale, true]);
    expect(text).toContain(button);
  });

  test('has no script, no external resource, and no address; it forbids frames, caches and referrers', async () => {
    await ask('PUT', `${account}/notifications`, {
      body: { enabled: true, branding: { name: '<script>alert(1)</script>"', color: '#ffffff' } },
    });
    const { text, headers } = await open();
    expect(text).not.toMatch(/<script|https?:|ann@|\son\w+=/i);
    expect(text).toContain('&lt;script&gt;alert(1)&lt;/script&gt;&quot;');
    const policy = headers.get('content-security-policy') ?? '';
    expect(policy).toMatch(/default-src 'none'; style-src 'sha256-[\w+/=]+'; .*form-action 'self'/);
    expect(policy).not.toMatch(/unsafe/);
    expect(headers.get('x-frame-options')).toBe('DENY');
    expect(headers.get('referrer-policy')).toBe('no-referrer');
    expect(headers.get('cache-control')).toBe('no-store');
  });
});

describe('notes', () => {
  const path = () => `${account}/jobs/${shared.world.ids.jobs[0]}`;
  const note = { recipient: 'ann', channel: 'email', text: 'Soon.' };
  const send = (body: object, by: keyof ApiWorld['keys'] = 'operate own') =>
    ask('POST', `${path()}/messages`, { body, by });

  test('are previewed, sent once, and recorded with the name of the key', async () => {
    const preview = await send({ ...note, dryRun: true });
    expect(preview.body).toMatchObject({
      created: false,
      message: { kind: 'note', state: 'dry_run', to: { address: ADDRESSES.email.ann } },
      html: expect.stringContaining('Soon.'),
    });
    const ids = async () =>
      (await ask('GET', `${path()}/messages`)).body.messages
        .filter(({ kind }: Body) => kind === 'note')
        .map(({ id }: Body) => id);
    expect(await ids()).toEqual([]);
    const [first, second] = [await send(note), await send(note)];
    expect([first.body.created, second.body.created]).toEqual([true, false]);
    expect(await ids()).toEqual([first.body.message.id]);
    expect(second.body.message).toMatchObject({
      id: first.body.message.id,
      sentBy: { id: expect.any(String), name: expect.any(String) },
    });
  });

  test('are rejected with the reason for other recipients', async () => {
    expect((await send({ ...note, recipient: 'nobody' })).body.detail).toMatch(/recipient of the job/);
    expect((await send(note, 'read own')).status).toBe(403);
    expect((await send(note, 'operate foreign')).status).toBe(404);
    expect((await ask('POST', `${account}/jobs/999999/messages`, { body: note })).status).toBe(404);
  });

  test('the recipients of a job have masked addresses for keys that only read', async () => {
    const read = async (by: keyof ApiWorld['keys']) =>
      (await ask('GET', `${path()}/recipients`, { by })).body.recipients.find(
        ({ recipient, channel }: Body) => recipient === 'ann' && channel === 'email',
      );
    expect(await read('read own')).toMatchObject({ address: 'a•••@e•••.com', reason: null });
    expect(await read('operate own')).toMatchObject({ address: ADDRESSES.email.ann });
  });
});
