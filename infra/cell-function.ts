import { Duration, RemovalPolicy, Stack } from 'aws-cdk-lib';
import { ManagedPolicy, Policy, PolicyStatement, Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { Alias, Architecture, type IFunction, Runtime, Tracing } from 'aws-cdk-lib/aws-lambda';
import { type BundlingOptions, NodejsFunction } from 'aws-cdk-lib/aws-lambda-nodejs';
import { LogGroup } from 'aws-cdk-lib/aws-logs';
import type { Construct } from 'constructs';
import type * as z from 'zod';
import type { EnvName } from '../functions/env.ts';
import { bundling, entryPath } from './bundling.ts';
import type { Cell } from './cell.ts';

interface Props extends Cell {
  /** Name of the entry file in `functions/`, without its extension. */
  readonly entry: string;
  /** Schema of the environment that the entry file reads. Synthesis fails if a variable was not set. */
  readonly env: z.ZodObject;
  readonly description: string;
  /** Only for a function that operators invoke by name. */
  readonly functionName?: string;
  readonly timeout: Duration;
  readonly memoryMb: number;
  /** For functions that are invoked asynchronously: no retries and no queueing. */
  readonly invokedOnce?: boolean;
  /** Whether the option `canary` applies: callers and event sources then use an alias. */
  readonly gradual?: boolean;
  /** For functions with files beside the bundle; see bundling.ts. */
  readonly bundling?: BundlingOptions;
}

/**
 * A function of a cell: bundled, with its own role and log group. Its environment results from its grants.
 */
export class CellFunction extends NodejsFunction {
  readonly #set = new Set<string>();
  /** The alias of the current version, for a gradual deployment. Absent: the function is replaced at once. */
  readonly alias: Alias | undefined;

  constructor(scope: Construct, id: string, props: Props) {
    const { stage, id: cell, region } = props;
    // A separate role, because the role that CDK creates has a managed policy for all log groups.
    const logGroup = new LogGroup(scope, `${id}Logs`, {
      retention: stage.logRetention,
      removalPolicy: RemovalPolicy.DESTROY,
    });
    const role = new Role(scope, `${id}Role`, { assumedBy: new ServicePrincipal('lambda.amazonaws.com') });
    logGroup.grantWrite(role);
    super(scope, id, {
      entry: entryPath(props.entry),
      handler: 'handler',
      description: props.description,
      ...(props.functionName === undefined ? {} : { functionName: props.functionName }),
      runtime: Runtime.NODEJS_24_X,
      architecture: Architecture.ARM_64,
      timeout: props.timeout,
      memorySize: props.memoryMb,
      role,
      logGroup,
      tracing: Tracing.DISABLED,
      ...(props.invokedOnce ? { retryAttempts: 0, maxEventAge: Duration.minutes(1) } : {}),
      bundling: props.bundling ?? bundling,
    });
    this.alias =
      props.gradual && stage.canary
        ? new Alias(this, 'Alias', { aliasName: 'live', version: this.currentVersion })
        : undefined;
    this.addEnvironment('NODE_OPTIONS', '--enable-source-maps');
    this.set('JOBWIRE_STAGE', stage.stage);
    this.set('JOBWIRE_CELL', cell);
    this.set('JOBWIRE_REGION', region);
    this.node.addValidation({
      validate: () =>
        Object.entries(props.env.shape)
          .filter(([name, value]) => !this.#set.has(name) && !value.safeParse(undefined).success)
          .map(([name]) => `${props.entry} needs ${name}, and nothing sets it.`),
    });
  }

  /** Target of callers and event sources: the alias, if there is one. */
  get target(): IFunction {
    return this.alias ?? this;
  }

  /** Returns the AWS services that it has any permission for, by action prefix. */
  grantedServices(): ReadonlySet<string> {
    // The CDK moves statements that exceed a role's own policy into another policy.
    const policies =
      this.role?.node
        .findAll()
        .filter((child) => child instanceof Policy || child instanceof ManagedPolicy) ?? [];
    const statements = policies.flatMap(({ document }) => {
      const { Statement = [] } = Stack.of(this).resolve(document) as {
        Statement?: { Action: string | string[] }[];
      };
      return Statement;
    });
    return new Set(statements.flatMap(({ Action }) => Action).map((action) => action.split(':')[0] ?? ''));
  }

  /** Allows actions on resources. */
  permit(actions: string[], resources: string[], conditions: Readonly<Record<string, object>> = {}): void {
    this.addToRolePolicy(new PolicyStatement({ actions, resources, conditions }));
  }

  /** Sets a variable that a function's environment schema names. */
  set(name: EnvName, value: string): void {
    this.#set.add(name);
    this.addEnvironment(name, value);
  }
}
