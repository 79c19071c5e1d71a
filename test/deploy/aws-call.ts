/** A call of a function to AWS, such as `dynamodb` and `TransactWriteItems`. */
export interface AwsCall {
  readonly service: string;
  readonly operation: string;
  /** Body of the request. */
  readonly text: string;
}

/** Fate of a call. `fail`: AWS responds with an error of its own. `kill …`: the process of the function is killed. */
export type CallFate = 'pass' | 'fail' | 'kill before' | 'kill after';
