/**
 * What users do with an item of the attention queue: snooze, acknowledge, reopen, assign, note. Pure.
 *
 *   open ──snooze──▶ snoozed ──time, or a material change of the cause, or reopen──▶ open
 *   open ──acknowledge──▶ acknowledged ──a material change of the cause, or reopen──▶ open
 *
 * The assignee and the note stay in every state.
 */
import type { Actor, AttentionState, SubjectAction } from './views.ts';

/**
 * What of a cause is material. The cause changes materially if the key differs, for example because the status of the job or
 * the state of the endpoint changed, or if the level rises: see {@link toLevel}.
 */
export interface Material {
  readonly key: string;
  readonly level: number;
}

/** Stored state of an item. Times are epoch ms. */
export interface StoredState {
  readonly hold: {
    readonly state: Exclude<AttentionState, 'open'>;
    readonly until: number | null;
    /** The cause when the item was hidden. */
    readonly material: Material;
  } | null;
  readonly assignee: string | null;
  readonly note: string | null;
  readonly changedAt: number;
  readonly changedBy: Actor;
}

/** An action of a user. */
export type AttentionAction =
  | { readonly action: SubjectAction; readonly note?: undefined }
  | { readonly action: 'snooze'; readonly until: number; readonly note?: string | undefined }
  | { readonly action: 'acknowledge'; readonly note?: string | undefined }
  | { readonly action: 'reopen'; readonly note?: string | undefined }
  | { readonly action: 'assign'; readonly assignee: string | null; readonly note?: string | undefined }
  /** `null` removes the note. */
  | { readonly action: 'note'; readonly note: string | null };

/** Returns the state after an action. */
export function applyAction(
  before: StoredState | undefined,
  action: AttentionAction,
  context: { readonly material: Material; readonly by: Actor; readonly at: number },
): StoredState {
  const { material, by, at } = context;
  const { hold = null, assignee = null, note = null } = before ?? {};
  const next = {
    assignee,
    note: action.note === undefined ? note : action.note,
    changedAt: at,
    changedBy: by,
  };
  switch (action.action) {
    case 'snooze':
      return { ...next, hold: { state: 'snoozed', until: action.until, material } };
    case 'acknowledge':
      return { ...next, hold: { state: 'acknowledged', until: null, material } };
    case 'reopen':
      return { ...next, hold: null };
    case 'assign':
      return { ...next, hold, assignee: action.assignee };
    default:
      return { ...next, hold };
  }
}

/** The state of an item now. */
export interface CurrentState {
  readonly state: AttentionState;
  readonly snoozedUntil: number | null;
  readonly returned: 'changed' | 'snooze_ended' | null;
}

/** Returns the state of an item with the current cause. */
export function findState(stored: StoredState | undefined, material: Material, now: number): CurrentState {
  const open = { state: 'open', snoozedUntil: null } as const;
  const { hold = null } = stored ?? {};
  if (!hold) return { ...open, returned: null };
  if (isMateriallyChanged(hold.material, material)) return { ...open, returned: 'changed' };
  if (hold.until !== null && hold.until <= now) return { ...open, returned: 'snooze_ended' };
  return { state: hold.state, snoozedUntil: hold.until, returned: null };
}

/** Returns whether a cause differs enough from the one that a user has hidden. */
export function isMateriallyChanged(before: Material, now: Material): boolean {
  return before.key !== now.key || now.level > before.level;
}

/** Returns the level of a quantity that grows: it rises each time the quantity doubles. */
export function toLevel(quantity: number): number {
  return quantity < 1 ? 0 : 1 + Math.floor(Math.log2(quantity));
}
