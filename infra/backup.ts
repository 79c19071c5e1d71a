import { Duration, Stack } from 'aws-cdk-lib';
import { BackupPlan, BackupPlanRule, BackupResource, BackupVault } from 'aws-cdk-lib/aws-backup';
import type { ITableV2 } from 'aws-cdk-lib/aws-dynamodb';
import { Schedule } from 'aws-cdk-lib/aws-events';
import { ManagedPolicy, Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { Construct } from 'constructs';
import { acknowledge } from './acknowledge.ts';
import type { BackupSettings } from './settings.ts';

const POLICY = 'service-role/AWSBackupServiceRolePolicyForBackup';

/**
 * Daily backups of the state table by AWS Backup, optionally copied to a vault in another AWS region or AWS account. They outlive the
 * stack, and a fault that point-in-time recovery does not cover: the loss of the table, of the AWS region or of the AWS account. So the
 * vaults belong to the operator (docs/decisions/0084-backup-vaults-of-the-operator.md).
 */
export class Backup extends Construct {
  constructor(
    scope: Construct,
    id: string,
    props: { readonly table: ITableV2; readonly backup: BackupSettings },
  ) {
    super(scope, id);
    const { table, backup } = props;
    const deleteAfter = Duration.days(backup.retentionDays);
    const plan = new BackupPlan(this, 'Plan', {
      backupPlanName: Stack.of(this).stackName,
      backupVault: BackupVault.fromBackupVaultName(this, 'Vault', backup.vault),
    });
    plan.addRule(
      new BackupPlanRule({
        ruleName: 'daily',
        scheduleExpression: Schedule.cron({ hour: '3', minute: '0' }),
        deleteAfter,
        ...(backup.copyTo === undefined
          ? {}
          : {
              copyActions: [
                {
                  destinationBackupVault: BackupVault.fromBackupVaultArn(this, 'CopyVault', backup.copyTo),
                  deleteAfter,
                },
              ],
            }),
      }),
    );
    const role = new Role(this, 'Role', {
      assumedBy: new ServicePrincipal('backup.amazonaws.com'),
      managedPolicies: [ManagedPolicy.fromAwsManagedPolicyName(POLICY)],
    });
    acknowledge(role, {
      [`AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/${POLICY}]`]:
        'The managed policy that AWS Backup requires for backups and copies.',
    });
    plan.addSelection('State', { resources: [BackupResource.fromArn(table.tableArn)], role });
  }
}
