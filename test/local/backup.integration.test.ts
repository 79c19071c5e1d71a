/**
 * `jobwire backup` and `jobwire restore`: the built CLI, and a Jobwire that is killed and continues on a restored data folder.
 * One file: its tests share one data folder and its backup.
 */
import { execFileSync } from 'node:child_process';
import {
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { gunzipSync, gzipSync } from 'node:zlib';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test, vi } from 'vitest';
import { writeBackup } from '../../local/backup.ts';
import { openDataDir } from '../../local/data-dir.ts';
import { openSqliteTables } from '../../shared/storage/sqlite-table.ts';
import { binary, KEY, loadCli } from '../support/cli-site.ts';
import { launch } from '../support/command.ts';
import { builtProgram, configFor, startJobwire, startSandbox, writeConfig } from '../support/jobwire.ts';
import { runs } from '../support/runs.ts';
import { call, type Event, startReceiver } from '../support/webhooks.ts';

const cli = await loadCli(join(inject('packageFolder'), 'cli'));

test('a backup of a running Jobwire, restored elsewhere after kill -9: events before it are kept, the log continues in a new epoch, later changes are found again, and no id has two contents', {
  timeout: 90_000,
}, async () => {
  const { sandbox, world } = await startSandbox();
  const account = world.addAccount({ region: 'us', name: 'acme' });
  const [first, second, third] = ['Scheduled', 'Scheduled', 'Scheduled'].map((status) =>
    account.createJob({ status }),
  ) as [number, number, number];
  const receiver = await startReceiver();
  const config = {
    ...configFor(sandbox, [account]),
    ...{ apiKey: KEY, sns: true },
    webhooks: { allowPrivateNetworks: true, retrySeconds: [1] },
  };
  const file = writeConfig(config);
  const folder = dirname(file);
  const moved = (job: number) => (event: Event) =>
    event.type === 'job.status_changed' && event.subject === `jobs/${job}`;

  const before = await startJobwire(['--config', file], { command: builtProgram() });
  await before.printed(/account\.baselined/);
  const health = await launch([process.execPath, binary, 'health', '--url', before.url]).ended;
  expect(health).toMatchObject({ code: 0, out: `Jobwire at ${before.url} is ready.\n` });
  const created = await call(`${before.url}/v1/endpoints`, { url: receiver.url, region: 'us' });
  expect(created.status, JSON.stringify(created.json)).toBe(201);
  receiver.verifyWith((created.json as { secret: string }).secret);
  account.setStatus(first, 'In production');
  await receiver.event(moved(first));
  const kept: { events: Event[] } = (await call(`${before.url}/v1/accounts/acme/events?limit=500`)).json;

  const backup = join(folder, 'backup.tar.gz');
  const written = await launch([process.execPath, binary, 'backup', backup, '--config', file]).ended;
  expect(written).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^Written: .*backup\.tar\.gz \(\d files/),
  });
  expect(written.err).toContain('contains secret.key');
  expect(statSync(backup).mode & 0o777).toBe(0o600);

  account.setStatus(second, 'In production');
  const lost = await receiver.event(moved(second));
  before.child.kill('SIGKILL');
  await before.ended;
  account.setStatus(third, 'In production');

  const elsewhere = join(folder, 'elsewhere', 'data');
  const other = join(folder, 'other.json');
  writeFileSync(other, JSON.stringify({ ...config, dataDir: elsewhere }));
  const restored = await launch([process.execPath, binary, 'restore', backup, '--config', other]).ended;
  expect(restored).toMatchObject({ code: 0, err: '' });
  expect(restored.out).toMatch(/^Restored: .*new epoch\.\n$/s);

  const after = await startJobwire(['--config', other], { command: builtProgram() });
  await receiver.event(moved(third));
  const again = await receiver.event((event) => moved(second)(event) && event.id !== lost.id);
  expect(again.data.changes).toEqual(lost.data.changes);
  expect(after.err()).toContain('The logs of us continue in a new epoch.');
  // Each event has a line, also the one that the start itself recorded.
  expect(after.out().match(/us\/acme .*account\.restored.*/g)).toHaveLength(1);

  const { events }: { events: Event[] } = (await call(`${after.url}/v1/accounts/acme/events?limit=500`)).json;
  expect(events.slice(0, kept.events.length)).toEqual(kept.events);
  const cursors = events.map(({ id }) => id.replace('acme.', ''));
  const [epoch] = cursors[0]?.split('.') ?? [];
  expect(events[kept.events.length]).toMatchObject({
    type: 'account.restored',
    data: { after: `${epoch}.${kept.events.length}` },
  });
  const newEpochs = new Set(cursors.slice(kept.events.length).map((cursor) => cursor.split('.')[0] ?? ''));
  expect(newEpochs.size).toBe(1);
  expect([...newEpochs][0]).toSatisfy((text: string) => text > (epoch ?? ''));
  expect(events.map(({ sequence }) => Number(sequence))).toEqual(events.map((_, at) => at + 1));
  // The lost event keeps its id permanently: a reader at its position is sent to the new epoch.
  const gone = await call(`${after.url}/v1/accounts/acme/events?after=${lost.id.replace('acme.', '')}`);
  expect(gone).toMatchObject({
    status: 410,
    json: { restored: `${[...newEpochs][0]}.${kept.events.length}` },
  });

  const contents = new Map<string, Set<string>>();
  for (const body of receiver.bodies) {
    const { id } = JSON.parse(body) as Event;
    contents.set(id, (contents.get(id) ?? new Set()).add(body));
  }
  expect([...contents].filter(([, bodies]) => bodies.size > 1)).toEqual([]);
});

describe('without a start', () => {
  let folder: string;
  let data: string;
  let backup: string;
  let tables: Awaited<ReturnType<typeof openSqliteTables>>;
  const run = (...args: string[]) => cli.run(args, {});
  let last = 0;
  /** Returns a path that does not exist. */
  const newPath = (): string => {
    last += 1;
    return join(folder, `new-${last}`);
  };
  const restore = (file: string, to = newPath()) => run('restore', file, '--data-dir', to);
  const listTar = (file: string) =>
    execFileSync('tar', ['-tzf', file], { encoding: 'utf8' }).trim().split('\n');

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'jobwire-backup-'));
    data = join(folder, 'data');
    const held = openDataDir(data);
    held.apiKey();
    held.awsCredentials();
    held.secretKey();
    mkdirSync(held.queuesPath);
    new DatabaseSync(join(held.queuesPath, 'fauxqs.db')).exec(
      'PRAGMA journal_mode = WAL; CREATE TABLE sqs_messages (body); INSERT INTO sqs_messages VALUES (1)',
    );
    // As in a running Jobwire: the folder is locked, and the databases are open.
    tables = await openSqliteTables(join(data, 'tables.db'));
    await tables.table.putMany([{ pk: 'A', sk: 'A', text: 'x'.repeat(5_000) }]);
    backup = join(folder, 'backup.tar.gz');
    const { code, err } = await run('backup', backup, '--data-dir', data);
    expect(code, err).toBe(0);
    return async () => {
      await tables.close();
      held.release();
    };
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test('restores every file with its content, for this user only, and records the time of the restore', async () => {
    const to = newPath();
    const started = Date.now();
    const { code, out } = await run('restore', backup, '--data-dir', to, '--json');
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ folder: to, format: 1, files: { length: 5 } });
    for (const key of ['secret.key', 'api-key', 'aws-credentials']) {
      expect(readFileSync(join(to, key))).toEqual(readFileSync(join(data, key)));
      expect(statSync(join(to, key)).mode & 0o777, key).toBe(0o600);
    }
    expect(statSync(to).mode & 0o777).toBe(0o700);
    const queues = new DatabaseSync(join(to, 'queues', 'fauxqs.db'));
    expect(queues.prepare('SELECT body FROM sqs_messages').all()).toEqual([{ body: 1 }]);
    queues.close();
    const held = openDataDir(to);
    expect(held.restoredAt()).toBeGreaterThanOrEqual(started);
    held.release();
    const restored = await openSqliteTables(join(to, 'tables.db'));
    expect(await restored.table.get({ pk: 'A', sk: 'A' })).toMatchObject({ text: 'x'.repeat(5_000) });
    await restored.close();
    expect(readdirSync(data).sort(), 'the source is as before').not.toContain('backup.unfinished');
  });

  test('the archive is a tar that other programs read, and is not readable for other users', () => {
    expect(listTar(backup)).toEqual([
      ...['backup.json', 'tables.db', 'queues/fauxqs.db', 'secret.key', 'api-key', 'aws-credentials'],
    ]);
    expect(statSync(backup).mode & 0o777).toBe(0o600);
  });

  test('what a killed backup left behind is replaced, and is never part of the next one', async () => {
    const left = join(data, 'backup.unfinished');
    mkdirSync(left, { mode: 0o700 });
    writeFileSync(join(left, 'tables.db'), 'half a copy');
    writeFileSync(join(left, 'tables.db-journal'), 'half a journal');
    const half = `${newPath()}.unfinished`;
    writeFileSync(half, 'half an archive');
    writeFileSync(join(left, 'target'), half);
    const file = newPath();
    expect(await run('backup', file, '--data-dir', data)).toMatchObject({ code: 0 });
    expect(await restore(file)).toMatchObject({ code: 0 });
    expect(existsSync(left)).toBe(false);
    expect(existsSync(half)).toBe(false);
  });

  test('an exit during a backup, such as after Ctrl-C, leaves no half archive', async () => {
    const others = process.listeners('exit');
    const file = newPath();
    const written = writeBackup({ folder: data, to: file, withoutKeys: false, version: '1.0.0' });
    const failed = expect(written).rejects.toThrow('The backup failed');
    while (!existsSync(`${file}.unfinished`)) await nextTurn();
    for (const listener of process.listeners('exit')) if (!others.includes(listener)) listener(130);
    expect(existsSync(`${file}.unfinished`)).toBe(false);
    expect(existsSync(join(data, 'backup.unfinished'))).toBe(false);
    await failed;
  });

  test('--without-keys leaves the keys out, and both commands name the missing key', async () => {
    const file = newPath();
    const written = await run('backup', file, '--data-dir', data, '--without-keys');
    expect(written).toMatchObject({ code: 0, err: expect.stringContaining('does not contain secret.key') });
    expect(listTar(file)).toEqual(['backup.json', 'tables.db', 'queues/fauxqs.db']);
    const restored = await restore(file);
    expect(restored).toMatchObject({ code: 0, err: expect.stringContaining('JOBWIRE_SECRET_KEY') });
  });

  test('- writes to stdout and reads from stdin', async () => {
    const to = newPath();
    const command = `"${process.execPath}" "${binary}" backup - --data-dir "${data}" | cat | "${process.execPath}" "${binary}" restore - --data-dir "${to}"`;
    const { code, out } = await launch(['sh', '-c', command]).ended;
    expect(code).toBe(0);
    expect(out).toContain(`Restored: ${to}`);
    expect(existsSync(join(to, 'tables.db'))).toBe(true);
  });

  test.skipIf(!existsSync('/dev/full'))(
    'a backup that stdout does not take completely fails: on a full disk, and after the reader has exited',
    async () => {
      const toStdout = [process.execPath, binary, 'backup', '-', '--data-dir', data];
      const full = await launch(['sh', '-c', 'exec "$@" > /dev/full', 'sh', ...toStdout]).ended;
      expect(full).toEqual({
        code: 1,
        out: '',
        err: 'The output can’t be written: the disk is full (ENOSPC).\n',
      });
      const closed = launch(toStdout);
      closed.child.stdout?.destroy();
      expect(await closed.ended).toMatchObject({
        code: 1,
        err: 'The output can’t be written: the connection was cut (EPIPE).\n',
      });
      expect(existsSync(join(data, 'backup.unfinished'))).toBe(false);
    },
  );

  test('a backup or a restore on a full disk says so, and leaves nothing behind', async () => {
    const exec = DatabaseSync.prototype.exec;
    const full = vi.spyOn(DatabaseSync.prototype, 'exec').mockImplementation(function (
      this: DatabaseSync,
      sql,
    ) {
      if (sql !== 'BEGIN EXCLUSIVE') return exec.call(this, sql);
      throw Object.assign(new Error('database or disk is full'), { code: 'ERR_SQLITE_ERROR', errcode: 13 });
    });
    onTestFinished(() => full.mockRestore());
    const [file, to] = [newPath(), newPath()];
    expect(await run('backup', file, '--data-dir', data)).toMatchObject({
      code: 1,
      err: `The data folder ${join(data, 'backup.unfinished')} can’t be used: the disk is full (SQLITE_FULL).\n`,
    });
    expect(existsSync(join(data, 'backup.unfinished'))).toBe(false);
    expect(await restore(backup, to)).toMatchObject({
      code: 1,
      err: `The data folder ${to} can’t be used: the disk is full (SQLITE_FULL).\n`,
    });
    expect(existsSync(to)).toBe(false);
    mkdirSync(to);
    await restore(backup, to);
    expect(readdirSync(to)).toEqual([]);
    expect(existsSync(file)).toBe(false);
  });

  test('a backup during writes contains whole transactions only', async () => {
    const pair = (value: number) => ['left', 'right'].map((sk) => ({ put: { pk: 'PAIR', sk, value } }));
    const writes = Array.from({ length: 400 }, (_, value) => tables.table.transact(pair(value), `${value}`));
    await writes[0];
    const file = newPath();
    expect(await run('backup', file, '--data-dir', data)).toMatchObject({ code: 0 });
    await Promise.all(writes);
    const to = newPath();
    expect(await restore(file, to)).toMatchObject({ code: 0 });
    const restored = await openSqliteTables(join(to, 'tables.db'));
    const [left, right] = await restored.table.query({ pk: 'PAIR' });
    await restored.close();
    expect(left?.value).toBeTypeOf('number');
    expect(left?.value).toBe(right?.value);
  });

  test('a changed or shortened archive is never restored as another content, and leaves no folder', {
    timeout: 60_000,
  }, async () => {
    const bytes = readFileSync(backup);
    const file = newPath();
    await fc.assert(
      fc.asyncProperty(fc.nat(bytes.length - 1), fc.integer({ min: 0, max: 8 }), async (at, bit) => {
        const changed = Buffer.from(bytes);
        changed[at] = (changed[at] ?? 0) ^ (1 << (bit % 8));
        writeFileSync(file, bit === 8 ? bytes.subarray(0, at) : changed);
        const to = newPath();
        const { code, err } = await restore(file, to);
        if (code === 0) {
          // Only fields of the gzip header are not covered by a checksum.
          expect(readFileSync(join(to, 'secret.key'))).toEqual(readFileSync(join(data, 'secret.key')));
          return;
        }
        expect(err).toMatch(/^\S+ (is damaged|is not a backup of Jobwire)[^\n]*\.\n$/);
        expect(existsSync(to)).toBe(false);
      }),
      runs(20, 1_000),
    );
  });

  test.each([
    ['a hard link', 156, '1'],
    ['a symbolic link', 156, '2'],
    ['a device', 156, '3'],
    ['a folder', 156, '5'],
    ['a name outside the folder', 0, '../escaped\0'],
    ['an absolute name', 0, '/tmp/escaped\0'],
    ['a negative size', 124, '-0000000001'],
    ['a size that is no number', 124, 'zzzzzzzzzzz'],
  ])('an archive with %s in place of a file is not restored', async (_, offset, value) => {
    const tar = gunzipSync(readFileSync(backup));
    const at = tar.indexOf('secret.key\0');
    const header = tar.subarray(at, at + 512);
    header.write(value, offset, 'latin1');
    header.fill(' ', 148, 156);
    const sum = header.reduce((total, byte) => total + byte, 0);
    header.write(`${sum.toString(8).padStart(6, '0')}\0`, 148, 'latin1');
    const [file, to] = [newPath(), newPath()];
    writeFileSync(file, gzipSync(tar));
    const { code, err } = await restore(file, to);
    expect({ code, err }).toEqual({ code: 1, err: expect.stringMatching(/^\S+ is damaged[^\n]*\.\n$/) });
    expect(existsSync(to)).toBe(false);
  });

  test.each<[string, () => string[] | Promise<string[]>, RegExp]>([
    ['an existing file', () => ['backup', backup, '--data-dir', data], /exists\. Choose another file\.$/],
    [
      'a folder without tables',
      () => ['backup', newPath(), '--data-dir', folder],
      /is not a data folder of Jobwire: it does not contain tables\.db\.$/,
    ],
    [
      'a target in a folder that does not exist',
      () => ['backup', join(newPath(), 'b'), '--data-dir', data],
      /^The backup failed: \S+: the file or its folder does not exist \(ENOENT\)\.$/,
    ],
    [
      'damaged tables',
      () => {
        const damaged = newPath();
        mkdirSync(damaged, { mode: 0o700 });
        writeFileSync(join(damaged, 'tables.db'), 'no database at all');
        return ['backup', newPath(), '--data-dir', damaged];
      },
      /^The backup failed: the file is not a database \(SQLITE_NOTADB\)\.$/,
    ],
    [
      'a second backup',
      () => {
        const { release } = openDataDir(join(data, 'backup.unfinished'));
        onTestFinished(() => {
          release();
          rmSync(join(data, 'backup.unfinished'), { recursive: true });
        });
        return ['backup', newPath(), '--data-dir', data];
      },
      /^Another backup of \S+ is in progress\.$/,
    ],
    [
      'a folder in use',
      () => ['restore', backup, '--data-dir', data],
      /^The data folder \S+ is in use by Jobwire\.$/,
    ],
    [
      'a folder in use, and a file that does not exist',
      () => ['restore', newPath(), '--data-dir', data],
      /^The data folder \S+ is in use by Jobwire\.$/,
    ],
    [
      'a folder that is not empty',
      () => ['restore', backup, '--data-dir', folder],
      /^The folder \S+ is not empty\. Choose an empty or a new folder\.$/,
    ],
    [
      'a file that does not exist',
      () => ['restore', newPath(), '--data-dir', newPath()],
      /^The restore failed: \S+: the file or its folder does not exist \(ENOENT\)\.$/,
    ],
    [
      'another file',
      () => ['restore', join(data, 'secret.key'), '--data-dir', newPath()],
      /secret\.key is not a backup of Jobwire\.$/,
    ],
    [
      'another archive',
      () => {
        const file = newPath();
        execFileSync('tar', ['-czf', file, '-C', data, 'secret.key']);
        return ['restore', file, '--data-dir', newPath()];
      },
      /is not a backup of Jobwire\.$/,
    ],
    [
      'an archive of a later version',
      () => {
        const [file, content] = [newPath(), newPath()];
        mkdirSync(content);
        writeFileSync(join(content, 'backup.json'), '{ "format": 2, "version": "9.0.0" }');
        execFileSync('tar', ['-czf', file, '--format=ustar', '-C', content, 'backup.json']);
        return ['restore', file, '--data-dir', newPath()];
      },
      /was written by a later version of Jobwire \(9\.0\.0\)\. Restore it with that version\.$/,
    ],
    [
      'tables of a later version',
      async () => {
        const [later, file] = [newPath(), newPath()];
        cpSync(data, later, { recursive: true });
        const database = new DatabaseSync(join(later, 'tables.db'));
        database.exec('PRAGMA user_version = 99');
        database.close();
        expect((await run('backup', file, '--data-dir', later)).code).toBe(0);
        return ['restore', file, '--data-dir', newPath()];
      },
      /can't be restored: it was written by a later version of Jobwire \(layout 99\)\.$/,
    ],
    [
      'a clock behind the backup',
      async () => {
        const [ahead, file] = [newPath(), newPath()];
        cpSync(data, ahead, { recursive: true });
        const database = new DatabaseSync(join(ahead, 'tables.db'));
        database.exec(
          `INSERT INTO state (pk, sk, item) VALUES ('INDEX#us#acme', 'HEAD', '{"epoch":"zzzzzzabcdef","sequence":1}')`,
        );
        database.close();
        expect((await run('backup', file, '--data-dir', ahead)).code).toBe(0);
        return ['restore', file, '--data-dir', newPath()];
      },
      /^The clock of this machine \(\S+\) is behind the events in the backup\. Correct it, then restore again\.$/,
    ],
    [
      'tables on a DynamoDB server',
      () => ['backup', newPath(), '--config', writeConfig({ dynamodbEndpoint: 'http://127.0.0.1:8000' })],
      /stores the tables on a DynamoDB server \(dynamodbEndpoint\)\. Use the backups of that server\.$/,
    ],
    [
      'no configuration',
      () => ['backup', newPath()],
      /^The configuration file jobwire\.json can’t be read: the file or its folder does not exist \(ENOENT\)\./,
    ],
  ])('%s: one error message, and nothing is written', async (_, prepare, message) => {
    const args = await prepare();
    const { code, err, out } = await run(...args);
    expect(err.trim()).toMatch(message);
    expect(err.trim().split('\n')).toHaveLength(1);
    expect(out).toBe('');
    expect([1, 2]).toContain(code);
    const [command, file = '', , target = ''] = args;
    if (command === 'backup' && file !== backup) expect(existsSync(file)).toBe(false);
    if (command === 'restore' && ![data, folder].includes(target)) expect(existsSync(target)).toBe(false);
    expect(existsSync(`${file}.unfinished`)).toBe(false);
  });

  test('a folder with an interrupted restore, or with an invalid time of a restore, is not used, and is not backed up', async () => {
    const to = newPath();
    await restore(backup, to);
    mkdirSync(join(to, 'restore.unfinished'));
    expect(() => openDataDir(to)).toThrow(/^A restore into the data folder \S+ was interrupted\./);
    const file = newPath();
    expect(await run('backup', file, '--data-dir', to)).toMatchObject({
      code: 1,
      err: `A restore into the data folder ${to} is not complete. Wait for it, or restore again.\n`,
    });
    expect(existsSync(file)).toBe(false);
    rmSync(join(to, 'restore.unfinished'), { recursive: true });
    for (const text of ['yesterday', '2999-01-01T00:00:00Z']) {
      writeFileSync(join(to, 'restored-at'), text);
      const held = openDataDir(to);
      expect(() => held.restoredAt()).toThrow(
        /restored-at must contain the time of the restore, in the past/,
      );
      held.release();
    }
  });

  test('a restore that was killed is repeated; a folder with other files is not touched', async () => {
    const to = newPath();
    await restore(backup, to);
    rmSync(join(to, 'secret.key'));
    mkdirSync(join(to, 'restore.unfinished'));
    writeFileSync(join(to, 'restore.unfinished', 'secret.key'), 'half a key');
    expect(await restore(backup, to)).toMatchObject({ code: 0, err: '' });
    expect(existsSync(join(to, 'restore.unfinished'))).toBe(false);
    expect(readFileSync(join(to, 'secret.key'))).toEqual(readFileSync(join(data, 'secret.key')));
    writeFileSync(join(to, 'own'), 'mine');
    expect(await restore(backup, to)).toMatchObject({ code: 1, err: expect.stringMatching(/is not empty/) });
    expect(readdirSync(to)).toContain('tables.db');
  });

  test('restores into a folder that contains only the lock of a failed start or of doctor, and not if it is in use', async () => {
    const to = newPath();
    const held = openDataDir(to);
    expect(await restore(backup, to)).toMatchObject({ code: 1, err: expect.stringMatching(/is in use/) });
    held.release();
    expect(readdirSync(to)).toEqual(['lock.db']);
    expect(await restore(backup, to)).toMatchObject({ code: 0, err: '' });
  });

  test.runIf(process.geteuid?.() === 0)('as root, no restore into the folder of another user', async () => {
    const home = newPath();
    mkdirSync(home);
    chownSync(home, 65_534, 65_534);
    const to = join(home, 'data');
    expect(await restore(backup, to)).toMatchObject({
      code: 1,
      err: `${home} belongs to the user with the id 65534, who could not read the files of root. Run the restore as that user, such as with sudo -u '#65534'.\n`,
    });
    expect(existsSync(to)).toBe(false);
  });

  test.runIf(process.geteuid?.() === 0)(
    'no backup of a data folder of another user, who is named',
    async () => {
      const other = newPath();
      mkdirSync(other, { mode: 0o700 });
      chownSync(other, 1, 1);
      expect(await run('backup', newPath(), '--data-dir', other)).toMatchObject({
        code: 1,
        err: `The data folder ${other} belongs to the user daemon. Run this command as that user.\n`,
      });
    },
  );

  test('the configuration names the folder, and its other references need not exist', async () => {
    const file = writeConfig({ dataDir: data, apiKey: 'env:JOBWIRE_NOT_SET' });
    expect(await run('backup', newPath(), '--config', file)).toMatchObject({ code: 0 });
    expect(await run('backup', newPath(), '--config', file, '--data-dir', data)).toMatchObject({
      code: 2,
      err: 'Use only one of --config and --data-dir.\n',
    });
  });
});
