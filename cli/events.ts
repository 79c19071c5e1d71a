/** `jobwire events …` */

import { createTerminal } from '../local/terminal.ts';
import type { JobEvent } from '../shared/events/event.ts';
import type { Client } from './client.ts';
import { type Context, command, UsageError } from './command.ts';
import { instantOf, listOf, segment, wholeNumber } from './input.ts';
import { clean, harmless, toJson } from './output.ts';

const PAGE = 500;

export const events = {
  'events tail': command({
    about:
      'Shows events as they come: of everything, of an account, or a region’s own. Begins now unless told otherwise.',
    more: 'A connection that is lost is opened again where it stood: no event is missed, none comes twice. With --json each line is an event as it was logged.',
    args: [],
    flags: {
      account: { value: 'ID', about: 'Of this account only' },
      region: { value: 'REGION', about: 'The region’s own log: outages, and what became of endpoints' },
      types: { value: 'A,B', about: 'Of these types only, job.* for all that begin so', many: true },
      since: { value: 'WHEN', about: 'From then on: a span such as 2h, a day or an instant' },
      after: { value: 'CURSOR', about: 'From behind this cursor on' },
      once: { value: 'N', about: 'End after so many events' },
    },
    example: "events tail --account acme --types 'job.*' --since 2h",
    async run(context, _args, flags) {
      const { out } = context;
      if (flags.account !== undefined && flags.region !== undefined) {
        throw new UsageError('--account and --region can’t be combined.');
      }
      if (flags.since !== undefined && flags.after !== undefined) {
        throw new UsageError('--since and --after can’t be combined.');
      }
      const most = flags.once === undefined ? undefined : wholeNumber('once', flags.once, 1, 1_000_000);
      const path =
        flags.account !== undefined
          ? `/v1/accounts/${segment(flags.account)}/events`
          : flags.region !== undefined
            ? `/v1/regions/${segment(flags.region)}/events`
            : '/v1/events';
      const types = listOf(flags.types)?.join(',');
      const show = eventPrinter(context);
      const api = context.api();
      let count = 0;
      const took = (text: string): boolean => {
        show(text);
        count += 1;
        return count === most;
      };

      let after = flags.after;
      if (flags.since !== undefined) {
        const since = Date.parse(instantOf('since', flags.since));
        const past = pastEvents(api, path, types, since);
        for (;;) {
          const { value, done } = await past.next();
          if (done) {
            after = value;
            break;
          }
          if (took(value)) return undefined;
        }
      }
      const following = api.follow(`${path}/stream`, {
        types,
        after,
        onLost: (why) => out.note(`Connection lost: ${why} Trying again until you press Ctrl-C.`),
        onFound: () => out.note('Connected again; it goes on where it stood.'),
      });
      for await (const { text } of following) {
        if (took(text)) return undefined;
      }
      return undefined;
    },
  }),

  'events show': command({
    about: 'Shows one event as it was logged.',
    args: ['EVENT'],
    flags: { deliveries: { about: 'Also how it was delivered, to which endpoints' } },
    example: 'events show acme.mf2k8t9x3a.17 --deliveries',
    async run(context, [id], flags) {
      const { out } = context;
      const api = context.api();
      const path = `/v1/events/${segment(id)}`;
      const answer = await api.get<JobEvent | { event: JobEvent }>(path);
      const event = 'event' in answer ? answer.event : answer;
      const deliveries: Delivery[] = [];
      const every = () => api.list<Delivery>(`${path}/deliveries`, 'deliveries', {}, PAGE, () => {});
      if (flags.deliveries) for await (const one of every()) deliveries.push(one);
      out.document(flags.deliveries ? { event, deliveries } : event, () => {
        out.facts([
          ['Event', clean(event.id)],
          ['Type', clean(event.type)],
          ['Time', out.exactly(event.time)],
          ['Source', clean(event.source)],
          ['Subject', event.subject === undefined ? null : clean(event.subject)],
        ]);
        out.line();
        out.line(toJson(event.data, 2));
        if (flags.deliveries) {
          out.line();
          showDeliveries(context, deliveries);
        }
      });
      return undefined;
    },
  }),
};

/** An attempt as the API shows it. */
interface Delivery {
  readonly at: string | number;
  readonly sink?: string;
  readonly endpoint?: string;
  readonly type?: string;
  readonly eventId?: string;
  readonly outcome: string;
  readonly status?: number | null;
  readonly latencyMs?: number | null;
  readonly reason?: string | null;
}

/** A table of attempts. */
function showDeliveries({ out }: Context, deliveries: readonly Delivery[]): void {
  out.table(
    deliveries,
    [
      { name: 'WHEN', of: ({ at }) => out.when(at) },
      { name: 'ENDPOINT', of: ({ endpoint, sink }) => endpoint ?? sink },
      {
        name: 'OUTCOME',
        of: ({ outcome }) => outcome,
        style: ({ outcome }) => (outcome === 'delivered' ? 'green' : 'red'),
      },
      { name: 'HTTP', of: ({ status }) => status, right: true },
      { name: 'MS', of: ({ latencyMs }) => latencyMs, right: true },
      { name: 'WHY', of: ({ reason }) => reason, long: true },
    ],
    'It was delivered to nobody yet.',
  );
}

/** Prints one event after the other, from its envelope's text: as JSON lines, or a readable line each. */
export function eventPrinter({ out }: Context): (text: string) => void {
  const terminal = createTerminal(out.stdout);
  let day = new Date().toDateString();
  return (text) => {
    // The envelope goes out as it came: whoever keeps them keeps the bytes that were logged.
    if (out.json) return out.line(harmless(text));
    const event = JSON.parse(text) as JobEvent;
    const on = new Date(event.time).toDateString();
    if (on !== day) out.line(out.paint('dim', `— ${new Date(event.time).toLocaleDateString('sv')} —`));
    day = on;
    out.progress();
    terminal.event(event);
    if (out.verbose) out.line(out.paint('dim', `          ${clean(event.id)}`));
  };
}

/** The events of a log from an instant on that are there now, and at the end the cursor behind them. */
async function* pastEvents(
  api: Client,
  path: string,
  types: string | undefined,
  since: number,
): AsyncGenerator<string, string> {
  let after: string | undefined;
  for (;;) {
    const page = await api.get<{ events: readonly JobEvent[]; next: string; head?: string }>(path, {
      after,
      limit: PAGE,
      types,
    });
    for (const event of page.events) {
      if (Date.parse(event.time) >= since) yield JSON.stringify(event);
    }
    const last =
      page.next === after || (page.head === undefined ? page.events.length === 0 : page.next === page.head);
    after = page.next;
    if (last) return after;
  }
}
