/** Output of delivery attempts, for the commands that list or make them. */
import type { AttemptReport, Delivery } from '../client/index.ts';
import { sanitizeText } from '../local/terminal.ts';
import type { Context } from './command.ts';
import { type Column, count, type Output, sanitizeLine } from './output.ts';

/** Returns the columns of delivery attempts. */
export function deliveryColumns({ out }: Context): Column<Delivery>[] {
  return [
    { name: 'TIME', value: ({ at }) => out.formatTimeCell(at) },
    { name: 'ENDPOINT', value: ({ endpoint }) => endpoint },
    { name: 'EVENT', value: ({ event }) => event, long: true },
    { name: 'TYPE', value: ({ type }) => type },
    { name: 'CAUSE', value: ({ cause }) => cause },
    {
      name: 'OUTCOME',
      value: ({ outcome }) => outcome,
      style: ({ outcome }) => (outcome === 'delivered' ? 'green' : 'red'),
    },
    { name: 'HTTP', value: ({ status }) => status, right: true },
    { name: 'MS', value: ({ latencyMs }) => latencyMs, right: true },
    { name: 'REASON', value: ({ reason }) => reason, long: true },
  ];
}

/** Maximum number of problems below a table, and maximum length of the beginning of a response body. */
const MAX_PROBLEMS = 5;
const MAX_EXCERPT = 300;

/** Prints the latest problems of failed attempts in full, each once, with the beginning of the response body. */
export function printProblems(out: Output, attempts: readonly Delivery[]): void {
  const counts = new Map<string, number>();
  for (const { reason, excerpt } of attempts) {
    const problem = JSON.stringify([reason, excerpt]);
    counts.set(problem, (counts.get(problem) ?? 0) + 1);
  }
  for (const [problem, times] of [...counts].slice(0, MAX_PROBLEMS)) {
    const [reason, excerpt] = JSON.parse(problem) as [string | null, string | null];
    out.line();
    out.hang(`${count(times, 'attempt')}: `, sanitizeLine(reason));
    if (excerpt) out.hang('Response: ', sanitizeText(excerpt, MAX_EXCERPT));
  }
  const more = counts.size - MAX_PROBLEMS;
  if (more > 0) out.note(`${count(more, 'further problem')}. To show all, use --json.`);
}

/** Prints the response to a single request. Returns the exit code. */
export function printAttempt(out: Output, report: AttemptReport): number | undefined {
  const delivered = report.outcome === 'delivered';
  out.document(report, () => {
    // A queue responds without an HTTP status.
    const response = report.status === null ? '' : `: HTTP ${report.status}`;
    out.line(
      `${delivered ? out.paint('green', 'Delivered') : out.paint('red', 'Failed')}${response} after ${report.latencyMs} ms.${delivered ? '' : ` ${sanitizeLine(report.message)}`}`,
    );
  });
  return delivered ? undefined : 1;
}
