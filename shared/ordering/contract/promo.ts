/** Validity and scope of promo codes. */
import * as z from 'zod';
import { text } from './common.ts';

/** Validation result of a promo code. */
export const PromoValidation = z
  .strictObject({
    isValid: z.boolean(),
    promoCode: text,
    description: text,
    discount: z.int().describe('Cents when it is fixed, else per cent.'),
    isFixed: z.boolean(),
    message: text.describe('Why it is not valid.'),
    applicableProcessCodes: z
      .array(z.string())
      .nullable()
      .describe('Of those asked for; null when none were, or when the code is for every process.'),
  })
  .meta({ id: 'PromoValidation' });
/** A validation in a response. */
export type PromoValidation = z.infer<typeof PromoValidation>;
