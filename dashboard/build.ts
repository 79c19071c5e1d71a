/**
 * Builds the dashboard. The folder of a build is named by a hash of its sources. So a build is never older than its sources,
 * several processes can build at the same time, and a running server keeps the build that it started with.
 */
import { createHash, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, stat, utimes } from 'node:fs/promises';
import { join, relative } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
/** Sources of a build. `shared` contains the schemas and texts of the pages; `client` the API client. */
const SOURCES = ['dashboard', 'shared', 'client', 'package-lock.json'];
const BUILDS = join(import.meta.dirname, 'dist');
/** Builds that were not used for this long are deleted. */
const KEEP_MS = 7 * 86_400_000;

/** Builds the dashboard if its sources have changed. Returns the folder with its files. Rejects if the build fails. */
export async function buildDashboard(): Promise<string> {
  const folder = join(BUILDS, await fingerprint());
  if (existsSync(folder)) {
    // Restarts the period after which it is deleted.
    await utimes(folder, new Date(), new Date());
    return folder;
  }
  const temporary = `${folder}.${randomUUID()}`;
  await mkdir(BUILDS, { recursive: true });
  const { build } = await import('vite');
  const { NODE_ENV } = process.env;
  try {
    // Otherwise the bundle contains the development version of React.
    process.env.NODE_ENV = 'production';
    await build({
      configFile: join(import.meta.dirname, 'vite.config.ts'),
      logLevel: 'warn',
      build: { outDir: temporary, emptyOutDir: true },
    });
    await rename(temporary, folder);
  } catch (cause) {
    // Another process was faster, or the build failed.
    await rm(temporary, { recursive: true, force: true });
    if (!existsSync(folder)) throw cause;
  } finally {
    if (NODE_ENV === undefined) delete process.env.NODE_ENV;
    else process.env.NODE_ENV = NODE_ENV;
  }
  await deleteOldBuilds(folder);
  return folder;
}

/** Returns a hash of the names and contents of all sources. */
async function fingerprint(): Promise<string> {
  const hash = createHash('sha256');
  for (const source of SOURCES) {
    for (const path of await listFiles(join(ROOT, source))) {
      hash.update(`${relative(ROOT, path)}\n`).update(await readFile(path));
    }
  }
  return hash.digest('hex').slice(0, 16);
}

async function listFiles(path: string): Promise<string[]> {
  if (path === BUILDS) return [];
  if (!(await stat(path)).isDirectory()) return [path];
  const names = (await readdir(path)).sort();
  return (await Promise.all(names.map((name) => listFiles(join(path, name))))).flat();
}

/** Deletes old builds and the remains of interrupted builds. */
async function deleteOldBuilds(keep: string): Promise<void> {
  for (const name of await readdir(BUILDS)) {
    const path = join(BUILDS, name);
    const stats = await stat(path).catch(() => undefined);
    if (stats && path !== keep && stats.mtimeMs < Date.now() - KEEP_MS) {
      await rm(path, { recursive: true, force: true });
    }
  }
}

// `node dashboard/build.ts` prints the folder.
if (process.argv[1] === import.meta.filename) console.log(await buildDashboard());
