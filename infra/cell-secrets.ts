import { ArnFormat, Stack, Token, Validations } from 'aws-cdk-lib';
import { PolicyStatement } from 'aws-cdk-lib/aws-iam';
import { Construct } from 'constructs';
import { secretNames } from '../shared/secrets.ts';
import type { Cell } from './cell.ts';
import type { CellFunction } from './cell-function.ts';

/** Permissions to create, change and delete secrets. */
const MANAGE = ['GetSecretValue', 'CreateSecret', 'PutSecretValue', 'DeleteSecret', 'RestoreSecret'];

/**
 * The cell's secrets: credentials of accounts, signing secrets of endpoints. The functions that register them
 * create them under a prefix, so grants apply to all secrets of a prefix.
 */
export class CellSecrets extends Construct {
  readonly #names: ReturnType<typeof secretNames>;

  constructor(scope: Construct, id: string, { stage, region }: Cell) {
    super(scope, id);
    this.#names = secretNames(stage.stage, region);
  }

  /** Grants reading the credentials of all accounts of the cell. */
  grantReadAccounts(fn: CellFunction): void {
    this.#allowBelow(
      fn,
      this.#names.accounts,
      'Accounts are registered after deployment, each with a secret reference.',
    );
  }

  /** Grants creating, changing and deleting the credentials of all accounts of the cell. */
  grantManageAccounts(fn: CellFunction): void {
    this.#allowBelow(
      fn,
      this.#names.accounts,
      'Accounts are registered after deployment, each with a secret reference.',
      MANAGE,
    );
  }

  /** Grants reading the signing secrets of all endpoints of the cell. */
  grantReadEndpoints(fn: CellFunction): void {
    this.#allowBelow(
      fn,
      this.#names.endpoints,
      'Endpoints are registered after deployment, each with signing secrets.',
    );
  }

  /** Grants creating, changing and deleting the signing secrets of all endpoints of the cell. */
  grantManageEndpoints(fn: CellFunction): void {
    this.#allowBelow(
      fn,
      this.#names.endpoints,
      'Endpoints are registered after deployment, each with signing secrets.',
      MANAGE,
    );
  }

  #allowBelow(
    fn: CellFunction,
    name: string,
    reason: string,
    actions: readonly string[] = ['GetSecretValue'],
  ): void {
    const arn = Stack.of(this).formatArn({
      service: 'secretsmanager',
      resource: 'secret',
      resourceName: `${name}*`,
      arnFormat: ArnFormat.COLON_RESOURCE_NAME,
    });
    this.#allow(fn, arn, actions);
    const { region, account } = Stack.of(this);
    const owner = Token.isUnresolved(account) ? '<AWS::AccountId>' : account;
    Validations.of(fn.role ?? fn).acknowledge({
      id: `AwsSolutions-IAM5[Resource::arn:aws:secretsmanager:${region}:${owner}:secret:${name}*]`,
      reason,
    });
  }

  #allow(fn: CellFunction, arn: string, actions: readonly string[]): void {
    fn.addToRolePolicy(
      new PolicyStatement({
        actions: actions.map((action) => `secretsmanager:${action}`),
        resources: [arn],
      }),
    );
  }
}
