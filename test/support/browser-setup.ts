/** Before the browser tests: is there a browser, and are the pages built? */
import { accessSync, constants } from 'node:fs';
import { buildDashboard } from '../../dashboard/build.ts';
import { CHROMIUM } from './chromium.ts';

export default async function setUp(): Promise<void> {
  try {
    accessSync(CHROMIUM, constants.X_OK);
  } catch {
    // Not thrown: the sentence is all that helps, and it would get lost in a stack.
    console.error(
      `There is no browser at ${CHROMIUM}: install it with "apt-get install chromium", or name another Chromium in the environment variable CHROMIUM.`,
    );
    process.exit(1);
  }
  // Once, before several sites want it.
  await buildDashboard();
}
