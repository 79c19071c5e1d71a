/** `jobwire completion`: scripts for shells, and the candidates that these request from the CLI at each TAB. Uses no network. */
import {
  API_FLAGS,
  COMMON_FLAGS,
  COMPLETE,
  type Command,
  type Commands,
  type Context,
  type Flag,
  type Flags,
  findWords,
  getFlags,
} from './command.ts';
import { readProfiles } from './profiles.ts';

/** Requests names of files instead of candidates. */
const FILES = ':files';

/** Scripts by shell. Each requests `value<TAB>description` lines, or `:files`. */
const SCRIPTS = {
  bash: `# bash completion of jobwire
_jobwire() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ $line == ${FILES} ]]; then
      compopt -o default
      return
    fi
    COMPREPLY+=("\${line%%$'\\t'*}")
  done < <("$1" ${COMPLETE} "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _jobwire jobwire
`,
  zsh: `#compdef jobwire
_jobwire() {
  local line
  local -a values
  for line in "\${(@f)$("$words[1]" ${COMPLETE} "\${(@Q)words[2,CURRENT]}" 2>/dev/null)}"; do
    if [[ $line == ${FILES} ]]; then
      _files
      return
    fi
    [[ -n $line ]] && values+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
  done
  _describe -V jobwire values
}
if [[ \${funcstack[1]} == _jobwire ]]; then
  _jobwire "$@"
else
  compdef _jobwire jobwire
fi
`,
  fish: `# fish completion of jobwire
function __jobwire_complete
  set -l words (commandline -opc)
  set -l program $words[1]
  set -e words[1]
  set -l current (commandline -ct)
  for line in ($program ${COMPLETE} $words "$current" 2>/dev/null)
    if test "$line" = ${FILES}
      __fish_complete_path "$current"
    else
      echo $line
    end
  end
end
complete -c jobwire -f -a '(__jobwire_complete)'
`,
} as const;
export type Shell = keyof typeof SCRIPTS;
export const getScript = (shell: Shell): string => SCRIPTS[shell];

/** A value and its description. */
type Candidate = readonly [value: string, about: string];

/** Returns the lines for the words after `jobwire`, of which the last is to be completed. */
export function complete(commands: Commands, words: readonly string[], env: Context['env']): string[] {
  const joined = joinWords(words);
  const current = joined.at(-1) ?? '';
  const last = words.at(-1) ?? '';
  // bash replaces only the last part of a word that it has split.
  const kept = current.length - (SEPARATOR.test(last) ? 0 : last.length);
  const lines = completeWord(commands, joined.slice(0, -1), current, env);
  return lines.map((line) => (line === FILES ? line : line.slice(kept)));
}

/** A word of bash between the parts of a word that it has split, such as --name=value or a URL. */
const SEPARATOR = /^[=:]+$/;

/** Joins the parts of words that bash has split. */
function joinWords(words: readonly string[]): string[] {
  const joined: string[] = [];
  words.forEach((word, at) => {
    const isPart = SEPARATOR.test(word) || (word !== '' && SEPARATOR.test(words[at - 1] ?? ''));
    joined.push((isPart ? (joined.pop() ?? '') : '') + word);
  });
  return joined;
}

/** Returns the lines for a word after others. */
function completeWord(
  commands: Commands,
  before: readonly string[],
  current: string,
  env: Context['env'],
): string[] {
  const [first = '', second = ''] = findWords(before).map(({ word }) => word);
  const name = [first, `${first} ${second}`].find((one) => Object.hasOwn(commands, one));
  const chosen = name === undefined ? undefined : commands[name];
  const flags: Flags = chosen ? getFlags(chosen) : { ...API_FLAGS, ...COMMON_FLAGS };

  const end = current.startsWith('--') ? current.indexOf('=') : -1;
  const [option = '', typed = '', prefix = ''] =
    end < 0
      ? [before.at(-1), current]
      : [current.slice(0, end), current.slice(end + 1), current.slice(0, end + 1)];
  const flag = option.startsWith('--') ? flags[option.slice(2)] : undefined;
  if (flag?.value !== undefined) return listValues(flag, option, { typed, prefix }, env);
  if (current.startsWith('-')) {
    const given = before.map((word) => word.split('=')[0]);
    const open = Object.entries(flags).filter(([one, { many }]) => many || !given.includes(`--${one}`));
    const candidates = open.map(([one, { about }]): Candidate => [`--${one}`, about]);
    return print(candidates, current);
  }
  if (first === 'help') return print(listNames(commands, second), current);
  if (!chosen || name === undefined) return print(listNames(commands, first), current);
  return listArguments({ name, chosen, given: countArguments(name, before, flags) }, current, env);
}

/** Returns the names of groups and commands after `first`, with descriptions. */
function listNames(commands: Commands, first: string): Candidate[] {
  const names = Object.entries(commands);
  if (first !== '') {
    return names.flatMap(([name, { about }]): Candidate[] =>
      name.startsWith(`${first} `) ? [[name.slice(first.length + 1), about]] : [],
    );
  }
  const groups = new Set(names.map(([name]) => name.split(' ')[0] ?? name));
  return [...groups].map((group): Candidate => {
    const single = commands[group];
    const members = names.filter(([name]) => name.startsWith(`${group} `));
    return [
      group,
      single?.about ?? `Commands: ${members.map(([name]) => name.slice(group.length + 1)).join(', ')}`,
    ];
  });
}

/** Returns the values of an option. */
function listValues(
  { value, about, choices, suggestions, many }: Flag,
  option: string,
  { typed, prefix }: { readonly typed: string; readonly prefix: string },
  env: Context['env'],
): string[] {
  if (value === 'FILE' || value === 'FOLDER') return [FILES];
  const values = option === '--profile' ? listProfiles(env) : (choices ?? suggestions ?? []);
  const list = many ? typed.slice(0, typed.lastIndexOf(',') + 1) : '';
  const candidates = values.map((one): Candidate => [prefix + list + one, about]);
  return print(candidates, prefix + typed);
}

/** Returns the values of the next argument of a command. */
function listArguments(
  { name, chosen, given }: { readonly name: string; readonly chosen: Command; readonly given: number },
  current: string,
  env: Context['env'],
): string[] {
  const arg = chosen.args[given]?.replace(/\?$/, '');
  if (arg === undefined) return [];
  if (arg === 'FILE') return [FILES];
  const values = /^profiles (use|remove)$/.test(name)
    ? listProfiles(env)
    : (chosen.choices?.[arg] ?? chosen.suggestions?.[arg] ?? []);
  const candidates = values.map((one): Candidate => [one, arg]);
  return print(candidates, current);
}

/** Returns the number of arguments after the name of a command. */
function countArguments(name: string, before: readonly string[], flags: Flags): number {
  const values = before.filter((word, at) => {
    const previous = before[at - 1] ?? '';
    return !word.startsWith('-') && flags[previous.slice(2)]?.value === undefined;
  });
  return values.length - name.split(' ').length;
}

function listProfiles(env: Context['env']): string[] {
  try {
    return Object.keys(readProfiles(env).profiles);
  } catch {
    return [];
  }
}

const print = (candidates: readonly Candidate[], current: string): string[] =>
  candidates.filter(([value]) => value.startsWith(current)).map(([value, about]) => `${value}\t${about}`);
