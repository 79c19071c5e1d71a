/**
 * One DynamoDB server for all test files of a project. Each test creates its own tables in it. `DYNAMODB_ENDPOINT`: URL of
 * another server to test.
 */
import type { TestProject } from 'vitest/node';
import { startDynamo } from './dynoxide.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The endpoint of the shared DynamoDB server. */
    readonly dynamoEndpoint: string;
  }
}

export default async function setUp(project: TestProject): Promise<() => Promise<void> | undefined> {
  const { DYNAMODB_ENDPOINT: other } = process.env;
  if (other !== undefined) {
    project.provide('dynamoEndpoint', other);
    return () => undefined;
  }
  const dynamo = await startDynamo();
  project.provide('dynamoEndpoint', dynamo.endpoint);
  return () => dynamo.stop();
}
