/**
 * Screenshots of mails in Chromium, for the documentation: `PICTURES=write npx vitest run
 * test/notifications/texts.integration.test.ts`.
 */

import { renderEmail } from '../../shared/notifications/render.ts';
import { sampleBranding, sampleNotice } from '../../shared/notifications/samples.ts';
import type { Locale, MessageKind } from '../../shared/notifications/types.ts';
import { launchChromium } from './chromium.ts';

interface Picture {
  readonly file: string;
  readonly kind: MessageKind;
  readonly locale: Locale;
  readonly color?: string;
  readonly width: number;
  readonly dark?: boolean;
}

const pictures: readonly Picture[] = [
  { file: 'mail-dispatched', kind: 'dispatched', locale: 'en-US', width: 1280 },
  { file: 'mail-dispatched-phone', kind: 'dispatched', locale: 'en-GB', width: 390 },
  { file: 'mail-dispatched-phone-dark', kind: 'dispatched', locale: 'fr', width: 390, dark: true },
  { file: 'mail-due-date', kind: 'due_date_changed', locale: 'de', width: 1280, color: '#facc15' },
];

/** Takes all screenshots and writes them to docs/images. */
export async function takePictures(): Promise<void> {
  const browser = await launchChromium();
  for (const { file, kind, locale, color, width, dark } of pictures) {
    const mail = renderEmail({
      content: sampleNotice(kind),
      recipient: { name: 'Robin Weaver', locale, zone: 'America/New_York' },
      branding: { ...sampleBranding, ...(color !== undefined && { color }) },
      unsubscribeUrl: 'https://notify.example.com/v1/unsubscribe/token',
    });
    if (mail.kind === 'failed') throw new Error(mail.reason);
    const page = await browser.newPage({
      viewport: { width, height: 400 },
      colorScheme: dark ? 'dark' : 'light',
      javaScriptEnabled: false,
    });
    await page.setContent(mail.value.html);
    await page.screenshot({ path: `docs/images/${file}.png`, fullPage: true });
    await page.close();
  }
  await browser.close();
}
