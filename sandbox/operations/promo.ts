// Promo codes: which there are, and whether one counts for an order.

import * as z from 'zod';
import { PromoValidation } from '../../shared/ordering/contract/promo.ts';
import { operation } from '../http/operation.ts';
import { commaList } from '../http/parameters.ts';
import { json } from '../http/responses.ts';
import type { RegionCode } from '../world/regions.ts';
import type { SandboxAccount } from '../world/world.ts';

/*
 * Where the contract is silent, the sandbox chose:
 *
 * - Promo codes and process codes compare in any case, without blanks around them; a known code is answered in capitals.
 * - A code is valid from the instant it begins up to, and without, the instant it ends.
 * - When a code is not valid its discount is 0 and not fixed, so that nobody takes it off by mistake; `description` stays
 *   for codes that exist. `message` is null when it is valid.
 * - A code that is used up has been taken by as many orders of the account's region, or of the account, as it is for.
 * - A code for some processes is valid when it is for at least one of those asked for, or when none are asked for.
 *   `applicableProcessCodes` holds those of the asked for that it is for, in their order, and is empty when it is for none.
 * - A code of another region or for another account's tier answers like one that does not exist.
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
  /** For so many orders of the region altogether. */
  readonly uses?: number;
  /** For so many orders of an account. */
  readonly usesPerAccount?: number;
}

/** At least one for each reason why a code counts or does not: with DECADE30 it is that its time is still to come. */
const PROMOS: readonly Promo[] = [
  { code: 'WELCOME10', description: '10% off your first order', discount: 10, usesPerAccount: 1 },
  { code: 'TEAM15', description: '15% off for teams', discount: 15 },
  { code: 'SHIPIT', description: '7.50 off any order', discount: 750, fixed: true },
  { code: 'FILM20', description: '20% off film transfers', discount: 20, processes: ['DTF', 'GSH'] },
  { code: 'VINYL5', description: '5.00 off cut vinyl', discount: 500, fixed: true, processes: ['VIN'] },
  { code: 'SUMMER25', description: '25% off, summer 2025', discount: 25, ends: '2025-09-01T00:00:00Z' },
  {
    code: 'DECADE30',
    description: '30% off in the thirties',
    discount: 30,
    begins: '2030-01-01T00:00:00Z',
    ends: '2040-01-01T00:00:00Z',
  },
  { code: 'LAUNCH50', description: '50% off for the first hundred', discount: 50, uses: 0 },
  { code: 'FIRST3', description: '12% off for the first three', discount: 12, uses: 3 },
  { code: 'KIWI10', description: '10% off in New Zealand', discount: 10, region: 'nz' },
  { code: 'VOLUME8', description: '8% off for our largest customers', discount: 8, tier: 'T3' },
];

/** Whether a promo code counts for an account's order of some processes (undefined or none: of any), at an instant (epoch ms). */
export function checkPromo(
  account: SandboxAccount,
  code: string,
  processCodes: readonly string[] | undefined,
  now: number,
): PromoValidation {
  const promo = findPromo(account, code);
  const refused = (message: string, applicableProcessCodes: string[] | null = null): PromoValidation => ({
    isValid: false,
    promoCode: promo?.code ?? code,
    description: promo?.description ?? null,
    discount: 0,
    isFixed: false,
    message,
    applicableProcessCodes,
  });
  if (!promo) return refused('There is no such promo code.');
  if (promo.begins !== undefined && now < Date.parse(promo.begins)) {
    return refused('The promo code is not valid yet.');
  }
  if (promo.ends !== undefined && now >= Date.parse(promo.ends))
    return refused('The promo code has expired.');
  if (isUsedUp(account, promo)) return refused('The promo code has been used up.');
  const applicable = applicableTo(promo, processCodes);
  if (applicable?.length === 0) return refused('The promo code is not for these processes.', applicable);
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
  const ofAccount = account.promoUses.get(code) ?? 0;
  if (usesPerAccount !== undefined && ofAccount >= usesPerAccount) return true;
  if (uses === undefined) return false;
  const ofRegion = account.world
    .accounts(account.region)
    .reduce((sum, { promoUses }) => sum + (promoUses.get(code) ?? 0), 0);
  return ofRegion >= uses;
}

function applicableTo({ processes }: Promo, asked: readonly string[] = []): string[] | null {
  if (!processes || asked.length === 0) return null;
  return [...new Set(asked.map((code) => code.toUpperCase()))].filter((code) => processes.includes(code));
}

export const promoOperations = [
  operation({
    name: 'promoCode',
    method: 'get',
    path: '/promocode/validate/{code}',
    tag: 'Promo codes',
    summary: 'Whether a promo code counts; 200 also when it does not.',
    params: z.object({ code: z.string() }),
    query: z.object({ processCodes: commaList.optional() }),
    takesAnything: true,
    answers: { 200: { description: 'What is known of the code.', schema: PromoValidation } },
    handle: ({ account, params, query, now }) =>
      json(checkPromo(account, params.code, query.processCodes, now)),
  }),
];
