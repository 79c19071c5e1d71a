/** Empty values in a command line, as of an unset variable of a script. */
import { describe, expect, it } from 'vitest';
import { getFlags, parse } from '../../cli/command.ts';
import { loadCommands } from '../../cli/run.ts';

const commands = await loadCommands();

describe('a command line', () => {
  it.each(Object.entries(commands))(
    '%s rejects an empty argument or option, so that an unset variable does not select everything',
    (name, command) => {
      const args = command.args.map((arg) => command.choices?.[arg.replace(/\?$/, '')]?.[0] ?? '1');
      const options = Object.entries(getFlags(command)).filter(([, { value }]) => value !== undefined);
      const required = options
        .filter(([, option]) => option.required)
        .flatMap(([flag, { choices }]) => [`--${flag}`, choices?.[0] ?? '1']);
      const parseLine = (...more: string[]) => parse(commands, [...name.split(' '), ...required, ...more]);
      for (const [flag, { many }] of options) {
        for (const empty of many ? ['', ',', ' '] : ['']) {
          expect(() => parseLine(...args, `--${flag}`, empty)).toThrow(`--${flag} must not be empty.`);
        }
      }
      for (const [at, arg] of command.args.entries()) {
        expect(() => parseLine(...args.with(at, ''))).toThrow(`${arg.replace(/\?$/, '')} must not be empty.`);
      }
    },
  );
});
