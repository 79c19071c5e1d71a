/** Synthesizes cells with settings of the test. Their functions are not bundled. */
import { App } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import cdkJson from '../../cdk.json' with { type: 'json' };
import { toCell } from '../../infra/cell.ts';
import { CellStack } from '../../infra/cell-stack.ts';
import { type CellSettings, readStages, type StageSettings } from '../../infra/settings.ts';
import { makeDashboardFolder } from './dashboard-files.ts';

/** A statement of a policy in a template. */
export interface Statement {
  readonly Effect: string;
  readonly Action: string | readonly string[];
  readonly Resource: unknown;
  /** All resources except these. */
  readonly NotResource?: unknown;
  readonly Principal?: unknown;
  readonly Condition?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

/** A resource of a template. */
export interface Resource {
  readonly Type: string;
  // biome-ignore lint/suspicious/noExplicitAny: a template is looked into, wherever a test wants to
  readonly Properties: any;
  readonly DeletionPolicy?: string;
  readonly UpdateReplacePolicy?: string;
  readonly DependsOn?: readonly string[];
}

/** The committed example of a settings file. */
export const EXAMPLE_SETTINGS = 'jobwire.cells.example.json';
/** The stages of the example, with established cells, independent of the AWS account. */
export const stages = readStages(EXAMPLE_SETTINGS).map(({ awsAccount: _, ...stage }) => ({
  ...stage,
  cells: Object.fromEntries(
    Object.entries(stage.cells).map(([region, cell]) => [region, { ...cell, established: true }]),
  ),
}));

/** Settings of a cell that turn on every option. */
export const EVERY_OPTION = {
  ...{ customerKey: true, standardTopic: true, monthlyBudget: 200 },
  hostedZone: { id: 'Z0123456789ABC', name: 'jobwire.example' },
  dashboardDomain: { name: 'us.jobwire.example' },
  apiDomain: { name: 'api.us.jobwire.example' },
  backup: {
    ...{ vault: 'backups', retentionDays: 7 },
    copyTo: 'arn:aws:backup:eu-central-1:111122223333:backup-vault:jobwire',
  },
  staticEgress: { natGateways: 2 },
  queues: [{ arn: 'arn:aws:sqs:us-east-1:111122223333:erp-jobs.fifo' }],
} satisfies Partial<CellSettings>;

const dashboard = makeDashboardFolder();

type Synthesized = ReturnType<typeof synthesizeAnew>;
const synthesized = new Map<string, Synthesized>();

/**
 * Returns the cell `us` of a stage, with changed settings. The same settings are synthesized once. Do not change the result.
 */
export function synthesize(...settings: Parameters<typeof synthesizeAnew>): Synthesized {
  // An absent setting and an undefined one are two cells.
  const key = JSON.stringify(settings, (_, value) => (value === undefined ? 'undefined' : value));
  const cell = synthesized.get(key) ?? withShortStacks(() => synthesizeAnew(...settings));
  synthesized.set(key, cell);
  return cell;
}

/** The CDK captures a stack for each of its values, of which these tests need nothing. Vitest makes them long. */
function withShortStacks<T>(act: () => T): T {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 2;
  try {
    return act();
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

function synthesizeAnew(
  stageName: 'prod' | 'dev',
  other: {
    readonly stage?: Partial<StageSettings>;
    readonly cell?: Partial<CellSettings>;
    /** Name of the cell. Default: `us`. */
    readonly id?: string;
  } = {},
) {
  const stage = stages.find((one) => one.stage === stageName);
  if (!stage?.cells.us) throw new Error('There is no such cell.');
  const app = new App({
    // Without the metadata for the CDK's own tools.
    ...{ analyticsReporting: false, stackTraces: false, treeMetadata: false },
    context: { ...cdkJson.context, 'aws:cdk:bundling-stacks': [] },
  });
  const cell = toCell({ ...stage, ...other.stage }, other.id ?? 'us', { ...stage.cells.us, ...other.cell });
  const stack = new CellStack(app, { ...cell, dashboard });
  const template = Template.fromStack(stack);
  const resources = (type: string): [string, Resource][] =>
    Object.entries(template.findResources(type)) as [string, Resource][];
  // The CDK moves statements that exceed the maximum size of a role's policy to another policy.
  const policies = () => ['AWS::IAM::Policy', 'AWS::IAM::ManagedPolicy'].flatMap(resources);
  return {
    app,
    template,
    resources,
    policies,
    /** Returns the functions by the names of their entry files, with the permissions of their roles. */
    functions(): { readonly id: string; readonly fn: Resource; readonly statements: Statement[] }[] {
      return resources('AWS::Lambda::Function').map(([id, fn]) => ({
        id,
        fn,
        statements: getStatements(policies(), fn.Properties.Role['Fn::GetAtt'][0]),
      }));
    },
  };
}

/** Returns the permissions of a role. */
export function getStatements(policies: readonly [string, Resource][], role: string): Statement[] {
  return policies
    .filter(([, { Properties }]) => (Properties.Roles as { Ref: string }[]).some(({ Ref }) => Ref === role))
    .flatMap(([, { Properties }]) => Properties.PolicyDocument.Statement as Statement[]);
}
