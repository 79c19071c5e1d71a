/** Reads a stack of a synthesized assembly, and computes the names and ids of its deployed resources. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A value of a template, which may contain intrinsic functions. */
export type Value = string | number | boolean | null | readonly Value[] | { readonly [name: string]: Value };

/** A resource of a template. */
export interface Resource {
  readonly id: string;
  readonly type: string;
  /** Construct path below the stack: `Polling/Polls/Queue`. */
  readonly path: string;
  readonly properties: { readonly [name: string]: Value };
}

/** The AWS account of all resources. */
export const ACCOUNT = '000000000000';

/** A synthesized stack. */
export class StackTemplate {
  readonly name: string;
  /** The AWS region. */
  readonly region: string;
  readonly resources: readonly Resource[];
  readonly #byId: ReadonlyMap<string, Resource>;
  readonly #outputs: { readonly [name: string]: { readonly Value: Value } };
  readonly #assembly: string;

  constructor(assembly: string, name: string) {
    const read = (file: string) => JSON.parse(readFileSync(join(assembly, file), 'utf8'));
    const { artifacts } = read('manifest.json');
    if (!artifacts[name]) throw new Error(`${assembly} has no stack ${name}: run "npm run synth:deploy".`);
    const template = read(artifacts[name].properties.templateFile);
    this.name = name;
    this.region = artifacts[name].environment.split('/').at(-1);
    this.#assembly = assembly;
    this.#outputs = template.Outputs ?? {};
    this.resources = Object.entries<Record<string, never>>(template.Resources).map(([id, raw]) => ({
      id,
      type: raw.Type ?? '',
      path: getPath(raw.Metadata?.['aws:cdk:path'] ?? id, name),
      properties: raw.Properties ?? {},
    }));
    this.#byId = new Map(this.resources.map((resource) => [resource.id, resource]));
  }

  ofType(type: string): readonly Resource[] {
    return this.resources.filter((resource) => resource.type === type);
  }

  /** Returns the resource with this logical id. Throws if there is none. */
  get(id: string): Resource {
    const resource = this.#byId.get(id);
    if (!resource) throw new Error(`The template has no ${id}.`);
    return resource;
  }

  /** Returns the resource at a construct path below the stack. Throws if there is none. */
  at(path: string): Resource {
    const resource = this.resources.find((candidate) => candidate.path === path);
    if (!resource) throw new Error(`The template has nothing at ${path}.`);
    return resource;
  }

  /** Returns the resource with this ARN, for references by `Fn::GetAtt`. */
  byArn(arn: string): Resource {
    const resource = this.resources.find(
      ({ id }) => attribute(this, id, 'Arn') === arn || attribute(this, id, 'StreamArn') === arn,
    );
    if (!resource) throw new Error(`The template has nothing with the ARN ${arn}.`);
    return resource;
  }

  /** The values of the stack's outputs. */
  outputs(): Record<string, string> {
    return Object.fromEntries(
      Object.entries(this.#outputs).map(([name, { Value }]) => [name, String(this.resolve(Value))]),
    );
  }

  /** Returns the folder of the unpacked code of a function. */
  getAsset(fn: Resource): string {
    const { S3Key } = fn.properties.Code as { S3Key: string };
    return join(this.#assembly, `asset.${S3Key.replace(/\.zip$/, '')}`);
  }

  /** Returns the result of `Ref` for a resource. */
  ref(id: string): string {
    const { type, properties } = this.get(id);
    const named = (name: string) => this.#text(properties[name]) ?? generatedName(this.name, id);
    switch (type) {
      case 'AWS::DynamoDB::GlobalTable':
      case 'AWS::DynamoDB::Table':
        return named('TableName');
      case 'AWS::SQS::Queue':
        return `https://sqs.${this.region}.amazonaws.com/${ACCOUNT}/${named('QueueName')}`;
      case 'AWS::SNS::Topic':
        return this.#arn('sns', named('TopicName'));
      case 'AWS::SecretsManager::Secret':
        return secretArn(this.region, named('Name'));
      case 'AWS::Lambda::Function':
        return named('FunctionName');
      // The version of a first deployment.
      case 'AWS::Lambda::Version':
        return `${this.#functionArn(properties.FunctionName)}:1`;
      case 'AWS::Lambda::Alias':
        return `${this.#functionArn(properties.FunctionName)}:${named('Name')}`;
      case 'AWS::Events::EventBus':
        return named('Name');
      case 'AWS::ApiGateway::Stage':
        return this.#text(properties.StageName) ?? 'prod';
      case 'AWS::ApiGateway::RestApi':
        return 'restapi0';
      case 'AWS::SES::EmailIdentity':
        return named('EmailIdentity');
      case 'AWS::Logs::LogGroup':
        return named('LogGroupName');
      case 'AWS::S3::Bucket':
        return named('BucketName').toLowerCase();
      default:
        return generatedName(this.name, id);
    }
  }

  /** Resolves the intrinsic functions of a value. Throws for unsupported functions. */
  resolve(value: Value | undefined): unknown {
    if (Array.isArray(value)) return value.map((item) => this.resolve(item));
    if (typeof value !== 'object' || value === null) return value;
    const object = value as { readonly [name: string]: Value };
    const [name = '', argument] = Object.entries(object)[0] ?? [];
    if (Object.keys(object).length !== 1 || !(name === 'Ref' || name.startsWith('Fn::'))) {
      return Object.fromEntries(Object.entries(object).map(([key, item]) => [key, this.resolve(item)]));
    }
    switch (name) {
      case 'Ref':
        return this.#refOrPseudo(String(argument));
      case 'Fn::GetAtt': {
        const [id = '', ...rest] =
          typeof argument === 'string' ? argument.split('.') : (argument as string[]);
        return attribute(this, id, rest.join('.'));
      }
      case 'Fn::Join': {
        const [separator, items] = argument as [string, Value];
        return (this.resolve(items) as string[]).join(separator);
      }
      case 'Fn::Select': {
        const [at, items] = argument as [number, Value];
        return (this.resolve(items) as unknown[])[Number(at)];
      }
      case 'Fn::Split': {
        const [separator, text] = argument as [string, Value];
        return String(this.resolve(text)).split(separator);
      }
      case 'Fn::Sub': {
        const [text, variables] =
          typeof argument === 'string' ? [argument, {}] : (argument as [string, object]);
        return text.replace(/\$\{(!?)([^}]+)\}/g, (_, literal: string, key: string) => {
          if (literal) return `\${${key}}`;
          if (key in variables) return String(this.resolve((variables as Record<string, Value>)[key]));
          return String(key.includes('.') ? this.resolve({ 'Fn::GetAtt': key }) : this.#refOrPseudo(key));
        });
      }
      default:
        throw new Error(`The template uses ${name}, which is not known here.`);
    }
  }

  #refOrPseudo(id: string): string {
    switch (id) {
      case 'AWS::AccountId':
        return ACCOUNT;
      case 'AWS::Region':
        return this.region;
      case 'AWS::Partition':
        return 'aws';
      case 'AWS::URLSuffix':
        return 'amazonaws.com';
      case 'AWS::StackName':
        return this.name;
      default:
        return this.ref(id);
    }
  }

  #text(value: Value | undefined): string | undefined {
    return value === undefined ? undefined : String(this.resolve(value));
  }

  /** Returns the ARN of a function by its name. */
  #functionArn(name: Value | undefined): string {
    return this.#arn('lambda', `function:${this.#text(name)}`);
  }

  #arn(service: string, name: string): string {
    return `arn:aws:${service}:${this.region}:${ACCOUNT}:${name}`;
  }
}

/** The ARN of a secret: Secrets Manager appends six characters to the name. */
export function secretArn(region: string, name: string): string {
  return `arn:aws:secretsmanager:${region}:${ACCOUNT}:secret:${name}-Abc123`;
}

/** Returns the result of `Fn::GetAtt`, or `undefined` if the resource has no such attribute. */
function attribute(template: StackTemplate, id: string, name: string): string | undefined {
  const { type, properties } = template.get(id);
  const ref = template.ref(id);
  const arn = (service: string, rest: string) => `arn:aws:${service}:${template.region}:${ACCOUNT}:${rest}`;
  switch (`${type} ${name}`) {
    case 'AWS::DynamoDB::GlobalTable Arn':
    case 'AWS::DynamoDB::Table Arn':
      return arn('dynamodb', `table/${ref}`);
    case 'AWS::DynamoDB::GlobalTable StreamArn':
    case 'AWS::DynamoDB::Table StreamArn':
      return properties.StreamSpecification
        ? arn('dynamodb', `table/${ref}/stream/2026-01-01T00:00:00.000`)
        : undefined;
    case 'AWS::SQS::Queue Arn':
      return arn('sqs', queueName(ref));
    case 'AWS::SQS::Queue QueueName':
      return queueName(ref);
    case 'AWS::SNS::Topic TopicArn':
    case 'AWS::SNS::Topic Arn':
      return ref;
    case 'AWS::SNS::Topic TopicName':
      return ref.split(':').at(-1);
    case 'AWS::SecretsManager::Secret Arn':
      return ref;
    case 'AWS::Lambda::Function Arn':
      return arn('lambda', `function:${ref}`);
    case 'AWS::Lambda::Version Version':
      return ref.split(':').at(-1);
    case 'AWS::Events::EventBus Arn':
      return arn('events', `event-bus/${ref}`);
    case 'AWS::Logs::LogGroup Arn':
      return arn('logs', `log-group:${ref}:*`);
    case 'AWS::IAM::Role Arn':
      return `arn:aws:iam::${ACCOUNT}:role/${ref}`;
    case 'AWS::KMS::Key Arn':
      return arn('kms', `key/${ref}`);
    case 'AWS::S3::Bucket Arn':
      return `arn:aws:s3:::${ref}`;
    case 'AWS::CloudFront::Distribution DomainName':
      return 'd111111abcdef8.cloudfront.net';
    case 'AWS::ApiGateway::RestApi RootResourceId':
      return ROOT;
    default:
      return undefined;
  }
}

/** The id of the root resource of a REST API. */
export const ROOT = 'root';

/** Returns the name of the queue of a URL. */
export function queueName(url: string): string {
  return url.split('/').at(-1) ?? '';
}

/** Returns a name as CloudFormation generates it: from the stack, the resource, and a suffix. */
function generatedName(stack: string, id: string): string {
  return `${stack.slice(0, 24)}-${id.slice(0, 24)}-X1Y2Z3`;
}

function getPath(path: string, stack: string): string {
  return path.replace(`${stack}/`, '').replace(/\/Resource$/, '');
}
