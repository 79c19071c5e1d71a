/**
 * Lines on stderr about failing writes, polls, deliveries and messages: one when a failure begins, and one when it ends. An endpoint that fails
 * again and again after some deliveries gets one more.
 */
import type { Attempt } from '../shared/delivery/delivery-log.ts';
import type { DrainReport } from '../shared/delivery/drain-deps.ts';
import { maskAddress } from '../shared/notifications/masking.ts';
import type { SendOutcome } from '../shared/notifications/types.ts';
import type { PollReport } from '../shared/tracking/poll-report.ts';
import { count, formatTime, sanitizeText } from './terminal.ts';

/** Maximum length of a cause. */
const MAX_CAUSE = 600;

/** The state of an endpoint, as far as a line was printed about it. */
type EndpointState = 'failing' | 'unsteady' | 'rejecting' | 'disabled';

/** Prints failures. A cause never contains a secret, and e-mail addresses in it are masked. */
export function createFailureLines(print: (line: string) => void): {
  /** `fault`: why a write to the tables failed. `undefined`: it succeeded. */
  onWrite(fault: string | undefined): void;
  onPoll(report: Pick<PollReport, 'region' | 'account' | 'outcome' | 'state' | 'problem'>): void;
  onAttempt(attempt: Pick<Attempt, 'region' | 'sink' | 'outcome' | 'reason' | 'cause'>): void;
  onDrain(
    report: Pick<
      DrainReport,
      'region' | 'sink' | 'outcome' | 'delivered' | 'failed' | 'waitUntil' | 'problem'
    >,
  ): void;
  /** `problem`: why the check at the start expects that no e-mail can be sent. Ignored once an e-mail was sent. */
  onMailCheck(problem: string): void;
  onMail(outcome: SendOutcome): void;
  /** As {@link onMailCheck}. */
  onSmsCheck(problem: string): void;
  onSms(outcome: SendOutcome): void;
  /** `problem`: why the target of an alert rule did not accept a message. `null`: it did. */
  onAlert(rule: { readonly region: string; readonly id: string }, problem: string | null): void;
} {
  let writesFail = false;
  const accounts = new Set<string>();
  const endpoints = new Map<string, EndpointState>();
  /** Reason for the last failed attempt by endpoint, until its drain ends. */
  const reasons = new Map<string, string>();
  const alertRules = new Set<string>();
  const mail = createChannelLines(print, 'e-mails', 'the mail server accepts them');
  const sms = createChannelLines(print, 'SMS', 'Amazon SNS accepts them');

  return {
    onWrite(fault) {
      if (writesFail === (fault !== undefined)) return;
      writesFail = fault !== undefined;
      print(
        writesFail
          ? `Writes to the tables fail: ${formatCause(fault)} Polls and deliveries wait.`
          : 'Writes to the tables succeed again.',
      );
    },

    onPoll({ region, account, outcome, state, problem }) {
      const name = `${region}/${account}`;
      // A partial poll leaves the account in this state if the list could not be read for several polls.
      const fails = outcome === 'failed' || (outcome === 'partial' && state === 'failing');
      if (fails && !accounts.has(name)) {
        accounts.add(name);
        print(`Polls of the account ${sanitizeText(name)} fail: ${formatCause(problem)}`);
      }
      if (outcome === 'complete' && accounts.delete(name)) {
        print(`Polls of the account ${sanitizeText(name)} succeed again.`);
      }
    },

    onAttempt({ region, sink, outcome, reason, cause }) {
      // Events that a replay sends are not parked.
      if (outcome === 'delivered' || cause === 'ping' || cause === 'resend' || cause === 'replay') return;
      reasons.set(`${region}/${sink}`, reason ?? '');
    },

    onDrain({ region, sink, outcome, delivered, failed, waitUntil, problem }) {
      const name = `${region}/${sink}`;
      const before = endpoints.get(name);
      const reason = reasons.get(name);
      if (outcome !== 'busy') reasons.delete(name);
      const enter = (state: EndpointState, line: string): void => {
        if (before === state) return;
        endpoints.set(name, state);
        print(line);
      };
      const endpoint = `the endpoint ${sanitizeText(name)}`;
      if (outcome === 'disabled') {
        enter('disabled', `Deliveries to ${endpoint} are disabled: ${formatCause(problem)}`);
      } else if (outcome === 'waiting') {
        const next = waitUntil === undefined ? '' : ` The next attempt is at ${formatTime(waitUntil)}.`;
        const cause = `${formatCause(problem)}${next}`;
        if (before === 'failing' && delivered > 0) {
          // This drain delivered events before it failed. One line, because this can go on for days.
          const events = count(delivered, 'delivered event');
          enter('unsteady', `Deliveries to ${endpoint} fail again after ${events}: ${cause}`);
        } else if (before !== 'unsteady') enter('failing', `Deliveries to ${endpoint} fail: ${cause}`);
      } else if (failed > 0 && reason !== undefined && outcome !== 'busy') {
        // The endpoint itself does not fail, so the failed events are parked.
        enter(
          'rejecting',
          `${capitalize(endpoint)} rejects events, which are parked: ${formatCause(reason)}`,
        );
      } else if (delivered > 0 && endpoints.delete(name)) {
        print(`Deliveries to ${endpoint} succeed again.`);
      }
    },

    onMailCheck: mail.onCheck,
    onMail: mail.onOutcome,
    onSmsCheck: sms.onCheck,
    onSms: sms.onOutcome,

    onAlert({ region, id }, problem) {
      const name = `${region}/${id}`;
      if (problem !== null && !alertRules.has(name)) {
        alertRules.add(name);
        print(`Messages of the alert rule ${sanitizeText(name)} can’t be sent: ${formatCause(problem)}`);
      }
      if (problem === null && alertRules.delete(name)) {
        print(`Messages of the alert rule ${sanitizeText(name)} are sent again.`);
      }
    },
  };
}

/** Prints failures of a channel. `messages`: what it sends. `until`: when they are sent. */
function createChannelLines(
  print: (line: string) => void,
  messages: string,
  until: string,
): { onCheck(problem: string): void; onOutcome(outcome: SendOutcome): void } {
  /** `undefined`: no message was sent yet. */
  let fails: boolean | undefined;

  function noteFailure(problem: string): void {
    if (fails) return;
    fails = true;
    print(
      `Warning: ${messages} can’t be sent. ${formatCause(problem)} ${capitalize(messages)} wait until ${until}.`,
    );
  }

  return {
    onCheck(problem) {
      // The outcome of a message is newer than the check.
      if (fails === undefined) noteFailure(problem);
    },
    onOutcome(outcome) {
      // An outcome that concerns one message proves neither state.
      if (outcome.kind === 'later' && outcome.everything) noteFailure(outcome.reason);
      if (outcome.kind === 'accepted') {
        if (fails) print(`${capitalize(messages)} are sent again.`);
        fails = false;
      }
    },
  };
}

/** Returns a cause as one line that ends with a period. */
function formatCause(cause: string | undefined): string {
  const masked = (cause || 'No cause is known.').replace(/[^\s<>"'(),;:]+@[^\s<>"'(),;:]+/g, maskAddress);
  return sanitizeText(masked, MAX_CAUSE).replace(/[^.…!?]$/, '$&.');
}

const capitalize = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
