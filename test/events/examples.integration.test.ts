/** The examples of events: what documentation shows is what receivers get. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { CloudEvent } from 'cloudevents';
import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { bundle } from '../../bench/assets.ts';
import { catalogue, eventTypes } from '../../shared/events/catalogue.ts';
import { EXAMPLE_URL, exampleOf } from '../../shared/events/examples.ts';
import { isCell } from '../../shared/storage/schema.ts';

const ajv = new Ajv2020({ allErrors: true });
addFormats.default(ajv);

describe.each(eventTypes)('the example of %s', (type) => {
  const example = exampleOf(type);

  test('has the data that the catalogue describes, and nothing besides', () => {
    // Read as an answer the schema takes no other fields.
    const validate = ajv.compile(z.toJSONSchema(catalogue[type].data, { io: 'output' }));
    validate(example?.data);
    expect(validate.errors ?? []).toEqual([]);
  });

  test('is a CloudEvent, and so is its JSON', () => {
    const raw = JSON.parse(JSON.stringify(example)) as Record<string, unknown>;
    const event = new CloudEvent(raw);
    expect(event.validate()).toBe(true);
    // What the library reads is what stands in the JSON: it adds nothing and leaves nothing out.
    expect(JSON.parse(JSON.stringify(event))).toEqual(raw);
    expect(raw).toMatchObject({
      ...{ specversion: '1.0', type, datacontenttype: 'application/json' },
      dataschema: `${EXAMPLE_URL}/schemas/v1/${type}.json`,
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      sequence: expect.stringMatching(/^\d{20}$/),
      id: expect.stringMatching(/^(acme|_cell)\.[a-z0-9]{12}\.\d+$|^ping\./),
    });
    // Extension attributes have such names (CloudEvents 1.0, 3.1).
    for (const name of Object.keys(raw)) expect(name).toMatch(/^[a-z0-9]{1,20}$/);
  });

  test('stands in the log that such events are written to', () => {
    const [, region, account] =
      /^https:\/\/us\.jobwire\.example\/regions\/([a-z]+)(?:\/accounts\/([a-z]+))?$/.exec(
        example?.source ?? '',
      ) ?? [];
    expect(example?.data).toMatchObject({ region, ...(account === undefined ? {} : { account }) });
    const [owner = ''] = (example?.id ?? '').split('.');
    if (type !== 'jobwire.ping') expect(isCell({ region: 'us', account: owner })).toBe(account === undefined);
    expect(account === undefined).toBe(/^(upstream|endpoint|jobwire)\./.test(type));
  });

  test('is the same each time', () => {
    expect(exampleOf(type)).toEqual(example);
    expect(exampleOf(type)).not.toBe(example);
  });
});

test('an event about a job has the job as its subject, and was seen when it says', () => {
  for (const type of eventTypes.filter((type) => type.startsWith('job.'))) {
    const { subject, time, data } = exampleOf(type) ?? {};
    const { job, observed } = data as unknown as {
      job: { jobNumber: number };
      observed: { at: string; since: string };
    };
    expect(subject).toBe(`jobs/${job.jobNumber}`);
    expect(observed.at).toBe(time);
    expect(observed.since < observed.at).toBe(true);
  }
});

test('ids are given once', () => {
  const ids = eventTypes.map((type) => exampleOf(type)?.id);
  expect(new Set(ids).size).toBe(eventTypes.length);
});

test('the log that was restored goes on in a later epoch from where it was', () => {
  const { id = '', data } = exampleOf('account.restored') ?? {};
  const [, epoch = '', sequence] = id.split('.');
  const [before = '', last] = String(data?.after).split('.');
  expect(epoch > before).toBe(true);
  expect(Number(sequence)).toBe(Number(last) + 1);
});

test('there is no example of what is not in the catalogue', () => {
  for (const type of ['job.nothing', '', 'toString', '__proto__']) expect(exampleOf(type)).toBeUndefined();
});

test.each(['tick', 'poll-account', 'wake-sinks', 'drain-sink'])(
  '%s does not carry the examples',
  async (entry) => {
    const { files } = await bundle(entry);
    expect(
      files.some((file) => file.endsWith('shared/events/catalogue.ts') || file.endsWith('shared/log/log.ts')),
    ).toBe(true);
    expect(files.filter((file) => file.includes('shared/events/examples.ts'))).toEqual([]);
  },
);
