/** `jobwire accounts …` */
import type {
  AccountBatch,
  AccountUpdate,
  EventSettings,
  ListedAccount,
  TestReport,
} from '../client/index.ts';
import { inputs } from '../client/inputs.ts';
import { BATCH, runBatch } from './batch.ts';
import { DAYS, printOpenJobs, printStatistics, toDays } from './catalogue.ts';
import {
  type Context,
  CSV,
  command,
  type Flags,
  type FlagValues,
  limitFlag,
  parseRange,
  type Range,
  UsageError,
} from './command.ts';
import { CLIENT_SECRET, ignoreNotFound, readSecret, withId } from './input.ts';
import { count, sanitizeLine } from './output.ts';

const POLL_STYLE = { complete: 'green', partial: 'yellow', failed: 'red' } as const;
const DUE_SOON = inputs['EventSettingsUpdate.dueSoonHours'];
const STALLED = inputs['EventSettingsUpdate.stalledAfterWorkingDays'];
const STATE_STYLE: Record<string, 'green' | 'red' | 'yellow' | undefined> = {
  tracking: 'green',
  failing: 'red',
  credentials_rejected: 'red',
  identity_mismatch: 'red',
  quarantined: 'red',
  paused: 'yellow',
};

function getState({ paused, status }: ListedAccount): string {
  return paused ? 'paused' : (status?.state ?? 'registered');
}

const CREDENTIALS = {
  'client-id': { value: 'ID', about: 'Client id of the account’s credentials', required: true },
  ...CLIENT_SECRET,
} as const satisfies Flags;
const SECRET_NOTE =
  'The client secret is read from stdin, a file or an environment variable, or entered at a prompt.';

/** Reads a client secret from where the options say. */
export const readClientSecret = (context: Context, flags: FlagValues<typeof CLIENT_SECRET>) =>
  readSecret(context, 'The client secret', {
    flag: 'client-secret',
    file: flags['client-secret-file'],
    variable: flags['client-secret-env'],
  });

async function readCredentials(context: Context, flags: FlagValues<typeof CREDENTIALS>) {
  return { clientId: flags['client-id'], clientSecret: await readClientSecret(context, flags) };
}

export const accounts = {
  'accounts add': command({
    about: 'Adds an account, unless the test of its credentials fails.',
    more: SECRET_NOTE,
    args: ['ID'],
    flags: {
      region: {
        value: 'REGION',
        about: 'Region of the ordering API. Required if Jobwire serves several regions',
      },
      ...CREDENTIALS,
      'poll-interval': {
        value: 'SECONDS',
        about: 'Time between polls, on AWS at least 60. Default: 120',
        range: inputs['NewAccount.pollIntervalSeconds'],
        field: 'pollIntervalSeconds',
      },
      paused: { about: 'Add the account paused' },
      'no-test': { about: 'Skip the test of the credentials' },
    },
    example: 'accounts add acme --region us --client-id acme-api < secret.txt',
    async run(context, [id], flags) {
      const pollIntervalSeconds = flags['poll-interval'];
      const { id: rule } = await import('../shared/validation.ts');
      const problem = rule.safeParse(id).error?.issues[0]?.message;
      if (problem !== undefined) throw new UsageError(`ID ${problem}.`);
      const api = context.api();
      // Checked before the prompt for the secret.
      if (await api.get('/v1/accounts/{id}', withId(id)).catch(ignoreNotFound)) {
        throw new UsageError(`ID must be new: an account "${id}" already exists.`);
      }
      const credentials = await readCredentials(context, flags);
      const region = flags.region === undefined ? {} : { region: flags.region };
      if (!flags['no-test']) {
        context.out.progress('Testing the credentials …');
        const report = await api.post('/v1/credentials/test', { body: { ...region, credentials } });
        context.out.progress();
        if (!report.ok) {
          context.out.document(report, () => printSteps(context, report));
          context.out.note('The account was not added. To skip the test, use --no-test.');
          return 1;
        }
        if (!context.out.json) printSteps(context, report);
      }
      const account = await api.post('/v1/accounts', {
        body: {
          ...{ id, ...region, credentials },
          ...(pollIntervalSeconds ? { pollIntervalSeconds } : {}),
          ...(flags.paused ? { paused: true } : {}),
        },
      });
      context.out.document(account, () => {
        context.out.line(
          account.paused
            ? `${sanitizeLine(account.id)} was added in ${sanitizeLine(account.region)}, paused.`
            : `${sanitizeLine(account.id)} was added in ${sanitizeLine(account.region)}. The first crawl of its open jobs starts now.`,
        );
        for (const warning of account.warnings) context.out.note(`Warning: ${sanitizeLine(warning)}`);
      });
      return undefined;
    },
  }),

  'accounts list': command({
    about: 'Lists accounts with their polling state.',
    flags: {
      region: { value: 'REGION', about: 'Only this region' },
      limit: limitFlag(1000),
      ...CSV,
    },
    example: 'accounts list --region us',
    async run({ api, out }, _args, flags) {
      const params = { query: { region: flags.region, include: 'status' } } as const;
      return out.list(
        (onMore) => api().list('/v1/accounts', 'accounts', { params, max: flags.limit, onMore }),
        [
          { name: 'ACCOUNT', value: ({ id }) => id, long: true },
          { name: 'REGION', value: ({ region }) => region },
          { name: 'STATE', value: getState, style: (account) => STATE_STYLE[getState(account)] },
          { name: 'OPEN JOBS', value: ({ status }) => status?.openJobs, right: true },
          { name: 'EVERY', value: ({ pollIntervalSeconds }) => `${pollIntervalSeconds} s`, right: true },
          { name: 'OBSERVED', value: ({ status }) => out.formatTimeCell(status?.observedThrough) },
          { name: 'PROBLEM', value: ({ status }) => status?.problem, long: true },
        ],
        'There are no accounts.',
      );
    },
  }),

  'accounts show': command({
    about: 'Shows an account and its polling state.',
    args: ['ID'],
    example: 'accounts show acme',
    async run({ api, out, toCommand }, [id]) {
      const client = api();
      const account = await client.get('/v1/accounts/{id}', withId(id));
      const status = await client.get('/v1/accounts/{id}/status', withId(id));
      out.document({ ...account, status }, () => {
        const missing = status.missingJobs;
        const unresolved = missing.pending + missing.suspected + missing.contradictory;
        out.fields([
          ['Account', sanitizeLine(id)],
          ['Region', sanitizeLine(account.region)],
          ['Polled every', `${account.pollIntervalSeconds} s`],
          ...listEventSettings(account.events),
          ['Managed by', describeManager(account)],
          ['Moved to', account.move?.to && sanitizeLine(account.move.to)],
          ['State', out.paint(STATE_STYLE[status.state] ?? 'reset', sanitizeLine(status.state))],
          ['Problem', status.problem && sanitizeLine(status.problem)],
          ['Last poll', out.formatTimeWithAge(status.lastPollAt)],
          ['Observed up to', out.formatTimeWithAge(status.observedThrough)],
          ['Consecutive failures', status.consecutiveFailures ? String(status.consecutiveFailures) : null],
          ['Open jobs', status.openJobs === null ? null : String(status.openJobs)],
          ['Unread jobs', status.unreadJobs > 0 ? String(status.unreadJobs) : null],
          ['Jobs with truncated texts', status.truncatedJobs > 0 ? String(status.truncatedJobs) : null],
          ['Missing, outcome unknown', unresolved > 0 ? String(unresolved) : null],
          ['Quarantined since', out.formatTimeWithAge(status.quarantinedAt)],
          ['Last event', sanitizeLine(status.head)],
        ]);
        if (status.state === 'quarantined' || status.state === 'identity_mismatch') {
          out.note(`Confirmation required: ${toCommand(`accounts confirm ${id}`)}`);
        }
      });
    },
  }),

  'accounts polls': command({
    about: 'Lists the recent polls of an account, newest first.',
    args: ['ID'],
    flags: { limit: limitFlag(20), ...CSV },
    example: 'accounts polls acme',
    async run({ api, out }, [id], { limit: max }) {
      return out.list(
        (onMore) => api().list('/v1/accounts/{id}/polls', 'polls', { ...withId(id), max, onMore }),
        [
          { name: 'STARTED', value: ({ startedAt }) => out.formatTimeCell(startedAt) },
          { name: 'MS', value: ({ ms }) => ms, right: true },
          { name: 'OUTCOME', value: ({ outcome }) => outcome, style: ({ outcome }) => POLL_STYLE[outcome] },
          { name: 'REQUESTS', value: ({ requests }) => requests, right: true },
          { name: 'EVENTS', value: ({ events }) => events, right: true },
          { name: 'PROBLEM', value: ({ problem }) => problem, long: true },
        ],
        'There are no polls yet.',
      );
    },
  }),

  'accounts statistics': command({
    about: 'Shows the daily statistics of an account: jobs created, dispatched, late and cancelled.',
    args: ['ID'],
    flags: DAYS,
    example: 'accounts statistics acme --from 2026-03-02 --to 2026-03-08',
    async run({ api, out }, [id], flags) {
      const params = { path: { id }, query: toDays(flags) };
      const statistics = await api().get('/v1/accounts/{id}/rollups', { params });
      out.document(statistics, () => printStatistics(out, statistics));
    },
  }),

  'accounts open-jobs': command({
    about: 'Shows the number of open jobs of an account by status.',
    args: ['ID'],
    example: 'accounts open-jobs acme',
    async run({ api, out }, [id]) {
      const counts = await api().get('/v1/accounts/{id}/open-jobs', withId(id));
      out.document(counts, () => printOpenJobs(out, counts));
    },
  }),

  'accounts update': command({
    about: 'Changes the given settings of an account.',
    more: 'The value off disables an event. A list of statuses replaces the current list, and the value none empties it.',
    args: ['ID'],
    flags: {
      'poll-interval': {
        value: 'SECONDS',
        about: 'Time between polls, on AWS at least 60',
        range: inputs['AccountUpdate.pollIntervalSeconds'],
        field: 'pollIntervalSeconds',
      },
      'due-soon': {
        value: 'HOURS|off',
        about: `Lead time of job.due_soon, 1 to ${DUE_SOON.most} hours`,
        field: 'events.dueSoonHours',
      },
      'stalled-after': {
        value: 'DAYS|off',
        about: `Working days in one status until job.stalled, 1 to ${STALLED.most}`,
        field: 'events.stalledAfterWorkingDays',
      },
      'stalled-status': {
        value: 'NAME=DAYS|off',
        about: 'Working days for one status, instead of --stalled-after',
        many: true,
        field: 'events.stalledByStatus',
      },
      'attention-status': {
        value: 'NAME',
        about: 'Status for which job.needs_attention is emitted',
        many: true,
        field: 'events.attentionStatuses',
      },
      payments: {
        value: 'on|off',
        about: 'Emit events about payments',
        choices: ['on', 'off'],
        field: 'events.payments',
      },
    },
    example: 'accounts update acme --due-soon 48 --attention-status Returned',
    async run({ api, out }, [id], flags) {
      const interval = flags['poll-interval'];
      const events = parseEventSettings(flags);
      const body: AccountUpdate = {
        ...(interval ? { pollIntervalSeconds: interval } : {}),
        ...(Object.keys(events).length > 0 ? { events } : {}),
      };
      if (Object.keys(body).length === 0) {
        throw new UsageError('Nothing to change. Set at least one option, such as --due-soon 48.');
      }
      const account = await api().patch('/v1/accounts/{id}', { ...withId(id), body });
      out.document(account, `${sanitizeLine(id)} was updated.`);
    },
  }),

  'accounts test': command({
    about: 'Tests an account’s credentials: requests a token, the account’s identity and one page of jobs.',
    args: ['ID'],
    example: 'accounts test acme',
    async run(context, [id]) {
      context.out.progress(`Testing ${sanitizeLine(id)}: token, identity, one page …`);
      const report = await context.api().post('/v1/accounts/{id}/test', withId(id));
      context.out.document(report, () => printSteps(context, report));
      return report.ok ? undefined : 1;
    },
  }),

  'accounts pause': command({
    about: 'Stops polling an account. Its log and jobs are kept.',
    args: ['ID'],
    example: 'accounts pause acme',
    async run({ api, out }, [id]) {
      const account = await api().post('/v1/accounts/{id}/pause', withId(id));
      out.document(account, `${sanitizeLine(id)} is paused.`);
    },
  }),
  'accounts resume': command({
    about: 'Resumes polling of a paused account immediately.',
    args: ['ID'],
    example: 'accounts resume acme',
    async run({ api, out }, [id]) {
      const { paused } = await api().get('/v1/accounts/{id}', withId(id));
      const account = await api().post('/v1/accounts/{id}/resume', withId(id));
      out.document(
        account,
        `${sanitizeLine(id)} ${paused ? 'is resumed' : 'was not paused, so nothing changed'}.`,
      );
    },
  }),

  'accounts batch': command({
    about: 'Pauses or resumes polling of several accounts, and prints the result for each.',
    more: 'If the action fails for an account, the command continues with the others, and the exit code is 1.',
    args: ['ACTION'],
    choices: { ACTION: inputs['AccountBatch.action'] },
    flags: { region: { value: 'REGION', about: 'Only this region' }, ...BATCH },
    example: 'accounts batch pause --all --region us',
    run: (context, [action], flags) =>
      runBatch<AccountBatch['action']>(context, action, flags, (client, body) =>
        client.post('/v1/accounts/batch', { body }),
      ),
  }),

  'accounts rotate': command({
    about: 'Replaces the credentials of an account, effective immediately.',
    more: SECRET_NOTE,
    args: ['ID'],
    flags: CREDENTIALS,
    example: 'accounts rotate acme --client-id acme-api < secret.txt',
    async run(context, [id], flags) {
      const api = context.api();
      const body = await readCredentials(context, flags);
      const account = await api.put('/v1/accounts/{id}/credentials', { ...withId(id), body });
      context.out.document(account, `The credentials of ${sanitizeLine(id)} were replaced.`);
    },
  }),

  'accounts delete': command({
    about: 'Deletes an account with its log, jobs and all other data.',
    more: 'API keys, endpoints and alert rules that name only this account are deleted, too. From others, the account is removed.',
    args: ['ID'],
    flags: { yes: { about: 'Confirm the deletion, which can’t be undone' } },
    example: 'accounts delete acme --yes',
    async run({ api, out }, [id], { yes }) {
      if (!yes)
        throw new UsageError(
          `--yes is missing. It confirms that ${id} and all its data are permanently deleted.`,
        );
      const complete = await api().delete('/v1/accounts/{id}', withId(id));
      out.document(
        { deleted: id, complete },
        complete
          ? `${sanitizeLine(id)} was deleted.`
          : `${sanitizeLine(id)} no longer exists, but some of its data remains. Repeat the command to delete the rest.`,
      );
    },
  }),

  'accounts confirm': command({
    about: 'Ends a quarantine or an identity mismatch of an account.',
    more: 'For a quarantine (too many jobs disappeared within a day), you confirm that the missing jobs are no longer open. For an identity mismatch (the credentials belong to another account of the ordering API), you confirm that they have been corrected or, with --upstream-id, that the other account is the right one.',
    args: ['ID'],
    flags: {
      'upstream-id': {
        value: 'N',
        about: 'New id of the account in the ordering API',
        range: { least: 1, most: 999_999_999_999 },
        field: 'upstreamId',
      },
    },
    example: 'accounts confirm acme --upstream-id 4711',
    async run({ api, out }, [id], flags) {
      const given = flags['upstream-id'];
      const body = given === undefined ? {} : { upstreamId: given };
      const answer = await api().post('/v1/accounts/{id}/confirm', { ...withId(id), body });
      out.document(answer, () => {
        const cause = answer.confirmed === 'identity_mismatch' ? 'identity mismatch' : 'quarantine';
        out.line(`${sanitizeLine(id)} resumes after ${cause}.`);
      });
    },
  }),
};

function parseEventSettings(
  flags: Readonly<{
    'due-soon': string | undefined;
    'stalled-after': string | undefined;
    'stalled-status': readonly string[];
    'attention-status': readonly string[];
    payments: 'on' | 'off' | undefined;
  }>,
): Partial<EventSettings> {
  const limit = (flag: string, text: string, range: Range) =>
    text === 'off' ? null : parseRange(flag, text, range, ', or off');
  const { 'due-soon': dueSoon, 'stalled-after': stalled, payments } = flags;
  const byStatus = parseStatuses(flags['stalled-status']);
  const attentionStatuses = parseStatuses(flags['attention-status']);
  const stalledByStatus = byStatus?.map((text): [string, number | null] => {
    const [, name = '', days = ''] = /^(.+)=(\d{1,3}|off)$/s.exec(text) ?? [];
    const number = days === 'off' ? null : Number(days);
    if (name === '' || (number !== null && (number < STALLED.least || number > STALLED.most))) {
      throw new UsageError(
        `--stalled-status must be NAME=DAYS with an integer from ${STALLED.least} to ${STALLED.most}, or NAME=off.`,
      );
    }
    return [name, number];
  });
  return {
    ...(dueSoon === undefined ? {} : { dueSoonHours: limit('due-soon', dueSoon, DUE_SOON) }),
    ...(stalled === undefined ? {} : { stalledAfterWorkingDays: limit('stalled-after', stalled, STALLED) }),
    ...(stalledByStatus ? { stalledByStatus: Object.fromEntries(stalledByStatus) } : {}),
    ...(attentionStatuses ? { attentionStatuses: [...attentionStatuses] } : {}),
    ...(payments === undefined ? {} : { payments: payments === 'on' }),
  };
}

/** Returns the given values: none if the option is absent, an empty list for the single value `none`. */
function parseStatuses(values: readonly string[]): readonly string[] | undefined {
  if (values.length === 0) return undefined;
  return values.length === 1 && values[0] === 'none' ? [] : values;
}

function listEventSettings(events: EventSettings): [string, string | null][] {
  const days = (number: number | null) => (number === null ? 'off' : count(number, 'working day'));
  const byStatus = Object.entries(events.stalledByStatus).map(
    ([name, n]) => `${sanitizeLine(name)}: ${days(n)}`,
  );
  return [
    ['Due soon', events.dueSoonHours === null ? null : `${events.dueSoonHours} h before the due time`],
    ['Stalled after', events.stalledAfterWorkingDays === null ? null : days(events.stalledAfterWorkingDays)],
    ['Stalled by status', byStatus.join(', ') || null],
    ['Attention statuses', events.attentionStatuses.map(sanitizeLine).join(', ') || null],
    ['Payment events', events.payments ? 'on' : null],
  ];
}

const STEP_NAMES: Record<string, string> = { token: 'Token', identity: 'Identity', page: 'Job page' };

/** Prints the steps of a credentials test. */
export function printSteps({ out }: Context, report: TestReport): void {
  for (const { step, ok, message, ms } of report.steps) {
    const mark = ok ? out.paint('green', 'ok  ') : out.paint('red', 'fail');
    const took = typeof ms === 'number' ? out.paint('dim', ` (${Math.round(ms)} ms)`) : '';
    out.hang(
      `${mark}  ${(STEP_NAMES[step] ?? sanitizeLine(step)).padEnd(8)}  `,
      sanitizeLine(message) + took,
    );
  }
}

/** Returns what manages an account. The credentials of an account of the configuration have its id as their reference. */
function describeManager({ id, managed, secretRef }: ListedAccount): string {
  if (!managed) return 'configuration';
  return secretRef === id ? 'API (its entry was removed from the configuration)' : 'API';
}
