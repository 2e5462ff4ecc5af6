// How far the server's core and the generator's are apart: the time in which a cache line goes there and back.
// In a virtual machine the host moves cores between chips while we run; sockets between near cores cost half of what
// they cost between far ones, so a round is only worth comparing when the distance stayed the same.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Subprocess } from 'bun'
import { pinned } from './process.ts'

export type ProbeCommand = 'measure'
export interface ProbeReply {
  nanoseconds: number
}

export class CoreDistance {
  #echo: Subprocess
  #ask: Subprocess
  #waiting: ((nanoseconds: number) => void) | null = null

  constructor(serverCore: number, generatorCore: number, directory: string) {
    const shared = join(directory, 'core-distance')
    writeFileSync(shared, new Uint8Array(4096))
    this.#echo = this.#spawn('echo', serverCore, shared)
    this.#ask = this.#spawn('ask', generatorCore, shared)
  }

  /** Nanoseconds for one round trip; takes some milliseconds of both cores. */
  measure(): Promise<number> {
    return new Promise((resolve) => {
      this.#waiting = resolve
      this.#echo.send('measure' satisfies ProbeCommand)
      this.#ask.send('measure' satisfies ProbeCommand)
    })
  }

  async stop(): Promise<void> {
    for (const child of [this.#echo, this.#ask]) {
      child.kill('SIGKILL')
      await child.exited
    }
  }

  #spawn(role: string, core: number, shared: string): Subprocess {
    return Bun.spawn(pinned([process.execPath, join(import.meta.dir, 'core-distance-probe.ts'), role, shared], core), {
      stdin: 'ignore',
      stdout: 'inherit',
      stderr: 'inherit',
      ipc: (reply: ProbeReply) => this.#waiting?.(reply.nanoseconds),
    })
  }
}

/** Whether two distances belong to the same place of the cores; they scatter by some ten percent by themselves. */
export function sameDistance(before: number, after: number): boolean {
  return Math.max(before, after) < 1.6 * Math.min(before, after)
}
