import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { describeNodeFix } from '../../cli/start.ts';

describe.skipIf(process.platform === 'win32')('describeNodeFix', () => {
  const createFolder = () => {
    const folder = mkdtempSync(join(tmpdir(), 'jobwire-prefix-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    mkdirSync(join(folder, 'lib'));
    return folder;
  };
  const at = (folder: string) => describeNodeFix(join(folder, 'node_modules', 'jobwire', 'cli', 'start.js'));

  it('installs Node globally only next to a global jobwire', () => {
    const folder = createFolder();
    expect(at(join(folder, 'lib'))).toContain(`run: npm install --global --prefix ${folder} node@24`);
    expect(at(folder)).toContain('run: npm install node@24');
    expect(describeNodeFix('/src/cli/start.ts')).toContain('run: npm install node@24');
    writeFileSync(join(folder, 'lib', 'package.json'), '{}');
    expect(at(join(folder, 'lib'))).toContain('run: npm install node@24');
  });

  it('does not install Node over the Node in the same folder', () => {
    const folder = createFolder();
    mkdirSync(join(folder, 'bin'));
    writeFileSync(join(folder, 'bin', 'node'), '');
    expect(at(join(folder, 'lib'))).toBe('Replace this Node by Node 24 or later.');
  });
});
