#!/usr/bin/env node
/** Entry point of the `jobwire` CLI. Checks the Node version, because older versions cannot load the other modules. */
import '../shared/short-start.ts';

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 18)) {
  console.error(`jobwire requires Node 20.18 or later. This is Node ${process.versions.node}.`);
  process.exitCode = 2;
} else {
  const { run } = await import('./run.ts');
  process.exitCode = await run(process.argv.slice(2));
}
