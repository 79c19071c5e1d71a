// What happens to the service as a whole as time goes by: faults that come and go, credentials swapped, statuses added.

import * as z from 'zod';
import {
  type FaultBook,
  type FaultRule,
  knownAccount,
  type PageDrift,
  ruleSchema,
  strictly,
  UnknownAccountError,
} from '../http/faults.ts';
import type { TokenBook } from '../http/tokens.ts';
import { REGIONS, type RegionCode, STAGES } from '../world/regions.ts';
import type { SandboxAccount, World } from '../world/world.ts';
import { Timeline } from './timeline.ts';

const account = z.union([z.string(), z.int()]).describe('Name, client id or upstream id.');
const afterSeconds = z.number().min(0).max(1e9).default(0);
const forSeconds = z.number().positive().max(1e9).optional();
const someAccount = strictly({ region: z.enum(REGIONS), account });

const KINDS = ['fault', 'swapCredentials', 'rotateSecret', 'revokeTokens', 'addStatus'];

/** Something that happens after so many seconds of the sandbox clock, and is over after so many more where it can be. */
export const happeningSchema = z.discriminatedUnion(
  'do',
  [
    /** Puts a rule in force. */
    strictly({ do: z.literal('fault'), afterSeconds, forSeconds, rule: ruleSchema }),
    /**
     * Gives each of two accounts of a region the credentials of the other. Tokens already issued live on; revoke them to have
     * clients notice at once.
     */
    strictly({
      do: z.literal('swapCredentials'),
      afterSeconds,
      forSeconds,
      region: z.enum(REGIONS),
      accounts: z.tuple([account, account]),
    }),
    /** Gives the first credentials of an account another secret: `<client id>-secret-2` unless one is given. */
    strictly({
      do: z.literal('rotateSecret'),
      afterSeconds,
      ...someAccount.shape,
      secret: z.string().min(1).optional(),
    }),
    /** Forgets tokens. */
    strictly({
      do: z.literal('revokeTokens'),
      afterSeconds,
      region: z.enum(REGIONS).optional(),
      account: account.optional(),
    }),
    /** Adds a status to the lookup of a region, or of all; every so-manieth job that comes to its stage gets it. */
    strictly({
      do: z.literal('addStatus'),
      afterSeconds,
      region: z.enum(REGIONS).optional(),
      name: z.string().min(1),
      stage: z.enum(STAGES),
      every: z.int().min(1).max(1000).default(2),
    }),
  ],
  { error: (issue) => (issue.code === 'invalid_union' ? `must be one of: ${KINDS.join(', ')}` : undefined) },
);

/** Something that happens; checked by its schema. */
export type Happening = z.output<typeof happeningSchema>;

/** A happening that was planned; instants in epoch ms of the sandbox clock. */
export interface PlannedHappening {
  readonly id: string;
  readonly happening: Happening;
  readonly at: number;
  /** When it is over; null when it has no end. */
  readonly until: number | null;
  state: 'to come' | 'in force' | 'over';
}

/** What happenings act on. */
export interface AgendaOptions {
  world: World;
  tokens: TokenBook;
  faults: FaultBook;
  /** Brings jobs that live by themselves up to an instant: before anything happens to the service then. */
  scenario: { advanceTo(instantMs: number): void } | undefined;
}

const KEPT_WHEN_OVER = 1000;

/** What is to happen to a service, in its order. */
export class Agenda {
  readonly #options: AgendaOptions;
  readonly #timeline = new Timeline();
  #planned: (PlannedHappening & { undo: (() => void) | undefined })[] = [];
  #plannedCount = 0;
  /** When rules end that are in force for some time, epoch ms by their ids. */
  readonly #ruleEnds = new Map<string, number>();

  constructor(options: AgendaOptions) {
    this.#options = options;
  }

  /** Plans a happening from `now` on (epoch ms). Throws when it names an account that is not there. */
  plan(happening: Happening, now: number): PlannedHappening {
    this.#accountsOf(happening);
    const at = now + happening.afterSeconds * 1000;
    const seconds = 'forSeconds' in happening ? happening.forSeconds : undefined;
    this.#plannedCount += 1;
    const entry = {
      id: `happening-${this.#plannedCount}`,
      happening,
      at,
      until: seconds === undefined ? null : at + seconds * 1000,
      state: 'to come' as PlannedHappening['state'],
      undo: undefined as (() => void) | undefined,
    };
    this.#planned.push(entry);
    this.#forgetOld();
    this.later(at, () => {
      if (entry.state !== 'to come') return;
      entry.undo = this.#act(happening, entry.until);
      entry.state = entry.undo ? 'in force' : 'over';
    });
    if (entry.until !== null) this.later(entry.until, () => this.end(entry.id));
    return entry;
  }

  /** Ends what is in force, or sees to it that it never comes; false when there is nothing of that id that could end. */
  end(id: string): boolean {
    const entry = this.#planned.find((one) => one.id === id);
    if (!entry || entry.state === 'over') return false;
    entry.undo?.();
    entry.state = 'over';
    return true;
  }

  /** Puts a rule in force until an instant (epoch ms) or, with null, until it is ended; returns its id. */
  putRule(rule: FaultRule, until: number | null): string {
    const { faults } = this.#options;
    const id = faults.add(rule);
    if (until === null) return id;
    this.#ruleEnds.set(id, until);
    this.later(until, () => this.#endRule(id));
    return id;
  }

  /** When a rule ends that is in force for some time (epoch ms); null for others. */
  endOfRule(ruleId: string): number | null {
    return this.#ruleEnds.get(ruleId) ?? null;
  }

  /** What was planned, in the order of the planning: of what is over, the latest thousand. */
  list(): readonly PlannedHappening[] {
    return this.#planned.map(({ undo: _, ...entry }) => entry);
  }

  /** Does something at an instant (epoch ms). */
  later(at: number, run: () => void): void {
    this.#timeline.add(at, () => {
      this.#options.scenario?.advanceTo(at);
      run();
    });
  }

  /** Lets everything happen, to the service and to its jobs, up to and including an instant (epoch ms). */
  advanceTo(instantMs: number): void {
    this.#timeline.runUntil(instantMs);
    this.#options.scenario?.advanceTo(instantMs);
  }

  /** Changes the list of an account between two reads: hides its newest jobs for a while, and puts new ones before the others. */
  drift(who: SandboxAccount, { insert, hide, forSeconds: seconds }: PageDrift): number[] {
    const hidden = hide === 0 ? [] : who.activeJobNumbers().slice(-hide);
    for (const jobNumber of hidden) who.hide(jobNumber);
    this.later(this.#options.world.now() + seconds * 1000, () => {
      for (const jobNumber of hidden) if (who.job(jobNumber)) who.unhide(jobNumber);
    });
    return Array.from({ length: insert }, () => who.createJob());
  }

  /** Lets a happening happen; returns what ends it, if something does. */
  #act(happening: Happening, until: number | null): (() => void) | undefined {
    const { world, tokens } = this.#options;
    const [one, other] = this.#accountsOf(happening);
    switch (happening.do) {
      case 'fault': {
        const id = this.putRule(happening.rule, until);
        return () => this.#endRule(id);
      }
      case 'swapCredentials': {
        if (!one || !other) return undefined;
        swapCredentials(one, other);
        return () => swapCredentials(one, other);
      }
      case 'rotateSecret':
        if (one) one.clientSecret = happening.secret ?? `${one.clientId}-secret-2`;
        return undefined;
      case 'revokeTokens':
        tokens.revoke({
          ...(happening.region && { region: happening.region }),
          ...(one && { account: one.name }),
        });
        return undefined;
      case 'addStatus':
        for (const region of happening.region ? [happening.region] : REGIONS) {
          if (world.statuses(region).some(({ name }) => name === happening.name)) continue;
          world.addStatus(region, happening.name, happening.stage, happening.every);
        }
        return undefined;
    }
  }

  #endRule(id: string): void {
    this.#options.faults.remove(id);
    this.#ruleEnds.delete(id);
  }

  #forgetOld(): void {
    let surplus = this.#planned.filter(({ state }) => state === 'over').length - KEPT_WHEN_OVER;
    if (surplus <= 0) return;
    this.#planned = this.#planned.filter(({ state }) => {
      if (state !== 'over' || surplus === 0) return true;
      surplus -= 1;
      return false;
    });
  }

  /** The accounts that a happening names. Throws when one is not there. */
  #accountsOf(happening: Happening): SandboxAccount[] {
    const { world } = this.#options;
    const find = (key: string | number, region: RegionCode) => knownAccount(world, key, region);
    switch (happening.do) {
      case 'swapCredentials': {
        const both = happening.accounts.map((key) => find(key, happening.region));
        if (both[0] === both[1]) throw new UnknownAccountError('names one account twice, where it takes two');
        return both;
      }
      case 'fault': {
        const { account: key, region } = happening.rule.match;
        return key === undefined ? [] : [knownAccount(world, key, region)];
      }
      case 'rotateSecret':
        return [find(happening.account, happening.region)];
      case 'revokeTokens': {
        const { account: key, region } = happening;
        if (key === undefined) return [];
        if (region === undefined) throw new UnknownAccountError('names an account without its region');
        return [find(key, region)];
      }
      default:
        return [];
    }
  }
}

/** Each acts as the users of its new account in the order of the old ones. */
function swapCredentials(one: SandboxAccount, other: SandboxAccount): void {
  const [ours, theirs] = [[...one.credentials], [...other.credentials]];
  const moved = (all: typeof ours, from: SandboxAccount, to: SandboxAccount) =>
    all.map((credentials) => {
      const place = from.users.findIndex(({ id }) => id === credentials.userId);
      return { ...credentials, userId: (to.users[place] ?? to.users[0])?.id ?? 0 };
    });
  one.credentials.splice(0, ours.length, ...moved(theirs, other, one));
  other.credentials.splice(0, theirs.length, ...moved(ours, one, other));
}
