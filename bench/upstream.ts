/** A child process: a sandbox of the ordering API with one account, changed by messages from the benchmark. */
import { startSandbox } from '../sandbox/server.ts';
import { createWorld } from '../sandbox/world/world.ts';

/** First message of the upstream. */
export interface UpstreamFacts {
  readonly apiUrl: string;
  readonly authUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
}
/** A command. Answered by the same message when it is complete. */
type UpstreamRequest =
  /** Number of jobs whose status to change. */
  | { readonly change: number }
  /** Latency of all responses from now on. */
  | { readonly answerMs: number }
  /** Revokes all tokens. */
  | { readonly revokeTokens: true };

const jobs = Number(process.argv[2]);
const world = createWorld({ now: Date.now });
const account = world.addAccount({ region: 'us', name: 'bench' });
const [first, second] = world.statuses('us').map(({ name }) => name);
if (!first || !second) throw new Error('The sandbox has fewer than two statuses.');
const numbers = Array.from({ length: jobs }, (_, at) =>
  account.createJob({
    status: first,
    orderNumber: `PO-${at}`,
    description: `Order ${at} of the spring collection`,
  }),
);
const sandbox = await startSandbox({ world });
let turn = 0;

process.on('message', (request: UpstreamRequest) => {
  if ('change' in request) change(request.change, [first, second]);
  else if ('revokeTokens' in request) sandbox.revokeTokens();
  else {
    sandbox.faults.clear();
    if (request.answerMs > 0) sandbox.faults.add({ fault: { kind: 'delay', delayMs: request.answerMs } });
  }
  process.send?.(request);
});
process.on('disconnect', () => process.exit(0));
process.send?.({
  apiUrl: sandbox.apiUrl('us'),
  authUrl: sandbox.authUrl('us'),
  clientId: account.clientId,
  clientSecret: account.clientSecret,
} satisfies UpstreamFacts);

function change(count: number, [first, second]: readonly [string, string]): void {
  for (let at = 0; at < count; at += 1) {
    // A prime step visits every job once, spread over the list.
    turn += 97;
    const jobNumber = numbers[turn % numbers.length] ?? 0;
    account.setStatus(jobNumber, account.job(jobNumber)?.masterJobStatus === first ? second : first);
  }
}
