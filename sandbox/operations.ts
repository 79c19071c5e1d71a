// All operations of the ordering API except the token endpoint.

import type { Operation } from './http/operation.ts';
import { accountOperations } from './operations/account.ts';
import { assetOperations } from './operations/assets.ts';
import { createJobOperation } from './operations/create-job.ts';
import { jobOperations } from './operations/jobs.ts';
import { lookupOperations } from './operations/lookups.ts';
import { priceCodeOperations } from './operations/price-codes.ts';
import { promoOperations } from './operations/promo.ts';
import { stockOperations } from './operations/stock.ts';

/** All operations of the API, in the order of its description. */
export const operations: readonly Operation[] = [
  ...priceCodeOperations,
  createJobOperation,
  ...jobOperations,
  ...assetOperations,
  ...accountOperations,
  ...lookupOperations,
  ...stockOperations,
  ...promoOperations,
];
