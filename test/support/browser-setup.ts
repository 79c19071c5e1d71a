/** Before the browser tests: checks that there is a browser, and builds the pages. */
import { accessSync, constants } from 'node:fs';
import { buildDashboard } from '../../dashboard/build.ts';
import { CHROMIUM } from './chromium.ts';

export default async function setUp(): Promise<void> {
  try {
    accessSync(CHROMIUM, constants.X_OK);
  } catch {
    // Printed, not thrown: a stack trace would hide the message.
    console.error(
      `There is no browser at ${CHROMIUM}: install it with "apt-get install chromium", or name another Chromium in the environment variable CHROMIUM.`,
    );
    process.exit(1);
  }
  // Once, before several sites need it.
  await buildDashboard();
}
