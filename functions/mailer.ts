/** Transport of e-mails that are not messages to customers: test e-mails and messages of alert rules. */
import type * as z from 'zod';
import { createSesTransport } from '../shared/notifications/ses.ts';
import type { EmailTransport } from '../shared/notifications/types.ts';
import type { AlertsEnv } from './env.ts';

/** Creates the transport. Returns `undefined` in cells without notifications. `timeoutMs`: timeout of one e-mail. */
export function createMailer(
  env: Pick<z.infer<typeof AlertsEnv>, 'JOBWIRE_MAIL_FROM' | 'JOBWIRE_MAIL_CONFIGURATION_SET'>,
  timeoutMs: number,
): EmailTransport | undefined {
  const { JOBWIRE_MAIL_FROM: from, JOBWIRE_MAIL_CONFIGURATION_SET: configurationSet } = env;
  if (from === undefined) return undefined;
  return createSesTransport({
    ...{ aws: {}, from, timeoutMs },
    ...(configurationSet === undefined ? {} : { configurationSet }),
  });
}
