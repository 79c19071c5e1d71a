/** The API documents are accepted by public linters, and the mail layout is what MJML generates. */
import { readFileSync } from 'node:fs';
import { Parser } from '@asyncapi/parser';
import { beforeAll, describe, expect, test } from 'vitest';
import { openApiDocument } from '../../sandbox/http/openapi.ts';
import { compileLayout, readLayout, writeLayout } from './mail-layout.ts';
import { findingsIn } from './redocly.ts';

/** Any part of a document. */
// biome-ignore lint/suspicious/noExplicitAny: documents are read and changed anywhere
type Any = any;

const read = (file: string): Any => JSON.parse(readFileSync(file, 'utf8'));

describe('the AsyncAPI document', () => {
  const parser = new Parser();
  /** A newer version of AsyncAPI is accepted. */
  const lint = async (document: object) =>
    (await parser.parse(JSON.stringify(document))).diagnostics
      .filter(({ code }) => code !== 'asyncapi-latest-version')
      .map(({ code, path }) => `${code} ${path.join('/')}`);

  test('is accepted by the parser of AsyncAPI', async () => {
    expect(await lint(read('docs/asyncapi.json'))).toEqual([]);
  });

  const faults: [fault: string, (d: Any) => void, finding: string][] = [
    [
      'a reference without a target',
      (d) => (d.channels.topic.messages.x = { $ref: '#/no' }),
      'invalid-ref channels/topic/messages/x/$ref',
    ],
    [
      'an unknown action',
      (d) => (d.operations.followAll.action = 'shout'),
      'asyncapi-document-resolved operations/followAll/action',
    ],
    [
      'an unknown type',
      (d) => (d.components.schemas.reference.type = 'thing'),
      'asyncapi-document-resolved components/schemas/reference/type',
    ],
    [
      'an operation with messages of another channel',
      (d) => (d.operations.publishEvent.messages = [{ $ref: '#/components/messages/topic.job.closed' }]),
      'asyncapi3-operation-messages-from-referred-channel operations/publishEvent/messages/0',
    ],
  ];
  /** The findings of a document with all faults, each in a place of its own. */
  let faulty: Promise<string[]> | undefined;
  test.each(faults)('is rejected for %s', async (_, __, finding) => {
    faulty ??= lint(withFaults());
    expect(await faulty).toContain(finding);
  });

  function withFaults(): Any {
    const document = withOneType();
    for (const [, change] of faults) change(document);
    return document;
  }

  /** Ours with only one event type, which is faster to parse. */
  function withOneType(): Any {
    const document = read('docs/asyncapi.json');
    const { components, channels } = document;
    for (const part of [
      components.messages,
      ...Object.values<Any>(channels).map(({ messages }) => messages),
    ]) {
      for (const name of Object.keys(part)) if (!name.endsWith('job.closed')) delete part[name];
    }
    for (const name of Object.keys(components.schemas)) {
      if (name.includes('.') && name !== 'job.closed') delete components.schemas[name];
    }
    delete channels.regionStream;
    delete document.operations.followRegion;
    return document;
  }
});

describe('the linter of OpenAPI documents', () => {
  const document = (): Any => ({
    openapi: '3.1.0',
    info: { title: 'A small one', version: '1.0.0', description: 'Of one operation.' },
    servers: [{ url: '/' }],
    security: [{ key: [] }],
    tags: [{ name: 'Things', description: 'All of them.' }],
    paths: {
      '/v1/things/{id}': {
        get: {
          ...{ operationId: 'getThing', summary: 'A thing', tags: ['Things'] },
          parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }],
          responses: {
            200: { description: 'It.', content: { 'application/json': { schema: { type: 'object' } } } },
            404: { description: 'It is not there.' },
          },
        },
      },
    },
    components: { securitySchemes: { key: { type: 'http', scheme: 'bearer' } } },
  });
  const ORIGIN = 'http://127.0.0.1:4010';
  const get = (d: Any) => d.paths['/v1/things/{id}'].get;

  const faults: [fault: string, (d: Any) => void, rule: string][] = [
    ['an unknown field', (d) => (get(d).sumary = 'A thing'), 'struct'],
    ['a reference without a target', (d) => (get(d).parameters = [{ $ref: '#/no' }]), 'no-unresolved-refs'],
    [
      'a parameter of the path that is not declared',
      (d) => (get(d).parameters = []),
      'path-parameters-defined',
    ],
    ['an operation without a key', (d) => delete d.security, 'security-defined'],
    ['an operation without a name', (d) => delete get(d).operationId, 'operation-operationId'],
    [
      'an example of another type',
      (d) => (get(d).responses[200].content['application/json'].example = 'x'),
      'no-invalid-media-type-examples',
    ],
  ];
  /** The rules that a valid document, ours, those of the sandbox, and those with a fault break. */
  let broken: string[][];
  beforeAll(async () => {
    const faulty = faults.map(([, change]) => {
      const one = document();
      change(one);
      return one;
    });
    const ours = [
      read('docs/openapi.json'),
      openApiDocument({ origin: ORIGIN }),
      openApiDocument({ origin: ORIGIN, region: 'uk' }),
      openApiDocument({ origin: '' }),
    ];
    const findings = await findingsIn(document(), ...ours, ...faulty);
    broken = findings.map((some) => some.map(({ ruleId }) => ruleId));
  });

  test.each(
    [
      'a valid document',
      'the document of the HTTP API',
      'the document of the sandbox for all regions',
      'the document of the sandbox for one region',
      'the document of the sandbox with relative URLs',
    ].map((name, at) => [name, at] as const),
  )('finds no error in %s', (_, at) => {
    expect(broken[at]).toEqual([]);
  });

  test.each(faults)('rejects %s', (fault, _, rule) => {
    expect(broken[5 + faults.findIndex(([one]) => one === fault)]).toContain(rule);
  });
});

test('the mail layout equals the MJML output', async () => {
  if (process.env.LAYOUT === 'write') await writeLayout();
  expect(readLayout() === (await compileLayout())).toBe(true);
});
