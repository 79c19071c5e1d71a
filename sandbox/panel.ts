/**
 * The pages of the control panel: server-rendered HTML whose forms call the operations of the control panel. Only forms of these
 * pages are accepted: their requests come from the panel's own origin and contain the token of this process.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { type Context, Hono } from 'hono';
import { readBody, requestPath, type SandboxEnv, send, TOO_LARGE } from './http/responses.ts';
import { type Fields, FORMS } from './panel-forms.ts';
import { jobPage, missingPage, type PanelState, startPage } from './panel-pages.ts';
import type { Service } from './service.ts';
import type { SandboxClock } from './simulation/clock.ts';
import { findRegion } from './world/regions.ts';

/** Path of the pages. */
export const PANEL = '/panel';

/** Executes an operation of the control panel. */
export type CallPanel = (method: string, path: string, body?: unknown) => Promise<Response>;

const HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
};
const FILES: Readonly<Record<string, string>> = {
  'page.css': 'text/css; charset=utf-8',
  'page.js': 'text/javascript; charset=utf-8',
};

/** Whether a request submits a form of the pages: it has the origin of the panel and is not cross-site. */
export function isOwnForm(c: Context<SandboxEnv>): boolean {
  const { method, url } = c.req;
  const site = c.req.header('sec-fetch-site');
  return (
    method === 'POST' &&
    new URL(url).pathname === PANEL &&
    c.req.header('origin') === `http://${c.req.header('host')}` &&
    (site === undefined || site === 'same-origin')
  );
}

/** Creates the pages. `clock`: as in `createAdminApp`. */
export function createPanelPages(
  service: Service,
  clock: SandboxClock | undefined,
  call: CallPanel,
): Hono<SandboxEnv> {
  const token = randomBytes(16).toString('base64url');
  /** The result of the last form, which the page after the redirection shows. */
  let last: { readonly id: string; readonly text: string; readonly ok: boolean } | undefined;

  const app = new Hono<SandboxEnv>();
  const html = (c: Context<SandboxEnv>, page: string, status = 200) =>
    send(c, { status, headers: { ...HEADERS, 'content-type': 'text/html; charset=utf-8' }, body: page });
  const readState = (c: Context<SandboxEnv>): PanelState => {
    const query = c.req.query();
    return {
      service,
      clock,
      token,
      here: requestTarget(c),
      query,
      notice: last !== undefined && last.id === query.result ? last : undefined,
    };
  };

  app.get(PANEL, async (c) => html(c, String(await startPage(readState(c)))));
  app.get(`${PANEL}/jobs/:region/:jobNumber`, async (c) => {
    const region = findRegion(c.req.param('region'));
    const page = region && (await jobPage(readState(c), region, Number(c.req.param('jobNumber'))));
    return page ? html(c, String(page)) : html(c, String(await missingPage(readState(c))), 404);
  });
  for (const [name, type] of Object.entries(FILES)) {
    app.get(`${PANEL}/${name}`, async (c) =>
      send(c, {
        status: 200,
        headers: { ...HEADERS, 'content-type': type },
        body: await readFile(`${import.meta.dirname}/panel/${name}`, 'utf8'),
      }),
    );
  }
  app.post(PANEL, async (c) => {
    const body = await readBody(c);
    if (body === undefined) return html(c, TOO_LARGE, 413);
    const fields: Fields = Object.fromEntries(new URLSearchParams(body));
    if (!isOwnForm(c) || !isEqual(fields.token ?? '', token))
      return html(
        c,
        'The form does not belong to this page, or the sandbox was restarted. Reload the page.',
        403,
      );
    const { ok, text } = await submit(fields);
    last = { id: randomBytes(6).toString('hex'), ok, text };
    // A deleted job has no page.
    const back = (fields.do !== 'remove' && fields.back) || PANEL;
    const location = new URL(/^\/panel(?=[/?]|$)/.test(back) ? back : PANEL, 'http://panel');
    location.searchParams.set('result', last.id);
    return send(c, {
      status: 303,
      headers: { ...HEADERS, location: `${location.pathname}${location.search}` },
      body: '',
    });
  });

  /** Executes the operation of a form; returns its result as a sentence. */
  async function submit(fields: Fields): Promise<{ ok: boolean; text: string }> {
    const form = Object.hasOwn(FORMS, fields.do ?? '') && FORMS[fields.do ?? ''];
    if (!form) return { ok: false, text: 'The form is unknown.' };
    const request = form.toRequest(fields, service.world.now());
    if (typeof request === 'string') return { ok: false, text: request };
    const response = await call(request.method, request.path, request.body);
    const answer = (await response.json().catch(() => ({}))) as { detail?: string; jobNumber?: number };
    if (!response.ok)
      return { ok: false, text: answer.detail ?? `The request failed with ${response.status}.` };
    if (fields.live === 'on' && answer.jobNumber !== undefined)
      await call('POST', `/jobs/${fields.region}/${answer.jobNumber}/live`, {});
    return {
      ok: true,
      text: form.done({ ...fields, ...(answer.jobNumber && { jobNumber: String(answer.jobNumber) }) }),
    };
  }
  return app;
}

/** Path and query of the request, without the id of a result. */
function requestTarget(c: Context<SandboxEnv>): string {
  const url = new URL(c.req.url);
  url.searchParams.delete('result');
  return `${requestPath(c)}${url.search}`;
}

function isEqual(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}
