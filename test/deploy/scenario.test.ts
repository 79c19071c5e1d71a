/** The scenario on the synthesized assembly, without AWS, with what only an emulation can see at its end. */
import './clock.ts';
import { fileURLToPath } from 'node:url';
import { deployEmulated } from './emulated.ts';
import { scenario } from './scenario.ts';

/** Of production, for it has all that there is: reserves, archive, protection. And us, in whose AWS region the emulators are. */
const STACK = 'jobwire-prod-us';
const ASSEMBLY = fileURLToPath(new URL('../../cdk.out', import.meta.url));

scenario('a cell on the embedded servers', (surroundings) => deployEmulated(ASSEMBLY, STACK, surroundings));
