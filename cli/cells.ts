/** `jobwire cells …` and `jobwire accounts move`: several cells, by their profiles. */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Account,
  type AccountImport,
  ApiError,
  type Client,
  createClient,
  UnreachableError,
} from '../client/index.ts';
import { readClientSecret } from './accounts.ts';
import { type Context, command, KeyError, OperationError, UsageError } from './command.ts';
import { CLIENT_SECRET, ignoreNotFound, withId } from './input.ts';
import { sanitizeLine } from './output.ts';
import { checkBaseUrl, findProfile, isUnencrypted, readProfiles } from './profiles.ts';

const WAIT_MS = 1_000;
/** Maximum time to wait until the former cell has prepared the account. */
const MAX_WAIT_MS = 10 * 60_000;

/** A cell by its profile. */
interface Cell {
  readonly name: string;
  readonly url: string;
  readonly client: Client;
}

function openCell({ env, out }: Context, name: string): Cell {
  const { url: stored, key } = findProfile(readProfiles(env), name);
  const url = checkBaseUrl(`The URL of the profile ${name}`, stored);
  if (isUnencrypted(url)) out.note(`Warning: the API key is sent to ${url} without encryption.`);
  return { name, url, client: createClient({ url, key }) };
}

function openCells(context: Context): Cell[] {
  return Object.keys(readProfiles(context.env).profiles).map((name) => openCell(context, name));
}

/** An account in a cell. */
interface AccountLocation {
  readonly cell: string;
  readonly url: string;
  readonly account: string;
  readonly region: string;
  readonly state: 'active' | 'paused' | 'moved' | 'incomplete';
  readonly movedTo: string | null;
}

function toAccountLocation({ name, url }: Cell, { id, region, paused, move }: Account): AccountLocation {
  const state =
    move && !move.complete && move.to === null
      ? 'incomplete'
      : move && move.to !== null
        ? 'moved'
        : paused
          ? 'paused'
          : 'active';
  return { cell: name, url, account: id, region, state, movedTo: move?.to ?? null };
}

const STATE_STYLE = { active: undefined, paused: 'yellow', moved: 'dim', incomplete: 'yellow' } as const;

/** Lists places, and notes cells that did not respond, accounts that are active twice, and moved ones that are in no other cell. The exit code is 1 if there are any. */
async function listPlaces(
  context: Context,
  read: (cell: Cell) => AsyncIterable<Account>,
  none: string,
): Promise<number | undefined> {
  const { out } = context;
  const failed: string[] = [];
  const cells = openCells(context);
  if (cells.length === 0) {
    throw new UsageError('There are no profiles. Add one for each cell with jobwire profiles add.');
  }
  await out.list(
    async function* () {
      const owners = new Map<string, string>();
      const found = new Set<string>();
      const moved: AccountLocation[] = [];
      const responding = new Set<string>();
      for (const cell of cells) {
        try {
          for await (const account of read(cell)) {
            const place = toAccountLocation(cell, account);
            // Several profiles can be of one cell.
            const key = `${place.region} ${place.account}`;
            if (found.has(`${cell.url} ${key}`)) continue;
            found.add(`${cell.url} ${key}`);
            const owner = owners.get(key);
            if (place.state === 'active') {
              if (owner !== undefined)
                failed.push(`${place.account} is active in two cells: ${owner}, ${cell.name}.`);
              owners.set(key, cell.name);
            }
            if (place.movedTo !== null) moved.push(place);
            yield place;
          }
          responding.add(cell.url);
        } catch (cause) {
          if (!(cause instanceof ApiError || cause instanceof UnreachableError)) throw cause;
          failed.push(`${cell.name} (${cell.url}): ${cause.message}`);
        }
      }
      for (const { cell, account, region, movedTo } of moved) {
        if (!responding.has(movedTo ?? '') || found.has(`${movedTo} ${region} ${account}`)) continue;
        failed.push(
          `${account} is paused in ${cell} for a move to ${movedTo}, but no profile of that cell lists it. If the move is not complete, complete or cancel it with jobwire accounts move.`,
        );
      }
    },
    [
      { name: 'CELL', value: ({ cell }) => cell },
      { name: 'ACCOUNT', value: ({ account }) => account, long: true },
      { name: 'REGION', value: ({ region }) => region },
      { name: 'STATE', value: ({ state }) => state, style: ({ state }) => STATE_STYLE[state] },
      { name: 'MOVED TO', value: ({ movedTo }) => movedTo, long: true },
    ],
    none,
  );
  for (const line of failed) out.note(sanitizeLine(line));
  return failed.length > 0 ? 1 : undefined;
}

export const cells = {
  'cells list': command({
    about: 'Lists the accounts of all cells for which you have a profile.',
    more: 'The exit code is 1 if a cell does not respond, if an account is active in two cells, or if a moved account is in no other cell.',
    example: 'cells list',
    local: true,
    run: (context) =>
      listPlaces(context, ({ client }) => client.list('/v1/accounts', 'accounts'), 'There are no accounts.'),
  }),

  'cells find': command({
    about: 'Finds the cell of an account, among all cells for which you have a profile.',
    more: 'An account in the state "moved" is now in the cell in the column MOVED TO. The exit code is 1 in the same cases as for jobwire cells list.',
    args: ['ACCOUNT'],
    example: 'cells find acme',
    local: true,
    run: (context, [id]) =>
      listPlaces(
        context,
        async function* ({ client }) {
          const found = await readAccount(client, id);
          if (found) yield found;
        },
        `No cell has an account ${id}.`,
      ),
  }),
};

export const moves = {
  'accounts move': command({
    about:
      'Moves an account to another cell of its region, with the state of its jobs, so that no change is missed or emitted twice.',
    more: '--profile is the cell that the account leaves. In the cell of --to, the account continues with a new log. The log, endpoints, API keys, deliveries and the history of messages are not moved. Give the credentials again: either --client-id and the client secret, or --secret-ref. If the command fails or is interrupted, repeat it. To go back, use --cancel. If the other cell already has the account, first delete it there. See docs/deploying.md for all steps.',
    args: ['ID'],
    flags: {
      to: { value: 'PROFILE', about: 'Profile of the other cell', required: true },
      'client-id': { value: 'ID', about: 'Client id of the account’s credentials' },
      ...CLIENT_SECRET,
      'secret-ref': {
        value: 'NAME',
        about: 'Name of a secret of the other cell that contains the credentials',
      },
      cancel: { about: 'Cancel an incomplete move' },
    },
    example: 'accounts move acme --profile us --to large --client-id acme-api < secret.txt',
    async run(context, [id], flags) {
      const { out } = context;
      const former = context.api();
      const target = openCell(context, flags.to);
      const cancelLine = context.toCommand(`accounts move ${id} --to ${flags.to} --cancel`);
      if (target.url === context.url) throw new UsageError('--to must be the profile of another cell.');
      const before = await former.get('/v1/accounts/{id}', withId(id));
      let moved: Account | undefined;
      try {
        const there = await readAccount(target.client, id);
        if (flags.cancel) return await cancel(context, former, before, { target, there });
        checkPlaces(before, there, target);
        const clientId = flags['client-id'];
        const secretRef = flags['secret-ref'];
        if (clientId === undefined ? !there && secretRef === undefined : secretRef !== undefined) {
          throw new UsageError(
            'Either --client-id or --secret-ref is required, because credentials are not copied.',
          );
        }
        const secret =
          clientId !== undefined
            ? { credentials: { clientId, clientSecret: await readClientSecret(context, flags) } }
            : { secretRef };
        await checkTarget(target, before.region, secret.credentials);
        if (there) await setCredentials(target.client, id, secret);
        context.onInterrupt(
          `The move is not complete, and ${id} may be paused in the former cell. To complete the move, repeat the command. To go back, run: ${cancelLine}`,
        );
        await waitUntilPrepared(context, former, id, target.url);
        for (let after: string | undefined, pages = 1; ; pages += 1) {
          out.progress(`Copying ${sanitizeLine(id)}: page ${pages} …`);
          const page = await former.post('/v1/accounts/{id}/export', {
            ...withId(id),
            body: after === undefined ? {} : { after },
          });
          moved = await target.client.post('/v1/accounts/import', { body: { data: page.data, ...secret } });
          if (page.next === null) break;
          after = page.next;
        }
      } catch (cause) {
        if (!(cause instanceof UsageError)) out.note(await describeState(former, target, id, cancelLine));
        throw cause;
      }
      out.progress();
      context.onInterrupt(undefined);
      out.document(moved, () => {
        out.line(
          `${sanitizeLine(id)} was moved to ${sanitizeLine(flags.to)}${moved?.paused ? ', paused as before' : ''}.`,
        );
        out.note(
          `Delete it in the former cell when its events are delivered and read: ${context.toCommand(`accounts delete ${id} --yes`)}`,
        );
      });
      return undefined;
    },
  }),
};

type Secret = Pick<AccountImport, 'credentials' | 'secretRef'>;

/** Checks what can be checked before the former cell closes the log. */
async function checkTarget({ name, client }: Cell, region: string, credentials: Secret['credentials']) {
  const { role, accounts } = await client.get('/v1/key');
  if (role !== 'admin' || accounts !== null) {
    throw new KeyError(`The API key of the profile ${name} must have the role admin for all accounts.`);
  }
  if (credentials === undefined) return;
  const { steps } = await client.post('/v1/credentials/test', { body: { region, credentials } });
  const failed = steps.find(({ ok }) => !ok);
  if (failed) throw new OperationError(`${name} can’t use the credentials. ${failed.message}`);
}

/** Sets the credentials of an account that the target already has, because an import ignores them then. */
async function setCredentials(client: Client, id: string, { credentials, secretRef }: Secret) {
  if (credentials) await client.put('/v1/accounts/{id}/credentials', { ...withId(id), body: credentials });
  else if (secretRef) await client.patch('/v1/accounts/{id}', { ...withId(id), body: { secretRef } });
}

/** Returns the state of a move that failed, and how to complete it or go back. It is read, because a response may have been lost. */
async function describeState(former: Client, target: Cell, id: string, cancelLine: string): Promise<string> {
  const { name, url, client } = target;
  const next = 'To complete the move, repeat the command. To go back,';
  const deletion = `first run: ${deleteLine(target, id)}\nThen run: ${cancelLine}`;
  try {
    const here = await former.get('/v1/accounts/{id}', withId(id));
    if (here.move?.to !== url) return `The move has not begun. ${id} is unchanged.`;
    const state = `${id} is paused in the former cell, and can’t be resumed there until the move is cancelled.`;
    const there = await readAccount(client, id).catch(() => null);
    if (there === null) return `${state} The account in ${name} can’t be read. ${next} run: ${cancelLine}`;
    if (!isFromMove(here, there)) return `${state} ${name} has no data of it. ${next} run: ${cancelLine}`;
    if (!there.move?.complete) return `${state} ${name} has a part of its data. ${next} ${deletion}`;
    return `The move is complete: ${id} is in ${name}. To go back, which loses its events since the move, ${deletion}`;
  } catch {
    return `The state of the move is unknown. To see it, run: jobwire cells find ${id}\n${next} run: ${cancelLine}`;
  }
}

const deleteLine = ({ name }: Cell, id: string) => `jobwire accounts delete ${id} --yes --profile ${name}`;

/** Returns whether the account in the other cell is from the current move of this one. */
function isFromMove(before: Account, there: Account | undefined): there is Account {
  return there?.move?.to === null && there.move.end !== null && there.move.end === before.move?.end;
}

/** Rejects a move if the other cell has an account of this id that is not from this move. */
function checkPlaces(before: Account, there: Account | undefined, target: Cell): void {
  if (!there || (before.move?.to === target.url && isFromMove(before, there))) return;
  const both = !before.paused && !there.paused ? 'is active in both cells' : 'exists in both cells';
  throw new OperationError(
    `${before.id} ${both}, but not as part of this move. Delete it in one of the cells first.`,
  );
}

async function waitUntilPrepared(context: Context, former: Client, id: string, to: string): Promise<void> {
  const until = Date.now() + MAX_WAIT_MS;
  for (;;) {
    const { waitingFor } = await former.put('/v1/accounts/{id}/move', { ...withId(id), body: { to } });
    if (waitingFor === null) return;
    if (Date.now() > until) {
      throw new OperationError(`The move still waits for ${waitingFor}.`);
    }
    context.out.progress(`Waiting for ${sanitizeLine(waitingFor)} …`);
    await sleep(WAIT_MS);
  }
}

async function cancel(
  { out, toCommand }: Context,
  former: Client,
  before: Account,
  { target, there }: { readonly target: Cell; readonly there: Account | undefined },
): Promise<number | undefined> {
  if (isFromMove(before, there)) {
    throw new OperationError(`${before.id} exists in ${target.name}. Delete it there first.`);
  }
  await former.delete('/v1/accounts/{id}/move', withId(before.id));
  const account = await former.get('/v1/accounts/{id}', withId(before.id));
  out.document(account, () => {
    out.line(`The move of ${sanitizeLine(before.id)} was cancelled.`);
    out.note(`To resume polling, run: ${toCommand(`accounts resume ${before.id}`)}`);
  });
  return undefined;
}

function readAccount(client: Client, id: string): Promise<Account | undefined> {
  return client.get('/v1/accounts/{id}', withId(id)).catch(ignoreNotFound);
}
