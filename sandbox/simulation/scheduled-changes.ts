// Scheduled changes of the whole API: temporary faults, swapped credentials, new statuses.

import * as z from 'zod';
import {
  accountKey,
  type FaultRule,
  type FaultRules,
  type PageDrift,
  requireAccount,
  ruleSchema,
  strictObject,
  UnknownAccountError,
} from '../http/faults.ts';
import type { TokenStore } from '../http/tokens.ts';
import { REGIONS, type RegionCode, STAGES } from '../world/regions.ts';
import type { SandboxAccount, World } from '../world/world.ts';
import { Timeline } from './timeline.ts';

const afterSeconds = z.number().min(0).max(1e9).default(0);
const forSeconds = z.number().positive().max(1e9).optional();
const someAccount = strictObject({ region: z.enum(REGIONS), account: accountKey });

const KINDS = ['fault', 'swapCredentials', 'rotateSecret', 'revokeTokens', 'addStatus', 'renameStatus'];

/** A change after a number of seconds of the sandbox clock, with an optional duration. */
export const scheduledChangeSchema = z.discriminatedUnion(
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
      accounts: z.tuple([accountKey, accountKey]),
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
      account: accountKey.optional(),
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

/** The fields of each kind of scheduled change, for the list of operations. */
export function describeKinds(): string {
  return scheduledChangeSchema.options
    .map(({ shape: { do: kind, ...fields } }) => {
      const names = Object.entries<z.ZodType>(fields).map(
        ([name, field]) => `${name}${field.safeParse(undefined).success ? '?' : ''}`,
      );
      return `{ do: ${kind.value}, ${names.join(', ')} }`;
    })
    .join(' or ');
}

/** Something that happens; checked by its schema. */
export type ScheduledChange = z.output<typeof scheduledChangeSchema>;

/** A planned change; times in epoch ms of the sandbox clock. */
export interface PlannedChange {
  readonly id: string;
  readonly change: ScheduledChange;
  readonly at: number;
  /** End time; null if it has none. */
  readonly until: number | null;
  state: 'planned' | 'active' | 'completed' | 'cancelled';
}

/** State that scheduled changes modify. */
export interface ChangeSchedulerOptions {
  world: World;
  tokens: TokenStore;
  faults: FaultRules;
  /** Advances the jobs to a time, before a scheduled change at that time. */
  scenario: { advanceTo(instantMs: number): void } | undefined;
}

const KEPT_WHEN_OVER = 1000;

const isOver = ({ state }: PlannedChange): boolean => state === 'completed' || state === 'cancelled';

/** The scheduled changes, in order. */
export class ChangeScheduler {
  readonly #options: ChangeSchedulerOptions;
  readonly #timeline: Timeline;
  #planned: (PlannedChange & { undo: (() => void) | undefined })[] = [];
  #plannedCount = 0;
  /** Times at which rules with a duration end (epoch ms), by id. */
  readonly #ruleEnds = new Map<string, number>();
  /** The active scheduled changes by the ids of their rules. */
  readonly #changesByRule = new Map<string, PlannedChange>();

  constructor(options: ChangeSchedulerOptions) {
    this.#options = options;
    this.#timeline = new Timeline((at, run) => options.world.changeAt(at, run));
  }

  /** Plans a scheduled change relative to `now` (epoch ms). Throws if it names an unknown account. */
  plan(change: ScheduledChange, now: number): PlannedChange {
    this.#findAccounts(change);
    const at = now + change.afterSeconds * 1000;
    const seconds = 'forSeconds' in change ? change.forSeconds : undefined;
    this.#plannedCount += 1;
    const entry = {
      id: `change-${this.#plannedCount}`,
      change,
      at,
      until: seconds === undefined ? null : at + seconds * 1000,
      state: 'planned' as PlannedChange['state'],
      undo: undefined as (() => void) | undefined,
    };
    this.#planned.push(entry);
    this.#forgetOld();
    this.later(at, () => {
      if (entry.state !== 'planned') return;
      entry.undo = this.#act(entry);
      entry.state = entry.undo ? 'active' : 'completed';
    });
    if (entry.until !== null) this.later(entry.until, () => this.end(entry.id));
    return entry;
  }

  /** Ends an active scheduled change, or cancels a planned one; false if there is none with this id. */
  end(id: string): boolean {
    const entry = this.#planned.find((one) => one.id === id);
    if (!entry || isOver(entry)) return false;
    entry.undo?.();
    entry.state = entry.state === 'planned' ? 'cancelled' : 'completed';
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

  /** Deletes a rule, which ends its scheduled change; false if there is none with this id. */
  endRule(id: string): boolean {
    const change = this.#changesByRule.get(id);
    if (change) change.state = 'completed';
    this.#changesByRule.delete(id);
    this.#ruleEnds.delete(id);
    return this.#options.faults.remove(id);
  }

  /** Time at which a rule with a duration ends (epoch ms); null for others. */
  endOfRule(ruleId: string): number | null {
    return this.#ruleEnds.get(ruleId) ?? null;
  }

  /** Scheduled changes in order of planning, including the latest thousand completed or cancelled ones. */
  list(): readonly PlannedChange[] {
    return this.#planned.map(({ undo: _, ...entry }) => entry);
  }

  /** Runs an action at a time (epoch ms). */
  later(at: number, run: () => void): void {
    this.#timeline.add(at, () => {
      this.#options.scenario?.advanceTo(at);
      run();
    });
  }

  /** Runs all scheduled changes and job moves up to a time (epoch ms), inclusive. */
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

  /** Starts a scheduled change; returns the function that ends it, if it can end. */
  #act(entry: PlannedChange): (() => void) | undefined {
    const { change } = entry;
    const { world, tokens } = this.#options;
    const [one, other] = this.#findAccounts(change);
    switch (change.do) {
      case 'fault': {
        const id = this.putRule(change.rule, entry.until);
        this.#changesByRule.set(id, entry);
        return () => this.endRule(id);
      }
      case 'swapCredentials': {
        if (!one || !other) return undefined;
        swapCredentials(one, other);
        return () => swapCredentials(one, other);
      }
      case 'rotateSecret':
        if (one) one.clientSecret = change.secret ?? `${one.clientId}-secret-2`;
        return undefined;
      case 'revokeTokens':
        tokens.revoke({
          ...(change.region && { region: change.region }),
          ...(one && { account: one.name }),
        });
        return undefined;
      case 'addStatus':
        for (const region of change.region ? [change.region] : REGIONS) {
          if (world.statuses(region).some(({ name }) => name === change.name)) continue;
          world.addStatus(region, change.name, change.stage, change.every);
        }
        return undefined;
      case 'renameStatus': {
        const names = world.statuses(change.region).map(({ name }) => name);
        if (names.includes(change.name) && !names.includes(change.newName)) {
          world.renameStatus(change.region, change.name, change.newName);
        }
        return undefined;
      }
    }
  }

  #forgetOld(): void {
    let surplus = this.#planned.filter(isOver).length - KEPT_WHEN_OVER;
    if (surplus <= 0) return;
    this.#planned = this.#planned.filter((entry) => {
      if (!isOver(entry) || surplus === 0) return true;
      surplus -= 1;
      return false;
    });
  }

  /** The accounts of a scheduled change. Throws if one does not exist. */
  #findAccounts(change: ScheduledChange): SandboxAccount[] {
    const { world } = this.#options;
    const find = (key: string | number, region: RegionCode) => requireAccount(world, key, region);
    switch (change.do) {
      case 'swapCredentials': {
        const both = change.accounts.map((key) => find(key, change.region));
        if (both[0] === both[1]) throw new UnknownAccountError('names the same account twice');
        return both;
      }
      case 'fault': {
        const { account: key, region } = change.rule.match;
        return key === undefined ? [] : [requireAccount(world, key, region)];
      }
      case 'rotateSecret':
        return [find(change.account, change.region)];
      case 'revokeTokens': {
        const { account: key, region } = change;
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
