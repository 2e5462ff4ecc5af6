/** `create-ringwire` as a process, in a folder of its own. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dir, '..', '..', '..', '..')
/** From the source, with the command of the workspace on the PATH. */
const fromSource = ['node', join(root, 'packages', 'create-ringwire', 'bin', 'create-ringwire.mjs')]
const PATH = `${join(root, 'node_modules', '.bin')}:${process.env.PATH}`

export interface Ended {
  readonly code: number
  readonly out: string
  readonly err: string
}

export interface Creating {
  readonly cwd: string
  readonly env?: Readonly<Record<string, string>>
  readonly command?: readonly string[]
}

export async function create({ cwd, env = {}, command = fromSource }: Creating, ...args: string[]): Promise<Ended> {
  const child = Bun.spawn([...command, ...args], {
    cwd,
    env: { HOME: process.env.HOME ?? '', PATH, ...env },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  return { code, out, err }
}

/** The same in a terminal, where somebody types: answers what is on the screen when it is over. */
export async function createInTerminal(
  cwd: string,
  type: (sees: (pattern: RegExp) => Promise<void>, write: (text: string) => void) => Promise<void>,
): Promise<{ code: number; screen: string }> {
  let screen = ''
  let news = Promise.withResolvers<void>()
  const child = Bun.spawn([...fromSource], {
    cwd,
    env: { HOME: process.env.HOME ?? '', PATH, TERM: 'xterm-256color' },
    terminal: {
      cols: 200,
      rows: 50,
      data(_terminal, bytes) {
        screen += Buffer.from(bytes).toString()
        news.resolve()
        news = Promise.withResolvers()
      },
    },
  })
  const sees = async (pattern: RegExp) => {
    while (!pattern.test(screen)) await news.promise
  }
  await type(sees, (text) => void child.terminal?.write(text))
  return { code: await child.exited, screen }
}

/** What `.env` of a new application says. */
export function readEnv(folder: string): Record<string, string> {
  const lines = readFileSync(join(folder, '.env'), 'utf8').matchAll(/^([A-Z_]+)=(.*)$/gm)
  return Object.fromEntries(Array.from(lines, ([, name = '', value = '']) => [name, value]))
}

/** The values of `.env` that nobody may print. */
export const secretsIn = (env: Readonly<Record<string, string>>): string[] =>
  Object.entries(env).flatMap(([name, value]) => (name.endsWith('_SECRET') && value !== '' ? [value] : []))
