/** Logs contain no tokens of links, no keys and no queries, because many people can read them. */
import { expect, test } from 'vitest';
import { synthesize } from '../support/cells.ts';

test('the access log of a cell contains neither paths, queries nor addresses, because unsubscribe links are paths', () => {
  const [[, stage] = []] = synthesize('prod').resources('AWS::ApiGateway::Stage');
  const format = String(stage?.Properties.AccessLogSetting.Format);
  expect(format).toContain('$context.requestId');
  expect(format).not.toMatch(/\$context\.(path|identity|authorizer|error\.message)|querystring|\$input/i);
});
