/** The stay of a job in its status, and job.needs_attention (rule 20). Pure. */
import type { EventDraft } from '../../events/event.ts';
import type { Snapshot } from '../snapshot.ts';
import type { ListView } from '../views.ts';
import { buildStep, type EventRules, type Step, type ViewResponse } from './step.ts';

/** Returns the stay after a list entry with the view `next`. `returns`: the job was not listed until now. */
export function followStay(
  { list: was, stay, heldBack, listAt }: Snapshot,
  next: ListView,
  response: ViewResponse,
  returns: boolean,
): Snapshot['stay'] {
  if (returns || was === null || was.status !== next.status) return { since: response.respondedAt };
  if (stay || was.status === null) return stay;
  // Stored by older code: the list had the status at its last stored observation.
  return { since: heldBack ? response.respondedAt : listAt };
}

/**
 * Adds job.needs_attention after each event with which the job enters such a status: its creation, or a change of the
 * status. `first`: the first status of a job that had none since its creation, which is no change.
 */
export function withAttention(
  step: Step,
  response: ViewResponse,
  rules: EventRules | undefined,
  first?: Entered,
): Step {
  if (!rules) return step;
  const attend = (entered: Entered | undefined): readonly EventDraft[] => {
    const { status = null, since = null } = entered ?? {};
    if (status === null || !rules.needsAttention(status)) return [];
    return buildStep(step.snapshot, response, since, [{ type: 'job.needs_attention', changes: {}, status }])
      .events;
  };
  const known = step.events.flatMap((event) => [event, ...attend(readEntered(event))]);
  const isKnown = step.events.some(({ type }) => type === 'job.status_changed');
  const isRepeated = first !== undefined && first.status === first.attended;
  const events = isKnown || isRepeated ? known : [...known, ...attend(first)];
  const { stay, list } = step.snapshot;
  // Without a status in the list, the list repeats the status of the detail later.
  const attended = events.findLast((event) => event.type === 'job.needs_attention')?.data.status;
  if (!stay || !attended) return { ...step, events };
  const isListed = list && list.status !== null;
  const marked = { ...stay, attention: true, ...(isListed ? {} : { attended }) } as const;
  return { ...step, events, snapshot: { ...step.snapshot, stay: marked } };
}

/** A status that a job entered, and the time at which it was in another (epoch ms). */
interface Entered {
  readonly status: string | null;
  readonly since: number | null;
  /** See {@link Snapshot.stay}. */
  readonly attended?: string | undefined;
}

function readEntered({ type, data }: EventDraft): Entered | undefined {
  if (type !== 'job.status_changed' && type !== 'job.created') return undefined;
  const since = data.observed.since === null ? null : Date.parse(data.observed.since);
  return { status: data.job.status, since };
}
