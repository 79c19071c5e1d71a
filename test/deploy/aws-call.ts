/** A call of a function to AWS, such as `dynamodb` and `TransactWriteItems`. */
export interface AwsCall {
  readonly service: string;
  readonly operation: string;
  /** The body of the request. */
  readonly text: string;
}

/** What becomes of a call. `fail`: AWS answers with its own fault. The kills end the function's process. */
export type CallFate = 'pass' | 'fail' | 'kill before' | 'kill after';
