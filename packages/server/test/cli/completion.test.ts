/** What shells complete, asked of the shells themselves. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Box, createBox } from './command.ts'

let box: Box
const scripts: Record<string, string> = {}
beforeAll(async () => {
  box = createBox()
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { code, out, err } = await box.run(`completion ${shell}`)
    expect([shell, code, err]).toEqual([shell, 0, ''])
    scripts[shell] = join(box.dataDir, `ringwire.${shell}`)
    writeFileSync(scripts[shell], out)
  }
})
afterAll(() => box.clean())

async function ask(command: string[]): Promise<string[]> {
  const child = Bun.spawn(command, { env: { ...process.env, HOME: box.dataDir }, stdio: ['ignore', 'pipe', 'pipe'] })
  const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  expect([command.at(-1), await child.exited, err]).toEqual([command.at(-1), 0, ''])
  return out.split('\n').filter((line) => line !== '')
}

/** The words that a shell offers for the last word of a command line. */
const shells: Record<string, (line: string) => Promise<string[]>> = {
  bash: (line) => {
    const words = line.split(' ').map((word) => `'${word}'`)
    const words_ = `COMP_WORDS=(${words.join(' ')}); COMP_CWORD=${words.length - 1}`
    return ask(['bash', '-c', `. ${scripts.bash}; ${words_}; _ringwire; printf '%s\n' "\${COMPREPLY[@]}"`])
  },
  zsh: (line) => {
    // The completion system hands over what it would show.
    const words = line.split(' ').map((word) => `'${word}'`)
    const stubs = `compdef() { }; _files() { }; _describe() { print -rl -- "\${(@P)2}" }`
    const given = `words=(${words.join(' ')}); CURRENT=${words.length}`
    const last = line.split(' ').at(-1) ?? ''
    return ask(['zsh', '-fc', `${stubs}; . ${scripts.zsh}; ${given}; _ringwire; true`]).then((lines) =>
      lines.map((text) => text.split(':')[0] ?? '').filter((word) => word.startsWith(last)),
    )
  },
  fish: async (line: string) => {
    const lines = await ask(['fish', '-Nc', `source ${scripts.fish}; complete -C '${line}'`])
    return lines.map((text) => text.split('\t')[0] ?? '')
  },
}

for (const [shell, complete] of Object.entries(shells)) {
  describe(shell, () => {
    test('commands, commands of commands, options, values; nothing where anything can be typed', async () => {
      for (const [line, words] of [
        ['ringwire ke', ['keys']],
        ['ringwire co', ['config', 'completion', 'conformance']],
        ['ringwire keys ', ['create', 'list', 'disable', 'enable', 'rotate']],
        ['ringwire keys cr', ['create']],
        ['ringwire keys create --p', ['--product']],
        // The command that is meant where none is named.
        ['ringwire token --us', ['--user']],
        ['ringwire token ver', ['verify']],
        // A value is not a command.
        ['ringwire token --product verify --us', ['--user']],
        ['ringwire keys create --product ', []],
        ['ringwire products set shop --busy ', ['allow', 'reject']],
        ['ringwire products set shop --reveal-busy t', ['true']],
        ['ringwire webhooks re', ['retry']],
        ['ringwire webhooks set --e', ['--events']],
        ['ringwire completion ', ['bash', 'zsh', 'fish']],
        ['ringwire phone --t', ['--token', '--ttl']],
        ['ringwire serve --as', []],
      ] as const) {
        const offered = await complete(line)
        // After a space every option fits, too.
        const compared = line.endsWith(' ') ? offered.filter((word) => !word.startsWith('-')) : offered
        expect([line, compared.sort()]).toEqual([line, [...words].sort()])
      }
    }, 240_000)
  })
}

test('each command of the help is completed, and each of its options', async () => {
  const { out } = await box.run('--help')
  const listed = [...out.matchAll(/^ {2}([a-z]+(?: [a-z]+)?)(?: [<[][\w-]+[>\]])*(?: {2,}|$)/gm)].map(
    ([, path = '']) => path,
  )
  expect(listed).toContain('webhooks retry')
  for (const path of listed) {
    const above = path.split(' ').slice(0, -1)
    expect([path, await shells.bash?.(['ringwire', ...above, path.split(' ').at(-1)].join(' '))]).toEqual([
      path,
      expect.arrayContaining([path.split(' ').at(-1)]),
    ])
    const help = await box.run(`${path} --help`)
    const options = [...help.out.matchAll(/^ {2}(?:-h, )?(--[\w-]+)/gm)].map(([, option]) => option)
    expect([path, await shells.bash?.(`ringwire ${path} --`)]).toEqual([path, expect.arrayContaining(options)])
  }
}, 240_000)

test('a shell that is not known is a wrong usage', async () => {
  expect(await box.run('completion csh')).toMatchObject({ code: 2, err: expect.stringContaining('bash, zsh, fish') })
})
