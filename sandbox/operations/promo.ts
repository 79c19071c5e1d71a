// Promo codes and their validity for an order.

import * as z from 'zod';
import { PromoValidation } from '../../shared/ordering/contract/promo.ts';
import { createOperationFactory } from '../http/operation.ts';
import { commaList } from '../http/parameters.ts';
import { json } from '../http/responses.ts';
import type { RegionCode } from '../world/regions.ts';
import type { SandboxAccount } from '../world/world.ts';
import promos from './promos.json' with { type: 'json' };

/*
 * Where the contract is silent, the sandbox chose:
 *
 * - Promo codes and process codes are case-insensitive, and blanks around them are ignored.
 * - A code is valid from its start (inclusive) to its end (exclusive), and for a maximum number of orders, per region
 *   or per account.
 * - For an invalid code, `discount` is 0 and `isFixed` is false. If the code exists, the response contains its
 *   `description`. A code of another region, or of another price tier, counts as unknown.
 * - A promo code can be restricted to some processes. It is then valid if the request contains at least one of these
 *   processes, or no processes. `applicableProcessCodes` lists the matching processes.
 */

interface Promo {
  readonly code: string;
  readonly description: string;
  /** Cents when `fixed`, else per cent. */
  readonly discount: number;
  readonly fixed?: boolean;
  readonly begins?: string;
  readonly ends?: string;
  /** Only for these processes. */
  readonly processes?: readonly string[];
  /** Only in this region. */
  readonly region?: RegionCode;
  /** Only for accounts of this tier. */
  readonly tier?: string;
  /** Maximum number of orders in the region. */
  readonly uses?: number;
  /** Maximum number of orders of an account. */
  readonly usesPerAccount?: number;
}

/** At least one for each reason of validity or invalidity: DECADE30 has not started yet. */
const PROMOS = promos as readonly Promo[];

/** Whether a promo code is valid for an account's order of some processes (undefined or empty: any), at a time (epoch ms). */
export function checkPromo(
  account: SandboxAccount,
  code: string,
  processCodes: readonly string[] | undefined,
  now: number,
): PromoValidation {
  const promo = findPromo(account, code);
  const invalid = (message: string, applicableProcessCodes: string[] | null = null): PromoValidation => ({
    isValid: false,
    promoCode: promo?.code ?? code,
    description: promo?.description ?? null,
    discount: 0,
    isFixed: false,
    message,
    applicableProcessCodes,
  });
  if (!promo) return invalid('The promo code does not exist.');
  if (promo.begins !== undefined && now < Date.parse(promo.begins)) {
    return invalid('The promo code is not valid yet.');
  }
  if (promo.ends !== undefined && now >= Date.parse(promo.ends))
    return invalid('The promo code has expired.');
  if (isUsedUp(account, promo)) return invalid('The promo code has been used up.');
  const applicable = applicableTo(promo, processCodes);
  if (applicable?.length === 0) return invalid('The promo code is not for these processes.', applicable);
  return {
    isValid: true,
    promoCode: promo.code,
    description: promo.description,
    discount: promo.discount,
    isFixed: promo.fixed ?? false,
    message: null,
    applicableProcessCodes: applicable,
  };
}

/** Notes that an order of the account took a promo code. */
export function redeemPromo(account: SandboxAccount, code: string): void {
  const promo = findPromo(account, code);
  if (promo) account.promoUses.set(promo.code, (account.promoUses.get(promo.code) ?? 0) + 1);
}

const findPromo = (account: SandboxAccount, code: string): Promo | undefined =>
  PROMOS.find(
    (promo) =>
      promo.code === code.trim().toUpperCase() &&
      (promo.region ?? account.region) === account.region &&
      (promo.tier ?? account.priceTier) === account.priceTier,
  );

function isUsedUp(account: SandboxAccount, { code, uses, usesPerAccount }: Promo): boolean {
  const accountUses = account.promoUses.get(code) ?? 0;
  if (usesPerAccount !== undefined && accountUses >= usesPerAccount) return true;
  if (uses === undefined) return false;
  const regionUses = account.world
    .accounts(account.region)
    .reduce((sum, { promoUses }) => sum + (promoUses.get(code) ?? 0), 0);
  return regionUses >= uses;
}

function applicableTo({ processes }: Promo, requested: readonly string[] = []): string[] | null {
  if (!processes || requested.length === 0) return null;
  return [...new Set(requested.map((code) => code.toUpperCase()))].filter((code) => processes.includes(code));
}

const operation = createOperationFactory('Promo codes');

export const promoOperations = [
  operation({
    name: 'promoCode',
    path: '/promocode/validate/{code}',
    summary: 'Checks a promo code. The response is 200 even if the code is invalid.',
    params: z.object({ code: z.string() }),
    query: z.object({ processCodes: commaList.optional() }),
    takesAnything: true,
    answers: {
      200: { description: 'Whether the code is valid, and its discount.', schema: PromoValidation },
    },
    handle: ({ account, params, query, now }) =>
      json(checkPromo(account, params.code, query.processCodes, now)),
  }),
];
