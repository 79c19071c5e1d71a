/** Checks of the settings file across cells and stages. */
import * as z from 'zod';

const REGION_RULE = 'must be a region of the ordering API: us, nz, au, uk or eu';
/** The regions of the ordering API. */
export const ApiRegion = z.enum(['us', 'nz', 'au', 'uk', 'eu'], REGION_RULE);
/** A region of the ordering API. */
export type ApiRegion = z.infer<typeof ApiRegion>;

/** The ARN of an SES identity: its AWS region, its name. */
export const IDENTITY_ARN = /^arn:[^:]+:ses:([^:]+):\d{12}:identity\/(.+)$/;

/** Lambda limits all variables of a function together to 4 kB. */
export const MAX_SIGN_IN = 2_500;

/** The cells of a stage by name. */
type Cells = Readonly<
  Record<
    string,
    {
      readonly region?: ApiRegion | undefined;
      readonly awsRegion: string;
      readonly notifications?: { readonly identity: string } | undefined;
      readonly dashboardDomain?: { readonly name: string } | undefined;
      readonly apiDomain?: { readonly name: string } | undefined;
      readonly stateTable?: { readonly name: string; readonly streamArn: string } | undefined;
    }
  >
>;
interface Stage {
  readonly stage: string;
  readonly cells: Cells;
}

/** A cell with the name of a region belongs to that region; any other cell names its region. */
export function checkRegions(cells: Cells, context: z.RefinementCtx): void {
  for (const [id, { region }] of Object.entries(cells)) {
    const named = ApiRegion.safeParse(id).data;
    const message =
      named === undefined
        ? region === undefined && `must be given, because ${id} is not a region: us, nz, au, uk or eu`
        : region !== undefined &&
          region !== named &&
          `must be ${named} or be omitted, because the cell has the name of this region`;
    if (message) context.addIssue({ code: 'custom', path: [id, 'region'], message });
  }
}

/** An AWS region has one SES identity of a name; only one stack can create it. */
export function checkIdentities(cells: Cells, context: z.RefinementCtx): void {
  const makers = new Map<string, string>();
  for (const [id, { awsRegion, notifications }] of Object.entries(cells)) {
    if (!notifications || IDENTITY_ARN.test(notifications.identity)) continue;
    const place = `${awsRegion} ${notifications.identity}`;
    const maker = makers.get(place);
    if (maker !== undefined) {
      const message = `must be the ARN of the identity that the cell ${maker} creates in the same AWS region`;
      context.addIssue({ code: 'custom', path: [id, 'notifications', 'identity'], message });
    }
    makers.set(place, id);
  }
}

/** Names consist of stage and cell, so two stages with one name would be the same stacks. */
export function checkStageNames(all: readonly Stage[], context: z.RefinementCtx): void {
  const names = all.map(({ stage }) => stage);
  const twin = names.findIndex((name, at) => names.indexOf(name) !== at);
  if (twin >= 0) context.addIssue({ code: 'custom', path: [twin, 'stage'], message: 'must be unique' });
}

/** Host names and existing tables belong to one cell: two with the same table would write to each other's logs. */
export function checkShared(stages: readonly Stage[], context: z.RefinementCtx): void {
  const owners = new Map<string, string>();
  for (const [at, { stage, cells }] of stages.entries()) {
    for (const [id, { dashboardDomain, apiDomain, stateTable }] of Object.entries(cells)) {
      const own = {
        dashboardDomain: [['dashboardDomain', 'name'], dashboardDomain?.name],
        apiDomain: [['apiDomain', 'name'], apiDomain?.name],
        // The ARN contains the AWS account and the AWS region.
        stateTable: [['stateTable', 'name'], stateTable?.streamArn.split('/stream/')[0]],
      } as const;
      for (const [kind, [path, value]] of Object.entries(own)) {
        if (value === undefined) continue;
        // A host name serves either a dashboard or an API.
        const key = kind.endsWith('Domain') ? `domain ${value}` : `${kind} ${value}`;
        const owner = owners.get(key);
        if (owner !== undefined) {
          const message = `must not be that of the cell ${owner}`;
          context.addIssue({ code: 'custom', path: [at, 'cells', id, ...path], message });
        }
        owners.set(key, `${stage}-${id}`);
      }
    }
  }
}

/** The settings that are in the environment of a function must fit into it together. */
export function checkEnvironment(
  stage: {
    readonly signIn?: object | undefined;
    readonly api: { readonly corsOrigins: readonly string[] };
    readonly cells: Readonly<Record<string, { readonly queues: readonly { readonly arn: string }[] }>>;
  },
  context: z.RefinementCtx,
): void {
  const used = (stage.signIn ? JSON.stringify(stage.signIn).length : 0) + stage.api.corsOrigins.join().length;
  if (used > MAX_SIGN_IN) {
    const message = `must have at most ${MAX_SIGN_IN} characters together with signIn, because both are in the environment of functions`;
    context.addIssue({ code: 'custom', path: ['api', 'corsOrigins'], message });
  }
  for (const [id, { queues }] of Object.entries(stage.cells)) {
    if (queues.map(({ arn }) => arn).join().length + used <= MAX_SIGN_IN) continue;
    const message = `must have ARNs of at most ${MAX_SIGN_IN} characters together with signIn and api.corsOrigins, because all are in the environment of functions`;
    context.addIssue({ code: 'custom', path: ['cells', id, 'queues'], message });
  }
}
