/**
 * AWS as functions reach it: every call is checked against the permissions of the caller's role and passed to the embedded
 * server of the service. Changes of the state table are passed to the readers of its stream. One file: its services share the
 * check of permissions.
 */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { FakeKms } from '../support/kms.ts';
import type { AwsCall, CallFate } from './aws-call.ts';
import { Buckets, parseBucketCall } from './buckets.ts';
import type { BusEntry, EventBuses } from './event-bus.ts';
import type { Access, Role } from './iam.ts';
import type { Outbox } from './outbox.ts';
import { ACCOUNT, queueName, secretArn } from './template.ts';
import { TRACES_PATH, type Traces } from './traces.ts';

/** Caller of a request. Without a role: the test, with all permissions. */
export interface Caller {
  readonly role: Role | undefined;
  /** Called for each call of the process. */
  readonly fate: (call: AwsCall) => CallFate;
  /** Ends the caller's process. */
  readonly kill: () => void;
}

/** Key schema of a table, needed to interpret calls. */
export interface TableKeys {
  readonly arn: string;
  readonly partitionKey: string;
  readonly sortKey: string;
  /** Partition keys of its indexes. */
  readonly indexes: ReadonlyMap<string, string>;
  /** Whether its stream has a reader. */
  readonly streamed: boolean;
}

/** A key or an item, in DynamoDB's notation. */
export type Image = { readonly [attribute: string]: unknown };

/** A change of a table with a stream, in the order of acknowledgement. No image: the item was deleted. */
export interface Change {
  readonly table: string;
  readonly keys: Image;
  readonly newImage: Image | undefined;
}

interface Options {
  readonly region: string;
  readonly dynamoEndpoint: string;
  readonly fauxqsEndpoint: string;
  readonly tables: ReadonlyMap<string, TableKeys>;
  /** Returns whether the image of a change is needed, by its keys: reading it costs a call. */
  readonly wants: (table: string, keys: Image) => boolean;
  readonly onChange: (change: Change) => void;
  /** Called when a queue may have a new message. */
  readonly onQueue: () => void;
  /** Receives the messages to customers. */
  readonly outbox: Outbox;
  /** Receives the events on buses. */
  readonly buses: EventBuses;
  /** Receives the spans. */
  readonly traces: Traces;
  /** Called with the response of a function to CloudFormation. */
  readonly onCustomResource: (answer: string) => void;
  /** Domains and addresses of SES identities. */
  readonly identities: readonly string[];
}

interface Answer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

type Body = Record<string, unknown>;

/** Host that accepts the responses to CloudFormation. */
export const CUSTOM_RESOURCES = 'cloudformation-custom-resource-response-';

/** The part of AWS that functions use. */
export class Aws {
  readonly secrets: SecretsManager;
  readonly #buckets = new Buckets();
  readonly #kms = new FakeKms();
  readonly #options: Options;

  constructor(options: Options) {
    this.#options = options;
    this.secrets = new SecretsManager(options.region);
  }

  /** Serves a request of this caller to the HTTP server that emulates AWS. */
  async serve(caller: Caller, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readBody(request);
    if (String(request.headers.host).startsWith(CUSTOM_RESOURCES)) {
      this.#options.onCustomResource(body.toString('utf8'));
      response.end();
      return;
    }
    const ofBucket = parseBucketCall(request, body);
    if (ofBucket) {
      const denied = ofBucket.accesses.find((access) => caller.role && !caller.role.may(access));
      const answer = denied
        ? { status: 403, headers: {}, body: '<Error><Code>AccessDenied</Code></Error>' }
        : this.#buckets.answer(ofBucket, request, body);
      response.writeHead(answer.status, answer.headers).end(answer.body);
      return;
    }
    const text = body.toString('utf8');
    const call = parseCall(request, text);
    const fate = caller.fate(call);
    if (fate === 'kill before') {
      caller.kill();
      return;
    }
    const answer =
      fate === 'fail'
        ? awsFault(call.service, 'InternalServerError', 'Injected.', 500)
        : await this.#answer(caller, call, request);
    if (fate === 'kill after') {
      caller.kill();
      return;
    }
    response.writeHead(answer.status, {
      'content-type': answer.contentType,
      'x-amzn-requestid': randomUUID(),
    });
    response.end(answer.body);
  }

  /** Sends a call of AWS itself with a role, as event sources do. Throws if the call fails. */
  async call(caller: Caller, service: 'sqs', operation: string, body: Body): Promise<Body> {
    const text = JSON.stringify(body);
    const answer = await this.#answer(caller, { service, operation, body, text });
    if (answer.status !== 200) throw new Error(`${operation} was answered ${answer.status}: ${answer.body}`);
    return JSON.parse(answer.body || '{}');
  }

  async #answer(caller: Caller, call: Call, request?: IncomingMessage): Promise<Answer> {
    const denied = caller.role && this.#accesses(call).find((access) => !caller.role?.may(access));
    if (denied) return accessDenied(call.service, caller.role, denied);
    const answer = await this.#forward(call, request);
    if (answer.status === 200) {
      if (call.service === 'dynamodb') await this.#follow(call);
      if (/^(SendMessage|Publish)/.test(call.operation)) this.#options.onQueue();
    }
    return answer;
  }

  async #forward(call: Call, request?: IncomingMessage): Promise<Answer> {
    if (call.service === 'secretsmanager') return this.secrets.answer(call.operation, call.body);
    if (call.service === 'kms') return this.#decrypt(call);
    if (call.service === 'ses') return this.#mail(call);
    if (call.service === 'events') return this.#putEvents(call);
    if (call.service === 'xray') {
      this.#options.traces.take(call.body);
      return { status: 200, contentType: 'application/json', body: '{}' };
    }
    const toNumber = this.#toNumber(call);
    if (toNumber) return toNumber;
    const { dynamoEndpoint, fauxqsEndpoint } = this.#options;
    const json = 'application/x-amz-json-1.0';
    const headers: Record<string, string> = {
      'content-type': call.service === 'sns' ? 'application/x-www-form-urlencoded' : json,
      authorization: String(
        request?.headers.authorization ?? AUTHORIZATION(this.#options.region, call.service),
      ),
      'x-amz-date': String(request?.headers['x-amz-date'] ?? '20260101T000000Z'),
    };
    if (call.service !== 'sns') headers['x-amz-target'] = `${TARGETS[call.service]}.${call.operation}`;
    const answer = await fetch(call.service === 'dynamodb' ? dynamoEndpoint : fauxqsEndpoint, {
      method: 'POST',
      headers,
      body: call.text,
    });
    return {
      status: answer.status,
      contentType: answer.headers.get('content-type') ?? json,
      body: await answer.text(),
    };
  }

  #decrypt({ operation, body }: Call): Answer {
    try {
      const answer = JSON.stringify(this.#kms.answerJson(operation, body));
      return { status: 200, contentType: 'application/x-amz-json-1.1', body: answer };
    } catch (cause) {
      return awsFault('kms', (cause as Error).name, 'The ciphertext is not of this key and context.', 400);
    }
  }

  #putEvents({ body }: Call): Answer {
    const answer = this.#options.buses.put(body.Entries as BusEntry[]);
    if (typeof answer === 'string') return awsFault('events', 'ValidationException', answer, 400);
    return { status: 200, contentType: 'application/x-amz-json-1.1', body: JSON.stringify(answer) };
  }

  #mail(call: Call): Answer {
    const { FromEmailAddress } = call.body;
    if (this.#identityOf(String(FromEmailAddress)) === undefined) {
      return awsFault('ses', 'MessageRejected', 'Email address is not verified.', 400);
    }
    const MessageId = this.#options.outbox.take(call);
    return { status: 200, contentType: 'application/json', body: JSON.stringify({ MessageId }) };
  }

  /** Returns the SES identity of an address: the address itself, or its domain. */
  #identityOf(address: string): string | undefined {
    const domain = address.split('@')[1] ?? '';
    const { identities } = this.#options;
    return (
      identities.find((name) => name === address) ??
      identities.find((name) => `.${domain}`.endsWith(`.${name}`))
    );
  }

  /** The responses of SNS to calls about a telephone number. The embedded server has only topics. */
  #toNumber(call: Call): Answer | undefined {
    if (call.service !== 'sns') return undefined;
    const answer = (result: string): Answer => ({
      ...{ status: 200, contentType: 'text/xml' },
      body: `<${call.operation}Response xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><${call.operation}Result>${result}</${call.operation}Result></${call.operation}Response>`,
    });
    if (call.operation === 'CheckIfPhoneNumberIsOptedOut') return answer('<isOptedOut>false</isOptedOut>');
    const id = this.#options.outbox.take(call);
    return id === undefined ? undefined : answer(`<MessageId>${id}</MessageId>`);
  }

  /** Returns the required permissions of a call. */
  #accesses({ service, operation, body }: Call): Access[] {
    const { region, tables } = this.#options;
    switch (service) {
      case 'dynamodb':
        return dynamoAccesses(operation, body, tables);
      case 'sqs': {
        const action = operation.replace(/Batch$/, '');
        return [
          {
            action: `sqs:${action}`,
            resource: `arn:aws:sqs:${region}:${ACCOUNT}:${queueName(String(body.QueueUrl))}`,
          },
        ];
      }
      case 'sns': {
        // A telephone number has no ARN, so the resource is the number.
        const resource = String(body.TopicArn ?? body.PhoneNumber ?? '*');
        return [{ action: `sns:${operation.replace(/Batch$/, '')}`, resource }];
      }
      case 'ses': {
        const arn = (resource: string) => `arn:aws:ses:${region}:${ACCOUNT}:${resource}`;
        const from = String(body.FromEmailAddress);
        const resources = [arn(`identity/${this.#identityOf(from) ?? from}`)];
        if (body.ConfigurationSetName) resources.push(arn(`configuration-set/${body.ConfigurationSetName}`));
        const context = { 'ses:FromAddress': [from] };
        // The first by the documentation, the second by the observed responses to a raw message.
        return ['ses:SendEmail', 'ses:SendRawEmail'].flatMap((action) =>
          resources.map((resource) => ({ action, resource, context })),
        );
      }
      case 'events':
        return (body.Entries as BusEntry[]).map(({ EventBusName, Source, DetailType }) => ({
          action: `events:${operation}`,
          resource: EventBusName,
          context: { 'events:source': [Source], 'events:detail-type': [DetailType] },
        }));
      case 'xray':
        // Those of AWS's policy for applications that send spans. The documentation does not say which of them suffice.
        return ['PutSpans', 'PutSpansForIndexing', 'PutTraceSegments'].map((action) => ({
          action: `xray:${action}`,
          resource: '*',
        }));
      case 'kms': {
        const context = Object.entries(body.EncryptionContext as Record<string, string>).map(
          ([name, value]) => [`kms:EncryptionContext:${name}`, [value]],
        );
        const resource = String(body.KeyId);
        return [{ action: `kms:${operation}`, resource, context: Object.fromEntries(context) }];
      }
      case 'secretsmanager':
        return [
          {
            action: `secretsmanager:${operation}`,
            resource: this.secrets.getArn(String(body.SecretId ?? body.Name)),
          },
        ];
    }
  }

  /** Passes the changes of a call to the readers of streams. */
  async #follow({ operation, body }: Call): Promise<void> {
    for (const { table, item, key } of getWrites(operation, body)) {
      const known = this.#options.tables.get(table);
      if (!known?.streamed) continue;
      const of = (item ?? key ?? {}) as Image;
      const keys = { [known.partitionKey]: of[known.partitionKey], [known.sortKey]: of[known.sortKey] };
      if (!this.#options.wants(table, keys)) continue;
      this.#options.onChange({ table, keys, newImage: item ?? (await this.#read(table, keys)) });
    }
  }

  async #read(TableName: string, Key: Image): Promise<Image | undefined> {
    const body = { TableName, Key, ConsistentRead: true };
    const call: Call = { service: 'dynamodb', operation: 'GetItem', body, text: JSON.stringify(body) };
    const answer = await this.#forward(call);
    return (JSON.parse(answer.body) as { Item?: Image }).Item;
  }
}

// Calls as they come over the wire

type Service = 'dynamodb' | 'sqs' | 'sns' | 'secretsmanager' | 'ses' | 'kms' | 'events' | 'xray';

interface Call extends AwsCall {
  readonly service: Service;
  readonly body: Body;
}

const TARGETS: Readonly<Record<string, string>> = {
  dynamodb: 'DynamoDB_20120810',
  sqs: 'AmazonSQS',
  secretsmanager: 'secretsmanager',
  kms: 'TrentService',
  events: 'AWSEvents',
};
const AUTHORIZATION = (region: string, service: string) =>
  `AWS4-HMAC-SHA256 Credential=local/20260101/${region}/${service}/aws4_request, SignedHeaders=host, Signature=0`;

function parseCall(request: IncomingMessage, text: string): Call {
  const [prefix, operation = ''] = String(request.headers['x-amz-target'] ?? '').split('.');
  const service = Object.keys(TARGETS).find((name) => TARGETS[name] === prefix);
  if (service) return { service: service as Service, operation, body: JSON.parse(text || '{}'), text };
  if (request.method === 'POST' && request.url === '/v2/email/outbound-emails') {
    return { service: 'ses', operation: 'SendEmail', body: JSON.parse(text), text };
  }
  const isForXray = String(request.headers.authorization).includes('/xray/aws4_request, ');
  if (request.method === 'POST' && request.url === TRACES_PATH && isForXray) {
    return { service: 'xray', operation: 'PutSpans', body: JSON.parse(text), text };
  }
  const form = Object.fromEntries(new URLSearchParams(text));
  if (form.Action && form.Version === '2010-03-31')
    return { service: 'sns', operation: form.Action, body: form, text };
  throw new Error(`A call to AWS is not known here: ${request.headers['x-amz-target'] ?? form.Action}.`);
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

// DynamoDB

interface Part {
  readonly TableName: string;
  readonly Item?: Image;
  readonly Key?: Image;
}

/** The parts of transactions and batches are authorized separately. */
function dynamoAccesses(operation: string, body: Body, tables: ReadonlyMap<string, TableKeys>): Access[] {
  const known = (name: unknown): TableKeys => {
    const table = tables.get(String(name));
    if (!table) throw new Error(`${operation} is about a table that the template does not have.`);
    return table;
  };
  const access = (action: string, table: TableKeys, images: readonly Image[]): Access => ({
    action: `dynamodb:${action}`,
    resource: table.arn,
    context: { 'dynamodb:LeadingKeys': images.map((image) => textOfKey(image[table.partitionKey])) },
  });
  switch (operation) {
    case 'Query': {
      const table = known(body.TableName);
      const index = body.IndexName === undefined ? undefined : String(body.IndexName);
      const key = index === undefined ? table.partitionKey : (table.indexes.get(index) ?? '');
      return [
        {
          action: 'dynamodb:Query',
          resource: index === undefined ? table.arn : `${table.arn}/index/${index}`,
          context: { 'dynamodb:LeadingKeys': [queriedKey(body, key)] },
        },
      ];
    }
    case 'GetItem':
    case 'PutItem':
    case 'UpdateItem':
    case 'DeleteItem': {
      const part = body as unknown as Part;
      return [access(operation, known(part.TableName), [part.Item ?? part.Key ?? {}])];
    }
    case 'BatchGetItem':
      return Object.entries(body.RequestItems as Record<string, { Keys: Image[] }>).map(([name, { Keys }]) =>
        access(operation, known(name), Keys),
      );
    case 'BatchWriteItem':
      return Object.entries(body.RequestItems as Record<string, Record<string, Part>[]>).map(
        ([name, requests]) =>
          access(
            operation,
            known(name),
            requests.map(({ PutRequest, DeleteRequest }) => PutRequest?.Item ?? DeleteRequest?.Key ?? {}),
          ),
      );
    case 'TransactWriteItems':
      return transactParts(body).map(([kind, part]) =>
        access(kind === 'ConditionCheck' ? 'ConditionCheckItem' : `${kind}Item`, known(part.TableName), [
          part.Item ?? part.Key ?? {},
        ]),
      );
    case 'TransactGetItems':
      return (body.TransactItems as { Get: Part }[]).map(({ Get }) =>
        access('GetItem', known(Get.TableName), [Get.Key ?? {}]),
      );
    default:
      return [{ action: `dynamodb:${operation}`, resource: known(body.TableName).arn }];
  }
}

function transactParts(body: Body): [string, Part][] {
  return (body.TransactItems as Record<string, Part>[]).flatMap((item) => Object.entries(item));
}

/** Writes of a call. `item`: if the call contains the complete item. */
function getWrites(operation: string, body: Body): { table: string; item?: Image; key?: Image }[] {
  const one = (part: Part) => ({
    table: part.TableName,
    ...(part.Item ? { item: part.Item } : { key: part.Key ?? {} }),
  });
  switch (operation) {
    case 'PutItem':
    case 'UpdateItem':
    case 'DeleteItem':
      return [one(body as unknown as Part)];
    case 'BatchWriteItem':
      return Object.entries(body.RequestItems as Record<string, Record<string, Part>[]>).flatMap(
        ([TableName, requests]) =>
          requests.map(({ PutRequest, DeleteRequest }) =>
            one({ ...(PutRequest ?? DeleteRequest), TableName }),
          ),
      );
    case 'TransactWriteItems':
      return transactParts(body)
        .filter(([kind]) => kind !== 'ConditionCheck')
        .map(([, part]) => one(part));
    default:
      return [];
  }
}

function queriedKey(body: Body, key: string): string {
  const names = (body.ExpressionAttributeNames ?? {}) as Record<string, string>;
  const values = (body.ExpressionAttributeValues ?? {}) as Image;
  for (const [, name = '', value = ''] of String(body.KeyConditionExpression).matchAll(
    /([#\w]+)\s*=\s*(:\w+)/g,
  )) {
    if ((names[name] ?? name) === key) return textOfKey(values[value]);
  }
  throw new Error('A query does not say which partition it is about.');
}

function textOfKey(value: unknown): string {
  return String(Object.values((value ?? {}) as object)[0]);
}

// Errors as AWS answers them

function accessDenied(service: Service, role: Role | undefined, { action, resource }: Access): Answer {
  const what = `User: ${role?.arn} is not authorized to perform: ${action} on resource: ${resource} because no identity-based policy allows the ${action} action`;
  return service === 'sns'
    ? awsFault(service, 'AuthorizationError', what, 403)
    : awsFault(service, 'AccessDeniedException', what, 400);
}

function awsFault(service: Service, code: string, message: string, status: number): Answer {
  if (service === 'sns') {
    return {
      status,
      contentType: 'text/xml',
      body: `<ErrorResponse><Error><Type>Sender</Type><Code>${code}</Code><Message>${message}</Message></Error></ErrorResponse>`,
    };
  }
  const body = JSON.stringify({ __type: `com.amazon.coral.service#${code}`, message, Message: message });
  return { status, contentType: 'application/x-amz-json-1.0', body };
}

// Secrets Manager

interface Secret {
  readonly name: string;
  text: string;
  version: string;
  deletedAt: number | undefined;
}

/** The part of Secrets Manager that functions and operators use, in memory. */
class SecretsManager {
  readonly #region: string;
  readonly #secrets = new Map<string, Secret>();

  constructor(region: string) {
    this.#region = region;
  }

  /** Returns every secret text: no log may contain any of them. */
  texts(): string[] {
    return [...this.#secrets.values()].map(({ text }) => text);
  }

  getArn(id: string): string {
    return id.startsWith('arn:') ? id : secretArn(this.#region, id);
  }

  create(name: string, text: string): void {
    this.#secrets.set(name, { name, text, version: randomUUID(), deletedAt: undefined });
  }

  answer(operation: string, body: Body): Answer {
    const name = String(body.SecretId ?? body.Name).replace(/^arn:.*:secret:(.*)-[A-Za-z0-9]{6}$/, '$1');
    const found = this.#secrets.get(name);
    const ARN = this.getArn(name);
    const fault = (code: string, message: string) => awsFault('secretsmanager', code, message, 400);
    const well = (answer: Body): Answer => ({
      status: 200,
      contentType: 'application/x-amz-json-1.1',
      body: JSON.stringify({ ARN, Name: name, ...answer }),
    });
    if (operation === 'CreateSecret') {
      if (found) return fault('ResourceExistsException', 'The secret is there already.');
      this.create(name, String(body.SecretString));
      return well({ VersionId: this.#secrets.get(name)?.version });
    }
    if (!found) return fault('ResourceNotFoundException', "Secrets Manager can't find the specified secret.");
    if (found.deletedAt !== undefined && operation !== 'RestoreSecret') {
      return fault('InvalidRequestException', 'The secret is marked for deletion.');
    }
    switch (operation) {
      case 'GetSecretValue':
        return well({ SecretString: found.text, VersionId: found.version, VersionStages: ['AWSCURRENT'] });
      case 'DescribeSecret':
        return well({ VersionIdsToStages: { [found.version]: ['AWSCURRENT'] } });
      case 'PutSecretValue':
      case 'UpdateSecret':
        Object.assign(found, { text: String(body.SecretString), version: randomUUID() });
        return well({ VersionId: found.version });
      case 'DeleteSecret':
        if (body.ForceDeleteWithoutRecovery) this.#secrets.delete(name);
        else found.deletedAt = Date.now();
        return well({ DeletionDate: Date.now() / 1000 });
      case 'RestoreSecret':
        found.deletedAt = undefined;
        return well({});
      default:
        throw new Error(`${operation} of Secrets Manager is not known here.`);
    }
  }
}
