/** A real `npm start`: its events, and its notifications: parsed mails, SMS, and working links. */
import { existsSync, readdirSync } from 'node:fs';
import { delimiter, dirname } from 'node:path';
import { type ParsedMail, simpleParser } from 'mailparser';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { createDemoScenario } from '../../local/demo.ts';
import { startHost } from '../../local/host.ts';
import { type Caught, startMailbox } from '../../local/mailbox.ts';
import { addDemoAccounts } from '../../sandbox/simulation/scenario.ts';
import { createWorld } from '../../sandbox/world/world.ts';
import { parseConfig } from '../../shared/config.ts';
import { createRecipient } from '../../shared/notifications/recipients.ts';
import { saveSettings } from '../../shared/notifications/settings.ts';
import { measureSms } from '../../shared/notifications/sms-text.ts';
import { isAlive, launch, listChildren, type Running } from '../support/command.ts';
import { configFor, generatedKey, launchJobwire, startSandbox } from '../support/jobwire.ts';
import { sized } from '../support/runs.ts';
import { fileTables } from '../support/tables.ts';

/** The demo runs in real time: its opening lasts twenty seconds. */
const PATIENCE_MS = 120_000;
/** The path of a shell outside of npm. */
const SHELL_PATH = process.env.PATH?.split(delimiter)
  .filter((folder) => !folder.includes('node_modules'))
  .join(delimiter);

describe('the demo', () => {
  const stops: (() => unknown)[] = [];
  let demo: Running;
  let url: string;
  /** The address of the sandbox's operations. */
  let admin: string;
  let key: string;
  let inbox: Awaited<ReturnType<typeof follow>>;

  beforeAll(async () => {
    demo = launchJobwire(['--port', '0'], { end: (stop) => stops.push(stop) });
    url = (await demo.printed(/Mailbox +(http\S+)\/mailbox /)).trim();
    key = await generatedKey(demo);
    admin = await demo.printed(/Control panel +(http\S+)\/panel /);
    inbox = await follow(url);
    await Promise.all(
      ['us/bluebird-apparel', 'eu/atelier-nordlys', 'au/wattle-lane'].map((account) =>
        demo.printed(new RegExp(`${account} +account\\.baselined`)),
      ),
    );
    await Promise.all([
      dispatch('us', 'Bluebird Apparel', 'US-1'),
      dispatch('eu', 'Atelier Nordlys', 'EU-1'),
      dispatch('au', 'Wattle Lane', 'AU-1'),
    ]);
  }, PATIENCE_MS);
  afterAll(async () => {
    inbox?.leave();
    for (const stop of stops) await stop();
  });

  const api = async <T>(path: string): Promise<T> => {
    const answer = await fetch(`${url}/v1${path}`, { headers: { authorization: `Bearer ${key}` } });
    expect(answer.status, path).toBe(200);
    return (await answer.json()) as T;
  };

  /** Lets a customer order something that is dispatched at once. */
  const dispatch = async (region: string, account: string, orderNumber: string): Promise<void> => {
    const post = async (path: string, body: object) => {
      const answer = await fetch(`${admin}/jobs${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      expect(answer.ok, await answer.clone().text()).toBe(true);
      return (await answer.json()) as { jobNumber: number };
    };
    const { jobNumber } = await post('', { region, account, orderNumber });
    const tracking = [{ trackingNumber: orderNumber, trackingLink: `https://trace.example/${orderNumber}` }];
    await post(`/${region}/${jobNumber}/dispatch`, { tracking });
  };

  test('sends one mail per dispatch with both bodies, a link for each parcel, and all required headers', {
    timeout: PATIENCE_MS,
  }, async () => {
    const mail = await inbox.mail('riley@bluebird.example', 'US-1');
    expect(mail.from?.value).toEqual([{ name: 'Bluebird Apparel', address: 'orders@jobwire.example' }]);
    expect(mail.to?.value).toEqual([{ name: 'Riley Chen', address: 'riley@bluebird.example' }]);
    expect(mail.replyTo?.value[0]?.address).toBe('hello@bluebird.example');
    expect(mail.subject).toBe('Your order US-1 is on its way');
    expect(mail.messageId).toMatch(/^<[^@]+@jobwire\.example>$/);
    expect(getHeader(mail, 'auto-submitted')).toBe('auto-generated');
    expect(getHeader(mail, 'list-unsubscribe-post')).toBe('List-Unsubscribe=One-Click');
    const unsubscribe = getUnsubscribeLink(mail);
    expect(unsubscribe.startsWith(`${url}/v1/unsubscribe/`)).toBe(true);
    const html = mail.html || '';
    for (const body of [html, mail.text ?? '']) {
      expect(body).toContain('Riley Chen');
      expect(body).toContain(unsubscribe);
    }
    expect(html).toContain('href="https://trace.example/US-1"');
    expect(mail.text).toContain('https://trace.example/US-1');
    expect(html).not.toMatch(/<script|javascript:/i);
  });

  test("sends each recipient's language", { timeout: PATIENCE_MS }, async () => {
    const [german, french] = await Promise.all([
      inbox.mail('lager@nordlys.example', 'EU-1'),
      inbox.mail('camille@nordlys.example', 'EU-1'),
    ]);
    expect(german.subject).toMatch(/^Ihre Bestellung EU-1 /);
    expect(french.subject).toMatch(/^Votre commande EU-1 /);
    expect(german.html).toContain('lang="de"');
    expect(french.html).toContain('lang="fr"');
  });

  test('sends SMS of two segments at most, with the configured sender', {
    timeout: PATIENCE_MS,
  }, async () => {
    const sms = await inbox.sms('+61491570156', 'AU-1');
    expect(sms.from.address).toBe('WattleLane');
    expect(sms.text).toMatch(/^Wattle Lane: .*https:\/\/trace\.example\/AU-1/s);
    expect(measureSms(sms.text).segments).toBeLessThanOrEqual(2);
  });

  test('one click unsubscribes, STOP opts out, and the next message is not sent', {
    timeout: PATIENCE_MS,
  }, async () => {
    const mail = await inbox.mail('riley@bluebird.example', 'US-1');
    await inbox.sms('+12025550143', 'US-1');
    const looked = await fetch(getUnsubscribeLink(mail));
    expect([looked.status, looked.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    const clicked = await fetch(getUnsubscribeLink(mail), {
      method: 'POST',
      body: new URLSearchParams({ 'List-Unsubscribe': 'One-Click' }),
    });
    expect(clicked.status).toBe(200);
    const number = encodeURIComponent('+12025550143');
    await fetch(`${url}/mailbox/opted-out/${number}`, { method: 'PUT' });

    await dispatch('us', 'Bluebird Apparel', 'US-2');
    // The warehouse still gets mails.
    const told = await inbox.mail('dock@bluebird.example', 'US-2');
    expect(told.subject).toContain('US-2');
    type Told = { messages: { state: string; reason: string | null; channel: string }[] };
    const heldBack = async (recipient: string) => {
      const { messages } = await api<Told>(`/accounts/bluebird-apparel/recipients/${recipient}/messages`);
      return messages.map(({ state, channel, reason }) => `${channel} ${state} ${reason}`);
    };
    const soon = { timeout: 30_000, interval: 100 };
    await expect.poll(() => heldBack('owner'), soon).toContain('email suppressed unsubscribed');
    await expect
      .poll(() => heldBack('warehouse'), soon)
      .toContainEqual(expect.stringMatching(/^sms \w+ opted_out$/));
    expect(inbox.has('riley@bluebird.example', 'US-2')).toBe(false);
    expect(inbox.has('+12025550143', 'US-2')).toBe(false);
  });

  test('sends one mail for jobs of an order group dispatched together, with a shared parcel once', {
    timeout: PATIENCE_MS,
  }, async () => {
    // For this order group alone. It is dispatched at the end of the opening.
    const mail = await inbox.mail('orders@coastcafe.example', 'WEB-100002');
    const html = mail.html || '';
    for (const parcel of ['OPEN-3001', 'OPEN-3002']) {
      const href = `href="https://trace.example/${parcel}"`;
      expect(html.split(href), parcel).toHaveLength(2);
    }
    const { messages } = await api<{ messages: { jobs: number[]; kind: string }[] }>(
      '/accounts/kowhai-print-co/recipients/coast-cafe/messages',
    );
    expect(messages.map(({ kind, jobs }) => [kind, jobs.length])).toEqual([['dispatched', 3]]);
  });

  test('the terminal has a line for each, without addresses', { timeout: PATIENCE_MS }, async () => {
    await inbox.mail('aroha@kowhaiprint.example', '');
    const { last } = (await (await fetch(`${url}/mailbox/messages`)).json()) as { last: number };
    const lines = () =>
      demo
        .out()
        .split('\n')
        .filter((line) => / (e-mail|SMS) +to /.test(line) && !line.includes('Mailbox'));
    await expect.poll(() => lines().length).toBeGreaterThanOrEqual(last);
    for (const line of lines()) expect(line).toMatch(/ to (\S•••@\S•••\.example|\+\d\d •••• \d\d\d): \S/);
    expect(demo.out()).not.toMatch(/@(bluebird|kowhaiprint|nordlys)|\+1202555|\+4915|\+6149/);
    expect(demo.err()).toBe('');
  });

  test('each printed command works as printed in the folder of the repository, without a build', {
    timeout: PATIENCE_MS,
  }, async () => {
    const [, list = ''] = /Try in another terminal\n(.+?)\n\n/s.exec(demo.out()) ?? [];
    const commands = list.split('\n').map((line) => line.trim());
    const run = (command: string) => launch(['sh', '-c', command], { env: { PATH: SHELL_PATH } }).ended;
    const printed = await Promise.all(
      // The stream of events ends when its reader does.
      commands.map((command) => run(command.includes(' events tail ') ? `${command} | head -n 1` : command)),
    );
    expect(printed.map(({ code }) => code)).toEqual(commands.map(() => 0));
    const [accounts, jobs, tail, curl, ...others] = printed.map(({ out }) => out);
    expect(accounts).toMatch(/^ACCOUNT .*\n(\S+ .*\n){5}$/);
    expect(jobs).toMatch(/^ *JOB .*\n( *\d+ .*\n){5}$/);
    expect(tail).toMatch(/^\S+Z \w+\/\S+ +account\.baselined /);
    expect(JSON.parse(curl ?? '')).toMatchObject({ events: Array(5).fill({ specversion: '1.0' }) });
    expect(others).toEqual([]);
  });

  test('the address of the dashboard is repeated before it scrolls off a screen of 24 lines', {
    timeout: PATIENCE_MS,
  }, async () => {
    const address = `Dashboard: ${url}/`;
    await expect.poll(() => demo.out().split(address).length, { timeout: 60_000 }).toBeGreaterThan(3);
    const [, live = ''] = demo.out().split('Press Ctrl-C to stop\n');
    const parts = live
      .split('\n')
      .map((line) => (line.includes(address) ? address : ''))
      .join('\n')
      .split(address);
    for (const part of parts) expect(part.split('\n').length - 2).toBeLessThanOrEqual(20);
  });

  // The last test: it ends the demo.
  test('delivers events of every kind to a verified receiver, and Ctrl-C leaves neither process nor folder', {
    timeout: PATIENCE_MS,
  }, async () => {
    const [, keyFile = ''] = /API key +in (\S+)/.exec(demo.out()) ?? [];
    expect(demo.out()).not.toContain(key);
    await Promise.all([
      demo.printed(/account\.baselined/),
      demo.printed(/job\.status_changed/),
      demo.printed(/job\.dispatched/),
      demo.printed(/job\.tracking_added/),
      demo.printed(/job\.cancelled/),
      demo.printed(/Dashboard: \S+ +[1-9]\d* webhooks with verified signature$/m),
    ]);
    const page = await fetch(`${url}/`);
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(await page.text()).toContain('<div id="root">');

    const below = await listChildren(demo.child.pid ?? 0);
    if (process.platform === 'linux') {
      const threads = [demo.child.pid, ...below].map((pid) => readdirSync(`/proc/${pid}/task`).length);
      expect(
        Math.max(...threads),
        'enough threads that names without response delay no others',
      ).toBeGreaterThan(32);
    }
    inbox.leave();
    demo.child.kill('SIGINT');
    expect((await demo.ended).code).toBe(0);
    expect(below.filter(isAlive)).toEqual([]);
    expect(existsSync(dirname(keyFile)), 'the temporary folder').toBe(false);
  });
});

describe('the demo’s jobs', () => {
  test('are cancelled too rarely to cause a quarantine', () => {
    let now = Date.UTC(2026, 0, 5);
    const world = createWorld({ now: () => now });
    const accounts = addDemoAccounts(world, 1);
    const cancelled = new Map<string, number[]>();
    const scenario = createDemoScenario(world, {
      startAt: now,
      seed: 1,
      onEvent: ({ at, account, kind }) => {
        if (kind === 'cancelled') cancelled.set(account, [...(cancelled.get(account) ?? []), at]);
      },
    });
    for (let minute = 0; minute < sized(28, 36) * 60; minute += 1) {
      now += 60_000;
      scenario.advanceTo(now);
    }
    expect(accounts).toHaveLength(5);
    expect(cancelled.size).toBeGreaterThan(0);
    for (const times of cancelled.values()) {
      for (const at of times) {
        // Verdicts count by the hour, and for one hour more (rule 10).
        const within = times.filter((one) => one <= at && one > at - 25 * 3_600_000);
        expect(within.length).toBeLessThanOrEqual(10);
      }
    }
  });
});

describe('a configured Jobwire', () => {
  const open: (() => unknown)[] = [];
  afterEach(async () => {
    for (const close of open.splice(0).reverse()) await close();
  });

  test('sends through its configured mail server, also after a restart', {
    timeout: PATIENCE_MS,
  }, async () => {
    const heard: Caught[] = [];
    let wake = (): void => {};
    const mailbox = await startMailbox({ onCaught: (caught) => heard.push(caught) && wake() });
    open.push(() => mailbox.stop());
    const got = async (subject: string): Promise<void> => {
      while (!heard.some((caught) => caught.subject?.includes(subject))) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    };
    const { sandbox, world } = await startSandbox();
    const account = world.addAccount({ region: 'us', name: 'acme' });
    const config = parseConfig(
      {
        ...configFor(sandbox, [account]),
        publicUrl: 'https://jobwire.example/wire/',
        notifications: { from: 'orders@acme.example', smtp: mailbox.smtp },
      },
      {},
    );
    const { table, history } = await fileTables();
    const start = async () => {
      const host = await startHost({
        ...{ config, table, history, secretKey: Buffer.alloc(32, 1) },
        ...{ publicUrl: config.publicUrl ?? '', exclusive: true, tickMs: 50, noticeGraceMs: 0 },
        onFault: (_, cause) => {
          throw cause;
        },
      });
      open.push(() => host.stop(2_000));
      return host;
    };
    const jobs = ['one', 'two'].map((orderNumber) => account.createJob({ orderNumber }));
    const first = await start();
    const ref = { region: 'us', account: 'acme' };
    const branding = { name: 'Acme' };
    const saved = await saveSettings(first.accounts, ref, { enabled: true, windowSeconds: 0, branding });
    expect(saved.kind).toBe('saved');
    const made = await createRecipient(first.accounts, ref, { email: 'ann@customer.example' });
    expect(made.kind).toBe('created');
    await expect
      .poll(async () => (await first.log.head(ref))?.sequence, { timeout: 20_000 })
      .toBeGreaterThan(0);
    account.dispatch(jobs[0] ?? 0, { tracking: [{ trackingNumber: 'T1', trackingLink: null }] });
    await got('one');
    const source = await mailbox.fetch(new Request('http://x/mailbox/messages/1/source'));
    const mail = await simpleParser(await source.text());
    expect(mail.from?.value[0]).toEqual({ name: 'Acme', address: 'orders@acme.example' });
    expect(getUnsubscribeLink(mail)).toMatch(/^https:\/\/jobwire\.example\/wire\/v1\/unsubscribe\/./);
    expect(mail.text, 'a number without a link is plain text').toContain('T1');
    await first.stop(2_000);

    await start();
    account.dispatch(jobs[1] ?? 0, { tracking: [] });
    await got('two');
    expect(heard.map(({ subject }) => subject)).toHaveLength(2);
  });
});

function getHeader(mail: ParsedMail, name: string): string {
  const line = mail.headerLines.find((header) => header.key === name)?.line ?? '';
  return line
    .slice(line.indexOf(':') + 1)
    .replace(/\r?\n\s*/g, '')
    .trim();
}

function getUnsubscribeLink(mail: ParsedMail): string {
  return /^<([^>]+)>$/.exec(getHeader(mail, 'list-unsubscribe'))?.[1] ?? '';
}

/** Reads the mailbox's live stream, like its page, and each mail as received. */
async function follow(url: string) {
  const gone = new AbortController();
  const stream = await fetch(`${url}/mailbox/stream?after=0`, { signal: gone.signal });
  const mails: { readonly to: string; readonly mail: ParsedMail }[] = [];
  const texts: (Caught & { readonly text: string })[] = [];
  const waiting = new Set<() => void>();
  const take = async (caught: Caught): Promise<void> => {
    const path = `${url}/mailbox/messages/${caught.id}`;
    if (caught.channel === 'sms') texts.push((await (await fetch(path)).json()) as Caught & { text: string });
    else {
      const source = await (await fetch(`${path}/source`)).text();
      mails.push({ to: caught.to.address, mail: await simpleParser(source) });
    }
    for (const look of waiting) look();
  };
  const read = async (): Promise<void> => {
    let said = '';
    for await (const chunk of stream.body ?? []) {
      said += new TextDecoder().decode(chunk);
      const events = said.split('\n\n');
      said = events.pop() ?? '';
      for (const event of events) {
        const data = /^event: caught\ndata: (.*)$/m.exec(event)?.[1];
        if (data !== undefined) await take(JSON.parse(data) as Caught);
      }
    }
  };
  read().catch(() => {});
  const until = async <T>(find: () => T | undefined): Promise<T> => {
    for (;;) {
      const found = find();
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => {
        const look = (): void => {
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        onTestFinished(() => void waiting.delete(look));
      });
    }
  };
  return {
    /** The first mail to an address whose subject contains this. */
    mail: (to: string, about: string) =>
      until(() => mails.find((one) => one.to === to && one.mail.subject?.includes(about))?.mail),
    /** The first SMS to a number that contains this. */
    sms: (to: string, about: string) =>
      until(() => texts.find((one) => one.to.address === to && one.text.includes(about))),
    /** Whether an address has a mail. */
    has: (to: string, about: string) =>
      mails.some((one) => one.to === to && one.mail.subject?.includes(about)) ||
      texts.some((one) => one.to.address === to && one.text.includes(about)),
    leave: () => gone.abort(),
  };
}
