/** The examples of events in the documentation are real events. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { CloudEvent } from 'cloudevents';
import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { bundle } from '../../bench/assets.ts';
import { catalogue, eventTypes } from '../../shared/events/catalogue.ts';
import { EXAMPLE_URL, getExample } from '../../shared/events/examples.ts';
import { isCell } from '../../shared/storage/schema.ts';

const ajv = new Ajv2020({ allErrors: true });
addFormats.default(ajv);

describe.each(eventTypes)('the example of %s', (type) => {
  const example = getExample(type);

  test('has exactly the data that the catalogue describes', () => {
    // Parsed as a response, the schema rejects other fields.
    const validate = ajv.compile(z.toJSONSchema(catalogue[type].data(), { io: 'output' }));
    validate(example?.data);
    expect(validate.errors ?? []).toEqual([]);
  });

  test('is a CloudEvent, and so is its JSON', () => {
    const raw = JSON.parse(JSON.stringify(example)) as Record<string, unknown>;
    const event = new CloudEvent(raw);
    expect(event.validate()).toBe(true);
    // The library's result equals the JSON: nothing added, nothing omitted.
    expect(JSON.parse(JSON.stringify(event))).toEqual(raw);
    expect(raw).toMatchObject({
      ...{ specversion: '1.0', type, datacontenttype: 'application/json' },
      dataschema: `${EXAMPLE_URL}/schemas/v1/${type}.json`,
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      sequence: expect.stringMatching(/^\d{20}$/),
      id: expect.stringMatching(/^(acme|_cell)\.[a-z0-9]{12}\.\d+$|^ping\./),
    });
    // Names of extension attributes (CloudEvents 1.0, 3.1).
    for (const name of Object.keys(raw)) expect(name).toMatch(/^[a-z0-9]{1,20}$/);
  });

  test('is in the log that such events are written to', () => {
    const [, region, account] =
      /^https:\/\/us\.jobwire\.example\/regions\/([a-z]+)(?:\/accounts\/([a-z]+))?$/.exec(
        example?.source ?? '',
      ) ?? [];
    expect(example?.data).toMatchObject({ region, ...(account === undefined ? {} : { account }) });
    const [owner = ''] = (example?.id ?? '').split('.');
    if (type !== 'jobwire.ping') expect(isCell({ region: 'us', account: owner })).toBe(account === undefined);
    expect(account === undefined).toBe(/^(upstream|endpoint|jobwire)\./.test(type));
  });

  test('is the same in every run', () => {
    expect(getExample(type)).toEqual(example);
    expect(getExample(type)).not.toBe(example);
  });
});

test('an event about a job has the job as its subject, and its time is that of the observation', () => {
  for (const type of eventTypes.filter((type) => type.startsWith('job.'))) {
    const { subject, time, data } = getExample(type) ?? {};
    const { job, observed } = data as unknown as {
      job: { jobNumber: number };
      observed: { at: string; since: string };
    };
    expect(subject).toBe(`jobs/${job.jobNumber}`);
    expect(observed.at).toBe(time);
    expect(observed.since < observed.at).toBe(true);
  }
});

test('ids are unique', () => {
  const ids = eventTypes.map((type) => getExample(type)?.id);
  expect(new Set(ids).size).toBe(eventTypes.length);
});

test('the restored log continues in a later epoch', () => {
  const { id = '', data } = getExample('account.restored') ?? {};
  const [, epoch = '', sequence] = id.split('.');
  const [before = '', last] = String(data?.after).split('.');
  expect(epoch > before).toBe(true);
  expect(Number(sequence)).toBe(Number(last) + 1);
});

test('examples exist for catalogue types only', () => {
  for (const type of ['job.nothing', '', 'toString', '__proto__']) expect(getExample(type)).toBeUndefined();
});

test.each(['tick', 'poll-account', 'wake-sinks', 'drain-sink'])(
  '%s does not contain the examples',
  async (entry) => {
    const { files } = await bundle(entry);
    expect(files.some((file) => /shared\/(events|log)\//.test(file))).toBe(true);
    expect(files.filter((file) => file.includes('shared/events/examples.ts'))).toEqual([]);
  },
);
