/** What differs from stage to stage and from cell to cell, written out. Checked before anything is synthesized. */
import { RetentionDays } from 'aws-cdk-lib/aws-logs';
import * as z from 'zod';
import { MAX_SLOTS_PER_KEY } from '../shared/api/slots.ts';

/** The API regions of the ordering service; there can be one cell for each. */
const ApiRegion = z.enum(['us', 'nz', 'au', 'uk', 'eu']);

const CellSettings = z.strictObject({
  /** Where the cell stands, and with it all its data. */
  awsRegion: z.enum(['us-east-1', 'ap-southeast-2', 'eu-west-2', 'eu-central-1']),
  /** The ordering service in this API region. */
  upstream: z.strictObject({
    baseUrl: z.url({ protocol: /^https$/ }),
    authUrl: z.url({ protocol: /^https$/ }),
    realm: z.string().min(1),
  }),
  /** Where the cell's HTTP API is reached; events name their schema under it. */
  publicUrl: z.url({ protocol: /^https$/ }),
  /** Whether there is a second topic, for subscribers that a FIFO topic can't have: e-mail, SMS, Lambda, HTTP. */
  standardTopic: z.boolean().default(false),
});

const StageSettings = z.strictObject({
  /** Part of names: of stacks, secrets and the topic. */
  stage: z.string().regex(/^[a-z][a-z0-9]{1,15}$/),
  /** Guards table and stack against deletion. */
  protected: z.boolean(),
  /** How long events stay in the logs of accounts. */
  eventRetentionDays: z.int().min(7).max(365),
  /**
   * How long the FIFO topic keeps messages for subscribers that come late; null: not at all. A topic that keeps any can't
   * be deleted, nor can the stack, before the archive is given up by hand.
   */
  topicArchiveDays: z.int().min(1).max(365).nullable().default(30),
  logRetention: z.enum(RetentionDays),
  /** Invocations of pollAccount side by side; each polls up to ten accounts. */
  pollConcurrency: z.int().min(2).max(1000),
  /** Invocations of drainSink side by side; each drains up to five sinks. */
  drainConcurrency: z.int().min(2).max(1000),
  api: z.strictObject({
    requestsPerSecond: z.int().positive(),
    burst: z.int().positive(),
    /** After this time a stream ends, and its client resumes: one that has gone is paid for until then. */
    streamSeconds: z.int().min(60).max(840).default(300),
    /** How many streams and waiting long polls a key may have at the same time. */
    streamsPerKey: z.int().min(1).max(MAX_SLOTS_PER_KEY).default(20),
    /**
     * Streams and long polls hold an invocation while they wait. The reserve caps them all together, so that they can't take
     * what polling needs. It comes off the AWS account's limit, of which a new account has too little: then null, for no
     * reserve and no cap but the one per key.
     */
    liveConcurrency: z.int().positive().nullable(),
    /**
     * A web ACL in front: AWS's common rules, known bad inputs, a rate per address. It costs $8 a month and $0.60 per million
     * requests, and every request has to show a key anyway; so it is for APIs that strangers find.
     */
    waf: z.boolean().default(false),
  }),
  cells: z.partialRecord(ApiRegion, CellSettings),
});

/** An API region with a cell of its own. */
export type ApiRegion = z.infer<typeof ApiRegion>;
/** The settings of one cell. */
export type CellSettings = z.infer<typeof CellSettings>;
/** The settings of one stage. */
export type StageSettings = z.infer<typeof StageSettings>;

/** All stages. The addresses of the ordering service are placeholders until a deployment fills in its own. */
export const stages: readonly StageSettings[] = z.array(StageSettings).parse([
  {
    stage: 'dev',
    protected: false,
    eventRetentionDays: 14,
    topicArchiveDays: null,
    logRetention: RetentionDays.ONE_WEEK,
    pollConcurrency: 2,
    drainConcurrency: 2,
    api: { requestsPerSecond: 20, burst: 40, streamSeconds: 300, streamsPerKey: 20, liveConcurrency: null },
    cells: {
      us: {
        awsRegion: 'us-east-1',
        upstream: {
          baseUrl: 'https://us.ordering-dev.example/api',
          authUrl: 'https://auth-us.ordering-dev.example',
          realm: 'us',
        },
        publicUrl: 'https://us.jobwire-dev.example',
      },
    },
  },
  {
    stage: 'prod',
    protected: true,
    eventRetentionDays: 90,
    topicArchiveDays: 30,
    logRetention: RetentionDays.THREE_MONTHS,
    pollConcurrency: 50,
    drainConcurrency: 50,
    api: { requestsPerSecond: 100, burst: 200, streamSeconds: 300, streamsPerKey: 20, liveConcurrency: 100 },
    cells: {
      us: {
        awsRegion: 'us-east-1',
        upstream: {
          baseUrl: 'https://us.ordering.example/api',
          authUrl: 'https://auth-us.ordering.example',
          realm: 'us',
        },
        publicUrl: 'https://us.jobwire.example',
      },
      nz: {
        awsRegion: 'ap-southeast-2',
        upstream: {
          baseUrl: 'https://nz.ordering.example/api',
          authUrl: 'https://auth-nz.ordering.example',
          realm: 'nz',
        },
        publicUrl: 'https://nz.jobwire.example',
      },
      au: {
        awsRegion: 'ap-southeast-2',
        upstream: {
          baseUrl: 'https://au.ordering.example/api',
          authUrl: 'https://auth-au.ordering.example',
          realm: 'au',
        },
        publicUrl: 'https://au.jobwire.example',
      },
      uk: {
        awsRegion: 'eu-west-2',
        upstream: {
          baseUrl: 'https://uk.ordering.example/api',
          authUrl: 'https://auth-uk.ordering.example',
          realm: 'uk',
        },
        publicUrl: 'https://uk.jobwire.example',
      },
      eu: {
        awsRegion: 'eu-central-1',
        upstream: {
          baseUrl: 'https://eu.ordering.example/api',
          authUrl: 'https://auth-eu.ordering.example',
          realm: 'eu',
        },
        publicUrl: 'https://eu.jobwire.example',
      },
    },
  },
]);
