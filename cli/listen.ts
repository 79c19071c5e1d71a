/** `jobwire listen`: forwards the events of the feed to a receiver, as signed webhooks. */
import { createTerminal } from '../local/terminal.ts';
import { checkUrl, createConnectionPool } from '../shared/delivery/outbound.ts';
import { newSigningSecret } from '../shared/delivery/signing-secrets.ts';
import { createWebhookSink } from '../shared/delivery/webhook.ts';
import type { JobEvent } from '../shared/events/event.ts';
import { webhookSecret } from '../shared/validation.ts';
import { type Context, type FlagValues, UsageError } from './command.ts';
import { createReader, selectEvents } from './events.ts';
import { readSecret, type SELECTION } from './input.ts';
import { clean } from './output.ts';

type ListenFlags = FlagValues<typeof SELECTION> & {
  readonly 'forward-to': string;
  readonly 'secret-file': string | undefined;
  readonly 'secret-env': string | undefined;
  readonly once: number | undefined;
};

/** Forwards events until Ctrl-C, or as many as `--once` says. Returns 1 if one of these was not accepted. */
export async function listen(context: Context, flags: ListenFlags): Promise<number | undefined> {
  const { api, out } = context;
  const url = flags['forward-to'];
  const rejection = checkUrl(url, true);
  if (rejection !== undefined) throw new UsageError(`--forward-to is not accepted. ${rejection}`);
  const own = await readOwnSecret(context, flags);
  const secret = own ?? newSigningSecret();

  // Read before the message below, so that every event after it is forwarded.
  const { account, types, since } = flags;
  const after = since === undefined ? (await createReader(api(), flags)({ limit: 1 })).head : undefined;
  if (out.json) out.jsonLine({ forwardTo: url, ...(own === undefined ? { secret } : {}) });
  else {
    if (own === undefined) out.line(`Signing secret: ${out.paint('bold', secret)}`);
    out.line(`Forwarding events to ${clean(url)}. Press Ctrl-C to stop.`);
  }

  const pool = createConnectionPool({ allowPrivateNetworks: true });
  const sink = createWebhookSink({ url, secrets: [secret], now: Date.now, connections: pool.of(url, 1) });
  const terminal = createTerminal(out.stdout);
  let [sent, failed] = [0, 0];
  try {
    for await (const json of selectEvents(context, { account, types, since, after })) {
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
        if (error !== null && status === null) out.note(clean(error));
      }
      sent += 1;
      if (error !== null) failed += 1;
      if (sent === flags.once) return failed > 0 ? 1 : 0;
    }
  } finally {
    pool.close();
  }
  return undefined;
}

/** Reads the signing secret that the options name. `undefined` if they name none. */
async function readOwnSecret(context: Context, flags: ListenFlags): Promise<string | undefined> {
  const { 'secret-file': file, 'secret-env': variable } = flags;
  if (file === undefined && variable === undefined) return undefined;
  const secret = await readSecret(context, 'The signing secret', { flag: 'secret', file, variable });
  const { error } = webhookSecret.safeParse(secret);
  if (error) throw new UsageError(`The signing secret ${error.issues[0]?.message}.`);
  return secret;
}
