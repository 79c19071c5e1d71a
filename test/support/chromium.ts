/** The Chromium of the browser tests and screenshots: that of the system, or the program in `CHROMIUM`. */
import { type Browser, chromium } from 'playwright-core';

/** Returns the path of the program. */
export const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';

/** Starts a headless browser with a temporary profile. It can connect only to this machine. */
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
      // Requests to other hosts are recorded, but never sent.
      '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
    ],
  });
}
