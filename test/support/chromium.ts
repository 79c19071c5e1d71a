/** The Chromium that pages are tested and pictures are taken with: the system's, or what `CHROMIUM` names. */
import { type Browser, chromium } from 'playwright-core';

/** Its program. */
export const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';

/** Starts one without a window, with a profile of its own that is thrown away. It reaches nothing but this machine. */
export function launchChromium(): Promise<Browser> {
  return chromium.launch({
    executablePath: CHROMIUM,
    args: [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      // What a page asks of others is noted all the same; it just never leaves.
      '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
    ],
  });
}
