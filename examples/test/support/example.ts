/** An example as its README says: packed, installed beside packed/ as in the clone, and started. */
import { expect } from 'bun:test'
import { type ChildProcess, spawn } from 'node:child_process'
import { cpSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { makeTemporaryDirectory } from '@ringwire/testkit/process'

const root = join(import.meta.dir, '..', '..', '..')

/** As in a shell of one's own: nothing of the npm that perhaps runs these tests. */
const env = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^(npm_(?!config_)|INIT_CWD$|NODE_OPTIONS$|RINGWIRE_)/.test(name)),
)

export interface Example {
  /** Of the application. */
  readonly url: string
  /** Where it is installed. */
  readonly path: string
  /** The data directory of its service. */
  readonly data: string
  stop(): Promise<void>
}

export async function startExample(name: string, more: Readonly<Record<string, string>> = {}): Promise<Example> {
  const directory = await makeTemporaryDirectory()
  const path = join(directory.path, 'examples', name)
  const data = join(directory.path, 'data')
  await npm(root, 'run', 'pack', '--', join(directory.path, 'packed'))
  const isSource = (file: string) => !/node_modules|\/dist$|\/data$/.test(file.slice(root.length))
  cpSync(join(root, 'examples', name), path, { recursive: true, filter: isSource })
  await npm(path, 'install', '--prefer-offline', '--no-audit', '--no-fund')
  // A lock file has the hashes of these tarballs, and npm would refuse those of the next change.
  expect(existsSync(join(path, 'package-lock.json'))).toBe(false)
  const child = spawn('npm', ['start'], {
    cwd: path,
    env: { ...env, PORT: '0', RINGWIRE_DATA_DIR: data, ...more },
    stdio: ['ignore', 'pipe', 'ignore'],
    detached: true,
  })
  const url = await addressOf(child)
  return {
    url,
    path,
    data,
    async stop() {
      // As Ctrl-C does: npm, its shell, the application and the service.
      const ended = new Promise((resolve) => child.on('close', resolve))
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGINT')
      await ended
      await directory.remove()
    },
  }
}

function addressOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let said = ''
    child.stdout?.on('data', (bytes) => {
      said += bytes
      const [, found] = /Open (\S+) here/.exec(said) ?? []
      if (found !== undefined) resolve(found)
    })
    child.on('close', (code) => reject(new Error(`npm start ended with ${code}: ${said}`)))
  })
}

async function npm(cwd: string, ...args: string[]): Promise<void> {
  const child = Bun.spawn(['npm', ...args], { cwd, env, stdout: 'ignore', stderr: 'inherit' })
  expect([args, await child.exited]).toEqual([args, 0])
}
