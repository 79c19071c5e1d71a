/**
 * Builds the dashboard. Each build has a folder that is named by all that went into it, so a build is never older than its
 * sources, several processes may build at the same time, and a server goes on serving what it began with.
 */
import { createHash, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, stat, utimes } from 'node:fs/promises';
import { join, relative } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
/** What a build is made of. Of `shared` the page takes the schemas of its forms, and words. */
const SOURCES = ['dashboard', 'client', 'shared', 'package-lock.json'];
const BUILDS = join(import.meta.dirname, 'dist');
/** Builds that nobody asked for in so long leave. */
const KEEP_MS = 7 * 86_400_000;

/** Builds the dashboard unless that was done; the folder with its files. Rejects where it can't be built. */
export async function buildDashboard(): Promise<string> {
  const folder = join(BUILDS, await fingerprint());
  if (existsSync(folder)) {
    // Whoever serves it from now on has it for as long as who made it.
    await utimes(folder, new Date(), new Date());
    return folder;
  }
  const making = `${folder}.${randomUUID()}`;
  await mkdir(BUILDS, { recursive: true });
  const { build } = await import('vite');
  const { NODE_ENV } = process.env;
  try {
    // Whatever this process is run as: else it would be React for developers.
    process.env.NODE_ENV = 'production';
    await build({
      configFile: join(import.meta.dirname, 'vite.config.ts'),
      logLevel: 'warn',
      build: { outDir: making, emptyOutDir: true },
    });
    await rename(making, folder);
  } catch (cause) {
    // Somebody else was faster, or it can't be built.
    await rm(making, { recursive: true, force: true });
    if (!existsSync(folder)) throw cause;
  } finally {
    if (NODE_ENV === undefined) delete process.env.NODE_ENV;
    else process.env.NODE_ENV = NODE_ENV;
  }
  await tidy(folder);
  return folder;
}

/** A hash of all sources, by their names and contents. */
async function fingerprint(): Promise<string> {
  const hash = createHash('sha256');
  for (const source of SOURCES) {
    for (const path of await filesOf(join(ROOT, source))) {
      hash.update(`${relative(ROOT, path)}\n`).update(await readFile(path));
    }
  }
  return hash.digest('hex').slice(0, 16);
}

async function filesOf(path: string): Promise<string[]> {
  if (path === BUILDS) return [];
  if (!(await stat(path)).isDirectory()) return [path];
  const names = (await readdir(path)).sort();
  return (await Promise.all(names.map((name) => filesOf(join(path, name))))).flat();
}

/** Takes away builds, and what is left of those that were cut off, which nobody asked for lately. */
async function tidy(keep: string): Promise<void> {
  for (const name of await readdir(BUILDS)) {
    const path = join(BUILDS, name);
    const made = await stat(path).catch(() => undefined);
    if (made && path !== keep && made.mtimeMs < Date.now() - KEEP_MS) {
      await rm(path, { recursive: true, force: true });
    }
  }
}

// `node dashboard/build.ts` prints the folder.
if (process.argv[1] === import.meta.filename) console.log(await buildDashboard());
