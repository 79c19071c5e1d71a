/** `npm run types`: writes the generated sources, which are not committed. `npm ci` and `npm run build` do so, too. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { clientTypes, inputValues } from './client/generate.ts';
import { typesOfEvents } from './shared/events/typescript.ts';

const SOURCES: Readonly<Record<string, () => string>> = {
  'client/paths.ts': clientTypes,
  'client/inputs.ts': inputValues,
  'receive/events.ts': typesOfEvents,
};

/** Writes all generated sources. */
export function writeTypes(): void {
  for (const [path, print] of Object.entries(SOURCES)) {
    writeFileSync(join(import.meta.dirname, path), print());
  }
}

if (import.meta.main) writeTypes();
