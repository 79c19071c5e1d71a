/**
 * Evaluation of alert rules, once a minute for each region by one process. The state is stored before its message is sent: a process that
 * stops in between sends the message never rather than twice.
 */
import { randomUUID } from 'node:crypto';
import pLimit from 'p-limit';
import type { ConnectionPool } from '../delivery/outbound.ts';
import type { EmailTransport, SendOutcome } from '../notifications/types.ts';
import { type SealedTexts, SecretError } from '../secrets.ts';
import { keys } from '../storage/schema.ts';
import { type Clause, TableError } from '../storage/table.ts';
import { type AlertMessage, toBody, toEmail } from './message.ts';
import { listAlertRules, readTarget, type StoredRule, saveState } from './rules.ts';
import { type AlertReport, advance, clearFailures, recordFailure } from './state.ts';
import { type AlertTables, createValueReader } from './values.ts';

const MINUTE_MS = 60_000;
/** Number of rules evaluated concurrently. */
const AT_ONCE = 4;
const FROM_NAME = 'Jobwire';

/** Dependencies of sending messages. */
export interface AlertSendDeps {
  /** Encrypted targets. */
  readonly targets: Pick<SealedTexts, 'load'>;
  readonly connections: ConnectionPool;
  /** Absent: no mail server is configured. */
  readonly mailer: Pick<EmailTransport, 'domain' | 'send'> | undefined;
  /** Address of the dashboard. `null`: messages contain no link. */
  readonly dashboardUrl: string | null;
}

/** Dependencies of the evaluation. */
export interface AlertDeps extends AlertSendDeps, AlertTables {
  /** Epoch ms. */
  readonly now: () => number;
  /** Called after each message, with the rule and why its target did not accept it. `null`: it did. */
  readonly onMessage?: (rule: Pick<StoredRule, 'region' | 'id'>, problem: string | null) => void;
}

/** Result of an evaluation: numbers of rules and messages. */
export interface AlertSummary {
  readonly rules: number;
  readonly firing: number;
  readonly sent: number;
  readonly failed: number;
  /** Number of rules for which no time was left. */
  readonly skipped: number;
}

/**
 * Evaluates the rules of a region. Returns `undefined` if there are none, or another process has evaluated them in this minute. After
 * the deadline (epoch ms), no evaluation starts: the rules are evaluated a minute later.
 */
export async function evaluateAlerts(
  deps: AlertDeps,
  region: string,
  deadline = Number.POSITIVE_INFINITY,
): Promise<AlertSummary | undefined> {
  const { table, now } = deps;
  const rules = (await listAlertRules(table, region)).filter(({ rule }) => rule.enabled);
  if (rules.length === 0) return undefined;
  const minute = Math.floor(now() / MINUTE_MS);
  const claim = (when: Clause) =>
    table.write({ update: keys.alertRun(region), set: { minute }, when: [when] });
  const { done, item } = await claim(['minute', 'absent or <', minute]);
  const latest = Number(item?.minute ?? minute);
  // A later minute, and not by a clock that is a little ahead: the clock was set back since.
  const isFree = done || (latest > minute + 1 && (await claim(['minute', '=', latest])).done);
  if (!isFree) return undefined;
  const readValue = createValueReader(deps, region, now());
  const summary = { rules: rules.length, firing: 0, sent: 0, failed: 0, skipped: 0 };
  const outcomes = await pLimit(AT_ONCE).map(rules, async (stored) => {
    if (now() >= deadline) return 'skipped';
    try {
      return await evaluate(deps, stored, await readValue(stored.rule));
    } catch (cause) {
      // The other rules do not depend on it.
      return { cause };
    }
  });
  for (const outcome of outcomes) {
    if (outcome === 'skipped') summary.skipped += 1;
    if (outcome === 'skipped' || 'cause' in outcome) continue;
    if (outcome.firing) summary.firing += 1;
    if (outcome.sent === true) summary.sent += 1;
    if (outcome.sent === false) summary.failed += 1;
  }
  for (const outcome of outcomes) {
    if (outcome !== 'skipped' && 'cause' in outcome) throw outcome.cause;
  }
  return summary;
}

/** Evaluates one rule. `sent`: whether its message was accepted; `null` without one. */
async function evaluate(
  deps: AlertDeps,
  stored: StoredRule,
  value: number,
): Promise<{ readonly firing: boolean; readonly sent: boolean | null }> {
  const { table, now } = deps;
  const before = stored.state;
  const { state, report } = advance(stored.rule, before, value, now());
  const firing = state.status === 'firing';
  if (JSON.stringify(state) === JSON.stringify(before)) return { firing, sent: null };
  const stateItem = await saveState(table, stored, state);
  // Another process has evaluated it, and sends.
  if (!stateItem || report === null) return { firing, sent: null };
  const message = toMessage(deps, { ...stored, state }, report);
  const problem = await sendAlert(deps, stored, message).catch(toProblem);
  deps.onMessage?.(stored, problem);
  const after =
    problem === null ? clearFailures(state) : recordFailure(state, before, report, { problem, now: now() });
  await saveState(table, { ...stored, stateItem }, after);
  return { firing, sent: problem === null };
}

/** Returns why a message was not sent whose target could not be read. */
function toProblem(cause: unknown): string {
  if (!(cause instanceof SecretError || cause instanceof TableError)) throw cause;
  return `The target could not be read. ${cause.message}`;
}

/** Returns the message about the state of a rule. */
export function toMessage(
  { dashboardUrl }: Pick<AlertSendDeps, 'dashboardUrl'>,
  { region, id, rule, state }: StoredRule,
  report: AlertReport | 'test',
): AlertMessage {
  return { report, region, id, rule, value: state.value, since: state.since, dashboardUrl };
}

/** Sends a message to the target of a rule. Returns why it was not accepted, or `null`. The reason contains no part of the target. */
export async function sendAlert(
  deps: AlertSendDeps,
  stored: StoredRule,
  message: AlertMessage,
): Promise<string | null> {
  const target = await readTarget(deps.targets, stored);
  if (!target) return 'The target of the rule is missing. Set it again.';
  if (target.kind === 'email') return sendEmails(deps, stored, target.to, message);
  const connections = deps.connections.of(`alerts/${stored.region}/${stored.id}`, 1);
  const body = JSON.stringify(toBody(target.kind, message));
  const exchange = await connections.post(
    target.url,
    { 'content-type': 'application/json', 'user-agent': 'Jobwire' },
    body,
  );
  if (exchange.kind === 'failed') return exchange.reason;
  return exchange.status >= 200 && exchange.status < 300
    ? null
    : `The endpoint responded with status ${exchange.status}.`;
}

async function sendEmails(
  { mailer }: AlertSendDeps,
  { region, id }: StoredRule,
  to: readonly string[],
  message: AlertMessage,
): Promise<string | null> {
  if (!mailer) return 'No mail server is configured.';
  const content = toEmail(message);
  const sendTo = (address: string): Promise<SendOutcome> => {
    const mailId = `alert-${randomUUID()}`;
    return mailer.send({
      ...content,
      ...{ messageId: `${mailId}@${mailer.domain}`, references: [], fromName: FROM_NAME, replyTo: null },
      to: { name: null, address },
      unsubscribeUrl: null,
      tags: { region, account: id, message: mailId },
    });
  };
  // Concurrently, so that the duration does not depend on the number of recipients.
  const outcomes = await Promise.all(to.map(sendTo));
  // One recipient is enough: a repetition would reach the others twice.
  if (outcomes.some(({ kind }) => kind === 'accepted' || kind === 'unknown')) return null;
  const [first] = outcomes;
  return first && 'reason' in first ? first.reason : null;
}
