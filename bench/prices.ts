/**
 * List prices of AWS in US dollars on the day below. Names are those of AWS's pricing pages. Without free tier, volume tiers and savings
 * plans.
 */

/** The day of the price list. */
export const PRICES_AS_OF = '2026-11-21';

/** Price per unit in us-east-1. */
export const PRICES = {
  /** "Amazon DynamoDB pricing", on-demand capacity, Standard table class. Reading a stream from Lambda costs nothing. */
  dynamoReadUnit: 0.125 / 1e6,
  dynamoWriteUnit: 0.625 / 1e6,
  dynamoStoredGbMonth: 0.25,
  dynamoRecoveryGbMonth: 0.2,
  /** "AWS Lambda pricing", arm64. Start-up time is billed like any other time. */
  lambdaGbSecond: 0.0000133334,
  lambdaRequest: 0.2 / 1e6,
  /** "Amazon SQS pricing", standard queues: any call of up to 64 KB, with up to ten messages. */
  sqsRequest: 0.4 / 1e6,
  /** "Amazon SNS pricing", FIFO topics: a message published, and its delivery to a queue; GB of both; GB archived. */
  snsFifoPublish: 0.3 / 1e6,
  snsFifoPublishGb: 0.017,
  snsFifoDelivery: 0.01 / 1e6,
  snsFifoDeliveryGb: 0.001,
  snsArchiveGb: 0.042,
  snsArchiveGbMonth: 0.023,
  /** "Amazon SES pricing", outbound e-mail; each recipient is one. SMS cost by country, and by the segment. */
  sesEmail: 0.1 / 1000,
  /** "Amazon CloudWatch pricing". A metric is billed for the hours in which it has data. */
  logsIngestedGb: 0.5,
  logsStoredGbMonth: 0.03,
  metricMonth: 0.3,
  alarmMetricMonth: 0.1,
  compositeAlarmMonth: 0.5,
  dashboardMonth: 3,
  /** "AWS Secrets Manager pricing". */
  secretMonth: 0.4,
  secretCall: 0.05 / 10_000,
  /** "AWS Key Management Service pricing". */
  kmsKeyMonth: 1,
  kmsCall: 0.03 / 10_000,
  /** "Amazon EventBridge pricing", Scheduler. */
  schedulerInvocation: 1 / 1e6,
  /** "AWS WAF pricing". */
  webAclMonth: 5,
  webAclRuleMonth: 1,
  webAclRequest: 0.6 / 1e6,
  /** "Amazon VPC pricing", NAT gateway, public IPv4 address. */
  natGatewayHour: 0.045,
  natGatewayGb: 0.045,
  publicAddressHour: 0.005,
  /** "Amazon EC2 on-demand pricing", data transfer out to the internet. */
  outGb: 0.09,
} as const;

/** Name of a price. */
export type PriceName = keyof typeof PRICES;

/** Prices of the other AWS regions of the example settings, where they differ from those of us-east-1. */
export const REGION_PRICES = {
  'us-east-1': {},
  'eu-central-1': {
    ...{ dynamoReadUnit: 0.1525 / 1e6, dynamoWriteUnit: 0.7625 / 1e6 },
    ...{ dynamoStoredGbMonth: 0.306, dynamoRecoveryGbMonth: 0.2448 },
    ...{ logsIngestedGb: 0.63, logsStoredGbMonth: 0.0324 },
    ...{ natGatewayHour: 0.052, natGatewayGb: 0.052 },
  },
  'eu-west-2': {
    ...{ dynamoReadUnit: 0.1485 / 1e6, dynamoWriteUnit: 0.7423 / 1e6 },
    ...{ dynamoStoredGbMonth: 0.297, dynamoRecoveryGbMonth: 0.2376 },
    ...{ logsIngestedGb: 0.5985, logsStoredGbMonth: 0.0315 },
    ...{ natGatewayHour: 0.05, natGatewayGb: 0.05 },
  },
  'ap-southeast-2': {
    ...{ dynamoReadUnit: 0.1425 / 1e6, dynamoWriteUnit: 0.7115 / 1e6 },
    ...{ dynamoStoredGbMonth: 0.285, dynamoRecoveryGbMonth: 0.228 },
    ...{ logsIngestedGb: 0.67, logsStoredGbMonth: 0.033 },
    ...{ natGatewayHour: 0.059, natGatewayGb: 0.059, outGb: 0.114 },
  },
} as const satisfies Readonly<Record<string, Partial<Readonly<Record<PriceName, number>>>>>;
