#!/usr/bin/env node
/** The `jobwire` command. What is older than this can't even load the rest, so it is told here. */
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 18)) {
  console.error(`jobwire runs on Node 20.18 or later; this is ${process.versions.node}.`);
  process.exitCode = 2;
} else {
  const { run } = await import('./run.ts');
  process.exitCode = await run(process.argv.slice(2));
}
