/** The scenario on the synthesized assembly, without AWS, plus checks that only an emulation allows. */
import './clock.ts';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import { deployEmulated, type Emulated } from './emulated.ts';
import { scenario } from './scenario.ts';

/** The stage with the options of cells.json: queues, an event bus, traces and gradual deployments. */
const STACK = 'jobwire-options-us';
const ASSEMBLY = fileURLToPath(new URL('../../cdk.out', import.meta.url));

/** Granted permissions that the scenario does not use, with the reason. */
const UNUSED: readonly (readonly [RegExp, string, 'now and then'?])[] = [
  [
    /: sqs:(ChangeMessageVisibility|GetQueueUrl|GetQueueAttributes) on /,
    'The construct library grants these with an event source or a destination. Lambda may use them.',
  ],
  [
    /^Delivery\/WakeSinks: dynamodb:GetItem on WAKE#/,
    'A mark or cursor that changes at that moment is read again.',
    'now and then',
  ],
  [
    /^Dashboard\/Publish: s3:DeleteObject on /,
    'Deletes files of earlier builds, and all files when the stack is deleted. See test/infra/dashboard.test.ts.',
  ],
  [
    /^Operate\/Function: dynamodb:(?!(Query|PutItem) on APIKEYS)/,
    'Logs are renewed only after a restore, and a key is read only if its id exists. See test/infra/infra.integration.test.ts.',
  ],
  [
    /^Alerts\/Function: dynamodb:GetItem on ALERTSTATES#/,
    'A second evaluation in the same minute reads the item whose condition does not hold.',
    'now and then',
  ],
  // These are used in test/infra/infra.integration.test.ts.
  [/^Polling\/Tick: dynamodb:DeleteItem on SEARCH#/, 'Entries of data of an earlier version.'],
  // These are used in test/notifications/cell.test.ts.
  [
    /^Delivery\/DrainSink: dynamodb:(PutItem|BatchWriteItem) on SENT/,
    'Stores an event that cannot be processed for review. Here, all events can be processed.',
  ],
  [
    /^Notifications\/Notify: dynamodb:ConditionCheckItem on ACCOUNTS#/,
    'A permanently rejected address gets no more messages. Here, every address is accepted.',
  ],
  [
    /^Notifications\/MailFeedback: dynamodb:(GetItem|UpdateItem) on SENT#/,
    'Feedback about a message whose record has expired, after two weeks.',
  ],
  [
    /^Polling\/PollAccount: dynamodb:DeleteItem on RECIPIENTSOF#/,
    'An API user who opted out of messages. This is checked every six hours.',
  ],
];
const SHOWN_LINES = 40;
let cell: Emulated;

scenario(
  'a cell on the embedded servers',
  async (surroundings) => {
    cell = await deployEmulated(ASSEMBLY, STACK, surroundings);
    return cell;
  },
  { faults: true, options: true },
);

afterEach(({ task }) => {
  // The last output of the functions, to find the cause of a failure.
  if (task.result?.state === 'fail') console.error(cell?.lines().slice(-SHOWN_LINES).join('\n'));
});

describe('after the scenario', () => {
  test('no denied request was sent to AWS, no connection left the routes, and no log contains a secret', () => {
    expect(cell.complaints?.()).toEqual([]);
    expect(cell.leaks()).toEqual([]);
    // Nor the addresses and telephone numbers of recipients.
    expect(cell.lines().filter((line) => /customer\.example|2025550123/.test(line))).toEqual([]);
  });

  test('functions with an alias were invoked by it only', () => {
    const counts = [...cell.invocations()];
    const live = counts.filter(([arn]) => arn.endsWith(':live'));
    expect(live).toHaveLength(5);
    expect(live.filter(([, count]) => count === 0)).toEqual([]);
    const latest = live.map(([arn]) => arn.replace(/:live$/, ''));
    expect(counts.filter(([arn, count]) => latest.includes(arn) && count > 0)).toEqual([]);
  });

  test('every granted permission was used', () => {
    const unused = cell.unused();
    const explained = UNUSED.map(([pattern]) => pattern);
    expect(unused.filter((grant) => !explained.some((pattern) => pattern.test(grant)))).toEqual([]);
    // A reason without a permission must be removed.
    const steady = UNUSED.filter(([, , seldom]) => seldom === undefined).map(([pattern]) => pattern);
    expect(steady.filter((pattern) => !unused.some((grant) => pattern.test(grant)))).toEqual([]);
  });
});
