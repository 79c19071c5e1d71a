/**
 * A complete order by a client without prior knowledge, in a sandbox with automatic jobs, while Jobwire polls. The artwork
 * comes from a real server.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createScenario } from '../../sandbox/simulation/scenario.ts';
import { connectClient } from '../support/ordering-api.ts';
import { createHttpRig, START } from '../support/tracker.ts';

/** A day of a job's life takes twelve minutes, so that every status is polled. */
const SPEED = 120;

test("tracks an order placed from the API's own lookups to its dispatch, and reorders its print", async () => {
  const rig = await createHttpRig({
    scenario: (world) =>
      createScenario({ world, startAt: START, seed: 3, speed: SPEED, jobsPerAccount: 0, opening: false }),
  });
  let client = await connectClient(rig.sandbox, rig.upstream);
  const artwork = await artworkServer();
  await rig.poll();
  expect((await rig.fresh()).map(({ type }) => type)).toEqual(['account.baselined']);

  // Available codes and delivery methods.
  const { processes } = (await client.get('/PriceCodes/processes')).json;
  const process = processes.find(({ active }: { active: boolean }) => active);
  const codes = (await client.get('/PriceCodes/price-codes')).json;
  const code = codes.find(
    (one: { processCode: string; externalSupplier: string | null }) =>
      one.processCode === process.processCode && one.externalSupplier === null,
  );
  const { priceBands, minimumQuantity, standardSetup, standardReset, attributes } = code;
  expect(minimumQuantity).toBe(priceBands[0].from);
  const options = (await client.get('/Jobs/delivery-options')).json;
  const delivery = options.find(({ isCollection }: { isCollection: boolean }) => !isCollection);
  const earliest = (await client.get(`/Jobs/earliest-ship-date?processCodes=${process.processCode}`)).json;
  const { defaultCountry } = (await client.get('/Lookups/countries')).json;
  const { states } = (await client.get(`/Lookups/countries/${defaultCountry}/states`)).json;

  const quantity = minimumQuantity + 5;
  const candidate = {
    orderNumber: 'PO-4411',
    description: 'Club shirts, front',
    deliveryAddress: {
      deliveryMethod: delivery.code,
      contactName: 'Alex Order',
      streetAddress: '1 Mill Lane',
      city: 'Springfield',
      state: states[0]?.abbreviation ?? null,
      postalCode: '12345',
      countryCodeISO2: defaultCountry,
    },
    dateDue: earliest.shippingDateLocal,
    items: [
      {
        itemType: 'PriceCode',
        code: code.priceCode,
        quantity,
        customerReference: 'front',
        externalArtworkUrl: artwork.url,
        attributes: answersTo(attributes),
      },
    ],
  };

  // validateOnly first: it creates nothing.
  const tried = await client.post('/Jobs', { ...candidate, validateOnly: true });
  expect(tried.text).toMatch(/not created/i);
  expect((await client.get('/Jobs/active')).json.totalCount).toBe(0);

  const ordered = await client.post('/Jobs', candidate);
  expect(ordered.status).toBe(201);
  const { jobNumber, totalJobCost, jobLineDetails } = ordered.json;
  expect(ordered.json).toMatchObject({ expectingArtworkToBeUploaded: false });
  const band = priceBands.findLast(({ from }: { from: number }) => from <= quantity);
  const net = quantity * band.unitPrice + (standardSetup ?? 0);
  const { taxTotal } = (await client.get(`/Jobs/${jobNumber}`)).json;
  expect(totalJobCost).toBeCloseTo(net + taxTotal, 2);
  const [{ newAssetSku }] = jobLineDetails;

  // The job's events.
  const emitted = await trackedUntil(jobNumber, 'job.dispatched');
  // Tokens expire after ten minutes.
  client = await connectClient(rig.sandbox, rig.upstream);
  expect(artwork.asked()).toBeGreaterThan(0);
  const types = emitted.map(({ type }) => type);
  expect(types[0]).toBe('job.created');
  const statuses = emitted
    .filter(({ type }) => type === 'job.status_changed')
    .map(({ data }) => (data.changes as { status: { to: string } }).status.to);
  expect(statuses.length).toBeGreaterThan(2);
  const known = (await client.get('/Lookups/job-statuses')).json.map(({ name }: { name: string }) => name);
  expect(known).toEqual(expect.arrayContaining([...new Set(statuses)]));
  const job = (await client.get(`/Jobs/${jobNumber}`)).json;
  expect(job).toMatchObject({ orderNumber: 'PO-4411', dateOut: expect.any(String), isCancelable: false });
  expect(job.permissions).toMatchObject({ canEdit: false, lockedReason: expect.any(String) });

  // Reorders the existing print: no artwork, no setup.
  expect((await client.get(`/Assets/${newAssetSku}`)).json).toMatchObject({ priceCode: code.priceCode });
  const { dateDue: _, ...again } = candidate;
  const reorder = await client.post('/Jobs', {
    ...again,
    dateDue: (await client.get('/Jobs/earliest-ship-date')).json.shippingDateLocal,
    items: [{ itemType: 'Asset', code: newAssetSku, quantity }],
  });
  expect(reorder.status).toBe(201);
  expect(reorder.json.expectingArtworkToBeUploaded).toBe(false);
  const second = (await client.get(`/Jobs/${reorder.json.jobNumber}`)).json;
  expect(reorder.json.totalJobCost - second.taxTotal).toBeCloseTo(
    quantity * band.unitPrice + (standardReset ?? 0),
    2,
  );
  const asked = artwork.asked();
  await trackedUntil(reorder.json.jobNumber, 'job.dispatched');
  client = await connectClient(rig.sandbox, rig.upstream);
  expect(artwork.asked()).toBe(asked);
  const { jobs } = (await client.get(`/Assets/${newAssetSku}/jobs`)).json;
  expect(jobs.map(({ jobNumber }: { jobNumber: number }) => jobNumber).toSorted()).toEqual([
    jobNumber,
    reorder.json.jobNumber,
  ]);

  /** Polls until the job has an event of a type; returns all events of the job until then. */
  async function trackedUntil(jobNumber: number, type: string) {
    const emitted = [];
    for (let polls = 0; polls < 24 * 60; polls += 1) {
      await rig.poll();
      for (const event of await rig.fresh()) {
        if (event.subject !== `jobs/${jobNumber}`) continue;
        emitted.push(event);
        if (event.type === type) return emitted;
      }
    }
    throw new Error(`Only these events were emitted: ${emitted.map((event) => event.type).join(', ')}.`);
  }
});

/** A value for each required attribute of a price code. */
function answersTo(
  attributes: readonly {
    name: string;
    type: string;
    required: boolean;
    minValue?: number;
    minLength?: number;
    enumerableValues?: readonly { value: string }[] | null;
  }[],
): Record<string, unknown> {
  return Object.fromEntries(
    attributes
      .filter(({ required }) => required)
      .map(({ name, type, minValue = 1, minLength = 1, enumerableValues }) => [
        name,
        type === 'select' ? enumerableValues?.[0]?.value : type === 'text' ? 'x'.repeat(minLength) : minValue,
      ]),
  );
}

/** Serves one picture, and counts the requests for it. */
async function artworkServer(): Promise<{ readonly url: string; asked(): number }> {
  let asked = 0;
  const server = createServer((_, answer) => {
    asked += 1;
    answer.writeHead(200, { 'content-type': 'image/png' });
    answer.end(Buffer.from('iVBORw0KGgo=', 'base64'));
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/front.png`, asked: () => asked };
}
