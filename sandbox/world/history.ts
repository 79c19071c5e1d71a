// Earlier versions of jobs, for views of the API that lag behind.

import type { JobRecord } from './records.ts';

/** Where a job is listed. */
export type Place = 'active' | 'closed' | 'nowhere';

/** A job as it was, and the list that it was in. */
export interface PastJob {
  readonly job: JobRecord;
  readonly where: Place;
}

interface Version {
  /** Epoch ms of the change that ended this version. */
  readonly until: number;
  /** Undefined: the job did not exist. */
  readonly past: PastJob | undefined;
}

/** Earlier versions of the jobs of an account, for a limited time. Jobs that did not change in that time have none. */
export class JobHistory {
  /** Versions of a job, the oldest first. Jobs in the order of their last change. */
  readonly #versions = new Map<number, Version[]>();

  /** Stores the state of a job before a change at a time (epoch ms), and drops versions that ended `keptMs` earlier. */
  record(jobNumber: number, before: () => PastJob | undefined, at: number, keptMs: number): void {
    const known = this.#versions.get(jobNumber) ?? [];
    const until = Math.max(at, known.at(-1)?.until ?? at);
    if (known.at(-1)?.until !== until) known.push({ until, past: before() });
    this.#versions.delete(jobNumber);
    this.#versions.set(
      jobNumber,
      known.filter((version) => version.until > at - keptMs),
    );
    for (const [other, versions] of this.#versions) {
      if ((versions.at(-1)?.until ?? 0) > at - keptMs) break;
      this.#versions.delete(other);
    }
  }

  /** The jobs that changed after a time (epoch ms), as they were then; undefined: did not exist. */
  changedSince(at: number): ReadonlyMap<number, PastJob | undefined> {
    const changed = new Map<number, PastJob | undefined>();
    for (const jobNumber of this.#versions.keys()) {
      const version = this.versionAt(jobNumber, at);
      if (version) changed.set(jobNumber, version.past);
    }
    return changed;
  }

  /** The version of a job at a time (epoch ms). Undefined: it has not changed since. */
  versionAt(jobNumber: number, at: number): Version | undefined {
    return this.#versions.get(jobNumber)?.find(({ until }) => until > at);
  }
}

/** Copies a job, so that later changes do not affect the copy. */
export function copyJob(job: JobRecord): JobRecord {
  return { ...job, lines: job.lines.map((line) => ({ ...line })) };
}
