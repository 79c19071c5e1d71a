/*
 * Creates jobs from the decisions of `ordering.ts`. Where the contract is silent, the sandbox chose:
 *
 * - A valid request with `validateOnly` results in 200, without validation messages.
 * - A body that is not JSON, or has fields of wrong types, results in 400 with a problem body and `errors` by field. If
 *   the order violates rules, the response contains `validationMessages`. A 500 response contains no reason. The same
 *   request with `validateOnly` returns the reason.
 * - Shop orders (`ShopCandidate`): the parameter `searchText` of the job lists also searches the name of the shop, and
 *   the name and id of its order. The totals, discounts and payments of the shop are stored but not returned.
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
import { type Call, createOperationFactory } from '../http/operation.ts';
import { type HttpResponse, json, problem } from '../http/responses.ts';
import { findPriceCode } from '../world/catalogue.ts';
import { findCountry, listStates } from '../world/countries.ts';
import { formatDay } from '../world/dates.ts';
import { earliestShipDate, listDeliveryOptions, listLocations } from '../world/delivery.ts';
import { labelLink } from '../world/links.ts';
import { ORIGINS } from '../world/sample-data.ts';
import type { SandboxAccount } from '../world/world.ts';
import { taxRate } from './account.ts';
import { reorderBands, resetCharge } from './assets.ts';
import { JOB_MEDIA_TYPES } from './jobs.ts';
import { blank } from './order-errors.ts';
import type { OrderedLine } from './order-lines.ts';
import { evaluateOrder, type Order, type OrderContext } from './ordering.ts';
import { checkPromo, redeemPromo } from './promo.ts';
import { findStock } from './stock.ts';

const operation = createOperationFactory('Jobs');

export const createJobOperation = operation({
  name: 'createJob',
  method: 'post',
  path: '/Jobs',
  summary: 'Creates a job, or validates one.',
  description:
    'Creates nothing unless everything is valid. With `validateOnly` it validates everything and creates nothing.',
  headers: { 'X-Application-Name': `Origin code. Default: \`API\`. One of ${ORIGINS.join(', ')}.` },
  body: CustomerShopCandidate,
  bodyShapes: [JobCandidate, ShopCandidate, CustomerShopCandidate],
  consumes: JOB_MEDIA_TYPES,
  needs: 'ordering',
  answers: {
    200: {
      description: 'The job is valid. With `validateOnly`, it is not created.',
      schema: ValidationSuccess,
    },
    201: { description: 'The job was created.', schema: JobCreated },
    400: {
      description: 'Validation failed. Nothing was created.',
      schema: z.union([ValidationFailure, Problem]),
    },
    500: {
      description:
        'The ordering API failed. The usual cause is an invalid body. A request with `validateOnly` returns the reason.',
    },
  },
  handle: (call) => {
    const { body, instance } = call;
    const decision = evaluateOrder(body, call.header('X-Application-Name') || 'API', gatherFacts(call));
    if (decision.accepted) return body.validateOnly ? json(NOT_CREATED) : create(call, decision.order);
    if (decision.breaks && !body.validateOnly) {
      return problem(
        500,
        'The job could not be created. Send it again with validateOnly true to receive the reason.',
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

/** The upstream data that an order is decided with. */
function gatherFacts({ account, user, now }: Pick<Call, 'account' | 'user' | 'now'>): OrderContext {
  return {
    customerId: account.id,
    users: account.users,
    caller: user,
    originCodes: ORIGINS,
    deliveryOptions: listDeliveryOptions(account.region),
    locations: listLocations(account.region),
    taxRate: taxRate(account.region),
    priceCode: (code, inputs) => findPriceCode(account, code, inputs),
    asset: (tag) => {
      const asset = account.assets.get(tag);
      return (
        asset && { ...asset, bands: reorderBands(account, asset) ?? [], reset: resetCharge(account, asset) }
      );
    },
    stock: (code) => findStock(account, code),
    country: findCountry,
    states: listStates,
    promo: (code, processCodes) => checkPromo(account, code, processCodes, now),
    earliest: (processCodes, location) => earliestShipDate(account, processCodes, now, location)?.ms,
  };
}

function create(
  { service, account, user, body, url, now }: Call<unknown, unknown, CustomerShopCandidate>,
  order: Order,
): HttpResponse {
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
    dateDue: order.due.wholeDay ? formatDay(order.due.ms, timezone) : order.due.ms,
    mustDate: order.mustDate,
    orderGroup: blank(body.orderGroup) ? null : body.orderGroup,
    orderGroupSequence: body.orderGroupSequence ?? null,
    taxTotal: order.costs.tax,
    location: { name, timezone },
    lines: order.lines.map(({ setup, reset, assetTag, newAsset, isExternal, ...line }, index) => ({
      ...line,
      assetSku: assetTags[index] ?? null,
    })),
    tags: [body.shopName, body.shopOrderName, body.shopOrderId].filter((tag) => tag != null),
    deliveryOption: order.delivery.label,
    deliveryAddress: body.deliveryAddress ?? null,
    costs: order.costs,
    shop: order.isShop ? shopFields(body) : null,
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
    ...(order.isShop && { customerId: account.id, userId: owner.id }),
  };
  return json(created, 201, { location: `${new URL(url).origin}${new URL(url).pathname}/${jobNumber}` });
}

/** Creates an asset for a new print under its own tag; null for other lines. */
function fileAsset(
  account: SandboxAccount,
  { newAsset, code, processCode, description }: OrderedLine,
): string | null {
  if (!newAsset) return null;
  const { externalId, attributes } = newAsset;
  return account.assets.add({ processCode, description, priceCode: code, externalId, attributes }).assetTag;
}

/** Fields that only shop candidates have. */
function shopFields(body: CustomerShopCandidate): Record<string, unknown> {
  return Object.fromEntries(Object.entries(body).filter(([field]) => !(field in JobCandidate.shape)));
}
