import { ArnFormat, RemovalPolicy, Stack, Validations } from 'aws-cdk-lib';
import { PolicyStatement } from 'aws-cdk-lib/aws-iam';
import { type ISecret, Secret } from 'aws-cdk-lib/aws-secretsmanager';
import { Construct } from 'constructs';
import { secretNames } from '../shared/secrets.ts';
import type { CellFunction } from './cell-function.ts';
import type { Cell } from './cell-stack.ts';

/** What it takes to make secrets, to change and to delete them. */
const MANAGE = ['GetSecretValue', 'CreateSecret', 'PutSecretValue', 'DeleteSecret', 'RestoreSecret'];

/**
 * The cell's secrets. The API's key is made here; credentials of accounts and signing secrets of endpoints are put below
 * their names by whoever registers them, so those grants are for all secrets below a name.
 */
export class CellSecrets extends Construct {
  readonly #names: ReturnType<typeof secretNames>;
  readonly #apiKey: ISecret;

  constructor(scope: Construct, id: string, { stage, region }: Cell) {
    super(scope, id);
    this.#names = secretNames(stage.stage, region);
    const apiKey = new Secret(this, 'ApiKey', {
      secretName: this.#names.apiKey,
      description: `Jobwire, ${stage.stage}-${region}: key of the HTTP API`,
      generateSecretString: { passwordLength: 48, excludePunctuation: true },
      removalPolicy: RemovalPolicy.RETAIN,
    });
    Validations.of(apiKey).acknowledge({
      id: 'AwsSolutions-SMG4',
      reason:
        'Clients hold this key: it is changed together with them, not by a schedule that would lock them out.',
    });
    this.#apiKey = apiKey;
  }

  /** The key of the HTTP API. */
  grantReadApiKey(fn: CellFunction): void {
    this.#allow(fn, this.#apiKey.secretArn, ['GetSecretValue']);
    fn.set('JOBWIRE_API_KEY_SECRET', this.#names.apiKey);
  }

  /** The credentials of all accounts of the cell. */
  grantReadAccounts(fn: CellFunction): void {
    this.#allowBelow(
      fn,
      this.#names.accounts,
      'Accounts are registered after deployment, each with a secret reference.',
    );
  }

  /** The credentials of all accounts of the cell: those that are given to it are made, changed and deleted as well. */
  grantManageAccounts(fn: CellFunction): void {
    this.#allowBelow(
      fn,
      this.#names.accounts,
      'Accounts are registered after deployment, each with a secret reference.',
      MANAGE,
    );
  }

  /** The signing secrets of all endpoints of the cell. */
  grantReadEndpoints(fn: CellFunction): void {
    this.#allowBelow(
      fn,
      this.#names.endpoints,
      'Endpoints are registered after deployment, each with signing secrets.',
    );
  }

  /** The signing secrets of all endpoints of the cell: made, changed and deleted as well. */
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
    const { region } = Stack.of(this);
    Validations.of(fn.role ?? fn).acknowledge({
      id: `AwsSolutions-IAM5[Resource::arn:aws:secretsmanager:${region}:<AWS::AccountId>:secret:${name}*]`,
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
