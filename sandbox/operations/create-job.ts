/*
 * Jobs are ordered here: what `ordering.ts` decides is answered and done. Where the contract is silent, the sandbox chose:
 *
 * - A valid request with `validateOnly` is answered with 200, `isValid` true, no messages, and a `message` that says that the
 *   job was not created.
 * - A body that is no JSON, or whose fields are of wrong types, is a 400 with a problem body and `errors` by field; the rules
 *   of ordering are told in `validationMessages`. A 500 says no more than that validateOnly would tell.
 * - `Location` names the new job. Its status is that of awaiting artwork when a line needs some and nobody said from where.
 * - `location` is the place's name. `dateDue` reads as `GET /Jobs/{jobNumber}` shows it.
 * - Each PriceCode line, samples too, is filed as an asset of its own at once.
 * - What a shop calls its order is found by `searchText`. Its totals, discounts and payments are kept and not shown.
 */

import * as z from 'zod';
import {
  CustomerShopCandidate,
  JobCandidate,
  JobCreated,
  ShopCandidate,
  ValidationSuccess,
} from '../../shared/ordering/contract/candidates.ts';
import { Problem, ValidationFailure } from '../../shared/ordering/contract/common.ts';
import { type Call, operation } from '../http/operation.ts';
import { type Answer, json, problem } from '../http/responses.ts';
import { countryOf, priceCodeOf, statesOf } from '../world/catalogue.ts';
import { writeDay } from '../world/dates.ts';
import { deliveryOptionsOf, earliestShipDate, locationsOf } from '../world/delivery.ts';
import { labelLink } from '../world/links.ts';
import { ORIGINS } from '../world/sample-data.ts';
import type { SandboxAccount } from '../world/world.ts';
import { taxRateOf } from './account.ts';
import { reorderBands, resetCharge } from './assets.ts';
import { JOB_MEDIA_TYPES } from './jobs.ts';
import { blank } from './order-errors.ts';
import type { OrderedLine } from './order-lines.ts';
import { decide, type Facts, type Order } from './ordering.ts';
import { checkPromo, redeemPromo } from './promo.ts';
import { findStock } from './stock.ts';

export const createJobOperation = operation({
  name: 'createJob',
  method: 'post',
  path: '/Jobs',
  tag: 'Jobs',
  summary: 'Creates a job, or says whether it could be created.',
  description:
    'Nothing is created unless everything is valid. With `validateOnly` everything is checked and nothing created.',
  headers: { 'X-Application-Name': `The origin code, \`API\` by default: one of ${ORIGINS.join(', ')}.` },
  body: CustomerShopCandidate,
  bodyShapes: [JobCandidate, ShopCandidate, CustomerShopCandidate],
  consumes: JOB_MEDIA_TYPES,
  needs: 'ordering',
  answers: {
    200: { description: 'With `validateOnly`: valid, and not created.', schema: ValidationSuccess },
    201: { description: 'The job was created.', schema: JobCreated },
    400: { description: 'Not valid. Nothing was created.', schema: z.union([ValidationFailure, Problem]) },
    500: { description: 'Usually the payload is not valid; `validateOnly` tells why.', schema: Problem },
  },
  handle: (call) => {
    const { body, instance } = call;
    const decision = decide(body, call.header('X-Application-Name') || 'API', factsOf(call));
    if (decision.accepted) return body.validateOnly ? json(NOT_CREATED) : create(call, decision.order);
    if (decision.breaks && !body.validateOnly) {
      return problem(
        500,
        'The job could not be created. Send it again with validateOnly true to be told what is wrong.',
        instance,
      );
    }
    return json({ isValid: false, validationMessages: decision.messages }, 400);
  },
});

const NOT_CREATED = {
  isValid: true,
  validationMessages: [],
  message: 'The job is valid. It was not created, because validateOnly is true.',
} satisfies ValidationSuccess;

/** What the service knows when an account orders. */
function factsOf({ account, user, now }: Pick<Call, 'account' | 'user' | 'now'>): Facts {
  return {
    customerId: account.id,
    users: account.users,
    caller: user,
    originCodes: ORIGINS,
    deliveryOptions: deliveryOptionsOf(account.region),
    locations: locationsOf(account.region),
    dateStyle: account.dateStyle,
    taxRate: taxRateOf(account.region),
    priceCode: (code, inputs) => priceCodeOf(account, code, inputs),
    asset: (tag) => {
      const asset = account.assets.get(tag);
      return (
        asset && { ...asset, bands: reorderBands(account, asset) ?? [], reset: resetCharge(account, asset) }
      );
    },
    stock: (code) => findStock(account, code),
    country: countryOf,
    states: statesOf,
    promo: (code, processCodes) => checkPromo(account, code, processCodes, now),
    earliest: (processCodes, location) => earliestShipDate(account, processCodes, now, location)?.ms,
  };
}

function create(
  { service, account, user, body, url, now }: Call<unknown, unknown, CustomerShopCandidate>,
  order: Order,
): Answer {
  const { world, region } = account;
  const owner = 'id' in order.owner ? order.owner : account.addUser(order.owner);
  const { name, timezone } = order.location;
  const needsArtwork = order.lines.some((line) => line.needsArtwork);
  const assetTags = order.lines.map((line) => line.assetTag ?? fileAsset(account, line));
  const jobNumber = account.createJob({
    status: world.statusName(region, needsArtwork ? 'artwork' : 'intake'),
    description: body.description ?? null,
    comments: body.orderComment ?? null,
    orderNumber: body.orderNumber ?? null,
    originCode: order.originCode,
    creator: (user ?? owner).userName,
    userId: owner.id,
    dateIn: now,
    dateDue: order.due.wholeDay ? writeDay(order.due.ms, timezone, account.dateStyle) : order.due.ms,
    mustDate: order.mustDate,
    orderGroup: blank(body.orderGroup) ? null : body.orderGroup,
    orderGroupSequence: body.orderGroupSequence ?? null,
    taxTotal: order.costs.tax,
    location: { name, timezone },
    lines: order.lines.map((line, index) => ({
      assetSku: assetTags[index] ?? null,
      processCode: line.processCode,
      garment: line.garment,
      description: line.description,
      comments: line.comments,
      quantity: line.quantity,
      unitPrice: line.unitPrice,
      customerReference: line.customerReference,
      itemType: line.itemType,
      code: line.code,
      artworkUrl: line.artworkUrl,
      needsArtwork: line.needsArtwork,
    })),
    tags: [body.shopName, body.shopOrderName, body.shopOrderId].filter((tag) => tag != null),
    deliveryOption: order.delivery.label,
    deliveryAddress: body.deliveryAddress ?? null,
    costs: order.costs,
    shop: order.shape === 'plain' ? null : soldBy(body),
  });
  if (body.promocode) redeemPromo(account, body.promocode);
  service.ordered?.(account, jobNumber);

  const created: JobCreated = {
    jobNumber,
    location: name,
    dateDue: account.job(jobNumber)?.dateDue ?? null,
    totalJobCost: order.costs.total,
    expectingArtworkToBeUploaded: needsArtwork,
    jobLineDetails: order.lines.map((line, index) => ({
      needsArtworkToBeUploaded: line.needsArtwork,
      customerReference: line.customerReference,
      quantity: line.quantity,
      newAssetSku: line.newAsset ? (assetTags[index] ?? null) : null,
      jobLineLabelUrl: line.isExternal ? labelLink(account, jobNumber, index + 1) : null,
    })),
    ...(order.shape !== 'plain' && { customerId: account.id, userId: owner.id }),
  };
  return json(created, 201, { location: `${new URL(url).origin}${new URL(url).pathname}/${jobNumber}` });
}

/** Files a new print under a tag of its own; null for what is no new print. */
function fileAsset(
  account: SandboxAccount,
  { newAsset, code, processCode, description }: OrderedLine,
): string | null {
  if (!newAsset) return null;
  const { externalId, attributes } = newAsset;
  return account.assets.add({ processCode, description, priceCode: code, externalId, attributes }).assetTag;
}

/** What a candidate has beyond the plain fields. */
function soldBy(body: CustomerShopCandidate): Record<string, unknown> {
  return Object.fromEntries(Object.entries(body).filter(([field]) => !(field in JobCandidate.shape)));
}
