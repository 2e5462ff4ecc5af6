/**
 * Secrets that are in files: `NAME_FILE` names the file of what `NAME` would be.
 *
 *   readSecretFile(path)       → what is in it, or what is wrong with it; no problem shows a part of it
 *   whyUnreadable(path)        → why it cannot be read, if it cannot
 *   isReadableAgain(path)      → whether it can be read, and a second time: a pipe cannot
 *   openToAll(path, platform)  → the warning where every account of the machine may use it
 */
import { accessSync, constants, readFileSync, statSync } from 'node:fs'
import type { Parsed } from './values.ts'

/** White space around it does not count, as in a variable: most editors end a file with a new line. */
export function readSecretFile(path: string): Parsed<string> {
  const reason = whyUnreadable(path)
  if (reason !== undefined) return { ok: false, problem: `names no readable file: ${path} (${reason})` }
  const value = readFileSync(path, 'utf8').trim()
  // Unlike an empty variable this is no way to say "unset": a secret that was not written must not become a made one.
  if (value === '') return { ok: false, problem: `names an empty file: ${path}` }
  return { ok: true, value }
}

export function whyUnreadable(path: string): string | undefined {
  try {
    if (statSync(path).isDirectory()) return 'a directory'
    accessSync(path, constants.R_OK)
    return undefined
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? String(error)
  }
}

export function isReadableAgain(path: string): boolean {
  return whyUnreadable(path) === undefined && statSync(path).isFile()
}

export function openToAll(path: string, platform: string): string | undefined {
  if (platform === 'win32') return undefined
  const mode = modeOf(path)
  // A group may be how a key is passed on; everybody is nobody's choice.
  const isOpen = (mode & 0o007) !== 0
  return isOpen ? `every account of this machine may use ${path}, a secret: chmod o-rwx ${path}` : undefined
}

/** Of what this account may not look at, the reader of it says so. */
function modeOf(path: string): number {
  try {
    return statSync(path).mode
  } catch {
    return 0
  }
}
