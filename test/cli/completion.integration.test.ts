/** The completion scripts of the built CLI in real shells, without an API. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { binary, loadCli } from '../support/cli-site.ts';
import { cleanEnv, launch } from '../support/command.ts';

const folder = mkdtempSync(join(tmpdir(), 'jobwire-shell-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
writeFileSync(join(folder, 'jobwire'), `#!/bin/sh\nexec '${process.execPath}' '${binary}' "$@"\n`, {
  mode: 0o755,
});
writeFileSync(join(folder, 'a-file.csv'), '');
const PATH = folder + delimiter + process.env.PATH;

function isInstalled(shell: string): boolean {
  try {
    execFileSync(shell, ['-c', 'true'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** Programs that print the candidates for a line: what the shell itself would show. */
const SHELLS = {
  // The function that bash calls at TAB, with the words that bash passes.
  bash: (words: readonly string[]) => `
    source <(jobwire completion bash)
    compopt() { echo "compopt $*"; }
    COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')})
    COMP_CWORD=$(( \${#COMP_WORDS[@]} - 1 ))
    _jobwire jobwire
    [[ \${#COMPREPLY[@]} -eq 0 ]] || printf '%s\\n' "\${COMPREPLY[@]}"`,
  // The function that zsh calls at TAB. The two functions of its completion system print.
  zsh: (words: readonly string[]) => `
    compdef() { }
    _describe() { print -rl -- "\${(@)\${(@P)3}%%:*}" }
    _files() { print compopt -o default }
    source <(jobwire completion zsh)
    words=(${words.map((word) => `'${word}'`).join(' ')})
    CURRENT=$#words
    _jobwire`,
  fish: (words: readonly string[]) => `
    jobwire completion fish | source
    complete -C '${words.join(' ')}' | cut -f 1`,
};

describe.each(Object.entries(SHELLS))('completion in %s', (shell, toProgram) => {
  const completeIn = async (line: string) => {
    const program = toProgram(line.split(' '));
    const env = { PATH, HOME: folder, XDG_CONFIG_HOME: folder };
    const ended = await launch([shell, '-c', program], { env, cwd: folder }).ended;
    expect(ended).toMatchObject({ code: 0, err: '' });
    return ended.out.trim().split('\n').sort();
  };

  it.runIf(isInstalled(shell))('completes commands, options, values and files without an API', async () => {
    expect(await completeIn('jobwire ac')).toEqual(['accounts']);
    expect(await completeIn('jobwire keys create --ro')).toEqual(['--role']);
    expect(await completeIn('jobwire keys create --role ')).toEqual(['admin', 'operate', 'read']);
    expect(await completeIn('jobwire events tail --types account.payment')).toEqual([
      'account.payment_completed',
      'account.payment_failed',
    ]);
    const files = shell === 'fish' ? 'a-file.csv' : 'compopt -o default';
    expect(await completeIn('jobwire recipients import acme a-')).toEqual([files]);
  });
});

it('completion rejects another shell, and suggests the one that was meant', async () => {
  const cli = await loadCli(join(binary, '..'));
  expect(await cli.run(['completion', 'bsh'], { env: cleanEnv })).toMatchObject({
    code: 2,
    err: 'SHELL must be one of bash, zsh, fish. Did you mean bash?\n',
  });
});
