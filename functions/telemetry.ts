/**
 * What functions tell the outside: one wide structured log line per poll and per drain, and a few metrics per cell.
 * Metrics cost by the number of their dimensions' values, so accounts and sinks stand in the log lines only.
 */
import { Logger } from '@aws-lambda-powertools/logger';
import { injectLambdaContext } from '@aws-lambda-powertools/logger/middleware';
import { Metrics, MetricUnit } from '@aws-lambda-powertools/metrics';
import { logMetrics } from '@aws-lambda-powertools/metrics/middleware';
import type { DrainReport } from '../shared/sinks/drain.ts';
import type { PollReport } from '../shared/tracking/poll.ts';

/** What one tick did. */
interface TickReport {
  /** Accounts whose poll was handed on. */
  readonly claimed: number;
  /** Those among them that are polled alone, for no poll has reported since they were claimed before. */
  readonly alone: number;
  /** Wake marks that the stream had left behind. */
  readonly wakes: number;
  /** Sinks with something to deliver that nobody seems to be at. */
  readonly drains: number;
  readonly ms: number;
}

/** What an operator did. Ids only: what was said besides may hold secrets. */
interface OperateReport {
  readonly command: string;
  /** The account or endpoint it was about. */
  readonly about: string | null;
  readonly outcome: 'done' | 'refused' | 'unknown' | 'conflict';
}

/** How handlers report. */
export interface Telemetry {
  operate(report: OperateReport): void;
  tick(report: TickReport): void;
  /** `lagMs`: how long after it was due the poll began. */
  poll(report: PollReport, late: { readonly lagMs: number }): void;
  drain(report: DrainReport): void;
  /** Something that should not have happened, with the ids of what it happened to. */
  fault(message: string, cause: unknown, ids?: Readonly<Record<string, string | number>>): void;
}

/** Namespace of the metrics. */
const NAMESPACE = 'Jobwire';

/** Telemetry by log line and embedded metrics, and the middlewares that go with it. */
export function createTelemetry(service: string, cell: { readonly stage: string; readonly region: string }) {
  const name = `${cell.stage}-${cell.region}`;
  const logger = new Logger({ serviceName: service, persistentKeys: { cell: name } });
  const metrics = new Metrics({ namespace: NAMESPACE, serviceName: service });
  // The cell alone: with the function as a second dimension there would be no figure for the cell to alarm on.
  metrics.clearDefaultDimensions();
  metrics.setDefaultDimensions({ cell: name });
  const count = (metric: string, value: number) => metrics.addMetric(metric, MetricUnit.Count, value);

  const telemetry: Telemetry = {
    operate(report) {
      logger.info('operate', { ...report });
    },
    tick(report) {
      logger.info('tick', { ...report });
      count('Ticks', 1);
      count('PollsQueued', report.claimed);
    },
    poll(report, { lagMs }) {
      logger[report.outcome === 'failed' ? 'warn' : 'info']('poll', { ...report, lagMs });
      count(POLL_METRICS[report.outcome], 1);
      count('EventsCommitted', report.events);
    },
    drain(report) {
      const trouble = report.outcome === 'waiting' || report.outcome === 'disabled' || report.lost > 0;
      logger[trouble ? 'warn' : 'info']('drain', { ...report });
      count('Deliveries', report.delivered);
      count('DeliveryFailures', report.failed);
      // What is rare is counted when it happens: a metric costs by the hours in which it says anything.
      const rare = {
        EventsParked: report.parked,
        EventsDead: report.dead,
        EventsLost: report.lost,
        DeliveriesUnlogged: report.unlogged,
        SinksDisabled: report.outcome === 'disabled' ? 1 : 0,
      };
      for (const [metric, value] of Object.entries(rare)) if (value > 0) count(metric, value);
    },
    fault(message, cause, ids = {}) {
      logger.error(message, { ...ids, error: cause instanceof Error ? cause : new Error(String(cause)) });
    },
  };
  return {
    ...telemetry,
    /** For a function whose log lines carry the request's id. */
    logging: injectLambdaContext(logger),
    /** For a function that counts: writes the metrics out after each invocation. */
    counting: logMetrics(metrics),
  };
}

const POLL_METRICS = {
  complete: 'PollsComplete',
  partial: 'PollsPartial',
  failed: 'PollsFailed',
  fenced: 'PollsFenced',
  skipped: 'PollsSkipped',
} as const satisfies Record<PollReport['outcome'], string>;
