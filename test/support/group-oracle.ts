/** Checks the events of order groups in the log of an account (rule 18) against the true history of their jobs. */
import type { JobEvent } from '../../shared/events/event.ts';
import { type Snapshot, summarize } from '../../shared/tracking/snapshot.ts';
import { during, type History, type Stand } from './history.ts';

const TYPE = 'order_group.dispatched';

/** Reads a log as it grows, and checks the events of groups. Error messages are added to `problems`. */
export function createGroupLedger(history: History, problems: string[]) {
  /** Groups with events of their jobs since the last group event, and the last group event. */
  const news = new Set<string>();
  const lastGroupEvent = new Map<
    string,
    { readonly sequence: number; readonly excluded: readonly number[] }
  >();
  /** The group of a job when its dispatch was emitted, and the sequence number and time of that event. */
  const dispatched = new Map<
    number,
    { readonly group: string; readonly sequence: number; readonly at: number }
  >();

  function takeGroupEvent(event: JobEvent): void {
    const { orderGroup, jobs, excludedJobs, repeated, observed } = event.data as unknown as {
      orderGroup: string;
      jobs: number[];
      excludedJobs: number[];
      repeated: boolean;
      observed: { since: string | null; at: string };
    };
    const complain = (what: string) => problems.push(`${event.id} of ${orderGroup}: ${what} ${jobs}`);
    if (repeated !== lastGroupEvent.has(orderGroup))
      complain(repeated ? 'was not emitted before' : 'was emitted before');
    // A job of the history that returns dispatched has no event of its own.
    const returned = lastGroupEvent.get(orderGroup)?.excluded.some((job) => jobs.includes(job));
    if (!news.has(orderGroup) && !returned) complain('nothing happened to it since');
    news.delete(orderGroup);
    lastGroupEvent.set(orderGroup, { sequence: Number(event.sequence), excluded: excludedJobs });

    const since = observed.since === null ? 0 : Date.parse(observed.since);
    const at = Date.parse(observed.at);
    const moments = new Set([since, at]);
    for (const job of history.jobs) {
      for (const stand of during(history.stands(job), since, at)) moments.add(Math.max(since, stand.at));
    }
    const complete = [...moments].some((moment) => {
      const at = (job: number) => history.stands(job).findLast((each) => each.at <= moment);
      return (
        history.jobs.every((job) => {
          const stand = at(job);
          return (
            !stand || stand.where === 'closed' || !counts(stand, orderGroup) || stand.list?.dateOut != null
          );
        }) &&
        jobs.every((job) => {
          const stand = at(job);
          return stand?.list?.orderGroup === orderGroup && stand.list.dateOut;
        })
      );
    });
    if (!complete) complain('it was not complete at any time then, or not of these');
  }

  /**
   * Checks that some of its jobs were dispatched and others not, at one time of the window, and that it was never complete
   * before.
   */
  function takePartialEvent(event: JobEvent): void {
    const { orderGroup, jobs, openJobs, observed } = event.data as unknown as {
      orderGroup: string;
      jobs: number[];
      openJobs: number[];
      observed: { since: string | null; at: string };
    };
    const complain = (what: string) => problems.push(`${event.id} of ${orderGroup}: ${what} ${jobs}`);
    if (lastGroupEvent.has(orderGroup)) complain('was complete before');
    const since = observed.since === null ? 0 : Date.parse(observed.since);
    const at = Date.parse(observed.at);
    const changes = history.jobs.flatMap((job) => during(history.stands(job), since, at));
    const isPartial = [at, ...changes.map((stand) => Math.max(since, stand.at))].some((moment) => {
      const isOut = (job: number) =>
        history.stands(job).findLast((each) => each.at <= moment)?.list?.dateOut != null;
      return jobs.every(isOut) && !openJobs.every(isOut);
    });
    if (!isPartial) complain('it was not partially dispatched then, or not with these');
  }

  return {
    take(event: JobEvent): void {
      if (event.type === 'order_group.partially_dispatched') {
        takePartialEvent(event);
        return;
      }
      if (event.type === TYPE) {
        takeGroupEvent(event);
        return;
      }
      const job = event.data.job as { jobNumber: number; orderGroup: string | null } | undefined;
      if (!job) return;
      // A job that moves between groups is an event for both.
      const changes = event.data.changes as Record<string, { from: string | null }> | undefined;
      for (const group of [job.orderGroup, changes?.orderGroup?.from]) {
        if (group) news.add(group);
      }
      if (event.type === 'job.dispatched' && job.orderGroup) {
        const { orderGroup: group } = job;
        dispatched.set(job.jobNumber, {
          group,
          sequence: Number(event.sequence),
          at: Date.parse(event.time),
        });
      }
    },
    /**
     * Call it when all changes were emitted. Checks that each complete group was reported as complete, after its last dispatch.
     */
    settle(snapshots: readonly Snapshot[], now: number): void {
      const groups = new Map<string, Snapshot[]>();
      for (const snapshot of snapshots) {
        const { orderGroup } = summarize(snapshot);
        if (orderGroup !== null) groups.set(orderGroup, [...(groups.get(orderGroup) ?? []), snapshot]);
      }
      for (const [group, members] of groups) {
        const open = members.some(({ emitted, ended }) => emitted.dateOut === null && ended === null);
        const openInTruth = history.jobs.some((job) => {
          const stand = history.now(job);
          return (
            stand.list?.orderGroup === group &&
            stand.where !== 'cancelled' &&
            stand.where !== 'closed' &&
            stand.list.dateOut === null
          );
        });
        // The outcome of an undispatched job that ended before tracking began is never known.
        const known = new Set(snapshots.map(({ jobNumber }) => jobNumber));
        const lost = history.jobs.some(
          (job) =>
            !known.has(job) &&
            history.stands(job).some(({ list }) => list?.orderGroup === group && list.dateOut === null),
        );
        // A group without a listed job cannot be investigated.
        const shown = history.jobs.some((job) => counts(history.now(job), group));
        // A dispatch that no detail has shown never counts as revoked after the departure (rule 4).
        const contradicted = members.some(({ jobNumber, emitted }) => {
          const stand = history.now(jobNumber);
          return emitted.dateOut !== null && counts(stand, group) && stand.list?.dateOut === null;
        });
        if (open || openInTruth || lost || !shown || contradicted) continue;
        for (const { jobNumber, emitted } of members) {
          const own = dispatched.get(jobNumber);
          if (emitted.dateOut === null || own?.group !== group) continue;
          // A list that omits the job may omit others too. Null means "not given", so it does not prove that the job left the
          // group.
          const { where, list } = history.now(jobNumber);
          if (where === 'nowhere' || list?.orderGroup !== group) continue;
          // After 7 days, jobs are no longer investigated.
          if (now - own.at > 7 * 86_400_000) continue;
          if ((lastGroupEvent.get(group)?.sequence ?? 0) < own.sequence) {
            problems.push(`${group} is complete since the dispatch of ${jobNumber}, without an event.`);
          }
        }
      }
    },
  };
}

/** Returns whether a job counts in a group. A job that drift hides from every list is unknown. */
function counts({ list, where }: Stand, orderGroup: string): boolean {
  return list?.orderGroup === orderGroup && (where === 'active' || where === 'closed');
}
