/** Runs only the tests that need DynamoDB or a socket: the rest of each file has run as a unit test. */
import { TestRunner } from 'vitest';

export default class extends TestRunner {
  constructor(config: ConstructorParameters<typeof TestRunner>[0]) {
    super({ ...config, testNamePattern: config.testNamePattern ?? /on DynamoDB|over a socket/ });
  }
}
