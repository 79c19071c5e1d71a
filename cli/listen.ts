/** `jobwire listen` and `jobwire trigger`: send events of the feed, or an example, to a receiver, as signed webhooks. */
import { createTerminal } from '../local/terminal.ts';
import { headers as endpointHeaders } from '../shared/delivery/endpoint-input.ts';
import { checkUrl, createConnectionPool } from '../shared/delivery/outbound.ts';
import { newSigningSecret } from '../shared/delivery/signing-secrets.ts';
import { createWebhookSink } from '../shared/delivery/webhook.ts';
import type { JobEvent } from '../shared/events/event.ts';
import { getExample } from '../shared/events/examples.ts';
import { receiverSecret } from '../shared/validation.ts';
import { type Context, type FlagValues, UsageError } from './command.ts';
import { checkStart, createReader, selectEvents } from './events.ts';
import { parseList, parseTime, readHeaders, readSecret, type SELECTION } from './input.ts';
import { sanitizeLine } from './output.ts';

type ListenFlags = FlagValues<typeof SELECTION> & {
  readonly 'forward-to': string;
  readonly 'secret-file': string | undefined;
  readonly 'secret-env': string | undefined;
  readonly 'header-env': readonly string[];
  readonly after: string | undefined;
  readonly once: number | undefined;
};

/** Forwards events until Ctrl-C, or as many as `--once` says. Returns 1 if one of these was not accepted. */
export async function listen(context: Context, flags: ListenFlags): Promise<number | undefined> {
  const { api, out } = context;
  checkStart(flags);
  const url = checkReceiver(flags);
  const headers = checkHeaders(context, flags);
  const own = await readOwnSecret(context, flags);
  const secret = own ?? newSigningSecret();

  const { account, types } = flags;
  const since = flags.since === undefined ? undefined : parseTime('since', flags.since);
  // Read before the message below, so that every event after it is forwarded, and invalid options are rejected.
  const query = { limit: 1, after: flags.after, types: parseList(types)?.join(',') };
  const { head } = await createReader(api(), flags)(query);
  const after = since === undefined ? (flags.after ?? head) : undefined;
  if (out.json) out.jsonLine({ forwardTo: url, ...(own === undefined ? { secret } : {}) });
  else {
    if (own === undefined) out.line(`Signing secret: ${out.paint('bold', secret)}`);
    out.line(`Forwarding events to ${sanitizeLine(url)}. Press Ctrl-C to stop.`);
  }

  const forwarder = createForwarder(context, url, { secret, headers });
  let [sent, failed] = [0, 0];
  try {
    for await (const json of selectEvents(context, { account, types, since, after })) {
      if (!(await forwarder.send(json))) failed += 1;
      sent += 1;
      if (sent === flags.once) return failed > 0 ? 1 : 0;
    }
  } finally {
    forwarder.close();
  }
  return undefined;
}

/** Account of the events of `trigger`, by which a receiver recognizes them as examples. */
const EXAMPLE_ACCOUNT = 'example';

/** Sends the example of an event type once, with a new id and the current time. Returns 1 if it was not accepted. */
export async function trigger(
  context: Context,
  type: string,
  flags: Omit<ListenFlags, 'after' | 'once' | keyof typeof SELECTION>,
): Promise<number> {
  const url = checkReceiver(flags);
  const example = getExample(type);
  if (!example) throw new UsageError('TYPE must be an event type.');
  const headers = checkHeaders(context, flags);
  const forwarder = createForwarder(context, url, {
    headers,
    secret: await readSigningSecret(context, flags),
  });
  // Receivers ignore an id that they have processed. The epoch makes it a new one.
  const [account, , sequence] = example.id.split('.');
  const isOfAccount = example.source.includes('/accounts/');
  const namesAccount = 'account' in example.data;
  const log = isOfAccount ? EXAMPLE_ACCOUNT : account;
  const now = Date.now();
  context.out.note(
    `This is the example of the event type, not an event of your account.${namesAccount ? ` Its account is "${EXAMPLE_ACCOUNT}".` : ''}`,
  );
  const id = sequence === undefined ? `ping.${now.toString(36)}` : `${log}.t${now.toString(36)}.${sequence}`;
  try {
    const event = {
      ...{ ...example, id, time: new Date(now).toISOString() },
      source: isOfAccount ? example.source.replace(/[^/]+$/, EXAMPLE_ACCOUNT) : example.source,
      data: namesAccount ? { ...example.data, account: EXAMPLE_ACCOUNT } : example.data,
    };
    return (await forwarder.send(JSON.stringify(event))) ? 0 : 1;
  } finally {
    forwarder.close();
  }
}

/** Sends events to a receiver, one at a time, and prints the responses. */
function createForwarder(
  { out }: Context,
  url: string,
  { secret, headers }: { readonly secret: string; readonly headers: Record<string, string> },
) {
  const pool = createConnectionPool({ allowPrivateNetworks: true });
  const sink = createWebhookSink({
    url,
    secrets: [secret],
    headers,
    now: Date.now,
    connections: pool.of(url, 1),
  });
  const terminal = createTerminal(out.stdout);
  return {
    /** Sends the JSON of an event. Returns whether it was accepted. */
    async send(json: string): Promise<boolean> {
      const event = JSON.parse(json) as JobEvent;
      const { id, type, data } = event;
      const { region, account = '' } = data;
      const startedAt = Date.now();
      const logged = { id, type, region, account, sequence: 0, time: Date.parse(event.time), json };
      const [outcome] = await sink.deliver([{ event: logged }]);
      const ms = Date.now() - startedAt;
      const status = outcome?.answer?.status ?? null;
      const error = outcome === undefined || outcome.kind === 'delivered' ? null : outcome.reason;
      if (out.json) out.jsonLine({ event: id, type, status, ms, error });
      else {
        const mark = out.paint(error === null ? 'green' : 'red', String(status ?? 'fail').padEnd(4));
        out.progress();
        out.stdout.write(`${mark} `);
        terminal.event(event);
        if (error !== null && status === null) out.note(sanitizeLine(error));
      }
      return error === null;
    },
    close: () => pool.close(),
  };
}

/** Returns the URL of the receiver. Throws {@link UsageError} if events can’t be sent there. */
function checkReceiver({ 'forward-to': url }: Pick<ListenFlags, 'forward-to'>): string {
  const rejection = checkUrl(url, true);
  if (rejection !== undefined) throw new UsageError(`--forward-to is not accepted. ${rejection}`);
  return url;
}

/** Returns the custom headers. Throws {@link UsageError} if an endpoint can’t have them. */
function checkHeaders({ env }: Context, flags: Pick<ListenFlags, 'header-env'>): Record<string, string> {
  const given = readHeaders(flags['header-env'], env);
  const [issue] = endpointHeaders.safeParse(given).error?.issues ?? [];
  if (issue) throw new UsageError(`--header-env: ${[...issue.path, issue.message].join(' ')}.`);
  return given;
}

type SecretFlags = Pick<ListenFlags, 'secret-file' | 'secret-env'>;

/** Reads the signing secret that the options name. `undefined` if they name none. */
async function readOwnSecret(context: Context, flags: SecretFlags): Promise<string | undefined> {
  const isGiven = (flags['secret-file'] ?? flags['secret-env']) !== undefined;
  return isGiven ? readSigningSecret(context, flags) : undefined;
}

/** Reads the signing secret from where the options say. Default: stdin, or a prompt. */
async function readSigningSecret(context: Context, flags: SecretFlags): Promise<string> {
  const { 'secret-file': file, 'secret-env': variable } = flags;
  const secret = await readSecret(context, 'The signing secret', { flag: 'secret', file, variable });
  const { error } = receiverSecret.safeParse(secret);
  if (error) throw new UsageError(`The signing secret ${error.issues[0]?.message}.`);
  return secret;
}
