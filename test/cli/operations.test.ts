/** Every operation of the HTTP API has a command. */
import { globSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { inputValues } from '../../client/generate.ts';
import { openApiDocument } from '../../shared/api/openapi.ts';

/** Operations without a command of their own, with the reason. `jobwire get PATH` reads those of them that respond with JSON. */
const WITHOUT_COMMAND: Readonly<Record<string, string>> = {
  getHealth: 'for load balancers; jobwire doctor requests it without a key',
  getReadiness: 'for load balancers; jobwire health requests it without a key',
  getOpenApi: 'a document: jobwire get /openapi.json',
  getAsyncApi: 'a document: jobwire get /asyncapi.json',
  getEventTypeSchema: 'a document: jobwire get, as jobwire event-types show prints',
  getSchema: 'a document: jobwire get, as jobwire event-types show prints',
  getApiReference: 'a web page',
  getApiReferenceAsset: 'part of a web page',
  getApiReferencePage: 'a web page',
  getUnsubscribePage: 'a web page for the recipients of e-mails',
  getSignIn: 'for the dashboard; the CLI has API keys',
  createSession: 'for the dashboard; the CLI has API keys',
  renewSession: 'for the dashboard; the CLI has API keys',
  deleteSession: 'for the dashboard; the CLI has API keys',
  startWallPairing: 'for the screens of wall displays',
  claimWallKey: 'for the screens of wall displays',
  unsubscribe: 'for the recipients of e-mails; operators use jobwire suppressions',
};

/** Returns the operations that the sources of the CLI call with the typed client, such as `get /v1/accounts/{id}`. */
function findCalledOperations(): Set<string> {
  const called = new Set<string>();
  for (const file of globSync('cli/*.ts')) {
    const source = readFileSync(file, 'utf8');
    const constants = new Map(
      [...source.matchAll(/const (\w+) =\s*'(\/[^']+)'/g)].map(([, name = '', path = '']) => [name, path]),
    );
    const calls = source.matchAll(
      /\.(get|post|put|patch|delete|list|follow)\(\s*(?:'(\/[^']+)'|([A-Za-z]\w*)\b)/g,
    );
    for (const [, method = '', literal, name = ''] of calls) {
      const path = literal ?? constants.get(name);
      const verb = method === 'list' || method === 'follow' ? 'get' : method;
      if (path !== undefined) called.add(`${verb} ${path}`);
    }
  }
  return called;
}

const { paths } = openApiDocument() as {
  paths: Record<string, Record<string, { readonly operationId: string }>>;
};
const operations = Object.entries(paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, { operationId }]) => ({ call: `${method} ${path}`, operationId })),
);
const called = findCalledOperations();

it('client/inputs.ts contains the values that the API accepts (npm run types generates it)', () => {
  expect(readFileSync('client/inputs.ts', 'utf8')).toBe(inputValues());
});

describe('the CLI', () => {
  it.each(operations.filter(({ operationId }) => !Object.hasOwn(WITHOUT_COMMAND, operationId)))(
    'has a command for the operation $operationId',
    ({ call }) => {
      expect([...called]).toContain(call);
    },
  );

  it('lists only operations without a command as exceptions', () => {
    const unknown = Object.keys(WITHOUT_COMMAND).filter((id) => {
      const operation = operations.find(({ operationId }) => operationId === id);
      return operation === undefined || called.has(operation.call);
    });
    expect(unknown).toEqual([]);
  });
});
