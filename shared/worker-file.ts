/**
 * The location of a worker thread's code: beside the module that starts it, or beside the bundle if that
 * module was bundled.
 */
import { existsSync } from 'node:fs';

/**
 * Returns the file of a worker by its name without extension. `base`: `import.meta.url` of the caller. Throws
 * if there is none.
 */
export function workerFile(name: string, base: string): URL {
  for (const extension of ['ts', 'js', 'mjs']) {
    const file = new URL(`./${name}.${extension}`, base);
    if (existsSync(file)) return file;
  }
  throw new Error(`The file of the worker ${name} is missing beside the program.`);
}
