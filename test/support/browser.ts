/**
 * Pages in a real browser that opens a real `npm start`.
 *
 *     const site = scriptedSite();                     // or demoSite(): one for the file
 *
 *     test('a status change is displayed without a reload', async () => {
 *       const job = site.account.createJob({ status: 'Scheduled' });
 *       const page = await signedIn(site, '/jobs');
 *       site.account.setStatus(job, 'In production');
 *       await page.getByRole('row', { name: String(job) }).getByText('In production').waitFor();
 *       await axe(page);
 *     });
 *
 * After each test, its pages must not have had a fault: an error on the console or in a script, a failed request or one with an
 * error status, a violation of the content security policy, a request to another origin, or a dialog of the browser. A test
 * declares the faults that it provokes: `expectFault(page, /answered 401/)`. The pages are then closed. If the test failed,
 * their screenshots are in `reports/browser`, and the log has their texts.
 * In the project `firefox`, the same functions use Firefox.
 * One file: opening a page, what must not occur on it, and the checks share the state of the page.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import axeCore from 'axe-core';
import type { Browser, Frame, Page, Request } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, inject } from 'vitest';
import { type Mailbox, startMailbox } from '../../local/mailbox.ts';
import type { Sandbox } from '../../sandbox/server.ts';
import { createWorld, type SandboxAccount, type World } from '../../sandbox/world/world.ts';
import type { Role } from '../../shared/api/key-input.ts';
import { launchChromium } from './chromium.ts';
import type { Running } from './command.ts';
import { launchFirefox } from './firefox.ts';
import { configFor, generatedKey, launchJobwire, startSandbox } from './jobwire.ts';
import { findPort } from './port.ts';

/** A running `npm start`. */
export interface Site {
  /** Base URL, such as `http://127.0.0.1:4000`. It remains the same after a restart. */
  readonly url: string;
  /** API key with all permissions. */
  readonly key: string;
  /** Sends a request to the API. The path begins after `/v1`. Throws an error with the response if its status is not 2xx. */
  api<T = unknown>(path: string, request?: ApiRequest): Promise<T>;
  /** Creates a key of a role, for all accounts or some. */
  makeKey(role: Role, accounts?: readonly string[]): Promise<{ readonly id: string; readonly key: string }>;
  /** Stops the program, and starts it again at the same address. A scripted site keeps its data. */
  stop(): Promise<void>;
  start(): Promise<void>;
}

/** Options of a request. */
export interface ApiRequest {
  /** Default: `POST` with a body, `GET` without one. */
  readonly method?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Default: the key with all permissions. */
  readonly key?: string;
}

/** A site whose ordering API is controlled by the test. Changes there are displayed within two seconds. */
export interface Scripted extends Site {
  readonly world: World;
  readonly sandbox: Sandbox;
  /** `acme` in `us`. */
  readonly account: SandboxAccount;
  /** A receiver of webhooks. No endpoint has its URL at first. */
  readonly receiver: Receiver;
  /** Receives the messages to customers. */
  readonly mailbox: Mailbox;
  /** Overrides settings of the configuration file, from the next start on. */
  configure(settings: object): void;
}

/** A receiver of webhooks. */
export interface Receiver {
  readonly url: string;
  readonly requests: { readonly headers: IncomingHttpHeaders; readonly body: string }[];
  /** Returns the response to a request, also for paths below `url`. Default: status 204. Can be replaced at any time. */
  answer: (body: string, path: string) => { readonly status: number; readonly body?: string };
}

/** Initial state of a scripted site. */
export interface ScriptedOptions {
  /** Called before the first poll, to create jobs and further accounts. The accounts are tracked under their names. */
  readonly prepare?: (world: World, account: SandboxAccount) => void;
  /** Overrides of the configuration file. */
  readonly config?: object;
}

/** Theme and size of a page. */
export interface Look {
  readonly theme?: 'light' | 'dark';
  readonly size?: Size;
}

/** Sizes of the viewport. `narrow` is the smallest supported one. */
export const sizes = {
  narrow: { width: 320, height: 640 },
  phone: { width: 390, height: 844 },
  desktop: { width: 1280, height: 800 },
  wall: { width: 1920, height: 1080 },
} as const;
export type Size = keyof typeof sizes;

/** Options of opening a page. */
export interface Visit extends Look {
  /** Default: true, because tests would have to wait for each transition. */
  readonly reducedMotion?: boolean;
  /** Default: false. */
  readonly forcedColors?: boolean;
  /** Default: `Europe/Amsterdam`. */
  readonly zone?: string;
}

const START_MS = 120_000;
/** Maximum time to wait for an element. */
const SEE_MS = 60_000;

/** Starts the demo before the first test of the file, and stops it after the last one. Its jobs change automatically. */
export function demoSite(): Site {
  const site = createSite((port) => ['--port', String(port)]);
  beforeAll(() => site.start(), START_MS);
  afterAll(() => site.stop());
  return site;
}

/** Starts a site with a simulated ordering API before the first test of the file, and stops it after the last one. */
export function scriptedSite(options: ScriptedOptions = {}): Scripted {
  const cleanups: (() => unknown)[] = [];
  const file = join(mkdtempSync(join(tmpdir(), 'jobwire-browser-')), 'jobwire.json');
  cleanups.push(() => rmSync(resolve(file, '..'), { recursive: true, force: true }));
  const world = createWorld({ now: Date.now });
  const account = world.addAccount({ region: 'us', name: 'acme' });
  options.prepare?.(world, account);
  // Accounts that are added later are not in the configuration file.
  const declared = world.accounts().slice();
  const site = createSite(() => ['--config', file]);
  const scripted = Object.assign(site, { world, account });

  beforeAll(async () => {
    const { sandbox } = await startSandbox({ world }, (stop) => cleanups.push(stop));
    const receiver = await startReceiver();
    cleanups.push(() => receiver.stop());
    const port = await findPort();
    const url = `http://127.0.0.1:${port}`;
    const mailbox = await startMailbox({ publicUrl: url });
    cleanups.push(() => mailbox.stop());
    const config = {
      ...configFor(sandbox, declared),
      port,
      publicUrl: url,
      dataDir: join(file, '..', 'data'),
      apiKey: site.key,
      notifications: { from: 'orders@acme.example', smtp: mailbox.smtp },
      webhooks: { allowPrivateNetworks: true, retrySeconds: [1, 1, 600] },
      // No process listens on this port: events are not delivered to endpoints that are queues.
      sqs: { endpoint: 'http://127.0.0.1:9' },
      departures: { confirmAfterSeconds: 2 },
      settling: { scheduleSeconds: [1], days: 1 },
      ...options.config,
    };
    const configure = (settings: object) =>
      writeFileSync(file, JSON.stringify(Object.assign(config, settings)));
    Object.assign(scripted, { sandbox, receiver, mailbox, configure });
    configure({});
    await site.start();
  }, START_MS);
  afterAll(async () => {
    await site.stop();
    for (const clean of cleanups.reverse()) await clean();
  });
  return scripted as Scripted;
}

/** Creates a site from the program's arguments. The first start chooses a free port. */
function createSite(argumentsFor: (port: number) => readonly string[]): Site {
  let running: Running | undefined;
  const site: { -readonly [Name in keyof Site]: Site[Name] } = {
    url: '',
    key: 'a-key-for-the-browser-tests',
    async api<T>(path: string, { method, body, headers, key = site.key }: ApiRequest = {}): Promise<T> {
      const answer = await fetch(`${site.url}/v1${path}`, {
        method: method ?? (body === undefined ? 'GET' : 'POST'),
        headers: {
          authorization: `Bearer ${key}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await answer.text();
      if (!answer.ok) throw new Error(`${method ?? ''} ${path} was answered ${answer.status}: ${text}`);
      return (text === '' ? undefined : JSON.parse(text)) as T;
    },
    async makeKey(role, accounts) {
      const body = { name: `${role} ${accounts?.join(' ') ?? ''}`.trim(), role, accounts };
      const { key, secret } = await site.api<{ key: { id: string }; secret: string }>('/keys', { body });
      return { id: key.id, key: secret };
    },
    async start() {
      const port = site.url === '' ? await findPort() : Number(new URL(site.url).port);
      running = launchJobwire(argumentsFor(port), { end: () => {} });
      site.url = (await running.printed(/HTTP API +(http\S+)/)).trim();
      await running.printed(/(Live events)/);
      if (running.out().includes('API key')) site.key = await generatedKey(running);
    },
    async stop() {
      running?.child.kill('SIGTERM');
      await running?.ended;
      running = undefined;
    },
  };
  return site;
}

async function startReceiver(): Promise<Receiver & { stop(): Promise<void> }> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      receiver.requests.push({ headers: request.headers, body });
      const answer = receiver.answer(body, request.url ?? '');
      response.writeHead(answer.status).end(answer.body);
    });
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const receiver: Receiver & { stop(): Promise<void> } = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    requests: [],
    answer: () => ({ status: 204 }),
    stop: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
  return receiver;
}

/** Browsers by what cannot be changed after their start. */
const browsers = new Map<string, Promise<Browser>>();
afterAll(async () => {
  for (const browser of browsers.values()) await (await browser).close();
  browsers.clear();
});

/** Faults of a page, and the patterns of those that the test expects. */
interface Watch {
  readonly faults: string[];
  readonly expected: RegExp[];
  /** Requests without a response, except streams, which do not end. */
  readonly waiting: Set<Request>;
  /** Whether the page stays open for the next test. */
  kept: boolean;
}

const watches = new Map<Page, Watch>();

afterEach(async ({ task }) => {
  const opened = [...watches];
  const unexpected = opened.flatMap(([, watch]) => unnamedFaults(watch));
  const missing = opened.flatMap(([, { faults, expected }]) =>
    expected.filter((pattern) => !faults.some((fault) => pattern.test(fault))).map(String),
  );
  const failed = task.result?.state === 'fail' || unexpected.length > 0 || missing.length > 0;
  for (const [at, [page, watch]] of opened.entries()) {
    if (failed) {
      mkdirSync('reports/browser', { recursive: true });
      const name = `${task.file.name} ${task.name}`.replace(/[^a-z0-9]+/gi, '-').slice(0, 120);
      // If the page hangs, there is no screenshot. The test fails for its own reason.
      await page.screenshot({ path: `reports/browser/${name}-${at + 1}.png` }).catch(() => {});
      console.log(await describePage(page, watch).catch(String));
    }
    if (watch.kept && !failed) {
      watch.faults.length = 0;
      watch.expected.length = 0;
      continue;
    }
    watches.delete(page);
    await page.context().close();
  }
  expect(unexpected, 'faults of the pages').toEqual([]);
  expect(missing, 'faults that were expected').toEqual([]);
});

/** Describes a page for the log of a failed test: a machine that only runs the tests keeps no screenshots. */
async function describePage(page: Page, { waiting }: Watch): Promise<string> {
  const requests = [...waiting].map((request) => `no response yet: ${request.method()} ${request.url()}`);
  const text = await page.locator('body').ariaSnapshot({ timeout: 5_000 });
  return [page.url(), ...requests, text.slice(0, 5_000)].join('\n');
}

const unnamedFaults = ({ faults, expected }: Watch): string[] =>
  faults.filter((fault) => !expected.some((pattern) => pattern.test(fault)));

/** Opens a page of the site in a new browser context, without cookies and storage. It is closed after the test. */
export async function visit(site: { readonly url: string }, path: string, look: Visit = {}): Promise<Page> {
  const { theme = 'light', size = 'desktop', reducedMotion = true, zone = 'Europe/Amsterdam' } = look;
  const { forcedColors = false } = look;
  const small = size === 'phone' || size === 'narrow';
  const firefox = inject('browser') === 'firefox';
  const key = firefox ? JSON.stringify([theme, reducedMotion, forcedColors]) : '';
  const launch = () => (firefox ? launchFirefox({ theme, reducedMotion, forcedColors }) : launchChromium());
  const browser = browsers.get(key) ?? launch();
  browsers.set(key, browser);
  const context = await (await browser).newContext({
    viewport: sizes[size],
    hasTouch: small,
    locale: 'en-GB',
    timezoneId: zone,
    ...(firefox
      ? {}
      : {
          isMobile: small,
          colorScheme: theme,
          reducedMotion: reducedMotion ? 'reduce' : 'no-preference',
          forcedColors: forcedColors ? 'active' : 'none',
        }),
  });
  context.setDefaultTimeout(SEE_MS);
  const page = await context.newPage();
  await watchOver(page, new URL(site.url).origin);
  await page.goto(new URL(path, site.url).href);
  return page;
}

/** Leaves a page open for the next tests of the file, unless a test fails. Faults fail the test in which they occur. */
export function keep(page: Page): void {
  const watch = watches.get(page);
  if (watch) watch.kept = true;
}

async function watchOver(page: Page, origin: string): Promise<void> {
  const faults: string[] = [];
  const waiting = new Set<Request>();
  watches.set(page, { faults, expected: [], waiting, kept: false });
  page.on('console', (message) => {
    // The event of the request reports more details.
    if (message.type() !== 'error' || message.text().startsWith('Failed to load resource')) return;
    faults.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => faults.push(`script: ${error.message}`));
  page.on('dialog', (dialog) => {
    faults.push(`dialog: ${dialog.type()} ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('request', (request) => {
    const url = new URL(request.url());
    if (!url.pathname.endsWith('/stream')) waiting.add(request);
    if (/^(http|ws)s?:$/.test(url.protocol) && url.origin !== origin)
      faults.push(`other origin: ${request.method()} ${url.href}`);
  });
  page.on('requestfinished', (request) => void waiting.delete(request));
  page.on('requestfailed', (request) => {
    waiting.delete(request);
    const why = request.failure()?.errorText;
    // The page itself cancels requests, such as a stream when the user leaves it.
    if (why !== 'net::ERR_ABORTED' && why !== 'NS_BINDING_ABORTED')
      faults.push(`failed: ${request.method()} ${request.url()} (${why})`);
  });
  // Playwright does not always report the end of requests of a document that was replaced.
  let replacing = false;
  page.on('framenavigated', (frame) => {
    if (frame !== page.mainFrame() || !replacing) return;
    waiting.clear();
    replacing = false;
  });
  page.on('response', (response) => {
    const request = response.request();
    if (request.isNavigationRequest() && request.frame() === page.mainFrame()) replacing = true;
    if (response.status() < 400) return;
    faults.push(`answered ${response.status()}: ${request.method()} ${response.url()}`);
  });
  await page.exposeBinding('jobwireViolation', (_, what: string) => void faults.push(`policy: ${what}`));
  // This includes frames.
  await page.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', (event) => {
      const { effectiveDirective, blockedURI, documentURI } = event;
      const tell = (window as unknown as { jobwireViolation(what: string): void }).jobwireViolation;
      tell(`${effectiveDirective} forbids ${blockedURI} at ${documentURI}`);
    });
  });
}

/** Declares a fault that the test provokes. If it does not occur by the end of the test, the test fails. */
export function expectFault(page: Page, pattern: RegExp): void {
  watches.get(page)?.expected.push(pattern);
}

/** Returns the unexpected faults of a page so far. They fail the test at its end. */
export function getFaults(page: Page): string[] {
  const watch = watches.get(page);
  return watch ? unnamedFaults(watch) : [];
}

/** Waits until a page has a heading, is not busy, has received all responses, and sends no further requests. */
export async function loaded(page: Page): Promise<void> {
  const waiting = watches.get(page)?.waiting;
  for (let quiet = 0; quiet < 3; quiet += 1) {
    // A response can cause further requests in the next frames.
    const busy = await page.evaluate(
      () =>
        new Promise<boolean>((done) => {
          const look = (): void =>
            done(!document.querySelector('h1') || document.querySelector('[aria-busy="true"]') !== null);
          requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(look, 30)));
        }),
    );
    if (busy || (waiting && waiting.size > 0)) quiet = -1;
  }
}

/**
 * Opens a page of the dashboard as a signed-in user, and waits until it has loaded. `key`: default is the key with all
 * permissions.
 */
export async function signedIn(site: Site, path: string, look: Visit & { key?: string } = {}): Promise<Page> {
  const page = await visit(site, '/favicon.svg', look);
  await page.evaluate((key) => sessionStorage.setItem('jobwire.key', key), look.key ?? site.key);
  await page.goto(new URL(path, site.url).href);
  await loaded(page);
  return page;
}

/** Completes the sign-in form, and waits until it is removed. */
export async function signIn(page: Page, key: string): Promise<void> {
  const field = page.getByLabel('API key');
  await field.fill(key);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await field.waitFor({ state: 'detached' });
}

/** Changes the theme or size of a page. In Firefox, the theme is that of `visit`. */
export async function show(page: Page, { theme, size }: Look): Promise<void> {
  if (theme) await page.emulateMedia({ colorScheme: theme });
  if (size) await page.setViewportSize(sizes[size]);
}

const WCAG = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];

/** The rules of axe whose result depends on the theme. */
const THEME_RULES = ['color-contrast', 'link-in-text-block'];

/** Fails if axe finds a violation of WCAG 2.2 A or AA in the page or its frames. `themeOnly`: checks only what depends on the theme. */
export async function axe(page: Page, { themeOnly = false } = {}): Promise<void> {
  await settled(page);
  const broken: string[] = [];
  for (const frame of page.frames()) {
    if (!(await runsScripts(frame))) continue;
    // By the browser's protocol, because the content security policy would block a script element.
    if (!(await frame.evaluate(() => 'axe' in window))) await frame.evaluate(axeCore.source);
    const found = await frame.evaluate(
      async (runOnly) => {
        const { axe } = window as unknown as { axe: typeof axeCore };
        // No rule of these levels reads style sheets, which axe would request again.
        const options = { iframes: false, preload: false, resultTypes: ['violations' as const] };
        const { violations } = await axe.run(document, { runOnly, ...options });
        return violations.flatMap(({ id, help, nodes }) =>
          nodes.map(({ target, failureSummary = '' }) => `${id} (${help}) at ${target}: ${failureSummary}`),
        );
      },
      themeOnly ? THEME_RULES : WCAG,
    );
    broken.push(...found);
  }
  if (broken.length > 0) throw new Error(`axe at ${page.url()}:\n${broken.join('\n')}`);
}

/** Returns whether a frame runs scripts. axe cannot check a frame without scripts. */
async function runsScripts(frame: Frame): Promise<boolean> {
  if (!frame.parentFrame()) return true;
  const sandbox = await (await frame.frameElement()).getAttribute('sandbox');
  return sandbox === null || sandbox.includes('allow-scripts');
}

/** Waits until all animations of the page are complete. */
export async function settled(page: Page): Promise<void> {
  await page.evaluate(async () => {
    for (;;) {
      // An opened element begins its animation some frames later.
      for (let frame = 0; frame < 4; frame += 1) await new Promise((done) => requestAnimationFrame(done));
      const passing = document
        .getAnimations()
        .filter((one) => Number.isFinite(one.effect?.getComputedTiming().endTime))
        .filter(({ playState }) => playState === 'running');
      if (passing.length === 0) return;
      await Promise.allSettled(passing.map((one) => one.finished));
    }
  });
}

/**
 * Delays all responses, from the next load of the page on, until the page was painted without them, so that every layout shift they
 * cause is measured.
 */
export async function answeredLate(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const send = window.fetch;
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    window.fetch = async (...request) => {
      const response = await send(...request);
      await frame();
      await frame();
      return response;
    };
  });
}

/**
 * Returns the cumulative layout shift since the page was loaded. `growing`: selector of elements whose content may move.
 * `touched`: excludes shifts within half a second of an input. It is off by default, because the browser counts setting the
 * viewport size as an input, and would exclude the first half second.
 */
export async function layoutShift(
  page: Page,
  { growing = '[data-none]', touched = false }: { growing?: string; touched?: boolean } = {},
): Promise<number> {
  return page.evaluate(
    ({ growing, touched }) =>
      new Promise<number>((done) => {
        let sum = 0;
        const observer = new PerformanceObserver((list) => add(list.getEntries()));
        const add = (entries: PerformanceEntryList): void => {
          for (const entry of entries as (PerformanceEntry & {
            value: number;
            hadRecentInput: boolean;
            sources: { node: Node | null }[];
          })[]) {
            const grew = entry.sources.some(({ node }) => node?.parentElement?.closest(growing));
            if (!(touched && entry.hadRecentInput) && !grew) sum += entry.value;
          }
        };
        observer.observe({ type: 'layout-shift', buffered: true });
        // Buffered entries arrive before the frame after the next one.
        requestAnimationFrame(() =>
          requestAnimationFrame(() => {
            add(observer.takeRecords());
            observer.disconnect();
            done(sum);
          }),
        );
      }),
    { growing, touched },
  );
}

/** Size of a loaded page, which does not depend on the speed of the machine. */
export interface Weight {
  readonly elements: number;
  /** Compressed size of everything that was loaded, except responses of the API, in kB. */
  readonly kilobytes: number;
  /** Paths that must be loaded before the first paint, other than style sheets. */
  readonly blocking: readonly string[];
}

export function weigh(page: Page): Promise<Weight> {
  return page.evaluate(() => {
    type Loaded = PerformanceResourceTiming & { readonly renderBlockingStatus: string };
    const loaded = (performance.getEntriesByType('resource') as Loaded[]).filter(
      ({ name }) => !new URL(name).pathname.startsWith('/v1/'),
    );
    return {
      elements: document.querySelectorAll('*').length,
      kilobytes: loaded.reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0) / 1000,
      blocking: loaded
        .filter(
          ({ renderBlockingStatus, name }) => renderBlockingStatus === 'blocking' && !/\.css$/.test(name),
        )
        .map(({ name }) => new URL(name).pathname),
    };
  });
}

/** With `PICTURES=write`: saves a screenshot as `docs/images/dashboard-<name>.png`. */
export async function picture(page: Page, name: string): Promise<void> {
  if (process.env.PICTURES !== 'write') return;
  await settled(page);
  await page.screenshot({ path: `docs/images/dashboard-${name}.png`, animations: 'disabled', caret: 'hide' });
}
