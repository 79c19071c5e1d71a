/** Enforces a role's policy on a table, because no emulator implements IAM completely. */
import { getKey, type Table, type Write } from '../../shared/storage/table.ts';
import type { Statement } from './cells.ts';

/** Permissions of a function on a table: one for each action on partitions or on an index. */
export interface Grant {
  readonly action: string;
  /** Absent for an index: all its partitions. */
  readonly pattern?: string;
  readonly index?: string;
  /** The statement. All keys of one call must match the same statement. */
  readonly statement: number;
}

/** Returns the permissions of statements on a table of the template, by its logical id. */
export function grantsOn(tableId: string, statements: readonly Statement[]): Grant[] {
  const table = JSON.stringify({ 'Fn::GetAtt': [tableId, 'Arn'] });
  return statements.flatMap((statement, at) =>
    [statement.Resource ?? []].flat().flatMap((resource) => {
      const text = JSON.stringify(resource);
      const index = text.includes(table) ? /"\/index\/(\w+)"/.exec(text)?.[1] : undefined;
      const actions = [statement.Action].flat().map((action) => action.replace(/^dynamodb:/, ''));
      return actions.flatMap((action): Grant[] => {
        if (index !== undefined) return [{ action, index, statement: at }];
        return text === table
          ? leadingKeys(statement).map((pattern) => ({ action, pattern, statement: at }))
          : [];
      });
    }),
  );
}

/** Returns the partitions of a statement. */
export function leadingKeys({ Condition }: Statement): string[] {
  return [Condition?.['ForAllValues:StringLike']?.['dynamodb:LeadingKeys'] ?? []].flat() as string[];
}

/** A table that executes the calls that the policy allows, records them, and rejects the others, as IAM does. */
export function guarded(
  name: string,
  granted: readonly Grant[],
  table: Table,
): Table & { unused(): Grant[] } {
  const used = new Set<Grant>();
  function demand(action: string, pk: string, index?: string): void {
    const grants = granted.filter(
      (grant) =>
        grant.action === action &&
        grant.index === index &&
        (grant.pattern === undefined || like(grant.pattern, pk)),
    );
    if (grants.length === 0) {
      throw new Error(`${name} may not ${action} ${pk}${index ? ` of index ${index}` : ''}.`);
    }
    for (const grant of grants) used.add(grant);
  }
  /** The keys of a batch are checked together: one statement must allow all of them. */
  function demandBatch(action: string, keys: readonly { readonly pk: string }[]): void {
    for (const { pk } of keys) demand(action, pk);
    const statements = new Set(granted.map(({ statement }) => statement));
    const allows = (at: number, pk: string) =>
      granted.some(
        (grant) => grant.statement === at && grant.action === action && like(grant.pattern ?? '', pk),
      );
    if (keys.length > 0 && ![...statements].some((at) => keys.every(({ pk }) => allows(at, pk)))) {
      const names = new Set(keys.map(({ pk }) => pk));
      throw new Error(`${name} may not ${action} ${[...names].join(' and ')} in one call.`);
    }
  }
  function demandWrite(write: Write): void {
    if ('put' in write) demand('PutItem', write.put.pk);
    else if ('update' in write) demand('UpdateItem', write.update.pk);
    else if ('delete' in write) demand('DeleteItem', write.delete.pk);
    else demand('ConditionCheckItem', write.check.pk);
  }
  return {
    async get(key) {
      demand('GetItem', key.pk);
      return table.get(key);
    },
    async getMany(wanted) {
      demandBatch('BatchGetItem', wanted);
      return table.getMany(wanted);
    },
    async query(query) {
      demand('Query', query.pk, query.index);
      return table.query(query);
    },
    async write(write) {
      demandWrite(write);
      // A failed condition returns the item, so any conditional write may need read permission.
      if ((write.when ?? []).length > 0) demand('GetItem', getKey(write).pk);
      return table.write(write);
    },
    async putMany(items) {
      demandBatch('BatchWriteItem', items);
      return table.putMany(items);
    },
    async transact(writes, token) {
      for (const write of writes) demandWrite(write);
      return table.transact(writes, token);
    },
    units: () => table.units(),
    unused: () => granted.filter((grant) => !used.has(grant)),
  };
}

/** IAM's StringLike, as far as it is used here. */
export function like(pattern: string, text: string): boolean {
  const [beginning = '', ...rest] = pattern.split('*');
  return rest.length === 0 ? text === pattern : text.startsWith(beginning);
}
