/**
 * A deployed cell as the scenario sees it: whatever the cell runs on, the scenario is written against this alone. One
 * implementation runs the synthesized assembly on the embedded servers, see emulated.ts.
 */

import type { AwsCall, CallFate } from './aws-call.ts';
import type { Outbox } from './outbox.ts';

/** The functions of a cell, by the names that the design gives them. */
export type FunctionName =
  | 'tick'
  | 'pollAccount'
  | 'wakeSinks'
  | 'drainSink'
  | 'notify'
  | 'mailFeedback'
  | 'api'
  | 'manage'
  | 'live'
  | 'operate';

/** What a deployment is put into: the world outside AWS. */
export interface Surroundings {
  /**
   * Host names that functions reach by https at public addresses, and what answers there: the base of a plain HTTP
   * server on loopback. `{'us.ordering.example': 'http://127.0.0.1:4010/us'}` leads `https://us.ordering.example/api/x`
   * to `http://127.0.0.1:4010/us/api/x`. No other host outside AWS can be reached.
   */
  readonly hosts: Readonly<Record<string, string>>;
}

/** A running deployment of one cell. */
export interface Deployment extends AsyncDisposable {
  /** Of names: `prod`, and the API region, `us`. */
  readonly stage: string;
  readonly region: string;
  /** The stack's outputs by their names: TableName, TopicArn, ApiUrl, … */
  readonly outputs: Readonly<Record<string, string>>;
  /** Where the test reaches the HTTP API, without a slash at the end: `/v1/…` is appended. */
  readonly apiUrl: string;
  /** Where the test reaches the distribution, without a slash at the end. */
  readonly dashboardUrl: string;
  /** What the test's own AWS clients are made with; they may do everything. */
  readonly aws: {
    readonly region: string;
    readonly endpoint: string;
    readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string };
  };
  /** The physical id (what `Ref` gives) of the resource at a construct path below the stack: `Polling/Polls/Queue`. */
  physicalId(path: string): string;
  /** What SES and SNS have taken for customers. */
  readonly outbox: Outbox;
  /** Invokes a function and gives its answer. Throws {@link FunctionError} when it throws, dies or runs out of time. */
  invoke(name: FunctionName, payload: unknown): Promise<unknown>;
  /** The schedule comes round: invokes what it targets, and waits for it. A tick that fails is no error of this call. */
  tick(): Promise<void>;
  /** Waits, a bounded time, until nothing is under way: no function at work, no message or stream record to work off. */
  settled(): Promise<void>;
  /**
   * As if so much time went by for functions, queues and the servers of the test (`Date.now` of the test moves on as
   * well). The schedule does not come round by it. Waits before until things have {@link settled}.
   */
  passTime(seconds: number): Promise<void>;
  /**
   * What must never happen, in sentences: requests that AWS would deny, connections to elsewhere, invocations that fail
   * although nothing was made to go wrong. Absent where the deployment can't tell.
   */
  complaints?(): readonly string[];
  /** Names a secret that no log may contain, besides those that are in Secrets Manager. */
  confide?(secret: string): void;
  /** What can go wrong on purpose; absent where the deployment offers no such thing. */
  readonly faults?: {
    /** Asked about each call that the function makes to AWS, until the other one of a function is set, or none. */
    onCall(name: FunctionName, fate: ((call: AwsCall) => CallFate) | undefined): void;
  };
}

/** An invocation did not end well. */
export class FunctionError extends Error {
  override readonly name = 'FunctionError';
}

/** Puts the cell into its surroundings and starts it. */
export type Deploy = (surroundings: Surroundings) => Promise<Deployment>;
