/**
 * Other users of the machine, and web pages in a browser on it, have no access to a self-hosted Jobwire. Found in a penetration
 * test: an embedded database on loopback accepted a forged request that wrote an admin key, and a data folder was readable by
 * other users.
 */

import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openDataDir } from '../../local/data-dir.ts';
import { getClientAddress, getRejectionReason } from '../../local/guard.ts';
import { listChildren } from '../support/command.ts';
import {
  builtProgram,
  configFor,
  generatedKey,
  startJobwire,
  startSandbox,
  writeConfig,
} from '../support/jobwire.ts';

const mode = (path: string): string => (statSync(path).mode & 0o777).toString(8);

test('a data folder that was open to other users is closed, with its files', () => {
  const folder = mkdtempSync(join(tmpdir(), 'jobwire-open-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'data');
  mkdirSync(join(path, 'queues'), { recursive: true });
  for (const file of ['tables.db', 'secret.key', 'queues/kept.db']) writeFileSync(join(path, file), '');
  for (const one of ['', 'queues']) chmodSync(join(path, one), 0o755);
  for (const file of ['tables.db', 'secret.key', 'queues/kept.db']) chmodSync(join(path, file), 0o644);
  openDataDir(path).release();
  expect([mode(path), mode(join(path, 'queues'))]).toEqual(['700', '700']);
  expect(['tables.db', 'secret.key', 'queues/kept.db'].map((file) => mode(join(path, file)))).toEqual([
    '600',
    '600',
    '600',
  ]);
});

test('a symbolic link in an open data folder is not followed, and other files are unchanged', () => {
  const folder = mkdtempSync(join(tmpdir(), 'jobwire-open-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'data');
  mkdirSync(path, { mode: 0o755 });
  writeFileSync(join(path, 'tool.sh'), '', { mode: 0o755 });
  writeFileSync(join(folder, 'planted'), 'a-key-that-an-attacker-knows');
  for (const name of ['api-key', 'secret.key', 'secret.key.new', 'tables.db', 'tables.db-wal', 'queues']) {
    symlinkSync(join(folder, 'planted'), join(path, name));
    expect(() => openDataDir(path), name).toThrow(`${name} is a symbolic link`);
    rmSync(join(path, name));
  }
  openDataDir(path).release();
  expect(mode(join(path, 'tool.sh'))).toBe('755');
});

test("the operator's copies of files in the data folder, such as secret.key.bak, do not prevent a start", () => {
  const folder = mkdtempSync(join(tmpdir(), 'jobwire-open-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const name of ['secret.key.bak', 'tables.db.old', 'queues-backup', 'api-key-old'])
    symlinkSync('/dev/null', join(folder, name));
  openDataDir(folder).release();
});

test.runIf(process.getuid?.() === 0)(
  'a data folder with a file of another user is rejected with one message, which does not suggest to remove a file that the operator copied',
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'jobwire-open-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, 'api-key'), 'known to somebody else');
    chownSync(join(folder, 'api-key'), 12_345, 12_345);
    expect(() => openDataDir(folder)).toThrow(
      /api-key belongs to another user, .*If you copied it there, change its owner .* Otherwise remove it, or set another dataDir\.$/,
    );
  },
);

test.runIf(process.getuid?.() === 0)(
  'for a data folder of another user, the message names that user, and does not suggest to remove the folder',
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'jobwire-open-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    chownSync(folder, 12_345, 12_345);
    const getMessage = () => {
      try {
        openDataDir(folder).release();
      } catch (cause) {
        return (cause as Error).message;
      }
      return '';
    };
    expect(getMessage()).toBe(
      `The data folder ${folder} belongs to the user with the id 12345. Run this command as that user.`,
    );
    chownSync(folder, 1, 1);
    expect(getMessage()).toContain('belongs to the user daemon.');
  },
);

test("a local proxy's forwarded address is trusted; other clients cannot forge one", () => {
  const asked = (remoteAddress: string, ...forwarded: string[]) => ({
    socket: { remoteAddress },
    headersDistinct: { 'x-forwarded-for': forwarded },
  });
  const from = (...of: Parameters<typeof asked>) =>
    getClientAddress(asked(...of), { publicUrl: 'https://jobwire.example.com' });
  expect(from('127.0.0.1', '203.0.113.9, 198.51.100.7')).toBe('198.51.100.7');
  expect(from('::ffff:127.0.0.1', '203.0.113.9', '198.51.100.7')).toBe('198.51.100.7');
  expect(from('::1')).toBe('::1');
  expect(from('203.0.113.9', '198.51.100.7')).toBe('203.0.113.9');
  expect(from('127.0.0.1', '198.51.100.7:5555')).toBe('198.51.100.7');
  expect(from('127.0.0.1', '[2001:db8::7]:5555')).toBe('2001:db8::7');
  expect(from('127.0.0.1', '2001:db8::7')).toBe('2001:db8::7');
  expect(from('127.0.0.1', 'unknown')).toBe('127.0.0.1');
  expect(getClientAddress(asked('127.0.0.1', '198.51.100.7'), {}), 'without a proxy').toBe('127.0.0.1');
});

test('a data folder that cannot be created is reported with the reason in words', () => {
  const folder = mkdtempSync(join(tmpdir(), 'jobwire-open-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'file');
  writeFileSync(file, '');
  const path = join(file, 'data');
  expect(() => openDataDir(path)).toThrow(
    `The data folder ${path} can’t be used: a part of the path is not a folder (ENOTDIR).`,
  );
  expect(() => openDataDir(file)).toThrow(
    `The data folder ${file} can’t be used: another file has this name (EEXIST).`,
  );
});

test('a read-only data folder is reported with the reason in words', () => {
  const folder = mkdtempSync(join(tmpdir(), 'jobwire-open-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  openDataDir(folder).release();
  chmodSync(folder, 0o500);
  onTestFinished(() => chmodSync(folder, 0o700));
  // Root may write to any folder.
  if (process.geteuid?.() === 0) {
    rmSync(join(folder, 'lock.db'));
    chownSync(folder, 65_534, 65_534);
    process.seteuid?.(65_534);
    onTestFinished(() => process.seteuid?.(0));
  }
  expect(() => openDataDir(folder)).toThrow(
    `The data folder ${folder} can’t be used: the permission is missing (EACCES).`,
  );
});

test('an empty file of a key is reported with its path', () => {
  const folder = mkdtempSync(join(tmpdir(), 'jobwire-open-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const dataDir = openDataDir(folder);
  onTestFinished(() => dataDir.release());
  writeFileSync(dataDir.apiKeyPath, '\n');
  expect(() => dataDir.apiKey()).toThrow(`${dataDir.apiKeyPath} is empty. Copy its former content into it`);
});

test('a new data folder, and the keys in it, are readable by its user only', () => {
  const folder = mkdtempSync(join(tmpdir(), 'jobwire-open-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const dataDir = openDataDir(join(folder, 'data'));
  dataDir.apiKey();
  dataDir.awsCredentials();
  dataDir.secretKey();
  dataDir.release();
  expect(mode(dataDir.path)).toBe('700');
  for (const file of ['api-key', 'aws-credentials', 'secret.key', 'lock.db']) {
    expect(mode(join(dataDir.path, file)), file).toBe('600');
  }
});

test.runIf(process.platform === 'linux')(
  'no port of a running Jobwire answers a request without credentials, and its output contains no key',
  async () => {
    const { sandbox, world } = await startSandbox();
    const account = world.addAccount({ region: 'us', name: 'acme' });
    const file = writeConfig({ ...configFor(sandbox, [account]), sns: true });
    const jobwire = await startJobwire(['--config', file], { command: builtProgram() });
    await jobwire.printed(/(Live events)/);
    const pid = jobwire.child.pid ?? 0;
    const ports = [pid, ...(await listChildren(pid))].flatMap(listPorts);
    // The HTTP API, and SNS with SQS.
    expect(ports).toHaveLength(2);
    const requests: [string, RequestInit][] = [
      ['/v1/accounts', {}],
      ['/', { method: 'POST', headers: { 'x-amz-target': 'DynamoDB_20120810.ListTables' }, body: '{}' }],
      ['/', { method: 'POST', headers: { 'x-amz-target': 'AmazonSQS.ListQueues' }, body: '{}' }],
      ['/', { method: 'POST', body: new URLSearchParams({ Action: 'ListTopics' }) }],
      ['/v1/keys', { method: 'POST', headers: { origin: 'http://evil.example' }, body: '{}' }],
    ];
    for (const port of ports) {
      for (const [path, init] of requests) {
        const answer = await fetch(`http://127.0.0.1:${port}${path}`, init);
        expect([401, 403, 404, 405], `${port} ${path}`).toContain(answer.status);
        expect(await answer.text()).not.toMatch(/acme|TableNames|QueueUrls|TopicArn/);
        expect(answer.headers.get('access-control-allow-origin')).toBeNull();
      }
    }
    const key = await generatedKey(jobwire);
    expect(`${jobwire.out()}${jobwire.err()}`).not.toContain(key);
    expect(key.length).toBeGreaterThan(20);

    const rebound = await getStatus(jobwire.url, { host: 'evil.example' });
    expect(rebound).toBe(403);
    expect(await getStatus(jobwire.url, { host: 'localhost' })).toBe(200);
  },
);

test.each([
  ['http://evil.example/v1/accounts', {}, true],
  ['http://127.0.0.1.evil.example/', {}, true],
  ['http://localhost:4000/v1/accounts', {}, false],
  [
    'http://127.0.0.1:4000/mailbox/messages',
    { method: 'DELETE', headers: { origin: 'http://evil.example' } },
    true,
  ],
  ['http://127.0.0.1:4000/mailbox/sns', { method: 'POST', headers: { origin: 'null' } }, true],
  [
    'http://127.0.0.1:4000/mailbox/messages',
    { method: 'DELETE', headers: { origin: 'http://127.0.0.1:4000' } },
    false,
  ],
  ['http://127.0.0.1:4000/mailbox/sns', { method: 'POST' }, false],
  ['https://jobwire.example.com/v1/accounts', {}, false],
] as const)('%s with %j is rejected: %s', (url, init, isRejected) => {
  const reach = { host: '127.0.0.1', publicUrl: 'https://jobwire.example.com' };
  expect(getRejectionReason(new Request(url, init), reach) !== undefined).toBe(isRejected);
});

test.each(['127.0.0.2', '0:0:0:0:0:0:0:1', 'ip6-localhost'])(
  'a Jobwire that listens on %s, another spelling of loopback, accepts its own host only',
  (host) => {
    expect(getRejectionReason(new Request('http://evil.example/'), { host })).toContain('evil.example');
    const own = `http://${host.includes(':') ? `[${host}]` : host}:4000/`;
    for (const url of [own, 'http://localhost:4000/'])
      expect(getRejectionReason(new Request(url), { host })).toBeUndefined();
  },
);

test('with any Host header, a Jobwire that listens publicly answers', () => {
  expect(getRejectionReason(new Request('http://desk.lan/'), { host: '0.0.0.0' })).toBeUndefined();
});

/** Returns the TCP ports on which a process listens, from /proc. */
function listPorts(pid: number): number[] {
  const sockets = new Set(
    readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
      try {
        return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? [];
      } catch {
        return [];
      }
    }),
  );
  const LISTENING = '0A';
  return ['tcp', 'tcp6'].flatMap((table) =>
    readFileSync(`/proc/net/${table}`, 'utf8')
      .split('\n')
      .slice(1)
      .map((line) => line.trim().split(/\s+/))
      .filter((fields) => fields[3] === LISTENING && sockets.has(fields[9] ?? ''))
      .map((fields) => Number.parseInt(fields[1]?.split(':')[1] ?? '', 16)),
  );
}

async function getStatus(url: string, headers: Record<string, string>): Promise<number | undefined> {
  const call = request(url, { headers });
  call.end();
  const [answer] = (await once(call, 'response')) as [IncomingMessage];
  answer.resume();
  return answer.statusCode;
}
