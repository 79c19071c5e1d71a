/** Validity and scope of promo codes. */
import * as z from 'zod';
import { text } from './common.ts';

/** Validation result of a promo code. */
export const PromoValidation = z
  .strictObject({
    isValid: z.boolean(),
    promoCode: text,
    description: text,
    discount: z.int().describe('Discount: in cents if it is fixed, otherwise in per cent.'),
    isFixed: z.boolean(),
    message: text.describe('Why it is not valid.'),
    applicableProcessCodes: z
      .array(z.string())
      .nullable()
      .describe(
        'The requested processes to which the code applies. `null`: no processes were requested, or the code applies to all processes.',
      ),
  })
  .meta({ id: 'PromoValidation' });
/** A validation in a response. */
export type PromoValidation = z.infer<typeof PromoValidation>;
