/** Tables of a self-hosted Jobwire on a DynamoDB-compatible server. */
import {
  CreateTableCommand,
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  DynamoDBClient,
  type KeySchemaElement,
  ResourceInUseException,
  UpdateTableCommand,
  UpdateTimeToLiveCommand,
  waitUntilTableExists,
} from '@aws-sdk/client-dynamodb';
import { explainError } from '../shared/error-codes.ts';
import { createDynamoTable } from '../shared/storage/dynamo-table.ts';
import { historySchema, stateSchema, type TableSchema } from '../shared/storage/schema.ts';
import type { Table } from '../shared/storage/table.ts';
import { StartError } from './start-error.ts';

/** Name of the state table on a DynamoDB server. */
const TABLE_NAME = 'jobwire-state';

/** Opens the tables of the server with this URL, and creates them if necessary. */
export async function openDynamoTables(
  endpoint: string,
): Promise<{ readonly table: Table; readonly history: Table; close(): Promise<void> }> {
  const client = new DynamoDBClient({ endpoint, region: process.env.AWS_REGION ?? 'us-east-1' });
  try {
    await createTables(client, TABLE_NAME);
  } catch (cause) {
    client.destroy();
    throw new StartError(describeFailure(cause, endpoint), { cause });
  }
  return {
    table: createDynamoTable(client, { tableName: TABLE_NAME }),
    history: createDynamoTable(client, { tableName: historyTableName(TABLE_NAME), schema: historySchema }),
    close: async () => client.destroy(),
  };
}

function describeFailure(cause: unknown, endpoint: string): string {
  if (cause instanceof Error && cause.name === 'CredentialsProviderError') {
    return `The tables at dynamodbEndpoint (${endpoint}) require AWS credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.`;
  }
  return `The tables at dynamodbEndpoint (${endpoint}) can’t be used: ${explainError(cause)}.`;
}

/** Creates both tables by {@link createTable}: the state table of this name, and its history table. */
export async function createTables(client: DynamoDBClient, tableName: string): Promise<void> {
  await createTable(client, tableName, stateSchema);
  await createTable(client, historyTableName(tableName), historySchema);
}

/** Returns the name of the history table of a state table. */
export function historyTableName(tableName: string): string {
  return `${tableName}-history`;
}

/**
 * Creates the table of a key schema if it does not exist: on demand, with TTL, without stream. Adds an index that an older table lacks.
 * Idempotent, even when called concurrently. The name needs at least 3 characters.
 */
export async function createTable(
  client: DynamoDBClient,
  tableName: string,
  schema: TableSchema,
): Promise<void> {
  const TableName = tableName;
  const indexes = Object.entries(schema.indexes).map(([IndexName, index]) => ({
    IndexName,
    KeySchema: keySchema(index),
    Projection: { ProjectionType: index.holds === 'keys' ? ('KEYS_ONLY' as const) : ('ALL' as const) },
  }));
  try {
    await client.send(
      new CreateTableCommand({
        TableName,
        BillingMode: 'PAY_PER_REQUEST',
        KeySchema: keySchema(schema),
        AttributeDefinitions: textAttributes([schema, ...Object.values(schema.indexes)]),
        GlobalSecondaryIndexes: indexes,
      }),
    );
  } catch (cause) {
    if (!(cause instanceof ResourceInUseException)) throw cause;
  }
  await waitUntilTableExists({ client, maxWaitTime: 60, minDelay: 1, maxDelay: 2 }, { TableName });

  const { Table } = await client.send(new DescribeTableCommand({ TableName }));
  const known = new Set(Table?.GlobalSecondaryIndexes?.map((index) => index.IndexName));
  for (const index of indexes.filter(({ IndexName }) => !known.has(IndexName))) {
    await client.send(
      new UpdateTableCommand({
        TableName,
        AttributeDefinitions: textAttributes([schema, ...Object.values(schema.indexes)]),
        GlobalSecondaryIndexUpdates: [{ Create: index }],
      }),
    );
    await waitUntilTableExists({ client, maxWaitTime: 600, minDelay: 1, maxDelay: 5 }, { TableName });
  }

  const { TimeToLiveDescription: ttl } = await client.send(new DescribeTimeToLiveCommand({ TableName }));
  if (ttl?.TimeToLiveStatus === 'ENABLED' || ttl?.TimeToLiveStatus === 'ENABLING') return;
  const TimeToLiveSpecification = { AttributeName: schema.ttlAttribute, Enabled: true };
  await client.send(new UpdateTimeToLiveCommand({ TableName, TimeToLiveSpecification }));
}
function keySchema(keys: { readonly partitionKey: string; readonly sortKey: string }): KeySchemaElement[] {
  return [
    { AttributeName: keys.partitionKey, KeyType: 'HASH' },
    { AttributeName: keys.sortKey, KeyType: 'RANGE' },
  ];
}

function textAttributes(keys: readonly { readonly partitionKey: string; readonly sortKey: string }[]) {
  const names = new Set(keys.flatMap(({ partitionKey, sortKey }) => [partitionKey, sortKey]));
  return [...names].map((AttributeName) => ({ AttributeName, AttributeType: 'S' as const }));
}
