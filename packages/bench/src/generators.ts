// A generator process as the main process sees it.
import { constants, setPriority } from 'node:os'
import { join } from 'node:path'
import type { Subprocess } from 'bun'
import type { Command, Job, Reply, Result, Shape } from './jobs/job.ts'
import { pinned } from './process.ts'

const ANSWERS_WITHIN_MS = 120_000

export class Generator {
  #child: Subprocess
  #waiting: { resolve: (reply: Reply) => void; reject: (error: Error) => void } | null = null
  #jobs = 0

  /** `within`: what stands before its command, such as a namespace that it runs in. */
  constructor(core: number | null, within: readonly string[] = []) {
    const command = pinned([process.execPath, join(import.meta.dir, 'generator.ts')], core)
    this.#child = Bun.spawn([...within, ...command], {
      stdin: 'ignore',
      stdout: 'inherit',
      stderr: 'inherit',
      ipc: (reply: Reply) => this.#settle(reply),
      onExit: (_child, code) => this.#waiting?.reject(new Error(`A generator ended with ${code}`)),
    })
  }

  /** Every other process that wants to run on its core goes first. */
  giveWay(): void {
    setPriority(this.#child.pid, constants.priority.PRIORITY_LOW)
  }

  /** Gives the number by which the prepared job is run and released. */
  async prepare(job: Job): Promise<number> {
    const id = this.#jobs++
    await this.#ask({ step: 'prepare', id, job })
    return id
  }

  async run(id: number, shape: Shape): Promise<Result> {
    const reply = await this.#ask({ step: 'run', id, shape })
    if (reply.step !== 'result') throw new Error(`A generator answered ${reply.step}`)
    return reply.result
  }

  async release(id: number): Promise<void> {
    await this.#ask({ step: 'release', id })
  }

  async stop(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#child.exited
  }

  async #ask(command: Command): Promise<Reply> {
    const { promise, resolve, reject } = Promise.withResolvers<Reply>()
    this.#waiting = { resolve, reject }
    const timer = setTimeout(() => reject(new Error(`A generator did not ${command.step} in time`)), ANSWERS_WITHIN_MS)
    this.#child.send(command)
    const reply = await promise.finally(() => clearTimeout(timer))
    if (reply.step === 'failed') throw new Error(reply.message)
    return reply
  }

  #settle(reply: Reply): void {
    this.#waiting?.resolve(reply)
    this.#waiting = null
  }
}
