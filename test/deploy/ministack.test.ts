/** The scenario on ministack, if it can be installed. */
import './clock.ts';
import { fileURLToPath } from 'node:url';
import { test } from 'vitest';
import { installMinistack, onMinistack } from './ministack.ts';
import { scenario } from './scenario.ts';

const STACK = 'jobwire-prod-us';
const ASSEMBLY = fileURLToPath(new URL('../../cdk.out', import.meta.url));

const ministack = await installMinistack();
if (ministack.kind === 'installed') {
  scenario('a cell on ministack', onMinistack(ministack, ASSEMBLY, STACK), {
    faults: true,
    streamRetries: false,
    ownAnswers: false,
  });
} else {
  const word = `ministack can't be installed here (${ministack.why}): the deployed test ran on our own harness only`;
  console.log(word);
  test(word, () => {});
}
