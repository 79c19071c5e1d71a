/** HTML of the control panel's pages. `html` escapes all values. */
import { html } from 'hono/html';
import { OPERATIONS } from './http/traffic.ts';
import { FREEDOMS } from './panel-forms.ts';
import type { Service } from './service.ts';
import type { SandboxClock } from './simulation/clock.ts';
import { REGIONS, type RegionCode } from './world/regions.ts';
import type { ActiveJobDto } from './world/views.ts';
import type { SandboxAccount } from './world/world.ts';

type Html = ReturnType<typeof html>;

/** Contents of a page. */
export interface PanelState {
  readonly service: Service;
  /** `undefined`: the clock is not the sandbox's own. */
  readonly clock: SandboxClock | undefined;
  /** Token of the forms. */
  readonly token: string;
  /** Path and query of the page, to which its forms return. */
  readonly here: string;
  readonly query: Readonly<Record<string, string>>;
  /** Result of the form that was submitted before. */
  readonly notice: { readonly text: string; readonly ok: boolean } | undefined;
}

/** Maximum number of jobs on a page. */
const PAGE_SIZE = 20;
const FAULT_KINDS = {
  status: 'Error status',
  delay: 'Late response',
  hang: 'No response',
  reset: 'Connection reset',
  truncatedJson: 'Truncated JSON',
  emptyList: 'Empty list',
  itemsNull: 'List with null items',
  pageDrift: 'Jobs move between pages',
  revokeTokens: 'Tokens revoked',
} as const;

/** The start page: clock, accounts, jobs of one account, faults, contract freedom. */
export function startPage(state: PanelState): Html {
  const { service, query } = state;
  const accounts = service.world.accounts();
  const account =
    accounts.find(({ region, name }) => region === query.region && name === query.account) ?? accounts[0];
  return page(
    state,
    'Sandbox',
    html`
      ${clockSection(state)}
      <div class="columns">
        <section aria-labelledby="accounts">
          <h2 id="accounts">Accounts</h2>
          ${accountTable(accounts, account)}
        </section>
        <div class="stack">${faultSection(state)} ${freedomSection(state)}</div>
      </div>
      ${account ? jobsSection(state, account) : html`<p class="quiet">The sandbox has no accounts.</p>`}
    `,
  );
}

/** The page of a job, with all actions. `undefined`: there is no such job. */
export function jobPage(state: PanelState, region: RegionCode, jobNumber: number): Html | undefined {
  const { world } = state.service;
  const found = world.findJob(region, jobNumber);
  if (!found) return undefined;
  const { account, job } = found;
  const entry = account.jobListEntry(jobNumber);
  const detail = account.jobDetail(jobNumber);
  const hidden = html`${input('region', region)}${input('jobNumber', jobNumber)}`;
  const action = (name: string, label: string, danger = false) =>
    form(state, name, html`${hidden}<button ${danger ? html`class="danger"` : ''}>${label}</button>`);
  const facts: readonly (readonly [string, unknown])[] = [
    ['Account', `${account.name} (${region.toUpperCase()})`],
    ['Status in lists', entry?.masterJobStatus],
    ['Status in the detail', detail?.jobStatus],
    ['Description', detail?.description],
    ['Order number', detail?.orderNumber],
    ['Order group', detail?.orderGroup],
    ['Created', detail?.dateIn],
    ['Due', detail?.dateDue],
    ['Dispatched', detail?.dateOut],
    ['Invoice', detail?.invoiceNumber],
    ['Tracking', entry?.tracking?.map(({ trackingNumber }) => trackingNumber).join(', ')],
    ['State', `${job.phase}${job.hidden ? ', hidden from the lists' : ''}`],
  ];
  return page(
    state,
    `Job ${jobNumber}`,
    html`
      <p><a href="${accountHref(account)}">All jobs of ${account.name}</a></p>
      <div class="columns">
        <section aria-labelledby="facts" data-live="facts">
          <h2 id="facts">State</h2>
          <dl>
            ${facts.map(([name, value]) => html`<dt>${name}</dt><dd>${value || '–'}</dd>`)}
          </dl>
        </section>
        <section aria-labelledby="actions">
          <h2 id="actions">Actions</h2>
          <div class="row">${action('late', 'Make late')} ${action('live', 'Let it proceed')}</div>
          ${form(
            state,
            'status',
            html`${hidden}${select(
              'Status',
              'status',
              world.statuses(region).map(({ name }) => name),
              entry?.masterJobStatus ?? '',
            )}<button>Set status</button>`,
          )}
          ${form(
            state,
            'dispatch',
            html`${hidden}${text('Tracking number', 'trackingNumber', `SBX${jobNumber}`)}${text(
              'Tracking link',
              'trackingLink',
              '',
            )}${input('status', world.statusName(region, 'shipped'))}<button class="primary">Dispatch</button>`,
          )}
          ${form(
            state,
            'edit',
            html`${hidden}${text('Description', 'description', detail?.description ?? '')}${text(
              'Order number',
              'orderNumber',
              detail?.orderNumber ?? '',
            )}${text('Order group', 'orderGroup', detail?.orderGroup ?? '')}<button>Save</button>`,
          )}
          <div class="row">
            ${action('clear-date-out', 'Revoke dispatch')} ${action('invoice', 'Invoice')}
            ${action('lock', 'Lock')} ${action('unlock', 'Unlock')} ${action('hide', 'Hide from lists')}
            ${action('unhide', 'List again')}
          </div>
          <div class="row">
            ${action('close', 'Close')} ${action('reopen', 'Reopen')} ${action('cancel', 'Cancel', true)}
            ${action('remove', 'Delete', true)}
          </div>
        </section>
      </div>
    `,
  );
}

/** The page in place of a job that does not exist. */
export const missingPage = (state: PanelState): Html =>
  page(state, 'Job not found', html`<p><a href="/panel">All accounts</a></p>`);

function page(state: PanelState, title: string, content: Html): Html {
  const { notice } = state;
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · Control panel</title>
<link rel="icon" href="data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Crect width='16' height='16' rx='3' fill='%237c3aed'/%3E%3Cpath d='M4 5h5m3 0h0M4 11h1m3 0h4' stroke='%23fff' stroke-width='2' stroke-linecap='round'/%3E%3C/svg%3E">
<link rel="stylesheet" href="/panel/page.css">
<script defer src="/panel/page.js"></script>
</head>
<body>
<header>
<a class="brand" href="/panel">Control panel of the sandbox</a>
<span class="quiet">A simulated ordering API. Changes that you make here change its data.</span>
</header>
<main>
<h1>${title}</h1>
${notice ? html`<p class="notice" data-ok="${String(notice.ok)}" role="${notice.ok ? 'status' : 'alert'}">${notice.text}</p>` : ''}
${content}
</main>
</body>
</html>`;
}

function clockSection(state: PanelState): Html {
  const { clock, service } = state;
  const now = new Date(service.world.now()).toISOString().slice(0, 19);
  const advance = (seconds: number, label: string) =>
    form(state, 'advance', html`${input('seconds', seconds)}<button>${label}</button>`);
  return html`
    <section class="bar" aria-label="Clock">
      <div data-live="clock">
        <span class="quiet">Clock${clock?.stopped ? ', stopped' : ''}</span>
        <strong>${now.replace('T', ' ')} UTC</strong>
      </div>
      ${
        clock
          ? html`<div class="row">
              ${advance(600, '+ 10 min')} ${advance(3_600, '+ 1 h')} ${advance(86_400, '+ 1 day')}
            </div>`
          : html`<span class="quiet">The real clock, which cannot be advanced.</span>`
      }
      ${form(state, 'revoke-tokens', html`<button>Revoke all tokens</button>`)}
    </section>
  `;
}

const accountHref = ({ region, name }: SandboxAccount): string =>
  `/panel?${new URLSearchParams({ region, account: name })}`;

function accountTable(accounts: readonly SandboxAccount[], chosen: SandboxAccount | undefined): Html {
  return html`<div class="scroll" tabindex="0" role="region" aria-labelledby="accounts">
    <table>
      <thead>
        <tr><th>Account</th><th>Region</th><th>Client id and secret</th><th class="right">Open jobs</th></tr>
      </thead>
      <tbody data-live="accounts">
        ${accounts.map(
          (account) => html`<tr>
            <td>
              <a href="${accountHref(account)}" ${account === chosen ? html`aria-current="true"` : ''}>${account.name}</a>
            </td>
            <td>${account.region.toUpperCase()}</td>
            <td><code>${account.clientId}</code><br><code>${account.clientSecret}</code></td>
            <td class="right">${account.activeCount.toLocaleString('en')}</td>
          </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

function faultSection(state: PanelState): Html {
  const rules = state.service.faults.list();
  return html`
    <section aria-labelledby="faults">
      <h2 id="faults">Faults</h2>
      <div data-live="faults">
        ${rules.length === 0 ? html`<p class="quiet">None: every request gets a correct response.</p>` : ''}
        <ul>
          ${rules.map(
            ({ id, fault, match, seen, struck }) => html`<li class="row">
              <span>
                <strong>${FAULT_KINDS[fault.kind as keyof typeof FAULT_KINDS] ?? fault.kind}</strong>
                ${'status' in fault ? fault.status : ''} ${match.region?.toUpperCase() ?? 'all regions'},
                ${match.operation ?? 'all operations'}
                <span class="quiet">${struck} of ${seen} requests</span>
              </span>
              ${form(state, 'end-fault', html`${input('id', id)}<button>Switch off</button>`)}
            </li>`,
          )}
        </ul>
      </div>
      ${form(
        state,
        'fault',
        html`<label>Fault<select name="kind">${Object.entries(FAULT_KINDS).map(
          ([kind, label]) => html`<option value="${kind}">${label}</option>`,
        )}</select></label>
        ${number('Status', 'status', 503)} ${number('Delay (ms)', 'delayMs', 2_000)}
        ${select('Region', 'region', ['', ...REGIONS], '', 'All')}
        ${select('Operation', 'operation', ['', ...OPERATIONS], '', 'All')}
        ${number('For (seconds)', 'forSeconds', 60)}
        <button class="primary">Switch on</button>`,
      )}
      ${rules.length > 0 ? form(state, 'end-faults', html`<button>Switch all off</button>`) : ''}
    </section>
  `;
}

function freedomSection(state: PanelState): Html {
  const { settings } = state.service.freedom;
  return html`
    <section aria-labelledby="freedom">
      <h2 id="freedom">Contract freedom</h2>
      <p class="quiet">Behaviour that the contract permits, but that the sandbox does not show by default.</p>
      ${form(
        state,
        'freedom',
        html`<label>Setting<select name="freedom">${Object.entries(FREEDOMS).map(
          ([name, { label }]) => html`<option value="${name}">${label}</option>`,
        )}</select></label><button class="primary">Switch on</button>`,
      )}
      <div class="row">${form(state, 'end-freedom', html`<button>Switch all off</button>`)}</div>
      <details>
        <summary>All settings</summary>
        <pre tabindex="0">${JSON.stringify(settings, null, 2)}</pre>
      </details>
    </section>
  `;
}

function jobsSection(state: PanelState, account: SandboxAccount): Html {
  const { query, service } = state;
  const { region } = account;
  const search = query.q?.trim() ?? '';
  const jobs = findJobs(account, search);
  const statuses = service.world.statuses(region).map(({ name }) => name);
  const now = service.world.now();
  return html`
    <section aria-labelledby="jobs">
      <h2 id="jobs">Jobs of ${account.name}</h2>
      <form class="fields" action="/panel" method="get" role="search">
        ${input('region', region)} ${input('account', account.name)}
        <label>Number, description, order or status<input type="search" name="q" value="${search}"></label>
        <button>Search</button>
      </form>
      <div class="scroll" tabindex="0" role="region" aria-labelledby="jobs">
        <table>
          <thead>
            <tr><th>Job</th><th>Description</th><th>Status</th><th>Due</th><th>Actions</th></tr>
          </thead>
          <tbody data-live="jobs">
            ${jobs.map((job) => jobRow(state, account, job, now))}
          </tbody>
        </table>
      </div>
      <p class="quiet">
        ${jobs.length === 0 ? 'No job matches.' : `The newest ${jobs.length} of ${account.activeCount.toLocaleString('en')} open jobs.`}
      </p>
      <details ${query.q === undefined && jobs.length === 0 ? 'open' : ''}>
        <summary>Add a job</summary>
        ${form(
          state,
          'create',
          html`${input('region', region)}${input('account', account.name)}
          ${text('Description', 'description', 'Left chest logo')} ${text('Order number', 'orderNumber', '')}
          ${text('Order group', 'orderGroup', '')} ${select('Status', 'status', statuses, statuses[0] ?? '')}
          ${number('Due in (days)', 'dueInDays', 5)}
          <label class="check"><input type="checkbox" name="live"> Proceeds automatically</label>
          <button class="primary">Add the job</button>`,
        )}
      </details>
    </section>
  `;
}

/** Returns the newest jobs of an account that match a search. A job number is also found after the job was closed. */
function findJobs(account: SandboxAccount, search: string): ActiveJobDto[] {
  const named = /^\d{4,}$/.test(search) && account.jobListEntry(Number(search));
  if (named) return [named];
  const found: ActiveJobDto[] = [];
  const term = search.toLowerCase();
  for (const jobNumber of account.activeJobNumbers().reverse()) {
    if (found.length === PAGE_SIZE) break;
    const { description, orderNumber, masterJobStatus } = account.job(jobNumber) ?? {};
    const texts = [String(jobNumber), description, orderNumber, masterJobStatus];
    const entry = texts.some((text) => text?.toLowerCase().includes(term)) && account.jobListEntry(jobNumber);
    if (entry) found.push(entry);
  }
  return found;
}

function jobRow(state: PanelState, account: SandboxAccount, job: ActiveJobDto, nowMs: number): Html {
  const { jobNumber, description, masterJobStatus, dateDue, dateOut } = job;
  const { region } = account;
  const shipped = state.service.world.statusName(region, 'shipped');
  const isLate = dateOut === null && (account.job(jobNumber)?.dueMs ?? Number.POSITIVE_INFINITY) < nowMs;
  const hidden = html`${input('region', region)}${input('jobNumber', jobNumber)}`;
  const action = (name: string, label: string, more: Html | string = '') =>
    form(state, name, html`${hidden}${more}<button aria-label="${label} ${jobNumber}">${label}</button>`);
  return html`<tr>
    <td><a href="/panel/jobs/${region}/${jobNumber}">${jobNumber}</a></td>
    <td class="text">${description}</td>
    <td>${masterJobStatus}</td>
    <td>${dateDue?.slice(0, 10) ?? '–'} ${dateOut ? html`<span class="badge">dispatched</span>` : isLate ? html`<span class="badge" data-late>late</span>` : ''}</td>
    <td>
      <div class="row">
        ${action('late', 'Make late')}
        ${action('dispatch', 'Dispatch', html`${input('status', shipped)}${input('trackingNumber', `SBX${jobNumber}`)}`)}
        ${action('cancel', 'Cancel')}
      </div>
    </td>
  </tr>`;
}

/** A form that submits the operation `name`, and returns to the page. */
function form(state: PanelState, name: string, content: Html): Html {
  return html`<form class="fields" method="post" action="/panel">${input('token', state.token)}${input('do', name)}${input('back', state.here)}${content}</form>`;
}

const input = (name: string, value: string | number): Html =>
  html`<input type="hidden" name="${name}" value="${value}">`;

const text = (label: string, name: string, value: string): Html =>
  html`<label>${label}<input name="${name}" value="${value}" autocomplete="off"></label>`;

const number = (label: string, name: string, value: number): Html =>
  html`<label class="short">${label}<input type="number" name="${name}" value="${value}" min="0" step="any"></label>`;

function select(
  label: string,
  name: string,
  options: readonly string[],
  chosen: string,
  emptyLabel = '',
): Html {
  return html`<label>${label}<select name="${name}">${options.map(
    (option) =>
      html`<option value="${option}" ${option === chosen ? 'selected' : ''}>${option || emptyLabel}</option>`,
  )}</select></label>`;
}
