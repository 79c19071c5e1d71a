/** Does by itself what the cell's operator function will do, until it is there. */
import { randomUUID } from 'node:crypto';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { createEventLog } from '../../shared/log/log.ts';
import { createEndpoint } from '../../shared/sinks/endpoints.ts';
import { createAwsSigningSecrets } from '../../shared/sinks/signing-secrets.ts';
import { createDynamoTable } from '../../shared/table/dynamo-table.ts';
import { registerAccount } from '../../shared/tracking/accounts.ts';
import type { Deployment } from './deployment.ts';

export async function operateStandIn(
  cell: Deployment,
  act: Readonly<Record<string, unknown>>,
): Promise<unknown> {
  const table = createDynamoTable(new DynamoDBClient(cell.aws), {
    tableName: cell.outputs.TableName ?? '',
  });
  const schemaBaseUrl = 'https://us.jobwire.example';
  const log = createEventLog(table, { now: Date.now, newId: randomUUID, schemaBaseUrl });
  if (act.do === 'accounts.add') {
    const account = {
      region: cell.region,
      account: String(act.account),
      secretRef: String(act.secretRef),
      pollIntervalSeconds: Number(act.pollIntervalSeconds),
      paused: false,
    };
    return registerAccount(table, log, account, { now: Date.now(), epoch: 'e1' });
  }
  const secrets = createAwsSigningSecrets(new SecretsManagerClient(cell.aws), { stage: cell.stage });
  const deps = {
    table,
    log,
    secrets,
    now: Date.now,
    newId: randomUUID,
    schemaBaseUrl,
    allowPrivateNetworks: false,
  };
  const made = await createEndpoint(deps as never, cell.region, act.endpoint);
  if (made.kind !== 'created') throw new Error(made.reason);
  return made;
}
