/**
 * One DynamoDB for all test files of a project; each test makes tables of its own in it. `DYNAMODB_ENDPOINT` is the URL of another server
 * to test.
 */
import type { TestProject } from 'vitest/node';
import { startDynamo } from './dynoxide.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The endpoint of the DynamoDB that all files share. */
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
