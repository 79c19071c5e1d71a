/** Before the browser tests: checks that the browser of the project is installed, and builds the pages. */
import { accessSync, constants } from 'node:fs';
import type { TestProject } from 'vitest/node';
import { buildDashboard } from '../../dashboard/build.ts';
import { CHROMIUM } from './chromium.ts';
import { FIREFOX } from './firefox.ts';

export default async function setUp({ name }: TestProject): Promise<void> {
  const [path, pack, variable] =
    name === 'firefox' ? [FIREFOX, 'firefox-esr', 'FIREFOX'] : [CHROMIUM, 'chromium', 'CHROMIUM'];
  try {
    accessSync(path, constants.X_OK);
  } catch {
    // Printed, not thrown: a stack trace would hide the message.
    console.error(
      `There is no browser at ${path}: install it with "apt-get install ${pack}", or set its path in the environment variable ${variable}.`,
    );
    process.exit(1);
  }
  // Once, before several sites need it.
  await buildDashboard();
}
