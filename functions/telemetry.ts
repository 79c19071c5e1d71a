/**
 * The telemetry of functions: one wide structured log line per tick, poll, drain, delivery attempt and
 * request, and a few metrics per cell. The metrics are in shared/metrics.ts; ids of accounts and sinks are in the
 * log lines only.
 */
import { Logger } from '@aws-lambda-powertools/logger';
import { injectLambdaContext } from '@aws-lambda-powertools/logger/middleware';
import { Metrics } from '@aws-lambda-powertools/metrics';
import type { AlertSummary } from '../shared/alerts/evaluate.ts';
import type { AnsweredRequest } from '../shared/api/app.ts';
import type { Attempt } from '../shared/delivery/delivery-log.ts';
import type { DrainReport } from '../shared/delivery/drain-deps.ts';
import {
  cellName,
  METRICS,
  type MetricName,
  measureAlerts,
  measureAttempt,
  measureDrain,
  measurePoll,
  measureRequest,
  measureSend,
  NAMESPACE,
  omitZeros,
  type Values,
} from '../shared/metrics.ts';
import type { SendLine, SendReport } from '../shared/notifications/send-report.ts';
import type { MailFeedback } from '../shared/notifications/ses-feedback.ts';
import type { PollReport } from '../shared/tracking/poll-report.ts';

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
interface RequestReport extends AnsweredRequest {
  readonly status: number;
  /** Time to the start of the response. */
  readonly ms: number;
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
  /** Reports one evaluation of the alert rules. */
  alerts(report: AlertSummary, took: { readonly ms: number }): void;
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
export function createTelemetry(
  service: string,
  env: { readonly JOBWIRE_STAGE: string; readonly JOBWIRE_CELL: string },
) {
  const cell = cellName({ stage: env.JOBWIRE_STAGE, cell: env.JOBWIRE_CELL });
  const logger = new Logger({ serviceName: service, persistentKeys: { cell } });
  const metrics = new Metrics({ namespace: NAMESPACE, serviceName: service });
  onlyCell(metrics);

  function onlyCell(of: Metrics): void {
    // Only the cell: with the function as a second dimension, no metric would cover the cell for an alarm.
    of.clearDefaultDimensions();
    of.setDefaultDimensions({ cell });
  }
  /** Adds those values that are metrics in CloudWatch. */
  function add(values: Values): void {
    for (const [name, value] of Object.entries(values)) {
      if (name in METRICS) metrics.addMetric(name, METRICS[name as MetricName].unit, value);
    }
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
      logger[report.status >= 500 ? 'warn' : 'info']('request', { ...report });
      add(measureRequest(report));
    },
    tick(report) {
      const { whole, outage, oldestSeconds, unsentSeconds } = report;
      logger[whole ? 'info' : 'warn']('tick', { ...report });
      add({
        ...(oldestSeconds === undefined ? {} : { OldestUndelivered: oldestSeconds }),
        ...(unsentSeconds === undefined ? {} : { OldestUnsent: unsentSeconds }),
        ...omitZeros({ Ticks: whole ? 1 : 0, UpstreamOutage: outage ? 1 : 0 }),
      });
    },
    poll(report, { lagMs }) {
      logger[report.outcome === 'failed' ? 'warn' : 'info']('poll', { ...report, lagMs });
      add(measurePoll(report, { lagMs }));
      addUpstreamErrors(report.upstreamErrors);
    },
    drain(report) {
      const trouble = report.outcome === 'waiting' || report.outcome === 'disabled' || report.lost > 0;
      logger[trouble ? 'warn' : 'info']('drain', { ...report });
      add(measureDrain(report));
    },
    alerts(report, { ms }) {
      logger[report.failed + report.skipped > 0 ? 'warn' : 'info']('alerts', { ...report, ms });
      add(measureAlerts(report));
    },
    notify(report, { ms }) {
      const trouble = report.later + report.failed + report.unknown > 0;
      logger[trouble ? 'warn' : 'info']('notify', { ...report, ms });
      add(measureSend(report));
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
      add(
        omitZeros({
          MailsBounced: what === 'bounced' ? 1 : 0,
          MailComplaints: what === 'complained' ? 1 : 0,
        }),
      );
    },
    attempt(attempt) {
      logger[attempt.outcome === 'delivered' ? 'info' : 'warn']('delivery', { ...attempt });
      add(measureAttempt(attempt));
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
     * Middleware for a function with metrics: publishes them after each invocation, even after one that
     * failed.
     */
    counting: { after: publish, onError: publish },
  };
}
