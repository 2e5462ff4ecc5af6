/** An example as its README says: packed, installed beside packed/ as in the clone, and started. */
import { expect } from 'bun:test'
import { type ChildProcess, spawn } from 'node:child_process'
import { cpSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { makeTemporaryDirectory } from '@ringwire/testkit/process'

const root = join(import.meta.dir, '..', '..', '..')

/** As in a shell of one's own: nothing of the npm that perhaps runs these tests. */
export const env = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^(npm_(?!config_)|INIT_CWD$|NODE_OPTIONS$|RINGWIRE_)/.test(name)),
)

export interface Application {
  readonly url: string
  /** The next text of its standard output that fits, after those that were waited for before. */
  says(pattern: RegExp): Promise<RegExpExecArray>
  stop(): Promise<void>
}

export interface Example extends Application {
  /** Where it is installed. */
  readonly path: string
  /** The data directory of its service. */
  readonly data: string
}

/** A bound for failures, never a pace. In ms. */
const patienceMs = 60_000

export async function startExample(name: string, more: Readonly<Record<string, string>> = {}): Promise<Example> {
  const directory = await makeTemporaryDirectory()
  const path = join(directory.path, 'examples', name)
  const data = join(directory.path, 'data')
  await npm(root, 'run', 'pack', '--', join(directory.path, 'packed'))
  const isSource = (file: string) => !/node_modules|\/dist$|\/data$/.test(file.slice(root.length))
  cpSync(join(root, 'examples', name), path, { recursive: true, filter: isSource })
  const application = await installAndStart(path, { PORT: '0', RINGWIRE_DATA_DIR: data, ...more })
  return {
    ...application,
    path,
    data,
    async stop() {
      await application.stop()
      await directory.remove()
    },
  }
}

/** `npm install` and `npm start` in its folder. */
export async function installAndStart(path: string, more: Readonly<Record<string, string>>): Promise<Application> {
  await npm(path, 'install', '--prefer-offline', '--no-audit', '--no-fund')
  // A lock file has the hashes of these tarballs, and npm would refuse those of the next change.
  expect(existsSync(join(path, 'package-lock.json'))).toBe(false)
  const child = spawn('npm', ['start'], {
    cwd: path,
    env: { ...env, ...more },
    stdio: ['ignore', 'pipe', 'ignore'],
    detached: true,
  })
  const says = listenTo(child)
  const [, url = ''] = await says(/Open (\S+) here/)
  return {
    url,
    says,
    async stop() {
      // As Ctrl-C does: npm, its shell, the application and the service.
      const ended = new Promise((resolve) => child.on('close', resolve))
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGINT')
      await ended
    },
  }
}

function listenTo(child: ChildProcess): Application['says'] {
  let said = ''
  let from = 0
  let isOver = false
  let news = Promise.withResolvers<void>()
  const wake = () => {
    news.resolve()
    news = Promise.withResolvers()
  }
  child.stdout?.on('data', (bytes) => {
    said += bytes
    wake()
  })
  child.on('close', () => {
    isOver = true
    wake()
  })
  return async (pattern) => {
    const patience = AbortSignal.timeout(patienceMs)
    patience.addEventListener('abort', wake)
    for (;;) {
      const found = pattern.exec(said.slice(from))
      if (found !== null) {
        from += found.index + found[0].length
        return found
      }
      if (isOver || patience.aborted) throw new Error(`npm start never said ${pattern}:\n${said}`)
      await news.promise
    }
  }
}

export async function npm(cwd: string, ...args: string[]): Promise<void> {
  const child = Bun.spawn(['npm', ...args], { cwd, env, stdout: 'ignore', stderr: 'inherit' })
  expect([args, await child.exited]).toEqual([args, 0])
}
