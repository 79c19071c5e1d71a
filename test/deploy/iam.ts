/** The permissions of a role by the policies of the template, and which of them were used. */
import type { Resource, StackTemplate, Value } from './template.ts';

/** A request as seen by IAM. */
export interface Access {
  /** `dynamodb:PutItem` */
  readonly action: string;
  readonly resource: string;
  /** Condition keys and their values. */
  readonly context?: Readonly<Record<string, readonly string[]>>;
}

interface Statement {
  readonly Effect: 'Allow' | 'Deny';
  readonly Action: readonly string[];
  readonly Resource: readonly string[];
  /** All resources except these. */
  readonly NotResource: readonly string[] | undefined;
  readonly Condition: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;
}

/** A role: its policies, denied requests, and used permissions. */
export class Role {
  readonly name: string;
  readonly arn: string;
  /** Error messages of the denied requests. */
  readonly denied: string[] = [];
  readonly #statements: readonly Statement[];
  readonly #used = new Set<string>();

  constructor(template: StackTemplate, id: string, name: string) {
    this.name = name;
    this.arn = String(template.resolve({ 'Fn::GetAtt': [id, 'Arn'] }));
    this.#statements = getPolicies(template, id).flatMap((policy) =>
      (template.resolve(policy.Statement as Value) as Record<string, never>[]).map(toStatement),
    );
  }

  /** Returns whether the request is allowed, and records a denial. Throws for unsupported conditions. */
  may(access: Access): boolean {
    const fitting = this.#statements.filter((statement) => fits(statement, access));
    const granted = fitting.filter(({ Effect }) => Effect === 'Allow');
    if (granted.length === 0 || fitting.some(({ Effect }) => Effect === 'Deny')) {
      const about = Object.entries(access.context ?? {}).map(([key, values]) => ` with ${key} ${values}`);
      this.denied.push(`${this.name} may not ${access.action} on ${access.resource}${about.join('')}.`);
      return false;
    }
    for (const statement of granted) this.#used.add(grantName(statement, access.action));
    return true;
  }

  /** Actions of statements that no request needed: `dynamodb:Query on LOG#us#*, PARKED#us#*`. */
  unused(): string[] {
    return this.#statements
      .filter(({ Effect }) => Effect === 'Allow')
      .flatMap((statement) => statement.Action.map((action) => grantName(statement, action)))
      .filter((grant) => !this.#used.has(grant));
  }
}

function getPolicies(template: StackTemplate, roleId: string): Record<string, Value>[] {
  const role = template.get(roleId);
  if (role.properties.ManagedPolicyArns)
    throw new Error(`${role.path} has managed policies, which are not known here.`);
  const inline = (role.properties.Policies ?? []) as { PolicyDocument: Record<string, Value> }[];
  const attached = template
    .ofType('AWS::IAM::Policy')
    .concat(template.ofType('AWS::IAM::ManagedPolicy'))
    .filter(({ properties }) => refers(properties.Roles, roleId))
    .map(({ properties }: Resource) => properties as unknown as { PolicyDocument: Record<string, Value> });
  return [...inline, ...attached].map(({ PolicyDocument }) => PolicyDocument);
}

function refers(list: Value | undefined, id: string): boolean {
  return Array.isArray(list) && list.some((item) => (item as { Ref?: string }).Ref === id);
}

function toStatement(raw: Record<string, never>): Statement {
  for (const part of ['NotAction', 'Principal']) {
    if (part in raw) throw new Error(`A policy uses ${part}, which is not known here.`);
  }
  const { Effect, Action, Resource = [], NotResource, Condition = {} } = raw as unknown as Statement;
  return {
    Effect,
    Action: toList(Action),
    Resource: toList(Resource),
    NotResource: NotResource && toList(NotResource),
    Condition: Object.fromEntries(
      Object.entries(Condition).map(([operator, keys]) => [
        operator,
        Object.fromEntries(Object.entries(keys).map(([key, values]) => [key, toList(values)])),
      ]),
    ),
  };
}

function fits(statement: Statement, { action, resource, context = {} }: Access): boolean {
  return (
    statement.Action.some((pattern) => like(action.toLowerCase(), pattern.toLowerCase())) &&
    isAbout(statement, resource) &&
    Object.entries(statement.Condition).every(([operator, keys]) =>
      Object.entries(keys).every(([key, wanted]) => holds(operator, context[key], wanted)),
    )
  );
}

function isAbout({ Resource, NotResource }: Statement, resource: string): boolean {
  if (NotResource) return !NotResource.some((pattern) => like(resource, pattern));
  return Resource.some((pattern) => like(resource, pattern));
}

function holds(operator: string, values: readonly string[] | undefined, wanted: readonly string[]): boolean {
  const [quantifier, test] = operator.includes(':') ? operator.split(':') : ['ForAnyValue', operator];
  if (test === 'Null') return wanted.includes(String(values === undefined));
  const one = (value: string): boolean => {
    switch (test) {
      case 'StringEquals':
      case 'Bool':
        return wanted.includes(value);
      case 'StringLike':
      case 'ArnLike':
        return wanted.some((pattern) => like(value, pattern));
      default:
        throw new Error(`A policy has the condition ${operator}, which is not known here.`);
    }
  };
  // "For all values" is also true without any value.
  return quantifier === 'ForAllValues' ? (values ?? []).every(one) : (values ?? []).some(one);
}

/** `*` matches any text, `?` any character. */
function like(text: string, pattern: string): boolean {
  const source = pattern
    .replace(/[.+^${}()|[\]\\]/g, '\\$&')
    .replaceAll('*', '.*')
    .replaceAll('?', '.');
  return new RegExp(`^${source}$`, 's').test(text);
}

function grantName(statement: Statement, action: string): string {
  const granted = statement.Action.find((pattern) => like(action.toLowerCase(), pattern.toLowerCase()));
  const keys = statement.Condition['ForAllValues:StringLike']?.['dynamodb:LeadingKeys'];
  const named = (arn: string) => arn.split(':').slice(5).join(':') || arn;
  const others = statement.NotResource?.map((arn) => `all but ${arn}`);
  const on = keys ?? others ?? statement.Resource.map(named);
  return `${granted} on ${on.join(', ')}`;
}

function toList<T>(value: T | readonly T[]): readonly T[] {
  return Array.isArray(value) ? value : [value as T];
}
