/**
 * The data directory, before anything is made in it.
 *
 *   whyClosed(path)    → why nobody can look into it, if so; one that is not there is closed only by what is above it
 *   whyUnusable(path)  → the same, and where this account may not write to it, or make it
 */
import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

export function whyClosed(path: string): string | undefined {
  const place = resolve(path)
  const above = dirname(place)
  const found = look(place)
  // Nothing is there, or a directory above it is in the way: that one says why.
  if (found === undefined) return above === place ? undefined : whyClosed(above)
  if (!found.isDirectory()) return `${place} is no directory`
  return refusal(place, constants.X_OK) === undefined ? undefined : `this account may not enter ${place}`
}

export function whyUnusable(path: string): string | undefined {
  const closed = whyClosed(path)
  if (closed !== undefined) return closed
  // One that is not there is made, in the nearest directory that is.
  let place = resolve(path)
  while (!existsSync(place) && place !== dirname(place)) place = dirname(place)
  const code = refusal(place, constants.W_OK)
  if (code === 'EROFS') return `the file system of ${place} is read-only`
  return code === undefined ? undefined : `this account may not write to ${place}`
}

function look(path: string) {
  try {
    return statSync(path)
  } catch {
    return undefined
  }
}

function refusal(path: string, how: number): string | undefined {
  try {
    accessSync(path, how)
    return undefined
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unknown'
  }
}
