/** The candidates of shell completion, which the scripts request from the CLI. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { getFlags } from '../../cli/command.ts';
import { complete } from '../../cli/completion.ts';
import { readProfiles, writeProfiles } from '../../cli/profiles.ts';
import { loadCommands } from '../../cli/run.ts';
import { eventTypes, inputs } from '../../client/inputs.ts';

const commands = await loadCommands();
const env = { XDG_CONFIG_HOME: mkdtempSync(join(tmpdir(), 'jobwire-completion-')) };
const profile = { url: 'http://127.0.0.1:4000', key: 'a-key' };
writeProfiles(env, { profiles: { production: profile, staging: profile } });
afterAll(() => rmSync(env.XDG_CONFIG_HOME, { recursive: true }));

/** Returns the values for a command line, of which the last word is to be completed. */
const valuesFor = (line: string) =>
  complete(commands, line.split(' '), env).map((candidate) => candidate.split('\t')[0]);

describe('completion', () => {
  it('lists every command under its group', () => {
    const names = Object.keys(commands);
    expect(valuesFor('')).toEqual([...new Set(names.map((name) => name.split(' ')[0]))]);
    for (const group of valuesFor('')) {
      const members = names.filter((name) => name.startsWith(`${group} `));
      if (members.length > 0) {
        expect(valuesFor(`${group} `).map((member) => `${group} ${member}`)).toEqual(members);
      }
    }
    expect(valuesFor('endpoints r')).toContain('rotate-secret');
    expect(valuesFor('help acc')).toEqual(['accounts']);
  });

  it('works on Node 20, which has no Map.groupBy', () => {
    vi.spyOn(Map, 'groupBy').mockImplementation(() => {
      throw new TypeError('Map.groupBy is not a function');
    });
    expect(valuesFor('')).toContain('endpoints');
    vi.restoreAllMocks();
  });

  it('lists every option of every command, and no option again that cannot be repeated', () => {
    for (const [name, command] of Object.entries(commands)) {
      expect(valuesFor(`${name} --`)).toEqual(Object.keys(getFlags(command)).map((flag) => `--${flag}`));
    }
    expect(valuesFor('keys create --role read --ro')).toEqual([]);
    expect(valuesFor('events tail --types job.* --ty')).toEqual(['--types']);
  });

  it.each([
    ['keys create --role ', inputs['NewKey.role']],
    ['keys create --role=o', ['--role=operate']],
    // bash passes the parts of --role=o as words.
    ['keys create --role = o', ['operate']],
    ['keys create --role =', inputs['NewKey.role']],
    // bash also splits words at colons.
    ['listen --forward-to http : //localhost : 3000/jobs --ty', ['--types']],
    ['trigger --forward-to http : //[ :: 1] : 3000/jobs job.due_s', ['job.due_soon']],
    ['--url = http : //127.0.0.1 : 4000 keys create --role = o', ['operate']],
    ['--profile = staging --pro', []],
    ['--profile=staging --pro', []],
    ['listen --secret-file = a : b', [':files']],
    ['events tail --types ', eventTypes],
    [
      'events tail --types job.created,job.dispatch',
      ['job.created,job.dispatched', 'job.created,job.dispatch_revoked'],
    ],
    ['event-types show upstream.', ['upstream.outage', 'upstream.recovered']],
    ['templates show acme dispatched ', ['email', 'sms']],
    ['templates --json show acme dispatched email d', ['de']],
    ['completion ', ['bash', 'zsh', 'fish']],
    ['accounts list --profile p', ['production']],
    ['--profile staging accounts sh', ['show']],
    ['profiles use ', ['production', 'staging']],
    ['recipients import acme ', [':files']],
    ['listen --secret-file ', [':files']],
    ['accounts show ', []],
    ['accounts show acme ', []],
    ['nothing ', []],
  ])('completes "%s"', (line, values) => {
    expect(valuesFor(line)).toEqual(values);
  });

  it('never completes the name of a profile that a shell or a terminal would interpret', () => {
    const hostile = { XDG_CONFIG_HOME: join(env.XDG_CONFIG_HOME, 'hostile') };
    for (const name of ['$(touch x)', '`id`', 'a;b', '-x', 'a\nb', '\u001b[31m']) {
      writeProfiles(hostile, { profiles: { production: profile, [name]: profile } });
      expect(complete(commands, ['profiles', 'use', ''], hostile)).toEqual([]);
      expect(() => readProfiles(hostile)).toThrow(/^\S+ is not a valid file of profiles\./);
    }
  });

  it('describes each candidate in one line', () => {
    for (const line of ['', 'accounts ', 'accounts list --', 'keys create --role ']) {
      for (const candidate of complete(commands, line.split(' '), env))
        expect(candidate).toMatch(/^\S+\t\S[^\t\n]+$/);
    }
  });
});
