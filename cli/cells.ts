/** `jobwire cells …` and `jobwire accounts move`: several cells, by their profiles. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Account, ApiError, type Client, createClient, UnreachableError } from '../client/index.ts';
import { readClientSecret } from './accounts.ts';
import { type Context, command, OperationError, UsageError } from './command.ts';
import { CLIENT_SECRET, ignoreGone, withId } from './input.ts';
import { clean } from './output.ts';
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
  const { url, key } = findProfile(readProfiles(env), name);
  checkBaseUrl(`The URL of the profile ${name}`, url);
  if (isUnencrypted(url)) out.note(`Warning: the API key is sent to ${url} without encryption.`);
  return { name, url, client: createClient({ url, key }) };
}

function openCells(context: Context): Cell[] {
  return Object.keys(readProfiles(context.env).profiles).map((name) => openCell(context, name));
}

/** An account in a cell. */
interface Place {
  readonly cell: string;
  readonly url: string;
  readonly account: string;
  readonly region: string;
  readonly state: 'active' | 'paused' | 'moved' | 'incomplete';
  readonly movedTo: string | null;
}

function toPlace({ name, url }: Cell, { id, region, paused, move }: Account): Place {
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

/** Lists places, and notes cells that did not respond and accounts that are active twice. The exit code is 1 if there are any. */
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
      for (const cell of cells) {
        try {
          for await (const account of read(cell)) {
            const place = toPlace(cell, account);
            const key = `${place.region} ${place.account}`;
            const owner = owners.get(key);
            if (place.state === 'active') {
              if (owner !== undefined)
                failed.push(`${place.account} is active in two cells: ${owner}, ${cell.name}.`);
              owners.set(key, cell.name);
            }
            yield place;
          }
        } catch (cause) {
          if (!(cause instanceof ApiError || cause instanceof UnreachableError)) throw cause;
          failed.push(`${cell.name} (${cell.url}): ${cause.message}`);
        }
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
  for (const line of failed) out.note(clean(line));
  return failed.length > 0 ? 1 : undefined;
}

export const cells = {
  'cells list': command({
    about: 'Lists the accounts of all cells for which you have a profile.',
    more: 'A profile contains the address and the API key of one cell (see jobwire profiles). If a cell does not respond, or an account is active in two cells, the exit code is 1.',
    example: 'cells list',
    local: true,
    run: (context) =>
      listPlaces(context, ({ client }) => client.list('/v1/accounts', 'accounts'), 'There are no accounts.'),
  }),

  'cells find': command({
    about: 'Finds the cell of an account, among all cells for which you have a profile.',
    more: 'The state "moved" means that the account is now in the cell shown in the column MOVED TO. If a cell does not respond, or the account is active in two cells, the exit code is 1.',
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
    more: 'The account is paused in the cell of --profile, and its data is copied to the cell of the profile --to, where the account continues with a new log. The credentials must be given again: either with --client-id and the client secret, as for accounts add, or with --secret-ref and the name of a secret of the other cell. If the command is interrupted, repeat it. If you repeat it after the move, it copies the suppressions that have been added in the former cell since then. --cancel ends a move that is not complete. Before you use --cancel, delete the account in the other cell. The log, endpoints, API keys, deliveries and the history of messages are not moved.',
    args: ['ID'],
    flags: {
      to: { value: 'PROFILE', about: 'Profile of the other cell', required: true },
      'client-id': { value: 'ID', about: 'Client id of the account’s credentials' },
      ...CLIENT_SECRET,
      'secret-ref': { value: 'NAME', about: 'Name of the secret with the credentials, in the other cell' },
      cancel: { about: 'Cancel a move that is not complete' },
    },
    example: 'accounts move acme --profile us --to large --client-id acme-api < secret.txt',
    async run(context, [id], flags) {
      const { out } = context;
      const former = context.api();
      const target = openCell(context, flags.to);
      if (target.url === context.url) throw new UsageError('--to must be the profile of another cell.');
      const before = await former.get('/v1/accounts/{id}', withId(id));
      const there = await readAccount(target.client, id);
      if (flags.cancel) return cancel(context, former, before, there);
      checkPlaces(before, there, target);
      const clientId = flags['client-id'];
      const secretRef = flags['secret-ref'];
      if (!there && (clientId === undefined) === (secretRef === undefined)) {
        throw new UsageError(
          'Either --client-id or --secret-ref is required, because credentials are not copied.',
        );
      }
      const secret =
        there === undefined && clientId !== undefined
          ? { credentials: { clientId, clientSecret: await readClientSecret(context, flags) } }
          : secretRef === undefined
            ? {}
            : { secretRef };
      context.onInterrupt('The move is not complete. To complete it, repeat the command.');
      await waitUntilPrepared(context, former, id, target.url);
      let moved: Account | undefined;
      for (let after: string | undefined, pages = 1; ; pages += 1) {
        out.progress(`Copying ${clean(id)}: page ${pages} …`);
        const page = await former.post('/v1/accounts/{id}/export', {
          ...withId(id),
          body: after === undefined ? {} : { after },
        });
        moved = await target.client.post('/v1/accounts/import', { body: { data: page.data, ...secret } });
        if (page.next === null) break;
        after = page.next;
      }
      out.progress();
      context.onInterrupt(undefined);
      out.document(moved, () => {
        out.line(`${clean(id)} was moved to ${clean(flags.to)}${moved?.paused ? ', paused as before' : ''}.`);
        out.note(
          `Delete it in the former cell when its events are delivered and read: ${context.toCommand(`accounts delete ${id} --yes`)}`,
        );
      });
      return undefined;
    },
  }),
};

/** Rejects a move if the other cell has an account of this id that is not from this move. */
function checkPlaces(before: Account, there: Account | undefined, target: Cell): void {
  if (!there) return;
  const isSame =
    before.move?.to === target.url && before.move.end !== null && there.move?.end === before.move.end;
  if (isSame && there.move?.to === null) return;
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
      throw new OperationError(
        `${id} is paused, but the move still waits for ${waitingFor}. Repeat the command later, or cancel the move with --cancel.`,
      );
    }
    context.out.progress(`Waiting for ${clean(waitingFor)} …`);
    await sleep(WAIT_MS);
  }
}

async function cancel(
  { out, toCommand }: Context,
  former: Client,
  before: Account,
  there: Account | undefined,
): Promise<number | undefined> {
  if (there !== undefined && there.move?.end === before.move?.end) {
    throw new OperationError(`${before.id} exists in the other cell. Delete it there first.`);
  }
  const account = await former.delete('/v1/accounts/{id}/move', withId(before.id));
  out.document(account, () => {
    out.line(`The move of ${clean(before.id)} was cancelled.`);
    out.note(`To resume polling, run: ${toCommand(`accounts resume ${before.id}`)}`);
  });
  return undefined;
}

function readAccount(client: Client, id: string): Promise<Account | undefined> {
  return client.get('/v1/accounts/{id}', withId(id)).catch(ignoreGone);
}
