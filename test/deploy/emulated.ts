/**
 * A cell deployed without AWS: the synthesized stack on the embedded servers. Tables, queues, topics and secrets are created
 * from the template. The bundles run in their own processes (lambda.ts), with exactly the permissions of the template (iam.ts,
 * aws.ts), and are invoked by its event sources and API (event-sources.ts, rest-api.ts). Nothing leaves loopback.
 */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, request as httpRequest, type RequestListener, type Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createSecureContext, type SecureContext } from 'node:tls';
import { CreateTableCommand, type CreateTableCommandInput } from '@aws-sdk/client-dynamodb';
import { CreateTopicCommand, SubscribeCommand } from '@aws-sdk/client-sns';
import { CreateQueueCommand } from '@aws-sdk/client-sqs';
import { startFauxqs } from '../../local/queues.ts';
import { type Certificate, makeCertificate } from '../support/certificates.ts';
import { startDynamo } from '../support/dynoxide.ts';
import { Aws, type Caller, CUSTOM_RESOURCES, type TableKeys } from './aws.ts';
import type { AwsCall, CallFate } from './aws-call.ts';
import { clockAhead, setClockAhead } from './clock.ts';
import type { Deployment, FunctionName, Surroundings } from './deployment.ts';
import { createDistribution } from './distribution.ts';
import { EventBuses } from './event-bus.ts';
import {
  type EventSource,
  followQueue,
  followStream,
  type Mapping,
  type StreamSource,
} from './event-sources.ts';
import { Role } from './iam.ts';
import { type Alias, Lambda } from './lambda.ts';
import type { Routes } from './network.ts';
import { Outbox } from './outbox.ts';
import { createRestApi } from './rest-api.ts';
import { ACCOUNT, queueName, type Resource, StackTemplate, type Value } from './template.ts';
import { Traces } from './traces.ts';

/** Maximum number of processes per function, whatever the template allows: the machine has few cores. */
const MOST_ENVIRONMENTS = 3;
const SETTLED_WITHIN_MS = 60_000;
const PROBE_EVERY_MS = 10;
/** Time without work after which the cell counts as settled, because the result of one function starts the next. */
const QUIET_PROBES = 3;
const KEPT_LINES = 2_000;

/** Construct paths of the functions. */
export const FUNCTIONS: Readonly<Record<FunctionName, string>> = {
  tick: 'Polling/Tick',
  pollAccount: 'Polling/PollAccount',
  wakeSinks: 'Delivery/WakeSinks',
  drainSink: 'Delivery/DrainSink',
  alerts: 'Alerts/Function',
  notify: 'Notifications/Notify',
  mailFeedback: 'Notifications/MailFeedback',
  api: 'Api/Function',
  manage: 'Api/Manage',
  live: 'Api/Live',
  operate: 'Operate/Function',
};

/** Further information of the emulation about its cell. */
export interface Emulated extends Deployment {
  /** Permissions of roles that no request needed: `tick: dynamodb:Query on …`. */
  unused(): string[];
  invocations(): ReadonlyMap<string, number>;
  /** Output of the functions, by their construct paths. */
  lines(): readonly string[];
  /** Lines that contain any part of a secret. */
  leaks(): string[];
}

/** Deploys a stack of the assembly. */
export async function deployEmulated(
  assembly: string,
  stack: string,
  surroundings: Surroundings,
): Promise<Emulated> {
  const template = new StackTemplate(assembly, stack);
  const stage = stack.split('-')[1] ?? '';
  const region = stack.split('-')[2] ?? '';
  const closing: (() => Promise<unknown> | unknown)[] = [];
  const close = async () => {
    for (const end of closing.splice(0).reverse()) await end();
  };
  try {
    return await start();
  } catch (cause) {
    await close();
    throw cause;
  }

  async function start(): Promise<Emulated> {
    const dynamo = await startDynamo();
    closing.push(() => dynamo.stop());
    const fauxqs = await startFauxqs({ unsigned: true });
    closing.push(() => fauxqs.stop());
    closing.push(() => setClockAhead(0));
    const folder = await mkdtemp(join(tmpdir(), 'jobwire-deploy-'));
    closing.push(() => rm(folder, { recursive: true }));
    const authority = makeCertificate('Jobwire test authority', { authority: true });
    const caFile = join(folder, 'ca.pem');
    await writeFile(caFile, authority.certPem);

    const client = dynamo.client();
    for (const table of getTables(template))
      await client.send(new CreateTableCommand(toTable(template, table)));
    const sqs = fauxqs.sqs();
    for (const queue of inOrderOfNeed(template.ofType('AWS::SQS::Queue'))) {
      await sqs.send(new CreateQueueCommand(toQueue(template, queue)));
    }
    const sns = fauxqs.sns();
    for (const { id, properties } of template.ofType('AWS::SNS::Topic')) {
      const Attributes: Record<string, string> = properties.FifoTopic === true ? { FifoTopic: 'true' } : {};
      await sns.send(new CreateTopicCommand({ Name: template.ref(id).split(':').at(-1), Attributes }));
    }
    for (const { properties } of template.ofType('AWS::SNS::Subscription')) {
      const { TopicArn, Protocol, Endpoint, RawMessageDelivery } = template.resolve(properties) as Record<
        string,
        never
      >;
      const Attributes = { RawMessageDelivery: String(RawMessageDelivery ?? false) };
      await sns.send(new SubscribeCommand({ TopicArn, Protocol, Endpoint, Attributes }));
    }

    const sources: EventSource[] = [];
    let stream: StreamSource | undefined;
    const nudge = () => {
      for (const source of sources) source.nudge();
    };
    const outbox = new Outbox();
    const buses = new EventBuses(
      template
        .ofType('AWS::Events::EventBus')
        .map(({ id }) => String(template.resolve({ 'Fn::GetAtt': [id, 'Arn'] }))),
    );
    const traces = new Traces();
    const queues = getQueues(template);
    let customResource = (_answer: string) => {};
    const aws = new Aws({
      region: template.region,
      onCustomResource: (answer) => customResource(answer),
      ...{ outbox, buses, traces },
      identities: template.ofType('AWS::SES::EmailIdentity').map(({ id }) => template.ref(id)),
      dynamoEndpoint: dynamo.endpoint,
      fauxqsEndpoint: fauxqs.endpoint,
      tables: new Map(getTables(template).map((table) => [template.ref(table.id), getKeys(template, table)])),
      wants: (table, keys) => stream?.wants(table, keys) ?? false,
      onChange: (change) => stream?.push(change),
      onQueue: nudge,
    });
    for (const { properties } of template.ofType('AWS::SecretsManager::Secret')) {
      if (properties.GenerateSecretString) {
        aws.secrets.create(String(template.resolve(properties.Name)), randomBytes(24).toString('hex'));
      }
    }

    // The servers outside AWS, and one AWS endpoint for each function, which identifies the caller.
    const outside = await listen(createSecureServer(certificates(authority), forwardTo(surroundings.hosts)));
    closing.push(outside.close);
    const lines: string[] = [];
    const confided: string[] = [];
    const complaints: string[] = [];
    const fates = new Map<string, (call: AwsCall) => CallFate>();
    /** By ARN. A function with an alias is used twice: its latest code, and the version of the alias. */
    const functions = new Map<string, { path: string; fn: Lambda; caller: Caller; role: Role }>();
    const roles = new Map<string, Role>();
    for (const resource of template.ofType('AWS::Lambda::Function')) {
      const { path, properties } = resource;
      const [roleId = ''] = (properties.Role as { 'Fn::GetAtt': [string] })['Fn::GetAtt'];
      const role = new Role(template, roleId, path);
      roles.set(path, role);
      const versions: Lambda[] = [];
      const caller: Caller = {
        role,
        fate: (call) => fates.get(path)?.(call) ?? 'pass',
        kill: () => {
          for (const fn of versions) fn.kill();
        },
      };
      const serve: RequestListener = (request, response) => {
        aws.serve(caller, request, response).catch((cause) => {
          complaints.push(`${path}: ${cause instanceof Error ? cause.message : cause}`);
          request.socket.destroy();
        });
      };
      const front = await listen(createSecureServer(certificates(authority), serve));
      closing.push(front.close);
      const routes: Routes = {
        ...Object.fromEntries(Object.keys(surroundings.hosts).map((host) => [host, outside.port])),
        [`*.${template.region}.amazonaws.com`]: front.port,
      };
      const logs = String((template.resolve(properties.LoggingConfig) as { LogGroup?: string })?.LogGroup);
      const onLine = (line: string) => {
        lines.push(`${path}: ${line}`);
        if (lines.length > KEPT_LINES) lines.shift();
      };
      // The runtime writes one line when an invocation begins, and one when it ends.
      const logStream = `arn:aws:logs:${template.region}:${ACCOUNT}:log-group:${logs}:log-stream:0`;
      const onBegin = () => {
        for (const action of ['logs:CreateLogStream', 'logs:PutLogEvents']) {
          role.may({ action, resource: logStream });
        }
      };
      const onRefused = (destination: string) =>
        complaints.push(`${path} wanted to connect to ${destination}.`);
      const onFailed = (reason: string) => {
        if (!fates.has(path)) complaints.push(`${path} failed: ${reason}`);
      };
      const host = { routes, caFile, onBegin, onLine, onFailed, onRefused };
      for (const alias of [undefined, ...getAliases(template, resource)]) {
        const fn = new Lambda(template, resource, {
          ...{ most: MOST_ENVIRONMENTS, host },
          ...(alias && { alias }),
        });
        closing.push(() => fn.close());
        versions.push(fn);
        functions.set(fn.arn, { path, fn, caller, role });
      }
    }
    const byPath = (path: string) => {
      const found = [...functions.values()].find((candidate) => candidate.path === path);
      if (!found) throw new Error(`The template has no function ${path}.`);
      return found;
    };
    const named = (name: FunctionName) => byPath(FUNCTIONS[name]);
    const byArn = (arn: string) => {
      const found = functions.get(arn);
      if (!found) throw new Error(`The template has no function ${arn}.`);
      return found;
    };

    for (const resource of template.ofType('AWS::Lambda::EventSourceMapping')) {
      const name = String(template.resolve(resource.properties.FunctionName));
      const found = [...functions].find(([arn]) => arn === name || arn.endsWith(`:function:${name}`))?.[1];
      if (!found) throw new Error(`${resource.path} is for a function that is not there.`);
      const mapping: Mapping = { template, resource, aws, ...found };
      const isQueue = String(template.resolve(resource.properties.EventSourceArn)).includes(':sqs:');
      if (!isQueue) stream = followStream(mapping);
      const source = isQueue ? followQueue(mapping) : (stream as EventSource);
      sources.push(source);
      closing.push(() => source.stop());
    }

    const api = await listen(createRestApi(template, (arn) => byArn(arn).fn));
    closing.push(api.close);
    const everybody: Caller = { role: undefined, fate: () => 'pass', kill: () => {} };
    const open = await listen(
      createServer((request, response) => {
        aws.serve(everybody, request, response).catch((cause) => {
          complaints.push(`the test: ${cause}`);
          request.socket.destroy();
        });
      }),
    );
    closing.push(open.close);

    // The custom resources, at the end of a deployment.
    for (const { id, type, path, properties } of template.resources) {
      if (!type.startsWith('Custom::')) continue;
      const answered = new Promise<string>((done) => {
        customResource = done;
      });
      const { ServiceToken, ...rest } = template.resolve(properties) as { readonly ServiceToken: string };
      await byArn(ServiceToken).fn.invoke({
        ...{ RequestType: 'Create', RequestId: 'request', StackId: 'stack', LogicalResourceId: id },
        ...{ ResourceType: type, ResourceProperties: { ServiceToken, ...rest } },
        ResponseURL: `https://${CUSTOM_RESOURCES}useast1.s3.${template.region}.amazonaws.com/answer`,
      });
      const { Status, Reason } = JSON.parse(await answered) as { Status: string; Reason?: string };
      if (Status !== 'SUCCESS') throw new Error(`${path} was answered ${Status}: ${Reason}`);
    }
    const reached = {
      apiUrl: `http://127.0.0.1:${api.port}/${stage}`,
      aws: {
        region: template.region,
        endpoint: `http://127.0.0.1:${open.port}`,
        credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
      },
    };
    const distribution = await listen(createDistribution(template, reached, (id) => template.ref(id)));
    closing.push(distribution.close);

    const settled = async () => {
      const deadline = performance.now() + SETTLED_WITHIN_MS;
      for (let quiet = 0; quiet < QUIET_PROBES; await sleep(PROBE_EVERY_MS)) {
        if (performance.now() > deadline) throw new Error('The cell is still at work after a minute.');
        const busy = await Promise.all(sources.map((source) => source.busy()));
        quiet = busy.includes(true) ? 0 : quiet + 1;
      }
    };

    return {
      stage,
      region,
      outputs: template.outputs(),
      ...reached,
      dashboardUrl: `http://127.0.0.1:${distribution.port}`,
      physicalId: (path) => template.ref(template.at(path).id),
      outbox,
      ...(queues && { options: { bus: buses.entries, spans: traces.spans, queues } }),
      invoke: (name, payload) => named(name).fn.invoke(payload),
      async tick() {
        for (const { path, properties } of template.ofType('AWS::Scheduler::Schedule')) {
          if (properties.State !== 'ENABLED') throw new Error(`${path} is not enabled.`);
          const { Arn, RoleArn } = properties.Target as { Arn: Value; RoleArn: { 'Fn::GetAtt': [string] } };
          const { fn } = byArn(String(template.resolve(Arn)));
          const scheduler = new Role(template, RoleArn['Fn::GetAtt'][0], path);
          if (!scheduler.may({ action: 'lambda:InvokeFunction', resource: fn.arn })) {
            throw new Error(scheduler.denied[0]);
          }
          await fn.invoke({}).catch(() => {});
        }
      },
      settled,
      async passTime(seconds) {
        await settled();
        setClockAhead(clockAhead() + seconds * 1000);
        for (const { fn } of functions.values()) fn.tellClock();
        nudge();
      },
      faults: {
        onCall(name, fate) {
          if (fate) fates.set(FUNCTIONS[name], fate);
          else fates.delete(FUNCTIONS[name]);
        },
      },
      complaints: () => [...[...roles.values()].flatMap(({ denied }) => denied), ...complaints],
      unused: () => [...roles].flatMap(([path, role]) => role.unused().map((grant) => `${path}: ${grant}`)),
      invocations: () => new Map([...functions].map(([arn, { fn }]) => [arn, fn.invocations])),
      lines: () => lines,
      confide: (secret) => void confided.push(secret),
      leaks: () =>
        lines.filter((line) => [...confided, ...getSecrets(aws)].some((secret) => line.includes(secret))),
      [Symbol.asyncDispose]: close,
    };
  }
}

/** Returns the aliases of a function. */
function getAliases(template: StackTemplate, fn: Resource): Alias[] {
  return template
    .ofType('AWS::Lambda::Alias')
    .filter(({ properties }) => template.resolve(properties.FunctionName) === template.ref(fn.id))
    .map(({ properties }) => ({
      name: String(template.resolve(properties.Name)),
      version: String(template.resolve(properties.FunctionVersion)),
    }));
}

/** Returns the queues that endpoints can have as targets, by the environment of the function that creates endpoints. */
function getQueues(template: StackTemplate): NonNullable<Deployment['options']>['queues'] | undefined {
  const { Variables = {} } = template.at(FUNCTIONS.manage).properties.Environment as {
    Variables?: Record<string, Value>;
  };
  const arns = String(Variables.JOBWIRE_QUEUES ?? '').split(',');
  const fifo = arns.find((arn) => arn.endsWith('.fifo'));
  const standard = arns.find((arn) => !arn.endsWith('.fifo'));
  return fifo && standard ? { fifo, standard } : undefined;
}

// Resources as created on the embedded servers

function getTables(template: StackTemplate): readonly Resource[] {
  return [...template.ofType('AWS::DynamoDB::GlobalTable'), ...template.ofType('AWS::DynamoDB::Table')];
}

/** Without its stream, which makes the embedded server very slow. */
function toTable(template: StackTemplate, { id, properties }: Resource): CreateTableCommandInput {
  const { AttributeDefinitions, KeySchema, GlobalSecondaryIndexes, BillingMode } = template.resolve(
    properties,
  ) as CreateTableCommandInput;
  return {
    TableName: template.ref(id),
    AttributeDefinitions,
    KeySchema,
    GlobalSecondaryIndexes,
    BillingMode,
  };
}

function getKeys(template: StackTemplate, { id, properties }: Resource): TableKeys {
  const { KeySchema, GlobalSecondaryIndexes = [] } = template.resolve(properties) as CreateTableCommandInput;
  const [partition, sort] = KeySchema ?? [];
  return {
    arn: String(template.resolve({ 'Fn::GetAtt': [id, 'Arn'] })),
    partitionKey: partition?.AttributeName ?? '',
    sortKey: sort?.AttributeName ?? '',
    indexes: new Map(
      GlobalSecondaryIndexes.map((index) => [
        index.IndexName ?? '',
        index.KeySchema?.[0]?.AttributeName ?? '',
      ]),
    ),
    streamed: properties.StreamSpecification !== undefined,
  };
}

/** Dead-letter queues before the queues that refer to them. */
function inOrderOfNeed(queues: readonly Resource[]): readonly Resource[] {
  return [...queues].sort(
    (a, b) =>
      Number(a.properties.RedrivePolicy !== undefined) - Number(b.properties.RedrivePolicy !== undefined),
  );
}

const QUEUE_ATTRIBUTES = [
  'VisibilityTimeout',
  'MessageRetentionPeriod',
  'DelaySeconds',
  'ReceiveMessageWaitTimeSeconds',
  'FifoQueue',
  'ContentBasedDeduplication',
] as const;

function toQueue(template: StackTemplate, { id, properties }: Resource) {
  const Attributes: Record<string, string> = {};
  const policy = template
    .ofType('AWS::SQS::QueuePolicy')
    .find(({ properties: of }) => (template.resolve(of.Queues) as string[]).includes(template.ref(id)));
  if (policy) Attributes.Policy = JSON.stringify(template.resolve(policy.properties.PolicyDocument));
  for (const name of QUEUE_ATTRIBUTES) {
    if (properties[name] !== undefined) Attributes[name] = String(template.resolve(properties[name]));
  }
  if (properties.RedrivePolicy)
    Attributes.RedrivePolicy = JSON.stringify(template.resolve(properties.RedrivePolicy));
  return { QueueName: queueName(template.ref(id)), Attributes };
}

/** Returns every text in secrets that is long enough to be a secret. */
function getSecrets(aws: Aws): string[] {
  return aws.secrets.texts().flatMap((text) => text.match(/[A-Za-z0-9+/=_-]{20,}/g) ?? []);
}

// Servers

interface Listening {
  readonly port: number;
  readonly close: () => Promise<void>;
}

export async function listen(server: Server): Promise<Listening> {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}

/** Returns a certificate for any requested name. */
export function certificates(issuer: Certificate) {
  const contexts = new Map<string, SecureContext>();
  const getContext = (name: string) => {
    const known = contexts.get(name);
    if (known) return known;
    const { certPem, keyPem } = makeCertificate(name, { issuer });
    const context = createSecureContext({ cert: certPem, key: keyPem });
    contexts.set(name, context);
    return context;
  };
  return {
    SNICallback: (name: string, done: (error: Error | null, context?: SecureContext) => void) =>
      done(null, getContext(name)),
  };
}

/** Forwards requests to the plain servers of the host names. */
export function forwardTo(hosts: Readonly<Record<string, string>>): RequestListener {
  return (request, response) => {
    const { host = '' } = request.headers;
    const base = new URL(hosts[host] ?? hosts[host.replace(/^[^.]*/, '*')] ?? 'http://127.0.0.1:9');
    const onward = httpRequest(
      {
        host: base.hostname,
        port: base.port,
        path: `${base.pathname.replace(/\/$/, '')}${request.url}`,
        method: request.method,
        headers: { ...request.headers, host: base.host },
      },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
        answer.once('error', () => response.destroy());
      },
    );
    onward.once('error', () => request.socket.destroy());
    response.once('close', () => onward.destroy());
    request.pipe(onward);
  };
}
