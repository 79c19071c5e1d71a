/** `jobwire accounts …` */
import type { AccountRecord, AccountReport, TestReport } from '../shared/accounts/account-input.ts';
import { type Context, command, type Flags, type FlagValues, UsageError } from './command.ts';
import { readSecret, segment, wholeNumber } from './input.ts';
import { clean } from './output.ts';

/** An account, with its status if that was requested. */
type Shown = AccountRecord & { readonly status?: AccountReport | null };

const STATE_STYLE: Record<string, 'green' | 'red' | 'yellow' | undefined> = {
  tracking: 'green',
  failing: 'red',
  credentials_rejected: 'red',
  identity_mismatch: 'red',
  quarantined: 'red',
  paused: 'yellow',
};

function stateOf({ paused, status }: Shown): string {
  return paused ? 'paused' : (status?.state ?? 'registered');
}

const pathOf = (id: string, rest = ''): string => `/v1/accounts/${segment(id)}${rest}`;

const CREDENTIALS = {
  'client-id': {
    value: 'ID',
    about: 'Client id of the account’s credentials',
    required: true,
    field: 'clientId',
  },
  'client-secret-file': { value: 'FILE', about: 'File that holds the client secret' },
  'client-secret-env': { value: 'NAME', about: 'Environment variable that holds the client secret' },
} as const satisfies Flags;
const SECRET_NOTE =
  'The client secret is read from stdin, from a file or from an environment variable; on a terminal it is asked for. It can’t be given as an argument, for process lists show those.';

async function credentialsIn(context: Context, flags: FlagValues<typeof CREDENTIALS>) {
  const clientSecret = await readSecret(context, 'The client secret', {
    flag: 'client-secret',
    file: flags['client-secret-file'],
    variable: flags['client-secret-env'],
  });
  return { clientId: flags['client-id'], clientSecret };
}

export const accounts = {
  'accounts add': command({
    about: 'Adds an account. Its credentials are tested first; nothing is added when they don’t work.',
    more: SECRET_NOTE,
    args: ['ID'],
    flags: {
      region: {
        value: 'REGION',
        about: 'Region of the ordering service; may be left out where there is one',
      },
      ...CREDENTIALS,
      'poll-interval': {
        value: 'SECONDS',
        about: 'How often it is polled (120)',
        field: 'pollIntervalSeconds',
      },
      paused: { about: 'Add it paused: it is polled when it is resumed' },
      'no-test': { about: 'Add it without testing the credentials' },
    },
    example: 'accounts add acme --region us --client-id acme-api < secret.txt',
    async run(context, [id], flags) {
      const interval = flags['poll-interval'];
      const pollIntervalSeconds = interval && wholeNumber('poll-interval', interval, 1, 86_400);
      const api = context.api();
      const credentials = await credentialsIn(context, flags);
      const region = flags.region === undefined ? {} : { region: flags.region };
      if (!flags['no-test']) {
        context.out.progress('Testing the credentials …');
        const report = await api.post<TestReport>('/v1/credentials/test', { ...region, credentials });
        context.out.progress();
        if (!report.ok) {
          context.out.document(report, () => steps(context, report));
          context.out.note('The account was not added; --no-test adds it all the same.');
          return 1;
        }
        if (!context.out.json) steps(context, report);
      }
      const account = await api.post<AccountRecord>('/v1/accounts', {
        id,
        ...region,
        credentials,
        ...(pollIntervalSeconds ? { pollIntervalSeconds } : {}),
        ...(flags.paused ? { paused: true } : {}),
      });
      context.out.document(account, () => {
        context.out.line(
          account.paused
            ? `${clean(account.id)} is added in ${clean(account.region)}, paused.`
            : `${clean(account.id)} is added in ${clean(account.region)}; its first look at all open jobs begins now.`,
        );
      });
      return undefined;
    },
  }),

  'accounts list': command({
    about: 'Lists accounts and how tracking of each stands.',
    args: [],
    flags: {
      region: { value: 'REGION', about: 'Of this region only' },
      limit: { value: 'N', about: 'At most so many (1000)' },
    },
    example: 'accounts list --region us',
    async run({ api, out }, _args, flags) {
      const limit = wholeNumber('limit', flags.limit ?? '1000', 1, 1_000_000);
      const query = { region: flags.region, include: 'status' };
      return out.list(
        (more) => api().list<Shown>('/v1/accounts', 'accounts', query, limit, more),
        [
          { name: 'ACCOUNT', of: ({ id }) => id, long: true },
          { name: 'REGION', of: ({ region }) => region },
          { name: 'STATE', of: stateOf, style: (account) => STATE_STYLE[stateOf(account)] },
          { name: 'OPEN JOBS', of: ({ status }) => status?.openJobs, right: true },
          { name: 'EVERY', of: ({ pollIntervalSeconds }) => `${pollIntervalSeconds} s`, right: true },
          { name: 'SEEN THROUGH', of: ({ status }) => out.when(status?.observedThrough) },
          { name: 'PROBLEM', of: ({ status }) => status?.problem, long: true },
        ],
        'There are no accounts.',
      );
    },
  }),

  'accounts show': command({
    about: 'Shows how tracking of an account stands.',
    args: ['ID'],
    flags: {},
    example: 'accounts show acme',
    async run({ api, out }, [id]) {
      const client = api();
      const account = await client.get<AccountRecord>(pathOf(id));
      const status = await client.get<AccountReport>(pathOf(id, '/status'));
      out.document({ ...account, status }, () => {
        const missing = status.missingJobs;
        const unsure = missing.pending + missing.suspected + missing.contradictory;
        out.facts([
          ['Account', clean(id)],
          ['Region', clean(account.region)],
          ['Polled every', `${account.pollIntervalSeconds} s`],
          ['Made by', account.managed ? 'API' : 'configuration'],
          ['State', out.paint(STATE_STYLE[status.state] ?? 'reset', clean(status.state))],
          ['Problem', status.problem && clean(status.problem)],
          ['Last poll', out.exactly(status.lastPollAt)],
          ['Seen through', out.exactly(status.observedThrough)],
          ['Failures in a row', status.consecutiveFailures > 0 ? String(status.consecutiveFailures) : null],
          ['Open jobs', status.openJobs === null ? null : String(status.openJobs)],
          ['Not readable', status.unreadJobs > 0 ? String(status.unreadJobs) : null],
          ['Missing, fate open', unsure > 0 ? String(unsure) : null],
          ['Quarantined since', out.exactly(status.quarantinedAt)],
          ['Head of the log', clean(status.head)],
        ]);
        if (status.state === 'quarantined' || status.state === 'identity_mismatch') {
          out.note(`It waits for you: jobwire accounts confirm ${id}`);
        }
      });
      return undefined;
    },
  }),

  'accounts test': command({
    about: 'Tests an account’s credentials: a token, whose account it is, and one page of jobs.',
    args: ['ID'],
    flags: {},
    example: 'accounts test acme',
    async run(context, [id]) {
      context.out.progress(`Testing ${clean(id)}: token, identity, one page …`);
      const report = await context.api().post<TestReport>(pathOf(id, '/test'));
      context.out.document(report, () => steps(context, report));
      return report.ok ? undefined : 1;
    },
  }),

  'accounts pause': change('pause', 'Stops polling an account; its log and its jobs stay.', 'is paused'),
  'accounts resume': change('resume', 'Polls a paused account again, at once.', 'is polled again'),

  'accounts rotate': command({
    about: 'Gives an account new credentials, which count at once.',
    more: SECRET_NOTE,
    args: ['ID'],
    flags: CREDENTIALS,
    example: 'accounts rotate acme --client-id acme-api < secret.txt',
    async run(context, [id], flags) {
      const api = context.api();
      const account = await api.put<AccountRecord>(
        pathOf(id, '/credentials'),
        await credentialsIn(context, flags),
      );
      context.out.document(account, () => context.out.line(`${clean(id)} has new credentials.`));
      return undefined;
    },
  }),

  'accounts delete': command({
    about: 'Deletes an account with its log, its jobs and all else that is kept of it.',
    args: ['ID'],
    flags: { yes: { about: 'It can’t be undone, so this has to be said' } },
    example: 'accounts delete acme --yes',
    async run({ api, out }, [id], { yes }) {
      if (!yes) throw new UsageError(`--yes is missing: ${id} goes with all that is kept of it, for good.`);
      const complete = await api().remove(pathOf(id));
      out.document({ deleted: id, complete }, () =>
        out.line(`${clean(id)} is deleted${complete ? '' : '; what was kept of it is going'}.`),
      );
      return undefined;
    },
  }),

  'accounts confirm': command({
    about:
      'Confirms what an account waits for: that missing jobs are truly gone, or that its identity is right.',
    args: ['ID'],
    flags: {
      'upstream-id': {
        value: 'N',
        about: 'After a mismatch: the service’s id of the account from now on',
        field: 'upstreamId',
      },
    },
    example: 'accounts confirm acme --upstream-id 4711',
    async run({ api, out }, [id], flags) {
      const given = flags['upstream-id'];
      const body =
        given === undefined ? {} : { upstreamId: wholeNumber('upstream-id', given, 1, 999_999_999_999) };
      const answer = await api().post<{ confirmed: string }>(pathOf(id, '/confirm'), body);
      out.document(answer, () => {
        const was = answer.confirmed === 'identity_mismatch' ? 'identity mismatch' : clean(answer.confirmed);
        out.line(`${clean(id)} goes on: it was ${was}.`);
      });
      return undefined;
    },
  }),
};

function change(verb: 'pause' | 'resume', about: string, done: string) {
  return command({
    about,
    args: ['ID'],
    flags: {},
    example: `accounts ${verb} acme`,
    async run({ api, out }, [id]) {
      const account = await api().post<object>(pathOf(id, `/${verb}`));
      out.document(account, () => out.line(`${clean(id)} ${done}.`));
      return undefined;
    },
  });
}

const STEP_NAMES: Record<string, string> = { token: 'Token', identity: 'Identity', page: 'One page' };

function steps({ out }: Context, report: TestReport): void {
  for (const { step, ok, message, ms } of report.steps) {
    const mark = ok ? out.paint('green', 'ok  ') : out.paint('red', 'fail');
    const took = typeof ms === 'number' ? out.paint('dim', ` (${Math.round(ms)} ms)`) : '';
    out.hang(`${mark}  ${(STEP_NAMES[step] ?? clean(step)).padEnd(8)}  `, clean(message) + took);
  }
}
