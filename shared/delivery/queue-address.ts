/** Addresses of SQS queues: ARNs and URLs. Pure, and free of Node, because web pages validate with it too. */

/** Error message for a text that is no address of a queue. */
export const QUEUE_RULE =
  'must be the ARN or the URL of an SQS queue, such as arn:aws:sqs:us-east-1:111122223333:erp-jobs.fifo';

const NAME = String.raw`(?<name>[\w-]{1,80}|[\w-]{1,75}\.fifo)`;
const REGION = '(?<region>[a-z]{2}(?:-[a-z]+)+-\\d)';
const ARN = new RegExp(`^arn:(?<partition>aws(?:-[a-z]+)*):sqs:${REGION}:(?<account>\\d{12}):${NAME}$`);
const URL = new RegExp(
  `^https://sqs\\.${REGION}\\.(?<domain>amazonaws\\.com|amazonaws\\.com\\.cn)/(?<account>\\d{12})/${NAME}$`,
);

/** Parses an ARN, or a URL at Amazon SQS. Returns `undefined` for other texts. */
export function parseQueueAddress(text: string) {
  const groups = (ARN.exec(text) ?? URL.exec(text))?.groups;
  if (!groups) return undefined;
  const { region = '', account = '', name = '' } = groups;
  const partition = groups.partition ?? getPartition(region);
  const domain = partition === 'aws-cn' ? 'amazonaws.com.cn' : 'amazonaws.com';
  const path = `${account}/${name}`;
  return {
    arn: `arn:${partition}:sqs:${region}:${account}:${name}`,
    /** URL of the queue at Amazon SQS. */
    url: `https://sqs.${region}.${domain}/${path}`,
    awsRegion: region,
    /** Path of the URL: AWS account and name. */
    path,
    fifo: name.endsWith('.fifo'),
  };
}

/** Returns the partition of an AWS region that has an endpoint at `amazonaws.com`. */
function getPartition(region: string): string {
  if (region.startsWith('cn-')) return 'aws-cn';
  return region.startsWith('us-gov-') ? 'aws-us-gov' : 'aws';
}
