/** `ringwire completion SHELL`: what a shell completes, from the table of commands that --help is printed from. */
import { Argument, type Command, type Option } from 'commander'
import type { Surroundings } from './command.ts'
import { type CommandRow, tableOf } from './command-table.ts'

const help = `
Only for this shell, or for each in its startup file:

  bash  eval "$(ringwire completion bash)"                                      ~/.bashrc
  zsh   eval "$(ringwire completion zsh)", after compinit                       ~/.zshrc
  fish  ringwire completion fish > ~/.config/fish/completions/ringwire.fish     once

It completes the command ringwire, which has to be in PATH.
`

const writers = { bash: writeBash, zsh: writeZsh, fish: writeFish }

export function addCompletionCommand(program: Command, surroundings: Surroundings): void {
  program
    .command('completion')
    .description('Print a script with which a shell completes commands and options.')
    .addArgument(new Argument('<shell>', 'which shell').choices(Object.keys(writers)))
    .addHelpText('after', help)
    .action((shell: keyof typeof writers) => surroundings.out(writers[shell](placesOf(tableOf(program)))))
}

interface Candidate {
  readonly word: string
  readonly description: string
  /** It is an option, and this is what its value can be: nothing that is known, where the list is empty. */
  readonly values?: readonly string[]
}

/** The words that can follow these words of a command line: `''`, ` keys`, ` keys create`. */
interface Place {
  readonly path: string
  readonly candidates: readonly Candidate[]
  /** A directory can be named here. */
  readonly takesDirectory: boolean
}

/** The arguments of commands that name a directory. */
const directories = ['target']

function placesOf(rows: readonly CommandRow[]): Place[] {
  const places = new Map<string, { candidates: Candidate[]; takesDirectory: boolean }>()
  const at = (words: readonly string[]) => {
    const path = words.map((word) => ` ${word}`).join('')
    const place = places.get(path) ?? { candidates: [], takesDirectory: false }
    places.set(path, place)
    return place
  }
  for (const { path, description, options, args, isDefault } of rows) {
    path.forEach((word, depth) => {
      const { candidates } = at(path.slice(0, depth))
      if (candidates.some((candidate) => candidate.word === word)) return
      candidates.push({ word, description: depth === path.length - 1 ? description : '' })
    })
    const place = at(path)
    place.candidates.push(...args.flatMap(({ choices }) => choices.map((word) => ({ word, description: '' }))))
    place.takesDirectory = args.some(({ name }) => directories.includes(name))
    for (const taker of isDefault ? [place, at(path.slice(0, -1))] : [place]) {
      taker.candidates.push(...options.flatMap(optionCandidate))
    }
  }
  return [...places].map(([path, place]) => ({ path, ...place }))
}

function optionCandidate({ long, required, description, argChoices, flags }: Option): Candidate[] {
  if (long == null) return []
  if (!required) return [{ word: long, description }]
  const alternatives = /<(\w+(?:\|\w+)+)>/.exec(flags)?.[1]?.split('|')
  return [{ word: long, description, values: argChoices ?? alternatives ?? [] }]
}

/** The first sentence: a list has room for no more. */
const short = (text: string) =>
  text
    .replace(/ \(default: .*$/, '')
    .split(/[.;,:] /)[0]
    ?.replace(/\.$/, '') ?? ''
const unique = (words: readonly string[]) => [...new Set(words)]
/** Commands that go on, options that take a value, and what these values can be: a shell asks for all three. */
const pathsOf = (places: readonly Place[]) => places.map(({ path }) => path).filter((path) => path !== '')
const takersOf = (places: readonly Place[]) =>
  unique(places.flatMap(({ candidates }) => candidates.flatMap(({ word, values }) => (values ? [word] : []))))
const choicesOf = (places: readonly Place[]) =>
  places.flatMap(({ path, candidates }) =>
    candidates.flatMap(({ word, values = [] }) => (values.length > 0 ? [{ path, word, values }] : [])),
  )

/** In single quotes, as bash and zsh read them. */
const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`

function writeBash(places: readonly Place[]): string {
  const choices = choicesOf(places).map(
    ({ path, word, values }) => `      ${quoted(`${path} ${word}`)}) words=${quoted(values.join(' '))} ;;\n`,
  )
  const words = places.map(
    ({ path, candidates }) =>
      `      ${quoted(path)}) words=${quoted(candidates.map(({ word }) => word).join(' '))} ;;\n`,
  )
  const withDirectory = places.filter(({ takesDirectory }) => takesDirectory)
  const directory = withDirectory.map(({ path }) => `[[ $at == ${quoted(path)} ]]`).join(' || ')
  return `# bash completion of ringwire: eval "$(ringwire completion bash)"
_ringwire() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} at='' value='' words='' word i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    if [[ -n $value ]]; then value=''; continue; fi
    case "$word" in
      ${takersOf(places).join('|')}) value=1; continue ;;
    esac
    case "$at $word" in
      ${pathsOf(places).map(quoted).join('|')}) at="$at $word" ;;
    esac
  done
  if [[ -n $value ]]; then
    case "$at $previous" in
${choices.join('')}      *) return ;;
    esac
  else
    case "$at" in
${words.join('')}    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  if [[ -z $value && $current != -* ]] && { ${directory || 'false'}; }; then
    compopt -o filenames 2>/dev/null
    COMPREPLY+=($(compgen -d -- "$current"))
  fi
}
complete -F _ringwire ringwire
`
}

function writeZsh(places: readonly Place[]): string {
  const choices = choicesOf(places).map(
    ({ path, word, values }) => `      ${quoted(`${path} ${word}`)}) candidates=(${values.map(quoted).join(' ')}) ;;\n`,
  )
  const described = ({ word, description }: Candidate) =>
    quoted(description === '' ? word : `${word}:${short(description).replaceAll(':', '\\:')}`)
  const lists = places.map(
    ({ path, candidates }) =>
      `      ${quoted(path)}) candidates=(\n${candidates.map((candidate) => `        ${described(candidate)}\n`).join('')}      ) ;;\n`,
  )
  const withDirectory = places.filter(({ takesDirectory }) => takesDirectory)
  const directory = withDirectory.map(({ path }) => `[[ $at == ${quoted(path)} ]]`).join(' || ')
  return `#compdef ringwire
# zsh completion of ringwire: eval "$(ringwire completion zsh)"
_ringwire() {
  local at='' value='' word i
  local -a candidates
  for ((i = 2; i < CURRENT; i++)); do
    word=\${words[i]}
    if [[ -n $value ]]; then value=''; continue; fi
    case "$word" in
      ${takersOf(places).join('|')}) value=1; continue ;;
    esac
    case "$at $word" in
      ${pathsOf(places).map(quoted).join('|')}) at="$at $word" ;;
    esac
  done
  if [[ -n $value ]]; then
    case "$at \${words[CURRENT-1]}" in
${choices.join('')}      *) return 1 ;;
    esac
  else
    case "$at" in
${lists.join('')}    esac
  fi
  if [[ -z $value ]] && { ${directory || 'false'}; }; then _files -/; fi
  _describe ringwire candidates
}
if [[ $funcstack[1] == _ringwire ]]; then _ringwire "$@"; else compdef _ringwire ringwire; fi
`
}

function writeFish(places: readonly Place[]): string {
  const inFish = (text: string) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
  const lines = places.flatMap(({ path, candidates, takesDirectory }) => {
    const when = `complete -c ringwire -n ${inFish(`__ringwire_at '${path}'`)}`
    const said = (text: string) => (text === '' ? '' : ` -d ${inFish(short(text))}`)
    const directory = takesDirectory ? [`${when} -a '(__fish_complete_directories)'`] : []
    return [
      ...directory,
      ...candidates.map(({ word, description, values }) => {
        if (!word.startsWith('--')) return `${when} -a ${inFish(word)}${said(description)}`
        const value = values === undefined ? '' : values.length === 0 ? ' -x' : ` -x -a ${inFish(values.join(' '))}`
        return `${when} -l ${word.slice(2)}${value}${said(description)}`
      }),
    ]
  })
  return `# fish completion of ringwire: ringwire completion fish > ~/.config/fish/completions/ringwire.fish
function __ringwire_at
  set -l at ''
  set -l value ''
  set -l typed (commandline -opc)
  set -e typed[1]
  for word in $typed
    if test -n "$value"
      set value ''
      continue
    end
    switch $word
      case ${takersOf(places).join(' ')}
        set value 1
        continue
    end
    switch "$at $word"
      case ${pathsOf(places).map(inFish).join(' ')}
        set at "$at $word"
    end
  end
  test "$at" = "$argv[1]"
end
complete -c ringwire -f
${lines.join('\n')}
`
}
