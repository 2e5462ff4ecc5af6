import { closeSync, mkdtempSync, openSync, rmdirSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface SmallDisk {
  readonly path: string
  /** Until nothing more fits. */
  fill(): void
  /** Makes room again. */
  clear(): void
  /** Everything that used it has ended. */
  remove(): void
}

/** A disk of its own: a tmpfs of a fixed size, which only root may mount. */
export function mountSmallDisk(size: string): SmallDisk {
  const path = mkdtempSync(join(tmpdir(), 'ringwire-disk-'))
  const ballast = join(path, 'ballast')
  const { exitCode, stderr } = Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', path])
  if (exitCode !== 0) throw new Error(`this test needs root, and the right to mount: ${stderr}`)
  return {
    path,
    fill: () => fill(ballast),
    clear: () => rmSync(ballast),
    remove() {
      Bun.spawnSync(['umount', path])
      rmdirSync(path)
    },
  }
}

function fill(path: string): void {
  const file = openSync(path, 'w')
  try {
    for (let size = 1024 * 1024; size >= 4096; size /= 2) {
      const bytes = Buffer.alloc(size)
      for (let isRoom = true; isRoom; ) {
        try {
          isRoom = writeSync(file, bytes) === size
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
          isRoom = false
        }
      }
    }
  } finally {
    closeSync(file)
  }
}
