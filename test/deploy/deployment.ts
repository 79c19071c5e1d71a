/**
 * A deployed cell. The scenario uses only this interface, independent of where the cell runs. One implementation runs the
 * synthesized assembly on the embedded servers: see emulated.ts.
 */

import type { AwsCall, CallFate } from './aws-call.ts';
import type { BusEntry } from './event-bus.ts';
import type { Outbox } from './outbox.ts';
import type { Span } from './traces.ts';

/** The functions of a cell, by their names in the design. */
export type FunctionName =
  | 'tick'
  | 'alerts'
  | 'pollAccount'
  | 'wakeSinks'
  | 'drainSink'
  | 'notify'
  | 'mailFeedback'
  | 'api'
  | 'manage'
  | 'live'
  | 'operate';

/** The environment of a deployment outside AWS. */
export interface Surroundings {
  /**
   * Host names that functions reach by https at public addresses, with the URL of a plain HTTP server on loopback for each.
   * `{'us.ordering.example': 'http://127.0.0.1:4010/us'}` maps `https://us.ordering.example/api/x` to
   * `http://127.0.0.1:4010/us/api/x`. Other hosts outside AWS cannot be reached.
   */
  readonly hosts: Readonly<Record<string, string>>;
}

/** A running deployment of one cell. */
export interface Deployment extends AsyncDisposable {
  /** Part of resource names: stage `prod`, and API region `us`. */
  readonly stage: string;
  readonly region: string;
  /** The outputs of the stack by name: TableName, TopicArn, ApiUrl, … */
  readonly outputs: Readonly<Record<string, string>>;
  /** URL of the HTTP API for the test, without a slash at the end: append `/v1/…`. */
  readonly apiUrl: string;
  /** URL of the distribution for the test, without a slash at the end. */
  readonly dashboardUrl: string;
  /** Configuration of the test's own AWS clients, with all permissions. */
  readonly aws: {
    readonly region: string;
    readonly endpoint: string;
    readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string };
  };
  /** Returns the physical id (result of `Ref`) of the resource at a construct path below the stack: `Polling/Polls/Queue`. */
  physicalId(path: string): string;
  /** Messages to customers that SES and SNS accepted. */
  readonly outbox: Outbox;
  /** What a cell with the options `eventBus`, `queues` and `tracing` has sent. Absent: it has none of them. */
  readonly options?: {
    /** Entries that EventBridge accepted, in order. */
    readonly bus: readonly BusEntry[];
    /** Spans that X-Ray accepted, in order. */
    readonly spans: readonly Span[];
    /** Queues of the settings, by ARN: one that is FIFO and one that is not. They do not exist yet. */
    readonly queues: { readonly fifo: string; readonly standard: string };
  };
  /** Invokes a function and returns its response. Throws {@link FunctionError} if it throws, dies or times out. */
  invoke(name: FunctionName, payload: unknown): Promise<unknown>;
  /** Invokes the target of the schedule and waits for it. A failed tick is not an error of this call. */
  tick(): Promise<void>;
  /** Waits, up to a maximum time, until no function runs and no message or stream record is left to process. */
  settled(): Promise<void>;
  /**
   * Advances the time of functions, queues and servers of the test, including `Date.now` of the test. The schedule is not
   * invoked. Waits for {@link settled} first.
   */
  passTime(seconds: number): Promise<void>;
  /**
   * Returns errors that must never occur: requests that AWS would deny, connections to other hosts, invocations that fail
   * without an injected fault. Absent if the deployment cannot detect them.
   */
  complaints?(): readonly string[];
  /** Returns the numbers of invocations, by the ARN of the function or of its alias. Absent if the deployment cannot count them. */
  invocations?(): ReadonlyMap<string, number>;
  /** Registers a secret that no log may contain, besides those in Secrets Manager. */
  confide?(secret: string): void;
  /** Fault injection. Absent if the deployment does not support it. */
  readonly faults?: {
    /** Sets the handler that decides the fate of each AWS call of the function. It replaces the previous one. Default: none. */
    onCall(name: FunctionName, fate: ((call: AwsCall) => CallFate) | undefined): void;
  };
}

/** An invocation failed. */
export class FunctionError extends Error {
  override readonly name = 'FunctionError';
}

/** Deploys the cell in its environment and starts it. */
export type Deploy = (surroundings: Surroundings) => Promise<Deployment>;
