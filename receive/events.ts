/** The types of all events. Made from shared/events/catalogue.ts by `npm run build`: not to be edited. */

/** One parcel: known by its number, or else by its link. */
export interface TrackingEntry {
  number: string | null;
  /** Null when the carrier gives none. */
  link: string | null;
}

/** The job as it stands after the change. Texts written by customers are data: escape them wherever they are shown. */
export interface JobSummary {
  jobNumber: number;
  /** The status name in the words of the ordering service. */
  status: string | null;
  description: string | null;
  /** The customer’s own reference; neither unique nor required. */
  orderNumber: string | null;
  orderGroup: string | null;
  orderGroupSequence: number | null;
  originCode: string | null;
  dateDue: string | null;
  mustDate: boolean | null;
  dateOut: string | null;
  tracking: TrackingEntry[];
}

/** When the change happened: after `since` and not later than `at`. */
export interface Observed {
  /** When the answer came that shows the change. */
  at: string;
  /** When the job (or the whole list) was last looked at before; null when it never was. */
  since: string | null;
  /** Which answer of the ordering service showed it: the list of active jobs, the job, or a search. */
  view: 'list' | 'detail' | 'search';
}

/** A value before and after. */
export interface Change<T> {
  from: T;
  to: T;
}

/** Every event type with the shape of its data. */
export interface EventDataByType {
  /** A job appeared that was created after tracking began. */
  'job.created': {
    account: string;
    region: string;
    job: JobSummary;
    observed: Observed;
    changes: Record<string, never>;
    /** dateIn */
    occurredAt: string | null;
  };
  /** The status moved: in the list, or, after the job left the list, in its detail. */
  'job.status_changed': {
    account: string;
    region: string;
    job: JobSummary;
    observed: Observed;
    changes: {
      status: Change<string | null>;
    };
  };
  /** The status of one or more lines moved. Lines are seen only when the detail is read, so not every move is caught. */
  'job.line_status_changed': {
    account: string;
    region: string;
    job: JobSummary;
    observed: Observed;
    changes: Record<string, never>;
    lines: Array<{
      jobLineId: number;
      from: string | null;
      to: string | null;
    }>;
  };
  /** The job was dispatched (dateOut was set). Said once per dispatch, however often the date is corrected. */
  'job.dispatched': {
    account: string;
    region: string;
    job: JobSummary;
    observed: Observed;
    changes: {
      dateOut: Change<string | null>;
    };
    /** dateOut */
    occurredAt: string;
  };
  /** The dispatch was taken back (dateOut was cleared, and the detail agrees). */
  'job.dispatch_revoked': {
    account: string;
    region: string;
    job: JobSummary;
    observed: Observed;
    changes: {
      dateOut: Change<string | null>;
    };
  };
  /** Parcels got tracking; one event per look, listing them. */
  'job.tracking_added': {
    account: string;
    region: string;
    job: JobSummary;
    observed: Observed;
    changes: Record<string, never>;
    tracking: TrackingEntry[];
  };
  /** The link of known parcels was filled in or changed, or a link got its number. */
  'job.tracking_updated': {
    account: string;
    region: string;
    job: JobSummary;
    observed: Observed;
    changes: Record<string, never>;
    tracking: Change<TrackingEntry>[];
  };
  /** Tracking was taken back, and the detail agrees. */
  'job.tracking_removed': {
    account: string;
    region: string;
    job: JobSummary;
    observed: Observed;
    changes: Record<string, never>;
    tracking: TrackingEntry[];
  };
  /** The due date, or whether it must be met, changed. */
  'job.due_date_changed': {
    account: string;
    region: string;
    job: JobSummary;
    observed: Observed;
    changes: {
      dateDue?: Change<string | null>;
      mustDate?: Change<boolean | null>;
    };
  };
  /** Description, order number, order group or origin changed, or the dispatch date was corrected. */
  'job.updated': {
    account: string;
    region: string;
    job: JobSummary;
    observed: Observed;
    changes: {
      description?: Change<string | null>;
      orderNumber?: Change<string | null>;
      orderGroup?: Change<string | null>;
      orderGroupSequence?: Change<number | null>;
      originCode?: Change<string | null>;
      dateOut?: Change<string | null>;
    };
  };
  /** The job can no longer be edited. */
  'job.locked': {
    account: string;
    region: string;
    job: JobSummary;
    observed: Observed;
    changes: {
      canEdit: Change<boolean | null>;
    };
  };
  /** The job can be edited again. */
  'job.unlocked': {
    account: string;
    region: string;
    job: JobSummary;
    observed: Observed;
    changes: {
      canEdit: Change<boolean | null>;
    };
  };
  /** The job was seen undispatched after its due instant; once per due date. */
  'job.overdue': {
    account: string;
    region: string;
    job: JobSummary;
    observed: Observed;
    changes: Record<string, never>;
    /** An instant, ISO 8601 in UTC. */
    dueAt: string;
    zone: string;
  };
  /** The job left the active list and is among the closed ones. */
  'job.closed': {
    account: string;
    region: string;
    job: JobSummary;
    observed: Observed;
    changes: Record<string, never>;
  };
  /** The job is in neither list and locked, undispatched, twice with time between: the service never lists cancelled jobs. */
  'job.cancelled': {
    account: string;
    region: string;
    job: JobSummary;
    observed: Observed;
    changes: Record<string, never>;
    /** The service does not say it; it follows from what it no longer shows. */
    inferred: true;
    /** What the job’s own record says of its status. */
    jobStatus: string | null;
  };
  /** The service no longer knows the job (404) and lists it nowhere, twice with time between. */
  'job.unavailable': {
    account: string;
    region: string;
    job: JobSummary;
    observed: Observed;
    changes: Record<string, never>;
    inferred: true;
    jobStatus: string | null;
  };
  /** A job said to be closed, cancelled or unavailable is in the active list again. */
  'job.reopened': {
    account: string;
    region: string;
    job: JobSummary;
    observed: Observed;
    changes: Record<string, never>;
    was: 'closed' | 'cancelled' | 'unavailable';
  };
  /** An invoice number appeared. */
  'job.invoiced': {
    account: string;
    region: string;
    job: JobSummary;
    observed: Observed;
    changes: {
      invoiceNumber: Change<string | null>;
    };
  };
  /** The last job of an order group that is not cancelled was dispatched; again when a job joins it later. */
  'order_group.dispatched': {
    account: string;
    region: string;
    observed: Observed;
    orderGroup: string;
    /** The dispatched jobs of the group, by number. */
    jobs: number[];
    /** Its jobs that were said to be cancelled or unavailable. */
    gone: number[];
    /** It was said before; a job joined or was taken back since. */
    again: boolean;
  };
  /** The first complete look at all open jobs is stored; changes from here on are announced. */
  'account.baselined': {
    account: string;
    region: string;
    observed?: Partial<Observed>;
    openJobs: number;
  };
  /** Several polls in a row failed; nothing new can be said until they recover. */
  'account.poll_failing': {
    account: string;
    region: string;
    observed?: Partial<Observed>;
    consecutiveFailures: number;
    reason: string;
  };
  /** A poll succeeded after account.poll_failing. */
  'account.poll_recovered': {
    account: string;
    region: string;
    observed?: Partial<Observed>;
    failedPolls: number;
  };
  /** The service refused the account’s credentials. */
  'account.credentials_rejected': {
    account: string;
    region: string;
    observed?: Partial<Observed>;
    reason: string;
  };
  /** The service accepts the account’s credentials again. */
  'account.credentials_accepted': {
    account: string;
    region: string;
    observed?: Partial<Observed>;
  };
  /** The credentials now belong to another account; polling stops until an operator acts. */
  'account.identity_mismatch': {
    account: string;
    region: string;
    observed?: Partial<Observed>;
    expectedId: number;
    actualId: number;
  };
  /** So many jobs seem to be gone at once that the service’s answers are in doubt: none of them is said to be cancelled or unavailable. */
  'account.quarantined': {
    account: string;
    region: string;
    observed?: Partial<Observed>;
    /** Jobs in the list. */
    openJobs: number;
    /** Missing jobs that look cancelled or unavailable. */
    suspected: number;
    /** Missing jobs about which the answers don’t fit together. */
    contradictory: number;
    /** Jobs said to be cancelled or unavailable in the last 24 hours. */
    announced: number;
  };
  /** What stopped or held back tracking (identity mismatch, quarantine) is over: by itself, or because an operator confirmed. */
  'account.resumed': {
    account: string;
    region: string;
    observed?: Partial<Observed>;
    was: 'quarantined' | 'identity_mismatch';
    by: 'itself' | 'operator';
  };
  /** The account’s log was restored from a backup: what was said after `after` before that is forgotten, and as far as it still holds it is said again. Read the jobs anew. */
  'account.restored': {
    account: string;
    region: string;
    observed?: Partial<Observed>;
    /** The cursor of the last event that is left of those before. */
    after: string;
  };
  /** A status name not seen before in this account. */
  'status.discovered': {
    account: string;
    region: string;
    observed: Observed;
    status: string;
    /** The service’s lookup calls a known status so from now on. */
    formerName?: string;
  };
  /** The ordering service fails for the whole region; said once, in place of account.poll_failing for each account. */
  'upstream.outage': {
    region: string;
    /** When the first of the failures came. */
    since: string;
    /** Polls that failed since then, with none answered: at least so many. */
    failedPolls: number;
    /** Different accounts among them: at least so many. */
    accounts: number;
    /** Why the last of them failed. */
    reason: string;
  };
  /** The ordering service answers again after upstream.outage. */
  'upstream.recovered': {
    region: string;
    /** When the first of the failures came. */
    since: string;
    /** From `since` to the first answer. */
    durationSeconds: number;
  };
  /** An endpoint gets no more events: it failed for days with nothing in between, or said that it wants none. Enabled again, it goes on where it stood. */
  'endpoint.disabled': {
    region: string;
    /** The id of the endpoint, or the name of a built-in sink. */
    endpoint: string;
    /** In words. */
    reason: string;
    /** Since when nothing was taken; null when it was taking events. */
    failingSince: string | null;
  };
  /** An endpoint takes events again after endpoint.disabled. */
  'endpoint.recovered': {
    region: string;
    /** The id of the endpoint, or the name of a built-in sink. */
    endpoint: string;
    /** An instant, ISO 8601 in UTC. */
    disabledAt: string;
  };
  /** Events fell out of retention before an endpoint had taken them; it goes on with the oldest that is left. */
  'endpoint.events_lost': {
    region: string;
    /** The id of the endpoint, or the name of a built-in sink. */
    endpoint: string;
    /** In whose log they stood. */
    account: string;
    /** The sequence of the first of them. */
    first: number;
    /** The sequence of the last of them. */
    last: number;
  };
  /** An endpoint refused an event to the last attempt; the later events of its job go on without it. */
  'endpoint.event_dead': {
    region: string;
    /** The id of the endpoint, or the name of a built-in sink. */
    endpoint: string;
    /** In whose log the event stands. */
    account: string;
    /** Its place there. */
    sequence: number;
    /** The id of the event. */
    event: string;
    attempts: number;
    /** How it was refused the last time, in words. */
    reason: string;
  };
  /** Somebody asked for a test of an endpoint; sent to that endpoint alone, and in no log. */
  'jobwire.ping': {
    region: string;
    /** The id of the endpoint, or the name of a built-in sink. */
    endpoint: string;
  };
}
