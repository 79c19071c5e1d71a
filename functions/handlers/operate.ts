/**
 * The operator's commands to a cell: one command per invocation, an object with the field `do`. The response
 * contains the result. A command that cannot be executed also gets a response: `{ "error": { "kind",
 * "message" } }`, one sentence that names the field. Only faults (the table does not respond) are thrown, so
 * that every error of the function needs attention.
 */
import * as z from 'zod';
import {
  CELL_MIN_INTERVAL_SECONDS,
  intervalRule,
  MAX_INTERVAL_SECONDS,
} from '../../shared/accounts/account-input.ts';
import { type TestDeps, testAccount } from '../../shared/accounts/account-test.ts';
import { findAccount } from '../../shared/accounts/accounts.ts';
import {
  type AccountDeps,
  createAccount,
  deleteAccount,
  pageAccounts,
  pauseAccount,
  readAccount,
  resumeAccount,
  updateAccount,
} from '../../shared/accounts/managed-accounts.ts';
import { showEndpoint } from '../../shared/api/endpoint-views.ts';
import { type KeyRecord, NewKey } from '../../shared/api/key-input.ts';
import { createKey, keyId, listKeys, MAX_KEYS, OPERATOR, revokeKey } from '../../shared/api/keys.ts';
import { instantText } from '../../shared/api/parameters.ts';
import { type Endpoint, listEndpoints } from '../../shared/delivery/endpoint.ts';
import {
  enableEndpoint,
  pauseEndpoint,
  pingEndpoint,
  resumeEndpoint,
  rotateSecret,
} from '../../shared/delivery/endpoint-controls.ts';
import type { EndpointDeps } from '../../shared/delivery/endpoint-edits.ts';
import { createEndpoint, deleteEndpoint, updateEndpoint } from '../../shared/delivery/endpoints.ts';
import type { Rejection } from '../../shared/resources.ts';
import { confirmAccount, renewLogs, reportAccount } from '../../shared/tracking/operator.ts';
import { id, sentenceOf } from '../../shared/validation.ts';
import type { Telemetry } from '../telemetry.ts';

/** Dependencies of the handler. */
export interface OperateDeps extends EndpointDeps {
  readonly region: string;
  /** Dependencies of the account operations, in this one region. */
  readonly accounts: AccountDeps & TestDeps;
  /** Whether the cell's table was restored from a backup. */
  readonly isRestored: boolean;
  readonly telemetry: Pick<Telemetry, 'operate'>;
}

/** A response: JSON. */
type Answer = { readonly [field: string]: unknown };

/** The reason why a command was not executed. */
interface Failure {
  readonly kind: Rejection['kind'];
  readonly message: string;
}

const INTERVAL_RULE = intervalRule(CELL_MIN_INTERVAL_SECONDS);
const pollIntervalSeconds = z
  .int(INTERVAL_RULE)
  .min(CELL_MIN_INTERVAL_SECONDS, INTERVAL_RULE)
  .max(MAX_INTERVAL_SECONDS, INTERVAL_RULE);
const secretRef = z.string('must be the name of a secret');
const ID_RULE = 'must be the id of an account';
/** The id of an existing account, whatever rule applied when it was registered. */
const account = z.string(ID_RULE).min(1, ID_RULE).max(200, ID_RULE);
const endpoint = z.string('must be the id of an endpoint').min(1, 'must be the id of an endpoint');
/** Input that the endpoint operations validate themselves. */
const input = (what: string) => z.record(z.string(), z.unknown(), `must be ${what}`);

const UPSTREAM_RULE = 'must be the id that the ordering service has for the account: a positive integer';

/** All commands, each with its input schema. */
const Command = z.discriminatedUnion(
  'do',
  [
    z.strictObject({
      do: z.literal('accounts.add'),
      account: id,
      secretRef,
      pollIntervalSeconds: pollIntervalSeconds.default(120),
    }),
    z.strictObject({
      do: z.literal('accounts.change'),
      account,
      secretRef: secretRef.optional(),
      pollIntervalSeconds: pollIntervalSeconds.optional(),
    }),
    z.strictObject({ do: z.literal('accounts.list') }),
    z.strictObject({ do: z.literal('accounts.status'), account }),
    z.strictObject({ do: z.literal('accounts.pause'), account }),
    z.strictObject({ do: z.literal('accounts.resume'), account }),
    z.strictObject({ do: z.literal('accounts.test'), account }),
    z.strictObject({ do: z.literal('accounts.delete'), account }),
    z.strictObject({
      do: z.literal('accounts.confirm'),
      account,
      upstreamId: z.int(UPSTREAM_RULE).positive(UPSTREAM_RULE).optional(),
    }),
    z.strictObject({ do: z.literal('endpoints.add'), endpoint: input('an endpoint: at least its url') }),
    z.strictObject({
      do: z.literal('endpoints.change'),
      endpoint,
      change: input('what is to be changed of the endpoint'),
    }),
    z.strictObject({
      do: z.literal('endpoints.rotate'),
      endpoint,
      rotation: input('what is known of the new secret').default({}),
    }),
    z.strictObject({ do: z.literal('endpoints.list') }),
    z.strictObject({ do: z.literal('endpoints.pause'), endpoint }),
    z.strictObject({ do: z.literal('endpoints.resume'), endpoint }),
    z.strictObject({ do: z.literal('endpoints.enable'), endpoint }),
    z.strictObject({ do: z.literal('endpoints.ping'), endpoint }),
    z.strictObject({ do: z.literal('endpoints.delete'), endpoint }),
    // The first key of a cell is created here: the API requires a key to create another.
    z.strictObject({
      do: z.literal('keys.create'),
      ...NewKey.shape,
      role: NewKey.shape.role.default('admin'),
    }),
    z.strictObject({ do: z.literal('keys.list') }),
    z.strictObject({ do: z.literal('keys.revoke'), key: keyId }),
    z.strictObject({ do: z.literal('logs.renew') }),
  ],
  {
    error: (issue) =>
      issue.code === 'invalid_union' ? `must be one of ${commands().join(', ')}` : undefined,
  },
);
type Command = z.infer<typeof Command>;

/** Returns the names of all commands. */
export function commands(): string[] {
  return Command.options.map(({ shape }) => shape.do.value);
}

/** Maximum duration (ms) of a deletion in one command: within the function's timeout, which is 5 minutes. */
const DELETE_MS = 240_000;

/**
 * Creates the handler, which executes one command. Invalid input and impossible commands get a response;
 * faults are thrown.
 */
export function createOperateHandler(deps: OperateDeps) {
  const { telemetry } = deps;
  return async (event: unknown): Promise<Answer> => {
    const parsed = Command.safeParse(event, { reportInput: true });
    const answer = parsed.success
      ? await perform(deps, parsed.data)
      : fail('rejected', `${sentenceOf(parsed.error.issues[0], 'The command')}.`);
    telemetry.operate({
      command: parsed.success ? parsed.data.do : 'unknown',
      about: parsed.success ? aboutWhat(parsed.data, answer) : null,
      outcome: (answer.error as Failure | undefined)?.kind ?? 'done',
    });
    return answer;
  };
}

function perform(deps: OperateDeps, command: Command): Promise<Answer> | Answer {
  const { region } = deps;
  switch (command.do) {
    case 'accounts.add':
      return add(deps, command);
    case 'accounts.change': {
      const { do: _, account: name, ...settings } = command;
      return updateAccount(deps.accounts, { region, account: name }, settings).then(changedAccount);
    }
    case 'accounts.list':
      return listed(deps);
    case 'accounts.status':
      return status(deps, command.account);
    case 'accounts.pause':
      return pauseAccount(deps.accounts, { region, account: command.account }).then(changedAccount);
    case 'accounts.resume':
      return resumeAccount(deps.accounts, { region, account: command.account }).then(changedAccount);
    case 'accounts.test':
      return testAccount(deps.accounts, { region, account: command.account }).then((outcome) =>
        outcome.kind === 'tested' ? outcome.report : notDone(outcome),
      );
    case 'accounts.delete':
      return deleteAccount(deps.accounts, { region, account: command.account }, {}, DELETE_MS).then(
        (outcome) =>
          outcome.kind === 'deleted'
            ? { deleted: command.account, complete: outcome.complete }
            : notDone(outcome),
      );
    case 'accounts.confirm':
      return confirm(deps, command);
    case 'endpoints.add':
      return createEndpoint(deps, region, command.endpoint).then((outcome) =>
        outcome.kind === 'created'
          ? {
              endpoint: showEndpoint(outcome.endpoint),
              secret: outcome.secret,
              truncatedAccounts: outcome.late,
            }
          : notDone(outcome),
      );
    case 'endpoints.change':
      return updateEndpoint(deps, region, command.endpoint, command.change).then(changed);
    case 'endpoints.rotate':
      return rotateSecret(deps, region, command.endpoint, command.rotation).then((outcome) =>
        outcome.kind === 'rotated'
          ? { secret: outcome.secret, previousSecretsExpireAt: instantText(outcome.previousSecretsExpireAt) }
          : notDone(outcome),
      );
    case 'endpoints.list':
      return listEndpoints(deps, region).then((endpoints) => ({ endpoints: endpoints.map(showEndpoint) }));
    case 'endpoints.pause':
      return pauseEndpoint(deps, region, command.endpoint).then(changed);
    case 'endpoints.resume':
      return resumeEndpoint(deps, region, command.endpoint).then(changed);
    case 'endpoints.enable':
      return enableEndpoint(deps, region, command.endpoint).then(changed);
    case 'endpoints.ping':
      return pingEndpoint(deps, region, command.endpoint).then((outcome) => {
        if (outcome.kind !== 'attempted') return notDone(outcome);
        const { kind: _, ...report } = outcome;
        return report;
      });
    case 'endpoints.delete':
      return deleteEndpoint(deps, region, command.endpoint).then((outcome) =>
        outcome.kind === 'deleted' ? { deleted: command.endpoint } : notDone(outcome),
      );
    case 'keys.create': {
      const { do: _, ...input } = command;
      return createKey(deps, input, OPERATOR).then((outcome) =>
        outcome.kind === 'created' ? { key: outcome.key, secret: outcome.secret } : notDone(outcome),
      );
    }
    case 'keys.list':
      return listKeys(deps, { limit: MAX_KEYS }, OPERATOR).then(({ keys }) => ({ keys }));
    case 'keys.revoke':
      return revokeKey(deps, command.key, OPERATOR).then((outcome) =>
        outcome.kind === 'revoked' ? { revoked: command.key } : notDone(outcome),
      );
    case 'logs.renew':
      if (deps.isRestored) return renewLogs(deps, region).then((outcome) => ({ logs: outcome }));
      return fail(
        'conflict',
        `The settings of the cell "${region}" name no restored table (stateTable.restoredAt), so there is nothing to renew.`,
      );
  }
}

async function add(
  deps: OperateDeps,
  { do: _, account: name, ...settings }: Extract<Command, { do: 'accounts.add' }>,
): Promise<Answer> {
  const known = await readAccount(deps.accounts, { region: deps.region, account: name });
  if (known) {
    const { secretRef, pollIntervalSeconds } = settings;
    if (known.secretRef === secretRef && known.pollIntervalSeconds === pollIntervalSeconds) {
      return { account: known };
    }
    return fail(
      'conflict',
      `account must be new, and there is an account "${name}" with other settings already; accounts.change changes them.`,
    );
  }
  const outcome = await createAccount(deps.accounts, { id: name, ...settings });
  return outcome.kind === 'created' ? { account: outcome.account } : notDone(outcome);
}

async function listed({ accounts: deps }: OperateDeps): Promise<Answer> {
  const accounts: unknown[] = [];
  let after: string | undefined;
  do {
    const page = await pageAccounts(deps, { limit: 500, after });
    if (page.kind !== 'page') return notDone(page);
    accounts.push(...page.accounts);
    after = page.next ?? undefined;
  } while (after !== undefined);
  return { accounts };
}

async function status(deps: OperateDeps, name: string): Promise<Answer> {
  const known = await findAccount(deps.table, [deps.region], name);
  const report = known && (await reportAccount(deps, known));
  return known && report
    ? { account: await readAccount(deps.accounts, known), status: report }
    : unknownAccount(name);
}

async function confirm(
  deps: OperateDeps,
  { account: name, upstreamId }: Extract<Command, { do: 'accounts.confirm' }>,
): Promise<Answer> {
  const ref = { region: deps.region, account: name };
  const outcome = await confirmAccount(deps, ref, upstreamId === undefined ? {} : { upstreamId });
  switch (outcome.kind) {
    case 'confirmed':
      return { confirmed: outcome.was };
    case 'nothing to confirm':
      return fail('conflict', `The account is ${outcome.state}: it waits for nobody.`);
    case 'unknown account':
      return unknownAccount(name);
  }
}

const fail = (kind: Failure['kind'], message: string): Answer => ({ error: { kind, message } });
const unknownAccount = (name: string): Answer => fail('unknown', `There is no account "${name}".`);
const notDone = ({ kind, reason }: Rejection): Answer => fail(kind, reason);

function changedAccount(outcome: Awaited<ReturnType<typeof updateAccount>>): Answer {
  return outcome.kind === 'changed' ? { account: outcome.account } : notDone(outcome);
}

function changed(outcome: { readonly kind: 'changed'; readonly endpoint: Endpoint } | Rejection): Answer {
  return outcome.kind === 'changed' ? { endpoint: showEndpoint(outcome.endpoint) } : notDone(outcome);
}

/**
 * Returns the id of the command's subject. A new resource's id is in the response, because it may be
 * generated.
 */
function aboutWhat(command: Command, answer: Answer): string | null {
  if ('account' in command) return command.account;
  if ('endpoint' in command && typeof command.endpoint === 'string') return command.endpoint;
  if (command.do === 'keys.revoke') return command.key;
  const made = (answer.endpoint ?? answer.key) as Endpoint | KeyRecord | undefined;
  return made?.id ?? null;
}
