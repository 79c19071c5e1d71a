/**
 * What functions tell the outside: one wide structured log line per tick, poll, drain, delivery attempt and request, and a few
 * metrics per cell. The metrics stand in metrics.ts; ids of accounts and sinks stand in the log lines only.
 */
import { Logger } from '@aws-lambda-powertools/logger';
import { injectLambdaContext } from '@aws-lambda-powertools/logger/middleware';
import { Metrics } from '@aws-lambda-powertools/metrics';
import type { SendLine, SendReport } from '../shared/notifications/sender.ts';
import type { MailFeedback } from '../shared/notifications/ses-feedback.ts';
import type { Attempt } from '../shared/sinks/delivery-log.ts';
import type { DrainReport } from '../shared/sinks/drain.ts';
import type { PollReport } from '../shared/tracking/poll.ts';
import { cellName, METRICS, type MetricName, NAMESPACE } from './metrics.ts';

/** What one tick did. */
interface TickReport {
  /** Everything there was to do was done: nothing of the tick failed. */
  readonly whole: boolean;
  /** Accounts whose poll was handed on. */
  readonly claimed: number;
  /** Those among them that are polled alone: no poll has reported since they were claimed before, or they are very large. */
  readonly alone: number;
  /** Wake marks that the stream had left behind. */
  readonly wakes: number;
  /** Sinks with something to deliver that nobody seems to be at. */
  readonly drains: number;
  /** An outage of the whole region is announced. Absent when it could not be found out. */
  readonly outage?: boolean;
  /** How long ago the event was observed that has waited longest for its sink; 0 when none does. Absent as above. */
  readonly oldestSeconds?: number;
  /** Which event that is. */
  readonly oldestSink?: string;
  readonly oldestAccount?: string;
  readonly oldestSequence?: number;
  /** How long something to tell customers has been due; absent when nothing is, or nobody is told anything. */
  readonly unsentSeconds?: number;
  readonly ms: number;
}

/** What an operator did. Ids only: what was said besides may hold secrets. */
interface OperateReport {
  readonly command: string;
  /** The account or endpoint it was about. */
  readonly about: string | null;
  readonly outcome: 'done' | 'refused' | 'unknown' | 'conflict';
}

/** A request to the HTTP API. The pattern of its route, so nothing that was asked for; no address. */
interface RequestReport {
  readonly requestId: string;
  /** `GET /v1/accounts/{id}`; null where no route answered. */
  readonly route: string | null;
  readonly status: number;
  /** Until the answer began. */
  readonly ms: number;
  /** Who asked; null without a good key. */
  readonly keyId: string | null;
}

/** What SES said of a mail. Ids only: no address. */
interface FeedbackReport {
  readonly region?: string;
  readonly account?: string;
  /** The message's id. */
  readonly message?: string;
  readonly what: MailFeedback['what'] | 'ignored';
  readonly detail: string;
}

/** How handlers report. */
export interface Telemetry {
  operate(report: OperateReport): void;
  request(report: RequestReport): void;
  tick(report: TickReport): void;
  /** `lagMs`: how long after it was due the poll began. */
  poll(report: PollReport, late: { readonly lagMs: number }): void;
  drain(report: DrainReport): void;
  /** What was told to customers in one go. */
  notify(report: SendReport, took: { readonly ms: number }): void;
  /** One attempt to tell somebody, or something that went wrong with it. */
  told(line: SendLine): void;
  mailFeedback(report: FeedbackReport): void;
  /** One attempt to deliver one event. */
  attempt(attempt: Attempt): void;
  /** Something that should not have happened, with the ids of what it happened to. */
  fault(message: string, cause: unknown, ids?: Readonly<Record<string, string | number | null>>): void;
}

/** Telemetry by log line and embedded metrics, and the middlewares that go with it. */
export function createTelemetry(service: string, cell: { readonly stage: string; readonly region: string }) {
  const logger = new Logger({ serviceName: service, persistentKeys: { cell: cellName(cell) } });
  const metrics = new Metrics({ namespace: NAMESPACE, serviceName: service });
  onlyCell(metrics);

  function onlyCell(of: Metrics): void {
    // The cell alone: with the function as a second dimension there would be no figure for the cell to alarm on.
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
      // Before any route: one that is answered 429 is about streams that wait.
      const refused = status === 401 || (status === 429 && route === null);
      logger[failed ? 'warn' : 'info']('request', { ...report });
      addIfAny({ RequestsFailed: failed ? 1 : 0, KeysRefused: refused ? 1 : 0 });
    },
    tick(report) {
      const { whole, outage, oldestSeconds, unsentSeconds } = report;
      logger[whole ? 'info' : 'warn']('tick', { ...report });
      if (oldestSeconds !== undefined) add('OldestUndelivered', oldestSeconds);
      if (unsentSeconds !== undefined) add('OldestUnsent', unsentSeconds);
      addIfAny({ Ticks: whole ? 1 : 0, UpstreamOutage: outage ? 1 : 0 });
    },
    poll(report, { lagMs }) {
      const { outcome, outage, announced, upstreamErrors } = report;
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
        CredentialsRejected: announced.includes('account.credentials_rejected') ? 1 : 0,
        IdentityMismatches: announced.includes('account.identity_mismatch') ? 1 : 0,
        AccountsQuarantined: announced.includes('account.quarantined') ? 1 : 0,
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
    told({ message, ...line }) {
      const { outcome } = line;
      const level =
        outcome === 'fault' ? 'error' : outcome === 'failed' || outcome === 'unknown' ? 'warn' : 'info';
      logger[level]('told', { ...line, ...(message === undefined ? {} : { messageId: message }) });
    },
    mailFeedback({ message, ...report }) {
      const { what } = report;
      logger.info('feedback', { ...report, ...(message === undefined ? {} : { messageId: message }) });
      addIfAny({ MailsBounced: what === 'bounced' ? 1 : 0, MailComplaints: what === 'complained' ? 1 : 0 });
    },
    attempt(attempt) {
      const taken = attempt.outcome === 'delivered';
      logger[taken ? 'info' : 'warn']('delivery', { ...attempt });
      if (taken && (attempt.cause === 'live' || attempt.cause === 'parked'))
        add('DeliveryLag', attempt.lagMs);
    },
    fault(message, cause, ids = {}) {
      logger.error(message, { ...ids, error: cause instanceof Error ? cause : new Error(String(cause)) });
    },
  };

  function publish(): void {
    // An invocation with nothing to count is in order; the library would warn of it.
    if (metrics.hasStoredMetrics()) metrics.publishStoredMetrics();
  }
  return {
    ...telemetry,
    /** For a function whose log lines carry the request's id. */
    logging: injectLambdaContext(logger),
    /** For a function that counts: writes the metrics out after each invocation, also after one that failed. */
    counting: { after: publish, onError: publish },
  };
}
