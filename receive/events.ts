/** The types of all events. Generated from shared/events/catalogue.ts by `npm run build`; do not edit. */

/** A parcel, identified by its number, or by its link if it has no number. */
export interface TrackingEntry {
  number: string | null;
  /** Tracking URL. `null`: the carrier provides none. */
  link: string | null;
}

/** The job after the change. Texts written by customers are untrusted: escape them for display. */
export interface JobSummary {
  jobNumber: number;
  /** Status name in the ordering API. */
  status: string | null;
  description: string | null;
  /** Reference set by the customer. Optional and not unique. */
  orderNumber: string | null;
  orderGroup: string | null;
  orderGroupSequence: number | null;
  originCode: string | null;
  dateDue: string | null;
  mustDate: boolean | null;
  dateOut: string | null;
  tracking: TrackingEntry[];
}

/** Times between which the change happened: after `since`, and at or before `at`. */
export interface Observed {
  /** Time of the first response of the ordering API that contains the change. */
  at: string;
  /** Last time at which Jobwire observed the job or the list without the change. `null`: there is no such time. */
  since: string | null;
  /** Source of the observation in the ordering API: the list of active jobs, the job detail, or a search. */
  view: 'list' | 'detail' | 'search';
}

/** A value before and after. */
export interface Change<T> {
  from: T;
  to: T;
}

/** Every event type with the shape of its data. */
export interface EventDataByType {
  /** A job was created after Jobwire began to observe the account. */
  'job.created': {
    account: string;
    region: string;
    job: JobSummary;
    observed: Observed;
    changes: Record<string, never>;
    /** `dateIn` of the job in the ordering API. */
    occurredAt: string | null;
  };
  /** The status of a job changed. The status is read from the list of active jobs, or from the job detail after the job has left the list. */
  'job.status_changed': {
    account: string;
    region: string;
    job: JobSummary;
    observed: Observed;
    changes: {
      status: Change<string | null>;
    };
  };
  /** The status of one or more lines of a job changed. Only the job detail contains lines, and it is fetched less often than the list. So a status that a line has only for a short time can be missed. */
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
  /** A job was dispatched (`dateOut` was set). Emitted once per dispatch, even if the date is corrected later. */
  'job.dispatched': {
    account: string;
    region: string;
    job: JobSummary;
    observed: Observed;
    changes: {
      dateOut: Change<string | null>;
    };
    /** `dateOut` of the job in the ordering API. */
    occurredAt: string;
    /** Time zone of the job's location (IANA name). A `dateOut` without an offset is a local time in this zone. `null`: the time zone is not known yet. */
    zone: string | null;
    /** Whether the job was dispatched after its due time. If the due date has no time of day, the job is due by the end of that day at the production location. `null`: unknown, because the job has no due date, or because the result depends on a time of day or a time zone that is missing. Absent in events recorded by older versions of Jobwire. */
    late?: boolean | null;
    /** Time from the due time to the dispatch, in seconds. If the dispatch date has no time of day, this is the shortest possible delay. `null`: the job was not late, or the delay is unknown. */
    lateBySeconds?: number | null;
  };
  /** A dispatch was revoked: `dateOut` was cleared, and the job detail confirmed it. */
  'job.dispatch_revoked': {
    account: string;
    region: string;
    job: JobSummary;
    observed: Observed;
    changes: {
      dateOut: Change<string | null>;
    };
  };
  /** Tracking numbers or links of one or more parcels were added. One event contains all parcels that were observed at the same time. */
  'job.tracking_added': {
    account: string;
    region: string;
    job: JobSummary;
    observed: Observed;
    changes: Record<string, never>;
    tracking: TrackingEntry[];
  };
  /** The tracking link of a known parcel was added or changed, or a parcel that had only a link got its number. */
  'job.tracking_updated': {
    account: string;
    region: string;
    job: JobSummary;
    observed: Observed;
    changes: Record<string, never>;
    tracking: Change<TrackingEntry>[];
  };
  /** Tracking numbers or links were removed, and the job detail confirmed it. */
  'job.tracking_removed': {
    account: string;
    region: string;
    job: JobSummary;
    observed: Observed;
    changes: Record<string, never>;
    tracking: TrackingEntry[];
  };
  /** The due date of a job changed, or the flag `mustDate` changed, which marks the due date as mandatory. */
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
  /** The description, order number, order group, origin, comments or lines of a job changed, or its dispatch date was corrected. Comments and lines are compared only when the detail is fetched. */
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
      /** Comments of the job. */
      comments?: Change<string | null>;
      /** Changed lines. `from` contains the lines as they were before the change, `to` as they are after it. Each of the two lists has at most 200 lines. A line only in `from` was removed. A line only in `to` was added. If both contain the same `jobLineId`, the quantity or the comments of this line changed. */
      lines?: Change<Array<{
        jobLineId: number;
        /** Quantity of the line. `null`: the quantity is unknown. */
        quantity: number | null;
        /** Comments of the line, at most 256 bytes. */
        comments: string | null;
      }>>;
    };
  };
  /** A job can no longer be edited. */
  'job.locked': {
    account: string;
    region: string;
    job: JobSummary;
    observed: Observed;
    changes: {
      canEdit: Change<boolean | null>;
    };
  };
  /** A job can be edited again. */
  'job.unlocked': {
    account: string;
    region: string;
    job: JobSummary;
    observed: Observed;
    changes: {
      canEdit: Change<boolean | null>;
    };
  };
  /** The due time of a job has passed, and Jobwire then observed that the job was not dispatched. Emitted once per due date. */
  'job.overdue': {
    account: string;
    region: string;
    job: JobSummary;
    observed: Observed;
    changes: Record<string, never>;
    /** Timestamp (ISO 8601, UTC). */
    dueAt: string;
    zone: string;
  };
  /** The due time of an undispatched job is near. The account setting `events.dueSoonHours` is the number of hours before the due time. Emitted once per due date. */
  'job.due_soon': {
    account: string;
    region: string;
    job: JobSummary;
    observed: Observed;
    changes: Record<string, never>;
    /** Due time (ISO 8601, UTC). */
    dueAt: string;
    /** Time zone or offset that was used to interpret the due date. */
    zone: string;
  };
  /** An undispatched job in the list of active jobs stayed in one status for a number of working days. The account settings `events.stalledAfterWorkingDays` and `events.stalledByStatus` set this number. Emitted once per stay in a status. */
  'job.stalled': {
    account: string;
    region: string;
    job: JobSummary;
    observed: Observed;
    changes: Record<string, never>;
    /** Status name in the ordering API. */
    status: string;
    /** Time of the first observation of the job in this status. The job may have entered the status earlier. */
    inStatusSince: string;
    /** Number of working days (Monday to Friday) that have passed since `inStatusSince`. */
    workingDays: number;
    /** Time zone in which the working days are counted. It is the time zone of the job's location. */
    zone: string;
  };
  /** A job entered a status that needs attention, or was created in one. The account setting `events.attentionStatuses` lists these statuses. */
  'job.needs_attention': {
    account: string;
    region: string;
    job: JobSummary;
    observed: Observed;
    changes: Record<string, never>;
    /** Status name in the ordering API. */
    status: string;
  };
  /** An open job can no longer be cancelled (`isCancelable` changed to `false`). Only the job detail contains this value. It is fetched when the job changes in the list, and otherwise once a day. */
  'job.production_started': {
    account: string;
    region: string;
    job: JobSummary;
    observed: Observed;
    changes: {
      isCancelable: Change<boolean>;
    };
  };
  /** A job left the list of active jobs and is among the closed jobs. */
  'job.closed': {
    account: string;
    region: string;
    job: JobSummary;
    observed: Observed;
    changes: Record<string, never>;
  };
  /** A job left the list of active jobs, is not among the closed jobs, and is locked and not dispatched. Two checks some minutes apart had the same result. The cancellation is inferred, because the ordering API does not list cancelled jobs. */
  'job.cancelled': {
    account: string;
    region: string;
    job: JobSummary;
    observed: Observed;
    changes: Record<string, never>;
    /** `true`: Jobwire inferred the cancellation from the absence of the job, because the ordering API does not report cancellations. */
    inferred: true;
    /** Status name in the job detail. */
    jobStatus: string | null;
  };
  /** A job no longer exists in the ordering API: the request for its detail returns 404, and neither the active nor the closed jobs include it. Two checks some minutes apart had the same result. */
  'job.unavailable': {
    account: string;
    region: string;
    job: JobSummary;
    observed: Observed;
    changes: Record<string, never>;
    inferred: true;
    jobStatus: string | null;
  };
  /** A closed, cancelled or unavailable job is in the list of active jobs again. */
  'job.reopened': {
    account: string;
    region: string;
    job: JobSummary;
    observed: Observed;
    changes: Record<string, never>;
    previousOutcome: 'closed' | 'cancelled' | 'unavailable';
  };
  /** A job got an invoice number. */
  'job.invoiced': {
    account: string;
    region: string;
    job: JobSummary;
    observed: Observed;
    changes: {
      invoiceNumber: Change<string | null>;
    };
  };
  /** The first job of an order group was dispatched while other jobs of the group are still open. Emitted once per group, and again only if all dispatches of the group were revoked in between. Not emitted after `order_group.dispatched`. */
  'order_group.partially_dispatched': {
    account: string;
    region: string;
    observed: Observed;
    orderGroup: string;
    /** Job numbers of the dispatched jobs of the group, in ascending order. */
    jobs: number[];
    /** Job numbers of the jobs of the group that are not dispatched yet. */
    openJobs: number[];
    /** Job numbers of the jobs of the group that ended without dispatch: cancelled, unavailable or closed. */
    excludedJobs: number[];
    /** Number of `jobs`. */
    dispatchedCount: number;
    /** Number of `openJobs`. */
    openCount: number;
  };
  /** All jobs of an order group are dispatched. Jobs that ended without a dispatch (cancelled, closed or unavailable) are ignored. Emitted again in two cases: an ignored job is dispatched later, or all jobs are dispatched again after a job was added or a dispatch was revoked. */
  'order_group.dispatched': {
    account: string;
    region: string;
    observed: Observed;
    orderGroup: string;
    /** Job numbers of the dispatched jobs of the group, in ascending order. */
    jobs: number[];
    /** Job numbers of the jobs of the group that ended without dispatch: cancelled, unavailable or closed. */
    excludedJobs: number[];
    /** `true`: the event was already emitted for this group, and the jobs or dispatches of the group changed after that. */
    repeated: boolean;
  };
  /** Jobwire has stored the first complete reading of the list of active jobs. Later changes are emitted as events. */
  'account.baselined': {
    account: string;
    region: string;
    observed?: Partial<Observed>;
    openJobs: number;
  };
  /** Several consecutive polls failed. No changes are observed until a poll succeeds. */
  'account.poll_failing': {
    account: string;
    region: string;
    observed?: Partial<Observed>;
    consecutiveFailures: number;
    reason: string;
  };
  /** A poll succeeded after `account.poll_failing`. */
  'account.poll_recovered': {
    account: string;
    region: string;
    observed?: Partial<Observed>;
    failedPolls: number;
  };
  /** The ordering API rejected the credentials of the account. */
  'account.credentials_rejected': {
    account: string;
    region: string;
    observed?: Partial<Observed>;
    reason: string;
  };
  /** The ordering API accepts the credentials of the account again. */
  'account.credentials_accepted': {
    account: string;
    region: string;
    observed?: Partial<Observed>;
  };
  /** The credentials belong to another account of the ordering API. Polling stops until the operator confirms the other account or replaces the credentials. */
  'account.identity_mismatch': {
    account: string;
    region: string;
    observed?: Partial<Observed>;
    expectedId: number;
    actualId: number;
  };
  /** So many jobs disappeared from the list of active jobs at once that the list may be wrong. The account is in quarantine: `job.cancelled` and `job.unavailable` are not emitted. */
  'account.quarantined': {
    account: string;
    region: string;
    observed?: Partial<Observed>;
    /** Number of jobs in the list of active jobs. */
    openJobs: number;
    /** Number of missing jobs that seem to be cancelled, or to be unavailable (the ordering API returns 404 for the latter). */
    suspected: number;
    /** Number of missing jobs for which the responses of the ordering API contradict each other. */
    contradictory: number;
    /** Number of `job.cancelled` and `job.unavailable` events emitted in the last 24 hours. */
    reported: number;
  };
  /** An identity mismatch or a quarantine ended, either automatically or because the operator confirmed it. */
  'account.resumed': {
    account: string;
    region: string;
    observed?: Partial<Observed>;
    previousState: 'quarantined' | 'identity_mismatch';
    by: 'automatic' | 'operator';
  };
  /** A payment of the account was completed. Emitted only if the account setting `events.payments` is `true`. */
  'account.payment_completed': {
    account: string;
    region: string;
    observed?: Partial<Observed>;
    transaction: {
      id: number;
      gatewayType: string | null;
      /** Status name in the ordering API. */
      transactionStatus: string | null;
      createdAt: string | null;
      completedAt: string | null;
      cardName: string | null;
      /** Asterisks, followed by the last four digits of the card number. */
      cardNumber: string | null;
      currencySettlement: string | null;
      amountSettlement: number | null;
      /** Kind of object that was paid for, such as `JOB` or `CUSTOMER`. */
      merchantEntityType: string | null;
      merchantEntityId: number | null;
    };
  };
  /** A payment of the account failed. Emitted only if the account setting `events.payments` is `true`. */
  'account.payment_failed': {
    account: string;
    region: string;
    observed?: Partial<Observed>;
    transaction: {
      id: number;
      gatewayType: string | null;
      /** Status name in the ordering API. */
      transactionStatus: string | null;
      createdAt: string | null;
      completedAt: string | null;
      cardName: string | null;
      /** Asterisks, followed by the last four digits of the card number. */
      cardNumber: string | null;
      currencySettlement: string | null;
      amountSettlement: number | null;
      /** Kind of object that was paid for, such as `JOB` or `CUSTOMER`. */
      merchantEntityType: string | null;
      merchantEntityId: number | null;
    };
  };
  /** The log of the account was restored from a backup. All events after the cursor in `after` were lost. Changes that still apply are emitted again, with new ids. Receivers must fetch all jobs again. */
  'account.restored': {
    account: string;
    region: string;
    observed?: Partial<Observed>;
    /** Cursor of the last event that was restored. */
    after: string;
  };
  /** A status name was observed for the first time in this account. */
  'status.discovered': {
    account: string;
    region: string;
    observed: Observed;
    status: string;
    /** Previous name of the status, if the ordering API renamed it. */
    previousName?: string;
  };
  /** The ordering API fails for the whole region. Emitted once, instead of `account.poll_failing` for each account. */
  'upstream.outage': {
    region: string;
    /** Time of the first failure. */
    since: string;
    /** Number of failed polls since the first failure. The real number can be higher. */
    failedPolls: number;
    /** Number of affected accounts. The real number can be higher. */
    accounts: number;
    /** Error message of the last failure. */
    reason: string;
  };
  /** The ordering API responds again after `upstream.outage`. */
  'upstream.recovered': {
    region: string;
    /** Time of the first failure. */
    since: string;
    /** Time from the first failure to the first successful response, in seconds. */
    durationSeconds: number;
  };
  /** An endpoint was disabled, because all deliveries failed for days or because it responded with 410. When an operator enables it again, delivery resumes where it stopped. */
  'endpoint.disabled': {
    region: string;
    /** Id of the endpoint, or name of the built-in sink, such as `topic` for the SNS topic. */
    endpoint: string;
    /** Error message. */
    reason: string;
    /** Time of the first failure. `null`: there were no failures. */
    failingSince: string | null;
  };
  /** An endpoint accepts events again after `endpoint.disabled`. */
  'endpoint.recovered': {
    region: string;
    /** Id of the endpoint, or name of the built-in sink, such as `topic` for the SNS topic. */
    endpoint: string;
    /** Timestamp (ISO 8601, UTC). */
    disabledAt: string;
  };
  /** Events expired before they were delivered to an endpoint. Delivery resumes with the oldest event that is still in the log. */
  'endpoint.events_lost': {
    region: string;
    /** Id of the endpoint, or name of the built-in sink, such as `topic` for the SNS topic. */
    endpoint: string;
    /** Id of the account whose log contained the events. */
    account: string;
    /** Sequence number of the first lost event. */
    first: number;
    /** Sequence number of the last lost event. */
    last: number;
  };
  /** An endpoint rejected an event on every attempt. The event is no longer retried. The later events of the job are delivered. */
  'endpoint.event_dead': {
    region: string;
    /** Id of the endpoint, or name of the built-in sink, such as `topic` for the SNS topic. */
    endpoint: string;
    /** Id of the account whose log contains the event. */
    account: string;
    /** Sequence number of the event. */
    sequence: number;
    /** Id of the event. */
    event: string;
    attempts: number;
    /** Error message of the last attempt. */
    reason: string;
  };
  /** A test of an endpoint was requested. Sent to that endpoint only and not recorded in a log. */
  'jobwire.ping': {
    region: string;
    /** Id of the endpoint, or name of the built-in sink, such as `topic` for the SNS topic. */
    endpoint: string;
  };
}
