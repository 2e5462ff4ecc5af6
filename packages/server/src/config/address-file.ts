/**
 * The file `serve.url` in a data directory: where the process that serves it listens. Commands in another terminal, which
 * lack its RINGWIRE_PORT, find it there.
 *
 *   writeAddress(dataDir, url)  → the service does this when it listens
 *   removeAddress(dataDir)      → and this when it stops
 *   readAddress(dataDir)        → the URL, as http://127.0.0.1:8080; undefined where no process listens
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isRunning } from '../ports/running.ts'

const fileOf = (dataDir: string) => join(dataDir, 'serve.url')

export function writeAddress(dataDir: string, url: string): void {
  removeAddress(dataDir)
  try {
    writeFileSync(fileOf(dataDir), `${process.pid} ${url}\n`, { mode: 0o600 })
  } catch {
    // The disk may be full. A service that listens goes on without it.
  }
}

export function removeAddress(dataDir: string): void {
  try {
    rmSync(fileOf(dataDir), { force: true })
  } catch {
    // The directory may be read-only by now. Once this process has ended, the file counts for nothing.
  }
}

/** A process that was killed leaves its file behind: it counts only while that process runs. */
export function readAddress(dataDir: string): string | undefined {
  let text: string
  try {
    text = readFileSync(fileOf(dataDir), 'utf8')
  } catch {
    return undefined
  }
  const [, pid, url = ''] = /^([1-9]\d{0,9}) (https?:\/\/[^\s/]+)\n$/.exec(text) ?? []
  return pid !== undefined && URL.canParse(url) && isRunning(Number(pid)) ? url : undefined
}
