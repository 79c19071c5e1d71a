/**
 * The telemetry of functions: one wide structured log line per tick, poll, drain, delivery attempt and
 * request, and a few metrics per cell. The metrics are in metrics.ts; ids of accounts and sinks are in the
 * log lines only.
 */
import { Logger } from '@aws-lambda-powertools/logger';
import { injectLambdaContext } from '@aws-lambda-powertools/logger/middleware';
import { Metrics } from '@aws-lambda-powertools/metrics';
import type { Attempt } from '../shared/delivery/delivery-log.ts';
import type { DrainReport } from '../shared/delivery/drain-deps.ts';
import type { SendLine, SendReport } from '../shared/notifications/send-report.ts';
import type { MailFeedback } from '../shared/notifications/ses-feedback.ts';
import type { PollReport } from '../shared/tracking/poll-report.ts';
import { cellName, METRICS, type MetricName, NAMESPACE } from './metrics.ts';

/** The result of one tick. */
interface TickReport {
  /** Whether the whole tick succeeded. */
  readonly whole: boolean;
  /** Number of accounts whose poll was queued. */
  readonly claimed: number;
  /**
   * Number of those polled alone: no poll has reported since their previous claim, or they are very large.
   */
  readonly alone: number;
  /** Number of wake marks that the stream left behind. */
  readonly wakes: number;
  /** Number of sinks with due work that no drain seems to process. */
  readonly drains: number;
  /** Whether an `upstream.outage` is emitted for the region. Absent if unknown. */
  readonly outage?: boolean;
  /** Age of the oldest undelivered event (s); 0 if there is none. Absent if unknown. */
  readonly oldestSeconds?: number;
  /** Id of the sink of that event. */
  readonly oldestSink?: string;
  readonly oldestAccount?: string;
  readonly oldestSequence?: number;
  /** Time for which a notification has been due (s); absent if none is, or without notifications. */
  readonly unsentSeconds?: number;
  readonly ms: number;
}

/** The result of an operator's command. */
interface OperateReport {
  readonly command: string;
  /** Id of the created key. */
  readonly about: string | null;
  readonly outcome: 'done' | 'rejected' | 'unknown' | 'conflict';
}

/** A request to the HTTP API. Contains the route's pattern instead of the requested path, and no address. */
interface RequestReport {
  readonly requestId: string;
  /** For example `GET /v1/accounts/{id}`; `null` if no route matched. */
  readonly route: string | null;
  readonly status: number;
  /** Time to the start of the response. */
  readonly ms: number;
  /** Id of the API key; `null` without a valid one. */
  readonly keyId: string | null;
}

/** The mail feedback of SES. Ids only: no address. */
interface FeedbackReport {
  readonly region?: string;
  readonly account?: string;
  /** The message's id. */
  readonly message?: string;
  readonly what: MailFeedback['what'] | 'ignored';
  readonly detail: string;
}

/** The port by which handlers report. */
export interface Telemetry {
  operate(report: OperateReport): void;
  request(report: RequestReport): void;
  tick(report: TickReport): void;
  /** Reports a poll. `lagMs`: delay of its start after the due time. */
  poll(report: PollReport, late: { readonly lagMs: number }): void;
  drain(report: DrainReport): void;
  /** Reports one send run. */
  notify(report: SendReport, took: { readonly ms: number }): void;
  /** Reports one attempt to send a message, or an error of it. */
  notification(line: SendLine): void;
  mailFeedback(report: FeedbackReport): void;
  /** Reports one attempt to deliver one event. */
  attempt(attempt: Attempt): void;
  /** Reports a fault, with the ids that it concerns. */
  fault(message: string, cause: unknown, ids?: Readonly<Record<string, string | number | null>>): void;
}

/** Creates telemetry by log lines and embedded metrics, with its middlewares. */
export function createTelemetry(service: string, cell: { readonly stage: string; readonly region: string }) {
  const logger = new Logger({ serviceName: service, persistentKeys: { cell: cellName(cell) } });
  const metrics = new Metrics({ namespace: NAMESPACE, serviceName: service });
  onlyCell(metrics);

  function onlyCell(of: Metrics): void {
    // Only the cell: with the function as a second dimension, no metric would cover the cell for an alarm.
    of.clearDefaultDimensions();
    of.setDefaultDimensions({ cell: cellName(cell) });
  }
  function add(name: MetricName, value: number): void {
    metrics.addMetric(name, METRICS[name].unit, value);
  }
  function addIfAny(values: { readonly [K in MetricName]?: number }): void {
    for (const [name, value] of Object.entries(values)) if (value > 0) add(name as MetricName, value);
  }
  function addUpstreamErrors(errors: PollReport['upstreamErrors']): void {
    for (const [kind, value] of Object.entries(errors)) {
      const single = metrics.singleMetric();
      onlyCell(single);
      single.addDimension('kind', kind);
      single.addMetric('UpstreamErrors' satisfies MetricName, METRICS.UpstreamErrors.unit, value);
    }
  }

  const telemetry: Telemetry = {
    operate(report) {
      logger.info('operate', { ...report });
    },
    request(report) {
      const { route, status } = report;
      const failed = status >= 500;
      // Before routing: a 429 of a route concerns streams that wait.
      const unauthorized = status === 401 || (status === 429 && route === null);
      logger[failed ? 'warn' : 'info']('request', { ...report });
      addIfAny({ RequestsFailed: failed ? 1 : 0, KeysRefused: unauthorized ? 1 : 0 });
    },
    tick(report) {
      const { whole, outage, oldestSeconds, unsentSeconds } = report;
      logger[whole ? 'info' : 'warn']('tick', { ...report });
      if (oldestSeconds !== undefined) add('OldestUndelivered', oldestSeconds);
      if (unsentSeconds !== undefined) add('OldestUnsent', unsentSeconds);
      addIfAny({ Ticks: whole ? 1 : 0, UpstreamOutage: outage ? 1 : 0 });
    },
    poll(report, { lagMs }) {
      const { outcome, outage, accountEvents, upstreamErrors } = report;
      const failed = outcome === 'failed';
      logger[failed ? 'warn' : 'info']('poll', { ...report, lagMs });
      if (outcome === 'skipped') return;
      if (!outage) add('PollLag', lagMs);
      if (outcome !== 'fenced' && !(failed && outage)) {
        add('PollsIncomplete', outcome === 'complete' ? 0 : 1);
      }
      addIfAny({
        PollsPartial: outcome === 'partial' ? 1 : 0,
        PollsFailed: failed ? 1 : 0,
        ChangedJobs: report.changedJobs,
        UnresolvedDepartures: report.unresolved ?? 0,
        EventsCommitted: report.events,
        TokenRefusals: (upstreamErrors.unauthorized ?? 0) + (upstreamErrors.credentials_rejected ?? 0),
        CredentialsRejected: accountEvents.includes('account.credentials_rejected') ? 1 : 0,
        IdentityMismatches: accountEvents.includes('account.identity_mismatch') ? 1 : 0,
        AccountsQuarantined: accountEvents.includes('account.quarantined') ? 1 : 0,
      });
      addUpstreamErrors(upstreamErrors);
    },
    drain(report) {
      const trouble = report.outcome === 'waiting' || report.outcome === 'disabled' || report.lost > 0;
      logger[trouble ? 'warn' : 'info']('drain', { ...report });
      addIfAny({
        Deliveries: report.delivered,
        DeliveryFailures: report.failed - report.rejected,
        DeliveryRejections: report.rejected,
        EventsParked: report.parked,
        EventsDead: report.dead,
        EventsLost: report.lost,
        DeliveriesUnlogged: report.unlogged,
        SinksDisabled: report.outcome === 'disabled' ? 1 : 0,
      });
    },
    notify(report, { ms }) {
      const { sent, later, failed, suppressed, unknown, repeats } = report;
      const trouble = later + failed + unknown > 0;
      logger[trouble ? 'warn' : 'info']('notify', { ...report, ms });
      addIfAny({
        MessagesSent: sent,
        MessagesPutOff: later,
        MessagesFailed: failed,
        MessagesSuppressed: suppressed,
        SmsUnknown: unknown,
        MailsRepeated: repeats,
      });
    },
    notification({ message, ...line }) {
      const { outcome } = line;
      const level =
        outcome === 'fault' ? 'error' : outcome === 'failed' || outcome === 'unknown' ? 'warn' : 'info';
      logger[level]('notification', { ...line, ...(message === undefined ? {} : { messageId: message }) });
    },
    mailFeedback({ message, ...report }) {
      const { what } = report;
      logger.info('feedback', { ...report, ...(message === undefined ? {} : { messageId: message }) });
      addIfAny({ MailsBounced: what === 'bounced' ? 1 : 0, MailComplaints: what === 'complained' ? 1 : 0 });
    },
    attempt(attempt) {
      const delivered = attempt.outcome === 'delivered';
      logger[delivered ? 'info' : 'warn']('delivery', { ...attempt });
      if (delivered && (attempt.cause === 'live' || attempt.cause === 'parked'))
        add('DeliveryLag', attempt.lagMs);
    },
    fault(message, cause, ids = {}) {
      logger.error(message, { ...ids, error: cause instanceof Error ? cause : new Error(String(cause)) });
    },
  };

  function publish(): void {
    // An invocation without metrics is normal; the library would warn of it.
    if (metrics.hasStoredMetrics()) metrics.publishStoredMetrics();
  }
  return {
    ...telemetry,
    /** Middleware for a function whose log lines contain the request id. */
    logging: injectLambdaContext(logger),
    /**
     * Middleware for a function with metrics: publishes them after each invocation, also after one that
     * failed.
     */
    counting: { after: publish, onError: publish },
  };
}
