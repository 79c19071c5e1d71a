/** Runs only the tests that need DynamoDB or a socket. The other tests of each file have run as unit tests. */
import { TestRunner } from 'vitest';

export default class extends TestRunner {
  constructor(config: ConstructorParameters<typeof TestRunner>[0]) {
    super({ ...config, testNamePattern: config.testNamePattern ?? /on DynamoDB|over a socket/ });
  }
}
