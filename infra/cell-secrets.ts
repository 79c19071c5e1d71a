import { ArnFormat, Stack, Token } from 'aws-cdk-lib';
import { Construct } from 'constructs';
import { SECRETS_CONTEXT, secretPrefix, secretsContext } from '../shared/secrets.ts';
import { alertTargetPk, credentialsPk, dataKeyPk, endpointSecretsPk } from '../shared/storage/schema.ts';
import { acknowledge } from './acknowledge.ts';
import type { Cell } from './cell.ts';
import type { CellFunction } from './cell-function.ts';
import type { CellKey } from './cell-key.ts';
import { allow, type StateTable } from './state-table.ts';

/** Partitions of credentials of accounts, signing secrets of endpoints and targets of alert rules. */
const PARTITIONS = { accounts: credentialsPk, endpoints: endpointSecretsPk, alerts: alertTargetPk };

interface Props extends Cell {
  readonly table: StateTable;
  readonly key: CellKey;
}

/**
 * The cell's secrets: credentials of accounts, signing secrets of endpoints and targets of alert rules, encrypted in
 * the state table by data keys (functions/secrets.ts). The owners of accounts can keep credentials in Secrets Manager
 * instead, below a prefix. Functions only read those.
 */
export class CellSecrets extends Construct {
  readonly #props: Props;

  constructor(scope: Construct, id: string, props: Props) {
    super(scope, id);
    this.#props = props;
  }

  /** Grants reading all secrets of a kind. */
  grantRead(fn: CellFunction, kind: keyof typeof PARTITIONS): void {
    const { table, key, region } = this.#props;
    allow(fn, table.table, [[['GetItem'], [PARTITIONS[kind](region), dataKeyPk(region)]]]);
    this.#allowKey(fn, 'Decrypt');
    fn.set('JOBWIRE_KEY_ARN', key.arn);
    if (kind === 'accounts') this.#allowOwned(fn);
  }

  /** Grants storing, reading and deleting all secrets of a kind. */
  grantManage(fn: CellFunction, kind: keyof typeof PARTITIONS): void {
    const { table, region } = this.#props;
    this.grantRead(fn, kind);
    allow(fn, table.table, [
      [['PutItem', 'DeleteItem'], [PARTITIONS[kind](region)]],
      // A new data key replaces none.
      [['Query', 'PutItem'], [dataKeyPk(region)]],
    ]);
    this.#allowKey(fn, 'GenerateDataKeyWithoutPlaintext');
  }

  /** Allows an action on data keys of this cell only. */
  #allowKey(fn: CellFunction, action: string): void {
    const { stage, id: cell, key } = this.#props;
    const context = secretsContext(stage.stage, cell)[SECRETS_CONTEXT];
    fn.permit([`kms:${action}`], [key.arn], {
      StringEquals: { [`kms:EncryptionContext:${SECRETS_CONTEXT}`]: context },
    });
  }

  /** Allows reading the owners' secrets in Secrets Manager. */
  #allowOwned(fn: CellFunction): void {
    const { stage, id: cell } = this.#props;
    const name = `${secretPrefix(stage.stage, cell)}*`;
    const stack = Stack.of(this);
    const resource = stack.formatArn({
      service: 'secretsmanager',
      resource: 'secret',
      resourceName: name,
      arnFormat: ArnFormat.COLON_RESOURCE_NAME,
    });
    fn.permit(['secretsmanager:GetSecretValue'], [resource]);
    const owner = Token.isUnresolved(stack.account) ? '<AWS::AccountId>' : stack.account;
    acknowledge(fn.role ?? fn, {
      [`AwsSolutions-IAM5[Resource::arn:aws:secretsmanager:${stack.region}:${owner}:secret:${name}]`]:
        'Accounts are registered after deployment, each with a secret reference.',
    });
  }
}
