// Happenings of the whole API: temporary faults, swapped credentials, new statuses.

import * as z from 'zod';
import {
  type FaultRule,
  type FaultRules,
  knownAccount,
  type PageDrift,
  ruleSchema,
  strictObject,
  UnknownAccountError,
} from '../http/faults.ts';
import type { TokenStore } from '../http/tokens.ts';
import { REGIONS, type RegionCode, STAGES } from '../world/regions.ts';
import type { SandboxAccount, World } from '../world/world.ts';
import { Timeline } from './timeline.ts';

const account = z.union([z.string(), z.int()]).describe('Name, client id or upstream id.');
const afterSeconds = z.number().min(0).max(1e9).default(0);
const forSeconds = z.number().positive().max(1e9).optional();
const someAccount = strictObject({ region: z.enum(REGIONS), account });

const KINDS = ['fault', 'swapCredentials', 'rotateSecret', 'revokeTokens', 'addStatus', 'renameStatus'];

/** A happening after a number of seconds of the sandbox clock, with an optional duration. */
export const happeningSchema = z.discriminatedUnion(
  'do',
  [
    /** Activates a rule. */
    strictObject({ do: z.literal('fault'), afterSeconds, forSeconds, rule: ruleSchema }),
    /**
     * Swaps the credentials of two accounts of a region. Issued tokens remain valid; revoke them to make clients notice at
     * once.
     */
    strictObject({
      do: z.literal('swapCredentials'),
      afterSeconds,
      forSeconds,
      region: z.enum(REGIONS),
      accounts: z.tuple([account, account]),
    }),
    /** Changes the secret of an account's first credentials. Default: `<client id>-secret-2`. */
    strictObject({
      do: z.literal('rotateSecret'),
      afterSeconds,
      ...someAccount.shape,
      secret: z.string().min(1).optional(),
    }),
    /** Forgets tokens. */
    strictObject({
      do: z.literal('revokeTokens'),
      afterSeconds,
      region: z.enum(REGIONS).optional(),
      account: account.optional(),
    }),
    /** Adds a status to the lookup of a region, or of all; every nth job that reaches its stage gets it. */
    strictObject({
      do: z.literal('addStatus'),
      afterSeconds,
      region: z.enum(REGIONS).optional(),
      name: z.string().min(1),
      stage: z.enum(STAGES),
      every: z.int().min(1).max(1000).default(2),
    }),
    /**
     * Renames a status of a region, in the lookup and in all jobs. It has no effect if the lookup does not have `name`, or
     * already has `newName`.
     */
    strictObject({
      do: z.literal('renameStatus'),
      afterSeconds,
      region: z.enum(REGIONS),
      name: z.string(),
      newName: z.string().min(1),
    }),
  ],
  { error: (issue) => (issue.code === 'invalid_union' ? `must be one of: ${KINDS.join(', ')}` : undefined) },
);

/** Something that happens; checked by its schema. */
export type Happening = z.output<typeof happeningSchema>;

/** A planned happening; times in epoch ms of the sandbox clock. */
export interface PlannedHappening {
  readonly id: string;
  readonly happening: Happening;
  readonly at: number;
  /** End time; null if it has none. */
  readonly until: number | null;
  state: 'to come' | 'in force' | 'over';
}

/** State that happenings change. */
export interface AgendaOptions {
  world: World;
  tokens: TokenStore;
  faults: FaultRules;
  /** Advances the jobs to a time, before a happening at that time. */
  scenario: { advanceTo(instantMs: number): void } | undefined;
}

const KEPT_WHEN_OVER = 1000;

/** The planned happenings, in order. */
export class Agenda {
  readonly #options: AgendaOptions;
  readonly #timeline: Timeline;
  #planned: (PlannedHappening & { undo: (() => void) | undefined })[] = [];
  #plannedCount = 0;
  /** When rules end that are in force for some time, epoch ms by their ids. */
  readonly #ruleEnds = new Map<string, number>();
  /** The active happenings by the ids of their rules. */
  readonly #happeningsByRule = new Map<string, PlannedHappening>();

  constructor(options: AgendaOptions) {
    this.#options = options;
    this.#timeline = new Timeline((at, run) => options.world.changeAt(at, run));
  }

  /** Plans a happening relative to `now` (epoch ms). Throws if it names an unknown account. */
  plan(happening: Happening, now: number): PlannedHappening {
    this.#findAccounts(happening);
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
      entry.undo = this.#act(entry);
      entry.state = entry.undo ? 'in force' : 'over';
    });
    if (entry.until !== null) this.later(entry.until, () => this.end(entry.id));
    return entry;
  }

  /** Ends an active happening, or cancels a planned one; false if there is none with this id. */
  end(id: string): boolean {
    const entry = this.#planned.find((one) => one.id === id);
    if (!entry || entry.state === 'over') return false;
    entry.undo?.();
    entry.state = 'over';
    return true;
  }

  /** Activates a rule until a time (epoch ms) or, with null, until it is deleted; returns its id. */
  putRule(rule: FaultRule, until: number | null): string {
    const { faults } = this.#options;
    const id = faults.add(rule);
    if (until === null) return id;
    this.#ruleEnds.set(id, until);
    this.later(until, () => this.endRule(id));
    return id;
  }

  /** Deletes a rule, which ends its happening; false if there is none with this id. */
  endRule(id: string): boolean {
    const happening = this.#happeningsByRule.get(id);
    if (happening) happening.state = 'over';
    this.#happeningsByRule.delete(id);
    this.#ruleEnds.delete(id);
    return this.#options.faults.remove(id);
  }

  /** When a rule ends that is in force for some time (epoch ms); null for others. */
  endOfRule(ruleId: string): number | null {
    return this.#ruleEnds.get(ruleId) ?? null;
  }

  /** Happenings in order of planning, including the latest thousand completed ones. */
  list(): readonly PlannedHappening[] {
    return this.#planned.map(({ undo: _, ...entry }) => entry);
  }

  /** Runs an action at a time (epoch ms). */
  later(at: number, run: () => void): void {
    this.#timeline.add(at, () => {
      this.#options.scenario?.advanceTo(at);
      run();
    });
  }

  /** Runs all happenings and job moves up to a time (epoch ms), inclusive. */
  advanceTo(instantMs: number): void {
    this.#timeline.runUntil(instantMs);
    this.#options.scenario?.advanceTo(instantMs);
  }

  /** Changes an account's list between two reads: hides its newest jobs temporarily, and adds new ones. */
  drift(who: SandboxAccount, { insert, hide, forSeconds: seconds }: PageDrift): number[] {
    const hidden = hide === 0 ? [] : who.activeJobNumbers().slice(-hide);
    for (const jobNumber of hidden) who.hide(jobNumber, 'drift');
    this.later(this.#options.world.now() + seconds * 1000, () => {
      for (const jobNumber of hidden) if (who.job(jobNumber)?.hidden === 'drift') who.unhide(jobNumber);
    });
    return Array.from({ length: insert }, () => who.createJob());
  }

  /** Starts a happening; returns the function that ends it, if it can end. */
  #act(entry: PlannedHappening): (() => void) | undefined {
    const { happening } = entry;
    const { world, tokens } = this.#options;
    const [one, other] = this.#findAccounts(happening);
    switch (happening.do) {
      case 'fault': {
        const id = this.putRule(happening.rule, entry.until);
        this.#happeningsByRule.set(id, entry);
        return () => this.endRule(id);
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
      case 'renameStatus': {
        const names = world.statuses(happening.region).map(({ name }) => name);
        if (names.includes(happening.name) && !names.includes(happening.newName)) {
          world.renameStatus(happening.region, happening.name, happening.newName);
        }
        return undefined;
      }
    }
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

  /** The accounts of a happening. Throws if one does not exist. */
  #findAccounts(happening: Happening): SandboxAccount[] {
    const { world } = this.#options;
    const find = (key: string | number, region: RegionCode) => knownAccount(world, key, region);
    switch (happening.do) {
      case 'swapCredentials': {
        const both = happening.accounts.map((key) => find(key, happening.region));
        if (both[0] === both[1]) throw new UnknownAccountError('names the same account twice');
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

/** Each set of credentials acts as the users of its new account, in order. */
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
