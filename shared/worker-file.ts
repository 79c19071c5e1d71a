/** Where the code of a worker thread is: beside the module that starts it, or, when that was bundled, beside the bundle. */
import { existsSync } from 'node:fs';

/** The file of a worker, by its name without an extension. `base`: `import.meta.url` of who starts it. Throws if there is none. */
export function workerFile(name: string, base: string): URL {
  for (const extension of ['ts', 'js', 'mjs']) {
    const file = new URL(`./${name}.${extension}`, base);
    if (existsSync(file)) return file;
  }
  throw new Error(`The file of the worker ${name} is missing beside the program.`);
}
