// How far the server's core and the generator's are apart: the time in which a cache line goes there and back.
// In a virtual machine the host moves cores between chips while we run; sockets between near cores cost half of what
// they cost between far ones, so a round is only worth comparing when the distance stayed the same.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Subprocess } from 'bun'
import { pinned } from './process.ts'

export interface ProbeCommand {
  measurement: number
}
export interface ProbeReply {
  /** NaN crosses as null. */
  nanoseconds: number | null
}

export class CoreDistance {
  #echo: Subprocess
  #ask: Subprocess
  #measurements = 0
  #waiting: ((nanoseconds: number) => void) | null = null

  constructor(serverCore: number, generatorCore: number, directory: string) {
    const shared = join(directory, 'core-distance')
    writeFileSync(shared, new Uint8Array(4096))
    this.#echo = this.#spawn('echo', serverCore, shared)
    this.#ask = this.#spawn('ask', generatorCore, shared)
  }

  /** Nanoseconds for one round trip, NaN where the machine had no time for it; takes some milliseconds of both cores. */
  measure(): Promise<number> {
    return new Promise((resolve) => {
      this.#waiting = resolve
      const command: ProbeCommand = { measurement: ++this.#measurements }
      this.#echo.send(command)
      this.#ask.send(command)
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
      ipc: (reply: ProbeReply) => this.#waiting?.(reply.nanoseconds ?? Number.NaN),
    })
  }
}

/** Whether two distances belong to the same place of the cores; they scatter by some ten percent by themselves. */
export function sameDistance(before: number, after: number): boolean {
  return Math.max(before, after) < 1.6 * Math.min(before, after)
}
