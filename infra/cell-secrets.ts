import { ArnFormat, Stack, Token, Validations } from 'aws-cdk-lib';
import { PolicyStatement } from 'aws-cdk-lib/aws-iam';
import { Construct } from 'constructs';
import { SECRETS_CONTEXT, secretPrefix, secretsContext } from '../shared/secrets.ts';
import { alertTargetPk, credentialsPk, dataKeyPk, endpointSecretsPk } from '../shared/storage/schema.ts';
import type { Cell } from './cell.ts';
import type { CellFunction } from './cell-function.ts';
import type { CellKey } from './cell-key.ts';
import { allow, type StateTable } from './state-table.ts';

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

  /** Grants reading the credentials of all accounts of the cell. */
  grantReadAccounts(fn: CellFunction): void {
    this.#allowReading(fn, credentialsPk(this.#props.region));
    this.#allowOwned(fn);
  }

  /** Grants storing, reading and deleting the credentials of all accounts of the cell. */
  grantManageAccounts(fn: CellFunction): void {
    this.grantReadAccounts(fn);
    this.#allowWriting(fn, credentialsPk(this.#props.region));
  }

  /** Grants reading the signing secrets of all endpoints of the cell. */
  grantReadEndpoints(fn: CellFunction): void {
    this.#allowReading(fn, endpointSecretsPk(this.#props.region));
  }

  /** Grants storing, reading and deleting the signing secrets of all endpoints of the cell. */
  grantManageEndpoints(fn: CellFunction): void {
    this.grantReadEndpoints(fn);
    this.#allowWriting(fn, endpointSecretsPk(this.#props.region));
  }

  /** Grants reading the targets of alert rules. */
  grantReadAlerts(fn: CellFunction): void {
    this.#allowReading(fn, alertTargetPk(this.#props.region));
  }

  /** Grants storing, reading and deleting the targets of alert rules. */
  grantManageAlerts(fn: CellFunction): void {
    this.grantReadAlerts(fn);
    this.#allowWriting(fn, alertTargetPk(this.#props.region));
  }

  #allowReading(fn: CellFunction, partition: string): void {
    const { table, key, region } = this.#props;
    allow(fn, table.table, ['GetItem'], [partition, dataKeyPk(region)]);
    this.#allowKey(fn, 'Decrypt');
    fn.set('JOBWIRE_KEY_ARN', key.arn);
  }

  #allowWriting(fn: CellFunction, partition: string): void {
    const { table, region } = this.#props;
    allow(fn, table.table, ['PutItem', 'DeleteItem'], [partition]);
    // A new data key replaces none.
    allow(fn, table.table, ['Query', 'PutItem'], [dataKeyPk(region)]);
    this.#allowKey(fn, 'GenerateDataKeyWithoutPlaintext');
  }

  /** Allows an action on data keys of this cell only. */
  #allowKey(fn: CellFunction, action: string): void {
    const { stage, id: cell, key } = this.#props;
    fn.addToRolePolicy(
      new PolicyStatement({
        actions: [`kms:${action}`],
        resources: [key.arn],
        conditions: {
          StringEquals: {
            [`kms:EncryptionContext:${SECRETS_CONTEXT}`]: secretsContext(stage.stage, cell)[SECRETS_CONTEXT],
          },
        },
      }),
    );
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
    fn.addToRolePolicy(
      new PolicyStatement({ actions: ['secretsmanager:GetSecretValue'], resources: [resource] }),
    );
    const owner = Token.isUnresolved(stack.account) ? '<AWS::AccountId>' : stack.account;
    Validations.of(fn.role ?? fn).acknowledge({
      id: `AwsSolutions-IAM5[Resource::arn:aws:secretsmanager:${stack.region}:${owner}:secret:${name}]`,
      reason: 'Accounts are registered after deployment, each with a secret reference.',
    });
  }
}
