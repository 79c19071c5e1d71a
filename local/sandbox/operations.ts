// Everything the ordering service can be asked, but for tokens.

import { accountOperations } from './account.ts';
import { assetOperations } from './assets.ts';
import { createJobOperation } from './create-job.ts';
import { jobOperations } from './jobs.ts';
import { lookupOperations } from './lookups.ts';
import type { Operation } from './operation.ts';
import { priceCodeOperations } from './price-codes.ts';
import { promoOperations } from './promo.ts';
import { stockOperations } from './stock.ts';

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
