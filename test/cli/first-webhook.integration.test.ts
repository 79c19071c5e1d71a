/** The section "First webhook" of docs/self-hosting.md: its commands, as they are, from an empty folder to verified webhooks. */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { expect, inject, onTestFinished, test } from 'vitest';
import { cleanEnv, launch, listChildren, type Running } from '../support/command.ts';
import { startSandbox } from '../support/jobwire.ts';
import { getBlocks, getCommands, readSection } from '../support/markdown.ts';
import { findPort } from '../support/port.ts';

const section = readSection('docs/self-hosting.md', 'First webhook');
const commands = getCommands(section);
/** Maximum time in milliseconds until the first verified webhook of the account. */
const LIMIT_MS = 5 * 60_000;

const folder = () => {
  const path = mkdtempSync(join(tmpdir(), 'jobwire-first-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
};

test('the documented commands lead to a verified webhook of an own account: at most 10, in at most 5 minutes', {
  timeout: LIMIT_MS + 60_000,
}, async () => {
  const empty = folder();
  const { sandbox, world } = await startSandbox();
  const demo = { clientId: 'us-demo-1', clientSecret: 'us-demo-1-secret' };
  const account = world.addAccount({ region: 'us', name: 'acme', ...demo });
  const job = account.createJob({ status: 'Scheduled' });

  // The documented ports may be in use.
  const ports = { 3000: await findPort(), 4000: await findPort() };
  const adapt = (text: string) =>
    text
      .replaceAll('http://127.0.0.1:4010/us/api', sandbox.apiUrl('us'))
      .replaceAll('http://127.0.0.1:4010/us/auth', sandbox.authUrl('us'))
      .replace(/\b3000\b/g, String(ports[3000]))
      .replace(/jobwire start\b/, `$& --port ${ports[4000]}`);
  const paths = (cleanEnv.PATH ?? '').split(delimiter).filter((path) => !path.includes('node_modules'));
  const env = {
    JOBWIRE_URL: `http://127.0.0.1:${ports[4000]}`,
    PATH: [dirname(process.execPath), ...paths].join(delimiter),
  };

  const start = (command: string): Running => {
    // npx costs half a second of CPU time for each command. In `npm test`, the shell calls the same program directly.
    const npx = inject('full') ? '' : 'npx() { "./node_modules/.bin/$@"; }; ';
    const running = launch(['sh', '-ec', npx + adapt(command)], { cwd: empty, env });
    const { pid = 0 } = running.child;
    onTestFinished(async () => {
      for (const child of [...(await listChildren(pid)), pid]) {
        try {
          process.kill(child, 'SIGKILL');
        } catch {
          // It has ended.
        }
      }
      await running.ended;
    });
    return running;
  };

  const [install = '', ...others] = commands;
  const last = others.pop() ?? '';
  expect(install).toMatch(/^npm install \.\/jobwire-\d/);
  expect(last).toMatch(/^npx jobwire listen /);
  // Files that exist before the first command, or that the reader saves.
  const [receiver = ''] = getBlocks(section, 'js');
  writeFileSync(join(empty, 'receiver.mjs'), adapt(receiver));
  if (inject('full')) {
    const pack = ['pack', '--silent', '--pack-destination', empty, inject('packageFolder')];
    execFileSync('npm', pack, { env: { ...cleanEnv, ...env }, cwd: empty });
  } else cpSync(inject('consumerFolder'), empty, { recursive: true, verbatimSymlinks: true });

  const begin = Date.now();
  let count = 0;
  let receives: Running | undefined;
  for (const command of commands) {
    count += 1;
    if (command === install && !inject('full')) continue;
    const running = start(command);
    if (command.startsWith('npx jobwire start')) await running.printed(/account\.baselined/);
    else if (command.startsWith('node ')) {
      receives = running;
      await expect
        .poll(
          () =>
            fetch(`http://127.0.0.1:${ports[3000]}`).then(
              ({ status }) => status,
              () => 0,
            ),
          {
            timeout: 30_000,
          },
        )
        .toBe(401);
    } else if (command === last) await receives?.printed(/verified account\.baselined acme\./);
    else expect(await running.ended, command).toMatchObject({ code: 0 });
  }
  expect(count).toBeLessThanOrEqual(10);
  expect(statSync(join(empty, 'webhook.secret')).mode & 0o777).toBe(0o600);
  expect(readFileSync(join(empty, 'acme.secret'), 'utf8').trim()).toBe(demo.clientSecret);
  // The request that found the receiver had no signature.
  expect(receives?.out()).toMatch(
    /^rejected \S+\nverified job\.dispatched .*\nverified account\.baselined acme\.\S+\n$/,
  );
  if (inject('full')) {
    account.setStatus(job, 'In production');
    await receives?.printed(/verified job\.status_changed acme\./);
  }
  expect(Date.now() - begin).toBeLessThan(LIMIT_MS);
});

test('the section states the number of its commands, and the version of the package', () => {
  const words = ['One', 'Two', 'Three', 'Four', 'Five', 'Six', 'Seven', 'Eight', 'Nine', 'Ten'];
  expect(section.trim()).toMatch(new RegExp(`^${words[commands.length - 1]} commands `));
  const { version } = JSON.parse(readFileSync(resolve('package.json'), 'utf8'));
  expect(commands[0]).toBe(`npm install ./jobwire-${version}.tgz`);
});
