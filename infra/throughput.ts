/** Settings of the functions and queues that determine how much a cell polls and delivers. Loads no CDK: `npm run preflight` starts faster. */

/**
 * Settings of the two poll queues. Ten thousand accounts every two minutes are 83 polls a second of one to
 * two seconds each, mostly waiting for the ordering API. So ten run concurrently in an invocation, which
 * lasts as long as the slowest of them. `test/tracking/load.test.ts` simulates these settings and prints the
 * results.
 */
export const POLLS = {
  /** A crawl of 50,000 jobs, or one whose pages take ten seconds each, and a margin. */
  timeoutSeconds: 120,
  /**
   * A poll waits far more than it computes, and waiting is charged by memory. Ten quiet polls of 10,000 jobs
   * each take 360 MB. Ten larger ones, or large baselines, may need more: then each gets all of it, alone.
   */
  memoryMb: 512,
  batchSize: 10,
  /**
   * A second is short compared with an interval. Without it, a batch contains the messages since the last
   * receive: two polls, at nearly twice the price.
   */
  batchingSeconds: 1,
  /**
   * Lambda may be throttled, which counts as a receive. The second receive comes within the claim; after that, the next tick
   * is the retry.
   */
  maxReceiveCount: 2,
  /**
   * Longer than a claim. A message that waited for its time, was received late and failed must be visible
   * among the dead letters. A message whose claim has expired is discarded when it is received.
   */
  retentionSeconds: 900,
} as const;
/** Few at a time: this queue isolates accounts whose polls may have failed their process. */
export const LONE_POLLS = { ...POLLS, batchSize: 1, batchingSeconds: 0, maxConcurrency: 10 } as const;

/** Settings of drains. `test/delivery/load.test.ts` simulates these and those of wake-ups, and prints the results. */
export const DRAINS = {
  /**
   * Maximum duration of a drain, including the attempts in progress at its end: it keeps its lease for as long
   * as it runs. The rest waits for the next tick, so a backlog is processed for five minutes of at most six.
   */
  timeoutSeconds: 300,
  /**
   * The CPU of a process grows with its memory. A drain of a part of the topic computes all the time, so its
   * rate is proportional to its memory, at the same price per event.
   */
  memoryMb: 768,
  batchSize: 4,
  maxReceiveCount: 3,
  /** A message is only a hint: due work is in the table, and the tick finds it. */
  retentionSeconds: 3600,
} as const;

/** Settings of wake-ups. */
export const WAKES = {
  memoryMb: 1024,
  batchSize: 100,
  /** Marks of a second are one transaction of the cell feed per 49 accounts, and one message per sink. */
  batchingSeconds: 1,
  /** Concurrent batches per shard of the stream. All marks of an account are in the same one. */
  parallelization: 4,
} as const;
